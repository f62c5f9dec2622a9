"""Imports inside hodyn_ros go down only, and ROS is imported in hodyn_ros/ros alone."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / 'hodyn_ros'

# From top to bottom. The facade is hodyn_ros/__init__.py itself, which hands on public.py.
FACADE = '__init__'
LAYERS = [
    {'ros', 'cli'},
    {FACADE, 'public'},
    {'io', 'plotting', 'batch'},
    {'control', 'simulation'},
    {'analysis', 'actuators'},
    {'dynamics', 'kinematics', 'engine'},
    {'model', 'trajectory'},
    {'lie', 'resources', 'names', 'errors'},
]
HEIGHT = {part: -number for number, layer in enumerate(LAYERS) for part in layer}

ROS_MODULES = {'ament_index_python', 'builtin_interfaces', 'launch', 'launch_ros', 'rclpy'}


def is_ros_module(name):
    top = name.partition('.')[0]
    return top in ROS_MODULES or top.endswith(('_msgs', '_interfaces'))


def find_modules(root):
    """Dotted name, from the package on, and path of every module below root."""
    modules = {}
    for path in sorted(root.rglob('*.py')):
        parts = path.relative_to(root.parent).with_suffix('').parts
        modules['.'.join(parts[:-1] if parts[-1] == '__init__' else parts)] = path
    return modules


def find_imports(name, path, modules):
    """Dotted names that a module imports anywhere in its code, as precisely as can be told."""
    package = name if path.name == '__init__.py' else name.rpartition('.')[0]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ''
            if node.level:
                parents = package.split('.')[: len(package.split('.')) - node.level + 1]
                base = '.'.join([*parents, base] if base else parents)
            for alias in node.names:
                submodule = f'{base}.{alias.name}'
                yield submodule if submodule in modules else base
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith(('import_module', '__import__'))
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def part_of(name):
    """First level of a module below the package; the facade for the package itself."""
    return name.split('.')[1] if '.' in name else FACADE


def find_violations(root):
    """Sentences on everything that breaks the rules in the package at root."""
    modules = find_modules(root)
    violations = []
    graph = {}
    for name, path in modules.items():
        part = part_of(name)
        if part not in HEIGHT:
            violations.append(f'{name} belongs to no layer: add {part} to LAYERS')
            continue
        graph[name] = set()
        for imported in sorted(set(find_imports(name, path, modules))):
            if is_ros_module(imported) and part != 'ros':
                violations.append(f'{name} imports {imported} outside of {root.name}.ros')
            if imported.partition('.')[0] != root.name:
                continue
            if imported not in modules:
                violations.append(f'{name} imports {imported}, which does not exist')
                continue
            if HEIGHT.get(part_of(imported), -len(LAYERS)) > HEIGHT[part]:
                violations.append(f'{name} imports {imported} from a higher layer')
            graph[name].add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        violations.append('import cycle: ' + ' <- '.join(error.args[1]))
    return violations


def test_imports_go_down_and_ros_stays_in_its_place():
    assert len(find_modules(SOURCE)) > 5
    assert find_violations(SOURCE) == []


@pytest.fixture
def tree(tmp_path):
    """Write a small package that keeps the rules, with changes."""

    def write(**changes):
        files = {
            '__init__': 'from hodyn_ros.model.robot import RobotModel',
            'errors': '',
            'lie/__init__': 'from .so3 import hat',
            'lie/so3': 'import numpy as np\nfrom hodyn_ros.errors import HodynError',
            'model/__init__': '',
            'model/robot': 'from hodyn_ros.lie import so3',
            'dynamics/inverse': 'from ..model import robot',
            'ros/node': 'import rclpy\nfrom hodyn_ros import RobotModel',
        }
        files.update({name.replace('__of__', '/'): text for name, text in changes.items()})
        for name, text in files.items():
            path = tmp_path / 'hodyn_ros' / f'{name}.py'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / 'hodyn_ros'

    return write


def test_checker_accepts_a_clean_tree(tree):
    assert find_violations(tree()) == []


@pytest.mark.parametrize(
    'statement',
    [
        'import hodyn_ros.model.robot',
        'from hodyn_ros.model import robot',
        'from hodyn_ros.model.robot import RobotModel',
        'from ..model import robot',
        'from ..model.robot import RobotModel as Model',
        'def lazily():\n    from hodyn_ros import model',
        "from importlib import import_module\nimport_module('hodyn_ros.model')",
    ],
)
def test_checker_finds_an_import_that_goes_up(statement, tree):
    violations = find_violations(tree(lie__of__se3=statement))
    assert len(violations) == 1
    assert 'hodyn_ros.lie.se3 imports hodyn_ros.model' in violations[0]
    assert 'higher layer' in violations[0]


def test_checker_finds_an_import_of_the_facade_from_below(tree):
    violations = find_violations(tree(dynamics__of__inverse='from hodyn_ros import RobotModel'))
    assert violations == ['hodyn_ros.dynamics.inverse imports hodyn_ros from a higher layer']


def test_checker_finds_ros_behind_the_facade(tree):
    violations = find_violations(tree(__init__='from hodyn_ros.ros.node import main'))
    assert 'hodyn_ros imports hodyn_ros.ros.node from a higher layer' in violations


@pytest.mark.parametrize(
    'statement',
    [
        'import rclpy',
        'from rclpy.node import Node',
        'import launch.actions',
        'from sensor_msgs.msg import JointState',
        'from hodyn_msgs.msg import JointEffort',
        'from builtin_interfaces.msg import Time',
        'def lazily():\n    import geometry_msgs.msg',
        "__import__('rclpy')",
    ],
)
def test_checker_finds_ros_outside_of_its_place(statement, tree):
    (violation,) = find_violations(tree(trajectory__of__spline=statement))
    assert 'outside of hodyn_ros.ros' in violation


def test_checker_finds_a_cycle(tree):
    violations = find_violations(
        tree(
            model__of__urdf='from hodyn_ros.model import inertia',
            model__of__inertia='def lazily():\n    from . import urdf',
        )
    )
    assert len(violations) == 1
    assert 'cycle' in violations[0]
    assert 'hodyn_ros.model.urdf' in violations[0]


def test_checker_finds_a_module_without_a_layer(tree):
    assert 'no layer' in find_violations(tree(helpers=''))[0]


def test_checker_finds_an_import_of_nothing(tree):
    (violation,) = find_violations(tree(model__of__dh='import hodyn_ros.model.missing'))
    assert 'does not exist' in violation
