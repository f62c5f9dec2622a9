"""Motions at another rate, and the smallest time factor with which one keeps its limits.

At the rate s = 1 / c the k-th derivative of a motion takes the factor s^k, and that of its efforts
is s^m G_m + s^(m+2) D_m: gravity with wrenches, and the motion. See doc/time_scaling.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number
from hodyn_ros.dynamics.inverse import friction_efforts, inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import (
    ActuatorError,
    DeflectionError,
    MotionError,
    ScalingError,
)
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.model.limits import LIMITED, MotionLimits, velocity_range, velocity_use
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import (
    LimitedJoints,
    Violation,
    motion_limits,
    worst_violations,
)
from hodyn_ros.names import listed
from hodyn_ros.trajectory.motion import position_extremes
from hodyn_ros.trajectory.waypoints import real_numbers
from hodyn_ros.typing import Array, Indices

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits

Bands = tuple[Array, Array]
"""Rates at which limits are exceeded, from and to; none where the second is not larger."""

FactorIntervals = tuple[tuple[float, float], ...]
"""Time factors, from and to, increasing."""

SAMPLES = 2001
"""Equal steps at which a function of time is examined, besides its segments between knots."""

# Rate at which joints and motors count as held still.
_SLOWEST = 1e-9
# Half of the excess that counts as rounding, see model/limits.py.
_ROUNDING = 5e-10

# With friction or actuators: rates that are tried to find where all faster motions exceed a limit;
# how many are evaluated up to there, and how far down they reach; how many where not even slow
# motions keep all limits.
_TRIED = 4.0 ** np.arange(-14.0, 15.0)
_RATES, _RANGE, _ALL_RATES = 120, 1e-3, 700
_HALVINGS = 36
_EDGE = 1e-11
_WIDTH = 1e-10  # relative, up to which a band of rates is rounding
# How much faster the motion is played to see which limit is in the way.
_FASTER = 1e-6
# Efforts that are as good as none, so that nothing is divided by zero.
_TINY = 1e-60
# Intervals of factors that are narrower than this, relative to where they are, are rounding.
_NARROWEST = 1e-12

# Places on each segment between knots; fewer where there are more than so many in all.
_PLACES, _MOST_PLACES, _FEWEST_PLACES = 16, 16_384, 5
# Times that are examined together, which bounds the memory, and how many of these are remembered.
_BLOCK, _REMEMBERED = 4096, 12
# Rates that are evaluated for all places; for the peaks alone as many as for samples.
_FEW_RATES = 30
# Peaks that are looked at in one pass at most.
_MOST_PEAKS = 4000
# Places to each side of a peak, round by round, by which number the width is divided.
_AROUND = (5, 3, 3)
# Passes along the whole motion, each at the factor that the peaks of the last one ask for, and the
# change of the factor, relative, below which there are no more.
_PASSES, _SETTLED = 5, 1e-6

_NO_FACTOR = (
    'No time factor makes the motion keep its limits: at every speed another one is exceeded. '
    'Change the path or the limits.'
)


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


def knots_of(motion: TimedMotion) -> Array | None:
    """Read the times (N,) between which a motion is smooth, its `times`, if it has them [s].

    Parameters
    ----------
    motion : function of time

    Returns
    -------
    ndarray, shape (N,), or None
        Increasing, with start and end; None if it has no array `times`.
    """
    times = getattr(motion, 'times', None)
    if (
        not isinstance(times, np.ndarray)
        or times.ndim != 1
        or times.dtype.kind not in 'fiu'
    ):
        return None
    ends = float(motion.start_time), float(motion.end_time)
    inside = times[(times > ends[0]) & (times < ends[1])]
    return np.unique(np.concatenate((ends, inside)))


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


@dataclass(frozen=True)
class StretchedMotion:
    """A motion that is played with a time factor, from the same start time."""

    motion: TimedMotion
    """Function of time, such as a `MotionSpline`."""
    factor: float
    """Above zero; MotionError if it is not."""

    def __post_init__(self) -> None:
        factor = checked_number('The time factor', self.factor, MotionError, above=0.0)
        object.__setattr__(self, 'factor', factor)

    @property
    def start_time(self) -> float:
        """Time at which it begins [s]."""
        return self.motion.start_time

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""
        return self.start_time + self.duration

    @property
    def duration(self) -> float:
        """Time that it takes [s]."""
        return self.factor * (self.motion.end_time - self.motion.start_time)

    @property
    def times(self) -> Array:
        """Times of its knots [s]: those of the motion, or only start and end if it has none.

        Returns
        -------
        ndarray, shape (N,)
            Increasing.
        """
        knots = knots_of(self.motion)
        if knots is None:
            return np.array([self.start_time, self.end_time])
        return self.start_time + self.factor * (knots - self.start_time)

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at given times; see `MotionSpline`.

        Parameters
        ----------
        t : array-like, shape (...)
            Times from `start_time` to `end_time` [s].
        highest_derivative : int
            Time derivatives that are wanted.

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1, n)
            [rad/s^k] or [m/s^k].
        """
        offset = (real_numbers(t, 't') - self.start_time) / self.factor
        # The last time must not end up behind the end by rounding.
        time = self.start_time + offset
        end = self.motion.end_time
        time = np.where(np.abs(time - end) <= 4.0 * np.spacing(abs(end)), end, time)
        return stretched(self.motion(time, highest_derivative), self.factor)


class Limiting(NamedTuple):
    """What would exceed its limit first if the motion were faster."""

    quantity: str
    """As in `hodyn_ros.model.limits` and `hodyn_ros.actuators.limits`."""
    name: str
    """Name of the joint or motor."""
    sample: int
    """Of a function of time, the nearest of the equal steps."""
    value: float
    """At the factor."""
    limit: float
    """With its sign."""
    time: float | None = None
    """Of a function of time [s]."""


class UniformScaling(NamedTuple):
    """How much slower, or faster, a motion is to be played."""

    factor: float
    """Smallest time factor c of q(t / c) from which on all larger ones keep the limits too; zero
    if nothing limits it. If slow motions do not keep them (`slower_is_kept`), the smallest one of
    all."""
    limiting: Limiting | None
    """None if nothing limits the speed."""
    intervals: FactorIntervals
    """All factors with which the limits are kept: from, to; increasing."""

    @property
    def slower_is_kept(self) -> bool:
        """Whether the limits are kept with every factor that is larger.

        Returns
        -------
        bool
            From `factor` on; else slow motions, such as standing still, exceed a limit.
        """
        return self.intervals[-1] == (self.factor, np.inf)

    @property
    def is_kept(self) -> bool:
        """Whether the motion keeps the limits as it is given."""
        return any(low <= 1.0 <= high for low, high in self.intervals)


def uniform_scaling(
    model: RobotModel,
    motion: ArrayLike | TimedMotion,
    limits: MotionLimits | None = None,
    *,
    wrench: Wrench | Sequence[Wrench] | None = None,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
    samples: int = SAMPLES,
    near: float | None = None,
) -> UniformScaling:
    """Smallest uniform time factor with which a motion keeps its limits.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (N, K, n), or function of time
        Samples with their time derivatives, see `inverse_dynamics`; K >= 4 for limits of the jerk
        and of the torque rate, K >= 5 for its derivative and the torque of motors behind springs,
        K >= 6 for the torque rate of these. A function of time is examined between its knots, an
        array `times`, if it has some; without, what is shorter than the steps of `samples` may
        stay unseen.
    limits : MotionLimits, optional
        By default those of the model.
    wrench : Wrench or sequence of Wrench, optional
        At these samples; taken as a function of the place on the path. For a function of time one
        that is the same everywhere.
    actuators, motor_limits : Actuators and MotorLimits, optional
        Without damping, because then the deflection depends on the past.
    stiffness : mapping of joint name to array-like, shape (N, S), optional
        For actuators that choose it, at samples, see `motor_motion`; a function of the place on
        the path.
    samples : int
        Number of times in equal steps at which a function of time is examined besides its
        segments.
    near : float, optional
        A factor at which alone a function of time is examined. Whether it keeps the limits is
        exact; the factor found is that of the places where it exceeds them or comes closest.

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If no factor makes the motion keep its limits: a position limit is exceeded, or gravity and
        wrenches alone ask for too much torque.
    MotionError
        If the motion cannot be used, or a limit needs a derivative that it does not have.
    WrenchError, ActuatorError
        If wrench or actuators do not fit.

    Notes
    -----
    The limits are kept at the factor, up to the rounding of `find_violations`. With friction or
    actuators the factors are searched, and an interval narrower than 6 % may stay unseen.
    """
    limits = motion_limits(model) if limits is None else limits
    motor_limits = _checked_drives(actuators, motor_limits, stiffness)
    series = {
        name: np.asarray(values, dtype=np.float64)
        for name, values in (stiffness or {}).items()
    }
    wrenches = (wrench,) if isinstance(wrench, Wrench) else wrench or ()
    played = partial(_Played, model, limits, wrenches, actuators, motor_limits, series)
    if not callable(motion):
        return _scaling_of(played(motion))
    highest = 3 + bool(np.isfinite(limits.effort_ddot).any()) if actuators is None else 5
    return _scaling_along(model, limits, motion, highest, played, samples, near)


def _scaling_along(
    model: RobotModel,
    limits: MotionLimits,
    motion: TimedMotion,
    highest: int,
    played: Callable[[Array, Array], _Played],
    samples: int,
    near: float | None,
) -> UniformScaling:
    """Scaling of a function of time by its derivatives up to `highest`."""
    if near is not None:
        near = checked_number('near', near, MotionError, above=0.0)
    count = checked_number('samples', samples, MotionError, least=2, whole=True)
    times = np.linspace(float(motion.start_time), float(motion.end_time), int(count))
    refuse_extremes(model, limits, motion)

    def examined(t: Array) -> _Played:
        return played(motion(t, highest), t)

    found = _scaling_in_time(examined, times, knots_of(motion), near)
    if found.limiting is None:
        return found
    assert found.limiting.time is not None
    nearest = int(np.abs(times - found.limiting.time).argmin())
    return found._replace(limiting=found.limiting._replace(sample=nearest))


def _checked_drives(
    actuators: Actuators | None,
    motor_limits: MotorLimits | None,
    stiffness: Mapping[str, ArrayLike] | None,
) -> MotorLimits | None:
    """Limits of the motors, if there are actuators, whose deflections must not have a past.

    Returns
    -------
    MotorLimits or None
        By default such that the motors have no limits; None without actuators.

    Raises
    ------
    ActuatorError
        If there are limits or a stiffness without actuators, or joints have dampers.
    """
    if actuators is None:
        if motor_limits is not None or stiffness is not None:
            raise ActuatorError('motor_limits or stiffness are given without actuators.')
        return None
    from hodyn_ros.actuators.limits import motor_limits as no_motor_limits

    dampers = [item.name for item in actuators.driven if item.actuator.needs_times]
    if dampers:
        raise ActuatorError(
            f'The deflection of joints with damping ({listed(dampers)}) depends on the past, '
            'so no factor scales it; expected actuators without damping.'
        )
    return motor_limits or no_motor_limits(actuators)


def refuse_extremes(model: RobotModel, limits: MotionLimits, motion: TimedMotion) -> None:
    """Refuse a function of time that leaves its position limits anywhere, if it can tell.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
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
        for worst, joint in LimitedJoints(model, limits).beyond(lowest, highest):
            raise _out_of_range(worst, float(times[worst.sample][joint]))


def _out_of_range(worst: Violation, time: float | None) -> ScalingError:
    """Refusal of a position at a sample or time."""
    place = f'sample {worst.sample}' if time is None else f'{time:.6g} s'
    return ScalingError(
        f'Joint {worst.joint_name!r} has the position {worst.value:.6g} at {place} beyond its '
        f'limit {worst.limit:.6g}: no time factor changes that; change the path.',
        limiting=Limiting(
            'position', worst.joint_name, worst.sample, worst.value, worst.limit, time
        ),
    )


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
    model : RobotModel
    limits : MotionLimits
    wrenches : sequence of Wrench
        At the samples.
    actuators, motor_limits : Actuators and MotorLimits, or None
    stiffness : mapping of str to ndarray, shape (N, S)
        By the joint.
    motion : array-like, shape (N, K, n)
        At the rate one.
    times : ndarray, shape (N,), optional
        Of the samples [s].

    Raises
    ------
    MotionError
        If the motion has no samples, or too few orders for a limit.
    ScalingError
        If samples leave their position limits.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        wrenches: Sequence[Wrench],
        actuators: Actuators | None,
        motor_limits: MotorLimits | None,
        stiffness: Mapping[str, Array],
        motion: ArrayLike,
        times: Array | None = None,
    ) -> None:
        motion = checked_motion(model, motion)
        if motion.ndim != 3 or not len(motion):
            raise MotionError(
                f'The motion has shape {motion.shape}, expected (N, K, {model.n_joints}) with '
                'N >= 1.'
            )
        joints = LimitedJoints(model, limits)
        self._names, self._of_all = joints.names, joints.motion(motion)
        self._all_limits, self.times = joints.limits, times
        positions, bounds = self._of_all[:, 0], joints.limits[:2]
        for worst in worst_violations('position', joints.names, positions, *bounds):
            raise _out_of_range(
                worst, None if times is None else float(times[worst.sample])
            )
        self._model, self._actuators, self._stiffness = model, actuators, stiffness
        self._motion = motion
        self._wrenches = wrenches
        self._once = rigid_efforts(model, motion, wrenches)

        self.labels: list[tuple[str, str]] = []
        """Quantity and joint or motor of each column."""
        self._columns: dict[str, list[tuple[int, Indices | slice, Array]]] = {}
        self.limit = np.zeros(0)
        """Largest magnitude of each column, shape (C,)."""
        # Where the limit of a velocity depends on the position, its share of that is limited.
        falls = np.isfinite(joints.limits.deceleration_limit)
        self._approach = self._of_all[:, :0]
        if falls.any() and motion.shape[1] > 1:
            use = self._refuse_standing(velocity_use(joints.limits, self._of_all))
            self._approach = np.stack((np.zeros_like(use), use), axis=1)
        velocity = joints.limits.velocity
        constant = joints.limits._replace(velocity=np.where(falls, np.inf, velocity))
        share = joints.limits._replace(velocity=np.where(falls, 1.0, np.inf))
        known = {'motion': constant, 'approach': share, 'effort': limits}
        orders = self._orders()
        for quantity, kind, order in (
            *LIMITED[:3],
            ('velocity', 'approach', 1),
            *LIMITED[3:],
        ):
            if kind in orders:
                limit = np.asarray(getattr(known.get(kind, motor_limits), quantity))
                self._limit(quantity, kind, order, orders[kind], limit)

    def _orders(self) -> dict[str, int]:
        """How many orders each kind of series has."""
        K = self._motion.shape[1]
        orders = {'motion': K, 'approach': self._approach.shape[1], 'effort': K - 2}
        if self._actuators is not None:
            # Of one sample without torques, which every spring can have.
            for kind, series in self._motors(
                0.0 * self._motion[:1], 0.0 * self._once[:1], 1.0
            ):
                orders[kind] = series.shape[1]
        return orders

    def _limit(
        self, quantity: str, kind: str, order: int, orders: int, limit: Array
    ) -> None:
        """Add columns for a quantity where it has a limit."""
        # Springs cannot be deflected beyond their range, whether there are limits or not.
        columns = np.flatnonzero(np.isfinite(limit) | (quantity == 'deflection'))
        if not len(columns):
            return
        if order >= orders:
            K = self._motion.shape[1]
            raise MotionError(
                f'{quantity} is limited, which needs a motion with K >= {K + order + 1 - orders} '
                f'derivatives (the zeroth included), but K is {K}; give more derivatives, or '
                'limits without it.'
            )
        columns = columns[limit[columns] > 0.0]
        self._refuse_zero(quantity, kind, order, limit)
        names = self._names
        if self._actuators is not None and kind in ('position', 'torque'):
            names = self._actuators.motor_names
        self.labels += [(quantity, names[column]) for column in columns]
        self.limit = np.append(self.limit, limit[columns])
        with_slack = limit[columns] + _ROUNDING * (limit[columns] + 1.0)
        # All of them need no copy.
        chosen = slice(None) if len(columns) == len(limit) else columns
        self._columns.setdefault(kind, []).append((order, chosen, with_slack))

    def _refuse_standing(self, use: Array) -> Array:
        """Shares (N, m) of velocities, unless a joint moves where it may not towards its limit."""
        if not np.isinf(use).any():
            return use
        sample, joint = np.argwhere(np.isinf(use))[0].tolist()
        value, side = float(self._of_all[sample, 1, joint]), int(use[sample, joint] > 0.0)
        end = float(self._all_limits[side][joint])
        raise self._never(
            'velocity',
            joint,
            sample,
            value,
            f'0, so near to the limit {end:.6g} of its position',
        )

    def _refuse_zero(self, quantity: str, kind: str, order: int, limit: Array) -> None:
        """Refuse motion where a limit is zero; what is at rest keeps it at any rate."""
        series = dict(motion=self._of_all, effort=self._once).get(kind)
        columns = np.flatnonzero(limit == 0.0)
        if series is None or not len(columns):
            return
        if kind == 'effort' and self._model.friction:
            series = series + friction_efforts(self._model, self._motion)
        values = np.abs(series[:, order, columns])
        sample, column = divmod(int(values.argmax()), len(columns))
        if values[sample, column] > _ROUNDING:
            joint = int(columns[column])
            value = float(series[sample, order, joint])
            raise self._never(quantity, joint, sample, value, '0')

    def _never(
        self, quantity: str, joint: int, sample: int, value: float, limit: str
    ) -> ScalingError:
        """Refusal of what has a limit of zero at a sample, said with that limit."""
        time = None if self.times is None else float(self.times[sample])
        place = f'sample {sample}' if time is None else f'{time:.6g} s'
        return ScalingError(
            f'No time factor makes the motion keep its limits: at {place}, joint '
            f'{self._names[joint]!r} has {quantity} = {value:.6g}, and its limit is {limit}. '
            'Change the path, or write its true limit.',
            limiting=Limiting(quantity, self._names[joint], sample, value, 0.0, time),
        )

    def told(self, sample: int, column: int, value: float) -> tuple[float, float]:
        """Value and limit of a column at a sample in the unit of the quantity.

        Parameters
        ----------
        sample, column : int
        value : float
            As of `values`.

        Returns
        -------
        value, limit : float
        """
        quantity, name = self.labels[column]
        limit = float(self.limit[column])
        if quantity == 'velocity':
            joint = self._names.index(name)
            if np.isfinite(self._all_limits.deceleration_limit[joint]):
                ranges = velocity_range(self._all_limits, self._of_all[sample, 0])
                limit = float(np.abs(ranges[int(value > 0.0)][joint]))
                value *= limit
        return value, float(np.copysign(limit, value))

    @cached_property
    def _dynamic(self) -> Array:
        """What the motion needs of the efforts, at the rate one."""
        twice = [
            replace(item, values=at_rate(np.asarray(item.values), 2.0))
            for item in self._wrenches
        ]
        # At the rate 2, s^-m Q^(m) is G_m + 4 D_m.
        at_two = at_rate(rigid_efforts(self._model, at_rate(self._motion, 2.0), twice), 0.5)
        return np.asarray((at_two - self._once) / 3.0)

    def _series(self, s: float) -> Iterator[tuple[str, Array]]:
        """Motion and efforts of joints and motors at a rate, what is cheap first."""
        s = max(s, _SLOWEST)
        motion = self._of_all if s == 1.0 else at_rate(self._of_all, s)
        yield 'motion', motion
        if self._approach.size:
            yield 'approach', self._approach * s
        motion = motion[..., : self._model.n_joints]
        effort = self._once
        if s != 1.0:
            effort = at_rate(effort + (s * s - 1.0) * self._dynamic, s)
        if self._model.friction:
            effort = effort + friction_efforts(self._model, motion)
        yield 'effort', effort
        if self._actuators is not None:
            yield from self._motors(motion, effort, s)

    def _motors(
        self, motion: Array, effort: Array, s: float
    ) -> Iterable[tuple[str, Array]]:
        """Series of the motors, by the names of the fields of `MotorMotion`, at a rate s."""
        from hodyn_ros.actuators.motors import motor_motion

        assert self._actuators is not None
        stiffness = {
            name: at_rate(values[: len(motion), :, None], s)[..., 0]
            for name, values in self._stiffness.items()
        }
        motors = motor_motion(
            self._actuators, motion, effort, stiffness=stiffness, order=None
        )
        return motors._asdict().items()

    def exceeded(self) -> list[Bands] | None:
        """Rates at which limits are exceeded, in closed form.

        Returns
        -------
        list of (ndarray, ndarray), or None
            From and to, each of any shape; None with friction or actuators, whose laws need not be
            polynomials of the rate.
        """
        if self._model.friction or self._actuators is not None:
            return None
        bands = []
        for kind, series in (('motion', self._of_all), ('approach', self._approach)):
            for order, columns, limit in self._columns.get(kind, ()):
                size = np.maximum(np.abs(series[:, order, columns]), _TINY)
                first = (limit / size) ** (1.0 / order)
                bands.append((first, np.full_like(first, np.inf)))
        for order, columns, limit in self._columns.get('effort', ()):
            dynamic = self._dynamic[:, order, columns]
            weight = self._once[:, order, columns] - dynamic
            bands += _bands(order, weight, dynamic, limit)
        return bands

    def values(self, s: float) -> Array:
        """Values (N, C) at a rate; raises DeflectionError where a spring has none.

        Parameters
        ----------
        s : float
            Rate; zero: held still.

        Returns
        -------
        ndarray, shape (N, C)
            In the units of the limits.

        Raises
        ------
        DeflectionError
            If a spring cannot have its torque.
        """
        blocks = [
            series[:, order, columns]
            for kind, series in self._series(s)
            for order, columns, _ in self._columns.get(kind, ())
        ]
        return np.concatenate([np.empty((len(self._motion), 0)), *blocks], axis=1)

    def is_exceeded(self, s: float) -> bool:
        """Whether a limit is exceeded at a rate, or a spring cannot have its torque.

        Parameters
        ----------
        s : float
            Rate; zero: held still.

        Returns
        -------
        bool
            Beyond the limit by more than rounding.
        """
        try:
            return any(
                bool((np.abs(series[:, order, columns]) > limit).any())
                for kind, series in self._series(s)
                for order, columns, limit in self._columns.get(kind, ())
            )
        except DeflectionError:
            return True


def _scaling_of(played: _Played) -> UniformScaling:
    """Smallest time factor with which samples keep their limits."""
    intervals = _kept_intervals(played)
    factor = _smallest(intervals)
    limiting = _limiting(played, factor) if factor > 0.0 else None
    return UniformScaling(factor, limiting, intervals)


def _kept_intervals(
    played: _Played, smallest: float = 0.0, count: int = _RATES
) -> FactorIntervals:
    """All time factors with which samples keep their limits; wrong below the `smallest` one.

    Parameters
    ----------
    played : _Played
    smallest : float
        Factor below which nothing matters; zero: look at all.
    count : int
        Number of rates that are tried between the slowest and the fastest in a search.

    Returns
    -------
    tuple of (float, float)
        Time factors, from and to, increasing; away from the edges by more than rounding.

    Raises
    ------
    ScalingError
        If there is no factor.
    """
    bands = played.exceeded()
    kept = _searched(played, smallest, count) if bands is None else _between(bands)
    if not kept:
        raise _no_factor(played)
    inside = [(low * (1.0 + _EDGE), high * (1.0 - _EDGE)) for low, high in reversed(kept)]
    return tuple((1.0 / high, 1.0 / low if low > 0.0 else np.inf) for low, high in inside)


def _bands(order: int, weight: Array, dynamic: Array, limit: Array) -> list[Bands]:
    """Rates at which |s^order (weight + s^2 dynamic)| is above a limit, in closed form.

    With w of the sign that makes b = |dynamic|, it is w + b s^2 times s^order that rises above the
    limit for good, and before may fall below the negative limit for a while.

    Parameters
    ----------
    order : int
        0, 1 or 2: of the derivative of the effort.
    weight, dynamic : ndarray, shape (N, C)
        What does not, and what does depend on the speed, at the rate one.
    limit : ndarray, shape (C,)
        Largest magnitude.

    Returns
    -------
    list of (ndarray, ndarray)
        The band below the negative limit, and that above the limit, (N, C) each.
    """
    b = np.maximum(np.abs(dynamic), _TINY)
    w = weight * np.copysign(1.0, dynamic)
    if order == 0:
        first, back = np.zeros_like(b), np.sqrt(np.maximum(-limit - w, 0.0) / b)
        last = np.sqrt(np.maximum(limit - w, 0.0) / b)
    elif order == 1:
        # The roots of a cubic without a square, by the cosine of three times an angle.
        c = 2.0 * np.sqrt(np.maximum(np.abs(w), _TINY) / (3.0 * b))
        ratio = 4.0 * limit / (b * c**3)
        angle = np.arcsin(np.minimum(ratio, 1.0)) / 3.0
        first, back = c * np.sin(angle), c * np.cos(np.pi / 6.0 + angle)
        falling = c * np.cosh(np.arccosh(ratio + 0j) / 3.0).real
        last = np.where(w < 0.0, falling, c * np.sinh(np.arcsinh(ratio) / 3.0))
    else:
        half, share = 0.5 * np.maximum(np.abs(w), _TINY) / b, limit / b
        larger = half + np.sqrt(np.maximum(half**2 - share, 0.0))
        first, back = np.sqrt(share / larger), np.sqrt(larger)
        larger = half + np.sqrt(half**2 + share)
        last = np.sqrt(np.where(w < 0.0, larger, share / larger))
    return [(np.where(w < 0.0, first, np.inf), back), (last, np.full_like(b, np.inf))]


def _between(bands: Sequence[Bands]) -> list[tuple[float, float]]:
    """Rates from and to, increasing, that are in none of the bands of exceeded limits."""
    first = np.concatenate([np.ravel(low) for low, _ in bands] or [np.zeros(0)])
    last = np.concatenate([np.ravel(high) for _, high in bands] or [np.zeros(0)])
    counts = (last > first * (1.0 + _WIDTH)) & (first < _TRIED[-1])
    order = np.argsort(first[counts])
    first = np.append(first[counts][order], np.inf)
    done = np.maximum.accumulate(np.append(0.0, last[counts][order]))
    free = first > done
    return list(zip(done[free].tolist(), first[free].tolist()))


def _searched(played: _Played, smallest: float, count: int) -> list[tuple[float, float]]:
    """Rates from and to, increasing, that keep all limits, by trial and by halving to rounding."""
    slowest, fastest = _TRIED[[0, -1]]
    if smallest > 0.0:
        slowest, fastest = _RANGE / smallest, 1.0 / smallest
    elif len(kept := np.flatnonzero([not played.is_exceeded(s) for s in _TRIED])):
        fastest = _TRIED[min(kept[-1] + 1, len(_TRIED) - 1)]
        slowest = _RANGE * fastest
    else:
        count = _ALL_RATES
    rates = np.append(0.0, np.geomspace(slowest, fastest, count))
    exceeded = np.array([played.is_exceeded(s) for s in rates])
    edges = [] if exceeded[0] else [0.0]
    for i in np.flatnonzero(exceeded[1:] != exceeded[:-1]).tolist():
        low, high = rates[i], rates[i + 1]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            is_same = played.is_exceeded(middle) == exceeded[i]
            low, high = (middle, high) if is_same else (low, middle)
        edges.append(float(high if exceeded[i] else low))  # the side that is kept
    if len(edges) % 2:
        edges.append(np.inf)
    return list(zip(edges[::2], edges[1::2]))


def _in_both(first: FactorIntervals, second: FactorIntervals) -> FactorIntervals:
    """Factors that are in both of two sets."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in first for b in second)
    common = tuple(
        sorted((low, high) for low, high in pairs if high > low * (1.0 + _NARROWEST))
    )
    if not common:
        raise ScalingError(_NO_FACTOR)
    return common


def _smallest(intervals: FactorIntervals) -> float:
    """Smallest factor that is connected to the slow ones; if they are not kept, of all."""
    slowest = intervals[-1]
    return slowest[0] if np.isinf(slowest[1]) else intervals[0][0]


def _limiting(played: _Played, factor: float) -> Limiting:
    """Find what would be exceeded first with a smaller factor."""
    s = 1.0 / factor
    values = played.values(s)
    try:
        ratio = np.abs(played.values(s * (1.0 + _FASTER))) / played.limit
    except DeflectionError as error:
        # A spring is at the end of its range.
        sample, column = error.sample[0], played.labels.index(('deflection', error.joint))
        value = limit = float(values[sample, column])
    else:
        sample, column = divmod(int(ratio.argmax()), ratio.shape[1])
        value, limit = played.told(sample, column, float(values[sample, column]))
    time = None if played.times is None else float(played.times[sample])
    return Limiting(*played.labels[column], sample, value, limit, time)


def _no_factor(played: _Played) -> ScalingError:
    """Error that says why no factor exists."""
    try:
        values = played.values(0.0)
    except DeflectionError as error:
        return ScalingError(
            f'No time factor makes the motion possible. Held still: {error}'
        )
    if not played.is_exceeded(0.0):
        return ScalingError(_NO_FACTOR)
    sample, column = divmod(int((np.abs(values) / played.limit).argmax()), values.shape[1])
    (quantity, name), value = played.labels[column], float(values[sample, column])
    time = None if played.times is None else float(played.times[sample])
    place = f'sample {sample}' if time is None else f'{time:.6g} s'
    limit = float(played.limit[column])
    return ScalingError(
        f'No time factor makes the motion keep its limits: to hold still at {place}, {name!r} '
        f'already needs {quantity} = {abs(value):.6g}, more than {limit:.6g}. Change the path, '
        'the load or the limits.',
        limiting=Limiting(
            quantity, name, sample, value, float(np.copysign(limit, value)), time
        ),
    )


def _scaling_in_time(
    examined: Callable[[Array], _Played],
    times: Array,
    knots: Array | None,
    near: float | None,
) -> UniformScaling:
    """Smallest time factor of a function of time, examined at these times and at its peaks.

    Also at places of every segment between its knots (L + 1,), if it has some.

    Parameters
    ----------
    examined : callable
        From times (N,) to the limited quantities there.
    times : ndarray, shape (N,)
        [s]
    knots : ndarray, shape (L + 1,), or None
        [s]
    near : float or None
        Factor at which alone it is examined.

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If there is no factor.
    """
    if knots is not None:
        places = int(np.clip(_MOST_PLACES // (len(knots) - 1), _FEWEST_PLACES, _PLACES))
        fractions = np.arange(places - 1) / (places - 1)
        inside = knots[:-1, None] + np.diff(knots)[:, None] * fractions
        # Derivatives may jump at a knot, so that it counts twice: with the last number before it.
        before = np.maximum(np.nextafter(knots[1:], -np.inf), knots[:-1])
        every = np.concatenate((times, inside.ravel(), before, knots[-1:]))
        times = np.unique(every[(every >= times[0]) & (every <= times[-1])])
    # Each block knows a neighbour on both sides, to see which of its samples are peaks.
    starts = range(0, len(times), _BLOCK)
    blocks = [times[max(start - 1, 0) : start + _BLOCK + 1] for start in starts]
    of_block = lru_cache(maxsize=_REMEMBERED)(lambda number: examined(blocks[number]))

    intervals: FactorIntervals = ((0.0, np.inf),)
    for number in range(len(blocks) if near is None else 0):
        more = _kept_intervals(of_block(number), intervals[0][0], _FEW_RATES)
        intervals = _in_both(intervals, more)
    for _ in range(_PASSES if near is None else 1):
        factor = _smallest(intervals) if near is None else near
        if factor == 0.0:
            return UniformScaling(factor, None, intervals)
        s = 1.0 / factor
        peaks = np.concatenate([_peaks(of_block(k), s) for k in range(len(blocks))])
        highest = np.argsort(-peaks[:, 4], kind='stable')[:_MOST_PEAKS]
        peaks = peaks[np.union1d(highest, peaks[:, 3].argmax())]
        closest = _closed_in(examined, peaks, s, (times[0], times[-1]))
        for part in np.array_split(closest, -(-len(closest) // _BLOCK)):
            intervals = _in_both(
                intervals, _kept_intervals(examined(part), intervals[0][0])
            )
        if abs(_smallest(intervals) - factor) <= _SETTLED * factor:
            break
    factor = _smallest(intervals)
    limiting = _limiting(examined(closest), factor) if factor > 0.0 else None
    return UniformScaling(factor, limiting, intervals)


def _peaks(played: _Played, s: float) -> Array:
    """Peaks in time of what may exceed its limit next to them, and the highest value, (P, 5).

    Column, time, distance to the farther neighbour, ratio to the limit, how large it may be there.
    """
    assert played.times is not None
    steps = np.concatenate(([0.0], np.diff(played.times), [0.0]))
    width = np.maximum(steps[:-1], steps[1:])
    ratio = np.abs(played.values(s)) / played.limit
    padded = np.pad(ratio, ((1, 1), (0, 0)), mode='edge')
    before, behind = padded[:-2], padded[2:]
    # A parabola through three samples rises above the middle one by less than an eighth of what
    # that one stands above both; the whole of it leaves room for narrower peaks.
    possible = ratio + (ratio - np.minimum(before, behind))
    is_peak = (ratio >= before) & (ratio >= behind) & (possible > 1.0)
    is_peak.flat[ratio.argmax()] = True
    sample, column = np.nonzero(is_peak)
    values = ratio[sample, column], possible[sample, column]
    return np.column_stack((column, played.times[sample], width[sample], *values))


def _closed_in(
    examined: Callable[[Array], _Played], peaks: Array, s: float, ends: tuple[float, float]
) -> Array:
    """Find times of peaks: the highest of many places, and then the vertex of a parabola.

    Parameters
    ----------
    examined : callable
        From times (N,) to the limited quantities there.
    peaks : ndarray, shape (P, 5)
        As `_peaks` finds them.
    s : float
        Rate at which they are.
    ends : (float, float)
        Of the motion [s].

    Returns
    -------
    ndarray
        Different times, increasing [s].
    """
    result = []
    for part in np.array_split(peaks, -(-len(peaks) * (2 * _AROUND[0] + 1) // _BLOCK)):
        rows, column = np.arange(len(part)), part[:, 0].astype(np.intp)
        centre, width = part[:, 1], part[:, 2].copy()
        for count in _AROUND:
            width /= count
            offsets = np.arange(-count, count + 1.0)
            around = np.clip(centre[:, None] + width[:, None] * offsets, *ends)
            try:
                values = np.abs(examined(around.ravel()).values(s))
            except DeflectionError:
                # Somewhere around a spring is beyond its range, so all of this matters.
                result.append(around.ravel())
                break
            values = values.reshape(*around.shape, -1)[rows, :, column]
            best = values.argmax(axis=1)
            middle = np.clip(best, 1, 2 * count - 1)
            before, highest, behind = (values[rows, middle + k] for k in (-1, 0, 1))
            bend = 2.0 * highest - before - behind
            vertex = 0.5 * (behind - before) / np.where(bend > 0.0, bend, np.inf)
            is_inside = (best == middle) & (bend > 0.0)
            move = np.where(is_inside, vertex, best - middle)
            centre = np.clip(around[rows, middle] + width * move, *ends)
        result.append(centre)
    return np.unique(np.concatenate(result))
