"""Long curves are drawn with fewer samples that look the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros.plotting.panels import extreme_samples


@given(
    seed=st.integers(0, 2**32 - 1),
    N=st.integers(1, 3000),
    n_stretches=st.integers(1, 50),
    irregular=st.booleans(),
)
def test_extremes_ends_and_bound_hold_for_any_curve(seed, N, n_stretches, irregular):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=N).cumsum()
    times = np.sort(rng.exponential(size=N).cumsum()) if irregular else None
    shown = extreme_samples(values, n_stretches, times)
    assert np.all(np.diff(shown) > 0)
    assert (shown[0], shown[-1]) == (0, N - 1)
    assert values[shown].max() == values.max()
    assert values[shown].min() == values.min()
    assert len(shown) <= 2 * n_stretches + 2


def test_every_column_of_pixels_shows_the_range_of_all_its_samples():
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.uniform(0.0, 1.0, 20_000))
    values = rng.normal(size=20_000)
    shown = extreme_samples(values, 100, times)
    column = np.floor((times - times[0]) / (times[-1] - times[0]) * 100).clip(0, 99)
    for number in range(100):
        everything = values[column == number]
        seen = values[shown][column[shown] == number]
        assert (seen.min(), seen.max()) == (everything.min(), everything.max())


def test_a_gap_of_one_sample_stays_a_gap():
    values = np.cos(np.linspace(0.0, 9.0, 10_000))
    values[[4321, 4322, 8000]] = np.nan
    shown = extreme_samples(values, 50)
    assert np.isnan(values[shown]).sum() == 2
    assert np.nanmax(values[shown]) == np.nanmax(values)
