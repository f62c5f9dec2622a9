"""Two exponential springs side by side: qbmove and the DLR bidirectional antagonistic joint.

Both have springs with the torque k_i sinh(a_i d_i + s_i), d_i = theta_i - q, and motors that turn
with the link. With u_i = a_i d_i + s_i,

    Q = k_1 sinh u_1 + k_2 sinh u_2,    sigma = a_1 k_1 cosh u_1 + a_2 k_2 cosh u_2.

For a_1 = a_2 = a, (sigma / a, Q) is a sum of two vectors of the hyperbolic plane with the lengths
k_1 and k_2, so that the inverse is the law of cosines of that plane; otherwise it is a root of one
variable. Two motions give the same (Q, sigma); the one here has motor 1 ahead of motor 2, that is
a_1 tanh u_1 > a_2 tanh u_2. For the other one exchange the springs, and with them the motors.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.actuator import checked_number
from hodyn_ros.actuators.rootfinding import increasing_root
from hodyn_ros.actuators.vsa_model import ROUNDING, Elastic, VsaModel, checked_pair
from hodyn_ros.actuators.vsa_series import sinh_cosh

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

# At the smallest stiffness that an effort allows, u_1 and u_2 belong together; above it they part
# like the square root of the excess. Closer than this, rounding of the stiffness would leave fewer
# than six digits of the motors' velocities.
EDGE = 1e-5


class _Springs(NamedTuple):
    """Constants of both springs, each of shape (2,)."""

    k: Array
    a: Array
    shift: Array
    limit: Array


class HyperbolicPair(VsaModel):
    """Two springs whose torques are hyperbolic sines of their deflections."""

    @abstractmethod
    def springs(self) -> tuple[tuple[float, float], ...]:
        """Both k [N m], a [1/rad], shift s [-] and the largest deflections [rad]."""

    @cached_property
    def _springs(self) -> _Springs:
        return _Springs(*(np.array(pair) for pair in self.springs()))

    @cached_property
    def effort_range(self) -> tuple[float, float]:
        """Smallest and largest effort on the link that admissible deflections give [N m]."""
        k, a, shift, limit = self._springs
        ends = []
        # The effort grows with both deflections; motor 1 must stay ahead of motor 2.
        for sign, leading in ((-1.0, 1), (1.0, 0)):
            other = 1 - leading
            u = sign * a * limit + shift
            tanh = a[leading] * np.tanh(u[leading]) / a[other]
            balanced = np.arctanh(tanh) if abs(tanh) < 1.0 else np.copysign(np.inf, tanh)
            u[other] = sign * min(sign * u[other], sign * balanced)
            with np.errstate(over='ignore'):
                ends.append(float(k @ np.sinh(u)))
        return ends[0], ends[1]

    def series(self, deflection: Array) -> Elastic:
        """Efforts and stiffness with their time derivatives; see `VsaModel.series`."""
        k, a, shift, _ = self._springs
        u = a[:, None] * deflection
        u[..., 0] += shift
        sine, cosine = sinh_cosh(u)
        motor_effort = k[:, None] * sine
        stiffness = (a * k) @ cosine
        return Elastic(motor_effort[..., 0, :] + motor_effort[..., 1, :], stiffness, motor_effort)

    def jacobian(self, deflection: Array) -> Array:
        """Partial derivatives of effort and stiffness; see `VsaModel.jacobian`."""
        k, a, shift, _ = self._springs
        u = a * deflection + shift
        return np.stack((a * k * np.cosh(u), a * a * k * np.sinh(u)), axis=-2)

    def is_regular(self, deflection: Array, jacobian: Array) -> Flags:
        """Whether motor 1 is far enough ahead of motor 2; see `VsaModel.is_regular`."""
        _, a, shift, _ = self._springs
        u = a * deflection + shift
        if a[0] == a[1]:
            return np.asarray(u[..., 0] - u[..., 1] > EDGE)
        # By how much both u differ from their values where the stiffness is smallest.
        ahead = a[0] * np.tanh(u[..., 0]) - a[1] * np.tanh(u[..., 1])
        return np.asarray(ahead > EDGE * (a / np.cosh(u) ** 2).sum(axis=-1))

    def completed(self, effort: Array, free: Array) -> Array:
        """Both deflections from that of spring 1; see `VsaModel.completed`."""
        k, a, shift, _ = self._springs
        with np.errstate(over='ignore'):
            first = k[0] * np.sinh(a[0] * free + shift[0])
        second = (np.arcsinh((effort - first) / k[1]) - shift[1]) / a[1]
        return np.stack((np.broadcast_to(free, second.shape), second), axis=-1)

    def range_of_free(self, effort: Array) -> tuple[Array, Array]:
        """Find the ends of the curve of an effort; see `VsaModel.range_of_free`."""
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
        reachable = lower <= upper + slack
        return (
            np.where(reachable, np.minimum(lower, upper), np.nan),
            np.where(reachable, upper, np.nan),
        )

    def deflections_for(self, effort: Array, stiffness: Array) -> Array:
        """Deflections that give an effort and a stiffness; see `VsaModel.deflections_for`."""
        _, a, shift, limit = self._springs
        u, inside = (
            self._even(effort, stiffness) if a[0] == a[1] else self._uneven(effort, stiffness)
        )
        deflection: Array = (u - shift) / a
        inside = inside & (np.abs(deflection) <= limit * (1.0 + ROUNDING)).all(axis=-1)
        if not np.all(inside):
            self._check_ends(np.asarray(inside), effort, stiffness)
        return deflection

    def _even(self, effort: Array, stiffness: Array) -> tuple[Array, Flags]:
        """Both u for a_1 = a_2, and whether the stiffness is not too small."""
        k, a, _, _ = self._springs
        p, total = stiffness / a[0], k[0] + k[1]
        inside = p >= np.hypot(effort, total) * (1.0 - ROUNDING)
        # The square of the length of the sum in the hyperbolic plane.
        square = np.where(inside, np.maximum((p - effort) * (p + effort), total**2), total**2)
        # The law of cosines for half the difference of both u, and the mean of both.
        half = np.arcsinh(np.sqrt((square - total**2) / (4.0 * k[0] * k[1])))
        mean = np.arcsinh(effort / np.sqrt(square))
        if k[0] != k[1]:
            mean = mean - np.arctanh((k[0] - k[1]) / total * np.tanh(half))
        return np.stack((mean + half, mean - half), axis=-1), np.asarray(inside)

    def _uneven(self, effort: Array, stiffness: Array) -> tuple[Array, Flags]:
        """Both u for any a_1 and a_2, and whether the stiffness is not too small."""
        k, a, _, _ = self._springs
        shape = np.broadcast(effort, stiffness).shape
        Q = np.broadcast_to(effort, shape).ravel()
        sigma = np.broadcast_to(stiffness, shape).ravel()

        def excess(u: Array) -> tuple[Array, Array]:
            cosine, second = np.cosh(u), (Q - k[0] * np.sinh(u)) / k[1]
            second_cosine = np.sqrt(1.0 + second * second)
            found = a[0] * k[0] * cosine + a[1] * k[1] * second_cosine
            slope = k[0] * cosine * (a[0] * np.tanh(u) - a[1] * second / second_cosine)
            # Where the slope is negative, motor 1 is not ahead.
            return np.where(slope > 0.0, np.log(found / sigma), -np.inf), slope / found

        # Alone, spring 1 would need less than `lower` for the effort, and as much as `upper` for
        # the stiffness.
        lower = np.minimum(np.arcsinh(Q / k[0]), 0.0)
        upper = np.maximum(np.arccosh(np.maximum(sigma / (a[0] * k[0]), 1.0)), lower)
        first = increasing_root(excess, lower, upper, guess=upper)
        sine = (Q - k[0] * np.sinh(first)) / k[1]
        found = a[0] * k[0] * np.cosh(first) + a[1] * k[1] * np.sqrt(1.0 + sine * sine)
        u = np.stack((first, np.arcsinh(sine)), axis=-1)
        return u.reshape((*shape, 2)), (np.abs(found / sigma - 1.0) <= ROUNDING).reshape(shape)

    def _check_ends(self, inside: Flags, effort: Array, stiffness: Array) -> None:
        """Refuse what is outside, but not for rounding at the ends of the interval."""
        lower, upper = self.stiffness_range(effort)
        inside = inside | (
            (stiffness >= lower * (1.0 - ROUNDING)) & (stiffness <= upper * (1.0 + ROUNDING))
        )
        self.check_reach(inside, effort, stiffness)

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
        return found.reshape(np.shape(effort))


@dataclass(frozen=True)
class Qbmove(HyperbolicPair):
    """The qbmove: Q = -k_1 sinh(a_1 (q - theta_1)) - k_2 sinh(a_2 (q - theta_2)).

    Attributes
    ----------
    a : tuple of float, length 2
        [1/rad]; one number stands for both springs.
    k : tuple of float, length 2
        [N m]; one number stands for both springs.
    max_deflection : tuple of float, length 2
        Of each spring [rad]; one number stands for both. Infinite by default.

    Raises
    ------
    ActuatorError
        If a parameter is not above zero.
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
        values = {
            'a': checked_pair('Qbmove', 'a', a),
            'k': checked_pair('Qbmove', 'k', k),
            'max_deflection': checked_pair(
                'Qbmove', 'max_deflection', max_deflection, infinite=True
            ),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def springs(self) -> tuple[tuple[float, float], ...]:
        """Constants of both springs; see `HyperbolicPair.springs`."""
        return self.k, self.a, (0.0, 0.0), self.max_deflection


@dataclass(frozen=True)
class DlrBavs(HyperbolicPair):
    """The DLR bidirectional antagonistic joint, with d_i = theta_i - q.

    Q = -k e^(-ke d_1) (a - b e^(2 ke d_1)) - k e^(-ke d_2) (b - a e^(2 ke d_2)), which is
    c sinh(ke d_1 + s) + c sinh(ke d_2 - s), c = 2 k sqrt(a b), s = log(b / a) / 2.

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

    Raises
    ------
    ActuatorError
        If a parameter is not above zero.
    """

    a: float
    b: float
    k: float
    ke: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        for field in fields(self):
            infinite = field.name == 'max_deflection'
            value = getattr(self, field.name)
            value = checked_number('DlrBavs', field.name, value, infinite=infinite)
            object.__setattr__(self, field.name, value)

    def springs(self) -> tuple[tuple[float, float], ...]:
        """Constants of both springs; see `HyperbolicPair.springs`."""
        c = 2.0 * self.k * float(np.sqrt(self.a * self.b))
        s = 0.5 * float(np.log(self.b / self.a))
        return (c, c), (self.ke, self.ke), (s, -s), (self.max_deflection, self.max_deflection)
