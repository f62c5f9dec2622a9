"""What the README shows runs, and the tables of topics and services are true."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import yaml
from support.oracles import taylor_rnea
from support.ros_harness import TIMEOUT, Harness

from hodyn_ros.resources import share_file

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / 'README.md').read_text(encoding='utf-8')
TOPICS_PAGE = (ROOT / 'doc' / 'node_reference.rst').read_text(encoding='utf-8')


def test_python_example_runs_anywhere_and_prints_what_is_shown(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    block = re.compile(r'```python\n(.*?)```\n\n```text\n(.*?)```', re.DOTALL)
    ((example, shown),) = block.findall(README)
    names = {}
    exec(compile(example, 'README.md', 'exec'), names)  # noqa: S102
    assert capsys.readouterr().out == shown
    printed = np.array(shown.replace('[', ' ').replace(']', ' ').split(), float)
    model, xml = names['model'], share_file('urdf/panda.urdf').read_text()
    expected = taylor_rnea(xml, model.joint_names, model.gravity, names['motion'])
    np.testing.assert_allclose(printed.reshape(3, 7), expected, atol=0.0051)


def test_times_of_the_table_are_those_of_the_benchmark():
    text = (ROOT / 'doc' / 'benchmarks' / 'panda.inc').read_text(encoding='utf-8')
    rows = (re.split(r' {2,}', line) for line in text.splitlines())
    times = {row[0]: row[2] for row in rows if len(row) > 3}
    cells = re.search(r'^\| Panda, one sample .*', README, re.MULTILINE)[0].split(' | ')[1:]
    shown = [float(cell.strip(' |').split(',')[0]) for cell in cells if cell.strip(' |')]
    measured = (
        'hodyn_ros generated C, one by one',
        'Pinocchio C++ rnea',
        'CasADi C loop',
        'MuJoCo mj_inverse C loop',
    )
    np.testing.assert_allclose(
        shown, [float(times[name]) for name in measured], atol=0.0051
    )


def test_colcon_finds_all_packages_in_a_clone_and_builds_without_ros2_control():
    settings = yaml.safe_load((ROOT / 'colcon_defaults.yaml').read_text(encoding='utf-8'))
    packages = {
        path.parent for path in (*ROOT.glob('package.xml'), *ROOT.glob('*/package.xml'))
    }
    for verb in ('list', 'graph', 'info', 'build', 'test'):
        paths = settings[verb]['base-paths']
        assert {(ROOT / path).resolve() for path in paths} == packages, verb
    for verb in ('build', 'test'):
        assert settings[verb]['packages-up-to'] == ['hodyn_ros']


def test_pictures_and_files_that_are_named_exist():
    for path in re.findall(r'\]\(([^):]+)\)|src(?:set)?="([^":]+)"', README):
        path = ''.join(path)
        assert (ROOT / path).exists(), path
    for path in re.findall(r'`((?:config|launch|urdf|examples|doc)/[\w./]*)`', README):
        assert (ROOT / path).exists(), path


def rows_of(column):
    """Cells of every row of the table of topics or services whose header has a column."""
    tables = re.findall(r'^(=[= ]+)\n(.+)\n\1\n((?:.+\n)+?)\1$', TOPICS_PAGE, re.MULTILINE)
    for _, head, body in tables:
        if column in head.split():
            lines = (line for line in body.splitlines() if not line.startswith(' '))
            return [re.split(r' {2,}', line.replace('``', '`')) for line in lines]
    raise AssertionError(f'no table has {column}')


def test_topics_and_services_that_are_listed_are_those_of_the_node():
    # Inputs that there are not otherwise.
    harness = Harness({'base_motion': True, 'speed_scaling': True})
    try:
        assert harness.service.wait_for_service(TIMEOUT)
        client, namespace = harness.client, harness.client.get_namespace()
        nodes = ('hodyn_node', 'hodyn_node_services')

        names = harness.client.get_node_names
        harness.wait(lambda: set(nodes) <= set(names()), 'see both nodes')

        def seen(ask):
            found = {
                name: kinds[0] for node in nodes for name, kinds in ask(node, namespace)
            }
            return {
                name.replace(f'{namespace}/hodyn_node', '~').replace(
                    f'{namespace}/', ''
                ): kind
                for name, kind in found.items()
                if name not in ('/parameter_events', '/rosout', '/clock')
                and not kind.startswith(('rcl_interfaces/', 'type_description_interfaces/'))
            }

        listed = {'in': {}, 'out': {}}
        for direction, name, kind, *_ in rows_of('topic'):
            if find_spec(kind.partition('/')[0]):  # control_msgs is not everywhere
                listed[direction][name.strip('`')] = kind.replace('/', '/msg/')
        services = {
            name.strip('`'): kind.replace('/', '/srv/')
            for name, kind, _ in rows_of('service')
        }
        for expected, ask in (
            (listed['in'], client.get_subscriber_names_and_types_by_node),
            (listed['out'], client.get_publisher_names_and_types_by_node),
            (services, client.get_service_names_and_types_by_node),
        ):
            assert expected
            harness.wait(
                lambda e=expected, a=ask: set(e) <= set(seen(a)), f'see {set(expected)}'
            )
            assert seen(ask) == expected
    finally:
        harness.close()
