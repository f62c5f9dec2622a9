"""Torques with up to five time derivatives of 12 coordinates, beside automatic differentiation.

The robot is of the kind of Ali, Gabellieri and Franchi 2026, "Lie Group Formulation of Recursive
Dynamics Algorithms of Higher Order for Floating-Base Robots", arXiv:2605.06498: a free body with
an arm of six joints. Peers differentiate the recursive Newton-Euler algorithm along the motion:
CasADi again and again, JAX by Taylor mode. All take turns (benchmarks/timing.py); making is the
time of processors until the first result, with empty caches. Errors are against power series in
extended precision.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from benchmarks import cases, compilation
from benchmarks.inverse_dynamics import Kernel, Maker, batch, from_python
from benchmarks.peers import casadi_code, jax_jet
from benchmarks.tables import Benchmark, Table, microseconds, say
from benchmarks.timing import Effort, NotInstalled, Timing, race
from hodyn_ros.engine.requests import COMPILED_ROBOT

MAKERS: Mapping[str, Maker] = {
    casadi_code.NAME: partial(casadi_code.inverse_dynamics, builds=1),
    'CasADi from Python': casadi_code.from_python,
    'JAX jet': partial(jax_jet.contestants, largest=12),
    'hodyn_ros one by one': Kernel('hodyn_ros one by one', COMPILED_ROBOT, together=False),
    'hodyn_ros batch': batch,
    'hodyn_ros from Python': from_python,
}


class Size(NamedTuple):
    """How much is measured."""

    orders: int
    """Highest one."""
    samples: int
    effort: Effort


SIZES = {
    'tiny': Size(1, 16, Effort(3, 1e-4, 0.1)),
    'quick': Size(5, 4000, Effort(7, 0.01, 0.4)),
    'full': Size(5, 4000, Effort(51, 0.01, 1.5)),
}


class Outcome(NamedTuple):
    """What a contestant has come to."""

    timing: Timing
    making: float
    """[s]"""
    error: float
    """Largest of all orders, relative to the largest effort of the order."""


def processor_time() -> float:
    """Of this process and those that it has started [s]."""
    return sum(os.times()[:4])


def outcomes(order: int, size: Size, absent: dict[str, None]) -> dict[str, Outcome]:
    """Contestants of an order by name; who is not there is noted."""
    case, entries, making = cases.flying_arm(size.samples, order), [], dict[str, float]()
    for name, maker in MAKERS.items():
        say(f'order {order}: {name}')
        begin = processor_time()
        try:
            made = maker(case)
        except NotInstalled as reason:
            absent[f'- {name} is not measured: {reason}'] = None
            continue
        took = processor_time() - begin
        for entry in made:
            begin = processor_time()
            entry.run()
            making[entry.name] = took + processor_time() - begin
        entries += made
    timings = race(entries, size.effort)
    return {
        entry.name: Outcome(
            timings[entry.name],
            making[entry.name],
            max(case.errors(entry.result())) if entry.result else 0.0,
        )
        for entry in entries
    }


NOTE = 'Ratios are to {}, order by order. "From Python" has one sample a call.'


def tables(columns: Sequence[dict[str, Outcome]], absent: Sequence[str]) -> list[Table]:
    """Times, and what comes before and after them, by contestant and order."""
    names = dict.fromkeys(name for column in columns for name in column)
    first = next(iter(names))

    def time(name: str, column: dict[str, Outcome]) -> str:
        own = column[name].timing.median
        return f'{microseconds(own)} ({own / column[first].timing.median:.2f})'

    def made(name: str, column: dict[str, Outcome]) -> str:
        return f'{column[name].making:.1f} s, {column[name].error:.0e}'

    header = ['0', *(f'0-{order}' for order in range(1, len(columns)))]
    found = [
        [[name, *(cell(name, c) if name in c else '-' for c in columns)] for name in names]
        for cell in (time, made)
    ]
    return [
        Table('Time for a sample', ['µs (ratio)', *header], found[0], [NOTE.format(first)]),
        Table('Making, and largest error', ['orders', *header], found[1], absent),
    ]


def measure(size: Size) -> list[Table]:
    """Measure all orders."""
    absent: dict[str, None] = {}
    with (
        tempfile.TemporaryDirectory() as folder,  # caches are empty
        patch.dict(os.environ, NUMBA_CACHE_DIR=folder),
        patch.object(compilation, 'CACHE', Path(folder) / 'libraries'),
    ):
        for maker in MAKERS.values():  # what has to be imported is not what is measured
            with suppress(NotInstalled):
                maker(cases.chain(1, 16))
        columns = [outcomes(order, size, absent) for order in range(size.orders + 1)]
    return tables(columns, list(absent))


BENCHMARKS = {
    'orders': Benchmark('Orders 0 to 5 of 12 coordinates on a free body', SIZES, measure)
}
