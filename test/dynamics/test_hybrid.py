"""The recursion in hybrid twists, term by term: kinematics, wrenches and their derivatives.

Efforts are compared with the oracles in test_inverse_dynamics.py and test_helical.py.
"""

import numpy as np
import pytest
from support.interpolation import derivatives_at_zero, taylor
from support.spatial_cases import (
    MODELS,
    SEEDS,
    SUFFIXES,
    K,
    assert_close,
    assert_derivatives,
    assert_differentiated,
    assert_twists_of_links,
    link_of_body,
    make_case,
    random_case_with_wrenches,
)

from hodyn_ros import Wrench, forward_kinematics
from hodyn_ros.dynamics import hybrid
from hodyn_ros.dynamics.hybrid import hybrid_kinematics
from hodyn_ros.dynamics.inverse import inter_body_wrenches
from hodyn_ros.dynamics.wrenches import wrenches_on_bodies
from hodyn_ros.kinematics.joints import body_coordinates

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


@pytest.mark.parametrize('name', MODELS)
def test_twists_of_all_bodies_are_those_of_their_links(name):
    assert_twists_of_links(name, hybrid_kinematics, 'hybrid')


@pytest.mark.parametrize('name', MODELS)
def test_twists_are_derivatives_of_poses(name):
    model, motion, coordinates = make_case(name)
    kinematics = hybrid_kinematics(model, coordinates)
    V = np.array([getattr(kinematics, 'V' + suffix)[0] for suffix in SUFFIXES])
    C = kinematics.C[0]
    # Rd = omega_hat R; the position needs nothing but itself.
    position = np.array([C[:, :3, 3], *V[..., 3:]])
    omega_hat = np.cross(V[..., None, :3], np.eye(3)).swapaxes(-1, -2)
    R = [C[:, :3, :3]]
    for row in ([1], [1, 1], [1, 2, 1], [1, 3, 3, 1]):
        R.append(sum(c * omega_hat[j] @ R[len(row) - 1 - j] for j, c in enumerate(row)))

    def poses(motions):
        return hybrid_kinematics(model, body_coordinates(model, motions)).C

    assert_derivatives(position, lambda motions: poses(motions)[..., :3, 3], motion)
    assert_derivatives(np.array(R), lambda motions: poses(motions)[..., :3, :3], motion)


@pytest.mark.parametrize('name', MODELS)
def test_screws_twists_and_distances_are_differentiated_componentwise(name):
    assert_differentiated(name, hybrid_kinematics, {'X': 3, 'V': 3, 'r': 2})


@pytest.mark.parametrize('name', MODELS)
def test_base_acceleration_adds_to_the_linear_acceleration_and_to_nothing_else(name):
    model, _, coordinates = make_case(name)
    at_rest = hybrid_kinematics(model, coordinates)
    accelerated = hybrid_kinematics(model, coordinates, -model.gravity)
    for field in at_rest._fields:
        expected = getattr(at_rest, field).copy()
        if field == 'Vd':
            expected[..., 3:] -= model.gravity
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            getattr(accelerated, field), expected, rtol=0, atol=1e-13 * max(scale, 10.0)
        )


@pytest.mark.parametrize('K', [1, 2, 3, 4])
def test_lower_orders_do_not_depend_on_how_many_are_given(K):
    model, _, coordinates = make_case('tree 3')
    full = hybrid_kinematics(model, coordinates)
    part = hybrid_kinematics(model, coordinates[:, :K])
    for suffix in SUFFIXES[:K]:
        np.testing.assert_array_equal(
            getattr(part, 'X' + suffix), getattr(full, 'X' + suffix)
        )
    for suffix in SUFFIXES[: K - 1]:
        np.testing.assert_array_equal(
            getattr(part, 'V' + suffix), getattr(full, 'V' + suffix)
        )


@pytest.mark.parametrize('name', MODELS)
def test_inertia_wrenches_obey_newton_and_euler(name):
    """Force: rate of linear momentum. Moment about a point at rest: rate of angular momentum."""
    model, motion, coordinates = make_case(name)
    kinematics = hybrid_kinematics(model, coordinates)
    W = hybrid.inertia_wrenches(model, kinematics)[0, 0]

    def momenta_about_base_origin(times):
        moved = taylor(motion, times)[:, :2]
        total = []
        for i in range(model.n_bodies):
            link = forward_kinematics(model, moved, link_of_body(model, i))
            R, position = link.pose[:, :3, :3], link.pose[:, :3, 3]
            L, p = np.split(link.twist[:, 0] @ model.M_body[i], 2, axis=-1)
            L, p = (R @ L[..., None])[..., 0], (R @ p[..., None])[..., 0]
            total.append(np.concatenate([L + np.cross(position, p), p], axis=-1))
        return np.stack(total, axis=1)

    expected = derivatives_at_zero(momenta_about_base_origin, 1)[1]
    expected[:, :3] -= np.cross(kinematics.C[0, :, :3, 3], expected[:, 3:])
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(W, expected, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize('name', MODELS)
def test_inertia_wrenches_are_differentiated_componentwise(name):
    model, motion, coordinates = make_case(name)

    def inertia_wrenches(motions):
        kinematics = hybrid_kinematics(model, body_coordinates(model, motions))
        return hybrid.inertia_wrenches(model, kinematics)

    actual = inertia_wrenches(motion[None])[:, 0]
    assert_derivatives(actual, lambda motions: inertia_wrenches(motions)[0], motion)


@pytest.mark.parametrize('name', MODELS)
def test_applied_wrenches_come_back_as_they_were_given(name):
    """From a hybrid wrench through the body frame to a hybrid wrench."""
    model, _, coordinates = make_case(name)
    body = model.n_bodies - 1
    values = np.random.default_rng(5).standard_normal((1, K - 2, 6))
    given = Wrench(link_of_body(model, body), values, 'hybrid')
    applied = wrenches_on_bodies(model, coordinates, [(given, values)])
    W = hybrid.applied_wrenches(hybrid_kinematics(model, coordinates), applied)
    scale = np.abs(applied[body]).max()
    np.testing.assert_allclose(W[:, 0, body], values[0], rtol=0, atol=1e-13 * scale)
    assert not W[:, :, :body].any()


@pytest.mark.parametrize('seed', SEEDS)
def test_sums_towards_the_base_are_the_inter_body_wrenches_about_other_points(seed):
    _, model, motion, cases, coordinates, applied = random_case_with_wrenches(seed)
    kinematics = hybrid_kinematics(model, coordinates, -model.gravity)
    W = hybrid.inertia_wrenches(model, kinematics) + hybrid.applied_wrenches(
        kinematics, applied
    )
    actual = hybrid.sum_towards_base(model, kinematics, W)[:, 0]
    position = kinematics.C[0, :, :3, 3]
    true = hybrid_kinematics(model, coordinates)
    v, vd = true.V[0, :, 3:], true.Vd[0, :, 3:]
    f, fd, f2d = actual[..., 3:].copy()
    actual[0, :, :3] += np.cross(position, f)
    actual[1, :, :3] += np.cross(position, fd) + np.cross(v, f)
    actual[2, :, :3] += np.cross(position, f2d) + 2 * np.cross(v, fd) + np.cross(vd, f)
    wrenches = [Wrench(*case) for case in cases]
    assert_close(actual, inter_body_wrenches(model, motion, wrenches), 1e-12)
