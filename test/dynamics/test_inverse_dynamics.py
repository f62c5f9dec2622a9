"""Joint efforts and their derivatives agree with independent oracles.

An error is measured per order of derivative, relative to the largest effort of that order over all
joints and contributions (inertia, gravity, each wrench): contributions may cancel, their rounding
does not. Robots of the package are compared in test/contract.
"""

import numpy as np
import pytest
from support.dynamics_cases import (
    EARTH,
    URDF,
    load,
    make_case,
    relative_errors,
    scale_of,
    up_to_its_order,
    wrench_arguments,
)
from support.oracles import chain_urdf, read_urdf, taylor_terms
from support.random_trees import (
    random_gravity,
    random_motion,
    random_robot,
    random_wrenches,
)

from hodyn_ros import Wrench, inverse_dynamics
from hodyn_ros.dynamics import FORMULATIONS


@pytest.mark.parametrize('seeds', [range(3), range(3, 30)])
def test_random_trees_match_power_series_by_every_algorithm(seeds):
    for seed in seeds:
        case = make_case(f'tree {seed}')
        for algorithm in ('auto', *FORMULATIONS):
            motion, wrenches = up_to_its_order(algorithm, case.motion, case.wrenches)
            effort = inverse_dynamics(
                case.model, motion, wrench_arguments(wrenches), algorithm
            )
            expected = case.expected[: len(motion) - 2]
            assert np.all(relative_errors(effort, expected, case.scale) <= 1e-12)


def test_load_that_hangs_from_the_flange_needs_the_same_effort_as_a_heavier_robot():
    """A held weight is a wrench on the robot, constant in base axes about the hanging point."""
    xml = (URDF / 'panda.urdf').read_text()
    weight = (
        '<link name="weight"><inertial><mass value="2"/><inertia ixx="1e-9" iyy="1e-9" '
        'izz="1e-9" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="rope" type="fixed">'
        '<parent link="panda_link8"/><child link="weight"/></joint></robot>'
    )
    heavier = load(xml.replace('</robot>', weight))
    # A weight that moves has inertia too, so the robot rests, in twenty positions.
    motion = np.zeros((20, 5, 7))
    motion[:, 0] = random_motion(7, 7, 1, (20,))[:, 0]
    pull = np.zeros((3, 6))
    pull[0, 5] = -2 * 9.81
    effort = inverse_dynamics(
        load(xml), motion, Wrench('panda_link8', pull, 'hybrid', 'on_robot')
    )
    expected = inverse_dynamics(heavier, motion)
    assert np.abs(effort - expected).max() <= 1e-13 * np.abs(expected).max()


def test_memory_layout_of_the_motion_does_not_matter():
    case = make_case('tree 11', wrenches=False)
    batch = np.stack([case.motion, 0.5 * case.motion])
    expected = inverse_dynamics(case.model, batch)
    before = batch.copy()
    for variant in (
        np.asfortranarray(batch),
        np.ascontiguousarray(batch[..., ::-1])[..., ::-1],
        np.repeat(batch, 2, axis=0)[::2],
        batch.tolist(),
    ):
        np.testing.assert_array_equal(inverse_dynamics(case.model, variant), expected)
    np.testing.assert_array_equal(batch, before)


# --- Chains -------------------------------------------------------------------------------------


def chain_ends(robot):
    """Pairs of base and tip with a moving joint between them, no mimic of a joint outside."""
    tree = read_urdf(robot.xml)
    above = {joint.child: joint for joint in tree.joints}
    pairs = []
    for tip in robot.links:
        path, link = [], tip
        while link in above:
            path.append(above[link])
            link = above[link].parent
            moving = [joint for joint in path if joint.type != 'fixed']
            names = {joint.name for joint in moving}
            if moving and all(j.mimic is None or j.mimic[0] in names for j in moving):
                pairs.append((link, tip))
    return pairs


@pytest.mark.parametrize('part', [1.0, 1 / 3])
@pytest.mark.parametrize('seed', range(30))
def test_chain_between_two_links_matches_the_pruned_robot(seed, part):
    """Gravity and spatial wrenches are in the axes of the base link of the chain."""
    robot = random_robot(seed)
    pairs = chain_ends(robot)
    base, tip = pairs[min(int(part * len(pairs)), len(pairs) - 1)]
    pruned = chain_urdf(robot.xml, base, tip)
    gravity = random_gravity(seed)
    model = load(robot.xml, base_link=base, tip_link=tip, gravity=gravity)
    tree = read_urdf(pruned)
    assert sorted(model.joint_names) == sorted(tree.independent)
    motion = random_motion(seed, len(model.joint_names), 5)
    links = (tip, *(joint.child for joint in tree.joints))
    cases = random_wrenches(seed, links, 5)
    terms = taylor_terms(pruned, model.joint_names, gravity, motion, cases)
    effort = inverse_dynamics(model, motion, wrench_arguments(cases))
    assert np.all(relative_errors(effort, terms.sum(axis=0), scale_of(terms)) <= 1e-12)


def test_fingers_of_a_hand_are_left_out_of_a_chain_to_the_hand_but_the_palm_is_not():
    with_hand = (URDF / 'panda_with_hand.urdf').read_text()
    model = load(with_hand, tip_link='panda_link8')
    assert model.joint_names == tuple(f'panda_joint{i}' for i in range(1, 8))
    motion = random_motion(1, 7, 5)
    effort = inverse_dynamics(model, motion)
    pruned = chain_urdf(with_hand, 'panda_link0', 'panda_link8')
    assert 'panda_hand' in pruned and 'finger' not in pruned
    terms = taylor_terms(pruned, model.joint_names, EARTH, motion)
    assert np.all(relative_errors(effort, terms.sum(axis=0), scale_of(terms)) <= 1e-12)
    bare = inverse_dynamics(load((URDF / 'panda.urdf').read_text()), motion)
    assert np.abs(effort[0] - bare[0]).max() > 0.5


def test_base_link_alone_keeps_the_whole_tree_above_it():
    with_hand = (URDF / 'panda_with_hand.urdf').read_text()
    model = load(with_hand, base_link='panda_link5')
    names = ('panda_joint6', 'panda_joint7', 'panda_finger_joint1')
    assert sorted(model.joint_names) == sorted(names)
    motion = random_motion(1, 3, 5)
    wrenches = random_wrenches(1, ('panda_link6', 'panda_rightfinger'), 5)
    pruned = chain_urdf(with_hand, 'panda_link5')
    terms = taylor_terms(pruned, model.joint_names, EARTH, motion, wrenches)
    effort = inverse_dynamics(model, motion, wrench_arguments(wrenches))
    assert np.all(relative_errors(effort, terms.sum(axis=0), scale_of(terms)) <= 1e-12)


# --- Mimic joints -------------------------------------------------------------------------------


def test_gripper_force_is_that_of_both_fingers():
    """Fingers that move apart: inertia of both, gravity of neither as they move level."""
    model = load((URDF / 'panda_with_hand.urdf').read_text(), base_link='panda_hand')
    assert model.joint_names == ('panda_finger_joint1',)
    motion = np.array([[0.02], [0.1], [3.0], [-20.0], [7.0]])
    effort = inverse_dynamics(model, motion)[:, 0]
    np.testing.assert_allclose(effort, 2 * 0.015 * motion[2:, 0], rtol=1e-14)
    # Gripping a part with 10 N: each finger pushes it towards the middle.
    grip = [
        Wrench('panda_leftfinger', [[0, 0, 0, 0, -10.0, 0]], 'hybrid'),
        Wrench('panda_rightfinger', [[0, 0, 0, 0, 10.0, 0]], 'hybrid'),
    ]
    still = np.zeros((3, 1))
    assert inverse_dynamics(model, still, grip)[0, 0] == pytest.approx(-20.0, rel=1e-14)
