"""Robots with elastic joints for both sides: ours, and a plant of Pinocchio."""

import warnings

import numpy as np
from support.control_cases import MOTOR_INERTIA, PANDA, PERIOD
from support.control_plant import Plant
from support.oracles import PinOracle
from support.robots import joint, link, robot

from hodyn_ros import RobotModel
from hodyn_ros.actuators import (
    Actuators,
    CubicSpring,
    LinearSpring,
    RigidDrive,
    SeriesElastic,
)
from hodyn_ros.model.friction import Viscous

THREE_LINK = robot(
    '<link name="base"/>',
    link('l1'),
    link('l2', 0.7),
    link('l3', 0.4),
    joint('j1', 'base', 'l1', axis='0 0 1'),
    joint('j2', 'l1', 'l2'),
    joint('j3', 'l2', 'l3', axis='0.6 0.8 0'),
)

BANDWIDTH = 25.0  # rad/s


def cubic(k1, k3):
    return lambda d: k1 * d + k3 * d**3


class Case:
    """A robot for both sides: ours and Pinocchio's."""

    def __init__(self, xml, springs, inertia, viscous=0.0):
        """`springs`: (k1, k3) for each joint, None if it is rigid."""
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            self.model = RobotModel.from_urdf(xml)
        names = self.model.joint_names
        friction = Viscous(viscous) if viscous else None
        drives = {}
        for name, spring, B in zip(names, springs, inertia):
            if spring is None:
                drives[name] = RigidDrive(B, friction)
            else:
                k1, k3 = spring
                law = CubicSpring(k1, k3) if k3 else LinearSpring(k1)
                drives[name] = SeriesElastic(law, B, friction=friction)
        self.actuators = Actuators(self.model, drives)
        functions = [None if spring is None else cubic(*spring) for spring in springs]
        self.plant = Plant(xml, names, functions, inertia, viscous=viscous)
        self.springs = springs
        self.oracle = PinOracle(xml, names, (0, 0, -9.81))

    def state(self, motion):
        """State (4, n) in which the links have a motion (4, n), by Pinocchio."""
        Q, Qd = self.oracle.effort(motion), self.oracle.effort_rate(motion)
        deflection, rate = np.zeros((2, len(Q)))
        for j, spring in enumerate(self.springs):
            if spring is not None:
                k1, k3 = spring
                roots = np.roots([k3, 0.0, k1, -Q[j]] if k3 else [k1, -Q[j]])
                deflection[j] = roots[np.argmin(abs(roots.imag))].real
                rate[j] = Qd[j] / (k1 + 3.0 * k3 * deflection[j] ** 2)
        return np.array([motion[0], motion[1], motion[0] + deflection, motion[1] + rate])


def elastic_three_link():
    return Case(THREE_LINK, [(300.0, 0.0), (200.0, 4000.0), (80.0, 0.0)], [0.3, 0.2, 0.1])


def mixed_three_link(rigid=(1,)):
    springs = [(300.0, 0.0), (200.0, 4000.0), (80.0, 0.0)]
    springs = [None if j in rigid else spring for j, spring in enumerate(springs)]
    return Case(THREE_LINK, springs, [0.3, 0.2, 0.1], viscous=0.4)


def sway(n):
    """Smooth reference (5, n) at a time, with exact derivatives."""
    amplitude = 0.5 / (1.0 + np.arange(n))
    omega = 2.0 + 0.7 * np.arange(n)

    def reference(t):
        k = np.arange(5)[:, None]
        return amplitude * omega**k * np.sin(omega * t + 0.5 * np.pi * k + 0.3)

    return reference


def panda(stiffness):
    return Case(PANDA, [(k, 0.0) for k in stiffness], MOTOR_INERTIA.tolist())


def sampled_error(case, controller, sinusoids, begin, count):
    """Tracking errors (count + 1, n) where the torque is held for a period."""
    times = begin + PERIOD * np.arange(count + 1)
    reference = sinusoids.motion(times)
    later = sinusoids.motion(times + controller.lead)
    state = case.state(reference[0, :4])
    states, _ = case.plant.run_sampled(
        state,
        lambda t, x: controller.command(later[round(t / PERIOD)], *x),
        PERIOD,
        count,
        5,
    )
    return reference[:, 0] - states[:, 0]


def rms(errors):
    return np.sqrt(np.mean(errors**2))
