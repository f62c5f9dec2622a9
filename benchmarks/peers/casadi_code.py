"""CasADi: the recursive Newton-Euler algorithm, differentiated automatically, as compiled C code.

Time derivatives are directional derivatives along the motion, taken again and again. Accelerations
are those of the mass matrix, its factors and the recursive Newton-Euler algorithm. Of builds that
compute the same, one may take 1.5 times as long as another, depending on the robot; so several of
the efforts are made, and the fastest takes part.
"""

from __future__ import annotations

import ctypes
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import compilation, newton_euler
from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled

Array = NDArray[np.float64]

# Straight-line code grows with the robot; beyond this the compiler takes minutes.
LARGEST = 28
MANY_BUILDS_UP_TO = 14
SAMPLES_FROM_PYTHON = 20
NAME = 'CasADi C loop'
FUNCTION = 'code'  # name of functions, as the loop calls them


class Build(NamedTuple):
    """A way from expressions to machine code."""

    merges: bool = True
    """Whether CasADi merges common subexpressions before it generates code."""
    flags: tuple[str, ...] = ('-fno-math-errno', '-lm')


BUILDS = (
    Build(),
    Build(merges=False),
    Build(flags=('-fno-math-errno', '-fno-tree-slp-vectorize', '-lm')),
)

# The generated function knows nothing of a batch.
LOOP = """
void loop(long samples, long given, long found, const double *from, double *to) {
  static double work[WORK];
  static long long integers[INTEGERS];
  for (long i = 0; i < samples; ++i) {
    const double *arguments[ARGUMENTS] = {from + i * given};
    double *results[RESULTS] = {to + i * found};
    code(arguments, results, integers, work, 0);
  }
}
"""


def casadi() -> Any:
    """Import CasADi; raises NotInstalled."""
    try:
        import casadi
    except ImportError:
        raise NotInstalled('casadi is not installed') from None
    return casadi


def newton_euler_efforts(
    case: Case, gravity: Sequence[float] | Array, q: Any, qd: Any, q2d: Any
) -> Any:
    """Efforts of scalars, which leave out products with constants that are zero."""
    ca = casadi()
    use = newton_euler.Arithmetic(ca.sin, ca.cos, ca.SX, ca.cross)
    return ca.vertcat(*newton_euler.efforts(use, case.bodies, gravity, q, qd, q2d))


def inverse_dynamics(case: Case, builds: int = len(BUILDS)) -> list[Contestant]:
    """Efforts with their derivatives in a C loop: the fastest of so many builds."""
    if case.n > LARGEST:
        raise NotInstalled(
            f'the code for more than {LARGEST} joints takes too long to compile'
        )
    samples, K, n = case.motion.shape
    motion, result = efforts_with_derivatives(case)
    efforts = np.empty((samples, K - 2, n))

    def loop_of(build: Build) -> tuple[Callable[[], None], int]:
        function = _function(motion, casadi().cse(result) if build.merges else result)
        name = f'casadi_{n}_{K - 3}'
        loop = _compiled(function, name, build.flags, case.motion, efforts)
        return loop, function.n_instructions()

    loops = [loop_of(build) for build in BUILDS[: builds if n <= MANY_BUILDS_UP_TO else 1]]
    run, count = loops[_fastest([run for run, _ in loops])]
    note = f'{count} instructions'
    return [Contestant(NAME, K - 3, samples, run, lambda: efforts, note=note)]


def from_python(case: Case) -> list[Contestant]:
    """Efforts with their derivatives by CasADi's own interpreter, one sample a call."""
    (_, K, n), samples = case.motion.shape, case.motion[:SAMPLES_FROM_PYTHON]
    function, latest = _function(*efforts_with_derivatives(case)), list[Any]()

    def run() -> None:
        latest[:] = [function(sample.ravel()) for sample in samples]

    def result() -> Array:
        return np.array([found.full() for found in latest]).reshape(-1, K - 2, n)

    note = f'{function.n_instructions()} instructions'
    return [Contestant('CasADi from Python', K - 3, len(samples), run, result, note=note)]


def efforts_with_derivatives(case: Case) -> tuple[Any, Any]:
    """A motion (K n) and its efforts with derivatives ((K - 2) n), as expressions of CasADi."""
    ca, (_, K, n) = casadi(), case.motion.shape
    motion = ca.SX.sym('motion', K * n)
    q = ca.vertsplit(motion, n)
    orders = [newton_euler_efforts(case, case.model.gravity, *q[:3])]
    for order in range(1, K - 2):
        state, rates = ca.vertcat(*q[: 2 + order]), ca.vertcat(*q[1 : 3 + order])
        orders.append(ca.jtimes(orders[-1], state, rates))
    return motion, ca.vertcat(*orders)


class Forward(NamedTuple):
    """Functions from positions, velocities, and efforts with derivatives to accelerations."""

    plain: Any
    merged: Any
    """The same with common subexpressions merged."""


def forward_functions(case: Case, order: int) -> Forward:
    """Accelerations with derivatives up to an order, as functions of CasADi."""
    ca, n = casadi(), case.n
    given = ca.SX.sym('given', (order + 3) * n)
    q, qd, *Q = ca.vertsplit(given, n)
    zero, units = ca.SX(n, 1), ca.horzsplit(ca.SX.eye(n))
    columns = (newton_euler_efforts(case, np.zeros(3), q, zero, unit) for unit in units)
    bias = newton_euler_efforts(case, case.model.gravity, q, qd, zero)
    orders = [ca.ldl_solve(Q[0] - bias, *ca.ldl(ca.horzcat(*columns)))]
    for k in range(order):
        state = ca.vertcat(q, qd, *Q[: k + 1])
        rates = ca.vertcat(qd, orders[0], *Q[1 : k + 2])
        orders.append(ca.jtimes(orders[-1], state, rates))
    result = ca.vertcat(*orders)
    return Forward(_function(given, result), _function(given, ca.cse(result)))


def forward_dynamics(case: Case, effort: Array, merged: Any) -> Contestant:
    """C loop over samples whose efforts have shape (N, orders, n)."""
    samples, orders, n = effort.shape
    given = np.concatenate([case.motion[:samples, :2], effort], axis=1)
    found, name = np.empty(effort.shape), f'casadi_forward_{n}_{orders - 1}'
    run = _compiled(merged, name, BUILDS[0].flags, given, found)
    return Contestant(NAME, orders - 1, samples, run, lambda: found)


def _function(given: Any, result: Any) -> Any:
    return casadi().Function(FUNCTION, [given], [result])


def _fastest(candidates: Sequence[Callable[[], None]]) -> int:
    shortest = [math.inf] * len(candidates)
    for _ in range(5):
        for i, candidate in enumerate(candidates):
            start = time.perf_counter()
            candidate()
            shortest[i] = min(shortest[i], time.perf_counter() - start)
    return shortest.index(min(shortest))


def _compiled(
    function: Any, name: str, flags: Sequence[str], given: Array, found: Array
) -> Callable[[], None]:
    """Compile a function; what goes through all samples of C-contiguous arrays."""
    generator = casadi().CodeGenerator('code.c')
    generator.add(function)
    with tempfile.TemporaryDirectory() as folder:
        generator.generate(folder + '/')
        source = (Path(folder) / 'code.c').read_text()
    sizes = {
        'WORK': function.sz_w(),
        'INTEGERS': function.sz_iw(),
        'ARGUMENTS': function.sz_arg(),
        'RESULTS': function.sz_res(),
    }
    code = LOOP
    for key, size in sizes.items():
        code = code.replace(f'[{key}]', f'[{max(size, 1)}]')
    loop = compilation.load(compilation.library(name, source + code, 'c', flags)).loop
    loop.restype = None
    loop.argtypes = [*[ctypes.c_long] * 3, *[ctypes.c_void_p] * 2]
    sizes_of_samples = given[0].size, found[0].size

    def run() -> None:
        loop(len(given), *sizes_of_samples, given.ctypes.data, found.ctypes.data)

    return run
