"""What the parameters on wrenches say about a frame: where a measured wrench acts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import WrenchError
from hodyn_ros.lie import se3
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.names import listed
from hodyn_ros.ros.settings import WrenchSettings

Array = NDArray[np.float64]

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
