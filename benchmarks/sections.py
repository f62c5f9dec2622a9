"""The sections of the benchmarks: which contestants meet on which robots, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks import cases, generated_code, ours
from benchmarks.cases import Case
from benchmarks.peers import (
    casadi_derivatives,
    jax_jet,
    mujoco_inverse,
    pinocchio_cpp,
    pinocchio_python,
    skidy_closed_form,
)
from benchmarks.timing import Contestant, Effort, NotInstalled, Timing, race
from hodyn_ros.dynamics.inverse import FORMULATIONS

Maker = Callable[[Case], list[Contestant]]

# Ratios are to the first of these that takes part.
YARDSTICKS = ('Pinocchio C++ rnea', 'pin.rnea from Python')


@dataclass(frozen=True)
class Row:
    """A contestant in a table.

    Attributes
    ----------
    name : str
    order : int
    samples : int
        In one call.
    threads : int
    timing : Timing
    ratio : float or None
        To the yardstick; None without one.
    errors : list of float
        Of each order, relative to the largest value of that order.
    note : str
    """

    name: str
    order: int
    samples: int
    threads: int
    timing: Timing
    ratio: float | None
    errors: list[float]
    note: str


@dataclass(frozen=True)
class Table:
    """What came out for one case.

    Attributes
    ----------
    case : str
    n : int
    yardstick : str or None
        The contestant whose ratio is 1.
    rows : list of Row
    absent : dict of str to str
        Who could not take part, and why.
    """

    case: str
    n: int
    yardstick: str | None
    rows: list[Row]
    absent: dict[str, str]


@dataclass(frozen=True)
class Size:
    """How large the cases are and how long they are measured.

    Attributes
    ----------
    samples : int
        In a batch of a robot with 7 joints; larger robots get fewer, so that a batch takes as
        long.
    sizes : tuple of int
        Numbers of joints of chains and trees.
    arms : tuple of int
        Numbers of joints of planar arms.
    effort : Effort
    """

    samples: int
    sizes: tuple[int, ...]
    arms: tuple[int, ...]
    effort: Effort

    def samples_of(self, n: int) -> int:
        """Return the number of samples in a batch of a robot with n joints."""
        return max(16, self.samples * 7 // n)


SIZES = {
    'tiny': Size(40, (7,), (2,), Effort(3, 1e-4, 0.1)),
    'quick': Size(10_000, cases.SIZES, (2,), Effort(15, 0.01, 0.4)),
    'full': Size(10_000, cases.SIZES, (2, 3), Effort(51, 0.01, 1.5)),
}


@dataclass(frozen=True)
class Section:
    """A part of the benchmarks.

    Attributes
    ----------
    title : str
    cases : callable
        Cases for a size.
    makers : dict of str to callable
        What makes the contestants, by a name for those that cannot take part.
    scaling : bool
        Whether the cases differ in n alone, for a table and a picture over n.
    """

    title: str
    cases: Callable[[Size], Iterable[Case]]
    makers: Mapping[str, Maker] = field(repr=False)
    scaling: bool = False


PINOCCHIO: dict[str, Maker] = {
    'Pinocchio C++': pinocchio_cpp.contestants,
    'Pinocchio from Python': pinocchio_python.contestants,
}
COMPILED: dict[str, Maker] = {
    **PINOCCHIO,
    'CasADi': casadi_derivatives.contestants,
    'MuJoCo C': mujoco_inverse.in_c,
}
FROM_PYTHON: dict[str, Maker] = {
    'MuJoCo from Python': mujoco_inverse.from_python,
    'hodyn_ros from Python': ours.from_python,
    'hodyn_ros from Python, out=': ours.from_python_out,
}

ENGINE: dict[str, Maker] = {
    **ours.ENGINE,
    'hodyn_ros generated C': generated_code.contestants,
}

SECTIONS = {
    'panda': Section(
        'Franka Panda',
        lambda size: [cases.panda(size.samples)],
        {
            **COMPILED,
            'JAX': jax_jet.contestants,
            **FROM_PYTHON,
            'hodyn_ros batch': ours.batch,
            **ENGINE,
        },
    ),
    'chains': Section(
        'Random chains',
        lambda size: (cases.chain(n, size.samples_of(n)) for n in size.sizes),
        {**COMPILED, 'hodyn_ros from Python': ours.from_python, **ENGINE},
        scaling=True,
    ),
    'trees': Section(
        'Random trees',
        lambda size: (cases.tree(n, size.samples_of(n)) for n in size.sizes),
        {**COMPILED, 'hodyn_ros from Python': ours.from_python, **ENGINE},
        scaling=True,
    ),
    'arms': Section(
        'Planar arms, which symbolic tools can handle',
        lambda size: (cases.planar_arm(n, size.samples) for n in size.arms),
        {
            **PINOCCHIO,
            'CasADi': casadi_derivatives.contestants,
            'skidy': skidy_closed_form.contestants,
            **ENGINE,
        },
    ),
    'formulations': Section(
        'Formulations of the package in NumPy, Franka Panda',
        lambda size: [cases.panda(size.samples)],
        {
            **PINOCCHIO,
            **{name: ours.formulation(name) for name in FORMULATIONS},
            **ENGINE,
        },
    ),
}


def measure(
    section: Section, size: Size, say: Callable[[str], object] = print
) -> list[Table]:
    """Measure all cases of a section.

    Parameters
    ----------
    section : Section
    size : Size
    say : callable
        Is told which case is next.

    Returns
    -------
    list of Table
    """
    tables = []
    for case in section.cases(size):
        say(f'{section.title}: {case.name}')
        tables.append(_table(case, section.makers, size.effort))
    return tables


def _table(case: Case, makers: Mapping[str, Maker], effort: Effort) -> Table:
    contestants: list[Contestant] = []
    absent = {}
    for name, maker in makers.items():
        try:
            contestants += maker(case)
        except NotInstalled as reason:
            absent[name] = str(reason)
    timings = race(contestants, effort)
    yardstick = next((name for name in YARDSTICKS if name in timings), None)
    unit = timings[yardstick].median if yardstick else np.nan
    rows = [
        Row(
            entry.name,
            entry.order,
            entry.samples,
            entry.threads,
            timings[entry.name],
            timings[entry.name].median / unit if yardstick else None,
            case.errors(entry.result()),
            entry.note,
        )
        for entry in contestants
    ]
    return Table(case.name, case.n, yardstick, rows, absent)
