"""Bags: read with what others have written, written so that others can read."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from support.io_cases import START, model, results, swing

from hodyn_ros.errors import FileError, JointNameError
from hodyn_ros.files import (
    iterate_motion,
    read_motion,
    write_results,
)
from hodyn_ros.files.messages import HODYN_MESSAGES, definition, typestore

rosbag2 = pytest.importorskip('rosbags.rosbag2')

ROOT = Path(__file__).resolve().parents[2]
MODEL = model()
STORE = typestore()
STATE, MOTION = 'sensor_msgs/msg/JointState', 'hodyn_msgs/msg/JointMotion'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
NONE = np.empty(0)


@pytest.fixture(params=['folder', '.mcap', '.db3'])
def bag(request, tmp_path):
    return tmp_path / ('bag' if request.param == 'folder' else f'bag{request.param}')


def kind(name):
    return STORE.types[name]


def header(stamp, frame=''):
    time = kind('builtin_interfaces/msg/Time')(sec=stamp // 10**9, nanosec=stamp % 10**9)
    return kind('std_msgs/msg/Header')(stamp=time, frame_id=frame)


def state(stamp, names, position, velocity=NONE, frame=''):
    rows = (np.array(values, dtype=np.float64) for values in (position, velocity))
    return kind(STATE)(header(stamp, frame), list(names), *rows, NONE)


def trajectory(stamp, names, times, motion):
    seconds = kind('builtin_interfaces/msg/Duration')
    points = [
        kind('trajectory_msgs/msg/JointTrajectoryPoint')(
            *(motion[i, k] if k < motion.shape[1] else NONE for k in range(3)),
            NONE,
            seconds(sec=int(time), nanosec=round(1e9 * (time % 1))),
        )
        for i, time in enumerate(times)
    ]
    return kind(TRAJECTORY)(header(stamp), list(names), points)


def record(path, *messages, storage='mcap', compression=None):
    """Write messages (topic, type, recorded at, message or bytes) with rosbags itself."""
    plugin = getattr(rosbag2.StoragePlugin, storage.upper())
    writer = rosbag2.Writer(path, version=9, storage_plugin=plugin)
    if compression:
        writer.set_compression(compression, rosbag2.CompressionFormat.ZSTD)
    connections = {}
    with writer:
        for topic, name, stamp, message in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, name, typestore=STORE)
            data = (
                message
                if isinstance(message, bytes)
                else STORE.serialize_cdr(message, name)
            )
            writer.write(connections[topic], stamp, data)
    return path


def recorded_states(path, count=900, **options):
    times = START + 2_000_000 * np.arange(count)
    motion = swing(0.002 * np.arange(count), orders=2)
    names = ('elbow', 'shoulder')
    messages = [
        ('/joint_states', STATE, t + 300_000, state(t, names, row[0, ::-1], row[1, ::-1]))
        for t, row in zip(times.tolist(), motion)
    ]
    return record(path, *messages, **options), motion


def contents(path):
    """Messages of a bag by topic, as rosbags decodes them by the definitions in the bag."""
    from rosbags.highlevel import AnyReader

    found = {}
    with AnyReader([path]) as reader:
        for connection, stamp, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            found.setdefault(connection.topic, []).append((stamp, message))
    return found


def test_definitions_are_those_of_hodyn_msgs():
    for name in HODYN_MESSAGES:
        assert definition(name) == (ROOT / 'hodyn_msgs' / 'msg' / f'{name}.msg').read_text()


def test_types_have_the_hashes_that_ros_gives_them():
    hodyn_msgs = pytest.importorskip('hodyn_msgs.msg')
    for name in HODYN_MESSAGES:
        described = None
        for parent in Path(hodyn_msgs.__file__).parents:
            path = parent / 'share' / 'hodyn_msgs' / 'msg' / f'{name}.json'
            if path.is_file():
                described = json.loads(path.read_text())
                break
        if described is None:
            pytest.skip('the descriptions of the types are not installed')
        hashes = {
            item['type_name']: item['hash_string'] for item in described['type_hashes']
        }
        assert (
            STORE.hash_rihs01(f'hodyn_msgs/msg/{name}') == hashes[f'hodyn_msgs/msg/{name}']
        )


def test_a_chunk_that_differs_from_its_checksum_is_refused(tmp_path):
    path = tmp_path / 'x.mcap'
    write_results(path, results(3000, wrenches=False))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match='x.mcap .*Chunk checksum mismatch'):
        read_motion(path)


def test_ros_itself_reads_what_is_written(tmp_path):
    serialization = pytest.importorskip('rclpy.serialization')
    pytest.importorskip('hodyn_msgs.msg')
    written = results(wrenches=False)
    written.effort[5, 2] = np.nan
    write_results(tmp_path / 'bag', written)
    expected = contents(tmp_path / 'bag')
    counts = {}
    with rosbag2.Reader(tmp_path / 'bag') as reader:
        for connection, _, data in reader.messages():
            package, _, name = connection.msgtype.split('/')
            ours = getattr(importlib.import_module(f'{package}.msg'), name)
            message = serialization.deserialize_message(bytes(data), ours)
            number = counts[connection.topic] = counts.get(connection.topic, -1) + 1
            theirs = expected[connection.topic][number][1]
            for field in ours.get_fields_and_field_types():
                if field != 'header':
                    np.testing.assert_array_equal(
                        getattr(message, field), getattr(theirs, field)
                    )
            assert message.header.stamp.nanosec == theirs.header.stamp.nanosec
    assert len(counts) == 7


@pytest.mark.parametrize('storage, compression', [('mcap', 'MESSAGE'), ('sqlite3', 'FILE')])
def test_recorded_joint_states_are_measurements(tmp_path, storage, compression):
    mode = compression and getattr(rosbag2.CompressionMode, compression)
    path, motion = recorded_states(tmp_path / 'bag', storage=storage, compression=mode)
    found = read_motion(path)
    assert found.is_measured
    assert found.joint_names == ('elbow', 'shoulder')
    assert found.start == START
    np.testing.assert_array_equal(found.motion, motion[:, :, ::-1])
    np.testing.assert_allclose(found.times, 0.002 * np.arange(900), rtol=0, atol=1e-12)


def test_messages_about_other_joints_are_passed_over(tmp_path):
    messages = []
    for i in range(40):
        stamp = START + 2_000_000 * i
        messages.append(('/joint_states', STATE, stamp, state(stamp, 'ab', [i, -i])))
        messages.append(('/joint_states', STATE, stamp + 1, state(stamp + 1, 'g', [0.04])))
    found = read_motion(record(tmp_path / 'bag', *messages))
    assert found.joint_names == ('a', 'b')
    np.testing.assert_array_equal(found.motion[:, 0, 0], np.arange(40))
    gripper = read_motion(tmp_path / 'bag', joint_names=['g'])
    assert len(gripper) == 40
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
    times, motion = np.array([0.0, 0.5, 1.25]), swing(np.array([0.0, 0.5, 1.25]), orders=2)
    motion[1, 1] = np.nan
    given = motion.copy()
    messages = []
    for i in range(3):
        message = trajectory(START + 10**9 * i, MODEL.joint_names, times, given)
        message.points[1].velocities = NONE
        messages.append(('/arm/joint_trajectory', TRAJECTORY, START + 10**9 * i, message))
    path = record(tmp_path / 'bag', *messages)
    with pytest.raises(
        FileError, match='3 trajectories; choose one with index=0 to index=2'
    ):
        read_motion(path)
    found = read_motion(path, index=1)
    assert found.is_waypoints
    assert found.start == START + 10**9
    np.testing.assert_array_equal(found.times, times)
    np.testing.assert_array_equal(found.motion, motion)
    assert len(list(iterate_motion(path))) == 3
    with pytest.raises(FileError, match='topic .* index is 3, but it holds 3'):
        read_motion(path, index=3)


def test_the_topic_is_chosen_when_it_is_the_only_one_and_asked_for_otherwise(tmp_path):
    messages = [
        ('/joint_states', STATE, START, state(START, 'a', [1.0])),
        ('/other', STATE, START, state(START, 'b', [2.0])),
        ('/note', 'std_msgs/msg/String', START, kind('std_msgs/msg/String')('hello')),
    ]
    path = record(tmp_path / 'bag', *messages)
    with pytest.raises(
        FileError, match='several topics with a motion; choose one: /joint_states'
    ):
        read_motion(path)
    assert read_motion(path, topic='/other').joint_names == ('b',)
    with pytest.raises(
        FileError, match="no topic '/joint' with .* its topics are /joint_states"
    ):
        read_motion(path, topic='/joint')
    with pytest.raises(
        FileError, match=r'no topic ./note. with .* /note \(std_msgs/msg/String\)'
    ):
        read_motion(path, topic='/note')
    with pytest.raises(FileError, match='leave index out'):
        read_motion(path, topic='/other', index=0)
    only = record(tmp_path / 'only', messages[2])
    with pytest.raises(
        FileError, match='no topic with messages of a type that holds a motion'
    ):
        read_motion(only)


def test_mirrors_of_efforts_do_not_pass_for_measurements(tmp_path):
    write_results(tmp_path / 'bag', results(wrenches=False))
    # The only topic that a motion can be read from: of several one had to be named.
    assert not read_motion(tmp_path / 'bag').is_measured


def test_messages_that_contradict_themselves_are_refused_with_their_number(tmp_path):
    good = [('/s', STATE, START + i, state(START + i, 'ab', [1.0, 2.0])) for i in range(3)]
    bad = ('/s', STATE, START + 9, state(START + 9, 'ab', [1.0]))
    with pytest.raises(
        FileError, match='topic /s: message 3 has 1 values of position for 2'
    ):
        read_motion(record(tmp_path / 'a', *good, bad))
    nan = ('/s', STATE, START + 9, state(START + 9, 'ab', [1.0, np.nan]))
    with pytest.raises(
        FileError, match="topic /s: the position of joint 'b' is nan at sample 3"
    ):
        read_motion(record(tmp_path / 'b', *good, nan))
    cut = STORE.serialize_cdr(good[0][3], STATE).tobytes()[:40]
    with pytest.raises(FileError, match='topic /s: message 3 is damaged: it is cut off'):
        read_motion(record(tmp_path / 'c', *good, ('/s', STATE, START + 9, cut)))
    twice = ('/s', STATE, START + 9, state(START + 9, 'aba', [1.0, 2.0, 3.0]))
    with pytest.raises(JointNameError, match='message 3 has joints more than once'):
        read_motion(record(tmp_path / 'd', *good, twice))


def test_many_layouts_in_one_topic_are_all_read(tmp_path):
    messages = [
        ('/s', STATE, START + i, state(START + i, ['a', 'x' * (i + 1)], [1.0 * i, 0.0]))
        for i in range(100)
    ]
    found = read_motion(record(tmp_path / 'bag', *messages), joint_names=['a'])
    np.testing.assert_array_equal(found.motion[:, 0, 0], np.arange(100))
