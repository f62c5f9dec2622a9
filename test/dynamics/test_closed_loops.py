"""Robots with closed loops against an oracle of its own, and what their terms have in common."""

import numpy as np
import pytest
from support.loop_oracle import LoopEquation, LoopOracle
from support.random_trees import random_motion, random_robot, seeds

from hodyn_ros import RobotModel, forward_kinematics, inverse_dynamics
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.closed_loops import ClosedMotion, complete_motion
from hodyn_ros.lie import se3
from hodyn_ros.model.loops import KINDS, Loop

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

ROWS = {'weld': 6, 'hinge': 5, 'slider': 5, 'ball': 3}
GRAVITY = (0.5, -2.0, -9.81)


def random_mechanism(seed):
    """A random tree with loops that close at a random position; tree, model, URDF and position."""
    rng = np.random.default_rng(seed)
    for trial in range(400):
        robot = random_robot([seed, trial], n_moving=int(rng.integers(5, 10)))
        tree = RobotModel.from_urdf(robot.xml, gravity=GRAVITY)
        n = tree.n_joints
        q = rng.uniform(-1.5, 1.5, n)
        loops, rows = [], 0
        for number in range(int(rng.integers(1, 3))):
            kind = str(rng.choice(KINDS))
            if rows + ROWS[kind] >= n:
                continue
            rows += ROWS[kind]
            a, b = rng.choice(robot.links, 2, replace=False)
            pose_a = se3.exp(rng.uniform(-0.5, 0.5, 6))
            C_a, C_b = (
                forward_kinematics(tree, q[None], str(link)).pose for link in (a, b)
            )
            pose_b = se3.inverse(C_b) @ C_a @ pose_a
            axis = rng.standard_normal(3)
            loops.append(Loop(f'loop{number}', kind, str(a), str(b), pose_a, pose_b, axis))
        try:
            start = dict(zip(tree.joint_names, q))
            model = tree.with_loops(loops, start=start)
            moved = np.stack([q[model.closure.independent], np.ones(model.n_joints)])
            closed = ClosedMotion(model, moved[None])
            d = model.closure.dependent
            moves = np.abs(closed.motion[0, 1, d]).max() > 0.1
            if moves and np.linalg.cond(closed.L[0, 0][:, d]) < 60.0:
                return tree, model, robot.xml, q
        except HodynError:
            continue  # links of one body, singular, or nothing left to move
    raise AssertionError('no mechanism found')


def oracle_of(model, xml):
    closure = model.closure
    equations = [
        LoopEquation(
            loop.kind, loop.link_a, loop.link_b, loop.pose_a, loop.pose_b, loop.axis
        )
        for loop in closure.loops
    ]
    return LoopOracle(
        xml, closure.tree.joint_names, model.joint_names, equations, closure.tree.gravity
    )


def relative(found, expected):
    return np.abs(found - expected).max(axis=-1) / np.maximum(
        1.0, np.abs(expected).max(axis=-1)
    )


@pytest.mark.parametrize('seed', seeds(range(40), 8))
def test_motion_and_efforts_agree_with_power_series(seed):
    tree, model, xml, q = random_mechanism(seed)
    motion = random_motion(seed, model.n_joints, 5)
    motion[0] = q[model.closure.independent] + 0.003 * motion[0] / np.pi
    whole = complete_motion(model, motion)
    expected, efforts = oracle_of(model, xml)(motion, whole[0])
    assert relative(whole, expected).max() < 1e-9
    found = inverse_dynamics(model, motion)
    assert (relative(found, efforts) < [1e-12, 1e-10, 1e-8]).all()
