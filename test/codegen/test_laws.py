"""Laws in C with every kind of drive, friction and sensor answer as those in Python do."""

import ctypes
import warnings

import numpy as np
import pytest
from support.compiled_controller import SIZES, Compiled, build
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.engine_cases import needs_compiler
from support.robots import TWO_LINK

from hodyn_ros import HodynError, ModelWarning, RobotModel, friction, generate_code
from hodyn_ros.actuators import Actuators, CubicSpring, RigidDrive, SeriesElastic
from hodyn_ros.control import (
    GravityCompensation,
    Guards,
    JointImpedance,
    TorqueControl,
    TrackingController,
    tracking_controller,
)

pytestmark = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)

T = 1e-3
START = np.array([0.3, -0.4])
SPRING = SeriesElastic(500.0, 0.1, 0.5)
RUBBING = SeriesElastic(
    500.0, 0.1, 3.0, friction.Coulomb(0.3, 0.05) + friction.Stribeck(0.6, 0.2, 0.05)
)
ROUGH = SeriesElastic(
    500.0, 0.1, friction=friction.Sigmoid(0.8, 9.0, -0.02) + friction.Offset(0.1)
)
SOFT = {'stiffness': [50.0, 0.0], 'damping': 1.0, 'feeds_torque_back': False}
# Laws that something else has stopped when encoders and sensors are lost, or without such a joint.
STOPPED_BEFORE_THAT = (
    'tracking, rigid joint',
    'tracking, rough motors',
    'tracking, little torque',
    'impedance, rough motors',
    'torque',
)
# Kind of law, drives, options.
LAWS = {
    'tracking, rigid joint': (
        tracking_controller,
        (RigidDrive(0.1, friction.Viscous(0.5)), RUBBING),
        {'delay': 2e-3},
    ),
    'tracking, rough motors': (tracking_controller, (ROUGH, RigidDrive()), {}),
    'tracking, little torque': (
        tracking_controller,
        (SPRING, SPRING),
        {'torque_limits': [9.0, 2.0], 'guards': None},
    ),
    'impedance, soft in one joint': (JointImpedance, (SPRING, SPRING), SOFT),
    'impedance, rough motors': (JointImpedance, (RUBBING, ROUGH), {'stiffness': 50.0}),
    'led by hand': (
        GravityCompensation,
        (SPRING, RigidDrive(0.1, friction.Coulomb(0.5, 0.02))),
        {'damping': 0.5, 'feeds_torque_back': True, 'delay': 2e-3},
    ),
    'torque': (TorqueControl, (RUBBING, SPRING), {'damping': 0.5}),
}


def law(name, **more):
    kind, drives, options = LAWS[name]
    model = RobotModel.from_urdf(TWO_LINK)
    actuators = Actuators(model, dict(zip(model.joint_names, drives)))
    return kind(
        actuators, T, **{'torque_limits': [80.0, 40.0], 'guards': None, **options, **more}
    )


@pytest.mark.every_case
@pytest.mark.parametrize('name', LAWS)
def test_answers_on_random_states_are_those_of_python(name, tmp_path):
    """Now and then everything begins anew, and torque sensors tell what springs do not."""
    controller = law(name)
    c, random = Compiled(build(controller, tmp_path)), np.random.default_rng(3)
    error = largest = 0.0
    for k in range(300):
        if k in (0, 100, 200):
            controller.reset()
            c.reset()
            start = START + random.uniform(-0.3, 0.3, 2)
            rest = controller.resting(start)
        q = start + 2e-3 * random.standard_normal(2)
        theta = rest + 1e-3 * random.standard_normal(2)
        desired = random.uniform(-1.0, 1.0, (getattr(controller, 'orders', 5), 2))
        desired[0] += start
        given = [desired, q, None, theta, None]
        if k > 200 and 'tracking' in name:
            given.append(500.0 * (theta - q) + 0.02 * random.standard_normal(2))
        torque, found = controller.command(*given), c.command(*given)
        assert c.status == 0
        error = max(error, np.abs(found - torque).max())
        largest = max(largest, np.abs(torque).max())
    assert error < 1e-9 * largest
    as_cpp = '-x', 'c++', '-std=c++11', *WARNINGS, '-O1', '-c', '-o', tmp_path / 'code.o'
    run(CPP_COMPILERS[0], *as_cpp, tmp_path / 'robot_dynamics.c')


CALLS = """
#include "robot_dynamics.c"
#define CALL(function) long long call_##function( \\
    void *a, void *b, void *c, long long n, const double *given, void *none, double *result) \\
{ (void)a; (void)b; (void)c; (void)n; (void)none; function(given, result); return 0; }
"""
FUNCTIONS = 'mass_matrix', 'robot_inverse_dynamics_0', 'robot_inverse_dynamics_2', 'gravity'


def with_dynamics_in_c(controller, folder):
    """Library of a law, and the law with the mass matrix, efforts and friction of the library."""
    build(controller, folder)
    names = [*FUNCTIONS, 'motor_friction']
    if 'motor_friction(' not in (folder / 'robot_dynamics.c').read_text():
        names.pop()
    calls = ''.join(f'CALL({name})\n' for name in names)
    (folder / 'all.c').write_text(CALLS + calls + SIZES)
    options = ('-std=c99', '-O2', '-ffp-contract=off', '-shared', '-fPIC')
    run(C_COMPILERS[0], *options, '-o', folder / 'all.so', folder / 'all.c', '-lm')
    library, calls = ctypes.CDLL(str(folder / 'all.so')), controller.observer.connected()
    calls._awaited.clear()
    for row, name in enumerate(names):
        function = ctypes.cast(library[f'call_{name}'], ctypes.c_void_p)
        controller.observer.record.calls[row] = function.value, 0, 0, 0
    return library


@needs_compiler
@pytest.mark.parametrize('name', LAWS)
def test_bits_are_those_of_python_whatever_happens(name, tmp_path):
    """With gates, missed samples, gaps, stops and releases, on the same dynamics."""
    controller = law(name, guards=Guards(max_tracking_error=0.5, max_external_torque=1e3))
    c = Compiled(with_dynamics_in_c(controller, tmp_path))
    random, seen = np.random.default_rng(3), set()
    controller.reset()
    rest = controller.resting(START)
    for k in range(3000):
        phase = 0.01 * k + np.arange(5)[:, None] * np.pi / 2
        desired = 0.05 * np.sin(phase)[: controller.orders] * [1.0, -1.0]
        if controller.orders == 5:
            desired[0] += START
        q = START + 0.05 * np.sin(0.01 * k - 0.02) + 1e-4 * random.standard_normal(2)
        theta = rest + 0.05 * np.sin(0.01 * k - 0.02) + 1e-4 * random.standard_normal(2)
        theta[1] += 0.4 * (k % 1000 in (*range(700, 710), 300))
        if k % 1000 in range(930, 980):  # behind a stop
            q[1], theta[1] = q[1] + 0.5, theta[1] + 0.5
        speeds = [1e5, np.nan] if k % 500 == 77 else None
        q[0] = np.nan if k % 997 == 5 and k > 10 else q[0]
        theta[0] = np.nan if k % 1000 in range(560, 640) else theta[0]  # lost for longer
        given = [desired, q, speeds, theta, speeds]
        if k % 50 > 40:
            given.append(500.0 * (theta - q) + 60.0 * (k % 1000 in (145, *range(241, 250))))
            given[-1][0] = np.nan if k % 1000 == 195 else given[-1][0]
        odd = {7: 3 * T, 8: 2.6 * T, 77: 80 * T, 78: 0.0, 79: np.inf, 80: np.nan}
        elapsed = odd.get(k % 500, T)
        if k % 1000 == 800:
            controller.stop('asked for')
            c.library.robot_controller_stop(c.memory)
        try:
            torque = controller.command(*given, elapsed=elapsed)
        except HodynError:
            torque = None
        found = c.command(*given, elapsed=elapsed)
        assert (torque is None) == (c.status not in (0, 5)), k
        assert torque is None or np.array_equal(torque, found), k
        seen.add(c.library.reason(c.memory))
        if k % 40 == 39 and controller.state == 'stopped':
            try:
                controller.release()
                assert c.library.robot_controller_release(c.memory) == 0
            except HodynError:
                assert c.library.robot_controller_release(c.memory) == 1
    assert {0, 6, 10} < seen
    assert {14, 15} < seen or name in STOPPED_BEFORE_THAT


def test_a_singular_mass_matrix_is_told(tmp_path):
    """Two rods without mass that carry a point, stretched."""
    B = np.tile(np.eye(4), (2, 1, 1))
    B[1, 0, 3] = 1.0
    inertias = [(0.0, np.zeros(3), np.zeros((3, 3))), (1.0, [1.0, 0, 0], np.zeros((3, 3)))]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_body_screws([[0, 0, 1, 0, 0, 0]] * 2, B, inertias=inertias)
    drives = Actuators(model, dict.fromkeys(model.joint_names, SeriesElastic(1000.0, 0.5)))
    controller = TrackingController(drives, T, torque_limits=np.inf, guards=None)
    c, desired, bent = Compiled(build(controller, tmp_path)), np.zeros((5, 2)), [0.0, 1.0]
    c.command(desired, bent, None, bent)
    assert c.status == 0
    c.reset()
    straight = desired, np.zeros(2), None, np.zeros(2)
    torque = c.command(*straight)
    assert (c.status, torque[0]) == (2, 1234.5)
    with pytest.raises(HodynError, match='singular'):
        controller.command(*straight, None)


def test_actuators_without_code_are_refused(tmp_path):
    model, drive = (
        RobotModel.from_urdf(TWO_LINK),
        SeriesElastic(CubicSpring(900.0, 1e4), 0.5),
    )
    controller = tracking_controller(
        Actuators(model, {'shoulder': drive}), T, torque_limits=[80.0, 40.0]
    )
    with pytest.raises(HodynError, match='CubicSpring.*shoulder'):
        generate_code(model, tmp_path, controller=controller)
    with pytest.raises(HodynError, match='float'):
        generate_code(
            model, tmp_path, precision='float', controller=law('tracking, rough motors')
        )
    assert list(tmp_path.iterdir()) == []
