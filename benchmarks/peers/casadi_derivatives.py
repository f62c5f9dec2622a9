"""CasADi: the recursive Newton-Euler algorithm, differentiated automatically, as compiled C code.

The time derivatives are directional derivatives along the motion, taken twice. Of builds that
compute the same, one may take 1.5 times as long as another, depending on the robot; so several are
made, and the fastest takes part.
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
SAMPLES_FROM_PYTHON = 200
MANY_BUILDS_UP_TO = 14


class Build(NamedTuple):
    """A way from expressions to machine code."""

    merges: bool
    """Whether CasADi merges common subexpressions before it generates code."""
    flags: tuple[str, ...]


BUILDS = (
    Build(True, ('-fno-math-errno', '-lm')),
    Build(False, ('-fno-math-errno', '-lm')),
    Build(True, ('-fno-math-errno', '-fno-tree-slp-vectorize', '-lm')),
)

# The generated function knows nothing of a batch.
LOOP = """
void loop(long samples, long K_n, long orders_n, const double *motion, double *efforts) {
  static double work[WORK];
  static long long integers[INTEGERS];
  for (long i = 0; i < samples; ++i) {
    const double *arguments[ARGUMENTS] = {motion + i * K_n};
    double *results[RESULTS] = {efforts + i * orders_n};
    efforts_function(arguments, results, integers, work, 0);
  }
}
"""


class Compiled(NamedTuple):
    """A function (motion) -> efforts with derivatives, compiled."""

    instructions: int
    path: Path
    loop: Any


def contestants(case: Case) -> list[Contestant]:
    """Efforts with two derivatives: in a C loop, and singly from Python with bound buffers."""
    ca = casadi()
    if case.n > LARGEST:
        raise NotInstalled(
            f'the code for more than {LARGEST} joints takes too long to compile'
        )
    samples, K, n = case.motion.shape
    efforts = np.empty((samples, K - 2, n))

    def batch_of(compiled: Compiled) -> None:
        compiled.loop(samples, K * n, 3 * n, case.motion.ctypes.data, efforts.ctypes.data)

    builds = BUILDS if n <= MANY_BUILDS_UP_TO else BUILDS[:1]
    compiled = _fastest([_compiled(ca, case, build) for build in builds], batch_of)
    single = _Single(ca.external('efforts_function', str(compiled.path)), case)
    note = f'{compiled.instructions} instructions'
    return [
        Contestant(
            'CasADi C loop',
            2,
            samples,
            lambda: batch_of(compiled),
            lambda: efforts,
            note=note,
        ),
        Contestant(
            'CasADi C from Python, bound buffers',
            2,
            len(single.motion),
            single.run,
            lambda: single.efforts,
        ),
    ]


class _Single:
    """The compiled function called from Python for one sample at a time.

    Its arguments are bound beforehand, to another sample for each call, so nothing is copied.
    """

    def __init__(self, function: Any, case: Case) -> None:
        self.motion = case.motion[:SAMPLES_FROM_PYTHON]
        self.efforts = np.empty((len(self.motion), 3, case.n))
        self._bound = [function.buffer() for _ in self.motion]
        for (buffer, _), sample, result in zip(self._bound, self.motion, self.efforts):
            buffer.set_arg(0, sample.data)
            buffer.set_res(0, result.data)
        self._calls = [call for _, call in self._bound]

    def run(self) -> None:
        """Go through the samples."""
        for call in self._calls:
            call()


def casadi() -> Any:
    """Import CasADi; raises NotInstalled."""
    try:
        import casadi
    except ImportError:
        raise NotInstalled('casadi is not installed') from None
    return casadi


def _fastest(candidates: list[Compiled], run: Callable[[Compiled], None]) -> Compiled:
    shortest = [math.inf] * len(candidates)
    for _ in range(5):
        for i, candidate in enumerate(candidates):
            start = time.perf_counter()
            run(candidate)
            shortest[i] = min(shortest[i], time.perf_counter() - start)
    return candidates[shortest.index(min(shortest))]


def _compiled(ca: Any, case: Case, build: Build) -> Compiled:
    K, n = case.motion.shape[1:]
    motion = ca.SX.sym('motion', K * n)
    q = [motion[k * n : (k + 1) * n] for k in range(K)]
    joints = [ca.vertsplit(values) for values in q[:3]]
    efforts = newton_euler.efforts(case.bodies, case.model.gravity, *joints, ca.sin, ca.cos)
    derivatives = [ca.vertcat(*efforts)]
    for order in range(1, 3):
        state, rates = ca.vertcat(*q[: 2 + order]), ca.vertcat(*q[1 : 3 + order])
        derivatives.append(ca.jtimes(derivatives[-1], state, rates))
    result = ca.vertcat(*derivatives)
    if build.merges:
        result = ca.cse(result)
    function = ca.Function('efforts_function', [motion], [result])
    return compiled(function, f'casadi_{case.n}', build.flags)


def compiled(function: Any, name: str, flags: Sequence[str]) -> Compiled:
    """Compile a function of CasADi, `efforts_function`, with one argument and one result."""
    generator = casadi().CodeGenerator('efforts.c')
    generator.add(function)
    with tempfile.TemporaryDirectory() as folder:
        generator.generate(folder + '/')
        source = (Path(folder) / 'efforts.c').read_text()
    sizes = {
        'WORK': function.sz_w(),
        'INTEGERS': function.sz_iw(),
        'ARGUMENTS': function.sz_arg(),
        'RESULTS': function.sz_res(),
    }
    loop = LOOP
    for name, size in sizes.items():
        loop = loop.replace(f'[{name}]', f'[{max(size, 1)}]')
    path = compilation.library(name, source + loop, 'c', flags)
    function_of_batch = compilation.load(path).loop
    function_of_batch.restype = None
    function_of_batch.argtypes = [*[ctypes.c_long] * 3, *[ctypes.c_void_p] * 2]
    return Compiled(function.n_instructions(), path, function_of_batch)
