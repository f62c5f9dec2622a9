"""The two kinds of wrenches on a link: given with derivatives, and measured.

A given one goes on by its derivatives. A measured one is estimated in the frame of its sensor;
when a motion needs it, the estimate is brought to the link and freed of the weight of the tool.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.dynamics.continuation import ORDERS, brought_to_rest, continued
from hodyn_ros.dynamics.tool import tool_weight, wrench_from_frame
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import WrenchError
from hodyn_ros.kinematics.forward import forward_kinematics
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.conversions import NANOSECONDS
from hodyn_ros.ros.settings import WrenchSettings
from hodyn_ros.ros.wrench_settings import Mounting, check_link, mounting

Array = NDArray[np.float64]

_KEPT = NANOSECONDS  # for how long messages are kept
_MOST_KEPT = 1000

LEVER = 0.1  # m
# What an estimator sees: moments as forces at the end of a lever, so that one size [N] says for
# all six components what is small.
_AS_FORCES = np.array([1.0 / LEVER] * 3 + [1.0] * 3)


class Estimate(Protocol):
    """What is used of the result of an estimator."""

    motion: Array
    """Six forces and the derivatives that the estimator vouches for, shape (K, 6), K >= 1."""
    factor: Array
    """Cholesky factor of the covariance of each force and its derivatives, shape (6, K, K)."""


class Estimator(Protocol):
    """What estimates the derivatives of six forces: the moments divided by `LEVER`, the forces."""

    def update(self, time_ns: int, values: Array) -> object:
        """Take a sample."""

    def at(self, time_ns: int) -> Estimate | None:
        """Estimate at an instant; None if nothing is vouched for."""


class ActingWrench(NamedTuple):
    """Coordinates of a wrench at an instant."""

    expressed_in: str
    acting: str
    values: Array
    """At least as many orders as the motion and `order` permit."""
    order: int
    """Highest derivative that may be relied on."""
    deviations: Array | None = None
    """Independent deviations of one standard deviation, shape (S, K, 6); None if not known."""


class Query(NamedTuple):
    """What a wrench is wanted for."""

    time: int
    """[ns]"""
    motion: Array
    """Shape (K, n)."""
    model: RobotModel
    settings: WrenchSettings


class _Message(NamedTuple):
    stamp: int
    expressed_in: str
    acting: str
    values: Array
    """Shape (3, 6)."""


class Given:
    """A wrench that comes with its derivatives.

    Messages are kept for a while, since motions that are estimated lag behind them.
    """

    topic = 'wrench_motion'

    def __init__(self, link: str) -> None:
        self.link = link
        self._messages: deque[_Message] = deque(maxlen=_MOST_KEPT)

    def update(self, stamp: int, expressed_in: str, acting: str, values: Array) -> None:
        """Take a message; their stamps do not decrease."""
        self._messages.append(_Message(stamp, expressed_in, acting, values))
        while len(self._messages) > 1 and stamp - self._messages[1].stamp > _KEPT:
            self._messages.popleft()

    @property
    def stamp(self) -> int:
        """Of the newest message [ns]."""
        return self._messages[-1].stamp

    @property
    def expressed_in(self) -> str:
        """Of the newest message."""
        return self._messages[-1].expressed_in

    def as_arrived(self) -> Wrench:
        """Wrench of the newest message."""
        newest = self._messages[-1]
        return Wrench(self.link, newest.values, newest.expressed_in, newest.acting)

    def fits(self, model: RobotModel, settings: WrenchSettings) -> bool:
        """Return whether a model has a place for it."""
        return self.link in model.links

    def at(self, query: Query) -> ActingWrench | None:
        """Coordinates at an instant; None if nothing is left of them."""
        check_link(query.model, self.link)
        settings = query.settings
        before = (message for message in reversed(self._messages) if message.stamp <= query.time)
        message = next(before, self._messages[0])
        _check_age(
            query,
            message.stamp,
            f'The wrench on {self.link!r}',
            'Publish wrench_motion without gaps, or one message of zeros to end the wrench.',
        )
        stale = _time_since_timeout(query, message.stamp)
        if stale <= 0.0:
            seconds = (query.time - message.stamp) / NANOSECONDS
            values = continued(message.values, np.array([seconds]))[0]
        elif _is_over(stale, settings):
            return None
        else:
            at_timeout = continued(message.values, np.array([settings.timeout]))[0]
            values = _stale_values(at_timeout, stale, settings)
        return ActingWrench(message.expressed_in, message.acting, values, ORDERS - 1)


class _Vouched(NamedTuple):
    """Estimate as it was used at an instant."""

    stamp: int
    """Of the newest sample then [ns]."""
    time: int
    values: Array
    """Shape (3, 6); zero where nothing is vouched for."""


class _Contact(NamedTuple):
    """Measured wrench without the weight of the tool, as it was used at an instant."""

    time: int
    values: Array
    """Shape (3, 6), on the link; zero where nothing is known."""
    order: int
    """Highest derivative that the estimator vouched for."""


class Measured:
    """A stream of measured wrenches in one frame."""

    def __init__(self, frame_id: str, place: Mounting, estimator: Estimator) -> None:
        self.frame_id = frame_id
        self.topic = measured_topic(frame_id)
        self.link = place.link
        self.expressed_in = place.expressed_in
        self.stamp = 0
        self._sample = np.zeros(6)
        self._estimator = estimator
        self._factor = np.zeros((6, ORDERS, ORDERS))
        self._vouched: _Vouched | None = None
        self._contact: _Contact | None = None
        self._mounted: tuple[WrenchSettings, RobotModel, Mounting] | None = None

    def fits(self, model: RobotModel, settings: WrenchSettings) -> bool:
        """Return whether a model has a place for it, and the same one as before."""
        try:
            place = mounting(settings, model, self.frame_id)
        except WrenchError:
            return False
        return (place.link, place.expressed_in) == (self.link, self.expressed_in)

    def as_arrived(self) -> Wrench:
        """Wrench with the link and expression of the samples, but without their values."""
        return Wrench(self.link, np.zeros((ORDERS, 6)), self.expressed_in)

    def update(self, stamp: int, values: Array) -> None:
        """Take a sample."""
        self._estimator.update(stamp, values * _AS_FORCES)
        self.stamp, self._sample = stamp, values

    def restart(self, estimator: Estimator) -> None:
        """Estimate anew; until derivatives are vouched for, the samples stand."""
        self._estimator = estimator

    def at(self, query: Query) -> ActingWrench | None:
        """Coordinates at an instant; None if nothing is left of them."""
        settings = query.settings
        place = self._place(query)
        stale = _time_since_timeout(query, self.stamp)
        estimate = self._estimate(query.time) if stale <= 0.0 else None
        if estimate is None:
            # A motion of before the newest sample has its wrench as long as it can be estimated.
            _check_age(
                query,
                self.stamp,
                f'The measured wrench on {self.link!r}',
                'Publish wrench without gaps, or set wrench_stale_policy to hold or fade.',
            )
        deviations = None
        if stale <= 0.0:
            if estimate is not None:
                deviations = _on_link(self._deviations(len(estimate)), place)
            measured = self._measured(query.time, estimate, settings)
            values, order = self._contact_wrench(query, place, *measured)
        elif _is_over(stale, settings):
            return None
        else:
            at_timeout = self._contact_at_timeout(query, place)
            values = _stale_values(at_timeout.values, stale, settings)
            order = at_timeout.order
        return ActingWrench(place.expressed_in, settings.acting, values, order, deviations)

    def _place(self, query: Query) -> Mounting:
        known = self._mounted
        if known is None or known[0] is not query.settings or known[1] is not query.model:
            self._contact = None
            place = mounting(query.settings, query.model, self.frame_id)
            self._mounted = known = (query.settings, query.model, place)
        return known[2]

    def _estimate(self, time: int) -> Array | None:
        """Values with the derivatives that the estimator vouches for, shape (K, 6)."""
        estimate = self._estimator.at(time)
        if estimate is None:
            return None
        self._factor = estimate.factor
        return np.asarray(estimate.motion, dtype=np.float64)[:ORDERS] / _AS_FORCES

    def _deviations(self, orders: int) -> Array:
        """Deviations of the latest estimate, shape (6 orders, orders, 6)."""
        deviations = np.zeros((6, orders, orders, 6))  # component, column, derivative, component
        components = np.arange(6)
        columns = np.swapaxes(self._factor[:, :orders, :orders], 1, 2)
        deviations[components, :, :, components] = columns / _AS_FORCES[:, None, None]
        return deviations.reshape(6 * orders, orders, 6)

    def _measured(
        self, time: int, estimate: Array | None, settings: WrenchSettings
    ) -> tuple[Array, int]:
        """Values, shape (>= order + 1, 6), and the order up to which they may be relied on.

        Where nothing is vouched for any more, the last estimate since the newest sample comes to
        rest; without one, the sample stands. Of either, the derivatives are not to be published.
        """
        last = self._vouched
        current = last is not None and last.stamp == self.stamp and last.time <= time
        if estimate is not None:
            if current or last is None or last.stamp != self.stamp:
                self._vouched = _Vouched(self.stamp, time, _padded(estimate))
            return estimate, len(estimate) - 1
        if current:
            seconds = (time - last.time) / NANOSECONDS
            return brought_to_rest(last.values, seconds, settings.fade_time, False), 0
        return self._sample[None], 0

    def _contact_wrench(
        self, query: Query, place: Mounting, measured: Array, order: int
    ) -> tuple[Array, int]:
        """Wrench on the link without the weight of the tool, and its highest valid order."""
        values = _on_link(measured, place)
        if query.settings.tool_mass > 0.0:
            values = values[: len(query.motion) - 2]
            values = values + _weight_correction(query, place, len(values))
            if self._contact is None or query.time >= self._contact.time:
                self._contact = _Contact(query.time, _padded(values), order)
        return values, order

    def _contact_at_timeout(self, query: Query, place: Mounting) -> _Contact:
        """Wrench from which the stale one goes on."""
        timeout = round(query.settings.timeout * NANOSECONDS)
        end = self.stamp + timeout
        last = self._contact
        if query.settings.tool_mass > 0.0 and last and self.stamp - timeout <= last.time <= end:
            # The weight at the time-out follows from the motion then, which is not known any
            # more; so the wrench that was used last goes on by its derivatives until then.
            seconds = (end - last.time) / NANOSECONDS
            return last._replace(time=end, values=continued(last.values, np.array([seconds]))[0])
        measured, order = self._measured(end, self._estimate(end), query.settings)
        at_timeout = _Contact(end, _padded(_on_link(measured, place)), order)
        if query.settings.tool_mass > 0.0:
            # No motion has used it: the link is taken to have rested where it is now.
            at_timeout.values[0] += _weight_correction(query, place, 1)[0]
            self._contact = at_timeout
        return at_timeout


def measured_topic(frame_id: str) -> str:
    """Name of a source of measured wrenches: topic and frame."""
    return f'wrench (frame_id {frame_id!r})'


def _on_link(measured: Array, place: Mounting) -> Array:
    return measured if place.frame is None else wrench_from_frame(measured, place.frame)


def _weight_correction(query: Query, place: Mounting, orders: int) -> Array:
    """Wrench to add to the measured one, shape (orders, 6).

    What the robot exerts on the tool at rest is minus its weight.
    """
    settings = query.settings
    pose, twist = forward_kinematics(query.model, query.motion[:orders], place.link)
    weight = tool_weight(
        pose,
        twist,
        query.model.gravity,
        settings.tool_mass,
        place.center_of_mass,
        place.expressed_in,
    )
    return weight if settings.acting == 'on_environment' else -weight


def _padded(values: Array) -> Array:
    padded = np.zeros((ORDERS, 6))
    padded[: len(values)] = values
    return padded


def _time_since_timeout(query: Query, stamp: int) -> float:
    """Seconds that a wrench has been stale for, not positive if it is not."""
    return (query.time - stamp) / NANOSECONDS - query.settings.timeout


def _check_age(query: Query, stamp: int, what: str, remedy: str) -> None:
    """Refuse a wrench that lies too far from the motion.

    Raises
    ------
    WrenchError
    """
    age, timeout = (query.time - stamp) / NANOSECONDS, query.settings.timeout
    if age < -timeout or (age > timeout and query.settings.stale_policy == 'stop'):
        raise WrenchError(
            f'{what} is {age:.3f} s away from the motion, more than wrench_timeout '
            f'({timeout} s); the output stops. {remedy}'
        )


def _is_over(stale: float, settings: WrenchSettings) -> bool:
    return settings.stale_policy == 'fade' and stale >= settings.fade_time


def _stale_values(at_timeout: Array, stale: float, settings: WrenchSettings) -> Array:
    to_zero = settings.stale_policy == 'fade'
    return brought_to_rest(at_timeout, stale, settings.fade_time, to_zero)
