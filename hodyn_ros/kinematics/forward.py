"""Forward kinematics of one link: pose, twist and the derivatives of the twist (public entry)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import Array, check_choice
from hodyn_ros.engine.engine import LinkResult, compute, quick
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.closed_loops import opened
from hodyn_ros.kinematics.joints import (
    JointTransforms,
    body_coordinates,
    body_poses,
    body_twists,
    checked_motion,
    hybrid_from_body,
    link_or_tip,
)
from hodyn_ros.lie import leibniz, se3
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.names import EXPRESSIONS


class LinkMotion(NamedTuple):
    """Motion of a link."""

    pose: Array
    """Pose of the link in the base link, shape (..., 4, 4)."""
    twist: Array
    """Entry k is the k-th time derivative of the twist (omega, v), shape (..., K-1, 6)."""


def forward_kinematics(
    model: Mechanism,
    motion: ArrayLike,
    link: str | None = None,
    expressed_in: str = 'body',
) -> LinkMotion:
    """Pose of a link, its twist and the time derivatives of the twist, of any order.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order, K >= 1. K = 5 gives the twist,
        acceleration, jerk and jounce of the link.
    link : str, optional
        By default the tip of the chain.
    expressed_in : {'body', 'spatial', 'hybrid'}
        body: link axes, velocity of the link origin; spatial: base link axes, velocity of the
        point of the link that passes the base link origin; hybrid: base link axes, velocity of the
        link origin. The derivatives are those of the coordinates in this expression.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values, or the result overflows.
    ModelError
        If the link does not exist or must be named.
    HodynError
        If the expression is unknown.

    Notes
    -----
    Calls are answered by NumPy until code for this link, expression and K, compiled in the
    background, is ready; `RobotModel.warm_up` makes it in advance. Only very long ways from the
    base to the link are left to NumPy.

    Gravity has no part in it: the base does not accelerate. Source: Kumar and Mueller
    2021, section II-A; conversions between expressions by the product rule.
    """
    found = quick(model, (link, expressed_in), motion)
    if found is not None:
        return LinkMotion(*found)
    samples = Arguments(model, motion, lowest_K=1)
    check_choice('expressed_in', expressed_in, EXPRESSIONS, HodynError)
    link = link_or_tip(model, link)
    if model.closure is not None:
        array = checked_motion(model, motion, lowest_K=1)
        return forward_kinematics(*opened(model, array), link, expressed_in)
    body, _ = model.link(link)
    request = LinkResult(link, expressed_in, samples.K)
    pose = np.empty((samples.N, 4, 4))

    def find(part: Batch, V: Array) -> bool:
        if body != BASE and compute(model, request, part.motion, pose, V):
            return True
        if not is_finite(part.motion):
            return False
        pose[...], V[...] = _link_motion(model, part.motion, link, expressed_in)
        return is_finite(pose) and is_finite(V)

    V = samples.compute(find, (samples.K - 1, 6))
    return LinkMotion(samples.shaped(pose), V)


def _link_motion(
    model: Mechanism, motion: Array, link: str, expressed_in: str
) -> tuple[Array, Array]:
    """Poses and twists of a link by the recursion of `joints`, then converted.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (N, K, n)
        Checked already.
    link, expressed_in : str
        As in `forward_kinematics`.

    Returns
    -------
    pose : ndarray, shape (N, 4, 4)
    V : ndarray, shape (N, K-1, 6)
        Twist with time derivatives; those of the base link are zero.
    """
    body, frame = model.link(link)
    N, K, _ = motion.shape
    coordinates = body_coordinates(model, motion)
    pose = np.broadcast_to(frame, (N, 4, 4)).copy()
    V: Array = np.zeros((N, K - 1, 6))
    if body != BASE:
        pose = body_poses(model, coordinates[:, 0])[body] @ frame
        if K > 1:
            transforms = JointTransforms(model, coordinates[:, :-1])
            twists = body_twists(model, coordinates, transforms)
            V = twists[body] @ se3.Ad(se3.inverse(frame)).T
    if K > 1 and expressed_in == 'spatial':
        V = leibniz.from_moving_frame(V, V, se3.bracket) @ np.swapaxes(se3.Ad(pose), -1, -2)
    elif K > 1 and expressed_in == 'hybrid':
        V = hybrid_from_body(pose, V)
    return pose, V
