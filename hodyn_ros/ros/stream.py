"""What the node holds between messages: the trajectory in progress and the latest wrenches."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import WrenchError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.conversions import NANOSECONDS
from hodyn_ros.ros.wrenches import continued
from hodyn_ros.trajectory.spline import MotionSpline

Array = NDArray[np.float64]


class PlannedMotion(NamedTuple):
    """A motion that is placed in time."""

    joint_names: tuple[str, ...]
    """Order of the joints in the spline."""
    spline: MotionSpline
    start: int
    """Time at which the time of the spline is zero [ns]."""

    @property
    def first(self) -> int:
        """Time of the first sample [ns]."""
        return self.start + round(self.spline.start_time * NANOSECONDS)

    @property
    def last(self) -> int:
        """Time of the last sample [ns]."""
        return self.start + round(self.spline.end_time * NANOSECONDS)

    def at(self, time: int) -> Array:
        """Motion (5, n) at a time in nanoseconds; the ends are kept."""
        seconds = (time - self.start) / NANOSECONDS
        spline = self.spline
        return spline(min(max(seconds, spline.start_time), spline.end_time))


class TrajectoryStream:
    """The motion in progress and the one that follows it. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: PlannedMotion | None = None
        self._next: PlannedMotion | None = None

    def start(self, planned: PlannedMotion, now: int) -> None:
        """Take up a motion: at once, or when its first sample is due."""
        with self._lock:
            if planned.first > now and self._current is not None:
                self._next = planned
            else:
                self._current, self._next = planned, None

    def clear(self) -> bool:
        """Drop all motions; return whether there was one."""
        with self._lock:
            was_active = self._current is not None
            self._current = self._next = None
            return was_active

    def sample(self, now: int) -> tuple[PlannedMotion, int] | None:
        """Motion in progress and the time [ns] to sample it at; its end comes exactly once."""
        with self._lock:
            if self._next is not None and now >= self._next.first:
                self._current, self._next = self._next, None
            planned = self._current
            if planned is None or now < planned.first:
                return None
            if now >= planned.last:
                self._current, self._next = self._next, None
                return planned, planned.last
            return planned, now


class _LatestWrench(NamedTuple):
    stamp: int
    expressed_in: str
    acting: str
    values: Array


class LatestWrenches:
    """The latest wrench on every link. Safe to use from several threads.

    Parameters
    ----------
    timeout : float
        Longest time between a wrench and its use [s].
    """

    def __init__(self, timeout: float) -> None:
        self._lock = threading.Lock()
        self._timeout = timeout
        self._latest: dict[str, _LatestWrench] = {}

    def update(
        self, link: str, expressed_in: str, acting: str, values: Array, stamp: int
    ) -> None:
        """Store a wrench; one that is zero with its derivatives ends the wrench on the link."""
        with self._lock:
            if values.any():
                self._latest[link] = _LatestWrench(stamp, expressed_in, acting, values)
            else:
                self._latest.pop(link, None)

    def clear(self) -> None:
        """Forget all wrenches."""
        with self._lock:
            self._latest.clear()

    def keep_only(self, model: RobotModel) -> list[str]:
        """Forget wrenches on links that a model does not have; return these links."""
        with self._lock:
            gone = [link for link in self._latest if link not in model.links]
            for link in gone:
                del self._latest[link]
            return gone

    def latest(self) -> list[Wrench]:
        """Wrenches as they arrived, whatever their age."""
        with self._lock:
            latest = sorted(self._latest.items(), key=lambda item: item[0])
        return [Wrench(link, w.values, w.expressed_in, w.acting) for link, w in latest]

    def at(self, time: int, orders: int) -> list[Wrench]:
        """Wrenches at a time [ns] with `orders` orders, continued by their own derivatives.

        Raises
        ------
        WrenchError
            If one of them is older (or newer) than the time-out.
        """
        with self._lock:
            # In the same order every time, since each order has its own compiled code.
            latest = sorted(self._latest.items(), key=lambda item: item[0])
        wrenches = []
        for link, wrench in latest:
            age = (time - wrench.stamp) / NANOSECONDS
            if abs(age) > self._timeout:
                raise WrenchError(
                    f'The wrench on {link!r} is {age:.3f} s away from the motion, more than '
                    f'wrench_timeout ({self._timeout} s); the output stops. Publish wrench_motion '
                    'without gaps, or one message of zeros to end the wrench.'
                )
            values = continued(wrench.values, np.array([age]))[0, :orders]
            wrenches.append(Wrench(link, values, wrench.expressed_in, wrench.acting))
        return wrenches
