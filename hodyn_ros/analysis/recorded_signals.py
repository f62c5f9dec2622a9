"""Quantities along a recording, each with what rounding and noise may have added to it.

A robot that takes a command each period T forms rates from consecutive ones, (c_i - c_{i-1}) / T
and so on. A divided difference of order k is the k-th derivative somewhere between its samples
(mean value theorem), so what exceeds a limit does so however coarse the recording is. Measurements
are smoothed, with standard deviations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.model.limits import SERIES, MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity, rounding_of
from hodyn_ros.names import MOTION_NAMES
from hodyn_ros.trajectory.differences import NORMAL, divided_differences, scatter_of
from hodyn_ros.trajectory.smoother import runs, smooth
from hodyn_ros.typing import Array, Flags

MOTION = MOTION_NAMES[:4]
EFFORT = ('effort', 'effort_dot')
FEWEST = 5
"""Samples of a recording."""


_FEWEST_CHANGES = 30  # fourth differences that are more than a fault or two
_MOVES = 5.0  # standard deviations of noise, from which on a step is one of the motion
_ANOTHER = 1000  # periods between recordings whose stamps go back
_LEAP = 5  # periods by which stamps that jitter do not step
_REGULAR = 0.05  # of a period, jitter that hides no late sample
_WINDOW = 8  # samples before and behind a late one that tell whether others are missing
_AS_ONE = 0.25  # of a step, by which one over a gap may differ from the usual ones
_BLOCK = 64  # samples whose noise is estimated together
_SIGMAS = 6.0  # standard deviations of noise that a difference may be off by
_DEVIATIONS = 2.0  # of a measurement, beyond which a limit is exceeded
_LONGEST_GAP = 0.1  # s, between measurements of one motion
_DIFFERENCED = {'commanded': ('position', 'effort'), 'measured': ('velocity', 'effort')}
_QUANTITIES = {'position': MOTION, 'effort': EFFORT, 'velocity': MOTION[1:2]}
_LONGEST_HOLD = 100  # samples; what repeats longer stands still


class Recorded(NamedTuple):
    """What was commanded or measured at N instants, of the n joints in model order.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.analysis import Recorded
    >>> recorded = Recorded(0.001 * np.arange(1000), np.zeros((1000, 2)))
    >>> recorded.rows(np.arange(10, 20)).position.shape
    (10, 2)
    """

    times: Array
    """Shape (N,) [s]."""
    position: Array
    """Shape (N, n) [rad] or [m]."""
    velocity: Array | None = None
    """Shape (N, n) [rad/s] or [m/s]; not used of commands. NaN where there is none."""
    effort: Array | None = None
    """Shape (N, n) [N m] or [N]; NaN where there is none."""

    def rows(self, rows: NDArray[np.intp]) -> Recorded:
        """Some of the samples.

        Parameters
        ----------
        rows : ndarray of int
            Which samples, in the wanted order.

        Returns
        -------
        Recorded
        """
        kept: Any = (None if values is None else values[rows] for values in self)
        return Recorded(*kept)

    def known(self, source: str) -> dict[str, Array]:
        """Series that are differenced, if anything is known of them, by their names.

        Parameters
        ----------
        source : {'commanded', 'measured'}
            Positions and efforts are differenced of commands, velocities and efforts of
            measurements.

        Returns
        -------
        dict of str to ndarray, shape (N, n)
        """
        given = {name: getattr(self, name) for name in _DIFFERENCED[source]}
        return {
            name: x for name, x in given.items() if x is not None and np.isfinite(x).any()
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Signal(Quantity):
    """A quantity of the n joints along a recording, beside its limits of shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Recorded, find_stop_causes
    >>> model, times = RobotModel.from_urdf('two_link'), 0.001 * np.arange(2000)
    >>> slow = Recorded(times, 0.1 * np.sin(times)[:, None] * np.ones(2))
    >>> for signal in find_stop_causes(model, model.limits, slow).signals:
    ...     print(signal.name, signal.source, signal.peaks.round(3))
    position commanded [0.032 0.036]
    velocity commanded [0.017 0.017]
    acceleration commanded [nan nan]
    jerk commanded [nan nan]
    effort computed [0.552 0.327]
    effort_dot computed [nan nan]
    """

    source: str
    """'commanded', 'measured', or 'computed': what the model needs for the commands."""
    times: Array
    """Shape (N,) [s]."""
    error: Array
    """Of commands what rounding and noise may have added; two deviations of measurements."""

    @classmethod
    def of(
        cls,
        model: RobotModel,
        limits: MotionLimits,
        quantity: str,
        source: str,
        times: Array,
        values: Array,
        error: Array,
    ) -> Signal:
        """Beside the limits of the quantity.

        Parameters
        ----------
        model : RobotModel
        limits : MotionLimits
        quantity : str
            Name of a limit, such as 'velocity' or 'effort_dot'.
        source : {'commanded', 'measured', 'computed'}
        times : ndarray, shape (N,)
            [s]
        values, error : ndarray, shape (N, n)
            In the unit of the quantity.

        Returns
        -------
        Signal
        """
        upper = limits.upper if quantity == 'position' else getattr(limits, quantity)
        lower = limits.lower if quantity == 'position' else -upper
        return cls(
            quantity,
            *SERIES[quantity],
            model.joint_names,
            tuple(kind == 'prismatic' for kind in model.joint_types),
            values,
            lower,
            upper,
            source=source,
            times=times,
            error=error,
        )

    def beyond(self) -> Array:
        """How far it is beyond a limit, shape (N, n); negative within, NaN where not known.

        Returns
        -------
        ndarray, shape (N, n)
            In the unit of the quantity, without regard to `error`.
        """
        outside = np.maximum(self.values - self.upper, self.lower - self.values)
        return np.asarray(outside - rounding_of(self.upper))


def differenced(
    model: RobotModel, limits: MotionLimits, source: str, recording: Recorded, clock: Clock
) -> list[Signal]:
    """Samples and their differences.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    source : {'commanded', 'measured'}
    recording : Recorded
        In the order of time.
    clock : Clock
        Of its samples.

    Returns
    -------
    list of Signal
        Of commands position to jerk, of measurements the velocity; then effort and its
        rate. The errors are those of noise and of the period.
    """
    found = []
    for base, values in recording.known(source).items():
        noise = _SIGMAS * noise_of(values)
        for k, quantity in enumerate(_QUANTITIES[base]):
            rates = differences(values, clock.ticks, k)
            error = sqrt(comb(2 * k, k)) / clock.period**k * noise
            error += k * clock.error * np.abs(np.nan_to_num(rates))
            found.append(
                Signal.of(model, limits, quantity, source, recording.times, rates, error)
            )
    return found


def computed_signals(
    model: RobotModel, limits: MotionLimits, commanded: Sequence[Signal]
) -> list[Signal]:
    """Torques that the model needs for the commanded motion, and their rates.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    commanded : sequence of Signal
        The first four are position to jerk.

    Returns
    -------
    list of Signal
        Effort and its rate; NaN where the motion is not known. The errors are those of
        acceleration and jerk times the mass matrix.
    """
    series = commanded[: len(MOTION)]
    motion = np.stack([signal.values for signal in series], axis=1)
    known = np.isfinite(motion).all(axis=(1, 2))
    M = np.abs(mass_matrix(model, motion[known, :1])[:, 0])
    efforts = inverse_dynamics(model, motion[known])
    found = []
    for k, quantity in enumerate(EFFORT):
        values, error = np.full((2, *series[0].values.shape), np.nan)
        values[known] = efforts[:, k]
        error[known] = np.einsum('nij,nj->ni', M, series[2 + k].error[known])
        found.append(
            Signal.of(model, limits, quantity, 'computed', series[0].times, values, error)
        )
    return found


def measured_signals(
    model: RobotModel, limits: MotionLimits, measured: Recorded
) -> dict[str, Signal]:
    """Measurements: efforts and their differences, positions smoothed with their derivatives.

    Efforts jump, by friction and contact, which positions do not. Velocities are as measured, if
    they are.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    measured : Recorded
        In any order; of samples with the same time the first one is used.

    Returns
    -------
    dict of str to Signal
        By the quantity.
    """
    order = np.argsort(measured.times, kind='stable')
    measured = measured.rows(order[np.append(True, np.diff(measured.times[order]) > 0.0)])
    times = measured.times
    motion = _smoothed(times, measured.position)
    found = {
        quantity: Signal.of(model, limits, quantity, 'measured', times, *motion[:, :, k])
        for k, quantity in enumerate(MOTION)
    }
    clock = clock_of(times, measured.position)
    for signal in differenced(model, limits, 'measured', measured, clock):
        found[signal.name] = signal
    return found


def _smoothed(times: Array, position: Array) -> Array:
    """Positions (N, n) to jerks with two standard deviations, shape (2, N, 4, n).

    Where samples are too few or too far apart for a motion, positions are as measured.
    """
    found = np.full((2, len(times), len(MOTION), position.shape[1]), np.nan)
    found[:, :, 0] = position, np.zeros_like(position)
    stamps = np.rint(1e9 * (times - times[0])).astype(np.int64)
    patterns, pattern_of = np.unique(np.isfinite(position), axis=1, return_inverse=True)
    for k, is_known in enumerate(patterns.T):  # joints that are known at the same instants
        known, joints = np.flatnonzero(is_known), np.flatnonzero(pattern_of.ravel() == k)
        for together in runs(stamps[known], _LONGEST_GAP):
            if len(together) < FEWEST:
                continue
            rows = known[together]
            part = smooth(
                stamps[rows],
                position[np.ix_(rows, joints)],
                highest_derivative=len(MOTION) - 1,
            )
            place = np.ix_(rows, np.arange(len(MOTION)), joints)
            found[0][place], found[1][place] = part.motion, _DEVIATIONS * part.std
    return found


class Clock(NamedTuple):
    """When the N samples of a stream were due."""

    ticks: Array
    """Instants of the samples by the clock of the stream, shape (N,) [s]."""
    period: float
    """Time between samples [s]."""
    error: float
    """Relative error of the period."""
    missing: NDArray[np.intp]
    """How many samples are missing before each, while the stream moved, shape (N,)."""
    leaps: Array
    """How far the stamps stepped before each sample and the stream did not, shape (N,) [s]."""


def clock_of(times: Array, positions: Array) -> Clock:
    """Clock of a stream with stamps (N,) [s] that may be late or early, N >= 2.

    Stamps that are off by less than a period do not count; a gap that lasts does. If the positions
    (N, n) are smoother over the stamps than over equal periods, the stamps are right.

    Parameters
    ----------
    times : ndarray, shape (N,)
        Stamps [s].
    positions : ndarray, shape (N, n)
        [rad] or [m].

    Returns
    -------
    Clock
    """
    steps = np.diff(times)
    period = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 1.0
    N = len(times)
    cycles = np.ones(N - 1, dtype=np.intp)
    missing, leaps = np.zeros(N, dtype=np.intp), np.zeros(N)
    late = times - period * np.arange(N)
    is_regular = float(np.median(np.abs(steps - period))) < _REGULAR * period
    for i in np.flatnonzero((steps > 1.5 * period) | (steps < -period)).tolist():
        before, after = late[max(0, i + 1 - _WINDOW) : i + 1], late[i + 1 : i + 1 + _WINDOW]
        lasting = float(np.median(after) - np.median(before))
        more = round(lasting / period)
        share = _step_over(positions, i)
        if abs(share - 1.0) < _AS_ONE:
            is_step = abs(more) >= _LEAP or (is_regular and more > 0)
            leaps[i + 1] = lasting if is_step else 0.0
        elif more < -_LEAP:  # another recording
            cycles[i] = _ANOTHER
        elif more >= (1 if share else _LEAP):
            cycles[i] = 1 + more
            missing[i + 1] = more if share > 1.0 + 0.5 * more else 0
    usual = steps[(leaps[1:] == 0.0) & (cycles == 1)]
    if usual.sum() > 0.0:
        period = float(usual.mean())
    jitter = float(np.median(np.abs(steps - cycles * period)))
    ticks = period * np.append(0.0, np.cumsum(cycles))
    if jitter > 1e-3 * period and (steps > 0.0).all():
        is_right = _roughness(positions, times) < 0.5 * _roughness(positions, ticks)
        ticks = times if is_right else ticks
    return Clock(
        ticks, period, 4.0 * jitter / max(float(usual.sum()), period), missing, leaps
    )


def _roughness(positions: Array, ticks: Array) -> float:
    """Typical third difference over some instants."""
    third = np.abs(differences(positions, ticks, 3)).max(axis=1)
    return float(np.nanmedian(third))


def _step_over(positions: Array, i: int) -> float:
    """The step behind sample i over those beside it; 0 if the stream does not move there."""
    steps = np.diff(positions[max(0, i - 1) : i + 3], axis=0)
    step = positions[i + 1] - positions[i]
    usual = (steps.sum(axis=0) - step) / (len(steps) - 1)
    size = float(usual @ usual)
    return float(step @ usual) / size if size else 0.0


def differences(values: Array, ticks: Array, order: int) -> Array:
    """Divided differences of an order of samples (N, n), each at its last sample; NaN before.

    Multiplied by the factorial of the order, so that they are derivatives.

    Parameters
    ----------
    values : ndarray, shape (N, n)
    ticks : ndarray, shape (N,)
        Their instants [s].
    order : int
        0: the values themselves.

    Returns
    -------
    ndarray, shape (N, n)
        Per s^order.
    """
    found = np.full(values.shape, np.nan)
    found[order:] = divided_differences(values, ticks, order)[-1]
    return found


def noise_of(values: Array) -> Array:
    """Standard deviations of noise around each sample, rounding included, shape (N, n).

    From medians of `scatter_of`, which a few samples that are out of line do not move: of those
    around, and of all where something changes, since rounding hides in a slow motion.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        N >= 5; NaN where they are not known.

    Returns
    -------
    ndarray, shape (N, n)
        In the unit of the values.
    """
    N, n = values.shape
    size = min(_BLOCK, N)
    padded = np.zeros((-(-N // size) + 2, size, n))
    scatter = padded.reshape(-1, n)
    scatter[size + 2 : size + N - 2] = scatter_of(values)
    medians = np.median(padded, axis=1)
    around = np.maximum(np.maximum(medians[:-2], medians[1:-1]), medians[2:])
    found = around.repeat(size, axis=0)[:N]
    for column, changes in zip(found.T, scatter.T):
        changes = changes[changes > 0.0]
        if len(changes) > _FEWEST_CHANGES:
            np.maximum(column, np.median(changes), out=column)
    return np.asarray(found / NORMAL)


def repeats(values: Array) -> Iterator[tuple[int, int, bool]]:
    """Samples that repeat the one before in all columns, in motion: row, how many, made up for.

    Made up for: the next step is as long as all those that are missing.

    Parameters
    ----------
    values : ndarray, shape (N, n)

    Yields
    ------
    row : int
        The first sample that repeats the one before.
    count : int
        How many do so, at most 100.
    makes_up : bool
        Whether the step behind them is as long as all.
    """
    steps = np.diff(values, axis=0)
    is_still: Flags = np.all(steps == 0.0, axis=1)
    is_moving: Flags = np.any(np.abs(steps) > _MOVES * noise_of(values)[1:], axis=1)
    edges = np.flatnonzero(np.diff(is_still.astype(np.int8)))
    for before, last in zip(edges, edges[1:]):
        count, after = int(last - before), int(last + 1)
        if not is_moving[before] or count > _LONGEST_HOLD or not is_still[last]:
            continue
        beside = [k for k in (int(before), after + 1) if k < len(steps) and is_moving[k]]
        usual = np.mean(steps[beside], axis=0)
        share = float(steps[after] @ usual) / float(usual @ usual)
        if share > 0.5:
            yield int(before) + 2, count, share > 1.0 + 0.5 * count
