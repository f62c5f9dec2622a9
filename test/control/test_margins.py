"""Margins of the tracking law, confirmed on a plant that shares no code with it."""

import numpy as np
import pytest
from support import control_simulation
from support.control_cases import (
    HOME,
    JOINTS,
    LINK_STEP,
    MOTOR_STEP,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
)
from support.control_simulation import drives

from hodyn_ros.control import (
    ControlWarning,
    GravityCompensation,
    TorqueControl,
    tracking_controller,
)
from hodyn_ros.errors import ControlError, HodynError


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def law(model, stiffness=STIFFNESS, rigid=(), **options):
    return tracking_controller(drives(model, stiffness, rigid=rigid), PERIOD, **options)


@pytest.fixture(scope='module')
def margins(panda):
    return law(panda).margins(HOME)


ENCODERS = LINK_STEP, MOTOR_STEP


def test_resolution_is_that_of_links_and_motors(panda):
    with pytest.raises(ControlError, match='a pair'):
        law(panda, resolution=1e-5)
    with pytest.raises(ControlError, match='resolution of motors'):
        law(panda, resolution=(1e-5, 0.0))


def dither(controller):
    """Torque rates of a robot at rest whose encoders round, standard deviation."""
    plant, desired = Condition().plant(), np.zeros((5, 7))
    desired[0] = HOME
    state, torques = plant.at_rest(np.array(HOME) + 1e-4), []
    period = controller.sample_period
    for _ in range(1500):
        q, theta = np.round(state[0] / LINK_STEP), np.round(state[2] / MOTOR_STEP)
        torques.append(
            controller.command(desired, LINK_STEP * q, None, MOTOR_STEP * theta, None)
        )
        state = plant.hold(state, torques[-1], period, 1)
    return np.diff(np.array(torques)[700:], axis=0).std(axis=0) / period


def test_default_bandwidth_allows_for_encoders(panda):
    actuators = drives(panda)
    given = {'torque_limits': TORQUE_LIMITS}
    fast = tracking_controller(actuators, 2.5e-4, **given)
    calm = tracking_controller(actuators, 2.5e-4, resolution=ENCODERS, **given)
    assert fast.bandwidth == pytest.approx(200.0)
    assert 20.0 < calm.bandwidth < 100.0
    rates = dither(calm) / TORQUE_LIMITS
    assert 0.5 < rates.max() < 5.0 * 1.5  # white noise is an approximation
    finer = tracking_controller(actuators, 2.5e-4, resolution=(1e-9, 1e-9), **given)
    assert finer.bandwidth == fast.bandwidth


def test_springs_too_stiff_to_be_damped_are_said(panda):
    with pytest.warns(ControlWarning, match='decays at 0.0'):
        law(panda, np.full(7, 20000.0))


def test_margins_are_those_of_a_law_that_may_be_switched_on(margins):
    assert margins.decay > 25.0
    assert margins.delay.min() > 2.2e-3
    assert margins.sensitivity.max() < 2.0
    *rows, last = margins.table(JOINTS).splitlines()[1:]
    assert [row.split()[0] for row in rows] == list(JOINTS)
    assert f'{margins.sensitivity[6]:.2f}' in rows[6]
    assert f'{margins.decay:.3g} 1/s' in last
    for names in (JOINTS[:6], 'panda', ()):
        with pytest.raises(ControlError, match='expected the names of 7 motors'):
            margins.table(names)


def test_delay_margins_are_those_of_the_narrowest_resonance(panda):
    stiff = drives(panda, 8.0 * STIFFNESS)
    law = tracking_controller(stiff, 1e-3, bandwidth=20.0, delay=3e-3, torque_limits=100.0)
    few, many = (law.margins(frequencies=count) for count in (80, 300))
    assert many.delay[0] < 4e-3  # twenty if its first resonance is missed
    np.testing.assert_allclose(few.delay, many.delay, rtol=0.05)
    np.testing.assert_allclose(few.sensitivity, many.sensitivity, rtol=0.01)


def test_bandwidth_that_the_margins_do_not_allow_is_refused_with_one_that_would_do(panda):
    with pytest.raises(
        ControlError, match=r'150 rad/s.* ([0-9.]+) rad/s would do'
    ) as refused:
        law(panda, bandwidth=150.0, delay=5e-3)
    would_do = float(str(refused.value).split(' rad/s would do')[0].split()[-1])
    assert 10.0 < would_do < 150.0
    law(panda, bandwidth=would_do, delay=5e-3)


@pytest.mark.every_case
@pytest.mark.parametrize('bandwidth', [0.0, np.nan, 201.0, 'fast'])
def test_bandwidth_beyond_the_sample_time_is_refused(panda, bandwidth):
    with pytest.raises(ControlError, match='bandwidth'):
        law(panda, bandwidth=bandwidth)


def test_margins_refuse_what_they_cannot_use(panda):
    controller = law(panda)
    for options in ({'position': [0.0]}, {'position': [np.nan] * 7}, {'frequencies': 1}):
        with pytest.raises(HodynError):
            controller.margins(**options)


def test_robot_left_free_neither_returns_nor_leaves_and_constant_torques_let_it_fall(panda):
    given = {'damping': 2.0}
    free = GravityCompensation(drives(panda), PERIOD, **given).margins(HOME)
    assert abs(free.decay) < 1e-4
    falling = TorqueControl(drives(panda), PERIOD, **given).margins(HOME)
    assert falling.decay < -1.0
