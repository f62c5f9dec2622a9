"""What a running law sees of its own loop: its delay.

The torque r_m that a motor lacks, as `StateObserver` finds it, is explained by least squares with
exponential forgetting (Ljung 1999, "System Identification", ch. 11): a torque that acts d samples
later than it is thought to lacks -d (tau_k - tau_{k-1}); friction, a wrong inertia, a wrong
spring, its hysteresis and an offset have terms of their own, each passed through the dynamics of
the observer. Where motors turn back, no law of friction holds, and nothing is gathered. Hysteresis
is told from a delay only roughly: 0.5 N m of it may look like 1 ms. What is left is not white: its
part behind a low pass tells how many samples count as one. Motors are weighted by their variances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.control.records import Record
from hodyn_ros.errors import ControlError
from hodyn_ros.typing import Array

WATCHED, SLOWLY_WATCHED = 5.0, 0.05  # s, of what has been seen, and of its low pass
_AGAIN = 0.1  # s, between two looks at what has been gathered
_TERMS, _LEAST_ROWS = 7, 50  # that explain, and samples of a motor that count at least
_LEAST, _SURE = 0.75, 5.0  # samples and deviations from which on a delay is another one
_LOOKS, _AGREE = 3, 0.25  # that must agree, and within which share or samples they do
_RIDGE = 1e-9  # added to the normal equations, of which the diagonal is one


class DelaySeen(NamedTuple):
    """Delay of a loop as its law sees it.

    Attributes
    ----------
    delay : float
        From a measurement until its command acts, without the half sample for which it is
        held, [s].
    deviation : float
        Standard deviation [s]; infinite if nothing has moved.

    Examples
    --------
    >>> from hodyn_ros.control import DelaySeen
    >>> delay, deviation = DelaySeen(delay=0.002, deviation=0.0001)
    >>> f'{1e3 * delay:.1f} +- {1e3 * deviation:.1f} ms'
    '2.0 +- 0.1 ms'
    """

    delay: float
    deviation: float


class LoopWatch:
    """Delay of the loop of an observer, from what `suspicion.watch` has gathered.

    Parameters
    ----------
    elastic : ndarray of int
        Which of the m motors have springs.
    memory : Record
        Of the observer.
    T : float
        Sample time [s].
    """

    def __init__(self, elastic: NDArray[np.intp], memory: Record, T: float) -> None:
        self._elastic, self._memory, self._T = elastic, memory, T
        self._again = max(1, round(_AGAIN / T))
        self._looks: list[float] = []
        self._later = 0.0, np.inf

    def forget(self) -> None:
        """Forget what has been seen, as of motors that did not get their torques."""
        self._memory.fill({'settling': 0.0, 'seen': 0.0, 'sums': 0.0})
        self._later = 0.0, np.inf

    def delay(self, told: int) -> DelaySeen:
        """Delay of the loop as it was seen in about the last 5 s.

        Parameters
        ----------
        told : int
            Delay that the law was told, in samples.

        Returns
        -------
        DelaySeen
            Anew after 0.1 s, otherwise as before.
        """
        if self._memory.seen >= self._again:
            self._memory.seen = 0.0
            self._later = self._explained()
        later, deviation = self._later
        return DelaySeen((told + later) * self._T, deviation * self._T)

    def _explained(self) -> tuple[float, float]:
        """Least squares for what explains the torques that motors lack.

        Returns
        -------
        later : float
            Samples by which torques act later than they are thought to; 0 if nothing has moved.
        deviation : float
            Its standard deviation in samples; infinite if nothing has moved.
        """
        o, count = self._memory, len(self._elastic)
        sums = o.sums[:, self._elastic].T
        A, b = sums[:, :49].reshape(count, 7, 7), sums[:, 49:56]
        scale = np.sqrt(np.diagonal(A, axis1=1, axis2=2))
        scale = np.where(scale > 0.0, scale, 1.0)
        inverse = np.linalg.inv(
            A / (scale[:, :, None] * scale[:, None]) + _RIDGE * np.eye(7)
        )
        c = np.einsum('ijk,ik->ij', inverse, b / scale) / scale
        weights, squares, left, slow = sums[:, 56:].T
        remaining = np.maximum(squares - np.sum(b * c, axis=1), 0.0)
        remaining /= np.maximum(weights - _TERMS, 1.0)
        # So many samples are one, since what is left is not white.
        together = 1.0 + 2.0 * SLOWLY_WATCHED / self._T * slow / np.where(
            left > 0.0, left, 1.0
        )
        variance = together * remaining * inverse[:, 0, 0] / scale[:, 0] ** 2
        o.found[:7, self._elastic] = c.T
        o.sums[58:] = 0.0
        seen = (variance > 0.0) & (scale[:, 0] > _RIDGE) & (weights >= _LEAST_ROWS)
        if not seen.any():
            return 0.0, np.inf
        share = 1.0 / variance[seen]
        return float(share @ c[seen, 0] / share.sum()), float(share.sum() ** -0.5)

    def contradiction(self, told: int) -> str:
        """What surely differs from what the law was told, in words.

        Parameters
        ----------
        told : int
            Delay that the law was told, in samples.

        Returns
        -------
        str
            On a delay that three looks agree on; empty if there is none.
        """
        T, seen = self._T, self.delay(told)
        if self._memory.settling <= 1.0:
            self._looks = []
        later = seen.delay / T - told
        # Where joints slip and stick at first, delays seem to come and go.
        self._looks = [*self._looks[1 - _LOOKS :], later]
        agree = np.ptp(self._looks) <= _AGREE * max(1.0, abs(later))
        is_sure = abs(later) * T > max(_LEAST * T, _SURE * seen.deviation)
        if is_sure and agree and len(self._looks) == _LOOKS:
            if seen.delay < 0.0 and -seen.delay > max(_LEAST * T, _SURE * seen.deviation):
                return (
                    'Torques seem to act before the measurement that they answer, which friction '
                    'of the motors does that the model lacks: give friction.'
                )
            return (
                f'Torques act {1e3 * seen.delay:.3g} ms (+- {1e3 * seen.deviation:.2g}) after the '
                f'measurement that they answer, not {1e3 * told * T:.3g} ms: give delay, if '
                'springs have no hysteresis, which looks alike.'
            )
        return ''


def probing_motion(
    position: ArrayLike,
    sample_period: float,
    *,
    lead: float = 0.0,
    amplitude: float = 0.02,
    frequency: float = 2.0,
    duration: float = 4.0,
) -> Array:
    """Small motion, from rest to rest, in which a law sees the delay of its loop.

    Each joint moves by A / 8 (1 - cos x)^3 to one side, with a frequency of its own: joint j as
    many times as are next to (1 + j / 10) `frequency` `duration`.

    Parameters
    ----------
    position : array-like, shape (n,)
        Where it begins and ends [rad] or [m].
    sample_period : float
        [s]
    lead : float
        How much later than a measurement the wanted motion is to be [s]: that of the law.
    amplitude : float
        A [rad] or [m], to be given with its sign.
    frequency : float
        Of the first joint [Hz].
    duration : float
        [s]

    Returns
    -------
    ndarray, shape (N, 5, n)
        Position and four time derivatives.

    Raises
    ------
    ControlError
        If an argument cannot be used.

    Examples
    --------
    >>> from hodyn_ros.control import probing_motion
    >>> motion = probing_motion([0.3, 0.5], 0.001)
    >>> motion.shape, motion[:, 0].max(axis=0).round(3), motion[-1, 0]
    ((4001, 5, 2), array([0.32, 0.52]), array([0.3, 0.5]))
    """
    T = checked_number('sample_period', sample_period, ControlError, above=0.0, unit='s')
    for name, value in (('amplitude', amplitude), ('lead', lead)):
        checked_number(name, value, ControlError)
    checked_number('frequency', frequency, ControlError, above=0.0, unit='Hz')
    checked_number('duration', duration, ControlError, above=0.0, unit='s')
    rest = finite_array('The position', position, ControlError)
    times = np.clip(T * np.arange(round(duration / T) + 1) + lead, 0.0, duration)
    turns = np.maximum(
        1.0, np.round((1.0 + 0.1 * np.arange(len(rest))) * frequency * duration)
    )
    speed = 2.0 * np.pi * turns / duration
    motion = np.zeros((len(times), 5, len(rest)))
    # (1 - cos x)^3 = 5/2 - 15/4 cos x + 3/2 cos 2x - 1/4 cos 3x
    for k, share in enumerate((2.5, -3.75, 1.5, -0.25)):
        for order in range(5):
            angle = k * speed * times[:, None] + 0.5 * np.pi * order
            motion[:, order] += (
                amplitude / 8.0 * share * (k * speed) ** order * np.cos(angle)
            )
    motion[:, 0] += rest
    return motion
