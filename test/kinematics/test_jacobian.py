"""Jacobians and their derivatives against Pinocchio, forward kinematics and interpolation."""

import numpy as np
import pytest
from support import random_trees, robots

from hodyn_ros import RobotModel, forward_kinematics
from hodyn_ros.kinematics import jacobian
from hodyn_ros.lie import leibniz

pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

SEEDS = range(12)
EXPRESSIONS = ('body', 'spatial', 'hybrid')
CONVENTIONS = {
    'body': pin.LOCAL,
    'spatial': pin.WORLD,
    'hybrid': pin.LOCAL_WORLD_ALIGNED,
}
K = 5


def case(seed, mimic_probability=0.25):
    robot = random_trees.random_robot(seed, mimic_probability=mimic_probability)
    model = RobotModel.from_urdf(robot.xml)
    motion = random_trees.random_motion(seed, model.n_joints, K)
    link = sorted(model.links)[seed % len(model.links)]
    return robot, model, motion, link


@pytest.mark.parametrize('expressed_in', EXPRESSIONS)
@pytest.mark.parametrize('seed', SEEDS)
def test_twist_is_the_product_of_jacobian_and_velocity_in_all_orders(seed, expressed_in):
    _, model, motion, link = case(seed)
    twist = forward_kinematics(model, motion, link, expressed_in).twist
    J = jacobian(model, motion[:-1], link, expressed_in)
    assert J.shape == (K - 1, 6, model.n_joints)
    table = leibniz.binomials(K)
    for m in range(K - 1):
        product = sum(table[m, j] * J[j] @ motion[m - j + 1] for j in range(m + 1))
        np.testing.assert_allclose(
            product, twist[m], atol=1e-12 * max(1, np.abs(twist).max())
        )


@pytest.mark.parametrize('expressed_in', EXPRESSIONS)
@pytest.mark.parametrize('seed', SEEDS)
def test_jacobian_and_its_first_derivative_match_pinocchio(seed, expressed_in):
    robot, model, motion, link = case(seed, mimic_probability=0.0)
    reference = pin.buildModelFromXML(robot.xml)
    data = reference.createData()
    q, v = pin.neutral(reference), np.zeros(reference.nv)
    columns = []
    for j, name in enumerate(model.joint_names):
        joint = reference.joints[reference.getJointId(name)]
        if joint.nq == 2:
            q[joint.idx_q : joint.idx_q + 2] = np.cos(motion[0, j]), np.sin(motion[0, j])
        else:
            q[joint.idx_q] = motion[0, j]
        v[joint.idx_v] = motion[1, j]
        columns.append(joint.idx_v)
    pin.computeJointJacobiansTimeVariation(reference, data, q, v)
    pin.updateFramePlacements(reference, data)
    frame = reference.getFrameId(link)
    convention = CONVENTIONS[expressed_in]
    rows = [3, 4, 5, 0, 1, 2]  # Pinocchio's twists are (v, omega)
    expected = pin.getFrameJacobian(reference, data, frame, convention)[rows][:, columns]
    rate = pin.getFrameJacobianTimeVariation(reference, data, frame, convention)[rows][
        :, columns
    ]
    J = jacobian(model, motion[:2], link, expressed_in)
    np.testing.assert_allclose(J[0], expected, atol=1e-12)
    np.testing.assert_allclose(J[1], rate, atol=1e-11)


def test_any_batch_shape_the_tip_by_default_and_the_base():
    model = RobotModel.from_urdf(robots.TWO_LINK, tip_link='tool')
    motion = np.random.default_rng(0).normal(size=(3, 2, 4, 2))
    J = jacobian(model, motion)
    assert J.shape == (3, 2, 4, 6, 2)
    np.testing.assert_allclose(J[1, 0], jacobian(model, motion[1, 0], 'tool'), atol=1e-12)
    assert jacobian(model, motion[:0]).shape == (0, 2, 4, 6, 2)
    assert not jacobian(model, motion, 'base').any()
