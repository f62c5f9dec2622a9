"""An FR3 on its own interface: which torques stop it, said before, and which arrive.

Starts a simulated FR3 behind Franka's network protocol (robot.py) and moves it by Franka's own
client library, in three acts: a motion as fast as velocity, acceleration, jerk and torque allow;
the same path with the limit of the torque rate; and torques that come from a source at 100 and
50 Hz. Prints what became of each and draws build/demo_franka/torque_rates.png.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from client import Arm, Outcome  # noqa: E402
from motions import CYCLE, ORDERS, RATE_LIMIT, Commands, Motion, fr3, limits_of, timed  # noqa: E402

from hodyn_ros.trajectory import panda_swing  # noqa: E402

HERE = Path(__file__).parent
FOLDER = Path('build/demo_franka')
PICTURE = FOLDER / 'torque_rates.png'
JERK, HEADROOM = (
    5000.0,
    0.8,
)  # rad/s^3 of Franka; share of the rate limit that is planned with
CUT = 980.0  # N m/s, at which a client cuts that has a limit of the rate
START = 30.0  # s
RESTING = 100  # cycles at rest in front of a recording


@contextmanager
def robot(python: str, *options: str) -> Iterator[Arm]:
    """Run a simulated robot while the block lasts, and connect to it."""
    process = subprocess.Popen(
        [python, str(HERE / 'robot.py'), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + START
        while True:
            try:
                arm = Arm()
                break
            except Exception as error:
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f'error: the simulated robot cannot be reached: {error}')
                time.sleep(0.2)
        yield arm
    finally:
        process.terminate()
        process.wait(timeout=10.0)


def foretold(commands: Commands) -> str:
    """What torques ahead of feedback say about a motion before it begins."""
    reflex = commands.reflex()
    if reflex is None:
        return f'arrives, {np.abs(commands.rates).max():.0f} N m/s'
    cycle, joint, rate = reflex
    return f'stops in cycle {cycle}, joint {joint + 1}, {rate:.0f} N m/s'


def became(outcome: Outcome) -> str:
    """What became of a motion."""
    if outcome.reflex:
        place = f'cycle {outcome.cycle}, joint {outcome.joint + 1}'
        return f'stopped in {place}, {outcome.rate:.0f} N m/s: {outcome.reflex}'
    return f'arrived, {outcome.rate:.0f} N m/s, {1e3 * outcome.error:.2f} mrad off'


def run(arm: Arm, commands: Commands, cut: float = np.inf) -> Outcome:
    """Move to the start, follow, say what was foretold and what became of it."""
    arm.go_to(commands.position[0])
    outcome = arm.follow(commands, most_rate=cut)
    name = commands.name + (', cut' if np.isfinite(cut) else '')
    print(f'  {name:28}{foretold(commands):45}{became(outcome)}', flush=True)
    return outcome


def write(path: Path, joints: tuple[str, ...], outcome: Outcome) -> None:
    """Write what was sent, behind some cycles at rest, as `hodyn check --recorded` reads it."""
    n, torque = len(joints), outcome.sent
    position = outcome.commands.position[: len(torque)]
    rest = np.hstack((np.repeat(position[:1], RESTING, axis=0), np.zeros((RESTING, n))))
    rows = np.vstack((rest, np.hstack((position, torque))))
    titles = [f'{name}.{what}' for what in ('position', 'effort') for name in joints]
    np.savetxt(
        path,
        np.column_stack((np.arange(len(rows)) * CYCLE, rows)),
        fmt='%.12g',
        delimiter=',',
        header=','.join(('time', *titles)),
        comments='',
    )


def motions() -> tuple[Motion, Motion, Motion]:
    """As fast as without the limit of the torque rate; with it; and smoother."""
    model, path = fr3(), panda_swing()
    kept = limits_of(model, HEADROOM * RATE_LIMIT, JERK)
    return (
        timed(model, 'without its limit', path, limits_of(model, jerk=JERK), rise_time=0.0),
        timed(model, 'with its limit', path, kept),
        timed(model, 'smoother', path, kept, rise_time=0.1, window=0.05),
    )


def draw(path: Path, fast: Motion, kept: Motion, outcomes: dict[str, Outcome]) -> None:
    """Draw torque rates before the motion, and the steps of what was sent, over their limit."""
    figure, axes = plt.subplots(2, 1, figsize=(9, 7.5), layout='constrained')
    for motion, color in ((fast, 'tab:red'), (kept, 'tab:green')):
        largest = np.abs(motion.efforts[:, 1]).max(axis=1)
        label = f'{motion.name}, {motion.exactly().duration:.2f} s'
        axes[0].plot(CYCLE * np.arange(len(largest)), largest, color=color, label=label)
    stop = outcomes[fast.name]
    axes[0].plot(stop.cycle * CYCLE, stop.rate, 'kX', ms=9, label='the robot stops here')
    axes[0].set_title('Exact torque rate, largest of all joints, known before the motion')
    for kind, color in zip(ORDERS, ('tab:red', 'tab:orange', 'tab:green')):
        outcome = outcomes[kind]
        commands = outcome.commands
        largest = np.abs(commands.rates).max(axis=1)
        became_of = (
            'stops' if outcome.reflex else f'arrives, {1e3 * outcome.error:.2f} mrad off'
        )
        times = CYCLE * np.arange(len(largest))
        axes[1].plot(times, largest, '.', ms=3, color=color, label=f'{kind}: {became_of}')
    axes[1].set_title('Steps of the torque by the cycle, from a source at 100 Hz')
    axes[1].set_yscale('log')
    axes[1].set_ylim(10.0, 6e4)  # the legend is above all points
    for axis in axes:
        axis.axhline(RATE_LIMIT, color='black', lw=1.0, ls='--')
        axis.set(xlabel='time [s]', ylabel='torque rate [N m/s]')
        axis.legend(loc='upper right')
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def as_foretold(outcome: Outcome, cut: float = np.inf) -> bool:
    """Whether a motion stopped or arrived, as torques without any feedback said."""
    is_to_stop = outcome.commands.reflex() is not None and np.isinf(cut)
    return is_to_stop == bool(outcome.reflex)


def sources(kept: Motion, smooth: Motion) -> Iterator[tuple[Commands, float]]:
    """Commands of a source, and where they are cut [N m/s]."""
    for motion, period in ((kept, 0.01), (smooth, 0.02)):
        for kind in ORDERS:
            for cut in (np.inf, CUT):
                yield motion.from_source(period, kind), cut


def main() -> int:
    """Run all acts; return 0 if each motion ended as was foretold."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--server', default='.venv-franka/bin/python', help='Python that has franka-sim'
    )
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    joints = fr3().joint_names
    fast, kept, smooth = motions()
    surprises, outcomes = [], {}
    with robot(options.server) as arm:
        print(
            '\nAs fast as velocity, acceleration, jerk and torque allow, also cut at '
            f'{CUT:.0f} N m/s; torque rate:'
        )
        for motion, cut in ((fast, np.inf), (fast, CUT), (kept, np.inf)):
            outcome = run(arm, motion.exactly(), cut)
            surprises += [outcome] * (not as_foretold(outcome, cut))
            if np.isinf(cut):
                outcomes[motion.name] = outcome
                write(FOLDER / f'{motion.file}.csv', joints, outcome)
        print(f'\nFrom a source, torques also cut at {CUT:.0f} N m/s:')
        for commands, cut in sources(kept, smooth):
            outcome = run(arm, commands, cut)
            surprises += [outcome] * (not as_foretold(outcome, cut))
            if np.isinf(cut):
                outcomes.setdefault(commands.name.split(', ')[1], outcome)
    draw(PICTURE, fast, kept, outcomes)
    print(
        f'\nPicture: {PICTURE}\n\nWhy did it stop?\n'
        f'  hodyn check fr3 {FOLDER}/{fast.file}.csv --recorded commanded '
        '--gravity 0 0 0 --config config/fr3.yaml'
    )
    for outcome in surprises:
        print(f'error: {outcome.commands.name} was foretold otherwise', file=sys.stderr)
    return 1 if surprises else 0


if __name__ == '__main__':
    sys.exit(main())
