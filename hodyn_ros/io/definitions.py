"""Definitions of the messages in bags, without a ROS installation.

Those of hodyn_msgs are installed with this package as data, the same files that ROS builds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hodyn_ros.io.access import optional
from hodyn_ros.resources import share_file

EXTRA = 'bags'

HODYN_MESSAGES = ('JointEffort', 'JointMotion', 'MotorReference')
"""Messages of hodyn_msgs that bags are written with; none of them holds another one of them."""


def definition(name: str) -> str:
    """Text of a message definition of hodyn_msgs, such as that of 'JointEffort'."""
    return share_file(f'hodyn_msgs/msg/{name}.msg').read_text(encoding='utf-8')


def typestore(path: Path) -> Any:
    """Definitions that rosbags knows, with those of hodyn_msgs.

    Parameters
    ----------
    path : pathlib.Path
        Bag that they are for, for messages.

    Raises
    ------
    FileError
        If rosbags is not installed.
    """
    typesys: Any = optional('rosbags.typesys', EXTRA, path)
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    for name in HODYN_MESSAGES:
        kind = f'hodyn_msgs/msg/{name}'
        store.register(typesys.get_types_from_msg(definition(name), kind))
    return store
