"""Laws of springs: torque as a strictly increasing function of the deflection, and its inverse.

The deflection is that of the motor against the joint, delta = theta - q, so that a positive one
pushes the joint in its positive direction. A new law is a class derived from `Spring`; to be had
by name in parameters, it is added to `SPRINGS` of `config`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.kernels import ROUNDING
from hodyn_ros.checks import finite_array, first_not_finite, set_checked
from hodyn_ros.errors import ActuatorError, DeflectionError
from hodyn_ros.lie.jets import Jet, compose
from hodyn_ros.typing import Array

# Of the deflection at which the search for an end of an unlimited law begins.
_MOST_DOUBLINGS = 1000

# Bisection alone would need about 60 steps for a double, 1100 if it had to find its exponent too.
_MOST_STEPS = 1200
_TINY = 5e-324

# The slope of a table may come this close to zero, as a fraction of the smaller secant beside an
# interval.
_FLATTEST = 0.1


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]],
    lower: Array,
    upper: Array,
    guess: Array | None = None,
    value: Array | float = 0.0,
) -> Array:
    """Points at which increasing functions have given values: Newton's method within brackets.

    A step that would leave the bracket, or that does not halve the one before, is replaced by a
    bisection, so that the search always ends.

    Parameters
    ----------
    function : callable
        Gives values, which may be infinite, and slopes at points (...).
    lower, upper : ndarray, shape (...)
        Finite brackets with function(lower) <= value <= function(upper).
    guess : ndarray, shape (...), optional
        Where the search starts; by default in the middle.
    value : ndarray, shape (...), or float

    Returns
    -------
    ndarray, shape (...)
        Exact to rounding; the nearer bound where the value is not between both.
    """
    x = lower + 0.5 * (upper - lower) if guess is None else guess
    low, high, x, _ = np.broadcast_arrays(lower, upper, x, value)
    last, is_found = high - low, np.zeros(x.shape, dtype=bool)
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        for _ in range(_MOST_STEPS):
            f, slope = function(x)
            excess = f - value
            low, high = np.where(excess <= 0.0, x, low), np.where(excess >= 0.0, x, high)
            there = x - excess / np.where(slope > 0.0, slope, _TINY)
            # A comparison with NaN is false, so that an unusable step becomes a bisection.
            is_good = (there >= low) & (there <= high) & (2.0 * abs(there - x) <= abs(last))
            there = np.where(is_good, there, low + 0.5 * (high - low))
            # What is found stays: its further steps would be rounding.
            last, x = there - x, np.where(is_found, x, there)
            is_found |= abs(last) <= 4.0 * np.spacing(abs(x))
            if is_found.all():
                break
    return x


class Spring(ABC):
    """A spring law f; derive from it for a law of one's own. Springs are immutable.

    A law states its range and derivatives. Its slope must be positive in the whole range.

    Attributes
    ----------
    block : ndarray, optional
        Numbers by which `kernels` knows the law; None for a law of one's own.
    """

    block: ClassVar[Array | None] = None

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]; may be infinite."""

    @abstractmethod
    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives (..., order + 1) with respect to deflections (...).

        Entry j is the j-th derivative of f [N m/rad^j] or [N/m^j]. Deflections are not checked
        against the range.
        """

    def _inverse(self, torque: Array) -> Array:
        """Deflections of torques that lie within `torque_range`."""

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
        """Deflection (...) at which the spring has a torque (...) [N m] or [N].

        Raises
        ------
        DeflectionError
            If the spring cannot have a torque; its attribute `sample` says which.
        """
        values = np.asarray(torque, dtype=np.float64)
        low, high = self.torque_range
        self._refuse_outside('a torque', values, low, high, 'N m')
        lower, upper = self.range
        found: Array = np.clip(self._inverse(np.clip(values, low, high)), lower, upper)
        return found

    def check(self, deflection: ArrayLike) -> None:
        """Refusal of deflections (...) [rad] or [m] out of the range, with a `DeflectionError`."""
        values = np.asarray(deflection, dtype=np.float64)
        self._refuse_outside('a deflection', values, *self.range, 'rad')

    def _refuse_outside(
        self, what: str, values: Array, low: float, high: float, unit: str
    ) -> None:
        """Raise an error about the first value that is outside of its bounds, but for rounding."""
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

    def series(self, deflection: Array) -> Array:
        """Torque and its time derivatives along a moving deflection.

        Parameters
        ----------
        deflection : ndarray, shape (..., K)
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
        deflection = np.asarray(deflection, dtype=np.float64)
        self.check(deflection[..., 0])
        x = Jet.along(deflection, -1)
        return compose(Jet.along(self.derivatives(x[0], len(x) - 1), -1), x).array(-1)

    def deflection_series(self, torque: Array) -> Array:
        """Deflection and its time derivatives along a torque; the inverse of `series`.

        Parameters
        ----------
        torque : ndarray, shape (..., K)
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
        tau = Jet.along(np.asarray(torque, dtype=np.float64), -1)
        x = [self.deflection(tau[0])]
        derivatives = Jet.along(self.derivatives(x[0], len(tau) - 1), -1)
        for m in range(1, len(tau)):
            # What is known of derivative m: all but the term of that of the deflection.
            known = compose(derivatives, Jet([*x, np.zeros_like(x[0])]))[m]
            x.append((tau[m] - known) / derivatives[1])
        return Jet(x).array(-1)


class _KnownSpring(Spring):
    """A law that the kernels know."""

    block: Array  # type: ignore[misc]

    def _know(self, kind: int, *numbers: ArrayLike) -> None:
        """Make the block of numbers; they follow range and torques at its ends."""
        rest = np.concatenate([np.ravel(own) for own in numbers])
        block = np.concatenate(([kind, *self.range, -np.inf, np.inf], rest))
        object.__setattr__(self, 'block', block)
        for i in (1, 2):
            if np.isfinite(block[i]):
                block[i + 2] = self.derivatives(block[i], 0)[0]

    @property
    def torque_range(self) -> tuple[float, float]:
        """Torques at the ends of the range [N m] or [N]."""
        return float(self.block[3]), float(self.block[4])

    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives; see `Spring.derivatives`."""
        x = np.asarray(deflection, dtype=np.float64)
        result = np.empty((*x.shape, order + 1))
        kernels.laws(x.size, self.block, x.ravel(), result.reshape(-1, order + 1))
        return result

    def _inverse(self, torque: Array) -> Array:
        """Deflections (...) of torques (...) within the range, by the kernels."""
        return self.deflection_series(torque[..., None])[..., 0]

    def deflection_series(self, torque: Array) -> Array:
        """Deflection and its time derivatives; see `Spring.deflection_series`."""
        torque = np.asarray(torque, dtype=np.float64)
        result, status = kernels.deflections(self.block, torque)
        if status & kernels.OUT_OF_REACH:
            self._refuse_outside('a torque', torque[..., 0], *self.torque_range, 'N m')
        return result[..., 0, :]


class _Polynomial(_KnownSpring):
    """A polynomial without a constant term, in a range that is the same in both directions."""

    max_deflection: float

    def _use(self, law: Sequence[float]) -> None:
        """Take the coefficients, and refuse a law that does not increase in its whole range."""
        set_checked(self, ActuatorError, 'max_deflection', above=0.0, infinite=True)
        largest = self.max_deflection
        slope, where = _smallest(
            np.asarray(polynomial.polyder((0.0, *law)), np.float64), largest
        )
        if not slope > 0.0:
            raise ActuatorError(
                f'{type(self).__name__}: with the coefficients {tuple(law)} the torque does not '
                f'increase with the deflection: its slope is {slope:.6g} at a deflection of '
                f'{where:.6g}. Expected a positive slope up to max_deflection, {largest}, in both '
                'directions.'
            )
        kind = kernels.LINE if len(law) == 1 else kernels.POLYNOMIAL
        self._know(kind, len(law) + 1, slope, 0.0, law)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return -self.max_deflection, self.max_deflection


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
    """

    stiffness: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'stiffness', above=0.0)
        self._use([self.stiffness])


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
    """

    stiffness: float
    cubic: float
    max_deflection: float = np.inf

    def __post_init__(self) -> None:
        set_checked(self, ActuatorError, 'stiffness', above=0.0)
        set_checked(self, ActuatorError, 'cubic')
        self._use([self.stiffness, 0.0, self.cubic] if self.cubic else [self.stiffness])


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
        self._use(self.coefficients)


@dataclass(frozen=True)
class TableSpring(_KnownSpring):
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
        self._know(kernels.TABLE, x.size, x, y, pieces.T)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return self.deflections[0], self.deflections[-1]


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
    from scipy.interpolate import CubicSpline

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
    # What is missing at the upper end after the first three terms, in units of the interval.
    rise = rise - (d[:-1] + 0.5 * s[:-1] * h) * h
    turn = (np.diff(d) - s[:-1] * h) * h
    bend = np.diff(s) * h * h
    first = y[:-1], d[:-1], 0.5 * s[:-1], (10.0 * rise - 4.0 * turn + 0.5 * bend) / h**3
    last = (
        (-15.0 * rise + 7.0 * turn - bend) / h**4,
        (6.0 * rise - 3.0 * turn + 0.5 * bend) / h**5,
    )
    return np.stack((*first, *last))
