"""Actuators of a whole robot: which joint has which, and what their motors are called.

Joints may be rigid, series elastic or of variable stiffness, mixed as the robot has them. Those
that the kernels know are grouped: they are computed in one call.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.actuator import Actuator, RigidDrive, friction_laws, of_joint
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring
from hodyn_ros.actuators.vsa.model import VariableStiffness
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.kinematics.closing import constraints_of
from hodyn_ros.model.friction import FrictionLaw, JointFriction
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array, Indices


class DrivenJoint(NamedTuple):
    """A joint with its actuator and motors, at their places in the arrays of a robot."""

    name: str
    joint: int
    """Index of the joint in the model."""
    motors: slice
    """Indices of its motors."""
    actuator: Actuator


class SingleMotors:
    """Joints with one motor: rigid and series elastic ones. Indices are those among them.

    Attributes
    ----------
    inertia : ndarray, shape (s,)
    stiffness : ndarray, shape (s,)
        Of linear springs; infinite for all other joints.
    own : list of DrivenJoint
        Joints with dampers, or with a law of the user's own.
    is_elastic : bool
        Whether one of them has a spring.
    friction : JointFriction or None
        Of all motors that the kernels know.
    """

    def __init__(self, actuators: Actuators) -> None:
        self._actuators = actuators
        items = [item for item in actuators.driven if type(item.actuator) in _SINGLE]
        self.inertia = np.array([item.actuator.motor_inertias[0] for item in items])
        self.stiffness = np.full(len(items), np.inf)
        self.own: list[DrivenJoint] = []
        self.is_elastic = False
        for place, item in enumerate(items):
            actuator = item.actuator
            if isinstance(actuator, SeriesElastic):
                self.is_elastic = True
                if type(actuator.spring) is LinearSpring:
                    self.stiffness[place] = actuator.spring.stiffness
                if actuator.damping or actuator.spring.block is None:
                    self.own.append(item)
        friction: dict[int, FrictionLaw] = {}
        for item in (*items, *actuators.variable):
            laws = enumerate(friction_laws(item.actuator), item.motors.start)
            friction.update((motor, law) for motor, law in laws if law is not None)
        self.friction = JointFriction(friction) if friction else None

    def deflections(self, torque: Array) -> Array:
        """Deflections (..., K, n) of springs by joint torques; zero for rigid joints.

        All joints have one motor.
        """
        *batch, K, n = torque.shape
        theta, tau = np.empty(torque.shape), np.empty((*batch, max(K - 2, 0), n))
        delta = np.zeros(torque.shape)
        stiffness = np.empty((*batch, 0, K))
        self._actuators.drive(np.zeros(torque.shape), torque, stiffness, theta, tau, delta)
        return delta

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

    Raises
    ------
    JointNameError
        If a joint is unknown.
    ActuatorError
        If what is given is no actuator, or an inertia counts twice.
    """

    model: RobotModel
    by_joint: Mapping[str, Actuator]
    quick: dict[Any, Any] = field(init=False, repr=False, default_factory=dict)

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
    def joint_of_motor(self) -> Indices:
        """Index of the joint that each motor moves, shape (m,)."""
        counts = [item.motors.stop - item.motors.start for item in self.driven]
        joints = np.repeat(np.arange(len(counts)), counts)
        joints.setflags(write=False)
        return joints

    @cached_property
    def others(self) -> tuple[DrivenJoint, ...]:
        """Joints that have not one motor."""
        return tuple(item for item in self.driven if type(item.actuator) not in _SINGLE)

    @cached_property
    def variable(self) -> tuple[DrivenJoint, ...]:
        """Those of variable stiffness among the others that the kernels know."""
        return tuple(item for item in self.others if _block(item.actuator) is not None)

    @cached_property
    def single(self) -> SingleMotors:
        """Joints with one motor."""
        return SingleMotors(self)

    @cached_property
    def kernel(self) -> kernels.ElasticKernel:
        """Kernel for the joints that the kernels know."""
        blocks = (_block(item.actuator) for item in self.driven)
        return kernels.drive(any(block and kernels.bends(block[2:]) for block in blocks))

    @cached_property
    def known(self) -> tuple[Indices, Array]:
        """Joints that the kernels know, as `kernels.drive` takes them.

        Places (j, 3): their index, first motor, and where their numbers begin; and the numbers.
        """
        places: list[tuple[int, int, int]] = []
        numbers: list[float] = []
        for item in self.driven:
            if (block := _block(item.actuator)) is not None:
                places.append((item.joint, item.motors.start, len(numbers)))
                numbers += block
        return np.array(places, dtype=np.int64).reshape(-1, 3), np.array(numbers)

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

    def drive(
        self,
        q: Array,
        effort: Array,
        stiffness: Array,
        theta: Array,
        tau: Array,
        delta: Array,
    ) -> None:
        """Write motors (..., R, m), (..., T, m) and deflections (..., R, n), see `kernels.drive`.

        Joints move by q (..., K, n) with efforts (..., E, n); the stiffness (..., v, R) is that of
        the joints of variable stiffness.
        """
        *batch, R, n = delta.shape
        N = prod(batch)
        if not N:
            return
        for item in self.single.own:
            with of_joint(self.model, item.joint):
                torque = effort[..., :R, item.joint]
                delta[..., item.joint] = item.actuator.deflection_series(torque)  # type: ignore[attr-defined]
        rows = (
            a.reshape(-1, a.shape[-1]) for a in (q, effort, stiffness, theta, tau, delta)
        )
        status = self.kernel(N, *self.known, *rows)
        if status & ~kernels.NOT_FINITE:
            # The joint that cannot have its torque or stiffness is to say so.
            series = {
                item.joint: stiffness[..., i, :] for i, item in enumerate(self.variable)
            }
            for item in self.driven:
                j = item.joint
                if _block(item.actuator) is not None:
                    with of_joint(self.model, j):
                        item.actuator.motors(q[..., j], effort[..., j], series.get(j))

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
        if not isinstance(actuator, Actuator):
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
        raise JointNameError(
            f'The actuators name unknown joints: {listed(unknown)}{remark}; expected joints among '
            f'{listed(model.joint_names)}.'
        )


# Derived classes may have overridden anything.
_SINGLE = (RigidDrive, SeriesElastic)


def _block(actuator: Any) -> list[float] | None:
    """Numbers by which the kernels know an actuator: two inertias, and its springs."""
    springs: Sequence[float]
    if type(actuator) is RigidDrive:
        springs = (kernels.RIGID,)
    elif type(actuator) is SeriesElastic:
        own = None if actuator.damping else actuator.spring.block
        springs = (kernels.GIVEN,) if own is None else own.tolist()
    elif type(actuator) is VariableStiffness:
        springs = actuator.model.block.tolist()
    else:
        return None
    return [*(*actuator.motor_inertias, 0.0)[:2], *springs]
