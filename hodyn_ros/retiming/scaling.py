"""Motions at another rate, and the smallest time factor with which one keeps its limits.

At the rate s = 1 / c the k-th derivative of a motion takes the factor s^k, and that of its efforts
is s^m G_m + s^(m+2) D_m: gravity with wrenches, and the motion. See doc/time_scaling.rst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number
from hodyn_ros.dynamics.inverse import friction_efforts, inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError, ScalingError
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.model.limits import LIMITED, MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import (
    LimitedJoints,
    Violation,
    motion_limits,
    worst_violations,
)
from hodyn_ros.trajectory.motion import position_extremes
from hodyn_ros.typing import Array, Indices

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits

# Equal steps at which a function of time is examined, and places on each segment between its
# knots; fewer where there are more than so many in all, half the degree of polynomials at least.
_STEPS, _PLACES, _MOST_PLACES, _FEWEST_PLACES = 2000, 16, 16_384, 5
# Times that are examined together, which bounds the memory, and how many of these are remembered.
_BLOCK, _REMEMBERED = 4096, 12
# Peaks that are looked at in a pass at most, rounds of three places at each, and by which number
# these come nearer to each other from round to round.
_MOST_PEAKS, _ROUNDS, _NEARER = 1300, 4, 8.0
# Passes along the whole motion, each at the rate that the peaks of the last one ask for, and the
# change of the rate, relative, below which there are no more; how much higher one may become.
_PASSES, _SETTLED, _MORE = 5, 1e-6, 1.3

# Highest derivative of the motion that limits of motors behind springs depend on.
_OF_MOTORS = 5
# Rate at which joints and motors count as held still.
_SLOWEST = 1e-9
# Half of the excess that counts as rounding, see model/violations.py.
_ROUNDING = 5e-10
# With friction or actuators: rates that are tried to find the scale of the first that is too high,
# those that are tried below it, and how often the interval in which it lies is halved, roughly
# and exactly.
_COARSE, _FINE = 4.0 ** np.arange(-14.0, 15.0), np.geomspace(1e-3, 1.0, 40)
_ROUGHLY, _EXACTLY = 8, 36
_FROM_ONE = 1e-3 * 4.0 ** np.arange(20.0)
# Distance from the edge, and how much faster the motion is played to see what is in the way.
_EDGE, _FASTER = 1e-11, 1e-6
# Efforts that are as good as none, so that nothing is divided by zero.
_TINY = 1e-60


class TimedMotion(Protocol):
    """Motion of n joints as a function of time, such as a `MotionSpline`.

    Attributes
    ----------
    start_time, end_time : float
        [s]
    """

    @property
    def start_time(self) -> float:
        """Time at which it begins [s]."""

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at times (...), shape (..., highest_derivative + 1, n).

        Parameters
        ----------
        t : array-like, shape (...)
            Times within the motion [s].
        highest_derivative : int
            Time derivatives that are wanted.

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1, n)
            [rad/s^k] or [m/s^k].
        """


def knots_of(motion: TimedMotion) -> Array:
    """Read the times (N,) between which a motion is smooth: its `times`, or start and end [s].

    Parameters
    ----------
    motion : function of time

    Returns
    -------
    ndarray, shape (N,)
        Increasing, with start and end; only these if it has no array `times`.
    """
    times, ends = getattr(motion, 'times', None), (motion.start_time, motion.end_time)
    if not isinstance(times, np.ndarray) or times.dtype.kind not in 'fiu':
        return np.array(ends, dtype=np.float64)
    return np.unique(np.append(ends, times[(times > ends[0]) & (times < ends[1])]))


def at_rate(series: Array, s: float) -> Array:
    """Series of shape (..., K, n) of what is played at the rate s.

    Parameters
    ----------
    series : ndarray, shape (..., K, n)
        Values and their time derivatives.
    s : float
        Rate: 2 is twice as fast.

    Returns
    -------
    ndarray, shape (..., K, n)
        `[..., k, :]` times s^k.
    """
    return series * s ** np.arange(float(series.shape[-2]))[:, None]


def stretched(motion: ArrayLike, factor: float) -> Array:
    """Samples of a motion, shape (..., K, n), played with a time factor: `[..., k, :]` / factor^k.

    Parameters
    ----------
    motion : array-like, shape (..., K, n)
        Positions and time derivatives.
    factor : float
        Positive; 2 is half as fast.

    Returns
    -------
    ndarray, shape (..., K, n)

    Raises
    ------
    MotionError
        If the factor is not positive or the motion has no such shape.
    """
    array = np.asarray(motion, dtype=np.float64)
    if array.ndim < 2:
        raise MotionError(f'The motion has shape {array.shape}, expected (..., K, n).')
    return at_rate(
        array, 1.0 / checked_number('The time factor', factor, MotionError, above=0.0)
    )


class Limiting(NamedTuple):
    """What would exceed its limit first if the motion were faster."""

    quantity: str
    """As in `hodyn_ros.model.limits` and `hodyn_ros.actuators.limits`."""
    name: str
    """Name of the joint or motor."""
    sample: int | None
    """None of a function of time."""
    value: float
    """At the factor."""
    limit: float
    """With its sign."""
    time: float | None = None
    """Of a function of time [s]."""


class UniformScaling(NamedTuple):
    """How much slower, or faster, a motion is to be played."""

    factor: float
    """Smallest c such that q(t / c) and every slower motion keep the limits; zero if nothing
    limits the speed."""
    limiting: Limiting | None
    """None if nothing limits the speed."""

    @property
    def is_kept(self) -> bool:
        """Whether the motion keeps the limits as it is given."""
        return self.factor <= 1.0


def uniform_scaling(
    model: RobotModel,
    motion: ArrayLike | TimedMotion,
    limits: MotionLimits | None = None,
    *,
    wrench: Wrench | Sequence[Wrench] | None = None,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
) -> UniformScaling:
    """Smallest uniform time factor with which a motion keeps its limits.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (N, K, n), or function of time
        Samples with their time derivatives, see `inverse_dynamics`; K >= 4 for limits of the jerk
        and of the torque rate, K >= 5 for its derivative and the torque of motors behind springs,
        K >= 6 for the torque rate of these. A function of time is examined between its knots, an
        array `times`, if it has some, and at 2001 equal steps.
    limits : MotionLimits, optional
        By default those of the model.
    wrench : Wrench or sequence of Wrench, optional
        At these samples; taken as a function of the place on the path. For a function of time one
        that is the same everywhere.
    actuators, motor_limits : Actuators and MotorLimits, optional
        Without damping, because then the deflection depends on the past.

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If slow motions do not keep the limits: a position limit is exceeded, or gravity and
        wrenches alone ask for too much torque.
    MotionError
        If the motion cannot be used, or a limit needs a derivative that it does not have.
    WrenchError, ActuatorError
        If wrench or actuators do not fit.

    Notes
    -----
    The limits are kept at the factor, up to the rounding of `find_violations`. With friction or
    actuators the factor is searched, and limits that are exceeded between factors less than
    20 % apart may stay unseen.
    """
    wrenches = (wrench,) if isinstance(wrench, Wrench) else wrench or ()
    return RobotLimits.of(model, limits, actuators, motor_limits).scaling(motion, wrenches)


@dataclass(frozen=True, eq=False)
class RobotLimits:
    """A robot and all that is limited of its motion."""

    model: RobotModel
    limits: MotionLimits
    actuators: Actuators | None = None
    motor_limits: MotorLimits | None = None

    @classmethod
    def of(
        cls,
        model: RobotModel,
        limits: MotionLimits | None = None,
        actuators: Actuators | None = None,
        motor_limits: MotorLimits | None = None,
    ) -> RobotLimits:
        """Limits as `uniform_scaling` and `retime` take them.

        Parameters
        ----------
        model : RobotModel
        limits : MotionLimits, optional
            By default those of the model.
        actuators, motor_limits : Actuators and MotorLimits, optional
            By default motors have no limits.

        Returns
        -------
        RobotLimits

        Raises
        ------
        ActuatorError
            If there are limits of motors without actuators.
        """
        limits = motion_limits(model) if limits is None else limits
        if actuators is None:
            if motor_limits is not None:
                raise ActuatorError('motor_limits are given without actuators.')
            return cls(model, limits)
        from hodyn_ros.actuators.limits import motor_limits as no_motor_limits

        return cls(model, limits, actuators, motor_limits or no_motor_limits(actuators))

    @cached_property
    def joints(self) -> LimitedJoints:
        """Joints whose motion is limited, also those that move with others."""
        return LimitedJoints(self.model, self.limits)

    @cached_property
    def order(self) -> int:
        """Highest derivative of the motion that limits of joints depend on, 2 at least."""
        orders = (
            order + 2 * (kind == 'effort')
            for quantity, kind, order in LIMITED
            if np.isfinite(getattr(self.joints.limits, quantity, np.inf)).any()
        )
        return max([2, *orders])

    def scaling(
        self, motion: ArrayLike | TimedMotion, wrenches: Sequence[Wrench] = ()
    ) -> UniformScaling:
        """Scaling of samples or of a function of time, see `uniform_scaling`.

        Parameters
        ----------
        motion : array-like, shape (N, K, n), or function of time
        wrenches : sequence of Wrench
            At the samples.

        Returns
        -------
        UniformScaling
        """
        if callable(motion):
            refuse_extremes(self, motion)
            return _InTime(self, motion, wrenches).scaling()
        played = _Played(self, motion, wrenches)
        return played.scaling(played.fastest())

    def check(
        self, motion: ArrayLike | TimedMotion, wrenches: Sequence[Wrench] = ()
    ) -> UniformScaling:
        """Exact check of a motion as it is given; of its positions see `refuse_extremes`.

        Parameters
        ----------
        motion : array-like, shape (N, K, n), or function of time
        wrenches : sequence of Wrench
            At the samples.

        Returns
        -------
        UniformScaling
            Of a function of time the factor is that of the places where it exceeds its limits or
            comes closest to them, and slower motions may exceed them.

        Raises
        ------
        ScalingError
            If the limits are exceeded at every speed.
        """
        if callable(motion):
            return _InTime(self, motion, wrenches).check()
        played = _Played(self, motion, wrenches)
        return played.scaling(played.nearest())


def rigid_efforts(
    model: RobotModel, motion: Array, wrenches: Sequence[Wrench] | None = None
) -> Array:
    """Efforts (N, K - 2, n) without friction along a motion (N, K, n).

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (N, K, n)
        [rad/s^k] or [m/s^k].
    wrenches : sequence of Wrench, optional
        With K - 2 orders at the same samples.

    Returns
    -------
    ndarray, shape (N, K - 2, n)
        [N m/s^m] or [N/s^m].
    """
    efforts = inverse_dynamics(model, motion, wrenches or None)
    if model.friction:
        # A model without it would be another one, for which nothing has been compiled.
        efforts -= friction_efforts(model, motion)
    return efforts


class _Played:
    """All C limited quantities of a motion at N samples, as functions of the rate s.

    Parameters
    ----------
    robot : RobotLimits
    motion : array-like, shape (N, K, n)
        At the rate one.
    wrenches : sequence of Wrench
        At the samples.
    times : ndarray, shape (N,), optional
        Of the samples [s].

    Attributes
    ----------
    labels : list of (str, str)
        Quantity and joint or motor of each column.

    Raises
    ------
    MotionError
        If the motion has no samples, or too few orders for a limit.
    ScalingError
        If samples leave their position limits, or what has a limit of zero moves.
    """

    def __init__(
        self,
        robot: RobotLimits,
        motion: ArrayLike,
        wrenches: Sequence[Wrench] = (),
        times: Array | None = None,
    ) -> None:
        motion = checked_motion(robot.model, motion)
        if motion.ndim != 3 or not len(motion):
            raise MotionError(
                f'The motion has shape {motion.shape}, expected (N, K, {robot.model.n_joints}) '
                'with N >= 1.'
            )
        joints, N = robot.joints, len(motion)
        self._robot, self._motion, self._of_all = robot, motion, joints.motion(motion)
        self._wrenches, self.times = wrenches, times
        places, known = self._of_all[:, 0], joints.limits
        for worst in worst_violations('position', joints.names, places, *known[:2]):
            raise _out_of_range(worst, None if times is None else times[worst.sample])
        self._weight = rigid_efforts(robot.model, motion, wrenches)
        self._is_polynomial = not robot.model.friction and robot.actuators is None
        self.labels: list[tuple[str, str]] = []
        self._rows: list[tuple[str, int, Indices]] = []
        limits = [np.empty((1, 0)), *self._limited()]
        rows = max(map(len, limits))  # one, unless a limit depends on the position
        limit = np.concatenate(
            [np.broadcast_to(each, (rows, each.shape[1])) for each in limits], axis=1
        )
        self._limit = np.broadcast_to(limit, (N, limit.shape[1]))
        if (is_zero := limit == 0.0).any():
            self._refuse_motion(is_zero)
            limit[is_zero] = np.inf
        self._bound = np.broadcast_to(limit + _ROUNDING * (limit + 1.0), self._limit.shape)

    def _limited(self) -> Iterator[Array]:
        """Limits (1, c) or (N, c) of each limited quantity; notes which these are."""
        robot, names, K = self._robot, self._robot.joints.names, self._motion.shape[1]
        # Of one sample without torques, which every spring can have.
        series = self._series_of(0.0 * self._of_all[:1], 0.0 * self._weight[:1])
        for quantity, kind, order in LIMITED:
            if kind not in series:
                continue
            if kind in ('motion', 'effort'):
                low, limit = robot.joints.bounds(quantity, self._of_all[:, 0])
                if limit.ndim > 1:
                    limit = np.where(self._of_all[:, 1] < 0.0, -low, limit)
            else:
                limit = np.asarray(getattr(robot.motor_limits, quantity))
            limit = np.atleast_2d(limit)
            # Springs cannot be deflected beyond their range, whether there are limits or not.
            is_limited = np.isfinite(limit).any(axis=0) | (quantity == 'deflection')
            if not is_limited.any():
                continue
            if order >= (orders := series[kind].shape[1]):
                raise MotionError(
                    f'{quantity} is limited, which needs a motion with K >= '
                    f'{K + order + 1 - orders} derivatives (the zeroth included), but K is {K}; '
                    'give more derivatives, or limits without it.'
                )
            if robot.actuators is not None and kind in ('position', 'torque'):
                names = robot.actuators.motor_names
            columns = np.flatnonzero(is_limited)
            self.labels += [(quantity, names[column]) for column in columns.tolist()]
            self._rows.append((kind, order, columns))
            yield limit[:, columns]

    def _refuse_motion(self, is_zero: NDArray[np.bool_]) -> None:
        """Refuse motion where a limit is zero; at rest it is kept at any rate."""
        moves = np.where(is_zero, np.abs(self._values(1.0)), 0.0)
        if moves.max() <= _ROUNDING:
            return
        found = self._found(int(moves.argmax()), 1.0)
        place = ''
        if (
            found.quantity == 'velocity'
            and not is_zero[:, moves.max(axis=0).argmax()].all()
        ):
            place = ', so near to the limit of its position'
        raise ScalingError(
            f'No time factor makes the motion keep its limits: at {_place(found)}, joint '
            f'{found.name!r} has {found.quantity} = {found.value:.6g}, and its limit is 0{place}. '
            'Change the path, or write its true limit.',
            limiting=found,
        )

    @cached_property
    def _dynamic(self) -> Array:
        """What the motion needs of the efforts, at the rate one."""
        twice = [
            replace(item, values=at_rate(np.asarray(item.values), 2.0))
            for item in self._wrenches
        ]
        # At the rate 2, s^-m Q^(m) is G_m + 4 D_m.
        model, motion = self._robot.model, at_rate(self._motion, 2.0)
        at_two = at_rate(rigid_efforts(model, motion, twice), 0.5)
        return np.asarray((at_two - self._weight) / 3.0)

    def _series(self, s: float) -> dict[str, Array]:
        """Motion and efforts of joints and motors at a rate."""
        s = max(s, _SLOWEST)
        if s == 1.0:
            return self._series_of(self._of_all, self._weight)
        effort = self._weight + (s * s - 1.0) * self._dynamic
        return self._series_of(at_rate(self._of_all, s), at_rate(effort, s))

    def _series_of(self, of_all: Array, effort: Array) -> dict[str, Array]:
        """Series by kinds of a motion with rigid efforts."""
        model, actuators = self._robot.model, self._robot.actuators
        motion = of_all[..., : model.n_joints]
        if model.friction:
            effort = effort + friction_efforts(model, motion)
        found = {'motion': of_all, 'effort': effort}
        if actuators is not None:
            from hodyn_ros.actuators.motors import motor_motion

            found |= motor_motion(actuators, motion, effort, order=None)._asdict()
        return found

    def _values(self, s: float) -> Array:
        """Values (N, C) at a rate; raises DeflectionError where a spring has none."""
        series = self._series(s)
        blocks = [series[kind][:, order, joints] for kind, order, joints in self._rows]
        return np.concatenate([np.empty((len(self._motion), 0)), *blocks], axis=1)

    def shares(self, s: float) -> Array:
        """Shares (N, C) of the limits that are used at a rate.

        Parameters
        ----------
        s : float
            Rate; zero: held still.

        Returns
        -------
        ndarray, shape (N, C)
            Above one beyond a limit by more than rounding. Where a spring cannot have its torque
            one is infinite; what the others are is not known then, they are zero.
        """
        try:
            return np.asarray(np.abs(self._values(s)) / self._bound)
        except DeflectionError as error:
            shares = np.zeros(self._bound.shape)
            column = self.labels.index(('deflection', error.joint))
            shares[error.sample[0], column] = np.inf
            return shares

    def fastest(self, most: float = np.inf, halvings: int = _EXACTLY) -> float:
        """Rate up to which all limits are kept, but for rounding.

        Parameters
        ----------
        most : float
            Rate above which nothing matters.
        halvings : int
            Of the interval in which the rate is searched.

        Returns
        -------
        float
            Zero if they are not kept at rest, `most` if nothing limits the rate.
        """
        edges = np.cumsum([len(joints) for *_, joints in self._rows[:-1]])
        bounds = np.split(self._bound, edges, axis=1)
        for (kind, order, joints), bound in zip(self._rows, bounds):
            if kind != 'motion' and not self._is_polynomial:
                continue
            if kind == 'motion':
                size = np.maximum(np.abs(self._of_all[:, order, joints]), _TINY)
                first = (bound / size) ** (1.0 / order)
            else:
                dynamic = self._dynamic[:, order, joints]
                weight = self._weight[:, order, joints] - dynamic
                first = _first_crossing(order, weight, dynamic, bound)
            if (rate := float(first.min()) * (1.0 - _EDGE)) < _COARSE[-1]:
                most = min(most, rate)
        if self._is_polynomial:
            return most
        if self._exceeds(0.0):
            return 0.0
        scale = most if most < np.inf else next(filter(self._exceeds, _COARSE), np.inf)
        rates = scale * _FINE if scale < np.inf else ()
        return self._crossed(rates, 0.0, True, most, halvings)

    def nearest(self) -> float:
        """Rate next to one up to which, or from which on, all limits are kept.

        Returns
        -------
        float
            Infinite if nothing limits the rate, zero if they are kept at none below one.
        """
        is_kept = not self._exceeds(1.0)
        if self._is_polynomial and ((first := self.fastest()) >= 1.0) == is_kept:
            return first
        if is_kept:
            return self._crossed(1.0 + _FROM_ONE, 1.0, True, np.inf)
        return self._crossed(1.0 / (1.0 + _FROM_ONE), 1.0, False, 0.0)

    def _crossed(
        self,
        rates: Iterable[float],
        last: float,
        is_kept: bool,
        none: float,
        halvings: int = _EXACTLY,
    ) -> float:
        """Rate that keeps all limits, next to the first of some where that changes.

        Parameters
        ----------
        rates : iterable of float
        last : float
            The one before the first of them.
        is_kept : bool
            Whether the limits are kept there.
        none : float
            Rate if nothing changes.
        halvings : int
            Of the interval between the rate where it changes and the last one.

        Returns
        -------
        float
        """
        for rate in rates:
            if self._exceeds(rate) == is_kept:
                low, high = sorted((last, rate))
                for _ in range(halvings):
                    middle = 0.5 * (low + high)
                    exceeds = self._exceeds(middle)
                    low, high = (low, middle) if exceeds else (middle, high)
                return float(low)
            last = rate
        return none

    def _exceeds(self, s: float) -> bool:
        """Whether a limit is exceeded at a rate."""
        return bool((self.shares(s) > 1.0).any())

    def scaling(self, rate: float) -> UniformScaling:
        """Scaling by a rate up to which the limits are kept.

        Parameters
        ----------
        rate : float
            Infinite if nothing limits it.

        Returns
        -------
        UniformScaling

        Raises
        ------
        ScalingError
            If the rate is zero.
        """
        if rate == np.inf:
            return UniformScaling(0.0, None)
        shares = self.shares(rate * (1.0 + _FASTER))
        try:
            found = self._found(int(shares.argmax()), rate)
        except DeflectionError as error:
            raise ScalingError(
                f'No time factor makes the motion possible. Held still: {error}'
            ) from error
        if np.isinf(shares.max()):  # at the end of the range of a spring
            found = found._replace(limit=found.value)
        if rate > 0.0:
            return UniformScaling(1.0 / rate, found)
        raise ScalingError(
            f'No time factor makes the motion keep its limits: to hold still at {_place(found)}, '
            f'{found.name!r} already needs {found.quantity} = {abs(found.value):.6g}, more than '
            f'{abs(found.limit):.6g}. Change the path, the load or the limits.',
            limiting=found,
        )

    def _found(self, place: int, s: float) -> Limiting:
        """Value and limit of something at a rate, by its place in the array of values."""
        sample, column = divmod(place, len(self.labels))
        value = float(self._values(s)[sample, column])
        limit = float(np.copysign(self._limit[sample, column], value))
        of_limit = *self.labels[column], None, value, limit
        if self.times is None:
            return Limiting(*of_limit)._replace(sample=sample)
        return Limiting(*of_limit, float(self.times[sample]))

    def peaks(self, s: float) -> Array:
        """Peaks in time of what may exceed its limit next to them, and the highest value.

        Parameters
        ----------
        s : float
            Rate.

        Returns
        -------
        ndarray, shape (P, 4)
            Column, time, distance to the farther neighbour, how large the share may be there.
        """
        assert self.times is not None
        steps = np.concatenate(([0.0], np.diff(self.times), [0.0]))
        width = np.maximum(steps[:-1], steps[1:])
        shares = self.shares(s)
        padded = np.pad(shares, ((1, 1), (0, 0)), mode='edge')
        before, behind = padded[:-2], padded[2:]
        # A parabola through three samples rises above the middle one by less than an eighth of
        # what that one stands above both; the whole of it leaves room for narrower peaks.
        possible = shares + (shares - np.minimum(before, behind))
        is_peak = (shares >= before) & (shares >= behind) & (possible > 1.0)
        highest = shares.argmax()
        is_peak.flat[highest], possible.flat[highest] = True, np.inf
        sample, column = np.nonzero(is_peak)
        found = column, self.times[sample], width[sample], possible[sample, column]
        return np.column_stack(found)


def _first_crossing(order: int, weight: Array, dynamic: Array, limit: Array) -> Array:
    """Smallest rates s at which |s^order (weight + s^2 dynamic)| reaches a limit, in closed form.

    With w of the sign that makes b = |dynamic|, it is w + b s^2 times s^order that rises above the
    limit for good, and before may fall below the negative limit for a while.

    Parameters
    ----------
    order : int
        0, 1 or 2: of the derivative of the effort.
    weight, dynamic : ndarray, shape (N, C)
        What does not, and what does depend on the speed, at the rate one.
    limit : ndarray, shape (C,) or (N, C)
        Largest magnitude.

    Returns
    -------
    ndarray, shape (N, C)
        Zero where the weight alone exceeds the limit.
    """
    b = np.maximum(np.abs(dynamic), _TINY)
    w = weight * np.copysign(1.0, dynamic)
    if order == 0:
        falls = w < -limit
        below, above = np.zeros_like(b), np.sqrt(np.maximum(limit - w, 0.0) / b)
    elif order == 1:
        # The roots of a cubic without a square, by the cosine of three times an angle.
        c = 2.0 * np.sqrt(np.maximum(np.abs(w), _TINY) / (3.0 * b))
        ratio = 4.0 * limit / (b * c**3)
        falls = (w < 0.0) & (ratio < 1.0)
        below = c * np.sin(np.arcsin(np.minimum(ratio, 1.0)) / 3.0)
        falling = c * np.cosh(np.arccosh(ratio + 0j) / 3.0).real
        above = np.where(w < 0.0, falling, c * np.sinh(np.arcsinh(ratio) / 3.0))
    else:
        half, share = 0.5 * np.maximum(np.abs(w), _TINY) / b, limit / b
        falls = (w < 0.0) & (half**2 > share)
        below = np.sqrt(share / (half + np.sqrt(np.maximum(half**2 - share, 0.0))))
        larger = half + np.sqrt(half**2 + share)
        above = np.sqrt(np.where(w < 0.0, larger, share / larger))
    return np.where(falls, below, above)


def _place(found: Limiting) -> str:
    """Sample or time of something that is in the way, for messages."""
    return f'sample {found.sample}' if found.time is None else f'{found.time:.6g} s'


def _out_of_range(worst: Violation, time: float | None) -> ScalingError:
    """Refusal of a position at a sample or time."""
    sample = worst.sample if time is None else None
    found = Limiting('position', worst.joint_name, sample, worst.value, worst.limit, time)
    return ScalingError(
        f'Joint {worst.joint_name!r} has the position {worst.value:.6g} at {_place(found)} beyond '
        f'its limit {worst.limit:.6g}: no time factor changes that; change the path.',
        limiting=found,
    )


def refuse_extremes(robot: RobotLimits, motion: TimedMotion) -> None:
    """Refuse a function of time that leaves its position limits anywhere, if it can tell.

    Parameters
    ----------
    robot : RobotLimits
        Those of positions are used, without those of joints that closed loops move.
    motion : function of time
        One with `expansions`, such as a `PiecewiseMotion`, is looked at between its samples
        too; others are not looked at.

    Raises
    ------
    ScalingError
        For the joint that leaves its range; `limiting` says where.
    """
    if hasattr(motion, 'expansions'):
        lowest, highest, *times = position_extremes(motion)  # type: ignore[arg-type]
        for worst, joint in robot.joints.beyond(lowest, highest):
            raise _out_of_range(worst, float(times[worst.sample][joint]))


class _InTime:
    """Limited quantities of a function of time, examined at many times and at their peaks.

    Parameters
    ----------
    robot : RobotLimits
    motion : function of time
    wrenches : sequence of Wrench
        The same at all times.
    """

    def __init__(
        self, robot: RobotLimits, motion: TimedMotion, wrenches: Sequence[Wrench]
    ) -> None:
        self._robot, self._motion, self._wrenches = robot, motion, wrenches
        self._order = robot.order if robot.actuators is None else _OF_MOTORS
        times = self._times = _times_of(motion, self._order)
        # Each block knows a neighbour on both sides, to see which of its samples are peaks.
        self._blocks = [
            times[max(start - 1, 0) : start + _BLOCK + 1]
            for start in range(0, len(times), _BLOCK)
        ]
        self._block = lru_cache(maxsize=_REMEMBERED)(lambda k: self._at(self._blocks[k]))

    def scaling(self) -> UniformScaling:
        """Smallest factor from which on all larger ones keep the limits.

        Returns
        -------
        UniformScaling

        Raises
        ------
        ScalingError
            If there is no factor.
        """
        rate = np.inf
        for k in range(len(self._blocks)):
            rate = self._block(k).fastest(rate, _ROUGHLY)
            if rate == 0.0:
                return self._block(k).scaling(rate)  # which says where it cannot be held
        for _ in range(_PASSES):
            if rate == np.inf:
                return UniformScaling(0.0, None)
            closest = self._closest(rate)
            last, rate = rate, closest.fastest(_MORE * rate)
            if abs(last - rate) <= _SETTLED * last:
                break
        return closest.scaling(rate)

    def check(self) -> UniformScaling:
        """Factor of the places that are closest to their limits at the rate one, or beyond.

        Returns
        -------
        UniformScaling

        Raises
        ------
        ScalingError
            If there is no factor.
        """
        if not self._block(0).labels:
            return UniformScaling(0.0, None)
        closest = self._closest(1.0)
        return closest.scaling(closest.nearest())

    def _at(self, times: Array) -> _Played:
        """Limited quantities at times (N,)."""
        motion = self._motion(times, self._order)
        return _Played(self._robot, motion, self._wrenches, times)

    def _closest(self, s: float) -> _Played:
        """Limited quantities where they are closest to their limits at a rate.

        Times of peaks are found by the vertex of a parabola through three places, ever nearer.
        """
        peaks = np.concatenate([self._block(k).peaks(s) for k in range(len(self._blocks))])
        peaks = peaks[np.argsort(-peaks[:, 3], kind='stable')[:_MOST_PEAKS]]
        column, centre, width, _ = peaks.T
        peak, ends = np.arange(len(peaks)), self._times[[0, -1]]
        for _ in range(_ROUNDS):
            around = np.clip(centre + width * [[-1.0], [0.0], [1.0]], *ends)
            shares = self._at(around.ravel()).shares(s).reshape(3, len(peaks), -1)
            before, middle, behind = shares[:, peak, column.astype(np.intp)]
            bend = 2.0 * middle - before - behind
            with np.errstate(all='ignore'):
                vertex = np.where(
                    bend > 0.0, 0.5 * (behind - before) / bend, np.sign(behind - before)
                )
            centre = centre + width * np.clip(np.nan_to_num(vertex), -1.0, 1.0)
            centre, width = np.clip(centre, *ends), width / _NEARER
        return self._at(np.unique(np.concatenate((peaks[:, 1], centre))))


def _times_of(motion: TimedMotion, order: int) -> Array:
    """Times at which a motion and its derivatives up to an order are examined.

    Equal steps, and places between its knots.
    """
    times = np.linspace(motion.start_time, motion.end_time, _STEPS + 1)
    knots, expansions = knots_of(motion), getattr(motion, 'expansions', None)
    fewest = _FEWEST_PLACES if expansions is None else expansions.shape[2] // 2
    places = int(np.clip(_MOST_PLACES // (len(knots) - 1), fewest, _PLACES))
    fractions = np.arange(places - 1) / (places - 1)
    inside = knots[:-1, None] + np.diff(knots)[:, None] * fractions
    every = [times, inside.ravel(), knots[-1:]]
    if getattr(motion, 'continuous_derivative', 0) < order:
        # They may jump at a knot, so that it counts twice: with the last number before it.
        every.append(np.maximum(np.nextafter(knots[1:], -np.inf), knots[:-1]))
    found = np.unique(np.concatenate(every))
    return np.asarray(found[(found >= times[0]) & (found <= times[-1])])
