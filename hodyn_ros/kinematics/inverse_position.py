"""Joint positions for the pose of a link: Levenberg-Marquardt iteration within joint limits.

The error is the twist that would carry the link to the wanted pose: the rotation vector of
R_wanted transpose(R) in base axes and the way of the link origin. Taken apart like this, and not
as one screw, its rows can be chosen one by one. The transposed Jacobian times the error is the
exact gradient of half its square, since the rotation vector is an eigenvector of the derivative of
the logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.kinematics.redundancy import TaskSystem
from hodyn_ros.lie import so3

Array = NDArray[np.float64]

LONGEST_STEP = 0.8  # in units of the joints: 0.8 rad, or 0.8 times the characteristic length
SLOW_STEPS = 12  # so many steps without a gain of 0.1 % end at a local minimum
ROUNDING = 4.0 * np.finfo(np.float64).eps


class PositionSolution(NamedTuple):
    """Result of the iteration."""

    q: Array
    """Joint positions, shape (n,)."""
    error: Array
    """Twist to the wanted pose, shape (6,), [rad] and [m]."""
    residual: float
    """Length of the error of all equations, in units of the rows."""
    iterations: int


def solve_position(
    system: TaskSystem,
    C: Array,
    c: Array,
    guess: Array,
    lower: Array,
    upper: Array,
    tolerance: float,
    max_iterations: int,
) -> PositionSolution:
    """Iterate from a guess until rounding, or until nothing improves any more.

    Parameters
    ----------
    system : TaskSystem
    C : ndarray, shape (4, 4)
        Wanted pose.
    c : ndarray, shape (p,)
        Wanted values of the joint tasks.
    guess, lower, upper : ndarray, shape (n,)
        The result lies within the limits; the guess is moved there.
    tolerance : float
        Residual below which slow progress ends the iteration.
    max_iterations : int

    Returns
    -------
    PositionSolution
        Converged or not: compare the residual.

    Notes
    -----
    A joint at a limit is left out of a step that would take it beyond. The damping vanishes with
    the square of the residual, which keeps the convergence quadratic.
    """
    scale, unknown = system.joint_scale[system.unknown], system.unknown
    lowest, highest = lower[unknown] / scale, upper[unknown] / scale
    q = guess.copy()
    x = np.clip(q[unknown] / scale, lowest, highest)
    q[unknown] = np.clip(x * scale, lower[unknown], upper[unknown])
    error, e, M = _linearised(system, C, c, q)
    residual = float(np.linalg.norm(e))
    damping, iterations, slow_steps = 1e-2, 0, 0
    while residual > ROUNDING and iterations < max_iterations:
        iterations += 1
        step = _bounded_step(M, e, damping * residual**2, x <= lowest, x >= highest)
        longest = float(np.abs(step).max())
        if longest > LONGEST_STEP:
            step *= LONGEST_STEP / longest
        x_next = np.clip(x + step, lowest, highest)
        if np.array_equal(x_next, x):
            break
        q_next = q.copy()
        q_next[unknown] = np.clip(x_next * scale, lower[unknown], upper[unknown])
        error_next, e_next, M_next = _linearised(system, C, c, q_next)
        residual_next = float(np.linalg.norm(e_next))
        stalled = residual <= tolerance and residual_next > 0.5 * residual
        slow_steps = slow_steps + 1 if residual_next > 0.999 * residual else 0
        if residual_next < residual:
            x, q, error, e, M, residual = x_next, q_next, error_next, e_next, M_next, residual_next
            damping = max(0.2 * damping, 1e-6)
        else:
            damping *= 5.0
        if stalled or slow_steps == SLOW_STEPS:
            break
    return PositionSolution(q, error, residual, iterations)


def starts(
    guess: Array, lower: Array, upper: Array, spread: Array, restarts: int, seed: int
) -> Iterator[Array]:
    """Yield the guess and then random positions within the limits.

    Parameters
    ----------
    guess, lower, upper : ndarray, shape (n,)
    spread : ndarray, shape (n,)
        Distance from the guess up to which joints without limits are tried.
    restarts : int
    seed : int
    """
    yield guess
    rng = np.random.default_rng(seed)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    lowest = np.where(bounded, lower, np.maximum(guess - spread, lower))
    highest = np.where(bounded, upper, np.minimum(guess + spread, upper))
    for _ in range(restarts):
        yield rng.uniform(np.minimum(lowest, highest), np.maximum(lowest, highest))


def within(
    q: Array, near: Array, lower: Array, upper: Array, periodic: NDArray[np.bool_]
) -> Array:
    """Turn periodic joints fully, until they lie within their limits and as near as possible.

    Parameters
    ----------
    q, near, lower, upper : ndarray, shape (n,)
    periodic : ndarray of bool, shape (n,)

    Returns
    -------
    ndarray, shape (n,)
    """
    turn = 2.0 * np.pi
    turns = np.round((near - q) / turn)
    turns = np.clip(turns, np.ceil((lower - q) / turn), np.floor((upper - q) / turn))
    return np.where(periodic, np.clip(q + turn * turns, lower, upper), q)


def _linearised(system: TaskSystem, C: Array, c: Array, q: Array) -> tuple[Array, Array, Array]:
    """Twist to the wanted pose, right-hand side and matrix of the linear equations."""
    pose, J = system.chain.pose_and_jacobian(q[None])
    rotation = so3.log(C[:3, :3] @ pose[0, :3, :3].T)
    error = np.concatenate([rotation, C[:3, 3] - pose[0, :3, 3]])
    tasks = system.A_scale * (system.A @ (q / system.joint_scale))
    return error, system.right_side(error, c - tasks), system.matrix(J[0])


def _bounded_step(
    M: Array, e: Array, damping: float, at_lower: NDArray[np.bool_], at_upper: NDArray[np.bool_]
) -> Array:
    """Damped least-squares step that does not push joints beyond limits at which they are."""
    free = np.ones(M.shape[1], dtype=bool)
    step = np.zeros(M.shape[1])
    while np.any(free):
        U, s, Vt = np.linalg.svd(M[:, free], full_matrices=False)
        # Directions without any gain only carry rounding.
        gain = np.where(s > ROUNDING * s[0], s / (s**2 + damping + 1e-300), 0.0)
        step[:] = 0.0
        step[free] = Vt.T @ (gain * (U.T @ e))
        blocked = free & ((at_lower & (step < 0.0)) | (at_upper & (step > 0.0)))
        if not np.any(blocked):
            break
        free &= ~blocked
        step[blocked] = 0.0
    return step
