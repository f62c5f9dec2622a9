"""The simulated robot: MuJoCo's equations of motion, their integration and what is refused."""

import sys

import numpy as np
import pytest
from support import control_simulation, robots
from support.control_cases import MOTOR_INERTIA, STIFFNESS, Condition

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import (
    Actuators,
    AwasII,
    CubicSpring,
    LinearSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
    motor_motion,
)
from hodyn_ros.errors import (
    ActuatorError,
    DeflectionError,
    HodynError,
    JointNameError,
    SimulationError,
)
from hodyn_ros.model.friction import Coulomb, Viscous
from hodyn_ros.simulation import ElasticPlant

pytest.importorskip('mujoco')
TWO_LINK = RobotModel.from_urdf(robots.TWO_LINK)
RAIL = RobotModel.from_urdf(robots.OTHER_JOINTS)
VARIABLE = {'elbow': VariableStiffness(Qbmove(6.7, 0.3), 0.02)}


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def drives(model, cubic=0.0):
    return {
        name: SeriesElastic(CubicSpring(float(k), cubic), float(b))
        for name, k, b in zip(model.joint_names, STIFFNESS, MOTOR_INERTIA)
    }


def test_push_acts_at_the_centre_of_mass_of_the_link(panda):
    plant, reference = ElasticPlant(panda, drives(panda)), Condition().plant()
    rng = np.random.default_rng(3)
    q, qd, force = rng.uniform(-1.0, 1.0, 7), rng.uniform(-1.0, 1.0, 7), rng.normal(size=3)
    for pushed in (20.0 * force, np.zeros(3)):
        plant.reset(q, qd, q, qd)
        if pushed.any():
            plant.push('panda_joint1', [1e3, 1e3, 1e3])  # the next one takes its place
            plant.push('panda_joint7', pushed)
        reference.force[:] = pushed
        expected, _ = reference.accelerations(q, qd, q, qd, np.zeros(7))
        found, _ = plant.acceleration(np.zeros(7))
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize('cubic', [3e6, 0.0])
def test_springs_carry_the_weight_after_a_reset(panda, cubic):
    plant, q = (
        ElasticPlant(panda, drives(panda, cubic)),
        np.array([0.3, -0.3, 0, -1.7, 0, 2, 1]),
    )
    plant.reset(q)
    weight = Condition().plant().weight(q)
    np.testing.assert_allclose(plant.holding_torque(q), weight, atol=1e-9)
    plant.step(weight, 100)
    assert np.abs(plant.q - q).max() < 1e-11


@pytest.mark.parametrize(
    ('integrator', 'order'), [('RK4', 4.0), ('Euler', 1.0), ('implicit', 1)]
)
def test_error_falls_with_the_order_of_the_integrator_behind_nonlinear_springs(
    panda, integrator, order
):
    def end(time_step):
        plant = ElasticPlant(panda, drives(panda, 3e5), time_step, integrator)
        q = np.array([0.3, -0.3, 0, -1.7, 0, 2, 1])
        plant.reset(q, 0.0 * q, q + 0.02, 0.0 * q)
        plant.step(np.full(7, 2.0), round(0.05 / time_step))
        return plant.q

    largest = 5e-4 if order > 1 else 1.25e-4
    ends = [end(largest * factor) for factor in (1.0, 0.5, 0.25)]
    coarse, fine = (np.linalg.norm(np.diff(ends, axis=0)[i]) for i in range(2))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.5)


def test_two_motors_act_on_a_joint_of_variable_stiffness():
    a, k, Ks, L, r = 6.7, 0.022, 10.0, 0.05, 0.015
    shoulder = VariableStiffness(Qbmove(a, k), (0.02, 0.03))
    elbow = VariableStiffness(AwasII(Ks, L, r), (0.04, 0.5))
    plant = ElasticPlant(TWO_LINK, {'shoulder': shoulder, 'elbow': elbow})
    q, qd = np.array([0.3, -0.2]), np.array([0.4, -0.5])
    theta, torque = np.array([0.5, 0.0, -0.1, 0.02]), np.array([0.3, -0.1, 0.2, 4.0])
    plant.reset(q, qd, theta, np.zeros(4))
    q2d, theta2d = plant.acceleration(torque)
    # As published: the torque on the link, and what the motors carry.
    pulls = k * np.sinh(a * (theta[:2] - q[0]))
    ratio, slope = L / r * 0.02 / (L - 0.02), L / r * L / (L - 0.02) ** 2
    lever = -2.0 * Ks * ratio**2 * np.sin(q[1] - theta[2]) * np.cos(q[1] - theta[2])
    pivot = 2.0 * Ks * ratio * slope * np.sin(q[1] - theta[2]) ** 2
    needed = inverse_dynamics(TWO_LINK, np.stack([q, qd, q2d]))[0]
    np.testing.assert_allclose(needed, [pulls.sum(), lever], rtol=1e-11)
    inertia = np.array([0.02, 0.03, 0.04, 0.5])
    np.testing.assert_allclose(
        inertia * theta2d + [*pulls, lever, pivot], torque, rtol=1e-11
    )


def test_joints_of_variable_stiffness_hang_at_rest_where_their_stiffness_is_given():
    plant = ElasticPlant(TWO_LINK, {'shoulder': RigidDrive(0.1), **VARIABLE})
    q, stiffness = np.array([0.3, -0.2]), {'elbow': 60.0}
    plant.reset(q, stiffness=stiffness)
    difference = 6.7 * (plant.theta[1:] - q[1])
    weight = inverse_dynamics(TWO_LINK, np.stack([q, 0.0 * q, 0.0 * q]))[0]
    assert 0.3 * np.sinh(difference).sum() == pytest.approx(weight[1])
    assert 6.7 * 0.3 * np.cosh(difference).sum() == pytest.approx(60.0)
    accelerations = plant.acceleration(plant.holding_torque(q, stiffness))
    assert max(np.abs(values).max() for values in accelerations) < 1e-9


def test_exact_feed_forward_moves_a_robot_of_mixed_actuators():
    """One joint rigid, the other of a stiffness that changes while it moves; no feedback."""
    actuators = Actuators(
        TWO_LINK,
        {'shoulder': RigidDrive(0.1), 'elbow': VariableStiffness(Qbmove(6.7, 0.5), 0.02)},
    )
    step, count = 2e-4, 1000
    times = np.arange(2 * count + 1)[:, None] * step / 2.0

    def harmonic(centre, amplitude, omega, K):
        k = np.arange(K)
        series = amplitude * omega**k * np.sin(omega * times + 0.5 * np.pi * k)
        return series + centre * (k == 0)

    desired = np.stack([harmonic(0.3, 0.2, 6.0, 5), harmonic(-0.5, 0.3, 7.0, 5)], axis=-1)
    stiffness = {'elbow': harmonic(60.0, 10.0, 9.0, 3)}
    motors = motor_motion(actuators, desired, stiffness=stiffness)
    plant = ElasticPlant(TWO_LINK, actuators, step)
    plant.reset(*desired[0, :2], *motors.position[0, :2])
    plant.step(lambda time: motors.torque[min(round(2 * time / step), 2 * count), 0], count)
    assert np.abs(plant.q - desired[-1, 0]).max() < 1e-9
    assert np.abs(plant.theta - motors.position[-1, 0]).max() < 1e-9


def test_friction_of_links_and_motors_is_that_of_the_laws():
    of_motor = Viscous(0.3) + Coulomb(1.5, smoothing=0.05)
    model = TWO_LINK.with_friction({'elbow': Viscous(0.7) + Coulomb(2.0, smoothing=0.1)})
    elastic = SeriesElastic(300.0, 0.2, friction=of_motor)
    plant = ElasticPlant(
        model, {'shoulder': RigidDrive(0.5, friction=of_motor), 'elbow': elastic}
    )
    q, qd = [0.3, -0.2], [0.4, -0.05]
    plant.reset(q, qd, [0.3, -0.1], [0.4, 0.07])
    q2d, theta2d = plant.acceleration([3.0, 4.0])
    rigid = inverse_dynamics(TWO_LINK, np.stack([q, qd, q2d]))[0]

    def friction(velocity, viscous, level, smoothing):
        return viscous * velocity + level * np.tanh(velocity / smoothing)

    assert rigid[1] + friction(-0.05, 0.7, 2.0, 0.1) == pytest.approx(30.0, rel=1e-12)
    motor = 0.2 * theta2d[1] + 30.0 + friction(0.07, 0.3, 1.5, 0.05)
    assert motor == pytest.approx(4.0, rel=1e-9)
    # A rigid joint moves its motor along.
    needed = rigid[0] + 0.5 * q2d[0] + friction(0.4, 0.3, 1.5, 0.05)
    assert needed == pytest.approx(3.0, rel=1e-9)


def test_dry_friction_holds_a_prismatic_joint_and_brakes_it():
    """Its link of 1 kg would fall; MuJoCo lets friction creep."""
    model = RAIL.with_friction({'rail': Coulomb(30.0)})
    plant = ElasticPlant(model, {}, time_step=1e-3, integrator='implicit')
    plant.step([0.0], 500)
    assert abs(plant.qd[0]) < 0.02
    accelerations = []
    for one in (RAIL, model):
        plant = ElasticPlant(one, {})
        plant.reset([0.0], [0.1])
        accelerations.append(plant.acceleration([-200.0])[0][0])
    assert accelerations[1] - accelerations[0] == pytest.approx(-30.0, rel=1e-9)


def test_joints_go_no_farther_than_their_end_stops():
    upper, farthest = TWO_LINK.limits.upper, []
    for stops in (False, True):
        springs = {name: SeriesElastic(500.0, 0.2, 1.0) for name in TWO_LINK.joint_names}
        plant = ElasticPlant(TWO_LINK, springs, end_stops=stops)
        plant.reset(upper - 0.05, theta=upper - 0.05)
        beyond = []
        for _ in range(60):
            plant.step([30.0, 30.0], 50)
            beyond.append(plant.q - upper)
        farthest.append(np.max(beyond, axis=0))
    assert (farthest[0] > 0.1).any()
    assert (farthest[1] < 0.02).all()


def made(**options):
    return ElasticPlant(TWO_LINK, options.pop('drives', {}), **options)


def fails(time):
    raise KeyError('of the user')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('act', 'error', 'message'),
    [
        (lambda: made(drives={'wrist': RigidDrive()}), JointNameError, 'wrist'),
        (lambda: made(integrator='RK5'), SimulationError, "'RK5', expected one of RK4"),
        (lambda: made(time_step=0.0), SimulationError, 'time_step is 0.0, expected'),
        (
            lambda: made().push('wrist', [0, 0, 1.0]),
            SimulationError,
            "'wrist', expected one",
        ),
        (lambda: made().push('elbow', [0, 1.0]), SimulationError, 'expected 3 finite numb'),
        (lambda: made().step(lambda time: [1.0]), SimulationError, 'torque is'),
        (lambda: made().step(['a', 'b']), SimulationError, 'torque (is|holds)'),
        (lambda: made().step([0.0, 0.0], 1.5), SimulationError, 'steps is'),
        (lambda: made().step(fails), KeyError, 'of the user'),
        (lambda: made().acceleration([1e11, 0.0]), SimulationError, 'torque of motor'),
        (lambda: made().reset([1.0, 1.0], time=np.nan), SimulationError, 'time is'),
        (
            lambda: made(
                drives={'elbow': SeriesElastic(LinearSpring(100.0, 0.2), 0.1)}
            ).step([0.0, 60.0], 5000),
            DeflectionError,
            "'elbow'.*range of its spring is -0.2 to 0.2",
        ),
        (
            lambda: made(drives=VARIABLE).reset([0.0, 0.0], stiffness={'shoulder': 60.0}),
            SimulationError,
            "given for 'shoulder'; joints that can choose theirs: elbow",
        ),
        (
            lambda: made(drives=VARIABLE).reset([0.0, 0.0]),
            SimulationError,
            "'elbow'.*give its stiffness, or theta",
        ),
        (
            lambda: made(drives=VARIABLE).reset([0.0, 0.0], stiffness={'elbow': np.nan}),
            SimulationError,
            "'elbow': the stiffness is nan",
        ),
        (
            lambda: ElasticPlant(RAIL, Actuators(TWO_LINK, {})),
            ActuatorError,
            'robot with other joints',
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_missing_mujoco_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(HodynError, match=r'pip install hodyn_ros\[simulation\]'):
        ElasticPlant(TWO_LINK, {})
