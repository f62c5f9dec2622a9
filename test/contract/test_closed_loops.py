"""Robots with closed loops against power series, circles, Pinocchio and MuJoCo.

`support.loop_oracle` writes loops as equations between points and directions of links; joints of
the five-bar follow from circles as well. Pinocchio and MuJoCo hold points of a tree together.
"""

import itertools
import pickle

import numpy as np
import pytest
from support.loop_oracle import oracle_of
from support.loop_robots import MujocoLoops, PinocchioLoops, description, stewart_platform
from support.oracles import taylor_rnea
from support.random_trees import random_motion
from support.robots import FIVE_BAR

from hodyn_ros import (
    ModelWarning,
    RobotModel,
    coriolis_matrix,
    forward_dynamics,
    forward_kinematics,
    gravity_effort,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_kinematics,
    jacobian,
    mass_matrix,
    to_urdf,
)
from hodyn_ros.dynamics import loop_efforts
from hodyn_ros.errors import HodynError, InverseKinematicsError, ModelError, MotionError
from hodyn_ros.kinematics import complete_joint_state, complete_motion, loop_singularity
from hodyn_ros.model import Coupling, Loop, find_position_violations, find_violations

mujoco = pytest.importorskip('mujoco', reason='MuJoCo (PyPI: mujoco) is a reference')
pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is a reference')
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def motion_of(model, size=0.1, K=5):
    """A motion about the position in which the loops are closed at first."""
    motion = random_motion(3, model.n_joints, K)
    motion[0] *= size / np.pi
    motion[0] += model.closure.start[model.closure.independent]
    return motion


@pytest.fixture(scope='module')
def five_bar():
    return RobotModel.from_urdf(FIVE_BAR)


# --- Motion and efforts -----------------------------------------------------------------------


def test_all_joints_and_efforts_of_a_stewart_platform_are_those_of_power_series():
    model = stewart_platform()
    motion = motion_of(model)
    whole = complete_motion(model, motion)
    expected, efforts = oracle_of(model, to_urdf(model.closure.tree))(motion, whole[0])
    errors = np.abs(whole - expected).max(axis=1) / np.abs(expected).max(axis=1)
    assert (errors < [1e-12, 1e-12, 1e-11, 1e-10, 1e-9]).all()
    found = inverse_dynamics(model, motion)
    errors = np.abs(found - efforts).max(axis=1) / np.abs(efforts).max(axis=1)
    assert (errors < [1e-12, 1e-11, 1e-10]).all()


@pytest.mark.parametrize('name', ['delta', 'five_bar'])
def test_pinocchio_and_mujoco_move_as_the_efforts_were_computed_for(name):
    model, xml = RobotModel.from_urdf(name), description(name)
    motion = motion_of(model)
    whole = complete_motion(model, motion)
    effort = inverse_dynamics(model, motion)[0]
    scale = np.abs(whole[2]).max()
    pinocchio = PinocchioLoops(xml, model)
    np.testing.assert_allclose(pinocchio.efforts(whole), effort, rtol=1e-8, atol=1e-10)
    for reference, tolerance in ((pinocchio, 1e-6), (MujocoLoops(xml, model), 1e-5)):
        found = reference.accelerations(whole, effort)
        np.testing.assert_allclose(found, whole[2], atol=tolerance * scale)
    found = forward_dynamics(model, motion[:2], effort[None])[..., -1, :]
    np.testing.assert_allclose(found, motion[2], rtol=1e-9, atol=1e-10)


def test_links_in_loops_move_as_in_the_tree_with_all_joints(five_bar):
    motion = motion_of(five_bar)
    whole, tree = complete_motion(five_bar, motion), five_bar.closure.tree
    found = forward_kinematics(five_bar, motion, 'right_rod', 'hybrid')
    expected = forward_kinematics(tree, whole, 'right_rod', 'hybrid')
    np.testing.assert_allclose(found.pose, expected.pose, atol=1e-13)
    np.testing.assert_allclose(found.twist, expected.twist, atol=1e-11)
    J = jacobian(five_bar, motion[:1], 'right_rod', 'hybrid')[0]
    np.testing.assert_allclose(J @ motion[1], expected.twist[0], atol=1e-12)


def test_wrenches_in_loops_hold_the_open_tree(five_bar):
    """With them at its ends the tree needs the efforts of the motors, and none elsewhere."""
    motion = motion_of(five_bar)
    found, tree = loop_efforts(five_bar, motion), five_bar.closure.tree
    np.testing.assert_allclose(found.effort, inverse_dynamics(five_bar, motion), rtol=1e-9)
    of_tree = taylor_rnea(to_urdf(tree), tree.joint_names, tree.gravity, found.motion)[0]
    wrench = found.wrenches['pin'][0]
    pose = forward_kinematics(tree, found.motion, 'left_rod').pose
    R, pin = pose[:3, :3], pose[:3, 3] + pose[:3, :3] @ [0.5, 0.0, 0.0]
    force = R @ wrench[3:]
    held = np.zeros(4)
    for link, sign in (('left_rod', 1.0), ('right_rod', -1.0)):
        J = jacobian(tree, found.motion[:1], link, 'spatial')[0]
        held += sign * J.T @ [*np.cross(pin, force), *force]
    expected = np.zeros(4)
    expected[five_bar.closure.independent] = found.effort[0]
    np.testing.assert_allclose(of_tree + held, expected, atol=1e-10 * np.abs(of_tree).max())


def test_coupled_joints_move_as_the_polynomial_says_and_load_what_they_follow():
    tree = RobotModel.from_urdf(FIVE_BAR).closure.tree
    belt = Coupling('belt', 'left_elbow', 'left', (0.1, -1.0, 0.2))
    model = tree.with_loops([belt], independent=['left', 'right', 'right_elbow'])
    motion = random_motion(2, 3, 5)
    factorials = np.array([1.0, 1.0, 2.0, 6.0, 24.0])
    series = motion[:, 0] / factorials
    square = np.convolve(series, series)[:5]
    elbow = -1.0 * series + 0.2 * square
    elbow[0] += 0.1
    whole = np.stack([motion[:, 0], elbow * factorials, *motion[:, 1:].T], axis=1)
    np.testing.assert_allclose(complete_motion(model, motion), whole, atol=1e-13)
    Q = (
        taylor_rnea(to_urdf(tree), tree.joint_names, tree.gravity, whole)
        / factorials[:3, None]
    )
    slope = 0.4 * series[:3]
    slope[0] -= 1.0
    Q[:, 0] += np.convolve(slope, Q[:, 1])[:3]
    expected = (Q * factorials[:3, None])[:, [0, 2, 3]]
    np.testing.assert_allclose(
        inverse_dynamics(model, motion), expected, atol=1e-12 * np.abs(expected).max()
    )


# --- Descriptions -------------------------------------------------------------------------------


def by_circles(cranks):
    """All joints (..., 4) of the five-bar, whose pin is above the line between the tips."""
    absolute = np.asarray(cranks) + [2.0, 1.0]
    tips = 0.4 * np.stack([np.cos(absolute), np.sin(absolute)], axis=-1)
    tips[..., 0] += [-0.2, 0.2]
    left, right = np.moveaxis(tips, -2, 0)
    way = right - left
    apart = np.linalg.norm(way, axis=-1)[..., None]
    across = np.stack([-way[..., 1], way[..., 0]], axis=-1) / apart
    pin = 0.5 * (left + right) + np.sqrt(0.25 - (0.5 * apart) ** 2) * across
    rods = [np.arctan2(*np.moveaxis(pin - tip, -1, 0)[::-1]) for tip in (left, right)]
    elbows = np.stack(rods, axis=-1) - absolute + [1.2, -1.2]
    return np.stack(
        [cranks[..., 0], elbows[..., 0], cranks[..., 1], elbows[..., 1]], axis=-1
    )


ELBOWS = by_circles(np.zeros(2))[1::2]
# The same robot, whose loop is closed where all joints are at zero, as SDF wants it.
BENDS = ELBOWS + [-1.2, 1.2]
CLOSED = FIVE_BAR.replace('0 0 -1.2', f'0 0 {BENDS[0]}').replace(
    '0 0 1.2', f'0 0 {BENDS[1]}'
)
LOOP = CLOSED[CLOSED.index('  <loop') : CLOSED.index('</robot>')]
HOOKS = ''.join(
    f'<link name="{side}_end"/><joint name="{side}_hook" type="fixed"><parent link="{side}_rod"/>'
    f'<child link="{side}_end"/><origin xyz="0.5 0 0"/></joint>'
    for side in ('left', 'right')
)
GAZEBO = (
    '<gazebo><joint name="pin" type="revolute"><parent>left_rod</parent><child>right_rod</child>'
    '<pose>0.5 0 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint></gazebo>'
)
BESIDE = 'closed_loop: [[left_end, right_end]]\ntype: [3d]\nname_mot: [left, right]\n'


def sdf_of_five_bar():
    """The robot, whose rods meet at the joint that is named last."""
    links, joints = '', ''
    for side, x, turn, bend in (
        ('left', -0.2, 2.0, BENDS[0]),
        ('right', 0.2, 1.0, BENDS[1]),
    ):
        elbow = x + 0.4 * np.cos(turn), 0.4 * np.sin(turn)
        for part, (px, py), yaw in (('crank', (x, 0), turn), ('rod', elbow, turn + bend)):
            links += (
                f'<link name="{side}_{part}"><pose>{px} {py} 0 0 0 {yaw}</pose><inertial>'
                '<pose>.2 0 0 0 0 0</pose><mass>1</mass><inertia><ixx>.001</ixx><iyy>.02</iyy>'
                '<izz>.02</izz></inertia></inertial></link>'
            )
        for name, parent, child in (
            (side, 'base', f'{side}_crank'),
            (f'{side}_elbow', f'{side}_crank', f'{side}_rod'),
        ):
            joints += (
                f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}'
                '</child><axis><xyz>0 0 1</xyz></axis></joint>'
            )
    pin = (
        '<joint name="pin" type="revolute"><parent>left_rod</parent><child>right_rod</child>'
        '<pose>.5 0 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint>'
    )
    inner = f'<link name="base"/>{links}{joints}{pin}'
    return f'<sdf version="1.10"><model name="m">{inner}</model></sdf>'


@pytest.mark.parametrize('form', ['gazebo', 'file beside', 'written', 'SDF'])
def test_a_loop_is_the_same_in_every_form(form, tmp_path):
    five_bar = RobotModel.from_urdf(CLOSED)
    path = tmp_path / 'loops.yaml'
    path.write_text(BESIDE)
    models = {
        'gazebo': lambda: RobotModel.from_urdf(CLOSED.replace(LOOP, GAZEBO)),
        'file beside': lambda: RobotModel.from_urdf(
            CLOSED.replace(LOOP, HOOKS), loops=path
        ),
        'written': lambda: RobotModel.from_urdf(to_urdf(five_bar)),
        # In an SDF a second parent closes a loop.
        'SDF': lambda: RobotModel.from_sdf(
            sdf_of_five_bar(), independent=['left', 'right']
        ),
    }
    motion = motion_of(five_bar)
    expected = inverse_dynamics(five_bar, motion)
    for model in (models[form](), pickle.loads(pickle.dumps(models[form]()))):
        assert model.joint_names == five_bar.joint_names
        np.testing.assert_allclose(
            inverse_dynamics(model, motion), expected, atol=1e-9 * np.abs(expected).max()
        )


MJCF = """<mujoco model="m"><compiler angle="radian"/><worldbody>
  {left}{right}</worldbody><equality><connect name="pin" body1="left_rod" body2="right_rod"
  anchor=".5 0 0"/><joint name="gear" joint1="wheel" joint2="left" polycoef=".1 .5 .2 0 0"/>
  </equality><actuator><motor joint="left"/><motor joint="right"/></actuator></mujoco>"""
SIDE = """<body name="{s}_crank" pos="{x} 0 0" euler="0 0 {a}"><inertial pos=".2 0 0" mass="1"
  diaginertia=".001 .02 .02"/><joint name="{s}" axis="0 0 1"/><body name="{s}_rod" pos=".4 0 0"
  euler="0 0 {b}"><inertial pos=".2 0 0" mass="1" diaginertia=".001 .02 .02"/>
  <joint name="{s}_elbow" axis="0 0 1"/></body>{more}</body>"""
WHEEL = '<body pos=".1 0 0"><geom size=".05" mass=".3"/><joint name="wheel" axis="0 0 1"/></body>'


def test_loops_of_an_mjcf_are_those_that_mujoco_closes():
    angle = np.arccos(0.2 / 0.5)  # the rods meet in the middle
    rods = {'left': (-0.2, 1.6, angle - 1.6), 'right': (0.2, np.pi - 1.6, 1.6 - angle)}
    # Tips are at x = -/+ 0.2 +/- 0.4 cos(1.6); the start says where the search begins.
    texts = {
        side: SIDE.format(s=side, x=x, a=a, b=b, more=WHEEL if side == 'left' else '')
        for side, (x, a, b) in rods.items()
    }
    xml = MJCF.format(**texts)
    model = RobotModel.from_mjcf(xml)
    assert model.joint_names == ('left', 'right')
    compiled = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(compiled)
    for q in ([0.0, 0.0], [0.2, -0.3], [-0.4, 0.1]):
        whole = complete_motion(model, [q, [0.7, -0.4]])
        data.qpos[:], data.qvel[:] = (
            [
                values[model.closure.tree.joint_names.index(compiled.joint(j).name)]
                for j in range(5)
            ]
            for values in whole
        )
        mujoco.mj_forward(compiled, data)
        closed = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        assert closed.sum() == 4
        assert np.abs(data.efc_pos[closed]).max() < 1e-10
        assert np.abs(data.efc_vel[closed]).max() < 1e-10


# --- Branches and singularities -----------------------------------------------------------------


def test_the_branch_is_that_of_the_start_in_any_order_of_samples(five_bar):
    angle = np.arange(-1.4, 1.4, 0.1)
    cranks = np.array(list(itertools.product(angle, angle)))
    absolute = cranks + [2.0, 1.0]
    gap = 0.4 * np.exp(1j * absolute) @ [-1.0, 1.0] + 0.4
    cranks = cranks[(np.abs(gap) < 0.995) & (np.abs(gap) > 0.02)]
    assert len(cranks) > 300
    expected = by_circles(cranks)
    order = np.random.default_rng(0).permutation(len(cranks))
    for way in (np.arange(len(cranks)), order):
        found = complete_motion(five_bar, cranks[way, None])[:, 0]
        off = found - expected[way]
        np.testing.assert_allclose(
            off - 2 * np.pi * np.round(off / 2 / np.pi), 0.0, atol=1e-8
        )


def test_positions_out_of_reach_are_refused_with_sample_and_distance(five_bar):
    direction = np.array([1.0, -1.0])
    # The tips are a rod's length twice apart where both cranks turn outwards so far.
    ways = [np.array([s, -s]) for s in np.linspace(0.0, 1.4, 1401)]
    reach = [
        s[0] for s in ways if abs(0.4 * np.exp(1j * (s + [2.0, 1.0])) @ [-1, 1] + 0.4) < 1
    ]
    end = max(reach)
    complete_motion(five_bar, [(end - 1e-3) * direction])
    with pytest.raises(MotionError, match=r'closed at sample 1') as caught:
        complete_motion(five_bar, [[[0.0, 0.0]], [(end + 0.1) * direction]])
    assert isinstance(caught.value, HodynError)
    true = np.array([1e-3, 0.01, 0.1])
    near = ((end - true)[:, None] * direction)[:, None]
    found = loop_singularity(five_bar, near)
    # In the norm of both cranks; it is a square root, and so an estimate.
    assert found.distance == pytest.approx(true * np.sqrt(2.0), rel=0.1, abs=1e-3)
    assert (np.diff(found.ratio) > 0.0).all()
    with pytest.raises(MotionError, match='finite'):
        complete_motion(five_bar, [[np.nan, 0.0]])


ROD = (1.0, (0.05, 0.01, 0.0), np.diag([0.001, 0.02, 0.021]))


def parallelogram(crank=0.3, ground=1.0):
    """Three joints about z, whose end is held on the ground."""
    places = [0.0, crank, ground]
    return RobotModel.from_body_screws(
        [[0, 0, 1, 0, 0, 0]] * 3,
        [at(x) for x in places],
        parents=[-1, 0, 1],
        inertias=[ROD] * 3,
        joint_names=['j0', 'j1', 'j2'],
        gravity=(0.3, -9.81, 0.5),
    )


def at(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


def test_a_way_through_a_position_where_branches_cross_is_refused():
    pin = Loop('pin', 'hinge', 'base', 'link3', at(1.0), at(0.3))
    tree = parallelogram()
    model = tree.with_loops([pin], ['j0'], {'j0': 1.0, 'j1': -1.0, 'j2': 1.0 - np.pi})
    motion = np.array([[0.4], [1.3], [-0.7], [2.0], [-1.0]])
    whole = motion * [1.0, -1.0, 1.0]
    whole[0, 2] -= np.pi
    np.testing.assert_allclose(complete_motion(model, motion), whole, atol=1e-12)
    Q = taylor_rnea(to_urdf(tree), tree.joint_names, tree.gravity, whole)
    np.testing.assert_allclose(
        inverse_dynamics(model, motion)[:, 0], Q @ [1.0, -1.0, 1.0], rtol=1e-11
    )
    turn = np.linspace(1.0, 4.0, 301)[:, None, None]
    with pytest.raises(MotionError, match=r'they close up to j0 = 3\.14'):
        complete_motion(model, turn)
    with pytest.raises(MotionError, match='another branch'):
        complete_motion(model, turn[-1])
    with pytest.raises(MotionError, match='singular'):
        inverse_dynamics(model, [[1e-9], [1.0], [1.0]])


def change_point_linkage(crank, ground, coupler, start, beside=False):
    """A four-bar that may lie in line where the crank is at pi, moved by the crank.

    With one more joint beside it, on no other link.
    """
    rocker = crank + ground - coupler
    pin = crank * np.exp(1j * start)
    apart = abs(ground - pin)
    along = (apart**2 + coupler**2 - rocker**2) / (2.0 * apart)
    end = pin + (ground - pin) / apart * (along + 1j * np.sqrt(coupler**2 - along**2))
    joints = 4 if beside else 3
    tree = RobotModel.from_body_screws(
        [[0, 0, 1, 0, 0, 0]] * joints,
        [at(0.0), at(crank), at(ground), at(0.0)][:joints],
        parents=[-1, 0, -1, -1][:joints],
        inertias=[ROD] * joints,
        joint_names=['crank', 'coupler', 'rocker', 'beside'][:joints],
    )
    loop = Loop('pin', 'hinge', 'link2', 'link3', at(coupler), at(rocker))
    independent = ['crank', 'beside'] if beside else ['crank']
    angles = np.angle([end - pin, end - ground]) - [start, 0.0]
    begin = {'crank': start, 'coupler': angles[0], 'rocker': angles[1]}
    return tree.with_loops([loop], independent, begin)


@pytest.mark.parametrize('beside', [False, True])
def test_no_way_leads_past_a_crossing_of_branches_to_either_of_them(beside):
    rng = np.random.default_rng(4)
    for _ in range(6):
        crank, ground = rng.uniform(0.1, 1.0, 2)
        coupler = rng.uniform(0.3, 0.7) * (crank + ground)
        side, far = rng.choice([-1.0, 1.0]), rng.uniform(0.05, 0.8)
        model = change_point_linkage(crank, ground, coupler, np.pi - side * far, beside)
        others = [30.0] * beside
        for past in np.exp(rng.uniform(np.log(1e-5), 0.0, 15)):
            with pytest.raises(MotionError, match='another branch'):
                complete_motion(model, [[np.pi + side * past, *others]])
            complete_motion(model, [[np.pi - side * past * far, *others]])


def test_the_palletiser_stays_on_its_branch_in_all_its_range():
    # Parallelograms turn as their cranks do, so that all joints are linear.
    model, rng = RobotModel.from_urdf('palletiser'), np.random.default_rng(1)
    lower, upper = model.limits.lower, model.limits.upper
    closed, refused = [], 0
    for q in lower + (upper - lower) * rng.random((500, model.n_joints)):
        try:
            closed.append([*q, 1.0, *complete_motion(model, [q])[0]])
        except MotionError:
            refused += 1
    given, whole = np.split(np.array(closed), [model.n_joints + 1], axis=1)
    assert refused < 100
    linear = np.linalg.lstsq(given[:50], whole[:50], rcond=None)[0]
    np.testing.assert_allclose(given @ linear, whole, atol=1e-9)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('crank', 'ground', 'prepared'),
    [(0.3, 1.0, False), (1.0, 0.99, False), (1.0, 0.99, True)],
)
def test_terms_near_a_crossing_of_branches_are_right_to_a_percent_or_refused(
    crank, ground, prepared
):
    # The joints move as 1, -1, 1, and so do those of the tree.
    pin = Loop('pin', 'hinge', 'base', 'link3', at(ground), at(crank))
    tree = parallelogram(crank, ground)
    model = tree.with_loops([pin], ['j0'], {'j0': 1.0, 'j1': -1.0, 'j2': 1.0 - np.pi})
    if prepared:
        model.warm_up(2)
    ways = np.array([1.0, -1.0, 1.0])
    terms = {
        'effort': lambda robot, motion, G: inverse_dynamics(robot, motion)[-1] @ G,
        'mass': lambda robot, motion, G: G.T @ mass_matrix(robot, motion)[-1] @ G,
        'Coriolis': lambda robot, motion, G: G.T @ coriolis_matrix(robot, motion)[-1] @ G,
        'weight': lambda robot, motion, G: gravity_effort(robot, motion)[-1] @ G,
        'Jacobian': lambda robot, motion, G: jacobian(robot, motion, 'link2')[-1] @ G,
        'partial': lambda robot, motion, G: (
            G.T @ inverse_dynamics_derivatives(robot, motion)[-1, :, 0] @ G
        ),
    }
    given = {
        'effort': 3,
        'mass': 1,
        'Coriolis': 2,
        'weight': 1,
        'Jacobian': 1,
        'partial': 3,
    }
    for angle in np.geomspace(0.1, 1e-7, 7):
        motion = np.array([angle, 1.3, -0.7, 2.0, -1.0])
        whole = motion[:, None] * ways
        whole[0, 2] -= np.pi
        for name, term in terms.items():
            for K in range(given[name], given[name] + 3):
                expected = term(tree, whole[:K], ways)
                size = max(
                    np.abs(expected).max(), np.abs(term(tree, whole[:K], np.eye(3))).max()
                )
                try:
                    found = term(model, motion[:K, None], np.eye(1))
                except MotionError as error:
                    assert 'singular' in str(error) and angle < 0.02
                    continue
                assert np.abs(np.ravel(found) - np.ravel(expected)).max() < 0.01 * size


@pytest.mark.parametrize('nearest', [0.03, 0.003])
def test_batches_near_rods_in_line_are_on_the_branch_in_any_order(five_bar, nearest):
    rng, way = np.random.default_rng(1), np.array([1.0, -1.0])
    cranks = rng.uniform(-1.0, 1.0, (200000, 2))
    apart = np.abs(0.4 * np.exp(1j * (cranks + [2.0, 1.0])) @ way[::-1] + 0.4)
    cranks = cranks[(apart < 1.0 - 1e-6) & (apart > 1.0 - nearest)][:1500]
    expected, five_bar = by_circles(cranks), RobotModel.from_urdf(FIVE_BAR)
    five_bar.warm_up(0)
    found = complete_motion(five_bar, cranks[:, None])[:, 0]
    off = found - expected
    np.testing.assert_allclose(off - 2 * np.pi * np.round(off / 2 / np.pi), 0.0, atol=1e-8)
    order = rng.permutation(len(cranks))
    permuted = complete_motion(five_bar, cranks[order, None])[:, 0]
    np.testing.assert_allclose(permuted, found[order], atol=1e-8)
    for sample in range(0, len(cranks), 100):
        alone = complete_motion(five_bar, cranks[sample, None])[0]
        np.testing.assert_allclose(alone, found[sample], atol=1e-8)


def loop(link='right_rod', x=0.5):
    return [Loop('l', 'hinge', 'left_rod', link, at(0.5), at(x))]


@pytest.mark.parametrize(
    ('loops', 'options', 'said'),
    [
        (loop('rod'), {}, 'rod'),
        (loop(x=9.0), {}, 'closed'),
        ([Coupling('c', 'left', 'j9', (0.0, 1.0))], {}, 'j9'),
        (loop(), {'independent': ['left']}, 'expected 2'),
        (loop(), {'independent': ['left', 'j7']}, 'j7'),
    ],
)
def test_loops_that_cannot_be_are_refused_with_what_is_missing(loops, options, said):
    tree = RobotModel.from_urdf(FIVE_BAR, loops=())
    with pytest.raises(ModelError, match=said):
        tree.with_loops(loops, **options)


def test_loops_can_be_left_open_and_are_closed_before_anything_moves(five_bar):
    with pytest.warns(ModelWarning, match='left open'):
        tree = RobotModel.from_urdf(FIVE_BAR, loops='open')
    assert (tree.closure, tree.n_joints) == (None, 4)
    with pytest.raises(ModelError, match='no closed loops'):
        complete_motion(tree, np.zeros((1, 4)))
    start = complete_motion(five_bar, np.zeros((1, 2)))
    np.testing.assert_allclose(start[0], by_circles(np.zeros(2)), atol=1e-12)


# --- Measurements, limits and the way back ------------------------------------------------------

JOINTS = ['left', 'left_elbow', 'right', 'right_elbow']


def test_measured_joints_determine_all_others_or_are_fitted(five_bar):
    rng = np.random.default_rng(5)
    whole = complete_motion(five_bar, rng.uniform(-0.25, 0.25, (40, 2, 2)))
    for names in (
        ['right', 'left'],
        ['left_elbow', 'right_elbow'],
        ['right_elbow', 'left'],
    ):
        columns = [JOINTS.index(name) for name in names]
        found = complete_joint_state(five_bar, names, whole[..., columns])
        np.testing.assert_allclose(found.motion, whole, atol=1e-9)
        np.testing.assert_allclose(found.deviations, 0.0, atol=1e-9)
    sigma = np.array([0.02, 0.001, 0.02, 0.002])
    noisy = whole + sigma * rng.standard_normal(whole.shape)
    found = complete_joint_state(five_bar, JOINTS, noisy, sigma**-2)
    np.testing.assert_allclose(found.deviations, noisy - found.motion, atol=1e-13)
    # At the smallest sum the slope along each motor is zero.
    u = found.motion[:, 0, ::2]
    for step in 1e-5 * np.eye(2):
        sums = [
            (
                (noisy[:, 0] - complete_motion(five_bar, (u + s)[:, None])[:, 0]) ** 2
                / sigma**2
            ).sum(axis=-1)
            for s in (step, -step, 0.0)
        ]
        slope, curvature = sums[0] - sums[1], sums[0] + sums[1] - 2.0 * sums[2]
        assert (np.abs(slope) < 0.02 * curvature).all()
    with pytest.raises(MotionError, match="left do not determine 'right'"):
        complete_joint_state(five_bar, ['left'], whole[..., :1])


def test_limits_of_joints_that_loops_move_are_kept():
    limited = FIVE_BAR.replace(
        '<joint name="left_elbow" type="continuous">',
        '<joint name="left_elbow" type="revolute"><limit lower="-3" upper="0.1" velocity="0.9"/>',
    ).replace('<robot ', '<robot version="1.2" ')
    model = RobotModel.from_urdf(limited)
    cranks = np.linspace([0.3, 0.0], [-0.3, 0.2], 61)
    elbow = by_circles(cranks)[:, 1]
    assert elbow.min() < 0.1 < elbow.max()
    (found,) = find_position_violations(model, model.limits, cranks)
    assert (found.joint_name, found.quantity, found.limit) == (
        'left_elbow',
        'position',
        0.1,
    )
    assert found.sample == elbow.argmax() and found.value == pytest.approx(elbow.max())
    motion = np.zeros((61, 3, 2))
    motion[:, 0], motion[:, 1] = cranks, [-0.6, 0.2]
    ahead = by_circles(cranks + 1e-6 * motion[:, 1]) - by_circles(
        cranks - 1e-6 * motion[:, 1]
    )
    speed = ahead[:, 1] / 2e-6
    assert np.abs(speed).max() > 0.9
    found = {
        x.quantity: x for x in find_violations(model, model.limits, motion, motion[:, 2:])
    }
    assert found['velocity'].sample == np.abs(speed).argmax()
    assert found['velocity'].value == pytest.approx(
        speed[found['velocity'].sample], rel=1e-6
    )


def test_the_motion_of_a_link_gives_that_of_the_motors_or_says_why_not(five_bar):
    motion = motion_of(five_bar)
    task = {'link': 'right_rod', 'expressed_in': 'hybrid', 'task': ('x', 'y')}
    wanted = forward_kinematics(five_bar, motion, 'right_rod', 'hybrid')
    # The elbow of the right crank has one position; the whole rod has two.
    task['task'] = ('x', 'rz')
    found = inverse_kinematics(five_bar, wanted, guess=motion[0] + 0.01, **task)
    np.testing.assert_allclose(found.motion, motion, atol=1e-8)
    far = wanted.pose.copy()
    far[0, 3] += 3.0
    with pytest.raises(InverseKinematicsError, match='out of reach'):
        inverse_kinematics(five_bar, (far, wanted.twist), guess=motion[0], **task)
