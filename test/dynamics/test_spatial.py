"""The spatial recursion, term by term: kinematics, momenta, weights, wrenches between bodies.

Efforts are compared with the oracles in test_inverse_dynamics.py and test_helical.py.
"""

from xml.etree import ElementTree

import numpy as np
import pytest
from support.interpolation import derivatives_at_zero, taylor
from support.oracles import read_urdf, taylor_terms
from support.random_trees import (
    random_motion,
    random_robot,
    random_wrenches,
)
from support.spatial_cases import (
    MODELS,
    PANDA,
    SEEDS,
    SUFFIXES,
    K,
    assert_close,
    assert_derivatives,
    assert_differentiated,
    assert_twists_of_links,
    link_of_body,
    make_case,
    random_case_with_wrenches,
    tree,
)

from hodyn_ros import (
    HodynError,
    RobotModel,
    Wrench,
    forward_kinematics,
    inverse_dynamics,
)
from hodyn_ros.dynamics import hybrid, inter_body_wrenches, spatial
from hodyn_ros.dynamics.hybrid import hybrid_kinematics
from hodyn_ros.dynamics.spatial import spatial_kinematics
from hodyn_ros.dynamics.wrenches import wrenches_on_bodies
from hodyn_ros.errors import MotionError, WrenchError
from hodyn_ros.kinematics.joints import body_coordinates
from hodyn_ros.lie import se3

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


# --- Of the spatial and of the hybrid recursion -------------------------------------------------

RECURSIONS = {
    'spatial': (spatial_kinematics, {'S': 3, 'V': 3}),
    'hybrid': (hybrid_kinematics, {'X': 3, 'V': 3, 'r': 2}),
}


@pytest.fixture(params=RECURSIONS)
def recursion(request):
    """Expression of twists, kinematics of all bodies, and fields with their highest orders."""
    return request.param, *RECURSIONS[request.param]


@pytest.mark.parametrize('name', MODELS)
def test_twists_of_all_bodies_are_those_of_their_links(name, recursion):
    expressed_in, kinematics_of, _ = recursion
    assert_twists_of_links(name, kinematics_of, expressed_in)


@pytest.mark.parametrize('name', MODELS)
def test_screws_twists_and_distances_are_differentiated_componentwise(name, recursion):
    assert_differentiated(name, *recursion[1:])


@pytest.mark.parametrize('K', [1, 2, 3, 4])
def test_lower_orders_do_not_depend_on_how_many_are_given(K, recursion):
    _, kinematics_of, (screw, *_) = recursion
    model, _, coordinates = make_case('tree 3')
    full, part = (
        kinematics_of(model, given) for given in (coordinates, coordinates[:, :K])
    )
    for field in [screw + order for order in SUFFIXES[:K]] + [
        'V' + order for order in SUFFIXES[: K - 1]
    ]:
        np.testing.assert_array_equal(getattr(part, field), getattr(full, field))


@pytest.mark.parametrize('name', MODELS)
def test_applied_wrenches_come_back_as_they_were_given(name, recursion):
    """From a spatial or hybrid wrench through the body frame to such a one."""
    expressed_in, kinematics_of, _ = recursion
    model, _, coordinates = make_case(name)
    body = model.n_bodies - 1
    values = np.random.default_rng(5).standard_normal((1, K - 2, 6))
    given = Wrench(link_of_body(model, body), values, expressed_in)
    applied = wrenches_on_bodies(model, coordinates, [(given, values)])
    found = kinematics_of(model, coordinates)
    if expressed_in == 'hybrid':
        W = hybrid.applied_wrenches(found, applied)
    else:
        W = spatial.applied_wrenches(found.C, found.V, found.Vd, applied)
    scale = np.abs(applied[body]).max()
    np.testing.assert_allclose(W[:, 0, body], values[0], rtol=0, atol=1e-13 * scale)
    assert not W[:, :, :body].any()


# --- Wrenches of single bodies ------------------------------------------------------------------


@pytest.mark.parametrize('name', MODELS)
def test_momentum_derivatives_are_those_of_the_momentum(name):
    model, motion, coordinates = make_case(name)
    kinematics = spatial_kinematics(model, coordinates)
    M = spatial.spatial_inertias(model, kinematics.C)

    def momenta(motions):
        kinematics = spatial_kinematics(model, body_coordinates(model, motions))
        M = spatial.spatial_inertias(model, kinematics.C)
        return (M @ kinematics.V[..., None])[..., 0]

    Pi = (M @ kinematics.V[..., None])[None, ..., 0]
    orders = np.concatenate([Pi, spatial.momentum_derivatives(M, kinematics)])
    assert_derivatives(orders[:, 0], momenta, motion)


@pytest.mark.parametrize('name', MODELS)
def test_gravity_wrenches_are_weights_and_their_derivatives(name):
    model, motion, coordinates = make_case(name)
    G = spatial.gravity_screw(model)

    def gravity_wrenches(motions):
        kinematics = spatial_kinematics(model, body_coordinates(model, motions))
        M = spatial.spatial_inertias(model, kinematics.C)
        return spatial.gravity_wrenches(M, kinematics.V, kinematics.Vd, G)

    actual = gravity_wrenches(motion[None])[:, 0]
    assert_derivatives(actual, lambda motions: gravity_wrenches(motions)[0], motion)
    # What carries a body: minus the weight, at the centre of mass.
    C = spatial_kinematics(model, coordinates).C[0]
    mass, first_moment = model.M_body[:, 3, 3], model.M_body[:, [2, 0, 1], [4, 5, 3]]
    force = -mass[:, None] * model.gravity
    arm = np.einsum('bij,bj->bi', C[:, :3, :3], first_moment) + mass[:, None] * C[:, :3, 3]
    np.testing.assert_allclose(actual[0, :, 3:], force, atol=1e-13 * np.abs(force).max())
    moment = np.cross(arm, -model.gravity)
    np.testing.assert_allclose(actual[0, :, :3], moment, atol=1e-13 * np.abs(moment).max())


# --- Gravity as base acceleration ---------------------------------------------------------------


@pytest.mark.parametrize('seed', SEEDS)
def test_gravity_wrenches_and_base_acceleration_give_the_same_efforts(seed):
    _, model, _, _, coordinates, applied = random_case_with_wrenches(seed)
    explicit = spatial.body_efforts(model, coordinates, applied)
    accelerated = spatial.body_efforts_with_base_acceleration(model, coordinates, applied)
    assert_close(accelerated[0], explicit[0], 1e-12)
    # Gravity has a part in all three orders, so this is not about nothing.
    weightless = RobotModel.from_urdf(random_robot(seed).xml, gravity=(0, 0, 0))
    without = spatial.body_efforts(weightless, coordinates, applied)
    for order in range(3):
        difference = np.abs(explicit - without)[0, order].max()
        assert difference > 1e-3 * np.abs(explicit[0, order]).max()


@pytest.mark.parametrize('seed', SEEDS)
def test_without_its_correction_a_base_acceleration_makes_the_second_derivative_wrong(seed):
    """Algorithms 1 and 3 as printed, with wrenches: Q and Qd are right, Q2d is not."""
    _, model, _, _, coordinates, applied = random_case_with_wrenches(seed)
    G = spatial.gravity_screw(model)
    kinematics = spatial_kinematics(model, coordinates, base_acceleration=G[3:])
    true = spatial_kinematics(model, coordinates)
    np.testing.assert_allclose(
        kinematics.Vd - G, true.Vd, atol=1e-12 * np.abs(true.Vd).max()
    )
    M = spatial.spatial_inertias(model, kinematics.C)
    W_app = spatial.applied_wrenches(kinematics.C, kinematics.V, true.Vd, applied)
    Pi = spatial.momentum_derivatives(M, kinematics)
    printed = spatial.efforts_of(kinematics, spatial.sum_towards_base(model, Pi + W_app))[0]
    right = spatial.body_efforts(model, coordinates, applied)[0]
    assert_close(printed[:2], right[:2], 1e-12)

    W_app_bar = spatial.sum_towards_base(model, W_app)
    error = (kinematics.S * se3.coadjoint(G, W_app_bar[0])).sum(axis=-1)[0]
    scale = np.abs(right[2]).max()
    np.testing.assert_allclose(printed[2] - right[2], error, rtol=0, atol=1e-12 * scale)
    assert np.abs(error).max() > 1e-3 * scale
    turns = np.linalg.norm(model.X[:, :3], axis=1) > 0.5
    # A force alone is not turned by an acceleration: prismatic joints do not feel the difference.
    assert np.abs(error[~turns]).max(initial=0.0) <= 1e-13 * scale


# --- Inter-body wrenches ------------------------------------------------------------------------

VIRTUAL = [f'virtual_{kind}_{axis}' for kind in ('turn', 'shift') for axis in 'xyz']


def oracle_inter_body_wrench(xml, model, motion, wrenches, joint_name):
    """Spatial wrench on what hangs on a joint, by the power series.

    Six joints at rest carry the robot along and about the base axes, and nothing but the links
    behind the joint has mass or wrenches: the efforts of the six are the components.
    """
    tree = read_urdf(xml)
    behind = {next(joint.child for joint in tree.joints if joint.name == joint_name)}
    for joint in tree.joints:  # sorted from the root outwards
        if joint.parent in behind:
            behind.add(joint.child)
    robot = ElementTree.fromstring(xml)
    for link in robot.findall('link'):
        inertial = link.find('inertial')
        if inertial is not None and link.get('name') not in behind:
            link.remove(inertial)
    links = [*(f'before_{name}' for name in VIRTUAL), tree.root]
    for name, parent, child in zip(VIRTUAL, links, links[1:]):
        axis = ' '.join('1' if letter == name[-1] else '0' for letter in 'xyz')
        kind = 'prismatic' if 'shift' in name else 'continuous'
        robot.append(ElementTree.fromstring(f'<link name="{parent}"/>'))
        robot.append(
            ElementTree.fromstring(
                f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
                f'<child link="{child}"/><axis xyz="{axis}"/></joint>'
            )
        )
    names = [*VIRTUAL, *model.joint_names]
    full = np.concatenate([np.zeros((*motion.shape[:-1], 6)), motion], axis=-1)
    terms = taylor_terms(
        ElementTree.tostring(robot, encoding='unicode'),
        names,
        model.gravity,
        full,
        [wrench for wrench in wrenches if wrench.link in behind],
    )
    return terms.sum(axis=0)[..., :6], np.abs(terms[..., :6]).max(axis=0)


@pytest.mark.parametrize('with_wrenches', [False, True], ids=['free', 'with wrenches'])
@pytest.mark.parametrize('name', ['Panda', *(f'tree {seed}' for seed in SEEDS)])
def test_inter_body_wrenches_match_power_series(name, with_wrenches):
    xml = PANDA if name == 'Panda' else random_robot(int(name.split()[1])).xml
    model, motion, _ = make_case(name)
    links = [joint.child for joint in read_urdf(xml).joints]
    cases = random_wrenches(2, links, K) if with_wrenches else []
    W = inter_body_wrenches(model, motion, [Wrench(*case) for case in cases])
    assert W.shape == (K - 2, model.n_bodies, 6)
    for i, joint_name in enumerate(model.body_names):
        expected, terms = oracle_inter_body_wrench(xml, model, motion, cases, joint_name)
        for order in range(K - 2):
            scale = max(terms[order].max(), 1e-300)
            np.testing.assert_allclose(
                W[order, i], expected[order], rtol=0, atol=1e-12 * scale
            )


@pytest.mark.parametrize('name', MODELS)
def test_base_reaction_is_rate_of_momentum_minus_weight_plus_applied_wrenches(name):
    model, motion, coordinates = make_case(name)
    body = model.n_bodies - 1
    values = 30.0 * np.random.default_rng(5).standard_normal((K - 2, 6))
    given = Wrench(link_of_body(model, body), values, 'spatial')
    W = inter_body_wrenches(model, motion, given)
    reaction = W[:, model.parent < 0].sum(axis=1)

    def total_momentum(motions):
        total = 0.0
        for i in range(model.n_bodies):
            link = forward_kinematics(model, motions[:, :2], link_of_body(model, i))
            to_base = np.swapaxes(se3.Ad(se3.inverse(link.pose)), -1, -2)
            total += (to_base @ model.M_body[i] @ link.twist[:, 0, :, None])[..., 0]
        return total

    def weight(motions):
        total = 0.0
        for i in range(model.n_bodies):
            M = model.M_body[i]
            com = np.array([M[2, 4], M[0, 5], M[1, 3], M[3, 3]])
            C = forward_kinematics(model, motions[:, :1], link_of_body(model, i)).pose
            moment = np.cross((C @ com)[:, :3], model.gravity)
            force = np.broadcast_to(M[3, 3] * model.gravity, moment.shape)
            total += np.concatenate([moment, force], axis=-1)
        return total

    Pi = derivatives_at_zero(lambda times: total_momentum(taylor(motion, times)), 3)
    weights = derivatives_at_zero(lambda times: weight(taylor(motion, times)), 2)
    for order in range(K - 2):
        expected = Pi[order + 1] - weights[order] + values[order]
        scale = max(1.0, *(np.abs(y).max() for y in (*Pi, expected)))
        np.testing.assert_allclose(
            reaction[order], expected, rtol=0, atol=1e-10 * scale * 10**order
        )


@pytest.mark.parametrize('seed', SEEDS)
def test_efforts_are_components_of_inter_body_wrenches_along_the_joint_screws(seed):
    _, model, motion, cases, coordinates, _ = random_case_with_wrenches(seed)
    wrenches = [Wrench(*case) for case in cases]
    W, Wd, W2d = inter_body_wrenches(model, motion, wrenches)
    kinematics = spatial_kinematics(model, coordinates)
    S, Sd, S2d = kinematics.S[0], kinematics.Sd[0], kinematics.S2d[0]
    projections = np.array(
        [
            (S * W).sum(axis=-1),
            (S * Wd + Sd * W).sum(axis=-1),
            (S * W2d + 2 * Sd * Wd + S2d * W).sum(axis=-1),
        ]
    )
    # A mimic joint adds to the joint that it follows.
    expected = np.zeros((K - 2, model.n_joints))
    for i in range(model.n_bodies):
        expected[:, model.coordinate[i]] += model.multiplier[i] * projections[:, i]
    efforts = inverse_dynamics(model, motion, wrenches)
    assert_close(efforts, expected, 1e-12)


def test_inter_body_wrenches_of_a_batch_are_those_of_its_samples():
    model = tree(2)
    link = link_of_body(model, model.n_bodies - 1)
    motion = random_motion(3, model.n_joints, K, (2, 300))
    values = np.random.default_rng(3).standard_normal((300, K - 2, 6))
    together = inter_body_wrenches(model, motion, Wrench(link, values, 'hybrid'))
    assert together.shape == (2, 300, K - 2, model.n_bodies, 6)
    for index in [(0, 0), (0, 299), (1, 17), (1, 256)]:
        wrench = Wrench(link, values[index[1]], 'hybrid')
        alone = inter_body_wrenches(model, motion[index], wrench)
        assert_close(alone, together[index], 1e-13)
    assert inter_body_wrenches(model, motion[:, :0]).shape == (2, 0, 3, model.n_bodies, 6)
    lower = inter_body_wrenches(model, motion[..., :3, :])
    assert lower.shape == (2, 300, 1, model.n_bodies, 6)


def test_bad_input_for_inter_body_wrenches_is_refused_with_the_reason():
    model = RobotModel.from_urdf(PANDA)
    with pytest.raises(MotionError, match='shape'):
        inter_body_wrenches(model, np.zeros((2, 7)))
    with pytest.raises(HodynError, match='K = 6'):
        inter_body_wrenches(model, np.zeros((6, 7)))
    with pytest.raises(WrenchError, match='broadcast'):
        wrench = Wrench('panda_link8', np.zeros((2, 3, 6)))
        inter_body_wrenches(model, np.zeros((3, 5, 7)), wrench)
    with pytest.raises(MotionError, match='overflow'):
        inter_body_wrenches(model, np.full((5, 7), 1e200))
