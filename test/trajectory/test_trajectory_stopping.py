"""Stopping from any state."""

import numpy as np
import pytest

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory import stop_motion


def test_robot_at_rest_stays_where_it_is():
    state = np.zeros((5, 2))
    state[0] = 0.3, -1.0
    motion = stop_motion(state, 0.5)
    np.testing.assert_array_equal(
        motion(np.linspace(0.0, 0.5, 20)), np.tile(state, (20, 1, 1))
    )


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ((np.zeros((4, 2)), 1.0), r'state has shape \(4, 2\), expected \(5, n\)'),
        ((np.full((5, 2), np.nan), 1.0), 'state holds nan at'),
        ((np.zeros((5, 2)), 0.0), 'duration is 0.0, expected a finite number above 0'),
        ((np.zeros((5, 2)), '1'), "duration is '1', expected a finite number"),
        ((np.ma.masked_values(np.eye(5), 1.0), 1.0), 'state is a masked array'),
        ((np.zeros((5, 2)), 1.0, np.nan), 'start_time is nan'),
        ((np.ones((5, 2)), 1e-200), 'must increase strictly|double precision'),
    ],
)
def test_impossible_stops_are_refused_with_the_reason(arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        stop_motion(*arguments)
