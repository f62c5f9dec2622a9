"""Time of forward dynamics with derivatives: python -m benchmarks.forward_dynamics.

Three tables and a picture. The Franka Panda beside Pinocchio in C++, where regressor and partial
derivatives of inverse dynamics have their own peers; random chains, by factors of the mass matrix
and by articulated bodies; the Panda for orders 0 to 8 beside automatic differentiation by CasADi.
In each, all take turns (benchmarks/timing.py); times are medians, in microseconds for a sample.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hodyn_ros
from benchmarks import cases
from benchmarks.cases import ROOT, Case
from benchmarks.peers import casadi_forward, pinocchio_cpp, pinocchio_python
from benchmarks.report import grid
from benchmarks.timing import Contestant, Effort, NotInstalled, Timing, race
from hodyn_ros import forward_dynamics, inverse_dynamics, mass_matrix
from hodyn_ros.engine.engine import (
    COMPILED_ROBOT,
    COMPILED_TREE,
    BodyDynamics,
    engine_of,
    unavailable,
)
from hodyn_ros.engine.program import FORWARD

Array = NDArray[np.float64]
Maker = Callable[[], list[Contestant]]

ALONE = 100
# Results of these are large: a batch of more would not fit the cache.
SAMPLES_OF_MATRICES = 500
FORMS = {'mass matrix': COMPILED_ROBOT, 'articulated bodies': COMPILED_TREE}
TERMS: tuple[tuple[str, int, str], ...] = (
    ('regressor', 3, 'regressor'),
    ('inverse_dynamics_derivatives', 1, 'partial_derivatives'),
)
"""Functions of hodyn_ros, how many orders, and the peers in `pinocchio_cpp`."""


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes
    ----------
    samples : int
        In a batch of a robot with 7 joints; larger robots get fewer.
    joints : tuple of int
        Of the chains.
    orders : int
        Highest order of ours beside CasADi.
    plain, compiled : int
        Highest order that CasADi differentiates at all, and that is compiled.
    effort : Effort
    """

    samples: int
    joints: tuple[int, ...]
    orders: int
    plain: int
    compiled: int
    effort: Effort


SIZES = {
    'tiny': Size(40, (7,), 1, 1, 0, Effort(3, 1e-4, 0.1)),
    'quick': Size(4000, cases.SIZES, 8, 5, 2, Effort(11, 0.01, 0.4)),
    'full': Size(
        4000, (7, 10, 12, 14, 16, 20, 28, 56, 112), 8, 8, 4, Effort(51, 0.01, 1.5)
    ),
}


def public(case: Case, effort: Array) -> list[Contestant]:
    """Contestants of the public function: one sample a call, a batch."""
    model, orders = case.model, effort.shape[1]
    state = np.ascontiguousarray(case.motion[: len(effort), :2])
    model.warm_up(0, lambda: forward_dynamics(model, state[0], effort[0]))
    pairs = list(zip(state[:ALONE], effort[:ALONE]))
    latest: dict[str, Any] = {}

    kept = np.empty((len(pairs), *effort.shape[1:]))
    triples = [(*pair, result) for pair, result in zip(pairs, kept)]

    def alone() -> None:
        latest['alone'] = [forward_dynamics(model, x, Q) for x, Q in pairs]

    def alone_out() -> None:
        for x, Q, result in triples:
            forward_dynamics(model, x, Q, out=result)

    def batch() -> None:
        latest['batch'] = forward_dynamics(model, state, effort)

    name = f'forward_dynamics, orders {_span(orders)}'
    return [
        Contestant(
            f'{name}, alone', orders - 1, len(pairs), alone, lambda: latest['alone']
        ),
        Contestant(f'{name}, alone, out=', orders - 1, len(pairs), alone_out, lambda: kept),
        Contestant(
            f'{name}, batch', orders - 1, len(state), batch, lambda: latest['batch']
        ),
    ]


def kernels(case: Case, effort: Array, which: str) -> list[Contestant]:
    """Contestants of the machine code of one algorithm: samples one by one, side by side."""
    reason = unavailable()
    if reason:
        raise NotInstalled(str(reason))
    orders = effort.shape[1]
    request = BodyDynamics(FORWARD, orders, form=FORMS[which])
    kernel = engine_of(case.model).prepare(request)
    if kernel is None:
        raise NotInstalled(
            f'{which}, orders {_span(orders)}: the program is too long to compile'
        )
    state = np.ascontiguousarray(case.motion[: len(effort), :2])
    found = np.empty(effort.shape)

    def contestant(way: str, together: bool) -> Contestant:
        return Contestant(
            f'{which}, orders {_span(orders)}, {way}',
            orders - 1,
            len(effort),
            lambda: kernel.evaluate(state, effort, found, together=together),
            lambda: found,
        )

    return [contestant('one by one', False), contestant('batch', True)]


def term(case: Case, function: str, orders: int) -> list[Contestant]:
    """Contestant of a batch of matrices; raises NotInstalled if there is no such function."""
    call = getattr(hodyn_ros, function, None)
    if call is None:
        raise NotInstalled(f'hodyn_ros.{function} does not exist')
    motion = np.ascontiguousarray(case.motion[:, : orders + 2])
    case.model.warm_up(0, lambda: call(case.model, motion[0]))
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [call(case.model, motion)]

    name = f'{function}, orders {_span(orders)}, batch'
    return [Contestant(name, orders - 1, len(motion), run, lambda: latest[0])]


def gathered(makers: Iterable[Maker]) -> list[Contestant]:
    """Contestants of all who can take part; says who cannot."""
    found: list[Contestant] = []
    for maker in makers:
        try:
            found += maker()
        except NotInstalled as reason:
            print(f'Not measured: {reason}.', flush=True)
    return found


def efforts(case: Case, orders: int) -> Array:
    """Efforts of the motion of a case, and derivatives."""
    motion = np.ascontiguousarray(case.motion[:, : orders + 2])
    effort: Array = inverse_dynamics(case.model, motion)
    return effort


def panda(size: Size) -> str:
    """Table of the Panda."""
    case = cases.panda(size.samples)
    few = replace(case, motion=case.motion[:SAMPLES_OF_MATRICES])
    given = {orders: efforts(case, orders) for orders in (1, 3)}
    makers: list[Maker] = [
        partial(pinocchio_cpp.forward_dynamics, case, given[1]),
        partial(pinocchio_python.forward_dynamics, case, given[1]),
    ]
    for effort in given.values():
        makers.append(partial(public, case, effort))
        makers += [partial(kernels, case, effort, which) for which in FORMS]
    # Ratios are to the first of a group, if it is Pinocchio in C++.
    groups = [gathered(makers)]
    for function, orders, peer in TERMS:
        theirs = partial(getattr(pinocchio_cpp, peer), few)
        groups.append(gathered([theirs, partial(term, few, function, orders)]))
    errors = {entry.name: entry for entry in groups[0]}
    yardsticks = {entry.name: group[0].name for group in groups for entry in group}
    timings = race([entry for group in groups for entry in group], size.effort)
    condition = np.linalg.cond(mass_matrix(case.model, case.motion[:, :1])[:, 0])
    lines = [['', 'µs', 'quartiles', 'ratio', 'error', 'beside condition']]
    for name, timing in timings.items():
        cells = _errors(case, condition, errors[name]) if name in errors else ['', '']
        ratio = _ratio(timings, name, yardsticks[name])
        lines.append(
            [name, _microseconds(timing.median), _quartiles(timing), ratio, *cells]
        )
    return grid(lines)


def _errors(case: Case, condition: Array, entry: Contestant) -> list[str]:
    """Largest error, relative to the largest number of its order; beside the condition of M."""
    found = np.asarray(entry.result())
    expected = case.motion[: len(found), 2 : 2 + found.shape[1]]
    error = np.abs(found - expected)
    whole = error.max(axis=(0, 2)) / np.abs(expected).max(axis=(0, 2))
    each = error.max(axis=2) / np.abs(expected).max(axis=2) / condition[: len(found), None]
    return [f'{whole.max():.0e}', f'{each.max():.0e}']


def chains(size: Size) -> str:
    """Table of random chains over the number of joints."""
    columns: list[dict[str, Timing]] = []
    for n in size.joints:
        case = cases.chain(n, max(16, size.samples * 7 // n))
        print(case.name, flush=True)
        given = {orders: efforts(case, orders) for orders in (1, 3)}
        makers: list[Maker] = [partial(pinocchio_cpp.forward_dynamics, case, given[1])]
        for which in FORMS:
            makers += [partial(kernels, case, effort, which) for effort in given.values()]
        columns.append(race(gathered(makers), size.effort))
    names = dict.fromkeys(name for column in columns for name in column)
    lines = [['µs (ratio)', *(f'n = {n}' for n in size.joints)]]
    for name in names:
        line = [name]
        for timings in columns:
            ratio = _ratio(timings, name, pinocchio_cpp.ABA)
            timing = timings.get(name)
            text = '-' if timing is None else _microseconds(timing.median)
            line.append(f'{text} ({ratio})' if ratio else text)
        lines.append(line)
    return grid(lines)


COUNTS = 'operations', 'CasADi', 'CasADi, merged'
TIMES = 'from Python: µs', 'one by one', 'batch', 'CasADi C loop'


def orders_of_panda(size: Size) -> list[dict[str, float]]:
    """Operations and times [µs] of orders 0, 0-1, 0-2, ... by column: ours beside CasADi.

    CasADi counts instructions, with common subexpressions merged or not; what is compiled is
    merged.
    """
    case = cases.panda(max(16, size.samples // 4))
    shape = len(case.motion), size.orders + 3, case.n
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, shape)
    motion[:, 0] *= np.pi
    case = replace(case, motion=motion)
    rows = []
    for order in range(size.orders + 1):
        print(f'order {order}', flush=True)
        effort = efforts(case, order + 1)
        program = engine_of(case.model).program(BodyDynamics(FORWARD, order + 1)).program
        row: dict[str, float] = {COUNTS[0]: program.flops + program.counts()['inverse']}
        ours = gathered([partial(kernels, case, effort, 'mass matrix')])
        alone, _, batch = public(case, effort)
        entries = dict(zip(TIMES, (alone, ours[0] if ours else None, batch)))
        try:
            if order <= size.plain:
                made = casadi_forward.functions(case, order)
                row.update(
                    zip(COUNTS[1:], (function.n_instructions() for function in made))
                )
                if order <= size.compiled:
                    entries[TIMES[3]] = casadi_forward.contestant(case, effort, made.merged)
        except NotInstalled as reason:
            print(f'Not measured: {reason}.', flush=True)
        timings = race([entry for entry in entries.values() if entry], size.effort)
        for name, entry in entries.items():
            if entry:
                row[name] = 1e6 * timings[entry.name].median
        rows.append(row)
    return rows


def orders_text(rows: Sequence[dict[str, float]]) -> str:
    """Table of the orders."""
    lines = [['orders', *COUNTS, *TIMES]]
    for order, row in enumerate(rows):
        cells = [str(row.get(name, '-')) for name in COUNTS]
        cells += [_microseconds(row[name] / 1e6) if name in row else '-' for name in TIMES]
        lines.append([_span(order + 1), *cells])
    return grid(lines)


def draw(rows: Sequence[dict[str, float]], file: Path) -> None:
    """Draw operations and times of compiled code over the order.

    Raises NotInstalled without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise NotInstalled('matplotlib is not installed') from None
    figure = Figure(figsize=(10.0, 4.0), layout='constrained')
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    curves = (
        (left, COUNTS[1], 'CasADi', 'C3s--'),
        (left, COUNTS[2], 'CasADi, common terms merged', 'C1D--'),
        (left, COUNTS[0], 'hodyn_ros', 'C0o-'),
        (right, TIMES[3], 'CasADi, common terms merged', 'C1D--'),
        (right, TIMES[1], 'hodyn_ros, one by one', 'C2^-'),
        (right, TIMES[2], 'hodyn_ros, batch', 'C0o-'),
    )
    for axes, name, label, style in curves:
        # Where there is no compiled code of ours, NumPy answers.
        shown = axes is left or name == TIMES[3]
        points = [
            (k, row[name])
            for k, row in enumerate(rows)
            if name in row and (shown or TIMES[1] in row)
        ]
        if points:
            axes.semilogy(*zip(*points), style, label=label)
    for axes, title in ((left, 'operations'), (right, 'time for a sample [µs]')):
        axes.set_title(title)
        axes.set_xlabel('highest derivative of the accelerations')
        axes.set_xticks(range(len(rows)))
        axes.grid(True, which='both', alpha=0.3)
        axes.legend(fontsize='small', loc='lower right')
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def _span(orders: int) -> str:
    return '0' if orders == 1 else f'0-{orders - 1}'


def _ratio(timings: dict[str, Timing], name: str, yardstick: str) -> str:
    if (
        name not in timings
        or yardstick not in timings
        or not yardstick.startswith('Pinocchio')
    ):
        return ''
    return f'{timings[name].median / timings[yardstick].median:.2f}'


def _microseconds(seconds: float) -> str:
    value = seconds * 1e6
    return f'{value:.3f}' if value < 10.0 else f'{value:.1f}'


def _quartiles(timing: Timing) -> str:
    return '-'.join(
        _microseconds(time) for time in (timing.lower_quartile, timing.upper_quartile)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them into a file."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.forward_dynamics',
        description='Time of forward dynamics with derivatives beside Pinocchio and CasADi.',
    )
    parser.add_argument(
        '--size', choices=SIZES, default='quick', help='how much is measured'
    )
    parser.add_argument(
        '--joints', type=int, nargs='+', help='numbers of joints of the chains'
    )
    parser.add_argument('--picture', type=Path, help='file for the picture of the orders')
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    options = parser.parse_args(arguments)
    size = SIZES[options.size]
    if options.joints:
        size = replace(size, joints=tuple(options.joints))
    parts = [f'.. rubric:: Franka Panda\n\n{panda(size)}']
    parts.append(f'.. rubric:: Random chains\n\n{chains(size)}')
    found = orders_of_panda(size)
    parts.append(
        f'.. rubric:: Franka Panda, orders 0 to {size.orders}\n\n{orders_text(found)}'
    )
    text = '\n'.join(parts)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / 'forward_dynamics.inc').write_text(text, encoding='utf-8')
    if options.picture:
        try:
            draw(found, options.picture)
        except NotInstalled as reason:
            print(f'No picture: {reason}.')
    return 0


if __name__ == '__main__':
    sys.exit(main())
