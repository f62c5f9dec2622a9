"""From samples as files hold them to motions with all the derivatives that efforts need.

They are given, or come from the spline through all samples, or are estimated from measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.errors import MotionError, TrajectoryError
from hodyn_ros.files.inspection import (
    Inspected,
    for_spline,
    inspect,
    noise_remark,
    refuse_contradictions,
)
from hodyn_ros.files.memory import refuse_beyond_memory
from hodyn_ros.files.quantities import MOTION
from hodyn_ros.files.samples import Samples
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import DERIVATIVES, listed
from hodyn_ros.trajectory.planning import plan_motion
from hodyn_ros.trajectory.rounding import fit_waypoints
from hodyn_ros.trajectory.smoother import Smoother, runs
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline
from hodyn_ros.trajectory.waypoints import STANDSTILL, Waypoints, divided_times
from hodyn_ros.typing import Array

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
# Of a motion that are in memory while it is computed.
_COPIES = {'given': 4, 'spline': 7, 'estimate': 8}
_ENDS = 4  # derivatives that a spline may take there, open if they are not known


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


# Of positions that are rounded so coarsely that no motion through them is meant.
_SMOOTHED = (
    '--derivatives estimate (of retime, with --uniform) finds the motion behind rounded '
    'positions.'
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

    Examples
    --------
    From two waypoints to a motion with all derivatives:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, to_motion
    >>> waypoints = Samples(
    ...     ('elbow', 'shoulder'), [0.0, 1.0], [[[0.1, 0.0]], [[0.2, 0.5]]], is_waypoints=True
    ... )
    >>> times, motion, remarks = to_motion(RobotModel.from_urdf('two_link'), waypoints)
    >>> motion.shape, motion[-1, 0]
    ((101, 5, 2), array([0.5, 0.2]))
    """
    how = How(derivatives, order + 1, interpolation, rate, dict(estimator or {}))
    found = complete(model, samples, how).samples
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

    def way(self, seen: Inspected) -> str:
        """Return 'given', 'spline' or 'estimate' for these samples.

        Parameters
        ----------
        seen : Inspected

        Returns
        -------
        {'given', 'spline', 'estimate'}
        """
        samples = seen.samples
        if self.derivatives != 'auto':
            return self.derivatives
        if seen.kind == 'waypoints':
            return 'spline'
        # What is given beyond the acceleration a spline cannot go through.
        if not samples.is_measured and samples.motion.shape[1] > min(3, self.orders - 1):
            return 'given'
        # A spline follows all noise; with a wanted stiffness nothing else can be had.
        is_measured = seen.kind == 'measured' and (
            samples.is_measured or not samples.stiffness
        )
        return 'estimate' if is_measured else 'spline'


def complete(model: RobotModel, samples: Samples, how: How) -> Completed:
    """Complete a motion with its derivatives.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Of all joints of the model at least, in any order.
    how : How

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
    seen = inspect(model, samples)
    way = how.way(seen)
    size = 8.0 * _COPIES[way] * len(samples) * model.n_joints * how.orders
    refuse_beyond_memory(samples.name, size)
    found = _WAYS[way](model, seen, how)
    if how.rate is None or way == 'spline':
        return found
    remark = (
        f'The rate is not used: the derivatives are {"given" if way == "given" else "estimated"}, '
        'and only a spline has values between its samples (--derivatives spline).'
    )
    told = replace(found.samples, remarks=(*found.samples.remarks, remark))
    return replace(found, samples=told)


def _given(model: RobotModel, seen: Inspected, how: How) -> Completed:
    """Samples as they are, with as many of the wanted orders as there are."""
    samples, remarks = seen.samples, seen.samples.remarks
    refuse_contradictions(model, samples)
    motion = samples.motion[:, : how.orders]
    if lacking := MOTION[motion.shape[1] : how.orders]:
        remarks += (f'Not given, and left out: {listed(lacking)}.',)
    found = _samples(
        model, samples, samples.times, motion, 'given', remarks, wrenches=samples.wrenches
    )
    return Completed(found, samples.stiffness)


def _spline(model: RobotModel, seen: Inspected, how: How) -> Completed:
    """Spline through all samples, or between waypoints, at their times or at a rate."""
    if how.orders > _SPLINE_ORDERS:
        raise MotionError(
            f'Derivative {how.orders - 1} of the motion is asked for, but a spline has '
            f'derivatives up to {_SPLINE_ORDERS - 1}: the snap.'
        )
    curve, samples = curve_through(model, seen, how.interpolation)
    shift, times = seen.samples.times[0] - samples.times[0], _times(seen, samples, how)
    found = _samples(
        model,
        samples,
        seen.samples.times if times is samples.times else shift + times,
        np.ascontiguousarray(curve(times)[:, : how.orders]),
        'waypoints' if seen.kind == 'waypoints' else 'given',
        samples.remarks,
        continuous_order=max(-1, min(curve.continuous_derivative - 2, 2)),
        wrenches=tuple(
            replace(w, values=_series(samples.times, np.asarray(w.values), times, how))
            for w in samples.wrenches
        ),
    )
    stiffness = {
        name: _series(samples.times, series[:, :, None], times, how)[:, :, 0]
        for name, series in samples.stiffness.items()
    }
    return Completed(found, stiffness)


def curve_through(
    model: RobotModel, seen: Inspected, interpolation: str = 'spline', is_path: bool = False
) -> tuple[Any, Samples]:
    """Motion of class C4 through waypoints or samples, or another one between waypoints.

    Parameters
    ----------
    model : RobotModel
    seen : Inspected
    interpolation : {'spline', 'jtc', 'jtc_upsampled'}
        See `plan_motion`.
    is_path : bool
        Whether of samples the positions count, and derivatives at both ends alone: the path is
        kept, in another timing.

    Returns
    -------
    curve : function of time
        With all derivatives up to the snap at least.
    samples : Samples
        Those that it goes through, see `for_spline`, with remarks on it.

    Raises
    ------
    MotionError
        If derivatives contradict the positions.
    TrajectoryError
        If there is no spline.
    """
    samples = seen.samples
    is_open = seen.kind == 'waypoints'
    if not is_open:
        samples = for_spline(model, samples)
    K, n = samples.motion.shape[1:]
    rows = [samples.motion[:, k] if k < K else None for k in range(3)]
    try:
        if is_open or interpolation != 'spline':
            waypoints = Waypoints(samples.joint_names, samples.times, *rows)  # type: ignore[arg-type]
            plan = plan_motion(waypoints, model.joint_names, interpolation=interpolation)
            curve: Any = plan.motion
            is_still = np.all(np.abs(curve(curve.end_time)[1:3]) <= STANDSTILL)
            end = f'The motion ends {"at rest" if is_still else "moving"}.'
            remarks: tuple[str, ...] = (*plan.remarks, end, *plan.warnings)
        else:
            ends = np.full((2, _ENDS, n), np.nan)
            if is_path:
                known = seen.samples.motion[[0, -1], 1 : _ENDS + 1]
                ends[:, : known.shape[1]] = np.where(
                    np.abs(known) <= STANDSTILL, 0.0, known
                )
                rows = [rows[0], None, None]
            curve, _, rounded = fit_waypoints(
                samples.times,
                *rows,  # type: ignore[arg-type]
                start=ends[0],
                end=ends[1],
                joint_names=samples.joint_names,
                advice=_SMOOTHED,
            )
            remarks = rounded
            if not is_path:
                remarks = (*_said(curve, samples, seen, rounded), *rounded)
            if not rounded and (noisy := noise_remark(samples)):
                remarks = (noisy, *remarks)
    except TrajectoryError as error:
        raise TrajectoryError(f'{samples.name}: {error}') from error
    return curve, replace(samples, remarks=(*samples.remarks, *remarks))


def _said(
    curve: MotionSpline, samples: Samples, seen: Inspected, rounded: tuple[str, ...]
) -> tuple[str, ...]:
    """Say which samples a spline goes through."""
    given = [
        name
        for k, name in enumerate(MOTION[:3])
        if np.isfinite(samples.motion[:, k : k + 1]).any()
    ]
    which = f'{len(curve.times)} of' if rounded else 'all'
    text = (
        f'The motion is the spline of class C4 through {which} {len(samples)} samples '
        f'({", ".join(given)}); it need not begin and end at rest.'
    )
    more = 'Jerk and more are given, but the spline does not go through them.'
    return (more, text) if seen.samples.motion.shape[1] > 3 else (text,)


def _series(given_times: Array, values: Array, times: Array, how: How) -> Array:
    """Values (N, S, c) of another kind and their derivatives, at other times.

    Shape (times, orders - 2, c). Without change where the orders and times are those
    that are wanted; else the spline through all of them.
    """
    rates, accelerations = (values[:, k] if k < values.shape[1] else None for k in (1, 2))
    most = max(how.orders - 2, 1)
    if values.shape[1] >= most and np.array_equal(times, given_times):
        return values[:, :most]
    free = np.full((_ENDS, values.shape[2]), np.nan)
    through = fit_spline(
        given_times, values[:, 0], rates, accelerations, start=free, end=free
    )
    return np.ascontiguousarray(through(times)[:, :most])


def _times(seen: Inspected, samples: Samples, how: How) -> Array:
    """Times [s] at which a spline is evaluated: of the samples, or at the wanted rate."""
    times = samples.times
    if how.rate is None and seen.kind != 'waypoints':
        return times
    rate = _RATE if how.rate is None else how.rate
    duration = float(times[-1] - times[0])
    if duration * rate > _MOST_SAMPLES:
        raise MotionError(
            f'{samples.name}: at {rate:g} Hz the motion of {duration:g} s has more than '
            f'{_MOST_SAMPLES} samples; choose a lower rate.'
        )
    if how.rate is not None:
        return np.linspace(times[0], times[-1], max(1, round(duration * rate)) + 1)
    return divided_times(times, rate)


def _smoothing(how: How) -> tuple[dict[str, Any], float]:
    """Options of `Smoother`, and the time beyond which a motion begins anew [s]."""
    options = {'smallest_motion': _SMALLEST_MOTION, 'max_gap': _MAX_GAP, **how.estimator}
    known = ('noise', 'bandwidth', 'smallest_motion', 'max_gap')
    if unknown := [key for key in options if key not in known]:
        raise MotionError(
            f'estimator has {listed(unknown)}, but a recording is smoothed as a whole, with '
            f'the options {listed(known)}; leave the others out.'
        )
    max_gap = checked_number('max_gap', options.pop('max_gap'), MotionError, above=0.0)
    return options, max_gap


def _estimated(model: RobotModel, seen: Inspected, how: How) -> Completed:
    """Estimate a motion, and wrenches measured at the same times."""
    samples, (options, max_gap) = seen.samples, _smoothing(how)
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
    K, S = how.orders, max(how.orders - 2, 1)
    joints = _estimate(
        stamps,
        kept,
        samples.motion[:, 0],
        K,
        highest_derivative=max(1, K - 1),
        **options,
    )
    loads = [
        _estimate(
            stamps,
            kept,
            np.asarray(wrench.values)[:, 0],
            S,
            highest_derivative=max(_WRENCH_DERIVATIVES, S - 1),
            smallest_motion=_SMALLEST_FORCE,
        )
        for wrench in samples.wrenches
    ]
    smallest = _SMALLEST_MOTION * _SMALLEST_FREQUENCY ** np.arange(float(len(MOTION)))
    remarks = (
        *samples.remarks,
        _told(seen, kept, joints.noise, max_gap),
        *relative_errors(joints.values, joints.std, MOTION, model.joint_names, smallest),
    )
    estimated = _samples(
        model,
        samples,
        1e-9 * stamps[np.concatenate(kept)].astype(np.float64),
        joints.values,
        'measured',
        remarks,
        motion_std=joints.std,
        wrenches=tuple(
            replace(wrench, values=load.values)
            for wrench, load in zip(samples.wrenches, loads)
        ),
    )
    of_wrenches = tuple(load.covariance for load in loads)
    covariances = Covariances(joints.rows, joints.covariance, of_wrenches)
    return Completed(estimated, {}, covariances, max_gap)


class _Estimate(NamedTuple):
    """Smoothed components at the N samples of some runs."""

    values: Array
    """With their derivatives, shape (N, orders, n)."""
    std: Array
    """Shape (N, orders, n)."""
    rows: NDArray[np.intp]
    """Those whose covariances are kept, shape (R,)."""
    covariance: Array
    """Shape (R, n, orders, orders)."""
    noise: Array
    """Of the measurements, the mean of all runs, shape (n,)."""


def _estimate(
    stamps: NDArray[np.int64],
    kept: Sequence[NDArray[np.intp]],
    measured: Array,
    orders: int,
    **options: Any,
) -> _Estimate:
    """Smooth components measured at all stamps [ns], each run by itself."""
    count, place = sum(map(len, kept)), 0
    values, std = np.empty((2, count, orders, measured.shape[1]))
    rows, covariances, noises = [], [], []
    for run in kept:
        smoother = Smoother(stamps[run], measured[run], **options)
        noises.append(smoother.noise)
        times = 1e-9 * stamps[run].astype(np.float64)
        for block in smoother.blocks():
            part = slice(place, place + len(block.motion))
            values[part], std[part] = block.motion[:, :orders], block.std[:, :orders]
            chosen = _nodes(times[: len(block.motion)])
            rows.append(place + chosen)
            covariances.append(block.covariance[chosen, :, :orders, :orders])
            times, place = times[len(block.motion) :], part.stop
    return _Estimate(
        values,
        std,
        np.concatenate(rows),
        np.concatenate(covariances),
        np.mean(noises, axis=0),
    )


_WAYS = {'given': _given, 'spline': _spline, 'estimate': _estimated}


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


def _told(
    seen: Inspected, kept: Sequence[NDArray[np.intp]], noise: Array, max_gap: float
) -> str:
    """Say what was estimated from what, and why if nobody said that these are measurements."""
    whole = seen.samples
    text = (
        'The derivatives are estimated from all measured positions, with standard deviations. '
        f'Noise of the positions: {noise.min():.2g} to {noise.max():.2g} rad or m.'
    )
    if seen.kind == 'measured' and not whole.is_measured:
        text += (
            ' That is more than six digits leave; --derivatives spline follows the positions '
            'exactly.'
        )
    if dropped := len(whole) - sum(map(len, kept)):
        text += (
            f' {dropped} of {len(whole)} measurements came late, twice, with a stamp out of '
            'order or alone between gaps, and were not used.'
        )
    if len(kept) > 1:
        text += f' It starts anew behind {len(kept) - 1} gaps of more than {max_gap:g} s.'
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
