"""Mechanisms with closed loops: a five-bar, and random ones of any kind of loop."""

import numpy as np
from support.random_trees import random_motion, random_robot

from hodyn_ros import RobotModel, forward_kinematics
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.closed_loops import ClosedMotion
from hodyn_ros.lie import se3
from hodyn_ros.model import Loop
from hodyn_ros.model.loops import KINDS

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


ABOUT_Z = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
START = {'left': 2.0, 'left_rod': -1.2, 'right': 1.0, 'right_rod': 1.2}


def at(x, y=0.0):
    pose = np.eye(4)
    pose[:2, 3] = x, y
    return pose


PIN = Loop('pin', 'hinge', 'left_tip', 'right_tip', at(0.5), at(0.5))


def planar():
    rods = [
        (1.0 + k, (0.2, 0.01 * k, 0.0), np.diag([0.001, 0.02, 0.021])) for k in range(4)
    ]
    return RobotModel.from_body_screws(
        [ABOUT_Z] * 4,
        [at(-0.2), at(0.4), at(0.2), at(0.4)],
        parents=[-1, 0, -1, 2],
        inertias=rods,
        joint_names=['left', 'left_rod', 'right', 'right_rod'],
        link_names=['left_crank', 'left_tip', 'right_crank', 'right_tip'],
        gravity=(0.3, -9.81, 0.0),
    )


def some_motion(model, shape=(7,), K=5):
    motion = random_motion(3, model.n_joints, K, shape)
    motion[..., 0, :] = (
        model.closure.start[model.closure.independent] + 0.1 * motion[..., 0, :] / np.pi
    )
    return motion


def five_bar():
    """Two cranks on the ground that move a pin."""
    return planar().with_loops([PIN], independent=['left', 'right'], start=START)


def some_closed_motion(seed, K=5):
    """A random mechanism, and a motion of it from a position at which its loops close."""
    _, model, _, q = random_mechanism(seed)
    motion = random_motion(seed, model.n_joints, K)
    motion[0] = q[model.closure.independent]
    return model, motion
