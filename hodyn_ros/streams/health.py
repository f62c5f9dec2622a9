"""Health of a node: what arrived, what was refused and why, what went out, and the level of it."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hodyn_ros.errors import HodynError, JointNameError, SizeError, StaleError
from hodyn_ros.streams.process_watch import ENDED, SILENT, resident_memory

if TYPE_CHECKING:
    from hodyn_ros.streams.robot import Robot

OK, WARN, ERROR, STALE = (bytes([number]) for number in range(4))
"""Levels, by the numbers of diagnostic_msgs/DiagnosticStatus."""

# By severity, which is not the order of their numbers: silence is less than a failure.
_SEVERITY = (OK, WARN, STALE, ERROR)

QUIET_TIME = 3.0  # s, without a cause, after which a level falls
START_GRACE = 5.0  # s, within which a robot description is on its way to a node that starts

# An input has a rate once this many of its intervals are known, and has stopped after a silence
# that is many times the longest of the last ones.
_INTERVALS, _FEWEST_INTERVALS = 20, 10
_LONGEST_INTERVALS = 10.0

# Of an interval, at most so many latenesses are looked at. A larger share of samples left out is
# worth a warning: now and then one is, on every machine.
_LATENESSES = 10_000
_LITTLE = 0.01

Report = tuple[bytes, str, dict[str, object]]
"""Level, message and values of a part of the node."""

# Why an input is refused.
REFUSALS = ('too large', 'invalid', 'unknown joints', 'stale', 'busy', 'internal')

LOST, MISSED = 'lost by the middleware', 'missed samples of the stream'
LEFT_OUT = 'left out'
AHEAD = 'stamps far ahead'
_BEYOND = 'samples beyond the limit of'
OFF_LOOPS = 'measured off the loops: '
"""Begin of what is counted of a joint that is measured where closed loops do not allow it."""

# What is counted of an input and worth a warning.
_WARNINGS = {
    LEFT_OUT: 'samples were left out, newer ones had come',
    LOST: 'samples were lost by the middleware',
    'dropped late samples': 'samples came too late',
    'gaps': 'there was a gap between samples',
    AHEAD: 'stamps lie more than a minute ahead of the clock',
}

_KINDS = (
    (JointNameError, 'unknown joints'),
    (SizeError, 'too large'),
    (StaleError, 'stale'),
)


def refusal_kind(error: BaseException) -> str:
    """Kind of refusal that an error stands for: one of `REFUSALS`.

    Parameters
    ----------
    error : BaseException
        One that is no HodynError is internal.
    """
    other = 'invalid' if isinstance(error, HodynError) else 'internal'
    return next((name for kind, name in _KINDS if isinstance(error, kind)), other)


def reason(error: BaseException) -> str:
    """What is said of an error to those who have asked."""
    return str(error) if isinstance(error, HodynError) else f'Internal error: {error!r}'


class ProcessHealth(NamedTuple):
    """State of a process that works for the node.

    Attributes
    ----------
    state : str
        Of `ProcessWatch`.
    restarts : int
    last_exit : str
    pid : int, optional
    silence : float
        Since when nothing was heard of it [s]
    """

    state: str
    restarts: int
    last_exit: str
    pid: int | None
    silence: float = 0.0

    def fault(self) -> str:
        """What keeps it from its work; empty if nothing does."""
        if self.state == SILENT:
            return f'planning does not answer since {self.silence:.1f} s'
        return 'the process has ended' if self.state == ENDED else ''


class StreamHealth(NamedTuple):
    """State of a stream of motions.

    Attributes
    ----------
    state : str
    lost : str
        What the robot does instead of following; empty if it follows.
    lead : float
        Time from the decision on a motion until a controller has it [s]
    """

    state: str
    lost: str
    lead: float


class Cause(NamedTuple):
    """What is worth a warning, if it came at all."""

    level: bytes
    text: str
    times: int = 1


class Health:
    """What has happened since the start, what since the report before, and the level of that.

    A level rises at once and falls after a quiet time, so that it does not flicker.
    """

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.recent: Counter[str] = Counter()
        self._held = Cause(OK, '')
        self._until = 0.0

    def add(self, what: str, count: int = 1) -> None:
        """Count something."""
        self.total[what] += count
        self.recent[what] += count

    def level(self, causes: Iterable[Cause], now: float, fine: str) -> tuple[bytes, str]:
        """Level of what has happened; a new interval begins.

        Parameters
        ----------
        causes : iterable of Cause
            Of the interval; those that came zero times do not count.
        now : float
            Of a clock that never goes back [s].
        fine : str
            Message if nothing is worth a warning.

        Returns
        -------
        level : bytes
        message : str
            Of the worst cause, also of one that is no more than `QUIET_TIME` old.
        """
        held = self._held if now < self._until else Cause(OK, fine)
        present = [*(cause for cause in causes if cause.times), held]
        worst = max(present, key=lambda cause: _SEVERITY.index(cause.level))
        text = f'{worst.text} ({worst.times} times)' if worst.times > 1 else worst.text
        if worst is not held:
            # Silence that is over is no silence any more, but it was worth a warning.
            self._held = Cause(WARN if worst.level == STALE else worst.level, text)
            self._until = now + QUIET_TIME
        self.recent.clear()
        return worst.level, text


class InputHealth(Health):
    """What became of the messages of an input topic.

    Parameters
    ----------
    clock : callable
        Time that never goes back [s].

    Attributes
    ----------
    timeout : float
        Longest silence that is expected of an input with a rate [s]; 0: any.
    publishers : list of str
        Names of the nodes that publish it.
    unheard : list of str
        Why some of them are not heard.
    refused : Counter
        By the kind of refusal.
    last_error : str
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._now = clock
        self.timeout = 0.0
        self.publishers: list[str] = []
        self.unheard: list[str] = []
        self.refused: Counter[str] = Counter()
        self.last_error = ''
        self._lateness: deque[float] = deque(maxlen=_LATENESSES)
        self._last_taken: float | None = None
        self._last_sign: float | None = None  # of life: also of one that was refused
        self._intervals: deque[float] = deque(maxlen=_INTERVALS)
        self._is_silent = False

    def arrived(self, late: int, left_out: int, is_taken: bool) -> None:
        """Count a message.

        Parameters
        ----------
        late : int
            From when the middleware received it until now [ns].
        left_out : int
            How many before it were left out for newer ones.
        is_taken : bool
            Otherwise it is refused, or what becomes of it is said later.
        """
        self.recent['arrived'] += 1
        if left_out:
            self.add(LEFT_OUT, left_out)
        self._lateness.append(late * 1e-9)
        if is_taken:
            self.sign_of_life(is_taken=True)

    def refuse(self, why: str, kind: str) -> None:
        """Count a message that is not taken, by the kind of refusal."""
        self.last_error = why
        self.refused[kind] += 1
        self.add('refused')
        self.sign_of_life(is_taken=False)

    def sign_of_life(self, is_taken: bool) -> None:
        """Note that something has come, and count it if it is taken."""
        now = self._now()
        if self._is_silent:
            self._intervals.clear()
            self._is_silent = False
        elif self._last_sign is not None:
            self._intervals.append(now - self._last_sign)
        self._last_sign = now
        if is_taken:
            self.total['received'] += 1
            self.recent['received'] += 1
            self._last_taken = now

    def _causes(self, topic: str, now: float) -> Iterable[Cause]:
        recent, publishers = self.recent, self.publishers
        level = WARN if recent['received'] else ERROR
        yield Cause(level, f'input was refused: {self.last_error}', recent['refused'])
        silence, intervals = now - (self._last_sign or now), self._intervals
        if self.timeout > 0.0 and len(intervals) >= _FEWEST_INTERVALS:
            if silence > max(self.timeout, _LONGEST_INTERVALS * max(intervals)):
                self._is_silent = True
                rate = len(intervals) / max(sum(intervals), 1e-9)
                yield Cause(
                    STALE, f'silent for {silence:.1f} s, came at {rate:.3g} Hz before'
                )
        is_little = recent[LEFT_OUT] <= _LITTLE * (recent['arrived'] + recent[LEFT_OUT])
        for what, text in _WARNINGS.items():
            yield Cause(WARN, text, 0 if what == LEFT_OUT and is_little else recent[what])
        yield from (Cause(WARN, text) for text in self.unheard)
        yield from (Cause(WARN, what) for what in recent if what.startswith(OFF_LOOPS))
        if len(publishers) > 1:
            names = ', '.join(sorted(publishers))
            yield Cause(WARN, f'{len(publishers)} publishers on {topic}: {names}')

    def report(self, topic: str, interval: float, now: float) -> Report:
        """State of the input; a new interval starts.

        Parameters
        ----------
        topic : str
        interval : float
            Since the report before [s].
        now : float
            Of the clock [s].

        Returns
        -------
        tuple of (bytes, str, dict)
            Level, message and values.
        """
        late, last = sorted(self._lateness), self._last_taken
        values: dict[str, object] = {
            'age of the last input [s]': '' if last is None else f'{now - last:.3f}',
            'rate [Hz]': f'{self.recent["received"] / interval:.1f}',
            'last error': self.last_error,
            'publishers': ' '.join(self.publishers),
        }
        for share in (50, 99):  # so many of 100 are no later
            place = math.ceil(share / 100 * len(late)) - 1
            values[f'lateness p{share} [ms]'] = f'{1e3 * late[place]:.3f}' if late else ''
        values.update((f'refused as {kind}', self.refused[kind]) for kind in REFUSALS)
        values.update(
            (what, self.total[what]) for what in ('received', 'refused', *_WARNINGS)
        )
        values.update(item for item in self.total.items() if item[0].startswith(OFF_LOOPS))
        self._lateness.clear()
        fine = 'input is taken' if self.total['received'] else 'no input yet'
        return *self.level(self._causes(topic, now), now, fine), values


class OutputHealth(Health):
    """What became of the messages of an output topic."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped_because = ''
        self._compute_time = self._longest = 0.0
        self._stamp: int | None = None
        self._age, self._period = -math.inf, 0.0

    def published(
        self,
        compute_time: float,
        limit_hits: Sequence[str] = (),
        stamp: int | None = None,
        now: int = 0,
    ) -> None:
        """Count an output.

        Parameters
        ----------
        compute_time : float
            That it took [s].
        limit_hits : sequence of str
            Limits that it exceeds.
        stamp, now : int
            Of the instant that it is for, if there is one, and when it is sent [ns].
        """
        self.total['published'] += 1
        self.recent['published'] += 1
        self._compute_time += compute_time
        self._longest = max(self._longest, compute_time)
        if limit_hits:
            self.exceeded(Counter(limit_hits))
        if stamp is not None:
            self._age = max(self._age, 1e-6 * (now - stamp))
            if self._stamp is not None:
                self._period = max(self._period, 1e-6 * (stamp - self._stamp))
            self._stamp = stamp

    def exceeded(self, limit_hits: Mapping[str, int]) -> None:
        """Count how many outputs have exceeded limits.

        Parameters
        ----------
        limit_hits : mapping of str to int
            Numbers of outputs by the limit.
        """
        for what, count in limit_hits.items():
            self.total[f'{_BEYOND} {what}'] += count
            self.recent['hits'] += count

    def stopped(self, why: str) -> None:
        """Note that an output was held back."""
        self._stopped_because = why
        self.add('held back')

    def report(self, interval: float, now: float) -> Report:
        """State of the output; a new interval starts.

        Parameters
        ----------
        interval : float
            Since the report before [s].
        now : float
            Of a clock that never goes back [s].

        Returns
        -------
        tuple of (bytes, str, dict)
            Level, message and values.
        """
        recent, total, why = self.recent, self.total, self._stopped_because
        mean = self._compute_time / max(recent['published'], 1)
        values: dict[str, object] = {
            'published': total['published'],
            'rate [Hz]': f'{recent["published"] / interval:.1f}',
            'held back because': why,
            'held back': total['held back'],
            'mean compute time [ms]': f'{1e3 * mean:.3f}',
            'longest compute time [ms]': f'{1e3 * self._longest:.3f}',
            MISSED: total[MISSED],
            **{what: total[what] for what in sorted(total) if what.startswith(_BEYOND)},
        }
        if self._age > -math.inf:
            values['longest age [ms]'] = f'{self._age:.3f}'
            values['longest period [ms]'] = f'{self._period:.3f}'
        causes = (
            Cause(ERROR, f'the output is held back: {why}', recent['held back']),
            Cause(WARN, 'limits are exceeded', recent['hits']),
            Cause(WARN, 'samples of the stream were missed', recent[MISSED]),
        )
        self._stopped_because, self._compute_time, self._longest = '', 0.0, 0.0
        self._age, self._period = -math.inf, 0.0
        return *self.level(causes, now, 'ok'), values


class NodeHealth:
    """Counters that the thread of the executor feeds; `reports` says what they show.

    Parameters
    ----------
    clock : callable
        Time that never goes back [s].
    memory : callable
        Memory of a process [MiB] by its number, of this one for None.

    Attributes
    ----------
    robot_name : str
        Of the robot in use; empty if there is none.
    wrenches : mapping of str to str
        State of those that act, by their links.
    output, motors : OutputHealth
        Of the efforts, or what else the node computes, and of the motors.
    estimate : tuple of (int, float, iterable of float), optional
        Latest one: highest known derivative, delay [s], noise of the joints.
    process : ProcessHealth, optional
        Of the process that plans.
    waiting : tuple of (int, int), optional
        Requests of the service that wait, and how many may.
    waiting_trajectories : tuple of (int, float)
        How many wait, and the longest wait of one [s].
    stream : StreamHealth, optional
    use_sim_time : bool
    namesakes : int
        Other nodes with the name of this one.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[int | None], str] = resident_memory,
    ) -> None:
        self._now, self._memory = clock, memory
        self._inputs: dict[str, InputHealth] = {}
        self._last_report = self._begin = self._now()
        self.robot_name = ''
        self.wrenches: Mapping[str, str] = {}
        self.output = OutputHealth()
        self.motors = OutputHealth()
        self.estimate: tuple[int, float, Iterable[float]] | None = None
        self.process: ProcessHealth | None = None
        self.waiting: tuple[int, int] | None = None
        self.waiting_trajectories: tuple[int, float] = (0, 0.0)
        self.stream: StreamHealth | None = None
        self._planning, self._node = Health(), Health()
        self.use_sim_time = False
        self.namesakes = 0

    def input(self, topic: str) -> InputHealth:
        """Counters of an input."""
        if topic not in self._inputs:
            self._inputs[topic] = InputHealth(self._now)
        return self._inputs[topic]

    def received(self, topic: str) -> None:
        """Count an input that was taken."""
        self.input(topic).sign_of_life(is_taken=True)

    def refused(self, topic: str, reason: str, kind: str = 'invalid') -> None:
        """Count an input that was not taken, by the kind of refusal, one of `REFUSALS`."""
        self.input(topic).refuse(reason, kind)

    def dropped(self, topic: str, count: int = 1) -> None:
        """Count samples of an input that came too late to be used."""
        self.input(topic).add('dropped late samples', max(count, 0))

    def time_jumped(self) -> None:
        """Count a jump of the node's clock."""
        self._node.add('time jumps')

    def reports(
        self,
        robot: Robot | None,
        error: str,
        in_preparation: bool,
        algorithms: Mapping[str, str],
    ) -> dict[str, Report]:
        """State of all parts; a new interval starts.

        Parameters
        ----------
        robot : Robot, optional
            In use.
        error : str
            Why another description is refused; empty if none is.
        in_preparation : bool
            Whether a robot is being made ready.
        algorithms : mapping of str to str
            What computes the efforts, as values of the part `model`.

        Returns
        -------
        dict of str to tuple of (bytes, str, dict)
            Level, message and values by the part: `model`, each input by its topic,
            `joint_effort`, `motor_reference`, `estimator`, `planning` and `node`, as far as they
            are there.
        """
        now = self._now()
        interval = max(now - self._last_report, 1e-9)
        self._last_report = now
        self.robot_name = robot.model.name if robot else ''
        is_new = now - self._begin < START_GRACE
        reports = {'model': _model(robot, error, in_preparation, is_new, algorithms)}
        for topic, entry in self._inputs.items():
            reports[topic] = entry.report(topic, interval, now)
        *_, values = reports['joint_effort'] = self.output.report(interval, now)
        values.update((f'wrench on {link}', acts) for link, acts in self.wrenches.items())
        if self.motors.total:
            *_, values = reports['motor_reference'] = self.motors.report(interval, now)
            for what in ('mean compute time [ms]', 'longest compute time [ms]', MISSED):
                del values[what]
        if self.estimate is not None:
            order, delay, deviations = self.estimate
            reports['estimator'] = (
                OK,
                f'positions to derivative {order} are estimated',
                {
                    'valid order': order,
                    'delay [ms]': f'{1e3 * delay:.3f}',
                    'noise, standard deviation': ' '.join(
                        f'{value:.3g}' for value in deviations
                    ),
                },
            )
        if self.process is not None or self.waiting is not None:
            reports['planning'] = self._planning_report(now)
        reports['node'] = self._node_report(now)
        return reports

    def _node_report(self, now: float) -> Report:
        jumps, others = 'time jumps', self.namesakes
        text = f'{others} more of this name: each input is answered by all of them'
        causes = (
            Cause(WARN, 'the clock jumped', self._node.recent[jumps]),
            Cause(WARN, text, min(others, 1)),
        )
        return (
            *self._node.level(causes, now, 'ok'),
            {
                'memory [MiB]': self._memory(None),
                'use_sim_time': 'true' if self.use_sim_time else 'false',
                jumps: self._node.total[jumps],
            },
        )

    def _planning_report(self, now: float) -> Report:
        causes: list[Cause] = []
        values: dict[str, object] = {}
        if self.process is not None:
            state, restarts, last_exit, pid, silence = self.process
            self._planning.add('restarts', restarts - self._planning.total['restarts'])
            text = f'the process was started again, it had ended: {last_exit}'
            causes.append(Cause(WARN, text, self._planning.recent['restarts']))
            fault = self.process.fault()
            causes.append(Cause(ERROR, fault, int(bool(fault))))
            count, longest = self.waiting_trajectories
            values = {
                'process': state,
                'process id': '' if pid is None else pid,
                'silent for [s]': f'{silence:.1f}',
                'restarts': restarts,
                'last exit': last_exit,
                'memory [MiB]': '' if pid is None else self._memory(pid),
                'waiting trajectories': count,
                'longest wait of a trajectory [s]': f'{longest:.1f}',
            }
        if self.stream is not None:
            state, lost, lead = self.stream
            causes.append(Cause(ERROR, lost, int(bool(lost))))
            values['stream of motions'] = state
            values['lead of motions [ms]'] = f'{1e3 * lead:.3g}'
        if self.waiting is not None:
            count, most = self.waiting
            values['waiting requests'], values['most waiting requests'] = count, most
            text = f'{count} requests wait, no more are taken'
            causes.append(Cause(WARN, text, int(count >= most)))
        return *self._planning.level(causes, now, 'ready'), values


def _model(
    robot: Robot | None,
    error: str,
    in_preparation: bool,
    is_new: bool,
    algorithms: Mapping[str, str],
) -> Report:
    # States that last, so the level need not be held.
    values: dict[str, object] = {'in preparation': 'yes' if in_preparation else 'no'}
    level, message = ERROR, 'no valid robot description yet'
    if robot is not None:
        level, message, model = OK, 'model loaded', robot.model
        values.update(algorithms, robot=model.name, joints=' '.join(model.joint_names))
        values['base link'], values['tip link'] = model.base_link, model.tip_link or ''
        values.update((f'warning {k}', text) for k, text in enumerate(model.warnings))
    elif in_preparation:
        level, message = WARN, 'the model is being made ready'
    elif is_new and not error:
        level = WARN
    if error:
        values['refused description'] = error
        if robot is not None:
            level = WARN
            message = 'the latest description was refused; the one before stays in use'
    return level, message, values
