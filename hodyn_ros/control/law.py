"""What a control law is: motor torques for what is wanted and measured, one call a sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.control.values import ObservedState, per_joint
from hodyn_ros.errors import ControlError, MotionError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.control.guards import Guards

FOLLOWING, STOPPED = 'following', 'stopped'
"""States of a law: it follows what is wanted, or has been stopped and holds the robot."""


class ControlWarning(UserWarning):
    """A controller that holds the robot far softer than its springs do."""


class Command(NamedTuple):
    """What a law answers to a measurement; m motors.

    Attributes
    ----------
    torque : ndarray, shape (m,)
        Motor torque within the limits [N m] or [N].
    demand : ndarray, shape (m,)
        Motor torque without limits.
    reason : str
        Why the law has stopped the robot and holds it, or answers with the torque before;
        empty while it does what is wanted.
    remark : str
        What was wanted and cannot be, and what is done instead; empty if there is nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.control import Command
    >>> command = Command(torque=np.array([87.0, 5.0]), demand=np.array([120.0, 5.0]))
    >>> command.is_limited
    array([ True, False])
    """

    torque: Array
    demand: Array
    reason: str = ''
    remark: str = ''

    @property
    def is_limited(self) -> NDArray[np.bool_]:
        """Whether the limit of each motor has cut its torque, shape (m,) of bool."""
        limited: NDArray[np.bool_] = self.torque != self.demand
        return limited


class Law(ABC):
    """A control law of a robot with n joints and m motors.

    Laws are used alike, whatever they estimate, remember or watch over. The methods here that are
    not abstract are those of a law that does none of this.

    Parameters
    ----------
    actuators : Actuators
        With the model of the robot.

    Attributes
    ----------
    model : RobotModel
    actuators : Actuators
    torque_limits : ndarray, shape (m,)
        Largest motor torque in both directions [N m] or [N]; infinite where there is none.
    lead : float
        How much later than a measurement the wanted motion is to be [s].
    orders : int
        How many rows of what is wanted the law looks at: 5 if it needs position to snap.
    follows : bool
        Whether the law looks at what is wanted; otherwise the robot is led by hand.
    yields : bool
        Whether the robot is to give way to what touches it.
    estimates : bool
        Whether the law estimates the state: it needs positions alone, and takes torque sensors.
    guards : Guards, optional
        Bounds beyond which the law itself stops the robot; None if it does not.
    state : str
        `FOLLOWING` or `STOPPED`.
    reason : str
        Why the robot has been stopped; empty if it has not.

    Raises
    ------
    ControlError
        If the actuators are of another type.

    Examples
    --------
    Laws are used alike:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import JointImpedance, Law, make_controller, tracking_controller
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> laws: list[Law] = [
    ...     make_controller(model, 'feed_forward_2', drives, bandwidth=20.0),
    ...     tracking_controller(drives, 0.001),
    ...     JointImpedance(drives, 0.001, stiffness=50.0),
    ... ]
    >>> [(law.orders, law.estimates, law.yields) for law in laws]
    [(5, False, False), (5, True, False), (5, True, True)]
    """

    orders = 5
    follows = True
    yields = False
    estimates = False
    lead: float
    torque_limits: Array
    guards: Guards | None = None
    state = FOLLOWING
    reason = ''

    def __init__(self, actuators: Actuators) -> None:
        check_actuators(actuators)
        self.actuators: Actuators = actuators
        self.model: RobotModel = actuators.model

    @abstractmethod
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
        """Motor torques for a measurement.

        Parameters
        ----------
        desired : array-like, shape (5, n)
            Wanted position of the links and its first four time derivatives [rad/s^k] or [m/s^k],
            `lead` after the measurement.
        q, qd : array-like, shape (n,)
            Position and velocity of the links; a law that estimates does without velocities.
        theta, thetad : array-like, shape (m,)
            Position and velocity of the motors, reflected to the links; those of rigid drives are
            not looked at.
        spring_torque : array-like, shape (n,), optional
            Of torque sensors between springs and links [N m] or [N].
        stiffness : mapping of joint name to array-like, shape (3,), optional
            Wanted stiffness of joints that can choose it and two derivatives [N m/rad].
        elapsed : float, optional
            Time since the measurement before [s], by default a sample period.

        Returns
        -------
        Command

        Raises
        ------
        MotionError
            If a shape is wrong or a value is not finite.
        DeflectionError
            If a spring is measured, or would have to be, outside of its range.
        """

    def command(self, desired: ArrayLike, *measured: Any, **more: Any) -> Array:
        """Motor torques within the limits, shape (m,) [N m] or [N]; see `evaluate`."""
        return self.evaluate(desired, *measured, **more).torque

    def limit(self, torque: ArrayLike) -> None:
        """Bound the torques of the motors.

        Parameters
        ----------
        torque : float or array-like, shape (m,)
            Largest one in both directions [N m] or [N], infinite where there is none.

        Raises
        ------
        ControlError
            If the shape is wrong, or a limit is not positive; the limits stay as they are.
        """
        checked = per_joint('torque_limits', torque, self.actuators.n_motors, np.inf)
        self.torque_limits = checked.copy()

    def _limited(self, demand: Array) -> Array:
        """Torques (m,) within the limits; an error if one of them is not finite."""
        if not np.isfinite(demand).all():
            raise self._not_finite(demand)
        return np.clip(demand, -self.torque_limits, self.torque_limits)

    def _not_finite(self, demand: Array) -> MotionError:
        i = int(np.argmin(np.isfinite(demand)))
        return MotionError(
            f'The torque of motor {self.actuators.motor_names[i]!r} would be {demand[i]}: the '
            'reference or the state is out of range.'
        )

    def begin(self) -> None:  # noqa: B027
        """Begin with what is known, as when another law was used before."""

    def reset(self) -> None:  # noqa: B027
        """Forget everything, also why the robot was stopped; the next measurement begins anew."""

    def unrest(self) -> str:
        """Why the robot must not move on yet if it has been stopped, in words.

        Returns
        -------
        str
            A motor still moves, a position is beyond its bound or cannot be true, or holding has
            failed; empty if it may.
        """
        return ''

    def release(self) -> None:  # noqa: B027
        """Let a robot that has been stopped follow again.

        Raises
        ------
        ControlError
            If it cannot move on yet.
        """

    @property
    def memory(self) -> Array:
        """Copy of what the next answer depends on besides the next measurement, shape (N,)."""
        return np.empty(0)

    def observed(self) -> ObservedState | None:
        """State as it is estimated from the latest measurement; None if it is not."""
        return None

    @property
    def gated(self) -> int:
        """Measured positions so far that could not be true."""
        return 0


def check_actuators(actuators: Actuators) -> None:
    """Refusal of what is no `Actuators`.

    Parameters
    ----------
    actuators : Actuators

    Raises
    ------
    ControlError
        If it is of another type.
    """
    if not isinstance(actuators, Actuators):
        raise ControlError(
            f'The actuators are of type {type(actuators).__name__}, expected '
            'Actuators(model, {joint: actuator}).'
        )
