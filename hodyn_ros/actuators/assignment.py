"""Actuators of a whole robot: which joint has which, and what their motors are called.

Joints may be rigid, series elastic or of variable stiffness, mixed as the robot has them. Rigid
and series elastic joints are grouped, because NumPy's cost is in the number of calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.actuator import Actuator, RigidDrive
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.errors import ActuatorError, DeflectionError, JointNameError, MotionError
from hodyn_ros.model.friction import FrictionLaw, JointFriction
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

Array = NDArray[np.float64]
Places = NDArray[np.intp]

# By what a robot is known as the same.
_OF_THE_ROBOT = {
    'joints': ('joint_names',),
    'types of joints': ('joint_types',),
    'bodies': ('body_names',),
    'kinematics': ('parent', 'coordinate', 'multiplier', 'X', 'B'),
}

_ANGULAR_AND_LINEAR = (('N m/rad', 'N/m'), ('kg m^2', 'kg'), ('N m', 'N'), ('rad', 'm'))


class DrivenJoint(NamedTuple):
    """A joint with its actuator and motors."""

    name: str
    joint: int
    """Index of the joint in the model."""
    motors: slice
    """Indices of its motors."""
    actuator: Actuator


@contextmanager
def of_joint(model: RobotModel, joint: int, beginning: str | None = None) -> Iterator[None]:
    """Add the name of a joint and its units to errors of its actuator; overflow does not warn."""
    try:
        # Overflow is found in what comes out, and told in words.
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            yield
    except (ActuatorError, MotionError) as error:
        name = model.joint_names[joint]
        start = f'Joint {name!r}: ' if beginning is None else beginning
        message = start + in_units_of(model, joint, str(error))
        if isinstance(error, DeflectionError):
            raise DeflectionError(message, joint=name, sample=error.sample) from None
        raise type(error)(message) from None


def in_units_of(model: RobotModel, joint: int, text: str) -> str:
    """Give a text the units of a joint; springs speak of angles, not knowing what they drive."""
    if model.joint_types[joint] != 'prismatic':
        return text
    for angular, linear in _ANGULAR_AND_LINEAR:
        text = re.sub(rf'(?<!\w){re.escape(angular)}(?!\w)', linear, text)
    return text


class SingleMotors:
    """Joints with one motor: rigid and series elastic ones. Places are those among them.

    Attributes
    ----------
    joints, motors : ndarray of int, or slice
        Indices in the robot.
    inertia : ndarray, shape (s,)
    stiffness, max_torque : ndarray, shape (s,)
        Of linear springs without damper; infinite for all other joints.
    springs : list of (place, DrivenJoint, Spring)
        Nonlinear springs without damper.
    dampers : list of (place, DrivenJoint, SeriesElastic)
        Joints with damper.
    linear_dampers : tuple of ndarray
        Of dampers beside linear springs: indices in `dampers`, joints, stiffness, damping and
        largest deflections; empty if there are none.
    is_elastic : bool
        Whether one of them has a spring without damper.
    """

    def __init__(self, model: RobotModel, driven: Sequence[DrivenJoint]) -> None:
        items = [item for item in driven if _is_single(item.actuator)]
        self._model, self._items = model, items
        self.joints: Places | slice = np.array([item.joint for item in items], np.intp)
        self.motors: Places | slice = np.array([item.motors.start for item in items], np.intp)
        if len(items) == len(driven):
            self.joints = self.motors = slice(None)
        self.inertia = np.array([item.actuator.motor_inertias[0] for item in items])
        self.stiffness, self.max_torque = np.full((2, len(items)), np.inf)
        self.springs: list[tuple[int, DrivenJoint, Spring]] = []
        self.dampers: list[tuple[int, DrivenJoint, SeriesElastic]] = []
        friction: dict[int, FrictionLaw] = {}
        linear = []
        for place, item in enumerate(items):
            actuator = item.actuator
            law = actuator.friction  # type: ignore[attr-defined]
            if law is not None:
                friction[place] = law
            if not isinstance(actuator, SeriesElastic):
                continue
            spring, damping = actuator.spring, actuator.damping
            if actuator.needs_times:
                if type(spring) is LinearSpring:
                    constants = spring.stiffness, damping, spring.max_deflection
                    linear.append((len(self.dampers), item.joint, *constants))
                self.dampers.append((place, item, actuator))
            elif type(spring) is LinearSpring:
                self.stiffness[place] = spring.stiffness
                self.max_torque[place] = spring.torque_range[1]
            else:
                self.springs.append((place, item, spring))
        self._friction = JointFriction(friction) if friction else None
        self.linear_dampers: tuple[Any, ...] = tuple(map(np.array, zip(*linear)))
        self.is_elastic = bool(self.springs) or bool(np.isfinite(self.stiffness).any())

    def deflections(self, torque: Array) -> Array:
        """Deflections (..., K, s) of springs without damper by joint torques; zero for others."""
        deflection: Array = torque / self.stiffness
        if not np.all(np.abs(torque[..., 0, :]) <= self.max_torque):
            # The spring that cannot have its torque is to say so, unless it is rounding.
            for place in np.flatnonzero(np.isfinite(self.max_torque)).tolist():
                item = self._items[place]
                with of_joint(self._model, item.joint):
                    item.actuator.spring.deflection(torque[..., 0, place])  # type: ignore[attr-defined]
        for place, item, spring in self.springs:
            with of_joint(self._model, item.joint):
                deflection[..., place] = spring.deflection_series(torque[..., place])
        return deflection

    def add_friction(self, velocity: Array, torque: Array) -> None:
        """Add friction (..., T, s) of motors with these velocities to their torques, in place."""
        if self._friction and torque.shape[-2]:
            torque += np.swapaxes(self._friction(np.swapaxes(velocity, -1, -2)), -1, -2)


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
    joint_of_motor: Places = field(init=False)
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
            'single': SingleMotors(self.model, driven),
            'others': tuple(item for item in driven if not _is_single(item.actuator)),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

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
        for kind, names in _OF_THE_ROBOT.items():
            if not all(np.array_equal(getattr(model, n), getattr(self.model, n)) for n in names):
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
    """Refuse names that are not independent joints of the model with a `JointNameError`."""
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
