"""Partial derivatives of the joint efforts, and of their time derivatives, by the motion."""

from __future__ import annotations

from numpy.typing import ArrayLike

from hodyn_ros.checks import Array
from hodyn_ros.dynamics.matrices import along
from hodyn_ros.engine.program import PARTIALS
from hodyn_ros.model.robot import RobotModel


def inverse_dynamics_derivatives(model: RobotModel, motion: ArrayLike) -> Array:
    """Partial derivatives of the joint efforts and of their time derivatives by the motion.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 3.

    Returns
    -------
    ndarray, shape (..., K-2, n, K, n)
        `[..., m, i, k, j]` is the derivative of `inverse_dynamics(model, motion)[..., m, i]` by
        `motion[..., k, j]`; it is zero for k > m + 2, and equal to the mass matrix for k = m + 2.
        Entries are in the unit of that effort over the unit of that derivative, such as
        [N m/s^m / (rad/s^k)]. Friction and armature of the model are part of them; Coulomb
        friction without smoothing has the derivative zero.

    Raises
    ------
    MotionError
        If the motion has a wrong shape, holds NaN or infinite values, or the result overflows.
    ModelError
        If a friction law is not one of this package.

    Notes
    -----
    Compiled code is made as for `mass_matrix`. Programs of more than 20,000 operations, from
    order 3 on for a robot with seven joints, are run by NumPy.

    Source: Singh, Russell and Wensing 2022, "Efficient analytical derivatives of rigid-body
    dynamics using spatial vector algebra", IEEE Robotics and Automation Letters 7(2), for the
    derivatives of Q; those of its time derivatives follow from theirs by Leibniz's rule.
    """
    if getattr(model, 'friction', None):
        from hodyn_ros.engine.robot_program import friction_laws

        model.kept(friction_laws)  # refuses those that are not of this package
    return along(model, motion, PARTIALS)
