"""Command line of the benchmarks: python -m benchmarks NAME ..."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tables import Benchmark, say, write
from benchmarks.timing import NotInstalled

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    **dict.fromkeys(('panda', 'chains', 'trees', 'formulations'), 'inverse_dynamics'),
    **{
        name: name
        for name in (
            'orders',
            'forward_dynamics',
            'retiming',
            'jerk_limits',
            'laws',
            'interaction',
            'tracking_cycle',
            'identification',
            'latency',
            'service',
        )
    },
}
"""Where each benchmark is; what it needs is imported when it is measured."""


def benchmark(name: str) -> Benchmark:
    """Benchmark of a name; raises NotInstalled if something that it needs is missing."""
    try:
        module = importlib.import_module(f'benchmarks.{MODULES[name]}')
    except ImportError as reason:
        raise NotInstalled(str(reason)) from reason
    found: Benchmark = module.BENCHMARKS[name]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them with pictures into a folder."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks',
        description='Measures hodyn_ros, where there are others beside them.',
    )
    parser.add_argument(
        'names',
        nargs='*',
        metavar='NAME',
        help=f'benchmarks: {", ".join(MODULES)}; all by default',
    )
    parser.add_argument(
        '--size',
        choices=('tiny', 'quick', 'full'),
        default='quick',
        help='quick: minutes each; full: as in the documentation; tiny: to see that all works',
    )
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(MODULES))
    if unknown:
        parser.error(f'no benchmark {", ".join(unknown)}; there are {", ".join(MODULES)}')

    for name in options.names or MODULES:
        start = time.monotonic()
        try:
            chosen = benchmark(name)
            say(f'{chosen.title}:')
            files = write(options.output, name, chosen.measure(chosen.sizes[options.size]))
        except NotInstalled as reason:
            if options.names:
                parser.exit(1, f'error: {name}: {reason}\n')
            say(f'{name} is left out: {reason}')
            continue
        say(f'{time.monotonic() - start:.0f} s. Written: {", ".join(map(str, files))}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
