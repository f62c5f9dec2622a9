"""What a controller sees of a robot: samples with noise, rounding and delay, and held commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

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
    """

    time: float
    q: Array
    qd: Array
    theta: Array
    thetad: Array
    spring_torque: Array


@dataclass(frozen=True)
class Sensors:
    """Faults of the sensors; without arguments they are perfect.

    Attributes
    ----------
    position_noise, motor_position_noise : float
        Standard deviation of white noise on q and theta [rad] or [m].
    velocity_noise, motor_velocity_noise : float
        The same for their velocities [rad/s] or [m/s].
    resolution, motor_resolution : float
        Step of the encoders of q and theta [rad] or [m]; 0: none. Positions are rounded to it,
        noise included.
    torque_noise : float
        Standard deviation of white noise on the torque of the springs [N m] or [N].
    delay : int
        By how many samples a measurement is older than its time says.
    seed : int
        Of the noise, which is the same after every reset.
    velocity_filter : float
        Time constant of a low pass [s]. Unless it is zero, velocities are not measured: they are
        differences of the measured positions behind this low pass.

    Raises
    ------
    SimulationError
        If a value is negative or not finite, or the delay is no whole number.
    """

    position_noise: float = 0.0
    velocity_noise: float = 0.0
    motor_position_noise: float = 0.0
    motor_velocity_noise: float = 0.0
    resolution: float = 0.0
    motor_resolution: float = 0.0
    delay: int = 0
    seed: int = 0
    velocity_filter: float = 0.0
    torque_noise: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, is_whole = getattr(self, field.name), field.name in ('delay', 'seed')
            checked_number(field.name, value, SimulationError, least=0, whole=is_whole)


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
        self.period = steps * plant.time_step
        self.sensors = sensors or Sensors()
        self.command_delay = int(command_delay)
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
        sensors, plant = self.sensors, self.plant
        # All noise is drawn, be it used or not, so that one kind does not change another.
        link = self._random.standard_normal((2, len(plant.joint_names)))
        motor = self._random.standard_normal((2, len(plant.motor_names)))
        torque = self._random.standard_normal(len(plant.joint_names))
        position = [
            _rounded(plant.q + sensors.position_noise * link[0], sensors.resolution),
            _rounded(
                plant.theta + sensors.motor_position_noise * motor[0],
                sensors.motor_resolution,
            ),
        ]
        velocity = [
            plant.qd + sensors.velocity_noise * link[1],
            plant.thetad + sensors.motor_velocity_noise * motor[1],
        ]
        if sensors.velocity_filter and self._count:
            share = -np.expm1(-self.period / sensors.velocity_filter)
            _, q, qd, theta, thetad, _ = self._taken[-1]
            for i, (old, rate) in enumerate(((q, qd), (theta, thetad))):
                velocity[i] = rate + share * ((position[i] - old) / self.period - rate)
        measured = Measurement(
            plant.time,
            position[0],
            velocity[0],
            position[1],
            velocity[1],
            plant.spring_torque + sensors.torque_noise * torque,
        )
        self._taken.append(measured)
        # Before the first samples nothing has moved.
        while len(self._taken) <= sensors.delay:
            self._taken.append(measured)
        while len(self._taken) > sensors.delay + 1:
            self._taken.popleft()


def _rounded(position: Array, resolution: float) -> Array:
    if resolution == 0.0:
        return position
    rounded: Array = np.round(position / resolution) * resolution
    return rounded
