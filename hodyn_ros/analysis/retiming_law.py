"""The fastest time law u(t) on a path, of class C4, by a sequence of linear programs.

The square of its speed, b(u) = ud^2, is a spline of degree 4. Acceleration and torque are linear
in b and b' (Verscheure et al. 2009, "Time-Optimal Path Tracking for Robots: A Convex Optimization
Approach"); limits of jerk and torque rate, sqrt(b) times what is linear in b, b' and b'', are
replaced by tangents that imply them (Marks and Wright 1978, "A General Inner Approximation
Algorithm for Nonconvex Mathematical Programs"). See doc/time_scaling.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, make_interp_spline
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, diags, eye, hstack, vstack

from hodyn_ros.analysis.scaling import at_rate, friction_efforts, rigid_efforts
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

_DEGREE = 4  # of the spline

# Intervals between knots at first.
_FEWEST = 16
# Factor by which a coefficient may change in one linear program: with few knots, with more, least.
_REGION, _LATER_REGION, _SMALLEST_REGION = 3.0, 1.5, 1.005
# Tangents of 1 / sqrt(b) in this region.
_TANGENTS = 9
# Gain of one linear program below which there are no more: with few knots, with all.
_SMALL_GAIN, _SMALLEST_GAIN = 1e-3, 1e-4
_MOST_PROGRAMS = 40
# Ratio to a limit from which on it is part of a linear program with a large or small region.
_NEAR, _VERY_NEAR = 0.3, 0.6
# Places in an interval at which the limits are kept; rounds in which places are added where a
# limit is exceeded between places, and their refinement.
_DENSITY, _ROUNDS, _FINER = 6, 8, 10
_HALVINGS = 20

# Nodes of the quadrature of 1 / sqrt(b) within an interval: of the objective, of the law.
_FEW_NODES = np.polynomial.legendre.leggauss(3)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NEWTON_STEPS = 50


class PathLimits:
    """Limits of a robot at places of a path p(u), shape (N, 4, n), with wrenches at ud = 1 and 2.

    The torque is m b' / 2 + c b + g with m = M p', c = M p'' + C(p, p') p' and g of the weight.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        p: Array,
        at_one: Sequence[Wrench] | None,
        at_two: Sequence[Wrench] | None,
    ) -> None:
        self._model, self._p = model, p
        # With ud = 1: g + c and g' + c'. With ud = 2: g + 4 c and 2 g' + 8 c'. With ud = u2d = 1,
        # the torque has m more, its rate 2 c + m'.
        slow = rigid_efforts(model, p, at_one)
        fast = rigid_efforts(model, at_rate(p, 2.0), at_two)
        c, c_rate = (fast[:, 0] - slow[:, 0]) / 3.0, (fast[:, 1] / 2 - slow[:, 1]) / 3.0
        speeding = p.copy()
        speeding[:, 2] += p[:, 1]
        speeding[:, 3] += 3.0 * p[:, 2]
        more = rigid_efforts(model, speeding, at_one) - slow
        m, m_rate = more[:, 0], more[:, 1] - 2.0 * c
        zero = np.zeros_like(m)
        # Acceleration, torque, jerk / ud and torque rate / ud over their limits: slopes in b, b'
        # and b'' (3, 4, N, n), and what does not depend on them (4, N, n).
        bounds = limits.acceleration, limits.effort, limits.jerk, limits.effort_dot
        self._bounds = np.stack(bounds)[:, None]
        self._slopes = np.array(
            [
                [p[:, 2], c, p[:, 3], c_rate],
                [0.5 * p[:, 1], 0.5 * m, 1.5 * p[:, 2], 0.5 * m_rate + c],
                [zero, zero, 0.5 * p[:, 1], 0.5 * m],
            ]
        )
        self._slopes /= self._bounds
        self._offsets = np.array([zero, slow[:, 0] - c, zero, slow[:, 1] - c_rate]) / self._bounds
        self._squared_velocity = np.square(p[:, 1] / limits.velocity).max(axis=1)

    def _at(self, b: Array, with_slopes: bool) -> tuple[Array, Array]:
        """Values (4, N, n) at squared speeds (N, 3), and their slopes there, with friction."""
        slopes = self._slopes
        values = sum(slopes[k] * b[:, k, None] for k in range(3)) + self._offsets
        if not self._model.friction:
            return values, slopes
        # Derivatives of friction with respect to the velocity: time derivatives at a velocity that
        # rises at the rate one.
        p, root = self._p, np.sqrt(b[:, :1])
        velocity = np.zeros((len(b), 3, p.shape[2]))
        velocity[:, 0], velocity[:, 1] = p[:, 1] * root, 1.0
        friction, slope, curvature = np.moveaxis(friction_efforts(self._model, velocity), 1, 0)
        acceleration = p[:, 2] * b[:, :1] + 0.5 * p[:, 1] * b[:, 1:2]
        _, effort, _, rate = self._bounds
        values[1] += friction / effort
        values[3] += slope * acceleration / root / rate
        if with_slopes:
            # F(qd) and F'(qd) q2d / ud.
            slopes = slopes.copy()
            velocity_slope = 0.5 * p[:, 1] / root
            slopes[0, 1] += slope * velocity_slope / effort
            slopes[0, 3] += slope * (p[:, 2] / root - 0.5 * acceleration / root**3) / rate
            slopes[0, 3] += curvature * velocity_slope * acceleration / root / rate
            slopes[1, 3] += 0.5 * slope * p[:, 1] / root / rate
        return values, slopes

    def ratios(self, b: Array) -> Array:
        """Largest quotient (N,) of a quantity and its limit, from b and its derivatives (N, 3)."""
        largest = np.abs(self._at(b, with_slopes=False)[0]).max(axis=2)
        root = np.sqrt(b[:, 0])
        ratios = largest[:2].max(axis=0), root * largest[2:].max(axis=0)
        return np.asarray(np.maximum.reduce((*ratios, root * np.sqrt(self._squared_velocity))))

    def rows(self, b: Array, near: float) -> tuple[NDArray[np.intp], Array, Array]:
        """Places (M,), slopes (M, 3), bounds (M,): slopes @ (b, b', b'') <= bounds, about known b.

        They imply the limits of what reaches the ratio `near` to its limit.
        """
        values, slopes = self._at(b, with_slopes=True)
        offsets = values - sum(slopes[k] * b[:, k, None] for k in range(3))
        root = np.sqrt(b[:, 0])
        scale = np.stack((np.ones_like(root), root))[[0, 0, 1, 1], :, None]
        moving = np.flatnonzero(self._squared_velocity)
        places = [moving]
        found = [np.outer(self._squared_velocity[moving], [1.0, 0.0, 0.0])]
        bounds = [np.ones(len(moving))]
        for sign in (1.0, -1.0):
            kind, place, column = np.nonzero(sign * values * scale > near)
            signed = sign * slopes[:, kind, place, column].T
            # Of jerk and torque rate the tangent of 1 / sqrt(b).
            of_rate, r = kind >= 2, root[place]
            signed[:, 0] += np.where(of_rate, 0.5 / r**3, 0.0)
            bound = np.where(of_rate, 1.5 / r, 1.0) - sign * offsets[kind, place, column]
            weight = np.where(of_rate, r, 1.0)
            places.append(place)
            found.append(signed * weight[:, None])
            bounds.append(bound * weight)
        return np.concatenate(places), np.concatenate(found), np.concatenate(bounds)


class TimeLaw:
    """A parameter u that moves from 0 to 1 with the speed sqrt(b(u)).

    The knots (L + 1,) go from 0 to 1; the coefficients (L + 4,) of the B-splines of b [1/s^2] are
    above zero, so that b is.
    """

    def __init__(self, knots: Array, coefficients: Array) -> None:
        self._knots = knots
        self._square = BSpline(_clamped(knots), coefficients, _DEGREE)
        steps = self._time_between(knots[:-1], knots[1:])
        self._times = np.concatenate(([0.0], np.cumsum(steps)))
        self.duration = float(self._times[-1])
        """Time from 0 to 1 [s]."""

    def _time_between(self, start: Array, end: Array) -> Array:
        """Time from start to end, both within the same interval between knots."""
        half = 0.5 * (end - start)
        u = start[..., None] + half[..., None] * (1.0 + _NODES)
        return np.asarray((_WEIGHTS / np.sqrt(self._square(u))).sum(axis=-1) * half)

    def __call__(self, t: Array) -> Array:
        """Find the parameter at times from 0 to the duration, shape (N,)."""
        interval = np.searchsorted(self._times, t, side='right') - 1
        interval = np.clip(interval, 0, len(self._times) - 2)
        before, behind = self._knots[interval], self._knots[interval + 1]
        offset = t - self._times[interval]
        low, high = before.copy(), behind.copy()
        u = before + (behind - before) * offset / np.diff(self._times)[interval]
        for _ in range(_NEWTON_STEPS):
            miss = self._time_between(before, u) - offset
            high, low = np.where(miss > 0.0, u, high), np.where(miss > 0.0, low, u)
            with_newton = u - miss * np.sqrt(self._square(u))
            inside = (with_newton >= low) & (with_newton <= high)
            following = np.where(inside, with_newton, 0.5 * (low + high))
            step = np.abs(following - u)
            u = following
            if not np.any(step > 4.0 * np.finfo(np.float64).eps):
                break
        return np.where(t >= self.duration, 1.0, u)


def _clamped(knots: Array) -> Array:
    """Knots of a spline that ends at the first and last of these."""
    return np.concatenate((np.repeat(knots[0], _DEGREE), knots, np.repeat(knots[-1], _DEGREE)))


LimitsAt = Callable[[Array], PathLimits]


def time_laws(limits_at: LimitsAt, speed: float, intervals: int) -> tuple[TimeLaw, TimeLaw]:
    """Find a fast time law that keeps its limits, but for a little between places.

    `limits_at` makes the limits at places (N,), `speed` is a constant speed of u that keeps all of
    them [1/s]; there are at least so many intervals between knots. The law with that speed, which
    may be faster when all is checked, comes second.
    """
    size = intervals
    while size > 2 * _FEWEST - 1:
        size = -(-size // 2)
    knots = np.linspace(0.0, 1.0, size + 1)
    coefficients = np.full(size + _DEGREE, speed * speed)
    while True:
        is_last = len(knots) > intervals
        level = _Level(knots, np.linspace(0.0, 1.0, _DENSITY * (len(knots) - 1) + 1), limits_at)
        coefficients = level.faster(coefficients, _SMALLEST_GAIN if is_last else _SMALL_GAIN)
        if is_last:
            break
        finer = np.linspace(0.0, 1.0, 2 * len(knots) - 1)
        # The same spline with more knots: its coefficients are means of the old ones.
        basis = _clamped(finer)
        sites = [basis[i + 1 : i + _DEGREE + 1].mean() for i in range(len(basis) - _DEGREE - 1)]
        values = BSpline(_clamped(knots), coefficients, _DEGREE)(sites)
        inserted = make_interp_spline(sites, values, _DEGREE, basis).c
        coefficients = np.clip(inserted, coefficients.min(), coefficients.max())
        knots = finer
    # Where limits are exceeded between places, places are added.
    fine = _Level(knots, np.linspace(0.0, 1.0, _FINER * (len(level.places) - 1) + 1), limits_at)
    for _ in range(_ROUNDS):
        ratios = fine.limits.ratios(fine.squares(coefficients))
        padded = np.concatenate(([0.0], ratios, [0.0]))
        is_peak = (
            (ratios > 1.0 + _SMALLEST_GAIN) & (ratios >= padded[:-2]) & (ratios >= padded[2:])
        )
        if not is_peak.any():
            break
        level = _Level(knots, np.union1d(level.places, fine.places[is_peak]), limits_at)
        coefficients = level.faster(coefficients, _SMALLEST_GAIN)
    constant = TimeLaw(np.array([0.0, 1.0]), np.full(_DEGREE + 1, speed * speed))
    return TimeLaw(knots, coefficients), constant


class _Level:
    """The problem with certain knots and places."""

    def __init__(self, knots: Array, places: Array, limits_at: LimitsAt) -> None:
        self.places, self.limits = places, limits_at(places)
        basis = _clamped(knots)
        splines = BSpline(basis, np.eye(len(basis) - _DEGREE - 1), _DEGREE)
        self._basis = [csr_matrix(splines(places, nu=k)) for k in range(3)]
        nodes, weights = _FEW_NODES
        half = 0.5 * np.diff(knots)[:, None]
        self._at_nodes = csr_matrix(splines((knots[:-1, None] + half * (1.0 + nodes)).ravel()))
        self._weights = (half * weights).ravel()
        self._region = _REGION if len(knots) < 2 * _FEWEST else _LATER_REGION

    def squares(self, coefficients: Array) -> Array:
        """Squared speed and two derivatives at the places, shape (N, 3)."""
        return np.stack([matrix @ coefficients for matrix in self._basis], axis=1)

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

        def duration_of(coefficients: Array) -> float:
            return float((self._weights / np.sqrt(self._at_nodes @ coefficients)).sum())

        known, region = self._kept(coefficients), self._region
        duration = duration_of(known)
        for _ in range(_MOST_PROGRAMS):
            solution = self._solve(known, region)
            following = known if solution is None else self._kept(solution)
            shorter = duration_of(following)
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
        near = _NEAR if region > 1.5 else _VERY_NEAR
        place, slopes, bound = self.limits.rows(self.squares(known), near)
        # The unknowns are the ratios to the known coefficients, and what bounds the known ratios
        # of 1 / sqrt(b) at the nodes from below.
        scale = diags(known)
        limited = sum(diags(slopes[:, k]) @ self._basis[k][place] @ scale for k in range(3))
        at_nodes = self._at_nodes @ known
        ratio = diags(1.0 / at_nodes) @ self._at_nodes @ scale
        nodes = len(at_nodes)
        tangents = np.geomspace(1.0 / region, region, _TANGENTS)
        blocks = [hstack((limited, csr_matrix((len(bound), nodes))))]
        blocks += [hstack((-0.5 * y**-1.5 * ratio, -eye(nodes))) for y in tangents]
        bounds = [bound, *(np.full(nodes, -1.5 * y**-0.5) for y in tangents)]
        solution = linprog(
            np.concatenate((np.zeros(len(known)), self._weights / np.sqrt(at_nodes))),
            A_ub=csr_matrix(vstack(blocks)),
            b_ub=np.concatenate(bounds),
            bounds=[(1.0 / region, region)] * len(known) + [(0.0, None)] * nodes,
            method='highs-ds',
        )
        return None if solution.x is None else np.asarray(solution.x[: len(known)] * known)
