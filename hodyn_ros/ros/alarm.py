"""Levels of diagnostics that do not flicker: they rise at once and fall after a quiet time."""

from __future__ import annotations

from collections.abc import Iterable
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


class Alarm:
    """Level and message of one status.

    Parameters
    ----------
    quiet_time : float
        Time without a cause after which a level falls [s].
    """

    def __init__(self, quiet_time: float) -> None:
        self._quiet_time = quiet_time
        # The latest cause of each level and kind, and when it was.
        self._held: dict[tuple[bytes, str], tuple[Cause, float]] = {}

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
        causes = sorted(causes, key=_severity)
        for cause in causes:
            # Silence that is over is no silence any more, but it was worth a warning.
            level = WARN if cause.level == STALE else cause.level
            before = self._held.pop((level, cause.kind), None)
            count = cause.count + (before[0].count if before else 0)
            self._held[level, cause.kind] = Cause(level, cause.kind, cause.text, count), now
        self._held = {
            key: held for key, held in self._held.items() if now - held[1] < self._quiet_time
        }
        if not self._held:
            return OK, fine
        worst = max([*(cause for cause, _ in self._held.values()), *causes], key=_severity)
        latest, time = list(self._held.values())[-1]
        notes = [f'{latest.count} times'] * (latest.count > 1)
        notes += [f'last {now - time:.1f} s ago'] * (now > time)
        return worst.level, f'{latest.text} ({", ".join(notes)})' if notes else latest.text


def _severity(cause: Cause) -> int:
    return _SEVERITY.index(cause.level)
