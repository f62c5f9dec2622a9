"""Kinetic and potential energy of a robot along a motion, with time derivatives of any order.

Source: notes on Lagrangian dynamics, eqs. (36) and (38), in body-fixed twists. Without wrenches
and friction the power of the joints is the rate of their sum: qd^T Q = d/dt (T + U).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.kinematics.closed_loops import opened
from hodyn_ros.kinematics.joints import (
    JointTransforms,
    body_coordinates,
    body_poses,
    body_twists,
    checked_motion,
    checked_result,
)
from hodyn_ros.lie import leibniz
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def kinetic_energy(model: RobotModel, motion: ArrayLike) -> Array:
    """Kinetic energy of the robot, that of the armature included, and its time derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 2.

    Returns
    -------
    ndarray, shape (..., K-1)
        `[..., m]` is the m-th time derivative [J/s^m].

    Raises
    ------
    MotionError
        If the motion has a wrong shape, holds NaN or infinite values, or the result overflows.
    """
    model, motion = opened(model, checked_motion(model, motion, lowest_K=2))
    batch, (K, n) = motion.shape[:-2], motion.shape[-2:]
    with np.errstate(over='ignore', invalid='ignore'):
        coordinates = body_coordinates(model, motion.reshape(-1, K, n))
        transforms = JointTransforms(model, coordinates[:, :-1])
        energy = np.zeros((len(coordinates), K - 1))
        for V, M in zip(body_twists(model, coordinates, transforms), model.M_body):
            energy += 0.5 * leibniz.bilinear(_dot, V, V @ M)[..., 0]
        qd = coordinates[:, 1:]
        energy += 0.5 * leibniz.bilinear(_dot, qd, model.armature * qd)[..., 0]
    return checked_result(energy, motion).reshape(*batch, K - 1)


def potential_energy(model: RobotModel, motion: ArrayLike) -> Array:
    """Potential energy of the robot in gravity and its time derivatives.

    It is zero for a centre of mass in the origin of the base link. What is rigidly attached to
    the base does not count.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 1.

    Returns
    -------
    ndarray, shape (..., K)
        `[..., m]` is the m-th time derivative [J/s^m].

    Raises
    ------
    MotionError
        See `kinetic_energy`.
    """
    model, motion = opened(model, checked_motion(model, motion, lowest_K=1))
    batch, (K, n) = motion.shape[:-2], motion.shape[-2:]
    with np.errstate(over='ignore', invalid='ignore'):
        coordinates = body_coordinates(model, motion.reshape(-1, K, n))
        poses = body_poses(model, coordinates[:, 0])
        energy = np.zeros((len(coordinates), K))
        for pose, M in zip(poses, model.M_body):
            # U = -sum_i m_i g^T p_i, and its rate is -sum_i g^T h_i with the linear momenta h_i.
            # M = [[Theta, m c~], [-m c~, m 1]]: mass and mass times centre of mass.
            mass, first_moment = M[5, 5], M[[2, 0, 1], [4, 5, 3]]
            p = mass * pose[:, :3, 3] + pose[:, :3, :3] @ first_moment
            energy[:, 0] -= p @ model.gravity
        if K > 1:
            twists = body_twists(
                model, coordinates, JointTransforms(model, coordinates[:, :-1])
            )
            for pose, M, V in zip(poses, model.M_body, twists):
                # The linear momentum in body axes and its derivatives in a frame at rest.
                h = leibniz.from_moving_frame((V @ M)[..., 3:], V[..., :3], cross)
                g = model.gravity @ pose[:, :3, :3]
                energy[:, 1:] -= (h @ g[..., None])[..., 0]
    return checked_result(energy, motion).reshape(*batch, K)


def _dot(a: Array, b: Array) -> Array:
    """Product of vectors along the last axis."""
    return np.asarray((a * b).sum(axis=-1, keepdims=True))
