"""Goals of a planner on their way through the proxy to a controller, on real middleware."""

import math
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.srv import RetimeTrajectory
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger
from support.processes import run_python
from support.ros_harness import TIMEOUT, Harness, dict_of, spin_to_end
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.resources import share_file
from hodyn_ros.ros.base.executor import StreamExecutor
from hodyn_ros.streams.goals import SILENCE

try:
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTolerance
except ImportError:
    FollowJointTrajectory = None
needs_control_msgs = pytest.mark.skipif(
    FollowJointTrajectory is None,
    reason='control_msgs is not installed, which is in no registry',
)

NAMES = ['elbow', 'shoulder']
FIELDS = ('positions', 'velocities', 'accelerations', 'effort')


class Controller:
    """What joint_trajectory_controller is for its clients: an action that takes its time."""

    def __init__(self, context, namespace):
        self.goals, self.handles, self.mode = [], [], 'succeed'
        self.go_on = threading.Event()
        self._current = None
        self._lock = threading.Lock()
        self.node = Node(
            'joint_trajectory_controller', context=context, namespace=namespace
        )
        self.server = ActionServer(
            self.node,
            FollowJointTrajectory,
            '~/follow_joint_trajectory',
            self.execute,
            callback_group=ReentrantCallbackGroup(),
            goal_callback=self.take,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )
        self.executor = MultiThreadedExecutor(4, context=context)
        self.executor.add_node(self.node)
        self.thread = threading.Thread(
            target=spin_to_end, args=(self.executor,), daemon=True
        )
        self.thread.start()

    def take(self, goal):
        self.goals.append(goal)
        has_efforts = any(len(point.effort) for point in goal.trajectory.points)
        rejects = self.mode == 'reject' or self.mode == 'positions only' and has_efforts
        return GoalResponse.REJECT if rejects else GoalResponse.ACCEPT

    def execute(self, handle):
        result = FollowJointTrajectory.Result()
        with self._lock:
            self._current = handle
            self.handles.append(handle)
        for number in range(3):
            handle.publish_feedback(feedback(handle.request.trajectory, number))
        if self.mode == 'abort':
            result.error_code, result.error_string = (
                result.PATH_TOLERANCE_VIOLATED,
                'elbow: 0.1',
            )
            handle.abort()
            return result
        while not self.go_on.wait(0.02):
            if self.mode != 'silent':
                handle.publish_feedback(feedback(handle.request.trajectory, 2))
            if handle.is_cancel_requested:
                result.error_string = 'held'
                handle.canceled()
                return result
            if self._current is not handle:  # a newer one has come
                result.error_code, result.error_string = (
                    result.INVALID_GOAL,
                    'new incoming action',
                )
                handle.abort()
                return result
        result.error_string = 'arrived'
        handle.succeed()
        return result

    def close(self):
        self.go_on.set()
        self.executor.shutdown()
        self.thread.join(TIMEOUT)
        self.destroy()
        self.node.destroy_node()

    def destroy(self):
        if self.server is not None:
            self.server.destroy()
            self.server = None


def feedback(trajectory, number):
    message = FollowJointTrajectory.Feedback(
        joint_names=trajectory.joint_names, index=number
    )
    message.desired = trajectory.points[number]
    return message


def goal(points=((0.0, 0.0), (0.5, 0.4), (0.2, 0.9)), names=NAMES, step=1.0):
    """As MoveIt sends it: positions, velocities and accelerations, and tolerances."""
    made = FollowJointTrajectory.Goal(trajectory=JointTrajectory(joint_names=names))
    made.trajectory.header.frame_id = 'world'
    for number, positions in enumerate(points):
        zeros = [0.0] * len(positions) if number in (0, len(points) - 1) else []
        point = JointTrajectoryPoint(
            positions=positions, velocities=zeros, accelerations=zeros
        )
        nanosec = round(1e9 * step * number)
        point.time_from_start = Duration(sec=nanosec // 10**9, nanosec=nanosec % 10**9)
        made.trajectory.points.append(point)
    made.path_tolerance = [JointTolerance(name='elbow', position=0.2, velocity=-1.0)]
    made.goal_tolerance = [JointTolerance(name='shoulder', acceleration=3.0)]
    made.goal_time_tolerance = Duration(sec=1, nanosec=5)
    made.multi_dof_trajectory.joint_names = ['base']
    return made


@pytest.fixture(scope='module')
def harness():
    made = Harness({'limits.shoulder.effort_dot': 900.0})
    made.describe_and_wait(share_file('urdf/two_link.urdf').read_text())
    yield made
    made.close()


@pytest.fixture
def controller(harness):
    made = Controller(harness.context, harness.namespace)
    yield made
    made.close()


@pytest.fixture
def start(harness):
    """Start a proxy with parameters; returns it and a function that sends goals."""
    from hodyn_ros.ros.nodes.trajectory_proxy import TrajectoryProxy

    made = []

    def start(**parameters):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        node = TrajectoryProxy(
            context=harness.context,
            namespace=harness.namespace,
            parameter_overrides=overrides,
        )
        executor = StreamExecutor(context=harness.context)
        executor.add_node(node)
        thread = threading.Thread(target=spin_to_end, args=(executor,), daemon=True)
        thread.start()
        name = node.resolve_service_name(node.settings.action)
        client = ActionClient(harness.client, FollowJointTrajectory, name)
        made.append((node, executor, thread, client))
        assert client.wait_for_server(TIMEOUT)

        def send(given):
            sent = SimpleNamespace(feedback=[])
            future = client.send_goal_async(
                given, lambda message: sent.feedback.append(message.feedback)
            )
            sent.handle = harness.wait(
                lambda: future.done() and future.result(), 'acceptance'
            )
            assert sent.handle.accepted
            sent.outcome = sent.handle.get_result_async()
            return sent

        return node, send

    yield start
    for node, executor, thread, client in made:
        executor.shutdown()
        thread.join(TIMEOUT)
        client.destroy()
        node.destroy_node()


def outcome(harness, sent):
    harness.wait(sent.outcome.done, 'result')
    response = sent.outcome.result()
    return response.status, response.result.error_code, response.result.error_string


def wait_for_controller(harness, node):
    harness.wait(node._controller.server_is_ready, 'controller')
    harness.wait(node._retime.service_is_ready, 'service')


def rows(trajectory):
    times = [
        p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in trajectory.points
    ]
    return times, [[list(getattr(p, name)) for name in FIELDS] for p in trajectory.points]


SUCCEEDED = GoalStatus.STATUS_SUCCEEDED
ABORTED, CANCELED = GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_CANCELED


@needs_control_msgs
@pytest.mark.parametrize('timing', ['path', 'uniform'])
@pytest.mark.parametrize('efforts', [True, False])
def test_goal_is_retimed_and_all_else_goes_through(
    harness, controller, start, timing, efforts
):
    node, send = start(timing=timing, efforts=efforts, slower_only=False)
    wait_for_controller(harness, node)
    sent = send(goal())
    harness.wait(lambda: len(sent.feedback) >= 3, 'feedback')
    assert not sent.outcome.done()
    controller.go_on.set()
    assert outcome(harness, sent) == (SUCCEEDED, 0, 'arrived')
    (received,), given = controller.goals, goal()
    assert [item.index for item in sent.feedback][:3] == [0, 1, 2]
    assert sent.feedback[2].desired == received.trajectory.points[2]

    client = harness.client.create_client(RetimeTrajectory, 'hodyn_node/retime')
    assert client.wait_for_service(TIMEOUT)
    request = RetimeTrajectory.Request(trajectory=given.trajectory)
    request.timing = request.UNIFORM if timing == 'uniform' else request.PATH
    future = client.call_async(request)
    harness.wait(future.done, 'response')
    expected = future.result().trajectory
    times, values = rows(received.trajectory)
    expected_times, expected_values = rows(expected)
    if not efforts:
        assert {tuple(point[3]) for point in values} == {()}
        values, expected_values = (
            [p[:3] for p in points] for points in (values, expected_values)
        )
    np.testing.assert_allclose(times, expected_times, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(values, expected_values, rtol=1e-9, atol=1e-9)
    assert times[-1] < 2.0
    received.trajectory = given.trajectory
    assert received == given


@needs_control_msgs
def test_timing_follows_the_parameters(harness, controller, start):
    controller.go_on.set()
    node, send = start()
    wait_for_controller(harness, node)
    assert outcome(harness, send(goal()))[0] == SUCCEEDED
    assert rows(controller.goals[-1].trajectory)[0][-1] == 2.0
    pausing = goal(((0.0, 0.0), (0.5, 0.4), (0.5, 0.4), (0.5, 0.4), (0.0, 0.0)))
    node.set_parameters([Parameter('slower_only', value=False)])
    ends = []
    for drop in (False, True):
        node.set_parameters([Parameter('drop_standstills', value=drop)])
        assert outcome(harness, send(pausing))[0] == SUCCEEDED
        ends.append(rows(controller.goals[-1].trajectory)[0][-1])
    assert ends[1] < ends[0]


@needs_control_msgs
def test_slow_goal_keeps_its_time_unless_it_is_asked_to_be_fast(harness, controller, start):
    controller.go_on.set()
    node, send = start()
    wait_for_controller(harness, node)
    slow = goal(step=10.0)
    assert outcome(harness, send(slow))[0] == SUCCEEDED
    assert rows(controller.goals[-1].trajectory)[0][-1] == 20.0
    node.set_parameters([Parameter('slower_only', value=False)])
    assert outcome(harness, send(slow))[0] == SUCCEEDED
    assert rows(controller.goals[-1].trajectory)[0][-1] < 5.0


@needs_control_msgs
def test_controller_without_effort_interfaces_gets_goals_without_efforts(
    harness, controller, start
):
    controller.mode = 'positions only'
    controller.go_on.set()
    node, send = start()
    wait_for_controller(harness, node)
    for _ in range(2):
        assert outcome(harness, send(goal())) == (SUCCEEDED, 0, 'arrived')
    with_efforts = [len(g.trajectory.points[0].effort) > 0 for g in controller.goals]
    assert with_efforts == [True, False, False]  # it is found out once
    assert dict_of(node.statuses()[0])['efforts'] == 'not sent'


@needs_control_msgs
def test_cancelling_reaches_the_controller(harness, controller, start):
    node, send = start()
    wait_for_controller(harness, node)
    sent = send(goal())
    harness.wait(lambda: len(sent.feedback) >= 3, 'feedback')
    cancelling = sent.handle.cancel_goal_async()
    harness.wait(cancelling.done, 'cancellation')
    assert len(cancelling.result().goals_canceling) == 1
    assert outcome(harness, sent) == (CANCELED, 0, 'held')
    assert controller.handles[0].status == CANCELED


@needs_control_msgs
def test_newer_goal_takes_the_place_of_the_one_before(harness, controller, start):
    node, send = start()
    wait_for_controller(harness, node)
    first = send(goal())
    harness.wait(lambda: len(first.feedback) >= 3, 'feedback')
    refused = send(goal(points=((0.0, 0.0), (0.0, 90.0))))  # does not disturb it
    assert outcome(harness, refused)[0] == ABORTED
    assert not first.outcome.done()
    second = send(goal())
    invalid = FollowJointTrajectory.Result.INVALID_GOAL
    assert outcome(harness, first) == (ABORTED, invalid, 'Replaced by a newer goal.')
    controller.go_on.set()
    assert outcome(harness, second) == (SUCCEEDED, 0, 'arrived')


@needs_control_msgs
def test_goal_that_no_timing_saves_is_aborted_and_says_why(harness, controller, start):
    node, send = start()
    wait_for_controller(harness, node)
    for given, code, said in (
        ({'points': ()}, 'INVALID_GOAL', 'it has no points'),
        ({'names': ['elbow', 'wrist']}, 'INVALID_JOINTS', 'unknown: wrist'),
        (
            {'names': ['elbow'], 'points': ((0.0,), (1.0,))},
            'INVALID_JOINTS',
            'missing: shoulder',
        ),
        (
            {'points': ((0.0, 0.0), (0.0, 90.0))},
            'INVALID_GOAL',
            "'shoulder' has the position",
        ),
        ({'points': ((0.0, 0.0), (0.0, math.nan))}, 'INVALID_GOAL', 'finite'),
        ({'step': 0.0}, 'INVALID_GOAL', 'increas'),
    ):
        status, number, text = outcome(harness, send(goal(**given)))
        assert (status, number) == (ABORTED, getattr(FollowJointTrajectory.Result, code))
        assert text.startswith('The trajectory cannot be retimed: ') and said in text
    assert not controller.goals


@needs_control_msgs
def test_result_of_a_controller_that_aborts_goes_through(harness, controller, start):
    controller.mode = 'abort'
    node, send = start()
    wait_for_controller(harness, node)
    violated = FollowJointTrajectory.Result.PATH_TOLERANCE_VIOLATED
    assert outcome(harness, send(goal())) == (ABORTED, violated, 'elbow: 0.1')


@needs_control_msgs
@pytest.mark.parametrize('efforts', [True, False])
def test_controller_that_rejects_is_named(harness, controller, start, efforts):
    controller.mode = 'reject'
    node, send = start(efforts=efforts)
    wait_for_controller(harness, node)
    status, code, text = outcome(harness, send(goal()))
    assert (status, code) == (ABORTED, FollowJointTrajectory.Result.INVALID_GOAL)
    assert (
        'joint_trajectory_controller/follow_joint_trajectory has rejected the goal' in text
    )
    assert ('also without efforts' in text) == efforts
    assert len(controller.goals) == 1 + efforts
    status = node.statuses()[0]
    assert (status.level, text in status.message) == (DiagnosticStatus.WARN, True)
    controller.mode = 'succeed'
    controller.go_on.set()
    assert outcome(harness, send(goal()))[0] == SUCCEEDED
    assert node.statuses()[0].level == DiagnosticStatus.OK


@needs_control_msgs
def test_controller_that_is_not_there_or_goes_is_named(harness, controller, start):
    harness.forget()  # what others of this name have said
    node, send = start(controller='other_controller')
    status, code, text = outcome(harness, send(goal()))
    assert (status, code) == (ABORTED, FollowJointTrajectory.Result.INVALID_GOAL)
    assert 'other_controller/follow_joint_trajectory is not there' in text
    name = f'{harness.namespace}/trajectory_proxy: goals'

    def warned():
        statuses = [s for m in harness.messages['/diagnostics'] for s in m.status]
        return [s for s in statuses if s.name == name and dict_of(s)['abort'] == '1']

    status = harness.wait(warned, 'diagnostics')[-1]
    assert 'other_controller' in status.message
    assert dict_of(status)['last error'] == text


@needs_control_msgs
def test_controller_that_goes_while_it_executes_is_noticed(harness, controller, start):
    node, send = start()
    wait_for_controller(harness, node)
    sent = send(goal())
    harness.wait(lambda: len(sent.feedback) >= 3, 'feedback')
    controller.executor.remove_node(controller.node)
    controller.destroy()
    assert 'is not there' in outcome(harness, sent)[2]


@needs_control_msgs
def test_controller_that_falls_silent_does_not_carry_an_aborted_goal_on(
    harness, controller, start
):
    controller.mode = 'silent'
    node, send = start()
    wait_for_controller(harness, node)
    assert 'has not told for' in outcome(harness, send(goal()))[2]
    harness.wait(lambda: controller.handles[0].status == CANCELED, 'cancellation')


@needs_control_msgs
def test_way_to_the_first_waypoint_keeps_its_time(harness, controller, start):
    controller.go_on.set()
    node, send = start()
    wait_for_controller(harness, node)
    given = goal()
    for point in given.trajectory.points:
        point.time_from_start.sec += 1
        point.time_from_start.nanosec += 500_000_000
    assert outcome(harness, send(given))[0] == SUCCEEDED
    assert rows(controller.goals[-1].trajectory)[0][0] == 1.5


@needs_control_msgs
def test_service_that_is_not_there_or_does_not_answer_is_named(harness, controller, start):
    node, send = start(retime_service='nobody/retime')
    harness.wait(node._controller.server_is_ready, 'controller')
    text = outcome(harness, send(goal()))[2]
    assert 'nobody/retime is not there: is hodyn_node running?' in text
    silent = harness.client.create_service(
        RetimeTrajectory, 'silent/retime', lambda request, response: response
    )
    silent.send_response = lambda *_: None
    node, send = start(retime_service='silent/retime', retime_timeout=0.5, action='~/other')
    wait_for_controller(harness, node)
    text = outcome(harness, send(goal()))[2]
    assert 'silent/retime has not answered within 0.5 s' in text
    harness.client.destroy_service(silent)


@needs_control_msgs
@pytest.mark.parametrize(
    ('answers', 'said'),
    [
        (
            [(True, '41'), (True, '42')],
            'has ended while it retimed the goal; send it again',
        ),
        ([(False, 'planning does not answer since 3.0 s')], 'does not answer since 3.0 s'),
    ],
    ids=['another process', 'hangs'],
)
def test_health_of_the_service_is_asked_of_a_service_beside_it(
    harness, controller, start, answers, said
):
    waiting = iter(answers)

    def tell(_, response):
        response.success, response.message = next(waiting, answers[-1])
        return response

    silent = harness.client.create_service(
        RetimeTrajectory, 'mute/retime', lambda request, response: response
    )
    silent.send_response = lambda *_: None
    health = harness.client.create_service(Trigger, 'mute/retime/health', tell)
    node, send = start(retime_service='mute/retime', retime_timeout=3.0, action='~/health')
    wait_for_controller(harness, node)
    assert said in outcome(harness, send(goal()))[2]
    for service in (silent, health):
        harness.client.destroy_service(service)


class Retimer:
    """A service that retimes, and that of its health: answers, or is silent as if it were dead."""

    def __init__(self, harness, name):
        self.harness, self.asked, self.health, self.pid = harness, [], [], '41'
        self.answers = self.is_healthy = True
        service = harness.client.create_service(RetimeTrajectory, name, self.retime)
        health = harness.client.create_service(Trigger, f'{name}/health', self.tell)
        self.services, self.send = (service, health), service.send_response
        self.say = health.send_response
        service.send_response = lambda *given: self.answers and self.send(*given)
        health.send_response = lambda *given: self.is_healthy and self.say(*given)

    def retime(self, request, response):
        self.asked.append(request)
        response.success, response.trajectory = True, request.trajectory
        return response

    def tell(self, _, response):
        self.health.append(self.pid)
        response.success, response.message = True, self.pid
        return response

    def close(self):
        for service in self.services:
            self.harness.client.destroy_service(service)


@pytest.fixture
def retimer(harness):
    made = Retimer(harness, 'other/retime')
    yield made
    made.close()


@needs_control_msgs
def test_goal_sent_while_a_killed_planner_is_still_listed_is_retimed_by_the_next_one(
    harness, controller, start, retimer
):
    controller.go_on.set()
    retimer.answers = False
    node, send = start(retime_service='other/retime', action='~/killed')
    wait_for_controller(harness, node)
    first = send(goal())
    harness.wait(lambda: retimer.health, 'question')
    retimer.pid = '42'
    assert 'send it again' in outcome(harness, first)[2]
    again = send(goal())  # at once, as it says
    harness.wait(lambda: len(retimer.asked) == 2, 'request that nobody hears')
    retimer.answers = True
    assert outcome(harness, again)[0] == SUCCEEDED
    assert len(retimer.asked) == 3


@needs_control_msgs
def test_planner_that_was_started_again_between_two_goals_is_no_reason_to_abort(
    harness, controller, start, retimer
):
    controller.go_on.set()
    node, send = start(retime_service='other/retime', action='~/between')
    wait_for_controller(harness, node)
    retimer.answers = False
    first = send(goal())
    harness.wait(lambda: len(retimer.health) > 1, 'question')
    first.handle.cancel_goal_async()
    assert outcome(harness, first)[0] == CANCELED
    said = len(retimer.health)
    retimer.pid = '42'
    later = time.monotonic() + 1.1 * SILENCE
    harness.wait(lambda: time.monotonic() > later, 'time without a goal')
    second = send(goal())
    harness.wait(lambda: len(retimer.health) > said + 1, 'question')
    retimer.answers = True
    assert outcome(harness, second)[0] == SUCCEEDED


@needs_control_msgs
def test_health_that_is_not_told_is_asked_for_again(harness, controller, start, retimer):
    retimer.answers = retimer.is_healthy = False
    node, send = start(retime_service='other/retime', action='~/asks')
    wait_for_controller(harness, node)
    sent = send(goal())
    harness.wait(lambda: len(retimer.health) == 2, 'second question')
    retimer.is_healthy = True
    harness.wait(lambda: len(retimer.health) == 4, 'question')
    retimer.pid = '42'
    assert 'send it again' in outcome(harness, sent)[2]


def test_hodyn_node_tells_which_process_retimes(harness):
    client = harness.client.create_client(Trigger, 'hodyn_node/retime/health')
    assert client.wait_for_service(TIMEOUT)

    def answer():
        future = client.call_async(Trigger.Request())
        harness.wait(future.done, 'response')
        return future if future.result().success else None

    future = harness.wait(answer, 'process that plans')
    command = Path(f'/proc/{future.result().message}/cmdline').read_text()
    assert 'plan' in command


def test_executable_says_what_it_lacks():
    code = (
        'import sys\n'
        "sys.modules['control_msgs'] = None\n"
        'from hodyn_ros.commands import trajectory_proxy\n'
        'sys.stdout.write(str(trajectory_proxy()))'
    )
    out, err = run_python(code)
    assert out == '1'
    assert 'control_msgs is not installed' in err and len(err.splitlines()) == 1
