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
from scipy.interpolate import BSpline
from scipy.linalg import solveh_banded

from hodyn_ros.analysis.scaling import at_rate, friction_efforts, rigid_efforts
from hodyn_ros.checks import Array
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion

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


Limited = Callable[[Array], tuple[Array, Array]]
"""From squared speeds and two derivatives (3, N) to quotients of limited quantities and their
limits (C, N), and the slopes (3, C, N) of these with respect to those."""


class Drives(NamedTuple):
    """Motors of the n joints and their limits, each (n,); infinite where there are none."""

    inertia: Array  # [kg m^2] or [kg]
    compliance: Array  # of linear springs [rad/N m] or [m/N]
    velocity: Array
    torque: Array
    torque_rate: Array
    deflection: Array


def path_limits(
    model: RobotModel,
    limits: MotionLimits,
    p: Array,
    at_one: Sequence[Wrench] | None = None,
    at_two: Sequence[Wrench] | None = None,
    drives: Drives | None = None,
) -> Limited:
    """Limits at places of a path p(u), shape (N, 4, n), with wrenches at ud = 1 and 2.

    The torque is m b' / 2 + c b + g with m = M p', c = M p'' + C(p, p') p' and g of the weight.
    Of motors behind springs, torque and torque rate are those of motors without.
    """
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
    # torque; of jerk / ud, torque rate / ud and velocity / ud.
    terms: tuple[tuple[list[Array], ...], ...] = (
        ([p[:, 2], 0.5 * p[:, 1], zero, zero], [c, 0.5 * m, zero, slow[:, 0] - c]),
        (
            [p[:, 3], 1.5 * p[:, 2], 0.5 * p[:, 1], zero],
            [c_rate, 0.5 * m_rate + c, 0.5 * m, slow[:, 1] - c_rate],
            [zero, zero, zero, p[:, 1]],
        ),
    )
    # What is limited, by its shares of these: rows (C, N). The velocity has one for all joints,
    # its square.
    none = np.zeros(model.n_joints)
    kinds: list[list[tuple[Array, ...]]] = [
        [(1.0 / limits.acceleration, none), (none, 1.0 / limits.effort)],
        [(1.0 / limits.jerk, none, none), (none, 1.0 / limits.effort_dot, none)],
    ]
    if drives is not None:
        inertia, compliance, velocity, torque, torque_rate, deflection = drives
        kinds[0] += [(inertia / torque, 1.0 / torque), (none, compliance / deflection)]
        kinds[1] += [
            (none, compliance / velocity, 1.0 / velocity),
            (inertia / torque_rate, 1.0 / torque_rate, none),
        ]
    rows = [np.zeros((4, 1, len(p)))]
    rows[0][0] = np.square(p[:, 1] / limits.velocity).max(axis=1)
    columns, efforts, rates = [np.zeros(1, np.intp)], [np.zeros(1)], slice(0)
    for shares, of_terms in zip(kinds, terms):
        rates = slice(sum(row.shape[1] for row in rows), None)
        for share in shares:
            columns.append(np.flatnonzero(np.sum(share, axis=0)))
            efforts.append(share[1][columns[-1]])
            total = np.sum([np.multiply(x, y) for x, y in zip(of_terms, share)], axis=0)
            rows.append(np.swapaxes(total[..., columns[-1]], 1, 2))
    every, column = np.concatenate(rows, axis=1), np.concatenate(columns)
    effort = np.concatenate(efforts)[:, None]

    def limited(b: Array) -> tuple[Array, Array]:
        slopes, values, root = every[:3].copy(), every[3].copy(), np.sqrt(b[0])
        slopes[:, rates] *= root
        values[rates] *= root
        for k in range(3):
            values += slopes[k] * b[k]
        slopes[0, rates] += values[rates] / (2.0 * b[0])
        if model.friction:
            # Efforts F(qd) and F'(qd) q2d, and their slopes. Derivatives with respect to the
            # velocity are time derivatives where that rises at the rate one.
            b, root = b[..., None], root[:, None]
            velocity = np.zeros((len(p), 3, p.shape[2]))
            velocity[:, 0], velocity[:, 1] = p[:, 1] * root, 1.0
            F, slope, bend = np.moveaxis(friction_efforts(model, velocity), 1, 0)
            rise, rest = p[:, 1] / (2.0 * root), p[:, 2] * b[0] + 0.5 * p[:, 1] * b[1]
            at_rates = slope * rest, slope * p[:, 2] + bend * rise * rest, slope * p[:, 1] / 2.0
            for kind, (value, in_b, in_first) in (
                (slice(rates.start), (F, slope * rise, zero)),
                (rates, at_rates),
            ):
                values[kind] += effort[kind] * value.T[column[kind]]
                slopes[0, kind] += effort[kind] * in_b.T[column[kind]]
                slopes[1, kind] += effort[kind] * in_first.T[column[kind]]
        return values, slopes

    return limited


def time_laws(
    limits_at: Callable[[Array], Limited], speed: float, intervals: int
) -> tuple[JtcMotion, JtcMotion]:
    """Find a fast law u(t) from 0 to 1 that keeps its limits, but for a little between places.

    `limits_at` makes the limits at places (N,), `speed` is a constant speed of u that keeps all of
    them [1/s]; there are so many intervals between knots. The law with that speed comes second.
    """
    square = fastest_square(limits_at, _SLOWER * speed, intervals)
    u = np.linspace(0.0, 1.0, _PIECES * intervals + 1)
    half = 0.5 * np.diff(u)[:, None]
    steps = (_WEIGHTS / np.sqrt(square(u[:-1, None] + half * (1.0 + _NODES)))).sum(axis=1)
    times = np.append(0.0, np.cumsum(steps * half[:, 0]))
    rows = np.stack((u, np.sqrt(square(u)), 0.5 * square(u, nu=1)))[..., None]
    ends = np.array([[0.0, 1.0], [speed, speed], [0.0, 0.0]])[..., None]
    return jtc_motion(times, *rows), jtc_motion([0.0, 1.0 / speed], *ends)


def fastest_square(limits_at: Callable[[Array], Limited], speed: float, intervals: int) -> BSpline:
    """Spline b(u) of the least duration, from a constant speed with room to all limits."""
    ends, size = np.ones(_DEGREE), intervals + _DEGREE
    knots = np.concatenate((0.0 * ends, np.linspace(0.0, 1.0, intervals + 1), ends))
    group = len(_NEWTON_COTES) - 1
    groups = -(-_PLACES // (group * intervals)) * intervals
    places = np.linspace(0.0, 1.0, group * groups + 1)
    limited, weights = limits_at(places), np.zeros(len(places))
    for i, weight in enumerate(_NEWTON_COTES):
        weights[i : len(places) - group + i : group] += weight / groups
    # Five B-splines are not zero at a place: their columns (N, 5), values and derivatives
    # (3, N, 5). Products of two of them have a place in a band matrix, as SciPy stores it.
    interval = np.minimum(np.arange(len(places)) * intervals // len(places), intervals - 1)
    columns = interval[:, None] + np.arange(_DEGREE + 1)
    every = BSpline(knots, np.eye(size), _DEGREE)
    basis = np.stack([np.take_along_axis(every(places, nu=k), columns, axis=1) for k in range(3)])
    row, column = np.triu_indices(_DEGREE + 1)
    in_band = ((_DEGREE + row - column) * size + columns[:, column]).ravel()

    def seen(x: Array) -> tuple[float, float, Array, Array, Array] | None:
        """Duration, sum of logarithms, b and b', b'', slopes, room; None beyond a limit."""
        b = np.einsum('knj,nj->kn', basis, x[columns])
        if min(x.min(), b[0].min()) <= 0.0:
            return None
        values, slopes = limited(b)
        room = np.stack((1.0 - values, 1.0 + values))
        if room.min() <= 0.0:
            return None
        logarithms = np.log(room).sum() + np.log(x).sum()
        return float((weights / np.sqrt(b[0])).sum()), float(logarithms), b, slopes, room

    x = np.full(size, speed * speed)
    now = seen(x)
    barrier = 0.0 if now is None else _FIRST_BARRIER * now[0] / len(places)
    for _ in range(_MOST_STEPS):
        if now is None or barrier < _LAST_BARRIER * now[0] / len(places):
            break
        duration, logarithms, b, slopes, room = now
        # Gradient and matrix, this without the curvature of the limits: it is positive definite.
        above, below = barrier / room
        first = np.einsum('kcn,cn->kn', slopes, above - below)
        first[0] -= 0.5 * weights * b[0] ** -1.5
        weighted = slopes * ((above * above + below * below) / barrier)
        second = np.einsum('jcn,kcn->jkn', weighted, slopes)
        second[0, 0] += 0.75 * weights * b[0] ** -2.5
        of_places = np.einsum('kn,knj->nj', first, basis)
        gradient = np.bincount(columns.ravel(), of_places.ravel(), size) - barrier / x
        of_pairs = np.einsum('jkn,knp->jnp', second, basis[..., column])
        products = np.einsum('jnp,jnp->np', basis[..., row], of_pairs)
        band = np.bincount(in_band, products.ravel(), (_DEGREE + 1) * size).reshape(-1, size)
        band[-1] += barrier / (x * x)
        try:
            step = -solveh_banded(band, gradient, check_finite=False)
        except np.linalg.LinAlgError:
            break  # There is nothing left but rounding; the last law keeps its limits.
        towards = np.einsum('kcn,knj,nj->cn', slopes, basis, step[columns], optimize=True)
        parts = -step / x, towards / room[0], -towards / room[1]
        length = _NEAREST / max(_NEAREST, *(float(part.max()) for part in parts))
        expected = _DECREASE * float(gradient @ step)
        for _ in range(_HALVINGS):
            found = seen(x + length * step)
            if found is not None and (
                found[0] - duration - barrier * (found[1] - logarithms) <= length * expected
            ):
                x, now = x + length * step, found
                break
            length *= 0.5
        else:
            length = 1.0  # There is nothing left but rounding.
        if length > _LONG_STEP:
            barrier *= _FALL
    return BSpline(knots, x, _DEGREE)
