"""The closed form and its matrices agree with oracles and have the structure of mechanics.

The efforts themselves are compared with power series in test_inverse_dynamics, like those of all
formulations. Here: the same for many derivatives, the matrices against Pinocchio and against each
other, and the expressions that the paper writes out against Leibniz's rule.
"""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from support.dynamics_cases import (
    EARTH,
    ROBOTS,
    load,
)
from support.engine_cases import random_chain
from support.oracles import PinOracle
from support.random_trees import random_motion, seeds

from hodyn_ros import (
    coriolis_matrix,
    gravity_effort,
    inverse_dynamics,
    mass_matrix,
)
from hodyn_ros.dynamics import closed_form
from hodyn_ros.kinematics.joints import body_coordinates

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

NAMES = seeds(ROBOTS, short=8)
# With branches, prismatic joints and mimic joints, and one of a single joint.
SOME = ('Panda', 'Panda with hand', 'tree 0', 'tree 3', 'tree 5', 'tree 11')


def robot_and_motion(name, K, shape=()):
    model = load(ROBOTS[name]().xml)
    return model, random_motion(sum(map(ord, name)), model.n_joints, K, shape)


def largest(array):
    """Largest entry of each order of an array of matrices, never zero."""
    scale = np.abs(array).max(axis=(-1, -2), keepdims=True)
    return np.where(scale > 0.0, scale, 1.0)


# --- Efforts ------------------------------------------------------------------------------------


@pytest.mark.parametrize('K', [3, 4, 5])
@pytest.mark.parametrize('name', SOME)
def test_written_out_derivatives_equal_those_of_leibniz_rule(name, K):
    model, motion = robot_and_motion(name, K, (3,))
    coordinates = body_coordinates(model, motion)
    W = np.random.default_rng(2).standard_normal((3, K - 2, 6 * model.n_bodies))
    written = closed_form.written_out_efforts(model, coordinates, W)
    leibniz = closed_form.leibniz_efforts(model, coordinates, W)
    assert written.shape == leibniz.shape == (3, K - 2, model.n_bodies)
    scale = np.abs(leibniz).max(axis=(0, 2))
    assert np.all(np.abs(written - leibniz).max(axis=(0, 2)) <= 1e-13 * scale)


@pytest.mark.parametrize('name', SOME)
def test_written_out_matrices_equal_those_of_leibniz_rule(name):
    """Equations (29), (31), (40) and (45), each matrix alone."""
    model, motion = robot_and_motion(name, 5, (3,))
    coordinates = body_coordinates(model, motion)
    written = closed_form.written_out(model, coordinates)
    system = closed_form.series(model, coordinates)
    J_transposed = np.swapaxes(written.J, -1, -2)
    for printed, expected in (
        ((written.M, written.M1, written.M2), system.mass_matrices(3)),
        ((written.C, written.C1, written.C2), system.coriolis_matrices(3, False)),
    ):
        for k in range(3):
            error = np.abs(J_transposed @ printed[k] @ written.J - expected[k])
            assert error.max() <= 1e-13 * np.abs(expected[k]).max()


@pytest.mark.parametrize('name', SOME)
def test_second_derivative_of_the_mass_matrix_is_the_explicit_one(name):
    """Equation (44), which is printed without an error, unlike (43)."""
    model, motion = robot_and_motion(name, 5)
    coordinates = body_coordinates(model, motion)[None]
    A, _, M, _ = closed_form.system_matrices(model, coordinates[:, 0])
    a, ad = (closed_form.matrix_a(model, coordinates[:, k]) for k in (1, 2))

    def plus_transpose(matrix):
        return matrix + np.swapaxes(matrix, -1, -2)

    Aa = A @ a
    expected = (
        -plus_transpose(M @ A @ ad)
        + 2.0 * plus_transpose(M @ Aa @ Aa)
        + 2.0 * np.swapaxes(Aa, -1, -2) @ M @ Aa
        - plus_transpose(M @ Aa @ a)
    )
    M2 = closed_form.written_out(model, coordinates).M2
    assert np.abs(M2 - expected).max() <= 1e-14 * np.abs(expected).max()


@pytest.mark.parametrize('K', [5, 6])
def test_effort_is_what_the_public_matrices_make_of_it(K):
    model, motion = robot_and_motion('Panda with hand', K, (4,))
    armature = np.random.default_rng(1).uniform(0.1, 2.0, model.n_bodies)
    model = dataclasses.replace(model, armature=armature)
    effort = inverse_dynamics(model, motion)
    M = mass_matrix(model, motion)
    C = coriolis_matrix(model, motion)
    g = gravity_effort(model, motion)
    q = motion[..., None]
    parts = (
        M[:, 0] @ q[:, 2] + C[:, 0] @ q[:, 1],
        M[:, 0] @ q[:, 3] + (M[:, 1] + C[:, 0]) @ q[:, 2] + C[:, 1] @ q[:, 1],
        M[:, 0] @ q[:, 4]
        + (2 * M[:, 1] + C[:, 0]) @ q[:, 3]
        + (M[:, 2] + 2 * C[:, 1]) @ q[:, 2]
        + C[:, 2] @ q[:, 1],
    )
    for k, part in enumerate(parts):
        error = np.abs(part[..., 0] + g[:, k] - effort[:, k]).max()
        assert error <= 1e-13 * np.abs(effort[:, k]).max()


# --- Matrices against Pinocchio -----------------------------------------------------------------


@pytest.mark.parametrize('name', NAMES)
def test_matrices_match_pinocchio(name):
    pinocchio = pytest.importorskip(
        'pinocchio', reason='Pinocchio (pip: pin) is not installed'
    )
    model, motion = robot_and_motion(name, 3)
    pin = PinOracle(ROBOTS[name]().xml, model.joint_names, EARTH)
    q, qd, _ = pin.full(motion)
    configuration = pin.configuration(q)

    upper = np.triu(pinocchio.crba(pin.model, pin.data, configuration))
    M_full = upper + np.triu(upper, 1).T
    # Pinocchio's matrix is the one with Christoffel symbols; the product with qd is unique.
    C_full = pinocchio.computeCoriolisMatrix(pin.model, pin.data, configuration, qd)
    g_full = pinocchio.computeGeneralizedGravity(pin.model, pin.data, configuration)

    M = mass_matrix(model, motion)
    scale = np.abs(M_full).max()
    assert np.abs(M[0] - pin.G.T @ M_full @ pin.G).max() <= 1e-13 * scale
    # With one joint all Coriolis terms cancel, and of the matrix only rounding is left.
    scale = max(np.abs(C_full).max(), scale)
    # The symmetric part is unique as well.
    C_reduced = pin.G.T @ C_full @ pin.G
    assert np.abs(M[1] - C_reduced - C_reduced.T).max() <= 1e-13 * scale
    expected = pin.G.T @ (C_full @ qd)
    for skew_symmetric in (True, False):
        C = coriolis_matrix(model, motion, skew_symmetric)[0]
        assert np.abs(C @ motion[1] - expected).max() <= 1e-13 * scale
    g = gravity_effort(model, motion)[0]
    weight = max(np.abs(g_full).max(), 1.0)
    assert np.abs(g - pin.G.T @ g_full).max() <= 1e-13 * weight


# --- Structure ----------------------------------------------------------------------------------


@pytest.mark.parametrize('name', NAMES)
def test_mass_matrix_is_positive_definite(name):
    model, motion = robot_and_motion(name, 1, (20,))
    eigenvalues = np.linalg.eigvalsh(mass_matrix(model, motion)[:, 0])
    # Massless links may leave a joint without inertia, which the model warns of.
    if any('singular' in warning for warning in model.warnings):
        assert np.all(eigenvalues >= -1e-14 * eigenvalues.max())
    else:
        assert np.all(eigenvalues > 0.0)


@pytest.mark.parametrize('name', NAMES)
def test_mass_matrix_rate_minus_twice_coriolis_matrix_is_skew_symmetric_in_all_orders(name):
    model, motion = robot_and_motion(name, 5, (3,))
    M, C = mass_matrix(model, motion), coriolis_matrix(model, motion)
    Md = M[:, 1:]
    np.testing.assert_array_equal(M, np.swapaxes(M, -1, -2))
    assert C.shape == (3, 4, model.n_joints, model.n_joints)
    difference = Md - 2.0 * C
    # With one joint all terms cancel, and of the matrices only rounding is left.
    scale = np.maximum(np.maximum(largest(Md), largest(C)), largest(M[:, :1]))
    symmetric_part = difference + np.swapaxes(difference, -1, -2)
    assert np.all(np.abs(symmetric_part) <= 1e-13 * scale)


@pytest.mark.parametrize('name', ['Panda', 'Panda with hand', 'tree 0', 'tree 3', 'tree 5'])
def test_other_coriolis_matrix_has_the_weaker_property_alone(name):
    model, motion = robot_and_motion(name, 2)
    Md, C = mass_matrix(model, motion)[1], coriolis_matrix(model, motion, False)[0]
    difference = Md - 2.0 * C
    scale = np.abs(difference).max()
    assert abs(motion[1] @ difference @ motion[1]) <= 1e-13 * scale * motion[1] @ motion[1]
    assert np.abs(difference + difference.T).max() > 1e-3 * scale


@pytest.mark.parametrize('name', SOME)
def test_derivatives_are_those_of_interpolated_matrices(name):
    """Chebyshev interpolation along the motion continued as a polynomial."""
    model, motion = robot_and_motion(name, 4)
    half_width, count = 0.2, 20
    nodes = np.polynomial.chebyshev.chebpts1(count)
    t = half_width * nodes[:, None]
    q, qd, q2d, q3d = motion
    along = np.stack(
        [
            q + t * qd + t**2 / 2 * q2d + t**3 / 6 * q3d,
            qd + t * q2d + t**2 / 2 * q3d,
        ],
        axis=1,
    )
    for quantity in (
        mass_matrix,
        coriolis_matrix,
        lambda *given: coriolis_matrix(*given, skew_symmetric=False),
        lambda *given: gravity_effort(*given)[..., None],
    ):
        exact = quantity(model, motion)
        samples = quantity(model, along)[:, 0]
        coefficients = np.polynomial.chebyshev.chebfit(
            nodes, samples.reshape(count, -1), count - 1
        )
        for order in range(1, 3):
            derivative = np.polynomial.chebyshev.chebder(coefficients, order)
            value = np.polynomial.chebyshev.chebval(0.0, derivative) / half_width**order
            error = np.abs(exact[order] - value.reshape(exact[order].shape)).max()
            # Rounding of the samples grows by about (count / half_width) a derivative.
            scale = max(np.abs(samples).max(), np.abs(exact[order]).max())
            assert error <= 1e-10 * scale * 10.0 ** (order - 1)


def test_gravity_and_position_alone_need_no_velocity():
    model, motion = robot_and_motion('Panda', 1, (2, 3))
    assert mass_matrix(model, motion).shape == (2, 3, 1, 7, 7)
    g = gravity_effort(model, motion)
    assert g.shape == (2, 3, 1, 7)
    at_rest = np.concatenate([motion, np.zeros((2, 3, 2, 7))], axis=-2)
    effort = inverse_dynamics(model, at_rest)
    assert np.abs(g - effort).max() <= 1e-14 * np.abs(effort).max()


def test_gravity_of_another_direction_enters_gravity_alone():
    model, motion = robot_and_motion('tree 5', 3)
    other = dataclasses.replace(model, gravity=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(mass_matrix(other, motion), mass_matrix(model, motion))
    assert np.abs(gravity_effort(other, motion) - gravity_effort(model, motion)).max() > 0.1


def test_batch_across_several_blocks_equals_single_samples():
    model, motion = robot_and_motion('Panda', 3, (50,))
    M, C = mass_matrix(model, motion), coriolis_matrix(model, motion)
    for index in (0, 17, 49):
        alone = mass_matrix(model, motion[index])
        assert np.all(np.abs(M[index] - alone) <= 1e-14 * largest(alone))
        alone = coriolis_matrix(model, motion[index])
        assert np.all(np.abs(C[index] - alone) <= 1e-14 * largest(alone))


def test_matrices_of_many_joints_need_no_system_matrix_with_a_block_for_each_pair_of_bodies():
    n = 200
    model = random_chain(n, branching=True)
    motion = 0.1 * np.random.default_rng(0).standard_normal((3, n))
    still = np.zeros((3, n))
    still[0] = motion[0]
    tracemalloc.start()
    try:
        M, C = mass_matrix(model, motion), coriolis_matrix(model, motion)
        g = gravity_effort(model, motion[:1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Four of them; an evaluation by them takes two dozen.
    assert peak < 8 * (6 * n) ** 2 * 4
    effort = inverse_dynamics(model, motion, algorithm='nth_order')[0]
    scale = np.abs(effort).max()
    assert np.abs(M[0] @ motion[2] + C[0] @ motion[1] + g[0] - effort).max() < 1e-12 * scale
    weight = inverse_dynamics(model, still, algorithm='nth_order')[0]
    assert np.abs(g[0] - weight).max() < 1e-12 * scale
    assert np.abs(M[1] - C[0] - C[0].T).max() < 1e-12 * np.abs(M[1]).max()
