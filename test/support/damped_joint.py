"""One spring with a damper beside it, along a torque."""

import numpy as np
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.actuators import SeriesElastic
from hodyn_ros.actuators.sea import Dampers

MODEL = RobotModel.from_urdf(
    robots.robot(
        '<link name="base"/>',
        robots.link('a'),
        robots.joint('joint', 'base', 'a', 'revolute'),
    )
)


def first_deflection(spring, damping, effort, start=None):
    """Series (E + 1,) of the deflection at the beginning, from the torque (E,)."""
    dampers = Dampers(MODEL, [(0, SeriesElastic(spring, 1.0, damping))])
    return dampers.first(effort[:, None], {} if start is None else {0: start})[0]


def follow_torque(spring, damping, times, effort, first):
    """Series (N, E + 1) of the deflection along a torque (N, E), from the first one on."""
    dampers = Dampers(MODEL, [(0, SeriesElastic(spring, 1.0, damping))])
    return dampers.follow(np.asarray(times), effort[..., None], first[None])[:, 0]
