"""What measured efforts tell of payload and friction: from joint states to `OnlineEstimator`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.msg import IdentifiedParameters
from hodyn_msgs.srv import SetPayload
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from hodyn_ros.control.online import OnlineEstimator, ParameterEstimate
from hodyn_ros.dynamics.regressor import regressor
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError, RequestError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.ros.base.diagnostics import OK, WARN
from hodyn_ros.ros.base.joint_states import values_of
from hodyn_ros.ros.base.payloads import loaded
from hodyn_ros.ros.base.robot import Robot
from hodyn_ros.streams.timeline import NANOSECONDS

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node import RobotNode
    from hodyn_ros.ros.base.node_settings import IdentificationSettings, NodeSettings

Array = NDArray[np.float64]

_PART = 'identification'
_LEAST_STEP = 19_000_000  # between measurements that are used: up to fifty a second [ns]
_PERIOD = 100_000_000  # of what is published [ns]
# Efforts wait for the motion of their time; a longer gap begins anew [ns].
_KEPT, _MOST_KEPT = 2 * NANOSECONDS, 4000
# Efforts are averaged around an instant, as the estimate of the motion smooths that [ns].
_AROUND = np.linspace(-1e7, 1e7, 9)


def estimator_of(model: RobotModel, settings: IdentificationSettings) -> OnlineEstimator:
    """Make what the settings ask for; HodynError if it does not suit the robot."""
    return OnlineEstimator(
        model,
        link=settings.payload_link or None,
        friction=[name for name in settings.friction if name],
        memory=settings.memory,
        effort_noise=settings.effort_noise,
    )


class OnlineIdentification:
    """Payload and friction as measured joint states show them; of the thread of the executor."""

    def __init__(self, node: RobotNode[NodeSettings]) -> None:
        self._node = node
        topic = '~/identified_parameters'
        self._publisher = qos.create_publisher(node, IdentifiedParameters, topic, qos.OUTPUT)
        self._in_use: object = None
        self._estimator: OnlineEstimator | None = None
        self._joints: tuple[str, ...] = ()
        self._problem = ''  # why there is nothing new
        self.clear()

    def clear(self) -> None:
        """Forget all measurements."""
        self._efforts: deque[tuple[int, Array]] = deque(maxlen=_MOST_KEPT)
        self._latest = self._published = 0  # [ns]
        if self._estimator is not None:
            self._estimator.reset()

    def use(self, robot: Robot) -> None:
        """Follow the settings and the robot; anew if anything is different but what is found."""
        settings = self._node.settings.identification
        others = tuple(item for item in robot.payloads if item.link != settings.payload_link)
        in_use = (settings, robot.bare, robot.model.friction, others) if settings.enabled else None
        if in_use == self._in_use:
            return
        self._in_use, self._estimator, self._problem = in_use, None, ''
        self._joints = robot.model.joint_names
        self.clear()
        if in_use is None:
            return
        laws = {name: robot.model.friction.get(name) for name in robot.model.body_names}
        model = loaded(robot.bare, others).with_friction(laws)
        try:
            made = estimator_of(model, settings)
        except HodynError as error:
            self._problem = str(error)
            self._node.get_logger().error(f'Nothing is identified: {error}')
            return
        rest = np.zeros((3, model.n_joints))

        def begin() -> None:
            if in_use is self._in_use:
                self._estimator = made

        def prepare() -> None:
            try:
                model.warm_up(0, lambda: regressor(model, rest))
            finally:  # compilers fail in many ways; NumPy computes the same
                self._node.soon(begin)

        self._node.worker.put(prepare)

    def take(self, message: JointState, stamp: int) -> None:
        """Keep the efforts of a measurement [ns] until the motion of its time is known."""
        efforts = self._efforts
        if efforts and abs(stamp - efforts[-1][0]) > _KEPT:
            efforts.clear()
        if self._estimator is None or (efforts and stamp <= efforts[-1][0]):
            return
        try:
            measured = values_of('joint_states', message, ('effort',), self._joints)
        except HodynError as error:
            self._problem = str(error)
            return
        if measured is not None:
            self._problem = ''
            efforts.append((stamp, measured[0]))

    def update(
        self, motion: Array, stamp: int, wrenches: Sequence[Wrench] | None, deviations: Array
    ) -> None:
        """Compare the efforts measured at an instant [ns] with the motion (K, n) found for it.

        Wrenches are known, and efforts (K-2, n) of the model have standard deviations.
        """
        estimator, efforts = self._estimator, self._efforts
        if stamp < self._latest:
            self.clear()
        if estimator is None or stamp - self._latest < _LEAST_STEP:
            return
        if not (efforts and efforts[0][0] <= stamp <= efforts[-1][0]):
            return
        times = np.array([time - stamp for time, _ in efforts])
        columns = np.array([effort for _, effort in efforts]).T
        measured = [np.interp(_AROUND, times, column).mean() for column in columns]
        while efforts[0][0] < stamp + _AROUND[0] - _LEAST_STEP and len(efforts) > 1:
            efforts.popleft()
        estimate = estimator.update(stamp, motion, measured, deviations[0], wrenches)
        self._latest = stamp
        if estimate is None or stamp - self._published < _PERIOD:
            return
        self._published, found = stamp, self._total(estimate)
        link = self._node.settings.identification.payload_link
        self._publisher.publish(
            IdentifiedParameters(
                header=Header(stamp=time_message(stamp), frame_id=link),
                names=found.names,
                values=found.values,
                deviations=found.std,
                units=found.units,
                samples=estimator.samples,
                outliers=estimator.outliers,
            )
        )

    def _total(self, found: ParameterEstimate) -> ParameterEstimate:
        """What there is with the friction that is in use."""
        used = {f'friction.{joint}.{key}': x for joint, key, x in self._node.settings.friction}
        return found._replace(values=found.values + [used.get(name, 0.0) for name in found.names])

    def fill(self, request: SetPayload.Request) -> None:
        """Write the payload that was found into a request; RequestError if none is certain."""
        settings, estimator = self._node.settings.identification, self._estimator
        link = settings.payload_link
        if not (settings.enabled and link) or request.link not in ('', link):
            raise RequestError(
                f'use_identified: nothing is identified on {request.link!r}; expected '
                f'identification.payload_link ({link!r}), and identification.enabled.'
            )
        if estimator is None or self._node.now() - self._latest > settings.memory * NANOSECONDS:
            raise RequestError(f'use_identified: nothing is measured. {self._problem}'.rstrip())
        found = estimator.estimate
        payload = found.payload()
        if payload is None:
            raise RequestError(
                f'use_identified: no payload is certain, its mass is {_shown(found)[0]}. Move '
                'more joints, or wait; mass 0 says that the link carries nothing.'
            )
        request.link, request.inertia.m = link, payload[0]
        com = request.inertia.com
        com.x, com.y, com.z = payload[1].tolist()

    def statuses(self) -> list[DiagnosticStatus]:
        """Health, if anything is to be identified."""
        estimator, report = self._estimator, self._node.diagnostics.status
        if self._in_use is None:
            return []
        if self._problem or estimator is None or not estimator.samples:
            return [report(_PART, WARN, self._problem or 'no measurement yet', {})]
        found = self._total(estimator.estimate)
        values: dict[str, object] = dict(zip(found.names, _shown(found)))
        values |= {'samples': estimator.samples, 'outliers': estimator.outliers}
        certain = 'a payload is certain' if found.payload() else 'measurements are used'
        return [report(_PART, OK, certain, values)]


def _shown(found: ParameterEstimate) -> list[str]:
    rows = zip(found.values, found.std, found.units)
    return [f'{value:.3g} +- {std:.2g} {unit}' for value, std, unit in rows]
