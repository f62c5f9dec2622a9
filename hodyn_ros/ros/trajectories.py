"""Trajectories are planned one after the other and put on the timeline.

A new one replaces the one in progress, an empty one stops it, without a jump up to the snap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import MessageError, SizeError, TrajectoryError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.ros.conversions import MOST_NAMES, nanoseconds, trajectory_head
from hodyn_ros.ros.diagnostics import LEFT_OUT
from hodyn_ros.ros.robot import RobotPreparation, ready
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion, State, Timeline
from hodyn_ros.trajectory.piecewise import position_extremes
from hodyn_ros.trajectory.spline import MotionSpline, stop_motion

if TYPE_CHECKING:
    from hodyn_ros.ros.base import RobotNode
    from hodyn_ros.ros.node_settings import NodeSettings

TRAJECTORY = 'joint_trajectory'
CHUNK = 'position_chunk'

# Trajectories that wait for the one before them; of a flood the oldest give way.
MOST_WAITING = 16

# Time for planning while a motion goes on, which the new one must meet at its end [s].
SHORTEST_LEAD = 0.02
# First guess of the time that planning takes per byte of the message [s].
_TIME_PER_BYTE = 1e-6
# What remains of it with every plan that takes less.
_FORGETTING = 0.7
_MOST_TRIES = 4

# Parts of stop_duration in which a stop is tried until one keeps the limits of the motion.
_STOPS = (1.0, 1.4, 0.7, 2.0, 0.5, 2.8, 0.35, 4.0, 0.25)
_LOOKS = np.linspace(0.0, 1.0, 65)
_ROUNDING = 1e-6


class Task(NamedTuple):
    """A trajectory that is to be planned."""

    number: int  # by which the plan refers to it
    data: bytes  # serialized JointTrajectory with at least one point
    start: int  # node's time at which the time of the trajectory is zero [ns]
    now: int  # node's time by which it must not have ended [ns]
    known: State | None  # state of the joints at `known_time`, if it is known
    known_time: int  # [ns]
    topic: str = TRAJECTORY
    current: PlannedMotion | None = None  # for a chunk: what is in progress at `known_time`


class Plan(NamedTuple):
    """What has become of a task."""

    number: int
    planned: PlannedMotion | None  # None: the trajectory is refused, or stops what is there
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ''  # why it is refused
    kind: str = 'invalid'  # of the refusal
    duration: float = 0.0  # how long planning has taken [s]
    topic: str = TRAJECTORY


def report_plan(node: RobotNode[Any], plan: Plan) -> None:
    """Count and log what has become of a trajectory."""
    logger, remarks = node.get_logger(), list(plan.remarks)
    is_chunk = plan.topic == CHUNK  # there are many
    if plan.error:
        node.diagnostics.refused(plan.topic, plan.error, plan.kind)
        node.log_error(plan.topic, f'{plan.topic} refused: {plan.error}', is_chunk)
        return
    if is_chunk and plan.planned is None:
        node.diagnostics.input(CHUNK).add(LEFT_OUT)
        return
    node.diagnostics.received(plan.topic)
    if is_chunk:
        return
    if plan.planned is not None:
        duration = (plan.planned.last - plan.planned.first) / NANOSECONDS
        logger.info(f'Trajectory taken: a motion of {duration:.3f} s.')
    elif remarks:
        logger.info(remarks.pop(0))
    for remark in remarks:  # they come with the whole answer too
        logger.debug(remark)
    for text in plan.warnings:
        logger.warning(text)


class _Planner(Protocol):
    """What plans trajectories, wherever it runs; every plan is reported to `on_plan`."""

    def plan(self, task: Task) -> None: ...

    def accept(self, number: int, start: int) -> None: ...

    def publish(self, planned: PlannedMotion, remark: str) -> None: ...


@dataclass
class _Trajectory:
    """What has been taken, and, once it is being planned, how."""

    data: bytes  # empty: the motion is to stop
    has_stamp: bool  # otherwise it starts now
    start: int
    arrival: int
    since: float  # steady time of the arrival [s]
    number: int = 0
    sent: int = 0
    tries: int = 0
    planning: float = 0.0  # time that the tries have taken [s]
    is_joined: bool = False  # it is to continue a motion in progress
    topic: str = TRAJECTORY


class TrajectoryInput:
    """Takes trajectories in the thread of the executor; plans come back into the same thread.

    `measured` takes a time [ns] and returns the measured state of the joints near it, if it is
    known; `done` is called with what has become of every trajectory. `steady_time` [s] tells for
    how long a trajectory has waited, whatever becomes of the clock.
    """

    def __init__(
        self,
        planner: _Planner,
        clock: Callable[[], int],
        settings: Callable[[], NodeSettings],
        measured: Callable[[int], State | None],
        done: Callable[[Plan], None],
        steady_time: Callable[[], float] = monotonic,
    ) -> None:
        self.timeline = Timeline()
        self._planner, self._clock, self._settings = planner, clock, settings
        self._measured, self._done, self._steady_time = measured, done, steady_time
        self._waiting: deque[_Trajectory] = deque()
        self._open: _Trajectory | None = None
        self._stopping: PlannedMotion | None = None
        self._joint_names: tuple[str, ...] | None = None
        self._limits: MotionLimits | None = None
        self._is_held = False
        self._numbers = 0
        self._time_per_byte = _TIME_PER_BYTE

    def follow(self, preparation: RobotPreparation[Any], log: Callable[[str], object]) -> None:
        """Plan for the robot in use; trajectories wait for the first one if it is under way."""
        robot, before = preparation.robot, self._joint_names
        names = None if robot is None else robot.model.joint_names
        self._limits = None if robot is None else robot.limits
        if names != before and self.timeline.clear():
            log('The running trajectory is stopped: the new robot has other joints.')
        if before not in (None, names):
            self._forget_open('The robot has been replaced by one with other joints.')
        self._joint_names, self._is_held = names, preparation.is_under_way
        self._go_on()

    def clear(self, reason: str) -> bool:
        """Drop everything; return whether a motion has been stopped."""
        self._forget_all(reason)
        return self.timeline.clear()

    def take(self, data: bytes, topic: str = TRAJECTORY) -> None:
        """Take a serialized trajectory; HodynError if it is plain that it cannot be used.

        Of chunks that wait, only the newest one is planned.
        """
        try:
            head = trajectory_head(data)
        except ValueError as error:
            raise MessageError(f'The message cannot be unpacked: {error}.') from error
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
        if self._joint_names is None and not self._is_held:
            ready(None)
        arrival = self._clock()
        stamp = nanoseconds(head.stamp)
        start = stamp or arrival
        if topic == CHUNK:
            if not head.n_points:
                raise TrajectoryError(
                    f'The chunk has no points; to stop, send an empty trajectory on {TRAJECTORY}.'
                )
            for older in [item for item in self._waiting if item.topic == CHUNK]:
                self._waiting.remove(older)
                self._refuse('A newer chunk has overtaken this one.', True, CHUNK)
        elif not head.n_points:
            data = b''
            if start <= arrival:
                self._forget_all('An empty trajectory has overtaken this one.', wanted=True)
        if len(self._waiting) >= MOST_WAITING:
            oldest = self._waiting.popleft()
            reason = f'More than {MOST_WAITING} newer trajectories wait to be planned.'
            self._refuse(reason, topic=oldest.topic)
        since = self._steady_time()
        self._waiting.append(_Trajectory(data, bool(stamp), start, arrival, since, topic=topic))
        self._go_on()

    @property
    def waiting(self) -> tuple[int, float]:
        """How many trajectories have no plan yet, and for how long the first one waits [s]."""
        items = [*self._waiting, *([] if self._open is None else [self._open])]
        now = self._steady_time()
        return len(items), max((now - item.since for item in items), default=0.0)

    def drop_overdue(self, is_planning: bool) -> None:
        """Drop what should have begun long ago; what is being planned only if nobody plans it."""
        why = '' if self._open is None or is_planning else self._overdue(self._open)
        if why:
            self._forget_open(why, kind='stale')
        for item in list(self._waiting):
            why = self._overdue(item)
            if why:
                self._waiting.remove(item)
                self._refuse(why, topic=item.topic, kind='stale')
        self._go_on()

    def _overdue(self, item: _Trajectory) -> str:
        """Why a trajectory is not to begin any more, since nobody expects it; empty if it is."""
        ahead = max(item.start - item.arrival, 0) / NANOSECONDS
        late = self._steady_time() - item.since - item.planning - ahead
        most = self._settings().trajectory_timeout
        if not item.data or late <= most:  # a stop is never too late
            return ''
        return (
            f'It should have begun, but has waited for {late:.1f} s to be planned, more than '
            f'trajectory_timeout ({most:g} s), and does not begin any more; send it again.'
        )

    def on_plan(self, plan: Plan) -> None:
        """Carry out a plan, or have it made again if it has come too late to be joined."""
        if self._open is None or plan.number != self._open.number:
            return  # overtaken by a stop or by a jump of time
        open_, self._open = self._open, None
        plan = plan._replace(topic=open_.topic)
        now = self._clock()
        open_.planning += plan.duration
        why = '' if plan.planned is None else self._overdue(open_)
        if why:
            plan = plan._replace(planned=None, error=why, kind='stale')
        planned = plan.planned
        if planned is not None:
            elapsed = (now - open_.sent) / NANOSECONDS
            self._time_per_byte = max(
                _FORGETTING * self._time_per_byte, plan.duration / len(open_.data)
            )
            is_late = planned.first < now
            if is_late and open_.is_joined and open_.tries < _MOST_TRIES:
                self._send(open_, 2.0 * max(elapsed, SHORTEST_LEAD))
                return
            if is_late and not open_.is_joined and not open_.has_stamp:
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

    def _go_on(self) -> None:
        """Have the next trajectory planned, if there is one and a robot for it."""
        if self._joint_names is None and not self._is_held:
            self._forget_all('There is no robot model.')
        while self._open is None and self._waiting and self._joint_names is not None:
            waiting = self._waiting.popleft()
            why = self._overdue(waiting)
            if why:
                self._refuse(why, topic=waiting.topic, kind='stale')
            elif waiting.data:
                more = 2.0 * self._time_per_byte * len(waiting.data)
                self._send(waiting, SHORTEST_LEAD + (more if waiting.topic == TRAJECTORY else 0.0))
            else:
                self._stop(self._joint_names, waiting.start)

    def _send(self, item: _Trajectory, lead: float) -> None:
        now = self._clock()
        joined = max(item.start, item.arrival)
        begun = self.timeline.state(max(joined, now))
        is_chunk, start = item.topic == CHUNK, item.start
        if is_chunk or (begun is not None and begun.in_progress):
            joined = max(joined, now + round(lead * NANOSECONDS))
        if is_chunk:  # All motions of chunks have their knots at the same times.
            joined += -joined % round(self._settings().chunk.step * NANOSECONDS)
            start = start if item.has_stamp else joined
        known = self.timeline.state(joined)
        # What is measured now is where the robot will be if nothing moves it until then.
        if not (known and known.in_progress) and not self.timeline.moves_between(now, joined):
            measured = self._measured(now)
            if measured and (known is None or measured.time >= known.time):
                known = measured
        self._numbers += 1
        item.number, item.sent, item.tries = self._numbers, now, item.tries + 1
        item.is_joined = is_chunk or (known is not None and known.in_progress)
        self._open = item
        latest = now if item.has_stamp else item.start
        current = self.timeline.under_way(joined) if is_chunk else None
        task = Task(item.number, item.data, start, latest, known, joined, item.topic, current)
        self._planner.plan(task)

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
            motion = stop_within(self._limits, state.motion, duration)
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
            self._refuse(reason, wanted, self._waiting.popleft().topic)

    def _forget_open(self, reason: str, wanted: bool = False, kind: str = 'invalid') -> None:
        if self._open is not None:
            open_, self._open = self._open, None
            self._refuse(reason, wanted, open_.topic, kind)

    def _refuse(
        self, reason: str, wanted: bool = False, topic: str = TRAJECTORY, kind: str = 'invalid'
    ) -> None:
        given: dict[str, Any] = {'remarks': (reason,)} if wanted else {'error': reason}
        self._done(Plan(0, None, kind=kind, topic=topic, **given))


def stop_within(limits: MotionLimits | None, state: Array, duration: float) -> MotionSpline:
    """Motion to rest within limits, in a time near the one that is wanted.

    If none of some times does, the one whose motion exceeds its limits least. What the state
    exceeds already counts as its limit.
    """
    found: list[tuple[float, MotionSpline]] = []
    if limits is None:
        return stop_motion(state, duration)
    most = np.maximum((limits.velocity, limits.acceleration, limits.jerk), np.abs(state[1:4]))
    lower, upper = np.minimum(limits.lower, state[0]), np.maximum(limits.upper, state[0])
    for part in _STOPS:
        motion = stop_motion(state, part * duration)
        samples = np.abs(motion(_LOOKS * motion.duration, 3)[:, 1:])
        extremes = position_extremes(motion)
        beyond = np.maximum(lower - extremes.lowest, extremes.highest - upper)
        excess = max(float(np.max(samples / np.maximum(most, 1e-9))) - 1.0, float(beyond.max()))
        found.append((excess, motion))
        if excess <= _ROUNDING:
            break
    return min(found, key=lambda item: item[0])[1]
