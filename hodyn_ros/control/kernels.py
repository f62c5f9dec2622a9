"""Equations of the observer and the tracking law, as loops over joints and motors.

Numba compiles them, and `hodyn_ros.codegen` translates the same text to C99: they use numbers,
arrays, loops and conditions only. `n` joints and `m` motors; arrays with two indices have a row a
quantity and a column a joint or a motor. Rows of `links`: position, velocity, torque that the
model lacks, the same behind its low pass, acceleration. Rows of `motors`: position, velocity,
torque that the model lacks, the same behind its low pass. Source of the equations: `observer` and
`tracking`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, pi, sqrt
from typing import Any

from numpy import float64
from numpy.typing import NDArray

from hodyn_ros.resources import compiled_function

Vector = NDArray[float64]
Matrix = NDArray[float64]
"""Two indices, the columns one a joint."""
MotorMatrix = NDArray[float64]
"""Two indices, the columns one a motor."""
Transition = NDArray[float64]
"""Five rows and columns."""
Index = NDArray[Any]


_kernels: list[Any] = []


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    _kernels.append(compiled_function(function, None))
    return _kernels[-1]  # type: ignore[no-any-return]


def prepare() -> None:
    """Compile all kernels now, not each when it is first called; there is a compiler."""
    from numba import types

    vector, matrix = (types.Array(types.float64, dimensions, 'C') for dimensions in (1, 2))
    kinds = {
        'int': types.int64,
        'float': types.float64,
        'Index': types.Array(types.int64, 1, 'C', readonly=True),
        'Vector': vector,
        **dict.fromkeys(('Matrix', 'MotorMatrix', 'Transition'), matrix),
    }
    for kernel in _kernels:
        names = [name for what, name in kernel.__annotations__.items() if what != 'return']
        kernel.compile(tuple(kinds[name] for name in names))
    # Of a caller, who may give what must not be written.
    all_finite.compile((types.Array(types.float64, 1, 'C', readonly=True),))  # type: ignore[attr-defined]


@_compiled
def all_finite(values: Vector) -> bool:
    """Whether no value is NaN or infinite."""
    for value in values:  # noqa: SIM110
        if not isfinite(value):
            return False
    return True


@_compiled
def factorise(n: int, M: Matrix, L: Matrix) -> int:
    """Lower factor L of M = L L^T; the number of the first column that has none, or zero."""
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


@_compiled
def solve(n: int, L: Matrix, x: Vector) -> None:
    """Replace x by the solution of L L^T y = x."""
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


@_compiled
def observe(
    n: int,
    m: int,
    T: float,
    share: float,
    joint: Index,
    is_elastic: Vector,
    inertia: Vector,
    link_gains: Matrix,
    motor_gains: MotorMatrix,
    M: Matrix,
    L: Matrix,
    bias: Matrix,
    torque: Matrix,
    load: MotorMatrix,
    applied: Vector,
    q: Vector,
    theta: Vector,
    links: Matrix,
    motors: MotorMatrix,
) -> None:
    """Advance the observers by a sample T and correct them by the measured q and theta.

    `torque` and `load` of the springs on links and motors have a row for either end of the sample,
    the bias torque one for its beginning and one for a sample before.
    """
    for i in range(n):
        links[4, i] = links[2, i] - 1.5 * bias[0, i] + 0.5 * bias[1, i]
        if is_elastic[i] > 0.0:
            links[4, i] += 0.5 * (torque[0, i] + torque[1, i])
    for i in range(m):
        if is_elastic[joint[i]] == 0.0:
            links[4, joint[i]] += applied[i]
    solve(n, L, links[4])
    for i in range(n):
        links[0, i] += T * links[1, i] + 0.5 * T * T * links[4, i]
        links[1, i] += T * links[4, i]
        # From here on the row of the accelerations holds what corrects the torque.
        e = q[i] - links[0, i]
        links[0, i] += link_gains[0, i] * e
        links[1, i] += link_gains[1, i] * e
        links[4, i] = link_gains[2, i] * e
    for i in range(n):
        for k in range(n):
            links[2, i] += M[i, k] * links[4, k]
        links[3, i] += share * (links[2, i] - links[3, i])
    for i in range(m):
        if is_elastic[joint[i]] > 0.0:
            a = (applied[i] - 0.5 * (load[0, i] + load[1, i]) + motors[2, i]) / inertia[i]
            motors[0, i] += T * motors[1, i] + 0.5 * T * T * a
            motors[1, i] += T * a
            e = theta[i] - motors[0, i]
            motors[0, i] += motor_gains[0, i] * e
            motors[1, i] += motor_gains[1, i] * e
            motors[2, i] += inertia[i] * motor_gains[2, i] * e
            motors[3, i] += share * (motors[2, i] - motors[3, i])
        else:
            motors[0, i] = links[0, joint[i]]
            motors[1, i] = links[1, joint[i]]
            motors[2, i], motors[3, i] = 0.0, 0.0


@_compiled
def carry_forward(
    n: int,
    m: int,
    samples: int,
    substeps: int,
    T: float,
    joint: Index,
    is_elastic: Vector,
    turns: Vector,
    inertia: Vector,
    L: Matrix,
    bias: Vector,
    torque: Vector,
    rate: Vector,
    load: Vector,
    q: Vector,
    theta: Vector,
    applied: MotorMatrix,
    links: Matrix,
    motors: MotorMatrix,
) -> None:
    """Carry the state forward by some samples, under the torques `applied` in each of them.

    `torque` acts on the links and `load` on the motors at the positions q and theta; from there on
    springs are lines, `rate` torque by the deflection at a motor. Leapfrog; the mass matrix and
    the bias torque are those of the middle.
    """
    h = T / substeps
    for step in range(samples * substeps):
        for i in range(n):
            links[0, i] += 0.5 * h * links[1, i]
            links[4, i] = is_elastic[i] * torque[i] - bias[i] + links[2, i]
        for i in range(m):
            motors[0, i] += 0.5 * h * motors[1, i]
            j: int = joint[i]
            acts = applied[step // substeps, i]
            if is_elastic[j] > 0.0:
                change = rate[i] * (motors[0, i] - theta[i] - turns[i] * (links[0, j] - q[j]))
                links[4, j] += change
                motors[1, i] += h * (acts - load[i] - change + motors[2, i]) / inertia[i]
            else:
                links[4, j] += acts
        solve(n, L, links[4])
        for i in range(n):
            links[1, i] += h * links[4, i]
            links[0, i] += 0.5 * h * links[1, i]
        for i in range(m):
            motors[0, i] += 0.5 * h * motors[1, i]


@_compiled
def tracking_law(
    n: int,
    m: int,
    T: float,
    w: float,
    joint: Index,
    is_elastic: Vector,
    turns: Vector,
    share: Vector,
    inertia: Vector,
    damping: Vector,
    limit: Vector,
    M: Matrix,
    stiffness: Vector,
    torque: Vector,
    rate: Vector,
    q: Vector,
    theta: Vector,
    links: Matrix,
    motors: MotorMatrix,
    desired: Matrix,
    effort: Matrix,
    distance: Matrix,
    feed_forward: Vector,
    work: Matrix,
    demand: Vector,
) -> None:
    """Torques of the motors for a state, and wanted motion and efforts half a sample later.

    `inertia` and `limit` are those of the motors of each joint; springs as in `carry_forward`. The
    wanted motion is lessened by the `distance` that is still gone. `work` has ten rows.
    """
    for i in range(n):
        h = -0.5 * T
        position = desired[3, i] + 0.25 * h * desired[4, i]
        position = desired[1, i] + 0.5 * h * (desired[2, i] + h / 3.0 * position)
        work[0, i] = desired[0, i] + h * position - distance[0, i] - links[0, i]
        velocity = desired[2, i] + 0.5 * h * (desired[3, i] + h / 3.0 * desired[4, i])
        work[1, i] = desired[1, i] + h * velocity - distance[1, i] - links[1, i]
        wanted = effort[0, i] + h * (effort[1, i] + 0.5 * h * effort[2, i])
        work[2, i] = wanted - links[3, i] - torque[i]
        work[3, i] = effort[1, i] + h * effort[2, i]
        c, D = 0.0, 0.0
        if is_elastic[i] > 0.0:
            c = inertia[i] / stiffness[i]
            W = sqrt(stiffness[i] * (1.0 / M[i, i] + 1.0 / inertia[i]))
            D = min(1.4 * W, 3.0 * w) * max(0.0, 1.0 - 2.0 / pi * W * T)
            # The spring turns with what a damper leaves.
            work[3, i] -= damping[i] / stiffness[i] * effort[2, i]
        work[4, i], work[5, i] = c, D
        own = M[i, i] + is_elastic[i] * inertia[i]
        gains = (2.0 * w * own + w * w * c * D * M[i, i]) / (w * w * own)
        largest = 0.3 * limit[i] / own * gains * gains
        work[0, i] = max(-largest, min(largest, work[0, i]))
        work[6, i] = w * (w * work[0, i] + 2.0 * work[1, i])
    for i in range(m):
        j: int = joint[i]
        work[2, j] -= rate[i] * (motors[0, i] - theta[i] - turns[i] * (links[0, j] - q[j]))
        work[3, j] -= rate[i] * (motors[1, i] - turns[i] * links[1, j])
    for i in range(n):
        # What the mass matrix makes of the distance: torque, its first and second derivative.
        work[7, i], work[8, i], work[9, i] = 0.0, 0.0, 0.0
        for k in range(n):
            work[7, i] += M[i, k] * distance[2, k]
            work[8, i] += M[i, k] * distance[3, k]
            work[9, i] += M[i, k] * distance[4, k]
        work[2, i] -= work[7, i]
        work[3, i] -= work[8, i]
    for i in range(n):
        c, D = work[4, i], work[5, i]
        B = is_elastic[i] * inertia[i]
        u = c * (w * w + 2.0 * w * D) * work[2, i] + c * (D + 2.0 * w) * work[3, i]
        u += B * work[6, i]
        for k in range(n):
            u += M[i, k] * (work[6, k] + w * w * c * D * work[1, k])
        work[7, i] = u - links[3, i] - work[7, i] - B * distance[2, i] - c * work[9, i]
    for i in range(m):
        demand[i] = feed_forward[i] + share[i] * work[7, joint[i]] - motors[3, i]


@_compiled
def approach(n: int, transition: Transition, distance: Matrix) -> float:
    """Advance a distance and its derivatives (5, n) by a sample; return the largest of them."""
    largest = 0.0
    for i in range(n):
        d0, d1, d2 = distance[0, i], distance[1, i], distance[2, i]
        d3, d4 = distance[3, i], distance[4, i]
        for k in range(5):
            value = transition[k, 0] * d0 + transition[k, 1] * d1 + transition[k, 2] * d2
            value += transition[k, 3] * d3 + transition[k, 4] * d4
            distance[k, i] = value
            largest = max(largest, abs(value))
    return largest
