"""The place where a robot stopped: panels of what was commanded and measured there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import MOTION_NAMES
from hodyn_ros.plotting.labels import label_of, number
from hodyn_ros.plotting.panels import TIME_LABEL, Curve, Panel, Range

if TYPE_CHECKING:
    from hodyn_ros.analysis.recorded_signals import Signal
    from hodyn_ros.analysis.stop_analysis import StopAnalysis, StopCause

_AROUND = 15  # periods that are shown before and behind
_EFFORTS = ('effort', 'effort_dot', 'position', 'velocity')
Flags = NDArray[np.bool_]
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
    panels = []
    for quantity in _EFFORTS if of_efforts else MOTION_NAMES[:4]:
        label = label_of(quantity, model.joint_types[j] == 'prismatic')
        found = [
            excess
            for excess in cause.excesses
            if (excess.joint_name, excess.quantity) == (model.joint_names[j], quantity)
        ]
        curves, limits = [], Range()
        for signal in analysis.signals:
            since = signal.times - cause.time
            rows = (since >= -margin) & (since <= cause.end - cause.time + margin)
            if signal.name == quantity and _is_clear(signal, j, rows):
                curves.append(
                    Curve(signal.source, signal.times[rows], signal.values[rows, j])
                )
                limits = Range(float(signal.lower[j]), float(signal.upper[j]))
        if curves:
            panel = Panel(
                label.title,
                model.joint_names[j],
                TIME_LABEL,
                f'{label.symbol} [{label.unit}]',
                tuple(curves),
                y_limits=limits,
                marks=tuple((excess.time, excess.value) for excess in found),
                notes=tuple(
                    f'{excess.source}: {number(excess.value)} {label.unit}, '
                    f'{number(excess.factor, 3)} × the limit'
                    for excess in found[:1]
                ),
            )
            panels.append(panel)
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
