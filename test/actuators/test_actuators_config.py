"""Actuators and limits of motors from tables of keys."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, friction
from hodyn_ros.actuators import (
    AwasII,
    CubicSpring,
    DlrBavs,
    PolynomialSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
    actuators_from_config,
    motor_limits_from_config,
)
from hodyn_ros.errors import ActuatorError, JointNameError

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
SEA = {'type': 'sea', 'stiffness': 100.0, 'motor_inertia': 0.1}
TABLE = {
    'type': 'sea',
    'spring': 'table',
    'motor_inertia': 0.1,
    'table_deflections': [-0.1, 0.0, 0.1],
    'table_torques': [-5.0, 0.0, 6.0],
}
QBMOVE = {'type': 'vsa', 'model': 'qbmove'}


def elbow(**keys):
    return actuators_from_config(MODEL, {'elbow': keys})['elbow']


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('keys', 'expected'),
    [
        (
            {'type': 'rigid', 'motor_inertia': 0.3, 'viscous_friction': 0.1},
            RigidDrive(0.3, friction.Viscous(0.1)),
        ),
        ({**SEA, 'motor_inertia': [0.1], 'damping': 3.0}, SeriesElastic(100.0, 0.1, 3.0)),
        (
            {**SEA, 'spring': 'cubic', 'cubic_stiffness': -50.0, 'max_deflection': [0.2]}
            | {
                'viscous_friction': 0.3,
                'coulomb_friction': 0.4,
                'friction_smoothing': 0.01,
            },
            SeriesElastic(
                CubicSpring(100.0, -50.0, 0.2),
                0.1,
                0.0,
                friction.Viscous(0.3) + friction.Coulomb(0.4, 0.01),
            ),
        ),
        (
            {'type': 'sea', 'spring': 'polynomial', 'motor_inertia': 0.1}
            | {'coefficients': [9.0, 0.0, 4.0]},
            SeriesElastic(PolynomialSpring((9.0, 0.0, 4.0)), 0.1),
        ),
        (
            {**QBMOVE, 'parameter_set': 'nmmi_maker_pro', 'viscous_friction': 0.2},
            VariableStiffness(Qbmove(8.9992, 0.0019, 0.8), 0.0233, friction.Viscous(0.2)),
        ),
        (
            {'type': 'vsa', 'model': 'dlr_bavs', 'parameter_set': 'nmmi'}
            | {'max_deflection': 0.2, 'motor_inertia': [0.1, 0.2]},
            VariableStiffness(DlrBavs(1.21e-6, 2.38e-6, 1.6e5, 8.71, 0.2), (0.1, 0.2)),
        ),
        (
            {'type': 'vsa', 'model': 'awas_ii', 'Ks': 10.0, 'L': 0.05, 'r_t': 0.015}
            | {'motor_inertia': 0.1, 'pitch': 0.5, 'max_travel': 0.04},
            VariableStiffness(AwasII(10.0, 0.05, 0.015, max_travel=0.04, pitch=0.5), 0.1),
        ),
    ],
)
def test_table_makes_the_actuator(keys, expected):
    assert elbow(**keys) == expected


def test_joints_that_are_not_named_are_rigid():
    assert actuators_from_config(MODEL, {'elbow': SEA})['shoulder'] == RigidDrive()


@pytest.mark.every_case
@pytest.mark.parametrize('bad', [0.0, np.nan, '100', True, [1.0, 2.0]])
def test_stiffness_inertia_and_limits_must_be_positive(bad):
    for key in ('stiffness', 'motor_inertia'):
        with pytest.raises(ActuatorError, match=rf'actuators\.elbow.*{key} is '):
            elbow(**{**SEA, key: bad})
    config = {'elbow': {**SEA, 'max_motor_velocity': 'fast' if bad is True else bad}}
    with pytest.raises(ActuatorError, match=r'elbow.*motor_velocity is'):
        motor_limits_from_config(actuators_from_config(MODEL, {'elbow': SEA}), config)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('keys', 'reason'),
    [
        ({}, r'actuators\.elbow\.type is missing, expected rigid or sea or vsa'),
        (
            {'type': 'SEA'},
            r"elbow\.type is 'SEA' \(did you mean sea\?\), expected one of rigid, sea, vsa",
        ),
        (
            {**SEA, 'stifness': 1.0},
            r'elbow\.stifness is unknown \(did you mean stiffness\?\)',
        ),
        ({**SEA, 'model': 'qbmove'}, r'elbow\.model is given, but the type is sea'),
        ({**TABLE, 'spring': 'linear', 'stiffness': 1.0}, r'table_.* is given, but'),
        ({**SEA, 'spring': 'cubic'}, r'cubic_stiffness is missing; a cubic spring'),
        (
            {**TABLE, 'table_torques': [-5.0, 0.0, 0.0]},
            r'TableSpring: torques must increase',
        ),
        ({**TABLE, 'max_deflection': 0.1}, r'is table, which has table_def'),
        ({**SEA, 'max_deflection': [0.1, 0.2]}, r'max_deflection is \(0.1, 0.2\)'),
        ({**SEA, 'friction_smoothing': 0.1}, r'friction_smoothing is 0.1, but .*coulomb'),
        ({'type': 'vsa'}, r'elbow\.model is missing; .*qbmove, dlr_bavs, awas_ii'),
    ],
)
def test_table_that_cannot_be_used_is_refused_with_joint_key_and_reason(keys, reason):
    with pytest.raises(ActuatorError, match=reason):
        elbow(**keys)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('config', 'error', 'reason'),
    [
        ({'wrist': SEA}, JointNameError, 'unknown joints: wrist; expected .*shoulder, elb'),
        ({'elbow': 5.0}, ActuatorError, r'actuators\.elbow is 5.0, expected a table'),
    ],
)
def test_tables_that_do_not_fit_the_robot_are_refused(config, error, reason):
    with pytest.raises(error, match=reason):
        actuators_from_config(MODEL, config)


def test_limits_come_from_the_same_tables():
    config = {
        'shoulder': {
            **QBMOVE,
            'parameter_set': 'nmmi_maker_pro',
            'max_motor_velocity': [3.0, 4.0],
            'max_motor_torque': 6.0,
        },
        'elbow': {**SEA, 'max_motor_torque_rate': 80.0, 'deflection_limit': 0.1},
    }
    limits = motor_limits_from_config(actuators_from_config(MODEL, config), config)
    np.testing.assert_array_equal(limits.motor_velocity, [3.0, 4.0, np.inf])
    np.testing.assert_array_equal(limits.motor_torque, [6.0, 6.0, np.inf])
    np.testing.assert_array_equal(limits.motor_torque_rate, [np.inf, np.inf, 80.0])
    np.testing.assert_array_equal(limits.deflection, [np.inf, 0.1])
