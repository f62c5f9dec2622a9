"""The command in this process or one of its own, and tables as users write and read them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from support.oracles import taylor_rnea

from hodyn_ros.cli import run

ROOT = Path(__file__).resolve().parents[2]
ORDERS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
GRAVITY = (0.0, 0.0, -9.81)
URDF = ROOT / 'urdf' / 'two_link.urdf'
NAMES = ('shoulder', 'elbow')


def swinging(times, amplitude=0.5, frequency=2.0):
    """Sinusoids around the hanging arm with four derivatives, shape (N, 5, 2)."""
    k = np.arange(5)[:, None]
    omega = frequency * np.array([1.0, 1.3])
    phase = times[:, None, None] * omega + 0.5 * np.pi * k
    motion = amplitude * omega**k * np.sin(phase)
    motion[:, 0] += [-0.5 * np.pi, 0.2]
    return motion


def efforts_of(motion, urdf=URDF, names=NAMES, gravity=GRAVITY):
    """Efforts of a robot and their derivatives, by power series."""
    return taylor_rnea(Path(urdf).read_text(), names, gravity, motion)


def write_table(path, times, motion, names=NAMES, **columns):
    """A table as users write it, without anything of this package."""
    named = {'time': times}
    for k, order in enumerate(ORDERS[: motion.shape[1]]):
        named |= {f'{name}.{order}': motion[:, k, j] for j, name in enumerate(names)}
    named |= columns
    rows = np.column_stack(list(named.values()))
    np.savetxt(path, rows, '%.17g', ',', header=','.join(named), comments='')
    return str(path)


def read_table(path):
    """Columns of a table by their titles, without units."""
    with Path(path).open(newline='') as file:
        titles, *rows = csv.reader(line for line in file if line[0] != '#')
    values = np.array(rows, dtype=float).T
    return dict(zip((title.partition(' [')[0] for title in titles), values))


def columns_of(table, quantities=EFFORTS, names=NAMES):
    """Some columns of a table, shape (N, quantities, joints)."""
    return np.stack(
        [np.stack([table[f'{name}.{q}'] for name in names], -1) for q in quantities], 1
    )


def call(capsys, *words):
    """Exit code, output and messages of the command in this process."""
    code = run([str(word) for word in words])
    said = capsys.readouterr()
    assert 'Traceback' not in said.err
    assert 'should not happen' not in said.err
    return code, said.out, said.err


def as_json(capsys, *words, code=0):
    """What the command prints for programs; nothing of it may be infinite or no number."""
    found, out, err = call(capsys, *words, '--json')
    assert found == code, err
    return json.loads(out, parse_constant=lambda word: 1 / 0)


def start(*words, program=None, environment=(), **options):
    """The command in a process of its own, or a program in Python."""
    code = ['-c', program] if program else ['-m', 'hodyn_ros']
    pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'text': True}
    return subprocess.Popen(
        [sys.executable, *code, *map(str, words)],
        env={**os.environ, **dict(environment)},
        **pipes | options,
    )
