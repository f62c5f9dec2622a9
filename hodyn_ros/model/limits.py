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


class LimitCheck:
    """Count of the samples of a stream that exceed the same limits, as quickly as may be.

    Parameters
    ----------
    model : RobotModel
        Has the names of the joints.
    limits : MotionLimits
        A value that exceeds its limit by rounding alone does not count.
    """

    def __init__(self, model: RobotModel, limits: MotionLimits) -> None:
        self._quantities, *bounds = zip(*_ranges(limits))
        lower, upper = np.array(bounds)
        slack = _slack(upper)
        self._names, self._hits = model.joint_names, np.zeros(upper.shape, dtype=np.int64)
        self.look: Callable[[Array, Array], bool] = partial(
            compiled_count(), lower - slack, upper + slack, self._hits
        )
        """Counts what a motion (K, n) with efforts (K-2, n) exceeds; returns whether it is any."""

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
    lower, upper : ndarray, shape (7, n)
        Rows as of `_ranges`.
    hits : ndarray of int, shape (7, n)
        Counts that are increased.
    motion : ndarray, shape (K, n)
    effort : ndarray, shape (K-2, n)
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
    motion : array-like, shape (N, K, n)
    effort : array-like, shape (N, K-2, n)
        Of the same motion.

    Returns
    -------
    tuple of Violation
        Ordered by quantity, then by joint; empty where all limits are kept.
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
    values = (
        np.concatenate(
            (q[..., :3, :], Q[..., :1, :], q[..., 3:4, :], Q[..., 1:3, :]), axis=-2
        )
        for q, Q in blocks
    )
    return _worst(model.joint_names, _ranges(limits), values)


def find_position_violations(
    model: RobotModel, limits: MotionLimits, positions: ArrayLike
) -> tuple[Violation, ...]:
    """Worst of some positions, such as extreme ones, of every joint that is out of its range.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    positions : array-like, shape (N, n)
        [rad] or [m]
    """
    values = np.asarray(positions, dtype=np.float64)
    return worst_violations(
        'position', model.joint_names, values, limits.lower, limits.upper
    )


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
        Values of the first K quantities.
    """
    quantities, *bounds = zip(*ranges)
    lower, upper = np.array(bounds)
    first, largest = 0, _slack(upper)  # excess of the worst sample so far
    found = {}
    for values in blocks:
        highest = lowest = values
        while highest.ndim > 2:
            highest = highest.max(axis=0, initial=-np.inf)
            lowest = lowest.min(axis=0, initial=np.inf)
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
