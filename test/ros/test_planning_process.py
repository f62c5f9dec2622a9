"""Trajectories and the service in a process of their own, on real middleware."""

from __future__ import annotations

import dataclasses
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from support import robots
from support.fault_tools import is_alive
from support.messages import EFFORTS, FIELDS, joint_trajectory, samples
from support.ros_harness import TIMEOUT, Harness, dict_of, next_domain
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.errors import MotionError
from hodyn_ros.model.limits import find_violations, motion_limits
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.nodes.hodyn_node import HodynNode
from hodyn_ros.ros.planner import answers, client, process
from hodyn_ros.ros.planner.answers import effort_trajectory
from hodyn_ros.ros.planner.messages import STARTED, Begin, Ready, Version
from hodyn_ros.ros.planner.process import GRACE, Planner
from hodyn_ros.streams.motion_stream import Task
from hodyn_ros.streams.robot import Robot
from hodyn_ros.trajectory.spline import fit_spline

URDF = Path(__file__).resolve().parents[2] / 'urdf'

Response = ComputeInverseDynamics.Response


@pytest.fixture(scope='module', autouse=True)
def started_as_users_do():
    """Nodes start a process, which is no fork of one of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, 'subprocess', subprocess)
        yield


@pytest.fixture(scope='module')
def harness(started_as_users_do):
    made = Harness()
    made.describe_and_wait(robots.TWO_LINK)
    yield made
    made.close()


def trajectory():
    return joint_trajectory(((0.0, 0.0), (0.2, -0.4), (0.0, 0.0)), (0.0, 1.0, 2.0))


def process_of(harness):
    return harness.node._planning._process


def call_again(harness):
    """Call the service until it answers: what is sent while there is none is lost.

    Of what is sent while it gets ready, so much may wait that it is busy.
    """
    response, deadline = None, time.monotonic() + TIMEOUT
    while response is None or response.error_code == Response.BUSY:
        assert time.monotonic() < deadline
        request = ComputeInverseDynamics.Request(trajectory=trajectory())
        future = harness.service.call_async(request)
        until = time.monotonic() + 0.2
        harness.wait(
            lambda f=future, u=until: f.done() or time.monotonic() > u, 'an answer'
        )
        response = future.result()
    return response


def check(message):
    """Whether the efforts are those of the motion in the message."""
    motion, effort = samples(message, FIELDS), samples(message)
    expected = inverse_dynamics(RobotModel.from_urdf(robots.TWO_LINK), motion)
    np.testing.assert_allclose(effort, expected, atol=1e-12 * np.abs(expected).max())


def test_trajectory_is_planned_there_and_streamed_here(harness):
    harness.forget()
    harness.publishers['joint_trajectory'].publish(trajectory())
    (whole,) = harness.received('effort_trajectory')
    check(whole)
    samples = harness.received('joint_effort', 5)[:5]
    start = whole.header.stamp.sec * 10**9 + whole.header.stamp.nanosec
    for sample in samples:
        # The same motion at the same instant, computed in another process.
        instant = sample.header.stamp.sec * 10**9 + sample.header.stamp.nanosec - start
        assert 0 <= instant <= 2 * 10**9
        asked = ComputeInverseDynamics.Request(
            trajectory=trajectory(), sample_times=[instant / 1e9]
        )
        offline = harness.call(asked).effort_trajectory
        check(offline)
        for name in EFFORTS:
            np.testing.assert_allclose(
                getattr(sample, name), getattr(offline, name), rtol=1e-9, atol=1e-8
            )


def test_bad_requests_and_trajectories_are_counted_here(harness):
    bad = trajectory()
    bad.points[1].positions = [1.0]
    response = harness.call(ComputeInverseDynamics.Request(trajectory=bad))
    assert (response.success, response.error_code) == (False, response.INVALID_MOTION)
    harness.publishers['joint_trajectory'].publish(bad)
    assert 'point 1 has 1 positions' in harness.refusal('joint_trajectory')
    assert 'point 1 has 1 positions' in harness.refusal('compute_inverse_dynamics')


def test_process_that_ends_is_started_again_with_the_robot_and_its_trajectory_refused(
    harness,
):
    before = process_of(harness)
    os.kill(before.pid, signal.SIGSTOP)  # so that what comes is not planned before the end
    harness.publishers['joint_trajectory'].publish(trajectory())
    waiting = 'waiting trajectories'
    harness.status('planning', lambda s: dict_of(s).get(waiting) == '1')
    before.kill()
    harness.refuses('joint_trajectory', 'has ended')
    harness.wait(lambda: process_of(harness).pid != before.pid, 'another process')
    harness.forget()
    assert call_again(harness).success
    harness.publishers['joint_trajectory'].publish(trajectory())
    check(harness.received('effort_trajectory')[0])
    status = harness.status('planning', lambda s: dict_of(s)['process'] == 'running')
    assert dict_of(status)['restarts'] == '1'
    assert '-9' in dict_of(status)['last exit']


def test_signals_are_for_the_node_alone_and_parameters_for_both(harness):
    before = process_of(harness)
    for number in (signal.SIGINT, signal.SIGTERM):
        before.send_signal(number)
        assert call_again(harness).success
    assert process_of(harness).pid == before.pid
    for _ in range(5):
        for period, count in ((0.5, 5), (0.01, 201)):
            assert harness.set(trajectory_sample_period=period).successful
            asked = ComputeInverseDynamics.Request(trajectory=trajectory())
            found = harness.call(asked).effort_trajectory
            assert len(found.time_from_start) == count


def test_process_that_still_imports_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr(client, '_START', 'import time; time.sleep(1000)')
    harness = Harness()
    harness.wait(lambda: process_of(harness), 'process')
    harness.close()
    assert process_of(harness).returncode == -signal.SIGTERM


def test_process_that_never_becomes_ready_is_started_again(monkeypatch, tmp_path):
    # The first one hangs, the second one says what raises ValueError.
    start, marks = client._START, (tmp_path / 'hung', tmp_path / 'cut')
    code = (
        'import os, sys, time\n'
        f'for mark, text in (({str(marks[0])!r}, b""), ({str(marks[1])!r}, b"\\x80\\x99")):\n'
        '    if not os.path.exists(mark):\n'
        '        open(mark, "w").close()\n'
        '        os.write(1, text)\n'
        '        time.sleep(0 if text else 1000)\n'
        '        os._exit(0)\n'
    )
    monkeypatch.setattr(client, '_START', code + start)
    monkeypatch.setattr(client, '_READY_TIME', 2.0)
    harness = Harness({'robot_description': robots.TWO_LINK})
    try:
        assert call_again(harness).success
        status = harness.status('planning', lambda s: dict_of(s)['process'] == 'running')
        # A busy machine may take longer than it is given for the third one, too.
        assert int(dict_of(status)['restarts']) >= 2
    finally:
        harness.close()


@pytest.mark.parametrize(
    ('last', 'why'),
    [
        ('os.close(1); time.sleep(0.2); os._exit(3)', 'ended with exit code 3.'),
        (
            'os.close(1); time.sleep(1000)',
            'closed its output and did not end; it was killed',
        ),
        ('os.write(1, b"text"); time.sleep(1000)', 'sent something that cannot be read'),
    ],
)
def test_the_end_of_the_process_is_told_as_it_was(monkeypatch, capfd, last, why):
    monkeypatch.setattr(client, '_START', f'import os, time; {last}')
    harness = Harness()
    try:
        assert why in harness.log(capfd, lambda text: 'is started again' in text)
    finally:
        harness.close()


def test_a_process_that_hangs_ends_with_a_node_that_is_killed():
    code = (
        'import pickle, subprocess, sys\n'
        'from hodyn_ros.ros.base.node_settings import NodeSettings\n'
        'from hodyn_ros.ros.planner import client\n'
        'from hodyn_ros.ros.planner.messages import Begin\n'
        'names = ("/a", "/r"), "/b"\n'
        f'begin = Begin("node", "/", {next_domain()}, "/", *names, (), NodeSettings())\n'
        'made = subprocess.Popen([sys.executable, "-c", client._START, *sys.path],\n'
        '    stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n'
        'made.stdin.write(pickle.dumps(("", (begin,))))\n'
        'made.stdin.flush()\n'
        'pickle.load(made.stdout)\n'
        'print(made.pid, flush=True)\n'
        'made.wait()\n'
    )
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, '-c', code], stdout=subprocess.PIPE, env=environment
    ) as node:
        pid = int(node.stdout.readline())
        os.kill(pid, signal.SIGSTOP)
        node.kill()
    deadline = time.monotonic() + TIMEOUT
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_process_that_hangs_is_reported_killed_and_its_trajectory_never_begins(capfd):
    harness = Harness({'robot_description': robots.TWO_LINK, 'trajectory_timeout': 2.0})
    try:
        assert call_again(harness).success
        harness.forget()
        before = process_of(harness)
        before.send_signal(signal.SIGSTOP)
        harness.publishers['joint_trajectory'].publish(trajectory())
        status = harness.status('planning', lambda s: 'does not answer' in s.message)
        assert status.level == status.ERROR
        assert dict_of(status)['process'] == 'silent'
        assert dict_of(status)['waiting trajectories'] == '1'
        assert 'has waited for 2' in harness.refusal('joint_trajectory')
        harness.wait(lambda: process_of(harness).pid != before.pid, 'another process')
        assert call_again(harness).success
        assert not harness.messages['hodyn_node/joint_effort']
        text = harness.log(capfd, lambda text: 'is running again' in text)
        for words in (
            'Planning does not answer since',
            'started again: it did not answer for',
        ):
            assert words in text
    finally:
        harness.close()


def test_first_start_is_no_restart_however_long_it_takes(monkeypatch):
    go_on = threading.Event()

    def start(*arguments, **options):
        assert go_on.wait(TIMEOUT)
        return subprocess.Popen(*arguments, **options)

    slow = SimpleNamespace(**{**vars(subprocess), 'Popen': start})
    monkeypatch.setattr(client, 'subprocess', slow)
    harness = Harness({'diagnostics_period': 0.05})
    try:
        for state in ('ended', 'starting'):
            found = harness.status(
                'planning', lambda s, p=state: dict_of(s)['process'] == p
            )
            assert dict_of(found)['restarts'] == '0'
            assert 'started again' not in found.message
            go_on.set()
    finally:
        go_on.set()
        harness.close()


def test_node_goes_on_while_a_stop_is_made_ready_for_a_controller(harness, monkeypatch):
    begun, go_on, make = threading.Event(), threading.Event(), client.planned_for_controller

    def late(*arguments):
        begun.set()
        assert go_on.wait(TIMEOUT)
        return make(*arguments)

    monkeypatch.setattr(client, 'planned_for_controller', late)
    harness.forget()
    harness.publishers['joint_trajectory'].publish(trajectory())
    harness.received('joint_effort', 2)
    harness.publishers['joint_trajectory'].publish(JointTrajectory())
    try:
        assert begun.wait(TIMEOUT)
        harness.forget()
        harness.received('joint_effort', 3)
    finally:
        go_on.set()


def test_process_that_is_sent_nonsense_ends():
    # Here at first there is a planner, whose threads are not to keep the process.
    begin = Begin('node', '/', next_domain(), '/', ('/a', '/r'), '/b', (), NodeSettings())
    with subprocess.Popen(
        [sys.executable, '-c', client._START, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(pickle.dumps(('', (begin,))))
        process.stdin.flush()
        assert pickle.load(process.stdout) == STARTED
        process.stdin.write(pickle.dumps(('plan', 1)))
        process.stdin.flush()
        assert process.wait(TIMEOUT) == 1
        assert b'Traceback' in process.stderr.read()


def test_process_is_in_the_enclave_of_the_node():
    context = Context()
    arguments = ['--ros-args', '--enclave', '/a/robot']
    rclpy.init(args=arguments, context=context, domain_id=next_domain())
    node = HodynNode(context=context)
    try:
        found, deadline = {}, time.monotonic() + TIMEOUT
        while 'hodyn_node_services' not in found:
            assert time.monotonic() < deadline
            time.sleep(0.02)
            graph = node.get_node_names_and_namespaces_with_enclaves()
            found = {name: enclave for name, _, enclave in graph}
        assert found == {'hodyn_node': '/a/robot', 'hodyn_node_services': '/a/robot'}
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


@pytest.fixture
def planner():
    """A planner in this process, a client of its service and what it reports."""
    domain, context, events = next_domain(), Context(), []
    rclpy.init(context=context, domain_id=domain)
    settings = NodeSettings(max_waiting_requests=3)
    names = ('/compute', '/retime'), '/efforts'
    begin = Begin('hodyn_node', '/', domain, '/', *names, (), settings)

    def report(event):
        if isinstance(event, Version):
            made.know(event.number)
        elif not isinstance(event, Ready):
            events.append(event)

    made = Planner(begin, report, context)
    client = Node('client', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(client)
    service = client.create_client(
        ComputeInverseDynamics, '/compute', qos_profile=QoSProfile(depth=100)
    )
    assert service.wait_for_service(TIMEOUT)

    def wait(condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            executor.spin_once(timeout_sec=0.02)
            assert time.monotonic() < deadline

    def use(urdf):
        made.use(urdf, False, settings, ())

    def call():
        request = ComputeInverseDynamics.Request(trajectory=trajectory())
        future = service.call_async(request)
        wait(future.done)
        return future.result()

    yield SimpleNamespace(
        planner=made,
        settings=settings,
        service=service,
        wait=wait,
        events=events,
        use=use,
        call=call,
    )
    made.close(GRACE)
    executor.shutdown()
    client.destroy_node()
    rclpy.shutdown(context=context)


def test_planning_that_takes_for_ever_does_not_keep_the_process(planner, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def make(*_):
        begun.set()
        go_on.wait()

    monkeypatch.setattr(process, 'robot_of', make)
    planner.use(robots.TWO_LINK)
    waiting = planner.service.call_async(
        ComputeInverseDynamics.Request(trajectory=trajectory())
    )
    assert begun.wait(TIMEOUT)
    closed = threading.Event()

    def close():
        planner.planner.close(GRACE)
        closed.set()

    closing = threading.Thread(target=close)
    closing.start()
    has_closed = closed.wait(TIMEOUT)
    go_on.set()
    closing.join()
    assert has_closed
    assert not waiting.done()


def test_all_that_was_taken_is_answered_before_the_end(planner, monkeypatch):
    begun, go_on, compute = threading.Event(), threading.Event(), answers.answer

    def late(*arguments):
        begun.set()
        assert go_on.wait(TIMEOUT)
        return compute(*arguments)

    planner.use(robots.TWO_LINK)
    monkeypatch.setattr('hodyn_ros.ros.planner.process.answer', late)
    request = ComputeInverseDynamics.Request(trajectory=trajectory())
    futures = [planner.service.call_async(request) for _ in range(3)]
    assert begun.wait(TIMEOUT)
    closing = threading.Thread(target=planner.planner.close, args=[TIMEOUT])
    closing.start()
    planner.wait(lambda: planner.planner._closed)
    go_on.set()
    closing.join()
    planner.wait(lambda: all(future.done() for future in futures))
    assert [future.result().success for future in futures] == [True, False, False]
    assert {future.result().message for future in futures[1:]} == {'The node ends.'}
    assert len(planner.events) == 3


def test_an_answer_that_cannot_be_sent_is_replaced(planner, monkeypatch):
    bad = ComputeInverseDynamics.Response(success=True)
    bad.effort_trajectory._joint_names = [1.5]
    monkeypatch.setattr('hodyn_ros.ros.planner.process.answer', lambda *_: bad)
    assert planner.call().error_code == ComputeInverseDynamics.Response.INTERNAL_ERROR
    planner.wait(lambda: planner.events)
    assert [event.kind for event in planner.events] == ['internal']


def test_requests_that_cannot_be_unpacked_do_not_silence_the_service(planner, monkeypatch):
    def unpack(*_):
        raise UnicodeDecodeError('utf-8', b'\xff', 0, 1, 'invalid start byte')

    request = ComputeInverseDynamics.Request(trajectory=trajectory())
    with monkeypatch.context() as patch:
        # What rclpy makes of the bytes that arrive.
        patch.setattr(
            'hodyn_msgs.srv._compute_inverse_dynamics.ComputeInverseDynamics_Request',
            unpack,
        )
        for _ in range(3):
            planner.service.call_async(request)
        planner.wait(lambda: len(planner.events) == 3)
    assert {event.error for event in planner.events} == {'The request cannot be unpacked.'}
    assert planner.call().error_code == ComputeInverseDynamics.Response.NO_MODEL


def test_a_robot_that_cannot_be_made_does_not_leave_the_one_before(planner, monkeypatch):
    def fail(*_):
        raise MemoryError

    planner.use(robots.TWO_LINK)
    assert planner.call().success
    monkeypatch.setattr(process, 'robot_of', fail)
    planner.use(robots.HEAVIER_TWO_LINK)
    assert planner.call().error_code == ComputeInverseDynamics.Response.NO_MODEL


def test_a_request_is_answered_with_the_robot_and_the_settings_of_one_moment(
    planner, monkeypatch
):
    class Changing(threading.Condition):
        """Lock behind which another description comes as soon as a request need not wait."""

        waits = 2

        def wait_for(self, *arguments):
            super().wait_for(*arguments)
            self.waits -= 1

        def __exit__(self, *error):
            super().__exit__(*error)
            if not self.waits:
                self.waits = -1
                planner.planner.use('', False, other, ())
                planner.planner._worker.submit(int).result()

    other = dataclasses.replace(planner.settings, trajectory_sample_period=0.5)
    planner.use(robots.TWO_LINK)
    assert len(planner.call().effort_trajectory.time_from_start) == 201
    monkeypatch.setattr(planner.planner, '_changed', Changing())
    response = planner.call()
    assert response.success, response.message
    assert len(response.effort_trajectory.time_from_start) == 201


def test_requests_do_not_wait_for_a_plan_because_settings_have_changed(
    planner, monkeypatch
):
    begun, go_on = threading.Event(), threading.Event()

    def plan(*_):
        begun.set()
        go_on.wait()
        raise MotionError('in vain')

    planner.use(robots.TWO_LINK)
    monkeypatch.setattr(process, 'plan_trajectory', plan)
    data = serialize_message(trajectory())
    planner.planner.plan(Task(1, data, 10**9, 10**9, None, 10**9))
    assert begun.wait(TIMEOUT)
    settings = dataclasses.replace(planner.settings, trajectory_sample_period=0.5)
    planner.planner.use(robots.TWO_LINK, False, settings, ())
    try:
        assert len(planner.call().effort_trajectory.time_from_start) == 5
    finally:
        go_on.set()


def test_requests_wait_for_the_robot_and_those_beyond_the_bound_are_refused_at_once(
    planner, monkeypatch
):
    go_on, make_robot = threading.Event(), process.robot_of

    def make(*arguments):
        assert go_on.wait(TIMEOUT)
        return make_robot(*arguments)

    planner.use(robots.TWO_LINK)
    assert planner.call().success
    planner.events.clear()
    monkeypatch.setattr(process, 'robot_of', make)
    planner.use(robots.HEAVIER_TWO_LINK)
    request = ComputeInverseDynamics.Request(trajectory=trajectory())
    futures = [planner.service.call_async(request) for _ in range(10)]
    planner.wait(lambda: sum(future.done() for future in futures) == 6)
    refused = [future.result() for future in futures if future.done()]
    assert {(answer.success, answer.error_code) for answer in refused} == {(False, 7)}
    assert all(answer.message.startswith('3 requests wait already') for answer in refused)
    go_on.set()
    planner.wait(lambda: all(future.done() for future in futures))
    answers = [future.result() for future in futures if future.result().success]
    assert len(answers) == 4  # one has its turn, three wait
    for answer in answers:
        q = np.reshape(answer.effort_trajectory.position, (-1, 2))[-1]
        expected = inverse_dynamics(
            RobotModel.from_urdf(robots.HEAVIER_TWO_LINK), np.array([q, 0 * q, 0 * q])
        )
        np.testing.assert_allclose(answer.effort_trajectory.effort[-2:], expected[0])
    planner.wait(lambda: len(planner.events) == 10)
    assert sorted(event.kind for event in planner.events if event.error) == ['busy'] * 6


def test_the_service_answers_what_fails_and_goes_on(planner, monkeypatch):
    error = SystemExit('a fault')

    def answer(*_):
        monkeypatch.undo()
        raise error

    planner.use(robots.TWO_LINK)
    monkeypatch.setattr('hodyn_ros.ros.planner.process.answer', answer)
    failed = planner.call()
    assert failed.error_code == ComputeInverseDynamics.Response.INTERNAL_ERROR
    assert failed.message == f'Internal error: {error!r}'
    assert planner.call().success


def test_limits_between_many_waypoints_are_found_with_little_memory():
    rng, N, n = np.random.default_rng(4), 5000, 7
    model = RobotModel.from_urdf(URDF / 'panda.urdf')
    curve = fit_spline(
        0.1 * np.arange(N), np.cumsum(rng.uniform(-0.05, 0.05, (N, n)), axis=0)
    )
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
        for found in find_violations(
            model, limits, motion, inverse_dynamics(model, motion)
        ):
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
        [sys.executable, '-m', 'hodyn_ros.ros.nodes.hodyn_node'],
        env=environment,
        stderr=subprocess.PIPE,
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
