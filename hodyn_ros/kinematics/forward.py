"""Forward kinematics of one link: pose, twist and the derivatives of the twist (public entry)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice
from hodyn_ros.engine.engine import compute, quick
from hodyn_ros.engine.requests import LINK, KernelRequest
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.closed_loops import opened
from hodyn_ros.kinematics.motions import checked_motion, link_or_tip
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.names import EXPRESSIONS
from hodyn_ros.typing import Array


class LinkMotion(NamedTuple):
    """Motion of a link.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, forward_kinematics
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion = forward_kinematics(model, [[0.0, 0.0], [1.0, 0.0]], expressed_in='hybrid')
    >>> motion.pose[:3, 3], motion.twist.round(3) + 0.0
    (array([1.2, 0. , 0. ]), array([[ 0. , -1. ,  0. ,  0. ,  0. ,  1.2]]))
    """

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
    The first call records a program for this link, expression and K, which NumPy runs until it is
    compiled in the background; `RobotModel.warm_up` does so in advance. Very long ways from the
    base to the link are left to NumPy.

    Gravity has no part in it: the base does not accelerate. Source: Kumar and Mueller
    2021, section II-A; conversions between expressions by the product rule.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, forward_kinematics
    >>> model = RobotModel.from_urdf('panda')
    >>> motion = [[0.0, -0.3, 0.0, -1.7, 0.0, 1.7, 0.0], [0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    >>> pose, twist = forward_kinematics(model, motion, 'panda_link8', 'hybrid')
    >>> pose[:3, 3].round(3), twist[0].round(3) + 0.0
    (array([0.466, 0.   , 0.73 ]), array([0.   , 0.   , 0.5  , 0.   , 0.233, 0.   ]))
    """
    found = quick(model, (LINK, link, expressed_in), motion)
    if found is not None:
        return LinkMotion(*found)
    samples = Arguments(model, motion, lowest_K=1)
    check_choice('expressed_in', expressed_in, EXPRESSIONS, HodynError)
    link = link_or_tip(model, link)
    if model.closure is not None:
        array = checked_motion(model, motion, lowest_K=1)
        return forward_kinematics(*opened(model, array), link, expressed_in)
    body, frame = model.link(link)
    request = KernelRequest(LINK, samples.K, link=link, expressed_in=expressed_in)
    pose = np.empty((samples.N, 4, 4))

    def find(part: Batch, V: Array) -> bool:
        if body != BASE:
            return bool(compute(model, request, part.motion, pose, V))
        pose[...], V[...] = frame, 0.0
        return is_finite(part.motion)

    V = samples.compute(find, (samples.K - 1, 6))
    return LinkMotion(samples.shaped(pose), V)
