"""Paths to be retimed: where they move, at rest at both ends, and what limits the speed there.

Limits are functions of the squared speed b(u) of the parameter of a path. Acceleration and torque
are linear in b and b' (Verscheure et al. 2009, "Time-Optimal Path Tracking for Robots: A Convex
Optimization Approach"), jerk and torque rate are sqrt(b) times what is linear in b, b' and b'',
and the second derivative of the torque is a product of two such terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.inverse import friction_efforts
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.lie.jets import Jet, compose
from hodyn_ros.model.limits import MotionLimits, velocity_use
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import LimitedJoints
from hodyn_ros.retiming.scaling import (
    TimedMotion,
    at_rate,
    knots_of,
    rigid_efforts,
)
from hodyn_ros.typing import Array, Indices

Limited = Callable[[Array], list[tuple[Array, Array]]]
"""From squared speeds and three derivatives (4, N) to quotients of limited quantities and their
limits (C, N), and the slopes (D, C, N) of these with respect to the first D of those: by kinds."""

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
        outer = Jet.along(self._path(sigma[..., 0], highest_derivative), -2)
        return compose(outer, Jet.along(sigma[..., None], -2)).array(-2)


def _advance(first: int, last: int) -> Array:
    """Coefficients of the polynomial from 0 to 1 that leaves 0 as x^first, reaches 1 as x^last."""
    rate = np.append(np.zeros(first - 1), polynomial.polypow([1.0, -1.0], last - 1))
    whole = polynomial.polyint(rate)
    return np.asarray(whole / whole.sum())


class Drives(NamedTuple):
    """Motors of the n joints and their limits, each (n,); infinite where there are none.

    Attributes
    ----------
    inertia : ndarray
        Of the motor of each joint [kg m^2] or [kg].
    compliance : ndarray
        Of its linear spring [rad/N m] or [m/N]; zero without one.
    velocity : ndarray
        Of the motor [rad/s] or [m/s].
    torque : ndarray
        [N m] or [N]
    torque_rate : ndarray
        [N m/s] or [N/s]
    deflection : ndarray
        Of the spring [rad] or [m].
    """

    inertia: Array
    compliance: Array
    velocity: Array
    torque: Array
    torque_rate: Array
    deflection: Array


class PathLimits:
    """Limits at places of a path p(u), shape (N, K, n).

    The torque is m b' / 2 + c b + g with m = M p', c = M p'' + C(p, p') p' and g of the weight.
    Of motors behind springs, torque and torque rate are those of motors without. K is 4, or 5 to
    limit the second derivative of the torque.

    Parameters
    ----------
    model : RobotModel
        Of n joints.
    limits : MotionLimits
        Infinite where there are none.
    p : ndarray, shape (N, K, n)
        Positions and derivatives with respect to u [rad] or [m], K = 4 or 5.
    drives : Drives, optional
        Motors and springs that are limited too.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        p: Array,
        drives: Drives | None = None,
    ) -> None:
        self._model, self._p = model, p
        weight, with_speed, more = _efforts_along(model, p)
        c, c_rate = with_speed[:, 0], with_speed[:, 1]
        m, m_rate = more[:, 0], more[:, 1] - 2.0 * c
        n, of_joints = model.n_joints, LimitedJoints(model, limits)
        # Joints that move with the others have limits of their motion, but no efforts.
        P, of_all = of_joints.motion(p), of_joints.limits
        self._others = others = len(of_joints.names) - n
        zero, none = np.zeros_like(P[:, 0]), np.zeros(n + others)
        # Slopes in b, b' and b'', and what does not depend on them, (4, n, N): of acceleration and
        # torque, which know no b''; of jerk / ud, torque rate / ud and velocity / ud.
        of_rate = [
            self._padded(each) for each in (c_rate, 0.5 * m_rate + c, 0.5 * m, weight[:, 1])
        ]
        torque_terms = (
            [P[:, 2], 0.5 * P[:, 1], zero],
            [self._padded(each) for each in (c, 0.5 * m, weight[:, 0])],
        )
        rate_terms = (
            [P[:, 3], 1.5 * P[:, 2], 0.5 * P[:, 1], zero],
            of_rate,
            [zero, zero, zero, P[:, 1]],
        )
        # What is limited, by its shares of these.
        torque_shares = [
            (_inverse(of_all.acceleration), none),
            (none, _inverse(of_all.effort)),
        ]
        rate_shares = [
            (_inverse(of_all.jerk), none, none),
            (none, _inverse(of_all.effort_dot), none),
        ]
        if drives is not None:
            # Joints without a motor have no inertia, and infinite limits.
            inertia, compliance = map(self._padded, drives[:2])
            velocity, torque, torque_rate, deflection = (
                np.append(limit, np.full(others, np.inf)) for limit in drives[2:]
            )
            torque_shares += [
                (inertia / torque, 1.0 / torque),
                (none, compliance / deflection),
            ]
            rate_shares += [
                (none, compliance / velocity, 1.0 / velocity),
                (inertia / torque_rate, 1.0 / torque_rate, none),
            ]
        self._kinds = [_rows(torque_shares, torque_terms), _rows(rate_shares, rate_terms)]
        # Of the velocity all joints have one row, its square.
        self._squares = np.zeros((3, 1, len(p)))
        self._squares[0, 0] = np.square(velocity_use(of_all, P)).max(axis=1)
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
            of_slope = [self._padded(each) for each in of_slope]
            second = [(none, _inverse(of_all.effort_ddot))]
            self._kinds.append(_rows(second, ([zero] * 4, of_rate)))
            self._of_slope = _rows(second, ([zero] * 5, of_slope)).terms

    def _padded(self, of_joints: Array) -> Array:
        """Columns (..., n) of the joints, and zeros for those that move with them."""
        if not self._others:
            return of_joints
        return np.pad(of_joints, [(0, 0)] * (of_joints.ndim - 1) + [(0, self._others)])

    def __call__(self, b: Array) -> list[tuple[Array, Array]]:
        """Values and slopes at squared speeds and three derivatives (4, N); see `Limited`.

        Parameters
        ----------
        b : ndarray, shape (4, N)
            Squared speed of u and its first three derivatives with respect to u [1/s^2].

        Returns
        -------
        list of (ndarray, ndarray)
            Velocity squared; acceleration and torque; jerk and torque rate; second
            derivative of the torque, if K is 5. Motors are among the torques and torque
            rates. Each is over its limit, so 1 is on it.
        """
        root = np.sqrt(b[0])
        torques, rates, *seconds = self._kinds
        slopes = torques.terms[:2]
        found = [(torques.terms[2] + slopes[0] * b[0] + slopes[1] * b[1], slopes)]
        slopes = rates.terms[:3] * root
        values = rates.terms[3] * root + np.einsum('kcn,kn->cn', slopes, b[:3])
        slopes[0] += values / (2.0 * b[0])
        found.append((values, slopes))
        for kind in seconds:
            terms = kind.terms
            rate = terms[3] + np.einsum('kcn,kn->cn', terms[:3], b[:3])
            slope = self._of_slope[4] + np.einsum('kcn,kn->cn', self._of_slope[:4], b)
            slopes = b[0] * self._of_slope[:4]
            slopes[:3] += 0.5 * b[1] * terms[:3]
            slopes[0] += slope
            slopes[1] += 0.5 * rate
            found.append((0.5 * b[1] * rate + b[0] * slope, slopes))
        if self._model.friction:
            of_kinds = zip(found, self._kinds, _friction_along(self._model, self._p, b))
            found = [
                _with_friction(each, kind, [self._padded(x) for x in friction])
                for each, kind, friction in of_kinds
            ]
        return [(self._squares[0] * b[0], self._squares[:1]), *found]


def _inverse(limit: Array) -> Array:
    """One over limits; what has a limit of zero is at rest, see `uniform_scaling`."""
    return np.divide(1.0, limit, out=np.zeros(len(limit)), where=limit > 0.0)


def _efforts_along(model: RobotModel, p: Array) -> tuple[Array, Array, Array]:
    """Efforts (N, K - 2, n) of the weight, with the speed ud = 1, and what u2d = 1 adds to both.

    With ud = 1: g + c, g' + c', g'' + c''. With ud = 2: g + 4 c, 2 g' + 8 c', 4 g'' + 16 c''. With
    ud = u2d = 1 the torque has m more, its rate 2 c + m', and the derivative of that
    g' + 2 c + 5 c' + m' + m''.

    Parameters
    ----------
    model : RobotModel
    p : ndarray, shape (N, K, n)
        Path with its derivatives with respect to u.

    Returns
    -------
    weight : ndarray, shape (N, K - 2, n)
        g, g', g''.
    with_speed : ndarray, shape (N, K - 2, n)
        c, c', c''.
    more : ndarray, shape (N, K - 2, n)
        What u2d = 1 adds, see above.
    """
    slow = rigid_efforts(model, p)
    twice = at_rate(rigid_efforts(model, at_rate(p, 2.0)), 0.5)
    with_speed = (twice - slow) / 3.0
    speeding = p.copy()
    speeding[:, 2] += p[:, 1]
    speeding[:, 3] += 3.0 * p[:, 2]
    speeding[:, 4:] += (6.0 * p[:, 3] + 3.0 * p[:, 2])[:, None]
    more = rigid_efforts(model, speeding) - slow
    return slow - with_speed, with_speed, more


class _Rows(NamedTuple):
    """Limited quantities of one kind, each of a joint, over their limits."""

    terms: Array  # (T, C, N)
    joint: Indices  # (C,)
    effort: Array  # their shares of the torque of the joint (C, 1)


def _rows(shares: Sequence[tuple[Array, ...]], terms: Sequence[Sequence[Array]]) -> _Rows:
    """Rows of the shares that are not zero; their second one is that of the torque.

    Parameters
    ----------
    shares : sequence of tuples of ndarray, shape (n,)
        One tuple for each limited quantity: the parts that it has of each group of terms,
        over its limit.
    terms : sequence of sequences of ndarray, shape (N, n)
        Groups, each with T terms.

    Returns
    -------
    _Rows
    """
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
    """Efforts F(qd) and two time derivatives (N, n), each with its slopes in b, b' and b''.

    Parameters
    ----------
    model : RobotModel
    p : ndarray, shape (N, K, n)
        See `PathLimits`; K = 5 for the second time derivative too.
    b : ndarray, shape (4, N)
        See `PathLimits.__call__`.

    Returns
    -------
    tuple of tuple of ndarray, shape (N, n)
        For each order the value, then its slopes in b, b' and so on as far as it depends on
        them.
    """
    square, first, second = b[:3, :, None]
    root = np.sqrt(square)
    # Derivatives with respect to the velocity are time derivatives where that rises at the rate 1.
    motion = np.zeros((len(p), p.shape[1] + 1, p.shape[2]))
    motion[:, 1], motion[:, 2] = p[:, 1] * root, 1.0
    F, slope, bend, *third = np.moveaxis(friction_efforts(model, motion), 1, 0)
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
