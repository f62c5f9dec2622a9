"""Inverse dynamics: the public entry, which checks its input and chooses a formulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.dynamics import (
    body_fixed,
    closed_form,
    hybrid,
    lagrange,
    newton_euler,
    nth_order,
    spatial,
)
from hodyn_ros.dynamics.samples import over_samples
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.joints import checked_motion, independent_efforts
from hodyn_ros.model.friction import joint_friction
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

BodyEfforts = Callable[[RobotModel, Array, Mapping[int, Array]], Array]


class Formulation(NamedTuple):
    """A way to compute the efforts of all bodies' joints; see `nth_order.body_efforts`."""

    body_efforts: BodyEfforts
    highest_order: int | None
    """Highest derivative of the efforts; None: any."""


FORMULATIONS = {
    'body_fixed': Formulation(body_fixed.body_efforts, 2),
    'closed_form': Formulation(closed_form.body_efforts, None),
    'lagrange': Formulation(lagrange.body_efforts, None),
    'nth_order': Formulation(nth_order.body_efforts, None),
    'spatial': Formulation(spatial.body_efforts, 2),
    'spatial_base_acceleration': Formulation(spatial.body_efforts_with_base_acceleration, 2),
    'hybrid': Formulation(hybrid.body_efforts, 2),
    'newton_euler': Formulation(newton_euler.body_efforts, 0),
}


def inverse_dynamics(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
) -> Array:
    """Joint efforts of a motion and their exact time derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        `motion[..., k, :]` is the k-th time derivative of the joint positions in model order
        [rad/s^k] or [m/s^k], K >= 3.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, with derivatives; leading axes broadcast with those of the motion.
    algorithm : str
        'auto' or the name of a formulation, a key of `FORMULATIONS`. They agree to rounding and
        differ in cost and in the highest order that they compute.

    Returns
    -------
    ndarray, shape (..., K-2, n)
        `[..., m, :]` is the m-th time derivative of the joint torques [N m/s^m] or forces [N/s^m]:
        K = 3 gives Q, K = 5 gives Q and its first two derivatives.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values.
    WrenchError
        If a wrench does not fit the model or the motion.
    HodynError
        If the algorithm is unknown or cannot compute the order, or a result overflows.

    Notes
    -----
    Positive efforts act in the positive direction of their joints. Whatever the algorithm, they
    include the friction and armature of the model, if it has any. Source: Mueller 2021,
    "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse Dynamics of Serial Manipulators
    using Spatial Representation of Twists", and the papers named in the formulations.
    """
    motion = checked_motion(model, motion)
    K = motion.shape[-2]
    body_efforts = _formulation(algorithm, K)

    def efforts(coordinates: Array, applied: Mapping[int, Array]) -> Array:
        joint_efforts = body_efforts(model, coordinates, applied)
        add_friction_and_armature(model, coordinates, joint_efforts)
        return independent_efforts(model, joint_efforts)

    return over_samples(model, motion, wrench, efforts, (K - 2, model.n_joints))


def add_friction_and_armature(model: RobotModel, coordinates: Array, efforts: Array) -> None:
    """Add what the joints need beside the rigid bodies: armature * q2d + friction(qd).

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies.
    efforts : ndarray, shape (N, K-2, n_bodies)
        Efforts of the bodies' joints and their time derivatives; changed in place.
    """
    if np.any(model.armature):
        efforts += model.armature * coordinates[:, 2:]
    if model.friction:
        laws = {model.body_names.index(name): law for name, law in model.friction.items()}
        velocity = np.swapaxes(coordinates[:, 1:-1], -1, -2)
        efforts += np.swapaxes(joint_friction(laws, velocity), -1, -2)


def _formulation(algorithm: str, K: int) -> BodyEfforts:
    if algorithm == 'auto':
        return nth_order.body_efforts
    if algorithm not in FORMULATIONS:
        raise HodynError(
            f'The algorithm {algorithm!r} is unknown; choose one of auto, '
            f'{", ".join(FORMULATIONS)}.'
        )
    formulation = FORMULATIONS[algorithm]
    if formulation.highest_order is not None and K - 3 > formulation.highest_order:
        raise HodynError(
            f'The algorithm {algorithm} computes orders up to {formulation.highest_order}, the '
            f'motion has K = {K} for order {K - 3}; use auto.'
        )
    return formulation.body_efforts
