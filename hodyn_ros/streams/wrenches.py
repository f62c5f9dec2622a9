"""Wrenches that act on the robot at the time of a motion; each link has one source at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import MotionError, WrenchError
from hodyn_ros.lie import se3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.streams.measured import EstimatorOptions
from hodyn_ros.streams.signals import ORDERS
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.streams.wrench_sources import (
    FADE_TIME,
    SMALLEST_FORCE,
    Acting,
    Expiry,
    GivenWrench,
    MeasuredWrench,
    Mounting,
    Query,
    measured_topic,
)
from hodyn_ros.trajectory.estimator import DerivativeEstimator
from hodyn_ros.typing import Array

DELAY = 0.1  # s, by which estimates lie behind the latest measurement

Given = tuple[str, str, str, Array]
"""Link, expression, direction of action and values (3, 6) with their derivatives."""

Time = Callable[[], int]
"""Returns the stamp of a wrench [ns], or raises MotionError if it has none that can be used."""


class WrenchOptions(Protocol):
    """How wrenches are taken, and how a measured one is read."""

    @property
    def timeout(self) -> float:
        """Time without news after which `expiry` says what becomes of a wrench [s]."""

    @property
    def stale_policy(self) -> str:
        """What it says: stop, hold or fade."""

    @property
    def expiry(self) -> Expiry:
        """What becomes of a wrench without news."""

    @property
    def link(self) -> str:
        """Link on which a measured wrench acts; empty: the message names it."""

    @property
    def acting(self) -> str:
        """Direction of action of what is measured."""


class MeasuringOptions(Protocol):
    """Options of wrenches, and those of the motions beside which they act."""

    @property
    def wrench(self) -> WrenchOptions:
        """How wrenches are taken."""

    @property
    def estimator(self) -> EstimatorOptions:
        """How motions are estimated."""


def mounting(settings: WrenchOptions, model: RobotModel, frame_id: str) -> Mounting:
    """Link on which a measured wrench acts, and how its coordinates get there.

    Parameters
    ----------
    settings : WrenchOptions
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


def check_target(settings: WrenchOptions, model: RobotModel) -> None:
    """Refusal of a link of the settings, on which measured wrenches act, that the model lacks.

    Parameters
    ----------
    settings : WrenchOptions
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


class Wrenches:
    """The latest wrench on every link; of the thread of the executor.

    A link has one source at a time: the input `wrench_motion`, or `wrench` with one frame_id. As
    long as its last message is not older than the time-out, others are refused. Estimators see
    forces: the moments divided by `LEVER`.

    Parameters
    ----------
    settings : MeasuringOptions
    make_estimator : callable
        Makes an estimator with the options of `DerivativeEstimator`.

    Attributes
    ----------
    sources : dict of str to GivenWrench or MeasuredWrench
        By the links on which they act.
    dropped : int
        Messages that came after newer ones, or twice.
    """

    def __init__(
        self,
        settings: MeasuringOptions,
        make_estimator: Callable[..., DerivativeEstimator] = DerivativeEstimator,
    ) -> None:
        self._settings, self._options = settings.wrench, _estimator_options(settings)
        self._make_estimator = make_estimator
        self._model: RobotModel | None = None
        self.sources: dict[str, GivenWrench | MeasuredWrench] = {}
        # Also of links whose wrench has ended: what was sent before that must not revive it.
        self._newest: dict[str, int] = {}
        self.dropped = 0

    def use(self, settings: MeasuringOptions, model: RobotModel) -> list[str]:
        """Follow other settings or another model.

        Parameters
        ----------
        settings : MeasuringOptions
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
        self._newest = {
            link: stamp for link, stamp in self._newest.items() if link in model.links
        }
        self._settings, self._options, self._model = wrench, options, model
        return gone

    def take_given(self, given: Given, time: Time, model: RobotModel, now_ns: int) -> bool:
        """Take a wrench with its derivatives; one that is zero with them ends the wrench.

        Parameters
        ----------
        given : tuple
            Link, expression, direction of action and values (3, 6).
        time : callable
            Its stamp [ns], asked for once its link is known; zero means now.
        model : RobotModel
        now_ns : int
            [ns]

        Returns
        -------
        bool
            Whether other links or expressions than before are concerned, see `latest`.

        Raises
        ------
        WrenchError
            If it cannot be used.
        """
        link, expressed_in, acting, values = given
        check_link(model, link)
        stamp = _checked_stamp(time, link, now_ns, self._settings.timeout)
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
        source.update(stamp, Acting(expressed_in, acting, values, ORDERS - 1))
        return known != expressed_in

    def take_measured(
        self, frame_id: str, values: Array, time: Time, model: RobotModel, now_ns: int
    ) -> bool:
        """Take a sample of a measured wrench; zeros are a sample like others.

        Parameters
        ----------
        frame_id : str
            A link; with the parameter wrench.link a link on the same body, or one at rest, such as
            the base link.
        values : ndarray, shape (6,)
            (moment, force) in that frame [N m], [N].
        time : callable
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
        WrenchError
            If it cannot be used.
        """
        place = mounting(self._settings, model, frame_id)
        link, topic = place.link, measured_topic(frame_id)
        if not np.isfinite(values).all():
            raise WrenchError(f'Wrench on {link!r}: all values must be finite.')
        stamp = _checked_stamp(time, link, now_ns, self._settings.timeout)
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
        query = Query(time_ns, motion, model, self._settings.expiry)
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
            result.deviations.append(
                None if deviations is None else deviations[:, : order + 1]
            )
        return result

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


def _checked_stamp(time: Time, link: str, now: int, timeout: float) -> int:
    try:
        stamp = time() or now
    except MotionError as error:
        raise WrenchError(f'Wrench on {link!r}: {error}') from error
    ahead = (stamp - now) / NANOSECONDS
    if ahead > timeout:
        raise WrenchError(
            f'Wrench on {link!r}: the stamp lies {ahead:.3f} s in the future, more than '
            f'wrench_timeout ({timeout} s); the clocks of the sender and of this node must agree.'
        )
    return stamp


def _estimator_options(settings: MeasuringOptions) -> dict[str, Any]:
    sensor, joints = settings.wrench, settings.estimator
    return {
        'n': 6,
        'highest_derivative': ORDERS - 1,
        # Motions that are estimated lag, and need the wrench of their own instant.
        'delay': max(DELAY, joints.delay) if joints.enabled else DELAY,
        'max_gap': sensor.timeout,
        'smallest_motion': SMALLEST_FORCE,
    }
