"""Streams of measurements with known derivatives, and what an estimator makes of them.

Motions are callables from times (N,) to values and four derivatives (N, 5, n).
"""

import numpy as np
from scipy.interpolate import BPoly
from scipy.linalg import expm

SECOND = 1_000_000_000


def sinusoid(frequency, amplitude=0.5):
    w, k = 2.0 * np.pi * frequency, np.arange(5)
    return lambda t: (amplitude * w**k * np.sin(w * t[:, None] + 0.3 + 0.5 * np.pi * k))[
        ..., None
    ]


def point_to_point(distance=0.8, duration=1.0, pause=1.0):
    """Rest, move over the distance, rest, move back, ...; class C4."""
    here, there = np.zeros(5), distance * np.eye(5)[0]
    times = np.cumsum([0.0, pause, duration, pause, duration])
    curve = BPoly.from_derivatives(
        times, [here, here, there, there, here], extrapolate='periodic'
    )
    polynomials = [curve.derivative(k) if k else curve for k in range(5)]
    return lambda t: np.stack([polynomial(t) for polynomial in polynomials], 1)[..., None]


def rest(value=0.3):
    return lambda t: np.broadcast_to(value * np.eye(5, 1), (len(t), 5, 1))


def robot_motion(t):
    """Six components as robots move them, shape (N, 5, 6)."""
    parts = [sinusoid(0.2), sinusoid(0.7), sinusoid(2.0, 0.2), point_to_point()]
    parts += [point_to_point(0.3, 0.7, 1.3), rest()]
    return np.concatenate([part(t) for part in parts], axis=2)


def stamps(rate, duration, rng, jitter=0.2, first=0):
    """Stamps [ns] of a stream, and the times from its start [s]."""
    count, shift = round(rate * duration), rng.uniform(-0.5, 0.5)
    steps = np.arange(1, count + 1) + jitter * (shift + rng.uniform(-0.5, 0.5, count))
    nanoseconds = np.round(1e9 * steps / rate).astype(np.int64)
    return [first + int(ns) for ns in nanoseconds], 1e-9 * nanoseconds


def stream(motion, rate, duration, noise, seed=0, jitter=0.2, first=0):
    rng = np.random.default_rng(seed)
    times, t = stamps(rate, duration, rng, jitter, first)
    values = motion(t)[:, 0]
    return times, values + noise * rng.standard_normal(values.shape)


def run(estimator, times, values):
    found = [estimator.update(time, value) for time, value in zip(times, values)]
    return [estimate for estimate in found if estimate is not None]


def same(first, second):
    """Whether two lists of estimates agree to the last bit."""
    return len(first) == len(second) and all(
        all(np.array_equal(a, b) for a, b in zip(one, other))
        for one, other in zip(first, second)
    )


def errors(estimates, motion, order):
    """Errors and standard deviations where the order is vouched for, shape (N, n) each."""
    chosen = [estimate for estimate in estimates if estimate.valid_order >= order]
    if not chosen:
        return np.empty((0, 1)), np.empty((0, 1))
    truth = motion(1e-9 * np.array([estimate.time for estimate in chosen]))[:, order]
    found = np.array([estimate.motion[order] for estimate in chosen])
    return found - truth, np.array([estimate.std[order] for estimate in chosen])


def coverage(error, std):
    """Share of errors below two standard deviations."""
    return np.mean(np.abs(error) < 2.0 * std)


def discretised(N, step):
    """Transition and driven covariance of the N-fold integrator (Van Loan 1978)."""
    A, G = np.diag(np.ones(N - 1), 1), np.zeros((N, N))
    G[-1, -1] = 1.0
    block = expm(np.block([[-A, G], [np.zeros((N, N)), A.T]]) * step)
    F = block[N:, N:].T
    return F, F @ block[:N, N:]


def posterior(t, values, N, intensity, correlation=0.0):
    """Means and covariances (n, N, N) of all states given all values with unit noise, densely."""
    states = len(t) * N
    precision, right = np.zeros((states, states)), np.zeros(states)
    F, Q = discretised(N, 1.0)
    noise = np.eye(len(t))
    if correlation > 0.0:
        noise = np.exp(-np.abs(t[:, None] - t) / correlation)
    precision[::N, ::N] = np.linalg.inv(noise)
    right[::N] = np.linalg.solve(noise, values)
    for i in range(len(t)):
        if i:
            # Matrices of the step one, in the unit of this step: exact, whatever its length.
            h = t[i] - t[i - 1]
            unit = h ** np.arange(float(N))
            rows = np.zeros((N, states))
            rows[:, (i - 1) * N : i * N] = -F * unit
            rows[:, i * N : (i + 1) * N] = np.diag(unit)
            precision += rows.T @ np.linalg.solve(Q * intensity * h ** (2 * N - 1), rows)
    covariance = np.linalg.inv(precision)
    blocks = [slice(i * N, (i + 1) * N) for i in range(len(t))]
    mean = (covariance @ right).reshape(len(t), N)
    return mean, np.array([covariance[place, place] for place in blocks])
