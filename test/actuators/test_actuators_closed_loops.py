"""Elastic motors of parallel mechanisms, against an oracle without code of the package."""

import numpy as np
import pytest
from support import robots
from support.loop_oracle import LoopEquation, LoopOracle
from support.parallel_ankle import PARALLEL_ANKLE

from hodyn_ros import (
    RobotModel,
    forward_dynamics,
    friction,
    inverse_dynamics,
    kinetic_energy,
    potential_energy,
)
from hodyn_ros.actuators import (
    Actuators,
    CubicSpring,
    SeriesElastic,
    find_motor_violations,
    motor_limits,
    motor_motion,
)
from hodyn_ros.errors import ActuatorError
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.model import Loop

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

GRAVITY = (0.5, -9.0, -3.0)
K, B = np.array([300.0, 200.0]), np.array([0.05, 0.08])


@pytest.fixture(scope='module', params=[robots.FIVE_BAR, PARALLEL_ANKLE])
def mechanism(request):
    model = RobotModel.from_urdf(request.param, gravity=GRAVITY)
    return model, request.param


def driven(model):
    return Actuators(
        model, {n: SeriesElastic(k, b) for n, k, b in zip(model.joint_names, K, B)}
    )


def motion_of(model, K=7, count=6):
    t, k = np.linspace(0.0, 1.0, count)[:, None, None], np.arange(K)[:, None]
    w, a = np.array([3.0, 4.0]), np.array([0.25, -0.2])
    motion = a * w**k * np.sin(w * t + 0.5 * np.pi * k)
    motion[:, 0] += model.closure.start[model.closure.independent]
    return motion


def test_motors_are_ahead_by_what_the_oracle_says(mechanism):
    model, xml = mechanism
    equations = [
        LoopEquation(
            loop.kind, loop.link_a, loop.link_b, loop.pose_a, loop.pose_b, loop.axis
        )
        for loop in model.closure.loops
    ]
    oracle = LoopOracle(
        xml, model.closure.tree.joint_names, model.joint_names, equations, GRAVITY
    )
    motion = motion_of(model)
    whole = complete_motion(model, motion)
    Q = np.array([oracle(q, guess[0])[1] for q, guess in zip(motion, whole)])
    found = motor_motion(driven(model), motion)
    theta = motion[:, :5] + Q / K
    np.testing.assert_allclose(found.position[:, :5], theta, rtol=1e-7, atol=1e-7)
    tau = Q[:, :3] + B * theta[:, 2:5]
    scale = np.abs(tau).max(axis=(0, 2))
    error = np.abs(found.torque[:, :3] - tau).max(axis=(0, 2)) / scale
    assert (error < [1e-9, 1e-8, 1e-6]).all()


def test_power_of_the_motors_is_the_rate_of_all_energy(mechanism):
    model, _ = mechanism
    spring, names = CubicSpring(300.0, 2e4), model.joint_names
    laws = [friction.Viscous(0.3), None]
    actuators = Actuators(
        model, {n: SeriesElastic(spring, 0.1, friction=law) for n, law in zip(names, laws)}
    )
    motion = motion_of(model, 5)
    motors = motor_motion(actuators, motion)
    theta, d, dd = motors.position, motors.deflection[:, 0], motors.deflection[:, 1]
    links = kinetic_energy(model, motion)[:, 1] + potential_energy(model, motion)[:, 1]
    rate = links + ((300.0 * d + 2e4 * d**3) * dd + 0.1 * theta[:, 1] * theta[:, 2]).sum(-1)
    lost = 0.3 * theta[:, 1, 0] ** 2
    power = (motors.torque[:, 0] * theta[:, 1]).sum(-1)
    np.testing.assert_allclose(power, rate + lost, rtol=1e-9, atol=1e-9)


def test_springs_and_their_rates_tell_acceleration_and_jerk(mechanism):
    model, _ = mechanism
    motion = motion_of(model, 5)
    theta = motor_motion(driven(model), motion).position
    Q = K * (theta[:, :2] - motion[:, :2])
    found = forward_dynamics(model, motion[:, :2], Q)
    np.testing.assert_allclose(found, motion[:, 2:4], rtol=1e-8, atol=1e-7)


def test_limits_of_motors_are_those_of_independent_joints(mechanism):
    model, _ = mechanism
    actuators, motion = driven(model), motion_of(model, 5)
    motors = motor_motion(actuators, motion)
    first, second = model.joint_names
    largest = np.abs(motors.torque[:, 0, 1]).max()
    limits = motor_limits(
        actuators,
        {first: {'motor_torque': 1e3}, second: {'motor_torque': 0.9 * largest}},
    )
    found = find_motor_violations(actuators, limits, motors)
    assert {(v.quantity, v.joint_name) for v in found} == {('motor_torque', second)}


def test_actuators_suit_the_robot_with_a_payload_and_no_other_loops():
    model = RobotModel.from_urdf(robots.FIVE_BAR)
    actuators = driven(model)
    actuators.check_suits(model.with_payload('left_rod', 1.0))
    actuators.check_suits(RobotModel.from_urdf(robots.FIVE_BAR))
    tree = model.closure.tree
    with pytest.raises(ActuatorError, match='other joints'):
        actuators.check_suits(tree)
    pose_a, pose_b = model.closure.loops[0].poses
    longer = pose_a.copy()
    longer[0, 3] += 0.02
    pin = Loop('pin', 'hinge', 'left_rod', 'right_rod', longer, pose_b)
    with pytest.raises(ActuatorError, match='other loops'):
        actuators.check_suits(tree.with_loops([pin], model.joint_names))
    ball = Loop('pin', 'ball', 'left_rod', 'right_rod', pose_a, pose_b)
    with pytest.raises(ActuatorError, match='other loops'):
        actuators.check_suits(tree.with_loops([ball], model.joint_names))


def test_friction_and_payload_of_dependent_joints_reach_the_motors(mechanism):
    model, _ = mechanism
    tree = model.closure.tree
    passive = tree.joint_names[model.closure.dependent[0]]
    other = model.with_friction({passive: friction.Viscous(0.5)})
    motion = motion_of(model, 5)
    more = inverse_dynamics(other, motion) - inverse_dynamics(model, motion)
    moved = motor_motion(driven(other), motion).position - (
        motor_motion(driven(model), motion).position
    )
    assert np.abs(more).max() > 1e-3
    np.testing.assert_allclose(moved, more / K, rtol=1e-9, atol=1e-12)
