"""Efforts of each cycle from samples of efforts and their derivatives, within limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.control.effort_rule import (
    EFFORT_FUTURE,
    EFFORT_NOT_FINITE,
    EFFORT_OVERTAKEN,
    EFFORT_STALE,
    EffortRule,
    effort_rule_limits,
    effort_rule_reset,
    effort_rule_take,
    effort_rule_update,
)
from hodyn_ros.errors import ControlError
from hodyn_ros.typing import Array

_STATES = 'waiting', 'following', 'easing', 'fallback', 'refused'
_REASONS = {
    EFFORT_NOT_FINITE: 'has values that are not finite',
    EFFORT_STALE: 'is older than max_age',
    EFFORT_FUTURE: 'is later than now by more than max_ahead',
    EFFORT_OVERTAKEN: 'is earlier than the sample before',
}


class EffortFollower:
    """The rule of ``EffortController`` for loops of one's own.

    Between samples efforts go on by their derivatives, Q + a Q̇ + a² Q̈ / 2 at the age a. Where
    one thing takes over from another, the difference fades out. Without samples, or with efforts
    of more than 10 times their limit, they are eased to the fallback. Whatever comes in, efforts
    and their change in a cycle are within limits. ``effort_rule.h`` of ``hodyn_controllers`` is
    the same rule in C.

    Parameters
    ----------
    effort_limits, effort_rate_limits : array_like, shape (n,)
        Finite and above zero [N m], [N m/s]; of prismatic joints [N], [N/s].
    extrapolation : int
        Highest derivative used, 0 to 2; 0 holds efforts.
    max_age : float
        Age up to which a sample is followed [s].
    max_ahead : float
        By which a stamp may be later than now [s].
    ease_time : float
        Between efforts and the fallback, both ways [s].
    max_period : float
        Of a cycle, as far as the limit of the rate counts it [s].
    fallback : {'zero', 'hold'}
        What there is without samples: zero, or the last efforts.

    Raises
    ------
    ControlError
        If a limit or setting is out of range.

    Examples
    --------
    >>> follower = EffortFollower([87.0, 12.0], [900.0, 900.0])
    >>> follower.reset([2.0, 1.0])
    >>> follower.give(0.0, 0.0, [2.0, 1.0], [8.0, 0.0], [0.0, 0.0])
    ''
    >>> for cycle in range(1, 4):
    ...     torque = follower.update(0.001 * cycle, 0.001)
    >>> torque.round(3)
    array([2.016, 1.   ])
    >>> follower.state
    'following'
    """

    def __init__(
        self,
        effort_limits: ArrayLike,
        effort_rate_limits: ArrayLike,
        *,
        extrapolation: int = 2,
        max_age: float = 0.05,
        max_ahead: float = 0.02,
        ease_time: float = 0.5,
        max_period: float = 0.005,
        fallback: str = 'zero',
    ) -> None:
        limits, rates = (
            np.array(x, dtype=float) for x in (effort_limits, effort_rate_limits)
        )
        if limits.ndim != 1 or limits.shape != rates.shape:
            raise ControlError(
                f'Limits of efforts and of their rates have the shapes {limits.shape} and '
                f'{rates.shape}, expected one of each for every joint, (n,).'
            )
        checked_number(
            'extrapolation', extrapolation, ControlError, least=0, most=2, whole=True
        )
        check_choice('fallback', fallback, ('zero', 'hold'), ControlError)
        positive = {'max_age': max_age, 'max_period': max_period}
        others = {'max_ahead': max_ahead, 'ease_time': ease_time}
        for name, value in positive.items():
            checked_number(name, value, ControlError, above=0.0, unit='s')
        for name, value in others.items():
            checked_number(name, value, ControlError, least=0.0, unit='s')
        rule = self._rule = EffortRule(limits.size)
        rule.extrapolation, rule.holds = extrapolation, int(fallback == 'hold')
        vars(rule).update({x: float(value) for x, value in {**positive, **others}.items()})
        if effort_rule_limits(rule, limits.tolist(), rates.tolist()):
            raise ControlError(
                f'Limits of efforts are {limits.tolist()}, of their rates {rates.tolist()}, '
                'expected finite values above zero.'
            )

    def reset(self, effort: ArrayLike) -> None:
        """Begin anew.

        Parameters
        ----------
        effort : array_like, shape (n,)
            That acts now; values that are not finite count as zero.
        """
        effort_rule_reset(self._rule, self._values('effort', effort))

    def give(
        self,
        now: float,
        stamp: float,
        effort: ArrayLike,
        effort_dot: ArrayLike | None = None,
        effort_ddot: ArrayLike | None = None,
    ) -> str:
        """Take the newest sample; the one before given again, by its stamp, changes nothing.

        Parameters
        ----------
        now, stamp : float
            Time of the cycle, and at which the efforts are wanted, of one clock [s].
        effort, effort_dot, effort_ddot : array_like, shape (n,)
            Efforts and their derivatives, as far as they are known.

        Returns
        -------
        str
            Empty, or why the sample was refused: the one before is followed up to its `max_age`.
        """
        values = self._values('effort', effort)
        order = 0
        if effort_dot is not None:
            order, values = 1, values + self._values('effort_dot', effort_dot)
            if effort_ddot is not None:
                order, values = 2, values + self._values('effort_ddot', effort_ddot)
        found = effort_rule_take(self._rule, float(now), float(stamp), order, values)
        return _REASONS.get(found, '')

    def update(self, now: float, period: float) -> Array:
        """Efforts of a cycle.

        Parameters
        ----------
        now : float
            Time of the cycle [s].
        period : float
            Since the cycle before [s].

        Returns
        -------
        ndarray, shape (n,)
        """
        effort_rule_update(self._rule, float(now), float(period))
        return np.array(self._rule.command)

    @property
    def state(self) -> str:
        """What it does: 'waiting', 'following', 'easing', 'fallback' or 'refused'."""
        return _STATES[self._rule.state]

    @property
    def age(self) -> float:
        """Of the sample at the last cycle [s]; -1 if there was none."""
        return self._rule.age

    @property
    def limited(self) -> Array:
        """Limits that were reached at the last cycle (n,): 0 none, 1 effort, 2 rate."""
        return np.array(self._rule.limited, dtype=int)

    def _values(self, name: str, given: ArrayLike) -> list[float]:
        values = np.asarray(given, dtype=float)
        if values.shape != (self._rule.n,):
            raise ControlError(
                f'{name} has the shape {values.shape}, expected ({self._rule.n},).'
            )
        return values.tolist()  # type: ignore[no-any-return]
