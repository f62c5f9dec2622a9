"""Results as bags of ROS 2 with hodyn_msgs, and mirrors of them that every plotting tool knows.

The topics are those of the node, so that tools show a recording as they show a running node.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import FileError
from hodyn_ros.io.access import optional, writing
from hodyn_ros.io.cdr import encode
from hodyn_ros.io.definitions import EXTRA, typestore
from hodyn_ros.io.derivatives import known_orders
from hodyn_ros.io.samples import EFFORTS, QUANTITIES, SOURCES, Array, Results
from hodyn_ros.names import listed

MOTION_TOPIC = '/joint_motion'
EFFORT_TOPIC = '/hodyn_node/joint_effort'
MOTOR_TOPIC = '/hodyn_node/motor_reference'
EFFORT_MIRROR = EFFORT_TOPIC + '/order_{}'
MOTOR_MIRROR = MOTOR_TOPIC + '/state'

STORAGES = ('mcap', 'sqlite3')

_JOINT_STATE = 'sensor_msgs/msg/JointState'
_VERSION = 9  # of the metadata
_LATEST = 2**31 * 1_000_000_000 - 1  # what a stamp can hold [ns]

Messages = list[tuple[int, int, str, str, bytes]]
"""Instant, place among the messages of that instant, topic, type and content."""


class BagWriter:
    """Writes results to a bag, part by part.

    Parameters
    ----------
    folder : pathlib.Path
        To be made.
    target : pathlib.Path
        Where it is going to be, for messages.
    storage : {'mcap', 'sqlite3'}

    Attributes
    ----------
    storage_file : pathlib.Path
        What holds the messages.
    """

    def __init__(self, folder: Path, target: Path, storage: str) -> None:
        if storage not in STORAGES:
            raise FileError(f'{target}: storage is {storage!r}, expected {listed(STORAGES)}.')
        self._target = target
        library: Any = optional('rosbags.rosbag2', EXTRA, target)
        self._types = typestore(target)
        self._connections: dict[str, Any] = {}
        plugin = library.StoragePlugin.MCAP if storage == 'mcap' else library.StoragePlugin.SQLITE3
        with writing(target):
            self._writer = library.Writer(folder, version=_VERSION, storage_plugin=plugin)
            self._writer.open()
        self.storage_file = folder / (folder.name + ('.mcap' if storage == 'mcap' else '.db3'))

    def write(self, results: Results) -> None:
        """Append results, all messages of an instant one after the other."""
        stamps = results.start + np.rint(1e9 * results.times).astype(np.int64)
        if len(stamps) and (stamps.min() < 0 or stamps.max() > _LATEST):
            raise FileError(
                f'{self._target}: times from {results.times.min():g} s to '
                f'{results.times.max():g} s cannot be stamps of messages, which are seconds since '
                '1970; shift them.'
            )
        messages: Messages = []
        self._add_motion(messages, results, stamps)
        self._add_efforts(messages, results, stamps)
        if results.motors is not None:
            self._add_motors(messages, results, stamps)
        messages.sort(key=lambda message: message[:2])
        with writing(self._target):
            for stamp, _, topic, kind, data in messages:
                self._writer.write(self._connection(topic, kind), stamp, data)

    def close(self) -> None:
        """Finish the bag."""
        with writing(self._target):
            self._writer.close()

    def _connection(self, topic: str, kind: str) -> Any:
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(
                topic, kind, typestore=self._types
            )
        return self._connections[topic]

    def _add_motion(self, messages: Messages, results: Results, stamps: NDArray[np.int64]) -> None:
        known = np.minimum(known_orders(results.motion), len(QUANTITIES))
        for orders, rows in _groups(known, lowest=3):
            fields: dict[str, Any] = {'joint_names': results.joint_names}
            for k, name in enumerate(QUANTITIES[:orders]):
                fields[name] = results.motion[rows, k]
            self._add(
                messages, 0, MOTION_TOPIC, 'hodyn_msgs/msg/JointMotion', stamps[rows], fields
            )

    def _add_efforts(
        self, messages: Messages, results: Results, stamps: NDArray[np.int64]
    ) -> None:
        known = np.minimum(known_orders(results.effort), len(EFFORTS))
        for orders, rows in _groups(known, lowest=1):
            fields: dict[str, Any] = {
                'joint_names': results.joint_names,
                'valid_order': orders - 1,
                'continuous_order': min(results.continuous_order, orders - 1),
                'delay': results.delay,
                'source': SOURCES[results.source],
            }
            for m, name in enumerate(EFFORTS[:orders]):
                fields[name] = results.effort[rows, m]
            base = results.base_link
            kind = 'hodyn_msgs/msg/JointEffort'
            self._add(messages, 1, EFFORT_TOPIC, kind, stamps[rows], fields, base)
            for m in range(orders):
                mirror: dict[str, Any] = {
                    'name': results.joint_names,
                    'effort': results.effort[rows, m],
                }
                if m == 0:
                    mirror['position'] = results.motion[rows, 0]
                    mirror['velocity'] = results.motion[rows, 1]
                topic = EFFORT_MIRROR.format(m)
                self._add(messages, 2 + m, topic, _JOINT_STATE, stamps[rows], mirror, base)

    def _add_motors(self, messages: Messages, results: Results, stamps: NDArray[np.int64]) -> None:
        assert results.motors is not None
        position, torque, _ = results.motors
        joints = [results.joint_names.index(name) for name in results.motor_joints]
        known = np.minimum(known_orders(position), 3)
        torques = np.minimum(known_orders(torque), 2)
        for pair, rows in _groups(known + 4 * torques, lowest=1):
            orders, torque_orders = pair % 4, pair // 4
            if not orders:
                continue
            fields: dict[str, Any] = {
                'motor_names': results.motor_names,
                'joint_names': results.motor_joints,
                'source': SOURCES[results.source],
                'deflection': position[rows, 0] - results.motion[rows, 0][:, joints],
            }
            series: dict[str, Array] = {
                **{name: position[rows, k] for k, name in enumerate(QUANTITIES[:orders])},
                **{
                    name: torque[rows, k]
                    for k, name in enumerate(('torque', 'torque_dot')[:torque_orders])
                },
            }
            base = results.base_link
            kind = 'hodyn_msgs/msg/MotorReference'
            self._add(messages, 5, MOTOR_TOPIC, kind, stamps[rows], {**fields, **series}, base)
            mirror: dict[str, Any] = {
                'name': results.motor_names,
                'position': series['position'],
                'velocity': series.get('velocity'),
                'effort': series.get('torque'),
            }
            self._add(messages, 6, MOTOR_MIRROR, _JOINT_STATE, stamps[rows], mirror, base)

    def _add(
        self,
        messages: Messages,
        place: int,
        topic: str,
        kind: str,
        stamps: NDArray[np.int64],
        fields: dict[str, Any],
        frame_id: str = '',
    ) -> None:
        contents = encode(kind, stamps, frame_id, fields)
        messages.extend(
            (stamp, place, topic, kind, data) for stamp, data in zip(stamps.tolist(), contents)
        )


def _groups(orders: NDArray[np.intp], lowest: int) -> list[tuple[int, NDArray[np.intp]]]:
    """Rows with the same number of known orders."""
    return [
        (int(count), np.flatnonzero(orders == count))
        for count in np.unique(orders)
        if count >= lowest
    ]
