"""Levels of diagnostics that do not flicker: they rise at once and fall after a quiet time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticStatus

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE

# By severity, which is not the order of their numbers: silence is less than a failure.
_SEVERITY = (OK, WARN, STALE, ERROR)


class Cause(NamedTuple):
    """Something that happened since the report before."""

    level: bytes
    kind: str
    """What is counted together."""
    text: str
    count: int = 1
    """How often; 0 for a state that goes on."""


@dataclass
class _Held:
    """The latest cause of one kind and level, until it has been quiet long enough."""

    level: bytes
    text: str
    count: int
    time: float
    reports: int = 0


class Alarm:
    """Level and message of one status.

    Parameters
    ----------
    quiet_time : float
        Time without a cause after which a level falls [s].
    quiet_reports : int
        Number of reports without a cause that this needs as well, so that a level is seen also
        where reports are rare.
    """

    def __init__(self, quiet_time: float, quiet_reports: int = 3) -> None:
        self._quiet_time, self._quiet_reports = quiet_time, quiet_reports
        self._held: dict[tuple[bytes, str], _Held] = {}

    def report(self, causes: Iterable[Cause], now: float, fine: str) -> tuple[bytes, str]:
        """Level and message at a time.

        Parameters
        ----------
        causes : iterable of Cause
            What happened since the report before.
        now : float
            [s]
        fine : str
            Message where nothing is wrong.

        Returns
        -------
        level : bytes
        message : str
            The latest cause, and how often its kind has come since it was last quiet.
        """
        causes = sorted(causes, key=lambda cause: severity(cause.level))
        for held in self._held.values():
            held.reports += 1
        for cause in causes:
            # Silence that is over is no silence any more, but it was worth a warning.
            level = WARN if cause.level == STALE else cause.level
            before = self._held.pop((level, cause.kind), None)
            count = cause.count + (before.count if before else 0)
            self._held[level, cause.kind] = _Held(level, cause.text, count, now)
        self._held = {
            key: held
            for key, held in self._held.items()
            if now - held.time < self._quiet_time or held.reports < self._quiet_reports
        }
        if not self._held:
            return OK, fine
        levels = [item.level for item in [*self._held.values(), *causes]]
        latest = list(self._held.values())[-1]
        return max(levels, key=severity), _message(latest, now)


def severity(level: bytes) -> int:
    """Place of a level among all, the worst being the highest."""
    return _SEVERITY.index(level)


def _message(held: _Held, now: float) -> str:
    notes = []
    if held.count > 1:
        notes.append(f'{held.count} times')
    if now > held.time:
        notes.append(f'last {now - held.time:.1f} s ago')
    return f'{held.text} ({", ".join(notes)})' if notes else held.text
