"""New timings of a motion that keep its limits: along its path, or of all of it by one factor.

Along a path a law of class C4 from rest to rest is found for every part that moves. Averaged over
a few periods it becomes what joint_trajectory_controller executes, which is checked by inverse
dynamics and slowed down by what is missing. See doc/trajectories.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.display import shown
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import (
    MotionError,
    RequestError,
    ScalingError,
    TrajectoryError,
    UnlimitedError,
)
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.retiming.path import RestingPath, limits_along, moving_parts
from hodyn_ros.retiming.robot_limits import (
    Limiting,
    RobotLimits,
    TimedMotion,
    UniformScaling,
    knots_of,
    refuse_extremes,
)
from hodyn_ros.retiming.scaling import check_of, scaling_of, stretched
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion, spline_of_degree_5
from hodyn_ros.trajectory.waypoints import divided_times
from hodyn_ros.typing import Array
from hodyn_ros.units import NANOSECONDS

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits

TIMINGS = ('path', 'uniform')
"""Ways to change the timing of a motion, see `new_timing`."""
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
# Samples from which on the default rate falls, and that nobody wants; their rate at least where a
# motion is stretched [Hz].
_MANY_SAMPLES, _MOST_SAMPLES, _STRETCHED_RATE = 20_000, 500_000, 100.0
# Rounds in which a motion is slowed down until it keeps its limits.
_ROUNDS = 30


@shown
class NewTiming(NamedTuple):
    """A motion with another timing that keeps its limits, and how it compares.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.retiming import new_timing
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 0.3], [[0.0, 0.0], [1.0, 0.0]])
    >>> found = new_timing(RobotModel.from_urdf('two_link'), spline, timing='uniform')
    >>> found.duration_before, round(found.duration, 3), round(found.factor, 3)
    (0.3, 1.062, 3.541)
    >>> found.limiting.quantity, found.is_fastest
    ('effort', True)
    """

    times: Array
    """Of its samples, from zero or from where the given ones begin, shape (N,) [s]."""
    samples: Array
    """Position and derivatives, shape (N, K, n) [rad/s^k] or [m/s^k]."""
    motion: JtcMotion | None
    """As joint_trajectory_controller executes the samples, which is what keeps the limits; None if
    that was not to be known. Along a path of class C4, from rest to rest, with knots one period
    apart."""
    duration: float
    """[s]"""
    duration_before: float
    """[s]"""
    limiting: Limiting | None
    """What would exceed its limit first if it were faster, in the new timing."""
    limits: MotionLimits
    """That it keeps: those that were given, along a path with limits of the second derivative of
    the torque by `rise_time`."""
    deviation: Array
    """Largest distance of each joint from the path, which averaging causes, shape (n,) [rad] or
    [m]."""
    is_fastest: bool = True
    """Whether the limits are why it is no faster, and not the wish for nothing but a slower
    motion."""
    factor: float | None = None
    """Of a motion that is stretched; 1 if it stays as it is, None along the path."""
    parameter: JtcMotion | None = None
    """Along the path: the place on it, sigma, over time, as a motion of one joint."""
    standstill: float = 0.0
    """Along the path: time for which it stands still where the path does, with all parts [s]."""
    uniform_duration: float = np.nan
    """Of the same path if each moving part has a constant speed of the parameter, as fast as the
    limits allow [s]. Not averaged, with the same standstills; NaN if the motion is stretched."""
    repair: float = 1.0
    """Largest time factor by which a law was slowed down for the exact check and whole periods."""


def new_timing(
    model: RobotModel,
    path: TimedMotion | None,
    limits: MotionLimits | None = None,
    *,
    timing: str = 'path',
    slower_only: bool = False,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    given: tuple[Array, Array] | None = None,
    wrench: Sequence[Wrench] = (),
    is_executed: bool = True,
    **options: Any,
) -> NewTiming:
    """Find another timing of a motion with which it keeps its limits.

    Parameters
    ----------
    model : RobotModel
    path : function of time
        Of class C4, such as the `MotionSpline` of `plan_motion`. With the timing 'uniform' and
        samples it may be None.
    limits : MotionLimits, optional
        By default those of the model.
    timing : {'path', 'uniform'}
        'path': a new time law along the path, each part as fast as the limits let it be, see
        `retime`. 'uniform': the motion is stretched, see `uniform_scaling`.
    slower_only : bool
        A motion that keeps its limits stays as it is; another one does not become shorter.
    actuators, motor_limits : Actuators and MotorLimits, optional
        Dampers are followed as in `motor_motion`.
    given : times (N,) and motion (N, K, n), optional
        What is stretched, or stays as it is; by default the knots of the path and as many samples
        between them as make 100 Hz.
    wrench : sequence of Wrench, optional
        At these samples; for a motion that is stretched.
    is_executed : bool
        Whether a controller executes the samples, so that limits hold between them too, and not
        only at them as with wrenches and measurements.
    **options
        For a new time law: those of `retime`.

    Returns
    -------
    NewTiming

    Raises
    ------
    ScalingError
        If no timing keeps the limits; its `limiting` is what exceeds its limit at any speed.
    UnlimitedError
        If nothing limits the speed.
    TrajectoryError, MotionError, WrenchError, ActuatorError, RequestError
        If the motion, wrenches, actuators or options cannot be used.

    Examples
    --------
    A motion that keeps its limits stays as it is, a faster one is stretched:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.retiming import new_timing
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model, options = RobotModel.from_urdf('two_link'), {'timing': 'uniform'}
    >>> for duration in (0.3, 3.0):
    ...     spline = fit_spline([0.0, duration], [[0.0, 0.0], [1.0, 0.0]])
    ...     found = new_timing(model, spline, slower_only=True, **options)
    ...     print(round(found.duration, 3))
    1.062
    3.0
    """
    check_choice('timing', timing, TIMINGS, RequestError)
    drives: dict[str, Any] = {'actuators': actuators, 'motor_limits': motor_limits}
    robot = RobotLimits.of(model, limits, **drives)
    if timing == 'uniform' or slower_only:
        times, samples = given or _sampled(path, 4 if actuators is None else 5)
        motion = _executed(times, samples) if is_executed else None

        def slowest(scaling: Callable[..., UniformScaling]) -> UniformScaling:
            # What is executed comes first, because it says when a limit is exceeded.
            found = [] if motion is None else [scaling(robot, motion)]
            return max(
                [scaling(robot, samples, wrench), *found], key=lambda each: each.factor
            )

        if slower_only:
            if motion is not None:
                refuse_extremes(robot, motion)
            if (kept := slowest(check_of)).is_kept:
                return _stretched(robot, times, samples, motion, kept._replace(factor=1.0))
        if timing == 'uniform':
            return _stretched(robot, times, samples, motion, slowest(scaling_of))
    assert path is not None
    shortest = path.end_time - path.start_time if slower_only else 0.0
    found = retime(model, path, limits, **drives, **options, shortest=shortest)
    return found._replace(is_fastest=not slower_only)


def _sampled(path: TimedMotion | None, highest_derivative: int) -> tuple[Array, Array]:
    """Times (N,) and samples (N, K, n) of a motion."""
    assert path is not None
    knots = knots_of(path)
    duration = knots[-1] - knots[0]
    if len(knots) + _STRETCHED_RATE * duration > _MOST_SAMPLES:
        raise TrajectoryError(
            f'The motion of {duration:g} s has more than {_MOST_SAMPLES} samples at '
            f'{_STRETCHED_RATE:g} Hz and {len(knots)} knots; cut it into parts.'
        )
    times = divided_times(knots, _STRETCHED_RATE)
    return times, path(times, highest_derivative)


def _stretched(
    robot: RobotLimits,
    times: Array,
    samples: Array,
    motion: JtcMotion | None,
    scaling: UniformScaling,
) -> NewTiming:
    """Samples at a time factor, and as a controller executes them if it does.

    Parameters
    ----------
    robot : RobotLimits
    times : ndarray, shape (N,)
        [s]
    samples : ndarray, shape (N, K, n)
        [rad/s^k] or [m/s^k].
    motion : JtcMotion or None
        As they are executed.
    scaling : UniformScaling

    Returns
    -------
    NewTiming

    Raises
    ------
    UnlimitedError
        If nothing limits the speed.
    """
    factor, limiting = scaling.factor, scaling.limiting
    if factor == 0.0:
        raise UnlimitedError(
            'Nothing limits the speed of this motion; name limits, or ask for nothing but a '
            'slower one (--slower-only, slower_only).'
        )
    start, duration = times[0], float(times[-1] - times[0])
    if limiting is not None:
        time = times[limiting.sample] if limiting.time is None else limiting.time
        limiting = limiting._replace(time=float(start + factor * (time - start)))
    times, samples = start + factor * (times - start), stretched(samples, factor)
    if motion is not None:
        motion = _executed(times, samples)
    none = np.zeros(robot.model.n_joints)
    return NewTiming(
        times,
        samples,
        motion,
        factor * duration,
        duration,
        limiting,
        robot.limits,
        none,
        factor=factor,
    )


def _executed(times: Array, samples: Array) -> JtcMotion:
    """What joint_trajectory_controller makes of samples."""
    return jtc_motion(times, *(samples[:, k] for k in range(3)))


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
) -> NewTiming:
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
        With limits of motors the window may become longer.
    intervals : int, optional
        Between the knots of the time law, at most 4000: more are slower to compute and give a
        faster motion. By default 128, or four on each segment up to 512, and four times as many
        where `NewTiming.repair` would be more than 1.01; several parts of a path share them.
    rate : float, optional
        Knots of the motion per second [Hz], see `NewTiming.motion`. By default 1000, or as many as
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
    NewTiming

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

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import motion_limits
    >>> from hodyn_ros.retiming import retime
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> path = fit_spline([0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
    >>> limits = motion_limits(model, dict.fromkeys(model.joint_names, {'effort_dot': 400.0}))
    >>> found = retime(model, path, limits, intervals=32)
    >>> round(found.duration, 2), found.motion.continuous_derivative
    (0.83, 4)
    """
    _check_options(intervals, rate, window, rise_time, shortest)
    robot = RobotLimits.of(model, limits, actuators, motor_limits)
    if rise_time > 0.0:
        own, rate_limit = robot.limits.effort_ddot, robot.limits.effort_dot
        ddot = np.where(np.isfinite(own), own, rate_limit / rise_time)
        robot = replace(robot, limits=robot.limits._replace(effort_ddot=ddot))
    try:
        places = moving_parts(model, path)
        refuse_extremes(robot, path)
        share = _intervals_of_each(path, len(places), intervals)
        moving = [_Moving(robot, path, place) for place in places]
        laws = [each.law(share) for each in moving]
        edges = np.ravel(places)
        ends = (path.start_time, path.end_time) if keep_standstills else edges[[0, -1]]
        standing = np.diff([ends[0], *edges, ends[1]])[::2] * keep_standstills
        step = _step(rate, sum(law.duration for law in laws), standing.sum())
        averaging = _Averaging(
            robot, path, step, max(1, round(window / step) - _OF_SPLINE + 1)
        )
        finer = None if intervals is not None else _FINER * share
        parts = [averaging.fastest(*each, finer) for each in zip(moving, laws)]
        found = averaging.together(parts, ends, standing, shortest)
    except MotionError as error:
        raise TrajectoryError(f'The path cannot be followed: {error}') from error
    uniform = sum(each.uniform.duration for each in moving) + float(standing.sum())
    return found._replace(uniform_duration=uniform, standstill=float(standing.sum()))


def _check_options(
    intervals: int | None,
    rate: float | None,
    window: float,
    rise_time: float,
    shortest: float,
) -> None:
    """Refuse options of `retime` that cannot be used, with a `TrajectoryError`."""
    times = {'window': window, 'rise_time': rise_time, 'shortest': shortest}
    for name, time in times.items():
        checked_number(name, time, TrajectoryError, least=0.0, unit='s')
    if rate is not None:
        most = float(NANOSECONDS)
        checked_number('rate', rate, TrajectoryError, above=0.0, most=most, unit='Hz')
    if intervals is not None:
        most = MOST_INTERVALS
        checked_number(
            'intervals', intervals, TrajectoryError, least=1, most=most, whole=True
        )
    _refuse_many(window * (rate or RATE))


def _refuse_many(samples: float) -> None:
    """Refuse a motion with more samples than anybody wants, with a `TrajectoryError`."""
    if samples > _MOST_SAMPLES:
        raise TrajectoryError(
            f'The motion would have {samples:.3g} samples, expected {_MOST_SAMPLES} at most; '
            'choose a lower rate.'
        )


def _intervals_of_each(path: TimedMotion, count: int, intervals: int | None) -> int:
    """Intervals between the knots of the law on each of the moving parts of a path."""
    if intervals is None:
        by_segments = _ON_SEGMENT * (len(knots_of(path)) - 1)
        intervals = int(np.clip(by_segments, _FEWEST_INTERVALS, _MOST_INTERVALS))
    on_part = max(_ON_SEGMENT, min(_ON_PART, _ON_ALL_PARTS // count))
    return min(intervals, max(on_part, intervals // count))


def _step(rate: float | None, moving: float, standing: float) -> float:
    """Time between knots, a whole number of nanoseconds as messages have it [s]."""
    if rate is None:
        fewer = 0.9 * _MOST_SAMPLES / (moving + standing)
        rate = min(RATE, _MANY_SAMPLES / moving, fewer)
    step = round(NANOSECONDS / rate) / NANOSECONDS
    _refuse_many(standing / step)
    return step


class _Moving:
    """A moving part of the path, and time laws u(t) on it.

    Parameters
    ----------
    robot : RobotLimits
    path : function of the path parameter
    ends : (float, float)
        Of the part, in sigma.

    Attributes
    ----------
    path : RestingPath
    uniform : JtcMotion
        The law with the highest constant speed.

    Raises
    ------
    UnlimitedError
        If nothing limits the speed.
    ScalingError
        If the part keeps its limits at no speed, or not when it is slow.
    """

    def __init__(
        self, robot: RobotLimits, path: TimedMotion, ends: tuple[float, float]
    ) -> None:
        self.path, self._robot = RestingPath(path, *ends), robot
        try:
            scaling = scaling_of(robot, self.path)
        except ScalingError:
            scaling_of(robot, path)  # Says where, by its parameter.
            raise
        if scaling.limiting is None:
            raise UnlimitedError(
                'Nothing limits the speed on this path; expected limits that the motion can '
                'reach, such as the velocities and efforts of the URDF.'
            )
        self._speed = 1.0 / scaling.factor
        ends_of_law = np.array([[0.0, 1.0], [self._speed] * 2, [0.0, 0.0]])[..., None]
        self.uniform = jtc_motion([0.0, scaling.factor], *ends_of_law)

    def law(self, intervals: int) -> JtcMotion:
        """A fast law with so many intervals between its knots."""
        from hodyn_ros.retiming.time_law import time_law  # It loads SciPy.

        return time_law(limits_along(self._robot, self.path), self._speed, intervals)


class _Part(NamedTuple):
    """A moving part of the path, retimed."""

    path: RestingPath
    law: JtcMotion
    periods: int  # of the law, before it was averaged
    stretch: float  # time factor of the law
    wide: int  # periods over which sigma was averaged, twice
    rows: Array  # positions and sigma, averaged, one period apart
    scaling: UniformScaling


class _Averaging(NamedTuple):
    """How laws along a path become what a controller executes."""

    robot: RobotLimits
    path: TimedMotion
    step: float  # time between knots [s]
    width: int  # periods over which positions are averaged

    def fastest(self, moving: _Moving, law: JtcMotion, finer: int | None) -> _Part:
        """Part by the law that is the fastest once it keeps its limits.

        Parameters
        ----------
        moving : _Moving
        law : JtcMotion
            A fast one.
        finer : int or None
            Number of intervals of a law that is tried too where the fast one wastes time.

        Returns
        -------
        _Part
            The one with the fewest periods.
        """
        found = [self.slowed(moving.path, law)]
        stretch = found[0].stretch
        if finer is not None and stretch > _WASTED:
            found.append(self.slowed(moving.path, moving.law(finer)))
        if stretch * law.duration > moving.uniform.duration:
            found.append(self.slowed(moving.path, moving.uniform))
        return min(found, key=lambda each: len(each.rows))

    def slowed(
        self, path: RestingPath, law: JtcMotion, stretch: float = 1.0, wide: int = 1
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
        part = self.averaged(path, law, stretch, wide)
        may_widen = self.robot.actuators is not None and wide == 1
        for _ in range(_ROUNDS):
            if part.scaling.is_kept:
                return part
            wider = 2 * part.wide if part.wide > 1 else max(2, self.width)
            cost = part.scaling.factor * len(part.rows)
            if may_widen and cost > len(part.rows) + 2 * (wider - part.wide):
                other = self.averaged(path, law, part.stretch, wider)
                may_widen = other.scaling.factor * len(other.rows) < cost
                part = other if may_widen else part
            else:
                more = max(part.scaling.factor, 1.0 + 1.0 / part.periods)
                part = self.averaged(path, law, part.stretch * more, part.wide)
        raise ScalingError(
            'The averaged motion does not keep its limits, however slow it is; choose a shorter '
            'window or a higher rate.'
        )

    def averaged(
        self, path: RestingPath, law: JtcMotion, stretch: float, wide: int
    ) -> _Part:
        """Average the positions of a motion over some steps, and before that sigma, twice.

        Parameters
        ----------
        path : RestingPath
            Of the part.
        law : JtcMotion
            u(t).
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
        _refuse_many(stretch * law.duration / self.step)
        periods = max(1, ceil(stretch * law.duration / self.step - 1e-9))
        u = law(np.linspace(0.0, law.duration, periods + 1), 0)[:, 0, 0]
        sigma = path.parameter(u)[0][:, None]
        # As if the first and the last one went on; means of equal ones are rounded.
        sigma = np.clip(_means(_means(sigma, wide), wide)[:, 0], *path.ends)
        sigma[0], sigma[-1] = path.ends
        places = np.column_stack((self.path(sigma, 0)[:, 0], sigma))
        rows = _means(places, self.width)
        rows[[0, -1]] = places[[0, -1]]
        whole = _joined([rows[:1], rows, rows[-1:]], [0, 0])[0]
        scaling = check_of(self.robot, spline_of_degree_5(whole[:, :-1], self.step))
        stretch = periods * self.step / law.duration
        return _Part(path, law, periods, stretch, wide, rows, scaling)

    def together(
        self,
        parts: list[_Part],
        ends: Sequence[float] | Array,
        standing: Array,
        shortest: float,
    ) -> NewTiming:
        """Put parts and standstills together, slowed down where that would be too short.

        Parameters
        ----------
        parts : list of _Part
            In the order of the path.
        ends : sequence of float
            Where the whole begins and ends, in sigma.
        standing : ndarray, shape (parts + 1,)
            Time to stand before, between and behind the parts [s].
        shortest : float
            Duration of the whole, at least [s].

        Returns
        -------
        NewTiming

        Raises
        ------
        TrajectoryError
            If there would be too many samples.
        """
        pauses = [round(time / self.step) for time in standing]
        first, last = (np.append(self.path(place, 0)[0], place)[None] for place in ends)

        def coefficients() -> tuple[Array, list[int]]:
            return _joined([first, *(part.rows for part in parts), last], pauses)

        rows, starts = coefficients()
        missing = shortest / self.step - (len(rows) - _AT_REST)
        if missing > 0.0:
            slower = 1.0 + missing / sum(part.periods for part in parts)
            _refuse_many(slower * (len(rows) - _AT_REST))
            parts = [
                self.slowed(part.path, part.law, slower * part.stretch, part.wide)
                for part in parts
            ]
            rows, starts = coefficients()
        motion, parameter = (
            spline_of_degree_5(columns, self.step)
            for columns in (rows[:, :-1], rows[:, -1:])
        )
        number = int(np.argmax([part.scaling.factor for part in parts]))
        start, limiting = starts[number] * self.step, parts[number].scaling.limiting
        if missing > 0.0:
            start, limiting = 0.0, scaling_of(self.robot, motion).limiting
        assert limiting is not None and limiting.time is not None
        samples = motion(motion.times)
        passed = np.clip(
            parameter(motion.times, 0)[:, 0, 0], self.path.start_time, self.path.end_time
        )
        return NewTiming(
            motion.times,
            samples,
            motion,
            motion.duration,
            self.path.end_time - self.path.start_time,
            limiting._replace(time=start + limiting.time),
            self.robot.limits,
            np.abs(samples[:, 0] - self.path(passed, 0)[:, 0]).max(axis=0),
            parameter=parameter,
            repair=max(part.stretch for part in parts),
        )


def _means(rows: Array, width: int) -> Array:
    """Means (P + width - 1, n) of neighbouring rows, as if the first and the last one went on."""
    padded = np.pad(rows, ((width - 1, width - 1), (0, 0)), mode='edge')
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0)
    return np.asarray(windows.mean(axis=-1))


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
