"""Where wrenches come from: given with derivatives, or measured in a frame of the robot.

Measured ones are estimated in the frame of the sensor, brought to the link when a motion needs
them. Without news they are held or come to rest.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, TypeVar

import numpy as np

from hodyn_ros.dynamics.wrenches import wrench_from_frame
from hodyn_ros.errors import WrenchError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.signals import ORDERS, brought_to_rest, continued
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.trajectory.estimator import DerivativeEstimator, Estimate
from hodyn_ros.typing import Array

T = TypeVar('T')

_KEPT = NANOSECONDS  # for how long messages are kept
_MOST_KEPT = 1000

SMALLEST_FORCE = 1.0  # N, of an oscillation whose derivatives are of interest
LEVER = 0.1  # m

FADE_TIME = 0.5  # s, in which a stale wrench comes to rest

# What an estimator sees: moments as forces at the end of a lever, so that one size [N] says for
# all six components what is small.
_AS_FORCES = np.array([1.0 / LEVER] * 3 + [1.0] * 3)


class Mounting(NamedTuple):
    """How the coordinates in a message become those of a wrench on a link.

    Attributes
    ----------
    link : str
        On which the wrench acts.
    expressed_in : str
        `body` or `spatial`.
    frame : ndarray, shape (4, 4), optional
        Pose in the link (in the base, if spatial) of the frame in which the values come; None: the
        same.
    acting : str
        What the sensor reads: `on_robot` or `on_environment`.
    """

    link: str
    expressed_in: str
    frame: Array | None
    acting: str


class Expiry(NamedTuple):
    """What becomes of a wrench without news, as the parameters of these names say.

    Attributes
    ----------
    wrench_timeout : float
        Time without news after which it is stale [s].
    wrench_stale_policy : str
        `stop`, `hold` or `fade`.
    """

    wrench_timeout: float
    wrench_stale_policy: str

    def stale(self, values: Array, time: float) -> Array:
        """Values of a stale wrench.

        Parameters
        ----------
        values : ndarray, shape (3, 6)
            At the time-out.
        time : float
            Since then [s].

        Returns
        -------
        ndarray, shape (3, 6)
            At rest after `FADE_TIME`: at zero with the policy `fade`.
        """
        to_zero = self.wrench_stale_policy == 'fade'
        return brought_to_rest(values, time, FADE_TIME, to_zero)


class Query(NamedTuple):
    """What a wrench is wanted for.

    Attributes
    ----------
    time : int
        [ns]
    motion : ndarray, shape (K, n)
        At that time.
    model : RobotModel
    expiry : Expiry
    """

    time: int
    motion: Array
    model: RobotModel
    expiry: Expiry

    def since_timeout(self, stamp: int, link: str, is_known: bool = False) -> float | None:
        """Time since a wrench is stale.

        Parameters
        ----------
        stamp : int
            Of its latest message [ns].
        link : str
            For the message of an error.
        is_known : bool
            Whether it is known at a time long before that message, too.

        Returns
        -------
        float or None
            [s], negative before the time-out; None if nothing is left of it.

        Raises
        ------
        WrenchError
            If the message is too far from the time that is asked for.
        """
        age, (timeout, policy) = (self.time - stamp) / NANOSECONDS, self.expiry
        if (age < -timeout and not is_known) or (age > timeout and policy == 'stop'):
            raise WrenchError(
                f'The wrench on {link!r} is {age:.3f} s away from the motion, more than '
                f'wrench_timeout ({timeout} s); the output stops. Publish it without gaps, end it '
                'by a wrench_motion of zeros, or set wrench_stale_policy to hold or fade.'
            )
        return None if policy == 'fade' and age - timeout >= FADE_TIME else age - timeout


class Acting(NamedTuple):
    """Coordinates of a wrench at an instant.

    Attributes
    ----------
    expressed_in : str
        `body`, `spatial` or `hybrid`.
    acting : str
        `on_robot` or `on_environment`.
    values : ndarray, shape (K, 6)
        (moment, force) and derivatives, at least as many orders as the motion and `order` permit.
    order : int
        Highest derivative that may be relied on.
    deviations : ndarray, shape (S, K, 6), optional
        Independent deviations of one standard deviation; None if not known.
    """

    expressed_in: str
    acting: str
    values: Array
    order: int
    deviations: Array | None = None


class Recent(deque[tuple[int, T]]):
    """Stamps [ns] and contents of the messages of the last second, kept for motions that lag."""

    def add(self, stamp: int, content: T) -> None:
        """Take a message; their stamps do not decrease."""
        self.append((stamp, content))
        while len(self) > _MOST_KEPT or (len(self) > 1 and stamp - self[1][0] > _KEPT):
            self.popleft()

    def at(self, time: int) -> tuple[int, T]:
        """Last message before a time.

        Parameters
        ----------
        time : int
            [ns]

        Returns
        -------
        stamp : int
            [ns]
        content : object
            Of the first message if none is before the time.

        Raises
        ------
        IndexError
            If there is no message.
        """
        before = (item for item in reversed(self) if item[0] <= time)
        return next(before, self[0])


class GivenWrench:
    """A wrench that comes with its derivatives.

    Parameters
    ----------
    link : str
        On which it acts.
    """

    topic = 'wrench_motion'

    def __init__(self, link: str) -> None:
        self.link = link
        self._messages: Recent[Acting] = Recent()

    def update(self, stamp: int, acting: Acting) -> None:
        """Take a message; their stamps do not decrease."""
        self._messages.add(stamp, acting)

    @property
    def stamp(self) -> int:
        """Of the newest message [ns]."""
        return self._messages[-1][0]

    @property
    def expressed_in(self) -> str:
        """Of the newest message."""
        return self._messages[-1][1].expressed_in

    def at(self, query: Query) -> Acting | None:
        """Coordinates at an instant, as those of the message before go on by their derivatives.

        Parameters
        ----------
        query : Query

        Returns
        -------
        Acting or None
            None if nothing is left of it.

        Raises
        ------
        WrenchError
            If the message is too far from the instant.
        """
        stamp, acting = self._messages.at(query.time)
        stale = query.since_timeout(stamp, self.link)
        if stale is None:
            return None
        age = min((query.time - stamp) / NANOSECONDS, query.expiry.wrench_timeout)
        values = continued(acting.values, np.array([age]))[0]
        if stale > 0.0:
            values = query.expiry.stale(values, stale)
        return acting._replace(values=values)


class _Last(NamedTuple):
    """Contact wrench as it was used last.

    Attributes
    ----------
    stamp : int
        Of the newest sample then [ns]
    time : int
    values : ndarray, shape (3, 6)
        On the link; zero where nothing is known.
    order : int
        Highest derivative that the estimator knew.
    """

    stamp: int
    time: int
    values: Array
    order: int

    def rested(self, time: int) -> Array:
        """Values (3, 6) at a later time [ns], as it has been coming to rest."""
        seconds = (time - self.time) / NANOSECONDS
        return brought_to_rest(self.values, seconds, FADE_TIME, False)


class MeasuredWrench:
    """A stream of measured wrenches in one frame.

    Parameters
    ----------
    frame_id : str
        Frame of the messages.
    place : Mounting
    estimator : DerivativeEstimator
        Of six forces: moments are divided by `LEVER`.

    Attributes
    ----------
    topic : str
        Name of the source.
    expressed_in : str
    stamp : int
        Of the newest sample [ns].
    """

    def __init__(
        self, frame_id: str, place: Mounting, estimator: DerivativeEstimator
    ) -> None:
        self.frame_id, self.topic = frame_id, measured_topic(frame_id)
        self.expressed_in = place.expressed_in
        self.stamp = 0
        self._sample = np.zeros(6)
        self._estimator = estimator
        self.mount(place)

    def mount(self, place: Mounting, estimator: DerivativeEstimator | None = None) -> None:
        """Have the coordinates come from another place from now on.

        Parameters
        ----------
        place : Mounting
        estimator : DerivativeEstimator, optional
            By default the one in use goes on.
        """
        self._place = place
        self._last: _Last | None = None
        self._estimator = estimator or self._estimator

    def update(self, stamp: int, values: Array) -> None:
        """Take a sample.

        Parameters
        ----------
        stamp : int
            Its time [ns].
        values : ndarray, shape (6,)
            (moment, force) in the frame of the messages [N m], [N].
        """
        self._estimator.update(stamp, values * _AS_FORCES)
        self.stamp, self._sample = stamp, values

    def at(self, query: Query) -> Acting | None:
        """Coordinates at an instant, as they are estimated.

        Parameters
        ----------
        query : Query

        Returns
        -------
        Acting or None
            On the link; None if nothing is left of it.

        Raises
        ------
        WrenchError
            If the latest sample is too far from the instant.
        """
        place, timeout = self._place, query.expiry.wrench_timeout
        is_stale = (query.time - self.stamp) / NANOSECONDS - timeout > 0.0
        # A motion of before the newest sample has its wrench as long as it can be estimated.
        estimate = None if is_stale else self._estimator.at(query.time)
        stale = query.since_timeout(self.stamp, place.link, estimate is not None)
        if stale is None:
            return None
        deviations = None if estimate is None else self._deviations(estimate)
        if is_stale:
            at_timeout, order = self._contact_at_timeout(query)
            values = query.expiry.stale(at_timeout, stale)
        else:
            values, order = self._contact(query.time, estimate)
        return Acting(place.expressed_in, place.acting, values, order, deviations)

    def _contact(self, time: int, estimate: Estimate | None) -> tuple[Array, int]:
        """Wrench on the link, and its highest valid order.

        Where nothing is known any more, the one that was used last since the newest sample comes
        to rest; without one, the sample stands. Neither has derivatives to publish.
        """
        last = self._last
        if last is not None and last.stamp != self.stamp:
            last = None
        if estimate is not None:
            measured = np.asarray(estimate.motion, dtype=np.float64)[:ORDERS] / _AS_FORCES
        elif last is not None and last.time <= time:
            return last.rested(time), 0
        else:
            measured = self._sample[None]
        order, values = len(measured) - 1, self._on_link(measured)
        if estimate is not None and (last is None or last.time <= time):
            self._last = _Last(self.stamp, time, _padded(values), order)
        return values, order

    def _contact_at_timeout(self, query: Query) -> tuple[Array, int]:
        """Wrench (3, 6) from which the stale one goes on, and its highest valid order."""
        end = self.stamp + round(query.expiry.wrench_timeout * NANOSECONDS)
        values, order = self._contact(end, self._estimator.at(end))
        return _padded(values), order

    def _deviations(self, estimate: Estimate) -> Array:
        deviations = estimate.deviations(min(len(estimate.motion), ORDERS)) / _AS_FORCES
        return self._on_link(deviations)

    def _on_link(self, measured: Array) -> Array:
        frame = self._place.frame
        return measured if frame is None else wrench_from_frame(measured, frame)


def measured_topic(frame_id: str) -> str:
    """Name of a source of measured wrenches: topic and frame."""
    return f'wrench (frame_id {frame_id!r})'


def _padded(values: Array) -> Array:
    return np.pad(values, ((0, ORDERS - len(values)), (0, 0)))
