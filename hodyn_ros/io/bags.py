"""Motions in bags of ROS 2, in SQLite or MCAP, through rosbags.

Joint states are measurements, joint motions are exact, each joint trajectory is a motion of its
own. A bag is read message by message in the order of its log, so it may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import FileError, HodynError, JointNameError, MessageError
from hodyn_ros.io.access import Options, guarded, optional, reading
from hodyn_ros.io.bag_types import translations
from hodyn_ros.io.cdr import Decoded, Decoder
from hodyn_ros.io.definitions import EXTRA, typestore
from hodyn_ros.io.samples import Array, Samples
from hodyn_ros.names import listed

JOINT_STATE = 'sensor_msgs/msg/JointState'
JOINT_MOTION = 'hodyn_msgs/msg/JointMotion'
JOINT_TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'

READABLE = (JOINT_STATE, JOINT_MOTION, JOINT_TRAJECTORY)

_QUANTITIES = {
    JOINT_STATE: ('position', 'velocity'),
    JOINT_MOTION: ('position', 'velocity', 'acceleration', 'jerk', 'snap'),
}
_POINT_FIELDS = ('positions', 'velocities', 'accelerations')
_WHAT = 'a bag'
_SECOND = 1_000_000_000
_LATEST = 2**61  # nanoseconds

Message = tuple[int, bytes]


class _Connection(NamedTuple):
    topic: str
    kind: str
    size: int


def read_bag(path: Path, options: Options, chunk: int) -> Iterator[Samples]:
    """Yield the samples of a topic, or its trajectories one by one.

    Parameters
    ----------
    path : pathlib.Path
        Folder or storage file.
    options : Options
    chunk : int
        Largest number of samples, except those of a trajectory.

    Yields
    ------
    Samples

    Raises
    ------
    FileError
        If the bag is damaged, the topic is not there or a message cannot be used.
    JointNameError
        If joints are missing.
    """
    with _opened(path) as reader:
        connections = _connections(path, reader)
        topic, kind = _chosen(path, connections, options.topic)
        messages = _messages(path, reader, topic, kind)
        if kind == JOINT_TRAJECTORY:
            yield from _trajectories(path, topic, messages, options)
        else:
            yield from _samples(path, topic, kind, messages, options, chunk)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if path.is_dir() and not (path / 'metadata.yaml').is_file():
        found = listed(sorted(item.name for item in path.iterdir()))
        raise FileError(
            f'{path} is a folder without metadata.yaml, so it is no bag; it holds {found}. '
            'Give a bag, or a file: the storage file of a bag (.mcap, .db3) or a table.'
        )
    library: Any = optional('rosbags.rosbag2', EXTRA, path)
    with reading(path, _WHAT):
        reader = library.Reader(path)
        reader.open()
    try:
        yield reader
    finally:
        with reading(path, _WHAT):
            reader.close()


def _connections(path: Path, reader: Any) -> list[_Connection]:
    with reading(path, _WHAT):
        found = [
            _Connection(item.topic, item.msgtype, item.msgcount) for item in reader.connections
        ]
        for item in found:
            if [type(value) for value in item] != [str, str, int]:
                raise TypeError(f'there is a topic {item.topic!r} of type {item.kind!r}')
        return found


def _messages(path: Path, reader: Any, topic: str, kind: str) -> Iterator[Message]:
    """Yield when each message was recorded, and its content."""
    with reading(path, _WHAT):
        used = [c for c in reader.connections if c.topic == topic and c.msgtype == kind]
        messages = reader.messages(connections=used)
    translate_from = translations(path, reader, used)
    count = 0
    for connection, logged, data in guarded(messages, path, _WHAT):
        if not isinstance(logged, int) or not isinstance(data, (bytes, memoryview, bytearray)):
            raise FileError(f'{path} is damaged: topic {topic} holds what is no message.')
        count += 1
        translate = translate_from[connection.id]
        raw = bytes(data) if translate is None else translate(bytes(data))
        yield min(max(logged, -_LATEST), 2 * _LATEST), raw
    expected = sum(item.msgcount for item in used)
    if count < expected:
        # Parsers pass over what they cannot make sense of.
        raise FileError(
            f'{path}: topic {topic} has {count} messages, but the bag says that there are '
            f'{expected}: {expected - count} are missing. It is damaged, or the recorder counted '
            'what it did not write: ros2 bag reindex counts again.'
        )


def _candidates(connections: list[_Connection]) -> dict[str, str]:
    sources = [item.topic + '/' for item in connections if item.kind.startswith('hodyn_msgs/')]
    return {
        item.topic: item.kind
        for item in connections
        if item.kind in READABLE
        and item.size > 0
        # Mirrors of efforts for plotting tools are no measurements.
        and not item.topic.startswith(tuple(sources))
    }


def _chosen(path: Path, connections: list[_Connection], topic: str | None) -> tuple[str, str]:
    readable = ', '.join(READABLE)
    if topic is None:
        found = _candidates(connections)
        if len(found) == 1:
            return next(iter(found.items()))
        have = [f'{item.topic} ({item.kind})' for item in connections]
        if not found:
            raise FileError(
                f'{path} has no topic with messages of a type that holds a motion ({readable}); '
                f'its topics are {listed(have)}.'
            )
        names = [f'{name} ({kind})' for name, kind in found.items()]
        raise FileError(f'{path} has several topics with a motion; choose one: {listed(names)}.')
    kinds = {item.kind for item in connections if item.topic == topic}
    if not kinds:
        raise FileError(
            f'{path} has no topic {topic!r}; it has '
            f'{listed(sorted({item.topic for item in connections}))}.'
        )
    known = sorted(kinds & set(READABLE))
    if len(known) != 1:
        raise FileError(
            f'{path}: the messages of {topic!r} are of type {listed(sorted(kinds))}, expected one '
            f'of {readable}.'
        )
    return topic, known[0]


def _samples(
    path: Path,
    topic: str,
    kind: str,
    messages: Iterator[Message],
    options: Options,
    chunk: int,
) -> Iterator[Samples]:
    if options.index is not None:
        raise FileError(f'{path}: {topic!r} holds samples, not trajectories; leave index out.')
    name = f'{path}, topic {topic}'
    decoder = Decoder(kind)
    quantities = _QUANTITIES[kind]
    names = options.joint_names
    start: int | None = None
    number = used = 0
    while batch := list(islice(messages, chunk)):
        try:
            groups = decoder.decode([data for _, data in batch], number)
        except MessageError as error:
            raise FileError(f'{name}: {error}.') from error
        if names is None:
            first = min(groups, key=lambda group: int(group.rows[0]))
            names = first.names[_names_field(kind)]
        motion = np.full((len(batch), len(quantities), len(names)), np.nan)
        logged = np.array([stamp for stamp, _ in batch], dtype=np.int64)
        stamps = np.zeros(len(batch), dtype=np.int64)
        taken = np.zeros(len(batch), dtype=np.bool_)
        for group in groups:
            taken[group.rows] = _take(
                group, kind, names, quantities, motion, f'{name}: message', number
            )
            stamps[group.rows] = group.stamps
        # Without a stamp in the header, when it was recorded is all there is.
        stamps = np.where(stamps == 0, logged, stamps)[taken]
        number += len(batch)
        if not len(stamps):
            continue
        if stamps.min() < 0 or stamps.max() > _LATEST:
            raise FileError(f'{name}: a stamp lies before 1970 or in a far future.')
        start = int(stamps[0]) if start is None else start
        motion = motion[taken]
        if kind == JOINT_STATE and np.isnan(motion[:, 1]).all():
            motion = motion[:, :1]  # No message says how fast the joints are.
        try:
            samples = Samples(
                joint_names=names,
                times=1e-9 * (stamps - start).astype(np.float64),
                motion=motion,
                name=name,
                is_measured=kind == JOINT_STATE,
                start=start,
                first=used,
            )
        except HodynError as error:
            raise FileError(str(error)) from error
        used += len(stamps)
        yield samples
    if number and not used:
        raise JointNameError(
            f'{name}: none of {number} messages has the joints {listed(names or ())}.'
        )


def _names_field(kind: str) -> str:
    return 'name' if kind == JOINT_STATE else 'joint_names'


def _take(
    group: Decoded,
    kind: str,
    names: tuple[str, ...],
    quantities: tuple[str, ...],
    motion: Array,
    where: str,
    first: int,
) -> bool:
    """Put messages of one layout into the motion, unless they are about other joints."""
    present = group.names[_names_field(kind)]
    where = f'{where} {first + int(group.rows[0])}'
    places = {name: index for index, name in enumerate(present)}
    missing = [name for name in names if name not in places]
    if len(missing) == len(names):
        return False
    if missing:
        raise JointNameError(
            f'{where} lacks {listed(missing)} beside {listed(present)}; expected all of '
            f'{listed(names)} in one message. Choose fewer with joint_names.'
        )
    if len(places) < len(present):
        raise JointNameError(f'{where} has joints more than once: {listed(present)}.')
    order = [places[name] for name in names]
    for k, quantity in enumerate(quantities):
        values = group.values[quantity]
        if values.shape[1] == len(present):
            motion[group.rows, k] = values[:, order]
        elif values.shape[1] or k == 0:
            raise FileError(
                f'{where} has {values.shape[1]} values of {quantity} for {len(present)} joints; '
                'expected one for each.'
            )
    return True


def _trajectories(
    path: Path, topic: str, messages: Iterator[Message], options: Options
) -> Iterator[Samples]:
    store = typestore(path)
    count = 0
    for number, (logged, data) in enumerate(messages):
        count += 1
        if options.index not in (None, number):
            continue
        name = f'{path}, topic {topic}, trajectory {number}'
        with reading(path, f'a bag with trajectories in topic {topic}'):
            message = store.deserialize_cdr(data, JOINT_TRAJECTORY)
        try:
            samples = _trajectory(message, logged, name)
        except HodynError as error:
            raise FileError(str(error)) from error
        yield options.selected(samples)
    if options.index is not None and not 0 <= options.index < count:
        raise FileError(
            f'{path}: index is {options.index}, but topic {topic} holds {count} trajectories.'
        )


def _trajectory(message: Any, logged: int, name: str) -> Samples:
    names = tuple(message.joint_names)
    if not message.points:
        raise FileError(f'{name} has no points.')
    times = np.empty(len(message.points))
    motion = np.full((len(times), len(_POINT_FIELDS), len(names)), np.nan)
    for i, point in enumerate(message.points):
        times[i] = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
        for k, field in enumerate(_POINT_FIELDS):
            values: NDArray[np.float64] = getattr(point, field)
            if len(values) == len(names):
                motion[i, k] = values
            elif len(values) or k == 0:
                raise FileError(
                    f'{name}: point {i} has {len(values)} {field} for {len(names)} joints.'
                )
    known = [k for k in range(len(_POINT_FIELDS)) if not np.isnan(motion[:, k]).all()]
    stamp = _SECOND * int(message.header.stamp.sec) + int(message.header.stamp.nanosec)
    start = stamp or int(logged)
    if not 0 <= start <= _LATEST:
        raise FileError(f'{name}: its stamp lies before 1970 or in a far future.')
    return Samples(
        joint_names=names,
        times=times,
        motion=motion[:, : max(known, default=0) + 1],
        name=name,
        is_waypoints=True,
        start=start,
    )
