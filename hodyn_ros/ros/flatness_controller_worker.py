"""Robots are made ready and trajectories planned in a thread beside the control loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators import actuators_from_config, motor_limits_from_config
from hodyn_ros.analysis.limits import MotionLimits, motion_limits
from hodyn_ros.control import warm_up
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.ros.answers import Robot
from hodyn_ros.ros.drives import Drives
from hodyn_ros.ros.flatness_controller_settings import ControlSettings, torque_limits
from hodyn_ros.ros.planner import Plan, Task, exceeded_limits, plan_trajectory, refused_plan
from hodyn_ros.ros.timeline import PlannedMotion
from hodyn_ros.ros.worker import Worker, reason

Array = NDArray[np.float64]


class Built(NamedTuple):
    """What has become of a robot description."""

    description: str
    robot: Robot | None = None
    """With its drives; None if it cannot be used."""
    error: str = ''


class Background:
    """A thread that builds robots and plans trajectories, one after the other.

    For `TrajectoryInput` it is a planner, one that publishes nothing.

    Parameters
    ----------
    settings : callable
        Returns the settings in use.
    report : callable
        Is called with every `Built` and `Plan`, in the thread.
    log : callable
        Is called with the text of faults of ours, in the thread.
    """

    def __init__(
        self,
        settings: Callable[[], ControlSettings],
        report: Callable[[Built | Plan], None],
        log: Callable[[str], object],
    ) -> None:
        self._settings, self._report = settings, report
        self._robot: Robot | None = None
        self._worker = Worker('building', log)

    def build(self, xml: str, config: Mapping[str, Mapping[str, Any]]) -> None:
        """Make a robot ready."""
        self._worker.put(
            lambda: self._report(_built(xml, self._settings(), config)),
            lambda error: self._report(Built(xml, error=reason(error))),
        )

    def set_robot(self, robot: Robot) -> None:
        """Use a robot from now on."""
        self._robot = robot

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        robot = self._robot
        self._worker.put(
            lambda: self._report(_planned(robot, task, self._settings())),
            lambda error: self._report(refused_plan(task, error)),
        )

    def accept(self, number: int, start: int) -> None:
        """Nothing is published but commands."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Nothing is published but commands."""

    def close(self) -> None:
        """Finish what has been begun."""
        self._worker.close()


def _built(
    xml: str, settings: ControlSettings, config: Mapping[str, Mapping[str, Any]]
) -> Built:
    model = RobotModel.from_description(
        parse_urdf(xml), settings.base_link or None, settings.tip_link or None, settings.gravity
    )
    actuators = actuators_from_config(model, config)
    limits = motor_limits_from_config(actuators, config)
    limits = limits._replace(motor_torque=torque_limits(model, limits.motor_torque))
    warm_up(model)
    motion = motion_limits(model)
    # Descriptions have zeros where somebody did not know a limit.
    velocity, effort = (
        np.where(values > 0.0, values, np.inf) for values in (motion.velocity, motion.effort)
    )
    motion = motion._replace(velocity=velocity, effort=effort)
    return Built(xml, Robot(model, motion, xml, Drives(actuators, limits, {})))


def _planned(robot: Robot | None, task: Task, settings: ControlSettings) -> Plan:
    begin = time.perf_counter()
    if robot is not None and task.known is not None:
        robot = robot._replace(limits=_with_start(robot, task.known.motion[0], settings))
    plan, whole = plan_trajectory(robot, task, settings.planning)
    exceeded = exceeded_limits(whole, 'allow_limit_violations has it executed all the same.')
    if exceeded and not settings.allow_limit_violations:
        raise TrajectoryError(exceeded[0])
    warnings = (*plan.warnings, *exceeded)
    return plan._replace(warnings=warnings, duration=time.perf_counter() - begin)


def _with_start(robot: Robot, q: Array, settings: ControlSettings) -> MotionLimits:
    """Limits with positions in which the robot is already, up to the margin: it may leave them."""
    limits, margin = robot.limits, settings.position_margin
    return limits._replace(
        lower=np.minimum(limits.lower, np.maximum(q, limits.lower - margin)),
        upper=np.maximum(limits.upper, np.minimum(q, limits.upper + margin)),
    )
