"""Closed loops in robot descriptions: what is read says the same, the rest is refused."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.random_trees import random_motion
from support.robots import TWO_LINK, link, robot

from hodyn_ros import (
    RobotModel,
    forward_kinematics,
    inverse_dynamics,
    to_urdf,
)
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model import Coupling, Loop

pytestmark = pytest.mark.filterwarnings('ignore:.*rows of the loops:hodyn_ros.ModelWarning')

TYPES = {'hinge': 'revolute', 'slider': 'prismatic', 'ball': 'spherical', 'weld': 'fixed'}
SDF_TYPES = {**TYPES, 'ball': 'ball'}


def numbers(values):
    return ' '.join(map(repr, np.asarray(values, dtype=float).tolist()))


def rpy_of(pose):
    return Rotation.from_matrix(pose[:3, :3]).as_euler('xyz')


def placed(pose):
    return f'xyz="{numbers(pose[:3, 3])}" rpy="{numbers(rpy_of(pose))}"'


def joint(name, parent, child, pose, axis):
    return (
        f'<joint name="{name}" type="continuous"><origin {placed(pose)}/>'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{numbers(axis)}"/></joint>'
    )


def two_arms(kind):
    """Elements of two arms that meet at zero position, and the loop that holds them together."""
    rng = np.random.default_rng(5)
    elements = ['<link name="base"/>']
    for arm in 'ab':
        parent = 'base'
        for number in range(4):
            pose, axis = se3.exp(rng.uniform(-0.8, 0.8, 6)), rng.normal(size=3)
            axis /= np.linalg.norm(axis)
            elements += [
                link(f'{arm}{number}'),
                joint(f'q{arm}{number}', parent, f'{arm}{number}', pose, axis),
            ]
            parent = f'{arm}{number}'
    tree = RobotModel.from_urdf(robot(*elements))
    C_a, C_b = (
        forward_kinematics(tree, np.zeros((1, 8)), end).pose for end in ('a3', 'b3')
    )
    pose_a = se3.exp([0.3, -0.2, 0.5, 0.35, 0.0, 0.0])
    pose_b = se3.inverse(C_b) @ C_a @ pose_a
    loop = Loop('closing', kind, 'a3', 'b3', pose_a, pose_b, (0.48, 0.6, 0.64))
    return elements, loop, C_b


def urdf_plus(loop, _):
    return (
        f'<loop name="closing" type="{TYPES[loop.kind]}"><predecessor link="{loop.link_a}">'
        f'<origin {placed(loop.pose_a)}/></predecessor><successor link="{loop.link_b}"><origin '
        f'{placed(loop.pose_b)}/></successor><axis xyz="{numbers(3 * loop.axis)}"/></loop>'
    )


def gazebo(loop, _, pose=None, relative_to='', axis=None, said=''):
    pose = loop.pose_b if pose is None else pose
    axis = loop.axis if axis is None else axis
    return (
        f'<gazebo><joint name="closing" type="{SDF_TYPES[loop.kind]}"><parent>{loop.link_a}'
        f'</parent><child>{loop.link_b}</child><pose {relative_to}>{numbers(pose[:3, 3])} '
        f'{numbers(rpy_of(pose))}</pose><axis><xyz>{numbers(axis)}</xyz>{said}</axis></joint>'
        '</gazebo>'
    )


def gazebo_in_model_frame(loop, at):
    placed_joint = at @ loop.pose_b
    return gazebo(
        loop,
        at,
        placed_joint,
        'relative_to="__model__"',
        placed_joint[:3, :3] @ loop.axis,
        '<use_parent_model_frame>true</use_parent_model_frame>',
    )


def check_same(found, expected, tolerance=1e-12):
    """Models have the same joints and efforts of orders 0 to 2."""
    assert found.joint_names == expected.joint_names
    motion = random_motion(3, expected.n_joints, 5)
    motion[0] = expected.closure.start[expected.closure.independent] + 0.02 * motion[0]
    efforts = inverse_dynamics(expected, motion)
    assert efforts.shape == (3, expected.n_joints)
    difference = np.abs(inverse_dynamics(found, motion) - efforts).max(axis=-1)
    assert (difference < tolerance * np.abs(efforts).max(axis=-1)).all()


@pytest.mark.parametrize('dialect', [gazebo_in_model_frame, urdf_plus, gazebo])
@pytest.mark.parametrize('kind', ['hinge', 'slider', 'ball', 'weld'])
def test_all_dialects_close_the_same_loop(kind, dialect):
    elements, loop, at = two_arms(kind)
    tree = RobotModel.from_urdf(robot(*elements))
    found = RobotModel.from_urdf(robot(*elements, dialect(loop, at)))
    check_same(found, tree.with_loops([loop]))


GEARED = (
    '<coupling name="belt" type="rolling"><predecessor link="a0"/><successor link="b0"/>'
    '<ratio value="-1.5"/></coupling>'
)


def test_couplings_and_loops_go_together_and_are_written():
    elements, loop, at = two_arms('ball')
    tree = RobotModel.from_urdf(robot(*elements))
    expected = tree.with_loops([loop, Coupling('belt', 'qb0', 'qa0', (0.0, -1.5))])
    check_same(
        RobotModel.from_urdf(robot(*elements, urdf_plus(loop, at), GEARED)), expected
    )
    check_same(RobotModel.from_urdf(to_urdf(expected)), expected)
    curved = tree.with_loops([Coupling('cam', 'qb0', 'qa0', (0.0, 1.0, 0.2))])
    with pytest.raises(ModelError, match="Coupling 'cam' .* cannot be written as URDF"):
        to_urdf(curved)


@pytest.mark.parametrize('kind', ['slider', 'weld', 'ball'])
def test_what_is_written_is_read_again(kind):
    elements, loop, _ = two_arms(kind)
    tree = RobotModel.from_urdf(robot(*elements))
    start = dict(zip(tree.joint_names, [0.4, -0.7, 0.3, 0.5, -0.2, 0.6, -0.4, 0.1]))
    n = tree.with_loops([loop], start=start).n_joints
    model = tree.with_loops([loop], tree.joint_names[::-1][:n], start)
    check_same(RobotModel.from_urdf(to_urdf(model)), model, 1e-9)


def loop_element(tag='loop', type_='revolute', more=''):
    return f'<{tag} name="l" type="{type_}">{more}</{tag}>'


ENDS = '<predecessor link="upper"/><successor link="tool"/>'
DRAKE = 'xmlns:drake="http://drake.mit.edu"'
NAMES = '<parent>upper</parent><child>tool</child>'
REFUSED = {
    'no ends': (loop_element(), 'not a valid URDF: loop .l.: <loop> has no <predecessor>'),
    'planar': (
        loop_element('loop', 'planar', ENDS),
        "<loop> 'l': a loop of type 'planar' is not",
    ),
    'gearbox': (
        f'<gazebo>{loop_element("joint", "gearbox", NAMES)}</gazebo>',
        "'gearbox' is not",
    ),
    'proposal for URDF': (
        f'<constraint name="l" type="revolute">{NAMES}</constraint>',
        '<constraint> is not read: write it as <loop> of URDF.*parent_axis. is its <axis>',
    ),
    'Isaac Sim': (
        loop_element('loop_joint', 'spherical'),
        '<loop_joint> is not read: write it as <loop> .* link1 is its <predecessor>',
    ),
    'point of Drake': (
        f'<drake:ball_constraint {DRAKE}/>',
        '<ball_constraint> is not read: write it as <loop> .* its type is spherical',
    ),
    'weld of Drake': (
        f'<drake:weld_constraint {DRAKE}/>',
        '<weld_constraint> is not read: write it as <loop> .* its type is fixed',
    ),
    'another one of Drake': (
        f'<drake:tendon_constraint {DRAKE}/>',
        '<tendon_constraint> is not read: .* or <joint> in <gazebo>.*loops=',
    ),
    'frame': (
        gazebo(Loop('l', 'ball', 'upper', 'tool'), None, np.eye(4), 'relative_to="x"'),
        "frame 'x' is no link",
    ),
    'chain of joints': (
        '<coupling name="c"><predecessor link="upper"/><successor link="fore"/></coupling>',
        "no joint moves 'upper' from where its links part, expected one at least",
    ),
    'other link': (
        loop_element('loop', 'fixed', ENDS.replace('tool', 'toll')),
        'needs toll, which',
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize('case', REFUSED)
def test_what_cannot_be_closed_is_refused(case):
    element, reason = REFUSED[case]
    with pytest.raises(ModelError, match=reason):
        RobotModel.from_urdf(TWO_LINK.replace('</robot>', f'{element}</robot>'))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('loops', 'reason'),
    [
        ('type: [3d]  # closed_loop', 'expected closed_loop: pairs of links'),
        ('closed_loop: [[a, b]]\ntype: []', 'expected two links and a type for each'),
        ('closed_loop: [[a, b]]\ntype: [5d]', "type '5d' is not supported"),
        ('closed_loop: [[a, b]]\njoint_name: [q]', 'a spherical one as three that turn'),
        ('no_such_file.yaml', "'no_such_file.yaml', expected a YAML file that exists"),
        (3, 'expected some of Loop and Coupling, or a file'),
    ],
)
def test_given_loops_are_checked(loops, reason):
    with pytest.raises(ModelError, match=reason):
        RobotModel.from_urdf(TWO_LINK, loops=loops)


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_loops_outside_of_a_chain_are_refused():
    elements, loop, at = two_arms('hinge')
    for closing, what in (
        (urdf_plus(loop, at), 'needs b3, which'),
        (GEARED, 'needs qb0, which'),
    ):
        text = robot(*elements, closing)
        with pytest.raises(ModelError, match=what):
            RobotModel.from_urdf(text, tip_link='a3')
        assert RobotModel.from_urdf(text, tip_link='a3', loops=()).n_joints == 4
    held = (
        '<gazebo><joint name="h" type="fixed"><parent>world</parent><child>{}</child></joint>'
        '</gazebo>'
    )
    assert RobotModel.from_urdf(robot(*elements, held.format('base'))).closure is None
    model = RobotModel.from_urdf(robot(*elements, held.format('a3')))
    assert model.closure.loops[0].link_a == 'base'
