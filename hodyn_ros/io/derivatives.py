"""From samples as files hold them to motions with all the derivatives that efforts need.

They are given, or come from the spline through all samples, or are estimated from measurements.
What is given and what is estimated can be had part by part; a spline depends on all samples, so
that its motion needs as much memory as the file is long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import MotionError, TrajectoryError
from hodyn_ros.io.columns import MOTION
from hodyn_ros.io.consistency import even_times, noise_remarks, refuse_contradictions
from hodyn_ros.io.samples import Array, Samples
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.trajectory.estimator import DerivativeEstimator
from hodyn_ros.trajectory.planning import plan_motion
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline
from hodyn_ros.trajectory.waypoints import Waypoints

DERIVATIVES = ('auto', 'given', 'spline', 'estimate')
"""Where the derivatives of a motion come from."""

RATE = 100.0
"""Samples per second between waypoints, if nothing else is asked for [Hz]."""

SPLINE_ORDERS = 5
"""Orders that the motion of a spline has: position to snap."""

_MOST_SAMPLES = 20_000_000  # between waypoints; more is a mistake in their times
_SMALLEST_FORCE = 1.0  # of an oscillation whose derivatives are of interest [N] or [N m]
_WRENCH_DERIVATIVES = 2
_TURN = 2.0 * np.pi
_FREE = 4  # derivatives that are left open at the ends of a spline


@dataclass(frozen=True, eq=False)
class Completed:
    """Motion with what belongs to it, at the same times; NaN where an order is not known."""

    times: Array
    """Shape (N,) [s]"""
    motion: Array
    """Shape (N, K, n)"""
    wrenches: tuple[tuple[str, str, str, Array], ...] = ()
    """Link, expressed_in, acting and values of shape (N, S, 6)."""
    stiffness: Mapping[str, Array] = field(default_factory=dict)
    """By the joint, shape (N, S)."""
    source: str = 'given'
    start: int = 0
    remarks: tuple[str, ...] = ()
    delay: float = 0.0
    continuous_derivative: int = 4
    max_gap: float = np.inf
    """Time between samples beyond which they do not belong to one motion [s]."""


def to_motion(
    model: RobotModel,
    samples: Samples,
    *,
    derivatives: str = 'auto',
    orders: int = 5,
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
        'estimate': from measured positions, see `DerivativeEstimator`. 'auto': the spline for
        waypoints, and for samples with positions, velocities and accelerations at most;
        estimates for measurements; otherwise what is given.
    orders : int
        Number of orders wanted, K: position to snap is 5.
    interpolation : {'spline', 'jtc'}
        Between waypoints, see `plan_motion`.
    rate : float, optional
        At how many samples per second a spline is evaluated [Hz]. By default at the times of the
        samples; between waypoints at 100 Hz at least, and at the waypoints.
    estimator : mapping of str to object, optional
        Parameters of `DerivativeEstimator`.

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
    how = How(derivatives, orders, interpolation, rate, dict(estimator or {}))
    completed = how.complete(model, samples)
    return completed.times, completed.motion, completed.remarks


@dataclass(frozen=True)
class How:
    """Where derivatives come from; see `to_motion`."""

    derivatives: str = 'auto'
    orders: int = 5
    interpolation: str = 'spline'
    rate: float | None = None
    estimator: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.derivatives not in DERIVATIVES:
            raise MotionError(
                f'derivatives is {self.derivatives!r}, expected one of {listed(DERIVATIVES)}.'
            )
        whole = isinstance(self.orders, (int, np.integer)) and not isinstance(self.orders, bool)
        if not whole or not 1 <= self.orders <= len(MOTION):
            raise MotionError(f'orders is {self.orders!r}, expected 1 to {len(MOTION)}.')
        if self.rate is not None and not 0.0 < self.rate < np.inf:
            raise MotionError(f'rate is {self.rate!r}, expected a positive number [Hz].')

    def choose(self, samples: Samples) -> str:
        """Return 'given', 'spline' or 'estimate' for these samples."""
        if self.derivatives != 'auto':
            return self.derivatives
        if samples.is_waypoints:
            return 'spline'
        if samples.is_measured:
            return 'estimate'
        # Beyond the acceleration a spline cannot go through what is given.
        return 'given' if samples.motion.shape[1] > min(3, self.orders - 1) else 'spline'

    def complete(self, model: RobotModel, samples: Samples) -> Completed:
        """Complete samples that are all there are."""
        choice = self.choose(samples)
        if choice == 'estimate':
            stream = EstimatedStream(model, self)
            completed = stream.take(samples)
            if not len(completed.times):
                raise MotionError(
                    f'{samples.name}: nothing could be estimated from {len(samples)} samples; '
                    'expected at least half a second of them, at intervals of less than '
                    f'{stream.max_gap:g} s (max_gap).'
                )
            return replace(completed, remarks=(*completed.remarks, *stream.summary()))
        return self.given(model, samples) if choice == 'given' else self._spline(model, samples)

    def given(self, model: RobotModel, samples: Samples) -> Completed:
        """Take samples as they are."""
        samples, remarks = in_model_order(model, samples)
        refuse_contradictions(model, samples)
        motion = samples.motion[:, : self.orders]
        lacking = [MOTION[k] for k in range(motion.shape[1], self.orders)]
        if lacking:
            remarks += (f'Not given, and left out: {listed(lacking)}.',)
        return Completed(
            samples.times,
            motion,
            tuple(
                (w.link, w.expressed_in, w.acting, np.asarray(w.values)) for w in samples.wrenches
            ),
            samples.stiffness,
            'given',
            samples.start,
            remarks,
        )

    def _spline(self, model: RobotModel, samples: Samples) -> Completed:
        samples, remarks = in_model_order(model, samples)
        if self.orders > SPLINE_ORDERS:
            raise MotionError(
                f'orders is {self.orders}, but the motion of a spline has {SPLINE_ORDERS}: '
                'position to snap.'
            )
        given = samples.motion.shape[1]
        if given > 3:
            remarks += ('Jerk and more are given, but the spline does not go through them.',)
        rows = [samples.motion[:, k] if k < given else None for k in range(3)]
        if not samples.is_waypoints:  # between which the motion is open
            refuse_contradictions(model, samples)
            remarks += noise_remarks(samples)
        given_times = samples.times
        samples, rounded = even_times(samples)
        remarks += rounded
        try:
            if samples.is_waypoints or self.interpolation != 'spline':
                waypoints = Waypoints(samples.joint_names, samples.times, *rows)  # type: ignore[arg-type]
                plan = plan_motion(waypoints, model.joint_names, interpolation=self.interpolation)
                curve: Any = plan.motion
                remarks += (*plan.remarks, *plan.warnings)
            else:
                curve = _through(samples.times, *rows)
                names = ', '.join(MOTION[: min(given, 3)])
                remarks += (
                    f'The motion is the spline of class C4 through all {len(samples)} samples '
                    f'({names}).',
                )
        except TrajectoryError as error:
            raise TrajectoryError(f'{samples.name}: {error}') from error
        times = self._times(samples)
        wrenches = tuple(
            (w.link, w.expressed_in, w.acting, self._series(samples, np.asarray(w.values), times))
            for w in samples.wrenches
        )
        stiffness = {
            name: self._series(samples, series[:, :, None], times)[:, :, 0]
            for name, series in samples.stiffness.items()
        }
        shift = given_times[0] - samples.times[0]
        return Completed(
            given_times if times is samples.times else shift + times,
            np.ascontiguousarray(curve(times)[:, : self.orders]),
            wrenches,
            stiffness,
            'waypoints' if samples.is_waypoints else 'given',
            samples.start,
            remarks,
            continuous_derivative=curve.continuous_derivative,
        )

    def _series(self, samples: Samples, values: Array, times: Array) -> Array:
        """Values (N, S, c) of another kind and their derivatives, at other times."""
        rows = [values[:, k] if k < values.shape[1] else None for k in range(3)]
        most = max(self.orders - 2, 1)
        if values.shape[1] >= most and np.array_equal(times, samples.times):
            return values[:, :most]
        return np.ascontiguousarray(_through(samples.times, *rows)(times)[:, :most])

    def _times(self, samples: Samples) -> Array:
        times = samples.times
        if self.rate is None and not samples.is_waypoints:
            return times
        rate = RATE if self.rate is None else self.rate
        duration = float(times[-1] - times[0])
        if duration * rate > _MOST_SAMPLES:
            raise MotionError(
                f'{samples.name}: at {rate:g} Hz the motion of {duration:g} s has more than '
                f'{_MOST_SAMPLES} samples; choose a lower rate.'
            )
        if self.rate is not None:
            steps = max(1, round(duration * rate))
            return np.linspace(times[0], times[-1], steps + 1)
        counts = np.maximum(1, np.ceil(np.diff(times) * rate - 1e-9)).astype(int)
        parts = [
            np.linspace(first, last, count, endpoint=False)
            for first, last, count in zip(times[:-1], times[1:], counts.tolist())
        ]
        return np.concatenate([*parts, times[-1:]])


class EstimatedStream:
    """Estimates a measured motion, and wrenches measured at the same times, part by part.

    Where one part ends and the next begins makes no difference.

    Parameters
    ----------
    model : RobotModel
    how : How
    """

    def __init__(self, model: RobotModel, how: How) -> None:
        self._model = model
        self._orders = how.orders
        options = dict(how.estimator)
        options.setdefault('highest_derivative', max(1, how.orders - 1))
        try:
            self._joints = DerivativeEstimator(model.n_joints, **options)
        except TypeError as error:
            raise MotionError(f'estimator is {dict(how.estimator)!r}: {error}.') from error
        self._shared = {key: options[key] for key in ('delay', 'max_gap') if key in options}
        self.max_gap = float(options.get('max_gap', 0.1))
        """Longest time between measurements that is bridged [s]."""
        self.delay = float(options.get('delay', 0.1))
        self._wrenches: list[DerivativeEstimator] | None = None
        self._start = 0
        self._turns = np.array([joint == 'continuous' for joint in model.joint_types])
        self._last: Array | None = None
        self._offset = np.zeros(int(self._turns.sum()))
        self._taken = 0
        self._vouched = np.zeros(how.orders, dtype=np.int64)
        self._given = 0

    def take(self, samples: Samples) -> Completed:
        """Estimates that a part of the measurements makes possible, maybe none."""
        samples, remarks = in_model_order(self._model, samples)
        if samples.stiffness:
            raise MotionError(
                f'{samples.name}: there is a stiffness for {listed(samples.stiffness)}, which '
                "cannot be combined with an estimated motion; use derivatives='spline'."
            )
        if self._wrenches is None:
            self._start = samples.start
            self._wrenches = [
                DerivativeEstimator(
                    6,
                    highest_derivative=_WRENCH_DERIVATIVES,
                    smallest_motion=_SMALLEST_FORCE,
                    **self._shared,
                )
                for _ in samples.wrenches
            ]
        positions = self._unwrapped(samples.motion[:, 0])
        wrenches = [np.asarray(wrench.values)[:, 0] for wrench in samples.wrenches]
        stamps = np.rint(1e9 * samples.times).astype(np.int64) + (samples.start - self._start)
        times: list[int] = []
        motions: list[Array] = []
        found: list[list[Array]] = [[] for _ in wrenches]
        for i, stamp in enumerate(stamps.tolist()):
            estimate = self._joints.update(stamp, positions[i])
            loads = [
                estimator.update(stamp, values[i])
                for estimator, values in zip(self._wrenches, wrenches)
            ]
            if estimate is None:
                continue
            times.append(estimate.time)
            motions.append(_padded(estimate.motion, self._orders))
            for series, load in zip(found, loads):
                known = np.empty((0, 6)) if load is None else load.motion
                series.append(_padded(known, max(self._orders - 2, 1)))
        self._taken += len(samples)
        n = self._model.n_joints
        motion = np.array(motions) if motions else np.empty((0, self._orders, n))
        self._given += len(motion)
        self._vouched += np.isfinite(motion[:, :, 0]).sum(axis=0)
        return Completed(
            1e-9 * np.array(times, dtype=np.float64),
            motion,
            tuple(
                (w.link, w.expressed_in, w.acting, np.array(series))
                for w, series in zip(samples.wrenches, found)
                if series
            ),
            {},
            'measured',
            self._start,
            (
                *remarks,
                'The derivatives are estimated from the measured positions, '
                f'{self.delay:g} s behind the measurements; where one is not certain enough it is '
                'left out (NaN).',
            ),
            self.delay,
            max_gap=self.max_gap,
        )

    def summary(self) -> tuple[str, ...]:
        """Sentences on what could be estimated."""
        if not self._given:
            return ()
        shares = [
            f'{name} at {100.0 * count / self._given:.3g} %'
            for name, count in zip(MOTION, self._vouched.tolist())
        ]
        unused = self._joints.dropped
        text = f'Of {self._taken} measurements: {listed(shares)} of {self._given} estimates.'
        if unused:
            text += f' {unused} came late, twice or with a stamp out of order, and were not used.'
        if self._joints.gaps:
            text += f' {self._joints.gaps} times it started anew behind a gap.'
        return (text,)

    def _unwrapped(self, positions: Array) -> Array:
        """Positions of continuous joints without the turns after which encoders start anew."""
        if not self._turns.any() or not len(positions):
            return positions
        before = positions[:1] if self._last is None else self._last
        raw = np.concatenate([before, positions])[:, self._turns]
        turns = np.cumsum(np.round(np.diff(raw, axis=0) / _TURN), axis=0)
        result = positions.copy()
        result[:, self._turns] += _TURN * (self._offset - turns)
        self._last, self._offset = positions[-1:].copy(), self._offset - turns[-1]
        return result


def in_model_order(model: RobotModel, samples: Samples) -> tuple[Samples, tuple[str, ...]]:
    """Choose the joints of a model, with a remark on others if there are any."""
    ordered, unused = samples.in_order(model.joint_names)
    if not unused:
        return ordered, ()
    return ordered, (f'Left out, since the model does not have them: {listed(unused)}.',)


def known_orders(values: Array) -> NDArray[np.intp]:
    """Count the leading orders, along axis 1 of (N, K, n), that are known at each sample, (N,)."""
    known = ~np.isnan(values).any(axis=2)
    return np.asarray(np.logical_and.accumulate(known, axis=1).sum(axis=1), dtype=np.intp)


def _through(
    times: Array, values: Array | None, rates: Array | None, accelerations: Array | None
) -> MotionSpline:
    """Spline through samples that may begin and end anywhere in a motion."""
    assert values is not None
    free = np.full((_FREE, values.shape[1]), np.nan)
    return fit_spline(times, values, rates, accelerations, start=free, end=free)


def _padded(values: Array, orders: int) -> Array:
    result = np.full((orders, values.shape[1]), np.nan)
    known = min(orders, len(values))
    result[:known] = values[:known]
    return result
