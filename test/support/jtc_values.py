"""The motion of joint_trajectory_controller through waypoints, from its polynomials."""

import numpy as np

from hodyn_ros.trajectory.jtc import jtc_expansions
from hodyn_ros.trajectory.piecewise import PiecewiseMotion


def evaluate_jtc(waypoints, t):
    """Positions, velocities and accelerations (..., 3, n) at some times.

    At the very end it is the last waypoint, with zeros for what that does not give.
    """
    expansions = jtc_expansions(
        waypoints.times, waypoints.positions, waypoints.velocities, waypoints.accelerations
    )
    motion = PiecewiseMotion(waypoints.times, expansions, 0)(t, 2)
    motion[np.asarray(t) == waypoints.times[-1]] = np.nan_to_num(
        [waypoints.positions[-1], waypoints.velocities[-1], waypoints.accelerations[-1]]
    )
    return motion
