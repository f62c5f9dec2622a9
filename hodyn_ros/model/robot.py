"""The robot model: a tree of bodies, each moved by one joint relative to its parent.

Rigidly connected links are one body. Notation as in Kumar and Mueller 2021: body i has the parent
p(i) < i, the zero pose B_i in its parent, the joint screw X_i and the inertia M_i, all in its own
frame, which is the frame of the link behind the joint.
"""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import JointNameError, ModelError
from hodyn_ros.model.description import (
    MOVING_JOINT_TYPES,
    Joint,
    Limits,
    Link,
    Mimic,
    RobotDescription,
)
from hodyn_ros.model.inertia import transform_inertia
from hodyn_ros.model.urdf import read_urdf

Array = NDArray[np.float64]

BASE = -1
"""Index of the base, which does not move, where the index of a body is expected."""


class ModelWarning(UserWarning):
    """A robot description with doubtful values that is used all the same."""


class JointLimits(NamedTuple):
    """Limits of the independent joints, each of shape (n,); infinite where none is given."""

    lower: Array
    """Lowest position [rad] or [m]."""
    upper: Array
    """Highest position [rad] or [m]."""
    velocity: Array
    """Highest speed [rad/s] or [m/s]."""
    effort: Array
    """Highest absolute torque [N m] or force [N]."""


class LinkFrame(NamedTuple):
    """Where a link sits: the body that it belongs to (or `BASE`) and its pose in that body."""

    body: int
    pose: Array


@dataclass(frozen=True, eq=False)
class RobotModel:
    """Kinematic tree and inertias of a robot; immutable.

    Make one with `RobotModel.from_urdf`. The first group of attributes is what users need, the
    second is the tree of n_bodies moving bodies that the algorithms work on.
    """

    name: str
    joint_names: tuple[str, ...]
    """The n independent joints, in model order. Mimic joints are not among them."""
    joint_types: tuple[str, ...]
    """Type of each independent joint: revolute, continuous or prismatic."""
    base_link: str
    tip_link: str | None
    """Tip of a chain; None for a whole tree."""
    gravity: Array
    """Gravitational acceleration in base link axes, shape (3,) [m/s^2]."""
    limits: JointLimits
    links: Mapping[str, LinkFrame]
    """All links by name, those without motion and those merged into a body included."""
    warnings: tuple[str, ...]
    """Remarks on doubtful values in the description."""

    body_names: tuple[str, ...]
    """Name of the joint that moves each body, shape (n_bodies,)."""
    parent: NDArray[np.intp]
    """Index of the parent body, `BASE` for the base, shape (n_bodies,)."""
    coordinate: NDArray[np.intp]
    """Index of the independent joint that moves the body, shape (n_bodies,)."""
    multiplier: Array
    """Joint position of a body = multiplier * q[coordinate] + offset, shape (n_bodies,)."""
    offset: Array
    B: Array
    """Pose of each body in its parent at zero joint position, shape (n_bodies, 4, 4)."""
    X: Array
    """Joint screw of each body in its own frame, shape (n_bodies, 6)."""
    M_body: Array
    """Inertia of each body about the origin of its frame, shape (n_bodies, 6, 6)."""

    @property
    def n_joints(self) -> int:
        """Number n of independent joints."""
        return len(self.joint_names)

    @property
    def n_bodies(self) -> int:
        """Number of moving bodies: independent and mimic joints."""
        return len(self.body_names)

    @classmethod
    def from_urdf(
        cls,
        xml_or_path: str | bytes | os.PathLike[str],
        base_link: str | None = None,
        tip_link: str | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> RobotModel:
        """Read a robot from a URDF.

        Without `tip_link` the model is the whole tree above `base_link` (or the root link). With
        it, only the joints between base and tip move; links that are rigidly attached to the chain
        keep their inertia, also behind the tip, and side branches behind a moving joint are left
        out with a warning. Planar, floating and unknown joint types are only accepted in what is
        left out.

        Parameters
        ----------
        xml_or_path : str, bytes or path-like
            XML text, or the path of a URDF file.
        base_link, tip_link : str, optional
            The base does not move.
        gravity : array-like, shape (3,)
            Gravitational acceleration in base link axes [m/s^2].

        Returns
        -------
        RobotModel

        Raises
        ------
        ModelError
            If the description cannot be used; the message says where and why.

        Warns
        -----
        ModelWarning
            For each doubtful value; they are also listed in the attribute `warnings`.
        """
        model = cls.from_description(read_urdf(xml_or_path), base_link, tip_link, gravity)
        for warning in model.warnings:
            python_warnings.warn(warning, ModelWarning, stacklevel=2)
        return model

    @classmethod
    def from_description(
        cls,
        description: RobotDescription,
        base_link: str | None = None,
        tip_link: str | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> RobotModel:
        """Assemble a model from links and joints; see `from_urdf`, but nothing is printed."""
        return _Assembly(description, base_link, tip_link).model(cls, _checked_gravity(gravity))

    def link(self, name: str) -> LinkFrame:
        """Body and pose of a link.

        Raises
        ------
        ModelError
            If the model has no such link.
        """
        try:
            return self.links[name]
        except KeyError:
            raise ModelError(
                f'The model has no link {name!r}; its links are {_listed(self.links)}.'
            ) from None

    def joint_order(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Permutation that brings values given in the order `names` into model order.

        `values[..., model.joint_order(names)]` is in the order of `joint_names`.

        Raises
        ------
        JointNameError
            If a name is unknown, missing or repeated.
        """
        given = list(names)
        repeated = sorted({name for name in given if given.count(name) > 1})
        unknown = [name for name in given if name not in self.joint_names]
        missing = [name for name in self.joint_names if name not in given]
        problems = [
            f'{what}: {_listed(which)}'
            for what, which in (('repeated', repeated), ('unknown', unknown), ('missing', missing))
            if which
        ]
        if problems:
            raise JointNameError(
                f'Joint names do not fit the model ({"; ".join(problems)}); expected each of '
                f'{_listed(self.joint_names)} once, in any order.'
            )
        position = {name: index for index, name in enumerate(given)}
        return np.array([position[name] for name in self.joint_names], dtype=np.intp)


def _checked_gravity(gravity: ArrayLike) -> Array:
    try:
        vector = np.array(gravity, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f'gravity is {gravity!r}, expected three numbers.') from error
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise ModelError(f'gravity is {gravity!r}, expected three finite numbers [m/s^2].')
    return vector


def _listed(names: object) -> str:
    return ', '.join(map(str, names)) or 'none'  # type: ignore[call-overload]


class _Assembly:
    """Walks a description from the base outwards and collects bodies."""

    def __init__(
        self, description: RobotDescription, base_link: str | None, tip_link: str | None
    ) -> None:
        self.description = description
        self.links = {link.name: link for link in description.links}
        self.joints = {joint.name: joint for joint in description.joints}
        self.warnings = list(description.warnings)
        self.joint_to: dict[str, Joint] = {}
        self.joints_from: dict[str, list[Joint]] = {name: [] for name in self.links}
        self._check_names()
        root = self._connect()
        self.base_link = self._known_link(base_link, 'base_link') if base_link else root
        self.tip_link = self._known_link(tip_link, 'tip_link') if tip_link else None
        self.path = self._path() if self.tip_link is not None else None

        self.frames: dict[str, LinkFrame] = {}
        self.bodies: list[Joint] = []
        self.parent: list[int] = []
        self.B: list[Array] = []
        self.M_body: list[Array] = []
        self._walk()

    def _check_names(self) -> None:
        for kind, items in (('link', self.description.links), ('joint', self.description.joints)):
            seen: set[str] = set()
            for item in items:
                if item.name in seen:
                    raise ModelError(f'The robot description has two {kind}s {item.name!r}.')
                seen.add(item.name)
        if not self.links:
            raise ModelError('The robot description has no links.')

    def _known_link(self, name: str, argument: str) -> str:
        if name not in self.links:
            raise ModelError(
                f'{argument} {name!r} is not a link of the robot; its links are '
                f'{_listed(self.links)}.'
            )
        return name

    def _connect(self) -> str:
        """Fill the maps between links and joints; return the root link."""
        for joint in self.description.joints:
            for role, link in (('parent', joint.parent), ('child', joint.child)):
                if link not in self.links:
                    raise ModelError(
                        f'Joint {joint.name!r} has the {role} link {link!r}, which does not '
                        f'exist; the links are {_listed(self.links)}.'
                    )
            if joint.child in self.joint_to:
                raise ModelError(
                    f'Joint loop: link {joint.child!r} is the child of both '
                    f'{self.joint_to[joint.child].name!r} and {joint.name!r}; a robot must be a '
                    'tree.'
                )
            self.joint_to[joint.child] = joint
            self.joints_from[joint.parent].append(joint)
        roots = [name for name in self.links if name not in self.joint_to]
        if len(roots) > 1:
            raise ModelError(
                f'The robot description is not connected: the links {_listed(roots)} have no '
                'parent, expected exactly one such link.'
            )
        reached = set(roots)
        stack = list(roots)
        while stack:
            for joint in self.joints_from[stack.pop()]:
                reached.add(joint.child)
                stack.append(joint.child)
        if len(reached) < len(self.links):
            loop = [name for name in self.links if name not in reached]
            raise ModelError(
                f'Joint loop: the links {_listed(loop)} hang on each other and on no root link; a '
                'robot must be a tree.'
            )
        return roots[0]

    def _path(self) -> set[str]:
        """Names of the joints between base and tip."""
        assert self.tip_link is not None
        names = set()
        link = self.tip_link
        while link != self.base_link:
            if link not in self.joint_to:
                raise ModelError(
                    f'tip_link {self.tip_link!r} does not lie behind base_link '
                    f'{self.base_link!r}.'
                )
            names.add(self.joint_to[link].name)
            link = self.joint_to[link].parent
        return names

    def _walk(self) -> None:
        """Depth first in the order of the description, so that parents precede children."""
        self.frames[self.base_link] = LinkFrame(BASE, np.eye(4))
        stack = list(reversed(self.joints_from[self.base_link]))
        while stack:
            joint = stack.pop()
            body, pose = self.frames[joint.parent]
            if joint.type in MOVING_JOINT_TYPES and self._is_wanted(joint):
                self.bodies.append(joint)
                self.parent.append(body)
                self.B.append(pose @ joint.origin)
                self.M_body.append(np.array(self.links[joint.child].M_body))
                frame = LinkFrame(len(self.bodies) - 1, np.eye(4))
            elif joint.type == 'fixed':
                frame = LinkFrame(body, pose @ joint.origin)
                if body != BASE:
                    self.M_body[body] += transform_inertia(
                        self.links[joint.child].M_body, frame.pose
                    )
            elif self._is_wanted(joint):
                raise ModelError(
                    f'Joint {joint.name!r} is of type {joint.type!r}; supported are '
                    f'{_listed(MOVING_JOINT_TYPES)} and fixed. Choose base_link and tip_link such '
                    'that it lies outside the chain.'
                )
            else:
                self._leave_out(joint)
                continue
            self.frames[joint.child] = frame
            stack.extend(reversed(self.joints_from[joint.child]))
        if not self.bodies:
            raise ModelError(
                f'The robot has no moving joints from link {self.base_link!r}'
                + (f' to {self.tip_link!r}' if self.tip_link else ' on')
                + f'; expected at least one of type {_listed(MOVING_JOINT_TYPES)}.'
            )

    def _is_wanted(self, joint: Joint) -> bool:
        return self.path is None or joint.name in self.path

    def _leave_out(self, joint: Joint) -> None:
        mass = 0.0
        stack = [joint.child]
        while stack:
            link = stack.pop()
            mass += self.links[link].mass
            stack.extend(child.child for child in self.joints_from[link])
        self.warnings.append(
            f'Joint {joint.name!r} lies outside the chain from {self.base_link!r} to '
            f'{self.tip_link!r}; it is left out together with the {mass:.6g} kg behind it.'
        )

    def _resolved_mimic(self, joint: Joint, moving: set[str]) -> Mimic:
        """Follow mimic joints of mimic joints to an independent one."""
        seen = [joint.name]
        multiplier, offset = 1.0, 0.0
        while joint.mimic is not None:
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            followed = joint.mimic.joint
            if followed not in self.joints:
                raise ModelError(
                    f'Joint {joint.name!r} mimics {followed!r}, which does not exist; the joints '
                    f'are {_listed(self.joints)}.'
                )
            if followed in seen:
                raise ModelError(f'Mimic joints follow each other: {_listed([*seen, followed])}.')
            seen.append(followed)
            joint = self.joints[followed]
        if joint.name not in moving:
            raise ModelError(
                f'Joint {seen[0]!r} mimics {joint.name!r}, which does not move or lies outside '
                'the chain; choose another tip_link or the whole tree.'
            )
        return Mimic(joint.name, multiplier, offset)

    def model(self, cls: type[RobotModel], gravity: Array) -> RobotModel:
        moving = {joint.name for joint in self.bodies}
        independent = [joint for joint in self.bodies if joint.mimic is None]
        index = {joint.name: i for i, joint in enumerate(independent)}
        mimics = [self._resolved_mimic(joint, moving) for joint in self.bodies]
        B, M_body = np.array(self.B), np.array(self.M_body)
        X = np.array([_screw(joint) for joint in self.bodies])
        self._warn_of_massless_joints(B, X, M_body)
        limits = np.array([joint.limits for joint in independent], dtype=np.float64)
        return cls(
            name=self.description.name,
            joint_names=tuple(joint.name for joint in independent),
            joint_types=tuple(joint.type for joint in independent),
            base_link=self.base_link,
            tip_link=self.tip_link,
            gravity=_frozen(gravity),
            limits=JointLimits(*(_frozen(column.copy()) for column in limits.T)),
            links={
                name: LinkFrame(frame.body, _frozen(frame.pose))
                for name, frame in self.frames.items()
            },
            warnings=tuple(self.warnings),
            body_names=tuple(joint.name for joint in self.bodies),
            parent=_frozen_index(self.parent),
            coordinate=_frozen_index([index[mimic.joint] for mimic in mimics]),
            multiplier=_frozen(np.array([mimic.multiplier for mimic in mimics])),
            offset=_frozen(np.array([mimic.offset for mimic in mimics])),
            B=_frozen(B),
            X=_frozen(X),
            M_body=_frozen(M_body),
        )

    def _warn_of_massless_joints(self, B: Array, X: Array, M_body: Array) -> None:
        """Warn where a joint moves no inertia at all: then the mass matrix is singular."""
        composite = M_body.copy()
        for i in reversed(range(len(X))):
            if X[i] @ composite[i] @ X[i] <= 0.0:
                self.warnings.append(
                    f'Joint {self.bodies[i].name!r} moves no inertia: its effort is zero without '
                    'wrenches and the mass matrix is singular.'
                )
            if self.parent[i] != BASE:
                composite[self.parent[i]] += transform_inertia(composite[i], B[i])


def _screw(joint: Joint) -> Array:
    zero = np.zeros(3)
    if joint.type == 'prismatic':
        return np.concatenate([zero, joint.axis])
    return np.concatenate([joint.axis, zero])


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _frozen_index(values: list[int]) -> NDArray[np.intp]:
    array = np.array(values, dtype=np.intp)
    array.setflags(write=False)
    return array


__all__ = ['BASE', 'JointLimits', 'Limits', 'Link', 'LinkFrame', 'ModelWarning', 'RobotModel']
