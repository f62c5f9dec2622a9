"""The input of trajectories: one after the other they are planned and put on the timeline.

By the rules of joint_trajectory_controller a new trajectory replaces the one in progress and an
empty one stops. Here both happen without a jump in the first four derivatives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hodyn_ros.errors import MessageError, ModelError, SizeError, TrajectoryError
from hodyn_ros.ros.cdr import MOST_NAMES, TrajectoryHead, trajectory_head
from hodyn_ros.ros.conversions import NANOSECONDS, checked_time
from hodyn_ros.ros.planner import Plan, Task
from hodyn_ros.ros.planning import Planner
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.timeline import PlannedMotion, State, Timeline
from hodyn_ros.trajectory.stopping import stop_motion

# Trajectories that wait for the one before them; of a flood the oldest give way.
MOST_WAITING = 16

# Time for planning while a motion goes on, which the new one must meet at its end [s].
SHORTEST_LEAD = 0.02
# First guess of the time that planning takes per byte of the message [s].
_TIME_PER_BYTE = 1e-6
# What remains of it with every plan that takes less.
_FORGETTING = 0.7
_MOST_TRIES = 4


class _Waiting(NamedTuple):
    data: bytes
    """Empty: the motion is to stop."""
    has_stamp: bool
    """Whether it says when it starts; otherwise that is now."""
    start: int
    arrival: int


class _Open(NamedTuple):
    """The trajectory that is being planned."""

    waiting: _Waiting
    number: int
    sent: int
    tries: int
    is_joined: bool
    """Whether it is to continue a motion in progress."""


class TrajectoryInput:
    """Takes trajectories in the thread of the executor; plans come back into the same thread.

    Parameters
    ----------
    planner : Planner
    clock : callable
        Returns the time of the node [ns].
    settings : callable
        Returns the settings in use.
    measured : callable
        Takes a time [ns] and returns the measured state of the joints near it, or None.
    done : callable
        Is called with what has become of every trajectory.
    """

    def __init__(
        self,
        planner: Planner,
        clock: Callable[[], int],
        settings: Callable[[], Settings],
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
        """Plan for a robot with these joints from now on.

        Parameters
        ----------
        names : tuple of str or None
            None if there is no robot.
        is_held : bool
            Whether trajectories wait until there is one.

        Returns
        -------
        bool
            Whether a motion has been stopped, since it was for other joints.
        """
        was_stopped = False
        if names != self._joint_names:
            was_stopped = self.timeline.clear()
            if self._joint_names is not None:
                self._forget_open('The robot has been replaced by one with other joints.')
        self._joint_names, self._is_held = names, is_held
        self._go_on()
        return was_stopped

    def clear(self, reason: str) -> bool:
        """Drop everything; return whether a motion has been stopped."""
        self._forget_all(reason)
        return self.timeline.clear()

    def take(self, data: bytes) -> None:
        """Take a serialized trajectory.

        Raises
        ------
        HodynError
            If it cannot be used, as far as that can be told at once.
        """
        try:
            head = trajectory_head(data)
        except ValueError as error:
            raise MessageError(f'The message cannot be unpacked: {error}.') from error
        self._check_size(head)
        if self._joint_names is None and not self._is_held:
            raise ModelError(
                'There is no robot model yet; publish a valid URDF on the topic '
                'robot_description or set the parameter robot_description.'
            )
        arrival = self._clock()
        stamp = checked_time(head.seconds, head.nanoseconds)
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

    def _in_progress(self, time: int) -> bool:
        state = self.timeline.state(time)
        return state is not None and state.in_progress

    def _go_on(self) -> None:
        """Have the next trajectory planned, if there is one and a robot for it."""
        if self._joint_names is None and not self._is_held:
            self._forget_all('There is no robot model.')
        while self._open is None and self._waiting and self._joint_names is not None:
            waiting = self._waiting.popleft()
            if waiting.data:
                lead = SHORTEST_LEAD + 2.0 * self._time_per_byte * len(waiting.data)
                self._send(waiting, 1, lead)
            else:
                self._stop(waiting.start)

    def _send(self, waiting: _Waiting, tries: int, lead: float) -> None:
        now = self._clock()
        joined = max(waiting.start, waiting.arrival)
        if self._in_progress(max(joined, now)):
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

    def _stop(self, time: int) -> None:
        """Bring the motion to rest from a time on; nothing that came before starts any more."""
        now = self._clock()
        time = max(time, now)
        names, duration = self._joint_names, self._settings().stop_duration
        state = self.timeline.state(time)
        if names is None or state is None or not state.in_progress:
            self.timeline.cut(time)  # motions that are over by then are left alone
            self._done(Plan(0, None, ('An empty trajectory: there is nothing to stop.',)))
            return
        if self.timeline.under_way(time) is self._stopping:
            self.timeline.drop_behind(time)
            self._done(Plan(0, None, ('The motion is being brought to rest already.',)))
            return
        if not duration:
            self.timeline.cut(time)
            self._done(Plan(0, None, ('An empty trajectory ends the stream.',)))
            return
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
        plan = Plan(0, None, (reason,)) if wanted else Plan(0, None, error=reason)
        self._done(plan)
