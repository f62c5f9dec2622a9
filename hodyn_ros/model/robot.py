"""The robot model: a tree of bodies, each moved by one joint relative to its parent.

Rigidly connected links are one body. Notation as in Kumar and Mueller 2021: body i has the parent
p(i) < i, the zero pose B_i in its parent, the joint screw X_i and the inertia M_i, all in its own
frame, which is the frame of the link behind the joint.
"""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import (
    EARTH,
    Assembly,
    RobotDescription,
    checked_armature,
    described_friction,
    massless_joints,
    naming_file,
)
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.model.inertia import (
    GivenInertia,
    Rotor,
    checked_inertia,
    parametric_inertia,
    remarks_on_inertia,
)
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.loops_in_xml import GivenLoops, given_loops, remarks_on_open
from hodyn_ros.model.mechanism import BASE as BASE
from hodyn_ros.model.mechanism import LinkFrame, Mechanism
from hodyn_ros.model.screws import (
    GivenRow,
    body_fixed_from_spatial,
    checked_changes,
    checked_gravity,
    checked_poses,
    checked_screws,
    dh_screws,
    screw_description,
)
from hodyn_ros.model.urdf import read_urdf
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

T = TypeVar('T')


class ModelWarning(UserWarning):
    """A robot description with doubtful values that is used all the same.

    Examples
    --------
    >>> import warnings
    >>> from hodyn_ros import ModelWarning, RobotModel
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore', ModelWarning)
    ...     panda = RobotModel.from_urdf('panda', tip_link='panda_link4')
    >>> panda.warnings[0]
    "Joint 'panda_joint5' lies outside the chain ... with the 3.62802 kg behind it."
    """


class RobotModel(Mechanism):
    """Robot that algorithms compute with: a `Mechanism` and the ways to make and change one.

    Make one with `from_urdf`, `from_mjcf`, `from_sdf`, `from_screws`, `from_body_screws` or
    `from_dh`. Its attributes are those of `Mechanism`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, gravity_effort
    >>> heavy = RobotModel.from_urdf('two_link').with_payload('tool', mass=1.0)
    >>> gravity_effort(heavy, [[0.0, 0.0]]).round(2)
    array([[55.92, 14.72]])
    """

    def __new__(cls, *given: Any, **_: Any) -> RobotModel:
        """Refuse what is meant for `from_urdf` and its like."""
        if len(given) == 1:
            raise ModelError(
                f'RobotModel({given[0]!r}) makes no model: RobotModel.from_urdf({given[0]!r}) '
                'reads one, from_mjcf and from_sdf those of other languages.'
            )
        return super().__new__(cls)

    def warm_up(self, order: int = 2, *calls: Callable[[], object]) -> None:
        """Compile code that computations would otherwise compile when it is first asked for.

        After it, `inverse_dynamics` with orders up to this one runs compiled code from the first
        call on, not after one has been made in the background, beside a control loop.

        Parameters
        ----------
        order : int
            Highest derivative of the efforts that will be asked for. Above 5, NumPy computes.
        calls : callable
            Further computations to prepare, as functions without arguments that are called once:
            `model.warm_up(2, lambda: forward_kinematics(model, motion, 'tool', 'hybrid'))`, for
            this link, expression and number K of derivatives, whatever the numbers.
        """
        # The engine imports models, and is therefore loaded when it is used.
        from hodyn_ros.engine.engine import warm_up

        if self.closure is not None:
            from hodyn_ros.kinematics.closed_loops import prepare

            prepare(self)
        warm_up(self, order, calls)

    @classmethod
    def from_urdf(
        cls,
        xml_or_path: str | bytes | os.PathLike[str],
        base_link: str | None = None,
        tip_link: str | None = None,
        gravity: ArrayLike = EARTH,
        joint_friction: bool = False,
        *,
        xacro_arguments: Mapping[str, str] | None = None,
        allow_impossible_inertia: bool = False,
        loops: GivenLoops | None = None,
        independent: Sequence[str] | None = None,
        start: Mapping[str, float] | None = None,
    ) -> RobotModel:
        """Read a robot from a URDF.

        Without `tip_link` the model is the whole tree behind `base_link` (or the root link); the
        last link of a tree that does not branch is its tip. With
        it, only the joints between base and tip move: links that are rigidly attached to the chain
        keep their inertia, side branches behind a moving joint are left out with a warning, and
        only there planar, floating and unknown joint types are accepted.

        Closed loops are read as URDF+ and Gazebo write them.

        Parameters
        ----------
        xml_or_path : str, bytes or path-like
            XML text, the path of a URDF or xacro file, or the name of a robot of this package
            (``'panda'``, ``'panda_with_hand'``, ``'fr3'``, ``'fr3_with_hand'``, ``'iiwa14'``,
            ``'ur5e'``, ``'ur10e'``, ``'two_link'``; with closed loops ``'parallel_ankle'``,
            ``'five_bar'``, ``'delta'``, ``'palletiser'``) or an installed one (``hodyn info
            --help``), such as ``'ur5'`` of example-robot-data. A path-like object is a path in any
            case.
        base_link, tip_link : str, optional
            The base does not move.
        gravity : array-like, shape (3,)
            Gravitational acceleration in base link axes [m/s^2].
        joint_friction : bool
            Whether `<dynamics damping friction>` becomes `Viscous(damping) + Coulomb(friction)`.
            By default it is ignored: most descriptions hold settings of a simulator there.
        xacro_arguments : mapping of str to str, optional
            Arguments of a xacro file, which the package xacro expands.
        allow_impossible_inertia : bool
            Whether an inertia tensor with a negative principal moment is used, with a warning;
            by default it is refused. What rests on a positive mass matrix (simulation, control,
            time scaling) may then fail.
        loops : sequence of Loop or Coupling, str or path-like, optional
            More loops than the description has, or a YAML file (or its text) that has them as
            closed_loop, type and name_mot. ``'open'`` leaves all of them open, as an empty
            sequence does.
        independent : sequence of str, optional
        start : mapping of str to float, optional
            As in `with_loops`, by default what the description says.

        Raises
        ------
        ModelError
            If the description cannot be used; the message says where and why.

        Warns
        -----
        ModelWarning
            For each doubtful value; they are also listed in the attribute `warnings`.
        """
        description, ends = read_urdf(xml_or_path, xacro_arguments), (base_link, tip_link)
        closing = loops, independent, start
        return cls._read(
            description, joint_friction, *ends, gravity, *closing, allow_impossible_inertia
        )

    @classmethod
    def from_mjcf(
        cls,
        xml_or_path: str | os.PathLike[str],
        tip_link: str | None = None,
        joint_friction: bool = False,
        *,
        gravity: ArrayLike | None = None,
        loops: GivenLoops | None = None,
        independent: Sequence[str] | None = None,
        start: Mapping[str, float] | None = None,
    ) -> RobotModel:
        """Read a robot from an MJCF, with mujoco: `pip install 'hodyn_ros[simulation]'`.

        Bodies are links, the base is the world, or a body that moves freely. Gravity, armature,
        ranges of joints and of their forces, and equalities of points, poses and joints are read.

        Parameters
        ----------
        xml_or_path : str or path-like
            XML text, or the path of a file.
        tip_link, joint_friction, loops, independent, start
            As in `from_urdf`. By default joints with actuators are independent.
        gravity : array-like, shape (3,), optional
            In base link axes [m/s^2]; by default that of the description.

        Raises
        ------
        ModelError
            If mujoco is not installed or refuses it, or the robot has ball joints, other
            equalities, or several bodies that move freely.

        Warns
        -----
        ModelWarning
            As `from_urdf`, for a base that moves freely, and for springs of joints and
            compensation of gravity, which are not read.
        """
        from hodyn_ros.model.mjcf_reader import read_mjcf  # few read an MJCF

        description, ends = read_mjcf(xml_or_path), (None, tip_link)
        return cls._read(
            description, joint_friction, *ends, gravity, loops, independent, start
        )

    @classmethod
    def from_sdf(
        cls,
        xml_or_path: str | bytes | os.PathLike[str],
        base_link: str | None = None,
        tip_link: str | None = None,
        gravity: ArrayLike | None = None,
        joint_friction: bool = False,
        *,
        loops: GivenLoops | None = None,
        independent: Sequence[str] | None = None,
        start: Mapping[str, float] | None = None,
    ) -> RobotModel:
        """Read a robot from an SDF, whose links may have several parents: they close loops.

        The base is the world if a joint is tied to it, else the canonical link. At zero position,
        where the description has its links, the loops are closed.

        Parameters
        ----------
        xml_or_path : str, bytes or path-like
            XML text, or the path of a file, with one model.
        base_link, tip_link, joint_friction, loops, independent, start
            As in `from_urdf`.
        gravity : array-like, shape (3,), optional
            In base link axes [m/s^2]; by default that of the world around the model, or 9.81
            against z of the world.

        Raises
        ------
        ModelError
            If the description cannot be used; the message says where and why.

        Warns
        -----
        ModelWarning
            As `from_urdf`, for links without inertia, and for springs of joints, which are not
            read.
        """
        from hodyn_ros.model.sdf import read_sdf  # few read an SDF

        description, ends = read_sdf(xml_or_path, base_link), (base_link, tip_link)
        return cls._read(
            description, joint_friction, *ends, gravity, loops, independent, start
        )

    @classmethod
    def _read(
        cls, description: RobotDescription, joint_friction: bool, *options: Any
    ) -> RobotModel:
        """Model of `from_description` with its friction; the caller's caller sees its warnings."""
        model = cls.from_description(description, *options)
        if joint_friction:
            model = model.with_friction(described_friction(description, model.body_names))
        _warn(model.warnings)
        return model

    @classmethod
    def from_description(
        cls,
        description: RobotDescription,
        base_link: str | None = None,
        tip_link: str | None = None,
        gravity: ArrayLike | None = None,
        loops: GivenLoops | None = None,
        independent: Sequence[str] | None = None,
        start: Mapping[str, float] | None = None,
        allow_impossible_inertia: bool = False,
    ) -> RobotModel:
        """Assemble a model from links and joints; see `from_urdf`, but nothing is printed.

        Parameters
        ----------
        description : RobotDescription
        base_link, tip_link : str, optional
            By default the root of the tree, and the tip of the description.
        gravity : array-like, shape (3,), optional
            Gravitational acceleration in base link axes [m/s^2]; by default that of the
            description.
        loops, independent, start, allow_impossible_inertia
            As in `from_urdf`.

        Raises
        ------
        ModelError
            If the description or the gravity cannot be used.
        """
        vector = checked_gravity(description.gravity if gravity is None else gravity)
        with naming_file(description.provenance.file):
            tip_link = tip_link or description.tip_link
            ends = base_link, tip_link
            fields = Assembly(description, *ends, allow_impossible_inertia).fields()
            changes = (
                [f'up to {tip_link}'] if tip_link and description.provenance.digest else []
            )
            if tuple(vector) != EARTH:
                changes.append(f'gravity {" ".join(f"{x:g}" for x in vector)}')
            fields['provenance'] = fields['provenance'].changed(*changes)
            tree = cls(gravity=vector, **fields)
            if loops is None and not description.loops and not description.independent:
                return tree
            return _with_described_loops(tree, description, loops, independent, start or {})

    @classmethod
    def from_screws(
        cls,
        Y: ArrayLike,
        A: ArrayLike,
        *,
        parents: Sequence[int] | None = None,
        **options: Any,
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
        parents, **options
            See `from_body_screws`, also for what is returned and raised: inertias, joint_names,
            link_names, limits, tool, gravity, name, base_link.
        """
        X, B = body_fixed_from_spatial(Y, A, parents)
        return cls._read(screw_description(X, B, parents=parents, **options), False)

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
        gravity: ArrayLike = EARTH,
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
            (lower, upper, velocity, effort) of each joint, also followed by (acceleration, jerk).
        tool : array-like, shape (4, 4), optional
            Pose of a link named tool in the last body.
        gravity : array-like, shape (3,)
            Gravitational acceleration in base axes [m/s^2].
        name, base_link : str

        Returns
        -------
        RobotModel
            In the order of the screws. The tip of a chain is its last link, or the tool.

        Raises
        ------
        ModelError
            If a shape or value cannot be used; the message says which.

        Warns
        -----
        ModelWarning
            For each doubtful inertia.
        """
        X = checked_screws('X', X)
        description = screw_description(
            X,
            checked_poses('B', B, len(X)),
            parents=parents,
            inertias=inertias,
            joint_names=joint_names,
            link_names=link_names,
            limits=limits,
            tool=tool,
            gravity=gravity,
            name=name,
            base_link=base_link,
        )
        return cls._read(description, False)

    @classmethod
    def from_dh(
        cls,
        table: Sequence[GivenRow],
        convention: str,
        *,
        joint_types: Sequence[str] | None = None,
        **options: Any,
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
        **options
            See `from_body_screws`, also for what is returned and raised: inertias (in the link
            frames of the table), joint_names, link_names and limits, one for each row, the fixed
            ones included, tool (attached to the frame of the last row), gravity, name, base_link.
        """
        X, B = dh_screws(table, convention, joint_types)
        return cls._read(screw_description(X, B, **options), False)

    def with_loops(
        self,
        loops: Sequence[Loop | Coupling],
        independent: Sequence[str] | None = None,
        start: Mapping[str, float] | None = None,
    ) -> RobotModel:
        """Return a parallel mechanism: this tree with its loops closed.

        The joints of the model are the independent ones: motions, limits and efforts are theirs.
        The other joints follow, on the branch that the start belongs to.

        Parameters
        ----------
        loops : sequence of Loop or Coupling
            All of them.
        independent : sequence of str, optional
            Names of the joints with motors, as many as the mechanism has degrees of freedom; by
            default the first joints of the tree that determine the others. Rods between balls that
            may still turn about themselves are held.
        start : mapping of str to float, optional
            Positions of joints [rad] or [m] near which the loops are closed; others are zero.

        Raises
        ------
        ModelError
            If loops do not fit the tree, cannot be closed, are singular at the start or leave no
            motion, or the independent joints do not determine the others; the message says by how
            much and which.

        Returns
        -------
        RobotModel
            Its `closure` has the tree and what closes it, and a remark on rows that follow from
            others, as in planar loops, and on rods that are held.
        """
        # Kinematics imports models, and is therefore loaded when it is used.
        from hodyn_ros.kinematics.closing import close_loops

        return self.closed(close_loops(self, loops, independent, start))

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

        Raises
        ------
        ModelError
            If the link does not exist or no body can have the inertia; doubtful ones warn.

        Returns
        -------
        RobotModel
        """
        body, frame = self.link(link)
        owner, given = f'Payload of link {link!r}', (mass, com, inertia_com)
        M_payload, remarks = checked_inertia(owner, given)
        M_body, M_base = self.M_body.copy(), self.M_base.copy()
        own = M_base if body == BASE else M_body[body]
        own += se3.transform_inertia(M_payload, frame)
        change = f'payload of {mass:g} kg on {link}'
        return self._with_inertia(M_body, remarks, change, M_base=M_base)

    def with_inertial_parameters(self, parameters: ArrayLike) -> RobotModel:
        """Return the same robot with other `inertial_parameters`, such as identified ones.

        Raises
        ------
        ModelError
            If they have a wrong shape or are not finite.

        Warns
        -----
        ModelWarning
            For impossible inertias, which are used as given. Inverse dynamics is right for such
            numbers, but the mass matrix and the kinetic energy may be negative.
        """
        values = finite_array('The inertial parameters', parameters, ModelError)
        if values.shape != (10 * self.n_bodies,):
            raise ModelError(
                f'The inertial parameters have shape {values.shape}, expected '
                f'({10 * self.n_bodies},), ten for each body.'
            )
        M_body = parametric_inertia(values.reshape(-1, 10))
        return self._with_inertia(
            M_body, self._remarks(M_body), 'other inertial parameters'
        )

    def _with_inertia(
        self, M_body: Array, remarks: Sequence[str], change: str, **fields: Any
    ) -> RobotModel:
        """Other inertias with remarks on them, in place of remarks that hold no longer."""
        _warn(remarks)
        before, now = self._remarks(self.M_body), self._remarks(M_body)
        kept = (remark for remark in self.warnings if remark not in before or remark in now)
        return self.with_fields(
            M_body=M_body,
            warnings=tuple(dict.fromkeys((*kept, *remarks))),
            provenance=self.provenance.changed(change),
            **fields,
        )

    def _remarks(self, M_body: Array) -> list[str]:
        """Remarks on inertias (n_bodies, 6, 6) and on joints that move no inertia."""
        remarks = massless_joints(
            self.body_names, self.parent.tolist(), self.B, self.X, M_body
        )
        for name, M in zip(self.body_names, M_body):
            remarks += remarks_on_inertia(f'The body behind joint {name!r}', M)
        return remarks

    def changed(self, **fields: Any) -> RobotModel:
        """Return the same robot with other attributes, as `Mechanism` has them.

        Parameters
        ----------
        **fields
            Arrays of the same shape, `limits`, friction laws by joints, `follower_limits`,
            `tip_link`, `name`, `links`, `warnings` or `provenance`; of a robot with closed loops,
            those of its tree.

        Raises
        ------
        ModelError
            If there is no such attribute, or no robot can have it.

        Examples
        --------
        >>> from hodyn_ros import RobotModel
        >>> RobotModel.from_urdf('two_link').changed(gravity=(0.0, 0.0, -1.62)).gravity
        array([ 0.  ,  0.  , -1.62])
        """
        return self.with_fields(**checked_changes(self.tree, fields))

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

        Raises
        ------
        ModelError
            If a joint does not exist or what is given is not a friction law.
        """
        if not isinstance(laws, Mapping):
            raise ModelError(
                f'The friction laws are {laws!r}, expected a mapping of joint names to laws.'
            )
        for name in laws:
            self.moving_joint(name)
        both = {**self.friction, **laws}
        friction = {name: law for name, law in both.items() if law is not None}
        changes = (f'friction of {listed(laws)}',) if laws else ()
        provenance = self.provenance.changed(*changes)
        return self.changed(friction=friction, provenance=provenance)

    def with_armature(self, armature: Mapping[str, float]) -> RobotModel:
        """Return the same robot with the inertia of rotors in some of its joints.

        `inverse_dynamics` adds armature * acceleration and its time derivatives to the efforts.
        What the rotors do apart from that (gyroscopic effects, and the coupling with the motion of
        the links that carry them) is left out, see `with_rotors`.

        Parameters
        ----------
        armature : mapping of joint name to float
            Inertia as the joint sees it: gear_ratio^2 * rotor_inertia [kg m^2], for a prismatic
            joint [kg]. It replaces what the joint had; joints that are not named stay as they are.

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
            index = self.moving_joint(name)
            values[index] = checked_armature(name, value)
        changes = (f'armature of {listed(armature)}',) if armature else ()
        provenance = self.provenance.changed(*changes)
        return self.with_fields(armature=values, provenance=provenance)

    def with_rotors(self, rotors: Sequence[Rotor]) -> RobotModel:
        """Return the same robot with rotors that are bodies, named <joint>_rotor.

        A rotor that is balanced and symmetric differs from a part of its carrier by how it spins
        alone: its body has no mass, and about its axis the inertia. It follows its joint as a
        mimic joint does.

        Parameters
        ----------
        rotors : sequence of Rotor
            At most one a joint, whose armature they replace. Their masses are those of the links.

        Raises
        ------
        ModelError
            If a joint or link does not exist, a joint has a rotor, or a number cannot be used.

        Returns
        -------
        RobotModel
            With the same joints.
        """
        model = self
        for rotor in rotors:
            model = model._with_rotor(rotor)
        return model

    def _with_rotor(self, rotor: Rotor) -> RobotModel:
        tree = self.tree
        i, name = tree.moving_joint(rotor.joint), f'{rotor.joint}_rotor'
        what = f'The rotor of joint {rotor.joint!r}'
        if name in tree.body_names or name in tree.links:
            raise ModelError(f'{what}: there is a joint or link {name!r} already.')
        (body, pose), given = LinkFrame(int(tree.parent[i]), tree.B[i]), rotor.axis
        if rotor.carrier is not None:
            body, pose = tree.link(rotor.carrier)
        elif given is None:
            given = tree.X[i, :3]
        axis = finite_array(f'{what}: the axis', () if given is None else given, ModelError)
        if axis.shape != (3,) or not axis.any():
            raise ModelError(f'{what}: the axis is {given!r}, expected a direction.')
        J = checked_number(f'{what}: the inertia', rotor.inertia, ModelError, least=0.0)
        ratio = checked_number(f'{what}: the ratio', rotor.ratio, ModelError)
        X = np.append(pose[:3, :3] @ axis / np.linalg.norm(axis), np.zeros(3))
        spin, M_base = J * np.outer(X, X), tree.M_base.copy()
        of_rotor = {
            'parent': body,
            'coordinate': tree.coordinate[i],
            'multiplier': ratio * tree.multiplier[i],
            'offset': ratio * tree.offset[i],
            'B': np.eye(4),
            'X': X,
            'M_body': spin,
            'armature': 0.0,
        }
        own = {key: np.array(getattr(tree, key)) for key in of_rotor}
        carrier = M_base if body == BASE else own['M_body'][body]
        carrier -= spin * rotor.is_in_carrier
        own['armature'][i] = 0.0
        return self.with_fields(
            **{key: np.concatenate([own[key], [new]]) for key, new in of_rotor.items()},
            M_base=M_base,
            body_names=(*tree.body_names, name),
            links={**tree.links, name: LinkFrame(len(tree.parent), np.eye(4))},
            provenance=self.provenance.changed(f'rotor of {rotor.joint}'),
        )


def _warn(remarks: Sequence[str]) -> None:
    """Warn of what the caller's caller has asked a user's call for."""
    for remark in remarks:
        python_warnings.warn(remark, ModelWarning, stacklevel=4)


def _with_described_loops(
    tree: RobotModel,
    description: RobotDescription,
    given: GivenLoops | None,
    independent: Sequence[str] | None,
    start: Mapping[str, float],
) -> RobotModel:
    """Close the loops of a description and those that are given; see `RobotModel.from_urdf`."""
    added, motors = given_loops(given, description)
    found = (*description.loops, *added)
    if given is not None and found:
        changes = 'other loops' if added else 'loops left open'
        tree = tree.with_fields(provenance=tree.provenance.changed(changes))
    if not found or (given is not None and not added):
        remarks = remarks_on_open(tree.joint_names, description)
        return tree.with_fields(warnings=(*tree.warnings, *remarks))
    known = [name for name in description.independent if name in tree.joint_names]
    start = {key: x for key, x in description.start.items() if key in tree.joint_names} | {
        **start
    }
    return _closed(tree, found, independent or motors or known or None, start)


def _closed(
    tree: RobotModel,
    described: Sequence[Loop | Coupling | ModelError],
    independent: Sequence[str] | None,
    start: Mapping[str, float],
) -> RobotModel:
    """Close loops that are described; an error says how the tree alone is read."""
    loops: list[Loop | Coupling] = []
    try:
        for item in described:
            if isinstance(item, ModelError):
                raise item
            loops.append(item)
        return tree.with_loops(loops, independent, start)
    except ModelError as error:
        raise ModelError(
            f"{error} With loops='open' the tree alone is read; hodyn has --config loops:=open "
            'for that, nodes the parameter loops with the value open.'
        ) from error
