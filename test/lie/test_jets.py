"""Jets against polynomials in time, which NumPy differentiates, and against turning frames."""

from functools import partial
from math import factorial

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from hodyn_ros.lie import Jet, jets, so3

K = 6
T = 0.7


def jet(polynomial, count=K):
    return Jet(polynomial.deriv(k)(T) if k else polynomial(T) for k in range(count))


def polynomials(seed, *shape):
    """Polynomials of degree 5 with random coefficients, in an array."""
    rng = np.random.default_rng(seed)
    found = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        found[index] = Polynomial(rng.uniform(-1.0, 1.0, 6))
    return found


def arrays(polynomial):
    """Jet of an array of polynomials."""
    flat = [[*jet(p)] for p in polynomial.ravel()]
    return Jet(np.array(order).reshape(polynomial.shape) for order in zip(*flat))


def same(found, expected, tolerance=1e-12):
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_sums_differences_and_products_are_those_of_polynomials():
    f, g = polynomials(0, 2)
    a, b = jet(f), jet(g)
    same(a + b, jet(f + g))
    same(a - b, jet(f - g))
    same(2.0 - a, jet(2.0 - f))
    same(3.0 + a * 0.5, jet(3.0 + f * 0.5))
    same(a * b, jet(f * g))
    same(a * a, jet(f * f))
    same(-a, jet(-f))


def test_derivatives_of_a_product_end_with_the_shorter_factor():
    f, g = polynomials(0, 2)
    same(jet(f) * jet(g, 3), jet(f * g, 3))
    same(jet(f) + jet(g, 3), jet(f + g, 3))
    same(jet(f).rate(), jet(f.deriv(), K - 1))
    assert jets.derivatives(jet(f, 2), 4) == [*jet(f, 2), 0.0, 0.0]
    assert jets.derivatives(1.5, 3) == [1.5, 0.0, 0.0]


def test_quotient_times_divisor_is_the_dividend():
    f, g = polynomials(1, 2)
    g = g * g + 1.0
    same(jet(f * g) / jet(g), jet(f))
    same((1.0 / jet(g)) * jet(g), jets.constant(1.0, K))
    same(jet(f) / 4.0, jet(f / 4.0))


def test_arrays_with_leading_axes_are_added_and_multiplied_entry_by_entry():
    f, g = polynomials(2, 3, 4), polynomials(3, 4)
    same(arrays(f) * arrays(g), arrays(f * g))
    same(np.ones((3, 4)) - arrays(f), arrays(1.0 - f))
    same(np.arange(4.0) * arrays(g), arrays(np.arange(4.0) * g))
    same(np.float64(2.0) * arrays(g), arrays(2.0 * g))


def test_products_of_matrices_keep_their_order():
    f, g = polynomials(4, 3, 3), polynomials(5, 3, 2)
    expected = (f[..., None] * g).sum(axis=1)
    same(arrays(f) @ arrays(g), arrays(expected))
    C = np.random.default_rng(0).normal(size=(3, 3))
    same(C @ arrays(g), arrays((C[..., None] * g).sum(axis=1)))
    same(arrays(f) @ C, arrays((f[..., None] * C).sum(axis=1)))


def test_equations_are_solved_for_every_derivative():
    A, x = polynomials(6, 3, 3) + 4.0 * np.eye(3), polynomials(7, 3, 2)
    b = (A[..., None] * x).sum(axis=1)
    solve = partial(np.linalg.solve, arrays(A)[0])
    same(jets.quotient(arrays(b), arrays(A), solve), arrays(x), 1e-10)


def test_any_bilinear_product_and_linear_function_has_a_jet():
    a, b = polynomials(8, 2, 3), polynomials(9, 3)
    found = jets.product(arrays(a), arrays(b), so3.cross)
    expected = [
        [p[1] * b[2] - p[2] * b[1], p[2] * b[0] - p[0] * b[2], p[0] * b[1] - p[1] * b[0]]
        for p in a
    ]
    same(found, arrays(np.array(expected, dtype=object)))
    column = arrays(b).map(lambda x: x[:, None])
    same((arrays(a).map(so3.hat) @ column).map(lambda x: x[..., 0]), found)


def test_functions_of_jets_follow_the_chain_rule():
    # exp(f) and 1 / f at f(T) have known derivatives; their products with the inverse are one.
    f = polynomials(10, 1)[0] + 3.0
    x = jet(f)
    exp, opposite = (
        jets.compose([sign**k * np.exp(sign * x[0]) for k in range(K)], x)
        for sign in (1.0, -1.0)
    )
    same(exp * opposite, jets.constant(1.0, K))
    same(exp.rate(), exp * x.rate(), 1e-11)
    inverse = [(-1.0) ** k * factorial(k) / x[0] ** (k + 1) for k in range(K)]
    same(jets.compose(inverse, x), 1.0 / x, 1e-11)
    assert len(jets.compose([1.0], Jet([]))) == 0


def test_sine_and_cosine_of_an_angle_have_the_derivatives_of_a_rotation():
    q = arrays(polynomials(11, 2))
    sine, cosine = jets.sine_cosine(q)
    same(sine * sine + cosine * cosine, jets.constant(np.ones(2), K))
    same(sine.rate(), cosine * q.rate())
    np.testing.assert_array_equal(sine[0], np.sin(q[0]))


def test_hyperbolic_sine_and_cosine_are_sums_of_exponentials():
    x = arrays(polynomials(12, 2))
    sine, cosine = jets.sinh_cosh(x)
    same(cosine + sine, jets.exp(x), 1e-11)
    same(cosine - sine, jets.exp(-x), 1e-11)


def test_exponential_and_hyperbolic_tangent_follow_the_chain_rule():
    x = arrays(polynomials(14, 2))
    exp = np.exp(x[0])
    same(jets.exp(x), jets.compose([exp] * K, x))
    grown = jets.exp(2.0 * x)
    same(jets.tanh(x), (grown - 1.0) / (grown + 1.0), 1e-10)


@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_rates_that_overflow_leave_functions_where_they_are_flat():
    x = Jet([np.array([1e4, -1e4]), np.array([np.inf, 1e300]), np.array([1e300, np.inf])])
    same(jets.tanh(x), [np.array([1.0, -1.0]), np.zeros(2), np.zeros(2)])
    same(jets.exp(-1.0 * x)[:1], [np.array([0.0, np.inf])])
    assert [x[0] for x in jets.exp(-1.0 * x)] == [0.0, 0.0, 0.0]


def rotation(q):
    """Rotation about z and its derivatives."""
    sine, cosine = (tuple(x) for x in jets.sine_cosine(q))
    zero = np.zeros(K)
    one = np.eye(K)[0]
    rows = [[cosine, -np.array(sine), zero], [sine, cosine, zero], [zero, zero, one]]
    return Jet.along(np.array(rows, dtype=float), -1)


def test_rule_of_the_turn_is_leibniz_with_all_derivatives_of_the_rotation():
    q, y = jet(polynomials(12, 1)[0]), arrays(polynomials(13, 3))
    R = rotation(q)
    omega = q.rate().map(lambda x: np.array([0.0, 0.0, x]))
    # R maps the moving frame to the fixed one, its transpose at the moment back.
    fixed = (R @ y.map(lambda x: x[:, None])).map(lambda x: x[:, 0])
    seen = fixed.map(lambda x: R[0].T @ x)
    (found,) = jets.turned((seen,), lambda k, v: (so3.cross(v[0], omega[k]),))
    same(found, y)


def test_turned_components_may_be_any_numbers():
    q, v = jet(polynomials(14, 1)[0]), [jet(p) for p in polynomials(15, 2)]
    s, c = jets.sine_cosine(q)
    mapped = c[0] * v[0] + s[0] * v[1], c[0] * v[1] - s[0] * v[0]
    rate = q.rate()
    x, y = jets.turned(mapped, lambda k, u: (rate[k] * u[1], -rate[k] * u[0]))
    same(x, c * v[0] + s * v[1], 1e-11)
    same(y, c * v[1] - s * v[0], 1e-11)


def test_constants_turn_too():
    q = jet(polynomials(14, 1)[0], 3)
    s, c = jets.sine_cosine(q)
    rate = q.rate()
    x, y = jets.turned((c[0], -s[0]), lambda k, u: (rate[k] * u[1], -rate[k] * u[0]), 3)
    same(x, c)
    same(y, -s)
    assert jets.turned((c[0], 2.0), lambda k, u: u, 1) == (c[0], 2.0)


def test_arrays_become_jets_and_jets_arrays():
    motion = np.random.default_rng(0).normal(size=(2, 5, 7))
    x = Jet.along(motion, -2)
    assert len(x) == 5 and x[2].shape == (2, 7)
    np.testing.assert_array_equal(x.array(-2), motion)
    np.testing.assert_array_equal(x[:3].array(-2), motion[:, :3])
    assert Jet([np.ones((2, 7)), 0.0]).array(0).shape == (2, 2, 7)


@pytest.mark.parametrize('count', [1, 3, 5])
def test_a_constant_has_no_rate(count):
    same(jets.constant(2.0, count), [2.0, *[0.0] * (count - 1)])
