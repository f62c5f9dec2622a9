"""Robots read from SDF, against the same robots in URDF and with loops that are given."""

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from support.loop_oracle import LoopOracle, oracle_of
from support.random_trees import random_motion

from hodyn_ros import (
    ModelWarning,
    RobotModel,
    forward_kinematics,
    inverse_dynamics,
    to_urdf,
)
from hodyn_ros.dynamics import loop_efforts
from hodyn_ros.errors import ModelError
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.lie import se3, so3

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

POSE = '.1 .02 -.03 .2 -.1 .3'
INERTIA = '<ixx>.03</ixx><iyy>.04</iyy><izz>.05</izz><ixy>.001</ixy><ixz>-.002</ixz>'


def link(name, mass=1.0, pose=''):
    return (
        f'<link name="{name}">{pose}<inertial><pose>{POSE}</pose><mass>{mass}</mass>'
        f'<inertia>{INERTIA}<iyz>.003</iyz></inertia></inertial></link>'
    )


def joint(name, kind, parent, child, inner=''):
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent>'
        f'<child>{child}</child>{inner}</joint>'
    )


def axis(xyz, more='', tag='axis', attributes=''):
    return f'<{tag}><xyz{attributes}>{xyz}</xyz>{more}</{tag}>'


def sdf(*elements, version='1.10', outside=''):
    inner = ''.join(elements)
    model = f'<model name="robot">{inner}</model>'
    return f'<sdf version="{version}">{model}{outside}</sdf>'


def pose(values, relative_to=''):
    attribute = f' relative_to="{relative_to}"' if relative_to else ''
    return f'<pose{attribute}>{values}</pose>'


def frame_of(values):
    x = np.array(values.split(), dtype=float)
    return se3.pose(so3.from_rpy(x[3:]), x[:3])


LIMITED = (
    '<limit><lower>-1</lower><upper>2</upper><effort>20</effort><velocity>-1</velocity></limit>'
    '<dynamics><damping>.3</damping><friction>.4</friction></dynamics>'
)
TURN, SLIDE, WRIST = '.1 .2 .3 .3 -.2 .5', '.3 0 .1 -.4 .1 0', '.2 .1 0 .1 .2 .3'
TURNS = axis('0 .6 .8', LIMITED)


def arm(turn=TURNS):
    return (
        link('base')
        + link('upper', 2.0, pose(TURN, 'base'))
        + link('fore', 1.0, pose(SLIDE, 'upper'))
        + link('hand', 1.0, pose(WRIST, 'fore'))
        + joint('turn', 'revolute', 'base', 'upper', turn)
        + joint('slide', 'prismatic', 'upper', 'fore', axis('1 0 0'))
        + joint(
            'wrist', 'universal', 'fore', 'hand', axis('2 0 0') + axis('0 0 1', tag='axis2')
        )
    )


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('version', 'attributes', 'more'),
    [
        ('1.4', '', ''),
        ('1.6', '', '<use_parent_model_frame>1</use_parent_model_frame>'),
        ('1.10', ' expressed_in="__model__"', ''),
    ],
)
def test_axes_are_in_the_frame_of_the_joint_unless_they_say_otherwise(
    version, attributes, more
):
    def one(xyz, *said, **options):
        turns = joint('turn', 'revolute', 'a', 'b', axis(xyz, *said))
        text = sdf(link('a'), link('b', pose=pose(TURN)), turns, **options)
        return RobotModel.from_sdf(text).X

    in_model = ' '.join(map(str, frame_of(TURN)[:3, :3] @ [0.0, 0.6, 0.8]))
    np.testing.assert_allclose(
        one(in_model, more, 'axis', attributes, version=version),
        one('0 .6 .8'),
        atol=1e-15,
    )


def test_the_frame_of_a_joint_and_a_ball_in_the_tree():
    at = '.1 .2 -.1 .3 .2 .1'
    text = sdf(
        link('a'),
        link('b', pose=pose(TURN)),
        joint('ball', 'ball', 'a', 'b', pose(at)),
    )
    found = RobotModel.from_sdf(text)
    assert found.joint_names == ('ball_1', 'ball_2', 'ball_3')
    q = np.array([[0.3, -0.4, 0.5]])
    C = forward_kinematics(found, q[None], 'b').pose[0]
    R = so3.exp([0.3, 0, 0]) @ so3.exp([0, -0.4, 0]) @ so3.exp([0, 0, 0.5])
    turned = frame_of(TURN) @ frame_of(at) @ se3.pose(R, np.zeros(3))
    np.testing.assert_allclose(C, turned @ se3.inverse(frame_of(at)), atol=1e-14)


def test_a_tree_against_the_direction_of_its_joints():
    found = RobotModel.from_sdf(sdf(arm()), base_link='hand')
    forwards = RobotModel.from_sdf(sdf(arm()))
    q = random_motion(4, 4, 1)
    back = [forwards.joint_names.index(name) for name in found.joint_names]
    there = forward_kinematics(forwards, q, 'hand').pose
    here = forward_kinematics(found, q[:, back], 'base').pose
    np.testing.assert_allclose(here @ there, np.eye(4), atol=1e-14)


def test_the_base_is_the_world_where_something_is_tied_to_it():
    rail = joint('rail', 'prismatic', 'world', 'base', axis('0 1 0'))
    text = sdf('<pose>0 0 1 .3 0 0</pose>', arm(), rail)
    tied = RobotModel.from_sdf(text)
    assert (tied.base_link, tied.joint_names[0]) == ('world', 'rail')
    free = RobotModel.from_sdf(text, base_link='base')
    motion = random_motion(7, 4, 4)
    whole = np.concatenate([np.zeros((4, 1)), motion], axis=1)
    np.testing.assert_allclose(
        inverse_dynamics(tied, whole)[:, 1:], inverse_dynamics(free, motion), atol=1e-11
    )


REFUSED = {
    'two models': (sdf(arm(), outside='<model name="b"/>'), 'has 2 models'),
    'include': (sdf(arm(), '<include/>'), '1 elements <include>'),
    'screw': (
        sdf(arm(), joint('nut', 'screw', 'base', 'hand')),
        "'nut' is of type 'screw', which is not supported",
    ),
    'universal closes': (
        sdf(arm(), *(joint(name, 'universal', 'base', 'hand') for name in 'uv')),
        "'[uv]|wrist' closes a loop and is of type 'universal'",
    ),
    'frames in a circle': (
        sdf(
            arm(),
            '<frame name="one" attached_to="two"/><frame name="two" attached_to="one"/>',
            joint('far', 'revolute', 'hand', 'base', pose('0 0 0 0 0 0', 'one')),
        ),
        "the pose of '(one|two)' is relative to itself",
    ),
    'quaternion': (
        sdf(
            arm().replace('<pose relative_to="base">', '<pose rotation_format="quat_xyzw">')
        ),
        '<pose> has rotation_format, expected relative_to only',
    ),
    'automatic': (
        sdf(arm().replace('<inertial>', '<inertial auto="true">')),
        'the inertia of its shapes',
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize('case', REFUSED)
def test_what_cannot_be_read_is_refused(case):
    text, reason = REFUSED[case]
    with pytest.raises(ModelError, match=reason):
        RobotModel.from_sdf(text)


def test_what_is_not_read_is_said(tmp_path):
    spring = axis('0 .6 .8', '<dynamics><spring_stiffness>3</spring_stiffness></dynamics>')
    path = tmp_path / 'arm.sdf'
    path.write_text(
        sdf(arm(turn=spring), '<link name="tip"/>', joint('t', 'fixed', 'hand', 'tip'))
    )
    with pytest.warns(ModelWarning) as remarks:
        found = RobotModel.from_sdf(path)
    assert {str(remark.message) for remark in remarks} == {
        "Link 'tip' has no <inertial>: it has 1 kg and 1 kg m^2, as SDF has it.",
        "Joint 'turn': its spring is not read.",
    }
    assert found.provenance.file == str(path)
    path.write_text(sdf())
    with pytest.raises(ModelError, match=f'^File {str(path)!r}: '):
        RobotModel.from_sdf(path)


def test_an_impossible_inertia_is_an_error_where_it_moves_alone():
    bad = '<inertia><ixx>-1</ixx><iyy>1</iyy><izz>1</izz>'
    base, hand = (
        f'<link name="{name}"><inertial><mass>1</mass>{bad}</inertia></inertial></link>'
        for name in ('base', 'hand')
    )
    turn = joint('turn', 'revolute', 'base', 'hand', axis('0 0 1'))
    found = RobotModel.from_sdf(sdf(base, link('hand'), turn))
    assert np.isnan(found.M_base).all()
    assert 'not positive semi-definite' in found.warnings[0]
    with pytest.raises(ModelError, match="Link 'hand' has an inertia tensor that is not"):
        RobotModel.from_sdf(sdf(link('base'), hand, turn))


# --- Platforms on rods between balls -------------------------------------------------


def motion_of(model):
    motion = random_motion(3, model.n_joints, 5)
    closure = model.closure
    motion[0] = closure.start[closure.independent] + 0.1 * motion[0] / np.pi
    return motion


def check_efforts(found, expected):
    error = np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)
    assert (error < [1e-12, 1e-10, 1e-8]).all()


def between(points):
    """Pose of a frame at a point whose axis x points to another one."""
    x, y, z = (points[1] - points[0]) / np.linalg.norm(points[1] - points[0])
    values = *points[0], 0.0, np.arctan2(-z, np.hypot(x, y)), np.arctan2(y, x)
    return pose(' '.join(f'{value:.17g}' for value in values))


def slender(name, mass, length, place):
    """A link along its axis x without inertia about it."""
    across = mass * length**2 / 12.0
    return (
        f'<link name="{name}">{place}<inertial><pose>{length / 2} 0 0 0 0 0</pose><mass>{mass}'
        f'</mass><inertia><ixx>0</ixx><iyy>{across}</iyy><izz>{across}</izz></inertia></inertial>'
        '</link>'
    )


def platform():
    """Six cranks between the world and a plate, with rods that end in balls."""
    elements = [link('plate', 4.0, pose('.01 -.02 .4 .05 -.03 .1'))]
    for k in range(6):
        turn = np.pi / 3.0 * (k + (-1) ** k * 0.3)
        away = np.array([np.cos(turn), np.sin(turn), 0.0])
        foot, knee = 0.3 * away, 0.4 * away + [0.0, 0.0, 0.05]
        turn = np.pi / 3.0 * (k - (-1) ** k * 0.25)
        hip = np.array([0.15 * np.cos(turn), 0.15 * np.sin(turn), 0.42])
        length = np.linalg.norm(hip - knee)
        across = axis(
            f'{-np.sin(turn):.17g} {np.cos(turn):.17g} 0',
            attributes=' expressed_in="__model__"',
        )
        elements += [
            slender(f'crank{k}', 0.8, 0.11, between((foot, knee))),
            slender(f'rod{k}', 0.5, length, between((knee, hip))),
            joint(f'motor{k}', 'revolute', 'world', f'crank{k}', across),
            joint(f'knee{k}', 'ball', f'crank{k}', f'rod{k}'),
            joint(
                f'hip{k}',
                'ball',
                f'rod{k}',
                'plate',
                pose(f'{length:.17g} 0 0 0 0 0', f'rod{k}'),
            ),
        ]
    return sdf(*elements)


def test_rods_that_turn_between_balls_are_held():
    motors = [f'motor{k}' for k in range(6)]
    model = RobotModel.from_sdf(platform(), independent=motors)
    closure = model.closure
    held = closure.held
    assert (model.n_joints, len(held)) == (6, 6)
    assert 'may turn about the lines between their balls' in closure.remark
    assert all(f'rod{k}' in closure.remark for k in range(6))
    motion = motion_of(model)
    found = loop_efforts(model, motion)
    equations = oracle_of(model, to_urdf(closure.tree)).equations
    names, tree = closure.tree.joint_names, closure.tree
    independent = sorted([*motors, *held], key=names.index)
    oracle = LoopOracle(to_urdf(tree), names, independent, equations, tree.gravity)
    with_held = np.zeros((5, 12))
    with_held[0] = closure.start[[names.index(name) for name in independent]]
    columns = [independent.index(name) for name in model.joint_names]
    with_held[:, columns] = motion
    efforts = oracle(with_held, found.motion[0])[1][:, columns]
    check_efforts(found.effort, efforts)
    again = RobotModel.from_urdf(to_urdf(model), gravity=model.gravity)
    assert again.closure.held == held
    np.testing.assert_allclose(
        inverse_dynamics(again, motion), found.effort, atol=1e-8 * np.abs(efforts).max()
    )
    # Without inertia about their lines nothing is needed to hold them.
    for coupling in closure.couplings:
        np.testing.assert_allclose(
            found.wrenches[coupling.name], 0.0, atol=1e-9 * np.abs(efforts).max()
        )


# --- Cassie, a walking robot of example-robot-data ----------------------------------------------

SIDES = 'left-', 'right-'
MOTORS = [
    'roll-op',
    'yaw-op',
    'pitch-op',
    'knee-op',
    'knee-shin-joint',
    'tarsus-crank-joint',
]


@pytest.mark.needs()  # example-robot-data, which is no module
def test_efforts_of_cassie_agree_with_power_series():
    """Its pelvis at rest; with the spring of the shin six joints of a leg are independent."""
    try:
        files = metadata.distribution('example-robot-data').files
    except metadata.PackageNotFoundError:
        pytest.skip('example-robot-data is not installed')
    (file,) = [str(file.locate()) for file in files if file.name == 'cassie_v2.sdf']
    bent = {'foot-op': -1.5, 'tarsus-crank-joint': -1.5, 'crank-rod-joint': 1.5}
    model = RobotModel.from_sdf(
        Path(file),
        independent=[side + name for side in SIDES for name in MOTORS],
        start={side + name: value for side in SIDES for name, value in bent.items()},
    )
    motion = motion_of(model)
    whole = complete_motion(model, motion)
    oracle = oracle_of(model, to_urdf(model.closure.tree))
    check_efforts(inverse_dynamics(model, motion), oracle(motion, whole[0])[1])
