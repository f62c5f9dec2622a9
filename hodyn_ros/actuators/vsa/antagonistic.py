"""Two exponential springs side by side: qbmove and the DLR bidirectional antagonistic joint.

Both have the torques k_i sinh(u_i) with u_i = a_i d_i + s_i and d_i = theta_i - q, so that
Q = k_1 sinh u_1 + k_2 sinh u_2, sigma = a_1 k_1 cosh u_1 + a_2 k_2 cosh u_2. Of the two motions
that give the same (Q, sigma), the one here has motor 1 ahead: a_1 tanh u_1 > a_2 tanh u_2. The
law and its inverse are in `kernels`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.kernels import ROUNDING
from hodyn_ros.actuators.springs import increasing_root
from hodyn_ros.actuators.vsa.model import VsaModel, checked_pair
from hodyn_ros.checks import set_checked
from hodyn_ros.errors import ActuatorError
from hodyn_ros.typing import Array


class HyperbolicPair(VsaModel):
    """Two springs whose torques are hyperbolic sines of their deflections."""

    @abstractmethod
    def springs(self) -> tuple[tuple[float, float], ...]:
        """Both k [N m], a [1/rad], shift s [-] and the largest deflections [rad]."""

    @property
    def _springs(self) -> tuple[Array, ...]:
        return tuple(map(np.array, self.springs()))

    @cached_property
    def block(self) -> Array:
        """Kind and constants, see `kernels`."""
        return np.concatenate(([kernels.PAIR], *self.springs()))

    @cached_property
    def effort_range(self) -> tuple[float, float]:
        """Smallest and largest effort on the link that admissible deflections give [N m]."""
        k, a, shift, limit = self._springs
        ends = []
        # The effort grows with both deflections; motor 1 must stay ahead of motor 2.
        for sign, leading, other in ((-1.0, 1, 0), (1.0, 0, 1)):
            u = sign * a * limit + shift
            tanh = a[leading] * np.tanh(u[leading]) / a[other]
            balanced = np.arctanh(tanh) if abs(tanh) < 1.0 else np.copysign(np.inf, tanh)
            u[other] = sign * min(sign * u[other], sign * balanced)
            with np.errstate(over='ignore'):
                ends.append(float(k @ np.sinh(u)))
        return ends[0], ends[1]

    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Interval of the stiffnesses at an effort; see `VsaModel.stiffness_range`."""
        k, a, shift, _ = self._springs
        effort = np.asarray(effort, dtype=np.float64)
        ends = []
        for end in self._range_of_first(effort):
            finite = np.isfinite(end)
            d = np.where(finite, end, 0.0)
            with np.errstate(over='ignore'):
                pull = k[0] * np.sinh(a[0] * d + shift[0])
            second = (np.arcsinh((effort - pull) / k[1]) - shift[1]) / a[1]
            pair = np.where(finite[..., None], np.stack((d, second), axis=-1), 0.0)
            _, stiffness = self.effort_and_stiffness(pair)
            ends.append(np.where(finite, stiffness, end))
        # Where the interval is a point, rounding must not turn it round.
        return ends[0], np.maximum(*ends)

    def _range_of_first(self, effort: Array) -> tuple[Array, Array]:
        """Smallest and largest deflection (...,) of spring 1 on the curves of efforts (...,).

        The stiffness increases along the curve, from its smallest value to that at the upper end,
        which may be infinite. Both are NaN where no admissible deflections give the effort.
        """
        k, a, shift, limit = self._springs
        with np.errstate(over='ignore'):
            ends = np.array([-limit[1], limit[1]])
            least, most = k[1] * np.sinh(a[1] * ends + shift[1])
        # Where spring 2 is at its limits, and where the stiffness is smallest.
        highest = (np.arcsinh((effort - least) / k[0]) - shift[0]) / a[0]
        lowest = (np.arcsinh((effort - most) / k[0]) - shift[0]) / a[0]
        softest = (self._softest(effort) - shift[0]) / a[0]
        lower = np.maximum(np.maximum(lowest, softest), -limit[0])
        upper = np.minimum(highest, limit[0])
        slack = ROUNDING * np.maximum(1.0, np.abs(lower))
        upper = np.where(lower <= upper + slack, upper, np.nan)
        return np.minimum(lower, upper), upper

    def _softest(self, effort: Array) -> Array:
        """Find the u_1 of the smallest stiffness at an effort: a_1 tanh u_1 = a_2 tanh u_2."""
        k, a, _, _ = self._springs
        if a[0] == a[1]:
            return np.asarray(np.arcsinh(effort / (k[0] + k[1])))

        def excess(u: Array) -> tuple[Array, Array]:
            sine = (flat - k[0] * np.sinh(u)) / k[1]
            other = np.arcsinh(sine)
            value = a[0] * np.tanh(u) - a[1] * np.tanh(other)
            cosine = np.sqrt(1.0 + sine * sine)
            slope = a[0] / np.cosh(u) ** 2 + a[1] * k[0] * np.cosh(u) / (k[1] * cosine**3)
            return value, slope

        flat = np.asarray(effort, dtype=np.float64).ravel()
        # One spring alone would need this much; both share it.
        alone = np.arcsinh(flat / k[0])
        found = increasing_root(excess, np.minimum(alone, 0.0), np.maximum(alone, 0.0))
        result: Array = found.reshape(np.shape(effort))
        return result


@dataclass(frozen=True)
class Qbmove(HyperbolicPair):
    """The qbmove: Q = -k_1 sinh(a_1 (q - theta_1)) - k_2 sinh(a_2 (q - theta_2)).

    An `ActuatorError` is raised if a parameter is not above zero.

    Attributes
    ----------
    a : tuple of float, length 2
        [1/rad]; one number stands for both springs.
    k : tuple of float, length 2
        [N m]; one number stands for both springs.
    max_deflection : tuple of float, length 2
        Of each spring [rad]; one number stands for both. Infinite by default.
    """

    a: tuple[float, float]
    k: tuple[float, float]
    max_deflection: tuple[float, float] = (np.inf, np.inf)

    def __init__(
        self,
        a: float | tuple[float, float],
        k: float | tuple[float, float],
        max_deflection: float | tuple[float, float] = np.inf,
    ) -> None:
        for name, value in (('a', a), ('k', k), ('max_deflection', max_deflection)):
            pair = checked_pair('Qbmove', name, value, infinite=name == 'max_deflection')
            object.__setattr__(self, name, pair)

    def springs(self) -> tuple[tuple[float, float], ...]:
        """Constants of both springs; see `HyperbolicPair.springs`."""
        return self.k, self.a, (0.0, 0.0), self.max_deflection


@dataclass(frozen=True)
class DlrBavs(HyperbolicPair):
    """The DLR bidirectional antagonistic joint, with d_i = theta_i - q.

    Q = -k e^(-ke d_1) (a - b e^(2 ke d_1)) - k e^(-ke d_2) (b - a e^(2 ke d_2)), which is
    c sinh(ke d_1 + s) + c sinh(ke d_2 - s), c = 2 k sqrt(a b), s = log(b / a) / 2.

    An `ActuatorError` is raised if a parameter is not above zero.

    Attributes
    ----------
    a, b : float
        Weights of both exponentials [-].
    k : float
        [N m]
    ke : float
        [1/rad]
    max_deflection : float
        Of each spring [rad]. Infinite by default.
    """

    a: float
    b: float
    k: float
    ke: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'a', 'b', 'k', 'ke', above=0.0)
        set_checked(self, ActuatorError, 'max_deflection', above=0.0, infinite=True)

    def springs(self) -> tuple[tuple[float, float], ...]:
        """Constants of both springs; see `HyperbolicPair.springs`."""
        c = 2.0 * self.k * float(np.sqrt(self.a * self.b))
        s = 0.5 * float(np.log(self.b / self.a))
        return (
            (c, c),
            (self.ke, self.ke),
            (s, -s),
            (self.max_deflection, self.max_deflection),
        )
