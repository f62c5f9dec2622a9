"""Models from Denavit-Hartenberg tables of both conventions."""

from pathlib import Path

import numpy as np
import pytest
from support.dynamics_cases import assert_same_efforts
from support.oracles import taylor_rnea
from support.random_trees import (
    random_gravity,
    random_inertias,
    random_motion,
    random_poses,
)
from support.records import changed

from hodyn_ros import RobotModel, forward_kinematics, inverse_dynamics
from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import transform_inertia
from hodyn_ros.model.inertia import spatial_inertia
from hodyn_ros.model.screws import DHRow
from hodyn_ros.model.urdf import to_urdf

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

PANDA_URDF = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'

# Source: frankaemika/docs, control_parameters.rst; modified convention; last row: the flange.
QUARTER = np.pi / 2
PANDA = [
    DHRow(a=0.0, alpha=0.0, d=0.333),
    DHRow(a=0.0, alpha=-QUARTER, d=0.0),
    DHRow(a=0.0, alpha=QUARTER, d=0.316),
    DHRow(a=0.0825, alpha=QUARTER, d=0.0),
    DHRow(a=-0.0825, alpha=-QUARTER, d=0.384),
    DHRow(a=0.0, alpha=QUARTER, d=0.0),
    DHRow(a=0.088, alpha=QUARTER, d=0.0),
    DHRow(d=0.107),
]


def random_table(rng, n):
    return [
        DHRow(*row) for row in rng.uniform(-1.0, 1.0, (n, 4)) * [0.5, np.pi, 0.5, np.pi]
    ]


def textbook_pose(row, convention):
    """T as printed in Spong et al., eq. (3.10), and in Craig, eq. (3.6)."""
    a, alpha, d, theta = row
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    if convention == 'standard':
        return np.array(
            [
                [ct, -st * ca, st * sa, a * ct],
                [st, ct * ca, -ct * sa, a * st],
                [0, sa, ca, d],
                [0, 0, 0, 1],
            ]
        )
    return np.array(
        [
            [ct, -st, 0, a],
            [st * ca, ct * ca, -sa, -sa * d],
            [st * sa, ct * sa, ca, ca * d],
            [0, 0, 0, 1],
        ]
    )


@pytest.mark.parametrize('convention', ['standard', 'modified'])
@pytest.mark.parametrize('seed', range(5))
def test_poses_are_products_of_the_textbook_transforms(seed, convention):
    rng = np.random.default_rng(seed)
    table = random_table(rng, 6)
    types = list(rng.choice(['revolute', 'prismatic', 'fixed'], 5)) + ['revolute']
    model = RobotModel.from_dh(table, convention, joint_types=types)
    q = rng.uniform(-3.0, 3.0, (1, model.n_joints))
    moving = iter(q[0])
    pose = np.eye(4)
    for i, (row, kind) in enumerate(zip(table, types)):
        if kind == 'revolute':
            row = changed(row, theta=row.theta + next(moving))
        elif kind == 'prismatic':
            row = changed(row, d=row.d + next(moving))
        pose = pose @ textbook_pose(row, convention)
        actual = forward_kinematics(model, q, f'link{i + 1}').pose
        np.testing.assert_allclose(actual, pose, atol=1e-13)


@pytest.mark.parametrize('convention', ['standard', 'modified'])
@pytest.mark.parametrize('seed', range(5))
def test_efforts_match_power_series_on_the_urdf(seed, convention):
    rng = np.random.default_rng(seed)
    model = RobotModel.from_dh(
        random_table(rng, 6),
        convention,
        joint_types=rng.choice(['revolute', 'prismatic'], 6),
        inertias=random_inertias(rng, 6),
        gravity=random_gravity(seed),
    )
    motion = random_motion(seed, 6, 5)
    expected = taylor_rnea(to_urdf(model), model.joint_names, model.gravity, motion)
    assert_same_efforts(inverse_dynamics(model, motion), expected, 1e-12)


def test_standard_and_modified_tables_of_one_robot_agree():
    # A standard row (a, alpha, d, theta) is the modified one with a and alpha of the row before,
    # and the standard frame is the modified one moved along its own a and alpha.
    rng = np.random.default_rng(2)
    standard = random_table(rng, 5)
    before = [DHRow(), *standard]
    modified = [changed(row, a=p.a, alpha=p.alpha) for row, p in zip(standard, before)]
    last = [textbook_pose(DHRow(a=row.a, alpha=row.alpha), 'modified') for row in standard]
    matrices = [spatial_inertia(*inertia) for inertia in random_inertias(rng, 5)]
    types = ['revolute', 'prismatic', 'revolute', 'revolute', 'revolute']
    one = RobotModel.from_dh(standard, 'standard', joint_types=types, inertias=matrices)
    other = RobotModel.from_dh(
        modified,
        'modified',
        joint_types=types,
        inertias=[transform_inertia(M, frame) for M, frame in zip(matrices, last)],
        tool=last[-1],
    )
    motion = random_motion(2, 5, 5)
    np.testing.assert_allclose(
        forward_kinematics(one, motion).pose,
        forward_kinematics(other, motion).pose,
        atol=1e-13,
    )
    assert_same_efforts(
        inverse_dynamics(one, motion), inverse_dynamics(other, motion), 1e-13
    )


def test_table_of_the_panda_gives_the_model_of_its_urdf():
    panda = RobotModel.from_urdf(PANDA_URDF, tip_link='panda_link8')
    model = RobotModel.from_dh(
        PANDA,
        'modified',
        joint_types=['revolute'] * 7 + ['fixed'],
        inertias=[*panda.M_body, None],
        joint_names=[*panda.joint_names, 'flange'],
    )
    assert model.joint_names == panda.joint_names
    assert model.tip_link == 'link8'
    np.testing.assert_allclose(model.B, panda.B, atol=1e-14)
    motion = random_motion(1, 7, 5, (4,))
    assert_same_efforts(
        inverse_dynamics(model, motion), inverse_dynamics(panda, motion), 1e-13
    )
    np.testing.assert_allclose(
        forward_kinematics(model, motion).pose,
        forward_kinematics(panda, motion).pose,
        atol=1e-14,
    )


def test_khalils_form_of_the_modified_convention():
    # KUKA iiwa 14, Stuerz, Affolter and Smith 2017, table 1: position (d, -r sin alpha,
    # r cos alpha) of frame i in frame i-1.
    alphas = [0, QUARTER, -QUARTER, -QUARTER, QUARTER, QUARTER, -QUARTER]
    r = [0, 0, 0.42, 0, 0.4, 0, 0]
    model = RobotModel.from_dh(
        [{'alpha': alpha, 'd': offset} for alpha, offset in zip(alphas, r)], 'modified'
    )
    for pose, alpha, offset in zip(model.B, alphas, r):
        np.testing.assert_allclose(
            pose[:3, 3], [0, -offset * np.sin(alpha), offset * np.cos(alpha)], atol=1e-15
        )


def test_rows_may_be_numbers_or_names():
    rows = [
        DHRow(0.1, 0.2, 0.3, 0.4),
        (0.1, 0.2, 0.3, 0.4),
        {'theta': 0.4, 'a': 0.1, 'd': 0.3},
    ]
    model = RobotModel.from_dh(rows, 'standard')
    np.testing.assert_array_equal(model.B[0], model.B[1])
    assert not np.allclose(model.B[0], model.B[2])
    array = RobotModel.from_dh(np.full((3, 4), 0.1), 'modified')
    assert array.n_joints == 3


def test_tool_is_attached_to_the_last_row():
    tool = random_poses(np.random.default_rng(0), 1)[0]
    model = RobotModel.from_dh(PANDA, 'modified', joint_types=['revolute'] * 7 + ['fixed'])
    with_tool = RobotModel.from_dh(
        PANDA, 'modified', joint_types=['revolute'] * 7 + ['fixed'], tool=tool
    )
    q = random_motion(0, 7, 1)
    np.testing.assert_allclose(
        forward_kinematics(with_tool, q).pose,
        forward_kinematics(model, q).pose @ tool,
        atol=1e-14,
    )
    assert with_tool.tip_link == 'tool'


@pytest.mark.parametrize(
    ('table', 'options', 'message'),
    [
        ([], {}, 'at least one row'),
        ([(0, 0, 0)], {}, r'Row 0 of the table is .* expected \(a, alpha, d, theta\)'),
        ([(0, 0, 0, 'x')], {}, 'Row 0'),
        ([(0, 0, 0, np.inf)], {}, 'not finite'),
        ([{'r': 1.0}], {}, "holds 'r', expected"),
        ([5.0], {}, 'Row 0'),
        ([(0, 0, 0, 0)], {'convention': 'craig'}, 'expected one of standard, modified'),
        ([(0, 0, 0, 0)], {'joint_types': ['ball']}, "joint type is 'ball', expected one"),
        ([(0, 0, 0, 0)], {'joint_types': ['revolute'] * 2}, '2 joint types'),
        ([(0, 0, 0, 0)], {'joint_types': ['fixed']}, 'no moving joints'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(table, options, message):
    with pytest.raises(ModelError, match=message):
        RobotModel.from_dh(table, **{'convention': 'standard', **options})
