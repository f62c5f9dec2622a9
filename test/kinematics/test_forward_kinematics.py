"""Forward kinematics: shapes of samples, the tip, and what is refused."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import HodynError, RobotModel, forward_kinematics
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics import jacobian

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def test_any_batch_shape_and_the_tip_by_default():
    model = RobotModel.from_urdf(robots.TWO_LINK, tip_link='tool')
    motion = np.random.default_rng(0).normal(size=(3, 2, 4, 2))
    result = forward_kinematics(model, motion)
    assert result.pose.shape == (3, 2, 4, 4)
    assert result.twist.shape == (3, 2, 3, 6)
    one = forward_kinematics(model, motion[1, 0], 'tool')
    np.testing.assert_allclose(result.twist[1, 0], one.twist, atol=1e-12)
    assert forward_kinematics(model, motion[:, :, :1]).twist.shape == (3, 2, 0, 6)
    assert forward_kinematics(model, motion[:0]).pose.shape == (0, 2, 4, 4)


@pytest.mark.every_case
@pytest.mark.parametrize('compute', [forward_kinematics, jacobian])
@pytest.mark.parametrize(
    ('columns', 'arguments', 'error', 'words'),
    [
        (2, (), ModelError, 'name one of the links base, upper, fore, tool'),
        (2, ('hand',), ModelError, "no link 'hand'"),
        (2, ('tool', 'world'), HodynError, 'expressed_in'),
        (5, ('tool',), MotionError, 'shape'),
    ],
)
def test_bad_input_is_refused_with_the_reason(compute, columns, arguments, error, words):
    with pytest.raises(error, match=words):
        compute(RobotModel.from_urdf(robots.TWO_LINK), np.zeros((3, columns)), *arguments)
