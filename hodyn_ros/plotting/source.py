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

# Later times are dates, of which nobody reads the first digits [s].
_LATEST_START = 1e6


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
        """Times of the samples [s], shape (N,)."""

    @property
    def motion(self) -> Array:
        """Joint positions and their derivatives, shape (N, K, n)."""

    @property
    def effort(self) -> Array:
        """Joint efforts and their derivatives, shape (N, E, n)."""

    @property
    def motors(self) -> MotorMotion | None:
        """Motion and torque of the motors, if there are any."""

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Order of the motors in the arrays."""


@dataclass(frozen=True)
class Source:
    """Results in model order, all numbers finite, with at least one sample.

    Attributes
    ----------
    name : str
    model : RobotModel
    times : ndarray, shape (N,)
        [s], from `origin` on.
    origin : float
        Zero, or the time of the first sample if that is a date and not a duration [s].
    motion : ndarray, shape (N, K, n)
    effort : ndarray, shape (N, E, n)
    motors : MotorMotion or None
    motor_names : tuple of str
    """

    name: str
    model: RobotModel
    times: Array
    origin: float
    motion: Array
    effort: Array
    motors: MotorMotion | None
    motor_names: tuple[str, ...]

    @property
    def time_label(self) -> str:
        """What stands along the axis of time."""
        return f'time after {self.origin:.3f} s [s]' if self.origin else 'time [s]'

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
        If shapes do not fit, a value is not finite, times decrease or there are no samples.
    """
    order = model.joint_order(results.joint_names)
    n = model.n_joints
    times = _finite('times', results.times)
    if times.ndim != 1 or not len(times):
        raise MotionError(f'The times have shape {times.shape}, expected (N,) with N >= 1.')
    N = len(times)
    if np.any(np.diff(times) < 0.0):
        where = int(np.argmax(np.diff(times) < 0.0))
        raise MotionError(
            f'The times decrease: {times[where]} s is followed by {times[where + 1]} s '
            f'(sample {where + 1}); sort the samples by time.'
        )
    motion = _shaped('motion', results.motion, (N, None, n))[..., order]
    effort = _shaped('effort', results.effort, (N, None, n))[..., order]
    motors, names = results.motors, tuple(results.motor_names)
    if motors is not None:
        m = len(names)
        motors = MotorMotion(
            _shaped('motor positions', motors.position, (N, None, m)),
            _shaped('motor torques', motors.torque, (N, None, m)),
            _shaped('deflections', motors.deflection, (N, None, n))[..., order],
        )
    origin = float(times[0]) if abs(times[0]) > _LATEST_START else 0.0
    return Source(results.name, model, times - origin, origin, motion, effort, motors, names)


def _finite(what: str, values: Array) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise MotionError(
            f'The {what} of the results hold {array[where]} at {where}, expected finite numbers; '
            'leave out samples that are not known.'
        )
    return array


def _shaped(what: str, values: Array, shape: tuple[int | None, ...]) -> Array:
    array = _finite(what, values)
    fits = array.ndim == len(shape) and all(
        wanted in (None, given) for given, wanted in zip(array.shape, shape)
    )
    if not fits:
        expected = ', '.join('K' if wanted is None else str(wanted) for wanted in shape)
        raise MotionError(
            f'The {what} of the results have shape {array.shape}, expected ({expected}).'
        )
    return array
