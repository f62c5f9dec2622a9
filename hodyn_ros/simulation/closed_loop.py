"""A controller in closed loop with a simulated robot, and how well the robot follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.display import shown
from hodyn_ros.errors import SimulationError
from hodyn_ros.simulation.plant import ElasticPlant
from hodyn_ros.simulation.sampled import SampledPlant, Sensors
from hodyn_ros.typing import Array

Motion = Callable[[Array], Array]
"""From times (N,) to positions and their first four derivatives (N, 5, n)."""


@shown
class Tracking(NamedTuple):
    """Record of a robot that follows a motion; N samples, n joints, m motors.

    Attributes
    ----------
    times : ndarray, shape (N,)
        [s]
    desired : ndarray, shape (N, 5, n)
        Wanted joint positions and their derivatives.
    q, qd : ndarray, shape (N, n)
        True joint positions and velocities.
    theta, thetad : ndarray, shape (N, m)
        True motor positions and velocities.
    torque : ndarray, shape (N - 1, m)
        Commanded motor torques [N m]; number k is held from sample k on.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import tracking_controller
    >>> from hodyn_ros.simulation import ElasticPlant, simulate_tracking
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model, spring = RobotModel.from_urdf('two_link'), SeriesElastic(2000.0, 0.5)
    >>> drives = Actuators(model, dict.fromkeys(model.joint_names, spring))
    >>> motion = fit_spline([0.0, 0.5], [[0.0, 0.5], [0.3, 0.6]])
    >>> plant, law = ElasticPlant(model, drives), tracking_controller(drives, 0.001)
    >>> tracked = simulate_tracking(plant, law, motion, 0.1)
    >>> tracked.error.shape, tracked.torque.shape
    ((101, 2), (100, 2))
    """

    times: Array
    desired: Array
    q: Array
    qd: Array
    theta: Array
    thetad: Array
    torque: Array

    @property
    def error(self) -> Array:
        """True joint position minus the wanted one, shape (N, n) [rad] or [m]."""
        error: Array = self.q - self.desired[:, 0]
        return error

    @property
    def rms_error(self) -> float:
        """Root of the mean squared error over all samples and joints [rad] or [m]."""
        return float(np.sqrt(np.mean(self.error**2)))

    @property
    def peak_error(self) -> float:
        """Largest error of any joint [rad] or [m]."""
        return float(np.abs(self.error).max())


def simulate_tracking(
    plant: ElasticPlant,
    controller: Any,
    motion: Motion,
    duration: float,
    period: float = 1e-3,
    sensors: Sensors | None = None,
    command_delay: int = 0,
    start: Callable[[SampledPlant], None] | None = None,
    disturbance: Callable[[ElasticPlant, float], None] | None = None,
    torque_sensors: bool = False,
) -> Tracking:
    """Let a robot follow a motion in closed loop.

    Parameters
    ----------
    plant : ElasticPlant
    controller : object with a method `command`
        Such as those of `hodyn_ros.control`: from a reference (5, n) and measured q, qd, theta and
        thetad to motor torques (m,). With an attribute `lead` [s], it gets the reference of so
        much later.
    motion : callable
        From times (N,) [s] to wanted joint positions and their first four derivatives (N, 5, n).
    duration : float
        [s]
    period, sensors, command_delay
        See `SampledPlant`.
    start : callable, optional
        Puts the robot into its state at the time zero; by default on the motion, motors included,
        whose joints are rigid or series elastic then.
    disturbance : callable, optional
        Is called at every sample with the plant and the time [s], and may push it.
    torque_sensors : bool
        Whether `command` gets the measured torque of the springs as its last argument.

    Returns
    -------
    Tracking
        From the time zero to the duration, both included.

    Raises
    ------
    SimulationError
        If an argument cannot be used or the simulation diverges.
    HodynError
        Whatever the controller raises.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import tracking_controller
    >>> from hodyn_ros.simulation import ElasticPlant, simulate_tracking
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model, spring = RobotModel.from_urdf('two_link'), SeriesElastic(2000.0, 0.5)
    >>> drives = Actuators(model, dict.fromkeys(model.joint_names, spring))
    >>> motion = fit_spline([0.0, 1.0], [[0.0, 0.5], [0.3, 0.6]])
    >>> plant, law = ElasticPlant(model, drives), tracking_controller(drives, 0.001)
    >>> tracked = simulate_tracking(plant, law, motion, 1.0)
    >>> tracked.peak_error < 1e-5, tracked.q[-1].round(3)
    (True, array([0.3, 0.6]))
    """
    sampled = SampledPlant(plant, period, sensors, command_delay)
    if not (np.isfinite(duration) and duration >= sampled.period):
        raise SimulationError(f'duration is {duration} s, expected at least one period.')
    count = round(duration / sampled.period)
    lead = getattr(controller, 'lead', 0.0)
    desired = motion(sampled.period * np.arange(count) + lead)
    expected = (count, 5, plant.model.n_joints)
    if desired.shape != expected:
        raise SimulationError(
            f'The motion returns an array of shape {desired.shape}, expected {expected}: '
            'positions and their first four derivatives.'
        )
    if start is not None:
        start(sampled)
    else:
        begin = motion(np.zeros(1))[0]
        motors = motor_motion(plant.actuators, begin)
        theta, thetad = motors.position[:2]
        sampled.reset(begin[0], begin[1], theta, thetad, torque=motors.torque[0])
    states, torques, measured = [], [], sampled.measurement
    for reference in desired:
        states.append((measured.time, plant.q, plant.qd, plant.theta, plant.thetad))
        sensed = measured[1:] if torque_sensors else measured[1:5]
        torques.append(np.array(controller.command(reference, *sensed), dtype=np.float64))
        if disturbance is not None:
            disturbance(plant, measured.time)
        measured = sampled.advance(torques[-1])
    states.append((measured.time, plant.q, plant.qd, plant.theta, plant.thetad))
    times, q, qd, theta, thetad = (np.array(c, dtype=np.float64) for c in zip(*states))
    return Tracking(times, motion(times), q, qd, theta, thetad, np.array(torques))
