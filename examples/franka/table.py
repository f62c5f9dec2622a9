"""Ways to time random paths of an FR3, and what the robot makes of them.

    python examples/franka/table.py --paths 100

Every way times the same paths: curves through random configurations, at rest at both ends. The
torques of each cycle are exact, so that what stops the robot is the timing. Prints a table and
writes all outcomes into build/demo_franka/paths.csv.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pylibfranka

sys.path.insert(0, str(Path(__file__).parents[2]))

from client import Arm, Outcome  # noqa: E402
from demo import CUT, FOLDER, HEADROOM, JERK, robot  # noqa: E402
from motions import (  # noqa: E402
    RATE_LIMIT,
    Commands,
    Motion,
    fr3,
    limits_of,
    resting,
    timed,
)
from ruckig import InputParameter, Result, Ruckig, Trajectory  # noqa: E402

from benchmarks.peers import toppra_law  # noqa: E402
from benchmarks.retiming import paths  # noqa: E402
from benchmarks.tables import Table, say  # noqa: E402
from hodyn_ros import RobotModel  # noqa: E402
from hodyn_ros.errors import HodynError  # noqa: E402
from hodyn_ros.trajectory import MotionSpline, jtc_motion  # noqa: E402

Way = Callable[[str, MotionSpline], Motion]

ATTEMPTS = 5  # to follow a path without losing the connection
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


class Trial(NamedTuple):
    """A timing of a path on the robot.

    Attributes
    ----------
    path : int
    timing : str
    outcome : Outcome
    cut : Outcome
        With torques cut at 980 N m/s; the same one if nothing had to be cut.
    """

    path: int
    timing: str
    outcome: Outcome
    cut: Outcome

    @property
    def is_as_foretold(self) -> bool:
        """Whether torques without feedback said that the robot stops, or that it does not."""
        return (self.outcome.commands.reflex() is not None) == bool(self.outcome.reflex)


TITLES = (
    'path',
    'timing',
    'duration',
    'foretold',
    'reflex',
    'cycle',
    'joint',
    'rate',
    'error',
)


def entry(trial: Trial) -> tuple[object, ...]:
    """Line of the file."""
    outcome = trial.outcome
    foretold = outcome.commands.reflex()
    return (
        trial.path,
        outcome.commands.name,
        f'{outcome.commands.duration:.3f}',
        '' if foretold is None else foretold[0],
        outcome.reflex,
        outcome.cycle,
        outcome.joint + 1,
        f'{outcome.rate:.1f}',
        f'{outcome.error:.6f}',
    )


def tried(arm: Arm, number: int, timing: str, commands: Commands) -> Trial:
    """Follow commands, and again with torques that are cut if the robot stops."""
    arm.go_to(commands.position[0])
    outcome = cut = arm.follow(commands)
    if outcome.reflex:
        arm.go_to(commands.position[0])
        cut = arm.follow(commands, most_rate=CUT)
    return Trial(number, timing, outcome, cut)


def trials_of(
    server: Sequence[str], number: int, timed_path: dict[str, Commands]
) -> list[Trial]:
    """All timings of a path on a robot that was just started.

    A client whose states do not come for a second gives up; it is a busy machine then, which says
    nothing of the torques, and the path begins anew.
    """
    for attempt in range(ATTEMPTS):
        try:
            with robot(*server) as arm:
                return [tried(arm, number, *item) for item in timed_path.items()]
        except pylibfranka.NetworkException as error:
            say(f'path {number}, attempt {attempt + 1}: {error}')
    raise SystemExit(f'error: the connection was lost {ATTEMPTS} times.')


def row(timing: str, trials: Sequence[Trial], durations: dict[int, float]) -> list[str]:
    """Line of the table: duration beside the one of the last timing, reflexes, errors."""
    longer = [
        100.0 * (trial.outcome.commands.duration / durations[trial.path] - 1.0)
        for trial in trials
    ]
    arrived = [1e3 * trial.outcome.error for trial in trials if not trial.outcome.reflex]
    cut = [1e3 * trial.cut.error for trial in trials]
    lost = sum(bool(trial.cut.reflex) for trial in trials)
    return [
        timing,
        f'{np.median(longer):+.1f} % ({min(longer):+.1f} to {max(longer):+.1f})',
        f'{len(trials) - len(arrived)} of {len(trials)}',
        f'{np.median(arrived):.2f} ({max(arrived):.2f})' if arrived else '',
        f'{np.median(cut):.2f} ({max(cut):.2f})' + (f', {lost} stopped' if lost else ''),
    ]


HEADER = ('timing', 'duration', 'stopped', 'error, mrad', f'error cut at {CUT:.0f} N m/s')


def main() -> None:
    """Time, follow, print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--server', default='.venv-franka/bin/python')
    parser.add_argument('--paths', type=int, default=10)
    parser.add_argument('--mass', default='1', help='factor of the masses of the robot')
    options = parser.parse_args()
    warnings.simplefilter('ignore')
    FOLDER.mkdir(parents=True, exist_ok=True)
    model = fr3()
    field, trials, notes = ways(model), [], []
    server = options.server, '--mass', options.mass
    with (FOLDER / 'paths.csv').open('w', encoding='utf-8') as file:
        lines = csv.writer(file)
        lines.writerow(TITLES)
        for number, path in enumerate(paths(model, options.paths)):
            say(f'path {number + 1} of {options.paths}')
            try:
                timed_path = {
                    name: way(name, path).exactly() for name, way in field.items()
                }
            except (HodynError, RuntimeError) as error:
                notes.append(f'- Path {number} is left out: {error}')
                continue
            trials += trials_of(server, number, timed_path)
            lines.writerows(map(entry, trials[-len(field) :]))
            file.flush()
    durations = {trial.path: trial.outcome.commands.duration for trial in trials}
    rows = [
        row(timing, [trial for trial in trials if trial.timing == timing], durations)
        for timing in field
    ]
    right = sum(trial.is_as_foretold for trial in trials)
    notes.append(f'{right} of {len(trials)} outcomes are as torques without feedback said.')
    print(Table(f'{options.paths} paths of the FR3', HEADER, rows, notes).text())


if __name__ == '__main__':
    main()
