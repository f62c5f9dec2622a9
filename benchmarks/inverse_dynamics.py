"""Times and errors of joint torques with two derivatives: ours beside other tools.

Each table is a robot, each row a contestant. All take turns (benchmarks/timing.py); the ratio is
to the loop in C++ over Pinocchio's `rnea`, which computes the torques alone. Errors are the
largest of all samples, relative to the largest torque of the order, against power series.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import cases, compilation
from benchmarks.cases import Case
from benchmarks.peers import (
    casadi_code,
    jax_jet,
    mujoco_inverse,
    pinocchio_cpp,
    pinocchio_python,
)
from benchmarks.tables import Benchmark, Picture, Table, microseconds, say
from benchmarks.timing import Contestant, Effort, NotInstalled, Timing, race
from hodyn_ros import RobotModel, generate_code, inverse_dynamics
from hodyn_ros.dynamics.inverse import FORMULATIONS
from hodyn_ros.engine.engine import MOST_BODIES, engine_of, unavailable
from hodyn_ros.engine.requests import COMPILED_ROBOT, COMPILED_TREE, EFFORTS, KernelRequest

Array = NDArray[np.float64]
Maker = Callable[[Case], list[Contestant]]

# Ratios are to the first of these that takes part.
YARDSTICKS = ('Pinocchio C++ rnea', 'pin.rnea from Python')
SAMPLES_FROM_PYTHON = 100
SMALL_BATCHES = (16, 64)
# A formulation in NumPy is a hundred times as slow as compiled code.
SAMPLES_OF_FORMULATIONS = 512
LARGEST_GENERATED = 28  # joints, beyond which the compiler takes too long
LOOP_OF_GENERATED = """
void loop(size_t samples, const double *motion, double *effort)
{
  size_t i;
  for (i = 0; i < samples; ++i) {
    robot_inverse_dynamics_%d(motion + i * %d, effort + i * %d);
  }
}
"""

# --- Contestants of ours ----------------------------------------------------------------------


def formulation(algorithm: str, case: Case) -> list[Contestant]:
    """Contestant of one formulation in NumPy, on a batch."""
    motion = case.motion[:SAMPLES_OF_FORMULATIONS]
    highest = FORMULATIONS[algorithm].highest_order
    orders = 2 if highest is None else min(highest, 2)
    motion = np.ascontiguousarray(motion[:, : orders + 3])
    return _of_function(
        f'{algorithm}, NumPy',
        motion,
        lambda: inverse_dynamics(case.model, motion, algorithm=algorithm),
    )


def batch(case: Case) -> list[Contestant]:
    """Contestant of the public function on the whole batch, as it chooses itself."""
    case.model.warm_up(case.order)
    return _of_function(
        'hodyn_ros batch', case.motion, lambda: inverse_dynamics(case.model, case.motion)
    )


def _of_function(
    name: str, motion: Array, function: Callable[[], Array]
) -> list[Contestant]:
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [function()]

    return [Contestant(name, motion.shape[1] - 3, len(motion), run, lambda: latest[0])]


def from_python(case: Case) -> list[Contestant]:
    """Contestants of the public function for one sample: with a new array, into a given one."""
    model, motion = case.model, case.motion[:SAMPLES_FROM_PYTHON]
    model.warm_up(case.order)
    given = np.empty((len(motion), motion.shape[1] - 2, motion.shape[2]))
    samples, pairs = list(motion), list(zip(motion, given))
    latest: list[Array] = []

    def new() -> None:
        latest[:] = [inverse_dynamics(model, sample) for sample in samples]

    def into() -> None:
        for sample, effort in pairs:
            inverse_dynamics(model, sample, out=effort)

    name = 'hodyn_ros from Python'
    return [
        Contestant(name, case.order, len(motion), new, lambda: np.array(latest)),
        Contestant(f'{name}, out=', case.order, len(motion), into, lambda: given),
    ]


def small_batches(case: Case) -> list[Contestant]:
    """Contestants of the public function for as many samples a call as a planner looks ahead."""
    case.model.warm_up()
    found: list[Contestant] = []
    for count in SMALL_BATCHES:
        last = min(max(count, SAMPLES_FROM_PYTHON), len(case.motion))
        parts = [case.motion[k : k + count] for k in range(0, last, count)]
        name = f'hodyn_ros from Python, {count} a call'
        found.append(_of_parts(name, case.model, parts))
    return found


def _of_parts(name: str, model: RobotModel, parts: list[Array]) -> Contestant:
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [inverse_dynamics(model, part) for part in parts]

    return Contestant(name, 2, sum(map(len, parts)), run, lambda: np.concatenate(latest))


class Kernel(NamedTuple):
    """Contestant of a kernel of the engine, on the batch."""

    name: str
    form: str
    """See `hodyn_ros.engine.engine`."""
    together: bool = True
    """Whether samples are computed side by side in the vector registers, or one by one."""
    threads: int = 1
    single: bool = False
    """Whether in single precision, a motion that is of it, too."""

    def __call__(self, case: Case) -> list[Contestant]:
        """Contestant for a case."""
        if unavailable():
            raise NotInstalled(str(unavailable()))
        if self.form != COMPILED_TREE and case.model.n_bodies > MOST_BODIES:
            raise NotInstalled(f'straight-line code is for up to {MOST_BODIES} bodies')
        (samples, K, n), dtype = (
            case.motion.shape,
            np.float32 if self.single else np.float64,
        )
        made = engine_of(case.model).prepare(
            KernelRequest(EFFORTS, K, form=self.form, single=self.single)
        )
        if made is None:
            raise NotInstalled(f'derivatives up to order {K - 3} are not compiled')
        motion, efforts = case.motion.astype(dtype), np.empty((samples, K - 2, n), dtype)
        options = {} if self.together else {'together': False}

        def run() -> None:
            made.evaluate(motion, None, efforts, self.threads, **options)

        return [Contestant(self.name, K - 3, samples, run, lambda: efforts, self.threads)]


def _generated(case: Case) -> str:
    """C code that `generate_code` writes, with its header in it."""
    if case.n > LARGEST_GENERATED:
        raise NotInstalled(
            f'the code for more than {LARGEST_GENERATED} joints takes too long to compile'
        )
    with tempfile.TemporaryDirectory() as folder:
        generate_code(case.model, folder, language='c', order=(case.order,), name='robot')
        header, source = (
            (Path(folder) / f'robot_dynamics.{suffix}').read_text() for suffix in ('h', 'c')
        )
    return source.replace('#include "robot_dynamics.h"', header)


def generated_c(case: Case) -> list[Contestant]:
    """Contestants of the C code that `generate_code` writes: in a C loop, and of many samples."""
    (samples, K, n), source = case.motion.shape, _generated(case)
    source += LOOP_OF_GENERATED % (K - 3, K * n, (K - 2) * n)
    flags = ('-std=c99', '-ffp-contract=fast', '-fno-math-errno', '-lm')
    code = compilation.load(compilation.library(f'generated_{n}', source, 'c', flags))

    def contestant(how: str, function: Callable[..., object]) -> Contestant:
        efforts = np.empty((samples, K - 2, n))
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in (case.motion, efforts))
        run = partial(function, ctypes.c_size_t(samples), *pointers)
        name = f'hodyn_ros generated C, {how}'
        return Contestant(name, K - 3, samples, run, lambda: efforts)

    return [
        contestant('one by one', code.loop),
        contestant('batch', getattr(code, f'robot_inverse_dynamics_{K - 3}_batch')),
    ]


# --- Robots and who meets on them -------------------------------------------------------------

PINOCCHIO: dict[str, Maker] = {
    'Pinocchio C++': pinocchio_cpp.inverse_dynamics,
    'Pinocchio from Python': pinocchio_python.inverse_dynamics,
}
COMPILED: dict[str, Maker] = {
    **PINOCCHIO,
    'CasADi': casadi_code.inverse_dynamics,
    'MuJoCo C': mujoco_inverse.in_c,
}
OURS: dict[str, Maker] = {
    **{
        kernel.name: kernel
        for kernel in (
            Kernel('hodyn_ros any tree, one by one', COMPILED_TREE, together=False),
            Kernel('hodyn_ros any tree, batch', COMPILED_TREE),
            Kernel('hodyn_ros this robot, one by one', COMPILED_ROBOT, together=False),
            Kernel('hodyn_ros this robot, batch', COMPILED_ROBOT),
            Kernel('hodyn_ros any tree, single', COMPILED_TREE, single=True),
            Kernel('hodyn_ros this robot, single', COMPILED_ROBOT, single=True),
            Kernel('hodyn_ros any tree, 2 threads', COMPILED_TREE, threads=2),
            Kernel('hodyn_ros this robot, 2 threads', COMPILED_ROBOT, threads=2),
        )
    },
    'hodyn_ros generated C': generated_c,
}


@dataclass(frozen=True)
class Size:
    """How large the cases are and how long they are measured.

    Attributes
    ----------
    samples : int
        In a batch of a robot with 7 joints; larger robots get fewer, so that a batch takes as
        long.
    joints : tuple of int
        Of chains and trees.
    effort : Effort
    """

    samples: int
    joints: tuple[int, ...]
    effort: Effort

    def of_joints(self, make: Callable[[int, int], Case]) -> Iterable[Case]:
        """Robots of all numbers of joints."""
        return (make(n, max(16, self.samples * 7 // n)) for n in self.joints)


SIZES = {
    'tiny': Size(40, (7,), Effort(3, 1e-4, 0.1)),
    'quick': Size(10_000, cases.SIZES, Effort(15, 0.01, 0.4)),
    'full': Size(10_000, cases.SIZES, Effort(51, 0.01, 1.5)),
}


class Section(NamedTuple):
    """A benchmark: its cases, and what makes the contestants, by who cannot take part."""

    title: str
    cases: Callable[[Size], Iterable[Case]]
    makers: Mapping[str, Maker]


PANDA: Callable[[Size], Iterable[Case]] = lambda size: [cases.panda(size.samples)]  # noqa: E731
SECTIONS = {
    'panda': Section(
        'Franka Panda',
        PANDA,
        {
            **COMPILED,
            'JAX': jax_jet.contestants,
            'MuJoCo from Python': mujoco_inverse.from_python,
            'hodyn_ros from Python': from_python,
            'hodyn_ros small batches': small_batches,
            'hodyn_ros batch': batch,
            **OURS,
        },
    ),
    'chains': Section(
        'Random chains',
        lambda size: size.of_joints(cases.chain),
        {**COMPILED, 'hodyn_ros from Python': from_python, **OURS},
    ),
    'trees': Section(
        'Random trees',
        lambda size: size.of_joints(cases.tree),
        {**COMPILED, 'hodyn_ros from Python': from_python, **OURS},
    ),
    'formulations': Section(
        'Formulations of the package in NumPy, Franka Panda',
        PANDA,
        {
            **PINOCCHIO,
            **{name: partial(formulation, name) for name in FORMULATIONS},
            **OURS,
        },
    ),
}

# --- Measuring --------------------------------------------------------------------------------


def gathered(
    makers: Mapping[str, Callable[[], list[Contestant]]],
) -> tuple[list[Contestant], list[str]]:
    """Contestants of all who can take part, and who cannot, with the reason."""
    found: list[Contestant] = []
    absent = []
    for name, maker in makers.items():
        try:
            found += maker()
        except NotInstalled as reason:
            absent.append(f'- {name} is not measured: {reason}')
    return found, absent


class Measured(NamedTuple):
    """What came out for one case."""

    case: Case
    entries: list[Contestant]
    absent: list[str]
    timings: dict[str, Timing]
    yardstick: str | None
    """The contestant whose ratio is 1."""

    def ratio(self, name: str) -> float:
        """Time of a contestant by that of the yardstick; NaN without one."""
        if self.yardstick is None:
            return np.nan
        return self.timings[name].median / self.timings[self.yardstick].median


def measured(case: Case, makers: Mapping[str, Maker], effort: Effort) -> Measured:
    """Time all contestants of a case."""
    say(case.name)
    entries, absent = gathered({name: partial(make, case) for name, make in makers.items()})
    timings = race(entries, effort)
    yardstick = next((name for name in YARDSTICKS if name in timings), None)
    return Measured(case, entries, absent, timings, yardstick)


def table(title: str, found: Measured) -> Table:
    """Contestants of a case: time of a sample, ratio to the yardstick, errors."""
    rows = []
    for entry in found.entries:
        timing = found.timings[entry.name]
        errors = () if entry.result is None else found.case.errors(entry.result())
        quartiles = (timing.lower_quartile, timing.upper_quartile)
        notes = [entry.note] if entry.note else []
        if entry.threads > 1 or timing.processors > 1.2:
            notes.append(f'{timing.processors:.1f} processors busy')
        rows.append(
            [
                entry.name,
                '0' if entry.order == 0 else f'0-{entry.order}',
                microseconds(timing.median),
                '-'.join(map(microseconds, quartiles)),
                f'{found.ratio(entry.name):.2f}',
                *(f'{error:.0e}' for error in errors),
                *[''] * (3 - len(errors)),
                ', '.join(notes),
            ]
        )
    header = (
        '',
        'orders',
        'µs',
        'quartiles',
        'ratio',
        'error Q',
        'error Qd',
        'error Q2d',
        '',
    )
    return Table(title, header, rows, [f'Ratios are to {found.yardstick}.', *found.absent])


def scaling(title: str, results: Sequence[Measured]) -> Table:
    """Times over the number of joints, with the ratios to the yardstick."""
    names = dict.fromkeys(name for found in results for name in found.timings)
    rows = []
    for name in names:
        cells = [
            f'{microseconds(found.timings[name].median)} ({found.ratio(name):.2f})'
            if name in found.timings
            else '-'
            for found in results
        ]
        rows.append([name, *cells])
    return Table(title, ['µs (ratio)', *(f'n = {found.case.n}' for found in results)], rows)


def draw(title: str, results: Sequence[Measured], figure: Any) -> None:
    """Draw the times over the number of joints, both axes logarithmic."""
    axes = figure.add_subplot()
    orders = {entry.name: entry.order for found in results for entry in found.entries}
    for index, (name, order) in enumerate(orders.items()):
        points = [
            (found.case.n, found.timings[name].median * 1e6)
            for found in results
            if name in found.timings
        ]
        ours = name.startswith('hodyn_ros')
        axes.loglog(
            *zip(*points),
            marker='os^vD<>Pp*X'[index % 11],
            linestyle='-' if ours else '--',
            linewidth=1.8 if ours else 1.0,
            label=name + (' (Q alone)' if order == 0 else ''),
        )
    sizes = [found.case.n for found in results]
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.set_xlabel('joints')
    axes.set_ylabel('time per sample [µs]')
    axes.set_title(f'{title}: Q and its first two derivatives')
    axes.grid(True, which='both', alpha=0.3)
    # Beside the lines, which fill the axes.
    figure.legend(fontsize='small', loc='outside right upper')


def measure(section: Section, size: Size) -> list[Table | Picture]:
    """Measure all cases of a section."""
    results = [measured(case, section.makers, size.effort) for case in section.cases(size)]
    if len(results) == 1:
        return [table(section.title, results[0])]
    return [
        scaling(section.title, results),
        *(table(found.case.name, found) for found in results),
        Picture((10.5, 5.5), partial(draw, section.title, results)),
    ]


BENCHMARKS = {
    name: Benchmark(section.title, SIZES, partial(measure, section))
    for name, section in SECTIONS.items()
}
