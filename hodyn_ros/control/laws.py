"""Control laws of robots with elastic joints: exact linearisation, and laws of the motor side.

Sources: Spong 1987, "Modeling and control of elastic joint robots"; De Luca and Book, "Robots with
flexible elements", Springer Handbook of Robotics.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.control.controller import (
    Controller,
    controlled_motors,
    friction_of,
)
from hodyn_ros.control.law import ControlWarning
from hodyn_ros.control.transmission import Transmission
from hodyn_ros.control.values import fill, middle_of_range, per_joint, shifted
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.errors import ControlError, DeflectionError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

CONTROLLERS = (
    'feed_forward_2',
    'feed_forward_1',
    'feed_forward_0',
    'flatness',
)
"""Names of the laws for `make_controller`."""

TRACKING, FLOATING = 'tracking', 'gravity_compensation'
JOINT, CARTESIAN = 'joint_impedance', 'cartesian_impedance'
MODES = (TRACKING, JOINT, CARTESIAN, FLOATING)
"""Laws that share an observer: from one to another there is no step of the torque."""

# Largest bandwidth [rad/s], and static stiffness relative to the spring, below which a joint is
# called far softer. With the bandwidth sqrt(K / M) a single joint has just this one.
_MOST_BANDWIDTH, _SOFT = 1e6, 0.2


class MotorGains(NamedTuple):
    """Gains of the proportional and derivative control of motors.

    Attributes
    ----------
    proportional : ndarray, shape (n,)
        [N m/rad] or [N/m]
    derivative : ndarray, shape (n,)
        [N m s/rad] or [N s/m]

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.control import MotorGains
    >>> gains = MotorGains(np.array([400.0, 100.0]), np.array([40.0, 20.0]))
    >>> gains.derivative / gains.proportional
    array([0.1, 0.2])
    """

    proportional: Array
    derivative: Array


def motor_gains(
    model: RobotModel, actuators: Actuators, bandwidth: ArrayLike, position: ArrayLike
) -> MotorGains:
    """Gains that would put both poles of each joint at -bandwidth if it were rigid and alone.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    bandwidth : float or array-like, shape (n,)
        [rad/s]
    position : array-like, shape (n,)
        Where the inertia that each joint moves is taken from.

    Returns
    -------
    MotorGains
        w^2 (M_jj + B_j) and 2 w (M_jj + B_j), a rule for rigid joints.

    Raises
    ------
    ControlError
        If a bandwidth is not positive or the actuators cannot be used.
    MotionError
        If the position has a wrong shape or is not finite.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import motor_gains
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> motor_gains(model, drives, bandwidth=10.0, position=[0.0, 0.0]).proportional
    array([435., 100.])
    """
    motors = controlled_motors(model, actuators)
    n = model.n_joints
    w = per_joint('bandwidth', bandwidth, n, _MOST_BANDWIDTH)
    motion = np.empty((1, n))
    fill(motion[0], 'position', position)
    moved = np.diagonal(mass_matrix(model, motion)[0]) + motors.inertia
    return MotorGains(w**2 * moved, 2.0 * w * moved)


class FeedForwardController(Controller):
    """Feed-forward of the motors' motion and torque, with proportional and derivative control.

    tau = B theta_d'' + Q + friction(theta_d') + P (theta_d - theta) + D (theta_d' - theta'), where
    Q and its derivatives are those of the reference. With `order` = 2, theta_d, theta_d' and
    theta_d'' are the exact ones: q_d + delta, q_d' + delta' and q_d'' + delta'' with
    Q = f(delta). With 1, delta'' = 0 in their place, as if the second derivative of Q were not
    known; with 0, also delta' = 0, so that only the static deflection is compensated.

    Parameters
    ----------
    gains : MotorGains
        Or a pair of proportional and derivative ones, each one for all joints or one for each.
    order : int
        0, 1 or 2: highest derivative of Q that is used.
    model, actuators, torque_limits, lead
        See `Controller`. What is fed forward is that of the later time.

    Raises
    ------
    ControlError
        If the actuators, gains or `order` cannot be used.

    Examples
    --------
    At rest on the motion, the motors get the torque that holds the arm:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic, motor_motion
    >>> from hodyn_ros.control import FeedForwardController
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law = FeedForwardController(model, drives, gains=(400.0, 40.0))
    >>> rest = np.zeros((5, 2))
    >>> motors = motor_motion(drives, rest)
    >>> law.command(rest, rest[0], rest[1], *motors.position[:2]).round(2)
    array([44.14,  9.81])
    """

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        gains: MotorGains | tuple[ArrayLike, ArrayLike],
        order: int = 2,
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        super().__init__(model, actuators, torque_limits, lead)
        checked_number('order', order, ControlError, least=0, most=2, whole=True)
        try:
            pair = MotorGains(*gains)
        except TypeError:
            raise ControlError(
                f'The gains are {gains!r}, expected a pair of proportional and derivative ones.'
            ) from None
        n = model.n_joints
        self.gains: MotorGains = MotorGains(
            *map(per_joint, MotorGains._fields, pair, (n, n))
        )
        self.orders: int = int(order) + 3

    def _demand(self, reference: Array, state: Array) -> Array:
        effort = inverse_dynamics(self.model, reference[: self.orders])
        wanted = reference[:3].copy()
        wanted[: len(effort)] += self.motors.deflections(effort)
        demand: Array = self.motors.inertia * wanted[2] + effort[0]
        demand += friction_of(self.motors, wanted[1])
        wanted = shifted(wanted, -self.lead)
        proportional, derivative = self.gains
        feedback: Array = proportional * (wanted[0] - state[2])
        feedback += derivative * (wanted[1] - state[3])
        return demand + feedback


class FlatnessController(Controller):
    """Exact feedback linearisation of a robot with elastic joints, some of which may be rigid.

    In closed loop with the robot of the model, the error of every elastic joint follows
    e'''' + k3 e''' + k2 e'' + k1 e' + k0 e = 0, that of every rigid joint e'' + k1 e' + k0 e = 0,
    each on its own; all of its poles are at -w. Torques that the model lacks are answered with a
    static stiffness of about w^4 M K^-1 M. Rigid joints get the accelerations
    a = q_d'' + k1 e' + k0 e, whose derivatives are known and taken into account by the elastic
    ones.

    Parameters
    ----------
    bandwidth : float or array-like, shape (n,)
        w [rad/s]
    model, actuators, torque_limits, lead
        See `Controller`. While a limit cuts a torque, the linearisation does not hold. The lead
        is half a period, without delays.

    Attributes
    ----------
    gains : ndarray, shape (4, n)
        k0 ... k3; zero where a rigid joint has no such gain.

    Raises
    ------
    ControlError
        If the actuators or the bandwidth cannot be used.

    Warns
    -----
    ControlWarning
        If the law holds a joint far softer than its spring does.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import FlatnessController
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law = FlatnessController(model, drives, bandwidth=80.0)
    >>> law.gains[:2]
    array([[6.400e+03, 4.096e+07],
           [1.600e+02, 2.048e+06]])
    """

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        bandwidth: ArrayLike,
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        super().__init__(model, actuators, torque_limits, lead)
        w = per_joint('bandwidth', bandwidth, model.n_joints, _MOST_BANDWIDTH)
        gains = np.zeros((4, model.n_joints))
        for j, order in enumerate(np.where(self.is_elastic, 4, 2).tolist()):
            gains[:order, j] = np.poly(np.full(order, -w[j]))[:0:-1]
        gains.flags.writeable = False
        self.gains = gains
        self._elastic_block = np.ix_(self.elastic, self.elastic)
        self._springs = Transmission(actuators)
        ends = [actuators[model.joint_names[j]].spring.range for j in self.elastic]  # type: ignore[attr-defined]
        self._lowest, self._highest = np.array(ends).reshape(-1, 2).T
        self._warn_of_softness()

    def _warn_of_softness(self) -> None:
        """Warning of joints that are held far softer than their springs hold them.

        At rest in the middle of the range, a torque on a link makes the law see accelerations that
        are none, by M^-1, and snaps of the springs, by M^-1 K M^-1. The stiffness of the weight is
        left out, and rigid joints are taken for held.
        """
        model, elastic = self.model, self.elastic
        M = mass_matrix(model, middle_of_range(model)[None])[0][self._elastic_block]
        inverse = np.linalg.inv(M)
        at_rest, by_link = np.zeros(model.n_joints), np.diagonal(inverse)
        spring = self._springs.at(at_rest, at_rest).stiffness[elastic]
        k0, _, k2, _ = self.gains[:, elastic]
        held = np.abs(k0 / (k2 * by_link - inverse**2 @ spring))
        if np.all(held >= _SOFT * spring):
            return
        usable = np.sqrt(spring * by_link)
        joints = ', '.join(
            f'{model.joint_names[j]} {own:.3g} (spring {k:.6g}, usable from {w:.0f} rad/s on)'
            for j, own, k, w in zip(elastic, held, spring, usable)
        )
        warn(
            'Exact linearisation with this bandwidth holds joints far softer than their springs, '
            'so that a small error of the model moves the robot far. Static stiffness in the '
            f'middle of the range [N m/rad or N/m]: {joints}. Take FeedForwardController, or more '
            'than these bandwidths if torque limits, noise and delays permit.',
            ControlWarning,
            stacklevel=3,
        )

    def command_from_motion(self, desired: ArrayLike, motion: ArrayLike) -> Array:
        """Motor torques for a motion that is measured or estimated on the side of the links.

        Parameters
        ----------
        desired : array-like, shape (5, n)
            See `evaluate`.
        motion : array-like, shape (4, n)
            Position of the links and its first three time derivatives; acceleration and jerk of
            rigid joints are not looked at.

        Returns
        -------
        ndarray, shape (n,)
            [N m] or [N], within the limits.
        """
        wanted, full = np.empty((2, 5, self.model.n_joints))
        fill(wanted, 'desired', desired)
        fill(full[:4], 'motion', motion)
        self._steer_rigid_joints(shifted(wanted, -self.lead), full)
        return self._limited(self._torque_of_motion(wanted, full))

    def _demand(self, reference: Array, state: Array) -> Array:
        return self._torque_of_motion(reference, self._motion(reference, state))

    def _torque_of_motion(self, reference: Array, motion: Array) -> Array:
        """Torques for a motion (5, n) of the links when they were measured; it is changed."""
        self._steer_elastic_joints(shifted(reference, -self.lead), motion)
        if self.lead:
            motion = shifted(motion, self.lead)
            self._steer_rigid_joints(reference, motion)
            self._steer_elastic_joints(reference, motion)
        effort = inverse_dynamics(self.model, motion)
        _, speed, acceleration = self.motors.deflections(effort)
        demand: Array = self.motors.inertia * (motion[2] + acceleration) + effort[0]
        return demand + friction_of(self.motors, motion[1] + speed)

    def _motion(self, reference: Array, state: Array) -> Array:
        """Motion of the links that the springs cause, up to the jerk.

        The effort is affine in its highest derivative, with the mass matrix as coefficient, so
        that acceleration and jerk of elastic joints follow from the torque of their springs and
        its rate.

        Parameters
        ----------
        reference : ndarray, shape (5, n)
        state : ndarray, shape (4, n)
            q, q', theta and theta'.

        Returns
        -------
        ndarray, shape (5, n)

        Raises
        ------
        ControlError
            If a joint moves no inertia.
        DeflectionError
            If a spring is outside of its range.
        """
        q, qd, theta, thetad = state
        model, elastic = self.model, self.elastic
        motion = np.zeros((5, model.n_joints))
        motion[0], motion[1] = q, qd
        self._steer_rigid_joints(shifted(reference, -self.lead), motion)
        if len(elastic):
            self._check_range((theta - q)[elastic])
            springs = self._springs.at(q, theta)
            torques = springs.torque, springs.stiffness * (thetad - qd)
            M = mass_matrix(model, motion[:1])[0][self._elastic_block]
            factor, failed = lapack.dpotrf(M, lower=1)
            if failed:
                raise ControlError(
                    'The mass matrix of the elastic joints is not positive definite: '
                    'a joint moves no inertia.'
                )
            for k, torque in enumerate(torques):
                rest = inverse_dynamics(model, motion[: 3 + k])[k]
                missing = (torque - rest)[elastic]
                motion[2 + k, elastic] = lapack.dpotrs(factor, missing, lower=1)[0]
        return motion

    def _check_range(self, deflection: Array) -> None:
        """Error if a spring of the n_e elastic joints is outside of its range."""
        inside = (self._lowest <= deflection) & (deflection <= self._highest)
        if not inside.all():
            i = int(np.argmin(inside))
            name = self.model.joint_names[self.elastic[i]]
            raise DeflectionError(
                f'The spring of joint {name!r} is deflected by {deflection[i]:.6g}, expected '
                f'{self._lowest[i]:.6g} to {self._highest[i]:.6g}.',
                joint=name,
            )

    def _steer_rigid_joints(self, reference: Array, motion: Array) -> None:
        """Set acceleration, jerk and snap that the law gives rigid joints."""
        if len(self.rigid):
            k0, k1 = self.gains[:2, self.rigid]
            wanted, own = reference[:, self.rigid], motion[:, self.rigid]
            for k in range(2, 5):
                own[k] = wanted[k] + k1 * (wanted[k - 1] - own[k - 1])
                own[k] += k0 * (wanted[k - 2] - own[k - 2])
            motion[2:, self.rigid] = own[2:]

    def _steer_elastic_joints(self, reference: Array, motion: Array) -> None:
        """Set the snap that the law gives elastic joints."""
        snap = reference[4] + (self.gains * (reference - motion)[:4]).sum(axis=0)
        motion[4, self.elastic] = snap[self.elastic]


def make_controller(
    model: RobotModel,
    kind: str,
    actuators: Actuators,
    bandwidth: ArrayLike,
    torque_limits: ArrayLike | None = None,
    lead: float = 0.0,
) -> Controller:
    """Make a controller by the name of its law, with gains for the middle of the joints' ranges.

    Parameters
    ----------
    model, actuators, torque_limits, lead
        See `Controller`.
    kind : str
        feed_forward_0 to 2, where the number is the argument `order`, or flatness.
    bandwidth : float or array-like, shape (n,)
        [rad/s]

    Raises
    ------
    ControlError
        If the law is unknown or something cannot be used.

    Returns
    -------
    Controller

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import make_controller
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law = make_controller(model, 'flatness', drives, bandwidth=80.0)
    >>> type(law).__name__, law.orders
    ('FlatnessController', 5)
    """
    check_choice('The control law', kind, CONTROLLERS, ControlError)
    options: Any = {'torque_limits': torque_limits, 'lead': lead}
    if kind == 'flatness':
        return FlatnessController(model, actuators, bandwidth, **options)
    gains = motor_gains(model, actuators, bandwidth, middle_of_range(model))
    return FeedForwardController(model, actuators, gains, int(kind[-1]), **options)
