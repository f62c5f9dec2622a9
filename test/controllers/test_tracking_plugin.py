"""TrackingController, alone and with a generated law, runs with stand-ins for ROS."""

import re
import subprocess
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from scipy.interpolate import BPoly
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.plugins import HERE, HUMBLE, KILTED, PACKAGE, run_plugin

from hodyn_ros import ModelWarning, RobotModel, generate_code
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.cli import run as command
from hodyn_ros.control import JointImpedance, tracking_controller
from hodyn_ros.errors import RequestError
from hodyn_ros.trajectory import fit_spline

needs_compilers = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)
OF_LAW = {'torque_limits': [80.0, 40.0], 'delay': 1e-3}


@pytest.fixture(scope='module')
def actuators():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf('two_link')
    springs = {name: SeriesElastic(1000.0, 0.5) for name in model.joint_names}
    return Actuators(model, springs)


@needs_compilers
@pytest.mark.parametrize('version', [HUMBLE, KILTED])
def test_sanitizers_find_nothing_in_the_life_of_a_controller(version, tmp_path):
    assert run_plugin(tmp_path, version, HERE / 'tracking_plugin.cpp') == 'correct\n'


@pytest.fixture(scope='module')
def trajectory(tmp_path_factory):
    """Motion at some times, shape (M, 5, n), by samples (5, N, n) at their times; or a refusal."""
    program = tmp_path_factory.mktemp('trajectory') / 'trajectory'
    folder = f'-I{PACKAGE / "include"}'
    source = HERE / 'trajectory.cpp'
    run(CPP_COMPILERS[0], '-std=c++17', *WARNINGS, folder, source, '-o', program)

    def evaluate(times, values, asked):
        _, N, n = values.shape
        numbers = [*times, *values.ravel()]
        given = [n, N, *map(float.__repr__, map(float, numbers))]
        given += [round(1e9 * t) for t in asked]
        text = ' '.join(map(str, given))
        result = subprocess.run(
            [program], input=text, capture_output=True, text=True, timeout=60
        )
        if result.returncode == 2:
            return result.stdout.strip()
        assert result.returncode == 0, result.stderr
        found = np.array([line.split() for line in result.stdout.splitlines()], dtype=float)
        return found.reshape(-1, 5, n)[:, :, ::-1]

    return evaluate


@needs_compilers
def test_motion_between_samples_is_that_of_scipy(trajectory):
    random = np.random.default_rng(3)
    times = np.cumsum(random.uniform(0.1, 0.6, 8))
    values = random.normal(size=(5, 8, 3)) * [[[1]], [[2]], [[5]], [[10]], [[50]]]
    values[1:, -1] = 0.0
    asked = np.sort(random.uniform(times[0] - 0.2, times[-1] + 0.2, 400))
    asked = asked[asked < times[-1]].round(9)
    found = trajectory(times, values, [*asked, times[-1] + 0.1])
    path = BPoly.from_derivatives(times, values.transpose(1, 0, 2))
    inside = (asked > times[0]) & (asked < times[-1])
    assert 0 < inside.sum() < len(asked)
    at_rest = values[:, -1] * [[1.0], *[[0.0]] * 4]
    np.testing.assert_allclose(found[-1], at_rest, rtol=0.0, atol=1e-12)
    for k in range(5):
        expected = path(np.clip(asked, times[0], times[-1]), nu=k)
        expected *= inside[:, None] | (k == 0)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found[:-1, k], expected, rtol=0.0, atol=1e-9 * scale)


@needs_compilers
@pytest.mark.parametrize(
    ('count', 'decimals', 'miss'),
    [(2001, 6, 3e-6), (41, 17, 1e-12), (2001, 9, 3e-9), (40001, 17, 1e-8)],
)
def test_samples_of_rounded_numbers_give_the_motion_that_was_rounded(
    trajectory, count, decimals, miss
):
    """Snap decides the torque of a motor behind a spring; it was 1e3 to 1e8 times too large."""
    way = fit_spline(
        [0.0, 0.6, 1.1, 2.0], [[0.3, 0.0], [0.6, -0.4], [0.2, 0.1], [0.4, 0.3]]
    )
    times, fine = np.linspace(0.0, 2.0, count), np.linspace(0.0, 1.9999, 1500).round(9)
    values, asked = way(times).transpose(1, 0, 2), way(fine)
    found = trajectory(times, values.round(decimals), fine)
    assert np.abs(found[:, 0] - asked[:, 0]).max() < miss
    largest, own = (np.abs(motion[:, 4]).max(axis=0) for motion in (found, asked))
    assert (largest < 1.3 * own + 1.0).all()
    values[0, :, 1] = values[0, :, 1].round(2)
    if count == 2001:
        expected = (
            r'too dense for their digits: between .* s the snap of 1 is .*about 0\.01'
        )
        assert re.search(expected, trajectory(times, values, [0.5]))


def test_generated_package_says_everywhere_the_same(actuators, tmp_path):
    law = tracking_controller(actuators, 2e-3, **OF_LAW)
    generate_code(actuators.model, tmp_path, name='Arm', controller=law, ros2_control=True)
    texts = {
        path.relative_to(tmp_path).as_posix(): path.read_text()
        for path in tmp_path.rglob('*')
        if path.is_file()
    }
    assert not [name for name, text in texts.items() if re.search(r'@\w+@', text)]
    package = ElementTree.fromstring(texts['package.xml'])
    assert package.findtext('name') == 'arm_tracking_controller'
    library = ElementTree.fromstring(texts['plugin.xml'])
    assert library.get('path') == 'arm_tracking_controller'
    assert library.find('class').get('type') in texts['src/plugin.cpp']
    config = yaml.safe_load(texts['config/controllers.yaml'])
    manager = config['controller_manager']['ros__parameters']
    assert manager['update_rate'] == 500
    assert manager['tracking_controller']['type'] == library.find('class').get('name')
    known = yaml.safe_load(
        (PACKAGE / 'src/tracking_controller_parameters.yaml').read_text()
    )
    defaults = {
        name: p['default_value'] for name, p in known['tracking_controller'].items()
    }
    assert config['tracking_controller']['ros__parameters'] == defaults


def test_a_package_is_made_around_a_tracking_law_alone(actuators, tmp_path):
    law = JointImpedance(actuators, 1e-3, stiffness=100.0, torque_limits=[80.0, 40.0])
    for other, name in ((law, 'JointImpedance'), (None, 'NoneType')):
        with pytest.raises(RequestError, match=f'not {name}'):
            generate_code(actuators.model, tmp_path, controller=other, ros2_control=True)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_package(tmp_path, capsys):
    folder = str(tmp_path / 'package')
    arguments = ['generate', 'panda', '--ros2-control', folder]
    assert command(arguments) != 0
    assert 'give --config FILE with actuators' in capsys.readouterr().err
    other = str(tmp_path / 'code')
    assert command(['generate', 'panda', '--config', 'panda_sea', '-o', other]) == 0
    assert 'actuators of --config are for --ros2-control alone' in capsys.readouterr().err
    assert command([*arguments, '--config', 'panda_sea', '--delay', '0.001']) == 0
    written = capsys.readouterr().out.splitlines()
    assert f'{folder}/src/plugin.cpp' in written
    header = (tmp_path / 'package/kernel/panda_dynamics.h').read_text()
    assert '#define PANDA_LEAD 0.0015' in header
