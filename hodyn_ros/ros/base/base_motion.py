"""The motion of the base link in the world: as it is sent, and as it goes on until it is used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hodyn_msgs.msg import BaseMotion

from hodyn_ros.checks import Array
from hodyn_ros.dynamics.moving_base import moving_base_inverse_dynamics
from hodyn_ros.errors import MotionError, StaleError
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.base.conversions import HIGHEST_EFFORT_ORDER, nanoseconds
from hodyn_ros.ros.base.joint_states import check_age
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.streams.wrench_sources import Recent

_FEWEST, _MOST = 2, HIGHEST_EFFORT_ORDER + 2  # entries of a twist that are used
_OFF_UNIT = 1e-3  # of the length of a quaternion, which senders round


class BaseMotions(Recent[LinkMotion]):
    """The latest motions of the base link; of the thread of the executor."""

    def take(self, message: BaseMotion, base_link: str, now: int, timeout: float) -> bool:
        """Take a message, stamped zero for now [ns]; return whether no newer one came before it.

        The stamp is no farther from now than the time-out [s]; 0: however far. MotionError if it
        cannot be used.
        """
        motion = motion_of_base(message, base_link)
        stamp = nanoseconds(message.header.stamp) or now
        check_age('base_motion', stamp, now, timeout, 'input_timeout')
        is_newest = not self or stamp >= self[-1][0]
        if is_newest:
            self.add(stamp, motion)
        return is_newest

    def motion_at(self, time: int, timeout: float) -> LinkMotion:
        """Motion at an instant [ns], as that of the message before goes on by its derivatives.

        The position stays. StaleError if no message is near enough.
        """
        if not self:
            raise StaleError('No base_motion has come yet; a base at rest sends zeros.')
        stamp, (pose, twist) = self.at(time)
        age = (time - stamp) / NANOSECONDS
        if abs(age) > timeout:
            raise StaleError(
                f'The base motion is {age:.3f} s away from that of the joints, more than '
                f'base_motion_timeout ({timeout} s). Publish base_motion without gaps.'
            )
        # Taylor's series of the twist, and two terms of that of Magnus (1954) for the rotation.
        powers = np.cumprod([1.0, *(age / np.arange(1.0, len(twist) + 1.0))])
        w = twist[:, :3]
        with np.errstate(over='ignore', invalid='ignore'):  # what is not finite is refused later
            turned = so3.exp(powers[1:] @ w + age**3 / 12.0 * so3.cross(w[0], w[1]))
            rows = [powers[: len(twist) - k] @ twist[k:] for k in range(len(twist))]
        return LinkMotion(se3.pose(pose[:3, :3] @ turned, pose[:3, 3]), np.array(rows))


def motion_of_base(message: BaseMotion, base_link: str) -> LinkMotion:
    """Pose (4, 4) and twist (2 to 4, 6) of a message; MotionError if they cannot be used."""
    if message.child_frame_id != base_link:
        raise MotionError(
            f'BaseMotion: child_frame_id is {message.child_frame_id!r}, expected the base link '
            f'{base_link!r}; bring the motion of another link there first.'
        )
    if len(message.twist) < _FEWEST:
        raise MotionError(
            f'BaseMotion: twist has {len(message.twist)} entries, expected the twist and its '
            'first derivative, and two more for derivatives of efforts. None is taken as zero.'
        )
    q, p = message.pose.orientation, message.pose.position
    pairs = [(item.angular, item.linear) for item in message.twist[:_MOST]]
    twist = np.array([[item.x, item.y, item.z] for pair in pairs for item in pair]).reshape(-1, 6)
    position, e, length = [p.x, p.y, p.z], [q.x, q.y, q.z, q.w], math.hypot(q.x, q.y, q.z, q.w)
    if not np.isfinite([*twist.flat, *position, *e]).all():
        raise MotionError('BaseMotion: all values must be finite.')
    if abs(length - 1.0) > _OFF_UNIT:
        raise MotionError(f'BaseMotion: the quaternion has length {length:.6g}, expected 1.')
    hat, w = so3.hat(e[:3]) / length, q.w / length
    rotation = np.eye(3) + 2.0 * w * hat + 2.0 * hat @ hat
    return LinkMotion(se3.pose(rotation, position), twist)


def efforts_on(base: LinkMotion, model: RobotModel, motion: Array, wrench: Any = None) -> Array:
    """Joint efforts as of `inverse_dynamics`, on a base that moves."""
    return moving_base_inverse_dynamics(model, motion, base, wrench).effort
