"""The recommended law on two plants that share no code with it, and that are not its model."""

import warnings

import numpy as np
import pytest
from support import control_cases, control_simulation
from support.control_cases import (
    ALL,
    FAST_MOTION,
    HOME,
    MOTION,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
    follow,
)

from hodyn_ros.control import ControlWarning, tracking_controller
from hodyn_ros.errors import ControlError

T = 1e-3


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def law(model, stiffness=STIFFNESS, damping=0.0, **options):
    options = {'torque_limits': TORQUE_LIMITS, **options}
    return tracking_controller(
        control_simulation.drives(model, stiffness, damping), T, **options
    )


@pytest.mark.parametrize(
    ('given', 'largest'),
    [
        ({'delay': 2}, 0.05),
        ({'payload': 1.0}, 6.0),
        ({'stiffness': -0.1}, 2.0),
        ({'stiffness': 0.1}, 2.0),
        ({'inertia': 0.1}, 3.0),
        ({'coulomb': 1.0}, 2.0),
        ({'gear_ratio': 100.0}, 0.05),
        ({'encoders': True}, 0.05),
    ],
)
@pytest.mark.parametrize('follow', [control_cases.follow, control_simulation.follow])
def test_law_holds_when_the_model_is_wrong(panda, follow, given, largest):
    """Errors in mrad."""
    run = follow(law(panda), Condition(**given))
    assert run.peak < largest
    assert run.saturated == 0.0
    assert run.rate_at_rest < 200.0


@pytest.mark.parametrize(('stiffness', 'largest'), [(5000.0, 0.25), (20000.0, 0.2)])
def test_the_same_rule_serves_stiff_springs(panda, stiffness, largest):
    springs = np.full(7, stiffness)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ControlWarning)
        controller = law(panda, springs)
    run = follow(controller, Condition(**ALL), springs, substeps=1)
    assert run.rms < largest


@pytest.mark.parametrize(
    ('given', 'peak', 'saturated'),
    [
        ({'motion': FAST_MOTION, 'rest': 1.8}, 110.0, True),
        ({'offset': 0.05}, 60.0, False),
        ({'push': 20.0}, 20.0, False),
    ],
)
def test_law_forgets_what_was(panda, given, peak, saturated):
    """More torque than there is, a start off the motion, a push; errors in mrad."""
    run = follow(law(panda, guards=None), Condition(**given), substeps=1)
    assert (run.saturated > 0.02) == saturated
    assert run.peak < peak
    assert run.at_end < 0.1


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
