"""The factors with which limited quantities keep their limits, and the smallest of them.

Whether a limit is exceeded is evaluated at rates a few percent apart, and where that changes, the
edge is found by bisection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.scaling_dynamics import Quantity
from hodyn_ros.errors import DeflectionError, ScalingError

Array = NDArray[np.float64]

# Half of the excess that counts as rounding, see analysis/limits.py.
_ROUNDING = 5e-10
# Rates that are tried to find where all faster motions exceed a limit; how many are evaluated up
# to there, and how far down they reach. Where not even slow motions keep all limits, the whole
# range is evaluated as densely.
_TRIED = 4.0 ** np.arange(-14.0, 15.0)
RATES, _RANGE, _ALL_RATES = 120, 1e-3, 700
_HALVINGS = 36
_EDGE = 1e-11
# How much faster the motion is played to see which limit is in the way.
_FASTER = 1e-6
# Intervals of factors that are narrower than this, relative to where they are, are rounding.
_NARROWEST = 1e-12

_NO_FACTOR = (
    'No time factor makes the motion keep its limits: at every speed another one is exceeded. '
    'Change the path or the limits.'
)


class Limiting(NamedTuple):
    """What would exceed its limit first if the motion were faster."""

    quantity: str
    """As in `hodyn_ros.analysis.limits` and `hodyn_ros.actuators.limits`."""
    name: str
    """Name of the joint or motor."""
    sample: int
    """Of a function of time, the nearest of the equal steps or of the times that were given."""
    value: float
    """At the factor."""
    limit: float
    """With its sign."""
    time: float | None = None
    """Of a function of time [s]."""


class UniformScaling(NamedTuple):
    """How much slower, or faster, a motion is to be played."""

    factor: float
    """Smallest time factor c of q(t / c) with which the limits are kept, connected to the slow
    ones: with every larger factor they are kept too. Below one: the motion may be faster. Zero if
    nothing limits it. If the limits are not kept in the slow motion (`slower_is_kept`), the
    smallest one of all."""
    limiting: Limiting | None
    """None if nothing limits the speed."""
    intervals: tuple[tuple[float, float], ...]
    """All factors with which the limits are kept: from, to; increasing."""

    @property
    def slower_is_kept(self) -> bool:
        """Whether the limits are kept with every factor that is larger."""
        return self.intervals[-1] == (self.factor, np.inf)

    @property
    def is_kept(self) -> bool:
        """Whether the motion keeps the limits as it is given."""
        return any(low <= 1.0 <= high for low, high in self.intervals)


FactorIntervals = tuple[tuple[float, float], ...]
"""Time factors, from and to, increasing."""


def scaling_of(
    quantities: Sequence[Quantity], times: Sequence[Array] | None = None
) -> UniformScaling:
    """Smallest time factor with which limited quantities keep their limits.

    Parameters
    ----------
    quantities : sequence of Quantity
    times : sequence of ndarray, each of shape (N,), optional
        Of the samples of each quantity.

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If there is none.
    """
    intervals = kept_intervals(quantities, times)
    factor = smallest_factor(intervals)
    limiting = limiting_of(quantities, factor, times) if factor > 0.0 else None
    return UniformScaling(factor, limiting, intervals)


def kept_intervals(
    quantities: Sequence[Quantity],
    times: Sequence[Array] | None = None,
    smallest: float = 0.0,
    count: int = RATES,
) -> FactorIntervals:
    """All time factors with which limited quantities keep their limits; see `scaling_of`.

    Parameters
    ----------
    quantities, times
    smallest : float
        Factor below which the answer is of no interest and may be wrong.
    count : int
        Of rates that are evaluated.
    """
    slowest, fastest = _TRIED[[0, -1]]
    if smallest > 0.0:
        slowest, fastest = _RANGE / smallest, 1.0 / smallest
    elif len(kept := np.flatnonzero([not _is_exceeded(quantities, s) for s in _TRIED])):
        fastest = _TRIED[min(kept[-1] + 1, len(_TRIED) - 1)]
        slowest = _RANGE * fastest
    else:
        count = _ALL_RATES
    rates = np.append(0.0, np.geomspace(slowest, fastest, count))
    exceeded = np.array([_is_exceeded(quantities, s) for s in rates])
    edges = [] if exceeded[0] else [0.0]
    for i in np.flatnonzero(exceeded[1:] != exceeded[:-1]).tolist():
        low, high = rates[i], rates[i + 1]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            is_same = _is_exceeded(quantities, middle) == exceeded[i]
            low, high = (middle, high) if is_same else (low, middle)
        # The side on which the limits are kept, away from the edge by more than rounding.
        edges.append(float(high * (1.0 + _EDGE) if exceeded[i] else low * (1.0 - _EDGE)))
    if len(edges) % 2:
        edges.append(np.inf)
    intervals = tuple(
        (1.0 / high, 1.0 / low if low > 0.0 else np.inf)
        for low, high in reversed([*zip(edges[::2], edges[1::2])])
    )
    if not intervals:
        raise ScalingError(_no_factor(quantities, times))
    return intervals


def in_both(first: FactorIntervals, second: FactorIntervals) -> FactorIntervals:
    """Find the factors that are in both of two sets.

    Raises
    ------
    ScalingError
        If there is none.
    """
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in first for b in second)
    common = tuple(sorted((low, high) for low, high in pairs if high > low * (1.0 + _NARROWEST)))
    if not common:
        raise ScalingError(_NO_FACTOR)
    return common


def smallest_factor(intervals: FactorIntervals) -> float:
    """Smallest factor that is connected to the slow ones; if they are not kept, of all."""
    slowest = intervals[-1]
    return slowest[0] if np.isinf(slowest[1]) else intervals[0][0]


def _with_slack(limit: Array) -> Array:
    return limit + _ROUNDING * (limit + 1.0)


def _is_exceeded(quantities: Sequence[Quantity], s: float) -> bool:
    """Whether a limit is exceeded at a rate, or a spring cannot have its torque."""
    for item in quantities:
        try:
            values = np.abs(item.values(s)).max(axis=0)
        except DeflectionError:
            return True
        if np.any(values > _with_slack(item.limit)):
            return True
    return False


def limiting_of(
    quantities: Sequence[Quantity], factor: float, times: Sequence[Array] | None
) -> Limiting | None:
    """Find what would be exceeded first with a smaller factor."""
    s = 1.0 / factor
    worst, result = -np.inf, None
    for number, item in enumerate(quantities):
        try:
            values, faster = item.values(s), item.values(s * (1.0 + _FASTER))
        except DeflectionError as error:
            # A spring is at the end of its range.
            place = next(
                place
                for place, each in enumerate(quantities)
                if place >= number and each.name == 'deflection'
            )
            springs = quantities[place]
            column, sample = springs.columns.index(error.joint), error.sample[0]
            value = float(springs.values(s)[sample, column])
            time = None if times is None else float(times[place][sample])
            return Limiting(springs.name, error.joint, sample, value, value, time)
        excess = np.abs(faster) / item.limit
        sample, column = divmod(int(excess.argmax()), excess.shape[1])
        if excess[sample, column] > worst:
            worst = float(excess[sample, column])
            value = float(values[sample, column])
            bound = float(np.copysign(item.limit[column], value))
            time = None if times is None else float(times[number][sample])
            result = Limiting(item.name, item.columns[column], sample, value, bound, time)
    return result


def _no_factor(quantities: Sequence[Quantity], times: Sequence[Array] | None) -> str:
    """Message that says why no factor exists."""
    for number, item in enumerate(quantities):
        try:
            values = np.abs(item.values(0.0))
        except DeflectionError as error:
            return f'No time factor makes the motion possible. Held still: {error}'
        excess = values - _with_slack(item.limit)
        if np.any(excess > 0.0):
            sample, column = divmod(int(excess.argmax()), excess.shape[1])
            place = f'sample {sample}' if times is None else f'{times[number][sample]:.6g} s'
            return (
                f'No time factor makes the motion keep its limits: to hold still at {place}, '
                f'{item.columns[column]!r} already needs {item.name} = '
                f'{values[sample, column]:.6g}, more than {item.limit[column]:.6g}. Change the '
                'path, the load or the limits.'
            )
    return _NO_FACTOR
