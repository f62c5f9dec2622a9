"""Robots are what their descriptions say: as Pinocchio reads a URDF, and MuJoCo an MJCF.

Descriptions are random trees with everything that URDF allows, and small robots by hand.
"""

import copy
import hashlib
import pickle

import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from support.oracles import PinOracle
from support.random_trees import random_gravity, random_motion, random_robot
from support.robots import TWO_LINK, joint, link, robot

from hodyn_ros import (
    Inertia,
    ModelWarning,
    RobotModel,
    forward_kinematics,
    friction,
    gravity_effort,
    inverse_dynamics,
    to_urdf,
)
from hodyn_ros.errors import HodynError, JointNameError, ModelError
from hodyn_ros.model import MotionLimits, Rotor, find_violations, motion_limits

pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')
mujoco = pytest.importorskip('mujoco', reason='MuJoCo (PyPI: mujoco) is the reference')
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def check_efforts(model, motion, expected, tolerance=1e-12):
    found = inverse_dynamics(model, motion[:3])[0]
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max())
    )


def check_as_pinocchio(model, xml, gravity=None):
    """Efforts of a motion are those of Pinocchio, which reads this URDF."""
    oracle = PinOracle(
        xml, model.joint_names, model.gravity if gravity is None else gravity
    )
    motion = random_motion(7, model.n_joints, 3)
    check_efforts(model, motion, oracle.effort(motion))
    return oracle, motion


# --- Formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize('seed', [43, 3, 0, 8])
def test_a_urdf_is_read_as_pinocchio_reads_it(seed):
    tree = random_robot(seed)
    model = RobotModel.from_urdf(tree.xml, gravity=random_gravity(seed))
    assert {*model.joint_names} == {*tree.independent_joints}
    assert {*model.body_names} == {*tree.independent_joints, *tree.mimic_joints}
    assert {*model.links} == {*tree.links}
    oracle, motion = check_as_pinocchio(model, tree.xml)
    at = oracle.configuration(oracle.full(motion)[0])
    pin.framesForwardKinematics(oracle.model, oracle.data, at)
    for name in tree.links:
        pose = oracle.data.oMf[oracle.model.getFrameId(name)].homogeneous
        found = forward_kinematics(model, motion, name).pose
        np.testing.assert_allclose(found, pose, atol=1e-13)


SDF = """<sdf version="1.10">{world}<model name="robot">
  <link name="base"/>
  <link name="upper"><pose relative_to="shoulder_at"/>{inertial}</link>
  <link name="fore"><pose relative_to="upper">.3 0 .1 -.4 .1 0</pose>{inertial}</link>
  <link name="hand"><pose relative_to="fore">.2 .1 0 .1 .2 .3</pose>{inertial}</link>
  <frame name="shoulder_at" attached_to="base"><pose>.1 .2 .3 .3 -.2 .5</pose></frame>
  <joint name="turn" type="revolute"><parent>base</parent><child>upper</child>
    <axis><xyz>0 .6 .8</xyz><limit><lower>-1</lower><upper>2</upper><effort>20</effort>
    <velocity>4</velocity></limit><dynamics><damping>.3</damping></dynamics></axis></joint>
  <joint name="slide" type="prismatic"><parent>upper</parent><child>fore</child>
    <axis><xyz expressed_in="base">{along}</xyz></axis></joint>
  <joint name="wrist" type="universal"><parent>fore</parent><child>hand</child>
    <axis><xyz>2 0 0</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>
</model>{end}</sdf>"""
INERTIAL = (
    '<inertial><pose>.1 .02 -.03 .2 -.1 .3</pose><mass>2</mass><inertia><ixx>.03</ixx>'
    '<iyy>.04</iyy><izz>.05</izz><ixy>.001</ixy><ixz>-.002</ixz><iyz>.003</iyz></inertia>'
    '</inertial>'
)
IN_URDF = (
    '<inertial><origin xyz=".1 .02 -.03" rpy=".2 -.1 .3"/><mass value="2"/><inertia ixx=".03" '
    'iyy=".04" izz=".05" ixy=".001" ixz="-.002" iyz=".003"/></inertial>'
)


def rotation(rpy):
    return pin.rpy.rpyToMatrix(*rpy)


def sdf(world='', end='', inertial=INERTIAL):
    along = rotation((0.3, -0.2, 0.5)) @ rotation((-0.4, 0.1, 0.0)) @ [1.0, 0.0, 0.0]
    numbers = ' '.join(map(repr, along.tolist()))
    return SDF.format(world=world, end=end, inertial=inertial, along=numbers)


def test_an_sdf_is_the_robot_that_pinocchio_reads_in_urdf():
    def moved(name, kind, parent, child, at, axis):
        xyz, rpy = at
        return (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            '<limit lower="-9" upper="9" effort="9" velocity="9"/></joint>'
        )

    still = '0 0 0', '0 0 0'
    xml = robot(
        '<link name="base"/><link name="cross"/>',
        *(f'<link name="{name}">{IN_URDF}</link>' for name in ('upper', 'fore', 'hand')),
        moved('turn', 'revolute', 'base', 'upper', ('.1 .2 .3', '.3 -.2 .5'), '0 .6 .8'),
        moved('slide', 'prismatic', 'upper', 'fore', ('.3 0 .1', '-.4 .1 0'), '1 0 0'),
        moved('wrist_1', 'revolute', 'fore', 'cross', ('.2 .1 0', '.1 .2 .3'), '1 0 0'),
        moved('wrist_2', 'revolute', 'cross', 'hand', still, '0 0 1'),
    )
    model = RobotModel.from_sdf(sdf())
    assert model.joint_names == ('turn', 'slide', 'wrist_1', 'wrist_2')
    check_as_pinocchio(model, xml, (0.0, 0.0, -9.81))
    limits = model.limits
    assert [limits.lower[0], limits.upper[0], limits.effort[0], limits.velocity[0]] == [
        *(-1.0, 2.0, 20.0, 4.0)
    ]
    assert np.isinf([limits.lower[1], limits.upper[1], limits.velocity[1]]).all()
    rubbing = RobotModel.from_sdf(sdf(), joint_friction=True)
    motion = random_motion(1, 4, 3)
    more = inverse_dynamics(rubbing, motion) - inverse_dynamics(model, motion)
    np.testing.assert_allclose(more, 0.3 * motion[1:2] * [1, 0, 0, 0], atol=1e-12)
    # Gravity is that of the world, in the axes of the base.
    mars = '<world name="mars"><gravity>0 0 -3.71</gravity>', '</world>'
    np.testing.assert_allclose(RobotModel.from_sdf(sdf(*mars)).gravity, [0, 0, -3.71])
    placed = sdf(*mars).replace('<link', '<pose>0 0 1 .3 0 0</pose><link', 1)
    np.testing.assert_allclose(
        RobotModel.from_sdf(placed).gravity, rotation((-0.3, 0.0, 0.0)) @ [0, 0, -3.71]
    )


MJCF = """<mujoco model="arm"><compiler angle="degree" eulerseq="xyz" autolimits="true"/>
  <option gravity=".5 -2 -9"/>
  <default><joint armature=".05"/><default class="hinge"><joint axis="0 0 1" damping=".2"/>
    </default></default>
  <worldbody><body name="upper" pos=".1 .2 .3" euler="20 -10 30">
    <inertial pos=".1 .02 -.03" mass="{mass}" fullinertia="{inertia} .04 .05 .001 -.002 .003"/>
    <joint name="turn" class="hinge" axis="1 2 .5" pos=".05 -.1 .2" range="-60 120" ref="10"
      actuatorfrcrange="-20 30" frictionloss=".4"/>
    <joint name="slide" type="slide" axis="0 1 1" pos=".1 0 0" ref="-.05" range="-.3 .4"/>
    <body name="plate" pos="0 .1 0"><geom type="box" size=".1 .2 .05" mass=".4"/></body>
    <body name="fore" pos=".4 0 .1" quat=".9 .1 -.3 .2">
      <joint name="elbow" class="hinge" armature=".02"/>
      <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".04" density="800"/></body>
  </body></worldbody></mujoco>"""


def test_an_mjcf_is_read_as_mujoco_reads_it(tmp_path):
    text = MJCF.format(mass=2, inertia='.03')
    path = tmp_path / 'arm.xml'
    path.write_text(text)
    compiled = mujoco.MjModel.from_xml_string(text)
    compiled.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    damping, compiled.dof_damping[:] = compiled.dof_damping.copy(), 0.0
    data = mujoco.MjData(compiled)
    for model in (RobotModel.from_mjcf(text), RobotModel.from_mjcf(path)):
        assert (model.name, model.base_link) == ('arm', 'world')
        assert model.joint_names == ('turn', 'slide', 'elbow')
        np.testing.assert_array_equal(model.gravity, [0.5, -2.0, -9.0])
        np.testing.assert_allclose(model.armature, compiled.dof_armature, atol=1e-15)
        motion = random_motion(4, 3, 3)
        data.qpos[:], data.qvel[:], data.qacc[:] = motion
        mujoco.mj_inverse(compiled, data)
        check_efforts(model, motion, data.qfrc_inverse)
        pose = forward_kinematics(model, motion, 'fore').pose
        np.testing.assert_allclose(pose[:3, 3], data.body('fore').xpos, atol=1e-14)
        np.testing.assert_allclose(pose[:3, :3].ravel(), data.body('fore').xmat, atol=1e-14)
    limits = model.limits
    np.testing.assert_allclose(
        [limits.lower[:2], limits.upper[:2]], compiled.jnt_range[:2].T
    )
    assert limits.effort[0] == 20.0 and np.isinf(limits.effort[1])
    rubbing = RobotModel.from_mjcf(text, joint_friction=True)
    more = inverse_dynamics(rubbing, motion) - inverse_dynamics(model, motion)
    losses = damping * motion[1] + [0.4 * np.sign(motion[1, 0]), 0.0, 0.0]
    np.testing.assert_allclose(more[0], losses, atol=1e-12)


def test_a_written_robot_is_the_same_to_pinocchio_and_when_it_is_read_again():
    tree = random_robot(5)
    model = RobotModel.from_urdf(tree.xml, gravity=random_gravity(5))
    check_as_pinocchio(model, to_urdf(model))
    again = RobotModel.from_urdf(to_urdf(model), gravity=model.gravity)
    assert again.joint_names == model.joint_names
    fr3 = RobotModel.from_urdf('fr3')
    for name in ('lower', 'velocity', 'effort', 'deceleration_limit', 'velocity_offset'):
        np.testing.assert_array_equal(
            getattr(RobotModel.from_urdf(to_urdf(fr3)).limits, name),
            getattr(fr3.limits, name),
        )


def test_screws_in_the_base_are_those_in_the_bodies_and_move_by_their_exponentials():
    """Efforts of joints from screws in bodies are those of test_vectors.py."""
    rng = np.random.default_rng(2)
    e = rng.normal(size=(4, 3))
    e /= np.linalg.norm(e, axis=1)[:, None]
    Y = np.concatenate([e, np.cross(rng.uniform(-0.3, 0.3, (4, 3)), e)], axis=1)
    Y[1] = *np.zeros(3), *e[1]
    Y[2, 3:] += 0.07 * e[2]
    A = np.tile(np.eye(4), (4, 1, 1))
    A[:, :3] = [np.c_[rotation(turn), x] for turn, x in rng.uniform(-0.4, 0.4, (4, 2, 3))]
    inertias = [
        (1.0 + k, x, np.eye(3)) for k, x in enumerate(rng.uniform(-0.1, 0.1, (4, 3)))
    ]
    options = {'inertias': inertias, 'gravity': (1, 2, -9)}
    model = RobotModel.from_screws(Y, A, **options)
    assert model.joint_types == ('revolute', 'prismatic', 'helical', 'revolute')
    np.testing.assert_allclose(model.Y, Y, atol=1e-14)
    motion, pose = random_motion(3, 4, 3), np.eye(4)
    for (x, y, z, *v), q in zip(Y, motion[0]):
        twist = np.c_[[[0, -z, y], [z, 0, -x], [-y, x, 0]], v]
        pose = pose @ expm(q * np.vstack([twist, np.zeros(4)]))
    found = forward_kinematics(model, motion, 'link4').pose
    np.testing.assert_allclose(found, pose @ A[-1], atol=1e-14)
    in_bodies = RobotModel.from_body_screws(model.X, model.B, **options)
    check_efforts(model, motion, inverse_dynamics(in_bodies, motion)[0])


@pytest.mark.parametrize('convention', ['standard', 'modified'])
def test_tables_of_denavit_and_hartenberg_are_products_of_elementary_motions(convention):
    """Spong, Hutchinson and Vidyasagar, eq. (3.10); Craig, eq. (3.6)."""
    rng = np.random.default_rng(6)
    table, q = rng.uniform(-1.0, 1.0, (4, 4)), rng.uniform(-2.0, 2.0, 3)
    model = RobotModel.from_dh(
        table, convention, joint_types=['revolute', 'prismatic', 'fixed', 'revolute']
    )

    def about_and_along(axis, angle, length):
        pose = block_diag(pin.AngleAxis(angle, np.eye(3)[axis]).matrix(), 1.0)
        pose[axis, 3] = length
        return pose

    expected = np.eye(4)
    for (a, alpha, d, theta), turn, slide in zip(
        table, [q[0], 0, 0, q[2]], [0, q[1], 0, 0]
    ):
        of_z = about_and_along(2, theta + turn, d + slide)
        of_x = about_and_along(0, alpha, a)
        expected = expected @ (of_z @ of_x if convention == 'standard' else of_x @ of_z)
    np.testing.assert_allclose(
        forward_kinematics(model, q[None]).pose, expected, atol=1e-14
    )


# --- What is said of joints ----------------------------------------------------------------------


def test_a_chain_of_a_tree_moves_and_weighs_as_it_does_there():
    tree = random_robot(8, mimic_probability=0.0)
    whole = RobotModel.from_urdf(tree.xml)
    tip = tree.leaves[-1]
    chain = RobotModel.from_urdf(tree.xml, tip_link=tip)
    assert 0 < chain.n_joints < whole.n_joints
    assert chain.tip_link == tip and any(
        'lies outside the chain' in x for x in chain.warnings
    )
    columns = [whole.joint_names.index(name) for name in chain.joint_names]
    motion = random_motion(2, chain.n_joints, 3)
    moved = np.zeros((3, whole.n_joints))
    moved[:, columns] = motion
    np.testing.assert_allclose(
        forward_kinematics(chain, motion).pose,
        forward_kinematics(whole, moved, tip).pose,
        atol=1e-13,
    )


FINGER = robot(
    *(link(name) for name in 'abc'),
    joint('lead', 'a', 'b').replace('lower="-2" upper="2"', 'lower="-9" upper="9"'),
    joint('tip', 'b', 'c', extra='<mimic joint="lead" multiplier="-2" offset="0.3"/>'),
)


@pytest.mark.parametrize(
    ('order', 'row', 'joint_name', 'quantity', 'limit'),
    [
        (0, -1.0, 'tip', 'position', 2.0),  # at 0.3 - 2 q
        (0, 1.2, 'tip', 'position', -2.0),
        (1, 1.6, 'tip', 'velocity', -3.0),
        (1, -3.1, 'lead', 'velocity', -3.0),
        (0, 1.1, None, None, None),
        (1, 1.4, None, None, None),
    ],
)
def test_a_follower_narrows_what_its_leader_may_do(order, row, joint_name, quantity, limit):
    model = RobotModel.from_urdf(FINGER)
    motion = np.zeros((1, 3, 1))
    motion[0, order] = row
    found = find_violations(model, motion_limits(model), motion, np.zeros((1, 1, 1)))
    if joint_name is None:
        assert found == ()
        return
    (one,) = [item for item in found if item.joint_name == joint_name]
    assert (one.quantity, one.limit, one.sample) == (quantity, limit, 0)
    value = -2.0 * row + 0.3 * (order == 0) if joint_name == 'tip' else row
    assert one.value == pytest.approx(value)


def test_limits_are_the_worst_samples_and_those_of_a_mapping_come_in_addition():
    model = RobotModel.from_urdf(TWO_LINK)  # |q| <= 2, |qd| <= 3, |Q| <= 50
    extra = {'elbow': {'acceleration': 5.0, 'jerk': 7.0, 'effort_dot': 11.0}}
    limits = motion_limits(model, extra)
    np.testing.assert_array_equal(limits.acceleration, [np.inf, 5.0])
    motion, effort = np.zeros((4, 4, 2)), np.zeros((4, 2, 2))
    motion[1], effort[1] = [[2, -2], [-3, 3], [1e9, 5], [1e9, -7]], [[50, -50], [1e9, 11]]
    assert find_violations(model, limits, motion, effort) == ()
    motion[2:, 3, 1], effort[3, 1, 1], motion[3, 1, 0] = [-7.1, -7.2], 12.0, -3.5
    found = find_violations(model, limits, motion, effort)
    assert {(x.quantity, x.joint_name, x.value, x.limit, x.sample) for x in found} == {
        ('jerk', 'elbow', -7.2, -7.0, 3),
        ('effort_dot', 'elbow', 12.0, 11.0, 3),
        ('velocity', 'shoulder', -3.5, -3.0, 3),
    }
    with pytest.raises(ModelError, match=r'no joint elbo \(did you mean elbow\?'):
        motion_limits(model, {'elbo': {'jerk': 1.0}})


def test_payloads_and_rotors_add_what_mechanics_says():
    tree = random_robot(0)
    model = RobotModel.from_urdf(tree.xml)
    tensor = np.diag([0.02, 0.015, 0.012]) + 0.001
    held = model.with_payload(tree.leaves[0], 1.7, [0.03, -0.05, 0.12], tensor)
    rows = ' '.join(
        f'i{"xyz"[i]}{"xyz"[j]}="{tensor[i, j]}"' for i, j in zip(*np.triu_indices(3))
    )
    grasp = (
        '<link name="load"><inertial><origin xyz="0.03 -0.05 0.12"/><mass value="1.7"/><inertia '
        f'{rows}/></inertial></link><joint name="grasp" type="fixed"><parent '
        f'link="{tree.leaves[0]}"/><child link="load"/></joint></robot>'
    )
    check_as_pinocchio(held, tree.xml.replace('</robot>', grasp))
    # A rotor beside its joint spins 50 times as fast; the axes are parallel in this arm.
    arm = RobotModel.from_urdf(TWO_LINK.replace('rpy="0.1 0 0.2"', ''))
    motion = random_motion(1, 2, 3)
    plain, acceleration = inverse_dynamics(arm, motion)[0], motion[2]
    geared = arm.with_rotors([Rotor('elbow', 1e-4, 50.0)])
    coupled = 1e-4 * np.array(
        [[0.0, 50.0], [50.0, 2500.0]]
    )  # what armature leaves out: the carrier feels the rotor
    np.testing.assert_allclose(
        inverse_dynamics(geared, motion)[0] - plain, coupled @ acceleration, atol=1e-13
    )


# --- What no robot can be ------------------------------------------------------------------------

READ = {
    'URDF': lambda mass, ixx: RobotModel.from_urdf(
        TWO_LINK.replace('value="0.7"', f'value="{mass}"').replace(
            'ixx="0.01"', f'ixx="{ixx}"'
        )
    ),
    'SDF': lambda mass, ixx: RobotModel.from_sdf(
        sdf(
            inertial=INERTIAL.replace('<mass>2', f'<mass>{mass}').replace(
                '.03<', f'{ixx}<', 1
            )
        )
    ),
    'MJCF': lambda mass, ixx: RobotModel.from_mjcf(MJCF.format(mass=mass, inertia=ixx)),
    'screws': lambda mass, ixx: RobotModel.from_body_screws(
        [[0, 0, 1, 0, 0, 0]],
        [np.eye(4)],
        inertias=[Inertia(mass, np.zeros(3), np.diag([ixx, 0.04, 0.05]))],
    ),
    'payload': lambda mass, ixx: RobotModel.from_urdf(TWO_LINK).with_payload(
        'tool', mass, np.zeros(3), np.diag([ixx, 0.04, 0.05])
    ),
}


IMPOSSIBLE = [(1.0, -0.01), (-1.0, 0.03), (np.nan, 0.03), (1.0, np.inf)]


@pytest.mark.parametrize(
    ('form', 'mass', 'ixx'),
    # MuJoCo takes a negative mass for none, and so for a model without it.
    [(f, *x) for f in READ for x in IMPOSSIBLE if (f, x[0]) != ('MJCF', -1.0)],
)
@pytest.mark.filterwarnings('ignore:invalid value')
def test_an_inertia_that_no_body_has_is_refused_in_every_form(form, mass, ixx):
    READ[form](1.0, 0.03)
    with pytest.raises(ModelError, match='inertia|mass|number|finite'):
        READ[form](mass, ixx)


def test_an_impossible_inertia_that_is_asked_for_is_that_of_the_description():
    xml = TWO_LINK.replace('ixx="0.01"', 'ixx="-0.01"')
    with pytest.warns(ModelWarning, match='not positive semi-definite.*used as given'):
        model = RobotModel.from_urdf(xml, allow_impossible_inertia=True)
    check_as_pinocchio(model, xml)
    with pytest.raises(ModelError, match='negative mass'):
        RobotModel.from_urdf(xml.replace('"0.7"', '"-0.7"'), allow_impossible_inertia=True)


# --- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize('read', [RobotModel.from_urdf, RobotModel.from_sdf])
@pytest.mark.parametrize(
    'declared',
    [
        '<!ENTITY a SYSTEM "file://{path}">',
        '<!ENTITY % e SYSTEM "file://{path}"> %e; <!ENTITY a "">',
        '<!ENTITY z "{z}"><!ENTITY y "{y}"><!ENTITY a "{a}">',
        '',
    ],
    ids=['file', 'parameter', 'bomb', 'empty'],
)
def test_entities_are_refused_before_any_is_expanded(read, declared, tmp_path):
    secret = tmp_path / 'secret'
    secret.write_text('password')
    declared = declared.format(path=secret, z='z' * 9999, y='&z;' * 9999, a='&y;' * 9999)
    use = '&a;' if declared else ''
    root = 'robot' if read == RobotModel.from_urdf else 'sdf'
    with pytest.raises(ModelError, match='document type') as caught:
        read(f'<!DOCTYPE {root} [{declared}]><{root} name="r" version="1.6">{use}</{root}>')
    assert 'password' not in str(caught.value) and len(str(caught.value)) < 500


A, B = link('a'), link('b')
X = joint('x', 'a', 'b')


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'empty'),
        ('<robot name="r">\n<link', r'not XML: .*line 2'),
        ('<robot name="r">' + '<a>' * 50_000, 'not XML'),
        ('<sdf version="1.7"/>', r'expected the URDF element <robot>: it is an SDF'),
        ('no/such/file.urdf', 'no file no/such/file.urdf'),
        ('iiwa_14', 'did you mean iiwa14'),
        ('a' * 10_000, 'no robot'),
        ('a\0b', 'no robot'),
        (robot(A, B, joint('x', 'a', 'c')), "child link 'c', which does not exist"),
        (robot(A, A, B, X), "two links 'a'"),
        (robot(A, B, link('c'), X), 'not connected'),
        (robot(A, B, X, joint('y', 'b', 'a')), 'loop'),
        (robot(A, B, joint('x', 'a', 'b', kind='floating')), "'x' is of type 'floating'"),
        (robot(A, B, joint('x', 'a', 'b', axis='0 0 0')), 'axis is zero'),
        (robot(A, B, X.replace('0.1 0 0.2', '0.1 nan 0.2')), 'not finite'),
        (robot(A, B, X.replace('"50"', '"5 N"')), "'x'.*'5 N', expected a number"),
        (robot(A, B, X.replace('lower="-2"', 'lower="5"')), 'above the upper limit'),
        (
            robot(A, B, joint('x', 'a', 'b', extra='<mimic joint="x"/>')),
            'follow each other',
        ),
        (robot(A, B, X.replace('rpy=', 'quat_wxyz="1 0 0 0" rpy=')), 'has quat_wxyz'),
        (
            robot(A, B, X, '<xacro:arm xmlns:xacro="http://www.ros.org/wiki/xacro"/>'),
            'xacro',
        ),
    ],
    ids=lambda value: value[:20] if len(value) < 99 else '',
)
def test_a_description_that_cannot_be_used_is_refused_with_place_and_reason(
    text, said, tmp_path
):
    with pytest.raises(ModelError, match=said) as caught:
        RobotModel.from_urdf(text)
    assert isinstance(caught.value, HodynError) and len(str(caught.value)) < 1500
    if text.startswith('<'):
        path = tmp_path / 'wrong.urdf'
        path.write_text(text)
        with pytest.raises(ModelError, match=f'{path}.*({said})'):
            RobotModel.from_urdf(path)


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({'base_link': 'nowhere'}, "base_link 'nowhere'.*base, upper, fore, tool"),
        ({'base_link': 'tool', 'tip_link': 'upper'}, 'does not lie behind'),
        ({'gravity': (0, 0, np.nan)}, 'gravity'),
        ({'xacro_arguments': {'m': '1'}}, 'xacro'),
    ],
)
def test_an_option_that_does_not_fit_is_refused_with_what_there_is(options, said):
    with pytest.raises(ModelError, match=said):
        RobotModel.from_urdf(TWO_LINK, **options)


# --- Views ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('given', [[0.0, 0.0, -1.62], np.array([0.0, 0.0, -1.62])])
def test_changed_gravity_is_an_array_of_the_model_alone(given):
    model = RobotModel.from_urdf(TWO_LINK)
    moon = model.changed(gravity=given)
    given[2] = 0.0  # may be changed, and the model does not follow
    weight = [gravity_effort(robot, [[0.3, 0.4]]) for robot in (moon, model)]
    np.testing.assert_allclose(weight[0], 1.62 / 9.81 * weight[1], rtol=1e-14)


def limits_of(lower=(-1.0, -1.0), jerk=(1.0, 1.0)):
    return MotionLimits(lower, *np.ones((3, 2)), jerk, *np.ones((5, 2)))


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ({'gravity': 9.81}, 'gravity'),
        ({'gravity': [0.0, 0.0]}, 'gravity'),
        ({'gravity': [0.0, 0.0, float('nan')]}, 'gravity'),
        ({'gravty': [0.0, 0.0, -1.62]}, 'did you mean gravity'),
        ({'joint_names': ['a', 'a']}, 'joint_names .*cannot be changed'),
        ({'armature': -1.0}, 'armature'),
        ({'friction': {'elbow': 1.0}}, 'friction laws'),
        ({'friction': {'elbw': friction.Viscous(1.0)}}, 'did you mean elbow'),
        ({'limits': None}, 'MotionLimits'),
        ({'limits': MotionLimits(*np.ones((10, 3)))}, r'shape \(3,\), expected \(2,\)'),
        ({'limits': limits_of(lower=[9.0, 9.0])}, 'lower limit 9.0 lies above'),
        ({'limits': limits_of(jerk=[-1.0, 9.0])}, 'must not be negative'),
        ({'X': np.zeros((2, 6))}, r'X\[0\] is zero'),
        ({'X': [[0, 0, 1, 0, 0, 0]]}, 'has 1 joint screws, expected 2'),
        ({'X': [[0, 0, 0, 0, 0, 1]] * 2}, 'is revolute, expected'),
        ({'B': [np.diag([1.0, 1.0, -1.0, 1.0])] * 2}, 'does not hold a rotation'),
        ({'B': np.eye(4)}, r'expected \(2, 4, 4\)'),
        ({'M_body': np.eye(6)}, r'expected \(2, 6, 6\)'),
        (
            {'M_body': [np.diag([1.0, 1, 1, 1, 1, 2])] * 2},
            'not the inertia of a rigid body',
        ),
        ({'M_body': [np.diag([-1.0, 1, 1, 1, 1, 1])] * 2}, 'with_inertial_parameters uses'),
        ({'M_base': np.full((6, 6), np.nan)}, 'must be finite'),
        ({'offset': [0.0]}, 'expected a number for each of 2 bodies'),
        ({'tip_link': 'tol'}, 'no link'),
        ({'parent': [-1, -1]}, 'parent of a robot cannot be changed'),
        ({'warnings': 'none'}, 'expected a tuple'),
    ],
)
def test_changes_that_no_robot_can_have_are_refused(given, said):
    with pytest.raises(ModelError, match=said):
        RobotModel.from_urdf(TWO_LINK).changed(**given)


def test_views_of_a_model_cannot_be_changed_and_survive_copies(tmp_path):
    path = tmp_path / 'arm.urdf'
    path.write_text(TWO_LINK)
    model = RobotModel.from_urdf(path).with_friction({'elbow': friction.Viscous(1.0)})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for one in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        pose = one.links[one.base_link].pose
        for array in (one.gravity, one.armature, one.limits.upper, one.X, one.B, pose):
            before = array.copy()
            with pytest.raises(ValueError, match='read-only'):
                array[...] = 1.0
            np.testing.assert_array_equal(array, before)
        with pytest.raises(AttributeError):
            one.gravity = np.zeros(3)
        for mapping in (one.links, one.friction):
            with pytest.raises(TypeError):
                mapping['tool'] = None
        assert one.friction == {'elbow': friction.Viscous(1.0)}
        assert (one.provenance.digest, one.provenance.changes) == (
            *(digest, ('friction of elbow',)),
        )
        np.testing.assert_array_equal(
            inverse_dynamics(one, np.ones((3, 2))), inverse_dynamics(model, np.ones((3, 2)))
        )
        assert [*one.joint_order(['elbow', 'shoulder'])] == [1, 0]
        with pytest.raises(JointNameError, match='unknown: wrist; missing: shoulder'):
            one.joint_order(['elbow', 'wrist'])
    masses = model.inertial_parameters[::10]
    np.testing.assert_allclose(masses, [1.0, 0.7])
    heavier = model.with_inertial_parameters(2.0 * model.inertial_parameters)
    twice = 2.0 * inverse_dynamics(model.with_friction({'elbow': None}), np.ones((3, 2)))
    found = inverse_dynamics(heavier.with_friction({'elbow': None}), np.ones((3, 2)))
    np.testing.assert_allclose(found, twice, rtol=1e-13)
