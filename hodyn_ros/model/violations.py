"""Where a motion exceeds the limits of the joints, also of those that move with others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError
from hodyn_ros.model.limits import Limits, MotionLimits, velocity_range
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

# Quantities that a URDF cannot limit, or not before version 1.2.
EXTRA_QUANTITIES = ('acceleration', 'jerk', 'effort_dot', 'effort_ddot')

QUANTITIES = (
    'position',
    'velocity',
    'acceleration',
    'effort',
    'jerk',
    'effort_dot',
    'effort_ddot',
)
"""Limited quantities of joints, by the number of derivatives that they need."""
_OF_MOTION = ('lower', 'upper', 'velocity', 'acceleration', 'jerk')

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
        for name in (tree.body_names[body] for body in self.moved):
            others = known[name]._replace(effort=np.inf)
            self.names += (name,)
            self.limits = MotionLimits(
                *(
                    np.append(column, getattr(others, what, np.inf))
                    for what, column in self.limits._asdict().items()
                )
            )

    def _is_implied(self, body: int, limits: Limits) -> bool:
        """Whether a joint keeps its limits wherever the joint that it follows keeps its own."""
        falls = np.isfinite(limits.deceleration_limit)
        if self._model.closure is not None or falls:
            return not (falls or np.isfinite(_bounds(limits)).any())
        implying = _implying(self._tree, body, limits)
        own = _bounds(self.limits)[:, self._tree.coordinate[body]]
        return bool((own <= implying + _ROUNDING * (1.0 + np.abs(implying))).all())

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

    def compared(self, motion: Array, effort: Array) -> tuple[Array, Array, Array]:
        """Values of the first Q of the limited quantities, and their limits.

        Parameters
        ----------
        motion : ndarray, shape (..., K, n)
        effort : ndarray, shape (..., K-2, n)

        Returns
        -------
        values : ndarray, shape (..., Q, m)
            In the order of `QUANTITIES`.
        lower, upper : ndarray, shape (Q, m) or (..., Q, m)
        """
        q, Q = self.motion(motion), effort
        if self.moved:  # by no effort of their own
            Q = np.append(Q, np.zeros((*Q.shape[:-1], len(self.moved))), axis=-1)
        rows = q[..., :3, :], Q[..., :1, :], q[..., 3:4, :], Q[..., 1:3, :]
        values = np.concatenate(rows, axis=-2)
        lower, upper = self._bounds[..., : values.shape[-2], :]
        if self._falls:
            lower, upper = (np.tile(x, (*values.shape[:-2], 1, 1)) for x in (lower, upper))
            lower[..., 1, :], upper[..., 1, :] = velocity_range(self.limits, q[..., 0, :])
        return values, lower, upper

    @cached_property
    def _falls(self) -> bool:
        """Whether limits of the velocity fall towards those of the position."""
        return bool(np.isfinite(self.limits.deceleration_limit).any())

    @cached_property
    def _bounds(self) -> Array:
        """Lowest and highest values of all quantities, shape (2, 7, m)."""
        limits = self.limits
        highest = np.array([getattr(limits, what) for what in ('upper', *QUANTITIES[1:])])
        return np.stack([np.concatenate([limits.lower[None], -highest[1:]]), highest])

    @property
    def slack(self) -> Array:
        """Excess of each quantity that is rounding, shape (7, m)."""
        return _slack(self._bounds[1])

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
        positions, leaders = np.stack((lowest, highest)), [*range(len(lowest))]
        if self._model.closure is None:
            positions = self.motion(positions[:, None])[:, 0]
            leaders += self._tree.coordinate[self.moved].tolist()
        names = self.names[: len(leaders)]
        lower, upper = (column[: len(leaders)] for column in self.limits[:2])
        found = worst_violations('position', names, positions, lower, upper)
        return [(item, leaders[names.index(item.joint_name)]) for item in found]


def _bounds(limits: Limits | MotionLimits) -> Array:
    """Limits as upper bounds of -position, position, velocity, acceleration and jerk."""
    lower, upper, *others = (getattr(limits, what) for what in _OF_MOTION)
    return np.array([np.negative(lower), upper, *others])


def _implying(tree: Mechanism, body: int, limits: Limits) -> Array:
    """Bounds, as of `_bounds`, of a joint that imply the limits of one that follows it."""
    bounds = _bounds(limits)
    with np.errstate(
        divide='ignore', invalid='ignore'
    ):  # a factor of zero: it stands still
        bounds[:2] += np.array([1.0, -1.0]) * tree.offset[body]
        bounds /= abs(tree.multiplier[body])
    if tree.multiplier[body] < 0.0:
        bounds[:2] = bounds[1::-1]
    return bounds


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
    own = _bounds(limits)
    for body in others.moved:
        j = model.coordinate[body]
        if model.multiplier[body]:
            known = model.follower_limits[model.body_names[body]]
            own[:, j] = np.minimum(own[:, j], _implying(model, body, known))
    own[0] *= -1.0
    return limits._replace(**dict(zip(_OF_MOTION, own)))


class LimitCheck:
    """Count of the samples of a stream that exceed the same limits.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of its joints; see `LimitedJoints` for others. A value that exceeds its limit by rounding
        alone does not count.
    """

    def __init__(self, model: Mechanism, limits: MotionLimits) -> None:
        self._joints = LimitedJoints(model, limits)
        self._slack = self._joints.slack
        self._hits = np.zeros(self._slack.shape, dtype=np.int64)

    def look(self, motion: Array, effort: Array) -> bool:
        """Count what a sample exceeds.

        Parameters
        ----------
        motion : ndarray, shape (K, n)
        effort : ndarray, shape (K-2, n)

        Returns
        -------
        bool
            Whether it is any.
        """
        values, lower, upper = self._joints.compared(motion, effort)
        count = len(values)
        hits = np.maximum(values - upper, lower - values) > self._slack[:count]
        if not hits.any():
            return False
        self._hits[:count] += hits
        return True

    def take_hits(self) -> dict[str, int]:
        """Samples that have exceeded each limit since the last call.

        Returns
        -------
        dict of str to int
            Numbers by texts such as 'velocity of joint1'; limits that are kept are not in it.
        """
        hits = {
            f'{QUANTITIES[k]} of {self._joints.names[joint]}': int(self._hits[k, joint])
            for k, joint in np.argwhere(self._hits)
        }
        self._hits[:] = 0
        return hits


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
    compared = (joints.compared(*block) for block in blocks)
    return _worst(joints.names, QUANTITIES, joints.slack, compared)


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
    blocks : iterable of (ndarray, ndarray, ndarray)
        Values (..., K, n) of the first K quantities, NaN exceeds nothing, and their lowest and
        highest values, for all samples (K, n) or for each (..., K, n).
    """
    first, largest = 0, slack.copy()  # excess of the worst sample so far
    found = {}
    for values, *bounds in blocks:
        K, n = values.shape[-2:]
        lower, upper = (
            np.broadcast_to(bound, values.shape).reshape(-1, K, n) for bound in bounds
        )
        values = values.reshape(-1, K, n)
        excess = np.maximum(values - upper, lower - values)
        worst = np.fmax.reduce(excess, axis=0, initial=-np.inf)
        for k, j in np.argwhere(worst > largest[:K]).tolist():
            largest[k, j] = worst[k, j]
            at = int(np.nanargmax(excess[:, k, j])), k, j
            value = float(values[at])
            limit = float(upper[at] if value > upper[at] else lower[at])
            found[k, j] = Violation(quantities[k], names[j], value, limit, first + at[0])
        first += len(values)
    return tuple(found[key] for key in sorted(found))


def _slack(upper: Array) -> Array:
    """Excess up to which a value only seems to exceed its limit."""
    slack: Array = _ROUNDING * (np.abs(np.where(np.isfinite(upper), upper, 0.0)) + 1.0)
    return slack
