"""What a start costs: importing the package, the command, and a press of TAB, beside NumPy.

    python -m benchmarks.start [--runs 9]

Processor time of fresh processes, which take turns; the figures are the least of the runs, since
whatever disturbs a process only adds to it, without those of an empty Python.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.cases import ROOT
from benchmarks.report import grid

PYTHON = [sys.executable, '-c']
COMMAND = [*PYTHON, 'from hodyn_ros.cli.main import main; main()']
EMPTY, NUMPY = 'an empty Python', 'import numpy'


def tab(words: str) -> dict[str, str]:
    """Environment in which the command completes words, as the shell has it at a TAB."""
    count = str(words.count(' '))
    return {'_HODYN_COMPLETE': 'bash_complete', 'COMP_WORDS': words, 'COMP_CWORD': count}


# What is started: the command, and what its environment has beside that of this process.
STARTS: dict[str, tuple[list[str], Mapping[str, str]]] = {
    EMPTY: ([*PYTHON, 'pass'], {}),
    NUMPY: ([*PYTHON, NUMPY], {}),
    'import hodyn_ros': ([*PYTHON, 'import hodyn_ros'], {}),
    'from hodyn_ros import RobotModel, inverse_dynamics': (
        [*PYTHON, 'from hodyn_ros import RobotModel, inverse_dynamics'],
        {},
    ),
    'hodyn --help': ([*COMMAND, '--help'], {}),
    'hodyn compute --help': ([*COMMAND, 'compute', '--help'], {}),
    'TAB behind hodyn': (COMMAND, tab('hodyn ')),
    'TAB behind hodyn compute --': (COMMAND, tab('hodyn compute --')),
}


def processor_time(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Processor time of a process from its start to its end [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it into a file."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.start')
    parser.add_argument('--runs', type=int, default=9)
    parser.add_argument('-o', '--output', type=Path, help='file for the table')
    options = parser.parse_args(arguments)
    times = dict.fromkeys(STARTS, float('inf'))
    for _ in range(options.runs):
        for name, start in STARTS.items():
            times[name] = min(times[name], processor_time(*start))
    numpy = max(times[NUMPY] - times[EMPTY], 1e-9)
    rows = [
        [name, f'{1e3 * time:.0f}', f'{(time - times[EMPTY]) / numpy:.2f}']
        for name, time in times.items()
    ]
    text = grid([['', 'ms', f'to {NUMPY}'], *rows])
    print(text)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
