"""Command line of the comparison: python -m benchmarks.formulations."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.formulations import robots
from benchmarks.formulations.measure import EFFORT, measure
from benchmarks.formulations.report import text
from hodyn_ros import RobotModel

ROOT = Path(__file__).resolve().parents[2]


def _panda() -> RobotModel:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return RobotModel.from_urdf(ROOT / 'urdf' / 'panda.urdf')


ROBOTS: dict[str, Callable[[], RobotModel]] = {
    'Panda': _panda,
    **{f'arm of {n}': (lambda n=n: robots.chain(n)) for n in (2, 7, 14, 28)},  # type: ignore[misc]
    'twisted arm of 7': lambda: robots.chain(7, twisted=True),
    'tree of 14': lambda: robots.tree(14),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the formulations, print the tables and write them into a file."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.formulations',
        description='Operations and times of the formulations of inverse dynamics, compiled.',
    )
    parser.add_argument(
        'robots', nargs='*', metavar='ROBOT', help=f'{", ".join(ROBOTS)}; all by default'
    )
    parser.add_argument(
        '--count', action='store_true', help='count operations, time nothing'
    )
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.robots) - set(ROBOTS))
    if unknown:
        parser.error(f'no robot {", ".join(unknown)}; there are {", ".join(ROBOTS)}')
    effort = None if options.count else EFFORT
    tables = [
        measure(
            name, ROBOTS[name](), effort, progress=lambda line: print(line, file=sys.stderr)
        )
        for name in options.robots or ROBOTS
    ]
    result = text(tables)
    print(result)
    path = options.output / 'formulations.rst'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(result, encoding='utf-8')
    print(f'Written: {path}', file=sys.stderr)
    return 0


if __name__ == '__main__':
    sys.exit(main())
