"""Paths to be retimed: where they move, at rest at both ends, and what limits the speed there.

Limits are functions of the squared speed b(u) of the parameter of a path. Acceleration and torque
are linear in b and b' (Verscheure et al. 2009, "Time-Optimal Path Tracking for Robots: A Convex
Optimization Approach"), jerk and torque rate are sqrt(b) times what is linear in b, b' and b'',
and the second derivative of the torque is a product of two such terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import comb, perm
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.inverse import friction_efforts
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.lie.jets import Jet, compose
from hodyn_ros.model.limits import velocity_use
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.retiming.robot_limits import (
    RobotLimits,
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

    A law that leaves rest advances as t^5 and has no smooth speed over sigma. The first four
    derivatives of sigma(u) vanish at both ends: there the joints rest whatever the speed of u is,
    a smooth function of u.

    Parameters
    ----------
    path : function of the path parameter
        q(sigma), of class C4.
    start, end : float
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

    start_time: float = 0.0
    end_time: float = 1.0

    def __init__(self, path: TimedMotion, start: float, end: float) -> None:
        self._path = path
        self.ends: tuple[float, float] = (start, end)
        # In units of the whole length, all derivatives are comparable.
        places = np.linspace(start, end, _PLACES)
        derivatives = path(places, 4) * (end - start) ** np.arange(5.0)[:, None]
        if derivatives.ndim != 3 or not np.all(np.isfinite(derivatives)):
            raise TrajectoryError(
                'The path must give finite derivatives of shape (N, 5, n), but gives '
                f'{derivatives.shape} with values that are not finite or in another shape.'
            )
        # Power of u with which sigma leaves each end, by the first derivative that is not zero.
        size = np.abs(derivatives[:, 1:]).max(axis=2)
        moves = size[[0, -1]] > _VANISHING * size.max(axis=0)
        orders = np.where(moves.any(axis=1), moves.argmax(axis=1) + 1, _ORDER_OF_REST)
        self._powers = (-(-_ORDER_OF_REST // orders)).tolist()

    @cached_property
    def times(self) -> Array:
        """Values of u at the knots of the path, from 0 to 1.

        Returns
        -------
        ndarray, shape (L + 1,)
            Increasing.
        """
        from scipy.special import betaincinv

        (start, end), sigma = self.ends, knots_of(self._path)
        part = (sigma[(sigma > start) & (sigma < end)] - start) / (end - start)
        return np.unique(np.concatenate(([0.0], betaincinv(*self._powers, part), [1.0])))

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
        sigma = self.parameter(t, highest_derivative)
        outer = Jet.along(self._path(sigma[0], highest_derivative), -2)
        return compose(outer, sigma.map(lambda x: x[..., None])).array(-2)

    def parameter(self, t: ArrayLike, highest_derivative: int = 0) -> Jet:
        """sigma(u) and its derivatives at u = t: an incomplete beta function between the ends.

        Parameters
        ----------
        t : array-like, shape (...)
            Values of u, from 0 to 1.
        highest_derivative : int
            With respect to u.

        Returns
        -------
        Jet of ndarray, shape (...)
        """
        from scipy.special import beta, betainc

        u, (a, b), (start, end) = np.asarray(t, dtype=np.float64), self._powers, self.ends
        sigma = np.clip(start + (end - start) * betainc(a, b, u), start, end)
        rise = (perm(a - 1, k) * u ** max(a - 1 - k, 0) for k in range(highest_derivative))
        fall = (
            (-1.0) ** k * perm(b - 1, k) * (1.0 - u) ** max(b - 1 - k, 0)
            for k in range(highest_derivative)
        )
        rate = Jet(rise) * Jet(fall) * ((end - start) / beta(a, b))
        return Jet([sigma, *rate])


class _Rows(NamedTuple):
    """C limited quantities of one order, each of a joint, over their limits.

    They are derivatives along u of x = x0 b + x1 b' + x2, for which `terms` are the factors of
    b, b' and so on, and what does not depend on them.
    """

    terms: Array  # (order + 3, C, N)
    below: Array  # of the order below
    joint: Indices  # (C,)
    effort: Array  # their shares of the torque of the joint (C, 1)


class PathLimits:
    """Limits at places of a path p(u), shape (N, K, n).

    Position, acceleration and torque, and what motors behind springs make of them, have the form
    x = x0 b + x1 b' + x2: with ud^2 = b and 2 u2d = b' the acceleration is p'' b + p' b' / 2, and
    the torque c b + m b' / 2 + g with m = M p', c = M p'' + C(p, p') p' and g of the weight. Then
    xd = sqrt(b) x' and x2d = b' x' / 2 + b x''. Of motors behind springs, torque and torque rate
    are those of motors without.

    Parameters
    ----------
    robot : RobotLimits
        Of n joints.
    p : ndarray, shape (N, K, n)
        Positions and derivatives with respect to u [rad] or [m]. K is 3; 4 to limit jerk and
        torque rate, with friction or with motors; 5 for the second derivative of the torque.
    """

    def __init__(self, robot: RobotLimits, p: Array) -> None:
        joints = robot.joints
        self._model, self._p = robot.model, p
        P, limits, orders = joints.motion(p), joints.limits, p.shape[1] - 2
        # Joints that move with the others have limits of their motion, but no efforts.
        self._others = [(0, 0), (0, 0), (0, len(joints.names) - robot.model.n_joints)]
        # Derivatives along u of x0, x1 and x2, (orders, 3, N, m).
        P = np.moveaxis(P, 1, 0)
        position, acceleration = np.zeros((2, orders, 3, *P.shape[1:]))
        position[:, 2] = P[:orders]
        acceleration[:, 0], acceleration[:, 1] = P[2:], 0.5 * P[1:-1]
        torque = np.stack([self._padded(x) for x in _efforts_along(robot.model, p)], axis=1)
        # Order of the derivative, of what, the limit, and the share of the torque.
        limited = [
            (0, acceleration, limits.acceleration, 0.0),
            (0, torque, limits.effort, 1.0),
            (1, acceleration, limits.jerk, 0.0),
            (1, torque, limits.effort_dot, 1.0),
            (2, torque, limits.effort_ddot, 1.0),
        ]
        if robot.actuators is not None:
            inertia, compliance, velocity, most, rate, end = _drives(robot, P.shape[-1])
            of_motor, deflection = inertia * acceleration + torque, compliance * torque
            limited += [
                (0, of_motor, most, 1.0),
                (0, deflection, end, compliance),
                (1, position + deflection, velocity, compliance),
                (1, of_motor, rate, 1.0),
            ]
        rows = (
            (k, _rows(k, [row[1:] for row in limited if row[0] == k]))
            for k in range(orders)
        )
        self._rows = {k: found for k, found in rows if len(found.joint)}
        # Of the velocity all joints have one row, its square.
        self._squares = np.zeros((3, 1, len(p)))
        use = velocity_use(limits, np.moveaxis(P, 0, 1))
        self._squares[0, 0] = np.square(use).max(axis=1)

    def _padded(self, of_joints: Array) -> Array:
        """Columns (..., n) of the joints, and zeros for those that move with them."""
        return np.pad(of_joints, self._others[-of_joints.ndim :])

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
        found, root = [(self._squares[0] * b[0], self._squares[:1])], np.sqrt(b[0])
        for k, rows in self._rows.items():
            slopes = rows.terms[:-1].copy()
            value = rows.terms[-1] + np.einsum('kcn,kn->cn', slopes, b[: k + 2])
            if k == 1:
                slopes, value = root * slopes, root * value
                slopes[0] += value / (2.0 * b[0])
            elif k == 2:
                rate = rows.below[-1] + np.einsum('kcn,kn->cn', rows.below[:-1], b[:3])
                slopes *= b[0]
                slopes[:3] += 0.5 * b[1] * rows.below[:-1]
                slopes[0] += value
                slopes[1] += 0.5 * rate
                value = 0.5 * b[1] * rate + b[0] * value
            found.append((value, slopes))
        if not self._model.friction:
            return found
        of_orders = _friction_along(self._model, self._p, b)
        for (value, slopes), (k, rows) in zip(found[1:], self._rows.items()):
            for to, more in zip((value, *slopes), of_orders[k]):
                to += rows.effort * self._padded(more).T[rows.joint]
        return found


def _rows(k: int, limited: Sequence[tuple[Array, Array, Array | float]]) -> _Rows:
    """Rows of order k where there is a limit; what has a limit of zero is at rest.

    Parameters
    ----------
    k : int
        Order of the derivative.
    limited : sequence of tuple
        Derivatives along u of x0, x1 and x2 of quantities, (orders, 3, N, m), their limits, (m,),
        and the shares of the torque that they have.

    Returns
    -------
    _Rows
    """
    terms, joints, efforts = [], [], []
    for x, limit, share in limited:
        joint = np.flatnonzero(np.isfinite(limit) & (limit > 0.0))
        terms.append(np.moveaxis(x[..., joint] / limit[joint], 3, 2))
        joints.append(joint)
        efforts.append((share * np.ones_like(limit))[joint] / limit[joint])
    every, effort = np.concatenate(terms, axis=2), np.concatenate(efforts)[:, None]
    below = _factors(every, max(k - 1, 0))
    return _Rows(_factors(every, k), below, np.concatenate(joints), effort)


def _factors(x: Array, k: int) -> Array:
    """Factors of b, b' and so on in the derivative k along u of x0 b + x1 b' + x2, and the rest.

    Parameters
    ----------
    x : ndarray, shape (K, 3, C, N)
        Derivatives along u of x0, x1 and x2.
    k : int

    Returns
    -------
    ndarray, shape (k + 3, C, N)
    """
    factors = np.zeros((k + 3, *x.shape[2:]))
    for j in range(k + 1):
        factors[j : j + 2] += comb(k, j) * x[k - j, :2]
    factors[-1] = x[k, 2]
    return factors


def _drives(robot: RobotLimits, count: int) -> Array:
    """Motors of joints that have one, and springs that are linear.

    Parameters
    ----------
    robot : RobotLimits
    count : int
        Number of joints m.

    Returns
    -------
    ndarray, shape (6, m)
        Inertia of the motor, compliance of its spring, zero without; limits of velocity, torque
        and torque rate of the motor and of the deflection, infinite without.
    """
    from hodyn_ros.actuators.springs import LinearSpring

    assert robot.actuators is not None and robot.motor_limits is not None
    drives = np.repeat([[0.0], [0.0], *[[np.inf]] * 4], count, axis=1)
    *of_motors, of_springs = robot.motor_limits
    for item in robot.actuators.driven:
        joint, spring = item.joint, getattr(item.actuator, 'spring', None)
        if len(item.actuator.motor_inertias) == 1:
            drives[0, joint] = item.actuator.motor_inertias[0]
            drives[2:5, joint] = [limit[item.motors.start] for limit in of_motors]
            if isinstance(spring, LinearSpring):
                drives[1, joint] = 1.0 / spring.stiffness
                drives[5, joint] = min(of_springs[joint], spring.max_deflection)
    return drives


def _efforts_along(model: RobotModel, p: Array) -> Array:
    """Factors c, m / 2 and g of the torque along a path with their derivatives.

    With ud = 1 inverse dynamics gives g + c, g' + c', g'' + c''; with ud = 2 g + 4 c, 2 g' + 8 c',
    4 g'' + 16 c''. With ud = u2d = 1 the torque has m more, its rate 2 c + m', and the derivative
    of that g' + 2 c + 5 c' + m' + m''.

    Parameters
    ----------
    model : RobotModel
    p : ndarray, shape (N, K, n)
        Path with its derivatives with respect to u.

    Returns
    -------
    ndarray, shape (3, K - 2, N, n)
    """
    speeding = p.copy()
    speeding[:, 2] += p[:, 1]
    speeding[:, 3:4] += 3.0 * p[:, 2:3]
    speeding[:, 4:] += 6.0 * p[:, 3:4] + 3.0 * p[:, 2:3]
    slow, twice, more = (
        np.moveaxis(at_rate(rigid_efforts(model, at_rate(each, s)), 1.0 / s), 1, 0)
        for each, s in ((p, 1.0), (p, 2.0), (speeding, 1.0))
    )
    c = (twice - slow) / 3.0
    g, m = slow - c, more - slow
    if len(m) > 1:
        m[1] -= 2.0 * c[0]
    if len(m) > 2:
        m[2] -= g[1] + 2.0 * c[0] + 5.0 * c[1] + m[1]
    return np.stack((c, 0.5 * m, g))


def limits_along(robot: RobotLimits, path: RestingPath) -> Callable[[Array], PathLimits]:
    """Limits at places (N,) of a path, as functions of the squared speed there.

    Parameters
    ----------
    robot : RobotLimits
    path : RestingPath

    Returns
    -------
    callable
    """
    # Those of motors bound the torque rate; friction is known with its slopes.
    known = robot.actuators is not None or bool(robot.model.friction)
    order = max(robot.order, 3 if known else 2)
    return lambda places: PathLimits(robot, path(places, order))


def _friction_along(model: RobotModel, p: Array, b: Array) -> list[Array]:
    """Efforts F(qd) and one or two time derivatives, each with its slopes in b, b' and b''.

    Parameters
    ----------
    model : RobotModel
    p : ndarray, shape (N, K, n)
        See `PathLimits`; K = 5 for the second time derivative too.
    b : ndarray, shape (4, N)
        See `PathLimits.__call__`.

    Returns
    -------
    list of ndarray, shape (4, N, n)
        For each order the value, then its slopes.
    """
    square, first, second = b[:3, :, None]
    root = np.sqrt(square)
    # Derivatives with respect to the velocity are time derivatives where that rises at the rate 1.
    motion = np.zeros((len(p), p.shape[1] + 1, p.shape[2]))
    motion[:, 1], motion[:, 2] = p[:, 1] * root, 1.0
    F, slope, bend, *third = np.moveaxis(friction_efforts(model, motion), 1, 0)
    none = np.zeros_like(F)
    acceleration = p[:, 2] * square + 0.5 * p[:, 1] * first
    of_velocity = np.stack((p[:, 1] / (2.0 * root), none, none))
    of_acceleration = np.stack((p[:, 2], 0.5 * p[:, 1], none))
    found = [
        (F, slope * of_velocity),
        (slope * acceleration, bend * acceleration * of_velocity + slope * of_acceleration),
    ]
    if third:
        jerk = root * (p[:, 3] * square + 1.5 * p[:, 2] * first + 0.5 * p[:, 1] * second)
        of_jerk = root * np.stack((p[:, 3], 1.5 * p[:, 2], 0.5 * p[:, 1]))
        of_jerk[0] += jerk / (2.0 * square)
        slopes = (third[0] * acceleration**2 + bend * jerk) * of_velocity
        slopes += 2.0 * bend * acceleration * of_acceleration + slope * of_jerk
        found.append((bend * acceleration**2 + slope * jerk, slopes))
    return [np.concatenate((value[None], slopes)) for value, slopes in found]
