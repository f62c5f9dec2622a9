"""CasADi: forward dynamics of any order by automatic differentiation, as compiled C code.

The accelerations are those of the mass matrix, its factors and the recursive Newton-Euler
algorithm; each further order is the directional derivative of the one before along the motion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import newton_euler
from benchmarks.cases import Case
from benchmarks.peers.casadi_derivatives import BUILDS, casadi, compiled
from benchmarks.timing import Contestant

Array = NDArray[np.float64]


class Functions(NamedTuple):
    """Accelerations and derivatives from positions, velocities, and efforts with derivatives."""

    plain: Any
    merged: Any
    """The same with common subexpressions merged."""


def functions(case: Case, order: int) -> Functions:
    """Functions of CasADi of the given order, as their names in the generated code require."""
    ca, n = casadi(), case.n
    given = ca.SX.sym('given', (order + 3) * n)
    q, qd, *Q = (given[k * n : (k + 1) * n] for k in range(order + 3))
    zero = [0.0] * n
    joints = ca.vertsplit(q)

    def efforts(gravity: Any, velocity: Any, acceleration: Any) -> Any:
        bodies = case.bodies
        rows = joints, velocity, acceleration
        return ca.vertcat(*newton_euler.efforts(bodies, gravity, *rows, ca.sin, ca.cos))

    units = np.eye(n).tolist()
    M = ca.horzcat(*(efforts(zero[:3], zero, unit) for unit in units))
    bias = efforts(case.model.gravity, ca.vertsplit(qd), zero)
    orders = [ca.ldl_solve(Q[0] - bias, *ca.ldl(M))]
    for k in range(order):
        state, rates = (
            ca.vertcat(q, qd, *Q[: k + 1]),
            ca.vertcat(qd, orders[0], *Q[1 : k + 2]),
        )
        orders.append(ca.jtimes(orders[-1], state, rates))
    result = ca.vertcat(*orders)
    name = 'efforts_function'
    return Functions(
        ca.Function(name, [given], [result]), ca.Function(name, [given], [ca.cse(result)])
    )


def contestant(case: Case, effort: Array, merged: Any) -> Contestant:
    """C loop over samples whose efforts have shape (N, orders, n)."""
    samples, orders, n = effort.shape
    given = np.concatenate([case.motion[:samples, :2], effort], axis=1)
    loop = compiled(merged, f'casadi_forward_{n}_{orders - 1}', BUILDS[0].flags).loop
    found = np.empty((samples, orders, n))
    sizes = samples, (orders + 2) * n, orders * n
    return Contestant(
        'CasADi C loop',
        orders - 1,
        samples,
        lambda: loop(*sizes, given.ctypes.data, found.ctypes.data),
        lambda: found,
    )
