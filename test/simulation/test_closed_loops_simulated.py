"""Robots with closed loops in MuJoCo, whose equalities close them, under the laws of control."""

import numpy as np
import pytest
from support import robots
from support.parallel_ankle import PARALLEL_ANKLE

from hodyn_ros import (
    RobotModel,
    Wrench,
    forward_kinematics,
    friction,
    gravity_effort,
    inverse_dynamics,
)
from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic
from hodyn_ros.control import (
    FeedForwardController,
    FlatnessController,
    JointImpedance,
    TrackingController,
    motor_gains,
)
from hodyn_ros.errors import SimulationError
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.model import Coupling, Loop
from hodyn_ros.simulation import ElasticPlant, Imperfections, simulate_tracking

pytest.importorskip('mujoco')
pytestmark = [
    pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning'),
    pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning'),
]
GRAVITY, K, B = (0.5, -9.0, -3.0), 250.0, 0.05


POSE = np.eye(4)
POSE[0, 3] = 0.5


def tree():
    return RobotModel.from_urdf(robots.FIVE_BAR, gravity=GRAVITY, loops=())


def five_bar(kind='hinge'):
    """The five-bar, with loops that leave it the same two degrees of freedom."""
    loop = Loop('pin', kind, 'left_rod', 'right_rod', POSE, POSE)
    return tree().with_loops([loop], ['left', 'right'])


def coupled():
    laws = [
        Coupling('belt', 'left_elbow', 'left', (0.1, -0.5, 0.2, 0.1)),
        Coupling('gear', 'right_elbow', 'right', (0.0, 2.0)),
    ]
    return tree().with_loops(laws, ['left', 'right'])


def ankle():
    return RobotModel.from_urdf(PARALLEL_ANKLE, gravity=GRAVITY)


def simulated(model, **options):
    drives = dict.fromkeys(model.joint_names, SeriesElastic(K, B))
    return ElasticPlant(model, Actuators(model, drives), 2e-4, **options)


def path(model):
    """A motion of the independent joints: times (N,) to (N, 5, 2)."""
    w, a, k = np.array([5.0, 7.0]), np.array([0.2, -0.15]), np.arange(5)[:, None]
    start = model.closure.start[model.closure.independent]

    def motion(times):
        result = a * w**k * np.sin(w * np.asarray(times)[:, None, None] + 0.5 * np.pi * k)
        result[:, 0] += start
        return result

    return motion


def open_by(plant):
    """How far the positions of all joints are from those that close the loops."""
    names = plant.model.closure.tree.joint_names
    found = [plant.mujoco_data.joint(n).qpos[0] for n in names]
    return np.abs(found - complete_motion(plant.model, plant.q[None])[0]).max()


@pytest.mark.parametrize('make', [lambda: five_bar('ball'), coupled, ankle])
def test_loops_stay_closed_and_joints_accelerate_as_inverse_dynamics_needs(make):
    model = make()
    plant, rng = simulated(model), np.random.default_rng(3)
    q = path(model)([0.1])[0, 0]
    plant.reset(q)
    weight = gravity_effort(model, q[None])[0]
    np.testing.assert_allclose(plant.weight(q), weight, atol=1e-12)
    plant.step(plant.holding_torque(q), 500)
    np.testing.assert_allclose(plant.q, q, atol=1e-8)
    assert open_by(plant) < 1e-8
    qd, torque = rng.uniform(-1.0, 1.0, (2, 2))
    theta = q + rng.uniform(-0.02, 0.02, 2)
    plant.reset(q, qd, theta, qd)
    acceleration, _ = plant.acceleration(torque)
    needed, Q = inverse_dynamics(model, np.stack([q, qd, acceleration]))[0], K * (theta - q)
    # MuJoCo's constraints leave a little of the acceleration that they oppose.
    np.testing.assert_allclose(needed, Q, atol=1e-2 * np.abs(Q).max())


@pytest.mark.parametrize('make', [five_bar, ankle])
def test_laws_in_closed_loop(make):
    model = make()
    plant, motion = simulated(model), path(model)
    actuators = plant.actuators
    gains = motor_gains(model, actuators, 30.0, motion([0.0])[0, 0])
    laws = {
        'exact': FeedForwardController(model, actuators, gains),
        'static': FeedForwardController(model, actuators, gains, order=0),
        'flatness': FlatnessController(model, actuators, 60.0),
        'tracking': TrackingController(actuators, 1e-3),
        'impedance': JointImpedance(actuators, 1e-3, stiffness=40.0),
    }
    error = {
        key: simulate_tracking(plant, law, motion, 0.2).peak_error
        for key, law in laws.items()
    }
    assert open_by(plant) < 1e-5
    assert error['exact'] < 0.5 * error['static']
    assert max(error[key] for key in ('exact', 'flatness', 'tracking')) < 2e-4
    assert error['impedance'] < 3e-3


def test_dependent_joints_have_friction_and_their_links_are_pushed():
    model = five_bar()
    other = model.with_friction({'left_elbow': friction.Coulomb(0.2, smoothing=0.05)})
    q, qd = path(model)([0.1])[0, :2]
    plant, force = simulated(other), np.array([5.0, -8.0, 0.0])
    plant.reset(q, qd, q, qd)
    plant.push('left_elbow', force)
    motion = np.stack([q, qd, plant.acceleration(np.zeros(2))[0]])
    pose = forward_kinematics(model, motion[:1], 'left_rod').pose
    moment = np.cross(pose[:3, :3] @ [0.2, 0.0, 0.0], force)
    pushed = Wrench('left_rod', np.concatenate([moment, force])[None], 'hybrid', 'on_robot')
    np.testing.assert_allclose(inverse_dynamics(other, motion, pushed)[0], 0.0, atol=3e-3)
    assert np.abs(inverse_dynamics(model, motion, pushed)[0]).max() > 0.05
    assert np.abs(inverse_dynamics(other, motion)[0]).max() > 0.5


def test_rigid_drives_imperfections_and_end_stops():
    model = five_bar()
    actuators = Actuators(model, {'left': SeriesElastic(K, B), 'right': RigidDrive(0.1)})
    faults = Imperfections(payload={'right_rod': 0.5}, gear_ratio={'left': 50.0})
    plant = ElasticPlant(model, actuators, 2e-4, imperfections=faults, end_stops=True)
    q = path(model)([0.1])[0, 0]
    weight = gravity_effort(model.with_payload('right_rod', 0.5), q[None])[0]
    np.testing.assert_allclose(plant.weight(q), weight, atol=1e-10)
    plant.reset(q)
    plant.step(plant.holding_torque(q) + [0.0, 12.0], 5000)
    assert plant.q[1] < 1.01
    assert open_by(plant) < 1e-5


def test_loops_that_mujoco_does_not_have_are_refused():
    cam = Coupling('cam', 'left_elbow', 'left', (0.0, 0.1, 0.0, 0.0, 0.0, 0.2))
    with pytest.raises(SimulationError, match="'cam' has 6 coefficients.*up to five"):
        ElasticPlant(tree().with_loops([cam]), {})
