"""Pictures before they are drawn: curves, limits and marks, for Matplotlib and for the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.analysis.energy import kinetic_energy, potential_energy
from hodyn_ros.analysis.limits import MotionLimits, Violation
from hodyn_ros.plotting.quantities import (
    Quantity,
    effort_quantity,
    limited_quantity,
    motion_quantity,
    number,
)
from hodyn_ros.plotting.source import Source

Array = NDArray[np.float64]

TIME_LABEL = 'time [s]'

# A limit farther from zero than this many times the curve is left out of the range that is shown:
# the curve would be a flat line.
_FARTHEST_LIMIT = 2.5


class Range(NamedTuple):
    """Limits along one axis; infinite where there is none."""

    lower: float = -np.inf
    upper: float = np.inf


class Curve(NamedTuple):
    """A line of a picture."""

    name: str
    """For the legend; empty if the picture has one curve only."""
    x: Array
    y: Array


class Panel(NamedTuple):
    """One picture."""

    title: str
    """Quantity that is shown, such as ``Torque Q``."""
    subject: str
    """Name of the joint or motor; empty for the whole robot."""
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_limits: Range = Range()
    y_limits: Range = Range()
    marks: tuple[tuple[float, float], ...] = ()
    """Points (x, y) where a limit is exceeded most."""
    note: str = ''
    """Extremes, and the share of the limit that they use."""
    is_portrait: bool = False
    """Whether one quantity is drawn over another instead of time."""

    @property
    def x_range(self) -> tuple[float, float]:
        """Range of the horizontal axis."""
        if self.is_portrait:
            return shown_range([curve.x for curve in self.curves], self.x_limits)
        first = min(float(curve.x[0]) for curve in self.curves)
        last = max(float(curve.x[-1]) for curve in self.curves)
        return (first, last) if last > first else (first - 0.5, first + 0.5)

    @property
    def y_range(self) -> tuple[float, float]:
        """Range of the vertical axis."""
        return shown_range([curve.y for curve in self.curves], self.y_limits)


def shown_range(curves: Iterable[Array], limits: Range) -> tuple[float, float]:
    """Range of an axis with all of the curves, and the limits unless they are far away."""
    arrays = list(curves)
    low = min(float(np.nanmin(array)) for array in arrays)
    high = max(float(np.nanmax(array)) for array in arrays)
    reach = _FARTHEST_LIMIT * max(abs(low), abs(high))
    for limit in limits:
        if abs(limit) <= reach:
            low, high = min(low, limit), max(high, limit)
    # Noise of rounding around a constant is not worth a picture.
    least = 1e-9 * max(abs(low), abs(high))
    margin = 0.06 * (high - low) if high - low > least else max(0.1 * abs(high), 1e-3)
    return low - margin, high + margin


def joint_panels(
    source: Source, joint: int, limits: MotionLimits, violations: Sequence[Violation] = ()
) -> list[Panel]:
    """All orders of the motion and of the effort of one joint over time."""
    return motion_panels(source, joint, limits, violations) + effort_panels(
        source, joint, limits, violations
    )


def motion_panels(
    source: Source, joint: int, limits: MotionLimits, violations: Sequence[Violation] = ()
) -> list[Panel]:
    """All orders of the motion of one joint over time."""
    ranges = [
        Range(limits.lower[joint], limits.upper[joint]),
        *(_symmetric(a[joint]) for a in (limits.velocity, limits.acceleration, limits.jerk)),
    ]
    names = ['position', 'velocity', 'acceleration', 'jerk']
    return [
        _over_time(
            source,
            motion_quantity(k, source.is_linear(joint)),
            source.model.joint_names[joint],
            source.motion[:, k, joint],
            ranges[k] if k < len(ranges) else Range(),
            _of(violations, names[k]) if k < len(names) else (),
        )
        for k in range(source.motion.shape[1])
        if _is_known(source.motion[:, k, joint])
    ]


def effort_panels(
    source: Source, joint: int, limits: MotionLimits, violations: Sequence[Violation] = ()
) -> list[Panel]:
    """All orders of the effort of one joint over time."""
    ranges = [_symmetric(limits.effort[joint]), _symmetric(limits.effort_dot[joint])]
    names = ['effort', 'effort_dot']
    return [
        _over_time(
            source,
            effort_quantity(k, source.is_linear(joint)),
            source.model.joint_names[joint],
            source.effort[:, k, joint],
            ranges[k] if k < len(ranges) else Range(),
            _of(violations, names[k]) if k < len(names) else (),
        )
        for k in range(source.effort.shape[1])
        if _is_known(source.effort[:, k, joint])
    ]


def portrait_panel(
    source: Source, joint: int, limits: MotionLimits, violations: Sequence[Violation] = ()
) -> Panel | None:
    """Effort of a joint over its rate, with the box of both limits; None without the rate."""
    if source.effort.shape[1] < 2 or not _is_known(source.effort[:, :2, joint].sum(axis=1)):
        return None
    name, is_linear = source.model.joint_names[joint], source.is_linear(joint)
    effort, rate = effort_quantity(0, is_linear), effort_quantity(1, is_linear)
    Q, Qd = source.effort[:, 0, joint], source.effort[:, 1, joint]
    box = [_symmetric(limits.effort[joint]), _symmetric(limits.effort_dot[joint])]
    found = {
        violation.sample
        for violation in violations
        if violation.joint_name == name and violation.quantity in ('effort', 'effort_dot')
    }
    notes = [
        f'{quantity.symbol}: {_limit_note(values, limit, quantity.unit)}'
        for quantity, values, limit in ((effort, Q, box[0]), (rate, Qd, box[1]))
    ]
    return Panel(
        f'{effort.name} over its rate',
        name,
        f'{rate.symbol} [{rate.unit}]',
        f'{effort.symbol} [{effort.unit}]',
        (Curve('', Qd, Q),),
        box[1],
        box[0],
        tuple((float(Qd[i]), float(Q[i])) for i in sorted(found)),
        '; '.join(notes),
        is_portrait=True,
    )


def motor_panels(
    source: Source, limits: MotorLimits | None, violations: Sequence[Violation] = ()
) -> dict[str, list[Panel]]:
    """Deflection of every joint that has one and quantities of its motors, by the joint."""
    if source.motors is None:
        return {}
    joints = source.model.joint_names
    rows: dict[str, list[Panel]] = {name: [] for name in joints}
    deflection = source.motors.deflection
    if deflection.shape[1]:
        is_elastic = np.nan_to_num(deflection[:, 0]).any(axis=0)
        for joint in np.flatnonzero(is_elastic).tolist():
            panel = _over_time(
                source,
                limited_quantity('deflection', source.is_linear(joint)),
                joints[joint],
                deflection[:, 0, joint],
                _symmetric(_limit(limits, 'deflection', joint)),
                _of(violations, 'deflection'),
            )
            rows[joints[joint]].append(panel)
    for motor in range(len(source.motor_names)):
        rows[source.motor_joints[motor]] += _one_motor(source, motor, limits, violations)
    return rows


def _one_motor(
    source: Source, motor: int, limits: MotorLimits | None, violations: Sequence[Violation]
) -> list[Panel]:
    if source.motors is None:
        return []
    name = source.motor_names[motor]
    is_linear = source.moves_linearly(name)
    position, torque = source.motors.position, source.motors.torque
    series = [
        ('motor_position', position, 0, np.inf),
        ('motor_velocity', position, 1, _limit(limits, 'motor_velocity', motor)),
        ('motor_torque', torque, 0, _limit(limits, 'motor_torque', motor)),
        ('motor_torque_rate', torque, 1, _limit(limits, 'motor_torque_rate', motor)),
    ]
    return [
        _over_time(
            source,
            limited_quantity(quantity, is_linear),
            name,
            values[:, order, motor],
            _symmetric(limit),
            _of(violations, quantity),
        )
        for quantity, values, order, limit in series
        if values.shape[1] > order and _is_known(values[:, order, motor])
    ]


class EnergyBalance(NamedTuple):
    """Energies of a robot along a motion and the powers that change them, each of shape (N,)."""

    kinetic: Array
    """[J]"""
    potential: Array
    """[J]"""
    power: Array
    """Of all joints, qd^T Q [W]."""
    rate: Array
    """d/dt of the sum of both energies [W]."""

    @property
    def other(self) -> Array:
        """What friction takes and what acts on the robot from outside takes [W]."""
        return self.power - self.rate


def energy_balance(source: Source) -> EnergyBalance | None:
    """Energies and powers; None if the results do not hold what they need."""
    if source.motion.shape[1] < 3 or source.effort.shape[1] < 1:
        return None
    motion = source.motion[:, :3]
    is_known = np.isfinite(motion.sum(axis=(1, 2)) + source.effort[:, 0].sum(axis=1))
    if not is_known.any():
        return None
    T, U = (np.full((len(motion), 2), np.nan) for _ in range(2))
    T[is_known] = kinetic_energy(source.model, motion[is_known])
    U[is_known] = potential_energy(source.model, motion[is_known, :2])
    power = (source.motion[:, 1] * source.effort[:, 0]).sum(axis=1)
    return EnergyBalance(T[:, 0], U[:, 0], power, T[:, 1] + U[:, 1])


def energy_panels(source: Source, balance: EnergyBalance) -> list[Panel]:
    """Energies and power balance of the robot over time."""
    t = source.times
    total = balance.kinetic + balance.potential
    energies = (
        Curve('kinetic T', t, balance.kinetic),
        Curve('potential U', t, balance.potential),
        Curve('sum', t, total),
    )
    powers = (
        Curve('joints q′ᵀQ', t, balance.power),
        Curve('d/dt (T + U)', t, balance.rate),
        Curve('difference', t, balance.other),
    )
    largest = float(np.nanmax(np.abs(balance.power)))
    difference = float(np.nanmax(np.abs(balance.other)))
    return [
        Panel(
            'Energy', '', TIME_LABEL, 'energy [J]', energies,
            note=f'kinetic at most {number(np.nanmax(balance.kinetic))} J; sum from '
            f'{number(np.nanmin(total))} to {number(np.nanmax(total))} J',
        ),
        Panel(
            'Power balance', '', TIME_LABEL, 'power [W]', powers,
            note=f'joints at most {number(largest)} W; difference at most '
            f'{number(difference, 2)} W',
        ),
    ]  # fmt: skip


def peak_share(values: Array, limits: Range) -> float:
    """Share of a limit that the worst value uses: 1 on the limit, NaN if there is none.

    Between a lower and an upper limit it is measured from the middle.
    """
    lower, upper = limits
    if np.isfinite(lower) and np.isfinite(upper):
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        distance = float(np.nanmax(np.abs(values - middle)))
        return distance / half if half > 0.0 else (np.inf if distance > 0.0 else 1.0)
    return np.nan


def _over_time(
    source: Source,
    quantity: Quantity,
    subject: str,
    values: Array,
    limits: Range,
    violations: Iterable[Violation],
) -> Panel:
    marks = tuple(
        (float(source.times[violation.sample]), violation.value)
        for violation in violations
        if violation.joint_name == subject
    )
    return Panel(
        quantity.title,
        subject,
        TIME_LABEL,
        f'{quantity.symbol or quantity.name} [{quantity.unit}]',
        (Curve('', source.times, values),),
        y_limits=limits,
        marks=marks,
        note=_note(values, limits, quantity.unit),
    )


def _note(values: Array, limits: Range, unit: str) -> str:
    if limits.lower == -limits.upper:
        return _limit_note(values, limits, unit)
    text = f'{number(np.nanmin(values))} to {number(np.nanmax(values))} {unit}'
    if not np.isfinite(limits).any():
        return text
    low, high = (number(limit) if np.isfinite(limit) else 'none' for limit in limits)
    return f'{text}; limits {low} to {high}'


def _limit_note(values: Array, limits: Range, unit: str) -> str:
    peak = float(np.nanmax(np.abs(values)))
    text = f'at most {number(peak)} {unit}'
    if not np.isfinite(limits.upper):
        return text
    return f'{text}, {percent(peak_share(values, limits))} of ±{number(limits.upper)}'


def percent(share: float) -> str:
    """Write a share, so that what exceeds a limit reads as more than 100 %."""
    if 1.0 < share < 1.0095:
        return f'{100.0 * share:.{1 if share > 1.0009 else 4}f} %'
    if share < 0.095:
        return f'{100.0 * share:.2g} %'
    return f'{100.0 * share:.0f} %'


def _symmetric(limit: float) -> Range:
    return Range(-float(limit), float(limit))


def _of(violations: Iterable[Violation], quantity: str) -> tuple[Violation, ...]:
    return tuple(violation for violation in violations if violation.quantity == quantity)


def _limit(limits: MotorLimits | None, quantity: str, index: int) -> float:
    return np.inf if limits is None else float(getattr(limits, quantity)[index])


def _is_known(values: Array) -> bool:
    return not np.isnan(values).all()
