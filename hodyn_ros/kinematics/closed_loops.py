"""Closed loops: motion of all joints of a mechanism from that of the independent ones.

With q = (u, d) and the rows L(q) qd = 0 of all loops and couplings,

    L_d d^(k+1) = -L_u u^(k+1) - sum_{j >= 1} binomial(k, j) L^(j) q^(k+1-j)

with one factor of L_d for all orders. Where there are more rows than dependent joints, as of
overconstrained loops, those with the largest pivots are taken. Positions: see `engine.following`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.engine import following
from hodyn_ros.engine.engine import Engine, unavailable
from hodyn_ros.engine.requests import CLOSING, COMPLETING, VELOCITIES, KernelRequest
from hodyn_ros.errors import HodynError, MotionError
from hodyn_ros.kinematics.closing import ConstraintRows, closure_of, constraints_of
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.lie.jets import Jet, leibniz, quotient
from hodyn_ros.model.loops import LARGEST_ERROR, SINGULAR
from hodyn_ros.model.mechanism import AnyMechanism, Closure, Mechanism
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

# How much larger than its estimate the error near a singular position may be.
_MARGIN = 64.0
# A derivative of positions [rad/s^r] or [m/s^r] beside which no other counts.
_STEEP = 1e60
# Samples that NumPy closes side by side, and of which one is looked at whether it was refused.
_LANES, _BLOCK = 32, 512


def complete_motion(model: Mechanism, motion: ArrayLike) -> Array:
    """Motion of all joints of a robot with closed loops from that of the independent ones.

    Parameters
    ----------
    model : Mechanism
        With closed loops.
    motion : array-like, shape (..., K, n)
        Time derivatives of the positions of the independent joints [rad/s^k] or [m/s^k], K >= 1.

    Returns
    -------
    ndarray, shape (..., K, N)
        Of all joints of the tree, in the order of `model.closure.tree.joint_names`.

    Raises
    ------
    MotionError
        If the motion cannot be used, or the loops do not close on the way to a position, or are
        singular there; the message names the sample and the joint.

    Notes
    -----
    Dependent joints are on the branch that the start of the loops belongs to, followed along the
    straight way of the independent joints from there.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.kinematics import complete_motion
    >>> model = RobotModel.from_urdf('five_bar')
    >>> motion = complete_motion(model, [[0.1, -0.1], [1.0, 0.0]])
    >>> model.closure.tree.joint_names
    ('motor_front', 'knee_front', 'motor_back', 'knee_back')
    >>> motion.round(3)
    array([[ 0.1  , -0.103, -0.1  ,  0.103],
           [ 1.   , -0.529,  0.   ,  0.529]])
    """
    closure_of(model)
    array = checked_motion(model, motion, 1)
    flat = array.reshape(-1, *array.shape[-2:])
    closed = _completed(model, flat)
    if closed is None:
        closed = ClosedMotion(model, flat).motion
    return closed.reshape(*array.shape[:-1], closed.shape[-1])


def _completed(model: Mechanism, motion: Array) -> Array | None:
    """Motion of all joints by compiled code, None where there is none or it is not good enough."""
    closure, (samples, K, _) = closure_of(model), motion.shape
    whole = with_closed_positions(model, motion)
    if whole is not None and K > 1:
        kernel = model.kept(Engine).kernel(KernelRequest(COMPLETING, K), samples)
        found = np.empty((samples, K - 1, len(closure.dependent)))
        if kernel is None or not kernel.evaluate(whole, None, found):
            return None
        whole[:, 1:, closure.dependent] = found
    return whole


def velocities(model: Mechanism, motion: Array) -> tuple[Array, Jet]:
    """Motion of all joints, and G, their velocities by those of the independent ones.

    Parameters
    ----------
    model : Mechanism
        With closed loops.
    motion : ndarray, shape (samples, K, n)
        Of the independent joints.

    Returns
    -------
    whole : ndarray, shape (samples, K, N)
    G : Jet of ndarray, shape (samples, N, n)
        K entries.

    Raises
    ------
    MotionError
        As `ClosedMotion` and its method G.
    """
    closure, (samples, K, n) = closure_of(model), motion.shape
    whole = with_closed_positions(model, motion, K + 1)
    if whole is not None:
        m = len(closure.dependent)
        kernel = model.kept(Engine).kernel(KernelRequest(VELOCITIES, K), samples)
        found = np.empty((samples, (K - 1) * m + K * m * n))
        if kernel is not None and kernel.evaluate(whole, None, found):
            of_motion, of_rates = np.split(found, [(K - 1) * m], axis=1)
            whole[:, 1:, closure.dependent] = of_motion.reshape(samples, K - 1, m)
            G = np.zeros((K, samples, whole.shape[-1], n))
            G[0, :, closure.independent, range(n)] = 1.0
            rates = of_rates.reshape(samples, K, m, n)
            G[:, :, closure.dependent] = np.moveaxis(rates, 1, 0)
            return whole, Jet(G)
    closed = ClosedMotion(model, motion)
    return closed.motion, Jet(closed.G(K))


def with_closed_positions(
    model: Mechanism, motion: Array, orders: int | None = None
) -> Array | None:
    """Motion of the tree that compiled programs of closed loops read.

    Parameters
    ----------
    model : Mechanism
        With closed loops.
    motion : ndarray, shape (samples, K, n)
        Of the independent joints.
    orders : int, optional
        How many derivatives of positions must keep their digits; by default K.

    Returns
    -------
    ndarray, shape (samples, K, N), or None
        Of all joints, of the dependent ones the positions alone; the rest is zero. None if they
        are not found by compiled code.

    Raises
    ------
    MotionError
        If a position is so near to a singular one that the highest derivative may be wrong.
    """
    closure = closure_of(model)
    positions = closed_positions(model, motion[:, 0])
    if positions is None or positions[1].min(initial=1.0) < 1.0:
        return None
    near = np.flatnonzero(positions[1] > 1.0)
    if len(near):
        found = positions[0][near], positions[1][near]
        ClosedMotion(model, motion[near, :1], found).refuse_lost(
            orders or motion.shape[1], near
        )
    whole = np.zeros((*motion.shape[:2], closure.tree.n_joints))
    whole[:, 1:, closure.independent] = motion[:, 1:]
    whole[:, 0] = positions[0]
    return whole


def opened(model: AnyMechanism, motion: Array) -> tuple[AnyMechanism, Array]:
    """Tree and its whole motion where a model has closed loops, else what is given.

    Parameters
    ----------
    model : Mechanism
    motion : ndarray, shape (..., K, n)

    Returns
    -------
    tree : Mechanism
    motion : ndarray, shape (..., K, n of the tree)

    Raises
    ------
    MotionError
        As `complete_motion`.
    """
    if model.closure is None:
        return model, motion
    return model.tree, complete_motion(model, motion)


def closed_positions(model: Mechanism, wanted: Array) -> tuple[Array, Array] | None:
    """Positions of all joints at which loops are closed, by compiled code if there is some.

    Parameters
    ----------
    model : Mechanism
        With closed loops.
    wanted : ndarray, shape (samples, n)
        Positions of the independent joints.

    Returns
    -------
    closed : ndarray, shape (samples, N)
    reached : ndarray, shape (samples,)
        1 where they are closed, 2 where so, but perhaps near a singular position; otherwise, less
        than 1, how much of the way there was gone.
        None of both if there is no such code.
    """
    kernel = model.kept(Engine).kernel(KernelRequest(CLOSING, 1), len(wanted))
    if kernel is None:
        return None
    closed = np.empty((len(wanted), closure_of(model).tree.n_joints))
    reached = np.zeros(len(wanted))
    kernel.evaluate(np.ascontiguousarray(wanted), reached, closed)
    return closed, reached


def _closed_by_numpy(model: Mechanism, wanted: Array) -> tuple[Array, Array]:
    """As `closed_positions`, for any robot."""
    closure, samples = closure_of(model), len(wanted)
    n, m, N = model.n_joints, len(closure.dependent), closure.tree.n_joints
    lanes = min(samples, _LANES)
    reached, closed = np.zeros(samples), np.empty(samples * N)
    following.close_all(
        _ClosingStep(model, lanes),
        np.empty(0),
        lanes,
        n,
        m,
        N,
        closure.independent.tolist(),
        closure.dependent.tolist(),
        closure.start.tolist(),
        (1.0 / closure.unit).tolist(),
        samples,
        n,
        wanted.ravel(),
        reached,
        closed,
        np.empty(following.room_size(n, m, N, lanes)),
    )
    return closed.reshape(samples, N), reached


class _ClosingStep:
    """What `loop_program.closing_program` computes, for any robot.

    Rows that are chosen anew everywhere have no common determinant; what counts is then that of
    last^T L_d with the rows at the last step: positive if no singular position lies between.
    """

    def __init__(self, model: Mechanism, lanes: int) -> None:
        self._constraints, self._closure = model.kept(constraints_of), closure_of(model)
        self._steps = np.full(lanes, -1.0)
        self._last = self._before = np.zeros(0)

    def __call__(self, _: Array, room: Array, every: Array, change: Array) -> None:
        """Write the change of each lane, from its motion."""
        d, u, lanes = self._closure.dependent, self._closure.independent, len(self._steps)
        m, N = len(d), len(self._closure.start)
        motion, lane = room[: lanes * 2 * N].reshape(lanes, 2, N), every.reshape(lanes, -1)
        found = change[: lanes * (2 * m + 1)].reshape(lanes, -1)
        at_start = lane[:, 1] == 0.0
        with np.errstate(all='ignore'):
            rows = ConstraintRows(self._constraints, motion[:, 0])
            along = rows.L[0][..., u] @ motion[:, 1, u, None]
            right = np.concatenate([rows.left_open()[..., None], -along], axis=-1)
            L_d = rows.L[0][..., d]
            kept = _row_choice(L_d)
            change_of_both = _inverse(L_d[kept]) @ right[kept]
            found[:, : 2 * m] = np.swapaxes(change_of_both, -1, -2).reshape(lanes, -1)
            if L_d.shape[1] == m:
                found[:, 2 * m] = np.linalg.det(L_d)
                return
            # Loops are closed at their start, but for rows that are not quite parallel.
            found[at_start, :m] = 0.0
            if self._last.size:
                gone = lane[:, 11] != self._steps
                self._last[gone] = self._before[gone]
            else:
                self._last = L_d.copy()
            self._last[at_start] = L_d[at_start]
            last = np.swapaxes(self._last, -1, -2)
            lane[:, 5] = np.linalg.det(last @ self._last)
            found[:, 2 * m] = np.linalg.det(last @ L_d)
        self._before, self._steps = L_d, lane[:, 11].copy()


def through_tree(
    model: AnyMechanism, motion: Array
) -> tuple[AnyMechanism, Array, Callable[[Array], Array]]:
    """What efforts of a robot are computed by: its tree, whose joints may all be its own.

    Parameters
    ----------
    model : Mechanism
    motion : ndarray, shape (samples, K, n)

    Returns
    -------
    tree : Mechanism
    motion : ndarray, shape (samples, K, n of the tree)
    of_independent : callable
        From efforts of the tree and their derivatives, shape (samples, orders, n of the tree),
        to those of the independent joints, shape (samples, orders, n).

    Raises
    ------
    MotionError
        As `complete_motion`.
    """
    if model.closure is None:
        return model, motion, lambda efforts: efforts
    closed = ClosedMotion(model, motion)
    return model.tree, closed.motion, lambda efforts: closed.efforts(efforts)[0]


def within_reach(model: Mechanism, positions: Array) -> Array:
    """Positions at which loops close: halfway to their start, as often as need be.

    They are no singular ones either: no joint is more than ten times faster, for velocities of
    the independent ones, than the fastest at the start.

    Parameters
    ----------
    model : Mechanism
        With or without closed loops.
    positions : ndarray, shape (..., n)
        Of the independent joints [rad] or [m].

    Returns
    -------
    ndarray, shape (..., n)
    """
    if model.closure is None:
        return positions
    found, start = positions.copy(), model.closure.start[model.closure.independent]
    with suppress(HodynError):  # there is no compiler; NumPy takes a hundred times as long
        model.kept(Engine).prepare(KernelRequest(CLOSING, 1))
    most = 10.0 * _fastest(model, start)
    for q in found.reshape(-1, len(start)):
        while not _fastest(model, q) <= most:
            q[:] = 0.5 * (start + q)
    return found


def closes_readily(model: Mechanism, positions: Array) -> bool:
    """Whether compiled code closes the loops at positions (samples, n); True without such code.

    Positions where it does not are near singular ones or out of reach. To look at them more
    closely, as `ClosedMotion` does, takes NumPy some 50 ms each.
    """
    found = None if model.closure is None else closed_positions(model, positions)
    return found is None or bool(found[1].min(initial=1.0) >= 1.0)


def _fastest(model: Mechanism, q: Array) -> float:
    """Largest entry of G at positions (n,), infinite where the loops do not close."""
    if not closes_readily(model, q[None]):
        return np.inf
    try:
        return float(np.abs(ClosedMotion(model, q[None, None]).G(1)[0]).max())
    except MotionError:
        return np.inf


class ClosedMotion:
    """Motion of all joints of a mechanism, with the matrix of its loops along it.

    Parameters
    ----------
    model : Mechanism
        With closed loops; its tree has N joints.
    motion : ndarray, shape (samples, K, n)
        Of the independent joints.
    found : tuple of ndarray, optional
        What `closed_positions` returns of these positions.

    Attributes
    ----------
    motion : ndarray, shape (samples, K, N)
        Of all joints of the tree.
    L : ndarray, shape (samples, K, rows, N)
        Rows of the loops, divided as in `ConstraintRows`, and their derivatives: N - n, or
        more where loops are overconstrained.

    Raises
    ------
    MotionError
        If the loops do not close on the way to a position, or are singular there.
    """

    def __init__(
        self, model: Mechanism, motion: Array, found: tuple[Array, Array] | None = None
    ) -> None:
        closure, constraints = closure_of(model), model.kept(constraints_of)
        u, d = self._u, self._d = closure.independent, closure.dependent
        samples, K, _ = motion.shape
        self.motion: Array = np.zeros((samples, K, closure.tree.n_joints))
        self.motion[:, 0], reached = (
            found or closed_positions(model, motion[:, 0]) or (0.0, np.zeros(samples))
        )
        left = np.flatnonzero(reached < 1.0)
        for start in range(0, len(left), _BLOCK):
            part = left[start : start + _BLOCK]
            self.motion[part, 0], reached = _closed_by_numpy(model, motion[part, 0])
            if reached.min() < 1.0:
                stuck = int((reached < 1.0).argmax())
                sample = int(part[stuck])
                _refuse_open(closure, motion[sample, 0], sample, reached[stuck])
        self.motion[..., u] = motion
        with np.errstate(all='ignore'):
            rows = ConstraintRows(constraints, self.motion[:, 0])
            self._kept = _row_choice(rows.L[0][..., d])
            L_d = rows.L[0][..., d][self._kept]
            self._inverse = _inverse(L_d)
            # Not above the ratio of singular values.
            sizes = (np.linalg.norm(x, axis=(-1, -2)) for x in (L_d, self._inverse))
            self._ratio = np.nan_to_num(1.0 / np.prod([*sizes], axis=0))
            for k in range(1, K):
                rates = [*np.moveaxis(self.motion[:, 1 : k + 1, :, None], 1, 0)]
                known = leibniz([L[self._kept] for L in rows.L], rates, k - 1, np.matmul)
                self.motion[:, k, d] = -(self._inverse @ known)[..., 0]
                rows.follow(self.motion[:, k])
        self.L = np.stack(rows.L, axis=1)
        self._closure, self._constraints = closure, constraints
        self.refuse_lost(K)

    def refuse_lost(self, K: int, samples: NDArray[np.intp] | None = None) -> None:
        """Refuse positions so near to singular ones that derivatives of K orders may be wrong.

        The samples are named by their own numbers, unless others are given.

        Raises
        ------
        MotionError
        """
        lost = _MARGIN * np.finfo(float).eps / LARGEST_ERROR
        doubtful = np.flatnonzero(self._ratio < lost ** (1.0 / max(2, K)))
        if len(doubtful):
            L = self._constraints.relative(self.L[doubtful, 0])
            numbers = doubtful if samples is None else samples[doubtful]
            _refuse_singular(self._closure, L, numbers, K)

    def G(self, orders: int, checked: bool = True) -> list[Array]:
        """Velocities of all joints by those of the independent ones, a matrix with derivatives.

        Parameters
        ----------
        orders : int
            How many, at most K.
        checked : bool
            Whether positions are refused that are so near to singular ones that the last entry
            may be wrong.

        Returns
        -------
        list of ndarray, shape (samples, N, n)

        Raises
        ------
        MotionError
            If a position is refused.

        Notes
        -----
        L G = 0 with the rows of the independent joints constant, differentiated. Entry k loses as
        many digits as derivative k + 1 of the positions.
        """
        if checked:
            self.refuse_lost(orders + 1)
        along, across = self._parts(orders)
        found = -quotient(along, across, self._inverse.__matmul__)
        result = []
        for k, G_d in enumerate(found):
            G = np.zeros((len(self.motion), self.motion.shape[-1], len(self._u)))
            if k == 0:
                G[:, self._u, np.arange(len(self._u))] = 1.0
            G[:, self._d] = G_d
            result.append(G)
        return result

    def _parts(self, orders: int) -> tuple[Jet, Jet]:
        """Kept rows by the independent and by the dependent joints, with derivatives."""
        L = [self.L[:, k][self._kept] for k in range(orders)]
        return Jet(x[..., self._u] for x in L), Jet(x[..., self._d] for x in L)

    def projected(self, of_tree: Sequence[Array]) -> list[Array]:
        """Rows of the independent joints, G^T times those of the tree, with derivatives.

        Parameters
        ----------
        of_tree : sequence of ndarray, shape (samples, N, ...)
            Entry k is the k-th time derivative, at most K.

        Returns
        -------
        list of ndarray, shape (samples, n, ...)
        """
        G = self.G(len(of_tree))
        return [*Jet(np.swapaxes(Gk, -1, -2) for Gk in G) @ Jet(of_tree)]

    def efforts(self, of_tree: Array) -> tuple[Array, Array]:
        """Efforts of the independent joints, and what the loops carry.

        Parameters
        ----------
        of_tree : ndarray, shape (samples, orders, N)
            Efforts of the open tree along the motion, and their derivatives; orders < K.

        Returns
        -------
        efforts : ndarray, shape (samples, orders, n)
        carried : ndarray, shape (samples, orders, rows)
            Multiplier of each row, see `loop_efforts`.
        """
        L_u, L_d = (part.map(_transposed) for part in self._parts(of_tree.shape[1]))
        Q_u, Q_d = (Jet.along(of_tree[..., j, None], 1) for j in (self._u, self._d))
        carried = quotient(Q_d, L_d, _transposed(self._inverse).__matmul__)
        efforts = (Q_u - L_u @ carried).array(1)[..., 0]
        multipliers = np.zeros((*of_tree.shape[:2], self.L.shape[2]))
        np.moveaxis(multipliers, 1, 2)[self._kept] = carried.array(-1)[..., 0, :]
        return efforts, multipliers / self._constraints.divisor


def _transposed(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def _inverse(A: Array) -> Array:
    """Inverses of matrices (samples, m, m), NaN where there is none."""
    try:
        return np.asarray(np.linalg.inv(A))
    except np.linalg.LinAlgError:
        regular = (np.linalg.det(A) != 0.0)[:, None, None]
        return np.where(
            regular, np.linalg.inv(np.where(regular, A, np.eye(len(A.T)))), np.nan
        )


def _row_choice(L_d: Array) -> Any:
    """Index of the rows (samples, m) that have the largest pivots, of (samples, rows, m)."""
    samples, rows, m = L_d.shape
    if rows == m:
        return np.s_[:]
    every, A = np.arange(samples), L_d.copy()
    order = np.tile(np.arange(rows), (samples, 1))
    for k in range(m):
        best = k + np.abs(A[:, k:, k]).argmax(axis=1)
        for x in (A, order):
            x[every, k], x[every, best] = x[every, best], x[every, k].copy()
        factor = A[:, k + 1 :, k] / A[:, k, k, None]
        A[:, k + 1 :] -= factor[..., None] * A[:, k, None]
    return every[:, None], np.sort(order[:, :m], axis=1)


def velocity_partials(model: Mechanism, motion: Array, orders: int) -> list[Array]:
    """Derivatives of `ClosedMotion.G` by the positions of the independent joints.

    Parameters
    ----------
    model : Mechanism
        With closed loops.
    motion : ndarray, shape (samples, K, n)
        Of the independent joints.
    orders : int
        How many time derivatives, from the zeroth on, at most K.

    Returns
    -------
    list of ndarray, shape (samples, n, N, n)
        `[k][:, j]` is the k-th time derivative of that of G by the position of joint j.

    Notes
    -----
    With r orders, G^(k+r), k < r, is linear in the derivative r of the positions, and its slope is
    binomial(k + r, k) (dG/du)^(k). So that derivative is given a value beside which nothing else
    counts, exactly as in complex steps a small one is given.
    """
    samples, _, n = motion.shape
    steep = np.zeros((samples, n, 2 * orders, n))
    steep[:, :, :orders] = motion[:, None, :orders]
    steep[:, range(n), orders, range(n)] = _STEEP
    closed = ClosedMotion(model, steep.reshape(-1, 2 * orders, n))
    G = closed.G(2 * orders, checked=False)[orders:]  # its last slope loses fewer digits
    slopes = [Gk / (comb(k + orders, k) * _STEEP) for k, Gk in enumerate(G)]
    return [slope.reshape(samples, n, *slope.shape[1:]) for slope in slopes]


def prepare(model: Mechanism) -> None:
    """Compile what closes the loops of a model, which otherwise happens at the first motion."""
    if not unavailable():
        model.kept(Engine).prepare(KernelRequest(CLOSING, 1))


def _refuse_singular(closure: Closure, L: Array, samples: NDArray[np.intp], K: int) -> None:
    """Refusal of positions at which the independent joints do not determine the others well.

    Of L in units of the joints, at some samples of a motion of K orders. Loops close but for
    rounding, eps, as if the mechanism was another one. Where dependent joints turn round, x^2 = u,
    that is a shift of u by eps, small beside u = ratio^2 for every order alike. Where branches
    cross, x (x - u) = 0, it bends the branch by eps / u, u = ratio, and each derivative of that is
    1 / ratio larger, while those of the branch itself are not. Velocities tell the two apart.
    """
    u, d = closure.independent, closure.dependent
    L_d, L_u = L[..., d], L[..., u]
    values, directions = np.linalg.svd(L_d)[1:]
    ratio = values[:, -1] / values[:, 0]
    with np.errstate(all='ignore'):
        fastest = np.abs(np.linalg.pinv(L_d, rcond=0.0) @ L_u).max(axis=(-1, -2))
        grows = np.clip(
            fastest * values[:, -1] / np.abs(L_u).max(axis=(-1, -2)), ratio, 1.0
        )
        error = _MARGIN * np.finfo(float).eps / ratio ** min(K, 2) / grows ** max(0, K - 2)
        error[ratio < SINGULAR] = 1.0
    if (error <= LARGEST_ERROR).all():
        return
    worst = int(error.argmax())
    names = closure.tree.joint_names
    joint = names[d[np.abs(directions[worst, -1]).argmax()]]
    raise MotionError(
        f'The loops are singular at sample {samples[worst]}: the independent joints '
        f'{listed(names[i] for i in u)} do not determine {joint!r} there (ratio of singular '
        f'values {ratio[worst]:.1e}; what follows from derivatives up to order {K - 1} may be off '
        f'by {min(1.0, error[worst]):.0%}). Choose other independent joints, or a motion that '
        'stays away from there.'
    )


def _refuse_open(closure: Closure, wanted: Array, sample: int, reached: float) -> None:
    """Refusal of positions to which the loops cannot be followed; says how far and why."""
    names, u = closure.tree.joint_names, closure.independent
    asked = ', '.join(f'{names[j]} = {value:.6g}' for j, value in zip(u, wanted))
    between = closure.start[u] + reached * (wanted - closure.start[u])
    there = ', '.join(f'{names[j]} = {value:.6g}' for j, value in zip(u, between))
    distance = np.linalg.norm(wanted - between)
    raise MotionError(
        f'The loops cannot be closed at sample {sample}, {asked}: on the straight way there from '
        f'the start of the loops they close up to {there}, {distance:.3g} (rad, m) before. Behind '
        'it there is no such position, a singular one, or another branch of the mechanism: give '
        'another start.'
    )
