"""Actuators of a whole robot: which joint has which, and what their motors are called.

Joints may be rigid, series elastic or of variable stiffness, mixed as the robot has them. Rigid
and series elastic joints are grouped, because NumPy's cost is in the number of calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.actuator import Actuator
from hodyn_ros.actuators.friction_groups import FrictionGroups
from hodyn_ros.actuators.rigid import RigidDrive
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

Array = NDArray[np.float64]


# By what a robot is known as the same.
_OF_THE_ROBOT = {
    'joint_names': 'joints',
    'joint_types': 'types of joints',
    'body_names': 'bodies',
    'parent': 'kinematics',
    'coordinate': 'kinematics',
    'multiplier': 'kinematics',
    'X': 'kinematics',
    'B': 'kinematics',
}


class DrivenJoint(NamedTuple):
    """A joint with its actuator and motors."""

    name: str
    joint: int
    """Index of the joint in the model."""
    motors: slice
    """Indices of its motors."""
    actuator: Actuator


class LinearDampers(NamedTuple):
    """Those of the joints with damper whose springs are linear."""

    places: NDArray[np.intp]
    """Among the joints with damper."""
    joints: NDArray[np.intp]
    stiffness: Array
    damping: Array
    max_deflection: Array


class SingleMotors(NamedTuple):
    """Joints with one motor that moves by the deflection of a spring, or not at all, from them."""

    joints: NDArray[np.intp] | slice
    motors: NDArray[np.intp] | slice
    stiffness: Array
    """Of linear springs without damper; infinite for all other joints."""
    max_torque: Array
    """Of the same springs."""
    inertia: Array
    friction: FrictionGroups
    """By the place among these joints."""
    springs: tuple[tuple[int, DrivenJoint, Spring], ...]
    """Place among these joints and spring, of nonlinear springs without damper."""
    dampers: tuple[tuple[int, DrivenJoint, SeriesElastic], ...]
    """Of the joints with damper."""
    linear_dampers: LinearDampers
    is_elastic: bool
    """Whether one of them has a spring without damper."""


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
    motor_names : tuple of str
        In the order of the joints. A single motor is named as its joint.
    joint_of_motor : ndarray of int, shape (m,)
        Index of the joint that each motor moves.

    Raises
    ------
    JointNameError
        If a joint is unknown.
    ActuatorError
        If what is given is no actuator, or an inertia counts twice.
    """

    model: RobotModel
    by_joint: Mapping[str, Actuator]
    motor_names: tuple[str, ...] = field(init=False)
    joint_of_motor: NDArray[np.intp] = field(init=False)
    driven: tuple[DrivenJoint, ...] = field(init=False, repr=False)
    single: SingleMotors = field(init=False, repr=False)
    others: tuple[DrivenJoint, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.model, RobotModel):
            raise ActuatorError(
                f'The model is of type {type(self.model).__name__}, expected a RobotModel.'
            )
        if not isinstance(self.by_joint, Mapping):
            raise ActuatorError(
                f'The actuators are {self.by_joint!r}, expected a mapping of joint names to '
                'actuators.'
            )
        check_joint_names(self.model, self.by_joint)
        for name, actuator in self.by_joint.items():
            if not isinstance(actuator, Actuator):
                raise ActuatorError(
                    f'Joint {name!r}: the actuator is {actuator!r}, expected an Actuator such as '
                    'RigidDrive(), SeriesElastic(spring, motor_inertia) or '
                    'VariableStiffness(model, motor_inertia).'
                )
            _refuse_twice(self.model, name, actuator)
        chosen = {name: self.by_joint.get(name, RigidDrive()) for name in self.model.joint_names}
        driven: list[DrivenJoint] = []
        names: list[str] = []
        for joint, (name, actuator) in enumerate(chosen.items()):
            first = len(names)
            names += [name + suffix for suffix in actuator.motor_suffixes]
            driven.append(DrivenJoint(name, joint, slice(first, len(names)), actuator))
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise ActuatorError(
                f'The names of motors must differ, but {listed(sorted(repeated))} occur twice.'
            )
        counts = [len(item.actuator.motor_suffixes) for item in driven]
        joint_of_motor = np.repeat(np.arange(len(driven)), counts)
        joint_of_motor.setflags(write=False)
        values = {
            'by_joint': MappingProxyType(chosen),
            'motor_names': tuple(names),
            'joint_of_motor': joint_of_motor,
            'driven': tuple(driven),
            'single': _single_motors(driven),
            'others': tuple(item for item in driven if not _is_single(item.actuator)),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __getitem__(self, joint_name: str) -> Actuator:
        """Actuator of a joint.

        Raises
        ------
        JointNameError
            If the joint is unknown.
        """
        check_joint_names(self.model, (joint_name,))
        return self.by_joint[joint_name]

    @property
    def n_motors(self) -> int:
        """Number m of motors."""
        return len(self.motor_names)

    def __getstate__(self) -> dict[str, object]:
        return {'model': self.model, 'by_joint': dict(self.by_joint)}

    def __setstate__(self, state: dict[str, object]) -> None:
        for key, value in state.items():
            object.__setattr__(self, key, value)
        self.__post_init__()

    def check_suits(self, model: RobotModel) -> None:
        """Refuse a model that is not of the robot that the actuators were made for.

        Inertias, friction, limits and gravity may differ, as with a payload.

        Parameters
        ----------
        model : RobotModel

        Raises
        ------
        ActuatorError
            If joints, their types or the kinematics differ, or an inertia would count twice.
        """
        if model is self.model:
            return
        for what in _OF_THE_ROBOT:
            if not np.array_equal(getattr(model, what), getattr(self.model, what)):
                kind = _OF_THE_ROBOT[what]
                raise ActuatorError(
                    f'The actuators are those of a robot with other {kind}: {self.model!r}, given '
                    f'is {model!r}. If they are meant for it, make them for it: Actuators(model, '
                    'actuators.by_joint).'
                )
        for name, actuator in self.by_joint.items():
            _refuse_twice(model, name, actuator)


def _refuse_twice(model: RobotModel, name: str, actuator: Actuator) -> None:
    armature = model.armature[model.body_names.index(name)]
    if armature > 0.0 and any(inertia > 0.0 for inertia in actuator.motor_inertias):
        raise ActuatorError(
            f'Joint {name!r}: the model has an armature of {armature:.6g} and the actuator '
            f'motor inertias of {listed(actuator.motor_inertias)}, so the rotor would count '
            f"twice. Expected one of the two: model.with_armature({{'{name}': 0.0}})."
        )


def check_joint_names(model: RobotModel, names: Sequence[str] | Mapping[str, object]) -> None:
    """Refuse names that are not independent joints of the model.

    Raises
    ------
    JointNameError
    """
    unknown = [name for name in names if name not in model.joint_names]
    if unknown:
        mimics = [name for name in unknown if name in model.body_names]
        remark = f' ({listed(mimics)}: moved by another joint)' if mimics else ''
        raise JointNameError(
            f'The actuators name unknown joints: {listed(unknown)}{remark}; expected joints among '
            f'{listed(model.joint_names)}.'
        )


def _is_single(actuator: Actuator) -> bool:
    # Derived classes may have overridden anything.
    return type(actuator) in (RigidDrive, SeriesElastic)


def _single_motors(driven: Sequence[DrivenJoint]) -> SingleMotors:
    items = [item for item in driven if _is_single(item.actuator)]
    stiffness, max_torque = np.full((2, len(items)), np.inf)
    friction: dict[int, FrictionLaw] = {}
    springs: list[tuple[int, DrivenJoint, Spring]] = []
    dampers: list[tuple[int, DrivenJoint, SeriesElastic]] = []
    for place, item in enumerate(items):
        actuator = item.actuator
        law = actuator.friction  # type: ignore[attr-defined]
        if law is not None:
            friction[place] = law
        if not isinstance(actuator, SeriesElastic):
            continue
        spring = actuator.spring
        if actuator.needs_times:
            dampers.append((place, item, actuator))
        elif type(spring) is LinearSpring:
            stiffness[place] = spring.stiffness
            max_torque[place] = spring.torque_range[1]
        else:
            springs.append((place, item, spring))
    joints: NDArray[np.intp] | slice = np.array([item.joint for item in items], dtype=np.intp)
    motors: NDArray[np.intp] | slice = np.array([item.motors.start for item in items], np.intp)
    if len(items) == len(driven):
        joints = motors = slice(None)
    return SingleMotors(
        joints=joints,
        motors=motors,
        stiffness=stiffness,
        max_torque=max_torque,
        inertia=np.array([item.actuator.motor_inertias[0] for item in items]),
        friction=FrictionGroups(friction),
        springs=tuple(springs),
        dampers=tuple(dampers),
        linear_dampers=_linear_dampers(dampers),
        is_elastic=bool(springs) or bool(np.isfinite(stiffness).any()),
    )


def _linear_dampers(dampers: Sequence[tuple[int, DrivenJoint, SeriesElastic]]) -> LinearDampers:
    rows = [
        (i, item.joint, actuator.spring.stiffness, actuator.damping, actuator.spring.range[1])
        for i, (_, item, actuator) in enumerate(dampers)
        if type(actuator.spring) is LinearSpring
    ]
    places, joints, *values = np.array(rows).reshape(-1, 5).T
    return LinearDampers(places.astype(np.intp), joints.astype(np.intp), *values)
