"""The fastest time law u(t) on a path, of class C4, by a barrier method.

The square of its speed, b(u) = ud^2, is a spline of degree 4. Limits (see `path`) are kept by
logarithmic barriers (Fiacco and McCormick 1968, "Nonlinear Programming: Sequential Unconstrained
Minimization Techniques"), whose Newton steps are banded. See doc/trajectories.rst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import solveh_banded
from scipy.sparse import csc_array, csr_array

from hodyn_ros.retiming.path import Limited
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion
from hodyn_ros.typing import Array, Indices

_DEGREE = 4  # of the spline
# Places at which the limits are kept, at least in all; their weights for the integral over six
# steps.
_PLACES = 1536
_NEWTON_COTES = np.array([41.0, 216.0, 27.0, 272.0, 27.0, 216.0, 41.0]) / 840.0

# Speed at the beginning, of the constant one that is known to keep the limits.
_SLOWER = 0.95
# Barrier of all places over the duration: at first, and where it is low enough; its fall when a
# Newton step of this length has been made.
_FIRST_BARRIER, _LAST_BARRIER, _FALL, _LONG_STEP = 0.3, 2e-5, 0.2, 0.9
# Part of the way to the nearest limit that a step may go, how much of the expected decrease it has
# to reach, how often it is halved; and how many steps there are.
_NEAREST, _DECREASE, _HALVINGS, _MOST_STEPS = 0.95, 1e-2, 25, 200

# Pieces of an interval on which the law is a polynomial in time, and the nodes of the quadrature
# of 1 / sqrt(b) on one of them.
_PIECES = 8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def time_law(
    limits_at: Callable[[Array], Limited], speed: float, intervals: int
) -> JtcMotion:
    """Find a fast law u(t) from 0 to 1 that keeps its limits, but for a little between places.

    Parameters
    ----------
    limits_at : callable
        From places (N,) of u, from 0 to 1, to the limits there, see `Limited`.
    speed : float
        Constant speed of u that keeps all limits [1/s].
    intervals : int
        Between the knots of b(u); eight times as many pieces in time.

    Returns
    -------
    JtcMotion
        From the time zero on, of one column; its speed is nowhere zero.
    """
    square = fastest_square(limits_at, _SLOWER * speed, intervals)
    u = np.linspace(0.0, 1.0, _PIECES * intervals + 1)
    half = 0.5 * np.diff(u)[:, None]
    steps = (_WEIGHTS / np.sqrt(square(u[:-1, None] + half * (1.0 + _NODES)))).sum(axis=1)
    times = np.append(0.0, np.cumsum(steps * half[:, 0]))
    rows = np.stack((u, np.sqrt(square(u)), 0.5 * square(u, nu=1)))[..., None]
    return jtc_motion(times, *rows)


class _Seen(NamedTuple):
    """What a spline with coefficients within all limits is like."""

    duration: float
    logarithms: float  # sum of the logarithms of all rooms
    b: Array  # and three derivatives (4, N)
    slopes: list[Array]  # of the limited quantities (D, C, N), by kinds
    rooms: list[Array]  # to both limits (2, C, N)


class _Barrier:
    """The duration of a law with logarithmic barriers, by the coefficients (size,) of b(u).

    Attributes
    ----------
    size : int
        Number of coefficients: intervals + 4.
    knots : ndarray
        Of the B-splines of degree 4 on [0, 1].
    count : int
        Number of places N at which the limits are kept: as many on each interval, and more
        than 1536.
    """

    def __init__(self, limits_at: Callable[[Array], Limited], intervals: int) -> None:
        ends, self.size = np.ones(_DEGREE), intervals + _DEGREE
        self.knots = np.concatenate(
            (0.0 * ends, np.linspace(0.0, 1.0, intervals + 1), ends)
        )
        group = len(_NEWTON_COTES) - 1
        groups = -(-_PLACES // (group * intervals)) * intervals
        places = np.linspace(0.0, 1.0, group * groups + 1)
        self.count, self._limited = len(places), limits_at(places)
        self._weights = np.zeros(len(places))
        for i, weight in enumerate(_NEWTON_COTES):
            self._weights[i : len(places) - group + i : group] += weight / groups
        # Five B-splines are not zero at a place. The matrix makes b and three derivatives of the
        # coefficients.
        interval = np.minimum(
            np.arange(self.count) * intervals // self.count, intervals - 1
        )
        columns = interval[:, None] + np.arange(_DEGREE + 1)
        every = BSpline(self.knots, np.eye(self.size), _DEGREE)
        basis = np.stack(
            [np.take_along_axis(every(places, nu=k), columns, axis=1) for k in range(4)]
        )
        self._basis = csr_array(
            (basis.ravel(), np.tile(columns.ravel(), 4), _starts(basis)),
            shape=(4 * self.count, self.size),
        )
        # The one that makes the band of a symmetric matrix, as SciPy stores it, of the weights of
        # products of two of the derivatives that the limits depend on.
        slopes = [slope for _, slope in self._limited(np.ones((4, self.count)))]
        self._pairs = j, k = np.tril_indices(max(map(len, slopes)))
        one, other = np.triu_indices(_DEGREE + 1)
        products = basis[j][..., one] * basis[k][..., other]
        products[j != k] += (basis[k][..., one] * basis[j][..., other])[j != k]
        place = ((_DEGREE + one - other) * self.size + columns[:, other]).ravel()
        self._in_band = csc_array(
            (products.ravel(), np.tile(place, len(j)), _starts(products)),
            shape=((_DEGREE + 1) * self.size, len(j) * self.count),
        )

    def seen(self, x: Array) -> _Seen | None:
        """Look at coefficients; None beyond a limit.

        Parameters
        ----------
        x : ndarray, shape (size,)
            Coefficients of b [1/s^2].

        Returns
        -------
        _Seen or None
        """
        b = (self._basis @ x).reshape(4, -1)
        if min(x.min(), b[0].min()) <= 0.0:
            return None
        values, slopes = zip(*self._limited(b))
        rooms = [np.stack((1.0 - each, 1.0 + each)) for each in values]
        if min(room.min(initial=1.0) for room in rooms) <= 0.0:
            return None
        # Quicker than the sum of the logarithms; (1 - h)(1 + h) is at most 1, so none overflows.
        products = [np.log(room.prod(axis=(0, 1))).sum() for room in rooms]
        logarithms = float(sum(products) + np.log(x).sum())
        duration = float((self._weights / np.sqrt(b[0])).sum())
        return _Seen(duration, logarithms, b, list(slopes), rooms)

    def quadratic(self, x: Array, now: _Seen, barrier: float) -> tuple[Array, Array]:
        """Gradient (size,) and band matrix (5, size).

        The matrix is without the curvature of the limits: so it is positive definite.

        Parameters
        ----------
        x : ndarray, shape (size,)
            Coefficients.
        now : _Seen
            What they are like.
        barrier : float
            Factor of the logarithms [s].

        Returns
        -------
        gradient : ndarray, shape (size,)
            Of the duration minus the barrier times the logarithms.
        band : ndarray, shape (5, size)
            Upper band of the second derivatives, as `solveh_banded` has it.
        """
        D = self._pairs[0][-1] + 1
        first, second = np.zeros((4, self.count)), np.zeros((D, D, self.count))
        first[0] = -0.5 * self._weights * now.b[0] ** -1.5
        second[0, 0] = 0.75 * self._weights * now.b[0] ** -2.5
        for slope, room in zip(now.slopes, now.rooms):
            above, below = 1.0 / room
            first[: len(slope)] += np.einsum('kcn,cn->kn', slope, barrier * (above - below))
            weighted = slope * (barrier * (above * above + below * below))
            second[: len(slope), : len(slope)] += np.einsum('jcn,kcn->jkn', weighted, slope)
        gradient = self._basis.T @ first.ravel() - barrier / x
        band = (self._in_band @ second[self._pairs].ravel()).reshape(-1, self.size)
        band[-1] += barrier / (x * x)
        return gradient, np.asarray(band, dtype=np.float64)

    def longest(self, x: Array, now: _Seen, step: Array) -> float:
        """Part of a step, at most one, that stays clear of the nearest limit.

        Parameters
        ----------
        x : ndarray, shape (size,)
            Coefficients.
        now : _Seen
            What they are like.
        step : ndarray, shape (size,)
            Change of the coefficients.

        Returns
        -------
        float
            From 0 to 1; at most 95 % of the way to a limit, to first order.
        """
        change = (self._basis @ step).reshape(4, -1)
        nearest = float((-step / x).max())
        for slope, room in zip(now.slopes, now.rooms):
            towards = np.einsum('kcn,kn->cn', slope, change[: len(slope)])
            shares = np.maximum(towards / room[0], -towards / room[1])
            nearest = max(nearest, float(shares.max(initial=0.0)))
        return _NEAREST / max(_NEAREST, nearest)


def _starts(entries: Array) -> Indices:
    """Where the entries (..., L) of each row or column of a sparse matrix begin, and their end."""
    return np.arange(0, entries.size + 1, entries.shape[-1])


def fastest_square(
    limits_at: Callable[[Array], Limited], speed: float, intervals: int
) -> BSpline:
    """Spline b(u) of the least duration, from a constant speed with room to all limits.

    Newton's method with a barrier that falls by a factor of five after every step of nearly
    full length, until it is low or nothing but rounding is left.

    Parameters
    ----------
    limits_at : callable
        See `time_law`.
    speed : float
        Constant speed of u with room to all limits [1/s].
    intervals : int
        Between the knots.

    Returns
    -------
    scipy.interpolate.BSpline
        b(u) on [0, 1], of degree 4; the constant b = speed^2 where that has no room.
    """
    problem = _Barrier(limits_at, intervals)
    x = np.full(problem.size, speed * speed)
    now = problem.seen(x)
    barrier = 0.0 if now is None else _FIRST_BARRIER * now.duration / problem.count
    for _ in range(_MOST_STEPS):
        if now is None or barrier < _LAST_BARRIER * now.duration / problem.count:
            break
        gradient, band = problem.quadratic(x, now, barrier)
        try:
            step = -solveh_banded(band, gradient, check_finite=False)
        except np.linalg.LinAlgError:
            break  # There is nothing left but rounding; the last law keeps its limits.
        length, expected = problem.longest(x, now, step), _DECREASE * float(gradient @ step)
        for _ in range(_HALVINGS):
            found = problem.seen(x + length * step)
            if found is not None and (
                found.duration
                - now.duration
                - barrier * (found.logarithms - now.logarithms)
                <= length * expected
            ):
                x, now = x + length * step, found
                break
            length *= 0.5
        else:
            length = 1.0  # There is nothing left but rounding.
        if length > _LONG_STEP:
            barrier *= _FALL
    return BSpline(problem.knots, x, _DEGREE)
