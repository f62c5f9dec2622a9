"""Mechanisms of variable stiffness, with published constants.

Two exponential springs side by side: qbmove and the DLR bidirectional antagonistic joint.

Both have the torques k_i sinh(u_i) with u_i = a_i d_i + s_i and d_i = theta_i - q, so that
Q = k_1 sinh u_1 + k_2 sinh u_2, sigma = a_1 k_1 cosh u_1 + a_2 k_2 cosh u_2. Of the two motions
that give the same (Q, sigma), the one here has motor 1 ahead: a_1 tanh u_1 > a_2 tanh u_2. The
law and its inverse are in `kernels`.

A lever whose pivot moves: AwAS-II. One motor turns with the link, one moves the pivot to x.

With d = theta - q the energy is U = Ks R(x)^2 sin(d)^2, R(x) = (L / r_t) x / (L - x); its
derivatives are the published torque Q = Ks R^2 sin 2d, the stiffness 2 Ks R^2 cos 2d and the force
2 Ks R R' sin(d)^2 on the pivot. The law and its inverse are in `kernels`.

Published constants of variable stiffness actuators, with their sources and warnings.

Few of them are identified on hardware: `status` says which are from a data sheet, which are
examples and which only fill a simulator's fields.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.kernels import ROUNDING
from hodyn_ros.actuators.springs import increasing_root
from hodyn_ros.actuators.vsa.model import VsaModel, checked_pair
from hodyn_ros.checks import check_choice, set_checked
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


# --- Levers --------------------------------------------------------------------------------------


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


# --- Published constants -------------------------------------------------------------------------


class ParameterSet(NamedTuple):
    """Published constants."""

    model: VsaModel
    motor_inertia: float | None
    """Of each motor, where the source has it [kg m^2]."""
    status: str
    """'data sheet', 'example' or 'placeholder'."""
    source: str
    warning: str = ''
    """What not to rely on."""


_NMMI = 'NMMI/ROS-Gazebo-compliant-actuators-plugin, viactors_plugins/src/'

MODELS: Mapping[str, type[VsaModel]] = {
    'qbmove': Qbmove,
    'dlr_bavs': DlrBavs,
    'awas_ii': AwasII,
}
"""Models by the names that configurations use."""

PARAMETER_SETS: Mapping[str, Mapping[str, ParameterSet]] = {
    'qbmove': {
        'nmmi_maker_pro': ParameterSet(
            Qbmove(a=8.9992, k=0.0019, max_deflection=0.8),
            0.0233,
            'example',
            f'{_NMMI}qbmove_plugin.cpp',
            'defaults of a simulator; the inertia is the same for all its actuators',
        ),
        'advanced_datasheet': ParameterSet(
            Qbmove(a=6.7328, k=0.0222, max_deflection=0.8),
            None,
            'data sheet',
            'Richi90/ROS-Gazebo-plugin-qbmove, advanced_plugin/src/advanced_plugin.cpp',
            "called 'datasheet' there; not compared with a data sheet here",
        ),
        'gazebo_2015': ParameterSet(
            Qbmove(a=6.85, k=0.022),
            0.001,
            'example',
            'nickparnenzini/qbmove_plugin, qbmove_project.pdf, table I',
            'constants of a simulation; no largest deflection is given',
        ),
    },
    'dlr_bavs': {
        'nmmi': ParameterSet(
            DlrBavs(a=1.21e-6, b=2.38e-6, k=1.6e5, ke=8.71, max_deflection=0.27),
            None,
            'example',
            f'{_NMMI}bavs_plugin.cpp',
            'defaults of a simulator, after Petit et al.; the file gives no units',
        ),
    },
    'awas_ii': {
        'nmmi': ParameterSet(
            AwasII(Ks=10.0, L=0.05, r_t=0.015, max_deflection=0.3),
            None,
            'placeholder',
            f'{_NMMI}awas_ii_plugin.cpp',
            "the file's comments on units are wrong, and it sets the pivot directly as a preset, "
            'without a motor; do not take these for an actuator',
        ),
    },
}
"""Published constants by model and name."""


def vsa_model(model: str, parameter_set: str | None = None, **parameters: Any) -> VsaModel:
    """Model by name, with published constants, with one's own, or with both.

    Parameters
    ----------
    model : str
        'qbmove', 'dlr_bavs' or 'awas_ii'.
    parameter_set : str, optional
        Name in `PARAMETER_SETS[model]`.
    **parameters
        Parameters of the model; they replace those of the set.

    Returns
    -------
    VsaModel

    Raises
    ------
    ActuatorError
        If a name is unknown, a parameter is missing or a value is not usable.
    """
    check_choice('The model', model, MODELS, ActuatorError)
    kind, sets = MODELS[model], PARAMETER_SETS[model]
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        raise ActuatorError(f'{model} has no parameters {unknown}, it has {names}.')
    if parameter_set is not None:
        check_choice(f'The parameter set of {model}', parameter_set, sets, ActuatorError)
        return replace(sets[parameter_set].model, **parameters)  # type: ignore[type-var]
    required = [field.name for field in fields(kind) if field.default is MISSING]  # type: ignore[arg-type]
    missing = [name for name in required if name not in parameters]
    if missing:
        raise ActuatorError(
            f'{model}: parameters are missing; {missing} are not given. Give them or a '
            f'parameter_set, one of {sorted(sets)}.'
        )
    return kind(**parameters)
