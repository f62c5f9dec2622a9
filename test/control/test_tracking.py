"""The recommended law on two plants that share no code with it, and that are not its model."""

import warnings

import numpy as np
import pytest
from support import control_cases, control_simulation
from support.control_cases import (
    CONDITIONS,
    HOME,
    MOTION,
    MOTOR_INERTIA,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
    follow,
)

from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import ControlWarning, tracking_controller
from hodyn_ros.errors import ControlError, MotionError

T = 1e-3


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def law(model, stiffness=STIFFNESS, damping=0.0, **options):
    springs = {
        name: SeriesElastic(float(k), float(b), damping)
        for name, k, b in zip(model.joint_names, stiffness, MOTOR_INERTIA)
    }
    options = {'torque_limits': TORQUE_LIMITS, **options}
    return tracking_controller(Actuators(model, springs), T, **options)


# Largest errors, RMS and peak [mrad], for robots that are not as the law thinks.
LARGEST = {
    'payload 1 kg': (0.6, 6.0),
    'K -10 %': (0.25, 2.0),
    'K +10 %': (0.25, 2.0),
    'mass +10 %': (0.3, 3.0),
    'motor Coulomb 1 N m': (0.25, 2.0),
    'rotors, gear of 100': (0.012, 0.05),
    'encoders': (0.012, 0.05),
    'delay 1 ms, unknown': (0.012, 0.05),
    'delay 2 ms, known': (0.012, 0.05),
    'delay 2 ms, unknown': (0.012, 0.05),
    'all, delay 1 ms, known': (0.7, 7.0),
}


@pytest.mark.parametrize('name', LARGEST)
@pytest.mark.parametrize('follow', [control_cases.follow, control_simulation.follow])
def test_law_holds_when_the_model_is_wrong(panda, follow, name):
    condition = CONDITIONS[name]
    run = follow(law(panda, delay=T * condition.delay * condition.knows_delay), condition)
    assert run.rms < LARGEST[name][0]
    assert run.peak < LARGEST[name][1]
    assert run.saturated == 0.0
    assert run.rate_at_rest < 200.0


@pytest.mark.parametrize(('stiffness', 'largest'), [(5000.0, 0.25), (20000.0, 0.2)])
def test_the_same_rule_serves_stiff_springs(panda, stiffness, largest):
    springs = np.full(7, stiffness)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ControlWarning)
        controller = law(panda, springs)
    run = follow(controller, CONDITIONS['all'], springs, substeps=1)
    assert run.rms < largest


@pytest.mark.parametrize(
    ('name', 'peak', 'at_end', 'saturated'),
    [
        ('fast', 110.0, 0.1, True),
        ('start 0.05 rad off', 60.0, 0.1, False),
        ('push 20 N', 20.0, 0.1, False),
    ],
)
def test_law_forgets_what_was(panda, name, peak, at_end, saturated):
    """More torque than there is, a start off the motion, a push; errors in mrad."""
    run = follow(law(panda, guards=None), CONDITIONS[name], substeps=1)
    assert (run.saturated > 0.02) == saturated
    assert run.peak < peak
    assert run.at_end < at_end


def test_damper_that_the_law_knows_costs_less_than_one_that_it_does_not(panda):
    condition = Condition(damping=3.0)
    known, unknown = (
        follow(law(panda, damping=damping), condition, substeps=1) for damping in (3.0, 0.0)
    )
    assert known.rms < 0.5 * unknown.rms


AT_REST = np.zeros((5, 7))
AT_REST[0] = HOME


def at_home(panda):
    controller = law(panda)
    return controller, np.array(HOME), controller.resting(HOME)


def test_torque_sensors_take_the_place_of_deflections_and_must_have_their_sign(panda):
    """With sensors that are right, springs of another stiffness do not matter at rest."""
    controller, q, theta = at_home(panda)
    plant = Condition(stiffness=-0.2).plant()
    state = plant.at_rest(q)
    sensor = plant.spring_torque(state[2] - state[0])
    with pytest.raises(ControlError, match='torque sensor'):
        controller.evaluate(AT_REST, state[0], None, state[2], None, -sensor)
    for _ in range(50):
        torque = controller.evaluate(AT_REST, state[0], None, state[2], None, sensor).torque
    np.testing.assert_allclose(torque, plant.torque, atol=0.05)
    assert np.abs(controller.observer.state().external_torque).max() < 0.05
    controller.reset()
    for _ in range(50):
        controller.evaluate(AT_REST, state[0], None, state[2], None)
    assert np.abs(controller.observer.state().external_torque).max() > 1.0


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('place', 'value'), [(0, np.nan), (0, np.zeros((4, 7))), (1, np.zeros(6)), (3, [0.0])]
)
def test_bad_input_is_refused_and_changes_nothing(panda, place, value):
    controller, q, theta = at_home(panda)
    other = law(panda)
    good = [AT_REST, q, None, theta, None]
    controller.evaluate(*good), other.evaluate(*good)
    bad = list(good)
    bad[place] = value if np.ndim(value) else np.full_like(good[place], value)
    with pytest.raises(MotionError):
        controller.evaluate(*bad)
    assert np.array_equal(controller.evaluate(*good).torque, other.evaluate(*good).torque)


def test_observed_state_is_that_of_the_robot(panda):
    """Velocities to jerks, spring torques and a push, with positions alone."""
    controller, plant = law(panda), Condition().plant()
    state = plant.at_rest(np.array(HOME))
    plant.push[:] = [0.0, 2.0, 0.0, -1.0, 0.5, 0.0, 0.1]
    for k in range(1000):
        desired = MOTION([k * T + controller.lead])[0]
        torque = controller.command(desired, state[0], None, state[2], None)
        if k == 600:
            break
        state = plant.hold(state, torque, T)
    seen, expected = controller.observer.state(), plant.rate(state, torque)
    for found, true, share in (
        (seen.position, state[0], 1e-4),
        (seen.velocity, state[1], 2e-3),
        (seen.acceleration, expected[1], 2e-2),
        (seen.motor_velocity, state[3], 2e-3),
        (seen.spring_torque, plant.spring_torque(state[2] - state[0]), 1e-4),
        (seen.external_torque, plant.push, 2e-2),
    ):
        assert np.abs(found - true).max() < share * np.abs(true).max()
    assert np.abs(seen.motor_friction).max() < 0.02
