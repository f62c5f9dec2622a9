"""A node that shows what hodyn_node computes while it runs: `hodyn view ROBOT --live`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from hodyn_msgs.msg import JointEffort, JointEffortTrajectory, JointMotion, MotionEstimate
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState

from hodyn_ros.files import Results
from hodyn_ros.plotting.scene import LiveScene
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import (
    EFFORT_FIELDS,
    MOTION_FIELDS,
    read_rows,
    values_of,
)
from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.subscription import Topic
from hodyn_ros.streams.timeline import NANOSECONDS, nanoseconds
from hodyn_ros.typing import Array

_ORDERS = 4  # of the motion, positions to jerk
_MEASURED, _PLANNED = 'measured', 'planned'


@dataclass(frozen=True)
class LiveViewSettings:
    """There are no parameters."""


class LiveView(RobotNode[LiveViewSettings]):
    """Node that records what comes on the topics of a hodyn_node.

    Parameters
    ----------
    scene : LiveScene
        Of the robot of that node.
    period : float
        Time in which it gets what has come [s].
    **node_options
        Of `rclpy.node.Node`.
    """

    def __init__(self, scene: LiveScene, period: float, **node_options: Any) -> None:
        options = {'is_described': False, **node_options}
        super().__init__('hodyn_view', LiveViewSettings, **options)
        self._scene = scene
        self._samples: dict[str, list[tuple[int, Array]]] = defaultdict(list)
        # Start [ns], times from there (N,) and motion (N, K, n).
        self._plan = 0, np.zeros(0), np.zeros((0, 0, 0))
        self._start = 0  # instant at which the times of the recording are zero [ns]
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(period, self.show, clock=steady)
        self.closing.append(self.show)
        self.open()

    def topics(self) -> Iterator[Topic]:
        """Yield the inputs."""
        node, plan = 'hodyn_node/', qos.EFFORT_TRAJECTORY
        estimate = partial(self._take_motion, _MEASURED)
        yield Topic(f'{node}joint_effort', JointEffort, self._take_effort, qos.OUTPUT)
        yield Topic(f'{node}motion_estimate', MotionEstimate, estimate, qos.OUTPUT)
        given = partial(self._take_motion, _PLANNED)
        yield Topic('joint_motion', JointMotion, given, qos.OUTPUT)
        whole = f'{node}effort_trajectory'
        yield Topic(whole, JointEffortTrajectory, self._take_plan, plan, is_sample=False)
        # Of a robot with closed loops any joints may be measured; the node completes them.
        states = (
            'joint_states' if self._scene.model.closure is None else f'{node}joint_states'
        )
        yield Topic(states, JointState, self._take_state, qos.SENSOR_INPUT)

    def show(self) -> None:
        """Record what has come since the last time."""
        taken, self._samples = self._samples, defaultdict(list)
        for name, samples in taken.items():
            stamps, rows = zip(*sorted(samples, key=itemgetter(0)))
            self._start = self._start or stamps[0]
            times = (np.array(stamps) - self._start) / NANOSECONDS
            motion, effort = np.split(np.array(rows), [_ORDERS], axis=1)
            results = Results.of_model(self._scene.model, times, motion, effort)
            self._scene.record(name, results)

    def _keep(self, name: str, message: Any, motion: Array, effort: Array) -> None:
        """Keep what is known of an instant, (K, n) of each, until it is shown."""
        sample = np.full((_ORDERS + len(EFFORT_FIELDS), motion.shape[1]), np.nan)
        sample[: len(motion)] = motion
        sample[_ORDERS : _ORDERS + len(effort)] = effort
        stamp = nanoseconds(message.header.stamp) or self.now()
        self._samples[name].append((stamp, sample))

    def _rows(self, message: Any, fields: Sequence[str], samples: int = 1) -> Array:
        """Fields that a message has, (samples, K, n), in the order of the model."""
        order = self._scene.model.joint_order(message.joint_names)
        given = [field for field in fields if getattr(message, field)]
        what, n = type(message).__name__, len(order)
        rows = read_rows(what, message, given, n, 0, samples=samples)
        return rows.reshape(-1, samples, n).swapaxes(0, 1)[..., order]

    def _take_motion(self, name: str, message: JointMotion | MotionEstimate) -> None:
        (motion,) = self._rows(message, MOTION_FIELDS[:_ORDERS])
        self._keep(name, message, motion, motion[:0])

    def _take_plan(self, message: JointEffortTrajectory) -> None:
        times = np.array(message.time_from_start)
        rows = self._rows(message, MOTION_FIELDS[:_ORDERS], len(times))
        self._plan = nanoseconds(message.header.stamp), times, rows

    def _take_effort(self, message: JointEffort) -> None:
        (effort,) = self._rows(message, EFFORT_FIELDS)
        if message.source == JointEffort.SOURCE_JOINT_STATES:
            self._keep(_MEASURED, message, effort[:0], effort)
            return
        start, times, rows = self._plan
        # The newest plan is not in use before its start, and not after a single motion.
        elapsed = (nanoseconds(message.header.stamp) - start) / NANOSECONDS
        sample = np.searchsorted(times, elapsed, side='right') - 1
        is_planned = message.source == JointEffort.SOURCE_JOINT_TRAJECTORY and sample >= 0
        self._keep(_PLANNED, message, rows[sample] if is_planned else effort[:0], effort)

    def _take_state(self, message: JointState) -> None:
        names = self._scene.model.joint_names
        positions = values_of('joint_states', message, ('position',), names)
        if positions is not None:
            self._keep(_MEASURED, message, positions, positions[:0])


def run(scene: LiveScene, period: float) -> int:
    """Show what comes until the process is interrupted.

    Parameters
    ----------
    scene : LiveScene
    period : float
        Time in which it gets what has come [s].

    Returns
    -------
    int
        Exit code, as of `life.main`.
    """
    return main(partial(LiveView, scene, period))
