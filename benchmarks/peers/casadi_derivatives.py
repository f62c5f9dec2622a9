"""CasADi: the recursive Newton-Euler algorithm, differentiated automatically, as compiled C code.

The time derivatives are directional derivatives along the motion, taken twice. Common
subexpressions are merged before C code is generated.
"""

from __future__ import annotations

import ctypes
import tempfile
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
# That sin and cos may leave errno alone makes some robots 1.6 times as fast, and none slower.
FLAGS = ('-fno-math-errno', '-lm')

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


def contestants(case: Case) -> list[Contestant]:
    """Efforts with two derivatives: in a C loop, and singly from Python with bound buffers."""
    ca = _casadi()
    if case.n > LARGEST:
        raise NotInstalled(f'the code for more than {LARGEST} joints takes too long to compile')
    compiled = _compiled(ca, case)
    loop = compilation.load(compiled.path).loop
    loop.restype = None
    loop.argtypes = [*[ctypes.c_long] * 3, *[ctypes.c_void_p] * 2]
    samples, K, n = case.motion.shape
    efforts = np.empty((samples, K - 2, n))

    def batch() -> None:
        loop(samples, K * n, 3 * n, case.motion.ctypes.data, efforts.ctypes.data)

    single = _Single(ca.external('efforts_function', str(compiled.path)), case)
    note = f'{compiled.instructions} instructions'
    return [
        Contestant('CasADi C loop', 2, samples, batch, lambda: efforts, note=note),
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


def _casadi() -> Any:
    try:
        import casadi
    except ImportError:
        raise NotInstalled('casadi is not installed') from None
    return casadi


def _compiled(ca: Any, case: Case) -> Compiled:
    K, n = case.motion.shape[1:]
    motion = ca.SX.sym('motion', K * n)
    q = [motion[k * n : (k + 1) * n] for k in range(K)]
    joints = [ca.vertsplit(values) for values in q[:3]]
    efforts = newton_euler.efforts(case.bodies, case.model.gravity, *joints, ca.sin, ca.cos)
    derivatives = [ca.vertcat(*efforts)]
    for order in range(1, 3):
        state, rates = ca.vertcat(*q[: 2 + order]), ca.vertcat(*q[1 : 3 + order])
        derivatives.append(ca.jtimes(derivatives[-1], state, rates))
    result = ca.cse(ca.vertcat(*derivatives))
    function = ca.Function('efforts_function', [motion], [result])

    generator = ca.CodeGenerator('efforts.c')
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
    name = f'casadi_{case.n}'
    path = compilation.library(name, source + loop, 'c', FLAGS)
    return Compiled(function.n_instructions(), path)
