"""A payload is a body that is rigidly attached to a link."""

import numpy as np
import pytest
from support import robots
from support.robots import joint, link, robot

from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.errors import ModelError


def test_payload_takes_back_the_remark_on_a_massless_joint():
    xml = robot(
        '<link name="a"/>',
        link('b'),
        '<link name="c"/>',
        joint('x', 'a', 'b'),
        joint('y', 'b', 'c'),
    )
    with pytest.warns(ModelWarning, match="'y' moves no inertia"):
        model = RobotModel.from_urdf(xml)
    assert model.with_payload('c', 1.0, [0.1, 0, 0]).warnings == ()
    assert model.with_payload('b', 1.0).warnings == model.warnings


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('hand', 1.0), "no link 'hand'"),
        (('tool', 1.0, [0, 0, 0], -np.eye(3)), 'positive semi-definite'),
        (('tool', 1.0, [0, 0, 0], np.ones(3)), r'\(3, 3\)'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(arguments, message):
    model = RobotModel.from_urdf(robots.TWO_LINK)
    with pytest.raises(ModelError, match=message):
        model.with_payload(*arguments)
