"""Lagrange's equations agree with the oracles, and their matrices with Pinocchio's.

The efforts of orders up to 2 are compared with power series in test_inverse_dynamics, like those
of all formulations.
"""

import numpy as np
import pytest
from support.dynamics_cases import (
    EARTH,
    ROBOTS,
    load,
)
from support.oracles import PinOracle
from support.random_trees import random_motion, seeds

from hodyn_ros import mass_matrix
from hodyn_ros.dynamics import lagrange
from hodyn_ros.kinematics.joints import body_coordinates

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

SOME = ('Panda', 'Panda with hand', 'tree 0', 'tree 3', 'tree 5', 'tree 11')


def selection_of(model):
    selection = np.zeros((model.n_bodies, model.n_joints))
    selection[np.arange(model.n_bodies), model.coordinate] = model.multiplier
    return selection


@pytest.mark.parametrize('name', SOME)
def test_inertia_matrix_equals_the_mass_matrix_in_closed_form(name):
    model = load(ROBOTS[name]().xml)
    motion = random_motion(5, model.n_joints, 4, (5,))
    links = lagrange.geometry(model, body_coordinates(model, motion))
    S = selection_of(model)
    B = S.T @ lagrange.inertia_matrix(links) @ S
    expected = np.moveaxis(mass_matrix(model, motion), 1, 0)
    for k in range(4):
        assert np.abs(B[k] - expected[k]).max() <= 1e-13 * np.abs(expected[k]).max()


@pytest.mark.parametrize('name', SOME)
def test_inertia_gradient_is_that_of_the_interpolated_inertia_matrix(name):
    model = load(ROBOTS[name]().xml)
    q = random_motion(6, model.n_bodies, 1)
    gradient = lagrange.inertia_gradient(lagrange.geometry(model, q[None]))[0, 0]
    # Each entry is a polynomial of low degree in sin q_k, cos q_k and q_k: few nodes do.
    half_width, count = 0.5, 20
    nodes = np.polynomial.chebyshev.chebpts1(count)
    for k in range(model.n_bodies):
        positions = np.repeat(q, count, axis=0)
        positions[:, k] += half_width * nodes
        B = lagrange.inertia_matrix(lagrange.geometry(model, positions[:, None]))[0]
        fit = np.polynomial.chebyshev.chebfit(nodes, B.reshape(count, -1), count - 1)
        rate = np.polynomial.chebyshev.chebder(fit) / half_width
        expected = np.polynomial.chebyshev.chebval(0.0, rate).reshape(B.shape[1:])
        assert np.abs(gradient[..., k] - expected).max() <= 1e-11 * np.abs(B).max()


@pytest.mark.parametrize('name', seeds(ROBOTS, short=8))
def test_coriolis_matrix_is_that_of_pinocchio(name):
    """Entry by entry: Pinocchio's matrix has Christoffel symbols as well."""
    pinocchio = pytest.importorskip(
        'pinocchio', reason='Pinocchio (pip: pin) is not installed'
    )
    model = load(ROBOTS[name]().xml)
    motion = random_motion(7, model.n_joints, 3)
    pin = PinOracle(ROBOTS[name]().xml, model.joint_names, EARTH)
    q, qd, _ = pin.full(motion)
    C_full = pinocchio.computeCoriolisMatrix(pin.model, pin.data, pin.configuration(q), qd)

    coordinates = body_coordinates(model, motion)[None]
    links = lagrange.geometry(model, coordinates[:, :1])
    symbols = lagrange.christoffel_symbols(lagrange.inertia_gradient(links))
    C = lagrange.coriolis_matrix(symbols, coordinates[:, 1][None])[0, 0]
    S = selection_of(model)
    scale = max(np.abs(C_full).max(), 1.0)
    assert np.abs(S.T @ C @ S - pin.G.T @ C_full @ pin.G).max() <= 1e-13 * scale


@pytest.mark.parametrize('name', SOME)
def test_inertia_rate_minus_twice_coriolis_matrix_is_skew_symmetric(name):
    """So are the derivatives of that difference, along a motion."""
    model = load(ROBOTS[name]().xml)
    coordinates = random_motion(8, model.n_bodies, 4)[None]
    links = lagrange.geometry(model, coordinates)
    symbols = lagrange.christoffel_symbols(lagrange.inertia_gradient(links))[:3]
    B = lagrange.inertia_matrix(links)[:, 0]
    Bd = B[1:]
    C = lagrange.coriolis_matrix(symbols, np.moveaxis(coordinates[:, 1:], 1, 0))[:, 0]
    difference = Bd - 2.0 * C
    for k in range(3):
        # Terms that cancel for simple robots leave rounding of the size of B.
        scale = max(np.abs(C[k]).max(), np.abs(Bd[k]).max(), np.abs(B[0]).max())
        assert np.abs(difference[k] + difference[k].T).max() <= 1e-13 * scale
