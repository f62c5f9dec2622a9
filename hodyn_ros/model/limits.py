"""Limits of joint motion and effort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.typing import Array


class Limits(NamedTuple):
    """Limits of one joint; infinite where its description gives none.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.model import Inertia, Limits, RobotModel
    >>> given = [Limits(-1.5, 1.5, velocity=2.0)]
    >>> slide = RobotModel.from_body_screws(
    ...     [[0, 0, 0, 1, 0, 0]], [np.eye(4)], limits=given, inertias=[Inertia(2.0)]
    ... )
    >>> slide.limits.velocity, slide.limits.effort
    (array([2.]), array([inf]))
    """

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
    deceleration_limit: float = np.inf
    """With which the joint can brake before the limits of its position, see `velocity_range`
    [rad/s^2] or [m/s^2]."""
    velocity_offset: float = 0.0
    """Speed by which it has to be slower than that [rad/s] or [m/s]."""

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
        if np.isinf(self.velocity_offset):
            raise ModelError(f'{owner}: velocity_offset is infinite, expected a number.')


L = TypeVar('L', bound=NamedTuple)


class _Columns(NamedTuple):
    """Columns of `MotionLimits`, whatever is given."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    effort: Array
    effort_dot: Array
    effort_ddot: Array
    deceleration_limit: Array
    velocity_offset: Array
    follower_factors: Mapping[str, float] = {}


class MotionLimits(_Columns):
    """Limits of the n joints in model order, each of shape (n,); infinite where there is none.

    A description holds all but efforts' derivatives, and before URDF 1.2 neither acceleration nor
    jerk. A `ModelError` is raised for columns that are no numbers or not of one shape.

    Attributes
    ----------
    lower, upper : ndarray
        Lowest and highest position [rad] or [m].
    velocity : ndarray
        Highest speed [rad/s] or [m/s].
    acceleration : ndarray
        [rad/s^2] or [m/s^2]
    jerk : ndarray
        [rad/s^3] or [m/s^3]
    effort : ndarray
        Highest absolute torque [N m] or force [N].
    effort_dot : ndarray
        [N m/s] or [N/s]
    effort_ddot : ndarray
        [N m/s^2] or [N/s^2]
    deceleration_limit : ndarray
        Of limits of the velocity that fall towards those of the position, see `velocity_range`
        [rad/s^2] or [m/s^2].
    velocity_offset : ndarray
        Of the same limits [rad/s] or [m/s]; of no importance where `deceleration_limit` is
        infinite.
    follower_factors : mapping of str to float
        Factors, by the quantity, of the limits that a description gives to joints that move with
        these ones; see `scaled_limits`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> limits = RobotModel.from_urdf('two_link').limits
    >>> limits.velocity, limits.effort_dot
    (array([6., 6.]), array([inf, inf]))
    >>> limits._replace(velocity=0.5 * limits.velocity, jerk=[900.0, 900.0]).velocity
    array([3., 3.])
    """

    __slots__ = ()

    def __new__(
        cls,
        lower: ArrayLike,
        upper: ArrayLike,
        velocity: ArrayLike,
        acceleration: ArrayLike,
        jerk: ArrayLike,
        effort: ArrayLike,
        effort_dot: ArrayLike,
        effort_ddot: ArrayLike,
        deceleration_limit: ArrayLike,
        velocity_offset: ArrayLike,
        follower_factors: Mapping[str, float] | None = None,
    ) -> MotionLimits:
        """Make arrays of the columns; see the class."""
        of_joints = (
            lower,
            upper,
            velocity,
            acceleration,
            jerk,
            effort,
            effort_dot,
            effort_ddot,
        )
        given = *of_joints, deceleration_limit, velocity_offset
        columns = [_column(*pair) for pair in zip(cls._fields, given)]
        for name, column in zip(cls._fields, columns):
            if column.shape != columns[0].shape:
                raise ModelError(
                    f'The limits {name} have the shape {column.shape}, those of lower '
                    f'{columns[0].shape}; expected a number for each joint, (n,).'
                )
        return tuple.__new__(cls, (*columns, follower_factors or {}))

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> MotionLimits:  # type: ignore[override]
        """Make limits of columns, also for `_replace`."""
        return cls(*iterable)


def _column(name: str, given: ArrayLike) -> Array:
    """Array of one limit of all joints."""
    try:
        column = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        column = np.array(np.nan)
    if np.isnan(column).any():
        raise ModelError(
            f'The limits {name} are {given!r}, expected numbers, infinite where there is no limit.'
        )
    return column


MAGNITUDES = MotionLimits._fields[2:-3]
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
SERIES = {
    name: (kind, order) for name, kind, order in (('position', 'motion', 0), *LIMITED)
}
"""Series and time derivative that each quantity is, positions too."""
ANGULAR = {
    'motion': 'rad',
    'effort': 'N m',
    'position': 'rad',
    'torque': 'N m',
    'deflection': 'rad',
}
"""Units of the series where joints turn."""


def scaled_limits(limits: L, factors: Mapping[str, float]) -> L:
    """Limits times factors.

    A limit of the velocity that falls towards those of the position is scaled at all positions:
    f (sqrt(2 a d) - v) = sqrt(2 f^2 a d) - f v, see `velocity_range`.

    Parameters
    ----------
    limits : Limits, MotionLimits or MotorLimits
    factors : mapping of str to float
        By the quantity, as in `LIMITED`; those of other kinds of limits are left alone.

    Returns
    -------
    Limits, MotionLimits or MotorLimits
        Of the same kind; infinite limits stay infinite. `MotionLimits` scale those of joints that
        move with their joints, too.
    """
    powers = [(name, name, 1) for name in factors]
    if 'velocity' in factors:
        powers += [
            ('deceleration_limit', 'velocity', 2),
            ('velocity_offset', 'velocity', 1),
        ]
    changed: dict[str, Any] = {
        name: factors[quantity] ** power * np.asarray(getattr(limits, name))
        for name, quantity, power in powers
        if name in limits._fields
    }
    if isinstance(limits, MotionLimits):
        known = limits.follower_factors
        both = {name: known.get(name, 1.0) * x for name, x in factors.items()}
        changed['follower_factors'] = {**known, **both}
    return limits._replace(**changed)


def velocity_range(limits: MotionLimits, positions: Array) -> tuple[Array, Array]:
    """Lowest and highest velocities at positions.

    Where a joint has a `deceleration_limit` a, the limit of its velocity falls towards those of
    its position: at a distance d from one it may approach with sqrt(2 a d) less `velocity_offset`,
    and not at all where that is negative. Source: franka::JointVelocityLimitsConfig of libfranka.

    Parameters
    ----------
    limits : MotionLimits
        Of m joints.
    positions : ndarray, shape (..., m)
        [rad] or [m]; where one is NaN, the constant limit holds.

    Returns
    -------
    lower, upper : ndarray, shape (..., m), or (m,) where no limit depends on positions
        [rad/s] or [m/s]
    """
    falls = np.flatnonzero(np.isfinite(limits.deceleration_limit))
    if not len(falls):
        return -limits.velocity, limits.velocity
    upper = np.broadcast_to(limits.velocity, positions.shape).copy()
    lower, q = -upper, positions[..., falls]
    low, high, most, slowing, offset = (
        np.asarray(column)[falls]
        for column in (
            limits.lower,
            limits.upper,
            limits.velocity,
            limits.deceleration_limit,
            limits.velocity_offset,
        )
    )
    for side, sign, room in ((lower, -1.0, q - low), (upper, 1.0, high - q)):
        fastest = np.sqrt(2.0 * slowing * np.maximum(room, 0.0)) - offset
        side[..., falls] = sign * np.fmin(most, np.maximum(fastest, 0.0))
    return lower, upper


def velocity_use(limits: MotionLimits, motion: Array) -> Array:
    """Velocities over their limits in the direction of motion, see `velocity_range`.

    Parameters
    ----------
    limits : MotionLimits
        Of m joints.
    motion : ndarray, shape (..., K, m), K >= 2

    Returns
    -------
    ndarray, shape (..., m)
        With its sign; zero for a joint at rest, infinite for one that moves and must not.
    """
    velocity = motion[..., 1, :]
    lower, upper = velocity_range(limits, motion[..., 0, :])
    return over(velocity, np.where(velocity < 0.0, -lower, upper))


def over(values: ArrayLike, limits: ArrayLike) -> Array:
    """Values over their limits, where nothing is a share of zero of any limit.

    Parameters
    ----------
    values, limits : array-like
        Limits are not negative.

    Returns
    -------
    ndarray
        Infinite where something has the limit zero.
    """
    with np.errstate(divide='ignore', invalid='ignore'):
        shares: Array = np.divide(values, limits)
    return np.where(np.equal(values, 0.0), 0.0, shares)
