"""Actuators of a whole robot: which joint has which, and what their motors are called.

Joints may be rigid, series elastic or of variable stiffness, mixed as the robot has them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators.drives import (
    Actuator,
    DriveArrays,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
)
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.kinematics.closing import constraints_of
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.typing import Indices


class DrivenJoint(NamedTuple):
    """A joint with its actuator and motors, at their places in the arrays of a robot."""

    name: str
    joint: int
    """Index of the joint in the model."""
    motors: slice
    """Indices of its motors."""
    actuator: Actuator


@dataclass(frozen=True, eq=False)
class Actuators:
    """What moves each joint of a robot; immutable.

    Parameters
    ----------
    model : RobotModel
        Its armature must be zero where a motor has an inertia here, because it would count twice.
    by_joint : mapping of joint name to Actuator
        Joints that are not named are rigid drives without inertia.

    Attributes
    ----------
    model : RobotModel
    by_joint : mapping of joint name to Actuator
        Of every joint, in model order.

    Raises
    ------
    JointNameError
        If a joint is unknown.
    ActuatorError
        If what is given is no actuator, or an inertia counts twice.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(1000.0, 0.1)})
    >>> drives.motor_names, drives.by_joint['shoulder']
    (('shoulder', 'elbow'), RigidDrive(motor_inertia=0.0, friction=None))
    """

    model: RobotModel
    by_joint: Mapping[str, Actuator]

    def __post_init__(self) -> None:
        if not isinstance(self.model, RobotModel):
            raise ActuatorError(
                f'The model is of type {type(self.model).__name__}, expected a RobotModel.'
            )
        _check_actuators(self.model, self.by_joint)
        chosen = {
            name: self.by_joint.get(name, RigidDrive()) for name in self.model.joint_names
        }
        object.__setattr__(self, 'by_joint', MappingProxyType(chosen))
        names = self.motor_names
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise ActuatorError(
                f'The names of motors must differ, but {listed(sorted(repeated))} occur twice.'
            )

    @cached_property
    def motor_names(self) -> tuple[str, ...]:
        """Names in the order of the joints; a single motor is named as its joint."""
        return tuple(
            name + suffix
            for name, actuator in self.by_joint.items()
            for suffix in actuator.motor_suffixes
        )

    @cached_property
    def driven(self) -> tuple[DrivenJoint, ...]:
        """All joints."""
        counts = [len(actuator.motor_suffixes) for actuator in self.by_joint.values()]
        ends = np.cumsum(counts).tolist()
        motors = (slice(end - count, end) for end, count in zip(ends, counts))
        return tuple(
            DrivenJoint(name, joint, own, actuator)
            for joint, (own, (name, actuator)) in enumerate(
                zip(motors, self.by_joint.items())
            )
        )

    @cached_property
    def arrays(self) -> DriveArrays:
        """All drives as arrays."""
        return DriveArrays(tuple(self.by_joint.values()), self.model)

    @property
    def joint_of_motor(self) -> Indices:
        """Index of the joint that each motor moves, shape (m,)."""
        return self.arrays.joint_of_motor

    @cached_property
    def variable(self) -> tuple[DrivenJoint, ...]:
        """Joints of variable stiffness."""
        return tuple(self.driven[j] for j in self.arrays.variable)

    def __getitem__(self, joint_name: str) -> Actuator:
        """Actuator of a joint; a `JointNameError` if it is unknown."""
        check_joint_names(self.model, (joint_name,))
        return self.by_joint[joint_name]

    @property
    def n_motors(self) -> int:
        """Number m of motors."""
        return len(self.motor_names)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.model, dict(self.by_joint))

    def check_suits(self, model: RobotModel) -> None:
        """Refuse a model that is not of the robot that the actuators were made for.

        Inertias, friction, limits and gravity may differ, as with a payload. An `ActuatorError`
        is raised if joints, their types or the kinematics do, or an inertia would count twice.
        """
        if model is self.model:
            return
        known = _identity(self.model)
        for kind, values in _identity(model).items():
            if not all(map(np.array_equal, values, known[kind])):
                raise ActuatorError(
                    f'The actuators are those of a robot with other {kind}: {self.model!r}, given '
                    f'is {model!r}. If they are meant for it, make them for it: Actuators(model, '
                    'actuators.by_joint).'
                )
        for name, actuator in self.by_joint.items():
            _refuse_twice(model, name, actuator)


def _identity(model: RobotModel) -> dict[str, Sequence[Any]]:
    """By what a robot is known as the same."""
    closure = model.closure
    tree = model if closure is None else closure.tree
    loops: list[Any] = []
    if closure is not None:
        held = model.kept(constraints_of)
        loops = [*held.a, *held.b, held.P, closure.names]
        loops += [[loop.kind, *loop.direction] for loop in closure.loops]
        loops += [[x.joint, *x.followed, *x.coefficients] for x in closure.couplings]
    return {
        'joints': [model.joint_names],
        'types of joints': [model.joint_types],
        'bodies': [model.body_names],
        'kinematics': [tree.parent, tree.coordinate, tree.multiplier, tree.X, tree.B],
        'loops': loops,
    }


def _check_actuators(model: RobotModel, by_joint: object) -> None:
    """Refuse what is no mapping of joints of the model to actuators that suit it."""
    check_mapping('The actuators are', by_joint, 'joint names to actuators', model)
    assert isinstance(by_joint, Mapping)
    for name, actuator in by_joint.items():
        if not isinstance(actuator, (RigidDrive, SeriesElastic, VariableStiffness)):
            raise ActuatorError(
                f'Joint {name!r}: the actuator is {actuator!r}, expected an Actuator such as '
                'RigidDrive(), SeriesElastic(spring, motor_inertia) or '
                'VariableStiffness(model, motor_inertia).'
            )
        _refuse_twice(model, name, actuator)


def _refuse_twice(model: RobotModel, name: str, actuator: Actuator) -> None:
    """Refusal of a rotor that counts twice: as armature of the model and in the actuator."""
    armature = model.armature[model.body_names.index(name)]
    if armature > 0.0 and any(inertia > 0.0 for inertia in actuator.motor_inertias):
        raise ActuatorError(
            f'Joint {name!r}: the model has an armature of {armature:.6g} and the actuator '
            f'motor inertias of {listed(actuator.motor_inertias)}, so the rotor would count '
            f"twice. Expected one of the two: model.with_armature({{'{name}': 0.0}})."
        )


def check_mapping(
    what: str, given: object, kind: str, model: RobotModel | None = None
) -> None:
    """Refuse what is no mapping of its kind, or with a model names unknown joints.

    An `ActuatorError` or a `JointNameError` is raised.
    """
    if not isinstance(given, Mapping):
        raise ActuatorError(f'{what} {reprlib.repr(given)}, expected a mapping of {kind}.')
    if model is not None:
        check_joint_names(model, given)


def check_joint_names(
    model: RobotModel, names: Sequence[str] | Mapping[str, object]
) -> None:
    """Refusal of names that are not independent joints of the model, with a `JointNameError`."""
    unknown = [name for name in names if name not in model.joint_names]
    if unknown:
        mimics = [name for name in unknown if name in model.body_names]
        remark = f' ({listed(mimics)}: moved by another joint)' if mimics else ''
        remark = remark or did_you_mean(unknown[0], model.joint_names)
        raise JointNameError(
            f'The actuators name unknown joints: {listed(unknown)}{remark}; expected joints among '
            f'{listed(model.joint_names)}.'
        )
