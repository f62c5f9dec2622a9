"""Closed loops: what closes them, and what a model with loops is made of.

A parallel mechanism is a tree of bodies, and loops that close it. Each loop holds a frame on link
B to a frame on link A: the twist of B relative to A, in the frame on A, has only what the kind of
the loop leaves free. Source: Featherstone 2008, Rigid Body Dynamics Algorithms, section 8.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice, exact_poses, finite_array, frozen
from hodyn_ros.errors import ModelError
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

# Where loops are closed, and how far a step of Newton's method may go on the way there.
TOLERANCE, LARGEST_STEP = 1e-9, 0.3
# Relative error of efforts, or of their highest derivative, that a singular position nearby may
# cause: positions that are nearer are refused.
LARGEST_ERROR = 0.01
# Ratio of singular values below which joints are not determined by others.
SINGULAR = 1e-7

KINDS = ('weld', 'hinge', 'ball', 'slider')


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a loop between two links of a tree.

    Parameters
    ----------
    name : str
    kind : str
        What B may do relative to A: 'weld' nothing (6 rows), 'hinge' turn about the axis (5),
        'slider' move along it (5), 'ball' turn (3).
    link_a, link_b : str
        Links of the tree; the base link is one, too.
    pose_a, pose_b : array-like, shape (4, 4), optional
        Frame of the loop in either link, by default that of the link. In a closed loop they differ
        only by what the kind leaves free.
    axis : array-like, shape (3,)
        Of a hinge or slider, in the frame on A and in that on B.

    Raises
    ------
    ModelError
        If the kind is unknown, a pose is none or the axis is zero.

    Examples
    --------
    Two arms that hold each other at their tips, as in a five-bar linkage:

    >>> from hodyn_ros.model import Loop
    >>> loop = Loop('tip', 'hinge', 'left_forearm', 'right_forearm', axis=[0.0, 1.0, 0.0])
    >>> loop.rows.shape
    (5, 6)
    """

    name: str
    kind: str
    link_a: str
    link_b: str
    pose_a: ArrayLike | None = None
    pose_b: ArrayLike | None = None
    axis: ArrayLike = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        what = f'Loop {self.name!r}'
        check_choice(f'{what}: the kind', self.kind, KINDS, ModelError)
        for side in ('pose_a', 'pose_b'):
            given = getattr(self, side)
            pose = np.eye(4) if given is None else given
            pose = finite_array(f'{what}: {side}', pose, ModelError)
            if pose.shape != (4, 4):
                raise ModelError(f'{what}: {side} has shape {pose.shape}, expected (4, 4).')
            checked = exact_poses(f'{what}: {side}', pose, ModelError)
            object.__setattr__(self, side, frozen(checked))
        axis = finite_array(f'{what}: the axis', self.axis, ModelError)
        if axis.shape != (3,) or not np.any(axis):
            raise ModelError(f'{what}: the axis is {self.axis!r}, expected a direction.')
        axis = axis / np.abs(axis).max()  # first, as squares may overflow or vanish
        object.__setattr__(self, 'axis', frozen(axis / np.linalg.norm(axis)))

    @property
    def poses(self) -> tuple[Array, Array]:
        """Frames of the loop in link A and link B, each of shape (4, 4)."""
        return np.asarray(self.pose_a), np.asarray(self.pose_b)

    @property
    def direction(self) -> Array:
        """Unit vector of the axis, shape (3,)."""
        return np.asarray(self.axis)

    @property
    def rows(self) -> Array:
        """What is zero of the twist of B relative to A in the frame on A, a combination a row.

        Shape (r, 6).
        """
        across = np.linalg.svd(self.direction[None])[2][1:]
        turning = {
            'weld': np.eye(3),
            'slider': np.eye(3),
            'hinge': across,
            'ball': across[:0],
        }
        moving = across if self.kind == 'slider' else np.eye(3)
        turns = turning[self.kind]
        rows = np.zeros((len(turns) + len(moving), 6))
        rows[: len(turns), :3] = turns
        rows[len(turns) :, 3:] = moving
        return rows


@dataclass(frozen=True, eq=False)
class Coupling:
    """A joint whose position is a polynomial of that of another one, or a sum of several.

    Gears, belts, linkages. Of one joint q_joint = c_0 + c_1 q_follows + c_2 q_follows^2 + ...,
    of several q_joint = c_0 + c_1 q_first + c_2 q_second + ...

    Parameters
    ----------
    name : str
    joint : str
        Joint of the tree.
    follows : str or sequence of str
        Joint of the tree that it follows, or several.
    coefficients : sequence of float
        c_0 [rad] or [m], c_1, ...

    Raises
    ------
    ModelError
        If the coefficients are no finite numbers, or not one more than there are several joints,
        or one of these comes twice.

    Examples
    --------
    A finger that closes twice as far as the other one, and starts at 0.1 rad:

    >>> from hodyn_ros.model import Coupling
    >>> coupling = Coupling('gear', 'right', 'left', [0.1, 2.0])
    >>> coupling.left_open({'left': 0.3, 'right': 0.7})
    0.0
    """

    name: str
    joint: str
    follows: str | Sequence[str]
    coefficients: Sequence[float]

    def __post_init__(self) -> None:
        what = f'Coupling {self.name!r}: the coefficients'
        values = finite_array(what, self.coefficients, ModelError)
        if values.ndim != 1 or len(values) == 0:
            raise ModelError(f'{what} are {self.coefficients!r}, expected c_0, c_1, ...')
        if not isinstance(self.follows, str):
            object.__setattr__(self, 'follows', tuple(self.follows))
            if len({*self.follows}) != max(1, len(self.follows)):
                raise ModelError(
                    f'Coupling {self.name!r} follows {listed(self.follows)}, expected joints that '
                    'differ.'
                )
            if len(values) != 1 + len(self.follows):
                raise ModelError(
                    f'{what} are {self.coefficients!r}, expected c_0 and one for each of '
                    f'{listed(self.follows)}.'
                )
        object.__setattr__(self, 'coefficients', tuple(values.tolist()))

    @property
    def followed(self) -> tuple[str, ...]:
        """Joint that it follows, or all of several."""
        return (self.follows,) if isinstance(self.follows, str) else tuple(self.follows)

    @property
    def polynomials(self) -> dict[str, tuple[float, ...]]:
        """By the joints that it follows: coefficients of what their sum has of each."""
        first, *others = self.coefficients
        if len(self.followed) == 1:
            return {self.followed[0]: (first, *others)}
        constants = (first, *[0.0] * (len(others) - 1))
        return dict(zip(self.followed, zip(constants, others)))

    def left_open(self, q: Mapping[str, Any]) -> Any:
        """Position of the joint less that which the coupling asks for.

        Parameters
        ----------
        q : mapping of str to position
            By the names of joints: numbers, arrays, or jets of such.
        """
        missing = q[self.joint]
        for name, polynomial in self.polynomials.items():
            value: Any = 0.0
            for coefficient in reversed(polynomial):
                value = value * q[name] + coefficient
            missing = missing - value
        return missing

    def slopes(self, q: Mapping[str, Any]) -> dict[str, Any]:
        """Derivatives of `left_open` by the positions of the joints, by their names."""
        found: dict[str, Any] = {self.joint: 1.0}
        for name, polynomial in self.polynomials.items():
            slope: Any = 0.0
            for power in range(len(polynomial) - 1, 0, -1):
                slope = slope * q[name] + power * polynomial[power]
            found[name] = found.get(name, 0.0) - slope
        return found
