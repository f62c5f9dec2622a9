"""The fastest time law on a path by a sequence of linear programs.

The unknowns are the coefficients of the B-splines of the squared speed b(u). The duration, the
integral of 1 / sqrt(b), is convex in them and is taken as the largest of some of its tangents.
Velocity, acceleration and torque are linear in b; jerk and torque rate are replaced by what
implies them, see `retiming_limits`, so that every solution keeps the limits at the places, and the
next linear program, about it, can only be faster (inner approximation; Marks and Wright 1978, "A
General Inner Approximation Algorithm for Nonconvex Mathematical Programs"). It begins with few
knots, which are halved until there are enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, diags, eye, hstack, vstack

from hodyn_ros.analysis.retiming_limits import PathLimits
from hodyn_ros.analysis.time_law import DEGREE, TimeLaw, clamped

Array = NDArray[np.float64]

LimitsAt = Callable[[Array], PathLimits]

# Intervals between knots at first.
_FEWEST = 16
# Factor by which a coefficient may change in one linear program: with few knots, with more, least.
_REGION, _LATER_REGION, _SMALLEST_REGION = 3.0, 1.5, 1.005
# Tangents of 1 / sqrt(b) in this region.
_TANGENTS = 9
# Gain of one linear program below which there are no more: with few knots, with all.
_SMALL_GAIN, _SMALLEST_GAIN = 1e-3, 1e-4
_MOST_PROGRAMS = 40
# Nodes of the quadrature of the duration within an interval.
_NODES = 3
# Ratio to a limit from which on it is part of a linear program with a large or small region.
_NEAR, _VERY_NEAR = 0.3, 0.6
# Rounds in which places are added where a limit is exceeded between places, and their refinement.
_ROUNDS = 8
_FINER = 10
_HALVINGS = 20


def fastest_law(limits_at: LimitsAt, speed: float, intervals: int, density: int) -> TimeLaw:
    """Find a fast time law that keeps its limits.

    Parameters
    ----------
    limits_at : callable
        Limits at some places of the path.
    speed : float
        Constant speed of u that keeps all limits [1/s].
    intervals : int
        Between knots, at least.
    density : int
        Places in an interval at which the limits are kept.

    Returns
    -------
    TimeLaw
        Between the places, limits may be exceeded a little.
    """
    size = intervals
    while size > 2 * _FEWEST - 1:
        size = -(-size // 2)
    knots = np.linspace(0.0, 1.0, size + 1)
    coefficients = np.full(size + DEGREE, speed * speed)
    while True:
        is_last = len(knots) > intervals
        grid = np.linspace(0.0, 1.0, density * (len(knots) - 1) + 1)
        level = _Level(knots, grid, limits_at(grid))
        coefficients = level.faster(coefficients, _SMALLEST_GAIN if is_last else _SMALL_GAIN)
        if is_last:
            break
        finer = np.linspace(0.0, 1.0, 2 * len(knots) - 1)
        knots, coefficients = finer, _inserted(knots, coefficients, finer)
    coefficients = _kept_between(level, coefficients, limits_at)
    return TimeLaw.from_coefficients(knots, coefficients)


def _kept_between(level: _Level, coefficients: Array, limits_at: LimitsAt) -> Array:
    """Add places where limits are exceeded between places, and solve again."""
    count = _FINER * (len(level.places) - 1) + 1
    fine = _Level(level.knots, *_with_limits(np.linspace(0.0, 1.0, count), limits_at))
    for _ in range(_ROUNDS):
        ratios = fine.limits.ratios(fine.squares(coefficients))
        padded = np.concatenate(([0.0], ratios, [0.0]))
        is_peak = (
            (ratios > 1.0 + _SMALLEST_GAIN) & (ratios >= padded[:-2]) & (ratios >= padded[2:])
        )
        if not is_peak.any():
            break
        places = np.union1d(level.places, fine.places[is_peak])
        level = _Level(level.knots, *_with_limits(places, limits_at))
        coefficients = level.faster(coefficients, _SMALLEST_GAIN)
    return coefficients


def _with_limits(places: Array, limits_at: LimitsAt) -> tuple[Array, PathLimits]:
    return places, limits_at(places)


def _inserted(knots: Array, coefficients: Array, finer: Array) -> Array:
    """Coefficients of the same spline with more knots."""
    basis = clamped(finer)
    n = len(basis) - DEGREE - 1
    places = np.array([basis[i + 1 : i + DEGREE + 1].mean() for i in range(n)])
    values = BSpline(clamped(knots), coefficients, DEGREE)(places)
    inserted = np.linalg.solve(BSpline(basis, np.eye(n), DEGREE)(places), values)
    # They are means of the old ones, up to rounding.
    return np.clip(inserted, coefficients.min(), coefficients.max())


class _Level:
    """The problem with certain knots and places."""

    def __init__(self, knots: Array, places: Array, limits: PathLimits) -> None:
        self.knots, self.places, self.limits = knots, places, limits
        basis = clamped(knots)
        splines = BSpline(basis, np.eye(len(basis) - DEGREE - 1), DEGREE)
        self._basis = [csr_matrix(splines(places, nu=k)) for k in range(3)]
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        half = 0.5 * np.diff(knots)[:, None]
        self._at_nodes = csr_matrix(splines((knots[:-1, None] + half * (1.0 + nodes)).ravel()))
        self._weights = (half * weights).ravel()

    def squares(self, coefficients: Array) -> Array:
        """Squared speed and two derivatives at the places, shape (N, 3)."""
        return np.stack([matrix @ coefficients for matrix in self._basis], axis=1)

    def _duration(self, coefficients: Array) -> float:
        return float((self._weights / np.sqrt(self._at_nodes @ coefficients)).sum())

    def _kept(self, coefficients: Array) -> Array:
        """Scale a law uniformly to be as fast as the limits at the places allow."""

        def is_kept(factor: float) -> bool:
            return bool(self.limits.ratios(factor * squares).max() <= 1.0)

        squares = self.squares(coefficients)
        low, high = 0.0, 1.0
        while is_kept(high) and high < 1e6:
            low, high = high, 1.5 * high
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_kept(middle) else (low, middle)
        return low * coefficients

    def faster(self, coefficients: Array, smallest_gain: float) -> Array:
        """Coefficients of a law that is as fast as linear programs make it."""
        known = self._kept(coefficients)
        duration = self._duration(known)
        region = _REGION if len(self.knots) < 2 * _FEWEST else _LATER_REGION
        for _ in range(_MOST_PROGRAMS):
            solution = self._solve(known, region)
            following = known if solution is None else self._kept(solution)
            shorter = self._duration(following)
            if shorter < duration:
                gain = 1.0 - shorter / duration
                known, duration = following, shorter
                if gain < smallest_gain:
                    break
            else:
                region = np.sqrt(region)
                if region < _SMALLEST_REGION:
                    break
        return known

    def _solve(self, known: Array, region: float) -> Array | None:
        """Coefficients of the fastest law about a known one, or None if none is found."""
        rows = self.limits.rows(self.squares(known), _NEAR if region > 1.5 else _VERY_NEAR)
        # The unknowns are the ratios to the known coefficients, and what bounds the known ratios
        # of 1 / sqrt(b) at the nodes from below.
        scale = diags(known)
        limited = sum(
            diags(rows.slopes[:, k]) @ self._basis[k][rows.place] @ scale for k in range(3)
        )
        at_nodes = self._at_nodes @ known
        ratio = diags(1.0 / at_nodes) @ self._at_nodes @ scale
        nodes = len(at_nodes)
        tangents = np.geomspace(1.0 / region, region, _TANGENTS)
        blocks = [hstack((limited, csr_matrix((len(rows.bound), nodes))))]
        blocks += [hstack((-0.5 * y**-1.5 * ratio, -eye(nodes))) for y in tangents]
        bounds = [rows.bound, *(np.full(nodes, -1.5 * y**-0.5) for y in tangents)]
        solution = linprog(
            np.concatenate((np.zeros(len(known)), self._weights / np.sqrt(at_nodes))),
            A_ub=csr_matrix(vstack(blocks)),
            b_ub=np.concatenate(bounds),
            bounds=[(1.0 / region, region)] * len(known) + [(0.0, None)] * nodes,
            method='highs-ds',
        )
        return None if solution.x is None else np.asarray(solution.x[: len(known)] * known)
