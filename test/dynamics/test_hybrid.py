"""The recursion in hybrid twists, term by term: kinematics, wrenches and their derivatives.

Efforts are compared with the oracles in test_inverse_dynamics.py and test_helical.py.
"""

import numpy as np
import pytest
from support.interpolation import derivatives_at_zero, taylor
from support.spatial_cases import (
    MODELS,
    SEEDS,
    assert_close,
    assert_derivatives,
    link_of_body,
    make_case,
    random_case_with_wrenches,
)

from hodyn_ros import Wrench, forward_kinematics
from hodyn_ros.dynamics import hybrid, inter_body_wrenches
from hodyn_ros.dynamics.hybrid import hybrid_kinematics
from hodyn_ros.kinematics.joints import body_coordinates

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


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
