"""A stream of motions with all that is around it, on a virtual clock: no ROS, no threads.

A planner that takes its time, a model of joint_trajectory_controller that knows nothing of this
package, and a robot that follows its controller, or stands still while that is switched off. Every
millisecond the stream is sampled, and what is commanded is compared with the sample.
"""

from __future__ import annotations

import pickle
from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from support import robots
from support.jtc_model import Jtc, Point

from hodyn_ros import HodynError, RobotModel
from hodyn_ros.analysis import controller_trajectory, motion_limits
from hodyn_ros.retiming import splice
from hodyn_ros.streams import (
    Instant,
    MotionStream,
    Plan,
    PlannedMotion,
    Request,
    ScaledClock,
    State,
    plan_from_state,
)
from hodyn_ros.trajectory import StartState, Waypoints

MS, SECOND = 1_000_000, 1_000_000_000
TOLERANCE = 0.05  # of the efforts of what is sent to the controller [N m]
LOOK_PERIOD, OBSERVE_PERIOD, SPACING = 250 * MS, 10 * MS, 2 * MS
CHUNK = 'position_chunk'
LEAD_IN = 10 * MS  # between the stamp of what is sent and its first point

PLANNING = {
    'max_trajectory_points': 1000,
    'stop_duration': 0.5,
    'trajectory_timeout': 2.0,
    'path_tolerance': 0.0,
}

# With every new trajectory the controller lags by a cycle behind the old one until the new one
# begins, and where it goes over it makes polynomials of its own.
LAG, SWING = 2e-3, 2e-3  # s, rad
# While the speed is scaled, times of motions that are on their way are off by that of sending, and
# where a controller sets out with the speed of the robot, that is not the one of its trajectory.
SCALED_SWING = 0.02


@lru_cache(maxsize=1)
def model():
    return RobotModel.from_urdf(robots.TWO_LINK)


class Delays(NamedTuple):
    """Longest times that planning and sending take [ns]; whether they always take them."""

    planning: int = 60 * MS
    sending: int = 9 * MS
    is_fixed: bool = False


class World:
    """Time goes on by `pass_time`; everything else happens at once.

    `broken` says what did not hold, `samples` has all that was streamed, stamps [ns] and motions
    (5, n), in unbroken runs; `plans` what was answered to trajectories; `late` counts those that
    the controller had after their first point; `said` is why the robot was lost. `scale` sets
    the speed of the controller; stamps of samples are by the time of the stream.
    """

    def __init__(
        self,
        seed=0,
        delays=Delays(),  # noqa: B008
        *,
        has_controller=True,
        model=model(),  # noqa: B008
        given_limits=None,
        start=None,
        blends=True,
        **settings,
    ):
        self.blends, self.clock, self.swing = blends, ScaledClock(), SWING
        self.rng, self.delays = np.random.default_rng(seed), delays
        self.model, self.limits = model, motion_limits(model, given_limits or {})
        self.now, self.steady = 1000 * SECOND, 0.0
        self.deliveries = []  # (time, call)
        self.tasks, self.open_task, self.made = [], None, {}  # (time, task, delay)
        self.hangs = False
        self.position = np.zeros(model.n_joints) if start is None else np.array(start)
        self.velocity = np.zeros(model.n_joints)
        self.has_controller = has_controller
        self.jtc, self.is_off_path = None, False
        self.sent = self.late = self.arrival = 0
        self.broken = []
        self.firsts = []  # of what the controller has [ns]
        self.effort_bound = self.limits.effort.copy()
        self.plans, self.samples, self.said = [], [[]], ''
        self.settings = SimpleNamespace(**{**PLANNING, 'path_tolerance': 0.2, **settings})
        self.stream = MotionStream(
            self, lambda: self.settings, self._measured, self.plans.append, has_controller
        )
        self.stream.follow(self, False, self.at)
        self.activate()

    @property
    def at(self):
        return Instant(self.clock.at(self.now), self.steady)

    @property
    def state(self):
        return self.stream.state

    @property
    def waits(self):
        return self.stream.waiting(self.at)[0]

    @property
    def refusals(self):
        return [plan.error for plan in self.plans if plan.error]

    @property
    def taken(self):
        return [plan for plan in self.plans if plan.planned is not None]

    def _measured(self, now):
        motion = np.full((5, len(self.position)), np.nan)
        motion[:2] = self.position, self.velocity
        if not self.velocity.any():
            motion[1:] = 0.0
        return State(motion, False, self.at.now, 'as measured')

    # What users do

    def send(self, positions, times, stamp=0, topic='joint_trajectory'):
        data = pickle.dumps(
            (np.array(positions, dtype=float), np.array(times, dtype=float))
        )
        self._take(Request(data, stamp, topic))

    def stop(self, stamp=0):
        self._take(Request(b'', stamp))

    def _take(self, request):
        if not (self.stream.timeline or self.waits):
            self.clock.restart(self.now)
        stamp = request.stamp and request.stamp - self.clock.delay(self.now)
        self.stream.take(request._replace(stamp=stamp), self.at)

    def scale(self, speed):
        """Have the controller go on at a speed."""
        self.clock.take(100.0 * speed, self.now)
        self.jtc.speed, self.swing = speed, SCALED_SWING

    def deactivate(self):
        """The controller is switched off: the robot stands still at once."""
        self.is_active, self.jtc = False, None
        self.velocity = np.zeros_like(self.velocity)

    def activate(self):
        self.is_active = True
        self.is_off_path = bool(self.samples[-1])
        if self.has_controller and self.jtc is None:
            names = self.model.joint_names
            interfaces = 'position', 'effort'
            self.jtc = Jtc(names, MS, interfaces=interfaces, blends=self.blends)
            self.jtc.speed = self.clock.speed

    def kill_planner(self):
        """The process ends, and is there again at once."""
        self.tasks.clear()
        self.hangs, task, self.open_task = False, self.open_task, None
        if task is not None:
            self.stream.on_plan(Plan(task.number, None, error='has ended'), self.at)

    def hang_planner(self):
        self.hangs = True

    # What the stream asks for

    def plan(self, task):
        self.open_task = task
        delay = self._delay(self.delays.planning)
        self.tasks.append((self.now + delay, task, delay))

    def _delay(self, longest):
        return longest if self.delays.is_fixed else int(self.rng.integers(MS, longest))

    def _plan(self, task, delay):
        if task is self.open_task:  # others are overtaken, and come all the same
            self.open_task = None
        self.stream.on_plan(self._planned(task, delay), self.at)

    def _planned(self, task, delay):
        try:
            make = self._chunk if task.topic == CHUNK else self._trajectory
            made = make(task, *pickle.loads(task.data))
        except HodynError as error:
            return Plan(task.number, None, error=str(error))
        if made.last <= task.now:
            return Plan(task.number, None, error='it has ended')
        self.made[task.number] = made, task.known
        return Plan(task.number, made, duration=delay / SECOND)

    def _trajectory(self, task, positions, times):
        start, names = None, self.model.joint_names
        if task.known is not None:
            seconds = (task.known_time - task.start) / SECOND
            start = StartState(seconds, task.known.motion, task.known.in_progress)
        plan = plan_from_state(
            self.model,
            self.limits,
            Waypoints(names, times, positions),
            start=start,
            tolerance=self.settings.path_tolerance,
        )
        return PlannedMotion(names, plan.motion, task.start, plan.continuous_derivative)

    def _chunk(self, task, positions, times):
        names, join = self.model.joint_names, task.known_time
        # All times are those of the motion in progress.
        begin = join if task.current is None else task.current.start
        motion = splice(
            self.model,
            self.limits,
            Waypoints(names, times + (task.start - begin) / SECOND, positions),
            task.known.motion[0] if task.current is None else task.current.motion,
            (join - begin) / SECOND,
            step=0.01,
        )
        return PlannedMotion(names, motion, join, motion.continuous_derivative)

    def accept(self, number, start):
        made, known = self.made.pop(number)
        motion = PlannedMotion(
            made.joint_names, made.motion, start, made.continuous_derivative
        )
        if known is not None:
            rows = 5 if known.in_progress else 1
            jump = np.abs(motion.at(motion.first)[:rows] - known.motion[:rows])
            size = 1.0 + np.abs(known.motion[:rows])
            is_joined = (jump <= 1e-9 * size).all()
            self._expect(is_joined, 'a motion begins elsewhere than the one before is')
        self._deliver(motion)

    def publish(self, planned, remark):
        self._deliver(planned)

    def _deliver(self, planned):
        self.sent += 1
        if not self.has_controller:
            return
        now, behind = self.at.now, self.clock.delay(self.now)
        soon = now + SECOND // 2
        # It takes the place of those that would begin after it.
        waiting = [t for t in self.firsts if now < t < planned.first]
        self.firsts = [*waiting, planned.first] if planned.first > now else waiting
        ahead = sum(first < soon for first in self.firsts)
        self._expect(
            ahead <= 3, 'the controller has more than two motions ahead, and a stop'
        )
        points = controller_trajectory(self.model, planned.motion, TOLERANCE)
        self.effort_bound = np.maximum(self.effort_bound, np.abs(points.effort).max(axis=0))
        # One after the other, and not in one cycle, in which the controller would drop the first.
        soonest = self.now + self._delay(self.delays.sending)
        self.arrival = max(self.arrival + SPACING, soonest)
        delay = self.arrival - self.now

        due = stamp = planned.first + behind - LEAD_IN
        if self.clock.speed != 1.0:
            stamp = min(stamp, self.now)

        def arrive():
            self.stream.leads.note_delivery(delay / SECOND)
            self.late += due < self.now
            if self.jtc is None:
                return
            rows = zip(points.times, points.motion, points.effort)
            sent = [
                Point(
                    round(time * SECOND) + planned.start + behind - stamp, *motion, effort
                )
                for time, motion, effort in rows
            ]
            self.jtc.take_points(sent, stamp, self.now)

        self.deliveries.append((self.arrival, arrive))

    # Time

    def pass_time(self, seconds):
        for _ in range(round(1000 * seconds)):
            self._step()

    def look(self, time):
        """Go on to a time at once; return the motion that is streamed then, or None."""
        self.steady += max(time - self.now, 0) / SECOND
        self.now = time
        due = self.stream.sample(self.at)
        return None if due is None else due[0].at(due[1])

    def jump_back(self, seconds):
        """The clock is set back; nothing of before is true any more."""
        self.stream.clear('time jumped')
        self.tasks, self.deliveries, self.firsts = [], [], []
        self.arrival, self.open_task, self.made = 0, None, {}
        self.samples.append([])
        self.now -= round(seconds * SECOND)
        self.clock = ScaledClock()
        self.deactivate()
        self.activate()

    def _step(self):
        self.now += MS
        self.steady += 1e-3
        for _, call in self._due(self.deliveries):
            call()
        for _, task, delay in [] if self.hangs else self._due(self.tasks):
            self._plan(task, delay)
        if not self.now % LOOK_PERIOD:
            self.stream.drop_overdue(not self.hangs, self.at)
            if self.hangs and self.rng.random() < 0.1:
                self.kill_planner()
        if not self.now % OBSERVE_PERIOD:
            self.said = self.stream.observe(self.position, self.at.now) or self.said
        self._sample()
        if self.jtc is not None:
            self._execute()

    def _due(self, items):
        """Take what is due out of a list of tuples that begin with a time [ns]."""
        due = [item for item in items if item[0] <= self.now]
        items[:] = [item for item in items if item[0] > self.now]
        return sorted(due, key=lambda item: item[0])

    def _sample(self):
        due = self.stream.sample(self.at)
        if due is None:
            self.is_off_path = self.is_off_path and self.state not in ('idle', 'lost')
            if self.samples[-1]:
                self.samples.append([])
            return
        planned, stamp = due
        motion = planned.at(stamp)
        run = self.samples[-1]
        if not run or stamp > run[-1][0]:  # or the controller stands
            run.append((stamp, motion))
        if stamp == planned.last:  # the next one begins where the robot is
            self.samples.append([])
        if not self.has_controller and self.is_active:
            self.position, self.velocity = motion[:2]
        elif self.jtc is not None and not self.is_off_path:
            away = np.abs(self.position - motion[0]) - LAG * np.abs(motion[1])
            self._expect(
                away.max() <= self.swing, 'what is commanded is not what is streamed'
            )

    def _execute(self):
        """Command of the next cycle, which the robot carries out."""
        command = self.jtc.update(self.now, self.position, self.velocity)
        position, effort = command['position'], command['effort']
        self.velocity = (position - self.position) * 1e3
        self.position = position
        is_kept = (np.abs(effort) <= 1.05 * self.effort_bound).all()
        self._expect(is_kept, 'an effort is beyond its limit and the motions')

    # What is judged

    def _expect(self, holds, text):
        if not holds:
            self.broken.append(text)

    @property
    def runs(self):
        """Stamps (N,) [s] and motions (N, 5, n) of each unbroken run of samples."""
        found = [list(zip(*run)) for run in self.samples if len(run) > 1]
        return [(1e-9 * np.array(stamps), np.array(rows)) for stamps, rows in found]

    def defects(self):
        """By how much samples differ from the integrals of their derivatives, (4,).

        As parts of the largest derivative in the run: trapezoids with the correction of Euler and
        Maclaurin, and without it for the snap. A jump in any of them shows.
        """
        found = np.zeros(4)
        for times, x in self.runs:
            h = np.diff(times)[:, None]
            for k in range(4):
                made = 0.5 * h * (x[1:, k + 1] + x[:-1, k + 1])
                if k < 3:
                    made -= h**2 / 12.0 * (x[1:, k + 2] - x[:-1, k + 2])
                size = h * max(np.abs(x[:, k + 1]).max(), 1e-3)
                found[k] = max(found[k], (np.abs(x[1:, k] - x[:-1, k] - made) / size).max())
        return found
