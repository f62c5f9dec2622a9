"""Inverse kinematics at its edges: limits, poses out of reach, singularities, joints to choose.

Poses and Jacobians are those of Pinocchio; positions along a motion prove its derivatives.
"""

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from support.oracles import PinOracle

from hodyn_ros import (
    HodynError,
    InverseKinematicsOptions,
    JointTask,
    LeastNorm,
    RobotModel,
    forward_kinematics,
    inverse_dynamics,
    inverse_dynamics_from_link_motion,
    inverse_kinematics,
    to_urdf,
)
from hodyn_ros.errors import (
    InverseKinematicsError,
    JointNameError,
    ModelError,
    MotionError,
    SingularityError,
)

pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.7])
SIX = np.array([0.3, -1.1, 1.4, -0.6, 1.2, 0.4])


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf('panda', tip_link='panda_link8')


@pytest.fixture(scope='module')
def six():
    return RobotModel.from_urdf('ur5e', tip_link='tool0')


def by_pinocchio(model, q):
    """Pose of the tip, and its Jacobian in its own frame, angular rows first."""
    oracle = PinOracle(to_urdf(model), model.joint_names, model.gravity)
    at, frame = oracle.configuration(q), oracle.model.getFrameId(model.tip_link)
    pin.framesForwardKinematics(oracle.model, oracle.data, at)
    J = pin.computeFrameJacobian(oracle.model, oracle.data, at, frame, pin.LOCAL)
    return oracle.data.oMf[frame].homogeneous, J[[3, 4, 5, 0, 1, 2]]


def swinging(q, times, orders=5):
    """Joint motion (T, orders, n) about q."""
    k, n = np.arange(orders)[:, None], len(q)
    speed, phase = np.linspace(0.6, 1.9, n), 1.3 * np.arange(n)
    wave = np.sin(np.multiply.outer(times, speed)[:, None] + phase + 0.5 * np.pi * k)
    return 0.2 * speed**k * wave + q * (k == 0)


def limited(model, lower, upper):
    """The same arm with other limits."""
    return RobotModel.from_body_screws(
        model.X,
        model.B,
        tool=model.link(model.tip_link).pose,
        joint_names=model.joint_names,
        limits=[(low, high, 9.0, 9.0) for low, high in zip(lower, upper)],
    )


# --- What can be reached ------------------------------------------------------------------------


def test_poses_of_pinocchio_are_reached_within_the_limits(panda):
    lower, upper = panda.limits.lower, panda.limits.upper
    positions = np.random.default_rng(5).uniform(lower, upper, (10, 7))
    poses = np.array([by_pinocchio(panda, q)[0] for q in positions])
    # Each pose is a motion of its own: no sample begins where another one ended.
    found = inverse_kinematics(panda, (poses[:, None], np.zeros((10, 1, 0, 6))))
    for q, pose in zip(found.motion[:, 0, 0], poses):
        assert ((lower <= q) & (q <= upper)).all()
        np.testing.assert_allclose(by_pinocchio(panda, q)[0], pose, atol=1e-9)


def test_limits_are_kept_by_another_posture_or_the_joint_at_them_is_named(six):
    wanted = forward_kinematics(six, SIX[None])
    ends = np.full(6, 6.2)
    other = limited(six, -ends, np.where(np.arange(6) == 2, 1.0, ends))
    found = inverse_kinematics(other, wanted, guess=SIX)
    assert found.motion[0, 2] <= 1.0
    np.testing.assert_allclose(
        by_pinocchio(six, found.motion[0])[0], wanted.pose, atol=1e-9
    )
    free = InverseKinematicsOptions(limits=False)
    found = inverse_kinematics(other, wanted, guess=SIX + 0.02, options=free)
    np.testing.assert_allclose(found.motion[0], SIX, atol=1e-9)
    narrow = limited(six, SIX - 0.5, np.where(np.arange(6) == 2, 1.0, SIX + 0.5))
    with pytest.raises(InverseKinematicsError, match='elbow_joint.* at the limits'):
        inverse_kinematics(narrow, wanted, guess=SIX)


def test_one_search_finds_poses_with_joints_at_their_limits(panda):
    lower, upper = panda.limits.lower, panda.limits.upper
    rng, options = np.random.default_rng(4), InverseKinematicsOptions(restarts=0)
    for _ in range(10):
        q = rng.uniform(lower, upper)
        ends = rng.permutation(7)[:3]
        q[ends] = np.where(rng.random(3) < 0.5, lower[ends], upper[ends])
        guess = np.clip(q + rng.uniform(-0.4, 0.4, 7), lower, upper)
        pose = by_pinocchio(panda, q)[0]
        wanted = pose, np.zeros((0, 6))
        found = inverse_kinematics(panda, wanted, guess=guess, options=options).motion[0]
        assert ((lower <= found) & (found <= upper)).all()
        np.testing.assert_allclose(by_pinocchio(panda, found)[0], pose, atol=1e-9)


def test_a_pose_out_of_reach_is_named_with_what_is_left(six):
    wanted = forward_kinematics(six, swinging(SIX, np.linspace(0, 1, 4)))
    wanted.pose[2, 0, 3] += 5.0
    with pytest.raises(InverseKinematicsError, match='sample 2.* out of reach') as caught:
        inverse_kinematics(six, wanted, guess=SIX)
    assert caught.value.sample == (2,) and caught.value.residual > 1.0


def test_a_singularity_is_refused_unless_it_is_damped_or_only_positions_are_wanted(six):
    motion = swinging(SIX, np.linspace(0.0, 0.3, 3))
    motion[1, :, 4] = 0.0  # the axes of the second and third wrist joints are in line
    assert np.linalg.cond(by_pinocchio(six, motion[1, 0])[1]) > 1e12
    wanted, guess = forward_kinematics(six, motion), motion[:, 0]
    with pytest.raises(SingularityError, match='sample 1.*singular value') as caught:
        inverse_kinematics(six, wanted, guess=guess)
    assert caught.value.sample == (1,)
    assert caught.value.singular_value < 1e-9 < caught.value.threshold
    damped = InverseKinematicsOptions(damping=0.01)
    found = inverse_kinematics(six, wanted, guess=guess, options=damped)
    assert np.isfinite(found.motion).all() and np.abs(found.motion[1, 1]).max() < 50.0
    found = inverse_kinematics(six, (wanted.pose, wanted.twist[:, :0]), guess=guess)
    np.testing.assert_allclose(found.motion[:, 0], guess, atol=1e-6)


# --- What is left to choose ---------------------------------------------------------------------


def test_least_norm_is_the_pseudo_inverse_of_pinocchios_jacobian(panda):
    motion = swinging(HOME, np.array([0.3]))[0]
    wanted = forward_kinematics(panda, motion)
    J, twist = by_pinocchio(panda, motion[0])[1], wanted.twist[0]
    weights, posture = np.arange(1.0, 8.0), HOME + 0.2
    root = 1.0 / np.sqrt(weights)
    pull = -2.0 * (motion[0] - posture)
    for choice, expected in (
        (LeastNorm(), np.linalg.pinv(J) @ twist),
        (LeastNorm(weights=weights), root * (np.linalg.pinv(J * root) @ twist)),
        (
            LeastNorm(posture=posture, rate=2.0),
            pull + np.linalg.pinv(J) @ (twist - J @ pull),
        ),
    ):
        found = inverse_kinematics(panda, wanted, guess=motion[0], redundancy=choice)
        np.testing.assert_allclose(found.motion[1], expected, atol=1e-10)


def nodes():
    return np.sort(np.append(0.4 * np.cos(np.pi * (np.arange(24) + 0.5) / 24), 0.0))


@pytest.mark.parametrize('choice', ['least norm', 'posture', 'joint', 'joints'])
def test_derivatives_belong_to_one_motion_of_all_joints(panda, choice):
    times = nodes()
    wanted = forward_kinematics(panda, swinging(HOME, times))
    elbow = swinging(np.array([0.1]), times)[..., 0]
    given = {
        'least norm': LeastNorm(weights=np.arange(1.0, 8.0)),
        'posture': LeastNorm(posture=HOME + 0.1, rate=[3, 2, 1, 0, 1, 2, 3]),
        'joint': JointTask('panda_joint3', elbow),
        'joints': JointTask({'panda_joint1': 1.0, 'panda_joint3': -0.5}, elbow),
    }[choice]
    found = inverse_kinematics(
        panda, wanted, guess=HOME, redundancy=given, times=times
    ).motion
    actual = forward_kinematics(panda, found)
    np.testing.assert_allclose(actual.pose, wanted.pose, atol=1e-9)
    np.testing.assert_allclose(actual.twist, wanted.twist, atol=1e-8)
    if 'joint' in choice:
        row = np.eye(7)[2] if choice == 'joint' else np.eye(7)[0] - 0.5 * np.eye(7)[2]
        np.testing.assert_allclose(found @ row, elbow, atol=1e-9)
    fit = chebyshev.chebfit(np.delete(times, 12) / 0.4, np.delete(found[:, 0], 12, 0), 23)
    for k, tolerance in enumerate((1e-9, 1e-8, 1e-7, 1e-6, 1e-4)):
        np.testing.assert_allclose(
            found[12, k], chebyshev.chebval(0.0, fit) / 0.4**k, atol=tolerance
        )
        fit = chebyshev.chebder(fit)


@pytest.mark.parametrize('expressed_in', ['body', 'spatial', 'hybrid'])
@pytest.mark.parametrize(
    ('screws', 'q', 'task'),
    [
        ([[0, 0, 1, 0, 0, 0]] * 3, [0.4, 1.1, -0.5], ('x', 'y', 'rz')),
        ([[0, 0, 1, 0, 0, 0]] * 2, [0.4, 1.1], ('x', 'y')),
        (
            [
                [0, 0, 1, 0, 0, 0],
                [0, 0, 1, 0, 0, 0],
                [0, 0, 0, 0, 0, 1],
                [0, 0, 1, 0, 0, 0.02],
            ],
            [0.3, 0.8, 0.1, -0.4],
            ('x', 'y', 'z', 'rz'),
        ),
    ],
    ids=['planar with its angle', 'planar', 'SCARA with a ball screw'],
)
def test_arms_of_few_joints_follow_what_they_can(screws, q, task, expressed_in):
    poses = np.tile(np.eye(4), (len(q), 1, 1))
    poses[:, 0, 3] = 0.4
    end = np.eye(4)
    end[0, 3] = 0.3
    model = RobotModel.from_body_screws(screws, poses, tool=end)
    motion = swinging(np.array(q), np.linspace(0.0, 1.0, 5))
    wanted = forward_kinematics(model, motion, 'tool', expressed_in)
    found = inverse_kinematics(
        model, wanted, 'tool', expressed_in, guess=np.array(q) + 0.02, task=task
    )
    for k, tolerance in enumerate((1e-10, 1e-9, 1e-8, 1e-7, 1e-6)):
        np.testing.assert_allclose(found.motion[:, k], motion[:, k], atol=tolerance)


def test_efforts_of_a_link_motion_are_those_of_the_joints_that_make_it(six):
    motion = swinging(SIX, np.linspace(0.0, 1.0, 5))
    wanted = forward_kinematics(six, motion, expressed_in='spatial')
    found = inverse_dynamics_from_link_motion(
        six, wanted, expressed_in='spatial', guess=SIX
    )
    oracle = PinOracle(to_urdf(six), six.joint_names, six.gravity)
    np.testing.assert_allclose(
        found.effort[:, 0], [oracle.effort(sample) for sample in motion], atol=1e-7
    )
    np.testing.assert_allclose(found.effort, inverse_dynamics(six, motion), atol=1e-6)


# --- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('change', 'error', 'said'),
    [
        ({'pose': np.eye(3)}, MotionError, r'shape \(3, 3\), expected'),
        ({'pose': np.diag([1, 1, -1, 1])}, MotionError, 'orthonormal and right-handed'),
        ({'pose': np.full((4, 4), np.nan)}, MotionError, 'pose holds nan'),
        ({'twist': np.full((2, 6), np.inf)}, MotionError, 'twist holds inf'),
        ({'link': 'hand'}, ModelError, "no link 'hand'"),
        ({'expressed_in': 'world'}, HodynError, 'expressed_in'),
        ({'guess': np.zeros(5)}, MotionError, r'shape \(5,\), expected \(6,\)'),
        ({'task': ('x', 'yaw')}, HodynError, 'expected one or more of rx'),
        ({'redundancy': JointTask('hip', np.zeros(3))}, JointNameError, "'hip'"),
        (
            {'redundancy': JointTask('elbow_joint', np.zeros(3))},
            HodynError,
            'more than the 6 joints',
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(six, change, error, said):
    good = forward_kinematics(six, swinging(SIX, np.zeros(1), 3)[0])
    arguments = {'pose': good.pose, 'twist': good.twist, 'guess': SIX, **change}
    motion = arguments.pop('pose'), arguments.pop('twist')
    with pytest.raises(error, match=said):
        inverse_kinematics(six, motion, **arguments)


def test_a_redundant_motion_needs_times_that_increase(panda):
    times = np.linspace(0.0, 1.0, 5)
    wanted = forward_kinematics(panda, swinging(HOME, times))
    with pytest.raises(HodynError, match='give the times .* or a JointTask'):
        inverse_kinematics(panda, wanted, guess=HOME)
    with pytest.raises(MotionError, match='increasing'):
        inverse_kinematics(panda, wanted, guess=HOME, times=times[::-1])
