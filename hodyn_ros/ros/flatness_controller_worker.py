"""Robots are made ready and trajectories planned in a thread beside the control loop."""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from hodyn_ros.actuators import Actuators, actuators_from_config, motor_limits_from_config
from hodyn_ros.analysis.limits import motion_limits
from hodyn_ros.control import warm_up
from hodyn_ros.errors import HodynError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.ros.answers import Robot
from hodyn_ros.ros.flatness_controller_settings import ControlSettings
from hodyn_ros.ros.planner import Plan, Task, plan_trajectory
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.tally import refusal_kind
from hodyn_ros.ros.timeline import PlannedMotion


class Built(NamedTuple):
    """What has become of a robot description."""

    description: str
    robot: Robot | None
    """None if it cannot be used."""
    actuators: Actuators | None
    torque_limits: NDArray | None
    """Of the motors, shape (m,); infinite where none is given."""
    error: str = ''


class Failed(NamedTuple):
    """A fault of ours, for the log."""

    text: str


class Worker:
    """A thread that builds robots and plans trajectories, one after the other.

    It is a `hodyn_ros.ros.planning.Planner` without service and topic.

    Parameters
    ----------
    report : callable
        Is called with every `Built`, `Plan` and `Failed`, in the thread.
    """

    def __init__(self, report: Callable[[Built | Plan | Failed], None]) -> None:
        self._report = report
        self._robot: Robot | None = None
        self._settings: Settings | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name='building', daemon=True)
        self._thread.start()

    def build(
        self,
        xml: str,
        settings: ControlSettings,
        actuators: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Make a robot ready."""
        self._jobs.put(lambda: self._report(_built(xml, settings, actuators)))

    def set_robot(self, robot: Robot | None, in_preparation: bool) -> None:
        """Use a robot from now on."""
        self._robot = robot

    def set_settings(self, settings: Settings) -> None:
        """Use other settings from now on."""
        self._settings = settings

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        robot, settings = self._robot, self._settings
        self._jobs.put(lambda: self._report(_planned(robot, task, settings)))

    def accept(self, number: int, start: int) -> None:
        """Nothing is published but commands."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Nothing is published but commands."""

    def echo(self, number: int) -> None:
        """Answer what this class never asks."""

    def close(self) -> None:
        """Finish what has been begun."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:  # a fault of ours must not end the thread
                self._report(Failed(traceback.format_exc()))


def _built(
    xml: str, settings: ControlSettings, config: Mapping[str, Mapping[str, Any]]
) -> Built:
    try:
        model = RobotModel.from_description(
            parse_urdf(xml), settings.base_link or None, settings.tip_link or None,
            settings.gravity,
        )
        actuators = actuators_from_config(model, config)
        limits = motor_limits_from_config(actuators, config)
        warm_up(model)
        robot = Robot(model, motion_limits(model), xml)
        return Built(xml, robot, actuators, limits.motor_torque)
    except HodynError as error:
        return Built(xml, None, None, None, str(error))


def _planned(robot: Robot | None, task: Task, settings: Settings | None) -> Plan:
    begin = time.perf_counter()
    try:
        if robot is None or settings is None:
            raise HodynError('There is no robot model yet.')
        plan, _ = plan_trajectory(robot, task, settings)
        return plan._replace(duration=time.perf_counter() - begin)
    except HodynError as error:
        return Plan(task.number, None, error=str(error), kind=refusal_kind(error))
