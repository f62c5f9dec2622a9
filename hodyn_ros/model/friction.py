"""Friction laws: from the velocity of a joint to its friction effort, with time derivatives.

A law maps a series (a velocity and its time derivatives along the last axis) to the series of the
effort, exactly and in any order. Laws add up: `Viscous(0.2) + Coulomb(1.3, smoothing=0.01)`.
Efforts are those that the actuator must supply, so they have the sign of the velocity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import leibniz
from hodyn_ros.names import listed
from hodyn_ros.typing import Array


class FrictionLaw(ABC):
    """A law of friction; derive from it for a law of one's own."""

    @abstractmethod
    def effort(self, velocity: Array) -> Array:
        """Friction effort and its time derivatives.

        Parameters
        ----------
        velocity : ndarray, shape (..., K)
            Entry k is the k-th time derivative of the joint velocity [rad/s^(k+1)] or
            [m/s^(k+1)].

        Returns
        -------
        ndarray, shape (..., K)
            Entry k is the k-th time derivative of the effort [N m/s^k] or [N/s^k].
        """

    def __add__(self, other: FrictionLaw) -> Sum:
        if not isinstance(other, FrictionLaw):
            return NotImplemented
        return Sum((*_terms(self), *_terms(other)))


class _NumberedLaw(FrictionLaw):
    """A law whose parameters are finite numbers; several of a kind are evaluated at once."""

    _at_least_zero: ClassVar[tuple[str, ...]] = ()
    _above_zero: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    @abstractmethod
    def _efforts(velocity: Array, *parameters: Array) -> Array:
        """Efforts of laws of this kind, with parameters of the shape of velocity[..., 0]."""

    def effort(self, velocity: Array) -> Array:
        """Friction effort and its time derivatives; see `FrictionLaw.effort`."""
        return self._efforts(velocity, *np.array(self._parameters()))

    def _parameters(self) -> tuple[float, ...]:
        """Parameters in the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            number = checked_number(
                f'{type(self).__name__}: {field.name}',
                getattr(self, field.name),
                ModelError,
                least=0.0 if field.name in self._at_least_zero else None,
                above=0.0 if field.name in self._above_zero else None,
            )
            object.__setattr__(self, field.name, number)


@dataclass(frozen=True)
class Viscous(_NumberedLaw):
    """Proportional to the velocity.

    Attributes
    ----------
    coefficient : float
        [N m s/rad] or [N s/m], not negative: that would drive the joint.
    """

    coefficient: float

    _at_least_zero = ('coefficient',)

    @staticmethod
    def _efforts(velocity: Array, *parameters: Array) -> Array:
        return parameters[0][..., None] * velocity


@dataclass(frozen=True)
class Coulomb(_NumberedLaw):
    """Constant against the direction of motion: level * tanh(velocity / smoothing).

    Attributes
    ----------
    level : float
        [N m] or [N]
    smoothing : float
        Velocity at which 76 % of the level is reached [rad/s] or [m/s]. Zero is the sign function:
        its time derivatives are returned as zero, though the effort jumps at a reversal, where it
        has none. Where derivatives matter across reversals, smooth.
    """

    level: float
    smoothing: float = 0.0

    _at_least_zero = ('smoothing',)

    @staticmethod
    def _efforts(velocity: Array, *parameters: Array) -> Array:
        level, smoothing = parameters
        return level[..., None] * _direction(velocity, smoothing)


@dataclass(frozen=True)
class Stribeck(_NumberedLaw):
    """What friction at low velocities is more: level * exp(-(v / velocity)^2) * s(v).

    s is the sign function, or tanh(v / smoothing). With `Coulomb` of the same smoothing this is
    dry friction that falls from the sum of both levels at rest to that of `Coulomb`. Source:
    Armstrong-Helouvry, Dupont and Canudas de Wit 1994, "A survey of models, analysis tools and
    compensation methods for the control of machines with friction".

    Attributes
    ----------
    level : float
        [N m] or [N]
    velocity : float
        At which 37 % of the level is left [rad/s] or [m/s], above zero.
    smoothing : float
        As that of `Coulomb`. Without it, time derivatives of the sign are returned as zero; those
        of the exponential function are exact.
    """

    level: float
    velocity: float
    smoothing: float = 0.0

    _at_least_zero = ('smoothing',)
    _above_zero = ('velocity',)

    @staticmethod
    def _efforts(velocity: Array, *parameters: Array) -> Array:
        level, width, smoothing = parameters
        with np.errstate(over='ignore', invalid='ignore'):
            x = velocity / width[..., None]
            decay = _exponential(-_product(x, x))
            return level[..., None] * _product(decay, _direction(velocity, smoothing))


@dataclass(frozen=True)
class Sigmoid(_NumberedLaw):
    """Friction as identified on the Franka Emika Panda, zero at rest.

    phi1 / (1 + exp(-phi2 (velocity + phi3))) - phi1 / (1 + exp(-phi2 phi3)). Source: Gaz,
    Cognetti, Oliva, Robuffo Giordano and De Luca 2019, "Dynamic Identification of the Franka Emika
    Panda Robot With Retrieval of Feasible Parameters Using Penalty-Based Optimization".

    Attributes
    ----------
    phi1 : float
        Difference between the efforts at high speed in both directions [N m] or [N].
    phi2 : float
        Steepness [s/rad] or [s/m].
    phi3 : float
        Velocity by which the curve is shifted [rad/s] or [m/s].
    """

    phi1: float
    phi2: float
    phi3: float

    @staticmethod
    def _efforts(velocity: Array, *parameters: Array) -> Array:
        phi1, phi2, phi3 = parameters
        with np.errstate(over='ignore'):
            exponent = phi2[..., None] * velocity
            exponent[..., 0] = phi2 * (velocity[..., 0] + phi3)
            effort = phi1[..., None] * _logistic(exponent)
            effort[..., 0] -= phi1 * _expit(phi2 * phi3)
        return effort


@dataclass(frozen=True)
class Offset(_NumberedLaw):
    """A constant effort, as identifications find it beside friction.

    Attributes
    ----------
    value : float
        [N m] or [N]
    """

    value: float

    @staticmethod
    def _efforts(velocity: Array, *parameters: Array) -> Array:
        effort = np.zeros_like(velocity)
        effort[..., 0] = parameters[0]
        return effort


@dataclass(frozen=True)
class Sum(FrictionLaw):
    """Several laws at once; made by adding laws.

    Attributes
    ----------
    laws : tuple of FrictionLaw
        None of them a sum.
    """

    laws: tuple[FrictionLaw, ...]

    def effort(self, velocity: Array) -> Array:
        """Friction effort and its time derivatives; see `FrictionLaw.effort`."""
        return sum((law.effort(velocity) for law in self.laws), np.zeros_like(velocity))


class JointFriction:
    """Friction of several joints, given by their indices.

    NumPy's cost is in the number of calls: there is one for all joints with the same kind of law.

    Parameters
    ----------
    laws : mapping of int to FrictionLaw
    """

    def __init__(self, laws: Mapping[int, FrictionLaw]) -> None:
        self._parts: list[tuple[Any, Callable[..., Array], Array | tuple[()]]] = []
        groups: dict[tuple[Any, int], list[tuple[int, Any]]] = {}
        for joint, law in laws.items():
            count: Counter[type[FrictionLaw]] = Counter()
            for term in _terms(law):
                kind = type(term)
                # A derived class may have overridden effort().
                if isinstance(term, _NumberedLaw) and kind.effort is _NumberedLaw.effort:
                    # A group has each joint once; a sum may hold two laws of a kind.
                    count[kind] += 1
                    groups.setdefault((kind, count[kind]), []).append((joint, term))
                else:
                    self._parts.append((joint, term.effort, ()))
        for (kind, _), found in groups.items():
            parameters = np.array([term._parameters() for _, term in found]).T
            self._parts.append(([joint for joint, _ in found], kind._efforts, parameters))

    def __call__(self, velocity: Array) -> Array:
        """Efforts (..., n_joints, K) from velocities of that shape, each with derivatives.

        Parameters
        ----------
        velocity : ndarray, shape (..., n_joints, K)
            Entry k is the k-th time derivative [rad/s^(k+1)] or [m/s^(k+1)].
        """
        effort = np.zeros_like(velocity)
        for joints, efforts, parameters in self._parts:
            effort[..., joints, :] += efforts(velocity[..., joints, :], *parameters)
        return effort


def joint_friction(laws: Mapping[int, FrictionLaw], velocity: Array) -> Array:
    """Friction efforts of some joints, with time derivatives.

    Parameters
    ----------
    laws : mapping of int to FrictionLaw
        By the index of the joint.
    velocity : ndarray, shape (..., n_joints, K)
        With derivatives [rad/s^(k+1)] or [m/s^(k+1)].

    Returns
    -------
    ndarray, shape (..., n_joints, K)
        Zero for joints without a law.
    """
    return JointFriction(laws)(velocity)


def _terms(law: FrictionLaw) -> tuple[FrictionLaw, ...]:
    """Laws that a law is the sum of; itself unless it is a sum."""
    return law.laws if isinstance(law, Sum) else (law,)


def _product(f: Array, g: Array) -> Array:
    """Series of a product, to the bit the same in a batch and alone."""
    series: Array = (leibniz.multiplication(f) * g[..., None, :]).sum(axis=-1)
    return series


def _direction(velocity: Array, smoothing: Array) -> Array:
    """Series of tanh(velocity / smoothing), of the sign where the smoothing is zero."""
    sharp = smoothing == 0.0
    series = np.zeros_like(velocity)
    series[..., 0] = np.sign(velocity[..., 0])
    if np.all(sharp):
        return series
    with np.errstate(over='ignore'):
        scaled = velocity / np.where(sharp, 1.0, smoothing)[..., None]
        # tanh(x) = 2 / (1 + exp(-2 x)) - 1; the difference would lose digits for small x.
        smooth = 2.0 * _logistic(2.0 * scaled)
    smooth[..., 0] = np.tanh(scaled[..., 0])
    return np.where(sharp[..., None], series, smooth)


def _exponential(u: Array) -> Array:
    """Series of exp(u) of a scalar series, shape (..., K), by g' = u' g."""
    table = leibniz.binomials(u.shape[-1])
    g = np.zeros_like(u)
    g[..., 0] = np.exp(u[..., 0])
    for k in range(u.shape[-1] - 1):
        g[..., k + 1] = (table[k, : k + 1] * g[..., k::-1] * u[..., 1 : k + 2]).sum(axis=-1)
    # As in `_logistic`.
    return np.where(g[..., :1] == 0.0, 0.0, g)


def _expit(u: Array) -> Array:
    """Function 1 / (1 + exp(-u)), without derivatives."""
    return np.asarray(1.0 / (1.0 + np.exp(-u)))


def _logistic(u: Array) -> Array:
    """Series of r = 1 / (1 + exp(-u)) of a scalar series, shape (..., K).

    With the slope s = r (1 - r) and t = tanh(u / 2) = 2 r - 1: r' = s u', s' = -t s u', t' = 2 r'.
    Each of the three starts from a function of its own, so that no digits cancel where r is close
    to one or to a half.
    """
    K = u.shape[-1]
    table = leibniz.binomials(K)
    r, s, t, ts = (np.zeros_like(u) for _ in range(4))
    with np.errstate(over='ignore', invalid='ignore'):
        r[..., 0] = _expit(u[..., 0])
        s[..., 0] = r[..., 0] * _expit(-u[..., 0])
        t[..., 0] = np.tanh(0.5 * u[..., 0])
        for k in range(K - 1):
            C, rate = table[k, : k + 1], u[..., 1 : k + 2]
            ts[..., k] = (C * t[..., : k + 1] * s[..., k::-1]).sum(axis=-1)
            r[..., k + 1] = (C * s[..., k::-1] * rate).sum(axis=-1)
            s[..., k + 1] = -(C * ts[..., k::-1] * rate).sum(axis=-1)
            t[..., k + 1] = 2.0 * r[..., k + 1]
    # So far out that the slope is zero in floating point, no derivative of u can change anything,
    # be it infinite.
    r[..., 1:] = np.where(s[..., :1] == 0.0, 0.0, r[..., 1:])
    return r


# --- From tables ---------------------------------------------------------------------------------

LAWS: Mapping[type[FrictionLaw], tuple[str, ...]] = {
    Viscous: ('viscous',),
    Coulomb: ('coulomb', 'smoothing'),
    Stribeck: ('stribeck', 'stribeck_velocity', 'smoothing'),
    Sigmoid: ('phi1', 'phi2', 'phi3'),
    Offset: ('offset',),
}
"""Laws with the keys of their parameters, in the order of these."""


def friction_from_config(
    config: Mapping[str, Mapping[str, float]],
) -> dict[str, FrictionLaw | None]:
    """Friction laws from a table of each joint, as files and parameters of nodes hold them.

    Parameters
    ----------
    config : mapping of joint name to mapping of key to value
        `viscous` [N m s/rad]; `coulomb` [N m]; `stribeck` [N m] and `stribeck_velocity` [rad/s];
        `smoothing` [rad/s] of both of these, zero unless given; `phi1` [N m], `phi2` [s/rad] and
        `phi3` [rad/s]; `offset` [N m]. Infinite values count as not given.

    Returns
    -------
    dict of joint name to FrictionLaw or None
        As `RobotModel.with_friction` takes it: the laws that a table gives, added up, None if
        they are zero.

    Raises
    ------
    ModelError
        If a key is unknown or lacking, or a value cannot be used. The message names the joint.
    """
    if not isinstance(config, Mapping):
        raise ModelError(f'friction is {config!r}, expected a table for each joint.')
    return {
        joint: law_from_table(f'friction.{joint}', table) for joint, table in config.items()
    }


def _law_of(
    kind: type[FrictionLaw],
    keys: tuple[str, ...],
    given: Mapping[str, float],
    owner: str,
    named: Callable[[Iterable[str]], str],
) -> FrictionLaw | None:
    """Law of one kind, or None if nothing but a smoothing is given of it."""
    needed = [key for key in keys if key != 'smoothing']
    own = [key for key in needed if key in given]
    if not own:
        return None
    if lacking := [key for key in needed if key not in given]:
        raise ModelError(f'{owner}: {named(lacking)} must be set, too, with {named(own)}.')
    try:
        return kind(*(given.get(key, 0.0) for key in keys))
    except ModelError as error:
        raise ModelError(f'{owner}: {error} Its keys are {named(keys)}.') from None


def law_from_table(
    owner: str, table: Mapping[str, float], names: Mapping[str, str] | None = None
) -> FrictionLaw | None:
    """Law of the keys of one table; see `friction_from_config`. Messages may name them otherwise.

    The owner begins the messages.

    Parameters
    ----------
    owner : str
    table : mapping of str to float
    names : mapping of str to str, optional
        Names of the keys in messages, where they are others.

    Returns
    -------
    FrictionLaw or None
        None if the table gives no friction or only zeros.

    Raises
    ------
    ModelError
        If a key is unknown or lacking, a value cannot be used, or a smoothing smooths nothing.
    """
    if not isinstance(table, Mapping):
        raise ModelError(f'{owner} is {table!r}, expected a table of keys.')

    def named(keys: Iterable[str]) -> str:
        return listed((names or {}).get(key, key) for key in keys)

    known = dict.fromkeys(key for keys in LAWS.values() for key in keys)
    if unknown := [key for key in table if key not in known]:
        raise ModelError(
            f'{owner} has {listed(unknown)}, expected keys among {named(known)}.'
        )
    given = {key: value for key, value in table.items() if value != math.inf}
    terms: list[FrictionLaw] = []
    used: set[str] = set()
    for kind, keys in LAWS.items():
        law = _law_of(kind, keys, given, owner, named)
        if law is None:
            continue
        used.update(keys)
        if given[keys[0]]:  # all laws are proportional to their first parameter
            terms.append(law)
    if given.get('smoothing') and 'smoothing' not in used:
        raise ModelError(
            f'{owner}: {named(["smoothing"])} is {given["smoothing"]}, but there is no friction '
            f'that it smooths; expected {named(["coulomb"])} or {named(["stribeck"])} too.'
        )
    return reduce(add, terms) if terms else None
