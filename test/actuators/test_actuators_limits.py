"""Limits of motors and springs, and where a motion exceeds them."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.actuators import (
    Actuators,
    MotorMotion,
    Qbmove,
    SeriesElastic,
    VariableStiffness,
    find_motor_violations,
    motor_limits,
    motor_motion,
    spring_deflections,
)
from hodyn_ros.errors import ActuatorError, JointNameError, MotionError

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
ACTUATORS = Actuators(
    MODEL,
    {
        'shoulder': VariableStiffness(Qbmove(a=6.7, k=0.2), 0.02),
        'elbow': SeriesElastic(100.0, 0.1),
    },
)
ELBOW = {'motor_velocity': 4.0, 'motor_torque': 6.0, 'motor_torque_rate': 70.0}
GIVEN = {
    'shoulder': {'motor_velocity': [2.0, 3.0], 'motor_torque': 5.0},
    'elbow': {**ELBOW, 'deflection': 0.1},
}
LIMITS = motor_limits(ACTUATORS, GIVEN)


def still(N=4):
    return MotorMotion(np.zeros((N, 3, 3)), np.zeros((N, 2, 3)), np.zeros((N, 3, 2)))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('quantity', 'field', 'order', 'column', 'name', 'limit'),
    [
        ('motor_velocity', 'position', 1, 1, 'shoulder_motor2', 3.0),
        ('motor_torque', 'torque', 0, 2, 'elbow', -6.0),
        ('motor_torque_rate', 'torque', 1, 2, 'elbow', 70.0),
        ('deflection', 'deflection', 0, 1, 'elbow', -0.1),
    ],
)
def test_worst_sample_is_reported(quantity, field, order, column, name, limit):
    motion = still()
    getattr(motion, field)[1:3, order, column] = 1.1 * limit, 1.2 * limit
    (found,) = find_motor_violations(ACTUATORS, LIMITS, motion)
    assert found == (quantity, name, 1.2 * limit, limit, 2)


def test_nothing_is_reported_on_the_limits_nor_where_there_are_none():
    motion = still()
    motion.position[:, 1] = [2.0, -3.0, 4.0 * (1.0 + 1e-12)]
    motion.position[:, [0, 2]] = motion.torque[:, 1, :2] = motion.deflection[:, 1:] = 1e6
    assert find_motor_violations(ACTUATORS, LIMITS, motion) == ()


MOTION = 0.1 * np.random.default_rng(8).normal(size=(4, 5, 2))
STIFFNESS = {'shoulder': [150.0, 20.0, -30.0]}


def test_limit_of_deflections_holds_for_each_of_the_two_springs_of_a_joint():
    """Their mean says nothing about springs that are stretched against each other."""
    motors = motor_motion(ACTUATORS, MOTION, stiffness=STIFFNESS)
    found = spring_deflections(ACTUATORS, motors)
    expected = motors.position - MOTION[:, :3][..., [0, 0, 1]]
    np.testing.assert_allclose(found, expected, atol=1e-13)
    limits = motor_limits(ACTUATORS, {'shoulder': {'deflection': 0.1}})
    assert np.abs(motors.deflection[:, 0, 0]).max() < 0.1
    (violation,) = find_motor_violations(ACTUATORS, limits, motors)
    assert abs(violation.value) == pytest.approx(np.abs(expected[:, 0, :2]).max())


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('field', 'value'), [('position', np.nan), ('torque', np.inf), ('deflection', np.nan)]
)
def test_motion_that_is_not_finite_is_refused(field, value):
    motion = still()
    getattr(motion, field)[2, 1, 0] = value
    with pytest.raises(MotionError, match=f'sample 2 the {field} .*{value}'):
        find_motor_violations(ACTUATORS, LIMITS, motion)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('limits', 'error', 'reason'),
    [
        ({'wrist': {}}, JointNameError, 'wrist'),
        ({'elbow': {'speed': 1.0}}, ActuatorError, "is 'speed', expected one of"),
        ({'elbow': {'motor_torque': np.nan}}, ActuatorError, 'number above 0'),
        ({'shoulder': {'deflection': [1.0, 2.0]}}, ActuatorError, 'deflection is'),
    ],
)
def test_limit_that_cannot_be_used_is_refused(limits, error, reason):
    with pytest.raises(error, match=reason):
        motor_limits(ACTUATORS, limits)


def test_motions_of_motors_may_be_lists():
    drives = Actuators(
        RobotModel.from_urdf('two_link'), {'elbow': SeriesElastic(100.0, 0.1)}
    )
    limits = motor_limits(drives, {'elbow': {'deflection': 0.05}})
    motors = motor_motion(drives, np.zeros((1, 5, 2)))
    listed = motors._make(array.tolist() for array in motors)
    wanted = find_motor_violations(drives, limits, motors)
    assert wanted
    assert find_motor_violations(drives, limits, listed) == wanted
    np.testing.assert_array_equal(
        spring_deflections(drives, listed), spring_deflections(drives, motors)
    )
