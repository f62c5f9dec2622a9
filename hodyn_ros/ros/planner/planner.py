"""Planning of trajectories one after the other, for the robot and the settings of a node."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from hodyn_ros.model.inertia import Payload
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.ros.planner.messages import ForController
from hodyn_ros.streams.health import reason
from hodyn_ros.streams.motion_stream import Plan, Task
from hodyn_ros.streams.robot import Robot, warm_up
from hodyn_ros.streams.timeline import PlannedMotion

S = TypeVar('S')


class Planner(Generic[S]):
    """Makes the robot of a node and plans with it, in the order in which it is told to.

    Its methods are the commands of the node. A subclass overrides `make_robot` and `planned`.

    Parameters
    ----------
    settings : object
        Of the node.
    report : callable
        Takes the name of an event and its arguments, from any thread.
    log : callable
        Takes the text of an error.
    """

    def __init__(
        self, settings: S, report: Callable[..., None], log: Callable[[str], object]
    ) -> None:
        self.report, self.worker = report, Worker('planning', log)
        self._compiling = Worker('compiling', log)
        self.changed = threading.Condition()  # lock of what follows
        self._robot: Robot | None = None
        self._settings = settings
        self._is_expected = False
        self._unused = 0  # robots that are still to be made

    def make_robot(
        self, description: str, settings: S, payloads: tuple[Payload, ...]
    ) -> Robot | None:
        """Robot of a description, without kernels; None if the description is empty."""
        raise NotImplementedError

    def planned(
        self, robot: Robot | None, task: Task, settings: S
    ) -> tuple[Plan, ForController | None]:
        """Plan of a task, and messages on it for controllers.

        Raises
        ------
        HodynError
            If there is no plan.
        """
        raise NotImplementedError

    @property
    def is_settled(self) -> bool:
        """Whether no robot is being made, nor awaited for the first time."""
        return not self._unused and not (self._is_expected and self._robot is None)

    @property
    def in_use(self) -> tuple[Robot | None, S]:
        """Robot and settings that belong together."""
        with self.changed:
            return self._robot, self._settings

    def use(
        self,
        version: int,
        description: str,
        is_expected: bool,
        settings: S,
        payloads: tuple[Payload, ...] = (),
    ) -> None:
        """Use settings and a robot, once it is made.

        Parameters
        ----------
        version : int
            Number that is reported as ``ready`` when it is.
        description : str
            URDF; empty: there is no robot.
        is_expected : bool
            Whether one is being made ready; requests wait for the first one.
        settings : object
        payloads : tuple of Payload
            Of the robot.
        """

        def make() -> None:
            robot = None  # the one before is not to stay if this one fails
            try:
                robot = self.make_robot(description, settings, payloads)
            finally:
                with self.changed:
                    self._robot, self._settings = robot, settings
                    self._unused -= 1
                    self.changed.notify_all()
                self.report('ready', version)
            if robot is not None:  # which is of use before its kernels are there
                self._compiling.put(lambda: warm_up(robot))

        with self.changed:
            self._unused += 1
            self._is_expected = is_expected
            self.changed.notify_all()
        self.worker.put(make)

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""

        def plan() -> None:
            begin = time.perf_counter()
            made, sent = self.planned(self._robot, task, self._settings)
            made = made._replace(duration=time.perf_counter() - begin)
            self.report('planned', made, sent)

        def failed(error: BaseException) -> None:
            self.report('planned', Plan(task.number, None, error=reason(error)), None)

        self.worker.put(plan, failed)

    def know(self, version: int) -> None:
        """Note that all has come that the node had told when it was asked for a version."""

    def accept(self, number: int, start: int) -> None:
        """Publish what follows from a plan, if anything does."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Publish what follows from a motion to rest, if anything does."""

    def close(self, grace: float) -> None:
        """Finish what has been begun within a time [s], and end."""
        self.worker.close(grace)
