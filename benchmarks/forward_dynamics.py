"""Time of forward dynamics with derivatives, and of matrices of inverse dynamics.

The Franka Panda beside Pinocchio in C++, where regressor and partial derivatives of inverse
dynamics have their own peers; random chains, by factors of the mass matrix and by articulated
bodies; the Panda for orders 0 to 8 beside automatic differentiation by CasADi. In each, all take
turns (benchmarks/timing.py); times are medians for a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hodyn_ros
from benchmarks import cases
from benchmarks.cases import Case
from benchmarks.inverse_dynamics import gathered
from benchmarks.peers import casadi_code, pinocchio_cpp, pinocchio_python
from benchmarks.tables import Benchmark, Picture, Table, microseconds, say
from benchmarks.timing import Contestant, Effort, NotInstalled, Timing, race
from hodyn_ros import forward_dynamics, inverse_dynamics, mass_matrix
from hodyn_ros.engine.engine import engine_of, unavailable
from hodyn_ros.engine.program import FORWARD, ProgramTooLong
from hodyn_ros.engine.requests import COMPILED_ROBOT, COMPILED_TREE, KernelRequest

Array = NDArray[np.float64]

ALONE = 100
# Results of these are large: a batch of more would not fit the cache.
SAMPLES_OF_MATRICES = 500
FORMS = {'mass matrix': COMPILED_ROBOT, 'articulated bodies': COMPILED_TREE}
MATRICES: dict[str, tuple[int, Any]] = {
    'regressor': (3, pinocchio_cpp.regressor),
    'inverse_dynamics_derivatives': (1, pinocchio_cpp.partial_derivatives),
}
"""Functions of hodyn_ros, how many orders, and the peers."""


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
        4000, (7, 10, 12, 14, 16, 20, 28, 56, 112), 8, 7, 4, Effort(51, 0.01, 1.5)
    ),
}


def efforts(case: Case, orders: int) -> Array:
    """Efforts of the motion of a case, and derivatives."""
    motion = np.ascontiguousarray(case.motion[:, : orders + 2])
    effort: Array = inverse_dynamics(case.model, motion)
    return effort


def public(case: Case, effort: Array) -> list[Contestant]:
    """Contestants of the public function: one sample a call, into a given array, a batch."""
    model, orders = case.model, effort.shape[1]
    state = np.ascontiguousarray(case.motion[: len(effort), :2])
    model.warm_up(0, lambda: forward_dynamics(model, state[0], effort[0]))
    given = np.empty((min(ALONE, len(state)), *effort.shape[1:]))
    rows = list(zip(state, effort, given))
    latest: dict[str, Any] = {}

    def alone() -> None:
        latest['alone'] = [forward_dynamics(model, x, Q) for x, Q, _ in rows]

    def into() -> None:
        for x, Q, result in rows:
            forward_dynamics(model, x, Q, out=result)

    def batch() -> None:
        latest['batch'] = forward_dynamics(model, state, effort)

    name, order = f'forward_dynamics, orders {_span(orders)}', orders - 1
    return [
        Contestant(f'{name}, alone', order, len(rows), alone, lambda: latest['alone']),
        Contestant(f'{name}, alone, out=', order, len(rows), into, lambda: given),
        Contestant(f'{name}, batch', order, len(state), batch, lambda: latest['batch']),
    ]


def kernels(case: Case, effort: Array, which: str) -> list[Contestant]:
    """Contestants of the machine code of one algorithm: samples one by one, side by side."""
    reason = unavailable()
    if reason:
        raise NotInstalled(str(reason))
    orders = effort.shape[1]
    request = KernelRequest(FORWARD, orders + 2, form=FORMS[which])
    kernel = engine_of(case.model).prepare(request)
    if kernel is None:
        raise NotInstalled(f'orders {_span(orders)}: the program is too long to compile')
    state = np.ascontiguousarray(case.motion[: len(effort), :2])
    found = np.empty(effort.shape)

    def run(together: bool) -> None:
        kernel.evaluate(state, effort, found, together=together)

    return [
        Contestant(
            f'{which}, orders {_span(orders)}, {way}',
            orders - 1,
            len(effort),
            partial(run, together),
            lambda: found,
        )
        for way, together in (('one by one', False), ('batch', True))
    ]


def matrices(case: Case, function: str, orders: int) -> list[Contestant]:
    """Contestant of a batch of matrices."""
    call = getattr(hodyn_ros, function)
    motion = np.ascontiguousarray(case.motion[:, : orders + 2])
    case.model.warm_up(0, lambda: call(case.model, motion[0]))
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [call(case.model, motion)]

    name = f'{function}, orders {_span(orders)}, batch'
    return [Contestant(name, orders - 1, len(motion), run, lambda: latest[0])]


def panda(size: Size) -> Table:
    """Table of the Panda; each matrix is a group with its own peer."""
    case = cases.panda(size.samples)
    few = replace(case, motion=case.motion[:SAMPLES_OF_MATRICES])
    given = {orders: efforts(case, orders) for orders in (1, 3)}
    makers = {
        pinocchio_cpp.ABA: partial(pinocchio_cpp.forward_dynamics, case, given[1]),
        'pin.aba from Python': partial(pinocchio_python.forward_dynamics, case, given[1]),
    }
    for orders, effort in given.items():
        makers[f'forward_dynamics, {orders}'] = partial(public, case, effort)
        for which in FORMS:
            makers[f'{which}, {orders}'] = partial(kernels, case, effort, which)
    groups = [gathered(makers)]
    for function, (orders, peer) in MATRICES.items():
        ours = partial(matrices, few, function, orders)
        groups.append(gathered({f'peer of {function}': partial(peer, few), function: ours}))
    timings = race([entry for found, _ in groups for entry in found], size.effort)
    condition = np.linalg.cond(mass_matrix(case.model, case.motion[:, :1])[:, 0])
    rows = []
    for number, (found, _) in enumerate(groups):
        for entry in found:
            timing = timings[entry.name]
            quartiles = timing.lower_quartile, timing.upper_quartile
            rows.append(
                [
                    entry.name,
                    microseconds(timing.median),
                    '-'.join(map(microseconds, quartiles)),
                    _ratio(timings, entry.name, found[0].name),
                    *(['', ''] if number else _errors(case, condition, entry)),
                ]
            )
    header = ('', 'µs', 'quartiles', 'ratio', 'error', 'beside condition')
    absent = [reason for _, reasons in groups for reason in reasons]
    return Table('Franka Panda', header, rows, absent)


def _errors(case: Case, condition: Array, entry: Contestant) -> list[str]:
    """Largest error, relative to the largest number of its order; beside the condition of M."""
    found = np.asarray(entry.result())
    expected = case.motion[: len(found), 2 : 2 + found.shape[1]]
    error = np.abs(found - expected)
    whole = error.max(axis=(0, 2)) / np.abs(expected).max(axis=(0, 2))
    each = error.max(axis=2) / np.abs(expected).max(axis=2) / condition[: len(found), None]
    return [f'{whole.max():.0e}', f'{each.max():.0e}']


def chains(size: Size) -> Table:
    """Table of random chains over the number of joints."""
    columns: list[dict[str, Timing]] = []
    for n in size.joints:
        case = cases.chain(n, max(16, size.samples * 7 // n))
        say(case.name)
        given = {orders: efforts(case, orders) for orders in (1, 3)}
        makers = {
            pinocchio_cpp.ABA: partial(pinocchio_cpp.forward_dynamics, case, given[1])
        }
        for which in FORMS:
            for orders, effort in given.items():
                makers[f'{which}, {orders}'] = partial(kernels, case, effort, which)
        columns.append(race(gathered(makers)[0], size.effort))
    rows = []
    for name in dict.fromkeys(name for column in columns for name in column):
        row = [name]
        for timings in columns:
            ratio = _ratio(timings, name, pinocchio_cpp.ABA)
            text = microseconds(timings[name].median) if name in timings else '-'
            row.append(f'{text} ({ratio})' if ratio else text)
        rows.append(row)
    return Table('Random chains', ['µs (ratio)', *(f'n = {n}' for n in size.joints)], rows)


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
        say(f'order {order}')
        effort = efforts(case, order + 1)
        row: dict[str, float] = {}
        with suppress(ProgramTooLong):  # such orders are computed one after the other
            program = (
                engine_of(case.model).program(KernelRequest(FORWARD, order + 3)).program
            )
            row[COUNTS[0]] = program.flops + program.counts()['inverse']
        alone, _, batch = public(case, effort)
        entries = {TIMES[0]: alone, TIMES[2]: batch}
        ours, _ = gathered({'': partial(kernels, case, effort, 'mass matrix')})
        if ours:
            entries[TIMES[1]] = ours[0]
        try:
            if order <= size.plain:
                made = casadi_code.forward_functions(case, order)
                counted = (function.n_instructions() for function in made)
                row.update(zip(COUNTS[1:], counted))
                if order <= size.compiled:
                    entries[TIMES[3]] = casadi_code.forward_dynamics(
                        case, effort, made.merged
                    )
        except NotInstalled as reason:
            say(f'CasADi is not measured: {reason}')
        timings = race(list(entries.values()), size.effort)
        row |= {name: 1e6 * timings[entry.name].median for name, entry in entries.items()}
        rows.append(row)
    return rows


def orders_table(rows: Sequence[dict[str, float]]) -> Table:
    """Table of the orders."""
    lines = []
    for order, row in enumerate(rows):
        cells = [str(row.get(name, '-')) for name in COUNTS]
        cells += [microseconds(row[name] / 1e6) if name in row else '-' for name in TIMES]
        lines.append([_span(order + 1), *cells])
    title = f'Franka Panda, orders 0 to {len(rows) - 1}'
    return Table(title, ['orders', *COUNTS, *TIMES], lines)


def draw(rows: Sequence[dict[str, float]], figure: Any) -> None:
    """Draw operations and times of compiled code over the order."""
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


def _span(orders: int) -> str:
    return '0' if orders == 1 else f'0-{orders - 1}'


def _ratio(timings: dict[str, Timing], name: str, yardstick: str) -> str:
    """Quotient to a row, if that is Pinocchio in C++."""
    if not {name, yardstick} <= set(timings) or not yardstick.startswith('Pinocchio'):
        return ''
    return f'{timings[name].median / timings[yardstick].median:.2f}'


def measure(size: Size) -> list[Table | Picture]:
    """Measure everything."""
    tables = [panda(size), chains(size)]
    orders = orders_of_panda(size)
    return [*tables, orders_table(orders), Picture((10.0, 4.0), partial(draw, orders))]


BENCHMARKS = {
    'forward_dynamics': Benchmark('Forward dynamics with derivatives', SIZES, measure)
}
