"""Mechanism: a tree of bodies, each moved by one joint relative to its parent, and closed loops.

Rigidly connected links are one body. Notation as in Kumar and Mueller 2021: body i has the parent
p(i) < i, the zero pose B_i in its parent, the joint screw X_i and the inertia M_i, all in its own
frame, which is the frame of the link behind the joint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import JointNameError, ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.model.inertia import PARAMETERS
from hodyn_ros.model.limits import Limits, MotionLimits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import did_you_mean, joint_order, listed
from hodyn_ros.typing import Array

T = TypeVar('T')
AnyMechanism = TypeVar('AnyMechanism', bound='Mechanism')

BASE = -1
"""Index of the base, which does not move, where the index of a body is expected."""

QuickCall = tuple[tuple[int, ...], tuple[int, ...] | None, Callable[..., bool]]
"""Compiled call for one sample or few: shape of its result for one sample, that of an array that
is written before it, if there is one, and the function, which says whether they are there."""

# How joints move bodies in a tree without loops. A model with loops does not have them, so that
# nothing that knows trees alone can take it for one.
_OF_TREES = ('coordinate', 'multiplier', 'offset')
_MAPPINGS = ('links', 'friction', 'follower_limits')


class LinkFrame(NamedTuple):
    """Body and pose of a link in the tree of bodies.

    Attributes
    ----------
    body : int
        Index of the body that it belongs to, or `BASE`.
    pose : ndarray, shape (4, 4)
        Pose of the link in that body, or in the base link.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> model = RobotModel.from_urdf('two_link')
    >>> body, pose = model.link('tool')
    >>> model.body_names[body], pose[:3, 3]
    ('elbow', array([0.5, 0. , 0. ]))
    """

    body: int
    pose: Array


@dataclass(frozen=True, eq=False)
class Closure:
    """What makes a model with closed loops of a tree.

    Attributes
    ----------
    tree : Mechanism
        The open tree: its N joints are all independent of each other.
    loops : tuple of Loop
    couplings : tuple of Coupling
    independent, dependent : ndarray of int
        The n joints of the tree that are those of the model, and the others.
    rows : ndarray of int
        Of all rows of loops, then couplings, those that do not follow from the others everywhere
        in the same way: as many as there are dependent joints, more if the loops are
        overconstrained.
    start : ndarray, shape (N,)
        Joint positions of the tree at which the loops are closed: the branch of the mechanism.
    unit : ndarray, shape (N,)
        What counts as much as 1 rad: 1 rad of joints that turn, of those that slide a length of
        the mechanism [m].
    remark : str
        On rows that were left out and joints that are held; empty if there are none.
    held : tuple of str
        Joints of rods that may turn about themselves, which couplings hold at the start.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> closure = RobotModel.from_urdf('five_bar').closure
    >>> [closure.tree.joint_names[i] for i in closure.independent]
    ['motor_front', 'motor_back']
    >>> [closure.tree.joint_names[i] for i in closure.dependent], closure.names
    (['knee_front', 'knee_back'], ('toe', 'toe', 'toe', 'toe', 'toe'))
    """

    tree: Mechanism
    loops: tuple[Loop, ...]
    couplings: tuple[Coupling, ...]
    independent: NDArray[np.intp]
    dependent: NDArray[np.intp]
    rows: NDArray[np.intp]
    start: Array = field(repr=False)
    unit: Array = field(repr=False)
    remark: str = ''
    held: tuple[str, ...] = ()

    @property
    def overconstrained(self) -> bool:
        """Whether which rows follow from the others changes with the position."""
        return len(self.rows) > len(self.dependent)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the loop or coupling that each row, also a left out one, belongs to."""
        of_loops = [loop.name for loop in self.loops for _ in loop.rows]
        return (*of_loops, *(coupling.name for coupling in self.couplings))


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Bodies, joints and inertias of a robot; immutable, also its arrays. See `RobotModel`.

    The first attributes are what users need; from `body_names` on they are the tree of n_bodies
    moving bodies that the algorithms work on.

    Attributes
    ----------
    name : str
    joint_names : tuple of str
        The n independent joints, in model order. Mimic joints are not among them.
    joint_types : tuple of str
        Type of each independent joint: revolute, continuous, prismatic or helical.
    base_link : str
    tip_link : str or None
        Last link of a chain, the only moving one that nothing hangs on; None for a tree with
        several such links.
    gravity : ndarray, shape (3,)
        Gravitational acceleration in base link axes [m/s^2].
    limits : MotionLimits
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
    M_base : ndarray, shape (6, 6)
        Inertia of the base link and of what is rigidly attached to it, about its origin; it
        matters where the base moves. NaN if the description has one that cannot be used.
    friction : mapping of str to FrictionLaw
        Friction laws by the name of the joint, see `with_friction`.
    armature : ndarray, shape (n_bodies,)
        Rotor inertia that each body's joint sees [kg m^2] or [kg], see `with_armature`.
    provenance : Provenance
        The description that the model was read from, and what was changed since.
    follower_limits : mapping of str to Limits
        Limits of mimic joints as their description has them.
    closure : Closure or None
        Closed loops, see `with_loops`. With them, `coordinate`, `multiplier` and `offset` do not
        exist: bodies move as the loops let them.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> model = RobotModel.from_urdf('two_link')
    >>> model.joint_names, model.parent.tolist(), list(model.links)
    (('shoulder', 'elbow'), [-1, 0], ['base', 'upper_arm', 'forearm', 'tool'])
    """

    name: str
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    base_link: str
    tip_link: str | None
    gravity: Array
    limits: MotionLimits
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
    M_base: Array
    friction: Mapping[str, FrictionLaw]
    armature: Array
    provenance: Provenance
    follower_limits: Mapping[str, Limits] = field(default_factory=dict)
    closure: Closure | None = None
    quick_calls: dict[tuple[Any, int], QuickCall] = field(init=False, default_factory=dict)
    """Compiled calls by what is computed, see `engine.quick`, and the rows of the first argument;
    they are no part of the model, as `_cache`, and not copied with it."""
    _cache: dict[Callable[[Any], Any], Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name in _MAPPINGS:
            self.__dict__[name] = MappingProxyType({**self.__dict__[name]})
        poses = (frame.pose for frame in self.links.values())
        for value in (*self.__dict__.values(), *self.limits, *poses):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        if self.closure is not None:
            for name in _OF_TREES:
                self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        # Read-only mappings cannot be pickled, and what is derived is not part of the model.
        state = {**self.__dict__, **{name: {**self.__dict__[name]} for name in _MAPPINGS}}
        del state['quick_calls'], state['_cache']
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, quick_calls={}, _cache={})
        self.__post_init__()

    def __getattr__(self, name: str) -> Any:
        # Only what the instance does not have arrives here.
        if name in _OF_TREES:
            raise ModelError(
                f'The model {self.name!r} has closed loops, which is not supported by what was '
                'called; use model.closure.tree with complete_motion(model, motion) there.'
            )
        raise AttributeError(f'{type(self).__name__!r} object has no attribute {name!r}')

    def __repr__(self) -> str:
        remarks = f', {len(self.warnings)} warnings' if self.warnings else ''
        if self.closure is not None:
            count = len(self.closure.loops) + len(self.closure.couplings)
            remarks = f', {count} closed loops{remarks}'
        return (
            f'<{type(self).__name__} {self.name!r}: {self.n_joints} joints, '
            f'{self.n_bodies} bodies, base {self.base_link!r}, tip {self.tip_link!r}{remarks}>'
        )

    @property
    def n_joints(self) -> int:
        """Number n of independent joints."""
        return len(self.joint_names)

    @property
    def n_bodies(self) -> int:
        """Number of moving bodies: independent and mimic joints."""
        return len(self.body_names)

    def kept(self, make: Callable[[Any], T]) -> T:
        """Result of a function of this model, cached with it.

        Parameters
        ----------
        make : callable
            Of the model alone; what it returns must not change. It is known by itself, so that a
            function made anew at every call would be kept as often.
        """
        if make not in self._cache:
            self._cache.setdefault(make, make(self))
        result: T = self._cache[make]
        return result

    @property
    def tree(self: AnyMechanism) -> AnyMechanism:
        """Open tree of all bodies: the model itself, unless it has closed loops."""
        return self if self.closure is None else cast(AnyMechanism, self.closure.tree)

    def closed(self: AnyMechanism, closure: Closure) -> AnyMechanism:
        """Return the model that a closure makes of this tree."""
        joints = closure.independent
        return replace(
            self,
            joint_names=tuple(self.joint_names[j] for j in joints),
            joint_types=tuple(self.joint_types[j] for j in joints),
            limits=MotionLimits._make(
                [*(values[joints] for values in self.limits[:-1]), self.limits[-1]]
            ),
            closure=closure,
        )

    def with_fields(self: AnyMechanism, **fields: Any) -> AnyMechanism:
        """Return the same robot with other attributes, which are not checked.

        Parameters
        ----------
        **fields
            Attributes of the tree; arrays are kept, read-only from then on.
        """
        if self.closure is None:
            return replace(self, **fields)
        tree = replace(self.tree, **fields)
        return tree.closed(replace(self.closure, tree=tree))

    @property
    def inertial_parameters(self) -> Array:
        """Parameters of the bodies in which the efforts are linear, shape (10 * n_bodies,).

        Of each body the mass [kg], the first moments mass * centre of mass x, y, z [kg m], and
        the inertia xx, xy, xz, yy, yz, zz about the origin of its frame [kg m^2], all in the axes
        of this frame, that of the link behind its joint. See `regressor`.
        """
        return self.M_body[PARAMETERS].ravel()

    def moving_joint(self, name: str) -> int:
        """Index of the body that a joint moves; a `ModelError` says which joints there are."""
        if name not in self.body_names:
            raise ModelError(
                f'The model has no moving joint {name!r}{did_you_mean(name, self.body_names)}; '
                f'its joints are {listed(self.body_names)}.'
            )
        return self.body_names.index(name)

    @property
    def A(self) -> Array:
        """Poses of the bodies in the base frame at q = 0, shape (n_bodies, 4, 4)."""
        poses = self.B.copy()
        for i, p in enumerate(self.parent):
            if p != BASE:
                poses[i] = poses[p] @ poses[i]
        return poses

    @property
    def Y(self) -> Array:
        """Joint screws Y_i = Ad_{A_i} X_i in the base frame at q = 0, shape (n_bodies, 6)."""
        screws: Array = (se3.Ad(self.A) @ self.X[..., None])[..., 0]
        return screws

    def link(self, name: str) -> LinkFrame:
        """Body and pose of a link.

        Raises
        ------
        ModelError
            If there is no such link; the message says which there are.
        """
        if not isinstance(name, str):
            raise ModelError(
                f'The link is of type {type(name).__name__}, expected the name of one; its place '
                'among the arguments may be another.'
            )
        try:
            return self.links[name]
        except KeyError:
            raise ModelError(
                f'The model has no link {name!r}{did_you_mean(name, self.links)}; its links are '
                f'{listed(self.links)}.'
            ) from None

    def bodies_to(self, link: str) -> list[int]:
        """Indices of the bodies from the base to a link, outwards; none for links of the base."""
        return [*self.ancestors(self.link(link).body)][::-1]

    def ancestors(self, body: int) -> Iterator[int]:
        """Indices of a body and of those before it, towards the base; none for the base."""
        while body != BASE:
            yield body
            body = int(self.parent[body])

    def joint_order(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Permutation that brings values given in the order `names` into model order.

        `values[..., model.joint_order(names)]` is in the order of `joint_names`. Unknown, missing
        and repeated names are refused with a `JointNameError`.
        """
        if isinstance(names, str):
            raise JointNameError(
                f'The joint names are {names!r}, expected a sequence of names.'
            )
        return np.array(joint_order(names, self.joint_names), dtype=np.intp)
