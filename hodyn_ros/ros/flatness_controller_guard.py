"""Bounds of what the flatness controller does, and the motion on which it stops the robot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.limits import LimitCheck, find_violations
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import MotionError
from hodyn_ros.ros.answers import Robot
from hodyn_ros.ros.flatness_controller_settings import ControlSettings
from hodyn_ros.trajectory.piecewise import Motion
from hodyn_ros.trajectory.stopping import stop_motion

Array = NDArray[np.float64]

_QUANTITIES = ('position', 'velocity', 'tracking error')
_PARAMETERS = ('position_margin', 'velocity_margin', 'max_tracking_error')

# A stop takes at least this share of stop_duration, however little room there is.
_SHORTEST = 0.1
# Speed up to which a joint that is stopped is at rest [rad/s, m/s].
_AT_REST = 0.05


class Guard:
    """Bounds of references and of the measured state.

    Parameters
    ----------
    robot : Robot
    settings : ControlSettings

    Attributes
    ----------
    max_error : ndarray, shape (n,)
        Largest tracking error [rad] or [m].

    Raises
    ------
    ControlError
        If the settings name joints that the robot does not have.
    """

    def __init__(self, robot: Robot, settings: ControlSettings) -> None:
        self._robot, self._settings = robot, settings
        self._limits = limits = robot.limits
        self._check = LimitCheck(robot.model, limits)
        self.max_error = settings.per_joint('max_tracking_errors', robot.model.joint_names)
        speed = (1.0 + settings.velocity_margin) * limits.velocity
        margin = settings.position_margin
        self._lowest = np.vstack((limits.lower - margin, -speed, -self.max_error))
        self._highest = np.vstack((limits.upper + margin, speed, self.max_error))

    def check_reference(self, motion: Array) -> None:
        """Refuse a reference (5, n) that exceeds limits, unless the settings allow it.

        Raises
        ------
        MotionError
            If it does.
        """
        if self._settings.allow_limit_violations:
            return
        motion = motion[:3]
        effort = inverse_dynamics(self._robot.model, motion)
        if self._check.look(motion, effort):
            model = self._robot.model
            first = find_violations(model, self._limits, motion[None], effort[None])[0]
            raise MotionError(
                f'The reference exceeds a limit: {first.quantity} of {first.joint_name} is '
                f'{first.value:.6g}, its limit {first.limit:.6g}. allow_limit_violations has it '
                'executed all the same.'
            )

    def violation(self, state: Array, error: Array) -> str:
        """Say which bound a measured state (2, n) exceeds; empty if it keeps to all of them.

        Parameters
        ----------
        state : ndarray, shape (2, n)
            Positions and velocities of the links.
        error : ndarray, shape (n,)
            How far they are from the reference.
        """
        values = np.vstack((state, error))
        outside = ~((values >= self._lowest) & (values <= self._highest))  # NaN is outside
        if not outside.any():
            return ''
        row, j = np.argwhere(outside)[0]
        return (
            f'The {_QUANTITIES[row]} of {self._robot.model.joint_names[j]} is '
            f'{values[row, j]:.6g}, expected {self._lowest[row, j]:.6g} to '
            f'{self._highest[row, j]:.6g} ({_PARAMETERS[row]}).'
        )

    def unrest(self, state: Array) -> str:
        """Say why a robot that has been stopped must not move on yet; empty if it may."""
        speed = np.abs(state[1])
        if not (speed <= _AT_REST).all():
            j = int(speed.argmax())
            return f'{self._robot.model.joint_names[j]} still moves at {state[1, j]:.3g}.'
        return self.violation(state, np.zeros_like(speed))

    def stopping(self, state: Array) -> Motion:
        """Motion from a measured state (2, n) to rest, within the limits if there is room."""
        q, limits = state[0], self._limits
        # A velocity out of all proportion is a fault of the measurement.
        qd = np.clip(state[1], -limits.velocity, limits.velocity)
        room = np.where(qd > 0.0, limits.upper - q, q - limits.lower)
        # The way to rest is half of what it would be at constant speed.
        # One that hardly moves, such as a joint at its limit, does not hurry the others.
        moves = abs(qd) > _AT_REST
        times = np.divide(2.0 * room, abs(qd), out=np.full_like(q, np.inf), where=moves)
        longest = self._settings.stop_duration
        duration = float(np.clip(times.min(), _SHORTEST * longest, longest))
        return stop_motion(np.vstack((q, qd, np.zeros((3, len(q))))), duration)
