"""Forward kinematics: shapes of samples, the tip, and what is refused."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import HodynError, RobotModel, forward_kinematics
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.kinematics import jacobian

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def test_any_batch_shape_and_the_tip_by_default():
    model = RobotModel.from_urdf(robots.TWO_LINK)
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
        (2, ('hand',), ModelError, "no link 'hand'"),
        (2, ('tool', 'world'), HodynError, 'expressed_in'),
        (5, ('tool',), MotionError, 'shape'),
    ],
)
def test_bad_input_is_refused_with_the_reason(compute, columns, arguments, error, words):
    with pytest.raises(error, match=words):
        compute(RobotModel.from_urdf(robots.TWO_LINK), np.zeros((3, columns)), *arguments)


def test_the_last_link_is_the_tip_unless_the_robot_branches():
    branch = robots.link('camera') + robots.joint('mount', 'upper', 'camera', kind='fixed')
    branched = robots.TWO_LINK.replace('</robot>', branch + '</robot>')
    assert RobotModel.from_urdf(robots.TWO_LINK).tip_link == 'tool'
    for text, ends in (
        ('panda_with_hand', 'panda_leftfinger, panda_rightfinger'),
        (branched, 'fore, tool'),
    ):
        model = RobotModel.from_urdf(text)
        assert model.tip_link is None
        with pytest.raises(
            ModelError, match=f'no tip link.* At the ends are {ends}; its links'
        ):
            forward_kinematics(model, np.zeros((3, model.n_joints)))
    resting = robots.TWO_LINK.replace(
        '</robot>', branch.replace('"upper"', '"base"') + '</robot>'
    )
    assert RobotModel.from_urdf(resting).tip_link == 'tool'
    assert RobotModel.from_urdf(branched, tip_link='upper').tip_link == 'upper'
    described = RobotModel.from_urdf(robots.TWO_LINK).provenance
    assert (
        described == RobotModel.from_urdf(robots.TWO_LINK).changed(tip_link=None).provenance
    )
