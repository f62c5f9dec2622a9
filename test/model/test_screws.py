"""Models from joint screws, models as URDF, and what must not depend on the choice of frames."""

import numpy as np
import pytest
from support.oracles import taylor_terms
from support.random_trees import (
    random_motion,
    random_screw_model,
    random_wrenches,
)

from hodyn_ros import RobotModel, Wrench, inverse_dynamics, to_urdf
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3

K = 5
SEEDS = range(10)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


@pytest.mark.parametrize('seed', SEEDS)
def test_model_from_screws_matches_power_series_on_its_urdf(seed):
    # The power series know nothing of screws: the URDF turns a helical joint into a pair.
    model = random_screw_model(seed)
    xml = to_urdf(model)
    motion = random_motion(seed, model.n_joints, K)
    cases = random_wrenches(seed, ['tool', 'link2', 'link5'], K)
    terms = taylor_terms(xml, model.joint_names, model.gravity, motion, cases)
    effort = inverse_dynamics(model, motion, [Wrench(*case) for case in cases])
    for order in range(K - 2):
        scale = np.abs(terms[:, order]).max()
        np.testing.assert_allclose(
            effort[order], terms.sum(axis=0)[order], atol=2e-13 * scale
        )


def test_urdf_keeps_names_limits_and_mimic_factors():
    limits = [(-1.0, 2.0, 3.0, 40.0), None, (-np.inf, 0.5, 1.0, np.inf)]
    model = RobotModel.from_body_screws(
        [[0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]],
        np.broadcast_to(np.eye(4), (3, 4, 4)),
        inertias=[(1.0, (0.1, 0, 0), np.eye(3))] * 3,
        joint_names=['pan', 'tilt', 'reach'],
        link_names=['a', 'b', 'c'],
        limits=limits,
        name='turret',
        base_link='floor',
    )
    assert model.tip_link == 'c'
    again = RobotModel.from_urdf(to_urdf(model))
    assert again.name == 'turret'
    assert again.base_link == 'floor'
    assert again.joint_names == ('pan', 'tilt', 'reach')
    assert again.joint_types == ('revolute', 'continuous', 'prismatic')
    np.testing.assert_array_equal(again.limits.lower, [-1, -np.inf, -np.inf])
    np.testing.assert_array_equal(again.limits.upper, [2, np.inf, 0.5])
    np.testing.assert_array_equal(again.limits.velocity, [3, np.inf, 1])


@pytest.mark.parametrize('pitch', [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 0.3])
def test_urdf_rotations_are_right_at_the_singularity_of_roll_pitch_yaw(pitch):
    R = se3.exp([0, 0, 0.7, 0, 0, 0]) @ se3.exp([0, pitch, 0, 0, 0, 0])
    R = R @ se3.exp([-1.2, 0, 0, 0, 0, 0])
    model = RobotModel.from_body_screws([[0, 0, 1, 0, 0, 0]], R[None], inertias=[np.eye(6)])
    again = RobotModel.from_urdf(to_urdf(model))
    np.testing.assert_allclose(again.B, model.B, atol=1e-14)


def test_joints_keep_the_order_in_which_they_are_given():
    # Depth first, the fourth body would come before the third.
    n = 4
    model = RobotModel.from_body_screws(
        [[0, 0, 1, 0, 0, 0]] * n,
        [np.eye(4)] * n,
        parents=[-1, 0, 0, 1],
        inertias=[(1.0, (0.1, 0, 0), np.eye(3))] * n,
    )
    assert model.joint_names == ('joint1', 'joint2', 'joint3', 'joint4')
    assert model.tip_link is None
    np.testing.assert_array_equal(model.parent, [-1, 0, 0, 1])


TURN = [0, 0, 1, 0, 0, 0]
STAND = np.eye(4)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'X': [TURN[:5]]}, r'X has shape \(1, 5\), expected \(n, 6\)'),
        ({'X': [[0, 0, 0, 0, 0, 0]]}, r'X\[0\] is zero'),
        ({'X': [[0, 0, 2, 0, 0, 0]]}, 'axis of length 2, expected 1'),
        ({'X': [['a', 0, 1, 0, 0, 0]]}, 'not an array of numbers'),
        ({'B': np.eye(4)}, r'B has shape \(4, 4\), expected \(1, 4, 4\)'),
        ({'B': [np.diag([1.0, 1.0, 2.0, 1.0])]}, 'does not hold a rotation'),
        ({'B': [np.diag([1.0, 1.0, -1.0, 1.0])]}, 'right-handed'),
        ({'parents': [0]}, r'parents\[0\] is 0, expected -1'),
        ({'parents': [-1, 0]}, 'expected 1 integers'),
        ({'inertias': [(1.0, [0, 0, 0])] * 2}, 'inertias has 2 entries, expected 1'),
        ({'inertias': [(1.0, [0, 0, 0], np.triu(np.ones((3, 3))))]}, 'not symmetric'),
        ({'inertias': ['heavy']}, 'expected'),
        ({'inertias': [np.diag([1.0, 1, 1, 1, 1, 2])]}, 'not the inertia of a rigid body'),
        ({'joint_names': ['a', 'b']}, 'joint_names has 2 entries'),
        ({'link_names': ['base']}, "two links 'base'"),
        ({'limits': [tuple(range(9))]}, 'expected'),
        ({'tool': np.eye(3)}, 'tool has shape'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(arguments, message):
    with pytest.raises(ModelError, match=message):
        RobotModel.from_body_screws(**{'X': [TURN], 'B': [STAND], **arguments})


def test_axes_and_rotations_from_printed_tables_are_made_exact():
    e = np.array([0.70711, 0.0, 0.70711])
    R = np.eye(4)
    R[:2, :2] = [[0.8660254, -0.5], [0.5, 0.8660254]]
    model = RobotModel.from_body_screws(
        [[*e, *np.cross([0.1, 0.2, 0.3], e)]], [R], inertias=[np.eye(6)]
    )
    assert model.joint_types == ('revolute',)
    assert np.linalg.norm(model.X[0, :3]) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(
        model.B[0, :3, :3].T @ model.B[0, :3, :3], np.eye(3), atol=1e-14
    )
