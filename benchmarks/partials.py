"""Times of the partial derivatives of the efforts, beside Pinocchio in C++.

    python -m benchmarks.partials [panda | chain of N joints: a number] ...

Pinocchio computes those of the efforts themselves, in a loop over samples, into an array that is
there; this package those of higher orders as well, from a call that returns a new array. A time is
that of one sample; the contestants take turns in one run, see `timing`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks import cases
from benchmarks.cases import Case
from benchmarks.peers import pinocchio_cpp
from benchmarks.report import grid
from benchmarks.timing import Contestant, Effort, NotInstalled, race
from hodyn_ros import inverse_dynamics_derivatives
from hodyn_ros.engine.engine import Term, engine_of
from hodyn_ros.engine.program import PARTIALS

Array = NDArray[np.float64]

EFFORT = Effort(rounds=25, burst=0.02, longest=1.0)
BATCH = 10_000
ALONE = 50
ORDERS = (0, 1, 2)


def ours(case: Case, order: int) -> list[Contestant]:
    """Make the contestants of this package: one sample, a batch."""
    model, motion = case.model, np.ascontiguousarray(case.motion[:, : order + 3])
    model.warm_up(0, lambda: inverse_dynamics_derivatives(model, motion[0]))

    def alone() -> None:
        for sample in motion[:ALONE]:
            inverse_dynamics_derivatives(model, sample)

    def batch() -> Array:
        return inverse_dynamics_derivatives(model, motion)

    name = f'hodyn_ros order {order}'
    return [
        Contestant(f'{name}, batch', order, len(motion), batch, batch),
        Contestant(f'{name}, alone', order, ALONE, alone, batch),
    ]


def table(case: Case) -> str:
    """Time all contestants on a robot; returns text."""
    contestants = [entry for order in ORDERS for entry in ours(case, order)]
    try:
        contestants = [*pinocchio_cpp.partial_derivatives(case), *contestants]
    except NotInstalled as reason:
        print(reason)
    timings = race(contestants, EFFORT)
    unit = timings[contestants[0].name].median
    rows = [['', 'µs', 'quartiles', 'ratio', 'operations']]
    for entry in contestants:
        timing = timings[entry.name]
        count = ''
        if entry.name.startswith('hodyn_ros'):
            request = Term(PARTIALS, entry.order + 3)
            count = str(engine_of(case.model).program(request).program.flops)
        quartiles = f'{timing.lower_quartile * 1e6:.3f}-{timing.upper_quartile * 1e6:.3f}'
        cells = [
            f'{timing.median * 1e6:.3f}',
            quartiles,
            f'{timing.median / unit:.2f}',
            count,
        ]
        rows.append([entry.name, *cells])
    return f'{case.name}\n\n{grid(rows)}'


def main(arguments: Sequence[str]) -> None:
    """Measure on the robots that are named; the Panda by default."""
    for name in arguments or ['panda']:
        print(
            table(cases.panda(BATCH) if name == 'panda' else cases.chain(int(name), BATCH))
        )


if __name__ == '__main__':
    main(sys.argv[1:])
