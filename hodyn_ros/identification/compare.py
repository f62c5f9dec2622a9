"""Measured efforts beside those of a model: how far they are apart, and what would explain it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.display import Answer, Column, Table, shown
from hodyn_ros.files.samples import Samples
from hodyn_ros.identification.doubt import Explanation
from hodyn_ros.identification.equations import Channels, Equations, Places, Rows
from hodyn_ros.identification.estimation import (
    measured_and_computed,
    scale_remarks,
)
from hodyn_ros.identification.gram import Gram
from hodyn_ros.identification.hypotheses import Hypothesis, described, last_link
from hodyn_ros.identification.recording import (
    Flags,
    Preparation,
    Recording,
    Stretch,
    measured_in,
    prepared,
    several,
)
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import FRICTION, listed, percent
from hodyn_ros.typing import Array

BANDS = (0.0, 0.3, 1.0, 3.0, np.inf)
"""Frequencies between which residuals are added up [Hz]."""

_STEPS, _LARGEST_STEP = 6, 0.03  # of Gauss and Newton, of a delay [s]
_ROUNDING = 1e-12  # part of the squared efforts
_LITTLE = 0.05  # share of a difference that is not worth a sentence
_FRICTION = 'viscous', 'coulomb', 'offset'
_HYPOTHESES = {
    'delay': ('delay',),
    'gravity': ('gravity',),
    'payload': ('payload',),
    'friction': _FRICTION,
    'bodies': ('bodies',),
    'all': ('bodies', *_FRICTION, 'armature', 'gravity', 'delay'),
}
"""Groups of parameters that may explain a difference."""


class ComparedStretch(NamedTuple):
    """A stretch of a recording without gaps, filtered, M instants."""

    name: str
    """Of the recording."""
    times: Array
    """Shape (M,) [s], from the beginning of the recording."""
    motion: Array
    """Positions, velocities and accelerations, shape (M, 3, n)."""
    measured: Array
    """Efforts of the joints, of elastic ones the torques of their motors, (M, n) [N m] or [N]."""
    computed: Array
    """Those of the model, shape (M, n)."""
    is_used: Flags
    """Where both can be compared, shape (M, n)."""

    def used(self, values: Array) -> Array:
        """Values where both can be compared, else zero, shape (M, n).

        Parameters
        ----------
        values : ndarray, shape (M, n)

        Returns
        -------
        ndarray, shape (M, n)
        """
        return np.where(self.is_used, values, 0.0)


@shown
@dataclass(frozen=True, eq=False)
class Comparison:
    """Measured and computed efforts; see `compare`.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints, in the order of the model.
    remarks : tuple of str
        On the recordings.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import compare, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing)
    >>> found = compare(model, recording)
    >>> found.joint_names, found.residual.round(1)
    (('shoulder', 'elbow'), array([5.5, 2.8]))
    """

    joint_names: tuple[str, ...]
    units: tuple[str, ...]
    """Of the efforts, 'N m' or 'N'."""
    stretches: tuple[ComparedStretch, ...]
    measured: Array
    """RMS of the measured efforts, shape (n,) [N m] or [N]."""
    residual: Array
    """RMS of the differences, shape (n,)."""
    bands: Array
    """RMS of the differences between the frequencies `edges`, shape (4, n)."""
    scale: Array
    """Factor from computed to measured efforts, shape (n,); 1 if all is right."""
    correlation: Array
    """Of measured and computed efforts, shape (n,)."""
    explanations: tuple[Explanation, ...]
    """From the one that explains most by itself to the one that explains least; then all."""
    remarks: tuple[str, ...]
    edges: tuple[float, ...] = BANDS
    """Frequencies between which `bands` are [Hz]."""

    @property
    def band_titles(self) -> tuple[str, ...]:
        """Names of the bands.

        Returns
        -------
        tuple of str
            Such as '0 to 0.3 Hz' and 'above 3 Hz'.
        """
        pairs = zip(self.edges, self.edges[1:])
        return tuple(
            f'{a:g} to {b:g} Hz' if b < np.inf else f'above {a:g} Hz' for a, b in pairs
        )

    @property
    def name(self) -> str:
        """Of the recordings, without folders."""
        return ', '.join(dict.fromkeys(Path(item.name).name for item in self.stretches))

    @property
    def summary(self) -> str:
        """A sentence: how large the difference is, and what explains most by itself."""
        seen = self.measured > 0.0
        if not seen.any():
            return 'No efforts were measured.'
        parts = 100.0 * self.residual[seen] / self.measured[seen]
        ends = float(parts.min()), float(parts.max())
        low, high = (f'{x:.0f}' if x > 9.5 else f'{round(x, 3):.2g}' for x in ends)
        text, _, share = self.explanations[0]
        if share < _LITTLE:
            text = 'nothing that was tried would explain much'
        else:
            text += f' would explain {100.0 * share:.0f} %'
        span = low if low == high else f'{low} to {high}'
        return f'The difference is {span} % of the measured efforts; {text} of it.'

    @property
    def answer(self) -> Answer:
        """Tables of the differences and of what would explain them, and `summary`.

        Returns
        -------
        Answer
        """
        bands = {f'band {k}': f'of it\n{title}' for k, title in enumerate(self.band_titles)}
        columns = [
            Column('name', 'joint'),
            Column('measured', digits=3),
            Column('residual', 'difference', digits=3),
            *(Column(key, title, digits=2) for key, title in bands.items()),
            Column('scale', 'scale\nfactor', digits=3),
            Column('correlation', digits=3),
        ]
        keys = 'name', 'measured', 'residual', 'scale', 'correlation'
        each = zip(self.joint_names, *(getattr(self, key) for key in keys[1:]))
        joints = [dict(zip(keys, row)) for row in each]
        rows = [joint | dict(zip(bands, row)) for joint, row in zip(joints, self.bands.T)]
        common = ''.join(os.path.commonprefix(self.joint_names).rpartition('_')[:2])
        shares = [
            Column(name, name.removeprefix(common), form=percent)
            for name in self.joint_names
        ]
        explained = [
            {'text': text, 'share': share, **dict(zip(self.joint_names, each))}
            for text, each, share in self.explanations
        ]
        parts: list[Table | str] = [
            Table(
                f'Torques, RMS [{" or ".join(dict.fromkeys(self.units))}]', columns, rows
            ),
            Table(
                'Part of the squared difference that would be gone with each of these alone',
                [Column('text', ''), Column('share', 'all', form=percent), *shares],
                explained,
            ),
            self.summary,
        ]
        data = {
            'joints': joints,
            'explanations': self.explanations,
            'remarks': self.remarks,
        }
        return Answer(parts, data)

    @property
    def times(self) -> tuple[Array, ...]:
        """Of each stretch [s], recordings one after the other, a second apart.

        Returns
        -------
        tuple of ndarray, shape (M,)
            Increasing throughout.
        """
        found, shift, last = [], 0.0, -np.inf
        for item in self.stretches:
            if item.times[0] + shift <= last:  # another recording begins
                shift = last + 1.0
            found.append(item.times + shift)
            last = float(found[-1][-1])
        return tuple(found)

    def results(self, model: RobotModel) -> Samples:
        """Motion with the computed efforts, as reports take it.

        Parameters
        ----------
        model : RobotModel
            That of the comparison.

        Returns
        -------
        Samples
            Of all stretches, with motion (N, 3, n) and effort (N, 1, n).
        """
        parts = self.stretches
        return Samples.of_model(
            model,
            np.concatenate(self.times),
            np.concatenate([item.motion for item in parts]),
            np.concatenate([item.computed for item in parts])[:, None],
            name=self.name,
            source='measured',
            remarks=self.remarks,
        )


def compare(
    model: RobotModel,
    recordings: Recording | Sequence[Recording],
    *,
    actuators: Actuators | None = None,
    link: str | None = None,
    bandwidth: float | None = None,
) -> Comparison:
    """Compare measured efforts with those of a model.

    Both pass the filter of `identify`. Then it is tried what part of the difference friction, a
    payload, the direction of gravity, a delay or other bodies would explain, each by itself.

    Parameters
    ----------
    model, recordings, actuators, bandwidth
        See `identify`.
    link : str, optional
        Where a payload may be; by default the tip, or the last link of a chain.

    Returns
    -------
    Comparison

    Raises
    ------
    IdentificationError, JointNameError, FileError, MotionError
        As `identify` does for recordings that cannot be used.

    Examples
    --------
    Efforts that were measured with a payload, of which the model does not know:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import compare, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing)
    >>> found = compare(model, recording)
    >>> found.explanations[0].text
    'a payload of 0.5 kg at tool'
    """
    equations = Equations(model, actuators, link or last_link(model))
    preparation = Preparation(model, equations.elastic, bandwidth)
    found = prepared(preparation, several(recordings))
    stretches = list(chain.from_iterable(found.values()))
    kinds, flaws = measured_in(stretches), preparation.remarks()
    channels = equations.channels(kinds)
    rows = [equations.rows(stretch, channels) for stretch in stretches]
    names = [name for name, each in found.items() for _ in each]
    compared = tuple(_compared(*each, equations, channels) for each in zip(names, rows))
    count = np.maximum(sum(item.is_used.sum(axis=0) for item in compared), 1)
    measured = np.concatenate([item.used(item.measured) for item in compared])
    computed = np.concatenate([item.used(item.computed) for item in compared])
    rest = [item.used(item.measured - item.computed) for item in compared]
    pairs = (measured, measured), (computed, computed), (measured, computed)
    power, own, common = ((a * b).sum(axis=0) / count for a, b in pairs)
    least = 1e-12 * (1.0 + power.max())
    units = tuple('N' if kind == 'prismatic' else 'N m' for kind in model.joint_types)
    *single, together = _explanations(equations, kinds, rows)
    return Comparison(
        model.joint_names,
        units,
        compared,
        np.sqrt(power),
        np.sqrt((np.concatenate(rest) ** 2).sum(axis=0) / count),
        _in_bands(stretches, rest, count),
        common / np.maximum(own, least),
        common / np.sqrt(np.maximum(power * own, least**2)),
        # Of those that explain the same to a percent, the one with the fewest parameters.
        (*sorted(single, key=lambda item: -round(item.share, 2)), together),
        (*flaws, *scale_remarks(equations, kinds, rows), *_of_motors(equations)),
    )


def _of_motors(equations: Equations) -> Iterator[str]:
    """Remark on elastic joints, if there are any."""
    if equations.elastic.any():
        names = listed(np.array(equations.model.joint_names)[equations.elastic].tolist())
        yield f'Efforts of {names} are those of their motors.'


def _compared(
    name: str, rows: Rows, equations: Equations, channels: Channels
) -> ComparedStretch:
    """Measured and computed efforts of all joints, of elastic ones those of motors if known."""
    found = [np.zeros(rows.stretch.motion[:, 0].shape) for _ in range(3)]
    every = (*measured_and_computed(equations, channels, rows), rows.is_used)
    for kind in ('effort', 'sensor', 'motor'):
        own = channels.kinds == kind
        for target, values in zip(found, every):
            target[:, channels.joints[own]] = values[:, own]
    measured, computed, used = found
    stretch = rows.stretch
    return ComparedStretch(
        name, stretch.times, stretch.motion, measured, computed, used.astype(np.bool_)
    )


def _explanations(
    equations: Equations, measured: Sequence[str], rows: Sequence[Rows]
) -> Iterator[Explanation]:
    """What groups of parameters explain of the residual that the given ones leave.

    All of them are blocks of the products of all columns, with and without joints at rest.

    Parameters
    ----------
    equations : Equations
    measured : sequence of str
    rows : sequence of Rows

    Yields
    ------
    Explanation
        With NaN where the parameters cannot be estimated.
    """
    channels, n = equations.channels(measured), equations.model.n_joints
    grams = Gram(), Gram()
    size = np.zeros(n)
    for each in rows:
        left = equations.left(each, equations.known)
        columns = each.X, each.friction[..., None], each.series[..., 2:], left[..., None]
        used = each.is_used & (channels.kinds != 'sensor')
        for gram, which in zip(grams, (used, used & each.is_moving)):
            gram.add(np.concatenate(columns, axis=2), which.astype(float))
        size += channels.by_joint((np.where(used, each.signal, 0.0) ** 2).sum(axis=0), n)
    for name, groups in _HYPOTHESES.items():
        if name == 'payload' and equations.link is None:
            continue
        has_friction = not set(groups).isdisjoint(FRICTION)
        gram, asked = grams[has_friction], equations.asked(groups)
        own = equations.structure(asked, measured).independent
        values = np.zeros(len(equations.columns))
        values[own], after = _fitted(gram, equations, own, has_friction)
        before, after = (channels.by_joint(v, n) for v in (gram.form[:, -1, -1], after))
        with np.errstate(invalid='ignore', divide='ignore'):
            shares = np.where(before > _ROUNDING * size, 1.0 - after / before, np.nan)
            share = float(1.0 - after.sum() / before.sum())
        text = described([Hypothesis(name)], [values[asked]], equations.link)
        yield Explanation(text, shares, share)


def _fitted(
    gram: Gram, equations: Equations, places: Places, has_friction: bool
) -> tuple[Array, Array]:
    """Values of parameters, and the squares that they leave, shape (C,)."""
    late, friction = equations.places['delay'][0], len(equations.columns)
    delay = np.flatnonzero(places == late)
    values = np.zeros(len(places))
    # Each channel counts by what the given parameters leave in it.
    left = gram.form[:, -1, -1]
    weights = gram.count / np.maximum(left, 1e-9 * left.max() + 1e-300)
    for _ in range(_STEPS if len(delay) else 1):
        d = float(values[delay].sum())
        turned = np.eye(gram.form.shape[1])
        # Columns behind that of the friction are the second and third derivative of the efforts.
        turned[[friction + 1, friction + 2], late] = -d, -0.5 * d**2
        turned[late, -1] = -d
        turned[friction:-1, -1] = float(has_friction), d**2 / 2.0, d**3 / 6.0
        own = gram.turned(turned[:, [*places, -1]])
        values, left = own.fitted(range(len(places)), weights)
        values[delay] = d + np.clip(values[delay], -_LARGEST_STEP, _LARGEST_STEP)
    return values, left


def _in_bands(stretches: Sequence[Stretch], rest: Sequence[Array], count: Array) -> Array:
    """RMS of residuals between the frequencies of `BANDS`, shape (4, n).

    Parameters
    ----------
    stretches : sequence of Stretch
    rest : sequence of ndarray, shape (M, n)
        Residuals of each, zero where nothing is used.
    count : ndarray, shape (n,)
        Rows that are used.

    Returns
    -------
    ndarray, shape (4, n)
        [N m] or [N]
    """
    found = np.zeros((len(BANDS) - 1, rest[0].shape[1]))
    for stretch, values in zip(stretches, rest):
        power = (values**2).sum(axis=0)
        if not stretch.is_even:
            times = stretch.times
            even = np.linspace(times[0], times[-1], len(times))
            values = np.stack(
                [np.interp(even, times, column) for column in values.T], axis=1
            )
        spectrum = np.abs(np.fft.rfft(values, axis=0)) ** 2 / len(values)
        spectrum[1 : (len(values) + 1) // 2] *= 2.0
        step = float(np.ptp(stretch.times)) / max(len(values) - 1, 1) or 1.0
        which = np.searchsorted(BANDS, np.fft.rfftfreq(len(values), step), 'right') - 1
        # Between uneven times some of the squares is lost, of each frequency alike.
        spectrum *= power / np.maximum(spectrum.sum(axis=0), 1e-300)
        for band in range(len(found)):
            found[band] += spectrum[which == band].sum(axis=0)
    return np.asarray(np.sqrt(found / count))
