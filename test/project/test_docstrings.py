"""Examples in docstrings: each gives the output that it shows, and no public name lacks one."""

import doctest
import importlib
import inspect
import pkgutil
import warnings
from pathlib import Path

import pytest

import hodyn_ros
from hodyn_ros import ModelWarning, RobotModel

PACKAGE = Path(hodyn_ros.__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# What examples use and a ROS distribution may lack, by their modules or packages.
NEEDED = {
    'hodyn_ros.identification': 'clarabel',
    'hodyn_ros.plotting.figures': 'matplotlib',
    'hodyn_ros.plotting.report': 'plotly',
    'hodyn_ros.plotting.scene': 'rerun',
    'hodyn_ros.simulation': 'mujoco',
}
WITHOUT_EXAMPLE = {
    # It says what the machine lacks.
    'hodyn_ros.engine': ['unavailable'],
    # They take the settings of a node, or a node in whose place they work.
    'hodyn_ros.streams': [
        'ControlLoop',
        'MotionStream',
        'Wrenches',
        'elastic_robot',
        'make_laws',
    ],
}
"""Public functions and classes whose use no example can show."""


def modules_with_examples():
    """Names of the modules whose text has examples, without those that need ROS."""
    for path in sorted(PACKAGE.rglob('*.py')):
        parts = path.relative_to(PACKAGE).with_suffix('').parts
        if parts[0] != 'ros' and '>>> ' in path.read_text(encoding='utf-8'):
            yield '.'.join(('hodyn_ros', *parts)).removesuffix('.__init__')


FACES = [
    'hodyn_ros',
    *(
        f'hodyn_ros.{info.name}'
        for info in pkgutil.iter_modules(hodyn_ros.__path__)
        if info.ispkg and info.name != 'ros'
    ),
]


@pytest.fixture(scope='module')
def shared_robots():
    """Robots are read once: what is compiled for one example is there for the next."""
    read, robots = RobotModel.from_urdf, {}

    def from_urdf(*given, **options):
        key = repr((given, options))
        if key not in robots:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore', ModelWarning)
                robots[key] = read(*given, **options)
        for text in robots[key].warnings:
            warnings.warn(text, ModelWarning, stacklevel=2)
        return robots[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RobotModel, 'from_urdf', from_urdf)
        yield


@pytest.mark.every_case
@pytest.mark.parametrize('name', [*modules_with_examples()])
def test_examples_in_docstrings_give_their_output(
    name, shared_robots, tmp_path, monkeypatch
):
    for place, needed in NEEDED.items():
        if name.startswith(place):
            pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert found.attempted and not found.failed


def is_shown_by_example(value):
    """Whether a public name is a function or class whose docstring is to have an example."""
    if inspect.isclass(value):
        return not issubclass(value, BaseException) or value is hodyn_ros.HodynError
    return inspect.isfunction(inspect.unwrap(value))


@pytest.mark.every_case
@pytest.mark.parametrize('face', FACES)
def test_every_public_function_and_class_has_an_example(face):
    module = importlib.import_module(face)
    without = [
        name
        for name in module.__all__
        if is_shown_by_example(value := getattr(module, name))
        and '\nExamples\n--------\n' not in (inspect.getdoc(value) or '')
    ]
    assert without == WITHOUT_EXAMPLE.get(face, [])
