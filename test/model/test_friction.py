"""Friction laws with exact time derivatives, and friction and armature in inverse dynamics."""

import pickle
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

LAWS = [
    Coulomb(1.5, smoothing=0.2) + Stribeck(0.4, 1.5, 0.05),
    Viscous(0.3),
    Coulomb(1.2),
    Stribeck(1.3, 0.2),
    # Gaz et al. 2019, supplementary material, table I: joints 1 and 3 of the Panda.
    Sigmoid(0.54615, 5.1181, 0.039533),
    Sigmoid(0.64068, 10.136, -0.046070),
    Offset(-0.4),
    Viscous(0.2) + Coulomb(0.7, 0.5) + Offset(0.1),
]
K = 6


def product(a, b):
    return np.convolve(a, b)[: len(a)]


def series_of(start, slope, u):
    """Power series of y(u) with y' = slope(y), in long double."""
    y = np.zeros_like(u)
    y[0] = start
    for k in range(1, len(u)):
        rate = slope(y)
        y[k] = sum(j * u[j] * rate[k - j] for j in range(1, k + 1)) / k
    return y


def power_series(law, v):
    """Power series of a law's effort from its textbook formula."""
    one = np.zeros_like(v)
    one[0] = 1
    if isinstance(law, Viscous):
        return law.coefficient * v
    if isinstance(law, Coulomb):
        if law.smoothing == 0.0:
            return law.level * np.sign(v[0]) * one
        u = v / law.smoothing
        return law.level * series_of(np.tanh(u[0]), lambda y: one - product(y, y), u)
    if isinstance(law, Stribeck):
        u = -product(v, v) / np.longdouble(law.velocity) ** 2
        shape = power_series(Coulomb(law.level, law.smoothing), v)
        return product(series_of(np.exp(u[0]), lambda y: y, u), shape)
    if isinstance(law, Sigmoid):
        phi1, phi2, phi3 = np.array([law.phi1, law.phi2, law.phi3], dtype=np.longdouble)
        u = phi2 * (v + phi3 * one)
        start, rest = (1 / (1 + np.exp(-x)) for x in (u[0], phi2 * phi3))
        return phi1 * (series_of(start, lambda y: y - product(y, y), u) - rest * one)
    if isinstance(law, Offset):
        return law.value * one
    return sum(power_series(term, v) for term in law.laws)


@pytest.mark.parametrize('law', LAWS, ids=str)
@pytest.mark.parametrize('speed', [0.4, 0.0, 0.003, -0.05, -2.0, 30.0])
def test_effort_and_derivatives_are_those_of_the_formula(law, speed):
    rates = np.array([speed, 0.7, -1.3, 0.4, 2.1, -0.6])
    effort = law.effort(rates)
    assert effort.shape == (K,)
    factorials = np.array([factorial(k) for k in range(K)], dtype=np.longdouble)
    expected = (power_series(law, rates / factorials) * factorials).astype(float)
    np.testing.assert_allclose(
        effort, expected, rtol=1e-12, atol=1e-14 * np.abs(expected).max()
    )


@pytest.mark.parametrize('law', [Sigmoid(0.5, 5.0, 0.0), Coulomb(0.5, 1e-300)])
@pytest.mark.parametrize('speed', [1e300, -1e3])
@pytest.mark.filterwarnings('error')
def test_large_velocities_saturate_without_overflow(law, speed):
    effort = law.effort(np.array([speed, 1e5, -1e7, 1e9]))
    level = 0.25 if isinstance(law, Sigmoid) else 0.5
    np.testing.assert_allclose(effort, [level * np.sign(speed), 0, 0, 0], rtol=1e-14)


def test_laws_are_values():
    law = Viscous(0.2) + Coulomb(0.7, 0.5) + Offset(0.1)
    assert law == Sum((Viscous(0.2), Coulomb(0.7, 0.5), Offset(0.1)))
    assert law != Viscous(0.2)
    assert pickle.loads(pickle.dumps(law)) == law
    with pytest.raises(AttributeError):
        Viscous(0.2).coefficient = 1.0


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('law', 'values', 'message'),
    [
        (Viscous, [np.nan], 'coefficient is nan, expected a finite number from 0 on'),
        (Coulomb, [1.0, -0.1], 'smoothing is -0.1, expected a finite number from 0 on'),
        (Stribeck, [1.0, 0.0], 'Stribeck: velocity is 0.0, expected .* above 0'),
    ],
)
def test_bad_parameters_are_refused(law, values, message):
    with pytest.raises(ModelError, match=message):
        law(*values)


# --- In a model ---------------------------------------------------------------------------------


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
    model = RobotModel.from_urdf(robots.TWO_LINK)
    model = model.with_friction({'elbow': Viscous(1.0), 'shoulder': Offset(1.0)})
    changed = model.with_friction({'elbow': Coulomb(1.0)})
    assert changed.friction == {'elbow': Coulomb(1.0), 'shoulder': Offset(1.0)}
    assert changed.with_friction({'elbow': None, 'shoulder': None}).friction == {}
    assert model.friction['elbow'] == Viscous(1.0)
    armed = model.with_armature({'elbow': 0.1}).with_armature({'shoulder': 0.2})
    np.testing.assert_array_equal(armed.armature, [0.2, 0.1])
    assert armed.with_payload('tool', 1.0).friction == model.friction


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('kind', 'given', 'message'),
    [
        ('friction', {'flange': Viscous(1.0)}, "no moving joint 'flange'.*shoulder, elbow"),
        ('friction', {'elbow': 0.3}, 'expected one of the friction laws'),
        ('armature', {'elbow': -1.0}, 'number from 0 on'),
        ('armature', {'elbow': 'big'}, 'finite'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(kind, given, message):
    model = RobotModel.from_urdf(robots.TWO_LINK)
    with pytest.raises(ModelError, match=message):
        getattr(model, f'with_{kind}')(given)


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
            r'friction.a has viscosity \(did you mean viscous\?\), expected keys among viscous, '
            'coulomb',
        ),
        ({'phi1': 1.0, 'phi3': 0.1}, 'phi2 must be set, too, with phi1, phi3'),
        (
            {'viscous': 1.0, 'smoothing': 0.1},
            'smoothing is 0.1, .* expected coulomb or stribeck',
        ),
        (
            {'coulomb': 'much'},
            "friction.a: Coulomb: level is 'much', .* keys are coulomb, smooth",
        ),
        (3.0, 'friction.a is 3.0, expected a table'),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises(ModelError, match=message):
        friction_from_config({'a': table})
    with pytest.raises(ModelError, match='expected a table for each joint'):
        friction_from_config([table])


@pytest.mark.every_case
@pytest.mark.parametrize(
    'law',
    [
        Viscous(2.0),
        Coulomb(2.0, 0.1),
        Stribeck(2.0, 0.1, 0.1),
        Sigmoid(2.0, 20.0, 0.1),
        Offset(2.0),
        Viscous(2.0) + Offset(2.0),
    ],
)
def test_velocities_may_be_lists_also_of_whole_numbers(law):
    np.testing.assert_array_equal(law.effort([1, 2]), law.effort(np.array([1.0, 2.0])))
    for given in (3.0, 'fast'):
        with pytest.raises(ModelError, match=r'expected its series, shape \(..., K\)'):
            law.effort(given)
