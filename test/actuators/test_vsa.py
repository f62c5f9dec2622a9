"""Motors of variable stiffness actuators reproduce torque, stiffness and their derivatives."""

from math import factorial

import casadi
import numpy as np
import pytest
from support import vsa_oracle
from support.vsa_oracle import MODELS, PUBLISHED

from hodyn_ros import friction
from hodyn_ros.actuators.vsa.mechanisms import PARAMETER_SETS
from hodyn_ros.actuators.vsa.model import VariableStiffness

every_model = pytest.mark.parametrize('model', MODELS.values(), ids=MODELS.keys())

ORDERS = 4


def flat_outputs(model, seed=0, count=6):
    """Series of the joint's position, effort and stiffness inside the reachable set.

    The derivatives are random; they belong to arbitrary smooth motions through the samples.
    """
    rng = np.random.default_rng(seed)
    effort, stiffness = model.effort_and_stiffness(
        vsa_oracle.reachable_samples(model, rng, count)
    )
    scale = stiffness[:, None] * 3.0 ** np.arange(ORDERS)
    series = rng.uniform(-0.3, 0.3, (3, count, ORDERS)) * scale
    series[0] = rng.normal(size=(count, ORDERS)) * 3.0 ** np.arange(ORDERS)
    series[1, :, 0], series[2, :, 0] = effort, stiffness
    return series


def polynomial(series):
    """Function of time whose derivatives at zero are a series."""
    return lambda t: sum(c * t**k / factorial(k) for k, c in enumerate(map(float, series)))


def sizes(stiffness, count):
    """Sizes of the terms that make up the orders of effort and stiffness."""
    return stiffness * 10.0 ** np.arange(count)


def derivatives(function, count):
    """Value of a function of time and its derivatives at zero, by automatic differentiation."""
    t = casadi.SX.sym('t')
    orders = [function(t)]
    while len(orders) < count:
        orders.append(casadi.jacobian(orders[-1], t))
    return np.array(casadi.Function('orders', [t], [casadi.vertcat(*orders)])(0.0)).ravel()


@every_model
def test_printed_formulas_follow_from_one_energy(model):
    q, y1, y2 = symbols = [casadi.SX.sym(name) for name in ('q', 'y1', 'y2')]
    torque, stiffness, energy = (
        formula(model, casadi, *symbols)
        for formula in (vsa_oracle.torque, vsa_oracle.stiffness, vsa_oracle.energy)
    )
    printed = [torque, stiffness, *vsa_oracle.motor_torques(model, casadi, *symbols)]
    derived = [-casadi.jacobian(energy, q), -casadi.jacobian(torque, q)]
    derived += [casadi.jacobian(energy, y1), casadi.jacobian(energy, y2)]
    values = casadi.Function(
        'f', symbols, [casadi.vertcat(*printed), casadi.vertcat(*derived)]
    )
    rng = np.random.default_rng(1)
    for d in vsa_oracle.reachable_samples(model, rng, 20):
        at = rng.normal()
        found, expected = values(at, d[0] + at, d[1] + model.link_coupling[1] * at)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@every_model
def test_forward_model_is_the_printed_one(model):
    rng = np.random.default_rng(2)
    d = vsa_oracle.reachable_samples(model, rng, 20)
    q = rng.normal(size=len(d))
    y = d + q[:, None] * np.array(model.link_coupling)
    forward = VariableStiffness(model, 1.0).elastic(q[:, None], y[..., None])
    arguments = (model, np, q, y[:, 0], y[:, 1])
    np.testing.assert_allclose(
        forward.effort[:, 0], vsa_oracle.torque(*arguments), rtol=1e-12
    )
    np.testing.assert_allclose(
        forward.stiffness[:, 0], vsa_oracle.stiffness(*arguments), rtol=1e-12
    )
    np.testing.assert_allclose(
        forward.motor_effort[..., 0].T, vsa_oracle.motor_torques(*arguments), rtol=1e-12
    )


@every_model
def test_motor_motions_reproduce_effort_and_stiffness_with_their_derivatives(model):
    q, effort, stiffness = flat_outputs(model)
    motors = VariableStiffness(model, 0.02).motors(q, effort, stiffness)
    assert motors.position.shape == (*q.shape[:-1], 2, ORDERS)
    for i in range(len(q)):
        motion = [polynomial(series) for series in (q[i], *motors.position[i])]
        for formula, wanted in (
            (vsa_oracle.torque, effort),
            (vsa_oracle.stiffness, stiffness),
        ):

            def forward(t, formula=formula, motion=motion):
                return formula(model, casadi, *(coordinate(t) for coordinate in motion))

            error = derivatives(forward, ORDERS) - wanted[i]
            assert np.all(np.abs(error) < 1e-12 * sizes(stiffness[i, 0], ORDERS))


@every_model
def test_motor_torques_balance_inertia_friction_and_springs_with_their_derivatives(model):
    q, effort, stiffness = flat_outputs(model, seed=3)
    laws = (friction.Viscous(0.3), friction.Coulomb(0.2, smoothing=0.5))
    drive = VariableStiffness(model, (0.02, 0.05), laws)
    motors = drive.motors(q, effort, stiffness)
    assert motors.torque.shape == (*q.shape[:-1], 2, ORDERS - 2)
    for i in range(len(q)):
        motion = [polynomial(series) for series in (q[i], *motors.position[i])]
        for motor, inertia in enumerate((0.02, 0.05)):

            def balance(t, motor=motor, inertia=inertia, motion=motion):
                y = motion[1 + motor](t)
                velocity = casadi.jacobian(y, t)
                losses = (0.3 * velocity, 0.2 * casadi.tanh(velocity / 0.5))[motor]
                springs = vsa_oracle.motor_torques(model, casadi, *(f(t) for f in motion))[
                    motor
                ]
                return inertia * casadi.jacobian(velocity, t) + losses + springs

            expected = derivatives(balance, ORDERS - 2)
            size = np.abs(expected) + sizes(stiffness[i, 0], ORDERS - 2)
            assert np.all(np.abs(motors.torque[i, motor] - expected) < 1e-12 * size)


@every_model
def test_orders_are_as_many_as_the_shortest_input_has(model):
    q, effort, stiffness = (series[0] for series in flat_outputs(model))
    drive = VariableStiffness(model, 0.1)
    full = drive.motors(q, effort, stiffness)
    for K, E, S in ((4, 4, 1), (4, 2, 4), (3, 4, 4), (1, 4, 4)):
        R = min(K, E, S)
        motors = drive.motors(q[:K], effort[:E], stiffness[:S])
        assert motors.position.shape == (2, R)
        assert motors.torque.shape == (2, max(R - 2, 0))
        np.testing.assert_array_equal(motors.position, full.position[:, :R])
        np.testing.assert_allclose(
            motors.torque, full.torque[:, : max(R - 2, 0)], rtol=1e-14
        )


@every_model
def test_jacobian_is_that_of_automatic_differentiation(model):
    y = casadi.SX.sym('y', 2)
    values = casadi.vertcat(
        *(
            of(model, casadi, 0.0, y[0], y[1])
            for of in (vsa_oracle.torque, vsa_oracle.stiffness)
        )
    )
    jacobian = casadi.Function('J', [y], [casadi.jacobian(values, y)])
    for d in vsa_oracle.reachable_samples(model, np.random.default_rng(5), 20):
        expected = np.array(jacobian(d))
        tolerance = 1e-12 * np.abs(expected).max(axis=1, keepdims=True)
        assert np.all(np.abs(model.jacobian(d) - expected) <= tolerance)


@every_model
def test_deflection_is_that_of_the_motors_that_turn_with_the_joint(model):
    q, effort, stiffness = flat_outputs(model)
    drive = VariableStiffness(model, 0.1)
    motors = drive.motors(q, effort, stiffness)
    expected = motors.position[:, 0] - q
    if model.link_coupling == (1.0, 1.0):
        expected = 0.5 * (expected + motors.position[:, 1] - q)
    error = np.abs(drive.deflection(q, motors) - expected)
    assert np.all(error <= 1e-14 * np.abs(motors.position).max(axis=-2))


def test_equal_springs_have_the_published_inverse():
    model = PUBLISHED['qbmove/advanced_datasheet']
    (a, _), (k, _) = model.a, model.k
    q, effort, stiffness = (series[:, :1] for series in flat_outputs(model))
    motors = VariableStiffness(model, 0.1).motors(q, effort, stiffness)
    equilibrium = q + np.arctanh(a * effort / stiffness) / a
    preset = np.arccosh(stiffness / (2 * a * k * np.cosh(a * (equilibrium - q)))) / a
    np.testing.assert_allclose(motors.position[:, 0], equilibrium + preset, rtol=1e-10)
    np.testing.assert_allclose(motors.position[:, 1], equilibrium - preset, rtol=1e-10)


def test_constants_are_the_published_ones():
    qbmove, bavs, awas = (
        PARAMETER_SETS[name] for name in ('qbmove', 'dlr_bavs', 'awas_ii')
    )
    assert {name: (s.model.a[0], s.model.k[0]) for name, s in qbmove.items()} == {
        'nmmi_maker_pro': (8.9992, 0.0019),
        'advanced_datasheet': (6.7328, 0.0222),
        'gazebo_2015': (6.85, 0.022),
    }
    (d,) = (s.model for s in bavs.values())
    assert (d.a, d.b, d.k, d.ke, d.max_deflection) == (1.21e-6, 2.38e-6, 1.6e5, 8.71, 0.27)
    (w,) = (s.model for s in awas.values())
    assert (w.Ks, w.L, w.r_t, w.max_deflection) == (10.0, 0.05, 0.015, 0.3)
    for sets in PARAMETER_SETS.values():
        for entry in sets.values():
            assert entry.status in {'data sheet', 'example', 'placeholder'}
            assert entry.source and entry.warning


def test_force_on_the_pivot_keeps_its_digits_at_small_deflections():
    model = PUBLISHED['awas_ii/nmmi']
    for d in (1e-3, 1e-6, 1e-9):
        found = model.series(np.array([[d], [0.02]])).motor_effort[:, 0]
        expected = vsa_oracle.motor_torques(model, np, 0.0, d, 0.02)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
