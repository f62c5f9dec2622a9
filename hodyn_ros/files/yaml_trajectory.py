"""Trajectories as YAML, in the layout of trajectory_msgs/JointTrajectory.

This is what `ros2 topic echo` prints and `ros2 topic pub` takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hodyn_ros.errors import FileError
from hodyn_ros.files.formats import Format, Wanted
from hodyn_ros.files.samples import POINT_FIELDS, Samples, waypoint_samples
from hodyn_ros.files.yaml_documents import yaml_documents

_KEYS = (*POINT_FIELDS, 'effort', 'time_from_start')
_LATEST = 2**31  # seconds: what a message can hold


class YamlFormat(Format):
    """Trajectories, whose samples are waypoints."""

    suffixes = ('.yaml', '.yml')

    def motions(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read a trajectory as a whole.

        Parameters
        ----------
        path : pathlib.Path
            File with one trajectory.
        wanted : Wanted
            Not used: it has no topics, and is one part.

        Yields
        ------
        Samples
            Once.

        Raises
        ------
        FileError, MotionError, JointNameError
            See `read_yaml`.
        """
        yield read_yaml(path)

    def write(self, path: Path, results: Samples, storage: str) -> None:
        """Write a trajectory; a row with a NaN is left out.

        Jerk, snap, the derivatives of the efforts and the motors have no place in this layout.

        Parameters
        ----------
        path : pathlib.Path
            File that is written; the provenance stands in comments at its beginning.
        results : Samples
        storage : str
            Of bags; not used.

        Raises
        ------
        FileError
            If a time is negative.
        """
        with path.open('w', encoding='utf-8') as file:
            for key, value in results.provenance.lines().items():
                file.write(f'# {key}: {value}\n')
            sec, nanosec = divmod(results.start, 1_000_000_000)
            stamp = {'sec': sec, 'nanosec': nanosec}
            head = {
                'header': {'stamp': stamp, 'frame_id': results.base_link},
                'joint_names': list(results.joint_names),
            }
            yaml.safe_dump(head, file, sort_keys=False)
            file.write('points:\n')
            for i, time in enumerate(results.times.tolist()):
                sec, nanosec = divmod(round(1e9 * time), 1_000_000_000)
                if sec < 0:
                    raise FileError(
                        f'{path}: the time {time:g} s is negative; time_from_start is not.'
                    )
                rows = dict(zip(POINT_FIELDS, results.motion[i].tolist()))
                if results.effort.shape[1]:
                    rows['effort'] = results.effort[i, 0].tolist()
                lines = [
                    f'  {name}: {_flow(values)}\n'
                    for name, values in rows.items()
                    if not np.isnan(values).any()
                ]
                lines.append(f'  time_from_start: {{sec: {sec}, nanosec: {nanosec}}}\n')
                file.write(f'-{"".join(lines)[1:]}')


def read_yaml(path: Path) -> Samples:
    """Waypoints of a trajectory, with NaN where one has no velocities or accelerations.

    Parameters
    ----------
    path : pathlib.Path
        File with the fields of a trajectory_msgs/JointTrajectory.

    Returns
    -------
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
    times, rows = zip(*(_point(p, f'{path}: points[{i}]') for i, p in enumerate(points)))
    header, start = content.get('header'), 0
    if isinstance(header, dict) and header.get('stamp') is not None:
        sec, nanosec = _seconds(header['stamp'], f'{path}: header.stamp')
        if not (0.0 <= sec < _LATEST and 0.0 <= nanosec < _LATEST):
            raise FileError(f'{path}: header.stamp lies before 1970 or in a far future.')
        start = 1_000_000_000 * int(sec) + round(1e9 * (sec % 1.0)) + int(nanosec)
    return waypoint_samples(str(path), names, np.array(times), rows, start)


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
            f'{where} has the unknown key {unknown[0]!r}; expected {", ".join(_KEYS)}.'
        )
    if not point.get('positions'):
        raise FileError(f"{where} has no 'positions'.")
    sec, nanosec = _seconds(point.get('time_from_start'), f'{where}.time_from_start')
    rows = [_numbers(point.get(field), f'{where}.{field}') for field in POINT_FIELDS]
    return sec + 1e-9 * nanosec, rows


def _flow(values: list[float]) -> str:
    # YAML 1.1 takes 1e-05 for a word: a number needs its point.
    """List of numbers as YAML writes it in one line, all digits kept."""
    texts = [repr(value) for value in values]
    return '[' + ', '.join(t if '.' in t else t.replace('e', '.0e') for t in texts) + ']'


def _numbers(values: Any, where: str) -> list[float]:
    """Finite numbers of a row of a waypoint, empty if it is not there."""
    if not isinstance(values, (list, type(None))):
        raise FileError(f'{where} is {_short(values)}, expected a number for each joint.')
    return [_number(value, f'{where}[{i}]') for i, value in enumerate(values or ())]


def _number(value: Any, where: str) -> float:
    """Finite number, also one that YAML takes for a word; refuses everything else."""
    if isinstance(value, str):
        # Numbers such as 1e-3, which YAML 1.1 takes for words.
        try:
            value = float(value)
        except ValueError:
            pass
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not abs(value) < 1e300
    ):
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
