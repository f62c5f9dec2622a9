"""Springs: torque as an increasing function of the deflection, in pieces that are polynomials.

The deflection is that of the motor against the joint, delta = theta - q, so that a positive one
pushes the joint in its positive direction. `LinearSpring`, `CubicSpring`, `PolynomialSpring` and
`TableSpring` are ways to state the pieces; for any other law give a table of its points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.kernels import ROUNDING
from hodyn_ros.checks import finite_array, first_not_finite, set_checked
from hodyn_ros.errors import ActuatorError, DeflectionError
from hodyn_ros.typing import Array

# The slope of a table may come this close to zero, as a fraction of the smaller secant beside an
# interval.
_FLATTEST = 0.1


class Spring:
    """Increasing law of a spring; immutable. Make one with one of the derived classes.

    Attributes
    ----------
    range : tuple of float
        Lowest and highest admissible deflection [rad] or [m]; may be infinite.
    torque_range : tuple of float
        Torques at its ends [N m] or [N].
    block : ndarray
        The law as `kernels` reads it: a place for D / k of a damper, numbers of pieces and of
        coefficients of each, smallest slope, knots, torques at the knots, the origins of the
        pieces and their coefficients, lowest power first.

    Examples
    --------
    Any spring gives the torque along a moving deflection, and back:

    >>> from hodyn_ros.actuators import CubicSpring, Spring
    >>> spring: Spring = CubicSpring(100.0, cubic=1000.0)
    >>> torque = spring.series([0.1, 1.0, 0.0])
    >>> torque, spring.deflection_series(torque).round(9) + 0.0
    (array([ 11., 130., 600.]), array([0.1, 1. , 0. ]))
    """

    range: tuple[float, float]
    torque_range: tuple[float, float]
    block: Array

    def _know(
        self,
        knots: ArrayLike,
        torques: ArrayLike,
        origins: ArrayLike,
        law: ArrayLike,
        least: float,
    ) -> None:
        """Take the law: coefficients (pieces, count) of the powers of x - origin, and so on."""
        knots, torques, law = map(np.asarray, (knots, torques, law))
        rest = (knots, torques, np.asarray(origins), law.ravel())
        block = np.concatenate(([0.0, *law.shape, least], *rest))
        for name, ends in (('range', knots), ('torque_range', torques)):
            object.__setattr__(self, name, (float(ends[0]), float(ends[-1])))
        object.__setattr__(self, 'block', block)

    def derivatives(self, deflection: ArrayLike, order: int) -> Array:
        """Torque and its derivatives (..., order + 1) with respect to deflections (...).

        Entry j is the j-th derivative [N m/rad^j] or [N/m^j]. Deflections are not checked against
        the range.
        """
        x = np.asarray(deflection, dtype=np.float64)
        series = np.zeros((*x.shape, order + 1))
        series[..., 0], series[..., 1:2] = x, 1.0
        return self._along(series)

    def series(self, deflection: ArrayLike) -> Array:
        """Torque and its time derivatives along a moving deflection.

        Parameters
        ----------
        deflection : array-like, shape (..., K)
            Entry k is the k-th time derivative [rad/s^k] or [m/s^k].

        Returns
        -------
        ndarray, shape (..., K)
            [N m/s^k] or [N/s^k]

        Raises
        ------
        DeflectionError
            If a deflection is outside of the range.
        """
        series = np.asarray(deflection, dtype=np.float64)
        self.check(series[..., 0])
        return self._along(series)

    def _along(self, deflection: Array) -> Array:
        result = np.empty(deflection.shape)
        rows = (
            np.ascontiguousarray(a).reshape(-1, a.shape[-1]) for a in (deflection, result)
        )
        kernels.laws(result[..., 0].size, self.block, *rows)
        return result

    def deflection(self, torque: ArrayLike) -> Array:
        """Deflection (...) at which the spring has a torque (...) [N m] or [N].

        Raises
        ------
        DeflectionError
            If the spring cannot have a torque; its attribute `sample` says which.
        """
        return self.deflection_series(np.asarray(torque, dtype=np.float64)[..., None])[
            ..., 0
        ]

    def deflection_series(self, torque: ArrayLike) -> Array:
        """Deflection and its time derivatives along a torque; the inverse of `series`.

        Parameters
        ----------
        torque : array-like, shape (..., K)
            Entry k is the k-th time derivative [N m/s^k] or [N/s^k].

        Returns
        -------
        ndarray, shape (..., K)
            [rad/s^k] or [m/s^k]

        Raises
        ------
        DeflectionError
            If the spring cannot have a torque; its attribute `sample` says which.
        """
        series = np.ascontiguousarray(torque, dtype=np.float64)
        found, status = kernels.deflections(
            self.block, series.reshape(-1, series.shape[-1])
        )
        if status:
            self.check_torque(series[..., 0])
        return found.reshape(series.shape)

    def check(self, deflection: ArrayLike) -> None:
        """Refusal of deflections (...) [rad] or [m] out of the range, with a `DeflectionError`."""
        self._refuse_outside('a deflection', deflection, *self.range, 'rad')

    def check_torque(self, torque: ArrayLike) -> None:
        """Refusal of torques (...) [N m] or [N] out of the range, with a `DeflectionError`."""
        self._refuse_outside('a torque', torque, *self.torque_range, 'N m')

    def _refuse_outside(
        self, what: str, given: ArrayLike, low: float, high: float, unit: str
    ) -> None:
        """Raise an error about the first value that is outside of its bounds, but for rounding."""
        values = np.asarray(given, dtype=np.float64)
        slack = [ROUNDING * abs(end) if math.isfinite(end) else 0.0 for end in (low, high)]
        is_fine = (values >= low - slack[0]) & (values <= high + slack[1])
        if is_fine.all():
            return
        sample = first_not_finite(np.where(is_fine, 0.0, np.nan)) or ()
        where = f' in sample {sample}' if sample else ''
        # Adding zero makes zeros positive.
        lower, upper = (end + 0.0 for end in self.range)
        raise DeflectionError(
            f'{type(self).__name__} is asked for {what} of {values[sample]:.6g} {unit}{where}; it '
            f'reaches {low + 0.0:.6g} to {high + 0.0:.6g} {unit} (deflections from {lower:.6g} to '
            f'{upper:.6g} rad).',
            sample=sample,
        )


class _Polynomial(Spring):
    """A polynomial without a constant term, in a range that is the same in both directions."""

    max_deflection: float

    def _use(self, *law: float) -> None:
        """Take the coefficients, and refuse a law that does not increase in its whole range."""
        set_checked(self, ActuatorError, 'max_deflection', above=0.0, infinite=True)
        largest = self.max_deflection
        slope, where = _smallest(
            np.asarray(polynomial.polyder((0.0, *law)), np.float64), largest
        )
        if not slope > 0.0:
            raise ActuatorError(
                f'{type(self).__name__}: with the coefficients {law} the torque does not '
                f'increase with the deflection: its slope is {slope:.6g} at a deflection of '
                f'{where:.6g}. Expected a positive slope up to max_deflection, {largest}, in both '
                'directions.'
            )
        ends = np.array([-largest, largest])
        torques = polynomial.polyval(ends, (0.0, *law)) if np.isfinite(largest) else ends
        self._know(ends, torques, [0.0], [(0.0, *law)], slope)


def _smallest(coefficients: Array, reach: float) -> tuple[float, float]:
    """Smallest value of a polynomial between -reach and reach, and where it is."""
    leading, degree = coefficients[-1], len(coefficients) - 1
    # Beyond its outermost extremum it keeps the sign of its leading term.
    for sign in (-1.0, 1.0) if np.isinf(reach) else ():
        if leading * sign**degree < 0.0:
            return -np.inf, sign * np.inf
    roots = np.real(polynomial.polyroots(polynomial.polyder(coefficients)))
    # Imaginary parts may be rounding; a point too many does no harm.
    ends = (-reach, reach) if np.isfinite(reach) else ()
    candidates = np.array([*np.clip(roots, -reach, reach), 0.0, *ends])
    values = polynomial.polyval(candidates, coefficients)
    lowest = int(np.argmin(values))
    return float(values[lowest]), float(candidates[lowest])


@dataclass(frozen=True)
class LinearSpring(_Polynomial):
    """Torque proportional to the deflection.

    An `ActuatorError` is raised if a parameter is not positive.

    Attributes
    ----------
    stiffness : float
        [N m/rad] or [N/m]
    max_deflection : float
        In both directions [rad] or [m].

    Examples
    --------
    >>> from hodyn_ros.actuators import LinearSpring
    >>> spring = LinearSpring(1000.0, max_deflection=0.05)
    >>> spring.deflection([20.0, -5.0]), spring.torque_range
    (array([ 0.02 , -0.005]), (-50.0, 50.0))
    """

    stiffness: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'stiffness', above=0.0)
        self._use(self.stiffness)


@dataclass(frozen=True)
class CubicSpring(_Polynomial):
    """Spring that hardens or softens: stiffness * delta + cubic * delta^3.

    An `ActuatorError` is raised if a parameter cannot be used or the law does not increase within
    the range.

    Attributes
    ----------
    stiffness : float
        At zero deflection [N m/rad] or [N/m].
    cubic : float
        [N m/rad^3] or [N/m^3]; positive hardens. A negative one softens and needs a maximal
        deflection below sqrt(stiffness / (-3 cubic)), where the law stops to increase.
    max_deflection : float
        In both directions [rad] or [m].

    Examples
    --------
    >>> from hodyn_ros.actuators import CubicSpring
    >>> spring = CubicSpring(100.0, cubic=1000.0)
    >>> spring.deflection([5.0, 20.0]).round(4), spring.derivatives(0.1, 1)
    (array([0.0488, 0.1595]), array([ 11., 130.]))
    """

    stiffness: float
    cubic: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'stiffness', above=0.0)
        set_checked(self, ActuatorError, 'cubic')
        self._use(self.stiffness, *([0.0, self.cubic] if self.cubic else []))


@dataclass(frozen=True)
class PolynomialSpring(_Polynomial):
    """Polynomial without a constant term: c_1 delta + c_2 delta^2 + ...

    An `ActuatorError` is raised if a parameter cannot be used or the slope is not positive within
    the whole range.

    Attributes
    ----------
    coefficients : sequence of float
        c_1, c_2, ... [N m/rad^j] or [N/m^j].
    max_deflection : float
        In both directions [rad] or [m].

    Examples
    --------
    >>> from hodyn_ros.actuators import PolynomialSpring
    >>> spring = PolynomialSpring([100.0, 0.0, 1000.0])
    >>> spring.series([0.1, 1.0])
    array([ 11., 130.])
    """

    coefficients: Sequence[float]
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        what = 'PolynomialSpring: the array of coefficients'
        values = np.atleast_1d(finite_array(what, self.coefficients, ActuatorError))
        values = np.trim_zeros(values, 'b') if values.ndim == 1 else np.empty(0)
        if not values.size:
            raise ActuatorError(
                f'PolynomialSpring: coefficients are {self.coefficients!r}, expected at least one '
                'that is not zero.'
            )
        object.__setattr__(self, 'coefficients', tuple(values.tolist()))
        self._use(*self.coefficients)


@dataclass(frozen=True)
class TableSpring(Spring):
    """Strictly increasing spline of degree 5 through measured points.

    It is the cubic spline through the points (with two continuous derivatives, so that the motor
    acceleration is continuous) wherever that has a positive slope; elsewhere slopes and curvatures
    at the knots are reduced until the slope is positive. The third derivative jumps at knots, and
    with it the first derivative of the motor torque.

    An `ActuatorError` is raised if the numbers are not finite, not as many or not strictly
    increasing.

    Attributes
    ----------
    deflections : sequence of float
        Strictly increasing, at least two [rad] or [m]; both directions are to be given. The first
        and the last are the ends of the range.
    torques : sequence of float
        Strictly increasing, as many [N m] or [N].

    Examples
    --------
    >>> from hodyn_ros.actuators import TableSpring
    >>> spring = TableSpring([-0.2, -0.1, 0.0, 0.1, 0.2], [-40.0, -12.0, 0.0, 12.0, 40.0])
    >>> spring.deflection([12.0, 30.0]).round(3), spring.range
    (array([0.1  , 0.173]), (-0.2, 0.2))
    """

    deflections: Sequence[float]
    torques: Sequence[float]

    def __post_init__(self) -> None:
        x = _increasing('deflections', self.deflections)
        y = _increasing('torques', self.torques)
        if x.size != y.size:
            raise ActuatorError(
                f'TableSpring: there are {x.size} deflections and {y.size} torques, expected as '
                'many of both.'
            )
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            secants = np.diff(y) / np.diff(x)
            is_usable = np.all((secants > 0.0) & np.isfinite(secants))
            pieces = _increasing_spline(x, y) if is_usable else np.array(np.nan)
        if not np.all(np.isfinite(pieces)):
            raise ActuatorError(
                'TableSpring: the points are too close together or too far apart to compute with, '
                f'with slopes from {secants.min():.6g} to {secants.max():.6g}.'
            )
        object.__setattr__(self, 'deflections', tuple(x.tolist()))
        object.__setattr__(self, 'torques', tuple(y.tolist()))
        self._know(x, y, x[:-1], pieces.T, 0.0)


def _increasing(name: str, values: ArrayLike) -> Array:
    """At least two numbers, each larger than the one before."""
    array = finite_array(f'TableSpring: the array of {name}', values, ActuatorError)
    if array.ndim != 1 or array.size < 2:
        raise ActuatorError(
            f'TableSpring: {name} are {values!r}, expected at least two numbers.'
        )
    is_wrong = array[1:] <= array[:-1]
    if is_wrong.any():
        i = int(is_wrong.argmax())
        raise ActuatorError(
            f'TableSpring: {name} must increase strictly, but number {i + 2} is '
            f'{array[i + 1]:.6g} after {array[i]:.6g}.'
        )
    return array


def _increasing_spline(x: Array, y: Array) -> Array:
    """Increasing quintic pieces through the points: coefficients (6, n - 1), lowest power first.

    Powers are those of the distance from the lower knot. What cannot be computed is NaN.

    A piece increases if the five Bernstein coefficients of its slope are positive. They are linear
    in the derivatives at both knots, and positive for slopes no larger than the secants beside a
    knot and no curvature. Knots move from the derivatives of the cubic spline to those until every
    piece increases.
    """
    from scipy.interpolate import BPoly, CubicSpline, PPoly

    h, rise = np.diff(x), np.diff(y)
    secants = rise / h
    try:
        spline = CubicSpline(x, y)
    except ValueError:  # SciPy found numbers that are not finite
        return np.array(np.nan)
    slopes, curvatures = spline(x, 1), spline(x, 2)
    safe = np.minimum(np.append(secants[0], secants), np.append(secants, secants[-1]))
    floor = _FLATTEST * np.minimum(safe[:-1], safe[1:])
    weight = np.ones(x.size)
    while True:
        d, s = safe + weight * (slopes - safe), weight * curvatures
        ends = d[:-1], d[:-1] + 0.25 * h * s[:-1], d[1:] - 0.25 * h * s[1:], d[1:]
        # The mean of the coefficients is the secant.
        coefficients = np.stack((*ends, 5.0 * secants - sum(ends)))
        is_flat = ~(coefficients >= floor).all(axis=0)
        is_bad = np.append(is_flat, False) | np.append(False, is_flat)
        if not is_bad.any() or not weight[is_bad].any():
            break
        weight[is_bad] = np.where(weight[is_bad] > 1e-6, 0.5 * weight[is_bad], 0.0)
    bernstein = BPoly.from_derivatives(x, np.stack((y, d, s), axis=-1))
    coefficients = np.asarray(PPoly.from_bernstein_basis(bernstein).c, dtype=np.float64)
    return coefficients[::-1]
