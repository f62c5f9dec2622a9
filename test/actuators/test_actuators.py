"""Actuators of whole robots: names, mixtures, streams, and what does not fit a robot."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from support import oracles, robots

from hodyn_ros import RobotModel, Wrench, friction, inverse_dynamics
from hodyn_ros.actuators import (
    Actuator,
    Actuators,
    CubicSpring,
    LinearSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
    motor_motion,
)
from hodyn_ros.errors import ActuatorError, DeflectionError, JointNameError, MotionError

# A chain of five joints, one of each kind of actuator.
XML = robots.robot(
    '<link name="base"/>',
    *(robots.link(f'link{i}', 1.0 / i) for i in range(1, 6)),
    *(
        robots.joint(f'j{i}', 'base' if i == 1 else f'link{i - 1}', f'link{i}', axis=axis)
        for i, axis in enumerate(('0 0 1', '0 1 0', '1 0 0', '0 1 0', '0 0 1'), start=1)
    ),
)
MODEL = RobotModel.from_urdf(XML)
STICKY = friction.Viscous(0.2) + friction.Coulomb(0.3, 0.1) + friction.Coulomb(0.1, 0.02)
EACH = {
    'j1': RigidDrive(0.3, friction.Sigmoid(0.5, 3.0, 0.01) + friction.Offset(0.05)),
    'j2': SeriesElastic(LinearSpring(800.0), 0.4, friction=STICKY),
    'j3': SeriesElastic(CubicSpring(60.0, 5000.0), 0.2),
    'j4': VariableStiffness(Qbmove(a=6.7, k=0.22), 0.02, friction.Viscous(0.1)),
    'j5': SeriesElastic(LinearSpring(300.0), 0.1, friction=friction.Viscous(0.4)),
}
STIFFNESS = {'j4': [60.0, 5.0, -2.0, 0.0, 0.0]}


def joint_motion(times, K=5):
    t, omega, phase = np.asarray(times)[..., None], np.linspace(1.0, 2.0, 5), np.arange(5.0)
    return np.stack(
        [0.3 * omega**k * np.sin(omega * t + phase + k * np.pi / 2) for k in range(K)],
        axis=-2,
    )


def test_motors_are_named_after_their_joints_and_others_are_rigid_without_inertia():
    actuators = Actuators(MODEL, EACH)
    assert actuators.motor_names == ('j1', 'j2', 'j3', 'j4_motor1', 'j4_motor2', 'j5')
    np.testing.assert_array_equal(actuators.joint_of_motor, [0, 1, 2, 3, 3, 4])
    motion, actuators = joint_motion(0.4), Actuators(MODEL, {})
    assert actuators['j3'] == RigidDrive()
    theta, tau, delta = motor_motion(actuators, motion)
    np.testing.assert_array_equal(theta, motion)
    np.testing.assert_allclose(tau, inverse_dynamics(MODEL, motion), rtol=1e-12, atol=1e-12)
    assert not delta.any()


@pytest.mark.every_case
@pytest.mark.parametrize(('K', 'batch'), [(6, (2, 3)), (3, ()), (5, (4,))])
def test_mixed_robot_is_each_joint_by_itself(K, batch):
    times = np.linspace(0.1, 0.9, int(np.prod(batch))).reshape(batch)
    motion, E = joint_motion(times, K), K - 2
    actuators = Actuators(MODEL, EACH)
    stiffness = {'j4': np.broadcast_to(STIFFNESS['j4'], (*batch, 5))}
    theta, tau, _ = motor_motion(actuators, motion, stiffness=stiffness, order=None)
    assert tau.shape == (*batch, max(E - 2, 0), 6)
    effort = oracles.taylor_rnea(XML, MODEL.joint_names, MODEL.gravity, motion)
    for j, (name, actuator) in enumerate(EACH.items()):
        q = motion[..., j]
        alone = actuator.motors(q, effort[..., j], stiffness.get(name))
        where = np.flatnonzero(actuators.joint_of_motor == j)
        position = np.swapaxes(alone.position[..., :E], -1, -2)
        np.testing.assert_allclose(theta[..., where], position, rtol=1e-10, atol=1e-12)
        torque = np.swapaxes(alone.torque[..., : max(E - 2, 0)], -1, -2)
        np.testing.assert_allclose(tau[..., where], torque, rtol=1e-10, atol=1e-11)


def test_wrench_reaches_the_motors():
    motion = joint_motion(0.4)
    values = np.random.default_rng(5).normal(size=(3, 6))
    wrench = Wrench('link5', values, 'body', 'on_robot')
    actuators = Actuators(MODEL, EACH)
    found = motor_motion(actuators, motion, wrench=wrench, stiffness=STIFFNESS)
    effort = inverse_dynamics(MODEL, motion, wrench)
    for a, b in zip(found, motor_motion(actuators, motion, effort, stiffness=STIFFNESS)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    with pytest.raises(ActuatorError, match='Both effort and wrench'):
        motor_motion(actuators, motion, effort, wrench, stiffness=STIFFNESS)


def test_friction_of_the_model_is_on_the_side_of_the_joint():
    motion, moved = joint_motion(0.4), []
    for model in (MODEL, MODEL.with_friction({'j2': friction.Viscous(2.0)})):
        actuators = Actuators(model, {'j2': SeriesElastic(100.0, 0.1)})
        moved.append(motor_motion(actuators, motion).deflection[:, 1])
    np.testing.assert_allclose(moved[1] - moved[0], 0.02 * motion[1:4, 1], rtol=1e-9)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('stiffness', 'error', 'reason'),
    [
        (None, ActuatorError, 'stiffness of j4 is missing'),
        (
            {'j4': [60.0], 'j2': [60.0]},
            ActuatorError,
            'given for j2, whose actuators cannot',
        ),
        ({'j4': [1e-6, 0.0, 0.0]}, DeflectionError, "Joint 'j4'"),
        ({'j4': np.full((7, 3), 60.0)}, MotionError, 'do not fit'),
        (
            {'j4': [60.0]},
            MotionError,
            "stiffness of joint 'j4' with S = 1 .*\\(S = 3, zeros",
        ),
    ],
)
def test_stiffness_that_does_not_suit_the_robot_is_refused(stiffness, error, reason):
    """In a batch, and sample by sample as control loops ask, after good ones."""
    actuators, motion = Actuators(MODEL, EACH), joint_motion([0.4, 0.5])
    good = motor_motion(actuators, motion[0], stiffness=STIFFNESS)
    for given in (motion, motion[0]) if 'fit' not in reason else (motion,):
        with pytest.raises(error, match=reason):
            motor_motion(actuators, given, stiffness=stiffness)
    again = motor_motion(actuators, motion[0], stiffness=STIFFNESS)
    np.testing.assert_allclose(good.torque, again.torque, rtol=1e-12)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('effort', 'reason'),
    [
        (np.zeros((3, 4)), r'shape \(3, 4\), expected \(..., E, 5\)'),
        (np.full((3, 5), np.nan), 'holds nan at'),
        (np.ma.masked_equal(np.zeros((3, 5)), 0.0), 'masked'),
        (np.zeros((4, 3, 5)), 'do not fit'),
    ],
)
def test_effort_that_cannot_be_used_is_refused(effort, reason):
    with pytest.raises(MotionError, match=reason):
        motor_motion(Actuators(MODEL, {}), joint_motion([0.4, 0.5]), effort)


@pytest.mark.parametrize('order', [-1, 1.5, True])
def test_order_that_is_no_order_and_motion_that_is_none_are_refused(order):
    with pytest.raises(MotionError, match='The order is'):
        motor_motion(Actuators(MODEL, {}), joint_motion(0.4), order=order)
    bad = joint_motion(0.4)
    bad[1, 2] = np.nan
    with pytest.raises(MotionError, match='nan'):
        motor_motion(Actuators(MODEL, EACH), bad, np.zeros((3, 5)), stiffness=STIFFNESS)


MIMIC = RobotModel.from_urdf(
    robots.robot(
        '<link name="base"/>',
        robots.link('a'),
        robots.link('b'),
        robots.joint('leader', 'base', 'a'),
        robots.joint('follower', 'base', 'b', extra='<mimic joint="leader"/>'),
    )
)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('model', 'by_joint', 'error', 'reason'),
    [
        (
            MODEL,
            {'j7': RigidDrive()},
            JointNameError,
            'unknown joints: j7; expected .*j1, j2',
        ),
        (MIMIC, {'follower': RigidDrive()}, JointNameError, 'moved by another joint'),
        (MODEL, {'j1': RigidDrive}, ActuatorError, 'expected an Actuator such as'),
        (MODEL, {'j1': Actuator()}, ActuatorError, 'expected an Actuator such as'),
        (
            MODEL.with_armature({'j2': 0.4}),
            {'j2': SeriesElastic(100.0, 0.4)},
            ActuatorError,
            r"Joint 'j2': the model has an armature of 0.4.*twice",
        ),
    ],
)
def test_actuators_that_do_not_fit_the_robot_are_refused(model, by_joint, error, reason):
    with pytest.raises(error, match=reason):
        Actuators(model, by_joint)


def test_actuators_are_not_to_be_changed_and_may_be_pickled():
    actuators = Actuators(MODEL, EACH)
    with pytest.raises(TypeError):
        actuators.by_joint['j1'] = RigidDrive()
    again, motion = pickle.loads(pickle.dumps(actuators)), joint_motion(0.4)
    a, b = (motor_motion(x, motion, stiffness=STIFFNESS) for x in (actuators, again))
    np.testing.assert_allclose(a.torque, b.torque, rtol=1e-12)


def test_a_few_numbers_start_no_compiler():
    code = (
        'import sys\n'
        'from hodyn_ros.actuators import CubicSpring, SeriesElastic\n'
        'joint = SeriesElastic(CubicSpring(500.0, 2e4), 0.4)\n'
        'found = joint.motors([0.1] * 5, [5.0, 2.0, 1.0])\n'
        'print(*(name for name in ("numba", "llvmlite", "scipy") if name in sys.modules))'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ('\n', '')
