"""What control laws without memory have in common: limits of the motor torques, and gains."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.actuator import RigidDrive
from hodyn_ros.actuators.assignment import Actuators, SingleMotors
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.checks import checked_number
from hodyn_ros.control.kernels import prepare
from hodyn_ros.control.law import Command, Law, check_actuators
from hodyn_ros.control.values import fill, per_joint
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.engine.engine import unavailable
from hodyn_ros.errors import ActuatorError, ControlError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import joint_order
from hodyn_ros.typing import Array

Poles = Union[float, Sequence[complex]]  # noqa: UP007
"""Of one joint: its poles [rad/s], or the bandwidth w [rad/s] that puts all of them at -w."""

# Of positions and of accelerations by torques, for numerical derivatives.
_DIFFERENCE = 1e-4
# Of an imaginary part that rounding leaves, relative to the coefficient.
_ROUNDING = 1e-9
_STATE = ('q', 'qd', 'theta', 'thetad')


class Controller(Law):
    """A control law without memory: the same arguments give the same torques.

    Parameters
    ----------
    model : RobotModel
        The link side; what it holds as friction and armature acts there.
    actuators : Actuators
        Rigid drives and series elastic ones without damping.
    torque_limits : float or array-like, shape (n,), optional
        Largest motor torque in both directions [N m] or [N]; infinite where there is none.
    lead : float
        How much later than the measurement the torque acts, in the mean [s]: half of the period
        for which it is held. What is wanted is that of the later time. A known delay may be added
        for the motor-side laws, not for `FlatnessController`.

    Attributes
    ----------
    is_elastic : ndarray of bool, shape (n,)
        Which joints have a spring.

    Raises
    ------
    ControlError
        If the actuators are of another robot or kind, a limit is not positive, or the lead is
        negative.
    """

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        self.motors = controlled_motors(model, actuators)
        super().__init__(actuators)
        self.model, n = model, model.n_joints
        kinds = [isinstance(actuators[name], SeriesElastic) for name in model.joint_names]
        self.is_elastic = np.array(kinds, dtype=bool)
        self.elastic = np.flatnonzero(self.is_elastic)
        self.rigid = np.flatnonzero(~self.is_elastic)
        given = np.inf if torque_limits is None else torque_limits
        self.limit(per_joint('torque_limits', given, n, np.inf))
        self.lead = checked_number('The lead', lead, ControlError, least=0.0, unit='s')

    def evaluate(
        self,
        desired: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike | None,
        theta: ArrayLike,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None,
        elapsed: float | None = None,
    ) -> Command:
        """Motor torques for a measured state.

        Parameters
        ----------
        desired : array-like, shape (5, n)
            Wanted position of the links and its first four time derivatives [rad/s^k] or [m/s^k],
            `lead` after the measurement. What the law does not look at, see `orders`, may be any
            finite number.
        q, qd : array-like, shape (n,)
            Position and velocity of the links.
        theta, thetad : array-like, shape (n,)
            Position and velocity of the motors, reflected to the links; those of rigid drives are
            not looked at.
        spring_torque, stiffness, elapsed
            Are not looked at.

        Returns
        -------
        Command

        Raises
        ------
        MotionError
            If a shape is wrong, or a value or a torque is not finite.
        DeflectionError
            If a spring is measured, or would have to be, outside of its range.
        """
        n = self.model.n_joints
        wanted, state = np.empty((5, n)), np.empty((4, n))
        for row, name, values in zip(state, _STATE, (q, qd, theta, thetad)):
            fill(row, name, values)
        # Rigid motors are where the links are.
        state[2:, self.rigid] = state[:2, self.rigid]
        fill(wanted, 'desired', desired)
        demand = self._demand(wanted, state)
        return Command(self._limited(demand)[0], demand)

    def static_stiffness(self, position: ArrayLike) -> Array:
        """How stiff the links are that the law holds at rest in a position (n,).

        Returns
        -------
        ndarray, shape (n,)
            Constant torque on one link that the law does not know of, by how far this joint has
            moved when the robot has come to rest [N m/rad] or [N/m], for small torques; negative
            where it moves against the torque.

        Raises
        ------
        MotionError
            If the position has a wrong shape or is not finite.
        DeflectionError
            If a spring would be outside of its range.
        """
        model, n = self.model, self.model.n_joints
        reference = np.zeros((5, n))
        fill(reference[0], 'position', position)
        inertia = np.diagonal(mass_matrix(model, reference[:1])[0]) + self.motors.inertia

        def missing(moved: Array, pushed: Array) -> Array:
            """Motor torques that the law wants beyond what keeps the robot at rest."""
            state = np.zeros((4, n))
            state[0] = reference[0] + moved
            torque: Array = gravity_effort(model, state[:1]) - pushed
            state[2] = state[0] + self.motors.deflections(torque)[0]
            excess: Array = self._demand(reference, state) - torque[0]
            return excess

        none, steps = np.zeros(n), _DIFFERENCE * np.eye(n)
        by_motion = np.column_stack([missing(d, none) - missing(-d, none) for d in steps])
        steps *= inertia
        by_torque = np.column_stack([missing(none, d) - missing(none, -d) for d in steps])
        compliance = np.linalg.solve(by_motion, -by_torque / inertia)
        stiffness: Array = 1.0 / np.diagonal(compliance)
        return stiffness

    @abstractmethod
    def _demand(self, reference: Array, state: Array) -> Array:
        """Torques without limits.

        Parameters
        ----------
        reference : ndarray, shape (5, n)
            Finite.
        state : ndarray, shape (4, n)
            q, q', theta and theta', finite; rigid motors are where the links are.

        Returns
        -------
        ndarray, shape (n,)
            [N m] or [N]
        """


def controlled_motors(model: RobotModel, actuators: Actuators) -> SingleMotors:
    """Motors and springs of all joints at once.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
        Rigid drives and series elastic ones without dampers.

    Returns
    -------
    SingleMotors

    Raises
    ------
    ControlError
        If an argument has another type, the actuators are of another robot, or of a kind that no
        control law of the motor side can use.
    """
    if not isinstance(model, RobotModel):
        raise ControlError(
            f'The model is of type {type(model).__name__}, not a RobotModel.'
        )
    check_actuators(actuators)
    try:
        actuators.check_suits(model)
    except ActuatorError as error:
        raise ControlError(str(error)) from None
    for name, actuator in actuators.by_joint.items():
        if getattr(actuator, 'damping', 0.0):
            raise ControlError(
                f'The spring of joint {name!r} has a damper, expected none: with it, torques of '
                'the motor act on a lower derivative of the motion of the link. Small damping may '
                'be left out here.'
            )
        if type(actuator) not in (RigidDrive, SeriesElastic):
            raise ControlError(
                f'The actuator of joint {name!r} is {type(actuator).__name__}, expected '
                'SeriesElastic or RigidDrive.'
            )
    return actuators.single


def friction_of(motors: SingleMotors, velocity: Array) -> Array:
    """Friction of the motors.

    Parameters
    ----------
    motors : SingleMotors
    velocity : ndarray, shape (n,)
        Of the motors in joint coordinates [rad/s] or [m/s].

    Returns
    -------
    ndarray, shape (n,)
        [N m] or [N]
    """
    effort = np.zeros((1, velocity.size))
    motors.add_friction(velocity[None], effort)
    torque: Array = effort[0]
    return torque


def gains_from_poles(poles: ArrayLike) -> Array:
    """Gains that give a chain of integrators the wanted poles.

    With e the error and e^(N) = -(k_0 e + k_1 e' + ... + k_{N-1} e^(N-1)) the error dynamics have
    these poles.

    Parameters
    ----------
    poles : array-like of complex, shape (N,)
        In the left half plane, complex ones in conjugate pairs [rad/s].

    Returns
    -------
    ndarray, shape (N,)
        k_0 ... k_{N-1}; k_i in [1/s^(N-i)].

    Raises
    ------
    ControlError
        If a pole is not stable or lacks its conjugate, or gains are infinite or zero.
    """
    try:
        given = np.atleast_1d(np.asarray(poles, dtype=np.complex128))
    except (TypeError, ValueError):
        raise ControlError(f'The poles are {poles!r}, expected numbers [rad/s].') from None
    if given.ndim != 1 or not np.isfinite(given).all() or np.any(given.real >= 0.0):
        raise ControlError(
            f'The poles are {_shown(given)}, expected finite numbers with negative real parts.'
        )
    with np.errstate(over='ignore', under='ignore', invalid='ignore'):
        coefficients = np.asarray(np.poly(given), dtype=np.complex128)[:0:-1]
    if np.any(abs(coefficients.imag) > _ROUNDING * abs(coefficients)):
        raise ControlError(
            f'The poles are {_shown(given)}, expected complex ones in conjugate pairs.'
        )
    if not np.all((coefficients.real > 0.0) & np.isfinite(coefficients)):
        raise ControlError(
            f'The poles are {_shown(given)}, too far from or too close to zero: the gains would '
            'be infinite or zero.'
        )
    return np.ascontiguousarray(coefficients.real)


def joint_gains(
    joint_names: Sequence[str],
    orders: Sequence[int],
    poles: Poles | ArrayLike | Mapping[str, Poles],
) -> Array:
    """Gains of several joints, from bandwidths or poles.

    Parameters
    ----------
    joint_names : sequence of str
        Of the n joints.
    orders : sequence of int
        Integrators of each joint.
    poles : float, array-like or mapping
        As of `FlatnessController`, with as many poles for a joint as it has integrators.

    Returns
    -------
    ndarray, shape (N, n)
        `[i, j]` multiplies the i-th derivative of the error of joint j [1/s^(order - i)]; zero
        stands where its integrators are less than N, the largest of them.

    Raises
    ------
    ControlError
        If the poles have a wrong shape or number, or `gains_from_poles` refuses them.
    JointNameError
        If a mapping does not name the joints.
    """
    n = len(joint_names)
    gains = np.zeros((max(orders, default=0), n))
    for j, (name, order, given) in enumerate(
        zip(joint_names, orders, _of_joints(joint_names, poles))
    ):
        own = np.asarray(given)
        if own.ndim == 0:
            what = f'The bandwidth of joint {name!r}'
            own = np.full(
                order, -checked_number(what, given, ControlError, above=0.0, unit='rad/s')
            )
        if own.shape != (order,):
            raise ControlError(
                f'Joint {name!r} has {own.size} poles, expected {order} of them, or a bandwidth.'
            )
        try:
            gains[:order, j] = gains_from_poles(own)
        except ControlError as error:
            raise ControlError(f'Joint {name!r}: {error}') from None
    return gains


def _of_joints(
    joint_names: Sequence[str], poles: Poles | ArrayLike | Mapping[str, Poles]
) -> list[Poles]:
    """Poles or bandwidth of each joint, in the order of the names."""
    if isinstance(poles, Mapping):
        order = joint_order(tuple(poles), joint_names)
        values = list(poles.values())
        return [values[index] for index in order]
    try:
        array = np.asarray(poles, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty((0, 0))  # of no use
    n = len(joint_names)
    if isinstance(poles, bool) or array.shape not in ((), (n,)):
        raise ControlError(
            f'The poles are {poles!r}, expected a bandwidth [rad/s], {n} of them, or a mapping of '
            'joint names to bandwidths or poles.'
        )
    return [float(value) for value in np.broadcast_to(array, (n,))]


def _shown(poles: NDArray[np.complex128]) -> str:
    return ', '.join(f'{pole:.6g}' for pole in poles.ravel()[:8])


def warm_up(model: RobotModel, actuators: Actuators | None = None) -> None:
    """Have compiled what the control laws compute with a model.

    Otherwise the first samples take seconds, and some of those after them are held up.

    Parameters
    ----------
    model : RobotModel
        Of it, mass matrix, weight and efforts of orders 0 to 2 are compiled.
    actuators : Actuators, optional
        By default springs and mechanisms of all kinds are compiled, otherwise those of the
        actuators, which takes less time.
    """
    if not unavailable():
        prepare()
        needed = [kernels.laws]
        if actuators is None:
            needed += [kernels.elastic, kernels.drive(False), kernels.drive(True)]
        else:
            needed.append(actuators.kernel)
            if actuators.variable:
                needed.append(kernels.elastic)
        for kernel in needed:
            kernel.prepare()
    motion = np.zeros((5, model.n_joints))
    model.warm_up(
        2, lambda: mass_matrix(model, motion[:1]), lambda: gravity_effort(model, motion[:1])
    )
    for rows in (3, 4, 5):
        inverse_dynamics(model, motion[:rows])
