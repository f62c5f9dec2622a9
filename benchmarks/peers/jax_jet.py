"""JAX: the recursive Newton-Euler algorithm, differentiated by Taylor mode (jet), compiled.

One sample at a time (jit), and vectorised over samples (vmap), in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import newton_euler
from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled

Array = NDArray[np.float64]

# Compiling takes some 10 s for 7 joints.
LARGEST = 7
BATCH = 2000
SAMPLES_FROM_PYTHON = 20


def contestants(case: Case, largest: int = LARGEST) -> list[Contestant]:
    """Efforts with their derivatives: a batch, and singly from Python."""
    try:
        import jax
        from jax.experimental.jet import jet
    except ImportError:
        raise NotInstalled('jax is not installed') from None
    if case.n > largest:
        raise NotInstalled(
            f'the code for more than {largest} joints takes too long to compile'
        )
    jax.config.update('jax_enable_x64', True)
    jnp, order = jax.numpy, case.order

    def cross(x: Any, y: Any) -> Any:
        # jet has no rule for what jnp.cross does inside.
        ways = (1, 2), (2, 0), (0, 1)
        return jnp.stack([x[j] * y[k] - x[k] * y[j] for j, k in ways])

    use = newton_euler.Arithmetic(jnp.sin, jnp.cos, jnp.array, cross)

    def rnea(*motion: Any) -> Any:
        efforts = newton_euler.efforts(use, case.bodies, case.model.gravity, *motion)
        return jnp.stack(efforts)

    def efforts(motion: Any) -> Any:
        series = tuple(tuple(motion[i + 1 : i + 1 + order]) for i in range(3))
        if not order:
            return rnea(*motion)[None]
        primal, found = jet(rnea, tuple(motion[:3]), series)
        return jnp.stack([primal, *found])

    single, batch = jax.jit(efforts), jax.jit(jax.vmap(efforts))
    many = jax.device_put(case.motion[:BATCH])
    few = [jax.device_put(sample) for sample in case.motion[:SAMPLES_FROM_PYTHON]]
    latest: dict[str, Any] = {}

    def run_batch() -> None:
        latest['batch'] = batch(many).block_until_ready()

    def run_single() -> None:
        latest['single'] = [single(sample).block_until_ready() for sample in few]

    return [
        Contestant(
            'JAX jet, vmap', order, len(many), run_batch, lambda: np.array(latest['batch'])
        ),
        Contestant(
            'JAX jet from Python',
            order,
            len(few),
            run_single,
            lambda: np.array(latest['single']),
        ),
    ]
