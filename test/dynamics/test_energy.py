"""Energies against the power of the joints; test/contract has the energies themselves."""

import dataclasses

import numpy as np
import pytest
from support.dynamics_cases import ROBOTS, load
from support.random_trees import helical_model

from hodyn_ros import (
    inverse_dynamics,
    kinetic_energy,
    potential_energy,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def model_of(name):
    if name == 'helical':
        return helical_model(0)
    if name == 'armature':
        model = load(ROBOTS['tree 3']().xml)
        armature = np.random.default_rng(1).uniform(0.1, 2.0, model.n_bodies)
        return dataclasses.replace(model, armature=armature)
    return load(ROBOTS[name]().xml)


def smooth_motion(n, t):
    """Derivatives 0 to 4 of a sum of sines at the times t, shape (len(t), 5, n)."""
    rng = np.random.default_rng(n)
    amplitude, phase = rng.uniform(0.3, 1.0, (2, 3, n))
    frequency = rng.uniform(0.5, 2.5, (3, n))
    orders = np.arange(5)[:, None, None]
    waves = (
        amplitude
        * frequency**orders
        * np.sin(frequency * t[:, None, None, None] + phase + np.pi / 2 * orders)
    )
    return waves.sum(axis=-2)


@pytest.mark.parametrize('name', ['helical', 'armature', 'Panda with hand', 'tree 11'])
def test_power_of_the_joints_is_the_rate_of_energy_with_its_derivatives(name):
    """The same for the first two derivatives: (qd^T Q)^(m) = (T + U)^(m+1)."""
    model = model_of(name)
    motion = smooth_motion(model.n_joints, np.linspace(0.0, 2.0, 11))
    Q, Qd, Q2d = np.moveaxis(inverse_dynamics(model, motion), 1, 0)
    _, qd, q2d, q3d, _ = np.moveaxis(motion, 1, 0)
    power = np.stack(
        [
            (qd * Q).sum(axis=-1),
            (q2d * Q + qd * Qd).sum(axis=-1),
            (q3d * Q + 2.0 * q2d * Qd + qd * Q2d).sum(axis=-1),
        ],
        axis=1,
    )
    T, U = kinetic_energy(model, motion), potential_energy(model, motion)
    assert T.shape == (11, 4) and U.shape == (11, 5)
    rate = T[:, 1:] + U[:, 1:4]
    scale = np.abs(T).max(axis=0)[1:] + np.abs(U).max(axis=0)[1:4]
    assert np.all(np.abs(power - rate).max(axis=0) <= 1e-12 * scale)
