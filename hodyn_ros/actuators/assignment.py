"""Actuators of a whole robot: which joint has which, and what their motors are called.

Joints may be rigid, series elastic or of variable stiffness, mixed as the robot has them. Those
that the kernels know are grouped: they are computed in one call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.actuator import Actuator, RigidDrive
from hodyn_ros.actuators.damped import Dampers
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring
from hodyn_ros.actuators.vsa.model import KnownModel, VariableStiffness
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


class Blocks:
    """Numbers of several joints, as kernels take them.

    Attributes
    ----------
    places : ndarray of int, shape (j, 3)
        Joint, first motor, and where its numbers begin.
    numbers : ndarray
    """

    def __init__(self, items: Sequence[DrivenJoint], blocks: Sequence[Sequence[float]]) -> None:
        starts = np.cumsum([0, *map(len, blocks)])
        places = [(item.joint, item.motors.start, o) for item, o in zip(items, starts)]
        self.places = np.array(places, dtype=np.int64).reshape(-1, 3)
        self.numbers = np.array([number for block in blocks for number in block])


class SingleMotors:
    """Joints with one motor: rigid and series elastic ones. Places are those among them.

    Attributes
    ----------
    inertia : ndarray, shape (s,)
    stiffness : ndarray, shape (s,)
        Of linear springs without damper; infinite for all other joints.
    elastic : list of DrivenJoint
        Joints with springs without damper.
    own : list of DrivenJoint
        Those of them with a law of the user's own.
    dampers : list of (place, DrivenJoint, SeriesElastic)
        Joints with dampers.
    damped : Dampers
        Their springs.
    is_elastic : bool
        Whether one of them has a spring without damper.
    blocks : Blocks
    friction : JointFriction or None
        Of the motors that the kernels know.
    """

    def __init__(self, model: RobotModel, driven: Sequence[DrivenJoint]) -> None:
        items = [item for item in driven if _is_single(item.actuator)]
        self._model = model
        self.inertia = np.array([item.actuator.motor_inertias[0] for item in items])
        self.stiffness = np.full(len(items), np.inf)
        self.elastic: list[DrivenJoint] = []
        self.own: list[DrivenJoint] = []
        self.dampers: list[tuple[int, DrivenJoint, SeriesElastic]] = []
        friction: dict[int, FrictionLaw] = {}
        blocks = []
        for place, item in enumerate(items):
            actuator: Any = item.actuator
            if actuator.friction is not None:
                friction[item.motors.start] = actuator.friction
            block: Sequence[float] = (kernels.RIGID,)
            if isinstance(actuator, SeriesElastic):
                spring = actuator.spring
                block = (kernels.GIVEN,)
                if actuator.needs_times:
                    self.dampers.append((place, item, actuator))
                else:
                    self.elastic.append(item)
                    if type(spring) is LinearSpring:
                        self.stiffness[place] = spring.stiffness
                    if spring.block is None:
                        self.own.append(item)
                    else:
                        block = spring.block.tolist()
            blocks.append((actuator.motor_inertias[0], *block))
        self.blocks = Blocks(items, blocks)
        for item in driven:
            if is_known(item.actuator):
                laws = zip(range(item.motors.start, item.motors.stop), item.actuator.friction)  # type: ignore[attr-defined]
                friction.update({motor: law for motor, law in laws if law is not None})
        self.friction = JointFriction(friction) if friction else None
        self.is_elastic = bool(self.elastic)
        self.damped = Dampers(
            [(item.joint, actuator.spring, actuator.damping) for _, item, actuator in self.dampers]
        )

    def deflections(self, torque: Array) -> Array:
        """Deflections (..., K, n) of springs without damper by joint torques; zero for others.

        All joints have one motor.
        """
        K, n = torque.shape[-2:]
        delta = np.zeros(torque.shape)
        rows = np.ascontiguousarray(torque).reshape(-1, n)
        motors = np.empty_like(rows), np.empty((len(rows) // K * max(K - 2, 0), n))
        self.drive(np.zeros_like(rows), rows, motors[0], motors[1], delta)
        return delta

    def drive(self, q: Array, torque: Array, theta: Array, tau: Array, delta: Array) -> None:
        """Write motors (N R, m), (N T, m) and deflections (..., R, n), see `kernels.drive`.

        Deflections of joints with dampers are given.
        """
        *batch, R, n = delta.shape
        N = prod(batch)
        if not N:
            return
        efforts = torque.reshape(N, -1, n)
        for item in self.own:
            with of_joint(self._model, item.joint):
                series = item.actuator.spring.deflection_series(efforts[:, :R, item.joint])  # type: ignore[attr-defined]
            delta[..., item.joint] = series.reshape(*batch, R)
        own = self.blocks
        out = theta, tau, delta.reshape(-1, n)
        status = kernels.drive(N, own.places, own.numbers, q, torque, *out)
        if status & kernels.OUT_OF_REACH:
            # The spring that cannot have its torque is to say so.
            first = efforts[:, 0].reshape(*batch, n)
            for item in self.elastic:
                with of_joint(self._model, item.joint):
                    item.actuator.spring.deflection(first[..., item.joint])  # type: ignore[attr-defined]

    def add_friction(self, velocity: Array, torque: Array) -> None:
        """Add friction (..., T, m) of motors with these velocities to their torques, in place."""
        if self.friction and torque.shape[-2]:
            torque += np.swapaxes(self.friction(np.swapaxes(velocity, -1, -2)), -1, -2)


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
    driven, others, variable : tuple of DrivenJoint
        All joints, those with more than one motor, and those of variable stiffness among them that
        the kernels know.
    single : SingleMotors
        The rest.

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
    variable: tuple[DrivenJoint, ...] = field(init=False, repr=False)
    variable_blocks: Blocks = field(init=False, repr=False)
    quick: dict[Any, Any] = field(init=False, repr=False)

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
        variable = tuple(item for item in driven if is_known(item.actuator))
        blocks = [(*item.actuator.motor_inertias, *item.actuator.model.block) for item in variable]  # type: ignore[attr-defined]
        values = {
            'by_joint': MappingProxyType(chosen),
            'motor_names': tuple(names),
            'joint_of_motor': joint_of_motor,
            'driven': tuple(driven),
            'single': SingleMotors(self.model, driven),
            'others': tuple(item for item in driven if not _is_single(item.actuator)),
            'variable': variable,
            'variable_blocks': Blocks(variable, blocks),
            'quick': {},
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


def is_known(actuator: Actuator) -> bool:
    """Whether the kernels know an actuator of variable stiffness."""
    return type(actuator) is VariableStiffness and isinstance(actuator.model, KnownModel)
