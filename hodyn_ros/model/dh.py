"""Robots from Denavit-Hartenberg tables, in the standard and in the modified convention.

Standard (distal): frame i sits at the far end of link i, on the axis of joint i+1, and
T = Rz(theta) Tz(d) Tx(a) Rx(alpha). Source: Spong, Hutchinson and Vidyasagar, Robot Modeling and
Control, section 3.2.

Modified (proximal): frame i sits at the near end of link i, on the axis of joint i, and
T = Rx(alpha) Tx(a) Rz(theta) Tz(d). Source: Craig, Introduction to Robotics, section 3.6. Khalil
and Kleinfinger write d for a and r for d, and mean the same transform: its translation is
(a, -d sin(alpha), d cos(alpha)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.screws import checked_screws

Array = NDArray[np.float64]

CONVENTIONS = ('standard', 'modified')
JOINT_TYPES = ('revolute', 'prismatic', 'fixed')


class DHRow(NamedTuple):
    """Parameters of one joint."""

    a: float = 0.0
    """Length of the link [m] (Khalil: d)."""
    alpha: float = 0.0
    """Twist of the link [rad]."""
    d: float = 0.0
    """Offset along the joint axis [m] (Khalil: r); of a prismatic joint: at q = 0."""
    theta: float = 0.0
    """Angle about the joint axis [rad]; of a revolute joint: at q = 0."""


GivenRow = DHRow | Mapping[str, float] | Sequence[float]


def dh_pose(row: DHRow, convention: str) -> Array:
    """Pose of frame i in frame i-1.

    Parameters
    ----------
    row : DHRow
    convention : {'standard', 'modified'}

    Returns
    -------
    ndarray, shape (4, 4)
    """
    link = se3.pose(so3.exp([row.alpha, 0.0, 0.0]), [row.a, 0.0, 0.0])
    joint = se3.pose(so3.exp([0.0, 0.0, row.theta]), [0.0, 0.0, row.d])
    return joint @ link if convention == 'standard' else link @ joint


def dh_screws(
    table: Sequence[GivenRow], convention: str, joint_types: Sequence[str] | None
) -> tuple[list[Array | None], Array]:
    """Body-fixed screws and zero poses of the links; see `RobotModel.from_dh`.

    Parameters
    ----------
    table : sequence of DHRow, mapping or sequence of float
    convention : {'standard', 'modified'}
    joint_types : sequence of str, optional
        Each 'revolute', 'prismatic' or 'fixed'; by default all are revolute.

    Returns
    -------
    X : list of ndarray of shape (6,), or None
        Joint screws in the frames of the links; None for a fixed joint.
    B : ndarray, shape (n, 4, 4)
        Pose of each link frame in the one before.

    Raises
    ------
    ModelError
    """
    if convention not in CONVENTIONS:
        raise ModelError(
            f'convention is {convention!r}, expected one of {", ".join(CONVENTIONS)}.'
        )
    rows = [_row(i, given) for i, given in enumerate(table)]
    types = ['revolute'] * len(rows) if joint_types is None else list(joint_types)
    if not rows or len(types) != len(rows):
        raise ModelError(
            f'The table has {len(rows)} rows and there are {len(types)} joint types, expected at '
            'least one row and a type for each.'
        )
    unknown = [kind for kind in types if kind not in JOINT_TYPES]
    if unknown:
        raise ModelError(
            f'The joint type {unknown[0]!r} is unknown in a Denavit-Hartenberg table; choose '
            f'among {", ".join(JOINT_TYPES)}.'
        )
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
    if not all(np.isfinite(row)):
        raise ModelError(f'Row {i} of the table holds a value that is not finite: {row}.')
    return row
