"""The fastest smooth motion on a given path under limits up to jerk and torque rate, and beyond.

A law of class C4 from rest to rest is found for every part of the path that moves. Averaged over a
few periods it becomes what joint_trajectory_controller executes, which is checked by inverse
dynamics and slowed down by what is missing. See doc/time_scaling.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from hodyn_ros.analysis.scaling import (
    Limiting,
    TimedMotion,
    UniformScaling,
    WrenchFunction,
    knots_of,
    refuse_extremes,
    uniform_scaling,
)
from hodyn_ros.checks import checked_number
from hodyn_ros.display import shown
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ScalingError, TrajectoryError, UnlimitedError, WrenchError
from hodyn_ros.lie.leibniz import compose
from hodyn_ros.model.limits import MotionLimits, motion_limits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.jtc import JtcMotion, spline_of_degree_5
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.analysis import retiming_law

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
_NANO = 1_000_000_000
# Factor that counts as one where the same is examined at other places.
_ROUNDED = 1.0 + 1e-6

# Order in t to which a motion of class C4 that begins at rest leaves its first place.
_ORDER_OF_REST = 5
# Size of a derivative at an end, relative to the largest on the path, up to which it is zero.
_VANISHING = 1e-9
# Places at which the sizes of derivatives are taken, and on each segment its positions.
_PLACES, _PLACES_ON_SEGMENT = 201, 16
# Difference of positions, relative to the largest one of the joint, up to which it is rounding.
_ROUNDING = 4096.0 * float(np.finfo(np.float64).eps)
# Of the interval from 0 to 1 after which a value of u is known to rounding.
_HALVINGS = 55


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
    wrench: WrenchFunction | None = None,
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
    wrench : function of the path parameter, optional
        wrench(sigma, orders) with values (N,) of the parameter gives a Wrench or several with
        values (N, orders, 6), derivatives with respect to the parameter.
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

    Raises
    ------
    ScalingError
        If the path keeps its limits at no speed (positions, weight), or nothing limits its speed.
    TrajectoryError
        If the path does not move, is not of class C4 or does not suit the model, or an option
        cannot be used.
    WrenchError, ActuatorError
        If wrench or actuators do not fit, see `uniform_scaling`.

    Notes
    -----
    The motion is checked as it is executed, by exact inverse dynamics between its knots. Each law
    is a local optimum; but for the window it is never slower than the uniform one. Sharp Coulomb
    friction jumps where a joint turns back, which is part of no torque rate.
    """
    limits = motion_limits(model) if limits is None else limits
    if rate is not None:
        checked_number('rate', rate, TrajectoryError, above=0.0, most=_NANO, unit='Hz')
    checked_number('window', window, TrajectoryError, least=0.0, unit='s')
    if intervals is not None:
        checked_number(
            'intervals', intervals, TrajectoryError, least=1, most=MOST_INTERVALS, whole=True
        )
    checked_number('rise_time', rise_time, TrajectoryError, least=0.0, unit='s')
    checked_number('shortest', shortest, TrajectoryError, least=0.0, unit='s')
    _refuse_many(window * (rate or RATE))
    if rise_time > 0.0:
        by_default = np.minimum(limits.effort_ddot, limits.effort_dot / rise_time)
        is_given = np.isfinite(limits.effort_ddot)
        limits = limits._replace(
            effort_ddot=np.where(is_given, limits.effort_ddot, by_default)
        )
    places = moving_parts(model, path)
    refuse_extremes(model, limits, path)
    may_refine = intervals is None
    if intervals is None:
        knots = knots_of(path)
        segments = 1 if knots is None else len(knots) - 1
        intervals = int(np.clip(_ON_SEGMENT * segments, _FEWEST_INTERVALS, _MOST_INTERVALS))
    on_part = max(_ON_SEGMENT, min(_ON_PART, _ON_ALL_PARTS // len(places)))
    share = min(intervals, max(on_part, intervals // len(places)))
    edges = np.ravel(places)
    ends = [path.start_time, path.end_time] if keep_standstills else edges[[0, -1]]
    standing = np.diff([ends[0], *edges, ends[1]])[::2] * keep_standstills
    standstill = float(standing.sum())

    work = _Work(model, path, limits, wrench, actuators, motor_limits)
    found = [work.laws(start, end, share) for start, end in places]
    if rate is None:
        moving = sum(fastest.duration for _, fastest, _ in found)
        most = _MANY_SAMPLES / moving, 0.9 * _MOST_SAMPLES / (moving + standstill)
        rate = min(RATE, *most)
    # Whole nanoseconds, as messages have them.
    step = round(_NANO / rate) / _NANO
    _refuse_many(standstill / step)
    width = max(1, round(window / step) - _OF_SPLINE + 1)
    parts = []
    for part, fastest, uniform in found:
        chosen = work.slowed(part, fastest, step, width)
        others = []
        if may_refine and chosen.stretch > _WASTED:
            _, finer, _ = work.laws(*part.ends, _FINER * share)
            others.append(work.slowed(part, finer, step, width))
        if chosen.stretch * fastest.duration > uniform.duration:
            others.append(work.slowed(part, uniform, step, width))
        parts.append(min((chosen, *others), key=lambda each: len(each.rows)))
    pauses = [round(time / step) for time in standing]
    first, last = (np.append(path(place, 0)[0], place)[None] for place in ends)

    rows, starts = _joined([first, *(part.rows for part in parts), last], pauses)
    periods = len(rows) - _AT_REST
    missing = shortest / step - periods
    if missing > 0.0:
        slower = 1.0 + missing / sum(part.periods for part in parts)
        _refuse_many(slower * periods)
        parts = [
            work.slowed(part.path, part.law, step, width, slower * part.stretch, part.wide)
            for part in parts
        ]
        rows, starts = _joined([first, *(part.rows for part in parts), last], pauses)
    motion, sigma = _spline(rows, step)
    if wrench is not None and sum(pauses) and work.scaling(motion, sigma).factor > _ROUNDED:
        raise ScalingError('The wrench exceeds a limit while the path stands still; change it.')
    passed = np.clip(sigma(motion.times, 1)[:, 0], path.start_time, path.end_time)
    number = int(np.argmax([part.scaling.factor for part in parts]))
    start, limiting = starts[number] * step, parts[number].scaling.limiting
    if missing > 0.0:
        start, limiting = 0.0, work.scaling(motion, sigma, near=None).limiting
    assert limiting is not None and limiting.time is not None
    limiting = limiting._replace(time=start + limiting.time)
    repair = max(part.stretch for part in parts)
    of_uniform = sum(uniform.duration for _, _, uniform in found) + standstill
    deviation = np.abs(motion(motion.times, 0) - path(passed, 0)).max(axis=(0, 1))
    return Retimed(
        motion, sigma, motion.duration, of_uniform, repair, limiting, deviation, standstill, limits
    )


class _Part(NamedTuple):
    """A moving part of the path, retimed."""

    path: RestingPath
    law: JtcMotion
    periods: int  # of the law, before it was averaged
    stretch: float  # time factor of the law
    wide: int  # periods over which sigma was averaged, twice
    rows: Array  # positions and sigma, averaged, one period apart
    scaling: UniformScaling


class _Work(NamedTuple):
    """What is retimed, and what limits it."""

    model: RobotModel
    path: TimedMotion
    limits: MotionLimits
    wrench: WrenchFunction | None
    actuators: Actuators | None
    motor_limits: MotorLimits | None

    def laws(
        self, start: float, end: float, intervals: int
    ) -> tuple[RestingPath, JtcMotion, JtcMotion]:
        """Part of the path, a fast law on it and that with a constant speed."""
        from hodyn_ros.analysis import retiming_law  # It loads SciPy.

        path = RestingPath(self.path, start, end)
        try:
            uniform = self.scaling(path, path.parameter, near=None)
        except ScalingError:
            self.scaling(self.path, _constant_speed, near=None)  # says where, by its parameter
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

        def limits_at(places: Array) -> retiming_law.Limited:
            wrenches: list[Sequence[Wrench] | None] = [None] * 3
            if self.wrench is not None:
                once = path.parameter(places, highest - 1)
                speeding = once.copy()
                speeding[:, 2:] += once[:, 1:2]
                along = once, once * 2.0 ** np.arange(highest - 1.0), speeding
                wrenches = [wrenches_along(self.wrench, sigma) for sigma in along]
            p = path(places, highest)
            return retiming_law.path_limits(self.model, self.limits, p, wrenches, drives)

        return path, *retiming_law.time_laws(limits_at, 1.0 / uniform.factor, intervals)

    def _drives(self) -> retiming_law.Drives:
        """Motors of joints that have one, and springs that are linear."""
        from hodyn_ros.actuators.springs import LinearSpring
        from hodyn_ros.analysis.retiming_law import Drives

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

    def scaling(
        self, motion: TimedMotion, sigma: SeriesOf, near: float | None = 1.0
    ) -> UniformScaling:
        """Scale a motion uniformly; `sigma` is its place on the path."""
        wrench = self.wrench
        return uniform_scaling(
            self.model,
            motion,
            self.limits,
            wrench=None if wrench is None else lambda t, K: wrenches_along(wrench, sigma(t, K)),
            actuators=self.actuators,
            motor_limits=self.motor_limits,
            near=near,
        )

    def slowed(
        self, path: RestingPath, law: JtcMotion, step: float, width: int, stretch: float = 1.0,
        wide: int = 1,
    ) -> _Part:  # fmt: skip
        """Average a motion, and slow it down until it keeps its limits.

        For what motors need of the derivatives of torques, sigma is averaged over more steps, as
        long as that costs less than to slow down.
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
        self, path: RestingPath, law: JtcMotion, step: float, width: int, stretch: float, wide: int
    ) -> _Part:
        """Average the positions of a motion over so many steps, and before that sigma, twice."""
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
        rows: Array = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0).mean(axis=-1)
        rows[[0, -1]] = places[[0, -1]]
        found = self.scaling(*_spline(_joined([rows[:1], rows, rows[-1:]], [0, 0])[0], step))
        return _Part(path, law, periods, periods * step / law.duration, wide, rows, found)


def _constant_speed(times: Array, K: int) -> Array:
    """Series (N, K) of a parameter that is the time."""
    return np.column_stack([times, np.ones_like(times), np.zeros((len(times), K))])[:, :K]


def wrenches_along(wrench: WrenchFunction, parameter: Array) -> tuple[Wrench, ...]:
    """Wrenches with time derivatives (N, E, 6) along a moving parameter, a series (N, E)."""
    E = parameter.shape[1]
    given = wrench(parameter[:, 0], E)
    found = []
    for item in (given,) if isinstance(given, Wrench) else given:
        values = np.asarray(item.values) if isinstance(item, Wrench) else np.zeros(0)
        if values.ndim not in (2, 3) or values.shape[-2] != E:
            raise WrenchError(
                f'The function wrench(parameter, {E}) gave {type(item).__name__} with values of '
                f'shape {values.shape}, expected wrenches with values of shape '
                f'({len(parameter)}, {E}, 6): derivatives with respect to its parameter.'
            )
        series = compose(np.swapaxes(values, -1, -2), parameter[:, None, :])
        found.append(replace(item, values=np.swapaxes(series, -1, -2)))
    return tuple(found)


def _spline(rows: Array, step: float) -> tuple[JtcMotion, SeriesOf]:
    """Motion with positions and sigma as its coefficients, and sigma as a function of time."""
    parameter = spline_of_degree_5(rows[:, -1:], step)
    return spline_of_degree_5(rows[:, :-1], step), lambda t, K: parameter(t, K - 1)[..., 0]


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


def _refuse_many(samples: float) -> None:
    if samples > _MOST_SAMPLES:
        raise TrajectoryError(
            f'The motion would have {samples:.3g} samples, expected {_MOST_SAMPLES} at most; '
            'choose a lower rate.'
        )


def moving_parts(model: RobotModel, path: TimedMotion) -> list[tuple[float, float]]:
    """Intervals of the parameter sigma on which a path moves; in between it stands still.

    Each goes from one knot of the path to another one; a path without knots is one part. Where the
    positions of all joints are the same on a whole segment, but for rounding, it stands still.
    """
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
    knots = knots_of(path)
    if knots is None:
        knots = np.array([path.start_time, path.end_time], dtype=np.float64)
    if not (np.all(np.isfinite(knots)) and knots[-1] > knots[0]):
        raise TrajectoryError(
            f'The path goes from {path.start_time!r} to {path.end_time!r}, expected an interval.'
        )
    places = knots[:-1, None] + np.diff(knots)[:, None] * np.linspace(0.0, 1.0, _PLACES_ON_SEGMENT)
    positions = path(np.minimum(places, knots[-1]), 0)[:, :, 0]
    if not np.all(np.isfinite(positions)):
        raise TrajectoryError('The path has positions that are not finite.')
    rounding = _ROUNDING * np.abs(positions).max(axis=(0, 1))
    moves = np.any(np.ptp(positions, axis=1) > rounding, axis=1)
    if not moves.any():
        raise TrajectoryError('The path does not move: all its positions are the same.')
    edges = np.flatnonzero(np.diff(moves, prepend=False, append=False))
    return [(float(knots[a]), float(knots[b])) for a, b in edges.reshape(-1, 2)]


class RestingPath:
    """A path q(sigma) as a function p(u) of u from 0 to 1, of class C4 and at rest at both ends.

    It goes from `start` to `end` in sigma, by default along the whole path. A law that leaves rest
    advances as t^5 and has no smooth speed over sigma. The first four derivatives of sigma(u)
    vanish at both ends: there the joints rest whatever the speed of u is, a smooth function of u.
    """

    start_time, end_time = 0.0, 1.0

    def __init__(
        self, path: TimedMotion, start: float | None = None, end: float | None = None
    ) -> None:
        self._path = path
        self._start = float(path.start_time if start is None else start)
        self._end = float(path.end_time if end is None else end)
        self._length, self.ends = self._end - self._start, (self._start, self._end)
        # In units of the whole length, all derivatives are comparable.
        places = np.linspace(self._start, self._end, _PLACES)
        derivatives = path(places, 4) * self._length ** np.arange(5.0)[:, None]
        if derivatives.ndim != 3 or not np.all(np.isfinite(derivatives)):
            raise TrajectoryError(
                'The path must give finite derivatives of shape (N, 5, n), but gives '
                f'{derivatives.shape} with values that are not finite or in another shape.'
            )
        # Power of u with which sigma leaves each end, by the first derivative that is not zero.
        size = np.abs(derivatives[:, 1:]).max(axis=2)
        moves = size[[0, -1]] > _VANISHING * size.max(axis=0)
        orders = np.where(moves.any(axis=1), moves.argmax(axis=1) + 1, _ORDER_OF_REST)
        first, last = (-(-_ORDER_OF_REST // int(order)) for order in orders)
        self._from_start, self._from_end = _advance(first, last), _advance(last, first)

    def parameter(self, u: Array, K: int) -> Array:
        """Compute derivatives 0 to K-1 of sigma with respect to u, shape (..., K)."""
        near_end = u > 0.5
        x = np.where(near_end, 1.0 - u, u)
        result = np.empty((*np.shape(u), K))
        for k in range(K):
            at_start = polynomial.polyval(x, polynomial.polyder(self._from_start, k))
            at_end = polynomial.polyval(x, polynomial.polyder(self._from_end, k))
            result[..., k] = self._length * np.where(near_end, -((-1.0) ** k) * at_end, at_start)
        result[..., 0] += np.where(near_end, self._end, self._start)
        # Rounding must not lead off the path.
        np.clip(result[..., 0], self._start, self._end, out=result[..., 0])
        return result

    @cached_property
    def times(self) -> Array:
        """Values of u at the knots of the path, from 0 to 1; only these two if it has none."""
        sigma = knots_of(self._path)
        if sigma is None:
            return np.array([0.0, 1.0])
        sigma = sigma[(sigma >= self._start) & (sigma <= self._end)]
        low, high = np.zeros_like(sigma), np.ones_like(sigma)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            is_before = self.parameter(middle, 1)[:, 0] < sigma
            low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
        return np.unique(np.concatenate(([0.0], high[1:-1], [1.0])))

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """p(u) and its derivatives at u = t, shape (..., highest_derivative + 1, n)."""
        sigma = self.parameter(np.asarray(t, dtype=np.float64), highest_derivative + 1)
        outer = np.swapaxes(self._path(sigma[..., 0], highest_derivative), -1, -2)
        return np.swapaxes(compose(outer, sigma[..., None, :]), -1, -2)


def _advance(first: int, last: int) -> Array:
    """Coefficients of the polynomial from 0 to 1 that leaves 0 as x^first, reaches 1 as x^last."""
    rate = np.append(np.zeros(first - 1), polynomial.polypow([1.0, -1.0], last - 1))
    whole = polynomial.polyint(rate)
    return np.asarray(whole / whole.sum())
