"""Linear algebra and transitions of laws, as loops over numbers and arrays.

`step.machine_code` compiles them, and `hodyn_ros.codegen` translates the same text to C99: they
use numbers, arrays, loops and conditions only. Arrays with two indices have a row a quantity and a
column a joint or a motor.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from numpy import float64
from numpy.typing import NDArray

Vector = NDArray[float64]
Matrix = NDArray[float64]
"""Two indices, the columns one a joint."""
MotorMatrix = NDArray[float64]
"""Two indices, the columns one a motor."""
Index = NDArray[Any]


def limit(n: int, most: Vector, demand: Vector, torque: Vector) -> int:
    """Torques within what motors can give, and how many of those demanded are beyond it.

    Parameters
    ----------
    n : int
    most : ndarray, shape (n,)
        Largest torque in both directions.
    demand : ndarray, shape (n,)
    torque : ndarray, shape (n,)
        Is written.
    """
    count: int = 0
    for i in range(n):
        torque[i] = max(-most[i], min(most[i], demand[i]))
        if torque[i] < demand[i]:
            count += 1
        if torque[i] > demand[i]:
            count += 1
    return count


def factorise(n: int, M: Matrix, L: Matrix) -> int:
    """Lower factor L of M = L L^T; the number of the first column that has none, or zero.

    Parameters
    ----------
    n : int
    M : ndarray, shape (n, n)
        Symmetric, of which the lower triangle is looked at.
    L : ndarray, shape (n, n)
        Its lower triangle is written.
    """
    for i in range(n):
        for j in range(i + 1):
            s = M[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if j < i:
                L[i, j] = s / L[j, j]
            elif s > 0.0:
                L[i, i] = sqrt(s)
            else:
                return i + 1
    return 0


def solve(n: int, L: Matrix, x: Vector) -> None:
    """Replace x by the solution of L L^T y = x.

    Parameters
    ----------
    n : int
    L : ndarray, shape (n, n)
        Of `factorise`.
    x : ndarray, shape (n,)
        Is changed.
    """
    for i in range(n):
        s = x[i]
        for k in range(i):
            s -= L[i, k] * x[k]
        x[i] = s / L[i, i]
    for done in range(n):
        j: int = n - 1 - done
        s = x[j]
        for k in range(j + 1, n):
            s -= L[k, j] * x[k]
        x[j] = s / L[j, j]


def add_product(n: int, A: Matrix, x: Vector, y: Vector) -> None:
    """Add A x to y.

    Parameters
    ----------
    n : int
    A : ndarray, shape (n, n)
    x, y : ndarray, shape (n,)
        y is changed.
    """
    for i in range(n):
        for k in range(n):
            y[i] += A[i, k] * x[k]


def corrected(
    n: int,
    i: int,
    T: float,
    measured: float,
    acceleration: float,
    first: int,
    gains: Matrix,
    state: Matrix,
) -> float:
    """Advance a position and its velocity by a time T, and correct them as an observer does.

    Returned is by how much the measured position is another one.

    Parameters
    ----------
    n, i : int
        Number of columns, and one of them.
    T : float
        [s]
    measured, acceleration : float
    first : int
        Row of the position; the velocity is in the next one.
    gains : ndarray, shape (K, n), K >= 2
        Of position and velocity, in the first rows.
    state : ndarray, shape (K, n)
        Is changed.
    """
    state[first, i] += T * state[first + 1, i] + 0.5 * T * T * acceleration
    state[first + 1, i] += T * acceleration
    e: float = measured - state[first, i]
    state[first, i] += gains[0, i] * e
    state[first + 1, i] += gains[1, i] * e
    return e


def eigenvectors(n: int, A: Matrix, U: Matrix) -> None:
    """Columns U of eigenvectors of a symmetric matrix, whose diagonal becomes the eigenvalues.

    Cyclic Jacobi rotations, Golub and Van Loan, "Matrix Computations", section 8.5.
    """
    for i in range(n):
        for k in range(n):
            U[i, k] = 0.0
        U[i, i] = 1.0
    for _ in range(30):
        size, off = 0.0, 0.0
        for i in range(n):
            size += A[i, i] * A[i, i]
            for k in range(i):
                off += A[i, k] * A[i, k]
        if off <= 1e-31 * size:
            return
        for j in range(1, n):
            for i in range(j):
                if abs(A[i, j]) > 0.0:
                    turn = (A[j, j] - A[i, i]) / (2.0 * A[i, j])
                    t = 1.0 / (abs(turn) + sqrt(1.0 + turn * turn))
                    if turn < 0.0:
                        t = -t
                    c = 1.0 / sqrt(1.0 + t * t)
                    s = t * c
                    for k in range(n):
                        x, y = A[k, i], A[k, j]
                        A[k, i] = c * x - s * y
                        A[k, j] = s * x + c * y
                        u, v = U[k, i], U[k, j]
                        U[k, i] = c * u - s * v
                        U[k, j] = s * u + c * v
                    for k in range(n):
                        x, y = A[i, k], A[j, k]
                        A[i, k] = c * x - s * y
                        A[j, k] = s * x + c * y
                    A[i, j], A[j, i] = 0.0, 0.0


def by_inertia(n: int, L: Matrix, felt: Matrix, A: Matrix) -> None:
    """Stiffness L^-1 K_m L^-T in coordinates in which the inertia L L^T is one."""
    for i in range(n):
        for j in range(n):
            A[i, j] = 0.5 * (felt[i, j] + felt[j, i])
            for k in range(i):
                A[i, j] -= L[i, k] * A[k, j]
            A[i, j] /= L[i, i]
    for j in range(n):
        for i in range(n):
            for k in range(j):
                A[i, j] -= A[i, k] * L[j, k]
            A[i, j] /= L[j, j]
    for i in range(n):
        for j in range(i):
            A[i, j] = 0.5 * (A[i, j] + A[j, i])
            A[j, i] = A[i, j]


def dampers(
    n: int,
    ratio: float,
    is_elastic: Vector,
    inertia: Vector,
    M: Matrix,
    felt: Matrix,
    damping: Matrix,
    velocity: Vector,
    L: Matrix,
    A: Matrix,
    U: Matrix,
    work: Matrix,
    torque: Vector,
) -> None:
    """Take the torques of dampers with some velocities from `torque`.

    Beside those of `damping` they are 2 ratio L (L^-1 K_m L^-T)^(1/2) L^T, with the stiffness K_m
    that motors feel and the factor L L^T of the inertia of motors and links.

    Parameters
    ----------
    n : int
    ratio : float
        Damping ratio.
    is_elastic, inertia : ndarray, shape (n,)
        1 where there is a spring, else 0; inertia of the motors as they feel.
    M, felt, damping : ndarray, shape (n, n)
        Mass matrix, K_m, damping of the motors against the ground.
    velocity : ndarray, shape (n,)
    L, A, U : ndarray, shape (n, n)
        Are overwritten.
    work : ndarray, shape (2, n)
        Is overwritten.
    torque : ndarray, shape (n,)
        Is changed.
    """
    for i in range(n):
        for k in range(n):
            torque[i] -= damping[i, k] * velocity[k]
            A[i, k] = M[i, k]
        A[i, i] += is_elastic[i] * inertia[i]
    if ratio > 0.0:
        factorise(n, A, L)
        by_inertia(n, L, felt, A)
        eigenvectors(n, A, U)
        largest = 0.0
        for i in range(n):
            largest = max(largest, A[i, i])
            work[0, i] = 0.0
            for k in range(i, n):
                work[0, i] += L[k, i] * velocity[k]
        for j in range(n):
            work[1, j] = 0.0
            # Of a stiffness that is zero, rounding leaves something, whose root is no rounding.
            if A[j, j] > 1e-14 * largest:
                for i in range(n):
                    work[1, j] += U[i, j] * work[0, i]
                work[1, j] *= 2.0 * ratio * sqrt(A[j, j])
        for i in range(n):
            work[0, i] = 0.0
            for j in range(n):
                work[0, i] += U[i, j] * work[1, j]
        for i in range(n):
            for k in range(i + 1):
                torque[i] -= L[i, k] * work[0, k]
