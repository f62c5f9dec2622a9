"""The stiffness that joints of variable stiffness are asked to have, as the node knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from hodyn_msgs.msg import StiffnessMotion
from numpy.typing import NDArray

from hodyn_ros.dynamics.continuation import ORDERS, continued
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.names import listed
from hodyn_ros.ros.conversions import NANOSECONDS, nanoseconds

Array = NDArray[np.float64]

MOST_CHANGE = 0.1
"""Of the stiffness, while it stops changing; as a part of it."""

FIELDS = ('stiffness', 'stiffness_dot', 'stiffness_ddot')


def stiffness_from_message(message: StiffnessMotion, joints: Iterable[str]) -> dict[str, Array]:
    """Series (3,) of the stiffness by joint.

    Parameters
    ----------
    message : hodyn_msgs.msg.StiffnessMotion
    joints : iterable of str
        Joints whose stiffness can be chosen.

    Raises
    ------
    JointNameError
        If a joint is not one of them, or is named twice.
    ActuatorError
        If a field has the wrong length, a value is not finite or a stiffness not positive.
    """
    names, known = list(message.joint_names), list(joints)
    unknown = sorted(set(names) - set(known))
    if unknown or len(set(names)) < len(names) or not names:
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise JointNameError(
            'StiffnessMotion: joint_names '
            + (
                f'has {listed(unknown)}'
                if unknown
                else f'repeats {listed(repeated)}'
                if repeated
                else 'is empty'
            )
            + f'; the joints of variable stiffness are {listed(known) if known else "none"}.'
        )
    values = np.zeros((ORDERS, len(names)))
    for order, field in enumerate(FIELDS):
        given = getattr(message, field)
        if len(given) != len(names) and (order == 0 or len(given)):
            raise ActuatorError(
                f'StiffnessMotion: {field} has {len(given)} values, expected {len(names)}, one '
                'for each of joint_names.'
            )
        if len(given):
            values[order] = given
    if not np.isfinite(values).all():
        order, joint = np.argwhere(~np.isfinite(values))[0]
        raise ActuatorError(
            f'StiffnessMotion: {FIELDS[order]} of joint {names[joint]!r} is '
            f'{values[order, joint]}; all values must be finite.'
        )
    if not (values[0] > 0.0).all():
        joint = int((values[0] <= 0.0).argmax())
        raise ActuatorError(
            f'StiffnessMotion: stiffness of joint {names[joint]!r} is {values[0, joint]}, '
            'expected a number above zero.'
        )
    return dict(zip(names, values.T))


def requested_stiffness(
    messages: Sequence[StiffnessMotion], joints: Iterable[str], times: Array
) -> dict[str, Array]:
    """Series (N, 3) of the stiffness by joint along N samples; empty without messages.

    Parameters
    ----------
    messages : sequence of StiffnessMotion
        One, which goes on by its derivatives, or one for each sample.
    joints : iterable of str
        Joints whose stiffness can be chosen.
    times : ndarray, shape (N,)
        [s]

    Raises
    ------
    JointNameError, ActuatorError
        See `stiffness_from_message`; also if the number of messages does not fit.
    """
    if not messages:
        return {}
    joints = tuple(joints)
    series = [stiffness_from_message(message, joints) for message in messages]
    names = list(series[0])
    if len(series) == 1:
        values = np.stack([series[0][name] for name in names], axis=-1)
        along = continued(values, times - times[0])
        return {name: along[:, :, j] for j, name in enumerate(names)}
    if len(series) != len(times):
        raise ActuatorError(
            f'There are {len(series)} entries of stiffness for {len(times)} samples; expected '
            'one, or one per sample.'
        )
    different = next((i for i, entry in enumerate(series) if set(entry) != set(names)), None)
    if different is not None:
        raise JointNameError(
            f'Entry {different} of stiffness is about {listed(series[different])}, the first one '
            f'about {listed(names)}; expected the same joints in all entries.'
        )
    return {name: np.array([entry[name] for entry in series]) for name in names}


class _Wanted(NamedTuple):
    stamp: int
    values: Array
    """Shape (3, 1)."""


class Stiffness:
    """The latest wish for every joint of variable stiffness.

    A wish goes on by its derivatives for `timeout`, and then stops changing within `rest_time`, or
    sooner if the stiffness would change by more than a tenth until then.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, _Wanted] = {}
        self.dropped = 0
        """Number of messages left out since they came after newer ones."""

    def take(self, message: StiffnessMotion, joints: Iterable[str], now: int) -> None:
        """Take a wish.

        Parameters
        ----------
        message : hodyn_msgs.msg.StiffnessMotion
            A stamp of zero means now.
        joints : iterable of str
            Joints whose stiffness can be chosen.
        now : int
            Present time [ns].

        Raises
        ------
        HodynError
            If it cannot be used; what was there before stays.
        """
        values = stiffness_from_message(message, joints)
        stamp = nanoseconds(message.header.stamp) or now
        if any(name in self._wanted and self._wanted[name].stamp > stamp for name in values):
            self.dropped += 1
            return
        for name, series in values.items():
            self._wanted[name] = _Wanted(stamp, series[:, None])

    def at(
        self, stamp: int, timeout: float, rest_time: float, joints: Iterable[str]
    ) -> Mapping[str, Array]:
        """Series (3,) of what was wished for, by joint, at an instant [ns]."""
        return {
            name: _value(self._wanted[name], stamp, timeout, rest_time)
            for name in joints
            if name in self._wanted
        }

    def keep_only(self, joints: Iterable[str]) -> None:
        """Forget what concerns other joints."""
        self._wanted = {name: self._wanted[name] for name in joints if name in self._wanted}

    def clear(self) -> None:
        """Forget everything."""
        self._wanted.clear()


def _value(wanted: _Wanted, stamp: int, timeout: float, rest_time: float) -> Array:
    age = max((stamp - wanted.stamp) / NANOSECONDS, 0.0)
    series = continued(wanted.values, np.array([min(age, timeout)]))[0]
    if age > timeout:
        return _stopped(series[:, 0], age - timeout, rest_time)
    values: Array = series[:, 0]
    return values


def _stopped(series: Array, time: float, longest: float) -> Array:
    """Value and derivatives (3,) a time after the beginning of a smooth stop.

    The rate falls to zero along the cubic that has its value and slope at the beginning and none
    at the end, so nothing jumps and the value does not turn back.
    """
    value, rate, slope = series
    duration = longest
    while abs(rate) * duration / 2 + abs(slope) * duration**2 / 12 > MOST_CHANGE * abs(value):
        duration *= 0.5
    x = min(time / duration, 1.0)
    a, b = rate * duration, slope * duration**2
    return np.array(
        [
            value + a * (x - x**3 + 0.5 * x**4) + b * (x**2 / 2 - 2 * x**3 / 3 + x**4 / 4),
            (a * (1 - 3 * x**2 + 2 * x**3) + b * (x - 2 * x**2 + x**3)) / duration,
            (a * (6 * x**2 - 6 * x) + b * (1 - 4 * x + 3 * x**2)) / duration**2,
        ]
    )
