"""Wrenches that act on the robot at the instant of a motion, given with derivatives or measured.

Measured ones are estimated in the frame of the sensor, brought to the link when a motion needs
them, and freed of the weight of the tool. Each link has one source at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import WrenchMotion
from numpy.typing import NDArray
from std_msgs.msg import Header

from hodyn_ros.dynamics.wrenches import (
    ORDERS,
    Wrench,
    brought_to_rest,
    continued,
    tool_weight,
    wrench_from_frame,
)
from hodyn_ros.errors import MotionError, WrenchError
from hodyn_ros.kinematics.forward import forward_kinematics
from hodyn_ros.lie import se3
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.names import listed
from hodyn_ros.ros.conversions import (
    NANOSECONDS,
    moment_force,
    nanoseconds,
    wrench_from_message,
)
from hodyn_ros.trajectory.estimator import DerivativeEstimator, Estimate

if TYPE_CHECKING:
    from hodyn_ros.ros.node_settings import NodeSettings, WrenchSettings

Array = NDArray[np.float64]

_KEPT = NANOSECONDS  # for how long messages are kept
_MOST_KEPT = 1000

_SMALLEST_FORCE = 1.0  # N, of an oscillation whose derivatives are of interest
LEVER = 0.1  # m
# What an estimator sees: moments as forces at the end of a lever, so that one size [N] says for
# all six components what is small.
_AS_FORCES = np.array([1.0 / LEVER] * 3 + [1.0] * 3)


class Mounting(NamedTuple):
    """How the coordinates in a message become those of a wrench on a link."""

    link: str  # on which the wrench acts
    expressed_in: str  # body or spatial
    frame: Array | None  # its pose in the link (in the base), in which the values come; None: same
    center_of_mass: Array  # of the tool, in the link frame [m]


def mounting(settings: WrenchSettings, model: RobotModel, frame_id: str) -> Mounting:
    """Link on which a measured wrench acts and how its coordinates get there, or WrenchError."""
    check_link(model, frame_id)
    link = settings.link or frame_id
    if link not in model.links:
        raise WrenchError(
            f'Parameter wrench.link is {link!r}, the links are {listed(model.links)}.'
        )
    body, link_pose = model.link(link)
    if body == BASE:
        named = 'wrench.link' if settings.link else 'frame_id'
        raise WrenchError(
            f'Wrench on {link!r}: the link that {named} names is at rest, so nothing there needs '
            'a joint effort. Set wrench.link to the link on which the wrench acts.'
        )
    frame_body, frame_pose = model.link(frame_id)
    sensor = settings.sensor_pose
    if frame_body == body:
        if frame_id != link:
            sensor = se3.inverse(link_pose) @ frame_pose @ sensor
        expressed_in, frame = 'body', sensor
    elif frame_body == BASE:
        expressed_in, frame = 'spatial', frame_pose
    else:
        same = [name for name, place in model.links.items() if place.body == body]
        raise WrenchError(
            f'Wrench on {link!r}: frame_id is {frame_id!r}, which moves relative to it; expected '
            f'one of {listed(same)}, which are rigidly connected to it, or the base link '
            f'{model.base_link!r}.'
        )
    center = sensor[:3, :3] @ settings.tool_center_of_mass + sensor[:3, 3]
    return Mounting(
        link, expressed_in, None if np.array_equal(frame, np.eye(4)) else frame, center
    )


def check_link(model: RobotModel, link: str) -> None:
    """Refuse a frame_id that is not a link."""
    if link not in model.links:
        raise WrenchError(
            f'Wrench on an unknown link: frame_id is {link!r}, the links are '
            f'{listed(model.links)}.'
        )


class _Query(NamedTuple):
    """What a wrench is wanted for."""

    time: int  # [ns]
    motion: Array  # (K, n)
    model: RobotModel
    settings: WrenchSettings


class _Acting(NamedTuple):
    """Coordinates of a wrench at an instant."""

    expressed_in: str
    acting: str
    values: Array  # at least as many orders as the motion and `order` permit
    order: int  # highest derivative that may be relied on
    deviations: Array | None = None  # (S, K, 6), see `WrenchesAt`; None if not known


def _staleness(query: _Query, stamp: int, link: str, is_known: bool = False) -> float | None:
    """Seconds since the time-out, None if nothing is left; refuses what is too far away."""
    age, settings = (query.time - stamp) / NANOSECONDS, query.settings
    timeout = settings.timeout
    if (age < -timeout and not is_known) or (age > timeout and settings.stale_policy == 'stop'):
        raise WrenchError(
            f'The wrench on {link!r} is {age:.3f} s away from the motion, more than '
            f'wrench_timeout ({timeout} s); the output stops. Publish it without gaps, end it '
            'by a wrench_motion of zeros, or set wrench_stale_policy to hold or fade.'
        )
    is_over = settings.stale_policy == 'fade' and age - timeout >= settings.fade_time
    return None if is_over else age - timeout


def _stale(at_timeout: Array, stale: float, settings: WrenchSettings) -> Array:
    """Values (3, 6) that a wrench has some time after the time-out."""
    return brought_to_rest(at_timeout, stale, settings.fade_time, settings.stale_policy == 'fade')


class GivenWrench:
    """A wrench that comes with its derivatives; messages are kept for motions that lag."""

    topic = 'wrench_motion'

    def __init__(self, link: str) -> None:
        self.link = link
        self._messages: deque[tuple[int, _Acting]] = deque(maxlen=_MOST_KEPT)

    def update(self, stamp: int, acting: _Acting) -> None:
        """Take a message; their stamps do not decrease."""
        self._messages.append((stamp, acting))
        while len(self._messages) > 1 and stamp - self._messages[1][0] > _KEPT:
            self._messages.popleft()

    @property
    def stamp(self) -> int:
        """Of the newest message [ns]."""
        return self._messages[-1][0]

    @property
    def expressed_in(self) -> str:
        """Of the newest message."""
        return self._messages[-1][1].expressed_in

    def at(self, query: _Query) -> _Acting | None:
        """Coordinates at an instant; None if nothing is left of them."""
        before = (item for item in reversed(self._messages) if item[0] <= query.time)
        stamp, acting = next(before, self._messages[0])
        stale = _staleness(query, stamp, self.link)
        if stale is None:
            return None
        age = min((query.time - stamp) / NANOSECONDS, query.settings.timeout)
        values = continued(acting.values, np.array([age]))[0]
        if stale > 0.0:
            values = _stale(values, stale, query.settings)
        return acting._replace(values=values)


class _Last(NamedTuple):
    """Contact wrench as it was used last."""

    stamp: int  # of the newest sample then [ns]
    time: int
    values: Array  # (3, 6), on the link; zero where nothing is known
    order: int  # highest derivative that the estimator knew

    def rested(self, time: int, settings: WrenchSettings) -> Array:
        """Values (3, 6) at a later time [ns], as it has been coming to rest."""
        seconds = (time - self.time) / NANOSECONDS
        return brought_to_rest(self.values, seconds, settings.fade_time, False)


class MeasuredWrench:
    """A stream of measured wrenches in one frame."""

    def __init__(self, frame_id: str, place: Mounting, estimator: DerivativeEstimator) -> None:
        self.frame_id, self.topic = frame_id, measured_topic(frame_id)
        self.expressed_in = place.expressed_in
        self.stamp = 0
        self._sample = np.zeros(6)
        self._estimator = estimator
        self.mount(place)

    def mount(self, place: Mounting, estimator: DerivativeEstimator | None = None) -> None:
        """Have the coordinates come from another place, or be estimated anew, from now on."""
        self._place = place
        self._last: _Last | None = None
        self._estimator = estimator or self._estimator

    def update(self, stamp: int, values: Array) -> None:
        """Take a sample."""
        self._estimator.update(stamp, values * _AS_FORCES)
        self.stamp, self._sample = stamp, values

    def at(self, query: _Query) -> _Acting | None:
        """Coordinates at an instant; None if nothing is left of them."""
        settings, place = query.settings, self._place
        is_stale = (query.time - self.stamp) / NANOSECONDS - settings.timeout > 0.0
        # A motion of before the newest sample has its wrench as long as it can be estimated.
        estimate = None if is_stale else self._estimator.at(query.time)
        stale = _staleness(query, self.stamp, place.link, estimate is not None)
        if stale is None:
            return None
        deviations = None if estimate is None else self._on_link(_deviations(estimate))
        if is_stale:
            at_timeout, order = self._contact_at_timeout(query)
            values = _stale(at_timeout, stale, settings)
        else:
            values, order = self._contact(query, query.time, estimate)
        return _Acting(place.expressed_in, settings.acting, values, order, deviations)

    def _contact(self, query: _Query, time: int, estimate: Estimate | None) -> tuple[Array, int]:
        """Wrench on the link without the weight of the tool, and its highest valid order.

        Where nothing is known any more, the one that was used last since the newest sample comes
        to rest; without one, the sample stands. Neither has derivatives to publish.
        """
        last = self._last
        if last is not None and last.stamp != self.stamp:
            last = None
        if estimate is not None:
            measured = np.asarray(estimate.motion, dtype=np.float64)[:ORDERS] / _AS_FORCES
        elif last is not None and last.time <= time:
            return last.rested(time, query.settings), 0
        else:
            measured = self._sample[None]
        order, values = len(measured) - 1, self._on_link(measured)
        if query.settings.tool_mass > 0.0:
            values = values[: len(query.motion) - 2]
            values = values + self._weight_correction(query, len(values))
        if estimate is not None and (last is None or last.time <= time):
            self._last = _Last(self.stamp, time, _padded(values), order)
        return values, order

    def _contact_at_timeout(self, query: _Query) -> tuple[Array, int]:
        """Wrench (3, 6) from which the stale one goes on, and its highest valid order."""
        end = self.stamp + round(query.settings.timeout * NANOSECONDS)
        estimate, last = self._estimator.at(end), self._last
        has_tool = query.settings.tool_mass > 0.0
        if has_tool and last is not None and abs(last.time - self.stamp) <= end - self.stamp:
            # The weight at the time-out follows from the motion then, which is not known any
            # more; so the wrench that was used last goes on until then.
            if estimate is None and last.time < end:
                return last.rested(end, query.settings), 0
            seconds = (end - last.time) / NANOSECONDS
            return continued(last.values, np.array([seconds]))[0], last.order
        values, order = self._contact(query, end, estimate)
        values = _padded(values)
        if has_tool:  # no motion has used it before: the link is taken to have been where it is
            self._last = _Last(self.stamp, end, values, order)
        return values, order

    def _on_link(self, measured: Array) -> Array:
        frame = self._place.frame
        return measured if frame is None else wrench_from_frame(measured, frame)

    def _weight_correction(self, query: _Query, orders: int) -> Array:
        """Wrench (orders, 6) to add to the measured one, of which the weight is a part."""
        settings, place = query.settings, self._place
        pose, twist = forward_kinematics(query.model, query.motion[:orders], place.link)
        mass, gravity = settings.tool_mass, query.model.gravity
        weight = tool_weight(pose, twist, gravity, mass, place.center_of_mass, place.expressed_in)
        return weight if settings.acting == 'on_environment' else -weight


def measured_topic(frame_id: str) -> str:
    """Name of a source of measured wrenches: topic and frame."""
    return f'wrench (frame_id {frame_id!r})'


def _padded(values: Array) -> Array:
    padded = np.zeros((ORDERS, 6))
    padded[: len(values)] = values
    return padded


def _deviations(estimate: Estimate) -> Array:
    """Deviations of an estimate, shape (6 orders, orders, 6)."""
    orders = min(len(estimate.motion), ORDERS)
    deviations = np.zeros((6, orders, orders, 6))  # component, column, derivative, component
    components = np.arange(6)
    columns = np.swapaxes(estimate.factor[:, :orders, :orders], 1, 2)
    deviations[components, :, :, components] = columns / _AS_FORCES[:, None, None]
    return deviations.reshape(6 * orders, orders, 6)


class WrenchesAt(NamedTuple):
    """Wrenches at the instant of a motion."""

    wrenches: list[Wrench]
    """With `order + 1` orders, hence for the motion up to its derivative `order + 2`."""
    order: int
    """Highest derivative of the efforts that the motion and the wrenches permit."""
    deviations: list[Array | None]
    """Independent deviations of one standard deviation, shape (S, order + 1, 6); None if exact."""


class Wrenches:
    """The latest wrench on every link; of the thread of the executor.

    A link has one source at a time: the input `wrench_motion`, or `wrench` with one frame_id. As
    long as its last message is not older than the time-out, others are refused. Estimators see
    forces: the moments divided by `LEVER`.
    """

    def __init__(
        self,
        settings: NodeSettings,
        make_estimator: Callable[..., DerivativeEstimator] = DerivativeEstimator,
    ) -> None:
        self._settings, self._options = settings.wrench, _estimator_options(settings)
        self._make_estimator = make_estimator
        self._model: RobotModel | None = None
        self.sources: dict[str, GivenWrench | MeasuredWrench] = {}
        """Where the wrench on every link comes from."""
        # Also of links whose wrench has ended: what was sent before that must not revive it.
        self._newest: dict[str, int] = {}
        self.dropped = 0
        """Number of messages left out since they came after newer ones, or twice."""

    def use(self, settings: NodeSettings, model: RobotModel) -> list[str]:
        """Follow other settings or another model; return the links whose wrench has no place."""
        options, wrench, gone = _estimator_options(settings), settings.wrench, []
        if (options, wrench) == (self._options, self._settings) and model is self._model:
            return []
        for link, source in list(self.sources.items()):
            try:
                if isinstance(source, GivenWrench):
                    check_link(model, link)
                    continue
                place = mounting(wrench, model, source.frame_id)
                if (place.link, place.expressed_in) != (link, source.expressed_in):
                    raise WrenchError('It is measured elsewhere, or in other axes.')
                is_alike = options == self._options
                source.mount(place, None if is_alike else self._make_estimator(**options))
            except WrenchError:
                gone.append(link)
                del self.sources[link]
        self._newest = {link: stamp for link, stamp in self._newest.items() if link in model.links}
        self._settings, self._options, self._model = wrench, options, model
        return gone

    def take_motion(self, message: WrenchMotion, model: RobotModel, now_ns: int) -> bool:
        """Take a wrench with its derivatives; one that is zero with them ends the wrench.

        A stamp of zero means now [ns]. Returns whether other links or expressions than before are
        concerned, see `latest`. Raises WrenchError if it cannot be used.
        """
        link, expressed_in, acting, values = wrench_from_message(message)
        check_link(model, link)
        stamp = _checked_stamp(message.header, link, now_ns, self._settings.timeout)
        if stamp == now_ns:  # whatever a stamp of before that was ahead
            stamp = max(stamp, self._newest.get(link, stamp))
        if not self._is_next(link, GivenWrench.topic, stamp, now_ns, repeated=True):
            return False
        if not values.any():
            return self.sources.pop(link, None) is not None
        source = self.sources.get(link)
        known = None if source is None else source.expressed_in
        if not isinstance(source, GivenWrench):
            source = self.sources[link] = GivenWrench(link)
        source.update(stamp, _Acting(expressed_in, acting, values, ORDERS - 1))
        return known != expressed_in

    def take_stamped(self, message: WrenchStamped, model: RobotModel, now_ns: int) -> bool:
        """Take a sample of a measured wrench; zeros are a sample like others.

        frame_id is a link; with the parameter wrench.link a link on the same body, or one at rest,
        such as the base link. All else is as for `take_motion`.
        """
        frame_id = message.header.frame_id
        values = np.array(moment_force(message.wrench))
        place = mounting(self._settings, model, frame_id)
        link, topic = place.link, measured_topic(frame_id)
        if not np.isfinite(values).all():
            raise WrenchError(f'Wrench on {link!r}: all values must be finite.')
        stamp = _checked_stamp(message.header, link, now_ns, self._settings.timeout)
        if not self._is_next(link, topic, stamp, now_ns, repeated=False):
            return False
        source = self.sources.get(link)
        known = None if source is None else source.expressed_in
        is_same = known == place.expressed_in
        if not (isinstance(source, MeasuredWrench) and source.topic == topic and is_same):
            estimator = self._make_estimator(**self._options)
            source = self.sources[link] = MeasuredWrench(frame_id, place, estimator)
        source.update(stamp, values)
        return not is_same

    def _is_next(self, link: str, topic: str, stamp: int, now: int, repeated: bool) -> bool:
        """Return whether a message is newer than those before, or repeated where that is allowed.

        Others are counted. A second source on a link is refused as long as the first is alive.
        """
        present, timeout = self.sources.get(link), self._settings.timeout
        if present is not None and present.topic != topic:
            age = (now - present.stamp) / NANOSECONDS
            if age <= timeout:
                raise WrenchError(
                    f'Wrench on {link!r} from {topic}: {present.topic} acts on the same link, its '
                    f'last message is {age:.3f} s old. Use one of them; another one is taken when '
                    f'the last message is older than wrench_timeout ({timeout} s).'
                )
        newest = self._newest.get(link)
        if newest is not None and (stamp < newest or (stamp == newest and not repeated)):
            self.dropped += 1
            return False
        self._newest[link] = stamp
        return True

    def clear(self) -> None:
        """Forget all wrenches, as after a jump of time."""
        self.sources.clear()
        self._newest.clear()

    def latest(self) -> list[Wrench]:
        """Wrenches with the links and expressions in which they will act, for preparing code."""
        none, sources = np.zeros((ORDERS, 6)), self.sources
        return [Wrench(link, none, sources[link].expressed_in) for link in sorted(sources)]

    def at(self, time_ns: int, motion: Array, model: RobotModel) -> WrenchesAt:
        """Wrenches at the instant [ns] of a motion (K, n), K >= 3, up to the order K - 3 or less.

        Raises WrenchError if one is stale and the policy is to stop, or too far ahead.
        """
        acting = []
        query = _Query(time_ns, motion, model, self._settings)
        # In the same order every time, since each order has its own compiled code.
        for link in sorted(self.sources):
            wrench = self.sources[link].at(query)
            if wrench is not None:
                acting.append((link, wrench))
        order = min([len(motion) - 3, *(wrench.order for _, wrench in acting)])
        result = WrenchesAt([], order, [])
        for link, item in acting:
            values, deviations = item.values[: order + 1], item.deviations
            result.wrenches.append(Wrench(link, values, item.expressed_in, item.acting))
            result.deviations.append(None if deviations is None else deviations[:, : order + 1])
        return result

    def report(self, now_ns: int) -> dict[str, str]:
        """State of the wrench on every link in words, for diagnostics."""
        states, settings = {}, self._settings
        for link in sorted(self.sources):
            source = self.sources[link]
            age = (now_ns - source.stamp) / NANOSECONDS
            states[link] = f'{source.topic}, {age:.3f} s old'
            if age > settings.timeout:
                is_over = age >= settings.timeout + settings.fade_time
                faded = ', faded out' if is_over else ', fading out'
                words = {'stop': ', the output stops', 'hold': ', held', 'fade': faded}
                states[link] += words[settings.stale_policy]
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


def _estimator_options(settings: NodeSettings) -> dict[str, Any]:
    sensor, joints = settings.wrench, settings.estimator
    return {
        'n': 6,
        'highest_derivative': ORDERS - 1,
        # Motions that are estimated lag, and need the wrench of their own instant.
        'delay': max(sensor.delay, joints.delay) if joints.enabled else sensor.delay,
        'noise': sensor.noise or None,
        'bandwidth': sensor.bandwidth or None,
        'max_gap': sensor.timeout,
        'smallest_motion': _SMALLEST_FORCE,
    }
