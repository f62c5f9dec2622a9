"""Examples in docstrings: each gives the output that it shows, and no public name lacks one."""

import doctest
import importlib
import inspect
import pkgutil
import warnings
from collections import defaultdict

import pytest

import hodyn_ros
from hodyn_ros import RobotModel

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# `hodyn_ros.ros` needs a ROS installation, and `__main__` runs the command.
LEFT_OUT = ('hodyn_ros.ros', 'hodyn_ros.__main__')
# What the examples of a package show and a ROS distribution may lack.
NEEDED = {'plotting': ['matplotlib', 'plotly'], 'simulation': ['mujoco']}

WITHOUT_EXAMPLE = {}
"""Public names without an example, by their packages, with the reason."""


def grouped_modules():
    """Names of the modules by their package; '' has those that lie in none."""
    names = defaultdict(list)
    for info in pkgutil.walk_packages(hodyn_ros.__path__, 'hodyn_ros.'):
        if not info.name.startswith(LEFT_OUT):
            package = info.name.split('.')[1]
            lies_in_package = info.ispkg or info.name.count('.') > 1
            names[package if lies_in_package else ''].append(info.name)
    return names


MODULES = grouped_modules()
FACES = [f'hodyn_ros.{package}' for package in ('dynamics', 'kinematics', 'model')]


@pytest.fixture(scope='module')
def shared_robots():
    """Robots of the package are read once: what is compiled for one is there for the next."""
    read, robots = RobotModel.from_urdf, {}

    def from_urdf(*given, **options):
        key = repr((given, options))
        if key not in robots:
            robots[key] = read(*given, **options)
        for text in robots[key].warnings:
            warnings.warn(text, hodyn_ros.ModelWarning, stacklevel=2)
        return robots[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RobotModel, 'from_urdf', from_urdf)
        yield


@pytest.mark.every_case
@pytest.mark.parametrize('package', MODULES)
def test_examples_in_docstrings_give_their_output(
    package, shared_robots, tmp_path, monkeypatch
):
    for name in NEEDED.get(package, ()):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    for name in MODULES[package]:
        found = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
        assert not found.failed, name


def is_shown_by_example(value):
    """Whether a public name is a function or class whose docstring needs an example."""
    if inspect.isclass(value):
        return not issubclass(value, BaseException) or value is hodyn_ros.HodynError
    return inspect.isfunction(value)


@pytest.mark.every_case
@pytest.mark.parametrize('face', FACES)
def test_every_public_name_has_an_example_or_a_reason_for_having_none(face):
    module = importlib.import_module(face)
    values = {name: getattr(module, name) for name in module.__all__}
    without = {
        name
        for name, value in values.items()
        if is_shown_by_example(value)
        and '\nExamples\n--------\n' not in (inspect.getdoc(value) or '')
    }
    assert without == set(WITHOUT_EXAMPLE.get(face, ()))
