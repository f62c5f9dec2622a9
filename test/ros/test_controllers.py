"""What the node sends to controllers: trajectories with efforts, and streams of commands."""

from __future__ import annotations

import numpy as np
import pytest
from hodyn_msgs.msg import JointMotionTrajectory
from scipy.interpolate import BPoly
from scipy.optimize import least_squares
from std_msgs.msg import Float64, Float64MultiArray
from support import robots
from support.messages import (
    FIELDS,
    GRAVITY,
    NAMES,
    joint_trajectory,
    rows,
    samples,
    stamp_of,
)
from support.oracles import taylor_terms
from support.ros_harness import Harness, dict_of
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.streams.motion_stream import LEAD_IN
from hodyn_ros.streams.timeline import nanoseconds
from hodyn_ros.trajectory.jtc import jtc_motion

FRICTION = 0.4
TIMES = (0.0, 0.4, 0.9)
POSITIONS = ((0.0, 0.0), (0.5, -0.4), (0.2, 0.3))


USUAL = {
    'command.effort': 'full',
    'command.friction': True,
    'command.effort_tolerance': 0.02,
    'max_trajectory_points': 10_000,
    'interpolation': 'spline',
    'publish_rate': 200.0,
}


class Station(Harness):
    """A node with the two-link arm and a listener to what it sends to controllers."""

    def __init__(self, **options):
        friction = {f'friction.{name}.viscous': FRICTION for name in NAMES}
        super().__init__(friction | USUAL | options)
        self.listen(JointTrajectory, 'hodyn_node/controller_trajectory')
        self.listen(Float64MultiArray, 'hodyn_node/commands')
        self.listen(JointMotionTrajectory, 'hodyn_node/planned_motion')

    def move(self, positions=POSITIONS, times=TIMES):
        """Send a trajectory and return the whole answer."""
        count = len(self.messages['hodyn_node/effort_trajectory'])
        self.publishers['joint_trajectory'].publish(joint_trajectory(positions, times))
        return self.received('effort_trajectory', count + 1)[-1]


@pytest.fixture(scope='module')
def shared():
    made = Station()
    yield made
    made.close()


@pytest.fixture
def station(shared):
    """The same, with the usual parameters and nothing under way."""
    # Another robot in between ends what still runs.
    shared.describe_and_wait(robots.OTHER_JOINTS)
    shared.describe_and_wait(robots.TWO_LINK)
    assert shared.set(**USUAL).successful
    # What is still on its way to the client was sent before the next report.
    shared.messages['/diagnostics'].clear()
    shared.status('model', lambda s: True)
    shared.forget()
    return shared


def columns(message):
    """Times and rows (N, 4, n) of a message for a controller."""
    rows = [[p.positions, p.velocities, p.accelerations, p.effort] for p in message.points]
    stamps = [point.time_from_start for point in message.points]
    return np.array([t.sec + 1e-9 * t.nanosec for t in stamps]), np.array(rows)


def content(motion, kind, friction):
    """Efforts of a content, from power series."""
    terms = taylor_terms(robots.TWO_LINK, NAMES, GRAVITY, motion)
    effort = terms[0] + (terms[1] if kind == 'full' else 0.0)
    orders = motion.shape[-2] - 2
    return effort + friction * FRICTION * motion[..., 1 : 1 + orders, :]


@pytest.mark.parametrize(
    ('kind', 'friction'),
    [
        ('full', True),
        ('without_gravity', False),
    ],
)
def test_efforts_between_the_points_are_exact_up_to_the_tolerance(station, kind, friction):
    tolerance = 0.02
    assert station.set(command__effort=kind, command__friction=friction).successful
    whole = station.move()
    message = station.received('controller_trajectory')[0]
    assert tuple(message.joint_names) == NAMES
    times, rows = columns(message)
    # The stamp comes before the first point: one that has passed is "now" for the controller.
    assert times[0] == LEAD_IN
    assert (
        nanoseconds(whole.header.stamp) - nanoseconds(message.header.stamp) == 1e9 * LEAD_IN
    )
    times -= LEAD_IN
    assert times[-1] == pytest.approx(TIMES[-1], abs=1e-12)
    expected = content(rows[:, :3], kind, friction)[:, 0]
    np.testing.assert_allclose(rows[:, 3], expected, rtol=0.0, atol=1e-11)
    # As the controller moves: of degree 5, with efforts that are interpolated linearly.
    executed = jtc_motion(times, *(rows[:, k] for k in range(3)))
    looks = np.linspace(0.0, times[-1], 2001)
    exact = content(executed(looks, 2), kind, friction)[:, 0]
    sent = np.stack([np.interp(looks, times, rows[:, 3, j]) for j in range(2)], axis=1)
    assert np.abs(sent - exact).max() <= tolerance
    assert (len(times) > 2) and any('holds with' in text for text in whole.remarks) == (
        kind == 'full'
    )


def test_polynomials_through_the_planned_motion_are_the_motion(station):
    for number, is_stop in enumerate((False, True), 1):
        if is_stop:
            station.publishers['joint_trajectory'].publish(JointTrajectory())
            whole = station.received('effort_trajectory', 2)[-1]
        else:
            whole = station.move(times=(0.0, 20.0, 40.0))
        knots = station.received('planned_motion', number)[-1]
        assert tuple(knots.joint_names) == NAMES
        assert knots.header.stamp == whole.header.stamp
        assert len(knots.time_from_start) == (2 if is_stop else 3)
        made = BPoly.from_derivatives(knots.time_from_start, samples(knots, FIELDS))
        expected = samples(whole, FIELDS)
        for k in range(5):
            found = (made.derivative(k) if k else made)(np.array(whole.time_from_start))
            size = 1e-7 * np.abs(expected[:, k]).max()
            np.testing.assert_allclose(found, expected[:, k], rtol=0.0, atol=size)


def test_motion_whose_efforts_jump_is_not_for_a_controller(station):
    assert station.set(interpolation='jtc').successful
    assert any('accelerations' in text for text in station.move().remarks)
    assert not station.messages['hodyn_node/controller_trajectory']
    assert not station.messages['hodyn_node/planned_motion']


def test_stop_reaches_the_controller_too(station):
    station.move(times=(0.0, 40.0, 90.0))
    station.received('controller_trajectory')
    station.publishers['joint_trajectory'].publish(JointTrajectory())
    times, rows = columns(station.received('controller_trajectory', 2)[1])
    assert times[-1] == pytest.approx(0.5 + LEAD_IN)
    np.testing.assert_allclose(rows[-1, 1:3], 0.0, atol=1e-12)


def test_controller_without_efforts_gets_points_without_them(station):
    assert station.set(command__effort_tolerance=0.0).successful
    whole = station.move()
    (message,) = station.received('controller_trajectory')
    assert {len(point.effort) for point in message.points} == {0}
    assert {len(point.accelerations) for point in message.points} == {2}
    assert not any('holds with' in text for text in whole.remarks)


def test_efforts_are_those_at_the_speed_that_the_controller_reports():
    station = Station(speed_scaling=True)
    try:
        station.describe_and_wait(robots.TWO_LINK)
        speed = station.advertise(Float64, 'speed_scaling')
        # With a stamp it may wait for the planning process for longer than ten seconds.
        now = station.client.get_clock().now().nanoseconds
        long = joint_trajectory(POSITIONS, (0.0, 60.0, 120.0), stamp=now)
        station.publishers['joint_trajectory'].publish(long)
        knots = station.received('planned_motion')[0]
        held = station.status('joint_effort', lambda s: dict_of(s)['held back'] != '0')
        assert 'No speed_scaling has come, so' in held.message
        assert not station.messages['hodyn_node/joint_effort']
        assert station.set(input_timeout=0.0).successful
        found = {}
        for percent in (0.0, 50.0, 0.0):
            speed.publish(Float64(data=percent))
            at = 'speed of trajectories [%]', f'{percent:g}'
            station.status('model', lambda s, at=at: at in dict_of(s).items())
            station.forget()
            found.setdefault(percent, station.received('joint_effort', 9)[:9])
        # Sent while the controller stands, with the delay in its stamp.
        station.publishers['joint_trajectory'].publish(long)
        (sent,) = station.received('controller_trajectory')
        (joined,) = station.received('planned_motion')
        speed.publish(Float64(data=-1.0))
        station.refuses('speed_scaling', 'expected a number from 0 to 1000')
    finally:
        station.close()
    first = stamp_of(sent) + round(1e9 * columns(sent)[0][0])
    assert first == stamp_of(joined) + round(1e9 * joined.time_from_start[0])
    assert columns(sent)[0][0] > LEAD_IN and stamp_of(sent) > stamp_of(found[50.0][-1])
    assert np.any(joined.velocity[:2])
    made = BPoly.from_derivatives(knots.time_from_start, samples(knots, FIELDS))
    standing = np.array([rows(message) for message in found[0.0]])
    assert (standing == standing[0]).all() and not standing[:, 1:].any()
    assert {message.continuous_order for message in found[50.0]} == {2}

    def expected(times):
        orders = [(made.derivative(k) if k else made)(times) / 2.0**k for k in range(5)]
        return content(np.stack(orders, axis=-2), 'full', True)

    stamps = np.array([1e-9 * stamp_of(message) for message in found[50.0]])
    executed = np.array([rows(message) for message in found[50.0]])
    since = stamps - stamps[0]

    def away(begin):
        return executed - expected(begin + 0.5 * since)

    grid = np.linspace(0.0, 115.0, 2001)
    near = grid[np.abs(expected(grid)[:, 0] - executed[0, 0]).max(axis=1).argmin()]
    begin = least_squares(lambda x: 1e9 * away(x)[:, 0].ravel(), near).x
    scale = np.abs(executed).max(axis=(0, 2), keepdims=True)
    assert np.abs(away(begin) / scale).max() < 1e-5


@pytest.mark.parametrize('kind', ['full', 'without_gravity'])
def test_commands_are_the_efforts_of_the_stream_to_its_end(station, kind):
    assert station.set(command__effort=kind).successful
    station.move()
    still = np.zeros((3, 2))
    still[0] = POSITIONS[-1]
    expected = content(still, kind, True)[0]
    commands = station.messages['hodyn_node/commands']
    station.wait(
        lambda: commands and np.allclose(commands[-1].data, expected, rtol=0.0, atol=1e-9),
        'the end of the motion',
    )
    assert np.abs(np.diff([m.data for m in commands], axis=0)).max() > 0.0
