"""Extreme positions of motions: nothing between samples is missed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros.trajectory import fit_spline, jtc_motion, position_extremes


def extremes_from_roots(motion):
    """Lowest and highest positions from the roots of the velocity of every segment."""
    n = motion.expansions.shape[-1]
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    for h, (start, _) in zip(np.diff(motion.times), motion.expansions):
        for joint in range(n):
            # From derivatives at the start to a polynomial of the part of the segment.
            scaled = start[:, joint] * h ** np.arange(len(start))
            factorials = np.cumprod([1.0, *range(1, len(start))])
            position = np.polynomial.Polynomial(scaled / factorials)
            velocity = np.trim_zeros(position.deriv().coef[::-1], 'f')
            roots = np.roots(velocity) if len(velocity) else np.empty(0)
            real = roots.real[np.abs(roots.imag) < 1e-6]
            x = np.concatenate([[0.0, 1.0], np.clip(real, 0.0, 1.0)])
            lowest[joint] = min(lowest[joint], position(x).min())
            highest[joint] = max(highest[joint], position(x).max())
    return lowest, highest


@st.composite
def narrow_bumps(draw):
    """A segment whose velocity has up to four pairs of roots close to each other."""
    roots = draw(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=4))
    gap = 10.0 ** draw(st.floats(-6.0, -0.5))
    velocity = np.polynomial.Polynomial.fromroots([r for x in roots for r in (x, x + gap)])
    return velocity.integ() * draw(st.sampled_from([-1.0, 1.0]))


@given(narrow_bumps())
def test_narrow_bumps_between_samples_are_found(position):
    states = [position.deriv(k)(np.array([0.0, 1.0]))[:, None] for k in range(5)]
    ends = np.array([[row[i] for row in states[1:]] for i in (0, 1)])
    motion = fit_spline([0.0, 1.0], states[0], start=ends[0], end=ends[1])
    extremes = position_extremes(motion)
    lowest, highest = extremes_from_roots(motion)
    size = np.abs(motion.expansions[..., 0]).max() * 1e-9 + 1e-13
    np.testing.assert_allclose(extremes.highest, highest, atol=size, rtol=0)
    np.testing.assert_allclose(extremes.lowest, lowest, atol=size, rtol=0)


def test_known_extremes_of_a_parabola():
    """A cubic segment with its vertex at a third of its time."""
    motion = jtc_motion([1.0, 4.0], [[0.0, 0.0], [-3.0, 3.0]], [[2.0, -2.0], [-4.0, 4.0]])
    extremes = position_extremes(motion)
    np.testing.assert_allclose(extremes.highest, [1.0, 3.0], rtol=1e-14)
    np.testing.assert_allclose(extremes.lowest, [-3.0, -1.0], rtol=1e-14)
    np.testing.assert_allclose(extremes.highest_time, [2.0, 4.0], rtol=1e-14)
    np.testing.assert_allclose(extremes.lowest_time, [4.0, 2.0], rtol=1e-14)


def test_corners_of_straight_lines_are_extremes():
    motion = jtc_motion([0.0, 1.0, 3.0, 4.0], [[0.0], [2.0], [-1.0], [0.5]])
    extremes = position_extremes(motion)
    assert extremes.highest == [2.0]
    assert extremes.highest_time == [1.0]
    assert extremes.lowest == [-1.0]
    assert extremes.lowest_time == [3.0]
