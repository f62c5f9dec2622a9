"""Robots, motions and wrenches for inverse dynamics, and how far efforts may be apart."""

import functools
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support.oracles import taylor_terms
from support.random_trees import (
    random_gravity,
    random_motion,
    random_robot,
    random_wrenches,
)
from support.records import changed

from hodyn_ros import ModelWarning, RobotModel, Wrench
from hodyn_ros.dynamics.inverse import FORMULATIONS

URDF = Path(__file__).resolve().parents[2] / 'urdf'
EARTH = (0.0, 0.0, -9.81)
SEEDS = range(30)
HIGHEST = 5  # derivative of a motion that the tests of formulations use


class Robot(NamedTuple):
    """A description and the links on which wrenches act."""

    xml: str
    wrench_links: tuple[str, ...]


def random_tree(seed):
    robot = random_robot(seed)
    # Inner links and leaves alike, those behind fixed joints included, the root link excluded.
    return Robot(robot.xml, robot.links[1:])


ROBOTS = {
    'Panda': lambda: Robot(
        (URDF / 'panda.urdf').read_text(), ('panda_link3', 'panda_link8', 'panda_link5')
    ),
    'Panda with hand': lambda: Robot(
        (URDF / 'panda_with_hand.urdf').read_text(),
        (
            'panda_leftfinger',
            'panda_link4',
            'panda_hand',
            'panda_rightfinger',
            'panda_link8',
        ),
    ),
    **{f'tree {seed}': lambda seed=seed: random_tree(seed) for seed in SEEDS},
}


def load(xml, **options):
    with warnings.catch_warnings():
        # Massless moving links are part of the test.
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(xml, **options)


def wrench_arguments(cases):
    return [Wrench(*case) for case in cases]


def scale_of(terms):
    """Largest contribution of each order over joints, shape (orders,), never zero."""
    scale = np.abs(terms).max(
        axis=tuple(i for i in range(terms.ndim) if i != terms.ndim - 2)
    )
    return np.where(scale > 0.0, scale, 1.0)


def relative_errors(actual, expected, scale):
    difference = np.abs(actual - expected)
    return (
        difference.max(
            axis=tuple(i for i in range(difference.ndim) if i != actual.ndim - 2)
        )
        / (scale[: actual.shape[-2]])
    )


def up_to_its_order(algorithm, motion, cases):
    """As many orders of a motion with K = 5 and of its wrenches as the algorithm can use."""
    orders = 1 if algorithm == 'newton_euler' else 3
    return motion[..., : orders + 2, :], [
        changed(case, values=case.values[..., :orders, :]) for case in cases
    ]


class Case(NamedTuple):
    """A robot, a motion of it and what the power series make of them."""

    xml: str
    model: RobotModel
    gravity: np.ndarray
    motion: np.ndarray
    wrenches: list
    expected: np.ndarray
    scale: np.ndarray


@functools.cache
def make_case(name, K=5, wrenches=True):
    robot = ROBOTS[name]()
    seed = sum(map(ord, name))
    gravity = random_gravity(seed)
    model = load(robot.xml, gravity=gravity)
    motion = random_motion(seed, len(model.joint_names), K)
    cases = random_wrenches(seed, robot.wrench_links, K) if wrenches else []
    terms = taylor_terms(robot.xml, model.joint_names, gravity, motion, cases)
    return Case(
        robot.xml, model, gravity, motion, cases, terms.sum(axis=0), scale_of(terms)
    )


def derivatives_for(algorithm):
    """Number of derivatives of a motion that an algorithm can use, at most HIGHEST."""
    formulation = FORMULATIONS.get(algorithm)
    if formulation is None or formulation.highest_order is None:
        return HIGHEST
    return min(HIGHEST, formulation.highest_order + 3)


def assert_same_efforts(actual, expected, tolerance=1e-12):
    for order in range(expected.shape[-2]):
        scale = np.abs(expected[..., order, :]).max()
        np.testing.assert_allclose(
            actual[..., order, :],
            expected[..., order, :],
            atol=tolerance * max(scale, 1e-3),
        )
