"""C code that hodyn_ros generates for a robot, in a loop over samples."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import compilation
from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled
from hodyn_ros import generate_code

LARGEST = 28
FLAGS = ('-std=c99', '-ffp-contract=fast', '-fno-math-errno', '-lm')
LOOP = """
void loop(long samples, const double *motion, double *effort)
{
  long i;
  for (i = 0; i < samples; ++i) {
    robot_inverse_dynamics_2(
      (const double (*)[%d])(motion + i * %d), (double (*)[%d])(effort + i * %d));
  }
}
"""


def contestants(case: Case) -> list[Contestant]:
    """Efforts with two derivatives in a C loop."""
    if case.n > LARGEST:
        raise NotInstalled(
            f'the code for more than {LARGEST} joints takes too long to compile'
        )
    n = case.n
    with tempfile.TemporaryDirectory() as folder:
        generate_code(case.model, folder, language='c', order=(2,), name='robot')
        header, source = (
            (Path(folder) / f'robot_dynamics.{suffix}').read_text() for suffix in ('h', 'c')
        )
    source = source.replace('#include "robot_dynamics.h"', header)
    source += LOOP % (n, 5 * n, n, 3 * n)
    loop = compilation.load(compilation.library(f'generated_{n}', source, 'c', FLAGS)).loop
    loop.restype = None
    loop.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    samples = len(case.motion)
    efforts = np.empty((samples, 3, n))

    def run() -> None:
        loop(samples, case.motion.ctypes.data, efforts.ctypes.data)

    return [
        Contestant('hodyn_ros generated C, one by one', 2, samples, run, lambda: efforts)
    ]
