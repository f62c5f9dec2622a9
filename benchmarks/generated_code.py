"""C code that hodyn_ros generates for a robot, in a loop over samples."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from timeit import Timer

import numpy as np

from benchmarks import compilation
from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled
from hodyn_ros import RobotModel, generate_code
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import tracking_controller

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
        raise NotInstalled(f'the code for more than {LARGEST} joints takes too long to compile')
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

    return [Contestant('hodyn_ros generated C, one by one', 2, samples, run, lambda: efforts)]


# --- The tracking law: python -m benchmarks.generated_code ---------------------------------------

REPEAT = """
int repeat(long times, const double *desired, const double *q, const double *theta, double *torque)
{
  static robot_controller c;
  int status = 0;
  robot_controller_reset(&c);
  while (times-- > 0 && status == 0) {
    status = robot_controller_evaluate(
      &c, desired, q, 0, theta, 0, 0, ROBOT_SAMPLE_PERIOD, torque);
  }
  return status;
}
"""
TIMES = 1000


def tracking_times(delay: float) -> tuple[float, float]:
    """Shortest times of an evaluation of the law for the Panda, in C and in Python [s]."""
    model = RobotModel.from_urdf('panda')
    springs = {name: SeriesElastic(1000.0, 0.5) for name in model.joint_names}
    law = tracking_controller(Actuators(model, springs), 1e-3, torque_limits=87.0, delay=delay)
    with tempfile.TemporaryDirectory() as folder:
        header, source = (
            path.read_text()
            for path in generate_code(model, folder, name='robot', controller=law)[:2]
        )
    source = source.replace('#include "robot_dynamics.h"', header) + REPEAT
    repeat = compilation.load(compilation.library('tracking_law', source, 'c', FLAGS)).repeat
    desired, torque = np.zeros((5, 7)), np.empty(7)
    desired[0] = 0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785
    theta = law.resting(desired[0])
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (desired, desired, theta, torque)]

    def in_c() -> None:
        if repeat(ctypes.c_long(TIMES), *pointers):
            raise RuntimeError('The controller in C refuses the state of a robot at rest.')

    def in_python() -> None:
        law.reset()
        for _ in range(TIMES):
            expected = law.command(desired, desired[0], None, theta, None)
        np.testing.assert_allclose(torque, expected, rtol=1e-9, atol=1e-9)

    times = [Timer(function).repeat(25, 1) for function in (in_c, in_python)]
    return min(times[0]) / TIMES, min(times[1]) / TIMES


if __name__ == '__main__':
    for delay in (0.0, 2e-3):
        c, python = tracking_times(delay)
        print(
            f'Tracking law, Panda, known delay {1e3 * delay:g} ms: C {1e6 * c:.2f} µs, Python '
            f'{1e6 * python:.1f} µs, {python / c:.0f} times as long'
        )
