"""Models from joint screws, models as URDF, and what neither may be."""

import numpy as np
import pytest

from hodyn_ros import RobotModel, to_urdf
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3

TURN = [0, 0, 1, 0, 0, 0]
STAND = np.eye(4)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def test_urdf_keeps_names_types_and_limits():
    limits = [(-1.0, 2.0, 3.0, 40.0), None, (-np.inf, 0.5, 1.0, np.inf)]
    model = RobotModel.from_body_screws(
        [TURN, [0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]],
        [STAND] * 3,
        inertias=[np.eye(6)] * 3,
        joint_names=['pan', 'tilt', 'reach'],
        link_names=['a', 'b', 'c'],
        limits=limits,
        name='turret',
        base_link='floor',
    )
    assert model.tip_link == 'c'
    again = RobotModel.from_urdf(to_urdf(model))
    assert (again.name, again.base_link) == ('turret', 'floor')
    assert again.joint_names == ('pan', 'tilt', 'reach')
    assert again.joint_types == ('revolute', 'continuous', 'prismatic')
    for name in ('lower', 'upper', 'velocity'):
        np.testing.assert_array_equal(
            getattr(again.limits, name), getattr(model.limits, name)
        )


@pytest.mark.parametrize('pitch', [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 0.3])
def test_urdf_rotations_are_right_at_the_singularity_of_roll_pitch_yaw(pitch):
    R = se3.exp([0, 0, 0.7, 0, 0, 0]) @ se3.exp([0, pitch, 0, 0, 0, 0])
    R = R @ se3.exp([-1.2, 0, 0, 0, 0, 0])
    model = RobotModel.from_body_screws([TURN], R[None], inertias=[np.eye(6)])
    again = RobotModel.from_urdf(to_urdf(model))
    np.testing.assert_allclose(again.B, model.B, atol=1e-14)


def test_joints_keep_the_order_in_which_they_are_given():
    # Depth first, the fourth body would come before the third.
    model = RobotModel.from_body_screws(
        [TURN] * 4, [STAND] * 4, parents=[-1, 0, 0, 1], inertias=[np.eye(6)] * 4
    )
    assert model.joint_names == ('joint1', 'joint2', 'joint3', 'joint4')
    assert model.tip_link is None
    np.testing.assert_array_equal(model.parent, [-1, 0, 0, 1])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'X': [TURN[:5]]}, r'X has shape \(1, 5\), expected \(n, 6\)'),
        ({'X': [[0, 0, 0, 0, 0, 0]]}, r'X\[0\] is zero'),
        ({'X': [[0, 0, 2, 0, 0, 0]]}, 'axis of length 2, expected 1'),
        ({'B': [np.diag([1.0, 1.0, -1.0, 1.0])]}, 'right-handed'),
        ({'parents': [0]}, r'parents\[0\] is 0, expected -1'),
        ({'inertias': [(1.0, [0, 0, 0], np.triu(np.ones((3, 3))))]}, 'not symmetric'),
        ({'inertias': [np.diag([1.0, 1, 1, 1, 1, 2])]}, 'not the inertia of a rigid body'),
        ({'link_names': ['base']}, "two links 'base'"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(arguments, message):
    with pytest.raises(ModelError, match=message):
        RobotModel.from_body_screws(**{'X': [TURN], 'B': [STAND], **arguments})


def test_axes_and_rotations_from_printed_tables_are_made_exact():
    R = np.eye(4)
    R[:2, :2] = [[0.8660254, -0.5], [0.5, 0.8660254]]
    axis = [0.70711, 0, 0.70711, 0, 0, 0]
    model = RobotModel.from_body_screws([axis], [R], inertias=[np.eye(6)])
    assert np.linalg.norm(model.X[0]) == pytest.approx(1.0, abs=1e-14)
    R = model.B[0, :3, :3]
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-14)
