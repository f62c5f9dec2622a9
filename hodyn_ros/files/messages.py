"""Messages in bags: their definitions, without a ROS installation, and what they hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hodyn_ros.errors import FileError
from hodyn_ros.files.quantities import QUANTITIES
from hodyn_ros.names import listed
from hodyn_ros.resources import optional_import_module, share_file

HODYN_MESSAGES = ('ElasticState', 'JointEffort', 'JointMotion', 'MotorReference')
"""Messages of hodyn_msgs in bags; none of them holds another one of them."""

JOINT_STATE = 'sensor_msgs/msg/JointState'
ELASTIC_STATE = 'hodyn_msgs/msg/ElasticState'
JOINT_MOTION = 'hodyn_msgs/msg/JointMotion'
JOINT_TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'

MOTION_TOPIC = '/joint_motion'
EFFORT_TOPIC = '/hodyn_node/joint_effort'
MOTOR_TOPIC = '/hodyn_node/motor_reference'
EFFORT_MIRROR = EFFORT_TOPIC + '/order_{}'
MOTOR_MIRROR = MOTOR_TOPIC + '/state'

Orders = dict[str, tuple[str, int]]
"""By the field of a message: the field of `Samples` that it holds, and which order of it."""


def _orders(what: str, count: int, prefix: str = '') -> Orders:
    """Fields of the first orders of a quantity, called as its columns are, without a prefix."""
    names = QUANTITIES[what].names[:count]
    return {name.removeprefix(prefix): (what, k) for k, name in enumerate(names)}


_MOTION = _orders('motion', 5)
_STATE: Orders = _orders('motion', 2) | _orders('effort', 1)


class ResultTopic(NamedTuple):
    """A topic that results are written to: the type of its messages, and their fields."""

    topic: str
    kind: str
    names: dict[str, str]
    """Fields of names, and those of `Samples` that they hold."""
    orders: Orders
    needed: tuple[str, int]
    """Array of `Samples`, and the order of it without which there is no message."""


TOPICS = (
    ResultTopic(
        MOTION_TOPIC, JOINT_MOTION, {'joint_names': 'joint_names'}, _MOTION, ('motion', 2)
    ),
    ResultTopic(
        EFFORT_TOPIC,
        'hodyn_msgs/msg/JointEffort',
        {'joint_names': 'joint_names'},
        _orders('effort', 3) | _orders('effort_std', 3),
        ('effort', 0),
    ),
    *(
        ResultTopic(
            EFFORT_MIRROR.format(m),
            JOINT_STATE,
            {'name': 'joint_names'},
            {'effort': ('effort', m)} if m else _STATE,
            ('effort', m),
        )
        for m in range(3)
    ),
    ResultTopic(
        MOTOR_TOPIC,
        'hodyn_msgs/msg/MotorReference',
        {'motor_names': 'motor_names', 'joint_names': 'motor_joints'},
        _orders('motor_position', 3, 'motor_') | _orders('motor_torque', 2, 'motor_'),
        ('motor_position', 0),
    ),
    ResultTopic(
        MOTOR_MIRROR,
        JOINT_STATE,
        {'name': 'motor_names'},
        {**_orders('motor_position', 2, 'motor_'), 'effort': ('motor_torque', 0)},
        ('motor_position', 0),
    ),
)
"""In the order in which the messages of an instant are written."""

READABLE: dict[str, tuple[tuple[str, Orders], ...]] = {
    JOINT_STATE: (('name', _STATE),),
    ELASTIC_STATE: (
        ('joint_names', _orders('motion', 2) | {'spring_torque': ('effort', 0)}),
        ('motor_names', _orders('motor_position', 2) | _orders('motor_torque', 1)),
    ),
    JOINT_MOTION: (('joint_names', _MOTION),),
    JOINT_TRAJECTORY: (('joint_names', {}),),
}
"""Types that hold a motion: for joints, and perhaps motors, their field of names and what else is
read."""


def rosbags(module: str, path: Path) -> Any:
    """Import a module of rosbags, which is not always installed.

    Parameters
    ----------
    module : str
        Such as 'rosbag2' or 'typesys'.
    path : pathlib.Path
        File that it is needed for, for the message.

    Returns
    -------
    module

    Raises
    ------
    FileError
        If rosbags is not installed; the message says how to install it.
    """
    need = f'{path}: files of this kind need rosbags'
    return optional_import_module(f'rosbags.{module}', need, 'bags', FileError)


def definition(name: str) -> str:
    """Text of a message definition of hodyn_msgs, such as that of 'JointEffort'.

    Parameters
    ----------
    name : str
        Name of the message without its package.

    Returns
    -------
    str
        Content of the .msg file.
    """
    return share_file(f'hodyn_msgs/msg/{name}.msg').read_text(encoding='utf-8')


@cache
def typestore() -> Any:
    """Definitions that rosbags knows, with those of hodyn_msgs.

    Returns
    -------
    rosbags.typesys.store.Typestore
        That of ROS 2 Jazzy; made once.
    """
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for name in HODYN_MESSAGES:
        store.register(get_types_from_msg(definition(name), f'hodyn_msgs/msg/{name}'))
    return store


def refuse_other_version(path: Path, connection: Any) -> None:
    """Refuse messages of another version of their type than the known one.

    Parameters
    ----------
    path : pathlib.Path
        Of the bag, for messages.
    connection : rosbags Connection
        Of a known type. Without a definition, as in bags before ROS 2 Iron, the messages are
        taken for those of the known version.

    Raises
    ------
    FileError
        If the definition in the bag cannot be read or has other fields.
    """
    if connection.msgdef.format.name != 'MSG':
        return
    store, kind = typestore(), connection.msgtype
    where = f'{path}, topic {connection.topic}: the'
    text = connection.msgdef.data.replace('\r\n', '\n')
    try:
        types = rosbags('typesys', path).get_types_from_msg(text, kind)
        # Types that it leaves out are those that everybody knows.
        found = _fields({**store.fielddefs, **types}, kind)
    except Exception as error:
        raise FileError(
            f'{where} definition of {kind} in the bag cannot be read: {error}'
        ) from error
    known = _fields(store.fielddefs, kind)
    if found != known:
        raise FileError(
            f'{where} messages are of another version of {kind}, with the fields {listed(found)}; '
            f'expected {listed(known)}. Convert the bag.'
        )


def _fields(types: Any, kind: str, prefix: str = '') -> list[str]:
    """Fields of a type, such as `float64[] points[].positions`, in the order of their bytes."""
    found: list[str] = []
    for name, (node, what) in types[kind][1]:
        array = ''
        if node.name in ('ARRAY', 'SEQUENCE'):
            array = f'[{what[1]}]' if node.name == 'ARRAY' else '[]'
            node, what = what[0]
        if node.name == 'NAME':
            found += _fields(types, str(what), f'{prefix}{name}{array}.')
        else:
            found.append(f'{what[0]}{array} {prefix}{name}')
    return found
