"""What the node knows of wrenches: the latest on every link, given or measured.

A `wrench_motion` carries its derivatives; those of a `wrench` are estimated. Each link has one
source at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import WrenchMotion
from numpy.typing import NDArray
from std_msgs.msg import Header

from hodyn_ros.dynamics.continuation import continued
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import MotionError, WrenchError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.conversions import (
    NANOSECONDS,
    moment_force,
    nanoseconds,
    wrench_from_message,
)
from hodyn_ros.ros.settings import WrenchSettings
from hodyn_ros.ros.wrench_settings import check_link, mounting
from hodyn_ros.ros.wrench_sources import (
    LEVER,
    Estimator,
    Given,
    Measured,
    Query,
    measured_topic,
)

Array = NDArray[np.float64]


class WrenchesAt(NamedTuple):
    """Wrenches at the instant of a motion."""

    wrenches: list[Wrench]
    """With `order + 1` orders, hence for the motion up to its derivative `order + 2`."""
    order: int
    """Highest derivative of the efforts that the motion and the wrenches permit."""
    deviations: list[Array | None]
    """For each of them independent deviations of one standard deviation, shape (S, order + 1, 6);
    None if it is given, or goes on without new measurements."""


class Wrenches:
    """The latest wrench on every link; of the thread of the executor.

    A link has one source at a time: the input `wrench_motion`, or `wrench` with one frame_id. As
    long as its last message is not older than the time-out, others are refused.

    Parameters
    ----------
    settings : WrenchSettings
    new_estimator : callable
        Returns a new estimator of six forces and their first two derivatives, such as
        `DerivativeEstimator(6, highest_derivative=2, smallest_motion=1.0)`: it gets the moments
        divided by `LEVER`.
    """

    def __init__(
        self, settings: WrenchSettings, new_estimator: Callable[[], Estimator]
    ) -> None:
        self._settings = settings
        self._new_estimator = new_estimator
        self._latest: dict[str, Given | Measured] = {}
        # Also of links whose wrench has ended: what was sent before that must not revive it.
        self._newest: dict[str, int] = {}
        self._dropped = 0

    @property
    def settings(self) -> WrenchSettings:
        """Settings in use; may be replaced at any time, as a whole."""
        return self._settings

    @settings.setter
    def settings(self, settings: WrenchSettings) -> None:
        if settings.link != self._settings.link:
            self._latest = {
                link: source
                for link, source in self._latest.items()
                if isinstance(source, Given)
            }
        self._settings = settings

    def restart_estimators(self) -> None:
        """Estimate measured wrenches anew, since estimators are to be made in another way."""
        for source in self._latest.values():
            if isinstance(source, Measured):
                source.restart(self._new_estimator())

    @property
    def dropped(self) -> int:
        """Number of messages left out since they came after newer ones, or twice."""
        return self._dropped

    def take_motion(self, message: WrenchMotion, model: RobotModel, now_ns: int) -> bool:
        """Take a wrench with its derivatives; one that is zero with them ends the wrench.

        Parameters
        ----------
        message : WrenchMotion
            A stamp of zero means now.
        model : RobotModel
        now_ns : int
            Present time [ns].

        Returns
        -------
        bool
            Whether other links or expressions than before are concerned, see `latest`.

        Raises
        ------
        WrenchError
            If the link is unknown, a value cannot be used, the stamp is not a time or lies in the
            future by more than the time-out, or `wrench` acts on the same link.
        """
        link, expressed_in, acting, values = wrench_from_message(message)
        check_link(model, link)
        stamp = _checked_stamp(message.header, link, now_ns, self._settings.timeout)
        if stamp == now_ns:  # whatever a stamp of before that was ahead
            stamp = max(stamp, self._newest.get(link, stamp))
        before, kind = self._latest.get(link), self._kind(link)
        self._check_source(link, Given.topic, before, now_ns)
        if self._is_late(link, stamp, repeated=False):
            return False
        if not values.any():
            return self._latest.pop(link, None) is not None
        source = before if isinstance(before, Given) else Given(link)
        source.update(stamp, expressed_in, acting, values)
        self._latest[link] = source
        return kind != self._kind(link)

    def take_stamped(self, message: WrenchStamped, model: RobotModel, now_ns: int) -> bool:
        """Take a sample of a measured wrench; zeros are a sample like others.

        Parameters
        ----------
        message : WrenchStamped
            frame_id is a link; with `settings.link` a link on the same body, or one at rest, such
            as the base link. A stamp of zero means now.
        model : RobotModel
        now_ns : int
            Present time [ns].

        Returns
        -------
        bool
            Whether other links or expressions than before are concerned, see `latest`.

        Raises
        ------
        WrenchError
            If the frame cannot be used, a value is not finite, the stamp is not a time or lies in
            the future by more than the time-out, or another source acts on the same link.
        """
        frame_id = message.header.frame_id
        values = np.array(moment_force(message.wrench))
        settings = self._settings
        place = mounting(settings, model, frame_id)
        link, topic = place.link, measured_topic(frame_id)
        if not np.isfinite(values).all():
            raise WrenchError(f'Wrench on {link!r}: all values must be finite.')
        stamp = _checked_stamp(message.header, link, now_ns, settings.timeout)
        before, kind = self._latest.get(link), self._kind(link)
        self._check_source(link, topic, before, now_ns)
        if self._is_late(link, stamp, repeated=True):
            return False
        source = before
        if (
            not isinstance(before, Measured)
            or before.topic != topic
            or before.expressed_in != place.expressed_in
        ):
            source = Measured(frame_id, place, self._new_estimator())
        source.update(stamp, values)
        self._latest[link] = source
        return kind != self._kind(link)

    def _kind(self, link: str) -> str | None:
        """Expression in which a wrench acts on a link, None if there is none."""
        source = self._latest.get(link)
        return None if source is None else source.expressed_in

    def _check_source(
        self, link: str, topic: str, present: Given | Measured | None, now: int
    ) -> None:
        """Refuse a second source on a link as long as the first one is alive."""
        if present is None or present.topic == topic:
            return
        age, timeout = (now - present.stamp) / NANOSECONDS, self._settings.timeout
        if age <= timeout:
            raise WrenchError(
                f'Wrench on {link!r} from {topic}: {present.topic} acts on the same link, its '
                f'last message is {age:.3f} s old. Use one of them; another one is taken when '
                f'the last message is older than wrench_timeout ({timeout} s).'
            )

    def _is_late(self, link: str, stamp: int, repeated: bool) -> bool:
        """Count a message that comes after newer ones; a repeated one too, if told."""
        newest = self._newest.get(link)
        if newest is not None and (stamp < newest or (repeated and stamp == newest)):
            self._dropped += 1
            return True
        self._newest[link] = stamp
        return False

    def clear(self) -> None:
        """Forget all wrenches, as after a jump of time."""
        self._latest.clear()
        self._newest.clear()

    def keep_only(self, model: RobotModel) -> list[str]:
        """Forget wrenches that a model has no place for; return the links on which they acted."""
        gone = [
            link
            for link, source in self._latest.items()
            if not source.fits(model, self._settings)
        ]
        for link in gone:
            del self._latest[link]
        self._newest = {
            link: stamp for link, stamp in self._newest.items() if link in model.links
        }
        return gone

    def latest(self) -> list[Wrench]:
        """Wrenches with the links and expressions in which they will act, whatever their age.

        They are for preparing compiled code: the values of measured ones are zero.
        """
        return [self._latest[link].as_arrived() for link in sorted(self._latest)]

    def at(self, time_ns: int, motion: Array, model: RobotModel) -> WrenchesAt:
        """Wrenches at the instant of a motion.

        Parameters
        ----------
        time_ns : int
            Instant [ns].
        motion : ndarray, shape (K, n)
            Joint motion at this instant, K >= 3.
        model : RobotModel

        Returns
        -------
        WrenchesAt
            Its order is K - 3 or less.

        Raises
        ------
        WrenchError
            If a wrench is older than the time-out and the policy is to stop, or if one is newer
            by more than the time-out.
        """
        acting = []
        query = Query(time_ns, motion, model, self._settings)
        # In the same order every time, since each order has its own compiled code.
        for link in sorted(self._latest):
            wrench = self._latest[link].at(query)
            if wrench is not None:
                acting.append((link, wrench))
        order = min([len(motion) - 3, *(wrench.order for _, wrench in acting)])
        wrenches = [
            Wrench(link, wrench.values[: order + 1], wrench.expressed_in, wrench.acting)
            for link, wrench in acting
        ]
        deviations = [
            None if wrench.deviations is None else wrench.deviations[:, : order + 1]
            for _, wrench in acting
        ]
        return WrenchesAt(wrenches, order, deviations)

    def report(self, now_ns: int) -> dict[str, str]:
        """State of the wrench on every link in words, for diagnostics."""
        states = {}
        settings = self._settings
        for link in sorted(self._latest):
            source = self._latest[link]
            age = (now_ns - source.stamp) / NANOSECONDS
            states[link] = f'{source.topic}, {age:.3f} s old'
            if age > settings.timeout:
                over = age >= settings.timeout + settings.fade_time
                states[link] += {
                    'stop': ', the output stops',
                    'hold': ', held',
                    'fade': ', faded out' if over else ', fading out',
                }[settings.stale_policy]
        return states


def _checked_stamp(header: Header, link: str, now: int, timeout: float) -> int:
    try:
        stamp = nanoseconds(header.stamp) or now
    except MotionError as error:
        raise WrenchError(f'Wrench on {link!r}: {error}') from error
    ahead = (stamp - now) / NANOSECONDS
    if ahead > timeout:
        raise WrenchError(
            f'Wrench on {link!r}: the stamp lies {ahead:.3f} s in the future, more than '
            f'wrench_timeout ({timeout} s); the clocks of the sender and of this node must agree.'
        )
    return stamp


__all__ = ['LEVER', 'Wrenches', 'WrenchesAt', 'continued']
