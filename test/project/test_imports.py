"""Imports go down only, ROS is imported in hodyn_ros/ros alone, `__all__` holds."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from importlib import import_module

import pytest
from support.imports import (
    ASKED_FOR,
    HEIGHT,
    LAYERS,
    SOURCE,
    find_imports,
    find_modules,
    is_ros_module,
    part_of,
)
from support.processes import run_python

import hodyn_ros

PACKAGES = sorted(path.parent for path in SOURCE.rglob('__init__.py'))


def find_violations(root):
    """Sentences on everything that breaks the rules in the package at root."""
    modules = find_modules(root)
    violations = []
    graph = {}
    for name, path in modules.items():
        part = part_of(name)
        if part not in HEIGHT:
            violations.append(f'{name} has no layer: add {part} to LAYERS')
            continue
        asked_for = {imported for importer, imported in ASKED_FOR if importer == name}
        at_runtime = set(find_imports(name, path, modules, type_checking=False)) - asked_for
        graph[name] = at_runtime & modules.keys()
        for imported in sorted(set(find_imports(name, path, modules)) - asked_for):
            if is_ros_module(imported) and part != 'ros':
                violations.append(f'{name} imports {imported} outside of {root.name}.ros')
            if imported.partition('.')[0] != root.name:
                continue
            if imported not in modules:
                violations.append(f'{name} imports {imported}, which does not exist')
                continue
            other = part_of(imported)
            height = HEIGHT.get(other, -len(LAYERS))
            if height > HEIGHT[part]:
                violations.append(f'{name} imports {imported} from a higher layer')
            elif height == HEIGHT[part] and other != part:
                violations.append(f'{name} imports {imported} from beside it')
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        violations.append('import cycle: ' + ' <- '.join(error.args[1]))
    return violations


def test_imports_go_down_and_ros_stays_in_its_place():
    assert len(find_modules(SOURCE)) > 5
    assert find_violations(SOURCE) == []


@pytest.mark.parametrize('package', PACKAGES, ids=lambda path: path.name)
def test_a_package_says_what_is_in_it(package):
    tree = ast.parse((package / '__init__.py').read_text())
    assert ast.get_docstring(tree), 'expected a docstring'
    (names,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and ast.unparse(getattr(node, 'target', None) or node.targets[0]) == '__all__'
    ]
    module = import_module('.'.join(package.relative_to(SOURCE.parent).parts))
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(module, name) is not None


def test_importing_the_package_loads_nothing_of_it():
    code = (
        'import sys, hodyn_ros\n'
        'print(*(name for name in sys.modules if name.startswith(("numpy", "hodyn_ros."))))\n'
        'hodyn_ros.trajectory.plan_motion, hodyn_ros.RobotModel.from_urdf\n'
        'assert {"RobotModel", "trajectory"} <= set(dir(hodyn_ros))'
    )
    assert run_python(code) == ('\n', '')


def test_reading_a_robot_loads_nothing_heavy():
    code = (
        'import sys, hodyn_ros\n'
        'hodyn_ros.RobotModel.from_urdf("panda")\n'
        'heavy = {"email", "lxml", "numba", "scipy", "urdf_parser_py", "yaml"}\n'
        'print(*sorted(heavy & set(sys.modules)))'
    )
    assert run_python(code) == ('\n', '')


def test_commands_and_trajectories_load_nothing_that_they_may_not_need():
    code = (
        'import sys, hodyn_ros.cli.check, hodyn_ros.cli.retime, hodyn_ros.trajectory\n'
        'hodyn_ros.trajectory.Smoother\n'
        'print(*sorted({"numba", "scipy.signal", "matplotlib"} & set(sys.modules)))'
    )
    assert run_python(code) == ('\n', '')


def test_no_other_name_exists():
    with pytest.raises(AttributeError, match='no attribute'):
        hodyn_ros.nothing  # noqa: B018


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


FOR_TYPES = 'from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import urdf'


@pytest.mark.parametrize(
    ('changes', 'found'),
    [
        ({}, None),
        (
            {'model__of__urdf': 'from . import inertia', 'model__of__inertia': FOR_TYPES},
            None,
        ),
        (
            {'trajectory__of__spline': 'from hodyn_ros.model import robot'},
            'hodyn_ros.trajectory.spline imports hodyn_ros.model.robot from beside it',
        ),
        (
            {'dynamics__of__inverse': 'from hodyn_ros import RobotModel'},
            'hodyn_ros.dynamics.inverse imports hodyn_ros from a higher layer',
        ),
        (
            {'__init__': 'from hodyn_ros.ros.node import main'},
            'hodyn_ros imports hodyn_ros.ros.node from a higher layer',
        ),
        (
            {
                'model__of__urdf': 'from hodyn_ros.model import inertia',
                'model__of__inertia': 'def lazily():\n    from . import urdf',
            },
            'import cycle: .*hodyn_ros.model.urdf',
        ),
        ({'helpers': ''}, 'no layer'),
        ({'model__of__dh': 'import hodyn_ros.model.missing'}, 'does not exist'),
    ],
)
def test_checker_finds_what_breaks_the_rules_and_nothing_else(changes, found, tree):
    violations = find_violations(tree(**changes))
    if found is None:
        assert violations == []
    else:
        assert re.search(found, violations[0])
