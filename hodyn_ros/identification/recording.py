"""Recordings of robots, filtered: from samples of files to rows that equations hold for.

Positions, efforts and what friction depends on pass the same low pass F without phase, and few of
its samples are kept. What is linear in the parameters stays so: F tau = F Y pi, where F Y is the
regressor of the filtered motion but for the change of the mass matrix within the filter's reach.
Source: Gautier 1997, "Dynamic identification of robots with power model", section on filtering.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import IdentificationError
from hodyn_ros.files.files import read_motion
from hodyn_ros.files.inspection import inspect
from hodyn_ros.files.samples import Samples
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.trajectory.differences import noise_of
from hodyn_ros.typing import Array, Indices

Flags = NDArray[np.bool_]
Law = Callable[[Array], Array]


class RecordingFile(NamedTuple):
    """A file of samples with measured efforts.

    Attributes
    ----------
    path : path-like
        Any file with measured efforts that `read_motion` reads.

    Examples
    --------
    >>> from hodyn_ros.identification import RecordingFile
    >>> recording = RecordingFile('run1.mcap', topic='/joint_states', motor_topic='/motor_states')
    >>> recording.path, recording.motor_topic
    ('run1.mcap', '/motor_states')
    """

    path: str | os.PathLike[str]
    topic: str | None = None
    """Of a bag: that of the joint states."""
    motor_topic: str | None = None
    """Of a bag: joint states of the motors, by the names of the joints that they move."""

    def __str__(self) -> str:
        return str(self.path)


Recording = Union[Samples, RecordingFile, str, 'os.PathLike[str]']
"""Samples with measured efforts, or a file of them."""

_CHUNK = 1 << 15  # samples of a recording that are filtered together
# Of the pass band over the frequency of the motion, at most and at least; of the rate of the
# samples; of rows over the pass band.
_WIDEST, _NARROWEST, _OF_RATE, _ROWS = 16.0, 4.0, 0.2, 2.0
_NOISE_SHARE = 0.01  # of the acceleration that may be noise
_TRIAL = 25.0  # Hz, pass band with which the motion is looked at first
_EDGES = 4.0  # time that is lost at both ends, in units of one over the pass band
_GAP = 5.0  # steps without samples that divide a recording
_TOUCHED = 0.02  # share of a row that samples may have which are not used
_SPIKE, _LEAST_SPIKE = 8.0, 0.02  # over the noise, and over the range of values
_SHARP = (
    12.0  # rate of samples over the pass band from which on spikes are told from motion
)
_AT_LIMIT, _CLIPPED = 0.995, 10  # share of a limit, and samples at the same extreme
_SLOW, _SLOW_NOISE = 0.005, 5.0  # speed at rest, over the largest one and over its noise
_MEASURED, _POSITIONS = ('effort', 'motor_torque'), ('q', 'motor_position')
# Central differences of sixth order.
_KERNELS = (
    np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0,
    np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0,
)
_HELD_OUT = 60  # rows from which on some are held out
_FEW = 1e-4  # share of samples that is worth a remark


@dataclass(frozen=True, eq=False)
class Stretch:
    """Rows of a recording, M of them, of n joints."""

    times: Array
    """Shape (M,), as the recording counts them [s]; even, but where derivatives are given."""
    motion: Array
    """Positions, velocities and accelerations of the joints, shape (M, 3, n)."""
    motor_motion: Array | None
    """The same of the motors."""
    measured: Mapping[str, Array]
    """Efforts, or motor torques, with the time derivatives that are known, (M, D, n)."""
    speed: Array
    """What friction depends on, of all samples, shape (N, n) [rad/s] or [m/s]."""
    is_used: Mapping[str, Flags]
    """Whether what is measured is used, and whether a joint is not 'resting', shape (M, n)."""
    deviations: Array
    """Standard deviations of accelerations, positions and positions of motors, (3, M, n)."""
    noise: Mapping[str, Array] = field(default_factory=dict)
    """Standard deviations of what is measured, as neighbouring samples scatter, shape (n,)."""
    kept: Callable[[Array], Array] = lambda values: values
    """The filter: from values of all samples (N, n) to those of rows (M, n)."""

    filtered: dict[Hashable, Array] = field(default_factory=dict)
    """Friction of laws that were asked for."""

    def friction(self, key: Hashable, law: Law) -> Array:
        """Friction of a law behind the filter, shape (M, n).

        Parameters
        ----------
        key : hashable
            By which the result is kept, since the velocities stay.
        law : callable
            From velocities (..., n, 1) to efforts of this shape.

        Returns
        -------
        ndarray, shape (M, n)
            [N m] or [N]
        """
        if key not in self.filtered:
            self.filtered[key] = self.kept(law(self.speed[..., None])[..., 0])
        return self.filtered[key]

    @classmethod
    def exact(cls, motion: Array, motor_motion: Array | None = None) -> Stretch:
        """A motion that is known, shape (M, 3, n), of which nothing is measured."""
        M, _, n = motion.shape
        none = np.zeros((3, M, n))
        return cls(np.arange(float(M)), motion, motor_motion, {}, motion[:, 1], {}, none)

    @property
    def step(self) -> float:
        """Usual time between rows [s]."""
        return float(np.median(np.diff(self.times))) if len(self.times) > 1 else 1.0

    @property
    def is_even(self) -> bool:
        """Whether its times are even, but for jitter."""
        steps = np.diff(self.times)
        return bool(np.abs(steps - self.step).max(initial=0.0) < 0.5 * self.step)

    def part(self, first: int, last: int) -> Stretch:
        """Rows of it, from the first to before the last.

        Parameters
        ----------
        first, last : int
            From 0 to M.

        Returns
        -------
        Stretch
        """
        rows = slice(first, last)
        series: dict[str, Any] = {
            field: {name: values[rows] for name, values in getattr(self, field).items()}
            for field in ('measured', 'is_used')
        }
        motors = None if self.motor_motion is None else self.motor_motion[rows]
        return replace(
            self,
            times=self.times[rows],
            motion=self.motion[rows],
            motor_motion=motors,
            deviations=self.deviations[:, rows],
            kept=lambda values: self.kept(values)[rows],
            filtered={},
            **series,
        )


class Preparation:
    """What is done to all recordings alike, and what is seen on the way.

    Parameters
    ----------
    model : RobotModel
    at_motor : array of bool, shape (n,)
        Whether friction depends on the velocity of the motor.
    bandwidth : float, optional
        Pass band [Hz]; by default found from noise and motion of the first recording.

    Attributes
    ----------
    samples : int
        Samples of all recordings so far.
    seen : list of str
        Remarks on the recordings as files.
    spikes, clipped : ndarray of int, shape (n,)
        Of these, values that were replaced, and those that are not used.
    """

    def __init__(
        self,
        model: RobotModel,
        at_motor: Flags,
        bandwidth: float | None = None,
    ) -> None:
        self.model: RobotModel = model
        self.at_motor: Flags = at_motor
        self.bandwidth = bandwidth
        self.samples: int = 0
        self.seen: list[str] = []
        self.spikes: Indices
        self.clipped: Indices
        self.spikes, self.clipped = np.zeros((2, model.n_joints), dtype=np.intp)

    def stretches(self, recording: Recording) -> list[Stretch]:
        """Rows of a recording; IdentificationError if there are none.

        Parameters
        ----------
        recording : Samples, RecordingFile or path
            Of all joints of the model.

        Returns
        -------
        list of Stretch

        Raises
        ------
        IdentificationError
            If there are too few samples, or too few per second for the pass band.
        JointNameError, FileError, MotionError
            If it lacks joints or cannot be read.
        """
        found: list[Stretch] = []
        seen = inspect(self.model, _read(recording))
        whole, name = seen.samples, seen.samples.name
        self.seen += [text for text in whole.remarks if text not in self.seen]
        self.samples += len(whole)
        is_given = whole.motion.shape[1] >= 3 and not np.isnan(whole.motion[:, 2]).any()
        for first in range(0, len(whole), _CHUNK):
            samples = whole.at(slice(first, first + _CHUNK))
            if is_given and seen.kind != 'measured':
                found.append(self._given(samples))
            else:
                found += self._filtered(samples)
        if not found:
            band = f'{self.bandwidth:.3g} Hz' if self.bandwidth else 'the pass band'
            raise IdentificationError(
                f'{name}: there are too few samples, expected some seconds without a gap '
                f'(the filter of {band} needs {_EDGES} periods at both ends).'
            )
        return found

    def remarks(self) -> list[str]:
        """What was left out; IdentificationError if it is most of it.

        Returns
        -------
        list of str
            On clipped samples and spikes.

        Raises
        ------
        IdentificationError
            If it is more than half of the samples of a joint.
        """
        names, remarks = self.model.joint_names, [*self.seen]
        for count, what in (
            (
                self.clipped,
                'are clipped (at a limit, or at their largest value on end) and not '
                'used; record a gentler motion',
            ),
            (self.spikes, 'were spikes, replaced by their neighbours'),
        ):
            share = count / max(self.samples, 1)
            shown = [
                f'{names[j]} {100.0 * share[j]:.2g} %' for j in np.flatnonzero(share > _FEW)
            ]
            if shown:
                remarks.append(f'Some samples {what}: {listed(shown)}.')
            if share.max(initial=0.0) > 0.5:
                raise IdentificationError(f'{remarks[-1]} Or are they in other units?')
        return remarks

    def _given(self, samples: Samples) -> Stretch:
        """Samples whose derivatives are exact, as they are."""
        measured, used, noise = {}, {}, {}
        for what in _MEASURED:
            if (values := samples.by_joint(what)) is not None:
                measured[what] = np.nan_to_num(values)[:, None]
                used[what] = np.isfinite(values)
                noise[what] = noise_of(measured[what][:, 0], has_steps=True)
        speed = samples.motion[:, 1]
        used['resting'] = np.abs(speed) > _SLOW * np.abs(speed).max(axis=0)
        none = np.zeros((3, len(samples), samples.motion.shape[2]))
        motion = samples.motion[:, :3]
        return Stretch(samples.times, motion, None, measured, speed, used, none, noise)

    def _filtered(self, samples: Samples) -> Iterator[Stretch]:
        """Stretches of measured samples: divided at gaps, made even in time, and filtered."""
        times, rows = np.unique(samples.times, return_index=True)
        series = {'q': samples.motion[rows, 0].copy()}
        for what in ('motor_position', *_MEASURED):
            values = samples.by_joint(what)
            if values is not None and np.isfinite(values).any():
                series[what] = values[rows]
        scatter = {
            what: noise_of(np.nan_to_num(series[what]), has_steps=True)
            for what in _MEASURED
            if what in series
        }
        for run in _even(times, series):
            band = self._pass_band(samples.name, run)
            flawed = self._mended(run, band)
            margin = int(np.ceil(_EDGES * (1.0 / run.step) / band))
            if len(run.values['q']) >= 3 * margin:
                yield self._stretch(run, flawed, scatter, _Filter(band, run.step, margin))

    def _pass_band(self, name: str, run: _Run) -> float:
        """The pass band [Hz], found in the first run of all if it is not given."""
        rate = 1.0 / run.step
        if self.bandwidth is None:
            self.bandwidth = _pass_band(run.values['q'], run.noise['q'], run.step)
        if self.bandwidth > 0.45 * rate:
            raise IdentificationError(
                f'{name}: {rate:.3g} samples per second are too few for a pass band of '
                f'{self.bandwidth:.3g} Hz; record at {5.0 * self.bandwidth:.0f} Hz or more.'
            )
        return self.bandwidth

    def _mended(self, run: _Run, band: float) -> dict[str, Flags]:
        """Replace spikes; which samples are not used, being unknown or clipped.

        Parameters
        ----------
        run : _Run
            Changed in place.
        band : float
            Pass band [Hz].

        Returns
        -------
        dict of str to ndarray of bool, shape (N, n)
            By what was measured.
        """
        from scipy.ndimage import median_filter

        flawed: dict[str, Flags] = {}
        for what, values in run.values.items():
            middle = median_filter(values, size=(5, 1), mode='nearest')
            off = np.abs(values - middle)
            low, high = np.percentile(values, (1, 99), axis=0)
            usual = _SPIKE * 1.5 * np.median(off, axis=0)
            is_spike = off > np.maximum(usual, _LEAST_SPIKE * (high - low) + 1e-9)
            is_spike &= 1.0 / run.step > _SHARP * band  # else it may be the motion
            values[is_spike] = middle[is_spike]
            self.spikes += is_spike.sum(axis=0)
            flawed[what] = ~run.known[what]
            if what in _MEASURED:
                limit = self.model.limits.effort if what == 'effort' else np.inf
                clipped = _clipped(values, limit)
                self.clipped += clipped.sum(axis=0)
                flawed[what] |= clipped
        return flawed

    def _stretch(
        self,
        run: _Run,
        flawed: Mapping[str, Flags],
        scatter: Mapping[str, Array],
        smooth: _Filter,
    ) -> Stretch:
        """Rows of a run behind the filter.

        Parameters
        ----------
        run : _Run
            Without spikes.
        flawed : mapping of str to ndarray of bool, shape (N, n)
            Samples that are not used.
        scatter : mapping of str to ndarray, shape (n,)
            Standard deviation of the noise of efforts.
        smooth : _Filter

        Returns
        -------
        Stretch
        """
        even, gains = run.values, smooth.gains()
        flawless = smooth.kept_of(flawed['q'].astype(float)) < _TOUCHED
        motion, speed = smooth.with_rates(even['q'], 3)
        motor_motion = None
        if 'motor_position' in even:
            motor_motion, motor_speed = smooth.with_rates(even['motor_position'], 3)
            speed = np.where(self.at_motor, motor_speed, speed)
        measured, used, floors = {}, {}, {}
        for what, own in scatter.items():
            floors[what] = gains[0] * own
            measured[what] = smooth.with_rates(even[what], 4)[0]
            touched = smooth.kept_of(flawed[what].astype(float))
            used[what] = (touched < _TOUCHED) & flawless
        noise = run.noise['q']
        motor_noise = run.noise.get('motor_position', 0.0 * noise)
        deviations = np.zeros((3, *motion[:, 0].shape))
        deviations[0] = gains[2] * noise
        for k, (error, rate_of) in enumerate(
            ((noise, motion), (motor_noise, motor_motion))
        ):
            if rate_of is not None:
                # An encoder that hardly moves shows the same error all the time.
                step = np.sqrt(12.0) * error * 2.0 * smooth.band
                alike = step / np.maximum(np.abs(rate_of[:, 1]), step + 1e-300)
                deviations[1 + k] = error * np.maximum(gains[0], alike)
        slow = np.maximum(
            _SLOW * np.abs(speed).max(axis=0),
            _SLOW_NOISE * gains[1] * np.where(self.at_motor, motor_noise, noise),
        )
        used['resting'] = smooth.kept_of((np.abs(speed) < slow).astype(float)) < 0.5
        rows = smooth.margin + smooth.stride * np.arange(len(motion))
        return Stretch(
            np.asarray(run.start + run.step * rows, dtype=np.float64),
            motion,
            motor_motion,
            measured,
            speed,
            used,
            deviations,
            floors,
            smooth.kept_of,
        )


def several(recordings: Recording | Sequence[Recording]) -> list[Any]:
    """Recordings as a list, be it one or more.

    Parameters
    ----------
    recordings : Recording or sequence of them

    Returns
    -------
    list
    """
    if isinstance(recordings, RecordingFile) or not isinstance(recordings, (list, tuple)):
        return [recordings]
    return list(recordings)


def prepared(
    preparation: Preparation, recordings: Sequence[Recording]
) -> dict[str, list[Stretch]]:
    """Stretches of recordings by their names.

    Parameters
    ----------
    preparation : Preparation
    recordings : sequence of Recording

    Returns
    -------
    dict of str to list of Stretch
        Numbered where names are the same.

    Raises
    ------
    IdentificationError, JointNameError, FileError, MotionError
        See `Preparation.stretches`.
    """
    names = [str(getattr(item, 'name', item)) for item in recordings]
    many = len(set(names)) < len(names)
    return {
        f'{name} ({number})' if many else name: preparation.stretches(item)
        for number, (name, item) in enumerate(zip(names, recordings), start=1)
    }


def held_out(
    recordings: Mapping[str, Sequence[Stretch]],
) -> tuple[dict[str, list[Stretch]], dict[str, list[Stretch]]]:
    """Recordings without a fifth of each stretch, in two pieces, and these; short ones whole.

    Parameters
    ----------
    recordings : mapping of str to sequence of Stretch

    Returns
    -------
    kept : dict of str to list of Stretch
        Three pieces of each stretch; those of fewer than 60 rows whole.
    held : dict of str to list of Stretch
        Two pieces of each longer stretch.
    """
    kept: dict[str, list[Stretch]] = {name: [] for name in recordings}
    held: dict[str, list[Stretch]] = {}
    for name, stretches in recordings.items():
        for stretch in stretches:
            count = len(stretch.motion)
            ends = (np.array([0.0, 0.3, 0.4, 0.7, 0.8, 1.0]) * count).astype(int).tolist()
            pieces = [stretch.part(*pair) for pair in zip(ends, ends[1:])]
            if count < _HELD_OUT:
                pieces = [stretch]
            kept[name] += pieces[::2]
            if pieces[1::2]:
                held.setdefault(name, []).extend(pieces[1::2])
    return kept, held


def measured_in(stretches: Sequence[Stretch]) -> tuple[str, ...]:
    """Names of what all stretches hold.

    Parameters
    ----------
    stretches : sequence of Stretch

    Returns
    -------
    tuple of str
        'effort', 'motor_torque', or both.

    Raises
    ------
    IdentificationError
        If there is nothing that all of them hold.
    """
    kinds = [set(stretch.measured) for stretch in stretches]
    found = set.intersection(*kinds) if kinds else set()
    if not found:
        raise IdentificationError(
            'The recordings hold no efforts; record them too (columns <joint>.effort or '
            '<joint>.motor_torque, JointState.effort).'
        )
    return tuple(sorted(found))


class _Filter:
    """Low pass of Butterworth for samples at steps h [s], and derivatives behind it.

    Parameters
    ----------
    band : float
        [Hz]
    h : float
        [s]
    margin : int
        Samples at both ends that are lost.

    Attributes
    ----------
    stride : int
        Samples from one row that is kept to the next.
    """

    def __init__(self, band: float, h: float, margin: int) -> None:
        from scipy.signal import butter

        self.band, self.margin, self._h = band, margin, h
        self.stride = max(1, int(1.0 / (h * _ROWS * band)))
        self.kept = slice(margin, -margin, self.stride)
        self._sections = butter(4, band, fs=1.0 / h, output='sos')

    def passed(self, values: Array) -> Array:
        """Values (N, n) behind it, without a delay, since it runs forth and back."""
        from scipy.signal import sosfiltfilt

        return np.asarray(sosfiltfilt(self._sections, values, axis=0))

    def kept_of(self, values: Array) -> Array:
        """Values at the rows that are kept, (M, n)."""
        return self.passed(values)[self.kept]

    def with_rates(self, values: Array, orders: int) -> tuple[Array, Array]:
        """Values with derivatives at the rows that are kept, (M, orders, n), and all rates.

        Parameters
        ----------
        values : ndarray, shape (N, n)
        orders : int
            3 or 4, the value included.

        Returns
        -------
        series : ndarray, shape (M, orders, n)
        rates : ndarray, shape (N, n)
            First derivatives of all samples.
        """
        rates = [self.passed(values)]
        rates += [
            self._derivative(rates[0], kernel, k) for k, kernel in enumerate(_KERNELS, 1)
        ]
        if orders > 3:
            rates.append(self._derivative(rates[2], _KERNELS[0], 1))
        return np.stack([rate[self.kept] for rate in rates], axis=1), rates[1]

    def _derivative(self, values: Array, kernel: Array, order: int) -> Array:
        """Derivative (N, n) by central differences of sixth order; ends go on as they are."""
        from scipy.ndimage import correlate1d

        found = correlate1d(values, kernel, axis=0, mode='nearest')
        return np.asarray(found / self._h**order)

    def gains(self) -> list[float]:
        """Standard deviations of values and two derivatives over that of white noise.

        Returns
        -------
        list of float
            For values, first and second derivatives [1/s^k].
        """
        impulse = np.zeros((4 * self.margin + 1, 1))
        impulse[2 * self.margin] = 1.0
        response = self.passed(impulse)
        rates = [
            response,
            *(self._derivative(response, c, k) for k, c in enumerate(_KERNELS, 1)),
        ]
        return [float(np.sqrt((rate**2).sum())) for rate in rates]


def with_motors(samples: Samples, motors: Samples) -> Samples:
    """Samples with the positions and efforts of motors that were recorded beside them.

    The motors have the names of the joints that they move; their values are interpolated linearly
    at the times of the samples, and NaN outside of their own.

    Parameters
    ----------
    samples : Samples
        Of the joints.
    motors : Samples

    Returns
    -------
    Samples
        With `motor_position`, and `motor_torque` if the motors have efforts.

    Raises
    ------
    JointNameError
        If a joint has no motor.

    Examples
    --------
    >>> from hodyn_ros.files import Samples
    >>> from hodyn_ros.identification import with_motors
    >>> joints = Samples(('elbow',), [0.0, 0.1, 0.2], [[[0.0]], [[0.1]], [[0.2]]])
    >>> motors = Samples(('elbow',), [0.05, 0.15], [[[0.06]], [[0.16]]], effort=[[3.0], [4.0]])
    >>> with_motors(joints, motors).motor_torque[:, 0, 0]
    array([nan, 3.5, nan])
    """
    motors = motors.in_order(samples.joint_names)[0]
    shift = 1e-9 * (samples.start - motors.start)

    def at(values: Array | None) -> Array | None:
        if values is None:
            return None
        columns = [
            np.interp(samples.times + shift, motors.times, column, np.nan, np.nan)
            for column in values.T
        ]
        return np.stack(columns, axis=1)

    return replace(
        samples,
        motor_position=at(motors.motion[:, 0]),
        motor_torque=at(motors.by_joint('effort')),
    )


def _read(recording: Recording) -> Samples:
    """Samples of a recording, with those of its motors."""
    if isinstance(recording, Samples):
        return recording
    file = recording if isinstance(recording, RecordingFile) else RecordingFile(recording)
    samples = read_motion(file.path, topic=file.topic)
    if file.motor_topic is None:
        return samples
    return with_motors(samples, read_motion(file.path, topic=file.motor_topic))


class _Run(NamedTuple):
    """Samples without gaps at even times."""

    start: float
    """[s]"""
    step: float
    """[s]"""
    values: dict[str, Array]
    known: dict[str, Flags]

    noise: dict[str, Array]
    """Standard deviations of the noise of positions, shape (n,) each."""


def _even(times: Array, series: Mapping[str, Array]) -> Iterator[_Run]:
    """Runs without gaps, interpolated at even times.

    Parameters
    ----------
    times : ndarray, shape (N,)
        Increasing [s].
    series : mapping of str to ndarray, shape (N, n)
        NaN where nothing is known.

    Yields
    ------
    _Run
        Gaps are longer than five typical steps; runs of fewer than eight samples are left
        out.
    """
    if len(times) < 2:
        return
    typical = float(np.median(np.diff(times)))
    gaps = np.flatnonzero(np.diff(times) > _GAP * typical)
    for rows in np.split(np.arange(len(times)), 1 + gaps):
        if len(rows) < 8:
            continue
        since = times[rows] - times[rows[0]]
        count = 1 + round(float(since[-1]) / typical)
        h = float(since[-1]) / (count - 1)
        grid = h * np.arange(count)
        even, known = {}, {}
        is_even = count == len(rows) and np.abs(since - grid).max() < 1e-3 * h
        for what, values in series.items():
            values = values[rows]
            finite = np.isfinite(values)
            columns = []
            for column, at in zip(values.T, finite.T):
                if is_even and at.all():
                    columns.append(column)
                elif at.any():
                    columns.append(np.interp(grid, since[at], column[at]))
                else:
                    columns.append(np.zeros(count))
            even[what] = np.stack(columns, axis=1).copy()
            nearest = np.clip(np.searchsorted(since, grid), 0, len(rows) - 1)
            known[what] = finite[nearest]
        noise = {what: noise_of(even[what]) for what in _POSITIONS if what in even}
        yield _Run(float(times[rows[0]]), h, even, known, noise)


def _pass_band(q: Array, noise: Array, h: float) -> float:
    """Pass band [Hz]: wide for the motion, narrow for the noise of the accelerations.

    Parameters
    ----------
    q : ndarray, shape (N, n)
        Positions [rad] or [m].
    noise : ndarray, shape (n,)
        Standard deviations of their noise.
    h : float
        Time between samples [s].

    Returns
    -------
    float
    """
    rate = 1.0 / h
    smooth = _Filter(min(_TRIAL, _OF_RATE * rate), h, 0).passed(q)
    speed = np.diff(smooth, axis=0) / h
    acceleration = np.diff(speed, axis=0) / h
    size, change = (np.sqrt(np.mean(v**2, axis=0)) for v in (speed, acceleration))
    moving = size > max(1e-4, 0.02 * float(size.max()))
    if not moving.any():
        return min(_TRIAL, _OF_RATE * rate)
    frequency = float((change / np.maximum(size, 1e-300))[moving].max()) / (2.0 * np.pi)
    share = (_NOISE_SHARE * change / np.maximum(noise, 1e-300))[moving].min()
    quiet = (2.5 * share**2 / (h * (2.0 * np.pi) ** 4)) ** 0.2
    wanted = max(min(_WIDEST * frequency, quiet), _NARROWEST * frequency)
    return float(min(wanted, _OF_RATE * rate))


def _clipped(values: Array, limit: Array | float) -> Flags:
    """Efforts at a limit, or at their own extreme for many samples on end."""
    from scipy.ndimage import binary_opening

    size = np.abs(values)
    at = size >= size.max(axis=0) * (1.0 - 1e-9)
    full = binary_opening(at, np.ones((_CLIPPED, 1)))  # in a run of at least so many
    moves = np.ptp(values, axis=0) > 1e-9
    found: Flags = (full & moves) | (size >= _AT_LIMIT * np.asarray(limit))
    return found
