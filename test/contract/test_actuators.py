"""Motors from the motion and the torque of joints, by published laws, SciPy and power series."""

import numpy as np
import pytest
from scipy.optimize import brentq
from support import oracles, power_series, robots, vsa_oracle
from support.power_series import Series

from hodyn_ros import RobotModel, friction
from hodyn_ros.actuators import (
    Actuators,
    AwasII,
    CubicSpring,
    DlrBavs,
    LinearSpring,
    PolynomialSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    TableSpring,
    VariableStiffness,
    motor_motion,
)
from hodyn_ros.errors import ActuatorError, DeflectionError

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
NAMES = MODEL.joint_names
INERTIA = np.array([0.6, 0.2])
KNOTS = np.linspace(-0.6, 0.6, 9)
FRICTION = friction.Viscous(0.3) + friction.Coulomb(1.5, 0.4)

# Springs and their laws.
SPRINGS = {
    'cubic': (CubicSpring(600.0, 4e4), lambda d: 600.0 * d + 4e4 * d**3),
    'linear': (LinearSpring(900.0), lambda d: 900.0 * d),
    'softening': (CubicSpring(600.0, -500.0, 0.5), lambda d: 600.0 * d - 500.0 * d**3),
    'polynomial': (
        PolynomialSpring((700.0, 30.0, 2e3, 0.0, 1e4), 1.0),
        lambda d: 700.0 * d + 30.0 * d**2 + 2e3 * d**3 + 1e4 * d**5,
    ),
    # A cubic polynomial is its own cubic spline.
    'table': (
        TableSpring(KNOTS, 400.0 * KNOTS + 300.0 * KNOTS**3),
        lambda d: 400.0 * d + 300.0 * d**3,
    ),
}
VARIABLE = {
    'equal': Qbmove(7.0, 0.9),
    'mirrored': DlrBavs(a=1.21e-4, b=2.38e-4, k=1.6e5, ke=8.71),
    'lever': AwasII(50.0, 0.1, 0.02, max_deflection=0.4, max_travel=0.06, pitch=0.01),
}


def waves(times, K, amplitude=0.4):
    """Motion (N, K, 2) with exact derivatives."""
    t, k = np.asarray(times)[:, None, None], np.arange(K)[:, None]
    w = np.array([3.0, 4.0])
    return amplitude * w**k * np.sin(w * t + [0.3, 1.0] + 0.5 * np.pi * k)


def assert_close(found, expected, tolerance=1e-12):
    """Refuse numbers that differ, relative to the size of each order (the last axis but one)."""
    axes = tuple(i for i in range(expected.ndim) if i != expected.ndim - 2)
    size = np.abs(expected).max(axis=axes, keepdims=True)
    assert (np.abs(found - expected) <= tolerance * size).all()


def losses(velocity):
    """Friction of a motor, by the derivatives of its velocity."""
    v = Series(velocity)
    return (0.3 * v + 1.5 * power_series.tanh(v / 0.4)).derivatives


@pytest.mark.parametrize('name', SPRINGS)
def test_motors_behind_springs_satisfy_both_equations_of_motion(name):
    spring, law = SPRINGS[name]
    drives = {n: SeriesElastic(spring, b, 0.0, FRICTION) for n, b in zip(NAMES, INERTIA)}
    motion = waves(np.linspace(0.0, 2.0, 5), 7)
    Q = oracles.taylor_rnea(robots.TWO_LINK, list(NAMES), MODEL.gravity, motion)
    found = motor_motion(Actuators(MODEL, drives), motion, order=None)
    assert [x.shape[1:] for x in (found.position, found.torque)] == [(5, 2), (3, 2)]
    # The third derivative of a table jumps at its points.
    orders = 3 if name == 'table' else 5
    for i, j in np.ndindex(5, 2):
        deflection = found.deflection[i, :orders, j]
        root = brentq(lambda d, i=i, j=j: law(d) - Q[i, 0, j], -0.5, 0.5, xtol=1e-15)
        assert deflection[0] == pytest.approx(root, rel=1e-11)
        assert_close(law(Series(deflection)).derivatives[:, None], Q[i, :orders, j, None])
        theta = motion[i, :orders, j] + deflection
        np.testing.assert_allclose(found.position[i, :orders, j], theta, rtol=1e-13)
        dry = losses(theta[1:])[: orders - 2]
        tau = INERTIA[j] * theta[2:] + Q[i, : orders - 2, j] + dry
        np.testing.assert_allclose(found.torque[i, : orders - 2, j], tau, rtol=1e-11)


@pytest.mark.parametrize('name', VARIABLE)
def test_two_motors_of_a_joint_give_its_torque_and_its_stiffness(name):
    """Motors that move somehow have a torque and a stiffness as published, and nothing else."""
    model, q = VARIABLE[name], np.array([0.3, -0.5, 2.0, 7.0, -20.0])
    y = np.array([[0.6, 0.4, -1.0, 5.0, 30.0], [0.05, -0.7, 3.0, -8.0, 10.0]])
    if name == 'lever':
        y[1] = [4.0, 1.0, -3.0, 5.0, 2.0]
    of = [
        formula(model, power_series, *map(Series, (q, *y)))
        for formula in (vsa_oracle.torque, vsa_oracle.stiffness)
    ]
    effort, stiffness = (series.derivatives for series in of)
    inertia, viscous = np.array([0.02, 0.05]), np.array([0.3, 0.1])
    drive = VariableStiffness(
        model, tuple(inertia), tuple(friction.Viscous(v) for v in viscous)
    )
    found = drive.motors(q, effort, stiffness)
    np.testing.assert_allclose(found.position, y, rtol=1e-9)
    springs = vsa_oracle.motor_torques(model, power_series, *map(Series, (q, *y)))
    load = np.array([series.derivatives[:3] for series in springs])
    tau = inertia[:, None] * y[:, 2:] + viscous[:, None] * y[:, 1:4] + load
    np.testing.assert_allclose(found.torque, tau, rtol=1e-9)
    forward = drive.elastic(q[:1], y[:, :1])
    np.testing.assert_allclose(forward.effort, effort[:1], rtol=1e-12)
    np.testing.assert_allclose(forward.stiffness, stiffness[:1], rtol=1e-12)
    lower, upper = drive.stiffness_range(effort[0])
    assert lower < stiffness[0] < upper
    for wanted in (0.99 * lower, 1.01 * upper):
        if wanted < np.inf:
            with pytest.raises(DeflectionError, match=f'{lower:.6g}'):
                drive.motors(q[:1], effort[:1], [wanted])


@pytest.mark.parametrize('damping', [0.02, 2.0, 12.0])
def test_dampers_beside_springs_follow_a_slow_motion_that_is_known(damping):
    """A deflection that is known has its torque, and is found again but for (D w / k)^E."""
    times, E = 0.02 * np.arange(120), 7
    motion, deflection = waves(times, E + 2), waves(times, E + 1, 0.05)
    effort = 900.0 * deflection[:, :E] + damping * deflection[:, 1:]
    drives = {name: SeriesElastic(900.0, b, damping) for name, b in zip(NAMES, INERTIA)}
    found = motor_motion(Actuators(MODEL, drives), motion, effort)
    expected = motion[:, :E] + deflection[:, :E]
    for m in range(3):
        rest = (4.0 * damping / 900.0) ** (E - m)
        assert_close(found.position[:, m : m + 1], expected[:, m : m + 1], 1e-13 + rest)
    assert_close(
        found.torque[:, :1], INERTIA * expected[:, 2:3] + effort[:, :1], 1e-12 + rest
    )


EVERY = {
    **{n: SeriesElastic(s, 0.3) for n, (s, _) in SPRINGS.items() if n != 'softening'},
    **{n: VariableStiffness(model, 0.05) for n, model in VARIABLE.items()},
}


@pytest.mark.parametrize('kind', EVERY)
def test_motors_at_any_speed_are_right_or_refused(kind):
    """A torque that changes v times as fast moves its motors v and v^2 times as fast."""
    actuators = Actuators(MODEL, {'elbow': EVERY[kind]})
    low, _ = VARIABLE[kind].stiffness_range(5.0) if kind in VARIABLE else (0.0, 0.0)
    stiffness = {'elbow': [1.3 * low + 1.0, 0.0, 0.0]} if kind in VARIABLE else None

    def positions(v):
        effort = np.zeros((1, 3, 2))
        effort[0, :2, 1] = 5.0, v
        found = motor_motion(actuators, np.zeros((1, 5, 2)), effort, stiffness=stiffness)
        assert all(np.isfinite(x).all() for x in found)
        return found.position[0, :, 1:]

    plain, answers = positions(1.0), 0
    assert (plain[1] != 0.0).all()
    for v in (1e20, 1e50, 1e100, 1e140, 1e160, 1e200, 1e306):
        if kind == 'linear' or v <= 1e140:
            found = positions(v)
            np.testing.assert_allclose(found[1], v * plain[1], rtol=1e-9)
            np.testing.assert_allclose(
                found[2], (v * plain[2]) * v, rtol=1e-6, atol=1e-9 * v
            )
            answers += 1
        else:
            with pytest.raises(ActuatorError, match="Joint 'elbow'"):
                positions(v)
    assert answers == 7 if kind == 'linear' else answers == 4


def test_torque_that_no_double_holds_is_refused_and_the_largest_below_is_given():
    motion = np.zeros((2, 5, 2))
    motion[1, 2, 1] = 1e306
    given = motor_motion(
        Actuators(MODEL, {'elbow': RigidDrive(10.0)}), motion, np.zeros((2, 3, 2))
    )
    assert given.torque[1, 0, 1] == pytest.approx(1e307)
    with pytest.raises(ActuatorError, match="Joint 'elbow': the torque of motor 1"):
        heavy = Actuators(MODEL, {'elbow': RigidDrive(1e3)})
        motor_motion(heavy, motion, np.zeros((2, 3, 2)))


def test_deflection_beyond_the_range_names_joint_sample_and_range():
    actuators = Actuators(MODEL, {'elbow': SeriesElastic(LinearSpring(100.0, 0.2), 0.1)})
    effort = np.zeros((2, 3, 3, 2))
    effort[1, 2, 0, 1] = 19.9
    inside = motor_motion(actuators, np.zeros((2, 3, 5, 2)), effort)
    assert inside.deflection[1, 2, 0, 1] == pytest.approx(0.199)
    effort[1, 2, 0, 1] = 20.1
    with pytest.raises(DeflectionError, match=r"'elbow'.*20.1.*0.2") as caught:
        motor_motion(actuators, np.zeros((2, 3, 5, 2)), effort)
    assert (caught.value.joint, caught.value.sample) == ('elbow', (1, 2))
