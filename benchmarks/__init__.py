"""Benchmarks: hodyn_ros beside other ways to compute joint torques and their derivatives.

`python -m benchmarks` measures times and errors and writes tables and pictures to build/bench.
Importing this package keeps the numerical libraries to one thread each, which must happen before
they are loaded; contestants that use more threads say so and ask for them.
"""

import os

ONE_THREAD = {
    'MKL_NUM_THREADS': '1',
    'NUMEXPR_NUM_THREADS': '1',
    'OMP_NUM_THREADS': '1',
    'OPENBLAS_NUM_THREADS': '1',
    'JAX_PLATFORMS': 'cpu',
    'NPROC': '1',
    'PJRT_NPROC': '1',
    'XLA_FLAGS': '--xla_cpu_multi_thread_eigen=false',
}

for _name, _value in ONE_THREAD.items():
    os.environ.setdefault(_name, _value)
