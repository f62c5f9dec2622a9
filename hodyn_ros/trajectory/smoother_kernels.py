"""Compiled loops of the smoother (see `smoother`): filters in both directions, and their union.

States are in the units of `kalman`: time is multiplied by the cut-off of the model, and variances
are in units of that of the measurement noise. All components share covariances; their means lie
side by side in the last axis.

Sources: Rauch, Tung and Striebel, "Maximum likelihood estimates of linear dynamic systems", AIAA
Journal 3(8), 1965; Fraser and Potter, "The optimum linear smoother as a combination of two optimum
linear filters", IEEE Trans. Autom. Control 14(4), 1969; Bryson and Henrikson, "Estimation using
sampled data containing sequentially correlated noise", J. Spacecraft 5(6), 1968.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.resources import compiled_function

Vector = NDArray[Any]
Matrix = NDArray[Any]
Block = NDArray[Any]

UNKNOWN = 1e10
"""Variance of everything before the first measurement."""
# Variance from which on a model starts anew, as in `kalman`.
_LOST = 1e14
# Share of a variance that a measurement leaves; less is rounding.
_LEAST_REST = 1e-12
# Steps are equal up to this share; a covariance has settled when no step changes it by more.
_SAME_STEP, _SETTLED = 1e-7, 1e-12


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return compiled_function(function, None, nogil=True, error_model='numpy')


@_compiled
def _set_step(
    u: float, taylor: Matrix, driven: Matrix, intensity: float, F: Matrix, Q: Matrix
) -> None:
    """Transition and what white noise adds over a step, from those of the step one."""
    N = len(F)
    for a in range(N):
        for b in range(N):
            F[a, b] = taylor[a, b] * u ** (b - a) if b >= a else 0.0
            Q[a, b] = intensity * driven[a, b] * u ** (2 * N - 1 - a - b)


@_compiled
def _predict(
    F: Matrix, Q: Matrix, memory: float, P: Matrix, G: Matrix, column: Vector
) -> float:
    """Carry a covariance over a step.

    `column` becomes the covariance of the state with the innovation, whose variance is returned.
    The noise of the measurement remembers this part of the one before, which is known with the
    state then: the innovation is y - memory y_before - (q - memory q_before).
    """
    N = len(F)
    first = P[0, 0]
    for a in range(N):
        for b in range(N):
            total = 0.0
            for k in range(a, N):
                total += F[a, k] * P[k, b]
            G[a, b] = total
    for a in range(N):
        for b in range(a, N):
            total = Q[a, b]
            for k in range(b, N):
                total += G[a, k] * F[b, k]
            P[a, b] = P[b, a] = total
    for a in range(N):
        column[a] = P[a, 0] - memory * G[a, 0]
    left: float = 1.0 - memory * memory
    return column[0] - memory * G[0, 0] + memory * memory * first + left


@_compiled
def _forget(P: Matrix, X: Matrix, value: Vector, u: float) -> None:
    """Know nothing but a measurement; u: usual step."""
    N = len(P)
    P[:] = 0.0
    X[:] = 0.0
    for a in range(N):
        P[a, a] = UNKNOWN * max(u, 1.0) ** (-2 * a)
    P[0, 0] = UNKNOWN / (UNKNOWN + 1.0)
    X[0] = value


@_compiled
def filter_samples(
    values: Matrix, steps: Vector, backward: bool, fresh: bool, cutoff: float, correlation: float,
    intensity: float, taylor: Matrix, driven: Matrix, X: Matrix, P: Matrix, bins: Vector,
    squares: Matrix, logarithms: Vector, means: Block, covariances: Block, versions: Vector,
) -> None:  # fmt: skip
    """Filter samples from one end to the other.

    Parameters
    ----------
    values : ndarray, shape (B + 2, n)
        Sample i is in row i + 1; the one before the first is needed unless `fresh`.
    steps : ndarray, shape (B + 1,)
        `steps[i]` leads from sample i - 1 to sample i [s].
    backward, fresh : bool
        From the last sample on, in reversed time. Whether nothing is known before.
    cutoff, correlation, intensity : float
        Of the model [rad/s]; time constant of the noise, zero if it is white [s]; of its
        driving noise.
    taylor, driven : ndarray, shape (N, N)
        Those of `StepMatrices` for a step of one.
    X, P : ndarray, shapes (N, n) and (N, N)
        State and covariance before, replaced by those at the last sample.
    bins, squares, logarithms : ndarray, shapes (B,), (n_bins, n) and (n_bins,)
        Squared innovations over their variances, and the logarithms of these, are added to the
        bin of their sample; nothing if `logarithms` is empty.
    means, covariances, versions : ndarray, shapes (B, N, n), (B, N, N) and (B,)
        What is known with each sample, and a number that equal covariances have in common;
        nothing if `versions` is empty.
    """
    B, n, N = len(bins), values.shape[1], len(P)
    F, Q, G = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))
    column, gain, before = np.zeros(N), np.zeros(N), np.zeros(n)
    latest, settled, variance, memory = -1.0, False, 1.0, 0.0
    version, seen = 0, 0 if fresh else N + 2
    counts, stores = len(logarithms) > 0, len(versions) > 0
    for s in range(B):
        i = B - 1 - s if backward else s
        here = values[i + 1]
        if seen == 0:
            _forget(P, X, here, intensity)
        else:
            last = values[i + 2] if backward else values[i]
            step = steps[i + 1] if backward else steps[i]
            if not abs(step - latest) <= _SAME_STEP * step:
                latest, settled = step, False
                _set_step(cutoff * step, taylor, driven, intensity, F, Q)
                memory = exp(-step / correlation) if correlation > 0.0 else 0.0
            for c in range(n):
                before[c] = memory * (last[c] - X[0, c])
            for a in range(N):
                for b in range(a + 1, N):
                    for c in range(n):
                        X[a, c] += F[a, b] * X[b, c]
            if not settled:
                version += 1
                old = P[0, 0]
                highest = P[N - 1, N - 1]
                variance = _predict(F, Q, memory, P, G, column)
                for a in range(N):
                    gain[a] = column[a] / variance
                for a in range(N):
                    for b in range(a, N):
                        P[a, b] = P[b, a] = P[a, b] - gain[a] * column[b]
                settled = (
                    abs(P[0, 0] - old) <= _SETTLED * old
                    and abs(P[N - 1, N - 1] - highest) <= _SETTLED * highest
                )
            if variance > _LOST:
                _forget(P, X, here, intensity)
                if counts:
                    logarithms[bins[i]] += log(variance)
                settled, seen = False, 0
            else:
                for c in range(n):
                    before[c] = here[c] - before[c] - X[0, c]
                for a in range(N):
                    for c in range(n):
                        X[a, c] += gain[a] * before[c]
                if counts and seen > N:
                    logarithms[bins[i]] += log(variance)
                    for c in range(n):
                        squares[bins[i], c] += before[c] * before[c] / variance
        seen += 1
        if stores:
            means[i] = X
            covariances[i] = P
            versions[i] = version


@_compiled
def _factorise(A: Matrix, scales: Vector) -> None:
    """Replace A by the lower factor of it in units of its diagonal, whose roots are returned."""
    N = len(A)
    for a in range(N):
        scales[a] = sqrt(A[a, a])
    for a in range(N):
        for b in range(a + 1):
            total = A[a, b] / (scales[a] * scales[b])
            for k in range(b):
                total -= A[a, k] * A[b, k]
            if b < a:
                A[a, b] = total / A[b, b]
            else:
                A[a, a] = sqrt(max(total, 1e-15))


@_compiled
def _unite(P: Matrix, A: Matrix, scales: Vector, K: int, gain: Matrix, C: Matrix) -> None:
    """Rows (K, N) of P A^-1 and P - P A^-1 P (K, K), of a factorised A."""
    N = len(P)
    for k in range(K):
        for a in range(N):
            total = P[k, a] / scales[a]
            for b in range(a):
                total -= A[a, b] * gain[k, b]
            gain[k, a] = total / A[a, a]
        for m in range(k + 1):
            total = P[k, m]
            for a in range(N):
                total -= gain[k, a] * gain[m, a]
            C[k, m] = C[m, k] = total
    for k in range(K):
        for d in range(N):
            a = N - 1 - d
            total = gain[k, a]
            for b in range(a + 1, N):
                total -= A[b, a] * gain[k, b]
            gain[k, a] = total / A[a, a]
        for a in range(N):
            gain[k, a] /= scales[a]


@_compiled
def unite(
    values: Matrix, means: Block, covariances: Block, versions: Vector, later_means: Block,
    later_covariances: Block, later_versions: Vector, units: Vector, shares: Matrix,
    variances: Matrix, reference: Block, is_first: bool, mean: Block, spread: Block,
) -> None:  # fmt: skip
    """Add what filters of both directions know together to the mixture of models.

    Parameters
    ----------
    values : ndarray, shape (B, n)
        Measurements, which both filters know.
    means, covariances, versions, later_means, later_covariances, later_versions : ndarray
        Those of `filter_samples`, forward and backward.
    units : ndarray, shape (N,)
        Of the derivatives.
    shares, variances : ndarray, shape (B, n)
        Weight of the model, and the same times the variance of the noise.
    reference, is_first, mean : ndarray, shape (B, K, n)
        Means that differences are counted from, set by the first model, and the sum of these.
    spread : ndarray, shape (B, n, K, K)
        Sum of covariances and squared differences, lower triangle.
    """
    B, K, n = mean.shape
    N = len(units)
    P, R, A = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))
    gain, C, scales = np.zeros((K, N)), np.zeros((K, K)), np.zeros(N)
    own, other = np.zeros((N, n)), np.zeros((N, n))
    found = np.zeros((K, n))
    version = later_version = -1
    ahead = True
    for i in range(B):
        rest = max(1.0 - later_covariances[i, 0, 0], _LEAST_REST)
        if versions[i] != version or later_versions[i] != later_version:
            version, later_version = versions[i], later_versions[i]
            for a in range(N):
                for b in range(N):
                    # In the direction of time, and without the measurement itself.
                    total = later_covariances[i, a, b]
                    total += later_covariances[i, a, 0] * later_covariances[i, b, 0] / rest
                    R[a, b] = -total if (a + b) % 2 else total
                    P[a, b] = covariances[i, a, b]
                    A[a, b] = P[a, b] + R[a, b]
            _factorise(A, scales)
            # From the side that knows more.
            ahead = P[N - 1, N - 1] <= R[N - 1, N - 1]
            if ahead:
                _unite(P, A, scales, K, gain, C)
            else:
                _unite(R, A, scales, K, gain, C)
            for k in range(K):
                for m in range(k + 1):
                    C[k, m] *= units[k] * units[m]
        for c in range(n):
            missed = (values[i, c] - later_means[i, 0, c]) / rest
            for a in range(N):
                total = later_means[i, a, c] - later_covariances[i, a, 0] * missed
                if a % 2:
                    total = -total
                own[a, c] = means[i, a, c] if ahead else total
                other[a, c] = (total if ahead else means[i, a, c]) - own[a, c]
        for k in range(K):
            for c in range(n):
                found[k, c] = own[k, c]
            for a in range(N):
                for c in range(n):
                    found[k, c] += gain[k, a] * other[a, c]
            for c in range(n):
                found[k, c] *= units[k]
                if is_first:
                    reference[i, k, c] = found[k, c]
                found[k, c] -= reference[i, k, c]
                mean[i, k, c] += shares[i, c] * found[k, c]
        for c in range(n):
            share, variance = shares[i, c], variances[i, c]
            if share > 0.0:
                for k in range(K):
                    for m in range(k + 1):
                        spread[i, c, k, m] += (
                            share * found[k, c] * found[m, c] + variance * C[k, m]
                        )


@_compiled
def finish(
    reference: Block, offset: Matrix, mean: Block, spread: Block
) -> None:
    """Make means (B, K, n) and covariances (B, n, K, K) of the sums of `unite`."""
    B, K, n = mean.shape
    for i in range(B):
        for c in range(n):
            spread[i, c, 0, 0] += offset[i, c]
            for k in range(K):
                for m in range(k + 1):
                    spread[i, c, k, m] -= mean[i, k, c] * mean[i, m, c]
                    spread[i, c, m, k] = spread[i, c, k, m]
        for k in range(K):
            for c in range(n):
                mean[i, k, c] += reference[i, k, c]
