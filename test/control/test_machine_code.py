"""A law answers the same with the machine code of its robot as before there is any."""

import numpy as np
import pytest
from support.engine_cases import needs_compiler

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic
from hodyn_ros.control import (
    GravityCompensation,
    JointImpedance,
    TrackingController,
    step,
    warm_up,
)

T, SAMPLES = 1e-3, 20


def answers(make, actuators, motion):
    law = make(actuators, T, guards=None, bandwidth=20.0)
    found = []
    for k in range(SAMPLES):
        q = motion[0] + k * T * motion[1]
        wanted = motion.copy()
        wanted[0] = q + 1e-3
        found.append(law.evaluate(wanted, q, motion[1], q + 1e-3, motion[1]).torque)
    return np.array(found)


@needs_compiler
@pytest.mark.every_case
@pytest.mark.parametrize('make', [TrackingController, GravityCompensation])
@pytest.mark.parametrize('name', ['two_link', 'panda_with_hand', 'five_bar', 'delta'])
def test_torques_do_not_change_when_the_robot_has_been_compiled(name, make):
    model = RobotModel.from_urdf(name)
    actuators = Actuators(
        model, {joint: SeriesElastic(300.0, 0.05) for joint in model.joint_names}
    )
    limits = model.limits
    motion = np.full((5, model.n_joints), 0.05)
    lower, upper = np.maximum(limits.lower, -1.0), np.minimum(limits.upper, 1.0)
    motion[0] = 0.5 * (lower + upper)
    before = answers(make, actuators, motion)
    warm_up(model, actuators)
    after = answers(make, actuators, motion)
    assert np.abs(before).max() > 1e-3
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


def faulty_run(actuators, make, **options):
    """Torques of a law with gates, sensors, missed and repeated samples, a stop, a release."""
    law = make(actuators, T, torque_limits=[80.0, 40.0], delay=2 * T, **options)
    q, rest, found = np.array([0.3, -0.4]), law.resting([0.3, -0.4]), []
    for k in range(90):
        phase = 0.05 * k + np.arange(5)[:, None] * np.pi / 2
        wanted = 0.02 * 50.0 ** np.arange(5)[:, None] * np.sin(phase) * [1.0, -1.0]
        moved = np.sin(0.05 * (k - (k % 9 == 4)) - 0.1)
        measured, motors = q + 0.02 * moved, rest + 0.02 * moved
        measured[k % 2] += 0.5 * (k in (20, 33))
        sensed = 300.0 * (motors - measured) if 40 < k < 50 else None
        wanted[0] += q
        elapsed = 3.0 * T if k == 60 else T
        if k == 70:
            law.stop('asked for')
        if k == 80 and not law.unrest():
            law.release()
        found.append(
            law.command(wanted, measured, None, motors, None, sensed, elapsed=elapsed)
        )
    return np.array(found)


@needs_compiler
@pytest.mark.every_case
@pytest.mark.parametrize(
    ('make', 'options'),
    [(TrackingController, {}), (JointImpedance, {'stiffness': 40.0, 'motor_share': 1.0})],
)
def test_machine_code_of_a_law_answers_as_its_text_in_python(make, options, monkeypatch):
    model = RobotModel.from_urdf('two_link')
    drives = {'shoulder': SeriesElastic(300.0, 0.05, 0.1), 'elbow': RigidDrive(0.1)}
    actuators = Actuators(model, drives)
    warm_up(model, actuators)
    compiled = faulty_run(actuators, make, **options)
    monkeypatch.setattr(step, 'machine_code', lambda: None)
    in_python = faulty_run(actuators, make, **options)
    assert len(np.unique(compiled, axis=0)) > 60
    np.testing.assert_allclose(compiled, in_python, rtol=0.0, atol=1e-9 * 80.0)
