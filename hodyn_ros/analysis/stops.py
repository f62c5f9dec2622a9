"""Why a robot stopped: which limit its recorded commands or measurements exceeded first, and how.

Commands are differenced sample by sample, as the controller of the robot does it; whatever exceeds
a limit is a cause, certain if rounding and noise of the recording cannot explain it. Causes are
told by their traces: repeated commands, jumps, steps of velocity or acceleration, a motion that is
too fast. The most probable one comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hodyn_ros.analysis.streams import (
    Clock,
    Flaws,
    clock_of,
    differences,
    flaws_of,
    moves,
    repeats,
)
from hodyn_ros.checks import Array
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.errors import MotionError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

_MOTION = ('position', 'velocity', 'acceleration', 'jerk')
_EFFORT = ('effort', 'effort_dot')
_SOURCES = ('commanded', 'measured', 'computed')
_WORDS = {'effort': 'torque', 'effort_dot': 'torque rate'}

_FEWEST = 5  # samples of a recording
_TOGETHER = 10  # samples within which excesses have one cause
_SHORT = 4  # samples that the differences of a single step reach over
_RESPONSE = 0.05  # s, until measurements follow commands
_LAST = 0.1  # s before the end within which a cause is the one that ended the recording
_STALL = 0.1  # s, late commands; beyond it is a clock that was set
_USUAL = 0.005  # rad or m, between commands and measurements of a robot under load
_SLOW = 0.005  # s, period from which on a robot may take commands faster than the recording shows
_NOISY = 0.05  # part of the samples beyond a limit from which on it is noise
_ROUNDING = 1e-9


class Recorded(NamedTuple):
    """What was commanded or measured at N instants, of the n joints in model order."""

    times: Array
    """Shape (N,) [s]."""
    position: Array
    """Shape (N, n) [rad] or [m]."""
    velocity: Array | None = None
    """Shape (N, n) [rad/s] or [m/s]; not used of commands. NaN where there is none."""
    effort: Array | None = None
    """Shape (N, n) [N m] or [N]; NaN where there is none."""


class Signal(NamedTuple):
    """A quantity along a recording with its limits, all of shape (N, n) or (n,)."""

    quantity: str
    """As in `Violation`."""
    source: str
    """'commanded', 'measured', or 'computed': what the model needs for the commands."""
    times: Array
    """Shape (N,) [s]."""
    values: Array
    """NaN where they are not known."""
    error: Array
    """What rounding and noise of the recording may have added."""
    lower: Array
    upper: Array


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
    """The worst of each quantity and source, largest factor first."""
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
    signals: tuple[Signal, ...]
    """What was compared with limits."""
    period: float
    """Of the commands, without them of the measurements [s]."""
    remarks: tuple[str, ...]
    """What could not be told."""
    deviation: Excess | None
    """Where measured positions are farthest from the commands, without a limit."""

    @property
    def is_kept(self) -> bool:
        """Whether no limit is certainly exceeded."""
        return not any(cause.is_certain for cause in self.causes)


@dataclass(frozen=True)
class _Event:
    """Consecutive samples of a joint beyond a limit."""

    first: float
    last: float
    excess: Excess


class _Trace(NamedTuple):
    """What is seen in the commands, whether or not it exceeds a limit."""

    kind: str
    first: float
    last: float
    advice: str


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
        At instants of its own on the same clock. An excess counts if noise does not explain it.

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
    for name, recording in (('commands', commanded), ('measurements', measured)):
        if recording is not None:
            _check(model, name, recording)
    causes, signals, remarks = [], [], []
    period = 0.0
    if commanded is not None:
        commanded = commanded._replace(velocity=None)  # that of the robot follows from positions
        stream, held = _without_holds(commanded, limits, model)
        causes += held
        analysed = _Commands(model, limits, stream, measured)
        signals += analysed.signals
        period, remarks = analysed.clock.period, analysed.remarks()
    else:
        analysed = None
    if measured is not None:
        of_measured = _signals(limits, measured, 'measured')
        signals += of_measured
        period = period or float(np.median(np.diff(measured.times)))
    events = sorted(
        (event for signal in signals for event in _events(model, signal)),
        key=lambda event: event.first,
    )
    causes += _Causes(period, events, analysed).found()
    deviation = None
    if commanded is not None and measured is not None:
        deviation = _deviation(model, commanded, measured)
    return StopAnalysis(
        _ranked(causes), tuple(signals), period, (*_unlimited(limits), *remarks), deviation
    )


def _check(model: RobotModel, name: str, recording: Recorded) -> None:
    N = len(recording.times)
    if N < _FEWEST:
        raise MotionError(f'The {name} have {N} samples, expected at least {_FEWEST}.')
    for what in ('position', 'velocity', 'effort'):
        values = getattr(recording, what)
        if values is not None and values.shape != (N, model.n_joints):
            raise MotionError(
                f'The {name}: {what} has shape {values.shape}, expected ({N}, {model.n_joints}).'
            )


def _unlimited(limits: MotionLimits) -> tuple[str, ...]:
    """Say of what no excess can be found."""
    names = [
        _WORDS.get(what, what)
        for what in (*_MOTION[1:], *_EFFORT)
        if np.isinf(getattr(limits, what)).any()
    ]
    if not names:
        return ()
    return (f'No limit of {listed(names)} is known for some joints: no excess is found there.',)


def _range(limits: MotionLimits, quantity: str) -> tuple[Array, Array]:
    if quantity == 'position':
        return limits.lower, limits.upper
    upper = getattr(limits, quantity)
    return -upper, upper


def _signals(
    limits: MotionLimits,
    recording: Recorded,
    source: str,
    clock: Clock | None = None,
    flaws: dict[str, Flaws] | None = None,
) -> list[Signal]:
    """Quantities of a recording, differences of its samples, with their errors."""
    times = recording.times
    if clock is None:
        order = np.argsort(times, kind='stable')
        order = order[np.append(True, np.diff(times[order]) > 0.0)]
        times = times[order]
        recording = Recorded(*(None if x is None else x[order] for x in recording))
        clock = clock_of(times, recording.position)
    flaws = flaws or _flaws(recording)
    series = [(quantity, 'position', k) for k, quantity in enumerate(_MOTION)]
    if 'velocity' in flaws:
        series[1] = ('velocity', 'velocity', 0)
    if 'effort' in flaws:
        series += [(quantity, 'effort', k) for k, quantity in enumerate(_EFFORT)]
    found = []
    for quantity, base, order in series:
        rates = differences(getattr(recording, base), clock.ticks, order, clock.is_cut)
        error = flaws[base].error(order, clock.period)
        error += order * clock.error * np.abs(np.nan_to_num(rates))
        found.append(Signal(quantity, source, times, rates, error, *_range(limits, quantity)))
    return found


def _flaws(recording: Recorded) -> dict[str, Flaws]:
    """Flaws of what is known in a recording."""
    return {
        what: flaws_of(values)
        for what in ('position', 'velocity', 'effort')
        if (values := getattr(recording, what)) is not None and np.isfinite(values).any()
    }


def _events(model: RobotModel, signal: Signal) -> Iterator[_Event]:
    """Runs of samples that certainly exceed a limit, joint by joint."""
    values, lower, upper = signal.values, signal.lower, signal.upper
    slack = signal.error + _ROUNDING * (1.0 + np.where(np.isfinite(upper), np.abs(upper), 0.0))
    with np.errstate(invalid='ignore'):
        excess = np.maximum(values - slack - upper, lower - values - slack)
        is_over = excess > 0.0
    for j in np.flatnonzero(is_over.any(axis=0)).tolist():
        rows = np.flatnonzero(is_over[:, j])
        for run in np.split(rows, 1 + np.flatnonzero(np.diff(rows) > _TOGETHER)):
            worst = int(run[excess[run, j].argmax()])
            value = float(values[worst, j])
            is_above = value - upper[j] > lower[j] - value
            limit = float(upper[j] if is_above else lower[j])
            yield _Event(
                float(signal.times[run[0]]),
                float(signal.times[run[-1]]),
                Excess(
                    signal.quantity, model.joint_names[j], signal.source,
                    float(signal.times[worst]), value, limit,
                    _factor(value, float(lower[j]), float(upper[j])),
                ),
            )  # fmt: skip


def _factor(value: float, lower: float, upper: float) -> float:
    if not (np.isfinite(lower) and np.isfinite(upper)):
        limit = lower if value < lower else upper
        return 1.0 + abs(value - limit) / max(abs(limit), 1e-12)
    return abs(value - 0.5 * (lower + upper)) / max(0.5 * (upper - lower), 1e-12)


def _without_holds(
    commanded: Recorded, limits: MotionLimits, model: RobotModel
) -> tuple[Recorded, list[StopCause]]:
    """Commands without the samples that only repeat, if most do, and that as a cause."""
    c = commanded.position
    flaws = _flaws(commanded)
    rows = np.flatnonzero(moves(c, flaws['position'].resolution))
    if len(rows) < 2 * _FEWEST:
        return commanded, []
    apart = np.diff(rows)
    stride = int(np.median(apart))
    is_still = (np.diff(c, axis=0) == 0.0).all(axis=1)
    if stride < 2 or is_still.mean() < 0.4 or np.mean(apart == stride) < 0.6:
        return commanded, []
    kept = np.unique(np.append(0, rows + 1))
    thinned = Recorded(*(None if x is None else x[kept] for x in commanded))
    clock = clock_of(commanded.times, c)
    flaws = {  # the steps are no noise
        what: found._replace(noise=0.0 * found.noise) for what, found in flaws.items()
    }
    signals = _signals(limits, commanded, 'commanded', clock, flaws)
    events = [event for signal in signals for event in _events(model, signal)]
    worst = _worst(events)
    if not worst:
        return thinned, []
    h, held = 1e3 * clock.period, 1e3 * stride * clock.period
    advice = (
        f'The recording has a command each {h:.3g} ms, but a new one each {held:.3g} ms only: if '
        f'the robot takes one each {h:.3g} ms, each is a step. Interpolate between them.'
    )
    first = float(commanded.times[rows[0] + 1])
    return thinned, [
        StopCause('held commands', first, float(commanded.times[-1]), worst, False, advice)
    ]


def _worst(events: Sequence[_Event]) -> tuple[Excess, ...]:
    """Worst excess of each quantity and source, those of commands first."""
    found: dict[tuple[str, str], Excess] = {}
    for event in events:
        key = event.excess.quantity, event.excess.source
        if key not in found or event.excess.factor > found[key].factor:
            found[key] = event.excess
    return tuple(sorted(found.values(), key=lambda e: (_SOURCES.index(e.source), -e.factor)))


def _ranked(causes: Sequence[StopCause]) -> tuple[StopCause, ...]:
    """Most probable first: what is certain, and what came right before an end in motion."""
    ends = [cause for cause in causes if cause.kind == 'end in motion']
    last = ends[0].time if ends else np.inf

    def ended(cause: StopCause) -> bool:
        return cause.is_certain and 0.0 <= last - cause.end < _LAST

    if any(map(ended, causes)):  # the end follows from it
        causes = [cause for cause in causes if cause not in ends]
    at_edge = ('start in motion', 'end in motion')
    return tuple(
        sorted(
            causes,
            key=lambda cause: (
                not cause.is_certain, not ended(cause), cause.kind in at_edge,
                [_SOURCES.index(excess.source) for excess in cause.excesses[:1]], -cause.factor,
                cause.time,
            ),
        )
    )  # fmt: skip


def _deviation(model: RobotModel, commanded: Recorded, measured: Recorded) -> Excess | None:
    """Largest distance of measured from commanded positions at instants of both."""
    c = _at(commanded.times, commanded.position, measured.times)
    distance = measured.position - c
    if np.isnan(distance).all():
        return None
    row, j = np.unravel_index(int(np.nanargmax(np.abs(distance))), distance.shape)
    value, time = float(distance[row, j]), float(measured.times[row])
    return Excess('position', model.joint_names[j], 'measured', time, value, np.inf, np.nan)


def _at(times: Array, values: Array, wanted: Array) -> Array:
    """Values (N, n) at other times, NaN outside of their own."""
    order = np.argsort(times, kind='stable')
    columns = [np.interp(wanted, times[order], x[order], np.nan, np.nan) for x in values.T]
    return np.stack(columns, axis=1)


class _Commands:
    """Signals of a stream of commands, and the traces that faults leave in it."""

    def __init__(
        self, model: RobotModel, limits: MotionLimits, stream: Recorded, measured: Recorded | None
    ) -> None:
        self.model, self.limits, self.stream, self.measured = model, limits, stream, measured
        self.times = stream.times
        self.clock = clock_of(stream.times, stream.position)
        self.flaws = _flaws(stream)
        self.signals = _signals(limits, stream, 'commanded', self.clock, self.flaws)
        self.motion = [signal.values for signal in self.signals[:4]]
        self.signals += self._computed()
        self.moving = np.flatnonzero(moves(stream.position, self.flaws['position'].resolution))

    def _computed(self) -> list[Signal]:
        """Torques that the model needs for the commanded motion, and their rates."""
        known = np.flatnonzero(np.isfinite(sum(x.sum(axis=1) for x in self.motion)))
        if not len(known):
            return []
        motion = np.stack([x[known] for x in self.motion], axis=1)
        efforts = inverse_dynamics(self.model, motion)
        found = []
        for k, quantity in enumerate(_EFFORT):
            lower, upper = _range(self.limits, quantity)
            values = np.full_like(self.stream.position, np.nan)
            values[known] = efforts[:, k]
            error = np.zeros_like(values)
            rows = known[(np.abs(efforts[:, k]) > upper).any(axis=1)]
            if len(rows):  # elsewhere it does not matter
                M = np.abs(mass_matrix(self.model, self.stream.position[rows, None])[:, 0])
                error[rows] = np.einsum('...ij,...j', M, self.signals[2 + k].error[rows])
            found.append(Signal(quantity, 'computed', self.times, values, error, lower, upper))
        return found

    def remarks(self) -> list[str]:
        """What a recording like this cannot show."""
        found = []
        blind = {
            signal.quantity: float((np.median(signal.error, axis=0) / signal.upper).max())
            for signal in self.signals
            if signal.source == 'commanded' and signal.quantity != 'position'
        }
        hidden = [_WORDS.get(what, what) for what, share in blind.items() if share > 0.5]
        if hidden:
            found.append(
                f'Rounding or noise of the commands hides excesses of {listed(hidden)} that are '
                'not large; record with more digits, where the commands are sent.'
            )
        if self.clock.period > _SLOW:
            found.append(
                f'The commands are {1e3 * self.clock.period:.3g} ms apart; what a robot with a '
                'faster clock was sent in between is not in the recording.'
            )
        return found

    def traces(self) -> Iterator[_Trace]:
        """Repeated commands, which are causes if limits are exceeded around them."""
        seen: set[int] = set()
        for what, flaws in self.flaws.items():
            values = getattr(self.stream, what)
            for row, count, makes_up in repeats(values, flaws.resolution):
                if row in seen:
                    continue
                seen.add(row)
                yield self._repeated(row, count, makes_up)

    def _repeated(self, row: int, count: int, makes_up: bool) -> _Trace:
        time = self.times[row]
        how = 'the one before' if count == 1 else f'the one before, as do {count - 1} more'
        missed = 'a cycle was' if count == 1 else f'{count} cycles were'
        then = (
            f'and the next one makes up for it: {missed} missed'
            if makes_up
            else f'and the motion goes on behind it: it stood still meanwhile'
        )
        return _Trace(
            'missed cycle' if makes_up else 'repeated command', float(time),
            float(self.times[min(row + count + 3, len(self.times) - 1)]),
            f'The command at {time:.4g} s repeats {how}, {then}: {self._each_cycle()}',
        )  # fmt: skip

    def _each_cycle(self) -> str:
        return (
            f'commands must be sent each {1e3 * self.clock.period:.3g} ms, from a real-time '
            'process and without delays of the network.'
        )

    def edges(self) -> Iterator[StopCause]:
        """Commands that begin away from the robot, or begin or end in motion."""
        h, q = self.clock.period, self.stream.position
        if not len(self.moving):
            return
        limit = self.limits.acceleration
        first, last = int(self.moving[0]), int(self.moving[-1])
        if (jump := self._jump_at_start()) is not None:
            yield jump
        elif first == 0 and (excess := self._from_rest('start', (q[1] - q[0]) / h)):
            at_rest = self._measured_rest()
            reason = 'the robot was at rest' if at_rest else 'if the recording did not begin later'
            yield StopCause(
                'start in motion', excess.time, float(self.times[1]), (excess,), at_rest,
                f'The first commands move at {abs(excess.value) * h:.3g} rad/s or m/s, {reason}: '
                'begin with the position of the robot and at rest.',
            )  # fmt: skip
        moved = (q[last + 1] - q[last]) / h
        if np.isfinite(limit).any() and (excess := self._from_rest('end', moved, last + 1)):
            yield StopCause(
                'end in motion', excess.time, float(self.times[min(last + 4, len(q) - 1)]),
                (excess,), False,
                f'The commands end at {abs(excess.value) * h:.3g} rad/s or m/s: bring them to '
                'rest before the last one, unless they end because the robot had stopped.',
            )  # fmt: skip

    def _from_rest(self, edge: str, velocity: Array, row: int = 0) -> Excess | None:
        """Acceleration between rest and a velocity (n,) within a cycle, if it is too much."""
        change = velocity / self.clock.period * (1.0 if edge == 'start' else -1.0)
        limit = self.limits.acceleration
        slack = np.median(self.signals[2].error, axis=0)
        share = (np.abs(change) - slack) / limit
        j = int(share.argmax())
        if share[j] <= 1.0:
            return None
        return Excess(
            'acceleration', self.model.joint_names[j], 'commanded', float(self.times[row]),
            float(change[j]), float(np.copysign(limit[j], change[j])),
            float(np.abs(change[j]) / limit[j]),
        )  # fmt: skip

    def _measured_rest(self) -> bool:
        """Whether the robot is known to have been at rest before the first command."""
        if self.measured is None:
            return False
        before = self.measured.times <= self.times[0]
        if before.sum() < 2:
            return False
        times, q = self.measured.times[before][-20:], self.measured.position[before][-20:]
        moved = np.abs(q[-1] - q[0]).max()
        wanted = np.abs(self.motion[1][1]).max() * (times[-1] - times[0])
        return bool(moved < 0.2 * wanted)

    def _jump_at_start(self) -> StopCause | None:
        """Way from where the robot is measured to the first command, if it is too far."""
        if self.measured is None:
            return None
        times, q = self.measured.times, self.measured.position
        near = int(np.abs(times - self.times[0]).argmin())
        if abs(times[near] - self.times[0]) > 2.0 * max(self.clock.period, 0.001):
            return None
        apart = np.abs(_at(self.times, self.stream.position, times) - q)
        usual = np.minimum(np.nanmedian(apart, axis=0), _USUAL)
        h, limit = self.clock.period, self.limits.velocity
        away = self.stream.position[0] - q[near]
        speed = np.maximum(np.abs(away) - 5.0 * usual, 0.0) / h
        j = int((speed / limit).argmax())
        if speed[j] <= limit[j] or np.isinf(limit[j]):
            return None
        value = float(away[j] / h)
        time = float(self.times[0])
        excess = Excess(
            'velocity', self.model.joint_names[j], 'commanded', time, value,
            float(np.copysign(limit[j], value)), abs(value) / float(limit[j]),
        )  # fmt: skip
        return StopCause(
            'jump at the start', time, time, (excess,), True,
            f'The first command is {abs(away[j]):.3g} rad or m away from where '
            f'{self.model.joint_names[j]} is measured: read the position of the robot, and begin '
            'there.',
        )  # fmt: skip

    def stamps(self) -> Iterator[StopCause]:
        """Commands that are missing, and steps of the stamps."""
        clock, times = self.clock, self.times
        if (rows := np.flatnonzero(clock.missing)).size:
            worst = int(clock.missing.argmax())
            yield StopCause(
                'missing commands', float(times[worst - 1]), float(times[worst]), (), False,
                f'{int(clock.missing.sum())} commands are missing in motion, at {len(rows)} '
                f'places, at most {int(clock.missing[worst])}, before {times[worst]:.4g} s: they '
                'were not recorded, or not sent in time.',
            )  # fmt: skip
        for row in np.flatnonzero(clock.leaps).tolist():
            leap = clock.leaps[row]
            if 0.0 < leap < _STALL:
                kind, advice = (
                    'late command',
                    (
                        f'The command at {times[row]:.4g} s comes {1e3 * leap:.3g} ms late, and goes '
                        f'on as if it had not: {self._each_cycle()}'
                    ),
                )
            else:
                kind, advice = (
                    'step of the stamps',
                    (
                        f'The stamps step by {leap:.3g} s before {times[row]:.4g} s, but the commands '
                        'go on as usual: who computes them from the time must use a clock that is '
                        'never set, such as CLOCK_MONOTONIC.'
                    ),
                )
            yield StopCause(kind, float(times[row - 1]), float(times[row]), (), False, advice)

    def noise(self) -> Iterator[StopCause]:
        """Commands that change like noise, by more than limits allow."""
        if self.clock.period > _SLOW:
            return  # as well it may be the stamps
        worst: Excess | None = None
        for signal in self.signals:
            if signal.source != 'commanded' or signal.quantity in ('position', 'effort'):
                continue
            values = np.abs(signal.values)
            is_effort = signal.quantity == 'effort_dot'
            flaws = self.flaws['effort' if is_effort else 'position']
            order = 1 if is_effort else _MOTION.index(signal.quantity)
            rounded = flaws.rounding(order, self.clock.period)
            over = (values > signal.upper + rounded) & (values <= signal.upper + signal.error)
            share = over.sum(axis=0) / max(1, len(self.moving))
            for j in np.flatnonzero(share > _NOISY).tolist():
                row = int(np.where(over[:, j], values[:, j], 0.0).argmax())
                value, limit = float(signal.values[row, j]), float(signal.upper[j])
                if worst is None or abs(value) / limit > worst.factor:
                    worst = Excess(
                        signal.quantity, self.model.joint_names[j], 'commanded',
                        float(self.times[row]), value, float(np.copysign(limit, value)),
                        abs(value) / limit,
                    )  # fmt: skip
        if worst is not None:
            yield StopCause(
                'noisy commands', worst.time, worst.time, (worst,), False,
                'The commands change like noise from one to the next. If they were sent like '
                'that, filter them; if they are measurements, give them as these.',
            )  # fmt: skip

    def told(self, events: Sequence[_Event]) -> tuple[str, str]:
        """Kind of what makes commands exceed limits for a short or a long time, and advice."""
        mine = [event for event in events if event.excess.source == 'commanded']
        worst = max(mine, key=lambda event: event.excess.factor).excess
        j = self.model.joint_names.index(worst.joint_name)
        quantities = {event.excess.quantity for event in mine}
        first = int(np.searchsorted(self.times, min(event.first for event in mine)))
        last = int(np.searchsorted(self.times, max(event.last for event in mine)))
        is_short = last - first < _SHORT
        if not quantities & set(_MOTION):
            return self._told_efforts(worst, j, first, is_short)
        if quantities & set(_MOTION) == {'position'}:
            return 'out of range', 'The commands leave the range of the joint: plan another path.'
        if not is_short:
            return 'motion too fast', (
                'The commanded motion is too fast for its limits: hodyn retime finds a timing '
                'that keeps them.'
            )
        a, b = max(first - 1, 1), min(last + 1, len(self.times) - 1)
        v = self.motion[1][a : b + 1, j]
        between = v - np.linspace(v[0], v[-1], len(v))
        name = self.model.joint_names[j]
        if np.nanmax(np.abs(between)) > 2.0 * abs(v[-1] - v[0]):
            size = float(np.nansum(between)) * self.clock.period
            return 'jump', (
                f'The command of {name} jumps by {abs(size):.3g} rad or m: begin each motion '
                'where the one before ends, and let no inverse kinematics change its solution.'
            )
        if 'acceleration' in quantities or 'velocity' in quantities:
            return 'velocity step', (
                f'The velocity of {name} steps by {abs(v[-1] - v[0]):.3g} rad/s or m/s: plan from '
                'the velocity that there is, within a limit of acceleration.'
            )
        return 'acceleration step', (
            f'The acceleration of {name} steps: plan within a limit of jerk.'
        )

    def _told_efforts(self, worst: Excess, j: int, row: int, is_short: bool) -> tuple[str, str]:
        if worst.quantity == 'effort':
            return 'torque too large', (
                f'The commanded torque of {worst.joint_name} is larger than its limit: lower '
                'gains or speed, or clamp it.'
            )
        most = abs(worst.limit) * self.clock.period
        if is_short:
            effort = np.asarray(self.stream.effort)
            step = float(abs(effort[row, j] - effort[max(row - 1, 0), j]))
            return 'torque step', (
                f'The commanded torque of {worst.joint_name} steps by {step:.3g} N m or N, at '
                f'most {most:.3g} are allowed in a cycle: ramp it, or limit its rate.'
            )
        return 'torque too fast', (
            f'The commanded torque of {worst.joint_name} changes by more than {most:.3g} N m or '
            'N in a cycle: lower gains, or filter what they multiply.'
        )


class _Causes:
    """Events and traces put together."""

    def __init__(
        self, period: float, events: Sequence[_Event], commands: _Commands | None
    ) -> None:
        self._period, self._events, self._commands = period, list(events), commands

    def found(self) -> list[StopCause]:
        """All causes, in the order in which they are found."""
        causes = []
        commands = self._commands
        if commands is not None:
            for cause in commands.edges():
                if cause.kind == 'end in motion':  # differences behind it follow from it
                    self._taken(cause.time, cause.end)
                causes.append(cause)
            causes += commands.stamps()
            causes += commands.noise()
            for trace in commands.traces():
                if taken := self._taken(trace.first, trace.last):
                    causes.append(
                        StopCause(trace.kind, trace.first, trace.last, taken, True, trace.advice)
                    )
        return causes + [self._cause(cluster) for cluster in self._clusters()]

    def _taken(self, first: float, last: float) -> tuple[Excess, ...]:
        """Worst of the events that follow from something in a short time, which are then gone."""
        slack = 0.5 * self._period

        def belongs(event: _Event) -> bool:
            end = last if event.excess.source != 'measured' else first + _RESPONSE
            return first - slack <= event.first and event.last <= end + slack

        mine = [event for event in self._events if belongs(event)]
        if all(event.excess.source == 'measured' for event in mine):
            return ()
        self._events = [event for event in self._events if event not in mine]
        return _worst(mine)

    def _clusters(self) -> Iterator[list[_Event]]:
        """Events that overlap, or nearly."""
        cluster: list[_Event] = []
        end = -np.inf
        for event in self._events:
            if cluster and event.first > end + _TOGETHER * self._period:
                yield cluster
                cluster = []
            cluster.append(event)
            end = max(end, event.last) if len(cluster) > 1 else event.last
        if cluster:
            yield cluster

    def _cause(self, events: list[_Event]) -> StopCause:
        sources = {event.excess.source for event in events}
        worst = _worst(events)
        if 'commanded' in sources and self._commands is not None:
            kind, advice = self._commands.told(events)
        elif 'computed' in sources:
            kind, advice = (
                'motion needs too much torque',
                (
                    'By the model the commanded motion needs more than the limit: hodyn retime finds '
                    'a timing that keeps it; a payload belongs into the model.'
                ),
            )
        else:
            kind, advice = (
                'measured excess',
                (
                    f'The measured {_WORDS.get(worst[0].quantity, worst[0].quantity)} of '
                    f'{worst[0].joint_name} exceeds its limit, but no command does: look for contact, '
                    'a payload that the robot does not know of, or gains that are too high.'
                    if self._commands is not None
                    else 'Record the commands, too: they tell whether these asked for it.'
                ),
            )
        first, last = min(e.first for e in events), max(e.last for e in events)
        return StopCause(kind, first, last, worst, True, advice)
