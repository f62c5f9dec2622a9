"""Imports go down only, ROS is imported in hodyn_ros/ros alone, the contract knows faces alone."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

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

PACKAGES = sorted(path.parent for path in SOURCE.rglob('__init__.py'))
CONTRACT = Path(__file__).resolve().parents[1] / 'contract'
DOC = SOURCE.parent / 'doc'
REFERENCE = '\n'.join(
    page.read_text('utf-8') for page in (DOC / 'api.rst', *DOC.glob('api/*.rst'))
)
DOCUMENTED = {*re.findall(r'^\.\. auto\w+:: (\S+)$', REFERENCE, re.M)}
# What the contract may import from: the packages of the reference.
WHOLE = {*re.findall(r'^\.\. automodule:: (\S+)$', REFERENCE, re.M)}
FACES = {name.rpartition('.')[0] for name in DOCUMENTED} | WHOLE


def find_violations(root):
    """Sentences on everything that breaks the rules in the package at root."""
    modules = find_modules(root)
    violations, graph = [], {}
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


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('module', 'statement', 'found'),
    [
        ('lie.se3', 'def f():\n    from ..model.robot import RobotModel', 'a higher layer'),
        ('trajectory.spline', 'from hodyn_ros.model import robot', 'from beside it'),
        ('dynamics.inverse', 'from sensor_msgs.msg import JointState', 'outside of hodyn'),
        ('model.robot', 'from hodyn_ros.model import urdf', 'import cycle'),
    ],
)
def test_checker_finds_what_breaks_the_rules(module, statement, found, tmp_path):
    for name, text in {
        '__init__': 'from hodyn_ros.model.robot import RobotModel',
        'model/robot': '',
        'model/urdf': 'from hodyn_ros.model import robot',
        'ros/node': 'import rclpy\nfrom hodyn_ros import RobotModel',
        module.replace('.', '/'): statement,
    }.items():
        path = tmp_path / 'hodyn_ros' / f'{name}.py'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (violation,) = find_violations(tmp_path / 'hodyn_ros')
    assert found in violation


def beyond_the_face(tree):
    """What a file of the contract uses that is no name of a face."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match(r'_(?!_)', node.attr):
            if ast.unparse(node.value) != 'self':  # a class of the contract's own
                yield ast.unparse(node)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith('hodyn_ros.'))
        elif isinstance(node, ast.ImportFrom) and (node.module or '').startswith(
            'hodyn_ros'
        ):
            face = import_module(node.module) if node.module in FACES else None
            names = vars(face) if node.module in WHOLE else getattr(face, '__all__', ())
            for alias in node.names:
                name = f'{node.module}.{alias.name}'
                if alias.name not in names and name not in DOCUMENTED:
                    yield name


def test_the_contract_uses_names_of_the_reference_alone():
    assert {'hodyn_ros', 'hodyn_ros.files', 'hodyn_ros.errors'} <= FACES
    files = sorted(CONTRACT.rglob('*.py'))
    assert files
    used = {path.name: [*beyond_the_face(ast.parse(path.read_text()))] for path in files}
    assert {name: names for name, names in used.items() if names} == {}
    inner = 'from hodyn_ros.files.tables import x\nfrom hodyn_ros.lie import so3\na._b'
    assert len([*beyond_the_face(ast.parse(inner))]) == 3


@pytest.mark.every_case
@pytest.mark.parametrize('package', PACKAGES, ids=lambda path: path.name)
def test_a_package_says_what_is_in_it(package):
    module = import_module('.'.join(package.relative_to(SOURCE.parent).parts))
    assert module.__doc__, 'expected a docstring'
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('code', 'heavy'),
    [
        ('hodyn_ros', 'numpy hodyn_ros.model hodyn_ros.lie'),
        ('hodyn_ros.RobotModel.from_urdf("panda")', 'email lxml numba scipy yaml'),
        ('import hodyn_ros.cli.check, hodyn_ros.trajectory', 'numba matplotlib'),
        (
            'import hodyn_ros.ros.nodes.hodyn_node, hodyn_ros.ros.planner.process',
            'hodyn_ros.control numba scipy',
        ),
    ],
)
def test_what_is_imported_loads_nothing_heavy(code, heavy):
    code = f'import sys, hodyn_ros\n{code}\nprint({set(heavy.split())} & set(sys.modules))'
    assert run_python(code) == ('set()\n', '')
