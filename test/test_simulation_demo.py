"""The demonstration of tracking with elastic joints: its motion, its loops, its comparison."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('matplotlib', reason='matplotlib is not installed')
if importlib.util.find_spec('mujoco') is None:
    pytest.skip('mujoco is not installed', allow_module_level=True)

from hodyn_ros import RobotModel  # noqa: E402
from hodyn_ros.errors import SimulationError  # noqa: E402
from hodyn_ros.resources import share_file  # noqa: E402
from hodyn_ros.simulation.pictures import render  # noqa: E402
from hodyn_ros.simulation.plant import ElasticPlant  # noqa: E402
from hodyn_ros.simulation.tracking import simulate_tracking  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope='module')
def demo():
    sys.path.insert(0, str(ROOT / 'examples'))
    yield importlib.import_module('sea_demo')
    sys.path.remove(str(ROOT / 'examples'))


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf(share_file('urdf/panda.urdf'))


@pytest.fixture
def motion(demo):
    return demo.PoseToPose(demo.POSES, demo.TIMES)


def test_the_motion_rests_in_its_poses_and_keeps_the_limits_of_the_panda(demo, panda, motion):
    np.testing.assert_allclose(motion(demo.TIMES)[:, 0], demo.POSES, atol=1e-12)
    np.testing.assert_allclose(motion(demo.TIMES)[:, 1:], 0.0, atol=1e-6)
    samples = motion(np.linspace(0.0, demo.TIMES[-1], 2000))
    assert np.all(samples[:, 0] > panda.limits.lower)
    assert np.all(samples[:, 0] < panda.limits.upper)
    assert np.all(np.abs(samples[:, 1]) < panda.limits.velocity)


@pytest.mark.parametrize('order', range(4))
def test_each_order_of_the_motion_is_the_derivative_of_the_one_before(motion, order):
    times, h = np.linspace(0.1, 2.5, 50), 1e-4
    difference = (motion(times + h)[:, order] - motion(times - h)[:, order]) / (2.0 * h)
    expected = motion(times)[:, order + 1]
    np.testing.assert_allclose(difference, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize('stiffness', [2000.0, 5000.0, 20000.0])
@pytest.mark.parametrize('is_noisy', [False, True])
def test_each_derivative_lowers_the_tracking_error(demo, panda, motion, stiffness, is_noisy):
    actuators = demo.make_actuators(panda, stiffness)
    sensors = demo.NOISE if is_noisy else None

    def error(name):
        controller = demo.make_controller(name, panda, actuators)
        return simulate_tracking(
            ElasticPlant(panda, actuators), controller, motion, 0.8, demo.PERIOD, sensors
        ).rms_error

    none, first, second = (
        error(name)
        for name in ('feed-forward Q', "feed-forward Q, Q'", "feed-forward Q, Q', Q''")
    )
    assert none > 10.0 * first
    assert first > (2.0 if is_noisy else 8.0) * second


def test_exact_linearisation_follows_without_noise(demo, panda, motion):
    actuators = demo.make_actuators(panda, 5000.0)
    controller = demo.make_controller('exact linearisation', panda, actuators)
    record = simulate_tracking(ElasticPlant(panda, actuators), controller, motion, 0.8)
    assert record.peak_error < 2e-6


def test_a_loop_that_breaks_down_is_in_the_table(demo, panda, motion):
    actuators = demo.make_actuators(panda, 5000.0)
    controller = demo.make_controller('feed-forward Q', panda, actuators)
    record = simulate_tracking(ElasticPlant(panda, actuators), controller, motion, 0.01)
    lines = demo.table(
        [
            demo.Run(5000.0, 'feed-forward Q', 'exact', record),
            demo.Run(5000.0, 'feed-forward Q', 'noise', None),
        ]
    ).splitlines()
    (line,) = (line for line in lines if 'feed-forward Q ' in line)
    assert 'unstable' in line
    assert f'{record.peak_torque:.1f}' in line


def test_in_process_controllers_are_those_of_the_node(demo, panda):
    settings = pytest.importorskip('hodyn_ros.ros.flatness_controller_settings')
    actuators = demo.make_actuators(panda, 5000.0)
    rng = np.random.default_rng(5)
    reference = 0.1 * rng.normal(size=(5, 7))
    q, qd, thetad = 0.1 * rng.normal(size=(3, 7))
    for name, (kind, _) in demo.CONTROLLERS.items():
        values = {
            'controller': kind, 'bandwidth': demo.bandwidth_of(name), 'lead': demo.PERIOD / 2.0,
        }
        there = settings.make_controller(
            panda, actuators, settings.make_settings(values), np.full(7, np.inf)
        )
        here = demo.make_controller(name, panda, actuators)
        state = (reference, q, qd, q + 1e-3, thetad)
        np.testing.assert_array_equal(here.command(*state), there.command(*state))


@pytest.mark.slow
def test_over_topics_it_comes_out_the_same(demo, panda, motion, monkeypatch, capsys):
    pytest.importorskip('rclpy')
    from ros_harness import next_domain

    monkeypatch.setenv('ROS_DOMAIN_ID', str(next_domain()))
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join([str(ROOT), *sys.path]))
    over_ros = importlib.import_module('sea_demo_over_ros')
    actuators = demo.make_actuators(panda, 5000.0)
    runs = []
    for name in ("feed-forward Q, Q', Q''", 'exact linearisation'):
        controller = demo.make_controller(name, panda, actuators)
        record = simulate_tracking(
            ElasticPlant(panda, actuators), controller, motion, 0.3, demo.PERIOD
        )
        runs.append(demo.Run(5000.0, name, 'exact', record))
    urdf = share_file('urdf/panda.urdf').read_text(encoding='utf-8')
    assert over_ros.compare(urdf, panda, motion, runs, demo.PERIOD) == 0
    assert 'All agree' in capsys.readouterr().out


@pytest.mark.slow
def test_the_script_writes_a_table_and_pictures(tmp_path):
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    arguments = ['--stiffness', '3000', '--images', '2', '--folder', str(tmp_path / 'some')]
    result = subprocess.run(
        [sys.executable, str(ROOT / 'examples' / 'sea_demo.py'), *arguments],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300.0,
    )
    if 'OpenGL without a window' in result.stderr:
        pytest.skip('there is no OpenGL without a window')
    assert result.returncode == 0, result.stderr
    table = (tmp_path / 'some' / 'table.txt').read_text()
    assert table in result.stdout
    assert table.count('3000 ') == 7
    pictures = ['errors', 'summary', 'torques', 'robot/frame_0000', 'robot/frame_0001']
    for name in pictures:
        assert (tmp_path / 'some' / f'{name}.png').read_bytes()[:4] == b'\x89PNG'


def test_pictures_show_the_robot_where_it_is(panda):
    plant = ElasticPlant(panda, {}, visible=True)
    before = plant.q
    q = np.array([[0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785], [1.0, 0.3, 0.0, -1.0, 0, 1, 0]])
    try:
        first, second, again = render(plant, q[[0, 1, 0]], 160, 120)
    except SimulationError as error:
        pytest.skip(str(error))
    assert first.shape == (120, 160, 3)
    np.testing.assert_array_equal(first, again)
    assert np.mean(np.any(first != second, axis=-1)) > 0.01
    np.testing.assert_array_equal(plant.q, before)


def test_a_plant_without_shapes_is_not_drawn(panda):
    with pytest.raises(SimulationError, match='visible=True'):
        next(render(ElasticPlant(panda, {}), np.zeros(7)))
