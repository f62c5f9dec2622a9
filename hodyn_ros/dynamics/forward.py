"""Forward dynamics with time derivatives: what efforts do to a robot, whose base may float.

Order by order, with one factorisation of the mass matrix M(q): the k-th derivative of the
accelerations enters that of the efforts through M alone, and all else of it is known by then,

    M q^(k+2) = Q^(k) - ID_k(q, ..., q^(k+1), 0).

The engine records this as one program, see `engine.forward`; compiled code of robots with many
joints has articulated bodies instead. Here it stands for what has no such program: closed loops,
friction laws that are not of this package, and what takes a program that is too long to record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice, finite_array
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.dynamics.wrenches import Wrench, loads_of, wrenches_of
from hodyn_ros.engine.engine import (
    HIGHEST_ORDER,
    compute,
    engine_of,
    has_articulated_bodies,
    quick,
)
from hodyn_ros.engine.program import FORWARD, SINGULAR
from hodyn_ros.engine.requests import COMPILED_ROBOT, COMPILED_TREE, KernelRequest
from hodyn_ros.errors import HodynError, JointNameError, ModelError, MotionError
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.motions import motion_array, overflow
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

ALGORITHMS: dict[str, str | None] = {
    'auto': None,
    'mass_matrix': COMPILED_ROBOT,
    'articulated_bodies': COMPILED_TREE,
}


def forward_dynamics(
    model: RobotModel,
    state: ArrayLike,
    effort: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    *,
    algorithm: str = 'auto',
    out: Array | None = None,
) -> Array:
    """Joint accelerations that efforts cause, and their exact time derivatives.

    The inverse of `inverse_dynamics`: friction and armature of the model are part of it.

    Parameters
    ----------
    model : RobotModel
    state : array-like, shape (..., 2, n)
        Positions and velocities of the joints in model order [rad, rad/s] or [m, m/s].
    effort : array-like, shape (..., m, n)
        `effort[..., k, :]` is the k-th time derivative of the joint efforts [N m/s^k], [N/s^k],
        m >= 1; leading axes broadcast with those of the state.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links with as many derivatives as the efforts.
    algorithm : {'auto', 'mass_matrix', 'articulated_bodies'}
        They agree to rounding. 'auto' factorises the mass matrix of arms and takes articulated
        bodies, at a cost of O(n) per order, for more than 14 joints and where factors take a
        program that is too long to compile, if these can do it: without wrenches, friction and
        mimic joints, and m <= 5. It runs compiled code as soon as there is some; the others wait
        for the compiler.
    out : ndarray of float64, shape (..., m, n), optional
        Where to write the result, contiguous in C order.

    Returns
    -------
    ndarray, shape (..., m, n)
        `[..., k, :]` is the k-th time derivative of the accelerations [rad/s^(k+2)],
        [m/s^(k+2)].

    Raises
    ------
    MotionError
        If state or efforts have wrong shapes or hold NaN or infinite values, or a result
        overflows.
    ModelError
        If the mass matrix is singular; the message names the joint.
    WrenchError
        If a wrench does not fit.
    HodynError
        If the algorithm is unknown or cannot compute this, or `out` cannot be used.

    Notes
    -----
    Source: recursion of the orders as in the module; articulated bodies, Featherstone 2008,
    section 7.3, with the time derivatives of Mueller and Kumar 2021 by Leibniz's rule.

    Examples
    --------
    The accelerations without efforts, and the efforts of these accelerations:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, forward_dynamics, inverse_dynamics
    >>> model = RobotModel.from_urdf('two_link')
    >>> state = [[0.3, 1.0], [0.5, 0.2]]
    >>> acceleration = forward_dynamics(model, state, [[0.0, 0.0]])
    >>> acceleration.round(2)
    array([[-14.06,  19.15]])
    >>> inverse_dynamics(model, [*state, *acceleration]).round(9) + 0.0
    array([[0., 0.]])
    """
    if wrench is None and algorithm == 'auto':
        found = quick(model, FORWARD, effort, state, out)
        if found is not None:
            return found  # type: ignore[no-any-return]
    check_choice('algorithm', algorithm, ALGORITHMS, HodynError)
    given = given_efforts(model, state, effort, wrench)
    m, n = given.whole.others[0].shape[1:]
    request = _request(model, algorithm, KernelRequest(FORWARD, m + 2, given.links))

    def find(part: Batch, found: Array) -> bool:
        done = compute(model, request, part.motion, part.packed(), found)
        if done is not None:
            return done or _refused(model, part)
        motion = np.zeros((len(found), m + 2, n))
        motion[:, :2] = part.motion
        found[...] = _order_by_order(model, given, motion, range(n))[:, 2:]
        return is_finite(found)

    return given.compute(find, (m, n), out)


def _refused(model: RobotModel, part: Batch, free: Sequence[int] | None = None) -> bool:
    """False for numbers that are not finite, after a refusal of mass matrices for it."""
    if is_finite(part.motion):
        regular_mass_matrix(model, part.motion, free)
    return False


def _request(model: RobotModel, algorithm: str, request: KernelRequest) -> KernelRequest:
    """What the engine is asked for; its kernel is made at once for an algorithm by name."""
    if algorithm == 'articulated_bodies' and not has_articulated_bodies(model, request):
        raise HodynError(
            f'Articulated bodies compute up to {HIGHEST_ORDER} derivatives of the accelerations '
            "without wrenches, friction and mimic joints; use algorithm='auto'."
        )
    if algorithm != 'auto':
        request = request._replace(form=ALGORITHMS[algorithm])
        engine_of(model).prepare(request)
    return request


class HybridDynamics(NamedTuple):
    """Motion and efforts of all joints, of which one was given for each.

    Examples
    --------
    The shoulder is held, the elbow has no effort:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, hybrid_dynamics
    >>> model = RobotModel.from_urdf('two_link')
    >>> found = hybrid_dynamics(model, np.zeros((3, 2)), np.zeros((1, 2)), ['shoulder'])
    >>> found.motion[2].round(2) + 0.0, found.effort.round(2) + 0.0
    (array([  0.  , -19.62]), array([[20.6,  0. ]]))
    """

    motion: Array
    """Positions and derivatives, shape (..., K, n)."""
    effort: Array
    """Efforts and derivatives, shape (..., K-2, n)."""


def hybrid_dynamics(
    model: RobotModel,
    motion: ArrayLike,
    effort: ArrayLike,
    prescribed: Sequence[str],
    wrench: Wrench | Sequence[Wrench] | None = None,
) -> HybridDynamics:
    """Motion and efforts of all joints, where some have a given motion, the others given efforts.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Positions and velocities of all joints, and K - 2 >= 1 derivatives more, of which those of
        the prescribed joints are used.
    effort : array-like, shape (..., K-2, n)
        Efforts and derivatives; those of the prescribed joints are not used.
    prescribed : sequence of str
        Joints whose motion is given.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, with K - 2 orders.

    Raises
    ------
    JointNameError
        If a prescribed joint does not exist.
    HodynError
        As `forward_dynamics`.

    Notes
    -----
    Source: the rows and columns of the mass matrix of the joints that are free, order by order;
    Featherstone 2008, section 9.2, for the accelerations themselves.

    Returns
    -------
    HybridDynamics

    Examples
    --------
    The shoulder accelerates with 2 rad/s^2, the elbow has no effort:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, hybrid_dynamics
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion = [[0.0, 0.0], [0.0, 0.0], [2.0, np.nan]]
    >>> found = hybrid_dynamics(model, motion, [[np.nan, 0.0]], ['shoulder'])
    >>> found.motion[2].round(2), found.effort[0].round(2) + 0.0
    (array([  2.  , -24.42]), array([23.54,  0.  ]))
    """
    listed = isinstance(prescribed, Iterable) and not isinstance(prescribed, str)
    if not listed or any(name not in model.joint_names for name in prescribed):
        raise JointNameError(
            f'The prescribed joints are {prescribed!r}, expected a sequence of names of '
            f'{model.joint_names}.'
        )
    array = np.array(motion_array(model, motion), dtype=np.float64)
    which = [j for j, name in enumerate(model.joint_names) if name in prescribed]
    free = [j for j in range(model.n_joints) if j not in which]
    array[..., 2:, free] = 0.0  # whatever they hold, NaN too
    efforts = effort
    with suppress(ValueError, TypeError, IndexError):  # what is wrong is found below
        values = np.asarray(effort)
        if values.dtype.kind in 'fiu' and not isinstance(effort, np.ma.MaskedArray):
            efforts = values = values.astype(np.float64)
            values[..., which] = 0.0
    given = given_efforts(model, array, efforts, wrench, K=array.shape[-2])
    part = given.whole
    whole, efforts = part.motion.copy(), part.others[0].copy()
    found, m = np.empty_like(efforts), efforts.shape[1]
    request = KernelRequest(FORWARD, m + 2, given.links, prescribed=tuple(which))
    done = compute(model, request, part.motion, part.packed(), found)
    if done is None:
        whole = _order_by_order(model, given, whole, free)
        found[...] = inverse_dynamics(model, whole, wrenches_of(part.loads, m))
    elif done:
        whole[:, 2:, free] = found[..., free]
    elif not _refused(model, part, free):
        given.refuse()
    efforts[..., which] = found[..., which]
    return HybridDynamics(given.shaped(whole), given.shaped(efforts))


def given_efforts(
    model: RobotModel,
    motion: ArrayLike,
    effort: ArrayLike,
    wrench: Any,
    others: Sequence[Array] = (),
    K: int = 2,
) -> Arguments:
    """State and efforts that fit each other, checked.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
    effort : array-like, shape (..., m, n)
        The first of the other arrays of the result.
    wrench : Wrench, sequence of Wrench, or None
        With m orders.
    others : sequence of ndarray, shape (..., rows, columns)
        More arrays of the same samples, of a base that moves.
    K : int
        Orders that the motion must have: 2, or m + 2.

    Raises
    ------
    MotionError, WrenchError
        If a shape or value does not fit.
    """
    array = motion_array(model, motion, 2)
    efforts = finite_array('effort', effort, MotionError)
    if efforts.ndim < 2 or efforts.shape[-1] != model.n_joints or not efforts.shape[-2]:
        raise MotionError(
            f'The efforts have shape {efforts.shape}, expected (..., m, {model.n_joints}) with '
            'm >= 1: efforts and their derivatives along the axis before the last.'
        )
    count = efforts.shape[-2]
    if array.shape[-2] != K:
        raise MotionError(
            f'The state has shape {array.shape}, expected (..., 2, {model.n_joints}): positions '
            'and velocities.'
        )
    if K > 2 and K != count + 2:
        raise MotionError(
            f'The motion has shape {array.shape} and the efforts {efforts.shape}, expected '
            'K = m + 2 derivatives of the positions for m of the efforts.'
        )
    loads = loads_of(model, wrench, count)
    return Arguments(model, array, 2, (efforts, *others), loads, base_moves=bool(others))


def _order_by_order(
    model: RobotModel, given: Arguments, motion: Array, free: Sequence[int]
) -> Array:
    """Motion whose derivatives from order 2 on, of the joints that are free, are filled in."""
    given.refuse_not_finite()
    part = given.whole
    M = regular_mass_matrix(model, part.motion, free)

    def efforts(motion: Array) -> Array:
        return inverse_dynamics(model, motion, wrenches_of(part.loads, motion.shape[1] - 2))

    solve_order_by_order(M, motion, part.others[0], efforts, free)
    if not is_finite(motion):
        raise overflow(part.motion)
    return motion


def solve_order_by_order(
    M: Array,
    motion: Array,
    wanted: Array,
    efforts: Callable[[Array], Array],
    free: Sequence[int],
) -> None:
    """Fill in the derivatives, from order 2 on, of what is free in a motion.

    Parameters
    ----------
    M : ndarray, shape (N, f, f)
        Mass matrix of what is free.
    motion : ndarray, shape (N, m + 2, c)
        Written; derivatives that are not known yet are zero.
    wanted : ndarray, shape (N, m, c)
        Efforts.
    efforts : callable
        Efforts (N, k + 1, c) of a motion (N, k + 3, c).
    free : sequence of int
    """
    with np.errstate(over='ignore', invalid='ignore'):
        for k in range(wanted.shape[1]):
            left = (wanted[:, k] - efforts(motion[:, : k + 3])[:, k])[:, free]
            motion[:, k + 2, free] = np.linalg.solve(M, left[..., None])[..., 0]


def regular_mass_matrix(
    model: RobotModel, state: Array, free: Sequence[int] | None = None
) -> Array:
    """Mass matrices of states, refused unless positive definite.

    Parameters
    ----------
    model : RobotModel
    state : ndarray, shape (N, K, n)
        Only positions are used.
    free : sequence of int, optional
        Joints whose rows and columns are kept; by default all.

    Returns
    -------
    ndarray, shape (N, f, f)

    Raises
    ------
    ModelError
        If a pivot of a factorisation is rounding of zero; the message names joint and sample.
    """
    which = list(range(model.n_joints)) if free is None else list(free)
    found = mass_matrix(model, state[:, :1])[:, 0][:, which][:, :, which]
    M, size = found.copy(), np.einsum('nii->ni', found)
    for k in reversed(range(len(which))):
        pivot = M[:, k, k]
        regular = pivot > SINGULAR * size[:, k]
        if not regular.all():
            where = f' of sample {int(np.argmin(regular))}' if len(M) > 1 else ''
            joint = model.joint_names[which[k]]
            raise ModelError(
                f'The mass matrix{where} is singular: nothing that joint {joint!r} moves, with '
                'the joints behind it free, has a positive inertia. Give its link an inertia, or '
                'the joint an armature (model.with_armature).'
            )
        row = M[:, k, :k] / pivot[:, None]
        M[:, :k, :k] -= row[:, :, None] * M[:, k, None, :k]
    return found
