"""A process that is forked while code compiles in the background computes like any other."""

import os

import pytest
from support.engine_cases import needs_compiler
from support.processes import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, 'fork'), reason='there is no fork')

SCRIPT = """
import os, signal, sys, time, warnings
import numpy as np
from hodyn_ros import RobotModel, inverse_dynamics, mass_matrix

warnings.simplefilter('ignore', DeprecationWarning)  # Python warns of forks beside threads


def robot(n):
    B = np.tile(np.eye(4), (n, 1, 1))
    B[:, 0, 3] = 0.1
    X = np.eye(6)[np.arange(n) % 3]
    return RobotModel.from_body_screws(X, B, inertias=[(1.0, (0.05, 0.0, 0.0), np.eye(3))] * n)


def compute(model, own):
    motion = np.random.default_rng(0).standard_normal((20_000, 3, model.n_joints))
    few = motion[:1000]
    expected = inverse_dynamics(model, few, algorithm='nth_order')
    M = mass_matrix(model, few[:10])
    for other in (model, own):
        other.warm_up(2, lambda: mass_matrix(other, few[:10]))
        for efforts in (
            inverse_dynamics(other, few),
            inverse_dynamics(other, few, num_threads=2),
            inverse_dynamics(other, motion)[:1000],
            [inverse_dynamics(other, one) for one in few],
        ):
            assert np.abs(efforts - expected).max() < 1e-9
        assert np.abs(mass_matrix(other, few[:10]) - M).max() < 1e-9


def forked(child):
    process = os.fork()
    if process == 0:
        try:
            child()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    end = time.monotonic() + 100.0
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            assert status == 0, status
            return
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            sys.exit('the child does not end')
        time.sleep(0.02)


{body}
"""

DELAYED = """
model = robot(5)
inverse_dynamics(model, np.ones((64, 3, 5)))  # starts the background thread
time.sleep({delay})
forked(lambda: compute(model, robot(5)))
"""


def run(body, tmp_path):
    run_python(SCRIPT.replace('{body}', body), timeout=600.0, NUMBA_CACHE_DIR=str(tmp_path))


@needs_compiler
@pytest.mark.parametrize('delay', [0.02, 0.2])
def test_a_child_of_a_process_that_compiles_computes(delay, tmp_path):
    run(DELAYED.replace('{delay}', str(delay)), tmp_path)
