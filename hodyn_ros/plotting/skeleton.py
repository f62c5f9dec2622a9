"""The robot in motion: a skeleton from forward kinematics, for the report to draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.limits import MotionLimits
from hodyn_ros.kinematics.body import body_poses
from hodyn_ros.kinematics.joints import body_coordinates
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.plotting.source import Source

Array = NDArray[np.float64]

_MOST_FRAMES = 200


def frames(source: Source, limits: MotionLimits) -> dict[str, Array | list[list[int]]]:
    """Positions of the skeleton at instants that are evenly spaced in time.

    Parameters
    ----------
    source : Source
    limits : MotionLimits

    Returns
    -------
    dict
        ``times`` (F,), ``points`` (F, P, 3) in the base frame [m], ``lines``: two of the points
        and the joint that moves what is between them (-1: none does), and ``shares`` (F, n): part
        of the limit that the effort of each joint uses, NaN where that is not known.
    """
    times = source.times
    instants = np.linspace(times[0], times[-1], min(_MOST_FRAMES, len(times)))
    rows = np.unique(np.searchsorted(times, instants).clip(0, len(times) - 1))
    points, lines = _skeleton(source.model, source.motion[rows, :1])
    with np.errstate(invalid='ignore', divide='ignore'):
        shares = np.abs(source.effort[rows, 0]) / limits.effort
    shares[:, ~np.isfinite(limits.effort)] = np.nan
    return {'times': times[rows], 'points': points, 'lines': lines, 'shares': shares}


def _skeleton(model: RobotModel, motion: Array) -> tuple[Array, list[list[int]]]:
    """Points (F, P, 3): the base, the origin of each body, and the far ends of the last ones."""
    poses = body_poses(model, body_coordinates(model, motion)[:, 0])
    moved_by = [-1, *model.coordinate.tolist()]
    points = [np.zeros((len(motion), 3)), *(pose[:, :3, 3] for pose in poses)]
    parents = model.parent.tolist()
    lines = []
    for body, parent in enumerate(parents):
        start = 0 if parent == BASE else 1 + parent
        lines.append([start, 1 + body, moved_by[start]])
    for body in sorted(set(range(model.n_bodies)) - set(parents)):
        ends = [frame.pose[:3, 3] for frame in model.links.values() if frame.body == body]
        far = max(ends, key=lambda end: float(end @ end), default=np.zeros(3))
        if far.any():
            lines.append([1 + body, len(points), moved_by[1 + body]])
            points.append(poses[body][:, :3, :3] @ far + poses[body][:, :3, 3])
    return np.stack(points, axis=1), lines
