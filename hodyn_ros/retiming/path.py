"""Paths to be retimed: where they move, at rest at both ends."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.lie.leibniz import compose
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.retiming.scaling import TimedMotion, knots_of
from hodyn_ros.typing import Array

# Order in t to which a motion of class C4 that begins at rest leaves its first place.
_ORDER_OF_REST = 5
# Size of a derivative at an end, relative to the largest on the path, up to which it is zero.
_VANISHING = 1e-9
# Places at which the sizes of derivatives are taken, and on each segment its positions.
_PLACES, _PLACES_ON_SEGMENT = 201, 16
# Difference of positions, relative to the largest one of the joint, up to which it is rounding.
_ROUNDING = 4096.0 * float(np.finfo(np.float64).eps)
# Of the interval from 0 to 1 after which a value of u is known to rounding.
_HALVINGS = 55


def moving_parts(model: RobotModel, path: TimedMotion) -> list[tuple[float, float]]:
    """Intervals of the parameter sigma on which a path moves; in between it stands still.

    Each goes from one knot of the path to another one; a path without knots is one part. Where the
    positions of all joints are the same on a whole segment, but for rounding, it stands still.

    Parameters
    ----------
    model : RobotModel
        Of n joints.
    path : function of the path parameter
        Of class C4, of n joints.

    Returns
    -------
    list of (float, float)
        Start and end of each part in sigma, increasing; at least one.

    Raises
    ------
    TrajectoryError
        If the path is no function, is not of class C4, has another number of joints or no
        interval, is not finite, or does not move.
    """
    if not callable(path):
        raise TrajectoryError(
            f'The path is of type {type(path).__name__}, expected a function such as the '
            'MotionSpline that fit_spline makes.'
        )
    smooth = getattr(path, 'continuous_derivative', 4)
    if smooth < 4:
        raise TrajectoryError(
            f'The path is continuous up to derivative {smooth} only, expected 4: otherwise the '
            'torque rate jumps or is infinite at any speed. Fit a spline through its waypoints.'
        )
    shape = np.shape(path(path.start_time, 0))
    if shape != (1, model.n_joints):
        raise TrajectoryError(
            f'The path has positions of shape {shape}, expected (1, {model.n_joints}) for the '
            f'joints of {model.name!r}.'
        )
    knots = knots_of(path)
    if knots is None:
        knots = np.array([path.start_time, path.end_time], dtype=np.float64)
    if not (np.all(np.isfinite(knots)) and knots[-1] > knots[0]):
        raise TrajectoryError(
            f'The path goes from {path.start_time!r} to {path.end_time!r}, expected an interval.'
        )
    places = knots[:-1, None] + np.diff(knots)[:, None] * np.linspace(
        0.0, 1.0, _PLACES_ON_SEGMENT
    )
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

    It goes from `start` to `end` in sigma, by default along the whole path. A law that leaves rest
    advances as t^5 and has no smooth speed over sigma. The first four derivatives of sigma(u)
    vanish at both ends: there the joints rest whatever the speed of u is, a smooth function of u.

    Parameters
    ----------
    path : function of the path parameter
        q(sigma), of class C4.
    start, end : float, optional
        Of the part in sigma.

    Attributes
    ----------
    ends : (float, float)
        Start and end in sigma.
    start_time, end_time : float
        0 and 1, of u.

    Raises
    ------
    TrajectoryError
        If the path gives no finite derivatives of shape (N, 5, n).
    """

    start_time, end_time = 0.0, 1.0

    def __init__(
        self, path: TimedMotion, start: float | None = None, end: float | None = None
    ) -> None:
        self._path = path
        self._start = float(path.start_time if start is None else start)
        self._end = float(path.end_time if end is None else end)
        self._length, self.ends = self._end - self._start, (self._start, self._end)
        # In units of the whole length, all derivatives are comparable.
        places = np.linspace(self._start, self._end, _PLACES)
        derivatives = path(places, 4) * self._length ** np.arange(5.0)[:, None]
        if derivatives.ndim != 3 or not np.all(np.isfinite(derivatives)):
            raise TrajectoryError(
                'The path must give finite derivatives of shape (N, 5, n), but gives '
                f'{derivatives.shape} with values that are not finite or in another shape.'
            )
        # Power of u with which sigma leaves each end, by the first derivative that is not zero.
        size = np.abs(derivatives[:, 1:]).max(axis=2)
        moves = size[[0, -1]] > _VANISHING * size.max(axis=0)
        orders = np.where(moves.any(axis=1), moves.argmax(axis=1) + 1, _ORDER_OF_REST)
        first, last = (-(-_ORDER_OF_REST // int(order)) for order in orders)
        self._from_start, self._from_end = _advance(first, last), _advance(last, first)

    def parameter(self, u: Array, K: int) -> Array:
        """Compute derivatives 0 to K-1 of sigma with respect to u, shape (..., K).

        Parameters
        ----------
        u : ndarray, shape (...)
            From 0 to 1.
        K : int
            Number of derivatives, the zeroth included.

        Returns
        -------
        ndarray, shape (..., K)
            In the unit of sigma; sigma itself within `ends`.
        """
        near_end = u > 0.5
        x = np.where(near_end, 1.0 - u, u)
        result = np.empty((*np.shape(u), K))
        for k in range(K):
            at_start = polynomial.polyval(x, polynomial.polyder(self._from_start, k))
            at_end = polynomial.polyval(x, polynomial.polyder(self._from_end, k))
            result[..., k] = self._length * np.where(
                near_end, -((-1.0) ** k) * at_end, at_start
            )
        result[..., 0] += np.where(near_end, self._end, self._start)
        # Rounding must not lead off the path.
        np.clip(result[..., 0], self._start, self._end, out=result[..., 0])
        return result

    @cached_property
    def times(self) -> Array:
        """Values of u at the knots of the path, from 0 to 1; only these two if it has none.

        Returns
        -------
        ndarray, shape (L + 1,)
            Increasing, found by halving to rounding.
        """
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

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """p(u) and its derivatives at u = t, shape (..., highest_derivative + 1, n).

        Parameters
        ----------
        t : array-like, shape (...)
            Values of u, from 0 to 1.
        highest_derivative : int
            With respect to u.

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1, n)
            [rad] or [m].
        """
        sigma = self.parameter(np.asarray(t, dtype=np.float64), highest_derivative + 1)
        outer = np.swapaxes(self._path(sigma[..., 0], highest_derivative), -1, -2)
        return np.swapaxes(compose(outer, sigma[..., None, :]), -1, -2)


def _advance(first: int, last: int) -> Array:
    """Coefficients of the polynomial from 0 to 1 that leaves 0 as x^first, reaches 1 as x^last."""
    rate = np.append(np.zeros(first - 1), polynomial.polypow([1.0, -1.0], last - 1))
    whole = polynomial.polyint(rate)
    return np.asarray(whole / whole.sum())
