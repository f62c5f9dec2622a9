"""Closed loops of any robot by NumPy: rows that hold bodies together, and how a tree is closed.

The rows of all loops and couplings are L(q) qd = 0. The derivatives of L come from those of the
joint screws in the base frame, S' = ad(V) S, see Mueller 2021, "An O(n)-Algorithm for the
Higher-Order Kinematics and Inverse Dynamics of Serial Manipulators using Spatial Representation of
Twists", and of the rows in the base frame, R' = -R ad(V_A).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import checked_number, frozen
from hodyn_ros.errors import ModelError
from hodyn_ros.kinematics.motions import body_coordinates, selection_of
from hodyn_ros.kinematics.poses import poses_in_base
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import Jet, derivative, leibniz
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.loops import (
    LARGEST_STEP,
    SINGULAR,
    TOLERANCE,
    Coupling,
    Loop,
)
from hodyn_ros.model.mechanism import Closure, Mechanism
from hodyn_ros.names import listed
from hodyn_ros.typing import Array, Indices

# Ratio of singular values below which rows follow from others, and what these may leave open
# [rad, m]: axes in descriptions are parallel to a few digits.
_RANK = _IMPRECISE = 1e-5
# How much of a row, beside others of about 1, what it follows from must change to count.
_CHANGING = 1e-3


class Constraints:
    """Rows of loops and couplings of a tree.

    Parameters
    ----------
    tree : Mechanism
        Of N joints and n_bodies bodies.
    loops : sequence of Loop
    couplings : sequence of Coupling
    kept : ndarray of int, optional
        Rows that there are, of those of the loops and then one a coupling; by default all.

    Attributes
    ----------
    owners : list of str
        Names of the loops and couplings of the rows.
    divisor : ndarray, shape (rows,)
        Size of a row, a power of two near it, by which rows are divided without rounding: of
        rows of moving the longest lever arm of a joint of the loop [m], otherwise 1.
    unit : ndarray, shape (N,)
        What counts as much as 1 rad: 1 rad of a joint that turns, of one that slides the largest
        such lever arm of the loops that it moves [m]; a power of two near it.
    signs : ndarray, shape (loops, n_bodies)
        1 if the body carries B alone, -1 if A alone, else 0.
    """

    def __init__(
        self,
        tree: Mechanism,
        loops: Sequence[Loop],
        couplings: Sequence[Coupling],
        kept: NDArray[np.intp] | None = None,
    ) -> None:
        self.tree: Mechanism = tree
        self.loops: tuple[Loop, ...] = tuple(loops)
        # The base is the body behind the others.
        self.carried: Array = np.zeros((tree.n_bodies + 1, tree.n_bodies))
        for i, p in enumerate(tree.parent):
            self.carried[i] = self.carried[p]
            self.carried[i, i] = 1.0
        self.a: tuple[Indices, Array] = _sides(
            tree, [(loop.link_a, loop.poses[0]) for loop in loops]
        )
        self.b: tuple[Indices, Array] = _sides(
            tree, [(loop.link_b, loop.poses[1]) for loop in loops]
        )
        self.signs: Array = self.carried[self.b[0]] - self.carried[self.a[0]]
        P = np.concatenate([np.zeros((0, 6)), *(loop.rows for loop in loops)])
        owner = np.repeat(np.arange(len(loops)), [len(loop.rows) for loop in loops])
        rows = np.arange(len(P) + len(couplings)) if kept is None else kept
        of_loops = rows[rows < len(P)]
        self.P = P[of_loops]
        self.owner: Indices = owner[of_loops].astype(np.intp)
        self.couplings: list[Coupling] = [
            couplings[r - len(P)] for r in rows[rows >= len(P)]
        ]
        names = [loops[int(i)].name for i in self.owner]
        self.owners: list[str] = [*names, *(coupling.name for coupling in self.couplings)]
        self.divisor: Array = np.ones(len(rows))
        self.unit: Array = np.ones(tree.n_joints)
        self._measure()

    def _measure(self) -> None:
        """Set the sizes of rows and joints, from lever arms at some positions, nothing slid."""
        tree, owner, count = self.tree, self.owner, len(self.P)
        moving = self.P[:, 3:].any(axis=1)
        turns = tree.X[:, :3].any(axis=1)
        turning = np.isin(np.arange(tree.n_joints), tree.coordinate[turns])
        arms, j = np.zeros(len(self.signs)), np.arange(tree.n_joints)
        for k in (1.0, 2.0, 3.0):
            L = np.abs(self.at(2.0 * np.sin(k * j + k) * turning)[1])
            most = L[:count, turning][moving].max(axis=1, initial=0.0)
            np.maximum.at(arms, owner[moving], most)
        arms[arms == 0.0] = 1.0  # nothing but slides
        length, unit = np.ones(len(self.owners)), np.ones(tree.n_joints)
        length[:count][moving] = arms[owner[moving]]
        for i in np.flatnonzero(~turning[tree.coordinate]):
            unit[tree.coordinate[i]] = arms[self.signs[:, i] != 0.0].max(initial=0.0) or 1.0
        for r, coupling in enumerate(self.couplings, count):
            names = coupling.joint, *coupling.followed
            length[r] = max(unit[tree.joint_names.index(name)] for name in names)
        self.unit = np.exp2(np.round(np.log2(unit)))
        self.divisor[:count] = np.exp2(np.round(np.log2(length[:count])))
        self._exact = (self.divisor / length)[:, None] * (unit / self.unit)
        self.P = self.P / self.divisor[:count, None]

    def at(self, q: Array) -> tuple[Array, Array]:
        """What is left open (rows,) at positions (N,) of all joints, and L (rows, N) there."""
        rows = ConstraintRows(self, q[None])
        return rows.left_open()[0] * self.divisor, rows.L[0][0] * self.divisor[:, None]

    def relative(self, L: Array) -> Array:
        """Entries (..., rows, N) of `ConstraintRows` in units that do not depend on the size."""
        return L * self._exact * self.unit

    def levelled(self, q: Array) -> tuple[Array, Array]:
        """As `at`, in units that do not depend on the size of the mechanism.

        Rows of moving are divided by their sizes, joints counted in their units, and rows of
        couplings have unit length: large ratios hide no other row.
        """
        missing, L = self.at(q)
        L = L * self.unit
        size = self.divisor.copy()
        of_couplings = slice(len(self.P), None)
        size[of_couplings] = np.linalg.norm(L[of_couplings], axis=1)
        return missing / size, L / size[:, None]


def _sides(
    tree: Mechanism, frames: Sequence[tuple[str, Array]]
) -> tuple[NDArray[np.int64], Array]:
    """Bodies of links, the base behind the others, and frames of the links in these bodies."""
    places = [(tree.link(link), pose) for link, pose in frames]
    bodies = np.array([place.body for place, _ in places], dtype=np.int64)
    in_bodies = np.array([place.pose @ pose for place, pose in places]).reshape(-1, 4, 4)
    return bodies % (tree.n_bodies + 1), in_bodies


class ConstraintRows:
    """Rows of constraints along motions of all joints, taken one order after the other.

    Parameters
    ----------
    constraints : Constraints
    q : ndarray, shape (samples, N)
        Positions.

    Attributes
    ----------
    L : list of ndarray, shape (samples, rows, N)
        L, divided by `Constraints.divisor`, and its derivatives as far as the motion is known.
    """

    def __init__(self, constraints: Constraints, q: Array) -> None:
        self._of, tree = constraints, constraints.tree
        self._q, self._select = [q], selection_of(tree)
        base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
        poses = poses_in_base(tree, Jet([body_coordinates(tree, q[:, None])[:, 0]]))
        self._poses = np.concatenate([poses[0], base], axis=1)
        at_a, frames = constraints.a
        self._A = self._poses[:, at_a] @ frames
        screws = se3.Ad(self._poses[:, :-1]) @ tree.X[..., None]
        at_base = se3.Ad(se3.inverse(self._A))[:, constraints.owner]
        self._S, self._V = [screws[..., 0]], list[Array]()
        self._R = [(constraints.P[:, None] @ at_base)[:, :, 0]]
        self.L = [self._order(0)]

    def left_open(self) -> Array:
        """What is left open in each row [rad] or [m], (samples, rows), divided as L."""
        of = self._of
        at_b, frames = of.b
        C = se3.inverse(self._A) @ (self._poses[:, at_b] @ frames)
        errors = np.zeros((*C.shape[:2], 6))
        for i, loop in enumerate(of.loops):
            turn, position = _turn_between(loop, C[:, i, :3, :3]), C[:, i, :3, 3]
            if loop.kind == 'slider':  # L has the velocity at the origin of A
                position = position - cross(turn, position)
            errors[:, i] = np.concatenate([turn, position], axis=1)
        found = np.empty((len(C), len(of.owners)))
        found[:, : len(of.P)] = (of.P * errors[:, of.owner]).sum(axis=-1)
        for r, coupling in enumerate(of.couplings, len(of.P)):
            found[:, r] = derivative(coupling.left_open(self._by_name()), 0)
        return found

    def _by_name(self) -> dict[str, Jet]:
        names = self._of.tree.joint_names
        return {name: Jet(x[:, j] for x in self._q) for j, name in enumerate(names)}

    def follow(self, q: Array) -> None:
        """Take the next derivative (samples, N) of the positions: L has one more, too."""
        of, tree = self._of, self._of.tree
        self._q.append(q)
        k = len(self._q) - 1
        rates = [(x[:, tree.coordinate] * tree.multiplier)[..., None] for x in self._q[1:]]
        V = of.carried @ leibniz(self._S, rates, k - 1)
        self._V.append(V)
        V_A = [V[:, of.a[0][of.owner]] for V in self._V]
        moved = leibniz([V[:, :-1] for V in self._V], self._S, k - 1, se3.bracket)
        self._S.append(moved)
        self._R.append(-leibniz(V_A, self._R, k - 1, se3.coadjoint))
        self.L.append(self._order(k))

    def _order(self, k: int) -> Array:
        of, tree = self._of, self._of.tree
        L = leibniz(self._R, self._S, k, lambda R, S: R @ np.swapaxes(S, -1, -2))
        found = np.zeros((len(L), len(of.owners), tree.n_joints))
        found[:, : len(of.P)] = (L * of.signs[of.owner]) @ self._select
        for r, coupling in enumerate(of.couplings, len(of.P)):
            for name, slope in coupling.slopes(self._by_name()).items():
                found[:, r, tree.joint_names.index(name)] = derivative(slope, k)
        return found


def _turn_between(loop: Loop, R: Array) -> Array:
    """Rotation vectors (samples, 3) of what a loop must not turn, of relative rotations."""
    axis = loop.direction
    turn = 0.5 * (R - np.swapaxes(R, -1, -2))[:, [2, 0, 1], [1, 2, 0]]
    cosine = 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0)
    if loop.kind == 'hinge':  # of the axis alone
        moved = R @ axis
        turn, cosine = cross(np.broadcast_to(axis, moved.shape), moved), moved @ axis
    sine = np.linalg.norm(turn, axis=-1)
    small = sine < 1e-12
    ratio = np.arctan2(sine, cosine) / np.where(small, 1.0, sine)
    turn = turn * np.where(small, 1.0, ratio)[:, None]
    for s in np.flatnonzero(small & (cosine < 0.0)):  # opposite: any axis that leads back
        across = axis**2 if loop.kind == 'hinge' else -np.diagonal(R[s])
        turn[s, across.argmin()] = np.pi
    return turn


def constraints_of(model: Mechanism) -> Constraints:
    """Constraints of the rows of a model with closed loops; to be kept with it."""
    closure = closure_of(model)
    return Constraints(closure.tree, closure.loops, closure.couplings, closure.rows)


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
    constraints = Constraints(tree, joints, couplings)
    owners = constraints.owners
    q = _closed(constraints, _start_of(tree, {} if start is None else start), 200)
    kept = _kept_rows(constraints, q)
    q = _checked_closed(constraints, Constraints(tree, joints, couplings, kept), kept, q)
    dropped = sorted({owners[i] for i in range(len(owners)) if i not in kept})
    more = _changing_rows(constraints, q, kept)
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
    held, on_held = _held(tree, joints, q, constraints.levelled(q)[1][kept], independent)
    couplings += held
    on_held_rows = len(owners) + np.arange(len(held))
    of_kept = Constraints(tree, joints, couplings, np.concatenate([kept, on_held_rows]))
    u = _independent(tree, of_kept.levelled(q)[1], independent)
    d = np.setdiff1d(np.arange(tree.n_joints), u)
    rows = np.concatenate([np.sort(np.concatenate([kept, more])), on_held_rows])
    remark = f'{remark} {on_held}'.strip()
    unit = Constraints(tree, joints, couplings, rows).unit
    parts = frozen(u), frozen(d), frozen(rows), frozen(q), frozen(unit)
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
    for item in given:
        ends: Sequence[str]
        if isinstance(item, Loop):
            ends, known = (item.link_a, item.link_b), tuple(tree.links)
        else:
            ends, known = (item.joint, *item.followed), tree.joint_names
        missing = [name for name in ends if name not in known]
        if missing:
            raise ModelError(
                f'{type(item).__name__} {item.name!r} needs {listed(missing)}, which the model '
                f'from {tree.base_link!r} on does not have; it has {listed(known)}.'
            )
    for loop in loops:
        if tree.link(loop.link_a).body == tree.link(loop.link_b).body:
            raise ModelError(
                f'Loop {loop.name!r}: {loop.link_a!r} and {loop.link_b!r} are one body.'
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
    constraints: Constraints, of_kept: Constraints, kept: NDArray[np.intp], q: Array
) -> Array:
    """Joint positions (N,) at which the kept rows are closed, and the others nearly so."""
    missing = np.abs(constraints.at(q)[0]) / constraints.divisor
    if TOLERANCE < missing.max(initial=0.0) < _IMPRECISE:
        q = _closed(of_kept, q, 20)
        missing = np.abs(constraints.at(q)[0]) / constraints.divisor
    allowed = np.full(len(missing), _IMPRECISE)
    allowed[kept] = TOLERANCE
    if (missing > allowed).any():
        row = int((missing / allowed).argmax())
        raise ModelError(
            f'Loop {constraints.owners[row]!r} cannot be closed: near the start, '
            f'{missing[row] * constraints.divisor[row]:.3g} (m or rad) stay open. Check its links '
            'and poses, or give the start: positions of joints near which it closes.'
        )
    return q


def _closed(constraints: Constraints, q: Array, steps: int) -> Array:
    """Positions (N,) that Gauss's and Newton's method reaches in so many steps."""
    for _ in range(steps):
        missing, L = constraints.levelled(q)
        step = -np.linalg.pinv(L, rcond=_RANK) @ missing
        size = np.abs(step).max(initial=0.0)
        q = q + step * constraints.unit * min(1.0, LARGEST_STEP / max(size, LARGEST_STEP))
        if size < 1e-13:
            break
    return q


def _kept_rows(constraints: Constraints, q: Array) -> NDArray[np.intp]:
    """Rows that the others do not follow from, at and around a closed position."""
    from scipy.linalg import qr

    here = constraints.levelled(q)[1]
    there = constraints.levelled(_nearby(constraints, q, 0.02))[1]
    if _rank(there) > _rank(here):
        raise ModelError(
            f'The loops are singular where they start: {_rank(here)} of their rows are '
            f'independent there, {_rank(there)} nearby, as where links of a loop are in line. '
            'Give joints another start: <joint ... start="0.5"> of a URDF, `start` of '
            'RobotModel.with_loops.'
        )
    _, _, order = qr(there.T, pivoting=True)
    return np.sort(order[: _rank(there)])


def _nearby(constraints: Constraints, q: Array, step: float) -> Array:
    """Positions (N,) a little along the motion that the loops leave, and closed again."""
    L = constraints.levelled(q)[1]
    free = np.linalg.svd(L)[2][_rank(L) :]
    along = step * np.sin(1.0 + np.arange(len(free))) @ free
    return _closed(constraints, q + constraints.unit * along, 20)


def _changing_rows(
    constraints: Constraints, q: Array, kept: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Rows that follow from the kept ones, but not everywhere in the same way.

    Where they do, as in planar loops, the kept rows are good wherever all rows are. Otherwise, as
    in overconstrained ones, they may become singular where the mechanism is regular.
    """
    others = np.setdiff1d(np.arange(len(constraints.owners)), kept)
    if not len(others):
        return others
    at = [
        constraints.levelled(_nearby(constraints, q, step))[1]
        for step in (0.0, 0.02, -0.2, 0.2)
    ]
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

    In units that do not depend on the size, see `Constraints.levelled`. A ball is a loop, or
    joints with massless links between them at its centre.
    """
    bodies = {frame.body: link for link, frame in reversed([*tree.links.items()])}
    frames = [(bodies[i], None) for i in range(tree.n_bodies)]
    balls = [(loop.link_b, loop.pose_b) for loop in loops if loop.kind == 'ball']
    # Of a weld to the base L has the twist of a link, and what is open the place of a point.
    at_base = [
        Loop('', 'weld', tree.base_link, link, None, pose)
        for link, pose in (*frames, *balls)
    ]
    constraints = Constraints(tree, at_base, ())
    places, J = constraints.at(q)
    ends = {tree.link(link).body for loop in loops for link in (loop.link_a, loop.link_b)}
    matter = [i for i, M in enumerate(tree.M_body) if M.any() or i in ends]
    size = np.repeat([1.0, constraints.divisor.max(initial=0.0)], 3)
    of_links = (J * constraints.unit).reshape(-1, 6, tree.n_joints) / size[:, None]
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
    _check_names(tree, L, names)
    u = np.sort([tree.joint_names.index(name) for name in names])
    if _ratio(L[:, np.setdiff1d(np.arange(n), u)]) < SINGULAR:
        raise ModelError(
            f'The independent joints {listed(names)} do not determine the others where the loops '
            'start. Choose others, or give another start.'
        )
    return np.array(u, dtype=np.intp)


def _check_names(tree: Mechanism, L: Array, names: Sequence[str]) -> None:
    """Refusal of names that are not as many joints as are independent; it says what moves."""
    n, freedom = tree.n_joints, tree.n_joints - len(L)
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
