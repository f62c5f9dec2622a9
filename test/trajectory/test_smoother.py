"""The smoother against a dense solution of its model, and its deviations against known errors."""

import numpy as np
import pytest
from support.streams import point_to_point, posterior, sinusoid

from hodyn_ros.errors import MotionError
from hodyn_ros.trajectory import Smoother, smooth


# Slower models leave the dense solution fewer digits.
@pytest.mark.parametrize(
    'kind, jitter, cutoff, tolerance',
    [('white', 0.0, 8.0, 1e-6), ('white', 0.4, 8.0, 1e-6), ('correlated', 0.0, 4.0, 1e-4)],
)
def test_estimates_are_the_exact_posterior_at_every_sample(kind, jitter, cutoff, tolerance):
    rng = np.random.default_rng(1)
    t = 1.0 + 0.1 * (np.arange(120) + jitter * rng.uniform(-0.5, 0.5, 120))
    t[70:] += 0.4  # a gap, over which the deviations grow
    stamps = np.rint(1e9 * t).astype(np.int64)
    values = 3.0 * rng.standard_normal((120, 2))
    if kind == 'correlated':
        values[:, 1] = np.cumsum(values[:, 1])
    options = {'highest_derivative': 2, 'noise': 1.0, 'bandwidth': cutoff / (2.0 * np.pi)}
    found = smooth(stamps, values, **options)
    correlation = Smoother(stamps, values, **options).correlation
    assert correlation[0] == 0.0 and (correlation[1] > 0.0) == (kind == 'correlated')
    period = np.median(np.diff(1e-9 * stamps))
    for c in range(2):
        # Time in units of the cut-off, for the sake of rounding.
        mean, covariance = posterior(
            cutoff * 1e-9 * (stamps - stamps[0]),
            values[:, c] - values[0, c],
            4,
            cutoff * period,
            cutoff * correlation[c],
        )
        units = cutoff ** np.arange(4.0)
        mean, covariance = mean * units, covariance * np.outer(units, units)
        scale = np.sqrt(np.einsum('ikk->ik', covariance))[:, :3]
        mean[:, 0] += values[0, c]
        np.testing.assert_allclose(
            (found.motion[:, :, c] - mean[:, :3]) / scale, 0.0, atol=tolerance
        )
        outer = scale[:, :, None] * scale[:, None]
        np.testing.assert_allclose(
            (found.covariance[:, c] - covariance[:, :3, :3]) / outer, 0.0, atol=tolerance
        )
    std = found.std[:, 0, 0]
    assert std[69] > 1.05 * std[40] and std[0] > 1.5 * std[40]


def recording(kind, rate, seed, duration=6.0):
    """Times and measured values (N, 4) of moving and resting joints."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(rate * duration)) / rate + rng.uniform(0.0, 3.0)
    curves = (sinusoid(0.2), sinusoid(0.7), point_to_point(), point_to_point(0.3, 1.5, 0.5))
    truth = np.concatenate([curve(t) for curve in curves], axis=2)
    noise = rng.standard_normal(truth[:, 0].shape)
    if kind == 'correlated':
        rho = np.exp(-1.0 / 3.0)
        for i in range(1, len(noise)):
            noise[i] = rho * noise[i - 1] + np.sqrt(1.0 - rho**2) * noise[i]
    return np.rint(1e9 * t).astype(np.int64), truth[:, 0] + 1e-4 * noise


def test_noise_and_its_memory_are_identified():
    found = Smoother(*recording('correlated', 250, 0, 20.0))
    np.testing.assert_allclose(found.noise, 1e-4, rtol=0.25)
    np.testing.assert_allclose(found.correlation, 3.0 / 250.0, rtol=0.8)
    white = Smoother(*recording('white', 250, 0))
    np.testing.assert_allclose(white.noise, 1e-4, rtol=0.1)


def test_single_wrong_values_have_no_effect_and_are_counted():
    stamps, values = recording('white', 250, 3)
    right = smooth(stamps, values)
    wrong = values.copy()
    wrong[[100, 700, 1200], [0, 2, 1]] += [0.05, -0.002, 1.0]
    found = Smoother(stamps, wrong)
    assert found.outliers == 3
    motion = np.concatenate([part.motion for part in found.blocks()])
    assert (np.abs(motion - right.motion) < right.std).all()


def test_a_recording_that_stands_still_has_no_motion_and_honest_deviations():
    found = smooth(4_000_000 * np.arange(1000), np.full((1000, 1), 0.3))
    np.testing.assert_allclose(found.motion[:, 1:], 0.0, atol=1e-9)
    assert (found.std > 0.0).all()


@pytest.mark.every_case
@pytest.mark.parametrize(
    'times, values, options, message',
    [
        ([0.0, 1.0], [[0.0], [1.0]], {}, 'times are of shape'),
        ([5, 5], [[0.0], [1.0]], {}, 'times do not increase'),
        ([0, 5], [[0.0], [np.nan]], {}, 'values'),
        ([0, 5], [[0.0], [1.0]], {'bandwidth': 0.0}, 'bandwidth'),
        ([0, 5], [[0.0], [1.0]], {'highest_derivative': 0}, 'highest_derivative'),
    ],
)
def test_what_cannot_be_smoothed_is_refused(times, values, options, message):
    with pytest.raises(MotionError, match=message):
        smooth(times, values, **options)
