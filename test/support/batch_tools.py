"""Data sets for the tests of batches, and a friction law that ends its process."""

import json
import os
from dataclasses import dataclass

import numpy as np

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.files import read_results
from hodyn_ros.model.friction import FrictionLaw

DEADLY = 10.0  # rad/s


@dataclass(frozen=True)
class Deadly(FrictionLaw):
    """No friction, and the end of the process at a velocity that few motions have."""

    def effort(self, velocity):
        if np.any(np.abs(velocity[..., 0]) > DEADLY):
            os._exit(7)
        return np.zeros_like(velocity)


def two_link(mass=2.0):
    """Arm with two links of 1 m in a vertical plane."""
    rods = [(mass, (0.5, 0.0, 0.0), np.diag([0.01, 0.2, 0.2]))] * 2
    Y = [[0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]]
    A = np.stack([np.eye(4)] * 2)
    A[1, 0, 3] = 1.0
    return RobotModel.from_screws(Y, A, inertias=rods, joint_names=('shoulder', 'elbow'))


def motion_of(model, N, seed):
    """Times (N,) and the motion (N, 5, n) of some sinusoids."""
    rng = np.random.default_rng(seed)
    t = 0.01 * np.arange(N)
    w = rng.uniform(0.5, 2.0, model.n_joints)
    phase = rng.uniform(0.0, 6.0, model.n_joints)
    k = np.arange(5)[:, None]
    return t, w**k * np.sin(w * t[:, None, None] + phase + 0.5 * np.pi * k)


def write_npz(path, model, times, motion):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, time=times, motion=motion, joint_names=np.array(model.joint_names))


def make_folder(folder, model, count, N=50):
    """Write `count` files of motions, some in a folder below; motions by their names."""
    motions = {}
    for i in range(count):
        name = f'{"more/" if i % 3 == 2 else ""}motion{i:03d}.npz'
        times, motions[name] = motion_of(model, N, i)
        write_npz(folder / name, model, times, motions[name])
    return motions


def outputs_in(folder):
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob('*')
        if path.is_file() and '_hodyn' not in path.parts
    )


def recorded_in(folder):
    """Results that have a record."""
    path = folder / '_hodyn' / 'done.jsonl'
    lines = path.read_text().splitlines(keepends=True) if path.exists() else ()
    return sorted(json.loads(line)['output'] for line in lines if line.endswith('\n'))


def errors_in(folder):
    lines = (folder / '_hodyn' / 'errors.jsonl').read_text().splitlines()
    return [json.loads(line) for line in lines]


def assert_complete(folder, model, motions):
    """Every motion has its result, once, and there is nothing else."""
    assert outputs_in(folder) == sorted(motions)
    for name, motion in motions.items():
        expected = inverse_dynamics(model, motion, algorithm='body_fixed')
        results = read_results(folder / name)
        np.testing.assert_array_equal(results.motion, motion)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(results.effort, expected, rtol=0, atol=1e-12 * scale)
    assert recorded_in(folder) == sorted(motions)
    assert not (folder / '_hodyn' / 'runs').exists()
