"""A law answers the same with the machine code of its robot as before there is any."""

import numpy as np
import pytest
from support.engine_cases import needs_compiler

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import GravityCompensation, TrackingController, warm_up

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
