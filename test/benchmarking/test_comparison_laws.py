"""The laws that the benchmarks compare those of the package with."""

import numpy as np
import pytest
from support.elastic_cases import (
    BANDWIDTH,
    PERIOD,
    elastic_three_link,
    mixed_three_link,
    panda,
    rms,
    sampled_error,
    sway,
)

from benchmarks.comparison_laws import PDGravity, RigidComputedTorque, make_compared
from hodyn_ros.control import FeedForwardController, FlatnessController, motor_gains
from hodyn_ros.errors import ControlError
from hodyn_ros.trajectory.references import panda_sinusoids

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')


def test_a_rigid_robot_gets_the_computed_torque():
    case = mixed_three_link((0, 1, 2))
    flat = FlatnessController(case.model, case.actuators, BANDWIDTH)
    rigid = RigidComputedTorque(case.model, case.actuators, BANDWIDTH)
    motion = sway(3)(0.1)
    arguments = sway(3)(0.2), motion[0], motion[1], motion[0], motion[1]
    np.testing.assert_allclose(
        flat.command(*arguments), rigid.command(*arguments), rtol=1e-12
    )


def test_motor_control_with_weight_holds_a_robot_at_rest():
    case = elastic_three_link()
    gains = motor_gains(case.model, case.actuators, BANDWIDTH, np.zeros(3))
    reference = np.zeros((5, 3))
    reference[0] = [0.3, -0.6, 0.4]
    state = case.state(reference[:4])
    torque = PDGravity(case.model, case.actuators, gains).command(reference, *state)
    q2d, theta2d = case.plant.accelerations(*state, torque)
    np.testing.assert_allclose([q2d, theta2d], 0.0, atol=1e-9)


@pytest.mark.parametrize('kind', ['rigid_computed_torque', 'pd_gravity'])
def test_the_look_ahead_does_not_matter_where_nothing_moves(kind):
    case = mixed_three_link()
    reference = np.zeros((5, 3))
    reference[0] = [0.3, -0.6, 0.4]
    state = case.state(reference[:4])
    law, ahead = (
        make_compared(case.model, kind, case.actuators, BANDWIDTH, lead=lead)
        for lead in (0.0, 0.01)
    )
    np.testing.assert_allclose(
        ahead.command(reference, *state), law.command(reference, *state), atol=1e-9
    )


def test_the_joint_torque_fed_forward_leaves_less_error_than_either():
    case, sinusoids = panda([1000.0] * 4 + [500.0] * 3), panda_sinusoids()
    lead = PERIOD / 2.0
    gains = motor_gains(case.model, case.actuators, BANDWIDTH, sinusoids.centre)
    fed, rigid, pd = (
        rms(sampled_error(case, law, sinusoids, 1.5, 300))
        for law in (
            FeedForwardController(case.model, case.actuators, gains, 0, lead=lead),
            RigidComputedTorque(case.model, case.actuators, BANDWIDTH, lead=lead),
            PDGravity(case.model, case.actuators, gains, lead=lead),
        )
    )
    assert fed < 0.7 * min(rigid, pd)


def test_an_unknown_law_is_refused():
    case = elastic_three_link()
    with pytest.raises(ControlError, match="control law is 'other'"):
        make_compared(case.model, 'other', case.actuators, BANDWIDTH)
