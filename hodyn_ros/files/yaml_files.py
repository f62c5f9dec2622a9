"""YAML: documents as plain data, and trajectories.

Trajectories are in the layout of trajectory_msgs/JointTrajectory, which `ros2 topic echo` prints
and `ros2 topic pub` takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hodyn_ros.errors import FileError
from hodyn_ros.files.formats import Format, Wanted
from hodyn_ros.files.samples import POINT_FIELDS, Samples, waypoint_samples
from hodyn_ros.names import did_you_mean

_LARGEST_FILE = 200_000_000  # bytes; the parser needs a hundred times as many
_MOST_REPEATED = 100_000  # entries
_KEYS = (*POINT_FIELDS, 'effort', 'time_from_start')
_LATEST = 2**31  # seconds: what a message can hold


class _Loader(getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):  # type: ignore[misc]
    """Reads 1e6 and 1.0e6 as the numbers that they are for ROS; PyYAML wants 1.0e+6."""


_Loader.add_implicit_resolver(
    'tag:yaml.org,2002:float',
    re.compile(r'[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$'),
    '-+.0123456789',
)


def yaml_documents(path: Path) -> list[Any]:
    """Contents of all documents that are not empty, of a size that is bounded by that of the file.

    Parameters
    ----------
    path : pathlib.Path
        File in UTF-8.

    Returns
    -------
    list
        Dictionaries, lists, numbers, strings and so on. 1e6 is a number, as for ROS.

    Raises
    ------
    FileError
        If the file is too large, or aliases repeat too much.
    OSError, UnicodeDecodeError, yaml.YAMLError
        If it cannot be read.
    """
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise FileError(
            f'{path} has {size / 1e6:.0f} MB, expected at most {_LARGEST_FILE / 1e6:.0f}; write '
            'so many samples as Parquet or NPZ.'
        )
    text = path.read_text(encoding='utf-8')
    loader = _Loader(text)
    try:
        documents = []
        while loader.check_node():
            node = loader.get_node()
            if '*' in text:  # there may be aliases
                sizes: dict[int, int] = {}
                try:
                    entries = _entries(node, sizes)
                except _InItself as found:
                    raise FileError(
                        f'{path}: in line {found} an alias is part of what it stands for.'
                    ) from None
                if entries > len(sizes) + _MOST_REPEATED:
                    raise FileError(
                        f'{path}: its {len(sizes)} entries stand for {entries:.3g}, since aliases '
                        f'repeat some of them; expected at most {_MOST_REPEATED} more. Write them '
                        'out.'
                    )
            documents.append(loader.construct_document(node))
    finally:
        loader.dispose()
    return [item for item in documents if item is not None]


class _InItself(Exception):
    """A node is part of itself; the line of the node that names it."""


def _entries(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Entries that a node stands for, with all that aliases repeat.

    They are counted before anything is made of them: some lines can stand for any number.
    """
    if id(node) not in sizes:
        sizes[id(node)] = 0  # while it is under way
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in parts for part in pair]
        if any(sizes.get(id(part)) == 0 for part in parts):
            raise _InItself(node.start_mark.line + 1)
        sizes[id(node)] = 1 + sum(_entries(part, sizes) for part in parts)
    return sizes[id(node)]


class YamlFormat(Format):
    """Trajectories, whose samples are waypoints."""

    suffixes: tuple[str, ...] = ('.yaml', '.yml')

    def motions(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read a trajectory, with NaN where a waypoint has no velocities or accelerations.

        Parameters
        ----------
        path : pathlib.Path
            File with the fields of a trajectory_msgs/JointTrajectory.
        wanted : Wanted
            Not used: there are no topics, and one trajectory.

        Yields
        ------
        Samples
            Of N points, motion (N, 1 to 3, n) up to the highest derivative that any point has.
            Times [s] count from the stamp of the header.

        Raises
        ------
        FileError
            If there is not one trajectory, a key is unknown, a value is no finite number, or
            the stamp cannot be one.
        MotionError
            If a point does not have one value for each joint.
        JointNameError
            If a joint is named twice.
        """
        content = _trajectory(path)
        names, points = content.get('joint_names'), content.get('points')
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise FileError(
                f"{path}: 'joint_names' is {_short(names)}, expected a list of names."
            )
        if not isinstance(points, list) or not points:
            raise FileError(
                f"{path}: 'points' is {_short(points)}, expected a list of waypoints."
            )
        times, rows = zip(
            *(_point(p, f'{path}: points[{i}]') for i, p in enumerate(points))
        )
        header, start = content.get('header'), 0
        if isinstance(header, dict) and header.get('stamp') is not None:
            sec, nanosec = _seconds(header['stamp'], f'{path}: header.stamp')
            if not (0.0 <= sec < _LATEST and 0.0 <= nanosec < _LATEST):
                raise FileError(
                    f'{path}: header.stamp lies before 1970 or in a far future.'
                )
            start = 1_000_000_000 * int(sec) + round(1e9 * (sec % 1.0)) + int(nanosec)
        yield waypoint_samples(str(path), names, np.array(times), rows, start)

    def write(self, path: Path, results: Samples, storage: str) -> None:
        """Write the points of a trajectory, whose provenance stands in comments in front.

        Jerk, snap, the derivatives of the efforts and the motors have no place in this layout.

        Parameters
        ----------
        path : pathlib.Path
            File that is written.
        results : Samples
            A row with a NaN is left out.
        storage : str
            Of bags; not used.

        Raises
        ------
        FileError
            If a time is negative.
        """
        if results.times.min() < 0.0:
            raise FileError(
                f'{path}: the time {results.times.min():g} s is negative; time_from_start is not.'
            )
        sec, nanosec = divmod(results.start, 1_000_000_000)
        head = {
            'header': {
                'stamp': {'sec': sec, 'nanosec': nanosec},
                'frame_id': results.base_link,
            },
            'joint_names': list(results.joint_names),
        }
        columns = dict(zip(POINT_FIELDS, np.moveaxis(results.motion, 1, 0)))
        if results.effort.shape[1]:
            columns['effort'] = results.effort[:, 0]
        with path.open('w', encoding='utf-8') as file:
            for key, value in results.provenance.lines().items():
                file.write(f'# {key}: {value}\n')
            yaml.safe_dump(head, file, sort_keys=False)
            file.write('points:\n')
            for i, time in enumerate(results.times.tolist()):
                sec, nanosec = divmod(round(1e9 * time), 1_000_000_000)
                for name, values in columns.items():
                    if not np.isnan(values[i]).any():
                        file.write(f'{"-" if name == "positions" else " "} {name}: ')
                        file.write(f'{_flow(values[i].tolist())}\n')
                file.write(f'  time_from_start: {{sec: {sec}, nanosec: {nanosec}}}\n')


def _trajectory(path: Path) -> dict[str, Any]:
    """The one trajectory of a file."""
    documents = yaml_documents(path)
    if len(documents) != 1:
        raise FileError(
            f'{path} holds {len(documents)} documents, expected one trajectory.'
        )
    content = documents[0]
    for wrapper in ('trajectory', 'joint_trajectory'):
        if isinstance(content, dict) and wrapper in content:
            content = content[wrapper]
        # Of a moveit_msgs/DisplayTrajectory.
        if isinstance(content, list) and content is not documents[0]:
            if len(content) != 1:
                raise FileError(
                    f"{path}: 'trajectory' is a list of {len(content)}, expected one trajectory; "
                    'keep the one that is meant.'
                )
            content = content[0]
    if not isinstance(content, dict):
        raise FileError(f"{path}: expected a mapping with 'joint_names' and 'points'.")
    return content


def _point(point: Any, where: str) -> tuple[float, list[list[float]]]:
    """Time of a waypoint [s], and its rows of `POINT_FIELDS`."""
    if not isinstance(point, dict):
        raise FileError(f"{where} is {_short(point)}, expected 'positions' and so on.")
    if unknown := sorted(map(str, set(point) - set(_KEYS))):
        raise FileError(
            f'{where} has the unknown key {unknown[0]!r}{did_you_mean(unknown[0], _KEYS)}; '
            f'expected {", ".join(_KEYS)}.'
        )
    if not point.get('positions'):
        raise FileError(f"{where} has no 'positions'.")
    sec, nanosec = _seconds(point.get('time_from_start'), f'{where}.time_from_start')
    rows = [_numbers(point.get(field), f'{where}.{field}') for field in POINT_FIELDS]
    return sec + 1e-9 * nanosec, rows


def _flow(values: list[float]) -> str:
    """List of numbers as YAML writes it in one line, all digits kept."""
    # YAML 1.1 takes 1e-05 for a word: a number needs its point.
    texts = [repr(value) for value in values]
    return '[' + ', '.join(t if '.' in t else t.replace('e', '.0e') for t in texts) + ']'


def _numbers(values: Any, where: str) -> list[float]:
    """Finite numbers of a row of a waypoint, empty if it is not there."""
    if not isinstance(values, (list, type(None))):
        raise FileError(f'{where} is {_short(values)}, expected a number for each joint.')
    return [_number(value, f'{where}[{i}]') for i, value in enumerate(values or ())]


def _number(value: Any, where: str) -> float:
    """Finite number; refuses everything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) < 1e300:
        raise FileError(f'{where} is {_short(value)}, expected a finite number.')
    return float(value)


def _seconds(value: Any, where: str) -> tuple[float, float]:
    """Seconds and nanoseconds of a time: a number of seconds, or as ROS 2 writes it."""
    if value is None:
        raise FileError(f'{where} is missing; expected sec and nanosec, or seconds.')
    if not isinstance(value, dict):
        return _number(value, where), 0.0
    if not value or not set(value) <= {'sec', 'nanosec'}:
        raise FileError(
            f"{where} has the keys {', '.join(map(str, value)) or '(none)'}; expected 'sec' "
            "and 'nanosec'."
        )
    sec, nanosec = (
        _number(value.get(key, 0), f'{where}.{key}') for key in ('sec', 'nanosec')
    )
    return sec, nanosec


def _short(value: Any) -> str:
    """Value for a message; nested ones by their type, since aliases may make them endless."""
    if isinstance(value, (list, dict)):
        return f'a {type(value).__name__} of {len(value)}'
    return repr(value)[:80]
