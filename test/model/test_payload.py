"""A payload is a body that is rigidly attached to a link."""

import numpy as np
import pytest
from support import robots
from support.robots import joint, link, robot

from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3

MASS = 1.7
COM = np.array([0.03, -0.05, 0.12])
INERTIA = np.array([[0.02, 0.001, -0.002], [0.001, 0.015, 0.003], [-0.002, 0.003, 0.012]])


def test_frame_of_the_payload_is_that_of_the_link_not_of_the_body():
    pose = se3.exp([0.4, -0.2, 0.9, 0.1, 0.2, 0.3])
    model = RobotModel.from_body_screws(
        [[0, 1, 0, 0, 0, 0]], [np.eye(4)], inertias=[(1.0, (0, 0, 0), np.eye(3))], tool=pose
    )
    at_tool = model.with_payload('tool', MASS, COM, INERTIA)
    R = pose[:3, :3]
    at_link = model.with_payload('link1', MASS, R @ COM + pose[:3, 3], R @ INERTIA @ R.T)
    np.testing.assert_allclose(at_tool.M_body, at_link.M_body, atol=1e-14)


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
    assert model.with_payload('c', 1.0, COM).warnings == ()
    assert model.with_payload('b', 1.0, COM).warnings == model.warnings


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('hand', 1.0), "no link 'hand'"),
        (('tool', -1.0), 'Payload of link .tool. has a negative mass'),
        (('tool', 'heavy'), 'expected'),
        (('tool', np.nan), 'finite'),
        (('tool', 1.0, [0, 0]), r'expected \(3,\)'),
        (('tool', 1.0, [0, 0, 0], -np.eye(3)), 'positive semi-definite'),
        (('tool', 1.0, [0, 0, 0], np.ones(3)), r'\(3, 3\)'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(arguments, message):
    model = RobotModel.from_urdf(robots.TWO_LINK)
    with pytest.raises(ModelError, match=message):
        model.with_payload(*arguments)
