"""A stream of motions with all that is around it, on a virtual clock: no ROS, no threads.

A planner that takes its time, a model of joint_trajectory_controller that knows nothing of this
package, and a robot that follows its controller, or stands still while that is switched off.
Every millisecond it is checked that what is commanded is what the stream plans.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from support import robots
from support.jtc_model import Jtc, Point

from hodyn_ros import RobotModel
from hodyn_ros.analysis.sampling import controller_trajectory
from hodyn_ros.errors import HodynError
from hodyn_ros.model.limits import motion_limits
from hodyn_ros.streams.joining import plan_from_state
from hodyn_ros.streams.motion_stream import LEAD_IN, Instant, MotionStream, Plan, Request
from hodyn_ros.streams.timeline import PlannedMotion, State
from hodyn_ros.trajectory.planning import StartState, Waypoints

MS, SECOND = 1_000_000, 1_000_000_000
NAMES = ('shoulder', 'elbow')
TOLERANCE = 0.05  # of their efforts [N m]
SETTINGS = {
    'stop_duration': 0.5,
    'trajectory_timeout': 2.0,
    'path_tolerance': 0.2,
    'path_time': 0.2,
    'chunk': SimpleNamespace(step=0.01),
}
LOOK_PERIOD = 250 * MS
STREAM_PERIOD = 10 * MS
SPACING = 2 * MS

# With every new trajectory the controller lags by a cycle behind the old one until the new one
# begins, and where it goes over it makes polynomials of its own.
LAG, SWING = 2e-3, 2e-3  # s, rad


@lru_cache(maxsize=1)
def model():
    return RobotModel.from_urdf(robots.TWO_LINK)


class Delays(NamedTuple):
    """Longest times that planning and sending take [ns]."""

    planning: int = 60 * MS
    sending: int = 9 * MS


class World:
    """Time goes on by `pass_time`; everything else happens at once.

    `late` counts trajectories that the controller had after their first point.
    """

    def __init__(self, seed=0, delays=None):
        self.rng = np.random.default_rng(seed)
        self.delays = delays or Delays()
        self.model, self.limits = model(), motion_limits(model())
        self.now, self.steady = 1000 * SECOND, 0.0
        self.events = []  # (time, call)
        self.requests = {}
        self.plans = {}
        self.planner = 'runs'
        self.open_task = None
        self.position, self.velocity = np.zeros(2), np.zeros(2)
        self.jtc = self._controller()
        self.sent = self.late = self.arrival = 0
        self.largest = {'away': 0.0, 'effort': 0.0, 'step': 0.0, 'joint': 0.0}
        self.effort_bound = self.limits.effort.copy()
        self.done = []
        self.is_off_path = False  # its controller has been switched off amid a motion
        self.stream = MotionStream(
            self, lambda: self.settings, self._measured, self._on_done, has_controller=True
        )
        self.settings = SimpleNamespace(**SETTINGS)
        self.stream.follow(self, False, self.at)

    def _controller(self):
        return Jtc(NAMES, MS, interfaces=('position', 'effort'))

    @property
    def at(self):
        return Instant(self.now, self.steady)

    def _measured(self, now):
        motion = np.full((5, 2), np.nan)
        motion[0] = self.position
        motion[1] = self.velocity
        if not self.velocity.any():
            motion[1:] = 0.0
        return State(motion, False, self.now, 'as measured')

    def _on_done(self, plan):
        self.done.append(plan)

    # What users do

    def send(self, positions, times, stamp=0):
        data = len(self.requests).to_bytes(8, 'little') + bytes(100 * len(times))
        self.requests[data] = np.array(positions, dtype=float), np.array(times, dtype=float)
        self.stream.take(Request(data, stamp), self.at)

    def stop(self, stamp=0):
        self.stream.take(Request(b'', stamp), self.at)

    def deactivate(self):
        """The controller is switched off: the robot stands still at once."""
        if self.jtc is not None:
            self.jtc = None
            self.velocity = np.zeros(2)

    def activate(self):
        if self.jtc is None:
            self.jtc = self._controller()
            self.is_off_path = bool(self.stream.timeline)

    def kill_planner(self):
        """The process ends, and is there again at once."""
        self.events = [item for item in self.events if item[2] != 'plan']
        task, self.open_task = self.open_task, None
        if task is not None:
            self.stream.on_plan(Plan(task.number, None, error='has ended'), self.at)
        self.planner = 'runs'

    def hang_planner(self):
        self.planner = 'hangs'

    # What the stream asks for

    def plan(self, task):
        self.open_task = task
        delay = int(self.rng.integers(MS, self.delays.planning))
        self.events.append((self.now + delay, lambda: self._plan(task, delay), 'plan'))

    def _plan(self, task, delay):
        if self.planner == 'hangs':
            self.events.append(
                (self.now + 20 * MS, lambda: self._plan(task, delay), 'plan')
            )
            return
        self.open_task = None
        positions, times = self.requests[task.data]
        start = None
        if task.known is not None:
            seconds = (task.known_time - task.start) / SECOND
            start = StartState(seconds, task.known.motion, task.known.in_progress)
        try:
            plan = plan_from_state(
                self.model,
                self.limits,
                Waypoints(NAMES, times, positions),
                start=start,
                tolerance=self.settings.path_tolerance,
            )
        except HodynError as error:
            made = Plan(task.number, None, error=str(error))
        else:
            planned = PlannedMotion(
                NAMES, plan.motion, task.start, plan.continuous_derivative
            )
            if planned.last <= task.now:
                made = Plan(task.number, None, error='it has ended')
            else:
                self.plans[task.number] = planned, task.known
                made = Plan(task.number, planned, duration=delay / SECOND)
        self.stream.on_plan(made, self.at)

    def accept(self, number, start):
        planned, known = self.plans.pop(number)
        planned = planned._replace(start=start)
        if known is not None:
            rows = 5 if known.in_progress else 1
            jump = np.abs(planned.at(planned.first)[:rows] - known.motion[:rows])
            size = 1.0 + np.abs(known.motion[:rows])
            self.largest['joint'] = max(self.largest['joint'], float((jump / size).max()))
        self._deliver(planned, self.delays.sending)

    def publish(self, planned, remark):
        self._deliver(planned, self.delays.sending)

    def _deliver(self, planned, longest):
        self.sent += 1
        points = controller_trajectory(self.model, planned.motion, TOLERANCE)
        self.effort_bound = np.maximum(self.effort_bound, np.abs(points.effort).max(axis=0))
        # One after the other, and not in one cycle, in which the controller would drop the first.
        soonest = self.now + int(self.rng.integers(MS, longest))
        self.arrival = max(self.arrival + SPACING, soonest)
        delay = self.arrival - self.now

        def arrive():
            self.stream.leads.note_delivery(delay / SECOND)
            stamp = planned.first - round(LEAD_IN * SECOND)
            self.late += stamp < self.now
            if self.jtc is None:
                return
            rows = zip(points.times, points.motion, points.effort)
            sent = [
                Point(round(time * SECOND) + planned.start - stamp, *motion, effort)
                for time, motion, effort in rows
            ]
            self.jtc.take_points(sent, stamp, self.now)

        self.events.append((self.arrival, arrive, 'deliver'))

    # Time

    def pass_time(self, seconds):
        for _ in range(round(1000 * seconds)):
            self._step()

    def jump_back(self, seconds):
        """The clock is set back; nothing of before is true any more."""
        self.stream.clear('time jumped')
        self.events, self.arrival = [], 0
        self.open_task = None
        self.plans.clear()
        self.now -= round(seconds * SECOND)
        self.deactivate()
        self.activate()

    def _step(self):
        self.now += MS
        self.steady += 1e-3
        due = [item for item in self.events if item[0] <= self.now]
        self.events = [item for item in self.events if item[0] > self.now]
        for _, call, _ in sorted(due, key=lambda item: item[0]):
            call()
        if not self.now % LOOK_PERIOD:
            self.stream.drop_overdue(self.planner == 'runs', self.at)
            if self.planner == 'hangs' and self.rng.random() < 0.1:
                self.kill_planner()
        if not self.now % STREAM_PERIOD:
            self.stream.observe(self.position, self.now)
            self.stream.sample(self.at)
        self._execute()

    def _execute(self):
        if self.jtc is None:
            return
        command = self.jtc.update(self.now, self.position, self.velocity)
        position, effort = command['position'], command['effort']
        step = float(np.abs(position - self.position - 1e-3 * self.velocity).max())
        self.velocity = (position - self.position) * 1e3
        self.position = position
        self.largest['step'] = max(self.largest['step'], step)
        self.largest['effort'] = max(
            self.largest['effort'], float(np.max(np.abs(effort) / self.effort_bound))
        )
        # The command is that of the next cycle.
        planned = self.stream.timeline.under_way(self.now + MS)
        # A controller that starts anew knows no motion of before.
        if not self.stream.timeline:
            self.is_off_path = False
        elif planned is not None and not self.is_off_path:
            motion = planned.at(self.now + MS)
            away = np.abs(position - motion[0]) - LAG * np.abs(motion[1])
            self.largest['away'] = max(self.largest['away'], float(away.max()))
