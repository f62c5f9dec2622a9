"""Pictures before they are drawn: curves, limits and marks, for Matplotlib and for the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import first_true
from hodyn_ros.dynamics.energy import kinetic_energy, potential_energy
from hodyn_ros.errors import MotionError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity
from hodyn_ros.names import percent
from hodyn_ros.plotting.labels import labels_of, number
from hodyn_ros.typing import Array

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

    @property
    def band(self) -> tuple[Array, Array] | None:
        """Lower and upper edge of `BAND` standard deviations around the only curve."""
        if self.std is None:
            return None
        (curve,) = self.curves
        return curve.y - BAND * self.std, curve.y + BAND * self.std


def drawable(model: RobotModel, results: Samples) -> Samples:
    """Samples in the order of the model.

    Parameters
    ----------
    model : RobotModel
    results : Samples
        Joints in any order, maybe more of them.

    Returns
    -------
    Samples

    Raises
    ------
    JointNameError
        If a joint of the model is missing.
    MotionError
        If there are no samples, a position is not known, or times decrease.
    """
    if isinstance(results, RobotModel):
        raise MotionError(
            'The results are a RobotModel: give the model first, then the results.'
        )
    ordered, _ = results.in_order(model.joint_names)
    ordered.refuse_unknown_positions()
    if not len(ordered):
        raise MotionError(f'{ordered.name} has no samples.')
    if (place := first_true(np.diff(ordered.times) < 0.0)) is not None:
        before, after = ordered.times[place[0] : place[0] + 2]
        raise MotionError(
            f'The times decrease: {before} s is followed by {after} s (sample {place[0] + 1}); '
            'sort the samples by time.'
        )
    return ordered


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
    values = np.concatenate(curves)
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    reach = _FARTHEST_LIMIT * max(abs(low), abs(high))
    for limit in limits:
        if abs(limit) <= reach:
            low, high = min(low, limit), max(high, limit)
    # Noise of rounding around a constant is not worth a picture.
    least = 1e-9 * max(abs(low), abs(high))
    margin = 0.06 * (high - low) if high - low > least else max(0.1 * abs(high), 1e-3)
    return low - margin, high + margin


def panels_over_time(
    times: Array, quantities: Iterable[Quantity], name: str
) -> list[Panel]:
    """Quantities of one joint or motor over time [s], without those of which nothing is known.

    Parameters
    ----------
    times : ndarray, shape (N,)
        [s]
    quantities : iterable of Quantity
        Along the same samples; their worst samples beyond limits are marked.
    name : str
        Of the joint or motor.

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
        found.append(
            Panel(
                label.title,
                name,
                TIME_LABEL,
                f'{label.symbol} [{label.unit}]',
                (Curve('', times, quantity.values[:, i]),),
                y_limits=Range.of(quantity, i),
                marks=tuple(
                    (float(times[item.sample]), item.value)
                    for item in quantity.violations()
                    if item.joint_name == name
                ),
                notes=(_note(quantity, i, label.unit),),
                std=None if quantity.std is None else quantity.std[:, i],
            )
        )
    return found


def portrait_panels(quantities: Sequence[Quantity], name: str) -> list[Panel]:
    """Effort of a joint over its rate, with the box of both limits; none without the rate.

    Parameters
    ----------
    quantities : sequence of Quantity
        The efforts and their rates among others, of all joints.
    name : str
        Of the joint.

    Returns
    -------
    list of Panel
        One, or none.
    """
    by_name = {quantity.name: quantity for quantity in quantities}
    both = [by_name[each] for each in _PORTRAIT]
    j = both[0].owners.index(name)
    Q, Qd = (quantity.values[:, j] for quantity in both)
    if np.isnan(Q + Qd).all():
        return []
    effort, rate = (labels_of(quantity)[j] for quantity in both)
    exceeding = {
        item.sample
        for quantity in both
        for item in quantity.violations()
        if item.joint_name == name
    }
    return [
        Panel(
            f'{effort.name} over its rate',
            name,
            f'{rate.symbol} [{rate.unit}]',
            f'{effort.symbol} [{effort.unit}]',
            (Curve('', Qd, Q),),
            x_limits=Range.of(both[1], j),
            y_limits=Range.of(both[0], j),
            marks=tuple((float(Qd[i]), float(Q[i])) for i in sorted(exceeding)),
            notes=tuple(
                f'{label.symbol}: {_limit_note(quantity, j, label.unit)}'
                for label, quantity in zip((effort, rate), both)
            ),
            is_portrait=True,
        )
    ]


def motor_panels(
    results: Samples, quantities: Sequence[Quantity]
) -> dict[str, list[Panel]]:
    """Deflection of every joint that has one and quantities of its motors, by the joint.

    Parameters
    ----------
    results : Samples
        With motors.
    quantities : sequence of Quantity
        Those of the motors among others.

    Returns
    -------
    dict of str to list of Panel
        Empty lists for joints without motors; empty without motors.
    """
    of_motors = [each for each in quantities if each.of_motors]
    sprung = [
        replace(each, values=np.where(np.any(each.values, axis=0), each.values, np.nan))
        for each in quantities
        if each.kind == 'deflection'
    ]  # without the zeros of rigid joints
    times = results.times
    rows = {name: panels_over_time(times, sprung, name) for name in results.joint_names}
    for motor, joint in zip(results.motor_names, results.motor_joints):
        rows[joint] += panels_over_time(times, of_motors, motor)
    return rows


def energy_panels(model: RobotModel, results: Samples) -> list[Panel]:
    """Energies of a robot along a motion, and the powers that change them.

    The power of the joints less the rate of both energies is what friction takes, and what the
    robot gives to what it touches.

    Parameters
    ----------
    model : RobotModel
    results : Samples

    Returns
    -------
    list of Panel
        Two; none if the results do not hold accelerations and efforts of a sample.
    """
    if results.motion.shape[1] < 3 or results.effort.shape[1] < 1:
        return []
    motion, effort = results.motion[:, :3], results.effort[:, 0]
    is_known = np.isfinite(motion.sum(axis=(1, 2)) + effort.sum(axis=1))
    if not is_known.any():
        return []
    T, U = np.full((2, len(motion), 2), np.nan)
    T[is_known] = kinetic_energy(model, motion[is_known])
    U[is_known] = potential_energy(model, motion[is_known, :2])
    total, power = T + U, (motion[:, 1] * effort).sum(axis=1)
    other = power - total[:, 1]
    energies = {'kinetic T': T[:, 0], 'potential U': U[:, 0], 'sum': total[:, 0]}
    powers = {'joints q′ᵀQ': power, 'd/dt (T + U)': total[:, 1], 'difference': other}
    low, high = (number(extreme(total[:, 0])) for extreme in (np.nanmin, np.nanmax))
    notes = (
        f'kinetic {_peak_note(T[:, 0], "J")}; sum from {low} to {high} J',
        f'joints {_peak_note(power, "W")}; difference {_peak_note(other, "W", 2)}',
    )
    return [
        Panel(title, '', TIME_LABEL, label, _curves(results.times, series), notes=(note,))
        for title, label, series, note in zip(
            ('Energy', 'Power balance'),
            ('energy [J]', 'power [W]'),
            (energies, powers),
            notes,
        )
    ]


def _curves(x: Array, series: Mapping[str, Array]) -> tuple[Curve, ...]:
    """Curves over the same x, with their names."""
    return tuple(Curve(name, x, y) for name, y in series.items())


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
    rows: list[ArrayLike] = []
    for item, t in zip(comparison.stretches, comparison.times):
        measured = np.where(item.is_used[:, joint], item.measured[:, joint], np.nan)
        rows.append(np.stack([t, measured, item.computed[:, joint]], axis=1))
        rows.append([[t[-1], np.nan, np.nan]])
    times, measured, computed = np.concatenate(rows).T
    rest = measured - computed
    if np.isnan(rest).all():
        return []
    name, unit = comparison.joint_names[joint], comparison.units[joint]
    effort = 'Force' if unit == 'N' else 'Torque'
    each = (
        comparison.measured,
        comparison.residual,
        comparison.scale,
        comparison.correlation,
    )
    rms, missed, scale, alike = (number(values[joint], 3) for values in each)
    return [
        Panel(
            f'{effort}, measured and computed',
            name,
            TIME_LABEL,
            f'Q [{unit}]',
            _curves(times, {'measured': measured, 'computed': computed}),
            notes=(f'RMS {rms} {unit}; {scale} × computed, correlation {alike}',),
        ),
        Panel(
            'Difference',
            name,
            TIME_LABEL,
            f'difference [{unit}]',
            (Curve('', times, rest),),
            notes=(f'RMS {missed} {unit}; {_peak_note(rest, unit)}',),
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
    # It takes long to import.
    from scipy.signal import periodogram

    parts = comparison.stretches
    step = min(float(item.times[1] - item.times[0]) for item in parts)
    size = round(max(float(item.times[-1] - item.times[0]) for item in parts) / step) + 1
    power, count = np.zeros(size // 2 + 1), 0
    for item in parts:
        rest = np.where(item.is_used, item.measured - item.computed, 0.0)[:, joint]
        span = float(item.times[-1] - item.times[0])
        even = item.times[0] + step * np.arange(round(span / step) + 1)
        rest = np.interp(even, item.times, rest)
        frequencies, of_part = periodogram(
            rest, 1.0 / step, 'hann', size, False, scaling='spectrum'
        )
        power += len(rest) * of_part
        count += len(rest)
    frequencies, amplitude = frequencies[1:], np.sqrt(2.0 * power[1:] / count)
    unit = comparison.units[joint]
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


def _peak_note(values: Array, unit: str, digits: int = 4) -> str:
    """Line on the largest magnitude of some values."""
    return f'at most {number(float(np.nanmax(np.abs(values))), digits)} {unit}'
