"""Bags: what others have recorded is read, of this version of a type, whole and rightly chosen."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from support.io_cases import START, results, samples

from hodyn_ros.errors import FileError, JointNameError
from hodyn_ros.files import read_motion, read_motions, write_results
from hodyn_ros.files.messages import HODYN_MESSAGES, definition

rosbag2 = pytest.importorskip('rosbags.rosbag2')
typesys = pytest.importorskip('rosbags.typesys')

ROOT = Path(__file__).resolve().parents[2]
STATE, MOTION = 'sensor_msgs/msg/JointState', 'hodyn_msgs/msg/JointMotion'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
POINT, STRING = 'trajectory_msgs/msg/JointTrajectoryPoint', 'std_msgs/msg/String'
HEAD = 'std_msgs/Header header\n'
ORDERS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
COUNT = 40
VALUES = np.random.default_rng(3).normal(size=(COUNT, 5, 2))
NONE = np.empty(0)
DURATION = 'builtin_interfaces/msg/Duration'


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


STORE = store_with()


def made(name, /, store=STORE, **fields):
    """Make a message; fields that are not given are empty."""
    values = {}
    for field, (node, what) in store.fielddefs[name][1]:
        if field in fields:
            values[field] = fields[field]
        elif node.name == 'NAME':
            values[field] = made(what, store)
        elif node.name == 'BASE':
            values[field] = '' if what[0] == 'string' else 0
        else:
            is_number = what[0][0].name == 'BASE' and what[0][1][0] != 'string'
            values[field] = np.empty(0, dtype=what[0][1][0]) if is_number else []
    return store.types[name](**values)


def header(stamp):
    sec, nanosec = divmod(stamp, 10**9)
    time = made('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec)
    return made('std_msgs/msg/Header', stamp=time)


def state(stamp, names, position, velocity=()):
    rows = (np.array(values, dtype=float) for values in (position, velocity))
    return made(STATE, header=header(stamp), name=list(names), **dict(zip(ORDERS, rows)))


def record(path, *messages, storage='MCAP', store=STORE):
    """Write messages (topic, type, recorded at, message or bytes) with rosbags itself."""
    plugin = rosbag2.StoragePlugin[storage]
    connections = {}
    with rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
        for topic, name, stamp, message in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, name, typestore=store)
            is_raw = isinstance(message, bytes)
            data = message if is_raw else store.serialize_cdr(message, name)
            writer.write(connections[topic], stamp, data)
    return path


def test_definitions_are_those_of_hodyn_msgs():
    for name in HODYN_MESSAGES:
        assert definition(name) == (ROOT / 'hodyn_msgs' / 'msg' / f'{name}.msg').read_text()


def test_messages_about_other_joints_are_passed_over(tmp_path):
    messages = []
    for i in range(COUNT):
        stamp = START + 2_000_000 * i
        messages.append(('/joint_states', STATE, stamp, state(stamp, 'ab', [i, -i])))
        messages.append(('/joint_states', STATE, stamp + 1, state(stamp + 1, 'g', [0.04])))
    found = read_motion(record(tmp_path / 'bag', *messages))
    assert found.joint_names == ('a', 'b')
    np.testing.assert_array_equal(found.motion[:, 0, 0], np.arange(COUNT))
    assert len(read_motion(tmp_path / 'bag', joint_names=['g'])) == COUNT
    with pytest.raises(JointNameError, match='none of 80 messages has the joints wrist'):
        read_motion(tmp_path / 'bag', joint_names=['wrist'])
    with pytest.raises(JointNameError, match='message 0 lacks g beside a, b'):
        read_motion(tmp_path / 'bag', joint_names=['a', 'g'])


def test_messages_without_a_stamp_count_from_when_they_were_recorded(tmp_path):
    messages = [('/s', STATE, START + i, state(0, 'a', [float(i)])) for i in range(3)]
    found = read_motion(record(tmp_path / 'bag', *messages))
    assert found.start == START
    np.testing.assert_array_equal(np.rint(1e9 * found.times), [0, 1, 2])


def test_every_trajectory_of_a_topic_can_be_had(tmp_path):
    times = np.array([0.0, 0.5, 1.25])
    rows = VALUES[:3, 0]
    points, messages = [], []
    for time, row, velocity in zip(times, rows, (rows[0], NONE, rows[2])):
        since = made(DURATION, sec=int(time), nanosec=round(1e9 * (time % 1.0)))
        given = {'positions': row, 'velocities': velocity, 'time_from_start': since}
        points.append(made(POINT, **given))
    for stamp in START + 10**9 * np.arange(3):
        head = {'header': header(int(stamp)), 'joint_names': ['a', 'b'], 'points': points}
        messages.append(('/arm/t', TRAJECTORY, int(stamp), made(TRAJECTORY, **head)))
    path = record(tmp_path / 'bag', *messages)
    with pytest.raises(
        FileError, match='3 trajectories; choose one with index=0 to index=2'
    ):
        read_motion(path)
    found = read_motion(path, index=1)
    assert found.is_waypoints
    assert found.start == START + 10**9
    np.testing.assert_array_equal(found.times, times)
    velocities = [rows[0], [np.nan, np.nan], rows[2]]
    np.testing.assert_array_equal(found.motion, np.stack([rows, velocities], axis=1))
    assert len(read_motions(path)) == 3
    with pytest.raises(FileError, match='topic .* index is 3, but it holds 3'):
        read_motion(path, index=3)


def test_the_topic_is_chosen_when_it_is_the_only_one_and_asked_for_otherwise(tmp_path):
    messages = [
        ('/joint_states', STATE, START, state(START, 'a', [1.0])),
        ('/other', STATE, START, state(START, 'b', [2.0])),
        ('/note', STRING, START, made(STRING, data='hello')),
    ]
    path = record(tmp_path / 'bag', *messages)
    assert read_motion(path, topic='/other').joint_names == ('b',)
    only = record(tmp_path / 'only', messages[2])
    for bag, options, said in (
        (path, {}, 'several topics with a motion; choose one: /joint_states'),
        (path, {'topic': '/joint'}, "no topic '/joint' with .* are /joint_states"),
        (path, {'topic': '/note'}, r'no topic ./note. with .* /note \(std_msgs/msg/String'),
        (path, {'topic': '/other', 'index': 0}, 'leave index out'),
        (only, {}, 'no topic with messages of a type that holds a motion'),
    ):
        with pytest.raises(FileError, match=said):
            read_motion(bag, **options)


def test_mirrors_of_efforts_do_not_pass_for_measurements(tmp_path):
    write_results(tmp_path / 'bag', results(wrenches=False))
    # The only topic that a motion can be read from: of several one had to be named.
    assert not read_motion(tmp_path / 'bag').is_measured


def test_messages_that_contradict_themselves_are_refused_with_their_number(tmp_path):
    good = [('/s', STATE, START + i, state(START + i, 'ab', [1.0, 2.0])) for i in range(3)]
    cut = STORE.serialize_cdr(good[0][3], STATE).tobytes()[:40]
    for number, (bad, error, said) in enumerate(
        (
            (state(START + 9, 'ab', [1.0]), FileError, 'has 1 values of position for 2'),
            (
                state(START + 9, 'ab', [1.0, np.nan]),
                FileError,
                "position of joint 'b' is nan",
            ),
            (cut, FileError, 'message 3 is damaged or cut off'),
            (state(START + 9, 'aba', [1.0] * 3), JointNameError, 'joints more than once'),
        )
    ):
        bag = record(tmp_path / str(number), *good, ('/s', STATE, START + 9, bad))
        with pytest.raises(error, match=f'{said}|3.*{said}') as caught:
            read_motion(bag)
        assert '3' in str(caught.value)


def recorded_motions(path, text):
    """Database of joint motions of a definition; the fields that it has are those of `VALUES`."""
    store = store_with(hodyn_msgs__msg__JointMotion=text)
    messages = []
    for i, rows in enumerate(VALUES):
        fields = {'header': header(START + 10**9 * i), 'joint_names': ['a', 'b']}
        message = made(MOTION, store, **fields, **dict(zip(ORDERS, rows)))
        messages.append(('/t', MOTION, START + i, message))
    return record(path, *messages, storage='SQLITE3', store=store)


def arrays(*names):
    return ''.join(f'float64[] {name}\n' for name in names)


REORDERED = HEAD + 'string[] joint_names\n' + arrays('velocity', 'position', *ORDERS[2:])


@pytest.mark.every_case
@pytest.mark.parametrize(
    'kind, text, have',
    [
        (MOTION, REORDERED, 'float64[] velocity, float64[] position'),
        (MOTION, 'string[] joint_names\n' + arrays(*ORDERS), 'fields string[] joint_names'),
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
    bag = record(tmp_path / 'bag', ('/t', kind, START, made(kind, store)), store=store)
    with pytest.raises(FileError, match='topic /t: .* another version of ') as caught:
        read_motion(bag)
    assert kind in str(caught.value) and have in str(caught.value)


def change(bag, statement, *values):
    """Change the database of a bag in SQLite."""
    (path,) = Path(bag).glob('*.db3')
    database = sqlite3.connect(path)
    with database:
        database.execute(statement, values)
    database.close()


def test_comments_spaces_and_constants_make_no_other_version(tmp_path):
    text = '# Nothing.\r\n\r\n' + HEAD + '\nuint8 K=3\n\nstring[]   joint_names  # n\n'
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'))
    statement = 'UPDATE message_definitions SET encoded_message_definition = ?'
    change(bag, statement, text + arrays(*ORDERS))
    np.testing.assert_array_equal(read_motion(bag).motion, VALUES)
    for other, said in (
        (text + arrays(*ORDERS[::-1]), 'another version'),
        ('a b c d', f'the definition of {MOTION} in the bag cannot be read'),
    ):
        change(bag, statement, other)
        with pytest.raises(FileError, match=said):
            read_motion(bag)


def test_messages_missing_from_a_database_are_counted(tmp_path):
    bag = recorded_motions(tmp_path / 'bag', definition('JointMotion'))
    change(bag, 'DELETE FROM messages WHERE id > 30')
    with pytest.raises(
        FileError, match='topic /t has 30 messages, .*: 10 are missing.*reindex'
    ):
        read_motion(bag)


def test_joint_states_without_velocities_have_no_order_for_them(tmp_path):
    def bag(name, known):
        messages = []
        for i, rows in enumerate(VALUES):
            stamp = START + 10**9 * i
            given = state(stamp, 'ab', rows[0], rows[1] if i in known else ())
            messages.append(('/t', STATE, stamp, given))
        return record(tmp_path / name, *messages)

    assert read_motion(bag('none', ())).motion.shape == (COUNT, 1, 2)
    # As soon as one message has them the others have gaps.
    some = bag('some', (25,))
    expected = np.full((COUNT, 2), np.nan)
    expected[25] = VALUES[25, 1]
    np.testing.assert_array_equal(read_motion(some).motion[:, 1], expected)


def test_states_of_elastic_joints_have_links_and_motors(tmp_path):
    kind, messages = 'hodyn_msgs/msg/ElasticState', []
    store = store_with(hodyn_msgs__msg__ElasticState=definition('ElasticState'))
    rng = np.random.default_rng(1)
    q, torque = rng.normal(size=(2, 2, 2))
    theta, thetad, motor_torque = rng.normal(size=(3, 2, 3))
    for i in range(2):
        known = {'joint_names': ['a', 'b'], 'position': q[i], 'spring_torque': torque[i]}
        known |= {'motor_names': ['b_motor2', 'a', 'b_motor1'], 'motor_position': theta[i]}
        known |= {'motor_velocity': thetad[i], 'motor_torque': motor_torque[i]}
        given = made(kind, store, header=header(START + 10**9 * i), **known)
        messages.append(('/elastic_state', kind, START, given))
    bag = record(tmp_path / 'bag', *messages, store=store)
    found = read_motion(bag)
    assert found.is_measured and found.motor_names == ('b_motor2', 'a', 'b_motor1')
    assert found.motor_joints == ('b', 'a', 'b')
    np.testing.assert_array_equal(found.motion, q[:, None])
    np.testing.assert_array_equal(found.effort, torque[:, None])
    np.testing.assert_array_equal(found.motor_position, np.stack((theta, thetad), axis=1))
    np.testing.assert_array_equal(found.motor_torque, motor_torque[:, None])
    # Of some joints, and of drives that do not tell their torques.
    for message in messages:
        message[3].motor_torque = np.empty(0)
    bag = record(tmp_path / 'other', *messages, store=store)
    found = read_motion(bag, joint_names=('b',))
    assert found.motor_torque is None and found.motor_names == ('b_motor2', 'b_motor1')
    np.testing.assert_array_equal(found.motor_position[:, 0], theta[:, ::2])


def test_positions_alone_make_no_message_and_no_bag(tmp_path):
    path = tmp_path / 'x.mcap'
    with pytest.raises(FileError, match='no sample has what a message needs'):
        write_results(path, samples(orders=1))
    assert list(tmp_path.iterdir()) == []
