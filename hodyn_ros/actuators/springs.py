"""Laws of springs: torque as a strictly increasing function of the deflection, and its inverse.

The deflection is that of the motor against the joint, delta = theta - q, so that a positive one
pushes the joint in its positive direction. Every law has analytic derivatives of all orders; the
time derivatives of torque and deflection follow from them exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.actuator import checked_number
from hodyn_ros.actuators.composition import compose, compose_inverse
from hodyn_ros.actuators.rootfinding import increasing_root, increasing_root_of_one
from hodyn_ros.errors import ActuatorError, DeflectionError

Array = NDArray[np.float64]

# A value that reaches the end of a range by rounding alone is not outside of it.
_ROUNDING = 1e-12

# Of the deflection at which the search for an end of an unlimited law begins.
_MOST_DOUBLINGS = 1000


class Spring(ABC):
    """A spring law f; derive from it for a law of one's own. Springs are immutable.

    A law states its range and its derivatives. Its slope must be positive in the whole range.
    """

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]; may be infinite."""

    @abstractmethod
    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives with respect to the deflection.

        Parameters
        ----------
        deflection : ndarray, shape (...)
            Not checked against the range.
        order : int
            Highest derivative.

        Returns
        -------
        ndarray, shape (..., order + 1)
            Entry j is the j-th derivative of f [N m/rad^j] or [N/m^j].
        """

    def _inverse(self, torque: Array) -> Array:
        """Deflections of torques that lie within `torque_range`; laws may know a shorter way."""

        def law(x: Array) -> tuple[Array, Array]:
            # Looking for an end may go far.
            with np.errstate(over='ignore'):
                values = self.derivatives(x, 1)
            return values[..., 0], values[..., 1]

        ends = []
        for end, sign in zip(self.range, (-1.0, 1.0)):
            bound = np.full(torque.shape, end if np.isfinite(end) else sign)
            for _ in range(0 if np.isfinite(end) else _MOST_DOUBLINGS):
                is_short = sign * (torque - law(bound)[0]) > 0.0
                if not is_short.any():
                    break
                bound[is_short] *= 2.0
            ends.append(bound)
        lower, upper = ends
        return increasing_root(law, lower, upper, np.clip(0.0, lower, upper), torque)

    @property
    def torque_range(self) -> tuple[float, float]:
        """Torques at the ends of the range [N m] or [N]."""
        lower, upper = (
            float(self.derivatives(np.array(end), 0)[0]) if np.isfinite(end) else end
            for end in self.range
        )
        return lower, upper

    def deflection(self, torque: ArrayLike) -> Array:
        """Deflection at which the spring has a torque.

        Parameters
        ----------
        torque : array-like, shape (...)
            [N m] or [N]

        Returns
        -------
        ndarray, shape (...)

        Raises
        ------
        DeflectionError
            If the spring cannot have a torque; its attribute `sample` says which.
        """
        values = np.asarray(torque, dtype=np.float64)
        low, high = self.torque_range
        slack = _ROUNDING * np.array([abs(low), abs(high)])
        slack[~np.isfinite(slack)] = 0.0
        is_reachable = (values >= low - slack[0]) & (values <= high + slack[1])
        if not is_reachable.all():
            _refuse('a torque', values, is_reachable, (low, high), 'N m', self)
        lower, upper = self.range
        return np.clip(self._inverse(np.clip(values, low, high)), lower, upper)

    def check(self, deflection: ArrayLike) -> None:
        """Refuse deflections outside of the range.

        Parameters
        ----------
        deflection : array-like, shape (...)

        Raises
        ------
        DeflectionError
        """
        values = np.asarray(deflection, dtype=np.float64)
        lower, upper = self.range
        slack = _ROUNDING * max(abs(end) if np.isfinite(end) else 0.0 for end in self.range)
        is_inside = (values >= lower - slack) & (values <= upper + slack)
        if not is_inside.all():
            _refuse('a deflection', values, is_inside, self.range, 'rad', self)

    def series(self, deflection: Array) -> Array:
        """Torque and its time derivatives along a moving deflection.

        Parameters
        ----------
        deflection : ndarray, shape (..., K)

        Returns
        -------
        ndarray, shape (..., K)
            Entry k is the k-th time derivative [N m/s^k] or [N/s^k].

        Raises
        ------
        DeflectionError
            If a deflection is outside of the range.
        """
        deflection = np.asarray(deflection, dtype=np.float64)
        self.check(deflection[..., 0])
        return compose(self.derivatives(deflection[..., 0], deflection.shape[-1] - 1), deflection)

    def deflection_series(self, torque: Array) -> Array:
        """Deflection and its time derivatives along a changing torque; the inverse of `series`.

        Parameters
        ----------
        torque : ndarray, shape (..., K)

        Returns
        -------
        ndarray, shape (..., K)

        Raises
        ------
        DeflectionError
            If the spring cannot have a torque.
        """
        torque = np.asarray(torque, dtype=np.float64)
        x = self.deflection(torque[..., 0])
        return compose_inverse(self.derivatives(x, torque.shape[-1] - 1), torque, x)


@dataclass(frozen=True)
class LinearSpring(Spring):
    """Torque proportional to the deflection.

    Attributes
    ----------
    stiffness : float
        [N m/rad] or [N/m]
    max_deflection : float
        In both directions [rad] or [m].

    Raises
    ------
    ActuatorError
        If a parameter is not positive.
    """

    stiffness: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        _check_fields(self, stiffness=False, max_deflection=True)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return -self.max_deflection, self.max_deflection

    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives; see `Spring.derivatives`."""
        result = np.zeros((*np.shape(deflection), order + 1))
        result[..., 0] = self.stiffness * deflection
        result[..., 1:2] = self.stiffness
        return result

    def _inverse(self, torque: Array) -> Array:
        return torque / self.stiffness

    def series(self, deflection: Array) -> Array:
        """Torque and its time derivatives; see `Spring.series`."""
        deflection = np.asarray(deflection, dtype=np.float64)
        self.check(deflection[..., 0])
        return self.stiffness * deflection

    def deflection_series(self, torque: Array) -> Array:
        """Deflection and its time derivatives; see `Spring.deflection_series`."""
        result = np.asarray(torque, dtype=np.float64) / self.stiffness
        result[..., 0] = self.deflection(np.asarray(torque)[..., 0])
        return result


@dataclass(frozen=True)
class CubicSpring(Spring):
    """Spring that hardens or softens: stiffness * delta + cubic * delta^3.

    Attributes
    ----------
    stiffness : float
        At zero deflection [N m/rad] or [N/m].
    cubic : float
        [N m/rad^3] or [N/m^3]; positive hardens. A negative one softens and needs a maximal
        deflection below sqrt(stiffness / (-3 cubic)), where the law stops to increase.
    max_deflection : float
        In both directions [rad] or [m].

    Raises
    ------
    ActuatorError
        If a parameter cannot be used or the law does not increase within the range.
    """

    stiffness: float
    cubic: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        _check_fields(self, stiffness=False, max_deflection=True)
        cubic = _finite_numbers('CubicSpring', 'cubic', (self.cubic,))[0]
        object.__setattr__(self, 'cubic', float(cubic))
        if cubic < 0.0 and not self.stiffness + 3.0 * cubic * self.max_deflection**2 > 0.0:
            raise ActuatorError(
                f'CubicSpring: with stiffness {self.stiffness} and cubic {cubic} the torque stops '
                f'to increase at a deflection of {np.sqrt(-self.stiffness / (3.0 * cubic)):.6g}; '
                f'max_deflection is {self.max_deflection}, expected less.'
            )

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return -self.max_deflection, self.max_deflection

    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives; see `Spring.derivatives`."""
        x = np.asarray(deflection, dtype=np.float64)
        k, c = self.stiffness, self.cubic
        result = np.zeros((*x.shape, max(order, 3) + 1))
        square = x * x
        result[..., 0] = (k + c * square) * x
        result[..., 1] = k + 3.0 * c * square
        result[..., 2] = 6.0 * c * x
        result[..., 3] = 6.0 * c
        return result[..., : order + 1]

    def _inverse(self, torque: Array) -> Array:
        k, c = self.stiffness, self.cubic
        if c == 0.0:
            return torque / k
        # x = s sinh(u) turns k x + c x^3 into a multiple of sinh(3 u); softening: sine.
        scale = 2.0 * np.sqrt(k) / np.sqrt(3.0 * abs(c))
        value = 3.0 * torque / (k * scale)
        if c > 0.0:
            x = scale * np.sinh(np.arcsinh(value) / 3.0)
        else:
            x = scale * np.sin(np.arcsin(np.clip(value, -1.0, 1.0)) / 3.0)
        # One step of Newton's method takes the rounding of the functions out.
        better: Array = x - ((k + c * x * x) * x - torque) / (k + 3.0 * c * x * x)
        return better


@dataclass(frozen=True)
class PolynomialSpring(Spring):
    """Polynomial without a constant term: c_1 delta + c_2 delta^2 + ...

    Attributes
    ----------
    coefficients : sequence of float
        c_1, c_2, ... [N m/rad^j] or [N/m^j].
    max_deflection : float
        In both directions [rad] or [m].

    Raises
    ------
    ActuatorError
        If a parameter cannot be used or the slope is not positive within the whole range.
    """

    coefficients: Sequence[float]
    max_deflection: float = np.inf
    _lowest_slope: float = field(init=False, repr=False, compare=False, default=0.0)
    _rows: tuple[tuple[float, ...], ...] = field(
        init=False, repr=False, compare=False, default=()
    )

    def __post_init__(self) -> None:
        values = _finite_numbers('PolynomialSpring', 'coefficients', self.coefficients)
        values = np.trim_zeros(values, 'b')
        if not values.size:
            raise ActuatorError(
                f'PolynomialSpring: coefficients are {self.coefficients!r}, expected at least one '
                'that is not zero.'
            )
        object.__setattr__(self, 'coefficients', tuple(values.tolist()))
        _check_fields(self, max_deflection=True)
        slope, where = self._smallest_slope()
        if not slope > 0.0:
            raise ActuatorError(
                f'PolynomialSpring: with the coefficients {self.coefficients} the torque does not '
                f'increase with the deflection: its slope is {slope:.6g} at a deflection of '
                f'{where:.6g}. Expected a positive slope up to max_deflection, '
                f'{self.max_deflection}, in both directions.'
            )
        object.__setattr__(self, '_lowest_slope', slope)
        object.__setattr__(self, '_rows', derivative_rows((0.0, *self.coefficients)))

    def _smallest_slope(self) -> tuple[float, float]:
        """Smallest slope within the range, and where it is."""
        slope = polynomial.polyder(np.array([0.0, *self.coefficients]))
        roots = polynomial.polyroots(polynomial.polyder(slope)) if slope.size > 2 else np.empty(0)
        # Imaginary parts may be rounding; a point too many does no harm.
        ends = np.array(self.range)
        candidates = np.clip([*np.real(roots), 0.0], *ends)
        if np.all(np.isfinite(ends)):
            candidates = np.append(candidates, ends)
        else:
            # Beyond its outermost extremum the slope keeps the sign of its leading term.
            for sign in (-1.0, 1.0):
                leading = slope[-1] * sign ** (slope.size - 1)
                if leading < 0.0:
                    return -np.inf, sign * np.inf
        values = polynomial.polyval(candidates, slope)
        lowest = int(np.argmin(values))
        return float(values[lowest]), float(candidates[lowest])

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return -self.max_deflection, self.max_deflection

    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives; see `Spring.derivatives`."""
        x = np.asarray(deflection, dtype=np.float64)
        result = np.zeros((*x.shape, order + 1))
        for j, row in enumerate(self._rows[: order + 1]):
            result[..., j] = horner(row, x)
        return result

    def _inverse(self, torque: Array) -> Array:
        value, slope = self._rows[:2]
        if torque.ndim == 0:
            return np.array(self._inverse_of_one(float(torque)))
        # The slope is nowhere smaller than the smallest one, which bounds the deflection.
        reach = np.minimum(np.abs(torque) / self._lowest_slope * (1.0 + 1e-9), self.max_deflection)

        def law(x: Array) -> tuple[Array, Array]:
            return horner(value, x), horner(slope, x)

        return increasing_root(
            law,
            np.where(torque < 0.0, -reach, 0.0),
            np.where(torque > 0.0, reach, 0.0),
            np.clip(torque / self.coefficients[0], -reach, reach),
            torque,
        )

    def _inverse_of_one(self, torque: float) -> float:
        value, slope = self._rows[:2]
        reach = min(abs(torque) / self._lowest_slope * (1.0 + 1e-9), self.max_deflection)
        return increasing_root_of_one(
            lambda x: (horner(value, x), horner(slope, x)),
            -reach if torque < 0.0 else 0.0,
            reach if torque > 0.0 else 0.0,
            min(max(torque / self.coefficients[0], -reach), reach),
            torque,
        )


def derivative_rows(coefficients: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """Coefficients of a polynomial and of all its derivatives, lowest power first.

    Parameters
    ----------
    coefficients : sequence of float
        Lowest power first.

    Returns
    -------
    tuple of tuples of float
        Row j is the j-th derivative.
    """
    rows = [tuple(coefficients)]
    while len(rows[-1]) > 1:
        rows.append(tuple(power * c for power, c in enumerate(rows[-1]) if power))
    return tuple(rows)


Number = TypeVar('Number', float, Array)


def horner(coefficients: Sequence[float], x: Number) -> Number:
    """Value of a polynomial; `numpy.polynomial` takes ten times as long for a single number.

    Parameters
    ----------
    coefficients : sequence of float
        Lowest power first.
    x : float or ndarray

    Returns
    -------
    float or ndarray
    """
    result = 0.0 * x + coefficients[-1]
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


def _check_fields(spring: Spring, **infinite: bool) -> None:
    """Check that fields are positive numbers, some of which may be infinite, and make floats."""
    for name, may_be_infinite in infinite.items():
        value = checked_number(
            type(spring).__name__, name, getattr(spring, name), infinite=may_be_infinite
        )
        object.__setattr__(spring, name, value)


def _finite_numbers(owner: str, name: str, values: ArrayLike) -> Array:
    """One-dimensional array of finite numbers."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        raise ActuatorError(f'{owner}: {name} is {values!r}, expected finite numbers.')
    return array


def _refuse(
    what: str,
    values: Array,
    is_fine: NDArray[np.bool_],
    bounds: tuple[float, float],
    unit: str,
    spring: Spring,
) -> None:
    """Raise an error about the first value that is outside of its bounds."""
    # Adding zero makes zeros positive.
    sample = tuple(int(index) for index in np.argwhere(np.logical_not(is_fine))[0])
    where = f' in sample {sample}' if sample else ''
    raise DeflectionError(
        f'{type(spring).__name__} is asked for {what} of {values[sample]:.6g} {unit}{where}; it '
        f'reaches {bounds[0] + 0.0:.6g} to {bounds[1] + 0.0:.6g} {unit} (deflections from '
        f'{spring.range[0] + 0.0:.6g} to {spring.range[1] + 0.0:.6g} rad).',
        sample=sample,
    )
