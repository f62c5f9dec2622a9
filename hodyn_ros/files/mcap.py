"""Storage of bags in MCAP, read and written many messages at a time; the rest is that of rosbags.

Source: MCAP, Format Specification, version 0 (https://mcap.dev/spec). Needs rosbags.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from struct import Struct, pack
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from rosbags import rosbag2
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2.reader import DirectoryReader
from rosbags.rosbag2.storage_mcap import DECOMPRESSORS, McapReader

BEFORE = 31
"""Bytes of a record before the message itself."""

_MAGIC = b'\x89MCAP0\r\n'
_FILE_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX, _CHUNK_INDEX = range(1, 9)
_STATISTICS, _METADATA, _METADATA_INDEX, _SUMMARY_OFFSET, _DATA_END = range(11, 16)
_RECORD = Struct('<BQ')  # opcode and length
_MESSAGE_HEAD = Struct('<H4xQ')  # channel and log time
_CHUNK_SIZE = 1 << 20

Message = tuple[Any, int, bytes]
"""Connection of rosbags, log time [ns] and content."""


class _Chunks(McapReader):
    """Reader of a file, whose chunks are gone through without an object for each message."""

    def messages(
        self, connections: Iterable[Any], start: int | None = None, stop: int | None = None
    ) -> Iterator[Message]:  # type: ignore[override]
        """Messages in the order of their log times."""
        if start is not None or stop is not None or not self.chunks:
            return super().messages(connections, start, stop)  # type: ignore[arg-type]
        return self._in_order(list(connections))

    def _in_order(self, connections: list[Any]) -> Iterator[Message]:
        known = {
            own.id: wanted
            for own in self.connections
            for wanted in connections
            if (own.topic, own.msgtype) == (wanted.topic, wanted.msgtype)
        }
        chunks = [c for c in self.chunks if any(map(c.channel_count.get, known))]
        chunks.sort(key=lambda chunk: chunk.message_start_time)
        waiting: list[Message] = []  # Chunks may overlap.
        for chunk, following in zip(chunks, [*chunks[1:], None]):
            waiting += self._contents(chunk, known)
            waiting.sort(key=itemgetter(1))
            count = len(waiting)
            if following is not None:
                count = bisect_left(waiting, following.message_start_time, key=itemgetter(1))
            yield from waiting[:count]
            del waiting[:count]

    def _contents(self, chunk: Any, known: dict[int, Any]) -> list[Message]:
        """Messages of a chunk."""
        assert self.bio is not None
        self.bio.seek(chunk.chunk_start_offset + _RECORD.size + 24)  # behind times and size
        crc = int.from_bytes(self.bio.read(4), 'little')
        self.bio.seek(12 + len(chunk.compression), 1)
        data = DECOMPRESSORS[chunk.compression](
            self.bio.read(chunk.compressed_size), chunk.uncompressed_size
        )
        if len(data) != chunk.uncompressed_size or crc not in (0, crc32(data)):
            raise rosbag2.ReaderError('A chunk is cut off or differs from its checksum')
        found = []
        place, end = 0, len(data)
        while place < end:
            code, length = _RECORD.unpack_from(data, place)
            first, place = place, place + _RECORD.size + length
            if code == _MESSAGE:
                channel, logged = _MESSAGE_HEAD.unpack_from(data, first + _RECORD.size)
                if channel in known:
                    found.append((known[channel], logged, data[first + BEFORE : place]))
        if place != end:
            raise rosbag2.ReaderError('The last record of a chunk is cut off')
        return found


class _Folder(DirectoryReader):
    STORAGE_PLUGINS = {**DirectoryReader.STORAGE_PLUGINS, 'mcap': _Chunks}


class Reader(rosbag2.Reader):
    """Reader of rosbags, faster for MCAP."""

    STORAGE_PLUGINS = {**rosbag2.Reader.STORAGE_PLUGINS, 'dir': _Folder, '.mcap': _Chunks}


def put_record_heads(records: NDArray[np.uint8], channel: int, stamps: NDArray[np.int64]) -> None:
    """Fill the first `BEFORE` bytes of records (N, bytes), each with a message behind them."""
    head = pack('<BQHIQQ', _MESSAGE, records.shape[1] - _RECORD.size, channel, 0, 0, 0)
    records[:, :BEFORE] = np.frombuffer(head, dtype=np.uint8)
    times = np.stack([stamps, stamps], axis=1).astype('<u8')  # of the log, and of the sender
    records[:, BEFORE - 16 : BEFORE] = times.view(np.uint8)


class _Storage:
    """Writer of a file, as rosbags calls it, for records that are there already."""

    def __init__(self, path: Path, compression: Any) -> None:
        self.path = path / f'{path.name}.mcap'
        self._file = self.path.open('xb')
        self._file.write(_MAGIC)
        self._put(_FILE_HEADER, _text('ros2') + _text('hodyn_ros'))
        self._summary: dict[int, list[bytes]] = {_SCHEMA: [], _CHANNEL: [], _CHUNK_INDEX: []}
        self._schemas: dict[str, int] = {}
        self._counts: dict[int, int] = {}
        self._range = 2**63 - 1, 0
        # Of the next chunk: its records, and for each message channel, log time and place.
        self._size, self._records = 0, list[Any]()
        self._index = list[NDArray[np.int64]]()

    def _put(self, code: int, *content: Any) -> int:
        """Write a record and tell its place."""
        place = self._file.tell()
        self._file.writelines([_RECORD.pack(code, sum(map(len, content))), *content])
        return place

    def _declare(self, code: int, content: bytes) -> None:
        self._summary[code].append(content)
        self._records += [_RECORD.pack(code, len(content)), content]
        self._size += _RECORD.size + len(content)

    def add_msgtype(self, connection: Any) -> None:
        """Add the definition of a type."""
        number = self._schemas[connection.msgtype] = len(self._schemas) + 1
        texts = connection.msgtype, 'ros2msg', connection.msgdef.data
        self._declare(_SCHEMA, pack('<H', number) + b''.join(map(_text, texts)))

    def add_connection(self, connection: Any, offered_qos_profiles: str) -> None:
        """Add a topic."""
        self._counts[connection.id] = 0
        more = _text('offered_qos_profiles') + _text(offered_qos_profiles)
        numbers = pack('<HH', connection.id, self._schemas[connection.msgtype])
        self._declare(_CHANNEL, numbers + _text(connection.topic) + _text('cdr') + _sized(more))

    def write_records(
        self, channels: NDArray[np.int64], stamps: NDArray[np.int64], ends: NDArray[np.int64],
        records: NDArray[np.uint8],
    ) -> None:  # fmt: skip
        """Append records; `channels`, `stamps` and `ends` say what stands where in the bytes."""
        cuts = np.searchsorted(ends, np.arange(_CHUNK_SIZE, len(records), _CHUNK_SIZE))
        starts = np.concatenate([[0], ends[:-1]])
        for rows in np.split(np.arange(len(ends)), cuts):
            if not len(rows):
                continue
            first, last = int(starts[rows[0]]), int(ends[rows[-1]])
            places = starts[rows] + (self._size - first)
            self._index.append(np.stack([channels[rows], stamps[rows], places]))
            self._records.append(records[first:last])
            self._size += last - first
            if self._size >= _CHUNK_SIZE // 2:
                self._put_chunk()
            else:
                self._records[-1] = self._records[-1].copy()

    def _put_chunk(self) -> None:
        data = b''.join(self._records)
        channels, stamps, places = np.concatenate(self._index, axis=1)
        times = int(stamps.min()), int(stamps.max())
        self._range = min(self._range[0], times[0]), max(self._range[1], times[1])
        head = pack('<QQQI', *times, len(data), crc32(data)) + _text('')
        start = self._put(_CHUNK, head, pack('<Q', len(data)), data)
        end = self._file.tell()
        offsets = []
        for channel in np.unique(channels).tolist():
            mine = channels == channel
            self._counts[channel] += np.count_nonzero(mine)
            entries = np.stack([stamps[mine], places[mine]], axis=1).astype('<u8').tobytes()
            content = pack('<H', channel) + _sized(entries)
            offsets.append(pack('<HQ', channel, self._put(_MESSAGE_INDEX, content)))
        self._summary[_CHUNK_INDEX].append(
            pack('<QQQQ', *times, start, end - start) + _sized(b''.join(offsets))
            + pack('<Q', self._file.tell() - end) + _text('')
            + pack('<QQ', len(data), len(data))
        )  # fmt: skip
        self._size, self._records, self._index = 0, [], []

    def close(self, version: int, metadata: str) -> None:
        """Write what is left, and the summary."""
        if self._index:
            self._put_chunk()
        more = _text('serialized_metadata') + _text(metadata)
        place = self._put(_METADATA, _text('rosbag2') + _sized(more))
        index = pack('<QQ', place, self._file.tell() - place) + _text('rosbag2')
        self._put(_DATA_END, pack('<I', 0))
        schemas, channels, chunks = map(len, self._summary.values())
        counts = b''.join(pack('<HQ', *item) for item in self._counts.items())
        total = sum(self._counts.values())
        statistics = pack('<QHIIIIQQ', total, schemas, channels, 0, 1, chunks, *self._range)
        self._summary[_METADATA_INDEX] = [index]
        self._summary[_STATISTICS] = [statistics + _sized(counts)]
        summary = self._file.tell()
        groups = []
        for code, contents in self._summary.items():
            first = self._file.tell()
            for content in contents:
                self._put(code, content)
            if contents:
                groups.append(pack('<BQQ', code, first, self._file.tell() - first))
        offsets = self._file.tell()
        for group in groups:
            self._put(_SUMMARY_OFFSET, group)
        self._put(_FOOTER, pack('<QQI', summary, offsets, 0))
        self._file.write(_MAGIC)
        self._file.close()

    def abort(self) -> None:
        """Close a file that is not complete."""
        self._file.close()


class Writer(rosbag2.Writer):
    """Writer of rosbags that takes many messages at a time."""

    STORAGE_PLUGINS = {**rosbag2.Writer.STORAGE_PLUGINS, StoragePlugin.MCAP: _Storage}

    def write_records(
        self, channels: NDArray[np.int64], stamps: NDArray[np.int64], ends: NDArray[np.int64],
        records: NDArray[np.uint8],
    ) -> None:  # fmt: skip
        """Append messages (N,) of connections, recorded at `stamps` [ns], that end at `ends`.

        `records` are their bytes, one message after the other, each behind the head of its record.
        """
        if not isinstance(self.storage, _Storage):
            known, data, start = {c.id: c for c in self.connections}, records.tobytes(), BEFORE
            for channel, stamp, end in zip(channels.tolist(), stamps.tolist(), ends.tolist()):
                self.write(known[channel], stamp, data[start:end])
                start = end + BEFORE
            return
        if not len(ends):
            return
        for channel, count in enumerate(np.bincount(channels).tolist()):
            if count:
                self.counts[channel] += count
        self.min_timestamp = min(self.min_timestamp, int(stamps.min()))
        self.max_timestamp = max(self.max_timestamp, int(stamps.max()))
        self.storage.write_records(channels, stamps, ends, records)


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _sized(content: bytes) -> bytes:
    return pack('<I', len(content)) + content
