"""Parameters from recordings, and motions that show them, against robots made with Pinocchio."""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio
import pytest
from support import doubt_cases as doubts
from support import identification_cases as cases
from support.recordings import samples

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import Actuators, LinearSpring, SeriesElastic
from hodyn_ros.analysis import motion_limits
from hodyn_ros.errors import HodynError, UnlimitedError
from hodyn_ros.identification import OnlineEstimator, compare, described, excite, identify

PANDA = RobotModel.from_urdf('panda')
SENSING = cases.Sensing(period=4e-3, noise=0.1)
MOTION = cases.random_motion(5, duration=12.0)
HELD = 1.2, (0.02, -0.03, 0.05)
ROBOT = cases.RigidRobot.random(1)


@cache
def small(seed):
    """A recording of a robot of three joints, and a model whose masses are up to a fifth off."""
    made = doubts.small(seed)
    return made, RobotModel.from_urdf(made.urdf)


def assert_honest(errors):
    """Errors over told deviations: as large as they say, and 95 % in the interval of that name."""
    errors = np.abs(errors)
    assert np.mean(errors < 1.96) > 0.85 and errors.max() < 4.5, errors.round(1)
    assert 0.6 < np.sqrt(np.mean(errors**2)) < 1.5


def test_true_parameters_are_in_the_told_intervals():
    errors = []
    for seed in range(3):
        made, model = small(seed)
        found = identify(model, samples(made.record), validation=())
        truth = found.mapping @ made.parameters
        errors += [(p.value - v) / p.std for p, v in zip(found.parameters, truth)]
        telling = [p.std / abs(p.value) for p in found.parameters if p.share > 0.05]
        assert np.median(telling) < 0.1
    assert_honest(np.array(errors))


def test_torques_of_the_identified_robot_are_those_of_the_true_one_along_other_motions():
    found = identify(PANDA, samples(ROBOT.record(MOTION, SENSING)), validation=())
    motion = cases.random_motion(9, duration=10.0)(np.linspace(0.0, 10.0, 500))
    moving = np.abs(motion[:, 1]) > 0.05  # where Coulomb friction is not smoothed
    truth = ROBOT.torques(motion)
    after, before = (
        np.abs(inverse_dynamics(model, motion[:, :3])[:, 0] - truth)[moving].mean()
        for model in (found.model, PANDA)
    )
    assert after < 0.1 * before and after < 0.03 * np.abs(truth).mean()


def test_springs_and_motors_are_found():
    robot = cases.ElasticRobot.random(2, damping=True)
    springs = zip(PANDA.joint_names, (1.1 * cases.STIFFNESS).tolist())
    inertias = (0.9 * cases.MOTOR_INERTIA).tolist()
    drives = {n: SeriesElastic(LinearSpring(k), B) for (n, k), B in zip(springs, inertias)}
    recorded = samples(robot.record(MOTION, replace(SENSING, period=2e-3)))
    found = identify(PANDA, recorded, actuators=Actuators(PANDA, drives), validation=())
    for name, k, B in zip(PANDA.joint_names, robot.stiffness, robot.motor_inertia):
        drive = found.actuators[name]
        assert drive.spring.stiffness == pytest.approx(k, rel=0.01)
        assert abs(drive.spring.stiffness - k) < 4.0 * found[f'{name} stiffness'].std
        assert drive.motor_inertia == pytest.approx(B, rel=0.03)


@cache
def carrying():
    return cases.RigidRobot(cases.panda(None, HELD), np.zeros(7)).record(MOTION, SENSING)


def test_a_payload_and_friction_are_the_same_off_line_and_on_line():
    record, groups = carrying(), ('payload', 'viscous', 'coulomb', 'offset')
    found = identify(PANDA, samples(record), groups, link='panda_link8', validation=())
    assert abs(found.payload.mass - HELD[0]) < 4.0 * found['panda_link8 mass'].std < 0.1
    np.testing.assert_allclose(found.payload.com, HELD[1], atol=5e-3)
    still = MOTION(np.linspace(0.0, 12.0, 30))[:, :3] * [[1.0], [0.0], [0.0]]
    weight = cases.rigid_torques(cases.panda(None, HELD), still) + cases.GAZ_OFFSET
    held = inverse_dynamics(found.model, still)[:, 0]
    np.testing.assert_allclose(held, weight, atol=0.1)
    estimator = OnlineEstimator(PANDA, link='panda_link8', friction=True, memory=60.0)
    times, efforts = record['time'][::6], record['effort'][::6] - cases.GAZ_OFFSET
    for time, rows, effort in zip(times.tolist(), MOTION(times)[:, :3], efforts):
        estimator.update(round(1e9 * time), rows, effort)
    estimate = estimator.estimate
    link = np.array([HELD[0], *np.multiply(HELD[0], HELD[1])])
    friction = np.column_stack([cases.GAZ_VISCOUS, cases.GAZ_COULOMB]).ravel()
    errors = (estimate.values - np.concatenate([link, friction])) / estimate.std
    assert np.abs(errors).max() < 4.0 and np.sqrt(np.mean(errors**2)) < 1.5
    assert estimate.payload()[0] == pytest.approx(found.payload.mass, abs=0.05)


@pytest.mark.parametrize(
    ('words', 'changes'),
    [
        ('degrees', {'position': np.rad2deg}),
        ('before the gear', {'effort': lambda x: 0.01 * x}),
        ('opposite sign', {'effort': np.negative}),
        ('joints hardly move', {'position': lambda x: 0.0 * x + x[0]}),
        ('clipped', {'effort': lambda x: np.clip(x, -0.2, 0.2)}),
        (
            'too few samples',
            dict.fromkeys(('time', 'position', 'effort'), lambda x: x[:100]),
        ),
        ('another robot', {'names': lambda _: tuple('abc')}),
        ('behind the positions', {'effort': lambda x: np.roll(x, 60, axis=0)}),
        ('no efforts', {'effort': lambda _: None}),
    ],
)
def test_recordings_that_cannot_tell_are_refused_with_the_reason(words, changes):
    made, model = small(0)
    changed = {key: change(made.record[key]) for key, change in changes.items()}
    with pytest.raises(HodynError, match=words):
        identify(model, samples({**made.record, **changed}))


def test_what_a_recording_does_not_show_is_told_and_keeps_its_value():
    made, model = small(0)
    effort = np.copy(made.record['effort'])
    effort[:, 1] = np.nan
    found = identify(model, samples({**made.record, 'effort': effort}), validation=())
    name = f'{model.joint_names[1]} viscous'
    assert np.isinf(found[name].std) and name in ' '.join(found.remarks)
    assert np.isfinite(inverse_dynamics(found.model, np.full((3, 3), 0.1))).all()


def test_a_wrong_torque_constant_is_named_and_a_right_recording_is_not_doubted():
    record = ROBOT.record(MOTION, SENSING)
    assert not identify(PANDA, samples(record)).doubt.explanations
    record['effort'][:, 1] *= 1.05
    found = identify(PANDA, samples(record))
    assert 'torque constant of panda_joint2 (x 1.0' in found.doubt.explanations[0].text
    assert found.doubt.shift.any()


def test_a_comparison_names_the_payload_that_the_model_lacks():
    robot = cases.RigidRobot(cases.panda(None, HELD), np.zeros(7), cases.NO_FRICTION)
    found = compare(PANDA, samples(robot.record(MOTION, SENSING)))
    assert 'of 1.2 kg' in found.explanations[0].text and found.explanations[0].share > 0.9
    size = np.sqrt((found.bands**2).sum(axis=0))
    np.testing.assert_allclose(size, found.residual, rtol=1e-9)


def test_a_description_with_identified_parameters_gives_others_their_torques():
    true = cases.inertial_parameters(ROBOT.model)
    text = described(PANDA.with_inertial_parameters(true), 'panda')
    motion = MOTION(np.linspace(2.0, 8.0, 50))
    expected = cases.rigid_torques(ROBOT.model, motion)
    read = cases.rigid_torques(pinocchio.buildModelFromXML(text), motion)
    np.testing.assert_allclose(read, expected, atol=1e-10 * np.abs(expected).max())


RATES = {'acceleration': 10.0, 'jerk': 5000.0, 'effort_dot': 1000.0}
LIMITS = motion_limits(PANDA, dict.fromkeys(PANDA.joint_names, RATES))


def test_an_excitation_keeps_its_share_of_the_limits_and_tells_what_it_shows():
    wrist = PANDA.joint_names[4:]
    given = {'target': 'payload', 'link': 'panda_link8', 'joints': wrist, 'duration': 6.0}
    found = excite(PANDA, LIMITS, rate=100.0, **given)
    times, motion = found.samples(1000.0)
    torque = cases.rigid_torques(cases.panda(), motion)
    for k, limit in ((1, LIMITS.velocity), (2, LIMITS.acceleration), (3, LIMITS.jerk)):
        assert np.all(np.abs(motion[:, k]) <= 0.8 * (1.0 + 1e-6) * limit)
        slope = np.gradient(motion[:, k - 1], times, axis=0)[2:-2]
        np.testing.assert_allclose(
            slope, motion[2:-2, k], atol=1e-3 * np.abs(motion[:, k]).max()
        )
    assert np.all((LIMITS.lower < motion[:, 0]) & (motion[:, 0] < LIMITS.upper))
    assert np.all(np.abs(torque) <= 0.8 * (1.0 + 1e-6) * LIMITS.effort)
    assert np.abs(motion[[0, -1], 1:]).max() < 1e-9 and np.ptp(motion[:, 0, 4:]) > 0.5
    assert not np.ptp(motion[:, 0, :4], axis=0).any()
    slow = found.samples(100.0)[1]
    loaded = cases.rigid_torques(cases.panda(None, HELD), slow)
    more = np.sum((loaded - cases.rigid_torques(cases.panda(), slow)) ** 2) / 0.1**2
    mass, com = HELD[0], np.array(HELD[1])
    tensor = mass * (com @ com * np.eye(3) - np.outer(com, com))
    body = np.array([mass, *(mass * com), *tensor[np.triu_indices(3)]])
    assert body @ found.information @ body == pytest.approx(more, rel=3e-3)


def test_an_excitation_of_bodies_shows_all_that_can_be_told_apart():
    made, model = small(1)
    limits = motion_limits(model, dict.fromkeys(model.joint_names, RATES))
    found = excite(model, limits, duration=5.0)
    robot = pinocchio.buildModelFromXML(made.urdf)
    data, random = robot.createData(), np.random.default_rng(0)
    rows = [
        np.hstack(
            [pinocchio.computeJointTorqueRegressor(robot, data, *row)]
            + [np.diag(x) for x in (row[1], np.sign(row[1]), np.ones(3), row[2])]
        )
        for row in random.normal(size=(60, 3, 3))
    ]
    assert len(found.names) == np.linalg.matrix_rank(np.vstack(rows), tol=1e-8)
    assert np.isfinite(found.std).all() and found.condition < 1e3


def test_limits_that_an_excitation_needs_are_named():
    free = RobotModel.from_urdf(
        small(1)[0].urdf.replace('velocity="10"', 'velocity="inf"', 1)
    )
    with pytest.raises(UnlimitedError, match='velocity of joint1 has no'):
        excite(free, duration=5.0)
