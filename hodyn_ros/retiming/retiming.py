"""The fastest smooth motion on a given path under limits up to jerk and torque rate, and beyond.

A law of class C4 from rest to rest is found for every part of the path that moves. Averaged over a
few periods it becomes what joint_trajectory_controller executes, which is checked by inverse
dynamics and slowed down by what is missing. See doc/time_scaling.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.checks import checked_number
from hodyn_ros.display import shown
from hodyn_ros.errors import MotionError, ScalingError, TrajectoryError, UnlimitedError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.retiming.path import Drives, Limited, PathLimits, RestingPath, moving_parts
from hodyn_ros.retiming.scaling import (
    Limiting,
    TimedMotion,
    UniformScaling,
    knots_of,
    refuse_extremes,
    uniform_scaling,
)
from hodyn_ros.trajectory.jtc import JtcMotion, spline_of_degree_5
from hodyn_ros.typing import Array
from hodyn_ros.units import NANOSECONDS

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits

SeriesOf = Callable[[Array, int], Array]
"""The place on the path and its derivatives, from times (N,) and a number of them."""

RATE = 1000.0
"""Knots per second of what is retimed [Hz]: the period of many controllers."""
WINDOW = 0.008
"""Time over which the motion is averaged, which it takes longer [s]."""
RISE_TIME = 0.02
"""Time that a torque rate takes at least from zero to its limit, unless its own rate is limited:
six time constants of a torque control of 50 Hz [s]."""
MOST_INTERVALS = 4000
"""Between the knots of a time law: memory and time grow with them, the motion hardly changes."""

# Intervals between the knots of a time law by default: on any path, on each of its segments, and
# on very long paths; and on one of many parts at least, of which very many share some.
_FEWEST_INTERVALS, _ON_SEGMENT, _MOST_INTERVALS, _ON_PART = 128, 4, 512, 64
_ON_ALL_PARTS = 1024
# A law that has to be slowed down by more is looked for once more with so many times as many.
_WASTED, _FINER = 1.01, 4

# Periods that the spline of degree 5 adds, without a further average, and how many of its
# coefficients are equal where it rests up to the snap.
_OF_SPLINE, _AT_REST = 4, 5
# Samples from which on the default rate falls, and that nobody wants.
_MANY_SAMPLES, _MOST_SAMPLES = 20_000, 500_000
# Rounds in which a motion is slowed down until it keeps its limits.
_ROUNDS = 30


@shown
class Retimed(NamedTuple):
    """A motion along a path that keeps its limits, and how it compares."""

    motion: JtcMotion
    """From rest to rest, of class C4, with knots one period apart, whose positions, velocities and
    accelerations joint_trajectory_controller executes exactly so."""
    parameter: SeriesOf
    """From times (N,) of the motion and a number K to the place on the path, sigma, and its time
    derivatives, shape (N, K)."""
    duration: float
    """[s]"""
    uniform_duration: float
    """Of the same path if each moving part has a constant speed of the parameter, as fast as the
    limits allow [s]. Not averaged, with the same standstills."""
    repair: float
    """Largest time factor by which a law was slowed down for the exact check and whole periods."""
    limiting: Limiting
    """What would exceed its limit first if the motion were scaled to be faster; its time is that
    of the motion."""
    deviation: Array
    """Largest distance of each joint from the path, which averaging causes, shape (n,)."""
    standstill: float
    """Time for which it stands still where the path does, with all parts [s]."""
    limits: MotionLimits
    """That it keeps: those that were given, and limits of the second derivative of the torque by
    `rise_time`."""


def retime(
    model: RobotModel,
    path: TimedMotion,
    limits: MotionLimits | None = None,
    *,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    intervals: int | None = None,
    rate: float | None = None,
    window: float = WINDOW,
    rise_time: float = RISE_TIME,
    keep_standstills: bool = True,
    shortest: float = 0.0,
) -> Retimed:
    """Find a fast motion of class C4 along a path that keeps its limits.

    Parameters
    ----------
    model : RobotModel
    path : function of the path parameter
        Such as a `MotionSpline`; its times are the parameter sigma. Of class C4.
    limits : MotionLimits, optional
        By default those of the model; see `motion_limits` for those that it may lack:
        acceleration, jerk, torque rate and the derivative of that.
    actuators, motor_limits : Actuators and MotorLimits, optional
        Without damping. With limits of motors the window may become longer.
    intervals : int, optional
        Between the knots of the time law, at most 4000: more are slower to compute and give a
        faster motion. By default 128, or four on each segment up to 512, and four times as many
        where `Retimed.repair` would be more than 1.01; several parts of a path share them.
    rate : float, optional
        Knots of the motion per second [Hz], see `Retimed.motion`. By default 1000, or as many as
        make 20,000 knots on a longer motion.
    window : float
        Time over which the motion is averaged [s], four periods at least; each moving part takes
        so much longer. Longer ones bound snap and second derivative of the torque more.
    rise_time : float
        Time that the torque rate of a joint takes at least from zero to its limit [s], where the
        limits have none of its second derivative (`effort_ddot`); zero: such joints have none.
    keep_standstills : bool
        Where the path stands still on whole segments (its parameter is time), the motion stands
        as long; otherwise it comes to rest there for an instant.
    shortest : float
        Duration that the motion has at least [s]; moving parts are slowed down alike.

    Returns
    -------
    Retimed

    Raises
    ------
    ScalingError
        If the path keeps its limits at no speed (positions, weight), or nothing limits its speed.
    TrajectoryError
        If the path does not move, is not of class C4 or does not suit the model, or an option
        cannot be used.
    ActuatorError
        If the actuators do not fit, see `uniform_scaling`.

    Notes
    -----
    The motion is checked as it is executed, by exact inverse dynamics between its knots. Each law
    is a local optimum; but for the window it is never slower than the uniform one. Sharp Coulomb
    friction jumps where a joint turns back, which is part of no torque rate.
    """
    limits = motion_limits(model) if limits is None else limits
    _check_options(intervals, rate, window, rise_time, shortest)
    limits = _with_rise_time(limits, rise_time)
    drives: dict[str, Any] = {'actuators': actuators, 'motor_limits': motor_limits}
    scaling = partial(uniform_scaling, model, limits=limits, **drives)
    work = _Work(model, path, limits, actuators, motor_limits, scaling)
    try:
        return work.retimed(intervals, rate, window, keep_standstills, shortest)
    except MotionError as error:
        raise TrajectoryError(f'The path cannot be followed: {error}') from error


def _with_rise_time(limits: MotionLimits, rise_time: float) -> MotionLimits:
    """Limits with one of the second derivative of torques where it was not given."""
    if rise_time == 0.0:
        return limits
    by_default = np.minimum(limits.effort_ddot, limits.effort_dot / rise_time)
    is_given = np.isfinite(limits.effort_ddot)
    return limits._replace(effort_ddot=np.where(is_given, limits.effort_ddot, by_default))


def _check_options(
    intervals: int | None,
    rate: float | None,
    window: float,
    rise_time: float,
    shortest: float,
) -> None:
    """Refuse options of `retime` that cannot be used, with a `TrajectoryError`."""
    if rate is not None:
        checked_number(
            'rate', rate, TrajectoryError, above=0.0, most=NANOSECONDS, unit='Hz'
        )
    checked_number('window', window, TrajectoryError, least=0.0, unit='s')
    if intervals is not None:
        checked_number(
            'intervals',
            intervals,
            TrajectoryError,
            least=1,
            most=MOST_INTERVALS,
            whole=True,
        )
    checked_number('rise_time', rise_time, TrajectoryError, least=0.0, unit='s')
    checked_number('shortest', shortest, TrajectoryError, least=0.0, unit='s')
    _refuse_many(window * (rate or RATE))


def _intervals_of_each(path: TimedMotion, count: int, intervals: int | None) -> int:
    """Intervals between the knots of the law on each of the moving parts of a path."""
    if intervals is None:
        knots = knots_of(path)
        segments = 1 if knots is None else len(knots) - 1
        intervals = int(np.clip(_ON_SEGMENT * segments, _FEWEST_INTERVALS, _MOST_INTERVALS))
    on_part = max(_ON_SEGMENT, min(_ON_PART, _ON_ALL_PARTS // count))
    return min(intervals, max(on_part, intervals // count))


class _Laws(NamedTuple):
    """Laws on a moving part of the path: a fast one, and that with a constant speed."""

    path: RestingPath
    fastest: JtcMotion
    uniform: JtcMotion


class _Part(NamedTuple):
    """A moving part of the path, retimed."""

    path: RestingPath
    law: JtcMotion
    periods: int  # of the law, before it was averaged
    stretch: float  # time factor of the law
    wide: int  # periods over which sigma was averaged, twice
    rows: Array  # positions and sigma, averaged, one period apart
    scaling: UniformScaling


class _Whole(NamedTuple):
    """All parts of the path together; see `Retimed`."""

    motion: JtcMotion
    sigma: SeriesOf
    limiting: Limiting
    repair: float


class _Work(NamedTuple):
    """What is retimed, and what limits it."""

    model: RobotModel
    path: TimedMotion
    limits: MotionLimits
    actuators: Actuators | None
    motor_limits: MotorLimits | None
    scaling: Callable[..., UniformScaling]  # of a motion, by these limits

    def retimed(
        self,
        intervals: int | None,
        rate: float | None,
        window: float,
        keep_standstills: bool,
        shortest: float,
    ) -> Retimed:
        """Motion along the whole path; arguments and errors are those of `retime`."""
        path = self.path
        places = moving_parts(self.model, path)
        refuse_extremes(self.model, self.limits, path)
        share = _intervals_of_each(path, len(places), intervals)
        edges = np.ravel(places)
        ends = [path.start_time, path.end_time] if keep_standstills else edges[[0, -1]]
        standing = np.diff([ends[0], *edges, ends[1]])[::2] * keep_standstills
        standstill = float(standing.sum())
        laws = [self.laws(start, end, share) for start, end in places]
        if rate is None:
            moving = sum(law.fastest.duration for law in laws)
            fewer = 0.9 * _MOST_SAMPLES / (moving + standstill)
            rate = min(RATE, _MANY_SAMPLES / moving, fewer)
        step = round(NANOSECONDS / rate) / NANOSECONDS  # as messages have it
        _refuse_many(standstill / step)
        width = max(1, round(window / step) - _OF_SPLINE + 1)
        finer = None if intervals is not None else _FINER * share
        parts = [self.part(law, step, width, finer) for law in laws]
        whole = self.together(parts, ends, standing, step, width, shortest)
        motion = whole.motion
        sigma = whole.sigma(motion.times, 1)[:, 0]
        passed = np.clip(sigma, path.start_time, path.end_time)
        return Retimed(
            motion,
            whole.sigma,
            motion.duration,
            sum(law.uniform.duration for law in laws) + standstill,
            whole.repair,
            whole.limiting,
            np.abs(motion(motion.times, 0) - path(passed, 0)).max(axis=(0, 1)),
            standstill,
            self.limits,
        )

    def laws(self, start: float, end: float, intervals: int) -> _Laws:
        """Laws with so many intervals on a part of the path.

        Parameters
        ----------
        start, end : float
            Of the part, in sigma.
        intervals : int
            Between the knots of the fast law.

        Returns
        -------
        _Laws

        Raises
        ------
        UnlimitedError
            If nothing limits the speed.
        ScalingError
            If the part keeps its limits at no speed, or not when it is slow.
        """
        from hodyn_ros.retiming.law import time_laws  # It loads SciPy.

        path = RestingPath(self.path, start, end)
        try:
            uniform = self.scaling(path)
        except ScalingError:
            self.scaling(self.path)  # Says where, by its parameter.
            raise
        if uniform.limiting is None:
            raise UnlimitedError(
                'Nothing limits the speed on this path; expected limits that the motion can '
                'reach, such as the velocities and efforts of the URDF.'
            )
        if not uniform.slower_is_kept:
            raise ScalingError(
                'The path cannot be followed slowly: somewhere its weight alone exceeds an effort '
                f'limit. Uniform factors that keep the limits: {uniform.intervals}.',
                intervals=uniform.intervals,
            )
        drives = self._drives() if self.motor_limits else None
        highest = 3 + bool(np.isfinite(self.limits.effort_ddot).any())

        def limits_at(places: Array) -> Limited:
            return PathLimits(self.model, self.limits, path(places, highest), drives)

        return _Laws(path, *time_laws(limits_at, 1.0 / uniform.factor, intervals))

    def _drives(self) -> Drives:
        """Motors of joints that have one, and springs that are linear.

        Returns
        -------
        Drives
            Zero inertia and compliance, and no limits, for all other joints.
        """
        from hodyn_ros.actuators.springs import LinearSpring

        assert self.actuators is not None and self.motor_limits is not None
        n, (*of_motors, of_springs) = self.model.n_joints, self.motor_limits
        drives = Drives(*np.zeros((2, n)), *np.full((4, n), np.inf))
        for item in self.actuators.driven:
            joint, spring = item.joint, getattr(item.actuator, 'spring', None)
            if len(item.actuator.motor_inertias) == 1:
                drives.inertia[joint] = item.actuator.motor_inertias[0]
                for limit, given in zip(drives[2:], of_motors):
                    limit[joint] = given[item.motors.start]
                if isinstance(spring, LinearSpring):
                    drives.compliance[joint] = 1.0 / spring.stiffness
                    drives.deflection[joint] = min(of_springs[joint], spring.max_deflection)
        return drives

    def part(self, laws: _Laws, step: float, width: int, finer: int | None) -> _Part:
        """Retime a part by the law that is the fastest once it keeps its limits.

        Where the fast one wastes time, a law with so many finer intervals is tried too, if any.

        Parameters
        ----------
        laws : _Laws
            Of the part.
        step : float
            Time between knots [s].
        width : int
            Periods over which positions are averaged.
        finer : int or None
            Number of intervals of the finer law.

        Returns
        -------
        _Part
            The one with the fewest periods.
        """
        found = [self.slowed(laws.path, laws.fastest, step, width)]
        stretch = found[0].stretch
        if finer is not None and stretch > _WASTED:
            other = self.laws(*laws.path.ends, finer)
            found.append(self.slowed(laws.path, other.fastest, step, width))
        if stretch * laws.fastest.duration > laws.uniform.duration:
            found.append(self.slowed(laws.path, laws.uniform, step, width))
        return min(found, key=lambda each: len(each.rows))

    def together(
        self,
        parts: Sequence[_Part],
        ends: Sequence[float] | Array,
        standing: Array,
        step: float,
        width: int,
        shortest: float,
    ) -> _Whole:
        """Put parts and standstills together, slowed down where that would be too short.

        Parameters
        ----------
        parts : sequence of _Part
            In the order of the path.
        ends : sequence of float
            Where the whole begins and ends, in sigma.
        standing : ndarray, shape (parts + 1,)
            Time to stand before, between and behind the parts [s].
        step : float
            Time between knots [s].
        width : int
            Periods over which positions are averaged.
        shortest : float
            Duration of the whole, at least [s].

        Returns
        -------
        _Whole

        Raises
        ------
        TrajectoryError
            If there would be too many samples.
        """
        pauses = [round(time / step) for time in standing]
        first, last = (np.append(self.path(place, 0)[0], place)[None] for place in ends)

        def joined(parts: Sequence[_Part]) -> tuple[Array, list[int]]:
            return _joined([first, *(part.rows for part in parts), last], pauses)

        rows, starts = joined(parts)
        missing = shortest / step - (len(rows) - _AT_REST)
        if missing > 0.0:
            slower = 1.0 + missing / sum(part.periods for part in parts)
            _refuse_many(slower * (len(rows) - _AT_REST))
            parts = [
                self.slowed(
                    part.path, part.law, step, width, slower * part.stretch, part.wide
                )
                for part in parts
            ]
            rows, starts = joined(parts)
        motion, parameter = (
            spline_of_degree_5(part, step) for part in (rows[:, :-1], rows[:, -1:])
        )
        number = int(np.argmax([part.scaling.factor for part in parts]))
        start, limiting = starts[number] * step, parts[number].scaling.limiting
        if missing > 0.0:
            start, limiting = 0.0, self.scaling(motion).limiting
        assert limiting is not None and limiting.time is not None
        limiting = limiting._replace(time=start + limiting.time)
        repair = max(part.stretch for part in parts)
        return _Whole(motion, lambda t, K: parameter(t, K - 1)[..., 0], limiting, repair)

    def slowed(
        self,
        path: RestingPath,
        law: JtcMotion,
        step: float,
        width: int,
        stretch: float = 1.0,
        wide: int = 1,
    ) -> _Part:
        """Average a motion, and slow it down until it keeps its limits.

        For what motors need of the derivatives of torques, sigma is averaged over more steps, as
        long as that costs less than to slow down.

        Parameters
        ----------
        path : RestingPath
            Of the part.
        law : JtcMotion
            u(t).
        step : float
            Time between knots [s].
        width : int
            Periods over which positions are averaged.
        stretch : float
            Time factor to begin with.
        wide : int
            Periods over which sigma is averaged, to begin with.

        Returns
        -------
        _Part
            With a scaling that is kept.

        Raises
        ------
        ScalingError
            If 30 rounds do not suffice.
        """
        part = self.averaged(path, law, step, width, stretch, wide)
        may_widen = self.actuators is not None and wide == 1
        for _ in range(_ROUNDS):
            if part.scaling.is_kept:
                return part
            wider = 2 * part.wide if part.wide > 1 else max(2, width)
            cost = part.scaling.factor * len(part.rows)
            if may_widen and cost > len(part.rows) + 2 * (wider - part.wide):
                other = self.averaged(path, law, step, width, part.stretch, wider)
                may_widen = other.scaling.factor * len(other.rows) < cost
                part = other if may_widen else part
            else:
                stretch = part.stretch * max(part.scaling.factor, 1.0 + 1.0 / part.periods)
                part = self.averaged(path, law, step, width, stretch, part.wide)
        raise ScalingError(
            'The averaged motion does not keep its limits, however slow it is; choose a shorter '
            'window or a higher rate.'
        )

    def averaged(
        self,
        path: RestingPath,
        law: JtcMotion,
        step: float,
        width: int,
        stretch: float,
        wide: int,
    ) -> _Part:
        """Average the positions of a motion over so many steps, and before that sigma, twice.

        Parameters
        ----------
        path : RestingPath
            Of the part.
        law : JtcMotion
            u(t).
        step : float
            Time between knots [s].
        width : int
            Periods over which positions are averaged.
        stretch : float
            Time factor of the law, rounded up to whole periods.
        wide : int
            Periods over which sigma is averaged, twice.

        Returns
        -------
        _Part
            With rows (P, n + 1), and how it has to be scaled.

        Raises
        ------
        TrajectoryError
            If there would be too many samples.
        """
        _refuse_many(stretch * law.duration / step)
        periods = max(1, ceil(stretch * law.duration / step - 1e-9))
        u = law(np.linspace(0.0, law.duration, periods + 1), 0)[:, 0, 0]
        sigma = path.parameter(u, 1)[:, 0]
        # As if the first and the last one went on; means of equal ones are rounded.
        for _ in range(2):
            padded = np.pad(sigma, wide - 1, mode='edge')
            sigma = np.convolve(padded, np.full(wide, 1.0 / wide), mode='valid')
        sigma = np.clip(sigma, *path.ends)
        sigma[0], sigma[-1] = path.ends
        places = np.column_stack((self.path(sigma, 0)[:, 0], sigma))
        padded = np.pad(places, ((width - 1, width - 1), (0, 0)), mode='edge')
        rows: Array = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0).mean(
            axis=-1
        )
        rows[[0, -1]] = places[[0, -1]]
        whole = _joined([rows[:1], rows, rows[-1:]], [0, 0])[0]
        found = self.scaling(spline_of_degree_5(whole[:, :-1], step), near=1.0)
        return _Part(path, law, periods, periods * step / law.duration, wide, rows, found)


def _joined(parts: Sequence[Array], pauses: Sequence[int]) -> tuple[Array, list[int]]:
    """Coefficients of a motion that rests between its parts, and the knots at which they begin.

    Five equal coefficients are an instant of rest up to the snap, each one more a period of it.

    Parameters
    ----------
    parts : sequence of ndarray, shape (P, n + 1)
        Positions and sigma: a row where it begins, the moving parts, a row where it ends.
    pauses : sequence of int
        Periods to rest between them.

    Returns
    -------
    rows : ndarray, shape (M, n + 1)
        Coefficients of the spline of degree 5.
    starts : list of int
        Of each part behind the first.
    """
    blocks, starts = [parts[0]], []
    for pause, part in zip(pauses, parts[1:]):
        between = np.linspace(blocks[-1][-1], part[0], pause + _AT_REST)[1:-1]
        blocks += [between, part]
        starts.append(sum(map(len, blocks[:-1])) - _AT_REST + 1)
    return np.concatenate(blocks), starts


def _refuse_many(samples: float) -> None:
    """Refuse a motion with more samples than anybody wants, with a `TrajectoryError`."""
    if samples > _MOST_SAMPLES:
        raise TrajectoryError(
            f'The motion would have {samples:.3g} samples, expected {_MOST_SAMPLES} at most; '
            'choose a lower rate.'
        )
