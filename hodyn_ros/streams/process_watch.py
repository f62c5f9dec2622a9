"""Whether a process that works for another one lives: it gives signs, or it computes."""

from __future__ import annotations

import os
from pathlib import Path

STARTING, RUNNING, SILENT, ENDED = 'starting', 'running', 'silent', 'ended'

# A process that has been silent for the first time is killed, which is said after the second [s].
SILENT_KILLED, SILENT_SAID = 6.0, 1.0
# To unpack a large trajectory, for one, holds the interpreter, and with it the thread that gives
# signs: for so long it is enough that the process computes [s].
LONGEST_WORK = 60.0
LOOK_PERIOD = 0.25
"""Time between two looks for signs of life [s]."""
_LONGEST_LOOK = 4.0 * LOOK_PERIOD  # s, above which who looks was held up


class ProcessWatch:
    """State of a process that is to give signs of life; times are of a steady clock [s].

    ENDED, `begin`: STARTING, `hear`: RUNNING, for SILENT_SAID neither a sign nor work: SILENT, a
    sign or work: RUNNING. From all of them `end` leads to ENDED.

    Attributes
    ----------
    state : str
        ENDED, STARTING, RUNNING or SILENT.
    silence : float
        For how long there has been no sign, at the latest look [s].
    overdue : str
        Why the process is to be killed; empty if it is not.
    pid : int, optional
        Number of the process.
    restarts : int
    last_exit : str
        Why the process before it has ended.
    """

    def __init__(self) -> None:
        self.state: str = ENDED
        self.silence: float = 0.0
        self.overdue: str = ''
        self.last_exit: str = ''
        self.pid: int | None = None
        self.restarts: int = 0
        self._heard = self._worked = self._looked = self._ready_time = self._computed = 0.0

    @property
    def fault(self) -> str:
        """Reason why the process does not work; empty if it does."""
        if self.state == SILENT:
            return f'planning does not answer since {self.silence:.1f} s'
        is_over = self.state == ENDED and self.last_exit
        return 'the process has ended' if is_over else ''

    def begin(self, now: float, ready_time: float, pid: int | None = None) -> None:
        """Note that a process has been started.

        Parameters
        ----------
        now : float
            [s]
        ready_time : float
            Within which it gives its first sign [s].
        pid : int, optional
        """
        self.pid, self.restarts = pid, self.restarts + bool(self.last_exit)
        self.state, self.silence, self.overdue = STARTING, 0.0, ''
        self._heard = self._worked = self._looked = now
        self._ready_time, self._computed = ready_time, 0.0

    def hear(self, now: float) -> None:
        """Note a sign of life at a time [s]."""
        if self.state != ENDED:
            self.state, self._heard, self.overdue = RUNNING, now, ''

    def end(self, why: str = '') -> None:
        """Note that the process is no more, and why, unless it was killed."""
        self.state, self.silence, self.pid = ENDED, 0.0, None
        self.last_exit = self.overdue or why

    def look(self, now: float, computed: float) -> None:
        """Bring `state`, `silence` and `overdue` up to date; to be called every LOOK_PERIOD.

        Parameters
        ----------
        now : float
            [s]
        computed : float
            How long the process has computed so far [s].
        """
        # While who looks is held up, signs wait unread.
        held_up = max(now - self._looked - _LONGEST_LOOK, 0.0)
        self._heard, self._looked = min(self._heard + held_up, now), now
        self._worked = (
            now if computed > self._computed else min(self._worked + held_up, now)
        )
        self._computed = max(computed, self._computed)
        self.silence = silence = 0.0 if self.state == ENDED else now - self._heard
        if self.state == STARTING:
            if silence > self._ready_time:
                self.overdue = f'it was not ready within {self._ready_time:g} s'
        elif self.state != ENDED:
            idle = min(silence, now - self._worked)
            is_silent = idle > SILENT_SAID or silence > LONGEST_WORK
            self.state = SILENT if is_silent else RUNNING
            if idle > SILENT_KILLED or silence > LONGEST_WORK:
                self.overdue = f'it did not answer for {silence:.1f} s'


def resident_memory(pid: int | None = None) -> str:
    """Memory that a process occupies [MiB], by default this one; empty if it is not known."""
    try:
        pages = int(Path(f'/proc/{pid or "self"}/statm').read_text().split()[1])
        return f'{pages * os.sysconf("SC_PAGE_SIZE") / 2**20:.1f}'
    except (OSError, ValueError, IndexError):
        return ''


def processor_time(pid: int) -> float:
    """Time that all threads of a process have computed [s]; 0 if it is not known."""
    try:
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
    except (OSError, ValueError, IndexError):
        return 0.0
