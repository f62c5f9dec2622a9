"""Errors of estimated derivatives are as large as their standard deviations say."""

import numpy as np
import pytest
from support.streams import (
    coverage,
    errors,
    point_to_point,
    rest,
    robot_motion,
    run,
    stream,
)

from hodyn_ros.trajectory import DerivativeEstimator


def test_covariance_tells_how_errors_of_the_orders_go_together():
    """Errors whitened by the factor have unit variance, more or less."""
    estimates = run(
        DerivativeEstimator(6, highest_derivative=2), *stream(robot_motion, 200, 6.0, 1e-4)
    )
    estimates = [estimate for estimate in estimates if estimate.valid_order == 2]
    truth = robot_motion(1e-9 * np.array([estimate.time for estimate in estimates]))
    whitened = [
        np.linalg.solve(estimate.factor, (estimate.motion - true[:3]).T[..., None])
        for estimate, true in zip(estimates, truth)
    ]
    size = np.sqrt(np.mean(np.square(whitened), axis=0))
    assert 0.5 <= np.median(size) <= 1.3
    assert size.max() <= 2.0


def test_noise_is_identified_for_each_component():
    noise = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-5, 1e-4])
    last = run(DerivativeEstimator(6), *stream(robot_motion, 500, 3.0, noise))[-1]
    np.testing.assert_allclose(last.noise, noise, rtol=0.25)


def rest_to_rest(t):
    """Six joints that move together and then pause, shape (N, 5, 6)."""
    return point_to_point(1.0, 1.2, 1.8)(t) * [1.2, 0.8, 0.5, 0.3, 0.1, 0.03]


@pytest.mark.parametrize(('rate', 'step'), [(100, 1e-5), (100, 1e-3), (500, 1e-4)])
def test_rounded_values_that_come_to_rest_are_covered(step, rate):
    """Values that are repeated are no new measurements."""

    def motion(t):
        return rest_to_rest(t + 1.5)

    times, values = stream(motion, rate, 9.0, 0.0, jitter=0.0)
    estimator = DerivativeEstimator(6, vouched_fraction=1e9)
    estimates = run(estimator, times, step * np.round(values / step))
    for order in range(5):
        error, std = errors(estimates[rate:], motion, order)
        assert coverage(error, std) >= 0.9, order
        assert np.sqrt(np.mean(np.square(error / std))) < 1.3, order


@pytest.mark.parametrize('step', [1e-5, 1e-4, 1e-3])
def test_start_out_of_a_rest_that_never_showed_a_step_is_covered(step):
    times, values = stream(rest_to_rest, 500, 3.0, 0.0, jitter=0.0)
    estimator = DerivativeEstimator(6)
    estimates = run(estimator, times, step * np.round(values / step))
    for order in range(3):
        error, std = errors(estimates, rest_to_rest, order)
        assert len(error) > 500
        assert coverage(error, std) >= 0.88, order
        assert np.abs(error / std).max() < 20.0, order


def test_standing_still_leaves_nothing_but_the_value():
    last = run(DerivativeEstimator(1), *stream(rest(), 200, 3.0, 1e-5))[-1]
    assert last.valid_order == 4
    assert np.all(np.abs(last.motion[1:]) <= 4.0 * last.std[1:])
    assert np.all(last.std[:, 0] <= 2.5e-3 * 10.0 ** np.arange(5))
