"""Rule by which efforts of a sample with derivatives become those of a cycle, within limits.

`EffortFollower` runs these functions, and hodyn_controllers/generate_effort_rule.py translates the
same text to C99, which `EffortController` and loops of others call. `r` is an `EffortRule`, in C a
struct of the same fields; rows of arrays for n joints stand one behind the other.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

Vector = Any
"""Numbers by one index: a list in Python, a pointer in C."""

EFFORT_WAITING, EFFORT_FOLLOWING, EFFORT_EASING, EFFORT_FALLBACK, EFFORT_REFUSED = range(5)
"""States."""
EFFORT_WITHIN, EFFORT_LIMITED, EFFORT_RATE_LIMITED = range(3)
"""Limit of a joint that was reached."""
(
    EFFORT_TAKEN,
    EFFORT_WRONG_ORDER,
    EFFORT_NOT_FINITE,
    EFFORT_STALE,
    EFFORT_FUTURE,
    EFFORT_OVERTAKEN,
) = range(6)
"""What came of a sample."""
# Efforts of more than this many times their limit are an error of the sender, and not followed.
EFFORT_BEYOND = 10.0


class EffortRule:
    """Settings, and what is remembered from one cycle to the next.

    Parameters
    ----------
    n : int
        Number of joints.

    Attributes
    ----------
    extrapolation, holds : int
        Highest derivative used; whether the fallback is to hold the last efforts.
    max_age, max_ahead, max_period, ease_time : float
        As in `EffortFollower` [s].
    limits, rate_limits : list of float
        Of the efforts and their rates.
    state, order, has_sample, ordered, refusing, losses : int
        State; derivatives of the sample; whether there is a sample, and whether those with earlier
        stamps are refused; whether what came since was refused; how often efforts were lost.
    stamp, age, clock, since, unchanged : float
        Of the sample; its age, -1 without a sample; when a sample was offered; time since targets
        are of another kind, and for which values of samples have been the same [s].
    beyond : int
        Joint far beyond its limit in this cycle; -1: none.
    wanted_beyond : float
        Effort of that joint.
    values : list of float
        Sample, derivative k of joint j at k n + j.
    command, target, wanted, difference, limited : list of float
        Efforts that are sent, their target, the extrapolated ones, what fades out, limits reached.
    """

    def __init__(self, n: int) -> None:
        self.n: int = n
        self.extrapolation: int = 2
        self.holds: int = 0
        self.max_age: float = 0.05
        self.max_ahead: float = 0.02
        self.max_period: float = 0.005
        self.ease_time: float = 0.5
        self.state: int = EFFORT_WAITING
        self.order: int = 0
        self.has_sample: int = 0
        self.refusing: int = 0
        self.losses: int = 0
        self.beyond: int = -1
        self.ordered: int = 0
        self.clock: float = 0.0
        self.stamp: float = 0.0
        self.age: float = -1.0
        self.since: float = 0.0
        self.unchanged: float = 0.0
        self.wanted_beyond: float = 0.0
        self.limits: list[float] = [0.0] * n
        self.rate_limits: list[float] = [0.0] * n
        self.command: list[float] = [0.0] * n
        self.target: list[float] = [0.0] * n
        self.wanted: list[float] = [0.0] * n
        self.difference: list[float] = [0.0] * n
        self.limited: list[float] = [0.0] * n
        self.values: list[float] = [0.0] * (3 * n)


def effort_rule_within(value: float, low: float, high: float) -> float:
    """Nearest number between two."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def effort_rule_share(since: float, ease_time: float) -> float:
    """Share of a difference that is left: from 1 to 0, two derivatives zero at both ends."""
    if not since < ease_time:
        return 0.0
    x = since / ease_time
    return 1.0 - x * x * x * (10.0 - 15.0 * x + 6.0 * x * x)


def effort_rule_period(r: EffortRule, period: float) -> float:
    """Time since the cycle before, as far as it counts; zero if it is none."""
    if not period > 0.0:
        return 0.0
    if period <= r.max_period:
        return period
    if r.max_period > 0.0:
        return r.max_period
    return 0.0


def effort_rule_change(r: EffortRule, state: int) -> None:
    """Go over to other targets, from where the efforts are."""
    r.state = state
    r.since = 0.0
    for j in range(r.n):
        r.difference[j] = r.command[j] - r.target[j]


def effort_rule_lose(r: EffortRule, state: int) -> None:
    """Go over to the fallback."""
    for j in range(r.n):
        r.target[j] = 0.0
        if r.holds > 0:
            r.target[j] = r.command[j]
    effort_rule_change(r, state)


def effort_rule_reset(r: EffortRule, command: Vector) -> None:
    """Begin anew from efforts (n,); those that are not finite count as zero."""
    for j in range(r.n):
        r.command[j] = 0.0
        if isfinite(command[j]):
            r.command[j] = effort_rule_within(command[j], -r.limits[j], r.limits[j])
    r.has_sample = 0
    r.ordered = 0
    r.age = -1.0
    effort_rule_lose(r, EFFORT_WAITING)


def effort_rule_limits(r: EffortRule, efforts: Vector, rates: Vector) -> int:
    """Set limits (n,) and begin anew from zero; how many are not finite and above zero.

    The efforts of such joints stay zero.
    """
    wrong: int = 0
    for j in range(r.n):
        r.limits[j], r.rate_limits[j] = efforts[j], rates[j]
        r.command[j] = 0.0
        r.limited[j] = EFFORT_WITHIN
        is_right: int = 1
        if not isfinite(efforts[j]) or not isfinite(rates[j]):
            is_right = 0
        if not efforts[j] > 0.0 or not rates[j] > 0.0:
            is_right = 0
        if is_right == 0:
            wrong += 1
            r.limits[j], r.rate_limits[j] = 0.0, 0.0
    effort_rule_reset(r, r.command)
    return wrong


def effort_rule_keep(r: EffortRule, stamp: float, order: int, values: Vector) -> None:
    """Keep a sample, finite up to its highest derivative ((order + 1) n,)."""
    is_same: int = r.has_sample
    for i in range(3 * r.n):
        value = 0.0
        if i < (order + 1) * r.n:
            value = values[i]
        if value != r.values[i]:
            is_same = 0
        r.values[i] = value
    if is_same == 0:
        r.unchanged = 0.0
    r.stamp = stamp
    r.order = order
    r.has_sample = 1


def effort_rule_look(
    r: EffortRule, now: float, stamp: float, order: int, values: Vector
) -> int:
    """Whether a sample may be taken at a time, or why not."""
    if order < 0 or order > 2:
        return EFFORT_WRONG_ORDER
    if not isfinite(now) or not isfinite(stamp):
        return EFFORT_NOT_FINITE
    for i in range((order + 1) * r.n):
        if not isfinite(values[i]):
            return EFFORT_NOT_FINITE
    if not stamp >= now - r.max_age:
        return EFFORT_STALE
    if not stamp <= now + r.max_ahead:
        return EFFORT_FUTURE
    if r.ordered > 0 and stamp < r.stamp:
        return EFFORT_OVERTAKEN
    return EFFORT_TAKEN


def effort_rule_take(
    r: EffortRule, now: float, stamp: float, order: int, values: Vector
) -> int:
    """Take a sample ((order + 1) n,), or say why not; the last one again changes nothing."""
    if r.ordered > 0 and stamp == r.stamp:
        return EFFORT_TAKEN
    if isfinite(now):
        if now < r.clock:
            r.ordered = 0  # the clock was set back, so stamps of before mean nothing
        r.clock = now
    found: int = effort_rule_look(r, now, stamp, order, values)
    r.refusing = 1
    if found == EFFORT_TAKEN:
        r.refusing = 0
        r.ordered = 1
        effort_rule_keep(r, stamp, order, values)
    return found


def effort_rule_extrapolate(r: EffortRule) -> int:
    """Taylor polynomial of the sample at its age; whether it may be followed."""
    first = 0.0
    second = 0.0
    if r.order > 0 and r.extrapolation > 0:
        first = r.age
    if r.order > 1 and r.extrapolation > 1:
        second = 0.5 * r.age * r.age
    n: int = r.n
    for j in range(n):
        wanted = r.values[j]
        if first != 0.0:
            wanted += first * r.values[n + j]
        if second != 0.0:
            wanted += second * r.values[2 * n + j]
        r.wanted[j] = wanted
        # Finite derivatives may be so large that the sum is not.
        if not abs(wanted) <= EFFORT_BEYOND * r.limits[j]:
            r.beyond = j
            r.wanted_beyond = wanted
            return 0
    return 1


def effort_rule_limit(r: EffortRule, period: float) -> None:
    """Go on towards the targets, within the limits."""
    share = effort_rule_share(r.since, r.ease_time)
    for j in range(r.n):
        wanted = r.target[j] + share * r.difference[j]
        within = effort_rule_within(wanted, -r.limits[j], r.limits[j])
        step = r.rate_limits[j] * period
        reached = effort_rule_within(within, r.command[j] - step, r.command[j] + step)
        r.command[j] = reached
        r.limited[j] = EFFORT_WITHIN
        if within != wanted:
            r.limited[j] = EFFORT_LIMITED
        if reached != within:
            r.limited[j] = EFFORT_RATE_LIMITED


def effort_rule_update(r: EffortRule, now: float, period: float) -> None:
    """Efforts `r.command` at a time, a period after the cycle before."""
    counted = effort_rule_period(r, period)
    r.since += counted
    r.unchanged += counted
    r.beyond = -1
    r.age = -1.0
    follows: int = 0
    if r.has_sample > 0:
        r.age = now - r.stamp
        if r.age <= r.max_age and r.age >= -r.max_ahead:
            follows = effort_rule_extrapolate(r)
    if follows > 0:
        for j in range(r.n):
            r.target[j] = r.wanted[j]
        if r.state != EFFORT_FOLLOWING:
            effort_rule_change(r, EFFORT_FOLLOWING)
    else:
        if r.state == EFFORT_FOLLOWING:
            r.losses += 1
            effort_rule_lose(r, EFFORT_EASING)
        if r.state != EFFORT_WAITING and r.since >= r.ease_time:
            r.state = EFFORT_FALLBACK
            if r.refusing > 0 or r.beyond >= 0:
                r.state = EFFORT_REFUSED
    effort_rule_limit(r, counted)
