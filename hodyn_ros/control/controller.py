"""Control laws without memory: what they have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import DriveArrays, RigidDrive, SeriesElastic
from hodyn_ros.checks import checked_number
from hodyn_ros.control import step
from hodyn_ros.control.law import Command, Law, check_actuators
from hodyn_ros.control.values import fill
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.engine.engine import engine_of, unavailable
from hodyn_ros.engine.joint_friction import friction_laws
from hodyn_ros.engine.requests import EFFORTS, KernelRequest
from hodyn_ros.errors import ActuatorError, ControlError, ModelError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array, Flags, Indices

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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import Controller, make_controller
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law: Controller = make_controller(model, 'feed_forward_2', drives, bandwidth=20.0)
    >>> law.is_elastic, law.orders
    (array([False,  True]), 5)
    """

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        self.motors: DriveArrays = controlled_motors(model, actuators)
        super().__init__(actuators)
        self.model: RobotModel = model
        kinds = [isinstance(actuators[name], SeriesElastic) for name in model.joint_names]
        self.is_elastic: Flags = np.array(kinds, dtype=bool)
        self.elastic: Indices = np.flatnonzero(self.is_elastic)
        self.rigid: Indices = np.flatnonzero(~self.is_elastic)
        self.limit(np.inf if torque_limits is None else torque_limits)
        self.lead: float = checked_number(
            'The lead', lead, ControlError, least=0.0, unit='s'
        )

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
        return Command(self._limited(demand), demand)

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


def controlled_motors(model: RobotModel, actuators: Actuators) -> DriveArrays:
    """Motors and springs of all joints at once.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
        Rigid drives and series elastic ones without dampers.

    Returns
    -------
    DriveArrays

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
        if actuator.damping:
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
    return actuators.arrays


def friction_of(motors: DriveArrays, velocity: Array) -> Array:
    """Friction of the motors.

    Parameters
    ----------
    motors : DriveArrays
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


def motor_losses(actuators: Actuators) -> RobotModel:
    """Robot whose efforts are the friction of the motors: its bodies have no mass.

    Parameters
    ----------
    actuators : Actuators
        With one motor for each joint.

    Raises
    ------
    ModelError
        If a law of friction has no code.
    """
    model, laws = actuators.model, {}
    for item in actuators.driven:
        if item.actuator.friction_laws[0] is not None:
            laws[item.name] = item.actuator.friction_laws[0]
    M, armature = 0.0 * model.M_body, 0.0 * model.armature
    losses: RobotModel = replace(model, M_body=M, armature=armature, friction=laws)
    friction_laws(losses)
    return losses


def warm_up(model: RobotModel, actuators: Actuators | None = None) -> None:
    """Have compiled what the control laws compute with a model and its springs.

    Otherwise the first samples take seconds, and some of those after them are held up.

    Parameters
    ----------
    model : RobotModel
        Of it, mass matrix, weight and efforts of orders 0 to 2 are compiled.
    actuators : Actuators, optional
        By default springs and mechanisms of all kinds are compiled, otherwise those of the
        actuators, which takes less time.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import warm_up
    >>> model = RobotModel.from_urdf('two_link')
    >>> warm_up(model, Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)}))
    """
    if not unavailable():
        step.machine_code()
        kernels.prepare(actuators is None or bool(actuators.variable))
    motion = np.zeros((5, model.n_joints))
    model.warm_up(
        2, lambda: mass_matrix(model, motion[:1]), lambda: gravity_effort(model, motion[:1])
    )
    for rows in (3, 4, 5):
        inverse_dynamics(model, motion[:rows])
    if actuators is None or not actuators.arrays.friction or unavailable():
        return
    if not actuators.variable and model.closure is None:
        with suppress(ModelError):  # a law of friction of one's own
            engine_of(motor_losses(actuators)).prepare(KernelRequest(EFFORTS, 3))
