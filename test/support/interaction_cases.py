"""A Panda with elastic joints that is touched: pushes, a wall and a hand at its tip.

Pinocchio simulates it; nothing here is of hodyn_ros. A law is any object with a method
`command(desired, q, qd, theta, thetad)`. Forces act at the flange, in the axes of the base.
"""

from typing import NamedTuple

import numpy as np
import pinocchio
from support.control_cases import HOME, LINK_STEP, MOTOR_STEP, PERIOD

TIP = 'panda_link8'


class Touch(NamedTuple):
    """Record of N samples; the tip has the velocities (v, omega) and wrenches (force, moment)."""

    times: np.ndarray
    """Shape (N,) [s]."""
    states: np.ndarray
    """q, q', theta, theta'; shape (N, 4, n)."""
    torque: np.ndarray
    """Of the motors, shape (N, n) [N m]."""
    position: np.ndarray
    """Of the tip, shape (N, 3) [m]."""
    velocity: np.ndarray
    """Shape (N, 6)."""
    wrench: np.ndarray
    """On the tip, shape (N, 6)."""
    energy: np.ndarray
    """That the wrench has put into the robot since the start, shape (N,) [J]."""


def tip(plant, q):
    """Pose of the tip and its Jacobian (6, n), velocity before angular velocity."""
    model, data = plant.model, plant.data
    frame = model.getFrameId(TIP)
    axes = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
    J = pinocchio.computeFrameJacobian(model, data, q, frame, axes)
    return data.oMf[frame].copy(), J


def touch(plant, command, wrench, duration, *, state=None, substeps=2):
    """Let a robot be touched by wrench(t, pose, velocity) -> (6,) under command(t, measured).

    `measured` is q, q', theta, theta' as encoders of control_cases give them. The wrench is held
    for a substep.
    """
    state = plant.at_rest(np.array(HOME)) if state is None else np.array(state)
    h, before, rows, energy = PERIOD / substeps, None, [], 0.0
    for k in range(round(duration / PERIOD)):
        measured = np.zeros_like(state)
        measured[0] = np.round(state[0] / LINK_STEP) * LINK_STEP
        measured[2] = np.round(state[2] / MOTOR_STEP) * MOTOR_STEP
        if before is not None:
            measured[[1, 3]] = (measured - before)[[0, 2]] / PERIOD
        before = measured
        torque = np.array(command(k * PERIOD, measured))
        for i in range(substeps):
            pose, J = tip(plant, state[0])
            velocity = J @ state[1]
            force = np.asarray(
                wrench((k + i / substeps) * PERIOD, pose, velocity), dtype=float
            )
            if i == 0:
                rows.append(
                    (k * PERIOD, state, torque, pose.translation, velocity, force, energy)
                )
            plant.push = J.T @ force
            state = plant.hold(state, torque, h, 1)
            energy += 0.5 * h * force @ (velocity + J @ state[1])
        assert np.abs(state).max() < 100.0, f'diverged after {k * PERIOD:.3f} s'
    return Touch(*map(np.array, zip(*rows)))


def ramped(wrench, duration=0.3):
    """Wrench that comes up and stays."""
    return lambda t, pose, velocity: min(1.0, t / duration) * np.asarray(wrench)


def random_pushes(seed, until, force=20.0, moment=2.0):
    """Forces and moments of all frequencies to 20 Hz, then nothing."""
    rng = np.random.default_rng(seed)
    frequency, phase = (
        rng.uniform(1.0, 130.0, (2, 6, 8)) * np.array([1.0, 0.05])[:, None, None]
    )
    size = np.repeat([force, moment], 3) / 4.0

    def wrench(t, pose, velocity):
        return (
            (t < until)
            * min(1.0, 10.0 * t)
            * size
            * np.sin(frequency * t + phase).sum(axis=1)
        )

    return wrench


def wall(height, stiffness=1e5):
    """Floor without friction and damping at a height [m]."""

    def wrench(t, pose, velocity):
        return np.array(
            [0.0, 0.0, max(0.0, stiffness * (height - pose.translation[2])), 0, 0, 0]
        )

    return wrench


def hand(start, velocity, stiffness=2000.0, damping=100.0, rise=0.3):
    """Hand that holds the tip and leads it from a point with a velocity (3,)."""
    velocity = np.asarray(velocity)

    def wrench(t, pose, tip_velocity):
        s = min(t, rise) / rise  # the speed comes up smoothly
        speed = s * s * (3.0 - 2.0 * s)
        gone = rise * s**3 * (1.0 - 0.5 * s) + max(t - rise, 0.0)
        error = start + gone * velocity - pose.translation
        force = stiffness * error + damping * (speed * velocity - tip_velocity[:3])
        return np.concatenate([force, np.zeros(3)])

    return wrench
