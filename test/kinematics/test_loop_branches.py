"""Branches of closed loops, sizes and overconstrained ones, against closed forms and power series.

Joints of the five-bar follow from circles, those of coupled wheels and parallelograms are linear,
efforts of trees come from the power series of `support.oracles`, by virtual work.
"""

import numpy as np
import pytest
from support.loop_oracle import oracle_of
from support.mechanisms import ABOUT_Z, at
from support.oracles import taylor_rnea
from support.robots import FIVE_BAR

from hodyn_ros import RobotModel, forward_kinematics, inverse_dynamics, to_urdf
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics import complete_motion, loop_singularity
from hodyn_ros.lie import se3
from hodyn_ros.model import Loop

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

BODIES = [(1.0 + k, (0.05, 0.01 * k, 0.0), np.diag([0.001, 0.02, 0.021])) for k in range(4)]


def chain(poses, parents, bodies=None):
    """A tree of joints about z: j0, j1, ... with links l0, l1, ..."""
    n = len(poses)
    return RobotModel.from_body_screws(
        [ABOUT_Z] * n,
        poses,
        parents=parents,
        inertias=(BODIES * n)[:n] if bodies is None else bodies,
        joint_names=[f'j{i}' for i in range(n)],
        link_names=[f'l{i}' for i in range(n)],
        gravity=(0.3, -9.81, 0.5),
    )


# --- Which branch -------------------------------------------------------------------------------


def parallelogram():
    pin = Loop('pin', 'hinge', 'base', 'l2', at(1.0), at(0.3))
    tree = chain([at(0.0), at(0.3), at(1.0)], [-1, 0, 1])
    return tree.with_loops([pin], ['j0'], {'j0': 1.0, 'j1': -1.0, 'j2': 1.0 - np.pi})


@pytest.mark.parametrize('prepared', [False, True])
def test_where_branches_cross_efforts_are_right_to_a_percent_or_refused(prepared):
    model = parallelogram()
    tree, xml = model.closure.tree, to_urdf(model.closure.tree)
    if prepared:
        model.warm_up(2)
    for angle in np.geomspace(0.1, 1e-7, 25):
        motion = np.array([angle, 1.3, -0.7, 2.0, -1.0])
        whole = motion[:, None] * [1.0, -1.0, 1.0]
        whole[0, 2] -= np.pi
        expected = taylor_rnea(xml, tree.joint_names, tree.gravity, whole) @ [
            1.0,
            -1.0,
            1.0,
        ]
        for K in (3, 4, 5):
            try:
                found = inverse_dynamics(model, motion[:K, None])[:, 0]
            except MotionError as error:
                assert 'singular' in str(error) and angle < [1e-3, 1e-2, 2e-2][K - 3]
                continue
            off = np.abs(found - expected[: K - 2]) / np.abs(expected[: K - 2])
            assert off.max() < 0.01 and angle > [1e-5, 1e-4, 1e-3][K - 3]


def test_where_joints_turn_round_efforts_are_given_up_to_the_line():
    # Their relative error is that of the distance alone, eps / ratio^2.
    model = RobotModel.from_urdf(FIVE_BAR)
    oracle = oracle_of(model, to_urdf(model.closure.tree))
    for nearest in (1e-3, 1e-6, 1e-9):
        # The tips of the cranks are that much nearer than two rods.
        angle = np.arccos((nearest - 0.6) / 0.8)
        cranks = [angle - 2.0, np.pi - angle - 1.0]
        motion = [cranks, [0.5, -0.5], [1.0, 2.0], [-3.0, 4.0], [5.0, -6.0]]
        whole = complete_motion(model, motion)
        _, expected = oracle(np.array(motion), whole[0])
        off = np.abs(inverse_dynamics(model, motion) - expected).max(axis=-1)
        assert (off / np.abs(expected).max(axis=-1) < 1e-14 / nearest).all()


# --- Overconstrained loops ----------------------------------------------------------------------


def locomotive():
    """Two wheels that rods couple a quarter of a turn apart: neither rod alone would do."""
    R, D = 0.15, 0.8
    tree = chain([at(0.0), at(D), at(R), at(0.0, R)], [-1, -1, 0, 0])
    rods = [
        Loop('first', 'hinge', 'l1', 'l2', at(R), at(D)),
        Loop('second', 'hinge', 'l1', 'l3', at(0.0, R), at(D)),
    ]
    start = {'j0': 0.4, 'j1': 0.4, 'j2': -0.4, 'j3': -0.4}
    return tree.with_loops(rods, ['j0'], start)


def bennett():
    """Four hinges in space, of which five rows of the last one leave a motion."""
    a, b, alpha = 0.5, 0.8, 0.5
    beta = np.arcsin(np.sin(alpha) * b / a)

    def link(length, twist):
        pose = np.eye(4)
        c, s = np.cos(twist), np.sin(twist)
        pose[:3, :3] = [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]
        pose[0, 3] = length
        return pose

    tree = chain([np.eye(4), link(a, alpha), link(b, beta)], [-1, 0, 1])
    last = Loop('last', 'hinge', 'base', 'l2', se3.inverse(link(b, beta)), link(a, alpha))
    return tree.with_loops([last], ['j0'], {'j0': 2.8, 'j1': -2.9, 'j2': -0.7})


def near(angle):
    return angle + np.array([0.0, 1e-6, -1e-4, 1e-3, 0.03])


def test_coupled_wheels_have_no_dead_centre():
    model = locomotive()
    assert 'overconstrained' in model.closure.remark
    tree, xml = model.closure.tree, to_urdf(model.closure.tree)
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    angles = np.concatenate([near(0.5 * np.pi), near(-0.5 * np.pi), [0.0, 0.4, 3.0, 6.0]])
    for prepared in (False, True):
        if prepared:
            model.warm_up(2)
        motion = np.repeat([[1.0, 1.3, -0.7, 2.0, -1.0]], len(angles), axis=0)[..., None]
        motion[:, 0, 0] = angles
        found = inverse_dynamics(model, motion)[..., 0]
        np.testing.assert_allclose(
            complete_motion(model, motion), motion * signs, atol=1e-11
        )
        for values, whole in zip(found, motion * signs):
            expected = taylor_rnea(xml, tree.joint_names, tree.gravity, whole) @ signs
            np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    assert loop_singularity(model, motion).ratio.min() > 0.1


def test_a_bennett_linkage_moves_all_the_way_round():
    model = bennett()
    oracle = oracle_of(model, to_urdf(model.closure.tree))
    for angle in (*near(0.0), -1e-6, 1.0, 2.5, -2.5):
        motion = np.array([[angle], [1.3], [-0.7], [2.0], [-1.0]])
        whole = complete_motion(model, motion)
        expected, efforts = oracle(motion, whole[0])
        np.testing.assert_allclose(whole, expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(inverse_dynamics(model, motion), efforts, rtol=1e-11)
        assert loop_singularity(model, motion).ratio > 0.1


def test_code_for_overconstrained_loops_is_refused(tmp_path):
    from hodyn_ros.codegen import generate_code

    with pytest.raises(ModelError, match='overconstrained.*no compiled or generated code'):
        generate_code(locomotive(), tmp_path)


# --- Sizes --------------------------------------------------------------------------------------


def scaled(seed, size, kind):
    """A chain of eight joints in space that a loop closes, all lengths times `size`."""
    rng = np.random.default_rng(seed)
    n = 8
    axes = rng.standard_normal((n, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    slides = rng.random(n) < 0.2
    screws = [(0, 0, 0, *e) if slide else (*e, 0, 0, 0) for e, slide in zip(axes, slides)]
    poses = [se3.exp(twist) for twist in rng.uniform(-0.8, 0.8, (n, 6))]
    frame = se3.exp(rng.uniform(-0.5, 0.5, 6))
    for pose in (*poses, frame):
        pose[:3, 3] *= size
    tree = RobotModel.from_body_screws(
        screws,
        poses,
        inertias=[(1.0, 0.1 * size * e, 0.05 * size**2 * np.eye(3)) for e in axes],
        gravity=size * np.array([1.0, -2.0, -9.81]),
        joint_names=[f'j{i}' for i in range(n)],
        link_names=[f'l{i}' for i in range(n)],
    )
    unit = np.where(slides, size, 1.0)
    q = unit * rng.uniform(-1.0, 1.0, n)
    end = forward_kinematics(tree, q[None], 'l7').pose
    axis = rng.standard_normal(3)
    loop = Loop('loop', kind, 'base', 'l7', frame, se3.inverse(end) @ frame, axis)
    model = tree.with_loops([loop], start=dict(zip(tree.joint_names, q)))
    unit = unit[model.closure.independent]
    motion = rng.standard_normal((5, 8))[:, : model.n_joints] * unit
    motion[0] = model.closure.start[model.closure.independent] + 0.02 * motion[0]
    return model, motion, inverse_dynamics(model, motion) * unit / size**2


@pytest.mark.parametrize(
    ('kind', 'seed'), [('weld', 2), ('hinge', 6), ('ball', 7), ('slider', 2)]
)
def test_the_size_of_a_mechanism_changes_nothing(kind, seed):
    model, motion, efforts = scaled(seed, 1.0, kind)
    ratio = loop_singularity(model, motion).ratio
    for size in (1e-6, 1e-5, 1e-3, 7.0, 1e3, 1e5):
        other, same, found = scaled(seed, size, kind)
        assert other.joint_names == model.joint_names
        off = np.abs(found - efforts).max(axis=-1) / np.abs(efforts).max(axis=-1)
        assert off.max() < 1e-11
        assert loop_singularity(other, same).ratio == pytest.approx(ratio, rel=1e-11)
