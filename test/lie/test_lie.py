"""Axioms of rotations and rigid-body motions, also near zero and near half a turn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from hodyn_ros.lie import se3, so3

# Angles near the places where formulas cancel or branch, and ordinary ones.
ANGLES = st.one_of(
    st.just(0.0),
    st.floats(1e-300, 1e-12),
    st.floats(1e-9, 1e-3),
    st.floats(0.499, 0.501),
    st.floats(0.0, np.pi),
    st.floats(1e-15, 1e-6).map(lambda x: np.pi - x),
)
COMPONENT = st.floats(-1.0, 1.0, allow_subnormal=False)
DIRECTIONS = (
    st.tuples(COMPONENT, COMPONENT, COMPONENT)
    .map(np.array)
    .filter(lambda v: np.linalg.norm(v) > 0.1)
    .map(lambda v: v / np.linalg.norm(v))
)
VECTORS = st.tuples(COMPONENT, COMPONENT, COMPONENT).map(lambda v: 3.0 * np.array(v))
ROTATION_VECTORS = st.tuples(ANGLES, DIRECTIONS).map(lambda p: p[0] * p[1])
SCREWS = st.tuples(ROTATION_VECTORS, VECTORS).map(np.concatenate)
TWISTS = st.tuples(VECTORS, VECTORS).map(np.concatenate)


def homogeneous(X):
    """Screw as a 4x4 matrix, for the matrix exponential of SciPy."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = np.array([[0, -X[2], X[1]], [X[2], 0, -X[0]], [-X[1], X[0], 0]])
    matrix[:3, 3] = X[3:]
    return matrix


@given(ROTATION_VECTORS)
def test_exp_of_a_rotation_vector_is_a_rotation(e):
    R = so3.exp(e)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(R, expm(so3.hat(e)), atol=1e-14)


@given(ROTATION_VECTORS)
def test_log_undoes_exp_of_rotations(e):
    R = so3.exp(e)
    back = so3.log(R)
    assert np.linalg.norm(back) <= np.pi + 1e-12
    np.testing.assert_allclose(so3.exp(back), R, atol=1e-14)
    if np.linalg.norm(e) < np.pi - 1e-3:
        np.testing.assert_allclose(back, e, atol=1e-13)


@given(SCREWS)
def test_exp_of_a_screw_is_the_matrix_exponential(X):
    np.testing.assert_allclose(se3.exp(X), expm(homogeneous(X)), atol=1e-13)


@given(SCREWS, st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_motions_along_one_screw_add(X, a, b):
    np.testing.assert_allclose(
        se3.exp(a * X) @ se3.exp(b * X), se3.exp((a + b) * X), atol=2e-13
    )


@given(SCREWS, SCREWS)
def test_adjoint_is_a_representation_of_the_group(X, Y):
    C, D = se3.exp(X), se3.exp(Y)
    np.testing.assert_allclose(se3.Ad(C @ D), se3.Ad(C) @ se3.Ad(D), atol=1e-12)
    np.testing.assert_allclose(se3.Ad(se3.inverse(C)) @ se3.Ad(C), np.eye(6), atol=1e-12)
    np.testing.assert_allclose(se3.inverse(C) @ C, np.eye(4), atol=1e-13)


@given(SCREWS)
def test_adjoint_of_exp_is_exp_of_ad(X):
    np.testing.assert_allclose(se3.Ad(se3.exp(X)), expm(se3.ad(X)), atol=1e-12)


@given(SCREWS, TWISTS, TWISTS)
def test_adjoint_keeps_the_bracket(X, Y, Z):
    Ad = se3.Ad(se3.exp(X))
    np.testing.assert_allclose(
        Ad @ se3.bracket(Y, Z), se3.bracket(Ad @ Y, Ad @ Z), atol=1e-10
    )


@given(TWISTS, TWISTS, TWISTS)
def test_bracket_is_a_lie_bracket(X, Y, Z):
    np.testing.assert_allclose(se3.bracket(X, Y), -se3.bracket(Y, X), atol=1e-13)
    jacobi = (
        se3.bracket(X, se3.bracket(Y, Z))
        + se3.bracket(Y, se3.bracket(Z, X))
        + se3.bracket(Z, se3.bracket(X, Y))
    )
    np.testing.assert_allclose(jacobi, np.zeros(6), atol=1e-11)
    np.testing.assert_allclose(se3.bracket(X, Y), se3.ad(X) @ Y, atol=1e-13)
    np.testing.assert_allclose(se3.coadjoint(X, Y), se3.ad(X).T @ Y, atol=1e-13)


@given(VECTORS, VECTORS)
def test_hat_is_the_cross_product(a, b):
    np.testing.assert_allclose(so3.hat(a) @ b, np.cross(a, b), atol=1e-14)
    np.testing.assert_allclose(so3.cross(a, b), np.cross(a, b), atol=1e-14)


@given(VECTORS)
def test_roll_pitch_yaw_turns_about_the_fixed_axes_in_this_order(rpy):
    x, y, z = (so3.exp(angle * axis) for angle, axis in zip(rpy, np.eye(3)))
    np.testing.assert_allclose(so3.from_rpy(rpy), z @ y @ x, atol=1e-14)


@pytest.mark.parametrize('batch', [(), (1,), (3,), (2, 3), (0,)])
def test_leading_axes_are_a_batch(batch):
    X = np.random.default_rng(0).normal(size=(*batch, 6))
    Y = np.random.default_rng(1).normal(size=(*batch, 6))
    C = se3.exp(X)
    for function, arguments, shape in (
        (so3.hat, (X[..., :3],), (3, 3)),
        (so3.exp, (X[..., :3],), (3, 3)),
        (so3.log, (C[..., :3, :3],), (3,)),
        (se3.exp, (X,), (4, 4)),
        (se3.inverse, (C,), (4, 4)),
        (se3.Ad, (C,), (6, 6)),
        (se3.ad, (X,), (6, 6)),
        (se3.bracket, (X, Y), (6,)),
        (se3.coadjoint, (X, Y), (6,)),
    ):
        result = function(*arguments)
        assert result.shape == (*batch, *shape)
        for index in np.ndindex(batch):
            one = function(*(argument[index] for argument in arguments))
            np.testing.assert_allclose(result[index], one, atol=1e-14)


def test_poses_and_screws_may_be_lists():
    X = np.array([0.0, 0.0, 1.0, 0.2, 0.1, 0.3])
    C = se3.exp(X)
    for function, value in ((se3.Ad, C), (se3.inverse, C), (se3.pitches, X[None])):
        np.testing.assert_array_equal(function(value.tolist()), function(value))
