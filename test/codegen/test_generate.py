"""Generated C and C++ compiles without a warning, tests itself and computes what we compute."""

import ctypes
import re
import shutil
import subprocess
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.random_trees import (
    helical_model,
    random_gravity,
    random_motion,
    random_robot,
    seeds,
)
from support.robots import FIVE_BAR

from hodyn_ros import (
    HodynError,
    ModelWarning,
    RobotModel,
    Wrench,
    friction,
    generate_code,
    inverse_dynamics,
    mass_matrix,
)
from hodyn_ros.codegen.c_source import model_hash
from hodyn_ros.codegen.statements import identifier, in_parts, is_identifier, string_literal
from hodyn_ros.errors import ModelError
from hodyn_ros.kinematics import complete_motion
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


MODELS = {
    'Panda': panda,
    'Panda with hand': lambda: burdened(load(URDF / 'panda_with_hand.urdf')),
    **{f'tree {seed}': lambda seed=seed: tree(seed) for seed in range(2)},
    **{f'burdened tree {seed}': lambda seed=seed: burdened(tree(seed)) for seed in (4,)},
    'helical tree': lambda: burdened(quiet(helical_model, 3)),
    'long arm': lambda: arm(17),
}


def links_of(model):
    """Three links, two of which move, and the base link."""
    links = list(model.links)
    return (links[-1], model.base_link, links[len(links) // 2])


def build_test(paths, compiler, standard, *options):
    program = paths[0].with_suffix(f'.{compiler}')
    sources = [path for path in paths if path.suffix in ('.c', '.cpp')]
    run(compiler, f'-std={standard}', *WARNINGS, *options, '-o', program, *sources, '-lm')
    return program


class Library:
    """Generated C as a shared library."""

    def __init__(self, paths, name, precision='double', optimize=('-O0',)):
        library = paths[0].with_suffix('.so')
        options = ('-std=c99', *WARNINGS, *optimize, '-shared', '-fPIC')
        run(C_COMPILERS[0], *options, '-o', library, paths[1], '-lm')
        self.functions = ctypes.CDLL(str(library))
        self.name = name
        self.type = np.float64 if precision == 'double' else np.float32

    def __call__(self, order, motion, wrench=None):
        n = motion.shape[-1]
        effort = np.full((order + 1, n), np.nan, dtype=self.type)
        arguments = [motion[: order + 3]]
        function = f'{self.name}_inverse_dynamics_{order}'
        if wrench is not None:
            arguments.append(wrench[: order + 1])
            function += '_with_wrenches'
        arrays = [np.ascontiguousarray(values, dtype=self.type) for values in arguments]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in [*arrays, effort]]
        self.functions[function](*pointers)
        return effort.astype(float)


def largest_error(library, model, links, samples=4):
    """Largest error of all functions, relative to the largest effort of each order."""
    motions = random_motion(1, model.n_joints, 5, (samples,))
    wrenches = 10.0 * np.random.default_rng(2).standard_normal((samples, 3, len(links), 6))
    applied = [Wrench(link, wrenches[:, :, i]) for i, link in enumerate(links)]
    errors = []
    for wrench in (None, wrenches):
        expected = inverse_dynamics(
            model, motions, applied if wrench is not None else None, algorithm='nth_order'
        )
        scale = np.abs(expected).max(axis=(0, 2))
        for order in range(3):
            for i in range(samples):
                effort = library(order, motions[i], None if wrench is None else wrench[i])
                error = np.abs(effort - expected[i, : order + 1]).max(axis=1)
                errors.append((error / scale[: order + 1]).max())
    return max(errors)


@pytest.mark.parametrize('name', MODELS)
def test_efforts_equal_those_of_nth_order(name, tmp_path):
    model = MODELS[name]()
    links = links_of(model)
    paths = generate_code(model, tmp_path, name='robot', wrench_links=links)
    # Products fused with sums, as is recommended, and not.
    fused = ('-O2', '-march=native', '-ffp-contract=fast')
    library = Library(paths, 'robot', optimize=fused if name == 'Panda' else ('-O0',))
    assert largest_error(library, model, links) < 1e-14


def smooth(model):
    law = friction.Viscous(0.7) + friction.Coulomb(0.3, smoothing=0.5)
    armature = dict.fromkeys(model.body_names, 0.2)
    return model.with_friction(dict.fromkeys(model.body_names, law)).with_armature(armature)


FORWARD_MODELS = {
    'Panda': lambda: smooth(panda()),
    'helical tree': lambda: smooth(quiet(helical_model, 3)),
    'long arm': lambda: smooth(arm(12)),
}


@pytest.mark.parametrize(
    ('name', 'precision'),
    [
        ('Panda', 'float'),
        ('helical tree', 'double'),
        pytest.param('Panda', 'double', marks=pytest.mark.slow),
        pytest.param('helical tree', 'float', marks=pytest.mark.slow),
        pytest.param('long arm', 'double', marks=pytest.mark.slow),
        pytest.param('long arm', 'float', marks=pytest.mark.slow),
    ],
)
def test_forward_dynamics_gives_the_motion_back_and_tests_itself(name, precision, tmp_path):
    model = FORWARD_MODELS[name]()
    paths = generate_code(
        model, tmp_path, 'cpp', 2, precision, 'robot', forward_dynamics=True
    )
    compiled = Library(paths, 'robot', precision)
    motions = random_motion(1, model.n_joints, 5, (4,))
    efforts = inverse_dynamics(model, motions, algorithm='nth_order')
    condition = np.linalg.cond(mass_matrix(model, motions[:, :1])).max()
    for order in range(3):
        for motion, effort in zip(motions, efforts):
            found = np.full((order + 1, model.n_joints), np.nan, dtype=compiled.type)
            given = [
                np.ascontiguousarray(x, dtype=compiled.type) for x in (motion[:2], effort)
            ]
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*given, found)]
            compiled.functions[f'robot_forward_dynamics_{order}'](*pointers)
            error = np.abs(found - motion[2 : order + 3]).max() / np.abs(motion).max()
            assert error < 100.0 * np.finfo(compiled.type).eps * condition
    run(build_test(paths, C_COMPILERS[0], 'c99', '-O1'))
    program = tmp_path / 'use.cpp'
    program.write_text(
        '#include "robot_dynamics.hpp"\nint main() { using namespace robot_dynamics;\n'
        'return forward_dynamics(Joints<2>{}, Joints<3>{})[2][0] != Real(0); }\n'
    )
    run(CPP_COMPILERS[0], '-std=c++11', *WARNINGS, '-fsyntax-only', program)


def test_forward_dynamics_of_a_singular_mass_matrix_is_refused(tmp_path):
    massless = quiet(
        RobotModel.from_body_screws,
        [[0, 0, 1, 0, 0, 0]] * 2,
        [np.eye(4)] * 2,
        inertias=[(1.0, (0.1, 0.0, 0.2), 0.01 * np.eye(3)), None],
    )
    with pytest.raises(ModelError, match="singular.*'joint2'"):
        generate_code(massless, tmp_path, order=0, forward_dynamics=True)


@pytest.mark.parametrize('name', ['Panda with hand', 'burdened tree 4'])
def test_single_precision_agrees_to_its_rounding(name, tmp_path):
    model = MODELS[name]()
    links = links_of(model)
    paths = generate_code(
        model, tmp_path, precision='float', name='robot', wrench_links=links
    )
    assert largest_error(Library(paths, 'robot', 'float'), model, links) < 1e-5


@pytest.mark.parametrize('precision', ['double', 'float'])
@pytest.mark.parametrize('compiler', C_COMPILERS)
def test_c_compiles_without_warning_and_passes_its_test(compiler, precision, tmp_path):
    model = burdened(load(URDF / 'panda_with_hand.urdf'))
    paths = generate_code(
        model, tmp_path, precision=precision, wrench_links=links_of(model)
    )
    # Some warnings need an optimizer.
    optimize = '-O1' if precision == 'double' else '-O0'
    program = build_test(paths, compiler, 'c99', optimize)
    assert 'correct' in run(program)


@pytest.mark.parametrize('standard', ['c++11', 'c++17'])
@pytest.mark.parametrize('compiler', CPP_COMPILERS)
def test_cpp_compiles_without_warning_and_passes_its_test(compiler, standard, tmp_path):
    model = burdened(load(URDF / 'panda_with_hand.urdf'))
    precision = 'double' if standard == 'c++11' else 'float'
    paths = generate_code(
        model, tmp_path, 'cpp', precision=precision, wrench_links=links_of(model)
    )
    program = build_test(paths, compiler, standard, '-O0')
    assert 'correct' in run(program)


@pytest.mark.parametrize('precision', seeds(['double', 'float'], short=1))
def test_functions_of_cpp_give_what_those_of_c_give(precision, tmp_path):
    model = burdened(load(URDF / 'panda_with_hand.urdf'))
    links = links_of(model)
    paths = generate_code(
        model, tmp_path, 'cpp', precision=precision, name='robot', wrench_links=links
    )
    n, program = model.n_joints, ['#include "robot_dynamics.hpp"', '#include <cstring>']
    program += ['using namespace robot_dynamics;', 'int main() {', '  int wrong = 0;']
    for order in range(3):
        for end, given, pointers in (
            ('', 'q', '&q[0][0]'),
            ('_with_wrenches', 'q, w', '&q[0][0], &w[0][0][0]'),
        ):
            program += [
                f'  {{ Joints<{order + 3}> q; Wrenches<{order + 1}> w; Real x = 0;',
                '    for (auto & row : q) for (auto & v : row) v = (x += Real(0.125));',
                '    for (auto & k : w) for (auto & l : k) for (auto & v : l) v = (x -= 1);',
                f'    Real expected[{(order + 1) * n}];',
                f'    robot_inverse_dynamics_{order}{end}({pointers}, expected);',
                f'    const Joints<{order + 1}> effort = inverse_dynamics({given});',
                '    wrong += std::memcmp(effort.data(), expected, sizeof expected) != 0;',
                '    wrong += effort[0][0] == 0; }',
            ]
    program += [f'  wrong += n_joints != {n} || n_wrenches != {len(links)};']
    for name, texts in (('joint_names', model.joint_names), ('wrench_links', links)):
        for i, text in enumerate(texts):
            program += [f'  wrong += std::strcmp({name}[{i}], "{text}") != 0;']
    source = tmp_path / 'compare.cpp'
    source.write_text('\n'.join([*program, '  return wrong;', '}', '']))
    compiler = CPP_COMPILERS[0]
    options = ('-std=c++11', '-Wall', '-Wextra', '-Wconversion', '-O0')
    run(compiler, *options, '-o', tmp_path / 'compare', source, paths[1])
    run(tmp_path / 'compare')


@pytest.mark.parametrize('language', seeds(['cpp', 'c'], short=1))
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


def test_parts_hand_on_what_later_parts_need():
    definitions = [
        ('a0', 'x'),
        ('a1', 'a0 + y'),
        ('a2', 'a0 * a1'),
        ('a3', 'a1'),
        ('a4', 'a3'),
    ]
    assignments = ['z[0] = a4 + a0;']
    parts, n_kept = in_parts(definitions, assignments, 'double', longest=2, length=2)
    assert len(parts) == 3
    assert n_kept == 3
    for x, y in ((2.0, 5.0), (0.5, -1.0)):
        z, kept = [None], [None] * n_kept
        for part in parts:
            values = {'x': x, 'y': y, 'z': z, 'kept': kept}
            exec('\n'.join(part).replace('const double ', ''), values)  # noqa: S102
        assert z == [x + y + x]


@pytest.mark.parametrize('language', ['c', 'cpp'])
def test_self_test_notices_a_wrong_constant(language, tmp_path):
    paths = generate_code(arm(3), tmp_path, language, order=2)
    source = paths[1]
    # The last constant of the source, off by a ten thousandth.
    text = source.read_text()
    constant = re.findall(r'\b\d+\.\d{2,}(?:e-?\d+)?\b', text)[-1]
    head, tail = text.rsplit(constant, 1)
    source.write_text(f'{head}{float(constant) * 1.0001!r}{tail}')
    compiler, standard = {'c': ('gcc', 'c99'), 'cpp': ('g++', 'c++11')}[language]
    if not shutil.which(compiler):
        pytest.skip(f'there is no {compiler}')
    program = build_test(paths, compiler, standard, '-O0')
    result = subprocess.run([program], capture_output=True, text=True)
    assert result.returncode == 1
    assert 'wrong' in result.stdout
    assert 'of the result of joint joint' in result.stdout


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


def test_functions_hold_no_loop_and_no_branch(tmp_path):
    model = burdened(panda())
    source = generate_code(model, tmp_path, wrench_links=links_of(model))[1].read_text()
    assert not re.search(
        r'\b(for|while|do|if|switch|goto)\b|\?|&&|\|\||\bstatic [^(]*=', source
    )


def test_same_model_gives_the_same_files(tmp_path):
    for language in ('c', 'cpp'):
        first, second = (
            generate_code(burdened(panda()), tmp_path / language / directory, language)
            for directory in 'ab'
        )
        assert [path.read_bytes() for path in first] == [
            path.read_bytes() for path in second
        ]


def test_hash_tells_models_apart_that_differ_in_anything():
    model = panda()
    others = [
        panda(),
        model.with_payload('panda_link8', 0.1),
        model.with_armature({'panda_joint1': 0.1}),
        model.with_friction({'panda_joint1': friction.Viscous(0.1)}),
        load(URDF / 'panda.urdf', gravity=(0.0, 0.0, 9.81)),
    ]
    hashes = [model_hash(other) for other in others]
    assert hashes[0] == model_hash(model)
    assert len(set(hashes)) == len(others)


def test_header_says_what_one_must_know(tmp_path):
    model = load(URDF / 'panda_with_hand.urdf').with_armature({'panda_joint1': 0.1})
    header = generate_code(model, tmp_path, wrench_links=['panda_hand'])[0].read_text()
    assert header.startswith('/* SPDX-License-Identifier: Apache-2.0\n')
    assert model_hash(model) in header
    for joint in model.body_names:
        assert joint in header
    assert 'inertia of rotors' in header
    assert 'friction' not in header
    assert f'#define PANDA_N_JOINTS {model.n_joints}' in header


def test_orders_choose_the_functions(tmp_path):
    header = generate_code(arm(1), tmp_path / 'a', order=(2, 0))[0].read_text()
    assert re.findall(r'arm_inverse_dynamics_(\d)', header) == ['0', '2']
    paths = generate_code(arm(1), tmp_path / 'b', order=0)
    assert re.findall(r'arm_inverse_dynamics_(\d)', paths[0].read_text()) == ['0']
    assert 'correct' in run(build_test(paths, C_COMPILERS[0], 'c99'))


@pytest.mark.parametrize('language', ['c', 'cpp'])
def test_a_robot_without_mass_compiles(language, tmp_path):
    compilers = C_COMPILERS if language == 'c' else CPP_COMPILERS
    model = quiet(RobotModel.from_body_screws, [[0, 0, 1, 0, 0, 0]], [np.eye(4)])
    paths = generate_code(model, tmp_path, language, wrench_links=['base'])
    standard = 'c99' if language == 'c' else 'c++11'
    assert 'correct' in run(build_test(paths, compilers[0], standard))


def test_cmake_builds_and_tests(tmp_path):
    if not shutil.which('cmake') or not shutil.which('ctest'):
        pytest.skip('there is no cmake')
    for language in ('c', 'cpp'):
        generate_code(arm(2), tmp_path / language, language)
        build = tmp_path / language / 'build'
        run('cmake', '-S', tmp_path / language, '-B', build)
        run('cmake', '--build', build)
        run('cmake', '-E', 'chdir', build, 'ctest')


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
    assert is_identifier(identifier(name))


def test_strange_names_compile(tmp_path):
    names = ['int', 'a"b\\', 'joint??/', '*/ /* é', 'int\n', '%s%n', '??=', 'q' * 99]
    model = arm(len(names), name='class */ "\\', joint_names=names)
    for language, compilers in (('c', C_COMPILERS), ('cpp', CPP_COMPILERS)):
        paths = generate_code(model, tmp_path / language, language, order=0)
        standard = 'c99' if language == 'c' else 'c++11'
        assert 'correct' in run(build_test(paths, compilers[0], standard))
    paths = generate_code(model, tmp_path / 'library', order=0, name='std')
    library = Library(paths, 'std')
    size = 100
    held = (
        (ctypes.c_char * (size * len(names)))
        .in_dll(library.functions, 'std_joint_names')
        .raw
    )
    for i, name in enumerate(names):
        assert held[i * size : (i + 1) * size].rstrip(b'\0').decode() == name
    assert string_literal('a?"') == '"a\\077\\042"'


def test_wrench_links_of_one_body_add_up(tmp_path):
    model = panda()
    links = ('panda_link7', 'panda_link8')
    assert model.link(links[0]).body == model.link(links[1]).body
    paths = generate_code(model, tmp_path, wrench_links=links)
    assert largest_error(Library(paths, 'panda'), model, links) < 1e-14


class OwnLaw(friction.Viscous):
    """A law that is derived from one of the package."""

    def effort(self, velocity):
        return 2.0 * super().effort(velocity)


def test_every_law_of_the_package_is_known_and_others_are_refused(tmp_path):
    known = {friction.Viscous, friction.Coulomb, friction.Stribeck, friction.Sigmoid}
    known.add(friction.Offset)
    laws = {
        law
        for law in vars(friction).values()
        if isinstance(law, type) and issubclass(law, friction.FrictionLaw)
    }
    public = {law for law in laws if not law.__name__.startswith('_')}
    assert public - {friction.FrictionLaw, friction.Sum} == known
    for law in (OwnLaw(0.1), friction.Viscous(0.2) + OwnLaw(0.1)):
        model = arm(2).with_friction({'joint2': law})
        with pytest.raises(HodynError, match=r"OwnLaw.*'joint2'.*with_friction"):
            generate_code(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'language': 'rust'}, "language is 'rust', expected one of c, cpp"),
        ({'language': None}, 'language is None'),
        ({'precision': 'half'}, "precision is 'half', expected one of double, float"),
        ({'order': 3}, 'order is 3, expected a number from 0 to 2'),
        ({'order': -1}, 'order is -1'),
        ({'order': ()}, r'order is \(\)'),
        ({'order': True}, 'order is True'),
        ({'order': (0, 5)}, r'order is \(0, 5\)'),
        ({'order': '0..2'}, "order is '0..2'"),
        ({'order': None}, 'order is None'),
        ({'name': 'a b'}, "name is 'a b'"),
        ({'name': '_a'}, "name is '_a'"),
        ({'name': ''}, "name is ''"),
        ({'wrench_links': ['hand']}, "no link 'hand'; its links are base, link1"),
        ({'wrench_links': ['link1', 'link1']}, 'each of them once'),
        ({'wrench_links': 7}, 'wrench_links is 7'),
    ],
)
def test_unusable_options_are_refused(options, message, tmp_path):
    with pytest.raises(HodynError, match=message):
        generate_code(arm(2), tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_constants_beyond_the_precision_are_refused(tmp_path):
    model = arm(2).with_armature({'joint1': 1e60})
    assert generate_code(model, tmp_path)
    with pytest.raises(HodynError, match='beyond the range of float'):
        generate_code(model, tmp_path / 'float', precision='float')


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(HodynError, match='expected a RobotModel'):
        generate_code('panda.urdf', tmp_path)


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    file = tmp_path / 'file'
    file.write_text('mine')
    with pytest.raises(HodynError, match='cannot be written'):
        generate_code(arm(1), file)
    assert file.read_text() == 'mine'


def test_foreign_files_stay_unless_overwritten(tmp_path):
    mine = tmp_path / 'CMakeLists.txt'
    mine.write_text('mine')
    with pytest.raises(HodynError, match='CMakeLists.txt exists and was not generated'):
        generate_code(arm(1), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ['CMakeLists.txt']
    assert mine.read_text() == 'mine'
    generate_code(arm(1), tmp_path, overwrite=True)
    # What was generated for a robot may be generated again, but not for another robot.
    paths = generate_code(arm(2), tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    with pytest.raises(HodynError, match='was not generated for'):
        generate_code(arm(2, name='other'), tmp_path)


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


@pytest.mark.parametrize('kind', ['five-bar', 'belt'])
@pytest.mark.parametrize('language', ['c', 'cpp'])
def test_closed_loops_compile_and_pass_their_test(kind, language, tmp_path):
    model = closed(kind)
    links = links_of(model.closure.tree)
    paths = generate_code(model, tmp_path, language, name='five', wrench_links=links)
    compilers, standard = (
        (C_COMPILERS, 'c99') if language == 'c' else (CPP_COMPILERS, 'c++11')
    )
    assert 'correct' in run(build_test(paths, compilers[0], standard, '-O1'))


def test_closed_loops_in_c_are_followed_and_refused_as_in_python(tmp_path):
    model = closed()
    code = Library(generate_code(model, tmp_path, name='five'), 'five').functions
    start = model.closure.start
    closed_at = (ctypes.c_double * 4).in_dll(code, 'five_start')
    np.testing.assert_array_equal(closed_at[:], start)
    q, effort = np.array(start), np.empty((3, 2))
    for angle in np.linspace(
        0.0, 3.0, 40
    ):  # from one position to the next, as in a controller
        motion = random_motion(5, 2, 5)
        motion[0] = 0.4 * np.sin(angle), 0.2 * np.sin(2.0 * angle)
        pointers = (x.ctypes.data_as(ctypes.c_void_p) for x in (motion, q, effort))
        wanted, at, result = pointers
        assert code.five_close(wanted, at) == 1
        np.testing.assert_allclose(q, complete_motion(model, motion)[0], atol=1e-12)
        code.five_inverse_dynamics_2(wanted, at, result)
        expected = inverse_dynamics(model, motion)
        np.testing.assert_allclose(effort, expected, rtol=1e-11, atol=1e-10)
    before = q.copy()
    for unreachable in ([1.5, -1.5], [np.nan, 0.0], [np.inf, 0.0]):
        motion[0] = unreachable
        assert code.five_close(wanted, at) == 0
        np.testing.assert_array_equal(q, before)


def test_what_there_is_not_for_closed_loops_is_refused(tmp_path):
    for option in ({'precision': 'float'}, {'forward_dynamics': True}):
        with pytest.raises(HodynError, match='closed loops: its code is inverse dynamics'):
            generate_code(closed(), tmp_path, **option)
    with pytest.raises(HodynError, match='closed loops: no controller'):
        generate_code(closed(), tmp_path, controller=object())
    assert model_hash(closed()) != model_hash(closed('belt'))
