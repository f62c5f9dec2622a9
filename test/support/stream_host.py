"""What stands for a node: it has robots made ready, logs and counts, without ROS and a clock."""

from dataclasses import fields, make_dataclass
from types import SimpleNamespace

import numpy as np

from hodyn_ros.streams.health import NodeHealth
from hodyn_ros.streams.robot import assemble

PLANNING = SimpleNamespace(
    max_trajectory_points=1000,
    stop_duration=0.5,
    trajectory_timeout=2.0,
    path_tolerance=0.0,
    path_time=0.2,
    chunk=SimpleNamespace(step=0.01),
)


class _Settings:
    """Those of `flatness_controller`, as its table declares them."""

    def of_joints(self, start, of_all, joint_names):
        own = {joint: value for joint, _, value in getattr(self, start)}
        return np.array([own.get(name, getattr(self, of_all)) for name in joint_names])

    @property
    def lead(self):
        return 0.5 * self.sample_period + self.delay * (self.controller != 'flatness')

    @property
    def planning(self):
        return PLANNING


CONTROL = {
    'base_link': '',
    'tip_link': '',
    'gravity': (0.0, 0.0, -9.81),
    'actuators': (),
    'controller': 'tracking',
    'bandwidth': 0.0,
    'sample_period': 0.001,
    'delay': 0.0,
    'resolution': SimpleNamespace(pair=None),
    'torque_sensors': False,
    'limit_torques': True,
    'measurement_timeout': 0.0,
    'reference_timeout': 0.05,
    'without_reference': 'hold',
    'stop_duration': 0.5,
    'allow_limit_violations': False,
    'max_tracking_error': 0.2,
    'velocity_margin': 0.2,
    'position_margin': 0.05,
    'violation_samples': 3,
    'saturation_time': 0.2,
    'max_gap': 0.05,
    'max_external_torque': 0.0,
    'collision_reaction': 'stop',
    'tool_link': '',
    'joint_stiffness': 100.0,
    'translational_stiffness': 500.0,
    'rotational_stiffness': 30.0,
    'nullspace_stiffness': 5.0,
    'damping_ratio': 0.7,
    'floating_damping': 2.0,
    **dict.fromkeys(
        ('bandwidths', 'max_tracking_errors', 'max_external_torques', 'joint_stiffnesses'),
        (),
    ),
}
ControlSettings = make_dataclass(
    'ControlSettings', CONTROL, bases=(_Settings,), frozen=True, namespace={}
)


def control_settings(**values):
    """Settings of a control loop, by default those of the node."""
    given = {**CONTROL, **values}
    assert given.keys() == {item.name for item in fields(ControlSettings)}
    return ControlSettings(**given)


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


class Host:
    """A node without ROS; `said` is what it has logged, with the level."""

    def __init__(self, settings, waits=False):
        self.settings, self.worker, self.time = settings, Worker(waits), 0
        self.said, self.refused = [], []
        self.diagnostics = NodeHealth(clock=lambda: self.time * 1e-9, memory=lambda pid: '')
        self.parameters = SimpleNamespace(
            settings=settings, declare_joints=lambda names: None
        )

    def now(self):
        return self.time

    def soon(self, call, *arguments):
        call(*arguments)

    def get_logger(self):
        levels = ('debug', 'info', 'warning', 'error')
        keep = {
            level: (lambda text, level=level: self.said.append((level, text)))
            for level in levels
        }
        return SimpleNamespace(**keep)

    def log_error(self, subject, text='', is_throttled=True):
        self.said.append(('error', text))

    def refuse(self, topic, error, is_throttled=True):
        self.refused.append((topic, error))

    def texts(self, level):
        return [text for known, text in self.said if known == level]


def model_of(xml):
    """Model of a description, without links and gravity of its own."""
    return assemble(xml, '', '', (0.0, 0.0, -9.81))
