"""Dynamics of closed loops: terms of the equations of motion, and what the loops carry.

With the velocities G ud of all joints, terms of the open tree become those of the independent
joints: G^T M G, G^T (C G + M G'), G^T Q; derivatives by Leibniz's rule. Source: Mueller 2019, "An
overview of formulae for the higher-order kinematics of lower-pair chains", and Featherstone 2008,
section 8.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.dynamics.inverse import inverse_dynamics, wrenches_in_tree
from hodyn_ros.dynamics.wrenches import Wrench, wrench_from_frame
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics.closed_loops import ClosedMotion
from hodyn_ros.kinematics.closing import closure_of, constraints_of
from hodyn_ros.kinematics.forward import forward_kinematics
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.kinematics.poses import cross, matvec, poses_along, rotations_and_origins
from hodyn_ros.lie import Jet
from hodyn_ros.lie.jets import quotient
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array


class LoopEfforts(NamedTuple):
    """Efforts of a robot with closed loops, and what its loops carry.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.dynamics import loop_efforts
    >>> found = loop_efforts(RobotModel.from_urdf('five_bar'), np.zeros((3, 2)))
    >>> found.effort.round(3) + 0.0, found.wrenches['toe'].round(3) + 0.0
    (array([[-0.088,  0.088]]), array([[ 0.   ,  0.   ,  0.   ,  0.198,  0.   , -0.098]]))
    """

    effort: Array
    """Efforts of the independent joints and derivatives, shape (..., K-2, n)."""
    wrenches: dict[str, Array]
    """By the name of the loop: the wrench (m, f) that link A exerts on link B, in the frame on A,
    and its componentwise derivatives, shape (..., K-2, 6) [N m/s^k, N/s^k]. Along rows that
    follow from others nothing is determined: there it is zero. Of a coupling the effort that it
    exerts on its joint, shape (..., K-2)."""
    motion: Array
    """Motion of all joints of the tree, shape (..., K, N)."""


def loop_efforts(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
) -> LoopEfforts:
    """Efforts of a robot with closed loops, and wrenches in its loops, with exact derivatives.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    motion : array-like, shape (..., K, n)
        Of the independent joints, K >= 3.
    wrench, algorithm
        As in `inverse_dynamics`.

    Raises
    ------
    ModelError
        If the model has no closed loops.
    HodynError
        As `inverse_dynamics`.

    Returns
    -------
    LoopEfforts

    Examples
    --------
    The force in the bearing at the toe of a leg [N]:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.dynamics import loop_efforts
    >>> model = RobotModel.from_urdf('five_bar')
    >>> found = loop_efforts(model, [[0.2, -0.2], [5.0, -5.0], [0.0, 0.0]])
    >>> found.effort.round(3), found.wrenches['toe'][0, 3:].round(3) + 0.0
    (array([[-0.088,  0.088]]), array([ 0.203,  0.   , -0.092]))
    """
    closure = closure_of(model)
    given = checked_motion(model, motion)
    closed = ClosedMotion(model, given.reshape(-1, *given.shape[-2:]))
    whole = closed.motion.reshape(*given.shape[:-1], -1)
    of_tree = inverse_dynamics(model.tree, whole, wrench, algorithm)
    batch = of_tree.shape[:-2]
    if batch != given.shape[:-2]:  # several wrenches for one sample
        wide = np.broadcast_to(given, (*batch, *given.shape[-2:]))
        closed = ClosedMotion(model, wide.reshape(-1, *given.shape[-2:]))
        whole = closed.motion.reshape(*batch, *whole.shape[-2:])
    effort, carried = closed.efforts(of_tree.reshape(-1, *of_tree.shape[-2:]))
    rows = np.zeros((*carried.shape[:-1], len(closure.names)))
    rows[..., closure.rows] = carried
    wrenches, first = {}, 0
    for loop in closure.loops:
        P = loop.rows
        values = rows[..., first : first + len(P)] @ P
        wrenches[loop.name] = values.reshape(*batch, *values.shape[1:])
        first += len(P)
    for number, coupling in enumerate(closure.couplings, first):
        wrenches[coupling.name] = rows[..., number].reshape(*batch, -1)
    return LoopEfforts(effort.reshape(*batch, *effort.shape[1:]), wrenches, whole)


def inter_body_wrenches(
    model: RobotModel, motion: ArrayLike, wrench: Wrench | Sequence[Wrench] | None = None
) -> Array:
    """Wrenches that the joints transmit to the bodies behind them, with time derivatives.

    All six components, constraint reactions included, for the design of bearings and to monitor
    loads. Their sum over the bodies on the base, with what loops that close on it carry, is the
    reaction of the base.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order, K >= 3.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, with derivatives; leading axes broadcast with those of the motion.

    Returns
    -------
    ndarray, shape (..., K-2, n_bodies, 6)
        `[..., m, i, :]` is the m-th time derivative of the wrench (moment, force) [N m, N] that
        body i gets through its joint, the drive included, in the order of `model.body_names`.
        Closed loops take their part of it; see `loop_efforts` for what is not determined there.
        Spatial: base link axes, moment about the base link origin.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values, or a result overflows.
    WrenchError
        If a wrench does not fit the model or the motion.

    Notes
    -----
    Source: Mueller 2021, eq. (30), and Algorithm 3.

    Examples
    --------
    Moment and force, in base link axes, that each joint transmits at rest:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.dynamics import inter_body_wrenches
    >>> model = RobotModel.from_urdf('two_link')
    >>> inter_body_wrenches(model, np.zeros((3, 2)))[0].round(2) + 0.0
    array([[  0.  , -44.14,   0.  ,   0.  ,   0.  ,  49.05],
           [  0.  , -23.54,   0.  ,   0.  ,   0.  ,  19.62]])
    """
    if model.closure is None:
        return wrenches_in_tree(model, motion, wrench)
    tree, found = model.tree, loop_efforts(model, motion, wrench)
    W = wrenches_in_tree(tree, found.motion, wrench)
    # Of each loop and body, 1 where what A exerts on B is all that the joint need not transmit.
    behind = model.kept(constraints_of).signs
    for loop, signs in zip(model.closure.loops, behind):
        on_link = wrench_from_frame(found.wrenches[loop.name], loop.poses[0])
        moving = poses_along(*forward_kinematics(tree, found.motion, loop.link_a), 'body')
        R, r = rotations_and_origins(moving)
        moment, force = (matvec(R, Jet.along(on_link[..., x], -2)) for x in np.s_[:3, 3:])
        spatial = (moment + cross(r, force)).array(-2), force.array(-2)
        W -= signs[:, None] * np.concatenate(spatial, axis=-1)[..., None, :]
    return W


def distribute_efforts(
    model: RobotModel,
    motion: ArrayLike,
    effort: ArrayLike,
    actuated: Sequence[str],
    weights: ArrayLike | None = None,
    preload: ArrayLike | None = None,
) -> Array:
    """Efforts of more motors than there are independent joints, with exact derivatives.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    motion : array-like, shape (..., K, n)
        Of the independent joints.
    effort : array-like, shape (..., m, n)
        What the independent joints would need, from `inverse_dynamics` along the same motion;
        m <= K - 2.
    actuated : sequence of str
        The a >= n joints of the tree that have motors.
    weights : array-like, shape (a,), optional
        The sum of weight * effort^2 is smallest; by default all are 1.
    preload : array-like, shape (..., m, a), optional
        Efforts that the motors would have without the task; what the task needs is added to them,
        and what moves the mechanism is taken out.

    Returns
    -------
    ndarray, shape (..., m, a)
        Efforts of the motors [N m] or [N], and their derivatives.

    Raises
    ------
    ModelError
        If the motors do not exist, cannot move the mechanism, or a weight is not positive.
    MotionError
        As `inverse_dynamics`.

    Notes
    -----
    With the velocities G_a ud of the motors, Q = G_a^T Q_a. The smallest is
    Q_a = Q_0 + W^-1 G_a y with G_a^T W^-1 G_a y = Q - G_a^T Q_0, whose derivatives follow by
    Leibniz's rule with one factor. Source: Nakamura and Ghodoussi 1989, "Dynamics computation of
    closed-link robot mechanisms with nonredundant and redundant actuators".

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, inverse_dynamics
    >>> from hodyn_ros.dynamics import distribute_efforts
    >>> model = RobotModel.from_urdf('five_bar')
    >>> motion = np.array([[0.2, -0.1], [1.0, 0.0], [0.0, 0.0]])
    >>> effort = inverse_dynamics(model, motion)
    >>> effort.round(3)
    array([[-0.086,  0.094]])
    >>> motors = ['motor_front', 'motor_back', 'knee_front']
    >>> distribute_efforts(model, motion, effort, motors).round(3)
    array([[-0.053,  0.061,  0.062]])
    """
    given = checked_motion(model, motion)
    rows = _motors(model, actuated)
    Q = finite_array('effort', effort, MotionError)
    m, a, batch = Q.shape[-2] if Q.ndim > 1 else 0, len(rows), given.shape[:-2]
    if Q.shape != (*batch, m, model.n_joints) or not 1 <= m <= given.shape[-2] - 2:
        raise MotionError(
            f'The efforts have shape {Q.shape} along a motion of shape {given.shape}, expected '
            f'(..., m, {model.n_joints}) with m <= K - 2, as inverse_dynamics returns them.'
        )
    W = finite_array('weights', np.ones(a) if weights is None else weights, ModelError)
    if W.shape != (a,) or (W <= 0.0).any():
        raise ModelError(f'The weights are {W}, expected {a} positive numbers.')
    kept = np.zeros((*batch, m, a)) if preload is None else preload
    Q_0 = np.broadcast_to(finite_array('preload', kept, MotionError), (*batch, m, a))
    closed = ClosedMotion(model, given.reshape(-1, *given.shape[-2:]))
    G = Jet(Gk[:, rows] for Gk in closed.G(m))
    transposed = G.map(lambda x: np.swapaxes(x, -1, -2))
    spread = G / W[:, None]
    gain = transposed @ spread
    if np.linalg.cond(gain[0]).max(initial=1.0) > 1e12:
        raise ModelError(
            f'The joints {listed(actuated)} do not move the mechanism in all its directions: '
            f'{model.n_joints} are independent. Name more motors.'
        )
    start = Jet.along(Q_0.reshape(-1, m, a, 1), 1)
    task = Jet.along(Q.reshape(-1, m, model.n_joints, 1), 1)
    solve = partial(np.linalg.solve, gain[0])
    y = quotient(task - transposed @ start, gain, solve)
    return (start + spread @ y).array(1).reshape(*batch, m, a)


def _motors(model: RobotModel, actuated: Sequence[str]) -> list[int]:
    """Indices of the joints of the tree that have motors."""
    names = closure_of(model).tree.joint_names
    known = [name for name in actuated if name in names]
    if len({*known}) != len(actuated):
        raise ModelError(
            f'The actuated joints are {listed(actuated)}, expected some of {listed(names)}.'
        )
    return [names.index(name) for name in known]
