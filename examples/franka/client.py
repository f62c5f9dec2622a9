"""A client of Franka's torque interface: joint impedance with torques ahead of it, at 1 kHz."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import numpy as np
import pylibfranka
from motions import CYCLE, RATE_LIMIT, Commands

from hodyn_ros.control import EffortFollower

# Joint impedance: soft, as one that touches things has to be [N m/rad], [N m s/rad].
STIFFNESS = np.array([150.0, 150.0, 150.0, 150.0, 62.5, 37.5, 12.5])
DAMPING = np.array([25.0, 25.0, 25.0, 25.0, 15.0, 12.5, 7.5])
# Between motions: stiffer, at this mean speed [rad/s] for this long at least [s], and at rest [s].
APPROACH, SHORTEST, REST, STIFFER = 0.8, 0.3, 0.5, 4.0
TORQUE_LIMITS = [87.0] * 4 + [12.0] * 3  # N m
RECOVERY = 1.0  # s
COLLISION = [200.0] * 7, [300.0] * 6  # N m, N: contacts are not what this is about


@dataclass(frozen=True)
class Outcome:
    """What became of a motion.

    Attributes
    ----------
    commands : Commands
    reflex : str
        Of the robot, in its own words; empty if the motion arrived.
    sent : ndarray, shape (N, 7)
        Torques, feedback included [N m].
    cycle : int
        The last one that was answered, from 0: where the robot stopped, the one that it refused.
    joint : int
        Whose torque changed most between two cycles, from 0: where the robot stopped, between the
        last two.
    rate : float
        By how much, feedback included [N m/s].
    error : float
        Largest distance of a joint from where it should be [rad].
    text : str
        All that the robot said of a stop; what stopped motions before is in it, too.
    """

    commands: Commands
    reflex: str
    sent: np.ndarray
    cycle: int
    joint: int
    rate: float
    error: float
    text: str


def within_limits(most_rate: float) -> EffortFollower:
    """Rule that keeps torques and their rate within limits, from zero on.

    Each cycle has a torque of its own, so there is nothing to ease from one source to another.
    """
    rule = EffortFollower(TORQUE_LIMITS, [most_rate] * 7, extrapolation=0, ease_time=0.0)
    rule.reset(np.zeros(7))
    return rule


class Arm:
    """A robot, or one that is simulated, at an address."""

    def __init__(self, address: str = '127.0.0.1') -> None:
        # Nothing is lost where the kernel has no real time: the simulated robot waits.
        self._robot = pylibfranka.Robot(address, pylibfranka.RealtimeConfig.kIgnore)
        joints, axes = COLLISION
        self._robot.set_collision_behavior(joints, joints, axes, axes)

    def go_to(self, position: np.ndarray) -> None:
        """Move to rest at a position, slowly; RuntimeError if the robot does not."""
        begin = np.array(self._robot.read_once().q)
        way = position - begin
        duration = max(float(np.abs(way).max()) / APPROACH, SHORTEST)
        x = np.arange(0.0, 1.0, CYCLE / duration)[:, None]
        q = begin + (10 * x**3 - 15 * x**4 + 6 * x**5) * way
        v = (30 * x**2 - 60 * x**3 + 30 * x**4) * way / duration
        still = np.repeat(position[None], round(REST / CYCLE), axis=0)
        q, v = np.vstack((q, still)), np.vstack((v, np.zeros_like(still)))
        commands = Commands('to the start', q, v, np.zeros_like(q))
        outcome = self.follow(commands, STIFFER, most_rate=0.9 * RATE_LIMIT)
        if outcome.reflex:
            raise RuntimeError(f'On the way to the start: {outcome.reflex}.')

    def follow(
        self, commands: Commands, stiffer: float = 1.0, most_rate: float = np.inf
    ) -> Outcome:
        """Follow commands until they end or the robot stops.

        Parameters
        ----------
        commands : Commands
        stiffer : float
            Factor of the stiffness.
        most_rate : float
            Rate at which torques are cut, feedback included [N m/s]; infinite: they are sent as
            they are, beyond their limits, too.
        """
        stiffness, damping = stiffer * STIFFNESS, stiffer**0.5 * DAMPING
        last = len(commands.position) - 1
        sent, errors, reflex, text = [np.zeros(7)], [0.0], '', ''
        rule = within_limits(most_rate) if np.isfinite(most_rate) else None
        try:
            control = self._robot.start_torque_control()
            for cycle in range(last + 1):
                state, _ = control.readOnce()
                error = commands.position[cycle] - np.array(state.q)
                slower = commands.velocity[cycle] - np.array(state.dq)
                torque = commands.torque[cycle] + stiffness * error + damping * slower
                if rule is not None:
                    rule.give(CYCLE * cycle, CYCLE * cycle, torque)
                    torque = rule.update(CYCLE * cycle, CYCLE)
                answer = pylibfranka.Torques(list(torque))
                answer.motion_finished = cycle == last
                control.writeOnce(answer)
                sent.append(torque)
                errors.append(float(np.abs(error).max()))
        except pylibfranka.ControlException as stop:
            text = str(stop)
            # The text also names what stopped motions before.
            errors_now = str(self._robot.read_once().current_errors)
            names = re.findall(r'[a-z_]+_(?:violation|discontinuity|reflex)', errors_now)
            reflex = ', '.join(names) or text
            time.sleep(RECOVERY)
            self._robot.automatic_error_recovery()
        rates = np.abs(np.diff(sent, axis=0)) / CYCLE
        judged = rates[-1:] if reflex else rates
        joint = int(judged.max(axis=0).argmax())
        return Outcome(
            commands,
            reflex,
            np.array(sent[1:]),
            len(rates) - 1,
            joint,
            float(judged.max()),
            max(errors),
            text,
        )
