"""Energies against their definitions and against the work of the joints."""

import dataclasses

import numpy as np
import pytest
from support.dynamics_cases import EARTH, ROBOTS, load
from support.oracles import PinOracle
from support.random_trees import helical_model, random_motion, seeds

from hodyn_ros import (
    forward_kinematics,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

SOME = (
    'Panda',
    'Panda with hand',
    'tree 0',
    'tree 3',
    'tree 5',
    'tree 11',
    'helical',
    'armature',
)


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


@pytest.mark.parametrize('name', seeds(ROBOTS, short=8))
def test_energies_match_pinocchio(name):
    pinocchio = pytest.importorskip(
        'pinocchio', reason='Pinocchio (pip: pin) is not installed'
    )
    model = model_of(name)
    motion = random_motion(3, model.n_joints, 3)
    pin = PinOracle(ROBOTS[name]().xml, model.joint_names, EARTH)
    q, qd, _ = pin.full(motion)
    configuration = pin.configuration(q)
    T = pinocchio.computeKineticEnergy(pin.model, pin.data, configuration, qd)
    U = pinocchio.computePotentialEnergy(pin.model, pin.data, configuration)
    mass = sum(model.M_body[:, 5, 5])
    assert kinetic_energy(model, motion)[0] == pytest.approx(T, rel=1e-13)
    assert potential_energy(model, motion)[0] == pytest.approx(
        U, abs=1e-14 * 9.81 * mass * 5
    )


@pytest.mark.parametrize('name', SOME)
def test_kinetic_energy_is_that_of_the_mass_matrix(name):
    model = model_of(name)
    motion = random_motion(3, model.n_joints, 2, (4,))
    qd = motion[:, 1]
    expected = 0.5 * np.einsum('ni,nij,nj->n', qd, mass_matrix(model, motion)[:, 0], qd)
    np.testing.assert_allclose(kinetic_energy(model, motion)[:, 0], expected, rtol=1e-13)


@pytest.mark.parametrize('name', SOME)
def test_work_of_the_joints_is_the_change_of_energy(name):
    model = model_of(name)
    start, end = 0.0, 1.3
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t = start + (end - start) * (nodes + 1.0) / 2.0
    motion = smooth_motion(model.n_joints, t)
    effort = inverse_dynamics(model, motion)[:, 0]
    power = (motion[:, 1] * effort).sum(axis=-1)
    work = (end - start) / 2.0 * weights @ power
    ends = smooth_motion(model.n_joints, np.array([start, end]))
    T, U = kinetic_energy(model, ends)[:, 0], potential_energy(model, ends)[:, 0]
    change = np.diff(T + U)[0]
    scale = (end - start) / 2.0 * weights @ np.abs(power)
    assert abs(work - change) <= 1e-12 * scale


@pytest.mark.parametrize('name', SOME)
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


def test_potential_energy_is_weight_times_height():
    model = model_of('Panda')
    motion = random_motion(1, 7, 1, (2,))
    weight = 0.0
    for link, frame in model.links.items():
        if frame.body >= 0 and np.array_equal(frame.pose, np.eye(4)):
            M = model.M_body[frame.body]
            pose = forward_kinematics(model, motion, link).pose
            # M[3:, :3] is -m c~.
            moment = -np.array([M[5, 1], M[3, 2], M[4, 0]])
            height = M[5, 5] * pose[:, 2, 3] + pose[:, 2, :3] @ moment
            weight = weight + 9.81 * height
    np.testing.assert_allclose(potential_energy(model, motion)[:, 0], weight, rtol=1e-13)
