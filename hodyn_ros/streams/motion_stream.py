"""What is sent to a robot: trajectories are planned, joined, stopped, and watched while executed.

A new trajectory replaces the one in progress, an empty one stops it, without a jump up to the
snap; a plan that comes too late for that is made again from where the motion then is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.streams.path_watch import Following
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion, State, Timeline, at_rest
from hodyn_ros.trajectory.motion import position_extremes
from hodyn_ros.trajectory.spline import MotionSpline, stop_motion
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.streams.robot_in_use import Robot

TRAJECTORY = 'joint_trajectory'
CHUNK = 'position_chunk'

# States of a stream.
IDLE, FOLLOWING, JOINING, STOPPING = 'idle', 'following', 'joining', 'stopping'
LOST = 'lost'

# Motions that a controller has and that have not begun: joint_trajectory_controller falls back by
# another cycle with each, until one begins. A stop may come on top of them.
MOST_AHEAD = 2
_SOON = NANOSECONDS // 2  # those that begin later than in this time do not count

# Trajectories that wait for the one before them; of a flood the oldest give way.
MOST_WAITING = 16

OVERTAKEN = 'A newer one has overtaken this one.'
_STOPPED = 'An empty trajectory has overtaken this one.'

LONG_PLANNING = 2.0
"""Time after which it is said that a trajectory is still being planned [s]."""
OLDEST_START = 10.0
"""Age above which a trajectory without a stamp, which is for now, does not begin any more [s]."""

# Time for planning while a motion goes on, which the new one must meet at its end [s].
SHORTEST_LEAD = 0.02
# First guess of the time that planning takes per byte of the message [s].
_TIME_PER_BYTE = 1e-6
# What remains of a measured time with every one that is shorter.
_FORGETTING = 0.7
_MOST_TRIES = 4

# First guess of the time from the decision on a motion until a controller has it, and the shortest
# and longest that are reckoned with for a stop: what takes its time is the way to the controller
# alone, which nobody measures, and a stop should not let the robot go on [s].
_FIRST_DELIVERY, _LEAST_OF_STOP, _MOST_OF_STOP = 0.02, 0.04, 0.1
LEAD_IN = 0.01
"""Time between the stamp of a trajectory for a controller and its first point [s].

Within it joint_trajectory_controller goes over from the motion before, behind which it lags by a
cycle when it is given another one. It takes a stamp that has passed for the present.
"""

# How long a stop waits for a plan that is being made, if it is for when nothing else moves [s].
_PATIENCE = 0.1

# How much longer than the latest delivery the next one may take.
_MARGIN = 2.0

# Parts of stop_duration in which a stop is tried until one keeps the limits of the motion.
_STOPS = (1.0, 1.4, 0.7, 2.0, 0.5, 2.8, 0.35, 4.0, 0.25)
_LOOKS = np.linspace(0.0, 1.0, 65)
_ROUNDING = 1e-6


class Instant(NamedTuple):
    """When something happens.

    Attributes
    ----------
    now : int
        Time of the clock, which may jump [ns].
    steady : float
        Time that only goes on [s].

    Examples
    --------
    >>> from time import monotonic, time_ns
    >>> from hodyn_ros.streams import Instant
    >>> at = Instant(now=time_ns(), steady=monotonic())
    >>> at.now > 0
    True
    """

    now: int
    steady: float


class Request(NamedTuple):
    """A trajectory that has come, not unpacked yet.

    Attributes
    ----------
    data : bytes
        Empty: the motion is to stop.
    stamp : int
        Time at which the time of the trajectory is zero [ns]; 0: as soon as possible.
    topic : str

    Examples
    --------
    >>> from hodyn_ros.streams import Request
    >>> stop = Request(b'', stamp=0)
    >>> not stop.data
    True
    """

    data: bytes
    stamp: int
    topic: str = TRAJECTORY


class Task(NamedTuple):
    """A trajectory that is to be planned.

    Attributes
    ----------
    number : int
        By which the plan refers to it.
    data : bytes
        Serialized JointTrajectory with at least one point.
    start : int
        Node's time at which the time of the trajectory is zero [ns]
    now : int
        Node's time by which it must not have ended [ns]
    known : State, optional
        State of the joints at `known_time`, if it is known.
    known_time : int
        [ns]
    topic : str
    current : PlannedMotion, optional
        For a chunk: what is in progress at `known_time`.

    Examples
    --------
    >>> from hodyn_ros.streams import Task
    >>> task = Task(1, b'...', start=1_000_000_000, now=0, known=None, known_time=0)
    >>> task.topic
    'joint_trajectory'
    """

    number: int
    data: bytes
    start: int
    now: int
    known: State | None
    known_time: int
    topic: str = TRAJECTORY
    current: PlannedMotion | None = None


class Plan(NamedTuple):
    """What has become of a task.

    Attributes
    ----------
    number : int
    planned : PlannedMotion, optional
        None: the trajectory is refused, or stops what is there.
    remarks : tuple of str
    warnings : tuple of str
    error : str
        Why it is refused.
    duration : float
        How long planning has taken [s]
    topic : str

    Examples
    --------
    >>> from hodyn_ros.streams import Plan
    >>> plan = Plan(1, None, error='The first waypoint is 0.3 rad away.')
    >>> plan.planned is None, plan.error
    (True, 'The first waypoint is 0.3 rad away.')
    """

    number: int
    planned: PlannedMotion | None
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ''
    duration: float = 0.0
    topic: str = TRAJECTORY


PATH_TIME = 0.2  # s for which joints may be farther from the motion than path_tolerance
CHUNK_STEP = 0.01  # s between the knots of a chunk, at which another one can take over


class StreamSettings(Protocol):
    """What a stream is told, a part of the parameters of a node."""

    @property
    def stop_duration(self) -> float:
        """Time in which a motion is brought to rest [s]; 0: it ends at once."""

    @property
    def trajectory_timeout(self) -> float:
        """Time after which a trajectory that waits is dropped [s]."""

    @property
    def path_tolerance(self) -> float:
        """Largest distance of a robot from its motion [rad, m]; 0: any."""


class TrajectoryPlanner(Protocol):
    """What plans trajectories, wherever it runs; every plan is given to `on_plan`."""

    def plan(self, task: Task) -> None:
        """Plan a trajectory."""

    def accept(self, number: int, start: int) -> None:
        """Send a plan to who executes it, with the start that it has now [ns]."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Send a motion to rest to who executes it."""


class Leads:
    """How long before its first point a motion is decided on, from what has been measured [s]."""

    def __init__(self, has_controller: bool) -> None:
        self._time_per_byte = _TIME_PER_BYTE
        given = _FIRST_DELIVERY, _LEAST_OF_STOP, LEAD_IN
        self._delivery, self._least_of_stop, self._lead_in = (
            given if has_controller else (0.0, 0.0, 0.0)
        )
        self._least = 0.5 * self._delivery

    @property
    def delivery(self) -> float:
        """Time from the decision on a motion to its first point."""
        return self._delivery + self._lead_in

    @property
    def of_stop(self) -> float:
        """Time from the decision on a stop to its first point."""
        delivery = min(max(self._delivery, self._least_of_stop), _MOST_OF_STOP)
        return delivery + self._lead_in

    def note_plan(self, duration: float, size: int) -> None:
        """Learn how long a message of a size in bytes was planned."""
        self._time_per_byte = max(_FORGETTING * self._time_per_byte, duration / size)

    def note_delivery(self, duration: float) -> None:
        """Learn how long it took to send a motion that had been decided on."""
        kept = max(_FORGETTING * self._delivery, self._least)
        self._delivery = max(kept, _MARGIN * duration)

    def of(self, topic: str, size: int) -> float:
        """Time to plan and send a message of a size in bytes."""
        if topic == CHUNK:  # whose motions are streamed only
            return SHORTEST_LEAD
        return SHORTEST_LEAD + 2.0 * self._time_per_byte * size + self.delivery


@dataclass
class _Trajectory:
    """What has been taken, and, once it is being planned, how.

    Attributes
    ----------
    request : Request
    start : int
    arrival : Instant
    number : int
    sent : Instant
    tries : int
    planning : float
        Time that the tries have taken, and that there was no planner with the robot [s]
    told : float
        For how long it has been said to be planned [s]
    is_joined : bool
        It is to continue a motion in progress.
    is_known : bool
        Where it begins is known.
    """

    request: Request
    start: int
    arrival: Instant
    number: int = 0
    sent: Instant = Instant(0, 0.0)
    tries: int = 0
    planning: float = 0.0
    told: float = 0.0
    is_joined: bool = False
    is_known: bool = False

    @property
    def topic(self) -> str:
        return self.request.topic

    @property
    def is_stop(self) -> bool:
        return not self.request.data


class MotionStream:
    """Motions from trajectories, one after the other, and what a robot makes of them.

    Parameters
    ----------
    planner : TrajectoryPlanner
    settings : callable
        Returns the `StreamSettings` in use.
    measured : callable
        Takes a time [ns] and returns the measured state of the joints near it, if it is known.
    done : callable
        Called with the `Plan` of every trajectory, taken or refused.
    has_controller : bool
        Motions are sent to a controller, which must have them before their first point.
    """

    def __init__(
        self,
        planner: TrajectoryPlanner,
        settings: Callable[[], StreamSettings],
        measured: Callable[[int], State | None],
        done: Callable[[Plan], None],
        has_controller: bool = False,
    ) -> None:
        self.timeline: Timeline = Timeline()
        self.why_lost: str = ''
        """What the robot did instead of following, where it is `LOST`."""
        self.leads: Leads = Leads(has_controller)
        self._planner, self._settings = planner, settings
        self._measured, self._done = measured, done
        self._waiting: deque[_Trajectory] = deque()
        self._open: _Trajectory | None = None
        self._stop_motion: PlannedMotion | None = None  # the latest one
        self._sampled: PlannedMotion | None = None  # until the timeline is empty
        self._is_lost = False
        self._has_controller = has_controller
        self._ahead: list[int] = []  # when motions begin that the controller has [ns]
        self._joint_names: tuple[str, ...] | None = None
        self._limits: MotionLimits | None = None
        self._is_held = False
        self._numbers = 0
        self._looked = 0.0  # when overdue trajectories were last looked for [s]
        self._following = Following()

    @property
    def state(self) -> str:
        """`IDLE`, `FOLLOWING` motions, `JOINING` one to them, `STOPPING` or `LOST`."""
        if self._is_lost:
            return LOST
        if not self.timeline:
            return IDLE
        if self._sampled is not None and self._sampled is self._stop_motion:
            return STOPPING
        is_joined = self._open is not None and self._open.is_joined
        return JOINING if is_joined else FOLLOWING

    # Robots and time

    def follow(self, robot: Robot | None, is_held: bool, at: Instant) -> bool:
        """Plan for a robot; until there is one, trajectories wait if they are to be held.

        Returns whether a motion has been stopped, since the robot has other joints.
        """
        before = self._joint_names
        names = None if robot is None else robot.model.joint_names
        self._limits = None if robot is None else robot.limits
        is_stopped = names != before and self._end()
        if before not in (None, names):
            self._forget_open('The robot has been replaced by one with other joints.')
        if robot is not None:
            self._following.use(robot.model.joint_types)
        self._joint_names, self._is_held = names, is_held
        self._go_on(at)
        return is_stopped

    def clear(self, reason: str) -> bool:
        """Drop everything; return whether a motion has been stopped."""
        self._forget_all(reason)
        self._following.forget()
        self._ahead.clear()
        return self._end()

    def _end(self, is_lost: bool = False) -> bool:
        """Drop all motions; return whether there was one."""
        self._is_lost, self._sampled = is_lost, None
        return self.timeline.clear()

    def sample(self, at: Instant) -> tuple[PlannedMotion, int] | None:
        """Motion in progress and the time [ns] to sample it at; its end comes exactly once."""
        due = self.timeline.sample(at.now)
        if due is not None:
            self._sampled = due[0]
        if not self.timeline:
            self._sampled = None
        self._go_on(at)
        return due

    def observe(self, position: Array, time: int) -> str:
        """Compare a measured position (n,) of a time [ns] with the motion.

        Returns
        -------
        str
            Why the stream is lost, if it is from now on: nothing more is sent, and the next motion
            begins where the robot is measured. Empty otherwise.
        """
        settings = self._settings()
        if not settings.path_tolerance:
            self._following.forget()
            return ''
        planned = self.timeline.under_way(time)
        lasted = self._following.lasts(planned, position, time, settings.path_tolerance)
        is_lost = lasted and lasted >= round(PATH_TIME * NANOSECONDS)
        return self._lose() if is_lost else ''

    def _lose(self) -> str:
        """Send nothing more; return why."""
        self.why_lost = (
            f'The robot does not follow: {self._following.why}. Was its controller switched off, '
            'or its motion aborted? Nothing more is sent; the next motion begins where the robot '
            'is measured.'
        )
        self._forget_all(self.why_lost)
        self._following.forget()
        self._end(is_lost=True)
        return self.why_lost

    # Trajectories

    def take(self, request: Request, at: Instant) -> str:
        """Take a trajectory, or a stop; without a robot it waits for one that is on its way.

        It takes the place of those that wait to be planned and would begin at its start or later.

        Returns
        -------
        str
            As of `observe`: a trajectory that would continue a motion from which the robot is too
            far already begins where the robot is measured instead.
        """
        item = _Trajectory(request, request.stamp or at.now, at)
        is_off = self._following.is_away and not item.is_stop
        lost = self._lose() if is_off and self.timeline else ''
        if item.is_stop and item.start <= at.now:
            self._forget_all(_STOPPED, True)
        for older in [older for older in self._waiting if self._gives_way(older, item)]:
            self._waiting.remove(older)
            self._refuse(older, OVERTAKEN, True)
        if len(self._waiting) >= MOST_WAITING:
            reason = f'More than {MOST_WAITING} newer trajectories wait to be planned.'
            self._refuse(self._waiting.popleft(), reason)
        self._waiting.append(item)
        self._go_on(at)
        return lost

    @staticmethod
    def _gives_way(older: _Trajectory, newer: _Trajectory) -> bool:
        """Whether the newest wins: nothing would be seen of what waits before it."""
        if older.topic == newer.topic == CHUNK:
            return True
        if older.is_stop or newer.is_stop:
            return False
        return older.start >= newer.start or older.start <= newer.arrival.now >= newer.start

    def waiting(self, at: Instant) -> tuple[int, float]:
        """How many trajectories have no plan yet, and for how long the first one waits [s]."""
        items = self._unplanned()
        waits = (at.steady - item.arrival.steady for item in items)
        return len(items), max(waits, default=0.0)

    def drop_overdue(self, is_planning: bool, at: Instant, is_ready: bool = True) -> None:
        """Drop what should have begun long ago; what is being planned only if nobody plans it.

        Parameters
        ----------
        is_planning : bool
            Whether the planner does what it is told.
        at : Instant
        is_ready : bool
            Whether it has the robot; the time until then is none that a trajectory has waited.
        """
        since, self._looked = self._looked, at.steady
        for item in [] if is_ready else self._unplanned():
            item.planning += at.steady - max(since, item.arrival.steady)
        task, is_planned = self._open, is_planning and is_ready
        if task is not None and (why := self._overdue(task, at, is_planned)):
            self._forget_open(why)
        for item in list(self._waiting):
            if why := self._overdue(item, at):
                self._waiting.remove(item)
                self._refuse(item, why)
        self._go_on(at)

    def long_planning(self, at: Instant, is_ready: bool = True) -> str:
        """Sentence on a trajectory that takes long to plan, after 2 s, 4 s and so on; or empty.

        Parameters
        ----------
        at : Instant
        is_ready : bool
            Whether the planner has the robot.
        """
        item = self._open
        waited = 0.0 if item is None else at.steady - item.arrival.steady
        if item is None or waited < max(LONG_PLANNING, 2.0 * item.told):
            return ''
        item.told = waited
        what = f'{item.topic}: a trajectory of {len(item.request.data)} bytes is not planned yet, '
        cause = '' if is_ready else ' The planning process is still being made ready.'
        bound = f' Older than {OLDEST_START:g} s it does not begin.'
        return (
            f'{what}{waited:.1f} s after it came.{cause}{bound * (not item.request.stamp)}'
        )

    def _unplanned(self) -> list[_Trajectory]:
        return [*self._waiting, *([] if self._open is None else [self._open])]

    def _overdue(self, item: _Trajectory, at: Instant, is_planned: bool = False) -> str:
        """Why a trajectory is not to begin any more, since nobody expects it; empty if it is.

        Of one that is being planned, only its age counts.
        """
        age = at.steady - item.arrival.steady
        if item.is_stop:  # never too late
            return ''
        if age > OLDEST_START and not item.request.stamp:
            return (
                f'It came {age:.1f} s ago and was to begin at once. It is not planned yet, and '
                f'older than {OLDEST_START:g} s it does not begin any more. Send fewer points, '
                'or a stamp at which it is to begin.'
            )
        ahead = max(item.start - item.arrival.now, 0) / NANOSECONDS
        late = age - item.planning - ahead
        most = self._settings().trajectory_timeout
        if is_planned or late <= most:
            return ''
        return (
            f'It should have begun, but has waited for {late:.1f} s to be planned, more than '
            f'trajectory_timeout ({most:g} s), and does not begin any more; send it again.'
        )

    def _go_on(self, at: Instant) -> None:
        """Have the next trajectory planned, if there is one and a robot for it."""
        if self._joint_names is None and not self._is_held:
            self._forget_all('There is no robot model.')
        if self._joint_names is not None:
            self._let_stop_pass(at)
        while self._open is None and self._waiting and self._joint_names is not None:
            if self._is_ahead(at.now) and not self._waiting[0].is_stop:
                return
            item = self._waiting.popleft()
            if why := self._overdue(item, at):
                self._refuse(item, why)
            elif item.is_stop:
                self._stop(self._joint_names, item.start, at.now)
            else:
                lead = self.leads.of(item.topic, len(item.request.data))
                self._send(item, lead, at)

    def _let_stop_pass(self, at: Instant) -> None:
        """Drop what comes before a stop that can wait no longer, whatever the planner does."""
        due = [item.is_stop and self._is_due(item, at) for item in self._waiting]
        if any(due):
            self._forget_open(_STOPPED, True)
            for _ in range(due.index(True)):
                self._refuse(self._waiting.popleft(), _STOPPED, True)

    def _is_due(self, stop: _Trajectory, at: Instant) -> bool:
        """Whether a stop would come too late if it waited for what is being planned."""
        lead = SHORTEST_LEAD + self.leads.of_stop
        if stop.start <= at.now + round(lead * NANOSECONDS):
            return True
        state = self.timeline.state(stop.start)
        if not self.timeline or (state and state.in_progress):
            return False
        # It is for when nothing that is known moves any more.
        return at.steady - stop.arrival.steady >= _PATIENCE

    def _is_ahead(self, now: int) -> bool:
        """Whether the controller has as many motions that have not begun as it bears."""
        self._ahead = [first for first in self._ahead if first > now]
        return sum(first <= now + _SOON for first in self._ahead) >= MOST_AHEAD

    def _send(self, item: _Trajectory, lead: float, at: Instant) -> None:
        """Have a trajectory planned, to begin after a lead [s] where it has to join a motion."""
        measured = self._measured(at.now)
        start, join = self._begin(item, lead, at.now, measured is not None)
        known = self._known(at.now, join, measured)
        is_chunk, has_stamp = item.topic == CHUNK, bool(item.request.stamp)
        self._numbers += 1
        item.number, item.sent, item.tries = self._numbers, at, item.tries + 1
        item.is_joined = is_chunk or (known is not None and known.in_progress)
        item.is_known = known is not None
        self._open = item
        current = self.timeline.under_way(join) if is_chunk else None
        latest, data = at.now if has_stamp else item.arrival.now, item.request.data
        task = Task(item.number, data, start, latest, known, join, item.topic, current)
        self._planner.plan(task)

    def _begin(
        self, item: _Trajectory, lead: float, now: int, is_measured: bool
    ) -> tuple[int, int]:
        """When the time of a trajectory is zero, and when its motion begins or joins [ns]."""
        is_chunk, has_stamp = item.topic == CHUNK, bool(item.request.stamp)
        start = item.start if has_stamp else now
        join, earliest = max(start, now), now + round(lead * NANOSECONDS)
        begun = self.timeline.state(join)
        moves = begun is not None and begun.in_progress
        # What has been taken and begins before this one can.
        moves = moves or self.timeline.moves_between(join, earliest)
        if is_chunk or moves or (has_stamp and (is_measured or begun is not None)):
            join = max(join, earliest)
        if is_chunk:  # All motions of chunks have their knots at the same times.
            join += -join % round(CHUNK_STEP * NANOSECONDS)
        if not has_stamp and (is_chunk or moves):
            start = join  # nothing of it is left out, nor hurried
        return start, join

    def _known(self, now: int, join: int, measured: State | None) -> State | None:
        """State of the joints when a motion begins [ns], as far as it is known."""
        known = self.timeline.state(join)
        if (known and known.in_progress) or self.timeline.moves_between(now, join):
            return known
        # What is measured now is where the robot will be if nothing moves it until then.
        if measured and (known is None or measured.time >= known.time):
            return measured
        return known

    def on_plan(self, plan: Plan, at: Instant) -> None:
        """Carry out a plan, or have it made again if it has come too late to be joined."""
        item = self._open
        if item is None or plan.number != item.number:
            return  # overtaken by a stop or by a jump of time
        self._open, plan = None, plan._replace(topic=item.topic)
        item.planning += plan.duration
        if plan.planned is not None:
            try:
                taken = self._taken(plan, plan.planned, item, at)
            except TrajectoryError as error:
                taken = plan._replace(planned=None, error=str(error))
            if taken is None:
                return
            plan = taken
        self._is_lost = self._is_lost and plan.planned is None
        self._done(plan)
        self._go_on(at)

    def _taken(
        self, plan: Plan, planned: PlannedMotion, item: _Trajectory, at: Instant
    ) -> Plan | None:
        """Plan that is on the timeline, at its time or as soon as possible.

        None if it is being made again. A TrajectoryError refuses it.
        """
        if why := self._overdue(item, at):
            raise TrajectoryError(why)
        self.leads.note_plan(plan.duration, len(item.request.data))
        is_chunk, has_stamp = item.topic == CHUNK, bool(item.request.stamp)
        delivery = 0.0 if is_chunk else self.leads.delivery
        earliest = at.now + round(delivery * NANOSECONDS)
        if planned.first < earliest:
            # With a stamp a motion is as late as it is, unless it is to go on from somewhere.
            is_bound = item.is_known if has_stamp else item.is_joined
            if is_bound or self.timeline.moves_between(planned.first, earliest):
                elapsed = (at.now - item.sent.now) / NANOSECONDS
                if item.tries < _MOST_TRIES:
                    self._send(item, 2.0 * max(elapsed, SHORTEST_LEAD) + delivery, at)
                    return None
                raise TrajectoryError(
                    f'Planning took {elapsed:.3g} s, again and again longer than expected: the '
                    'motion in progress has gone on meanwhile.'
                )
            if not has_stamp:
                planned = planned._replace(start=planned.start + earliest - planned.first)
        dropped = self.timeline.add(planned)
        self._planner.accept(plan.number, planned.start)
        # A chunk is streamed only.
        if self._has_controller and not is_chunk:
            self._ahead.append(planned.first)
        remark = (f'It replaces {dropped} that had not begun.',) if dropped else ()
        return plan._replace(planned=planned, remarks=(*plan.remarks, *remark))

    def _stop(self, names: tuple[str, ...], wanted: int, now: int) -> None:
        """Bring the motion to rest from a time on; nothing that came before starts any more.

        Whatever the time is: a stop for when nothing moves any more takes place at once.
        """
        duration, timeline = self._settings().stop_duration, self.timeline
        lead = round(self.leads.of_stop * NANOSECONDS) if duration else 0
        time = max(wanted, now + lead)
        warnings: tuple[str, ...] = ()
        state = timeline.state(time)
        if wanted > now + lead and not (state and state.in_progress) and timeline:
            # Nobody who stops a robot wants it to go on.
            warnings = (
                f'The stop has a stamp {(wanted - now) / NANOSECONDS:.3f} s ahead, when no motion '
                'is in progress: the robot is stopped now.',
            )
            time = now + lead
            state = timeline.state(time)
        if self._has_controller and not (state and state.in_progress):
            state = self._at_rest(state, time)
        planned = None
        if state is None or not state.in_progress:
            timeline.cut(time)  # motions that are over by then are left alone
            remark = 'An empty trajectory: there is nothing to stop.'
            if last := timeline.under_way(now):
                left = (last.last - now) / NANOSECONDS
                remark = f'An empty trajectory: the motion ends by itself in {left:.3f} s.'
        elif (
            self._stop_motion is not None and timeline.under_way(time) is self._stop_motion
        ):
            timeline.drop_behind(time)
            remark = 'The motion is being brought to rest already.'
        elif not duration:
            timeline.cut(time)
            remark = 'An empty trajectory ends the stream.'
        else:
            motion = stop_within(self._limits, state.motion, duration)
            planned = PlannedMotion(names, motion, time, motion.continuous_derivative)
            timeline.add(planned)
            self._stop_motion = planned
            remark = 'An empty trajectory brings the motion to rest.'
            self._planner.publish(planned, remark)
        self._done(Plan(0, planned, (remark,), warnings))

    def _at_rest(self, state: State | None, time: int) -> State | None:
        """State from which to stop a controller that has motions which begin after a time [ns].

        It holds where the first of them begins. Without such motions the state stays as it is.
        """
        later = self.timeline.later(time)
        if later is None:
            return state
        rest = later.at(later.first)[0] if state is None else state.motion[0]
        return State(at_rest(rest), True, time, 'before the next motion')

    def _forget_all(self, reason: str, is_wanted: bool = False) -> None:
        """Drop what is not planned yet."""
        self._forget_open(reason, is_wanted)
        while self._waiting:
            self._refuse(self._waiting.popleft(), reason, is_wanted)

    def _forget_open(self, reason: str, is_wanted: bool = False) -> None:
        item, self._open = self._open, None
        if item is not None:
            self._refuse(item, reason, is_wanted)

    def _refuse(self, item: _Trajectory, reason: str, is_wanted: bool = False) -> None:
        """Report that a trajectory does not begin; if that is wanted, it is no refusal."""
        error, remarks = ('', (reason,)) if is_wanted else (reason, ())
        self._done(Plan(0, None, remarks, error=error, topic=item.topic))


def stop_within(limits: MotionLimits | None, state: Array, duration: float) -> MotionSpline:
    """Motion to rest within limits, in a time near the one that is wanted.

    If none of some times does, the one whose motion exceeds its limits least. What the state
    exceeds already counts as its limit.

    Parameters
    ----------
    limits : MotionLimits, optional
    state : ndarray, shape (5, n)
        Position to snap [rad/s^k] or [m/s^k].
    duration : float
        [s]
    """
    found: list[tuple[float, MotionSpline]] = []
    if limits is None:
        return stop_motion(state, duration)
    most = np.maximum(
        (limits.velocity, limits.acceleration, limits.jerk), np.abs(state[1:4])
    )
    lower, upper = np.minimum(limits.lower, state[0]), np.maximum(limits.upper, state[0])
    for part in _STOPS:
        motion = stop_motion(state, part * duration)
        samples = np.abs(motion(_LOOKS * motion.duration, 3)[:, 1:])
        extremes = position_extremes(motion)
        beyond = np.maximum(lower - extremes.lowest, extremes.highest - upper)
        excess = max(
            float(np.max(samples / np.maximum(most, 1e-9))) - 1.0, float(beyond.max())
        )
        found.append((excess, motion))
        if excess <= _ROUNDING:
            break
    return min(found, key=lambda item: item[0])[1]
