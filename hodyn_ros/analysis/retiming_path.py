"""A geometric path in a parameter whose own constant speed begins and ends at rest.

A time law that begins at rest with zero acceleration, jerk and snap advances on the path as t^5,
so its speed, as a function of the place, has no Taylor series at the ends. In the parameter u with
sigma = rho(u), whose first four derivatives vanish at both ends, the joint motion rests there
whatever the speed of u is, and that speed may be any smooth positive function of u.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.composition import compose
from hodyn_ros.analysis.stretching import TimedMotion, knots_of
from hodyn_ros.errors import TrajectoryError

Array = NDArray[np.float64]

# Order in t to which a motion of class C4 that begins at rest leaves its first place.
_ORDER_OF_REST = 5
# Size of a derivative at an end, relative to the largest on the path, up to which it is zero.
_VANISHING = 1e-9
# Places at which the sizes of derivatives are taken, and on each segment its positions.
_PLACES, _ON_SEGMENT = 201, 16
# Difference of positions, relative to the largest one of the joint, up to which it is rounding.
_ROUNDING = 4096.0 * float(np.finfo(np.float64).eps)
# Of the interval from 0 to 1 after which a value of u is known to rounding.
_HALVINGS = 55


def moving_parts(path: TimedMotion) -> list[tuple[float, float]]:
    """Find the intervals of the parameter on which a path moves; in between it stands still.

    Parameters
    ----------
    path : function of sigma

    Returns
    -------
    list of (float, float)
        Increasing, each from one knot of the path to another one; a path without knots is one
        part. Where the positions of all joints are the same on a whole segment, but for rounding,
        the path stands still.

    Raises
    ------
    TrajectoryError
        If the path does not move, or has positions that are not finite.
    """
    knots = knots_of(path)
    if knots is None:
        knots = np.array([path.start_time, path.end_time], dtype=np.float64)
    if not (np.all(np.isfinite(knots)) and knots[-1] > knots[0]):
        raise TrajectoryError(
            f'The path goes from {path.start_time!r} to {path.end_time!r}, expected an interval.'
        )
    places = knots[:-1, None] + np.diff(knots)[:, None] * np.linspace(0.0, 1.0, _ON_SEGMENT)
    positions = path(np.minimum(places, knots[-1]), 0)[:, :, 0]
    if not np.all(np.isfinite(positions)):
        raise TrajectoryError('The path has positions that are not finite.')
    rounding = _ROUNDING * np.abs(positions).max(axis=(0, 1))
    moves = np.any(np.ptp(positions, axis=1) > rounding, axis=1)
    if not moves.any():
        raise TrajectoryError('The path does not move: all its positions are the same.')
    edges = np.flatnonzero(np.diff(moves, prepend=False, append=False))
    return [(float(knots[a]), float(knots[b])) for a, b in edges.reshape(-1, 2)]


class RestingPath:
    """A path q(sigma) as a function p(u) of u from 0 to 1, of class C4 and at rest at both ends.

    Parameters
    ----------
    path : function of sigma
        Such as a `MotionSpline`.
    start, end : float
        Values of sigma, by default those at which the path begins and ends.

    Raises
    ------
    TrajectoryError
        If the path does not move, or has values that are not finite.
    """

    def __init__(
        self, path: TimedMotion, start: float | None = None, end: float | None = None
    ) -> None:
        self._path = path
        self._start = float(path.start_time if start is None else start)
        self._end = float(path.end_time if end is None else end)
        self._length = self._end - self._start
        places = np.linspace(self._start, self._end, _PLACES)
        # In units of the whole length, all derivatives are comparable.
        derivatives = path(places, 4) * self._length ** np.arange(5.0)[:, None]
        if derivatives.ndim != 3 or not np.all(np.isfinite(derivatives)):
            raise TrajectoryError(
                'The path must give finite derivatives of shape (N, 5, n), but gives '
                f'{derivatives.shape} with values that are not finite or in another shape.'
            )
        size = np.abs(derivatives[:, 1:]).max(axis=(0, 2))
        exponents = [_exponent(derivatives[place, 1:], size) for place in (0, -1)]
        self._from_start = _advance(*exponents)
        self._from_end = _advance(*reversed(exponents))

    def parameter(self, u: Array, K: int) -> Array:
        """Compute derivatives 0 to K-1 of sigma with respect to u, shape (..., K)."""
        near_end = u > 0.5
        x = np.where(near_end, 1.0 - u, u)
        result = np.empty((*np.shape(u), K))
        for k in range(K):
            at_start = np.polynomial.polynomial.polyval(x, _derivative(self._from_start, k))
            at_end = np.polynomial.polynomial.polyval(x, _derivative(self._from_end, k))
            result[..., k] = self._length * np.where(near_end, -((-1.0) ** k) * at_end, at_start)
        result[..., 0] += np.where(near_end, self._end, self._start)
        # Rounding must not lead off the path.
        np.clip(result[..., 0], self._start, self._end, out=result[..., 0])
        return result

    def knots(self) -> Array:
        """Values of u at the knots of the path, from 0 to 1; only these two if it has none."""
        sigma = knots_of(self._path)
        if sigma is None:
            return np.array([0.0, 1.0])
        sigma = sigma[(sigma >= self._start) & (sigma <= self._end)]
        low, high = np.zeros_like(sigma), np.ones_like(sigma)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            is_before = self.parameter(middle, 1)[:, 0] < sigma
            low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
        return np.unique(np.concatenate(([0.0], high[1:-1], [1.0])))

    def sigma(self, u: Array) -> Array:
        """Series (..., K) of sigma along a moving parameter (..., K)."""
        return compose(self.parameter(u[..., 0], u.shape[-1]), u)

    def along(self, u: Array) -> Array:
        """Joint motion along a moving parameter.

        Parameters
        ----------
        u : ndarray, shape (..., K)
            Series of the parameter.

        Returns
        -------
        ndarray, shape (..., K, n)
        """
        sigma = self.sigma(u)
        outer = np.swapaxes(self._path(sigma[..., 0], u.shape[-1] - 1), -1, -2)
        return np.swapaxes(compose(outer, sigma[..., None, :]), -1, -2)

    def __call__(self, u: ArrayLike, highest_derivative: int = 4) -> Array:
        """Compute p(u) and its derivatives, shape (..., highest_derivative + 1, n)."""
        places = np.asarray(u, dtype=np.float64)
        series = np.zeros((*places.shape, highest_derivative + 1))
        series[..., 0] = places
        series[..., 1:2] = 1.0
        return self.along(series)


def _exponent(derivatives: Array, size: Array) -> int:
    """Power of u with which sigma leaves an end at which the path has these derivatives (4, n)."""
    moves = np.abs(derivatives).max(axis=1) > _VANISHING * size
    order = int(np.argmax(moves)) + 1 if moves.any() else _ORDER_OF_REST
    return -(-_ORDER_OF_REST // order)


def _advance(first: int, last: int) -> Array:
    """Coefficients of the polynomial from 0 to 1 that leaves 0 as x^first, reaches 1 as x^last.

    Its derivative is x^(first-1) (1 - x)^(last-1) times a constant.
    """
    polynomial = np.polynomial.polynomial
    rate = polynomial.polypow([1.0, -1.0], last - 1)
    rate = np.concatenate((np.zeros(first - 1), rate))
    constant = factorial(first + last - 1) / (factorial(first - 1) * factorial(last - 1))
    return np.asarray(polynomial.polyint(constant * rate))


def _derivative(coefficients: Array, order: int) -> Array:
    return np.asarray(np.polynomial.polynomial.polyder(coefficients, order))
