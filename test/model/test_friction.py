"""Friction laws with exact time derivatives, and friction and armature in inverse dynamics."""

import pickle
import warnings
from math import factorial

import numpy as np
import pytest
from support import robots
from support.random_trees import random_motion
from support.robots import joint, link, robot

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.errors import ModelError
from hodyn_ros.model import friction_from_config
from hodyn_ros.model.friction import (
    Coulomb,
    Offset,
    Sigmoid,
    Stribeck,
    Sum,
    Viscous,
)

# Gaz et al. 2019, supplementary material, table I: phi1 [N m], phi2 [s/rad], phi3 [rad/s].
PANDA = list(
    zip(
        [0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489],
        [5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336],
        [0.039533, 0.025882, -0.046070, 0.036194, 0.026226, -0.021047, 0.0035526],
    )
)
SMOOTH_LAWS = [
    Viscous(0.3),
    Coulomb(1.5, smoothing=0.2),
    *(Sigmoid(*parameters) for parameters in PANDA),
    Offset(-0.4),
    Viscous(0.2) + Coulomb(0.7, 0.5) + Offset(0.1),
    Stribeck(0.8, 0.3, smoothing=0.1),
    Coulomb(0.9, 0.05) + Stribeck(0.4, 1.5, 0.05),
]
K = 6


def reciprocal_of_one_plus_exp(u):
    """Power series of 1 / (1 + exp(u)) by the arithmetic of power series, in long double."""
    E, R = np.zeros_like(u), np.zeros_like(u)
    E[0] = np.exp(u[0])
    R[0] = 1 / (1 + E[0])
    for k in range(1, len(u)):
        E[k] = sum(j * u[j] * E[k - j] for j in range(1, k + 1)) / k
        R[k] = -R[0] * sum(E[j] * R[k - j] for j in range(1, k + 1))
    return R


def exp_series(u):
    """Power series of exp(u), in long double."""
    E = np.zeros_like(u)
    E[0] = np.exp(u[0])
    for k in range(1, len(u)):
        E[k] = sum(j * u[j] * E[k - j] for j in range(1, k + 1)) / k
    return E


def power_series(law, v):
    """Power series of a law's effort from its textbook formula."""
    constant = np.zeros_like(v)
    constant[0] = 1
    if isinstance(law, Viscous):
        return law.coefficient * v
    if isinstance(law, Coulomb):
        return law.level * (
            constant - 2 * reciprocal_of_one_plus_exp(2 * v / law.smoothing)
        )
    if isinstance(law, Stribeck):
        decay = exp_series(-np.convolve(v, v)[: len(v)] / np.longdouble(law.velocity) ** 2)
        shape = power_series(Coulomb(law.level, law.smoothing), v)
        return np.convolve(decay, shape)[: len(v)]
    if isinstance(law, Sigmoid):
        phi1, phi2, phi3 = np.array([law.phi1, law.phi2, law.phi3], dtype=np.longdouble)
        moving = reciprocal_of_one_plus_exp(-phi2 * (v + phi3 * constant))
        return phi1 * (moving - constant / (1 + np.exp(-phi2 * phi3)))
    if isinstance(law, Offset):
        return law.value * constant
    return sum(power_series(term, v) for term in law.laws)


@pytest.mark.parametrize('law', SMOOTH_LAWS, ids=str)
@pytest.mark.parametrize('speed', [0.0, 0.003, -0.05, 0.4, -2.0, 30.0])
def test_effort_and_derivatives_are_those_of_the_formula(law, speed):
    rates = np.array([speed, 0.7, -1.3, 0.4, 2.1, -0.6])
    effort = law.effort(rates)
    assert effort.shape == (K,)
    factorials = np.array([factorial(k) for k in range(K)], dtype=np.longdouble)
    expected = (power_series(law, rates / factorials) * factorials).astype(float)
    np.testing.assert_allclose(
        effort, expected, rtol=1e-12, atol=1e-14 * np.abs(expected).max()
    )


@pytest.mark.parametrize(
    'law', [Sigmoid(0.5, 5.0, 0.04), Coulomb(0.5, 0.01), Coulomb(0.5, 1e-300), Coulomb(0.5)]
)
@pytest.mark.parametrize('speed', [1e3, -1e3, 1e300, -1e300])
def test_large_velocities_saturate_without_overflow(law, speed):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        effort = law.effort(np.array([speed, 1e5, -1e7, 1e9]))
    limits = Sigmoid(0.5, 5.0, 0.04)
    shift = 0.0
    if isinstance(law, Sigmoid):
        shift = limits.phi1 / (1.0 + np.exp(-limits.phi2 * limits.phi3))
        expected = limits.phi1 * (speed > 0) - shift
    else:
        expected = 0.5 * np.sign(speed)
    np.testing.assert_allclose(effort[0], expected, rtol=1e-14)
    np.testing.assert_array_equal(effort[1:], np.zeros(3))


def test_sharp_coulomb_friction_is_the_limit_of_the_smooth_one():
    for speed in (0.3, -0.3):
        velocity = np.array([speed, 2.0, -1.0])
        sharp = Coulomb(1.2).effort(velocity)
        np.testing.assert_array_equal(sharp, [1.2 * np.sign(speed), 0.0, 0.0])
        np.testing.assert_allclose(Coulomb(1.2, 0.002).effort(velocity), sharp, atol=1e-12)
    # At a reversal there is no derivative; what is returned is that of both sides, without jump.
    np.testing.assert_array_equal(
        Coulomb(1.2).effort(np.array([0.0, 2.0, -1.0])), np.zeros(3)
    )


@pytest.mark.parametrize('speed', [0.02, -0.3])
def test_sharp_stribeck_friction_has_the_derivatives_of_its_decay(speed):
    velocity, a, b = speed, 2.0, -1.0
    u = -((speed / 0.2) ** 2)
    du, d2u = -2.0 * speed * a / 0.04, -2.0 * (a * a + speed * b) / 0.04
    expected = np.sign(speed) * 1.3 * np.exp(u) * np.array([1.0, du, d2u + du * du])
    effort = Stribeck(1.3, 0.2).effort(np.array([velocity, a, b]))
    np.testing.assert_allclose(effort, expected, rtol=1e-13)


def test_laws_are_values():
    law = Viscous(0.2) + Coulomb(0.7, 0.5) + Offset(0.1)
    assert law == Sum((Viscous(0.2), Coulomb(0.7, 0.5), Offset(0.1)))
    assert law != Viscous(0.2)
    assert pickle.loads(pickle.dumps(law)) == law
    assert len({law, Viscous(0.2), Viscous(0.2)}) == 2
    with pytest.raises(AttributeError):
        Viscous(0.2).coefficient = 1.0
    with pytest.raises(TypeError):
        Viscous(0.2) + 1.0


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda: Viscous(np.nan), 'coefficient is nan, expected a finite number from 0 on'),
        (
            lambda: Viscous(-1),
            'Viscous: coefficient is -1, expected a finite number from 0 on',
        ),
        (lambda: Coulomb(np.inf), 'level'),
        (
            lambda: Coulomb(1.0, -0.1),
            'smoothing is -0.1, expected a finite number from 0 on',
        ),
        (lambda: Stribeck(1.0, 0.0), 'Stribeck: velocity is 0.0, expected .* above 0'),
        (lambda: Stribeck(1.0, 0.1, -1.0), 'Stribeck: smoothing is -1.0'),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


# --- In a model ---------------------------------------------------------------------------------


def panda_like():
    return RobotModel.from_urdf(robots.TWO_LINK)


def test_friction_of_a_mimic_joint_adds_to_the_joint_that_it_follows():
    model = RobotModel.from_urdf(
        robot(
            *(link(name) for name in 'abc'),
            joint('x', 'a', 'b'),
            joint('y', 'b', 'c', extra='<mimic joint="x" multiplier="-2" offset="0.3"/>'),
        )
    )
    law = Coulomb(1.0, 0.3)
    full = model.with_friction({'y': law}).with_armature({'y': 0.5})
    motion = random_motion(1, 1, 5)
    difference = inverse_dynamics(full, motion) - inverse_dynamics(model, motion)
    expected = -2.0 * law.effort(-2.0 * motion[1:4, 0]) + 4.0 * 0.5 * motion[2:, 0]
    np.testing.assert_allclose(difference[:, 0], expected, atol=1e-12)


def test_laws_are_replaced_one_joint_at_a_time_and_can_be_removed():
    model = panda_like().with_friction({'elbow': Viscous(1.0), 'shoulder': Offset(1.0)})
    changed = model.with_friction({'elbow': Coulomb(1.0)})
    assert changed.friction == {'elbow': Coulomb(1.0), 'shoulder': Offset(1.0)}
    assert changed.with_friction({'elbow': None, 'shoulder': None}).friction == {}
    assert model.friction['elbow'] == Viscous(1.0)
    assert pickle.loads(pickle.dumps(model)).friction == model.friction
    armed = model.with_armature({'elbow': 0.1}).with_armature({'shoulder': 0.2})
    np.testing.assert_array_equal(armed.armature, [0.2, 0.1])
    assert armed.friction == model.friction
    assert armed.with_payload('tool', 1.0).friction == model.friction


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (
            lambda model: model.with_friction({'wrist': Viscous(1.0)}),
            "no moving joint 'wrist'",
        ),
        (lambda model: model.with_friction({'flange': Viscous(1.0)}), 'shoulder, elbow'),
        (lambda model: model.with_friction({'elbow': 0.3}), 'expected a friction law'),
        (lambda model: model.with_armature({'wrist': 1.0}), "no moving joint 'wrist'"),
        (lambda model: model.with_armature({'elbow': -1.0}), 'number from 0 on'),
        (lambda model: model.with_armature({'elbow': np.nan}), 'finite'),
        (lambda model: model.with_armature({'elbow': 'big'}), 'finite'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(change, message):
    with pytest.raises(ModelError, match=message):
        change(panda_like())


# --- From tables --------------------------------------------------------------------------------


def test_tables_make_the_laws_whose_keys_they_have():
    tables = {
        'a': {'viscous': 0.3},
        'b': {'coulomb': 1.2, 'smoothing': 0.02, 'stribeck': 0.4, 'stribeck_velocity': 0.1},
        'c': {'stribeck_velocity': 0.1, 'stribeck': 0.4},
        'd': {'phi1': 0.5, 'phi2': 5.0, 'phi3': 0.04, 'offset': -1},
        'e': {'viscous': np.inf, 'coulomb': 0.0, 'smoothing': 0.1},
    }
    assert friction_from_config(tables) == {
        'a': Viscous(0.3),
        'b': Coulomb(1.2, 0.02) + Stribeck(0.4, 0.1, 0.02),
        'c': Stribeck(0.4, 0.1),
        'd': Sigmoid(0.5, 5.0, 0.04) + Offset(-1.0),
        'e': None,
    }


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('table', 'message'),
    [
        (
            {'viscosity': 1.0},
            'friction.a has viscosity, expected keys among viscous, coulomb',
        ),
        (
            {'stribeck': 1.0},
            'friction.a: stribeck_velocity must be set, too, with stribeck',
        ),
        ({'phi1': 1.0, 'phi3': 0.1}, 'phi2 must be set, too, with phi1, phi3'),
        (
            {'viscous': 1.0, 'smoothing': 0.1},
            'smoothing is 0.1, .* expected coulomb or stribeck',
        ),
        ({'viscous': -1.0}, 'friction.a: Viscous: coefficient is -1.0'),
        (
            {'coulomb': 'much'},
            "friction.a: Coulomb: level is 'much', .* keys are coulomb, smooth",
        ),
        ({'stribeck': 1.0, 'stribeck_velocity': 0.0}, 'velocity is 0.0'),
        (3.0, 'friction.a is 3.0, expected a table'),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises(ModelError, match=message):
        friction_from_config({'a': table})
    with pytest.raises(ModelError, match='expected a table for each joint'):
        friction_from_config([table])
