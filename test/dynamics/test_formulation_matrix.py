"""Every formulation on every kind of robot with every kind of wrench: all agree, to rounding."""

from pathlib import Path

import numpy as np
import pytest
from support import random_trees, robots
from support.coverings import covering

from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.dynamics.inverse import FORMULATIONS

casadi_oracle = pytest.importorskip(
    'support.casadi_oracle', reason='CasADi is the reference'
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

ROOT = Path(__file__).resolve().parents[2]
GRAVITY = np.array([1.2, -2.9, -9.2])

# Largest difference of two formulations, and of one of them and CasADi, relative to the largest
# effort of the order among the joints.
PAIRWISE = 1e-12
AGAINST_CASADI = 1e-12


def urdf_robot(xml):
    model = RobotModel.from_urdf(xml, gravity=GRAVITY)
    return model, *casadi_oracle.bodies_of_urdf(xml, model.joint_names)


ROBOTS = {
    '2R': lambda: urdf_robot(robots.TWO_LINK),
    'iiwa': lambda: urdf_robot((ROOT / 'urdf' / 'iiwa14.urdf').read_text()),
    'panda': lambda: urdf_robot((ROOT / 'urdf' / 'panda.urdf').read_text()),
    'helical chain': lambda: casadi_oracle.helical_chain(GRAVITY),
    'branching tree': lambda: urdf_robot(random_trees.random_robot(12, n_moving=7).xml),
}


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request):
    return ROBOTS[request.param]()


def wrenches_of(case, model, orders):
    moving = [name for name, link in model.links.items() if link.body >= 0]
    rng = np.random.default_rng(5)
    values = rng.normal(scale=10.0, size=(3, orders, 6))
    inner, last = moving[len(moving) // 2 - 1], moving[-1]
    return {
        'no wrench': [],
        'end effector': [Wrench(last, values[0])],
        'inner link': [Wrench(inner, values[1], 'hybrid', 'on_robot')],
        'several': [
            Wrench(last, values[0], 'spatial', 'on_robot'),
            Wrench(inner, values[1], 'hybrid'),
            Wrench(inner, values[2], 'body', 'on_robot'),
        ],
    }[case]


CASES = ('no wrench', 'end effector', 'inner link', 'several')


def results(model, K, case):
    rng = np.random.default_rng(K)
    motion = rng.uniform(-1.0, 1.0, (K, model.n_joints))
    wrenches = wrenches_of(case, model, K - 2)
    by_name = {
        name: inverse_dynamics(model, motion, wrenches, algorithm=name)
        for name, formulation in FORMULATIONS.items()
        if formulation.highest_order is None or formulation.highest_order >= K - 3
    }
    by_name['auto'] = inverse_dynamics(model, motion, wrenches)
    return motion, wrenches, by_name


def difference(a, b, order):
    return np.abs(a[order] - b[order]).max() / max(np.abs(a[order]).max(), 1e-300)


@pytest.mark.parametrize(('K', 'case'), covering([3, 4, 5, 9], CASES))
def test_formulations_agree_pairwise(robot, K, case):
    model, _, _ = robot
    _, _, by_name = results(model, K, case)
    assert len(by_name) >= (3 if K > 5 else 6)
    for name, efforts in by_name.items():
        assert efforts.shape == (K - 2, model.n_joints)
        for other in by_name.values():
            for order in range(K - 2):
                assert difference(efforts, other, order) <= PAIRWISE, (name, order)


def check_against_casadi(robot, case, K):
    model, bodies, frames = robot
    motion, wrenches, by_name = results(model, K, case)
    given = [
        (
            *frames[item.link],
            item.expressed_in,
            item.values,
            1.0 if item.acting == 'on_environment' else -1.0,
        )
        for item in wrenches
    ]
    expected = casadi_oracle.efforts(bodies, GRAVITY, motion, given)
    for name, efforts in by_name.items():
        for order in range(K - 2):
            error = difference(expected, efforts, order)
            assert error <= AGAINST_CASADI, (name, order, error)


@pytest.mark.parametrize(
    ('K', 'case'),
    [
        *covering([3, 5], CASES),
        *(pytest.param(7, case, marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_formulations_agree_with_automatic_differentiation(robot, K, case):
    check_against_casadi(robot, case, K)


# What the other cases apply is part of the last one.
@pytest.mark.parametrize(
    'case', [pytest.param(CASES[0], marks=pytest.mark.slow), CASES[-1]]
)
def test_formulations_agree_with_automatic_differentiation_to_sixth_order(case):
    check_against_casadi(ROBOTS['2R'](), case, K=9)


# The expressions of CasADi double with every order: half a minute for each case.
@pytest.mark.slow
@pytest.mark.parametrize('case', CASES)
def test_large_robots_agree_with_automatic_differentiation_to_sixth_order(robot, case):
    check_against_casadi(robot, case, K=9)
