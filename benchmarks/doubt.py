"""What identification says of recordings with one thing wrong, and how often it is right.

    python -m benchmarks.doubt [--size full] [--include doc/benchmarks/doubt.inc]

The recordings are those of test/support/doubt_cases.py, which shares no code with hodyn_ros: a
Panda with elastic joints, softer springs, a payload and friction, and random robots of three
joints.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.report import folder_options, grid, write_tables
from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.actuators import Actuators, LinearSpring, SeriesElastic
from hodyn_ros.errors import IdentificationError
from hodyn_ros.files import Samples
from hodyn_ros.identification import identify

from support import doubt_cases as cases  # isort: skip

SIZES = {'tiny': 1, 'quick': 20, 'full': 100}
"""Robots of three joints."""
SECONDS = 10.0, 20.0
WIDTH = 1.96
"""Deviations on both sides, of intervals of 95 %."""
SENTENCE = re.compile(
    r'Up to (\S+) times the noise is left; of what is beyond it (.*) explains (\d+ %)'
)
FAULTS = (
    'A Panda with elastic joints is identified from 16 s with one thing wrong each: springs that '
    'are 10 % softer than known, 1.2 kg at the flange, Coulomb friction of 1 N m, noise of '
    '0.1 N m, 500 Hz. Asked for are payload, viscous and Coulomb friction and stiffness. How much '
    'more than the noise is left, what is said to explain how much of the rest, and the error of '
    'the mass over its standard deviation:'
)
COVERS = (
    'Random robots of three joints, bodies, armature, friction, offset and delay: share of the '
    'parameters that are within their intervals of 95 %, RMS of the errors over the standard '
    'deviations, recordings that were refused, and recordings of which a cause was named, which '
    'none of them has:'
)


def samples(record: dict) -> Samples:
    """Give a recording in the form in which files are read."""
    given = {
        what: record.get(what) for what in ('effort', 'motor_position', 'motor_torque')
    }
    return Samples(
        record['names'],
        record['time'],
        record['position'][:, None],
        is_measured=True,
        **given,
    )


def row_of_fault(name: str, model: RobotModel) -> list[str]:
    """What is said of one recording."""
    wrong = cases.WRONG[name]
    inertia = cases.motor_inertia(wrong)
    drives = {
        joint: SeriesElastic(LinearSpring(k), inertia[joint])
        for joint, k in zip(inertia, cases.STIFFNESS.tolist())
    }
    link = cases.LINK if 'payload' in wrong.groups else None
    mass = ''
    try:
        found = identify(
            model,
            samples(cases.record(wrong)),
            wrong.groups,
            link=link,
            actuators=Actuators(model, drives),
        )
        told = found.doubt.sentence
        for item in found.parameters:
            if item.name == 'panda_link8 mass':
                mass = f'{abs(item.value - cases.MASS) / item.std:.1f}'
    except IdentificationError as error:
        told, mass = str(error), 'refused'
    said = SENTENCE.search(told)
    return [name, *(said.groups() if said else ('1', 'nothing', '')), mass]


def row_of_coverage(seconds: float, seeds: Iterable[int]) -> list[str]:
    """How often intervals hold the truth."""
    errors: list[float] = []
    refused = named = 0
    for seed in seeds:
        small = cases.small(seed, seconds)
        try:
            found = identify(RobotModel.from_urdf(small.urdf), samples(small.record))
        except IdentificationError:
            refused += 1
            continue
        truth = found.mapping @ small.parameters
        errors += [(p.value - v) / p.std for p, v in zip(found.parameters, truth)]
        named += bool(found.doubt.shift.any())
    ratio = np.array(errors)
    within = f'{100.0 * np.mean(np.abs(ratio) < WIDTH):.1f} %'
    rms = f'{np.sqrt(np.mean(ratio**2)):.2f}'
    return [f'{seconds:g}', str(len(ratio)), within, rms, str(refused), str(named)]


def tables(count: int, names: Sequence[str] = tuple(cases.WRONG)) -> str:
    """Measure everything."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf('panda')
        faults = [row_of_fault(name, model) for name in names]
        covers = [row_of_coverage(seconds, range(count)) for seconds in SECONDS]
    heads = ['s', 'parameters', 'within 95 %', 'error/std', 'refused', 'named']
    said = grid(
        [['what is wrong', 'times noise', 'what explains', 'of it', 'mass'], *faults]
    )
    first, second = (textwrap.fill(text, 99) for text in (FAULTS, COVERS))
    return f'{first}\n\n{said}\n{second}\n\n{grid([heads, *covers])}'


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.doubt',
        description='What identification says of wrong data.',
    )
    parser.add_argument(
        '--size', choices=SIZES, default='quick', help='number of small robots'
    )
    folder_options(parser)
    options = parser.parse_args(arguments)
    files = write_tables(tables(SIZES[options.size]), 'doubt', options)
    print(f'Written: {", ".join(map(str, files))}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
