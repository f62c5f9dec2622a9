"""The oracles agree with each other and with mechanics that fit on one line.

What is compared with an oracle is only as certain as the oracle, so this comes first. Errors are
relative to the largest effort of an order over all joints and contributions.
"""

from xml.etree import ElementTree

import numpy as np
import pytest
from support.oracles import PinOracle, chain_urdf, read_urdf, taylor_rnea, taylor_terms
from support.random_trees import (
    WrenchCase,
    random_gravity,
    random_motion,
    random_robot,
    random_wrenches,
    seeds,
)
from support.records import changed

TREES = range(40)


def pin_oracle(*arguments):
    pytest.importorskip('pinocchio', reason='Pinocchio (pip: pin) is not installed')
    return PinOracle(*arguments)


@pytest.mark.parametrize('seed', seeds(TREES, short=10))
def test_power_series_agree_with_pinocchio(seed):
    robot = random_robot(seed)
    names, gravity = robot.independent_joints, random_gravity(seed)
    motion = random_motion(seed, len(names), 5)
    wrenches = random_wrenches(seed, robot.links, 5)
    terms = taylor_terms(robot.xml, names, gravity, motion, wrenches)
    effort, scale = terms.sum(axis=0), np.abs(terms).max(axis=(0, 2))
    pin = pin_oracle(robot.xml, names, gravity)

    # Both are exact but for rounding: measured over 300 trees, at most 1e-14.
    assert np.abs(pin.effort(motion, wrenches) - effort[0]).max() <= 1e-13 * scale[0]
    assert np.abs(pin.effort_rate(motion, wrenches) - effort[1]).max() <= 1e-13 * scale[1]

    # Measured over 300 trees: at most 2e-13 in the first and 2e-11 in the second derivative.
    interpolated = pin.interpolated(motion, wrenches)
    error = np.abs(interpolated.efforts - effort).max(axis=1)
    assert np.all(error <= [1e-13, 1e-12, 1e-10] * scale)
    # The oracle knows its own limit.
    assert np.all(error <= 3.0 * interpolated.error + 1e-13 * scale)
    rate_error = np.abs(interpolated.efforts[1] - pin.effort_rate(motion, wrenches)).max()
    assert rate_error <= 3.0 * interpolated.error[1] + 1e-13 * scale[1]


@pytest.mark.parametrize('seed', [2, 7, 12])
def test_orders_beyond_the_second_continue_those_before(seed):
    """The derivatives at t predict, as a Taylor polynomial, the effort a little later."""
    robot = random_robot(seed)
    names, gravity = robot.independent_joints, random_gravity(seed)
    K = 24
    motion = random_motion(seed, len(names), K)
    wrenches = random_wrenches(seed, robot.links, K)
    time = 0.2
    weights = np.cumprod([1.0, *(time / np.arange(1.0, K))])

    def later(values):
        return np.array(
            [
                np.tensordot(weights[: len(values) - k], values[k:], 1)
                for k in range(len(values))
            ]
        )

    moved_wrenches = [changed(w, values=later(w.values)[:1]) for w in wrenches]
    # The sixth derivative contributes 1e-7 of its size, the first one left out 1e-36.
    actual = later(taylor_rnea(robot.xml, names, gravity, motion, wrenches))[0]
    expected = taylor_rnea(robot.xml, names, gravity, later(motion)[:3], moved_wrenches)[0]
    assert np.abs(actual - expected).max() <= 1e-13 * np.abs(expected).max()


def test_power_series_take_any_batch_shape():
    robot = random_robot(4)
    names = robot.independent_joints
    motion = random_motion(1, len(names), 5, (2, 3))
    wrenches = random_wrenches(1, robot.links, 5, (3,))
    together = taylor_rnea(robot.xml, names, (0, 0, -9.81), motion, wrenches)
    for i in range(2):
        for j in range(3):
            one = [changed(wrench, values=wrench.values[j]) for wrench in wrenches]
            alone = taylor_rnea(robot.xml, names, (0, 0, -9.81), motion[i, j], one)
            np.testing.assert_array_equal(together[i, j], alone)


PENDULUM = """
<robot name="pendulum">
  <link name="base"/>
  <link name="rod"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>
    <origin xyz="0 0 1"/><axis xyz="0 -3 0"/>
    <limit lower="-9" upper="9" effort="9" velocity="9"/></joint>
  <link name="tip"/>
  <joint name="end" type="fixed"><parent link="rod"/><child link="tip"/>
    <origin xyz="1 0 0" rpy="1.5707963267948966 0 0"/></joint>
</robot>
"""


@pytest.mark.parametrize('oracle', ['power series', 'Pinocchio'])
def test_pendulum_needs_the_torque_of_the_textbook(oracle):
    """(I + m l^2) q'' + m g l cos q, and its derivative, for a rod that rises with q."""
    q, qd, q2d, q3d = motion = np.array([0.3, -0.7, 1.1, 0.4])
    gravity = (0, 0, -9.81)
    if oracle == 'power series':
        effort = taylor_rnea(PENDULUM, ['hinge'], gravity, motion[:, None])[:, 0]
    else:
        pin = pin_oracle(PENDULUM, ['hinge'], gravity)
        effort = [pin.effort(motion[:, None])[0], pin.effort_rate(motion[:, None])[0]]
    expected = [
        0.6 * q2d + 9.81 * np.cos(q),
        0.6 * q3d - 9.81 * np.sin(q) * qd,
    ]
    np.testing.assert_allclose(effort, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ('link', 'expressed_in', 'values', 'expected'),
    [
        # The rod points straight up from its hinge at a height of 1 m; its axis is -y.
        ('rod', 'body', [0, 5, 0, 10, 0, 10], -5.0),
        ('rod', 'hybrid', [0, 5, 0, 10, 0, 10], -5.0),
        ('rod', 'spatial', [0, 5, 0, 10, 0, 10], 5.0),
        # The tip is 1 m above, turned about the rod: its y is the rod's z, which points to -x.
        ('tip', 'body', [0, 0, 5, 0, 10, 0], 15.0),
        ('tip', 'hybrid', [0, 5, 0, -10, 0, 0], 5.0),
        ('tip', 'spatial', [0, 5, 0, -10, 0, 0], -15.0),
    ],
)
@pytest.mark.parametrize('oracle', ['power series', 'Pinocchio'])
def test_wrench_on_the_environment_is_carried_by_the_joint(
    oracle, link, expressed_in, values, expected
):
    motion = np.array([[np.pi / 2], [0.0], [0.0]])
    for acting, sign in (('on_environment', 1), ('on_robot', -1)):
        wrench = WrenchCase(link, np.array([values], dtype=float), expressed_in, acting)
        if oracle == 'power series':
            effort = taylor_rnea(PENDULUM, ['hinge'], (0, 0, 0), motion, [wrench])[0, 0]
        else:
            effort = pin_oracle(PENDULUM, ['hinge'], (0, 0, 0)).effort(motion, [wrench])[0]
        assert effort == pytest.approx(sign * expected, abs=1e-14)


def test_random_robots_have_every_feature_that_they_are_meant_to_have():
    robots = [random_robot(seed) for seed in TREES]
    trees = [read_urdf(robot.xml) for robot in robots]
    for robot, tree in zip(robots, trees, strict=True):
        assert sorted(tree.independent) == sorted(robot.independent_joints)
    sizes = [len(robot.independent_joints) + len(robot.mimic_joints) for robot in robots]
    assert (min(sizes), max(sizes)) == (1, 12)
    joints = [{joint.name: joint for joint in tree.joints} for tree in trees]
    everything = [joint for tree in joints for joint in tree.values()]
    assert {j.type for j in everything} == {'revolute', 'continuous', 'prismatic', 'fixed'}
    pairs = {
        (joint.type, tree[joint.mimic[0]].type)
        for tree in joints
        for joint in tree.values()
        if joint.mimic
    }
    assert {('prismatic', 'revolute'), ('revolute', 'prismatic')} <= pairs
    mimicked = [[j.mimic[0] for j in tree.values() if j.mimic] for tree in joints]
    assert any(len(names) > len(set(names)) for names in mimicked)
    assert any(
        set(names) - set(robot.independent_joints)
        for robot, names in zip(robots, mimicked, strict=True)
    )
    assert any(len(robot.leaves) > 2 for robot in robots)
    assert any(tree.root in tree.inertials for tree in trees)
    massless = {
        j.type for tree in trees for j in tree.joints if j.child not in tree.inertials
    }
    assert 'fixed' in massless
    assert len(massless) > 1
    elements = [
        element
        for robot in robots
        for element in ElementTree.fromstring(robot.xml).iter('joint')
    ]
    moving = [element for element in elements if element.get('type') != 'fixed']
    assert any(element.find('axis') is None for element in moving)
    assert any(element.find('origin') is None for element in elements)
    origins = [
        element.find('origin') for element in elements if element.find('origin') is not None
    ]
    mimics = [
        element.find('mimic') for element in elements if element.find('mimic') is not None
    ]
    for found, attribute in (
        (origins, 'xyz'),
        (origins, 'rpy'),
        (mimics, 'multiplier'),
        (mimics, 'offset'),
    ):
        assert any(element.get(attribute) is None for element in found)


def test_chain_keeps_what_is_rigidly_attached_and_drops_moving_branches():
    """Root - a - b = tip, with a fixed camera on a, a tool behind the tip, a moving branch."""
    xml = (
        '<robot name="r">'
        + ''.join(
            f'<link name="{n}"/>'
            for n in ('root', 'a', 'b', 'camera', 'tool', 'arm', 'hook')
        )
        + ''.join(
            f'<joint name="to_{child}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/></joint>'
            for parent, child, kind in [
                ('root', 'a', 'revolute'),
                ('a', 'b', 'revolute'),
                ('a', 'camera', 'fixed'),
                ('b', 'tool', 'fixed'),
                ('a', 'arm', 'revolute'),
                ('arm', 'hook', 'fixed'),
            ]
        )
        + '</robot>'
    )
    tree = read_urdf(chain_urdf(xml, 'root', 'b'))
    assert sorted(j.name for j in tree.joints) == ['to_a', 'to_b', 'to_camera', 'to_tool']
    tree = read_urdf(chain_urdf(xml, 'a', 'tool'))
    assert tree.root == 'a'
    assert sorted(j.name for j in tree.joints) == ['to_b', 'to_camera', 'to_tool']
