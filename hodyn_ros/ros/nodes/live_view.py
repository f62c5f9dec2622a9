"""A node that shows what hodyn_node computes while it runs: `hodyn view ROBOT --live`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from hodyn_msgs.msg import JointEffort, JointEffortTrajectory, JointMotion, MotionEstimate
from rclpy.node import Node
from sensor_msgs.msg import JointState

from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples
from hodyn_ros.plotting.scene import Scene
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import EFFORT_FIELDS, MOTION_FIELDS, flat, values_of
from hodyn_ros.ros.base.life import main
from hodyn_ros.streams.timeline import NANOSECONDS, nanoseconds
from hodyn_ros.typing import Array

_ORDERS = 4  # of the motion: position to jerk, what may have limits
_FIELDS = *MOTION_FIELDS[:_ORDERS], *EFFORT_FIELDS
_MEASURED, _PLANNED = 'measured', 'planned'


class LiveView(Node):
    """Node that records what comes on the topics of a hodyn_node.

    Parameters
    ----------
    scene : Scene
        Of the robot of that node.
    period : float
        Time in which the scene gets what has come [s].
    keep : callable, optional
        Called after that; an `OSError` ends the node.
    **node_options
        Of `rclpy.node.Node`.

    Attributes
    ----------
    failure : OSError or None
        Of `keep`.
    """

    def __init__(
        self,
        scene: Scene,
        period: float,
        keep: Callable[[], object] = bool,
        **node_options: Any,
    ) -> None:
        super().__init__('hodyn_view', **node_options)
        self._keep = keep
        self.failure: OSError | None = None
        self._scene, self._start = scene, 0  # where the times of the scene begin [ns]
        self._samples: dict[str, list[tuple[int, Array]]] = defaultdict(list)
        # Of the newest trajectory: start [ns], times from there (N,), fields (N, 7, n).
        self._plan = 0, np.zeros(0), np.zeros((0, 0, 0))
        # Of a robot with closed loops any joints may be measured; the node completes them.
        states = (
            'joint_states' if scene.model.closure is None else 'hodyn_node/joint_states'
        )
        given = partial(self._take, _PLANNED)
        for kind, topic, take, profile in (
            (JointMotion, 'joint_motion', given, qos.OUTPUT),
            (JointState, states, self._take_state, qos.SENSOR_INPUT),
            (MotionEstimate, 'hodyn_node/motion_estimate', self._take_estimate, qos.OUTPUT),
            (JointEffort, 'hodyn_node/joint_effort', self._take_effort, qos.OUTPUT),
            (
                JointEffortTrajectory,
                'hodyn_node/effort_trajectory',
                self._take_plan,
                qos.EFFORT_TRAJECTORY,
            ),
        ):
            self.create_subscription(kind, topic, take, profile)
        self.create_timer(period, self.show)

    def show(self) -> None:
        """Give the scene what has come since the last time."""
        taken, self._samples = self._samples, defaultdict(list)
        for name, samples in taken.items():
            stamps, rows = zip(*sorted(samples, key=itemgetter(0)))
            self._start = self._start or stamps[0]
            times = (np.array(stamps) - self._start) / NANOSECONDS
            motion, effort = np.split(np.array(rows), [_ORDERS], axis=1)
            results = Samples.of_model(self._scene.model, times, motion, effort)
            self._scene.record(name, results)
        try:
            self._keep()
        except OSError as error:
            self.failure = error
            self.context.try_shutdown()

    def destroy_node(self) -> None:
        """Show what is left, and destroy the node."""
        self.show()
        super().destroy_node()

    def _take(self, name: str, message: Any, sample: Array | None = None) -> None:
        """Keep what a message says of an instant, over what is known of it, until it is shown."""
        order = self._scene.model.joint_order(message.joint_names)
        if sample is None:
            sample = np.full((len(_FIELDS), len(order)), np.nan)
        for row, field in zip(sample, _FIELDS):
            if values := getattr(message, field, ()):
                row[:] = np.take(values, order)
        stamp = nanoseconds(message.header.stamp) or self.get_clock().now().nanoseconds
        self._samples[name].append((stamp, sample))

    def _take_state(self, message: JointState) -> None:
        names = self._scene.model.joint_names
        values = values_of('joint_states', message, ('position',), names)
        if values is not None:
            position = flat(values)
            motion = JointMotion(
                header=message.header, joint_names=names, position=position
            )
            self._take(_MEASURED, motion)

    def _take_estimate(self, message: MotionEstimate) -> None:
        message.position = []  # it lags behind the measured one, which moves the robot
        self._take(_MEASURED, message)

    def _take_effort(self, message: JointEffort) -> None:
        if message.source == JointEffort.SOURCE_JOINT_STATES:
            self._take(_MEASURED, message)
            return
        sample, (start, times, rows) = None, self._plan
        elapsed = (nanoseconds(message.header.stamp) - start) / NANOSECONDS
        row = np.searchsorted(times, elapsed, side='right') - 1
        # Before its start the trajectory before it is in progress.
        if message.source == JointEffort.SOURCE_JOINT_TRAJECTORY and row >= 0:
            sample = rows[row].copy()
        self._take(_PLANNED, message, sample)

    def _take_plan(self, message: JointEffortTrajectory) -> None:
        order = self._scene.model.joint_order(message.joint_names)
        rows = [np.reshape(getattr(message, field), (-1, len(order))) for field in _FIELDS]
        times = np.array(message.time_from_start)
        self._plan = nanoseconds(message.header.stamp), times, np.stack(rows, 1)[..., order]


def follow(scene: Scene, period: float, keep: Callable[[], object] = bool) -> None:
    """Show what comes until the process is interrupted.

    Parameters
    ----------
    scene : Scene
    period : float
        Time in which it gets what has come [s].
    keep : callable, optional
        Called after that, for example to write to a file.

    Raises
    ------
    RequestError
        If the node cannot start; the log says why.
    OSError
        Of `keep`, which ends the view.
    """
    views: list[LiveView] = []

    def make() -> LiveView:
        views.append(LiveView(scene, period, keep))
        return views[0]

    if main(make):
        raise RequestError('The view has not started; the reason is above.')
    if views[0].failure is not None:
        raise views[0].failure
