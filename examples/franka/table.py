"""Ways to time random paths of an FR3, and what the robot makes of them.

    python examples/franka/table.py --paths 100

Every way times the same paths: curves through random configurations, at rest at both ends. The
torques of each cycle are exact, so that what stops the robot is the timing. Prints a table. Each
motion is a line of build/demo_franka/paths.csv, what the robot said of each stop one of
build/demo_franka/stops.txt. A table that was interrupted goes on with the first path that is
missing; lines of another program or robot are measured again.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, get_type_hints

import numpy as np
import pylibfranka

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from client import Arm, Outcome  # noqa: E402
from demo import CUT, FOLDER, robot  # noqa: E402
from motions import Commands, fr3  # noqa: E402
from ways import ways  # noqa: E402

from benchmarks.retiming import paths  # noqa: E402
from benchmarks.tables import Table, say  # noqa: E402
from hodyn_ros.errors import HodynError  # noqa: E402

ATTEMPTS = 5  # to follow a path without losing the connection
LINES, STOPS = FOLDER / 'paths.csv', FOLDER / 'stops.txt'
SEED = 0  # of `paths`
SOURCES = 'examples/franka', 'hodyn_ros', 'benchmarks/retiming.py', 'benchmarks/peers'
PACKAGES = 'numpy', 'pylibfranka', 'ruckig', 'toppra'


class Line(NamedTuple):
    """A motion on the robot, a line of the file.

    Attributes
    ----------
    program : str
        Digest of all that decides on the outcome, of `program`.
    path : int
        Number of the path, from 0.
    timing : str
    cut : float
        Rate at which torques were cut [N m/s], infinite if they were not.
    commands : str
        Name of the motion; of the best jerk limit, it has the limit.
    duration : float
        [s]
    foretold : int
        Cycle in which torques without feedback say that the robot stops, from 0; -1: it arrives.
    reflex : str
        Of the robot, in its own words; empty if the motion arrived.
    cycle, joint : int
        As in `Outcome`, but joints from 1.
    rate, error : float
        As in `Outcome` [N m/s], [rad].
    text : str
        As in `Outcome`.
    """

    program: str
    path: int
    timing: str
    cut: float
    commands: str
    duration: float
    foretold: int
    reflex: str
    cycle: int
    joint: int
    rate: float
    error: float
    text: str

    @property
    def is_as_foretold(self) -> bool:
        """Whether torques without feedback said that the robot stops, or that it does not."""
        return (self.foretold >= 0) == bool(self.reflex)

    @property
    def stop(self) -> str:
        """Where the robot stopped, why, and what it said."""
        cut = f', cut at {self.cut:.0f} N m/s' * bool(np.isfinite(self.cut))
        return (
            f'seed {SEED}, path {self.path}, {self.commands}{cut}: cycle {self.cycle}, '
            f'joint {self.joint}, {self.rate:.1f} N m/s, {self.reflex}: {self.text}'
        )


def program(options: Sequence[str]) -> str:
    """Digest of the sources, packages and settings of the robot that decide on outcomes."""
    digest = hashlib.sha256(' '.join(options).encode())
    for package in PACKAGES:
        digest.update(f'{package} {version(package)}'.encode())
    for source in SOURCES:
        place = ROOT / source
        for file in sorted(place.rglob('*.py')) if place.is_dir() else [place]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def line(made_by: str, path: int, timing: str, cut: float, outcome: Outcome) -> Line:
    """Line of a motion."""
    commands = outcome.commands
    foretold = commands.reflex()
    return Line(
        made_by,
        path,
        timing,
        cut,
        commands.name,
        commands.duration,
        -1 if foretold is None else foretold[0],
        outcome.reflex,
        outcome.cycle,
        outcome.joint + 1,
        outcome.rate,
        outcome.error,
        ' '.join(outcome.text.split()),
    )


def read(file: Path, made_by: str) -> list[Line]:
    """Lines of a file that the same program has written; none if there is no file."""
    if not file.exists():
        return []
    kinds = get_type_hints(Line)
    with file.open(encoding='utf-8', newline='') as text:
        rows = csv.DictReader(text)
        if tuple(rows.fieldnames or ()) != Line._fields:
            return []
        return [
            Line(**{name: kind(row[name]) for name, kind in kinds.items()})
            for row in rows
            if row['program'] == made_by
        ]


def write(file: Path, lines: Iterable[Line]) -> None:
    """Write lines, the file being whole at any time."""
    new = file.with_suffix('.new')
    with new.open('w', encoding='utf-8', newline='') as text:
        rows = csv.writer(text)
        rows.writerow(Line._fields)
        rows.writerows(lines)
    os.replace(new, file)


def tried(
    arm: Arm, made_by: str, number: int, timed_path: dict[str, Commands]
) -> list[Line]:
    """Follow a path in each timing, and again with torques that are cut if the robot stops."""
    lines = []
    for timing, commands in timed_path.items():
        for cut in (np.inf, CUT):
            arm.go_to(commands.position[0])
            outcome = arm.follow(commands, most_rate=cut)
            lines.append(line(made_by, number, timing, cut, outcome))
            if not outcome.reflex:
                break
    return lines


def lines_of(
    server: Sequence[str], made_by: str, number: int, timed_path: dict[str, Commands]
) -> list[Line]:
    """All timings of a path on a robot that was just started.

    A client whose states do not come for a second gives up; it is a busy machine then, which says
    nothing of the torques, and the path begins anew.
    """
    for attempt in range(ATTEMPTS):
        try:
            with robot(*server) as arm:
                return tried(arm, made_by, number, timed_path)
        except pylibfranka.NetworkException as error:
            say(f'path {number}, attempt {attempt + 1}: {error}')
    raise SystemExit(f'error: the connection was lost {ATTEMPTS} times.')


def row(timing: str, lines: Sequence[Line], durations: dict[int, float]) -> list[str]:
    """Line of the table: duration beside the one of the last timing, reflexes, errors."""
    own = [each for each in lines if each.timing == timing]
    whole = [each for each in own if np.isinf(each.cut)]
    longer = [100.0 * (each.duration / durations[each.path] - 1.0) for each in whole]
    arrived = [1e3 * each.error for each in whole if not each.reflex]
    # The later line of a path is the one with torques that are cut, if there is one.
    cut = list({each.path: each for each in own}.values())
    errors, lost = (
        [1e3 * each.error for each in cut],
        sum(bool(each.reflex) for each in cut),
    )
    return [
        timing,
        f'{np.median(longer):+.1f} % ({min(longer):+.1f} to {max(longer):+.1f})',
        f'{len(whole) - len(arrived)} of {len(whole)}',
        f'{np.median(arrived):.2f} ({max(arrived):.2f})' if arrived else '',
        f'{np.median(errors):.2f} ({max(errors):.2f})'
        + (f', {lost} stopped' if lost else ''),
    ]


HEADER = ('timing', 'duration', 'stopped', 'error, mrad', f'error cut at {CUT:.0f} N m/s')


def table(lines: Sequence[Line], timings: Iterable[str], notes: Sequence[str]) -> Table:
    """Table of all lines."""
    durations = {each.path: each.duration for each in lines}
    whole = [each for each in lines if np.isinf(each.cut)]
    right = sum(each.is_as_foretold for each in whole)
    said = f'{right} of {len(whole)} outcomes are as torques without feedback said.'
    rows = [row(timing, lines, durations) for timing in timings]
    return Table(f'{len(durations)} paths of the FR3', HEADER, rows, [*notes, said])


def main() -> None:
    """Time, follow, print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--server', default='.venv-franka/bin/python')
    parser.add_argument('--paths', type=int, default=10)
    parser.add_argument('--mass', default='1', help='factor of the masses of the robot')
    options = parser.parse_args()
    warnings.simplefilter('ignore')
    FOLDER.mkdir(parents=True, exist_ok=True)
    settings = '--mass', options.mass
    model, made_by = fr3(), program(settings)
    lines, notes, field = read(LINES, made_by), [], ways(model)
    done = {each.path for each in lines}
    for number, path in enumerate(paths(model, options.paths)):
        say(f'path {number} of {options.paths}' + ': from before' * (number in done))
        if number in done:
            continue
        try:
            timed_path = {name: way(name, path).exactly() for name, way in field.items()}
        except (HodynError, RuntimeError) as error:
            notes.append(f'- Path {number} is left out: {error}')
            continue
        lines += lines_of((options.server, *settings), made_by, number, timed_path)
        write(LINES, lines)
        STOPS.write_text(''.join(f'{each.stop}\n' for each in lines if each.reflex))
    lines = [each for each in lines if each.path < options.paths]
    print(table(lines, field, notes).text())


if __name__ == '__main__':
    main()
