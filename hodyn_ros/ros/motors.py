"""What the motors do behind the joints: messages, and the stream with its past."""

from __future__ import annotations

import array
from collections.abc import Mapping

import numpy as np
from hodyn_msgs.msg import MotorReference, MotorTrajectory
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.deflections import spring_deflections
from hodyn_ros.actuators.robot import MotorMotion, MotorState, motor_motion, motor_step
from hodyn_ros.ros.conversions import NANOSECONDS, flat

Array = NDArray[np.float64]

POSITION_FIELDS = ('position', 'velocity', 'acceleration')
TORQUE_FIELDS = ('torque', 'torque_dot')

# After a longer time without a sample the deflection of a joint with a damper is taken to have
# settled, as at the beginning of a motion.
LONGEST_STEP = 0.5  # s


class MotorStream:
    """Motor references of a stream of samples, one after the other.

    Parameters
    ----------
    actuators : Actuators
    """

    def __init__(self, actuators: Actuators) -> None:
        self._actuators = actuators
        self._has_dampers = any(item.actuator.needs_times for item in actuators.driven)
        self._state: MotorState | None = None
        self._source: int | None = None
        self._begin = 0
        self._message = MotorReference(
            motor_names=list(actuators.motor_names), joint_names=joints_of_motors(actuators)
        )
        self._message.header.frame_id = actuators.model.base_link
        self._empty = array.array('d')

    def reset(self) -> None:
        """Forget the samples so far."""
        self._state = None

    def motors(
        self,
        motion: Array,
        effort: Array,
        stamp: int,
        source: int,
        stiffness: Mapping[str, Array],
    ) -> MotorMotion:
        """Motion and torque of the motors.

        Parameters
        ----------
        motion : ndarray, shape (K, n)
        effort : ndarray, shape (E, n)
        stamp : int
            [ns]. A stamp that is not behind the one before begins a new motion.
        source : int
            Another source begins a new motion.
        stiffness : mapping of joint name to ndarray, shape (3,)
            Of every joint that can choose it.

        Raises
        ------
        HodynError
            If the actuators cannot do it.
        """
        if not self._has_dampers:
            return motor_motion(
                self._actuators, motion, effort, stiffness=stiffness, order=None
            )
        before, self._state = self._state, None  # unless all goes well
        if before is None or source != self._source:
            before, self._begin, self._source = None, stamp, source
        time = (stamp - self._begin) / NANOSECONDS
        if before is not None and (
            not 0.0 < time - before.time <= LONGEST_STEP
            or before.deflection.shape[-1] != len(effort) + 1
        ):
            before, self._begin, time = None, stamp, 0.0
        motors, self._state = motor_step(
            self._actuators, time, motion, before, effort, stiffness=stiffness, order=None
        )
        return motors

    def message(self, motors: MotorMotion, stamp: int, source: int) -> MotorReference:
        """Message that is valid until the next one is written."""
        message = self._message
        time = message.header.stamp
        time.sec, time.nanosec = divmod(stamp, NANOSECONDS)
        message.source = source
        for fields, values in ((POSITION_FIELDS, motors.position), (TORQUE_FIELDS, motors.torque)):
            for order, name in enumerate(fields):
                is_there = order < len(values)
                setattr(message, name, flat(values[order]) if is_there else self._empty)
        message.deflection = flat(spring_deflections(self._actuators, motors)[0])
        return message


def joints_of_motors(actuators: Actuators) -> list[str]:
    """Name of the joint that each motor moves."""
    return [actuators.model.joint_names[joint] for joint in actuators.joint_of_motor]


def motor_trajectory_message(
    actuators: Actuators, times: Array, motors: MotorMotion
) -> MotorTrajectory:
    """Motors along a motion of N samples as a message."""
    message = MotorTrajectory(
        motor_names=list(actuators.motor_names), joint_names=joints_of_motors(actuators)
    )
    message.time_from_start = flat(times)
    for fields, values in ((POSITION_FIELDS, motors.position), (TORQUE_FIELDS, motors.torque)):
        for name, rows in zip(fields, np.moveaxis(values, 1, 0)):
            setattr(message, name, flat(rows))
    message.deflection = flat(spring_deflections(actuators, motors)[:, 0])
    return message
