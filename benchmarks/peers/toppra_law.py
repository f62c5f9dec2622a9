"""TOPP-RA: the fastest time law under limits of velocity, acceleration and torque.

Its squared speed is linear between grid points of the path, so the acceleration on the path is
constant there and jumps from one to the next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import NotInstalled
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.trajectory.spline import MotionSpline

Array = NDArray[np.float64]

GRID = 2000


class Law:
    """Motion on a path with an acceleration of the parameter that is constant between places.

    Parameters
    ----------
    path : MotionSpline
    places, speeds : ndarray, shape (N,)
        Values of the parameter and its speed there.
    """

    def __init__(self, path: MotionSpline, places: Array, speeds: Array) -> None:
        self._path, self._places, self._speeds = path, places, speeds
        steps = 2.0 * np.diff(places) / (speeds[1:] + speeds[:-1])
        self._times = np.concatenate(([0.0], np.cumsum(steps)))

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self._times[-1])

    def __call__(self, t: Array) -> Array:
        """Position, velocity and acceleration at times (N,), shape (N, 3, n)."""
        segment = np.searchsorted(self._times, t, side='right') - 1
        segment = np.clip(segment, 0, len(self._places) - 2)
        steps = np.diff(self._times)[segment]
        since = t - self._times[segment]
        acceleration = np.diff(self._speeds)[segment] / steps
        speed = self._speeds[segment] + acceleration * since
        place = self._places[segment] + 0.5 * (self._speeds[segment] + speed) * since
        q, first, second = np.moveaxis(
            self._path(np.clip(place, *self._places[[0, -1]]), 2), 1, 0
        )
        speed, acceleration = speed[:, None], acceleration[:, None]
        return np.stack(
            (q, first * speed, second * speed**2 + first * acceleration), axis=1
        )


def solver(
    model: RobotModel, limits: MotionLimits, only_torque: bool
) -> Callable[[MotionSpline], Law]:
    """Time laws of TOPP-RA for a robot, or under its torque limits alone; raises NotInstalled."""
    try:
        import toppra
        from toppra import algorithm, constraint
    except ImportError as error:
        raise NotInstalled(f'toppra: {error}') from error
    logging.getLogger('toppra').setLevel(logging.ERROR)

    class Path(toppra.interpolator.AbstractGeometricPath):
        """A spline as toppra wants it."""

        def __init__(self, spline: MotionSpline) -> None:
            self._spline = spline

        def __call__(self, s: Array, order: int = 0) -> Array:
            return np.asarray(self._spline(s, order)[..., order, :])

        @property
        def dof(self) -> int:
            return model.n_joints

        @property
        def path_interval(self) -> Array:
            return np.array([self._spline.start_time, self._spline.end_time])

        @property
        def waypoints(self) -> None:
            return None

    def torque(q: Array, qd: Array, q2d: Array) -> Array:
        return np.asarray(inverse_dynamics(model, np.stack((q, qd, q2d)))[0])

    def both(limit: Array) -> Array:
        return np.stack((-limit, limit), axis=1)

    constraints = [
        constraint.JointTorqueConstraint(
            torque,
            both(limits.effort),
            np.zeros(model.n_joints),
            discretization_scheme=constraint.DiscretizationType.Interpolation,
        )
    ]
    if not only_torque:
        constraints += [
            constraint.JointVelocityConstraint(both(limits.velocity)),
            constraint.JointAccelerationConstraint(both(limits.acceleration)),
        ]

    def solve(spline: MotionSpline) -> Law:
        places = np.linspace(spline.start_time, spline.end_time, GRID + 1)
        found = algorithm.TOPPRA(
            constraints, Path(spline), gridpoints=places, solver_wrapper='seidel'
        )
        _, speeds, _ = found.compute_parameterization(0.0, 0.0)
        return Law(spline, places, speeds)

    return solve
