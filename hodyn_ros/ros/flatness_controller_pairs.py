"""Measurements of links and motors that belong together, by their stamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.names import listed
from hodyn_ros.ros.conversions import nanoseconds

Array = NDArray[np.float64]

LINKS, MOTORS = 'joint_states', 'motor_states'

# Measurements that wait for their other half.
MOST_WAITING = 64


class Measured(NamedTuple):
    """State of links and motors at one instant."""

    stamp: int
    """[ns]"""
    state: Array
    """Shape (4, n): positions and velocities of the links, then those of the motors."""


class Pairs:
    """Brings measurements of links and motors with equal stamps together.

    Parameters
    ----------
    joint_names, motor_names : sequence of str
        In the order wanted.
    """

    def __init__(self, joint_names: Sequence[str], motor_names: Sequence[str]) -> None:
        self._names = {LINKS: tuple(joint_names), MOTORS: tuple(motor_names)}
        self._orders: dict[str, tuple[tuple[str, ...], list[int]]] = {}
        self._waiting: dict[str, dict[int, Array]] = {LINKS: {}, MOTORS: {}}
        self._answered = 0
        self.dropped = {LINKS: 0, MOTORS: 0}
        """Measurements without their other half, or that came after later ones were answered."""

    def take(self, topic: str, message: JointState) -> Measured | None:
        """Take a measurement.

        Parameters
        ----------
        topic : str
            `LINKS` or `MOTORS`.
        message : sensor_msgs.msg.JointState
            Further names are ignored.

        Returns
        -------
        Measured or None
            None if the other half is not there yet, or if it is too late.

        Raises
        ------
        JointNameError
            If names are missing or repeated.
        MotionError
            If there is no stamp, positions or velocities are missing, or are not finite.
        """
        stamp = nanoseconds(message.header.stamp)
        if not stamp:
            raise MotionError(
                f'{topic}: there is no stamp, by which measurements of links and motors are '
                'brought together.'
            )
        values = self._values(topic, message)
        if stamp <= self._answered:
            self.dropped[topic] += 1
            return None
        own = self._waiting[topic]
        own[stamp] = values
        other = self._waiting[MOTORS if topic == LINKS else LINKS].get(stamp)
        if other is None:
            if len(own) > MOST_WAITING:
                del own[min(own)]
                self.dropped[topic] += 1
            return None
        self._forget(stamp)
        return Measured(
            stamp, np.concatenate((values, other) if topic == LINKS else (other, values))
        )

    def answer(self, stamp: int) -> None:
        """Note that a pair is answered: it is not returned again, nor is an older one [ns]."""
        self._answered = stamp

    def clear(self) -> None:
        """Forget everything: time has jumped."""
        self._answered = 0
        for waiting in self._waiting.values():
            waiting.clear()

    def _forget(self, stamp: int) -> None:
        """Forget measurements up to a pair: without their other half they are of no use."""
        for topic, waiting in self._waiting.items():
            for key in [key for key in waiting if key <= stamp]:
                del waiting[key]
                self.dropped[topic] += key < stamp

    def _values(self, topic: str, message: JointState) -> Array:
        names = tuple(message.name)
        known = self._orders.get(topic)
        if known is None or known[0] != names:
            known = self._orders[topic] = (names, _order(topic, names, self._names[topic]))
        rows = []
        for field in ('position', 'velocity'):
            values = getattr(message, field)
            if len(values) != len(names):
                raise MotionError(
                    f'{topic}: {field} has {len(values)} values, expected {len(names)}, one for '
                    'each of name.'
                )
            rows.append(values)
        found = np.array(rows)[:, known[1]]
        if not np.isfinite(found).all():
            row, j = np.argwhere(~np.isfinite(found))[0]
            raise MotionError(
                f'{topic}: the {("position", "velocity")[row]} of {self._names[topic][j]!r} is '
                f'{found[row, j]}; all values must be finite.'
            )
        return found


def _order(topic: str, given: tuple[str, ...], wanted: tuple[str, ...]) -> list[int]:
    missing = [name for name in wanted if name not in given]
    repeated = [name for name in wanted if given.count(name) > 1]
    if missing or repeated:
        what = f'missing: {listed(missing)}' if missing else f'repeated: {listed(repeated)}'
        raise JointNameError(
            f'{topic}: names do not fit ({what}); expected each of {listed(wanted)} once.'
        )
    return [given.index(name) for name in wanted]
