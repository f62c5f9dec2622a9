"""Parameters on wrenches, and what they say about a frame: where a measured wrench acts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.dynamics.wrenches import ACTINGS
from hodyn_ros.errors import WrenchError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.names import listed

Array = NDArray[np.float64]

STALE_POLICIES = ('stop', 'hold', 'fade')


@dataclass(frozen=True)
class WrenchSettings:
    """Parameters on wrenches; those on the sensor concern the input `wrench` alone.

    Attributes
    ----------
    link : str
        Parameter `wrench.link`: link on which the measured wrench acts; '' is the link that
        frame_id names.
    acting : {'on_environment', 'on_robot'}
        Parameter `wrench.acting`: sign convention of the sensor, see `Wrench`.
    sensor_xyz, sensor_rpy : tuple of 3 floats
        Parameters `wrench.sensor_xyz` [m] and `wrench.sensor_rpy` [rad]: pose of the sensor in the
        link that frame_id names (if that is at rest, in the link on which the wrench acts), as in
        a URDF.
    tool_mass : float
        Parameter `wrench.tool_mass`: mass of what is attached to the robot beyond the sensor and
        is part of the robot model [kg]. Its weight is taken out; 0 leaves the values alone.
    tool_center_of_mass : tuple of 3 floats
        Parameter `wrench.tool_center_of_mass`: of the same, in the sensor frame [m].
    timeout : float
        Parameter `wrench_timeout`: longest time between a wrench and its use [s].
    stale_policy : {'stop', 'hold', 'fade'}
        Parameter `wrench_stale_policy`: what becomes of a wrench after the time-out.
    fade_time : float
        Parameter `wrench_fade_time`: time in which a stale wrench comes to rest [s].

    Raises
    ------
    WrenchError
        If a value cannot be used; the message names the parameter.
    """

    link: str = ''
    acting: str = 'on_environment'
    sensor_xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    sensor_rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tool_mass: float = 0.0
    tool_center_of_mass: tuple[float, float, float] = (0.0, 0.0, 0.0)
    timeout: float = 0.1
    stale_policy: str = 'stop'
    fade_time: float = 0.5

    def __post_init__(self) -> None:
        for name, value, choices in (
            ('wrench.acting', self.acting, ACTINGS),
            ('wrench_stale_policy', self.stale_policy, STALE_POLICIES),
        ):
            if value not in choices:
                raise WrenchError(
                    f'Parameter {name} is {value!r}, expected one of {", ".join(choices)}.'
                )
        for name, vector in (
            ('wrench.sensor_xyz', self.sensor_xyz),
            ('wrench.sensor_rpy', self.sensor_rpy),
            ('wrench.tool_center_of_mass', self.tool_center_of_mass),
        ):
            if len(vector) != 3 or not all(math.isfinite(value) for value in vector):
                raise WrenchError(
                    f'Parameter {name} is {list(vector)}, expected three finite numbers.'
                )
        if not (math.isfinite(self.tool_mass) and self.tool_mass >= 0.0):
            raise WrenchError(
                f'Parameter wrench.tool_mass is {self.tool_mass}, expected a finite number that '
                'is not negative [kg].'
            )
        for name, duration in (
            ('wrench_timeout', self.timeout),
            ('wrench_fade_time', self.fade_time),
        ):
            if not (math.isfinite(duration) and duration > 0.0):
                raise WrenchError(
                    f'Parameter {name} is {duration}, expected a finite positive number [s].'
                )

    @cached_property
    def sensor_pose(self) -> Array:
        """Pose of the sensor in its link, shape (4, 4)."""
        return se3.pose(so3.from_rpy(self.sensor_rpy), self.sensor_xyz)


class Mounting(NamedTuple):
    """How the coordinates in a message become those of a wrench on a link."""

    link: str
    """Link on which the wrench acts."""
    expressed_in: str
    """body or spatial."""
    frame: Array | None
    """Pose in the link (in the base) of the frame in which the values come; None if they agree."""
    center_of_mass: Array
    """Of the tool, in the link frame [m]."""


def mounting(settings: WrenchSettings, model: RobotModel, frame_id: str) -> Mounting:
    """Find the link on which a measured wrench acts and how its coordinates get there.

    Raises
    ------
    WrenchError
        If the frame or the link does not exist or the two do not belong together.
    """
    check_link(model, frame_id)
    link = settings.link or frame_id
    if link not in model.links:
        raise WrenchError(
            f'Parameter wrench.link is {link!r}, the links are {listed(model.links)}.'
        )
    body, link_pose = model.link(link)
    if body == BASE:
        named = 'wrench.link' if settings.link else 'frame_id'
        raise WrenchError(
            f'Wrench on {link!r}: the link that {named} names is at rest, so nothing there needs '
            'a joint effort. Set wrench.link to the link on which the wrench acts.'
        )
    frame_body, frame_pose = model.link(frame_id)
    sensor = settings.sensor_pose
    if frame_body == body:
        if frame_id != link:
            sensor = se3.inverse(link_pose) @ frame_pose @ sensor
        expressed_in, frame = 'body', sensor
    elif frame_body == BASE:
        expressed_in, frame = 'spatial', frame_pose
    else:
        same = [name for name, place in model.links.items() if place.body == body]
        raise WrenchError(
            f'Wrench on {link!r}: frame_id is {frame_id!r}, which moves relative to it; expected '
            f'one of {listed(same)}, which are rigidly connected to it, or the base link '
            f'{model.base_link!r}.'
        )
    return Mounting(
        link,
        expressed_in,
        None if np.array_equal(frame, np.eye(4)) else frame,
        sensor[:3, :3] @ settings.tool_center_of_mass + sensor[:3, 3],
    )


def check_link(model: RobotModel, link: str) -> None:
    """Refuse a frame_id that is not a link.

    Raises
    ------
    WrenchError
    """
    if link not in model.links:
        raise WrenchError(
            f'Wrench on an unknown link: frame_id is {link!r}, the links are '
            f'{listed(model.links)}.'
        )
