"""Limits and motions of the Panda, and how far a motion exceeds limits."""

import numpy as np
from support.records import changed

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.model import MotionLimits, find_violations
from hodyn_ros.resources import share_file
from hodyn_ros.trajectory import fit_spline

PANDA = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
FRANKA = {
    name: {'acceleration': acceleration, 'jerk': 500.0 * acceleration, 'effort_dot': 1000.0}
    for name, acceleration in zip(
        PANDA.joint_names, (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
    )
}


def unlimited(n, **given):
    free = np.full(n, np.inf)
    bounds = MotionLimits(-free, *[free] * 9)
    return changed(bounds, **{k: np.broadcast_to(value, n) for k, value in given.items()})


def jittery_panda(waypoints, seed=1):
    """A smooth motion of 20 s with waypoints that are a millionth beside it."""
    t = np.linspace(0.0, 20.0, waypoints)
    shape = 0.3 * np.sin(t) * np.sin(np.pi * t / 20.0) ** 6
    start = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.5])
    noise = 1e-6 * np.random.default_rng(seed).normal(size=(waypoints, 7))
    return fit_spline(t, start + shape[:, None] + noise)


def excess(limits, motion, knots, per_segment):
    """Largest excess of a limit, relative to it, at odd places of all segments."""
    places = (np.arange(per_segment) + 0.37) / per_segment
    t = (knots[:-1, None] + np.diff(knots)[:, None] * places).ravel()
    worst = 0.0
    for part in np.array_split(t, 1 + len(t) // 20_000):
        played = motion(part)
        found = find_violations(PANDA, limits, played, inverse_dynamics(PANDA, played))
        worst = max([worst, *(abs((v.value - v.limit) / v.limit) for v in found)])
    return worst
