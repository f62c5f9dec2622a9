"""Payload and friction that efforts of joint states tell, as messages."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.msg import IdentifiedParameters
from hodyn_msgs.srv import SetPayload
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError
from hodyn_ros.ros.base.conversions import time_message, values_of
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.streams.identification import OnlineParameters
from hodyn_ros.typing import Array


class OnlineIdentification(OnlineParameters):
    """Payload and friction as measured joint states show them; of the thread of the executor.

    Parameters
    ----------
    node : RobotNode
        Publishes them on ~/identified_parameters.
    """

    def __init__(self, node: RobotNode[NodeSettings]) -> None:
        super().__init__(node)
        self._node = node
        self._publisher = node.advertise(IdentifiedParameters, '~/identified_parameters')

    def take_message(self, message: JointState, stamp: int) -> None:
        """Keep the efforts of a measurement, if it has them.

        Parameters
        ----------
        message : JointState
        stamp : int
            Its time [ns].
        """
        if not self.wants(stamp):
            return
        try:
            measured = values_of('joint_states', message, ('effort',), self._joints)
        except HodynError as error:
            self._problem = str(error)
            return
        if measured is not None:
            self.take(measured[0], stamp)

    def update(
        self,
        motion: Array,
        stamp: int,
        wrenches: Sequence[Wrench] | None,
        deviations: Array,
    ) -> None:
        """Compare what was measured at an instant with a motion; publish what there is.

        Parameters
        ----------
        motion, stamp, wrenches, deviations
            See `OnlineParameters.compare`.
        """
        found = self.compare(motion, stamp, wrenches, deviations)
        if found is None:
            return
        assert self._estimator is not None
        link = self._node.settings.identification.payload_link
        message = IdentifiedParameters(
            header=Header(stamp=time_message(stamp), frame_id=link),
            names=found.names,
            values=found.values,
            deviations=found.std,
            units=found.units,
            samples=self._estimator.samples,
            outliers=self._estimator.outliers,
        )
        self._publisher.publish(message)

    def fill(self, request: SetPayload.Request) -> None:
        """Write the payload that was found into a request.

        Parameters
        ----------
        request : SetPayload.Request
            With the link, or an empty one for that of the settings.

        Raises
        ------
        RequestError
            If none is certain.
        """
        request.link, request.inertia.m, center = self.payload(request.link)
        com = request.inertia.com
        com.x, com.y, com.z = center.tolist()

    def statuses(self) -> list[DiagnosticStatus]:
        """Health, if anything is to be identified."""
        report = self.report()
        return (
            []
            if report is None
            else [self._node.diagnostics.status('identification', *report)]
        )
