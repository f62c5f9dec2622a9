"""Parameters are found again in recordings of robots that share no code with hodyn_ros."""

from dataclasses import replace

import numpy as np
import pinocchio
import pytest
from support import identification_cases as cases
from support.recordings import samples

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, CubicSpring, LinearSpring, SeriesElastic
from hodyn_ros.errors import HodynError, IdentificationError
from hodyn_ros.files import Samples
from hodyn_ros.identification import identify, with_motors
from hodyn_ros.identification.consistency import pseudo_inertia

SENSING = cases.Sensing(period=4e-3, noise=0.1)
MOTION = cases.random_motion(5, duration=25.0)


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf('panda')


@pytest.fixture(scope='module')
def robot():
    return cases.RigidRobot.random(1)


def recorded(robot, sensing=SENSING, motion=MOTION, seed=0):
    return samples(robot.record(motion, sensing, seed))


def truth(found, robot, **more):
    """Parameters of a robot in the order of those that were found."""
    values = {**robot.truth, 'stribeck_velocity': robot.truth['velocity'], **more}
    values.setdefault('armature', values.get('motor_inertia'))
    values.setdefault('cubic_stiffness', values.get('cubic'))
    names = [
        'inertial' if column.group == 'bodies' else column.name
        for column in found.columns
        if column.name == 'mass' or column.group != 'bodies'
    ]
    names = dict.fromkeys(names)
    values.setdefault('delay', 0.0)
    return np.concatenate([np.ravel(values.get(name, np.zeros(7))) for name in names])


def misses(found, robot, **more):
    """Errors of the base parameters in standard deviations."""
    expected = found.mapping @ truth(found, robot, **more)
    return np.array([(p.value - v) / p.std for p, v in zip(found.parameters, expected)])


def assert_honest(errors, share=0.93):
    assert np.mean(np.abs(errors) < 3.0) >= share, errors.round(1)
    assert np.abs(errors).max() < 6.0
    assert 0.5 < np.sqrt(np.mean(errors**2)) < 1.7


def test_what_the_model_holds_can_be_of_bodies(model, robot):
    short = cases.random_motion(3, duration=8.0)
    found = identify(model, recorded(robot, replace(SENSING, noise=3.0), short))
    bodies = found.model.inertial_parameters.reshape(-1, 10)
    assert np.linalg.eigvalsh(pseudo_inertia(bodies)).min() > 0.0
    assert found.model.armature.min() >= 0.0
    # Where it does, it fits as well as what was estimated.
    estimates = np.array([p.value for p in found.parameters])
    linear = np.array([p.group != 'delay' for p in found.parameters])
    step = (found.mapping @ found.full - estimates)[linear]
    inside = found.covariance[np.ix_(linear, linear)]
    assert step @ np.linalg.solve(inside, step) < 2.0 * linear.sum()


def test_fixed_links_keep_their_share(model, robot):
    fixed = np.zeros((7, 10))
    fixed[6] = model.inertial_parameters[60:] * 1.3  # more than the recording says
    found = identify(model, recorded(robot), fixed=fixed)
    rest = found.model.inertial_parameters.reshape(-1, 10) - fixed
    assert np.linalg.eigvalsh(pseudo_inertia(rest)).min() > 0.0


def drives(model, cubic=False):
    springs = [
        CubicSpring(k, 1.0) if cubic else LinearSpring(k) for k in 1.1 * cases.STIFFNESS
    ]
    rows = zip(model.joint_names, springs, 0.9 * cases.MOTOR_INERTIA)
    return Actuators(model, {name: SeriesElastic(law, B) for name, law, B in rows})


def test_cubic_springs_are_found(model):
    robot = cases.ElasticRobot.random(3, cubic=True)
    found = identify(
        model,
        recorded(robot, replace(SENSING, period=2e-3)),
        (
            'bodies',
            'armature',
            'viscous',
            'coulomb',
            'offset',
            'stiffness',
            'cubic_stiffness',
        ),
        actuators=drives(model, cubic=True),
    )
    assert_honest(misses(found, robot), 0.9)
    law = found.actuators['panda_joint2'].spring
    assert law.cubic == pytest.approx(robot.cubic[1], rel=0.2)


def test_friction_that_falls_with_the_velocity_is_found(model):
    robot = cases.RigidRobot.random(1, stribeck=True)
    motion = cases.random_motion(5, duration=40.0)
    found = identify(
        model,
        recorded(robot, replace(SENSING, noise=0.02), motion),
        ('bodies', 'armature', 'viscous', 'coulomb', 'stribeck', 'offset'),
    )
    errors = misses(found, robot)
    own = [k for k, p in enumerate(found.parameters) if p.group in ('stribeck', 'coulomb')]
    assert np.abs(errors[own]).max() < 5.0
    law = found.model.friction['panda_joint4']
    assert 'Stribeck' in str(law)
    v = np.array([[0.03], [0.3]])
    expected = robot.friction(v * np.ones(7))[:, 3]
    np.testing.assert_allclose(law.effort(v)[:, 0], expected, rtol=0.05)


def test_a_tilted_base_is_found(model):
    axis = pinocchio.exp3(np.array([0.03, -0.02, 0.0]))
    robot = cases.RigidRobot.random(1)
    robot.model.gravity.linear = axis @ np.array([0.0, 0.0, -9.81])
    groups = ('bodies', 'armature', 'viscous', 'coulomb', 'offset', 'gravity')
    found = identify(model, recorded(robot), groups)
    np.testing.assert_allclose(found.model.gravity, robot.model.gravity.linear, atol=0.02)
    assert np.linalg.norm(found.model.gravity) == pytest.approx(9.81)
    tilts = [p.value for p in found.parameters if p.group == 'gravity']
    assert np.linalg.norm(tilts) == pytest.approx(np.hypot(0.03, 0.02), abs=1e-3)


@pytest.mark.parametrize(
    'fault',
    [
        {'gaps': ((5.0, 6.0), (15.0, 15.3))},
        {'jitter': 3e-4},
        {'spikes': 1e-3},
        {'link_step': 1e-4},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_flaws_of_recordings_do_no_harm(model, robot, fault):
    sensing = replace(SENSING, period=2e-3, **fault)
    found = identify(model, recorded(robot, sensing))
    assert_honest(misses(found, robot), 0.9)
    assert any('spikes' in remark for remark in found.remarks) == ('spikes' in fault)


def test_motors_of_another_topic_are_taken_at_the_times_of_the_joints(model):
    times = np.linspace(0.0, 1.0, 101)
    q = np.sin(times)[:, None] * np.ones(7)
    joints = Samples(model.joint_names, times, q[:, None], effort=q, start=1_000_000_000)
    shifted = times + 0.5037
    moved = np.sin(shifted)[:, None] * np.ones(7)
    motors = Samples(
        model.joint_names[::-1],
        shifted,
        moved[:, None],
        effort=2.0 * moved,
        start=1_000_000_000,
    )
    both = with_motors(joints, motors)
    known = np.isfinite(both.motor_position[:, 0])
    assert known.sum() == 50
    np.testing.assert_allclose(both.motor_position[known], q[known], atol=2e-5)
    np.testing.assert_allclose(both.motor_torque[known], 2.0 * q[known], atol=4e-5)


def test_arguments_are_checked(model, robot):
    one = recorded(robot, motion=cases.random_motion(3, duration=8.0))
    for groups, options, words in (
        (('mass',), {}, 'cannot be estimated'),
        (('stiffness',), {}, 'no joint is series elastic'),
        (('payload',), {}, 'name the link'),
        (('payload', 'bodies'), {'link': 'panda_link8'}, 'one of the two'),
        (None, {'link': 'panda_link0'}, 'never moves'),
        (None, {'link': 'nowhere'}, 'no link'),
        (None, {'smoothing': -1.0}, 'smoothing'),
        (None, {'actuators': drives(model)}, 'no positions of motors'),
    ):
        with pytest.raises(HodynError, match=words):
            identify(model, one, groups, **options)
    with pytest.raises(IdentificationError, match='no efforts'):
        identify(model, one, validation=replace(one, effort=None))
    with pytest.raises(IdentificationError, match='no recordings'):
        identify(model, [])


def test_wrong_springs_are_refused(model):
    robot = cases.ElasticRobot.random(2)
    record = robot.record(MOTION, replace(SENSING, period=2e-3), 0)
    turned = {
        **record,
        'motor_position': 2.0 * record['position'] - record['motor_position'],
    }
    with pytest.raises(IdentificationError, match='opposite sign|comes out as -'):
        identify(model, samples(turned), actuators=drives(model))
