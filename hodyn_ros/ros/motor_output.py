"""The output ``~/motor_reference``: what the motors do behind the joints."""

from __future__ import annotations

from collections.abc import Callable

from hodyn_msgs.msg import MotorReference, StiffnessMotion
from numpy.typing import NDArray
from rclpy.node import Node

from hodyn_ros.actuators.limits import find_motor_violations
from hodyn_ros.errors import HodynError
from hodyn_ros.ros import qos
from hodyn_ros.ros.diagnostics import Diagnostics
from hodyn_ros.ros.drives import Drives
from hodyn_ros.ros.motors import MotorStream
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.stiffness import Stiffness

INPUT = 'stiffness_motion'
OUTPUT = 'motor_reference'


class MotorOutput:
    """Publishes motor references beside the efforts, if the robot has actuators.

    Parameters
    ----------
    node : rclpy.node.Node
    settings : callable
        Returns the settings in use.
    diagnostics : Diagnostics
    log_error : callable
        Is called with `OUTPUT` and a text.
    """

    def __init__(
        self,
        node: Node,
        settings: Callable[[], Settings],
        diagnostics: Diagnostics,
        log_error: Callable[[str, str], None],
    ) -> None:
        self._settings, self._diagnostics, self._log_error = settings, diagnostics, log_error
        self._publisher = qos.create_publisher(node, MotorReference, f'~/{OUTPUT}', qos.OUTPUT)
        self._drives: Drives | None = None
        self._stream: MotorStream | None = None
        self._stiffness = Stiffness()

    def use(self, drives: Drives | None) -> None:
        """Take up the actuators of the robot from now on."""
        if drives is not self._drives:
            self._drives = drives
            self._stream = None if drives is None else MotorStream(drives.actuators)
            self._stiffness.keep_only(() if drives is None else drives.stiffness)

    def reset(self) -> None:
        """Forget what came before."""
        self._stiffness.clear()
        if self._stream is not None:
            self._stream.reset()

    def take_stiffness(self, message: StiffnessMotion, now: int) -> None:
        """Take the stiffness that joints shall have.

        Raises
        ------
        HodynError
            If it cannot be used.
        """
        dropped = self._stiffness.dropped
        joints = () if self._drives is None else self._drives.stiffness
        self._stiffness.take(message, joints, now)
        if self._stiffness.dropped > dropped:
            self._diagnostics.dropped(INPUT)

    def publish(self, motion: NDArray, effort: NDArray, stamp: int, source: int) -> None:
        """Publish what the motors do, or say why not.

        Parameters
        ----------
        motion : ndarray, shape (K, n)
        effort : ndarray, shape (E, n)
        stamp : int
            [ns]
        source : int
            One of JointEffort.SOURCE_*.
        """
        drives, stream = self._drives, self._stream
        if drives is None or stream is None:
            return
        settings = self._settings()
        asked = self._stiffness.at(
            stamp, settings.stiffness_timeout, settings.stiffness_rest_time, drives.stiffness
        )
        stiffness = {**drives.default_stiffness(), **asked} if drives.stiffness else {}
        try:
            motors = stream.motors(motion, effort, stamp, source, stiffness)
        except HodynError as error:
            self._diagnostics.motors_stopped(str(error))
            self._log_error(OUTPUT, f'No motor reference is published: {error}')
            return
        self._publisher.publish(stream.message(motors, stamp, source))
        violations = find_motor_violations(drives.actuators, drives.limits, motors)
        self._diagnostics.motors_published(
            [f'{item.quantity} of {item.joint_name}' for item in violations]
        )
