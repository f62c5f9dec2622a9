"""Measured efforts beside those of a model: how far they are apart, and what would explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.checks import Array
from hodyn_ros.display import shown
from hodyn_ros.errors import IdentificationError
from hodyn_ros.files.samples import Samples
from hodyn_ros.identification.doubt import Explanation, last_link
from hodyn_ros.identification.equations import Equations
from hodyn_ros.identification.estimation import Estimation, scale_remarks
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
from hodyn_ros.names import listed

BANDS = (0.0, 0.3, 1.0, 3.0, np.inf)
"""Frequencies between which residuals are added up [Hz]."""

_PASSES = 4
_ROUNDING = 1e-12  # part of the squared efforts
_LITTLE = 0.05  # share of a difference that is not worth a sentence
_EVERY = ('bodies', 'viscous', 'coulomb', 'offset', 'armature', 'gravity', 'delay')
_CANDIDATES = {
    'delay': ('delay',),
    'gravity': ('gravity',),
    'payload': ('payload',),
    'friction': ('viscous', 'coulomb', 'offset'),
    'bodies': ('bodies',),
    'all': _EVERY,
}
"""Groups of parameters that may explain a difference."""
_TEXTS = {
    'friction': 'friction and offsets',
    'payload': 'a payload',
    'gravity': 'another direction of gravity',
    'delay': 'efforts that come late or early',
    'bodies': 'other masses and inertias',
    'all': 'all of these together',
}


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
    """
    plain, every = Equations(model, (), actuators), Equations(model, _EVERY, actuators)
    preparation = Preparation(model, every.laws(), plain.elastic, bandwidth)
    found = prepared(preparation, several(recordings))
    stretches = list(chain.from_iterable(found.values()))
    kinds, flaws = measured_in(stretches), preparation.remarks()
    compared = tuple(
        _compared(name, plain, stretch) for name, each in found.items() for stretch in each
    )
    count = np.maximum(sum(item.is_used.sum(axis=0) for item in compared), 1)
    measured = [item.used(item.measured) for item in compared]
    computed = [item.used(item.computed) for item in compared]
    rest = [a - b for a, b in zip(measured, computed)]
    power, own = _mean(measured, measured, count), _mean(computed, computed, count)
    common = _mean(measured, computed, count)
    least = 1e-12 * (1.0 + power.max())
    link = link or last_link(model)
    candidates = {name: g for name, g in _CANDIDATES.items() if name != 'payload' or link}
    explanations = [
        _explained(name, Equations(model, groups, actuators, link), kinds, stretches, plain)
        for name, groups in candidates.items()
    ]
    units = tuple('N' if kind == 'prismatic' else 'N m' for kind in model.joint_types)
    *single, together = explanations
    return Comparison(
        model.joint_names,
        units,
        compared,
        np.sqrt(power),
        np.sqrt(_mean(rest, rest, count)),
        _in_bands(stretches, rest, count),
        common / np.maximum(own, least),
        common / np.sqrt(np.maximum(power * own, least**2)),
        # Of those that explain the same to a percent, the one with the fewest parameters.
        (*sorted(single, key=lambda item: -round(item.share, 2)), together),
        (*flaws, *scale_remarks(plain, stretches), *_of_motors(plain)),
    )


def _of_motors(equations: Equations) -> Iterator[str]:
    """Remark on elastic joints, if there are any."""
    if equations.elastic.any():
        names = listed(np.array(equations.model.joint_names)[equations.elastic].tolist())
        yield f'Efforts of {names} are those of their motors.'


def _mean(left: Sequence[Array], right: Sequence[Array], count: Array) -> Array:
    """Mean of products of values (M, n) in some rows.

    Parameters
    ----------
    left, right : sequence of ndarray, shape (M, n)
        Of each stretch, zero where nothing is used.
    count : ndarray, shape (n,)
        Rows that are used.

    Returns
    -------
    ndarray, shape (n,)
    """
    return np.asarray(sum((a * b).sum(axis=0) for a, b in zip(left, right)) / count)


def _compared(name: str, equations: Equations, stretch: Stretch) -> ComparedStretch:
    """Measured and computed efforts of all joints, rigid and elastic."""
    shape = stretch.motion[:, 0].shape
    measured, computed, used = (
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape, dtype=np.bool_),
    )
    for kind, *found in equations.efforts(stretch):  # torques of motors, if there are both
        own = equations.elastic == (kind != 'effort')
        for target, values in zip((measured, computed, used), found):
            target[:, own] = values[:, own]
    return ComparedStretch(name, stretch.times, stretch.motion, measured, computed, used)


def _explained(
    name: str,
    equations: Equations,
    kinds: Sequence[str],
    stretches: Sequence[Stretch],
    plain: Equations,
) -> Explanation:
    """What groups of parameters explain of the residual that the given ones leave.

    Parameters
    ----------
    name : str
        Of the candidate.
    equations : Equations
        Of its groups.
    kinds : sequence of str
        What is measured.
    stretches : sequence of Stretch
    plain : Equations
        Without groups.

    Returns
    -------
    Explanation
        With NaN where the parameters cannot be estimated.
    """
    before, after, size = np.zeros((3, equations.model.n_joints))
    try:
        found = Estimation(equations, equations.structure(kinds), stretches, _PASSES)
    except IdentificationError:
        return Explanation(_TEXTS[name], np.full_like(before, np.nan), 0.0)
    index = found.structure.independent
    for stretch in stretches:
        for rows, given in zip(found.equations.rows(stretch), plain.rows(stretch)):
            if rows.kind == 'sensor':
                continue
            used = rows.is_used & given.is_used
            rest = rows.y - rows.X[..., index] @ found.z
            before += (np.where(used, given.y, 0.0) ** 2).sum(axis=0)
            after += (np.where(used, rest, 0.0) ** 2).sum(axis=0)
            size += (np.where(used, rows.signal, 0.0) ** 2).sum(axis=0)
    with np.errstate(invalid='ignore', divide='ignore'):
        shares = np.where(before > _ROUNDING * size, 1.0 - after / before, np.nan)
        share = 1.0 - after.sum() / before.sum()
    return Explanation(found.described(_TEXTS[name]), shares, float(share))


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
