"""A spring law given by a table: a monotone spline with two continuous derivatives."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BPoly, CubicSpline, PPoly

from hodyn_ros.actuators.rootfinding import increasing_root, increasing_root_of_one
from hodyn_ros.actuators.springs import Spring, derivative_rows, horner
from hodyn_ros.errors import ActuatorError

Array = NDArray[np.float64]

_DEGREE = 5

# The slope may come this close to zero, as a fraction of the smaller secant beside an interval.
_FLATTEST = 0.1


@dataclass(frozen=True)
class TableSpring(Spring):
    """Strictly increasing spline of degree 5 through measured points.

    It is the cubic spline through the points (with two continuous derivatives, so that the motor
    acceleration is continuous) wherever that has a positive slope; elsewhere slopes and curvatures
    at the knots are reduced until the slope is positive. The third derivative jumps at knots, and
    with it the first derivative of the motor torque.

    Attributes
    ----------
    deflections : sequence of float
        Strictly increasing, at least two [rad] or [m]; both directions are to be given. The first
        and the last are the ends of the range.
    torques : sequence of float
        Strictly increasing, as many [N m] or [N].

    Raises
    ------
    ActuatorError
        If the numbers are not finite, not as many or not strictly increasing.
    """

    deflections: Sequence[float]
    torques: Sequence[float]
    _pieces: tuple[PPoly, ...] = field(init=False, repr=False, compare=False, default=())

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
            law = _spline(x, y) if np.all((secants > 0.0) & np.isfinite(secants)) else None
        if law is None or not np.all(np.isfinite(law.c)):
            raise ActuatorError(
                'TableSpring: the points are too close together or too far apart to compute with, '
                f'with slopes from {secants.min():.6g} to {secants.max():.6g}.'
            )
        object.__setattr__(self, 'deflections', tuple(x.tolist()))
        object.__setattr__(self, 'torques', tuple(y.tolist()))
        pieces = (law, *(law.derivative(j) for j in range(1, _DEGREE + 1)))
        object.__setattr__(self, '_pieces', pieces)

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest admissible deflection [rad] or [m]."""
        return self.deflections[0], self.deflections[-1]

    @property
    def torque_range(self) -> tuple[float, float]:
        """Torques at the ends of the range [N m] or [N]."""
        return self.torques[0], self.torques[-1]

    def derivatives(self, deflection: Array, order: int) -> Array:
        """Torque and its derivatives; see `Spring.derivatives`."""
        x = np.asarray(deflection, dtype=np.float64)
        result = np.zeros((*x.shape, order + 1))
        for j, piece in enumerate(self._pieces[: order + 1]):
            result[..., j] = piece(x)
        return result

    def _inverse(self, torque: Array) -> Array:
        if torque.ndim == 0:
            return np.array(self._inverse_of_one(float(torque)))
        x, y = np.array(self.deflections), np.array(self.torques)
        right = np.clip(np.searchsorted(y, torque), 1, x.size - 1)
        lower, upper = x[right - 1], x[right]
        part = (torque - y[right - 1]) / (y[right] - y[right - 1])
        law, slope = self._pieces[:2]
        return increasing_root(
            lambda place: (law(place), slope(place)),
            lower,
            upper,
            np.clip(lower + part * (upper - lower), lower, upper),
            torque,
        )

    def _inverse_of_one(self, torque: float) -> float:
        right = min(max(bisect.bisect_left(self.torques, torque), 1), len(self.torques) - 1)
        lower, upper = self.deflections[right - 1 : right + 1]
        below, above = self.torques[right - 1 : right + 1]
        # Powers of the distance from the lower knot, lowest first.
        value, slope = derivative_rows(self._pieces[0].c[::-1, right - 1].tolist())[:2]
        length = upper - lower
        distance = increasing_root_of_one(
            lambda d: (horner(value, d), horner(slope, d)),
            0.0,
            length,
            min(max((torque - below) / (above - below) * length, 0.0), length),
            torque,
        )
        return lower + distance


def _spline(x: Array, y: Array) -> PPoly | None:
    """Increasing spline through the points, unless it cannot be computed."""
    try:
        slopes, curvatures = _monotone_derivatives(x, y)
        points = np.stack((y, slopes, curvatures), axis=-1)
        return PPoly.from_bernstein_basis(BPoly.from_derivatives(x, points))
    except ValueError:  # SciPy found numbers that are not finite
        return None


def _increasing(name: str, values: ArrayLike) -> Array:
    """At least two numbers, each larger than the one before."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim != 1 or array.size < 2 or not np.all(np.isfinite(array)):
        raise ActuatorError(
            f'TableSpring: {name} are {values!r}, expected at least two finite numbers.'
        )
    is_wrong = array[1:] <= array[:-1]
    if is_wrong.any():
        i = int(is_wrong.argmax())
        raise ActuatorError(
            f'TableSpring: {name} must increase strictly, but number {i + 2} is '
            f'{array[i + 1]:.6g} after {array[i]:.6g}.'
        )
    return array


def _monotone_derivatives(x: Array, y: Array) -> tuple[Array, Array]:
    """First and second derivatives at the knots for which the quintic pieces increase strictly.

    A piece increases if the five Bernstein coefficients of its slope are positive. They are linear
    in the derivatives at both knots, and positive for slopes no larger than the secants beside a
    knot and no curvature. Knots move from the derivatives of the cubic spline to those until every
    piece increases.
    """
    h = np.diff(x)
    secants = np.diff(y) / h
    spline = CubicSpline(x, y)
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
            return d, s
        weight[is_bad] = np.where(weight[is_bad] > 1e-6, 0.5 * weight[is_bad], 0.0)
