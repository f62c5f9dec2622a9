"""What stands for a node, without ROS and a clock, and a robot under the control loop of one.

The robot is simulated by Pinocchio; it shares no code with what controls it.
"""

import struct
from dataclasses import make_dataclass
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
from support.control_plant import Plant
from support.robots import TWO_LINK
from support.stream_world import PLANNING

from hodyn_ros.streams import ControlLoop, Plan, PlannedMotion, elastic_robot, make_laws
from hodyn_ros.trajectory import StartState, Waypoints, plan_motion


class _Settings:
    """Those of `flatness_controller`, as its table declares them."""

    def of_joints(self, name, joint_names):
        return np.resize(getattr(self, name), len(joint_names))

    @property
    def lead(self):
        return 0.5 * self.sample_period + self.delay * (self.controller != 'flatness')

    planning = SimpleNamespace(**PLANNING, shares=dict, headroom=tuple)


CONTROL = {
    'base_link': '',
    'tip_link': '',
    'gravity': (0.0, 0.0, -9.81),
    'actuators': (),
    'controller': 'tracking',
    'bandwidth': 0.0,
    'sample_period': 0.001,
    'delay': 0.0,
    'torque_sensors': False,
    'measurement_timeout': 0.0,
    'reference_timeout': 0.05,
    'without_reference': 'hold',
    'stop_duration': 0.5,
    'max_tracking_error': 0.2,
    'max_external_torque': 0.0,
    'max_drive_error': 0.0,
    'collision_reaction': 'stop',
    'tool_link': '',
    'joint_stiffness': 100.0,
    'translational_stiffness': 500.0,
    'rotational_stiffness': 30.0,
}
ControlSettings = make_dataclass(
    'ControlSettings', CONTROL, bases=(_Settings,), frozen=True, namespace={}
)


def control_settings(**values):
    """Settings of a control loop, by default those of the node."""
    return ControlSettings(**{**CONTROL, **values})


class Worker:
    """Does at once what is put, or when it is told to, and reports what fails."""

    is_closed = False

    def __init__(self, waits=False):
        self.waits, self.jobs = waits, []

    def put(self, job, failed=repr):
        self.jobs.append((job, failed))
        if not self.waits:
            self.work()

    def work(self):
        while self.jobs:
            job, failed = self.jobs.pop(0)
            try:
                job()
            except Exception as error:
                failed(error)


class Told(list):
    """Names of the calls that it had, with their first argument."""

    def __getattr__(self, name):
        return lambda what='', *_: self.append((name, what))


class Host:
    """A node without ROS; `log` has what it has logged, with the level."""

    def __init__(self, settings, waits=False):
        self.settings, self.worker, self.time = settings, Worker(waits), 0
        self.log, self.diagnostics = Told(), Told()

    def now(self):
        return self.time

    def soon(self, call, *arguments):
        call(*arguments)

    def get_logger(self):
        return self.log

    def log_error(self, subject, text='', is_throttled=True):
        self.log.error(text)

    def refuse(self, topic, error):
        self.log.error(str(error))

    def texts(self, level):
        return [text for known, text in self.log if known == level]


FIELDS = 'position', 'velocity', 'motor_position', 'motor_velocity'
NAMES = ('shoulder', 'elbow')
PERIOD = 1_000_000  # ns
STIFFNESS, INERTIA = 1000.0, 0.3
DRIVE = {'type': 'sea', 'stiffness': STIFFNESS, 'motor_inertia': INERTIA}
START = np.array([0.3, -0.4])


@lru_cache
def compiled(xml, actuators):
    return elastic_robot(xml, control_settings(actuators=actuators))


def robot_of(xml, settings):
    """Robots of the same drives are one, with the kernels that have been compiled for it."""
    return compiled(xml, settings.actuators)


class ControlledRobot:
    """A loop and the robot that it controls, sample by sample.

    `answers` has them all, `q`, `qd` and `torque` what the robot did.
    """

    def __init__(
        self, urdf=TWO_LINK, drive=DRIVE, has_velocities=True, rests=0.03, **values
    ):
        self.has_velocities, self.tasks, self.record = has_velocities, [], []
        drives = tuple((joint, *item) for joint in NAMES for item in drive.items())
        self.host = Host(control_settings(actuators=drives, **values))
        self.control = ControlLoop(self.host, self, robot_of, make_laws)
        self.control.preparation.request(TWO_LINK)
        self.plant = Plant(urdf, NAMES, [STIFFNESS] * 2, [INERTIA] * 2)
        self.state, self.stamp = self.plant.at_rest(START), 10**9
        self.run(rests)

    # The planner of the loop

    def plan(self, task):
        self.tasks.append(task)

    def accept(self, number, start):
        pass

    def publish(self, planned, remark):
        pass

    # What users do

    def send(self, *goal, seconds=1.0):
        """Send a trajectory to a goal, which is planned at once, or an empty one."""
        data = b'\0\1\0\0' + struct.pack('<I4xIII', 0, 0, 0, len(goal))
        self.control.take_trajectory(data)
        if goal:
            task = self.tasks[-1]
            known = StartState(0.0, task.known.motion, task.known.in_progress)
            plan = plan_motion(Waypoints(NAMES, [seconds], goal), NAMES, start=known)
            planned = PlannedMotion(NAMES, plan.motion, task.start, 4)
            self.control.stream.on_plan(Plan(task.number, planned), self.control.instant())

    def set(self, **values):
        """Other settings, as a node takes them over: checked before."""
        before = self.host.settings
        after = control_settings(**{**vars(before), **values})
        self.control.check_settings(after)
        self.host.settings = after
        self.control.on_settings(before)

    # Time

    def measure(self, change=0.0):
        """The loop gets what the robot measures, perhaps with a fault."""
        given = dict(zip(FIELDS, self.state + change))
        if not self.has_velocities:
            given = {field: given[field] for field in FIELDS[::2]}
        self.control.take(self.stamp, given)

    def sample(self, change=0.0, push=0.0, force=(0.0, 0.0)):
        """Measure the robot and let it move by the answer.

        A push is on the motors, a force, in joint torques, on the links.
        """
        self.measure(change)
        answer = self.control.answer_newest()
        self.control.note_sent(answer)
        torque = answer.command.torque
        self.record.append((self.state[0], self.state[1], torque))
        self.plant.push = np.array(force)
        self.move(torque + push)
        return answer

    def move(self, torque):
        """Time goes on by a period."""
        self.stamp += PERIOD
        self.state = self.plant.hold(self.state, torque, 1e-9 * PERIOD, substeps=1)

    def run(self, seconds, **options):
        return [self.sample(**options) for _ in range(round(1e3 * seconds))]

    def run_until_stopped(self, **options):
        while not self.why:
            self.sample(**options)
            assert len(self.record) < 5000, 'it was not stopped'

    def lose(self, count):
        """The robot moves on with the torque it has, and nothing is measured."""
        for _ in range(count):
            self.move(self.record[-1][2])

    # What is seen

    @property
    def why(self):
        return self.control.report()['stopped because']

    @property
    def q(self):
        return np.array([sample[0] for sample in self.record])

    @property
    def qd(self):
        return np.array([sample[1] for sample in self.record])
