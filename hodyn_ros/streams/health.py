"""Health of a node: counts of inputs and outputs, the last error, and the level of both.

A level is that of the time since the report before; numbers are from the start of the node.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from hodyn_ros.errors import HodynError
from hodyn_ros.streams.process_watch import ProcessWatch, resident_memory

if TYPE_CHECKING:
    from hodyn_ros.streams.robot_in_use import Robot

OK, WARN, ERROR, STALE = (bytes([number]) for number in range(4))
"""Levels, by the numbers of diagnostic_msgs/DiagnosticStatus."""

_SEVERITY = (OK, WARN, STALE, ERROR)

START_GRACE = 5.0  # s, within which a robot description is on its way to a node that starts

# An input is a stream after so many intervals within its timeout; only streams are missed.
_FEWEST_INTERVALS = 10

_LITTLE = (
    0.01  # share of samples left out that is no warning: every machine does so now and then
)

Report = tuple[bytes, str, dict[str, object]]
"""Level, message and values of a part of the node."""

Cause = tuple[bytes, str, object]
"""Level, text, and whether or how often it came."""

LOST, MISSED = 'lost by the middleware', 'missed samples of the stream'
LEFT_OUT, LATE, AHEAD = 'left out', 'dropped late samples', 'stamps far ahead'
RESCALED = 'samples where the speed has changed'
_NOT_KNOWN = 'not known: the middleware does not number messages'
_BEYOND = 'samples beyond the limit of'
OFF_LOOPS = 'measured off the loops: '
"""Begin of the count of a joint that is measured where closed loops do not allow it."""

# Counts of an input that are worth a warning.
_WARNINGS = {
    LEFT_OUT: 'samples were left out, newer ones had come',
    LOST: 'samples were lost by the middleware',
    LATE: 'samples came too late',
    'gaps': 'there was a gap between samples',
    AHEAD: 'stamps lie more than a minute ahead of the clock',
}


def reason(error: BaseException) -> str:
    """Text on an error for those who have asked."""
    return str(error) if isinstance(error, HodynError) else f'Internal error: {error!r}'


def worst(causes: Iterable[Cause], fine: str) -> tuple[bytes, str]:
    """Level and message of the first of the worst causes.

    Parameters
    ----------
    causes : iterable of Cause
        Those that did not come do not count.
    fine : str
        Message if none came.
    """
    came = [(OK, fine, 1), *(cause for cause in causes if cause[2])]
    level, text, times = max(came, key=lambda cause: _SEVERITY.index(cause[0]))
    return level, text if times in (1, True) else f'{text} ({times} times)'


class StreamHealth(NamedTuple):
    """State of a stream of motions.

    Attributes
    ----------
    state : str
    lost : str
        Behaviour of the robot that does not follow; empty if it follows.
    lead : float
        Time from the decision on a motion until a controller has it [s].
    waiting : int
        Trajectories that wait.
    longest : float
        Longest wait of one [s].
    """

    state: str
    lost: str
    lead: float
    waiting: int
    longest: float


class Health:
    """Numbers of events since the start, and since the report before.

    Attributes
    ----------
    total, recent : Counter
    last_error : str
        Why something was refused or held back the last time.
    """

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.recent: Counter[str] = Counter()
        self.last_error = ''

    def add(self, what: str, count: int = 1) -> None:
        """Count an event, or several."""
        self.total[what] += count
        self.recent[what] += count


class InputHealth(Health):
    """Messages of an input topic.

    Parameters
    ----------
    clock : callable
        Time that never goes back [s].

    Attributes
    ----------
    timeout : float
        Longest silence of an input that streams [s]; 0: any.
    publishers : list of str
        Names of the nodes that publish it.
    unheard : list of str
        Why some of them are not heard.
    is_numbered : bool
        Whether the middleware numbers messages, so that those left out can be counted.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._now = clock
        self.is_numbered = True
        self.timeout: float = 0.0
        self.publishers: list[str] = []
        self.unheard: list[str] = []
        self._latest: float | None = None
        self._intervals = 0  # in a row that were within the timeout

    def note(self, what: str) -> None:
        """Count a message that is `received` or `refused`."""
        now = self._now()
        latest, self._latest = self._latest, now
        is_stream = latest is not None and now - latest <= self.timeout
        self._intervals = self._intervals + 1 if is_stream else 0
        self.add(what)

    def report(self, topic: str, interval: float) -> Report:
        """State of the input; a new interval starts.

        Parameters
        ----------
        topic : str
        interval : float
            Time since the report before [s].

        Returns
        -------
        tuple of (bytes, str, dict)
            Level, message and values.
        """
        recent, publishers, latest = self.recent, self.publishers, self._latest
        age = None if latest is None else self._now() - latest
        values: dict[str, object] = {
            'age of the last input [s]': '' if age is None else f'{age:.3f}',
            'rate [Hz]': f'{recent["received"] / interval:.1f}',
            'last error': self.last_error,
            'publishers': ' '.join(publishers),
            **dict.fromkeys(('received', 'refused', LOST), 0),
            LEFT_OUT: 0 if self.is_numbered else _NOT_KNOWN,
            **self.total,
        }
        if recent[LEFT_OUT] <= _LITTLE * recent.total():
            del recent[LEFT_OUT]
        is_silent = age is not None and age > self.timeout
        causes: list[Cause] = [
            (
                WARN if recent['received'] else ERROR,
                f'input was refused: {self.last_error}',
                recent['refused'],
            ),
            (
                STALE,
                f'silent for {age or 0.0:.1f} s',
                is_silent and self._intervals >= _FEWEST_INTERVALS,
            ),
            *((WARN, text, recent[what]) for what, text in _WARNINGS.items()),
            *((WARN, text, True) for text in self.unheard),
            *((WARN, what, True) for what in recent if what.startswith(OFF_LOOPS)),
            (
                WARN,
                f'{len(publishers)} publishers on {topic}: {", ".join(sorted(publishers))}',
                len(publishers) > 1,
            ),
        ]
        self.recent: Counter[str] = Counter()
        fine = 'input is taken' if self.total['received'] else 'no input yet'
        return *worst(causes, fine), values


class OutputHealth(Health):
    """Messages of an output topic."""

    def __init__(self) -> None:
        super().__init__()
        self._longest: dict[str, float] = {}

    def published(
        self, compute_time: float = 0.0, stamp: int | None = None, now: int = 0
    ) -> None:
        """Count an output.

        Parameters
        ----------
        compute_time : float
            Time that it took [ms].
        stamp, now : int
            Instant of the output, if there is one, and time of its sending [ns].
        """
        self.total['published'] += 1
        self.recent['published'] += 1
        if stamp is not None:
            longest, age = self._longest, 1e-6 * (now - stamp)
            if age > longest.get('age', -math.inf):
                longest['age'] = age
            if compute_time > longest.get('compute time', 0.0):
                longest['compute time'] = compute_time

    def exceeded(self, limits: Mapping[str, int]) -> None:
        """Count outputs beyond limits, by the limit."""
        for what, count in limits.items():
            self.add(f'{_BEYOND} {what}', count)

    def stopped(self, why: str) -> None:
        """Note that an output was held back."""
        self.last_error = why
        self.add('held back')

    def report(self, interval: float) -> Report:
        """State of the output; a new interval starts.

        Parameters
        ----------
        interval : float
            Time since the report before [s].

        Returns
        -------
        tuple of (bytes, str, dict)
            Level, message and values.
        """
        recent, why = self.recent, self.last_error
        hits = sum(count for what, count in recent.items() if what.startswith(_BEYOND))
        values: dict[str, object] = {
            'rate [Hz]': f'{recent["published"] / interval:.1f}',
            'held back because': why,
            **dict.fromkeys(('published', 'held back'), 0),
            **self.total,
        }
        for what, longest in self._longest.items():
            values[f'longest {what} [ms]'] = f'{longest:.3f}'
        causes: tuple[Cause, ...] = (
            (ERROR, f'the output is held back: {why}', recent['held back']),
            (WARN, 'limits are exceeded', hits),
            (WARN, 'samples of the stream were missed', recent[MISSED]),
        )
        self.recent: Counter[str] = Counter()
        self._longest = {}
        return *worst(causes, 'ok'), values


class NodeHealth:
    """Counters that the thread of the executor feeds, and their reports.

    Parameters
    ----------
    clock : callable
        Time that never goes back [s].
    memory : callable
        Memory of a process [MiB] by its number, of this one for None.

    Attributes
    ----------
    robot_name : str
        Name of the robot in use; empty if there is none.
    wrenches : mapping of str to str
        State of those that act, by their links.
    output, motors : OutputHealth
        Efforts, or what else the node computes, and motors.
    estimate : tuple of (int, float, iterable of float), optional
        Latest one: highest known derivative, delay [s], noise of the joints.
    process : ProcessWatch, optional
        Of the process that plans.
    waiting : tuple of (int, int), optional
        Requests of the service that wait, and how many may.
    stream : callable, optional
        State of the stream of motions, a `StreamHealth`, when it is asked.
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
        self.robot_name: str = ''
        self.wrenches: Mapping[str, str] = {}
        self.output: OutputHealth = OutputHealth()
        self.motors: OutputHealth = OutputHealth()
        self.estimate: tuple[int, float, Iterable[float]] | None = None
        self.process: ProcessWatch | None = None
        self.waiting: tuple[int, int] | None = None
        self.stream: Callable[[], StreamHealth] | None = None
        self._restarts = 0  # that have been reported
        self._jumps = Health()
        self.use_sim_time = False
        self.namesakes = 0

    def input(self, topic: str) -> InputHealth:
        """Counters of an input."""
        if topic not in self._inputs:
            self._inputs[topic] = InputHealth(self._now)
        return self._inputs[topic]

    def received(self, topic: str) -> None:
        """Count an input that was taken."""
        self.input(topic).note('received')

    def refused(self, topic: str, why: str) -> None:
        """Count an input that was not taken."""
        found = self.input(topic)
        found.last_error = why
        found.note('refused')

    def dropped(self, topic: str, count: int = 1) -> None:
        """Count samples of an input that came too late to be used."""
        if count > 0:
            self.input(topic).add(LATE, count)

    def time_jumped(self) -> None:
        """Count a jump of the node's clock."""
        self._jumps.add('time jumps')

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
            Algorithms of the efforts, as values of the part `model`.

        Returns
        -------
        dict of str to tuple of (bytes, str, dict)
            Level, message and values by the part: `model`, each input by its topic,
            `joint_effort`, `motor_reference`, `estimator`, `planning` and `node`, as far as they
            are there.
        """
        now = self._now()
        interval, self._last_report = max(now - self._last_report, 1e-9), now
        self.robot_name = robot.model.name if robot else ''
        is_new = now - self._begin < START_GRACE
        reports = {'model': _model(robot, error, in_preparation, is_new, algorithms)}
        for topic, entry in self._inputs.items():
            reports[topic] = entry.report(topic, interval)
        *_, values = reports['joint_effort'] = self.output.report(interval)
        values.update((f'wrench on {link}', acts) for link, acts in self.wrenches.items())
        if self.motors.total:
            reports['motor_reference'] = self.motors.report(interval)
        if self.estimate is not None:
            order, delay, noise = self.estimate
            values = {
                'valid order': order,
                'delay [ms]': f'{1e3 * delay:.3f}',
                'noise, standard deviation': ' '.join(f'{value:.3g}' for value in noise),
            }
            text = f'positions to derivative {order} are estimated'
            reports['estimator'] = OK, text, values
        if self.process is not None or self.waiting is not None:
            reports['planning'] = self._planning()
        reports['node'] = self._node()
        return reports

    def _node(self) -> Report:
        jumps, others = self._jumps, self.namesakes
        text = f'{others} more of this name: each input is answered by all of them'
        causes: tuple[Cause, ...] = (
            (WARN, 'the clock jumped', jumps.recent['time jumps']),
            (WARN, text, others > 0),
        )
        jumps.recent.clear()
        values: dict[str, object] = {
            'memory [MiB]': self._memory(None),
            'use_sim_time': 'true' if self.use_sim_time else 'false',
            'time jumps': jumps.total['time jumps'],
        }
        return *worst(causes, 'ok'), values

    def _planning(self) -> Report:
        causes: list[Cause] = []
        values: dict[str, object] = {}
        if (watch := self.process) is not None:
            text = f'the process was started again, it had ended: {watch.last_exit}'
            causes += (
                (WARN, text, watch.restarts - self._restarts),
                (ERROR, watch.fault, bool(watch.fault)),
            )
            self._restarts = watch.restarts
            values = {
                'process': watch.state,
                'process id': watch.pid or '',
                'silent for [s]': f'{watch.silence:.1f}',
                'restarts': watch.restarts,
                'last exit': watch.last_exit,
                'memory [MiB]': self._memory(watch.pid) if watch.pid else '',
            }
        if self.stream is not None:
            state, lost, lead, count, longest = self.stream()
            causes.append((ERROR, lost, bool(lost)))
            values |= {
                'waiting trajectories': count,
                'longest wait of a trajectory [s]': f'{longest:.1f}',
                'stream of motions': state,
                'lead of motions [ms]': f'{1e3 * lead:.3g}',
            }
        if self.waiting is not None:
            count, most = self.waiting
            values['waiting requests'], values['most waiting requests'] = count, most
            text = f'{count} requests wait, no more are taken'
            causes.append((WARN, text, count >= most))
        return *worst(causes, 'ready'), values


def _model(
    robot: Robot | None,
    error: str,
    in_preparation: bool,
    is_new: bool,
    algorithms: Mapping[str, str],
) -> Report:
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
