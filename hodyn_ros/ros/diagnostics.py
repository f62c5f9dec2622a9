"""Health of the node as diagnostic_msgs: what arrived, what was refused and why, what went out."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, qos_check_compatible
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo

from hodyn_ros.errors import HodynError, JointNameError, SizeError, StaleError
from hodyn_ros.ros.alarm import ERROR, OK, STALE, WARN, Alarm, Cause
from hodyn_ros.ros.answers import Robot

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

REFUSALS = ('too large', 'invalid', 'unknown joints', 'stale', 'busy', 'internal')
"""Why an input is refused."""

_PROCESS_LEVELS = {'off': OK, 'running': OK, 'starting': WARN, 'ended': ERROR}
"""States of the planning process."""


def refusal_kind(error: Exception) -> str:
    """Kind of refusal that an error stands for: one of `REFUSALS`."""
    for kind, name in (
        (JointNameError, 'unknown joints'),
        (SizeError, 'too large'),
        (StaleError, 'stale'),
    ):
        if isinstance(error, kind):
            return name
    return 'invalid' if isinstance(error, HodynError) else 'internal'


def missed_ticks(previous: int, now: int, period: int) -> int:
    """Count the ticks of a timer that were due between two that came.

    Parameters
    ----------
    previous, now : int
        Times of the two, by the clock of the timer [ns].
    period : int
        [ns]

    Returns
    -------
    int
        0 if they follow each other, or if time ran back.
    """
    # A tick may come late by up to half a period without one being missed.
    return max((2 * (now - previous) + period) // (2 * period) - 1, 0)


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


class _Part:
    """What has happened since the start, what since the report before, and the level of that."""

    def __init__(self, quiet_time: float) -> None:
        self.alarm = Alarm(quiet_time)
        self.total: Counter[str] = Counter()
        self.recent: Counter[str] = Counter()

    def add(self, what: str, count: int = 1) -> None:
        self.total[what] += count
        self.recent[what] += count


class _Input(_Part):
    def __init__(self, quiet_time: float) -> None:
        super().__init__(quiet_time)
        self.timeout = 0.0
        self.refused: Counter[str] = Counter()
        self.lateness: deque[float] = deque(maxlen=_LATENESSES)
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


class _Output(_Part):
    """What became of the messages of an output topic."""

    def __init__(self, quiet_time: float) -> None:
        super().__init__(quiet_time)
        self.limit_hits: Counter[str] = Counter()
        self.stopped_because = ''

    def exceed(self, limit_hits: Iterable[str] | Mapping[str, int]) -> None:
        hits = Counter(limit_hits)
        self.add('limit', hits.total())
        self.limit_hits.update(hits)

    def stop(self, reason: str) -> None:
        self.stopped_because = reason
        self.add('stop')

    def causes(self) -> Iterable[Cause]:
        if self.recent['limit']:
            yield Cause(WARN, 'limit', 'limits are exceeded', self.recent['limit'])
        if self.stopped_because:
            text = f'the output is held back: {self.stopped_because}'
            yield Cause(ERROR, 'stop', text, self.recent['stop'])

    def values(self, interval: float) -> dict[str, object]:
        """Values for the report, those of limits apart; starts a new interval."""
        values = {
            'published': self.total['published'],
            'rate [Hz]': f'{self.recent["published"] / interval:.1f}',
            'held back because': self.stopped_because,
            'held back': self.total['stop'],
        }
        self.recent.clear()
        self.stopped_because = ''
        return values

    def hits(self) -> dict[str, object]:
        return {
            f'samples beyond the limit of {what}': hits
            for what, hits in sorted(self.limit_hits.items())
        }


class Diagnostics:
    """Counters that the thread of the executor feeds; `report` turns them into a message.

    A level rises with the first report after its cause and falls after a quiet time.

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
        self._inputs: dict[str, _Input] = {}
        self._last_report = self._now()
        self._hardware_id = ''
        self._wrenches: dict[str, str] = {}
        self._efforts = _Output(quiet_time)
        self._motors = _Output(quiet_time)
        self._recent_compute_time = self._recent_longest = 0.0
        self._estimate: dict[str, object] | None = None
        self._process: dict[str, object] | None = None
        self._planning = _Part(quiet_time)
        self._waiting: tuple[int, int] | None = None
        self._node = _Part(quiet_time)
        self._clock_type = ''
        self._use_sim_time = False
        self._namesakes = 0

    # Inputs

    def watch(self, topic: str, timeout: float) -> None:
        """Expect an input to go on once it has a rate.

        Parameters
        ----------
        topic : str
        timeout : float
            Longest silence that is usual [s]; 0: it need not go on.
        """
        self._input(topic).timeout = timeout

    def received(self, topic: str) -> None:
        """Count an input that was taken."""
        entry = self._input(topic)
        entry.add('received')
        entry.last_arrival = self._now()
        entry.sign_of_life(entry.last_arrival)

    def refused(self, topic: str, reason: str, kind: str = 'invalid') -> None:
        """Count an input that was not taken.

        Parameters
        ----------
        topic : str
        reason : str
        kind : str, optional
            One of `REFUSALS`; `refusal_kind` tells it of an error.
        """
        if kind not in REFUSALS:
            raise ValueError(
                f'Kind of refusal is {kind!r}, expected one of {", ".join(REFUSALS)}.'
            )
        entry = self._input(topic)
        entry.refused[kind] += 1
        entry.add('refused')
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
        entry = self._input(topic)
        entry.add('arrived')
        entry.add('left out', left_out)
        entry.lateness.append(lateness)

    def lost(self, topic: str, count: int) -> None:
        """Count inputs that the middleware says to have lost."""
        self._input(topic).add('lost', count)

    def dropped(self, topic: str, count: int = 1) -> None:
        """Count samples of an input that came too late to be used."""
        self._input(topic).add('dropped', count)

    def gap(self, topic: str, length: float) -> None:
        """Count a gap between two samples of an input [s]."""
        entry = self._input(topic)
        entry.add('gap')
        entry.longest_gap = max(entry.longest_gap, length)
        entry.recent_gap = max(entry.recent_gap, length)

    def publishers(
        self, topic: str, names: Sequence[str], unheard: Sequence[str] = ()
    ) -> None:
        """Say who publishes an input, see `publisher_names`, and who does so unheard."""
        entry = self._input(topic)
        entry.publishers, entry.unheard = tuple(names), tuple(unheard)

    # Output

    def exceeded(self, limit_hits: Mapping[str, int]) -> None:
        """Count how many outputs have exceeded each limit."""
        self._efforts.exceed(limit_hits)

    def published(self, compute_time: float, limit_hits: Sequence[str] = ()) -> None:
        """Count an output, the time it took [s], and the limits that it exceeds."""
        self._efforts.add('published')
        if limit_hits:
            self._efforts.exceed(limit_hits)
        self._recent_compute_time += compute_time
        self._recent_longest = max(self._recent_longest, compute_time)

    def stopped(self, reason: str) -> None:
        """Note that an output was held back."""
        self._efforts.stop(reason)

    def motors_published(self, limit_hits: Sequence[str]) -> None:
        """Count an output about the motors and the limits that it exceeds."""
        self._motors.add('published')
        self._motors.exceed(limit_hits)

    def motors_stopped(self, reason: str) -> None:
        """Note that an output about the motors was held back."""
        self._motors.stop(reason)

    def acting(self, wrenches: Mapping[str, str]) -> None:
        """Note the wrenches that act, by their links."""
        self._wrenches = dict(wrenches)

    def missed_ticks(self, count: int) -> None:
        """Count samples of the stream that were due and never computed."""
        self._efforts.add('tick', count)

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
        before = 0 if self._process is None else self._process['restarts']
        self._planning.add('restart', max(restarts - before, 0))
        self._process = {
            'state': state, 'restarts': restarts, 'last exit': last_exit, 'pid': pid
        }

    def waiting(self, count: int, most: int) -> None:
        """Note how many requests of the service wait, and how many may."""
        self._waiting = (count, most)

    def time_jumped(self) -> None:
        """Count a jump of the node's clock."""
        self._node.add('jump')

    def clock(self, kind: str, use_sim_time: bool) -> None:
        """Say which clock the node follows."""
        self._clock_type, self._use_sim_time = kind, use_sim_time

    def namesakes(self, count: int) -> None:
        """Say how many other nodes have the name of this one."""
        self._namesakes = count

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
        if self._motors.total:
            statuses.append(self._motor_status(interval, now))
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
        total = entry.total
        fine = 'input is taken' if total['received'] else 'no input yet'
        level, message = entry.alarm.report(_input_causes(topic, entry, now), now, fine)
        late = sorted(entry.lateness)
        age = '' if entry.last_arrival is None else f'{now - entry.last_arrival:.3f}'
        values: dict[str, object] = {
            'age of the last input [s]': age,
            'rate [Hz]': f'{entry.recent["received"] / interval:.1f}',
            'received': total['received'],
            'refused': total['refused'],
            'last error': entry.last_error,
            **{f'refused as {kind}': entry.refused[kind] for kind in REFUSALS},
            'lateness p50 [ms]': _milliseconds(late, 0.5),
            'lateness p99 [ms]': _milliseconds(late, 0.99),
            'left out': total['left out'],
            'lost by the middleware': total['lost'],
            'dropped late samples': total['dropped'],
            'gaps': total['gap'],
            'longest gap [s]': f'{entry.longest_gap:.3f}',
            'publishers': ' '.join(entry.publishers),
        }
        entry.lateness.clear()
        entry.recent.clear()
        entry.recent_gap = 0.0
        return self._status(topic, level, message, values)

    def _output_status(self, interval: float, now: float) -> DiagnosticStatus:
        output, causes = self._efforts, []
        missed, count = output.recent['tick'], output.recent['published']
        if missed:
            causes.append(Cause(WARN, 'tick', 'samples of the stream were missed', missed))
        causes += output.causes()
        level, message = output.alarm.report(causes, now, 'ok')
        values = {
            **output.values(interval),
            'mean compute time [ms]': f'{1e3 * self._recent_compute_time / max(count, 1):.3f}',
            'longest compute time [ms]': f'{1e3 * self._recent_longest:.3f}',
            'missed samples of the stream': output.total['tick'],
        }
        for link, state in self._wrenches.items():
            values[f'wrench on {link}'] = state
        values.update(output.hits())
        self._recent_compute_time = self._recent_longest = 0.0
        return self._status('joint_effort', level, message, values)

    def _motor_status(self, interval: float, now: float) -> DiagnosticStatus:
        output = self._motors
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
            if restarts := self._planning.recent.pop('restart', 0):
                text = f'the process was started again, it had ended: {last_exit or "unknown"}'
                causes.append(Cause(WARN, 'restart', text, restarts))
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
        if self._waiting is not None:
            count, most = self._waiting
            values.update({'waiting requests': count, 'most waiting requests': most})
            if count >= most:
                text = f'{count} requests wait, no more are taken'
                causes.append(Cause(WARN, 'waiting', text, 0))
        level, message = self._planning.alarm.report(causes, now, 'ready')
        return self._status('planning', level, message, values)

    def _node_status(self, now: float) -> DiagnosticStatus:
        jumps = self._node.recent.pop('jump', 0)
        causes = [Cause(WARN, 'jump', 'the clock jumped', jumps)] if jumps else []
        if self._namesakes:
            text = f'{self._namesakes} more of this name: each input is answered by all of them'
            causes.append(Cause(WARN, 'name', text, 0))
        level, message = self._node.alarm.report(causes, now, 'ok')
        values = {
            'memory [MiB]': _mebibytes(self._memory(None)),
            'clock': self._clock_type,
            'use_sim_time': 'true' if self._use_sim_time else 'false',
            'time jumps': self._node.total['jump'],
        }
        return self._status('node', level, message, values)


def _input_causes(topic: str, entry: _Input, now: float) -> Iterable[Cause]:
    if len(entry.publishers) > 1:
        count = {2: 'two'}.get(len(entry.publishers), str(len(entry.publishers)))
        names = ', '.join(sorted(entry.publishers))
        yield Cause(WARN, 'publishers', f'{count} publishers on {topic}: {names}', 0)
    for text in entry.unheard:
        yield Cause(WARN, 'unheard', text, 0)
    recent = entry.recent
    is_much = recent['left out'] > _LEFT_OUT * (recent['arrived'] + recent['left out'])
    for level, kind, text in (
        (WARN, 'left out' * is_much, 'samples were left out, newer ones had come'),
        (WARN, 'lost', 'samples were lost by the middleware'),
        (WARN, 'dropped', 'samples came too late'),
        (WARN, 'gap', f'a gap of {entry.recent_gap:.3f} s'),
        (
            WARN if recent['received'] else ERROR,
            'refused',
            f'input was refused: {entry.last_error}',
        ),
    ):
        if recent[kind]:
            yield Cause(level, kind, text, recent[kind])
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
