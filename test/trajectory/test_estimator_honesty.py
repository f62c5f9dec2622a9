"""Errors of estimated derivatives are as large as their standard deviations say."""

import numpy as np
import pytest
from support.streams import (
    coverage,
    discretised,
    errors,
    point_to_point,
    rest,
    robot_motion,
    run,
    stream,
)

from hodyn_ros.trajectory import DerivativeEstimator
from hodyn_ros.trajectory.estimator import CUTOFFS


def pooled(rate, noise, duration=5.0, runs=2, **parameters):
    """Estimates of several runs, with their errors and standard deviations of every order."""
    found = [[] for _ in range(5)]
    for seed in range(runs):
        estimator = DerivativeEstimator(6, **parameters)
        estimates = run(estimator, *stream(robot_motion, rate, duration, noise, seed))
        assert estimates
        for order in range(5):
            found[order].append(errors(estimates, robot_motion, order))
    return [
        tuple(
            np.concatenate(
                [part[i] for part in parts if len(part[i])] or [np.empty((0, 6))]
            )
            for i in (0, 1)
        )
        for parts in found
    ]


@pytest.mark.parametrize(('rate', 'noise'), [(100, 1e-6), (400, 1e-4), (100, 1e-3)])
def test_standard_deviations_are_honest_on_robot_motions(rate, noise):
    orders = pooled(rate, noise, vouched_fraction=1e9)
    for order, (error, std) in enumerate(orders):
        assert coverage(error, std) >= 0.88, order
        # Every motion by itself. Smoother motions than the model expects are estimated better than
        # it can know; never is the error much larger than it says.
        ratio = np.sqrt(np.mean(error**2, axis=0) / np.mean(std**2, axis=0))
        assert ratio.max() <= 1.5, order
        moving = ratio[:5] if order < 3 else ratio[1:5]
        assert np.exp(np.mean(np.log(moving))) >= 0.5, order


def integrated_noise(t, intensity, rng, N=6):
    """Draw from the model itself: value and derivatives (T, N), at rest in the beginning."""
    states = np.zeros((len(t), N))
    for i in range(1, len(t)):
        F, Q = discretised(N, t[i] - t[i - 1])
        scale = (t[i] - t[i - 1]) ** (N - np.arange(N))
        L = np.linalg.cholesky(Q / np.outer(scale, scale) + 1e-15 * np.eye(N))
        noise = scale * (L @ rng.standard_normal(N))
        states[i] = F @ states[i - 1] + np.sqrt(intensity) * noise
    return states


def test_standard_deviations_are_exact_where_the_model_is():
    # Intensity of the bank's model at 20.9 rad/s for this noise and rate.
    rate, noise, found = 200, 1e-3, [[], [], [], [], []]
    intensity = CUTOFFS[4] ** 12 * noise**2 / rate
    for seed in range(6):
        rng = np.random.default_rng(seed)
        t = np.arange(600) / rate
        states = integrated_noise(t, intensity, rng)
        values = states[:, :1] + noise * rng.standard_normal((600, 1))
        estimator = DerivativeEstimator(1, noise=noise, vouched_fraction=1e6)
        for estimate in run(estimator, [5_000_000 * i for i in range(600)], values):
            i = round(estimate.time / 5_000_000)
            for order in range(5):
                error = estimate.motion[order, 0] - states[i, order]
                found[order].append(error / estimate.std[order, 0])
    for order in range(5):
        assert 0.75 <= np.sqrt(np.mean(np.square(found[order]))) <= 1.45, order


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
