"""Generated C and C++ compiles without a warning, tests itself and computes what we compute."""

import re
import shutil
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.random_trees import (
    random_gravity,
    random_robot,
)
from support.robots import FIVE_BAR

from hodyn_ros import (
    HodynError,
    ModelWarning,
    RobotModel,
    friction,
    generate_code,
    inverse_dynamics,
)
from hodyn_ros.actuators import Actuators
from hodyn_ros.codegen import identifier
from hodyn_ros.control import tracking_controller
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import so3
from hodyn_ros.model import Coupling

URDF = Path(__file__).resolve().parents[2] / 'urdf'
LAWS = (
    friction.Viscous(0.7),
    friction.Coulomb(1.3, smoothing=0.2),
    friction.Sigmoid(1.1, 5.0, -0.03) + friction.Offset(0.4),
    friction.Coulomb(0.9),
    friction.Stribeck(0.8, 0.4, smoothing=0.1) + friction.Coulomb(1.3, smoothing=0.1),
    friction.Stribeck(0.6, 0.7) + friction.Viscous(0.2),
    friction.Sigmoid(0.5, 60.0, 0.01) + friction.Viscous(0.1) + friction.Coulomb(0.2, 1e-3),
)

pytestmark = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)


def quiet(make, *arguments, **options):
    with warnings.catch_warnings():
        # Massless moving links are part of the test.
        warnings.simplefilter('ignore', ModelWarning)
        return make(*arguments, **options)


def load(xml, **options):
    return quiet(RobotModel.from_urdf, xml, **options)


def panda():
    return load(URDF / 'panda.urdf')


def arm(n, name='arm', **options):
    X = np.tile([0.0, 0.6, 0.8, 0.0, 0.0, 0.0], (n, 1))
    B = np.tile(np.eye(4), (n, 1, 1))
    B[:, :3, :3] = so3.exp(np.array([1.0, 0.5, -0.7]))
    B[:, :3, 3] = [0.2, 0.1, 0.3]
    inertias = [(1.0, (0.1, 0.0, 0.2), 0.01 * np.eye(3))] * n
    return RobotModel.from_body_screws(X, B, inertias=inertias, name=name, **options)


def burdened(model):
    """Return the model with friction of all kinds and armature in its joints, mimic ones too."""
    joints = model.body_names
    laws = {name: LAWS[i % len(LAWS)] for i, name in enumerate(joints)}
    armature = {name: 0.1 + 0.05 * i for i, name in enumerate(joints)}
    return model.with_friction(laws).with_armature(armature)


def tree(seed):
    robot = random_robot(seed)
    return load(robot.xml, gravity=random_gravity(seed))


def links_of(model):
    """Three links, two of which move, and the base link."""
    links = list(model.links)
    return (links[-1], model.base_link, links[len(links) // 2])


def build_test(paths, compiler, standard, *options):
    program = paths[0].with_suffix(f'.{compiler}')
    sources = [path for path in paths if path.suffix in ('.c', '.cpp')]
    run(compiler, f'-std={standard}', *WARNINGS, *options, '-o', program, *sources, '-lm')
    return program


def test_forward_dynamics_of_a_singular_mass_matrix_is_refused(tmp_path):
    massless = quiet(
        RobotModel.from_body_screws,
        [[0, 0, 1, 0, 0, 0]] * 2,
        [np.eye(4)] * 2,
        inertias=[(1.0, (0.1, 0.0, 0.2), 0.01 * np.eye(3)), None],
    )
    with pytest.raises(ModelError, match="singular.*'joint2'"):
        generate_code(massless, tmp_path, order=0, forward_dynamics=True)


@pytest.mark.parametrize('language', ['cpp', 'c'])
def test_long_functions_come_in_parts_that_compile_without_warning(language, tmp_path):
    model = arm(17)
    paths = generate_code(
        model, tmp_path, language, order=[2], wrench_links=links_of(model)
    )
    assert 'kept[' in paths[1].read_text()
    compiler, standard = {'c': ('gcc', 'c99'), 'cpp': ('g++', 'c++11')}[language]
    if not shutil.which(compiler):
        pytest.skip(f'there is no {compiler}')
    assert 'correct' in run(build_test(paths, compiler, standard, '-O0'))


def test_code_calls_the_mathematical_library_alone_and_has_no_data_to_write(tmp_path):
    if not shutil.which('nm'):
        pytest.skip('there is no nm')
    for name, model in (('plain', arm(2)), ('burdened', burdened(arm(5)))):
        paths = generate_code(model, tmp_path / name)
        library = paths[1].with_suffix('.o')
        run(C_COMPILERS[0], '-std=c99', '-O2', '-fPIC', '-c', '-o', library, paths[1])
        symbols = [line.split() for line in run('nm', library).splitlines()]
        undefined = {symbol[-1] for symbol in symbols if symbol[-2] == 'U'}
        undefined.discard('_GLOBAL_OFFSET_TABLE_')
        # Compilers make sincos of a sine and a cosine.
        allowed = {'sin', 'cos', 'sincos'} | (
            {'tanh', 'exp'} if name == 'burdened' else set()
        )
        assert undefined <= allowed
        # Text and read-only data.
        assert {symbol[-2].upper() for symbol in symbols} <= {'T', 'R', 'U'}
        branch = r'\b(for|while|do|if|switch|goto)\b|\?|&&|\|\||\bstatic [^(]*='
        functions = re.findall(
            r'^(?:INLINE )?void (\w+)\(([^}]*)', paths[1].read_text(), re.M
        )
        assert sum(function.endswith('_batch') for function, _ in functions) == 3
        for function, text in functions:
            assert bool(re.search(branch, text)) == function.endswith('_batch')


def test_the_header_tells_models_apart_that_differ_in_anything(tmp_path):
    model = panda()
    others = [
        model.with_payload('panda_link8', 0.1),
        model.with_armature({'panda_joint1': 0.1}),
        model.with_friction({'panda_joint1': friction.Viscous(0.1)}),
        load(URDF / 'panda.urdf', gravity=(0.0, 0.0, 9.81)),
    ]
    headers = [
        generate_code(other, tmp_path / str(k), order=0)[0].read_text()
        for k, other in enumerate([model, panda(), *others])
    ]
    first, same, *digests = [re.search(r'sha256 (\w{64})', text)[1] for text in headers]
    assert first == same and len({first, *digests}) == 5
    assert all(name in headers[0] for name in model.joint_names)


def test_orders_choose_the_functions(tmp_path):
    header = generate_code(arm(1), tmp_path / 'a', order=(2, 0))[0].read_text()
    assert re.findall(r'arm_inverse_dynamics_(\d)\(', header) == ['0', '2']
    paths = generate_code(arm(1), tmp_path / 'b', order=0)
    assert re.findall(r'arm_inverse_dynamics_(\d)\(', paths[0].read_text()) == ['0']
    assert 'correct' in run(build_test(paths, C_COMPILERS[0], 'c99'))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('panda', 'panda'),
        ('my-robot 2.0', 'my_robot_2_0'),
        ('', 'robot'),
        ('2nd arm', 'robot_2nd_arm'),
        ('__init__', 'init'),
        ('Roböter', 'Rob_ter'),
        ('机器人', 'robot'),
        ('x' * 300, 'x' * 40),
    ],
)
def test_names_of_robots_become_identifiers(name, expected):
    assert identifier(name) == expected


def test_strange_names_compile(tmp_path):
    names = ['int', 'a"b\\', 'joint??/', '*/ /* é', 'int\n', '%s%n', '??=', 'q' * 99]
    model = arm(len(names), name='class */ "\\', joint_names=names)
    for language, compilers in (('c', C_COMPILERS), ('cpp', CPP_COMPILERS)):
        paths = generate_code(model, tmp_path / language, language, order=0)
        standard = 'c99' if language == 'c' else 'c++11'
        assert 'correct' in run(build_test(paths, compilers[0], standard))


def test_constants_beyond_the_precision_are_refused(tmp_path):
    model = arm(2).with_armature({'joint1': 1e60})
    assert generate_code(model, tmp_path)
    with pytest.raises(HodynError, match='beyond the range of float'):
        generate_code(model, tmp_path / 'float', precision='float')


# What a controller of ros2_control has around its update().
CONTROLLER = """
#include <array>
#include <cstddef>
namespace rclcpp { class Time {}; class Duration {}; }
namespace controller_interface { enum class return_type { OK }; }
struct Interface { void set_value(double given) { value = given; } double value; };
#include "panda_dynamics.hpp"
struct ElasticController {
  controller_interface::return_type update(const rclcpp::Time &, const rclcpp::Duration &);
  panda_dynamics::Joints<5> reference(const rclcpp::Time &) { return {}; }
  std::array<double, 7> stiffness_, motor_inertia_;
  std::array<Interface, 7> command_interfaces_;
};
"""


def test_examples_of_the_documentation_compile(tmp_path):
    page = (URDF.parent / 'doc' / 'code_generation.rst').read_text()
    # The first of each language.
    texts = re.findall(r'\.\. code-block:: (c|cpp)\n\n((?: {3}.*\n|\n)+)', page)
    law = textwrap.dedent([text for language, text in texts if language == 'c'][1])
    texts = {language: textwrap.dedent(text) for language, text in texts[::-1]}
    paths = generate_code(panda(), tmp_path / 'c', order=[2])
    example = tmp_path / 'c' / 'example.c'
    example.write_text(texts['c'])
    printed = run(build_test([example, paths[1]], C_COMPILERS[0], 'c99'))
    motion = np.zeros((5, 7))
    motion[0, 3], motion[1, 1] = -1.7, 0.5
    effort = inverse_dynamics(panda(), motion)
    lines = printed.splitlines()
    numbers = [[float(x) for x in re.findall(r' (\S+) N m', line)] for line in lines]
    np.testing.assert_allclose(np.transpose(numbers), effort, atol=1e-4)
    generate_code(panda(), tmp_path / 'cpp', 'cpp', order=[2])
    example = tmp_path / 'cpp' / 'example.cpp'
    example.write_text(CONTROLLER + texts['cpp'])
    run(
        CPP_COMPILERS[0], '-std=c++11', '-Wall', '-Wextra', '-c', '-o', '/dev/null', example
    )
    drives = Actuators(panda(), {})
    controller = tracking_controller(drives, 1e-3, torque_limits=np.full(7, 50.0))
    generate_code(panda(), tmp_path / 'law', controller=controller)
    example = tmp_path / 'law' / 'example.c'
    example.write_text(law)
    run(C_COMPILERS[0], '-std=c99', *WARNINGS, '-fsyntax-only', example)


# --- Closed loops -------------------------------------------------------------------------------


def closed(kind='five-bar'):
    """A five-bar whose second elbow is a belt instead, or as it is, with losses and rotors."""
    model = quiet(RobotModel.from_urdf, FIVE_BAR)
    laws = {'left': LAWS[0], 'right_elbow': LAWS[1]}
    tree = model.closure.tree.with_friction(laws).with_armature({'left_elbow': 0.01})
    if kind == 'belt':
        belt = Coupling('belt', 'left_elbow', 'left', (0.1, -1.0, 0.2))
        return tree.with_loops([belt], independent=['left', 'right', 'right_elbow'])
    return tree.with_loops(model.closure.loops, independent=['left', 'right'])


@pytest.mark.parametrize(('kind', 'language'), [('belt', 'c'), ('five-bar', 'cpp')])
def test_closed_loops_compile_and_pass_their_test(kind, language, tmp_path):
    model = closed(kind)
    links = links_of(model.closure.tree)
    paths = generate_code(model, tmp_path, language, name='five', wrench_links=links)
    compilers, standard = (
        (C_COMPILERS, 'c99') if language == 'c' else (CPP_COMPILERS, 'c++11')
    )
    assert 'correct' in run(build_test(paths, compilers[0], standard, '-O1'))


def test_what_there_is_not_for_closed_loops_is_refused(tmp_path):
    for option in ({'precision': 'float'}, {'forward_dynamics': True}):
        with pytest.raises(HodynError, match='closed loops: its code is inverse dynamics'):
            generate_code(closed(), tmp_path, **option)
    with pytest.raises(HodynError, match='closed loops: no controller'):
        generate_code(closed(), tmp_path, controller=object())
