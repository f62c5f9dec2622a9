"""How a wrench goes on after the last message."""

import numpy as np
import pytest
from scipy.interpolate import BPoly

from hodyn_ros.streams.signals import brought_to_rest, continued

W = np.random.default_rng(1).normal(size=(3, 6)) * [[1.0], [5.0], [40.0]]
DURATION = 0.7


@pytest.mark.parametrize('to_zero', [True, False])
def test_wrench_comes_to_rest_by_the_hermite_polynomial_of_degree_five_and_stays(to_zero):
    end = np.zeros((3, 6))
    end[0] = 0.0 if to_zero else W[0]
    polynomial = BPoly.from_derivatives([0.0, DURATION], [W, end])
    for time in np.linspace(0.0, DURATION, 23):
        expected = [
            polynomial.derivative(m)(time) if m else polynomial(time) for m in range(3)
        ]
        values = brought_to_rest(W, time, DURATION, to_zero)
        np.testing.assert_allclose(values, expected, atol=1e-12 * np.abs(W).max())
    for time in (DURATION, DURATION + 1e-9, 100.0):
        np.testing.assert_array_equal(brought_to_rest(W, time, DURATION, to_zero), end)


def test_held_wrench_leaves_its_value_by_no_more_than_stated():
    times = np.linspace(0.0, DURATION, 401)
    held = np.array([brought_to_rest(W, t, DURATION, False)[0] for t in times])
    bound = 16 / 81 * DURATION * np.abs(W[1]) + 0.01728 * DURATION**2 * np.abs(W[2])
    assert np.all(np.abs(held - W[0]) <= bound * (1.0 + 1e-12))


def test_wrench_is_continued_by_its_taylor_polynomial():
    times = np.array([-0.3, 0.0, 0.2])
    expected = [[W[0] + t * W[1] + t * t * W[2] / 2, W[1] + t * W[2], W[2]] for t in times]
    np.testing.assert_allclose(continued(W, times), expected, rtol=1e-14)
