"""Parameters are found again in recordings of robots that share no code with hodyn_ros."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from support import doubt_cases as doubts
from support import identification_cases as cases
from support.recordings import samples

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, CubicSpring, LinearSpring, SeriesElastic
from hodyn_ros.errors import HodynError, IdentificationError
from hodyn_ros.files import Samples
from hodyn_ros.identification import identify, with_motors

SENSING = cases.Sensing(period=4e-3, noise=0.1)
ELASTIC = replace(SENSING, period=2e-3)
MOTION = cases.random_motion(5, duration=25.0)
SHORT = cases.random_motion(3, duration=8.0)
PANDA = RobotModel.from_urdf('panda')


def recorded(robot, sensing=SENSING, motion=MOTION, seed=0):
    return samples(robot.record(motion, sensing, seed))


def smallest_moments(parameters):
    """Smallest eigenvalue of the pseudo-inertia of each body, above zero for what can exist."""
    place = np.argsort(cases.IN_ORDER)  # Pinocchio has the same in another order
    return [
        np.linalg.eigvalsh(
            pinocchio.PseudoInertia.FromDynamicParameters(body[place]).toMatrix()
        ).min()
        for body in parameters
    ]


def test_what_the_model_holds_can_be_of_bodies():
    small = doubts.small(2, duration=4.0, noise=3.0)
    found = identify(RobotModel.from_urdf(small.urdf), samples(small.record))
    assert min(smallest_moments(found.model.inertial_parameters.reshape(-1, 10))) > 0.0
    assert found.model.armature.min() >= 0.0
    # Where it does, it fits as well as what was estimated.
    estimates = np.array([p.value for p in found.parameters])
    linear = np.array([p.group != 'delay' for p in found.parameters])
    step = (found.mapping @ found.full - estimates)[linear]
    inside = found.covariance[np.ix_(linear, linear)]
    assert step @ np.linalg.solve(inside, step) < 2.0 * linear.sum()


def test_fixed_links_keep_their_share():
    small = doubts.small(2)
    model = RobotModel.from_urdf(small.urdf)
    fixed = np.zeros((3, 10))
    fixed[2] = model.inertial_parameters[20:] * 1.3  # more than the recording says
    found = identify(model, samples(small.record), fixed=fixed)
    rest = found.model.inertial_parameters.reshape(-1, 10) - fixed
    assert min(smallest_moments(rest)) > 0.0


def drives(law):
    rows = zip(PANDA.joint_names, 1.1 * cases.STIFFNESS, 0.9 * cases.MOTOR_INERTIA)
    return Actuators(PANDA, {name: SeriesElastic(law(k), B) for name, k, B in rows})


def test_cubic_springs_are_found():
    robot = cases.ElasticRobot.random(3, cubic=True)
    groups = 'bodies', 'armature', 'viscous', 'coulomb', 'offset'
    found = identify(
        PANDA,
        recorded(robot, ELASTIC),
        (*groups, 'stiffness', 'cubic_stiffness'),
        actuators=drives(lambda k: CubicSpring(k, 1.0)),
    )
    law = found.actuators['panda_joint2'].spring
    assert law.stiffness == pytest.approx(robot.stiffness[1], rel=0.01)
    assert law.cubic == pytest.approx(robot.cubic[1], rel=0.2)


def test_friction_that_falls_with_the_velocity_is_found():
    robot = cases.RigidRobot.random(1, stribeck=True)
    found = identify(
        PANDA,
        recorded(
            robot, replace(SENSING, noise=0.02), cases.random_motion(5, duration=40.0)
        ),
        ('bodies', 'armature', 'viscous', 'coulomb', 'stribeck', 'offset'),
    )
    law = found.model.friction['panda_joint4']
    v = np.array([[0.03], [0.3]])
    expected = robot.friction(v * np.ones(7))[:, 3]
    np.testing.assert_allclose(law.effort(v)[:, 0], expected, rtol=0.05)


def test_a_tilted_base_is_found():
    robot = cases.RigidRobot.random(1)
    tilt = pinocchio.exp3(np.array([0.03, -0.02, 0.0]))
    robot.model.gravity.linear = tilt @ [0.0, 0.0, -9.81]
    groups = ('bodies', 'armature', 'viscous', 'coulomb', 'offset', 'gravity')
    found = identify(PANDA, recorded(robot, motion=SHORT), groups)
    np.testing.assert_allclose(found.model.gravity, robot.model.gravity.linear, atol=0.02)
    assert np.linalg.norm(found.model.gravity) == pytest.approx(9.81)
    tilts = [p.value for p in found.parameters if p.group == 'gravity']
    assert np.linalg.norm(tilts) == pytest.approx(np.hypot(0.03, 0.02), abs=1e-3)


RANDOM = np.random.default_rng(0)
SPIKES = 50.0 * RANDOM.normal(size=(5000, 3)) * (RANDOM.random((5000, 3)) < 1e-3)
SEEN = np.ones(5000, dtype=bool)
SEEN[1000:1400] = SEEN[3000:3150] = False


@pytest.mark.every_case
@pytest.mark.parametrize(
    'flaw',
    [
        lambda record: {**record, 'effort': record['effort'] + SPIKES},
        lambda record: {
            name: x[SEEN] if name != 'names' else x for name, x in record.items()
        },
        lambda record: {**record, 'position': record['position'].round(4)},
    ],
    ids=['spikes', 'gaps', 'steps'],
)
def test_flaws_of_recordings_do_no_harm(flaw, request):
    small = doubts.small(5)
    found = identify(RobotModel.from_urdf(small.urdf), samples(flaw(small.record)))
    truth = found.mapping @ small.parameters
    errors = np.array([(p.value - v) / p.std for p, v in zip(found.parameters, truth)])
    assert np.mean(np.abs(errors) < 3.0) > 0.9 and np.abs(errors).max() < 6.0
    spikes = 'spikes' in request.node.name
    assert any('spikes' in remark for remark in found.remarks) == spikes


def test_motors_of_another_topic_are_taken_at_the_times_of_the_joints():
    times = np.linspace(0.0, 1.0, 101)
    q, shifted = np.sin(times)[:, None] * np.ones(7), times + 0.5037
    moved = np.sin(shifted)[:, None] * np.ones(7)
    names, start = PANDA.joint_names, 1_000_000_000
    joints = Samples(names, times, q[:, None], effort=q, start=start)
    motors = Samples(names[::-1], shifted, moved[:, None], effort=2.0 * moved, start=start)
    both = with_motors(joints, motors)
    position, torque = both.by_joint('motor_position'), both.by_joint('motor_torque')
    known = np.isfinite(position[:, 0])
    assert known.sum() == 50
    np.testing.assert_allclose(position[known], q[known], atol=2e-5)
    np.testing.assert_allclose(torque[known], 2.0 * q[known], atol=4e-5)


def test_arguments_are_checked():
    one = recorded(cases.RigidRobot(), motion=SHORT)
    for groups, options, words in (
        (('mass',), {}, 'cannot be estimated'),
        (('stiffness',), {}, 'no joint is series elastic'),
        (('payload',), {}, 'name the link'),
        (('payload', 'bodies'), {'link': 'panda_link8'}, 'one of the two'),
        (None, {'link': 'panda_link0'}, 'never moves'),
        (None, {'smoothing': -1.0}, 'smoothing'),
        (None, {'actuators': drives(LinearSpring)}, 'no positions of motors'),
    ):
        with pytest.raises(HodynError, match=words):
            identify(PANDA, one, groups, **options)
    with pytest.raises(IdentificationError, match='no efforts'):
        identify(PANDA, one, validation=replace(one, effort=None))
    with pytest.raises(IdentificationError, match='no recordings'):
        identify(PANDA, [])


def test_springs_that_turn_the_other_way_are_refused():
    record = cases.ElasticRobot.random(2).record(SHORT, ELASTIC, 0)
    record['motor_position'] = 2.0 * record['position'] - record['motor_position']
    with pytest.raises(IdentificationError, match='opposite sign|comes out as -'):
        identify(PANDA, samples(record), actuators=drives(LinearSpring))


def test_what_a_last_link_lacks_is_found_as_a_payload():
    """A description whose last link is too light by 0.25 kg."""
    urdf = Path(__file__).parents[1] / 'cases/23_last_link_too_light/robot.urdf'
    robot = pinocchio.buildModelFromUrdf(str(urdf))
    centre = np.array([0.01, -0.005, 0.04])
    robot.inertias[6] += pinocchio.Inertia(0.25, centre, np.diag([2e-4, 2e-4, 1e-4]))
    data, rng = robot.createData(), np.random.default_rng(3)
    times, rates = (
        np.arange(0.0, 25.0, 0.01),
        2.0 * np.pi * np.array([0.1, 0.17, 0.29, 0.41]),
    )
    size = rng.uniform(0.3, 1.0, (6, 4)) / np.arange(1, 5)
    size *= 0.6 / size.sum(axis=1, keepdims=True)
    angle = times[:, None, None] * rates + rng.uniform(0.0, 2.0 * np.pi, (6, 4))
    q, v, a = (
        (size * rates**r * np.sin(angle + 0.5 * np.pi * r)).sum(axis=2) for r in range(3)
    )
    effort = np.array([pinocchio.rnea(robot, data, *row) for row in zip(q, v, a)])
    effort += 0.3 * v + 0.2 * np.tanh(v / 0.01) + rng.normal(scale=0.05, size=q.shape)
    q += rng.normal(scale=2e-5, size=q.shape)
    names = tuple(robot.names)[1:]
    recording = Samples(names, times, q[:, None], effort=effort, is_measured=True)
    found = identify(RobotModel.from_urdf(urdf), recording, link='l5')
    mass = found['l5 mass']
    assert abs(mass.value - 0.25) < 3.0 * mass.std and mass.std < 0.01
    moments = [found[f'l5 h{axis}'] for axis in 'xyz']
    errors = [(p.value - 0.25 * c) / p.std for p, c in zip(moments, centre)]
    assert np.abs(errors).max() < 3.0
    assert found.payload.mass == pytest.approx(0.25, abs=3.0 * mass.std)
    np.testing.assert_allclose(found.payload.com, centre, atol=0.01)
