"""Matrices of the equations of motion: fewer derivatives, other gravity, many joints."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from support.dynamics_cases import (
    ROBOTS,
    load,
)
from support.engine_cases import random_chain
from support.random_trees import random_motion

from hodyn_ros import (
    coriolis_matrix,
    gravity_effort,
    inverse_dynamics,
    mass_matrix,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def robot_and_motion(name, K, shape=()):
    model = load(ROBOTS[name]().xml)
    return model, random_motion(sum(map(ord, name)), model.n_joints, K, shape)


def test_gravity_and_position_alone_need_no_velocity():
    model, motion = robot_and_motion('Panda', 1, (2, 3))
    assert mass_matrix(model, motion).shape == (2, 3, 1, 7, 7)
    g = gravity_effort(model, motion)
    assert g.shape == (2, 3, 1, 7)
    at_rest = np.concatenate([motion, np.zeros((2, 3, 2, 7))], axis=-2)
    effort = inverse_dynamics(model, at_rest)
    assert np.abs(g - effort).max() <= 1e-14 * np.abs(effort).max()


def test_gravity_of_another_direction_enters_gravity_alone():
    model, motion = robot_and_motion('tree 5', 3)
    other = dataclasses.replace(model, gravity=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(mass_matrix(other, motion), mass_matrix(model, motion))
    assert np.abs(gravity_effort(other, motion) - gravity_effort(model, motion)).max() > 0.1


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
