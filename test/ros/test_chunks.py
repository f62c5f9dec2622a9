"""Chunks of positions over real topics: streamed as one motion of class C4 within the limits."""

from __future__ import annotations

import time

import numpy as np
import pytest
from support.motion_limits import FRANKA, PANDA
from support.ros_harness import IS_BEFORE_KILTED, Harness, dict_of
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import inverse_dynamics
from hodyn_ros.resources import share_file

CHUNK = 'position_chunk'
HOME = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
NAMES = PANDA.joint_names
LIMITS = {
    f'limits.{joint}.{quantity}': value
    for joint, quantities in FRANKA.items()
    for quantity, value in quantities.items()
}


def task(t):
    """A smooth motion out of rest at home."""
    t = np.maximum(np.asarray(t, dtype=float), 0.0)[..., None]
    swing = np.sin(2.0 * t + np.arange(7)) - np.sin(np.arange(7))
    return HOME + 0.3 * (1.0 - np.exp(-(t**2))) * swing


def chunk_message(positions, stamp=0, period=None, names=NAMES):
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    for number, row in enumerate(np.atleast_2d(positions)):
        point = JointTrajectoryPoint(positions=row.tolist())
        if period is not None:
            ns = round(1e9 * period * number)
            point.time_from_start.sec, point.time_from_start.nanosec = divmod(ns, 10**9)
        message.points.append(point)
    return message


@pytest.fixture(scope='module')
def harness():
    made = Harness({'publish_rate': 500.0, **LIMITS})
    made.advertise(JointTrajectory, CHUNK)
    made.describe_and_wait(share_file('urdf/panda.urdf').read_text())
    yield made
    made.close()


@pytest.fixture
def at_home(harness):
    """The same, at rest at home."""
    harness.forget()
    way = chunk_message([HOME, HOME], period=0.01)
    for point in way.points:  # from wherever the last motion has ended
        point.time_from_start.sec += 1
    harness.publishers['joint_trajectory'].publish(way)
    harness.wait(lambda: harness.messages['hodyn_node/joint_effort'], 'way home')
    harness.settled()
    harness.forget()
    return harness


def counted(harness):
    """Chunks received, left out and refused, and why, when all have been planned."""
    harness.settled()
    harness.messages['/diagnostics'].clear()
    values = dict_of(harness.status(CHUNK, lambda status: True))
    if IS_BEFORE_KILTED and not values['left out'].isdigit():
        values['left out'] = '0'  # of chunks; what the middleware left out is not known
    return [int(values[key]) for key in ('received', 'left out', 'refused')]


def streamed(harness):
    """Times [s] and samples of the stream, (N, 3, 7): effort and its first two derivatives."""
    samples = harness.settled()
    stamps = [item.header.stamp for item in samples]
    stamps = np.array([stamp.sec * 10**9 + stamp.nanosec for stamp in stamps])
    fields = ('effort', 'effort_dot', 'effort_ddot')
    rows = np.array([[getattr(sample, field) for field in fields] for sample in samples])
    return 1e-9 * (stamps - stamps[0]), rows


def send(harness, rate, count, points, offset):
    """Send chunks of the task at a rate; return how many."""
    random, begin, first = np.random.default_rng(1), time.monotonic(), time.time_ns()
    for number in range(count):
        harness.wait(lambda due=begin + number / rate: time.monotonic() >= due, 'the time')
        stamp = time.time_ns()
        positions = task(1e-9 * (stamp - first) + 0.02 * np.arange(points))
        positions += 1e-3 * random.normal(size=positions.shape) + offset * random.normal(
            size=7
        )
        harness.publishers[CHUNK].publish(chunk_message(positions, stamp))
    # The last one bears no stamp, so that it is never too late.
    harness.publishers[CHUNK].publish(chunk_message(positions))
    return count + 1


@pytest.mark.parametrize(('rate', 'count'), [(60.0, 60), (20.0, 50)])
def test_no_replan_is_lost_and_the_torque_rate_keeps_its_limit(at_home, rate, count):
    before = counted(at_home)
    count = send(at_home, rate, count, 100, 5e-3)
    received, left_out, refused = np.subtract(counted(at_home), before)
    # A machine that is busy leaves some out, and one that stands still comes too late for some.
    known = received + left_out + refused
    assert known <= count if IS_BEFORE_KILTED else known == count
    assert received > 0
    reasons = dict_of(at_home.status(CHUNK, lambda status: True))['last error']
    assert not refused or 'send longer chunks' in reasons
    times, rows = streamed(at_home)
    assert np.abs(rows[:, 1]).max() < 1000.0
    assert np.abs(rows[-1, 1:]).max() < 1e-4
    # Nothing jumps at a splice: a sample follows from the one before.
    step = np.diff(times)[:, None]
    near = step[:, 0] < 0.003
    assert near.any()
    for order, tolerance in ((0, 2e-3), (1, 5e-2)):
        rise = 0.5 * step * (rows[:-1, order + 1] + rows[1:, order + 1])
        missed = np.abs(np.diff(rows[:, order], axis=0) - rise)[near]
        assert missed.max() < tolerance * np.abs(rows[:, order]).max()


def test_a_chunk_without_times_or_stamp_begins_where_it_is_joined(at_home):
    names = NAMES[::-1]
    goal = HOME + 0.05
    at_home.publishers[CHUNK].publish(chunk_message(goal[::-1], names=names))
    at_home.wait(lambda: at_home.messages['hodyn_node/joint_effort'], 'motion')
    samples = at_home.settled()
    still = np.zeros((3, 7))
    still[0] = goal
    np.testing.assert_allclose(
        samples[-1].effort, inverse_dynamics(PANDA, still)[0], atol=0.05
    )


def test_what_cannot_be_followed_is_refused_and_the_motion_goes_on(at_home):
    before = counted(at_home)
    # Without a stamp nothing of it is left out, however long a busy machine plans it, and it is so
    # long that it goes on when the others come.
    times = 0.02 * np.arange(300)
    at_home.publishers[CHUNK].publish(chunk_message(task(times)))
    samples = at_home.messages['hodyn_node/joint_effort']
    at_home.wait(lambda: len(samples) > 10, 'motion')
    refused = (
        (chunk_message(HOME[:-1], names=NAMES[:-1]), 'missing: panda_joint7'),
        (chunk_message(HOME + 4.0), 'whose limit is'),
        (chunk_message(HOME * np.nan), 'all values must be finite'),
        (chunk_message([HOME, HOME], stamp=10**9, period=0.1), 'send longer chunks'),
        (JointTrajectory(joint_names=NAMES), 'The chunk has no points; to stop'),
    )
    for number, (message, reason) in enumerate(refused, start=before[2] + 1):
        at_home.publishers[CHUNK].publish(message)
        status = at_home.status(CHUNK, lambda s, n=number: dict_of(s)['refused'] == str(n))
        assert reason in dict_of(status)['last error']
    assert list(np.subtract(counted(at_home), before)) == [1, 0, len(refused)]
    samples = at_home.settled()
    end = np.zeros((3, 7))
    end[0] = task(times[-1])
    np.testing.assert_allclose(
        samples[-1].effort, inverse_dynamics(PANDA, end)[0], atol=0.1
    )
