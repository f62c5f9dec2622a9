"""What the README shows runs, and the tables of topics and services are true."""

import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from support.ros_harness import TIMEOUT, Harness

from hodyn_ros import inverse_dynamics

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / 'README.md').read_text(encoding='utf-8')
TOPICS_PAGE = (ROOT / 'doc' / 'node_reference.rst').read_text(encoding='utf-8')
EXAMPLES = re.findall(r'```python\n(.*?)```', README, flags=re.DOTALL)


def test_python_example_runs_anywhere(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    example, elastic = EXAMPLES
    names = {}
    exec(compile(example, 'README.md', 'exec'), names)  # noqa: S102
    assert all(np.shape(names[name]) == (7,) for name in ('Q', 'Qd', 'Q2d'))
    # It goes on with the names of the first one: the springs carry the torques.
    exec(compile(elastic, 'README.md', 'exec'), names)  # noqa: S102
    theta, Q = names['motors'].position, np.array([names['Q'], names['Qd'], names['Q2d']])
    unpushed = inverse_dynamics(names['model'], names['motion'])
    np.testing.assert_allclose(5000.0 * (theta - names['motion'][:3]), unpushed, atol=1e-9)
    assert not np.allclose(Q, unpushed)
    assert capsys.readouterr().out.startswith('[[')


def named_functions():
    """Dotted names of the Python interface that the table promises."""
    for line in README.partition('| from | for |')[2].partition('\n\n')[0].splitlines()[2:]:
        modules, what = line.strip('|').split(' | ')
        for module in re.findall(r'`([^`]+)`', modules):
            for name in re.findall(r'`(\w+)`', what) or ['__all__']:
                yield f'{module}.{name}'


def test_names_of_the_table_import_from_where_it_says():
    names = list(named_functions())
    assert len(names) > 20
    for name in names:
        module, _, last = name.rpartition('.')
        assert last in (*importlib.import_module(module).__all__, '__all__'), name


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
    harness = Harness({'base_motion': True})  # an input that there is not otherwise
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
