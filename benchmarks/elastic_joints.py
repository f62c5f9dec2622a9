"""Control laws of elastic joints on robots that are not as the laws think.

    python -m benchmarks.elastic_joints [--size full] [--include doc/benchmarks/elastic_joints.inc]

A Panda with springs in its joints follows a motion of 2.6 s at 1 kHz, under all that may be wrong
with it. It is simulated by MuJoCo, as `hodyn_ros.simulation` does, and once more by equations of
its own with links of Pinocchio (test/support/control_plant.py), with the full size.

One rule tunes the laws whose bandwidth is not given: the smallest RMS error of the condition "all"
on another motion, among the bandwidths with which no torque reaches its limit or changes by more
than 1000 N m/s in the last tenth of a second, at rest. If there is none, the smallest error.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison_laws import make_compared
from benchmarks.report import folder_options, grid, write_tables
from benchmarks.timing import NotInstalled
from hodyn_ros.control import (
    ControlWarning,
    FeedForwardController,
    tracking_controller,
)
from hodyn_ros.control.law import middle_of_range
from hodyn_ros.control.laws import motor_gains
from hodyn_ros.model.friction import Coulomb

Array = NDArray[np.float64]

# The tests, which are no package, are on the path since `benchmarks.report` imports `cases`.
from support import control_cases, control_simulation  # noqa: E402
from support.control_cases import (  # noqa: E402
    CONDITIONS,
    PERIOD,
    PUSHED,
    TORQUE_LIMITS,
    Condition,
    Run,
)

BANDWIDTHS = (10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 110.0)  # rad/s
LARGEST_RATE = 1000.0  # N m/s, what the interface of the Franka robots permits
KNOWN_TO = 0.01  # of what is identified
SMOOTHING = 0.02  # rad/s, of the friction that is identified
TUNING = replace(CONDITIONS['all'], motion=control_cases.TUNING_MOTION)


class IntegralFeedForward:
    """Full feed-forward with motor PD, whose reference an integral of the link error moves.

    The integral gain is a fifth of the bandwidth. It stands still while a motor is at its limit.
    """

    def __init__(self, law: FeedForwardController, gain: float) -> None:
        self.law, self.lead, self.gain = law, law.lead, gain
        self.moved = np.zeros(law.model.n_joints)

    def command(
        self, reference: Array, q: Array, qd: Array, theta: Array, thetad: Array
    ) -> Array:
        """Motor torques for a measured state."""
        found = self.law.evaluate(reference, q, qd, theta - self.moved, thetad)
        # The reference is that of a later time.
        now = reference[0] - self.lead * reference[1]
        self.moved += ~found.is_limited * self.gain * PERIOD * (now - q)
        return found.torque


class Robot(NamedTuple):
    """What a law knows of a robot."""

    model: Any
    actuators: Any
    delay: float
    """[s]"""


def known(condition: Condition, stiffness: Array) -> Robot:
    """Say what a law knows of a robot under a condition."""
    model, friction = control_simulation.panda(), None
    if condition.is_identified:
        stiffness = (1.0 + condition.stiffness) * (1.0 + KNOWN_TO) * stiffness
        if condition.payload:
            payload = (1.0 - KNOWN_TO) * condition.payload
            model = model.with_payload(control_simulation.FLANGE, payload)
        if condition.coulomb:
            friction = Coulomb((1.0 - KNOWN_TO) * condition.coulomb, SMOOTHING)
    delay = PERIOD * condition.delay * condition.knows_delay
    return Robot(model, control_simulation.drives(model, stiffness, friction), delay)


def recommended(robot: Robot, w: float) -> Any:
    """Make the tracking law, without guards, which the others lack; they would stop "fast"."""
    options = {'torque_limits': TORQUE_LIMITS, 'delay': robot.delay, 'guards': None}
    return tracking_controller(robot.actuators, PERIOD, bandwidth=w, **options)


def of_kind(kind: str) -> Callable[[Robot, float], Any]:
    """Return what makes a law by its name."""

    def make(robot: Robot, w: float) -> Any:
        # Exact linearisation must not be told of a delay.
        lead = 0.5 * PERIOD + (robot.delay if kind != 'flatness' else 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ControlWarning)  # the table shows it
            return make_compared(robot[0], kind, robot[1], w, TORQUE_LIMITS, lead)

    return make


def with_integral(robot: Robot, w: float) -> Any:
    """Make the full feed-forward with link integral."""
    gains = motor_gains(robot.model, robot.actuators, w, middle_of_range(robot.model))
    lead = 0.5 * PERIOD + robot.delay
    law = FeedForwardController(*robot[:2], gains, 2, TORQUE_LIMITS, lead)
    return IntegralFeedForward(law, 0.2 * w)


LAWS: dict[str, tuple[Callable[[Robot, float], Any], float | None]] = {
    'tracking': (recommended, 50.0),
    'FF': (of_kind('feed_forward_2'), None),
    'FF + integral': (with_integral, None),
    'linearisation': (of_kind('flatness'), 50.0),
    'linearisation ': (of_kind('flatness'), 150.0),
    'rigid': (of_kind('rigid_computed_torque'), None),
    'PD': (of_kind('pd_gravity'), None),
}
"""What makes each law, and its bandwidth [rad/s] unless it is tuned."""
LEGEND = (
    'Columns are laws with their bandwidths [rad/s]: the recommended tracking law, whose guards, '
    'which would stop "fast", are off; the feed-forward of the torques and two derivatives with '
    'PD of the motors (FF), with an integral of the link error; exact linearisation; computed '
    'torque of a rigid robot; PD of the motors with weight. The tracking law has the bandwidth of '
    'its own rule, exact linearisation the two given ones. The others get that with the smallest '
    'RMS error of "all" in another motion, of '
    f'{", ".join(f"{w:.0f}" for w in BANDWIDTHS)} rad/s, with which no torque reaches its limit '
    f'or, at rest, changes by more than {LARGEST_RATE:.0f} N m/s. They keep it in all rows. "All" '
    'is K -5 %, payload, Coulomb friction and encoders at once.'
)

SHORT = (
    'exact',
    'K -10 %',
    'payload 1 kg',
    'motor Coulomb 1 N m',
    'encoders',
    'delay 1 ms, unknown',
    'push 20 N',
    'fast',
    'all',
)
HUNTING = 'motor Coulomb 1 N m, 2 s of rest'
LEFT_OUT = {
    'K -5 %',
    'K +5 %',
    'all, delay 1 ms, known',
    'K -5 %, known to 1 %',
    'payload, known to 1 %',
    'Coulomb, known to 1 %',
}
ROWS: dict[str, tuple[Condition, float | None]] = {
    **{name: (made, None) for name, made in CONDITIONS.items() if name not in LEFT_OUT},
    'all, K = 5000': (CONDITIONS['all'], 5000.0),
    'all, K = 20000': (CONDITIONS['all'], 20000.0),
    HUNTING: (replace(CONDITIONS['motor Coulomb 1 N m'], rest=2.0), None),
}
"""Conditions, and the stiffness of all joints [N m/rad] unless it is that of panda_sea.yaml."""

PLANTS = {'mujoco': 'MuJoCo', 'pinocchio': 'links of Pinocchio'}


class Size(NamedTuple):
    """What is run."""

    rows: tuple[str, ...]
    bandwidths: tuple[float, ...]
    plants: dict[str, int]
    """How many of the laws meet on each plant."""


SIZES = {
    'tiny': Size(('exact', 'fast'), BANDWIDTHS[2:3], {'mujoco': 2}),
    'quick': Size((*SHORT, HUNTING), BANDWIDTHS, {'mujoco': len(LAWS)}),
    'full': Size(tuple(ROWS), BANDWIDTHS, {'mujoco': len(LAWS), 'pinocchio': 2}),
}


class Job(NamedTuple):
    """One run."""

    law: str
    bandwidth: float
    plant: str = 'mujoco'
    row: str = ''
    """Empty for tuning."""


def run(job: Job) -> Run | None:
    """Let a robot follow the motion; None if it runs away."""
    condition, spring = ROWS[job.row] if job.row else (TUNING, None)
    stiffness = control_cases.STIFFNESS if spring is None else np.full(7, spring)
    law = LAWS[job.law][0](known(condition, stiffness), job.bandwidth)
    try:
        if job.plant == 'mujoco':
            return control_simulation.follow(law, condition, stiffness)
        return control_cases.follow(law, condition, stiffness)
    except (ValueError, control_cases.Diverged):  # those of this package are the former
        return None


def run_all(
    jobs: Sequence[Job], say: Callable[[str], object] = print
) -> dict[Job, Run | None]:
    """Results of all jobs, by as many processes as there are processors."""
    # Not forked: this process may have threads.
    start = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count() or 1, get_context('spawn')) as pool:
        found = {}
        for job, result in zip(jobs, pool.map(run, jobs)):
            found[job] = result
            if len(found) % 20 == 0 or len(found) == len(jobs):
                say(f'{len(found)} of {len(jobs)} runs, {time.monotonic() - start:.0f} s')
    return found


def is_calm(result: Run | None) -> bool:
    """Whether torques keep their limits and rest at the end."""
    return (
        result is not None and not result.saturated and result.rate_at_rest <= LARGEST_RATE
    )


def chosen(tried: Mapping[Job, Run | None]) -> Job:
    """Choose the bandwidth of a law among those that have been tried."""
    calm = [job for job, result in tried.items() if is_calm(result)]

    def error(job: Job) -> float:
        result = tried[job]
        return np.inf if result is None else result.rms

    return min(calm or tried, key=error)


def tuned(size: Size, say: Callable[[str], object] = print) -> dict[str, float]:
    """Bandwidths of the laws [rad/s]."""
    laws = list(LAWS)[: max(size.plants.values())]
    jobs = [Job(law, w) for law in laws if LAWS[law][1] is None for w in size.bandwidths]
    tried = run_all(jobs, say) if jobs else {}
    return {
        law: LAWS[law][1]
        or chosen({job: tried[job] for job in jobs if job.law == law}).bandwidth
        for law in laws
    }


def shown(value: float) -> str:
    """Write a number with two digits, and no exponent if it is large."""
    return f'{value:.0f}' if value >= 100.0 else f'{value:.2g}'


def errors(result: Run | None) -> str:
    """Write RMS and peak error [mrad]."""
    return 'diverges' if result is None else f'{shown(result.rms)} / {shown(result.peak)}'


def rates(result: Run | None) -> str:
    """Write torque rates [N m/s] and the share of samples at a limit."""
    if result is None:
        return 'diverges'
    text = f'{result.rate:.0f} / {result.rate_at_rest:.0f}'
    return text + (f', {100.0 * result.saturated:.0f} %' if result.saturated else '')


def tables(
    size: Size, bandwidths: Mapping[str, float], found: Mapping[Job, Run | None]
) -> str:
    """Write all results."""
    texts = [textwrap.fill(LEGEND, 99) + '\n\n']
    for plant, count in size.plants.items():
        laws = dict(list(bandwidths.items())[:count])
        header = ['', *(f'{law.strip()}, {w:.0f}' for law, w in laws.items())]
        for title, write in (
            ('RMS / peak error of the links [mrad]', errors),
            (
                'Largest change of a motor torque, anywhere / at rest [N m/s], and the share of '
                'samples in which a motor is at its limit',
                rates,
            ),
        ):
            lines = [header]
            for row in size.rows:
                if row != HUNTING:
                    cells = (found[Job(law, w, plant, row)] for law, w in laws.items())
                    lines.append([row, *map(write, cells)])
            texts.append(textwrap.fill(f'{title}; {PLANTS[plant]}:', 99) + '\n\n')
            texts.append(grid(lines) + '\n')
        if HUNTING in size.rows:
            swings = []
            for law, w in laws.items():
                result = found[Job(law, w, plant, HUNTING)]
                swing = 'diverges' if result is None else f'{shown(result.swing)} mrad'
                swings.append(f'{law.strip()}, {w:.0f}: {swing}')
            text = (
                'Hunting, a known limit: with 1 N m of Coulomb friction in every motor a joint '
                'swings in the second second of rest, from end to end, by '
                + '; '.join(swings)
            )
            texts.append(textwrap.fill(text + '.', 99) + '\n\n')
    return ''.join(texts)


LINES = ('#000000', '#e69f00', '#d55e00', '#56b4e9', '#0072b2', '#009e73', '#cc79a7')
"""Colours of the laws, which those can tell apart who do not see all colours (Okabe and Ito)."""
DASHES = ('-', '-', '--', '-', '--', '-', '-.')
TORQUE_JOINT = 1
TORQUE_LAWS = ('tracking', 'linearisation ')
PANELS = (
    ('all', 'Springs 5 % softer, 1 kg of payload, 1 N m of Coulomb friction, encoders'),
    ('push 20 N', f'Nothing but 20 N of push at the last link, from {PUSHED} s on'),
    ('all', 'As at the top: what tracking and linearisation at 150 rad/s ask of a motor'),
)


def draw(
    bandwidths: Mapping[str, float], found: Mapping[Job, Run | None], path: Path
) -> None:
    """Draw errors under all faults and a push, and torques with their limits."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise NotInstalled('matplotlib is not installed') from None
    # Pages show it 700 pixels wide, with which fonts of this size are as large as their text.
    figure = Figure(figsize=(7.0, 9.2), layout='constrained')
    FigureCanvasAgg(figure)
    axes = figure.subplots(3, 1, sharex=True)
    torques = axes[-1]
    for axis, (row, title) in zip(axes, PANELS):
        for number, (law, w) in enumerate(bandwidths.items()):
            result = found.get(Job(law, w, 'mujoco', row))
            if result is None:
                continue
            width = 2.8 if number == 0 else 1.4
            color = LINES[number]
            if axis is not torques:
                rms = 1e3 * np.sqrt(np.mean(result.error**2, axis=1))
                label = f'{law.strip()}, {w:.0f} rad/s'
                axis.plot(
                    result.times, rms, color=color, lw=width, ls=DASHES[number], label=label
                )
            elif law in TORQUE_LAWS:
                torque = result.torque[:, TORQUE_JOINT]
                axis.plot(
                    result.times[:-1], torque, color=color, lw=width, zorder=3 - number / 10
                )
        axis.set_title(title, fontsize=11, loc='left')
        axis.grid(alpha=0.3)
        axis.margins(x=0.01)
        if axis is not torques:
            axis.set_yscale('log')
            axis.set_ylabel('RMS error of links [mrad]', fontsize=11)
            axis.set_ylim(1e-2, 1e3)
    limit = TORQUE_LIMITS[TORQUE_JOINT]
    for side in (-limit, limit):
        torques.axhline(side, color='black', ls=':', lw=1.2)
    torques.set_ylim(-1.15 * limit, 1.15 * limit)
    torques.set_ylabel(f'motor torque, joint {TORQUE_JOINT + 1} [N m]', fontsize=11)
    torques.set_xlabel('time [s]', fontsize=11)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc='outside upper center', ncol=3, fontsize=10.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune, run, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.elastic_joints',
        description='Errors of control laws on robots with elastic joints that they do not know.',
    )
    parser.add_argument(
        '--size', choices=SIZES, default='quick', help='conditions and plants'
    )
    folder_options(parser)
    options = parser.parse_args(arguments)
    size, start = SIZES[options.size], time.monotonic()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    bandwidths = tuned(size, say)
    jobs = [
        Job(law, w, plant, row)
        for plant, count in size.plants.items()
        for row in size.rows
        for law, w in list(bandwidths.items())[:count]
    ]
    found = run_all(jobs, say)
    text = tables(size, bandwidths, found)
    files = write_tables(text, 'elastic_joints', options)
    try:
        draw(bandwidths, found, options.folder / 'elastic_joints.png')
        files.append(options.folder / 'elastic_joints.png')
    except NotInstalled as reason:
        say(f'No picture: {reason}.')
    print(f'{time.monotonic() - start:.0f} s. Written: {", ".join(map(str, files))}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
