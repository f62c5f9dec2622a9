"""A node between a planner such as MoveIt and joint_trajectory_controller.

Its action takes goals, has them retimed by `hodyn_node` and passes them on to the controller;
feedback, results and cancellations go through. All of it is done in callbacks: rclpy would poll a
coroutine that awaits a result.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.srv import RetimeTrajectory
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.clock import Clock, ClockType
from rclpy.task import Future
from std_srvs.srv import Trigger

from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.parameters import entry
from hodyn_ros.ros.planner.planner import health_of
from hodyn_ros.streams.goals import (
    ACCEPTED,
    ENDED,
    EXECUTED,
    OVER,
    READY,
    REPLACED,
    RETIMED,
    SENT,
    SILENCE,
    TIMED,
    WAITS,
    Goal,
)
from hodyn_ros.streams.health import OK, WARN
from hodyn_ros.streams.timeline import NANOSECONDS

try:
    from control_msgs.action import FollowJointTrajectory
except ImportError:  # it is on no package registry
    FollowJointTrajectory = None

ACTION = 'follow_joint_trajectory'

_WATCH_PERIOD = 0.2  # s
_REPLACED = 'Replaced by a newer goal.'
_TIMINGS = {
    'path': RetimeTrajectory.Request.PATH,
    'uniform': RetimeTrajectory.Request.UNIFORM,
}


@dataclass(frozen=True)
class ProxySettings:
    """All parameters of the node."""

    action: str = entry(
        f'~/{ACTION}', 'Name of the action that planners use.', read_only=True
    )
    controller: str = entry(
        'joint_trajectory_controller',
        'Controller whose action follow_joint_trajectory executes the goals.',
        read_only=True,
    )
    retime_service: str = entry(
        'hodyn_node/retime', 'Service that gives goals another timing.', read_only=True
    )
    retime_timeout: float = entry(
        60.0, 'A goal whose new timing takes longer is aborted [s].', 0.1, 3600.0
    )
    timing: str = entry(
        'path',
        'path: a new timing along the path; uniform: one factor for the whole motion.',
        choices=tuple(_TIMINGS),
    )
    slower_only: bool = entry(
        True,
        'Goals within limits keep their timing, others become slower. false: goals become as '
        'fast as the limits allow.',
    )
    drop_standstills: bool = entry(
        False, 'Pauses in a goal are removed, with timing path only.'
    )
    efforts: bool = entry(
        True,
        'Efforts are sent for feed-forward, as command.* of hodyn_node chooses them, unless the '
        'controller rejects them.',
    )


def _nanoseconds(duration: Any) -> int:
    """Duration of a message [ns]."""
    return int(duration.sec) * NANOSECONDS + int(duration.nanosec)


async def _result_of(result: Future[Any], _: Any = None) -> Any:
    """Result of a goal, once there is one."""
    return await result


@dataclass(eq=False)
class _Goal(Goal):
    """A goal that has been accepted and is not at its end.

    Attributes
    ----------
    handle : object
    retiming : Future, optional
    executed : object
        Goal of the controller, once that has accepted it.
    result : Future, optional
        What rclpy sends once it is there.
    """

    handle: Any = None
    result: Future[Any] | None = None
    retiming: Future[Any] | None = None
    executed: Any = None


class TrajectoryProxy(RobotNode[ProxySettings]):
    """Node that takes goals, has them retimed and executed.

    A goal that is sent to the controller takes the place of those before: there, of the one that
    the controller has, and here of those that it does not have yet.

    Parameters
    ----------
    **node_options
        Of `rclpy.node.Node`.

    Raises
    ------
    RuntimeError
        If control_msgs is not installed.
    """

    def __init__(self, **node_options: Any) -> None:
        if FollowJointTrajectory is None:
            raise RuntimeError(
                'control_msgs is not installed in this environment, which the action '
                'FollowJointTrajectory belongs to; install ros-<distribution>-control-msgs.'
            )
        options = {'is_described': False, **node_options}
        super().__init__('trajectory_proxy', ProxySettings, **options)
        settings = self.settings
        self._goals: list[_Goal] = []
        self._counts = dict.fromkeys(('succeed', 'abort', 'canceled'), 0)  # ends of goals
        self._last_error = ''
        self._failed = ''  # why the newest goal that ended by itself was aborted
        self._retime = self.create_client(RetimeTrajectory, settings.retime_service)
        # The node of the service says by another one whether the process that retimes lives.
        service = self.resolve_service_name(settings.retime_service)
        self._health = self.create_client(Trigger, health_of(service))
        self._asked: Future[Any] | None = None
        self._asked_at = 0.0
        self._planner, self._hangs = '', ''
        # When it was heard of, and when first of another one than before.
        self._planner_heard = self._planner_since = -math.inf
        self._takes_efforts = True  # as far as is known
        self._name = f'{settings.controller}/{ACTION}'
        self._controller = ActionClient(self, FollowJointTrajectory, self._name)
        self._server = ActionServer(
            self,
            FollowJointTrajectory,
            settings.action,
            _result_of,
            handle_accepted_callback=self._on_goal,
            cancel_callback=self._on_cancel,
        )
        self.closing.extend((self._controller.destroy, self._server.destroy))
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._watch = self.create_timer(_WATCH_PERIOD, self._on_watch, clock=steady)
        self._watch.cancel()
        self.open()

    # The way of a goal

    def _on_goal(self, handle: Any) -> None:
        result: Future[Any] = Future(executor=self.executor)
        self._goals.append(_Goal(time.monotonic(), handle=handle, result=result))
        handle.execute(partial(_result_of, result))
        self._watch.reset()
        self._on_watch()

    def _have_retimed(self, goal: _Goal) -> None:
        settings, handle = self.settings, goal.handle
        request = RetimeTrajectory.Request(
            trajectory=handle.request.trajectory,
            timing=_TIMINGS[settings.timing],
            slower_only=settings.slower_only,
            drop_standstills=settings.drop_standstills and settings.timing == 'path',
        )
        goal.on(READY)
        goal.planner, goal.asked = self._living_planner(), time.monotonic()
        if goal.retiming is not None:  # a process that had ended was asked
            self._retime.remove_pending_request(goal.retiming)
        goal.retiming = self._retime.call_async(request)
        goal.retiming.add_done_callback(partial(self._on_retimed, goal))

    def _ask_health(self) -> None:
        """Ask whether the process that retimes lives, unless an answer is due."""
        now = time.monotonic()
        if self._asked is not None and now - self._asked_at > SILENCE:
            # The node was killed, or hangs.
            self._health.remove_pending_request(self._asked)
            self._asked, self._hangs = None, 'its node does not answer'
        if self._asked is not None or not self._health.service_is_ready():
            return
        self._asked, self._asked_at = self._health.call_async(Trigger.Request()), now
        self._asked.add_done_callback(self._on_health)

    def _on_health(self, future: Future[Any]) -> None:
        self._asked, answer = None, future.result()
        self._hangs = '' if answer.success else answer.message
        if not answer.success:
            return
        self._planner_heard = time.monotonic()
        if answer.message != self._planner:
            if self._planner:
                self._planner_since = self._planner_heard
            self._planner = answer.message
            self._on_watch()

    def _living_planner(self) -> str:
        """Number of the process that retimes; empty if nothing is heard of it now."""
        return self._planner * (time.monotonic() - self._planner_heard < SILENCE)

    def _on_retimed(self, goal: _Goal, future: Future[Any]) -> None:
        if goal not in self._goals:
            return
        response, kind = future.result(), FollowJointTrajectory.Result
        if not response.success:
            is_about_joints = response.error_code == response.INVALID_JOINTS
            code = kind.INVALID_JOINTS if is_about_joints else kind.INVALID_GOAL
            self._abort(goal, f'The trajectory cannot be retimed: {response.message}', code)
            return
        for warning in response.warnings:
            self.get_logger().warning(warning)
        times = f'{response.duration_before:.3f} s to {response.duration:.3f} s'
        self.get_logger().info(f'Retimed from {times}.')
        request = goal.handle.request
        # The new timing begins at the first waypoint; the way there keeps its time.
        way = _nanoseconds(request.trajectory.points[0].time_from_start)
        request.trajectory = response.trajectory
        for point in response.trajectory.points:
            time_ = point.time_from_start
            time_.sec, time_.nanosec = divmod(_nanoseconds(time_) + way, NANOSECONDS)
        for older in self._goals[: self._goals.index(goal)]:
            if older.on(REPLACED):
                self._abort(older, _REPLACED)
        goal.on(TIMED)
        self._send(goal, self._sends_efforts)

    def _send(self, goal: _Goal, with_efforts: bool) -> None:
        request = goal.handle.request
        for point in () if with_efforts else request.trajectory.points:
            point.effort = []
        sent = self._controller.send_goal_async(request, partial(self._on_feedback, goal))
        sent.add_done_callback(partial(self._on_response, goal, with_efforts))

    def _on_feedback(self, goal: _Goal, message: Any) -> None:
        if goal in self._goals:
            goal.heard = time.monotonic()
            goal.handle.publish_feedback(message.feedback)

    def _on_response(self, goal: _Goal, with_efforts: bool, future: Future[Any]) -> None:
        if not future.result().accepted and with_efforts and goal in self._goals:
            # A controller that claims no effort interface takes no goal with efforts.
            self._send(goal, with_efforts=False)
            return
        goal.executed = future.result()
        if not goal.executed.accepted:
            tried = ', also without efforts' * self._is_tried_without(with_efforts)
            self._abort(
                goal, f'{self._name} has rejected the goal{tried}; its log says why.'
            )
            return
        if self._is_tried_without(with_efforts):
            self._takes_efforts = False
            self.get_logger().warning(
                f'{self._name} takes goals without efforts only: it claims no effort interface. '
                'From now on none are sent (parameter efforts).'
            )
        if goal in self._goals:
            goal.on(ACCEPTED)
        if goal not in self._goals or goal.handle.is_cancel_requested:
            goal.executed.cancel_goal_async()
        goal.executed.get_result_async().add_done_callback(partial(self._on_result, goal))

    @property
    def _sends_efforts(self) -> bool:
        """Whether goals have efforts: as asked for, unless the controller takes none."""
        return self.settings.efforts and self._takes_efforts

    def _is_tried_without(self, with_efforts: bool) -> bool:
        """Whether a goal was sent without efforts because it was rejected with them."""
        return self._sends_efforts and not with_efforts

    def _on_result(self, goal: _Goal, future: Future[Any]) -> None:
        status, result = future.result().status, future.result().result
        if status == GoalStatus.STATUS_SUCCEEDED:
            self._finish(goal, 'succeed', result)
        elif status == GoalStatus.STATUS_CANCELED and goal.handle.is_cancel_requested:
            self._finish(goal, 'canceled', result)
        else:
            text = (
                result.error_string or f'{self._name} has ended the goal (status {status}).'
            )
            text = _REPLACED if goal.is_replaced else text
            self._abort(goal, text, result.error_code)

    def _on_cancel(self, handle: Any) -> CancelResponse:
        self.soon(self._cancel, handle)  # rclpy notes it once this has returned
        return CancelResponse.ACCEPT

    def _cancel(self, handle: Any) -> None:
        for goal in [goal for goal in self._goals if goal.handle == handle]:
            if goal.executed is not None:
                goal.executed.cancel_goal_async()
            elif goal.state != SENT:
                text = 'Cancelled before it was sent to the controller.'
                self._finish(
                    goal, 'canceled', FollowJointTrajectory.Result(error_string=text)
                )

    def _on_watch(self) -> None:
        """Send goals on their way, and abort those of which nothing more can be heard."""
        if any(goal.state == RETIMED for goal in self._goals):
            self._ask_health()
        for goal in list(self._goals):
            now, lacking = time.monotonic(), self._lacking(goal.state)
            service, timeout = self.settings.retime_service, self.settings.retime_timeout
            if why := goal.why_lost(now, lacking, service, self._living_planner(), timeout):
                why += f' {self._hangs}' * bool(self._hangs and not lacking)
                self._abort(goal, why)
                if goal.executed is not None:  # a controller that goes on later is to hold
                    goal.executed.cancel_goal_async()
            elif goal.state == WAITS and not lacking:
                self._have_retimed(goal)
            elif goal.is_unheard(now, self._planner_since):
                self._have_retimed(goal)
            elif goal.is_long_now(now):
                why = f': {self._hangs}' * bool(self._hangs)
                waited = f'{now - goal.arrival:.0f} s'
                self.get_logger().warning(
                    f'A goal waits for {service} since {waited}{why}.'
                )
        if not self._goals:
            self._watch.cancel()

    def _lacking(self, state: str = WAITS) -> str:
        """Say what a goal in a state needs that is not there."""
        if not self._controller.server_is_ready():
            return f'The action {self._name} is not there: is the controller active?'
        service = self.settings.retime_service
        if state not in (SENT, EXECUTED) and not self._retime.service_is_ready():
            return f'The service {service} is not there: is hodyn_node running?'
        return ''

    def _abort(self, goal: _Goal, why: str, code: int | None = None) -> None:
        kind = FollowJointTrajectory.Result
        result = kind(
            error_code=kind.INVALID_GOAL if code is None else code, error_string=why
        )
        self._finish(goal, 'abort', result)

    def _finish(self, goal: _Goal, end: str, result: Any) -> None:
        """Bring a goal to its end, unless it has come to one: succeed, abort or canceled."""
        if goal not in self._goals:
            return
        self._goals.remove(goal)
        if goal.state != ENDED:
            goal.on(OVER)
        if goal.retiming is not None:  # rclpy would keep it for ever
            self._retime.remove_pending_request(goal.retiming)
        self._counts[end] += 1
        if not goal.is_replaced:
            self._failed = result.error_string * (end == 'abort')
        if end == 'abort':
            self._last_error = result.error_string
            self.get_logger().error(f'Goal aborted: {result.error_string}')
        getattr(goal.handle, end)()
        assert goal.result is not None
        goal.result.set_result(result)

    # Health

    def statuses(self) -> Sequence[DiagnosticStatus]:
        """Health of the node."""
        lacking = self._lacking()
        values = {
            'under way': len(self._goals),
            **self._counts,
            'last error': self._last_error,
            'efforts': 'sent' if self._sends_efforts else 'not sent',
        }
        failed = f'the last goal was aborted: {self._failed}' * bool(self._failed)
        level = WARN if lacking or failed else OK
        return [self.diagnostics.status('goals', level, lacking or failed or 'ok', values)]


if __name__ == '__main__':
    sys.exit(main(TrajectoryProxy))
