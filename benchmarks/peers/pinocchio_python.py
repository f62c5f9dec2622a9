"""Pinocchio called from Python, sample by sample, and finite differences on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.peers.pinocchio_model import STEP, PinocchioModel, pinocchio
from benchmarks.timing import Contestant

Array = NDArray[np.float64]

# Enough samples to make the loop over them cheap beside the calls.
SAMPLES = 200


def contestants(case: Case) -> list[Contestant]:
    """Efforts alone, and with two derivatives by central differences."""
    pin = PinocchioModel(case)
    model, data, rnea = pin.model, pin.data, pinocchio().rnea
    motion = pin.motion[:SAMPLES]
    samples = len(motion)
    rows = [(sample[0], sample[1], sample[2]) for sample in motion]
    latest: dict[str, list[Any]] = {}

    def efforts() -> None:
        latest['efforts'] = [rnea(model, data, q, qd, q2d) for q, qd, q2d in rows]

    def differences() -> None:
        latest['differences'] = results = []
        for sample in motion:
            results.append(_differences(model, data, rnea, *sample))

    return [
        Contestant(
            'pin.rnea from Python',
            0,
            samples,
            efforts,
            lambda: pin.in_model_order(np.array(latest['efforts'])[:, None]),
        ),
        Contestant(
            'pin.rnea differences from Python',
            2,
            samples,
            differences,
            lambda: pin.in_model_order(np.array(latest['differences'])),
        ),
    ]


def forward_dynamics(case: Case, effort: Array) -> list[Contestant]:
    """Accelerations from the states of the motion and efforts, shape (N, orders, n)."""
    pin = PinocchioModel(case)
    model, data, aba = pin.model, pin.data, pinocchio().aba
    given = pin.in_pinocchio_order(effort[:SAMPLES, 0])
    rows = [(sample[0], sample[1], Q) for sample, Q in zip(pin.motion, given)]
    latest: list[Any] = []

    def run() -> None:
        latest[:] = [aba(model, data, *row) for row in rows]

    return [
        Contestant(
            'pin.aba from Python',
            0,
            len(rows),
            run,
            lambda: pin.in_model_order(np.array(latest)[:, None]),
        )
    ]


def _differences(
    model: Any, data: Any, rnea: Callable[..., Array], *motion: Array
) -> tuple[Array, Array, Array]:
    q, qd, q2d, q3d, q4d = motion
    at = []
    for t in (-STEP, STEP):
        position = q + t * (qd + t / 2 * (q2d + t / 3 * (q3d + t / 4 * q4d)))
        velocity = qd + t * (q2d + t / 2 * (q3d + t / 3 * q4d))
        acceleration = q2d + t * (q3d + t / 2 * q4d)
        at.append(rnea(model, data, position, velocity, acceleration))
    before, after = at
    Q = rnea(model, data, q, qd, q2d)
    return Q, (after - before) / (2 * STEP), (after - 2 * Q + before) / STEP**2
