"""Partial derivatives of the efforts, and of their time derivatives, by the motion."""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
from support import random_trees, robots
from support.engine_cases import load, needs_compiler

from hodyn_ros import (
    RobotModel,
    Wrench,
    friction,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    mass_matrix,
)
from hodyn_ros.errors import ModelError
from hodyn_ros.model.friction import FrictionLaw

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

PANDA = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'
GRAVITY = np.array([1.2, -2.9, -9.2])
TOLERANCE = 1e-13
LAWS = {
    'viscous': friction.Viscous(0.7),
    'Coulomb': friction.Coulomb(1.3, smoothing=0.4),
    'sigmoid': friction.Sigmoid(1.1, 3.0, 0.2),
    'sum': friction.Viscous(0.2)
    + friction.Offset(2.0)
    + friction.Coulomb(0.9, smoothing=0.6),
    'Stribeck': friction.Stribeck(1.2, 0.5, smoothing=0.3),
    'sharp Stribeck': friction.Stribeck(1.2, 0.5),
}


@pytest.fixture(scope='module')
def panda():
    """Panda for tests that do not mind whether it is warm."""
    return RobotModel.from_urdf(PANDA)


def motion_of(model, K, shape=(), seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (*shape, K, model.n_joints))


def errors(actual, expected):
    """Largest error of each order m, relative to the largest entry of the order."""
    assert actual.shape == expected.shape
    axes = tuple(k for k in range(expected.ndim) if k != expected.ndim - 4)
    return np.abs(actual - expected).max(axis=axes) / np.abs(expected).max(axis=axes)


# --- Right --------------------------------------------------------------------------------------


def of_urdf(casadi, xml):
    model = load(xml, gravity=GRAVITY)
    return model, *casadi.bodies_of_urdf(xml, model.joint_names)


ROBOTS = {
    '2R': lambda casadi: of_urdf(casadi, robots.TWO_LINK),
    'Panda': lambda casadi: of_urdf(casadi, PANDA.read_text()),
    'helical chain': lambda casadi: casadi.helical_chain(GRAVITY),
    'tree with mimic joints': lambda casadi: of_urdf(
        casadi, random_trees.random_robot(5, n_moving=6, mimic_probability=0.5).xml
    ),
}


@pytest.mark.parametrize('name', ROBOTS)
def test_orders_up_to_two_match_automatic_differentiation(name):
    casadi = pytest.importorskip('support.casadi_oracle', reason='CasADi is the reference')
    model, bodies, _ = ROBOTS[name](casadi)
    if 'mimic' in name:
        assert model.n_joints < model.n_bodies
        assert 'prismatic' in model.joint_types
    motion = motion_of(model, 5)
    expected = casadi.partial_derivatives(bodies, GRAVITY, motion)
    assert np.all(
        errors(inverse_dynamics_derivatives(model, motion), expected) <= TOLERANCE
    )


def test_wrenches_add_what_automatic_differentiation_gives():
    casadi = pytest.importorskip('support.casadi_oracle', reason='CasADi is the reference')
    robot = random_trees.random_robot(5, n_moving=6, mimic_probability=0.5)
    model, bodies, places = of_urdf(casadi, robot.xml)
    motion = motion_of(model, 5, seed=3)
    # Of all expressions and signs, one on the link that never moves.
    wrenches = [
        Wrench(*case) for case in random_trees.random_wrenches(2, robot.links[:6], 5)
    ]
    theirs = [
        (
            *places[x.link],
            x.expressed_in,
            x.values,
            2.0 * (x.acting == 'on_environment') - 1.0,
        )
        for x in wrenches
        if places[x.link][0] >= 0
    ]
    assert len(theirs) == 5
    expected = casadi.partial_derivatives(bodies, GRAVITY, motion, theirs)
    found = inverse_dynamics_derivatives(model, motion, wrenches)
    assert np.all(errors(found, expected) <= TOLERANCE)
    assert np.all(errors(inverse_dynamics_derivatives(model, motion, ()), expected) > 1e-2)


@needs_compiler
def test_wrenches_of_many_samples_are_compiled_and_broadcast(panda):
    motion = motion_of(panda, 4)
    values = np.random.default_rng(1).uniform(-9.0, 9.0, (80, 2, 6))
    wrench = functools.partial(Wrench, 'panda_link8', expressed_in='hybrid')
    found = [inverse_dynamics_derivatives(panda, motion, wrench(item)) for item in values]
    model = dataclasses.replace(panda)
    model.warm_up(0, lambda: inverse_dynamics_derivatives(model, motion, wrench(values[0])))
    batch = inverse_dynamics_derivatives(model, motion, wrench(values))
    assert np.all(errors(batch, np.stack(found)) <= 1e-14)
    # The code without a wrench is another one.
    assert np.abs(inverse_dynamics_derivatives(model, motion) - found[0]).max() > 1.0


@pytest.mark.parametrize('seed', random_trees.seeds([40, 41, 43, 44, 45], short=3))
def test_derivatives_of_the_efforts_match_pinocchio(seed):
    pin = pytest.importorskip('pinocchio', reason='Pinocchio (pip: pin) is not installed')
    robot = random_trees.random_robot(seed, n_moving=9, mimic_probability=0.0)
    model = load(robot.xml)
    assert 'prismatic' in model.joint_types
    motion = motion_of(model, 3)
    reference = pin.buildModelFromXML(robot.xml)
    q, order = pin.neutral(reference), []
    for name, position in zip(model.joint_names, motion[0]):
        joint = reference.joints[reference.getJointId(name)]
        order.append(joint.idx_v)
        values = [np.cos(position), np.sin(position)] if joint.nq == 2 else [position]
        q[joint.idx_q : joint.idx_q + joint.nq] = values
    v, a = np.empty((2, reference.nv))
    v[order], a[order] = motion[1:]
    data = reference.createData()
    pin.computeRNEADerivatives(reference, data, q, v, a)
    M = np.triu(data.M) + np.triu(data.M, 1).T
    F = [data.dtau_dq, data.dtau_dv, M]
    expected = np.stack([F_l[np.ix_(order, order)] for F_l in F], axis=1)
    actual = inverse_dynamics_derivatives(model, motion)
    assert np.all(errors(actual, expected[None]) <= TOLERANCE)


def rates(model, motion):
    """Time derivatives of the efforts by the chain rule, from the partial derivatives."""
    found = inverse_dynamics_derivatives(model, motion[:-1])
    return np.einsum('mikj,kj->mi', found, motion[1:])


@pytest.mark.parametrize('seed', random_trees.seeds(range(8), short=3))
def test_the_chain_rule_gives_the_next_time_derivative_up_to_order_five(seed):
    # Every other joint is helical, some are mimic joints, the others turn or slide.
    model = random_trees.helical_model(seed)
    model = model.with_armature({name: 0.3 for name in model.joint_names})
    model = model.with_friction(dict(zip(model.body_names, LAWS.values())))
    motion = motion_of(model, 8, seed=seed)
    expected = inverse_dynamics(model, motion, algorithm='nth_order')[1:]
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    assert np.all(np.abs(rates(model, motion) - expected) <= 1e-11 * scale)


def test_a_long_chain_obeys_the_chain_rule():
    robot = random_trees.random_robot(1, n_moving=40, mimic_probability=0.1)
    model = load(robot.xml, gravity=GRAVITY)
    motion = motion_of(model, 4)
    expected = inverse_dynamics(model, motion, algorithm='nth_order')[1:]
    assert np.abs(rates(model, motion) - expected).max() <= 1e-11 * np.abs(expected).max()


def test_derivatives_that_are_zero_or_the_mass_matrix_are_so_exactly(panda):
    model = panda.with_armature({name: 0.1 * k for k, name in enumerate(panda.joint_names)})
    motion = motion_of(model, 6, (4,))
    found = inverse_dynamics_derivatives(model, motion)
    M = mass_matrix(model, motion[:, :1])[:, 0]
    for m in range(4):
        np.testing.assert_allclose(found[:, m, :, m + 2], M, rtol=0.0, atol=1e-14 * M.max())
        assert not found[:, m, :, m + 3 :].any()


@pytest.mark.parametrize('name', LAWS)
def test_friction_adds_what_automatic_differentiation_gives(panda, name):
    ca = pytest.importorskip('casadi', reason='CasADi is the reference')
    joint, which = panda.joint_names[2], slice(2, 3)
    model = panda.with_friction({joint: LAWS[name]})
    motion = motion_of(panda, 5)
    t, symbols = ca.SX.sym('t'), ca.SX.sym('q', 5)
    v = sum(symbols[k + 1] * power for k, power in enumerate((1, t, t**2 / 2, t**3 / 6)))
    effort = {
        'viscous': 0.7 * v,
        'Coulomb': 1.3 * ca.tanh(v / 0.4),
        'sigmoid': 1.1 / (1 + ca.exp(-3.0 * (v + 0.2))),
        'sum': 0.2 * v + 0.9 * ca.tanh(v / 0.6),
        'Stribeck': 1.2 * ca.exp(-((v / 0.5) ** 2)) * ca.tanh(v / 0.3),
        'sharp Stribeck': 1.2 * ca.exp(-((v / 0.5) ** 2)) * np.sign(motion[1, 2]),
    }[name]
    expected = np.zeros((3, 7, 5, 7))
    for m in range(3):
        slope = ca.Function(
            'F', [symbols], [ca.jacobian(ca.substitute(effort, t, 0), symbols)]
        )
        expected[m, 2, :, which] = np.array(slope(motion[:, 2])).reshape(5, 1)
        effort = ca.jacobian(effort, t)
    added = inverse_dynamics_derivatives(model, motion) - inverse_dynamics_derivatives(
        panda, motion
    )
    assert np.abs(expected[2]).max() > 0.1
    np.testing.assert_allclose(added, expected, rtol=0.0, atol=1e-13)


def test_sharp_coulomb_friction_adds_nothing(panda):
    law = friction.Coulomb(1.3) + friction.Offset(0.4)
    model = panda.with_friction(dict.fromkeys(panda.joint_names, law))
    motion = motion_of(panda, 4)
    np.testing.assert_array_equal(
        inverse_dynamics_derivatives(model, motion),
        inverse_dynamics_derivatives(panda, motion),
    )


# --- Given and returned arrays ------------------------------------------------------------------


# --- Refused ------------------------------------------------------------------------------------


def test_a_friction_law_of_ones_own_is_refused(panda):
    class Square(FrictionLaw):
        def effort(self, velocity):
            return velocity**2

    model = panda.with_friction({panda.joint_names[3]: Square()})
    for shape in ((), (200,)):
        with pytest.raises(ModelError, match=r"'panda_joint4'.*partial.*with_friction"):
            inverse_dynamics_derivatives(model, motion_of(panda, 3, shape))
