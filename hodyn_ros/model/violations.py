"""Where a motion exceeds the limits of the joints, also of those that move with others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError
from hodyn_ros.model.limits import Limits, MotionLimits, velocity_range
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import listed
from hodyn_ros.resources import compiled_function
from hodyn_ros.typing import Array

# Quantities that a URDF cannot limit, or not before version 1.2.
EXTRA_QUANTITIES = ('acceleration', 'jerk', 'effort_dot', 'effort_ddot')

# A value that reaches its limit by rounding alone does not exceed it.
_ROUNDING = 1e-9


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
    """Joints of a robot whose motion has limits: its own, then those that move with them.

    Those that move with them follow them as mimic joints, or are moved by closed loops.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of the n joints of the model; the others have those of its description.

    Attributes
    ----------
    names : tuple of str
        Of the m >= n joints. Other joints are among them if their position, velocity,
        acceleration or jerk has a limit that those of the joint that they follow do not imply.
    limits : MotionLimits
        Each of shape (m,); efforts of the others have none.
    moved : list of int
        Those others, bodies of the tree.
    """

    def __init__(self, model: Mechanism, limits: MotionLimits) -> None:
        self._model, self.names, self.limits = model, model.joint_names, limits
        tree = self._tree = model.tree
        known = {**tree.follower_limits}
        if model.closure is not None:
            for j in model.closure.dependent:
                own = (float(getattr(tree.limits, what)[j]) for what in Limits._fields)
                known[tree.joint_names[j]] = Limits(*own)
        self.moved = [
            body
            for body, name in enumerate(tree.body_names)
            if name in known and not self._is_implied(body, known[name])
        ]
        if not self.moved:
            return
        others = [
            known[tree.body_names[body]]._replace(effort=np.inf) for body in self.moved
        ]
        self.names += tuple(tree.body_names[body] for body in self.moved)
        self.limits = MotionLimits(
            *(
                np.append(own, [getattr(each, what, np.inf) for each in others])
                for what, own in limits._asdict().items()
            )
        )

    def _is_implied(self, body: int, limits: Limits) -> bool:
        """Whether a joint keeps its limits wherever the joint that it follows keeps its own."""
        if not np.isfinite((*limits[:3], *limits[4:7])).any():
            return True
        if self._model.closure is not None or np.isfinite(limits.deceleration_limit):
            return False
        own, tree = self.limits, self._tree
        j, factor = tree.coordinate[body], tree.multiplier[body]
        with np.errstate(invalid='ignore'):  # zero times infinite: not known to be implied
            ends = factor * np.array([own.lower[j], own.upper[j]]) + tree.offset[body]
            most = abs(factor) * np.array(
                [own.velocity[j], own.acceleration[j], own.jerk[j]]
            )
        allowed = limits.velocity, limits.acceleration, limits.jerk
        inside = (
            limits.lower - _ROUNDING <= ends.min(),
            ends.max() <= limits.upper + _ROUNDING,
        )
        return bool(all(inside) and (most <= np.multiply(allowed, 1.0 + _ROUNDING)).all())

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
        tree, whole = self._tree, motion
        is_known: Any = True
        if self._model.closure is not None:
            # Kinematics builds on models, not they on it: it is loaded when it is asked for.
            from hodyn_ros.kinematics.closed_loops import complete_motion

            # A derivative follows from all of the same order and below.
            is_known = np.isfinite(motion).all(axis=-1, keepdims=True)
            is_known = np.logical_and.accumulate(is_known, axis=-2)
            whole = complete_motion(self._model, np.where(is_known, motion, 0.0))
        moved = whole[..., tree.coordinate[self.moved]] * tree.multiplier[self.moved]
        moved[..., 0, :] += tree.offset[self.moved]
        return np.append(motion, np.where(is_known, moved, np.nan), axis=-1)

    def beyond(self, lowest: Array, highest: Array) -> list[tuple[Violation, int]]:
        """Joints whose extreme positions are out of their range, those that loops move apart.

        Parameters
        ----------
        lowest, highest : ndarray, shape (n,)
            Extreme positions of the joints of the model, not all at once [rad] or [m].

        Returns
        -------
        list of (Violation, int)
            Its sample is 0 where the joint of the model with this index is lowest, 1 where it is
            highest.
        """
        positions, names, leaders = (
            np.stack((lowest, highest)),
            self.names,
            [*range(len(lowest))],
        )
        if self._model.closure is None:
            positions = self.motion(positions[:, None])[:, 0]
            leaders += self._tree.coordinate[self.moved].tolist()
        names, (lower, upper) = self.names[: len(leaders)], self.limits[:2]
        found = worst_violations(
            'position', names, positions, lower[: len(names)], upper[: len(names)]
        )
        return [(item, leaders[names.index(item.joint_name)]) for item in found]


def tightened(model: Mechanism, limits: MotionLimits) -> MotionLimits:
    """Limits of the joints of a tree that imply those of the joints that follow them.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits

    Returns
    -------
    MotionLimits
        Those that are given, if loops are closed or no other joint is limited. Limits of the
        velocity that depend on the position of another joint are not in them.
    """
    others = LimitedJoints(model, limits)
    if model.closure is not None or not others.moved:
        return limits
    own, n = MotionLimits(*(np.array(column) for column in limits)), model.n_joints
    for k, body in enumerate(others.moved, n):
        j, factor = model.coordinate[body], float(model.multiplier[body])
        if factor == 0.0:
            continue
        ends = [(others.limits[i][k] - model.offset[body]) / factor for i in range(2)]
        own.lower[j] = max(own.lower[j], min(ends))
        own.upper[j] = min(own.upper[j], max(ends))
        for what in ('velocity', 'acceleration', 'jerk'):
            mine, theirs = getattr(own, what), getattr(others.limits, what)
            mine[j] = min(mine[j], theirs[k] / abs(factor))
    return own


class LimitCheck:
    """Count of the samples of a stream that exceed the same limits, as quickly as may be.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of its joints; see `LimitedJoints` for others. A value that exceeds its limit by rounding
        alone does not count.
    """

    def __init__(self, model: Mechanism, limits: MotionLimits) -> None:
        joints = LimitedJoints(model, limits)
        self._quantities, *bounds = zip(*_ranges(joints.limits))
        lower, upper = np.array(bounds)
        slack = _slack(upper)
        lower, upper = lower - slack, upper + slack
        self._names, self._hits = joints.names, np.zeros(upper.shape, dtype=np.int64)
        count = partial(compiled_count(), lower, upper, self._hits)
        self.look: Callable[[Array, Array], bool] = count
        """Counts what a motion (K, n) with efforts (K-2, n) exceeds; returns whether it is any."""

        def look(motion: Array, effort: Array) -> bool:
            motion = joints.motion(motion)
            if depends:
                lower[1], upper[1] = velocity_range(joints.limits, motion[0])
                lower[1] -= slack[1]
                upper[1] += slack[1]
            return count(motion, effort)

        depends = bool(np.isfinite(joints.limits.deceleration_limit).any())
        if joints.moved or depends:
            self.look = look

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
    model: Mechanism, extra: Mapping[str, Mapping[str, float]] | None = None
) -> MotionLimits:
    """Limits of the model together with those that its description does not hold.

    Parameters
    ----------
    model : RobotModel
    extra : mapping of joint name to mapping of quantity to limit, optional
        Quantities are acceleration, jerk, effort_dot and effort_ddot, in place of those of the
        description; an infinite one counts as not given.

    Raises
    ------
    ModelError
        If a joint or quantity is unknown or a limit is not a positive number.

    Returns
    -------
    MotionLimits
        Of the model's joints, in its order.
    """
    columns = {name: getattr(model.limits, name).copy() for name in EXTRA_QUANTITIES}
    for joint, quantities in (extra or {}).items():
        if joint not in model.joint_names:
            raise ModelError(_no_joint(model, joint))
        for quantity, limit in quantities.items():
            what = f'limits.{joint}.{quantity}'
            if quantity not in columns:
                raise ModelError(
                    f'{what} is unknown; expected one of {", ".join(EXTRA_QUANTITIES)} (the other '
                    'limits come from the URDF).'
                )
            limit = checked_number(what, limit, ModelError, above=0.0, infinite=True)
            if limit < np.inf:
                columns[quantity][model.joint_names.index(joint)] = limit
    return model.limits._replace(**columns)


def _no_joint(model: Mechanism, joint: str) -> str:
    """Message on limits of what is no independent joint of a model."""
    import difflib

    if joint in model.tree.body_names:
        return (
            f'limits.{joint}: {joint} of {model.name} moves with other joints and has the limits '
            f'of the description alone; expected some of {listed(model.joint_names)}.'
        )
    close = difflib.get_close_matches(joint, model.joint_names, 1)
    return (
        f'limits.{joint}: {model.name} has no joint {joint}.'
        + (f' Is {close[0]} meant?' if close else '')
        + f' Its joints are {listed(model.joint_names)}.'
    )


def find_violations(
    model: Mechanism, limits: MotionLimits, motion: ArrayLike, effort: ArrayLike
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
    model: Mechanism, limits: MotionLimits, blocks: Iterable[tuple[Array, Array]]
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
    quantities, *bounds = zip(*_ranges(joints.limits))
    constant = tuple(np.array(bounds))

    def values() -> Iterator[tuple[Array, Array, Array]]:
        for q, Q in blocks:
            if joints.moved:  # by no effort of their own
                q = joints.motion(q)
                Q = np.append(Q, np.zeros_like(q[..., 2:, model.n_joints :]), axis=-1)
            lower, upper = constant
            if np.isfinite(joints.limits.deceleration_limit).any():
                lower, upper = (np.tile(x, (*q.shape[:-2], 1, 1)) for x in constant)
                lower[..., 1, :], upper[..., 1, :] = velocity_range(
                    joints.limits, q[..., 0, :]
                )
            found = (q[..., :3, :], Q[..., :1, :], q[..., 3:4, :], Q[..., 1:3, :])
            yield np.concatenate(found, axis=-2), lower, upper

    return _worst(joints.names, quantities, _slack(constant[1]), values())


def find_position_violations(
    model: Mechanism, limits: MotionLimits, positions: ArrayLike
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
    bounds = np.asarray(lower)[None], np.asarray(upper)[None]
    return _worst(names, (quantity,), _slack(bounds[1]), [(values[:, None], *bounds)])


def _worst(
    names: Sequence[str],
    quantities: Sequence[str],
    slack: Array,
    blocks: Iterable[tuple[Array, Array, Array]],
) -> tuple[Violation, ...]:
    """Worst of the values of each quantity and joint, in all blocks together.

    Parameters
    ----------
    names : sequence of str
        Of the n joints.
    quantities : sequence of str
        Of the Q quantities.
    slack : ndarray, shape (Q, n)
        Excess that is rounding.
    blocks : iterable of (ndarray, ndarray, ndarray), shape (..., K, n)
        Values of the first K quantities, NaN exceeds nothing; and of all quantities the lowest
        and highest values, for all samples (Q, n) or for each (..., Q, n).
    """
    first, largest = 0, slack.copy()  # excess of the worst sample so far
    found = {}
    for values, lower, upper in blocks:
        K, n = values.shape[-2:]
        low, high = lower[..., :K, :], upper[..., :K, :]
        highest, lowest = values, values
        if low.ndim > 2:  # each sample has limits of its own: what is above or below them
            highest, lowest = values - high, values - low
            low = high = np.zeros((K, n))
        while highest.ndim > 2:
            highest = np.fmax.reduce(highest, axis=0, initial=-np.inf)
            lowest = np.fmin.reduce(lowest, axis=0, initial=np.inf)
        excess = np.maximum(highest - high, low - lowest)
        for k, j in np.argwhere(excess > largest[:K]).tolist():
            above = bool(highest[k, j] - high[k, j] == excess[k, j])
            bound, largest[k, j] = (upper if above else lower), excess[k, j]
            column = values[..., k, j].ravel()
            limits = np.broadcast_to(bound[..., k, j], values.shape[:-2]).ravel()
            beyond = column - limits if above else limits - column
            sample = int(np.nanargmax(beyond))
            value, limit = float(column[sample]), float(limits[sample])
            found[k, j] = Violation(quantities[k], names[j], value, limit, first + sample)
        first += values.size // (K * n)
    return tuple(found[key] for key in sorted(found))


def _slack(upper: Array) -> Array:
    """Excess up to which a value only seems to exceed its limit."""
    slack: Array = _ROUNDING * (np.abs(np.where(np.isfinite(upper), upper, 0.0)) + 1.0)
    return slack
