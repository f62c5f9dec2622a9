"""Limits of joint motion and effort, and where a motion exceeds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError
from hodyn_ros.resources import compiled_function
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

# Quantities that a URDF cannot limit, or not before version 1.2.
EXTRA_QUANTITIES = ('acceleration', 'jerk', 'effort_dot', 'effort_ddot')

# A value that reaches its limit by rounding alone does not exceed it.
_ROUNDING = 1e-9


class Limits(NamedTuple):
    """Limits of one joint; infinite where its description gives none."""

    lower: float = -np.inf
    """Lowest position [rad] or [m]."""
    upper: float = np.inf
    """Highest position [rad] or [m]."""
    velocity: float = np.inf
    """Highest speed [rad/s] or [m/s]."""
    effort: float = np.inf
    """Highest absolute torque [N m] or force [N]."""
    acceleration: float = np.inf
    """[rad/s^2] or [m/s^2]"""
    jerk: float = np.inf
    """[rad/s^3] or [m/s^3]"""

    def check(self, owner: str) -> None:
        """Refusal of limits that contradict themselves.

        Parameters
        ----------
        owner : str
            Begins the message.

        Raises
        ------
        ModelError
            If one is NaN, the lower limit above the upper one, or another one negative.
        """
        if np.isnan(self).any():
            raise ModelError(f'{owner}: a limit is not a number.')
        if self.lower > self.upper:
            raise ModelError(
                f'{owner}: the lower limit {self.lower} lies above the upper limit {self.upper}.'
            )
        if min(self[2:]) < 0.0:
            given = ', '.join(f'{name} {getattr(self, name)}' for name in self._fields[2:])
            raise ModelError(f'{owner}: limits must not be negative: {given}.')


class MotionLimits(NamedTuple):
    """Limits of the n joints in model order, each of shape (n,); infinite where there is none.

    A description holds all but the last two, and before URDF 1.2 neither acceleration nor jerk.
    """

    lower: Array
    """Lowest position [rad] or [m]."""
    upper: Array
    """Highest position [rad] or [m]."""
    velocity: Array
    """Highest speed [rad/s] or [m/s]."""
    acceleration: Array
    """[rad/s^2] or [m/s^2]"""
    jerk: Array
    """[rad/s^3] or [m/s^3]"""
    effort: Array
    """Highest absolute torque [N m] or force [N]."""
    effort_dot: Array
    """[N m/s] or [N/s]"""
    effort_ddot: Array
    """[N m/s^2] or [N/s^2]"""


MAGNITUDES = MotionLimits._fields[2:]
"""Quantities of joints with a largest magnitude."""

LIMITED = (
    ('velocity', 'motion', 1),
    ('acceleration', 'motion', 2),
    ('jerk', 'motion', 3),
    ('effort', 'effort', 0),
    ('effort_dot', 'effort', 1),
    ('effort_ddot', 'effort', 2),
    ('motor_velocity', 'position', 1),
    ('motor_torque', 'torque', 0),
    ('motor_torque_rate', 'torque', 1),
    ('deflection', 'deflection', 0),
)
"""Limited quantities of joints and motors with the series that they are a row of."""


class Violation(NamedTuple):
    """The worst sample of one joint quantity that exceeds its limit.

    Attributes
    ----------
    quantity : str
        Such as 'position', 'velocity' or 'motor_torque', see `LIMITED`.
    joint_name : str
        Of the joint, or of the motor.
    value : float
        In the unit of the quantity.
    limit : float
        The limit that is exceeded, with its sign.
    sample : int
        Index of the sample.
    """

    quantity: str
    joint_name: str
    value: float
    limit: float
    sample: int


class LimitedJoints:
    """Joints of a robot whose motion has limits: its own, then those that closed loops move.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of the n joints of the model; the others have those of its description.

    Attributes
    ----------
    names : tuple of str
        Of the m >= n joints. Joints that loops move are among them if their position, velocity,
        acceleration or jerk has a limit.
    limits : MotionLimits
        Each of shape (m,).
    moved : list of int
        Those that loops move, joints of the tree.
    """

    def __init__(self, model: RobotModel, limits: MotionLimits) -> None:
        self._model, self.names, self.limits = model, model.joint_names, limits
        self.moved: list[int] = []
        if model.closure is not None:
            tree = model.closure.tree
            is_known = np.isfinite(tree.limits[:5])
            self.moved = [j for j in model.closure.dependent if is_known[:, j].any()]
            self.names += tuple(tree.joint_names[j] for j in self.moved)
            self.limits = MotionLimits(
                *(np.append(a, b[self.moved]) for a, b in zip(limits, tree.limits))
            )

    def motion(self, motion: Array) -> Array:
        """Motion of all m joints.

        Parameters
        ----------
        motion : ndarray, shape (..., K, n)
            NaN where it is not known.

        Returns
        -------
        ndarray, shape (..., K, m)
            NaN where it does not follow.

        Raises
        ------
        MotionError
            As `hodyn_ros.kinematics.complete_motion`.
        """
        if not self.moved:
            return motion
        # Kinematics builds on models, not they on it: it is loaded when it is asked for.
        from hodyn_ros.kinematics.closed_loops import complete_motion

        # A derivative follows from all of the same order and below.
        is_known = np.isfinite(motion).all(axis=-1, keepdims=True)
        is_known = np.logical_and.accumulate(is_known, axis=-2)
        whole = complete_motion(self._model, np.where(is_known, motion, 0.0))
        moved = np.where(is_known, whole[..., self.moved], np.nan)
        return np.append(motion, moved, axis=-1)


class LimitCheck:
    """Count of the samples of a stream that exceed the same limits, as quickly as may be.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of its joints; see `LimitedJoints` for others. A value that exceeds its limit by rounding
        alone does not count.
    """

    def __init__(self, model: RobotModel, limits: MotionLimits) -> None:
        joints = LimitedJoints(model, limits)
        self._quantities, *bounds = zip(*_ranges(joints.limits))
        lower, upper = np.array(bounds)
        slack = _slack(upper)
        self._names, self._hits = joints.names, np.zeros(upper.shape, dtype=np.int64)
        count = partial(compiled_count(), lower - slack, upper + slack, self._hits)
        self.look: Callable[[Array, Array], bool] = count
        """Counts what a motion (K, n) with efforts (K-2, n) exceeds; returns whether it is any."""
        if joints.moved:
            self.look = lambda motion, effort: count(joints.motion(motion), effort)

    def take_hits(self) -> dict[str, int]:
        """Samples that have exceeded each limit since the last call.

        Returns
        -------
        dict of str to int
            Numbers by texts such as 'velocity of joint1'; limits that are kept are not in it.
        """
        hits = {
            f'{self._quantities[k]} of {self._names[joint]}': int(self._hits[k, joint])
            for k, joint in np.argwhere(self._hits)
        }
        self._hits[:] = 0
        return hits


@cache
def compiled_count() -> Callable[..., bool]:
    """Machine code of `_count_hits`, or itself without a compiler; takes long the first time."""
    given, bounds = 'Array(float64, 2, "A", True)', 'float64[:, ::1]'
    signature = f'boolean({bounds}, {bounds}, int64[:, ::1], {given}, {given})'
    with suppress(Exception):  # a broken installation raises all sorts
        return compiled_function(_count_hits, signature)
    return _count_hits


def _count_hits(
    lower: Array, upper: Array, hits: NDArray[np.int64], motion: Array, effort: Array
) -> bool:
    """Count of the values outside of bounds; says whether there are any. Compiled by Numba.

    Parameters
    ----------
    lower, upper : ndarray, shape (7, m)
        Rows as of `_ranges`.
    hits : ndarray of int, shape (7, m)
        Counts that are increased.
    motion : ndarray, shape (K, m)
    effort : ndarray, shape (K-2, n), n <= m
    """
    found = False
    for k in range(4 if len(motion) == 3 else min(len(motion) + 2, 7)):
        values = effort[max(k - 4, 0)] if k == 3 or k > 4 else motion[min(k, 3)]
        for j in range(len(values)):
            if values[j] < lower[k, j] or values[j] > upper[k, j]:
                hits[k, j] += 1
                found = True
    return found


def _ranges(limits: MotionLimits) -> Iterator[tuple[str, Array, Array]]:
    """Quantities with their lowest and highest values, by the orders that they need."""
    yield 'position', limits.lower, limits.upper
    for quantity in (
        'velocity',
        'acceleration',
        'effort',
        'jerk',
        'effort_dot',
        'effort_ddot',
    ):
        limit = getattr(limits, quantity)
        yield quantity, -limit, limit


def motion_limits(
    model: RobotModel, extra: Mapping[str, Mapping[str, float]] | None = None
) -> MotionLimits:
    """Limits of the model together with those that its description does not hold.

    Parameters
    ----------
    model : RobotModel
    extra : mapping of joint name to mapping of quantity to limit, optional
        Quantities are acceleration, jerk, effort_dot and effort_ddot, in place of those of the
        description; an infinite one counts as not given. Joints that the model does not have are
        ignored, so that one set of limits serves a robot with and without its gripper.

    Raises
    ------
    ModelError
        If a quantity is unknown or a limit is not a positive number.

    Returns
    -------
    MotionLimits
        Of the model's joints, in its order.
    """
    columns = {name: getattr(model.limits, name).copy() for name in EXTRA_QUANTITIES}
    for joint, quantities in (extra or {}).items():
        for quantity, limit in quantities.items():
            what = f'limits.{joint}.{quantity}'
            if quantity not in columns:
                raise ModelError(
                    f'{what} is unknown; expected one of {", ".join(EXTRA_QUANTITIES)} (the other '
                    'limits come from the URDF).'
                )
            limit = checked_number(what, limit, ModelError, above=0.0, infinite=True)
            if joint in model.joint_names and limit < np.inf:
                columns[quantity][model.joint_names.index(joint)] = limit
    return model.limits._replace(**columns)


def find_violations(
    model: RobotModel, limits: MotionLimits, motion: ArrayLike, effort: ArrayLike
) -> tuple[Violation, ...]:
    """Find the worst sample of every joint and quantity that exceeds its limit.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of its joints. Those that closed loops move have to keep the limits of the description.
    motion : array-like, shape (N, K, n)
    effort : array-like, shape (N, K-2, n)
        Of the same motion. What is NaN in either exceeds nothing.

    Returns
    -------
    tuple of Violation
        Ordered by quantity, then by joint; empty where all limits are kept.

    Raises
    ------
    MotionError
        If closed loops cannot be followed along the motion.
    """
    motion, effort = (
        np.asarray(motion, dtype=np.float64),
        np.asarray(effort, dtype=np.float64),
    )
    return find_violations_in_blocks(model, limits, [(motion, effort)])


def find_violations_in_blocks(
    model: RobotModel, limits: MotionLimits, blocks: Iterable[tuple[Array, Array]]
) -> tuple[Violation, ...]:
    """Worst samples of `find_violations`, of a motion that comes in blocks.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    blocks : iterable of (ndarray, ndarray)
        Motions (..., K, n) and efforts (..., K-2, n). Samples are counted through all blocks.
    """
    joints = LimitedJoints(model, limits)

    def values() -> Iterator[Array]:
        for q, Q in blocks:
            if joints.moved:  # by no effort of their own
                q = joints.motion(q)
                Q = np.append(Q, np.zeros_like(q[..., 2:, model.n_joints :]), axis=-1)
            yield np.concatenate(
                (q[..., :3, :], Q[..., :1, :], q[..., 3:4, :], Q[..., 1:3, :]), axis=-2
            )

    return _worst(joints.names, _ranges(joints.limits), values())


def find_position_violations(
    model: RobotModel, limits: MotionLimits, positions: ArrayLike
) -> tuple[Violation, ...]:
    """Worst of some positions, such as extreme ones, of every joint that is out of its range.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of its joints. Those that closed loops move have to keep the limits of the description.
    positions : array-like, shape (N, n)
        [rad] or [m]; with closed loops those of all joints at once.

    Raises
    ------
    MotionError
        If closed loops do not reach a position.
    """
    joints = LimitedJoints(model, limits)
    values = joints.motion(np.asarray(positions, dtype=np.float64)[:, None])[:, 0]
    return worst_violations('position', joints.names, values, *joints.limits[:2])


def worst_violations(
    quantity: str, names: Sequence[str], values: Array, lower: Array, upper: Array
) -> tuple[Violation, ...]:
    """Worst of the values in every column that exceeds its limits.

    Parameters
    ----------
    quantity : str
        Name for the result.
    names : sequence of str
        Of the n columns, such as joints.
    values : ndarray, shape (N, n)
    lower, upper : ndarray, shape (n,)

    Returns
    -------
    tuple of Violation
    """
    return _worst(names, [(quantity, lower, upper)], [values[:, None]])


def _worst(
    names: Sequence[str],
    ranges: Iterable[tuple[str, Array, Array]],
    blocks: Iterable[Array],
) -> tuple[Violation, ...]:
    """Worst of the values of each quantity and joint, in all blocks together.

    Parameters
    ----------
    names : sequence of str
        Of the n joints.
    ranges : iterable of (str, ndarray, ndarray)
        Quantities with lowest and highest values (n,).
    blocks : iterable of ndarray, shape (..., K, n)
        Values of the first K quantities; NaN exceeds nothing.
    """
    quantities, *bounds = zip(*ranges)
    lower, upper = np.array(bounds)
    first, largest = 0, _slack(upper)  # excess of the worst sample so far
    found = {}
    for values in blocks:
        highest = lowest = values
        while highest.ndim > 2:
            highest = np.fmax.reduce(highest, axis=0, initial=-np.inf)
            lowest = np.fmin.reduce(lowest, axis=0, initial=np.inf)
        K, n = highest.shape
        excess = np.maximum(highest - upper[:K], lower[:K] - lowest)
        for k, j in np.argwhere(excess > largest[:K]).tolist():
            is_above = highest[k, j] - upper[k, j] == excess[k, j]
            worst, limit = (highest, upper) if is_above else (lowest, lower)
            value, largest[k, j] = float(worst[k, j]), excess[k, j]
            sample = first + int((values[..., k, j].ravel() == value).argmax())
            found[k, j] = Violation(
                quantities[k], names[j], value, float(limit[k, j]), sample
            )
        first += values.size // (K * n)
    return tuple(found[key] for key in sorted(found))


def _slack(upper: Array) -> Array:
    """Excess up to which a value only seems to exceed its limit."""
    slack: Array = _ROUNDING * (np.abs(np.where(np.isfinite(upper), upper, 0.0)) + 1.0)
    return slack
