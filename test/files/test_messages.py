"""Bags with messages of another version of their type, or that have lost some."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from support.io_cases import START

from hodyn_ros.errors import FileError
from hodyn_ros.files import iterate_motion, read_motion
from hodyn_ros.files.messages import definition

rosbag2 = pytest.importorskip('rosbags.rosbag2')
typesys = pytest.importorskip('rosbags.typesys')

STORAGES = ('mcap', 'sqlite3')
STATE, MOTION = 'sensor_msgs/msg/JointState', 'hodyn_msgs/msg/JointMotion'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
TIME = 'builtin_interfaces/msg/Time'
HEAD = 'std_msgs/Header header\n'
ORDERS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
COUNT = 40
VALUES = (
    np.random.default_rng(3).normal(size=(COUNT, 5, 2)).astype(np.float32).astype(float)
)


def store_with(**texts):
    """Types of ROS in which those of the given names (a__msg__B) have another definition."""
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    types = {}
    for name, text in texts.items():
        types.update(typesys.get_types_from_msg(text, name.replace('__', '/')))
    for name in types:
        store.fielddefs.pop(name, None)
        store.types.pop(name, None)
    store.register(types)
    return store


def made(store, name, /, **fields):
    """Make a message; fields that are not given are empty."""
    values = {}
    for field, (node, what) in store.fielddefs[name][1]:
        if field in fields:
            values[field] = fields[field]
        elif node.name == 'NAME':
            values[field] = made(store, what)
        elif node.name == 'BASE':
            values[field] = '' if what[0] == 'string' else 0
        else:
            is_number = what[0][0].name == 'BASE' and what[0][1][0] != 'string'
            values[field] = np.empty(0, dtype=what[0][1][0]) if is_number else []
    return store.types[name](**values)


def header(store, i):
    stamp = {'sec': START // 10**9 + i, 'nanosec': 7}
    if 'header' not in dict(store.fielddefs[STATE][1]):
        return {}
    return {'header': made(store, 'std_msgs/msg/Header', stamp=made(store, TIME, **stamp))}


def record(path, store, name, messages, storage='mcap', topic='/t'):
    plugin = getattr(rosbag2.StoragePlugin, storage.upper())
    writer = rosbag2.Writer(path, version=9, storage_plugin=plugin)
    with writer:
        connection = writer.add_connection(topic, name, typestore=store)
        for i, message in enumerate(messages):
            writer.write(connection, START + i, store.serialize_cdr(message, name))
    return path


def recorded_motions(path, text, storage='mcap', kind=np.float64):
    """Bag with joint motions of a definition; the fields that it has are those of `VALUES`."""
    store = store_with(hodyn_msgs__msg__JointMotion=text)
    has = [name for name, _ in store.fielddefs[MOTION][1]]
    messages = []
    for i, rows in enumerate(VALUES):
        fields = {
            name: rows[k].astype(kind) for k, name in enumerate(ORDERS) if name in has
        }
        messages.append(
            made(store, MOTION, **header(store, i), joint_names=['a', 'b'], **fields)
        )
    return record(path, store, MOTION, messages, storage)


def arrays(*names, kind='float64[]'):
    return ''.join(f'{kind} {name}\n' for name in names)


REORDERED = HEAD + 'string[] joint_names\n' + arrays('velocity', 'position', *ORDERS[2:])


@pytest.mark.every_case
@pytest.mark.parametrize(
    'kind, text, have',
    [
        (MOTION, REORDERED, 'float64[] velocity, float64[] position'),
        (MOTION, 'string[] joint_names\n' + arrays(*ORDERS), 'fields string[] joint_names'),
        (STATE, HEAD + arrays(*ORDERS[:2], 'effort') + 'string[] name\n', 'string[] name;'),
        (
            TRAJECTORY,
            HEAD + 'string[] joint_names\nPoint[] points\n' + '=' * 80 + '\n'
            'MSG: trajectory_msgs/Point\nfloat64[] positions\n',
            'float64[] points[].positions; expected',
        ),
    ],
)
def test_messages_of_another_version_are_refused(tmp_path, kind, text, have):
    store = store_with(**{kind.replace('/', '__'): text})
    bag = record(tmp_path / 'bag', store, kind, [made(store, kind)])
    with pytest.raises(FileError, match='topic /t: .* another version of ') as caught:
        read_motion(bag)
    assert kind in str(caught.value) and have in str(caught.value)


def change(bag, *statements):
    """Change the database of a bag in SQLite."""
    (path,) = Path(bag).glob('*.db3')
    database = sqlite3.connect(path)
    with database:
        for statement, *values in statements:
            database.execute(statement, values)
    database.close()


def test_comments_spaces_and_constants_make_no_other_version(tmp_path):
    text = '# Nothing.\r\n\r\n' + HEAD + '\nuint8 K=3\n\nstring[]   joint_names  # n\n'
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'), 'sqlite3')
    statement = 'UPDATE message_definitions SET encoded_message_definition = ?'
    change(bag, (statement, text + arrays(*ORDERS)))
    np.testing.assert_array_equal(read_motion(bag).motion, VALUES)
    change(bag, (statement, text + arrays(*ORDERS[::-1])))
    with pytest.raises(FileError, match='another version'):
        read_motion(bag)


def test_a_definition_that_makes_no_sense_is_refused(tmp_path):
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'), 'sqlite3')
    change(bag, ("UPDATE message_definitions SET encoded_message_definition = 'a b c d'",))
    with pytest.raises(
        FileError, match=f'the definition of {MOTION} in the bag cannot be read'
    ):
        read_motion(bag)


def test_messages_missing_from_a_database_are_counted_when_the_end_is_reached(tmp_path):
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'), 'sqlite3')
    change(bag, ('DELETE FROM messages WHERE id > 30',))
    parts = iterate_motion(bag, chunk=10)
    assert [len(next(parts)) for _ in range(3)] == [10, 10, 10]
    with pytest.raises(
        FileError, match='topic /t has 30 messages, .*: 10 are missing.*reindex'
    ):
        next(parts)


def test_joint_states_without_velocities_have_no_order_for_them(tmp_path):
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)

    def bag(name, known):
        messages = [
            made(
                store,
                STATE,
                **header(store, i),
                name=['a', 'b'],
                position=rows[0],
                velocity=rows[1] if i in known else np.empty(0),
            )
            for i, rows in enumerate(VALUES)
        ]
        return record(tmp_path / name, store, STATE, messages)

    assert read_motion(bag('none', ())).motion.shape == (COUNT, 1, 2)
    # As soon as one message has them the others have gaps, wherever parts begin.
    some = bag('some', (25,))
    expected = np.full((COUNT, 2), np.nan)
    expected[25] = VALUES[25, 1]
    np.testing.assert_array_equal(read_motion(some).motion[:, 1], expected)
    assert [part.motion.shape[1] for part in iterate_motion(some, chunk=10)] == [1, 1, 2, 1]
