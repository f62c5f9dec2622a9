"""Recordings of Rerun, read by its own reader."""

from __future__ import annotations

import numpy as np


def read_recording(path):
    """What each entity holds, by its path: arrays by component, 'time' in seconds.

    What changes has a first axis of samples, what does not has one of length 1.
    """
    from rerun.chunk import RrdReader

    found = {}
    for chunk in RrdReader(str(path)).stream():
        entity = found.setdefault(chunk.entity_path, {})
        batch = chunk.to_record_batch()
        for name, column in zip(batch.schema.names, batch.columns):
            if name == 'time':
                times = 1e-9 * column.cast('int64').to_numpy(zero_copy_only=False)
                entity['time'] = np.append(entity.get('time', np.empty(0)), times)
            elif 'RowId' not in name:
                rows = [row for row in column.to_pylist() if row is not None]
                entity.setdefault(name, []).extend(rows)
    return found


def pose_of(entity):
    """Poses (N, 4, 4) of an entity; Rerun keeps matrices by their columns."""
    position = np.array(entity['Transform3D:translation'])[:, 0]
    pose = np.zeros((len(position), 4, 4))
    pose[:, :3, :3] = (
        np.array(entity['Transform3D:mat3x3']).reshape(-1, 3, 3).transpose(0, 2, 1)
    )
    pose[:, :3, 3], pose[:, 3, 3] = position, 1.0
    return pose
