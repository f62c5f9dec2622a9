"""From samples as files hold them to motions with all the derivatives that efforts need.

They are given, or come from the spline through all samples, or are estimated from measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array, check_choice, checked_number
from hodyn_ros.errors import MotionError, TrajectoryError
from hodyn_ros.files.inspection import (
    Intake,
    as_waypoints,
    even_times,
    gap_remarks,
    is_measurement,
    noise_remarks,
    refuse_contradictions,
)
from hodyn_ros.files.quantities import MOTION
from hodyn_ros.files.samples import Samples
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import DERIVATIVES, listed
from hodyn_ros.trajectory.planning import plan_motion
from hodyn_ros.trajectory.rounding import fit_waypoints
from hodyn_ros.trajectory.smoother import Smoother, runs
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline
from hodyn_ros.trajectory.waypoints import STANDSTILL, Waypoints, divided_times

_RATE = 100.0  # samples per second between waypoints, if nothing else is asked for [Hz]
_SPLINE_ORDERS = 5  # of the motion of a spline: position to snap
_MOST_SAMPLES = 20_000_000  # between waypoints; more is a mistake in their times
# Amplitudes of the smallest oscillation whose derivatives are of interest [rad, m; N, N m] and its
# angular frequency; share of what is largest that is, too.
_SMALLEST_MOTION, _SMALLEST_FORCE, _SMALLEST_FREQUENCY = 0.01, 1.0, 10.0
_SHARE_OF_LARGEST = 0.01
_WRENCH_DERIVATIVES = 2
_MAX_GAP = 0.1  # [s]
_FEWEST_MEASURED = 30
_STD_STEP = 0.005  # between samples whose covariances are kept [s]
_FREE = 4  # derivatives that are left open at the ends of a spline


class Covariances(NamedTuple):
    """How certain an estimated motion is at some of its samples, R of them."""

    rows: NDArray[np.intp]
    """The samples, at least every 5 ms and at both ends of a run without gaps, shape (R,)."""
    of_motion: Array
    """Of position, velocity, ... of each joint, shape (R, n, K, K)."""
    of_wrenches: tuple[Array, ...]
    """Of the components of each wrench and their derivatives, shapes (R, 6, S, S)."""


@dataclass(frozen=True, eq=False)
class Completed:
    """A motion with its derivatives, NaN where one is not known, and what belongs to it."""

    samples: Samples
    """Without efforts and motors."""
    stiffness: Mapping[str, Array]
    """By the joint, shape (N, S)."""
    covariances: Covariances | None = None
    """Where the motion is estimated."""
    max_gap: float = np.inf
    """Time between samples beyond which they do not belong to one motion [s]."""


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
    found = how.complete(model, samples).samples
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
            Of a motion, all of them.

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
        if self._is_given(samples):
            return 'given'
        # A spline follows all noise; with a wanted stiffness nothing else can be had.
        return 'estimate' if is_measurement(samples) and not samples.stiffness else 'spline'

    def _is_given(self, samples: Samples) -> bool:
        """Whether a spline cannot go through what is given: more than the acceleration."""
        return bool(samples.motion.shape[1] > min(3, self.orders - 1))

    def complete(self, model: RobotModel, samples: Samples) -> Completed:
        """Complete a motion.

        Parameters
        ----------
        model : RobotModel
        samples : Samples
            Of all joints of the model at least, in any order.

        Returns
        -------
        Completed
            In the order of the model.

        Raises
        ------
        JointNameError, MotionError, TrajectoryError
            See `to_motion`; also if there are no samples.
        """
        if not len(samples):
            raise MotionError('There are no samples to compute anything from.')
        samples = Intake(model)(samples)
        is_open = self.derivatives == 'auto' and not self._is_given(samples)
        if not samples.is_waypoints and (is_open or self.derivatives == 'spline'):
            samples = as_waypoints(samples)
        ways = {'given': self._given, 'spline': self._spline, 'estimate': self._estimated}
        return ways[self.choose(samples)](model, samples)

    def _given(self, model: RobotModel, samples: Samples) -> Completed:
        """Samples as they are, with as many of the wanted orders as there are."""
        remarks = samples.remarks
        refuse_contradictions(model, samples)
        motion = samples.motion[:, : self.orders]
        if lacking := MOTION[motion.shape[1] : self.orders]:
            remarks += (f'Not given, and left out: {listed(lacking)}.',)
        wrenches = samples.wrenches
        found = _samples(
            model, samples, samples.times, motion, 'given', remarks, wrenches=wrenches
        )
        return Completed(found, samples.stiffness)

    def _spline(self, model: RobotModel, samples: Samples) -> Completed:
        """Spline through all samples, or between waypoints as `interpolation` says."""
        remarks = samples.remarks
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
            remarks += (*noise_remarks(samples), *gap_remarks(samples))
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
        found = _samples(
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

    def _estimated(self, model: RobotModel, samples: Samples) -> Completed:
        """Estimate a motion, and wrenches measured at the same times."""
        options, max_gap = self._smoothing()
        if samples.stiffness:
            raise MotionError(
                f'{samples.name}: there is a stiffness for {listed(samples.stiffness)}, which '
                "cannot be combined with an estimated motion; use derivatives='spline'."
            )
        stamps = np.rint(1e9 * samples.times).astype(np.int64)
        kept = [rows for rows in runs(stamps, max_gap) if len(rows) >= _FEWEST_MEASURED]
        if not kept:
            raise MotionError(
                f'{samples.name}: nothing could be estimated; expected at least '
                f'{_FEWEST_MEASURED} measurements at intervals of less than {max_gap:g} s '
                '(max_gap).'
            )
        rows = np.concatenate(kept)
        times = 1e-9 * stamps[rows].astype(np.float64)
        K, S = self.orders, max(self.orders - 2, 1)
        n, N = len(samples.joint_names), len(rows)
        motion, std = np.empty((2, N, K, n))
        loads = [np.empty((N, S, 6)) for _ in samples.wrenches]
        noises, nodes, found = [], list[NDArray[np.intp]](), list[list[Array]]()
        place = 0
        for run in kept:
            joints = Smoother(
                stamps[run],
                samples.motion[run, 0],
                highest_derivative=max(1, K - 1),
                **options,
            )
            noises.append(joints.noise)
            smoothers = [
                joints,
                *(
                    Smoother(
                        stamps[run],
                        np.asarray(wrench.values)[run, 0],
                        highest_derivative=_WRENCH_DERIVATIVES,
                        smallest_motion=_SMALLEST_FORCE,
                    )
                    for wrench in samples.wrenches
                ),
            ]
            for of_joints, *of_loads in zip(*(each.blocks() for each in smoothers)):
                part = slice(place, place + len(of_joints.motion))
                motion[part], std[part] = of_joints.motion[:, :K], of_joints.std[:, :K]
                for load, block in zip(loads, of_loads):
                    load[part] = block.motion[:, :S]
                chosen = _nodes(times[part])
                nodes.append(place + chosen)
                found.append(
                    [
                        of_joints.covariance[chosen, :, :K, :K],
                        *(block.covariance[chosen, :, :S, :S] for block in of_loads),
                    ]
                )
                place = part.stop
        smallest = _SMALLEST_MOTION * _SMALLEST_FREQUENCY ** np.arange(float(len(MOTION)))
        remarks = (
            *samples.remarks,
            _told(samples, kept, np.mean(noises, axis=0)),
            *relative_errors(motion, std, MOTION, model.joint_names, smallest),
        )
        wrenches = tuple(
            replace(wrench, values=load) for wrench, load in zip(samples.wrenches, loads)
        )
        estimated = _samples(
            model,
            samples,
            times,
            motion,
            'measured',
            remarks,
            motion_std=std,
            wrenches=wrenches,
        )
        of_motion, *of_wrenches = (np.concatenate(each) for each in zip(*found))
        covariances = Covariances(np.concatenate(nodes), of_motion, tuple(of_wrenches))
        return Completed(estimated, {}, covariances, max_gap)


def _nodes(times: Array) -> NDArray[np.intp]:
    """Rows of times (N,) at least every 5 ms, with both ends."""
    slots = np.floor((times - times[0]) / _STD_STEP)
    first = np.flatnonzero(np.diff(slots, prepend=-1.0) > 0.0)
    return np.union1d(first, [len(times) - 1])


def relative_errors(
    values: Array,
    std: Array,
    names: Sequence[str],
    joint_names: Sequence[str],
    smallest: Array | float = 0.0,
) -> tuple[str, ...]:
    """Say how large standard deviations are, and of what they are larger than the values.

    A quantity counts as no smaller than `smallest`, and than a hundredth of that of the joint
    where it is largest.

    Parameters
    ----------
    values, std : ndarray, shape (N, K, n)
        NaN counts as zero.
    names : sequence of str
        Of the K orders.
    joint_names : sequence of str
        Of the n joints.
    smallest : float or ndarray, shape (12,)
        Of each order, as many as `MOTION` names, in the units of the values.

    Returns
    -------
    tuple of str
        At most two sentences.
    """
    size, deviation = (
        np.sqrt(np.einsum('tkj,tkj->kj', a, a) / len(a))
        for a in map(np.nan_to_num, (values, std))
    )
    size = np.maximum(size, _SHARE_OF_LARGEST * size.max(axis=1, keepdims=True))
    size = np.maximum(size, np.broadcast_to(smallest, len(MOTION))[: len(size), None])
    ratio = deviation / np.maximum(size, np.finfo(np.float64).tiny)
    worst = listed(
        f'{name} {100.0 * row.max():.2g} % ({joint_names[int(row.argmax())]})'
        for name, row in zip(names, ratio)
    )
    found = [f'Standard deviations, of the size and where they are largest (RMS): {worst}.']
    useless = [
        f'{name} of {listed(np.take(joint_names, np.flatnonzero(row > 1.0)).tolist())}'
        for name, row in zip(names, ratio)
        if (row > 1.0).any()
    ]
    if useless:
        found.append(f'Less certain than they are large: {"; ".join(useless)}.')
    return tuple(found)


def _told(whole: Samples, kept: Sequence[NDArray[np.intp]], noise: Array) -> str:
    """Say what was estimated from what, and why if nobody said that these are measurements."""
    text = (
        'The derivatives are estimated from all measured positions, with standard deviations. '
        f'Noise of the positions: {noise.min():.2g} to {noise.max():.2g} rad or m.'
    )
    if not whole.is_measured and is_measurement(whole):
        text += (
            ' That is more than rounding leaves; --derivatives spline follows the positions '
            'exactly.'
        )
    if dropped := len(whole) - sum(map(len, kept)):
        text += (
            f' {dropped} of {len(whole)} measurements came late, twice, with a stamp out of '
            'order or alone between gaps, and were not used.'
        )
    if len(kept) > 1:
        gaps = [whole.times[b[0]] - whole.times[a[-1]] for a, b in zip(kept, kept[1:])]
        text += (
            f' {len(gaps)} times it started anew behind a gap, of up to {max(gaps):.3g} s.'
        )
    return text


def _samples(
    model: RobotModel,
    samples: Samples,
    times: Array,
    motion: Array,
    source: str,
    remarks: tuple[str, ...],
    **more: Any,
) -> Samples:
    """Motion (N, K, n) at times (N,) without efforts, and where it comes from."""
    fields = {
        'name': samples.name,
        'source': source,
        'remarks': remarks,
        'start': samples.start,
    }
    return Samples.of_model(model, times, motion, None, **{**fields, **more})


def _through(
    times: Array, values: Array, rates: Array | None, accelerations: Array | None
) -> MotionSpline:
    """Spline through samples that may begin and end anywhere in a motion."""
    free = np.full((_FREE, values.shape[1]), np.nan)
    return fit_spline(times, values, rates, accelerations, start=free, end=free)
