"""Pictures before they are drawn: curves, limits and marks, for Matplotlib and for the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.dynamics.energy import kinetic_energy, potential_energy
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity, Violation, order_of
from hodyn_ros.plotting.labels import labels_of, number, percent

if TYPE_CHECKING:
    from hodyn_ros.files import Samples
    from hodyn_ros.identification import Comparison

TIME_LABEL = 'time [s]'

_PORTRAIT = 'effort', 'effort_dot'
BAND = 2.0
"""Standard deviations to either side of a curve that are shown."""

# A limit farther from zero than this many times the curve is left out of the range that is shown:
# the curve would be a flat line.
_FARTHEST_LIMIT = 2.5


class Range(NamedTuple):
    """Limits along one axis; infinite where there is none.

    Attributes
    ----------
    lower, upper : float
        In the unit of the axis.
    """

    lower: float = -np.inf
    upper: float = np.inf

    @classmethod
    def of(cls, quantity: Quantity, index: int) -> Range:
        """Limits of a joint or motor, the widest where they change along the motion."""
        lower, upper = quantity.widest
        return cls(float(lower[index]), float(upper[index]))


class Curve(NamedTuple):
    """A line of a picture.

    Attributes
    ----------
    name : str
        For the legend; empty if the picture has one curve only.
    x, y : ndarray, shape (N,)
        Coordinates of its points; NaN is a gap.
    """

    name: str
    x: Array
    y: Array


class Panel(NamedTuple):
    """One picture.

    Attributes
    ----------
    title : str
        Quantity that is shown, such as 'Torque Q'.
    subject : str
        Name of the joint or motor; empty for the whole robot.
    x_label, y_label : str
        With units.
    curves : tuple of Curve
        At least one.
    x_limits, y_limits : Range
        Drawn as lines.
    marks : tuple of (float, float)
        Points where a limit is exceeded most.
    notes : tuple of str
        Lines on the extremes, and the share of the limits that they use.
    is_portrait : bool
        Whether one quantity is drawn over another instead of time.
    std : ndarray, shape (N,), or None
        Standard deviations of the only curve, shown as a band.
    """

    title: str
    subject: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_limits: Range = Range()
    y_limits: Range = Range()
    marks: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()
    is_portrait: bool = False
    std: Array | None = None

    @property
    def x_range(self) -> tuple[float, float]:
        """Range of the horizontal axis.

        Returns
        -------
        (float, float)
            With a margin in portraits; over time from the first to the last sample.
        """
        if self.is_portrait:
            return shown_range([curve.x for curve in self.curves], self.x_limits)
        first = min(float(curve.x[0]) for curve in self.curves)
        last = max(float(curve.x[-1]) for curve in self.curves)
        return (first, last) if last > first else (first - 0.5, first + 0.5)

    @property
    def y_range(self) -> tuple[float, float]:
        """Range of the vertical axis."""
        return shown_range([curve.y for curve in self.curves], self.y_limits)

    def band(self, n_stretches: int) -> tuple[Curve, Curve] | None:
        """Lower and upper edge of two standard deviations around the curve, if there are any.

        Parameters
        ----------
        n_stretches : int
            See `extreme_samples`.

        Returns
        -------
        (Curve, Curve) or None
        """
        if self.std is None:
            return None
        x, y = self.curves[0].x, self.curves[0].y
        edges = np.stack([y - BAND * self.std, y + BAND * self.std], axis=-1)
        shown = extreme_samples(edges, n_stretches, x)
        low, high = edges[shown].T
        return Curve('', x[shown], low), Curve('', x[shown], high)

    def thinned(self, n_stretches: int) -> list[Curve]:
        """Curves with the extreme samples of so many stretches alone.

        Parameters
        ----------
        n_stretches : int
            See `extreme_samples`.

        Returns
        -------
        list of Curve
        """
        found = []
        for name, x, y in self.curves:
            columns = np.stack([x, y], axis=-1) if self.is_portrait else y
            shown = extreme_samples(columns, n_stretches, None if self.is_portrait else x)
            found.append(Curve(name, x[shown], y[shown]))
        return found


def shown_range(curves: Sequence[Array], limits: Range) -> tuple[float, float]:
    """Range of an axis with all of the curves, and the limits unless they are far away.

    Parameters
    ----------
    curves : sequence of ndarray, shape (N,)
        One coordinate of each; NaN is a gap.
    limits : Range
        Of that coordinate.

    Returns
    -------
    (float, float)
        With a margin of 6 % on both sides.
    """
    low = min(float(np.nanmin(array)) for array in curves)
    high = max(float(np.nanmax(array)) for array in curves)
    reach = _FARTHEST_LIMIT * max(abs(low), abs(high))
    for limit in limits:
        if abs(limit) <= reach:
            low, high = min(low, limit), max(high, limit)
    # Noise of rounding around a constant is not worth a picture.
    least = 1e-9 * max(abs(low), abs(high))
    margin = 0.06 * (high - low) if high - low > least else max(0.1 * abs(high), 1e-3)
    return low - margin, high + margin


def extreme_samples(
    values: Array, n_stretches: int, times: Array | None = None
) -> NDArray[np.intp]:
    """Find the samples to show: the first, the last, and the extreme ones of every stretch.

    A screen shows some hundreds of columns of pixels, of whose samples the lowest and the highest
    are what can be seen: the picture of these is that of all, and no peak is lost. Values are
    those of one curve (N,), or the c coordinates of its points (N, c); NaN is a gap, of which one
    is kept in every stretch. With increasing times (N,) stretches are of equal duration, else of
    an equal number of samples. All N are found if they are not more than 2 c n_stretches + 2.

    Parameters
    ----------
    values : ndarray, shape (N,) or (N, c)
    n_stretches : int
    times : ndarray, shape (N,), optional
        [s]

    Returns
    -------
    ndarray of int
        Increasing rows.
    """
    N = len(values)
    columns = values.reshape(N, -1)
    if N <= 2 * columns.shape[1] * n_stretches + 2:
        return np.arange(N)
    starts = _starts(N, n_stretches, times)
    is_gap = np.isnan(columns)
    low = np.where(is_gap, np.inf, columns)
    high = np.where(is_gap, -np.inf, columns)
    gaps = np.flatnonzero(is_gap.any(axis=1))
    kept = [np.array([0, N - 1])]
    for first, end in zip(starts, np.append(starts[1:], N)):
        kept += [
            first + low[first:end].argmin(axis=0),
            first + high[first:end].argmax(axis=0),
        ]
    if gaps.size:
        # One in every stretch that has any.
        _, places = np.unique(
            np.searchsorted(starts, gaps, side='right'), return_index=True
        )
        kept.append(gaps[places])
    return np.unique(np.concatenate(kept))


def _starts(N: int, n_stretches: int, times: Array | None) -> NDArray[np.intp]:
    """First samples of the stretches that are not empty."""
    if times is None or not times[-1] > times[0]:
        return np.arange(n_stretches, dtype=np.intp) * N // n_stretches
    edges = np.linspace(times[0], times[-1], n_stretches, endpoint=False)
    return np.unique(np.searchsorted(times, edges))


def panels_over_time(
    times: Array,
    quantities: Iterable[Quantity],
    name: str,
    violations: Iterable[Violation] = (),
) -> list[Panel]:
    """Quantities of one joint or motor over time [s], without those of which nothing is known.

    Parameters
    ----------
    times : ndarray, shape (N,)
        [s]
    quantities : iterable of Quantity
        Along the same samples.
    name : str
        Of the joint or motor.
    violations : iterable of Violation
        Their worst samples are marked.

    Returns
    -------
    list of Panel
        In the order of the quantities.
    """
    found = []
    for quantity in quantities:
        if name not in quantity.owners:
            continue
        i = quantity.owners.index(name)
        if not quantity.n_known[i]:
            continue
        label = labels_of(quantity)[i]
        marks = tuple(
            (float(times[violation.sample]), violation.value)
            for violation in violations
            if (violation.joint_name, violation.quantity) == (name, quantity.name)
        )
        found.append(
            Panel(
                label.title,
                name,
                TIME_LABEL,
                f'{label.symbol} [{label.unit}]',
                (Curve('', times, quantity.values[:, i]),),
                y_limits=Range.of(quantity, i),
                marks=marks,
                notes=(_note(quantity, i, label.unit),),
                std=None if quantity.std is None else quantity.std[:, i],
            )
        )
    return found


def portrait_panels(
    quantities: Sequence[Quantity], name: str, violations: Iterable[Violation] = ()
) -> list[Panel]:
    """Effort of a joint over its rate, with the box of both limits; none without the rate.

    Parameters
    ----------
    quantities : sequence of Quantity
        The efforts and their rates among others, of all joints.
    name : str
        Of the joint.
    violations : iterable of Violation
        Those of effort and effort rate are marked.

    Returns
    -------
    list of Panel
        One, or none.
    """
    by_name = {quantity.name: quantity for quantity in quantities}
    efforts = [by_name[each] for each in _PORTRAIT]
    j = efforts[0].owners.index(name)
    Q, Qd = (quantity.values[:, j] for quantity in efforts)
    if np.isnan(Q + Qd).all():
        return []
    labels = [labels_of(quantity)[j] for quantity in efforts]
    box = [Range.of(quantity, j) for quantity in efforts]
    found = {
        violation.sample
        for violation in violations
        if violation.joint_name == name and violation.quantity in _PORTRAIT
    }
    notes = tuple(
        f'{label.symbol}: {_limit_note(quantity, j, label.unit)}'
        for label, quantity in zip(labels, efforts)
    )
    x_label, y_label = (
        f'{label.symbol} [{label.unit}]' for label in (labels[1], labels[0])
    )
    return [
        Panel(
            f'{labels[0].name} over its rate',
            name,
            x_label,
            y_label,
            (Curve('', Qd, Q),),
            x_limits=box[1],
            y_limits=box[0],
            marks=tuple((float(Qd[i]), float(Q[i])) for i in sorted(found)),
            notes=notes,
            is_portrait=True,
        )
    ]


def motor_panels(
    results: Samples, quantities: Sequence[Quantity], violations: Sequence[Violation] = ()
) -> dict[str, list[Panel]]:
    """Deflection of every joint that has one and quantities of its motors, by the joint.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    quantities : sequence of Quantity
        Those of the motors among others.
    violations : sequence of Violation
        Their worst samples are marked.

    Returns
    -------
    dict of str to list of Panel
        Empty lists for joints without motors; empty without motors.
    """
    if results.motors is None:
        return {}
    of_motors = [each for each in quantities if each.kind in ('position', 'torque')]
    (deflections,) = (each for each in quantities if each.kind == 'deflection')
    # The mean of two springs, between which the most deflected one changes.
    deflections = replace(deflections, values=order_of(results.motors.deflection, 0))
    rows: dict[str, list[Panel]] = {}
    for joint, deflection in zip(results.joint_names, np.nan_to_num(deflections.values.T)):
        rows[joint] = []
        if deflection.any():
            rows[joint] += panels_over_time(results.times, [deflections], joint, violations)
    for motor, joint in zip(results.motor_names, results.motor_joints):
        rows[joint] += panels_over_time(results.times, of_motors, motor, violations)
    return rows


class EnergyBalance(NamedTuple):
    """Energies of a robot along a motion and the powers that change them, each of shape (N,).

    Attributes
    ----------
    kinetic, potential : ndarray
        [J]
    power : ndarray
        Of all joints, qd^T Q [W].
    rate : ndarray
        d/dt of the sum of both energies [W].
    """

    kinetic: Array
    potential: Array
    power: Array
    rate: Array

    @property
    def other(self) -> Array:
        """What friction takes and what acts on the robot from outside takes [W]."""
        return self.power - self.rate


def energy_balance(results: Samples, model: RobotModel) -> EnergyBalance | None:
    """Energies and powers; None if the results do not hold what they need.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel

    Returns
    -------
    EnergyBalance or None
        NaN at samples where something is not known.
    """
    if results.motion.shape[1] < 3 or results.effort.shape[1] < 1:
        return None
    motion, effort = results.motion[:, :3], results.effort[:, 0]
    is_known = np.isfinite(motion.sum(axis=(1, 2)) + effort.sum(axis=1))
    if not is_known.any():
        return None
    T, U = (np.full((len(motion), 2), np.nan) for _ in range(2))
    T[is_known] = kinetic_energy(model, motion[is_known])
    U[is_known] = potential_energy(model, motion[is_known, :2])
    power = (motion[:, 1] * effort).sum(axis=1)
    return EnergyBalance(T[:, 0], U[:, 0], power, T[:, 1] + U[:, 1])


def energy_panels(times: Array, balance: EnergyBalance) -> list[Panel]:
    """Energies and power balance of the robot over time.

    Parameters
    ----------
    times : ndarray, shape (N,)
        [s]
    balance : EnergyBalance

    Returns
    -------
    list of Panel
        Energies, and powers.
    """
    T, U, power, rate = balance
    total = T + U
    energies = ('kinetic T', T), ('potential U', U), ('sum', total)
    powers = ('joints q′ᵀQ', power), ('d/dt (T + U)', rate), ('difference', balance.other)
    largest, difference = (float(np.nanmax(np.abs(x))) for x in (power, balance.other))
    return [
        Panel(
            'Energy',
            '',
            TIME_LABEL,
            'energy [J]',
            tuple(Curve(name, times, values) for name, values in energies),
            notes=(
                f'kinetic at most {number(np.nanmax(T))} J; sum from '
                f'{number(np.nanmin(total))} to {number(np.nanmax(total))} J',
            ),
        ),
        Panel(
            'Power balance',
            '',
            TIME_LABEL,
            'power [W]',
            tuple(Curve(name, times, values) for name, values in powers),
            notes=(
                f'joints at most {number(largest)} W; difference at most '
                f'{number(difference, 2)} W',
            ),
        ),
    ]


def comparison_panels(comparison: Comparison, joint: int) -> list[Panel]:
    """Measured and computed effort of a joint and their difference; none if it has not both.

    Parameters
    ----------
    comparison : Comparison
    joint : int
        Index of the joint.

    Returns
    -------
    list of Panel
        Two, or none. Gaps lie between the stretches and where measurements are not used.
    """
    gap = np.full(1, np.nan)
    columns: list[list[Array]] = [[], [], []]
    for item, t in zip(comparison.stretches, comparison.times):
        measured = np.where(item.is_used[:, joint], item.measured[:, joint], np.nan)
        for column, *values in zip(
            columns, (t, measured, item.computed[:, joint]), (t[-1:], gap, gap)
        ):
            column += values
    times, measured, computed = map(np.concatenate, columns)
    rest = measured - computed
    if np.isnan(rest).all():
        return []
    name, unit = comparison.joint_names[joint], comparison.units[joint]
    effort = 'Force' if unit == 'N' else 'Torque'
    scale, alike = comparison.scale[joint], comparison.correlation[joint]
    rms, missed = comparison.measured[joint], comparison.residual[joint]
    return [
        Panel(
            f'{effort}, measured and computed',
            name,
            TIME_LABEL,
            f'Q [{unit}]',
            (Curve('measured', times, measured), Curve('computed', times, computed)),
            notes=(
                f'RMS {number(rms, 3)} {unit}; {number(scale, 3)} × computed, correlation '
                f'{number(alike, 3)}',
            ),
        ),
        Panel(
            'Difference',
            name,
            TIME_LABEL,
            f'difference [{unit}]',
            (Curve('', times, rest),),
            notes=(f'RMS {number(missed, 3)} {unit}; {_peak_note(rest, unit)}',),
        ),
    ]


def difference_spectrum(comparison: Comparison, joint: int) -> Panel:
    """Amplitudes of sines that a difference is made of, over their frequencies.

    Stretches have Hann windows and are as long as the longest with zeros; the mean of their
    powers counts each by its samples.

    Parameters
    ----------
    comparison : Comparison
    joint : int
        Index of the joint.

    Returns
    -------
    Panel
        Without the mean; frequencies in [Hz].
    """
    parts = comparison.stretches
    step = min(float(item.times[1] - item.times[0]) for item in parts)
    size = round(max(float(item.times[-1] - item.times[0]) for item in parts) / step) + 1
    power, count = np.zeros(size // 2 + 1), 0
    for item in parts:
        rest = np.where(item.is_used, item.measured - item.computed, 0.0)[:, joint]
        span = float(item.times[-1] - item.times[0])
        even = item.times[0] + step * np.arange(round(span / step) + 1)
        rest = np.interp(even, item.times, rest)
        window = np.hanning(len(rest) + 2)[1:-1]
        power += (
            len(rest) * (2.0 * np.abs(np.fft.rfft(rest * window, size)) / window.sum()) ** 2
        )
        count += len(rest)
    frequencies: Array = np.arange(1, len(power)) / (size * step)
    amplitude, unit = np.sqrt(power[1:] / count), comparison.units[joint]
    k = int(amplitude.argmax())
    return Panel(
        'Amplitudes of the difference',
        comparison.joint_names[joint],
        'frequency [Hz]',
        f'amplitude [{unit}]',
        (Curve('', frequencies, amplitude),),
        notes=(
            f'at most {number(amplitude[k], 3)} {unit}, at {number(frequencies[k], 2)} Hz',
        ),
    )


def _note(quantity: Quantity, i: int, unit: str) -> str:
    """Line on the extremes of a joint or motor and its limits."""
    limits = Range.of(quantity, i)
    if limits.lower == -limits.upper:
        return _limit_note(quantity, i, unit)
    low, high = quantity.extremes[:, i]
    text = f'{number(low)} to {number(high)} {unit}'
    if not quantity.is_limited[i]:
        return text
    bounds = (number(limit) if np.isfinite(limit) else 'none' for limit in limits)
    return f'{text}; limits {" to ".join(bounds)}'


def _limit_note(quantity: Quantity, i: int, unit: str) -> str:
    """Line on the largest magnitude, and how much of a symmetric limit it uses."""
    text = _peak_note(quantity.extremes[:, i], unit)
    if not quantity.is_limited[i]:
        return text
    limit = number(Range.of(quantity, i).upper)
    return f'{text}, {percent(float(quantity.peaks[i]))} of ±{limit}'


def _peak_note(values: Array, unit: str) -> str:
    """Line on the largest magnitude of some values."""
    return f'at most {number(float(np.nanmax(np.abs(values))))} {unit}'
