"""What the node may do, and what it does not: permissions, files, and running what it is sent."""

from __future__ import annotations

import ast
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from support import robots
from support.imports import find_imports, find_modules, part_of
from support.ros_harness import TIMEOUT, next_domain

from hodyn_ros import RobotModel
from hodyn_ros.errors import ModelError
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.resources import share_file
from hodyn_ros.ros.nodes.flatness_controller import FlatnessControllerNode
from hodyn_ros.ros.nodes.hodyn_node import HodynNode

SOURCE = Path(__file__).resolve().parents[2] / 'hodyn_ros'

# Permissions

# Nodes describe their types from Iron on.
HAS_TYPES = find_spec('rclpy.type_description_service') is not None


NODES = {'/hodyn_node': HodynNode, '/flatness_controller': FlatnessControllerNode}


def policy():
    return ElementTree.parse(share_file('config/sros2_policy.xml')).getroot()


def profiles(path):
    (enclave,) = (item for item in policy().iter('enclave') if item.get('path') == path)
    return list(enclave.iter('profile'))


def granted(path):
    """Set of (node, action, name) that the policy allows in an enclave."""
    permissions = set()
    for profile in profiles(path):
        namespace, node = profile.get('ns'), profile.get('node')
        for group in profile:
            actions = [action for action, rule in group.items() if rule == 'ALLOW']
            for item in group:
                name = item.text
                if name.startswith('~/'):
                    name = f'{namespace.rstrip("/")}/{node}/{name[2:]}'
                elif not name.startswith('/'):
                    name = f'{namespace.rstrip("/")}/{name}'
                permissions |= {(node, action, name) for action in actions}
    return permissions


def used(observer, nodes):
    """Set of (node, action, name) that nodes do, as others see them."""
    actions = {
        'publish': observer.get_publisher_names_and_types_by_node,
        'subscribe': observer.get_subscriber_names_and_types_by_node,
        'reply': observer.get_service_names_and_types_by_node,
        'request': observer.get_client_names_and_types_by_node,
    }
    found = set()
    for node in nodes:
        for action, query in actions.items():
            try:
                found |= {(node, action, name) for name, _ in query(node, '/')}
            except rclpy.node.NodeNameNonExistentError:
                pass  # not discovered yet
    return found


@pytest.fixture(scope='module')
def context():
    made = Context()
    rclpy.init(context=made, domain_id=next_domain())
    yield made
    rclpy.shutdown(context=made)


@pytest.mark.parametrize('path', NODES)
def test_policy_grants_exactly_what_the_node_does(context, path):
    node = NODES[path](
        context=context,
        parameter_overrides=[
            Parameter('use_sim_time', value=True),
            Parameter('robot_description', value=robots.TWO_LINK),
            Parameter('base_motion', value=True),  # inputs that there are not otherwise
            Parameter('speed_scaling', value=True),
        ],
    )
    observer = Node('observer', context=context)
    executor = SingleThreadedExecutor(context=context)
    for item in (node, observer):
        executor.add_node(item)
    names = {profile.get('node') for profile in profiles(path)}
    expected = {
        grant
        for grant in granted(path)
        if (HAS_TYPES or not grant[2].endswith('/get_type_description'))
    }
    deadline = time.monotonic() + TIMEOUT
    try:
        while used(observer, names) != expected and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.05)
        assert used(observer, names) == expected
        others = set(observer.get_node_names()) - {'observer'}
        assert others == names
    finally:
        executor.shutdown()
        node.destroy_node()
        observer.destroy_node()


# Code that runs what it is given

MODULES = {
    'ctypes',
    'http',
    'importlib',
    'marshal',
    'multiprocessing',
    'pickle',
    'runpy',
    'shelve',
    'socket',
    'subprocess',
    'urllib',
    'yaml',
}
BUILTINS = {'eval', 'exec', 'compile', '__import__', 'open'}
METHODS = {'fdopen', 'popen', 'read_bytes', 'read_text', 'write_bytes', 'write_text'}
OF_OS = ('exec', 'popen', 'posix_spawn', 'spawn', 'startfile', 'system')
# What each package may use, see doc/behaviour.rst; '' are the files beside them, which keep
# machine code and import what is asked for.
MAY = {
    '': {'fdopen', 'importlib', 'read_bytes', 'read_text', 'subprocess'},
    'codegen': {'read_bytes', 'read_text', 'write_text'},
    'control': {'ctypes'},
    'engine': {'ctypes', 'importlib', 'read_bytes'},
    'model': {'importlib', 'read_bytes', 'read_text', 'subprocess', 'urllib', 'yaml'},
    'ros': {'fdopen', 'pickle', 'read_text', 'subprocess'},
    'streams': {'importlib', 'read_text'},
}


def powers(source):
    """Names of what a module uses of the lists above."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition('.')[0] for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or '').partition('.')[0]} & MODULES
            found |= {
                alias.name
                for alias in node.names
                if alias.name in METHODS
                or (node.module == 'os' and alias.name.startswith(OF_OS))
            }
        elif isinstance(node, ast.Name):
            found |= {node.id} & BUILTINS
        elif isinstance(node, ast.Attribute):
            name = node.attr
            of_os = isinstance(node.value, ast.Name) and node.value.id == 'os'
            if name in METHODS or (of_os and name.startswith(OF_OS)):
                found.add(name)
    return found


# For people with files of their own, who start it themselves.
OUTSIDE_NODES = {'__main__', 'cli', 'datasets', 'files', 'identification', 'plotting'}
# Started beside a robot by somebody who looks; it writes recordings.
VIEWER = 'hodyn_ros.ros.nodes.live_view'
# Entry points of nodes and of the command line, which import what they start.
STARTS = 'commands'


def test_packages_touch_files_processes_and_code_as_they_may():
    found = {}
    for path in SOURCE.rglob('*.py'):
        package, *rest = path.relative_to(SOURCE).parts
        used = powers(path.read_text(encoding='utf-8'))
        if package not in OUTSIDE_NODES and used:
            found.setdefault(package if rest else '', set()).update(used)
    assert found == MAY


def test_nodes_do_without_the_parts_for_files():
    modules = find_modules(SOURCE)
    for name, path in modules.items():
        if part_of(name) not in {*OUTSIDE_NODES, STARTS} and name != VIEWER:
            parts = {
                part_of(imported)
                for imported in find_imports(name, path, modules)
                if imported.partition('.')[0] == SOURCE.name
            }
            assert not parts & OUTSIDE_NODES, name


# Robot descriptions

OPENED = []
_recording = []


def _record(event, arguments):
    if _recording and event in ('open', 'os.listdir', 'socket.connect', 'subprocess.Popen'):
        OPENED.append((event, str(arguments[0])))


sys.addaudithook(_record)


@pytest.fixture
def touched():
    """List of the files, connections and processes that a test touches."""
    # Python itself opens modules when they are first used.
    RobotModel.from_description(parse_urdf(robots.TWO_LINK))
    OPENED.clear()
    _recording.append(True)
    yield OPENED
    _recording.clear()


def mesh(name):
    return robots.TWO_LINK.replace(
        '<link name="tool"/>',
        f'<link name="tool"><visual><geometry><mesh filename="{name}"/></geometry>'
        f'<material name="m"><texture filename="{name}"/></material></visual></link>',
    )


def in_prolog(text):
    return robots.TWO_LINK.replace('?>', f'?>{text}', 1)


def in_robot(text):
    return robots.TWO_LINK.replace('</robot>', f'{text}</robot>')


XINCLUDE = 'xmlns:xi="http://www.w3.org/2001/XInclude"'


@pytest.mark.parametrize(
    'description',
    [
        lambda path: in_prolog(f'<!DOCTYPE robot SYSTEM "{path}">'),
        lambda path: in_prolog(f'<!DOCTYPE robot PUBLIC "-//x//y" "{path}">'),
        lambda path: in_prolog(f'<!DOCTYPE robot [<!ENTITY e SYSTEM "{path}">]>').replace(
            'name="arm"', 'name="&e;"'
        ),
        lambda path: in_prolog(f'<!DOCTYPE robot [<!ENTITY % e SYSTEM "{path}"> %e;]>'),
        lambda path: in_prolog(
            '<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        ),
    ],
    ids=['system', 'public', 'entity', 'parameter entity', 'expansion'],
)
def test_document_types_and_entities_are_refused_unread(tmp_path, touched, description):
    secret = tmp_path / 'secret'
    with pytest.raises(ModelError, match='document type declaration or entities') as error:
        parse_urdf(description(secret.as_uri()))
    assert not touched
    assert 'secret' not in str(error.value)


@pytest.mark.parametrize(
    'description',
    [
        lambda path: mesh(path.as_uri()),
        lambda path: mesh(path),
        lambda path: mesh('http://localhost:9/secret.stl'),
        lambda path: mesh('package://hodyn_ros/../../secret.stl'),
        lambda path: in_robot(f'<xi:include {XINCLUDE} href="{path}" parse="text"/>'),
        lambda path: in_robot(f'<include filename="{path}"/>'),
        lambda path: in_prolog(f'<?xml-stylesheet href="{path}"?>'),
        lambda path: robots.TWO_LINK.replace(
            '<robot ',
            '<robot xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            f'xsi:noNamespaceSchemaLocation="{path.as_uri()}" ',
        ),
    ],
    ids=['uri', 'path', 'http', 'package', 'xinclude', 'include', 'stylesheet', 'schema'],
)
def test_what_a_description_refers_to_is_not_read(tmp_path, touched, description):
    secret = tmp_path / 'secret'
    text = description(secret)
    model = RobotModel.from_description(parse_urdf(text))
    assert not touched
    assert model.joint_names == ('shoulder', 'elbow')


def test_path_that_is_sent_as_a_description_is_not_opened(tmp_path, touched):
    path = tmp_path / 'arm.urdf'
    path.write_text(robots.TWO_LINK)
    touched.clear()
    with pytest.raises(ModelError, match='not XML'):
        parse_urdf(str(path))
    assert not touched


def test_reading_a_file_would_have_been_noticed(tmp_path, touched):
    path = tmp_path / 'arm.urdf'
    path.write_text(robots.TWO_LINK)
    touched.clear()
    RobotModel.from_urdf(path)
    assert ('open', str(path)) in touched
