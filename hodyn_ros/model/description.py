"""A robot description as plain data: links and joints, before anything is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOVING_JOINT_TYPES = ('revolute', 'continuous', 'prismatic')


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


@dataclass(frozen=True)
class Link:
    """A rigid link. Its inertia is the 6x6 matrix about the link origin in link axes."""

    name: str
    mass: float = 0.0
    M_body: Array = field(default_factory=lambda: np.zeros((6, 6)))


@dataclass(frozen=True)
class Joint:
    """A joint; `origin` is the pose of the child link in the parent link at zero position."""

    name: str
    type: str
    parent: str
    child: str
    origin: Array = field(default_factory=lambda: np.eye(4))
    axis: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    mimic: Mimic | None = None
    limits: Limits = Limits()


@dataclass(frozen=True)
class RobotDescription:
    """Links and joints in the order of their source, with remarks on doubtful values."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    warnings: tuple[str, ...] = ()
