"""Matrices of the equations of motion, Q = M q2d + C qd + Q_grav, with time derivatives.

The first call records a program that sums up the bodies which each joint carries, see
`engine.terms`. NumPy runs it until it is compiled in the background;
`RobotModel.warm_up` does so in advance. Programs of robots with more than about 30 joints are too
long to record: of these `formulations.closed_form` gives the matrices.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.formulations.closed_form import system_of
from hodyn_ros.engine.engine import compute, quick
from hodyn_ros.engine.program import (
    CORIOLIS_MATRIX,
    CORIOLIS_MATRIX_OF_20,
    MASS_MATRIX,
    REGRESSOR,
    WEIGHT,
)
from hodyn_ros.engine.requests import KernelRequest
from hodyn_ros.errors import MotionError
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.closed_loops import ClosedMotion, velocities
from hodyn_ros.kinematics.motions import body_coordinates, selection_of, stacked
from hodyn_ros.kinematics.poses import blocks
from hodyn_ros.lie import Jet
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def mass_matrix(model: RobotModel, motion: ArrayLike) -> Array:
    """Generalized mass matrix M(q) of the independent joints and its time derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 1.

    Returns
    -------
    ndarray, shape (..., K, n, n)
        `[..., m, :, :]` is the m-th time derivative, exactly symmetric. Entries are in
        [kg m^2/s^m] between revolute joints, [kg/s^m] between prismatic ones and [kg m/s^m]
        between one of each. M itself is positive definite unless a joint moves no inertia. The
        armature of the joints is part of it.

    Raises
    ------
    MotionError
        If the motion has a wrong shape, holds NaN or infinite values, or the result overflows.

    Notes
    -----
    Source: Mueller and Kumar 2021, M = J^T M J, eq. (20), by Leibniz's rule; equal to (29)
    and (39).

    Examples
    --------
    >>> from hodyn_ros import RobotModel, mass_matrix
    >>> M, Md = mass_matrix(RobotModel.from_urdf('two_link'), [[0.0, 0.5], [1.0, 1.0]])
    >>> M.round(3), Md.round(3)
    (array([[4.179, 1.114],
           [1.114, 0.5  ]]), array([[-0.671, -0.336],
           [-0.336,  0.   ]]))
    """
    return along(model, motion, MASS_MATRIX)


def coriolis_matrix(
    model: RobotModel, motion: ArrayLike, skew_symmetric: bool = True
) -> Array:
    """Generalized Coriolis matrix of the independent joints and its time derivatives.

    The Coriolis and centrifugal efforts C qd are the same for every choice of C, the matrix
    itself is not.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 2.
    skew_symmetric : bool
        Which matrix. True: C-bar of eq. (54), with which dM/dt - 2 C is skew symmetric, as proofs
        of passivity need it; so are the time derivatives of that difference. False: C of eq. (20),
        with which only qd^T (dM/dt - 2 C) qd = 0 holds.

    Returns
    -------
    ndarray, shape (..., K-1, n, n)
        `[..., m, :, :]` is the m-th time derivative, in the units of the mass matrix times
        [1/s^(m+1)].

    Raises
    ------
    MotionError
        If the motion has a wrong shape, holds NaN or infinite values, or the result overflows.

    Notes
    -----
    A third one has Christoffel symbols for entries, see `formulations.lagrange`; its difference is
    skew symmetric too, and it is what Pinocchio's `computeCoriolisMatrix` returns.
    Source: Mueller and Kumar 2021, eqs. (20), (22), (54), by Leibniz's rule; equal to (31)
    and (45).

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, coriolis_matrix, mass_matrix
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion = [[0.3, 1.0], [0.5, 0.2]]
    >>> C, _ = coriolis_matrix(model, [*motion, [0.0, 0.0]])
    >>> C.round(3)
    array([[-0.118, -0.412],
           [ 0.295,  0.   ]])
    >>> N = mass_matrix(model, motion)[1] - 2.0 * C
    >>> bool(np.allclose(N, -N.T))
    True
    """
    if not isinstance(skew_symmetric, (bool, np.bool_)):
        raise MotionError(
            f'skew_symmetric is a {type(skew_symmetric).__name__}, expected True or False. '
            f'Positions and velocities are one argument, the motion: {stacked(2)}.'
        )
    name = CORIOLIS_MATRIX if skew_symmetric else CORIOLIS_MATRIX_OF_20
    return along(model, motion, name)


def gravity_effort(model: RobotModel, motion: ArrayLike) -> Array:
    """Efforts of the independent joints that hold the robot against gravity, with derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 1.

    Returns
    -------
    ndarray, shape (..., K, n)
        `[..., m, :]` is the m-th time derivative of the torques [N m/s^m] or forces [N/s^m].

    Raises
    ------
    MotionError
        If the motion has a wrong shape, holds NaN or infinite values, or the result overflows.

    Notes
    -----
    Source: Mueller and Kumar 2021, Q_grav = J^T M U G, eq. (25), by Leibniz's rule; equal to (36)
    and (52).

    Examples
    --------
    Efforts against gravity and their rate, as the shoulder turns with 1 rad/s:

    >>> from hodyn_ros import RobotModel, gravity_effort
    >>> gravity_effort(RobotModel.from_urdf('two_link'), [[0.5, 0.0], [1.0, 0.0]]).round(2)
    array([[ 38.74,   8.61],
           [-21.16,  -4.7 ]])
    """
    return along(model, motion, WEIGHT)


def along(model: RobotModel, motion: ArrayLike, name: str) -> Array:
    """Quantity of the independent joints along a motion, with its time derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
    name : str
        `MASS_MATRIX`, a Coriolis matrix, `WEIGHT` or `REGRESSOR` of `engine.program`.

    Returns
    -------
    ndarray
        The leading axes of the motion, then the shape of `KernelRequest.shape`.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values, or the result overflows.
    """
    result: Array | None = quick(model, name, motion)
    if result is not None:
        return result
    lowest_K = {MASS_MATRIX: 1, WEIGHT: 1, REGRESSOR: 3}.get(name, 2)
    samples = Arguments(model, motion, lowest_K)
    find = _of_tree if model.closure is None else _of_loops
    shape = KernelRequest(name, samples.K).shape(model)
    return samples.compute(partial(find, model, name), shape)


def _of_tree(model: RobotModel, name: str, part: Batch, found: Array) -> bool:
    """Quantity of the joints of a tree; says whether motion and quantity are finite."""
    done = compute(
        model, KernelRequest(name, part.motion.shape[1]), part.motion, None, found
    )
    if done is not None or not is_finite(part.motion):
        return bool(done)
    coordinates, selection = body_coordinates(model, part.motion), selection_of(model)
    for block in blocks(len(coordinates), 6 * model.n_bodies * (model.n_bodies + 1)):
        system = system_of(model, coordinates[block])
        # Motions and efforts of the bodies' joints: those of the independent ones times constants.
        system = system._replace(J=system.J @ selection)
        if name == MASS_MATRIX:
            terms = system.mass_matrix()
            terms = 0.5 * (terms + terms.map(lambda M: np.swapaxes(M, -1, -2)))
        elif name == WEIGHT:
            terms = system.gravity_effort().map(lambda Q: Q[..., 0])
        else:
            terms = system.coriolis_matrix(name == CORIOLIS_MATRIX)
        found[block] = np.stack([*terms], axis=1)
    if name == MASS_MATRIX:
        found[:, 0] += selection.T @ (model.armature[:, None] * selection)
    return is_finite(found)


def _of_loops(model: RobotModel, name: str, part: Batch, found: Array) -> bool:
    """Quantity of the independent joints of closed loops, from that of their tree."""
    motion = part.motion
    if not is_finite(motion):
        return False
    tree = model.tree
    if name == REGRESSOR:  # one of fewer orders
        closed = ClosedMotion(model, motion)
        whole, G = closed.motion, Jet(closed.G(motion.shape[1] - 2))
    else:
        whole, G = velocities(model, motion)
    back = G.map(lambda x: np.swapaxes(x, -1, -2))

    def of_tree(name: str) -> Jet:
        return Jet.along(along(tree, whole, name), 1)

    terms = of_tree(name)
    if name == WEIGHT:
        orders = (back @ terms.map(lambda Q: Q[..., None])).map(lambda Q: Q[..., 0])
    elif name == REGRESSOR:
        orders = back @ terms
    elif name == MASS_MATRIX:
        M = back @ (terms @ G)
        orders = 0.5 * (M + M.map(lambda Mk: np.swapaxes(Mk, -1, -2)))
    else:
        orders = back @ (terms @ G + of_tree(MASS_MATRIX) @ G.rate())
    found[...] = orders.array(1)
    return is_finite(found)
