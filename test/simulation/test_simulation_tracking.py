"""Sampling of the simulated robot and closed loops with it, without ROS."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import RigidDrive, SeriesElastic
from hodyn_ros.errors import SimulationError
from hodyn_ros.simulation import ElasticPlant, SampledPlant, Sensors, simulate_tracking

pytest.importorskip('mujoco')
MODEL = RobotModel.from_urdf(robots.TWO_LINK)
COMPLIANCE, INERTIA = np.array([0.0, 1.0 / 400.0]), np.array([0.7, 0.3])


def plant(**options):
    """A robot with a rigid and an elastic joint."""
    drives = {'shoulder': RigidDrive(0.7), 'elbow': SeriesElastic(400.0, 0.3)}
    return ElasticPlant(MODEL, drives, **options)


def motion(times):
    """Turns of both joints with all derivatives, (N, 5, 2)."""
    k, omega = np.arange(5)[:, None], np.array([4.0, 5.0])
    phase = omega * np.asarray(times)[:, None, None] + 0.5 * np.pi * k
    return np.array([0.3, 0.4]) * omega**k * np.sin(phase)


class FeedForward:
    """Exact torques of the reference, and springs and dampers to the motors' reference."""

    def __init__(self):
        self.seen = []

    def command(self, reference, q, qd, theta, thetad, torque=None):
        self.seen.append((torque, theta - q))
        effort = inverse_dynamics(MODEL, reference)
        motor = reference[:3] + COMPLIANCE * effort
        pull = 400.0 * (motor[0] - theta) + 20.0 * (motor[1] - thetad)
        return INERTIA * motor[2] + effort[0] + pull


def test_robot_starts_on_the_motion_and_its_record_has_the_errors():
    record = simulate_tracking(plant(), FeedForward(), motion, 0.3)
    assert (record.times.shape, record.torque.shape) == ((301,), (300, 2))
    error = record.q - motion(record.times)[:, 0]
    assert np.abs(error[0]).max() < 1e-14
    assert record.peak_error == np.max(np.abs(error)) < 1e-3
    assert record.rms_error == pytest.approx(np.sqrt((error**2).mean()))
    np.testing.assert_array_equal(record.theta[:, 0], record.q[:, 0])


def test_velocities_are_filtered_differences_of_the_positions_that_are_measured():
    step, time = 2 * np.pi / 2**12, 3e-3
    sensors = Sensors(
        1e-4, 7.0, 1e-4, 7.0, resolution=step, motor_resolution=step, velocity_filter=time
    )
    sampled = SampledPlant(plant(), sensors=sensors)
    sampled.reset([0.2, -0.4], [1.0, -2.0])
    share, before = 1.0 - np.exp(-1e-3 / time), sampled.measurement
    for _ in range(20):
        now = sampled.advance([1.0, 2.0])
        for position, rate in (('q', 'qd'), ('theta', 'thetad')):
            difference = (getattr(now, position) - getattr(before, position)) / 1e-3
            expected = (1.0 - share) * getattr(before, rate) + share * difference
            np.testing.assert_allclose(getattr(now, rate), expected, rtol=1e-9)
        before = now


def test_disturbance_pushes_from_a_time_on_and_sensors_give_the_torque_of_the_springs():
    times, laws = [], [FeedForward(), FeedForward()]

    def disturbance(robot, time):
        times.append(time)
        if time >= 0.0495:
            robot.push('elbow', [5.0, 0.0, 0.0])

    free = simulate_tracking(plant(), laws[0], motion, 0.1)
    given = {'disturbance': disturbance, 'torque_sensors': True}
    pushed = simulate_tracking(plant(), laws[1], motion, 0.1, **given)
    np.testing.assert_allclose(times, 1e-3 * np.arange(100), atol=1e-12)
    np.testing.assert_array_equal(pushed.q[:51], free.q[:51])
    assert np.abs(pushed.q - free.q)[-1].max() > 1e-4
    for torque, deflection in laws[1].seen:
        np.testing.assert_allclose(torque[1], 400.0 * deflection[1], atol=1e-9)


def test_refused_command_takes_no_place_among_the_delayed_and_a_reset_forgets():
    tried, alike = (SampledPlant(plant(), command_delay=2) for _ in range(2))
    for _ in range(2):
        for i in range(6):
            with pytest.raises(SimulationError, match='torque'):
                tried.advance(np.full(2, 1e11))
            found, expected = (x.advance(np.full(2, 0.1 * i)) for x in (tried, alike))
            np.testing.assert_array_equal(found.q, expected.q)
        assert found.time == pytest.approx(6e-3)
        tried.reset([0.2, -0.4])
        alike = SampledPlant(plant(), command_delay=2)
        alike.reset([0.2, -0.4])


class Constant:
    def __init__(self, torque):
        self.torque = np.asarray(torque)

    def command(self, reference, q, qd, theta, thetad):
        return self.torque


STILL = Constant([1.0, 2.0])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('act', 'message'),
    [
        (lambda: Sensors(position_noise=-1.0), 'position_noise is .*expected a'),
        (lambda: Sensors(motor_resolution=True), 'motor_resolution is .*expected a'),
        (lambda: SampledPlant(plant(), 1.5e-4), 'period is .*multiple of the time step'),
        (lambda: SampledPlant(plant(), command_delay=0.5), 'expected a whole number'),
        (lambda: simulate_tracking(plant(), STILL, motion, 0.0), 'duration is 0.0 s'),
        (
            lambda: simulate_tracking(plant(), STILL, lambda t: motion(t)[:, :4], 0.1),
            r'shape \(100, 4, 2\), exp',
        ),
        (
            lambda: simulate_tracking(plant(), Constant([1.0, np.inf]), motion, 0.1),
            'torque holds inf at index',
        ),
    ],
)
def test_what_cannot_be_sampled_is_refused(act, message):
    with pytest.raises(SimulationError, match=message):
        act()
