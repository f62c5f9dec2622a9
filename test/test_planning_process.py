"""Trajectories and the service in a process of their own, on real middleware."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import rclpy
import robots
from builtin_interfaces.msg import Duration
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.context import Context
from rclpy.parameter import Parameter
from ros_harness import TIMEOUT, Harness, dict_of, next_domain
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis.limits import find_violations, motion_limits
from hodyn_ros.ros.answers import Robot, effort_trajectory
from hodyn_ros.ros.planning import Identity, Planning
from hodyn_ros.ros.planning_process import GRACE
from hodyn_ros.trajectory.spline import fit_spline

EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
URDF = Path(__file__).resolve().parent.parent / 'urdf'


@pytest.fixture(scope='module')
def harness():
    made = Harness({'planning_process': True})
    made.describe_and_wait(robots.TWO_LINK)
    yield made
    made.close()


def trajectory(seconds=1):
    message = JointTrajectory(joint_names=['shoulder', 'elbow'])
    for number in range(3):
        point = JointTrajectoryPoint(positions=[0.1 * number, -0.2 * number])
        point.time_from_start = Duration(sec=number * seconds)
        message.points.append(point)
    return message


def process_of(harness):
    return harness.node._planner._process


def call_again(harness):
    """Call the service until it answers: what is sent while there is none is lost."""
    response, deadline = None, time.monotonic() + TIMEOUT
    while response is None:
        assert time.monotonic() < deadline
        request = ComputeInverseDynamics.Request(trajectory=trajectory())
        future = harness.service.call_async(request)
        until = time.monotonic() + 1.0
        harness.wait(lambda f=future, u=until: f.done() or time.monotonic() > u, 'an answer')
        response = future.result()
    return response


def check(message):
    """Whether the efforts are those of the motion in the message."""
    shape = (-1, len(message.joint_names))
    motion = np.stack([np.reshape(getattr(message, name), shape) for name in FIELDS], axis=1)
    effort = np.stack([np.reshape(getattr(message, name), shape) for name in EFFORTS], axis=1)
    expected = inverse_dynamics(RobotModel.from_urdf(robots.TWO_LINK), motion)
    np.testing.assert_allclose(effort, expected, atol=1e-12 * np.abs(expected).max())


def test_trajectory_is_planned_there_and_streamed_here(harness):
    harness.forget()
    harness.publishers['joint_trajectory'].publish(trajectory())
    (whole,) = harness.received('effort_trajectory')
    check(whole)
    samples = harness.received('joint_effort', 10)
    start = whole.header.stamp.sec * 10**9 + whole.header.stamp.nanosec
    for sample in samples:
        # The same motion at the same instant, computed in another process.
        instant = sample.header.stamp.sec * 10**9 + sample.header.stamp.nanosec - start
        assert 0 <= instant <= 2 * 10**9
        asked = ComputeInverseDynamics.Request(
            trajectory=trajectory(), sample_times=[instant / 1e9]
        )
        offline = harness.call(asked).effort_trajectory
        for name in EFFORTS:
            np.testing.assert_allclose(
                getattr(sample, name), getattr(offline, name), rtol=1e-9, atol=1e-8
            )


def test_service_is_answered_there(harness):
    response = harness.call(ComputeInverseDynamics.Request(trajectory=trajectory()))
    assert response.success
    check(response.effort_trajectory)


def test_bad_requests_and_trajectories_are_counted_here(harness):
    bad = trajectory()
    bad.points[1].positions = [1.0]
    response = harness.call(ComputeInverseDynamics.Request(trajectory=bad))
    assert (response.success, response.error_code) == (False, response.INVALID_MOTION)
    harness.publishers['joint_trajectory'].publish(bad)
    assert 'point 1 has 1 positions' in harness.refusal('joint_trajectory')
    assert 'point 1 has 1 positions' in harness.refusal('compute_inverse_dynamics')


def test_process_that_ends_is_started_again_with_the_robot(harness):
    before = process_of(harness)
    before.kill()
    harness.wait(lambda: process_of(harness).pid != before.pid, 'another process')
    harness.forget()
    assert call_again(harness).success
    harness.publishers['joint_trajectory'].publish(trajectory())
    check(harness.received('effort_trajectory')[0])
    status = harness.status('planning', lambda s: dict_of(s)['process'] == 'running')
    assert dict_of(status)['restarts'] == '1'
    assert '-9' in dict_of(status)['last exit']


def test_trajectory_that_the_process_dies_of_is_refused(harness):
    before = process_of(harness)
    os.kill(before.pid, signal.SIGSTOP)  # so that it cannot be planned before the end
    harness.publishers['joint_trajectory'].publish(trajectory())
    harness.wait(lambda: harness.node._trajectories._open is not None, 'the trajectory')
    before.kill()
    harness.status(
        'joint_trajectory', lambda s: 'has ended' in dict_of(s)['last error']
    )
    harness.wait(lambda: process_of(harness).pid != before.pid, 'another process')
    assert call_again(harness).success


def test_interrupt_is_for_the_node_alone(harness):
    before = process_of(harness)
    before.send_signal(signal.SIGINT)
    assert call_again(harness).success
    assert process_of(harness).pid == before.pid


def test_changed_parameters_hold_there_too(harness):
    def call():
        return harness.call(ComputeInverseDynamics.Request(trajectory=trajectory()))

    assert len(call().effort_trajectory.time_from_start) == 201
    harness.node.set_parameters([Parameter('trajectory_sample_period', value=0.5)])
    try:
        assert len(call().effort_trajectory.time_from_start) == 5
    finally:
        harness.node.set_parameters([Parameter('trajectory_sample_period', value=0.01)])


def test_process_ends_with_the_node():
    harness = Harness({'planning_process': True})
    process = process_of(harness)
    harness.close()
    assert process.returncode == 0


def test_planning_that_takes_for_ever_does_not_keep_the_process():
    begun, go_on, domain = threading.Event(), threading.Event(), next_domain()

    def prepare(model):
        begun.set()
        go_on.wait()

    context = Context()
    rclpy.init(context=context, domain_id=domain)
    identity = Identity('hodyn_node', '/', domain, '/compute', '/efforts', ())
    planning = Planning(identity, context, None, lambda event: None, prepare, None, lambda: None)
    model = RobotModel.from_urdf(robots.TWO_LINK)
    planning.set_robot(Robot(model, motion_limits(model), robots.TWO_LINK), False)
    assert begun.wait(TIMEOUT)
    closed = threading.Event()

    def close():
        planning.close(GRACE)
        closed.set()

    closing = threading.Thread(target=close)
    closing.start()
    has_closed = closed.wait(TIMEOUT)
    go_on.set()
    closing.join()
    rclpy.shutdown(context=context)
    assert has_closed


def test_limits_between_many_waypoints_are_found_with_little_memory():
    rng, N, n = np.random.default_rng(4), 5000, 7
    model = RobotModel.from_urdf(URDF / 'panda.urdf')
    curve = fit_spline(0.1 * np.arange(N), np.cumsum(rng.uniform(-0.05, 0.05, (N, n)), axis=0))
    times = curve.times[::100]
    limits = motion_limits(model, {'panda_joint2': {'jerk': 1.0, 'effort_dot': 0.1}})
    robot = Robot(model, limits, '')
    tracemalloc.start()
    try:
        whole = effort_trajectory(robot, times, curve(times), (), 0, 1, curve)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Motion and efforts at the 80,000 places alone have 36 MB.
    assert peak < 36_000_000
    looks = (curve.times[:-1, None] + 0.1 * (np.arange(16) + 0.5) / 16).reshape(-1)
    expected = {}
    for t in (times, looks):
        motion = curve(t)
        for found in find_violations(model, limits, motion, inverse_dynamics(model, motion)):
            before = expected.get((found.joint_name, found.quantity), (0.0, 0.0))
            expected[found.joint_name, found.quantity] = max(
                before, (abs(found.value), t[found.sample])
            )
    assert len(expected) > 5
    actual = {
        (item.joint_name, item.quantity): (abs(item.value), item.time_from_start)
        for item in whole.limit_violations
        if item.quantity != 'position'
    }
    assert len(actual) == len([key for key in expected if key[1] != 'position'])
    for key, values in actual.items():
        np.testing.assert_allclose(values, expected[key], rtol=1e-9)


def test_process_ends_when_the_node_is_killed():
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(next_domain())}
    node = subprocess.Popen(
        [sys.executable, '-m', 'hodyn_ros.ros.node'], env=environment, stderr=subprocess.PIPE
    )
    children = Path(f'/proc/{node.pid}/task/{node.pid}')
    try:
        child = None
        while child is None:
            assert node.poll() is None
            for task in children.parent.glob('*/children'):
                child = next(iter(task.read_text().split()), child)
        pid = os.pidfd_open(int(child))
    finally:
        node.kill()
        node.wait()
        node.stderr.close()
    readable, _, _ = select.select([pid], [], [], 20.0)
    os.close(pid)
    assert readable


def test_request_waits_for_the_robot_that_is_in_use_already():
    made = Harness()
    try:
        made.describe_and_wait(robots.TWO_LINK)
        go_on = threading.Event()
        made.node._planner._prepare = lambda model: go_on.wait(TIMEOUT)
        made.describe_and_wait(robots.HEAVIER_TWO_LINK)
        future = made.service.call_async(ComputeInverseDynamics.Request(trajectory=trajectory()))
        for _ in range(10):  # time for a wrong answer
            time.sleep(0.02)
        assert not future.done()
        go_on.set()
        made.wait(future.done, 'answer')
        answer = future.result().effort_trajectory
        q = np.reshape(answer.position, (-1, 2))[-1]
        expected = inverse_dynamics(
            RobotModel.from_urdf(robots.HEAVIER_TWO_LINK), np.array([q, 0 * q, 0 * q])
        )
        np.testing.assert_allclose(answer.effort[-2:], expected[0])
    finally:
        made.close()
