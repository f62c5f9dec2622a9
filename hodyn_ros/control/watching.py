"""What a running law sees of its own loop: its delay, and the noise of its positions.

The torque r_m that a motor lacks, as `StateObserver` finds it, is explained by least squares with
exponential forgetting (Ljung 1999, "System Identification", ch. 11): a torque that acts d samples
later than it is thought to lacks -d (tau_k - tau_{k-1}); friction, a wrong inertia, a wrong
spring, its hysteresis and an offset have terms of their own, each passed through the dynamics of
the observer. Where motors turn back, no law of friction holds, and nothing is gathered. Hysteresis
is told from a delay only roughly: 0.5 N m of it may look like 1 ms. What is left is not white: its
part behind a low pass tells how many samples count as one. Motors are weighted by their variances.

The noise of positions is that of their fifth differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.control.kernels import roughness, watch
from hodyn_ros.errors import ControlError
from hodyn_ros.typing import Array

_MEMORY, _SLOW = 5.0, 0.05  # s, of what has been seen, and of the low pass
_SETTLED = 0.05  # s, until what the observer began with is forgotten
_AGAIN = 0.1  # s, between two looks at what has been gathered
_TERMS, _LEAST_ROWS = 7, 50  # that explain, and samples of a motor that count at least
_LEAST, _SURE = 0.75, 5.0  # samples and deviations from which on a delay is another one
_LOOKS, _AGREE = 3, 0.25  # that must agree, and within which share or samples they do
_ROUGH = 3.0  # noise by what is told
_RIDGE = 1e-9  # added to the normal equations, of which the diagonal is one
_FIFTH = 252.0  # variance of fifth differences of white noise of variance one


class DelaySeen(NamedTuple):
    """Delay of a loop as its law sees it.

    Attributes
    ----------
    delay : float
        From a measurement until its command acts, without the half sample for which it is
        held, [s].
    deviation : float
        Standard deviation [s]; infinite if nothing has moved.
    """

    delay: float
    deviation: float


class LoopWatch:
    """Watcher of an observer.

    Parameters
    ----------
    elastic : ndarray of int
        Which of the m motors have springs.
    inertia : ndarray, shape (m,)
        [kg m^2] or [kg]
    positions : int
        How many positions are measured.
    T : float
        Sample time [s].

    Attributes
    ----------
    told : ndarray, shape (positions,), optional
        Standard deviations of the noise of the positions as they are known [rad] or [m].
    """

    def __init__(
        self, elastic: NDArray[np.intp], inertia: Array, positions: int, T: float
    ) -> None:
        self.told: Array | None = None
        self._elastic, self._inertia, self._T = elastic, inertia[elastic], T
        self._forget = float(np.exp(-T / _MEMORY))
        self._slow = float(-np.expm1(-T / _SLOW))
        shapes = {'before': 5, 'shadow': 18, 'explains': 7, 'sums': 60, 'found': 8}
        self._rows = {name: np.zeros((rows, len(elastic))) for name, rows in shapes.items()}
        self._counts = np.zeros(positions)
        self._differences, self._squares = (
            np.zeros((5, positions)),
            np.zeros((2, positions)),
        )
        self._again = max(1, round(_AGAIN / T))
        self._looks: list[float] = []
        self._unsettled = np.zeros_like(self._rows['sums'])
        self._since, self._samples, self._later = 0, 0, (0.0, np.inf)

    def begin(self) -> None:
        """Begin with the next sample, as the observer does; what has been seen stays."""
        for name in ('before', 'shadow'):
            self._rows[name][:] = 0.0
        self._squares[:] = 0.0
        self._counts[:], self._since, self._looks = 0.0, 0, []

    def forget(self) -> None:
        """Forget what has been seen, as of motors that did not get their torques."""
        self.begin()
        self._rows['sums'][:] = 0.0
        self._samples, self._later = 0, (0.0, np.inf)

    def torques(
        self, T: float, gains: Array, applied: Array, load: Array, motors: Array
    ) -> None:
        """Take what the observer has found after a sample.

        Motors without springs are not looked at, nor the first 0.05 s.

        Parameters
        ----------
        T : float
            Time since the sample before [s].
        gains : ndarray, shape (3, m)
            Of the observers of the motors.
        applied : ndarray, shape (m,)
            Motor torques that are thought to have acted [N m] or [N].
        load : ndarray, shape (m,)
            Of the springs on the motors [N m] or [N].
        motors : ndarray, shape (4, m)
            Position, velocity, torque that the model lacks, the same behind a low pass.
        """
        i, rows = self._elastic, self._rows
        if not len(i):
            return
        motors = motors[:, i]
        if self._since == 0:
            rows['before'][:4] = applied[i], motors[1], 0.0 * load[i], load[i]
        self._since += 1
        is_settled = self._since * self._T > _SETTLED
        self._samples += is_settled
        watch(
            len(i),
            T,
            self._forget,
            self._slow,
            self._inertia,
            gains[:, i],
            applied[i],
            load[i],
            motors,
            rows['before'],
            rows['shadow'],
            rows['explains'],
            rows['sums'] if is_settled else self._unsettled,
            rows['found'],
        )

    def positions(self, values: Array, late: float, speed: Array, gated: Array) -> None:
        """Take measured positions; those of joints that move and gated ones do not count.

        Parameters
        ----------
        values : ndarray, shape (n + m,)
            Positions of links and motors [rad] or [m].
        late : float
            How much later they came than they should have [s].
        speed : ndarray, shape (n + m,)
            Estimated velocities [rad/s] or [m/s].
        gated : ndarray, shape (n + m,)
            How many positions of each were gated one after the other until now.
        """
        if self.told is None:
            return
        self._counts[(np.abs(late * speed) > self.told) | (gated > 0.0)] = 0.0
        roughness(
            len(values),
            self._forget,
            values,
            self._counts,
            self._differences,
            self._squares,
        )

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
        if self._samples >= self._again:
            self._samples = 0
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
        sums, count = self._rows['sums'].T, len(self._elastic)
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
        together = 1.0 + 2.0 * _SLOW / self._T * slow / np.where(left > 0.0, left, 1.0)
        variance = together * remaining * inverse[:, 0, 0] / scale[:, 0] ** 2
        self._rows['found'][:7] = c.T
        self._rows['sums'][58:] = 0.0
        seen = (variance > 0.0) & (scale[:, 0] > _RIDGE) & (weights >= _LEAST_ROWS)
        if not seen.any():
            return 0.0, np.inf
        share = 1.0 / variance[seen]
        return float(share @ c[seen, 0] / share.sum()), float(share.sum() ** -0.5)

    def noise(self) -> Array:
        """Standard deviations (n + m,) of the noise of the positions; NaN where none was seen."""
        squares, weights = self._squares
        seen: Array = np.sqrt(squares / _FIFTH / np.where(weights > 0.0, weights, np.nan))
        return seen

    def contradiction(self, told: int, names: Sequence[str]) -> str:
        """What surely differs from what the law was told, in words.

        Parameters
        ----------
        told : int
            Delay that the law was told, in samples.
        names : sequence of str, length n + m
            Whose positions they are.

        Returns
        -------
        str
            On a delay that three looks agree on, or a position that is three times as noisy as its
            resolution says; empty if there is neither.
        """
        T, seen = self._T, self.delay(told)
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
        if self.told is not None:
            noise = self.noise()
            rough = noise / self.told
            i = int(np.argmax(np.nan_to_num(rough)))
            if rough[i] > _ROUGH:
                return (
                    f'The position of {names[i]} is {rough[i]:.3g} times as noisy as its '
                    f'resolution says: {noise[i]:.2g} rad or m, standard deviation.'
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
