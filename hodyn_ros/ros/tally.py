"""What is counted for the diagnostics: kinds of refusals, and ticks that were missed."""

from __future__ import annotations

from hodyn_ros.errors import HodynError, JointNameError, SizeError, StaleError

REFUSALS = ('too large', 'invalid', 'unknown joints', 'stale', 'busy', 'internal')
"""Why an input is refused."""


def refusal_kind(error: Exception) -> str:
    """Kind of refusal that an error stands for: one of `REFUSALS`."""
    for kind, name in (
        (JointNameError, 'unknown joints'),
        (SizeError, 'too large'),
        (StaleError, 'stale'),
    ):
        if isinstance(error, kind):
            return name
    return 'invalid' if isinstance(error, HodynError) else 'internal'


def missed_ticks(previous: int, now: int, period: int) -> int:
    """Count the ticks of a timer that were due between two that came.

    Parameters
    ----------
    previous, now : int
        Times of the two, by the clock of the timer [ns].
    period : int
        [ns]

    Returns
    -------
    int
        0 if they follow each other, or if time ran back.
    """
    # A tick may come late by up to half a period without one being missed.
    return max((2 * (now - previous) + period) // (2 * period) - 1, 0)


def check_kind(kind: str) -> None:
    """Raise ValueError if `kind` is not one of `REFUSALS`."""
    if kind not in REFUSALS:
        raise ValueError(f'Kind of refusal is {kind!r}, expected one of {", ".join(REFUSALS)}.')
