"""Rotors as bodies: couplings of URDF+, and `RobotModel.with_rotors`."""

import re

import numpy as np
import pytest
from support import robots
from support.oracles import taylor_rnea
from support.random_trees import random_motion

from hodyn_ros import (
    RobotModel,
    forward_dynamics,
    inverse_dynamics,
    kinetic_energy,
)
from hodyn_ros.errors import ModelError
from hodyn_ros.model import Coupling, Rotor
from hodyn_ros.model.inertia import spatial_inertia

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

GRAVITY = (0.5, -2.0, -9.81)
JOINTS = ('first', 'second', 'third')
RATIOS = (50.0, -80.0, 30.0)
SPIN, ACROSS, MASS = 2e-5, 1.5e-5, 0.3
PLACE = np.array([0.05, -0.02, 0.03])

# The second rotor turns about the axis of its joint, the others about axes of their own.
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
LINKS = ('base', 'one', 'two', 'three')
ARM = (
    '<link name="base"/>',
    robots.link('one'),
    robots.link('two', 0.8),
    robots.link('three', 0.6),
    robots.joint('first', 'base', 'one', axis='0 0 1'),
    robots.joint('second', 'one', 'two', axis='0 1 0'),
    robots.joint('third', 'two', 'three', axis='0.6 0 0.8'),
)


def rotor_of(j):
    """A rotor in the link in front of a joint, as URDF+ describes it."""
    moments = [SPIN if axis else ACROSS for axis in AXES[j]]
    carrier, joint, ratio = LINKS[j], JOINTS[j], RATIOS[j]
    place = ' '.join(map(str, PLACE))
    return (
        f'<link name="rotor{j}"><inertial><mass value="{MASS}"/><inertia ixx="{moments[0]}" '
        f'iyy="{moments[1]}" izz="{moments[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="turn{j}" type="continuous"><origin xyz="{place}"/>'
        f'<parent link="{carrier}"/><child link="rotor{j}"/>'
        f'<axis xyz="{" ".join(map(str, AXES[j]))}"/></joint>'
        f'<coupling name="gear_{joint}"><predecessor link="{LINKS[j + 1]}"/>'
        f'<successor link="rotor{j}"/><ratio value="{ratio}"/></coupling>'
    )


URDF_PLUS = robots.robot(*ARM, *map(rotor_of, range(3)))


@pytest.fixture(scope='module')
def geared():
    return RobotModel.from_urdf(URDF_PLUS, gravity=GRAVITY)


@pytest.fixture(scope='module')
def with_rotors():
    """The same robot, whose links have the rotors as parts that stand still in them."""
    arm = RobotModel.from_urdf(robots.robot(*ARM), gravity=GRAVITY)
    M = arm.M_body.copy()
    for j in (1, 2):
        moments = np.diag([SPIN if axis else ACROSS for axis in AXES[j]])
        M[j - 1] += spatial_inertia(MASS, PLACE, moments)
    arm = arm.changed(M_body=M).with_armature({'second': 0.4})
    return arm.with_rotors(
        [
            Rotor('first', SPIN, RATIOS[0]),
            Rotor('second', SPIN, RATIOS[1], 'one', AXES[1]),
            Rotor('third', SPIN, RATIOS[2], 'two', (3.0, 0.0, 0.0)),
        ]
    )


def expected(motion):
    """Efforts from those of the open tree with bodies that turn by given angles."""
    xml = re.sub(r'<coupling.*?</coupling>', '', URDF_PLUS)
    names = (*JOINTS, 'turn0', 'turn1', 'turn2')
    whole = np.concatenate([motion, motion * RATIOS], axis=-1)
    Q = taylor_rnea(xml, names, GRAVITY, whole)
    return Q[..., :3] + Q[..., 3:] * RATIOS


@pytest.mark.parametrize('which', ['geared', 'with_rotors'])
def test_rotors_agree_with_the_tree_in_which_they_are_bodies(which, request):
    model = request.getfixturevalue(which)
    assert model.joint_names == JOINTS
    motion = random_motion(7, 3, 5, (8,))
    Q = expected(motion)
    found = inverse_dynamics(model, motion)
    error = np.abs(found - Q).max(axis=(0, 2)) / np.abs(Q).max(axis=(0, 2))
    assert (error < [1e-12, 1e-11, 1e-10]).all()
    again = forward_dynamics(model, motion[:, :2], Q)
    np.testing.assert_allclose(again, motion[:, 2:], rtol=1e-8, atol=1e-8)


def test_behind_springs_rotors_are_joints_of_their_own():
    # Torques of springs on the links, and of motors on the rotors, in MuJoCo with the same rotors.
    pytest.importorskip('mujoco')
    from hodyn_ros.actuators import SeriesElastic
    from hodyn_ros.simulation import ElasticPlant, Imperfections

    ratio, stiffness = np.array([50.0, 80.0, 30.0]), np.array([900.0, 700.0, 500.0])
    arm = RobotModel.from_urdf(robots.robot(*ARM), gravity=GRAVITY)
    axes = np.einsum('nij,nj->ni', arm.B[:, :3, :3], arm.X[:, :3])
    ball = ''.join(f' i{a}{a}="{SPIN}"' for a in 'xyz') + ' ixy="0" ixz="0" iyz="0"'
    rotors = [
        f'<link name="rotor{j}"><inertial><mass value="0"/><inertia{ball}/></inertial></link>'
        f'<joint name="turn{j}" type="continuous"><parent link="{LINKS[j]}"/>'
        f'<child link="rotor{j}"/><axis xyz="{" ".join(map(str, axes[j]))}"/></joint>'
        for j in range(3)
    ]
    tree = RobotModel.from_urdf(robots.robot(*ARM, *rotors), gravity=GRAVITY)
    order = tree.joint_order((*JOINTS, 'turn0', 'turn1', 'turn2'))
    M = arm.M_body.copy()
    M[:2, :3, :3] += SPIN * np.eye(3)
    springs = {
        name: SeriesElastic(k, SPIN * n**2)
        for name, k, n in zip(JOINTS, stiffness.tolist(), ratio.tolist())
    }
    gears = Imperfections(gear_ratio=dict(zip(JOINTS, ratio.tolist())))
    plant = ElasticPlant(arm.changed(M_body=M), springs, imperfections=gears)
    rng = np.random.default_rng(1)
    q, qd, thetad, tau = rng.uniform(-1.0, 1.0, (4, 3))
    theta = q + rng.uniform(-0.05, 0.05, 3)
    plant.reset(q, qd, theta, thetad)
    links, motors = plant.acceleration(tau)
    Q = stiffness * (theta - q)
    state = np.array([[*q, *(ratio * theta)], [*qd, *(ratio * thetad)]])[:, order]
    found = forward_dynamics(tree, state, np.array([[*Q, *((tau - Q) / ratio)]])[:, order])
    expected = np.array([*links, *(ratio * motors)])[order]
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)


def test_rotors_in_robots_with_closed_loops():
    model = RobotModel.from_urdf(robots.FIVE_BAR)
    rotors = [
        Rotor('left', 3e-5, 60.0),
        Rotor('left_elbow', 2e-5, -40.0, 'left_crank', (0.0, 0.0, 1.0), False),
    ]
    found = model.with_rotors(rotors)
    assert found.joint_names == model.joint_names
    turn = (
        '<link name="disc"><inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="2e-5" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="disc" type="continuous">'
        '<parent link="left_crank"/><child link="disc"/><axis xyz="0 0 1"/></joint></robot>'
    )
    other = RobotModel.from_urdf(
        robots.FIVE_BAR.replace('</robot>', turn),
        loops=[Coupling('gear', 'disc', 'left_elbow', (0.0, -40.0))],
        independent=['left', 'right'],
    ).with_armature({'left': 3e-5 * 60.0**2})
    motion = random_motion(2, 2, 5, (6,))
    motion[:, 0] = 0.1 * motion[:, 0] / np.pi
    Q = inverse_dynamics(other, motion)
    np.testing.assert_allclose(inverse_dynamics(found, motion), Q, rtol=1e-9, atol=1e-8)
    # Power of the efforts is the rate of the energy, rotors included; gravity does no work.
    rate = kinetic_energy(found, motion)[:, 1]
    power = (Q[:, 0] * motion[:, 1]).sum(axis=-1)
    np.testing.assert_allclose(power, rate, rtol=1e-9, atol=1e-8)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('rotor', 'message'),
    [
        (Rotor('nothing', 1e-5, 10.0), "no moving joint 'nothing'"),
        (Rotor('first', 1e-5, 10.0, 'four'), "no link 'four'"),
        (Rotor('first', -1e-5, 10.0), 'the inertia'),
        (Rotor('first', 1e-5, np.nan), 'the ratio'),
        (Rotor('first', 1e-5, 10.0, axis=(0.0, 0.0, 0.0)), 'expected a direction'),
        (Rotor('first', 1e-5, 10.0, 'one'), 'the axis'),
    ],
)
def test_rotors_that_cannot_be_used_are_refused(rotor, message):
    arm = RobotModel.from_urdf(robots.robot(*ARM))
    with pytest.raises(ModelError, match=message):
        arm.with_rotors([rotor])


def test_a_second_rotor_of_a_joint_is_refused():
    arm = RobotModel.from_urdf(robots.robot(*ARM))
    with pytest.raises(ModelError, match="'first_rotor' already"):
        arm.with_rotors([Rotor('first', 1e-5, 10.0)] * 2)
