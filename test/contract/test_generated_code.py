"""Generated C and C++, compiled without warnings and called as its headers say.

Efforts are those of the package, which test_vectors.py and test_closed_loops.py prove; laws answer
as the same laws of the package do, step by step, while a simulated robot meets faults.
"""

import ctypes
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from support.compiled_controller import Compiled, build
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.plugins import KILTED, compile_plugin
from support.random_trees import random_gravity, random_motion, random_robot
from support.robots import FIVE_BAR, TWO_LINK

from hodyn_ros import (
    HodynError,
    RobotModel,
    Wrench,
    friction,
    generate_code,
    inverse_dynamics,
)
from hodyn_ros.actuators import Actuators, LinearSpring, SeriesElastic
from hodyn_ros.control import (
    CartesianImpedance,
    Guards,
    JointImpedance,
    tracking_controller,
)
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.simulation import ElasticPlant

pytest.importorskip('mujoco', reason='MuJoCo (PyPI: mujoco) simulates the robot')
pytestmark = [
    pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning'),
    pytest.mark.skipif(
        not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
    ),
]

LAWS = (
    friction.Viscous(0.7),
    friction.Coulomb(1.3, smoothing=0.2) + friction.Stribeck(0.8, 0.4, smoothing=0.2),
    friction.Sigmoid(1.1, 5.0, -0.03) + friction.Offset(0.4),
)


def burdened(model):
    joints = model.body_names
    laws = {name: LAWS[i % len(LAWS)] for i, name in enumerate(joints)}
    return model.with_friction(laws).with_armature(dict.fromkeys(joints, 0.2))


def compiled(paths, precision='double'):
    library = paths[0].with_suffix('.so')
    options = ('-std=c99', *WARNINGS, '-O0', '-shared', '-fPIC')
    run(C_COMPILERS[0], *options, '-o', library, paths[1], '-lm')
    code, real = ctypes.CDLL(str(library)), np.dtype(precision)

    def call(name, shape, *given):
        arrays = [np.ascontiguousarray(values, dtype=real) for values in given]
        out = np.full(shape, np.nan, dtype=real)
        code[name](*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out)))
        return out.astype(float)

    return code, call


def check_orders(found, expected, tolerance=1e-13):
    errors = np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)
    assert (errors < tolerance).all()


# --- Dynamics -----------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['Panda', 'burdened tree'])
def test_efforts_and_their_derivatives_are_those_of_the_robot(name, tmp_path):
    if name == 'Panda':
        model, links = (
            RobotModel.from_urdf('panda'),
            ('panda_link8', 'panda_link7', 'panda_link3'),
        )
    else:
        tree = random_robot(4)
        model = burdened(RobotModel.from_urdf(tree.xml, gravity=random_gravity(4)))
        links = tree.links[1:4]
    paths = generate_code(model, tmp_path, name='robot', wrench_links=links)
    _, call = compiled(paths)
    motion = random_motion(1, model.n_joints, 5)
    values = 10.0 * np.random.default_rng(2).standard_normal((3, 3, 6))
    wrenches = [Wrench(link, values[:, i]) for i, link in enumerate(links)]
    for end, given, acting in (('', (), ()), ('_with_wrenches', (values,), wrenches)):
        expected = inverse_dynamics(model, motion, acting)
        for order in range(3):
            shape = order + 1, model.n_joints
            cut = [motion[: order + 3], *(x[: order + 1] for x in given)]
            found = call(f'robot_inverse_dynamics_{order}{end}', shape, *cut)
            check_orders(found, expected[: order + 1])


def test_closed_loops_are_closed_and_followed_or_left_as_they_are(tmp_path):
    model = RobotModel.from_urdf(FIVE_BAR)
    code, _ = compiled(generate_code(model, tmp_path, name='five'))
    start = (ctypes.c_double * 4).in_dll(code, 'five_start')
    q, effort, motion = np.array(start), np.empty((3, 2)), random_motion(5, 2, 5)
    wanted, at, result = (ctypes.c_void_p(x.ctypes.data) for x in (motion, q, effort))
    for angle in np.linspace(0.0, 3.0, 20):
        motion[0] = 0.4 * np.sin(angle), 0.2 * np.sin(2.0 * angle)
        assert code.five_close(wanted, at) == 1
        np.testing.assert_allclose(q, complete_motion(model, motion)[0], atol=1e-12)
        code.five_inverse_dynamics_2(wanted, at, result)
        check_orders(effort, inverse_dynamics(model, motion), 1e-10)
    before = q.copy()
    for unreachable in ([1.5, -1.5], [np.nan, 0.0]):
        motion[0] = unreachable
        assert code.five_close(wanted, at) == 0
        np.testing.assert_array_equal(q, before)


USE = """
#include "arm_dynamics.hpp"
#include <cstring>
using namespace arm_dynamics;
int main() {
  Joints<5> q; Wrenches<3> w; Real x = 0;
  for (auto & row : q) for (auto & v : row) v = (x += Real(0.125));
  for (auto & k : w) for (auto & l : k) for (auto & v : l) v = (x -= 1);
  Real expected[3 * n_joints];
  arm_inverse_dynamics_2_with_wrenches(&q[0][0], &w[0][0][0], expected);
  const Joints<3> effort = inverse_dynamics(q, w);
  int wrong = std::memcmp(effort.data(), expected, sizeof expected) != 0 || effort[0][0] == 0;
  wrong += std::strcmp(joint_names[1], "elbow") != 0 || n_joints != 2;
  const Joints<3> back = forward_dynamics(Joints<2>{{q[0], q[1]}}, inverse_dynamics(q));
  for (int k = 0; k < 3; ++k) for (int j = 0; j < 2; ++j) {
    const Real off = back[k][j] - q[k + 2][j];
    wrong += !(off < Real(LIMIT) && off > -Real(LIMIT));
  }
  return wrong;
}
"""


@pytest.mark.parametrize(('precision', 'limit'), [('double', '1e-11'), ('float', '1e-2')])
def test_functions_of_cpp_are_those_of_c_and_the_program_tests_itself(
    precision, limit, tmp_path
):
    model = burdened(RobotModel.from_urdf(TWO_LINK))
    options = {'precision': precision, 'wrench_links': ['tool'], 'forward_dynamics': True}
    paths = generate_code(model, tmp_path, 'cpp', **options)
    (tmp_path / 'use.cpp').write_text(USE.replace('LIMIT', limit))
    sources = tmp_path / 'use.cpp', paths[1], '-lm'
    shared = '-Wall', '-Wextra', '-Werror', '-O0', '-o'
    run(CPP_COMPILERS[0], '-std=c++11', *shared, tmp_path / 'use', *sources)
    run(tmp_path / 'use')
    again = generate_code(model, tmp_path / 'again', 'cpp', **options)
    assert [x.read_bytes() for x in paths] == [x.read_bytes() for x in again]
    sources = [x for x in again if x.suffix in ('.c', '.cpp')]
    command = CPP_COMPILERS[0], '-std=c++11', *WARNINGS, '-O0', *sources
    run(*command, '-o', tmp_path / 'test')
    assert 'correct' in run(tmp_path / 'test')
    # The source of a robot whose second link is a hundredth heavier.
    heavier = burdened(RobotModel.from_urdf(TWO_LINK.replace('0.7"', '0.707"')))
    other = generate_code(heavier, tmp_path / 'other', 'cpp', **options)
    (source,) = [x for x in other if x.name == paths[1].name]
    again[1].write_text(source.read_text())
    run(*command, '-o', tmp_path / 'test')
    result = subprocess.run([tmp_path / 'test'], capture_output=True, text=True)
    assert result.returncode == 1 and 'wrong' in result.stdout


# --- Batches ------------------------------------------------------------------------------------


def batches(paths, flags=('-O3', '-march=native', '-ffp-contract=fast', '-fno-math-errno')):
    """Caller of batch functions; what stands behind their results stays as it is."""
    library = paths[0].with_suffix('.so')
    options = ('-std=c99', *WARNINGS, *flags, '-shared', '-fPIC')
    run(C_COMPILERS[0], *options, '-o', library, paths[1], '-lm')
    code = ctypes.CDLL(str(library))

    def call(name, shape, *given):
        arrays = [np.ascontiguousarray(values, dtype=float) for values in given]
        out = np.full((shape[0] + 9, *shape[1:]), 1234.5)
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out))
        code[f'{name}_batch'](ctypes.c_size_t(shape[0]), *pointers)
        assert (out[shape[0] :] == 1234.5).all()
        return out[: shape[0]]

    return call


@pytest.mark.parametrize('name', ['Panda', 'burdened tree'])
def test_batches_have_the_efforts_of_each_sample(name, tmp_path):
    if name == 'Panda':
        model, link, orders = RobotModel.from_urdf('panda'), 'panda_link8', [2]
    else:
        tree = random_robot(4)
        model = burdened(RobotModel.from_urdf(tree.xml, gravity=random_gravity(4)))
        link, orders = tree.links[2], [0, 1]
    options = {'name': 'robot', 'order': orders, 'wrench_links': [link]}
    call = batches(generate_code(model, tmp_path, **options))
    n = model.n_joints
    motion = np.array([random_motion(seed, n, 5) for seed in range(11)])
    motion[3, 0] *= 1e7  # beyond the range of short polynomials
    motion[4, 0], motion[5, 1] = 0.0, 0.0
    motion[6, 1] *= 1e3  # friction far from its step
    wrench = 10.0 * np.random.default_rng(2).standard_normal((11, 3, 6))
    for order in orders:
        function = f'robot_inverse_dynamics_{order}'
        cut, acting = motion[:, : order + 3].copy(), wrench[:, : order + 1]
        for end, given, wrenches in (
            ('', [cut], ()),
            ('_with_wrenches', [cut, acting], Wrench(link, acting)),
        ):
            expected = inverse_dynamics(model, cut, wrenches)
            found = call(function + end, expected.shape, *given)
            # An angle of 1e7 rad is only known to 1e-9.
            check_orders(found[3], expected[3], 1e-8)
            check_orders(*(np.delete(x, 3, axis=0) for x in (found, expected)), 1e-12)
            for count in (0, 1, 8):  # whoever is beside a sample, and wherever it stands
                parts = [x[2 : count + 2] for x in given]
                part = call(function + end, (count, *expected.shape[1:]), *parts)
                assert part.tobytes() == found[2 : count + 2].tobytes()
        cut[5, 0, 1] = np.nan
        lost = call(function, expected.shape, cut)
        assert np.isnan(lost[5]).any()
        assert np.isfinite(np.delete(lost, 5, axis=0)).all()


def test_batches_of_closed_loops_and_of_forward_dynamics(tmp_path):
    plain = RobotModel.from_urdf(FIVE_BAR)
    rubbing = plain.closure.tree.with_friction({'right_elbow': LAWS[1], 'left': LAWS[0]})
    model = rubbing.with_loops(plain.closure.loops, independent=plain.joint_names)
    call = batches(generate_code(model, tmp_path / 'five', name='five'))
    motion = np.array([random_motion(seed, 2, 5) for seed in range(6)])
    motion[:, 0] *= 0.2
    closed = complete_motion(model, motion)[:, 0]
    found = call('five_inverse_dynamics_2', (6, 3, 2), motion, closed)
    check_orders(found, inverse_dynamics(model, motion), 1e-10)
    arm = burdened(RobotModel.from_urdf(TWO_LINK))
    options = {'name': 'arm', 'forward_dynamics': True}
    call = batches(generate_code(arm, tmp_path / 'arm', **options), ['-O1'])
    efforts = inverse_dynamics(arm, motion)
    found = call('arm_forward_dynamics_2', (6, 3, 2), motion[:, :2], efforts)
    check_orders(found, motion[:, 2:], 1e-10)


USE_BATCHES = """
#include "arm_dynamics.hpp"
#include <vector>
using namespace arm_dynamics;
int main() {
  std::vector<Joints<5>> q(7);
  std::vector<Joints<2>> state(7);
  std::vector<Wrenches<3>> w(7);
  std::vector<Joints<3>> effort(7), acceleration(7);
  Real x = 0;
  for (auto & motion : q) for (auto & row : motion) for (auto & v : row) v = (x += Real(0.125));
  for (auto & one : w) for (auto & k : one) for (auto & l : k) for (auto & v : l) v = (x -= 1);
  inverse_dynamics(q.size(), q.data(), w.data(), effort.data());
  int wrong = 0;
  auto compare = [&wrong](const Joints<3> & found, const Joints<3> & expected) {
    for (int k = 0; k < 3; ++k) for (std::size_t j = 0; j < n_joints; ++j) {
      const Real off = found[k][j] - expected[k][j], size = expected[k][0] * expected[k][0];
      wrong += !(off * off <= Real(1e-24) * (1 + size + expected[k][1] * expected[k][1]));
    }
  };
  for (std::size_t s = 0; s < q.size(); ++s) {
    compare(effort[s], inverse_dynamics(q[s], w[s]));
    state[s] = Joints<2>{{q[s][0], q[s][1]}};
  }
  inverse_dynamics(q.size(), q.data(), effort.data());
  forward_dynamics(state.size(), state.data(), effort.data(), acceleration.data());
  for (std::size_t s = 0; s < q.size(); ++s) {
    compare(acceleration[s], forward_dynamics(state[s], effort[s]));
  }
  inverse_dynamics(0, static_cast<const Joints<5> *>(nullptr), static_cast<Joints<3> *>(nullptr));
  return wrong;
}
"""


def test_batches_of_cpp_are_arrays_of_samples(tmp_path):
    model = burdened(RobotModel.from_urdf(TWO_LINK))
    options = {'wrench_links': ['tool'], 'forward_dynamics': True}
    paths = generate_code(model, tmp_path, 'cpp', **options)
    (tmp_path / 'use.cpp').write_text(USE_BATCHES)
    flags = '-std=c++11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-O1'
    sources = tmp_path / 'use.cpp', paths[1], '-lm'
    run(CPP_COMPILERS[0], *flags, '-o', tmp_path / 'use', *sources)
    run(tmp_path / 'use')


# --- Laws ---------------------------------------------------------------------------------------

T = 1e-3
START = np.array([0.3, -0.4])


def actuators(**more):
    model = RobotModel.from_urdf(TWO_LINK)
    return Actuators(
        model, {x: SeriesElastic(500.0, 0.1, 0.5, **more) for x in model.joint_names}
    )


def make_tracking():
    drives = actuators(friction=friction.Coulomb(0.3, 0.05))
    return tracking_controller(
        drives, T, torque_limits=[80.0, 40.0], delay=1e-3, guards=Guards(max_gap=0.05)
    )


def make_impedance():
    return JointImpedance(
        actuators(),
        T,
        stiffness=[[100.0, 10.0], [10.0, 60.0]],
        torque_limits=[80.0, 40.0],
        guards=Guards(max_gap=0.05),
    )


@pytest.fixture(scope='module', params=[make_tracking, make_impedance])
def pair(request, tmp_path_factory):
    """A law and its library."""
    controller = request.param()
    return controller, build(controller, tmp_path_factory.mktemp('law'))


def wanted(time):
    k = np.arange(5)[:, None]
    motion = 0.1 * 3.0**k * np.sin(3.0 * time + 0.5 * np.pi * k) * [1.0, -1.0]
    motion[0] += START
    return motion


def test_a_law_in_c_answers_as_in_python_whatever_happens(pair):
    """Late and wrong samples, slipping encoders, a stop, a gap; each is met and got over."""
    law, library = pair
    law.reset()
    c, plant = Compiled(library), ElasticPlant(law.actuators.model, law.actuators, 2e-4)
    plant.reset(START)
    lead, reasons, released, error, largest = getattr(law, 'lead', 0.0), [], [], 0.0, 0.0
    given = None
    for k in range(2600):
        elapsed = {500: 0.0, 510: -T, 750: 80 * T, 2000: 80 * T}.get(
            k, 3 * T if k in (300, 320) else T
        )
        q, theta = plant.q.copy(), plant.theta.copy()
        theta[1] += 0.15 * (k == 450) + 0.3 * (1200 <= k < 1300)
        q[0] = np.nan if k == 470 else q[0]
        repeated = 180 <= k < 183
        given = given if repeated else (wanted(k * T + lead), q, None, theta, None)
        if k == 600:
            law.stop('asked for')
            library.robot_controller_stop(c.memory)
        torque, found = (
            law.command(*given, elapsed=elapsed),
            c.command(*given, elapsed=elapsed),
        )
        assert c.status == (5 if elapsed <= 0.0 or (repeated and not law.reason) else 0)
        error = max(error, np.abs(found - torque).max())
        largest = max(largest, np.abs(torque).max())
        reason = library.reason(c.memory)
        assert (reason == 0) == (law.reason == '')
        if reason and (not reasons or reasons[-1] != reason):
            reasons.append(reason)
        if k in (603, 900, 1250, 1700, 2400):
            try:
                law.release()
                released.append(0)
            except HodynError:
                released.append(1)
            assert library.robot_controller_release(c.memory) == released[-1]
            if not released[-1]:
                reasons.append(0)
        plant.step(found, 5)
    assert error < 1e-9 * largest
    # Asked for, measurements that cannot be true, a gap, as the header counts them.
    assert [x for x in reasons if x] == [10, 14, 8]
    assert released == [1, 0, 1, 0, 0]  # not while motors move or encoders are not believed
    names = ('position', 'velocity', 'motor_position', 'motor_velocity', 'external_torque')
    rows = np.full((6, 2), np.nan)
    library.robot_controller_observed(
        c.memory, *(ctypes.c_void_p(r.ctypes.data) for r in rows)
    )
    state = law.observer.state()
    expected = [getattr(state, name) for name in names]
    np.testing.assert_allclose(rows[:5], expected, atol=1e-9)


def test_a_first_measurement_that_cannot_be_true_changes_nothing(pair):
    law, library = pair
    law.reset()
    desired, theta = wanted(0.0) * [[1]] + 0.0, law.resting(START)
    desired[1:] = 0.0
    good = desired, START, np.zeros(2), theta, np.zeros(2)
    for place in range(5):
        for value in (np.nan, np.inf):
            wrong = [np.array(x) for x in good]
            wrong[place].flat[0] = value
            c = Compiled(library)
            before = c.memory.raw
            torque = c.command(*wrong)
            assert c.status in (1, 2) and (torque == 1234.5).all()
            assert c.memory.raw == before
            with pytest.raises(HodynError):
                law.command(*wrong)
    c = Compiled(library)
    deflected = theta + [0.0, 0.5]
    assert c.command(desired, START, None, deflected)[0] == 1234.5 and c.status == 4
    with pytest.raises(HodynError):
        law.command(desired, START, None, deflected, None)
    one, other = Compiled(library), Compiled(library)
    for k in range(20):  # two robots of one library share nothing
        first = one.command(desired, START + 1e-4 * k, None, theta)
        other.command(desired, START - 2e-4 * k, None, theta)
        np.testing.assert_allclose(
            first, law.command(desired, START + 1e-4 * k, None, theta, None)
        )


def test_a_spring_out_of_its_range_stops_the_robot(tmp_path):
    model = RobotModel.from_urdf(TWO_LINK)
    drives = {x: SeriesElastic(LinearSpring(500.0, 0.1), 0.1) for x in model.joint_names}
    law = JointImpedance(
        Actuators(model, drives), T, stiffness=[100.0, 60.0], torque_limits=[80.0, 40.0]
    )
    c = Compiled(build(law, tmp_path))
    desired = np.zeros((5, 2))
    desired[0] = START
    given = desired, START, None, law.resting(START)
    c.command(*given), law.command(*given, None)
    desired[0, 1] += 1.5
    for _ in range(3):
        found, answer = c.command(*given), law.evaluate(*given, None)
        assert (c.status, c.library.reason(c.memory)) == (0, 9)
        np.testing.assert_allclose(found, answer.torque, atol=1e-9)
        assert 'elbow' in answer.reason


def test_a_package_for_ros2_control_compiles_and_says_everywhere_the_same(tmp_path):
    law = make_tracking()
    options = {'controller': law, 'ros2_control': True, 'name': 'Arm'}
    paths = generate_code(law.actuators.model, tmp_path / 'package', **options)
    texts = {x.relative_to(tmp_path / 'package').as_posix(): x.read_text() for x in paths}
    assert {*texts} == {
        *('CMakeLists.txt', 'README.md', 'package.xml', 'plugin.xml', 'src/plugin.cpp'),
        *('config/controllers.yaml', 'kernel/CMakeLists.txt', 'kernel/Arm_dynamics.c'),
        *('kernel/Arm_dynamics.h', 'kernel/Arm_dynamics_test.c'),
    }
    package, plugin = (
        ElementTree.fromstring(texts[x]) for x in ('package.xml', 'plugin.xml')
    )
    assert package.findtext('name') == plugin.get('path') == 'arm_tracking_controller'
    config = yaml.safe_load(texts['config/controllers.yaml'])
    manager = config['controller_manager']['ros__parameters']
    assert manager['update_rate'] == 1000
    assert manager['tracking_controller']['type'] == plugin.find('class').get('name')
    compile_plugin(
        tmp_path / 'plugin',
        KILTED,
        tmp_path / 'package' / 'src' / 'plugin.cpp',
        include=(tmp_path / 'package' / 'kernel',),
        flags=('-fsyntax-only',),
    )


# --- Refusals -----------------------------------------------------------------------------------


class OwnLaw(friction.Viscous):
    """A law that is not of the package."""


def of_one_own():
    drives = actuators(friction=OwnLaw(0.1))
    return tracking_controller(drives, T, torque_limits=[80.0, 40.0])


def of_the_tip():
    limits = [80.0, 40.0]
    return CartesianImpedance(actuators(), T, 'tool', torque_limits=limits, stiffness=20.0)


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({'language': 'rust'}, "language is 'rust', expected one of c, cpp"),
        ({'precision': 'half'}, "precision is 'half'"),
        ({'order': 3}, 'order is 3, expected a number from 0 to 2'),
        ({'order': ()}, r'order is \(\)'),
        ({'name': 'a b'}, "name is 'a b'"),
        ({'name': ''}, "name is ''"),
        ({'name': '../x'}, "name is '../x'"),
        ({'wrench_links': ['hand']}, "no link 'hand'"),
        ({'wrench_links': ['tool', 'tool']}, 'each of them once'),
        ({'controller': 1.0}, 'type float, expected'),
        ({'ros2_control': True}, 'controller that tracking_controller returns'),
        ({'controller': make_impedance}, 'another model'),
        ({'controller': of_the_tip}, 'CartesianImpedance'),
        ({'controller': of_one_own}, "OwnLaw.* of joint 'shoulder'"),
    ],
)
def test_what_cannot_be_generated_is_refused_and_nothing_is_written(
    options, said, tmp_path
):
    model = RobotModel.from_urdf(TWO_LINK)
    if callable(options.get('controller')):
        options = {'controller': options['controller']()}
        model = options['controller'].actuators.model
    if said == 'another model':
        model = model.with_payload('tool', 1.0)
    with pytest.raises(HodynError, match=said):
        generate_code(model, tmp_path / 'code', **options)
    assert not (tmp_path / 'code').exists() or not [*(tmp_path / 'code').iterdir()]


def test_files_of_others_stay_unless_they_are_to_be_overwritten(tmp_path):
    model, mine = RobotModel.from_urdf(TWO_LINK), tmp_path / 'CMakeLists.txt'
    mine.write_text('mine')
    with pytest.raises(HodynError, match='CMakeLists.txt exists and was not generated'):
        generate_code(model, tmp_path)
    assert [*tmp_path.iterdir()] == [mine] and mine.read_text() == 'mine'
    generate_code(model, tmp_path, overwrite=True)
    generate_code(model, tmp_path, order=0)  # the same robot again
    with pytest.raises(HodynError, match='was not generated for'):
        generate_code(model, tmp_path, name='other')
