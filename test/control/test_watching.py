"""What a law sees of the delay of its loop, on a plant that shares no code with it."""

from collections import deque

import numpy as np
import pytest
from support import control_simulation
from support.control_cases import (
    HOME,
    LINK_STEP,
    MOTOR_STEP,
    PERIOD,
    TORQUE_LIMITS,
    Condition,
)

from hodyn_ros.control import probing_motion, tracking_controller
from hodyn_ros.errors import ControlError

ENCODERS = LINK_STEP, MOTOR_STEP
ALL = {'stiffness': -0.05, 'payload': 1.0, 'coulomb': 1.0}


@pytest.fixture(scope='module')
def actuators():
    return control_simulation.drives(control_simulation.panda())


def tracking(actuators, **options):
    given = {'torque_limits': TORQUE_LIMITS, 'resolution': ENCODERS, **options}
    return tracking_controller(actuators, PERIOD, **given)


def probe(law, condition, noise=0.0, duration=2.0):
    """What a law remarks while its robot makes a small motion."""
    plant, random = condition.plant(), np.random.default_rng(5)
    motion = probing_motion(HOME, PERIOD, lead=law.lead, duration=duration)
    state = plant.at_rest(np.array(HOME))
    waiting = deque([plant.torque.copy()] * condition.delay)
    remarks = set()
    for desired in motion:
        q = LINK_STEP * np.round(state[0] / LINK_STEP)
        theta = MOTOR_STEP * np.round(state[2] / MOTOR_STEP)
        q = q + noise * random.standard_normal(q.shape)
        command = law.evaluate(desired, q, None, theta, None)
        assert not command.reason
        remarks.add(command.remark)
        waiting.append(command.torque)
        state = plant.hold(state, waiting.popleft(), PERIOD, 1)
    return remarks - {''}


@pytest.mark.parametrize(
    ('known', 'given'),
    [
        (2, {**ALL, 'delay': 2}),
        (0, {'stiffness': -0.3}),
        (0, {'stiffness': 0.3}),
        (0, {'coulomb': 0.5, 'breakaway': 0.75}),
        (0, {'coulomb': 1.0, 'breakaway': 1.0}),
    ],
)
def test_nothing_else_is_taken_for_a_delay_and_a_known_one_is_not_remarked(
    actuators, known, given
):
    law = tracking(actuators, delay=known * PERIOD)
    assert not any('give delay' in remark for remark in probe(law, Condition(**given)))
    if known:
        assert law.delay_seen.delay == pytest.approx(known * PERIOD, abs=0.15e-3)


def test_robot_that_rests_or_has_no_springs_shows_nothing(actuators):
    law = tracking(actuators)
    desired = np.zeros((5, 7))
    desired[0] = HOME
    theta = law.resting(HOME)
    for _ in range(300):
        law.evaluate(desired, HOME, None, theta, None)
    assert np.isinf(law.delay_seen.deviation)
    rigid = control_simulation.drives(actuators.model, rigid=range(7))
    law = tracking(rigid, delay=PERIOD)
    for row in probing_motion(HOME, PERIOD, duration=0.3):
        law.evaluate(row, row[0], None, row[0], None)
    assert law.delay_seen == (PERIOD, np.inf)


def test_probing_motion_goes_from_rest_to_rest_by_its_amplitude():
    motion = probing_motion([0.3, -1.0], 1e-3, amplitude=-0.05, duration=2.0)
    assert motion.shape == (2001, 5, 2)
    for end in (motion[0], motion[-1]):
        np.testing.assert_allclose(end[0], [0.3, -1.0], atol=1e-12)
        np.testing.assert_allclose(end[1:], 0.0, atol=1e-6)
    assert (motion[:, 0] - [0.3, -1.0]).min() == pytest.approx(-0.05, rel=1e-3)
    assert (motion[:, 0] - [0.3, -1.0]).max() < 1e-9
    for order in range(4):
        found = np.gradient(motion[:, order], 1e-3, axis=0)[5:-5]
        scale = np.abs(motion[:, order + 1]).max()
        np.testing.assert_allclose(found, motion[5:-5, order + 1], atol=2e-3 * scale)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({'frequency': 0.0}, 'frequency'),
        ({'duration': np.nan}, 'duration'),
        ({'amplitude': np.inf}, 'amplitude'),
        ({'position': [np.nan]}, 'position'),
    ],
)
def test_probing_motion_refuses_what_it_cannot_use(options, said):
    with pytest.raises(ControlError, match=said):
        probing_motion(**{'position': [0.0], 'sample_period': 1e-3, **options})


def test_what_a_stopped_robot_did_is_forgotten(actuators):
    law = tracking(actuators)
    probe(law, Condition(delay=2), duration=1.0)
    assert law.delay_seen.delay == pytest.approx(2.0 * PERIOD, abs=0.2e-3)
    law.stop('asked for')
    theta = law.resting(HOME)
    for _ in range(500):
        law.evaluate(np.zeros((5, 7)), HOME, None, theta, None)
    law.release()
    assert np.isinf(law.delay_seen.deviation)
