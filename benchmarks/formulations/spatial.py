"""Recursive inverse dynamics in spatial twists, with an accelerating base.

Source: Mueller 2021, Algorithms 1 and 3, as in `hodyn_ros.dynamics.spatial`. Orders up to 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    bracket,
    coadjoint,
    momentum,
    multiple,
    pairing,
    pose_of,
    scaled_sum,
    screw_of,
    shifted_inertia,
    times,
    turned_inertia,
)
from hodyn_ros.engine.vectors import ZERO, Number, Vector, plus_cross, scaled


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
    poses: list[tuple[Rows, Vector]] = []
    twists: list[list[Screw]] = []
    screws, wrenches = [], []
    for i, body in enumerate(robot.bodies):
        on_base = body.parent == BASE
        passage = Passage(body, sine[i], cosine[i], q[i][0])
        R, p = pose_of((identity, ZERO) if on_base else poses[body.parent], passage)
        X = screw_of(body)
        e, eta = times(R, X[0]), times(R, X[1])
        # S and its derivatives, eq. (9): S^(k+1) = (ad_V S)^(k)
        S = [(e, plus_cross(eta, p, e))]
        V: list[Screw] = []
        for k in range(order + 2):
            own = scaled_sum(q[i][1:], S, k)
            V.append(add((base if on_base else twists[body.parent])[k], own))
            S.append(binomial_sum(bracket, V, S, k))
        M = shifted_inertia(turned_inertia(R, body), p)
        poses.append((R, p))
        screws.append(S)
        twists.append(V)
        wrenches.append(_momentum_derivatives(M, V))
    result: list[list[Number]] = [[0.0] * len(robot.bodies) for _ in range(order + 1)]
    for i in reversed(range(len(robot.bodies))):
        parent = robot.bodies[i].parent
        for k in range(order + 1):
            # (29), (31)
            for j in range(k + 1):
                term = pairing(screws[i][j], wrenches[i][k - j])
                result[k][i] = result[k][i] + float(comb(k, j)) * term
        if parent != BASE:
            wrenches[parent] = [add(a, b) for a, b in zip(wrenches[parent], wrenches[i])]
    return result


def _momentum_derivatives(M: Inertia, V: Sequence[Screw]) -> list[Screw]:
    """First to third derivative of the momentum M V, eq. (10), (16), (19) and (22).

    They follow from d/dt (M y) = M (dy/dt - ad_V y) - ad_V^T M y. Products with the same twist are
    summed before they are multiplied, which takes half of the products that are printed.
    """

    def less(y: Screw, product: Callable[[Screw, Screw], Screw], *pairs: Screw) -> Screw:
        for twist, factor in zip(pairs[::2], pairs[1::2]):
            y = add_scaled(y, -1.0, product(twist, factor))
        return y

    Pi = momentum(M, V[0])
    M_Vd = momentum(M, V[1])
    Pi_d = less(M_Vd, coadjoint, V[0], Pi)
    if len(V) == 2:
        return [Pi_d]
    y = less(V[2], bracket, V[0], V[1])
    M_y = momentum(M, y)
    M_Vd_d = less(M_y, coadjoint, V[0], M_Vd)
    Pi_2d = less(M_y, coadjoint, V[0], add(M_Vd, Pi_d), V[1], Pi)
    if len(V) == 3:
        return [Pi_d, Pi_2d]
    z = less(V[3], bracket, V[0], add(V[2], y))
    Pi_3d = less(
        momentum(M, z),
        coadjoint,
        *(V[0], add(M_y, M_Vd_d, Pi_2d)),
        *(V[1], add(M_Vd, multiple(2.0, Pi_d))),
        *(V[2], Pi),
    )
    return [Pi_d, Pi_2d, Pi_3d]
