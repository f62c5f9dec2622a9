"""Compiled loops of the smoother (see `smoother`): filters in both directions, and their mixture.

States are in the units of `kalman`: time is multiplied by the cut-off of the model, and variances
are in units of that of the measurement noise. All components share covariances. Their means lie
side by side, `WIDTH` of them in one register: those of the derivative k and of the components from
g WIDTH on are `X[(g N + k) WIDTH:][:WIDTH]`.

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

Track = tuple[Matrix, Block, Vector]
"""Means (B, n N) at B samples, covariances (B, N, N), and the row of the covariance of each sample
(B,): it is written once where some are equal."""

WIDTH = 4
"""Components that are computed together; there is a whole multiple of them."""

# Variance of everything before the first measurement, and from which on a model starts anew.
_PRIOR, _DIVERGED = 1e8, 1e14
# Share of a variance that a measurement leaves; less is rounding.
_LEAST_PART = 1e-12
# Steps are equal up to this share; a covariance has settled when no step changes it by more.
_SAME_STEP, _SETTLED = 1e-7, 1e-12


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Function as it is compiled: without the lock of Python, sums in any order."""
    return compiled_function(
        function, None, nogil=True, error_model='numpy', fastmath={'contract', 'reassoc'}
    )


def _inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Part of a compiled function, without the cost of a call."""
    return compiled_function(
        function,
        None,
        nogil=True,
        error_model='numpy',
        fastmath={'contract', 'reassoc'},
        forceinline=True,
    )


@_inlined
def _predict(
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
    new: float = 1.0 - memory * memory
    result: float = column[0] - memory * G[0, 0] + memory * memory * first + new
    return result


@_inlined
def _restart(states: States, value: Vector, u: float, X: Vector, P: Matrix) -> None:
    """Forget all but a measurement (n,); u: usual step, times the cut-off of the model."""
    N = len(states)
    P[:] = 0.0
    X[:] = 0.0
    for a in range(N):
        P[a, a] = _PRIOR * max(u, 1.0) ** (-2 * a)
    P[0, 0] = _PRIOR / (_PRIOR + 1.0)
    for g in range(len(value) // WIDTH):
        for c in range(WIDTH):
            X[g * N * WIDTH + c] = value[g * WIDTH + c]


@_inlined
def _discretise(
    states: States,
    taylor: Matrix,
    driven: Matrix,
    x: float,
    intensity: float,
    powers: Vector,
    F: Matrix,
    Q: Matrix,
) -> None:
    """Transition F and driven covariance Q of a step x, see `StepMatrices`; its powers (2 N,)."""
    N = len(states)
    powers[0] = 1.0
    for p in range(1, 2 * N):
        powers[p] = powers[p - 1] * x
    for a in range(N):
        for b in range(a, N):
            F[a, b] = taylor[a, b] * powers[b - a]
            Q[a, b] = intensity * driven[a, b] * powers[2 * N - 1 - a - b]


@_inlined
def _update_covariance(
    states: States,
    F: Matrix,
    Q: Matrix,
    memory: float,
    P: Matrix,
    G: Matrix,
    column: Vector,
    gain: Vector,
) -> tuple[float, bool]:
    """Covariance and Kalman gain behind a step and a measurement, see `_predict`.

    Returns
    -------
    variance : float
        Of the innovation.
    is_settled : bool
        Whether another such step would change nothing.
    """
    N = len(states)
    of_value, of_highest = P[0, 0], P[N - 1, N - 1]
    variance = _predict(states, F, Q, memory, P, G, column)
    for a in range(N):
        gain[a] = column[a] / variance
    for a in range(N):
        for b in range(a, N):
            P[a, b] -= gain[a] * column[b]
            P[b, a] = P[a, b]
    is_settled = (
        abs(P[0, 0] - of_value) <= _SETTLED * of_value
        and abs(P[N - 1, N - 1] - of_highest) <= _SETTLED * of_highest
    )
    return variance, is_settled


@_inlined
def _update_means(
    states: States,
    F: Matrix,
    gain: Vector,
    memory: float,
    value: Vector,
    last: Vector,
    X: Vector,
    innovation: Vector,
) -> None:
    """Means X (n N,) behind a step and a measurement (n,), of which `last` is the one before."""
    N = len(states)
    for g in range(len(value) // WIDTH):
        o, v = g * N * WIDTH, g * WIDTH
        for c in range(WIDTH):
            innovation[v + c] = value[v + c] - memory * (last[v + c] - X[o + c])
        for a in range(N):
            for b in range(a + 1, N):
                f = F[a, b]
                for c in range(WIDTH):
                    X[o + a * WIDTH + c] += f * X[o + b * WIDTH + c]
        for c in range(WIDTH):
            innovation[v + c] -= X[o + c]
        for a in range(N):
            f = gain[a]
            for c in range(WIDTH):
                X[o + a * WIDTH + c] += f * innovation[v + c]


@_inlined
def _sum_up(
    N: int,
    known: int,
    variance: float,
    innovation: Vector,
    place: int,
    squares: Matrix,
    logarithms: Vector,
) -> None:
    """Add an innovation to the sums of a bin, unless too few measurements are known for it."""
    is_anew = variance > _DIVERGED
    if known > N or known > 0 and is_anew:
        logarithms[place] += log(variance)
    if known > N and not is_anew:
        inverse = 1.0 / variance
        for c in range(len(innovation)):
            squares[place, c] += innovation[c] * innovation[c] * inverse


@_compiled
def filter_samples(
    states: States,
    values: Matrix,
    steps: Vector,
    backward: int,
    fresh: bool,
    model: tuple[float, float, float, Matrix, Matrix],
    state: tuple[Vector, Matrix],
    sums: tuple[Vector, Matrix, Vector],
    track: Track,
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
    backward : int
        1: from the last sample on, in reversed time; 0: forward.
    fresh : bool
        Whether nothing is known before.
    model : tuple
        Cut-off [rad/s], time constant of the noise, zero if it is white [s], intensity of the
        driving noise, and the matrices of `StepMatrices` for a step of one, shape (N, N).
    state : tuple of ndarray, shapes (n N,) and (N, N)
        Means and covariance before, replaced by those at the last sample.
    sums : tuple of ndarray, shapes (B,), (n_bins, n) and (n_bins,)
        Bins of the samples, to which squared innovations over their variances, and the logarithms
        of these, are added; nothing if these are empty.
    track : Track
        Filled with the states at the samples; nothing if it is empty.
    """
    cutoff, correlation, intensity, taylor, driven = model
    (X, P), (bins, squares, logarithms), (means, covariances, rows) = state, sums, track
    N, B = len(states), len(bins)
    F, Q, G = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))
    column, gain, powers = np.zeros(N), np.zeros(N), np.zeros(2 * N)
    innovation = np.zeros(values.shape[1])
    latest_step, memory, variance, is_settled = -1.0, 0.0, 1.0, False
    known, row = 0 if fresh else N + 2, -1
    for s in range(B):
        i = s + backward * (B - 1 - 2 * s)
        step, value, last = steps[i + backward], values[i + 1], values[i + 2 * backward]
        if known > 0:
            is_other = abs(step - latest_step) > _SAME_STEP * step
            if is_other:
                latest_step = step
                memory = exp(-step / correlation) if correlation > 0.0 else 0.0
                _discretise(states, taylor, driven, cutoff * step, intensity, powers, F, Q)
            if is_other or not is_settled:
                variance, is_settled = _update_covariance(
                    states, F, Q, memory, P, G, column, gain
                )
                row = i
        is_anew = known == 0 or variance > _DIVERGED
        if not is_anew:
            _update_means(states, F, gain, memory, value, last, X, innovation)
        if len(logarithms) > 0:
            _sum_up(N, known, variance, innovation, bins[i], squares, logarithms)
        if is_anew:
            _restart(states, value, intensity, X, P)
            row, is_settled, variance, known = i, False, 1.0, 0
        known += 1
        if len(rows) > 0:
            rows[i] = row
            for p in range(len(X)):
                means[i, p] = X[p]
            if row == i:
                covariances[i] = P


@_inlined
def _factorise(states: States, A: Matrix, scales: Vector) -> None:
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


@_inlined
def _gains(
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
        As `_factorise` leaves them, of the sum of both sides.
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


@_inlined
def _combine_covariances(
    states: States,
    wanted: States,
    forward: Matrix,
    backward: Matrix,
    units: Vector,
    R: Matrix,
    A: Matrix,
    scales: Vector,
    gain: Matrix,
    C: Matrix,
) -> tuple[bool, float]:
    """Gain (K, N) and covariance C (K, K) of the mean of both filters, see `_gains`.

    The backward covariance, which contains the measurement too, becomes R: without it, and in
    the direction of time.

    Returns
    -------
    is_forward : bool
        Whether the forward filter, which the gain corrects, is the one that knows more.
    inverse : float
        1 / (1 - variance of the backward value), see `_combine_means`.
    """
    N, K = len(states), len(wanted)
    inverse = 1.0 / max(1.0 - backward[0, 0], _LEAST_PART)
    for a in range(N):
        for b in range(N):
            total = backward[a, b] + backward[a, 0] * backward[b, 0] * inverse
            R[a, b] = -total if (a + b) % 2 else total
            A[a, b] = forward[a, b] + R[a, b]
    _factorise(states, A, scales)
    is_forward = forward[N - 1, N - 1] <= R[N - 1, N - 1]
    _gains(states, wanted, forward if is_forward else R, A, scales, gain, C)
    for k in range(K):
        for a in range(N):
            gain[k, a] *= units[k]
        for m in range(k + 1):
            C[k, m] *= units[k] * units[m]
    return is_forward, inverse


@_inlined
def _combine_means(
    states: States,
    wanted: States,
    g: int,
    value: Vector,
    forward: Vector,
    backward: Vector,
    column: Vector,
    inverse: float,
    is_forward: bool,
    units: Vector,
    gain: Matrix,
    early: Vector,
    late: Vector,
    found: Vector,
) -> None:
    """Means of both filters together, `found` (K WIDTH,), of the g-th WIDTH components.

    The measurement (n,) is taken out of the backward ones; `column` (N,) is the covariance of
    their states with their value.
    """
    N, K = len(states), len(wanted)
    o, v = g * N * WIDTH, g * WIDTH
    for a in range(N):
        sign = -1.0 if a % 2 else 1.0
        f = column[a] * inverse
        for c in range(WIDTH):
            p = a * WIDTH + c
            mean = backward[o + p] - f * (value[v + c] - backward[o + c])
            early[p], late[p] = forward[o + p], sign * mean
    for a in range(N * WIDTH):
        difference = late[a] - early[a]
        if not is_forward:
            early[a], difference = late[a], -difference
        late[a] = difference
    for k in range(K):
        for c in range(WIDTH):
            found[k * WIDTH + c] = units[k] * early[k * WIDTH + c]
        for a in range(N):
            f = gain[k, a]
            for c in range(WIDTH):
                found[k * WIDTH + c] += f * late[a * WIDTH + c]


@_inlined
def _add_to_mixture(
    wanted: States,
    g: int,
    found: Vector,
    C: Matrix,
    weight: Vector,
    noise: Vector,
    reference: Vector,
    mean: Vector,
    spread: Matrix,
) -> None:
    """Add a model to the mixture at one sample, see `combine`."""
    K, n, v = len(wanted), len(weight), g * WIDTH
    for k in range(K):
        for c in range(WIDTH):
            place = k * n + v + c
            found[k * WIDTH + c] -= reference[place]
            mean[place] += weight[v + c] * found[k * WIDTH + c]
    p = 0
    for k in range(K):
        for m in range(k + 1):
            f = C[k, m]
            for c in range(WIDTH):
                square = found[k * WIDTH + c] * found[m * WIDTH + c]
                spread[p, v + c] += weight[v + c] * square + noise[v + c] * f
            p += 1


@_compiled
def combine(
    states: States,
    wanted: States,
    first: int,
    last: int,
    values: Matrix,
    forward: Track,
    backward: Track,
    units: Vector,
    weighting: tuple[Matrix, Matrix, Vector, Vector],
    mixture: tuple[Vector, Matrix, Matrix, Block],
) -> None:
    """Add what the filters of both directions know together to the mixture of models.

    Parameters
    ----------
    states, wanted : tuple of int
        Of the lengths N and K.
    first, last : int
        Samples from the first to before the last, of B.
    values : ndarray, shape (B, n)
        Measurements, which both filters know.
    forward, backward : Track
        Of `filter_samples`.
    units : ndarray, shape (N,)
        Of the derivatives.
    weighting : tuple of ndarray, shapes (b + 1, n), (b + 1, n), (B,) and (B,)
        Weight of the model in each bin, the same times the variance of the noise, the bin before
        each sample, and the part of the way to the next one.
    mixture : tuple of ndarray, shapes (B,), (B, K n), (B, K n) and (B, K (K + 1) / 2, n)
        Whether there was a model with a weight before, the means of the first one, the weighted
        sum of differences from them, and that of covariances and squared differences.
    """
    means, covariances, rows = forward
    later_means, later_covariances, later_rows = backward
    weights, variances, below, parts = weighting
    begun, reference, mean, spread = mixture
    N, K, n = len(states), len(wanted), values.shape[1]
    R, A = np.zeros((N, N)), np.zeros((N, N))
    gain, C, scales = np.zeros((K, N)), np.zeros((K, K)), np.zeros(N)
    early, late, found = np.zeros(N * WIDTH), np.zeros(N * WIDTH), np.zeros(K * WIDTH)
    weight, noise = np.zeros(n), np.zeros(n)
    row = later_row = -1
    is_forward, inverse = True, 1.0
    for i in range(first, last):
        near, part, total = below[i], parts[i], 0.0
        for c in range(n):
            weight[c] = (1.0 - part) * weights[near, c] + part * weights[near + 1, c]
            noise[c] = (1.0 - part) * variances[near, c] + part * variances[near + 1, c]
            total += weight[c]
        if total == 0.0:
            continue
        if rows[i] != row or later_rows[i] != later_row:
            row, later_row = rows[i], later_rows[i]
            is_forward, inverse = _combine_covariances(
                states,
                wanted,
                covariances[row],
                later_covariances[later_row],
                units,
                R,
                A,
                scales,
                gain,
                C,
            )
        column = later_covariances[later_row, :, 0]
        for g in range(n // WIDTH):
            _combine_means(
                states,
                wanted,
                g,
                values[i],
                means[i],
                later_means[i],
                column,
                inverse,
                is_forward,
                units,
                gain,
                early,
                late,
                found,
            )
            if not begun[i]:
                for k in range(K):
                    for c in range(WIDTH):
                        reference[i, k * n + g * WIDTH + c] = found[k * WIDTH + c]
            _add_to_mixture(
                wanted,
                g,
                found,
                C,
                weight,
                noise,
                reference[i],
                mean[i],
                spread[i],
            )
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
    """Make means (B, K, n) and covariances (B, n, K, K) of the sums of `combine`.

    `places` (c,) are the components among the n that these are the sums of; `offset` (B, n)
    is added to the variance of the value.

    Parameters
    ----------
    wanted : tuple of int
        Of the length K.
    reference, sums : ndarray, shape (B, K width)
        The means of `combine` and what is added to them.
    spread : ndarray, shape (B, K (K + 1) / 2, width)
        Of `combine`.
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
