"""Robots whose base moves: wrenches, friction, measurements of the base, and what is refused.

Efforts of a moving base and what a floating one does are compared in test/contract.
"""

import dataclasses
from math import comb

import numpy as np
import pytest
from support.random_trees import random_motion, random_screw_model
from support.robots import TWO_LINK, link

from hodyn_ros import (
    RobotModel,
    Wrench,
    floating_base_forward_dynamics,
    inverse_dynamics,
    moving_base_inverse_dynamics,
)
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.lie import se3
from hodyn_ros.model.friction import Coulomb, Viscous

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


@pytest.fixture(scope='module')
def arm():
    model = random_screw_model(5, n=5)
    return model.with_payload(model.base_link, 2.0, (0.1, 0.0, 0.05), np.diag([1, 2, 1.5]))


BASE = se3.exp(random_motion(6, 6, 1)[0]), random_motion(7, 6, 4)


def test_wrenches_friction_and_armature_are_those_of_a_base_at_rest(arm):
    """What they add to the efforts depends on what moves relative to the base alone."""
    motion = random_motion(8, 5, 5)
    lossy = arm.with_friction({'joint2': Viscous(0.3) + Coulomb(0.5, 0.1)})
    lossy = lossy.with_armature({'joint3': 0.4})
    alone = moving_base_inverse_dynamics(arm, motion, BASE)
    bare = inverse_dynamics(arm, motion)
    values = random_motion(9, 6, 3)
    for frame in ('body', 'spatial', 'hybrid'):
        wrenches = [Wrench('link4', values, frame), Wrench('base', values, frame)]
        found = moving_base_inverse_dynamics(lossy, motion, BASE, wrenches)
        still = inverse_dynamics(lossy, motion, wrenches) - bare
        assert found.effort - alone.effort == pytest.approx(still, abs=1e-9)
        on_base = moving_base_inverse_dynamics(arm, motion, BASE, wrenches[1])
        assert on_base.effort == pytest.approx(alone.effort)
        assert on_base.base_wrench - alone.base_wrench == pytest.approx(values, abs=1e-9)
        back = floating_base_forward_dynamics(
            lossy, motion[:2], BASE, found.effort, wrenches, base_wrench=found.base_wrench
        )
        assert back.acceleration == pytest.approx(motion[2:], rel=1e-8, abs=1e-8)
        assert back.twist_rate == pytest.approx(BASE[1][1:], rel=1e-8, abs=1e-8)


def test_readings_of_an_inertial_measurement_unit_do_without_a_pose(arm):
    """Angular velocity and proper acceleration of the base, with derivatives, are all it takes."""
    motion, (pose, twist) = random_motion(10, 5, 5), BASE
    w, v = twist[:, :3], twist[:, 3:]
    ups, linear = [-pose[:3, :3].T @ arm.gravity], [np.zeros(3)]

    def product(x, y, k):
        return sum(comb(k, j) * np.cross(x[j], y[k - j]) for j in range(k + 1))

    for k in range(3):
        linear.append(v[k + 1] + product(w, v, k) + ups[k] - product(w, linear, k))
        ups.append(-product(w, ups, k))
    measured = np.eye(4), np.concatenate([w, linear], axis=1)
    weightless = dataclasses.replace(arm, gravity=np.zeros(3))
    found = moving_base_inverse_dynamics(weightless, motion, measured)
    expected = moving_base_inverse_dynamics(arm, motion, BASE)
    for x, y in zip(found, expected):
        assert np.abs(x - y).max() <= 1e-13 * np.abs(y).max()


# --- What cannot be computed ---------------------------------------------------------------------

POSE, TWIST = np.eye(4), np.zeros((4, 6))
STRETCHED = np.diag([1.0, 1.0, 1.1, 1.0])


@pytest.mark.every_case
@pytest.mark.parametrize(
    'base, message',
    [
        ((POSE, TWIST[:3]), r'twist of the base has shape \(3, 6\), expected .* 4, 6\)'),
        ((POSE, TWIST[:, :5]), r'\(4, 5\)'),
        ((STRETCHED, TWIST), 'pose'),
        ((POSE[:3], TWIST), r'pose has shape \(3, 4\)'),
        ((np.full((4, 4), np.nan), TWIST), 'pose holds nan'),
        (POSE, 'expected a LinkMotion or a pair'),
    ],
)
def test_a_base_motion_that_does_not_do_is_refused(base, message):
    model = RobotModel.from_urdf('panda')
    with pytest.raises(MotionError, match=message):
        moving_base_inverse_dynamics(model, np.zeros((5, 7)), base)
    if base[0] is not POSE and base is not POSE:
        with pytest.raises(MotionError, match=message):
            floating_base_forward_dynamics(model, np.zeros((2, 7)), base, np.zeros((1, 7)))


def test_a_base_without_inertia_cannot_float():
    model = RobotModel.from_urdf('two_link')
    at_rest = np.zeros((2, 2)), (POSE, TWIST), np.zeros((1, 2))
    with pytest.raises(ModelError, match='give the base link an inertia'):
        floating_base_forward_dynamics(model, *at_rest)
    heavy = model.with_payload(model.base_link, 2.0, (0.0, 0.0, 0.1), np.eye(3) * 0.1)
    found = floating_base_forward_dynamics(heavy, *at_rest)
    # It falls.
    assert found.twist_rate[0] == pytest.approx([0, 0, 0, *heavy.gravity], abs=1e-12)


def test_an_impossible_inertia_of_the_base_link_is_refused_where_it_matters():
    negative = 'ixx="-2" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.025"'
    xml = TWO_LINK.replace('<link name="base"/>', link('base', 1.0, negative))
    with pytest.warns(match='not used as long as the base is at rest'):
        model = RobotModel.from_urdf(xml)
    assert np.isfinite(inverse_dynamics(model, np.zeros((3, 2)))).all()
    with pytest.raises(ModelError, match='inertia of the base link'):
        moving_base_inverse_dynamics(model, np.zeros((3, 2)), (POSE, TWIST))
