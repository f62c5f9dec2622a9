"""Actuators of whole robots: names, mixtures, streams, and what does not fit a robot."""

import pickle

import numpy as np
import pytest
from support import oracles, robots
from support.damped_joint import first_deflection, follow_torque

import hodyn_ros
from hodyn_ros import RobotModel, Wrench, friction, inverse_dynamics
from hodyn_ros.actuators import (
    Actuator,
    Actuators,
    CubicSpring,
    LinearSpring,
    Motors,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
    motor_motion,
    motor_step,
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
    t = np.asarray(times)[..., None]
    omega, phase = np.linspace(1.0, 2.0, 5), np.arange(5.0)
    return np.stack(
        [0.3 * omega**k * np.sin(omega * t + phase + k * np.pi / 2) for k in range(K)],
        axis=-2,
    )


def test_motors_are_named_after_their_joints():
    actuators = Actuators(MODEL, EACH)
    names = ('j1', 'j2', 'j3', 'j4_motor1', 'j4_motor2', 'j5')
    assert actuators.motor_names == names
    assert actuators.n_motors == 6
    np.testing.assert_array_equal(actuators.joint_of_motor, [0, 1, 2, 3, 3, 4])
    assert actuators['j2'] is EACH['j2']


def test_joints_that_are_not_named_are_rigid_without_inertia():
    motion = joint_motion(0.4)
    actuators = Actuators(MODEL, {})
    assert actuators['j3'] == RigidDrive()
    theta, tau, delta = motor_motion(actuators, motion)
    np.testing.assert_array_equal(theta, motion)
    np.testing.assert_allclose(tau, inverse_dynamics(MODEL, motion), rtol=1e-12, atol=1e-12)
    assert delta.shape == motion.shape
    assert not delta.any()


@pytest.mark.parametrize('K', [3, 5, 6])
@pytest.mark.parametrize('batch', [(), (4,), (2, 3)])
def test_mixed_robot_is_each_joint_by_itself(K, batch):
    times = np.linspace(0.1, 0.9, int(np.prod(batch))).reshape(batch)
    motion = joint_motion(times, K)
    actuators = Actuators(MODEL, EACH)
    stiffness = {'j4': np.broadcast_to(STIFFNESS['j4'], (*batch, 5))}
    theta, tau, delta = motor_motion(actuators, motion, stiffness=stiffness, order=None)
    E = K - 2
    assert theta.shape == (*batch, E, 6)
    assert tau.shape == (*batch, max(E - 2, 0), 6)
    assert delta.shape == (*batch, E, 5)
    effort = oracles.taylor_rnea(XML, MODEL.joint_names, MODEL.gravity, motion)
    for j, (name, actuator) in enumerate(EACH.items()):
        q = motion[..., j]
        alone = actuator.motors(q, effort[..., j], stiffness.get(name))
        where = np.flatnonzero(actuators.joint_of_motor == j)
        position = np.swapaxes(alone.position[..., :E], -1, -2)
        np.testing.assert_allclose(theta[..., where], position, rtol=1e-10, atol=1e-12)
        torque = np.swapaxes(alone.torque[..., : max(E - 2, 0)], -1, -2)
        np.testing.assert_allclose(tau[..., where], torque, rtol=1e-10, atol=1e-11)
        if name != 'j4':
            expected = theta[..., where[0]] - q[..., :E]
            np.testing.assert_allclose(delta[..., j], expected, atol=1e-14)


def test_stiffness_may_have_the_leading_axes_alone():
    stiffness = {'j4': np.array([[60.0, 0.0, 0.0], [70.0, 0.0, 0.0]])}
    actuators = Actuators(MODEL, EACH)
    both = motor_motion(actuators, joint_motion(0.4), stiffness=stiffness)
    assert both.position.shape == (2, 3, 6)
    for i in range(2):
        alone = motor_motion(
            actuators, joint_motion(0.4), stiffness={'j4': stiffness['j4'][i]}
        )
        for a, b in zip(alone, both):
            np.testing.assert_allclose(a, b[i], rtol=1e-12, atol=1e-14)


def test_wrench_reaches_the_motors():
    motion = joint_motion(0.4)
    values = np.random.default_rng(5).normal(size=(3, 6))
    wrench = Wrench('link5', values, 'body', 'on_robot')
    actuators = Actuators(MODEL, EACH)
    found = motor_motion(actuators, motion, wrench=wrench, stiffness=STIFFNESS)
    effort = inverse_dynamics(MODEL, motion, wrench)
    given = motor_motion(actuators, motion, effort, stiffness=STIFFNESS)
    free = motor_motion(actuators, motion, stiffness=STIFFNESS)
    for a, b in zip(found, given):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    assert np.abs(found.position - free.position).max() > 1e-3
    with pytest.raises(ActuatorError, match='Both effort and wrench'):
        motor_motion(actuators, motion, effort, wrench, stiffness=STIFFNESS)


def test_friction_of_the_model_is_on_the_side_of_the_joint():
    law = friction.Coulomb(2.0, 0.1)
    sticky = MODEL.with_friction({'j2': law})
    motion = joint_motion(0.4)
    moved = {}
    for model in (MODEL, sticky):
        actuators = Actuators(model, {'j2': SeriesElastic(100.0, 0.1)})
        moved[model] = motor_motion(actuators, motion).deflection[:, 1]
    expected = law.effort(motion[1:4, 1]) / 100.0
    np.testing.assert_allclose(
        moved[sticky] - moved[MODEL], expected, rtol=1e-9, atol=1e-12
    )


DAMPED = {
    'j1': SeriesElastic(800.0, 0.4, 5.0, STICKY),
    'j2': SeriesElastic(LinearSpring(300.0), 0.4, 2.0),
    'j3': SeriesElastic(200.0, 0.2),
    'j5': SeriesElastic(300.0, 0.1, 0.01),
}


def test_damped_joints_of_a_robot_are_each_joint_by_itself():
    times = np.linspace(0.0, 0.5, 60)
    motion = joint_motion(times)
    start = {'j1': 0.01}
    effort = inverse_dynamics(MODEL, motion)
    theta, tau, delta = motor_motion(
        Actuators(MODEL, DAMPED), motion, effort, times=times, initial_deflection=start
    )
    assert (theta.shape, tau.shape, delta.shape) == ((60, 3, 5), (60, 1, 5), (60, 3, 5))
    assert delta[0, 0, 0] == 0.01
    for j, name in enumerate(MODEL.joint_names):
        joint, q, Q = DAMPED.get(name, RigidDrive()), motion[:, :3, j], effort[..., j]
        if not joint.needs_times:
            alone = joint.motors(motion[..., j], Q)
            np.testing.assert_allclose(tau[..., j], alone.torque[:, 0, :1], rtol=1e-11)
            np.testing.assert_allclose(theta[..., j], alone.position[:, 0, :3], rtol=1e-12)
            continue
        first = first_deflection(joint.spring, joint.damping, Q[0], start.get(name))
        alone = follow_torque(joint.spring, joint.damping, times, Q, first)
        np.testing.assert_allclose(theta[..., j], q + alone[:, :3], rtol=1e-12)
        expected = joint.motor_inertia * theta[:, 2:, j] + Q[:, :1]
        if joint.friction is not None:
            expected = expected + joint.friction.effort(theta[:, 1:2, j])
        np.testing.assert_allclose(tau[..., j], expected, rtol=1e-11)


def test_robot_with_dampers_alone_gets_one_order_more():
    times = np.linspace(0.0, 0.1, 20)
    actuators = Actuators(MODEL, {'j1': DAMPED['j1'], 'j5': DAMPED['j5']})
    result = motor_motion(actuators, joint_motion(times), times=times, order=1)
    assert result.position.shape == (20, 4, 5)
    assert result.torque.shape == (20, 2, 5)
    assert not result.deflection[..., 2].any()


@pytest.mark.parametrize('chosen', [('j1', 'j5'), ('j2',), tuple(DAMPED), ()])
def test_stream_is_the_same_as_the_whole_motion(chosen):
    actuators = Actuators(MODEL, {name: DAMPED[name] for name in chosen})
    times = np.cumsum(np.random.default_rng(2).uniform(0.002, 0.008, 30))
    motion = joint_motion(times)
    whole = motor_motion(actuators, motion, times=times)
    state = None
    for i in range(30):
        sample, state = motor_step(actuators, times[i], motion[i], state)
        for one, all_of_them in zip(sample, whole):
            size = np.abs(all_of_them).max(axis=(0, 2), keepdims=True)[0]
            # Rounding grows with every derivative by about the rate of the samples.
            rounding = 1e-11 * 100.0 ** np.arange(len(size))[:, None]
            assert np.all(np.abs(one - all_of_them[i]) <= rounding * size)


def test_stream_refuses_to_go_back_and_to_change_its_order():
    actuators = Actuators(MODEL, DAMPED)
    _, state = motor_step(actuators, 1.0, joint_motion(1.0))
    with pytest.raises(MotionError, match='increase'):
        motor_step(actuators, 1.0, joint_motion(1.0), state)
    with pytest.raises(MotionError, match='same order'):
        motor_step(actuators, 1.1, joint_motion(1.1, 6), state)
    with pytest.raises(MotionError, match='one sample'):
        motor_step(actuators, 1.1, joint_motion([1.1, 1.2]), state)


def test_stream_begins_with_the_deflection_that_is_given():
    actuators = Actuators(MODEL, DAMPED)
    sample, _ = motor_step(
        actuators, 0.0, joint_motion(0.0), initial_deflection={'j2': 0.03}
    )
    assert sample.deflection[0, 1] == 0.03


def test_stream_names_the_joint_that_leaves_its_range():
    joints = {'j2': SeriesElastic(LinearSpring(200.0, 0.05), 0.4, 2.0)}
    actuators = Actuators(MODEL, joints)
    zero = np.zeros((3, 5))
    _, state = motor_step(actuators, 0.0, joint_motion(0.0), effort=zero)
    zero[0, 1] = 1e4
    with pytest.raises(DeflectionError, match="Joint 'j2'") as caught:
        motor_step(actuators, 0.1, joint_motion(0.1), state, effort=zero)
    assert caught.value.joint == 'j2'


def test_dampers_need_times_that_fit():
    actuators = Actuators(MODEL, DAMPED)
    with pytest.raises(ActuatorError, match=r'j1, j2, j5.*need the times.*motor_step'):
        motor_motion(actuators, joint_motion([0.0, 0.1]))
    with pytest.raises(ActuatorError, match='initial deflection is given for j3'):
        motor_motion(
            actuators,
            joint_motion([0.0, 0.1]),
            times=[0.0, 0.1],
            initial_deflection={'j3': 0.0},
        )


@pytest.mark.parametrize(
    ('times', 'reason'),
    [
        ([0.0, 0.1], 'shape .*3.*expected one time'),
        ([0.0, 0.2, 0.1], 'increase strictly, but 0.2 s is followed by 0.1 s'),
        ([0.0, 0.0, 0.1], 'increase strictly'),
        ([0.0, np.nan, 0.1], 'holds nan'),
        ([[0.0, 0.1, 0.2]], 'shape'),
        ('now', 'not an array'),
    ],
)
def test_times_that_cannot_be_used_are_refused(times, reason):
    with pytest.raises(MotionError, match=reason):
        motor_motion(Actuators(MODEL, DAMPED), joint_motion([0.0, 0.1, 0.2]), times=times)


@pytest.mark.parametrize(
    ('stiffness', 'error', 'reason'),
    [
        (None, ActuatorError, 'stiffness of j4 is missing'),
        (
            {'j4': [60.0], 'j2': [60.0]},
            ActuatorError,
            'given for j2, whose actuators cannot',
        ),
        ({'j9': [60.0]}, JointNameError, 'unknown joints: j9'),
        ({'j4': 60.0}, ActuatorError, "Joint 'j4': the stiffness is 60.0"),
        ({'j4': [np.nan]}, ActuatorError, "Joint 'j4': the stiffness"),
        ({'j4': ['stiff']}, ActuatorError, "Joint 'j4': the stiffness"),
        ({'j4': [1e-6, 0.0, 0.0]}, DeflectionError, "Joint 'j4'"),
        ({'j4': np.full((7, 3), 60.0)}, MotionError, 'do not fit'),
        (
            {'j4': [60.0]},
            MotionError,
            "stiffness of joint 'j4' with S = 1 .*\\(S = 3, zeros",
        ),
        (
            {'j4': np.ma.masked_equal([60.0, 0], 60.0)},
            ActuatorError,
            "Joint 'j4': the stiffness",
        ),
        ([60.0, 0.0], ActuatorError, r'stiffness is \[60.0.*a mapping of joint names'),
    ],
)
def test_stiffness_that_does_not_suit_the_robot_is_refused(stiffness, error, reason):
    motion = joint_motion([0.4, 0.5])
    with pytest.raises(error, match=reason):
        motor_motion(Actuators(MODEL, EACH), motion, stiffness=stiffness)


def test_long_stiffness_is_not_repeated_in_the_message():
    values = np.full((500, 3), 60.0)
    values[321, 1] = np.inf
    motion = joint_motion(np.linspace(0.0, 1.0, 500))
    with pytest.raises(ActuatorError, match=r'holds inf at index \(321, 1\)') as caught:
        motor_motion(Actuators(MODEL, EACH), motion, stiffness={'j4': values})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize('value', ['x', [0.01, 0.02], np.nan, True, None, 1e10, -101])
def test_initial_deflection_that_is_no_deflection_is_refused(value):
    actuators = Actuators(MODEL, DAMPED)
    given = {'j2': value}
    with pytest.raises(ActuatorError, match="Joint 'j2': The initial deflection is"):
        motor_step(actuators, 0.0, joint_motion(0.0), initial_deflection=given)
    with pytest.raises(ActuatorError, match="Joint 'j2': The initial deflection is"):
        motor_motion(
            actuators, joint_motion([0.0, 0.1]), times=[0.0, 0.1], initial_deflection=given
        )


@pytest.mark.parametrize('time', ['x', np.nan, np.inf, None, True])
def test_time_that_is_no_number_is_refused(time):
    with pytest.raises(MotionError, match='The time is'):
        motor_step(Actuators(MODEL, DAMPED), time, joint_motion(0.0))


def test_state_that_is_none_is_refused():
    with pytest.raises(
        MotionError, match='The state is of type tuple, expected what motor_step'
    ):
        motor_step(Actuators(MODEL, DAMPED), 1.0, joint_motion(1.0), (0.0, 1.0))


@pytest.mark.parametrize('order', [-1, 1.5, '1', True])
def test_order_that_is_no_order_is_refused(order):
    with pytest.raises(MotionError, match='The order is'):
        motor_motion(Actuators(MODEL, {}), joint_motion(0.4), order=order)


CHOSEN = VariableStiffness(Qbmove(a=6.0, k=10.0), 1.0)
SLIDE = RobotModel.from_urdf(
    robots.robot(
        '<link name="base"/>',
        robots.link('a'),
        robots.joint('slide', 'base', 'a', 'prismatic', axis='0 0 1'),
    )
)


@pytest.mark.parametrize(
    ('actuator', 'stiffness', 'reason'),
    [
        (
            SeriesElastic(LinearSpring(1e3, 1e-5), 1.0),
            None,
            r'of [\d.]+ N; .* 0.01 N .*1e-05 m\)',
        ),
        (CHOSEN, None, r'series.*\[N/m\]'),
        (CHOSEN, {'slide': [1.0]}, r'effort of [\d.]+ N with .* N/m is'),
    ],
    ids=['spring', 'missing', 'reach'],
)
def test_messages_about_prismatic_joints_have_their_units(actuator, stiffness, reason):
    actuators = Actuators(SLIDE, {'slide': actuator})
    with pytest.raises(ActuatorError, match=reason) as caught:
        motor_motion(actuators, np.zeros((5, 1)), stiffness=stiffness)
    assert 'rad' not in str(caught.value)
    assert 'N m' not in str(caught.value)


@pytest.mark.parametrize(
    ('effort', 'reason'),
    [
        (np.zeros((3, 4)), r'shape \(3, 4\), expected \(..., E, 5\)'),
        (np.zeros(5), 'shape'),
        (np.zeros((0, 5)), 'E >= 1'),
        (np.full((3, 5), np.nan), 'holds nan at'),
        ('none', 'not an array'),
        (np.ma.masked_equal(np.zeros((3, 5)), 0.0), 'masked'),
        (np.zeros((4, 3, 5)), 'do not fit'),
    ],
)
def test_effort_that_cannot_be_used_is_refused(effort, reason):
    with pytest.raises(MotionError, match=reason):
        motor_motion(Actuators(MODEL, {}), joint_motion([0.4, 0.5]), effort)


def test_motion_is_checked_as_everywhere():
    bad = joint_motion(0.4)
    bad[1, 2] = np.nan
    for effort in (None, np.zeros((3, 5))):
        with pytest.raises(MotionError, match='nan'):
            motor_motion(Actuators(MODEL, {'j1': SeriesElastic(100.0, 0.1)}), bad, effort)
    with pytest.raises(MotionError, match='shape'):
        motor_motion(Actuators(MODEL, {}), np.zeros((5, 4)))


MIMIC = RobotModel.from_urdf(
    robots.robot(
        '<link name="base"/>',
        robots.link('a'),
        robots.link('b'),
        robots.joint('leader', 'base', 'a'),
        robots.joint('follower', 'base', 'b', extra='<mimic joint="leader"/>'),
    )
)


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
        (MODEL, {'j1': 3.0}, ActuatorError, "Joint 'j1': the actuator is 3.0"),
        (MODEL, {'j1': RigidDrive}, ActuatorError, 'expected an Actuator such as'),
        (MODEL, [RigidDrive()], ActuatorError, 'expected a mapping'),
        ('robot', {}, ActuatorError, 'expected a RobotModel'),
    ],
)
def test_actuators_that_do_not_fit_the_robot_are_refused(model, by_joint, error, reason):
    with pytest.raises(error, match=reason):
        Actuators(model, by_joint)


def test_rotor_does_not_count_twice():
    model = MODEL.with_armature({'j2': 0.4})
    with pytest.raises(
        ActuatorError, match=r"Joint 'j2': the model has an armature of 0.4.*twice"
    ):
        Actuators(model, {'j2': SeriesElastic(100.0, 0.4)})
    Actuators(model, {'j2': RigidDrive(), 'j3': SeriesElastic(100.0, 0.4)})


def test_unknown_joint_is_named_when_it_is_asked_for():
    with pytest.raises(JointNameError, match='j9'):
        Actuators(MODEL, {})['j9']


class Doubled(Actuator):
    """Two motors that share the torque of a joint, as users may write one."""

    motor_suffixes = ('_left', '_right')
    motor_inertias = (0.1, 0.1)

    def motors(self, q, effort, stiffness=None):
        position = np.stack((q, -q), axis=-2)
        torque = np.stack((0.5 * effort, -0.5 * effort), axis=-2)
        return Motors(position, torque)

    def deflection(self, q, motors):
        return np.zeros_like(q)


def test_actuator_of_ones_own_takes_its_place():
    motion = joint_motion([0.4, 0.5])
    actuators = Actuators(MODEL, {'j2': Doubled(), 'j4': RigidDrive(0.2)})
    effort = inverse_dynamics(MODEL, motion)
    theta, tau, delta = motor_motion(actuators, motion, effort)
    assert actuators.motor_names == ('j1', 'j2_left', 'j2_right', 'j3', 'j4', 'j5')
    np.testing.assert_array_equal(theta[..., 2], -motion[..., 1])
    np.testing.assert_array_equal(tau[..., 1], 0.5 * effort[..., 1])
    np.testing.assert_allclose(
        tau[..., 4], effort[..., 3] + 0.2 * motion[:, 2:, 3], rtol=1e-14
    )
    assert not delta.any()


def test_derived_actuator_keeps_what_it_overrides():
    class Offset(SeriesElastic):
        def motors(self, q, effort, stiffness=None):
            position, torque = super().motors(q, effort)
            return Motors(position, torque + 100.0)

    plain, other = (
        motor_motion(Actuators(MODEL, {'j2': kind(500.0, 0.1)}), joint_motion(0.4))
        for kind in (SeriesElastic, Offset)
    )
    np.testing.assert_allclose(other.torque - plain.torque, [[0.0, 100.0, 0.0, 0.0, 0.0]])


def test_motors_of_two_joints_with_one_name_are_refused():
    class Clashing(Doubled):
        motor_suffixes = ('', '')

    with pytest.raises(ActuatorError, match='j2 occur twice'):
        Actuators(MODEL, {'j2': Clashing()})


def test_actuators_are_not_to_be_changed_and_may_be_pickled():
    actuators = Actuators(MODEL, EACH)
    with pytest.raises(AttributeError):
        actuators.model = MODEL
    with pytest.raises(TypeError):
        actuators.by_joint['j1'] = RigidDrive()
    with pytest.raises(ValueError, match='read-only'):
        actuators.joint_of_motor[0] = 1
    again = pickle.loads(pickle.dumps(actuators))
    assert again.motor_names == actuators.motor_names
    motion, effort = joint_motion(0.4), np.ones((3, 5))
    a, b = (
        motor_motion(x, motion, effort, stiffness=STIFFNESS) for x in (actuators, again)
    )
    np.testing.assert_array_equal(a.torque, b.torque)


def test_namespace_is_public():
    assert hodyn_ros.actuators.SeriesElastic is SeriesElastic
    for name in hodyn_ros.actuators.__all__:
        assert getattr(hodyn_ros.actuators, name).__doc__
