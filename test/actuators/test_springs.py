"""Laws of springs: forwards, backwards, their derivatives, and what may be given as one."""

from fractions import Fraction
from math import factorial, perm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros.actuators import (
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    Spring,
    TableSpring,
)
from hodyn_ros.errors import ActuatorError, DeflectionError, HodynError

SINH = 25.0 * np.sinh(4.0 * np.linspace(-0.3, 0.5, 17))

# Each with the coefficients of its law, from the constant one on.
CLOSED_FORMS = {
    'linear': (LinearSpring(350.0, 0.4), [0, 350]),
    'hardening': (CubicSpring(120.0, 3000.0, 0.4), [0, 120, 0, 3000]),
    'softening': (CubicSpring(120.0, -200.0, 0.4), [0, 120, 0, -200]),
    'cubic without a cubic part': (CubicSpring(120.0, 0.0), [0, 120]),
    'polynomial': (
        PolynomialSpring((80.0, -60.0, 500.0, 20.0, 900.0), 0.4),
        [0, 80, -60, 500, 20, 900],
    ),
    'polynomial without range': (PolynomialSpring((80.0, 0.0, 500.0)), [0, 80, 0, 500]),
}
SPRINGS = {name: spring for name, (spring, _) in CLOSED_FORMS.items()}
SPRINGS['table'] = TableSpring(np.linspace(-0.3, 0.5, 17), SINH)
SPRINGS['coarse table'] = TableSpring(
    (-0.4, -0.1, 0.0, 0.02, 0.5), (-90.0, -1.0, 0.0, 30.0, 31.0)
)
EACH = pytest.mark.parametrize('spring', SPRINGS.values(), ids=SPRINGS)


def deflections(spring, count=41):
    lower, upper = np.clip(spring.range, -2.0, 2.0)
    return np.linspace(lower, upper, count)


@pytest.mark.parametrize(('spring', 'law'), CLOSED_FORMS.values(), ids=CLOSED_FORMS)
def test_derivatives_are_those_of_the_law(spring, law):
    for x in (-0.375, -0.03125, 0.0, 0.25):
        expected = [
            float(
                sum(
                    perm(i, j) * c * Fraction(x) ** (i - j)
                    for i, c in enumerate(law)
                    if i >= j
                )
            )
            for j in range(7)
        ]
        found = spring.derivatives(np.array(x), 6)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(('spring', 'law'), CLOSED_FORMS.values(), ids=CLOSED_FORMS)
def test_time_derivatives_are_those_of_the_composed_function(spring, law):
    # Both are polynomials in time, which are multiplied in rational numbers.
    motion = [
        Fraction(1, 10),
        Fraction(-3, 8),
        Fraction(1, 2),
        Fraction(5, 4),
        Fraction(-2),
        7,
        9,
    ]

    def product(f, g):
        return [sum(f[i] * g[k - i] for i in range(k + 1)) for k in range(7)]

    composed, power = [Fraction(0)] * 7, [Fraction(1)] + [Fraction(0)] * 6
    for coefficient in law:
        composed = [a + coefficient * b for a, b in zip(composed, power)]
        power = product(power, motion)
    deflection, torque = (
        np.array([float(c * factorial(k)) for k, c in enumerate(series)])
        for series in (motion, composed)
    )
    np.testing.assert_allclose(spring.series(deflection), torque, rtol=1e-12)
    np.testing.assert_allclose(spring.deflection_series(torque), deflection, rtol=1e-10)


@EACH
def test_inverse_undoes_the_law_up_to_the_ends_of_the_range(spring):
    x = deflections(spring)
    torque = spring.derivatives(x, 0)[:, 0]
    steepness = spring.derivatives(x, 1)[:, 1]
    rounding = 1e-14 * np.abs(torque).max() / steepness + 1e-15
    assert np.all(np.abs(spring.deflection(torque) - x) <= rounding)


@EACH
def test_leading_axes_do_not_matter(spring):
    low, high = np.clip(spring.torque_range, -20.0, 20.0)
    torque = np.linspace(low, high, 24).reshape(2, 3, 4)
    together = spring.deflection_series(torque)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(
            spring.deflection_series(torque[index]), together[index], rtol=1e-12, atol=1e-15
        )
    assert spring.deflection(3.0).shape == ()


def test_table_passes_through_its_points():
    x = np.linspace(-0.3, 0.5, 17)
    spring = TableSpring(x, SINH)
    np.testing.assert_allclose(spring.derivatives(x, 0)[:, 0], SINH, rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(spring.deflection(SINH), x, rtol=1e-13, atol=1e-15)
    assert spring.range == (-0.3, 0.5)
    assert spring.torque_range == (SINH[0], SINH[-1])


@pytest.mark.parametrize('name', ['table', 'coarse table'])
def test_table_has_two_continuous_derivatives(name):
    spring = SPRINGS[name]
    knots = np.array(spring.deflections[1:-1])
    below = spring.derivatives(np.nextafter(knots, -1.0), 2)
    above = spring.derivatives(knots, 2)
    scale = np.abs(spring.derivatives(np.linspace(*spring.range, 500), 2)).max(axis=0)
    assert np.all(np.abs(below - above) <= 1e-9 * scale)


def test_error_of_a_smooth_table_falls_with_the_fourth_power_of_the_distance_of_its_points():
    def error(count):
        x = np.linspace(-0.4, 0.4, count)
        between = np.linspace(-0.3, 0.3, 1001)
        values = TableSpring(x, np.sinh(4.0 * x)).derivatives(between, 0)[:, 0]
        return np.abs(values - np.sinh(4.0 * between)).max()

    assert error(41) / error(81) == pytest.approx(16.0, rel=0.15)


@given(
    st.lists(
        st.tuples(st.floats(1e-4, 10.0), st.floats(1e-4, 1e4)), min_size=1, max_size=12
    ),
    st.floats(-5.0, 5.0),
)
def test_every_increasing_table_gives_an_increasing_spline(steps, start):
    x, y = np.cumsum([(start, 10.0 * start), *steps], axis=0).T
    spring = TableSpring(x, y)
    fine = np.unique(np.concatenate([np.linspace(a, b, 60) for a, b in zip(x, x[1:])]))
    assert np.all(spring.derivatives(fine, 1)[:, 1] > 0.0)
    torque = np.linspace(y[0], y[-1], 50)
    back = spring.derivatives(spring.deflection(torque), 0)[:, 0]
    # The inverse is exact to rounding of the deflection.
    slope = spring.derivatives(fine, 1)[:, 1].max()
    rounding = 1e-13 * (np.abs(y).max() + slope * np.abs(x).max())
    assert np.all(np.abs(back - torque) <= rounding)


@given(
    st.floats(1e-2, 1e6),
    st.floats(0.0, 1e9),
    st.floats(-1e5, 1e5, allow_subnormal=False),
)
def test_hardening_spring_is_inverted_for_all_torques(stiffness, cubic, torque):
    for spring in (
        CubicSpring(stiffness, cubic),
        PolynomialSpring((stiffness, 0.0, cubic)),
    ):
        x = float(spring.deflection(torque))
        force = stiffness * x + cubic * x**3
        assert force == pytest.approx(torque, rel=1e-13, abs=1e-300)


class Exponential(Spring):
    """A law as users may write one."""

    def __init__(self, *ends):
        self._ends = ends

    @property
    def range(self):
        return self._ends

    def derivatives(self, deflection, order):
        result = np.repeat(np.exp(deflection)[..., None], order + 1, axis=-1)
        result[..., 0] += deflection
        result[..., 1:2] += 1.0
        return result


@pytest.mark.parametrize(
    'ends', [(-90.0, 9.0), (-np.inf, 9.0), (-90.0, np.inf), (-np.inf, np.inf)]
)
def test_law_of_ones_own_needs_range_and_derivatives_only(ends):
    spring = Exponential(*ends)
    x = np.array([-88.0, -3.0, -1e-3, 0.0, 0.5, 8.0])
    np.testing.assert_allclose(spring.deflection(np.exp(x) + x), x, rtol=1e-13, atol=1e-15)
    torque = np.array([np.exp(0.5) + 0.5, 1.0, -2.0])
    slope = np.exp(0.5) + 1.0
    expected = [0.5, 1.0 / slope, (-2.0 - np.exp(0.5) / slope**2) / slope]
    np.testing.assert_allclose(spring.deflection_series(torque), expected, rtol=1e-13)
    with pytest.raises(DeflectionError):
        Exponential(-1.0, 1.0).deflection(np.exp(1.1) + 1.1)


@pytest.mark.parametrize(
    ('spring', 'torque', 'deflection'),
    [
        (LinearSpring(100.0, 0.2), 20.5, 0.21),
        (CubicSpring(100.0, 50.0, 0.2), -20.6, -0.21),
        (PolynomialSpring((100.0, 20.0), 0.2), 20.9, 0.21),
        (TableSpring((-0.1, 0.0, 0.2), (-5.0, 0.0, 9.0)), -5.1, 0.21),
    ],
)
def test_what_is_out_of_range_is_refused_with_value_and_range(spring, torque, deflection):
    with pytest.raises(
        DeflectionError, match=rf'torque of {torque}.*it\s+reaches'
    ) as caught:
        spring.deflection(np.array([[0.0, 1.0], [torque, torque]]))
    assert caught.value.sample == (1, 0)
    assert caught.value.joint == ''
    with pytest.raises(DeflectionError, match='sample'):
        spring.deflection_series(np.array([[torque, 0.0, 0.0]]))
    with pytest.raises(DeflectionError, match=f'deflection of {deflection}'):
        spring.series(np.array([deflection, 1.0]))
    assert isinstance(caught.value, HodynError)


def test_ends_of_the_range_are_within_it_and_nan_is_not():
    spring = LinearSpring(3.0, 0.1)
    assert spring.deflection(3.0 * 0.1) == 0.1
    assert spring.deflection(-3.0 * 0.1 * (1.0 + 1e-15)) == -0.1
    with pytest.raises(DeflectionError, match='nan'):
        spring.deflection(np.nan)


@pytest.mark.parametrize('bad', [0.0, -1.0, np.nan, 'soft', None, True, [1.0, 2.0]])
@pytest.mark.parametrize('make', [LinearSpring, lambda k: CubicSpring(k, 1.0)])
def test_stiffness_that_is_not_positive_is_refused(make, bad):
    with pytest.raises(ActuatorError, match='stiffness is .* above 0'):
        make(bad)


@pytest.mark.parametrize(
    ('make', 'reason'),
    [
        (lambda: LinearSpring(np.inf), 'stiffness is inf, expected a finite number'),
        (lambda: LinearSpring(1.0, 0.0), 'max_deflection is 0.0'),
        (lambda: CubicSpring(100.0, -100.0), 'does not increase .* slope is -inf'),
        (lambda: CubicSpring(100.0, -100.0, 0.6), 'slope is -8 at a deflection of -0.6'),
        (lambda: CubicSpring(100.0, np.nan), 'cubic is'),
        (lambda: PolynomialSpring(()), 'at least one'),
        (lambda: PolynomialSpring((0.0, 0.0)), 'at least one'),
        (lambda: PolynomialSpring((1.0, np.inf)), 'array of coefficients holds inf'),
        (lambda: PolynomialSpring('stiff'), 'coefficients is not an array of numbers'),
        (lambda: PolynomialSpring((-1.0,)), 'does not increase'),
        (lambda: PolynomialSpring((0.0, 0.0, 1.0)), 'does not increase .* slope is 0'),
        (lambda: PolynomialSpring((10.0, 1.0)), 'slope is -inf'),
        (lambda: PolynomialSpring((10.0, 0.0, -1.0)), 'slope is -inf'),
        (lambda: PolynomialSpring((10.0, 100.0), 0.1), 'at a deflection of -0.1'),
        # Increasing at both ends and at zero, but not in between.
        (lambda: PolynomialSpring((1.0, -10.0, 30.0), 0.5), 'does not increase'),
        (lambda: TableSpring((0.0, 1.0), (0.0, 0.0)), 'torques must increase strictly'),
        (lambda: TableSpring((0.0, 2.0, 1.0), (0.0, 1.0, 2.0)), 'number 3 is 1 after 2'),
        (lambda: TableSpring((0.0, 1.0), (0.0, 1.0, 2.0)), '2 deflections and 3 torques'),
        (lambda: TableSpring((0.0,), (0.0,)), 'at least two'),
        (lambda: TableSpring((0.0, np.nan), (0.0, 1.0)), 'array of deflections holds nan'),
        (lambda: TableSpring(((0.0, 1.0),), (0.0, 1.0)), 'deflections are'),
        (lambda: TableSpring('table', (0.0, 1.0)), 'deflections is not an array'),
        (lambda: TableSpring((0.0, 1e-320), (0.0, 1.0)), 'slopes from inf'),
        (lambda: TableSpring((-1e308, 1e308), (0.0, 1.0)), 'too far apart'),
        (
            lambda: TableSpring((0.0, 1e-200, 1.0), (0.0, 1e100, 2e100)),
            'too close together',
        ),
    ],
)
def test_law_that_cannot_be_used_is_refused_with_the_reason(make, reason):
    with pytest.raises(ActuatorError, match=reason):
        make()


def test_springs_are_values():
    assert LinearSpring(1.0) == LinearSpring(1)
    assert PolynomialSpring([1.0, 0.0, 2.0, 0.0]) == PolynomialSpring((1.0, 0.0, 2.0))
    assert len({TableSpring((0, 1), (0, 1)), TableSpring((0.0, 1.0), (0.0, 1.0))}) == 1
    with pytest.raises(AttributeError):
        LinearSpring(1.0).stiffness = 2.0
