"""Trajectories are planned one after the other and put on the timeline.

A new one replaces the one in progress, an empty one stops it, without a jump up to the snap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hodyn_ros.errors import MessageError, SizeError, TrajectoryError
from hodyn_ros.ros.conversions import (
    MOST_NAMES,
    TrajectoryHead,
    nanoseconds,
    trajectory_head,
)
from hodyn_ros.ros.robot import RobotPreparation, ready
from hodyn_ros.trajectory.spline import stop_motion
from hodyn_ros.trajectory.timeline import NANOSECONDS, PlannedMotion, State, Timeline

if TYPE_CHECKING:
    from hodyn_ros.ros.base import RobotNode
    from hodyn_ros.ros.node_settings import NodeSettings

TRAJECTORY = 'joint_trajectory'

# Trajectories that wait for the one before them; of a flood the oldest give way.
MOST_WAITING = 16

# Time for planning while a motion goes on, which the new one must meet at its end [s].
SHORTEST_LEAD = 0.02
# First guess of the time that planning takes per byte of the message [s].
_TIME_PER_BYTE = 1e-6
# What remains of it with every plan that takes less.
_FORGETTING = 0.7
_MOST_TRIES = 4


class Task(NamedTuple):
    """A trajectory that is to be planned."""

    number: int  # by which the plan refers to it
    data: bytes  # serialized JointTrajectory with at least one point
    start: int  # node's time at which the time of the trajectory is zero [ns]
    now: int  # node's time by which it must not have ended [ns]
    known: State | None  # state of the joints at `known_time`, if it is known
    known_time: int  # [ns]


class Plan(NamedTuple):
    """What has become of a task."""

    number: int
    planned: PlannedMotion | None  # None: the trajectory is refused, or stops what is there
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ''  # why it is refused
    kind: str = 'invalid'  # of the refusal
    duration: float = 0.0  # how long planning has taken [s]


def report_plan(node: RobotNode[Any], plan: Plan) -> None:
    """Count and log what has become of a trajectory."""
    logger, remarks = node.get_logger(), list(plan.remarks)
    if plan.error:
        node.diagnostics.refused(TRAJECTORY, plan.error, plan.kind)
        node.log_error(TRAJECTORY, f'{TRAJECTORY} refused: {plan.error}', False)
        return
    node.diagnostics.received(TRAJECTORY)
    if plan.planned is not None:
        duration = (plan.planned.last - plan.planned.first) / NANOSECONDS
        logger.info(f'Trajectory taken: a motion of {duration:.3f} s.')
    elif remarks:
        logger.info(remarks.pop(0))
    for remark in remarks:  # they come with the whole answer too
        logger.debug(remark)
    for text in plan.warnings:
        logger.warning(text)


class TrajectoryPlanner(Protocol):
    """What plans trajectories, wherever it runs; every plan is reported to `on_plan`."""

    def plan(self, task: Task) -> None:
        """Plan a trajectory."""

    def accept(self, number: int, start: int) -> None:
        """Publish the whole answer to a plan that starts at a time [ns]."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Compute and publish the whole answer to a motion to rest."""


class _Waiting(NamedTuple):
    data: bytes  # empty: the motion is to stop
    has_stamp: bool  # otherwise it starts now
    start: int
    arrival: int


class _Open(NamedTuple):
    """The trajectory that is being planned."""

    waiting: _Waiting
    number: int
    sent: int
    tries: int
    is_joined: bool  # it is to continue a motion in progress


class TrajectoryInput:
    """Takes trajectories in the thread of the executor; plans come back into the same thread.

    `measured` takes a time [ns] and returns the measured state of the joints near it, if it is
    known; `done` is called with what has become of every trajectory.
    """

    def __init__(
        self,
        planner: TrajectoryPlanner,
        clock: Callable[[], int],
        settings: Callable[[], NodeSettings],
        measured: Callable[[int], State | None],
        done: Callable[[Plan], None],
    ) -> None:
        self.timeline = Timeline()
        self._planner, self._clock, self._settings = planner, clock, settings
        self._measured, self._done = measured, done
        self._waiting: deque[_Waiting] = deque()
        self._open: _Open | None = None
        self._stopping: PlannedMotion | None = None
        self._joint_names: tuple[str, ...] | None = None
        self._is_held = False
        self._numbers = 0
        self._time_per_byte = _TIME_PER_BYTE

    def use_joints(self, names: tuple[str, ...] | None, is_held: bool) -> bool:
        """Plan for a robot with these joints; without one, trajectories wait if they are held.

        Returns whether a motion has been stopped, since it was for other joints.
        """
        was_stopped = names != self._joint_names and self.timeline.clear()
        if self._joint_names not in (None, names):
            self._forget_open('The robot has been replaced by one with other joints.')
        self._joint_names, self._is_held = names, is_held
        self._go_on()
        return was_stopped

    def follow(self, preparation: RobotPreparation[Any], log: Callable[[str], object]) -> None:
        """Plan for the robot in use; trajectories wait for the first one if it is under way."""
        robot = preparation.robot
        names = None if robot is None else robot.model.joint_names
        if self.use_joints(names, preparation.is_under_way):
            log('The running trajectory is stopped: the new robot has other joints.')

    def clear(self, reason: str) -> bool:
        """Drop everything; return whether a motion has been stopped."""
        self._forget_all(reason)
        return self.timeline.clear()

    def take(self, data: bytes) -> None:
        """Take a serialized trajectory; HodynError if it is plain that it cannot be used."""
        try:
            head = trajectory_head(data)
        except ValueError as error:
            raise MessageError(f'The message cannot be unpacked: {error}.') from error
        self._check_size(head)
        if self._joint_names is None and not self._is_held:
            ready(None)
        arrival = self._clock()
        stamp = nanoseconds(head.stamp)
        start = stamp or arrival
        if not head.n_points:
            data = b''
            if start <= arrival:
                self._forget_all('An empty trajectory has overtaken this one.', wanted=True)
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._refuse(f'More than {MOST_WAITING} newer trajectories wait to be planned.')
        self._waiting.append(_Waiting(data, bool(stamp), start, arrival))
        self._go_on()

    def on_plan(self, plan: Plan) -> None:
        """Carry out a plan, or have it made again if it has come too late to be joined."""
        if self._open is None or plan.number != self._open.number:
            return  # overtaken by a stop or by a jump of time
        open_, self._open = self._open, None
        now = self._clock()
        planned = plan.planned
        if planned is not None:
            elapsed = (now - open_.sent) / NANOSECONDS
            self._time_per_byte = max(
                _FORGETTING * self._time_per_byte, plan.duration / len(open_.waiting.data)
            )
            is_late = planned.first < now
            if is_late and open_.is_joined and open_.tries < _MOST_TRIES:
                self._send(open_.waiting, open_.tries + 1, 2.0 * max(elapsed, SHORTEST_LEAD))
                return
            if is_late and not open_.is_joined and not open_.waiting.has_stamp:
                # Now is when it is planned: nothing of the motion is left out.
                planned = planned._replace(start=planned.start + now - planned.first)
            try:
                if is_late and open_.is_joined:
                    raise TrajectoryError(
                        f'Planning took {elapsed:.3g} s, again and again longer than expected: '
                        'the motion in progress has gone on meanwhile.'
                    )
                dropped = self.timeline.add(planned)
                self._planner.accept(plan.number, planned.start)
                if dropped:
                    remark = f'It replaces {dropped} that had not begun.'
                    plan = plan._replace(remarks=(*plan.remarks, remark))
            except TrajectoryError as error:
                plan = plan._replace(planned=None, error=str(error))
        self._done(plan)
        self._go_on()

    def _check_size(self, head: TrajectoryHead) -> None:
        most = self._settings().max_trajectory_points
        if head.n_points is None:
            raise SizeError(
                f'JointTrajectory: it has {head.n_names} joint names, expected those of the '
                f'robot, and no more than {MOST_NAMES}.'
            )
        if head.n_points > most:
            raise SizeError(
                f'JointTrajectory: it has {head.n_points} points, more than '
                f'max_trajectory_points ({most}); send fewer points, or raise the parameter.'
            )

    def _go_on(self) -> None:
        """Have the next trajectory planned, if there is one and a robot for it."""
        if self._joint_names is None and not self._is_held:
            self._forget_all('There is no robot model.')
        while self._open is None and self._waiting and self._joint_names is not None:
            waiting = self._waiting.popleft()
            if waiting.data:
                size = len(waiting.data)
                self._send(waiting, 1, SHORTEST_LEAD + 2.0 * self._time_per_byte * size)
            else:
                self._stop(self._joint_names, waiting.start)

    def _send(self, waiting: _Waiting, tries: int, lead: float) -> None:
        now = self._clock()
        joined = max(waiting.start, waiting.arrival)
        begun = self.timeline.state(max(joined, now))
        if begun is not None and begun.in_progress:
            joined = max(joined, now + round(lead * NANOSECONDS))
        known = self.timeline.state(joined)
        # What is measured now is where the robot will be if nothing moves it until then.
        if not (known and known.in_progress) and not self.timeline.moves_between(now, joined):
            measured = self._measured(now)
            if measured and (known is None or measured.time >= known.time):
                known = measured
        self._numbers += 1
        is_joined = known is not None and known.in_progress
        self._open = _Open(waiting, self._numbers, now, tries, is_joined)
        latest = now if waiting.has_stamp else waiting.start
        self._planner.plan(
            Task(self._numbers, waiting.data, waiting.start, latest, known, joined)
        )

    def _stop(self, names: tuple[str, ...], time: int) -> None:
        """Bring the motion to rest from a time on; nothing that came before starts any more."""
        time = max(time, self._clock())
        duration, state = self._settings().stop_duration, self.timeline.state(time)
        planned = None
        if state is None or not state.in_progress:
            self.timeline.cut(time)  # motions that are over by then are left alone
            remark = 'An empty trajectory: there is nothing to stop.'
        elif self.timeline.under_way(time) is self._stopping:
            self.timeline.drop_behind(time)
            remark = 'The motion is being brought to rest already.'
        elif not duration:
            self.timeline.cut(time)
            remark = 'An empty trajectory ends the stream.'
        else:
            motion = stop_motion(state.motion, duration)
            planned = PlannedMotion(names, motion, time, motion.continuous_derivative)
            self.timeline.add(planned)
            self._stopping = planned
            remark = 'An empty trajectory brings the motion to rest.'
            self._planner.publish(planned, remark)
        self._done(Plan(0, planned, (remark,)))

    def _forget_all(self, reason: str, wanted: bool = False) -> None:
        """Drop what is not planned yet; if that is wanted, it is no refusal."""
        self._forget_open(reason, wanted)
        while self._waiting:
            self._waiting.popleft()
            self._refuse(reason, wanted)

    def _forget_open(self, reason: str, wanted: bool = False) -> None:
        if self._open is not None:
            self._open = None
            self._refuse(reason, wanted)

    def _refuse(self, reason: str, wanted: bool = False) -> None:
        self._done(Plan(0, None, (reason,)) if wanted else Plan(0, None, error=reason))
