"""Health of the node as diagnostic_msgs: what arrived, what was refused and why, what went out."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from hodyn_ros.ros.answers import Robot


class _Topic:
    def __init__(self) -> None:
        self.received = 0
        self.refused = 0
        self.last_arrival: float | None = None
        self.last_error = ''
        self.recent_received = 0
        self.recent_refused = 0


class Diagnostics:
    """Counters that any thread may feed; `report` turns them into a message.

    Parameters
    ----------
    name : str
        Fully qualified name of the node.
    """

    def __init__(self, name: str) -> None:
        self._name = name.lstrip('/')
        self._lock = threading.Lock()
        self._inputs: dict[str, _Topic] = {}
        self._last_report = time.monotonic()
        self._published = 0
        self._recent_published = 0
        self._recent_compute_time = 0.0
        self._recent_longest = 0.0
        self._limit_hits: Counter[str] = Counter()
        self._recent_limit_hits = 0
        self._stale = ''
        self._hardware_id = ''

    def received(self, topic: str) -> None:
        """Count an input that was taken."""
        with self._lock:
            entry = self._inputs.setdefault(topic, _Topic())
            entry.received += 1
            entry.recent_received += 1
            entry.last_arrival = time.monotonic()

    def refused(self, topic: str, reason: str) -> None:
        """Count an input that was not taken."""
        with self._lock:
            entry = self._inputs.setdefault(topic, _Topic())
            entry.refused += 1
            entry.recent_refused += 1
            entry.last_error = reason

    def published(self, compute_time: float, limit_hits: list[str]) -> None:
        """Count an output, the time it took [s], and the limits that it exceeds."""
        with self._lock:
            self._published += 1
            self._recent_published += 1
            self._recent_compute_time += compute_time
            self._recent_longest = max(self._recent_longest, compute_time)
            self._recent_limit_hits += len(limit_hits)
            self._limit_hits.update(limit_hits)

    def stopped(self, reason: str) -> None:
        """Note that an output was held back."""
        with self._lock:
            self._stale = reason

    def report(
        self,
        robot: Robot | None,
        description_error: str,
        in_preparation: bool,
        algorithms: Mapping[str, str],
    ) -> DiagnosticArray:
        """Message with the state of model, inputs and output; starts a new interval.

        Parameters
        ----------
        robot : Robot or None
            The model in use.
        description_error : str
            Why the latest robot description was refused; empty if it was not.
        in_preparation : bool
            Whether a robot is being made ready.
        algorithms : mapping of str to str
            How efforts are computed.
        """
        with self._lock:
            now = time.monotonic()
            interval = max(now - self._last_report, 1e-9)
            self._last_report = now
            self._hardware_id = robot.model.name if robot else ''
            statuses = [
                self._model_status(robot, description_error, in_preparation, algorithms),
                *(
                    self._input_status(topic, entry, interval, now)
                    for topic, entry in self._inputs.items()
                ),
                self._output_status(interval),
            ]
        return DiagnosticArray(status=statuses)

    def _status(
        self, part: str, level: bytes, message: str, values: dict[str, object]
    ) -> DiagnosticStatus:
        return DiagnosticStatus(
            name=f'{self._name}: {part}',
            hardware_id=self._hardware_id,
            level=level,
            message=message,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )

    def _model_status(
        self,
        robot: Robot | None,
        description_error: str,
        in_preparation: bool,
        algorithms: Mapping[str, str],
    ) -> DiagnosticStatus:
        values: dict[str, object] = {'in preparation': 'yes' if in_preparation else 'no'}
        level, message = DiagnosticStatus.OK, 'model loaded'
        if robot is None and in_preparation:
            level, message = DiagnosticStatus.WARN, 'the model is being made ready'
        elif robot is None:
            level, message = DiagnosticStatus.ERROR, 'no valid robot description yet'
        else:
            values.update(algorithms)
            values['robot'] = robot.model.name
            values['joints'] = ' '.join(robot.model.joint_names)
            values['base link'] = robot.model.base_link
            values['tip link'] = robot.model.tip_link or ''
            for index, warning in enumerate(robot.model.warnings):
                values[f'warning {index}'] = warning
        if description_error:
            values['refused description'] = description_error
            if robot is not None:
                level = DiagnosticStatus.WARN
                message = 'the latest description was refused; the one before stays in use'
        return self._status('model', level, message, values)

    def _input_status(
        self, topic: str, entry: _Topic, interval: float, now: float
    ) -> DiagnosticStatus:
        level, message = DiagnosticStatus.OK, 'input is taken'
        if entry.recent_refused:
            level, message = DiagnosticStatus.WARN, 'input was refused'
            if not entry.recent_received:
                level = DiagnosticStatus.ERROR
        age = '' if entry.last_arrival is None else f'{now - entry.last_arrival:.3f}'
        status = self._status(
            topic,
            level,
            message,
            {
                'age of the last input [s]': age,
                'rate [Hz]': f'{entry.recent_received / interval:.1f}',
                'received': entry.received,
                'refused': entry.refused,
                'last error': entry.last_error,
            },
        )
        entry.recent_received = entry.recent_refused = 0
        return status

    def _output_status(self, interval: float) -> DiagnosticStatus:
        level, message = DiagnosticStatus.OK, 'ok'
        if self._recent_limit_hits:
            level, message = DiagnosticStatus.WARN, 'limits are exceeded'
        if self._stale:
            level, message = DiagnosticStatus.ERROR, 'the output is held back'
        count = self._recent_published
        values: dict[str, object] = {
            'published': self._published,
            'rate [Hz]': f'{count / interval:.1f}',
            'mean compute time [ms]': f'{1e3 * self._recent_compute_time / max(count, 1):.3f}',
            'longest compute time [ms]': f'{1e3 * self._recent_longest:.3f}',
            'held back because': self._stale,
        }
        for what, hits in sorted(self._limit_hits.items()):
            values[f'samples beyond the limit of {what}'] = hits
        status = self._status('joint_effort', level, message, values)
        self._recent_published = self._recent_limit_hits = 0
        self._recent_compute_time = self._recent_longest = 0.0
        self._stale = ''
        return status
