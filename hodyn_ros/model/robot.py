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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import JointNameError, ModelError
from hodyn_ros.model.assembly import BASE, Assembly, JointLimits, LinkFrame, frozen, listed
from hodyn_ros.model.description import Limits, Link, RobotDescription
from hodyn_ros.model.urdf import read_urdf

Array = NDArray[np.float64]

class ModelWarning(UserWarning):
    """A robot description with doubtful values that is used all the same."""


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
        fields = Assembly(description, base_link, tip_link).fields()
        return cls(gravity=frozen(_checked_gravity(gravity)), **fields)

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
        given = list(names)
        repeated = sorted({name for name in given if given.count(name) > 1})
        unknown = [name for name in given if name not in self.joint_names]
        missing = [name for name in self.joint_names if name not in given]
        problems = [
            f'{what}: {listed(which)}'
            for what, which in (('repeated', repeated), ('unknown', unknown), ('missing', missing))
            if which
        ]
        if problems:
            raise JointNameError(
                f'Joint names do not fit the model ({"; ".join(problems)}); expected each of '
                f'{listed(self.joint_names)} once, in any order.'
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


__all__ = ['BASE', 'JointLimits', 'Limits', 'Link', 'LinkFrame', 'ModelWarning', 'RobotModel']
