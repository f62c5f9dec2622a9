"""Elastic motors of parallel mechanisms, against an oracle without code of the package."""

import numpy as np
import pytest
from support import robots
from support.parallel_ankle import PARALLEL_ANKLE

from hodyn_ros import (
    RobotModel,
    friction,
    inverse_dynamics,
    kinetic_energy,
    potential_energy,
)
from hodyn_ros.actuators import Actuators, CubicSpring, SeriesElastic, motor_motion
from hodyn_ros.control import FeedForwardController
from hodyn_ros.errors import ControlError
from hodyn_ros.model import Loop

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

GRAVITY = (0.5, -9.0, -3.0)
K, B = np.array([300.0, 200.0]), np.array([0.05, 0.08])


@pytest.fixture(scope='module', params=[robots.FIVE_BAR, PARALLEL_ANKLE])
def model(request):
    return RobotModel.from_urdf(request.param, gravity=GRAVITY)


def driven(model):
    return Actuators(
        model, {n: SeriesElastic(k, b) for n, k, b in zip(model.joint_names, K, B)}
    )


def motion_of(model, K=5, count=6):
    t, k = np.linspace(0.0, 1.0, count)[:, None, None], np.arange(K)[:, None]
    w, a = np.array([3.0, 4.0]), np.array([0.25, -0.2])
    motion = a * w**k * np.sin(w * t + 0.5 * np.pi * k)
    motion[:, 0] += model.closure.start[model.closure.independent]
    return motion


def test_power_of_the_motors_is_the_rate_of_all_energy(model):
    spring, names = CubicSpring(300.0, 2e4), model.joint_names
    laws = [friction.Viscous(0.3), None]
    actuators = Actuators(
        model, {n: SeriesElastic(spring, 0.1, friction=law) for n, law in zip(names, laws)}
    )
    motion = motion_of(model)
    motors = motor_motion(actuators, motion)
    theta, d, dd = motors.position, motors.deflection[:, 0], motors.deflection[:, 1]
    links = kinetic_energy(model, motion)[:, 1] + potential_energy(model, motion)[:, 1]
    rate = links + ((300.0 * d + 2e4 * d**3) * dd + 0.1 * theta[:, 1] * theta[:, 2]).sum(-1)
    lost = 0.3 * theta[:, 1, 0] ** 2
    power = (motors.torque[:, 0] * theta[:, 1]).sum(-1)
    np.testing.assert_allclose(power, rate + lost, rtol=1e-9, atol=1e-9)


def test_friction_of_dependent_joints_reaches_the_motors(model):
    passive = model.closure.tree.joint_names[model.closure.dependent[0]]
    other = model.with_friction({passive: friction.Viscous(0.5)})
    motion = motion_of(model)
    more = inverse_dynamics(other, motion) - inverse_dynamics(model, motion)
    moved = motor_motion(driven(other), motion).position - (
        motor_motion(driven(model), motion).position
    )
    assert np.abs(more).max() > 1e-3
    np.testing.assert_allclose(moved, more / K, rtol=1e-9, atol=1e-12)


def test_actuators_suit_the_robot_with_a_payload_and_no_other_loops():
    model = RobotModel.from_urdf(robots.FIVE_BAR)
    actuators, tree = driven(model), model.closure.tree
    FeedForwardController(model.with_payload('left_rod', 1.0), actuators, (1.0, 1.0))
    pose_a, pose_b = model.closure.loops[0].poses
    longer = pose_a.copy()
    longer[0, 3] += 0.02
    others = [
        (tree, 'other joints'),
        *(
            (
                tree.with_loops([Loop('pin', kind, 'left_rod', 'right_rod', pose, pose_b)]),
                said,
            )
            for kind, pose, said in (
                ('hinge', longer, 'other'),
                ('ball', pose_a, 'other'),
            )
        ),
    ]
    for other, said in others:
        with pytest.raises(ControlError, match=said):
            FeedForwardController(other, actuators, (1.0, 1.0))
