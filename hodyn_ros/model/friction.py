"""Friction laws: from the velocity of a joint to its friction effort, with time derivatives.

A law maps a velocity with its time derivatives to the effort with as many, exactly. Laws add up:
`Viscous(0.2) + Coulomb(1.3, smoothing=0.01)`. Efforts are those that the actuator must supply, so
they have the sign of the velocity. Each law is one formula over jets, which NumPy evaluates and
programs record.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import jets
from hodyn_ros.lie.jets import Jet
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.typing import Array


class FrictionLaw(ABC):
    """A law of friction; derive from it for a law of one's own.

    Examples
    --------
    Laws add up, and give the derivatives of the effort with those of the velocity:

    >>> import numpy as np
    >>> from hodyn_ros import friction
    >>> law = friction.Viscous(0.5) + friction.Coulomb(2.0)
    >>> law.effort(np.array([0.1, 1.0]))
    array([2.05, 0.5 ])
    """

    @abstractmethod
    def effort(self, velocity: ArrayLike) -> Array:
        """Friction effort and its time derivatives.

        Parameters
        ----------
        velocity : array-like, shape (..., K)
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
        return Sum((*summands(self), *summands(other)))


class _NumberedLaw(FrictionLaw):
    """A law whose parameters are finite numbers; its formula is one for all kinds of numbers."""

    _at_least_zero: ClassVar[tuple[str, ...]] = ()
    _above_zero: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    @abstractmethod
    def formula(velocity: Jet, *parameters: Any) -> Any:
        """Effort, a jet or a constant.

        Parameters
        ----------
        velocity : Jet
            Of numbers, arrays, or scalars that a recorder follows.
        *parameters : float or ndarray
            In the order of the fields. Arrays, for several laws of this kind, broadcast with the
            velocity; a smoothing is zero in all of them or in none.
        """

    def effort(self, velocity: ArrayLike) -> Array:
        """Friction effort and its time derivatives; see `FrictionLaw.effort`."""
        return _efforts(self.formula, velocity, self.parameters)

    @property
    def parameters(self) -> tuple[float, ...]:
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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import friction
    >>> friction.Viscous(0.5).effort(np.array([0.1, 1.0]))
    array([0.05, 0.5 ])
    """

    coefficient: float

    _at_least_zero = ('coefficient',)

    @staticmethod
    def formula(velocity: Jet, *parameters: Any) -> Any:
        """Effort of `Viscous`."""
        (coefficient,) = parameters
        return coefficient * velocity


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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import friction
    >>> friction.Coulomb(2.0).effort(np.array([[0.1], [-0.1]]))
    array([[ 2.],
           [-2.]])
    >>> friction.Coulomb(2.0, smoothing=0.1).effort(np.array([0.1, 1.0])).round(3)
    array([1.523, 8.399])
    """

    level: float
    smoothing: float = 0.0

    _at_least_zero = ('smoothing',)

    @staticmethod
    def formula(velocity: Jet, *parameters: Any) -> Any:
        """Effort of `Coulomb`."""
        level, smoothing = parameters
        return level * _direction(velocity, smoothing)


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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import friction
    >>> friction.Stribeck(1.0, 0.05).effort(np.array([[0.01], [0.5]])).round(3)
    array([[0.961],
           [0.   ]])
    """

    level: float
    velocity: float
    smoothing: float = 0.0

    _at_least_zero = ('smoothing',)
    _above_zero = ('velocity',)

    @staticmethod
    def formula(velocity: Jet, *parameters: Any) -> Any:
        """Effort of `Stribeck`."""
        level, width, smoothing = parameters
        x = (1.0 / width) * velocity
        return level * (jets.exp(-(x * x)) * _direction(velocity, smoothing))


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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import friction
    >>> friction.Sigmoid(0.5, 20.0, 0.04).effort(np.array([[-0.2], [0.0], [0.2]])).round(3)
    array([[-0.325],
           [ 0.   ],
           [ 0.151]])
    """

    phi1: float
    phi2: float
    phi3: float

    @staticmethod
    def formula(velocity: Jet, *parameters: Any) -> Any:
        """Effort of `Sigmoid`, since 1 / (1 + exp(-2 x)) = (1 + tanh(x)) / 2."""
        phi1, phi2, phi3 = parameters
        scale = 0.5 * phi2
        return 0.5 * phi1 * (jets.tanh(scale * (velocity + phi3)) - np.tanh(scale * phi3))


@dataclass(frozen=True)
class Offset(_NumberedLaw):
    """A constant effort, as identifications find it beside friction.

    Attributes
    ----------
    value : float
        [N m] or [N]

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import friction
    >>> friction.Offset(0.3).effort(np.array([0.1, 1.0]))
    array([0.3, 0. ])
    """

    value: float

    @staticmethod
    def formula(velocity: Jet, *parameters: Any) -> Any:
        """Effort of `Offset`."""
        (value,) = parameters
        return value


def _direction(velocity: Jet, smoothing: Any) -> Any:
    """Jet of tanh(velocity / smoothing); the sign, a constant, if the smoothing is zero."""
    if not np.any(smoothing):
        return jets.evaluate('sign', velocity[0])
    return jets.tanh((1.0 / smoothing) * velocity)


def _series(velocity: ArrayLike) -> Array:
    """Velocity and its time derivatives (..., K) as an array; a `ModelError` if it is none."""
    try:
        series = np.asarray(velocity, dtype=np.float64)
    except (TypeError, ValueError):
        series = np.array(0.0)
    if not series.shape:
        raise ModelError(
            f'velocity is {velocity!r}, expected its series, shape (..., K), with its time '
            'derivatives along the last axis.'
        )
    return series


def _efforts(
    formula: Callable[..., Any], velocity: ArrayLike, parameters: Sequence[Any]
) -> Array:
    """Efforts (..., K) of a formula, of velocities of this shape."""
    velocity = _series(velocity)
    effort = np.empty_like(velocity)
    # Overflow leaves functions where they are flat.
    with np.errstate(over='ignore', invalid='ignore'):
        values = formula(Jet.along(velocity, -1), *parameters)
    for k, value in enumerate(jets.derivatives(values, velocity.shape[-1])):
        effort[..., k] = value
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

    def effort(self, velocity: ArrayLike) -> Array:
        """Friction effort and its time derivatives; see `FrictionLaw.effort`."""
        velocity = _series(velocity)
        return sum((law.effort(velocity) for law in self.laws), np.zeros_like(velocity))


class JointFriction:
    """Friction of several joints, given by their indices.

    NumPy's cost is in the number of calls: there is one for all joints with the same kind of law.

    Parameters
    ----------
    laws : mapping of int to FrictionLaw
    """

    def __init__(self, laws: Mapping[int, FrictionLaw]) -> None:
        self._parts: list[tuple[Any, Callable[[Array], Array]]] = []
        groups: dict[Any, list[tuple[int, Any]]] = {}
        for joint, law in laws.items():
            terms = summands(law)
            for k, term in enumerate(terms):
                kind = type(term)
                # A derived class may have overridden effort().
                if isinstance(term, _NumberedLaw) and kind.effort is _NumberedLaw.effort:
                    # A group has each joint once; a sum may hold two laws of a kind.
                    number = [type(x) for x in terms[:k]].count(kind)
                    group = kind, number, bool(getattr(term, 'smoothing', 0.0))
                    groups.setdefault(group, []).append((joint, term))
                else:
                    self._parts.append((joint, term.effort))
        for (kind, *_), items in groups.items():
            parameters = [np.array(x) for x in zip(*(term.parameters for _, term in items))]
            efforts = partial(_efforts, kind.formula, parameters=parameters)
            self._parts.append(([joint for joint, _ in items], efforts))

    def __call__(self, velocity: Array) -> Array:
        """Efforts (..., n_joints, K) from velocities of that shape, each with derivatives.

        Parameters
        ----------
        velocity : ndarray, shape (..., n_joints, K)
            Entry k is the k-th time derivative [rad/s^(k+1)] or [m/s^(k+1)].

        Returns
        -------
        ndarray, shape (..., n_joints, K)
            Zero for joints without a law.
        """
        effort = np.zeros_like(velocity)
        for joints, efforts in self._parts:
            effort[..., joints, :] += efforts(velocity[..., joints, :])
        return effort


def summands(law: FrictionLaw) -> tuple[FrictionLaw, ...]:
    """Laws that a law is the sum of; itself unless it is a sum."""
    return law.laws if isinstance(law, Sum) else (law,)


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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, inverse_dynamics
    >>> from hodyn_ros.model import friction_from_config
    >>> laws = friction_from_config({'elbow': {'viscous': 0.8, 'coulomb': 1.5}})
    >>> model = RobotModel.from_urdf('two_link', gravity=[0.0, 0.0, 0.0]).with_friction(laws)
    >>> np.round(inverse_dynamics(model, [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), 2)
    array([[0. , 2.3]])
    """
    if not isinstance(config, Mapping):
        raise ModelError(f'friction is {config!r}, expected a table for each joint.')
    return {
        joint: law_from_table(f'friction.{joint}', table) for joint, table in config.items()
    }


def _law_of(
    kind: type[FrictionLaw],
    keys: tuple[str, ...],
    values: Mapping[str, float],
    owner: str,
    named: Callable[[Iterable[str]], str],
) -> FrictionLaw | None:
    """Law of one kind, or None if nothing but a smoothing is given of it."""
    needed = [key for key in keys if key != 'smoothing']
    present = [key for key in needed if key in values]
    if not present:
        return None
    if missing := [key for key in needed if key not in values]:
        raise ModelError(
            f'{owner}: {named(missing)} must be set, too, with {named(present)}.'
        )
    try:
        return kind(*(values.get(key, 0.0) for key in keys))
    except ModelError as error:
        raise ModelError(f'{owner}: {error} Its keys are {named(keys)}.') from None


def _check_keys(
    owner: str, table: Mapping[str, float], named: Callable[[Iterable[str]], str]
) -> None:
    """Refuse what is no table, or has keys that no law has."""
    if not isinstance(table, Mapping):
        raise ModelError(f'{owner} is {table!r}, expected a table of keys.')
    known = dict.fromkeys(key for keys in LAWS.values() for key in keys)
    if unknown := [key for key in table if key not in known]:
        given = listed(f'{key}{did_you_mean(key, known)}' for key in unknown)
        raise ModelError(f'{owner} has {given}, expected keys among {named(known)}.')


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

    def named(keys: Iterable[str]) -> str:
        return listed((names or {}).get(key, key) for key in keys)

    _check_keys(owner, table, named)
    values = {key: value for key, value in table.items() if value != math.inf}
    terms: list[FrictionLaw] = []
    used: set[str] = set()
    for kind, keys in LAWS.items():
        law = _law_of(kind, keys, values, owner, named)
        if law is None:
            continue
        used.update(keys)
        if values[keys[0]]:  # all laws are proportional to their first parameter
            terms.append(law)
    if values.get('smoothing') and 'smoothing' not in used:
        raise ModelError(
            f'{owner}: {named(["smoothing"])} is {values["smoothing"]}, but there is no friction '
            f'that it smooths; expected {named(["coulomb"])} or {named(["stribeck"])} too.'
        )
    return reduce(add, terms) if terms else None
