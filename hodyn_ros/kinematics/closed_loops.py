"""Closed loops: motion of all joints of a mechanism from that of the independent ones.

The equations stand in `loop_kernels`. Here are the tables that they read, what a motion with
closed loops knows, and how a tree is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import comb
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number, frozen
from hodyn_ros.engine.engine import Engine, unavailable
from hodyn_ros.engine.requests import CLOSING, COMPLETING, EFFORTS, Request
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.lie import Jet
from hodyn_ros.model.loops import (
    KINDS,
    LARGEST_ERROR,
    LARGEST_STEP,
    TOLERANCE,
    Coupling,
    Loop,
)
from hodyn_ros.model.mechanism import AnyMechanism, Closure, Mechanism
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

# Ratio of singular values below which joints are not determined by others.
SINGULAR = 1e-7
# How much larger than their estimates the error near a singular position and the ratio may be.
_MARGIN, _OFF = 64.0, 4.0
# Ratio of singular values below which rows follow from others, and what these may leave open
# [rad, m]: axes in descriptions are parallel to a few digits.
_RANK = _IMPRECISE = 1e-5
# How much of a row, beside others of about 1, what it follows from must change to count.
_CHANGING = 1e-3
# A derivative of positions [rad/s^r] or [m/s^r] beside which no other counts.
_STEEP = 1e60


def _kernels() -> ModuleType:
    """Kernels of loops; those who close none do not load Numba."""
    from hodyn_ros.kinematics import loop_kernels

    return loop_kernels


class Tables:
    """What the kernels read of a tree and its loops.

    Parameters
    ----------
    tree : RobotModel
        Of N joints and n_bodies bodies.
    loops : sequence of Loop
    couplings : sequence of Coupling
    kept : ndarray of int, optional
        Rows that there are, of those of the loops and then one a coupling; by default all.

    Attributes
    ----------
    tree : tuple of ndarray
        parent, coordinate, multiplier, offset, X, and B as rows of 12 numbers.
    loops : tuple of ndarray
        Of each loop the bodies of A and B (the base behind the others), kind, axis, and frames in
        both bodies; of each row of a loop the combination P of twists and the loop; of each
        coupling factors of all joints, the joint of which a polynomial is subtracted and its
        coefficients; of each loop and body 1 if the body carries B alone, -1 if A alone.
    owners : list of str
        Names of the loops and couplings of the rows.
    divisor : ndarray, shape (rows,)
        Size of a row, a power of two near it, by which the kernels' rows are divided without
        rounding: of rows of moving the longest lever arm of a joint of the loop [m], otherwise 1.
    unit : ndarray, shape (N,)
        What counts as much as 1 rad: 1 rad of a joint that turns, of one that slides the largest
        such lever arm of the loops that it moves [m]; a power of two near it.
    """

    def __init__(
        self,
        tree: Mechanism,
        loops: Sequence[Loop],
        couplings: Sequence[Coupling],
        kept: NDArray[np.intp] | None = None,
    ) -> None:
        self.n_joints = tree.n_joints
        self.tree = (
            np.asarray(tree.parent, dtype=np.int64),
            np.asarray(tree.coordinate, dtype=np.int64),
            np.array(tree.multiplier),
            np.array(tree.offset),
            np.array(tree.X),
            _packed(tree.B),
        )
        carried = np.zeros((tree.n_bodies + 1, tree.n_bodies))
        for i, p in enumerate(tree.parent):
            carried[i] = carried[p]
            carried[i, i] = 1.0
        bodies_a, frames_a = _sides(tree, [(loop.link_a, loop.poses[0]) for loop in loops])
        bodies_b, frames_b = _sides(tree, [(loop.link_b, loop.poses[1]) for loop in loops])
        P = np.concatenate([np.zeros((0, 6)), *(loop.rows for loop in loops)])
        owner = np.repeat(np.arange(len(loops)), [len(loop.rows) for loop in loops])
        rows = np.arange(len(P) + len(couplings)) if kept is None else kept
        of_loops = rows[rows < len(P)]
        coupled = [couplings[r - len(P)] for r in rows[rows >= len(P)]]
        names = [loops[int(i)].name for i in owner[of_loops]]
        self.owners = [*names, *(coupling.name for coupling in coupled)]
        self.divisor, self.unit = np.ones(len(rows)), np.ones(tree.n_joints)
        self.loops: tuple[Any, ...] = (
            bodies_a,
            bodies_b,
            np.array([KINDS.index(loop.kind) for loop in loops], dtype=np.int64),
            np.array([loop.direction for loop in loops]).reshape(-1, 3),
            frames_a,
            frames_b,
            P[of_loops],
            owner[of_loops].astype(np.int64),
            *_polynomials(tree, coupled),
            carried[bodies_b] - carried[bodies_a],
        )
        self._measure(tree)

    def _measure(self, tree: Mechanism) -> None:
        """Set the sizes of rows and joints, from lever arms at some positions, nothing slid."""
        P, owner, factors, follows, _, signs = self.loops[6:]
        moving = P[:, 3:].any(axis=1)
        turns = tree.X[:, :3].any(axis=1)
        turning = np.isin(np.arange(tree.n_joints), tree.coordinate[turns])
        arms, j = np.zeros(len(signs)), np.arange(tree.n_joints)
        for k in (1.0, 2.0, 3.0):
            L = np.abs(self.at(2.0 * np.sin(k * j + k) * turning)[1][: len(P), turning])
            np.maximum.at(arms, owner[moving], L[moving].max(axis=1, initial=0.0))
        arms[arms == 0.0] = 1.0  # nothing but slides
        length, unit = np.ones(len(self.owners)), np.ones(tree.n_joints)
        length[: len(P)][moving] = arms[owner[moving]]
        for i in np.flatnonzero(~turning[tree.coordinate]):
            unit[tree.coordinate[i]] = arms[signs[:, i] != 0.0].max(initial=0.0) or 1.0
        coupled = factors != 0.0
        coupled[range(len(follows)), follows] = True
        length[len(P) :] = (coupled * unit).max(axis=1, initial=0.0)
        self.unit = np.exp2(np.round(np.log2(unit)))
        self.divisor[: len(P)] = np.exp2(np.round(np.log2(length[: len(P)])))
        self._exact = (self.divisor / length)[:, None] * (unit / self.unit)
        self.loops = (*self.loops[:6], P / self.divisor[: len(P), None], *self.loops[7:])

    def at(self, q: Array) -> tuple[Array, Array]:
        """What is left open (rows,) at positions (N,) of all joints, and L (rows, N) there."""
        kernels = _kernels()
        nb, n, rows = len(self.tree[0]), self.n_joints, len(self.owners)
        poses, missing, L = np.empty((nb + 1, 12)), np.empty(rows), np.empty((rows, n))
        kernels.place(self.tree, q, poses)
        kernels.left_open(self.loops, poses, q, missing)
        S, R = np.empty((nb, 6)), np.empty((len(self.loops[7]), 6))
        kernels.first_order(self.tree, self.loops, poses, q[None].copy(), S, R, L)
        return missing * self.divisor, L * self.divisor[:, None]

    def relative(self, L: Array) -> Array:
        """Rows (..., rows, N) of the kernels in units that do not depend on the size."""
        return L * self._exact * self.unit

    def levelled(self, q: Array) -> tuple[Array, Array]:
        """As `at`, in units that do not depend on the size of the mechanism.

        Rows of moving are divided by their sizes, joints counted in their units, and rows of
        couplings have unit length: large ratios hide no other row.
        """
        missing, L = self.at(q)
        L = L * self.unit
        size = self.divisor.copy()
        of_couplings = slice(len(self.loops[7]), None)
        size[of_couplings] = np.linalg.norm(L[of_couplings], axis=1)
        return missing / size, L / size[:, None]


def _sides(
    tree: Mechanism, frames: Sequence[tuple[str, Array]]
) -> tuple[NDArray[np.int64], Array]:
    """Bodies of links, the base behind the others, and frames of the links in these bodies."""
    places = [(tree.link(link), pose) for link, pose in frames]
    bodies = np.array([place.body for place, _ in places], dtype=np.int64)
    in_bodies = np.array([place.pose @ pose for place, pose in places]).reshape(-1, 4, 4)
    return bodies % (tree.n_bodies + 1), _packed(in_bodies)


def _polynomials(
    tree: Mechanism, couplings: Sequence[Coupling]
) -> tuple[Array, NDArray[np.int64], Array]:
    """Couplings: factors of all joints less polynomials of one, padded with zeros, are zero."""
    index = tree.joint_names.index
    factors = np.zeros((len(couplings), tree.n_joints))
    follows = np.array([index(c.followed[0]) for c in couplings], dtype=np.int64)
    count = max((len(c.coefficients) for c in couplings), default=1)
    coefficients = np.zeros((len(couplings), count))
    for coupling, of_joints, row in zip(couplings, factors, coefficients):
        first, *ratios = coupling.coefficients
        of_joints[index(coupling.joint)] = 1.0
        if len(coupling.followed) > 1:
            for joint, ratio in zip(coupling.followed, ratios):
                of_joints[index(joint)] -= ratio
            ratios = []
        row[: 1 + len(ratios)] = first, *ratios
    return factors, follows, coefficients


def _packed(poses: Array) -> Array:
    """Rotations row by row and positions (n, 12) of poses (n, 4, 4)."""
    rotations = poses[:, :3, :3].reshape(-1, 9)
    return np.ascontiguousarray(np.concatenate([rotations, poses[:, :3, 3]], axis=1))


def tables_of(model: Mechanism) -> Tables:
    """Tables of the independent rows of a model with closed loops; to be kept with it."""
    closure = closure_of(model)
    return Tables(closure.tree, closure.loops, closure.couplings, closure.rows)


def closure_of(model: Mechanism) -> Closure:
    """Closed loops of a model.

    Raises
    ------
    ModelError
        If it has none.
    """
    if model.closure is None:
        raise ModelError(
            f'The model {model.name!r} has no closed loops: all joints of a tree are independent. '
            'Close some with RobotModel.with_loops.'
        )
    return model.closure


def complete_motion(model: Mechanism, motion: ArrayLike) -> Array:
    """Motion of all joints of a robot with closed loops from that of the independent ones.

    Parameters
    ----------
    model : RobotModel
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
        kernel = model.kept(Engine).kernel(Request(COMPLETING, K), samples)
        found = np.empty((samples, K - 1, len(closure.dependent)))
        if kernel is None or not kernel.evaluate(whole, None, found):
            return None
        whole[:, 1:, closure.dependent] = found
    return whole


def with_closed_positions(model: Mechanism, motion: Array) -> Array | None:
    """Motion of the tree that compiled programs of closed loops read.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    motion : ndarray, shape (samples, K, n)
        Of the independent joints.

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
    if positions is None or not positions[1].all():
        return None
    near = np.flatnonzero(positions[1] > 1.0)
    if len(near):
        found = positions[0][near], positions[1][near]
        ClosedMotion(model, motion[near, :1], found).refuse_lost(motion.shape[1], near)
    whole = np.zeros((*motion.shape[:2], closure.tree.n_joints))
    whole[:, 1:, closure.independent] = motion[:, 1:]
    whole[:, 0] = positions[0]
    return whole


def opened(model: AnyMechanism, motion: Array) -> tuple[AnyMechanism, Array]:
    """Tree and its whole motion where a model has closed loops, else what is given.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (..., K, n)

    Returns
    -------
    tree : RobotModel
    motion : ndarray, shape (..., K, n of the tree)

    Raises
    ------
    MotionError
        As `complete_motion`.
    """
    if model.closure is None:
        return model, motion
    return model.tree, complete_motion(model, motion)


def _branch_of(
    model: Mechanism,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]:
    """Independent and dependent joints, where the loops start, and one over units of joints."""
    closure = closure_of(model)
    return (
        np.array(closure.independent, dtype=np.int64),
        np.array(closure.dependent, dtype=np.int64),
        np.array(closure.start),
        1.0 / model.kept(tables_of).unit,
    )


def closed_positions(model: Mechanism, wanted: Array) -> tuple[Array, Array] | None:
    """Positions of all joints at which loops are closed, by compiled code if there is some.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    wanted : ndarray, shape (samples, n)
        Positions of the independent joints.

    Returns
    -------
    closed : ndarray, shape (samples, N)
    reached : ndarray, shape (samples,)
        1 where they are closed, 2 where so, but perhaps near a singular position, otherwise 0.
        None of both if there is no such code.
    """
    closure, kernel = (
        closure_of(model),
        model.kept(Engine).kernel(Request(CLOSING, 1), len(wanted)),
    )
    if kernel is None:
        return None
    lanes, table, scratch = kernel.block(len(wanted))
    closed = np.empty((len(wanted), closure.tree.n_joints))
    reached = np.zeros(len(wanted))
    wanted = np.ascontiguousarray(wanted)
    _kernels().close_all(
        table.ctypes.data, lanes, _branch_of(model), wanted, closed, reached
    )
    del scratch  # until here it was written
    return closed, reached


def offer_efforts(model: Mechanism, order: int, kernel: Kernel) -> None:
    """Keep the call for one sample of a robot with closed loops where `engine.quick` finds it."""
    closing = model.kept(Engine).kernel(Request(CLOSING, 1))
    if closing is not None:
        tables = (
            int(closing.block(1)[1].ctypes.data),
            int(kernel.block(1)[1].ctypes.data),
            _branch_of(model),
        )
        call = _kernels().closed_efforts()

        def one(motion: Array, effort: Array) -> bool:
            return motion.ndim == 2 and call(tables, motion, effort) == 0

        shape = order + 1, model.n_joints
        model.quick_calls[EFFORTS, order + 3] = shape, None, one


def through_tree(
    model: AnyMechanism, motion: Array
) -> tuple[AnyMechanism, Array, Callable[[Array], Array]]:
    """What efforts of a robot are computed by: its tree, whose joints may all be its own.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (samples, K, n)

    Returns
    -------
    tree : RobotModel
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
    model : RobotModel
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
    most = 10.0 * _fastest(model, start)
    for q in found.reshape(-1, len(start)):
        while not _fastest(model, q) <= most:
            q[:] = 0.5 * (start + q)
    return found


def _fastest(model: Mechanism, q: Array) -> float:
    """Largest entry of G at positions (n,), infinite where the loops do not close."""
    try:
        return float(np.abs(ClosedMotion(model, q[None, None]).G(1)[0]).max())
    except MotionError:
        return np.inf


class ClosedMotion:
    """Motion of all joints of a mechanism, with the matrix of its loops along it.

    Parameters
    ----------
    model : RobotModel
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
        Rows of the loops, divided as in `Tables`, and their derivatives: N - n, or more where
        loops are overconstrained.

    Raises
    ------
    MotionError
        If the loops do not close on the way to a position, or are singular there.
    """

    def __init__(
        self, model: Mechanism, motion: Array, found: tuple[Array, Array] | None = None
    ) -> None:
        closure, tables = closure_of(model), model.kept(tables_of)
        samples, K, _ = motion.shape
        m, N, rows = len(closure.dependent), closure.tree.n_joints, len(closure.rows)
        self._branch, self._divisor = _branch_of(model), tables.divisor
        self.motion = np.zeros((samples, K, N))
        reached = np.zeros(samples)
        found = found or closed_positions(model, motion[:, 0])
        if found is not None:
            self.motion[:, 0], reached = found
        L = np.empty((samples, K * rows, N))
        self._factors = np.empty((samples, rows, m)), np.empty((samples, m), dtype=np.int64)
        ratio = np.empty(samples)
        stuck = _kernels().follow_all(
            tables.tree,
            tables.loops,
            self._branch,
            np.ascontiguousarray(motion),
            self.motion,
            L,
            *self._factors,
            reached,
            ratio,
        )
        self.L = L.reshape(samples, K, rows, N)
        if stuck >= 0:
            _refuse_open(closure, motion[stuck, 0], stuck, reached[stuck])
        self._closure, self._tables, self._ratio = closure, tables, ratio
        self.refuse_lost(K)

    def refuse_lost(self, K: int, samples: NDArray[np.intp] | None = None) -> None:
        """Refuse positions so near to singular ones that derivatives of K orders may be wrong.

        The samples are named by their own numbers, unless others are given.

        Raises
        ------
        MotionError
        """
        lost = _MARGIN * np.finfo(float).eps / LARGEST_ERROR
        doubtful = np.flatnonzero(self._ratio < _OFF * lost ** (1.0 / max(2, K)))
        if len(doubtful):
            L = self._tables.relative(self.L[doubtful, 0])
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
        u, d = self._branch[:2]
        L_d = self.L[:, 0][..., d]
        result: list[Array] = []
        for k in range(orders):
            G = np.zeros((len(self.motion), self.motion.shape[-1], len(u)))
            if k == 0:
                G[:, u, np.arange(len(u))] = 1.0
            rest = self.L[:, k][..., u].copy()
            for j in range(1, k + 1):
                rest += comb(k, j) * (self.L[:, j][..., d] @ result[k - j][:, d])
            G[:, d] = -_solved(L_d, rest)
            result.append(G)
        return result

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
        u, d = self._branch[:2]
        carried = np.zeros((*of_tree.shape[:2], self.L.shape[2]))
        efforts = np.empty((*of_tree.shape[:2], len(u)))
        L = self.L.reshape(len(self.L), -1, self.L.shape[-1])
        of_tree = np.ascontiguousarray(of_tree)
        _kernels().efforts_all(u, d, L, *self._factors, of_tree, efforts, carried)
        return efforts, carried / self._divisor


def _solved(L_d: Array, right: Array) -> Array:
    """Solutions of L_d x = right; of more equations than unknowns, which fit, by least squares."""
    if L_d.shape[-1] == L_d.shape[-2]:
        return np.asarray(np.linalg.solve(L_d, right))
    Q, R = np.linalg.qr(L_d)
    return np.asarray(np.linalg.solve(R, np.swapaxes(Q, -1, -2) @ right))


def velocity_partials(model: Mechanism, motion: Array, orders: int) -> list[Array]:
    """Derivatives of `ClosedMotion.G` by the positions of the independent joints.

    Parameters
    ----------
    model : RobotModel
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
        model.kept(Engine).prepare(Request(CLOSING, 1))
        _kernels().closed_efforts()
    motion = np.zeros((1, 2, model.n_joints))
    motion[:, 0] = closure_of(model).start[closure_of(model).independent]
    closed = ClosedMotion(model, motion)
    closed.efforts(np.zeros_like(closed.motion[:, :1]))


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


# --- Closing a tree -----------------------------------------------------------------------------


def close_loops(
    tree: Mechanism,
    loops: Sequence[Loop | Coupling],
    independent: Sequence[str] | None = None,
    start: Mapping[str, float] | None = None,
) -> Closure:
    """Closure of the loops of a tree; see `RobotModel.with_loops`.

    Parameters
    ----------
    tree : Mechanism
        Without closed loops.
    loops, independent, start
        As in `RobotModel.with_loops`.

    Returns
    -------
    Closure

    Raises
    ------
    ModelError
        As `RobotModel.with_loops`.
    """
    if tree.closure is not None:
        raise ModelError(
            f'The model {tree.name!r} has closed loops already; give all of them at once.'
        )
    if isinstance(loops, (Loop, Coupling)):
        loops = [loops]
    joints = tuple(item for item in loops if isinstance(item, Loop))
    couplings = tuple(item for item in loops if isinstance(item, Coupling))
    _check_loops(tree, loops, joints, couplings)
    tables = Tables(tree, joints, couplings)
    owners = tables.owners
    q = _closed(tables, _start_of(tree, {} if start is None else start), 200)
    kept = _kept_rows(tables, q)
    q = _checked_closed(tables, Tables(tree, joints, couplings, kept), kept, q)
    dropped = sorted({owners[i] for i in range(len(owners)) if i not in kept})
    more = _changing_rows(tables, q, kept)
    remark = (
        f'{len(owners) - len(kept)} of {len(owners)} rows of the loops {listed(dropped)} follow '
        'from the others, as in planar loops: the loop forces along them are not determined, and '
        'are given as zero.'
        if dropped
        else ''
    )
    if len(more):
        remark += (
            ' The loops are overconstrained: which rows follow from others changes with the '
            'position, and so do those along which forces are given.'
        )
    held, on_held = _held(tree, joints, q, tables.levelled(q)[1][kept], independent)
    couplings += held
    on_held_rows = len(owners) + np.arange(len(held))
    of_kept = Tables(tree, joints, couplings, np.concatenate([kept, on_held_rows]))
    u = _independent(tree, of_kept.levelled(q)[1], independent)
    d = np.setdiff1d(np.arange(tree.n_joints), u)
    rows = np.concatenate([np.sort(np.concatenate([kept, more])), on_held_rows])
    remark = f'{remark} {on_held}'.strip()
    parts = frozen(u), frozen(d), frozen(rows), frozen(q)
    names = tuple(coupling.joint for coupling in held)
    return Closure(tree, joints, couplings, *parts, remark, names)


def _check_loops(
    tree: Mechanism,
    given: Sequence[Loop | Coupling],
    loops: Sequence[Loop],
    couplings: Sequence[Coupling],
) -> None:
    """Refusal of what is no loop, and of names that do not exist or come twice."""
    if not given or len(loops) + len(couplings) != len(given):
        raise ModelError(f'The loops are {given!r}, expected some of Loop and Coupling.')
    names = [item.name for item in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(f'Several loops have the name {listed(twice)}.')
    for loop in loops:
        a, b = tree.link(loop.link_a), tree.link(loop.link_b)
        if a.body == b.body:
            raise ModelError(
                f'Loop {loop.name!r}: {loop.link_a!r} and {loop.link_b!r} are one body.'
            )
    for coupling in couplings:
        for joint in (coupling.joint, *coupling.followed):
            if joint not in tree.joint_names:
                raise ModelError(
                    f'Coupling {coupling.name!r}: there is no joint {joint!r}; the joints are '
                    f'{listed(tree.joint_names)}.'
                )


def _start_of(tree: Mechanism, start: Mapping[str, float]) -> Array:
    """Joint positions (N,) as they are given, else zero."""
    q = np.zeros(tree.n_joints)
    if not isinstance(start, Mapping):
        raise ModelError(
            f'The start is {start!r}, expected positions by names of joints, such as '
            f'{{{tree.joint_names[0]!r}: 0.5}}.'
        )
    for name, value in start.items():
        if name not in tree.joint_names:
            raise ModelError(
                f'The start names joint {name!r}; the joints are {listed(tree.joint_names)}.'
            )
        what = f'The start of joint {name!r}'
        q[tree.joint_names.index(name)] = checked_number(what, value, ModelError)
    return q


def _checked_closed(
    tables: Tables, of_kept: Tables, kept: NDArray[np.intp], q: Array
) -> Array:
    """Joint positions (N,) at which the kept rows are closed, and the others nearly so."""
    missing = np.abs(tables.at(q)[0]) / tables.divisor
    if TOLERANCE < missing.max(initial=0.0) < _IMPRECISE:
        q = _closed(of_kept, q, 20)
        missing = np.abs(tables.at(q)[0]) / tables.divisor
    allowed = np.full(len(missing), _IMPRECISE)
    allowed[kept] = TOLERANCE
    if (missing > allowed).any():
        row = int((missing / allowed).argmax())
        raise ModelError(
            f'Loop {tables.owners[row]!r} cannot be closed: near the start, '
            f'{missing[row] * tables.divisor[row]:.3g} (m or rad) stay open. Check its links and '
            'poses, or give the start: positions of joints near which it closes.'
        )
    return q


def _closed(tables: Tables, q: Array, steps: int) -> Array:
    """Positions (N,) that Gauss's and Newton's method reaches in so many steps."""
    for _ in range(steps):
        missing, L = tables.levelled(q)
        step = -np.linalg.pinv(L, rcond=_RANK) @ missing
        size = np.abs(step).max(initial=0.0)
        q = q + step * tables.unit * min(1.0, LARGEST_STEP / max(size, LARGEST_STEP))
        if size < 1e-13:
            break
    return q


def _kept_rows(tables: Tables, q: Array) -> NDArray[np.intp]:
    """Rows that the others do not follow from, at and around a closed position."""
    from scipy.linalg import qr

    here = tables.levelled(q)[1]
    there = tables.levelled(_nearby(tables, q, 0.02))[1]
    if _rank(there) > _rank(here):
        raise ModelError(
            f'The loops are singular where they start: {_rank(here)} of their rows are '
            f'independent there, {_rank(there)} nearby, as where links of a loop are in line. '
            'Give joints another start: <joint ... start="0.5"> of a URDF, `start` of '
            'RobotModel.with_loops.'
        )
    _, _, order = qr(there.T, pivoting=True)
    return np.sort(order[: _rank(there)])


def _nearby(tables: Tables, q: Array, step: float) -> Array:
    """Positions (N,) a little along the motion that the loops leave, and closed again."""
    L = tables.levelled(q)[1]
    free = np.linalg.svd(L)[2][_rank(L) :]
    along = step * np.sin(1.0 + np.arange(len(free))) @ free
    return _closed(tables, q + tables.unit * along, 20)


def _changing_rows(tables: Tables, q: Array, kept: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows that follow from the kept ones, but not everywhere in the same way.

    Where they do, as in planar loops, the kept rows are good wherever all rows are. Otherwise, as
    in overconstrained ones, they may become singular where the mechanism is regular.
    """
    others = np.setdiff1d(np.arange(len(tables.owners)), kept)
    if not len(others):
        return others
    at = [tables.levelled(_nearby(tables, q, step))[1] for step in (0.0, 0.02, -0.2, 0.2)]
    L = np.concatenate(at, axis=1)
    left = L[others] - L[others] @ np.linalg.pinv(L[kept]) @ L[kept]
    return np.asarray(others[np.abs(left).max(axis=1) > _CHANGING])


def _rank(L: Array) -> int:
    values = np.linalg.svd(L, compute_uv=False)
    return int((values > _RANK * max(1e-300, values.max(initial=0.0))).sum())


def _left_free(L: Array, held: Sequence[int]) -> Array:
    """Directions (n, f) in which joints may still move if some are held."""
    from scipy.linalg import null_space

    free: Array = null_space(np.concatenate([L, np.eye(L.shape[1])[held]]), rcond=_RANK)
    return free


def _held(
    tree: Mechanism,
    loops: Sequence[Loop],
    q: Array,
    L: Array,
    independent: Sequence[str] | None,
) -> tuple[tuple[Coupling, ...], str]:
    """Couplings that hold links which may turn about themselves between balls, and a remark.

    None, unless too few independent joints are named and all else stands still with them.
    """
    from scipy.linalg import qr

    names = tree.joint_names
    named = [names.index(name) for name in independent or () if name in names]
    spare, free = tree.n_joints - len(L) - len(named), _left_free(L, named)
    turning = _turning(tree, loops, q, free) if named and spare == free.shape[1] > 0 else []
    if not turning:
        return (), ''
    # The first of joints that turn alike, whatever the rounding.
    first = 1.0 - 1e-6 * np.arange(len(free))
    held = sorted(qr(free.T * first, pivoting=True)[2][:spare].tolist())
    return tuple(Coupling(f'{names[j]} held', names[j], names[j], [q[j]]) for j in held), (
        f'{listed(turning)} may turn about the lines between their balls, which moves nothing '
        f'else: {listed(names[j] for j in held)} are held where the loops start.'
    )


def _turning(tree: Mechanism, loops: Sequence[Loop], q: Array, free: Array) -> list[str]:
    """Links that turn about lines through centres of two balls, if joints move in `free` (n, f).

    None, if a link with inertia or in a loop moves otherwise.
    """
    jacobians, centres = _twists_and_balls(tree, loops, q)
    turning = []
    for link, J in jacobians.items():
        directions, sizes, _ = np.linalg.svd(J @ free)
        if sizes[0] < _RANK:
            continue
        away = directions[3:, 0] + np.cross(directions[:3, 0], centres)
        on_line = centres[np.abs(away).max(axis=1) < _RANK]
        apart = np.abs(on_line - on_line[:1]).max(initial=0.0)
        if sizes[1:].max(initial=0.0) > _RANK or apart < _RANK:
            return []
        turning.append(link)
    return turning


def _twists_and_balls(
    tree: Mechanism, loops: Sequence[Loop], q: Array
) -> tuple[dict[str, Array], Array]:
    """Jacobians (6, n) of links with inertia or in loops, and centres of balls, at the base.

    In units that do not depend on the size, see `Tables.levelled`. A ball is a loop, or joints
    with massless links between them at its centre.
    """
    bodies = {frame.body: link for link, frame in reversed([*tree.links.items()])}
    frames = [(bodies[i], None) for i in range(tree.n_bodies)]
    balls = [(loop.link_b, loop.pose_b) for loop in loops if loop.kind == 'ball']
    # Of a weld to the base L has the twist of a link, and what is open the place of a point.
    at_base = [
        Loop('', 'weld', tree.base_link, link, None, pose)
        for link, pose in (*frames, *balls)
    ]
    tables = Tables(tree, at_base, ())
    places, J = tables.at(q)
    ends = {tree.link(link).body for loop in loops for link in (loop.link_a, loop.link_b)}
    matter = [i for i, M in enumerate(tree.M_body) if M.any() or i in ends]
    size = np.repeat([1.0, tables.divisor.max(initial=0.0)], 3)
    of_links = (J * tables.unit).reshape(-1, 6, tree.n_joints) / size[:, None]
    centres = np.delete((places.reshape(-1, 6) / size)[:, 3:], matter, axis=0)
    return {bodies[i]: of_links[i] for i in matter}, centres


def _independent(
    tree: Mechanism, L: Array, names: Sequence[str] | None
) -> NDArray[np.intp]:
    """Indices of the independent joints: those that are named, or the first that may be so."""
    n, freedom = tree.n_joints, tree.n_joints - len(L)
    if freedom == 0:
        raise ModelError(
            f'The loops leave no motion: {len(L)} independent rows for {n} joints.'
        )
    if names is None:
        return _first_independent(L, freedom)
    names = [names] if isinstance(names, str) else names
    unknown = [name for name in names if name not in tree.joint_names]
    if unknown or len({*names}) != freedom or len(names) != freedom:
        known = [tree.joint_names.index(x) for x in names if x not in unknown]
        free = np.abs(_left_free(L, known)).max(axis=1, initial=0.0)
        moving = [name for name, size in zip(tree.joint_names, free) if size > _RANK]
        raise ModelError(
            f'The independent joints are {listed(names)}, expected {freedom} of '
            f'{listed(tree.joint_names)}: {n} joints less {len(L)} independent rows of loops.'
            + (f' With these, {listed(moving)} are left free.' if moving else '')
        )
    u = np.sort([tree.joint_names.index(name) for name in names])
    if _ratio(L[:, np.setdiff1d(np.arange(n), u)]) < SINGULAR:
        raise ModelError(
            f'The independent joints {listed(names)} do not determine the others where the loops '
            'start. Choose others, or give another start.'
        )
    return np.array(u, dtype=np.intp)


def _first_independent(L: Array, freedom: int) -> NDArray[np.intp]:
    """Indices of the first so many joints that determine the others well.

    If there are not enough, those that determine them best.
    """
    from scipy.linalg import qr

    chosen: list[int] = []
    others = list(range(L.shape[1]))
    for j in range(L.shape[1]):
        without = [i for i in others if i != j]
        if len(chosen) < freedom and _ratio(L[:, without]) > 1e3 * SINGULAR:
            chosen.append(j)
            others = without
    if len(chosen) < freedom:
        order = qr(L, pivoting=True)[2]
        chosen, others = sorted(order[len(L) :].tolist()), order[: len(L)].tolist()
        if _ratio(L[:, others]) < SINGULAR:
            raise ModelError(
                f'No {freedom} joints determine the {len(L)} others where the loops start: the '
                'loops are nearly singular there. Give another start.'
            )
    return np.array(chosen, dtype=np.intp)


def _ratio(L: Array) -> float:
    """Smallest over largest singular value of as many as there are rows; zero if some lack."""
    values = np.linalg.svd(L, compute_uv=False)
    if L.shape[1] < L.shape[0] or not values.all():
        return 0.0
    return float(values[-1] / values[0]) if values.size else 1.0
