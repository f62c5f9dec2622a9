"""The robots with closed loops that come with the package, and a Stewart platform.

Against power series (`support.loop_oracle`), Pinocchio and MuJoCo.
"""

import numpy as np
import pytest
from support.loop_oracle import oracle_of
from support.loop_robots import ROBOTS, MujocoLoops, PinocchioLoops, description
from support.random_trees import random_motion

from hodyn_ros import (
    RobotModel,
    forward_dynamics,
    inverse_dynamics,
    kinetic_energy,
    potential_energy,
)
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.lie import leibniz

SAMPLES = 3


@pytest.fixture(scope='module', params=ROBOTS[::-1])
def case(request):
    """Description, model, and samples of a fast motion near the start (SAMPLES, 5, n)."""
    xml = description(request.param)
    model = RobotModel.from_urdf(xml)
    motion = random_motion(7, model.n_joints, 5, (SAMPLES,))
    motion[:, 0] *= 0.1 / np.pi
    motion[:, 0] += model.closure.start[model.closure.independent]
    motion *= 3.0 ** np.array([0, 1, 2, 3, 4])[:, None]
    return xml, model, motion


def relative(found, expected):
    """Largest error of each order relative to the largest value of that order."""
    return np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)


def test_motion_and_efforts_agree_with_power_series(case):
    xml, model, motion = case
    oracle = oracle_of(model, xml)
    for sample in motion:
        whole = complete_motion(model, sample)
        expected, efforts = oracle(sample, whole[0])
        np.testing.assert_allclose(whole[0], expected[0], atol=1e-12)
        assert (relative(whole[1:], expected[1:]) < [1e-12, 1e-12, 1e-11, 1e-10]).all()
        found = inverse_dynamics(model, sample)
        assert (relative(found, efforts) < [1e-12, 1e-10, 1e-8]).all()


def test_power_is_the_rate_of_the_energy(case):
    _, model, motion = case
    energy = kinetic_energy(model, motion) + potential_energy(model, motion)[:, :4]
    power = leibniz.bilinear(
        lambda a, b: (a * b).sum(axis=-1, keepdims=True),
        inverse_dynamics(model, motion),
        motion[:, 1:],
        3,
    )[..., 0]
    error = np.abs(power - energy[:, 1:]).max(axis=0)
    assert (error / np.abs(power).max(axis=0) < 1e-11).all()


def test_efforts_and_accelerations_are_those_of_pinocchio(case):
    pytest.importorskip('pinocchio', reason='Pinocchio (pip: pin) is not installed')
    xml, model, motion = case
    peer = PinocchioLoops(xml, model)
    efforts, whole = inverse_dynamics(model, motion)[:, 0], complete_motion(model, motion)
    for effort, sample in zip(efforts, whole):
        assert relative(peer.efforts(sample), effort) < 1e-11
        assert relative(peer.accelerations(sample, effort), sample[2]) < 1e-11


def test_accelerations_are_those_of_mujoco_without_its_softness(case):
    pytest.importorskip('mujoco', reason='MuJoCo (pip: mujoco) is not installed')
    xml, model, motion = case
    peer, tree = MujocoLoops(xml, model), model.closure.tree
    efforts, whole = inverse_dynamics(model, motion)[:, 0], complete_motion(model, motion)
    for effort, sample in zip(efforts, whole):
        of_tree = np.zeros((1, tree.n_joints))
        of_tree[0, model.closure.independent] = effort
        # Softness of 1e-4 counts against the acceleration with which the open joints would part.
        parting = np.abs(forward_dynamics(tree, sample[:2], of_tree)).max()
        error = np.abs(peer.accelerations(sample, effort) - sample[2]).max()
        assert error < 1e-6 * parting
