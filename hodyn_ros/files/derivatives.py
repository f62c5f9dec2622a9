"""From samples as files hold them to motions with all the derivatives that efforts need.

They are given, or come from the spline through all samples, or are estimated from measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array, check_choice, checked_number
from hodyn_ros.errors import MotionError, TrajectoryError
from hodyn_ros.files.quantities import MOTION
from hodyn_ros.files.samples import MEASURED, Results, Samples, join_results
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import DERIVATIVES, listed
from hodyn_ros.trajectory.piecewise import divided_times
from hodyn_ros.trajectory.planning import Waypoints, plan_motion
from hodyn_ros.trajectory.rounding import fit_waypoints
from hodyn_ros.trajectory.smoother import Smoother, runs
from hodyn_ros.trajectory.spline import STANDSTILL, MotionSpline, fit_spline

Item = TypeVar('Item')

_RATE = 100.0  # samples per second between waypoints, if nothing else is asked for [Hz]
_RATE_OF_SAMPLES = 10.0  # of positions alone; fewer of them are waypoints [Hz]
_SPLINE_ORDERS = 5  # of the motion of a spline: position to snap
_MOST_SAMPLES = 20_000_000  # between waypoints; more is a mistake in their times
# Amplitudes of the smallest oscillation whose derivatives are of interest [rad, m; N, N m] and its
# angular frequency; share of what is largest that is, too.
_SMALLEST_MOTION, _SMALLEST_FORCE, _SMALLEST_FREQUENCY = 0.01, 1.0, 10.0
_SHARE_OF_LARGEST = 0.01
_WRENCH_DERIVATIVES = 2
# What is farther away, or slower than this share of its limit of velocity, is in other units.
_FARTHEST_TURN = 6.0 * np.pi
_SLOWEST, _USUAL_VELOCITY = 1.5e-3, 3.0  # rad/s or m/s, where there is no limit
# Of times, and of any joint, from which on that is told.
_LEAST_STEP, _LEAST_MOTION = (0.2, 0.1)
_MAX_GAP = 0.1  # [s]
_FEWEST_MEASURED = 30
_PART = 10_000  # samples of a part, where the motion comes in one piece
_FREE = 4  # derivatives that are left open at the ends of a spline

_STRETCH = 8  # steps that are compared together
_FEWEST_STEPS = 4  # Between a few samples anything may happen.
# Velocities that are measured lag, are filtered, or are zero below a threshold.
_SHARE = 0.1
_NEGLIGIBLE = 0.01  # rad/s or m/s; ten times as much for each further derivative
# From here on the order below may jump where a motion is put together of pieces; beyond, zeros say
# that it is constant on each of them.
_JUMPING = 3
_LARGEST_ERROR = 8.0  # of positions, in standard deviations of their noise

# Each difference of noise is nearly twice as large as the one before it, sqrt(70 / 20) = 1.87 and
# less for the second and third; those of a motion that is sampled densely become smaller.
_NOISY = 1.5
_NOISE_ORDER = 3
_LEAST_NOISE = 1.0  # of the third derivative that is worth a word [rad/s^3] or [m/s^3]
_FEWEST_NOISY = 30  # samples
_MOST_NAMED = 3
# Noise that is more than six digits of a position leave out, which is three millionths of it, and
# that makes a larger jerk than the motion over some time [s].
_MORE_THAN_DIGITS, _SMALLEST_POSITION = 5e-6, 0.1
_SMOOTHING = 0.1
# Units in the last place by which equal steps may differ; share of a step that is worth a word.
_ROUNDED_BY, _ROUNDED_STEP = 2.0, 1e-5


@dataclass(frozen=True, eq=False)
class Completed:
    """A motion with its derivatives, NaN where one is not known, and what belongs to it."""

    results: Results
    """Without efforts and motors."""
    stiffness: Mapping[str, Array]
    """By the joint, shape (N, S)."""
    covariance: Array | None = None
    """Of position, velocity, ... of each joint where they are estimated, shape (N, n, K, K)."""
    wrench_covariances: tuple[Array, ...] = ()
    """Of the components of wrenches that are estimated, shapes (N, 6, S, S)."""
    max_gap: float = np.inf
    """Time between samples beyond which they do not belong to one motion [s]."""
    begins: bool = False
    """Whether a motion begins here, which does not go on what came before."""

    def in_parts(self) -> Iterator[Completed]:
        """Cut it into parts that need little memory for what is computed from them.

        Yields
        ------
        Completed
            Of up to 10 000 samples each. Covariances are not cut, so that it is for motions
            without them.
        """
        whole = self.results
        for first in range(0, max(1, len(whole)), _PART):
            rows = slice(first, first + _PART)
            wrenches = tuple(
                replace(wrench, values=np.asarray(wrench.values)[rows])
                for wrench in whole.wrenches
            )
            yield replace(
                self,
                results=whole.with_arrays(
                    {what: values[rows] for what, values in whole.arrays().items()},
                    times=whole.times[rows],
                    wrenches=wrenches,
                ),
                stiffness={joint: series[rows] for joint, series in self.stiffness.items()},
                begins=first == 0,
            )


def to_motion(
    model: RobotModel,
    samples: Samples,
    *,
    derivatives: str = 'auto',
    order: int = 4,
    interpolation: str = 'spline',
    rate: float | None = None,
    estimator: Mapping[str, Any] | None = None,
) -> tuple[Array, Array, tuple[str, ...]]:
    """Motion in the order of the model, with the derivatives that the samples leave out.

    Parameters
    ----------
    model : RobotModel
        All its joints have to be in the samples; others are left out.
    samples : Samples
    derivatives : {'auto', 'given', 'spline', 'estimate'}
        'given': what there is, no more. 'spline': motion of class C4 through all samples.
        'estimate': from measured positions, see `Smoother`. 'auto': the spline for
        waypoints, and for samples with positions, velocities and accelerations at most;
        estimates for measurements; otherwise what is given.
    order : int
        Highest derivative of the positions that is wanted, K - 1: the snap is 4.
    interpolation : {'spline', 'jtc', 'jtc_upsampled'}
        Between waypoints, see `plan_motion`.
    rate : float, optional
        At how many samples per second a spline is evaluated [Hz]. By default at the times of the
        samples; between waypoints at 100 Hz at least, and at the waypoints.
    estimator : mapping of str to object, optional
        For estimates: `noise`, `bandwidth` and `smallest_motion` of `Smoother`; `max_gap`, time
        between measurements beyond which a motion begins anew, by default 0.1 s.

    Returns
    -------
    times : ndarray, shape (N,)
        Counted from `samples.start` [s].
    motion : ndarray, shape (N, K, n)
        [rad/s^k] or [m/s^k]. NaN where an order is not known at a sample; with 'given' K may be
        less than asked for.
    remarks : tuple of str
        What was given, and where the rest comes from.

    Raises
    ------
    JointNameError
        If a joint of the model is missing.
    MotionError
        If an argument is unusable, or nothing can be estimated.
    TrajectoryError
        If there is no spline through the samples.
    """
    how = How(derivatives, order + 1, interpolation, rate, dict(estimator or {}))
    found = join_results([part.results for part in how.complete(model, [samples])])
    return found.times, found.motion, found.remarks


@dataclass(frozen=True)
class How:
    """Where derivatives come from; see `to_motion`.

    Attributes
    ----------
    derivatives : {'auto', 'given', 'spline', 'estimate'}
        See `to_motion`.
    orders : int
        Orders of the motion that are wanted, from the position on: 5 up to the snap.
    interpolation : {'spline', 'jtc', 'jtc_upsampled'}
        Between waypoints.
    rate : float or None
        Samples per second of a spline [Hz]; None: as the samples are.
    estimator : mapping of str to object
        Options of the estimate.

    Raises
    ------
    MotionError
        If a choice is unknown, the orders are out of range, or the rate is not positive.
    """

    derivatives: str = 'auto'
    orders: int = 5
    interpolation: str = 'spline'
    rate: float | None = None
    estimator: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice('derivatives', self.derivatives, DERIVATIVES, MotionError)
        most = len(MOTION)
        checked_number(
            'order', self.orders - 1, MotionError, least=0, most=most - 1, whole=True
        )
        if self.rate is not None:
            checked_number('rate', self.rate, MotionError, above=0.0, unit='Hz')

    def choose(self, samples: Samples) -> str:
        """Return 'given', 'spline' or 'estimate' for these samples.

        Parameters
        ----------
        samples : Samples
            First part of a motion.

        Returns
        -------
        {'given', 'spline', 'estimate'}
        """
        if self.derivatives != 'auto':
            return self.derivatives
        if samples.is_waypoints:
            return 'spline'
        if samples.is_measured:
            return 'estimate'
        # Beyond the acceleration a spline cannot go through what is given.
        return 'given' if samples.motion.shape[1] > min(3, self.orders - 1) else 'spline'

    def complete(self, model: RobotModel, parts: Iterable[Samples]) -> Iterator[Completed]:
        """Complete a motion that comes in consecutive parts; each trajectory is one of its own.

        Parameters
        ----------
        model : RobotModel
        parts : iterable of Samples
            Of all joints of the model at least, in any order.

        Yields
        ------
        Completed
            Consecutive parts in the order of the model. `begins` says where a motion of its
            own starts.

        Raises
        ------
        JointNameError, MotionError, TrajectoryError
            See `to_motion`; also if there are no parts.
        """
        stream = iter(parts)
        first = next(stream, None)
        if first is None:
            raise MotionError('There are no samples to compute anything from.')
        choice = self.choose(first)
        if choice == 'estimate':
            yield from self._estimated(model, chain([first], stream), first.name)
            return
        if choice == 'spline' and not first.is_waypoints:
            first, stream = as_waypoints(join_results([first, *stream])), iter(())
        begins = True
        for samples in chain([first], stream):
            if choice == 'spline':
                yield from self._spline(model, samples).in_parts()
            else:
                yield self._given(model, samples, begins)
                begins = samples.is_waypoints

    def _given(self, model: RobotModel, samples: Samples, begins: bool) -> Completed:
        """Samples as they are, with as many of the wanted orders as there are."""
        samples, remarks = in_model_order(model, samples)
        refuse_contradictions(model, samples)
        motion = samples.motion[:, : self.orders]
        if lacking := MOTION[motion.shape[1] : self.orders]:
            remarks += (f'Not given, and left out: {listed(lacking)}.',)
        wrenches = samples.wrenches
        found = _results(
            model, samples, samples.times, motion, 'given', remarks, wrenches=wrenches
        )
        return Completed(found, samples.stiffness, begins=begins)

    def _spline(self, model: RobotModel, samples: Samples) -> Completed:
        """Spline through all samples, or between waypoints as `interpolation` says."""
        samples, remarks = in_model_order(model, samples)
        if self.orders > _SPLINE_ORDERS:
            raise MotionError(
                f'Derivative {self.orders - 1} of the motion is asked for, but a spline has '
                f'derivatives up to {_SPLINE_ORDERS - 1}: the snap.'
            )
        given = samples.motion.shape[1]
        if given > 3:
            remarks += (
                'Jerk and more are given, but the spline does not go through them.',
            )
        positions = samples.motion[:, 0]
        rows = [samples.motion[:, k] if k < given else None for k in (1, 2)]
        if not samples.is_waypoints:  # between which the motion is open
            refuse_contradictions(model, samples)
            remarks += noise_remarks(samples)
        given_times = samples.times
        samples, rounded = even_times(samples)
        remarks += rounded
        try:
            if samples.is_waypoints or self.interpolation != 'spline':
                waypoints = Waypoints(samples.joint_names, samples.times, positions, *rows)  # type: ignore[arg-type]
                plan = plan_motion(
                    waypoints, model.joint_names, interpolation=self.interpolation
                )
                curve: Any = plan.motion
                is_still = np.all(np.abs(curve(curve.end_time)[1:3]) <= STANDSTILL)
                remarks += (
                    *plan.remarks,
                    f'The motion ends {"at rest" if is_still else "moving"}.',
                    *plan.warnings,
                )
            else:
                free = np.full((_FREE, positions.shape[1]), np.nan)
                curve, _, rounded = fit_waypoints(
                    samples.times,
                    positions,
                    *rows,
                    start=free,
                    end=free,
                    joint_names=samples.joint_names,
                )
                names = ', '.join(MOTION[: min(given, 3)])
                which = f'{len(curve.times)} of' if rounded else 'all'
                remarks += (
                    f'The motion is the spline of class C4 through {which} {len(samples)} samples '
                    f'({names}); it need not begin and end at rest.',
                    *rounded,
                )
        except TrajectoryError as error:
            raise TrajectoryError(f'{samples.name}: {error}') from error
        times = self._times(samples)
        shift = given_times[0] - samples.times[0]
        found = _results(
            model,
            samples,
            given_times if times is samples.times else shift + times,
            np.ascontiguousarray(curve(times)[:, : self.orders]),
            'waypoints' if samples.is_waypoints else 'given',
            remarks,
            continuous_order=max(-1, min(curve.continuous_derivative - 2, 2)),
            wrenches=tuple(
                replace(w, values=self._series(samples, np.asarray(w.values), times))
                for w in samples.wrenches
            ),
        )
        stiffness = {
            name: self._series(samples, series[:, :, None], times)[:, :, 0]
            for name, series in samples.stiffness.items()
        }
        return Completed(found, stiffness)

    def _series(self, samples: Samples, values: Array, times: Array) -> Array:
        """Values (N, S, c) of another kind and their derivatives, at other times.

        Shape (times, orders - 2, c). Without change where the orders and times are those
        that are wanted; else the spline through all of them.
        """
        rows = [values[:, k] if k < values.shape[1] else None for k in (1, 2)]
        most = max(self.orders - 2, 1)
        if values.shape[1] >= most and np.array_equal(times, samples.times):
            return values[:, :most]
        through = _through(samples.times, values[:, 0], *rows)
        return np.ascontiguousarray(through(times)[:, :most])

    def _times(self, samples: Samples) -> Array:
        """Times [s] at which a spline is evaluated: of the samples, or at the wanted rate."""
        times = samples.times
        if self.rate is None and not samples.is_waypoints:
            return times
        rate = _RATE if self.rate is None else self.rate
        duration = float(times[-1] - times[0])
        if duration * rate > _MOST_SAMPLES:
            raise MotionError(
                f'{samples.name}: at {rate:g} Hz the motion of {duration:g} s has more than '
                f'{_MOST_SAMPLES} samples; choose a lower rate.'
            )
        if self.rate is not None:
            return np.linspace(times[0], times[-1], max(1, round(duration * rate)) + 1)
        return divided_times(times, rate)

    def _smoothing(self) -> tuple[dict[str, Any], float]:
        """Options of `Smoother`, and the time beyond which a motion begins anew [s]."""
        options = {
            'smallest_motion': _SMALLEST_MOTION,
            'max_gap': _MAX_GAP,
            **self.estimator,
        }
        known = ('noise', 'bandwidth', 'smallest_motion', 'max_gap')
        if unknown := [key for key in options if key not in known]:
            raise MotionError(
                f'estimator has {listed(unknown)}, but a recording is smoothed as a whole, with '
                f'the options {listed(known)}; leave the others out.'
            )
        max_gap = checked_number('max_gap', options.pop('max_gap'), MotionError, above=0.0)
        return options, max_gap

    def _estimated(
        self, model: RobotModel, parts: Iterable[Samples], name: str
    ) -> Iterator[Completed]:
        """Estimate a motion, and wrenches measured at the same times, from all of them."""
        options, max_gap = self._smoothing()
        whole, remarks, stamps = _gathered(model, parts)
        kept = [rows for rows in runs(stamps, max_gap) if len(rows) >= _FEWEST_MEASURED]
        if not kept:
            raise MotionError(
                f'{name}: nothing could be estimated; expected at least {_FEWEST_MEASURED} '
                f'measurements at intervals of less than {max_gap:g} s (max_gap).'
            )
        sizes, noises = RelativeErrors(), list[Array]()

        def estimated() -> Iterator[Completed]:
            for rows in kept:
                joints = Smoother(
                    stamps[rows],
                    whole.motion[rows, 0],
                    highest_derivative=max(1, self.orders - 1),
                    **options,
                )
                noises.append(joints.noise)
                loads = [
                    Smoother(
                        stamps[rows],
                        np.asarray(wrench.values)[rows, 0],
                        highest_derivative=_WRENCH_DERIVATIVES,
                        smallest_motion=_SMALLEST_FORCE,
                    )
                    for wrench in whole.wrenches
                ]
                times, place = 1e-9 * stamps[rows].astype(np.float64), 0
                for blocks in zip(joints.blocks(), *(load.blocks() for load in loads)):
                    part = times[place : place + len(blocks[0].motion)]
                    found = self._of_blocks(model, whole, part, blocks, remarks)
                    arrays = found.results.arrays()
                    sizes.add(arrays['motion'], arrays['motion_std'])
                    yield replace(found, max_gap=max_gap, begins=place == 0)
                    place += len(part)

        def told(last: Completed) -> Completed:
            smallest = _SMALLEST_MOTION * _SMALLEST_FREQUENCY ** np.arange(
                float(len(MOTION))
            )
            every = (
                *remarks,
                _told(len(whole), kept, np.mean(noises, axis=0)),
                *sizes.remarks(MOTION, model.joint_names, smallest),
            )
            return replace(last, results=replace(last.results, remarks=every))

        yield from with_last(estimated(), told)

    def _of_blocks(
        self,
        model: RobotModel,
        whole: Samples,
        times: Array,
        blocks: Sequence[Any],
        remarks: tuple[str, ...],
    ) -> Completed:
        """Estimates of the joints, then of each wrench, at some times (N,)."""
        (joints, *loads), K, S = blocks, self.orders, max(self.orders - 2, 1)
        results = _results(
            model,
            whole,
            times,
            joints.motion[:, :K],
            'measured',
            remarks,
            motion_std=joints.std[:, :K],
            wrenches=tuple(
                replace(wrench, values=load.motion[:, :S])
                for wrench, load in zip(whole.wrenches, loads)
            ),
        )
        wrench_covariances = tuple(load.covariance[:, :, :S, :S] for load in loads)
        return Completed(results, {}, joints.covariance[:, :, :K, :K], wrench_covariances)


def with_last(items: Iterable[Item], change: Callable[[Item], Item]) -> Iterator[Item]:
    """Pass items on, and change the last one when it is known to be the last.

    Parameters
    ----------
    items : iterable
    change : callable
        From the last item to what takes its place.

    Yields
    ------
    object
    """
    held: list[Item] = []
    for item in items:
        yield from held
        held = [item]
    yield from map(change, held)


class RelativeErrors:
    """Sizes of quantities and of their standard deviations, along all parts of a motion."""

    def __init__(self) -> None:
        self._count = 0
        self._squares: Array = np.zeros(0)
        self._variances: Array = np.zeros(0)

    def add(self, values: Array, std: Array) -> None:
        """Take values and standard deviations of some samples, shape (N, K, n).

        Parameters
        ----------
        values : ndarray, shape (N, K, n)
            NaN counts as zero.
        std : ndarray, shape (N, K, n)
            In the units of the values.
        """
        squares, variances = (np.nansum(a**2, axis=0) for a in (values, std))
        if self._count:
            squares, variances = self._squares + squares, self._variances + variances
        self._squares, self._variances = squares, variances
        self._count += len(values)

    def remarks(
        self,
        names: Sequence[str],
        joint_names: Sequence[str],
        smallest: Array | float = 0.0,
    ) -> tuple[str, ...]:
        """Say how large the deviations are, and of what they are larger than the values.

        A quantity counts as no smaller than `smallest`, and than a hundredth of that of the joint
        where it is largest.

        Parameters
        ----------
        names : sequence of str
            Of the K orders.
        joint_names : sequence of str
            Of the n joints.
        smallest : float or ndarray, shape (12,)
            Of each order, as many as `MOTION` names, in the units of the values.

        Returns
        -------
        tuple of str
            At most two sentences; none if nothing was added.
        """
        if not self._count:
            return ()
        size, std = (np.sqrt(a / self._count) for a in (self._squares, self._variances))
        size = np.maximum(size, _SHARE_OF_LARGEST * size.max(axis=1, keepdims=True))
        size = np.maximum(size, np.broadcast_to(smallest, len(MOTION))[: len(size), None])
        ratio = std / np.maximum(size, np.finfo(np.float64).tiny)
        worst = listed(
            f'{name} {100.0 * row.max():.2g} % ({joint_names[int(row.argmax())]})'
            for name, row in zip(names, ratio)
        )
        found = [
            f'Standard deviations, of the size and where they are largest (RMS): {worst}.'
        ]
        useless = [
            f'{name} of {listed(np.take(joint_names, np.flatnonzero(row > 1.0)).tolist())}'
            for name, row in zip(names, ratio)
            if (row > 1.0).any()
        ]
        if useless:
            found.append(f'Less certain than they are large: {"; ".join(useless)}.')
        return tuple(found)


def _gathered(
    model: RobotModel, parts: Iterable[Samples]
) -> tuple[Samples, tuple[str, ...], NDArray[np.int64]]:
    """Measurements of all parts without turns of encoders, remarks, and their stamps [ns]."""
    remarks: tuple[str, ...] = ()
    every, stamps, origin = [], [], None
    for samples in parts:
        samples, remarks = in_model_order(model, samples)
        if samples.stiffness:
            raise MotionError(
                f'{samples.name}: there is a stiffness for {listed(samples.stiffness)}, which '
                "cannot be combined with an estimated motion; use derivatives='spline'."
            )
        origin = samples.start if origin is None else origin
        stamps.append(
            np.rint(1e9 * samples.times).astype(np.int64) + (samples.start - origin)
        )
        bare = {what: None for what in MEASURED}
        every.append(replace(samples, motion=samples.motion[:, :1], **bare))  # type: ignore[arg-type]
    whole = join_results(every)
    turns = [kind == 'continuous' for kind in model.joint_types]
    if any(turns):  # encoders start anew after one
        positions = whole.motion[:, 0]
        unwound = np.where(turns, np.unwrap(positions, axis=0), positions)
        whole = replace(whole, motion=unwound[:, None])
    return whole, remarks, np.concatenate(stamps)


def _told(taken: int, kept: Sequence[NDArray[np.intp]], noise: Array) -> str:
    """Say what was estimated from what."""
    text = (
        'The derivatives are estimated from all measured positions, with standard deviations. '
        f'Noise of the positions: {noise.min():.2g} to {noise.max():.2g} rad or m.'
    )
    if dropped := taken - sum(map(len, kept)):
        text += (
            f' {dropped} of {taken} measurements came late, twice, with a stamp out of order or '
            'alone between gaps, and were not used.'
        )
    if len(kept) > 1:
        text += f' {len(kept) - 1} times it started anew behind a gap.'
    return text


def in_model_order(model: RobotModel, samples: Samples) -> tuple[Samples, tuple[str, ...]]:
    """Choose the joints of a model, with a remark on others; refuse what is in other units.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        In any order, maybe of more joints.

    Returns
    -------
    samples : Samples
        With the joints of the model in its order.
    remarks : tuple of str
        What was left out.

    Raises
    ------
    JointNameError
        If a joint of the model is missing.
    MotionError
        If positions look like degrees, or times like milliseconds.
    """
    ordered, unused = samples.in_order(model.joint_names)
    _refuse_degrees(model, ordered)
    _refuse_milliseconds(model, ordered)
    if not unused:
        return ordered, ()
    return ordered, (f'Left out, since the model does not have them: {listed(unused)}.',)


def _refuse_degrees(model: RobotModel, samples: Samples) -> None:
    """Refuse positions of revolute joints beyond both three times their limits and three turns."""
    turning = np.flatnonzero([kind == 'revolute' for kind in model.joint_types])
    if not turning.size:
        return
    farthest = np.abs(samples.motion[:, 0, turning]).max(axis=0, initial=0.0)
    bound = np.maximum(np.abs(model.limits.lower), np.abs(model.limits.upper))[turning]
    bound = np.maximum(np.where(np.isfinite(bound), 3.0 * bound, 0.0), _FARTHEST_TURN)
    if (far := farthest > bound).any():
        raise MotionError(
            f'{samples.name}: {model.joint_names[int(turning[far.argmax()])]} is at '
            f'{farthest[far.argmax()]:.4g}, expected radians; this looks like degrees. Multiply '
            'positions and their derivatives by pi / 180. If these are positions of a motor '
            'before its gear, divide them by its ratio.'
        )


def _refuse_milliseconds(model: RobotModel, samples: Samples) -> None:
    """Refuse times in which all joints are slower than any robot, though they move."""
    if samples.is_measured or len(samples) < 2:
        return
    times, positions = samples.times, samples.motion[:, 0]
    step = float(np.median(np.diff(times)))
    if step < _LEAST_STEP or np.ptp(positions, axis=0).max() < _LEAST_MOTION:
        return
    fastest = (np.abs(np.diff(positions, axis=0)) / np.diff(times)[:, None]).max(axis=0)
    known = np.isfinite(model.limits.velocity)
    if (fastest < _SLOWEST * np.where(known, model.limits.velocity, _USUAL_VELOCITY)).all():
        powers = (('milliseconds', 3), ('microseconds', 6), ('nanoseconds', 9))
        unit, power = powers[min(2, max(0, int(np.log10(step / _LEAST_STEP)) // 3))]
        raise MotionError(
            f'{samples.name}: the times are {step:.4g} apart, and no joint moves by more than '
            f'{fastest.max():.2g} a second, expected seconds; this looks like {unit}. Divide the '
            f'times by 1e{power}.'
        )


def _results(
    model: RobotModel,
    samples: Samples,
    times: Array,
    motion: Array,
    source: str,
    remarks: tuple[str, ...],
    **more: Any,
) -> Results:
    """Results without efforts: motion (N, K, n) at times (N,), and where it comes from."""
    effort = np.empty((len(times), 0, model.n_joints))
    fields = {
        'name': samples.name,
        'source': source,
        'remarks': remarks,
        'start': samples.start,
    }
    return Results.of_model(model, times, motion, effort, **{**fields, **more})


def _through(
    times: Array, values: Array, rates: Array | None, accelerations: Array | None
) -> MotionSpline:
    """Spline through samples that may begin and end anywhere in a motion."""
    free = np.full((_FREE, values.shape[1]), np.nan)
    return fit_spline(times, values, rates, accelerations, start=free, end=free)


def refuse_contradictions(model: RobotModel, samples: Samples) -> None:
    """Refuse samples whose derivatives are not those of their positions.

    By the mean value theorem, the mean slope over a stretch of time lies between the smallest and
    the largest derivative in it. What may happen between samples, beside the stretch, and by
    noise, rounding and uneven times is allowed for, so that a motion may be sampled coarsely.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Of its joints, in its order. With positions alone, or fewer than five of them, there
        is nothing to compare.

    Raises
    ------
    MotionError
        For the stretch and joint that are farthest from what is allowed.
    """
    times, motion = samples.times, samples.motion
    if not (np.diff(times) > 0.0).all():  # measurements come late or twice
        times, rows = np.unique(times, return_index=True)
        motion = motion[rows]
    turns = [kind == 'continuous' for kind in model.joint_types]
    if any(turns):  # encoders start anew after one
        motion = motion.copy()
        motion[:, 0] = np.where(turns, np.unwrap(motion[:, 0], axis=0), motion[:, 0])
    steps = min(_STRETCH, (len(times) - 1) // _FEWEST_STEPS)
    if steps < 1 or motion.shape[1] < 2:
        return
    edges = np.arange(0, len(times), steps)
    few = motion[edges]
    slopes = np.diff(few[:, :-1], axis=0) / np.diff(times[edges])[:, None, None]
    lowest, highest = (
        _beside(extreme, motion[:, 1:], edges) for extreme in (np.minimum, np.maximum)
    )
    share = _SHARE * np.fmax.reduce(np.maximum(-lowest, highest), axis=0)
    share = np.fmax(share, _NEGLIGIBLE * 10.0 ** np.arange(len(share))[:, None])
    outside = np.maximum(lowest - slopes, slopes - highest) - share
    # What may happen between samples is looked at where it decides.
    for k in (1 + np.flatnonzero((outside > 0.0).any(axis=(0, 2)))).tolist():
        slope, excess = _excess(
            k, times, motion, edges, slopes[:, k - 1], lowest[:, k - 1], highest[:, k - 1]
        )
        excess -= share[k - 1]
        if not (excess > 0.0).any():
            continue
        stretch, joint = np.unravel_index(np.nanargmax(excess), excess.shape)
        i = int(edges[stretch] + steps // 2)
        unit = 'm' if model.joint_types[int(joint)] == 'prismatic' else 'rad'
        unit += '/s' if k == 1 else f'/s^{k}'
        zeros = '' if motion[:, k, joint].any() else ' It is nothing but zeros.'
        raise MotionError(
            f'{samples.name}: the {MOTION[k]} of {model.joint_names[int(joint)]} is given as '
            f'{motion[i, k, joint]:.4g} {unit} at {times[i]:.4f} s, but its {MOTION[k - 1]} '
            f'changes by {slope[stretch, joint]:.4g} {unit} there.{zeros} Correct the times or '
            'the columns, or leave the derivatives out; --derivatives estimate uses the positions '
            'alone. Waypoints, between which the motion is open, belong into a trajectory (.yaml).'
        )


def _excess(
    k: int,
    times: Array,
    motion: Array,
    edges: NDArray[np.intp],
    slope: Array,
    low: Array,
    high: Array,
) -> tuple[Array, Array]:
    """Slopes of an order below k, and by how much they lie outside of what order k allows.

    Both of each stretch and joint; `low` and `high` are the extremes of order k beside a stretch.
    """
    lower, given, step = motion[:, k - 1], motion[:, k], np.diff(times)
    lasting, steps = np.diff(times[edges])[:, None], int(edges[1])
    if k >= _JUMPING:  # of which a stretch may have some
        if steps < _STRETCH:
            return slope, np.full_like(slope, -np.inf)
        single = (np.diff(lower, axis=0) / step[:, None])[: edges[-1]]
        slope = np.median(single.reshape(len(slope), steps, -1), axis=1)
        lasting = lasting / steps
    uneven = np.maximum.reduceat(np.abs(step - np.median(step)), edges[:-1])[:, None]
    error = _error_of(lower) + 2.0 * uneven * np.maximum(np.abs(low), np.abs(high))
    between = _beside(np.maximum, np.abs(np.diff(given, axis=0)), edges)
    excess = np.maximum(low - slope, slope - high) - between - error / lasting
    if k > _JUMPING:
        excess[(low == 0.0) & (high == 0.0)] = -np.inf
    return slope, excess


def _beside(extreme: np.ufunc, values: Array, edges: NDArray[np.intp]) -> Array:
    """Smallest or largest value of each stretch and the ones beside it."""
    found = extreme.reduceat(values, edges[:-1], axis=0)
    padded = np.concatenate([found[:1], found, found[-1:]])
    result: Array = extreme(extreme(padded[:-2], padded[1:-1]), padded[2:])
    return result


def _error_of(values: Array) -> Array:
    """Bound the error of a difference of two samples, of each column: noise and rounding."""
    step = np.abs(np.diff(values, axis=0))
    rounding = np.where(step > 0.0, step, np.inf).min(axis=0)
    rounding[np.isinf(rounding)] = 0.0
    fourth = np.nan_to_num(np.abs(np.diff(values, 4, axis=0)))
    noise = np.median(fourth, axis=0) / (0.6745 * np.sqrt(70.0))
    return np.asarray(2.0 * rounding + _LARGEST_ERROR * noise)


def as_waypoints(samples: Samples) -> Samples:
    """Samples of positions that are too far apart to show a motion are waypoints.

    Parameters
    ----------
    samples : Samples
        All samples of a motion.

    Returns
    -------
    Samples
        Marked as waypoints if there are fewer than 10 positions a second and nothing else;
        otherwise as they were.
    """
    if (
        samples.is_measured
        or samples.motion.shape[1] > 1
        or samples.wrenches
        or samples.stiffness
    ):
        return samples
    if not len(samples):
        return samples
    duration = samples.times[-1] - samples.times[0]
    return replace(
        samples, is_waypoints=bool(duration * _RATE_OF_SAMPLES > len(samples) - 1)
    )


def even_times(samples: Samples) -> tuple[Samples, tuple[str, ...]]:
    """Undo the rounding of times that count from long ago, for a spline through the samples.

    Times are counted from the first if the steps are equal but for the rounding of the last time;
    else a remark says so, where the rounding is no small part of them.

    Parameters
    ----------
    samples : Samples
        All samples of a motion.

    Returns
    -------
    samples : Samples
        With even times from zero on, or as they were.
    remarks : tuple of str
        Empty if the rounding does not matter.
    """
    times = samples.times
    if len(times) < 3 or samples.is_waypoints:
        return samples, ()
    since, rounding = times - times[0], float(np.spacing(np.abs(times).max()))
    even = np.linspace(0.0, since[-1], len(times))
    if np.abs(since - even).max() <= _ROUNDED_BY * rounding:
        return replace(samples, times=even), ()
    if rounding <= _ROUNDED_STEP * np.median(np.diff(times)):
        return samples, ()
    return samples, (
        f'Times of {times[-1]:.3g} s are rounded to {rounding:.2g} s, and the derivatives follow '
        'that; subtract the first time from all of them before they are written.',
    )


def noise_remarks(samples: Samples) -> tuple[str, ...]:
    """Say that samples look measured, or nothing: what is exact for them follows their noise.

    Parameters
    ----------
    samples : Samples
        Of one motion, in the order of time.

    Returns
    -------
    tuple of str
        One sentence about the lowest order with noise, or none.
    """
    for k in range(min(samples.motion.shape[1], _NOISE_ORDER)):
        noise = _noise(samples.times, samples.motion[:, k], _NOISE_ORDER - k)
        if (joints := np.flatnonzero(noise > _LEAST_NOISE)).size:
            names = listed(samples.joint_names[j] for j in joints[:_MOST_NAMED].tolist())
            names += f' and {len(joints) - _MOST_NAMED} more' * (len(joints) > _MOST_NAMED)
            return (
                f'The {MOTION[k]} of {names} looks measured: its noise alone makes a jerk of '
                f'about {noise.max():.3g} rad/s^3 or m/s^3, and torque rates to match. For '
                'measurements, --derivatives estimate (retime: with --uniform) finds the motion '
                'behind the noise.',
            )
    return ()


def is_measurement(samples: Samples) -> bool:
    """Whether samples are measurements, said or recognised: more noise than six digits leave.

    Parameters
    ----------
    samples : Samples
        Of one motion, in the order of time.

    Returns
    -------
    bool
        Whether the third differences of some joint are noise that is larger than the jerk
        over 0.1 s, and than what rounding makes.
    """
    if samples.is_measured or samples.is_waypoints or len(samples) < 2:
        return samples.is_measured
    times, positions = samples.times, samples.motion[:, 0]
    noise, step = _noise(times, positions, _NOISE_ORDER), float(np.median(np.diff(times)))
    stride = max(1, min(round(_SMOOTHING / step), (len(times) - 1) // _NOISE_ORDER))
    jerk = np.abs(np.diff(positions[::stride], _NOISE_ORDER, axis=0)).max(
        axis=0, initial=0.0
    )
    jerk /= (stride * step) ** _NOISE_ORDER
    error = noise * step**_NOISE_ORDER / np.sqrt(20.0)
    size = np.maximum(np.abs(positions).max(axis=0), _SMALLEST_POSITION)
    is_noise = (noise > np.maximum(jerk, _LEAST_NOISE)) & (error > _MORE_THAN_DIGITS * size)
    return bool(is_noise.any())


def _noise(times: Array, values: Array, order: int) -> Array:
    """Size of the differences of an order that are noise, of each column; 0 if they are not."""
    result = np.zeros(values.shape[1])
    if len(values) < _FEWEST_NOISY + order + 1:
        return result
    quotients: list[NDArray[np.float64]] = [values]
    for p in range(1, order + 2):
        quotients.append(
            p * np.diff(quotients[-1], axis=0) / (times[p:] - times[:-p])[:, None]
        )
    moves = quotients[-1] != 0.0  # a joint at rest has no noise, if it is rounded
    step = np.median(np.diff(times))
    for j in np.flatnonzero(np.count_nonzero(moves, axis=0) >= _FEWEST_NOISY).tolist():
        last = np.median(np.abs(quotients[-1][moves[:, j], j]))
        before = np.median(np.abs(quotients[-2][1:][moves[:, j], j]))
        if last * step > _NOISY * before:
            result[j] = before
    return result
