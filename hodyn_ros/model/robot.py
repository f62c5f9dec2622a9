"""The robot model: a tree of bodies, each moved by one joint relative to its parent.

Rigidly connected links are one body. Notation as in Kumar and Mueller 2021: body i has the parent
p(i) < i, the zero pose B_i in its parent, the joint screw X_i and the inertia M_i, all in its own
frame, which is the frame of the link behind the joint.
"""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import JointNameError, ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import (
    BASE,
    Assembly,
    JointLimits,
    LinkFrame,
    frozen,
    massless_joints,
)
from hodyn_ros.model.description import Limits, Link, RobotDescription
from hodyn_ros.model.dh import DHRow, GivenRow, dh_screws
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Viscous
from hodyn_ros.model.inertia import (
    GivenInertia,
    Inertia,
    checked_inertia,
    transform_inertia,
)
from hodyn_ros.model.preparation import Prepared
from hodyn_ros.model.screws import (
    body_fixed_from_spatial,
    checked_poses,
    checked_screws,
    screw_description,
)
from hodyn_ros.model.urdf import read_urdf
from hodyn_ros.names import joint_order, listed

Array = NDArray[np.float64]


class ModelWarning(UserWarning):
    """A robot description with doubtful values that is used all the same."""


@dataclass(frozen=True, eq=False)
class RobotModel(Prepared):
    """Kinematic tree and inertias of a robot; immutable.

    Make one with `from_urdf`, `from_screws`, `from_body_screws` or `from_dh`. The first attributes
    are what users need; from `body_names` on they are the tree of n_bodies moving bodies that the
    algorithms work on.

    Attributes
    ----------
    name : str
    joint_names : tuple of str
        The n independent joints, in model order. Mimic joints are not among them.
    joint_types : tuple of str
        Type of each independent joint: revolute, continuous, prismatic or helical.
    base_link : str
    tip_link : str or None
        Tip of a chain; None for a whole tree.
    gravity : ndarray, shape (3,)
        Gravitational acceleration in base link axes [m/s^2].
    limits : JointLimits
        Limits of the independent joints.
    links : mapping of str to LinkFrame
        All links by name, those without motion and those merged into a body included.
    warnings : tuple of str
        Remarks on doubtful values in the description.
    body_names : tuple of str
        Name of the joint that moves each body.
    parent : ndarray of int, shape (n_bodies,)
        Index of the parent body, `BASE` for the base.
    coordinate : ndarray of int, shape (n_bodies,)
        Index of the independent joint that moves the body.
    multiplier, offset : ndarray, shape (n_bodies,)
        Joint position of a body = multiplier * q[coordinate] + offset.
    B : ndarray, shape (n_bodies, 4, 4)
        Pose of each body in its parent at zero joint position.
    X : ndarray, shape (n_bodies, 6)
        Joint screw of each body in its own frame.
    M_body : ndarray, shape (n_bodies, 6, 6)
        Inertia of each body about the origin of its frame.
    friction : mapping of str to FrictionLaw
        Friction laws by the name of the joint, see `with_friction`.
    armature : ndarray, shape (n_bodies,)
        Rotor inertia that each body's joint sees [kg m^2] or [kg], see `with_armature`.
    """

    name: str
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    base_link: str
    tip_link: str | None
    gravity: Array
    limits: JointLimits
    links: Mapping[str, LinkFrame]
    warnings: tuple[str, ...]
    body_names: tuple[str, ...]
    parent: NDArray[np.intp]
    coordinate: NDArray[np.intp]
    multiplier: Array
    offset: Array
    B: Array
    X: Array
    M_body: Array
    friction: Mapping[str, FrictionLaw]
    armature: Array

    def __post_init__(self) -> None:
        self.__setstate__(self.__dict__)

    def __getstate__(self) -> dict[str, Any]:
        # Read-only mappings cannot be pickled.
        return {**super().__getstate__(), 'links': {**self.links}, 'friction': {**self.friction}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in ('links', 'friction'):
            self.__dict__[name] = MappingProxyType({**state[name]})

    def __repr__(self) -> str:
        remarks = f', {len(self.warnings)} warnings' if self.warnings else ''
        return (
            f'<RobotModel {self.name!r}: {self.n_joints} joints, {self.n_bodies} bodies, '
            f'base {self.base_link!r}, tip {self.tip_link!r}{remarks}>'
        )

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
        joint_friction: bool = False,
        *,
        xacro_arguments: Mapping[str, str] | None = None,
        allow_impossible_inertia: bool = False,
    ) -> RobotModel:
        """Read a robot from a URDF.

        Without `tip_link` the model is the whole tree behind `base_link` (or the root link). With
        it, only the joints between base and tip move; links that are rigidly attached to the chain
        keep their inertia, also behind the tip, and side branches behind a moving joint are left
        out with a warning. Planar, floating and unknown joint types are only accepted in what is
        left out.

        Parameters
        ----------
        xml_or_path : str, bytes or path-like
            XML text, the path of a URDF or xacro file, or the name of a robot: ``'panda'``,
            ``'panda_with_hand'``, ``'iiwa14'`` or ``'two_link'``, which come with this package,
            or one of an installed package as on the command line (``hodyn info --help``), such as
            ``'ur5'`` of example-robot-data or ``'my_package/urdf/arm.urdf'`` of ROS. Those of
            robot_descriptions are downloaded when they are used for the first time. A path-like
            object is a path in any case.
        base_link, tip_link : str, optional
            The base does not move.
        gravity : array-like, shape (3,)
            Gravitational acceleration in base link axes [m/s^2].
        joint_friction : bool
            Whether `<dynamics damping friction>` becomes `Viscous(damping) + Coulomb(friction)`.
            By default it is ignored, as other libraries do: most descriptions hold settings of a
            simulator there, not measured friction. The Coulomb part is not smoothed; for another
            law, use `with_friction`.
        xacro_arguments : mapping of str to str, optional
            Arguments of a xacro file, which the package xacro expands.
        allow_impossible_inertia : bool
            Whether an inertia tensor with a negative principal moment is used, with a warning;
            by default it is refused. Efforts and their derivatives are then those of the equations
            with these numbers; what rests on a positive mass matrix (simulation, control, time
            scaling) may fail.

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
        description = read_urdf(xml_or_path, xacro_arguments, allow_impossible_inertia)
        model = cls.from_description(description, base_link, tip_link, gravity)
        if joint_friction:
            model = model.with_friction(_described_friction(description, model.body_names))
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
        fields = Assembly(description, base_link, tip_link).fields()
        return cls(gravity=frozen(_checked_gravity(gravity)), **fields)

    @classmethod
    def from_screws(
        cls,
        Y: ArrayLike,
        A: ArrayLike,
        *,
        parents: Sequence[int] | None = None,
        inertias: Sequence[GivenInertia] | None = None,
        joint_names: Sequence[str] | None = None,
        link_names: Sequence[str] | None = None,
        limits: Sequence[Limits | None] | None = None,
        tool: ArrayLike | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = 'robot',
        base_link: str = 'base',
    ) -> RobotModel:
        """Make a robot from joint screws and body poses in the base frame at q = 0.

        Source: Mueller 2021, section II (spatial representation of the product of exponentials).

        Parameters
        ----------
        Y : array-like, shape (n, 6)
            Joint screws in base axes about the base origin: (e, x cross e) for a revolute joint
            about the unit axis e through x, (0, e) for a prismatic, (e, x cross e + h e) for a
            helical one with the pitch h [m/rad].
        A : array-like, shape (n, 4, 4)
            Poses of the bodies. The body frames may lie anywhere on their bodies.
        parents, inertias, joint_names, link_names, limits, tool, gravity, name, base_link
            See `from_body_screws`.

        Returns
        -------
        RobotModel
            Its joints have the order of the screws.

        Raises
        ------
        ModelError
            If a shape or value cannot be used; the message says which.

        Warns
        -----
        ModelWarning
            For each doubtful inertia.
        """
        X, B = body_fixed_from_spatial(Y, A, parents)
        return cls._from_joints(
            screw_description(
                list(X), B, parents, inertias, joint_names, link_names, limits, tool, name,
                base_link,
            ),
            gravity,
        )

    @classmethod
    def from_body_screws(
        cls,
        X: ArrayLike,
        B: ArrayLike,
        *,
        parents: Sequence[int] | None = None,
        inertias: Sequence[GivenInertia] | None = None,
        joint_names: Sequence[str] | None = None,
        link_names: Sequence[str] | None = None,
        limits: Sequence[Limits | None] | None = None,
        tool: ArrayLike | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = 'robot',
        base_link: str = 'base',
    ) -> RobotModel:
        """Make a robot from joint screws and poses relative to the parent, all body-fixed.

        Source: Kumar and Mueller 2021, section II-A (local product of exponentials).

        Parameters
        ----------
        X : array-like, shape (n, 6)
            Joint screws in the frames of the bodies that they move, see `from_screws`.
        B : array-like, shape (n, 4, 4)
            Pose of each body in its parent at zero joint position.
        parents : sequence of int, optional
            Index of the parent of each body, smaller than its own, -1 for the base; by default
            the bodies form a chain.
        inertias : sequence, optional
            For each body an `Inertia` or plain (mass, com, inertia_com) in the body frame, the
            6x6 inertia matrix about its origin, or None for a massless body.
        joint_names, link_names : sequence of str, optional
            By default joint1, joint2, ... and link1, link2, ...
        limits : sequence of (Limits or None), optional
            (lower, upper, velocity, effort) of each joint.
        tool : array-like, shape (4, 4), optional
            Pose of a link named tool in the last body.
        gravity : array-like, shape (3,)
            Gravitational acceleration in base axes [m/s^2].
        name, base_link : str

        Returns
        -------
        RobotModel
            Its joints have the order of the screws. A chain has its last link, or the tool, as
            tip.

        Raises
        ------
        ModelError
            If a shape or value cannot be used; the message says which.

        Warns
        -----
        ModelWarning
            For each doubtful inertia.
        """
        screws = checked_screws('X', X)
        poses = checked_poses('B', B, len(screws))
        return cls._from_joints(
            screw_description(
                list(screws), poses, parents, inertias, joint_names, link_names, limits, tool,
                name, base_link,
            ),
            gravity,
        )

    @classmethod
    def from_dh(
        cls,
        table: Sequence[GivenRow],
        convention: str,
        *,
        joint_types: Sequence[str] | None = None,
        inertias: Sequence[GivenInertia] | None = None,
        joint_names: Sequence[str] | None = None,
        link_names: Sequence[str] | None = None,
        limits: Sequence[Limits | None] | None = None,
        tool: ArrayLike | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = 'robot',
        base_link: str = 'base',
    ) -> RobotModel:
        """Make a chain from a table of Denavit-Hartenberg parameters.

        Parameters
        ----------
        table : sequence of rows
            For each joint `DHRow`, a mapping with its names, or numbers in the order
            (a, alpha, d, theta); theta of a revolute and d of a prismatic joint are the values at
            q = 0.
        convention : {'standard', 'modified'}
            standard (distal): Rz(theta) Tz(d) Tx(a) Rx(alpha), the link frame is at the far end of
            its link; modified (proximal; Craig, Khalil): Rx(alpha) Tx(a) Rz(theta) Tz(d), at the
            near end. Nothing in a table tells them apart, so it must be said.
        joint_types : sequence of str, optional
            Each 'revolute', 'prismatic' or 'fixed' (a constant transform, such as a flange); by
            default all are revolute.
        inertias : sequence, optional
            In the link frames of the table, see `from_body_screws`.
        joint_names, link_names, limits, tool, gravity, name, base_link
            See `from_body_screws`; one for each row, the fixed ones included. The tool is attached
            to the frame of the last row.

        Returns
        -------
        RobotModel

        Raises
        ------
        ModelError
            If the table cannot be used; the message says where and why.

        Warns
        -----
        ModelWarning
            For each doubtful inertia.
        """
        X, B = dh_screws(table, convention, joint_types)
        return cls._from_joints(
            screw_description(
                X, B, None, inertias, joint_names, link_names, limits, tool, name, base_link
            ),
            gravity,
        )

    @classmethod
    def _from_joints(cls, description: RobotDescription, gravity: ArrayLike) -> RobotModel:
        joints = description.joints
        is_chain = all(after.parent == joint.child for joint, after in zip(joints, joints[1:]))
        tip = joints[-1].child if is_chain else None
        model = cls.from_description(description, description.links[0].name, tip, gravity)
        for warning in model.warnings:
            python_warnings.warn(warning, ModelWarning, stacklevel=3)
        return model

    def with_payload(
        self,
        link: str,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia_com: ArrayLike = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ) -> RobotModel:
        """Return the same robot with a rigid body attached to a link.

        Parameters
        ----------
        link : str
            Any link, also one that is rigidly connected to others.
        mass : float
            [kg]
        com : array-like, shape (3,)
            Centre of mass of the payload in the link frame [m].
        inertia_com : array-like, shape (3, 3)
            Inertia of the payload about its centre of mass in link axes [kg m^2]; by default it is
            a point mass.

        Returns
        -------
        RobotModel

        Raises
        ------
        ModelError
            If the link does not exist or no body can have the inertia.

        Warns
        -----
        ModelWarning
            If the inertia is doubtful.
        """
        body, frame = self.link(link)
        _, M_payload, remarks = checked_inertia(
            f'Payload of link {link!r}', (mass, com, inertia_com)
        )
        for remark in remarks:
            python_warnings.warn(remark, ModelWarning, stacklevel=2)
        M_body = self.M_body.copy()
        if body != BASE:
            M_body[body] += transform_inertia(M_payload, frame)
        # What moved no inertia may do so now.
        before, now = (
            massless_joints(self.body_names, self.parent.tolist(), self.B, self.X, M)
            for M in (self.M_body, M_body)
        )
        resolved = set(before) - set(now)
        kept = tuple(remark for remark in self.warnings if remark not in resolved)
        return replace(self, M_body=frozen(M_body), warnings=(*kept, *remarks))

    def with_friction(self, laws: Mapping[str, FrictionLaw | None]) -> RobotModel:
        """Return the same robot with friction in some of its joints.

        `inverse_dynamics` adds the friction efforts and their time derivatives to those of the
        rigid bodies.

        Parameters
        ----------
        laws : mapping of joint name to FrictionLaw or None
            Laws in terms of the velocity of the joint itself, also of a mimic joint, whose
            friction adds to the effort of the joint that it follows. They replace the laws that
            the joints had; None removes one. Joints that are not named stay as they are.

        Returns
        -------
        RobotModel

        Raises
        ------
        ModelError
            If a joint does not exist or what is given is not a friction law.
        """
        if not isinstance(laws, Mapping):
            raise ModelError(
                f'The friction laws are {laws!r}, expected a mapping of joint names to laws.'
            )
        friction = dict(self.friction)
        for name, law in laws.items():
            self._moving_joint(name)
            if law is None:
                friction.pop(name, None)
            elif isinstance(law, FrictionLaw):
                friction[name] = law
            else:
                raise ModelError(
                    f'The friction of joint {name!r} is {law!r}, expected a friction law such as '
                    'Viscous(0.1) + Coulomb(0.5), or None.'
                )
        return replace(self, friction=friction)

    def with_armature(self, armature: Mapping[str, float]) -> RobotModel:
        """Return the same robot with the inertia of rotors in some of its joints.

        `inverse_dynamics` adds armature * acceleration and its time derivatives to the efforts.
        What the rotors do apart from that (gyroscopic effects, and the coupling with the motion of
        the links that carry them) is left out; for high gear ratios it is small.

        Parameters
        ----------
        armature : mapping of joint name to float
            Inertia as the joint sees it: gear_ratio^2 * rotor_inertia [kg m^2], for a prismatic
            joint [kg]. It replaces what the joint had; joints that are not named stay as they are.

        Returns
        -------
        RobotModel

        Raises
        ------
        ModelError
            If a joint does not exist, or a value is negative or not finite.
        """
        if not isinstance(armature, Mapping):
            raise ModelError(
                f'The armature is {armature!r}, expected a mapping of joint names to values.'
            )
        values = self.armature.copy()
        for name, value in armature.items():
            index = self._moving_joint(name)
            try:
                values[index] = value
            except (TypeError, ValueError):
                values[index] = np.nan
            if not (np.isfinite(values[index]) and values[index] >= 0.0):
                raise ModelError(
                    f'The armature of joint {name!r} is {value!r}, expected a finite number that '
                    'is not negative.'
                )
        return replace(self, armature=frozen(values))

    def _moving_joint(self, name: str) -> int:
        if name not in self.body_names:
            raise ModelError(
                f'The model has no moving joint {name!r}; its joints are '
                f'{listed(self.body_names)}.'
            )
        return self.body_names.index(name)

    @property
    def A(self) -> Array:
        """Poses of the bodies in the base frame at zero joint positions, (n_bodies, 4, 4)."""
        poses = self.B.copy()
        for i, p in enumerate(self.parent):
            if p != BASE:
                poses[i] = poses[p] @ poses[i]
        return poses

    @property
    def Y(self) -> Array:
        """Joint screws in the base frame at zero joint positions, Y_i = Ad_{A_i} X_i.

        Shape (n_bodies, 6).
        """
        screws: Array = (se3.Ad(self.A) @ self.X[..., None])[..., 0]
        return screws

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
                f'The model has no link {name!r}; its links are {listed(self.links)}.'
            ) from None

    def joint_order(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Permutation that brings values given in the order `names` into model order.

        `values[..., model.joint_order(names)]` is in the order of `joint_names`.

        Raises
        ------
        JointNameError
            If a name is unknown, missing or repeated.
        """
        if isinstance(names, str):
            raise JointNameError(f'The joint names are {names!r}, expected a sequence of names.')
        return np.array(joint_order(names, self.joint_names), dtype=np.intp)


def _described_friction(
    description: RobotDescription, names: Sequence[str]
) -> dict[str, FrictionLaw]:
    """Friction laws of the named joints from the damping and friction of a description."""
    laws: dict[str, FrictionLaw] = {}
    for joint in description.joints:
        if joint.name not in names or not any(joint.dynamics):
            continue
        damping, friction = joint.dynamics
        if not (np.isfinite(damping) and np.isfinite(friction) and min(joint.dynamics) >= 0.0):
            raise ModelError(
                f'Joint {joint.name!r}: damping {damping} and friction {friction}, expected one '
                'element <dynamics> with finite numbers that are not negative.'
            )
        laws[joint.name] = Viscous(damping) + Coulomb(friction)
    return laws


def _checked_gravity(gravity: ArrayLike) -> Array:
    try:
        vector = np.array(gravity, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f'gravity is {gravity!r}, expected three numbers.') from error
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise ModelError(f'gravity is {gravity!r}, expected three finite numbers [m/s^2].')
    return vector


__all__ = [
    'BASE',
    'DHRow',
    'Inertia',
    'JointLimits',
    'Limits',
    'Link',
    'LinkFrame',
    'ModelWarning',
    'RobotModel',
]
