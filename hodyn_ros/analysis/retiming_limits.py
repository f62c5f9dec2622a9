"""Limits along a path as functions of the squared speed b(u) and its first two derivatives.

On the path p(u), with ud^2 = b, the torque of rigid bodies is m b'/2 + c b + g with m = M p',
c = M p'' + C(p, p') p' and what weight and wrenches need, g, all functions of the place.
Acceleration and torque are linear in b and b', the squared velocity in b; jerk and torque rate are
sqrt(b) times what is linear in b, b' and b''. Source: Verscheure, Demeulenaere, Swevers, De
Schutter and Diehl 2009, "Time-Optimal Path Tracking for Robots: A Convex Optimization Approach",
for the torque.

|l(b)| sqrt(b) <= L is |l(b)| <= L / sqrt(b). The right side is convex, so its tangent at a known b
is below it: whatever keeps the limit with the tangent keeps it with the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.limits import MotionLimits
from hodyn_ros.analysis.retiming_path import RestingPath
from hodyn_ros.analysis.scaling_dynamics import friction_efforts
from hodyn_ros.analysis.stretching import WrenchFunction, at_rate, wrenches_along
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


class Rows(NamedTuple):
    """Linear inequalities at places of the path: slopes @ (b, b', b'') <= bound."""

    place: NDArray[np.intp]
    slopes: Array
    """Shape (M, 3)."""
    bound: Array


class PathLimits:
    """Limits of a robot along a path, at some places.

    Parameters
    ----------
    model : RobotModel
    path : RestingPath
    limits : MotionLimits
    places : ndarray, shape (N,)
        Values of u.
    wrench : callable, optional
        Wrenches as a function of sigma.
    """

    def __init__(
        self,
        model: RobotModel,
        path: RestingPath,
        limits: MotionLimits,
        places: Array,
        wrench: WrenchFunction | None = None,
    ) -> None:
        self._model, self._limits = model, limits
        p = path(places, 3)
        self._p = p
        self._laws = {model.body_names.index(name): law for name, law in model.friction.items()}
        # With ud = 1: g + c and g' + c'. With ud = 2: g + 4 c and 2 g' + 8 c'. With ud = u2d = 1,
        # the torque has m more, its rate 2 c + m'.
        steady = np.stack((places, np.ones_like(places)), axis=-1)
        at_one, at_two = (
            None if wrench is None else wrenches_along(wrench, path.sigma(steady * [1.0, speed]))
            for speed in (1.0, 2.0)
        )
        slow, fast = self._bodies(p, at_one), self._bodies(at_rate(p, 2.0), at_two)
        self._c, self._c_rate = (
            (fast[:, 0] - slow[:, 0]) / 3.0,
            (fast[:, 1] / 2 - slow[:, 1]) / 3.0,
        )
        self._g, self._g_rate = slow[:, 0] - self._c, slow[:, 1] - self._c_rate
        speeding = p.copy()
        speeding[:, 2] += p[:, 1]
        speeding[:, 3] += 3.0 * p[:, 2]
        more = self._bodies(speeding, at_one) - slow
        self._m, self._m_rate = more[:, 0], more[:, 1] - 2.0 * self._c

    def _bodies(self, motion: Array, wrench: Sequence[Wrench] | None) -> Array:
        efforts = inverse_dynamics(self._model, motion, wrench)
        return efforts - friction_efforts(self._model, self._laws, motion[:, 1:-1])

    def _friction(self, b: Array) -> tuple[Array, ...]:
        """Friction, and its derivatives with respect to the joint velocity, each (N, n)."""
        velocity = np.zeros((len(b), 3, self._p.shape[2]))
        velocity[:, 0] = self._p[:, 1] * np.sqrt(b[:, :1])
        # A velocity that rises at the rate one makes time derivatives of the derivatives.
        velocity[:, 1] = 1.0
        return tuple(np.moveaxis(friction_efforts(self._model, self._laws, velocity), 1, 0))

    def _linear(self) -> tuple[tuple[Array, Array, Array], ...]:
        """Slopes of acceleration, jerk / ud, torque, torque rate / ud in (b, b', b''), (N, n)."""
        p, zero = self._p, np.zeros_like(self._m)
        return (
            (p[:, 2], 0.5 * p[:, 1], zero),
            (p[:, 3], 1.5 * p[:, 2], 0.5 * p[:, 1]),
            (self._c, 0.5 * self._m, zero),
            (self._c_rate, 0.5 * self._m_rate + self._c, 0.5 * self._m),
        )

    def ratios(self, b: Array) -> Array:
        """Largest quotient of a quantity and its limit at each place, shape (N,).

        Parameters
        ----------
        b : ndarray, shape (N, 3)
            Squared speed and its derivatives.
        """
        speed = np.sqrt(b[:, :1])
        acceleration, jerk, effort, rate = (
            slopes[0] * b[:, :1] + slopes[1] * b[:, 1:2] + slopes[2] * b[:, 2:]
            for slopes in self._linear()
        )
        effort = effort + self._g
        rate = rate + self._g_rate
        if self._laws:
            friction, slope, _ = self._friction(b)
            effort = effort + friction
            rate = rate + slope * acceleration / speed
        limits = self._limits
        pairs = (
            (speed * self._p[:, 1], limits.velocity),
            (acceleration, limits.acceleration),
            (speed * jerk, limits.jerk),
            (effort, limits.effort),
            (speed * rate, limits.effort_dot),
        )
        every = [(np.abs(values) / limit).max(axis=1) for values, limit in pairs]
        return np.asarray(np.max(every, axis=0))

    def rows(self, b: Array, near: float) -> Rows:
        """Linear inequalities about a known squared speed, those that are nearly reached.

        Parameters
        ----------
        b : ndarray, shape (N, 3)
        near : float
            Ratio to the limit from which on a row is of interest.

        Returns
        -------
        Rows
            Each divided by its limit.
        """
        limits, p = self._limits, self._p
        known = b[:, None, :]
        root = np.sqrt(b[:, :1])
        found: list[tuple[NDArray[np.intp], Array, Array]] = []  # place, slopes, bound
        speed = np.square(p[:, 1] / limits.velocity).max(axis=1)
        moves = speed > 0.0
        slopes = np.zeros((len(b), 3))
        slopes[:, 0] = speed
        found.append((np.flatnonzero(moves), slopes[moves], np.ones(int(moves.sum()))))

        linear = [np.stack(each, axis=-1) for each in self._linear()]
        offsets = [np.zeros_like(self._g), np.zeros_like(self._g), self._g, self._g_rate]
        if self._laws:
            friction, slope, curvature = self._friction(b)
            acceleration = (linear[0] * known).sum(axis=-1)
            velocity_slope = 0.5 * p[:, 1] / root
            # F(qd) and F'(qd) q2d / ud, about the known values.
            of_effort = np.zeros_like(linear[2])
            of_effort[..., 0] = slope * velocity_slope
            of_rate = (slope / root)[..., None] * linear[0]
            of_rate[..., 0] += curvature * velocity_slope * acceleration / root
            of_rate[..., 0] -= 0.5 * slope * acceleration / root**3
            for row, value, more in (
                (2, friction, of_effort),
                (3, slope * acceleration / root, of_rate),
            ):
                linear[row] = linear[row] + more
                offsets[row] = offsets[row] + value - (more * known).sum(axis=-1)
        bounds = (limits.acceleration, limits.jerk, limits.effort, limits.effort_dot)
        for row, limit in enumerate(bounds):
            limited = np.isfinite(limit)
            if not limited.any():
                continue
            slopes = linear[row][:, limited] / limit[limited][:, None]
            offset = offsets[row][:, limited] / limit[limited]
            of_rate_kind = row in (1, 3)
            value = (slopes * known).sum(axis=-1) + offset
            for sign in (1.0, -1.0):
                signed = sign * slopes
                bound = 1.0 - sign * offset
                if of_rate_kind:
                    # Tangent of 1 / sqrt(b).
                    signed = signed.copy()
                    signed[..., 0] += 0.5 / root**3
                    bound = 1.5 / root - sign * offset
                scale = root if of_rate_kind else np.ones_like(root)
                place, column = np.nonzero(sign * value * scale > near)
                weight = scale[place, 0]
                found.append(
                    (place, signed[place, column] * weight[:, None], bound[place, column] * weight)
                )
        place, slopes, bound = (np.concatenate(each) for each in zip(*found))
        return Rows(place, slopes, bound)
