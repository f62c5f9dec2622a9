"""What the README shows runs."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from ros_harness import Harness, next_domain

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis.limits import EXTRA_QUANTITIES
from hodyn_ros.ros.settings import ENTRIES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / 'README.md').read_text(encoding='utf-8')
EXAMPLES = re.findall(r'```python\n(.*?)```', README, flags=re.DOTALL)


def test_python_example_runs_anywhere(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    example, elastic, _ = EXAMPLES
    names = {}
    exec(compile(example, 'README.md', 'exec'), names)  # noqa: S102
    assert len(example.strip().splitlines()) <= 12
    assert all(np.shape(names[name]) == (7,) for name in ('Q', 'Qd', 'Q2d'))
    assert np.all(np.isfinite([names['Q'], names['Qd'], names['Q2d']]))
    assert capsys.readouterr().out.startswith('[[')
    # It goes on with the names of the first one: the springs carry the torques.
    exec(compile(elastic, 'README.md', 'exec'), names)  # noqa: S102
    theta, Q = names['motors'].position, np.array([names[name] for name in ('Q', 'Qd', 'Q2d')])
    unpushed = inverse_dynamics(names['model'], names['motion'])
    np.testing.assert_allclose(5000.0 * (theta - names['motion'][:3]), unpushed, atol=1e-9)
    assert not np.allclose(Q, unpushed)
    assert capsys.readouterr().out.startswith('[[')


def named_functions():
    """Dotted names of the Python interface that the table of functions promises."""
    for line in README.partition('| function | what |')[2].partition('\n\n')[0].splitlines()[2:]:
        cell = line.strip('|').partition(' | ')[0]
        codes = re.findall(r'`([^`]+)`', cell)
        modules = [code for code in codes if code.startswith('hodyn_ros')]
        assert len(modules) <= 1
        for code in codes:
            name = code.partition('(')[0].replace('model.', 'RobotModel.')
            name = f'RobotModel{name}' if name.startswith('.') else name
            if name not in modules:
                yield f'{(modules or ["hodyn_ros"])[0]}.{name}'


@pytest.mark.parametrize('name', list(named_functions()))
def test_names_of_the_table_import_from_where_it_says(name):
    package, _, rest = name.partition('.RobotModel.')
    module, _, last = package.rpartition('.')
    if rest:
        assert callable(getattr(RobotModel, rest))
    else:
        namespace = {}
        exec(f'from {module} import {last}', namespace)  # noqa: S102
        assert last in namespace


def test_table_of_functions_is_walked():
    names = list(named_functions())
    assert len(names) > 25
    for name in (
        'hodyn_ros.inverse_dynamics', 'hodyn_ros.RobotModel.from_dh',
        'hodyn_ros.trajectory.plan_motion',
        'hodyn_ros.trajectory.DerivativeEstimator', 'hodyn_ros.analysis.retime',
    ):  # fmt: skip
        assert name in names


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
                [sys.executable, '-c', '\n'.join([EXAMPLES[0], EXAMPLES[-1]])],
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


def rows_of(section):
    """Cells of every row of the tables in a section."""
    text = README.partition(f'### {section}\n')[2].partition('\n#')[0]
    lines = [line for line in text.splitlines() if line.startswith('|') and '`' in line]
    return [[cell.strip() for cell in line.strip('|').split(' | ')] for line in lines]


def test_parameters_that_are_listed_exist_with_these_types_and_defaults():
    section = README.partition('### Parameters')[2].partition('\n## ')[0]
    types = {bool: 'bool', int: 'int', float: 'double', str: 'string', tuple: 'double[3]'}
    entries = {entry.name: entry for entry in ENTRIES}
    listed = []
    for cell, kind, default, _ in rows_of('Parameters'):
        names = re.findall(r'`([\w.]+)`', cell)
        assert names or cell.startswith(('`limits.<joint>.', '`actuators.<joint>.'))
        for name in names:
            listed.append(name)
            if name != 'robot_description':
                entry = entries[name]
                assert kind == types[type(entry.default)], name
                assert default == (json.dumps(entry.default).strip('"') or 'empty'), name
    assert len(listed) >= 12
    assert '`doc/parameters.rst`' in section
    read_only = re.findall(r'((?:`\w+`[, and]*)+) are read-only', section)
    assert re.findall(r'`(\w+)`', ''.join(read_only)) == [
        name for name in listed if name in entries and entries[name].read_only
    ]


def test_limits_that_are_listed_are_all_there_are():
    names = [cell for cell, *_ in rows_of('Parameters') if cell.startswith('`limits.')]
    assert names == [f'`limits.<joint>.{quantity}`' for quantity in EXTRA_QUANTITIES]


def test_topics_and_services_that_are_listed_are_those_of_the_node():
    harness = Harness()
    try:
        client, namespace = harness.client, harness.client.get_namespace()
        nodes = ('hodyn_node', 'hodyn_node_services')

        def seen(ask):
            found = {name: kinds[0] for node in nodes for name, kinds in ask(node, namespace)}
            return {
                name.replace(f'{namespace}/hodyn_node', '~').replace(f'{namespace}/', ''): kind
                for name, kind in found.items()
                if name not in ('/parameter_events', '/rosout', '/clock')
                and not kind.startswith(('rcl_interfaces/', 'type_description_interfaces/'))
            }

        listed = {'in': {}, 'out': {}}
        for direction, name, kind, _ in rows_of('Topics'):
            listed[direction][name.strip('`')] = kind.replace('/', '/msg/')
        services = {
            name.strip('`'): kind.replace('/', '/srv/') for name, kind, _ in rows_of('Services')
        }
        for expected, ask in (
            (listed['in'], client.get_subscriber_names_and_types_by_node),
            (listed['out'], client.get_publisher_names_and_types_by_node),
            (services, client.get_service_names_and_types_by_node),
        ):
            assert expected
            harness.wait(lambda e=expected, a=ask: set(e) <= set(seen(a)), f'see {set(expected)}')
            assert seen(ask) == expected
    finally:
        harness.close()
