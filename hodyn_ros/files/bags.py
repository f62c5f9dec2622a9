"""Bags of ROS 2, in SQLite or MCAP, through rosbags; see doc/files.rst.

A bag is read message by message in the order of its log, so it may be larger than memory. The
topics that are written are those of the node, so that tools show both in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError, JointNameError, MessageError
from hodyn_ros.files.formats import Format, Wanted
from hodyn_ros.files.messages import (
    DecodedMessages,
    decode,
    encode,
    refuse_other_version,
    rosbags,
    typestore,
)
from hodyn_ros.files.quantities import EFFORT, EFFORT_STD, MOTION, MOTOR_TORQUE
from hodyn_ros.files.samples import (
    LACKING,
    POINT_FIELDS,
    SOURCES,
    Samples,
    known_orders,
    leading_unknown,
    waypoint_samples,
)
from hodyn_ros.names import listed

if TYPE_CHECKING:
    from hodyn_ros.actuators.motors import MotorMotion

JOINT_STATE = 'sensor_msgs/msg/JointState'
JOINT_MOTION = 'hodyn_msgs/msg/JointMotion'
JOINT_TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'

MOTION_TOPIC = '/joint_motion'
EFFORT_TOPIC = '/hodyn_node/joint_effort'
MOTOR_TOPIC = '/hodyn_node/motor_reference'
EFFORT_MIRROR = EFFORT_TOPIC + '/order_{}'
MOTOR_MIRROR = MOTOR_TOPIC + '/state'

STORAGES = {'mcap': '.mcap', 'sqlite3': '.db3'}

_READABLE = (JOINT_STATE, JOINT_MOTION, JOINT_TRAJECTORY)
_QUANTITIES = {JOINT_STATE: (*MOTION[:2], EFFORT[0]), JOINT_MOTION: MOTION[:5]}
_NAMES = {JOINT_STATE: 'name', JOINT_MOTION: 'joint_names'}
"""Fields of the messages that are read, and of the names of their joints."""
_SECOND = 1_000_000_000
_LATEST = 2**61  # nanoseconds
_LATEST_STAMP = 2**31 * _SECOND - 1  # what a message can hold [ns]
_VERSION = 9  # of the metadata
_TOGETHER, _WRITTEN = 100_000, 10_000  # messages that are decoded, samples that are encoded

LoggedMessage = tuple[int, bytes]
"""When it was recorded [ns], and its bytes."""


class BagFormat(Format):
    """Storage files of bags of one kind of storage, or folders of bags.

    Parameters
    ----------
    storage : {'mcap', 'sqlite3', ''}
        Kind of storage of a single file; empty for folders of bags, whose storage is chosen
        when they are written.
    """

    is_bag = True

    def __init__(self, storage: str = '') -> None:
        self._storage, self._suffix = storage, STORAGES.get(storage, '')
        self.suffixes = (self._suffix,)

    def motions(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read the samples of a topic, or its trajectories one by one.

        Parameters
        ----------
        path : pathlib.Path
            Storage file, or folder with a metadata.yaml.
        wanted : Wanted
            Topic, joints and trajectory; wrenches are not read from bags.

        Yields
        ------
        Samples
            Measurements of a topic of joint states, with times counted from the first
            stamp; motions of hodyn_msgs/JointMotion likewise; or the waypoints of one
            trajectory each.

        Raises
        ------
        FileError
            If the folder is no bag, no topic or more than one of them holds a motion, an
            index does not fit, or a message is damaged, missing or of a version that cannot
            be used.
        JointNameError
            If a message lacks some of the joints that others have, names one twice, or no
            message has those that are asked for.
        """
        if path.is_dir() and not (path / 'metadata.yaml').is_file():
            found = listed(sorted(item.name for item in path.iterdir()))
            raise FileError(
                f'{path} is a folder without metadata.yaml, so it is no bag; it holds {found}. '
                'Give a bag, or a file: the storage file of a bag (.mcap, .db3) or a table.'
            )
        reader = rosbags('rosbag2', path).Reader(path)
        reader.open()
        with closing(reader):
            topic, kind = _chosen(path, reader.connections, wanted.topic)
            messages, where = _messages(path, reader, topic, kind), f'{path}, topic {topic}'
            if kind == JOINT_TRAJECTORY:
                yield from _trajectories(where, messages, wanted.index)
            elif wanted.index is not None:
                raise FileError(
                    f'{path}: {topic!r} holds samples, not trajectories; leave index out.'
                )
            else:
                yield from _samples(where, kind, messages, wanted)

    def places(self, path: Path) -> tuple[Path, Path]:
        """Folder of the bag, and its storage file, which alone is kept if it is asked for.

        Parameters
        ----------
        path : pathlib.Path
            Where the bag is to be.

        Returns
        -------
        folder : pathlib.Path
            Folder that the bag is written to.
        kept : pathlib.Path
            Its storage file if one file is asked for, else the folder.
        """
        if not self._suffix:
            return path, path
        folder = path.with_name(f'{path.stem}_bag')
        return folder, folder / f'{folder.name}{self._suffix}'

    def write(self, path: Path, results: Samples, storage: str) -> None:
        """Write a bag.

        Parameters
        ----------
        path : pathlib.Path
            Folder of the bag, as `places` says; it must not exist.
        results : Samples
        storage : {'mcap', 'sqlite3'}
            Of a folder; a format of one kind of storage has its own.

        Raises
        ------
        FileError
            If the storage is unknown, rosbags is not installed, or a time cannot be the stamp of
            a message.
        """
        with closing(BagWriter(path, self._storage or storage)) as writer:
            for first in range(0, len(results), _WRITTEN):
                writer.write(results.at(slice(first, first + _WRITTEN)))


def _chosen(path: Path, connections: Sequence[Any], topic: str | None) -> tuple[str, str]:
    """Topic that is read, and its type."""
    # Mirrors of efforts for plotting tools are no measurements.
    mirrors = tuple(
        f'{c.topic}/' for c in connections if c.msgtype.startswith('hodyn_msgs/')
    )
    readable = {
        (c.topic, c.msgtype): c.msgcount for c in connections if c.msgtype in _READABLE
    }
    found = [
        place
        for place, count in readable.items()
        if (place[0] == topic if topic else count and not place[0].startswith(mirrors))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = listed(f'{name} ({kind})' for name, kind in found)
        raise FileError(f'{path} has several topics with a motion; choose one: {names}.')
    names = listed(sorted({f'{c.topic} ({c.msgtype})' for c in connections}))
    raise FileError(
        f'{path} has no topic {"" if topic is None else repr(topic) + " "}with messages of a type '
        f'that holds a motion ({", ".join(_READABLE)}); its topics are {names}.'
    )


def _messages(path: Path, reader: Any, topic: str, kind: str) -> Iterator[LoggedMessage]:
    """Messages of a topic in the order of the log, each with the time of its recording [ns].

    Raises `FileError` for messages of another version, and at the end if the bag counts more
    messages than there are.
    """
    used = [c for c in reader.connections if c.topic == topic and c.msgtype == kind]
    for item in used:
        refuse_other_version(path, item)
    count = 0
    for _, logged, data in reader.messages(connections=used):
        count += 1
        yield min(max(logged, -_LATEST), 2 * _LATEST), bytes(data)
    if (missing := sum(item.msgcount for item in used) - count) > 0:
        # Parsers pass over what they cannot make sense of.
        raise FileError(
            f'{path}: topic {topic} has {count} messages, but the bag says that there are '
            f'{count + missing}: {missing} are missing. It is damaged, or the recorder counted '
            'what it did not write: ros2 bag reindex counts again.'
        )


def _samples(
    name: str, kind: str, messages: Iterator[LoggedMessage], wanted: Wanted
) -> Iterator[Samples]:
    """Samples of joint states or joint motions.

    The joints are those that are asked for, else those of the first message. Times [s]
    count from the first stamp, which is `start`. Messages about other joints are left out.
    """
    names = None if wanted.joint_names is None else tuple(wanted.joint_names)
    number, found = 0, []
    while batch := list(islice(messages, _TOGETHER)):
        try:
            groups = decode(kind, [message for _, message in batch], number)
        except MessageError as error:
            raise FileError(f'{name}: {error}.') from error
        if names is None:
            names = min(groups, key=lambda group: int(group.rows[0])).names[_NAMES[kind]]
        logged = np.array([stamp for stamp, _ in batch], dtype=np.int64)
        found.append(_rows(name, kind, groups, names, logged, number))
        number += len(batch)
    if names is None:
        return
    stamps, motion = map(np.concatenate, zip(*found))
    early = leading_unknown(motion[:, 0])
    stamps, motion = stamps[early:], motion[early:]
    if not len(stamps):
        _refuse_useless(name, number, early, names)
    _check_stamps(name, stamps)
    yield Samples(
        joint_names=names,
        times=1e-9 * (stamps - stamps[0]).astype(np.float64),
        **_fields(kind, motion),
        name=name,
        start=int(stamps[0]),
        remarks=(LACKING.format(early),) if early else (),
    )


def _check_stamps(name: str, stamps: NDArray[np.int64]) -> None:
    """Refuse stamps that are none of a recording."""
    if stamps.min() < 0 or stamps.max() > _LATEST:
        raise FileError(f'{name}: a stamp lies before 1970 or in a far future.')


def _refuse_useless(name: str, number: int, skipped: int, names: Sequence[str]) -> None:
    """Refuse messages, if there are any, none of which has what is needed."""
    if skipped:
        raise FileError(
            f'{name}: none of {skipped} messages has the positions of all joints.'
        )
    if number:
        raise JointNameError(
            f'{name}: none of {number} messages has the joints {listed(names)}.'
        )


def _fields(kind: str, values: Array) -> dict[str, Any]:
    """Fields of samples out of values (M, quantities, joints)."""
    if kind != JOINT_STATE:
        return {'motion': values}
    motion, effort = values[:, :2], values[:, 2]
    if np.isnan(motion[:, 1]).all():
        motion = motion[:, :1]  # No message says how fast the joints are.
    return {'motion': motion, 'effort': effort, 'is_measured': True}


def _rows(
    name: str,
    kind: str,
    groups: Sequence[DecodedMessages],
    names: tuple[str, ...],
    logged: NDArray[np.int64],
    number: int,
) -> tuple[NDArray[np.int64], Array]:
    """Stamps (M,) [ns] and values (M, quantities, joints) of the messages that have the joints.

    They are recorded at `logged`; `number` messages came before them.
    """
    quantities = _QUANTITIES[kind]
    motion = np.full((len(logged), len(quantities), len(names)), np.nan)
    stamps = np.zeros(len(logged), dtype=np.int64)
    taken = np.zeros(len(logged), dtype=np.bool_)
    for group in groups:
        where = f'{name}: message {number + int(group.rows[0])}'
        present = group.names[_NAMES[kind]]
        order = _places(present, names, where)
        if order is None:
            continue
        taken[group.rows], stamps[group.rows] = True, group.stamps
        for k, quantity in enumerate(quantities):
            values = group.values[quantity]
            if values.shape[1] == len(present):
                motion[group.rows, k] = values[:, order]
            elif values.shape[1] or k == 0:
                raise FileError(
                    f'{where} has {values.shape[1]} values of {quantity} for {len(present)} '
                    'joints; expected one for each.'
                )
    # Without a stamp in the header, when it was recorded is all there is.
    return np.where(stamps == 0, logged, stamps)[taken], motion[taken]


def _places(
    present: tuple[str, ...], names: tuple[str, ...], where: str
) -> list[int] | None:
    """Where the joints stand in a message; None if it is about others."""
    places = {name: index for index, name in enumerate(present)}
    missing = [name for name in names if name not in places]
    if len(missing) == len(names):
        return None
    if missing:
        raise JointNameError(
            f'{where} lacks {listed(missing)} beside {listed(present)}; expected all of '
            f'{listed(names)} in one message. Choose fewer with joint_names.'
        )
    if len(places) < len(present):
        raise JointNameError(f'{where} has joints more than once: {listed(present)}.')
    return [places[name] for name in names]


def _trajectories(
    where: str, messages: Iterator[LoggedMessage], index: int | None
) -> Iterator[Samples]:
    """Waypoints of each trajectory of a topic, or of the one with an index.

    A trajectory without a stamp starts when it was recorded.
    """
    count = 0
    for number, (logged, data) in enumerate(messages):
        count += 1
        if index not in (None, number):
            continue
        name = f'{where}, trajectory {number}'
        try:
            message = typestore().deserialize_cdr(data, JOINT_TRAJECTORY)
        except Exception as error:
            raise FileError(f'{name} is damaged: {error!r:.200}.') from error
        if not len(message.points):
            raise FileError(f'{name} has no points.')
        times = [
            p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points
        ]
        points = [[getattr(p, field, ()) for field in POINT_FIELDS] for p in message.points]
        stamp = _SECOND * int(message.header.stamp.sec) + int(message.header.stamp.nanosec)
        start = stamp or int(logged)
        if not 0 <= start <= _LATEST:
            raise FileError(f'{name}: its stamp lies before 1970 or in a far future.')
        yield waypoint_samples(name, message.joint_names, np.array(times), points, start)
    if index is not None and not 0 <= index < count:
        raise FileError(f'{where}: index is {index}, but it holds {count} trajectories.')


_TOPICS = (
    (MOTION_TOPIC, JOINT_MOTION),
    (EFFORT_TOPIC, 'hodyn_msgs/msg/JointEffort'),
    *((EFFORT_MIRROR.format(m), JOINT_STATE) for m in range(3)),
    (MOTOR_TOPIC, 'hodyn_msgs/msg/MotorReference'),
    (MOTOR_MIRROR, JOINT_STATE),
)
"""Topics and types of the messages of an instant, in the order in which they are written."""


class BagWriter:
    """Writes results to a bag, part by part.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of the bag, which must not exist.
    storage : {'mcap', 'sqlite3'}
        Kind of its storage file.

    Raises
    ------
    FileError
        If the storage is unknown, or rosbags is not installed.
    """

    def __init__(self, folder: Path, storage: str) -> None:
        if storage not in STORAGES:
            raise FileError(
                f'{folder}: storage is {storage!r}, expected {listed(STORAGES)}.'
            )
        rosbags('rosbag2', folder)
        from hodyn_ros.files import mcap  # made of what is not always installed

        self._folder, self._library = folder, cast(Any, mcap)
        self._channels = np.zeros(len(_TOPICS), dtype=np.int64)  # of those that are there
        plugin = getattr(self._library.rosbag2.StoragePlugin, storage.upper())
        self._writer = self._library.RecordsWriter(
            folder, version=_VERSION, storage_plugin=plugin
        )
        self._writer.open()

    def write(self, results: Samples) -> None:
        """Append results, all messages of an instant one after the other.

        Parameters
        ----------
        results : Samples
            Next part of the motion. Orders that are NaN at an instant are left out of its
            messages; the provenance goes into metadata.yaml.

        Raises
        ------
        FileError
            If a time cannot be the stamp of a message: before 1970, or after 2**31 s.
        """
        stamps = results.start + np.rint(1e9 * results.times).astype(np.int64)
        if len(stamps) and (stamps.min() < 0 or stamps.max() > _LATEST_STAMP):
            raise FileError(
                f'{self._folder}: times from {results.times.min():g} s to '
                f'{results.times.max():g} s cannot be stamps of messages, which are seconds since '
                '1970; shift them.'
            )
        for key, value in results.provenance.lines().items():
            self._writer.set_custom_data(key, value)  # of metadata.yaml
        lengths = np.zeros((len(stamps), len(_TOPICS)), dtype=np.int64)
        parts = []
        for place, rows, fields in _contents(results):
            if not self._channels[place]:
                connection = self._writer.add_connection(
                    *_TOPICS[place], typestore=typestore()
                )
                self._channels[place] = connection.id
            frame, before = results.base_link, self._library.BEFORE
            records = encode(_TOPICS[place][1], stamps[rows], frame, fields, before)
            self._library.put_record_heads(
                records, int(self._channels[place]), stamps[rows]
            )
            lengths[rows, place] = records.shape[1]
            parts.append((place, rows, records))
        ends = lengths.cumsum().reshape(lengths.shape)
        whole = np.empty(lengths.sum(), dtype=np.uint8)
        for place, rows, records in parts:
            length = records.shape[1]
            windows = np.lib.stride_tricks.sliding_window_view(
                whole, length, writeable=True
            )
            windows[ends[rows, place] - length] = records
        rows, places = np.nonzero(lengths)
        self._writer.write_records(
            self._channels[places], stamps[rows], ends[rows, places], whole
        )

    def close(self) -> None:
        """Finish the bag."""
        self._writer.close()


def _contents(results: Samples) -> Iterator[tuple[int, NDArray[np.intp], dict[str, Any]]]:
    """Messages that results become: place in `_TOPICS`, rows and fields of the same orders."""
    for orders, rows in _groups(results.motion, most=5, least=3):
        motion = {name: results.motion[rows, k] for k, name in enumerate(MOTION[:orders])}
        yield 0, rows, {'joint_names': results.joint_names, **motion}
    source = SOURCES[results.source]
    for orders, rows in _groups(results.effort, most=3, least=1):
        efforts = {name: results.effort[rows, m] for m, name in enumerate(EFFORT[:orders])}
        std = results.effort_std
        deviations = (
            {}
            if std is None
            else {name: std[rows, m] for m, name in enumerate(EFFORT_STD[:orders])}
        )
        yield (
            1,
            rows,
            {
                'joint_names': results.joint_names,
                **deviations,
                'valid_order': orders - 1,
                'continuous_order': min(results.continuous_order, orders - 1),
                'delay': results.delay,
                'source': source,
                **efforts,
            },
        )
        for m, values in enumerate(efforts.values()):
            mirror = {'name': results.joint_names, 'effort': values}
            if m == 0:
                mirror |= {
                    name: results.motion[rows, k] for k, name in enumerate(MOTION[:2])
                }
            yield 2 + m, rows, mirror
    if results.motors is not None:
        yield from _motor_contents(results, results.motors)


def _motor_contents(
    results: Samples, motors: MotorMotion
) -> Iterator[tuple[int, NDArray[np.intp], dict[str, Any]]]:
    """Messages of motors, as in `_contents`: references, and joint states as their mirror."""
    position, torque, _ = motors
    joints = [results.joint_names.index(name) for name in results.motor_joints]
    for orders, rows in _groups(position, most=3, least=1):
        for torques, among in _groups(torque[rows], most=2, least=0):
            places = rows[among]
            series = {name: position[places, k] for k, name in enumerate(MOTION[:orders])}
            series |= {
                name.removeprefix('motor_'): torque[places, k]
                for k, name in enumerate(MOTOR_TORQUE[:torques])
            }
            yield (
                5,
                places,
                {
                    'motor_names': results.motor_names,
                    'joint_names': results.motor_joints,
                    'source': SOURCES[results.source],
                    'deflection': position[places, 0]
                    - results.motion[places, 0][:, joints],
                    **series,
                },
            )
            shown = {'position': 'position', 'velocity': 'velocity', 'effort': 'torque'}
            mirror = {name: series[what] for name, what in shown.items() if what in series}
            yield 6, places, {'name': results.motor_names, **mirror}


def _groups(values: Array, most: int, least: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Rows with the same number of known orders, as far as they are written."""
    known = np.minimum(known_orders(values), most)
    for orders in np.unique(known[known >= least]).tolist():
        yield orders, np.flatnonzero(known == orders)
