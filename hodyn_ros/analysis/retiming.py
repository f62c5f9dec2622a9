"""The fastest smooth motion on a given path under limits up to jerk and torque rate.

The path q(sigma) stays; a law sigma(t) of class C4 from rest to rest is found for every part of it
that moves. Such a law leaves rest within a tenth of a millisecond, which no controller can follow.
So the motion is averaged over a few periods and becomes a spline of degree 5 with one knot in each
period: joint_trajectory_controller moves in exactly this way between the samples at its knots. The
result is checked by inverse dynamics and slowed down by what is missing to the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.analysis.limits import MotionLimits, motion_limits
from hodyn_ros.analysis.retiming_limits import PathLimits
from hodyn_ros.analysis.retiming_path import RestingPath, moving_parts
from hodyn_ros.analysis.retiming_solver import fastest_law
from hodyn_ros.analysis.scaling import refuse_extremes, uniform_scaling
from hodyn_ros.analysis.scaling_search import Limiting, UniformScaling
from hodyn_ros.analysis.stretching import TimedMotion, WrenchFunction, knots_of, wrenches_along
from hodyn_ros.analysis.time_law import TimeLaw
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ScalingError, TrajectoryError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.jtc import JtcMotion, spline_of_degree_5

Array = NDArray[np.float64]

SeriesOf = Callable[[Array, int], Array]
"""The place on the path and its derivatives, from times (N,) and a number of them."""

RATE = 1000.0
"""Knots per second of what is retimed [Hz]: the period of many controllers."""
WINDOW = 0.008
"""Time over which the motion is averaged, which it takes longer [s]."""

# Intervals between the knots of a time law by default: on any path, on each of its segments, and
# on very long paths; and on one of many parts at least, of which very many share some.
_FEWEST_INTERVALS, _ON_SEGMENT, _MOST_INTERVALS, _ON_PART = 128, 4, 512, 64
_ON_ALL_PARTS = 1024

# Places in an interval at which the limits are part of the optimisation.
_DENSITY = 6
# Periods that the spline of degree 5 adds, without a further average, and how many of its
# coefficients are equal where it rests up to the snap.
_OF_SPLINE, _AT_REST = 4, 5
# Samples from which on the default rate falls, and that nobody wants.
_MANY_SAMPLES, _MOST_SAMPLES = 20_000, 500_000
# Rounds in which a motion is slowed down until it keeps its limits.
_ROUNDS = 30
_NANO = 1_000_000_000
# Factor that counts as one where the same is examined at other places.
_ROUNDED = 1.0 + 1e-6


@dataclass(frozen=True)
class MotionOnPath:
    """Motion of class C4 on a path, at rest at both ends, with a given law; immutable.

    Attributes
    ----------
    path : RestingPath
    law : TimeLaw
    """

    path: RestingPath
    law: TimeLaw

    start_time = 0.0

    @property
    def end_time(self) -> float:
        """Time that it takes [s]."""
        return self.law.duration

    @property
    def times(self) -> Array:
        """Times of the knots, of the law and of the path [s]; increasing, from start to end."""
        return np.union1d(self.law.times, self.law.time_at(self.path.knots()))

    def sigma(self, t: Array, K: int) -> Array:
        """Path parameter and its time derivatives, shape (..., K)."""
        return self.path.sigma(self.law(t, K))

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at times (...), shape (..., highest_derivative + 1, n)."""
        return self.path.along(self.law(np.asarray(t), highest_derivative + 1))


class Retimed(NamedTuple):
    """A motion along a path that keeps its limits, and how it compares."""

    motion: JtcMotion
    """From rest to rest and of class C4, with knots one period apart: of degree 5 between them, so
    that joint_trajectory_controller executes it exactly from the positions, velocities and
    accelerations there."""
    parameter: SeriesOf
    """From times (N,) of the motion and a number K to the place on the path, sigma, and its time
    derivatives, shape (N, K)."""
    duration: float
    """[s]"""
    uniform_duration: float
    """Of the same path if each moving part has a constant speed of the parameter, as fast as the
    limits allow [s]: where the path is itself a motion from rest to rest, of that motion scaled
    uniformly. Not averaged, with the same standstills."""
    repair: float
    """Largest time factor by which a law was slowed down after the exact check, at most one period
    of it for the sake of whole periods."""
    limiting: Limiting
    """What would exceed its limit first if the motion were scaled to be faster; its time is that
    of the motion."""
    deviation: Array
    """Largest distance of each joint from the path, which averaging causes, shape (n,)."""
    standstill: float
    """Time for which it stands still where the path does, with all parts [s]."""


def retime(
    model: RobotModel,
    path: TimedMotion,
    limits: MotionLimits | None = None,
    *,
    wrench: WrenchFunction | None = None,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    intervals: int | None = None,
    rate: float | None = None,
    window: float = WINDOW,
    keep_standstills: bool = True,
    shortest: float = 0.0,
) -> Retimed:
    """Find a fast motion of class C4 along a path that keeps limits up to jerk and torque rate.

    Parameters
    ----------
    model : RobotModel
    path : function of the path parameter
        Such as a `MotionSpline`; its times are the parameter sigma. Of class C4.
    limits : MotionLimits, optional
        By default those of the model; see `motion_limits` for acceleration, jerk and torque rate.
    wrench : function of the path parameter, optional
        wrench(sigma, orders) with values (N,) of the parameter gives a Wrench or several with
        values of shape (N, orders, 6), derivatives with respect to the parameter.
    actuators : Actuators, optional
        Without damping.
    motor_limits : MotorLimits, optional
        Of these actuators. They are not part of the optimisation; slowing down each moving part as
        a whole makes the motion keep them.
    intervals : int, optional
        Between the knots of the time law: more are slower to compute and give a faster motion. By
        default 128, on a path of more than 32 segments four on each, up to 512. Where the path has
        several parts, they share them, 64 for each at least (of more than 16 parts fewer).
    rate : float, optional
        Knots of the motion per second [Hz], see `Retimed.motion`. By default 1000, or as many as
        make 20,000 knots on a longer motion.
    window : float
        Time over which the motion is averaged [s], four periods at least; each moving part takes
        so much longer. A change of a jerk or torque rate by L takes so long that snap and second
        derivative stay about below L / window.
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
    WrenchError
        If the wrench does not fit.
    ActuatorError
        If the actuators do not fit, see `uniform_scaling`.

    Notes
    -----
    The motion is checked as it is executed, by exact inverse dynamics at 16 places between
    neighbouring knots and at the peaks between these.

    Averaging leaves the path by up to a * window^2 / 24 at an acceleration a; how far, `deviation`
    says.

    Each law is a local optimum among splines of the squared speed; but for the window it is never
    slower than the uniform one. Sharp Coulomb friction jumps where a joint turns back, and such a
    jump is part of no torque rate, see `Coulomb`.
    """
    limits = motion_limits(model) if limits is None else limits
    _check(model, path)
    refuse_extremes(model, limits, path)
    work = _Work(model, path, limits, wrench, actuators, motor_limits, *_periods(rate, window))
    places = moving_parts(path)
    intervals = _checked_intervals(path, intervals)
    on_part = max(_ON_SEGMENT, min(_ON_PART, _ON_ALL_PARTS // len(places)))
    share = min(intervals, max(on_part, intervals // len(places)))
    edges = np.ravel(places)
    ends = [path.start_time, path.end_time] if keep_standstills else edges[[0, -1]]
    standing = np.diff([ends[0], *edges, ends[1]])[::2] * keep_standstills
    first, last = (np.append(path(place, 0)[0], place)[None] for place in ends)

    found = [work.motions(start, end, share) for start, end in places]
    if rate is None:
        moving = sum(motion.end_time for motion, _ in found)
        most = _MANY_SAMPLES / moving, 0.9 * _MOST_SAMPLES / (moving + float(standing.sum()))
        step, width = _periods(min(RATE, *most), window)
        work = work._replace(step=step, width=width)
    _refuse_many(float(standing.sum()) / work.step)
    parts = [work.shorter(*motions) for motions in found]
    pauses = [round(time / work.step) for time in standing]

    rows, starts = _joined([first, *(part.rows for part in parts), last], pauses)
    periods = len(rows) - _AT_REST
    missing = shortest / work.step - periods
    if missing > 0.0:
        slower = 1.0 + missing / sum(len(part.rows) - work.width for part in parts)
        _refuse_many(slower * periods)
        parts = [work.slowed(part.motion, slower * part.stretch) for part in parts]
        rows, starts = _joined([first, *(part.rows for part in parts), last], pauses)
    motion, sigma = work.spline(rows)
    if wrench is not None and sum(pauses) and work.scaling(motion, sigma).factor > _ROUNDED:
        raise ScalingError('The wrench exceeds a limit while the path stands still; change it.')
    passed = np.clip(sigma(motion.times, 1)[:, 0], path.start_time, path.end_time)
    number = int(np.argmax([part.scaling.factor for part in parts]))
    limiting = parts[number].scaling.limiting
    assert limiting is not None and limiting.time is not None
    return Retimed(
        motion,
        sigma,
        motion.duration,
        sum(uniform.end_time for _, uniform in found) + float(standing.sum()),
        max(part.stretch for part in parts),
        limiting._replace(time=starts[number] * work.step + limiting.time),
        np.abs(motion(motion.times, 0) - path(passed, 0)).max(axis=(0, 1)),
        float(standing.sum()),
    )


class _Part(NamedTuple):
    """A moving part of the path, retimed."""

    motion: MotionOnPath
    stretch: float
    rows: Array
    """Positions and sigma, averaged, one period apart."""
    scaling: UniformScaling


class _Work(NamedTuple):
    """What is retimed, and how."""

    model: RobotModel
    path: TimedMotion
    limits: MotionLimits
    wrench: WrenchFunction | None
    actuators: Actuators | None
    motor_limits: MotorLimits | None
    step: float
    """Period [s]: whole nanoseconds, as messages have them."""
    width: int
    """Samples whose mean is taken."""

    def motions(
        self, start: float, end: float, intervals: int
    ) -> tuple[MotionOnPath, MotionOnPath]:
        """Find a fast motion along a part of the path, and that with a constant speed."""
        path = RestingPath(self.path, start, end)

        def constant(speed: float) -> MotionOnPath:
            coefficients = np.full(5, speed * speed)
            law = TimeLaw.from_coefficients(np.array([0.0, 1.0]), coefficients)
            return MotionOnPath(path, law)

        uniform = self.scaling(constant(1.0), constant(1.0).sigma)
        if uniform.limiting is None:
            raise ScalingError(
                'Nothing limits the speed on this path; expected limits that the motion can '
                'reach, such as the velocities and efforts of the URDF.'
            )
        if not uniform.slower_is_kept:
            raise ScalingError(
                'The path cannot be followed slowly: somewhere its weight alone exceeds an effort '
                f'limit. Uniform factors that keep the limits: {uniform.intervals}.',
                uniform.intervals,
            )
        speed = 1.0 / uniform.factor
        law = fastest_law(
            lambda places: PathLimits(self.model, path, self.limits, places, self.wrench),
            speed,
            intervals,
            _DENSITY,
        )
        return MotionOnPath(path, law), constant(speed)

    def shorter(self, motion: MotionOnPath, uniform: MotionOnPath) -> _Part:
        """Choose the shorter one when both keep their limits."""
        found = self.slowed(motion)
        if found.stretch * motion.end_time > uniform.end_time:
            found = min(found, self.slowed(uniform), key=lambda part: len(part.rows))
        return found

    def scaling(self, motion: TimedMotion, sigma: SeriesOf) -> UniformScaling:
        """Scale a motion uniformly; `sigma` is its place on the path."""

        def in_time(t: Array, orders: int) -> Sequence[Wrench]:
            assert self.wrench is not None
            return wrenches_along(self.wrench, sigma(t, orders))

        return uniform_scaling(
            self.model,
            motion,
            self.limits,
            wrench=None if self.wrench is None else in_time,
            actuators=self.actuators,
            motor_limits=self.motor_limits,
        )

    def slowed(self, motion: MotionOnPath, stretch: float = 1.0) -> _Part:
        """Average a motion, and slow it down until it keeps its limits."""
        for _ in range(_ROUNDS):
            _refuse_many(stretch * motion.end_time / self.step)
            periods = max(1, ceil(stretch * motion.end_time / self.step - 1e-9))
            rows = self.averaged(motion, periods)
            found = self.scaling(*self.spline(_joined([rows[:1], rows, rows[-1:]], [0, 0])[0]))
            if found.is_kept:
                return _Part(motion, periods * self.step / motion.end_time, rows, found)
            stretch = max(found.factor, 1.0 + 1.0 / periods) * periods * self.step
            stretch /= motion.end_time
        raise ScalingError(
            'The averaged motion does not keep its limits, however slow it is; choose a shorter '
            'window or a higher rate.'
        )

    def averaged(self, motion: MotionOnPath, periods: int) -> Array:
        """Positions and sigma at equal steps, averaged, shape (periods + width, n + 1)."""
        u = motion.law(np.linspace(0.0, motion.end_time, periods + 1), 1)
        rows = np.hstack((motion.path.along(u)[:, 0], motion.path.sigma(u)))
        wide = np.pad(rows, ((self.width - 1, self.width - 1), (0, 0)), mode='edge')
        shifted = [wide[i : i + periods + self.width] for i in range(self.width)]
        result: Array = np.mean(shifted, axis=0)
        # Means of equal rows are rounded.
        result[[0, -1]] = rows[[0, -1]]
        return result

    def spline(self, rows: Array) -> tuple[JtcMotion, SeriesOf]:
        """Motion with positions and sigma as its coefficients, and sigma as a function of time."""
        motion = spline_of_degree_5(rows[:, :-1], self.step)
        return motion, _series_of(spline_of_degree_5(rows[:, -1:], self.step))


def _series_of(parameter: JtcMotion) -> SeriesOf:
    return lambda t, K: parameter(t, K - 1)[..., 0]


def _joined(parts: Sequence[Array], pauses: Sequence[int]) -> tuple[Array, list[int]]:
    """Coefficients of a motion that rests between its parts, and the knots at which they begin.

    Five equal coefficients are an instant of rest up to the snap, each one more a period of it.
    """
    blocks, starts = [parts[0]], []
    for pause, part in zip(pauses, parts[1:]):
        between = np.linspace(blocks[-1][-1], part[0], pause + _AT_REST)[1:-1]
        blocks += [between, part]
        starts.append(sum(map(len, blocks[:-1])) - _AT_REST + 1)
    return np.concatenate(blocks), starts


def _periods(rate: float | None, window: float) -> tuple[float, int]:
    """Period in whole nanoseconds [s], and how many samples are averaged.

    Raises
    ------
    TrajectoryError
    """
    rate = RATE if rate is None else rate
    if not (np.isfinite(rate) and 0.0 < rate <= _NANO):
        raise TrajectoryError(f'rate is {rate!r}, expected a positive number [Hz].')
    if not (np.isfinite(window) and window >= 0.0):
        raise TrajectoryError(f'window is {window!r}, expected a time [s].')
    step = round(_NANO / rate) / _NANO
    _refuse_many(window / step)
    return step, max(1, round(window / step) - _OF_SPLINE + 1)


def _refuse_many(samples: float) -> None:
    if samples > _MOST_SAMPLES:
        raise TrajectoryError(
            f'The motion would have {samples:.3g} samples, expected {_MOST_SAMPLES} at most; '
            'choose a lower rate.'
        )


def _check(model: RobotModel, path: TimedMotion) -> None:
    if not callable(path):
        raise TrajectoryError(
            f'The path is of type {type(path).__name__}, expected a function such as the '
            'MotionSpline that fit_spline makes.'
        )
    smooth = getattr(path, 'continuous_derivative', 4)
    if smooth < 4:
        raise TrajectoryError(
            f'The path is continuous up to derivative {smooth} only, expected 4: otherwise the '
            'torque rate jumps or is infinite at any speed. Fit a spline through its waypoints.'
        )
    shape = np.shape(path(path.start_time, 0))
    if shape != (1, model.n_joints):
        raise TrajectoryError(
            f'The path has positions of shape {shape}, expected (1, {model.n_joints}) for the '
            f'joints of {model.name!r}.'
        )


def _checked_intervals(path: TimedMotion, intervals: int | None) -> int:
    if intervals is None:
        knots = knots_of(path)
        segments = 1 if knots is None else len(knots) - 1
        return int(np.clip(_ON_SEGMENT * segments, _FEWEST_INTERVALS, _MOST_INTERVALS))
    if (
        isinstance(intervals, bool)
        or not isinstance(intervals, (int, np.integer))
        or intervals < 1
    ):
        raise TrajectoryError(f'intervals is {intervals!r}, expected a positive integer.')
    return int(intervals)
