"""Joint efforts and their derivatives agree with independent oracles.

An error is measured per order of derivative, relative to the largest effort of that order over all
joints and contributions (inertia, gravity, each wrench): contributions may cancel, their rounding
does not. Oracles, see oracles.py:

- power series through plain mechanics, exact in all orders,
- Pinocchio: exact in Q and its first derivative; its second derivative is interpolated, which
  limits the comparison to about 1e-10.
"""

import numpy as np
import pytest
from support.coverings import covering
from support.dynamics_cases import (
    EARTH,
    ROBOTS,
    URDF,
    load,
    make_case,
    relative_errors,
    scale_of,
    up_to_its_order,
    wrench_arguments,
)
from support.oracles import PinOracle, chain_urdf, mimic_of, read_urdf, taylor_terms
from support.random_trees import (
    EXPRESSIONS,
    SIGNS,
    WrenchCase,
    random_gravity,
    random_motion,
    random_robot,
    random_wrenches,
    seeds,
)
from support.records import changed

from hodyn_ros import Wrench, inverse_dynamics

SEEDS = range(30)
ALGORITHMS = (
    'auto',
    'body_fixed',
    'closed_form',
    'lagrange',
    'nth_order',
    'spatial',
    'spatial_base_acceleration',
    'hybrid',
    'newton_euler',
)


@pytest.mark.parametrize(
    ('name', 'wrenches', 'algorithm'), covering(ROBOTS, (True, False), ALGORITHMS)
)
def test_effort_and_first_two_derivatives_match_power_series(name, wrenches, algorithm):
    case = make_case(name, wrenches=wrenches)
    motion, wrenches = up_to_its_order(algorithm, case.motion, case.wrenches)
    effort = inverse_dynamics(
        case.model, motion, wrench_arguments(wrenches) or None, algorithm
    )
    orders = len(motion) - 2
    assert effort.shape == (orders, len(case.model.joint_names))
    assert np.all(relative_errors(effort, case.expected[:orders], case.scale) <= 1e-12)


@pytest.mark.parametrize('algorithm', ['auto', 'closed_form', 'lagrange'])
@pytest.mark.parametrize('name', seeds(ROBOTS, short=8))
def test_orders_three_to_six_match_power_series(name, algorithm):
    case = make_case(name, K=9)
    effort = inverse_dynamics(
        case.model, case.motion, wrench_arguments(case.wrenches), algorithm
    )
    errors = relative_errors(effort, case.expected, case.scale)
    assert np.all(errors[:3] <= 1e-12)
    assert np.all(errors[3:] <= 1e-11)


@pytest.mark.parametrize('wrenches', [False, True], ids=['free', 'with wrenches'])
@pytest.mark.parametrize('name', seeds(ROBOTS, short=6))
def test_effort_and_first_two_derivatives_match_pinocchio(name, wrenches):
    pytest.importorskip('pinocchio', reason='Pinocchio (pip: pin) is not installed')
    case = make_case(name, wrenches=wrenches)
    pin = PinOracle(case.xml, case.model.joint_names, case.gravity)
    effort = inverse_dynamics(case.model, case.motion, wrench_arguments(case.wrenches))
    interpolated = pin.interpolated(case.motion, case.wrenches)
    # The oracle's own limit must leave room below the tolerance.
    assert interpolated.error[2] <= 5e-10 * case.scale[2]
    expected = [
        pin.effort(case.motion, case.wrenches),
        pin.effort_rate(case.motion, case.wrenches),
        interpolated.efforts[2],
    ]
    errors = relative_errors(effort, np.array(expected), case.scale)
    assert np.all(errors <= [1e-12, 1e-12, 1e-9])


@pytest.mark.parametrize('acting', SIGNS)
@pytest.mark.parametrize('expressed_in', EXPRESSIONS)
@pytest.mark.parametrize(
    'link', ['panda_link0', 'panda_link4', 'panda_link8', 'panda_hand']
)
def test_single_wrench_matches_power_series(link, expressed_in, acting):
    """On the base, an inner link, a link merged into another one, and one merged twice."""
    xml = (URDF / 'panda_with_hand.urdf').read_text()
    model = load(xml)
    motion = random_motion(3, 8, 7)
    values = 20.0 * np.random.default_rng(4).standard_normal((5, 6))
    case = WrenchCase(link, values, expressed_in, acting)
    terms = taylor_terms(xml, model.joint_names, EARTH, motion, [case])
    effort = inverse_dynamics(model, motion, Wrench(*case))
    errors = relative_errors(effort, terms.sum(axis=0), scale_of(terms))
    assert np.all(errors <= [1e-12] * 3 + [1e-11] * 2)


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


def test_joints_at_their_zero_position_and_at_rest_match_power_series():
    for name in ('Panda with hand', 'tree 3', 'tree 6'):
        robot = ROBOTS[name]()
        model = load(robot.xml)
        motion = np.zeros((7, len(model.joint_names)))
        terms = taylor_terms(robot.xml, model.joint_names, EARTH, motion)
        effort = inverse_dynamics(model, motion)
        scale = np.abs(terms[:, 0]).max()
        assert np.abs(effort - terms.sum(axis=0)).max() <= 1e-12 * scale


@pytest.mark.parametrize('K', [3, 4, 5, 6, 8])
def test_lower_orders_do_not_depend_on_how_many_are_asked_for(K):
    case = make_case('tree 5', K=8)
    wrenches = [Wrench(*changed(w, values=w.values[: K - 2])) for w in case.wrenches]
    effort = inverse_dynamics(case.model, case.motion[:K], wrenches)
    assert effort.shape[0] == K - 2
    assert np.all(relative_errors(effort, case.expected[: K - 2], case.scale) <= 1e-12)


# --- Batches ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'algorithm'),
    covering(['Panda', 'Panda with hand', 'tree 2', 'tree 11'], ALGORITHMS),
)
def test_batch_equals_loop_over_its_samples(name, algorithm):
    robot = ROBOTS[name]()
    model = load(robot.xml)
    n = len(model.joint_names)
    motion = random_motion(8, n, 5, (2, 9))
    cases = random_wrenches(8, robot.wrench_links, 5, (2, 9))
    motion, cases = up_to_its_order(algorithm, motion, cases)
    orders = motion.shape[-2] - 2
    together = inverse_dynamics(model, motion, wrench_arguments(cases), algorithm)
    assert together.shape == (2, 9, orders, n)
    for index in np.ndindex(2, 9):
        one = [Wrench(*changed(w, values=w.values[index])) for w in cases]
        alone = inverse_dynamics(model, motion[index], one, algorithm)
        assert alone.shape == (orders, n)
        scale = np.abs(together).max(axis=(0, 1, 3))
        assert np.all(relative_errors(alone, together[index], scale) <= 1e-14)


@pytest.mark.parametrize('algorithm', ['nth_order', 'closed_form', 'lagrange'])
def test_batch_across_several_blocks_equals_single_samples(algorithm):
    model = load(ROBOTS['Panda']().xml)
    motion = random_motion(4, 7, 5, (700,))
    together = inverse_dynamics(model, motion, algorithm=algorithm)
    for index in (0, 350, 699):
        alone = inverse_dynamics(model, motion[index], algorithm=algorithm)
        assert np.all(relative_errors(alone, together[index], scale_of(alone)) <= 1e-13)


@pytest.mark.parametrize(
    ('shape', 'algorithm'),
    covering([(), (0,), (1,), (4,), (1, 1), (2, 0), (2, 3, 2)], ALGORITHMS),
)
def test_any_leading_shape_is_kept(shape, algorithm):
    case = make_case('tree 2')
    motion, wrenches = up_to_its_order(algorithm, case.motion, case.wrenches)
    orders = len(motion) - 2
    motion = np.broadcast_to(motion, (*shape, *motion.shape))
    effort = inverse_dynamics(case.model, motion, wrench_arguments(wrenches), algorithm)
    assert effort.shape == (*shape, orders, case.motion.shape[-1])
    assert effort.dtype == np.float64
    if effort.size:
        assert np.all(relative_errors(effort, case.expected[:orders], case.scale) <= 1e-12)


@pytest.mark.parametrize(
    ('motion_shape', 'wrench_shape', 'shape'),
    [
        ((4,), (), (4,)),
        ((4,), (1,), (4,)),
        ((2, 4), (4,), (2, 4)),
        ((2, 4), (2, 1), (2, 4)),
        ((), (3,), (3,)),
        ((2, 1), (3,), (2, 3)),
        ((0,), (), (0,)),
    ],
)
def test_wrench_values_broadcast_over_the_batch(motion_shape, wrench_shape, shape):
    robot = ROBOTS['tree 2']()
    model = load(robot.xml)
    motion = random_motion(8, len(model.joint_names), 5, motion_shape)
    cases = random_wrenches(8, robot.wrench_links, 5, wrench_shape)
    # One more whose values do not vary, as a gravity compensation of a tool would have.
    cases.append(random_wrenches(9, robot.wrench_links, 5)[0])
    terms = taylor_terms(robot.xml, model.joint_names, EARTH, motion, cases)
    effort = inverse_dynamics(model, motion, wrench_arguments(cases))
    assert effort.shape == terms.shape[1:] == (*shape, 3, len(model.joint_names))
    if effort.size:
        assert np.all(relative_errors(effort, terms.sum(axis=0), scale_of(terms)) <= 1e-12)


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


@pytest.mark.parametrize('part', [1 / 3, 1.0])
@pytest.mark.parametrize('seed', seeds(SEEDS, short=8))
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


@pytest.mark.parametrize(
    'seed', seeds([s for s in SEEDS if random_robot(s).mimic_joints], short=6)
)
def test_mimic_effort_adds_to_the_joint_that_it_follows(seed):
    """Against the same robot without mimic elements, moved along q_m = a q_j + b."""
    robot = random_robot(seed)
    joints = read_urdf(robot.xml).joints
    model = load(robot.xml)
    free = load(without_mimics(robot.xml))
    assert set(model.joint_names) == set(robot.independent_joints)
    assert set(free.joint_names) == set(robot.independent_joints) | set(robot.mimic_joints)
    motion = random_motion(seed, len(model.joint_names), 5)
    G = np.zeros((len(free.joint_names), len(model.joint_names)))
    offsets = np.zeros(len(free.joint_names))
    for joint in joints:
        if joint.type != 'fixed':
            row = free.joint_names.index(joint.name)
            independent, G[row, model.joint_names.index(independent)], offsets[row] = (
                mimic_of(joint, joints)
            )
    full_motion = motion @ G.T
    full_motion[0] += offsets
    cases = random_wrenches(seed, robot.links, 5)
    full = inverse_dynamics(free, full_motion, wrench_arguments(cases))
    effort = inverse_dynamics(model, motion, wrench_arguments(cases))
    scale = np.abs(full[..., None] * G).max(axis=(1, 2))
    assert np.all(relative_errors(effort, full @ G, scale) <= 1e-12)


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


def without_mimics(xml):
    start = xml.find('<mimic')
    while start >= 0:
        xml = xml[:start] + xml[xml.index('/>', start) + 2 :]
        start = xml.find('<mimic')
    return xml
