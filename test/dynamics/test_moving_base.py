"""Robots whose base moves, beside the same robots on a carrier and beside Pinocchio's."""

import dataclasses
from math import comb

import numpy as np
import pytest
from support.random_trees import (
    random_inertias,
    random_poses,
    random_screws,
)

from hodyn_ros import (
    RobotModel,
    Wrench,
    floating_base_forward_dynamics,
    forward_kinematics,
    inverse_dynamics,
    moving_base_inverse_dynamics,
)
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.model.friction import Coulomb, Viscous

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

N_CARRIER, N_ARM = 6, 5


def carrier_and_arm(seed):
    """A robot, its first six joints, whose last body is the base of the rest, and this rest."""
    rng = np.random.default_rng(seed)
    n = N_CARRIER + N_ARM
    X, B, inertias = random_screws(rng, n), random_poses(rng, n), random_inertias(rng, n)
    gravity = rng.normal(size=3) * 5.0
    parents = [
        *range(-1, N_CARRIER),
        *(int(rng.integers(N_CARRIER - 1, i)) for i in range(7, n)),
    ]
    light = [None] * (N_CARRIER - 1) + inertias[N_CARRIER - 1 :]
    whole = RobotModel.from_body_screws(
        X, B, parents=parents, inertias=light, gravity=gravity
    )
    carrier = RobotModel.from_body_screws(
        X[:6], B[:6], inertias=inertias[:6], gravity=gravity
    )
    arm = RobotModel.from_body_screws(
        X[6:],
        B[6:],
        parents=[max(p - 6, -1) for p in parents[6:]],
        inertias=inertias[6:],
        gravity=gravity,
    )
    return whole, carrier, arm.with_payload('base', *inertias[5])


def close(actual, expected, tolerance):
    """Whether each order (..., K, n) is right beside the largest of all orders."""
    return np.abs(actual - expected).max() <= tolerance * np.abs(expected).max()


def flying_robot(gravity=(0.5, -1.0, -9.0)):
    """URDF of a tree of revolute and prismatic joints, all links with inertia, and its model."""
    link = (
        '<link name="l{i}"><inertial><origin xyz="0.1 {y} -0.2" rpy="0.3 0.1 {y}"/>'
        '<mass value="{m}"/><inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0.02" ixz="-0.03" '
        'iyz="0.01"/></inertial></link>'
    )
    joint = (
        '<joint name="j{i}" type="{kind}"><parent link="l{p}"/><child link="l{i}"/>'
        '<origin xyz="0.3 {y} 0.2" rpy="0.4 {y} -1.0"/><axis xyz="{axis}"/>'
        '<limit effort="9" velocity="9" lower="-9" upper="9"/></joint>'
    )
    parents, axes = [0, 1, 1, 3], ['0 0 1', '0 1 0', '1 0 0', '0.6 0.8 0']
    kinds = ['revolute', 'prismatic', 'revolute', 'revolute']
    parts = [link.format(i=i, y=0.1 * i, m=2.0 - 0.3 * i) for i in range(5)]
    parts += [
        joint.format(i=i + 1, p=p, y=0.1 * i, axis=axis, kind=kind)
        for i, (p, axis, kind) in enumerate(zip(parents, axes, kinds))
    ]
    xml = f'<robot name="flying">{"".join(parts)}</robot>'
    return xml, RobotModel.from_urdf(xml, gravity=gravity)


def test_wrenches_in_base_axes_move_with_the_base():
    """What they add to the efforts depends on what moves relative to the base alone."""
    _, carrier, arm = carrier_and_arm(5)
    rng = np.random.default_rng(6)
    motion = rng.uniform(-1.0, 1.0, (3, 5, N_CARRIER + N_ARM))
    base = forward_kinematics(carrier, motion[..., :6], 'link6')
    joints = motion[..., 6:]
    alone = moving_base_inverse_dynamics(arm, joints, base)
    for expressed_in in ('body', 'spatial', 'hybrid'):
        wrench = Wrench('link4', rng.normal(size=(3, 3, 6)), expressed_in)
        found = moving_base_inverse_dynamics(arm, joints, base, wrench)
        still = inverse_dynamics(arm, joints, wrench) - inverse_dynamics(arm, joints)
        assert found.effort - alone.effort == pytest.approx(still, abs=1e-9)
        on_base = Wrench('base', wrench.values, expressed_in)
        found = moving_base_inverse_dynamics(arm, joints, base, on_base)
        assert found.effort == pytest.approx(alone.effort)
        assert found.base_wrench - alone.base_wrench == pytest.approx(
            on_base.values, abs=1e-9
        )


def test_readings_of_an_inertial_measurement_unit_do_without_a_pose():
    """Angular velocity and proper acceleration of the base, with derivatives, are all it takes."""
    _, carrier, arm = carrier_and_arm(10)
    motion = np.random.default_rng(10).uniform(-1.0, 1.0, (5, N_CARRIER + N_ARM))
    base = forward_kinematics(carrier, motion[:, :6], 'link6')
    w, v = base.twist[:, :3], base.twist[:, 3:]
    up, a, linear = [-base.pose[:3, :3].T @ arm.gravity], [], [np.zeros(3)]

    def product(x, y, k):
        return sum(comb(k, j) * np.cross(x[j], y[k - j]) for j in range(k + 1))

    for k in range(3):
        a.append(v[k + 1] + product(w, v, k) + up[k])
        up.append(-product(w, up, k))
        linear.append(a[k] - product(w, linear, k))
    measured = np.eye(4), np.concatenate([w, linear], axis=1)
    weightless = dataclasses.replace(arm, gravity=np.zeros(3))
    found = moving_base_inverse_dynamics(weightless, motion[:, 6:], measured)
    expected = moving_base_inverse_dynamics(arm, motion[:, 6:], base)
    for x, y in zip(found, expected):
        assert close(x, y, 1e-13)


def test_friction_and_armature_are_those_of_the_joints():
    _, carrier, arm = carrier_and_arm(7)
    motion = np.random.default_rng(8).uniform(-1.0, 1.0, (5, N_CARRIER + N_ARM))
    base = forward_kinematics(carrier, motion[..., :6], 'link6')
    joints = motion[..., 6:]
    lossy = arm.with_friction({'joint2': Viscous(0.3) + Coulomb(0.5, 0.1)})
    lossy = lossy.with_armature({'joint3': 0.4})
    found = moving_base_inverse_dynamics(lossy, joints, base)
    alone = moving_base_inverse_dynamics(arm, joints, base)
    still = inverse_dynamics(lossy, joints) - inverse_dynamics(arm, joints)
    assert found.effort - alone.effort == pytest.approx(still, abs=1e-10)
    assert found.base_wrench == pytest.approx(alone.base_wrench)
    back = floating_base_forward_dynamics(
        lossy, joints[:2], base, found.effort, base_wrench=found.base_wrench
    )
    assert back.acceleration == pytest.approx(joints[2:], rel=1e-8, abs=1e-8)


# --- A base that floats --------------------------------------------------------------------------


@pytest.mark.parametrize('expressed_in', ['body', 'spatial', 'hybrid'])
@pytest.mark.parametrize('seed', [0, 1])
def test_the_wrench_and_efforts_of_a_motion_cause_it(seed, expressed_in):
    _, carrier, arm = carrier_and_arm(seed)
    rng = np.random.default_rng(seed)
    motion = rng.uniform(-1.0, 1.0, (4, 6, N_CARRIER + N_ARM))
    base = forward_kinematics(carrier, motion[..., :6], 'link6')
    joints = motion[..., 6:]
    contacts = [Wrench('link5', rng.normal(size=(4, 4, 6)), 'hybrid', 'on_robot')]
    contacts.append(Wrench('base', rng.normal(size=(4, 4, 6))))
    given = moving_base_inverse_dynamics(arm, joints, base, contacts)
    start = forward_kinematics(carrier, motion[:, :2, :6], 'link6', expressed_in)
    found = floating_base_forward_dynamics(
        arm,
        joints[:, :2],
        start,
        given.effort,
        contacts,
        base_wrench=given.base_wrench,
        expressed_in=expressed_in,
    )
    assert close(found.acceleration, joints[:, 2:], 1e-9)
    assert close(found.twist_rate, base.twist[:, 1:], 1e-9)


# --- What cannot be computed ---------------------------------------------------------------------

POSE, TWIST = np.eye(4), np.zeros((4, 6))
STRETCHED = np.diag([1.0, 1.0, 1.1, 1.0])


@pytest.mark.every_case
@pytest.mark.parametrize(
    'base, message',
    [
        (
            (POSE, TWIST[:3]),
            r'twist of the base has shape \(3, 6\), expected \(..., 4, 6\)',
        ),
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
    if np.shape(base[1]) == (4, 6) and base[0] is not POSE:
        with pytest.raises(MotionError, match=message):
            floating_base_forward_dynamics(model, np.zeros((2, 7)), base, np.zeros((1, 7)))


def test_a_base_without_inertia_cannot_float():
    model = RobotModel.from_urdf('two_link')
    with pytest.raises(ModelError, match='give the base link an inertia'):
        floating_base_forward_dynamics(
            model, np.zeros((2, 2)), (POSE, TWIST), np.zeros((1, 2))
        )
    heavy = model.with_payload(model.base_link, 2.0, (0.0, 0.0, 0.1), np.eye(3) * 0.1)
    found = floating_base_forward_dynamics(
        heavy, np.zeros((2, 2)), (POSE, TWIST), [[0.0, 0.0]]
    )
    # It falls.
    assert found.twist_rate[0] == pytest.approx([0, 0, 0, *heavy.gravity], abs=1e-12)


def test_an_impossible_inertia_of_the_base_link_is_refused_where_it_matters():
    xml, model = flying_robot()
    still = model.M_base.copy()
    impossible = xml.replace('ixx="0.2"', 'ixx="-2.0"', 1)
    with pytest.warns(match='not used as long as the base is at rest'):
        model = RobotModel.from_urdf(impossible)
    assert np.isfinite(still).all()
    assert np.isfinite(inverse_dynamics(model, np.zeros((3, 4)))).all()
    with pytest.raises(ModelError, match='inertia of the base link'):
        moving_base_inverse_dynamics(model, np.zeros((3, 4)), (POSE, TWIST))


def test_no_samples_need_no_efforts():
    _, model = flying_robot()
    base = np.zeros((0, 4, 4)), np.zeros((0, 4, 6))
    assert moving_base_inverse_dynamics(model, np.zeros((0, 5, 4)), base).effort.shape == (
        0,
        3,
        4,
    )
    found = floating_base_forward_dynamics(
        model, np.zeros((0, 2, 4)), base, np.zeros((0, 1, 4))
    )
    assert found.twist_rate.shape == (0, 1, 6)
