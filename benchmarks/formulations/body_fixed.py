"""Recursive inverse dynamics in body-fixed twists.

Source: Kumar and Mueller 2021, section II, with the transforms between neighbours differentiated
as in `hodyn_ros.dynamics.nth_order`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

from benchmarks.formulations.robots import BASE, Robot
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
    momentum,
    multiple,
    pairing,
    screw_of,
)
from hodyn_ros.engine.vectors import ZERO, Number, scaled


def efforts(
    robot: Robot,
    sine: Sequence[Number],
    cosine: Sequence[Number],
    q: Sequence[Sequence[Number]],
    order: int,
) -> list[list[Number]]:
    """Efforts of all joints and their derivatives.

    Parameters
    ----------
    robot : Robot
    sine, cosine : sequence of Number
        Of the joint positions.
    q : sequence of sequence of Number
        For each joint its position and the derivatives up to order + 2.
    order : int

    Returns
    -------
    list of list of Number
        For each derivative those of all joints.
    """
    base = [NOTHING] * (order + 2)
    base[1] = (ZERO, scaled(-1.0, robot.gravity))
    twists: list[list[Screw]] = []
    passages, wrenches = [], []
    for i, body in enumerate(robot.bodies):
        passage = Passage(body, sine[i], cosine[i], q[i][0])
        parent = base if body.parent == BASE else twists[body.parent]
        X = screw_of(body)
        V = transformed([passage.twist_into_body(y) for y in parent], X, q[i], bracket)
        V = [add_scaled(y, q[i][k + 1], X) for k, y in enumerate(V)]
        M = Inertia(body.mass, body.h, body.inertia)
        Pi = [momentum(M, y) for y in V]
        W = [
            add_scaled(Pi[k + 1], -1.0, binomial_sum(coadjoint, V, Pi, k))
            for k in range(order + 1)
        ]
        passages.append(passage)
        twists.append(V)
        wrenches.append(W)
    result: list[list[Number]] = [[0.0] * len(robot.bodies) for _ in range(order + 1)]
    for i in reversed(range(len(robot.bodies))):
        body = robot.bodies[i]
        X = screw_of(body)
        for k in range(order + 1):
            result[k][i] = pairing(X, wrenches[i][k])
        if body.parent != BASE:
            passed = transformed(wrenches[i], X, q[i], coadjoint)
            wrenches[body.parent] = [
                add(own, passages[i].wrench_into_parent(W))
                for own, W in zip(wrenches[body.parent], passed)
            ]
    return result


def transformed(
    y: Sequence[Screw],
    X: Screw,
    q: Sequence[Number],
    product: Callable[[Screw, Screw], Screw],
) -> list[Screw]:
    """Differentiate T y, where dT/dt = -qd product(X, .) T, from T times those of y.

    Every T y^(k) has the derivative T y^(k+1) - qd product(X, T y^(k)), and so on by Leibniz's
    rule; terms with the same derivative of q are summed before they are multiplied.

    Parameters
    ----------
    y : sequence of screw
        T times y and each of its derivatives.
    X : screw
        Joint screw.
    q : sequence of Number
        Joint position and its derivatives.
    product : callable
        `bracket` for twists, `coadjoint` for wrenches.

    Returns
    -------
    list of screw
    """
    # derivatives[m][k] is the m-th derivative of T y^(k).
    derivatives = [list(y)]
    for m in range(1, len(y)):
        row = []
        for k in range(len(y) - m):
            change = NOTHING
            for j in range(m):
                terms = [
                    multiple(float(comb(i, j)), derivatives[i - j][k + m - 1 - i])
                    for i in range(j, m)
                ]
                change = add_scaled(change, q[j + 1], add(*terms))
            row.append(add_scaled(y[k + m], -1.0, product(X, change)))
        derivatives.append(row)
    return [row[0] for row in derivatives]
