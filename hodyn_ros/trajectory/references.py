"""Reference motions with exact derivatives, for demonstrations and checks."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.lie import Jet
from hodyn_ros.trajectory.spline import ORDER, MotionSpline, fit_spline
from hodyn_ros.typing import Array


@lru_cache(maxsize=4)
def _window(ramp: float, duration: float) -> MotionSpline:
    """Factor that rises from 0 to 1 and falls back, at rest between.

    Parameters
    ----------
    ramp : float
        Duration of the rise, and of the fall [s].
    duration : float
        Of the whole [s].

    Returns
    -------
    MotionSpline
        Of one column, from the time zero on.
    """
    return fit_spline([0.0, ramp, duration - ramp, duration], [[0.0], [1.0], [1.0], [0.0]])


class Sinusoids(NamedTuple):
    """Joint velocities A sin(2 pi t / T) about a centre, faded in from and out to standstill.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.trajectory import Sinusoids
    >>> amplitude, period, centre = np.array([[0.4], [2.0], [1.0]])
    >>> swing = Sinusoids(amplitude, period, centre, ramp=1.0, duration=6.0)
    >>> swing.motion([0.0, 2.5, 6.0])[:, :2, 0].round(3) + 0.0
    array([[1. , 0. ],
           [1. , 0.4],
           [1. , 0. ]])
    """

    amplitude: ArrayLike
    """A, shape (n,) [rad/s]."""
    period: ArrayLike
    """T, shape (n,) [s]."""
    centre: ArrayLike
    """Position from which the motion starts and where it ends, shape (n,) [rad]."""
    ramp: float
    """Duration of the fading [s]; class C4."""
    duration: float
    """[s]"""

    def motion(self, times: ArrayLike) -> Array:
        """Position to snap, shape (N, 5, n), at times (N,) [s]; at rest before and after it.

        Parameters
        ----------
        times : array-like, shape (N,)
            [s]

        Returns
        -------
        ndarray, shape (N, 5, n)
            [rad/s^k]
        """
        t = np.asarray(times, dtype=np.float64)
        k = np.arange(ORDER)
        omega = 2.0 * np.pi / np.asarray(self.period)
        # The k-th derivative of -A/omega cos(omega t) is -A omega^(k-1) cos(omega t + k pi/2).
        phase = t[:, None, None] * omega + 0.5 * np.pi * k[:, None]
        wave = -np.asarray(self.amplitude) * omega ** (k[:, None] - 1.0) * np.cos(phase)
        factor = _window(self.ramp, self.duration)(np.clip(t, 0.0, self.duration))[..., 0]
        motion = (Jet.along(factor[..., None], 1) * Jet.along(wave, 1)).array(1)
        motion[:, 0] += np.asarray(self.centre)
        return motion


def panda_sinusoids() -> Sinusoids:
    """Feasible motion of the Franka Panda from the sinusoids used with its identified model.

    Amplitudes and periods: test trajectory of Kumar and Mueller after eq. (31) and Table I of Gaz
    et al., RA-L 4(4), 2019. As coded there it leaves the position limits of joints 4 and 6 and the
    velocity limits of joints 1 and 2: here it is scaled, centred in the workspace and faded.

    Returns
    -------
    Sinusoids
        Of seven joints and 8 s.

    Examples
    --------
    >>> from hodyn_ros.trajectory import panda_sinusoids
    >>> sinusoids = panda_sinusoids()
    >>> sinusoids.duration, sinusoids.motion([1.0, 4.0]).shape
    (8.0, (2, 5, 7))
    """
    return Sinusoids(
        amplitude=0.9 * np.array([2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5]),
        period=np.array([3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06]),
        centre=np.array([0.0, -0.3, 0.0, -1.7, 0.0, 1.7, 0.0]),
        ramp=2.0,
        duration=8.0,
    )


def panda_swing() -> MotionSpline:
    """Path of the Franka Panda from one side to the other and back, standing still at both.

    Its durations are those of a parameter, not of a motion that the robot can follow: see
    `hodyn_ros.retiming.retime`.

    Returns
    -------
    MotionSpline
        Of seven joints.

    Examples
    --------
    >>> from hodyn_ros.trajectory import panda_swing
    >>> panda_swing().states.shape
    (6, 5, 7)
    """
    middle = [0.0, 0.5, 0.0, -1.7, 0.0, 2.2, 0.8]
    right = [0.9, -0.5, 0.0, -2.2, 0.0, 1.8, 0.8]
    left = [-0.9, *right[1:]]
    return fit_spline(
        [0.0, 0.6, 0.7, 1.3, 1.4, 2.2], [left, middle, middle, right, right, left]
    )
