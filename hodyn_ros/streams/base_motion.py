"""The motion of the base link in the world: as it is sent, and as it goes on until it is used."""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import StaleError
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.lie import se3, so3
from hodyn_ros.streams.signals import Recent
from hodyn_ros.streams.timeline import NANOSECONDS

TIMEOUT = 0.1  # s between a base motion and the motion of the joints that it is used for


class BaseMotions(Recent[LinkMotion]):
    """The latest motions of the base link; of the thread of the executor."""

    def motion_at(self, time: int) -> LinkMotion:
        """Motion of the base at an instant: that of the message before, by its derivatives.

        The twist follows its Taylor series, the rotation two terms of the series of Magnus (1954);
        the position stays.

        Parameters
        ----------
        time : int
            [ns]

        Returns
        -------
        LinkMotion
            With as many derivatives of the twist as the message has.

        Raises
        ------
        StaleError
            If there is no message, or none that is near enough.
        """
        if not self:
            raise StaleError('No base_motion has come yet; a base at rest sends zeros.')
        stamp, (pose, twist) = self.before(time)
        age = (time - stamp) / NANOSECONDS
        if abs(age) > TIMEOUT:
            raise StaleError(
                f'The base motion is {age:.3f} s away from that of the joints, more than '
                f'{TIMEOUT} s. Publish base_motion without gaps.'
            )
        # Taylor's series of the twist, and two terms of that of Magnus (1954) for the rotation.
        powers = np.cumprod([1.0, *(age / np.arange(1.0, len(twist) + 1.0))])
        w = twist[:, :3]
        # What is not finite is refused later.
        with np.errstate(over='ignore', invalid='ignore'):
            turned = so3.exp(powers[1:] @ w + age**3 / 12.0 * so3.cross(w[0], w[1]))
            rows = [powers[: len(twist) - k] @ twist[k:] for k in range(len(twist))]
        return LinkMotion(se3.pose(pose[:3, :3] @ turned, pose[:3, 3]), np.array(rows))
