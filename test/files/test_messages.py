"""Bags whose messages are of another version of their type, and bags that have lost messages."""

import re
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from support.io_cases import START

from hodyn_ros.errors import FileError
from hodyn_ros.files import iterate_motion, read_motion
from hodyn_ros.files.messages import definition, deserializer

rosbag2 = pytest.importorskip('rosbags.rosbag2')
typesys = pytest.importorskip('rosbags.typesys')

STORAGES = ('mcap', 'sqlite3')
STATE, MOTION = 'sensor_msgs/msg/JointState', 'hodyn_msgs/msg/JointMotion'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
POINT = 'trajectory_msgs/msg/JointTrajectoryPoint'
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


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize(
    'text',
    [
        HEAD + 'string[] joint_names\n' + arrays('velocity', 'position', *ORDERS[2:]),
        HEAD + 'uint8 mode\nstring[] joint_names\n' + arrays(*ORDERS) + 'Extra[] extra\n'
        '================================================================================\n'
        'MSG: hodyn_msgs/Extra\nfloat64 x\n',
        arrays(*ORDERS[::-1]) + 'string[<=4] joint_names\n' + HEAD,
        HEAD + 'string[2] joint_names\n' + arrays(*ORDERS, kind='float64[2]'),
    ],
    ids=['reordered', 'extra', 'turned round', 'of fixed size'],
)
def test_messages_of_another_version_are_read_by_their_own_definition(
    tmp_path, storage, text
):
    found = read_motion(recorded_motions(tmp_path / 'bag', text, storage))
    assert found.joint_names == ('a', 'b')
    assert found.start == START // 10**9 * 10**9 + 7
    np.testing.assert_array_equal(found.motion, VALUES)
    np.testing.assert_allclose(found.times, np.arange(COUNT), rtol=0, atol=1e-12)


@pytest.mark.parametrize('storage', STORAGES)
def test_messages_in_single_precision_are_read(tmp_path, storage):
    text = HEAD + 'string[] joint_names\n' + arrays(*ORDERS, kind='float32[]')
    found = read_motion(recorded_motions(tmp_path / 'bag', text, storage, np.float32))
    np.testing.assert_array_equal(found.motion, VALUES)


@pytest.mark.parametrize('storage', STORAGES)
def test_older_messages_with_fewer_fields_are_read(tmp_path, storage):
    text = HEAD + 'string[] joint_names\n' + arrays(*ORDERS[:3])
    found = read_motion(recorded_motions(tmp_path / 'bag', text, storage))
    np.testing.assert_array_equal(found.motion[:, :3], VALUES[:, :3])
    assert np.isnan(found.motion[:, 3:]).all()


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize(
    'text, message',
    [
        (
            HEAD + 'string[] joint_names\n' + arrays('angle', *ORDERS[1:]),
            r'lacks the field position among .*angle',
        ),
        (
            HEAD + 'string[] joint_names\n' + arrays('position') + 'int32[] velocity\n',
            r'the field velocity is int32\[\], expected float64\[\]',
        ),
        (
            HEAD + 'string joint_names\n' + arrays(*ORDERS),
            r'joint_names is string, expected string\[\]',
        ),
        ('string[] joint_names\n' + arrays(*ORDERS), 'lacks the field header'),
        (
            'Head header\nstring[] joint_names\n' + arrays(*ORDERS) + '=' * 80 + '\n'
            'MSG: hodyn_msgs/Head\nTime stamp\n' + '=' * 80 + '\n'
            'MSG: hodyn_msgs/Time\nfloat64 sec\nuint32 nanosec\n',
            'header.stamp.sec is float64, expected int32',
        ),
    ],
)
def test_messages_that_lack_what_is_needed_are_refused(tmp_path, storage, text, message):
    store = store_with(hodyn_msgs__msg__JointMotion=text)
    bag = record(tmp_path / 'bag', store, MOTION, [made(store, MOTION)], storage)
    with pytest.raises(
        FileError, match=f'topic /t: .* another version of {MOTION}: .*{message}'
    ):
        read_motion(bag)


@pytest.mark.parametrize('storage', STORAGES)
def test_joint_states_of_another_version_are_read(tmp_path, storage):
    text = (
        HEAD
        + arrays('effort', 'velocity', 'position', kind='float32[]')
        + 'string[] name\n'
    )
    store = store_with(sensor_msgs__msg__JointState=text)
    messages = [
        made(
            store,
            STATE,
            **header(store, i),
            name=['a', 'b'],
            position=rows[0].astype('f4'),
            velocity=rows[1].astype('f4'),
        )
        for i, rows in enumerate(VALUES)
    ]
    found = read_motion(record(tmp_path / 'bag', store, STATE, messages, storage))
    assert found.is_measured
    np.testing.assert_array_equal(found.motion, VALUES[:, :2])


@pytest.mark.parametrize('storage', STORAGES)
def test_trajectories_of_another_version_are_read(tmp_path, storage):
    text = (
        'float64 speed\n'
        + HEAD
        + 'Point[] points\nstring[] joint_names\n'
        + '=' * 80
        + '\n'
        'MSG: trajectory_msgs/Point\nbuiltin_interfaces/Duration time_from_start\n'
        'float64[] velocities\nfloat64[] positions\n'
    )
    store = store_with(trajectory_msgs__msg__JointTrajectory=text)
    seconds = 'builtin_interfaces/msg/Duration'
    points = [
        made(
            store,
            'trajectory_msgs/msg/Point',
            time_from_start=made(store, seconds, sec=i, nanosec=5),
            positions=VALUES[i, 0],
            velocities=VALUES[i, 1],
        )
        for i in range(4)
    ]
    message = made(
        store, TRAJECTORY, **header(store, 0), joint_names=['a', 'b'], points=points
    )
    found = read_motion(record(tmp_path / 'bag', store, TRAJECTORY, [message], storage))
    assert found.is_waypoints
    np.testing.assert_array_equal(found.motion, VALUES[:4, :2])
    np.testing.assert_allclose(found.times, np.arange(4) + 5e-9, rtol=0, atol=1e-14)


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
    for order in (1, -1):
        change(
            bag,
            (
                'UPDATE message_definitions SET encoded_message_definition = ?',
                text + arrays(*ORDERS[::order]),
            ),
        )
        with rosbag2.Reader(bag) as reader:
            (connection,) = reader.connections
            assert (deserializer(bag, reader, connection) is None) == (order == 1)


def test_a_split_bag_with_several_versions_is_refused_and_its_files_are_read(tmp_path):
    reordered = (
        HEAD + 'string[] joint_names\n' + arrays('velocity', 'position', *ORDERS[2:])
    )
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'))
    other = recorded_motions(tmp_path / 'other', reordered)
    shutil.copy(other / 'other.mcap', bag)
    metadata = bag / 'metadata.yaml'
    text = metadata.read_text().replace('  - bag.mcap\n', '  - bag.mcap\n  - other.mcap\n')
    metadata.write_text(re.sub('RIHS01_.*', "''", text.replace('count: 40', 'count: 80')))
    with pytest.raises(
        FileError, match=f'topic /t: .* several versions of {MOTION}.*one by one'
    ):
        read_motion(bag)
    for path in bag.glob('*.mcap'):
        np.testing.assert_array_equal(read_motion(path).motion, VALUES)


@pytest.mark.parametrize(
    'without',
    [
        'DELETE FROM message_definitions',
        "UPDATE message_definitions SET encoding = 'ros2idl'",
    ],
)
def test_without_a_definition_the_hash_of_the_type_is_compared(tmp_path, without):
    reordered = (
        HEAD + 'string[] joint_names\n' + arrays('velocity', 'position', *ORDERS[2:])
    )
    none = (without,)
    same = recorded_motions(tmp_path / 'same', definition('JointMotion'), 'sqlite3')
    change(same, none)
    np.testing.assert_array_equal(read_motion(same).motion, VALUES)
    other = recorded_motions(tmp_path / 'other', reordered, 'sqlite3')
    change(other, none)
    with pytest.raises(
        FileError, match=f'another version of {MOTION}, with the hash RIHS01_'
    ):
        read_motion(other)
    # The file alone has the hash as well; without it there is nothing to compare.
    (path,) = other.glob('*.db3')
    with pytest.raises(FileError, match='with the hash RIHS01_'):
        read_motion(path)
    change(other, ("UPDATE topics SET type_description_hash = ''",))
    np.testing.assert_array_equal(read_motion(path).motion[:, 0], VALUES[:, 1])


def test_a_definition_that_makes_no_sense_is_refused(tmp_path):
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'), 'sqlite3')
    change(bag, ("UPDATE message_definitions SET encoded_message_definition = 'a b c d'",))
    with pytest.raises(
        FileError, match=f'the definition of {MOTION} in the bag cannot be read'
    ):
        read_motion(bag)


def test_damaged_messages_of_another_version_are_refused(tmp_path):
    text = HEAD + 'string[] joint_names\n' + arrays('velocity', 'position')
    bag = recorded_motions(tmp_path / 'bag', text, 'sqlite3')
    change(bag, ('UPDATE messages SET data = substr(data, 1, 50) WHERE id = 9',))
    with pytest.raises(FileError, match='topic /t: message 8 is damaged'):
        read_motion(bag)


def test_messages_missing_from_a_damaged_mcap_are_counted(tmp_path):
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'))
    (path,) = bag.glob('*.mcap')
    data = bytearray(path.read_bytes())
    # Records of messages (0x05) of one length become records that no reader knows.
    length = len(VALUES[0].tobytes())
    place, broken = 0, 0
    while broken < 3:
        place = data.index(VALUES[10 + broken, 0].tobytes(), place)
        start = data.rindex(b'\x05', 0, place)
        while int.from_bytes(data[start + 1 : start + 9], 'little') not in range(
            length, 400
        ):
            start = data.rindex(b'\x05', 0, start)
        data[start] = 0x7F
        broken += 1
    path.write_bytes(data)
    for name in (bag, path):
        with pytest.raises(
            FileError, match='has 37 messages, .* there are 40: 3 are missing'
        ):
            read_motion(name)


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
