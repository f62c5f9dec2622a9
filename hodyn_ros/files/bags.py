"""Bags of ROS 2, in SQLite or MCAP, through rosbags; see doc/files.rst.

The topics that are written are those of the node, so that tools show both in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.errors import FileError, JointNameError
from hodyn_ros.files.formats import Format, Wanted
from hodyn_ros.files.messages import (
    ELASTIC_STATE,
    JOINT_STATE,
    JOINT_TRAJECTORY,
    MOTOR_TOPIC,
    READABLE,
    TOPICS,
    ResultTopic,
    refuse_other_version,
    rosbags,
    typestore,
)
from hodyn_ros.files.samples import (
    POINT_FIELDS,
    SOURCES,
    Samples,
    first_known,
    known_orders,
    waypoint_samples,
)
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

STORAGES = {'mcap': '.mcap', 'sqlite3': '.db3'}

_SECOND = 1_000_000_000
_LATEST = 2**61  # nanoseconds
_LATEST_STAMP = 2**31 * _SECOND - 1  # what a message can hold [ns]
_VERSION = 9  # of the metadata

LoggedMessage = tuple[int, Any]
"""When it was recorded [ns], and the message."""


class BagFormat(Format):
    """Storage files of bags of one kind of storage, or folders of bags.

    Parameters
    ----------
    storage : {'mcap', 'sqlite3', ''}
        Kind of storage of a single file; empty for folders of bags, whose storage is chosen
        when they are written.
    """

    is_bag = True
    library: str = 'rosbags.rosbag2'
    extra: str = 'bags'

    def __init__(self, storage: str = '') -> None:
        self._storage, self._suffix = storage, STORAGES.get(storage, '')
        self.suffixes: tuple[str, ...] = (self._suffix,)

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
            Measurements of a topic of joint states, or of states of elastic joints, with times
            counted from the first stamp; motions of hodyn_msgs/JointMotion likewise; or the
            waypoints of one trajectory each.

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
                yield _samples(where, kind, messages, wanted.joint_names)

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
        """Write a bag, all messages of an instant one after the other.

        Parameters
        ----------
        path : pathlib.Path
            Folder of the bag, as `places` says; it must not exist.
        results : Samples
            Orders that are NaN at an instant are left out of its messages; the provenance goes
            into metadata.yaml.
        storage : {'mcap', 'sqlite3'}
            Of a folder; a format of one kind of storage has its own.

        Raises
        ------
        FileError
            If the storage is unknown, rosbags is not installed, no sample makes a message, or a
            time cannot be the stamp of one: before 1970, or after 2**31 s.
        """
        storage = self._storage or storage
        if storage not in STORAGES:
            raise FileError(f'{path}: storage is {storage!r}, expected {listed(STORAGES)}.')
        stamps = results.start + np.rint(1e9 * results.times).astype(np.int64)
        if stamps.min() < 0 or stamps.max() > _LATEST_STAMP:
            raise FileError(
                f'{path}: times from {results.times.min():g} s to {results.times.max():g} s '
                'cannot be stamps of messages, which are seconds since 1970; shift them.'
            )
        library, store = rosbags('rosbag2', path), typestore()
        plugin = library.StoragePlugin[storage.upper()]
        with library.Writer(path, version=_VERSION, storage_plugin=plugin) as writer:
            for key, value in results.provenance.lines().items():
                writer.set_custom_data(key, value)
            written = [(topic, _Contents(topic, results)) for topic in TOPICS]
            connections: dict[str, Any] = {}
            for row, stamp in enumerate(stamps.tolist()):
                for topic, contents in written:
                    message = contents.message(row, stamp)
                    if message is None:
                        continue
                    if topic.topic not in connections:
                        connections[topic.topic] = writer.add_connection(
                            topic.topic, topic.kind, typestore=store
                        )
                    data = store.serialize_cdr(message, topic.kind)
                    writer.write(connections[topic.topic], stamp, data)
        if not connections:
            raise FileError(
                f'{path}: no sample has what a message needs, the acceleration or efforts; '
                'compute them first, or write a table.'
            )


class _Contents:
    """Messages of a topic, made of results.

    Parameters
    ----------
    topic : ResultTopic
    results : Samples
    """

    def __init__(self, topic: ResultTopic, results: Samples) -> None:
        store, arrays = typestore(), results.arrays()
        self._make, self._head = store.types[topic.kind], store.types['std_msgs/msg/Header']
        self._time = store.types['builtin_interfaces/msg/Time']
        self._frame, self._continuous = results.base_link, results.continuous_order
        known = {what: known_orders(values) for what, values in arrays.items()}
        known |= {'effort_std': known['effort']}
        none = np.zeros(len(results), dtype=np.intp)
        self._known, self._needed = known.get(topic.needed[0], none), topic.needed[1]
        fields = [name for name, _ in store.fielddefs[topic.kind][1] if name != 'header']
        others = {'source': SOURCES[results.source], 'delay': 0.0}
        self._constant: dict[str, Any] = {
            field: others.get(field, np.empty(0)) for field in fields
        }
        self._constant |= {
            field: list(getattr(results, what)) for field, what in topic.names.items()
        }
        self._is_effort = 'valid_order' in fields
        self._values = [
            (field, arrays[what][:, k], k, known[what])
            for field, (what, k) in topic.orders.items()
            if what in arrays and k < arrays[what].shape[1]
        ]
        if topic.topic == MOTOR_TOPIC and 'motor_position' in arrays:
            joints = [results.joint_names.index(name) for name in results.motor_joints]
            deflection = arrays['motor_position'][:, 0] - results.motion[:, 0][:, joints]
            self._values.append(('deflection', deflection, 0, known['motor_position']))

    def message(self, row: int, stamp: int) -> Any:
        """Message of a sample with its stamp [ns]; None if what it needs is not known there."""
        if self._known[row] <= self._needed:
            return None
        fields = {
            field: values[row] for field, values, k, known in self._values if k < known[row]
        }
        if self._is_effort:
            order = min(int(self._known[row]), 3) - 1
            fields |= {
                'valid_order': order,
                'continuous_order': min(self._continuous, order),
            }
        head = self._head(self._time(*divmod(stamp, _SECOND)), self._frame)
        return self._make(header=head, **{**self._constant, **fields})


def _chosen(path: Path, connections: Sequence[Any], topic: str | None) -> tuple[str, str]:
    """Topic that is read, and its type."""
    # Mirrors of efforts for plotting tools are no measurements.
    mirrors = tuple(
        f'{c.topic}/' for c in connections if c.msgtype.startswith('hodyn_msgs/')
    )
    readable = {
        (c.topic, c.msgtype): c.msgcount for c in connections if c.msgtype in READABLE
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
        f'that holds a motion ({", ".join(READABLE)}); its topics are {names}.'
    )


def _messages(path: Path, reader: Any, topic: str, kind: str) -> Iterator[LoggedMessage]:
    """Messages of a topic in the order of the log, each with its stamp [ns].

    A message without a stamp in its header has that of its recording. Raises `FileError` for
    messages that are damaged or of another version, and at the end if the bag counts more messages
    than there are.
    """
    used = [c for c in reader.connections if c.topic == topic and c.msgtype == kind]
    for item in used:
        refuse_other_version(path, item)
    store, count = typestore(), 0
    for _, logged, data in reader.messages(connections=used):
        where = f'{path}, topic {topic}: message {count}'
        try:
            message = store.deserialize_cdr(data, kind)
        except Exception as error:
            raise FileError(f'{where} is damaged or cut off: {error!s:.200}.') from error
        time = message.header.stamp
        stamp = _SECOND * int(time.sec) + int(time.nanosec) or int(logged)
        if not 0 <= stamp <= _LATEST:
            raise FileError(f'{where}: its stamp lies before 1970 or in a far future.')
        count += 1
        yield stamp, message
    if (missing := sum(item.msgcount for item in used) - count) > 0:
        # Parsers pass over what they cannot make sense of.
        raise FileError(
            f'{path}: topic {topic} has {count} messages, but the bag says that there are '
            f'{count + missing}: {missing} are missing. It is damaged, or the recorder counted '
            'what it did not write: ros2 bag reindex counts again.'
        )


def _samples(
    name: str, kind: str, messages: Iterator[LoggedMessage], wanted: Sequence[str] | None
) -> Samples:
    """Samples of joint states, joint motions or states of elastic joints.

    The joints are those that are asked for, else those of the first message. Times [s] count from
    the first stamp. Messages about other joints are left out.
    """
    names, stamps, rows = _rows(name, kind, messages, wanted)
    values, times = [np.stack(part) for part in zip(*rows)], np.array(stamps)
    first, remarks = first_known(values[0][:, 0], name)
    values, times = [part[first:] for part in values], times[first:]
    fields: dict[str, Any] = {'motion': values[0]}
    if kind in (JOINT_STATE, ELASTIC_STATE):
        fields = {
            'motion': _state(values[0]),
            'effort': values[0][:, 2],
            'is_measured': True,
        }
    if kind == ELASTIC_STATE:
        fields |= _of_motors(names[1], names[0], values[1])
    return Samples(
        joint_names=names[0],
        times=1e-9 * (times - times[0]).astype(np.float64),
        **fields,
        name=name,
        start=int(times[0]),
        remarks=remarks,
    )


def _rows(
    name: str, kind: str, messages: Iterator[LoggedMessage], wanted: Sequence[str] | None
) -> tuple[list[tuple[str, ...]], list[int], list[list[Array]]]:
    """Names, stamps [ns] and values, of joints and perhaps motors, of messages about them."""
    parts = READABLE[kind]
    names: list[tuple[str, ...]] = [() if wanted is None else tuple(wanted)]
    names += [()] * (len(parts) - 1)
    places: dict[tuple[int, tuple[str, ...]], list[int] | None] = {}
    stamps: list[int] = []
    rows: list[list[Array]] = []
    number = -1
    for number, (stamp, message) in enumerate(messages):
        where, row = f'{name}: message {number}', []
        for k, (field_of_names, orders) in enumerate(parts):
            present = tuple(getattr(message, field_of_names))
            names[k] = names[k] or present
            if (k, present) not in places:
                places[k, present] = _places(present, names[k], where)
            if (order := places[k, present]) is not None:
                row.append(_row(message, tuple(orders), order, where, len(present)))
        if len(row) == len(parts):
            stamps.append(stamp)
            rows.append(row)
    if rows:
        return names, stamps, rows
    if number >= 0:
        raise JointNameError(
            f'{name}: none of {number + 1} messages has the joints {listed(names[0])}.'
        )
    raise FileError(f'{name} holds no samples.')


def _state(values: Array) -> Array:
    """Positions and, if they are known, velocities."""
    return values[:, : 1 + (not np.isnan(values[:, 1]).all())]


def _of_motors(
    motors: tuple[str, ...], joints: tuple[str, ...], values: Array
) -> dict[str, Any]:
    """Fields of `Samples` from positions, velocities and torques of motors of joints."""
    owner = {m: m if m in joints else m.rpartition('_motor')[0] for m in motors}
    used = [k for k, motor in enumerate(motors) if owner[motor] in joints]
    own, torque = values[..., used], values[:, 2, used]
    return {
        'motor_names': tuple(motors[k] for k in used),
        'motor_joints': tuple(owner[motors[k]] for k in used),
        'motor_position': _state(own),
        'motor_torque': None if np.isnan(torque).all() else torque,
    }


def _row(
    message: Any, quantities: Sequence[str], order: list[int], where: str, count: int
) -> Array:
    """Values (quantities, joints) of a message of so many joints, NaN where it has none."""
    row = np.full((len(quantities), len(order)), np.nan)
    for k, quantity in enumerate(quantities):
        values = getattr(message, quantity)
        if len(values) == count:
            row[k] = values[order]
        elif len(values) or k == 0:
            raise FileError(
                f'{where} has {len(values)} values of {quantity} for {count} joints; expected '
                'one for each.'
            )
    return row


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
    """Waypoints of each trajectory of a topic, or of the one with an index."""
    count = 0
    for number, (stamp, message) in enumerate(messages):
        count += 1
        if index not in (None, number):
            continue
        name = f'{where}, trajectory {number}'
        if not len(message.points):
            raise FileError(f'{name} has no points.')
        since = (point.time_from_start for point in message.points)
        times = np.array([time.sec + 1e-9 * time.nanosec for time in since])
        points = [[getattr(p, field) for field in POINT_FIELDS] for p in message.points]
        yield waypoint_samples(name, message.joint_names, times, points, stamp)
    if index is not None and not 0 <= index < count:
        raise FileError(f'{where}: index is {index}, but it holds {count} trajectories.')
