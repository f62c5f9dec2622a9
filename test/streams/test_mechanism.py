"""States of all joints of a robot with closed loops: as measured, or else as asked for."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.errors import MotionError
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.model import Coupling
from hodyn_ros.streams.measured import MechanismStates

SECOND = 10**9
MOTION = np.array([[0.1, -0.2], [1.0, 0.5], [-2.0, 1.0]])


@pytest.fixture
def mechanism():
    made = MechanismStates()
    made.use(RobotModel.from_urdf(robots.FIVE_BAR))
    return made


def test_motions_are_shown_while_nothing_is_measured(mechanism):
    model = RobotModel.from_urdf(robots.FIVE_BAR)
    mechanism.take(['left', 'right'], np.zeros((1, 2)), 7 * SECOND)
    mechanism.use(model)  # a payload changes nothing
    expected = complete_motion(model, MOTION[:2])
    for seconds, timeout, is_shown in (
        (7.5, 0.5, False),
        (60.0, 0.0, False),
        (7.6, 0.5, True),
        (3.0, 0.5, True),  # the clock jumped
    ):
        found = mechanism.asked(MOTION, round(seconds * SECOND), timeout)
        np.testing.assert_array_equal(found, expected if is_shown else None)
    mechanism.use(RobotModel.from_urdf('two_link'))  # without loops
    assert mechanism.joint_names == () and mechanism.asked(MOTION, 0, 0.5) is None
    assert mechanism.take(['left', 'right'], np.zeros((1, 2)), 0) is None


def test_of_several_solutions_that_near_the_one_before_is_found(mechanism):
    parabola = Coupling('parabola', 'elbow', 'shoulder', (0.0, 0.0, 1.0))
    tree = RobotModel.from_urdf('two_link')
    mechanism.use(tree.with_loops([parabola], ['shoulder'], {'shoulder': 1.0}))
    for name, value, expected in (
        ('elbow', 0.49, 0.7),
        ('shoulder', -0.5, -0.5),
        ('elbow', 0.36, -0.6),
    ):
        found = mechanism.take([name], np.array([[value]]), 0)
        np.testing.assert_allclose(found, [[expected, expected**2]], atol=1e-9)


def test_what_is_not_measured_is_nan(mechanism):
    rows = np.array([[0.1, np.nan, 0.2], [1.0, 2.0, np.nan]])
    state = mechanism.take(['left', 'left_elbow', 'right'], rows, 0)
    assert state.shape == (1, 4)
    np.testing.assert_array_equal(state[0, [0, 2]], [0.1, 0.2])
    assert [*mechanism.deviations] == ['left', 'right']
    with pytest.raises(MotionError, match='do not determine'):
        mechanism.take(['left', 'right'], np.array([[0.1, np.nan]]), 0)
    assert mechanism.take(['left'], np.array([[np.nan]]), 0) is None
