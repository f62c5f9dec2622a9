"""skidy: symbolic closed-form expressions of a small arm, simplified, as compiled C code.

Deriving and simplifying takes seconds for two joints, half a minute for three in a plane, and
grows tenfold or more with each joint; so it runs in a process of its own, with a time limit, and
what it finds is kept. `python -m benchmarks.peers.skidy_closed_form` is that process: it reads the
arm as JSON and writes C code.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import json
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks import compilation
from benchmarks.cases import ROOT, Case
from benchmarks.timing import Contestant, NotInstalled

LARGEST = 3
TIME_LIMIT = 120.0  # s

FUNCTION = """
#include <math.h>

static void efforts_function(const double *motion, double *efforts) {{
{lines}
}}

void loop(long samples, long K_n, long orders_n, const double *motion, double *efforts) {{
  for (long i = 0; i < samples; ++i) efforts_function(motion + i * K_n, efforts + i * orders_n);
}}
"""


def contestants(case: Case) -> list[Contestant]:
    """Efforts with two derivatives in a C loop."""
    if importlib.util.find_spec('skidy') is None:
        raise NotInstalled('skidy is not installed')
    if case.n > LARGEST:
        raise NotInstalled(
            f'expressions of more than {LARGEST} joints take too long to derive'
        )
    path = compilation.library('skidy', _source(case), 'c', ['-fno-math-errno', '-lm'])
    loop = compilation.load(path).loop
    loop.restype = None
    loop.argtypes = [*[ctypes.c_long] * 3, *[ctypes.c_void_p] * 2]
    samples, K, n = case.motion.shape
    efforts = np.empty((samples, 3, n))

    def run() -> None:
        loop(samples, K * n, 3 * n, case.motion.ctypes.data, efforts.ctypes.data)

    return [Contestant('skidy C loop', 2, samples, run, lambda: efforts)]


def _source(case: Case) -> str:
    model = case.model
    if case.n != model.n_bodies or list(model.parent) != list(range(-1, case.n - 1)):
        raise NotInstalled('only chains are handed over to skidy')
    arm = {
        'gravity': model.gravity.tolist(),
        'poses': model.B.tolist(),
        'screws': model.X.tolist(),
        'inertias': model.M_body.tolist(),
    }
    text = json.dumps(arm)
    kept = (
        compilation.CACHE / f'skidy-{hashlib.sha256(text.encode()).hexdigest()[:16]}.c.txt'
    )
    if kept.exists():
        return kept.read_text()
    try:
        process = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', __name__],
            input=text,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            cwd=ROOT,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f'skidy takes longer than {TIME_LIMIT:.0f} s') from None
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ['no message'])[-1]
        raise NotInstalled(f'skidy fails: {reason}') from None
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(process.stdout)
    return process.stdout


def _derive(arm: dict[str, Any]) -> str:
    import skidy
    import sympy

    def exact(values: Any) -> Any:
        # Rational numbers: expressions with rounding errors in them do not simplify.
        return sympy.Matrix(values).applyfunc(lambda x: sympy.nsimplify(round(x, 12)))

    n = len(arm['screws'])
    robot = skidy.SymbolicKinDyn(
        gravity_vector=exact(arm['gravity']),
        ee=sympy.eye(4),
        body_ref_config=[exact(pose) for pose in arm['poses']],
        joint_screw_coord=[exact(screw) for screw in arm['screws']],
        config_representation='body_fixed',
        Mb=[exact(inertia) for inertia in arm['inertias']],
    )
    motion = skidy.generalized_vectors(n, derivatives=True)
    no_wrench = dict.fromkeys(('WEE', 'WDEE', 'W2DEE'), sympy.zeros(6, 1))
    robot.closed_form_inv_dyn_body_fixed(*motion, **no_wrench, simplify=True, parallel=True)
    shared, efforts = sympy.cse([*robot.Q, *robot.Qd, *robot.Q2d])
    variables = [variable for values in motion for variable in values]
    lines = [f'  const double {name} = motion[{i}];' for i, name in enumerate(variables)]
    lines += [f'  const double {name} = {sympy.ccode(value)};' for name, value in shared]
    lines += [f'  efforts[{i}] = {sympy.ccode(value)};' for i, value in enumerate(efforts)]
    return FUNCTION.format(lines='\n'.join(lines))


if __name__ == '__main__':
    with contextlib.redirect_stdout(sys.stderr):
        code = _derive(json.load(sys.stdin))
    print(code)
