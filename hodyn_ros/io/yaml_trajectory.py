"""Trajectories as YAML, in the layout of trajectory_msgs/JointTrajectory.

This is what `ros2 topic echo` prints and `ros2 topic pub` takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hodyn_ros.errors import FileError, HodynError
from hodyn_ros.io.access import reading, writing
from hodyn_ros.io.samples import Results, Samples, times_from

_FIELDS = ('positions', 'velocities', 'accelerations')
# Of a point: efforts are those of others.
_KEYS = (*_FIELDS, 'effort', 'time_from_start')
# ROS 2, ROS 1 and what people write.
_SECONDS = ('sec', 'secs')
_NANOSECONDS = ('nanosec', 'nanosecs', 'nsec', 'nsecs')
_LARGEST_FILE = 200_000_000  # bytes; the parser needs a hundred times as many
_WRAPPERS = ('trajectory', 'joint_trajectory')
_LATEST = 2**31  # seconds: what a message can hold


def read_yaml(path: Path) -> Samples:
    """Waypoints of a trajectory.

    Parameters
    ----------
    path : pathlib.Path

    Returns
    -------
    Samples
        Waypoints, with NaN where some of them have no velocities or accelerations.

    Raises
    ------
    FileError
        If it is no such trajectory.
    """
    with reading(path, 'YAML'):
        if path.stat().st_size > _LARGEST_FILE:
            raise FileError(
                f'{path} has {path.stat().st_size / 1e6:.0f} MB, expected at most '
                f'{_LARGEST_FILE / 1e6:.0f}; write so many samples as Parquet or NPZ.'
            )
        loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
        with path.open(encoding='utf-8') as file:
            documents = [item for item in yaml.load_all(file, loader) if item is not None]
    if len(documents) != 1:
        raise FileError(f'{path} holds {len(documents)} documents, expected one trajectory.')
    content = documents[0]
    for wrapper in _WRAPPERS:
        if isinstance(content, dict) and wrapper in content:
            content = content[wrapper]
    if not isinstance(content, dict):
        raise FileError(f"{path}: expected a mapping with 'joint_names' and 'points'.")
    names = content.get('joint_names')
    points = content.get('points')
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FileError(f"{path}: 'joint_names' is {_short(names)}, expected a list of names.")
    if not isinstance(points, list) or not points:
        raise FileError(f"{path}: 'points' is {_short(points)}, expected a list of waypoints.")
    times = np.empty(len(points))
    motion = np.full((len(points), len(_FIELDS), len(names)), np.nan)
    for i, point in enumerate(points):
        if not isinstance(point, dict):
            raise FileError(
                f"{path}: points[{i}] is {_short(point)}, expected 'positions' and so on."
            )
        unknown = sorted(map(str, set(point) - set(_KEYS)))
        if unknown:
            raise FileError(
                f'{path}: points[{i}] has the unknown key {unknown[0]!r}; expected '
                f'{", ".join(_KEYS)}.'
            )
        where = f'{path}: points[{i}].time_from_start'
        times[i] = _seconds(point.get('time_from_start'), where)
        for k, field in enumerate(_FIELDS):
            values = point.get(field)
            if values is None or values == []:
                if k == 0:
                    raise FileError(f"{path}: points[{i}] has no 'positions'.")
                continue
            motion[i, k] = _numbers(values, len(names), f'{path}: points[{i}].{field}')
    used = [k for k in range(len(_FIELDS)) if not np.isnan(motion[:, k]).all()]
    try:
        return Samples(
            joint_names=tuple(names),
            times=times,
            motion=motion[:, : max(used, default=0) + 1],
            name=str(path),
            is_waypoints=True,
            start=_start(content.get('header'), path),
        )
    except HodynError as error:
        raise FileError(str(error)) from error


class YamlWriter:
    """Writes results as the points of a trajectory, part by part.

    Jerk, snap, the derivatives of the efforts and the motors have no place in this layout.

    Parameters
    ----------
    path : pathlib.Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            self._file = path.open('w', encoding='utf-8')
        self._begun = False
        self._start = 0

    def write(self, results: Results) -> None:
        """Append results."""
        with writing(self._path):
            if not self._begun:
                self._begun, self._start = True, results.start
                sec, nanosec = divmod(results.start, 1_000_000_000)
                head = {
                    'header': {
                        'stamp': {'sec': sec, 'nanosec': nanosec},
                        'frame_id': results.base_link,
                    },
                    'joint_names': list(results.joint_names),
                }
                yaml.safe_dump(head, self._file, sort_keys=False)
                self._file.write('points:\n')
            for i, time in enumerate(times_from(results, self._start).tolist()):
                sec, nanosec = divmod(round(1e9 * time), 1_000_000_000)
                if sec < 0:
                    raise FileError(
                        f'{self._path}: the time {time:g} s is negative; time_from_start is not.'
                    )
                rows = dict(zip(_FIELDS, results.motion[i].tolist()))
                if results.effort.shape[1]:
                    rows['effort'] = results.effort[i, 0].tolist()
                lines = [
                    f'  {name}: {_row(values)}\n'
                    for name, values in rows.items()
                    if not np.isnan(values).any()
                ]
                stamp = f'  time_from_start: {{sec: {sec}, nanosec: {nanosec}}}\n'
                text = ''.join([*lines, stamp])
                self._file.write(f'-{text[1:]}')

    def close(self) -> None:
        """Finish the file."""
        with writing(self._path):
            self._file.close()


def _row(values: list[float]) -> str:
    # YAML 1.1 takes 1e-05 for a word: a number needs its point.
    texts = [repr(value) for value in values]
    return '[' + ', '.join(t if '.' in t else t.replace('e', '.0e') for t in texts) + ']'


def _numbers(values: Any, n: int, where: str) -> list[float]:
    if not isinstance(values, list) or len(values) != n:
        number = f'{len(values)} values' if isinstance(values, list) else _short(values)
        raise FileError(f'{where} has {number}, expected {n}, one for each joint.')
    return [_number(value, f'{where}[{i}]') for i, value in enumerate(values)]


def _number(value: Any, where: str) -> float:
    if isinstance(value, str):
        # Numbers such as 1e-3, which YAML 1.1 takes for words.
        try:
            value = float(value)
        except ValueError:
            pass
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        raise FileError(f'{where} is {_short(value)}, expected a finite number.')
    return float(value)


def _seconds(value: Any, where: str) -> float:
    if isinstance(value, Mapping):
        sec = [key for key in _SECONDS if key in value]
        nanosec = [key for key in _NANOSECONDS if key in value]
        others = sorted(map(str, set(value) - {*_SECONDS, *_NANOSECONDS}))
        if others or len(sec) > 1 or len(nanosec) > 1 or not value:
            raise FileError(
                f"{where} has the keys {', '.join(map(str, value)) or '(none)'}; expected 'sec' "
                "and 'nanosec'."
            )
        return sum(_number(value[key], f'{where}.{key}') for key in sec) + 1e-9 * sum(
            _number(value[key], f'{where}.{key}') for key in nanosec
        )
    if value is None:
        raise FileError(f'{where} is missing; expected sec and nanosec, or seconds.')
    return _number(value, where)


def _start(header: Any, path: Path) -> int:
    stamp = header.get('stamp') if isinstance(header, Mapping) else None
    if stamp is None:
        return 0
    where = f'{path}: header.stamp'
    if not isinstance(stamp, Mapping):
        raise FileError(f'{where} is {_short(stamp)}, expected sec and nanosec.')
    parts = [_number(stamp.get(name, 0), f'{where}.{name}') for name in ('sec', 'nanosec')]
    if not all(0.0 <= part < _LATEST for part in parts):
        raise FileError(f'{where} is {_short(stamp)}, expected seconds since 1970.')
    return 1_000_000_000 * int(parts[0]) + int(parts[1])


def _short(value: Any) -> str:
    """Value for a message; nested ones by their type, since aliases may make them endless."""
    if isinstance(value, (list, Mapping)):
        return f'a {type(value).__name__} of {len(value)}'
    return repr(value)[:80]
