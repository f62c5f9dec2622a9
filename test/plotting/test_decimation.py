"""Long curves are drawn with fewer samples that look the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros.plotting.panels import extreme_samples


def test_short_curves_keep_all_samples():
    np.testing.assert_array_equal(
        extreme_samples(np.sin(np.arange(42.0)), 20), np.arange(42)
    )


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


def test_no_peak_of_a_single_sample_is_lost():
    values = np.sin(np.linspace(0.0, 20.0, 100_000))
    peaks = np.arange(17, 100_000, 1009)
    values[peaks] = 3.0 + np.arange(len(peaks)) / 100.0
    shown = extreme_samples(values, 200)
    assert set(peaks) <= set(shown.tolist())
    assert len(shown) <= 402


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


def test_points_of_a_plane_curve_keep_the_extremes_of_both_coordinates():
    angle = np.linspace(0.0, 300.0, 50_000)
    points = np.stack([np.cos(angle) * angle, np.sin(1.1 * angle) * angle], axis=-1)
    shown = extreme_samples(points, 150)
    np.testing.assert_array_equal(points[shown].max(axis=0), points.max(axis=0))
    np.testing.assert_array_equal(points[shown].min(axis=0), points.min(axis=0))
    assert len(shown) <= 4 * 150 + 2


def test_a_gap_of_one_sample_stays_a_gap():
    values = np.cos(np.linspace(0.0, 9.0, 10_000))
    values[[4321, 4322, 8000]] = np.nan
    shown = extreme_samples(values, 50)
    assert np.isnan(values[shown]).sum() == 2
    assert np.nanmax(values[shown]) == np.nanmax(values)


def test_a_curve_that_is_unknown_at_first_and_then_known_is_shown_where_it_is_known():
    values = np.full(10_000, np.nan)
    values[6000:] = np.arange(4000.0)
    shown = extreme_samples(values, 50)
    known = shown[~np.isnan(values[shown])]
    assert (known.min(), known.max()) == (6000, 9999)
