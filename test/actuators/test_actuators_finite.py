"""Motors never get NaN or infinity: numbers out of all proportion are refused with their cause."""

import warnings

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, friction
from hodyn_ros.actuators import (
    Actuators,
    AwasII,
    CubicSpring,
    PolynomialSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    TableSpring,
    VariableStiffness,
    motor_motion,
    motor_step,
)
from hodyn_ros.errors import ActuatorError, DeflectionError, HodynError, MotionError

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
DEFLECTIONS = np.linspace(-1.0, 2.0, 301)
TABLE = TableSpring(DEFLECTIONS, 1e3 * DEFLECTIONS + 200.0 * DEFLECTIONS**3)
CURVED = {
    'cubic': SeriesElastic(CubicSpring(1e3, 1e5), 0.3),
    'polynomial': SeriesElastic(PolynomialSpring([1e3, 0.0, 1e5]), 0.3),
    'table': SeriesElastic(TABLE, 0.3),
}
VARIABLE = {
    'qbmove': VariableStiffness(Qbmove(a=6.85, k=0.5), 0.05),
    'awas': VariableStiffness(AwasII(Ks=10.0, L=0.05, r_t=0.015), 0.05),
}
DAMPED = {'damped': SeriesElastic(1e3, 0.3, damping=5.0)}
STRAIGHT = {'linear': SeriesElastic(1e-3, 30.0), 'rigid': RigidDrive(100.0)}
EVERY = {**CURVED, **VARIABLE, **DAMPED, **STRAIGHT}
STIFFNESS = [30.0, 0.0, 0.0]


def thrown(order, value, N=None):
    """Motion in which one derivative of the elbow is out of all proportion, in the last sample."""
    motion = np.zeros((N or 1, 5, 2))
    motion[-1, order, 1] = value
    return motion if N else motion[0]


def moved(kind, motion):
    actuators = Actuators(MODEL, {'elbow': EVERY[kind]})
    if kind in DAMPED:
        return motor_step(actuators, 0.0, motion)[0]
    stiffness = {'elbow': STIFFNESS} if kind in VARIABLE else None
    return motor_motion(actuators, motion, stiffness=stiffness)


@pytest.mark.parametrize('kind', EVERY)
@pytest.mark.parametrize('order', [1, 2, 3, 4])
@pytest.mark.parametrize('value', [1e100, 1e150, 1e160, 1e200, 1e306])
def test_motors_are_finite_or_refused(kind, order, value):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            found = moved(kind, thrown(order, value))
        except HodynError as error:
            assert "Joint 'elbow'" in str(error) or 'too large' in str(error)
        else:
            assert all(np.isfinite(array).all() for array in found)


@pytest.mark.parametrize('kind', [*CURVED, *VARIABLE])
def test_springs_out_of_proportion_are_named_with_joint_and_sample(kind):
    with pytest.raises(
        DeflectionError, match=r"Joint 'elbow': .* is (nan|-?inf)"
    ) as caught:
        moved(kind, thrown(3, 1e160, N=4))
    assert caught.value.joint == 'elbow'
    assert caught.value.sample == (3,)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ('stiffness', 'kind'), [(1e155, 'qbmove'), (1e300, 'qbmove'), (5e-324, 'awas')]
)
def test_stiffness_out_of_proportion_is_refused_also_without_a_robot(stiffness, kind):
    series = [stiffness, 0.0, 0.0]
    with pytest.raises(DeflectionError) as caught:
        VARIABLE[kind].motors([0.0] * 3, [0.0] * 3, series)
    assert len(str(caught.value)) < 500
    actuators = Actuators(MODEL, {'elbow': VARIABLE[kind]})
    with pytest.raises(DeflectionError, match="Joint 'elbow'") as caught:
        motor_motion(
            actuators, np.zeros((3, 5, 2)), np.zeros((3, 3, 2)), stiffness={'elbow': series}
        )
    assert caught.value.sample == (0,)


@pytest.mark.parametrize(
    'actuator',
    [
        RigidDrive(1e308),
        SeriesElastic(1e3, 1e308),
        SeriesElastic(CubicSpring(1e3, 1e5), 1e308),
        SeriesElastic(1e3, 0.1, friction=friction.Viscous(1e308)),
        VariableStiffness(Qbmove(a=6.85, k=0.5), 1e308),
    ],
    ids=['rigid', 'linear', 'cubic', 'friction', 'variable'],
)
@pytest.mark.filterwarnings('ignore:overflow')
def test_inertia_and_friction_out_of_proportion_are_the_fault_of_the_motor(actuator):
    motion = np.full((2, 5, 2), 10.0)
    stiffness = {'elbow': STIFFNESS} if actuator.needs_stiffness else None
    with pytest.raises(ActuatorError, match="Joint 'elbow': the torque of motor") as caught:
        motor_motion(
            Actuators(MODEL, {'elbow': actuator}),
            motion,
            np.ones((3, 2)),
            stiffness=stiffness,
        )
    assert not isinstance(caught.value, DeflectionError)
    with pytest.raises(ActuatorError, match='the torque of motor 1'):
        actuator.motors(np.full(5, 10.0), np.ones(3), stiffness and np.array(STIFFNESS))


def test_numbers_above_the_root_of_the_largest_are_not_refused():
    actuators = Actuators(MODEL, {'elbow': SeriesElastic(1.0, 1.0)})
    effort = np.zeros((3, 2))
    effort[0, 1] = 1e200
    found = motor_motion(actuators, np.zeros((5, 2)), effort)
    assert found.deflection[0, 1] == 1e200


@pytest.mark.parametrize(
    'actuator', [STRAIGHT['linear'], CURVED['cubic'], STRAIGHT['rigid']]
)
def test_input_that_is_not_finite_is_not_blamed_on_the_springs(actuator):
    with pytest.raises((MotionError, DeflectionError), match='nan'):
        actuator.motors(np.array([0.0, np.nan, 0.0, 0.0, 0.0]), np.ones(3))
