"""Tracking control of robots with elastic joints by exact feedback linearisation.

The positions q of the links are flat outputs of the robot with elastic joints: with their first
four time derivatives, the state and the torques of the motors are known algebraically. The law
computes q''' from the state, chooses q'''' so that the error has the wanted dynamics, and returns
the motor torque that brings it about. Sources: Spong 1987, "Modeling and control of elastic joint
robots"; De Luca and Book, "Robots with flexible elements", Springer Handbook of Robotics. Rigid
joints among elastic ones: see `FlatnessController`.
"""

from __future__ import annotations

from collections.abc import Mapping
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.control.controller import Controller, fill, middle_of_range, shifted
from hodyn_ros.control.gains import Poles, joint_gains
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.errors import ControlError, DeflectionError
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

ELASTIC_ORDER, RIGID_ORDER = 4, 2
"""Integrators between the torque of a motor and the position of its link."""

# Static stiffness, relative to the spring, below which a joint is called far softer. With the
# bandwidth sqrt(K / M) a single joint has just this one.
_SOFT = 0.2


class ControlWarning(UserWarning):
    """A controller that holds the robot far softer than its springs do."""


class FlatnessController(Controller):
    """Exact feedback linearisation of a robot with elastic joints, some of which may be rigid.

    In closed loop with the robot of the model, the error of every elastic joint follows
    e'''' + k3 e''' + k2 e'' + k1 e' + k0 e = 0, that of every rigid joint e'' + k1 e' + k0 e = 0,
    each on its own. A robot that the model does not describe exactly is another matter: torques
    that it lacks are answered with a static stiffness of about w^4 M K^-1 M.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    poles : float, array-like or mapping
        Of the error dynamics, see `hodyn_ros.control.gains.joint_gains`: four for each elastic
        joint and two for each rigid one, or the bandwidth w [rad/s] that puts all of them at -w.
    torque_limits : float or array-like, shape (n,), optional
        See `Controller`. While a limit cuts a torque, the linearisation does not hold.
    lead : float
        See `Controller`. The law predicts the motion of the links over this time, as if the torque
        that it is about to ask for acted already: half a period, and no delays.

    Attributes
    ----------
    gains : ndarray, shape (4, n)
        k0 ... k3; zero where a rigid joint has no such gain.

    Raises
    ------
    ControlError
        If the actuators or the poles cannot be used.

    Warns
    -----
    ControlWarning
        If the law holds a joint softer than its spring does, see `static_stiffness`.

    Notes
    -----
    With both kinds of joints, a robot has no static feedback that decouples it from free inputs: a
    rigid motor accelerates the links of elastic joints at once. Here the inputs are not free. The
    rigid joints get the accelerations a = q_d'' + k1 e' + k0 e; since they have exactly these, the
    derivatives of a are known functions of the state and the reference, and the elastic joints
    take them into account. Free inputs would need the dynamic feedback of De Luca 1998,
    "Decoupling and feedback linearization of robots with mixed rigid/elastic joints".
    """

    orders = 5

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        poles: Poles | ArrayLike | Mapping[str, Poles],
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        super().__init__(model, actuators, torque_limits, lead)
        is_elastic = self.drives.is_elastic
        orders = np.where(is_elastic, ELASTIC_ORDER, RIGID_ORDER).tolist()
        gains = np.zeros((ELASTIC_ORDER, model.n_joints))
        found = joint_gains(model.joint_names, orders, poles)
        gains[: len(found)] = found
        gains.flags.writeable = False
        self.gains = gains
        self._elastic_block = np.ix_(self.drives.elastic, self.drives.elastic)
        self._warn_of_softness()

    def _warn_of_softness(self) -> None:
        """Say how stiff the joints stand, if some stand far softer than their springs."""
        model, drives = self.model, self.drives
        elastic, position = drives.elastic, middle_of_range(model)[None]
        try:
            held = abs(self.static_stiffness(position[0]))[elastic]
            deflection = drives.deflections(gravity_effort(model, position))[0, elastic]
        except DeflectionError as error:
            warn(f'How stiff exact linearisation is cannot be said: {error}', ControlWarning, 3)
            return
        spring = drives.spring_torques(deflection)[1]
        if np.all(held >= _SOFT * spring):
            return
        moved = mass_matrix(model, position)[0] + np.diag(drives.inertia * ~drives.is_elastic)
        usable = np.sqrt(spring * np.diagonal(np.linalg.inv(moved))[elastic])
        joints = ', '.join(
            f'{model.joint_names[j]} {own:.3g} (spring {k:.6g}, usable from {w:.0f} rad/s on)'
            for j, own, k, w in zip(elastic, held, spring, usable)
        )
        warn(
            'Exact linearisation with these poles holds joints far softer than their springs, so '
            'that a small error of the model moves the robot far. Static stiffness in the middle '
            f'of the range [N m/rad or N/m]: {joints}. Take FeedForwardController, or poles '
            'beyond these bandwidths if torque limits, noise and delays permit.',
            ControlWarning,
            stacklevel=3,
        )

    def motion(
        self,
        reference: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike,
        theta: ArrayLike,
        thetad: ArrayLike,
    ) -> Array:
        """Motion of the links that belongs to a state, up to the snap that the law asks for.

        Parameters
        ----------
        reference, q, qd, theta, thetad
            See `command`.

        Returns
        -------
        ndarray, shape (5, n)
            Position to jerk as they follow from the state, and the commanded snap, all at the time
            of the measurement.

        Raises
        ------
        MotionError, DeflectionError
            See `command`.
        """
        wanted = shifted(self._reference(reference), -self.lead)
        motion, _, _ = self._from_motors(wanted, self._state(q, qd, theta, thetad))
        return self._with_snap(wanted, motion)

    def command_from_motion(self, reference: ArrayLike, motion: ArrayLike) -> Array:
        """Motor torques for a motion that is measured or estimated on the side of the links.

        Parameters
        ----------
        reference : array-like, shape (5, n)
            See `command`.
        motion : array-like, shape (4, n)
            Position of the links and its first three time derivatives; acceleration and jerk of
            rigid joints are not looked at.

        Returns
        -------
        ndarray, shape (n,)
            [N m] or [N], within the limits.

        Raises
        ------
        MotionError, DeflectionError
            See `command`.
        """
        wanted = self._reference(reference)
        full = np.empty((5, self.model.n_joints))
        fill(full[:4], 'motion', motion)
        before = shifted(wanted, -self.lead)
        self._move_rigid_joints(before, full)
        return self.limited(self._torque_of_motion(wanted, self._with_snap(before, full))).torque

    def _demand(self, reference: Array, state: Array) -> Array:
        if self.lead:
            before = shifted(reference, -self.lead)
            motion, _, _ = self._from_motors(before, state)
            return self._torque_of_motion(reference, self._with_snap(before, motion))
        motion, rate, torques = self._from_motors(reference, state)
        effort = inverse_dynamics(self.model, self._with_snap(reference, motion))
        elastic = self.drives.elastic
        speed, acceleration = np.zeros((2, self.model.n_joints))
        speed[elastic] = rate
        # The second derivative of Q = f(delta).
        acceleration[elastic] = (effort[2, elastic] - torques[2] * rate**2) / torques[1]
        return self._torque(motion, effort, speed, acceleration)

    def _torque_of_motion(self, reference: Array, motion: Array) -> Array:
        """Torques for the motion (5, n) of the links at the time of the measurement."""
        if self.lead:
            motion = shifted(motion, self.lead)
            self._move_rigid_joints(reference, motion)
            self._with_snap(reference, motion)
        effort = inverse_dynamics(self.model, motion)
        deflection = self.drives.deflections(effort)
        return self._torque(motion, effort, deflection[1], deflection[2])

    def _torque(self, motion: Array, effort: Array, speed: Array, acceleration: Array) -> Array:
        """Of the motors, from the motion, its efforts and two derivatives of the deflections."""
        drives = self.drives
        demand: Array = drives.inertia * (motion[2] + acceleration) + effort[0]
        return demand + drives.friction(motion[1] + speed)

    def _from_motors(self, reference: Array, state: Array) -> tuple[Array, Array, Array]:
        """Motion (5, n) up to the jerk; rates and torques of the springs, (n_e,) and (3, n_e)."""
        q, qd, theta, thetad = state
        model, elastic = self.model, self.drives.elastic
        motion = np.zeros((5, model.n_joints))
        motion[0], motion[1] = q, qd
        self._move_rigid_joints(reference, motion)
        rate = (thetad - qd)[elastic]
        torques = self.drives.spring_torques((theta - q)[elastic])
        if len(elastic):
            # The effort is affine in its highest derivative, with the mass matrix as coefficient.
            M = mass_matrix(model, motion[:1])[0][self._elastic_block]
            factor, failed = lapack.dpotrf(M, lower=1)
            if failed:
                raise ControlError(
                    'The mass matrix of the elastic joints is not positive definite: '
                    'a joint moves no inertia.'
                )
            rest = inverse_dynamics(model, motion[:3])[0, elastic]
            motion[2, elastic] = lapack.dpotrs(factor, torques[0] - rest, lower=1)[0]
            rest = inverse_dynamics(model, motion[:4])[1, elastic]
            motion[3, elastic] = lapack.dpotrs(factor, torques[1] * rate - rest, lower=1)[0]
        return motion, rate, torques

    def _move_rigid_joints(self, reference: Array, motion: Array) -> None:
        """Set acceleration, jerk and snap of rigid joints: what the law will give them."""
        rigid = self.drives.rigid
        if len(rigid):
            k0, k1 = self.gains[:2, rigid]
            wanted, own = reference[:, rigid], motion[:, rigid]
            for k in range(2, 5):
                own[k] = wanted[k] + k1 * (wanted[k - 1] - own[k - 1])
                own[k] += k0 * (wanted[k - 2] - own[k - 2])
            motion[:, rigid] = own

    def _with_snap(self, reference: Array, motion: Array) -> Array:
        """Set the snap of elastic joints: the new input of the linearised robot."""
        elastic = self.drives.elastic
        error = (reference - motion)[:4, elastic]
        motion[4, elastic] = reference[4, elastic] + (self.gains[:, elastic] * error).sum(axis=0)
        return motion
