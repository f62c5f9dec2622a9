"""The place where a robot stopped: panels of what was commanded and measured there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import MOTION_NAMES
from hodyn_ros.plotting.labels import labels_of, number
from hodyn_ros.plotting.panels import TIME_LABEL, Curve, Panel, Range
from hodyn_ros.typing import Flags

if TYPE_CHECKING:
    from hodyn_ros.analysis.recorded_signals import Signal
    from hodyn_ros.analysis.stop_analysis import StopAnalysis, StopCause

_AROUND = 15  # periods that are shown before and behind
_EFFORTS = ('effort', 'effort_dot', 'position', 'velocity')
_ALWAYS = ('position', 'velocity', 'effort')  # of a measured signal, whatever its noise


def stop_panels(model: RobotModel, analysis: StopAnalysis, cause: StopCause) -> list[Panel]:
    """Quantities around a cause, of the joint that exceeds most: commanded, measured, computed.

    Parameters
    ----------
    model : RobotModel
    analysis : StopAnalysis
    cause : StopCause
        One of its causes.

    Returns
    -------
    list of Panel
        Efforts, position and velocity if the worst excess is one of efforts, else position
        to jerk; without those of which nothing is known there.
    """
    j = _joint(model, analysis, cause)
    margin = _AROUND * analysis.period + 0.2 * (cause.end - cause.time)
    of_efforts = bool(cause.excesses) and cause.excesses[0].quantity in _EFFORTS[:2]
    begin, end = cause.time - margin, cause.end + margin
    panels = []
    for quantity in _EFFORTS if of_efforts else MOTION_NAMES[:4]:
        around = [
            (signal, (signal.times >= begin) & (signal.times <= end))
            for signal in analysis.signals
            if signal.name == quantity
        ]
        clear = [(signal, rows) for signal, rows in around if _is_clear(signal, j, rows)]
        if not clear:
            continue
        name, label = model.joint_names[j], labels_of(clear[0][0])[j]
        found = [
            excess
            for excess in cause.excesses
            if (excess.joint_name, excess.quantity) == (name, quantity)
        ]
        panels.append(
            Panel(
                label.title,
                name,
                TIME_LABEL,
                f'{label.symbol} [{label.unit}]',
                tuple(
                    Curve(signal.source, signal.times[rows], signal.values[rows, j])
                    for signal, rows in clear
                ),
                y_limits=Range.of(clear[-1][0], j),
                marks=tuple((excess.time, excess.value) for excess in found),
                notes=tuple(
                    f'{excess.source}: {number(excess.value)} {label.unit}, '
                    f'{number(excess.factor, 3)} × the limit'
                    for excess in found[:1]
                ),
            )
        )
    return panels


def _joint(model: RobotModel, analysis: StopAnalysis, cause: StopCause) -> int:
    """Index of the joint that exceeds most, or moves fastest there."""
    if cause.excesses:
        return model.joint_names.index(cause.excesses[0].joint_name)
    signal = next(signal for signal in analysis.signals if signal.name == 'velocity')
    row = int(np.abs(signal.times - cause.end).argmin())
    return int(np.nan_to_num(np.abs(signal.values[row])).argmax())


def _is_clear(signal: Signal, j: int, rows: Flags) -> bool:
    """Whether a signal is known in some rows, and if it is measured, not only noise."""
    known = rows & np.isfinite(signal.values[:, j])
    if signal.source != 'measured' or signal.name in _ALWAYS:
        return bool(known.any())
    return bool((signal.error[known, j] < 0.5 * signal.upper[j]).any())
