"""Waypoints by the rules of joint_trajectory_controller: names, gaps and interpolation."""

import numpy as np
import pytest

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory import Waypoints, deviation_from_jtc, fit_spline

NAMES = ('shoulder', 'elbow', 'wrist')
NAN = np.nan


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ((NAMES, [], np.zeros((0, 3))), 'are no waypoints, expected at least one'),
        (
            (NAMES, [0, 1], [[0, 0, 0], [0, NAN, 0]]),
            r'positions\[1, 1\] is nan \(joint elbow\)',
        ),
        (
            (NAMES, [0, 1], [[0, 0, 0], [NAN] * 3], np.zeros((2, 3))),
            'Waypoint 1 has no positions, which every waypoint needs; velocities and acc',
        ),
        (
            (NAMES, [0, 1], np.zeros((2, 3)), [[0, 0, 0], [0, 0, NAN]]),
            r'velocities\[1, 2\] is nan \(joint wrist\); a row is either given',
        ),
        (
            (NAMES, [0, 1], np.zeros((2, 3)), None, [[0, np.inf, 0], [0, 0, 0]]),
            r'accelerations\[0, 1\] is inf \(joint elbow\)',
        ),
    ],
)
def test_unusable_points_are_refused_with_the_reason(arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        Waypoints(*arguments)


def test_spline_of_other_waypoints_is_refused():
    waypoints = Waypoints(NAMES, [0, 2], np.eye(2, 3))
    with pytest.raises(TrajectoryError, match='spline has 1 joints, the waypoints have 3'):
        deviation_from_jtc(fit_spline([0, 1], [[0], [1]]), waypoints)
    with pytest.raises(TrajectoryError, match='the waypoints have other times'):
        deviation_from_jtc(fit_spline([0, 1], np.zeros((2, 3))), waypoints)
