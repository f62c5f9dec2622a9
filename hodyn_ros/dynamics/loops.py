"""Dynamics of closed loops: terms of the equations of motion, and what the loops carry.

With the velocities G ud of all joints, terms of the open tree become those of the independent
joints: G^T M G, G^T (C G + M G'), G^T Q; derivatives by Leibniz's rule. Source: Mueller 2019, "An
overview of formulae for the higher-order kinematics of lower-pair chains", and Featherstone 2008,
section 8.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.kinematics.closed_loops import ClosedMotion, closure_of
from hodyn_ros.kinematics.joints import checked_motion
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


class LoopEfforts(NamedTuple):
    """Efforts of a robot with closed loops, and what its loops carry."""

    effort: Array
    """Efforts of the independent joints and derivatives, shape (..., K-2, n)."""
    wrenches: dict[str, Array]
    """By the name of the loop: the wrench (m, f) that link A exerts on link B, in the frame on A,
    and its componentwise derivatives, shape (..., K-2, 6) [N m/s^k, N/s^k]. Along rows that
    follow from others nothing is determined: there it is zero. Of a coupling the effort that it
    exerts on its joint, shape (..., K-2)."""
    motion: Array
    """Motion of all joints of the tree, shape (..., K, N)."""


def loop_efforts(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
) -> LoopEfforts:
    """Efforts of a robot with closed loops, and wrenches in its loops, with exact derivatives.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    motion : array-like, shape (..., K, n)
        Of the independent joints, K >= 3.
    wrench, algorithm
        As in `inverse_dynamics`.

    Raises
    ------
    ModelError
        If the model has no closed loops.
    HodynError
        As `inverse_dynamics`.

    Returns
    -------
    LoopEfforts
    """
    closure = closure_of(model)
    given = checked_motion(model, motion)
    closed = ClosedMotion(model, given.reshape(-1, *given.shape[-2:]))
    whole = closed.motion.reshape(*given.shape[:-1], -1)
    of_tree = inverse_dynamics(closure.tree, whole, wrench, algorithm)
    batch = of_tree.shape[:-2]
    if batch != given.shape[:-2]:  # several wrenches for one sample
        wide = np.broadcast_to(given, (*batch, *given.shape[-2:]))
        closed = ClosedMotion(model, wide.reshape(-1, *given.shape[-2:]))
        whole = closed.motion.reshape(*batch, *whole.shape[-2:])
    effort, carried = closed.efforts(of_tree.reshape(-1, *of_tree.shape[-2:]))
    rows = np.zeros((*carried.shape[:-1], len(closure.names)))
    rows[..., closure.rows] = carried
    wrenches, first = {}, 0
    for loop in closure.loops:
        P = loop.rows
        values = rows[..., first : first + len(P)] @ P
        wrenches[loop.name] = values.reshape(*batch, *values.shape[1:])
        first += len(P)
    for number, coupling in enumerate(closure.couplings, first):
        wrenches[coupling.name] = rows[..., number].reshape(*batch, -1)
    return LoopEfforts(effort.reshape(*batch, *effort.shape[1:]), wrenches, whole)
