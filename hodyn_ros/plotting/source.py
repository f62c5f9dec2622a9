"""What is drawn: results of a motion, checked and brought into the order of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.robot import MotorMotion
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

Array = NDArray[np.float64]


class Results(Protocol):
    """What the pictures need of a motion with its efforts; `hodyn_ros.io.Results` has it."""

    @property
    def name(self) -> str:
        """Where the motion comes from, for titles."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Order of the joints in the arrays."""

    @property
    def times(self) -> Array:
        """Times of the samples [s], counted from `start`, shape (N,)."""

    @property
    def start(self) -> int:
        """Instant at which the times are zero [ns since 1970]; 0 if that is not known."""

    @property
    def motion(self) -> Array:
        """Joint positions and their derivatives, shape (N, K, n); NaN where not known."""

    @property
    def effort(self) -> Array:
        """Joint efforts and their derivatives, shape (N, E, n); NaN where not known."""

    @property
    def motors(self) -> MotorMotion | None:
        """Motion and torque of the motors, if there are any."""

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Order of the motors in the arrays."""

    @property
    def motor_joints(self) -> tuple[str, ...]:
        """The joint that each of them moves."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What one should know about the motion."""


@dataclass(frozen=True)
class Source:
    """Results in model order, with at least one sample, without orders that are not known at all.

    Attributes
    ----------
    name : str
    model : RobotModel
    times : ndarray, shape (N,)
        [s]
    start : int
        See `Results`.
    motion : ndarray, shape (N, K, n)
        Positions are finite, what is not known of the others is NaN.
    effort : ndarray, shape (N, E, n)
    motors : MotorMotion or None
    motor_names, motor_joints, remarks : tuple of str
        See `Results`.
    has_jumps : bool
        Whether the efforts jump, so that their rate has no bound.
    """

    name: str
    model: RobotModel
    times: Array
    start: int
    motion: Array
    effort: Array
    motors: MotorMotion | None
    motor_names: tuple[str, ...]
    motor_joints: tuple[str, ...]
    remarks: tuple[str, ...]
    has_jumps: bool = False

    def joint_of(self, name: str) -> int | None:
        """Index of the joint of this name, or of the one that the motor of this name moves."""
        if name in self.motor_names and name not in self.model.joint_names:
            name = self.motor_joints[self.motor_names.index(name)]
        return self.model.joint_names.index(name) if name in self.model.joint_names else None

    def moves_linearly(self, name: str) -> bool:
        """Whether the joint or motor of this name moves in metres."""
        joint = self.joint_of(name)
        return joint is not None and self.is_linear(joint)

    def is_linear(self, joint: int) -> bool:
        """Whether a joint moves in metres."""
        return self.model.joint_types[joint] == 'prismatic'

    def joint(self, name: str) -> int:
        """Index of a joint.

        Raises
        ------
        JointNameError
            If the model has no such joint.
        """
        if name not in self.model.joint_names:
            raise JointNameError(
                f'Joint {name!r} is unknown; the joints are {listed(self.model.joint_names)}.'
            )
        return self.model.joint_names.index(name)


def checked_source(results: Results, model: RobotModel) -> Source:
    """Check results and bring them into model order.

    Parameters
    ----------
    results : Results
    model : RobotModel

    Returns
    -------
    Source

    Raises
    ------
    JointNameError
        If the joints are not those of the model.
    MotionError
        If shapes do not fit, a time or position is not finite, a value is infinite, times
        decrease or there are no samples.
    """
    order = model.joint_order(results.joint_names)
    n = model.n_joints
    times = np.asarray(results.times, dtype=np.float64)
    if times.ndim != 1 or not len(times):
        raise MotionError(f'The times have shape {times.shape}, expected (N,) with N >= 1.')
    _refuse(~np.isfinite(times), times, 'times')
    N = len(times)
    if np.any(np.diff(times) < 0.0):
        where = int(np.argmax(np.diff(times) < 0.0))
        raise MotionError(
            f'The times decrease: {times[where]} s is followed by {times[where + 1]} s '
            f'(sample {where + 1}); sort the samples by time.'
        )
    motion = _orders('motion', results.motion, N, n)[..., order]
    if motion.shape[1] == 0:
        raise MotionError('The results hold no positions.')
    _refuse(np.isnan(motion[:, 0]), motion[:, 0], 'positions')
    effort = _orders('effort', results.effort, N, n)[..., order]
    motors, names = results.motors, tuple(results.motor_names)
    owners = tuple(results.motor_joints)
    if motors is not None:
        m = len(names)
        motors = MotorMotion(
            _orders('motor positions', motors.position, N, m),
            _orders('motor torques', motors.torque, N, m),
            _orders('deflections', motors.deflection, N, n)[..., order],
        )
        if len(owners) != m or not set(owners) <= set(model.joint_names):
            raise JointNameError(
                f'The motors {listed(names)} are said to move {listed(owners)}, expected one '
                f'joint of the model for each: {listed(model.joint_names)}.'
            )
    else:
        names = owners = ()
    return Source(
        str(results.name), model, times, int(results.start), motion, effort, motors, names, owners,
        tuple(results.remarks), getattr(results, 'continuous_order', 0) < 0,
    )  # fmt: skip


def _orders(what: str, values: Array, N: int, n: int) -> Array:
    """Check an array (N, K, n), without the last orders if nothing of them is known."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 3 or array.shape[::2] != (N, n):
        raise MotionError(
            f'The {what} of the results have shape {array.shape}, expected ({N}, K, {n}).'
        )
    _refuse(np.isinf(array), array, what)
    known = np.flatnonzero(~np.isnan(array).all(axis=(0, 2)))
    return array[:, : known[-1] + 1 if known.size else 0]


def _refuse(is_wrong: NDArray[np.bool_], array: Array, what: str) -> None:
    if is_wrong.any():
        where = tuple(int(i) for i in np.argwhere(is_wrong)[0])
        raise MotionError(
            f'The {what} of the results hold {array[where]} at {where}, expected finite numbers.'
        )
