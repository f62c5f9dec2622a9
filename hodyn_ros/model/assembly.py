"""Links and joints of a robot description, and their assembly to a tree of bodies.

Rigidly connected links become one body, mimic joints are resolved, and branches outside of the
chosen chain are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import transform_inertia
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Viscous
from hodyn_ros.model.inertia import check_inertia, spatial_inertia
from hodyn_ros.model.limits import Limits, MotionLimits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.mechanism import BASE, LinkFrame
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import listed
from hodyn_ros.resources import package_version
from hodyn_ros.typing import Array

EARTH = (0.0, 0.0, -9.81)
"""Gravitational acceleration where a description states none, along z of the base [m/s^2]."""

# What URDF knows; helical joints come from screws only.
URDF_MOVING_JOINT_TYPES = ('revolute', 'continuous', 'prismatic')
MOVING_JOINT_TYPES = (*URDF_MOVING_JOINT_TYPES, 'helical')


class Mimic(NamedTuple):
    """Position of a joint that follows another: q = multiplier * q_joint + offset.

    Attributes
    ----------
    joint : str
        Name of the joint that it follows.
    multiplier : float
    offset : float
        [rad] or [m]
    """

    joint: str
    multiplier: float
    offset: float


class Dynamics(NamedTuple):
    """Friction of one joint as its description states it; the values are not validated.

    Attributes
    ----------
    damping : float
        Coefficient of viscous friction [N m s/rad] or [N s/m].
    friction : float
        Level of Coulomb friction [N m] or [N].
    """

    damping: float = 0.0
    friction: float = 0.0


@dataclass(frozen=True)
class Link:
    """A rigid link.

    Attributes
    ----------
    name : str
    M_body : ndarray, shape (6, 6)
        Inertia about the link origin in link axes, moments first.
    defect : str
        Reason why the given inertia cannot be used, empty if it can; an error only if the link
        moves.
    remark : str
        What is said if an impossible inertia is used all the same; empty if it cannot be.
    """

    name: str
    M_body: Array = field(default_factory=lambda: np.zeros((6, 6)))
    defect: str = ''
    remark: str = ''


@dataclass(frozen=True)
class Joint:
    """A joint as its description has it.

    Attributes
    ----------
    name, type : str
    parent, child : str
        Names of links.
    origin : ndarray, shape (4, 4)
        Pose of the child link in the parent link at zero position.
    axis : ndarray, shape (3,)
        Direction in the frame of the child link, through its origin.
    mimic : Mimic or None
    limits : Limits
    screw : ndarray, shape (6,), or None
        Joint screw in the frame of the child link, in place of the axis.
    dynamics : Dynamics
    armature : float
        Rotor inertia that the joint sees [kg m^2] or [kg].
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
    armature: float = 0.0


@dataclass(frozen=True)
class RobotDescription:
    """Links and joints in the order of their source, with remarks on doubtful values.

    A model is ordered depth first, unless the joints are `sorted_outwards`: each behind those that
    carry it. Then it keeps their order.

    Attributes
    ----------
    loops : tuple of Loop, Coupling or ModelError
        Closed loops and couplings; in place of one that cannot be read an error, which is raised
        only if the loops are closed.
    independent : tuple of str
        Joints with motors; empty if the description does not say.
    start : mapping of str to float
        Positions of joints [rad] or [m] near which the loops are closed.
    gravity : array-like, shape (3,)
        Gravitational acceleration in base link axes [m/s^2].
    tip_link : str or None
        Tip of a chain; None for a whole tree.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    warnings: tuple[str, ...] = ()
    sorted_outwards: bool = False
    provenance: Provenance = Provenance()
    loops: tuple[Loop | Coupling | ModelError, ...] = ()
    independent: tuple[str, ...] = ()
    start: Mapping[str, float] = field(default_factory=dict)
    gravity: ArrayLike = EARTH
    tip_link: str | None = None


def described_link(
    name: str,
    mass: float,
    frame: Array,
    inertia_com: Array,
    remarks: list[str],
) -> Link:
    """Link with an inertia as descriptions state it, in a frame at the centre of mass.

    Parameters
    ----------
    name : str
    mass : float
        [kg]
    frame : ndarray, shape (4, 4)
        Pose in the link of a frame whose origin is the centre of mass.
    inertia_com : ndarray, shape (3, 3)
        Inertia tensor about the centre of mass in the axes of that frame [kg m^2].
    remarks : list of str
        List to which remarks on a doubtful inertia are appended.

    Returns
    -------
    Link
        With a defect if its inertia cannot be used.
    """
    defect = remark = ''
    try:
        remarks += check_inertia(f'Link {name!r}', mass, frame[:3, 3], inertia_com)
    except ModelError as error:
        defect, remark = str(error), getattr(error, 'remark', '')
        if not remark:
            return Link(name, defect=defect)
    about_com = spatial_inertia(mass, np.zeros(3), inertia_com)
    return Link(name, transform_inertia(about_com, frame), defect, remark)


@contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Context in which messages of `ModelError` begin with the path of a file, unless it is empty.

    Parameters
    ----------
    path : str
    """
    try:
        yield
    except ModelError as error:
        if not path:
            raise
        raise ModelError(f'File {path!r}: {error}') from error


class Assembly:
    """Assembly of a description to bodies, from the base outwards.

    Parameters
    ----------
    description : RobotDescription
    base_link, tip_link : str or None
    allow_impossible_inertia : bool
        See `RobotModel.from_urdf`, as the ends.

    Raises
    ------
    ModelError
        If links or joints have the same names, do not make a tree, or are not supported in the
        chosen chain, if nothing moves, or an inertia that moves cannot be used.
    """

    def __init__(
        self,
        description: RobotDescription,
        base_link: str | None,
        tip_link: str | None,
        allow_impossible_inertia: bool,
    ) -> None:
        self.description: RobotDescription = description
        self.allows_impossible: bool = allow_impossible_inertia
        self.links: dict[str, Link] = {link.name: link for link in description.links}
        self.joints: dict[str, Joint] = {joint.name: joint for joint in description.joints}
        self.warnings: list[str] = list(description.warnings)
        self.joint_to: dict[str, Joint] = {}
        self.joints_from: dict[str, list[Joint]] = {name: [] for name in self.links}
        root = self._connect()
        for argument, name in (('base_link', base_link), ('tip_link', tip_link)):
            if name and name not in self.links:
                raise ModelError(
                    f'{argument} {name!r} is not a link of the robot; its links are '
                    f'{listed(self.links)}.'
                )
        self.base_link: str
        self.tip_link: str | None
        self.base_link, self.tip_link = base_link or root, tip_link or None
        self.wanted: set[str] = {*self.joints} if not tip_link else self._path(tip_link)

        self.frames: dict[str, LinkFrame] = {}
        self.bodies: list[Joint] = []
        self.parent: list[int] = []
        self.B: list[Array] = []
        self.M_body: list[Array] = []
        self.M_base: Array = np.zeros((6, 6))
        self._walk()
        self.tip_link = self.tip_link or self._only_end()

    def _only_end(self) -> str | None:
        """The moving link behind which there is none, if the robot does not branch."""
        moving = [link for link, frame in self.frames.items() if frame.body != BASE]
        ends = [link for link in moving if not self.joints_from[link]]
        return ends[0] if len(ends) == 1 else None

    def _connect(self) -> str:
        """Fill the maps between links and joints; return the root link."""
        for kind, items in (
            ('link', self.description.links),
            ('joint', self.description.joints),
        ):
            for name, count in Counter(item.name for item in items).items():
                if count > 1:
                    raise ModelError(f'The robot description has two {kind}s {name!r}.')
        if not self.links:
            raise ModelError('The robot description has no links.')
        for joint in self.description.joints:
            self._tie(joint)
        roots = [name for name in self.links if name not in self.joint_to]
        if len(roots) > 1:
            raise ModelError(
                f'The robot description is not connected: the links {listed(roots)} have no '
                'parent, expected exactly one such link.'
            )
        reached = {*roots, *(joint.child for root in roots for joint in self._behind(root))}
        loop = [name for name in self.links if name not in reached]
        if loop:
            raise ModelError(
                f'Joint loop: the links {listed(loop)} hang on each other and on no root link; a '
                'robot must be a tree.'
            )
        return roots[0]

    def _tie(self, joint: Joint) -> None:
        """Enter a joint into the maps between links and joints."""
        for role in ('parent', 'child'):
            if (link := getattr(joint, role)) not in self.links:
                raise ModelError(
                    f'Joint {joint.name!r} has the {role} link {link!r}, which does not '
                    f'exist; the links are {listed(self.links)}.'
                )
        before = self.joint_to.setdefault(joint.child, joint)
        if before is not joint:
            raise ModelError(
                f'Joint loop: link {joint.child!r} is the child of both {before.name!r} and '
                f'{joint.name!r}; a robot must be a tree.'
            )
        self.joints_from[joint.parent].append(joint)

    def _behind(self, link: str) -> list[Joint]:
        """All joints behind a link, depth first."""
        joints = []
        stack = list(reversed(self.joints_from[link]))
        while stack:
            joints.append(stack.pop())
            stack.extend(reversed(self.joints_from[joints[-1].child]))
        return joints

    def _path(self, tip_link: str) -> set[str]:
        """Names of the joints between base and tip."""
        names = set()
        link = tip_link
        while link != self.base_link:
            if link not in self.joint_to:
                raise ModelError(
                    f'tip_link {tip_link!r} does not lie behind base_link {self.base_link!r}.'
                )
            names.add(self.joint_to[link].name)
            link = self.joint_to[link].parent
        return names

    def _walk(self) -> None:
        """Collect bodies and place the links."""
        self.frames[self.base_link] = LinkFrame(BASE, np.eye(4))
        self.M_base += self.links[self.base_link].M_body
        in_order = self.description.sorted_outwards
        for joint in self.description.joints if in_order else self._behind(self.base_link):
            if joint.parent in self.frames:  # and not behind a joint that is left out
                self._place(joint)
        for name, frame in self.frames.items():
            defect, remark = self.links[name].defect, self.links[name].remark
            if remark and self.allows_impossible:
                self.warnings.append(remark)
            elif defect and frame.body != BASE:
                raise ModelError(defect)
            elif defect:
                self.M_base[:] = np.nan
                self.warnings.append(
                    f'{defect} It is not used as long as the base is at rest.'
                )
        if not self.bodies:
            raise ModelError(
                f'The robot has no moving joints from link {self.base_link!r}'
                + (f' to {self.tip_link!r}' if self.tip_link else ' on')
                + f'; expected at least one of type {listed(URDF_MOVING_JOINT_TYPES)}.'
            )

    def _place(self, joint: Joint) -> None:
        """Place the link behind a joint, as a body of its own or as part of one."""
        body, pose = self.frames[joint.parent]
        child = self.links[joint.child]
        if joint.type in MOVING_JOINT_TYPES and joint.name in self.wanted:
            self.bodies.append(joint)
            self.parent.append(body)
            self.B.append(pose @ joint.origin)
            self.M_body.append(np.array(child.M_body))
            self.frames[joint.child] = LinkFrame(len(self.bodies) - 1, np.eye(4))
        elif joint.type == 'fixed':
            frame = self.frames[joint.child] = LinkFrame(body, pose @ joint.origin)
            inertia = self.M_base if body == BASE else self.M_body[body]
            inertia += transform_inertia(child.M_body, frame.pose)
        elif joint.name in self.wanted:
            raise ModelError(
                f'Joint {joint.name!r} is of type {joint.type!r}; supported are '
                f'{listed(URDF_MOVING_JOINT_TYPES)} and fixed. Other joints may only lie '
                'outside the chain from base_link to tip_link.'
            )
        else:
            carried = (joint.child, *(later.child for later in self._behind(joint.child)))
            mass = sum(self.links[link].M_body[5, 5] for link in carried)
            self.warnings.append(
                f'Joint {joint.name!r} lies outside the chain from {self.base_link!r} to '
                f'{self.tip_link!r}; it is left out together with the {mass:.6g} kg behind it.'
            )

    def _resolved_mimic(self, joint: Joint, moving: Sequence[str]) -> Mimic:
        """Follow mimic joints of mimic joints to an independent one."""
        name = joint.name
        seen = {name: None}  # in order, and quick to search
        multiplier, offset = 1.0, 0.0
        while joint.mimic is not None:
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            followed = joint.mimic.joint
            if followed not in self.joints:
                raise ModelError(
                    f'Joint {joint.name!r} mimics {followed!r}, which does not exist; the joints '
                    f'are {listed(self.joints)}.'
                )
            if followed in seen:
                raise ModelError(
                    f'Mimic joints follow each other: {listed([*seen, followed])}.'
                )
            seen[followed] = None
            joint = self.joints[followed]
        if joint.name not in moving:
            raise ModelError(
                f'Joint {name!r} mimics {joint.name!r}, which does not move or lies outside '
                'the chain; choose another tip_link or the whole tree.'
            )
        return Mimic(joint.name, multiplier, offset)

    def fields(self) -> dict[str, Any]:
        """Attributes of the `RobotModel` without friction, all but gravity.

        Remarks on limits and inertias are added to `warnings`.

        Raises
        ------
        ModelError
            If a mimic joint follows one that does not exist, does not move or follows it in turn,
            or an armature is negative.
        """
        names = tuple(joint.name for joint in self.bodies)
        independent = [joint for joint in self.bodies if joint.mimic is None]
        followers = {joint.name: joint.limits for joint in self.bodies if joint.mimic}
        mimics = [self._resolved_mimic(joint, names) for joint in self.bodies]
        index = {joint.name: i for i, joint in enumerate(independent)}
        B, M_body = np.array(self.B), np.array(self.M_body)
        X = np.array([_screw(joint) for joint in self.bodies])
        self.warnings += massless_joints(names, self.parent, B, X, M_body)
        self._remark_on_limits()
        armature = [checked_armature(joint.name, joint.armature) for joint in self.bodies]
        provenance = replace(
            self.description.provenance,
            robot=self.description.name,
            version=package_version(),
        )
        return {
            'name': self.description.name,
            'joint_names': tuple(index),
            'joint_types': tuple(joint.type for joint in independent),
            'base_link': self.base_link,
            'tip_link': self.tip_link,
            'limits': _motion_limits(independent),
            'links': self.frames,
            'warnings': tuple(self.warnings),
            'body_names': names,
            'parent': np.array(self.parent, dtype=np.intp),
            'coordinate': np.array([index[mimic.joint] for mimic in mimics], dtype=np.intp),
            'multiplier': np.array([mimic.multiplier for mimic in mimics]),
            'offset': np.array([mimic.offset for mimic in mimics]),
            'B': B,
            'X': X,
            'M_body': M_body,
            'M_base': self.M_base,
            'follower_limits': followers,
            'friction': {},
            'armature': np.array(armature),
            'provenance': provenance,
        }

    def _remark_on_limits(self) -> None:
        """Remark on limits that no motion keeps; efforts are those of independent joints."""
        for what in ('velocity', 'acceleration', 'jerk', 'effort'):
            zero = [
                joint.name
                for joint in self.bodies
                if not getattr(joint.limits, what)
                and not (joint.mimic and what == 'effort')
            ]
            if zero:
                self.warnings.append(
                    f'The {what} limit of {listed(zero)} is 0, which no motion keeps. Some '
                    'exporters of URDF write 0 for what was not set: write the true limit, or a '
                    'large number.'
                )


def _motion_limits(joints: Sequence[Joint]) -> MotionLimits:
    """Limits of joints as they are described."""
    described = np.array([joint.limits for joint in joints], dtype=np.float64)
    columns = described.reshape(-1, len(Limits._fields)).T
    known: dict[str, Any] = {
        name: column.copy() for name, column in zip(Limits._fields, columns)
    }
    unknown = np.full((2, len(joints)), np.inf)
    return MotionLimits(**known, effort_dot=unknown[0], effort_ddot=unknown[1])


def massless_joints(
    names: Sequence[str], parent: Sequence[int], B: Array, X: Array, M_body: Array
) -> list[str]:
    """Remarks on joints that move no inertia at all: they make the mass matrix singular.

    Parameters
    ----------
    names : sequence of str
        Of the joints of the bodies.
    parent : sequence of int
        Index of the parent of each body, or `BASE`.
    B : ndarray, shape (n_bodies, 4, 4)
        Poses in the parents at zero position.
    X : ndarray, shape (n_bodies, 6)
        Body-fixed joint screws.
    M_body : ndarray, shape (n_bodies, 6, 6)
        Inertias about the origins of the body frames.

    Returns
    -------
    list of str
    """
    remarks, without = [], []
    composite = M_body.copy()
    for i in reversed(range(len(X))):
        inertia = X[i] @ composite[i] @ X[i]
        if inertia < 0.0:
            remarks.append(
                f'Joint {names[i]!r} moves a negative inertia: the mass matrix is not positive '
                'definite.'
            )
        elif inertia == 0.0:
            without.append(repr(names[i]))
        if parent[i] != BASE:
            composite[parent[i]] += transform_inertia(composite[i], B[i])
    if len(without) == 1:
        remarks.append(
            f'Joint {without[0]} moves no inertia: its effort is zero without wrenches and the '
            'mass matrix is singular.'
        )
    elif without:
        remarks.append(
            f'{len(without)} of {len(X)} joints move no inertia: {listed(without[::-1])}. Their '
            'efforts are zero without wrenches and the mass matrix is singular; the description '
            'lacks masses.'
        )
    return remarks


def checked_armature(joint: str, value: float) -> float:
    """Validated armature of a joint [kg m^2] or [kg]; a negative one is a `ModelError`.

    Parameters
    ----------
    joint : str
    value : float
    """
    return checked_number(f'The armature of joint {joint!r}', value, ModelError, least=0.0)


def _screw(joint: Joint) -> Array:
    """Body-fixed joint screw (6,) of a joint, from its axis unless it has one."""
    if joint.screw is not None:
        return joint.screw
    halves = (np.zeros(3), joint.axis)
    return np.concatenate(halves if joint.type == 'prismatic' else halves[::-1])


def described_friction(
    description: RobotDescription, names: Sequence[str]
) -> dict[str, FrictionLaw]:
    """Friction laws of joints from the damping and friction of a description.

    Parameters
    ----------
    description : RobotDescription
    names : sequence of str
        Of the joints that have a law if friction is stated.

    Raises
    ------
    ModelError
        If a coefficient is negative or no finite number.
    """
    laws: dict[str, FrictionLaw] = {}
    for joint in description.joints:
        if joint.name not in names or not any(joint.dynamics):
            continue
        damping, friction = joint.dynamics
        if not (
            np.isfinite(damping) and np.isfinite(friction) and min(joint.dynamics) >= 0.0
        ):
            raise ModelError(
                f'Joint {joint.name!r}: damping {damping} and friction {friction}, expected one '
                'element <dynamics> with finite numbers that are not negative.'
            )
        laws[joint.name] = Viscous(damping) + Coulomb(friction)
    return laws
