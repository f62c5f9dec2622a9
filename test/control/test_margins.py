"""Margins of the tracking law, confirmed on a plant that shares no code with it."""

import numpy as np
import pinocchio
import pytest
from support import control_simulation
from support.control_cases import (
    HOME,
    JOINTS,
    LINK_STEP,
    MOTOR_INERTIA,
    MOTOR_STEP,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
)
from support.followed import growth

from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic
from hodyn_ros.control import (
    ControlWarning,
    GravityCompensation,
    JointImpedance,
    TorqueControl,
    tracking_controller,
)
from hodyn_ros.errors import ControlError, HodynError


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def drives(model, stiffness=STIFFNESS, rigid=()):
    values = zip(model.joint_names, stiffness, MOTOR_INERTIA)
    return Actuators(
        model,
        {
            name: RigidDrive(float(b)) if j in rigid else SeriesElastic(float(k), float(b))
            for j, (name, k, b) in enumerate(values)
        },
    )


def law(model, stiffness=STIFFNESS, rigid=(), **options):
    return tracking_controller(drives(model, stiffness, rigid), PERIOD, **options)


@pytest.fixture(scope='module')
def margins(panda):
    return law(panda).margins(HOME)


@pytest.mark.parametrize('motor', [1, 5])
def test_impedance_breaks_where_its_margins_say(panda, motor):
    controller = JointImpedance(drives(panda), PERIOD, stiffness=300.0)
    found = controller.margins(HOME)
    assert found.decay > 1.0
    assert growth(controller, motor, gain=found.gain_up[motor] / 1.1) < 1.0
    assert growth(controller, motor, gain=found.gain_up[motor] * 1.1) > 1.0
    assert growth(controller, motor, delay=int(found.delay[motor] / PERIOD) + 1) > 1.0


ENCODERS = LINK_STEP, MOTOR_STEP


def test_noise_of_encoders_is_that_of_a_robot_at_rest(panda):
    """The robot itself is what dithers its encoders; white noise is an approximation."""
    controller = law(panda, resolution=ENCODERS, torque_limits=TORQUE_LIMITS)
    found = controller.margins(HOME)
    plant, desired = Condition().plant(), np.zeros((5, 7))
    desired[0] = HOME
    state, torques = plant.at_rest(np.array(HOME) + 1e-4), []
    for _ in range(1500):
        q, theta = np.round(state[0] / LINK_STEP), np.round(state[2] / MOTOR_STEP)
        torques.append(
            controller.command(desired, LINK_STEP * q, None, MOTOR_STEP * theta, None)
        )
        state = plant.hold(state, torques[-1], PERIOD, 1)
    rest = np.array(torques)[700:]
    assert np.all(rest.std(axis=0) < 2.0 * found.noise)
    assert np.all(rest.std(axis=0) > 0.2 * found.noise)
    rates = np.diff(rest, axis=0).std(axis=0) / PERIOD
    assert np.all(rates < 1.5 * found.noise_rate)
    assert np.all(rates > 0.15 * found.noise_rate)
    assert f'{found.noise_rate.max():.3g} N m/s' in found.table(JOINTS)


def test_resolution_that_is_not_given_is_said(panda, margins):
    assert np.isnan(margins.noise).all()
    assert 'not known: give resolution' in margins.table(JOINTS)
    with pytest.raises(ControlError, match='a pair'):
        law(panda, resolution=1e-5)
    with pytest.raises(ControlError, match='resolution of motors'):
        law(panda, resolution=(1e-5, 0.0))


def test_default_bandwidth_allows_for_encoders(panda):
    actuators = drives(panda)
    given = {'torque_limits': TORQUE_LIMITS}
    fast = tracking_controller(actuators, 2.5e-4, **given)
    calm = tracking_controller(actuators, 2.5e-4, resolution=ENCODERS, **given)
    assert fast.bandwidth == pytest.approx(200.0)
    assert 20.0 < calm.bandwidth < 100.0
    assert np.all(calm.margins().noise_rate < 5.0 * TORQUE_LIMITS)
    finer = tracking_controller(actuators, 2.5e-4, resolution=(1e-9, 1e-9), **given)
    assert finer.bandwidth == fast.bandwidth


def test_springs_too_stiff_to_be_damped_are_said(panda):
    with pytest.warns(ControlWarning, match='decays at 0.0'):
        law(panda, np.full(7, 20000.0))


def test_margins_are_those_of_a_law_that_may_be_switched_on(margins):
    assert margins.decay > 25.0
    assert margins.gain_up.min() > 3.0
    assert margins.gain_down.max() < 0.25
    assert margins.phase.min() > np.radians(30.0)
    assert margins.delay.min() > 2.2e-3
    assert margins.sensitivity.max() < 2.0


def test_resonances_are_those_of_each_free_motor_and_link_alone(panda):
    found = law(panda, rigid=(0, 3)).margins(HOME)
    plant = Condition().plant()
    M = pinocchio.crba(plant.model, plant.data, np.array(HOME))
    expected = np.sqrt(STIFFNESS * (1.0 / np.diag(M) + 1.0 / MOTOR_INERTIA))
    expected[[0, 3]] = 0.0
    assert found.resonance == pytest.approx(expected, rel=1e-7)


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
    given = {'damping': 2.0, 'resolution': ENCODERS}
    free = GravityCompensation(drives(panda), PERIOD, **given).margins(HOME)
    assert abs(free.decay) < 1e-4
    assert np.all((free.noise > 0.0) & (free.noise < 0.1))
    falling = TorqueControl(drives(panda), PERIOD, **given).margins(HOME)
    assert falling.decay < -1.0
    assert np.isinf(falling.noise).all()
