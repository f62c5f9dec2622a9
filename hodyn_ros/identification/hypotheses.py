"""What may be wrong with a model or a recording: columns that equations lack, and other data.

A hypothesis adds columns to the equations: parameters that were not asked for, factors of torques
and of encoders, hysteresis. All of them are blocks of one Gram matrix with the base parameters, so
that what each of them leaves is a small system. Where encoders are swapped or efforts come far too
late, no column says so: other rows are made of the same recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.errors import MotionError
from hodyn_ros.identification.equations import Places, Rows
from hodyn_ros.identification.gram import Gram
from hodyn_ros.identification.recording import Flags, Stretch
from hodyn_ros.kinematics.motions import end_links
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.identification.estimation import Estimation

_STEP = 1e-4  # of a factor, for a derivative
_WIDTHS = 0.05, 0.3  # of hysteresis, over the RMS of what goes to and fro
_LAGS = 12  # rows
_FAR = 0.5  # change of a factor that is no small one
_ALL = 'all joints'
_ENCODERS = {'motion': 'encoder', 'motor_motion': 'motor encoder'}
_OF_ROBOT = 'payload', 'bodies', 'gravity', 'delay'
_TEXTS = {
    'bodies': 'other masses and inertias',
    'friction': 'friction and offsets',
    'all': 'all of these together',
}


class Hypothesis(NamedTuple):
    """Something that may be wrong.

    Attributes
    ----------
    name : str
        Such as 'torque constant'.
    """

    name: str
    owner: str = ''
    """The joint; empty for the whole robot."""
    unit: str = ''
    """Of the first column; empty for a factor."""

    @property
    def is_factor(self) -> bool:
        """Whether what is measured is the true value times a factor."""
        return bool(self.owner) and not self.unit


@dataclass(frozen=True, eq=False)
class Trial:
    """What hypotheses leave; the likeliest is the least. Source: Schwarz 1978."""

    text: str
    left: Array
    """Chi-square of each joint, shape (n,)."""
    penalty: float
    """Of the columns, as chi-square beside a noise of 1."""
    shift: Array
    """Change of the base parameters, shape (b,)."""
    count: float
    """Of rows."""
    is_fault: bool = False
    """Whether it is a mistake in the recordings."""

    @property
    def total(self) -> float:
        """Chi-square of all joints."""
        return float(self.left.sum())

    @property
    def criterion(self) -> float:
        """Chi-square with the penalty, in units of what is left."""
        return self.total + self.penalty * max(1.0, self.total / self.count)

    def __lt__(self, other: Trial) -> bool:
        return self.criterion < other.criterion


class Trials:
    """Hypotheses about what an estimation leaves, weighted by the noise of the samples.

    Parameters
    ----------
    found : Estimation
    link : str or None
        Where a payload may be.

    Attributes
    ----------
    places : dict of Hypothesis to range
        Columns behind the b base parameters.
    gram : Gram
        Of the base parameters and the columns of all hypotheses.
    count : ndarray, shape (n,)
        Rows of each joint.
    """

    def __init__(self, found: Estimation, link: str | None) -> None:
        self.found: Estimation = found
        self.link: str | None = link
        self._b = len(found.z)
        self._names = found.equations.model.joint_names
        self._beta = found.of_base(found.z)
        self.places: dict[Hypothesis, range] = {}
        self.gram: Gram = Gram()
        for rows in found.rows:
            rest = found.left(rows, self._beta)
            columns = self._columns(rows, rest)
            self._add(
                self.gram, rows, [columns, rest[..., None]], found.is_kept(rows, rest)
            )
        self.count: Array = self._by_joint(self.gram.count)
        self._log = float(np.log(self.count.sum()))

    def left(self) -> Array:
        """Chi-square (n,) that the base parameters leave alone."""
        return self._by_joint(self.gram.fitted(range(self._b))[1])

    def single(self) -> Iterator[Trial]:
        """Each hypothesis by itself, then those of a kind of all joints together.

        Factors that would change by a half or more are left out; those of all joints are columns
        of their own.

        Yields
        ------
        Trial
        """
        kinds: dict[str, list[Hypothesis]] = {}
        for item in self.places:
            if item.unit:
                kinds.setdefault(item.name, []).append(item)
        several = (members for members in kinds.values() if len(members) > 1)
        for members in (*([item] for item in self.places), *several):
            columns = [self._b + k for item in members for k in self.places[item]]
            found, left = self.gram.fitted([*range(self._b), *columns])
            shift, own = np.split(found, [self._b])
            if not members[0].is_factor or np.abs(own).max() < _FAR:
                values = np.split(own, len(members))
                text = described(members, values, self.link)
                penalty, count = len(columns) * self._log, float(self.count.sum())
                yield Trial(text, self._by_joint(left), penalty, shift, count)

    def of_other_data(self, most: float) -> Iterator[Trial]:
        """Mistakes in the recordings, those that leave less than so much.

        Parameters
        ----------
        most : float
            Chi-square of all joints.

        Yields
        ------
        Trial
        """
        for text, change in (*self._swaps(), *self._lags()):
            gram = Gram()
            try:
                for rows in self.found.rows:
                    kept = self.found.is_kept(rows, self.found.left(rows, self._beta))
                    other = change(rows)
                    rest = self.found.left(other, self._beta)
                    kept &= self.found.is_used(other)
                    self._add(gram, other, [rest[..., None]], kept)
            except MotionError:  # positions at which closed loops do not close
                continue
            count = np.maximum(self._by_joint(gram.count), 1.0)
            left = self._by_joint(gram.fitted(range(self._b))[1]) * self.count / count
            if left.sum() < most:
                shift, total = np.zeros(self._b), float(self.count.sum())
                yield Trial(text, left, self._log, shift, total, is_fault=True)

    def _by_joint(self, values: Array) -> Array:
        """Sums over the channels of each joint, shape (n,)."""
        return self.found.channels.by_joint(values, len(self._names))

    def _add(self, gram: Gram, rows: Rows, columns: Sequence[Array], kept: Flags) -> None:
        """Add rows with columns (M, C, k) behind those of the base parameters."""
        base = rows.X[..., self.found.structure.independent]
        weights = np.where(kept, 1.0 / np.sqrt(rows.resolved), 0.0)
        gram.add(np.concatenate([base, *columns], axis=2), weights)

    def _columns(self, rows: Rows, rest: Array) -> Array:
        """Columns of all hypotheses, shape (M, C, E)."""
        items, columns = zip(
            *self._parameters(rows),
            *self._factors_of_torques(rows, rest),
            *self._factors_of_encoders(rows, rest),
            *self._hysteresis(rows.stretch),
        )
        ends = np.cumsum([0, *(own.shape[2] for own in columns)]).tolist()
        self.places = {item: range(*span) for item, span in zip(items, zip(ends, ends[1:]))}
        return np.concatenate(columns, axis=2)

    def _parameters(self, rows: Rows) -> Iterator[tuple[Hypothesis, Array]]:
        """Parameters that were not asked for; a payload is part of its body."""
        columns = self.found.equations.columns
        groups = {column.group for column in self.found.asked_columns}
        if 'bodies' in groups or self.link is None:
            groups |= {'bodies', 'payload'}
        places: dict[tuple[str, str], list[int]] = {}
        for k, (group, name, owner, _) in enumerate(columns):
            if group in _OF_ROBOT:
                name, owner = group, ''
            elif group == 'stribeck':  # with its velocity
                name = group
            if group not in groups:
                places.setdefault((name, owner), []).append(k)
        for (name, owner), own in places.items():
            unit = columns[own[0]].unit if owner else ''
            yield Hypothesis(name, owner, unit), rows.X[..., own]

    def _each(self, columns: Array) -> Iterator[tuple[str, Array]]:
        """Joints with columns (M, C, k) of their channels alone."""
        for j, name in enumerate(self._names):
            yield name, np.where((self.found.channels.joints == j)[:, None], columns, 0.0)

    def _factors_of_torques(
        self, rows: Rows, rest: Array
    ) -> Iterator[tuple[Hypothesis, Array]]:
        """Measured efforts are those of the model times a factor, of one joint or of all.

        Were it the other way round, none of them would fit best.
        """
        kinds = self.found.channels.kinds
        # All of them and all parameters times the same factor leave what springs miss as it is.
        missed = rest * (kinds == 'spring')
        for name, own in (
            ('torque constant', ('effort', 'motor')),
            ('torque sensor', ('sensor',)),
        ):
            if np.isin(kinds, own).any():
                part = (rows.signal - rest) * np.isin(kinds, own)
                for owner, columns in self._each(part[..., None]):
                    yield Hypothesis(name, owner), columns
                yield Hypothesis(name, _ALL), (part - missed)[..., None]

    def _factors_of_encoders(
        self, rows: Rows, rest: Array
    ) -> Iterator[tuple[Hypothesis, Array]]:
        """Measured positions are the true ones times a factor, of one joint or motor or of all."""
        found, stretch = self.found, rows.stretch
        # A wrong scale can make a stiffness come out as none, with which encoders do not count.
        is_spring = [column.name == 'stiffness' for column in found.columns]
        known = found.structure.mapping @ found.equations.known[found.asked]
        beta = found.of_base(np.where(is_spring, known, found.z))
        before = found.left(rows, beta)
        for what, name in _ENCODERS.items():
            if (given := getattr(stretch, what)) is None:
                continue
            total = np.zeros((*rest.shape, 1))
            for owner, which in zip(self._names, np.eye(len(self._names))):
                moved = replace(stretch, **{what: given * (1.0 + _STEP * which)})
                change = found.left(found.rows_of(moved), beta) - before
                total += (column := change[..., None] / _STEP)
                yield Hypothesis(name, owner), column
            yield Hypothesis(name, _ALL), total

    def _hysteresis(self, stretch: Stretch) -> Iterator[tuple[Hypothesis, Array]]:
        """Hysteresis of springs, of friction where joints are rigid."""
        travel, elastic = stretch.motion[:, 0], self.found.equations.elastic
        if stretch.motor_motion is not None:
            travel = np.where(elastic, stretch.motor_motion[:, 0] - travel, travel)
        loops = np.stack([_dahl(travel, width) for width in _WIDTHS], axis=2)
        for owner, columns in self._each(loops[:, self.found.channels.joints]):
            yield Hypothesis('hysteresis', owner, 'N m'), columns

    def _swaps(self) -> Iterator[tuple[str, Callable[[Rows], Rows]]]:
        """Two encoders in the place of each other."""
        names = self._names
        for what, title in _ENCODERS.items():
            if getattr(self.found.rows[0].stretch, what) is None:
                continue
            for a, b in combinations(range(len(names)), 2):
                order = np.arange(len(names))
                order[[a, b]] = b, a
                text = f'a swap of the {title}s of {names[a]} and {names[b]}'
                yield text, partial(self._swapped, what=what, order=order)

    def _lags(self) -> Iterator[tuple[str, Callable[[Rows], Rows]]]:
        """Efforts that are late by so many rows, or early."""
        stretches = [rows.stretch for rows in self.found.rows]
        if not all(stretch.is_even for stretch in stretches):
            return
        delay = self.found.equations.delay(self._beta)
        for lag in (*range(-_LAGS, 0), *range(1, _LAGS + 1)):
            late = delay + lag * stretches[0].step
            side = 'behind' if late > 0.0 else 'ahead of'
            text = f'efforts that are {abs(late):.2g} s {side} the positions'
            yield text, partial(self._earlier, lag=lag)

    def _swapped(self, rows: Rows, what: str, order: Places) -> Rows:
        """Positions in another order of joints, and the velocities by which there is friction."""
        stretch = rows.stretch
        changes: dict[str, Any] = {what: getattr(stretch, what)[..., order]}
        first = int(np.flatnonzero(order != np.arange(len(order)))[0])
        if self.found.equations.elastic[first] == (what == 'motor_motion'):
            resting = stretch.is_used['resting'][:, order]
            changes |= {'speed': stretch.speed[:, order], 'filtered': {}}
            changes['is_used'] = {**stretch.is_used, 'resting': resting}
        return self.found.rows_of(replace(stretch, **changes))

    def _earlier(self, rows: Rows, lag: int) -> Rows:
        """Efforts so many rows earlier."""
        known = np.zeros(len(rows.series), np.bool_)
        known[max(-lag, 0) : len(known) - max(lag, 0)] = True
        used = np.roll(rows.is_used, -lag, axis=0) & known[:, None]
        series = np.roll(rows.series, -lag, axis=0)
        same = rows._replace(X=rows.X.copy(), series=series, is_used=used)
        self.found.equations.linearize(same, self._beta, self.found.channels)
        return same


def _dahl(travel: Array, width: float) -> Array:
    """Force of unit size that follows positions (M, n) by a share of their RMS.

    Source: Dahl 1968, "A solid friction model".
    """
    scale = width * np.std(travel, axis=0) + 1e-300
    force = np.zeros_like(travel)
    for k, step in enumerate(np.diff(travel, axis=0) / scale):
        side = np.sign(step)
        force[k + 1] = side - (side - force[k]) * np.exp(-np.abs(step))
    return force


def last_link(model: RobotModel) -> str | None:
    """Tip of a robot, or the last link of a chain; None where there is none that moves.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    str or None
    """
    last = end_links(model)
    link, ends = model.tip_link or last[-1], {model.link(name).body for name in last}
    return None if model.link(link).body == BASE or len(ends) > 1 else link


def described(
    members: Sequence[Hypothesis], values: Sequence[Array], link: str | None
) -> str:
    """Hypotheses in words.

    Parameters
    ----------
    members : sequence of Hypothesis
        One, or all of a kind.
    values : sequence of ndarray
        Coefficients of the columns of each.
    link : str or None
        Of a payload.

    Returns
    -------
    str
        Such as 'a payload of 0.98 kg at panda_link8' or 'torque constant of joint2 (x 1.05)'.
    """
    name, owner, unit = members[0]
    if not owner:
        return _of_robot(name, values[0], link)
    sizes = [own.sum() if name == 'hysteresis' else own[0] for own in values]
    each = [f'{size:+.3g}' if unit else f'x {1.0 + size:.4g}' for size in sizes]
    if len(members) > 1:
        owner = 'all joints one by one'
    return f'{name.replace("_", " ")} of {owner} ({listed(each)}{f" {unit}" * bool(unit)})'


def _of_robot(name: str, values: Array, link: str | None) -> str:
    """Hypothesis about the whole robot in words."""
    value = float(values[0])
    if name == 'payload':
        at = f'{abs(value):.2g} kg{" less" * (value < 0.0)} at {link}'
        return f'a payload of {at}' if value > 0.0 else at
    if name == 'gravity':
        angle = np.degrees(np.linalg.norm(values[:2]))
        return f'another direction of gravity, by {angle:.2g} degrees'
    if name == 'delay':
        late = f'{1e3 * abs(value):.2g} ms {"late" if value > 0.0 else "early"}'
        return f'efforts that come {late}'
    return _TEXTS[name]
