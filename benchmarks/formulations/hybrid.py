"""Recursive inverse dynamics in hybrid twists: base axes, about the origin of each body.

Source: the derivation on the page `doc/formulations/hybrid.rst`; Mueller
2021 names this representation without formulas. Orders up to 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from benchmarks.formulations.robots import BASE, Robot, Rows
from benchmarks.formulations.screws import (
    NOTHING,
    Inertia,
    Passage,
    Screw,
    add,
    add_scaled,
    binomial_sum,
    cross,
    minus,
    momentum,
    multiple,
    pairing,
    pose_of,
    scaled_sum,
    screw_of,
    times,
    turned_inertia,
)
from hodyn_ros.engine.vectors import ZERO, Number, Vector, plus, plus_cross, scaled


def efforts(
    robot: Robot,
    sine: Sequence[Number],
    cosine: Sequence[Number],
    q: Sequence[Sequence[Number]],
    order: int,
) -> list[list[Number]]:
    """Efforts of all joints and their derivatives; see `body_fixed.efforts`."""
    identity = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    base = [NOTHING] * (order + 2)
    base[1] = (ZERO, scaled(-1.0, robot.gravity))
    poses: list[Rows] = []
    twists: list[list[Screw]] = []
    arms, screws, wrenches = [], [], []
    for i, body in enumerate(robot.bodies):
        on_base = body.parent == BASE
        passage = Passage(body, sine[i], cosine[i], q[i][0])
        R_parent = identity if on_base else poses[body.parent]
        R, r0 = pose_of((R_parent, ZERO), passage)
        parent = base if on_base else twists[body.parent]
        X_body = screw_of(body)
        X: list[Screw] = [(times(R, X_body[0]), times(R, X_body[1]))]
        V: list[Screw] = []
        r = [r0]
        for k in range(order + 2):
            # U^(k) = (A(r) V_p + X qd)^(k), whose second half is the derivative of r.
            U = add(
                scaled_sum(q[i][1:], X, k),
                *(
                    (ZERO, scaled(float(comb(k, j)), cross(parent[k - j][0], r[j])))
                    for j in range(k + 1)
                ),
            )
            V.append(add(parent[k], U))
            r.append(U[1])
            X.append(binomial_sum(_turned, V, X, k))
        poses.append(R)
        arms.append(r)
        screws.append(X)
        twists.append(V)
        wrenches.append(_inertia_wrenches(turned_inertia(R, body), V))
    result: list[list[Number]] = [[0.0] * len(robot.bodies) for _ in range(order + 1)]
    for i in reversed(range(len(robot.bodies))):
        parent_index, W, r = robot.bodies[i].parent, wrenches[i], arms[i]
        for k in range(order + 1):
            for j in range(k + 1):
                term = pairing(screws[i][j], W[k - j])
                result[k][i] = result[k][i] + float(comb(k, j)) * term
        if parent_index != BASE:
            passed = []
            for k in range(order + 1):
                moment = W[k][0]
                for j in range(k + 1):
                    moment = plus_cross(
                        moment, scaled(float(comb(k, j)), r[j]), W[k - j][1]
                    )
                passed.append((moment, W[k][1]))
            wrenches[parent_index] = [
                add(a, b) for a, b in zip(wrenches[parent_index], passed)
            ]
    return result


def _turned(V: Screw, y: Screw) -> Screw:
    """Product omega x y on both halves."""
    return (cross(V[0], y[0]), cross(V[0], y[1]))


def _inertia_wrenches(M: Inertia, V: Sequence[Screw]) -> list[Screw]:
    """Wrenches that move a body, and their derivatives.

    They follow from d/dt (M y) = M (dy/dt - omega x y) + omega x M y. Products with the same
    angular velocity are summed before they are multiplied.
    """
    Pi = [momentum(M, V[0])]
    y = add_scaled(V[1], -1.0, _turned(V[0], V[0]))
    M_y = momentum(M, y)
    Pi.append(add(M_y, _turned(V[0], Pi[0])))
    if len(V) > 2:
        y_d = _less_turned(V[2], (V[0], V[1]), (V[1], V[0]))
        z = _less_turned(y_d, (V[0], y))
        M_z = momentum(M, z)
        M_y_d = add(M_z, _turned(V[0], M_y))
        Pi.append(add(M_z, _turned(V[0], add(M_y, Pi[1])), _turned(V[1], Pi[0])))
    if len(V) > 3:
        # z = d(y)/dt - omega x y, once more
        y_2d = _less_turned(V[3], (V[0], V[2]), (multiple(2.0, V[1]), V[1]), (V[2], V[0]))
        z_d = _less_turned(y_2d, (V[0], y_d), (V[1], y))
        last = momentum(M, _less_turned(z_d, (V[0], z)))
        Pi.append(
            add(
                last,
                _turned(V[0], add(M_z, M_y_d, Pi[2])),
                _turned(V[1], add(M_y, multiple(2.0, Pi[1]))),
                _turned(V[2], Pi[0]),
            )
        )
    wrenches = []
    for k in range(len(V) - 1):
        moment: Vector = Pi[k + 1][0]
        for j in range(k + 1):
            turning = cross(scaled(float(comb(k, j)), V[j][1]), Pi[k - j][1])
            moment = plus(moment, turning)
        wrenches.append((moment, Pi[k + 1][1]))
    return wrenches


def _less_turned(y: Screw, *pairs: tuple[Screw, Screw]) -> Screw:
    angular, linear = y
    for V, factor in pairs:
        change = _turned(V, factor)
        angular, linear = minus(angular, change[0]), minus(linear, change[1])
    return (angular, linear)
