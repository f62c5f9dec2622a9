"""Goals on their way from a planner, through a new timing, to a controller and to their end."""

from __future__ import annotations

import math
from dataclasses import dataclass

WAITS, RETIMED, SENT, EXECUTED, ENDED = 'waits', 'retimed', 'sent', 'executed', 'ended'

READY = 'the service and the controller are there'
TIMED = 'the new timing is there'
ACCEPTED = 'the controller accepts'
OVER = 'it succeeds, fails or is cancelled'
REPLACED = 'a newer goal is sent'

TRANSITIONS = {
    (WAITS, READY): RETIMED,
    (WAITS, REPLACED): ENDED,
    (WAITS, OVER): ENDED,
    (RETIMED, READY): RETIMED,
    (RETIMED, TIMED): SENT,
    (RETIMED, REPLACED): ENDED,
    (RETIMED, OVER): ENDED,
    (SENT, ACCEPTED): EXECUTED,
    (SENT, REPLACED): SENT,
    (SENT, OVER): ENDED,
    (EXECUTED, REPLACED): EXECUTED,
    (EXECUTED, OVER): ENDED,
}
"""The state that follows a state and an event. A controller itself ends what it is replaced by."""

GRACE = 2.0
"""How long a goal waits for what it needs: it may only not be listed yet [s]."""

LONG_WAIT = 5.0
"""Wait for a new timing after which that is said [s]."""

SILENCE = 1.0
"""Time without feedback after which a controller that has sent some is no more [s]."""


@dataclass(eq=False)
class Goal:
    """Where a goal is; times are of a clock that never goes back [s].

    Attributes
    ----------
    arrival : float
        When it came.
    state : str
        One of the states of `TRANSITIONS`.
    planner : str
        Process that retimes it, as far as is known.
    asked : float
        When its new timing was last asked for.
    is_replaced : bool
        Whether a newer goal has been sent.
    is_long : bool
        Whether it has been said that its timing takes long.
    heard : float, optional
        When the controller last told how far it is.
    """

    arrival: float
    state: str = WAITS
    planner: str = ''
    asked: float = -math.inf
    is_replaced: bool = False
    is_long: bool = False
    heard: float | None = None

    def on(self, event: str) -> bool:
        """Note an event.

        Parameters
        ----------
        event : str
            `READY`, `TIMED`, `ACCEPTED`, `OVER` or `REPLACED`.

        Returns
        -------
        bool
            Whether the goal has come to its end by it.

        Raises
        ------
        KeyError
            If the event cannot happen in the state.
        """
        before, self.state = self.state, TRANSITIONS[self.state, event]
        self.is_replaced = self.is_replaced or event == REPLACED
        return self.state == ENDED != before

    def is_long_now(self, now: float) -> bool:
        """Whether it is to be said now that the timing takes long, which it is once.

        Parameters
        ----------
        now : float
            [s]; a timing takes long after `LONG_WAIT`.
        """
        is_long = self.state == RETIMED and now - self.arrival > LONG_WAIT
        is_new, self.is_long = is_long and not self.is_long, self.is_long or is_long
        return is_new

    def is_unheard(self, now: float, since: float) -> bool:
        """Whether the request for the timing may have gone to a process that had ended.

        The middleware lists the service of a process that was killed for many seconds, and that of
        the next one only after a while.

        Parameters
        ----------
        now : float
            [s]; a request is repeated `GRACE` after it.
        since : float
            When it was heard that the process is another one [s].
        """
        is_early = self.asked - since < GRACE
        return self.state == RETIMED and is_early and now - self.asked > GRACE

    def why_lost(
        self, now: float, lacking: str, service: str, planner: str, timeout: float
    ) -> str:
        """Why nothing more will be heard of the goal; empty if it may.

        Parameters
        ----------
        now : float
        lacking : str
            What the goal needs in its state and is not there.
        service : str
            Name of the service that retimes goals.
        planner : str
            Its process now; empty if that is not known.
        timeout : float
            Longest wait for a new timing [s].
        """
        waited = now - self.arrival
        if self.state == WAITS:
            return lacking if waited > GRACE else ''
        if lacking:
            return lacking
        if self.state == RETIMED:
            self.planner = self.planner or planner
            if planner and planner != self.planner:
                text = 'has ended while it retimed the goal; send it again.'
                return f'The process of {service} {text}'
            if waited > timeout:
                return f'{service} has not answered within {timeout:g} s (retime_timeout).'
        if self.state == EXECUTED and self.heard is not None and now - self.heard > SILENCE:
            return (
                f'The controller has not told for {now - self.heard:.1f} s how far it is: it, or '
                'its machine, has stopped in the middle of the motion. Where the robot is, is not '
                'known.'
            )
        return ''
