"""Simulated robots against Pinocchio, integration by SciPy and energy, and their sensors."""

import numpy as np
import pinocchio
import pytest
from support import control_cases, control_simulation, robots
from support.control_cases import (
    HOME,
    MOTOR_INERTIA,
    STIFFNESS,
    TUNING_MOTION,
    Condition,
)
from support.followed import law
from support.loop_oracle import LoopEquation, LoopOracle

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, CubicSpring, RigidDrive, SeriesElastic
from hodyn_ros.errors import SimulationError
from hodyn_ros.simulation import ElasticPlant, Imperfections, SampledPlant, Sensors

HOME, CUBIC = np.array(HOME), 3e5


@pytest.fixture(scope='module')
def model():
    return control_simulation.panda()


def simulated(model, cubic=0.0, time_step=2e-4, **faults):
    drives = {
        name: SeriesElastic(CubicSpring(float(k), cubic), float(b))
        for name, k, b in zip(model.joint_names, STIFFNESS, MOTOR_INERTIA)
    }
    return ElasticPlant(model, drives, time_step, imperfections=Imperfections(**faults))


def test_energy_changes_by_the_work_of_the_motors_alone(model):
    """Of links by Pinocchio, of springs and motors by their laws; the torque is constant."""
    plant, reference = simulated(model, CUBIC), Condition().plant()

    def energy():
        q, qd, d = plant.q, plant.qd, plant.theta - plant.q
        links = pinocchio.computeMechanicalEnergy(reference.model, reference.data, q, qd)
        springs = (0.5 * STIFFNESS * d**2 + 0.25 * CUBIC * d**4).sum()
        return links + springs + (0.5 * MOTOR_INERTIA * plant.thetad**2).sum()

    plant.reset(HOME, theta=HOME + 0.02)
    torque, start, before = np.array([20.0, 5, -10, 5, 2, -1, 1]), plant.theta, energy()
    for _ in range(10):
        plant.step(torque, 200)
        work = torque @ (plant.theta - start)
        assert energy() - before == pytest.approx(work, abs=1e-6)
    assert work > 5.0


@pytest.mark.parametrize(
    ('theirs', 'ours'),
    [
        ({}, {}),
        (
            {'stiffness': 0.2, 'inertia': -0.1, 'payload': 2.0, 'damping': 1.0},
            {'stiffness_error': 0.2, 'inertia_error': -0.1, 'damping': 1.0}
            | {'payload': {'panda_link8': 2.0}},
        ),
        ({'gear_ratio': 20.0}, {'gear_ratio': 20.0}),
    ],
)
def test_motion_is_that_of_the_equations_integrated_by_scipy(model, theirs, ours):
    plant, reference = simulated(model, **ours), Condition(**theirs).plant()
    state = reference.at_rest(HOME)
    state[1], swing = 0.3, np.array([20.0, 30, 15, 15, 5, 5, 3])

    def torque(time):
        return reference.torque + swing * np.sin(25.0 * time)

    times = np.linspace(0.0, 0.2, 3)
    expected = reference.run_continuously(state, lambda t, x: torque(t), times)
    exact = Condition().plant().run_continuously(state, lambda t, x: torque(t), times)
    plant.reset(*state)
    for row in expected[1:]:
        plant.step(torque, 500)
        found = [plant.q, plant.qd, plant.theta, plant.thetad]
        np.testing.assert_allclose(found, row, atol=5e-6)
    assert not theirs or np.abs(exact[-1] - expected[-1]).max() > 1e-3
    assert plant.time == pytest.approx(0.2)


def test_law_moves_the_simulated_robot_as_it_moves_the_one_of_pinocchio(model):
    condition = Condition(
        motion=TUNING_MOTION, payload=1.0, coulomb=1.0, backlash=1e-4, delay=1, push=20.0
    )
    first, second = (
        side.follow(law(model), condition) for side in (control_cases, control_simulation)
    )
    size = np.abs(first.error).max()
    assert size > 1e-3
    np.testing.assert_allclose(first.error, second.error, atol=0.03 * size)


def test_motors_stick_break_away_and_have_no_more_torque_than_they_may():
    """A motor that is free in the backlash of its spring."""
    faults = {'coulomb': 1.0, 'breakaway': 2.0, 'torque_limit': {'shoulder': 5.0}}
    plant = ElasticPlant(
        RobotModel.from_urdf(robots.TWO_LINK),
        {'shoulder': SeriesElastic(300.0, 0.5), 'elbow': RigidDrive(0.1)},
        imperfections=Imperfections(backlash={'shoulder': 1e3}, **faults),
    )
    plant.reset([0.0, 0.0], theta=[0.0, 0.0])
    plant.step([1.95, 0.0], 2000)
    assert abs(plant.thetad[0]) < 1e-6
    plant.step([50.0, 0.0], 1000)
    assert plant.thetad[0] == pytest.approx((5.0 - 1.0) / 0.5 * 0.1, rel=0.02)


def test_closed_loops_move_as_inverse_dynamics_of_the_mechanism_says():
    model = RobotModel.from_urdf(robots.FIVE_BAR)
    actuators = Actuators(
        model, {name: SeriesElastic(250.0, 0.05) for name in model.joint_names}
    )
    pose = np.eye(4)
    pose[0, 3] = 0.5
    pin = LoopEquation('hinge', 'left_rod', 'right_rod', pose, pose, np.eye(3)[2])
    names = ('left', 'left_elbow', 'right', 'right_elbow')
    oracle = LoopOracle(robots.FIVE_BAR, names, model.joint_names, [pin], (0.0, 0.0, -9.81))
    plant, rng = ElasticPlant(model, actuators, 2e-4), np.random.default_rng(3)
    q = np.array([0.1, -0.1])
    for _ in range(3):
        qd, thetad, torque = rng.uniform(-1.0, 1.0, (3, 2))
        theta = q + rng.uniform(-0.02, 0.02, 2)
        plant.reset(q, qd, theta, thetad)
        acceleration, of_motors = plant.acceleration(torque)
        _, needed = oracle(np.stack([q, qd, acceleration]), np.zeros(4))
        Q = 250.0 * (theta - q)
        # MuJoCo's constraints leave a little of the acceleration that they oppose.
        np.testing.assert_allclose(needed[0], Q, atol=1e-2 * np.abs(Q).max())
        np.testing.assert_allclose(0.05 * of_motors + Q, torque, atol=1e-9)


def test_measurements_are_late_rounded_and_noisy_and_commands_late(model):
    step, truth, seen = 2.0 * np.pi / 2**14, [], []
    sensors = Sensors(delay=3, motor_resolution=step, torque_noise=0.2, position_noise=1e-3)
    sampled = SampledPlant(simulated(model), 1e-3, sensors, command_delay=2)
    held = sampled.plant.holding_torque(HOME)
    sampled.reset(HOME, torque=held)
    for k in range(300):
        truth.append((sampled.plant.q, sampled.plant.theta, sampled.plant.spring_torque))
        seen.append(sampled.measurement)
        sampled.advance(held + 5.0 * (k >= 200))
    q, theta, torque = (np.array(rows) for rows in zip(*truth))
    assert np.abs(theta[:203] - theta[0]).max() < 1e-9 < np.abs(theta[203] - theta[0]).max()
    np.testing.assert_allclose([m.time for m in seen], 1e-3 * np.arange(300), atol=1e-12)
    found = np.array([m.theta for m in seen])[3:]
    np.testing.assert_array_equal(found, np.round(theta[:-3] / step) * step)
    noise = np.array([m.q for m in seen])[3:] - q[:-3]
    assert noise.std() == pytest.approx(1e-3, rel=0.05)
    noise = np.array([m.spring_torque for m in seen])[3:] - torque[:-3]
    assert noise.std() == pytest.approx(0.2, rel=0.05)


def test_simulation_that_cannot_go_on_says_so(model):
    plant = simulated(model, time_step=2e-2)
    for torque in (np.full(7, np.nan), np.zeros(6), np.full(7, 1e11)):
        with pytest.raises(SimulationError, match='torque'):
            plant.step(torque)
    assert plant.time == 0.0
    plant.reset(np.zeros(7), np.ones(7))
    with pytest.raises(SimulationError, match='diverged at .*shorter time_step'):
        plant.step(np.zeros(7), 1000)
