"""Reference motions with exact derivatives, for demonstrations and checks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BPoly

from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]

N_DERIVATIVES = 5


class Sinusoids(NamedTuple):
    """Joint velocities A sin(2 pi t / T) about a centre, faded in from and out to standstill."""

    amplitude: Array
    """A, shape (n,) [rad/s]."""
    period: Array
    """T, shape (n,) [s]."""
    centre: Array
    """Position from which the motion starts and where it ends, shape (n,) [rad]."""
    ramp: float
    """Duration of the fading [s]; class C4."""
    duration: float
    """[s]"""

    def motion(self, times: ArrayLike) -> Array:
        """Positions and their first four time derivatives.

        Parameters
        ----------
        times : array-like, shape (N,)
            From the start [s]; before the start and after the end the joints rest.

        Returns
        -------
        ndarray, shape (N, 5, n)
        """
        t = np.asarray(times, dtype=np.float64)
        k = np.arange(N_DERIVATIVES)
        omega = 2.0 * np.pi / self.period
        # The k-th derivative of -A/omega cos(omega t) is -A omega^(k-1) cos(omega t + k pi/2).
        phase = t[:, None, None] * omega + 0.5 * np.pi * k[:, None]
        wave = -self.amplitude * omega ** (k[:, None] - 1.0) * np.cos(phase)
        motion: Array = leibniz.multiplication(self._window(t)) @ wave
        motion[:, 0] += self.centre
        return motion

    def _window(self, t: Array) -> Array:
        """Series of the factor that rises from 0 to 1 and falls back, shape (N, 5)."""
        knots = [0.0, self.ramp, self.duration - self.ramp, self.duration]
        values = [[level, 0.0, 0.0, 0.0, 0.0] for level in (0.0, 1.0, 1.0, 0.0)]
        window = BPoly.from_derivatives(knots, values)
        t = np.clip(t, 0.0, self.duration)
        return np.stack([window(t, nu) for nu in range(N_DERIVATIVES)], axis=-1)


def panda_sinusoids() -> Sinusoids:
    """Feasible motion of the Franka Panda from the sinusoids used with its identified model.

    Amplitudes and periods: test trajectory of Kumar and Mueller after eq. (31) and Table I of Gaz
    et al., RA-L 4(4), 2019. As coded there it leaves the position limits of joints 4 and 6 and the
    velocity limits of joints 1 and 2: here it is scaled, centred in the workspace and faded.
    """
    return Sinusoids(
        amplitude=0.9 * np.array([2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5]),
        period=np.array([3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06]),
        centre=np.array([0.0, -0.3, 0.0, -1.7, 0.0, 1.7, 0.0]),
        ramp=2.0,
        duration=8.0,
    )
