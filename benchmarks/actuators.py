"""Time of the motors behind elastic joints: python -m benchmarks.actuators.

The Franka Panda with seven joints of one kind, from motions of five orders to positions,
velocities, accelerations and torques of the motors, inverse dynamics included. All kinds take
turns (benchmarks/timing.py); times are medians, ratios are to the inverse dynamics alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import grid
from benchmarks.timing import Contestant, Effort, race
from hodyn_ros import RobotModel, friction, inverse_dynamics
from hodyn_ros.actuators import (
    Actuator,
    Actuators,
    AwasII,
    CubicSpring,
    PolynomialSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    TableSpring,
    VariableStiffness,
    motor_motion,
    motor_step,
)
from hodyn_ros.resources import share_file

Array = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = 10_000
PERIOD = 0.001  # s
ALONE = 'inverse dynamics alone'
DEFLECTIONS = np.linspace(-0.1, 0.1, 21)
# Stiff enough for the arm; no constants of real joints.
KINDS: dict[str, Actuator] = {
    'rigid': RigidDrive(0.5),
    'linear spring': SeriesElastic(5000.0, 0.5),
    'linear spring, motor friction': SeriesElastic(
        5000.0, 0.5, friction=friction.Viscous(0.2) + friction.Coulomb(1.0, smoothing=0.05)
    ),
    'cubic spring': SeriesElastic(CubicSpring(5000.0, 1e6), 0.5),
    'polynomial spring': SeriesElastic(PolynomialSpring((5000.0, 0.0, 1e6, 0.0, 1e8)), 0.5),
    'table': SeriesElastic(
        TableSpring(DEFLECTIONS, 5000.0 * DEFLECTIONS + 1e6 * DEFLECTIONS**3), 0.5
    ),
    'linear spring, damper': SeriesElastic(5000.0, 0.5, damping=10.0),
    'variable stiffness': VariableStiffness(Qbmove(6.0, 100.0), 0.5),
    'variable stiffness, unequal springs': VariableStiffness(
        Qbmove((6.0, 6.5), (100.0, 90.0)), 0.5
    ),
    'variable stiffness, lever': VariableStiffness(AwasII(1000.0, 0.1, 0.02), 0.5),
}
STIFFNESS = 5000.0  # N m/rad, of joints that can choose it


def example(model: RobotModel, count: int) -> tuple[Array, Array]:
    """Sample a smooth motion: times (N,) and motions (N, 5, n)."""
    times = PERIOD * np.arange(count)
    phases = np.linspace(0.0, 3.0, model.n_joints)
    waves = 2.0 * times[:, None, None] + phases + 0.5 * np.pi * np.arange(5)[:, None]
    motions: Array = 0.4 * 2.0 ** np.arange(5)[:, None] * np.sin(waves)
    return times, motions


def single(actuators: Actuators, times: Array, motions: Array) -> Callable[[], object]:
    """Return a call for one sample of a stream."""
    if any(item.actuator.needs_times for item in actuators.driven):
        _, state = motor_step(actuators, float(times[0]), motions[0])
        time = float(times[1])
        return lambda: motor_step(actuators, time, motions[1], state)
    stiffness = _stiffness(actuators, ())
    return lambda: motor_motion(actuators, motions[0], stiffness=stiffness)


def batch(actuators: Actuators, times: Array, motions: Array) -> Callable[[], object]:
    """Return a call for all samples at once."""
    stiffness = _stiffness(actuators, times.shape)
    return lambda: motor_motion(actuators, motions, stiffness=stiffness, times=times)


def _stiffness(actuators: Actuators, shape: tuple[int, ...]) -> dict[str, Array]:
    series = np.zeros((*shape, 3))
    series[..., 0] = STIFFNESS
    return {item.name: series for item in actuators.driven if item.actuator.needs_stiffness}


def table(effort: Effort, samples: int = SAMPLES) -> str:
    """Format microseconds for each sample, one at a time and in a batch."""
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    model.warm_up()
    times, motions = example(model, samples)
    calls: dict[str, list[tuple[int, Callable[[], object]]]] = {
        ALONE: [
            (1, lambda: inverse_dynamics(model, motions[0])),
            (samples, lambda: inverse_dynamics(model, motions)),
        ]
    }
    for kind, actuator in KINDS.items():
        actuators = Actuators(model, dict.fromkeys(model.joint_names, actuator))
        one, many = single(actuators, times, motions), batch(actuators, times, motions)
        model.warm_up(2, one, many, one)
        calls[kind] = [(1, one), (samples, many)]
    contestants = [
        Contestant(f'{kind} {count}', 2, count, run, result=lambda: np.zeros(0))
        for kind, pair in calls.items()
        for count, run in pair
    ]
    timings = race(contestants, effort)
    header = ['seven joints', 'one sample: µs', 'ratio', f'of {samples}: µs each', 'ratio']
    lines = [header]
    for kind in calls:
        cells = [kind]
        for count in (1, samples):
            time = timings[f'{kind} {count}'].median
            ratio = time / timings[f'{ALONE} {count}'].median
            cells += [f'{1e6 * time:.3g}', f'{ratio:.1f}']
        lines.append(cells)
    return grid(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it into a file."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.actuators',
        description='Time of the motors behind elastic joints, for the Franka Panda.',
    )
    parser.add_argument('--rounds', type=int, default=15, help='bursts of each kind')
    parser.add_argument('--samples', type=int, default=SAMPLES, help='of a batch')
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    options = parser.parse_args(arguments)
    if options.rounds < 3 or options.samples < 2:
        parser.error('expected at least three rounds and two samples')
    text = table(Effort(options.rounds, burst=0.02, longest=4.0), options.samples)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / 'actuators.inc').write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
