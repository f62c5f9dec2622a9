"""Counts of what became of inputs, in a form that can be sent from one process to another."""

from __future__ import annotations

import threading

from hodyn_ros.errors import HodynError, JointNameError, SizeError, StaleError

REFUSALS = ('too large', 'invalid', 'unknown joints', 'stale', 'busy', 'internal')
"""Why an input is refused."""

Counts = dict[str, dict[str, object]]
"""For every topic: received, refused (by kind), reason, dropped, gaps, longest gap [s]."""


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


class Tally:
    """Counters that any thread may feed until someone takes them away.

    For a process without diagnostics of its own: what `take` returns is made of dictionaries,
    numbers and text, and `Diagnostics.merge` adds it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counts = {}

    def received(self, topic: str) -> None:
        """Count an input that was taken."""
        with self._lock:
            self._entry(topic)['received'] += 1

    def refused(self, topic: str, reason: str, kind: str = 'invalid') -> None:
        """Count an input that was not taken; `kind` is one of `REFUSALS`."""
        check_kind(kind)
        with self._lock:
            entry = self._entry(topic)
            entry['refused'][kind] = entry['refused'].get(kind, 0) + 1
            entry['reason'] = reason

    def dropped(self, topic: str, count: int = 1) -> None:
        """Count samples that came too late to be used."""
        with self._lock:
            self._entry(topic)['dropped'] += count

    def gap(self, topic: str, length: float) -> None:
        """Count a gap between two inputs [s]."""
        with self._lock:
            entry = self._entry(topic)
            entry['gaps'] += 1
            entry['longest gap'] = max(entry['longest gap'], length)

    def take(self) -> Counts:
        """Return the counts since the call before; empty if there are none."""
        with self._lock:
            taken, self._counts = self._counts, {}
            return taken

    def _entry(self, topic: str) -> dict[str, object]:
        return self._counts.setdefault(
            topic,
            {
                'received': 0,
                'refused': {},
                'reason': '',
                'dropped': 0,
                'gaps': 0,
                'longest gap': 0.0,
            },
        )


def check_kind(kind: str) -> None:
    """Raise ValueError if `kind` is not one of `REFUSALS`."""
    if kind not in REFUSALS:
        raise ValueError(f'Kind of refusal is {kind!r}, expected one of {", ".join(REFUSALS)}.')
