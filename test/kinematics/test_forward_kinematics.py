"""Forward kinematics against Pinocchio and against derivatives of the pose itself."""

import numpy as np
import pytest
from support import random_trees, robots
from support.interpolation import derivatives_at_zero, taylor

from hodyn_ros import HodynError, RobotModel, forward_kinematics
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics import jacobian

pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

SEEDS = range(12)
K = 5


def case(seed):
    # Pinocchio knows no mimic joints by default, so there are none here; the inverse dynamics
    # tests cover them.
    robot = random_trees.random_robot(seed, mimic_probability=0.0)
    model = RobotModel.from_urdf(robot.xml)
    motion = random_trees.random_motion(seed, model.n_joints, K)
    link = sorted(model.links)[seed % len(model.links)]
    return robot, model, motion, link


@pytest.mark.parametrize('seed', SEEDS)
def test_pose_twist_and_acceleration_match_pinocchio(seed):
    robot, model, motion, link = case(seed)
    reference = pin.buildModelFromXML(robot.xml)
    data = reference.createData()
    q, v, a = pin.neutral(reference), np.zeros(reference.nv), np.zeros(reference.nv)
    for j, name in enumerate(model.joint_names):
        joint = reference.joints[reference.getJointId(name)]
        if joint.nq == 2:
            q[joint.idx_q : joint.idx_q + 2] = np.cos(motion[0, j]), np.sin(motion[0, j])
        else:
            q[joint.idx_q] = motion[0, j]
        v[joint.idx_v], a[joint.idx_v] = motion[1, j], motion[2, j]
    pin.forwardKinematics(reference, data, q, v, a)
    pin.updateFramePlacements(reference, data)
    frame = reference.getFrameId(link)
    for expressed_in, convention in (
        ('body', pin.LOCAL),
        ('spatial', pin.WORLD),
        ('hybrid', pin.LOCAL_WORLD_ALIGNED),
    ):
        ours = forward_kinematics(model, motion[:3], link, expressed_in)
        np.testing.assert_allclose(ours.pose, data.oMf[frame].homogeneous, atol=1e-13)
        twist = pin.getFrameVelocity(reference, data, frame, convention)
        np.testing.assert_allclose(
            ours.twist[0], np.concatenate([twist.angular, twist.linear]), atol=1e-12
        )
        # There Pinocchio's is not the derivative of the coordinates.
        if expressed_in != 'hybrid':
            acceleration = pin.getFrameAcceleration(reference, data, frame, convention)
            np.testing.assert_allclose(
                ours.twist[1],
                np.concatenate([acceleration.angular, acceleration.linear]),
                atol=1e-11,
            )


@pytest.mark.parametrize('expressed_in', ['body', 'spatial', 'hybrid'])
@pytest.mark.parametrize('seed', SEEDS)
def test_derivatives_of_the_twist_are_those_of_its_coordinates(seed, expressed_in):
    _, model, motion, link = case(seed)
    twist = forward_kinematics(model, motion, link, expressed_in).twist

    def coordinates(times):
        return forward_kinematics(
            model, taylor(motion, times)[:, :2], link, expressed_in
        ).twist

    expected = derivatives_at_zero(coordinates, K - 2)
    scale = max(1.0, np.abs(twist).max())
    for k in range(K - 1):
        np.testing.assert_allclose(twist[k], expected[k][0], atol=1e-10 * scale * 10**k)


def test_any_batch_shape_and_the_tip_by_default():
    model = RobotModel.from_urdf(robots.TWO_LINK, tip_link='tool')
    motion = np.random.default_rng(0).normal(size=(3, 2, 4, 2))
    result = forward_kinematics(model, motion)
    assert result.pose.shape == (3, 2, 4, 4)
    assert result.twist.shape == (3, 2, 3, 6)
    one = forward_kinematics(model, motion[1, 0], 'tool')
    np.testing.assert_allclose(result.twist[1, 0], one.twist, atol=1e-12)
    assert forward_kinematics(model, motion[:, :, :1]).twist.shape == (3, 2, 0, 6)
    assert forward_kinematics(model, motion[:0]).pose.shape == (0, 2, 4, 4)


@pytest.mark.every_case
@pytest.mark.parametrize('compute', [forward_kinematics, jacobian])
@pytest.mark.parametrize(
    ('columns', 'arguments', 'error', 'words'),
    [
        (2, (), ModelError, 'name one of the links base, upper, fore, tool'),
        (2, ('hand',), ModelError, "no link 'hand'"),
        (2, ('tool', 'world'), HodynError, 'expressed_in'),
        (5, ('tool',), MotionError, 'shape'),
    ],
)
def test_bad_input_is_refused_with_the_reason(compute, columns, arguments, error, words):
    with pytest.raises(error, match=words):
        compute(RobotModel.from_urdf(robots.TWO_LINK), np.zeros((3, columns)), *arguments)
