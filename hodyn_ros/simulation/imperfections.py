"""What a simulated robot has that its model has not: other inertias, friction, slack, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Union

import numpy as np

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import JointNameError, SimulationError
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

FALL_VELOCITY = (
    0.01  # rad/s or m/s, at which dry friction has fallen from breakaway to coulomb
)

PerJoint = Union[float, Mapping[str, float]]  # noqa: UP007
"""One number for all joints or some by joint; the name '' stands for all others."""


def _number(default: float, meaning: str, **bounds: Any) -> Any:
    return field(default=default, metadata={'meaning': meaning, **bounds})


def _by_name(given: PerJoint) -> Mapping[str, float]:
    return given if isinstance(given, Mapping) else {'': given}


@dataclass(frozen=True)
class Imperfections:
    """How a robot differs from its model; without arguments it does not.

    Each is a number for all joints or a mapping of joint names to numbers, in which '' stands for
    all other joints; the payload is a mapping of link names. All are in coordinates of the joint,
    behind the gear; units are those of a revolute joint. Errors of springs, backlash, dampers and
    gears are for series elastic joints.

    Dry friction is `breakaway` at rest and `coulomb` far from it, in between
    coulomb + (breakaway - coulomb) exp(-(v / 0.01 rad/s)^2). With a `gear_ratio` N a rotor
    is a body of its own that turns N times as fast on the link in front of its joint; the mass of
    that link and its inertia include those of the rotor.

    Sources: Armstrong-Helouvry, Dupont and Canudas de Wit 1994, "A survey of models, analysis
    tools and compensation methods for the control of machines with friction"; for rotors De Luca
    and Book, "Robots with flexible elements", Springer Handbook of Robotics.

    Raises
    ------
    SimulationError
        If a value is no finite number of its range.

    Examples
    --------
    Springs that are 10 % softer than their data sheet, and a load that nobody knows of:

    >>> from hodyn_ros.simulation import Imperfections
    >>> faults = Imperfections(stiffness_error=-0.1, payload={'tool': 0.5})
    >>> faults.of('stiffness_error', ['shoulder', 'elbow'])
    array([-0.1, -0.1])
    """

    stiffness_error: PerJoint = _number(0.0, 'Relative error of the spring', above=-1.0)
    inertia_error: PerJoint = _number(0.0, 'Relative error of the link', above=-1.0)
    damping: PerJoint = _number(0.0, 'Of a damper beside the spring [N m s/rad]')
    backlash: PerJoint = _number(
        0.0, 'Range of deflections without torque of the spring [rad]'
    )
    coulomb: PerJoint = _number(0.0, 'Dry friction of the motor [N m]')
    breakaway: PerJoint = _number(0.0, 'Dry friction of the motor at rest, if more [N m]')
    gear_ratio: PerJoint = _number(0.0, 'Of a rotor on the link in front; 0: on none')
    torque_limit: PerJoint = _number(np.inf, 'Of the motor [N m]', above=0.0, infinite=True)
    payload: PerJoint = _number(
        0.0, 'Point masses at the origins of links, by their names [kg]'
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            bounds = {key: x for key, x in item.metadata.items() if key != 'meaning'}
            for name, value in _by_name(getattr(self, item.name)).items():
                what = f'{item.name} of {name!r}' if name else item.name
                checked_number(what, value, SimulationError, **(bounds or {'least': 0.0}))
        if _by_name(self.payload).get(''):
            raise SimulationError(
                f'payload is {self.payload!r}, expected a mapping of link names to masses [kg].'
            )

    @classmethod
    def from_tables(cls, tables: Mapping[str, Mapping[str, Any]]) -> Imperfections:
        """Make them from their values by joint and name, '' for all joints.

        Raises
        ------
        SimulationError
            If a value cannot be used.
        """
        found = dict[str, dict[str, Any]]()
        for joint, table in tables.items():
            for name, value in table.items():
                found.setdefault(name, {})[joint] = value
        return cls(**found)

    def of(
        self, name: str, joint_names: Sequence[str], able: Sequence[str] | None = None
    ) -> Array:
        """Values of all joints.

        Parameters
        ----------
        name : str
            Of the imperfection.
        joint_names : sequence of str
        able : sequence of str, optional
            Joints that can have it; others keep the default. By default all can.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        JointNameError
            If a joint is named that does not exist.
        SimulationError
            If a joint is named that is not able.
        """
        by_joint, default = _by_name(getattr(self, name)), getattr(type(self), name)
        able = joint_names if able is None else able
        for joint in by_joint:
            if joint and joint not in able:
                error = SimulationError if joint in joint_names else JointNameError
                raise error(
                    f'{name} is given for {joint!r}, expected one of the joints that can have it: '
                    f'{listed(able)}.'
                )
        others = by_joint.get('', default)
        values = [
            by_joint.get(joint, others) if joint in able else default
            for joint in joint_names
        ]
        return np.array(values, dtype=np.float64)

    def links(self, model: RobotModel, carried: Array) -> RobotModel:
        """Links as they are.

        Parameters
        ----------
        model : RobotModel
            Without mimic joints.
        carried : ndarray, shape (n,)
            Inertia of the rotor of each joint about its axis, if the link in front carries it [kg
            m^2].

        Returns
        -------
        RobotModel
            With other inertias and payloads; without the inertia of the rotors about their axes.
        """
        names, M = model.joint_names, model.M_body.copy()
        M *= 1.0 + self.of('inertia_error', names)[model.coordinate][:, None, None]
        model = model.with_fields(M_body=M)
        for link, mass in _by_name(self.payload).items():
            model = model.with_payload(link, mass) if link else model
        M = model.M_body.copy()
        for i, parent in enumerate(model.parent.tolist()):
            if parent != BASE:
                axis = model.B[i, :3, :3] @ model.X[i, :3]
                M[parent, :3, :3] -= carried[model.coordinate[i]] * np.outer(axis, axis)
        return model.with_fields(M_body=M)
