"""Wrenches that act on the robot at the time of a motion; each link has one source at a time.

They are given with derivatives, or measured in a frame of the robot, estimated there and brought
to the link when a motion needs them. Without news they end the output, are held or fade out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.dynamics.wrenches import Wrench, wrench_from_frame
from hodyn_ros.errors import WrenchError
from hodyn_ros.lie import se3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.streams.signals import ORDERS, Recent, brought_to_rest, continued
from hodyn_ros.streams.timeline import NANOSECONDS, check_age
from hodyn_ros.trajectory.estimator import DerivativeEstimator
from hodyn_ros.typing import Array

DELAY = 0.1  # s, by which estimates lie behind the latest measurement
FADE_TIME = 0.5  # s, in which a stale wrench comes to rest
SMALLEST_FORCE = 1.0  # N, of an oscillation whose derivatives are of interest
LEVER = 0.1  # m

# What an estimator sees: moments as forces at the end of a lever, so that one size [N] says for
# all six components what is small.
_AS_FORCES = np.array([1.0 / LEVER] * 3 + [1.0] * 3)

Given = tuple[str, str, str, Array]
"""Link, expression, direction of action and values (3, 6) with their derivatives."""


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


def mounting(settings: Any, model: RobotModel, frame_id: str) -> Mounting:
    """Link on which a measured wrench acts, and how its coordinates get there.

    Parameters
    ----------
    settings : object
        With `link` and `acting`.
    model : RobotModel
    frame_id : str
        Link in whose frame the values come.

    Returns
    -------
    Mounting

    Raises
    ------
    WrenchError
        If a link is unknown or at rest, or the frame moves relative to the link.
    """
    check_link(model, frame_id)
    check_target(settings, model)
    link = settings.link or frame_id
    body, link_pose = model.link(link)
    if body == BASE:
        named = 'wrench.link' if settings.link else 'frame_id'
        raise WrenchError(
            f'Wrench on {link!r}: the link that {named} names is at rest, so nothing there needs '
            'a joint effort. Set wrench.link to the link on which the wrench acts.'
        )
    frame_body, frame_pose = model.link(frame_id)
    if frame_body == body:
        frame = np.eye(4) if frame_id == link else se3.inverse(link_pose) @ frame_pose
        expressed_in = 'body'
    elif frame_body == BASE:
        expressed_in, frame = 'spatial', frame_pose
    else:
        same = [name for name, place in model.links.items() if place.body == body]
        raise WrenchError(
            f'Wrench on {link!r}: frame_id is {frame_id!r}, which moves relative to it; expected '
            f'one of {listed(same)}, which are rigidly connected to it, or the base link '
            f'{model.base_link!r}.'
        )
    place = None if np.array_equal(frame, np.eye(4)) else frame
    return Mounting(link, expressed_in, place, settings.acting)


def check_target(settings: Any, model: RobotModel) -> None:
    """Refusal of a link of the settings, on which measured wrenches act, that the model lacks.

    Parameters
    ----------
    settings : object
        With `link`.
    model : RobotModel

    Raises
    ------
    WrenchError
        If the model lacks it.
    """
    if settings.link and settings.link not in model.links:
        raise WrenchError(
            f'Parameter wrench.link is {settings.link!r}, the links are {listed(model.links)}.'
        )


def check_link(model: RobotModel, link: str) -> None:
    """Refusal of a frame_id that is not a link.

    Parameters
    ----------
    model : RobotModel
    link : str

    Raises
    ------
    WrenchError
        If the model lacks it.
    """
    if link not in model.links:
        raise WrenchError(
            f'Wrench on an unknown link: frame_id is {link!r}, the links are '
            f'{listed(model.links)}.'
        )


class WrenchesAt(NamedTuple):
    """Wrenches at the instant of a motion.

    Attributes
    ----------
    wrenches : list of Wrench
        With `order + 1` orders: for the motion up to derivative `order + 2`.
    order : int
        Highest derivative of the efforts that the motion and the wrenches permit.
    deviations : list of ndarray or None
        Independent ones (S, order + 1, 6), one sigma; None: exact.
    """

    wrenches: list[Wrench]
    order: int
    deviations: list[Array | None]


NO_WRENCHES = WrenchesAt([], ORDERS - 1, [])


class GivenWrench(Recent[Acting]):
    """Messages of a wrench that comes with its derivatives."""

    topic = 'wrench_motion'

    @property
    def stamp(self) -> int:
        """Stamp of the newest message [ns]."""
        return self[-1][0]

    @property
    def expressed_in(self) -> str:
        """Expression of the newest message."""
        return self[-1][1].expressed_in

    def since(self, time: int) -> int:
        """Stamp of the message that says what acts at a time [ns]."""
        return self.before(time)[0]

    def knows(self, time: int) -> bool:
        """Whether it is known at a time long before its first message: never."""
        return False

    def at(self, time: int) -> Acting:
        """Coordinates at a time [ns]: those of the message before, by their derivatives."""
        stamp, acting = self.before(time)
        age = np.array([(time - stamp) / NANOSECONDS])
        return acting._replace(values=continued(acting.values, age)[0])


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
    stamp : int
        Stamp of the newest sample [ns].
    """

    def __init__(
        self, frame_id: str, place: Mounting, estimator: DerivativeEstimator
    ) -> None:
        self.frame_id: str = frame_id
        self.topic: str = measured_topic(frame_id)
        self.stamp: int = 0
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
        self.place = place
        self._estimator = estimator or self._estimator
        self._used: tuple[int, Array] | None = None  # since the newest sample

    @property
    def expressed_in(self) -> str:
        """Expression of its wrench."""
        return self.place.expressed_in

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
        self.stamp, self._sample, self._used = stamp, values, None

    def since(self, time: int) -> int:
        """Stamp of the newest sample [ns]."""
        return self.stamp

    def knows(self, time: int) -> bool:
        """Whether the wrench can be estimated at a time [ns], however long ago."""
        return self._estimator.at(time) is not None

    def at(self, time: int) -> Acting:
        """Coordinates on the link at a time [ns], as they are estimated.

        Where nothing is known any more, the wrench that was used last since the newest sample
        comes to rest; without one, the sample stands. Neither has derivatives to publish.
        """
        estimate, used, place = self._estimator.at(time), self._used, self.place
        is_next, deviations = used is None or used[0] <= time, None
        if estimate is not None:
            values = np.asarray(estimate.motion, dtype=np.float64)[:ORDERS] / _AS_FORCES
            deviations = self._on_link(estimate.deviations(len(values)) / _AS_FORCES)
        elif used is not None and is_next:
            seconds = (time - used[0]) / NANOSECONDS
            rested = brought_to_rest(used[1], seconds, FADE_TIME, False)
            return Acting(place.expressed_in, place.acting, rested, 0)
        else:
            values = self._sample[None]
        values = self._on_link(values)
        if estimate is not None and is_next:
            self._used = time, _padded(values)
        order = len(values) - 1
        return Acting(place.expressed_in, place.acting, values, order, deviations)

    def _on_link(self, measured: Array) -> Array:
        frame = self.place.frame
        return measured if frame is None else wrench_from_frame(measured, frame)


def measured_topic(frame_id: str) -> str:
    """Name of a source of measured wrenches: topic and frame."""
    return f'wrench (frame_id {frame_id!r})'


def _padded(values: Array) -> Array:
    return np.pad(values, ((0, ORDERS - len(values)), (0, 0)))


class Wrenches:
    """The latest wrench on every link; of the thread of the executor.

    A link has one source at a time: the input `wrench_motion`, or `wrench` with one frame_id. As
    long as its last message is not older than the time-out, others are refused. Estimators see
    forces: the moments divided by `LEVER`.

    Parameters
    ----------
    settings : object
        Parameters of a node, with `wrench` and `estimator`.
    make_estimator : callable
        Makes an estimator with the options of `DerivativeEstimator`.

    Attributes
    ----------
    sources : dict of str to GivenWrench or MeasuredWrench
        By the links on which they act.
    """

    def __init__(
        self,
        settings: Any,
        make_estimator: Callable[..., DerivativeEstimator] = DerivativeEstimator,
    ) -> None:
        self._settings, self._options = settings.wrench, _estimator_options(settings)
        self._make_estimator = make_estimator
        self._model: RobotModel | None = None
        self.sources: dict[str, GivenWrench | MeasuredWrench] = {}
        # Also of links whose wrench has ended: what was sent before that must not revive it.
        self._newest: dict[str, int] = {}

    def use(self, settings: Any, model: RobotModel) -> list[str]:
        """Follow other settings or another model.

        Parameters
        ----------
        settings : object
        Parameters of a node, with `wrench` and `estimator`.
        model : RobotModel

        Returns
        -------
        list of str
            Links whose wrench has no place any more and is dropped.
        """
        options, wrench, gone = _estimator_options(settings), settings.wrench, []
        if (options, wrench) == (self._options, self._settings) and model is self._model:
            return []
        for link, source in list(self.sources.items()):
            try:
                check_link(model, link)
                if isinstance(source, MeasuredWrench):
                    place = mounting(wrench, model, source.frame_id)
                    if place[:2] != source.place[:2]:
                        raise WrenchError('It is measured elsewhere, or in other axes.')
                    is_alike = options == self._options
                    made = None if is_alike else self._make_estimator(**options)
                    source.mount(place, made)
            except WrenchError:
                gone.append(link)
                del self.sources[link]
        self._settings, self._options, self._model = wrench, options, model
        return gone

    def take_given(self, given: Given, time: int, model: RobotModel, now_ns: int) -> bool:
        """Take a wrench with its derivatives; one that is zero with them ends the wrench.

        Parameters
        ----------
        given : tuple
            Link, expression, direction of action and values (3, 6).
        time : int
            Its stamp [ns]; zero means now.
        model : RobotModel
        now_ns : int
            [ns]

        Returns
        -------
        bool
            Whether no newer one came before it; otherwise it is dropped.

        Raises
        ------
        StaleError, WrenchError
            If it is of the future or cannot be used.
        """
        link, expressed_in, acting, values = given
        check_link(model, link)
        stamp = _checked_stamp(time, link, now_ns, self._settings.timeout)
        if stamp == now_ns:  # whatever a stamp of before that was ahead
            stamp = max(stamp, self._newest.get(link, stamp))
        if not self._is_next(link, GivenWrench.topic, stamp, now_ns, repeated=True):
            return False
        if not values.any():
            self.sources.pop(link, None)
            return True
        source = self.sources.get(link)
        if not isinstance(source, GivenWrench):
            source = self.sources[link] = GivenWrench()
        return source.take(stamp, Acting(expressed_in, acting, values, ORDERS - 1))

    def take_measured(
        self, frame_id: str, values: Array, time: int, model: RobotModel, now_ns: int
    ) -> bool:
        """Take a sample of a measured wrench; zeros are a sample like others.

        Parameters
        ----------
        frame_id : str
            A link; with the parameter wrench.link a link on the same body, or one at rest, such as
            the base link.
        values : ndarray, shape (6,)
            (moment, force) in that frame [N m], [N].
        time : int
            Its stamp [ns]; zero means now.
        model : RobotModel
        now_ns : int
            [ns]

        Returns
        -------
        bool
            As of `take_given`.

        Raises
        ------
        StaleError, WrenchError
            If it is of the future or cannot be used.
        """
        place = mounting(self._settings, model, frame_id)
        link, topic = place.link, measured_topic(frame_id)
        if not np.isfinite(values).all():
            raise WrenchError(f'Wrench on {link!r}: all values must be finite.')
        stamp = _checked_stamp(time, link, now_ns, self._settings.timeout)
        if not self._is_next(link, topic, stamp, now_ns, repeated=False):
            return False
        source = self.sources.get(link)
        if not (
            isinstance(source, MeasuredWrench)
            and source.topic == topic
            and source.expressed_in == place.expressed_in
        ):
            estimator = self._make_estimator(**self._options)
            source = self.sources[link] = MeasuredWrench(frame_id, place, estimator)
        source.update(stamp, values)
        return True

    def _is_next(self, link: str, topic: str, stamp: int, now: int, repeated: bool) -> bool:
        """Whether a message is newer than those before, or may be repeated; others are counted.

        Parameters
        ----------
        link : str
        topic : str
            Name of its source.
        stamp, now : int
            [ns]
        repeated : bool
            Whether it may have the stamp of the one before.

        Raises
        ------
        WrenchError
            If another source acts on the link.
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
            return False
        self._newest[link] = stamp
        return True

    def clear(self) -> None:
        """Forget all wrenches, as after a jump of time."""
        self.sources.clear()
        self._newest.clear()

    @property
    def axes(self) -> dict[str, str]:
        """Expressions of the wrenches that act, by their links."""
        return {link: source.expressed_in for link, source in self.sources.items()}

    def latest(self) -> list[Wrench]:
        """Wrenches with the links and expressions in which they will act, for preparing code."""
        none = np.zeros((ORDERS, 6))
        return [Wrench(link, none, axes) for link, axes in sorted(self.axes.items())]

    def at(self, time_ns: int, motion: Array, model: RobotModel) -> WrenchesAt:
        """Wrenches at the instant of a motion.

        Parameters
        ----------
        time_ns : int
            [ns]
        motion : ndarray, shape (K, n), K >= 3
        model : RobotModel

        Returns
        -------
        WrenchesAt
            Up to the order K - 3 or less.

        Raises
        ------
        WrenchError
            If one is stale and the policy is to stop, or too far ahead.
        """
        acting = []
        # In the same order every time, since each order has its own compiled code.
        for link in sorted(self.sources):
            wrench = self._acting(link, time_ns)
            if wrench is not None:
                acting.append((link, wrench))
        order = min([len(motion) - 3, *(wrench.order for _, wrench in acting)])
        result = WrenchesAt([], order, [])
        for link, item in acting:
            values, deviations = item.values[: order + 1], item.deviations
            result.wrenches.append(Wrench(link, values, item.expressed_in, item.acting))
            result.deviations.append(
                None if deviations is None else deviations[:, : order + 1]
            )
        return result

    def _acting(self, link: str, time: int) -> Acting | None:
        """Wrench on a link at a time [ns]; None if nothing is left of it."""
        source = self.sources[link]
        timeout, policy = self._settings.timeout, self._settings.stale_policy
        stamp = source.since(time)
        age = (time - stamp) / NANOSECONDS
        late = age - timeout
        is_early = age < -timeout and not source.knows(time)
        if is_early or (late > 0.0 and policy == 'stop'):
            raise WrenchError(
                f'The wrench on {link!r} is {age:.3f} s away from the motion, more than '
                f'wrench_timeout ({timeout} s); the output stops. Publish it without gaps, end it '
                'by a wrench_motion of zeros, or set wrench_stale_policy to hold or fade.'
            )
        if late <= 0.0:
            return source.at(time)
        if policy == 'fade' and late >= FADE_TIME:
            return None
        found = source.at(stamp + round(timeout * NANOSECONDS))
        values = brought_to_rest(_padded(found.values), late, FADE_TIME, policy == 'fade')
        return found._replace(values=values, deviations=None)

    def report(self, now_ns: int) -> dict[str, str]:
        """State of the wrench on every link in words, for diagnostics.

        Parameters
        ----------
        now_ns : int
            [ns]

        Returns
        -------
        dict of str to str
            By link.
        """
        states, settings = {}, self._settings
        for link in sorted(self.sources):
            source = self.sources[link]
            age = (now_ns - source.stamp) / NANOSECONDS
            states[link] = f'{source.topic}, {age:.3f} s old'
            if age > settings.timeout:
                is_over = age >= settings.timeout + FADE_TIME
                faded = ', faded out' if is_over else ', fading out'
                words = {'stop': ', the output stops', 'hold': ', held', 'fade': faded}
                states[link] += words[settings.stale_policy]
        return states


def _checked_stamp(time: int, link: str, now: int, timeout: float) -> int:
    stamp = time or now
    if stamp > now:
        check_age(f'Wrench on {link!r}', stamp, now, timeout, 'wrench_timeout')
    return stamp


def _estimator_options(settings: Any) -> dict[str, Any]:
    sensor, joints = settings.wrench, settings.estimator
    return {
        'n': 6,
        'highest_derivative': ORDERS - 1,
        # Motions that are estimated lag, and need the wrench of their own instant.
        'delay': max(DELAY, joints.delay) if joints.enabled else DELAY,
        'max_gap': sensor.timeout,
        'smallest_motion': SMALLEST_FORCE,
    }
