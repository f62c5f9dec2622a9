"""Robots and motions that the contestants compute, and the errors of what they computed.

The robots are given to all as the same URDF text. The errors are against the power series of
test/support/oracles.py in extended precision, which share no code with any contestant.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros import RobotModel, to_urdf
from hodyn_ros.model.limits import Limits

Array = NDArray[np.float64]

ROOT = Path(__file__).resolve().parent.parent
# The oracle belongs to the tests, which are no package.
sys.path.append(str(ROOT / 'test'))

from support import oracles  # noqa: E402

K = 5  # positions and four derivatives, for the efforts and two derivatives
SIZES = (7, 14, 28, 56, 112)
# Joints without limits would be continuous ones, which Pinocchio gives a cosine and a sine.
LIMITS = Limits(-3.2, 3.2, 10.0, 1000.0)


class Body(NamedTuple):
    """A moving body for the peers that need numbers: frame with the joint axis as z axis."""

    parent: int
    """Index of the parent body, -1 for the base."""
    rotation: Array
    """Orientation in the parent at q = 0, shape (3, 3)."""
    position: Array
    """Position in the parent at q = 0, shape (3,) [m]."""
    slides: bool
    """Whether the joint is prismatic instead of revolute."""
    coordinate: int
    """Index of the joint in model order."""
    mass: float
    first_moment: Array
    """Mass times centre of mass, shape (3,) [kg m]."""
    inertia: Array
    """About the origin of the frame, shape (3, 3) [kg m^2]."""


@dataclass(frozen=True)
class Case:
    """A robot and a batch of samples of its motion.

    Attributes
    ----------
    name : str
    urdf : str
    motion : ndarray, shape (N, K, n)
        In model order, C-contiguous; its efforts have the orders 0 to K - 3.
    checked : int
        How many of the samples, from the first, are compared with the oracle.
    """

    name: str
    urdf: str
    motion: Array
    checked: int

    @cached_property
    def model(self) -> RobotModel:
        """The robot as hodyn_ros reads it."""
        return RobotModel.from_urdf(self.urdf)

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.motion.shape[-1])

    @property
    def order(self) -> int:
        """Highest derivative of the efforts."""
        return int(self.motion.shape[1]) - 3

    @cached_property
    def reference(self) -> Array:
        """Efforts with derivatives of the checked samples, shape (checked, K - 2, n)."""
        efforts: Array = oracles.taylor_rnea(
            self.urdf,
            self.model.joint_names,
            self.model.gravity,
            self.motion[: self.checked],
        )
        return efforts

    @cached_property
    def bodies(self) -> list[Body]:
        """Moving bodies, parents first, with what is rigidly attached to them."""
        return _bodies(self.urdf, self.model.joint_names)

    def errors(self, efforts: Array) -> list[float]:
        """Errors of each order relative to the largest value of that order.

        Parameters
        ----------
        efforts : ndarray, shape (samples, orders, n)
            Of the first samples of the motion.

        Returns
        -------
        list of float
            Of as many orders as there are efforts.
        """
        samples, orders = min(len(efforts), self.checked), efforts.shape[1]
        expected = self.reference[:samples, :orders]
        difference = np.abs(efforts[:samples] - expected).max(axis=(0, 2))
        relative = difference / np.abs(expected).max(axis=(0, 2))
        return [float(error) for error in relative]


def panda(samples: int, checked: int = 100) -> Case:
    """Franka Panda without its meshes, 7 joints."""
    model = RobotModel.from_urdf(ROOT / 'urdf' / 'panda.urdf')
    return _case('Panda', model, samples, checked)


def chain(n: int, samples: int, checked: int = 10) -> Case:
    """Random chain of n revolute joints."""
    return _case(f'chain of {n}', _random_model(n, range(-1, n - 1)), samples, checked)


def tree(n: int, samples: int, checked: int = 10) -> Case:
    """Random tree of n revolute joints: each body hangs on one of the four before it."""
    generator = np.random.default_rng(n)
    parents = [-1, *(int(generator.integers(max(0, i - 4), i)) for i in range(1, n))]
    return _case(f'tree of {n}', _random_model(n, parents), samples, checked)


def flying_arm(samples: int, order: int, checked: int = 10) -> Case:
    """Random chain of 6 joints on a free body: 12 coordinates, with efforts up to an order.

    The coordinates of the body are three displacements and three turns about z, y and x.
    """
    poses, inertias = _random_bodies(12)
    poses[:6] = np.eye(4)
    inertias[:5] = [(0.0, np.zeros(3), np.zeros((3, 3)))] * 5
    axes = np.eye(6)
    free = axes[[3, 4, 5, 2, 1, 0]]
    model = RobotModel.from_body_screws(
        X=[*free, *[axes[2]] * 6], B=poses, inertias=inertias, limits=[LIMITS] * 12
    )
    return _case('flying arm', model, samples, checked, order + 3)


def _case(name: str, model: RobotModel, samples: int, checked: int, rows: int = K) -> Case:
    motion = np.random.default_rng(model.n_joints).uniform(
        -1, 1, (samples, rows, model.n_joints)
    )
    motion[:, 0] *= np.pi
    return Case(name, to_urdf(model), motion, min(checked, samples))


def _random_model(n: int, parents: range | list[int]) -> RobotModel:
    """Revolute joints about the z axes of the body frames, which Pinocchio computes fastest."""
    poses, inertias = _random_bodies(n)
    return RobotModel.from_body_screws(
        X=[[0, 0, 1, 0, 0, 0]] * n,
        B=poses,
        parents=list(parents),
        inertias=inertias,
        limits=[LIMITS] * n,
    )


def _random_bodies(n: int) -> tuple[Array, list[tuple[float, Array, Array]]]:
    """Poses in their parents (n, 4, 4); masses, centres of mass and inertias about these."""
    generator = np.random.default_rng(n)
    poses, inertias = np.tile(np.eye(4), (n, 1, 1)), []
    for i in range(n):
        Q, _ = np.linalg.qr(generator.standard_normal((3, 3)))
        poses[i, :3, :3] = Q * np.linalg.det(Q)
        poses[i, :3, 3] = generator.uniform(-0.3, 0.3, 3)
        mass = generator.uniform(0.5, 3.0)
        spread = 0.1 * generator.standard_normal((3, 3))
        moments = mass * (spread @ spread.T + 1e-3 * np.eye(3))
        tensor = np.trace(moments) * np.eye(3) - moments
        inertias.append((mass, generator.uniform(-0.2, 0.2, 3), tensor))
    return poses, inertias


def _bodies(xml: str, joint_names: tuple[str, ...]) -> list[Body]:
    tree = oracles.read_urdf(xml)
    # Where each link is: body, and pose in its frame.
    places = {tree.root: (-1, np.eye(3), np.zeros(3))}
    bodies: list[Body] = []
    for joint in tree.joints:
        parent, R, p = places[joint.parent]
        p = p + R @ joint.translation
        R = R @ joint.rotation
        if joint.type != 'fixed':
            align = _frame_with_z_axis(joint.axis)
            bodies.append(
                Body(
                    parent,
                    _rounded(R @ align),
                    _rounded(p),
                    joint.type == 'prismatic',
                    joint_names.index(joint.name),
                    0.0,
                    np.zeros(3),
                    np.zeros((3, 3)),
                )
            )
            parent, R, p = len(bodies) - 1, align.T, np.zeros(3)
        places[joint.child] = parent, R, p
        inertial = tree.inertials.get(joint.child)
        if inertial is not None and parent >= 0:
            body, com = bodies[parent], p + R @ inertial.com
            about_origin = R @ inertial.inertia @ R.T + inertial.mass * (
                com @ com * np.eye(3) - np.outer(com, com)
            )
            bodies[parent] = body._replace(
                mass=body.mass + inertial.mass,
                first_moment=_rounded(body.first_moment + inertial.mass * com),
                inertia=_rounded(body.inertia + about_origin),
            )
    return bodies


def _frame_with_z_axis(axis: Array) -> Array:
    if axis[2] == 1.0:
        return np.eye(3)
    across = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(across, axis)
    x /= np.sqrt(x @ x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)


def _rounded(values: Array) -> Array:
    """Double precision, and zeros where the angles of the URDF leave a rounding error."""
    values = np.asarray(values, dtype=np.float64)
    return np.where(np.abs(values) < 1e-15, 0.0, values)
