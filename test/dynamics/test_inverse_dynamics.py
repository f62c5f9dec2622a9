"""Joint efforts and their derivatives of random robots and of chains in them are power series.

An error is measured per order of derivative, relative to the largest effort of that order over all
joints and contributions (inertia, gravity, each wrench): contributions may cancel, their rounding
does not. Robots of the package are compared in test/contract.
"""

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest
from support.oracles import read_urdf, taylor_terms
from support.random_trees import (
    random_gravity,
    random_motion,
    random_robot,
    random_wrenches,
)

from hodyn_ros import RobotModel, Wrench, forward_kinematics, inverse_dynamics
from hodyn_ros.dynamics import FORMULATIONS

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def assert_series(seed, xml, model, links, algorithms=('auto',)):
    motion = random_motion(seed, model.n_joints, 5)
    cases = random_wrenches(seed, links, 5)
    terms = taylor_terms(xml, model.joint_names, model.gravity, motion, cases)
    scale = np.abs(terms).max(axis=(0, 2))
    for algorithm in algorithms:
        orders = 1 if algorithm == 'newton_euler' else 3
        wrenches = [
            Wrench(case.link, case.values[:orders], case.expressed_in, case.acting)
            for case in cases
        ]
        found = inverse_dynamics(model, motion[: orders + 2], wrenches, algorithm)
        error = np.abs(found - terms.sum(axis=0)[:orders]).max(axis=1)
        assert (error <= 1e-12 * scale[:orders]).all()


@pytest.mark.parametrize('seeds', [range(3), range(3, 30)])
def test_random_trees_match_power_series_by_every_algorithm(seeds):
    for seed in seeds:
        tree = random_robot(seed)
        model = RobotModel.from_urdf(tree.xml, gravity=random_gravity(seed))
        assert_series(seed, tree.xml, model, tree.links[1:], ('auto', *FORMULATIONS))


def chain_ends(joints, links):
    """Pairs of base and tip with a moving joint between them, no mimic of a joint outside."""
    above, pairs = {joint.child: joint for joint in joints}, []
    for tip in links:
        path, link = [], tip
        while link in above:
            path.append(above[link])
            link = above[link].parent
            moving = [joint for joint in path if joint.type != 'fixed']
            names = {joint.name for joint in moving}
            if moving and all(j.mimic is None or j.mimic[0] in names for j in moving):
                pairs.append((link, tip))
    return pairs


def pruned(xml, base, tip):
    """The URDF without what is not of a chain: only joints on the way move, fixed ones stay."""
    joints = read_urdf(xml).joints
    above = {joint.child: joint.parent for joint in joints}
    way, kept = set(), {base}
    while tip != base:
        way.add(tip)
        tip = above[tip]
    for joint in joints:
        if joint.parent in kept and (joint.type == 'fixed' or joint.child in way):
            kept.add(joint.child)
    robot = ElementTree.fromstring(xml)
    for element in list(robot):
        ends = [element.find(side) for side in ('parent', 'child')]
        names = {element.get('name')} if None in ends else {end.get('link') for end in ends}
        if not names <= kept:
            robot.remove(element)
    return ElementTree.tostring(robot, encoding='unicode')


@pytest.mark.parametrize('part', [1 / 3, 1.0])
@pytest.mark.parametrize('seeds', [range(3), range(3, 30)])
def test_chains_between_two_links_match_the_pruned_robot(seeds, part):
    """Gravity and spatial wrenches are in the axes of the base link of the chain."""
    for seed in seeds:
        whole = random_robot(seed)
        pairs = chain_ends(read_urdf(whole.xml).joints, whole.links)
        base, tip = pairs[min(int(part * len(pairs)), len(pairs) - 1)]
        xml = pruned(whole.xml, base, tip)
        gravity = random_gravity(seed)
        model = RobotModel.from_urdf(
            whole.xml, base_link=base, tip_link=tip, gravity=gravity
        )
        tree = read_urdf(xml)
        assert sorted(model.joint_names) == sorted(tree.independent)
        links = (tip, *(joint.child for joint in tree.joints))
        assert_series(seed, xml, model, links)


def test_base_link_alone_keeps_the_whole_tree_above_it():
    whole = RobotModel.from_urdf('panda_with_hand')
    wrist = RobotModel.from_urdf('panda_with_hand', base_link='panda_link5')
    names = ('panda_joint6', 'panda_joint7', 'panda_finger_joint1')
    assert wrist.joint_names == names
    motion = np.zeros((5, whole.n_joints))
    motion[:, [whole.joint_names.index(name) for name in names]] = random_motion(1, 3, 5)
    # The joints in front of it stand still; gravity has the axes of the base link.
    expected = inverse_dynamics(whole, motion)[:, -3:]
    R = forward_kinematics(whole, motion[:1], 'panda_link5').pose[:3, :3]
    turned = dataclasses.replace(wrist, gravity=R.T @ whole.gravity)
    found = inverse_dynamics(turned, motion[:, -3:])
    np.testing.assert_allclose(found, expected, atol=1e-12)
