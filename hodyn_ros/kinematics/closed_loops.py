"""Kinematics of closed loops: dependent joints and their derivatives from the independent ones.

The rows of all loops and couplings are L(q) qd = 0, so that with q = (u, d)

    L_d d^(k+1) = -L_u u^(k+1) - sum_{j >= 1} binomial(k, j) L^(j) q^(k+1-j)

with one factor of L_d for all orders. The derivatives of L come from those of the joint screws in
the base frame, S' = ad(V) S, see Mueller 2021, "An O(n)-Algorithm for the Higher-Order Kinematics
and Inverse Dynamics of Serial Manipulators using Spatial Representation of Twists", and of the
frames on links A. Positions are found by Newton's method along a straight way of the independent
joints from the start, so that the branch of the mechanism stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics.joints import checked_motion, selection_of
from hodyn_ros.lie import leibniz, se3, so3
from hodyn_ros.model.assembly import BASE, frozen
from hodyn_ros.model.loops import Closure, Coupling, Loop
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

# Where loops are closed [rad, m], and how far a step of Newton's method may go on the way there.
_CLOSED, _LARGEST_STEP = 1e-9, 0.3
# How often a step of the way is halved, and corrected, before it is given up.
_HALVINGS, _CORRECTIONS = 10, 12
# Ratio of singular values below which dependent joints are not determined by the independent ones.
SINGULAR = 1e-7
# Ratio of singular values below which rows follow from others.
_RANK = 1e-7


class Rows:
    """Rows of loops and couplings of a tree: what is left open, and their derivatives.

    Parameters
    ----------
    tree : RobotModel
        Of N joints and n_bodies bodies.
    loops : sequence of Loop
    couplings : sequence of Coupling

    Attributes
    ----------
    P : ndarray, shape (m, 6)
        Combinations of the twist of B relative to A of each row of loops.
    loop : ndarray of int, shape (m,)
        Which loop each of these belongs to.
    """

    def __init__(
        self, tree: RobotModel, loops: Sequence[Loop], couplings: Sequence[Coupling]
    ) -> None:
        self.tree, self.loops, self.couplings = tree, loops, couplings
        rows = [loop.rows for loop in loops]
        self.P = np.concatenate([np.zeros((0, 6)), *rows])
        self.loop = np.repeat(np.arange(len(loops)), [len(part) for part in rows])
        self.selection = selection_of(tree)
        self.ancestors = np.eye(tree.n_bodies)
        for i, p in enumerate(tree.parent):
            if p != BASE:
                self.ancestors[i] += self.ancestors[p]
        # Body and frame in it of either side.
        self._a = [_side(tree, loop.link_a, loop.poses[0]) for loop in loops]
        self._b = [_side(tree, loop.link_b, loop.poses[1]) for loop in loops]
        carriers = np.vstack([self.ancestors, np.zeros(tree.n_bodies)])  # the base has none
        self.bodies_a = np.array([body for body, _ in self._a], dtype=np.intp)
        bodies_b = np.array([body for body, _ in self._b], dtype=np.intp)
        self.signs = carriers[bodies_b] - carriers[self.bodies_a]
        index = tree.joint_names.index
        self.joints = np.array(
            [(index(c.joint), index(c.follows)) for c in couplings], dtype=np.intp
        ).reshape(-1, 2)

    def poses(self, q: Array) -> Array:
        """Poses (N, n_bodies + 1, 4, 4) of the bodies at joint positions; the last is the base."""
        tree = self.tree
        positions = q[:, tree.coordinate] * tree.multiplier + tree.offset
        moved = tree.B @ se3.exp(tree.X * positions[..., None])
        poses = np.empty((len(q), tree.n_bodies + 1, 4, 4))
        poses[:, BASE] = np.eye(4)
        for i, p in enumerate(tree.parent):
            poses[:, i] = poses[:, p] @ moved[:, i]
        return poses

    def frame_a(self, i: int, poses: Array) -> Array:
        """Frame (N, 4, 4) on link A of loop i in the base, with the poses of the bodies."""
        body, frame = self._a[i]
        placed: Array = poses[:, body] @ frame
        return placed

    def open(self, q: Array, poses: Array) -> Array:
        """What is left open in each row (N, rows) [rad] or [m], its derivative L where closed."""
        left = [np.zeros((len(q), 0))]
        for i, (loop, (body_b, frame_b)) in enumerate(zip(self.loops, self._b)):
            relative = se3.inverse(self.frame_a(i, poses)) @ (poses[:, body_b] @ frame_b)
            turned = relative[:, :3, :3]
            if loop.kind == 'hinge':
                turn = _turn_of_axis(loop.direction, turned)
            else:
                turn = so3.log(turned)
            errors = np.concatenate([turn, relative[:, :3, 3]], axis=-1)
            left.append(errors @ loop.rows.T)
        for coupling, (j, i) in zip(self.couplings, self.joints):
            polynomial = np.polynomial.Polynomial(coupling.coefficients)
            left.append((q[:, j] - polynomial(q[:, i]))[:, None])
        return np.concatenate(left, axis=-1)


def _side(tree: RobotModel, link: str, pose: Array) -> tuple[int, Array]:
    """Body of a link, and a frame of the link in it."""
    body, frame = tree.link(link)
    return body, frame @ pose


def _turn_of_axis(axis: Array, rotations: Array) -> Array:
    """Rotation vectors (N, 3), across an axis, that bring it where rotations (N, 3, 3) do."""
    moved = rotations @ axis
    across = so3.cross(np.broadcast_to(axis, moved.shape), moved)
    sine = np.linalg.norm(across, axis=-1, keepdims=True)
    angle = np.arctan2(sine, moved @ axis[:, None])
    opposite = np.pi * np.linalg.svd(axis[None])[2][1]
    ratio = np.where(sine > 0.0, angle / np.where(sine > 0.0, sine, 1.0), 1.0)
    return np.where((sine == 0.0) & (angle > 1.0), opposite, across * ratio)


class RowSeries:
    """Matrix L of the rows along motions, one derivative after the other.

    Parameters
    ----------
    rows : Rows
    q : ndarray, shape (N, n)
        Positions of the joints of the tree.
    poses : ndarray, shape (N, n_bodies + 1, 4, 4)
        Of the bodies there, see `Rows.poses`.

    Attributes
    ----------
    L : list of ndarray, shape (N, rows, n)
        L and as many of its derivatives as there are of the positions.
    R : list of ndarray, shape (N, rows of loops, 6)
        The rows as combinations of twists in the base frame.
    """

    def __init__(self, rows: Rows, q: Array, poses: Array) -> None:
        tree = self._tree = rows.tree
        self._rows = rows
        self._q = [q]
        self._V: list[Array] = []  # of the bodies, and zero of the base behind them
        self._S = [(se3.Ad(poses[:, :-1]) @ tree.X[..., None])[..., 0]]
        to_frames = np.zeros((len(q), len(rows.loops), 6, 6))
        for i in range(len(rows.loops)):
            to_frames[:, i] = se3.Ad(se3.inverse(rows.frame_a(i, poses)))
        self.R = [(rows.P[:, None] @ to_frames[:, rows.loop])[:, :, 0]]
        self._D: list[Array] = []
        self.L: list[Array] = []
        self._close()

    def advance(self, rate: Array) -> None:
        """Take the next derivative (N, n) of the positions; L has one more then."""
        rows, tree, k = self._rows, self._tree, len(self._q)
        self._q.append(rate)
        own, S, R = np.zeros_like(self._S[0]), np.zeros_like(self._S[0]), 0.0 * self.R[0]
        for j in range(k):
            rates = self._q[k - j][:, tree.coordinate] * tree.multiplier
            own += comb(k - 1, j) * self._S[j] * rates[..., None]
        self._V.append(np.pad(rows.ancestors @ own, ((0, 0), (0, 1), (0, 0))))
        bodies_a = rows.bodies_a[rows.loop]
        for i in range(k):
            V = self._V[i]
            S += comb(k - 1, i) * se3.bracket(V[:, :-1], self._S[k - 1 - i])
            R -= comb(k - 1, i) * se3.coadjoint(V[:, bodies_a], self.R[k - 1 - i])
        self._S.append(S)
        self.R.append(R)
        self._close()

    def _close(self) -> None:
        """Append the derivative of L that the screws are known for."""
        rows, k = self._rows, len(self.L)
        self._D.append(
            np.einsum(
                'li,nid,ij->nldj', rows.signs, self._S[k], rows.selection, optimize=True
            )
        )
        of_loops = np.zeros((*self.R[0].shape[:2], rows.selection.shape[1]))
        for i in range(k + 1):
            D = self._D[k - i][:, rows.loop]
            of_loops += comb(k, i) * (self.R[i][:, :, None] @ D)[:, :, 0]
        self.L.append(np.concatenate([of_loops, self._of_couplings(k)], axis=1))

    def _of_couplings(self, k: int) -> Array:
        """Derivative k of the rows (N, couplings, n) of couplings."""
        rows = self._rows
        N, n = self._q[0].shape
        result = np.zeros((N, len(rows.couplings), n))
        for row, (coupling, (j, i)) in enumerate(zip(rows.couplings, rows.joints)):
            x = np.stack([q[:, i] for q in self._q], axis=-1)
            slope = np.polynomial.Polynomial(coupling.coefficients).deriv()
            at = np.stack([slope.deriv(m)(x[:, 0]) for m in range(k + 1)], axis=-1)
            result[:, row, j] = float(k == 0)
            result[:, row, i] -= leibniz.compose(at, x)[:, k]
        return result


def rows_of(model: RobotModel) -> Rows:
    """Rows of the loops and couplings of a model with closed loops; to be kept with it."""
    closure = closure_of(model)
    return Rows(closure.tree, closure.loops, closure.couplings)


def closure_of(model: RobotModel) -> Closure:
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


def complete_motion(model: RobotModel, motion: ArrayLike) -> Array:
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
    closed = ClosedMotion(model, flat).motion
    return closed.reshape(*array.shape[:-1], closed.shape[-1])


def opened(model: RobotModel, motion: Array) -> tuple[RobotModel, Array]:
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
    return model.closure.tree, complete_motion(model, motion)


class ClosedMotion:
    """Motion of all joints of a mechanism, with the matrix of its loops along it.

    Parameters
    ----------
    model : RobotModel
        With closed loops; its tree has N joints.
    motion : ndarray, shape (samples, K, n)
        Of the independent joints.

    Attributes
    ----------
    motion : ndarray, shape (samples, K, N)
        Of all joints of the tree.

    Raises
    ------
    MotionError
        If the loops do not close on the way to a position, or are singular there.
    """

    def __init__(self, model: RobotModel, motion: Array) -> None:
        closure, rows = closure_of(model), model.kept(rows_of)
        u, d = closure.independent, closure.dependent
        samples, K, _ = motion.shape
        whole = np.zeros((samples, K, closure.tree.n_joints))
        whole[..., u] = motion
        whole[:, 0] = closed_positions(closure, rows, motion[:, 0])
        self.motion, self._closure = whole, closure
        self._series = RowSeries(rows, whole[:, 0], rows.poses(whole[:, 0]))
        _refuse_singular(closure, self.L(0)[..., d])
        self._factor = np.linalg.inv(self.L(0)[..., d])
        for k in range(K - 1):
            known = self.L(0)[..., u] @ motion[:, k + 1, :, None]
            for j in range(1, k + 1):
                known += comb(k, j) * (self.L(j) @ whole[:, k + 1 - j, :, None])
            whole[:, k + 1, d] = -(self._factor @ known)[..., 0]

    def L(self, k: int) -> Array:
        """Derivative k < K of the independent rows of the loops, shape (samples, N - n, N)."""
        while len(self._series.L) <= k:
            self._series.advance(self.motion[:, len(self._series.L)])
        return self._series.L[k][:, self._closure.rows]

    def G(self, orders: int) -> list[Array]:
        """Velocities of all joints by those of the independent ones, a matrix with derivatives.

        Parameters
        ----------
        orders : int
            How many, at most K.

        Returns
        -------
        list of ndarray, shape (samples, N, n)

        Notes
        -----
        L G = 0 with the rows of the independent joints constant, differentiated.
        """
        u, d = self._closure.independent, self._closure.dependent
        result: list[Array] = []
        for k in range(orders):
            G = np.zeros((len(self.motion), self.motion.shape[-1], len(u)))
            if k == 0:
                G[:, u, np.arange(len(u))] = 1.0
            rest = self.L(k)[..., u].copy()
            for j in range(1, k + 1):
                rest += comb(k, j) * (self.L(j)[..., d] @ result[k - j][:, d])
            G[:, d] = -(self._factor @ rest)
            result.append(G)
        return result

    def efforts(self, of_tree: Array) -> tuple[Array, Array]:
        """Efforts of the independent joints, and what the loops carry.

        Parameters
        ----------
        of_tree : ndarray, shape (samples, orders, N)
            Efforts of the open tree along the motion, and their derivatives; orders < K.

        Returns
        -------
        efforts : ndarray, shape (samples, orders, n)
        carried : ndarray, shape (samples, orders, N - n)
            Multiplier of each row, see `loop_wrenches`.

        Notes
        -----
        Q_tree = E Q + L^T carried, differentiated: the rows of the dependent joints give what the
        loops carry, those of the independent ones the efforts.
        """
        u, d = self._closure.independent, self._closure.dependent
        carried = np.zeros((*of_tree.shape[:2], len(d)))
        efforts = np.empty((*of_tree.shape[:2], len(u)))
        transposed = np.swapaxes(self._factor, -1, -2)
        for k in range(of_tree.shape[1]):
            rest = of_tree[:, k].copy()
            for j in range(1, k + 1):
                rest -= comb(k, j) * (carried[:, k - j, None] @ self.L(j))[:, 0]
            carried[:, k] = (transposed @ rest[:, d, None])[..., 0]
            efforts[:, k] = rest[:, u] - (carried[:, k, None] @ self.L(0)[..., u])[:, 0]
        return efforts, carried


def _refuse_singular(closure: Closure, L_d: Array) -> None:
    """Refusal of positions at which the independent joints do not determine the others."""
    _, values, directions = np.linalg.svd(L_d)
    if not values.size:
        return
    ratio = values[:, -1] / values[:, 0]
    if (ratio > SINGULAR).all():
        return
    sample = int(ratio.argmin())
    names = closure.tree.joint_names
    joint = names[closure.dependent[np.abs(directions[sample, -1]).argmax()]]
    raise MotionError(
        f'The loops are singular at sample {sample}: the independent joints '
        f'{listed(names[i] for i in closure.independent)} do not determine {joint!r} there (ratio '
        f'of singular values {ratio[sample]:.1e}). Choose other independent joints, or a motion '
        'that stays away from there.'
    )


def closed_positions(closure: Closure, rows: Rows, wanted: Array) -> Array:
    """Positions of all joints at which the loops are closed.

    Parameters
    ----------
    closure : Closure
    rows : Rows
        Of the same loops.
    wanted : ndarray, shape (N, n)
        Positions of the independent joints.

    Returns
    -------
    ndarray, shape (N, n of the tree)

    Raises
    ------
    MotionError
        If the loops do not close on the way there.
    """
    u, d, kept = closure.independent, closure.dependent, closure.rows
    q = np.tile(closure.start, (len(wanted), 1))
    way = wanted - q[:, u]
    reached, step = np.zeros(len(q)), np.ones(len(q))
    smallest = 2.0**-_HALVINGS
    left = np.arange(len(q))
    while left.size:
        L = RowSeries(rows, q[left], rows.poses(q[left])).L[0][:, kept]
        with np.errstate(all='ignore'):
            slope = -_solved(L[..., d], (L[..., u] @ way[left, :, None]))[..., 0]
        fastest = np.maximum(
            np.abs(slope).max(axis=-1, initial=0.0),
            np.abs(way[left]).max(axis=-1, initial=0.0),
        )
        largest = _LARGEST_STEP / np.maximum(fastest, _LARGEST_STEP)
        ahead = np.minimum(np.minimum(step[left], largest), 1.0 - reached[left])
        trial = q[left]
        trial[:, u] = wanted[left] - (1.0 - reached[left] - ahead)[:, None] * way[left]
        trial[:, d] += ahead[:, None] * slope
        closes = _correct(rows, kept, d, trial)
        good, bad = left[closes], left[~closes]
        q[good] = trial[closes]
        reached[good] += ahead[closes]
        step[good] = np.minimum(2.0 * ahead[closes], 1.0)
        step[bad] = ahead[~closes] / 2.0
        stuck = bad[step[bad] < smallest * np.minimum(1.0, largest[~closes])]
        if stuck.size:
            _refuse_open(closure, rows, q, wanted, int(stuck[0]))
        left = left[reached[left] < 1.0 - 1e-12]
    return q


def _solved(matrices: Array, right: Array) -> Array:
    """Solutions of linear equations; of singular ones the least squares."""
    try:
        solution: Array = np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.pinv(matrices) @ right
    return solution


def _correct(
    rows: Rows, kept: NDArray[np.intp], d: NDArray[np.intp], q: Array
) -> NDArray[np.bool_]:
    """Close the loops by Newton's method in the joints d, in place; says where that went well."""
    goes = np.ones(len(q), dtype=bool)
    closed = np.zeros(len(q), dtype=bool)
    before = np.full(len(q), _LARGEST_STEP)
    for _ in range(_CORRECTIONS):
        at = np.flatnonzero(goes & ~closed)
        if not at.size:
            break
        poses = rows.poses(q[at])
        missing = rows.open(q[at], poses)[:, kept]
        L_d = RowSeries(rows, q[at], poses).L[0][:, kept][..., d]
        step = -_solved(L_d, missing[..., None])[..., 0]
        size = np.abs(step).max(axis=-1, initial=0.0)
        goes[at] = size <= before[at]
        q[np.ix_(at, d)] += np.where(goes[at, None], step, 0.0)
        closed[at] = size < _CLOSED
        before[at] = np.maximum(size, _CLOSED)
    return closed & goes


def _refuse_open(
    closure: Closure, rows: Rows, q: Array, wanted: Array, sample: int
) -> None:
    names, u = closure.tree.joint_names, closure.independent
    there = ', '.join(f'{names[j]} = {value:.6g}' for j, value in zip(u, q[sample, u]))
    asked = ', '.join(f'{names[j]} = {value:.6g}' for j, value in zip(u, wanted[sample]))
    L = RowSeries(rows, q[sample : sample + 1], rows.poses(q[sample : sample + 1])).L[0]
    values, directions = np.linalg.svd(L[0][closure.rows][:, closure.dependent])[1:]
    joint = names[closure.dependent[np.abs(directions[-1]).argmax()]]
    raise MotionError(
        f'The loops cannot be closed at sample {sample}, {asked}: on the straight way there from '
        f'the start they close up to {there}, where {joint!r} stops being determined (ratio of '
        f'singular values {values[-1] / values[0]:.1e}).'
    )


# --- Closing a tree -----------------------------------------------------------------------------


def close_loops(
    tree: RobotModel,
    loops: Sequence[Loop | Coupling],
    independent: Sequence[str] | None = None,
    start: Mapping[str, float] | None = None,
) -> RobotModel:
    """Model of a tree whose loops are closed; see `RobotModel.with_loops`.

    Parameters
    ----------
    tree : RobotModel
        Without closed loops.
    loops, independent, start
        As in `RobotModel.with_loops`.

    Returns
    -------
    RobotModel

    Raises
    ------
    ModelError
        As `RobotModel.with_loops`.
    """
    if tree.closure is not None:
        raise ModelError(
            f'The model {tree.name!r} has closed loops already; give all of them at once.'
        )
    joints = tuple(item for item in loops if isinstance(item, Loop))
    couplings = tuple(item for item in loops if isinstance(item, Coupling))
    _check_loops(tree, loops, joints, couplings)
    rows = Rows(tree, joints, couplings)
    names = [joint.name for joint in joints]
    owners = [*(names[i] for i in rows.loop), *(coupling.name for coupling in couplings)]
    q = _first_closed(tree, rows, owners, start or {})
    kept = _kept_rows(tree, rows, q)
    u = _independent(tree, rows, kept, q, independent)
    d = np.setdiff1d(np.arange(tree.n_joints), u)
    closure = Closure(
        tree, joints, couplings, frozen(u), frozen(d), frozen(kept), frozen(q)
    )
    dropped = sorted({owners[i] for i in range(len(owners)) if i not in kept})
    remarks: tuple[str, ...] = ()
    if dropped:
        remarks = (
            f'{len(owners) - len(kept)} of {len(owners)} rows of the loops {listed(dropped)} '
            'follow from the others, as in planar loops: the loop forces along them are not '
            'determined, and are given as zero.',
        )
    return tree.closed(closure, remarks)


def _check_loops(
    tree: RobotModel,
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
        for joint in (coupling.joint, coupling.follows):
            if joint not in tree.joint_names:
                raise ModelError(
                    f'Coupling {coupling.name!r}: there is no joint {joint!r}; the joints are '
                    f'{listed(tree.joint_names)}.'
                )


def _first_closed(
    tree: RobotModel, rows: Rows, owners: Sequence[str], start: Mapping[str, float]
) -> Array:
    """Joint positions (n,) near the given ones at which all loops are closed."""
    q = np.zeros((1, tree.n_joints))
    for name, value in start.items():
        if name not in tree.joint_names:
            raise ModelError(
                f'The start names joint {name!r}; the joints are {listed(tree.joint_names)}.'
            )
        what = f'The start of joint {name!r}'
        q[0, tree.joint_names.index(name)] = checked_number(what, value, ModelError)
    for _ in range(200):
        poses = rows.poses(q)
        missing = rows.open(q, poses)[0]
        L = RowSeries(rows, q, poses).L[0][0]
        step = -np.linalg.pinv(L, rcond=1e-9) @ missing
        size = np.abs(step).max(initial=0.0)
        q[0] += step * min(1.0, _LARGEST_STEP / max(size, _LARGEST_STEP))
        if size < 1e-13:
            break
    missing = np.abs(rows.open(q, rows.poses(q))[0])
    if missing.max(initial=0.0) > _CLOSED:
        row = int(missing.argmax())
        raise ModelError(
            f'Loop {owners[row]!r} cannot be closed: near the start, {missing[row]:.3g} (m or '
            'rad) stay open. Check its links and poses, or give the start: positions of joints '
            'near which it closes.'
        )
    closed: Array = q[0]
    return closed


def _kept_rows(tree: RobotModel, rows: Rows, q: Array) -> NDArray[np.intp]:
    """Rows that the others do not follow from, at and around a closed position."""
    from scipy.linalg import qr

    def matrix(at: Array) -> Array:
        L: Array = RowSeries(rows, at[None], rows.poses(at[None])).L[0][0]
        return L

    here = matrix(q)
    # A position nearby: a little along the motion that the loops leave, and closed again.
    free = np.linalg.svd(here)[2][_rank(here) :]
    near = q + 0.02 * np.sin(1.0 + np.arange(len(free))) @ free if len(free) else q
    for _ in range(20):
        missing = rows.open(near[None], rows.poses(near[None]))[0]
        near = near - np.linalg.pinv(matrix(near), rcond=1e-9) @ missing
    there = matrix(near)
    if _rank(there) > _rank(here):
        raise ModelError(
            f'The loops are singular where they start: {_rank(here)} of their rows are '
            f'independent there, {_rank(there)} nearby, as where links of a loop are in line. '
            'Give another start.'
        )
    _, _, order = qr(there.T, pivoting=True)
    return np.sort(order[: _rank(there)])


def _rank(L: Array) -> int:
    values = np.linalg.svd(L, compute_uv=False)
    return int((values > _RANK * max(1e-300, values.max(initial=0.0))).sum())


def _independent(
    tree: RobotModel,
    rows: Rows,
    kept: NDArray[np.intp],
    q: Array,
    names: Sequence[str] | None,
) -> NDArray[np.intp]:
    """Indices of the independent joints: those that are named, or the first that may be so."""
    L = RowSeries(rows, q[None], rows.poses(q[None])).L[0][0][kept]
    n, freedom = tree.n_joints, tree.n_joints - len(kept)
    if freedom == 0:
        raise ModelError(
            f'The loops leave no motion: {len(kept)} independent rows for {n} joints.'
        )
    if names is None:
        chosen: list[int] = []
        for j in range(n):
            others = [i for i in range(n) if i != j and i not in chosen]
            if len(chosen) < freedom and _ratio(L[:, others]) > 1e3 * SINGULAR:
                chosen.append(j)
        return np.array(chosen, dtype=np.intp)
    unknown = [name for name in names if name not in tree.joint_names]
    if unknown or len({*names}) != freedom or len(names) != freedom:
        raise ModelError(
            f'The independent joints are {listed(names)}, expected {freedom} of '
            f'{listed(tree.joint_names)}: {n} joints less {len(kept)} independent rows of loops.'
        )
    u = np.sort([tree.joint_names.index(name) for name in names])
    if _ratio(L[:, np.setdiff1d(np.arange(n), u)]) < SINGULAR:
        raise ModelError(
            f'The independent joints {listed(names)} do not determine the others where the loops '
            'start. Choose others, or give another start.'
        )
    return np.array(u, dtype=np.intp)


def _ratio(L: Array) -> float:
    """Smallest over largest singular value of as many as there are rows; zero if some lack."""
    values = np.linalg.svd(L, compute_uv=False)
    if L.shape[1] < L.shape[0] or not values.all():
        return 0.0
    return float(values[-1] / values[0]) if values.size else 1.0
