"""Why a robot stopped: which limit its recorded commands or measurements exceeded first, and how.

Commands are differenced sample by sample, as the controller of the robot does it; whatever exceeds
a limit is a cause, certain if rounding and noise of the recording cannot explain it. Causes are
told by their traces: repeated commands, jumps, steps of velocity or acceleration, a motion that is
too fast. The most probable one comes first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hodyn_ros.analysis.limits import find_unlimited, no_limit
from hodyn_ros.analysis.recorded_signals import (
    EFFORT,
    FEWEST,
    Recorded,
    Signal,
    clock_of,
    computed_signals,
    differenced,
    measured_signals,
    repeats,
)
from hodyn_ros.analysis.stop_analysis import (
    Excess,
    StopAnalysis,
    StopCause,
    Undecided,
)
from hodyn_ros.errors import MotionError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import instant, name_of
from hodyn_ros.typing import Array

T = TypeVar('T')

SOURCES = ('commanded', 'measured', 'computed')

_TOGETHER = 10  # samples within which excesses have one cause
_SHORT = 4  # samples that the differences of a single step reach over
_RESPONSE = 0.05  # s, until measurements follow commands
_LAST = 0.1  # s before the end within which a cause is the one that ended the recording
_USUAL = 0.005  # rad or m, between commands and measurements of a robot under load
_SLOW = 0.005  # s, period from which on a robot may take commands faster than the recording shows

_APART = 'Commands and measurements have no time in common: each is looked at by itself.'
_START, _END = 'start in motion', 'end in motion'
# Kinds of what lasts, by the first of these quantities that exceeds its limit.
_LASTING = {
    'velocity': 'motion too fast',
    'acceleration': 'motion too fast',
    'jerk': 'motion too fast',
    'position': 'out of range',
    'effort': 'torque too large',
    'effort_dot': 'torque too fast',
}
_EACH_CYCLE = (
    'Commands must be sent each {period:.3g} ms, from a real-time process and without delays of '
    'the network.'
)
_ADVICE = {
    'held commands': 'The recording has a command each {period:.3g} ms, but a new one each '
    '{stride:.3g} ms only: if the robot takes one each {period:.3g} ms, each is a step. '
    'Interpolate between them.',
    'missed cycle': 'The command at {at} s repeats the one before{more}, and the next one makes '
    f'up for it: {{missed}} missed. {_EACH_CYCLE}',
    'repeated command': 'The command at {at} s repeats the one before{more}, and the motion goes '
    f'on behind it: it stood still meanwhile. {_EACH_CYCLE}',
    'missing commands': '{count} commands are missing in motion, at {places} places, at most '
    '{most} before {at} s: they were not recorded, or not sent in time.',
    'step of the stamps': 'The stamps step by {step:.3g} ms before {at} s, and the commands go on '
    'as usual: one came late, or the clock was set, which CLOCK_MONOTONIC never is. '
    f'{_EACH_CYCLE}',
    'jump at the start': 'The first command is {size:.3g} rad or m away from where {joint} is '
    'measured: read the position of the robot, and begin there.',
    _START: 'The first commands move at {size:.3g} rad/s or m/s, {why}: begin with the position '
    'of the robot and at rest.',
    _END: 'The commands end at {size:.3g} rad/s or m/s: bring them to rest before the last one, '
    'unless they end because the robot had stopped.',
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
    'measured excess': 'The measured {what} exceeds its limit{why}',
}
"""What happened and what to do, by the kinds of causes; with facts of each."""
_WHY_MEASURED = {
    False: '. Record the commands, too: they tell whether these asked for it.',
    True: ', but no command does: look for contact, a payload that the robot does not know of, or '
    'gains that are too high.',
}
"""Without commands, and with some."""


def _cause(
    kind: str,
    first: float,
    last: float,
    excesses: tuple[Excess, ...] = (),
    is_certain: bool = True,
    **facts: Any,
) -> StopCause:
    """Cause of a kind between two times [s], with the facts that its advice names."""
    advice = _ADVICE[kind].format(**facts)
    return StopCause(kind, first, last, excesses, is_certain, advice)


class _Event(NamedTuple):
    """Consecutive samples of a joint beyond a limit.

    Attributes
    ----------
    first, last : float
        When it begins and ends [s].
    excess : Excess
        Its worst sample.
    """

    first: float
    last: float
    excess: Excess

    @property
    def is_measured(self) -> bool:
        """Whether it is one of measurements."""
        return self.excess.source == 'measured'

    def kind(self, short: float) -> int:
        """Commanded or computed, short (0) or long (1), or measured (2).

        Parameters
        ----------
        short : float
            Duration up to which it counts as short [s].

        Returns
        -------
        int
        """
        return 2 if self.is_measured else int(self.last - self.first > short)


def _as_arrays(recorded: Recorded | None) -> Recorded | None:
    """The same with arrays in place of lists."""
    if recorded is None:
        return None
    kept: Any = (None if values is None else np.asarray(values) for values in recorded)
    return Recorded(*kept)


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
    if commanded is None and measured is None:
        raise MotionError('There is no recording; give commands, measurements, or both.')
    commanded, measured = _as_arrays(commanded), _as_arrays(measured)
    for name, recording in (('commands', commanded), ('measurements', measured)):
        if recording is not None:
            _check(model, name, recording)
    unlimited = find_unlimited(model, limits)
    remarks = [no_limit(unlimited)] * bool(unlimited)
    of_measured = {} if measured is None else measured_signals(model, limits, measured)
    signals = list(of_measured.values())
    commands, deviation = None, None
    if commanded is None:
        period = float(np.median(np.diff(signals[0].times)))
    else:
        commands = _Commands(model, limits, commanded, of_measured)
        signals, period = [*commands.signals, *signals], commands.clock.period
        if period > _SLOW:
            remarks.append(
                f'The commands are {1e3 * period:.3g} ms apart; what a robot with '
                'a faster clock was sent in between is not in the recording.'
            )
        if of_measured:
            deviation = _deviation(commanded, of_measured['position'])
            remarks += [_APART] * (deviation is None)
    events = [event for signal in signals for event in _events(signal)]
    causes = _ranked(_causes(events, commands, period))
    undecided = tuple(_undecided(signals))
    return StopAnalysis(
        causes, undecided, tuple(signals), period, tuple(remarks), deviation
    )


def _check(model: RobotModel, name: str, recording: Recorded) -> None:
    """Refuse recordings with too few samples or other shapes, with a `MotionError`."""
    N = len(recording.times)
    if N < FEWEST:
        raise MotionError(f'The {name} have {N} samples, expected at least {FEWEST}.')
    for what, values in recording._asdict().items():
        shape = (N,) if what == 'times' else (N, model.n_joints)
        if values is not None and values.shape != shape:
            raise MotionError(
                f'The {name}: {what} has shape {values.shape}, expected {shape}.'
            )


def _events(signal: Signal) -> Iterator[_Event]:
    """Runs of samples that certainly exceed a limit, joint by joint."""
    beyond = signal.beyond() - signal.error
    for j, name in enumerate(signal.owners):
        rows = np.flatnonzero(beyond[:, j] > 0.0)
        lower, upper = float(signal.lower[j]), float(signal.upper[j])
        together = np.split(rows, 1 + np.flatnonzero(np.diff(rows) > _TOGETHER))
        for run in together if len(rows) else ():
            worst = int(run[beyond[run, j].argmax()])
            first, last, time = signal.times[[run[0], run[-1], worst]].tolist()
            value = float(signal.values[worst, j])
            limit = upper if value > upper else lower
            factor = 1.0 + 2.0 * abs(value - limit) / max(upper - lower, 1e-12)
            excess = Excess(
                signal.name,
                name,
                signal.source,
                time,
                value,
                limit,
                factor,
                signal.units[j],
            )
            yield _Event(first, last, excess)


def _undecided(signals: Sequence[Signal]) -> Iterator[Undecided]:
    """Limits nowhere certainly exceeded that a signal is too near to, or is mostly not known."""
    for signal in signals:
        beyond = signal.beyond()
        is_open = ~(beyond > signal.error).any(axis=0)
        is_near = (beyond > -signal.error).any(axis=0)
        is_unknown = signal.is_limited & (np.isnan(beyond).mean(axis=0) > 0.5)
        for is_known, chosen in ((True, is_near & ~is_unknown), (False, is_unknown)):
            names = tuple(np.array(signal.owners)[is_open & chosen].tolist())
            if names:
                are_all = len(names) == len(signal.owners)
                yield Undecided(signal.name, signal.source, names, are_all, is_known)


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
    is_new = (np.diff(c, axis=0) != 0.0).any(axis=1)
    rows = np.flatnonzero(is_new)
    apart = np.diff(rows)
    stride = int(np.median(apart)) if len(rows) >= 2 * FEWEST else 0
    if stride < 2 or is_new.mean() > 0.6 or np.mean(apart == stride) < 0.6:
        return commanded, []
    clock = clock_of(commanded.times, c)
    signals = [  # steps are no noise here
        replace(signal, error=np.zeros_like(signal.error))
        for signal in differenced(model, limits, 'commanded', commanded, clock)
    ]
    worst = _worst(event for signal in signals for event in _events(signal))
    h = 1e3 * clock.period
    first, last = commanded.times[[rows[0] + 1, -1]].tolist()
    held = _cause('held commands', first, last, worst, False, period=h, stride=stride * h)
    return commanded.rows(np.unique(np.append(0, rows + 1))), [held] * bool(worst)


def _ranked(causes: Sequence[StopCause]) -> tuple[StopCause, ...]:
    """Most probable first: what is certain, and what came right before an end in motion."""
    last = next((cause.time for cause in causes if cause.kind == _END), np.inf)

    def ended(cause: StopCause) -> bool:
        return cause.is_certain and 0.0 <= last - cause.end < _LAST

    if any(map(ended, causes)):  # the end follows from it
        causes = [cause for cause in causes if cause.kind != _END]

    def rank(cause: StopCause) -> tuple[object, ...]:
        source = [SOURCES.index(excess.source) for excess in cause.excesses[:1]]
        is_edge = cause.kind in (_START, _END)
        return (
            not cause.is_certain,
            not ended(cause),
            is_edge,
            source,
            -cause.factor,
            cause.time,
        )

    return tuple(sorted(causes, key=rank))


def _apart(commanded: Recorded, measured: Signal) -> Array:
    """Measured minus commanded positions (N, n), NaN outside of the times of both."""
    order = np.argsort(commanded.times, kind='stable')
    own = commanded.times[order]
    columns = (
        np.interp(measured.times, own, x, np.nan, np.nan)
        for x in commanded.position[order].T
    )
    return np.asarray(measured.values - np.stack([*columns], axis=1))


def _deviation(commanded: Recorded, measured: Signal) -> Excess | None:
    """Largest distance of measured from commanded positions."""
    apart = _apart(commanded, measured)
    if np.isnan(apart).all():
        return None
    row, j = np.unravel_index(int(np.nanargmax(np.abs(apart))), apart.shape)
    value, time = float(apart[row, j]), float(measured.times[row])
    whose = measured.owners[j], 'measured'
    return Excess('position', *whose, time, value, np.inf, np.nan, measured.units[j])


class _Commands:
    """Signals of a stream of commands, and the traces that faults leave in it.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    commanded : Recorded
        What the robot was sent.
    measured : mapping of str to Signal
        By the quantity; empty without measurements.

    Attributes
    ----------
    stream : Recorded
        The commands without those that are only held.
    held : list of StopCause
        Held commands, if there are some.
    clock : Clock
        Of the stream.
    own : list of Signal
        Position to jerk, then effort and its rate if they were sent.
    signals : list of Signal
        Those, and the efforts that the model needs.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        commanded: Recorded,
        measured: Mapping[str, Signal],
    ) -> None:
        self.model, self.limits, self.measured = model, limits, measured
        stream, self.held = _without_holds(model, limits, commanded)
        self.stream, self.times = stream, stream.times
        self.clock = clock_of(stream.times, stream.position)
        self.own = differenced(model, limits, 'commanded', stream, self.clock)
        self.signals = [*self.own, *computed_signals(model, limits, self.own)]

    def causes(self, events: list[_Event]) -> tuple[list[StopCause], list[_Event]]:
        """Edges, faults of the stamps and traces that explain events, and the other events.

        Parameters
        ----------
        events : list of _Event
            Of all signals.

        Returns
        -------
        causes : list of StopCause
        others : list of _Event
        """
        edges, period = [*self.edges()], self.clock.period
        for edge in edges:
            if edge.kind == _END:  # differences behind it follow from it
                last = edge.time + 0.5 * period
                events = [each for each in events if each.is_measured or each.first < last]
        causes, traces = [*self.held, *edges, *self.stamps()], self.traces()
        spans = [(trace.time, trace.end) for trace in traces]
        taken, others = _assigned(events, spans, period)
        for trace, own in zip(traces, taken):
            if all(event.is_measured for event in own):
                others += own
            else:
                causes.append(replace(trace, excesses=_worst(own)))
        return causes, others

    def traces(self) -> list[StopCause]:
        """Repeated commands, which are causes if limits are exceeded around them.

        Returns
        -------
        list of StopCause
            'missed cycle' or 'repeated command', in the order of time, without excesses; those
            near each other are one.
        """
        found: dict[int, StopCause] = {}
        for values in self.stream.known('commanded').values():
            for row, count, makes_up in repeats(values):
                first = float(self.times[row])
                last = float(self.times[min(row + count + 3, len(self.times) - 1)])
                facts: dict[str, Any] = {
                    'at': instant(first),
                    'more': f', as do {count - 1} more' * (count > 1),
                    'missed': 'a cycle was' if count == 1 else f'{count} cycles were',
                    'period': 1e3 * self.clock.period,
                }
                kind = 'missed cycle' if makes_up else 'repeated command'
                found.setdefault(row, _cause(kind, first, last, **facts))
        spans = [(cause.time, cause.end, cause) for _, cause in sorted(found.items())]
        return [
            replace(together[0], end=last)
            for _, last, together in _grouped(spans, _TOGETHER * self.clock.period)
        ]

    def edges(self) -> Iterator[StopCause]:
        """Commands that begin away from the robot, or begin or end in motion.

        Yields
        ------
        StopCause
            'jump at the start', which is told by measurements; 'start in motion' unless it
            jumps; 'end in motion'.
        """
        h, q = self.clock.period, self.stream.position
        away, usual = self._away()
        last = 1 + int(
            np.flatnonzero((np.diff(q, axis=0) != 0.0).any(axis=1)).max(initial=0)
        )
        jump = self._single('velocity', 0, away / h, usual / h)
        start, end = (
            self._single('acceleration', row, change / h**2, self.own[2].error[row])
            for row, change in ((0, q[1] - q[0]), (last, q[last - 1] - q[last]))
        )
        for excess in jump:
            size, joint = abs(excess.value) * h, excess.joint_name
            times = excess.time, excess.time
            yield _cause('jump at the start', *times, jump, size=size, joint=joint)
        for excess in () if jump else start:
            at_rest, size = self._is_at_rest(), abs(excess.value) * h
            why = 'if the recording did not begin later'
            why = 'the robot was at rest' if at_rest else why
            times = excess.time, excess.time + h
            yield _cause(_START, *times, start, at_rest, size=size, why=why)
        for excess in end:
            times = excess.time, excess.time + _SHORT * h
            yield _cause(_END, *times, end, False, size=abs(excess.value) * h)

    def _single(
        self, quantity: str, row: int, value: Array, error: Array
    ) -> tuple[Excess, ...]:
        """The worst of values (n,) of one command, if it is too much.

        Parameters
        ----------
        quantity : str
            Name of a limit.
        row : int
            Sample at which it is.
        value, error : ndarray, shape (n,)
            In the unit of the quantity.

        Returns
        -------
        tuple of Excess
            Empty if no joint certainly exceeds its limit.
        """
        times = self.times[[row]]
        signal = Signal.of(
            self.model, self.limits, quantity, 'commanded', times, value[None], error[None]
        )
        return _worst(_events(signal))

    def _is_at_rest(self) -> bool:
        """Whether the robot is known to have been at rest before the first command."""
        if 'velocity' not in self.measured:
            return False
        velocity = self.measured['velocity']
        before = np.abs(velocity.values[velocity.times <= self.times[0]][-1:])
        return bool(
            (before < 0.2 * np.abs(self.own[1].values[1]).max()).all() and len(before)
        )

    def _away(self) -> tuple[Array, Array]:
        """Way (n,) from where the robot is measured to the first command, and what is usual."""
        nothing = np.zeros(self.model.n_joints)
        if 'position' not in self.measured:
            return nothing, nothing
        position = self.measured['position']
        apart = _apart(self.stream, position)
        rows = np.flatnonzero(np.isfinite(apart).all(axis=1))
        late = 2.0 * max(self.clock.period, 0.001)
        if not len(rows) or position.times[rows[0]] > self.times[0] + late:
            return nothing, nothing
        usual = np.minimum(np.median(np.abs(apart[rows]), axis=0), _USUAL)
        return -apart[rows[0]], 5.0 * usual

    def stamps(self) -> Iterator[StopCause]:
        """Commands that are missing, and steps of the stamps.

        Yields
        ------
        StopCause
            'missing commands', one for all; 'step of the stamps', one for each.
        """
        missing, leaps, times = self.clock.missing, self.clock.leaps, self.times
        if missing.any():
            worst = int(missing.argmax())
            first, last = times[[worst - 1, worst]].tolist()
            facts: dict[str, Any] = {
                'count': missing.sum(),
                'places': np.count_nonzero(missing),
                'most': missing[worst],
                'at': instant(last),
            }
            yield _cause('missing commands', first, last, is_certain=False, **facts)
        for row in np.flatnonzero(leaps).tolist():
            first, last = times[[row - 1, row]].tolist()
            facts = {
                'step': 1e3 * leaps[row],
                'at': instant(last),
                'period': 1e3 * self.clock.period,
            }
            yield _cause('step of the stamps', first, last, is_certain=False, **facts)

    def told(self, events: Sequence[_Event]) -> tuple[str, dict[str, Any]]:
        """Kind of what makes commands exceed limits, and facts.

        Parameters
        ----------
        events : sequence of _Event
            With one of commands at least.

        Returns
        -------
        kind : str
            Such as 'velocity step'.
        facts : dict
            That its advice names.
        """
        mine = [event for event in events if event.excess.source == 'commanded']
        worst = max((event.excess for event in mine), key=lambda excess: excess.factor)
        quantities = {event.excess.quantity for event in mine}
        kind = next(kind for what, kind in _LASTING.items() if what in quantities)
        j, h = self.model.joint_names.index(worst.joint_name), self.clock.period
        first = int(np.searchsorted(self.times, min(event.first for event in mine)))
        last = int(np.searchsorted(self.times, max(event.last for event in mine)))
        size = abs(worst.value) * h
        if self._is_step(worst, j, first, last):
            v = self.own[1].values[max(first - 1, 1) : last + 2, j]
            change = abs(v[-1] - v[0])
            between = v - np.linspace(v[0], v[-1], len(v))
            if quantities <= {*EFFORT}:
                kind = 'torque step' if 'effort_dot' in quantities else kind
            elif np.abs(between).max() > 2.0 * change:
                kind, size = 'jump', abs(between.sum()) * h
            elif kind == 'motion too fast':
                is_jerk = quantities.isdisjoint(('velocity', 'acceleration'))
                kind, size = 'acceleration step' if is_jerk else 'velocity step', change
        most = abs(worst.limit) * h
        return kind, {'joint': worst.joint_name, 'size': size, 'most': most}

    def _is_step(self, worst: Excess, j: int, first: int, last: int) -> bool:
        """Whether a quantity is large between two samples, and not around them."""
        (signal,) = (signal for signal in self.own if signal.name == worst.quantity)
        large = np.abs(signal.values[:, j]) > 0.5 * abs(worst.value)
        around = large[max(0, first - _SHORT) : first], large[last + 1 : last + 1 + _SHORT]
        return last - first < _SHORT and not np.concatenate(around).any()


def _causes(
    events: list[_Event], commands: _Commands | None, period: float
) -> list[StopCause]:
    """Events explained: by what is seen in the commands, and those that remain by themselves.

    Parameters
    ----------
    events : list of _Event
        Of all signals.
    commands : _Commands or None
    period : float
        Between samples [s].

    Returns
    -------
    list of StopCause
    """
    causes: list[StopCause] = []
    if commands is not None:
        causes, events = commands.causes(events)
    # Short ones apart from long ones, which hide them; measured ones may follow from both.
    for kind in range(3):
        some = [event for event in events if event.kind(_SHORT * period) == kind]
        spans = [span[:2] for span in _grouped(some, _TOGETHER * period)]
        taken, events = _assigned(events, spans, period)
        causes += [_explained(own, commands) for own in taken]
    return causes


def _grouped(
    spans: Iterable[tuple[float, float, T]], gap: float
) -> list[tuple[float, float, list[T]]]:
    """Spans of time in one, if nothing is between them for no longer than a gap [s].

    Parameters
    ----------
    spans : iterable of (float, float, object)
        First and last time [s], and what lies between them.
    gap : float
        [s]

    Returns
    -------
    list of (float, float, list)
        In the order of time.
    """
    found: list[tuple[float, float, list[T]]] = []
    for first, last, item in sorted(spans, key=lambda span: span[:2]):
        together = [item]
        if found and first <= found[-1][1] + gap:
            first, before, others = found.pop()
            last, together = max(last, before), [*others, item]
        found.append((first, last, together))
    return found


def _assigned(
    events: Sequence[_Event], windows: Sequence[tuple[float, float]], period: float
) -> tuple[list[list[_Event]], list[_Event]]:
    """Events that lie in each of some windows in a row, and the others.

    Measurements follow with a delay, and are smoothed.

    Returns
    -------
    taken : list of list of _Event
        For each window.
    others : list of _Event
    """
    starts = [first for first, _ in windows]
    taken: list[list[_Event]] = [[] for _ in windows]
    others: list[_Event] = []
    for event in events:
        slack = _RESPONSE if event.is_measured else 0.5 * period
        place = bisect_right(starts, event.first + slack) - 1
        is_in = place >= 0 and event.last <= windows[place][1] + slack
        (taken[place] if is_in else others).append(event)
    return taken, others


def _explained(events: Sequence[_Event], commands: _Commands | None) -> StopCause:
    """Cause of events by the signals that they are seen in."""
    sources = {event.excess.source for event in events}
    worst, facts = _worst(events), dict[str, Any]()
    if commands is not None and 'commanded' in sources:
        kind, facts = commands.told(events)
    elif 'computed' in sources:
        kind = 'torque of the model'
    else:
        kind, what = (
            'measured excess',
            f'{name_of(worst[0].quantity)} of {worst[0].joint_name}',
        )
        facts = {'what': what, 'why': _WHY_MEASURED[commands is not None]}
    first, last = min(event.first for event in events), max(event.last for event in events)
    return _cause(kind, first, last, worst, **facts)
