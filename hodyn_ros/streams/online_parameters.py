"""What measured efforts tell of payload and friction: from joint states to `OnlineEstimator`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from hodyn_ros.dynamics.online_estimation import OnlineEstimator, ParameterEstimate
from hodyn_ros.dynamics.regressor import regressor
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError, RequestError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.health import OK, WARN, Report
from hodyn_ros.streams.preparation import Host
from hodyn_ros.streams.robot_in_use import Robot, loaded
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

_LEAST_STEP = 19_000_000  # between measurements that are used: up to fifty a second [ns]
_PERIOD = 100_000_000  # of what is published [ns]
# Efforts wait for the motion of their time; a longer gap begins anew [ns].
_KEPT, _MOST_KEPT = 2 * NANOSECONDS, 4000
# Efforts are averaged around an instant, as the estimate of the motion smooths that [ns].
_AROUND = np.linspace(-1e7, 1e7, 9)


_MEMORY = 10.0  # s in which measurements lose 63 % of their weight


def estimator_of(model: RobotModel, settings: Any) -> OnlineEstimator:
    """Estimator that the settings ask for.

    Parameters
    ----------
    model : RobotModel
    settings : object
        The parameters `identification.*` of the node.

    Returns
    -------
    OnlineEstimator

    Raises
    ------
    HodynError
        If they do not suit the robot.
    """
    return OnlineEstimator(
        model,
        link=settings.payload_link or None,
        friction=[name for name in settings.friction if name],
        memory=_MEMORY,
    )


class OnlineParameters:
    """Payload and friction as measured joint states show them; of the thread of the executor.

    Parameters
    ----------
    host : Host
        Its worker prepares what is compiled.

    Attributes
    ----------
    problem : str
        Why there is nothing new; empty if there is.
    joint_names : tuple of str
        Joints of the robot.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._in_use: object = None
        self._estimator: OnlineEstimator | None = None
        self.joint_names: tuple[str, ...] = ()
        self.problem: str = ''
        self.clear()

    def clear(self) -> None:
        """Forget all measurements."""
        self._efforts: deque[tuple[int, Array]] = deque(maxlen=_MOST_KEPT)
        self._latest = self._published = 0  # [ns]
        if self._estimator is not None:
            self._estimator.reset()

    def use(self, robot: Robot) -> None:
        """Follow the settings and the robot; anew if anything is different but what is found.

        If the settings do not suit the robot, that is logged, and nothing is identified.

        Parameters
        ----------
        robot : Robot
        """
        settings = self._host.settings.identification
        others = tuple(
            item for item in robot.payloads if item.link != settings.payload_link
        )
        in_use = (
            (settings, robot.bare, robot.model.friction, others)
            if settings.enabled
            else None
        )
        if in_use == self._in_use:
            return
        self._in_use, self._estimator, self.problem = in_use, None, ''
        self.joint_names = robot.model.joint_names
        self.clear()
        if in_use is None:
            return
        laws = {name: robot.model.friction.get(name) for name in robot.model.body_names}
        model = loaded(robot.bare, others).with_friction(laws)
        try:
            made = estimator_of(model, settings)
        except HodynError as error:
            self.problem = str(error)
            self._host.get_logger().error(f'Nothing is identified: {error}')
            return
        rest = np.zeros((3, model.n_joints))

        def begin() -> None:
            if in_use is self._in_use:
                self._estimator = made

        def prepare() -> None:
            try:
                model.warm_up(0, lambda: regressor(model, rest))
            finally:  # compilers fail in many ways; NumPy computes the same
                self._host.soon(begin)

        self._host.worker.put(prepare)

    def take(self, effort: Array, stamp: int) -> None:
        """Keep measured efforts until the motion of their time is known.

        Parameters
        ----------
        effort : ndarray, shape (n,)
            [N m] or [N]
        stamp : int
            Their time [ns].
        """
        self.problem = ''
        self._efforts.append((stamp, effort))

    def wants(self, stamp: int) -> bool:
        """Whether efforts of a time are looked at: something is identified, and none were later.

        Behind a step of the stamps by more than 2 s, those before are forgotten.

        Parameters
        ----------
        stamp : int
            Their time [ns].
        """
        efforts = self._efforts
        if efforts and abs(stamp - efforts[-1][0]) > _KEPT:
            efforts.clear()
        return self._estimator is not None and not (efforts and stamp <= efforts[-1][0])

    def compare(
        self,
        motion: Array,
        stamp: int,
        wrenches: Sequence[Wrench] | None,
        deviations: Array,
    ) -> ParameterEstimate | None:
        """Compare the efforts that were measured at an instant with the motion found for it.

        Parameters
        ----------
        motion : ndarray, shape (K, n)
        stamp : int
            Of the instant [ns].
        wrenches : sequence of Wrench, optional
            Known ones, of that instant.
        deviations : ndarray, shape (K - 2, n)
            Standard deviations of the efforts of the model.

        Returns
        -------
        ParameterEstimate or None
            What there is, with the friction in use, when it is time to tell it: up to ten times a
            second.
        """
        estimator, efforts = self._estimator, self._efforts
        if stamp < self._latest:
            self.clear()
        if estimator is None or stamp - self._latest < _LEAST_STEP:
            return None
        if not (efforts and efforts[0][0] <= stamp <= efforts[-1][0]):
            return None
        times = np.array([time - stamp for time, _ in efforts])
        columns = np.array([effort for _, effort in efforts]).T
        measured = [np.interp(_AROUND, times, column).mean() for column in columns]
        while efforts[0][0] < stamp + _AROUND[0] - _LEAST_STEP and len(efforts) > 1:
            efforts.popleft()
        estimate = estimator.update(stamp, motion, measured, deviations[0], wrenches)
        self._latest = stamp
        if estimate is None or stamp - self._published < _PERIOD:
            return None
        self._published = stamp
        return self._total(estimate)

    def _total(self, found: ParameterEstimate) -> ParameterEstimate:
        """What there is with the friction that is in use."""
        used = {
            f'friction.{joint}.{key}': x for joint, key, x in self._host.settings.friction
        }
        return found._replace(
            values=found.values + [used.get(name, 0.0) for name in found.names]
        )

    def payload(self, asked: str) -> tuple[str, float, Array]:
        """Payload that was found.

        Parameters
        ----------
        asked : str
            Link that is asked for; empty: that of the settings.

        Returns
        -------
        link : str
        mass : float
            [kg]
        center : ndarray, shape (3,)
            Centre of mass in the axes of the link [m].

        Raises
        ------
        RequestError
            If nothing is identified there, nothing was measured lately, or no payload is certain.
        """
        settings, estimator = self._host.settings.identification, self._estimator
        link = settings.payload_link
        if not (settings.enabled and link) or asked not in ('', link):
            raise RequestError(
                f'use_identified: nothing is identified on {asked!r}; expected '
                f'identification.payload_link ({link!r}), and identification.enabled.'
            )
        if estimator is None or self._host.now() - self._latest > _MEMORY * NANOSECONDS:
            raise RequestError(
                f'use_identified: nothing is measured. {self.problem}'.rstrip()
            )
        found = estimator.estimate
        payload = found.payload()
        if payload is None:
            raise RequestError(
                f'use_identified: no payload is certain, its mass is {_shown(found)[0]}. Move '
                'more joints, or wait; mass 0 says that the link carries nothing.'
            )
        return link, payload[0], payload[1]

    @property
    def counts(self) -> dict[str, int]:
        """Samples that were used, and outliers."""
        found = self._estimator
        return (
            {} if found is None else {'samples': found.samples, 'outliers': found.outliers}
        )

    def report(self) -> Report | None:
        """Health; None if nothing is to be identified."""
        estimator = self._estimator
        if self._in_use is None:
            return None
        if self.problem or estimator is None or not estimator.samples:
            return WARN, self.problem or 'no measurement yet', {}
        found = self._total(estimator.estimate)
        values: dict[str, object] = dict(zip(found.names, _shown(found)))
        values |= self.counts
        certain = 'a payload is certain' if found.payload() else 'measurements are used'
        return OK, certain, values


def _shown(found: ParameterEstimate) -> list[str]:
    rows = zip(found.values, found.std, found.units)
    return [f'{value:.3g} +- {std:.2g} {unit}' for value, std, unit in rows]
