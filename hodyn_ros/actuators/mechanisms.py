"""Mechanisms of variable stiffness: springs between two motors and a link, and their constants.

The elastic energy U depends on the deflections d_i = y_i - c_i q of the motors' coordinates y_i;
c_i is 0 for a motor that only adjusts the stiffness. Motors hold t_i = dU/dd_i, the link gets
Q = sum of c_i t_i with the stiffness sigma = -dQ/dq. Here is the law with its derivatives, in
`kernels` the deflections that give a torque and a stiffness. Source: Palli, Melchiorri and De Luca
2008, "On the feedback linearization of robots with variable joint stiffness".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.kernels import ROUNDING
from hodyn_ros.checks import check_choice, first_not_finite, set_checked
from hodyn_ros.errors import ActuatorError, DeflectionError
from hodyn_ros.lie.jets import Jet, sine_cosine, sinh_cosh
from hodyn_ros.typing import Array


class Elastic(NamedTuple):
    """What the springs do, with time derivatives along the last axis.

    Examples
    --------
    Effort, stiffness and efforts of both motors of a qbmove whose springs pull:

    >>> from hodyn_ros.actuators import Qbmove
    >>> effort, stiffness, motor_effort = Qbmove(a=7.0, k=0.02).series([[0.3], [-0.1]])
    >>> effort.round(3), stiffness.round(3), motor_effort[:, 0].round(3)
    (array([0.065]), array([0.756]), array([ 0.08 , -0.015]))
    """

    effort: Array
    """On the link (..., K) [N m], positive where it accelerates the link to positive q."""
    stiffness: Array
    """-d effort / dq with the motors held, shape (..., K) [N m/rad]."""
    motor_effort: Array
    """What each motor must hold, shape (..., 2, K) [N m], or what belongs to its coordinate."""


class VsaModel(ABC):
    """Springs between two motors and a link: two exponential ones or a lever.

    Attributes
    ----------
    link_coupling : tuple of float
        c_1, c_2 in d_i = y_i - c_i q.

    Examples
    --------
    >>> from hodyn_ros.actuators import VsaModel, vsa_model
    >>> joint: VsaModel = vsa_model('qbmove', a=7.0, k=0.02)
    >>> joint.jacobian([0.1, 0.1]).round(3)
    array([[0.176, 0.176],
           [0.743, 0.743]])
    """

    link_coupling: ClassVar[tuple[float, float]] = (1.0, 1.0)

    @property
    @abstractmethod
    def block(self) -> tuple[float, ...]:
        """Kind and constants as `kernels` reads them."""

    @property
    @abstractmethod
    def effort_range(self) -> tuple[float, float]:
        """Smallest and largest effort on the link that some admissible deflections give [N m]."""

    @abstractmethod
    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Smallest and largest stiffness (...,) [N m/rad] at efforts (...,) on the link [N m].

        The largest is infinite where nothing limits the deflection. Both are NaN where the effort
        itself is out of reach, see `effort_range`.
        """

    @abstractmethod
    def series(self, deflection: ArrayLike) -> Elastic:
        """Efforts and stiffness with their time derivatives, along deflections (..., 2, K)."""

    def jacobian(self, deflection: ArrayLike) -> Array:
        """Partial derivatives (..., 2, 2) of effort (first row) and stiffness by deflections."""
        d = np.asarray(deflection, dtype=np.float64)
        moved = np.zeros((2, *d.shape, 2))
        moved[..., 0] = d
        moved[0, ..., 0, 1] = moved[1, ..., 1, 1] = 1.0
        found = self.series(moved)
        rates = np.stack((found.effort[..., 1], found.stiffness[..., 1]), axis=-1)
        return np.moveaxis(rates, 0, -1)

    def check(self, effort: Array, stiffness: Array, is_edge: bool = False) -> None:
        """Refuse efforts and stiffnesses (...) outside of the reachable set, but for rounding.

        With `is_edge` also the nearest one to its edge of smallest stiffness, where deflections do
        not depend smoothly on effort and stiffness. A `DeflectionError` is raised.
        """
        lower, upper = self.stiffness_range(effort)
        inside = (stiffness >= lower * (1.0 - ROUNDING)) & (
            stiffness <= upper * (1.0 + ROUNDING)
        )
        sample = first_not_finite(np.where(inside, 0.0, np.nan))
        is_outside = sample is not None
        if sample is None:
            if not is_edge:
                return
            above = np.asarray(stiffness - lower)
            sample = tuple(map(int, np.unravel_index(above.argmin(), above.shape)))
        # Adding zero makes zeros positive, which reads better.
        given = (effort, stiffness, lower, upper)
        Q, sigma, low, high = (float(np.asarray(x)[sample]) + 0.0 for x in given)
        reason = (
            f'is out of reach: at this effort it can be {low:.6g} to {high:.6g} N m/rad'
        )
        if np.isnan(low):
            smallest, largest = self.effort_range
            reason = (
                'is out of reach: no admissible deflection gives this effort, which can be '
                f'{smallest + 0.0:.6g} to {largest:.6g} N m'
            )
        elif not is_outside:
            reason = (
                'is the smallest that this effort allows. There it does not determine the '
                f'velocities of the motors; choose one above {low:.6g}, up to {high:.6g} N m/rad'
            )
        at = f' (sample {", ".join(map(str, sample))})' if sample else ''
        raise DeflectionError(
            f'{self}: at an effort of {Q:.6g} N m a stiffness of {sigma:.6g} N m/rad{at} '
            f'{reason}.',
            sample=sample,
        )


# --- Two springs side by side -------------------------------------------------------------------


class HyperbolicPair(VsaModel):
    """Two equal springs whose torques are hyperbolic sines: t_i = k sinh(a d_i +- s).

    Q = t_1 + t_2, sigma = a k (cosh(a d_1 + s) + cosh(a d_2 - s)). Of the two motions that give
    the same (Q, sigma), the one here has motor 1 ahead: a d_1 + s > a d_2 - s.
    """

    @property
    @abstractmethod
    def springs(self) -> tuple[float, float, float, float]:
        """K [N m], a [1/rad], s [-] and the largest deflection of both [rad]."""

    @property
    def block(self) -> tuple[float, ...]:
        """Kind and constants as `kernels` reads them."""
        return kernels.PAIR, *self.springs

    @property
    def effort_range(self) -> tuple[float, float]:
        """Smallest and largest effort on the link that admissible deflections give [N m]."""
        k, a, s, most = self.springs
        # Both springs pull as far as they may, motor 1 ahead of motor 2.
        ends = np.array([a * most + s, min(a * most - s, a * most + s)])
        with np.errstate(over='ignore'):
            largest = k * float(np.sinh(ends).sum())
        return -largest, largest

    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Interval of the stiffnesses at an effort; see `VsaModel.stiffness_range`."""
        k, a, s, most = self.springs
        pull = np.asarray(effort, dtype=np.float64) / k
        ends = []
        with np.errstate(over='ignore'):
            # Of u_1 = a d_1 + s; along the curve of an effort the stiffness grows with it.
            ahead, first = np.arcsinh(0.5 * pull), s - a * most
            lower = np.maximum(
                np.maximum(ahead, first), np.arcsinh(pull + np.sinh(s - a * most))
            )
            last = s + a * most
            upper = np.minimum(last, np.arcsinh(pull + np.sinh(last)))
            slack = ROUNDING * np.maximum(1.0, np.abs(lower))
            upper = np.where(lower <= upper + slack, upper, np.nan)
            for u in (np.minimum(lower, upper), upper):
                other = np.hypot(1.0, pull - np.sinh(u))
                ends.append(a * k * (np.cosh(u) + other))
        # Where the interval is a point, rounding must not turn it round.
        return ends[0], np.maximum(*ends)

    def series(self, deflection: ArrayLike) -> Elastic:
        """Efforts and stiffness along deflections; see `VsaModel.series`."""
        k, a, s, _ = self.springs
        u = Jet.along(np.asarray(deflection, dtype=np.float64), -1) * a + np.array([s, -s])
        sine, cosine = (jet.array(-1) for jet in sinh_cosh(u))
        return Elastic(k * sine.sum(axis=-2), a * k * cosine.sum(axis=-2), k * sine)


@dataclass(frozen=True)
class Qbmove(HyperbolicPair):
    """The qbmove: Q = -k sinh(a (q - theta_1)) - k sinh(a (q - theta_2)).

    An `ActuatorError` is raised if a parameter is not above zero.

    Attributes
    ----------
    a : float
        [1/rad]
    k : float
        [N m]
    max_deflection : float
        Of each spring [rad]. Infinite by default.

    Examples
    --------
    >>> from hodyn_ros.actuators import Qbmove
    >>> joint = Qbmove(a=7.0, k=0.02)
    >>> least, _ = joint.stiffness_range([0.0, 1.0])
    >>> least.round(3)
    array([0.28 , 7.006])
    """

    a: float
    k: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'a', 'k', above=0.0)
        set_checked(self, ActuatorError, 'max_deflection', above=0.0, infinite=True)

    @property
    def springs(self) -> tuple[float, float, float, float]:
        """Constants of both springs; see `HyperbolicPair.springs`."""
        return self.k, self.a, 0.0, self.max_deflection


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

    Examples
    --------
    >>> from hodyn_ros.actuators import DlrBavs
    >>> joint = DlrBavs(a=1.0, b=2.0, k=0.5, ke=10.0)
    >>> joint.series([[0.1], [0.1]]).effort.round(3)
    array([3.526])
    """

    a: float
    b: float
    k: float
    ke: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'a', 'b', 'k', 'ke', above=0.0)
        set_checked(self, ActuatorError, 'max_deflection', above=0.0, infinite=True)

    @property
    def springs(self) -> tuple[float, float, float, float]:
        """Constants of both springs; see `HyperbolicPair.springs`."""
        k = 2.0 * self.k * float(np.sqrt(self.a * self.b))
        return k, self.ke, 0.5 * float(np.log(self.b / self.a)), self.max_deflection


# --- Levers --------------------------------------------------------------------------------------


LARGEST_DEFLECTION = 0.25 * np.pi


@dataclass(frozen=True)
class AwasII(VsaModel):
    """AwAS-II, a lever whose pivot moves: Q = Ks R^2 sin 2d, d = theta - q.

    With R = (L / r_t) x / (L - x) the energy is Ks R^2 sin(d)^2, the stiffness 2 Ks R^2 cos 2d,
    and 2 Ks R R' sin(d)^2 the force on the pivot.

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

    Examples
    --------
    >>> from hodyn_ros.actuators import AwasII
    >>> lever = AwasII(Ks=50.0, L=0.1, r_t=0.05)
    >>> lever.series([[0.1], [0.05]]).effort.round(3)
    array([39.734])
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
    def block(self) -> tuple[float, ...]:
        """Kind and constants as `kernels` reads them."""
        travel = np.inf if self.max_travel is None else self.max_travel
        gain = self.Ks * (self.L / self.r_t) ** 2
        return kernels.LEVER, gain, self.L, self.pitch, self.max_deflection, travel

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

    def series(self, deflection: ArrayLike) -> Elastic:
        """Efforts and stiffness along deflections; see `VsaModel.series`."""
        d = np.asarray(deflection, dtype=np.float64)
        x = Jet.along(d[..., 1, :], -1) * self.pitch
        sine, cosine = sine_cosine(Jet.along(d[..., 0, :], -1))
        ratio = x / (self.L - x)
        gain = self.Ks * (self.L / self.r_t) ** 2
        stiff = ratio * ratio * (2.0 * gain)
        effort = stiff * (sine * cosine)
        # dR/dx in units of the coordinate of motor 2.
        rate = ratio * (1.0 + ratio) * (1.0 + ratio) * (2.0 * gain * self.pitch / self.L)
        pivot = rate * (sine * sine)
        stiffness = stiff * (1.0 - 2.0 * (sine * sine))
        held = np.stack((effort.array(-1), pivot.array(-1)), axis=-2)
        return Elastic(effort.array(-1), stiffness.array(-1), held)


# --- Published constants -------------------------------------------------------------------------


MODELS: Mapping[str, type[VsaModel]] = {
    'qbmove': Qbmove,
    'dlr_bavs': DlrBavs,
    'awas_ii': AwasII,
}
"""Models by the names that configurations use."""

# Plug-ins: NMMI/ROS-Gazebo-compliant-actuators-plugin, viactors_plugins/src.
PARAMETER_SETS: Mapping[str, Mapping[str, tuple[VsaModel, float | None]]] = {
    'qbmove': {
        # Example: defaults of the plug-in qbmove_plugin.cpp; the inertia is the same for all its
        # actuators.
        'nmmi_maker_pro': (Qbmove(8.9992, 0.0019, 0.8), 0.0233),
        # Data sheet: called so in Richi90/ROS-Gazebo-plugin-qbmove, advanced_plugin/src/
        # advanced_plugin.cpp; not compared with a data sheet here.
        'advanced_datasheet': (Qbmove(6.7328, 0.0222, 0.8), None),
        # Example: nickparnenzini/qbmove_plugin, qbmove_project.pdf, table I, constants of a
        # simulation; no largest deflection is given.
        'gazebo_2015': (Qbmove(6.85, 0.022), 0.001),
    },
    # Example: defaults of the plug-in bavs_plugin.cpp, after Petit et al., without units.
    'dlr_bavs': {'nmmi': (DlrBavs(1.21e-6, 2.38e-6, 1.6e5, 8.71, 0.27), None)},
    # Placeholder: the comments of the plug-in awas_ii_plugin.cpp on units are wrong, and it sets
    # the pivot directly as a preset, without a motor; do not take these for an actuator.
    'awas_ii': {'nmmi': (AwasII(10.0, 0.05, 0.015, 0.3), None)},
}
"""Published constants by model and name, with the inertia of each motor [kg m^2] if known."""


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

    Examples
    --------
    >>> from hodyn_ros.actuators import vsa_model
    >>> vsa_model('qbmove', a=7.0, k=0.02)
    Qbmove(a=7.0, k=0.02, max_deflection=inf)
    """
    check_choice('The model', model, MODELS, ActuatorError)
    kind, sets = MODELS[model], PARAMETER_SETS[model]
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        raise ActuatorError(f'{model} has no parameters {unknown}, it has {names}.')
    if parameter_set is not None:
        check_choice(f'The parameter set of {model}', parameter_set, sets, ActuatorError)
        return replace(sets[parameter_set][0], **parameters)  # type: ignore[type-var]
    required = [field.name for field in fields(kind) if field.default is MISSING]  # type: ignore[arg-type]
    missing = [name for name in required if name not in parameters]
    if missing:
        raise ActuatorError(
            f'{model}: parameters are missing; {missing} are not given. Give them or a '
            f'parameter_set, one of {sorted(sets)}.'
        )
    return kind(**parameters)
