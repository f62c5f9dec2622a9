"""A lever whose pivot moves: AwAS-II. One motor turns with the link, one moves the pivot to x.

With d = theta - q the energy is U = Ks R(x)^2 sin(d)^2, R(x) = (L / r_t) x / (L - x); its
derivatives are the published torque Q = Ks R^2 sin 2d, the stiffness 2 Ks R^2 cos 2d and the force
2 Ks R R' sin(d)^2 on the pivot. The law and its inverse are in `kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.kernels import ROUNDING
from hodyn_ros.actuators.vsa.model import VsaModel
from hodyn_ros.checks import set_checked
from hodyn_ros.errors import ActuatorError
from hodyn_ros.typing import Array

LARGEST_DEFLECTION = 0.25 * np.pi


@dataclass(frozen=True)
class AwasII(VsaModel):
    """AwAS-II: Q = -2 Ks ((L / r_t) x / (L - x))^2 sin(q - theta) cos(q - theta).

    The coordinate of motor 2 is x / pitch. With the default pitch it is the position x of the
    pivot itself, and its inertia is a mass [kg], its torque a force [N].

    An `ActuatorError` is raised if a parameter is not above zero, or too large.

    Attributes
    ----------
    Ks : float
        [N m]
    L : float
        Length of the lever [m]; x stays in [0, L).
    r_t : float
        [m]
    max_deflection : float
        Of the link from motor 1 [rad]. By default, and at most, pi / 4, where the stiffness ends.
    max_travel : float or None
        Largest x [m], less than L. By default it only stays below L.
    pitch : float
        Travel of the pivot per radian of motor 2 [m/rad].
    """

    link_coupling: ClassVar[tuple[float, float]] = (1.0, 0.0)

    Ks: float
    L: float
    r_t: float
    max_deflection: float = LARGEST_DEFLECTION
    max_travel: float | None = None
    pitch: float = 1.0

    def __post_init__(self) -> None:
        set_checked(
            self, ActuatorError, 'Ks', 'L', 'r_t', 'max_deflection', 'pitch', above=0.0
        )
        if self.max_travel is not None:
            set_checked(self, ActuatorError, 'max_travel', above=0.0)
        if self.max_deflection > LARGEST_DEFLECTION:
            raise ActuatorError(
                f'AwasII: max_deflection is {self.max_deflection} rad, expected at most pi / 4: '
                'there the stiffness becomes zero.'
            )
        if self.max_travel is not None and self.max_travel >= self.L:
            raise ActuatorError(
                f'AwasII: max_travel is {self.max_travel} m, expected less than L = {self.L} m: '
                'there the stiffness becomes infinite.'
            )

    @property
    def _highest(self) -> float:
        """Largest Ks R^2 [N m]."""
        if self.max_travel is None:
            return np.inf
        return (
            self.Ks
            * (self.L / self.r_t * self.max_travel / (self.L - self.max_travel)) ** 2
        )

    @property
    def block(self) -> Array:
        """Kind and constants, see `kernels`."""
        gain = self.Ks * (self.L / self.r_t) ** 2
        travel = np.inf if self.max_travel is None else self.max_travel
        return np.array(
            [kernels.LEVER, gain, self.L, self.pitch, self.max_deflection, travel]
        )

    @property
    def effort_range(self) -> tuple[float, float]:
        """Smallest and largest effort on the link that admissible deflections give [N m]."""
        largest = self._highest * float(np.sin(2.0 * self.max_deflection))
        return -largest, largest

    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Interval of the stiffnesses at an effort; see `VsaModel.stiffness_range`."""
        Q = np.abs(np.asarray(effort, dtype=np.float64))
        limit = 2.0 * self.max_deflection
        least, highest = Q / np.sin(limit), self._highest
        reachable = least <= highest * (1.0 + ROUNDING)
        lower = 2.0 * least * np.cos(limit)
        upper = 2.0 * np.sqrt(np.maximum(highest - Q, 0.0)) * np.sqrt(highest + Q)
        # Where the interval is a point, rounding must not turn it round.
        upper = np.maximum(lower, upper)
        return np.where(reachable, lower, np.nan), np.where(reachable, upper, np.nan)
