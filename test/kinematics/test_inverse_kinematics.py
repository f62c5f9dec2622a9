"""Inverse kinematics: round trips, and derivatives of the returned positions by interpolation."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import HodynError, RobotModel, forward_kinematics
from hodyn_ros.errors import (
    InverseKinematicsError,
    MotionError,
)
from hodyn_ros.kinematics import (
    InverseKinematicsOptions,
    JointTask,
    LeastNorm,
    inverse_kinematics,
    jacobian,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

K = 5


Q_SIX = np.array([0.3, -1.1, 1.4, -0.6, 1.2, 0.4])
Q_PANDA = np.array([0.0, -0.8, 0.0, -2.4, 0.0, 1.6, 0.8])


@pytest.fixture(scope='module')
def six():
    return RobotModel.from_urdf('ur5e', tip_link='tool0')


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf('panda', tip_link='panda_link8')


@pytest.fixture(scope='module')
def planar():
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = 0.4
    limits = [(-0.5, 0.5, 3.0, 9.0), None, None]
    return RobotModel.from_body_screws(
        [[0, 0, 1, 0, 0, 0]] * 3, poses, tool=poses[0], limits=limits
    )


def swinging(q, times, orders=K):
    """Joint motion about q, shape (*times.shape, orders, n)."""
    k, n = np.arange(orders)[:, None], len(q)
    speed, phase = np.linspace(0.6, 1.9, n), 1.3 * np.arange(n)
    wave = np.sin(np.multiply.outer(times, speed)[..., None, :] + phase + 0.5 * np.pi * k)
    return 0.2 * speed**k * wave + q * (k == 0)


TOLERANCES = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)


def assert_orders_close(actual, expected, tolerances=TOLERANCES):
    assert actual.shape == expected.shape
    for k, tolerance in zip(range(expected.shape[-2]), tolerances):
        scale = max(1.0, np.abs(expected[..., k, :]).max())
        np.testing.assert_allclose(
            actual[..., k, :], expected[..., k, :], rtol=0, atol=tolerance * scale
        )


# --- As many joints as equations -----------------------------------------------------------------


@pytest.mark.parametrize('orders', [7, 1])
def test_six_joints_return_to_where_they_came_from(six, orders):
    motion = swinging(Q_SIX, np.linspace(0.0, 1.0, 9), orders)
    result = inverse_kinematics(six, forward_kinematics(six, motion), guess=Q_SIX)
    assert_orders_close(result.motion, motion)
    assert result.residual.max() < 1e-14
    assert result.iterations.max() <= 6
    J = jacobian(six, motion[..., :1, :], expressed_in='hybrid')[..., 0, :, :]
    lengths = [*six.B[:, :3, 3], six.link('tool0').pose[:3, 3]]
    J[..., 3:, :] /= np.linalg.norm(lengths, axis=1).sum()
    np.testing.assert_allclose(result.manipulability, np.abs(np.linalg.det(J)), rtol=1e-9)
    s = np.linalg.svd(J, compute_uv=False)[..., -1]
    np.testing.assert_allclose(result.singular_value, s, rtol=1e-9)


def test_joints_turn_fully_into_their_limits_but_not_along_a_trajectory(six):
    motion = np.repeat(Q_SIX[None, None], 9, axis=0)
    motion[:, 0, 5] = np.linspace(5.9, 6.5, 9)  # the limits are at a full turn
    wanted = forward_kinematics(six, motion)
    with pytest.raises(InverseKinematicsError, match='sample 6.* wrist_3.* at the limits'):
        inverse_kinematics(six, wanted, guess=motion[0, 0])
    alone = inverse_kinematics(six, wanted, guess=motion[:, 0])
    motion[6:, 0, 5] -= 2 * np.pi
    np.testing.assert_allclose(alone.motion, motion, atol=1e-12)


# --- Redundant arms ------------------------------------------------------------------------------


def test_unit_of_length_changes_nothing(six):
    """Of an arm on two rails."""
    X, results = np.vstack([np.eye(6)[3:5], six.X]), []
    for unit in (1.0, 1000.0):
        B = np.concatenate([np.tile(np.eye(4), (2, 1, 1)), six.B])
        B[:, :3, 3] *= unit
        model = RobotModel.from_body_screws(X, B)
        motion = swinging(np.array([0.2, -0.1, *Q_SIX]), 0.3)
        motion[:, :2] *= unit
        wanted = forward_kinematics(model, motion)
        results.append(inverse_kinematics(model, wanted, guess=motion[0]))
        results[-1].motion[:, :2] /= unit
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_least_norm_with_damping_or_beyond_limits_is_refused(panda, planar):
    times = np.linspace(0.0, 1.0, 3)
    wanted = forward_kinematics(panda, swinging(Q_PANDA, times))
    options = {'times': times, 'options': InverseKinematicsOptions(damping=0.1)}
    with pytest.raises(HodynError, match='damping'):
        inverse_kinematics(panda, wanted, guess=Q_PANDA, **options)
    motion = np.zeros((3, 3, 3))
    motion[:, 0] = 0.1, 1.1, 0.5
    pull = LeastNorm(posture=[2.0, 0.0, 0.0], rate=[5.0, 0.0, 0.0])
    options = {'task': ('x', 'y'), 'redundancy': pull, 'times': times}
    wanted = forward_kinematics(planar, motion)
    with pytest.raises(InverseKinematicsError, match="'joint1' beyond .* sample 1"):
        inverse_kinematics(planar, wanted, guess=motion[0, 0], **options)


# --- Tasks of fewer rows -------------------------------------------------------------------------


def test_tasks_that_do_not_fit_are_refused(six, planar):
    q = np.array([0.1, 0.5, 0.2])
    wanted = forward_kinematics(planar, [q, q])
    with pytest.raises(HodynError, match='each once'):
        inverse_kinematics(planar, wanted, task=('x', 'x'))
    with pytest.raises(HodynError, match='prescribe all of rx, ry, rz or none'):
        of_six = forward_kinematics(six, Q_SIX[None])
        inverse_kinematics(six, of_six, task=('x', 'y', 'z', 'rz'))
    with pytest.raises(HodynError, match='No joint moves'):
        inverse_kinematics(planar, wanted, 'base')
    options = {'task': ('x', 'y', 'rz'), 'guess': q}
    tilted = wanted.pose.copy()
    tilted[:3, :3] = tilted[:3, :3] @ [[1, 0, 0], [0, 0.8, -0.6], [0, 0.6, 0.8]]
    with pytest.raises(InverseKinematicsError, match='cannot turn it'):
        inverse_kinematics(planar, (tilted, 0.0 * wanted.twist), **options)
    with pytest.raises(MotionError, match='cannot turn it'):
        inverse_kinematics(planar, (wanted.pose, np.ones((2, 6))), **options)


# --- Trees, mimic joints, batches ----------------------------------------------------------------


def test_joints_off_the_way_stay_and_mimic_joints_follow():
    follows = '<mimic joint="elbow" multiplier="-0.5" offset="0.3"/>'
    xml = robots.robot(
        *(robots.link(name) for name in ('base', 'upper', 'fore', 'hand', 'side')),
        robots.joint('shoulder', 'base', 'upper', axis='0 0 1'),
        robots.joint('branch', 'upper', 'side', axis='0 0 1'),
        robots.joint('elbow', 'upper', 'fore', axis='0 0 1'),
        robots.joint('wrist', 'fore', 'hand', axis='0 0 1', extra=follows),
    )
    model = RobotModel.from_urdf(xml.replace('rpy="0.1 0 0.2"', ''))
    times, off = np.linspace(0, 1, 5), model.joint_names.index('branch')
    motion = swinging(np.array([0.4, 0.9, 0.9]), times)
    guess = 1.05 * motion[0, 0]
    guess[off] = 0.7
    wanted = forward_kinematics(model, motion, 'hand')
    swung = motion[..., off].copy()
    still = [[0.7, 0, 0, 0, 0]] * 5
    for given, moved in (((), still), (JointTask('branch', swung), swung)):
        result = inverse_kinematics(
            model, wanted, 'hand', guess=guess, task=('x', 'y'), redundancy=given
        )
        motion[..., off] = moved
        assert_orders_close(result.motion, motion)


def test_any_batch_shape_and_all_forms_of_guesses(six):
    motion = swinging(Q_SIX, np.linspace(0.0, 1.0, 24).reshape(2, 3, 4))
    pose, twist = forward_kinematics(six, motion)
    for guess in (Q_SIX, motion[:, :, :1, 0] + 0.01, motion[..., 0, :] + 0.01, Q_SIX[None]):
        result = inverse_kinematics(six, (pose, twist), guess=guess)
        assert {field.shape for field in result[1:]} == {(2, 3, 4)}
        assert_orders_close(result.motion, motion)
    one = inverse_kinematics(six, (pose[1, 2, 3], twist[1, 2, 3]), guess=Q_SIX)
    assert one.motion.shape == (K, 6)
    empty = inverse_kinematics(six, (pose[:, :0], twist[:, :0]), guess=Q_SIX)
    assert empty.motion.shape == (2, 0, 4, K, 6)


def test_bad_criteria_and_options_are_refused_with_the_reason(panda):
    wanted = forward_kinematics(panda, swinging(Q_PANDA, 0.0, 3))
    for criterion, match in (
        (LeastNorm(weights=np.ones(6)), r'weights has shape \(6,\), expected \(7,\)'),
        (LeastNorm(rate=1.0), 'needs a posture'),
        (LeastNorm(rate=-1.0, posture=Q_PANDA), 'no negative'),
        ([LeastNorm(), LeastNorm()], 'at most one LeastNorm'),
        (JointTask('panda_joint3', np.zeros(4)), 'as many orders as the joint motion'),
        (
            JointTask({'panda_joint4': -2.0}, [-1.0, 0.0, 0.0]),
            "'panda_joint4' from 0.5 to 0.5",
        ),
    ):
        with pytest.raises(HodynError, match=match):
            inverse_kinematics(panda, wanted, guess=Q_PANDA, redundancy=criterion)
    with pytest.raises(MotionError, match='not all zero'):
        JointTask({'panda_joint3': 0.0}, np.zeros(3))
    with pytest.raises(HodynError, match='tolerance is -1'):
        InverseKinematicsOptions(tolerance=-1.0)
