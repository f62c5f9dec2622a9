"""Bags in MCAP, many messages at a time: the writer of rosbags with chunks that are made at once.

Source: MCAP, Format Specification, version 0 (https://mcap.dev/spec).
"""

from __future__ import annotations

from io import BytesIO
from struct import Struct, pack
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from rosbags import rosbag2
from rosbags.rosbag2.storage_mcap import McapWriter

BEFORE = 31
"""Bytes of a record before the message itself."""

_MESSAGE, _CHUNK, _MESSAGE_INDEX = 5, 6, 7
_RECORD = Struct('<BQ')  # opcode and length
_CHUNK_SIZE = 1 << 20  # bytes, about
_FEW = 1 << 16  # bytes that are no chunk of their own


class _ChunkWriter(McapWriter):
    """Writer of a file."""

    def _put(self, code: int, *content: bytes) -> int:
        """Write a record and tell its place."""
        place = self.bio.tell()
        self.bio.writelines([_RECORD.pack(code, sum(map(len, content))), *content])
        return place

    def write_chunk(
        self,
        channels: NDArray[np.int64],
        stamps: NDArray[np.int64],
        starts: NDArray[np.int64],
        records: bytes,
    ) -> None:
        """Write records of messages that start at some places.

        Parameters
        ----------
        channels : ndarray of int, shape (N,)
            Channel of each message.
        stamps : ndarray of int, shape (N,)
            When it was recorded [ns].
        starts : ndarray of int, shape (N,)
            Where its record begins in `records` [bytes].
        records : bytes
            Records one after the other, without those of types and topics, which are put in
            front of them.
        """
        if self.chunk.msgs:
            self.close_chunk()
        declared, self.chunk.bio = self.chunk.bio.getvalue(), BytesIO()  # types and topics
        data, times = declared + records, (int(stamps.min()), int(stamps.max()))
        self.message_start_time = min(self.message_start_time, times[0])
        self.message_end_time = max(self.message_end_time, times[1])
        head = pack('<QQQIIQ', *times, len(data), crc32(data), 0, len(data))
        place, offsets = self._put(_CHUNK, head, data), []
        end = self.bio.tell()
        index = np.stack([stamps, starts + len(declared)], axis=1).astype('<u8')
        for channel in np.unique(channels).tolist():
            entries = index[channels == channel]
            self.channel_stats[channel] += len(entries)
            content = pack('<HI', channel, entries.nbytes), entries.tobytes()
            offsets.append(pack('<HQ', channel, self._put(_MESSAGE_INDEX, *content)))
        record = BytesIO()
        record.write(pack('<QQQQI', *times, place, end - place, 10 * len(offsets)))
        record.write(b''.join(offsets))
        record.write(pack('<QIQQ', self.bio.tell() - end, 0, len(data), len(data)))
        self.chunks.append(record)


class RecordsWriter(rosbag2.Writer):
    """Writer of bags."""

    STORAGE_PLUGINS = {
        **rosbag2.Writer.STORAGE_PLUGINS,
        rosbag2.StoragePlugin.MCAP: _ChunkWriter,
    }

    def write_records(
        self,
        channels: NDArray[np.int64],
        stamps: NDArray[np.int64],
        ends: NDArray[np.int64],
        records: NDArray[np.uint8],
    ) -> None:
        """Append messages (N,) of connections, recorded at `stamps` [ns], that end at `ends`.

        `records` are their bytes, one message after the other, each behind the head of its record.

        Parameters
        ----------
        channels : ndarray of int, shape (N,)
            Ids of the connections.
        stamps : ndarray of int, shape (N,)
            [ns]
        ends : ndarray of int, shape (N,)
            Increasing places in `records`; the last is its length.
        records : ndarray of uint8, shape (bytes,)
            See `put_record_heads`; each message begins `BEFORE` bytes behind the end of the
            one before it.
        """
        starts = np.concatenate([[0], ends])[:-1]
        if not isinstance(self.storage, _ChunkWriter) or len(records) < _FEW:
            known, data = {c.id: c for c in self.connections}, records.tobytes()
            for item in np.stack(
                [channels, stamps, starts + BEFORE, ends], axis=1
            ).tolist():
                self.write(known[item[0]], item[1], data[slice(*item[2:])])
            return
        self.min_timestamp = min(self.min_timestamp, int(stamps.min()))
        self.max_timestamp = max(self.max_timestamp, int(stamps.max()))
        for channel in self.counts:
            self.counts[channel] += int(np.count_nonzero(channels == channel))
        cuts = np.searchsorted(ends, np.arange(_CHUNK_SIZE, len(records), _CHUNK_SIZE))
        for rows in np.split(np.arange(len(ends)), cuts):
            if len(rows):
                part = records[starts[rows[0]] : ends[rows[-1]]].tobytes()
                places = starts[rows] - starts[rows[0]]
                self.storage.write_chunk(channels[rows], stamps[rows], places, part)


def put_record_heads(
    records: NDArray[np.uint8], channel: int, stamps: NDArray[np.int64]
) -> None:
    """Fill the first `BEFORE` bytes of records (N, bytes), each with a message behind them.

    Parameters
    ----------
    records : ndarray of uint8, shape (N, bytes)
        Changed in place.
    channel : int
        Id of the connection.
    stamps : ndarray of int, shape (N,)
        Time of the log and of the sender [ns].
    """
    head = pack('<BQHIQQ', _MESSAGE, records.shape[1] - _RECORD.size, channel, 0, 0, 0)
    records[:, :BEFORE] = np.frombuffer(head, dtype=np.uint8)
    # Of the log, and of the sender.
    times = np.stack([stamps, stamps], axis=1).astype('<u8')
    records[:, BEFORE - 16 : BEFORE] = times.view(np.uint8)
