"""Drives of joints: rigid, series elastic, of variable stiffness; and those of a robot as arrays.

A series is an array whose last axis is the order of the derivative: entry k is the k-th time
derivative of a scalar, here of one joint. Motor positions, torques and inertias are reflected to
the joint: behind the gear, where the spring sees them.

Rigid: theta = q. Series elastic: Q = f(theta - q) + D (thetad - qd). For both
tau = B theta2d + Q + friction(thetad). Source: Spong 1987, "Modeling and Control of Elastic Joint
Robots"; De Luca and Book, "Robots with Flexible Elements". Variable stiffness: see `mechanisms`.

A damper beside a linear spring is followed along a slow motion, without memory of the past: of the
equation k x + D x' = Q the solution that has forgotten its beginning is the series

    x = (Q - T Q' + T^2 Q'' - ...) / k,   T = D / k,

which is broken off where the orders of Q end, with an error of about T^E x^(E).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.mechanisms import Elastic, VsaModel
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.checks import checked_number, finite_array, first_not_finite, set_checked
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError
from hodyn_ros.model.friction import FrictionLaw, JointFriction
from hodyn_ros.typing import Array, Indices

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

_ANGULAR_AND_LINEAR = (('N m/rad', 'N/m'), ('kg m^2', 'kg'), ('N m', 'N'), ('rad', 'm'))


class Motors(NamedTuple):
    """Motion and torque of the m motors of one joint.

    Examples
    --------
    >>> from hodyn_ros.actuators import SeriesElastic
    >>> position, torque = SeriesElastic(1000.0, 0.1).motors([0.3, 0.0, 0.0], [20.0, 5.0, 0.0])
    >>> position.round(3), torque
    (array([[0.32 , 0.005, 0.   ]]), array([[20.]]))
    """

    position: Array
    """Series of the positions, shape (..., m, R) [rad] or [m]."""
    torque: Array
    """Series of the torques, shape (..., m, T) [N m] or [N]; T = R - 2, or 0 if that is less."""


class Actuator:
    """What moves one joint: a `RigidDrive`, a `SeriesElastic` or a `VariableStiffness` one.

    Actuators are immutable. All arrays may have leading axes.

    Attributes
    ----------
    motor_suffixes : tuple of str
        What the name of each motor adds to the name of the joint.
    needs_stiffness : bool
        Whether the stiffness of the joint is a second output that must be given.
    stiffness : float
        Of a linear spring [N m/rad] or [N/m]; infinite for all others.
    damping : float
        Of a damper beside it [N m s/rad] or [N s/m].

    Examples
    --------
    >>> from hodyn_ros.actuators import RigidDrive, SeriesElastic
    >>> rigid, elastic = RigidDrive(0.1), SeriesElastic(1000.0, 0.1)
    >>> motors = [drive.motors([0.3, 0.0, 0.0], [20.0, 0.0, 0.0]) for drive in (rigid, elastic)]
    >>> [float(motor.position[0, 0]) for motor in motors]
    [0.3, 0.32]
    """

    motor_suffixes: tuple[str, ...] = ('',)
    needs_stiffness: bool = False
    stiffness: float = inf
    damping: float = 0.0
    motor_inertia: Any
    friction: Any

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of each motor [kg m^2] or [kg]."""
        return _each(self.motor_inertia)

    @property
    def friction_laws(self) -> tuple[FrictionLaw | None, ...]:
        """Friction of each motor."""
        return _each(self.friction)

    @property
    def turns_with_joint(self) -> tuple[bool, ...]:
        """Whether each motor drives the joint through a spring; one that sets a pivot does not."""
        return (True,)

    def motors(
        self, q: ArrayLike, effort: ArrayLike, stiffness: ArrayLike | None = None
    ) -> Motors:
        """Motion and torque of the motors that make the joint move so.

        Parameters
        ----------
        q : array-like, shape (..., K)
            Series of the joint position [rad] or [m].
        effort : array-like, shape (..., E)
            Series of the joint torque [N m] or [N], E = K - 2 as from `inverse_dynamics`.
        stiffness : array-like, shape (..., S), optional
            Series of the joint stiffness [N m/rad] or [N/m], for actuators that can choose it; a
            constant one needs its derivatives too, which are zero.

        Returns
        -------
        Motors
            With R = min(K, E, S) orders; of a rigid drive min(K, E + 2).

        Raises
        ------
        DeflectionError
            If the springs cannot have the torque or stiffness.
        ActuatorError
            If the input does not suit the actuator.
        MotionError
            If an input is no series of finite numbers.
        """
        given = {'q': q, 'effort': effort}
        if self.needs_stiffness:
            if stiffness is None:
                raise ActuatorError(
                    'A joint with variable stiffness needs the series of its stiffness, '
                    'shape (..., S) [N m/rad], beside motion and effort; none is given.'
                )
            given['stiffness'] = stiffness
        elif stiffness is not None:
            raise ActuatorError(
                'A stiffness is given, but the actuator cannot choose it; leave it out.'
            )
        series = [_series_of(name, value) for name, value in given.items()]
        try:
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in series))
        except ValueError:
            shapes = ', '.join(f'{name} {f.shape}' for name, f in zip(given, series))
            raise MotionError(f'Leading axes do not fit: {shapes}.') from None
        whole = [np.broadcast_to(x, (*batch, x.shape[-1]))[..., None] for x in series]
        theta, tau, _ = DriveArrays([self]).move(*whole)
        return Motors(np.swapaxes(theta, -1, -2), np.swapaxes(tau, -1, -2))

    @property
    def law(self) -> tuple[float, ...]:
        """Kind and constants of what is between motors and joint, as `kernels` reads them."""
        return (kernels.RIGID,)

    def refuse(self, effort: Array, stiffness: Array, is_edge: bool) -> None:
        """Error about efforts (..., E) and stiffnesses (..., S) that the springs cannot have."""

    def _check_friction(self) -> None:
        for law in self.friction_laws:
            if law is not None and not isinstance(law, FrictionLaw):
                raise ActuatorError(
                    f'{type(self).__name__}: friction is {law!r}, expected a friction law such as '
                    'friction.Viscous(0.1), or None.'
                )


def _each(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


@dataclass(frozen=True)
class RigidDrive(Actuator):
    """Motor and joint are one: theta = q, tau = Q + B q2d + friction(qd).

    Attributes
    ----------
    motor_inertia : float
        Inertia B of the motor as the joint sees it: gear ratio squared times rotor inertia
        [kg m^2] or [kg], not negative.
    friction : FrictionLaw, optional
        Friction of the motor, beside that of the model, which is part of Q.

    Examples
    --------
    >>> from hodyn_ros import friction
    >>> from hodyn_ros.actuators import RigidDrive
    >>> drive = RigidDrive(motor_inertia=0.5, friction=friction.Viscous(2.0))
    >>> drive.motors([0.1, 1.0, 3.0], [10.0]).torque
    array([[13.5]])
    """

    motor_inertia: float = 0.0
    friction: FrictionLaw | None = None

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'motor_inertia', least=0.0)
        self._check_friction()


@dataclass(frozen=True)
class SeriesElastic(Actuator):
    """A motor, a spring and perhaps a damper beside it.

    An `ActuatorError` is raised if the spring is no spring, a parameter is not positive (the
    damping may be zero) or a damper is to stand beside a spring that is not linear.

    Attributes
    ----------
    spring : Spring
        Given as a number, it is the stiffness of a linear spring [N m/rad] or [N/m].
    motor_inertia : float
        Inertia B of the motor as the spring sees it: gear ratio squared times rotor inertia
        [kg m^2] or [kg].
    damping : float
        D [N m s/rad] or [N s/m], of a damper beside a linear spring. The deflection is that of a
        slow motion, which changes little within D / k, see the module.
    friction : FrictionLaw, optional
        Friction of the motor, in terms of its velocity behind the gear.

    Examples
    --------
    The motor is ahead of the joint by torque over stiffness:

    >>> from hodyn_ros.actuators import SeriesElastic
    >>> drive = SeriesElastic(1000.0, motor_inertia=0.1)
    >>> drive.motors([0.3, 0.0, 0.0], [20.0, 0.0, 0.0]).position
    array([[0.32, 0.  , 0.  ]])
    """

    spring: Spring
    motor_inertia: float
    damping: float = 0.0
    friction: FrictionLaw | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.spring, Spring):
            set_checked(self, ActuatorError, 'spring', above=0.0)
            object.__setattr__(self, 'spring', LinearSpring(float(self.spring)))
        set_checked(self, ActuatorError, 'motor_inertia', above=0.0)
        set_checked(self, ActuatorError, 'damping', least=0.0)
        if self.damping and not isinstance(self.spring, LinearSpring):
            raise ActuatorError(
                f'SeriesElastic: damping is {self.damping} beside a {type(self.spring).__name__}, '
                'expected a damper beside a linear spring: give LinearSpring(stiffness), or '
                'damping=0.'
            )
        if isinstance(self.spring, LinearSpring):
            object.__setattr__(self, 'stiffness', self.spring.stiffness)
        self._check_friction()

    @property
    def slowness(self) -> float:
        """Time constant D / k of spring and damper [s]; zero without a damper."""
        return self.damping / self.stiffness

    @property
    def law(self) -> tuple[float, ...]:
        """Spring and damper; see `Actuator.law`."""
        return kernels.SPRING, self.slowness, *self.spring.block[1:].tolist()

    def refuse(self, effort: Array, stiffness: Array, is_edge: bool) -> None:
        """Error about efforts (..., E) that the spring cannot have; see `Actuator.refuse`."""
        terms = (-self.slowness) ** np.arange(effort.shape[-1])
        self.spring.check_torque(effort @ terms)


@dataclass(frozen=True)
class VariableStiffness(Actuator):
    """Two motors, and springs between them and the joint.

    An `ActuatorError` is raised if the inertia is not above zero, or a model or friction is none.

    Attributes
    ----------
    model : VsaModel
        The springs: `Qbmove`, `DlrBavs` or `AwasII`.
    motor_inertia : tuple of float, length 2
        Reflected inertia of each motor [kg m^2], or what belongs to its coordinate; one number
        stands for both.
    friction : FrictionLaw or pair of them, optional
        Friction of each motor in terms of its velocity; one law stands for both.

    Examples
    --------
    >>> from hodyn_ros.actuators import VariableStiffness, vsa_model
    >>> drive = VariableStiffness(vsa_model('qbmove', a=7.0, k=0.02), motor_inertia=0.01)
    >>> position, _ = drive.motors([0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [6.0, 0.0, 0.0])
    >>> position[:, 0].round(3)
    array([ 0.602, -0.412])
    """

    model: VsaModel
    motor_inertia: float | tuple[float, float]
    friction: FrictionLaw | tuple[FrictionLaw | None, FrictionLaw | None] | None = None

    motor_suffixes: tuple[str, ...] = ('_motor1', '_motor2')
    needs_stiffness = True

    def __post_init__(self) -> None:
        if not isinstance(self.model, VsaModel):
            raise ActuatorError(
                f'VariableStiffness: model is {self.model!r}, expected a VsaModel such as '
                'Qbmove(a=6.7, k=0.022).'
            )
        what, laws = 'VariableStiffness: motor_inertia', _of_both('friction', self.friction)
        inertias = tuple(
            checked_number(what, x, ActuatorError, above=0.0)
            for x in _of_both('motor_inertia', self.motor_inertia)
        )
        for name, value in (('motor_inertia', inertias), ('friction', laws)):
            object.__setattr__(self, name, value)
        self._check_friction()

    @property
    def turns_with_joint(self) -> tuple[bool, ...]:
        """Whether each motor turns with the joint; see `Actuator.turns_with_joint`."""
        return tuple(c != 0.0 for c in self.model.link_coupling)

    def elastic(self, q: ArrayLike, position: ArrayLike) -> Elastic:
        """Compute what the springs do at positions of joint (..., K) and motors (..., 2, K)."""
        q, position = _series_of('q', q), _series_of('position', position)
        coupling = np.array(self.model.link_coupling)[:, None]
        return self.model.series(position - q[..., None, :] * coupling)

    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Interval of the stiffnesses that an effort allows; see `VsaModel.stiffness_range`."""
        return self.model.stiffness_range(effort)

    @property
    def law(self) -> tuple[float, ...]:
        """Springs; see `Actuator.law`."""
        return self.model.block

    def refuse(self, effort: Array, stiffness: Array, is_edge: bool) -> None:
        """Error about what the springs cannot have; see `Actuator.refuse`."""
        self.model.check(effort[..., 0], stiffness[..., 0], is_edge)


def _of_both(name: str, value: Any) -> tuple[Any, ...]:
    """What belongs to each of two motors, from one for each or one for both."""
    values = (
        tuple(value) if isinstance(value, (tuple, list, np.ndarray)) else (value, value)
    )
    if len(values) != 2:
        raise ActuatorError(
            f'VariableStiffness: {name} has {len(values)} values, expected one for each of the '
            'two motors, or one for both.'
        )
    return values


def _series_of(name: str, value: ArrayLike) -> Array:
    """Series (..., K) of finite numbers, K >= 1.

    Raises
    ------
    MotionError
        If it is none; the message begins with the name.
    """
    found = finite_array(name, value, MotionError)
    if found.ndim == 0 or found.shape[-1] == 0:
        raise MotionError(
            f'{name} has shape {found.shape}, expected (..., K): a last axis with the value and '
            'its time derivatives.'
        )
    return found


class DriveArrays:
    """Drives of n joints with m motors as arrays.

    Parameters
    ----------
    actuators : sequence of Actuator
    model : RobotModel, optional
        Whose joints they move; errors then name these.

    Attributes
    ----------
    inertia : ndarray, shape (m,)
    joint_of_motor : ndarray of int, shape (m,)
    stiffness : ndarray, shape (n,)
        Of linear springs; infinite for all other joints.
    variable : list of int
        Joints of variable stiffness, v of them.
    damping : ndarray, shape (n,)
        Of dampers beside springs.
    is_elastic : bool
        Whether there is a spring.
    friction : JointFriction or None
        Of the motors.
    """

    def __init__(
        self, actuators: Sequence[Actuator], model: RobotModel | None = None
    ) -> None:
        self._actuators, self._model = actuators, model
        counts = [len(x.motor_inertias) for x in actuators]
        self.joint_of_motor: Indices = np.repeat(np.arange(len(counts)), counts)
        self.joint_of_motor.setflags(write=False)
        self.inertia: Array = np.array([*chain(*(x.motor_inertias for x in actuators))])
        self.stiffness: Array = np.array([x.stiffness for x in actuators])
        self.damping: Array = np.array([x.damping for x in actuators])
        self.variable: list[int] = [j for j, x in enumerate(actuators) if x.needs_stiffness]
        self.is_elastic: bool = not all(isinstance(x, RigidDrive) for x in actuators)
        laws = enumerate(chain(*(x.friction_laws for x in actuators)))
        friction = {motor: law for motor, law in laws if law is not None}
        self.friction: JointFriction | None = JointFriction(friction) if friction else None
        blocks = [(*(*x.motor_inertias, 0.0)[:2], *x.law) for x in actuators]
        starts = (np.cumsum([0, *sizes])[:-1] for sizes in (counts, map(len, blocks)))
        self._places = np.stack((np.arange(len(counts)), *starts), axis=-1)
        self._numbers = np.array([*chain(*blocks)])

    def orders(self, K: int, E: int, *S: int) -> int:
        """Number of orders R of the motors that motion, efforts and stiffness determine."""
        return min(K, E if self.is_elastic else E + 2, *S)

    def move(
        self, q: Array, effort: Array, stiffness: Array | None = None
    ) -> tuple[Array, ...]:
        """Positions and torques of motors, and deflections of joints, with derivatives.

        Parameters
        ----------
        q, effort : ndarray, shape (..., K, n) and (..., E, n)
        stiffness : ndarray, shape (..., S, v), optional
            Of the joints of variable stiffness.

        Returns
        -------
        tuple of ndarray, shape (..., R, m), (..., T, m) and (..., R, n)

        Raises
        ------
        DeflectionError, ActuatorError, MotionError
            If springs cannot have an effort or a stiffness, or numbers are not finite.
        """
        status, *moved = self._moved(q, effort, stiffness)
        if status:
            self._refuse(q, effort, stiffness)
        return tuple(moved)

    def _moved(self, q: Array, effort: Array, stiffness: Array | None) -> tuple[Any, ...]:
        """What is wrong, or zero, and what `move` returns."""
        *batch, K, n = q.shape
        S = () if stiffness is None else (stiffness.shape[-2],)
        R, m, N = self.orders(K, effort.shape[-2], *S), len(self.inertia), prod(batch)
        wanted = np.empty((0, 0)) if stiffness is None else stiffness[..., :R, :]
        T = max(R - 2, 0)
        flat = (np.empty((N * R, m)), np.empty((N * T, m)), np.empty((N * R, n)))
        given = [np.ascontiguousarray(_rows(x)) for x in (q, effort, wanted)]
        kernel = kernels.drives if self.variable else kernels.springs
        status = kernel(N, self._places, self._numbers, *given, *flat) if N else 0
        theta, tau, delta = (
            x.reshape(*batch, k, x.shape[-1]) for x, k in zip(flat, (R, T, R))
        )
        if self.friction:
            self.add_friction(theta[..., 1:-1, :], tau)
            status |= 0 if np.isfinite(tau).all() else kernels.NOT_FINITE
        return status, theta, tau, delta

    def deflections(self, torque: Array) -> Array:
        """Deflections (..., K, n) of springs by joint torques; zero for rigid joints.

        All joints have one motor.
        """
        return self.move(np.zeros(torque.shape), torque)[2]

    def add_friction(self, velocity: Array, torque: Array) -> None:
        """Add friction (..., T, m) of motors with these velocities to their torques, in place."""
        if self.friction and torque.shape[-2]:
            torque += np.swapaxes(self.friction(np.swapaxes(velocity, -1, -2)), -1, -2)

    def _refuse(self, q: Array, effort: Array, stiffness: Array | None) -> None:
        """Raise the error of the joint that cannot do what it is asked for, if there is one."""
        for what, values in (('The motion', q), ('The effort', effort)):
            finite_array(what, values, MotionError)
        for j, actuator in enumerate(self._actuators):
            with of_joint(self._model, j):
                wanted = None
                if stiffness is not None and j in self.variable:
                    wanted = stiffness[..., self.variable.index(j), None]
                    finite_array('The stiffness', wanted, ActuatorError)
                _refuse_alone(actuator, q[..., [j]], effort[..., [j]], wanted)


def _rows(x: Array) -> Array:
    """Array with two axes: all but the last become one."""
    return x if x.ndim == 2 else x.reshape(prod(x.shape[:-1]), x.shape[-1])


def _refuse_alone(
    actuator: Actuator, q: Array, effort: Array, stiffness: Array | None
) -> None:
    """Raise the error of one joint (..., K, 1), if there is one."""
    status, *motors, _ = DriveArrays([actuator])._moved(q, effort, stiffness)
    if status & ~kernels.NOT_FINITE:
        wanted = effort if stiffness is None else stiffness
        is_edge = bool(status & kernels.IRREGULAR)
        actuator.refuse(effort[..., 0], wanted[..., 0], is_edge)
    reasons = (
        ('smaller ones, or springs that fit them', DeflectionError),
        (
            'a slower motion, or a smaller inertia or friction',
            ActuatorError,
        ),
    )
    for what, values, (cause, error) in zip(('position', 'torque'), motors, reasons):
        where = first_not_finite(values)
        if where is not None:
            *sample, order, motor = where
            text = repr(actuator)
            text = (
                text if len(text) <= 200 else f'{text[:200]}...'
            )  # not all of a long table
            raise error(
                f'the {what} of motor {motor + 1} (derivative {order}, sample '
                f'{tuple(sample)}) is {values[where]} for {text}. What is given, or its '
                f'derivatives, is out of all proportion; expected {cause}.'
            )


@contextmanager
def of_joint(
    model: RobotModel | None, joint: int, beginning: str | None = None
) -> Iterator[None]:
    """Block whose errors get the name and the units of a joint; overflow inside does not warn.

    Parameters
    ----------
    model : RobotModel or None
        None: errors stay as they are.
    joint : int
        Index of the joint.
    beginning : str, optional
        Of the messages; by default the name of the joint.

    Raises
    ------
    DeflectionError, ActuatorError, MotionError
        Of the same kind as those raised inside; a `DeflectionError` gets the joint as attribute.
    """
    try:
        # Overflow is found in what comes out, and told in words.
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            yield
    except (ActuatorError, MotionError) as error:
        if model is None:
            raise
        name = model.joint_names[joint]
        start = f'Joint {name!r}: ' if beginning is None else beginning
        message = start + in_units_of(model, joint, str(error))
        if isinstance(error, DeflectionError):
            raise DeflectionError(message, joint=name, sample=error.sample) from None
        raise type(error)(message) from None


def in_units_of(model: RobotModel, joint: int, text: str) -> str:
    """Text in the units of a joint; springs speak of angles, not knowing what they drive.

    For prismatic joints N m becomes N, rad m and kg m^2 kg.
    """
    if model.joint_types[joint] != 'prismatic':
        return text
    for angular, linear in _ANGULAR_AND_LINEAR:
        text = re.sub(rf'(?<!\w){re.escape(angular)}(?!\w)', linear, text)
    return text
