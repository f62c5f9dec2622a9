"""Actuators and limits of motors from tables of keys."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.actuators import (
    AwasII,
    CubicSpring,
    DlrBavs,
    LinearSpring,
    PolynomialSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    TableSpring,
    VariableStiffness,
    actuators_from_config,
    motor_limits_from_config,
)
from hodyn_ros.actuators.config import KEYS, SPRINGS, TYPES
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.model.friction import Coulomb, Viscous

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
SEA = {'type': 'sea', 'stiffness': 100.0, 'motor_inertia': 0.1}
TABLE = {'table_deflections': [-0.1, 0.0, 0.1], 'table_torques': [-5.0, 0.0, 6.0]}


def elbow(**keys):
    return actuators_from_config(MODEL, {'elbow': keys})['elbow']


@pytest.mark.parametrize(
    ('keys', 'expected'),
    [
        ({'type': 'rigid'}, RigidDrive()),
        (
            {'type': 'rigid', 'motor_inertia': 0.3, 'viscous_friction': 0.1},
            RigidDrive(0.3, Viscous(0.1)),
        ),
        (SEA, SeriesElastic(LinearSpring(100.0), 0.1)),
        ({**SEA, 'motor_inertia': [0.1]}, SeriesElastic(LinearSpring(100.0), 0.1)),
        ({**SEA, 'stiffness': 100, 'damping': 0}, SeriesElastic(LinearSpring(100.0), 0.1)),
        (
            {**SEA, 'max_deflection': 0.2, 'damping': 3.0, 'coulomb_friction': 0.4},
            SeriesElastic(LinearSpring(100.0, 0.2), 0.1, 3.0, Coulomb(0.4)),
        ),
        (
            {
                **SEA,
                'spring': 'cubic',
                'cubic_stiffness': -50.0,
                'max_deflection': [0.2],
                'viscous_friction': 0.3,
                'coulomb_friction': 0.4,
                'friction_smoothing': 0.01,
            },
            SeriesElastic(
                CubicSpring(100.0, -50.0, 0.2), 0.1, 0.0, Viscous(0.3) + Coulomb(0.4, 0.01)
            ),
        ),
        (
            {
                'type': 'sea',
                'spring': 'polynomial',
                'coefficients': [9.0, 0.0, 4.0],
                'motor_inertia': 0.1,
            },
            SeriesElastic(PolynomialSpring((9.0, 0.0, 4.0)), 0.1),
        ),
        (
            {
                'type': 'sea',
                'spring': 'polynomial',
                'coefficients': 9.0,
                'motor_inertia': 0.1,
            },
            SeriesElastic(PolynomialSpring((9.0,)), 0.1),
        ),
        (
            {'type': 'sea', 'spring': 'table', **TABLE, 'motor_inertia': 0.1},
            SeriesElastic(TableSpring((-0.1, 0.0, 0.1), (-5.0, 0.0, 6.0)), 0.1),
        ),
        (
            {
                'type': 'vsa',
                'model': 'qbmove',
                'a': 6.0,
                'k': [0.02, 0.03],
                'motor_inertia': 0.1,
            },
            VariableStiffness(Qbmove(a=6.0, k=(0.02, 0.03)), 0.1),
        ),
        (
            {
                'type': 'vsa',
                'model': 'qbmove',
                'parameter_set': 'nmmi_maker_pro',
                'viscous_friction': 0.2,
            },
            VariableStiffness(
                Qbmove(a=8.9992, k=0.0019, max_deflection=0.8), 0.0233, Viscous(0.2)
            ),
        ),
        (
            {
                'type': 'vsa',
                'model': 'dlr_bavs',
                'parameter_set': 'nmmi',
                'max_deflection': 0.2,
                'motor_inertia': [0.1, 0.2],
            },
            VariableStiffness(
                DlrBavs(a=1.21e-6, b=2.38e-6, k=1.6e5, ke=8.71, max_deflection=0.2),
                (0.1, 0.2),
            ),
        ),
        (
            {
                'type': 'vsa',
                'model': 'awas_ii',
                'Ks': 10.0,
                'L': 0.05,
                'r_t': 0.015,
                'motor_inertia': 0.1,
                'pitch': 0.5,
                'max_travel': 0.04,
            },
            VariableStiffness(AwasII(10.0, 0.05, 0.015, max_travel=0.04, pitch=0.5), 0.1),
        ),
        (
            {**SEA, 'model': '', 'coefficients': [], 'spring': None, 'parameter_set': ''},
            SeriesElastic(LinearSpring(100.0), 0.1),
        ),
    ],
)
def test_table_makes_the_actuator(keys, expected):
    assert elbow(**keys) == expected


def test_joints_that_are_not_named_are_rigid():
    actuators = actuators_from_config(MODEL, {'elbow': SEA})
    assert actuators['shoulder'] == RigidDrive()
    assert actuators_from_config(MODEL, {})['elbow'] == RigidDrive()


@pytest.mark.parametrize(
    'bad', [0.0, -5.0, np.nan, np.inf, '100', True, [1.0, 2.0], [[1.0]]]
)
@pytest.mark.parametrize('key', ['stiffness', 'motor_inertia'])
def test_stiffness_and_inertia_must_be_positive(key, bad):
    with pytest.raises(ActuatorError, match=rf'actuators\.elbow.*{key} is '):
        elbow(**{**SEA, key: bad})


@pytest.mark.parametrize(
    ('keys', 'reason'),
    [
        ({}, r'actuators\.elbow\.type is missing, expected rigid or sea or vsa'),
        (
            {'type': 'SEA'},
            r"elbow\.type is 'SEA', expected a string, one of rigid, sea, vsa",
        ),
        ({'type': 3}, r'elbow\.type is 3'),
        (
            {'type': 'sea', 'motor_inertia': 0.1},
            r'elbow\.stiffness is missing; a linear spring',
        ),
        ({'type': 'sea', 'stiffness': 1.0}, r'elbow\.motor_inertia is missing'),
        ({**SEA, 'stifness': 1.0}, r'elbow\.stifness is unknown\. Is stiffness meant\?'),
        ({**SEA, 'xyz': 1.0}, r'elbow\.xyz is unknown\. The keys are type, '),
        ({**SEA, 'model': 'qbmove'}, r'elbow\.model is given, but the type is sea'),
        (
            {'type': 'rigid', 'stiffness': 1.0},
            r'it belongs to sea and vsa\. Keys of rigid: type',
        ),
        (
            {**SEA, **TABLE},
            r'elbow\.table_.* is given, but actuators.elbow.spring is linear',
        ),
        ({**SEA, 'spring': 'soft'}, r"elbow\.spring is 'soft', .* one of linear, cubic"),
        ({**SEA, 'spring': 'cubic'}, r'elbow\.cubic_stiffness is missing; a cubic spring'),
        (
            {
                'type': 'sea',
                'motor_inertia': 1.0,
                'spring': 'polynomial',
                'coefficients': [-1.0],
            },
            r'actuators\.elbow: PolynomialSpring: .*does not increase',
        ),
        (
            {
                'type': 'sea',
                'motor_inertia': 1.0,
                'spring': 'table',
                **TABLE,
                'table_torques': [-5.0, 0.0, 0.0],
            },
            r'actuators\.elbow: TableSpring: torques must increase strictly',
        ),
        (
            {
                'type': 'sea',
                'motor_inertia': 1.0,
                'spring': 'table',
                **TABLE,
                'max_deflection': 0.1,
            },
            r'elbow\.max_deflection is given, but .*elbow.spring is table, which has table_def',
        ),
        (
            {**SEA, 'max_deflection': [0.1, 0.2]},
            r'LinearSpring: max_deflection is \(0.1, 0.2\)',
        ),
        ({**SEA, 'damping': -1.0}, r'damping is -1.0, expected a finite number from 0 on'),
        ({'type': 'vsa'}, r'elbow\.model is missing; .*qbmove, dlr_bavs, awas_ii'),
        ({'type': 'vsa', 'model': 'qbmov'}, r"elbow\.model is 'qbmov', .*one of qbmove"),
        (
            {'type': 'vsa', 'model': 'qbmove', 'parameter_set': 'mine'},
            r"actuators\.elbow: The parameter set of qbmove is 'mine'",
        ),
        (
            {'type': 'vsa', 'model': 'qbmove', 'motor_inertia': 0.1, 'ke': 3.0},
            r'elbow\.ke is given, but actuators\.elbow\.model is qbmove, which has a, k, max',
        ),
        (
            {'type': 'vsa', 'model': 'qbmove', 'motor_inertia': 0.1, 'a': 3.0},
            r'actuators\.elbow: qbmove: parameters are missing',
        ),
        (
            {'type': 'vsa', 'model': 'qbmove', 'parameter_set': 'advanced_datasheet'},
            r'elbow\.motor_inertia is missing',
        ),
        (
            {
                'type': 'vsa',
                'model': 'qbmove',
                'parameter_set': 'nmmi_maker_pro',
                'motor_inertia': [0.1, 0.2, 0.3],
            },
            r'actuators\.elbow: VariableStiffness: motor_inertia',
        ),
    ],
)
def test_table_that_cannot_be_used_is_refused_with_joint_key_and_reason(keys, reason):
    with pytest.raises(ActuatorError, match=reason):
        elbow(**keys)


@pytest.mark.parametrize(
    ('config', 'error', 'reason'),
    [
        (
            {'wrist': SEA},
            JointNameError,
            'unknown joints: wrist; expected .*shoulder, elbow',
        ),
        ({'elbow': 5.0}, ActuatorError, r'actuators\.elbow is 5.0, expected a table'),
        (['elbow'], ActuatorError, 'expected a table for each joint'),
    ],
)
def test_tables_that_do_not_fit_the_robot_are_refused(config, error, reason):
    with pytest.raises(error, match=reason):
        actuators_from_config(MODEL, config)


def test_smoothing_without_coulomb_friction_is_refused():
    with pytest.raises(
        ActuatorError, match=r'elbow: .*friction_smoothing is 0.1, but .*coulomb'
    ):
        elbow(**SEA, friction_smoothing=0.1)
    assert elbow(**SEA, friction_smoothing=0.1, coulomb_friction=0.0).friction is None


def test_units_are_those_of_the_joint():
    model = RobotModel.from_urdf(
        robots.robot(
            '<link name="base"/>',
            robots.link('a'),
            robots.joint('slide', 'base', 'a', 'prismatic'),
        )
    )
    with pytest.raises(ActuatorError, match=r'above 0 \[N/m\]'):
        actuators_from_config(model, {'slide': {**SEA, 'stiffness': 0.0}})
    with pytest.raises(ActuatorError, match=r'above 0 \[N m/rad\]'):
        elbow(**{**SEA, 'stiffness': 0.0})


def test_limits_come_from_the_same_tables():
    config = {
        'shoulder': {
            'type': 'vsa',
            'model': 'qbmove',
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


@pytest.mark.parametrize('bad', [0.0, -1.0, [1.0, 2.0], 'fast'])
def test_limit_that_cannot_be_used_is_refused(bad):
    config = {'elbow': {**SEA, 'max_motor_velocity': bad}}
    with pytest.raises(ActuatorError, match=r'elbow.*motor_velocity is'):
        motor_limits_from_config(actuators_from_config(MODEL, {'elbow': SEA}), config)


def test_every_key_is_described():
    names = [key.name for key in KEYS]
    assert len(set(names)) == len(names)
    for key in KEYS:
        assert key.kind in ('string', 'float', 'float array')
        assert key.bound in ('positive', 'not negative', 'any')
        assert key.description.endswith('.')
        assert set(key.types) <= set(TYPES)
    for _, own in SPRINGS.values():
        assert set(own) <= set(names)
