"""What the README shows runs."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml
from ros_harness import next_domain

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.ros.settings import ENTRIES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / 'README.md').read_text(encoding='utf-8')
EXAMPLES = re.findall(r'```python\n(.*?)```', README, flags=re.DOTALL)


def test_python_example_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    example, _ = EXAMPLES
    names = {}
    exec(compile(example, 'README.md', 'exec'), names)  # noqa: S102
    assert len(example.strip().splitlines()) <= 12
    assert all(np.shape(names[name]) == (7,) for name in ('Q', 'Qd', 'Q2d'))
    assert np.all(np.isfinite([names['Q'], names['Qd'], names['Q2d']]))
    assert capsys.readouterr().out.startswith('[[')


def test_client_example_gets_the_torques_from_the_node(tmp_path):
    urdf = (ROOT / 'urdf' / 'panda.urdf').read_text(encoding='utf-8')
    parameters_file = tmp_path / 'panda.yaml'
    parameters_file.write_text(
        yaml.safe_dump({'/**': {'ros__parameters': {'robot_description': urdf}}})
    )
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(next_domain())}
    command = [sys.executable, '-m', 'hodyn_ros.ros.node', '--ros-args', '--params-file']
    with subprocess.Popen([*command, str(parameters_file)], env=environment) as node:
        try:
            client = subprocess.run(
                [sys.executable, '-c', '\n'.join(EXAMPLES)],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
        finally:
            node.send_signal(signal.SIGINT)
    direct, answered = client.stdout.split('[[')[1:]
    model = RobotModel.from_urdf(urdf)
    motion = np.zeros((3, 7))
    motion[0], motion[1] = [0.0, -0.3, 0.0, -1.7, 0.0, 1.7, 0.0], 0.5
    received = np.fromstring(answered.replace(']', ' '), sep=' ')
    np.testing.assert_allclose(received, inverse_dynamics(model, motion)[0], atol=1e-6)
    assert direct


def test_pictures_and_files_that_are_named_exist():
    for path in re.findall(r'\]\(([^):]+)\)', README):
        assert (ROOT / path).exists(), path
    for path in re.findall(r'`((?:config|launch|urdf|examples|doc)/[\w./]*)`', README):
        assert (ROOT / path).exists(), path


def test_parameters_that_are_listed_exist_with_these_defaults():
    section = README.partition('### Parameters')[2].partition('\n## ')[0]
    rows = re.findall(r'^\| `(\w+)` \| [\w\[\]]+ \| (.+?) \|', section, flags=re.MULTILINE)
    defaults = {entry.name: entry.default for entry in ENTRIES}
    assert len(rows) >= 7
    for name, default in rows:
        if name != 'robot_description':
            assert default == str(np.array(defaults[name]).tolist()), name
    assert '`doc/parameters.rst`' in section
