"""Efforts of motions at their instants: on a base that moves, with wrenches and payloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.base_motion import BaseMotions, efforts_on
from hodyn_ros.streams.payloads import Transitions, mixed
from hodyn_ros.streams.robot import Robot
from hodyn_ros.streams.wrenches import Wrenches, WrenchesAt
from hodyn_ros.trajectory.estimator import Estimate
from hodyn_ros.typing import Array


class Circumstances(NamedTuple):
    """What a motion is subject to at its instant.

    Attributes
    ----------
    stamp : int
        [ns]
    motion : ndarray, shape (K, n)
        Its orders that have efforts.
    dynamics : callable
        Computes efforts (K - 2, n) of a model, the motion and wrenches.
    acting : WrenchesAt, optional
        What is known of the wrenches; None if there are no sources of them.
    wrenches : sequence of Wrench, optional
        Those that act; None if there are none.
    """

    stamp: int
    motion: Array
    dynamics: Callable[..., Array] = inverse_dynamics
    acting: WrenchesAt | None = None
    wrenches: Sequence[Wrench] | None = None


class InstantEfforts:
    """Efforts with what is known of the time of a motion.

    Parameters
    ----------
    wrenches : Wrenches
        Of all links.
    base : BaseMotions
        Looked at only if the settings say that the base moves.
    transitions : Transitions
        Of payloads.
    """

    def __init__(
        self, wrenches: Wrenches, base: BaseMotions, transitions: Transitions
    ) -> None:
        self._wrenches, self._base, self._transitions = wrenches, base, transitions

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
        found = Circumstances(stamp, motion)
        if settings.base_motion:
            base = self._base.motion_at(stamp)
            motion = motion[: len(base.twist) + 1]
            found = found._replace(motion=motion, dynamics=partial(efforts_on, base))
        if self._wrenches.sources:
            acting = self._wrenches.at(stamp, motion, robot.model)
            motion, wrenches = motion[: acting.order + 3], acting.wrenches or None
            found = found._replace(motion=motion, acting=acting, wrenches=wrenches)
        return found

    def of(self, robot: Robot, found: Circumstances, variant: int = 0) -> Array:
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
        stamp, motion, dynamics, _, wrenches = found
        if not self._transitions.items:
            return dynamics(robot.sent if variant else robot.model, motion, wrenches)
        before, after, transition = self._transitions.at(stamp, robot)
        effort = dynamics(before.variants[variant], motion, wrenches)
        if transition is None:
            return effort
        other = dynamics(after.variants[variant], motion, wrenches)
        return mixed(effort, other, transition.weights(stamp, len(effort)))


def deviations(
    robot: Robot, found: Circumstances, effort: Array, estimate: Estimate | None
) -> Array | None:
    """Standard deviations of efforts, by those of what is measured.

    Parameters
    ----------
    robot : Robot
    found : Circumstances
    effort : ndarray, shape (orders, n)
        Without the deviations.
    estimate : Estimate, optional
        From which the motion is; None: the motion is exact.

    Returns
    -------
    ndarray, shape (orders, n), optional
        None if they are not known.
    """
    of_motion = None if estimate is None else estimate.deviations(len(found.motion))
    acting = found.acting or WrenchesAt([], 0, [])
    return effort_deviations(
        robot.model,
        found.motion,
        effort,
        acting.wrenches or (),
        of_motion,
        acting.deviations if found.acting else (),
        found.dynamics,
    )


def effort_deviations(
    model: RobotModel,
    motion: Array,
    effort: Array,
    wrenches: Sequence[Wrench],
    motion_deviations: Array | None = None,
    wrench_deviations: Sequence[Array | None] = (),
    dynamics: Callable[..., Array] | None = None,
) -> Array | None:
    """Standard deviations of efforts, to first order, from those of motion and wrenches.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (K, n)
    effort : ndarray, shape (K-2, n)
        What `dynamics` makes of motion and wrenches.
    wrenches : sequence of Wrench
    motion_deviations : ndarray, shape (S, K, n), optional
        Independent deviations of one standard deviation, as `Estimate.deviations` returns them;
        None: the motion is exact.
    wrench_deviations : sequence of (ndarray of shape (S, K-2, 6), or None)
        The same of every wrench.
    dynamics : callable, optional
        What has computed the efforts, by default `inverse_dynamics`.

    Returns
    -------
    ndarray, shape (K-2, n), or None
        Root of the sum of the squared changes; None if all is exact.
    """
    found, dynamics = [], dynamics or inverse_dynamics
    if motion_deviations is not None:
        disturbed = dynamics(model, motion + motion_deviations, wrenches or None)
        found.append(disturbed - effort)
    for index, deviations in enumerate(wrench_deviations):
        if deviations is not None:
            others = list(wrenches)
            values = np.asarray(others[index].values) + deviations
            others[index] = replace(others[index], values=values)
            motions = np.broadcast_to(motion, (len(deviations), *motion.shape))
            found.append(dynamics(model, motions, others) - effort)
    if not found:
        return None
    result: Array = np.sqrt(np.square(np.concatenate(found)).sum(axis=0))
    return result
