"""Planning of trajectories one after the other, in a thread, for the robot that a node has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from hodyn_ros.model.inertia import Payload
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.ros.planner.answers import refused_plan
from hodyn_ros.ros.planner.messages import Event, Ready
from hodyn_ros.streams.motion_stream import Plan, Task
from hodyn_ros.streams.robot import Robot

S = TypeVar('S')


class TaskPlanner(Generic[S]):
    """Makes the robot that it is told of and plans tasks with it, in the order in which they come.

    A subclass overrides `made_of`, `make_robot` and `planned`.

    Parameters
    ----------
    settings : object
        Of the node.
    report : callable
        Called with every `Event`, from any thread.
    log : callable
        Takes the text of an error.
    """

    def __init__(
        self, settings: S, report: Callable[[Event], None], log: Callable[[str], object]
    ) -> None:
        self._settings, self._report = settings, report
        self._robot: Robot | None = None
        # Lock of the robot, the settings, and what follows.
        self._changed = threading.Condition()
        self._parts: tuple[Any, ...] = ('',)  # of which the robot is made
        self._is_expected = False
        self._unused = 0  # robots that are still to be made
        self._version = 0  # of the robot and the settings
        self._worker = Worker('planning', log)

    # To be overridden

    def made_of(self, settings: S) -> tuple[Any, ...]:
        """Settings of which a robot is made."""
        return ()

    def make_robot(
        self, description: str, settings: S, payloads: tuple[Payload, ...]
    ) -> Robot | None:
        """Robot of a description, with kernels; None if the description is empty."""
        raise NotImplementedError

    def planned(self, robot: Robot | None, task: Task, settings: S) -> Plan:
        """Plan of a task.

        Raises
        ------
        HodynError
            If there is none.
        """
        raise NotImplementedError

    # Commands of the node

    def use(
        self,
        description: str,
        is_expected: bool,
        settings: S,
        payloads: tuple[Payload, ...] = (),
        version: int = 0,
    ) -> None:
        """Use settings and, once it is made, a robot.

        Parameters
        ----------
        description : str
            URDF; empty: there is no robot.
        is_expected : bool
            Whether one is being made ready; requests wait for the first one.
        settings : object
        payloads : tuple of Payload
            Of the robot.
        version : int
            Number that is reported as `Ready` when the robot is made.
        """
        parts = description, payloads, *self.made_of(settings)
        with self._changed:
            self._settings, self._is_expected = settings, is_expected
            self._version = version
            is_other, self._parts = parts != self._parts, parts
            self._unused += is_other
            is_ready = not self._unused
            self._changed.notify_all()
        if is_ready:
            self._report(Ready(version))
        elif is_other:
            self._worker.put(lambda: self._make(description, settings, payloads))

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        settings = self._settings
        failed = partial(refused_plan, task)
        self._worker.put(
            lambda: self._plan(task, settings), lambda error: self._report(failed(error))
        )

    def close(self, grace: float) -> None:
        """Finish what has been begun within a time [s], and end."""
        self._worker.close(grace)

    def _make(self, description: str, settings: S, payloads: tuple[Payload, ...]) -> None:
        self._robot = None  # the one before is not to stay if this one fails
        try:
            self._robot = self.make_robot(description, settings, payloads)
        finally:
            with self._changed:
                self._unused -= 1
                is_ready, version = not self._unused, self._version
                self._changed.notify_all()
            if is_ready:
                self._report(Ready(version))

    def _plan(self, task: Task, settings: S) -> None:
        begin = time.perf_counter()
        plan = self.planned(self._robot, task, settings)
        self._report(plan._replace(duration=time.perf_counter() - begin))
