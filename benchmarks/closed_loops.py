"""Time of inverse dynamics with closed loops: python -m benchmarks.closed_loops.

The delta robot in a batch and one by one, orders 0 to 2, beside the open tree of the same bodies
along the same motion, and Pinocchio in a Python loop over samples. Pinocchio has no inverse
dynamics of closed loops: what stands for it is one linear solution, for the efforts of the motors
and the multipliers of the loops that together make up those of the tree, by rnea and
getConstraintsJacobian. It is given the motion of all joints; ours find it from that of the motors.
Its forward dynamics, constraintDynamics, is beside. All take turns (benchmarks/timing.py).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import ROOT
from benchmarks.report import grid
from benchmarks.timing import Contestant, Effort, NotInstalled, race
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.resources import share_file

from support.loop_robots import PinocchioLoops  # isort: skip

Array = NDArray[np.float64]

SAMPLES = 10_000
ALONE = 100
"""Samples of what is called one by one."""
ORDERS = (0, 1, 2)
YARDSTICK = 'pin.rnea and the Jacobian of the loops'
FORWARD = 'pin.constraintDynamics, forward dynamics'
MOTION = 'motion of all joints alone, to jounce'


@dataclass(frozen=True)
class Case:
    """The delta robot and a motion of its motors.

    Attributes
    ----------
    xml : str
    model : RobotModel
    motion : ndarray, shape (samples, 5, 3)
    whole : ndarray, shape (samples, 5, 18)
        Of all joints of the tree.
    """

    xml: str
    model: RobotModel
    motion: Array
    whole: Array


def delta(samples: int) -> Case:
    """Delta robot along sinusoids of its motors, at 1 kHz."""
    xml = share_file('urdf/delta.urdf').read_text(encoding='utf-8')
    model = RobotModel.from_urdf(xml)
    speed = np.array([7.0, 8.0, 9.0])  # rad/s
    orders = np.arange(5)[:, None]
    phase = 1e-3 * np.arange(samples)[:, None, None] * speed + 0.5 * np.pi * orders
    motion = 0.4 * speed**orders * np.sin(phase)
    return Case(xml, model, motion, complete_motion(model, motion))


def ours(case: Case) -> list[Contestant]:
    """Closed loops and the open tree, one by one and in a batch, and the motion alone."""
    tree = case.model.closure.tree
    calls = [
        (
            f'{what}, orders 0-{order}' if order else f'{what}, orders 0',
            order,
            model,
            motion,
        )
        for order in ORDERS
        for what, model, motion in (
            ('closed loops', case.model, case.motion),
            ('the tree', tree, case.whole),
        )
    ]
    entries = []
    for name, order, model, motion in calls:
        rows = np.ascontiguousarray(motion[:, : order + 3])
        model.warm_up(order)
        batch = partial(inverse_dynamics, model, rows)
        alone = partial(_one_by_one, model, rows[:ALONE])
        entries += [
            Contestant(f'{name}, batch', order, len(rows), batch, batch),
            Contestant(f'{name}, alone', order, len(rows[:ALONE]), alone, alone),
        ]
    follow = partial(complete_motion, case.model, case.motion)
    return [*entries, Contestant(MOTION, 2, len(case.motion), follow, follow)]


def _one_by_one(model: RobotModel, rows: Array) -> Array:
    return np.array([inverse_dynamics(model, row) for row in rows])


def theirs(case: Case) -> list[Contestant]:
    """Pinocchio in a loop over samples: inverse and forward dynamics of order 0."""
    try:
        peer = PinocchioLoops(case.xml, case.model)
    except ImportError:
        raise NotInstalled('pin is not installed') from None
    pin, model, data, points = peer.pin, peer.tree, peer.data, peer.points
    full = [peer.oracle.full(sample[:3]) for sample in case.whole[:ALONE]]
    rows = [(peer.oracle.configuration(q), qd, q2d) for q, qd, q2d in full]
    effort = inverse_dynamics(case.model, case.motion[:ALONE])[:, 0] @ peer.motors.T
    settings = pin.ProximalSettings(1e-12, 1e-12, 5)
    n = case.model.n_joints

    def inverse() -> Array:
        found = []
        for row in rows:
            of_tree = pin.rnea(model, data, *row)
            pin.computeJointJacobians(model, data, row[0])
            for point, kept in zip(points, peer.kept):
                point.calc(model, data, kept)
            L = pin.getConstraintsJacobian(model, data, points, peer.kept)
            found.append(np.linalg.solve(np.hstack([peer.motors, L.T]), of_tree)[:n])
        return np.array(found)[:, None]

    def forward() -> Array:
        call = partial(pin.constraintDynamics, model, data)
        found = [
            call(q, qd, Q, points, peer.kept, settings)
            for (q, qd, _), Q in zip(rows, effort)
        ]
        return (np.array(found) @ peer.oracle.G)[:, None]

    return [
        Contestant(YARDSTICK, 0, len(rows), inverse, inverse),
        Contestant(FORWARD, 0, len(rows), forward, forward),
    ]


def table(effort: Effort, samples: int, say: Callable[[str], object] = print) -> str:
    """Format microseconds for a sample, quartiles and ratios to the first contestant.

    Parameters
    ----------
    effort : Effort
    samples : int
        In a batch.
    say : callable
        Is told who cannot take part.

    Returns
    -------
    str
    """
    case = delta(samples)
    contestants = ours(case)
    try:
        contestants = [*theirs(case), *contestants]
    except NotInstalled as reason:
        say(f'{reason}: Pinocchio is left out')
    timings = race(contestants, effort)
    unit = timings[contestants[0].name].median
    rows = [['', 'µs', 'quartiles', 'ratio']]
    for name, timing in timings.items():
        quartiles = f'{timing.lower_quartile * 1e6:.3g}-{timing.upper_quartile * 1e6:.3g}'
        rows.append(
            [name, f'{timing.median * 1e6:.3g}', quartiles, f'{timing.median / unit:.2g}']
        )
    return grid(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it into a file."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.closed_loops',
        description='Time of inverse dynamics with closed loops, for the delta robot.',
    )
    parser.add_argument('--rounds', type=int, default=25, help='bursts of each contestant')
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
    (options.output / 'closed_loops.inc').write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
