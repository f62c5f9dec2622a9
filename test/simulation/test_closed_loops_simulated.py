"""Robots with closed loops in MuJoCo, whose equalities close them, under the laws of control."""

import importlib.util

import numpy as np
import pytest
from support import robots
from support.parallel_ankle import PARALLEL_ANKLE

from hodyn_ros import (
    RobotModel,
    Wrench,
    forward_kinematics,
    friction,
    generate_code,
    gravity_effort,
    inverse_dynamics,
)
from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic, motor_motion
from hodyn_ros.control import (
    FeedForwardController,
    FlatnessController,
    JointImpedance,
    TrackingController,
    motor_gains,
)
from hodyn_ros.errors import HodynError, SimulationError
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.model import Coupling, Loop
from hodyn_ros.simulation import ElasticPlant, Imperfections, simulate_tracking

pytestmark = [
    pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning'),
    pytest.mark.skipif(
        importlib.util.find_spec('mujoco') is None, reason='mujoco is not installed'
    ),
]

GRAVITY = (0.5, -9.0, -3.0)
K, B = 250.0, 0.05


def tree_of(xml, gravity=GRAVITY):
    return RobotModel.from_urdf(xml, gravity=gravity, loops=())


def five_bar(kind):
    """The five-bar, with loops that leave it the same two degrees of freedom."""
    tree = tree_of(robots.FIVE_BAR)
    pose = np.eye(4)
    pose[0, 3] = 0.5
    loop = Loop('pin', kind, 'left_rod', 'right_rod', pose, pose)
    return tree.with_loops([loop], ['left', 'right'])


def cut_five_bar():
    """The five-bar cut through a disc of its own behind the pin."""
    disc = '<inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" '
    pin = (
        f'<link name="disc">{disc} ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="pin" type="continuous"><parent link="left_rod"/><child link="disc"/>'
        '<origin xyz="0.5 0 0"/><axis xyz="0 0 1"/></joint></robot>'
    )
    tree = tree_of(robots.FIVE_BAR.replace('</robot>', pin))
    pose = np.eye(4)
    pose[0, 3] = 0.5
    turned = np.eye(4)
    turned[:2, :2] = [[np.cos(1.0), np.sin(1.0)], [-np.sin(1.0), np.cos(1.0)]]
    loop = Loop('cut', 'weld', 'disc', 'right_rod', turned, pose)
    return tree.with_loops([loop], ['left', 'right'])


def coupled():
    tree = tree_of(robots.FIVE_BAR)
    laws = [
        Coupling('belt', 'left_elbow', 'left', (0.1, -0.5, 0.2, 0.1)),
        Coupling('gear', 'right_elbow', 'right', (0.0, 2.0)),
    ]
    return tree.with_loops(laws, ['left', 'right'])


MECHANISMS = {
    'hinge': lambda: five_bar('hinge'),
    'ball': lambda: five_bar('ball'),
    'weld': cut_five_bar,
    'couplings': coupled,
    'ankle': lambda: RobotModel.from_urdf(PARALLEL_ANKLE, gravity=GRAVITY),
}


def driven(model):
    return Actuators(model, dict.fromkeys(model.joint_names, SeriesElastic(K, B)))


def path(model):
    """A motion of the independent joints: times (N,) to (N, 5, 2)."""
    w, a, k = np.array([5.0, 7.0]), np.array([0.2, -0.15]), np.arange(5)[:, None]
    start = model.closure.start[model.closure.independent]

    def motion(times):
        phase = w * np.asarray(times)[:, None, None] + 0.5 * np.pi * k
        result = a * w**k * np.sin(phase)
        result[:, 0] += start
        return result

    return motion


@pytest.fixture(scope='module', params=list(MECHANISMS))
def model(request):
    return MECHANISMS[request.param]()


def all_positions(plant):
    """Positions of all joints of the tree as MuJoCo has them."""
    names = plant.model.closure.tree.joint_names
    return np.array([plant.mujoco_data.joint(f'link: {n}').qpos[0] for n in names])


def test_springs_carry_the_weight_and_joints_begin_closed(model):
    plant = ElasticPlant(model, driven(model), 2e-4)
    q = path(model)([0.1])[0, 0]
    plant.reset(q)
    np.testing.assert_allclose(
        plant.weight(q), gravity_effort(model, q[None])[0], atol=1e-12
    )
    np.testing.assert_allclose(
        all_positions(plant), complete_motion(model, q[None])[0], atol=1e-12
    )
    plant.step(plant.holding_torque(q), 1000)
    np.testing.assert_allclose(plant.q, q, atol=1e-8)


def test_acceleration_is_what_inverse_dynamics_needs(model):
    plant, rng = ElasticPlant(model, driven(model), 2e-4), np.random.default_rng(3)
    q = path(model)([0.1])[0, 0]
    for _ in range(3):
        qd, thetad, torque = rng.uniform(-1.0, 1.0, (3, 2))
        theta = q + rng.uniform(-0.02, 0.02, 2)
        plant.reset(q, qd, theta, thetad)
        acceleration, of_motors = plant.acceleration(torque)
        needed = inverse_dynamics(model, np.stack([q, qd, acceleration]))[0]
        Q = K * (theta - q)
        # MuJoCo's constraints leave a little of the acceleration that they oppose.
        np.testing.assert_allclose(needed, Q, atol=1e-2 * np.abs(Q).max())
        np.testing.assert_allclose(B * of_motors + Q, torque, atol=1e-11 * K)


def opened_by(model, law=None, order=2):
    """Error after a second of feed-forward alone, and how far positions of joints are off."""
    step, count = 2e-4, 5000
    motion = path(model)(np.arange(2 * count + 1) * 0.5 * step)
    wanted = motor_motion(driven(model), motion)
    torque = wanted.torque[:, 0]
    if order == 0:
        torque = inverse_dynamics(model, motion[:, :3])[:, 0] + B * motion[:, 2]
    plant = ElasticPlant(model, driven(model), step)
    plant.reset(motion[0, 0], motion[0, 1], *wanted.position[0, :2])
    plant.step(lambda time: torque[min(round(2.0 * time / step), 2 * count)], count)
    error = np.abs(plant.q - motion[-1, 0]).max()
    apart = all_positions(plant) - complete_motion(model, plant.q[None])[0]
    return error, np.abs(apart).max()


def test_torques_without_feedback_reproduce_the_motion_and_loops_stay_closed(model):
    error, apart = opened_by(model)
    assert error < 1e-6
    assert apart < 1e-7
    # Without the derivatives of the torque the motors do not do what the springs need.
    assert opened_by(model, order=0)[0] > 100.0 * error


def test_laws_are_not_written_in_c(tmp_path):
    model = five_bar('hinge')
    law = TrackingController(driven(model), 1e-3)
    with pytest.raises(HodynError, match='closed loops'):
        generate_code(model, tmp_path, controller=law)


@pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')
@pytest.mark.parametrize('name', ['hinge', 'ankle'])
def test_laws_in_closed_loop(name):
    model = MECHANISMS[name]()
    actuators, motion = driven(model), path(model)
    gains = motor_gains(model, actuators, 30.0, motion([0.0])[0, 0])
    laws = {
        'exact': FeedForwardController(model, actuators, gains),
        'static': FeedForwardController(model, actuators, gains, order=0),
        'flatness': FlatnessController(model, actuators, 60.0),
        'tracking': TrackingController(actuators, 1e-3),
        'impedance': JointImpedance(actuators, 1e-3, stiffness=40.0),
    }
    plant = ElasticPlant(model, actuators, 2e-4)
    error = {
        key: simulate_tracking(plant, law, motion, 0.6).peak_error
        for key, law in laws.items()
    }
    assert error['exact'] < 0.5 * error['static']
    assert max(error[key] for key in ('exact', 'flatness', 'tracking')) < 2e-4
    assert error['impedance'] < 3e-3


def test_friction_of_dependent_joints_is_simulated():
    model = five_bar('hinge')
    laws = {'left_elbow': friction.Coulomb(0.2, smoothing=0.05)}
    other = model.with_friction(laws)
    q, qd = path(model)([0.1])[0, :2]
    plant = ElasticPlant(other, driven(other), 2e-4)
    plant.reset(q, qd, q, qd)
    acceleration, _ = plant.acceleration(np.zeros(2))
    needed = inverse_dynamics(other, np.stack([q, qd, acceleration]))[0]
    without = inverse_dynamics(model, np.stack([q, qd, acceleration]))[0]
    assert np.abs(without).max() > 0.05
    np.testing.assert_allclose(needed, 0.0, atol=1e-3)


def test_links_of_dependent_joints_are_pushed():
    model = five_bar('hinge')
    q, qd = path(model)([0.1])[0, :2]
    plant, force = ElasticPlant(model, driven(model), 2e-4), np.array([5.0, -8.0, 0.0])
    plant.reset(q, qd, q, qd)
    plant.push('left_elbow', force)
    acceleration, _ = plant.acceleration(np.zeros(2))
    motion = np.stack([q, qd, acceleration])
    pose = forward_kinematics(model, motion[:1], 'left_rod').pose
    moment = np.cross(pose[:3, :3] @ [0.2, 0.0, 0.0], force)
    pushed = Wrench('left_rod', np.concatenate([moment, force])[None], 'hybrid', 'on_robot')
    needed = inverse_dynamics(model, motion, pushed)[0]
    assert np.abs(inverse_dynamics(model, motion)[0]).max() > 0.5
    np.testing.assert_allclose(needed, 0.0, atol=2e-3)
    with pytest.raises(SimulationError, match='left_elbow, right, right_elbow'):
        plant.push('elbow', force)


def test_rigid_drives_imperfections_and_end_stops():
    model = five_bar('hinge')
    actuators = Actuators(model, {'left': SeriesElastic(K, B), 'right': RigidDrive(0.1)})
    faults = Imperfections(payload={'right_rod': 0.5}, gear_ratio={'left': 50.0})
    plant = ElasticPlant(model, actuators, 2e-4, imperfections=faults, end_stops=True)
    q = path(model)([0.1])[0, 0]
    heavier = model.with_payload('right_rod', 0.5)
    np.testing.assert_allclose(
        plant.weight(q), gravity_effort(heavier, q[None])[0], atol=1e-10
    )
    plant.reset(q)
    plant.step(plant.holding_torque(q) + [0.0, 12.0], 5000)
    assert plant.q[1] < 1.01
    apart = all_positions(plant) - complete_motion(model, plant.q[None])[0]
    assert np.abs(apart).max() < 1e-5


def test_loops_that_mujoco_does_not_have_are_refused():
    tree = tree_of(robots.FIVE_BAR)
    powers = (0.0, 0.1, 0.0, 0.0, 0.0, 0.2)
    model = tree.with_loops([Coupling('cam', 'left_elbow', 'left', powers)])
    with pytest.raises(SimulationError, match="'cam' has 6 coefficients.*up to five"):
        ElasticPlant(model, {})
    slider = RobotModel.from_body_screws(
        [(0, 0, 1, 0, 0, 0)] * 3,
        [np.eye(4), shifted(0.3), shifted(0.8)],
        parents=[-1, 0, -1],
        inertias=[(1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))] * 3,
    ).with_loops(
        [Loop('rail', 'slider', 'link2', 'link3', axis=(1.0, 0.0, 0.0))],
        start={'joint1': 0.3, 'joint2': -0.3},
    )
    with pytest.raises(SimulationError, match="'rail' is a slider.*joint of the tree"):
        ElasticPlant(slider, {})


def shifted(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose
