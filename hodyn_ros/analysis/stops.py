"""Why a robot stopped: which limit its recorded commands or measurements exceeded first, and how.

Commands are differenced sample by sample, as the controller of the robot does it; whatever exceeds
a limit is a cause, certain if rounding and noise of the recording cannot explain it. Causes are
told by their traces: repeated commands, jumps, steps of velocity or acceleration, a motion that is
too fast. The most probable one comes first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from hodyn_ros.analysis.recorded_signals import (
    FEWEST,
    MOTION,
    Recorded,
    Signal,
    clock_of,
    computed_signals,
    differenced,
    measured_signals,
    moves,
    repeats,
    resolution_of,
)
from hodyn_ros.analysis.unlimited import find_unlimited, no_limit
from hodyn_ros.checks import Array
from hodyn_ros.errors import MotionError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed, name_of

SOURCES = ('commanded', 'measured', 'computed')

_TOGETHER = 10  # samples within which excesses have one cause
_SHORT = 4  # samples that the differences of a single step reach over
_LONG = 50  # samples from which on noise is no single step
_RESPONSE = 0.05  # s, until measurements follow commands
_LAST = 0.1  # s before the end within which a cause is the one that ended the recording
_USUAL = 0.005  # rad or m, between commands and measurements of a robot under load
_SLOW = 0.005  # s, period from which on a robot may take commands faster than the recording shows

# Kinds of what lasts, by the first of these quantities that exceeds its limit.
_LASTING = {
    'velocity': 'motion too fast',
    'acceleration': 'motion too fast',
    'jerk': 'motion too fast',
    'position': 'out of range',
    'effort': 'torque too large',
    'effort_dot': 'torque too fast',
}
_ADVICE = {
    'motion too fast': 'The commanded motion is too fast for its limits: hodyn retime finds a '
    'timing that keeps them.',
    'out of range': 'The commands leave the range of {joint}: plan another path.',
    'torque too large': 'The commanded torque of {joint} is larger than its limit: lower gains or '
    'speed, or clamp it.',
    'torque too fast': 'The commanded torque of {joint} changes by more than {most:.3g} N m or N '
    'in a cycle: lower gains, or filter what they multiply.',
    'jump': 'The command of {joint} jumps by {size:.3g} rad or m: begin each motion where the one '
    'before ends, and let no inverse kinematics change its solution.',
    'velocity step': 'The velocity of {joint} steps by {size:.3g} rad/s or m/s: plan from the '
    'velocity that there is, within a limit of acceleration.',
    'acceleration step': 'The acceleration of {joint} steps: plan within a limit of jerk.',
    'torque step': 'The commanded torque of {joint} steps by {size:.3g} N m or N, at most '
    '{most:.3g} are allowed in a cycle: ramp it, or limit its rate.',
    'torque of the model': 'By the model the commanded motion needs more than the limit: hodyn '
    'retime finds a timing that keeps it; a payload belongs into the model.',
}


class Excess(NamedTuple):
    """The worst sample of a joint beyond a limit."""

    quantity: str
    joint_name: str
    source: str
    """See `Signal`."""
    time: float
    """[s]"""
    value: float
    limit: float
    """With its sign."""
    factor: float
    """Value over limit; of positions distances from the middle of the range."""


class Undecided(NamedTuple):
    """A limit of which noise or rounding of a recording hides whether it is kept."""

    quantity: str
    source: str
    """See `Signal`."""
    joint_names: tuple[str, ...]
    are_all: bool
    """Whether these are all joints of the robot."""

    @property
    def text(self) -> str:
        """Part of a sentence."""
        whose = 'all joints' if self.are_all else listed(self.joint_names)
        return f'{self.source} {name_of(self.quantity)} of {whose}'


@dataclass(frozen=True)
class StopCause:
    """What may have stopped the robot."""

    kind: str
    """Such as 'missed cycle'."""
    time: float
    """When it begins [s]."""
    end: float
    """When the excess ends [s]."""
    excesses: tuple[Excess, ...]
    """The worst of each quantity and source: commanded first, then measured and computed."""
    is_certain: bool
    """Whether a limit is exceeded, whatever rounding and noise did to the recording."""
    advice: str
    """What happened, and what to do."""

    @property
    def factor(self) -> float:
        """Of the worst excess, 0 without one."""
        return self.excesses[0].factor if self.excesses else 0.0


@dataclass(frozen=True, eq=False)
class StopAnalysis:
    """Causes for which a robot may have stopped; see `find_stop_causes`."""

    causes: tuple[StopCause, ...]
    """Most probable first."""
    undecided: tuple[Undecided, ...]
    """Limits that are not certainly exceeded, and not certainly kept."""
    signals: tuple[Signal, ...]
    """What was compared with limits."""
    period: float
    """Of the commands, without them of the measurements [s]."""
    remarks: tuple[str, ...]
    """What could not be told."""
    deviation: Excess | None
    """Where measured positions are farthest from the commands, without a limit."""

    @property
    def verdict(self) -> Literal['exceeded', 'undecided', 'kept']:
        """On the limits that are known."""
        if any(cause.is_certain for cause in self.causes):
            return 'exceeded'
        return 'undecided' if self.causes or self.undecided else 'kept'


class _Event(NamedTuple):
    """Consecutive samples of a joint beyond a limit."""

    first: float
    last: float
    excess: Excess

    @property
    def is_measured(self) -> bool:
        return self.excess.source == 'measured'


def find_stop_causes(
    model: RobotModel,
    limits: MotionLimits,
    commanded: Recorded | None = None,
    measured: Recorded | None = None,
) -> StopAnalysis:
    """Find what may have stopped a robot, in a recording of its commands, measurements, or both.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    commanded : Recorded, optional
        What the robot was sent, each sample. Rates are differences of consecutive samples, which
        are a clock period apart even if their stamps jitter.
    measured : Recorded, optional
        At instants of its own on the same clock; smoothed, and exceeding a limit if by more than
        two standard deviations.

    Returns
    -------
    StopAnalysis

    Raises
    ------
    MotionError
        If there is no recording, or one of fewer than five samples, or shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Recorded, find_stop_causes, motion_limits
    >>> model = RobotModel.from_urdf('two_link')
    >>> times = 0.001 * np.arange(1000)
    >>> q = 0.3 * np.sin(2.0 * times)[:, None] ** 2 * np.ones(2)
    >>> q[500] = q[499]
    >>> limits = motion_limits(model, {'shoulder': {'acceleration': 15.0}})
    >>> find_stop_causes(model, limits, Recorded(times, q)).causes[0].kind
    'missed cycle'
    """
    given = [(commanded, 'commands'), (measured, 'measurements')]
    if commanded is None and measured is None:
        raise MotionError('There is no recording; give commands, measurements, or both.')
    for recording, name in given:
        if recording is not None:
            _check(model, name, recording)
    unlimited = find_unlimited(model, limits)
    remarks = [no_limit(unlimited)] * bool(unlimited)
    causes: list[StopCause] = []
    signals: list[Signal] = []
    commands, deviation, period = None, None, 0.0
    if commanded is not None:
        stream, causes = _without_holds(model, limits, commanded)
        commands = _Commands(model, limits, stream, measured)
        signals += commands.signals
        period = commands.clock.period
        if period > _SLOW:
            remarks.append(
                f'The commands are {1e3 * period:.3g} ms apart; what a robot with a faster clock '
                'was sent in between is not in the recording.'
            )
    if measured is not None:
        signals += measured_signals(limits, measured)
        period = period or float(np.median(np.diff(measured.times)))
    causes += _causes(_Events(model, signals, period), commands)
    if commanded is not None and measured is not None:
        deviation = _deviation(model, commanded, measured)
        if deviation is None:
            remarks.append(
                'Commands and measurements have no time in common: each is looked at by itself.'
            )
    undecided = tuple(_undecided(model, signals))
    return StopAnalysis(
        _ranked(causes), undecided, tuple(signals), period, tuple(remarks), deviation
    )


def _check(model: RobotModel, name: str, recording: Recorded) -> None:
    N = len(recording.times)
    if N < FEWEST:
        raise MotionError(f'The {name} have {N} samples, expected at least {FEWEST}.')
    for what, values in recording._asdict().items():
        shape = (N,) if what == 'times' else (N, model.n_joints)
        if values is not None and values.shape != shape:
            raise MotionError(f'The {name}: {what} has shape {values.shape}, expected {shape}.')


def _events(model: RobotModel, signal: Signal) -> Iterator[_Event]:
    """Runs of samples that certainly exceed a limit, joint by joint."""
    beyond = signal.beyond() - signal.error
    for j, name in enumerate(model.joint_names):
        rows = np.flatnonzero(beyond[:, j] > 0.0)
        lower, upper = float(signal.lower[j]), float(signal.upper[j])
        for run in np.split(rows, 1 + np.flatnonzero(np.diff(rows) > _TOGETHER)):
            if not len(run):
                continue
            worst = int(run[beyond[run, j].argmax()])
            first, last, time = signal.times[[run[0], run[-1], worst]].tolist()
            value = float(signal.values[worst, j])
            limit = upper if value - upper > lower - value else lower
            middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
            if not np.isfinite(half):  # of one side alone
                middle, half = limit - abs(limit), abs(limit)
            factor = abs(value - middle) / max(half, 1e-12)
            excess = Excess(signal.quantity, name, signal.source, time, value, limit, factor)
            yield _Event(first, last, excess)


def _undecided(model: RobotModel, signals: Sequence[Signal]) -> Iterator[Undecided]:
    """Limits that a signal is as near to as it may be off, and nowhere certainly beyond."""
    for signal in signals:
        beyond = signal.beyond()
        is_open = (beyond > -signal.error).any(axis=0) & ~(beyond > signal.error).any(axis=0)
        if is_open.any():
            names = tuple(np.array(model.joint_names)[is_open].tolist())
            yield Undecided(signal.quantity, signal.source, names, bool(is_open.all()))


def _worst(events: Iterable[_Event]) -> tuple[Excess, ...]:
    """Worst excess of each quantity and source, those of commands first."""
    found: dict[tuple[str, str], Excess] = {}
    for _, _, excess in events:
        key = excess.quantity, excess.source
        if key not in found or excess.factor > found[key].factor:
            found[key] = excess
    return tuple(sorted(found.values(), key=lambda e: (SOURCES.index(e.source), -e.factor)))


def _without_holds(
    model: RobotModel, limits: MotionLimits, commanded: Recorded
) -> tuple[Recorded, list[StopCause]]:
    """Commands without the samples that only repeat, if most do, and that as a cause."""
    c = commanded.position
    rows = np.flatnonzero(moves(c, resolution_of(c)))
    apart = np.diff(rows)
    is_still = (np.diff(c, axis=0) == 0.0).all(axis=1)
    stride = int(np.median(apart)) if len(rows) >= 2 * FEWEST else 0
    if stride < 2 or is_still.mean() < 0.4 or np.mean(apart == stride) < 0.6:
        return commanded, []
    clock = clock_of(commanded.times, c)
    signals = differenced(limits, 'commanded', commanded, clock, is_exact=True)
    worst = _worst(event for signal in signals for event in _events(model, signal))
    h, first = 1e3 * clock.period, float(commanded.times[rows[0] + 1])
    advice = (
        f'The recording has a command each {h:.3g} ms, but a new one each {stride * h:.3g} ms '
        f'only: if the robot takes one each {h:.3g} ms, each is a step. Interpolate between them.'
    )
    last = float(commanded.times[-1])
    cause = StopCause('held commands', first, last, worst, False, advice)
    return commanded.rows(np.unique(np.append(0, rows + 1))), [cause] * bool(worst)


def _instant(time: float) -> str:
    return f'{time:.4f}'.rstrip('0').rstrip('.') + ' s'


def _ranked(causes: Sequence[StopCause]) -> tuple[StopCause, ...]:
    """Most probable first: what is certain, and what came right before an end in motion."""
    ends = [cause for cause in causes if cause.kind == 'end in motion']
    last = ends[0].time if ends else np.inf

    def ended(cause: StopCause) -> bool:
        return cause.is_certain and 0.0 <= last - cause.end < _LAST

    if any(map(ended, causes)):  # the end follows from it
        causes = [cause for cause in causes if cause not in ends]

    def rank(cause: StopCause) -> tuple[object, ...]:
        source = [SOURCES.index(excess.source) for excess in cause.excesses[:1]]
        is_edge = cause.kind in ('start in motion', 'end in motion')
        return not cause.is_certain, not ended(cause), is_edge, source, -cause.factor, cause.time

    return tuple(sorted(causes, key=rank))


def _deviation(model: RobotModel, commanded: Recorded, measured: Recorded) -> Excess | None:
    """Largest distance of measured from commanded positions at instants of both."""
    distance = measured.position - _at(commanded, measured.times)
    if np.isnan(distance).all():
        return None
    row, j = np.unravel_index(int(np.nanargmax(np.abs(distance))), distance.shape)
    value, time = float(distance[row, j]), float(measured.times[row])
    return Excess('position', model.joint_names[j], 'measured', time, value, np.inf, np.nan)


def _at(commanded: Recorded, times: Array) -> Array:
    """Commanded positions (N, n) at other times, NaN outside of their own."""
    order = np.argsort(commanded.times, kind='stable')
    columns = commanded.position[order].T
    own = commanded.times[order]
    return np.stack([np.interp(times, own, x, np.nan, np.nan) for x in columns], axis=1)


class _Commands:
    """Signals of a stream of commands, and the traces that faults leave in it."""

    def __init__(
        self, model: RobotModel, limits: MotionLimits, stream: Recorded, measured: Recorded | None
    ) -> None:
        self.model, self.limits, self.stream, self.measured = model, limits, stream, measured
        self.times = stream.times
        self.clock = clock_of(stream.times, stream.position)
        self.own = differenced(limits, 'commanded', stream, self.clock)
        self.signals = [*self.own, *computed_signals(model, limits, self.own)]

    def repeated(self) -> Iterator[StopCause]:
        """Repeated commands, which are causes if limits are exceeded around them."""
        seen: set[int] = set()
        for values in self.stream.known('commanded').values():
            for row, count, makes_up in repeats(values, resolution_of(values)):
                if row in seen:
                    continue
                seen.add(row)
                first = float(self.times[row])
                last = float(self.times[min(row + count + 3, len(self.times) - 1)])
                more = f', as do {count - 1} more' * (count > 1)
                missed = 'a cycle was' if count == 1 else f'{count} cycles were'
                kind, then = 'missed cycle', f'the next one makes up for it: {missed} missed'
                if not makes_up:
                    kind = 'repeated command'
                    then = 'the motion goes on behind it: it stood still meanwhile'
                advice = (
                    f'The command at {_instant(first)} repeats the one before{more}, and {then}. '
                    f'{self._each_cycle()}'
                )
                yield StopCause(kind, first, last, (), True, advice)

    def _each_cycle(self) -> str:
        return (
            f'Commands must be sent each {1e3 * self.clock.period:.3g} ms, from a real-time '
            'process and without delays of the network.'
        )

    def edges(self) -> Iterator[StopCause]:
        """Commands that begin away from the robot, or begin or end in motion."""
        h, q = self.clock.period, self.stream.position
        changes = np.flatnonzero((np.diff(q, axis=0) != 0.0).any(axis=1))
        if not len(changes):
            return
        first, last = int(changes[0]), int(changes[-1])
        error = self.own[2].error
        if (jump := self._jump_at_start()) is not None:
            yield jump
        elif first == 0 and (
            excess := self._single('acceleration', 0, (q[1] - q[0]) / h**2, error[0])
        ):
            at_rest = self._measured_rest()
            reason = 'the robot was at rest' if at_rest else 'if the recording did not begin later'
            yield StopCause(
                'start in motion', excess[0].time, float(self.times[1]), excess, at_rest,
                f'The first commands move at {abs(excess[0].value) * h:.3g} rad/s or m/s, '
                f'{reason}: begin with the position of the robot and at rest.',
            )  # fmt: skip
        stop = (q[last] - q[last + 1]) / h**2
        if excess := self._single('acceleration', last + 1, stop, error[last + 1]):
            time = excess[0].time
            yield StopCause(
                'end in motion', time, time + _SHORT * h, excess, False,
                f'The commands end at {abs(excess[0].value) * h:.3g} rad/s or m/s: bring them to '
                'rest before the last one, unless they end because the robot had stopped.',
            )  # fmt: skip

    def _single(self, quantity: str, row: int, value: Array, error: Array) -> tuple[Excess, ...]:
        """The worst of values (n,) of one command, if it is too much."""
        times = self.times[[row]]
        signal = Signal.of(self.limits, quantity, 'commanded', times, value[None], error[None])
        return _worst(_events(self.model, signal))

    def _measured_rest(self) -> bool:
        """Whether the robot is known to have been at rest before the first command."""
        if self.measured is None:
            return False
        before = np.flatnonzero(self.measured.times <= self.times[0])[-20:]
        if len(before) < 2:
            return False
        times, q, *_ = self.measured.rows(before[[0, -1]])
        wanted = np.abs(self.own[1].values[1]).max() * (times[1] - times[0])
        return bool(np.abs(q[1] - q[0]).max() < 0.2 * wanted)

    def _jump_at_start(self) -> StopCause | None:
        """Way from where the robot is measured to the first command, if it is too far."""
        if self.measured is None:
            return None
        times, q, *_ = self.measured
        near = int(np.abs(times - self.times[0]).argmin())
        if abs(times[near] - self.times[0]) > 2.0 * max(self.clock.period, 0.001):
            return None
        apart = np.abs(_at(self.stream, times) - q)
        apart = apart[np.isfinite(apart).all(axis=1)]
        usual = np.minimum(np.median(apart, axis=0), _USUAL) if len(apart) else 0.0 * q[0]
        h = self.clock.period
        excess = self._single(
            'velocity', 0, (self.stream.position[0] - q[near]) / h, 5 * usual / h
        )
        if not excess:
            return None
        (worst,) = excess
        advice = (
            f'The first command is {abs(worst.value) * h:.3g} rad or m away from where '
            f'{worst.joint_name} is measured: read the position of the robot, and begin there.'
        )
        return StopCause('jump at the start', worst.time, worst.time, excess, True, advice)

    def stamps(self) -> Iterator[StopCause]:
        """Commands that are missing, and steps of the stamps."""
        missing, leaps, times = self.clock.missing, self.clock.leaps, self.times
        if missing.any():
            worst = int(missing.argmax())
            advice = (
                f'{missing.sum()} commands are missing in motion, at {np.count_nonzero(missing)} '
                f'places, at most {missing[worst]} before {_instant(times[worst])}: they were not '
                'recorded, or not sent in time.'
            )
            first, last = times[[worst - 1, worst]].tolist()
            yield StopCause('missing commands', first, last, (), False, advice)
        for row in np.flatnonzero(leaps).tolist():
            first, last = times[[row - 1, row]].tolist()
            advice = (
                f'The stamps step by {1e3 * leaps[row]:.3g} ms before {_instant(last)}, and the '
                'commands go on as usual: one came late, or the clock was set, which '
                f'CLOCK_MONOTONIC never is. {self._each_cycle()}'
            )
            yield StopCause('step of the stamps', first, last, (), False, advice)

    def noise(self) -> Iterator[StopCause]:
        """Commands that change like noise, by more than limits allow."""
        if self.clock.period > _SLOW:
            return  # as well it may be the stamps
        exact = differenced(self.limits, 'commanded', self.stream, self.clock, is_exact=True)
        loud = [
            event
            for signal, rounded in zip(self.own, exact)
            for event in _events(self.model, rounded.without(signal))
            if event.last - event.first > _LONG * self.clock.period
        ]
        for worst in sorted(_worst(loud), key=lambda excess: -excess.factor)[:1]:
            yield StopCause(
                'noisy commands', worst.time, worst.time, (worst,), False,
                'The commands change like noise from one to the next. If they were sent like '
                'that, filter them; if they are measurements, give them as these.',
            )  # fmt: skip

    def told(self, events: Sequence[_Event]) -> tuple[str, str]:
        """Kind of what makes commands exceed limits, and what to do."""
        mine = [event for event in events if event.excess.source == 'commanded']
        worst = max(mine, key=lambda event: event.excess.factor).excess
        quantities = {event.excess.quantity for event in mine}
        kind = next(kind for what, kind in _LASTING.items() if what in quantities)
        h = self.clock.period
        first = int(np.searchsorted(self.times, min(event.first for event in mine)))
        last = int(np.searchsorted(self.times, max(event.last for event in mine)))
        size = abs(worst.value) * h
        if self._is_step(worst, first, last):
            j = self.model.joint_names.index(worst.joint_name)
            v = self.own[1].values[max(first - 1, 1) : last + 2, j]
            between, change = v - np.linspace(v[0], v[-1], len(v)), abs(v[-1] - v[0])
            if quantities.isdisjoint(MOTION):
                kind = 'torque step' if 'effort_dot' in quantities else kind
            elif np.abs(between).max() > 2.0 * change:
                kind, size = 'jump', abs(between.sum()) * h
            elif kind == 'motion too fast':
                is_fast = quantities & {'velocity', 'acceleration'}
                kind, size = 'velocity step' if is_fast else 'acceleration step', change
        most = abs(worst.limit) * h
        return kind, _ADVICE[kind].format(joint=worst.joint_name, size=size, most=most)

    def _is_step(self, worst: Excess, first: int, last: int) -> bool:
        """Whether a quantity is large between two samples, and not around them."""
        if last - first >= _SHORT:
            return False
        j = self.model.joint_names.index(worst.joint_name)
        (signal,) = (signal for signal in self.own if signal.quantity == worst.quantity)
        values = np.abs(signal.values[:, j])
        around = [*values[max(0, first - _SHORT) : first], *values[last + 1 : last + 1 + _SHORT]]
        return not (np.array(around) > 0.5 * abs(worst.value)).any()


class _Events:
    """Events that nothing explains yet, in the order in which they begin."""

    def __init__(self, model: RobotModel, signals: Sequence[Signal], period: float) -> None:
        found = [event for signal in signals for event in _events(model, signal)]
        self._period = period
        self._events = sorted(found, key=lambda event: event.first)
        self._starts = [event.first for event in self._events]
        self._is_open = [True] * len(found)

    def take(self, first: float, last: float) -> list[_Event]:
        """Take out what follows from something in a short time; nothing if it is only measured."""
        low = bisect_left(self._starts, first - _RESPONSE)
        high = bisect_right(self._starts, last + _RESPONSE)
        rows = [row for row in range(low, high) if self._is_of(row, first, last)]
        if all(self._events[row].is_measured for row in rows):
            return []
        for row in rows:
            self._is_open[row] = False
        return [self._events[row] for row in rows]

    def _is_of(self, row: int, first: float, last: float) -> bool:
        """Whether an event lies between two times; measurements follow, and are smoothed."""
        event = self._events[row]
        slack = _RESPONSE if event.is_measured else 0.5 * self._period
        return self._is_open[row] and first - slack <= event.first and event.last <= last + slack

    def clusters(self) -> Iterator[list[_Event]]:
        """Others that overlap, or nearly: short ones, long ones that hide them, measured ones."""
        for kind in range(3):
            cluster: list[_Event] = []
            end = -np.inf
            for event in [*self._of_kind(kind), None]:
                if cluster and (event is None or event.first > end + _TOGETHER * self._period):
                    yield self.take(cluster[0].first, end) or cluster
                    cluster, end = [], -np.inf
                if event is not None:
                    cluster.append(event)
                    end = max(end, event.last)

    def _of_kind(self, kind: int) -> list[_Event]:
        found = []
        for event, is_open in zip(self._events, self._is_open):
            is_long = event.last - event.first > _SHORT * self._period
            if is_open and kind == (2 if event.is_measured else int(is_long)):
                found.append(event)
        return found


def _causes(events: _Events, commands: _Commands | None) -> Iterator[StopCause]:
    """Events explained: by what is seen in the commands, and those that remain by themselves."""
    if commands is not None:
        for cause in commands.edges():
            if cause.kind == 'end in motion':  # differences behind it follow from it
                events.take(cause.time + commands.clock.period, cause.end)
            yield cause
        yield from commands.stamps()
        yield from commands.noise()
        for cause in commands.repeated():
            if taken := events.take(cause.time, cause.end):
                yield replace(cause, excesses=_worst(taken))
    for cluster in events.clusters():
        yield _explained(cluster, commands)


def _explained(events: Sequence[_Event], commands: _Commands | None) -> StopCause:
    """Cause of events by the signals that they are seen in."""
    sources = {event.excess.source for event in events}
    worst = _worst(events)
    if commands is not None and 'commanded' in sources:
        kind, advice = commands.told(events)
    elif 'computed' in sources:
        kind = 'torque of the model'
        advice = _ADVICE[kind]
    else:
        kind = 'measured excess'
        why = (
            '. Record the commands, too: they tell whether these asked for it.'
            if commands is None
            else ', but no command does: look for contact, a payload that the robot does not know '
            'of, or gains that are too high.'
        )
        what = f'{name_of(worst[0].quantity)} of {worst[0].joint_name}'
        advice = f'The measured {what} exceeds its limit{why}'
    first, last = min(event.first for event in events), max(event.last for event in events)
    return StopCause(kind, first, last, worst, True, advice)
