"""Sampling of the simulated robot and closed loops with it, without ROS."""

import importlib.util

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators.actuator import RigidDrive
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.errors import SimulationError
from hodyn_ros.simulation.plant import ElasticPlant
from hodyn_ros.simulation.sampling import SampledPlant, Sensors
from hodyn_ros.simulation.tracking import simulate_tracking

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec('mujoco') is None, reason='mujoco is not installed'
)

STIFFNESS, INERTIA = 400.0, 0.3
MODEL = RobotModel.from_urdf(robots.TWO_LINK)


def plant(**options):
    actuator = SeriesElastic(STIFFNESS, INERTIA)
    return ElasticPlant(MODEL, {'shoulder': actuator, 'elbow': actuator}, **options)


def motion(times):
    """Turns of both joints with all derivatives, (N, 5, 2)."""
    k = np.arange(5)[:, None]
    omega = np.array([4.0, 5.0])
    phase = omega * np.asarray(times)[:, None, None] + 0.5 * np.pi * k
    return np.array([0.3, 0.4]) * omega**k * np.sin(phase)


class FeedForward:
    """Exact torques of the reference, and springs and dampers to the motors' reference."""

    def __init__(self, stiffness=100.0, damping=10.0):
        self.stiffness, self.damping = stiffness, damping

    def command(self, reference, q, qd, theta, thetad):
        effort = inverse_dynamics(MODEL, reference)
        motor = reference[:3] + effort / STIFFNESS
        torque = INERTIA * motor[2] + effort[0]
        return (
            torque
            + self.stiffness * (motor[0] - theta)
            + self.damping * (motor[1] - thetad)
        )


class Constant:
    def __init__(self, torque):
        self.torque = np.asarray(torque)

    def command(self, reference, q, qd, theta, thetad):
        return self.torque


def test_the_robot_starts_on_the_motion_and_follows_it():
    record = simulate_tracking(plant(), FeedForward(), motion, 0.5)
    assert record.times.shape == (501,)
    assert record.q.shape == record.qd.shape == record.theta.shape == record.thetad.shape
    assert record.torque.shape == (500, 2)
    assert np.abs(record.error[0]).max() < 1e-14
    assert record.rms_error < 2e-4
    assert record.peak_error >= record.rms_error


def test_error_of_a_held_torque_falls_with_the_period():
    """A torque that is held acts half a period late."""
    errors = [
        simulate_tracking(plant(), FeedForward(), motion, 0.4, period).rms_error
        for period in (4e-3, 2e-3, 1e-3)
    ]
    np.testing.assert_allclose(np.diff(np.log2(errors)), -1.0, atol=0.15)


def test_a_lead_of_half_a_period_makes_up_for_the_hold():
    open_loop, leading = FeedForward(0.0, 0.0), FeedForward(0.0, 0.0)
    leading.lead = 5e-4
    late, on_time = (
        simulate_tracking(plant(), controller, motion, 0.4).rms_error
        for controller in (open_loop, leading)
    )
    assert on_time < late / 100.0


def test_metrics_are_those_of_the_record():
    record = simulate_tracking(plant(), FeedForward(), motion, 0.1)
    error = record.q - motion(record.times)[:, 0]
    assert record.rms_error == pytest.approx(np.sqrt((error**2).sum() / error.size))
    assert record.peak_error == np.max(np.abs(error))
    rate = max(
        abs(b - a) for u, v in zip(record.torque, record.torque[1:]) for a, b in zip(u, v)
    )
    assert record.peak_torque_rate == pytest.approx(rate / 1e-3, rel=1e-6)


def test_the_same_seed_gives_the_same_noise_and_another_one_does_not():
    def run(seed):
        sensors = Sensors(position_noise=1e-4, motor_velocity_noise=1e-2, seed=seed)
        return simulate_tracking(
            plant(), FeedForward(), motion, 0.1, sensors=sensors
        ).torque

    np.testing.assert_array_equal(run(3), run(3))
    assert np.abs(run(3) - run(4)).max() > 1e-3


def test_noise_has_the_given_standard_deviations():
    sensors = Sensors(1e-3, 2e-2, 3e-4, 4e-2)
    sampled = SampledPlant(plant(), sensors=sensors)
    q = np.array([0.2, -0.4])
    held = sampled.plant.holding_torque(q)
    sampled.reset(q, torque=held)
    rows = []
    for _ in range(4000):
        truth = (
            sampled.plant.q,
            sampled.plant.qd,
            sampled.plant.theta,
            sampled.plant.thetad,
        )
        rows.append(np.array(sampled.measurement[1:5]) - truth)
        sampled.advance(held)
    rows = np.array(rows)
    np.testing.assert_allclose(rows.std(axis=(0, 2)), [1e-3, 2e-2, 3e-4, 4e-2], rtol=0.05)
    assert np.abs(rows.mean(axis=(0, 2)) / rows.std(axis=(0, 2))).max() < 0.05


def test_encoders_round_to_their_resolution():
    step = 2 * np.pi / 2**10
    sampled = SampledPlant(
        plant(), sensors=Sensors(resolution=step, motor_resolution=step / 4)
    )
    sampled.reset([0.2, -0.4])
    q, theta = sampled.measurement.q / step, 4 * sampled.measurement.theta / step
    np.testing.assert_allclose(q, np.round(q), atol=1e-9)
    np.testing.assert_allclose(theta, np.round(theta), atol=1e-9)
    assert 0.0 < np.abs(sampled.measurement.q - sampled.plant.q).max() <= step / 2


def test_velocities_are_filtered_differences_of_the_positions_that_are_measured():
    step, time = 2 * np.pi / 2**12, 3e-3
    sensors = Sensors(
        1e-4, 7.0, 1e-4, 7.0, resolution=step, motor_resolution=step, velocity_filter=time
    )
    sampled = SampledPlant(plant(), sensors=sensors)
    sampled.reset([0.2, -0.4], [1.0, -2.0])
    share = 1.0 - np.exp(-1e-3 / time)
    before = sampled.measurement
    for _ in range(20):
        now = sampled.advance([1.0, 2.0])
        for position, rate in (('q', 'qd'), ('theta', 'thetad')):
            difference = (getattr(now, position) - getattr(before, position)) / 1e-3
            expected = (1.0 - share) * getattr(before, rate) + share * difference
            np.testing.assert_allclose(getattr(now, rate), expected, rtol=1e-9)
        before = now


def test_a_disturbance_may_push_from_a_time_on():
    seen = []

    def disturbance(robot, time):
        seen.append(time)
        if time >= 0.0495:
            robot.push('elbow', [5.0, 0.0, 0.0])

    free = simulate_tracking(plant(), FeedForward(), motion, 0.1)
    pushed = simulate_tracking(plant(), FeedForward(), motion, 0.1, disturbance=disturbance)
    np.testing.assert_allclose(seen, 1e-3 * np.arange(100), atol=1e-12)
    np.testing.assert_array_equal(pushed.q[:51], free.q[:51])
    assert np.abs(pushed.q - free.q)[51].max() > 0.0
    assert np.abs(pushed.q - free.q)[-1].max() > 1e-4


def test_measurements_are_late_by_the_delay():
    sampled = SampledPlant(plant(), sensors=Sensors(delay=3))
    sampled.reset([0.2, -0.4], [1.0, -2.0])
    truth, times, measured = [], [], []
    for _ in range(10):
        truth.append(sampled.plant.q)
        times.append(sampled.measurement.time)
        measured.append(sampled.measurement.q)
        sampled.advance([1.0, 2.0])
    np.testing.assert_array_equal(measured[3:], truth[:-3])
    np.testing.assert_array_equal(measured[:3], [truth[0]] * 3)
    np.testing.assert_allclose(times, 1e-3 * np.arange(10), atol=1e-15)


def test_commands_are_late_by_the_delay():
    def path(delay, first):
        sampled = SampledPlant(plant(), command_delay=delay)
        sampled.reset([0.2, -0.4], torque=[5.0, -3.0])
        commands = [[5.0, -3.0]] * first + [[20.0, 10.0]] * 20
        for torque in commands[:12]:
            sampled.advance(torque)
        return sampled.plant.q

    np.testing.assert_array_equal(path(delay=4, first=0), path(delay=0, first=4))
    assert np.abs(path(delay=4, first=0) - path(delay=0, first=0)).max() > 1e-6


def test_a_reset_forgets_what_was_before():
    sampled = SampledPlant(plant(), sensors=Sensors(1e-3, delay=2), command_delay=2)
    results = []
    for _ in range(2):
        sampled.reset([0.2, -0.4])
        for k in range(20):
            measured = sampled.advance([k, -k])
        results.append(measured)
    np.testing.assert_array_equal(results[0].q, results[1].q)
    assert results[0].time == results[1].time == pytest.approx(0.02)


def test_rigid_joints_may_stand_beside_elastic_ones():
    mixed = ElasticPlant(
        MODEL, {'shoulder': RigidDrive(0.7), 'elbow': SeriesElastic(STIFFNESS, INERTIA)}
    )
    inertia, compliance = np.array([0.7, INERTIA]), np.array([0.0, 1.0 / STIFFNESS])

    class Mixed:
        def command(self, reference, q, qd, theta, thetad):
            effort = inverse_dynamics(MODEL, reference)
            motor = reference[:3] + compliance * effort
            pull = 400.0 * (motor[0] - theta) + 20.0 * (motor[1] - thetad)
            return inertia * motor[2] + effort[0] + pull

    record = simulate_tracking(mixed, Mixed(), motion, 0.3)
    assert record.peak_error < 1e-3
    np.testing.assert_array_equal(record.theta[:, 0], record.q[:, 0])


@pytest.mark.parametrize(
    'options',
    [
        {'position_noise': -1.0},
        {'velocity_noise': np.nan},
        {'resolution': np.inf},
        {'delay': 1.5},
        {'delay': -1},
        {'seed': 'one'},
        {'motor_resolution': True},
        {'velocity_filter': -1e-3},
    ],
)
def test_sensors_that_cannot_be_are_refused(options):
    (name,) = options
    with pytest.raises(SimulationError, match=f'{name} is .*expected a'):
        Sensors(**options)


@pytest.mark.parametrize('period', [0.0, -1e-3, np.nan, 1.5e-4, 5e-5])
def test_periods_that_are_no_multiple_of_the_time_step_are_refused(period):
    with pytest.raises(SimulationError, match='The period is .*multiple of the time step'):
        SampledPlant(plant(time_step=1e-4), period)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ((Constant([1.0, 2.0]), motion, 0.0), 'duration is 0.0 s'),
        (
            (Constant([1.0, 2.0]), lambda t: motion(t)[:, :4], 0.1),
            r'shape \(100, 4, 2\), exp',
        ),
        ((Constant([1.0]), motion, 0.1), 'torque is .*expected 2 finite numbers'),
        ((Constant([1.0, np.inf]), motion, 0.1), 'torque holds inf at index'),
    ],
)
def test_tracking_refuses_what_it_cannot_run(arguments, message):
    with pytest.raises(SimulationError, match=message):
        simulate_tracking(plant(), *arguments)


def test_command_delay_must_be_a_whole_number():
    with pytest.raises(
        SimulationError, match='command_delay is 0.5, expected a whole number'
    ):
        SampledPlant(plant(), command_delay=0.5)


def test_a_command_that_is_refused_takes_no_place_among_the_delayed():
    tried, alike = (SampledPlant(plant(), command_delay=2) for _ in range(2))
    n = len(tried.plant.motor_names)
    for i in range(6):
        with pytest.raises(SimulationError, match='torque'):
            tried.advance(np.full(n, 1e11))
        np.testing.assert_array_equal(
            tried.advance(np.full(n, 0.1 * i)).q, alike.advance(np.full(n, 0.1 * i)).q
        )
