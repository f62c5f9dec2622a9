"""Motions and results in files: what is written comes back, and others read and write it."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from support.command_tools import NAMES, ORDERS, URDF, efforts_of, swinging

from hodyn_ros import RobotModel, Wrench
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.errors import FileError, HodynError
from hodyn_ros.files import (
    Samples,
    compute,
    read_motion,
    read_results,
    to_motion,
    write_results,
)

TABLES, BAGS = ('.csv', '.npz', '.parquet'), ('.mcap', '.db3', '')
NEEDS = {'.parquet': 'pyarrow', '.mcap': 'rosbags', '.db3': 'rosbags', '': 'rosbags'}
START = 1_700_000_000_123_456_789  # ns; no float64 of seconds can hold it
STATE = 'sensor_msgs/msg/JointState'
TIMES = 0.01 * np.arange(120)
MODEL = RobotModel.from_urdf('two_link')


@pytest.fixture(scope='module')
def whole():
    """Results with motors, a wrench, and gaps in the second derivatives."""
    force = np.random.default_rng(0).normal(size=(120, 3, 6))
    wrench = Wrench('tool', force, 'hybrid', 'on_robot')
    given = Samples(NAMES, TIMES, swinging(TIMES), wrenches=(wrench,), start=START)
    drives = Actuators(MODEL, {'elbow': SeriesElastic(400.0, 0.2)})
    found = compute(MODEL, given, actuators=drives)
    found.effort[7, 2] = np.nan
    return found


def same(found, expected):
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('suffix', (*TABLES, *BAGS))
def test_motions_and_results_come_back_from_every_format(suffix, whole, tmp_path):
    pytest.importorskip(NEEDS.get(suffix, 'numpy'))
    path = tmp_path / f'results{suffix}'
    write_results(path, whole)
    motion = read_motion(path)
    assert (motion.joint_names, motion.start) == (NAMES, START)
    same(motion.motion, whole.motion)
    np.testing.assert_allclose(motion.times, whole.times, rtol=0, atol=0.51e-9)
    reordered = read_motion(path, joint_names=NAMES[::-1])
    same(reordered.motion, whole.motion[..., ::-1])
    if suffix in TABLES:
        found = read_results(path)
        assert (found.start, found.motor_names) == (START, whole.motor_names)
        assert (found.provenance.digest, found.source) == (whole.provenance.digest, 'given')
        same(found.times, whole.times)
        for what, values in whole.arrays().items():
            same(found.arrays()[what], values)
        (wrench,) = found.wrenches
        assert (wrench.link, wrench.expressed_in, wrench.acting) == (
            *('tool', 'hybrid'),
            'on_robot',
        )
        same(wrench.values, whole.wrenches[0].values)


def test_others_read_tables(whole, tmp_path):
    for suffix in ('.csv', '.npz'):
        write_results(tmp_path / f'x{suffix}', whole)
    lines = (tmp_path / 'x.csv').read_text().splitlines()
    titles, *rows = csv.reader(line for line in lines if line[0] != '#')
    column = titles.index('elbow.effort_dot [N m/s]')
    same([float(row[column]) for row in rows], whole.effort[:, 1, 1])
    same([float(row[0]) for row in rows], whole.times)
    with np.load(tmp_path / 'x.npz') as arrays:
        same(arrays['elbow.effort_dot'], whole.effort[:, 1, 1])
        assert int(str(arrays['start'])) == START
    named = {'time': TIMES, 'joint_names': NAMES, 'motion': whole.motion}
    np.savez(tmp_path / 'y.npz', **named, effort=whole.effort)  # arrays of all joints
    same(read_results(tmp_path / 'y.npz').effort, whole.effort)


def test_others_read_and_write_parquet(whole, tmp_path):
    pa = pytest.importorskip('pyarrow')
    parquet = pytest.importorskip('pyarrow.parquet')
    write_results(tmp_path / 'x.parquet', whole)
    table = parquet.read_table(tmp_path / 'x.parquet')
    same(table['elbow.effort_ddot'].to_numpy(), whole.effort[:, 2, 1])
    same(table['tool.wrench_dot.force.z'].to_numpy(), whole.wrenches[0].values[:, 1, 5])
    position = whole.motion[:, 0]
    columns = {f'{n}.position': position[:, j].copy() for j, n in enumerate(NAMES)}
    parquet.write_table(pa.table({'time': TIMES, **columns}), tmp_path / 'y.parquet')
    same(read_motion(tmp_path / 'y.parquet').motion[:, 0], position)


@pytest.mark.parametrize('suffix', BAGS)
def test_others_read_bags(suffix, whole, tmp_path):
    reader = pytest.importorskip('rosbags.highlevel').AnyReader
    write_results(tmp_path / f'x{suffix}', whole)
    found = {}
    with reader([tmp_path / f'x{suffix}']) as bag:
        for connection, stamp, data in bag.messages():
            message = bag.deserialize(data, connection.msgtype)
            found.setdefault(connection.topic, []).append((stamp, message))
    stamps = [START + round(1e9 * time) for time in TIMES]
    efforts = found['/hodyn_node/joint_effort']
    assert [stamp for stamp, _ in efforts] == stamps
    for (stamp, message), values in zip(efforts, whole.effort):
        head = message.header
        assert 10**9 * head.stamp.sec + head.stamp.nanosec == stamp
        assert (tuple(message.joint_names), head.frame_id) == (NAMES, 'base')
        same(message.effort_dot, values[1])
    assert [m.valid_order for _, m in efforts[6:9]] == [2, 1, 2]
    assert len(efforts[7][1].effort_ddot) == 0
    same(found['/joint_motion'][3][1].snap, whole.motion[3, 4])
    motors = found['/hodyn_node/motor_reference'][9][1]
    same(motors.torque, whole.motors.torque[9, 0])


def recorded_states(path, motion, storage):
    """A bag of joint states as a driver leaves it, by rosbags: other order, no acceleration."""
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    typesys = pytest.importorskip('rosbags.typesys')
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    kinds = ('builtin_interfaces/msg/Time', 'std_msgs/msg/Header', STATE)
    time, header, state = (store.types[name] for name in kinds)
    plugin = rosbag2.StoragePlugin[storage]
    with rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
        to = writer.add_connection('/joint_states', STATE, typestore=store)
        for t, rows in zip(TIMES, np.ascontiguousarray(motion[:, :2, ::-1])):
            stamp = START + round(1e9 * t)
            head = header(time(*divmod(stamp, 10**9)), '')
            message = state(head, list(NAMES[::-1]), *rows, np.empty(0))
            writer.write(to, stamp + 70_000, store.serialize_cdr(message, STATE))
    return path


@pytest.mark.parametrize('storage', ['MCAP', 'SQLITE3'])
def test_recorded_joint_states_are_measurements(storage, tmp_path):
    motion = swinging(TIMES)
    found = read_motion(recorded_states(tmp_path / 'bag', motion, storage))
    assert found.is_measured and found.start == START
    assert found.joint_names == NAMES[::-1]
    same(found.motion, motion[:, :2, ::-1])
    np.testing.assert_allclose(found.times, TIMES, rtol=0, atol=1e-9)
    estimated = compute(MODEL, found)
    inner = slice(20, -20)
    expected = efforts_of(motion)[inner, 0]
    assert (
        np.abs(estimated.effort[inner, 0] - expected).max() < 0.02 * np.abs(expected).max()
    )


def test_tables_of_others_are_read_with_their_units_and_titles(tmp_path):
    motion, path = swinging(TIMES), tmp_path / 'x.csv'
    rows = np.column_stack([1e3 * TIMES, np.degrees(motion[:, :2].reshape(-1, 4))])
    titles = [f'{n}.{q} [{u}]' for q, u in zip(ORDERS, ('deg', 'deg/s')) for n in NAMES]
    head = ';'.join(['timestamp [ms]', *titles])
    np.savetxt(path, rows, '%.17g', ';', header=head, comments='')
    found = read_motion(path)
    np.testing.assert_allclose(found.times, TIMES, atol=1e-12)
    np.testing.assert_allclose(found.motion, motion[:, :2], rtol=1e-12, atol=1e-12)
    position = {f'{n}.position': motion[:, 0, j] for j, n in enumerate(NAMES)}
    np.savez(tmp_path / 'columns.npz', time=TIMES, **position)
    names = np.array(NAMES)
    np.savez(tmp_path / 'rows.npz', time=TIMES, position=motion[:, 0], joint_names=names)
    for name in ('columns.npz', 'rows.npz'):
        same(read_motion(tmp_path / name).motion, motion[:, :1])


def test_waypoints_of_ros_become_a_motion_from_rest_to_rest(tmp_path):
    points = [
        {'positions': [0.1 * i, -(0.2**i)], 'time_from_start': {'sec': i, 'nanosec': 0}}
        for i in range(4)
    ]
    path = tmp_path / 'plan.yaml'
    path.write_text(yaml.safe_dump({'joint_names': [*NAMES[::-1]], 'points': points}))
    given = read_motion(path)
    assert given.is_waypoints and given.joint_names == NAMES[::-1]
    times, motion, remarks = to_motion(MODEL, given)
    at = np.searchsorted(times, np.arange(4.0) - 1e-9)
    np.testing.assert_allclose(motion[at, 0, 1], [0.0, 0.1, 0.2, 0.3], atol=1e-12)
    np.testing.assert_allclose(motion[at, 0, 0], -(0.2 ** np.arange(4)), atol=1e-12)
    assert np.abs(motion[[0, -1], 1:3]).max() < 1e-9
    assert any('rest' in remark for remark in remarks)


def test_efforts_are_those_of_power_series_whatever_is_given():
    motion = swinging(TIMES)
    expected = efforts_of(motion)
    scale = np.abs(expected).max(axis=(0, 2))
    for orders, near in ((5, 1e-12), (3, 1e-5), (1, 1e-4)):
        whole = Samples(NAMES[::-1], TIMES, motion[:, :orders, ::-1])
        found = compute(MODEL, whole)
        error = np.abs(found.effort - expected)[15:-15].max(axis=(0, 2))
        assert np.all(error < near * scale), orders
    assert compute(MODEL, Samples(NAMES, TIMES, motion), order=0).effort.shape == (
        120,
        1,
        2,
    )


def test_turns_are_unwound_and_what_is_unknown_stays_unknown():
    text = URDF.read_text().replace('type="revolute"', 'type="continuous"', 1)
    turning = RobotModel.from_urdf(text)
    motion = swinging(TIMES)
    motion[:, 0, 0] += 9.0 * TIMES
    motion[:, 1, 0] += 9.0
    recorded = motion.copy()
    recorded[:, 0, 0] = np.angle(np.exp(1j * motion[:, 0, 0]))
    recorded[7, 4] = np.nan
    found = compute(turning, Samples(NAMES, TIMES, recorded))
    turns = (found.motion[:, 0] - motion[:, 0]) / (2.0 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns[:1]) + 0.0 * turns, atol=1e-12)
    expected = efforts_of(motion)
    expected[7, 2] = np.nan
    np.testing.assert_allclose(found.effort, expected, rtol=1e-10, atol=1e-9)


def test_noise_is_estimated_with_deviations_that_cover_the_errors():
    times = np.arange(0.0, 4.0, 0.004)
    motion = swinging(times)
    noise = 1e-4 * np.random.default_rng(0).standard_normal((len(times), 1, 2))
    recorded = Samples(NAMES, times, motion[:, :1] + noise)
    found = compute(MODEL, recorded)
    assert found.source == 'measured'
    errors = np.abs(found.effort - efforts_of(motion))
    inside = (errors < 1.96 * found.effort_std).mean(axis=(0, 2))
    assert np.all(inside[:2] > 0.9), inside
    assert np.sqrt(np.mean(errors[:, 0] ** 2)) < 0.5
    # By a spline the noise would be the torque, which is said.
    remarks = to_motion(MODEL, recorded, derivatives='spline')[2]
    assert any('looks measured' in remark for remark in remarks)


def test_gaps_and_repeated_samples_are_said(tmp_path):
    known = (TIMES < 0.4) | (TIMES > 0.8)
    gap = to_motion(MODEL, Samples(NAMES, TIMES[known], swinging(TIMES[known])[:, :1]))[2]
    assert any('no samples' in remark and '0.8' in remark for remark in gap)
    path = tmp_path / 'x.csv'
    path.write_text('time,a.position\n0,nan\n0.1,1\n0.1,1\n0.2,2\n')
    found = read_motion(path)
    same(found.times, [0.1, 0.2])
    assert len(found.remarks) == 2 and 'left out' in found.remarks[0]


WRONG = {
    'an order that contradicts': lambda m: m * [[1.0], [-1.0], [1.0], [1.0], [1.0]],
    'degrees': lambda m: np.degrees(m),
    'a jump': lambda m: m + 2.5 * (np.arange(120) > 60)[:, None, None],
    'no number': lambda m: np.where(np.arange(120)[:, None, None] == 9, np.nan, m),
    'infinity': lambda m: np.where(np.arange(120)[:, None, None] == 9, np.inf, m),
}


@pytest.mark.parametrize('wrong', WRONG)
def test_motions_that_cannot_be_are_refused(wrong):
    compute(MODEL, Samples(NAMES, TIMES, swinging(TIMES)))
    with pytest.raises(HodynError, match='shoulder|elbow|degrees'):
        compute(MODEL, Samples(NAMES, TIMES, WRONG[wrong](swinging(TIMES))))


@pytest.mark.parametrize('suffix', (*TABLES, '.mcap', '.db3', '.yaml'))
def test_damaged_files_are_refused_by_name_or_read_as_they_were(suffix, whole, tmp_path):
    pytest.importorskip(NEEDS.get(suffix, 'numpy'))
    path = tmp_path / f'x{suffix}'
    write_results(path, replace(whole, wrenches=()) if suffix == '.yaml' else whole)
    intact, data = read_motion(path), path.read_bytes()
    for name, broken in {
        'empty': b'',
        'cut': data[: len(data) * 2 // 3],
        'other': b'\x00' * 50 + data[50:],
        'LFS': b'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n',
    }.items():
        path.write_bytes(broken)
        with pytest.raises(FileError, match=re.escape(path.name)) as caught:
            read_motion(path)
        assert name != 'LFS' or 'git lfs pull' in str(caught.value)
    path.write_bytes(data)
    same(read_motion(path).motion, intact.motion)


def test_nothing_half_written_is_left_and_nothing_is_replaced_that_may_not_be(
    whole, tmp_path
):
    early = replace(whole, start=0, times=whole.times - 5.0)
    pytest.importorskip('rosbags')
    with pytest.raises(FileError, match='cannot be stamps'):
        write_results(tmp_path / 'x.mcap', early)
    with pytest.raises(FileError, match=r"'\.txt' is unknown, expected one of \.csv"):
        write_results(tmp_path / 'x.txt', whole)
    (tmp_path / 'bag').mkdir()
    with pytest.raises(FileError, match='exists already'):
        write_results(tmp_path / 'bag', whole)
    assert [path.name for path in tmp_path.iterdir()] == ['bag']
