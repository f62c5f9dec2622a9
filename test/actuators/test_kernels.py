"""Kernels of elastic joints: against CasADi, compiled as interpreted, one sample as a batch."""

import subprocess
import sys

import casadi
import numpy as np
import pytest
from support import robots, vsa_oracle

from hodyn_ros import RobotModel, friction
from hodyn_ros.actuators import (
    Actuators,
    AwasII,
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    Qbmove,
    SeriesElastic,
    Spring,
    TableSpring,
    VariableStiffness,
    kernels,
    motor_motion,
    motor_step,
)
from hodyn_ros.errors import ActuatorError, DeflectionError, JointNameError, MotionError

MODEL = RobotModel.from_urdf('panda')
NAMES = MODEL.joint_names
ALL = (kernels.laws, kernels.drive, kernels.elastic, kernels.follow)
KNOTS = np.linspace(-0.4, 0.4, 9)
INERTIA = 0.3

# Laws as CasADi and NumPy evaluate them. A cubic polynomial is its own cubic spline.
SPRINGS = {
    'linear': (LinearSpring(900.0), lambda d: 900.0 * d),
    'cubic': (CubicSpring(600.0, 4e3), lambda d: 600.0 * d + 4e3 * d**3),
    'softening': (CubicSpring(600.0, -500.0, 0.5), lambda d: 600.0 * d - 500.0 * d**3),
    'polynomial': (
        PolynomialSpring((700.0, 30.0, 2e3, 0.0, 1e4), 1.0),
        lambda d: 700.0 * d + 30.0 * d**2 + 2e3 * d**3 + 1e4 * d**5,
    ),
    'table': (
        TableSpring(KNOTS, 400.0 * KNOTS + 300.0 * KNOTS**3),
        lambda d: 400.0 * d + 300.0 * d**3,
    ),
}
VARIABLE = {
    'equal': Qbmove(6.0, 10.0),
    'unequal': Qbmove((7.0, 6.0), (9.0, 12.0)),
    'lever': AwasII(50.0, 0.1, 0.02, pitch=0.01),
}


@pytest.fixture(scope='module', autouse=True)
def compiled():
    """Machine code of all kernels, whatever the number of calls."""
    for kernel in ALL:
        kernel.prepare()


def oscillation(t, j, lib=np, size=0.1):
    """Smooth functions of time."""
    return size * (lib.sin(2.1 * t + j) + 0.4 * lib.cos(3.3 * t - j))


def derivatives(function, times, orders):
    """Function of time and its derivatives (N, orders), by automatic differentiation."""
    t = casadi.SX.sym('t')
    rows = [function(t)]
    while len(rows) < orders:
        rows.append(casadi.jacobian(rows[-1], t))
    whole = casadi.Function('orders', [t], [casadi.vertcat(*rows)])
    return np.array([np.array(whole(time)).ravel() for time in times])


def along(function, times, orders):
    """Functions of time and joint as a motion (N, orders, 7)."""
    found = [derivatives(lambda t, j=j: function(t, j), times, orders) for j in range(7)]
    return np.stack(found, axis=-1)


def assert_close(found, expected, tolerance=1e-12):
    """Refuse numbers that differ, relative to the size of each order."""
    axes = tuple(i for i in range(expected.ndim) if i != expected.ndim - 2)
    size = np.abs(expected).max(axis=axes, keepdims=True)
    excess = np.abs(found - expected) / (tolerance * size)
    assert excess.max() <= 1.0, excess.max(axis=axes)


def each_way(actuators, motion, effort, stiffness):
    """Motors of the batch, and of every sample, by the way of a control loop and by the other."""
    whole = motor_motion(actuators, motion, effort, stiffness=stiffness)
    for i in range(len(motion)):
        own = {name: series[i] for name, series in stiffness.items()}
        slow = motor_motion(actuators, motion[i].tolist(), effort[i], stiffness=own)
        assert motion.shape[1:] in actuators.quick
        quick = motor_motion(actuators, motion[i], effort[i], stiffness=own)
        for a, b, c in zip(whole, slow, quick):
            np.testing.assert_allclose(a[i], b, rtol=1e-14, atol=1e-300)
            np.testing.assert_array_equal(b, c)
    return whole


@pytest.mark.parametrize(('spring', 'law'), SPRINGS.values(), ids=SPRINGS)
@pytest.mark.parametrize('K', [5, 7])
def test_springs_are_those_of_automatic_differentiation(spring, law, K):
    times = np.linspace(0.0, 2.0, 9)
    motion = along(lambda t, j: oscillation(t, 2 * j, casadi, 0.7), times, K)
    deflection = along(lambda t, j: oscillation(t, j, casadi), times, K - 2)
    effort = along(lambda t, j: law(oscillation(t, j, casadi)), times, K - 2)
    if isinstance(spring, TableSpring):
        K = 5  # its third derivative jumps at the points
        motion, deflection, effort = motion[:, :5], deflection[:, :3], effort[:, :3]
    actuators = Actuators(MODEL, dict.fromkeys(NAMES, SeriesElastic(spring, INERTIA)))
    theta, tau, delta = each_way(actuators, motion, effort, {})
    assert_close(delta, deflection)
    assert_close(theta, motion[:, : K - 2] + deflection)
    assert_close(
        tau, INERTIA * (motion[:, 2 : K - 2] + deflection[:, 2:]) + effort[:, : K - 4]
    )


@pytest.mark.parametrize('model', VARIABLE.values(), ids=VARIABLE)
def test_variable_stiffness_is_that_of_automatic_differentiation(model):
    times = np.linspace(0.0, 2.0, 9)

    def coordinates(t, j):
        """Positions of the joint and both motors."""
        q = oscillation(t, 2 * j, casadi, 0.7)
        if isinstance(model, AwasII):
            return (
                q,
                q + oscillation(t, j, casadi),
                5.0 + oscillation(t, j + 1, casadi, 1.0),
            )
        first, second = (oscillation(t, j + k, casadi, 0.05) for k in (1, 3))
        return q, q + 0.25 + first, q - 0.25 + second

    def formula(of):
        return along(lambda t, j: of(model, casadi, *coordinates(t, j)), times, 3)

    motion = along(lambda t, j: coordinates(t, j)[0], times, 5)
    effort, stiff = formula(vsa_oracle.torque), formula(vsa_oracle.stiffness)
    stiffness = {name: stiff[..., j].copy() for j, name in enumerate(NAMES)}
    law = friction.Viscous(0.2)
    actuators = Actuators(
        MODEL, dict.fromkeys(NAMES, VariableStiffness(model, (INERTIA, 0.5), law))
    )
    theta, tau, _ = each_way(actuators, motion, effort, stiffness)
    for i, inertia in enumerate((INERTIA, 0.5)):
        expected = along(lambda t, j, i=i: coordinates(t, j)[1 + i], times, 3)
        assert_close(theta[..., i::2], expected)
        springs = along(
            lambda t, j, i=i: vsa_oracle.motor_torques(model, casadi, *coordinates(t, j))[
                i
            ],
            times,
            1,
        )
        load = inertia * expected[:, 2:] + 0.2 * expected[:, 1:2] + springs
        assert_close(tau[..., i::2], load)


@pytest.mark.parametrize('damping', [0.02, 2.0, 200.0])
def test_dampers_follow_a_motion_that_is_known(damping):
    spring, law = SPRINGS['linear']
    times = 0.002 * np.arange(120)
    motion = along(lambda t, j: oscillation(t, 2 * j, casadi, 0.7), times, 5)
    deflection = along(lambda t, j: oscillation(t, j, casadi), times, 3)

    def torque(t, j):
        d = oscillation(t, j, casadi)
        return law(d) + damping * casadi.jacobian(d, t)

    effort = along(torque, times, 3)
    actuators = Actuators(
        MODEL, dict.fromkeys(NAMES, SeriesElastic(spring, INERTIA, damping))
    )
    start = dict(zip(NAMES, deflection[0, 0]))
    whole = motor_motion(actuators, motion, effort, times=times, initial_deflection=start)
    assert_close(whole.deflection[:, :1], deflection[:, :1])
    # Its derivatives are as exact as samples so near to each other allow.
    for m in (1, 2):
        assert_close(
            whole.deflection[:, m : m + 1], deflection[:, m : m + 1], 1e-12 * 500.0**m
        )
    _, state = motor_step(
        actuators, 0.0, motion[0], None, effort[0], initial_deflection=start
    )
    for i in range(1, 120):
        sample, state = motor_step(actuators, times[i], motion[i], state, effort[i])
        assert_close(sample.deflection[:1], whole.deflection[i, :1])
    assert (5, 7) in actuators.quick


class Quartic(Spring):
    """A law of one's own."""

    range = (-0.5, 0.5)

    def derivatives(self, deflection, order):
        x = np.asarray(deflection)
        rows = [600.0 * x + 4e3 * x**3, 600.0 + 12e3 * x**2, 24e3 * x, 24e3 + 0.0 * x]
        return np.stack((rows + [0.0 * x] * order)[: order + 1], axis=-1)


def test_a_law_of_ones_own_moves_as_one_that_is_known():
    motion = along(
        lambda t, j: oscillation(t, 2 * j, casadi, 0.7), 0.004 * np.arange(20), 5
    )
    found = []
    for spring in (Quartic(), CubicSpring(600.0, 4e3, 0.5)):
        actuators = Actuators(MODEL, {NAMES[1]: SeriesElastic(spring, INERTIA)})
        found.append(motor_motion(actuators, motion))
        for _ in range(2):  # what is kept for the next call is not for laws of one's own
            sample = motor_motion(actuators, motion[1])
        np.testing.assert_allclose(sample.deflection, found[-1].deflection[1], rtol=1e-9)
    for own, known in zip(*found):
        np.testing.assert_allclose(own, known, rtol=1e-9, atol=1e-12)


def test_the_interpreter_computes_what_machine_code_does(monkeypatch):
    times = 0.01 * np.arange(5)
    motion = along(lambda t, j: oscillation(t, 2 * j, casadi, 0.7), times, 5)
    springs = [spring for spring, _ in SPRINGS.values()]
    joints = dict(zip(NAMES, (SeriesElastic(spring, INERTIA) for spring in springs)))
    joints[NAMES[0]] = SeriesElastic(springs[0], INERTIA, 5.0)
    joints[NAMES[5]] = VariableStiffness(VARIABLE['unequal'], INERTIA)
    joints[NAMES[6]] = VariableStiffness(VARIABLE['lever'], INERTIA)
    stiffness = dict.fromkeys(NAMES[5:], [900.0, 5.0, -3.0])
    effort = along(lambda t, j: 5.0 * oscillation(t, j, casadi), times, 3)

    def compute():
        actuators = Actuators(MODEL, joints)
        given = {'stiffness': stiffness, 'times': times}
        found = motor_motion(actuators, motion, effort, **given)
        return [*found, springs[3].derivatives(np.linspace(-0.1, 0.1, 5), 4)]

    machine = compute()
    for kernel in ALL:
        monkeypatch.setattr(kernel, 'compiled', None)
        monkeypatch.setattr(kernel, '__call__', kernel.interpreted, raising=False)
    monkeypatch.setattr(
        kernels.ElasticKernel, '__call__', kernels.ElasticKernel.interpreted
    )
    for a, b in zip(machine, compute()):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ('changes', 'error', 'reason'),
    [
        (
            {'effort': np.full((3, 7), 1e4)},
            DeflectionError,
            "Joint 'panda_joint1'.*reaches",
        ),
        ({'effort': np.full((3, 7), np.nan)}, MotionError, 'effort holds nan'),
        ({'effort': np.zeros((2, 7))}, MotionError, 'expected K >= '),
        ({'motion': np.full((5, 7), np.inf)}, MotionError, 'holds inf'),
        ({'stiffness': {}}, ActuatorError, 'stiffness of panda_joint7 is missing'),
        (
            {'stiffness': {NAMES[6]: np.array([1.0, 0.0, 0.0])}},
            DeflectionError,
            'out of reach',
        ),
        ({'stiffness': {NAMES[6]: np.full(3, np.nan)}}, ActuatorError, 'holds nan'),
        (
            {'stiffness': {NAMES[6]: np.zeros((2, 0))}},
            ActuatorError,
            'expected finite numbers',
        ),
        ({'stiffness': {NAMES[0]: np.zeros(3)}}, ActuatorError, 'cannot choose it'),
        ({'stiffness': {'j': np.zeros(3)}}, JointNameError, 'unknown joints: j'),
        ({'stiffness': 3.0}, ActuatorError, 'expected a mapping'),
    ],
)
def test_what_a_control_loop_gives_is_checked_as_everything_is(changes, error, reason):
    spring = CubicSpring(600.0, 4e3, 0.5)
    joints = dict.fromkeys(NAMES[:6], SeriesElastic(spring, INERTIA))
    actuators = Actuators(
        MODEL, {**joints, NAMES[6]: VariableStiffness(VARIABLE['equal'], 0.1)}
    )
    good = {
        'motion': np.zeros((5, 7)),
        'effort': np.ones((3, 7)),
        'stiffness': {NAMES[6]: np.array([200.0, 0.0, 0.0])},
    }
    motor_motion(actuators, **good)
    assert (5, 7) in actuators.quick
    before = motor_motion(actuators, **good)
    with pytest.raises(error, match=reason):
        motor_motion(actuators, **{**good, **changes})
    for a, b in zip(before, motor_motion(actuators, **good)):
        np.testing.assert_array_equal(a, b)


def test_a_warm_up_waits_for_machine_code():
    code = (
        'import numpy as np\n'
        'from hodyn_ros import RobotModel\n'
        'from hodyn_ros.actuators import Actuators, SeriesElastic, kernels, motor_motion\n'
        'model, motion = RobotModel.from_urdf("panda"), np.zeros((5, 7))\n'
        'actuators = Actuators(model, {"panda_joint2": SeriesElastic(9000.0, 0.5)})\n'
        'model.warm_up(2, lambda: motor_motion(actuators, motion))\n'
        'print(kernels.drive.compiled is not None, (5, 7) in actuators.quick)'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ('True True\n', '')


def test_a_few_numbers_start_no_compiler():
    code = (
        'import sys\n'
        'from hodyn_ros.actuators import CubicSpring, SeriesElastic\n'
        'joint = SeriesElastic(CubicSpring(500.0, 2e4), 0.4)\n'
        'found = joint.motors([0.1] * 5, [5.0, 2.0, 1.0])\n'
        'print(*(name for name in ("numba", "llvmlite", "scipy") if name in sys.modules))'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ('\n', '')


def test_prismatic_joints_keep_their_units_in_messages():
    slide = RobotModel.from_urdf(
        robots.robot(
            '<link name="base"/>',
            robots.link('a'),
            robots.joint('slide', 'base', 'a', 'prismatic', axis='0 0 1'),
        )
    )
    actuators = Actuators(slide, {'slide': SeriesElastic(LinearSpring(1e3, 1e-2), 1.0)})
    motor_motion(actuators, np.zeros((5, 1)), np.zeros((3, 1)))
    with pytest.raises(DeflectionError, match=r'torque of 100 N; .* 0.01 m\)'):
        motor_motion(actuators, np.zeros((5, 1)), np.full((3, 1), 100.0))
