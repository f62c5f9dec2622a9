"""What a controller sees of a robot: samples with noise, rounding and delay, and held commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import SimulationError
from hodyn_ros.simulation.plant import ElasticPlant
from hodyn_ros.typing import Array

# Of the number of time steps in a period, from a whole one.
_ROUNDING = 1e-6


class Measurement(NamedTuple):
    """State of a robot as its sensors give it.

    Attributes
    ----------
    time : float
        When it is handed over [s].
    q : ndarray, shape (n,)
        Joint positions [rad] or [m].
    qd : ndarray, shape (n,)
        Joint velocities.
    theta : ndarray, shape (m,)
        Motor positions in joint coordinates.
    thetad : ndarray, shape (m,)
        Motor velocities.
    spring_torque : ndarray, shape (n,)
        Of torque sensors between springs and links; zero where a joint is rigid.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.simulation import ElasticPlant, SampledPlant
    >>> robot = SampledPlant(ElasticPlant(RobotModel.from_urdf('two_link'), {}))
    >>> robot.reset([0.3, 0.5])
    >>> robot.measurement.q, robot.measurement.spring_torque
    (array([0.3, 0.5]), array([0., 0.]))
    """

    time: float
    q: Array
    qd: Array
    theta: Array
    thetad: Array
    spring_torque: Array


def _fault(default: float, meaning: str, **bounds: float) -> Any:
    return field(default=default, metadata={'meaning': meaning, **bounds})


@dataclass(frozen=True)
class Sensors:
    """Faults of the sensors; without arguments they are perfect.

    Noise is white, and comes after every reset from the same seed. Positions are rounded to the
    steps of the encoders, noise included.

    Attributes
    ----------
    position_noise, motor_position_noise : float
        Standard deviation on q and theta [rad] or [m].
    velocity_noise, motor_velocity_noise : float
        The same on their velocities [rad/s] or [m/s].
    resolution, motor_resolution : float
        Step of the encoders of q and theta [rad] or [m]; 0: none.
    torque_noise : float
        Standard deviation on the torque of the springs [N m] or [N].
    delay : int
        By how many samples a measurement is older than its time says.
    seed : int
        Of the noise.
    velocity_filter : float
        Time constant of a low pass [s]. Unless it is zero, velocities are not measured: they are
        differences of the measured positions behind this low pass.

    Raises
    ------
    SimulationError
        If a value is negative or not finite, or the delay is no whole number.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.simulation import ElasticPlant, SampledPlant, Sensors
    >>> plant = ElasticPlant(RobotModel.from_urdf('two_link'), {})
    >>> robot = SampledPlant(plant, sensors=Sensors(resolution=0.001))
    >>> robot.reset([0.30049, 0.5])
    >>> robot.measurement.q.round(6)
    array([0.3, 0.5])
    """

    position_noise: float = _fault(0.0, 'Standard deviation of q [rad, m]')
    velocity_noise: float = _fault(0.0, 'Standard deviation of dq/dt [rad/s, m/s]')
    motor_position_noise: float = _fault(0.0, 'Standard deviation of theta [rad, m]')
    motor_velocity_noise: float = _fault(
        0.0, 'Standard deviation of dtheta/dt [rad/s, m/s]'
    )
    resolution: float = _fault(0.0, 'Step of the encoders of q [rad, m]; 0: none')
    motor_resolution: float = _fault(0.0, 'Step of the encoders of theta [rad, m]; 0: none')
    delay: int = _fault(
        0, 'Samples by which measurements are older than stamped', most=1000
    )
    seed: int = _fault(0, 'Of the noise')
    velocity_filter: float = _fault(
        0.0,
        'Time constant of a low pass [s], behind which differences of the measured positions take '
        'the place of velocities; 0: they are measured',
    )
    torque_noise: float = _fault(
        0.0, 'Standard deviation of the torque of the springs [N m, N]'
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            value, is_whole = getattr(self, item.name), item.name in ('delay', 'seed')
            checked_number(item.name, value, SimulationError, least=0, whole=is_whole)


class SampledPlant:
    """A plant that is measured and commanded once in a period.

    Parameters
    ----------
    plant : ElasticPlant
    period : float
        Between two samples [s], a multiple of the plant's time step.
    sensors : Sensors, optional
        By default perfect ones.
    command_delay : int
        After how many samples a command takes effect; until then the torques of the reset hold.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.simulation import ElasticPlant, SampledPlant
    >>> plant = ElasticPlant(RobotModel.from_urdf('two_link'), {})
    >>> robot = SampledPlant(plant, period=0.001)
    >>> robot.reset([0.3, 0.5])
    >>> for _ in range(10):
    ...     measured = robot.advance(plant.weight(robot.measurement.q))
    >>> round(measured.time, 3), measured.q.round(6)
    (0.01, array([0.3, 0.5]))
    """

    def __init__(
        self,
        plant: ElasticPlant,
        period: float = 1e-3,
        sensors: Sensors | None = None,
        command_delay: int = 0,
    ) -> None:
        checked_number('command_delay', command_delay, SimulationError, least=0, whole=True)
        ratio = period / plant.time_step if np.isfinite(period) else np.nan
        steps = round(ratio) if ratio > 0.0 else 0
        if steps < 1 or abs(ratio - steps) > _ROUNDING * steps:
            raise SimulationError(
                f'The period is {period} s, expected a multiple of the time step '
                f'{plant.time_step} s.'
            )
        self.plant = plant
        self.period: float = steps * plant.time_step
        self.sensors: Sensors = sensors or Sensors()
        self.command_delay: int = int(command_delay)
        self._steps = steps
        self.reset(plant.q, plant.qd, plant.theta, plant.thetad, plant.time)

    def reset(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        theta: ArrayLike | None = None,
        thetad: ArrayLike | None = None,
        time: float = 0.0,
        torque: ArrayLike | None = None,
        stiffness: Mapping[str, float] | None = None,
    ) -> None:
        """Put the robot into a state, see `ElasticPlant.reset`, and forget what was before.

        The torque (m,) [N m] holds until the first command takes effect; zero by default.
        """
        self.plant.reset(q, qd, theta, thetad, time, stiffness)
        self._start, self._count = time, 0
        self._random = np.random.default_rng(self.sensors.seed)
        held = np.zeros(len(self.plant.motor_names)) if torque is None else torque
        held = self.plant.checked_torque(held)
        self._commands = deque([held] * self.command_delay)
        self._taken: deque[Measurement] = deque()
        self._take()

    @property
    def count(self) -> int:
        """Number of the present sample; its time is that of the reset + count * period."""
        return self._count

    @property
    def measurement(self) -> Measurement:
        """What is measured at the present sample; asking again gives the same."""
        return self._taken[0]._replace(time=self._start + self._count * self.period)

    def advance(self, torque: ArrayLike) -> Measurement:
        """Command motor torques (m,) [N m] and let one period pass; return the next sample.

        Raises
        ------
        SimulationError, DeflectionError
            See `ElasticPlant.step`.
        """
        # Refused here, it takes no place in the queue.
        self._commands.append(self.plant.checked_torque(torque))
        self.plant.step(self._commands.popleft(), self._steps)
        self._count += 1
        self._take()
        return self.measurement

    def _take(self) -> None:
        plant, sensors, draw = self.plant, self.sensors, self._random.standard_normal
        # All noise is drawn, be it used or not, so that one kind does not change another.
        link, motor = (draw((2, len(x))) for x in (plant.joint_names, plant.motor_names))
        q = plant.q + sensors.position_noise * link[0]
        qd = plant.qd + sensors.velocity_noise * link[1]
        theta = plant.theta + sensors.motor_position_noise * motor[0]
        thetad = plant.thetad + sensors.motor_velocity_noise * motor[1]
        torque = plant.spring_torque + sensors.torque_noise * draw(len(link[0]))
        q, theta = (
            np.round(x / step) * step if step else x
            for x, step in ((q, sensors.resolution), (theta, sensors.motor_resolution))
        )
        if sensors.velocity_filter and self._count:
            share, last = -np.expm1(-self.period / sensors.velocity_filter), self._taken[-1]
            qd = last.qd + share * ((q - last.q) / self.period - last.qd)
            thetad = last.thetad + share * (
                (theta - last.theta) / self.period - last.thetad
            )
        self._taken.append(Measurement(plant.time, q, qd, theta, thetad, torque))
        # Before the first samples nothing has moved.
        while len(self._taken) <= sensors.delay:
            self._taken.append(self._taken[0])
        while len(self._taken) > sensors.delay + 1:
            self._taken.popleft()
