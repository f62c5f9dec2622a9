"""Compiled loops of the smoother (see `smoother`): filters in both directions, and their union.

States are in the units of `kalman`: time is multiplied by the cut-off of the model, and variances
are in units of that of the measurement noise. All components share covariances; their means lie
side by side, `WIDTH` of them in one register.

Sources: Fraser and Potter, "The optimum linear smoother as a combination of two optimum linear
filters", IEEE Trans. Autom. Control 14(4), 1969; Bryson and Henrikson, "Estimation using sampled
data containing sequentially correlated noise", J. Spacecraft 5(6), 1968.
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
States = tuple[int, ...]
"""As long as there are states N, or derivatives K that are wanted, the value included: the length
of a tuple is a constant of the code that is made for it."""

WIDTH = 4
"""Components that are computed together; there is a whole multiple of them."""

# Variance of everything before the first measurement, and from which on a model starts anew.
_UNKNOWN, _LOST = 1e8, 1e14
# Share of a variance that a measurement leaves; less is rounding.
_LEAST_REST = 1e-12
# Steps are equal up to this share; a covariance has settled when no step changes it by more.
_SAME_STEP, _SETTLED = 1e-7, 1e-12


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Function as it is compiled: without the lock of Python, sums in any order."""
    return compiled_function(
        function, None, nogil=True, error_model='numpy', fastmath={'contract', 'reassoc'}
    )


@_compiled
def predict(
    states: States,
    F: Matrix,
    Q: Matrix,
    memory: float,
    P: Matrix,
    G: Matrix,
    column: Vector,
) -> float:
    """Carry a covariance over a step.

    `column` becomes the covariance of the state with the innovation, whose variance is
    returned. The noise of a measurement remembers a part of the one before, which is known
    with the state then: the innovation is y - memory y_before - (q - memory q_before).

    Parameters
    ----------
    states : tuple of int
        Of the length N.
    F, Q : ndarray, shape (N, N)
        Transition over the step, and what the driving noise adds.
    memory : float
        Correlation of the noise over the step, zero if it is white.
    P : ndarray, shape (N, N)
        Covariance, changed in place.
    G : ndarray, shape (N, N)
        Memory for F P.
    column : ndarray, shape (N,)
        Changed in place.

    Returns
    -------
    float
        Variance of the innovation, over that of the noise.
    """
    N = len(states)
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
    result: float = column[0] - memory * G[0, 0] + memory * memory * first + left
    return result


@_compiled
def forget(states: States, P: Matrix, X: Vector, value: Vector, u: float) -> None:
    """Know nothing but a measurement; u: usual step.

    Parameters
    ----------
    states : tuple of int
        Of the length N.
    P : ndarray, shape (N, N)
        Covariance, changed in place.
    X : ndarray, shape (n N,)
        State, changed in place.
    value : ndarray, shape (n,)
        The measurement.
    u : float
        Step times cut-off of the model.
    """
    N = len(states)
    P[:] = 0.0
    X[:] = 0.0
    for a in range(N):
        P[a, a] = _UNKNOWN * max(u, 1.0) ** (-2 * a)
    P[0, 0] = _UNKNOWN / (_UNKNOWN + 1.0)
    for g in range(len(value) // WIDTH):
        for c in range(WIDTH):
            X[(g * N) * WIDTH + c] = value[g * WIDTH + c]


@_compiled
def filter_samples(
    states: States,
    values: Matrix,
    steps: Vector,
    backward: bool,
    fresh: bool,
    cutoff: float,
    correlation: float,
    intensity: float,
    taylor: Matrix,
    driven: Matrix,
    X: Vector,
    P: Matrix,
    bins: Vector,
    squares: Matrix,
    logarithms: Vector,
    means: Matrix,
    covariances: Block,
    versions: Vector,
) -> None:
    """Filter samples from one end to the other.

    Parameters
    ----------
    states : tuple of int
        Of the length N.
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
    X, P : ndarray, shapes (n N,) and (N, N)
        State and covariance before, replaced by those at the last sample.
    bins, squares, logarithms : ndarray, shapes (B,), (n_bins, n) and (n_bins,)
        Squared innovations over their variances, and the logarithms of these, are added to
        the bin of their sample; nothing if `logarithms` is empty.
    means, covariances, versions : ndarray, shapes (B, n N), (B, N, N) and (B,)
        What is known with each sample; the row of its covariance, which is written once where
        some are equal. Nothing if `versions` is empty.
    """
    N = len(states)
    B, groups = len(bins), values.shape[1] // WIDTH
    F, Q, G = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))
    column, gain, missed = np.zeros(N), np.zeros(N), np.zeros(WIDTH)
    powers = np.ones(2 * N)
    latest, settled, variance, memory, inverse = -1.0, False, 1.0, 0.0, 1.0
    version, stored, row, seen = 0, -1, 0, 0 if fresh else N + 2
    counts, stores = len(logarithms) > 0, len(versions) > 0
    for s in range(B):
        i = B - 1 - s if backward else s
        step = steps[i + 1] if backward else steps[i]
        last = i + 2 if backward else i
        if seen > 0 and not settled or abs(step - latest) > _SAME_STEP * step:
            if seen > 0 and abs(step - latest) > _SAME_STEP * step:
                latest = step
                for p in range(1, 2 * N):
                    powers[p] = powers[p - 1] * (cutoff * step)
                for a in range(N):
                    for b in range(a, N):
                        F[a, b] = taylor[a, b] * powers[b - a]
                        Q[a, b] = intensity * driven[a, b] * powers[2 * N - 1 - a - b]
                memory = exp(-step / correlation) if correlation > 0.0 else 0.0
            if seen > 0:
                version += 1
                old, highest = P[0, 0], P[N - 1, N - 1]
                variance = predict(states, F, Q, memory, P, G, column)
                inverse = 1.0 / variance
                for a in range(N):
                    gain[a] = column[a] * inverse
                for a in range(N):
                    for b in range(a, N):
                        P[a, b] -= gain[a] * column[b]
                        P[b, a] = P[a, b]
                settled = (
                    abs(P[0, 0] - old) <= _SETTLED * old
                    and abs(P[N - 1, N - 1] - highest) <= _SETTLED * highest
                )
        if seen > 0 and counts and (seen > N or variance > _LOST):
            logarithms[bins[i]] += log(variance)
        if seen == 0 or variance > _LOST:
            forget(states, P, X, values[i + 1], intensity)
            version += 1
            settled, variance, seen = False, 1.0, 0
        else:
            for g in range(groups):
                o, v = g * N * WIDTH, g * WIDTH
                for c in range(WIDTH):
                    missed[c] = values[i + 1, v + c] - memory * (
                        values[last, v + c] - X[o + c]
                    )
                for a in range(N):
                    for b in range(a + 1, N):
                        f = F[a, b]
                        for c in range(WIDTH):
                            X[o + a * WIDTH + c] += f * X[o + b * WIDTH + c]
                for c in range(WIDTH):
                    missed[c] -= X[o + c]
                for a in range(N):
                    f = gain[a]
                    for c in range(WIDTH):
                        X[o + a * WIDTH + c] += f * missed[c]
                if counts and seen > N:
                    for c in range(WIDTH):
                        squares[bins[i], v + c] += missed[c] * missed[c] * inverse
        seen += 1
        if stores:
            for p in range(groups * N * WIDTH):
                means[i, p] = X[p]
            if version != stored:
                stored, row = version, i
                for a in range(N):
                    for b in range(N):
                        covariances[i, a, b] = P[a, b]
            versions[i] = row


@_compiled
def factorise(states: States, A: Matrix, scales: Vector) -> None:
    """Replace A by the lower factor of it in units of the roots of its diagonal.

    Parameters
    ----------
    states : tuple of int
        Of the length N.
    A : ndarray, shape (N, N)
        Symmetric and positive, changed in place: below the diagonal the factor, on it the
        inverse of its diagonal.
    scales : ndarray, shape (N,)
        Becomes one over the roots of the diagonal.
    """
    N = len(states)
    for a in range(N):
        scales[a] = 1.0 / sqrt(A[a, a])
    for a in range(N):
        for b in range(a + 1):
            total = A[a, b] * scales[a] * scales[b]
            for k in range(b):
                total -= A[a, k] * A[b, k]
            if b < a:
                A[a, b] = total * A[b, b]
            else:
                A[a, a] = 1.0 / sqrt(max(total, 1e-15))


@_compiled
def gains(
    states: States,
    wanted: States,
    P: Matrix,
    A: Matrix,
    scales: Vector,
    gain: Matrix,
    C: Matrix,
) -> None:
    """Rows (K, N) of P A^-1 and P - P A^-1 P (K, K), of a factorised A.

    Parameters
    ----------
    states, wanted : tuple of int
        Of the lengths N and K.
    P : ndarray, shape (N, N)
        Covariance of one side.
    A, scales : ndarray, shapes (N, N) and (N,)
        As `factorise` leaves them, of the sum of both sides.
    gain : ndarray, shape (K, N)
        Becomes P A^-1.
    C : ndarray, shape (K, K)
        Becomes P - P A^-1 P, at and below the diagonal.
    """
    N, K = len(states), len(wanted)
    for k in range(K):
        for a in range(N):
            total = P[k, a] * scales[a]
            for b in range(a):
                total -= A[a, b] * gain[k, b]
            gain[k, a] = total * A[a, a]
        for m in range(k + 1):
            total = P[k, m]
            for a in range(N):
                total -= gain[k, a] * gain[m, a]
            C[k, m] = total
    for k in range(K):
        for d in range(N):
            a = N - 1 - d
            total = gain[k, a]
            for b in range(a + 1, N):
                total -= A[b, a] * gain[k, b]
            gain[k, a] = total * A[a, a]
        for a in range(N):
            gain[k, a] *= scales[a]


@_compiled
def unite(
    states: States,
    wanted: States,
    values: Matrix,
    means: Matrix,
    covariances: Block,
    versions: Vector,
    later_means: Matrix,
    later_covariances: Block,
    later_versions: Vector,
    units: Vector,
    below: Vector,
    parts: Vector,
    shares: Matrix,
    variances: Matrix,
    begun: Vector,
    reference: Matrix,
    mean: Matrix,
    spread: Block,
) -> None:
    """Add what filters of both directions know together to the mixture of models.

    Parameters
    ----------
    states, wanted : tuple of int
        Of the lengths N and K.
    values : ndarray, shape (B, n)
        Measurements, which both filters know.
    means, covariances, versions, later_means, later_covariances, later_versions : ndarray
        Those of `filter_samples`, forward and backward.
    units : ndarray, shape (N,)
        Of the derivatives.
    below, parts : ndarray, shape (B,)
        Bin before each sample, and the part of the way to the one behind it.
    shares, variances : ndarray, shape (b, n)
        Weight of the model in each bin, and the same times the variance of the noise.
    begun : ndarray of bool, shape (B,)
        Whether there was a model with a weight before, whose means differences are counted from.
    reference, mean : ndarray, shape (B, K n)
        Means of the first model, and the sum of differences from them.
    spread : ndarray, shape (B, K (K + 1) / 2, n)
        Sum of covariances and squared differences.
    """
    N, K = len(states), len(wanted)
    B, groups = len(values), values.shape[1] // WIDTH
    n = groups * WIDTH
    P, R, A = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))
    gain, C, scales = np.zeros((K, N)), np.zeros((K, K)), np.zeros(N)
    missed, share, noise = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH)
    own, other, found = np.zeros(N * WIDTH), np.zeros(N * WIDTH), np.zeros(K * WIDTH)
    version = later_version = -1
    ahead, rest = True, 1.0
    for i in range(B):
        near, behind = below[i], parts[i]
        total = 0.0
        for j in range(n):
            total += shares[near, j] + shares[near + 1, j]
        if total == 0.0:
            continue
        if versions[i] != version or later_versions[i] != later_version:
            version, later_version = versions[i], later_versions[i]
            rest = 1.0 / max(1.0 - later_covariances[later_version, 0, 0], _LEAST_REST)
            for a in range(N):
                for b in range(N):
                    # In the direction of time, and without the measurement itself.
                    total = later_covariances[later_version, a, b]
                    total += (
                        later_covariances[later_version, a, 0]
                        * later_covariances[later_version, b, 0]
                        * rest
                    )
                    R[a, b] = -total if (a + b) % 2 else total
                    P[a, b] = covariances[version, a, b]
                    A[a, b] = P[a, b] + R[a, b]
            factorise(states, A, scales)
            # From the side that knows more.
            ahead = P[N - 1, N - 1] <= R[N - 1, N - 1]
            gains(states, wanted, P if ahead else R, A, scales, gain, C)
            for k in range(K):
                for a in range(N):
                    gain[k, a] *= units[k]
                for m in range(k + 1):
                    C[k, m] *= units[k] * units[m]
        for g in range(groups):
            o, v = g * N * WIDTH, g * WIDTH
            for c in range(WIDTH):
                share[c] = (1.0 - behind) * shares[near, v + c] + behind * shares[
                    near + 1, v + c
                ]
                noise[c] = (1.0 - behind) * variances[near, v + c]
                noise[c] += behind * variances[near + 1, v + c]
                missed[c] = (values[i, v + c] - later_means[i, o + c]) * rest
            for a in range(N):
                weight = later_covariances[later_version, a, 0]
                sign = -1.0 if a % 2 else 1.0
                for c in range(WIDTH):
                    late = later_means[i, o + a * WIDTH + c] - weight * missed[c]
                    late *= sign
                    early = means[i, o + a * WIDTH + c]
                    own[a * WIDTH + c] = early if ahead else late
                    other[a * WIDTH + c] = late - early if ahead else early - late
            for k in range(K):
                for c in range(WIDTH):
                    found[k * WIDTH + c] = units[k] * own[k * WIDTH + c]
                for a in range(N):
                    f = gain[k, a]
                    for c in range(WIDTH):
                        found[k * WIDTH + c] += f * other[a * WIDTH + c]
                for c in range(WIDTH):
                    place = k * n + v + c
                    if not begun[i]:
                        reference[i, place] = found[k * WIDTH + c]
                    found[k * WIDTH + c] -= reference[i, place]
                    mean[i, place] += share[c] * found[k * WIDTH + c]
            p = 0
            for k in range(K):
                for m in range(k + 1):
                    f = C[k, m]
                    for c in range(WIDTH):
                        spread[i, p, v + c] += (
                            share[c] * found[k * WIDTH + c] * found[m * WIDTH + c]
                            + noise[c] * f
                        )
                    p += 1
        begun[i] = True


@_compiled
def finish(
    wanted: States,
    reference: Matrix,
    sums: Matrix,
    spread: Block,
    places: Vector,
    offset: Matrix,
    mean: Block,
    covariance: Block,
) -> None:
    """Make means (B, K, n) and covariances (B, n, K, K) of the sums of `unite`.

    `places` (c,) are the components among the n that these are the sums of; `offset` (B, n)
    is added to the variance of the value.

    Parameters
    ----------
    wanted : tuple of int
        Of the length K.
    reference, sums : ndarray, shape (B, K width)
        The means of `unite` and what is added to them.
    spread : ndarray, shape (B, K (K + 1) / 2, width)
        Of `unite`.
    places : ndarray of int, shape (c,)
    offset : ndarray, shape (B, n)
        [unit^2]
    mean : ndarray, shape (B, K, n)
        Changed in place [unit/s^k].
    covariance : ndarray, shape (B, n, K, K)
        Changed in place.
    """
    K = len(wanted)
    width = spread.shape[2]
    for i in range(len(sums)):
        for c in range(len(places)):
            j = places[c]
            p = 0
            for k in range(K):
                own = sums[i, k * width + c]
                mean[i, k, j] = reference[i, k * width + c] + own
                for m in range(k + 1):
                    total = spread[i, p, c] - own * sums[i, m * width + c]
                    covariance[i, j, k, m] = covariance[i, j, m, k] = total
                    p += 1
            covariance[i, j, 0, 0] += offset[i, j]
