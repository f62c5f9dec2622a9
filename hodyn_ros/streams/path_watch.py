"""Whether a robot follows its motion, as its measured positions tell."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion, nearest_turn
from hodyn_ros.typing import Array

# A robot stands still if in some time [ns] a joint goes less than a share of the way of its
# motion, where that is some way, and is some way off [rad, m].
_WINDOW, _SHARE, _WAY, _OFF = NANOSECONDS // 10, 0.2, 0.02, 0.01
# What has not lasted for so long may be a hitch of the clock or of the transport [ns].
_BRIEF = NANOSECONDS // 20


class _Look(NamedTuple):
    """A measurement beside what it should be.

    Attributes
    ----------
    time : int
        [ns]
    position, planned : ndarray, shape (n,)
        Measured and of the motion [rad] or [m].
    """

    time: int
    position: Array
    planned: Array


class Following:
    """Comparison of measured positions with motions, one measurement after the other.

    Attributes
    ----------
    why : str
        How the robot is away from its motion, at the latest look at which it was.
    """

    def __init__(self) -> None:
        self._is_continuous = np.zeros(0, dtype=np.bool_)
        self._looks: deque[_Look] = deque()
        self._since: int | None = None
        self.why: str = ''

    def use(self, joint_types: tuple[str, ...]) -> None:
        """Watch a robot from now on.

        Parameters
        ----------
        joint_types : tuple of str
            Of its n joints; a `continuous` one is where it was after each turn.
        """
        self._is_continuous = np.array([kind == 'continuous' for kind in joint_types])
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._looks.clear()
        self._since = None

    @property
    def is_away(self) -> bool:
        """Whether the robot is away from its motion, and not only for an instant."""
        return self._since is not None and self._looks[-1].time - self._since >= _BRIEF

    def lasts(
        self, planned: PlannedMotion | None, position: Array, time: int, most: float
    ) -> int:
        """Take a position (n,) that was measured at a time [ns].

        `most` is the largest distance from the motion [rad, m].

        Returns
        -------
        int
            For how long the robot has been farther away than that, or has stood still while its
            motion went on [ns]; 0 if it follows, or there is no motion.
        """
        if planned is None:
            self.forget()
            return 0
        looks = self._looks
        if looks and time < looks[-1].time:
            self.forget()
        if not looks or time > looks[-1].time:
            self._look(planned, position, time, most)
        return 0 if self._since is None else time - self._since

    def _look(
        self, planned: PlannedMotion, position: Array, time: int, most: float
    ) -> None:
        """Compare a position (n,) with the motion, and say how far it is away."""
        looks, wanted = self._looks, planned.at(time)[0]
        distance = np.abs(nearest_turn(position, wanted, self._is_continuous) - wanted)
        looks.append(_Look(time, position.copy(), wanted))
        while len(looks) > 1 and looks[1].time <= time - _WINDOW:
            looks.popleft()
        stands = self._stands(distance, wanted)
        is_still = bool(stands.any())
        if not is_still and (distance <= most).all():
            self._since = None
            return
        if self._since is None:
            self._since = looks[0].time if is_still else time
        lasted = (time - self._since) / NANOSECONDS
        j = int((distance * stands if is_still else distance).argmax())
        what = (
            'stands still while its motion goes on'
            if is_still
            else f'is farther from the motion than path_tolerance ({most:g})'
        )
        self.why = (
            f'{planned.joint_names[j]} {what}, for {lasted:.3g} s, and is '
            f'{distance[j]:.3g} away from it'
        )

    def _stands(self, distance: Array, wanted: Array) -> NDArray[np.bool_]:
        """Which joints have stood still while their motion has gone on, (n,)."""
        first, latest = self._looks[0], self._looks[-1]
        way = np.abs(wanted - first.planned)
        stands = np.abs(latest.position - first.position) < _SHARE * way
        stands &= (way > _WAY) & (distance > _OFF) & (latest.time - first.time >= _WINDOW)
        return stands
