"""Dynamics of robots whose base moves: as it is told to, or as efforts and wrenches make it.

The equations of a body hold in any axes; what they take of the base is its angular velocity and
the proper acceleration a = R^T (p'' - g) of its origin, in its axes, which are what an inertial
measurement unit there measures. The pose gives R^T g, and derivatives follow by Leibniz's rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.dynamics.forward import (
    given_efforts,
    regular_mass_matrix,
    solve_order_by_order,
)
from hodyn_ros.dynamics.inverse import friction_efforts
from hodyn_ros.dynamics.wrenches import Wrench, loads_of
from hodyn_ros.engine.engine import compute
from hodyn_ros.engine.program import FLOATING, MOVING
from hodyn_ros.engine.requests import KernelRequest
from hodyn_ros.errors import ModelError, MotionError, WrenchError
from hodyn_ros.kinematics.arguments import Arguments, Batch, Loads
from hodyn_ros.kinematics.closed_loops import through_tree
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.kinematics.motions import checked_link_motion, motion_array, overflow
from hodyn_ros.kinematics.poses import poses_along, twists_of
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


class MovingBaseEfforts(NamedTuple):
    """What a motion of joints and base needs.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, moving_base_inverse_dynamics
    >>> model = RobotModel.from_urdf('two_link')
    >>> found = moving_base_inverse_dynamics(
    ...     model, np.zeros((3, 2)), (np.eye(4), np.zeros((2, 6)))
    ... )
    >>> found.effort.round(2), found.base_wrench.round(2) + 0.0
    (array([[44.14,  9.81]]), array([[  0.  , -44.14,   0.  ,   0.  ,   0.  ,  49.05]]))
    """

    effort: Array
    """Joint efforts and derivatives, shape (..., K-2, n), as `inverse_dynamics` has them."""
    base_wrench: Array
    """Wrench (moment, force) that moves the base, about its origin in its axes, with the
    derivatives of these coordinates, shape (..., K-2, 6) [N m/s^m, N/s^m]."""


class FloatingBaseMotion(NamedTuple):
    """What efforts do to joints and base.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, floating_base_forward_dynamics
    >>> model = RobotModel.from_urdf('two_link').changed(M_base=np.diag([1.0, 1, 1, 20, 20, 20]))
    >>> at_rest = np.eye(4), np.zeros((1, 6))
    >>> found = floating_base_forward_dynamics(model, np.zeros((2, 2)), at_rest, [[5.0, 0.0]])
    >>> found.acceleration.round(2), found.twist_rate.round(2) + 0.0
    (array([[ 8.91, -8.67]]), array([[  0.  ,   5.  ,   0.  ,   0.  ,   0.  , -10.17]]))
    """

    acceleration: Array
    """Joint accelerations and derivatives, shape (..., m, n), as of `forward_dynamics`."""
    twist_rate: Array
    """Entry k is the (k+1)-th derivative of the twist of the base (omega, v) in its axes,
    shape (..., m, 6)."""


def moving_base_inverse_dynamics(
    model: RobotModel,
    motion: ArrayLike,
    base: LinkMotion | tuple[ArrayLike, ArrayLike],
    wrench: Wrench | Sequence[Wrench] | None = None,
    *,
    expressed_in: str = 'body',
) -> MovingBaseEfforts:
    """Joint efforts and wrench on the base, with exact derivatives, of a robot whose base moves.

    Parameters
    ----------
    model : RobotModel
        Its gravity is in the axes of the world, in which the pose of the base is.
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order, K >= 3.
    base : LinkMotion or (pose, twist)
        Motion of the base link: pose (..., 4, 4) in the world, twist with derivatives
        (..., K-1, 6), or more, as `forward_kinematics` returns them for the link of a carrier.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, the base link among them, with K - 2 orders. 'spatial' and 'hybrid' are
        expressions in the axes of the base link, which move.
    expressed_in : {'body', 'spatial', 'hybrid'}
        Expression of the twist, see `forward_kinematics`, with the world for the base link.

    Returns
    -------
    MovingBaseEfforts

    Raises
    ------
    MotionError
        If motion or base have wrong shapes, too few derivatives or values that are not finite, if
        the pose is not a rigid motion, or a result overflows.
    WrenchError
        If a wrench does not fit.
    ModelError
        If the description has an inertia of the base link that cannot be used.

    Notes
    -----
    The base wrench includes the inertia of the base link. Compiled code answers as soon as there
    is some, as in `forward_kinematics`. Source: Newton-Euler recursion from the proper
    acceleration of the base, doc/dynamics.rst.

    Examples
    --------
    A base that accelerates upwards with 1 m/s^2:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, moving_base_inverse_dynamics
    >>> model = RobotModel.from_urdf('two_link')
    >>> base = np.eye(4), [np.zeros(6), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]
    >>> found = moving_base_inverse_dynamics(model, np.zeros((3, 2)), base)
    >>> found.effort.round(2), found.base_wrench.round(2) + 0.0
    (array([[48.64, 10.81]]), array([[  0.  , -48.64,   0.  ,   0.  ,   0.  ,  54.05]]))
    """
    array = motion_array(model, motion)
    base = _body_twist(model, base, expressed_in, array.shape[-2] - 1)
    loads = loads_of(model, wrench)
    given = Arguments(model, array, others=base, loads=loads, base_moves=True)
    given.refuse_not_finite()
    found = given.shaped(_needed(model, given.whole))
    return MovingBaseEfforts(found[..., 6:].copy(), found[..., :6].copy())


def _needed(model: RobotModel, part: Batch) -> Array:
    """Wrench on the base and joint efforts, (N, K-2, 6 + n), of its twist and -g in its axes."""
    tree, motion, of_independent = through_tree(model, part.motion)
    request = KernelRequest(MOVING, motion.shape[1], tuple(link for link, _ in part.loads))
    result = np.empty((len(motion), *request.shape(tree)))
    if not compute(tree, request, motion, part.packed(), result):
        raise overflow(part.motion)
    if model.friction:
        result[..., 6:] += friction_efforts(tree, motion)
    return np.concatenate([result[..., :6], of_independent(result[..., 6:])], axis=-1)


def floating_base_forward_dynamics(
    model: RobotModel,
    state: ArrayLike,
    base: LinkMotion | tuple[ArrayLike, ArrayLike],
    effort: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    *,
    base_wrench: ArrayLike | None = None,
    expressed_in: str = 'body',
) -> FloatingBaseMotion:
    """Accelerations of joints and base, with exact derivatives, under efforts and wrenches.

    Parameters
    ----------
    model : RobotModel
        Its gravity is in the axes of the world. The base link needs an inertia.
    state : array-like, shape (..., 2, n)
        Positions and velocities of the joints in model order.
    base : LinkMotion or (pose, twist)
        Pose of the base link in the world, (..., 4, 4), and its twist, (..., 1, 6), or more rows,
        which are not used.
    effort : array-like, shape (..., m, n)
        Joint efforts and their time derivatives, m >= 1.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, such as those of contacts, with m orders; expressions as in
        `moving_base_inverse_dynamics`.
    base_wrench : array-like, shape (..., m, 6), optional
        Wrench on the base, as `moving_base_inverse_dynamics` returns it; by default none.
    expressed_in : {'body', 'spatial', 'hybrid'}
        Expression of the twist of the base; that of the result is 'body'.

    Returns
    -------
    FloatingBaseMotion

    Raises
    ------
    MotionError, WrenchError
        As `forward_dynamics`, and if the pose is not a rigid motion.
    ModelError
        If the mass matrix is singular.

    Notes
    -----
    Programs of more than 20,000 operations, from about 25 joints on, are run by NumPy; from 40 on
    they are too long to record.
    Source: as `forward_dynamics` with six rows more; what is solved for is the proper acceleration
    of the base, so that gravity enters only where it is turned into that of the twist.

    Examples
    --------
    Without efforts the base falls, and the joints stay where they are:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, floating_base_forward_dynamics
    >>> model = RobotModel.from_urdf('two_link').changed(M_base=np.diag([1.0, 1, 1, 20, 20, 20]))
    >>> base, still = (np.eye(4), np.zeros((1, 6))), np.zeros((2, 2))
    >>> found = floating_base_forward_dynamics(model, still, base, np.zeros((1, 2)))
    >>> found.acceleration.round(6) + 0.0, found.twist_rate.round(6) + 0.0
    (array([[0., 0.]]), array([[ 0.  ,  0.  ,  0.  ,  0.  ,  0.  , -9.81]]))
    """
    V, up = _body_twist(model, base, expressed_in, 1)
    asked = finite_array('effort', effort, MotionError)
    m = asked.shape[-2] if asked.ndim > 1 else 1
    on_base = np.zeros((m, 6)) if base_wrench is None else base_wrench
    on_base = finite_array('base_wrench', on_base, WrenchError)
    if on_base.ndim < 2 or on_base.shape[-2:] != (m, 6):
        raise WrenchError(
            f'base_wrench has shape {on_base.shape}, expected (..., {m}, 6): as many orders as '
            'the efforts.'
        )
    given = given_efforts(model, state, asked, wrench, (on_base, V, up))
    found = np.empty((given.N, m, model.n_joints + 6))
    part, request = given.whole, KernelRequest(FLOATING, m + 2, given.links)
    done = compute(model, request, part.motion, part.packed(), found)
    if done is None:
        given.refuse_not_finite()
        found[...] = _order_by_order(model, part)
    elif not done:
        given.refuse_not_finite()
        _refuse_singular(model, part, request)
        given.refuse()
    found = given.shaped(found)
    return FloatingBaseMotion(found[..., 6:].copy(), found[..., :6].copy())


def _order_by_order(model: RobotModel, part: Batch) -> Array:
    """Accelerations (N, m, 6 + n) of base and joints of closed loops.

    As in `forward`, of base and joints together, with a matrix that comes column by column, at
    rest and without weight.
    """
    efforts, on_base, V, up = part.others
    wanted = np.concatenate([on_base, efforts], axis=-1)
    N, m, size = wanted.shape
    # Rows of the twist, whose joints have velocities there, are one derivative lower.
    motion = np.zeros((N, m + 2, size))
    motion[:, :2, 6:], motion[:, 1, :6] = part.motion, V[:, 0]

    def needed(model: RobotModel, motion: Array, up: Array, loads: Loads = ()) -> Array:
        loads = [(link, values[:, : motion.shape[1] - 2]) for link, values in loads]
        joints = np.ascontiguousarray(motion[..., 6:])
        return _needed(model, Batch(joints, [motion[:, 1:, :6], up], loads))

    still = np.zeros((N, size, 3, size))
    still[:, :, 0], still[:, :, 2] = motion[:, None, 0], np.eye(size)
    bare, weightless = model.changed(friction={}), np.zeros((N * size, 1, 3))
    M = needed(bare, still.reshape(-1, 3, size), weightless).reshape(N, size, size)
    scale = 1.0 / np.sqrt(np.maximum(np.einsum('nii->ni', M), 1e-300))
    if np.linalg.eigvalsh(M * scale[:, :, None] * scale[:, None]).min(initial=1.0) < 1e-12:
        regular_mass_matrix(model, part.motion)
        raise _singular_base()
    solve_order_by_order(
        M, motion, wanted, lambda known: needed(model, known, up, part.loads), range(size)
    )
    return motion[:, 2:]


def _refuse_singular(model: RobotModel, part: Batch, request: KernelRequest) -> None:
    """Refuse mass matrices that are singular: of the joints, or together with the base.

    Whether that of the base is shows at rest, where nothing overflows.
    """
    regular_mass_matrix(model, part.motion)
    found = np.empty((len(part.motion), *request.shape(model)))
    packed = part.packed()
    assert packed is not None  # efforts
    at_rest = 0.0 * part.motion, np.zeros_like(packed)
    if not compute(model, request, *at_rest, found):
        raise _singular_base()


def _singular_base() -> ModelError:
    return ModelError(
        'The mass matrix of the floating base is singular: give the base link an inertia, '
        'with model.with_payload if the description has none, that is not negligible '
        'beside those of the other links.'
    )


def _body_twist(
    model: RobotModel, base: Any, expressed_in: str, count: int
) -> tuple[Array, Array]:
    """Twist (..., count, 6) of a base in its axes, with derivatives, and -g there, (..., 1, 3)."""
    if not np.isfinite(model.M_base).all():
        raise ModelError(
            'The inertia of the base link, or of a link that is attached to it, cannot be used; '
            'model.warnings say why. Correct it in the description.'
        )
    pose, twist = checked_link_motion(base, expressed_in)
    if twist.shape[-2] < count:
        raise MotionError(
            f'The twist of the base has shape {twist.shape}, expected (..., {count}, 6) or more '
            'rows: as many derivatives of the pose as of the joint positions.'
        )
    R = pose[..., :3, :3]
    up = -(model.gravity @ R)[..., None, :]
    twist = twist[..., :count, :]
    if expressed_in != 'body':
        twist = twists_of(poses_along(pose, twist, expressed_in), 'body').array(-2)
    return twist, up
