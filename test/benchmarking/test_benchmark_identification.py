"""The benchmark of identification runs, and the robots that it records obey their equations."""

import importlib
import importlib.util
from dataclasses import replace

import numpy as np
import pytest

for needed in ('pinocchio', 'clarabel'):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f'{needed} is not installed', allow_module_level=True)

from support.identification_cases import (  # noqa: E402
    GAZ,
    LOWER,
    NO_FRICTION,
    UPPER,
    VALIDATION,
    VELOCITY,
    ElasticRobot,
    RigidRobot,
    Sensing,
    base_values,
    columns,
    inertial_parameters,
    panda,
    random_motion,
    rigid_torques,
    same_coulomb,
)


@pytest.mark.slow
def test_tables_are_written(benchmark_module, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    include = tmp_path / 'some.inc'
    arguments = [
        '--size',
        'tiny',
        '--folder',
        str(tmp_path / 'made'),
        '--include',
        str(include),
    ]
    assert benchmark_module.main(arguments) == 0
    text = include.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    for row in ('rigid ', 'elastic ', 'exactly', 'hodyn_ros', 'Pinocchio in a loop'):
        assert any(line.startswith(row) for line in text.splitlines())
    assert (tmp_path / 'made' / 'identification.inc').read_text() == text


@pytest.mark.parametrize('kind', ['rigid', 'elastic'])
def test_what_is_found_is_beside_the_truth(benchmark_module, kind):
    outcome = benchmark_module.judge(kind, 3, 1)
    ratios = np.array([abs(item.error) / item.std for item in outcome.parameters])
    assert len(ratios) > 60
    assert np.mean(ratios <= 3.0) > 0.8
    assert outcome.residual < 1.05 * outcome.of_truth
    matter = [item for item in outcome.parameters if item.share > benchmark_module.MATTERS]
    assert len(matter) > 20


def test_table_counts_estimates_and_those_that_matter(benchmark_module):
    judged = benchmark_module.Judged
    items = [
        judged('stiffness', 2.0, 1.0, 100.0, 0.5),
        judged('stiffness', -4.0, 1.0, 100.0, 0.01),
        judged('offset', 0.0, 1.0, 0.0, 0.0),
    ]
    outcome = benchmark_module.Outcome(items, 0.2, 0.1, 1.0, 3.0)
    rows = [
        line.split()
        for line in benchmark_module.table_of_parameters({'some': [outcome]}).splitlines()
    ]
    assert [
        'some',
        'all',
        '3',
        '66.7',
        '%',
        '2.58',
        '1',
        '1',
        '%',
        '1',
        '%',
        '2',
        '%',
    ] in rows
    assert [
        '\\',
        'stiffness',
        '2',
        '50.0',
        '%',
        '3.16',
        '1',
        '1',
        '%',
        '1',
        '%',
        '2',
        '%',
    ] in rows
    assert ['\\', 'offset', '1', '100.0', '%', '0.00'] in rows


@pytest.mark.parametrize('motion', [GAZ, VALIDATION, random_motion(3)])
def test_motions_are_smooth_within_limits_and_begin_and_end_at_rest(motion):
    t = np.arange(0.0, motion.duration, 1e-3)
    values = motion(t)
    assert np.all((values[:, 0] > LOWER) & (values[:, 0] < UPPER))
    assert np.all(np.abs(values[:, 1]) < VELOCITY)
    h = 1e-4
    differences = (motion(t + h) - motion(t - h))[:, :4] / (2.0 * h)
    scale = np.abs(values[:, 1:]).max(axis=0)
    np.testing.assert_allclose(
        differences[1:-1] / scale, values[1:-1, 1:] / scale, atol=1e-3
    )
    np.testing.assert_array_equal(
        motion(np.array([-1.0, motion.duration + 1.0]))[:, 1:], 0.0
    )


@pytest.mark.parametrize('options', [{}, {'cubic': True}, {'cubic': True, 'damping': True}])
def test_recorded_elastic_robots_move_as_the_equations_of_the_plant_say(options):
    motion = random_motion(4, duration=6.0)
    robot = same_coulomb(ElasticRobot.random(7, **options), 0.0)
    plant = robot.plant()
    t = np.arange(0.0, motion.duration, 0.1)
    torques, _ = robot.torques(motion, t)
    links = motion(t)
    motors = robot.behaviour(motion, motion.duration)[1](t)
    for q, theta, tau in zip(links, motors, torques):
        q2d, theta2d = plant.accelerations(q[0], q[1], theta[0], theta[1], tau)
        np.testing.assert_allclose(q2d, q[2], atol=1e-6)
        np.testing.assert_allclose(theta2d, theta[2], atol=1e-6)


def test_a_robot_in_closed_loop_has_the_torques_of_its_motion():
    motion = random_motion(4, duration=2.0)
    robot = same_coulomb(ElasticRobot.random(7), 0.0)
    exact = Sensing(motor_step=0.0, link_step=0.0)
    times, states, torques = robot.follow(motion, sensing=exact)
    assert np.abs(states[:, 0] - motion(times)[:, 0]).max() < 0.02
    _, _, theta, thetad = np.moveaxis(states, 1, 0)
    spring = robot.stiffness * (theta - states[:, 0])
    seen = robot.sees((times, states, torques), Sensing(sensor_noise=0.0))
    np.testing.assert_allclose(seen['effort'], spring, atol=1e-9)
    # Over a sample, in which the torque is held: trapezoidal rule.
    left = torques - spring - robot.friction(thetad)
    gained = robot.motor_inertia * np.diff(thetad, axis=0) / 1e-3
    mean = torques[:-1] + 0.5 * np.diff(left - torques, axis=0) + (left - torques)[:-1]
    np.testing.assert_allclose(gained, mean, atol=1e-3 * np.abs(torques).max())


def test_links_differ_and_are_physical_and_carry_what_is_given():
    given, other = panda(), panda(5)
    for i in range(1, 8):
        moments = np.linalg.eigvalsh(other.inertias[i].toPseudoInertia().toMatrix())
        assert moments[0] > 0.0
        assert 0.1 < other.inertias[i].mass / given.inertias[i].mass < 2.0
        assert other.inertias[i].mass != given.inertias[i].mass
    with_load = panda(payload=(1.5, (0.0, 0.0, 0.1)))
    added = inertial_parameters(with_load) - inertial_parameters(given)
    np.testing.assert_allclose(added[:60], 0.0, atol=1e-12)
    # The flange is 0.107 m along the axis of joint 7.
    np.testing.assert_allclose(added[60:64], [1.5, 0.0, 0.0, 1.5 * 0.207], atol=1e-12)
    np.testing.assert_allclose(added[[64, 67]], 1.5 * 0.207**2, atol=1e-12)


def test_columns_times_parameters_are_torques():
    robot = RigidRobot.random(2)
    motion = VALIDATION(np.arange(0.5, 19.0, 0.5))
    truth = robot.truth
    kinds = ('armature', 'viscous', 'coulomb', 'offset')
    every = np.concatenate([truth['inertial'], *(truth[kind] for kind in kinds)])
    found = columns(motion, kinds) @ every
    np.testing.assert_allclose(found, robot.torques(motion), atol=1e-12)
    with pytest.raises(AssertionError):
        base_values(every, kinds, list(range(70, 98)))


def test_recordings_show_what_is_wrong_with_them():
    robot = replace(RigidRobot(), friction=NO_FRICTION)
    t = np.arange(0.0, GAZ.duration + 5e-4, 1e-3)
    late = robot.record(GAZ, Sensing(delay=0.0123, limits=20.0))
    exact = robot.torques(GAZ(t - 0.0123))
    np.testing.assert_allclose(late['effort'], np.clip(exact, -20.0, 20.0), atol=1e-12)
    assert np.abs(late['position'] - GAZ(t)[:, 0]).max() < 2.0 * np.pi / 2**20
    noisy = robot.record(
        GAZ, Sensing(noise=0.1, spikes=0.01, gaps=((3.0, 4.0),), jitter=1e-4)
    )
    assert not np.any((noisy['time'] > 3.01) & (noisy['time'] < 3.99))
    assert 0.5e-4 < np.std(np.diff(noisy['time'][:2000])) < 3e-4
    error = noisy['effort'] - robot.torques(GAZ(noisy['time']))
    assert 0.09 < np.median(np.abs(error)) * 1.4826 < 0.11
    assert 0.007 < np.mean(np.abs(error) > 1.0) < 0.013
    np.testing.assert_allclose(
        rigid_torques(robot.model, GAZ(t)) + robot.armature * GAZ(t)[:, 2],
        robot.torques(GAZ(t)),
        atol=1e-12,
    )
