"""Closed loops in robot descriptions: all dialects say the same, the rest is refused."""

from types import SimpleNamespace

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

DRAKE = 'xmlns:drake="http://drake.mit.edu"'
TYPES = {'hinge': 'revolute', 'slider': 'prismatic', 'ball': 'spherical', 'weld': 'fixed'}
SDF_TYPES = {**TYPES, 'ball': 'ball'}


def numbers(values):
    return ' '.join(map(repr, np.asarray(values, dtype=float).tolist()))


def rpy_of(pose):
    return Rotation.from_matrix(pose[:3, :3]).as_euler('xyz')


def placed(pose):
    return f'xyz="{numbers(pose[:3, 3])}" rpy="{numbers(rpy_of(pose))}"'


def joint(name, parent, child, pose, axis=None, attributes=''):
    kind = 'fixed' if axis is None else 'continuous'
    axis = '' if axis is None else f'<axis xyz="{numbers(axis)}"/>'
    return (
        f'<joint name="{name}" type="{kind}" {attributes}><origin {placed(pose)}/>'
        f'<parent link="{parent}"/><child link="{child}"/>{axis}</joint>'
    )


def turned(turn):
    """Pose without translation."""
    return se3.pose(Rotation.from_rotvec(turn).as_matrix(), np.zeros(3))


def two_arms(planar, kind):
    """Elements of two arms that meet at zero position, and the loop that holds them together."""
    rng = np.random.default_rng(5)
    elements = ['<link name="base"/>']
    for arm, turn in (('a', 2.2), ('b', 0.9)):
        parent = 'base'
        for number in range(2 if planar else 4):
            pose, axis = se3.exp(rng.uniform(-0.8, 0.8, 6)), rng.normal(size=3)
            axis /= np.linalg.norm(axis)
            if planar:
                yaw = turn if number == 0 else -1.2 * (-1.0) ** (arm == 'b')
                xyz = [0.3 * (arm == 'b'), 0.0, 0.0] if number == 0 else [0.4, 0.0, 0.0]
                pose, axis = turned([0.0, 0.0, yaw]), [0.0, 0.0, 1.0]
                pose[:3, 3] = xyz
            elements += [
                link(f'{arm}{number}'),
                joint(f'q{arm}{number}', parent, f'{arm}{number}', pose, axis),
            ]
            parent = f'{arm}{number}'
    ends = [f'a{number}', f'b{number}']
    tree = RobotModel.from_urdf(robot(*elements))
    zero = np.zeros((1, tree.n_joints))
    C_a, C_b = (forward_kinematics(tree, zero, end).pose for end in ends)
    pose_a = se3.pose(np.eye(3), [0.35, 0.0, 0.0]) @ turned([0.3, -0.2, 0.5])
    pose_b = se3.inverse(C_b) @ C_a @ pose_a
    axis = pose_a[:3, :3].T @ [0.0, 0.0, 1.0] if planar else np.array([0.48, 0.6, 0.64])
    for end, pose in zip(ends, (pose_a, pose_b)):
        elements += [
            f'<link name="hook_{end[0]}"/>',
            joint(f'fixed_{end}', end, f'hook_{end[0]}', pose),
        ]
    loop = Loop('closing', kind, *ends, pose_a, pose_b, axis)
    return elements, loop, SimpleNamespace(C_a=C_a, C_b=C_b)


def urdf_plus(loop, _):
    return (
        f'<loop name="closing" type="{TYPES[loop.kind]}"><predecessor link="{loop.link_a}">'
        f'<origin {placed(loop.pose_a)}/></predecessor><successor link="{loop.link_b}"><origin '
        f'{placed(loop.pose_b)}/></successor><axis xyz="{numbers(3 * loop.axis)}"/></loop>'
    )


def constraint(loop, _):
    return (
        f'<constraint name="closing" type="{TYPES[loop.kind].replace("fixed", "link")}">'
        f'<parent link="{loop.link_a}"/><parent_origin {placed(loop.pose_a)}/>'
        f'<parent_axis xyz="{numbers(loop.axis)}"/><child link="{loop.link_b}"/>'
        f'<child_origin {placed(loop.pose_b)}/><child_axis xyz="{numbers(loop.axis)}"/>'
        '</constraint>'
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
    placed_joint = at.C_b @ loop.pose_b
    return gazebo(
        loop,
        at,
        placed_joint,
        'relative_to="__model__"',
        placed_joint[:3, :3] @ loop.axis,
        '<use_parent_model_frame>true</use_parent_model_frame>',
    )


def isaac(loop, _):
    return (
        f'<loop_joint name="closing" type="{TYPES[loop.kind]}"><link1 link="{loop.link_a}" '
        f'{placed(loop.pose_a)}/><link2 link="{loop.link_b}" {placed(loop.pose_b)}/>'
        f'<axis xyz="{numbers(loop.axis)}"/></loop_joint>'
    )


def drake_ball(loop, _):
    return (
        f'<drake:ball_constraint {DRAKE}><drake:ball_constraint_body_A name="{loop.link_a}"/>'
        f'<drake:ball_constraint_p_AP value="{numbers(loop.pose_a[:3, 3])}"/>'
        f'<drake:ball_constraint_body_B name="{loop.link_b}"/>'
        f'<drake:ball_constraint_p_BQ value="{numbers(loop.pose_b[:3, 3])}"/>'
        '</drake:ball_constraint>'
    )


def drake_weld(_, __):
    return (
        f'<drake:weld_constraint {DRAKE}><parent>hook_a</parent><child>hook_b</child>'
        '</drake:weld_constraint>'
    )


KINDS = {
    'hinge': [],
    'slider': [],
    'ball': [drake_ball],
    'weld': [drake_weld],
}
COMMON = [urdf_plus, constraint, gazebo, gazebo_in_model_frame, isaac]
CASES = [(False, kind, dialect) for kind in KINDS for dialect in (*COMMON, *KINDS[kind])]
CASES += [(True, 'hinge', dialect) for dialect in COMMON]


def check_same(found, expected, tolerance=1e-12):
    """Models have the same joints and efforts of orders 0 to 2."""
    assert found.joint_names == expected.joint_names
    motion = random_motion(3, expected.n_joints, 5)
    motion[0] = expected.closure.start[expected.closure.independent] + 0.02 * motion[0]
    efforts = inverse_dynamics(expected, motion)
    assert efforts.shape == (3, expected.n_joints)
    difference = np.abs(inverse_dynamics(found, motion) - efforts).max(axis=-1)
    assert (difference < tolerance * np.abs(efforts).max(axis=-1)).all()


@pytest.mark.parametrize(('planar', 'kind', 'dialect'), CASES)
def test_all_dialects_close_the_same_loop(planar, kind, dialect):
    elements, loop, at = two_arms(planar, kind)
    tree = RobotModel.from_urdf(robot(*elements))
    found = RobotModel.from_urdf(robot(*elements, dialect(loop, at)))
    check_same(found, tree.with_loops([loop]))


@pytest.mark.parametrize(
    ('kind', 'type_', 'motors', 'names'),
    [
        (
            'ball',
            '3d',
            "['qb3', 'qb1', 'qa3', 'qa1', 'qa0']",
            ['qa0', 'qa1', 'qa3', 'qb1', 'qb3'],
        ),
        ('weld', '6D', '"0"', ['qa0', 'qb0']),
    ],
)
def test_file_beside_a_description(tmp_path, kind, type_, motors, names):
    elements, loop, _ = two_arms(False, kind)
    pair = f'hook_a, fixed_{loop.link_b}'  # a link, and the joint before a link
    text = f'closed_loop: [[{pair}]]\ntype: [{type_}]\nname_mot: {motors}\n'
    path = tmp_path / 'robot.yaml'
    path.write_text(text)
    expected = RobotModel.from_urdf(robot(*elements)).with_loops([loop], names)
    assert [*expected.joint_names] == names
    for given in (text, path, str(path)):
        # Frames come from differences of poses; their rounding grows by the loop's condition.
        check_same(RobotModel.from_urdf(robot(*elements), loops=given), expected, 1e-11)
    for which in ('true', 'false'):
        described = robot(*(stated(element, names, which) for element in elements))
        check_same(RobotModel.from_urdf(described, loops=[loop]), expected)


def stated(element, names, which):
    """The element of a joint, with a word on whether it is independent if that is `which`."""
    is_one = any(f'<joint name="{name}"' in element for name in names)
    if 'continuous' not in element or str(is_one).lower() != which:
        return element
    return element.replace('<joint ', f'<joint independent="{which}" ')


GEARED = (
    '<coupling name="belt" type="rolling"><predecessor link="a0"/><successor link="b0"/>'
    '<ratio value="-1.5"/></coupling>'
)


def test_couplings_and_loops_go_together_and_are_written():
    elements, loop, at = two_arms(False, 'ball')
    tree = RobotModel.from_urdf(robot(*elements))
    expected = tree.with_loops([loop, Coupling('belt', 'qb0', 'qa0', (0.0, -1.5))])
    check_same(
        RobotModel.from_urdf(robot(*elements, urdf_plus(loop, at), GEARED)), expected
    )
    check_same(RobotModel.from_urdf(to_urdf(expected)), expected)


@pytest.mark.parametrize('kind', KINDS)
def test_what_is_written_is_read_again(kind):
    elements, loop, _ = two_arms(False, kind)
    tree = RobotModel.from_urdf(robot(*elements))
    start = dict(zip(tree.joint_names, [0.4, -0.7, 0.3, 0.5, -0.2, 0.6, -0.4, 0.1]))
    model = tree.with_loops([loop], start=start)
    names = model.closure.tree.joint_names[::-1][: model.n_joints]
    model = tree.with_loops([loop], names, start)
    check_same(RobotModel.from_urdf(to_urdf(model)), model, 1e-9)


def test_helical_joints_in_loops_are_written():
    Y = [
        [0, 0, 1, 0, 0, 0.1],
        [0, 1, 0, 0.2, 0, 0],
        [1, 0, 0, 0, 0.1, 0],
        [0, 0, 1, 0, -0.5, 0],
    ]
    A = [se3.pose(np.eye(3), [0.1 * k, 0.2, 0.1]) for k in range(4)]
    inertias = [(1.0 + k, [0.1, 0, 0], 0.02 * np.eye(3)) for k in range(4)]
    tree = RobotModel.from_screws(Y, A, parents=[-1, 0, -1, 2], inertias=inertias)
    gears = [Coupling('gear', tree.joint_names[2], tree.joint_names[0], (0.0, 0.3))]
    model = tree.with_loops(gears)
    check_same(RobotModel.from_urdf(to_urdf(model)), model)
    for coefficients, joints in (
        ((0.0, 1.0, 0.2), (2, 0)),
        ((0.1, 1.0), (2, 0)),
        ((0, 1), (1, 0)),
    ):
        pair = [tree.joint_names[j] for j in joints]
        other = tree.with_loops([Coupling('cam', *pair, coefficients)])
        with pytest.raises(ModelError, match="Coupling 'cam' .* cannot be written as URDF"):
            to_urdf(other)


def inside(element):
    return TWO_LINK.replace('</robot>', f'{element}</robot>')


def loop_element(tag='loop', type_='revolute', more=''):
    return f'<{tag} name="l" type="{type_}">{more}</{tag}>'


ENDS = '<predecessor link="upper"/><successor link="tool"/>'
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
    'degrees': (
        f'<gazebo>{loop_element("joint", "ball", NAMES + "<pose degrees=_1_/>")}</gazebo>',
        '<pose> has degrees',
    ),
    'frame': (
        f'<gazebo>{loop_element("joint", "ball", NAMES + "<pose relative_to=_x_/>")}</gazebo>',
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
        RobotModel.from_urdf(
            inside(
                element.replace('_1_', '"1"').replace('_x_', '"x"').replace('_a_', '"a"')
            )
        )


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('loops', 'reason'),
    [
        ('type: [3d]  # closed_loop', 'expected closed_loop: pairs of links'),
        ('closed_loop: [[a, b]]\ntype: []', 'expected two links and a type for each'),
        ('closed_loop: [1, 2]', 'expected two links and a type for each'),
        ('closed_loop: [[a, b]]\ntype: [5d]', "type '5d' is not supported"),
        ('closed_loop: [[a, b]]\njoint_name: [q]', 'a spherical one as three that turn'),
        ('closed_loop: [[', 'cannot be read'),
        ('no_such_file.yaml', 'cannot be read: .*no_such_file'),
        (3, 'expected some of Loop and Coupling, or a file'),
        ([3], 'expected some of Loop and Coupling'),
    ],
)
def test_given_loops_are_checked(loops, reason):
    with pytest.raises(ModelError, match=reason):
        RobotModel.from_urdf(TWO_LINK, loops=loops)


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_loops_outside_of_a_chain_are_refused():
    elements, loop, at = two_arms(True, 'hinge')
    for closing, what in (
        (urdf_plus(loop, at), 'needs b1, which'),
        (GEARED, 'needs qb0, which'),
    ):
        text = robot(*elements, closing)
        with pytest.raises(ModelError, match=what):
            RobotModel.from_urdf(text, tip_link='hook_a')
        assert RobotModel.from_urdf(text, tip_link='hook_a', loops=()).n_joints == 2
    held = (
        '<gazebo><joint name="h" type="fixed"><parent>world</parent><child>{}</child></joint>'
        '</gazebo>'
    )
    assert RobotModel.from_urdf(robot(*elements, held.format('base'))).closure is None
    model = RobotModel.from_urdf(robot(*elements, held.format('a0')))
    assert model.closure.loops[0].link_a == 'base'
    assert model.joint_names == ('qa1', 'qb0', 'qb1')
