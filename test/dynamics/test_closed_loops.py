"""Robots with closed loops against an oracle of its own, and what their terms have in common."""

import contextlib

import numpy as np
import pytest
from support import mechanisms
from support.loop_oracle import oracle_of
from support.mechanisms import (
    ABOUT_Z,
    PIN,
    START,
    at,
    planar,
    random_mechanism,
    some_motion,
)
from support.random_trees import random_motion

from hodyn_ros import (
    RobotModel,
    Wrench,
    inverse_dynamics,
    to_urdf,
)
from hodyn_ros.dynamics import chosen_algorithm, distribute_efforts
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.model import Coupling, Loop
from hodyn_ros.model.friction import Coulomb, Viscous

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def relative(found, expected):
    return np.abs(found - expected).max(axis=-1) / np.maximum(
        1.0, np.abs(expected).max(axis=-1)
    )


@pytest.mark.parametrize('seeds', [range(2), range(2, 40)])
def test_motion_and_efforts_of_random_mechanisms_agree_with_power_series(seeds):
    for seed in seeds:
        assert_agreement(seed)


def assert_agreement(seed):
    tree, model, xml, q = random_mechanism(seed)
    motion = random_motion(seed, model.n_joints, 5)
    motion[0] = q[model.closure.independent] + 0.003 * motion[0] / np.pi
    whole = complete_motion(model, motion)
    expected, efforts = oracle_of(model, xml)(motion, whole[0])
    assert relative(whole, expected).max() < 1e-9
    for algorithm in ('nth_order', 'engine'):
        found = inverse_dynamics(model, motion, algorithm=algorithm)
        assert (relative(found, efforts) < [1e-12, 1e-10, 1e-8]).all()


@pytest.fixture(scope='module')
def five_bar():
    return mechanisms.five_bar()


def test_couplings_are_sums_of_several_joints():
    tree = planar()
    belt = Coupling('belt', 'right_rod', ['left', 'left_rod'], (0.3, -1.5, 0.5))
    model = tree.with_loops([belt])
    assert model.joint_names == ('left', 'left_rod', 'right')
    motion = some_motion(model)
    whole = complete_motion(model, motion)
    carried = motion[..., :2] @ [-1.5, 0.5]
    carried[:, 0] += 0.3
    np.testing.assert_allclose(whole[..., 3], carried, atol=1e-13)
    of_tree = inverse_dynamics(tree, whole)
    efforts = of_tree[..., :3] + of_tree[..., 3:] * [-1.5, 0.5, 0.0]
    np.testing.assert_allclose(
        inverse_dynamics(model, motion), efforts, rtol=1e-12, atol=1e-10
    )
    with pytest.raises(ModelError, match='cannot be written as URDF'):
        to_urdf(model)
    for joints in (['left'], ['left', 'left'], []):
        with pytest.raises(
            ModelError, match='expected (c_0 and one for|joints that differ)'
        ):
            Coupling('belt', 'right_rod', joints, (0.3, *[1.0] * max(len(joints), 2)))


@pytest.mark.parametrize('ratio', [1e3, 1e6])
def test_large_ratios_of_couplings_hide_no_other_rows(ratio):
    screw = Coupling('screw', 'left', 'right', (0.0, ratio))
    gear = Coupling('gear', 'left_rod', 'right_rod', (0.0, 1.0))
    model = planar().with_loops([screw, gear], start={'right': 0.1})
    assert (model.joint_names, model.closure.remark) == (('left', 'left_rod'), '')
    whole = complete_motion(model, [[0.001 * ratio, 0.3]])
    np.testing.assert_allclose(whole, [[0.001 * ratio, 0.3, 0.001, 0.3]], rtol=1e-12)


@pytest.mark.parametrize('size', [1e-200, 1e200])
def test_axes_of_any_length_are_directions(size):
    loop = Loop('a', 'hinge', 'b', 'c', axis=(0.6 * size, 0.0, 0.8 * size))
    np.testing.assert_allclose(loop.direction, [0.6, 0.0, 0.8], rtol=1e-15)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('loops', 'options', 'said'),
    [
        ([], {}, 'expected some of Loop and Coupling'),
        ([PIN, PIN], {}, "name 'pin'|name pin"),
        ([Loop('a', 'ball', 'left_tip', 'left_tip')], {}, 'are one body'),
        ([PIN], {'start': {'elbow': 1.0}}, "names joint 'elbow'"),
        ([PIN], {'start': [2.0, -1.2, 1.0, 1.2]}, 'expected positions by names of joints'),
        ([PIN], {'start': START, 'independent': ['left', 'left']}, 'expected 2 of'),
        (
            [Loop('a', 'weld', 'left_tip', 'base', at(0.5))],
            {},
            'leave no motion|cannot be closed',
        ),
    ],
)
def test_loops_that_cannot_be_are_refused(loops, options, said):
    with pytest.raises(ModelError, match=said):
        planar().with_loops(loops, **options)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('values', 'said'),
    [
        ({'kind': 'rope'}, "'rope'"),
        ({'pose_a': np.eye(3)}, 'expected \\(4, 4\\)'),
        ({'pose_b': np.diag([1.0, 1.0, 2.0, 1.0])}, 'pose_b'),
        ({'axis': (0.0, 0.0, 0.0)}, 'expected a direction'),
    ],
)
def test_loops_with_unusable_values_are_refused(values, said):
    with pytest.raises(ModelError, match=said):
        Loop(**{'name': 'a', 'kind': 'hinge', 'link_a': 'b', 'link_b': 'c', **values})


def test_singular_starts_and_wrong_independent_joints_are_refused():
    # A parallelogram that starts with all of its links in line.
    line = RobotModel.from_body_screws(
        [ABOUT_Z] * 3,
        [at(0.0), at(0.3), at(0.6)],
        parents=[-1, 0, -1],
        inertias=[(1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))] * 3,
        joint_names=['crank', 'coupler', 'rocker'],
    )
    pin = Loop('pin', 'hinge', 'link2', 'link3', at(0.6), at(0.3))
    with pytest.raises(ModelError, match='singular where they start'):
        line.with_loops([pin])
    turned = {'crank': 1.0, 'coupler': -1.0, 'rocker': 1.0}
    model = line.with_loops([pin], start=turned)
    with pytest.raises(MotionError, match='cannot be closed|singular'):
        inverse_dynamics(model, [[0.0], [1.0], [0.0]])
    # Rods in line: the cranks do not determine where the pin goes.
    height = np.sqrt(0.4**2 - 0.3**2)
    angle = np.arctan2(height, 0.3)
    straight = {
        'left': np.pi - angle,
        'left_rod': angle - np.pi,
        'right': angle,
        'right_rod': np.pi - angle,
    }
    with pytest.raises(ModelError, match='do not determine'):
        planar().with_loops([PIN], ['left', 'right'], straight)
    assert planar().with_loops([PIN], None, straight).joint_names == ('left', 'left_rod')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('motors', 'options', 'said'),
    [
        (['left', 'elbow'], {}, 'expected some of'),
        (['left'], {}, 'Name more motors'),
        (['left', 'right'], {'weights': [1.0, -1.0]}, 'positive'),
    ],
)
def test_motors_that_cannot_be_are_refused(five_bar, motors, options, said):
    motion = some_motion(five_bar)
    effort = inverse_dynamics(five_bar, motion)
    with pytest.raises(ModelError, match=said):
        distribute_efforts(five_bar, motion, effort, motors, **options)


# --- Compiled programs --------------------------------------------------------------------------


@pytest.fixture(scope='module')
def compiled(five_bar):
    """Five-bars with friction and rotors, whose programs are compiled: geared, belted, pinned."""
    tree = five_bar.closure.tree.with_friction({'right_rod': Viscous(0.3), 'left': COULOMB})
    gear = Coupling('gear', 'left_rod', 'left', (-0.4, -0.2, 0.05))
    geared = tree.with_loops([gear], independent=['left', 'right', 'right_rod'])
    pinned = tree.with_armature({'left': 0.1, 'right_rod': 0.02}).with_loops(
        [PIN], independent=['left', 'right'], start=START
    )
    belt = Coupling('belt', 'right_rod', ['left', 'left_rod'], (0.3, -1.5, 0.5))
    belted = tree.with_loops([belt], independent=['left', 'left_rod', 'right'])
    for model in (geared, belted, pinned):
        model.warm_up(2)
    return geared, belted, pinned


COULOMB = Coulomb(0.5, 0.1)


def test_compiled_efforts_agree_with_those_through_the_tree(compiled):
    for model in compiled:
        motion = some_motion(model, (300,))
        tool = Wrench('right_tip', random_motion(5, 6, 3, (300,)), 'hybrid')
        for wrench in (None, tool):
            found = inverse_dynamics(model, motion, wrench, algorithm='engine')
            through = inverse_dynamics(model, motion, wrench, algorithm='nth_order')
            np.testing.assert_allclose(found, through, rtol=1e-11, atol=1e-10)


def test_samples_that_follow_each_other_are_those_that_come_alone(compiled):
    *_, model = compiled
    along = 0.3 * np.sin(np.linspace(0.0, 7.0, 500))[:, None, None] * [[1.0, -0.7]]
    motion = some_motion(model, (500,))
    motion[:, :1] = model.closure.start[model.closure.independent] + along
    together = inverse_dynamics(model, motion)
    order = np.random.default_rng(0).permutation(500)
    np.testing.assert_allclose(inverse_dynamics(model, motion[order]), together[order])
    for sample in (0, 77, 499):
        alone = inverse_dynamics(model, motion[sample])
        np.testing.assert_allclose(alone, together[sample], rtol=1e-9, atol=1e-9)


def test_compiled_closing_refuses_what_is_out_of_reach(compiled):
    *_, model = compiled
    motion = some_motion(model, (200,))
    motion[120, 0] = 3.0, 0.0  # the tips are further apart than the rods reach
    for far in (1e5, 1e300):  # no way there ends in any reasonable time
        later = motion.copy()
        later[120, 0] = 0.0, far
        with pytest.raises(MotionError, match='cannot be closed at sample 120'):
            inverse_dynamics(model, later)
    for given, sample in ((motion, 120), (motion[120], 0)):
        with pytest.raises(
            MotionError, match=f'cannot be closed at sample {sample}, left = 3'
        ):
            inverse_dynamics(model, given)
    motion[120, 0] = np.nan
    for given in (motion, motion[120]):
        with pytest.raises(MotionError, match='nan'):
            inverse_dynamics(model, given)


def four_bar(ground, last, coupler):
    """Links of 0.3, 0.4 and `last` between two hinges of the base; the crank is moved."""
    tree = RobotModel.from_body_screws(
        [ABOUT_Z] * 3,
        [at(0.0), at(0.3), at(0.4)],
        inertias=[(1.0, (0.2, 0.01, 0.0), np.diag([0.001, 0.02, 0.021]))] * 3,
        joint_names=['crank', 'coupler', 'rocker'],
    )
    pin = Loop('pin', 'hinge', 'base', 'link3', at(ground), at(last))
    start = {'crank': 1.0, 'coupler': coupler, 'rocker': -1.5}
    return tree.with_loops([pin], ['crank'], start)


def test_weak_pivots_are_left_to_code_that_chooses_others():
    # Pivots are chosen where the loop starts; both cranks turn round, so that one goes through 0.
    model = four_bar(0.1, 0.35, -1.5)
    motion = some_motion(model, (8000,))
    motion[:, 0, 0] = model.closure.start[0] + np.linspace(0.0, 2.0 * np.pi, 8000)
    model.warm_up(2)
    through = inverse_dynamics(model, motion, algorithm='nth_order')
    size = 1e-8 * np.abs(through).max(axis=0)
    assert (np.abs(inverse_dynamics(model, motion) - through) < size).all()


@pytest.mark.parametrize('prepared', [False, True])
def test_gaps_between_pieces_of_a_branch_are_not_stepped_over(prepared):
    # Link lengths 0.3, 0.4, 0.199 and 0.5: the crank cannot pass zero, since all would be in line.
    model = four_bar(0.5, 0.199, -1.0)
    if prepared:
        model.warm_up(0)
    closed = []
    for angle in np.linspace(-0.5, 0.5, 41):
        with contextlib.suppress(MotionError):
            inverse_dynamics(model, [[angle], [0.0], [0.0]])
            closed.append(angle)
    assert min(closed) == pytest.approx(0.075)
    assert len(closed) == 18


def test_efforts_of_a_loop_that_slides_are_the_same_compiled_and_not():
    _, model, _, _ = random_mechanism(19)
    assert [loop.kind for loop in model.closure.loops] == ['slider']
    motion = np.random.default_rng(3).standard_normal((70, 5, model.n_joints))
    motion[:, 0] = model.closure.start[model.closure.independent] + 0.05 * motion[:, 0]
    plain = inverse_dynamics(model, motion, algorithm='body_fixed')
    model.warm_up(2)
    assert chosen_algorithm(model, motion) == 'compiled_robot'
    np.testing.assert_allclose(inverse_dynamics(model, motion), plain, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        inverse_dynamics(model, motion[0]), plain[0], rtol=1e-9, atol=1e-9
    )
