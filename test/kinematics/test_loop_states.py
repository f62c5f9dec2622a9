"""Measured joint states of robots with closed loops, and distances from their singularities."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, jacobian
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.kinematics import complete_joint_state, complete_motion, loop_singularity
from hodyn_ros.model import Coupling, Loop

JOINTS = ['left', 'left_elbow', 'right', 'right_elbow']
ABOUT_Z = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
ALONG_X = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
TOOL = """
  <link name="tool"/>
  <joint name="pin_frame" type="fixed">
    <parent link="left_rod"/><child link="tool"/><origin xyz="0.5 0 0"/>
  </joint>
  <loop name="pin" type="revolute">"""


@pytest.fixture(scope='module')
def five_bar():
    xml = robots.FIVE_BAR.replace('  <loop name="pin" type="revolute">', TOOL)
    return RobotModel.from_urdf(xml)


def some_motion(shape=(), K=4):
    return np.random.default_rng(5).uniform(-0.25, 0.25, (*shape, K, 2))


def of(whole, names):
    return whole[..., [JOINTS.index(name) for name in names]]


def chain(names, screws, places, parents=(-1, 0, -1)):
    return RobotModel.from_body_screws(
        screws,
        [np.block([[np.eye(3), np.c_[[x, 0, 0]]], [0, 0, 0, 1]]) for x in places],
        parents=list(parents),
        inertias=[(1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))] * len(names),
        joint_names=names,
    )


def at(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


# Measured joints


def test_dependent_joints_are_compared_where_the_motors_are_measured(five_bar):
    whole = complete_motion(five_bar, some_motion((4,), 2))
    measured = of(whole, ['left_elbow', *JOINTS[::2]])
    measured[2, :, 0] += [0.01, -0.3]
    found = complete_joint_state(five_bar, ['left_elbow', 'left', 'right'], measured)
    np.testing.assert_array_equal(found.motion, whole)
    expected = np.zeros((4, 2, 3))
    expected[2, :, 0] = [0.01, -0.3]
    np.testing.assert_allclose(found.deviations, expected, atol=1e-12)


def test_turns_of_continuous_joints_are_no_deviations(five_bar):
    whole = complete_motion(five_bar, some_motion((2,), 2))
    turned = whole.copy()
    turned[0, 0, [1, 3]] += 2.0 * np.pi * np.array([1, -3])
    for weights in (None, np.ones(4)):
        found = complete_joint_state(five_bar, JOINTS, turned, weights)
        np.testing.assert_allclose(found.motion, whole, atol=1e-9)
        np.testing.assert_allclose(found.deviations, 0.0, atol=1e-9)


def test_the_search_begins_where_it_is_told():
    tree = chain(['a', 'b', 'c'], [ABOUT_Z] * 3, [0.0, 0.3, 0.6], (-1, 0, 1))
    parabola = Coupling('parabola', 'b', 'a', (0.0, 0.0, 1.0))
    model = tree.with_loops([parabola], ['a', 'c'], {'a': 1.0})
    squares = np.array([[[0.25, 0.1]], [[0.49, 0.1]]])
    near = np.array([[-1.0, 0.0], [1.0, 0.0]])
    found = complete_joint_state(model, ['b', 'c'], squares, near=near)
    np.testing.assert_allclose(found.motion[:, 0, 0], [-0.5, 0.7], atol=1e-10)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('names', 'options', 'error', 'said'),
    [
        (['left'], {}, MotionError, "left do not determine 'right' at sample 0"),
        (['left', 'elbow'], {}, JointNameError, 'expected some of left, left_elbow, right'),
        (['left', 'left'], {}, JointNameError, 'each once'),
        (JOINTS[1::2], {'weights': [1.0, 0.0]}, MotionError, 'expected positive'),
        (JOINTS[1::2], {'weights': np.ones(3)}, MotionError, r'weights have shape \(3,\)'),
        (JOINTS[1::2], {'near': np.ones(3)}, MotionError, r'near have shape \(3,\)'),
        (JOINTS, {}, MotionError, r'shape \(2, 2\), expected \(..., K, 4\)'),
        (JOINTS[1::2], {'near': [np.pi, 0.0]}, MotionError, 'cannot be closed'),
    ],
)
def test_what_cannot_be_completed_is_refused(five_bar, names, options, error, said):
    with pytest.raises(error, match=said):
        complete_joint_state(five_bar, names, np.zeros((2, min(len(names), 2))), **options)


# Singularities


def farthest(model, direction):
    """How far the independent joints can go, by bisection."""
    low, high = 0.0, 5.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        try:
            complete_motion(model, [middle * direction])
            low = middle
        except MotionError:
            high = middle
    return low


def test_distance_from_where_the_rods_of_a_five_bar_are_in_line(five_bar):
    # Across the line of singular positions: the cranks turn as much, in opposite directions.
    direction = np.array([1.0, -1.0]) / np.sqrt(2.0)
    end = farthest(five_bar, direction)
    true = np.array([1e-5, 1e-3, 0.01, 0.1, 0.3])
    found = loop_singularity(five_bar, ((end - true)[:, None] * direction)[:, None])
    assert found.distance[:2] == pytest.approx(true[:2], rel=3e-3)
    assert found.distance == pytest.approx(true, rel=0.03)
    assert {*found.joint} <= {'left_elbow', 'right_elbow'}
    assert found.ratio[0] < 0.01 and (np.diff(found.ratio) > 0.0).all()
    assert found.output_ratio is None


def test_distance_of_a_slider_from_the_dead_centre_of_its_crank():
    tree = chain(
        ['crank', 'coupler', 'slider'], [ABOUT_Z, ABOUT_Z, ALONG_X], [0.0, 0.3, 0.0]
    )
    pin = Loop('pin', 'hinge', 'link2', 'link3', at(0.5), at(0.0))
    start = {'crank': 1.0, 'coupler': -1.5, 'slider': 0.6}
    model = tree.with_loops([pin], ['slider'], start)
    true = np.array([1e-4, 1e-3, 0.01])
    found = loop_singularity(model, (0.8 - true)[:, None, None])
    assert found.distance == pytest.approx(true, rel=0.02)
    assert found.joint.tolist() == ['coupler'] * 3
    # Driven by the crank it has no such position.
    driven = tree.with_loops([pin], ['crank'], start)
    assert (loop_singularity(driven, np.zeros((1, 1, 1))).ratio > 0.1).all()


def test_where_branches_cross_the_distance_is_half():
    line = chain(['crank', 'coupler', 'rocker'], [ABOUT_Z] * 3, [0.0, 0.3, 0.6])
    pin = Loop('pin', 'hinge', 'link2', 'link3', at(0.6), at(0.3))
    model = line.with_loops([pin], start={'crank': 1.0, 'coupler': -1.0, 'rocker': 1.0})
    true = np.array([0.01, 0.1])
    found = loop_singularity(model, true[:, None, None])
    assert found.distance == pytest.approx(0.5 * true, rel=0.01)


def test_of_gears_singular_positions_are_infinitely_far():
    line = chain(['motor', 'wheel'], [ABOUT_Z] * 2, [0.0, 0.3], parents=(-1, -1))
    model = line.with_loops([Coupling('gear', 'wheel', 'motor', (0.0, -2.0))])
    found = loop_singularity(model, [[0.3]])
    assert np.isposinf(found.distance) and found.ratio == 1.0


def test_a_stretched_leg_cannot_move_the_output(five_bar):
    names = ['left_elbow', 'right']
    whole = complete_joint_state(five_bar, names, [[[1.2 - 1e-6, 0.2]], [[0.5, 0.2]]])
    motion = of(whole.motion, ['left', 'right'])
    found = loop_singularity(five_bar, motion, 'tool', (3, 4))
    assert found.output_ratio[0] < 1e-5 and found.output_ratio[1] > 0.1
    assert found.ratio[0] > 0.1
    assert found.output_joint[0] == 'left'
    columns = jacobian(five_bar, motion[0], 'tool', 'hybrid')[0, 3:5]
    assert np.abs(columns[:, 0]).max() < 1e-5 < 0.1 < np.abs(columns[:, 1]).max()


def test_refusals_say_which_sample_and_how_far_from_it_the_singularity_is(five_bar):
    direction = np.array([1.0, -1.0]) / np.sqrt(2.0)
    beyond = farthest(five_bar, direction) + 0.25
    with pytest.raises(MotionError, match=r'closed at sample 1.* 0\.25 \(rad, m\) before'):
        loop_singularity(five_bar, [[[0.0, 0.0]], [beyond * direction]])
