"""Forward dynamics with time derivatives: what efforts do to a robot, whose base may float.

Order by order, with one factorisation of the mass matrix M(q): the k-th derivative of the
accelerations enters that of the efforts through M alone, and all else of it is known by then,

    M q^(k+2) = Q^(k) - ID_k(q, ..., q^(k+1), 0).

Robots with many joints are computed by articulated bodies instead, see `engine.body_programs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice, finite_array
from hodyn_ros.dynamics.inverse import check_out, inverse_dynamics
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.dynamics.wrenches import Wrench, checked_wrenches
from hodyn_ros.engine.engine import (
    COMPILED_ROBOT,
    COMPILED_TREE,
    MOST_BODIES,
    BodyDynamics,
    Term,
    compute,
    computed,
    engine_of,
    quick,
)
from hodyn_ros.engine.program import FORWARD, MASS_MATRIX, SINGULAR, Attachment
from hodyn_ros.errors import HodynError, JointNameError, ModelError, MotionError
from hodyn_ros.kinematics.joints import motion_array, overflow, refuse_not_finite
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

ALGORITHMS = {
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
    """
    if wrench is None and algorithm == 'auto':
        found = quick(model, FORWARD, effort, state, out)
        if found is not None:
            return found  # type: ignore[no-any-return]
    check_choice('algorithm', algorithm, ALGORITHMS, HodynError)
    given = given_efforts(model, state, effort, wrench)
    shape = (*given.batch, given.count, model.n_joints)
    if out is not None:
        check_out(out, shape, (given.motion,), 'the state')
    result = np.empty(shape) if out is None else out
    flat = result.reshape(given.N, *shape[-2:])
    request = _request(model, algorithm, given)
    if not compute(model, request, given.motion, given.packed(*given.others), flat):
        given.refuse_not_finite()
        motion = np.zeros((given.N, given.count + 2, model.n_joints))
        motion[:, :2] = given.motion
        flat[...] = _order_by_order(model, given, motion, range(model.n_joints))[:, 2:]
    return result


def _request(model: RobotModel, algorithm: str, given: DynamicsInputs) -> BodyDynamics:
    """What the engine is asked for; its kernel is made at once for an algorithm by name."""
    request = BodyDynamics(FORWARD, given.count, given.links)
    if algorithm == 'articulated_bodies' and not request.loops(model):
        raise HodynError(
            'Articulated bodies compute up to four derivatives of the accelerations without '
            "wrenches, friction and mimic joints; use algorithm='auto'."
        )
    if algorithm != 'auto':
        request = request._replace(form=ALGORITHMS[algorithm])
        engine_of(model).prepare(request)
    return request


class HybridDynamics(NamedTuple):
    """Motion and efforts of all joints, of which one was given for each."""

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
        As `forward_dynamics`; also for friction laws that are not of this package.

    Notes
    -----
    Source: the rows and columns of the mass matrix of the joints that are free, order by order;
    Featherstone 2008, section 9.2, for the accelerations themselves.

    Returns
    -------
    HybridDynamics
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
    whole, efforts = given.motion.copy(), given.others[0].copy()
    found = np.empty_like(efforts)
    request = BodyDynamics(FORWARD, given.count, given.links, tuple(which))
    if model.closure is not None:
        given.refuse_not_finite()
        whole = _order_by_order(model, given, whole, free)
        found[...] = inverse_dynamics(model, whole, given.wrenches(given.count))
    elif computed(model, request, given.motion, given.packed(*given.others), found):
        whole[:, 2:, free] = found[..., free]
    else:
        given.refuse_not_finite()
        regular_mass_matrix(model, given.motion, free)
        raise overflow(given.motion)
    efforts[..., which] = found[..., which]
    parts = (x.reshape(*given.batch, *x.shape[1:]) for x in (whole, efforts))
    return HybridDynamics(*parts)


def given_efforts(
    model: RobotModel,
    motion: ArrayLike,
    effort: ArrayLike,
    wrench: Any,
    others: Sequence[Array] = (),
    K: int = 2,
) -> DynamicsInputs:
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
        More arrays of the same samples.
    K : int
        Orders that the motion must have: 2, or m + 2.

    Raises
    ------
    MotionError, WrenchError
        If a shape or value does not fit.
    """
    array = np.asarray(motion_array(model, motion, 2), dtype=np.float64)
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
    return DynamicsInputs(model, array, (efforts, *others), count, wrench)


class DynamicsInputs:
    """Motion, other arrays and wrenches of N samples, of which all have the same leading axes.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (..., K, n)
    others : sequence of ndarray, shape (..., rows, columns)
    count : int
        Orders of the wrenches.
    wrench : Wrench, sequence of Wrench, or None

    Attributes
    ----------
    batch : tuple of int
        The leading axes that all broadcast to.
    N : int
        Number of samples.
    motion : ndarray, shape (N, K, n)
    others : list of ndarray, shape (N, rows, columns)
    links : tuple of Attachment

    Raises
    ------
    MotionError
        If the leading axes do not broadcast.
    WrenchError
        If a wrench does not fit.
    """

    def __init__(
        self,
        model: RobotModel,
        motion: Array,
        others: Sequence[Array],
        count: int,
        wrench: Any,
    ) -> None:
        self._model, self.count = model, count
        self._wrenches = checked_wrenches(model, wrench, count)
        arrays = [motion, *others, *(np.asarray(item.values) for item in self._wrenches)]
        try:
            self.batch = np.broadcast_shapes(*(item.shape[:-2] for item in arrays))
        except ValueError:
            raise MotionError(
                f'The leading axes of what is given do not broadcast: {[x.shape for x in arrays]} '
                'are the shapes of the motion, of what belongs to it and of the wrenches.'
            ) from None
        self.N = prod(self.batch)
        self.motion, *rest = (self._along_one_axis(item) for item in arrays)
        self.others, self._values = rest[: len(others)], rest[len(others) :]
        self.links = tuple(
            Attachment(item.link, item.expressed_in, item.acting) for item in self._wrenches
        )

    def _along_one_axis(self, values: Array) -> Array:
        """Values with their leading axes broadcast and merged, contiguous float64."""
        whole = np.broadcast_to(values, (*self.batch, *values.shape[-2:]))
        return np.ascontiguousarray(whole, dtype=np.float64).reshape(
            self.N, *values.shape[-2:]
        )

    def packed(self, *arrays: Array) -> Array:
        """Rows of numbers (N, ...) as programs read them: arrays side by side, then wrenches."""
        parts = [
            item.reshape(self.N, prod(item.shape[1:])) for item in (*arrays, *self._values)
        ]
        return (
            parts[0]
            if len(parts) == 1
            else np.ascontiguousarray(np.concatenate(parts, axis=1))
        )

    def wrenches(self, orders: int) -> list[Wrench] | None:
        """Wrenches with so many orders; None if there are none."""
        return [
            Wrench(item.link, values[:, :orders], item.expressed_in, item.acting)
            for item, values in zip(self._wrenches, self._values)
        ] or None

    def refuse_not_finite(self) -> None:
        """Refuse motions that hold NaN or infinite values."""
        refuse_not_finite(self._model, self.motion, self.batch)


def _order_by_order(
    model: RobotModel, given: DynamicsInputs, motion: Array, free: Sequence[int]
) -> Array:
    """Recursion of the orders with `inverse_dynamics` and `mass_matrix`.

    What the joints that are free do from order 2 on is zero in the motion; it is filled in.
    """
    M = regular_mass_matrix(model, given.motion, free)
    with np.errstate(over='ignore', invalid='ignore'):
        for k in range(given.count):
            bias = inverse_dynamics(model, motion[:, : k + 3], given.wrenches(k + 1))[:, k]
            rest = (given.others[0][:, k] - bias)[:, free]
            motion[:, k + 2, free] = np.linalg.solve(M, rest[..., None])[..., 0]
    if not np.all(np.isfinite(motion)):
        raise overflow(given.motion)
    return motion


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
    positions = np.ascontiguousarray(state[:, :1])
    found = np.empty((len(state), model.n_joints, model.n_joints))
    # Its program, run by NumPy if need be, has zeros where the closed form has rounding.
    if model.n_bodies > MOST_BODIES or not computed(
        model, Term(MASS_MATRIX, 1), positions, None, found
    ):
        found = mass_matrix(model, positions)[:, 0]
    found = found[:, which][:, :, which]
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
