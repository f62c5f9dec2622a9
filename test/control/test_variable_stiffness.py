"""The tracking law with joints whose stiffness is chosen."""

import numpy as np
import pytest
from support.robots import HEAVIER_TWO_LINK, TWO_LINK
from support.soft_arm import followed

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, Qbmove, SeriesElastic, VariableStiffness
from hodyn_ros.control import Guards, tracking_controller
from hodyn_ros.errors import ControlError
from hodyn_ros.simulation import ElasticPlant, SampledPlant
from hodyn_ros.trajectory import fit_spline

T = 1e-3


def constant(value):
    return np.array([value, 0.0, 0.0])


@pytest.mark.parametrize('asked', [1.2, 2.5])
def test_arm_that_is_to_be_too_soft_is_as_soft_as_its_motors_can_follow(asked):
    run = followed(lambda time: constant(asked))
    assert not run.law.reason
    assert run.speed < 0.7
    assert run.error < 0.1
    assert any(f'is to be {asked:g}, but can be' in remark for remark in run.remarks)


def test_stiffness_that_is_no_number_is_that_before():
    run = followed(lambda time: constant(8.0 if time < 0.5 else np.nan))
    assert not run.law.reason
    assert run.error < 1e-3
    assert run.remarks
    assert all('is to be nan' in remark for remark in run.remarks)


def test_heavier_robot_is_followed_and_rests_where_it_should():
    drives = {
        'shoulder': VariableStiffness(Qbmove(6.0, 20.0), 0.2),
        'elbow': SeriesElastic(300.0, 0.1),
    }
    motion = fit_spline([0.0, 1.0], [[0.3, -0.4], [0.8, 0.1]])
    model, stiffness = RobotModel.from_urdf(TWO_LINK), {'shoulder': constant(400.0)}
    law = tracking_controller(Actuators(model, drives), T, torque_limits=np.inf)
    robot = SampledPlant(ElasticPlant(RobotModel.from_urdf(HEAVIER_TWO_LINK), drives), T)
    robot.reset(motion(0.0)[0], theta=law.resting(motion(0.0)[0], stiffness))
    errors = []
    for k in range(2000):
        wanted, seen = motion(min(k * T + law.lead, 1.0)), robot.measurement
        command = law.evaluate(wanted, seen.q, None, seen.theta, None, stiffness=stiffness)
        robot.advance(command.torque)
        errors.append(robot.measurement.q - motion(min((k + 1) * T, 1.0))[0])
    assert np.abs(errors).max() < 0.03
    assert np.abs(errors[-1]).max() < 1e-3
    last = robot.measurement
    elastic = drives['shoulder'].elastic(last.q[:1], last.theta[:2, None])
    assert elastic.stiffness[0] == pytest.approx(400.0, rel=0.1)


def test_motors_of_variable_stiffness_are_held():
    drives = {'shoulder': VariableStiffness(Qbmove(6.0, 20.0), 0.2)}
    actuators = Actuators(RobotModel.from_urdf(TWO_LINK), drives)
    guards = Guards(reactions={'max_external_torque': 'float'})
    with pytest.raises(ControlError, match='drift apart'):
        tracking_controller(actuators, T, torque_limits=np.inf, guards=guards)
