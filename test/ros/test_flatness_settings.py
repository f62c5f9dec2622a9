"""What flatness_controller is told, and the law that comes of it, without a node."""

import numpy as np
import pytest
from support.robots import TWO_LINK

from hodyn_ros import RobotModel
from hodyn_ros.actuators.config import actuators_from_config
from hodyn_ros.control.laws import TRACKING
from hodyn_ros.errors import ControlError
from hodyn_ros.ros.base.parameters import make_settings
from hodyn_ros.ros.nodes.flatness_settings import ControlSettings
from hodyn_ros.streams.laws import laws_of

MODEL = RobotModel.from_urdf(TWO_LINK)
SPRING = {'type': 'sea', 'stiffness': 3000.0, 'motor_inertia': 0.3}
ACTUATORS = actuators_from_config(MODEL, dict.fromkeys(MODEL.joint_names, SPRING))
LIMITS = np.array([60.0, 30.0])


def tracking(**values):
    """The tracking law of settings whose names have an underscore in place of the dot."""
    given = {name.replace('_', '.', 1): value for name, value in values.items()}
    return laws_of(ACTUATORS, make_settings(ControlSettings, given), LIMITS)[TRACKING]


def test_noise_of_encoders_lowers_the_default_bandwidth():
    fine = tracking(resolution_links=[1e-7], resolution_motors=[1e-7])
    coarse = tracking(resolution_links=[1e-3, 1e-4], resolution_motors=[1e-4])
    unknown = tracking()
    assert unknown.resolution is None
    assert fine.bandwidth == unknown.bandwidth == 50.0
    assert 2.5 <= coarse.bandwidth < 50.0
    np.testing.assert_array_equal(coarse.resolution, [1e-3, 1e-4, 1e-4, 1e-4])


@pytest.mark.parametrize(
    ('links', 'motors'), [([1e-4], [0.0]), ([0.0], [1e-4]), ([1e-4, 0.0], [1e-4])]
)
def test_resolution_of_one_side_alone_is_refused(links, motors):
    with pytest.raises(
        ValueError, match='expected numbers above zero in both, or zeros alone'
    ):
        tracking(resolution_links=links, resolution_motors=motors)


@pytest.mark.parametrize(
    'steps', [[], [-1e-4], [np.nan], 'fine', ['fine'], 1e-4, [2.0], [True]]
)
def test_resolution_that_is_no_list_of_steps_is_refused(steps):
    with pytest.raises(ValueError, match='expected a list of numbers from 0 to 1'):
        tracking(resolution_links=steps, resolution_motors=[1e-4])


def test_resolution_of_another_number_of_joints_is_refused():
    with pytest.raises(ControlError, match='expected one or 2 positive numbers'):
        tracking(resolution_links=[1e-4] * 3, resolution_motors=[1e-4])
