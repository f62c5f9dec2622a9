"""Messages for the objects of `hodyn_ros.streams` that keep what has come."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import BaseMotion, StiffnessMotion, WrenchMotion
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.base.conversions import (
    fill,
    moment_force,
    motion_of_base,
    read_rows,
    time_message,
    values_of,
    wrench_from_message,
)
from hodyn_ros.ros.base.motor_messages import stiffness_from_message
from hodyn_ros.streams import base_motion, measured, motors, wrenches
from hodyn_ros.streams.timeline import nanoseconds
from hodyn_ros.trajectory.estimator import Estimate
from hodyn_ros.typing import Array

_STATE = ('position', 'velocity')


def _stamp(header: Header) -> wrenches.Time:
    """Function that returns the stamp of a header [ns], or raises a MotionError."""
    return lambda: nanoseconds(header.stamp)


class WrenchMessages(wrenches.Wrenches):
    """The latest wrench on every link, from messages; a stamp of zero means now."""

    def take_motion(self, message: WrenchMotion, model: RobotModel, now: int) -> bool:
        """Take a wrench with its derivatives.

        Parameters
        ----------
        message : WrenchMotion
        model : RobotModel
        now : int
            [ns]

        Returns
        -------
        bool
            As of `take_given`.

        Raises
        ------
        WrenchError
            If it cannot be used.
        """
        given = wrench_from_message(message)
        return self.take_given(given, _stamp(message.header), model, now)

    def take_stamped(self, message: WrenchStamped, model: RobotModel, now: int) -> bool:
        """Take a sample of a measured wrench.

        Parameters
        ----------
        message : WrenchStamped
        model : RobotModel
        now : int
            [ns]

        Returns
        -------
        bool
            As of `take_measured`.

        Raises
        ------
        WrenchError
            If it cannot be used.
        """
        frame, values = message.header.frame_id, np.array(moment_force(message.wrench))
        return self.take_measured(frame, values, _stamp(message.header), model, now)


class BaseMotionMessages(base_motion.BaseMotions):
    """The latest motions of the base link, from messages."""

    def take(self, message: BaseMotion, base_link: str, now: int, timeout: float) -> bool:
        """Take a message; a stamp of zero means now.

        Parameters
        ----------
        message : BaseMotion
        base_link : str
            Whose motion it has to be.
        now : int
            [ns]
        timeout : float
            Largest distance of the stamp from now [s]; 0: any.

        Returns
        -------
        bool
            Whether no newer one came before it.

        Raises
        ------
        MotionError
            If the message cannot be used.
        StaleError
            If its stamp is farther from now.
        """
        motion = motion_of_base(message, base_link)
        return self.take_motion(
            motion, nanoseconds(message.header.stamp) or now, now, timeout
        )


class JointStateMessages(measured.MeasuredMotion):
    """Motion of a robot as it is estimated from messages on its joint states."""

    def update(self, message: JointState, now: int, timeout: float) -> Estimate | None:
        """Take a measurement; further joints are ignored.

        Parameters
        ----------
        message : JointState
            A stamp of zero means now.
        now : int
            [ns]
        timeout : float
            Largest distance of the stamp from now [s]; 0: any.

        Returns
        -------
        Estimate or None
            As of `take`; None also if the message is about other joints alone.

        Raises
        ------
        JointNameError, MotionError, StaleError
            If it cannot be used.
        """
        values = values_of('joint_states', message, ('position',), self.joint_names)
        if values is None or not self.is_in_use:
            return None
        return self.take(values[0], nanoseconds(message.header.stamp) or now, now, timeout)


class MechanismMessages(measured.MechanismStates):
    """States of all joints of a robot with closed loops, from messages and as messages."""

    def completed(self, message: JointState, stamp: int, now: int) -> JointState | None:
        """State of all joints from a measurement.

        Parameters
        ----------
        message : JointState
        stamp, now : int
            [ns]

        Returns
        -------
        JointState or None
            As of `take`.

        Raises
        ------
        JointNameError, MotionError
            If it cannot be used.
        """
        names, count = message.name, 1 + bool(message.velocity)
        fields = _STATE[:count]
        values = read_rows('joint_states', message, fields, len(names), count, 'name')
        motion = self.take(names, values, now)
        return None if motion is None else self.message(motion, stamp)

    def message(self, motion: Array, stamp: int) -> JointState:
        """Positions and velocities (K, N) of all joints at a time [ns]."""
        message = JointState(name=self.joint_names)
        message.header.stamp = time_message(stamp)
        fill(message, _STATE, motion)
        return message


class StiffnessMessages(motors.Stiffness):
    """The latest wish for every joint of variable stiffness, from messages."""

    def take(self, message: StiffnessMotion, joints: Iterable[str], now: int) -> bool:
        """Take a wish; a stamp of zero means now.

        Parameters
        ----------
        message : StiffnessMotion
        joints : iterable of str
            Those of variable stiffness.
        now : int
            [ns]

        Returns
        -------
        bool
            Whether no newer one came before it.

        Raises
        ------
        HodynError
            As of `stiffness_from_message`, or if the stamp cannot be used.
        """
        wanted = stiffness_from_message(message, joints)
        return self.take_wish(wanted, nanoseconds(message.header.stamp) or now)
