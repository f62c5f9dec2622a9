"""Laws of springs: forwards, backwards, their derivatives, and what may be given as one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.power_series import Series

from hodyn_ros.actuators import (
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    TableSpring,
)
from hodyn_ros.errors import ActuatorError, DeflectionError

SINH = 25.0 * np.sinh(4.0 * np.linspace(-0.3, 0.5, 17))
# Each with the coefficients of its law, from the constant one on.
CLOSED_FORMS = [
    (PolynomialSpring((80.0, -60.0, 500.0, 20.0, 900.0), 0.4), [0, 80, -60, 500, 20, 900]),
    (LinearSpring(350.0, 0.4), [0, 350]),
    (CubicSpring(120.0, -200.0, 0.4), [0, 120, 0, -200]),
    (CubicSpring(120.0, 0.0), [0, 120]),
]
SPRINGS = [
    TableSpring((-0.4, -0.1, 0.0, 0.02, 0.5), (-90.0, -1.0, 0.0, 30.0, 31.0)),
    TableSpring(np.linspace(-0.3, 0.5, 17), SINH),
    *(spring for spring, _ in CLOSED_FORMS),
]


@pytest.mark.every_case
@pytest.mark.parametrize(('spring', 'law'), CLOSED_FORMS)
def test_time_derivatives_of_the_torque_and_back_are_those_of_the_law(spring, law):
    deflection = np.array([0.1, -0.375, 1.0, 7.5, -48.0, 840.0, 6480.0])
    expected = 0.0 * Series(deflection)
    for coefficient in law[::-1]:
        expected = expected * Series(deflection) + coefficient
    torque = expected.derivatives
    np.testing.assert_allclose(spring.series(deflection), torque, rtol=1e-12)
    np.testing.assert_allclose(spring.deflection_series(torque), deflection, rtol=1e-10)
    polynomial = np.polynomial.Polynomial(law)
    for x in (-0.375, 0.0, 0.25):
        of_law = [polynomial.deriv(m)(x) for m in range(7)]
        np.testing.assert_allclose(spring.derivatives(np.array(x), 6), of_law, rtol=1e-13)


@pytest.mark.every_case
@pytest.mark.parametrize('spring', SPRINGS)
def test_inverse_undoes_the_law_up_to_the_ends_of_the_range(spring):
    x = np.linspace(*np.clip(spring.range, -2.0, 2.0), 42).reshape(2, 3, 7)
    torque, steepness = np.moveaxis(spring.derivatives(x, 1), -1, 0)
    rounding = 1e-14 * np.abs(torque).max() / steepness + 1e-15
    assert np.all(np.abs(spring.deflection(torque) - x) <= rounding)
    assert spring.deflection(3.0).shape == ()


def test_table_passes_through_its_points_with_two_continuous_derivatives():
    for spring in SPRINGS[:2]:
        x, torques = np.array(spring.deflections), np.array(spring.torques)
        found = spring.derivatives(x, 0)[:, 0]
        np.testing.assert_allclose(found, torques, rtol=1e-14, atol=1e-13)
        below = spring.derivatives(np.nextafter(x[1:-1], -1.0), 2)
        above = spring.derivatives(x[1:-1], 2)
        scale = np.abs(spring.derivatives(np.linspace(*spring.range, 500), 2)).max(axis=0)
        assert np.all(np.abs(below - above) <= 1e-9 * scale)
        assert spring.torque_range == (torques[0], torques[-1])


@given(
    st.lists(
        st.tuples(st.floats(1e-4, 10.0), st.floats(1e-4, 1e4)), min_size=1, max_size=12
    ),
    st.floats(-5.0, 5.0),
)
def test_every_increasing_table_gives_an_increasing_spline(steps, start):
    x, y = np.cumsum([(start, 10.0 * start), *steps], axis=0).T
    fine = np.unique(np.concatenate([np.linspace(a, b, 60) for a, b in zip(x, x[1:])]))
    assert np.all(TableSpring(x, y).derivatives(fine, 1)[:, 1] > 0.0)


def test_a_table_of_points_says_any_law():
    x = np.linspace(-0.3, 0.5, 50)
    spring, between = TableSpring(x, 25.0 * np.sinh(4.0 * x)), np.linspace(-0.3, 0.5, 777)
    expected = 25.0 * np.sinh(4.0 * between)
    np.testing.assert_allclose(
        spring.derivatives(between, 0)[:, 0], expected, atol=1e-6 * 90.0
    )


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('spring', 'torque', 'deflection'),
    [
        (LinearSpring(100.0, 0.2), 20.5, 0.21),
        (PolynomialSpring((100.0, 20.0), 0.2), 20.9, 0.21),
        (TableSpring((-0.1, 0.0, 0.2), (-5.0, 0.0, 9.0)), -5.1, 0.21),
    ],
)
def test_what_is_out_of_range_is_refused_with_value_and_range(spring, torque, deflection):
    with pytest.raises(
        DeflectionError, match=rf'torque of {torque}.*it\s+reaches'
    ) as caught:
        spring.deflection(np.array([[0.0, 1.0], [torque, torque]]))
    assert (caught.value.sample, caught.value.joint) == ((1, 0), '')
    with pytest.raises(DeflectionError, match=f'deflection of {deflection}'):
        spring.series(np.array([deflection, 1.0]))
    with pytest.raises(DeflectionError, match='nan'):
        spring.deflection(np.nan)
    for end, limit in zip(spring.torque_range, spring.range):
        assert spring.deflection(end) == pytest.approx(limit, rel=1e-12)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('make', 'reason'),
    [
        (
            lambda: LinearSpring(np.inf),
            'stiffness is inf, expected a finite number above 0',
        ),
        (lambda: LinearSpring(1.0, 0.0), 'max_deflection is 0.0'),
        (lambda: CubicSpring(100.0, -100.0), 'does not increase .* slope is -inf'),
        (lambda: CubicSpring(100.0, -100.0, 0.6), 'slope is -8 at a deflection of -0.6'),
        # Increasing at both ends and at zero, but not in between.
        (lambda: PolynomialSpring((1.0, -10.0, 30.0), 0.5), 'does not increase'),
        (lambda: TableSpring((0.0, 1.0), (0.0, 0.0)), 'torques must increase strictly'),
        (lambda: TableSpring((0.0, 2.0, 1.0), (0.0, 1.0, 2.0)), 'number 3 is 1 after 2'),
        (lambda: TableSpring((0.0, 1.0), (0.0, 1.0, 2.0)), '2 deflections and 3 torques'),
        (lambda: TableSpring((0.0, 1e-320), (0.0, 1.0)), 'slopes from inf'),
        (lambda: TableSpring((-1e308, 1e308), (0.0, 1.0)), 'too far apart'),
    ],
)
def test_law_that_cannot_be_used_is_refused_with_the_reason(make, reason):
    with pytest.raises(ActuatorError, match=reason):
        make()
