"""A model of joint_trajectory_controller, written from its rules; no motion of this package.

Source: ros2_controllers, commit 94e74de35 (August 2026). With command interfaces `effort`, the
command is the effort of the trajectory and a PID of the error; with
`position` and `effort` both are forwarded. All joints are in every trajectory, in any order.
Without `blends` a new trajectory is set out for at once, as by releases up to 6.9.0 and by
scaled_joint_trajectory_controller of Universal_Robots_ROS2_Driver, commit a16a26876 (July 2026).
Integration of velocities and tolerances are left out.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

SECOND = 1_000_000_000  # nanoseconds, in which all times here are

_SINGLE_EPSILON = 2.0**-23  # velocities up to this are none where a trajectory ends


@dataclass(frozen=True)
class Point:
    """A waypoint; what it does not have is None."""

    time: int
    positions: np.ndarray
    velocities: np.ndarray | None = None
    accelerations: np.ndarray | None = None
    effort: np.ndarray | None = None

    def filled(self):
        """Zeros for what the point does not have."""
        rows = (self.velocities, self.accelerations, self.effort)
        return Point(
            self.time,
            self.positions,
            *(0.0 * self.positions if r is None else r for r in rows),
        )


def points_from_message(message, joint_names):
    """Points of a JointTrajectory with the joints in the order wanted, and its stamp."""
    if sorted(message.joint_names) != sorted(joint_names):
        raise ValueError(f'The joints are {message.joint_names}, expected {joint_names}.')
    order = [list(message.joint_names).index(name) for name in joint_names]

    def row(values):
        if values and len(values) != len(order):
            raise ValueError(f'A row has {len(values)} values for {len(order)} joints.')
        return np.array(values)[order] if values else None

    points = [
        Point(
            SECOND * point.time_from_start.sec + point.time_from_start.nanosec,
            *map(
                row, (point.positions, point.velocities, point.accelerations, point.effort)
            ),
        )
        for point in message.points
    ]
    return points, SECOND * message.header.stamp.sec + message.header.stamp.nanosec


def between(a, b, time):
    """Point at a time between two others: splines of variable degree, efforts on a line."""
    h, t = (b.time - a.time) / SECOND, (time - a.time) / SECOND
    efforts = a.filled().effort, b.filled().effort  # none counts as zero
    rows = [[a.positions, b.positions]]
    for row_a, row_b in ((a.velocities, b.velocities), (a.accelerations, b.accelerations)):
        if row_a is None or row_b is None:
            break
        rows.append([row_a, row_b])
    if len(rows) == 1 and a.accelerations is not None and b.accelerations is not None:
        moved = np.zeros((3, len(a.positions)))  # there is no interpolation for this
    else:
        # Coefficients of powers of the part of the time that has passed.
        size = 2 * len(rows)
        ends = np.array([h**k * row for k, pair in enumerate(rows) for row in pair])
        coefficients = coefficients_of_ends(size) @ ends
        moved = np.array(
            [derivative(size, k, t / h) @ coefficients / h**k for k in range(3)]
        )
    return Point(time, *moved, efforts[0] + (efforts[1] - efforts[0]) * t / h)


@lru_cache
def coefficients_of_ends(size):
    """Matrix from the derivatives at the times 0 and 1 to the coefficients of powers of time."""
    ends = [derivative(size, k, at) for k in range(size // 2) for at in (0.0, 1.0)]
    return np.linalg.inv(np.array(ends))


def derivative(size, k, t):
    """Row of the k-th derivatives of the first powers of t."""
    return [math.perm(j, k) * t ** (j - k) if j >= k else 0.0 for j in range(size)]


def upsampled(points):
    """Velocities of the cubic of class C2 from rest to rest, if there are positions alone."""
    if len(points) < 2 or any(
        p.velocities is not None or p.accelerations is not None for p in points
    ):
        return points
    h = np.diff([p.time for p in points]) / SECOND
    q = np.array([p.positions for p in points])
    matrix, right = np.eye(len(points)), np.zeros_like(q)
    for i in range(1, len(points) - 1):
        # Second derivatives of the cubics on both sides of a point are equal.
        matrix[i, i - 1 : i + 2] = 1 / h[i - 1], 2 / h[i - 1] + 2 / h[i], 1 / h[i]
        right[i] = 3 * (q[i] - q[i - 1]) / h[i - 1] ** 2 + 3 * (q[i + 1] - q[i]) / h[i] ** 2
    velocities = np.linalg.solve(matrix, right)
    return [replace(p, velocities=v) for p, v in zip(points, velocities)]


class Trajectory:
    """Points in time, with the one at which the controller sets out to them."""

    def __init__(self, points, stamp):
        self.points, self.start, self.before = points, stamp, None

    def set_out(self, before, now):
        """Begin at a point that has an absolute time; without a stamp, time zero is now."""
        first = self.points[0]
        self.start = self.start or now
        zeros = np.zeros(len(before.positions))
        if before.velocities is None and first.velocities is not None:
            before = replace(before, velocities=zeros)
        if before.accelerations is None and first.accelerations is not None:
            before = replace(before, accelerations=zeros)
        self.before = replace(before, time=before.time - self.start)

    def sample(self, time):
        """Point at an absolute time, with that time."""
        t, points = time - self.start, self.points
        index = bisect_right(points, t, key=lambda point: point.time)
        if index == len(points):
            return replace(points[-1].filled(), time=time)
        a = points[index - 1] if index else self.before
        return replace(between(a, points[index], t), time=time)


class Jtc:
    """The controller; `update` is called once a period."""

    def __init__(
        self,
        joint_names,
        period,
        *,
        interfaces=('effort',),
        p=0.0,
        i=0.0,
        d=0.0,
        positions_upsampling=False,
        blends=True,
    ):
        self.blends, self.speed = blends, 1.0  # of the time of trajectories
        self.joint_names, self.period, self.interfaces = (
            tuple(joint_names),
            period,
            interfaces,
        )
        self.gains = np.array(p), np.array(i), np.array(d)
        self.positions_upsampling = positions_upsampling
        n = len(self.joint_names)
        self.effort, self.integral = np.zeros(n), np.zeros(n)
        self.desired = None  # what the error is measured against
        self._next = None  # what was commanded
        self._trajectory, self._new = None, None
        self._is_holding, self._cursor = True, 0

    def take(self, message, now):
        """Take a JointTrajectory from the topic; ValueError if it is refused."""
        self.take_points(*points_from_message(message, self.joint_names), now)

    def take_points(self, points, stamp, now):
        """Take points in the order of the joints, with a stamp or zero for now."""
        if self.positions_upsampling:
            points = upsampled(points)
        if not points or any(p.positions is None for p in points):
            raise ValueError('There are no points, or some without positions.')
        if np.any(np.abs(points[-1].filled().velocities) > _SINGLE_EPSILON):
            raise ValueError('The last point has a velocity.')
        if any(b.time <= a.time for a, b in zip(points[:-1], points[1:])):
            raise ValueError('Times do not increase strictly.')
        if stamp and stamp + points[-1].time < now:
            raise ValueError('The trajectory ends in the past.')
        if 'effort' not in self.interfaces and any(p.effort is not None for p in points):
            raise ValueError('There are efforts, but no command interface for them.')
        self._new, self._is_holding = Trajectory(points, stamp), False

    def update(self, now, positions, velocities):
        """Command for the next period, by interface, at a time with what is measured then."""
        state = np.array(positions), np.array(velocities), self.effort
        if self._new is not None:
            self._replace(now)
        if self._trajectory is None:  # just activated
            self._trajectory = Trajectory([Point(0, state[0])], 0)
        trajectory = self._trajectory
        if trajectory.before is None:
            self._cursor = now
            trajectory.set_out(Point(now, state[0], state[1], None, state[2]), now)
        else:
            self._cursor += round(self.period * self.speed)
        self.desired = trajectory.sample(self._cursor)
        self._next = trajectory.sample(self._cursor + self.period)
        if self.interfaces != ('effort',):
            self.effort = self.desired.effort
            return {'position': self._next.positions, 'effort': self.effort}
        p, i, d = self.gains
        error, rate = self.desired.positions - state[0], self.desired.velocities - state[1]
        self.integral = self.integral + i * error * self.period / SECOND
        feedback = p * error + self.integral + d * rate
        self.effort = self._next.effort + feedback
        return {'effort': self.effort}

    def _replace(self, now):
        """Go over to the new trajectory: continue the old one until then, if there is one."""
        old, new = self._trajectory, self._new
        self._new = None
        is_blended = self.blends and not self._is_holding
        if old is not None and len(old.points) > 1 and is_blended:
            # Times from the place in the old trajectory on. A stamp that has passed is now.
            handover = round(max(new.start - now, 0) * self.speed)
            shift = self._cursor - old.start
            points = [replace(p, time=p.time - shift) for p in old.points]
            kept = [p for p in points if 0 < p.time < handover]
            joint = replace(old.sample(self._cursor + handover), time=handover)
            points = [replace(p, time=handover + p.time) for p in new.points]
            if handover < points[0].time:
                kept.append(joint)
            new = Trajectory([*kept, *points], 0)
        self._trajectory = new
