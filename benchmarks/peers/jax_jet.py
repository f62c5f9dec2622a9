"""JAX: the recursive Newton-Euler algorithm, differentiated by Taylor mode (jet), compiled.

One sample at a time (jit), and vectorised over samples (vmap). In double precision. The algorithm
is written for 3-vectors: as a graph of scalars it runs a hundred times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled

Array = NDArray[np.float64]

# Compiling takes some 10 s for 7 joints.
LARGEST = 7
BATCH = 2000
SAMPLES_FROM_PYTHON = 20


def contestants(case: Case) -> list[Contestant]:
    """Efforts with two derivatives: a batch, and singly from Python."""
    try:
        import jax
        from jax.experimental.jet import jet
    except ImportError:
        raise NotInstalled('jax is not installed') from None
    if case.n > LARGEST:
        raise NotInstalled(
            f'the code for more than {LARGEST} joints takes too long to compile'
        )
    jax.config.update('jax_enable_x64', True)
    jnp = jax.numpy

    def rnea(q: Any, qd: Any, q2d: Any) -> Any:
        return _rnea(jnp, case, q, qd, q2d)

    def efforts(motion: Any) -> Any:
        q, qd, q2d, q3d, q4d = motion
        primal, series = jet(rnea, (q, qd, q2d), ((qd, q2d), (q2d, q3d), (q3d, q4d)))
        return jnp.stack([primal, *series])

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
            'JAX jet, vmap', 2, len(many), run_batch, lambda: np.array(latest['batch'])
        ),
        Contestant(
            'JAX jet from Python',
            2,
            len(few),
            run_single,
            lambda: np.array(latest['single']),
        ),
    ]


def _rnea(jnp: Any, case: Case, q: Any, qd: Any, q2d: Any) -> Any:
    """Compute efforts; the equations are those of `newton_euler.efforts`."""
    z = np.array([0.0, 0.0, 1.0])
    rotations: list[Any] = []
    positions: list[Any] = []
    motions: list[tuple[Any, ...]] = []
    loads: list[tuple[Any, ...]] = []
    for body in case.bodies:
        i = body.coordinate
        if body.parent < 0:
            w, wd, a = jnp.zeros(3), jnp.zeros(3), -jnp.array(case.model.gravity)
        else:
            w, wd, a = motions[body.parent]
        R, p = jnp.array(body.rotation), jnp.array(body.position)
        if body.slides:
            p = p + R @ z * q[i]
        else:
            s, c, zero, one = jnp.sin(q[i]), jnp.cos(q[i]), jnp.zeros(()), jnp.ones(())
            R = R @ jnp.stack([c, -s, zero, s, c, zero, zero, zero, one]).reshape(3, 3)
        a = R.T @ (a + _cross(jnp, wd, p) + _cross(jnp, w, _cross(jnp, w, p)))
        w, wd = R.T @ w, R.T @ wd
        if body.slides:
            a = a + 2.0 * _cross(jnp, w, z * qd[i]) + z * q2d[i]
        else:
            wd = wd + _cross(jnp, w, z * qd[i]) + z * q2d[i]
            w = w + z * qd[i]
        rotations.append(R)
        positions.append(p)
        motions.append((w, wd, a))
        h = jnp.array(body.first_moment)
        force = body.mass * a + _cross(jnp, wd, h) + _cross(jnp, w, _cross(jnp, w, h))
        moment = body.inertia @ wd + _cross(jnp, w, body.inertia @ w) + _cross(jnp, h, a)
        loads.append((moment, force))

    results = [jnp.zeros(())] * len(case.bodies)
    for index in reversed(range(len(case.bodies))):
        body, (moment, force) = case.bodies[index], loads[index]
        results[body.coordinate] = force[2] if body.slides else moment[2]
        if body.parent >= 0:
            before = loads[body.parent]
            force = rotations[index] @ force
            moment = rotations[index] @ moment + _cross(jnp, positions[index], force)
            loads[body.parent] = before[0] + moment, before[1] + force
    return jnp.stack(results)


def _cross(jnp: Any, x: Any, y: Any) -> Any:
    # jet has no rule for what jnp.cross does inside.
    return jnp.stack(
        [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    )
