"""The simulated robot: MuJoCo's equations of motion, their integration and what is refused."""

import sys

import numpy as np
import pytest
from support import control_simulation, robots, vsa_oracle
from support.control_cases import MOTOR_INERTIA, STIFFNESS

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


@pytest.mark.parametrize(
    ('integrator', 'order', 'largest'),
    [('RK4', 4.0, 5e-4), ('Euler', 1.0, 1.25e-4), ('implicit', 1.0, 1.25e-4)],
)
def test_error_falls_with_the_order_of_the_integrator(panda, integrator, order, largest):
    q, ends = np.array([0.3, -0.3, 0, -1.7, 0, 2, 1]), []
    for time_step in (largest, 0.5 * largest, 0.25 * largest):
        plant = ElasticPlant(panda, drives(panda, 3e5), time_step, integrator)
        plant.reset(q, 0.0 * q, q + 0.02, 0.0 * q)
        plant.step(np.full(7, 2.0), round(0.05 / time_step))
        ends.append(plant.q)
    coarse, fine = np.linalg.norm(np.diff(ends, axis=0), axis=1)
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.5)


def test_two_motors_act_on_a_joint_of_variable_stiffness():
    """As published: the torque on the link, and what the motors carry."""
    models = Qbmove(6.7, 0.022), AwasII(10.0, 0.05, 0.015)
    inertia = np.array([[0.02, 0.03], [0.04, 0.5]])
    drives = [VariableStiffness(model, tuple(b)) for model, b in zip(models, inertia)]
    plant = ElasticPlant(TWO_LINK, dict(zip(TWO_LINK.joint_names, drives)))
    q, qd = np.array([0.3, -0.2]), np.array([0.4, -0.5])
    theta, torque = np.array([0.5, 0.0, -0.1, 0.02]), np.array([0.3, -0.1, 0.2, 4.0])
    plant.reset(q, qd, theta, np.zeros(4))
    q2d, theta2d = plant.acceleration(torque)
    at = list(zip(models, [np, np], q, theta[::2], theta[1::2]))
    needed = inverse_dynamics(TWO_LINK, np.stack([q, qd, q2d]))[0]
    expected = [vsa_oracle.torque(*place) for place in at]
    np.testing.assert_allclose(needed, expected, rtol=1e-11)
    carried = np.ravel([vsa_oracle.motor_torques(*place) for place in at])
    np.testing.assert_allclose(inertia.ravel() * theta2d + carried, torque, rtol=1e-11)


def test_joints_of_variable_stiffness_hang_at_rest_where_their_stiffness_is_given():
    plant = ElasticPlant(TWO_LINK, {'shoulder': RigidDrive(0.1), **VARIABLE})
    q, stiffness = np.array([0.3, -0.2]), {'elbow': 60.0}
    plant.reset(q, stiffness=stiffness)
    at = Qbmove(6.7, 0.3), np, q[1], *plant.theta[1:]
    weight = inverse_dynamics(TWO_LINK, np.stack([q, 0.0 * q, 0.0 * q]))[0]
    assert vsa_oracle.torque(*at) == pytest.approx(weight[1])
    assert vsa_oracle.stiffness(*at) == pytest.approx(60.0)
    accelerations = plant.acceleration(plant.holding_torque(q, stiffness))
    assert max(np.abs(values).max() for values in accelerations) < 1e-9


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
        (lambda: made().step(['a', 'b']), SimulationError, 'torque (is|holds)'),
        (lambda: made().step(fails), KeyError, 'of the user'),
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
    with pytest.raises(HodynError, match=r"pip install 'hodyn_ros\[simulation\]'"):
        ElasticPlant(TWO_LINK, {})
