"""Imports inside the package, as the code states them."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / 'hodyn_ros'

# From top to bottom; what is on one layer does not import each other. The facade is
# hodyn_ros/__init__.py itself.
FACADE = '__init__'
LAYERS = [
    {'__main__', 'commands'},
    {'ros', 'cli'},
    {FACADE},
    {'datasets', 'plotting'},
    {'identification', 'streams'},
    {'control', 'retiming', 'simulation'},
    {'analysis'},
    {'files'},
    {'actuators', 'codegen'},
    {'dynamics'},
    {'kinematics'},
    {'engine'},
    {'model', 'trajectory'},
    {'lie'},
    {'display', 'resources'},
    {'checks'},
    {'names'},
    {'errors', 'interrupts', 'launching', 'planning_start'},
    {'typing', 'units'},
]
# What a method of a lower layer loads when it is called, since users expect it there:
# RobotModel.warm_up and RobotModel.with_loops. `hodyn view --live` is a node. Launch files need
# `launch` and nothing of ROS else.
ASKED_FOR = {
    ('hodyn_ros.cli.pictures', 'hodyn_ros.ros.nodes.live_view'),
    *(
        ('hodyn_ros.launching', name)
        for name in (
            'launch',
            'launch.actions',
            'launch.launch_description_sources',
            'launch.substitutions',
            'launch_ros.actions',
            'launch_ros.parameter_descriptions',
        )
    ),
    ('hodyn_ros.model.robot', 'hodyn_ros.engine.engine'),
    ('hodyn_ros.model.violations', 'hodyn_ros.kinematics.closed_loops'),
    ('hodyn_ros.model.robot', 'hodyn_ros.kinematics.closed_loops'),
    ('hodyn_ros.model.robot', 'hodyn_ros.kinematics.closing'),
}
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


@cache
def _tree(path):
    return ast.parse(path.read_text(), str(path))


def _nodes(tree, type_checking):
    """All nodes of a tree, but those for types alone unless they are asked for."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test).endswith(
            'TYPE_CHECKING'
        )
        if type_checking or not is_for_types:
            waiting += ast.iter_child_nodes(node)


def find_imports(name, path, modules, type_checking=True):
    """Dotted names that a module imports anywhere in its code, as precisely as can be told."""
    package = name if path.name == '__init__.py' else name.rpartition('.')[0]
    for node in _nodes(_tree(path), type_checking):
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
            and node.args
            and isinstance(node.func, (ast.Name, ast.Attribute))
            and ast.unparse(node.func).endswith(('import_module', '__import__'))
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def part_of(name):
    """First level of a module below the package; the facade for the package itself."""
    return name.split('.')[1] if '.' in name else FACADE
