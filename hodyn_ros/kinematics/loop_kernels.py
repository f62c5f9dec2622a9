"""Closed loops of one sample, as loops over bodies, rows and orders that Numba compiles.

The rows of all loops and couplings are L(q) qd = 0, so that with q = (u, d)

    L_d d^(k+1) = -L_u u^(k+1) - sum_{j >= 1} binomial(k, j) L^(j) q^(k+1-j)

with one factor of L_d for all orders. The derivatives of L come from those of the joint screws in
the base frame, S' = ad(V) S, see Mueller 2021, "An O(n)-Algorithm for the Higher-Order Kinematics
and Inverse Dynamics of Serial Manipulators using Spatial Representation of Twists", and of the
rows in the base frame, R' = -R ad(V_A). Positions are found by Newton's method along a straight
way of the independent joints from the start, on which det L_d keeps its sign and steps agree with
their tangents, so that the branch of the mechanism stays. Where there are more rows than dependent
joints, as of overconstrained loops, the factors take those with the largest pivots.

A pose is a row of 12 numbers, the rotation row by row and the position. Of arrays with a row for
each body or row of a loop and each order, those of order k stand behind those of order k - 1. The
base is the body behind all others. What the tables hold is said in `closed_loops.Tables`. Steps
and ways [rad, m] are measured in units of the joints: of sliding ones a length of the mechanism.
"""

from __future__ import annotations

from functools import cache
from math import atan2, pi, sin, sqrt
from typing import Any

from numba import types
from numpy import arange, bool_, empty, float64, int64, nan, zeros
from numpy.typing import NDArray

from hodyn_ros.engine.numba_calls import evaluate
from hodyn_ros.model.loops import KINDS, LARGEST_STEP, TOLERANCE
from hodyn_ros.resources import compiled_function

Vector = NDArray[float64]
Matrix = NDArray[float64]
Index = NDArray[Any]
Tables = tuple[Any, ...]

HINGE, SLIDER = KINDS.index('hinge'), KINDS.index('slider')

# Farthest position from the start [rad, m] to which there is a way in a reasonable time.
FARTHEST = 1e4
# How short steps [rad, m] may become, and how often each is corrected, before the way is given up.
SHORT, CORRECTIONS = 1e-6, 12
# How far a step may be off from the mean of the tangents at its ends, as a part of its length: a
# step that leads over a gap or to another branch is further off. Shorter ones than SHORT count as
# that long.
LARGEST_LEAP = 0.1
# Part of the way to where the determinant would vanish, as it changed in the last step, that the
# next step may go: one over the place where branches cross could end on either.
AHEAD = 0.8
# How far samples may be apart for one to start from the other, and how far joints may move from
# the last sample that the loops were followed to from their start, less where the determinant
# gets smaller: the straight way to another one then passes singular positions on the same side.
NEAR, FAMILIAR = 0.1, 0.5
# Determinant beside the largest one on the way there below which digits may be lost, and positions
# are looked at.
SMALL = 0.02
# Numbers of the state of `advance`, and one of `begin`.
STATES = 11


def _compiled(function: Any) -> Any:
    return compiled_function(function, None)


@_compiled
def multiply_poses(a: Vector, b: Vector, c: Vector) -> None:
    """Pose c = a b."""
    for i in range(3):
        for j in range(3):
            s = 0.0
            for k in range(3):
                s += a[3 * i + k] * b[3 * k + j]
            c[3 * i + j] = s
        c[9 + i] = a[9 + i]
        for k in range(3):
            c[9 + i] += a[3 * i + k] * b[9 + k]


@_compiled
def joint_pose(X: Vector, q: float, C: Vector) -> None:
    """Motion C along a screw X with an axis of unit or zero length; Rodrigues' formula."""
    w0, w1, w2 = X[0], X[1], X[2]
    turns = w0 * w0 + w1 * w1 + w2 * w2 > 0.25
    s = sin(q) if turns else q
    half = sin(0.5 * q)
    c = 2.0 * half * half if turns else 0.0  # 1 - cos(q)
    rest = q - s  # along the axis
    C[0] = 1.0 - c * (w1 * w1 + w2 * w2)
    C[4] = 1.0 - c * (w0 * w0 + w2 * w2)
    C[8] = 1.0 - c * (w0 * w0 + w1 * w1)
    C[1], C[3] = c * w0 * w1 - s * w2, c * w0 * w1 + s * w2
    C[2], C[6] = c * w0 * w2 + s * w1, c * w0 * w2 - s * w1
    C[5], C[7] = c * w1 * w2 - s * w0, c * w1 * w2 + s * w0
    x, y, z = X[3], X[4], X[5]
    along = w0 * x + w1 * y + w2 * z
    C[9] = s * x + c * (w1 * z - w2 * y) + rest * along * w0
    C[10] = s * y + c * (w2 * x - w0 * z) + rest * along * w1
    C[11] = s * z + c * (w0 * y - w1 * x) + rest * along * w2


@_compiled
def add_bracket(weight: float, V: Vector, S: Vector, result: Vector) -> None:
    """Add weight * ad(V) S, the Lie bracket of two twists."""
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        result[i] += weight * (V[j] * S[k] - V[k] * S[j])
        result[3 + i] += weight * (
            V[3 + j] * S[k] - V[3 + k] * S[j] + V[j] * S[3 + k] - V[k] * S[3 + j]
        )


@_compiled
def subtract_row(weight: float, V: Vector, R: Vector, result: Vector) -> None:
    """Subtract weight * R ad(V), of a row R that is multiplied with twists."""
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        result[i] -= weight * (
            R[j] * V[k] - R[k] * V[j] + R[3 + j] * V[3 + k] - R[3 + k] * V[3 + j]
        )
        result[3 + i] -= weight * (R[3 + j] * V[k] - R[3 + k] * V[j])


@_compiled
def place(tree: Tables, q: Vector, poses: Matrix) -> None:
    """Poses of all bodies at positions q of the joints; the last is the base."""
    parent, coordinate, multiplier, offset, X, B = tree
    nb = len(parent)
    moved, placed = empty(12), empty(12)
    poses[nb, :] = 0.0
    poses[nb, 0] = poses[nb, 4] = poses[nb, 8] = 1.0
    for i in range(nb):
        joint_pose(X[i], multiplier[i] * q[coordinate[i]] + offset[i], moved)
        multiply_poses(B[i], moved, placed)
        carrier = parent[i] if parent[i] >= 0 else nb
        multiply_poses(poses[carrier], placed, poses[i])


@_compiled
def turn_between(kind: int, axis: Vector, C: Vector, turn: Vector) -> None:
    """Rotation vector of what a loop must not turn, of the rotation of a relative pose C."""
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        turn[i] = 0.5 * (C[3 * k + j] - C[3 * j + k])
    cosine = 0.5 * (C[0] + C[4] + C[8] - 1.0)
    if kind == HINGE:  # of the axis alone
        moved = zeros(3)
        for i in range(3):
            for j in range(3):
                moved[i] += C[3 * i + j] * axis[j]
        cosine = 0.0
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            turn[i] = axis[j] * moved[k] - axis[k] * moved[j]
            cosine += axis[i] * moved[i]
    sine = sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
    if sine > 1e-12:
        ratio = atan2(sine, cosine) / sine
        for i in range(3):
            turn[i] *= ratio
    elif cosine < 0.0:  # opposite: about any axis that leads back
        best = 0
        for i in range(3):
            if axis[i] * axis[i] < axis[best] * axis[best]:
                best = i
        if kind != HINGE:
            for i in range(3):
                if C[4 * i] > C[4 * best]:
                    best = i
        turn[best] = pi


@_compiled
def left_open(loops: Tables, poses: Matrix, q: Vector, missing: Vector) -> None:
    """What is left open in each row [rad] or [m]: zero where the loops are closed."""
    body_a, body_b, kind, axis, frame_a, frame_b, P, owner, factors, follows, c, _ = loops
    errors = zeros((len(kind), 6))
    A, B = empty(12), empty(12)
    relative = empty(12)
    for loop in range(len(kind)):
        multiply_poses(poses[body_a[loop]], frame_a[loop], A)
        multiply_poses(poses[body_b[loop]], frame_b[loop], B)
        for i in range(3):
            for j in range(3):
                s = 0.0
                for k in range(3):
                    s += A[3 * k + i] * B[3 * k + j]
                relative[3 * i + j] = s
            s = 0.0
            for k in range(3):
                s += A[3 * k + i] * (B[9 + k] - A[9 + k])
            relative[9 + i] = s
            errors[loop, 3 + i] = s
        turn_between(kind[loop], axis[loop], relative, errors[loop])
        if kind[loop] == SLIDER:  # L has the velocity at the origin of A
            for i in range(3):
                j, k = (i + 1) % 3, (i + 2) % 3
                turned = (
                    errors[loop, j] * relative[9 + k] - errors[loop, k] * relative[9 + j]
                )
                errors[loop, 3 + i] -= turned
    rows = len(owner)
    for r in range(rows):
        s = 0.0
        for i in range(6):
            s += P[r, i] * errors[owner[r], i]
        missing[r] = s
    for r in range(len(c)):
        s = 0.0
        for i in range(c.shape[1]):
            s = s * q[follows[r]] + c[r, c.shape[1] - 1 - i]
        missing[rows + r] = -s
        for j in range(len(q)):
            missing[rows + r] += factors[r, j] * q[j]


@_compiled
def first_order(
    tree: Tables, loops: Tables, poses: Matrix, q: Matrix, S: Matrix, R: Matrix, L: Matrix
) -> None:
    """Screws, rows in the base frame, and L itself, at positions q[0]."""
    X, nb = tree[4], len(tree[0])
    body_a, frame_a, P, owner = loops[0], loops[4], loops[6], loops[7]
    for i in range(nb):
        C = poses[i]
        for a in range(3):
            S[i, a] = S[i, 3 + a] = 0.0
            for b in range(3):
                S[i, a] += C[3 * a + b] * X[i, b]
                S[i, 3 + a] += C[3 * a + b] * X[i, 3 + b]
        for a in range(3):
            b, d = (a + 1) % 3, (a + 2) % 3
            S[i, 3 + a] += C[9 + b] * S[i, d] - C[9 + d] * S[i, b]
    A = empty(12)
    for r in range(len(owner)):
        multiply_poses(poses[body_a[owner[r]]], frame_a[owner[r]], A)
        # P Ad(A)^-1 = (moment + (force about the base origin), force), in base axes.
        for a in range(3):
            R[r, a] = R[r, 3 + a] = 0.0
            for b in range(3):
                R[r, a] += A[3 * a + b] * P[r, b]
                R[r, 3 + a] += A[3 * a + b] * P[r, 3 + b]
        for a in range(3):
            b, d = (a + 1) % 3, (a + 2) % 3
            R[r, a] += A[9 + b] * R[r, 3 + d] - A[9 + d] * R[r, 3 + b]
    close_order(tree, loops, 0, q, S, R, L)


@_compiled
def close_order(
    tree: Tables, loops: Tables, k: int, q: Matrix, S: Matrix, R: Matrix, L: Matrix
) -> None:
    """Derivative k of L from those of screws and rows."""
    coordinate, multiplier, signs = tree[1], tree[2], loops[11]
    owner, factors, follows, c = loops[7], loops[8], loops[9], loops[10]
    nb, rows, n = len(coordinate), len(owner), L.shape[1]
    m = rows + len(c)
    for r in range(rows):
        for j in range(n):
            L[k * m + r, j] = 0.0
        for i in range(nb):
            sign = signs[owner[r], i] * multiplier[i]
            if sign != 0.0:
                s, weight = 0.0, 1.0
                for j in range(k + 1):
                    part = 0.0
                    for a in range(6):
                        part += R[j * rows + r, a] * S[(k - j) * nb + i, a]
                    s += weight * part
                    weight = weight * (k - j) / (j + 1)
                L[k * m + r, coordinate[i]] += sign * s
    for r in range(len(c)):
        for j in range(n):
            L[k * m + rows + r, j] = factors[r, j] if k == 0 else 0.0
        # The slope, a polynomial of the position: Horner's rule on series, times factorials.
        value = zeros(k + 1)
        for i in range(c.shape[1] - 1):
            power = c.shape[1] - 1 - i
            for e in range(k + 1):
                o, s, weight = k - e, 0.0, 1.0
                for a in range(o + 1):
                    s += weight * value[a] * q[o - a, follows[r]]
                    weight = weight * (o - a) / (a + 1)
                value[o] = s
            value[0] += power * c[r, power]
        L[k * m + rows + r, follows[r]] -= value[k]


@_compiled
def next_order(
    tree: Tables,
    loops: Tables,
    k: int,
    q: Matrix,
    V: Matrix,
    S: Matrix,
    R: Matrix,
    L: Matrix,
) -> None:
    """Twists of order k - 1, then screws, rows and L of order k, from q[:k + 1]."""
    parent, coordinate, multiplier = tree[0], tree[1], tree[2]
    body_a, owner = loops[0], loops[7]
    nb, rows = len(parent), len(owner)
    first = (k - 1) * (nb + 1)
    for a in range(6):
        V[first + nb, a] = 0.0
    for i in range(nb):
        carrier = parent[i] if parent[i] >= 0 else nb
        for a in range(6):
            V[first + i, a] = V[first + carrier, a]
        weight = 1.0
        for j in range(k):
            rate = weight * multiplier[i] * q[k - j, coordinate[i]]
            for a in range(6):
                V[first + i, a] += rate * S[j * nb + i, a]
            weight = weight * (k - 1 - j) / (j + 1)
    for i in range(nb):
        for a in range(6):
            S[k * nb + i, a] = 0.0
        weight = 1.0
        for j in range(k):
            add_bracket(weight, V[j * (nb + 1) + i], S[(k - 1 - j) * nb + i], S[k * nb + i])
            weight = weight * (k - 1 - j) / (j + 1)
    for r in range(rows):
        for a in range(6):
            R[k * rows + r, a] = 0.0
        weight = 1.0
        for j in range(k):
            twist = V[j * (nb + 1) + body_a[owner[r]]]
            subtract_row(weight, twist, R[(k - 1 - j) * rows + r], R[k * rows + r])
            weight = weight * (k - 1 - j) / (j + 1)
    close_order(tree, loops, k, q, S, R, L)


@_compiled
def factorise(L: Matrix, columns: Index, A: Matrix, pivot: Index) -> float:
    """Factors A of the columns of L, of as many rows, those with the largest pivots.

    Returns the ratio of the smallest to the largest pivot, negative where the determinant is.
    """
    m = len(columns)
    rows = len(A)
    for i in range(rows):
        for j in range(m):
            A[i, j] = L[i, columns[j]]
    smallest: float = 1e300
    largest = 1e-300
    sign = 1.0
    for k in range(m):
        best = k
        for i in range(k + 1, rows):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        pivot[k] = best
        if best != k:
            sign = -sign
            for j in range(m):
                A[k, j], A[best, j] = A[best, j], A[k, j]
        size = abs(A[k, k])
        smallest, largest = min(smallest, size), max(largest, size)
        if A[k, k] < 0.0:
            sign = -sign
        if size > 0.0:
            for i in range(k + 1, rows):
                A[i, k] /= A[k, k]
                for j in range(k + 1, m):
                    A[i, j] -= A[i, k] * A[k, j]
    return sign * smallest / largest if m > 0 else 1.0


@_compiled
def determinant(A: Matrix, ratio: float) -> float:
    """Determinant of the rows that `factorise` chose, which returned the ratio."""
    product = 1.0 if ratio > 0.0 else -1.0
    for k in range(A.shape[1]):
        product *= abs(A[k, k])
    return product


@_compiled
def solve(A: Matrix, pivot: Index, b: Vector) -> None:
    """Solution of the factorised equations, in place of the right side."""
    m = len(pivot)
    for k in range(m):
        b[k], b[pivot[k]] = b[pivot[k]], b[k]
    for k in range(m):
        for i in range(k + 1, m):
            b[i] -= A[i, k] * b[k]
    for e in range(m):
        k = m - 1 - e
        for j in range(k + 1, m):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]


@_compiled
def solve_transposed(A: Matrix, pivot: Index, b: Vector) -> None:
    """Solution of the equations with the transposed matrix, in place of the right side."""
    m = len(pivot)
    for k in range(m):
        for j in range(k):
            b[k] -= A[j, k] * b[j]
        b[k] /= A[k, k]
    for e in range(m):
        k = m - 1 - e
        for i in range(k + 1, m):
            b[k] -= A[i, k] * b[i]
    for e in range(m):
        k = m - 1 - e
        b[k], b[pivot[k]] = b[pivot[k]], b[k]


@_compiled
def singular_ratio(L: Matrix, columns: Index, A: Matrix, pivot: Index, b: Vector) -> float:
    """Estimate of the smallest singular value of the factorised columns over all of them.

    By a step of inverse iteration; pivots alone may all be large. In b of as many rows it works.
    """
    size = 0.0
    for r in range(len(b)):
        b[r] = sin(1.0 + r)
        for j in columns:
            size += L[r, j] * L[r, j]
    solve(A, pivot, b)
    before, after = 0.0, 0.0
    for r in range(len(b)):
        if r >= len(pivot):
            b[r] = 0.0
        before += b[r] * b[r]
    solve_transposed(A, pivot, b)
    for r in range(len(b)):
        after += b[r] * b[r]
    return sqrt(before / after / size)


@_compiled
def closing_step(
    tree: Tables,
    loops: Tables,
    branch: Tables,
    motion: Matrix,
    change: Vector,
    work: Tables,
) -> None:
    """What a closing program computes, see `loop_program.closing_program`, for any robot."""
    u, d = branch[0], branch[1]
    poses, S, R, L, A, pivot, b = work
    m = len(d)
    place(tree, motion[0], poses)
    left_open(loops, poses, motion[0], b)
    first_order(tree, loops, poses, motion, S, R, L)
    ratio: float = factorise(L, d, A, pivot)
    change[2 * m] = determinant(A, ratio)
    if abs(ratio) < 1e-14:
        change[0] = nan
        return
    solve(A, pivot, b)
    for i in range(m):
        change[i] = b[i]
    for r in range(len(b)):
        b[r] = 0.0
        for i in range(len(u)):
            b[r] -= L[r, u[i]] * motion[1, u[i]]
    solve(A, pivot, b)
    for i in range(m):
        change[m + i] = b[i]


@_compiled
def common_determinant(L: Matrix, d: Index, last: Matrix) -> float:
    """Determinant of last^T L_d: positive if no singular position lies between the two."""
    m = len(d)
    both, A, pivot, columns = empty((m, m)), empty((m, m)), empty(m, int64), arange(m)
    for i in range(m):
        for j in range(m):
            both[i, j] = 0.0
            for r in range(len(last)):
                both[i, j] += last[r, i] * L[r, d[j]]
    ratio: float = factorise(both, columns, A, pivot)
    found: float = determinant(A, ratio)
    return found


@_compiled
def remember(L: Matrix, d: Index, last: Matrix) -> float:
    """Keep L_d; returns `common_determinant` of it."""
    for r in range(len(last)):
        for i in range(len(d)):
            last[r, i] = L[r, d[i]]
    found: float = common_determinant(L, d, last)
    return found


@_compiled
def close_position(
    tree: Tables, loops: Tables, branch: Tables, wanted: Vector, q: Vector, work: Tables
) -> float:
    """Positions q at which loops are closed; how far the way there was gone, 1 if all of it.

    Rows that are chosen anew everywhere have no common determinant; what counts is then that with
    the rows at the last step.
    """
    u, d, start, per_unit = branch
    L, n, m, rows = work[3], len(u), len(d), len(work[6])
    motion, change, last = zeros((2, len(start))), empty(2 * m + 1), zeros((rows, m))
    good, tangent, state = zeros(len(start)), zeros(m), zeros(STATES)
    state[2], state[4] = LARGEST_STEP, 1.0
    for j in range(len(start)):
        good[j] = motion[0, j] = start[j]
    for i in range(n):
        motion[1, u[i]] = wanted[i] - start[u[i]]
    outcome, reached = 0.0, -1.0
    while outcome == 0.0:
        closing_step(tree, loops, branch, motion, change, work)
        if state[5] == 0.0:  # the loops are closed at their start
            for i in range(m):
                change[i] *= 0.0
        if rows > m:
            if reached < 0.0:
                remember(L, d, last)
            change[2 * m] = common_determinant(L, d, last)
        outcome = advance(
            n, m, u, d, per_unit, start, wanted, change, good, tangent, state, motion[0]
        )
        if rows > m and state[0] > reached and state[5] != 0.0:
            state[5] = remember(L, d, last)
            reached = state[0]
    for j in range(len(start)):
        q[j] = motion[0, j]
    return 1.0 if outcome > 0.0 else state[0]


@_compiled
def predict(
    n: int,
    m: int,
    u: Index,
    d: Index,
    origin: Vector,
    wanted: Vector,
    good: Vector,
    tangent: Vector,
    state: Vector,
    q: Vector,
) -> None:
    """Positions q a step ahead of the good ones, see `advance`."""
    rest = 1.0 - state[0] - state[1]
    if rest < 1e-12:
        rest = 0.0
    for i in range(n):
        q[u[i]] = wanted[i] - rest * (wanted[i] - origin[u[i]])
    for i in range(m):
        q[d[i]] = good[d[i]] + state[1] * tangent[i]


@_compiled
def advance(
    n: int,
    m: int,
    u: Index,
    d: Index,
    per_unit: Vector,
    origin: Vector,
    wanted: Vector,
    change: Vector,
    good: Vector,
    tangent: Vector,
    state: Vector,
    q: Vector,
) -> float:
    """A step on the way from closed positions to wanted ones of the n independent joints.

    In q are those of all joints, in `change` what `loop_program.closing_program` says of them. The
    state is how far the way was gone, the step ahead, the last correction, their number, the
    largest step, the determinant, the largest change of a joint along the whole way at the speed
    of any step, the smallest and largest determinant, and that change of a dependent joint at the
    last speed. Returns 1 where the way ends, -1 where there is none, otherwise 0.
    """
    size = 0.0
    unknown = 0.0
    for i in range(m):
        size = max(size, abs(change[i]) * per_unit[d[i]])
        unknown += 0.0 * change[i] + 0.0 * change[m + i]
    if size + unknown <= state[2]:  # not if one of them is not finite
        state[2] = size
        state[3] += 1.0
        steepest = 0.0
        for i in range(n):
            steepest = max(steepest, abs(wanted[i] - origin[u[i]]) * per_unit[u[i]])
        if steepest >= FARTHEST:
            return -1.0
        off = 0.0
        fastest = 0.0
        for i in range(m):
            q[d[i]] -= change[i]
            mean = 0.5 * (tangent[i] + change[m + i])
            if state[4] > 1.0:  # from a sample nearby, whose tangent is not known
                mean = change[m + i]
            off = max(off, abs(q[d[i]] - good[d[i]] - state[1] * mean) * per_unit[d[i]])
            fastest = max(fastest, abs(change[m + i]) * per_unit[d[i]])
        steepest = max(steepest, fastest)
        off -= LARGEST_LEAP * max(state[1] * max(fastest, state[10]), SHORT)
        if state[5] * change[2 * m] < 0.0:  # there is a singular position between
            off = 1.0
        if max(size / TOLERANCE, 1.0 + off) < 1.0:
            state[0] += state[1]
            before = state[5]
            state[5] = change[2 * m]
            state[6] = max(state[6], steepest)
            state[7] = min(state[7], abs(change[2 * m]))
            state[8] = max(state[8], abs(change[2 * m]))
            if state[0] > 1.0 - 1e-12:
                return 1.0
            for i in range(n):
                good[u[i]] = q[u[i]]
            for i in range(m):
                good[d[i]] = q[d[i]]
                tangent[i] = change[m + i]
            state[4] = LARGEST_STEP / max(steepest, LARGEST_STEP)
            state[10] = fastest
            longest = state[4]
            if state[1] > 0.0:
                longest = min(longest, 2.0 * state[1])
                if abs(change[2 * m]) < abs(before):
                    left = abs(change[2 * m]) / (abs(before) - abs(change[2 * m]))
                    ahead = AHEAD * left * state[1]
                    longest = min(longest, ahead)
                    if max(ahead * fastest / SHORT, ahead / (1.0 - state[0])) < 1.0:
                        return -1.0
            state[1] = min(longest, 1.0 - state[0])
            state[2] = LARGEST_STEP
            state[3] = 0.0
            predict(n, m, u, d, origin, wanted, good, tangent, state, q)
            return 0.0
        if size >= TOLERANCE:
            if state[3] < CORRECTIONS:
                return 0.0
    state[1] *= 0.5
    if state[1] * state[10] <= SHORT:
        return -1.0
    state[2] = LARGEST_STEP
    state[3] = 0.0
    predict(n, m, u, d, origin, wanted, good, tangent, state, q)
    return 0.0


@_compiled
def begin(
    s: int,
    first: int,
    branch: Tables,
    wanted: Matrix,
    closed: Matrix,
    reached: Vector,
    own: Tables,
) -> bool:
    """Whether sample s starts from the one before, which is near, or where the loops start.

    What its lane has of its own is set: where its way begins, good positions, tangent and state of
    `advance`, and the motion that is read next. Behind the state of `advance` is how much faster
    than the independent joints others were since the last sample that came from the start, and
    where that was.
    """
    u, d, start, per_unit = branch
    origin, good, tangent, state, motion = own
    warm = s > first and reached[s - 1] >= 1.0
    if warm:
        way = 0.0
        for i in range(len(u)):
            way = max(way, abs(wanted[s - 1, i] - origin[u[i]]) * per_unit[u[i]])
        if state[4] <= 1.0:  # that one came from the start
            state[9] = 1.0
            for i in range(len(u)):
                state[STATES + i] = wanted[s - 1, i]
        if way > 0.0:
            state[9] = max(state[9], state[6] / way)
        near, moved = 0.0, 0.0
        for i in range(len(u)):
            near = max(near, abs(wanted[s, i] - wanted[s - 1, i]) * per_unit[u[i]])
            moved = max(moved, abs(wanted[s, i] - state[STATES + i]) * per_unit[u[i]])
        warm = near <= NEAR and moved * state[9] * state[8] <= FAMILIAR * state[7]
    if not warm:
        state[7], state[8] = 1e300, 0.0
    state[0] = state[1] = state[3] = state[6] = state[10] = 0.0
    state[2], state[4] = LARGEST_STEP, 1.0
    if warm:
        state[1], state[2], state[4] = 1.0, NEAR, 2.0
    for j in range(len(start)):
        origin[j] = good[j] = motion[0, j] = closed[s - 1, j] if warm else start[j]
        motion[1, j] = 0.0
    for i in range(len(d)):
        tangent[i] = 0.0
    for i in range(len(u)):
        motion[1, u[i]] = wanted[s, i] - origin[u[i]]
    if not warm:
        return False
    if s > first + 1 and reached[s - 2] >= 1.0:
        for i in range(len(d)):
            step = closed[s - 1, d[i]] - closed[s - 2, d[i]]
            most = NEAR / per_unit[d[i]]
            motion[0, d[i]] += max(-most, min(most, step))
    for i in range(len(u)):
        motion[0, u[i]] = wanted[s, i]
    return True


@_compiled
def close_all(
    table: int, lanes: int, branch: Tables, wanted: Matrix, closed: Matrix, reached: Vector
) -> None:
    """Positions of all joints of many samples, side by side, by a compiled closing program.

    Each lane goes through a part of the samples in their order. Samples near the one before start
    from there, otherwise, and where that fails, from where the loops start. Reached is 1, or 2
    where the determinant is small, otherwise 0.
    """
    u, d, start, per_unit = branch
    n, m, samples, joints = len(u), len(d), len(wanted), len(start)
    motion, change = zeros((lanes, 2, joints)), empty((lanes, 2 * m + 1))
    way, tangent = empty((lanes, 2, joints)), empty((lanes, m))
    state = zeros((lanes, STATES + n))
    sample, end, warm = empty(lanes, int64), empty(lanes, int64), zeros(lanes, bool_)
    left = 0
    for lane in range(lanes):
        sample[lane] = lane * samples // lanes
        end[lane] = (lane + 1) * samples // lanes
        motion[lane, 0] = start
        if sample[lane] < end[lane]:
            left += 1
            s = sample[lane]
            own = (way[lane, 0], way[lane, 1], tangent[lane], state[lane], motion[lane])
            begin(s, s, branch, wanted, closed, reached, own)
    read, written = int64(motion.ctypes.data), int64(change.ctypes.data)
    while left > 0:
        evaluate(table, read, int64(0), written)  # type: ignore[call-arg]
        for lane in range(lanes):
            s = sample[lane]
            if s >= end[lane]:
                continue
            q, found = motion[lane, 0], change[lane]
            own = (way[lane, 0], way[lane, 1], tangent[lane], state[lane], motion[lane])
            outcome = advance(
                n, m, u, d, per_unit, own[0], wanted[s], found, own[1], own[2], own[3], q
            )
            if outcome == 0.0:
                continue
            first = lane * samples // lanes
            if outcome < 0.0 and warm[lane]:
                first = s
            else:
                reached[s] = 0.0
                if outcome > 0.0:
                    near = abs(own[3][5]) < SMALL * own[3][8]
                    reached[s] = 2.0 if near else 1.0
                closed[s] = q
                s += 1
                sample[lane] = s
                if s == end[lane]:
                    left -= 1
                    continue
            warm[lane] = begin(s, first, branch, wanted, closed, reached, own)


def _closed_efforts(tables: Tables, motion: Matrix, effort: Matrix) -> int:
    """Efforts of one sample by compiled programs; 0 if they are there, otherwise 1.

    The tables are the addresses of those for closing and for efforts, and the branch.
    """
    closing, dynamics, branch = tables
    K, n = motion.shape
    u, start = branch[0], branch[2]
    if effort.shape[0] != K - 2 or effort.shape[1] != n or n != len(u):
        return 1
    whole, reached = zeros((K, len(start))), zeros(1)
    close_all(closing, 1, branch, motion[:1], whole[:1], reached)
    for k in range(1, K):
        for i in range(n):
            whole[k, u[i]] = motion[k, i]
    if reached[0] != 1.0:
        return 1
    read, written = int64(whole.ctypes.data), int64(effort.ctypes.data)
    status: int = evaluate(dynamics, read, int64(0), written)  # type: ignore[call-arg]
    return status


@cache
def closed_efforts() -> Any:
    """`_closed_efforts`, which raises an error for arrays of another type or layout."""
    indices, numbers = (types.Array(kind, 1, 'C') for kind in (types.int64, types.float64))
    parts = [indices, indices, numbers, numbers]
    branch = types.Tuple(parts)  # type: ignore[no-untyped-call]
    tables = types.Tuple([types.int64, types.int64, branch])  # type: ignore[no-untyped-call]
    motion = types.Array(types.float64, 2, 'C', readonly=True)
    return compiled_function(
        _closed_efforts, types.int64(tables, motion, types.float64[:, ::1])
    )


@_compiled
def follow(
    tree: Tables,
    loops: Tables,
    branch: Tables,
    K: int,
    q: Matrix,
    V: Matrix,
    work: Tables,
) -> float:
    """Derivatives q[1:K] of the dependent joints, q[:, u] given and q[0] closed; L to order K - 1.

    Returns `singular_ratio` of L_d.
    """
    u, d = branch[0], branch[1]
    poses, S, R, L, A, pivot, b = work
    m, rows = len(d), len(b)
    place(tree, q[0], poses)
    first_order(tree, loops, poses, q, S, R, L)
    ratio: float = abs(factorise(L, d, A, pivot))
    if ratio < 1e-14:
        return ratio
    ratio = singular_ratio(L, d, A, pivot, b)
    for k in range(K - 1):
        for r in range(rows):
            s = 0.0
            for i in range(len(u)):
                s += L[r, u[i]] * q[k + 1, u[i]]
            weight = 1.0
            for j in range(1, k + 1):
                weight = weight * (k + 1 - j) / j
                part = 0.0
                for i in range(q.shape[1]):
                    part += L[j * rows + r, i] * q[k + 1 - j, i]
                s += weight * part
            b[r] = -s
        solve(A, pivot, b)
        for r in range(m):
            q[k + 1, d[r]] = b[r]
        next_order(tree, loops, k + 1, q, V, S, R, L)
    return ratio


@_compiled
def open_efforts(
    u: Index,
    d: Index,
    L: Matrix,
    A: Matrix,
    pivot: Index,
    of_tree: Matrix,
    efforts: Matrix,
    carried: Matrix,
) -> None:
    """Efforts of the independent joints and multipliers of the rows, with derivatives.

    Q_tree = E Q + L^T carried, differentiated: the rows of the dependent joints give what the
    loops carry, those of the independent ones the efforts.
    """
    m, n, rows = len(d), of_tree.shape[1], carried.shape[1]
    rest = empty(n)
    for k in range(of_tree.shape[0]):
        for i in range(n):
            rest[i] = of_tree[k, i]
        weight = 1.0
        for j in range(1, k + 1):
            weight = weight * (k + 1 - j) / j
            for r in range(rows):
                value = weight * carried[k - j, r]
                for i in range(n):
                    rest[i] -= value * L[j * rows + r, i]
        for r in range(rows):
            carried[k, r] = rest[d[r]] if r < m else 0.0
        solve_transposed(A, pivot, carried[k])
        for i in range(len(u)):
            s = rest[u[i]]
            for r in range(rows):
                s -= L[r, u[i]] * carried[k, r]
            efforts[k, i] = s


@_compiled
def workspace(tree: Tables, loops: Tables, branch: Tables, K: int) -> Tables:
    """Arrays that the kernels work in, for K orders."""
    nb, of_loops, m, n = len(tree[0]), len(loops[7]), len(branch[1]), len(branch[2])
    rows = of_loops + len(loops[9])
    return (
        empty((nb + 1, 12)),
        empty((K * nb, 6)),
        empty((K * of_loops, 6)),
        empty((K * rows, n)),
        empty((rows, m)),
        empty(m, int64),
        empty(rows),
    )


@_compiled
def follow_all(
    tree: Tables,
    loops: Tables,
    branch: Tables,
    motion: Any,
    whole: Any,
    L: Any,
    A: Any,
    pivot: Any,
    reached: Vector,
    ratio: Vector,
) -> int:
    """Motion of all joints of every sample; the number of the first that is not closed, or -1.

    Of motions (N, K, n) of the independent joints: `whole` (N, K, joints), L (N, K * rows, joints)
    with its factors A (N, rows, m) and `pivot` (N, m), how far the way was gone, and
    `singular_ratio`. Where the way has been gone, the positions in `whole` are closed ones.
    """
    N, K = motion.shape[0], motion.shape[1]
    u = branch[0]
    work = workspace(tree, loops, branch, K)
    V = empty((K * (len(tree[0]) + 1), 6))
    for s in range(N):
        q = whole[s]
        if reached[s] < 1.0:
            reached[s] = close_position(tree, loops, branch, motion[s, 0], q[0], work)
        if reached[s] < 1.0:
            return s
        for k in range(K):
            for i in range(len(u)):
                q[k, u[i]] = motion[s, k, i]
        own = (work[0], work[1], work[2], L[s], A[s], pivot[s], work[6])
        ratio[s] = follow(tree, loops, branch, K, q, V, own)
    return -1


@_compiled
def efforts_all(
    u: Index, d: Index, L: Any, A: Any, pivot: Any, of_tree: Any, efforts: Any, carried: Any
) -> None:
    """Efforts and multipliers of every sample, see `open_efforts`."""
    for s in range(of_tree.shape[0]):
        open_efforts(u, d, L[s], A[s], pivot[s], of_tree[s], efforts[s], carried[s])
