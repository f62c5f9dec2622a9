"""What links carry and how joints rub beside what the description says, changed in motion.

The dynamics are linear in the inertial parameters. Along a transition these are
p(t) = p_0 + s(t) (p_1 - p_0), and so the efforts are those with p_0 and p_1, mixed by the product
rule: exactly, with their time derivatives. Momentum that comes with the mass is not part of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import JointNameError, RequestError
from hodyn_ros.lie import Jet
from hodyn_ros.model.friction import friction_from_config
from hodyn_ros.model.inertia import Payload
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.streams.robot_in_use import Robot
from hodyn_ros.streams.signals import brought_to_rest
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

LONGEST_TRANSITION = 3600.0  # s
MOST_WAITING = 16
_MOST_KEPT = 2 * MOST_WAITING  # changes that are over among them
_WHOLE = np.eye(3, 1)  # a share that is one, and its derivatives
# Samples that are older than the end of a transition by more than this no one asks for [ns].
_PAST = 60 * NANOSECONDS


def check_transition(duration: float, allow_step: bool) -> None:
    """Refusal of a time in which the efforts of a robot cannot pass over to those of another one.

    Parameters
    ----------
    duration : float
        [s]
    allow_step : bool
        Whether it may be zero.

    Raises
    ------
    RequestError
        If it is out of range, or zero.
    """
    checked_number(
        'transition_time',
        duration,
        RequestError,
        least=0.0,
        most=LONGEST_TRANSITION,
        unit='s',
    )
    if not duration and not allow_step:
        raise RequestError(
            'transition_time is 0, with which the efforts would jump; give the time in which the '
            'change takes place, or set allow_step.'
        )


def with_payload(
    robot: Robot, payload: Payload, allow_impossible: bool
) -> tuple[tuple[Payload, ...], list[str]]:
    """Payloads of a robot with one that is taken up.

    Parameters
    ----------
    robot : Robot
    payload : Payload
        A mass of zero says that the link carries nothing.
    allow_impossible : bool
        Whether its inertia may be that of no body.

    Returns
    -------
    payloads : tuple of Payload
        All of the robot afterwards.
    remarks : list of str
        On an inertia of no body.

    Raises
    ------
    HodynError
        If the link is unknown, or the inertia that of no body.
    """
    others = tuple(item for item in robot.payloads if item.link != payload.link)
    robot.model.link(payload.link)
    if not payload.mass:
        return others, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        robot.bare.with_payload(*payload)
    remarks = [str(item.message) for item in caught]
    if remarks and not allow_impossible:
        a, b, c = payload.inertia_com
        i = (*a, *b[1:], c[2])
        raise RequestError(
            f'The payload of {payload.link!r} ({payload}, inertia {i} kg m^2) can be of no body: '
            f'{remarks[0]} Check the values, or set the parameter allow_impossible_inertia.'
        )
    return (*others, payload), remarks


def law_from(
    joint: str, names: Sequence[str], values: Sequence[float], model: RobotModel
) -> dict[str, float]:
    """Friction of a joint by the parameters of its law.

    Parameters
    ----------
    joint : str
    names : sequence of str
        Parameters of its law, such as `viscous`; empty: it has none.
    values : sequence of float
        Of the same length.
    model : RobotModel

    Returns
    -------
    dict of str to float

    Raises
    ------
    HodynError
        If the robot has no such joint, or the parameters are those of no law.
    """
    if joint not in model.body_names:
        raise JointNameError(
            f'The joint {joint!r} is unknown{did_you_mean(joint, model.body_names)}; the joints '
            f'of the robot are {listed(model.body_names)}.'
        )
    if len(names) != len(values) or len({*names}) < len(names):
        raise RequestError(
            f'names are {listed(names) or "none"} with {len(values)} values, expected different '
            'names and a value for each.'
        )
    law = dict(zip(names, map(float, values)))
    if law:
        friction_from_config({joint: law})
    return law


class _Transition(NamedTuple):
    """Change from one robot to another.

    Attributes
    ----------
    before : Robot
    after : Robot
    start : int
        [ns]
    duration : int
        [ns]
    keeps_past : bool
        Whether the robot before it is that of all times before.
    """

    before: Robot
    after: Robot
    start: int
    duration: int
    keeps_past: bool

    @property
    def end(self) -> int:
        """When it is over [ns]."""
        return self.start + self.duration

    def weights(self, time: int, orders: int) -> Array:
        """Share of the robot after the transition, with time derivatives.

        Parameters
        ----------
        time : int
            Within the transition [ns].
        orders : int
            Up to 3.

        Returns
        -------
        ndarray, shape (orders,)
            [1/s^k]
        """
        elapsed, T = (time - self.start) / NANOSECONDS, self.duration / NANOSECONDS
        before = brought_to_rest(_WHOLE, elapsed, T, to_zero=True)
        share: Array = (_WHOLE - before)[:orders, 0]
        return share


class Transitions:
    """Changes of payloads in time, one after the other.

    Attributes
    ----------
    items : list of _Transition
        In the order of their times.

    Examples
    --------
    A payload is taken up within a second:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.streams import Transitions
    >>> from hodyn_ros.streams.robot_in_use import Robot
    >>> model = RobotModel.from_urdf('two_link')
    >>> bare = Robot(model, model.limits, '')
    >>> loaded = bare._replace(model=model.with_payload('tool', 1.0))
    >>> transitions = Transitions()
    >>> transitions.add(bare, loaded, start=0, duration=1.0)
    >>> before, after, transition = transitions.at(500_000_000, loaded)
    >>> before is bare, after is loaded, transition.weights(500_000_000, 2)
    (True, True, array([0.5  , 1.875]))
    """

    def __init__(self) -> None:
        self.items: list[_Transition] = []

    def clear(self) -> None:
        """Have the robot in use be the one at all times."""
        self.items.clear()

    def follow(self, make: Callable[[tuple[Payload, ...]], Robot]) -> None:
        """Go on with other robots, made with the same payloads.

        Parameters
        ----------
        make : callable
            Makes the robot with some payloads.
        """
        self.items = [
            item._replace(
                before=make(item.before.payloads), after=make(item.after.payloads)
            )
            for item in self.items
        ]

    def start(self, now: int) -> int:
        """Time at which a transition that is asked for now begins: behind those that wait.

        Parameters
        ----------
        now : int
            [ns]

        Returns
        -------
        int
            [ns]

        Raises
        ------
        RequestError
            If `MOST_WAITING` wait already.
        """
        self.items = [item for item in self.items if item.end > now - _PAST][-_MOST_KEPT:]
        ends = [item.end for item in self.items if item.end > now]
        if len(ends) >= MOST_WAITING:
            raise RequestError(
                f'{MOST_WAITING} changes of payloads wait already; ask for fewer, or for shorter '
                'transitions.'
            )
        return max([now, *ends])

    def add(
        self,
        before: Robot,
        after: Robot,
        start: int,
        duration: float,
        keeps_past: bool = True,
    ) -> None:
        """Add a transition.

        Parameters
        ----------
        before, after : Robot
        start : int
            [ns]
        duration : float
            [s]
        keeps_past : bool
            Whether `before` is the robot of all times before the start; otherwise the latest one
            is.
        """
        ns = round(duration * NANOSECONDS)
        self.items.append(_Transition(before, after, start, ns, keeps_past))

    def at(self, time: int, latest: Robot) -> tuple[Robot, Robot, _Transition | None]:
        """Robots between which the one at a time is.

        Parameters
        ----------
        time : int
            [ns]
        latest : Robot
            That of all times without a transition.

        Returns
        -------
        before, after : Robot
            The same outside of transitions.
        transition : _Transition or None
        """
        for item in self.items:
            if time < item.start and item.keeps_past:
                return item.before, item.before, None
            if item.start <= time < item.end:
                return item.before, item.after, item
        return latest, latest, None


def mixed(before: Array, after: Array, weights: Array) -> Array:
    """Efforts along a transition, by the product rule.

    Parameters
    ----------
    before, after : ndarray, shape (orders, n)
        Efforts of the robots before and after it.
    weights : ndarray, shape (orders,)
        Share of the latter with time derivatives.

    Returns
    -------
    ndarray, shape (orders, n)
    """
    return before + (Jet(weights) * Jet(after - before)).array(0)
