"""The guard of a control loop: bounds of what is measured and wanted, and the motion to rest."""

import numpy as np
import pytest
from support.robots import TWO_LINK

from hodyn_ros import RobotModel
from hodyn_ros.errors import MotionError
from hodyn_ros.streams import Guard

LIMIT, SPEED = 2.0, 3.0  # of the robot description


def made(**options):
    model = RobotModel.from_urdf(TWO_LINK)
    bounds = {'position_margin': 0.05, 'velocity_margin': 0.2, 'stop_duration': 0.5}
    errors, torques = np.array([0.2, 0.1]), np.array([5.0, np.inf])
    return Guard(model, model.limits, errors, torques, **bounds, **options)


@pytest.fixture
def guard():
    return made()


def test_a_stop_uses_the_room_there_is_and_no_impossible_velocity(guard):
    for q, speed, duration in ((1.0, 2.5, 0.5), (1.8, 2.5, 0.16), (-1.8, -2.5, 0.16)):
        motion = guard.stopping(np.array([[q, 0.0], [speed, 0.0]]))
        assert motion.duration == pytest.approx(duration)
        assert abs(motion(motion.end_time)[0, 0]) <= LIMIT + 1e-12
    beyond = guard.stopping(np.array([[LIMIT + 0.1, 0.0], [1.0, 0.0]]))
    assert beyond.duration == pytest.approx(0.05)  # a tenth of stop_duration
    glitch = guard.stopping(np.array([[0.0, 0.0], [1e4, -1.0]]))
    np.testing.assert_allclose(glitch(0.0)[1], [SPEED, -1.0])


def test_what_is_not_a_number_is_beyond_every_bound(guard):
    state, error = np.zeros((2, 2)), np.zeros(2)
    assert guard.violation(state, error) == guard.unrest(state) == ''
    assert 'tracking error of elbow is nan' in guard.violation(
        state, np.array([0.0, np.nan])
    )
    state[1, 0] = np.nan
    assert 'velocity of shoulder is nan' in guard.violation(state, error)
    assert 'shoulder still moves at nan' in guard.unrest(state)


def test_a_bound_may_be_reached_and_not_exceeded(guard):
    state, none = np.zeros((2, 2)), np.zeros(2)
    state[0, 1] = LIMIT + 0.05
    assert guard.violation(state, none) == ''
    state[0, 1] += 0.01
    assert 'position of elbow is 2.06, expected -2.05 to 2.05' in guard.violation(
        state, none
    )


def test_references_beyond_a_limit_are_refused_unless_they_may(guard):
    motion = np.zeros((5, 2))
    motion[1, 1] = SPEED + 0.1
    with pytest.raises(MotionError, match='velocity of elbow is 3.1, its limit 3'):
        guard.check_reference(motion)
    made(allow_limit_violations=True).check_reference(motion)


def test_external_torques_are_bounded(guard):
    state, none = np.zeros((2, 2)), np.zeros(2)
    assert guard.violation(state, none, np.array([4.9, 1e3])) == ''
    assert 'external torque' in guard.violation(state, none, np.array([-5.1, 0.0]))
