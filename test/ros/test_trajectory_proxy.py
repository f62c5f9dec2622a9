"""Goals of a planner on their way through the proxy to a controller, on real middleware."""

import math
import threading
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
from support.processes import run_python
from support.ros_harness import TIMEOUT, Harness, dict_of, spin_to_end
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.resources import share_file
from hodyn_ros.ros.base.executor import StreamExecutor

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
    harness.wait(lambda: 'is not there' not in node.statuses()[0].message, 'controller')


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
def test_service_that_is_not_there_or_does_not_answer_is_named(harness, controller, start):
    node, send = start(retime_service='nobody/retime')
    harness.wait(lambda: 'nobody/retime' in node.statuses()[0].message, 'controller')
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
