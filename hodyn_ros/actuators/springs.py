"""Laws of springs: torque as a strictly increasing function of the deflection, and its inverse.

The deflection is that of the motor against the joint, delta = theta - q, so that a positive one
pushes the joint in its positive direction. A new law is a class derived from `Spring`; to be had
by name in parameters, it is added to `SPRINGS` of `config`.
"""

from __future__ import annotations

import bisect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.series import compose, compose_inverse
from hodyn_ros.checks import checked_number, finite_array, first_not_finite
from hodyn_ros.errors import ActuatorError, DeflectionError

Array = NDArray[np.float64]
Number = TypeVar('Number', float, Array)

# A value that reaches the end of a range by rounding alone is not outside of it.
_ROUNDING = 1e-12

# Of the deflection at which the search for an end of an unlimited law begins.
_MOST_DOUBLINGS = 1000

# Bisection alone would need about 60 steps for a double, 1100 if it had to find its exponent too.
_MOST_STEPS = 1200
_TINY = 5e-324

# The slope of a table may come this close to zero, as a fraction of the smaller secant beside an
# interval.
_FLATTEST = 0.1


def increasing_root(
    function: Callable[[Any], tuple[Any, Any]],
    lower: Number,
    upper: Number,
    guess: Number | None = None,
    value: Number | float = 0.0,
) -> Number:
    """Where increasing functions have given values: Newton's method, kept inside of brackets.

    `function` gives values, which may be infinite, and slopes; with finite brackets (...),
    function(lower) <= value <= function(upper). A step that would leave the bracket, or that does
    not halve the one before, is replaced by a bisection, so that the search always ends. The root
    is exact to rounding, or the nearer bound if it is not between both. For floats no arrays are
    made.
    """
    low: Any = lower
    high: Any = upper
    x: Any = low + 0.5 * (high - low) if guess is None else guess
    tools: Any = (_pick, math.ulp, bool, nullcontext())
    if not isinstance(x, float):
        quiet = np.errstate(divide='ignore', invalid='ignore', over='ignore')
        tools = (np.where, np.spacing, np.all, quiet)
        low, high, x, _ = np.broadcast_arrays(low, high, x, value)
    where, spacing, every, overflow = tools
    last = high - low
    was_good = is_found = x != x  # nowhere
    with overflow:
        for _ in range(_MOST_STEPS):
            f, slope = function(x)
            excess = f - value
            low, high = where(excess <= 0.0, x, low), where(excess >= 0.0, x, high)
            step = -excess / where(slope > 0.0, slope, _TINY)
            there = x + step
            # A comparison with NaN is false, so that an unusable step becomes a bisection.
            is_good = (there >= low) & (there <= high) & (2.0 * abs(step) <= abs(last))
            there = where(is_good, there, low + 0.5 * (high - low))
            change = there - x
            # What is found stays: its further steps would be rounding.
            x = where(is_found, x, there)
            rounding = spacing(abs(x))
            # Newton's steps fall quadratically: the next one is less than change^2 / last.
            falls = was_good & is_good & (change * change <= rounding * abs(last))
            is_found = is_found | falls | (abs(change) <= 4.0 * rounding)
            if every(is_found):
                break
            was_good, last = is_good, change
    return x  # type: ignore[no-any-return]


def _pick(condition: bool, one: float, other: float) -> float:
    return one if condition else other


class Spring(ABC):
    """A spring law f; derive from it for a law of one's own. Springs are immutable.

    A law states its range and derivatives. Its slope must be positive in the whole range.
    """

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

    def _inverse(self, torque: Array) -> Any:
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
        """Refuse deflections (...) outside of the range with a `DeflectionError`."""
        values = np.asarray(deflection, dtype=np.float64)
        self._refuse_outside('a deflection', values, *self.range, 'rad')

    def _refuse_outside(
        self, what: str, values: Array, low: float, high: float, unit: str
    ) -> None:
        """Raise an error about the first value that is outside of its bounds, but for rounding."""
        slack = [_ROUNDING * abs(end) if math.isfinite(end) else 0.0 for end in (low, high)]
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
        """Torque and its time derivatives (..., K) along a moving deflection (..., K).

        A `DeflectionError` is raised if a deflection is outside of the range.
        """
        deflection = np.asarray(deflection, dtype=np.float64)
        self.check(deflection[..., 0])
        return compose(self.derivatives(deflection[..., 0], deflection.shape[-1] - 1), deflection)

    def deflection_series(self, torque: Array) -> Array:
        """Deflection and its time derivatives (..., K) along a torque; the inverse of `series`.

        A `DeflectionError` is raised if the spring cannot have a torque.
        """
        torque = np.asarray(torque, dtype=np.float64)
        x = self.deflection(torque[..., 0])
        return compose_inverse(self.derivatives(x, torque.shape[-1] - 1), torque, x)


class _Polynomial(Spring):
    """A polynomial without a constant term, in a range that is the same in both directions."""

    max_deflection: float
    # Coefficients of the law and of its derivatives, and the smallest slope in the range.
    _rows: Sequence[Sequence[float]]
    _lowest_slope: float

    def _set(self, law: Sequence[float], **fields: object) -> None:
        """Set the fields, and refuse a law that does not increase in its whole range."""
        name = type(self).__name__
        largest = checked_number(
            f'{name}: max_deflection', self.max_deflection, ActuatorError, above=0.0, infinite=True
        )
        rows = derivative_rows((0.0, *law), len(law))
        slope, where = _smallest(rows[1], largest)
        if not slope > 0.0:
            raise ActuatorError(
                f'{name}: with the coefficients {tuple(law)} the torque does not '
                f'increase with the deflection: its slope is {slope:.6g} at a deflection of '
                f'{where:.6g}. Expected a positive slope up to max_deflection, {largest}, in both '
                'directions.'
            )
        own = {'max_deflection': largest, '_rows': rows, '_lowest_slope': slope}
        for key, value in {**fields, **own}.items():
            object.__setattr__(self, key, value)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return -self.max_deflection, self.max_deflection

    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives; see `Spring.derivatives`."""
        x = deflection if np.ndim(deflection) else float(deflection)
        result = np.zeros((*np.shape(deflection), order + 1))
        for j, row in enumerate(self._rows[: order + 1]):
            result[..., j] = horner(row, x)
        return result


def _smallest(coefficients: Sequence[float], reach: float) -> tuple[float, float]:
    """Smallest value of a polynomial between -reach and reach, and where it is."""
    roots = polynomial.polyroots(derivative_rows(coefficients, 1)[-1])
    # Imaginary parts may be rounding; a point too many does no harm.
    candidates = np.clip([*np.real(roots), 0.0], -reach, reach)
    if np.isfinite(reach):
        candidates = np.append(candidates, (-reach, reach))
    else:
        # Beyond its outermost extremum it keeps the sign of its leading term.
        for sign in (-1.0, 1.0):
            if coefficients[-1] * sign ** (len(coefficients) - 1) < 0.0:
                return -np.inf, sign * np.inf
    values = polynomial.polyval(candidates, coefficients)
    lowest = int(np.argmin(values))
    return float(values[lowest]), float(candidates[lowest])


def _positive(spring: Spring, name: str) -> float:
    what = f'{type(spring).__name__}: {name}'
    return checked_number(what, getattr(spring, name), ActuatorError, above=0.0)


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
        stiffness = _positive(self, 'stiffness')
        self._set([stiffness], stiffness=stiffness)

    def _inverse(self, torque: Array) -> Any:
        return torque / self.stiffness

    def deflection_series(self, torque: Array) -> Array:
        """Deflection and its time derivatives; see `Spring.deflection_series`."""
        result = np.asarray(torque, dtype=np.float64) / self.stiffness
        result[..., 0] = self.deflection(np.asarray(torque)[..., 0])
        return result


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
        stiffness = _positive(self, 'stiffness')
        cubic = checked_number('CubicSpring: cubic', self.cubic, ActuatorError)
        law = [stiffness, 0.0, cubic] if cubic else [stiffness]
        self._set(law, stiffness=stiffness, cubic=cubic)

    def _inverse(self, torque: Array) -> Any:
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
        coefficients = tuple(values.tolist())
        self._set(coefficients, coefficients=coefficients)

    def _inverse(self, torque: Array) -> Any:
        value, slope = self._rows[:2]
        wanted: Any = torque if torque.ndim else float(torque)
        least, most = (np.minimum, np.maximum) if torque.ndim else (min, max)
        # The slope is nowhere smaller than the smallest one, which bounds the deflection.
        reach = least(abs(wanted) / self._lowest_slope * (1.0 + 1e-9), self.max_deflection)
        return increasing_root(
            lambda x: (horner(value, x), horner(slope, x)),
            -reach * (wanted < 0.0),
            reach * (wanted > 0.0),
            least(most(wanted / self.coefficients[0], -reach), reach),
            wanted,
        )


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
    """

    deflections: Sequence[float]
    torques: Sequence[float]
    _points: Array = field(init=False, repr=False, compare=False)
    _pieces: Array = field(init=False, repr=False, compare=False)

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
        object.__setattr__(self, '_points', np.stack((x, y)))
        object.__setattr__(self, '_pieces', pieces)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return self.deflections[0], self.deflections[-1]

    @property
    def torque_range(self) -> tuple[float, float]:
        """Torques at the ends of the range [N m] or [N]."""
        return self.torques[0], self.torques[-1]

    def _piece(self, ends: Sequence[float], values: Array) -> tuple[Any, Sequence[Any]]:
        """Places of the pieces that values belong to, and their coefficients."""
        if values.ndim == 0:
            place = min(max(bisect.bisect_right(ends, float(values)), 1), len(ends) - 1) - 1
            return place, self._pieces[:, place].tolist()
        places = np.clip(np.searchsorted(ends, values, 'right'), 1, len(ends) - 1) - 1
        return places, list(self._pieces[:, places])

    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives; see `Spring.derivatives`."""
        x = np.asarray(deflection, dtype=np.float64)
        result = np.zeros((*x.shape, order + 1))
        place, coefficients = self._piece(self.deflections, x)
        distance = x - self._points[0][place]
        for j, row in enumerate(derivative_rows(coefficients, order)):
            result[..., j] = horner(row, distance)
        return result

    def _inverse(self, torque: Array) -> Any:
        place, coefficients = self._piece(self.torques, torque)
        points: Any = self._points[:, place], self._points[:, place + 1]
        (x, y), (above, beyond) = points if torque.ndim else map(np.ndarray.tolist, points)
        length, part = above - x, (torque - y) / (beyond - y)
        value, slope = derivative_rows(coefficients, 1)
        distance = increasing_root(
            lambda d: (horner(value, d), horner(slope, d)),
            0.0 * length,
            length,
            part * length,
            torque if torque.ndim else float(torque),
        )
        return x + distance


def _increasing(name: str, values: ArrayLike) -> Array:
    """At least two numbers, each larger than the one before."""
    array = finite_array(f'TableSpring: the array of {name}', values, ActuatorError)
    if array.ndim != 1 or array.size < 2:
        raise ActuatorError(f'TableSpring: {name} are {values!r}, expected at least two numbers.')
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
    last = (-15.0 * rise + 7.0 * turn - bend) / h**4, (6.0 * rise - 3.0 * turn + 0.5 * bend) / h**5
    return np.stack((*first, *last))


def derivative_rows(coefficients: Sequence[Any], order: int) -> list[Sequence[Any]]:
    """Coefficients of a polynomial and of its derivatives up to an order, lowest power first."""
    rows = [coefficients]
    for _ in range(min(order, len(coefficients) - 1)):
        rows.append([power * c for power, c in enumerate(rows[-1]) if power])
    return rows


def horner(coefficients: Sequence[Any], x: Any) -> Any:
    """Value of a polynomial; `numpy.polynomial` takes ten times as long for a single number."""
    *lower, result = coefficients
    for c in reversed(lower):
        result = result * x
        if type(c) is not float or c:  # many coefficients of springs are zero
            result = result + c
    return result
