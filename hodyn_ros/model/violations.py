"""Quantities of a motion beside their limits: of joints, also of those that move with others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError
from hodyn_ros.model.limits import (
    ANGULAR,
    LIMITED,
    Limits,
    MotionLimits,
    over,
    scaled_limits,
    velocity_range,
)
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import did_you_mean, listed, unit_of
from hodyn_ros.typing import Array, Flags

# Quantities that a URDF cannot limit, or not before version 1.2.
EXTRA_QUANTITIES = ('acceleration', 'jerk', 'effort_dot', 'effort_ddot')

QUANTITIES = (('position', 'motion', 0), *LIMITED[:6])
"""Limited quantities of joints, with the series and the time derivative that each is."""
_MOTIONS, _EFFORTS = 4, 3  # of them
_OF_MOTION = ('lower', 'upper', 'velocity', 'acceleration', 'jerk')

# A value that reaches its limit by rounding alone does not exceed it.
_ROUNDING = 1e-9
_FOLD = 16  # samples in a row while extremes are looked for


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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import find_violations
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion, effort = np.zeros((1, 3, 2)), np.full((1, 1, 2), 50.0)
    >>> for violation in find_violations(model, model.limits, motion, effort):
    ...     print(violation)
    Violation(quantity='effort', joint_name='elbow', value=50.0, limit=30.0, sample=0)
    """

    quantity: str
    joint_name: str
    value: float
    limit: float
    sample: int


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity of m joints or motors along a motion of N samples, beside its limits.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Along, limited
    >>> along = Along(np.zeros((1, 3, 2)), np.array([[[60.0, 10.0]]]))
    >>> found = {q.name: q for q in limited(RobotModel.from_urdf('two_link'), along)}
    >>> found['effort'].owners, found['effort'].upper, found['effort'].peaks.round(2)
    (('shoulder', 'elbow'), array([80., 30.]), array([0.75, 0.33]))
    """

    name: str
    """As in `Violation`; empty if it cannot have limits."""
    kind: str
    """Series that it belongs to: 'motion', 'effort' or a field of `MotorMotion`."""
    order: int
    """Time derivative of that series."""
    owners: tuple[str, ...]
    """Names of the joints or motors."""
    is_linear: tuple[bool, ...]
    """Whether each slides, or moves a joint that does."""
    values: Array
    """Shape (N, m); NaN where they are not known."""
    lower: Array
    """Lowest values, shape (m,), or (N, m) where they depend on the motion; infinite without."""
    upper: Array
    """Highest values, of the same shape."""
    std: Array | None = None
    """Standard deviations of the values, shape (N, m), if they are known."""

    @cached_property
    def extremes(self) -> Array:
        """Lowest and highest known values, shape (2, m); NaN where none is known."""
        both = (np.fmin, np.fmax)
        return np.stack([over_samples(f, self.values) for f in both])

    @property
    def _decisive(self) -> Array:
        """Values of which one is the nearest to its limit: the extremes, or all."""
        return self.values if self.upper.ndim > 1 else self.extremes

    @cached_property
    def is_limited(self) -> Flags:
        """Which joints or motors have a limit, shape (m,)."""
        both = np.isfinite(self.lower) | np.isfinite(self.upper)
        return np.asarray(np.any(np.atleast_2d(both), axis=0))

    def shares(self, values: Array | None = None) -> Array:
        """Parts of the limits that values use: 1 on a limit, 0 where both are zero.

        Between two limits of a position they are measured from the middle.

        Parameters
        ----------
        values : ndarray, shape (..., m), optional
            By default those of all samples.

        Returns
        -------
        ndarray, shape (..., m)
            NaN where a value or one of its limits is not known; infinite for what is not zero
            and has a limit of zero.
        """
        values = self.values if values is None else values
        lower, upper = self.lower, self.upper
        with np.errstate(invalid='ignore'):  # of infinite limits
            if self.name == 'position':
                middle, upper = 0.5 * (lower + upper), 0.5 * (upper - lower)
                values, lower = values - middle, -upper
            shares = over(np.abs(values), np.where(values < 0.0, -lower, upper))
        return np.where(np.isfinite(lower) & np.isfinite(upper), shares, np.nan)

    @cached_property
    def peaks(self) -> Array:
        """Largest of the shares of each joint or motor, shape (m,); NaN where none is known."""
        shares = self.shares(self._decisive)
        return over_samples(np.fmax, shares)

    @property
    def worst(self) -> int | None:
        """Index of the joint or motor that uses most of its limit; None if no share is known."""
        return None if np.isnan(self.peaks).all() else int(np.nanargmax(self.peaks))

    @cached_property
    def n_known(self) -> NDArray[np.intp]:
        """At how many samples the quantity of each joint or motor is known, shape (m,)."""
        return np.asarray(np.count_nonzero(~np.isnan(self.values), axis=0))

    @property
    def n_limited(self) -> int:
        """Number of joints or motors that have a limit."""
        return int(self.is_limited.sum())

    @property
    def n_complete(self) -> int:
        """Number of limits that are checked at all samples."""
        return int((self.is_limited & (self.n_known == len(self.values))).sum())

    @property
    def is_checked(self) -> bool:
        """Whether anything could be compared with a limit."""
        return bool((self.is_limited & (self.n_known > 0)).any())

    @property
    def of_motors(self) -> bool:
        """Whether the owners are motors."""
        return self.kind in ('position', 'torque')

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of the values of each joint or motor, such as 'N m/s^2'."""
        angular = ANGULAR[self.kind]
        return tuple(unit_of(angular, linear, self.order) for linear in self.is_linear)

    @property
    def widest(self) -> tuple[Array, Array]:
        """Lowest and highest limits along the motion, (m,) each."""
        lower, upper = np.atleast_2d(self.lower), np.atleast_2d(self.upper)
        return lower.min(axis=0), upper.max(axis=0)

    def violations(self) -> Iterator[Violation]:
        """Worst sample of every joint or motor that exceeds its limit by more than rounding.

        Yields
        ------
        Violation
        """
        values = self._decisive
        excess = over_samples(np.fmax, np.maximum(values - self.upper, self.lower - values))
        for j in np.flatnonzero(excess > rounding_of(self.upper)).tolist():
            column = self.values[:, j]
            lower, upper = (
                np.broadcast_to(bound[..., j], column.shape)
                for bound in (self.lower, self.upper)
            )
            at = int(np.nanargmax(np.maximum(column - upper, lower - column)))
            limit = upper[at] if column[at] > upper[at] else lower[at]
            yield Violation(self.name, self.owners[j], float(column[at]), float(limit), at)


def over_samples(extreme: np.ufunc, values: Array) -> Array:
    """Lowest or highest known values of each column.

    Parameters
    ----------
    extreme : numpy.fmin or numpy.fmax
    values : ndarray, shape (N, m)

    Returns
    -------
    ndarray, shape (m,)
        NaN where none is known.
    """
    # Rows of a few numbers are reduced ten times slower than the same numbers in wide rows.
    N, m = values.shape
    whole = N - N % _FOLD
    if whole > _FOLD**2:
        wide = np.ascontiguousarray(values[:whole]).reshape(-1, _FOLD * m)
        folded = extreme.reduce(wide, axis=0).reshape(_FOLD, m)
        values = np.concatenate((folded, values[whole:]))
    return np.asarray(extreme.reduce(values, axis=0, initial=np.nan))


def _place(item: tuple[str, str, int]) -> tuple[bool, int]:
    """Key of a quantity in the order of tables: orders of the motion, then of the efforts."""
    return item[1] != 'motion', item[2]


def rounding_of(upper: Array) -> Array:
    """Excess over limits up to which values only seem to exceed them.

    Parameters
    ----------
    upper : ndarray, shape (..., m)

    Returns
    -------
    ndarray, shape (m,)
    """
    known = np.where(np.isfinite(upper), np.abs(upper), 0.0)
    return np.asarray(_ROUNDING * (1.0 + known.reshape(-1, known.shape[-1]).max(axis=0)))


class LimitedJoints:
    """Joints of a robot whose motion has limits: its own, then those that move with them.

    Those that move with them follow them as mimic joints, or are moved by closed loops.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Of the n joints of the model; the others have those of its description, times the
        `follower_factors` of these.

    Attributes
    ----------
    names : tuple of str
        Of the m >= n joints. Other joints are among them if their position, velocity,
        acceleration or jerk has a limit that those of the joint that they follow do not imply.
    limits : MotionLimits
        Each of shape (m,); efforts of the others have none.
    is_linear : tuple of bool
        Whether each of them slides.
    moved : list of int
        Those others, bodies of the tree.
    follower_limits : dict of str to Limits
        Of all joints that move with others.
    """

    def __init__(self, model: Mechanism, limits: MotionLimits) -> None:
        self._model = model
        self.names: tuple[str, ...] = model.joint_names
        self.limits: MotionLimits = limits
        tree = self._tree = model.tree
        known: dict[str, Limits] = {**tree.follower_limits}
        if model.closure is not None:
            for j in model.closure.dependent:
                own = (float(getattr(tree.limits, what)[j]) for what in Limits._fields)
                known[tree.joint_names[j]] = Limits(*own)
        known = {
            name: scaled_limits(own, limits.follower_factors) for name, own in known.items()
        }
        self.follower_limits: dict[str, Limits] = known
        self.moved: list[int] = [
            body
            for body, name in enumerate(tree.body_names)
            if name in known and not self._is_implied(body, known[name])
        ]
        linear = [kind == 'prismatic' for kind in model.joint_types]
        self.is_linear: tuple[bool, ...] = (
            *linear,
            *(not tree.X[body][:3].any() for body in self.moved),
        )
        for name in (tree.body_names[body] for body in self.moved):
            others = known[name]._replace(effort=np.inf)
            self.names += (name,)
            columns: dict[str, Any] = {
                what: np.append(getattr(self.limits, what), getattr(others, what, np.inf))
                for what in MotionLimits._fields[:-1]
            }
            self.limits = self.limits._replace(**columns)

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

    def quantities(
        self, motion: Array, effort: Array, every_order: bool = False
    ) -> Iterator[Quantity]:
        """Quantities of a motion beside their limits, efforts those of the n joints alone.

        Parameters
        ----------
        motion : ndarray, shape (N, K, n)
            NaN where it is not known.
        effort : ndarray, shape (N, E, n)
        every_order : bool
            Whether orders that cannot have limits are among them.

        Yields
        ------
        Quantity
            Each of `QUANTITIES`, NaN if there are fewer orders, and others without a name; of the
            other joints those that have a limit of it.

        Raises
        ------
        MotionError
            If closed loops cannot be followed along the motion.
        """
        whole, further = self.motion(motion), []
        if every_order:
            further = [('', 'motion', k) for k in range(_MOTIONS, motion.shape[1])]
            further += [('', 'effort', k) for k in range(_EFFORTS, effort.shape[1])]
        for name, kind, order in sorted((*QUANTITIES, *further), key=_place):
            series = whole if kind == 'motion' else effort
            values, m = order_of(series, order), series.shape[-1]
            bounds = [bound[..., :m] for bound in self.bounds(name, whole[:, 0])]
            is_limited = np.any(np.atleast_2d(np.isfinite(bounds[1] - bounds[0])), axis=0)
            shown = [j for j in range(m) if j < motion.shape[-1] or is_limited.item(j)]
            if len(shown) < m:
                values, *bounds = (array[..., shown] for array in (values, *bounds))
            owners = tuple(self.names[j] for j in shown)
            is_linear = tuple(self.is_linear[j] for j in shown)
            yield Quantity(name, kind, order, owners, is_linear, values, *bounds)

    def bounds(self, quantity: str, positions: Array) -> tuple[Array, Array]:
        """Lowest and highest values of a quantity.

        Parameters
        ----------
        quantity : str
        positions : ndarray, shape (..., m)
            Limits of the velocity may depend on them [rad] or [m].

        Returns
        -------
        lower, upper : ndarray, shape (m,) or (..., m)
        """
        if quantity == 'position':
            return self.limits.lower, self.limits.upper
        if quantity == 'velocity' and len(positions):
            return velocity_range(self.limits, positions)
        upper = getattr(self.limits, quantity, np.full(len(self.names), np.inf))
        return -upper, upper

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
            known = others.follower_limits[model.body_names[body]]
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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import LimitCheck
    >>> model = RobotModel.from_urdf('two_link')
    >>> check = LimitCheck(model, model.limits)
    >>> check.look(np.array([[0.0, 3.0]]), np.array([[90.0, 10.0]]))
    True
    >>> check.take_hits()
    {'position of elbow': 1, 'effort of shoulder': 1}
    """

    def __init__(self, model: Mechanism, limits: MotionLimits) -> None:
        self._joints = joints = LimitedJoints(model, limits)
        self._others = len(joints.moved)
        free = np.empty((0, len(joints.names)))
        bounds = np.array([joints.bounds(name, free) for name, _, _ in QUANTITIES])
        self._slack = np.array([rounding_of(upper) for _, upper in bounds])
        self._lower, self._upper = bounds[:, 0] - self._slack, bounds[:, 1] + self._slack
        self._hits = np.zeros(self._slack.shape, dtype=np.int64)
        self._falls = bool(np.isfinite(joints.limits.deceleration_limit).any())

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
        motion, effort = self._joints.motion(motion)[:_MOTIONS], effort[:_EFFORTS]
        if self._others:  # by no effort of their own
            effort = np.pad(effort, ((0, 0), (0, self._others)))
        K, E = len(motion), len(effort)
        rows = (
            slice(K + E) if K == _MOTIONS else [*range(K), *range(_MOTIONS, _MOTIONS + E)]
        )
        values = np.concatenate((motion, effort))
        lower, upper = self._lower[rows], self._upper[rows]
        if self._falls:
            lower, upper = lower.copy(), upper.copy()
            low, high = velocity_range(self._joints.limits, motion[0])
            lower[1], upper[1] = low - self._slack[1], high + self._slack[1]
        hits = (values > upper) | (values < lower)
        if not hits.any():
            return False
        self._hits[rows] += hits
        return True

    def take_hits(self) -> dict[str, int]:
        """Samples that have exceeded each limit since the last call.

        Returns
        -------
        dict of str to int
            Numbers by texts such as 'velocity of joint1'; limits that are kept are not in it.
        """
        hits = {
            f'{QUANTITIES[k][0]} of {self._joints.names[joint]}': int(self._hits[k, joint])
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

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import motion_limits
    >>> model = RobotModel.from_urdf('two_link')
    >>> limits = motion_limits(model, {'elbow': {'effort_dot': 200.0}})
    >>> limits.effort, limits.effort_dot
    (array([80., 30.]), array([ inf, 200.]))
    """
    columns = {name: getattr(model.limits, name).copy() for name in EXTRA_QUANTITIES}
    for joint, quantities in (extra or {}).items():
        if joint not in model.joint_names:
            raise ModelError(_no_joint(model, joint))
        for quantity, limit in quantities.items():
            what = f'limits.{joint}.{quantity}'
            if quantity not in columns:
                raise ModelError(
                    f'{what} is unknown{did_you_mean(quantity, EXTRA_QUANTITIES)}, expected one '
                    f'of {", ".join(EXTRA_QUANTITIES)} (the other limits come from the URDF).'
                )
            limit = checked_number(what, limit, ModelError, above=0.0, infinite=True)
            if limit < np.inf:
                columns[quantity][model.joint_names.index(joint)] = limit
    return model.limits._replace(**columns)


def _no_joint(model: Mechanism, joint: str) -> str:
    """Message on limits of what is no independent joint of a model."""
    if joint in model.tree.body_names:
        return (
            f'limits.{joint}: {joint} of {model.name} moves with other joints and has the limits '
            f'of the description alone; expected some of {listed(model.joint_names)}.'
        )
    return (
        f'limits.{joint}: {model.name} has no joint {joint}'
        f'{did_you_mean(joint, model.joint_names)}; its joints are {listed(model.joint_names)}.'
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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import find_violations
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion, effort = np.zeros((4, 3, 2)), np.zeros((4, 1, 2))
    >>> motion[:, 1, 0] = [5.0, 6.5, 7.0, 6.0]
    >>> [(v.quantity, v.joint_name, v.sample) for v in
    ...  find_violations(model, model.limits, motion, effort)]
    [('velocity', 'shoulder', 2)]
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
    joints, first = LimitedJoints(model, limits), 0
    worst: dict[tuple[str, str], Violation] = {}
    for motion, effort in blocks:
        motion, effort = (x.reshape(-1, *x.shape[-2:]) for x in (motion, effort))
        for quantity in joints.quantities(motion, effort):
            for item in quantity.violations():
                key = item.quantity, item.joint_name
                if key not in worst or _excess(item) > _excess(worst[key]):
                    worst[key] = item._replace(sample=first + item.sample)
        first += len(motion)
    places = [name for name, _, _ in QUANTITIES]
    return tuple(sorted(worst.values(), key=lambda item: places.index(item.quantity)))


def _excess(item: Violation) -> float:
    """How far a value is beyond its limit."""
    return abs(item.value - item.limit)


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

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import find_position_violations
    >>> model = RobotModel.from_urdf('two_link')
    >>> worst = find_position_violations(model, model.limits, [[0.0, 2.5], [0.0, 3.0]])
    >>> [(v.joint_name, v.value, v.limit, v.sample) for v in worst]
    [('elbow', 3.0, 2.8, 1)]
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
    n = len(names)
    return tuple(
        Quantity(
            quantity, '', 0, tuple(names), (False,) * n, values, lower, upper
        ).violations()
    )


def order_of(series: Array, order: int) -> Array:
    """One order of a series; NaN if the series does not have it.

    Parameters
    ----------
    series : ndarray, shape (N, K, m)
    order : int

    Returns
    -------
    ndarray, shape (N, m)
    """
    if order < series.shape[1]:
        return np.asarray(series[:, order])
    return np.broadcast_to(np.nan, (len(series), series.shape[2]))
