"""Springs between motors and links as a control law sees them: torques, stiffness and loads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import (
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
    of_joint,
)
from hodyn_ros.typing import Array, Flags, Indices


class Springs(NamedTuple):
    """Springs at one position of links and motors, n joints, m motors; zero for rigid joints.

    Attributes
    ----------
    torque : ndarray, shape (n,)
        On the links [N m] or [N].
    stiffness : ndarray, shape (n,)
        -d torque / dq with the motors held [N m/rad] or [N/m].
    load : ndarray, shape (m,)
        Torque of the springs against each motor [N m] or [N].
    rate : ndarray, shape (m,)
        d torque / d theta of each motor [N m/rad] or [N/m].
    """

    torque: Array
    stiffness: Array
    load: Array
    rate: Array


class Transmission:
    """What is between the motors and the links of a robot, joint by joint.

    Parameters
    ----------
    actuators : Actuators
        Rigid drives, series elastic ones, with or without damping, and those of variable
        stiffness; their motors have inertia.

    Attributes
    ----------
    joint : ndarray of int, shape (m,)
        Which joint each motor moves.
    is_elastic : ndarray, shape (n,)
        1 where there is a spring, else 0.
    turns : ndarray, shape (m,)
        1 where a motor turns with its joint, 0 where it only sets the stiffness.
    inertia : ndarray, shape (m,)
    joint_inertia : ndarray, shape (n,)
        Of the motors that turn with each joint.
    part : ndarray, shape (m,)
        Of a motor in the inertia of its joint; zero where it does not turn with it.
    damping : ndarray, shape (n,)
        Of the dampers beside the springs [N m s/rad] or [N s/m].
    is_single : ndarray of bool, shape (n,)
        Which joints are series elastic.
    line : ndarray, shape (n,)
        Stiffness of the springs that are lines; else zero [N m/rad] or [N/m].
    is_linear : bool
        Whether all springs are lines.
    rigid, rigid_motors : ndarray of int
        Joints without spring, and their motors.
    """

    def __init__(self, actuators: Actuators) -> None:
        arrays, kinds = actuators.arrays, [item.actuator for item in actuators.driven]
        self._model = actuators.model
        self.joint: Indices = arrays.joint_of_motor
        self.inertia: Array = arrays.inertia
        self.is_single: Flags = np.array(
            [isinstance(kind, SeriesElastic) for kind in kinds]
        )
        is_rigid = np.array([isinstance(kind, RigidDrive) for kind in kinds])
        self.is_elastic: Array = 1.0 - is_rigid
        self.is_variable: bool = bool(arrays.variable)
        self.turns: Array = np.array(
            [float(x) for kind in kinds for x in kind.turns_with_joint]
        )
        moved = self.turns * self.inertia
        self.joint_inertia: Array = np.bincount(self.joint, moved, len(kinds)).astype(float)
        with np.errstate(invalid='ignore'):
            self.part: Array = np.where(
                moved > 0.0, moved / self.joint_inertia[self.joint], self.turns
            )
        self.damping: Array = arrays.damping
        self.rigid: Indices = np.flatnonzero(is_rigid)
        self.rigid_motors: Indices = np.flatnonzero(is_rigid[self.joint])
        is_line = np.isfinite(arrays.stiffness)
        self.line: Array = np.where(is_line, arrays.stiffness, 0.0)
        others = np.flatnonzero(~is_line & ~is_rigid).tolist()
        self._others = [actuators.driven[j] for j in others]
        self.is_linear: bool = not self._others

    def by_joint(self, values: Array) -> Array:
        """Sum of the values of the motors of each joint.

        Parameters
        ----------
        values : ndarray, shape (m,)
            Of the motors.

        Returns
        -------
        ndarray, shape (n,)
            The argument itself where each joint has one motor.
        """
        if len(values) == len(self.is_elastic):
            return values
        sums: Array = np.bincount(self.joint, values, len(self.is_elastic)).astype(
            np.float64
        )
        return sums

    def at(self, q: Array, theta: Array) -> Springs:
        """Springs at positions of links and motors; dampers are left out.

        Parameters
        ----------
        q : ndarray, shape (n,)
            Positions of the links [rad] or [m].
        theta : ndarray, shape (m,)
            Positions of the motors in joint coordinates [rad] or [m].

        Returns
        -------
        Springs

        Raises
        ------
        DeflectionError
            If a spring that is no line is outside of its range.
        """
        joint, line = self.joint, self.line
        if self.is_linear:  # and has one motor for each joint
            load = line * (theta - q)
            return Springs(load, line, load, line)
        rate = line[joint]
        load = rate * (theta - q[joint])
        torque, stiffness = self.by_joint(load).copy(), line.copy()
        for item in self._others:
            j, own, actuator = item.joint, item.motors, item.actuator
            with of_joint(self._model, j):
                if isinstance(actuator, VariableStiffness):
                    elastic = actuator.elastic(q[j : j + 1], theta[own, None])
                    torque[j], stiffness[j] = elastic.effort[0], elastic.stiffness[0]
                    load[own] = elastic.motor_effort[:, 0]
                    deflection = theta[own] - self.turns[own] * q[j]
                    rate[own] = actuator.model.jacobian(deflection)[0]
                else:
                    deflection = theta[own] - q[j]
                    actuator.spring.check(deflection)  # type: ignore[attr-defined]
                    values = actuator.spring.derivatives(deflection[0], 1)  # type: ignore[attr-defined]
                    torque[j], stiffness[j] = load[own], rate[own] = values
        return Springs(torque, stiffness, load, rate)

    def resonances(self, mass: Array, stiffness: Array) -> Array:
        """Frequencies of the joints with free links and motors.

        sqrt(K (1 / M_jj + 1 / B)), each joint by itself.

        Parameters
        ----------
        mass : ndarray, shape (n, n)
            Mass matrix of the links.
        stiffness : ndarray, shape (n,)
            Of the springs, zero for rigid joints [N m/rad] or [N/m].

        Returns
        -------
        ndarray, shape (n,)
            [rad/s]; zero for rigid joints.
        """
        inertia = np.where(self.is_elastic > 0.0, self.joint_inertia, 1.0)
        found: Array = np.sqrt(stiffness * (1.0 / np.diagonal(mass) + 1.0 / inertia))
        return found
