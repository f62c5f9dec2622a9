"""Waypoints by the rules of joint_trajectory_controller: names, gaps and interpolation."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.planning import (
    Waypoints,
    deviation_from_jtc,
    jtc_remarks,
)
from hodyn_ros.trajectory.spline import fit_spline

NAMES = ('shoulder', 'elbow', 'wrist')
NAN = np.nan


def random_waypoints(seed=0, N=6, velocities=1.0, accelerations=1.0):
    """Waypoints of which the given shares have velocities and accelerations."""
    rng = np.random.default_rng(seed)
    rows = []
    for share in (velocities, accelerations):
        values = rng.standard_normal((N, 3))
        values[rng.random(N) >= share] = NAN
        rows.append(values)
    times = 0.5 + np.cumsum(rng.uniform(0.2, 1.5, N))
    return Waypoints(NAMES, times, rng.uniform(-2.0, 2.0, (N, 3)), *rows)


# Names


# What a point may hold


def test_waypoints_are_immutable_copies():
    positions = np.zeros((2, 3))
    waypoints = Waypoints(NAMES, [0, 1], positions)
    positions[0] = 1.0
    np.testing.assert_array_equal(waypoints.positions, 0.0)
    with pytest.raises(FrozenInstanceError):
        waypoints.times = np.zeros(2)
    with pytest.raises(ValueError, match='read-only'):
        waypoints.velocities[0] = 0.0


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (((), [0, 1], np.zeros((2, 0))), 'joint_names is empty'),
        ((NAMES, [], np.zeros((0, 3))), 'are no waypoints, expected at least one'),
        ((NAMES, [0, 1], np.zeros(3)), r'shape \(3,\), expected \(2, 3\)'),
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


# Deviation


def test_spline_of_other_waypoints_is_refused():
    waypoints = random_waypoints()
    with pytest.raises(TrajectoryError, match='spline has 1 joints, the waypoints have 3'):
        deviation_from_jtc(fit_spline([0, 1], [[0], [1]]), waypoints)
    with pytest.raises(TrajectoryError, match='the waypoints have other times'):
        deviation_from_jtc(fit_spline([0, 1], np.zeros((2, 3))), waypoints)


# Remarks


def test_velocity_at_the_end_is_remarked_with_its_joints():
    velocities = np.zeros((2, 3))
    velocities[1, 1] = -0.25
    (remark,) = jtc_remarks(Waypoints(NAMES, [0, 1], np.zeros((2, 3)), velocities))
    assert 'elbow (-0.25)' in remark
    assert 'shoulder' not in remark


def test_accelerations_without_velocities_are_remarked_with_their_waypoints():
    accelerations = np.full((4, 3), NAN)
    accelerations[1:3] = 0.5
    (remark,) = jtc_remarks(
        Waypoints(NAMES, range(4), np.zeros((4, 3)), None, accelerations)
    )
    assert remark.startswith('Waypoints 1 and 2 have accelerations')
