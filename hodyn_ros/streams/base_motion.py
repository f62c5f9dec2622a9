"""The motion of the base link in the world: as it is sent, and as it goes on until it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.dynamics.moving_base import moving_base_inverse_dynamics
from hodyn_ros.errors import StaleError
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.timeline import NANOSECONDS, check_age
from hodyn_ros.streams.wrench_sources import Recent


class BaseMotions(Recent[LinkMotion]):
    """The latest motions of the base link; of the thread of the executor."""

    def take_motion(self, motion: LinkMotion, stamp: int, now: int, timeout: float) -> bool:
        """Take a motion of a time [ns]; return whether no newer one came before it.

        StaleError if it is farther from now [ns] than the time-out [s]; 0: however far.
        """
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
        with np.errstate(
            over='ignore', invalid='ignore'
        ):  # what is not finite is refused later
            turned = so3.exp(powers[1:] @ w + age**3 / 12.0 * so3.cross(w[0], w[1]))
            rows = [powers[: len(twist) - k] @ twist[k:] for k in range(len(twist))]
        return LinkMotion(se3.pose(pose[:3, :3] @ turned, pose[:3, 3]), np.array(rows))


def efforts_on(
    base: LinkMotion, model: RobotModel, motion: Array, wrench: Any = None
) -> Array:
    """Joint efforts as of `inverse_dynamics`, on a base that moves."""
    return moving_base_inverse_dynamics(model, motion, base, wrench).effort
