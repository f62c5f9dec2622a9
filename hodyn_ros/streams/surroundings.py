"""Efforts of motions at their instants: on a base that moves, with wrenches and payloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.moving_base import moving_base_inverse_dynamics
from hodyn_ros.errors import StaleError
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.acting_wrenches import NO_WRENCHES, Wrenches, WrenchesAt
from hodyn_ros.streams.payloads import Transitions, mixed
from hodyn_ros.streams.robot_in_use import Robot
from hodyn_ros.streams.signals import Recent, Stiffness
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

BASE_TIMEOUT = (
    0.1  # s between a base motion and the motion of the joints that it is used for
)


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
        if abs(age) > BASE_TIMEOUT:
            raise StaleError(
                f'The base motion is {age:.3f} s away from that of the joints, more than '
                f'{BASE_TIMEOUT} s. Publish base_motion without gaps.'
            )
        # Taylor's series of the twist, and two terms of that of Magnus (1954) for the rotation.
        powers = np.cumprod([1.0, *(age / np.arange(1.0, len(twist) + 1.0))])
        w = twist[:, :3]
        # What is not finite is refused later.
        with np.errstate(over='ignore', invalid='ignore'):
            turned = so3.exp(powers[1:] @ w + age**3 / 12.0 * so3.cross(w[0], w[1]))
            rows = [powers[: len(twist) - k] @ twist[k:] for k in range(len(twist))]
        return LinkMotion(se3.pose(pose[:3, :3] @ turned, pose[:3, 3]), np.array(rows))


class Circumstances(NamedTuple):
    """What a motion is subject to at its instant.

    Attributes
    ----------
    stamp : int
        [ns]
    motion : ndarray, shape (K, n)
        Its orders that have efforts.
    acting : WrenchesAt
        Wrenches then.
    base : LinkMotion, optional
        Motion of the base link; None: at rest.
    """

    stamp: int
    motion: Array
    acting: WrenchesAt = NO_WRENCHES
    base: LinkMotion | None = None

    def efforts(self, model: RobotModel, motion: Array, wrenches: Any) -> Array:
        """Efforts (..., K - 2, n) [N m/s^k] or [N/s^k] of a model on this base.

        Parameters
        ----------
        model : RobotModel
        motion : ndarray, shape (..., K, n)
        wrenches : sequence of Wrench
        """
        if self.base is None:
            return inverse_dynamics(model, motion, wrenches or None)
        return moving_base_inverse_dynamics(
            model, motion, self.base, wrenches or None
        ).effort


class Surroundings:
    """What acts on a robot beside the motion of its joints, and the efforts with it.

    Parameters
    ----------
    settings : object
        See `Wrenches`.

    Attributes
    ----------
    wrenches : Wrenches
        Of all links.
    base : BaseMotions
        Looked at only if the settings say that the base moves.
    stiffness : Stiffness
        Wanted of joints that can choose it.
    transitions : Transitions
        Of payloads.
    """

    def __init__(self, settings: Any) -> None:
        self.wrenches: Wrenches = Wrenches(settings)
        self.base: BaseMotions = BaseMotions()
        self.stiffness: Stiffness = Stiffness()
        self.transitions: Transitions = Transitions()

    def clear(self) -> None:
        """Forget everything: time has jumped."""
        for part in (self.wrenches, self.base, self.stiffness, self.transitions):
            part.clear()

    def circumstances(
        self, robot: Robot, motion: Array, stamp: int, settings: Any
    ) -> Circumstances:
        """What a motion is subject to at an instant.

        Parameters
        ----------
        robot : Robot
        motion : ndarray, shape (K, n)
            Positions and derivatives.
        stamp : int
            Of the instant [ns].
        settings : object
            With `base_motion`.

        Returns
        -------
        Circumstances
            Its motion has as many orders as base and wrenches permit.

        Raises
        ------
        StaleError, WrenchError
            If what acts then is not known.
        """
        base = self.base.motion_at(stamp) if settings.base_motion else None
        if base is not None:
            motion = motion[: len(base.twist) + 1]
        acting = NO_WRENCHES
        if self.wrenches.sources:
            acting = self.wrenches.at(stamp, motion, robot.model)
            motion = motion[: acting.order + 3]
        return Circumstances(stamp, motion, acting, base)

    def efforts(self, robot: Robot, found: Circumstances, variant: int = 0) -> Array:
        """Efforts with the payloads of the time.

        Parameters
        ----------
        robot : Robot
            In use, with the payloads that it carries when all transitions are over.
        found : Circumstances
        variant : int
            0 for all efforts, 1 for those that are sent; see `Robot.variants`.

        Returns
        -------
        ndarray, shape (K - 2, n)
            [N m/s^k] or [N/s^k]; along a transition mixed by the product rule.
        """
        stamp, motion, wrenches = found.stamp, found.motion, found.acting.wrenches
        if not self.transitions.items:
            model = robot.sent if variant else robot.model
            return found.efforts(model, motion, wrenches)
        before, after, transition = self.transitions.at(stamp, robot)
        effort = found.efforts(before.variants[variant], motion, wrenches)
        if transition is None:
            return effort
        other = found.efforts(after.variants[variant], motion, wrenches)
        return mixed(effort, other, transition.weights(stamp, len(effort)))


def deviations(
    model: RobotModel, found: Circumstances, effort: Array, of_motion: Array | None = None
) -> Array | None:
    """Standard deviations of efforts, to first order, from those of motion and wrenches.

    Parameters
    ----------
    model : RobotModel
    found : Circumstances
        Of the motion, shape (K, n).
    effort : ndarray, shape (K - 2, n)
        Without the deviations.
    of_motion : ndarray, shape (S, K, n), optional
        Independent deviations of one standard deviation, as `Estimate.deviations` returns them;
        None: the motion is exact.

    Returns
    -------
    ndarray, shape (K - 2, n), or None
        Root of the sum of the squared changes; None if all is exact.
    """
    motion, wrenches = found.motion, found.acting.wrenches
    changed = []
    if of_motion is not None:
        changed.append(found.efforts(model, motion + of_motion, wrenches))
    for index, steps in enumerate(found.acting.deviations):
        if steps is not None:
            others = list(wrenches)
            values = np.asarray(others[index].values) + steps
            others[index] = replace(others[index], values=values)
            motions = np.broadcast_to(motion, (len(steps), *motion.shape))
            changed.append(found.efforts(model, motions, others))
    if not changed:
        return None
    result: Array = np.sqrt(np.square(np.concatenate(changed) - effort).sum(axis=0))
    return result
