"""Kinetic and potential energy of a robot along a motion, with time derivatives of any order.

Source: notes on Lagrangian dynamics, eqs. (36) and (38), over poses as jets. Without wrenches and
friction the power of the joints is the rate of their sum: qd^T Q = d/dt (T + U).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.kinematics.closed_loops import opened
from hodyn_ros.kinematics.motions import body_coordinates, checked_motion, checked_result
from hodyn_ros.kinematics.poses import blocks, poses_in_base
from hodyn_ros.lie import Jet, jets
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
        energy = np.zeros((len(coordinates), K - 1))
        for block in blocks(len(coordinates), 64 * K * model.n_bodies):
            q = Jet.along(coordinates[block], 1)
            # With second moments S of the mass, T = 1/2 tr(dC/dt S dC/dt^T) for each body.
            rates = poses_in_base(model, q).rate()
            bodies = jets.product(rates @ second_moments(model), rates, _inner)
            rotors = (model.armature * q.rate() * q.rate()).map(lambda x: x.sum(axis=1))
            energy[block] = (0.5 * (bodies + rotors)).array(1)
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
        q = Jet.along(body_coordinates(model, motion.reshape(-1, K, n)), 1)
        # U = -sum_i g^T (m_i p_i); the last column of C_i S_i is the mass times (p_i, 1).
        weights = np.einsum(
            'i,bj->bij', [*model.gravity, 0.0], second_moments(model)[..., 3]
        )
        poses = poses_in_base(model, q)
        energy = Jet(-np.tensordot(x, weights, axes=3) for x in poses).array(1)
    return checked_result(energy, motion).reshape(*batch, K)


def _inner(a: Array, b: Array) -> Array:
    """Sums of the products of all numbers in the matrices (N, n_bodies, 4, 4) of each sample."""
    return np.asarray(np.einsum('nbij,nbij->n', a, b))


def second_moments(model: RobotModel) -> Array:
    """Integrals of x x^T over the masses of the bodies, x = (point, 1) in the body's frame.

    Shape (n_bodies, 4, 4): [[S, m c], [m c^T, m]], S = tr(Theta) / 2 - Theta [kg m^2].
    """
    # M = [[Theta, m c~], [-m c~, m 1]].
    moments, Theta = np.empty((model.n_bodies, 4, 4)), model.M_body[:, :3, :3]
    trace = Theta.trace(axis1=1, axis2=2)[:, None, None]
    moments[:, :3, :3] = 0.5 * trace * np.eye(3) - Theta
    moments[:, :3, 3] = moments[:, 3, :3] = model.M_body[:, [2, 0, 1], [4, 5, 3]]
    moments[:, 3, 3] = model.M_body[:, 5, 5]
    return moments
