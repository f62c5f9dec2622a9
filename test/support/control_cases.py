"""A Panda with elastic joints, motions, and all that may be wrong with it, for tracking laws.

Pinocchio simulates it; nothing here is of hodyn_ros. A law is any object with a method
`command(reference, q, qd, theta, thetad)` and perhaps an attribute `lead` [s].
"""

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BPoly

PANDA = (Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf').read_text()
JOINTS = tuple(f'panda_joint{j}' for j in range(1, 8))

# Those of config/panda_sea.yaml.
STIFFNESS = np.array([1000.0] * 4 + [500.0] * 3)  # N m/rad
# Kg m^2.
MOTOR_INERTIA = np.array([0.605721456] * 2 + [0.462474144] * 2 + [0.205544064] * 3)
TORQUE_LIMITS = np.array([87.0] * 4 + [12.0] * 3)  # N m

PERIOD = 1e-3  # s
PUSHED = 0.5  # s, when the push begins; it lasts
LINK_STEP, MOTOR_STEP = 2.0 * np.pi / 2**20, 2.0 * np.pi / 2**14 / 100.0  # rad, of encoders


class PointToPoint:
    """From rest to rest through poses, at each of which it rests; five times differentiable."""

    def __init__(self, poses, times):
        knots = np.zeros((len(times), 6, np.shape(poses)[1]))
        knots[:, 0] = poses
        self._position = BPoly.from_derivatives(times, knots)
        self.duration = times[-1]

    def __call__(self, times):
        """Positions and their first four derivatives, shape (N, 5, n); constant outside."""
        t = np.clip(times, 0.0, self.duration)
        return np.stack([self._position(t, nu) for nu in range(5)], axis=1)


HOME = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
THERE = (0.7, 0.2, -0.4, -1.8, 0.5, 2.1, 1.3)
MOTION = PointToPoint((HOME, THERE, HOME), (0.0, 1.3, 2.6))
# Joint 2 needs 119 N m, which its motor does not have.
FAST = 0.38656
FAST_MOTION = PointToPoint((HOME, THERE, HOME), (0.0, 1.3 * FAST, 2.6 * FAST))
# For the choice of bandwidths.
TUNING_MOTION = PointToPoint(
    ((0.4, -0.3, 0.2, -1.9, -0.3, 1.8, 0.2), (-0.2, -0.8, -0.2, -2.3, 0.2, 1.4, 0.9)),
    (0.0, 1.0),
)


@dataclass(frozen=True)
class Condition:
    """How the robot differs from what its controller knows."""

    stiffness: float = 0.0
    """Relative error of the springs."""
    inertia: float = 0.0
    """Relative error of masses and inertias of the links."""
    payload: float = 0.0
    """At the flange [kg]."""
    coulomb: float = 0.0
    """Friction of every motor [N m]."""
    breakaway: float = 0.0
    """Friction of every motor at rest [N m]."""
    link_coulomb: float = 0.0
    """Friction of every link [N m]."""
    damping: float = 0.0
    """Parallel to every spring [N m s/rad]."""
    backlash: float = 0.0
    """Of every spring [rad]."""
    gear_ratio: float | None = None
    """With it, rotors turn on the links."""
    rate_limit: float = np.inf
    """Of the drives [N m/s]."""
    encoders: bool = False
    """20 bits at the links, 14 bits at motors before a gear of 100; velocities are differences."""
    delay: int = 0
    """Of the commands [periods]."""
    push: float = 0.0
    """Sideways at the last link, from `PUSHED` on [N]."""
    offset: float = 0.0
    """By which links and motors start off the motion [rad]."""
    motion: PointToPoint = field(default=MOTION)
    rest: float = 0.2
    """Behind the motion [s]."""

    @property
    def duration(self):
        """Of the motion and the rest [s]."""
        return self.motion.duration + self.rest

    def plant(self, stiffness=STIFFNESS):
        """Make the robot, whose springs should have a stiffness (7,)."""
        from support.control_plant import Plant  # Pinocchio is not needed for the rest

        return Plant(
            PANDA,
            JOINTS,
            (1.0 + self.stiffness) * stiffness,
            MOTOR_INERTIA,
            coulomb=self.coulomb,
            breakaway=self.breakaway,
            link_coulomb=self.link_coulomb,
            damping=self.damping,
            backlash=self.backlash,
            mass=1.0 + self.inertia,
            payload=('panda_link8', self.payload) if self.payload else None,
            gear_ratio=self.gear_ratio,
            limits=TORQUE_LIMITS,
            rate_limits=self.rate_limit,
        )


ALL = {'stiffness': -0.05, 'payload': 1.0, 'coulomb': 1.0, 'encoders': True}


class Run(NamedTuple):
    """Record of a robot that follows a motion; N samples, n joints."""

    times: np.ndarray
    """Shape (N,) [s]."""
    error: np.ndarray
    """Links beside the motion, shape (N, n) [rad]."""
    torque: np.ndarray
    """Commanded, shape (N - 1, n) [N m]."""
    torque_limits: np.ndarray
    """Shape (n,) [N m]."""

    @property
    def rms(self):
        """Over samples and joints [mrad]."""
        return 1e3 * float(np.sqrt(np.mean(self.error**2)))

    @property
    def peak(self):
        """Largest error of a joint [mrad]."""
        return 1e3 * float(np.abs(self.error).max())

    @property
    def at_end(self):
        """Largest error of a joint in the last 50 ms [mrad]."""
        return 1e3 * float(np.abs(self.error[self.times > self.times[-1] - 0.05]).max())

    @property
    def rate_at_rest(self):
        """Largest change of a torque from one sample to the next at the end [N m/s]."""
        return float(np.abs(np.diff(self.torque[-100:], axis=0)).max() / PERIOD)

    @property
    def saturated(self):
        """Share of samples in which a motor is at its limit."""
        return float(np.mean(np.any(np.abs(self.torque) >= self.torque_limits, axis=1)))


def follow(law, condition, stiffness=STIFFNESS, substeps=3):
    """Let a robot follow the motion of a condition, which must not run away."""
    plant, motion = condition.plant(stiffness), condition.motion
    count = round(condition.duration / PERIOD)
    times = PERIOD * np.arange(count + 1)
    desired = motion(times[:-1] + getattr(law, 'lead', 0.0))
    wanted = motion(times)[:, 0]
    state = plant.at_rest(wanted[0])
    state[[0, 2]] += condition.offset
    under_way = deque([plant.torque] * condition.delay)
    before = None
    errors, torques = [state[0] - wanted[0]], []
    for k in range(count):
        measured = state
        if condition.encoders:
            measured = state.copy()
            measured[0] = np.round(state[0] / LINK_STEP) * LINK_STEP
            measured[2] = np.round(state[2] / MOTOR_STEP) * MOTOR_STEP
            if before is not None:
                measured[[1, 3]] = (measured - before)[[0, 2]] / PERIOD
            before = measured
        if condition.push and times[k] >= PUSHED:
            plant.force[:] = 0.0, condition.push, 0.0
        torque = np.array(law.command(desired[k], *measured))
        torques.append(torque)
        under_way.append(torque)
        state = plant.hold(state, under_way.popleft(), PERIOD, substeps)
        errors.append(state[0] - wanted[k + 1])
        assert np.abs(errors[-1]).max() < 10.0, f'diverged after {times[k + 1]:.3f} s'
    return Run(times, np.array(errors), np.array(torques), TORQUE_LIMITS)
