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
from hodyn_ros.dynamics.wrenches import Wrench, checked_wrenches, wrenches_on_bodies
from hodyn_ros.errors import HodynError, MotionError, WrenchError
from hodyn_ros.kinematics.joints import (
    body_coordinates,
    checked_motion,
    independent_efforts,
)
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

# Samples that are computed together: large enough to hide the cost of Python, small enough for the
# intermediate arrays to stay in the cache.
_BLOCK = 256


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
        'auto' or the name of a formulation, one of `FORMULATIONS`. They agree to rounding; all but
        nth_order need K <= 5, newton_euler K = 3.

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
    wrenches = checked_wrenches(model, wrench, K - 2)
    body_efforts = _formulation(algorithm, K)

    batch = motion.shape[:-2]
    for item in wrenches:
        shape = np.shape(item.values)[:-2]
        try:
            batch = np.broadcast_shapes(batch, shape)
        except ValueError:
            raise WrenchError(
                f'Wrench on {item.link!r}: the leading axes {shape} of its values do not '
                f'broadcast with the leading axes {motion.shape[:-2]} of the motion.'
            ) from None
    samples = np.broadcast_to(motion, (*batch, *motion.shape[-2:])).reshape(-1, *motion.shape[-2:])
    values = [
        np.broadcast_to(item.values, (*batch, K - 2, 6)).reshape(-1, K - 2, 6) for item in wrenches
    ]
    effort = np.empty((len(samples), K - 2, model.n_joints))
    # Overflow shows in the result, which is checked; it needs no warning on the way.
    with np.errstate(over='ignore', invalid='ignore'):
        for start in range(0, len(samples), _BLOCK):
            block = slice(start, start + _BLOCK)
            coordinates = body_coordinates(model, samples[block])
            applied = wrenches_on_bodies(
                model, coordinates, [(item, v[block]) for item, v in zip(wrenches, values)]
            )
            joint_efforts = body_efforts(model, coordinates, applied)
            add_friction_and_armature(model, coordinates, joint_efforts)
            effort[block] = independent_efforts(model, joint_efforts)
    if not np.all(np.isfinite(effort)):
        raise MotionError(
            'The efforts overflow: the motion or a wrench holds values that are too large '
            f'(largest in the motion {np.abs(motion).max():.3g}).'
        )
    return effort.reshape(*batch, K - 2, model.n_joints)


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
            f'motion has K = {K} for order {K - 3}; use nth_order.'
        )
    return formulation.body_efforts
