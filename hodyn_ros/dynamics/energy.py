"""Kinetic and potential energy of a robot along a motion, with time derivatives of any order.

Source: 1/2 V^T M V of each body, and its first moment along gravity. Without wrenches and
friction the power of the joints is the rate of their sum: qd^T Q = d/dt (T + U).
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from hodyn_ros.engine.engine import compute, quick
from hodyn_ros.engine.program import KINETIC_ENERGY, POTENTIAL_ENERGY
from hodyn_ros.engine.requests import KernelRequest
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.closed_loops import opened
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

    Examples
    --------
    Energy [J] and its rate [W]:

    >>> from hodyn_ros import RobotModel, kinetic_energy
    >>> motion = [[0.3, 1.0], [0.5, 0.2], [0.1, 0.4]]
    >>> kinetic_energy(RobotModel.from_urdf('two_link'), motion).round(3)
    array([0.561, 0.377])
    """
    return _energy(model, motion, KINETIC_ENERGY, 2)


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

    Examples
    --------
    >>> from hodyn_ros import RobotModel, potential_energy
    >>> potential_energy(RobotModel.from_urdf('two_link'), [[0.5, 0.0], [1.0, 0.0]]).round(2)
    array([21.16, 38.74])
    """
    return _energy(model, motion, POTENTIAL_ENERGY, 1)


def _energy(model: RobotModel, motion: ArrayLike, name: str, lowest_K: int) -> Array:
    """Energy along a motion, by its program; that of closed loops is that of their tree."""
    result: Array | None = quick(model, name, motion)
    if result is not None:
        return result
    samples = Arguments(model, motion, lowest_K)
    request = KernelRequest(name, samples.K)

    def find(part: Batch, found: Array) -> bool:
        if not is_finite(part.motion):
            return False
        tree, whole = opened(model, part.motion)
        return bool(compute(tree, request, whole, None, found))

    return samples.compute(find, request.shape(model))
