"""The motors and springs of all joints at once, as control laws need them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.rigid import RigidDrive
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.errors import ActuatorError, ControlError, DeflectionError
from hodyn_ros.model.friction import FrictionLaw, joint_friction
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


class Drives:
    """Arrays in model order instead of one actuator after the other.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators

    Attributes
    ----------
    elastic, rigid : ndarray of int
        Indices of the joints with a spring and of those without.
    inertia : ndarray, shape (n,)
        Of the motors, reflected to the links [kg m^2] or [kg].

    Raises
    ------
    ControlError
        If an actuator is neither a rigid drive nor a series elastic one without damping, or they
        are made for another robot, or an inertia counts twice.
    """

    def __init__(self, model: RobotModel, actuators: Actuators) -> None:
        if not isinstance(model, RobotModel):
            raise ControlError(f'The model is of type {type(model).__name__}, not a RobotModel.')
        if not isinstance(actuators, Actuators):
            raise ControlError(
                f'The actuators are of type {type(actuators).__name__}, expected '
                'Actuators(model, {joint: actuator}).'
            )
        try:
            actuators.check_suits(model)
        except ActuatorError as error:
            raise ControlError(str(error)) from None
        self._names = model.joint_names
        self.inertia = np.zeros(model.n_joints)
        self._friction: dict[int, FrictionLaw] = {}
        springs: dict[int, Spring] = {}
        for j, name in enumerate(model.joint_names):
            actuator = actuators[name]
            if isinstance(actuator, SeriesElastic):
                springs[j] = actuator.spring
                if actuator.damping != 0.0:
                    raise ControlError(
                        f'The spring of joint {name!r} has the damping {actuator.damping}, '
                        'expected none: with it, torques of the motor act on a lower derivative '
                        'of the motion of the link. Small damping may be left out here.'
                    )
            elif not isinstance(actuator, RigidDrive):
                raise ControlError(
                    f'The actuator of joint {name!r} is {type(actuator).__name__}, expected '
                    'SeriesElastic or RigidDrive.'
                )
            self.inertia[j] = actuator.motor_inertia
            if actuator.friction is not None:
                self._friction[j] = actuator.friction
        self.elastic = np.array(sorted(springs), dtype=np.intp)
        self.rigid = np.setdiff1d(np.arange(model.n_joints), self.elastic)
        self.is_elastic = np.isin(np.arange(model.n_joints), self.elastic)
        self._springs = [springs[j] for j in self.elastic]
        self._lowest, self._highest = np.array(
            [spring.range for spring in self._springs] or np.empty((0, 2)), dtype=np.float64
        ).T
        # A line needs no call for each joint.
        self._stiffness = np.array(
            [s.stiffness if type(s) is LinearSpring else 0.0 for s in self._springs]
        )
        self._curved = [
            (i, s) for i, s in enumerate(self._springs) if type(s) is not LinearSpring
        ]

    def spring_torques(self, deflection: Array) -> Array:
        """Torques of the springs and their first two derivatives by the deflection.

        Parameters
        ----------
        deflection : ndarray, shape (n_elastic,)
            [rad] or [m]

        Returns
        -------
        ndarray, shape (3, n_elastic)

        Raises
        ------
        DeflectionError
            If a deflection is outside the range of its spring.
        """
        inside = (self._lowest <= deflection) & (deflection <= self._highest)
        if not inside.all():
            i = int(np.argmin(inside))
            name = self._names[self.elastic[i]]
            raise DeflectionError(
                f'The spring of joint {name!r} is deflected by {deflection[i]:.6g}, expected '
                f'{self._lowest[i]:.6g} to {self._highest[i]:.6g}.',
                joint=name,
            )
        torques = np.zeros((3, len(deflection)))
        torques[0] = self._stiffness * deflection
        torques[1] = self._stiffness
        for i, spring in self._curved:
            torques[:, i] = spring.derivatives(deflection[i], 2)
        return torques

    def deflections(self, torque: Array) -> Array:
        """Deflections under a torque that varies with time, and their time derivatives.

        Parameters
        ----------
        torque : ndarray, shape (K, n)
            Joint torque and its time derivatives.

        Returns
        -------
        ndarray, shape (K, n)
            Zero for rigid joints.

        Raises
        ------
        DeflectionError
            If a torque is not within reach of its spring.
        """
        deflection = np.zeros_like(torque)
        elastic = torque[:, self.elastic]
        own = np.empty_like(elastic)
        np.divide(elastic, self._stiffness, out=own, where=self._stiffness != 0.0)
        for i, spring in self._curved:
            own[:, i] = self._inverse(i, spring, elastic[:, i])
        inside = (self._lowest <= own[0]) & (own[0] <= self._highest)
        if not inside.all():
            i = int(np.argmin(inside))
            name = self._names[self.elastic[i]]
            raise DeflectionError(
                f'The torque {elastic[0, i]:.6g} would deflect the spring of joint {name!r} by '
                f'{own[0, i]:.6g}, expected {self._lowest[i]:.6g} to {self._highest[i]:.6g}.',
                joint=name,
            )
        deflection[:, self.elastic] = own
        return deflection

    def _inverse(self, i: int, spring: Spring, torque: Array) -> Array:
        try:
            return spring.deflection_series(torque)
        except DeflectionError as error:
            name = self._names[self.elastic[i]]
            raise DeflectionError(f'Joint {name!r}: {error}', joint=name) from None

    def friction(self, velocity: Array) -> Array:
        """Friction of the motors at their velocities, shape (n,)."""
        if not self._friction:
            return np.zeros_like(velocity)
        return joint_friction(self._friction, velocity[:, None])[:, 0]
