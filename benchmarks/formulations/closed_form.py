"""Closed form Q = J^T (M dV/dt - b^T M V), its matrix A multiplied with vectors from the right.

Source: Mueller and Kumar 2021, eqs. (8) to (27), as in `hodyn_ros.dynamics.closed_form`. The
matrix A of all bodies holds a transform for each body and each body before it, so the cost grows
with the square of the number of bodies. No product of two matrices of all bodies is formed, nor
the mass and Coriolis matrices: with d(A x)/dt = A (dx/dt + a x - a A x), eq. (19), each derivative
takes one more product of A and a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import comb
from typing import NamedTuple

from benchmarks.formulations.body_fixed import transformed
from benchmarks.formulations.robots import BASE, Robot, Rows
from benchmarks.formulations.screws import (
    NOTHING,
    Inertia,
    Passage,
    Screw,
    add,
    add_scaled,
    binomial_sum,
    bracket,
    coadjoint,
    matrix_product,
    momentum,
    multiple,
    pairing,
    screw_of,
    times,
    times_transposed,
)
from hodyn_ros.engine.vectors import ZERO, Number, Vector, plus, plus_cross, scaled

Screws = list[Screw]
"""A screw for each body."""


def efforts(
    robot: Robot,
    sine: Sequence[Number],
    cosine: Sequence[Number],
    q: Sequence[Sequence[Number]],
    order: int,
) -> list[list[Number]]:
    """Efforts of all joints and their derivatives; see `body_fixed.efforts`."""
    bodies, indices = robot.bodies, range(len(robot.bodies))
    passages = [Passage(bodies[i], sine[i], cosine[i], q[i][0]) for i in indices]
    X = [screw_of(body) for body in bodies]
    M = [Inertia(body.mass, body.h, body.inertia) for body in bodies]
    A = SystemMatrix(robot, passages)

    def rotated(product: Callable[[Screw, Screw], Screw], k: int, y: Screws) -> Screws:
        """Product with the k-th derivative of a = diag(qd ad_X), or of its transpose."""
        return [multiple(q[i][k + 1], product(X[i], y[i])) for i in indices]

    # V = A x with x = X qd, and on the base the transform of its velocity: zero, with the
    # derivative -g.
    x = [[multiple(q[i][k + 1], X[i]) for i in indices] for k in range(order + 2)]
    for i in indices:
        if bodies[i].parent == BASE:
            G = passages[i].twist_into_body((ZERO, scaled(-1.0, robot.gravity)))
            change = transformed([G, *[NOTHING] * order], X[i], q[i], bracket)
            for k in range(order + 1):
                x[k + 1][i] = add_scaled(x[k + 1][i], float(k + 1), change[k])
    V = _derivatives(A.times, x, lambda k, y: rotated(bracket, k, y))
    N = []
    Pi = [[momentum(M[i], Vk[i]) for i in indices] for Vk in V]
    for k in range(order + 1):
        turning = [
            binomial_sum(coadjoint, [Vk[i] for Vk in V], [Pk[i] for Pk in Pi], k)
            for i in indices
        ]
        N.append(_sum(Pi[k + 1], turning, -1.0))
    W = _transposed_derivatives(
        A.transposed_times, N, lambda k, y: rotated(coadjoint, k, y)
    )
    return [[pairing(X[i], Wk[i]) for i in indices] for Wk in W]


class Block(NamedTuple):
    """Pose of a body in one before it: a block of A."""

    R: Rows
    p: Vector

    def behind(self, before: Block) -> Block:
        """Pose in the body in which the one before has a pose."""
        return Block(
            matrix_product(before.R, self.R), plus(before.p, times(before.R, self.p))
        )

    def twist(self, V: Screw) -> Screw:
        """Product of the block and a twist."""
        linear = times_transposed(self.R, plus_cross(V[1], V[0], self.p))
        return (times_transposed(self.R, V[0]), linear)

    def wrench(self, W: Screw) -> Screw:
        """Product of the transposed block and a wrench."""
        force = times(self.R, W[1])
        return (plus_cross(times(self.R, W[0]), self.p, force), force)


class SystemMatrix:
    """Matrix A, eq. (10), for trees.

    Parameters
    ----------
    robot : Robot
    passages : sequence of Passage
    """

    def __init__(self, robot: Robot, passages: Sequence[Passage]) -> None:
        # Below the diagonal: for each body the poses in the bodies before it, nearest last.
        self.rows: list[dict[int, Block]] = []
        for body, passage in zip(robot.bodies, passages):
            row: dict[int, Block] = {}
            if body.parent != BASE:
                own = Block(passage.R, passage.p)
                for j, before in self.rows[body.parent].items():
                    row[j] = own.behind(before)
                row[body.parent] = own
            self.rows.append(row)

    def times(self, x: Screws) -> Screws:
        """Product A x."""
        return [
            add(x[i], *(block.twist(x[j]) for j, block in row.items()))
            for i, row in enumerate(self.rows)
        ]

    def transposed_times(self, W: Screws) -> Screws:
        """Product A^T W."""
        result = list(W)
        for i, row in enumerate(self.rows):
            for j, block in row.items():
                result[j] = add(result[j], block.wrench(W[i]))
        return result


def _derivatives(
    times_A: Callable[[Screws], Screws],
    x: Sequence[Screws],
    times_a: Callable[[int, Screws], Screws],
) -> list[Screws]:
    """Differentiate y = A x, by dy/dt = A z with z = dx/dt + a (x - y), and so on for A z."""
    y: list[Screws] = []

    @cache
    def z(m: int, k: int) -> Screws:
        """k-th derivative of what A is multiplied with for the m-th derivative of y."""
        if m == 0:
            return x[k]
        result = z(m - 1, k + 1)
        for j in range(k + 1):
            difference = _sum(z(m - 1, k - j), y[m - 1 + k - j], -1.0)
            result = _sum(result, times_a(j, difference), float(comb(k, j)))
        return result

    for m in range(len(x)):
        y.append(times_A(z(m, 0)))
    return y


def _transposed_derivatives(
    times_A: Callable[[Screws], Screws],
    N: Sequence[Screws],
    times_a: Callable[[int, Screws], Screws],
) -> list[Screws]:
    """Differentiate w = A^T N, by dw/dt = A^T (dN/dt - a^T w) + a^T w, and so on."""

    @cache
    def g(m: int, k: int) -> Screws:
        """k-th derivative of what A^T is multiplied with for the m-th derivative of w."""
        if m == 0:
            return N[k]
        return _sum(g(m - 1, k + 1), turned(m - 1, k), -1.0)

    @cache
    def turned(m: int, k: int) -> Screws:
        """k-th derivative of a^T A^T g_m."""
        result = times_a(0, w(m, k))
        for j in range(1, k + 1):
            result = _sum(result, times_a(j, w(m, k - j)), float(comb(k, j)))
        return result

    @cache
    def w(m: int, k: int) -> Screws:
        """k-th derivative of A^T g_m."""
        if k == 0:
            return times_A(g(m, 0))
        return _sum(w(m + 1, k - 1), turned(m, k - 1), 1.0)

    return [w(0, k) for k in range(len(N))]


def _sum(a: Screws, b: Screws, scale: float) -> Screws:
    return [add_scaled(x, scale, y) for x, y in zip(a, b)]
