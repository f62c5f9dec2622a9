"""Matrices of the equations of motion of many joints."""

import tracemalloc

import numpy as np
import pytest
from support.engine_cases import random_chain

from hodyn_ros import (
    coriolis_matrix,
    gravity_effort,
    inverse_dynamics,
    mass_matrix,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def test_matrices_of_many_joints_need_no_system_matrix_with_a_block_for_each_pair_of_bodies():
    n = 200
    model = random_chain(n, branching=True)
    motion = 0.1 * np.random.default_rng(0).standard_normal((3, n))
    still = np.zeros((3, n))
    still[0] = motion[0]
    tracemalloc.start()
    try:
        M, C = mass_matrix(model, motion), coriolis_matrix(model, motion)
        g = gravity_effort(model, motion[:1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Four of them; an evaluation by them takes two dozen.
    assert peak < 8 * (6 * n) ** 2 * 4
    effort = inverse_dynamics(model, motion, algorithm='nth_order')[0]
    scale = np.abs(effort).max()
    assert np.abs(M[0] @ motion[2] + C[0] @ motion[1] + g[0] - effort).max() < 1e-12 * scale
    weight = inverse_dynamics(model, still, algorithm='nth_order')[0]
    assert np.abs(g[0] - weight).max() < 1e-12 * scale
    assert np.abs(M[1] - C[0] - C[0].T).max() < 1e-12 * np.abs(M[1]).max()
