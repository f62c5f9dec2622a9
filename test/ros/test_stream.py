"""The stream of a trajectory beside the offline answer and beside its own differences."""

from __future__ import annotations

import numpy as np
import pytest
from support import robots
from support.ros_harness import Harness
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
STENCIL = 9  # samples through which a polynomial is laid


def waypoints(names, count, period, kinds=('positions',), sign=1.0):
    """Trajectory along sinusoids that start and end slowly, from 0.3 or -0.3 on."""
    message = JointTrajectory(joint_names=list(names))
    phase = np.arange(len(names))
    for number in range(count):
        time = number * period
        x = np.pi * number / (count - 1)
        point = JointTrajectoryPoint(
            positions=(sign * 0.3 * np.cos(x + 0 * phase)).tolist()
        )
        if 'velocities' in kinds:
            rate = np.pi / (period * (count - 1))
            point.velocities = (-sign * 0.3 * rate * np.sin(x + 0 * phase)).tolist()
        nanoseconds = round(time * 1e9)
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(
            nanoseconds, 10**9
        )
        message.points.append(point)
    return message


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def efforts_of(message):
    return np.array([getattr(message, name) for name in EFFORTS])


def streamed(harness, message, after=()):
    """Publish a trajectory and return its stream up to the end."""
    harness.forget()
    harness.publishers['joint_trajectory'].publish(message)
    whole = harness.received('effort_trajectory')[0]
    for publish in after:
        publish()
    last = harness.received('effort_trajectory', 1 + len(after))[-1]
    end = stamp_of(last) + round(last.time_from_start[-1] * 1e9)
    samples = harness.messages['hodyn_node/joint_effort']
    harness.wait(lambda: samples and stamp_of(samples[-1]) == end, 'the end of the stream')
    return whole, samples


def differences(times, values, order):
    """Derivative in the middle of the polynomials through neighbouring samples.

    Parameters
    ----------
    times : ndarray, shape (N,)
    values : ndarray, shape (N, n)
    order : int

    Returns
    -------
    ndarray, shape (N - STENCIL + 1, n)
    """
    found = []
    for first in range(len(times) - STENCIL + 1):
        part = slice(first, first + STENCIL)
        middle = times[first + STENCIL // 2]
        x = times[part] - middle
        scale = np.abs(x).max()
        polynomials = np.polynomial.polynomial.polyfit(x / scale, values[part], STENCIL - 1)
        found.append(polynomials[order] * max(order, 1) / scale**order)
    return np.array(found)


@pytest.fixture(scope='module')
def shared_harness():
    made = Harness({'publish_rate': 100.0})
    yield made
    made.close()


@pytest.fixture
def harness(shared_harness):
    """Node with the two-link arm that does not know where it is."""
    shared_harness.describe_and_wait(robots.OTHER_JOINTS)
    shared_harness.describe_and_wait(robots.TWO_LINK)
    return shared_harness


def test_derivatives_in_the_stream_are_those_of_the_efforts_in_it(harness):
    _, samples = streamed(harness, waypoints(['shoulder', 'elbow'], 9, 0.75))
    check_differences(samples)


def test_derivatives_fit_across_a_replacement_and_a_stop(harness):
    """The motion is replaced while it goes on, and then stopped while it goes on."""
    names = ['shoulder', 'elbow']

    def replace():
        harness.received('joint_effort', 50)
        message = waypoints(names, 9, 1.0, sign=-1.0)
        for point in message.points:
            point.positions = [position + 0.2 for position in point.positions]
        harness.publishers['joint_trajectory'].publish(message)
        harness.received('effort_trajectory', 2)

    def stop():
        harness.received('joint_effort', 120)
        harness.publishers['joint_trajectory'].publish(JointTrajectory())

    harness.set(stop_duration=1.0)
    try:
        # Both motions are so long that what follows them joins them on the way, however long it is
        # planned.
        _, samples = streamed(harness, waypoints(names, 9, 1.0), (replace, stop))
        joins = [
            stamp_of(whole) + round(whole.time_from_start[0] * 1e9)
            for whole in harness.messages['hodyn_node/effort_trajectory'][1:]
        ]
        assert len(joins) == 2
        check_differences(samples, joins)
    finally:
        harness.set(stop_duration=0.5)


def check_differences(samples, joins=()):
    """Whether derivatives of the effort are those of the polynomials through the effort.

    At the joins the fifth derivative of the motion jumps, which polynomials do not. There the
    efforts must be continued by their own derivatives.
    """
    stamps = np.array([stamp_of(sample) for sample in samples])
    times = (stamps - stamps[0]) / 1e9
    values = np.array([efforts_of(sample) for sample in samples])
    # Where the machine has paused, the polynomials are not those of neighbours. The motions are so
    # slow that those of a busy machine, which leaves samples out, are still near.
    first, last = stamps[: 1 - STENCIL], stamps[STENCIL - 1 :]
    near = last - first < 0.4e9
    for join in joins:
        near &= (last < join) | (first > join)
    assert near.sum() > 60
    middle = slice(STENCIL // 2, len(times) - STENCIL // 2)
    for lower in (0, 1):
        expected = differences(times, values[:, lower], 1)
        actual = values[middle, lower + 1]
        assert np.abs(actual - expected)[near].max() < 1e-4 * np.abs(actual).max()
    second = differences(times, values[:, 0], 2)
    error = np.abs(values[middle, 2] - second)[near].max()
    assert error < 1e-3 * np.abs(values[middle, 2]).max()

    h = np.diff(times)[:, None]
    Q, Qd, Q2d = np.moveaxis(values, 1, 0)
    third = 5.0 * np.abs(np.diff(Q2d, axis=0) / h).max()
    assert np.all(np.abs(np.diff(Qd, axis=0) - h * Q2d[:-1]) < third * h**2)
    step = h * Qd[:-1] + 0.5 * h**2 * Q2d[:-1]
    assert np.all(np.abs(np.diff(Q, axis=0) - step) < third * h**3)


def test_changed_rate_holds_at_once(harness):
    harness.forget()
    assert harness.set(publish_rate=0.01).successful
    message = waypoints(['shoulder', 'elbow'], 5, 5.0)
    harness.publishers['joint_trajectory'].publish(message)
    harness.received('effort_trajectory')
    assert harness.set(publish_rate=100.0).successful
    harness.received('joint_effort', 10)
