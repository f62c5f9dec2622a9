"""Long curves are drawn with fewer samples that look the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros.plotting.report import extreme_samples


@given(
    seed=st.integers(0, 2**32 - 1), N=st.integers(1, 3000), n_stretches=st.integers(1, 50)
)
def test_extremes_ends_and_bound_hold_for_any_curve(seed, N, n_stretches):
    values = np.random.default_rng(seed).normal(size=(N, 1)).cumsum(axis=0)
    shown = extreme_samples(values, n_stretches)
    assert np.all(np.diff(shown) > 0)
    assert (shown[0], shown[-1]) == (0, N - 1)
    assert values[shown].max() == values.max()
    assert values[shown].min() == values.min()
    assert len(shown) <= 2 * n_stretches + 2


def test_every_stretch_shows_the_range_of_all_its_samples():
    values = np.random.default_rng(3).normal(size=(20_000, 2))
    shown = extreme_samples(values, 100)
    for number in range(100):
        everything = values[200 * number : 200 * (number + 1)]
        seen = values[shown[shown // 200 == number]]
        np.testing.assert_array_equal(seen.min(axis=0), everything.min(axis=0))
        np.testing.assert_array_equal(seen.max(axis=0), everything.max(axis=0))


def test_a_gap_of_one_sample_stays_a_gap():
    values = np.cos(np.linspace(0.0, 9.0, 10_000))[:, None]
    values[[4321, 4322, 8000]] = np.nan
    shown = extreme_samples(values, 50)
    assert np.isnan(values[shown]).sum() == 2
    assert np.nanmax(values[shown]) == np.nanmax(values)
