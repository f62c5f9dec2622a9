"""Motions of an FR3, and torques with two derivatives as its interface takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import yaml

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import MotionLimits, motion_limits
from hodyn_ros.model.friction import Coulomb
from hodyn_ros.resources import share_file
from hodyn_ros.retiming import retime
from hodyn_ros.trajectory import MotionSpline

CYCLE = 1e-3  # s
RATE_LIMIT = 1000.0  # N m/s, beyond which the robot stops
# Reflected inertia of the motors [kg m^2], dry friction [N m] and its smoothing [rad/s].
ARMATURE, FRICTION, SMOOTHING = 0.195, 0.2, 0.05
# Share of the velocity limits that is planned with; the rest is left to feedback.
SPEED = 0.9
# Highest derivative by which torques go on between messages of a source.
ORDERS = {'held': 0, 'linear': 1, 'second order': 2}


def fr3() -> RobotModel:
    """FR3 as its torque interface sees it: without weight, which the robot itself carries.

    A real robot takes its friction off, too; the simulated one does not, so it is in here.
    """
    model = RobotModel.from_urdf('fr3', gravity=(0.0, 0.0, 0.0))
    names = model.joint_names
    return model.with_armature(dict.fromkeys(names, ARMATURE)).with_friction(
        dict.fromkeys(names, Coulomb(FRICTION, SMOOTHING))
    )


def limits_of(
    model: RobotModel,
    torque_rate: float = np.inf,
    jerk: float = np.inf,
    acceleration: float = 10.0,
) -> MotionLimits:
    """Limits of velocity (with headroom), acceleration and torque of the FR3, and those given."""
    text = share_file('config/fr3.yaml').read_text(encoding='utf-8')
    own = motion_limits(model, yaml.safe_load(text)['/**']['ros__parameters']['limits'])
    return own._replace(
        velocity=SPEED * own.velocity,
        acceleration=np.full(model.n_joints, acceleration),
        jerk=np.full(model.n_joints, jerk),
        effort_dot=np.full(model.n_joints, torque_rate),
    )


@dataclass(frozen=True)
class Commands:
    """What is sent in each cycle, at most.

    Attributes
    ----------
    name : str
    position, velocity : ndarray, shape (N, 7)
        That the loop of the client follows [rad], [rad/s].
    torque : ndarray, shape (N, 7)
        Ahead of any feedback [N m].
    """

    name: str
    position: np.ndarray
    velocity: np.ndarray
    torque: np.ndarray

    @property
    def duration(self) -> float:
        """[s]."""
        return (len(self.position) - 2) * CYCLE

    @property
    def rates(self) -> np.ndarray:
        """Steps of the torque by the cycle, from rest on, (N, 7) [N m/s]."""
        return np.diff(self.torque, axis=0, prepend=np.zeros((1, 7))) / CYCLE

    def reflex(self) -> tuple[int, int, float] | None:
        """First cycle that the robot would refuse, and the joint with the largest rate in it."""
        rates = np.abs(self.rates)
        beyond = np.flatnonzero((rates > RATE_LIMIT).any(axis=1))
        if not len(beyond):
            return None
        cycle = int(beyond[0])
        joint = int(rates[cycle].argmax())
        return cycle, joint, float(rates[cycle, joint])


@dataclass(frozen=True)
class Motion:
    """A timed motion with its torques.

    Attributes
    ----------
    name : str
    states : ndarray, shape (N, K, 7)
        Position and its derivatives in each cycle, K >= 3 [rad/s^k].
    efforts : ndarray, shape (N, K - 2, 7)
        Torque and its derivatives [N m/s^k].
    """

    name: str
    states: np.ndarray
    efforts: np.ndarray

    @property
    def file(self) -> str:
        """Name of a file of it, without its ending."""
        return self.name.replace(' ', '_')

    def exactly(self) -> Commands:
        """Commands of a client that has the torque of each cycle."""
        return Commands(self.name, self.states[:, 0], self.states[:, 1], self.efforts[:, 0])

    def from_source(self, period: float, kind: str) -> Commands:
        """Commands of a client to which a source sends a message every so often.

        Parameters
        ----------
        period : float
            Of the messages [s], a multiple of a cycle.
        kind : str
            One of `ORDERS`: how torques go on between messages. Positions always do so by
            velocity and acceleration.
        """
        every, order = round(period / CYCLE), ORDERS[kind]
        cycles = np.arange(len(self.states))
        sent = cycles // every * every
        after = ((cycles - sent) * CYCLE)[:, None]
        q, v, a = (self.states[sent, k] for k in range(3))
        torque = sum(
            self.efforts[sent, k] * after**k / (1, 1, 2)[k] for k in range(order + 1)
        )
        name = f'{1.0 / period:.0f} Hz, {kind}'
        return Commands(name, q + v * after + 0.5 * a * after**2, v + a * after, torque)


def timed(
    model: RobotModel, name: str, path: MotionSpline, limits: MotionLimits, **options: float
) -> Motion:
    """Motion along a path, as fast as limits allow; options are those of `retime`."""
    motion = retime(model, path, limits, **options).motion
    begin = motion.times[0]
    return resting(
        model, name, lambda t: motion(begin + t, 4), float(motion.times[-1] - begin)
    )


def resting(
    model: RobotModel,
    name: str,
    motion: Callable[[np.ndarray], np.ndarray],
    duration: float,
) -> Motion:
    """Motion in each cycle, and one more at rest.

    Parameters
    ----------
    model : RobotModel
    name : str
    motion : callable
        From times (N,) to position and as many derivatives as are known, (N, K, 7) with K >= 3.
    duration : float
        [s]
    """
    times = CYCLE * np.arange(np.ceil(duration / CYCLE - 1e-9) + 2)
    states = np.array(motion(np.minimum(times, duration)))
    states[times >= duration, 1:] = 0.0
    return Motion(name, states, inverse_dynamics(model, states))
