"""Limits of joint motion and effort, and where a motion exceeds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import ModelError
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Quantities that a URDF cannot limit.
EXTRA_QUANTITIES = ('acceleration', 'jerk', 'effort_dot')

# A value that reaches its limit by rounding alone does not exceed it.
_ROUNDING = 1e-9


class MotionLimits(NamedTuple):
    """Limits of the n joints in model order, each of shape (n,); infinite where there is none."""

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
    """[N m] or [N]"""
    effort_dot: Array
    """[N m/s] or [N/s]"""


class Violation(NamedTuple):
    """The worst sample of one joint quantity that exceeds its limit."""

    quantity: str
    joint_name: str
    value: float
    limit: float
    """The limit that is exceeded, with its sign."""
    sample: int
    """Index of the sample."""


class LimitCheck:
    """Counts which of the same limits the samples of a stream exceed, as quickly as may be.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    """

    def __init__(self, model: RobotModel, limits: MotionLimits) -> None:
        self._quantities, *bounds = zip(*_ranges(limits))
        lower, upper = np.array(bounds)
        slack = _slack(upper)
        self._lower, self._upper = lower - slack, upper + slack
        self._names = model.joint_names
        self._hits = np.zeros(upper.shape, dtype=np.int64)

    def look(self, motion: Array, effort: Array) -> bool:
        """Count what a motion (K, n) with efforts (K-2, n) exceeds; return whether that is any."""
        values = np.concatenate((motion[:3], effort[:1], motion[3:4], effort[1:2]))
        K = len(values)
        is_outside = (values < self._lower[:K]) | (values > self._upper[:K])
        if not is_outside.any():
            return False
        self._hits[:K] += is_outside
        return True

    def take_hits(self) -> dict[str, int]:
        """How many samples have exceeded each limit since the last call, in words."""
        hits = {
            f'{self._quantities[k]} of {self._names[joint]}': int(self._hits[k, joint])
            for k, joint in np.argwhere(self._hits)
        }
        self._hits[:] = 0
        return hits


def _ranges(limits: MotionLimits) -> Iterator[tuple[str, Array, Array]]:
    """Quantities with their lowest and highest values, by the orders that they need."""
    yield 'position', limits.lower, limits.upper
    for quantity in ('velocity', 'acceleration', 'effort', 'jerk', 'effort_dot'):
        limit = getattr(limits, quantity)
        yield quantity, -limit, limit


def motion_limits(
    model: RobotModel, extra: Mapping[str, Mapping[str, float]] | None = None
) -> MotionLimits:
    """Limits of the model together with those that its description cannot hold.

    Parameters
    ----------
    model : RobotModel
    extra : mapping of joint name to mapping of quantity to limit, optional
        Quantities are acceleration, jerk and effort_dot. Joints that the model does not have are
        ignored, so that one set of limits serves a robot with and without its gripper.

    Returns
    -------
    MotionLimits

    Raises
    ------
    ModelError
        If a quantity is unknown or a limit is not a positive number.
    """
    columns = {name: np.full(model.n_joints, np.inf) for name in EXTRA_QUANTITIES}
    for joint, quantities in (extra or {}).items():
        for quantity, limit in quantities.items():
            if quantity not in columns:
                raise ModelError(
                    f'limits.{joint}.{quantity} is unknown; expected one of '
                    f'{", ".join(EXTRA_QUANTITIES)} (the other limits come from the URDF).'
                )
            if not limit > 0.0:
                raise ModelError(f'limits.{joint}.{quantity} is {limit}, expected more than zero.')
            if joint in model.joint_names:
                columns[quantity][model.joint_names.index(joint)] = limit
    return MotionLimits(
        model.limits.lower,
        model.limits.upper,
        model.limits.velocity,
        columns['acceleration'],
        columns['jerk'],
        model.limits.effort,
        columns['effort_dot'],
    )


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
    motion, effort = np.asarray(motion, dtype=np.float64), np.asarray(effort, dtype=np.float64)
    series = [*np.moveaxis(motion[:, :3], 1, 0), effort[:, 0]]
    if motion.shape[1] > 3:
        series += [motion[:, 3], effort[:, 1]]
    return tuple(
        violation
        for (quantity, lower, upper), values in zip(_ranges(limits), series)
        for violation in _worst(model, quantity, values, lower, upper)
    )


def find_position_violations(
    model: RobotModel, limits: MotionLimits, positions: ArrayLike
) -> tuple[Violation, ...]:
    """Find the worst of some positions of every joint that leaves its range.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    positions : array-like, shape (N, n)
        Such as the extreme ones of a motion.

    Returns
    -------
    tuple of Violation
    """
    values = np.asarray(positions, dtype=np.float64)
    return tuple(_worst(model, 'position', values, limits.lower, limits.upper))


def _worst(
    model: RobotModel, quantity: str, values: Array, lower: Array, upper: Array
) -> Iterator[Violation]:
    """Worst of the values (N, n) of every joint that exceeds its limit."""
    excess = np.maximum(values - upper, lower - values)
    slack = _slack(upper)
    for j in np.flatnonzero((excess > slack).any(axis=0)):
        sample = int(excess[:, j].argmax())
        value = float(values[sample, j])
        limit = float(upper[j] if value > upper[j] else lower[j])
        yield Violation(quantity, model.joint_names[j], value, limit, sample)


def _slack(upper: Array) -> Array:
    """Excess up to which a value only seems to exceed its limit."""
    slack: Array = _ROUNDING * (np.abs(np.where(np.isfinite(upper), upper, 0.0)) + 1.0)
    return slack
