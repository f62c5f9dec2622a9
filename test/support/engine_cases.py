"""What tests of the engine share: forms of kernels, errors relative to the largest effort."""

import warnings

import numpy as np
import pytest

from hodyn_ros import Inertia, RobotModel
from hodyn_ros.engine.engine import unavailable
from hodyn_ros.lie import so3
from hodyn_ros.model.robot import ModelWarning

COMPILED = ('compiled_robot', 'compiled_tree')
needs_compiler = pytest.mark.skipif(bool(unavailable()), reason=f'{unavailable()}')


def load(xml, **options):
    """Model of a description, whatever that warns of."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            return RobotModel.from_urdf(xml, **options)
    # The end of a compilation in another thread has brought back its filters.
    except ModelWarning:
        return load(xml, **options)


def relative_errors(actual, expected, scale=None):
    """Largest error of each order, relative to the scale or the largest effort of the order."""
    axes = tuple(i for i in range(expected.ndim) if i != expected.ndim - 2)
    if scale is None:
        scale = np.abs(expected).max(axis=axes)
    return np.abs(actual - expected).max(axis=axes) / np.where(scale > 0.0, scale, 1.0)


def random_chain(n, seed=0, branching=False, angle=None):
    """Make a robot of revolute joints; with an angle, neighbouring axes are almost parallel."""
    rng = np.random.default_rng(seed)
    X, B = np.zeros((n, 6)), np.tile(np.eye(4), (n, 1, 1))
    X[:, 2] = 1.0
    for i in range(n):
        turn = rng.standard_normal(3) if angle is None else [angle, 0.0, 0.3]
        B[i, :3, :3] = so3.exp(np.array(turn))
        B[i, :3, 3] = rng.uniform(-0.3, 0.3, 3)
    inertias = [
        Inertia(
            rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3), np.diag([0.1, 0.12, 0.15])
        )
        for _ in range(n)
    ]
    parents = [-1, *(int(rng.integers(max(0, i - 3), i)) for i in range(1, n))]
    return RobotModel.from_body_screws(
        X, B, inertias=inertias, parents=parents if branching else None
    )
