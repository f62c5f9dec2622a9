"""The bank of Kalman filters against exact inference by other means."""

import numpy as np
import pytest
from scipy.interpolate import BPoly
from support.streams import discretised, posterior

from hodyn_ros.trajectory.kalman import ModelBank, StepMatrices


@pytest.mark.parametrize('N', [2, 3, 4])
def test_smoothed_states_are_the_exact_posterior(N):
    rng = np.random.default_rng(N)
    t = np.cumsum(rng.uniform(0.1, 0.4, 20))
    values = 3.0 * rng.standard_normal(20)
    cutoff, period, copied = 2.0, 0.25, 13
    bank = ModelBank(np.array([cutoff]), 1, N, 2)
    bank.start(round(1e9 * t[0]), values[:1])
    for i in range(1, 20):
        bank.predict(round(1e9 * t[i]), period)
        bank.measure(values[i : i + 1])
        if i in (copied, copied + 4):
            bank.copy()
    means, covariances = posterior(t, values, N, cutoff ** (2 * N) * period)
    for i in (copied, 19):
        time = round(1e9 * t[i])
        scale = np.sqrt(np.diag(covariances[i]))
        missed = bank.means(time, N)[0, 0] - means[i]
        np.testing.assert_allclose(missed / scale, 0.0, atol=1e-5)
        spread = bank.covariances(time, N)[0] - covariances[i]
        np.testing.assert_allclose(spread / np.outer(scale, scale), 0.0, atol=1e-5)


@pytest.mark.parametrize('N', [2, 4, 6])
@pytest.mark.parametrize('step', [0.05, 1.0, 3.0])
def test_step_matrices_match_the_matrix_exponential(N, step):
    F, Q = StepMatrices(N).matrices(np.array([step]))
    expected_F, expected_Q = discretised(N, step)
    np.testing.assert_allclose(F[0], expected_F, rtol=1e-12, atol=1e-14)
    # The block exponential is accurate relative to its largest entry.
    np.testing.assert_allclose(Q[0], expected_Q, rtol=1e-6, atol=1e-12 * expected_Q.max())


@pytest.mark.parametrize('u', [0.1, 0.5, 0.83])
def test_bridge_interpolates_like_a_hermite_polynomial(u):
    N, rng = 6, np.random.default_rng(0)
    ends = rng.standard_normal((2, N))
    curve = BPoly.from_derivatives([0.0, 1.0], ends)
    expected = [curve(u)] + [curve.derivative(k)(u) for k in range(1, N)]
    found = StepMatrices(N).bridge_weights(u, N) @ ends.ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize('u', [0.25, 0.5, 0.9])
def test_bridge_spreads_as_conditioning_on_both_ends_says(u):
    N = 3
    F1, Q1 = discretised(N, u)
    F2, Q2 = discretised(N, 1.0 - u)
    cross = Q1 @ F2.T
    expected = Q1 - cross @ np.linalg.solve(F2 @ Q1 @ F2.T + Q2, cross.T)
    spread = StepMatrices(N).bridge_spread(u, N)
    np.testing.assert_allclose(spread, expected, rtol=1e-7, atol=1e-9)
