"""The tracking law in C answers as the one in Python does, whatever the robot does."""

import ctypes
import re
import textwrap
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support import control_simulation
from support.compiled_controller import Compiled, T, build, meet
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.control_cases import (
    CONDITIONS,
    HOME,
    JOINTS,
    MOTOR_INERTIA,
    PANDA,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
    follow,
)
from support.control_plant import Plant

from hodyn_ros import HodynError, ModelWarning, RobotModel, generate_code
from hodyn_ros.actuators import (
    Actuators,
    CubicSpring,
    LinearSpring,
    RigidDrive,
    SeriesElastic,
)
from hodyn_ros.control import Guards, TrackingController
from hodyn_ros.control.guards import BOUNDS
from hodyn_ros.model.friction import Coulomb, Offset, Sigmoid, Stribeck, Viscous

pytestmark = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)

ROOT = Path(__file__).resolve().parents[2]
LAWS = (
    Viscous(0.5),
    Coulomb(1.0, 0.1),
    Sigmoid(0.8, 9.0, -0.02) + Offset(0.1),
    Coulomb(0.3),
    Coulomb(0.3, 0.05) + Stribeck(0.6, 0.2, 0.05),
)


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def springs(**more):
    return {
        name: SeriesElastic(float(k), float(b), **more)
        for name, k, b in zip(JOINTS, STIFFNESS, MOTOR_INERTIA)
    }


def law(model, by_joint=None, **options):
    options = {'torque_limits': TORQUE_LIMITS, **options}
    return TrackingController(Actuators(model, by_joint or springs()), T, **options)


class Both:
    """Asks Python and C, which see the same; a torque sensor and resets on request."""

    def __init__(self, controller, library, sensor=None, resets=()):
        self.python, self.c, self.lead = controller, Compiled(library), controller.lead
        self.sensor, self.resets, self.samples = sensor, resets, 0
        self.error, self.largest = 0.0, 0.0
        self.noise = np.random.default_rng(5)
        controller.reset()

    def command(self, desired, q, qd, theta, thetad):
        if self.samples in self.resets:
            self.python.reset()
            self.c.reset()
        self.samples += 1
        given = [desired, q, qd, theta, thetad]
        if self.sensor is not None:
            given.append(
                self.sensor * (theta - q) + 0.02 * self.noise.standard_normal(len(q))
            )
        torque = self.python.command(*given)
        found = self.c.command(*given)
        assert self.c.status == 0
        self.error = max(self.error, np.abs(found - torque).max())
        self.largest = max(self.largest, np.abs(torque).max())
        return torque


@dataclass(frozen=True)
class Mixed(Condition):
    """Two joints without springs, one of them with a motor without inertia."""

    def plant(self, stiffness=STIFFNESS):
        """Make the robot."""
        stiffness = [None if j in (0, 5) else k for j, k in enumerate(stiffness)]
        inertia = np.where(np.arange(7) == 5, 1e-9, MOTOR_INERTIA)
        return Plant(PANDA, JOINTS, stiffness, inertia, limits=TORQUE_LIMITS, viscous=0.5)


RIGID = {
    JOINTS[0]: RigidDrive(float(MOTOR_INERTIA[0]), Coulomb(0.4, 0.05)),
    JOINTS[5]: RigidDrive(),
}
WITH_FRICTION = {
    name: SeriesElastic(float(k), float(b), friction=LAWS[j % 4])
    for j, (name, k, b) in enumerate(zip(JOINTS, STIFFNESS, MOTOR_INERTIA))
}
# Actuators, options of the law, what the robot is like, and what else there is.
CASES = {
    'encoders, payload, friction, soft': (None, {}, CONDITIONS['all'], {}),
    'delay and dampers': (
        springs(damping=3.0),
        {'delay': 2e-3},
        Condition(delay=2, payload=1.0, damping=2.0, encoders=True),
        {'resets': (700, 1100)},
    ),
    'saturation': (
        None,
        {'torque_limits': 0.5 * TORQUE_LIMITS},
        Condition(payload=2.0, encoders=True, offset=0.01),
        {},
    ),
    'motor friction': (WITH_FRICTION, {}, Condition(coulomb=0.6, encoders=True), {}),
    'torque sensors': (
        None,
        {'delay': 1e-3},
        Condition(delay=1, encoders=True),
        {'sensor': STIFFNESS},
    ),
    'rigid and elastic': (
        {**springs(), **RIGID},
        {'delay': 1e-3},
        Mixed(delay=1, encoders=True),
        {},
    ),
}


@pytest.mark.parametrize(
    'case',
    [
        pytest.param('encoders, payload, friction, soft', marks=pytest.mark.slow),
        'delay and dampers',
        'saturation',
        'motor friction',
        pytest.param('torque sensors', marks=pytest.mark.slow),
        'rigid and elastic',
    ],
)
def test_closed_loop_is_that_of_python(panda, case, tmp_path):
    by_joint, options, condition, more = CASES[case]
    controller = law(panda, by_joint, **options)
    both = Both(controller, build(controller, tmp_path), **more)
    record = follow(both, replace(condition, rest=1.5 - condition.motion.duration))
    assert both.samples == 1500
    assert both.error < 1e-10 * both.largest
    if case == 'saturation':
        limits = 0.5 * TORQUE_LIMITS
        assert np.mean(np.any(np.abs(record.torque) >= limits, axis=1)) > 0.02


@pytest.mark.parametrize(
    ('name', 'delay', 'reason'),
    [
        ('missing samples', 2e-3, 0),
        ('jitter', 0.0, 0),
        ('glitches', 0.0, 0),
        ('slip', 1e-3, 6),
        ('slip that no spring bears', 1e-3, 6),
        ('brake', 1e-3, 5),
        ('brake, gives way', 1e-3, 5),
        ('slip, gives way', 0.0, 6),
        ('gap', 0.0, 8),
        ('clock', 0.0, 0),
        ('frozen motor', 0.0, 11),
        ('frozen motor, gives way', 1e-3, 11),
        ('frozen motor behind a stop', 0.0, 10),
        ('twice', 0.0, 0),
        ('silence', 0.0, 13),
        ('untold gaps', 0.0, 0),
        ('long untold gap', 0.0, 8),
    ],
)
def test_faults_are_met_as_in_python(panda, name, delay, reason, tmp_path):
    """Time, gate, guards, the law that holds, and the way back."""
    name, _, gives_way = name.partition(', ')
    guards = Guards(reactions=dict.fromkeys(BOUNDS, 'float' if gives_way else 'hold'))
    controller = law(panda, springs(damping=1.0), delay=delay, guards=guards)
    assert meet(controller, build(controller, tmp_path), name) == reason
    assert ('gives way' in controller.reason) <= bool(gives_way)
    assert name != 'brake' or not controller.reason
    assert ('stands still' in controller.reason) == name.startswith('frozen')


def test_robot_is_stopped_and_told_about_in_c_as_in_python(at_rest):
    library, controller, (desired, q, _, theta) = at_rest
    controller.reset()
    c = Compiled(library)
    given = desired, q, None, theta, None
    for k in range(30):
        if k == 20:
            controller.stop('asked for')
            library.robot_controller_stop(c.memory)
        np.testing.assert_allclose(c.command(*given), controller.command(*given), atol=1e-9)
    assert library.reason(c.memory) == 10
    rows = np.full((6, 7), np.nan)
    pointers = [ctypes.c_void_p(row.ctypes.data) for row in rows]
    library.robot_controller_observed(c.memory, *pointers)
    state = controller.observer.state()
    expected = (
        *(state.position, state.velocity, state.motor_position, state.motor_velocity),
        *(state.external_torque, state.motor_friction),
    )
    np.testing.assert_allclose(rows, expected, atol=1e-9)
    library.robot_controller_observed(c.memory, *[None] * 6)


@pytest.mark.parametrize('compiler', [*C_COMPILERS, *CPP_COMPILERS])
@pytest.mark.parametrize('delay', [pytest.param(0.0, marks=pytest.mark.slow), 2e-3])
def test_code_compiles_without_warning_as_c_and_as_cpp(panda, compiler, delay, tmp_path):
    controller = law(panda, {**springs(), **RIGID}, delay=delay)
    source = generate_code(panda, tmp_path, controller=controller)[1]
    standard = ('-std=c99',) if compiler in C_COMPILERS else ('-x', 'c++', '-std=c++11')
    # Some warnings need an optimizer.
    run(compiler, *standard, *WARNINGS, '-O2', '-c', '-o', tmp_path / 'code.o', source)


def test_example_of_the_documentation_compiles(panda, tmp_path):
    page = (ROOT / 'doc' / 'code_generation.rst').read_text()
    text = re.findall(r'\.\. code-block:: c\n\n((?: {3}.*\n|\n)+)', page)[1]
    generate_code(panda, tmp_path, controller=law(panda))
    (tmp_path / 'example.c').write_text(textwrap.dedent(text))
    run(
        C_COMPILERS[0],
        '-std=c99',
        *WARNINGS,
        '-c',
        '-o',
        '/dev/null',
        tmp_path / 'example.c',
    )


def resting(controller):
    """Reference and measurement of a robot at rest: desired, q, no velocity, theta."""
    desired = np.zeros((5, len(controller.model.joint_names)))
    desired[0] = HOME
    return desired, desired[0], None, controller.resting(desired[0])


@pytest.fixture(scope='module')
def at_rest(panda, tmp_path_factory):
    """Library with a controller, and a state for it."""
    controller = law(panda, delay=1e-3)
    return (
        build(controller, tmp_path_factory.mktemp('code')),
        controller,
        resting(controller),
    )


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize('which', [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize('samples', [0, 3])
def test_what_is_not_finite_changes_nothing(at_rest, which, value, samples):
    library, controller, (desired, q, _, theta) = at_rest
    still, sensor = np.zeros(7), STIFFNESS * (theta - q)
    given = [desired, q, still, theta, still, sensor]
    c = Compiled(library)
    for _ in range(samples):
        c.command(*given)
        assert c.status == 0
    before = c.memory.raw
    for place in range(np.size(given[which])):
        wrong = [np.array(x) for x in given]
        wrong[which].flat[place] = value
        torque = c.command(*wrong)
        if samples and which in (1, 3):  # taken for what is expected
            expected = Compiled(library)
            for _ in range(samples + 1):
                held = expected.command(*given)
            assert c.status == 0
            np.testing.assert_allclose(torque, held, atol=1e-9)
            break
        if samples and which in (2, 4):  # velocities are those of the observer
            assert c.status == 0
            break
        assert c.status == 1 or (c.status == 2 and which in (2, 4))
        assert np.all(torque == 1234.5)
        assert c.memory.raw == before
    else:
        # The next measurement finds what there would be without the wrong one.
        expected = Compiled(library)
        for _ in range(samples):
            expected.command(*given)
        np.testing.assert_array_equal(c.command(*given), expected.command(*given))


def test_first_measurement_must_be_possible_as_in_python(at_rest):
    library, controller, (desired, q, _, theta) = at_rest
    sensor = STIFFNESS * (theta - q)
    deflected, other = theta.copy(), sensor.copy()
    deflected[1] += 2.5 * TORQUE_LIMITS[1] / STIFFNESS[1]
    other[1] += 0.3 * TORQUE_LIMITS[1]
    for wrong in (
        (desired, np.degrees(q), None, np.degrees(q), None, None),
        (desired, q, None, deflected, None, None),
        (desired, q, None, theta, None, other),
    ):
        c = Compiled(library)
        c.command(*wrong)
        assert c.status == 4
        controller.reset()
        with pytest.raises(HodynError):
            controller.command(*wrong)
        c.command(desired, q, None, theta, None, sensor)
        assert c.status == 0


def test_controllers_share_nothing(at_rest):
    library, _, (desired, q, _, theta) = at_rest
    first, second, alone = (Compiled(library) for _ in range(3))
    torques = []
    for k in range(50):
        torques.append(first.command(desired, q + 1e-4 * k, None, theta, None))
        second.command(desired, q - 2e-3 * k, None, theta, None)
    for k, torque in enumerate(torques):
        found = alone.command(desired, q + 1e-4 * k, None, theta, None)
        np.testing.assert_array_equal(found, torque)


def test_spring_out_of_its_range_is_told(panda, tmp_path):
    short = {**springs(), JOINTS[1]: SeriesElastic(LinearSpring(1000.0, 0.05), 0.6)}
    controller = law(panda, short)
    c = Compiled(build(controller, tmp_path))
    desired, q, _, theta = resting(controller)
    c.command(desired, q, None, theta)
    assert c.status == 0
    controller.command(desired, q, None, theta, None)
    desired[2, 1] = 100.0
    for _ in range(3):
        torque = c.command(desired, q, None, theta)
        assert (c.status, c.library.reason(c.memory)) == (0, 9)
        answer = controller.evaluate(desired, q, None, theta, None)
        np.testing.assert_allclose(torque, answer.torque, atol=1e-9)
        assert JOINTS[1] in answer.reason


def test_spring_out_of_its_range_is_told_without_guards(panda, tmp_path):
    short = {**springs(), JOINTS[1]: SeriesElastic(LinearSpring(1000.0, 0.05), 0.6)}
    controller = law(panda, short, guards=None)
    c = Compiled(build(controller, tmp_path))
    desired, q, _, theta = resting(controller)
    c.command(desired, q, None, theta)
    desired[2, 1] = 100.0
    torque = c.command(desired, q, None, theta)
    assert (c.status, torque[0]) == (3, 1234.5)
    with pytest.raises(HodynError, match=JOINTS[1]):
        controller.command(desired, q, None, theta, None)


def arm():
    """Two rods without mass that carry a point: stretched, its mass matrix is singular."""
    B = np.tile(np.eye(4), (2, 1, 1))
    B[1, 0, 3] = 1.0
    none = (0.0, np.zeros(3), np.zeros((3, 3)))
    inertias = [none, (1.0, np.array([1.0, 0.0, 0.0]), np.zeros((3, 3)))]
    X = np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_body_screws(X, B, inertias=inertias, name='arm')


def test_singular_mass_matrix_is_told(tmp_path):
    model = arm()
    by_joint = {name: SeriesElastic(1000.0, 0.5) for name in model.joint_names}
    controller = TrackingController(Actuators(model, by_joint), T, torque_limits=np.inf)
    c = Compiled(build(controller, tmp_path))
    desired = np.zeros((5, 2))
    bent = np.array([0.0, 1.0])
    c.command(desired, bent, None, bent)
    assert c.status == 0
    c.reset()
    torque = c.command(desired, np.zeros(2), None, np.zeros(2))
    assert (c.status, torque[0]) == (2, 1234.5)
    with pytest.raises(HodynError, match='singular'):
        controller.command(desired, np.zeros(2), None, np.zeros(2), None)


class OwnLaw(Viscous):
    """A law that is not of the package."""


@pytest.mark.parametrize(
    ('by_joint', 'message'),
    [
        (
            {JOINTS[2]: SeriesElastic(CubicSpring(900.0, 1e4), 0.5)},
            'CubicSpring.*panda_joint3',
        ),
        (
            {JOINTS[2]: SeriesElastic(900.0, 0.5, friction=OwnLaw(0.1))},
            'OwnLaw.*panda_joint3',
        ),
    ],
)
def test_actuators_without_code_are_refused(panda, by_joint, message, tmp_path):
    controller = law(panda, {**springs(), **by_joint})
    with pytest.raises(HodynError, match=message):
        generate_code(panda, tmp_path, controller=controller)
    assert list(tmp_path.iterdir()) == []


def test_options_without_code_are_refused(panda, tmp_path):
    controller = law(panda)
    with pytest.raises(HodynError, match='float'):
        generate_code(panda, tmp_path, precision='float', controller=controller)
    with pytest.raises(HodynError, match='another model'):
        heavier = panda.with_payload('panda_link8', 1.0)
        generate_code(heavier, tmp_path, controller=controller)
    with pytest.raises(HodynError, match='type float, expected what tracking_controller'):
        generate_code(panda, tmp_path, controller=1.0)
    assert list(tmp_path.iterdir()) == []


def test_functions_of_the_dynamics_are_those_without_controller(panda, tmp_path):
    header, source = (
        path.read_text()
        for path in generate_code(panda, tmp_path, order=[1], controller=law(panda))[:2]
    )
    for order in (0, 1, 2):
        assert f'inverse_dynamics_{order}' in header
    alone = generate_code(panda, tmp_path / 'alone')[1].read_text()
    assert source.startswith(
        alone.replace('#include <math.h>\n', '#include <math.h>\n#include <string.h>')
    )
