"""Extreme positions of motions: nothing between samples is missed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros.trajectory import fit_spline, jtc_motion, position_extremes


@given(
    st.lists(st.floats(0.001, 0.99), min_size=1, max_size=4),
    st.floats(-6.0, -2.0),
    st.sampled_from([-1.0, 1.0]),
)
def test_narrow_bumps_between_samples_are_found(places, exponent, sign):
    """The velocity has up to four pairs of roots close to each other."""
    roots = [root for x in places for root in (x, x + 10.0**exponent)]
    position = sign * np.polynomial.Polynomial.fromroots(roots).integ()
    states = np.array([position.deriv(k)(np.array([0.0, 1.0])) for k in range(5)])[
        ..., None
    ]
    motion = fit_spline([0.0, 1.0], states[0], start=states[1:, 0], end=states[1:, 1])
    extremes = position_extremes(motion)
    expected = position(np.array([0.0, 1.0, *roots]))
    size = np.abs(states).max() * 1e-9 + 1e-13
    np.testing.assert_allclose(extremes.highest, [expected.max()], atol=size, rtol=0)
    np.testing.assert_allclose(extremes.lowest, [expected.min()], atol=size, rtol=0)


def test_corners_of_straight_lines_are_extremes():
    motion = jtc_motion([0.0, 1.0, 3.0, 4.0], [[0.0], [2.0], [-1.0], [0.5]])
    extremes = position_extremes(motion)
    assert extremes.highest == [2.0]
    assert extremes.highest_time == [1.0]
    assert extremes.lowest == [-1.0]
    assert extremes.lowest_time == [3.0]
