"""Control laws that hodyn_ros generates as C code, beside the same laws in Python.

    python -m benchmarks.generated_laws [--size full] [-o doc/benchmarks/generated_laws.inc]

A Panda with springs in its joints is at rest; each evaluation is timed by itself.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import compilation
from benchmarks.generated_code import FLAGS
from benchmarks.report import grid, options
from hodyn_ros import RobotModel, generate_code
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    GravityCompensation,
    JointImpedance,
    tracking_controller,
    warm_up,
)

Array = NDArray[np.float64]

CYCLES = """
int cycles(long times, const double *desired, const double *q, const double *theta, double *torque,
           double *durations)
{
  static robot_controller c;
  struct timespec start, end;
  long i;
  int status = 0;
  robot_controller_reset(&c);
  for (i = 0; i < times && status == 0; ++i) {
    clock_gettime(CLOCK_MONOTONIC, &start);
    status = robot_controller_evaluate(
      &c, desired, q, 0, theta, 0, 0, ROBOT_SAMPLE_PERIOD, torque);
    clock_gettime(CLOCK_MONOTONIC, &end);
    durations[i] = (end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec);
  }
  return status;
}
"""
TIMES = 1000  # of a law without a pause
SIZES = {'tiny': 1, 'quick': 10, 'full': 50}
PERIOD = 1e-3
DELAYS = (0.0, 2e-3)
AT = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
OF_PYTHON, OF_C = 'Python', 'C'
LAWS: dict[str, Callable[..., Any]] = {
    'tracking': tracking_controller,
    'joint impedance': partial(JointImpedance, stiffness=200.0),
    'gravity compensation': partial(GravityCompensation, damping=0.5),
}


class Cycles:
    """A law at rest, in Python and in C."""

    def __init__(self, name: str, delay: float) -> None:
        model = RobotModel.from_urdf('panda')
        springs = {joint: SeriesElastic(1000.0, 0.5) for joint in model.joint_names}
        warm_up(model)
        self.law = LAWS[name](
            Actuators(model, springs), PERIOD, torque_limits=87.0, delay=delay
        )
        with tempfile.TemporaryDirectory() as folder:
            header, source = (
                path.read_text()
                for path in generate_code(model, folder, name='robot', controller=self.law)[
                    :2
                ]
            )
        source = '#define _POSIX_C_SOURCE 199309L\n#include <time.h>\n' + source
        source = source.replace('#include "robot_dynamics.h"', header) + CYCLES
        unit = f'law_{name.replace(" ", "_")}'
        self.cycles = compilation.load(compilation.library(unit, source, 'c', FLAGS)).cycles
        self.desired, self.torque = np.zeros((5, 7)), np.empty(7)
        self.desired[0] = AT
        self.theta = self.law.resting(self.desired[0])
        self.times: dict[str, list[Array]] = {OF_PYTHON: [], OF_C: []}

    def run(self, language: str) -> Array:
        """Time the law so many times, from its beginning; its last torque (7,)."""
        durations = np.empty(TIMES)
        self.times[language].append(durations)
        if language == OF_C:
            given = self.desired, self.desired, self.theta, self.torque, durations
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in given]
            if self.cycles(ctypes.c_long(TIMES), *pointers):
                raise RuntimeError(
                    'The controller in C refuses the state of a robot at rest.'
                )
            return self.torque
        self.law.reset()
        for i in range(TIMES):
            start = time.perf_counter()
            command = self.law.evaluate(self.desired, AT, None, self.theta, None)
            durations[i] = time.perf_counter() - start
        torque: Array = command.torque
        return torque

    def row(self, name: str) -> list[str]:
        """Median and 99.9 % of the times [us], and how many times as long Python takes."""
        found = {
            language: 1e6 * np.quantile(np.concatenate(times), (0.5, 0.999))
            for language, times in self.times.items()
        }
        python, c = found[OF_PYTHON], found[OF_C]
        delay = f'{1e3 * (self.law.lead - 0.5 * PERIOD):g} ms'
        cells = [f'{value:.1f}' for value in python] + [f'{value:.2f}' for value in c]
        return [name, delay, *cells, f'{python[0] / c[0]:.0f}']


def table(rounds: int) -> str:
    """Times of all laws, which take turns."""
    laws = [(name, Cycles(name, delay)) for name in LAWS for delay in DELAYS]
    for _ in range(rounds):
        for _, cycles in laws:
            python, c = (cycles.run(language) for language in (OF_PYTHON, OF_C))
            np.testing.assert_allclose(c, python, rtol=1e-9, atol=1e-9)
    head = ['law', 'known delay', 'Python [µs]', '99.9 %', 'C [µs]', '99.9 %', 'ratio']
    return grid([head, *(cycles.row(name) for name, cycles in laws)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    meaning = f'rounds of {TIMES} evaluations of each law'
    given = options(
        arguments,
        'generated_laws',
        'Times of control laws in Python and in C.',
        SIZES,
        meaning,
    )
    text = table(SIZES[given.size])
    print(text)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(text, encoding='utf-8')
    print(f'Written: {given.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
