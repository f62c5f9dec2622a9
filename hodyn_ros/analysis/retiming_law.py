"""The fastest time law u(t) on a path, of class C4, by a barrier method.

The square of its speed, b(u) = ud^2, is a spline of degree 4. Acceleration and torque are linear
in b and b' (Verscheure et al. 2009, "Time-Optimal Path Tracking for Robots: A Convex Optimization
Approach"), jerk and torque rate are sqrt(b) times what is linear in b, b' and b'', and the second
derivative of the torque is a product of two such terms. All of them are kept by logarithmic
barriers (Fiacco and McCormick 1968, "Nonlinear Programming: Sequential Unconstrained Minimization
Techniques"), whose Newton steps are banded. See doc/time_scaling.rst.
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
from hodyn_ros.typing import Array

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


Limited = Callable[[Array], list[tuple[Array, Array]]]
"""From squared speeds and three derivatives (4, N) to quotients of limited quantities and their
limits (C, N), and the slopes (D, C, N) of these with respect to the first D of those: by kinds."""


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
    wrenches: Sequence[Sequence[Wrench] | None] = (None, None, None),
    drives: Drives | None = None,
) -> Limited:
    """Limits at places of a path p(u), shape (N, K, n).

    The torque is m b' / 2 + c b + g with m = M p', c = M p'' + C(p, p') p' and g of the weight.
    Of motors behind springs, torque and torque rate are those of motors without. K is 4, or 5 to
    limit the second derivative of the torque. The wrenches are those along the path with ud = 1,
    with ud = 2 and with ud = u2d = 1.
    """
    # With ud = 1: g + c, g' + c', g'' + c''. With ud = 2: g + 4 c, 2 g' + 8 c', 4 g'' + 16 c''.
    # With ud = u2d = 1 the torque has m more, its rate 2 c + m', and the derivative of that
    # g' + 2 c + 5 c' + m' + m''.
    at_one, at_two, at_speeding = wrenches
    slow = rigid_efforts(model, p, at_one)
    twice = at_rate(rigid_efforts(model, at_rate(p, 2.0), at_two), 0.5)
    with_speed = (twice - slow) / 3.0
    speeding = p.copy()
    speeding[:, 2] += p[:, 1]
    speeding[:, 3] += 3.0 * p[:, 2]
    speeding[:, 4:] += (6.0 * p[:, 3] + 3.0 * p[:, 2])[:, None]
    more = rigid_efforts(model, speeding, at_speeding) - slow
    weight, c, c_rate = slow - with_speed, with_speed[:, 0], with_speed[:, 1]
    m, m_rate = more[:, 0], more[:, 1] - 2.0 * c
    zero = np.zeros_like(m)
    # Slopes in b, b' and b'', and what does not depend on them, (4, n, N): of acceleration and
    # torque, which know no b''; of jerk / ud, torque rate / ud and velocity / ud.
    of_rate = [c_rate, 0.5 * m_rate + c, 0.5 * m, weight[:, 1]]
    torque_terms = [p[:, 2], 0.5 * p[:, 1], zero], [c, 0.5 * m, weight[:, 0]]
    rate_terms = (
        [p[:, 3], 1.5 * p[:, 2], 0.5 * p[:, 1], zero],
        of_rate,
        [zero, zero, zero, p[:, 1]],
    )
    # What is limited, by its shares of these.
    none = np.zeros(model.n_joints)
    torque_shares = [(1.0 / limits.acceleration, none), (none, 1.0 / limits.effort)]
    rate_shares = [(1.0 / limits.jerk, none, none), (none, 1.0 / limits.effort_dot, none)]
    if drives is not None:
        inertia, compliance, velocity, torque, torque_rate, deflection = drives
        torque_shares += [(inertia / torque, 1.0 / torque), (none, compliance / deflection)]
        rate_shares += [
            (none, compliance / velocity, 1.0 / velocity),
            (inertia / torque_rate, 1.0 / torque_rate, none),
        ]
    torques = _rows(torque_shares, torque_terms)
    rates = _rows(rate_shares, rate_terms)
    # Of the velocity all joints have one row, its square.
    squares = np.zeros((3, 1, len(p)))
    squares[0, 0] = np.square(p[:, 1] / limits.velocity).max(axis=1)
    kinds = [torques, rates]
    if p.shape[1] > 4:
        # Q'' is b' / 2 times Q' / ud, and b times the slope of that along u.
        m_second = more[:, 2] - more[:, 1] - 5.0 * c_rate - weight[:, 1]
        of_slope = [
            with_speed[:, 2],
            2.0 * c_rate + 0.5 * m_second,
            m_rate + c,
            0.5 * m,
            weight[:, 2],
        ]
        share = [(none, 1.0 / limits.effort_ddot)]
        kinds.append(_rows(share, ([zero] * 4, of_rate)))
        of_slope_rows = _rows(share, ([zero] * 5, of_slope)).terms

    def limited(b: Array) -> list[tuple[Array, Array]]:
        root = np.sqrt(b[0])
        slopes = torques.terms[:2]
        values = torques.terms[2] + slopes[0] * b[0] + slopes[1] * b[1]
        found = [(values, slopes)]
        slopes = rates.terms[:3] * root
        values = rates.terms[3] * root + np.einsum('kcn,kn->cn', slopes, b[:3])
        slopes[0] += values / (2.0 * b[0])
        found.append((values, slopes))
        if len(kinds) > 2:
            terms = kinds[2].terms
            rate = terms[3] + np.einsum('kcn,kn->cn', terms[:3], b[:3])
            slope = of_slope_rows[4] + np.einsum('kcn,kn->cn', of_slope_rows[:4], b)
            slopes = b[0] * of_slope_rows[:4]
            slopes[:3] += 0.5 * b[1] * terms[:3]
            slopes[0] += slope
            slopes[1] += 0.5 * rate
            found.append((0.5 * b[1] * rate + b[0] * slope, slopes))
        if model.friction:
            of_kinds = zip(found, kinds, _friction_along(model, p, b))
            found = [_with_friction(*each) for each in of_kinds]
        return [(squares[0] * b[0], squares[:1]), *found]

    return limited


class _Rows(NamedTuple):
    """Limited quantities of one kind, each of a joint, over their limits."""

    terms: Array  # (T, C, N)
    joint: NDArray[np.intp]  # (C,)
    effort: Array  # their shares of the torque of the joint (C, 1)


def _rows(
    shares: Sequence[tuple[Array, ...]], terms: Sequence[Sequence[Array]]
) -> _Rows:
    """Rows of the shares that are not zero; their second one is that of the torque."""
    joints = [np.flatnonzero(np.sum(share, axis=0)) for share in shares]
    rows = [
        np.sum([np.multiply(x, y) for x, y in zip(terms, share)], axis=0)[..., joint]
        for share, joint in zip(shares, joints)
    ]
    efforts = [share[1][joint] for share, joint in zip(shares, joints)]
    together = np.ascontiguousarray(np.swapaxes(np.concatenate(rows, axis=2), 1, 2))
    return _Rows(together, np.concatenate(joints), np.concatenate(efforts)[:, None])


def _with_friction(
    found: tuple[Array, Array], rows: _Rows, friction: Sequence[Array]
) -> tuple[Array, Array]:
    """Values and slopes with those of the friction (N, n)."""
    value, *in_b = (rows.effort * each.T[rows.joint] for each in friction)
    slopes = found[1].copy()
    for slope, more in zip(slopes, in_b):
        slope += more
    return found[0] + value, slopes


def _friction_along(model: RobotModel, p: Array, b: Array) -> tuple[tuple[Array, ...], ...]:
    """Efforts F(qd) and two time derivatives (N, n), each with its slopes in b, b' and b''."""
    square, first, second = b[:3, :, None]
    root = np.sqrt(square)
    # Derivatives with respect to the velocity are time derivatives where that rises at the rate 1.
    velocity = np.zeros((len(p), p.shape[1] - 1, p.shape[2]))
    velocity[:, 0], velocity[:, 1] = p[:, 1] * root, 1.0
    F, slope, bend, *third = np.moveaxis(friction_efforts(model, velocity), 1, 0)
    rise, acceleration = p[:, 1] / (2.0 * root), p[:, 2] * square + 0.5 * p[:, 1] * first
    rates = (
        slope * acceleration,
        slope * p[:, 2] + bend * rise * acceleration,
        slope * p[:, 1] / 2.0,
    )
    if not third:
        return (F, slope * rise), rates
    jerk = p[:, 3] * square + 1.5 * p[:, 2] * first + 0.5 * p[:, 1] * second
    seconds = (
        bend * acceleration**2 + slope * root * jerk,
        third[0] * rise * acceleration**2
        + bend * (2.0 * acceleration * p[:, 2] + rise * root * jerk)
        + slope * (jerk / (2.0 * root) + root * p[:, 3]),
        bend * acceleration * p[:, 1] + 1.5 * slope * root * p[:, 2],
        0.5 * slope * root * p[:, 1],
    )
    return (F, slope * rise), rates, seconds


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
    # (4, N, 5). Products of two of them have a place in a band matrix, as SciPy stores it.
    interval = np.minimum(np.arange(len(places)) * intervals // len(places), intervals - 1)
    columns = interval[:, None] + np.arange(_DEGREE + 1)
    every = BSpline(knots, np.eye(size), _DEGREE)
    basis = np.stack([np.take_along_axis(every(places, nu=k), columns, axis=1) for k in range(4)])
    row, column = np.triu_indices(_DEGREE + 1)
    in_band = ((_DEGREE + row - column) * size + columns[:, column]).ravel()

    def seen(x: Array) -> tuple[float, float, Array, list[Array], list[Array]] | None:
        """Duration, sum of logarithms, b and derivatives, slopes, room; None beyond a limit."""
        b = np.einsum('knj,nj->kn', basis, x[columns])
        if min(x.min(), b[0].min()) <= 0.0:
            return None
        values, slopes = zip(*limited(b))
        rooms = [np.stack((1.0 - each, 1.0 + each)) for each in values]
        if min(room.min(initial=1.0) for room in rooms) <= 0.0:
            return None
        # Quicker than the sum of the logarithms; (1 - h)(1 + h) is at most 1, so none overflows.
        products = [np.log(room.prod(axis=(0, 1))).sum() for room in rooms]
        logarithms = float(sum(products) + np.log(x).sum())
        return float((weights / np.sqrt(b[0])).sum()), logarithms, b, list(slopes), rooms

    x = np.full(size, speed * speed)
    now = seen(x)
    barrier = 0.0 if now is None else _FIRST_BARRIER * now[0] / len(places)
    for _ in range(_MOST_STEPS):
        if now is None or barrier < _LAST_BARRIER * now[0] / len(places):
            break
        duration, logarithms, b, slopes, rooms = now
        # Gradient and matrix, this without the curvature of the limits: it is positive definite.
        first, second = np.zeros((4, len(places))), np.zeros((4, 4, len(places)))
        first[0], second[0, 0] = -0.5 * weights * b[0] ** -1.5, 0.75 * weights * b[0] ** -2.5
        for slope, room in zip(slopes, rooms):
            above, below = barrier / room
            first[: len(slope)] += np.einsum('kcn,cn->kn', slope, above - below)
            weighted = slope * ((above * above + below * below) / barrier)
            second[: len(slope), : len(slope)] += np.einsum('jcn,kcn->jkn', weighted, slope)
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
        change, nearest = np.einsum('knj,nj->kn', basis, step[columns]), float((-step / x).max())
        for slope, room in zip(slopes, rooms):
            towards = np.einsum('kcn,kn->cn', slope, change[: len(slope)])
            shares = np.maximum(towards / room[0], -towards / room[1])
            nearest = max(nearest, float(shares.max(initial=0.0)))
        length = _NEAREST / max(_NEAREST, nearest)
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
