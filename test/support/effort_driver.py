"""Lines for the driver of the C++ core, and what it says."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from support.compilers import CPP_COMPILERS, WARNINGS, run

HERE = Path(__file__).resolve().parents[1] / 'controllers'
INCLUDE = HERE.parents[1] / 'hodyn_controllers' / 'include'
JOINTS = ('a', 'b', 'c')
EFFORT = np.array([40.0, 20.0, 10.0])
RATE = np.array([1000.0, 800.0, 500.0])
START = 1_700_000_000 * 10**9  # ns
TICK = 10**6  # ns


def compiled(folder, name, *options):
    program = folder / name
    run(
        CPP_COMPILERS[0],
        '-std=c++17',
        *WARNINGS,
        '-O1',
        '-g',
        *options,
        '-pthread',
        f'-I{INCLUDE}',
        HERE / f'{name}.cpp',
        '-o',
        program,
    )
    return program


@dataclass
class Script:
    """Lines for the driver; times are in ns from the start."""

    options: dict = field(default_factory=dict)
    base: str = ''
    lines: list = field(default_factory=list)

    def message(self, now, stamp, values, names=JOINTS, order=2, base='-', absolute=False):
        """Add a message of values (up to 3, n)."""
        rows = [*values, [], [], []][:3]
        words = ['m', START + now, stamp if absolute else START + stamp, order, base]
        words += [len(names), *names]
        for row in rows:
            words += [len(row), *(repr(float(value)) for value in row)]
        self.lines.append(' '.join(map(str, words)))

    def tick(self, now, period=1e-3):
        self.lines.append(f't {START + now} {period!r}')

    def reference(self, now, values):
        words = ' '.join(repr(float(value)) for value in np.ravel(values))
        self.lines.append(f'r {START + now} {words}')

    def reset(self, efforts):
        self.lines.append('reset ' + ' '.join(repr(float(effort)) for effort in efforts))

    def run(self, driver, begin=(0.0, 0.0, 0.0)):
        """Refusals of the messages, and what came of the ticks; nothing was allocated."""
        head = [
            f'joint {name} {e!r} {r!r}'
            for name, e, r in zip(JOINTS, EFFORT.tolist(), RATE.tolist())
        ]
        head += [f'option {name} {value}' for name, value in self.options.items()]
        head += [f'base {self.base}'] if self.base else []
        head += ['reset ' + ' '.join(map(repr, begin))]
        result = subprocess.run(
            [driver],
            input='\n'.join(head + self.lines) + '\n',
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        *lines, last = result.stdout.splitlines()
        assert last == 'allocations 0'
        refusals = [int(line[2:]) for line in lines if line[0] == 'm']
        words = [line.split()[1:] for line in lines if line[0] == 't']
        n = len(JOINTS)
        return Ran(
            refusals,
            [row[0] for row in words],
            np.array([float(row[1]) for row in words]),
            np.array([[int(x) for x in row[2 : 2 + n]] for row in words]),
            np.array([[float(x) for x in row[2 + n :]] for row in words]),
        )


@dataclass
class Ran:
    """What the driver says."""

    refusals: list
    states: list
    age: np.ndarray
    limited: np.ndarray
    efforts: np.ndarray


def wave(t):
    """Efforts (3, n) at a time [s] with their derivatives."""
    w, a, p = np.array([3.0, 7.0, 11.0]), 0.4 * EFFORT, np.array([0.3, 1.0, 2.0])
    return np.array(
        [
            a * np.sin(w * t + p),
            a * w * np.cos(w * t + p),
            -a * w * w * np.sin(w * t + p),
        ]
    )
