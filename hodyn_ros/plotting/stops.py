"""The place where a robot stopped: panels of what was commanded and measured there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.model.robot import RobotModel
from hodyn_ros.plotting.labels import label_of, number
from hodyn_ros.plotting.panels import TIME_LABEL, Curve, Panel
from hodyn_ros.plotting.series import Range

if TYPE_CHECKING:
    from hodyn_ros.analysis.stops import Signal, StopAnalysis, StopCause

_AROUND = 15  # periods that are shown before and behind
_MOTION = ('position', 'velocity', 'acceleration', 'jerk')
_EFFORTS = ('effort', 'effort_dot', 'position', 'velocity')
_ALWAYS = ('position', 'velocity', 'effort')  # of a measured signal, whatever its noise


def stop_panels(analysis: StopAnalysis, model: RobotModel, cause: StopCause) -> list[Panel]:
    """Quantities around a cause, of the joint that exceeds most: commanded, measured, computed."""
    j = _joint(analysis, model, cause)
    name, margin = model.joint_names[j], _AROUND * analysis.period
    margin += 0.2 * (cause.end - cause.time)
    window = cause.time - margin, cause.end + margin
    of_efforts = bool(cause.excesses) and cause.excesses[0].quantity in _EFFORTS[:2]
    panels = []
    for quantity in _EFFORTS if of_efforts else _MOTION:
        label = label_of(quantity, model.joint_types[j] == 'prismatic')
        same = [signal for signal in analysis.signals if signal.quantity == quantity]
        curves = []
        for signal in same:
            rows = (signal.times >= window[0]) & (signal.times <= window[1])
            if _shows(signal, j, rows):
                curves.append(Curve(signal.source, signal.times[rows], signal.values[rows, j]))
        if not curves:
            continue
        found = [
            excess
            for excess in cause.excesses
            if (excess.joint_name, excess.quantity) == (name, quantity)
        ]
        notes = tuple(
            f'{excess.source}: {number(excess.value)} {label.unit}, {number(excess.factor, 3)} × '
            'the limit'
            for excess in found[:1]
        )
        panels.append(
            Panel(
                label.title,
                name,
                TIME_LABEL,
                f'{label.symbol} [{label.unit}]',
                tuple(curves),
                y_limits=Range(float(same[0].lower[j]), float(same[0].upper[j])),
                marks=tuple((excess.time, excess.value) for excess in found),
                notes=notes,
            )
        )
    return panels


def _joint(analysis: StopAnalysis, model: RobotModel, cause: StopCause) -> int:
    """Index of the joint that exceeds most, or moves fastest there."""
    if cause.excesses:
        return model.joint_names.index(cause.excesses[0].joint_name)
    signal = next(signal for signal in analysis.signals if signal.quantity == 'velocity')
    row = int(np.abs(signal.times - cause.end).argmin())
    return int(np.nan_to_num(np.abs(signal.values[row])).argmax())


def _shows(signal: Signal, j: int, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bool:
    """Whether a signal is known in some rows, and not only noise."""
    if np.isnan(signal.values[rows, j]).all():
        return False
    is_clear = float(np.median(signal.error[rows, j])) < 0.5 * float(signal.upper[j])
    return is_clear or signal.source != 'measured' or signal.quantity in _ALWAYS
