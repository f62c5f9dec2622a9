"""Joint screws: (e, x cross e) turns about the unit axis e through x, (0, e) moves along e.

A helical joint does both: (e, x cross e + h e) with the pitch h. With the zero poses of the bodies
they are all that a model needs of its kinematics. Source: Mueller 2021, section II.

Tables of Denavit-Hartenberg parameters give them in one of two conventions. Standard (distal):
frame i sits at the far end of link i, on the axis of joint i+1, and
T = Rz(theta) Tz(d) Tx(a) Rx(alpha). Source: Spong, Hutchinson and Vidyasagar, Robot Modeling and
Control, section 3.2. Modified (proximal): frame i sits at the near end of link i, on the axis of
joint i, and T = Rx(alpha) Tx(a) Rz(theta) Tz(d). Source: Craig, Introduction to Robotics, section
3.6. Khalil and Kleinfinger write d for a and r for d, and mean the same transform: its translation
is (a, -d sin(alpha), d cos(alpha)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice, exact_poses, finite_array, first_not_finite
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.assembly import EARTH, Joint, Link, RobotDescription
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.model.inertia import GivenInertia, checked_inertia
from hodyn_ros.model.limits import Limits, MotionLimits
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.typing import Array

T = TypeVar('T')

# Axes from printed tables are rounded; what is further off is a mistake.
AXIS_TOLERANCE = 1e-3

CONVENTIONS = ('standard', 'modified')
DH_JOINT_TYPES = ('revolute', 'prismatic', 'fixed')


class DHRow(NamedTuple):
    """Parameters of one joint, in either convention.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, forward_kinematics
    >>> from hodyn_ros.model import DHRow
    >>> masses = [(3.0,), (2.0,)]
    >>> table = [DHRow(a=0.7), DHRow(a=0.5)]
    >>> arm = RobotModel.from_dh(table, 'standard', inertias=masses)
    >>> pose, _ = forward_kinematics(arm, [[0.0, np.pi / 2]])
    >>> np.round(pose[:3, 3], 3)
    array([0.7, 0.5, 0. ])
    """

    a: float = 0.0
    """Length of the link [m] (Khalil: d)."""
    alpha: float = 0.0
    """Twist of the link [rad]."""
    d: float = 0.0
    """Offset along the joint axis [m] (Khalil: r); of a prismatic joint: at q = 0."""
    theta: float = 0.0
    """Angle about the joint axis [rad]; of a revolute joint: at q = 0."""


GivenRow = DHRow | Mapping[str, float] | Sequence[float]


def checked_screws(what: str, screws: ArrayLike) -> Array:
    """Joint screws (n, 6) with axes of exactly unit length and without rounding for a pitch.

    Refused are zero screws and axes that are not of unit length within 1e-3.

    Parameters
    ----------
    what : str
        What the screws are; it begins the message.
    screws : array-like, shape (n, 6)
        (e, x cross e + h e) or (0, e). Axes within the tolerance are scaled to unit length, and
        with them the whole screw.

    Raises
    ------
    ModelError
        If the shape is another, a number is not finite, or a screw is refused.
    """
    X = finite_array(what, screws, ModelError)
    if X.ndim != 2 or X.shape[1] != 6 or len(X) == 0:
        raise ModelError(
            f'{what} has shape {X.shape}, expected (n, 6): one screw for each joint.'
        )
    for i, screw in enumerate(X):
        length = float(np.linalg.norm(screw[:3]))
        if length < se3.PITCH_TOLERANCE:
            screw[:3] = 0.0
            length = float(np.linalg.norm(screw[3:]))
        if length == 0.0:
            raise ModelError(f'{what}[{i}] is zero, expected a joint screw.')
        if abs(length - 1.0) > AXIS_TOLERANCE:
            raise ModelError(
                f'{what}[{i}] = {screw.tolist()} has an axis of length {length:.6g}, expected 1: '
                '(e, x cross e + h e) for a joint that turns, (0, e) for one that moves along e.'
            )
        screw /= length
        if screw[:3].any() and se3.pitches(screw[None])[0] == 0.0:
            screw[3:] -= (screw[:3] @ screw[3:]) * screw[:3]
    return X


def checked_poses(what: str, poses: ArrayLike, n: int) -> Array:
    """Poses of n bodies, shape (n, 4, 4), with exact rotations; see `checks.exact_poses`.

    A `ModelError`, whose message begins with `what` they are, says what is wrong.
    """
    C = finite_array(what, poses, ModelError)
    if C.shape != (n, 4, 4):
        raise ModelError(
            f'{what} has shape {C.shape}, expected {(n, 4, 4)}: one pose for each body.'
        )
    return exact_poses(what, C, ModelError)


def checked_gravity(gravity: ArrayLike) -> Array:
    """Gravitational acceleration (3,), a copy; what is none is refused with a `ModelError`."""
    vector = finite_array('gravity', gravity, ModelError)
    if vector.shape != (3,):
        raise ModelError(f'gravity is {gravity!r}, expected three numbers [m/s^2].')
    return vector


def checked_changes(tree: Mechanism, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that a robot gets in place of its own; see `RobotModel.changed`.

    Parameters
    ----------
    tree : Mechanism
        The robot without closed loops.
    fields : mapping of str to object

    Returns
    -------
    dict of str to object

    Raises
    ------
    ModelError
        If there is no such attribute, or no robot can have it.
    """
    found = {}
    for name, value in fields.items():
        if name not in _CHANGES:
            raise ModelError(
                f'{name} of a robot cannot be changed{did_you_mean(name, _CHANGES)}, expected one '
                f'of {listed(_CHANGES)}.'
            )
        found[name] = _CHANGES[name](tree, name, value)
    return found


def _of_type(kind: type, expected: str) -> _Check:
    """Check of the type of an attribute."""

    def checked(tree: Mechanism, name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise ModelError(f'{name} is {value!r}, expected {expected}.')
        return value

    return checked


def _changed_limits(tree: Mechanism, name: str, value: Any) -> MotionLimits:
    """Limits of all joints, each of which contradicts itself in nothing."""
    if not isinstance(value, MotionLimits):
        raise ModelError(f'{name} is {value!r}, expected MotionLimits.')
    if value.lower.shape != (tree.n_joints,):
        raise ModelError(
            f'{name} has columns of the shape {value.lower.shape}, expected ({tree.n_joints},), '
            f'for {listed(tree.joint_names)}.'
        )
    for j, joint in enumerate(tree.joint_names):
        own = Limits(*(float(getattr(value, what)[j]) for what in Limits._fields))
        own.check(f'Joint {joint!r}')
    return value


def _changed_friction(tree: Mechanism, name: str, value: Any) -> Mapping[str, FrictionLaw]:
    """Friction laws by joints."""
    if not isinstance(value, Mapping):
        raise ModelError(
            f'{name} is {value!r}, expected friction laws by the names of joints.'
        )
    for joint, law in value.items():
        tree.moving_joint(joint)
        if not isinstance(law, FrictionLaw):
            raise ModelError(
                f'The friction of joint {joint!r} is {law!r}, expected one of the friction laws, '
                'such as Viscous(0.1) + Coulomb(0.5).'
            )
    return value


def _changed_tip(tree: Mechanism, name: str, value: Any) -> str | None:
    """Link that the robot has, or none."""
    if value is not None:
        tree.link(value)
    return value  # type: ignore[no-any-return]


def _of_bodies(tree: Mechanism, name: str, value: Any) -> Array:
    """A finite number for each body; an armature is not negative."""
    array = finite_array(name, value, ModelError)
    if array.shape != (tree.n_bodies,) or (name == 'armature' and (array < 0.0).any()):
        least = ' from 0 on, see `with_armature`' if name == 'armature' else ''
        raise ModelError(
            f'{name} is {value!r}, expected a number for each of {tree.n_bodies} bodies{least}.'
        )
    return array


def _changed_screws(tree: Mechanism, name: str, value: Any) -> Array:
    """A joint screw for each body, of the same type as before."""
    X = checked_screws(name, value)
    if len(X) != tree.n_bodies:
        raise ModelError(f'{name} has {len(X)} joint screws, expected {tree.n_bodies}.')
    for joint, before, after in zip(tree.body_names, tree.X, X):
        kinds = [_joint_type(screw) for screw in (before, after)]
        if len({*kinds}) > 1:
            raise ModelError(
                f'{name}: joint {joint!r} is {kinds[0]}, expected the screw of such a joint; it '
                f'is that of a {kinds[1]} one.'
            )
    return X


def _changed_inertias(tree: Mechanism, name: str, value: Any) -> Array:
    """Inertia matrices that bodies can have: of each, or of the base."""
    owners = [f'The body behind joint {joint!r}' for joint in tree.body_names]
    array = finite_array(name, value, ModelError)
    shape = (6, 6) if name == 'M_base' else (tree.n_bodies, 6, 6)
    if array.shape != shape:
        raise ModelError(f'{name} has shape {array.shape}, expected {shape}.')
    whom = [f'The base {tree.base_link!r}'] if name == 'M_base' else owners
    advice = 'RobotModel.with_inertial_parameters uses it as given.'
    for owner, M in zip(whom, array.reshape(-1, 6, 6)):
        checked_inertia(owner, M, advice)
    return array


_Check = Callable[[Mechanism, str, Any], Any]
_CHANGES: dict[str, _Check] = {
    'name': _of_type(str, 'a text'),
    'tip_link': _changed_tip,
    'gravity': lambda tree, name, value: checked_gravity(value),
    'limits': _changed_limits,
    'links': _of_type(Mapping, 'link frames by the names of links'),
    'warnings': _of_type(tuple, 'a tuple of texts'),
    'multiplier': _of_bodies,
    'offset': _of_bodies,
    'B': lambda tree, name, value: checked_poses(name, value, tree.n_bodies),
    'X': _changed_screws,
    'M_body': _changed_inertias,
    'M_base': _changed_inertias,
    'friction': _changed_friction,
    'armature': _of_bodies,
    'provenance': _of_type(Provenance, 'a Provenance'),
    'follower_limits': _of_type(Mapping, 'limits by the names of joints'),
}
"""Attributes that `RobotModel.changed` takes, and their checks."""


def body_fixed_from_spatial(
    Y: ArrayLike, A: ArrayLike, parents: Sequence[int] | None
) -> tuple[Array, Array]:
    """Body-fixed screws and relative zero poses from spatial screws and absolute poses.

    X_i = Ad_{A_i}^-1 Y_i and B_i = A_p(i)^-1 A_i, from the two forms of the product of
    exponentials (Mueller 2021, section II; Kumar and Mueller 2021, section II-A).

    Parameters
    ----------
    Y : array-like, shape (n, 6)
        Joint screws in base axes about the base origin at q = 0.
    A : array-like, shape (n, 4, 4)
        Poses of the bodies in the base at q = 0.
    parents : sequence of int, optional
        See `checked_parents`.

    Returns
    -------
    X : ndarray, shape (n, 6)
    B : ndarray, shape (n, 4, 4)
    """
    Y = checked_screws('Y', Y)
    A = checked_poses('A', A, len(Y))
    X = (se3.Ad(se3.inverse(A)) @ Y[..., None])[..., 0]
    B = np.array(
        [
            A[i] if p == BASE else se3.inverse(A[p]) @ A[i]
            for i, p in enumerate(checked_parents(parents, len(Y)))
        ]
    )
    return checked_screws('Y', X), B


def checked_parents(parents: Sequence[int] | None, n: int) -> list[int]:
    """Indices of the parents of n bodies, each before its child.

    Parameters
    ----------
    parents : sequence of int, optional
        -1 for the base; by default the bodies form a chain.
    n : int

    Raises
    ------
    ModelError
        If there are not n integers, or one is not smaller than the index of its body.
    """
    if parents is None:
        return list(range(-1, n - 1))
    array = np.asarray(parents)
    if array.shape != (n,) or array.dtype.kind not in 'iu':
        raise ModelError(
            f'parents is {parents!r}, expected {n} integers: the index of the parent of each '
            'body, -1 for the base.'
        )
    for i, p in enumerate(array.tolist()):
        if not -1 <= p < i:
            raise ModelError(
                f'parents[{i}] is {p}, expected -1 (the base) or the index of an earlier body '
                f'(below {i}).'
            )
    return [int(p) for p in array]


def screw_description(
    X: Iterable[Array | None],
    B: Array,
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
) -> RobotDescription:
    """Links and joints from screws.

    Parameters
    ----------
    X : iterable of (ndarray of shape (6,), or None)
        As `checked_screws` returns them; None for fixed joints.
    B : ndarray, shape (n, 4, 4)
        Pose of each body in its parent at zero position.
    parents, inertias, joint_names, link_names, limits, tool, gravity, name, base_link
        See `RobotModel.from_body_screws`.

    Returns
    -------
    RobotDescription
        In the order of the screws, the tool last. The tip of a chain is its last link.

    Raises
    ------
    ModelError
        If something is not one for each joint or cannot be used.
    """
    n = len(B)
    parents = checked_parents(parents, n)
    joint_names = _one_each('joint_names', joint_names, [f'joint{i + 1}' for i in range(n)])
    link_names = _one_each('link_names', link_names, [f'link{i + 1}' for i in range(n)])
    links, joints = [Link(base_link)], []
    warnings: list[str] = []
    given_inertias: list[GivenInertia] = _one_each('inertias', inertias, [None] * n)
    given_limits: list[Limits | None] = _one_each('limits', limits, [None] * n)
    for i, screw in enumerate(X):
        M_body, remarks = checked_inertia(f'Link {link_names[i]!r}', given_inertias[i])
        warnings += remarks
        links.append(Link(link_names[i], M_body))
        parent = base_link if parents[i] == BASE else link_names[parents[i]]
        named = joint_names[i], _joint_type(screw), parent, link_names[i]
        own_limits = _limits(f'Joint {joint_names[i]!r}', given_limits[i])
        joints.append(Joint(*named, B[i], limits=own_limits, screw=screw))
    if tool is not None:
        pose = checked_poses('tool', np.array([tool]), 1)[0]
        links.append(Link('tool'))
        joints.append(Joint('tool_joint', 'fixed', link_names[-1], 'tool', pose))
    is_chain = all(after.parent == joint.child for joint, after in zip(joints, joints[1:]))
    return RobotDescription(
        name,
        tuple(links),
        tuple(joints),
        tuple(warnings),
        sorted_outwards=True,
        gravity=gravity,
        tip_link=joints[-1].child if is_chain else None,
    )


def _joint_type(screw: Array | None) -> str:
    """Type of the joint with a checked screw; None is a fixed joint."""
    if screw is None:
        return 'fixed'
    if not screw[:3].any():
        return 'prismatic'
    return 'helical' if se3.pitches(screw[None])[0] else 'revolute'


def _limits(owner: str, given: Limits | None) -> Limits:
    """Limits from their numbers; without any, all are infinite."""
    if given is None:
        return Limits()
    try:
        limits = Limits(*(float(value) for value in given))
    except (TypeError, ValueError) as error:
        raise ModelError(
            f'{owner}: the limits are {given!r}, expected (lower, upper, velocity, effort), '
            'also followed by (acceleration, jerk).'
        ) from error
    limits.check(owner)
    return limits


def _one_each(what: str, values: Sequence[T] | None, default: list[T]) -> list[T]:
    """Values for the n joints, by default those of `default`; refused unless there are n."""
    if values is None:
        return default
    n = len(default)
    if isinstance(values, str) or len(values) != n:
        raise ModelError(
            f'{what} has {len(values)} entries, expected {n}: one for each joint.'
        )
    return list(values)


def dh_pose(row: DHRow, convention: str) -> Array:
    """Pose (4, 4) of frame i in frame i-1.

    Parameters
    ----------
    row : DHRow
    convention : {'standard', 'modified'}
        Rz(theta) Tz(d) Tx(a) Rx(alpha), or Rx(alpha) Tx(a) Rz(theta) Tz(d).
    """
    link = se3.pose(so3.exp([row.alpha, 0.0, 0.0]), [row.a, 0.0, 0.0])
    joint = se3.pose(so3.exp([0.0, 0.0, row.theta]), [0.0, 0.0, row.d])
    return joint @ link if convention == 'standard' else link @ joint


def dh_screws(
    table: Sequence[GivenRow], convention: str, joint_types: Sequence[str] | None
) -> tuple[list[Array | None], Array]:
    """Body-fixed screws and relative zero poses of a Denavit-Hartenberg table.

    Parameters
    ----------
    table : sequence of rows
        See `RobotModel.from_dh`, as the others.
    convention : {'standard', 'modified'}
    joint_types : sequence of str, optional

    Returns
    -------
    X : list of (ndarray of shape (6,), or None)
        None for fixed joints.
    B : ndarray, shape (n, 4, 4)

    Raises
    ------
    ModelError
        If the convention, a type or a row cannot be used.
    """
    check_choice('convention', convention, CONVENTIONS, ModelError)
    rows = [_row(i, given) for i, given in enumerate(table)]
    types = ['revolute'] * len(rows) if joint_types is None else list(joint_types)
    if not rows or len(types) != len(rows):
        raise ModelError(
            f'The table has {len(rows)} rows and there are {len(types)} joint types, expected at '
            'least one row and a type for each.'
        )
    for kind in types:
        check_choice('A joint type', kind, DH_JOINT_TYPES, ModelError)
    X: list[Array | None] = []
    B = np.array([dh_pose(row, convention) for row in rows])
    for kind, pose in zip(types, B):
        if kind == 'fixed':
            X.append(None)
            continue
        # Joint i acts along the z axis: of frame i-1 in the standard convention, of frame i in
        # the modified one, where the variable comes last in the transform.
        along_z: Array = np.zeros(6)
        along_z[2 if kind == 'revolute' else 5] = 1.0
        if convention == 'standard':
            along_z = se3.Ad(se3.inverse(pose)) @ along_z
        X.append(checked_screws('joint screw', [along_z])[0])
    return X, B


def _row(i: int, given: GivenRow) -> DHRow:
    """Row i of a table from a mapping, numbers in order, or itself; checked."""
    expected = f'expected ({", ".join(DHRow._fields)}), or a mapping with these names'
    try:
        if isinstance(given, Mapping):
            unknown = [name for name in given if name not in DHRow._fields]
            if unknown:
                raise ModelError(f'Row {i} of the table holds {unknown[0]!r}, {expected}.')
            row = DHRow(**{name: float(value) for name, value in given.items()})
        else:
            a, alpha, d, theta = (float(value) for value in given)
            row = DHRow(a, alpha, d, theta)
    except (TypeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f'Row {i} of the table is {given!r}, {expected}.') from error
    if first_not_finite(np.array(row)) is not None:
        raise ModelError(f'Row {i} of the table holds a value that is not finite: {row}.')
    return row
