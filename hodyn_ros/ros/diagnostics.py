"""Health of the node as diagnostic_msgs: what arrived, what was refused and why, what went out."""

from __future__ import annotations

import math
import os
import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, qos_check_compatible
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo

from hodyn_ros.ros.alarm import ERROR, OK, STALE, WARN, Alarm, Cause
from hodyn_ros.ros.answers import Robot
from hodyn_ros.ros.tally import REFUSALS, check_kind

QUIET_TIME = 3.0
"""Time without a cause after which a level falls [s]."""

# An input has a rate once this many of its intervals are known, and has stopped after a silence of
# many usual intervals that is also much longer than the longest of them.
_INTERVALS = 20
_FEWEST_INTERVALS = 10
_USUAL_INTERVALS = 10.0
_LONGEST_INTERVALS = 3.0

# Of an interval, at most so many latenesses are looked at. A larger share of samples left out is
# worth a warning: now and then one is, on every machine.
_LATENESSES = 10_000
_LEFT_OUT = 0.01

# Name of a node that the middleware knows by its publishers only, for a moment.
_UNKNOWN = '_NODE_NAME_UNKNOWN_'

_PROCESS_LEVELS = {'off': OK, 'running': OK, 'starting': WARN, 'ended': ERROR}
"""States of the planning process."""


def resident_memory(pid: int | None = None) -> int | None:
    """Memory that a process occupies [bytes]; by default this one. None if it is not known."""
    try:
        pages = int(Path(f'/proc/{pid or "self"}/statm').read_text().split()[1])
        return pages * os.sysconf('SC_PAGE_SIZE')
    except (OSError, ValueError, IndexError):
        return None


def publisher_names(node: Node, topic: str) -> list[str]:
    """Fully qualified names of the nodes that publish a topic, one for each publisher."""
    infos = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    return sorted(map(_full_name, infos))


def _full_name(info: TopicEndpointInfo) -> str:
    return f'{info.node_namespace.rstrip("/")}/{info.node_name}'


def unheard_publishers(node: Node, subscription: Subscription) -> list[str]:
    """Why some publishers of a topic are not heard, in words."""
    found = []
    package, part, *_ = subscription.msg_type.__module__.split('.')
    kind = f'{package}/{part}/{subscription.msg_type.__name__}'
    for info in node.get_publishers_info_by_topic(subscription.topic_name):
        fit, reason = qos_check_compatible(info.qos_profile, subscription.qos_profile)
        if info.topic_type != kind:
            reason = f'it sends {info.topic_type}, expected {kind}'
        elif fit != QoSCompatibility.ERROR:
            reason = ''
        if not reason or info.node_name == _UNKNOWN:
            continue
        reason = reason.removeprefix('ERROR: ').rstrip('; ')
        found.append(
            f'{_full_name(info)} publishes {subscription.topic_name} unheard: {reason}'
        )
    return found


class _Input:
    def __init__(self, quiet_time: float) -> None:
        self.alarm = Alarm(quiet_time)
        self.timeout = 0.0
        self.received = self.recent_received = 0
        self.refused: Counter[str] = Counter()
        self.recent_refused = 0
        self.dropped = self.recent_dropped = 0
        self.arrived = self.left_out = self.recent_left_out = self.lost = self.recent_lost = 0
        self.lateness: deque[float] = deque(maxlen=_LATENESSES)
        self.gaps = self.recent_gaps = 0
        self.longest_gap = self.recent_gap = 0.0
        self.last_arrival: float | None = None  # of one that was taken
        self.last_sign: float | None = None  # of life: also of one that was refused
        self.intervals: deque[float] = deque(maxlen=_INTERVALS)
        self.silent = False
        self.last_error = ''
        self.publishers: tuple[str, ...] = ()
        self.unheard: tuple[str, ...] = ()

    def sign_of_life(self, now: float) -> None:
        if self.silent:
            self.intervals.clear()
            self.silent = False
        elif self.last_sign is not None:
            self.intervals.append(now - self.last_sign)
        self.last_sign = now

    def silence(self, now: float) -> float | None:
        """How long an input that had a rate has been missing [s]; None if it is not missing."""
        if self.timeout <= 0.0 or len(self.intervals) < _FEWEST_INTERVALS:
            return None
        silence = now - self.last_sign
        patience = max(
            self.timeout,
            _USUAL_INTERVALS * statistics.median(self.intervals),
            _LONGEST_INTERVALS * max(self.intervals),
        )
        return silence if silence > patience else None


class _Output:
    """What became of the messages of an output topic."""

    def __init__(self, quiet_time: float) -> None:
        self.alarm = Alarm(quiet_time)
        self.published = self.recent_published = 0
        self.limit_hits: Counter[str] = Counter()
        self.recent_limit_hits = 0
        self.stops = self.recent_stops = 0
        self.stopped_because = ''

    def publish(self, limit_hits: Iterable[str]) -> None:
        self.published += 1
        self.recent_published += 1
        self.exceed(Counter(limit_hits))

    def exceed(self, limit_hits: Mapping[str, int]) -> None:
        self.recent_limit_hits += sum(limit_hits.values())
        self.limit_hits.update(limit_hits)

    def stop(self, reason: str) -> None:
        self.stopped_because = reason
        self.stops += 1
        self.recent_stops += 1

    def causes(self) -> Iterable[Cause]:
        if self.recent_limit_hits:
            yield Cause(WARN, 'limit', 'limits are exceeded', self.recent_limit_hits)
        if self.stopped_because:
            text = f'the output is held back: {self.stopped_because}'
            yield Cause(ERROR, 'stop', text, self.recent_stops)

    def values(self, interval: float) -> dict[str, object]:
        """Values for the report, those of limits apart; starts a new interval."""
        values = {
            'published': self.published,
            'rate [Hz]': f'{self.recent_published / interval:.1f}',
            'held back because': self.stopped_because,
            'held back': self.stops,
        }
        self.recent_published = self.recent_limit_hits = self.recent_stops = 0
        self.stopped_because = ''
        return values

    def hits(self) -> dict[str, object]:
        return {
            f'samples beyond the limit of {what}': hits
            for what, hits in sorted(self.limit_hits.items())
        }


class Diagnostics:
    """Counters that any thread may feed; `report` turns them into a message.

    A level rises with the first report after its cause and falls after a quiet time, at least
    three reports long.

    Parameters
    ----------
    name : str
        Fully qualified name of the node.
    clock : callable, optional
        Returns a time that never runs back [s].
    memory : callable, optional
        Returns the memory of the process with the given id, or of this one [bytes].
    quiet_time : float, optional
        Time without a cause after which a level falls [s].
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[int | None], int | None] = resident_memory,
        quiet_time: float = QUIET_TIME,
    ) -> None:
        self._name = name.lstrip('/')
        self._now, self._memory, self._quiet_time = clock, memory, quiet_time
        self._lock = threading.Lock()
        self._inputs: dict[str, _Input] = {}
        self._last_report = self._now()
        self._hardware_id = ''
        self._wrenches: dict[str, str] = {}
        self._efforts = _Output(quiet_time)
        self._motors: _Output | None = None
        self._recent_compute_time = self._recent_longest = 0.0
        self._missed_ticks = self._recent_missed_ticks = 0
        self._estimate: dict[str, object] | None = None
        self._process: dict[str, object] | None = None
        self._process_alarm = Alarm(quiet_time)
        self._recent_restarts = 0
        self._waiting: tuple[int, int] | None = None
        self._node_alarm = Alarm(quiet_time)
        self._time_jumps = self._recent_time_jumps = 0
        self._clock_type = ''
        self._use_sim_time = False

    # Inputs

    def watch(self, topic: str, timeout: float) -> None:
        """Expect an input to go on once it has a rate.

        Parameters
        ----------
        topic : str
        timeout : float
            Longest silence that is usual [s]; 0: it need not go on.
        """
        with self._lock:
            self._input(topic).timeout = timeout

    def received(self, topic: str) -> None:
        """Count an input that was taken."""
        with self._lock:
            entry = self._input(topic)
            entry.received += 1
            entry.recent_received += 1
            entry.last_arrival = self._now()
            entry.sign_of_life(entry.last_arrival)

    def refused(self, topic: str, reason: str, kind: str = 'invalid') -> None:
        """Count an input that was not taken.

        Parameters
        ----------
        topic : str
        reason : str
        kind : str, optional
            One of `hodyn_ros.ros.tally.REFUSALS`; `refusal_kind` tells it of an error.
        """
        check_kind(kind)
        with self._lock:
            entry = self._input(topic)
            entry.refused[kind] += 1
            entry.recent_refused += 1
            entry.last_error = reason
            entry.sign_of_life(self._now())

    def arrived(self, topic: str, lateness: float, left_out: int) -> None:
        """Count an input to which the node turns.

        Parameters
        ----------
        topic : str
        lateness : float
            Time since its arrival [s].
        left_out : int
            How many before it never came to the node.
        """
        with self._lock:
            entry = self._input(topic)
            entry.arrived += 1
            entry.lateness.append(lateness)
            entry.left_out += left_out
            entry.recent_left_out += left_out

    def lost(self, topic: str, count: int) -> None:
        """Count inputs that the middleware says to have lost."""
        with self._lock:
            entry = self._input(topic)
            entry.lost += count
            entry.recent_lost += count

    def dropped(self, topic: str, count: int = 1) -> None:
        """Count samples of an input that came too late to be used."""
        with self._lock:
            entry = self._input(topic)
            entry.dropped += count
            entry.recent_dropped += count

    def gap(self, topic: str, length: float) -> None:
        """Count a gap between two samples of an input [s]."""
        with self._lock:
            self._add_gaps(self._input(topic), 1, length)

    def publishers(
        self, topic: str, names: Sequence[str], unheard: Sequence[str] = ()
    ) -> None:
        """Say who publishes an input, see `publisher_names`, and who does so unheard."""
        with self._lock:
            entry = self._input(topic)
            entry.publishers, entry.unheard = tuple(names), tuple(unheard)

    # Output

    def exceeded(self, limit_hits: Mapping[str, int]) -> None:
        """Count how many outputs have exceeded each limit."""
        with self._lock:
            self._efforts.exceed(limit_hits)

    def published(self, compute_time: float, limit_hits: Sequence[str] = ()) -> None:
        """Count an output, the time it took [s], and the limits that it exceeds."""
        with self._lock:
            self._efforts.publish(limit_hits)
            self._recent_compute_time += compute_time
            self._recent_longest = max(self._recent_longest, compute_time)

    def stopped(self, reason: str) -> None:
        """Note that an output was held back."""
        with self._lock:
            self._efforts.stop(reason)

    def motors_published(self, limit_hits: Sequence[str]) -> None:
        """Count an output about the motors and the limits that it exceeds."""
        with self._lock:
            self._motor_output().publish(limit_hits)

    def motors_stopped(self, reason: str) -> None:
        """Note that an output about the motors was held back."""
        with self._lock:
            self._motor_output().stop(reason)

    def _motor_output(self) -> _Output:
        if self._motors is None:
            self._motors = _Output(self._quiet_time)
        return self._motors

    def acting(self, wrenches: Mapping[str, str]) -> None:
        """Note the wrenches that act, by their links."""
        with self._lock:
            self._wrenches = dict(wrenches)

    def missed_ticks(self, count: int) -> None:
        """Count samples of the stream that were due and never computed."""
        with self._lock:
            self._missed_ticks += count
            self._recent_missed_ticks += count

    # Estimator, planning process, node

    def estimated(self, valid_order: int, delay: float, deviation: Sequence[float]) -> None:
        """Note the latest estimate.

        Parameters
        ----------
        valid_order : int
            Highest derivative that the estimator vouches for.
        delay : float
            [s]
        deviation : sequence of float
            Standard deviation of the noise of the measured positions, one for each joint.
        """
        with self._lock:
            self._estimate = {
                'valid order': valid_order,
                'delay [ms]': f'{1e3 * delay:.3f}',
                'noise, standard deviation': ' '.join(f'{value:.3g}' for value in deviation),
            }

    def process(
        self, state: str, restarts: int = 0, last_exit: str = '', pid: int | None = None
    ) -> None:
        """Note the state of the planning process.

        Parameters
        ----------
        state : str
            'off' (there is none), 'starting', 'running' or 'ended'.
        restarts : int, optional
            How often it was started again so far.
        last_exit : str, optional
            How it ended the last time.
        pid : int, optional
        """
        if state not in _PROCESS_LEVELS:
            raise ValueError(f'State is {state!r}, expected one of {", ".join(_PROCESS_LEVELS)}.')
        with self._lock:
            before = 0 if self._process is None else self._process['restarts']
            self._recent_restarts += max(restarts - before, 0)
            self._process = {
                'state': state, 'restarts': restarts, 'last exit': last_exit, 'pid': pid
            }

    def waiting(self, count: int, most: int) -> None:
        """Note how many requests of the service wait, and how many may."""
        with self._lock:
            self._waiting = (count, most)

    def time_jumped(self) -> None:
        """Count a jump of the node's clock."""
        with self._lock:
            self._time_jumps += 1
            self._recent_time_jumps += 1

    def clock(self, kind: str, use_sim_time: bool) -> None:
        """Say which clock the node follows."""
        with self._lock:
            self._clock_type, self._use_sim_time = kind, use_sim_time

    # Report

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
            now = self._now()
            interval = max(now - self._last_report, 1e-9)
            self._last_report = now
            self._hardware_id = robot.model.name if robot else ''
            statuses = [
                self._model_status(robot, description_error, in_preparation, algorithms),
                *(
                    self._input_status(topic, entry, interval, now)
                    for topic, entry in self._inputs.items()
                ),
                self._output_status(interval, now),
            ]
            if self._motors is not None:
                statuses.append(self._motor_status(self._motors, interval, now))
            if self._estimate is not None:
                statuses.append(self._estimator_status())
            if self._process is not None or self._waiting is not None:
                statuses.append(self._planning_status(now))
            statuses.append(self._node_status(now))
        return DiagnosticArray(status=statuses)

    def _input(self, topic: str) -> _Input:
        if topic not in self._inputs:
            self._inputs[topic] = _Input(self._quiet_time)
        return self._inputs[topic]

    @staticmethod
    def _add_gaps(entry: _Input, count: int, longest: float) -> None:
        entry.gaps += count
        entry.recent_gaps += count
        entry.longest_gap = max(entry.longest_gap, longest)
        entry.recent_gap = max(entry.recent_gap, longest)

    def _status(
        self, part: str, level: bytes, message: str, values: Mapping[str, object]
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
        # States that last, so the level need not be held.
        values: dict[str, object] = {'in preparation': 'yes' if in_preparation else 'no'}
        level, message = OK, 'model loaded'
        if robot is None and in_preparation:
            level, message = WARN, 'the model is being made ready'
        elif robot is None:
            level, message = ERROR, 'no valid robot description yet'
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
                level = WARN
                message = 'the latest description was refused; the one before stays in use'
        return self._status('model', level, message, values)

    def _input_status(
        self, topic: str, entry: _Input, interval: float, now: float
    ) -> DiagnosticStatus:
        fine = 'no input yet' if entry.received == 0 else 'input is taken'
        level, message = entry.alarm.report(_input_causes(topic, entry, now), now, fine)
        late = sorted(entry.lateness)
        age = '' if entry.last_arrival is None else f'{now - entry.last_arrival:.3f}'
        values: dict[str, object] = {
            'age of the last input [s]': age,
            'rate [Hz]': f'{entry.recent_received / interval:.1f}',
            'received': entry.received,
            'refused': sum(entry.refused.values()),
            'last error': entry.last_error,
            **{f'refused as {kind}': entry.refused[kind] for kind in REFUSALS},
            'lateness p50 [ms]': _milliseconds(late, 0.5),
            'lateness p99 [ms]': _milliseconds(late, 0.99),
            'left out': entry.left_out,
            'lost by the middleware': entry.lost,
            'dropped late samples': entry.dropped,
            'gaps': entry.gaps,
            'longest gap [s]': f'{entry.longest_gap:.3f}',
            'publishers': ' '.join(entry.publishers),
        }
        entry.lateness.clear()
        entry.recent_received = entry.recent_refused = entry.recent_dropped = 0
        entry.arrived = entry.recent_left_out = entry.recent_lost = 0
        entry.recent_gaps, entry.recent_gap = 0, 0.0
        return self._status(topic, level, message, values)

    def _output_status(self, interval: float, now: float) -> DiagnosticStatus:
        causes = []
        if self._recent_missed_ticks:
            causes.append(
                Cause(
                    WARN, 'tick', 'samples of the stream were missed', self._recent_missed_ticks
                )
            )
        output = self._efforts
        causes += output.causes()
        level, message = output.alarm.report(causes, now, 'ok')
        count = output.recent_published
        values = {
            **output.values(interval),
            'mean compute time [ms]': f'{1e3 * self._recent_compute_time / max(count, 1):.3f}',
            'longest compute time [ms]': f'{1e3 * self._recent_longest:.3f}',
            'missed samples of the stream': self._missed_ticks,
        }
        for link, state in self._wrenches.items():
            values[f'wrench on {link}'] = state
        values.update(output.hits())
        self._recent_compute_time = self._recent_longest = 0.0
        self._recent_missed_ticks = 0
        return self._status('joint_effort', level, message, values)

    def _motor_status(self, output: _Output, interval: float, now: float) -> DiagnosticStatus:
        level, message = output.alarm.report(list(output.causes()), now, 'ok')
        values = {**output.values(interval), **output.hits()}
        return self._status('motor_reference', level, message, values)

    def _estimator_status(self) -> DiagnosticStatus:
        order = self._estimate['valid order']
        return self._status(
            'estimator', OK, f'positions to derivative {order} are estimated', self._estimate
        )

    def _planning_status(self, now: float) -> DiagnosticStatus:
        causes, values = [], {}
        if self._process is not None:
            state, last_exit = self._process['state'], self._process['last exit']
            if self._recent_restarts:
                text = f'the process was started again, it had ended: {last_exit or "unknown"}'
                causes.append(Cause(WARN, 'restart', text, self._recent_restarts))
            if _PROCESS_LEVELS[state] != OK:
                text = f'the process is {state}'
                causes.append(Cause(_PROCESS_LEVELS[state], 'state', text, 0))
            pid = self._process['pid']
            values = {
                'process': state,
                'restarts': self._process['restarts'],
                'last exit': last_exit,
                'memory [MiB]': _mebibytes(None if pid is None else self._memory(pid)),
            }
            self._recent_restarts = 0
        if self._waiting is not None:
            count, most = self._waiting
            values.update({'waiting requests': count, 'most waiting requests': most})
            if count >= most:
                text = f'{count} requests wait, no more are taken'
                causes.append(Cause(WARN, 'waiting', text, 0))
        level, message = self._process_alarm.report(causes, now, 'ready')
        return self._status('planning', level, message, values)

    def _node_status(self, now: float) -> DiagnosticStatus:
        causes = []
        if self._recent_time_jumps:
            causes.append(Cause(WARN, 'jump', 'the clock jumped', self._recent_time_jumps))
        self._recent_time_jumps = 0
        level, message = self._node_alarm.report(causes, now, 'ok')
        values = {
            'memory [MiB]': _mebibytes(self._memory(None)),
            'clock': self._clock_type,
            'use_sim_time': 'true' if self._use_sim_time else 'false',
            'time jumps': self._time_jumps,
        }
        return self._status('node', level, message, values)


def _input_causes(topic: str, entry: _Input, now: float) -> Iterable[Cause]:
    if len(entry.publishers) > 1:
        count = {2: 'two'}.get(len(entry.publishers), str(len(entry.publishers)))
        names = ', '.join(sorted(entry.publishers))
        yield Cause(WARN, 'publishers', f'{count} publishers on {topic}: {names}', 0)
    for text in entry.unheard:
        yield Cause(WARN, 'unheard', text, 0)
    if entry.recent_left_out > _LEFT_OUT * (entry.arrived + entry.recent_left_out):
        text = 'samples were left out, newer ones had come'
        yield Cause(WARN, 'left out', text, entry.recent_left_out)
    if entry.recent_lost:
        yield Cause(WARN, 'lost', 'samples were lost by the middleware', entry.recent_lost)
    if entry.recent_dropped:
        yield Cause(WARN, 'late', 'samples came too late', entry.recent_dropped)
    if entry.recent_gaps:
        yield Cause(WARN, 'gap', f'a gap of {entry.recent_gap:.3f} s', entry.recent_gaps)
    if entry.recent_refused:
        level = WARN if entry.recent_received else ERROR
        text = f'input was refused: {entry.last_error}'
        yield Cause(level, 'refusal', text, entry.recent_refused)
    silence = entry.silence(now)
    if silence is not None:
        rate = 1.0 / max(statistics.median(entry.intervals), 1e-9)
        text = f'silent for {silence:.1f} s, came at {rate:.3g} Hz before'
        yield Cause(STALE, 'silence', text, 0 if entry.silent else 1)
        entry.silent = True


def _milliseconds(latenesses: Sequence[float], share: float) -> str:
    """Lateness that so many of the sorted ones do not exceed; empty if there is none."""
    if not latenesses:
        return ''
    return f'{1e3 * latenesses[math.ceil(share * len(latenesses)) - 1]:.3f}'


def _mebibytes(memory: int | None) -> str:
    return '' if memory is None else f'{memory / 2**20:.1f}'
