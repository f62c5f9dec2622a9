"""Ways to time a path of an FR3: those of others, and those with jerk and torque rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from demo import HEADROOM, JERK
from motions import RATE_LIMIT, Motion, limits_of, resting, timed
from ruckig import InputParameter, Result, Ruckig, Trajectory

from benchmarks.peers import toppra_law
from hodyn_ros import RobotModel
from hodyn_ros.trajectory import MotionSpline, jtc_motion

Way = Callable[[str, MotionSpline], Motion]

WRITTEN = 0.1  # s between the points that MoveIt writes out of a timing
LOWEST_JERK, BISECTIONS = 20.0, 7


def ways(model: RobotModel) -> dict[str, Way]:
    """Names of the ways to time a path, and functions that do it."""
    optimal = toppra_law.solver(model, limits_of(model), only_torque=False)
    # So much torque limits nothing, and can still be solved for.
    own = limits_of(model)
    quickest = toppra_law.solver(
        model, own._replace(effort=10.0 * own.effort), only_torque=False
    )

    def by_toppra(name: str, path: MotionSpline) -> Motion:
        law = optimal(path)
        return resting(model, name, lambda t: law(t), law.duration)

    def written_out(name: str, path: MotionSpline) -> Motion:
        """As MoveIt does: limits of velocity and acceleration, points every 0.1 s."""
        law = quickest(path)
        times = np.append(np.arange(0.0, law.duration - 1e-3, WRITTEN), law.duration)
        states = law(times)
        states[[0, -1], 1:] = 0.0
        motion = jtc_motion(times, *np.moveaxis(states, 1, 0))
        return resting(model, name, lambda t: motion(t, 2), law.duration)

    def from_point_to_point(name: str, path: MotionSpline) -> Motion:
        points = path(path.times, 0)[:, 0]
        parts, duration = [], 0.0
        for begin, end in zip(points, points[1:]):
            wish = InputParameter(model.n_joints)
            limits = limits_of(model, jerk=JERK)
            wish.current_position, wish.target_position = list(begin), list(end)
            wish.max_velocity = list(limits.velocity)
            wish.max_acceleration = list(limits.acceleration)
            wish.max_jerk = list(limits.jerk)
            part = Trajectory(model.n_joints)
            if Ruckig(model.n_joints).calculate(wish, part) != Result.Working:
                raise RuntimeError(f'Ruckig finds no way from {begin} to {end}.')
            parts.append((duration, part))
            duration += part.duration

        def motion(times: np.ndarray) -> np.ndarray:
            begins = np.array([begin for begin, _ in parts])
            chosen = np.searchsorted(begins, times, side='right') - 1
            return np.array(
                [parts[k][1].at_time(t - begins[k])[:3] for k, t in zip(chosen, times)]
            )

        return resting(model, name, motion, duration)

    def with_jerk(jerk: float) -> Way:
        limits = limits_of(model, jerk=jerk)
        return lambda name, path: timed(model, name, path, limits, rise_time=0.0)

    def best_jerk(name: str, path: MotionSpline) -> Motion:
        """The largest jerk limit, one for all joints, with which the torque rate is kept."""
        low, high, best = LOWEST_JERK, JERK, None
        for _ in range(BISECTIONS):
            jerk = float(np.sqrt(low * high))
            motion = with_jerk(jerk)(f'{name} ({jerk:.0f})', path)
            if np.abs(motion.efforts[:, 1]).max() <= HEADROOM * RATE_LIMIT:
                low, best = jerk, motion
            else:
                high = jerk
        if best is None:
            raise RuntimeError(f'No jerk limit from {LOWEST_JERK:.0f} on keeps the rate.')
        return best

    kept = limits_of(model, HEADROOM * RATE_LIMIT, JERK)
    return {
        'TOTG as MoveIt writes it out': written_out,
        'TOPP-RA with torque': by_toppra,
        'Ruckig, from point to point': from_point_to_point,
        f'jerk {JERK:.0f}': with_jerk(JERK),
        'best jerk limit': best_jerk,
        'torque rate': lambda name, path: timed(model, name, path, kept),
    }
