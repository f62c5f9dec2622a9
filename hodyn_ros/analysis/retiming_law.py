"""The fastest time law u(t) on a path, of class C4, by a barrier method.

The square of its speed, b(u) = ud^2, is a spline of degree 4. Acceleration and torque are linear
in b and b' (Verscheure et al. 2009, "Time-Optimal Path Tracking for Robots: A Convex Optimization
Approach"), jerk and torque rate are sqrt(b) times what is linear in b, b' and b''. All of them are
kept by logarithmic barriers (Fiacco and McCormick 1968, "Nonlinear Programming: Sequential
Unconstrained Minimization Techniques"), whose Newton steps are banded. See doc/time_scaling.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg import solveh_banded

from hodyn_ros.analysis.scaling import at_rate, friction_efforts, rigid_efforts
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion

Array = NDArray[np.float64]

_DEGREE = 4  # of the spline
# Places at which the limits are kept, at least in all; their weights for the integral over six
# steps.
_PLACES = 1536
_NEWTON_COTES = np.array([41.0, 216.0, 27.0, 272.0, 27.0, 216.0, 41.0]) / 840.0

# Speed at the beginning, of the constant one that is known to keep the limits.
_SLOWER = 0.95
# Barrier of all places over the duration: at first, and where it is low enough; its fall when a
# Newton step of this length has been made.
_FIRST_BARRIER, _LAST_BARRIER, _FALL, _LONG_STEP = 0.3, 1e-4, 0.2, 0.9
# Part of the way to the nearest limit that a step may go, how much of the expected decrease it has
# to reach, and how often it is halved.
_NEAREST, _DECREASE, _HALVINGS = 0.95, 1e-2, 25
_MOST_STEPS = 200

# Pieces of an interval on which the law is a polynomial in time, and the nodes of the quadrature
# of 1 / sqrt(b) on one of them.
_PIECES = 8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class Drives(NamedTuple):
    """Motors of the n joints and their limits, each (n,); infinite where there are none."""

    inertia: Array
    """[kg m^2] or [kg]"""
    compliance: Array
    """Of linear springs [rad/N m] or [m/N]."""
    velocity: Array
    torque: Array
    torque_rate: Array
    deflection: Array


class PathLimits:
    """Limits of a robot at places of a path p(u), shape (N, 4, n), with wrenches at ud = 1 and 2.

    The torque is m b' / 2 + c b + g with m = M p', c = M p'' + C(p, p') p' and g of the weight.
    Of motors behind springs, torque and torque rate are those of motors without.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        p: Array,
        at_one: Sequence[Wrench] | None,
        at_two: Sequence[Wrench] | None,
        drives: Drives | None = None,
    ) -> None:
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
        # Slopes in b, b' and b'', and what does not depend on them, (4, n, N): of acceleration and
        # torque, of jerk / ud and torque rate / ud.
        terms = (
            ([p[:, 2], 0.5 * p[:, 1], zero, zero], [c, 0.5 * m, zero, slow[:, 0] - c]),
            (
                [p[:, 3], 1.5 * p[:, 2], 0.5 * p[:, 1], zero],
                [c_rate, 0.5 * m_rate + c, 0.5 * m, slow[:, 1] - c_rate],
            ),
        )
        # What is limited, with its shares of the two: rows (C, N), the velocity in one for all
        # joints, its square.
        none = np.zeros(model.n_joints)
        kinds = [
            (0, 1.0 / limits.acceleration, none, none),
            (0, none, 1.0 / limits.effort, none),
            (1, 1.0 / limits.jerk, none, none),
            (1, none, 1.0 / limits.effort_dot, none),
        ]
        if drives is not None:
            inertia, compliance, velocity, torque, torque_rate, deflection = drives
            kinds += [
                (0, inertia / torque, 1.0 / torque, none),
                (0, none, compliance / deflection, none),
                (1, none, compliance / velocity, 1.0 / velocity),
                (1, inertia / torque_rate, 1.0 / torque_rate, none),
            ]
        squared = np.zeros((4, 1, len(p)))
        squared[0] = np.square(p[:, 1] / limits.velocity).max(axis=1)
        rows, columns, shares = [squared], [np.zeros(1, np.intp)], [np.zeros(1)]
        for order, of_motion, of_effort, of_velocity in sorted(kinds, key=lambda kind: kind[0]):
            column = np.flatnonzero(of_motion + of_effort + of_velocity)
            motion, effort = (np.swapaxes(term, 1, 2)[:, column] for term in terms[order])
            found = motion * of_motion[column, None] + effort * of_effort[column, None]
            found[3] += p[:, 1, column].T * of_velocity[column, None]
            rows.append(found)
            columns.append(column)
            shares.append(of_effort[column])
            if not order:
                self._rates = slice(sum(row.shape[1] for row in rows), None)
        every = np.concatenate(rows, axis=1)
        self._slopes, self._offsets = every[:3], every[3]
        self._p, self._columns = p, np.concatenate(columns)
        self._shares = np.concatenate(shares)[:, None]
        self._friction: Callable[[Array], Array] | None = None
        if model.friction:
            self._friction = lambda velocity: friction_efforts(model, velocity)

    def at(self, b: Array) -> tuple[Array, Array]:
        """Quotients (C, N) of limited quantities and their limits, and their slopes (3, C, N).

        At squared speeds and two derivatives (3, N), with respect to which the slopes are.
        """
        slopes, values, rates = self._slopes.copy(), self._offsets.copy(), self._rates
        root = np.sqrt(b[0])
        slopes[:, rates] *= root
        values[rates] *= root
        for k in range(3):
            values += slopes[k] * b[k]
        slopes[0, rates] += values[rates] / (2.0 * b[0])
        if self._friction is not None:
            # Efforts F(qd) and F'(qd) q2d, and their slopes. Derivatives with respect to the
            # velocity are time derivatives where that rises at the rate one.
            p, b, root = self._p, b[..., None], root[:, None]
            velocity = np.zeros((len(p), 3, p.shape[2]))
            velocity[:, 0], velocity[:, 1] = p[:, 1] * root, 1.0
            F, slope, bend = np.moveaxis(self._friction(velocity), 1, 0)
            rise, rest = p[:, 1] / (2.0 * root), p[:, 2] * b[0] + 0.5 * p[:, 1] * b[1]
            for rows, value, in_b, in_first in (
                (slice(rates.start), F, slope * rise, None),
                (rates, slope * rest, slope * p[:, 2] + bend * rise * rest, slope * p[:, 1] / 2),
            ):
                column, share = self._columns[rows], self._shares[rows]
                values[rows] += share * value.T[column]
                slopes[0, rows] += share * in_b.T[column]
                if in_first is not None:
                    slopes[1, rows] += share * in_first.T[column]
        return values, slopes


LimitsAt = Callable[[Array], PathLimits]


def time_laws(limits_at: LimitsAt, speed: float, intervals: int) -> tuple[JtcMotion, JtcMotion]:
    """Find a fast law u(t) from 0 to 1 that keeps its limits, but for a little between places.

    `limits_at` makes the limits at places (N,), `speed` is a constant speed of u that keeps all of
    them [1/s]; there are so many intervals between knots. The law with that speed comes second.
    """
    square = _Square(limits_at, intervals).fastest(_SLOWER * speed)
    u = np.linspace(0.0, 1.0, _PIECES * intervals + 1)
    half = 0.5 * np.diff(u)[:, None]
    steps = (_WEIGHTS / np.sqrt(square(u[:-1, None] + half * (1.0 + _NODES)))).sum(axis=1)
    times = np.append(0.0, np.cumsum(steps * half[:, 0]))
    fastest = jtc_motion(
        times, u[:, None], np.sqrt(square(u))[:, None], 0.5 * square(u, nu=1)[:, None]
    )
    constant = jtc_motion(
        [0.0, 1.0 / speed], [[0.0], [1.0]], [[speed], [speed]], [[0.0], [0.0]]
    )
    return fastest, constant


class _Seen(NamedTuple):
    """Of a spline that keeps the limits: values (3, N), slopes (3, C, N), room up to both limits.

    The room has the shape (2, C, N).
    """

    b: Array
    slopes: Array
    room: Array
    duration: float


class _Square:
    """Splines b(u) with given knots, and their limits at places between these."""

    def __init__(self, limits_at: LimitsAt, intervals: int) -> None:
        ends = np.zeros(_DEGREE), np.ones(_DEGREE)
        self._knots = np.concatenate((ends[0], np.linspace(0.0, 1.0, intervals + 1), ends[1]))
        self._size = intervals + _DEGREE
        steps = len(_NEWTON_COTES) - 1
        groups = -(-_PLACES // (steps * intervals)) * intervals
        places = np.linspace(0.0, 1.0, steps * groups + 1)
        self._limits = limits_at(places)
        self._weights = np.zeros(len(places))
        for i, weight in enumerate(_NEWTON_COTES):
            self._weights[i : len(places) - steps + i : steps] += weight / groups
        # Five B-splines are not zero at a place: their columns (N, 5), values and derivatives
        # (3, N, 5). Products of two of them have a place in a band matrix, as SciPy stores it.
        interval = np.minimum(np.arange(len(places)) * intervals // len(places), intervals - 1)
        self._columns = interval[:, None] + np.arange(_DEGREE + 1)
        every = BSpline(self._knots, np.eye(self._size), _DEGREE)
        self._basis = np.stack(
            [np.take_along_axis(every(places, nu=k), self._columns, axis=1) for k in range(3)]
        )
        self._pairs = row, column = np.triu_indices(_DEGREE + 1)
        self._in_band = (_DEGREE + row - column) * self._size + self._columns[:, column]

    def fastest(self, speed: float) -> BSpline:
        """Minimise the duration, from a constant speed with room to all limits."""
        x = np.full(self._size, speed * speed)
        now = self._seen(x)
        if now is None:
            return BSpline(self._knots, x, _DEGREE)
        of_places = 1.0 / len(self._weights)
        barrier = _FIRST_BARRIER * now.duration * of_places
        for _ in range(_MOST_STEPS):
            gradient, matrix = self._model(now, barrier)
            gradient -= barrier / x
            matrix[-1] += barrier / (x * x)
            step = -solveh_banded(matrix, gradient, check_finite=False)
            towards = np.einsum('kcn,kn->cn', now.slopes, self._values(step))
            parts = -step / x, towards / now.room[0], -towards / now.room[1]
            length = _NEAREST / max(_NEAREST, *(float(part.max()) for part in parts))
            slope = _DECREASE * float(gradient @ step)
            before = now.duration - barrier * (np.log(now.room).sum() + np.log(x).sum())
            for _ in range(_HALVINGS):
                other = x + length * step
                found = self._seen(other)
                if found is not None:
                    logs = np.log(found.room).sum() + np.log(other).sum()
                    if found.duration - barrier * logs <= before + length * slope:
                        x, now = other, found
                        break
                length *= 0.5
            else:
                length = 1.0  # There is nothing left but rounding.
            if length > _LONG_STEP:
                if barrier < _LAST_BARRIER * now.duration * of_places:
                    break
                barrier *= _FALL
        return BSpline(self._knots, x, _DEGREE)

    def _values(self, coefficients: Array) -> Array:
        """Values of a spline and two derivatives at the places, shape (3, N)."""
        return np.asarray(np.einsum('knj,nj->kn', self._basis, coefficients[self._columns]))

    def _seen(self, coefficients: Array) -> _Seen | None:
        """What is known of a spline, or None if it exceeds a limit."""
        b = self._values(coefficients)
        if b[0].min() <= 0.0:
            return None
        values, slopes = self._limits.at(b)
        room = np.stack((1.0 - values, 1.0 + values))
        if room.min() <= 0.0:
            return None
        return _Seen(b, slopes, room, float((self._weights / np.sqrt(b[0])).sum()))

    def _model(self, now: _Seen, barrier: float) -> tuple[Array, Array]:
        """Gradient (n,) and matrix (5, n) of the duration with its barriers of weight `barrier`.

        The matrix is without the curvature of the limits, and so positive definite.
        """
        above, below = barrier / now.room
        at_places = np.einsum('kcn,cn->kn', now.slopes, above - below)
        at_places[0] -= 0.5 * self._weights * now.b[0] ** -1.5
        weighted = now.slopes * ((above * above + below * below) / barrier)
        curvature = np.einsum('jcn,kcn->jkn', weighted, now.slopes)
        curvature[0, 0] += 0.75 * self._weights * now.b[0] ** -2.5
        gradient = np.einsum('kn,knj->nj', at_places, self._basis)
        row, column = self._pairs
        of_pairs = np.einsum('jkn,knp->jnp', curvature, self._basis[..., column])
        matrix = np.einsum('jnp,jnp->np', self._basis[..., row], of_pairs)
        size = self._size
        band = np.bincount(self._in_band.ravel(), matrix.ravel(), (_DEGREE + 1) * size)
        total = np.bincount(self._columns.ravel(), gradient.ravel(), size)
        return np.asarray(total, np.float64), np.asarray(band, np.float64).reshape(-1, size)
