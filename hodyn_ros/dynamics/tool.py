"""Wrenches measured by a force-torque sensor: its frame, and the weight of the tool beyond it.

A sensor between a link and a tool measures what passes through it: the contact wrench and the
weight of the tool. The weight turns in link axes as the link turns, so its components have time
derivatives: with omega in link axes, d/dt (R^T g) = (R^T g) x omega, and so on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.lie import leibniz, se3
from hodyn_ros.lie.so3 import cross

Array = NDArray[np.float64]


def wrench_from_frame(values: Array, frame: Array) -> Array:
    """Bring a wrench from a frame into the one in which the pose of that frame is given.

    The pose is constant, so derivatives are transformed like values, by Ad^-T. Source: Mueller
    2021, eq. (37).

    Parameters
    ----------
    values : ndarray, shape (..., 6)
        (moment, force) in the axes and about the origin of the frame [N m], [N], or derivatives.
    frame : ndarray, shape (4, 4)
        Pose of the frame.

    Returns
    -------
    ndarray, shape (..., 6)
    """
    transformed: Array = values @ se3.Ad(se3.inverse(frame))
    return transformed


def tool_weight(
    pose: Array,
    twist: Array,
    gravity: ArrayLike,
    mass: float,
    center_of_mass: ArrayLike,
    expressed_in: str = 'body',
) -> Array:
    """Weight of a tool on a link, and its time derivatives as the link moves.

    Parameters
    ----------
    pose : ndarray, shape (..., 4, 4)
        Pose of the link in the base link.
    twist : ndarray, shape (..., K, 6)
        Twist of the link in body expression and its time derivatives; K may be 0. Pose and twist
        are those of `forward_kinematics(model, motion[..., :K + 1, :], link)`.
    gravity : array-like, shape (3,)
        Gravitational acceleration in base link axes [m/s^2].
    mass : float
        [kg]
    center_of_mass : array-like, shape (3,)
        Centre of mass of the tool in the link frame [m].
    expressed_in : {'body', 'spatial'}
        body: link axes, about the link origin; spatial: base link axes, about its origin.

    Returns
    -------
    ndarray, shape (..., K + 1, 6)
        Entry m is the m-th time derivative of the coordinates (moment, force) of the wrench that
        gravity exerts on the tool [N m/s^m], [N/s^m].
    """
    g, c = np.asarray(gravity, dtype=np.float64), np.asarray(center_of_mass, dtype=np.float64)
    R = pose[..., :3, :3]
    omega = twist[..., :3]
    orders = twist.shape[-2] + 1
    weight = np.zeros((*pose.shape[:-2], orders, 6))
    if expressed_in == 'body':
        weight[..., 0, 3:] = mass * (g @ R)
        weight[..., 3:] = leibniz.into_moving_frame(
            weight[..., 3:], omega, lambda w, y: cross(y, w)
        )
        weight[..., :3] = cross(c, weight[..., 3:])
        return weight
    # The force is constant; its lever is the centre of mass, which moves with the link.
    lever = np.empty((*pose.shape[:-2], orders, 3))
    lever[..., 0, :] = R @ c + pose[..., :3, 3]
    if orders > 1:
        velocity = twist[..., 3:] + cross(omega, c)
        rates = leibniz.from_moving_frame(velocity, omega, cross)
        lever[..., 1:, :] = rates @ np.swapaxes(R, -1, -2)
    weight[..., :3] = cross(lever, mass * g)
    weight[..., 0, 3:] = mass * g
    return weight
