"""Why a robot stopped: which limit its recorded commands or measurements exceeded first, and how.

Commands are differenced sample by sample, as the controller of the robot does it; whatever exceeds
a limit is a cause, certain if rounding and noise of the recording cannot explain it. Causes are
told by their traces: repeated commands, jumps, steps of velocity or acceleration, a motion that is
too fast. The most probable one comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.recorded_signals import (
    Clock,
    Flaws,
    clock_of,
    differences,
    flaws_of,
    moves,
    repeats,
)
from hodyn_ros.analysis.unlimited import find_unlimited, no_limit
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
    causes: list[StopCause] = []
    signals: list[Signal] = []
    analysed, period = None, 0.0
    unlimited = find_unlimited(model, limits)
    remarks = [no_limit(unlimited)] if unlimited else []
    if commanded is not None:
        commanded = commanded._replace(velocity=None)  # that of the robot follows from positions
        stream, causes = _without_holds(commanded, limits, model)
        analysed = _Commands(model, limits, stream, measured)
        signals += analysed.signals
        period = analysed.clock.period
        remarks += analysed.remarks()
    if measured is not None:
        signals += _signals(limits, measured, 'measured')
        period = period or float(np.median(np.diff(measured.times)))
    events = sorted(
        (event for signal in signals for event in _events(model, signal)),
        key=lambda event: event.first,
    )
    causes += _causes(events, analysed, period)
    deviation = None
    if commanded is not None and measured is not None:
        deviation = _deviation(model, commanded, measured)
        if deviation is None:
            remarks.append(
                'Commands and measurements have no time in common: each is looked at by itself.'
            )
    return StopAnalysis(_ranked(causes), tuple(signals), period, tuple(remarks), deviation)


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


def _rows(recording: Recorded, rows: NDArray[np.intp]) -> Recorded:
    """Some of the samples."""
    kept: Any = (None if values is None else values[rows] for values in recording)
    return Recorded(*kept)


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
        recording = _rows(recording, order)
        clock = clock_of(times, recording.position)
    is_measured = source == 'measured'
    flaws = flaws or _flaws(recording, is_measured)
    # Differences of higher order of measurements are noise.
    orders = _MOTION[:2] if is_measured else _MOTION
    series = [(quantity, 'position', k) for k, quantity in enumerate(orders)]
    if 'velocity' in flaws:
        series[1] = ('velocity', 'velocity', 0)
    if 'effort' in flaws:
        series += [(quantity, 'effort', k) for k, quantity in enumerate(_EFFORT)]
    found = []
    for quantity, base, k in series:
        rates = differences(getattr(recording, base), clock.ticks, k, clock.is_cut)
        error = flaws[base].error(k, clock.period)
        error += k * clock.error * np.abs(np.nan_to_num(rates))
        found.append(Signal(quantity, source, times, rates, error, *_range(limits, quantity)))
    return found


def _flaws(recording: Recorded, is_measured: bool) -> dict[str, Flaws]:
    """Flaws of what is known in a recording."""
    return {
        what: flaws_of(values, is_measured)
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
                    signal.quantity,
                    model.joint_names[j],
                    signal.source,
                    float(signal.times[worst]),
                    value,
                    limit,
                    _factor(value, float(lower[j]), float(upper[j])),
                ),
            )


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
    flaws = _flaws(commanded, False)
    rows = np.flatnonzero(moves(c, flaws['position'].resolution))
    if len(rows) < 2 * _FEWEST:
        return commanded, []
    apart = np.diff(rows)
    stride = int(np.median(apart))
    is_still = (np.diff(c, axis=0) == 0.0).all(axis=1)
    if stride < 2 or is_still.mean() < 0.4 or np.mean(apart == stride) < 0.6:
        return commanded, []
    kept = np.unique(np.append(0, rows + 1))
    thinned = _rows(commanded, kept)
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


def _instant(time: float) -> str:
    return f'{time:.4f}'.rstrip('0').rstrip('.') + ' s'


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
                not cause.is_certain,
                not ended(cause),
                cause.kind in at_edge,
                [_SOURCES.index(excess.source) for excess in cause.excesses[:1]],
                -cause.factor,
                cause.time,
            ),
        )
    )


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
        self.flaws = _flaws(stream, False)
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
            else 'and the motion goes on behind it: it stood still meanwhile'
        )
        return _Trace(
            'missed cycle' if makes_up else 'repeated command',
            float(time),
            float(self.times[min(row + count + 3, len(self.times) - 1)]),
            f'The command at {_instant(time)} repeats {how}, {then}. {self._each_cycle()}',
        )

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
        if (jump := self._jump_at_start()) is not None:
            yield jump
        elif first == 0 and (excess := self._from_rest('start', (q[1] - q[0]) / h)):
            at_rest = self._measured_rest()
            reason = 'the robot was at rest' if at_rest else 'if the recording did not begin later'
            yield StopCause(
                'start in motion',
                excess.time,
                float(self.times[1]),
                (excess,),
                at_rest,
                f'The first commands move at {abs(excess.value) * h:.3g} rad/s or m/s, {reason}: '
                'begin with the position of the robot and at rest.',
            )
        if excess := self._from_rest('end', (q[last + 1] - q[last]) / h, last + 1):
            yield StopCause(
                'end in motion',
                excess.time,
                excess.time + _SHORT * h,
                (excess,),
                False,
                f'The commands end at {abs(excess.value) * h:.3g} rad/s or m/s: bring them to '
                'rest before the last one, unless they end because the robot had stopped.',
            )

    def _from_rest(self, edge: str, velocity: Array, row: int = 0) -> Excess | None:
        """Acceleration between rest and a velocity (n,) within a cycle, if it is too much."""
        change = velocity / self.clock.period * (1.0 if edge == 'start' else -1.0)
        limit = self.limits.acceleration
        share = (np.abs(change) - self.signals[2].error[row]) / limit
        j = int(share.argmax())
        if share[j] <= 1.0:
            return None
        return Excess(
            'acceleration',
            self.model.joint_names[j],
            'commanded',
            float(self.times[row]),
            float(change[j]),
            float(np.copysign(limit[j], change[j])),
            float(np.abs(change[j]) / limit[j]),
        )

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
        apart = apart[~np.isnan(apart).any(axis=1)]
        usual = np.minimum(np.median(apart, axis=0), _USUAL) if len(apart) else 0.0
        h, limit = self.clock.period, self.limits.velocity
        away = self.stream.position[0] - q[near]
        speed = np.maximum(np.abs(away) - 5.0 * usual, 0.0) / h
        j = int((speed / limit).argmax())
        if speed[j] <= limit[j] or np.isinf(limit[j]):
            return None
        value = float(away[j] / h)
        time = float(self.times[0])
        excess = Excess(
            'velocity',
            self.model.joint_names[j],
            'commanded',
            time,
            value,
            float(np.copysign(limit[j], value)),
            abs(value) / float(limit[j]),
        )
        return StopCause(
            'jump at the start',
            time,
            time,
            (excess,),
            True,
            f'The first command is {abs(away[j]):.3g} rad or m away from where '
            f'{self.model.joint_names[j]} is measured: read the position of the robot, and begin '
            'there.',
        )

    def stamps(self) -> Iterator[StopCause]:
        """Commands that are missing, and steps of the stamps."""
        clock, times = self.clock, self.times
        if (rows := np.flatnonzero(clock.missing)).size:
            worst = int(clock.missing.argmax())
            yield StopCause(
                'missing commands',
                float(times[worst - 1]),
                float(times[worst]),
                (),
                False,
                f'{int(clock.missing.sum())} commands are missing in motion, at {len(rows)} '
                f'places, at most {int(clock.missing[worst])} before {_instant(times[worst])}: '
                'they were not recorded, or not sent in time.',
            )
        for row in np.flatnonzero(clock.leaps).tolist():
            leap = clock.leaps[row]
            kind = 'late command' if 0.0 < leap < _STALL else 'step of the stamps'
            if kind == 'late command':
                advice = (
                    f'The command at {_instant(times[row])} comes {1e3 * leap:.3g} ms late, and '
                    f'goes on as if it had not. {self._each_cycle()}'
                )
            else:
                advice = (
                    f'The stamps step by {leap:.3g} s before {_instant(times[row])}, but the '
                    'commands go on as usual: who computes them from the time must use a clock '
                    'that is never set, such as CLOCK_MONOTONIC.'
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
                        signal.quantity,
                        self.model.joint_names[j],
                        'commanded',
                        float(self.times[row]),
                        value,
                        float(np.copysign(limit, value)),
                        abs(value) / limit,
                    )
        if worst is not None:
            yield StopCause(
                'noisy commands',
                worst.time,
                worst.time,
                (worst,),
                False,
                'The commands change like noise from one to the next. If they were sent like '
                'that, filter them; if they are measurements, give them as these.',
            )

    def told(self, events: Sequence[_Event]) -> tuple[str, str]:
        """Kind of what makes commands exceed limits, and what to do."""
        mine = [event for event in events if event.excess.source == 'commanded']
        worst = max(mine, key=lambda event: event.excess.factor).excess
        j = self.model.joint_names.index(worst.joint_name)
        quantities = {event.excess.quantity for event in mine}
        first = int(np.searchsorted(self.times, min(event.first for event in mine)))
        last = int(np.searchsorted(self.times, max(event.last for event in mine)))
        is_step = self._is_step(worst, j, first, last)
        if not quantities & set(_MOTION):
            return self._told_efforts(worst, is_step)
        if quantities & set(_MOTION) == {'position'}:
            return 'out of range', 'The commands leave the range of the joint: plan another path.'
        if not is_step:
            return 'motion too fast', (
                'The commanded motion is too fast for its limits: hodyn retime finds a timing '
                'that keeps them.'
            )
        a, b = max(first - 1, 1), min(last + 1, len(self.times) - 1)
        v = self.motion[1][a : b + 1, j]
        between = v - np.linspace(v[0], v[-1], len(v))
        name = self.model.joint_names[j]
        if np.abs(between).max() > 2.0 * abs(v[-1] - v[0]):
            size = float(between.sum()) * self.clock.period
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

    def _is_step(self, worst: Excess, j: int, first: int, last: int) -> bool:
        """Whether a quantity is large between two samples, and not around them."""
        if last - first >= _SHORT:
            return False
        (signal,) = (
            signal
            for signal in self.signals
            if (signal.source, signal.quantity) == (worst.source, worst.quantity)
        )
        rows = [*range(max(0, first - _SHORT), first), *range(last + 1, last + 1 + _SHORT)]
        rows = [row for row in rows if row < len(self.times)]
        return not bool((np.abs(signal.values[rows, j]) > 0.5 * abs(worst.value)).any())

    def _told_efforts(self, worst: Excess, is_step: bool) -> tuple[str, str]:
        if worst.quantity == 'effort':
            return 'torque too large', (
                f'The commanded torque of {worst.joint_name} is larger than its limit: lower '
                'gains or speed, or clamp it.'
            )
        most = abs(worst.limit) * self.clock.period
        if is_step:
            step = abs(worst.value) * self.clock.period
            return 'torque step', (
                f'The commanded torque of {worst.joint_name} steps by {step:.3g} N m or N, at '
                f'most {most:.3g} are allowed in a cycle: ramp it, or limit its rate.'
            )
        return 'torque too fast', (
            f'The commanded torque of {worst.joint_name} changes by more than {most:.3g} N m or '
            'N in a cycle: lower gains, or filter what they multiply.'
        )


def _causes(
    events: list[_Event], commands: _Commands | None, period: float
) -> Iterator[StopCause]:
    """Events explained: by what is seen in the commands, and those that remain by themselves."""
    if commands is not None:
        for cause in commands.edges():
            if cause.kind == 'end in motion':  # differences behind it follow from it
                _take(events, cause.time + period, cause.end, period)
            yield cause
        yield from commands.stamps()
        yield from commands.noise()
        for trace in commands.traces():
            if taken := _take(events, trace.first, trace.last, period):
                worst = _worst(taken)
                yield StopCause(trace.kind, trace.first, trace.last, worst, True, trace.advice)
    for cluster in _clusters(events, period):
        yield _explained(cluster, commands)


def _take(events: list[_Event], first: float, last: float, period: float) -> list[_Event]:
    """Take out the events that follow from something in a short time."""
    slack = 0.5 * period
    taken: list[_Event] = []
    others: list[_Event] = []
    for event in events:
        end = last if event.excess.source != 'measured' else first + _RESPONSE
        is_of_it = first - slack <= event.first and event.last <= end + slack
        (taken if is_of_it else others).append(event)
    if all(event.excess.source == 'measured' for event in taken):
        return []
    events[:] = others
    return taken


def _clusters(events: Sequence[_Event], period: float) -> Iterator[list[_Event]]:
    """Events that overlap, or nearly; short ones apart from long ones, which hide them."""
    is_long = [event.last - event.first > _SHORT * period for event in events]
    for wanted in (False, True):
        cluster: list[_Event] = []
        end = -np.inf
        for event in (event for event, long in zip(events, is_long) if long == wanted):
            if cluster and event.first > end + _TOGETHER * period:
                yield cluster
                cluster, end = [], -np.inf
            cluster.append(event)
            end = max(end, event.last)
        if cluster:
            yield cluster


def _explained(events: list[_Event], commands: _Commands | None) -> StopCause:
    """Cause of events by the signals that they are seen in."""
    sources = {event.excess.source for event in events}
    worst = _worst(events)
    what = f'The measured {_WORDS.get(worst[0].quantity, worst[0].quantity)} of'
    kind, advice = 'measured excess', f'{what} {worst[0].joint_name} exceeds its limit'
    if commands is not None and 'commanded' in sources:
        kind, advice = commands.told(events)
    elif 'computed' in sources and 'measured' not in sources:
        kind, advice = (
            'torque of the model',
            (
                'By the model the commanded motion needs more than the limit: hodyn retime finds '
                'a timing that keeps it; a payload belongs into the model.'
            ),
        )
    elif commands is not None:
        advice += (
            ', but no command does: look for contact, a payload that the robot does not know of, '
            'or gains that are too high.'
        )
    else:
        advice += '. Record the commands, too: they tell whether these asked for it.'
    first, last = min(e.first for e in events), max(e.last for e in events)
    return StopCause(kind, first, last, worst, True, advice)
