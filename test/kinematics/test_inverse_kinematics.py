"""Inverse kinematics: round trips, and derivatives of the returned positions by interpolation."""

from pathlib import Path

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
PI_2 = 0.5 * np.pi
EXPRESSIONS = ('body', 'spatial', 'hybrid')
PANDA_FILE = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'


def chain(*joints, names=None, extra=''):
    """URDF of a chain from rows of (type, axis, xyz, rpy[, limits])."""
    elements = ['<link name="base"/>']
    parent = 'base'
    for number, (kind, axis, xyz, rpy, *limits) in enumerate(joints, start=1):
        name = f'joint{number}' if names is None else names[number - 1]
        lower, upper = limits[0] if limits else (-6.2, 6.2)
        elements += [
            robots.link(f'link{number}'),
            f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}" rpy="{rpy}"/>'
            f'<parent link="{parent}"/><child link="link{number}"/><axis xyz="{axis}"/>'
            f'<limit lower="{lower}" upper="{upper}" velocity="3" effort="100"/></joint>',
        ]
        parent = f'link{number}'
    elements += [
        '<link name="tool"/>',
        f'<joint name="flange" type="fixed"><origin xyz="0.1 0.02 0.05" rpy="0.2 0.1 0.3"/>'
        f'<parent link="{parent}"/><child link="tool"/></joint>',
    ]
    return robots.robot(*elements, extra)


# The dimensions of a UR5: three parallel axes and a wrist whose axes do not meet.
SIX = (
    ('revolute', '0 0 1', '0 0 0.089', '0 0 0'),
    ('revolute', '0 1 0', '0 0.136 0', '0 0 0'),
    ('revolute', '0 1 0', '0 -0.12 0.425', '0 0 0'),
    ('revolute', '0 1 0', '0 0 0.392', '0 0 0'),
    ('revolute', '0 0 1', '0 0.093 0', '0 0 0'),
    ('revolute', '0 1 0', '0 0 0.095', '0 0 0'),
)
RAILS = (
    ('prismatic', '1 0 0', '0 0 0', '0 0 0', (-1.5, 1.5)),
    ('prismatic', '0 1 0', '0 0 0.1', '0 0 0', (-1.0, 2.0)),
)
AWAY = ('revolute', '0 0 1', '0.4 0 0', '0 0 0')
Q_SIX = np.array([0.3, -1.1, 1.4, -0.6, 1.2, 0.4])
Q_PANDA = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
# A planar arm in the x-y plane of the base, which is turned against nothing: its axes are z.
PLANAR = chain(AWAY, AWAY, AWAY)


def six():
    return RobotModel.from_urdf(chain(*SIX), tip_link='tool')


def panda():
    return RobotModel.from_urdf(PANDA_FILE, tip_link='panda_link8')


def swinging(q, times, seed=0, amplitude=0.25, orders=K):
    """Joint motion about q, shape (*times.shape, orders, n)."""
    rng = np.random.default_rng(seed)
    n = len(q)
    a, w, phase = (rng.uniform(low, 1.0, n) for low in (-1.0, 0.5, -1.0))
    t = np.asarray(times)[..., None]
    return np.stack(
        [
            q * (k == 0)
            + amplitude * a * (2 * w) ** k * np.sin(2 * w * t + 6 * phase + k * PI_2)
            for k in range(orders)
        ],
        axis=-2,
    )


TOLERANCES = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)


def assert_orders_close(actual, expected, tolerances=TOLERANCES):
    assert actual.shape == expected.shape
    for k, tolerance in zip(range(expected.shape[-2]), tolerances):
        scale = max(1.0, np.abs(expected[..., k, :]).max())
        np.testing.assert_allclose(
            actual[..., k, :], expected[..., k, :], rtol=0, atol=tolerance * scale
        )


# --- As many joints as equations -----------------------------------------------------------------


@pytest.mark.parametrize('expressed_in', EXPRESSIONS)
@pytest.mark.parametrize('orders', [1, 2, 5, 7])
def test_six_joints_return_to_where_they_came_from(expressed_in, orders):
    model = six()
    motion = swinging(Q_SIX, np.linspace(0.0, 1.0, 9), orders=orders)
    wanted = forward_kinematics(model, motion, expressed_in=expressed_in)
    result = inverse_kinematics(model, wanted, expressed_in=expressed_in, guess=Q_SIX)
    assert_orders_close(result.motion, motion)
    assert result.residual.max() < 1e-14
    assert result.iterations.max() <= 6
    J = jacobian(model, motion[..., :1, :], expressed_in='hybrid')[..., 0, :, :]
    reach = 0.089 + 0.136 + np.hypot(0.12, 0.425) + 0.392 + 0.093 + 0.095
    reach += np.linalg.norm([0.1, 0.02, 0.05])
    J[..., 3:, :] /= reach
    np.testing.assert_allclose(result.manipulability, np.abs(np.linalg.det(J)), rtol=1e-9)
    s = np.linalg.svd(J, compute_uv=False)[..., -1]
    np.testing.assert_allclose(result.singular_value, s, rtol=1e-9)


def test_joints_turn_fully_into_their_limits_but_not_along_a_trajectory():
    model = six()  # limits of 6.2 rad, a little less than a full turn
    motion = np.repeat(Q_SIX[None, None], 9, axis=0)
    motion[:, 0, 5] = np.linspace(5.9, 6.5, 9)
    wanted = forward_kinematics(model, motion)
    with pytest.raises(InverseKinematicsError, match=r'sample 5.* joint6 at the limits'):
        inverse_kinematics(model, wanted, guess=motion[0, 0])
    alone = inverse_kinematics(model, wanted, guess=motion[:, 0])
    motion[5:, 0, 5] -= 2 * np.pi
    np.testing.assert_allclose(alone.motion, motion, atol=1e-12)


# --- Redundant arms ------------------------------------------------------------------------------


def test_unit_of_length_changes_nothing():
    results = []
    for unit in (1.0, 1000.0):

        def scaled(text, unit=unit):
            return ' '.join(str(float(number) * unit) for number in text.split())

        rows = [
            (row[0], row[1], scaled(row[2]), row[3], (-1e4, 1e4)) for row in (*RAILS, *SIX)
        ]
        xml = chain(*rows).replace('0.1 0.02 0.05', scaled('0.1 0.02 0.05'))
        model = RobotModel.from_urdf(xml, tip_link='tool')
        q = np.concatenate([[0.2 * unit, -0.1 * unit], Q_SIX])
        motion = swinging(q, np.array(0.3))
        motion[..., 1:, :2] *= unit
        motion[..., 0, :2] = q[:2]
        result = inverse_kinematics(
            model, forward_kinematics(model, motion), guess=motion[0]
        )
        results.append(result)
    metres, millimetres = results
    np.testing.assert_allclose(
        millimetres.singular_value, metres.singular_value, rtol=1e-12
    )
    np.testing.assert_allclose(
        millimetres.manipulability, metres.manipulability, rtol=1e-12
    )
    rescaled = millimetres.motion.copy()
    rescaled[..., :2] /= 1000.0
    np.testing.assert_allclose(rescaled, metres.motion, rtol=1e-9, atol=1e-9)


def test_least_norm_with_damping_or_beyond_limits_is_refused():
    model = panda()
    times = np.linspace(0.0, 1.0, 5)
    wanted = forward_kinematics(model, swinging(Q_PANDA, times))
    with pytest.raises(HodynError, match='damping'):
        inverse_kinematics(
            model,
            wanted,
            guess=Q_PANDA,
            times=times,
            options=InverseKinematicsOptions(damping=0.1),
        )
    model = RobotModel.from_urdf(chain((*AWAY, (-0.5, 0.5)), AWAY, AWAY), tip_link='tool')
    motion = np.zeros((3, 3, 3))
    motion[:, 0] = 0.1, 1.1, 0.5
    with pytest.raises(
        InverseKinematicsError, match="takes joint 'joint1' beyond .* sample 1"
    ):
        inverse_kinematics(
            model,
            forward_kinematics(model, motion),
            guess=motion[0, 0],
            task=('x', 'y'),
            redundancy=LeastNorm(posture=[2.0, 0.0, 0.0], rate=[5.0, 0.0, 0.0]),
            times=[0.0, 1.0, 2.0],
        )


# --- Tasks of fewer rows -------------------------------------------------------------------------


def test_tasks_that_do_not_fit_are_refused():
    model = RobotModel.from_urdf(PLANAR, tip_link='tool')
    wanted = forward_kinematics(model, np.zeros((3, 3)) + [0.1, 0.5, 0.2])
    with pytest.raises(HodynError, match='more than the 3 joints'):
        inverse_kinematics(model, wanted)
    with pytest.raises(HodynError, match='expected one or more of rx, ry, rz, x, y, z'):
        inverse_kinematics(model, wanted, task=('x', 'yaw'))
    with pytest.raises(HodynError, match='each once'):
        inverse_kinematics(model, wanted, task=('x', 'x'))
    with pytest.raises(HodynError, match='prescribe all of rx, ry, rz or none'):
        spatial = six()
        inverse_kinematics(
            spatial, forward_kinematics(spatial, Q_SIX[None]), task=('x', 'y', 'z', 'rz')
        )
    with pytest.raises(HodynError, match='No joint moves'):
        inverse_kinematics(model, wanted, 'base')
    tilted = wanted.pose.copy()
    tilted[:3, :3] = tilted[:3, :3] @ [[1, 0, 0], [0, 0.8, -0.6], [0, 0.6, 0.8]]
    with pytest.raises(InverseKinematicsError, match='cannot turn it'):
        inverse_kinematics(
            model, (tilted, np.zeros((2, 6))), task=('x', 'y', 'rz'), guess=[0.1, 0.5, 0.2]
        )
    with pytest.raises(MotionError, match='cannot turn it'):
        inverse_kinematics(
            model,
            (wanted.pose, np.ones((2, 6))),
            task=('x', 'y', 'rz'),
            guess=[0.1, 0.5, 0.2],
        )


# --- Trees, mimic joints, batches ----------------------------------------------------------------


def test_joints_off_the_way_stay_and_mimic_joints_follow():
    xml = robots.robot(
        '<link name="base"/>',
        robots.link('upper'),
        robots.link('fore'),
        robots.link('hand'),
        robots.link('side'),
        robots.joint('shoulder', 'base', 'upper', axis='0 0 1').replace(
            'rpy="0.1 0 0.2"', ''
        ),
        robots.joint('branch', 'upper', 'side', axis='0 0 1'),
        robots.joint('elbow', 'upper', 'fore', axis='0 0 1').replace('rpy="0.1 0 0.2"', ''),
        robots.joint(
            'wrist',
            'fore',
            'hand',
            axis='0 0 1',
            extra='<mimic joint="elbow" multiplier="-0.5" offset="0.3"/>',
        ).replace('rpy="0.1 0 0.2"', ''),
    )
    model = RobotModel.from_urdf(xml)
    off = model.joint_names.index('branch')
    motion = swinging(np.array([0.4, 0.9, 0.9]), np.linspace(0, 1, 5))
    motion[:, :, off] = 0.0
    motion[:, 0, off] = 0.7
    wanted = forward_kinematics(model, motion, 'hand')
    guess = motion[0, 0] * [1.05, 1.05, 1.05]
    guess[off] = 0.7
    result = inverse_kinematics(model, wanted, 'hand', guess=guess, task=('x', 'y'))
    assert_orders_close(result.motion, motion)
    moved = swinging(np.array([0.2]), np.linspace(0, 1, 5))[..., 0]
    result = inverse_kinematics(
        model,
        wanted,
        'hand',
        guess=guess,
        task=('x', 'y'),
        redundancy=JointTask('branch', moved),
    )
    motion[:, :, off] = moved
    assert_orders_close(result.motion, motion)


def test_any_batch_shape_and_all_forms_of_guesses():
    model = six()
    motion = swinging(Q_SIX, np.linspace(0.0, 1.0, 24).reshape(2, 3, 4))
    wanted = forward_kinematics(model, motion)
    for guess in (Q_SIX, motion[:, :, :1, 0] + 0.01, motion[..., 0, :] + 0.01, Q_SIX[None]):
        result = inverse_kinematics(model, wanted, guess=guess)
        assert result.motion.shape == (2, 3, 4, K, 6)
        for field in result[1:]:
            assert field.shape == (2, 3, 4)
        assert_orders_close(result.motion, motion)
    one = inverse_kinematics(
        model, (wanted.pose[1, 2, 3], wanted.twist[1, 2, 3]), guess=Q_SIX
    )
    assert one.motion.shape == (K, 6)
    assert one.residual.shape == ()
    empty = inverse_kinematics(
        model, (wanted.pose[:, :0], wanted.twist[:, :0]), guess=Q_SIX
    )
    assert empty.motion.shape == (2, 0, 4, K, 6)


def test_bad_criteria_and_options_are_refused_with_the_reason():
    model = panda()
    wanted = forward_kinematics(model, swinging(Q_PANDA, np.array(0.0), orders=3))
    for criterion, match in (
        (LeastNorm(weights=np.ones(6)), r'weights has shape \(6,\), expected \(7,\)'),
        (LeastNorm(weights=np.zeros(7)), 'positive'),
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
            inverse_kinematics(model, wanted, guess=Q_PANDA, redundancy=criterion)
    with pytest.raises(MotionError, match='not all zero'):
        JointTask({'panda_joint3': 0.0}, np.zeros(3))
    with pytest.raises(MotionError, match='finite'):
        JointTask('panda_joint3', [0.0, np.nan])
    with pytest.raises(HodynError, match='tolerance is -1'):
        InverseKinematicsOptions(tolerance=-1.0)
    with pytest.raises(HodynError, match='length is 0'):
        InverseKinematicsOptions(length=0.0)


# --- Combined with inverse dynamics --------------------------------------------------------------
