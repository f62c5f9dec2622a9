"""The simulated robot: MuJoCo's equations of motion, their integration and what is refused."""

import importlib.util
import sys
import warnings

import numpy as np
import pytest
from support import robots

from hodyn_ros import ModelWarning, RobotModel, inverse_dynamics
from hodyn_ros.actuators.actuator import RigidDrive
from hodyn_ros.actuators.motors import Actuators, motor_motion
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import CubicSpring, LinearSpring
from hodyn_ros.actuators.vsa.mechanisms import AwasII, Qbmove
from hodyn_ros.actuators.vsa.model import VariableStiffness
from hodyn_ros.errors import (
    ActuatorError,
    DeflectionError,
    HodynError,
    JointNameError,
    SimulationError,
)
from hodyn_ros.model.friction import Coulomb, Viscous
from hodyn_ros.resources import share_file
from hodyn_ros.simulation.plant import ElasticPlant

needs_mujoco = pytest.mark.skipif(
    importlib.util.find_spec('mujoco') is None, reason='mujoco is not installed'
)

K = np.array([5000.0, 4000.0, 3000.0, 6000.0, 2000.0, 2500.0, 1500.0])
B = np.array([0.6, 0.6, 0.46, 0.46, 0.2, 0.2, 0.2])


def bundled(name):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(share_file(f'urdf/{name}.urdf'))


@pytest.fixture(scope='module')
def panda():
    return bundled('panda')


def elastic(model, damping=0.0, **options):
    n = model.n_joints
    drives = {
        name: SeriesElastic(k, b, damping)
        for name, b, k in zip(model.joint_names, B[:n], K[:n])
    }
    return ElasticPlant(model, drives, **options)


def motion(times):
    """A motion of the Panda and its first four derivatives, exact, (N, 5, 7)."""
    k = np.arange(5)[:, None]
    omega = np.array([6.0, 5.0, 7.0, 6.5, 8.0, 7.5, 9.0])
    amplitude = np.array([0.2, 0.15, 0.2, -0.2, 0.25, -0.2, 0.3])
    phase = omega * np.asarray(times)[:, None, None] + 0.5 * np.pi * k
    result = amplitude * omega**k * np.sin(phase)
    result[:, 0] += [0.0, -0.3, 0.0, -1.7, 0.0, 1.7, 0.3]
    return result


def flat_outputs(model, desired):
    """Motor motion (N, 3, n) and motor torque (N, n) for which the links move as desired."""
    effort = inverse_dynamics(model, desired)
    motor = desired[:, :3] + effort / K
    return motor, B * motor[:, 2] + effort[:, 0]


def mass_matrix(plant):
    """Mass matrix of the links in the present state, with armature."""
    import mujoco

    model, data = plant.mujoco_model, plant.mujoco_data
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    for row, unit in zip(full, np.eye(model.nv)):
        mujoco.mj_mulM(model, data, row, unit)
    links = [model.joint(f'link: {name}').dofadr[0] for name in plant.joint_names]
    return full[np.ix_(links, links)]


def final_error(model, integrator, time_step, duration=0.2):
    """How far the Panda is from where it should be at the end, fed forward without feedback."""
    count = round(duration / time_step)
    desired = motion(np.arange(2 * count + 1) * time_step / 2.0)
    motor, torque = flat_outputs(model, desired)
    plant = elastic(model, time_step=time_step, integrator=integrator)
    plant.reset(desired[0, 0], desired[0, 1], motor[0, 0], motor[0, 1])
    plant.step(lambda time: torque[min(round(2.0 * time / time_step), 2 * count)], count)
    assert plant.time == pytest.approx(duration)
    return np.linalg.norm(plant.q - desired[-1, 0])


@needs_mujoco
@pytest.mark.parametrize('name', ['panda', 'iiwa14'])
def test_plant_satisfies_both_equations_of_motion(name):
    # The tensors of the iiwa violate the triangle inequality, and are simulated all the same.
    model, damping = bundled(name), 3.0
    plant = elastic(model, damping)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, qd, thetad, torque = rng.uniform(-1.0, 1.0, (4, 7))
        theta = q + rng.uniform(-0.02, 0.02, 7)
        plant.reset(q, qd, theta, thetad)
        q2d, theta2d = plant.acceleration(torque)
        Q = K * (theta - q) + damping * (thetad - qd)
        needed = inverse_dynamics(model, np.stack([q, qd, q2d]))[0]
        np.testing.assert_allclose(needed, Q, rtol=0.0, atol=1e-12 * np.abs(Q).max())
        np.testing.assert_allclose(
            B * theta2d + Q, torque, rtol=0.0, atol=1e-12 * abs(Q).max()
        )


@needs_mujoco
def test_plant_has_the_mass_matrix_and_bias_of_pinocchio(panda):
    pin = pytest.importorskip('pinocchio')
    reference = pin.buildModelFromXML(share_file('urdf/panda.urdf').read_text())
    data = reference.createData()
    plant = elastic(panda)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, qd = rng.uniform(-1.0, 1.0, (2, 7))
        plant.reset(q, qd, q, qd)
        M = np.triu(pin.crba(reference, data, q))
        M += np.triu(M, 1).T
        np.testing.assert_allclose(mass_matrix(plant), M, rtol=0.0, atol=1e-12 * M.max())
        # With slack springs the links fall freely.
        q2d, _ = plant.acceleration(np.zeros(7))
        bias = pin.nonLinearEffects(reference, data, q, qd)
        np.testing.assert_allclose(
            M @ q2d, -bias, rtol=0.0, atol=1e-12 * np.abs(bias).max()
        )


@needs_mujoco
def test_a_push_acts_at_the_centre_of_mass_of_the_link(panda):
    pin = pytest.importorskip('pinocchio')
    reference = pin.buildModelFromXML(share_file('urdf/panda.urdf').read_text())
    data = reference.createData()
    plant = elastic(panda)
    rng = np.random.default_rng(3)
    for j, name in enumerate(panda.joint_names):
        q, qd, force = (
            rng.uniform(-1.0, 1.0, 7),
            rng.uniform(-1.0, 1.0, 7),
            rng.normal(size=3),
        )
        plant.reset(q, qd, q, qd)
        plant.push('panda_joint1', [1e3, 1e3, 1e3])  # the next one takes its place
        plant.push(name, 20.0 * force)
        q2d, _ = plant.acceleration(np.zeros(7))
        pin.forwardKinematics(reference, data, q)
        J = pin.computeJointJacobian(reference, data, q, j + 1)  # in the axes of the link
        pull = data.oMi[j + 1].rotation.T @ (20.0 * force)
        at_com = np.concatenate([pull, np.cross(reference.inertias[j + 1].lever, pull)])
        expected = pin.aba(reference, data, q, qd, J.T @ at_com)
        np.testing.assert_allclose(
            q2d, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max()
        )
        plant.reset(q, qd, q, qd)
        free, _ = plant.acceleration(np.zeros(7))
        expected = pin.aba(reference, data, q, qd, np.zeros(7))
        np.testing.assert_allclose(
            free, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max()
        )


@needs_mujoco
@pytest.mark.parametrize(
    ('joint', 'force', 'message'),
    [
        ('wrist', [0.0, 0.0, 1.0], "joint is 'wrist', expected one of shoulder"),
        ('elbow', [0.0, 1.0], 'force is .*expected 3 finite numbers'),
        ('elbow', [0.0, 1.0, np.nan], 'force holds nan at index'),
    ],
)
def test_pushes_that_cannot_be_are_refused(joint, force, message):
    with pytest.raises(SimulationError, match=message):
        ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {}).push(joint, force)


@needs_mujoco
def test_springs_carry_the_weight_after_a_reset(panda):
    q = motion([0.0])[0, 0]
    for drives in (
        {name: SeriesElastic(k, b) for name, b, k in zip(panda.joint_names, B, K)},
        {
            name: SeriesElastic(CubicSpring(k, 3e6), b)
            for name, b, k in zip(panda.joint_names, B, K)
        },
    ):
        plant = ElasticPlant(panda, drives)
        plant.reset(q)
        weight = inverse_dynamics(panda, np.stack([q, 0.0 * q, 0.0 * q]))[0]
        q2d, _ = plant.acceleration(weight)
        assert np.abs(q2d).max() < 1e-9
        plant.step(weight, 100)
        assert np.abs(plant.q - q).max() < 1e-11


@needs_mujoco
@pytest.mark.parametrize(
    ('integrator', 'order', 'time_steps', 'largest_error'),
    [
        ('RK4', 4.0, [1e-3, 5e-4, 2.5e-4], 1e-12),
        ('Euler', 1.0, [5e-4, 2.5e-4, 1.25e-4], 1e-4),
        ('implicit', 1.0, [5e-4, 2.5e-4, 1.25e-4], 1e-4),
    ],
)
def test_open_loop_error_falls_with_the_order_of_the_integrator(
    panda, integrator, order, time_steps, largest_error
):
    errors = [final_error(panda, integrator, time_step) for time_step in time_steps]
    slopes = np.diff(np.log(errors)) / np.diff(np.log(time_steps))
    np.testing.assert_allclose(slopes, order, atol=0.15)
    assert errors[-1] < largest_error


@needs_mujoco
def test_nonlinear_springs_keep_the_order_of_the_integrator(panda):
    """Cubic springs, which MuJoCo asks this package for at every stage."""
    k3 = 3e5
    drives = {
        name: SeriesElastic(CubicSpring(k, k3), b)
        for name, b, k in zip(panda.joint_names, B, K)
    }
    count = 200

    def run(refinement):
        steps, time_step = count * refinement, 5e-4 / refinement
        plant = ElasticPlant(panda, drives, time_step=time_step)
        q = motion([0.0])[0, 0]
        plant.reset(q, 0.0 * q, q + 0.02, 0.0 * q)
        for _ in range(count):
            plant.step(np.full(7, 2.0), steps // count)
        return plant.q

    exact = run(16)
    coarse, fine = (np.linalg.norm(run(r) - exact) for r in (2, 4))
    assert 3.5 < np.log2(coarse / fine) < 4.5


@needs_mujoco
def test_two_motors_act_on_a_joint_of_variable_stiffness():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    a, k, Ks, L, r = 6.7, 0.022, 10.0, 0.05, 0.015
    plant = ElasticPlant(
        model,
        {
            'shoulder': VariableStiffness(Qbmove(a, k), (0.02, 0.03)),
            'elbow': VariableStiffness(AwasII(Ks, L, r), (0.04, 0.5)),
        },
    )
    assert plant.motor_names == (
        'shoulder_motor1',
        'shoulder_motor2',
        'elbow_motor1',
        'elbow_motor2',
    )
    q, qd = np.array([0.3, -0.2]), np.array([0.4, -0.5])
    theta = np.array([0.5, 0.0, -0.1, 0.02])
    torque = np.array([0.3, -0.1, 0.2, 4.0])
    plant.reset(q, qd, theta, np.zeros(4))
    q2d, theta2d = plant.acceleration(torque)
    # As published: the torque on the link, and what the motors carry.
    pulls = k * np.sinh(a * (theta[:2] - q[0]))
    ratio, slope = L / r * 0.02 / (L - 0.02), L / r * L / (L - 0.02) ** 2
    lever = -2.0 * Ks * ratio**2 * np.sin(q[1] - theta[2]) * np.cos(q[1] - theta[2])
    pivot = 2.0 * Ks * ratio * slope * np.sin(q[1] - theta[2]) ** 2
    needed = inverse_dynamics(model, np.stack([q, qd, q2d]))[0]
    np.testing.assert_allclose(needed, [pulls.sum(), lever], rtol=1e-11)
    inertia = np.array([0.02, 0.03, 0.04, 0.5])
    np.testing.assert_allclose(
        inertia * theta2d + [*pulls, lever, pivot], torque, rtol=1e-11
    )


@needs_mujoco
def test_joints_of_variable_stiffness_hang_at_rest_where_their_stiffness_is_given():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    actuator = VariableStiffness(Qbmove(6.7, 0.3), 0.02)
    plant = ElasticPlant(model, {'shoulder': RigidDrive(0.1), 'elbow': actuator})
    q, stiffness = np.array([0.3, -0.2]), {'elbow': 60.0}
    plant.reset(q, stiffness=stiffness)
    weight = inverse_dynamics(model, np.stack([q, 0.0 * q, 0.0 * q]))[0]
    difference = 6.7 * (plant.theta[1:] - q[1])
    assert 0.3 * np.sinh(difference).sum() == pytest.approx(weight[1])
    assert 6.7 * 0.3 * np.cosh(difference).sum() == pytest.approx(60.0)
    accelerations = plant.acceleration(plant.holding_torque(q, stiffness))
    assert max(np.abs(values).max() for values in accelerations) < 1e-9
    with pytest.raises(SimulationError, match="'elbow'.*give its stiffness, or theta"):
        plant.reset(q)


@needs_mujoco
def test_exact_feed_forward_moves_a_robot_of_mixed_actuators():
    """One joint rigid, the other of a stiffness that changes while it moves; no feedback."""
    model = RobotModel.from_urdf(robots.TWO_LINK)
    actuators = Actuators(
        model,
        {
            'shoulder': RigidDrive(0.1),
            'elbow': VariableStiffness(Qbmove(6.7, 0.5), 0.02),
        },
    )
    time_step, count = 2e-4, 1000
    times = np.arange(2 * count + 1) * time_step / 2.0

    def harmonic(centre, amplitude, omega, K):
        k = np.arange(K)
        series = amplitude * omega**k * np.sin(omega * times[:, None] + 0.5 * np.pi * k)
        series[:, 0] += centre
        return series

    desired = np.stack([harmonic(0.3, 0.2, 6.0, 5), harmonic(-0.5, 0.3, 7.0, 5)], axis=-1)
    stiffness = harmonic(60.0, 10.0, 9.0, 3)
    motors = motor_motion(actuators, desired, stiffness={'elbow': stiffness})
    plant = ElasticPlant(model, actuators, time_step)
    plant.reset(*desired[0, :2], *motors.position[0, :2])
    plant.step(
        lambda time: motors.torque[min(round(2.0 * time / time_step), 2 * count), 0], count
    )
    assert np.abs(plant.q - desired[-1, 0]).max() < 1e-9
    assert np.abs(plant.theta - motors.position[-1, 0]).max() < 1e-9


@needs_mujoco
def test_friction_of_links_and_motors_is_that_of_the_laws():
    law = Viscous(0.7) + Coulomb(2.0, smoothing=0.1)
    of_motor = Viscous(0.3) + Coulomb(1.5, smoothing=0.05)
    model = RobotModel.from_urdf(robots.TWO_LINK).with_friction({'elbow': law})
    plant = ElasticPlant(
        model,
        {
            'shoulder': RigidDrive(0.5, friction=of_motor),
            'elbow': SeriesElastic(300.0, 0.2, friction=of_motor),
        },
    )
    q, qd, theta, thetad = [0.3, -0.2], [0.4, -0.05], [0.3, -0.1], [0.4, 0.07]
    plant.reset(q, qd, theta, thetad)
    q2d, theta2d = plant.acceleration([3.0, 4.0])
    rigid = inverse_dynamics(model.with_friction({'elbow': None}), np.stack([q, qd, q2d]))[
        0
    ]

    def friction(velocity, viscous, level, smoothing):
        return viscous * velocity + level * np.tanh(velocity / smoothing)

    Q = 300.0 * 0.1
    assert rigid[1] + friction(-0.05, 0.7, 2.0, 0.1) == pytest.approx(Q, rel=1e-12)
    assert 0.2 * theta2d[1] + Q + friction(0.07, 0.3, 1.5, 0.05) == pytest.approx(
        4.0, rel=1e-9
    )
    # A rigid joint moves its motor along.
    needed = rigid[0] + 0.5 * q2d[0] + friction(0.4, 0.3, 1.5, 0.05)
    assert needed == pytest.approx(3.0, rel=1e-9)
    assert plant.theta[0] == plant.q[0]


@needs_mujoco
def test_dry_friction_holds_a_joint_at_rest():
    model = RobotModel.from_urdf(robots.OTHER_JOINTS).with_friction({'rail': Coulomb(30.0)})
    plant = ElasticPlant(model, {}, time_step=1e-3, integrator='implicit')
    plant.reset([0.0])
    plant.step([0.0], 500)
    # Free, it would fall at 4.9 m/s; MuJoCo lets friction creep.
    assert abs(plant.qd[0]) < 0.02
    plant.step([50.0], 500)
    assert plant.qd[0] > 1.0


@needs_mujoco
def test_dry_friction_brakes_what_brakes_already():
    model = RobotModel.from_urdf(robots.OTHER_JOINTS)
    accelerations = []
    for friction in (None, Coulomb(30.0)):
        plant = ElasticPlant(model.with_friction({'rail': friction}), {})
        plant.reset([0.0], [0.1])
        accelerations.append(plant.acceleration([-200.0])[0][0])
    inertia = mass_matrix(plant)[0, 0]
    assert (accelerations[1] - accelerations[0]) * inertia == pytest.approx(-30.0, rel=1e-9)


@needs_mujoco
def test_prismatic_joints_have_motors_that_gravity_does_not_move():
    model = RobotModel.from_urdf(robots.OTHER_JOINTS)
    plant = ElasticPlant(model, {'rail': SeriesElastic(1000.0, 2.0)})
    plant.reset([0.1], [0.0], [0.13], [0.0])
    q2d, theta2d = plant.acceleration([5.0])
    rotation = model.B[0, :3, :3]
    along = rotation.T @ model.gravity
    assert q2d[0] == pytest.approx(1000.0 * 0.03 + along[2], rel=1e-12)
    assert theta2d[0] == pytest.approx((5.0 - 1000.0 * 0.03) / 2.0, rel=1e-12)


@needs_mujoco
def test_a_simulation_that_diverges_says_so(panda):
    plant = elastic(panda, time_step=5e-3)
    plant.reset(np.zeros(7), np.ones(7))
    with pytest.raises(SimulationError, match='diverged at .*shorter time_step'):
        for _ in range(1000):
            plant.step(np.zeros(7))


@needs_mujoco
def test_a_deflection_beyond_the_spring_says_so():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    plant = ElasticPlant(model, {'elbow': SeriesElastic(LinearSpring(100.0, 0.2), 0.1)})
    with pytest.raises(
        DeflectionError, match="'elbow'.*range of its spring is -0.2 to 0.2"
    ):
        plant.step([0.0, 60.0], 5000)


@needs_mujoco
@pytest.mark.parametrize(
    ('drives', 'options', 'message'),
    [
        ({'wrist': SeriesElastic(100.0, 0.1)}, {}, 'wrist'),
        ({}, {'integrator': 'RK5'}, "'RK5', expected one of RK4"),
        ({}, {'time_step': 0.0}, 'time_step is 0.0, expected'),
        ({}, {'time_step': np.nan}, 'time_step is nan, expected'),
    ],
)
def test_settings_that_cannot_be_simulated_are_refused(drives, options, message):
    model = RobotModel.from_urdf(robots.TWO_LINK)
    with pytest.raises((SimulationError, JointNameError), match=message):
        ElasticPlant(model, drives, **options)


@needs_mujoco
@pytest.mark.parametrize('torque', [[1.0], [1.0, np.nan], ['a', 'b'], lambda time: [1.0]])
def test_torques_that_cannot_be_used_are_refused(torque):
    plant = ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {})
    with pytest.raises(SimulationError, match='torque (is|holds)'):
        plant.step(torque)


@needs_mujoco
@pytest.mark.parametrize('torque', [[1.0, 1.1e10], lambda time: [-1e300, 0.0]])
def test_torques_above_what_mujoco_takes_are_refused(torque):
    plant = ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {})
    with pytest.raises(
        SimulationError, match=r'torque of motor .* expected magnitudes up to 1e'
    ):
        plant.step(torque)
    with pytest.raises(SimulationError, match='diverged'):
        plant.step([0.0, 1e10])  # taken, and one step is enough
    plant.reset([0.0, 0.0])
    plant.step([0.0, 1e7])
    assert plant.qd[1] > 1e3  # below, it acts
    with pytest.raises(SimulationError, match='torque of motor'):
        plant.acceleration([1e11, 0.0])


@needs_mujoco
@pytest.mark.parametrize('steps', [-1, 1.5, True, None])
def test_steps_that_are_no_whole_number_are_refused(steps):
    plant = ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {})
    with pytest.raises(SimulationError, match='steps is'):
        plant.step([0.0, 0.0], steps)
    assert plant.time == 0.0


@needs_mujoco
@pytest.mark.parametrize('time', [np.nan, np.inf, 'now', None, True])
def test_a_time_that_is_no_number_is_refused_and_the_state_stays(time):
    plant = ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {})
    with pytest.raises(SimulationError, match='time is'):
        plant.reset([1.0, 1.0], time=time)
    np.testing.assert_array_equal(plant.q, 0.0)


@needs_mujoco
@pytest.mark.parametrize(
    ('stiffness', 'message'),
    [
        ([60.0], 'expected a mapping'),
        ({'shoulder': 60.0}, "given for 'shoulder'; joints that can choose theirs: elbow"),
        ({'wrist': 60.0}, "given for 'wrist'"),
        ({'elbow': 'stiff'}, "'elbow': the stiffness is 'stiff'"),
        ({'elbow': np.nan}, "'elbow': the stiffness is nan"),
    ],
)
def test_stiffness_that_cannot_be_chosen_is_refused(stiffness, message):
    model = RobotModel.from_urdf(robots.TWO_LINK)
    drives = {'elbow': VariableStiffness(Qbmove(6.7, 0.3), 0.02)}
    plant = ElasticPlant(model, Actuators(model, drives))
    with pytest.raises(SimulationError, match=message):
        plant.reset([0.0, 0.0], stiffness=stiffness)


@needs_mujoco
def test_actuators_of_another_robot_are_refused():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    actuators = Actuators(model, {'elbow': SeriesElastic(100.0, 0.1)})
    with pytest.raises(ActuatorError, match="'elbow': .*count twice"):
        ElasticPlant(model.with_armature({'elbow': 0.2}), actuators)
    with pytest.raises(ActuatorError, match='robot with other joints'):
        ElasticPlant(RobotModel.from_urdf(robots.OTHER_JOINTS), actuators)


@needs_mujoco
def test_a_torque_may_come_from_another_simulation():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    outer, inner = (ElasticPlant(model, {}) for _ in range(2))
    calls = []

    def torque(time):
        inner.step([0.1, 0.2])
        calls.append(time)
        return [1.0, 2.0]

    outer.step(torque, 10)
    alone = ElasticPlant(model, {})
    alone.step([1.0, 2.0], 10)
    np.testing.assert_array_equal(outer.q, alone.q)
    assert len(calls) == 40  # four stages a step


@needs_mujoco
def test_an_error_in_the_torque_function_comes_out():
    plant = ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {})

    def torque(time):
        raise KeyError('of the user')

    with pytest.raises(KeyError, match='of the user'):
        plant.step(torque)


@needs_mujoco
def test_mimic_joints_are_refused():
    with pytest.raises(SimulationError, match='follow other joints.*choose a chain'):
        ElasticPlant(bundled('panda_with_hand'), {})


def test_a_missing_mujoco_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(HodynError, match=r'pip install hodyn_ros\[simulation\]'):
        ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {})


@needs_mujoco
def test_joints_go_no_farther_than_their_end_stops():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    upper = model.limits.upper
    assert np.isfinite(upper).all()
    farthest = {}
    for stops in (False, True):
        drives = {name: SeriesElastic(500.0, 0.2, 1.0) for name in model.joint_names}
        plant = ElasticPlant(model, drives, end_stops=stops)
        start = upper - 0.05
        plant.reset(start, theta=start)
        positions = []
        for _ in range(60):
            plant.step([30.0, 30.0], 50)
            positions.append(plant.q)
        farthest[stops] = np.max(positions, axis=0) - upper
    assert (farthest[False] > 0.1).any()
    assert (farthest[True] < 0.02).all()
