"""Forward kinematics of one link: pose, twist and the derivatives of the twist (public entry)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import HodynError, ModelError
from hodyn_ros.kinematics.body import body_poses, body_twists
from hodyn_ros.kinematics.joints import JointTransforms, body_coordinates, checked_motion
from hodyn_ros.lie import leibniz, se3
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]

EXPRESSIONS = ('body', 'spatial', 'hybrid')


class LinkMotion(NamedTuple):
    """Motion of a link."""

    pose: Array
    """Pose of the link in the base link, shape (..., 4, 4)."""
    twist: Array
    """Entry k is the k-th time derivative of the twist (omega, v), shape (..., K-1, 6)."""


def forward_kinematics(
    model: RobotModel, motion: ArrayLike, link: str | None = None, expressed_in: str = 'body'
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

    Returns
    -------
    LinkMotion

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values.
    ModelError
        If the link does not exist or must be named.
    HodynError
        If the expression is unknown.

    Notes
    -----
    Gravity has no part in it: the base does not accelerate. Source: Kumar and Mueller
    2021, section II-A; conversions between expressions by the product rule.
    """
    motion = checked_motion(model, motion, lowest_K=1)
    if expressed_in not in EXPRESSIONS:
        raise HodynError(
            f'expressed_in is {expressed_in!r}, expected one of {", ".join(EXPRESSIONS)}.'
        )
    link = model.tip_link if link is None else link
    if link is None:
        raise ModelError(
            'The model is a tree without a tip link: name one of the links '
            f'{", ".join(model.links)}.'
        )
    body, frame = model.link(link)
    batch, (K, n) = motion.shape[:-2], motion.shape[-2:]
    coordinates = body_coordinates(model, motion.reshape(-1, K, n))
    N = len(coordinates)
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
        R_transposed = np.swapaxes(pose[:, :3, :3], -1, -2)
        omega = V[..., :3]
        V = np.concatenate(
            [
                leibniz.from_moving_frame(part, omega, cross) @ R_transposed
                for part in (omega, V[..., 3:])
            ],
            axis=-1,
        )
    return LinkMotion(pose.reshape(*batch, 4, 4), V.reshape(*batch, K - 1, 6))
