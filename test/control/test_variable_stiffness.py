"""The tracking law with joints whose stiffness is chosen."""

import numpy as np
import pytest
from support.robots import TWO_LINK
from support.soft_arm import followed

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, Qbmove, VariableStiffness
from hodyn_ros.control import Guards, tracking_controller
from hodyn_ros.errors import ControlError

T = 1e-3


def constant(value):
    return np.array([value, 0.0, 0.0])


@pytest.mark.parametrize(
    ('asked', 'before', 'error', 'said'),
    [
        (1.2, 8.0, 0.1, 'is to be 1.2, but can be'),
        (2.5, 2.5, 0.1, 'is to be 2.5, but can be'),
        (np.nan, 8.0, 1e-3, 'is to be nan'),
    ],
)
def test_stiffness_that_cannot_be_gives_way_to_the_nearest(asked, before, error, said):
    run = followed(lambda time: constant(before if time < 0.5 else asked))
    assert not run.law.reason
    assert run.speed < 0.7
    assert run.error < error
    assert run.remarks
    assert all(said in remark for remark in run.remarks)


def test_motors_of_variable_stiffness_are_held():
    drives = {'shoulder': VariableStiffness(Qbmove(6.0, 20.0), 0.2)}
    actuators = Actuators(RobotModel.from_urdf(TWO_LINK), drives)
    guards = Guards(reactions={'max_external_torque': 'float'})
    with pytest.raises(ControlError, match='drift apart'):
        tracking_controller(actuators, T, torque_limits=np.inf, guards=guards)
