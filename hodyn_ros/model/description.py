"""A robot description as plain data: links and joints, before anything is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import ModelError

Array = NDArray[np.float64]

# What URDF knows; helical joints come from screws only.
URDF_MOVING_JOINT_TYPES = ('revolute', 'continuous', 'prismatic')
URDF_JOINT_TYPES = (*URDF_MOVING_JOINT_TYPES, 'fixed', 'floating', 'planar')
MOVING_JOINT_TYPES = (*URDF_MOVING_JOINT_TYPES, 'helical')


class Mimic(NamedTuple):
    """Position of a joint that follows another: q = multiplier * q_joint + offset."""

    joint: str
    multiplier: float
    offset: float


class Limits(NamedTuple):
    """Limits of one joint; infinite where the description gives none."""

    lower: float = -np.inf
    """Lowest position [rad] or [m]."""
    upper: float = np.inf
    """Highest position [rad] or [m]."""
    velocity: float = np.inf
    """Highest speed [rad/s] or [m/s]."""
    effort: float = np.inf
    """Highest absolute torque [N m] or force [N]."""


class Dynamics(NamedTuple):
    """Friction of one joint as its description gives it; nothing has checked the values."""

    damping: float = 0.0
    """Coefficient of viscous friction [N m s/rad] or [N s/m]."""
    friction: float = 0.0
    """Level of Coulomb friction [N m] or [N]."""


@dataclass(frozen=True)
class Link:
    """A rigid link. Its inertia is the 6x6 matrix about the link origin in link axes."""

    name: str
    mass: float = 0.0
    M_body: Array = field(default_factory=lambda: np.zeros((6, 6)))
    defect: str = ''
    """Why the given inertia cannot be used. It matters only if the link moves."""


@dataclass(frozen=True)
class Joint:
    """A joint; `origin` is the pose of the child link in the parent link at zero position.

    The axis passes through the origin of the child link, unless a `screw` in the frame of the
    child link is given.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Array = field(default_factory=lambda: np.eye(4))
    axis: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    mimic: Mimic | None = None
    limits: Limits = Limits()
    screw: Array | None = None
    dynamics: Dynamics = Dynamics()


@dataclass(frozen=True)
class RobotDescription:
    """Links and joints in the order of their source, with remarks on doubtful values.

    A model is ordered depth first, unless the joints are `sorted_outwards`: each behind those that
    carry it. Then it keeps their order.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    warnings: tuple[str, ...] = ()
    sorted_outwards: bool = False


def check_limits(owner: str, limits: Limits) -> None:
    """Refuse limits that contradict themselves.

    Parameters
    ----------
    owner : str
        What the limits belong to, for the messages, for example "Joint 'elbow'".
    limits : Limits

    Raises
    ------
    ModelError
    """
    lower, upper, velocity, effort = limits
    if any(np.isnan(value) for value in limits):
        raise ModelError(f'{owner}: a limit is not a number.')
    if lower > upper:
        raise ModelError(f'{owner}: the lower limit {lower} lies above the upper limit {upper}.')
    if velocity < 0.0 or effort < 0.0:
        raise ModelError(
            f'{owner}: velocity limit {velocity} and effort limit {effort} must not be negative.'
        )
