"""What must hold while a robot is controlled: bounds of references and of the measured state."""

from __future__ import annotations

import numpy as np

from hodyn_ros.control.guards import AT_REST, Bounds
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import MotionError
from hodyn_ros.lie.jets import Jet, compose
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import LimitCheck, find_violations
from hodyn_ros.trajectory.motion import PiecewiseMotion
from hodyn_ros.trajectory.spline import stop_motion
from hodyn_ros.typing import Array

# A stop takes at least this share of stop_duration, however little room there is.
_SHORTEST_STOP = 0.1


class SlowedMotion:
    """Motion that is brought to rest along its path.

    The time along it follows `stop_motion`, all derivatives by Faa di Bruno's formula.

    Parameters
    ----------
    motion : PiecewiseMotion
    begin : float
        Time of the motion from which on it slows down [s].
    duration : float
        In which it comes to rest [s].

    Attributes
    ----------
    start_time, end_time : float
        Of the slowed motion, whose time is zero at `begin` [s].
    """

    def __init__(self, motion: PiecewiseMotion, begin: float, duration: float) -> None:
        self._motion, self._ends = motion, (motion.start_time, motion.end_time)
        self._time = stop_motion([[begin], [1.0], [0.0], [0.0], [0.0]], duration)
        self.start_time, self.end_time = self._time.start_time, self._time.end_time

    def __call__(self, time: float) -> Array:
        """Position to snap (5, n) at a time [s].

        Where the motion ends before it is slowed down, it stays at its end.
        """
        pace = self._time(time)[:, 0]
        if pace[0] > self._ends[1]:
            pace[:] = self._ends[1], 0.0, 0.0, 0.0, 0.0
        return compose(Jet(self._motion(pace[0])), Jet(pace)).array(0)


class Guard:
    """Bounds of references and of the measured state, and the motion that stops the robot.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    max_tracking_error : ndarray, shape (n,)
        Largest distance from the reference [rad] or [m].
    max_external_torque : ndarray, shape (n,)
        Largest torque on the links that the model lacks [N m] or [N].
    position_margin : float
        How far beyond a limit of its position a joint may be [rad, m].
    velocity_margin : float
        Share of its limit by which the speed of a joint may exceed it.
    stop_duration : float
        Longest time in which the robot is stopped [s].
    allow_limit_violations : bool
        References may exceed the limits.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        max_tracking_error: Array,
        max_external_torque: Array,
        *,
        position_margin: float,
        velocity_margin: float,
        stop_duration: float,
        allow_limit_violations: bool = False,
    ) -> None:
        self.model, self._limits, self.max_error = model, limits, max_tracking_error
        self._check = None if allow_limit_violations else LimitCheck(model, limits)
        self._stop_duration = stop_duration
        speed = (1.0 + velocity_margin) * limits.velocity
        bounds = speed, max_tracking_error, max_external_torque
        self._bounds = Bounds(
            model.joint_names,
            np.vstack((limits.lower - position_margin, *(-np.array(bounds)))),
            np.vstack((limits.upper + position_margin, *bounds)),
        )

    def check_reference(self, motion: Array) -> None:
        """Refusal of a reference that exceeds limits, unless it may.

        Parameters
        ----------
        motion : ndarray, shape (K, n), K >= 3
            Positions, velocities and accelerations are looked at, and the efforts that they need.

        Raises
        ------
        MotionError
            If a limit is exceeded; the message names the first one.
        """
        if self._check is None:
            return
        motion, model = motion[:3], self.model
        effort = inverse_dynamics(model, motion)
        if self._check.look(motion, effort):
            first = find_violations(model, self._limits, motion[None], effort[None])[0]
            raise MotionError(
                f'The reference exceeds a limit: {first.quantity} of {first.joint_name} is '
                f'{first.value:.6g}, its limit {first.limit:.6g}. allow_limit_violations has it '
                'executed all the same.'
            )

    def violation(self, state: Array, error: Array, external: Array | None = None) -> str:
        """Bound that is exceeded, in words.

        Parameters
        ----------
        state : ndarray, shape (2, n)
            Measured positions and velocities.
        error : ndarray, shape (n,)
            Distance from the reference [rad] or [m].
        external : ndarray, shape (n,), optional
            Torques on the links that the model lacks [N m] or [N].

        Returns
        -------
        str
            Empty if none is.
        """
        none = np.zeros_like(error)
        found = self._bounds.violation(
            np.vstack((state, error, none if external is None else external))
        )
        return found.text if found else ''

    def unrest(self, state: Array) -> str:
        """Why a robot that has been stopped must not move on yet.

        Parameters
        ----------
        state : ndarray, shape (2, n)
            Measured positions and velocities.

        Returns
        -------
        str
            A joint moves faster than 0.05 rad/s or m/s, or a bound is exceeded; empty if it may.
        """
        speed = np.abs(state[1])
        if not (speed <= AT_REST).all():
            j = int(speed.argmax())
            return f'{self.model.joint_names[j]} still moves at {state[1, j]:.3g}.'
        return self.violation(state, np.zeros_like(speed))

    def stopping(self, state: Array) -> PiecewiseMotion:
        """Motion from a measured state to rest.

        Parameters
        ----------
        state : ndarray, shape (2, n)
            Positions and velocities; velocities beyond their limit are taken for the limit.

        Returns
        -------
        PiecewiseMotion
            From the time zero on, within `stop_duration`, and faster, down to a tenth of it, where
            a joint would run into a limit of its position.
        """
        q, limits = state[0], self._limits
        # A velocity out of all proportion is a fault of the measurement.
        qd = np.clip(state[1], -limits.velocity, limits.velocity)
        room = np.where(qd > 0.0, limits.upper - q, q - limits.lower)
        # The way to rest is half of what it would be at constant speed.
        # One that hardly moves, such as a joint at its limit, does not hurry the others.
        moves = abs(qd) > AT_REST
        times = np.divide(2.0 * room, abs(qd), out=np.full_like(q, np.inf), where=moves)
        longest = self._stop_duration
        duration = float(np.clip(times.min(), _SHORTEST_STOP * longest, longest))
        return stop_motion(np.vstack((q, qd, np.zeros((3, len(q))))), duration)
