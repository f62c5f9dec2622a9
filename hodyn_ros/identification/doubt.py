"""What is left of recordings beside the noise of their samples, and what would explain it.

Rows are weighted by the noise floor: what neighbouring samples of efforts scatter, behind the
filter, and what encoders round. Where parameters leave more than that (chi-square over degrees of
freedom beyond 1), causes that were not asked for are tried: each adds columns to the equations,
or makes other recordings of these, and takes its share of the excess. Of causes that do as much
the one with the fewest columns counts. Source: Schwarz 1978, "Estimating the dimension of a
model".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.errors import MotionError
from hodyn_ros.identification.equations import Rows
from hodyn_ros.identification.gram import Gram
from hodyn_ros.identification.recording import Stretch
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

if TYPE_CHECKING:
    from hodyn_ros.identification.estimation import Estimation

_STEP = 1e-4  # of a factor, for a derivative
_EXCESS = (
    1.0  # of chi-square over degrees of freedom that is worth a remark; in its deviations
)
_CERTAIN, _SURE = 5.0, 30.0  # the same of a cause, as chi-square beside what is left
# Share of the excess that is named, that other data have to explain.
_NAMED, _FAULT = (0.25, 0.8)
_UNEXPLAINED = 0.05  # the same that is left, for other data to be tried
_WIDTHS = 0.05, 0.3  # of hysteresis, over the RMS of what goes to and fro
_LAGS = 12  # rows
_FAR = 0.5  # change of a factor that is no small one
_ALIKE = 0.02  # of the excess, by which causes are hardly told apart
_SHOWN = 5  # explanations
_SCATTERED = 1.25  # deviations between parts of a recording, over those that noise makes
_COMES_AGAIN = 2.0  # correlations over many rows, over those of noise
_ALL = 'all joints'
_WHOLE = {
    'payload': 'a payload',
    'bodies': 'other masses and inertias',
    'gravity': 'another direction of gravity',
    'delay': 'efforts that come late',
}
_SIDES = {'motion': 'encoder', 'motor_motion': 'motor encoder'}


class Explanation(NamedTuple):
    """What a change of the model would explain."""

    text: str
    """Such as 'a payload of 0.98 kg at panda_link8'."""
    shares: Array
    """Part of the squared residual that would be gone, shape (n,); NaN where there is none."""
    share: float
    """The same of all joints together."""


class Doubt(NamedTuple):
    """How far an estimation is from the noise, and why."""

    chi_square: Array
    """Of each joint over its degrees of freedom, shape (n,); NaN where nothing is measured."""
    explanations: tuple[Explanation, ...]
    """Of the excess, the likeliest first; empty where there is none."""
    shift: Array
    """By how much base parameters change with the first one, shape (b,); 0 if it is not sure."""
    is_fault: bool
    """Whether the first one is a mistake in the recordings."""
    factor: float = 1.0
    """By which deviations are larger than noise makes them: of what comes again with the motion
    and nothing explains, or as parts of the recordings differ."""

    @property
    def sentence(self) -> str:
        """What is left and what explains it; empty where noise is all there is.

        Returns
        -------
        str
            Such as 'Up to 3 times the noise is left; of what is beyond it ... explains 80
            %.'
        """
        if not self.explanations:
            return ''
        times, best = np.sqrt(np.nanmax(self.chi_square)), self.explanations[0]
        left = f'Up to {times:.3g} times the noise is left'
        wider = f' Standard deviations are {self.factor:.3g} times as large for that.'
        wider *= self.factor > 1.0
        if best.share >= _NAMED:
            share = f'{100.0 * best.share:.0f} %'
            return f'{left}; of what is beyond it {best.text} explains {share}.{wider}'
        if wider:
            return (
                f'{left}; nothing that was tried explains much of what is beyond it.{wider}'
            )
        return (
            f'Up to {times:.3g} times the noise between neighbouring samples is left. It does not '
            'come again with the motion, so that it is noise that lasts for more than a sample; '
            'standard deviations allow for that.'
        )


# As a cause, with columns (M, C, k).
_Column = tuple[str, str, str, Array]


class _Cause(NamedTuple):
    """Columns that equations may lack."""

    name: str
    owner: str
    """The joint; empty for the whole robot."""
    unit: str
    """Of the first column; empty for a factor."""
    columns: tuple[int, ...]
    """Their places behind the base parameters."""


@dataclass(frozen=True, eq=False)
class _Tried:
    """A cause with what it leaves; the likeliest is the least."""

    text: str
    after: Array
    """Chi-square of each joint, shape (n,)."""
    width: float
    """What the columns count, as chi-square beside a noise of 1."""
    shift: Array
    """Change of the base parameters, shape (b,)."""
    is_fault: bool
    count: float
    """Of rows."""

    @property
    def left(self) -> float:
        """Chi-square of all joints."""
        return float(self.after.sum())

    @property
    def score(self) -> float:
        """The same with what the columns count."""
        return self.left + self.width * max(1.0, self.left / self.count)

    def __lt__(self, other: _Tried) -> bool:
        return self.score < other.score


class _Court:
    """An estimation whose residuals are explained.

    Parameters
    ----------
    found : Estimation
    link : str or None
        Where a payload may be.

    Attributes
    ----------
    causes : list of _Cause
    gram : Gram
        Of the b base parameters and the columns of all causes; weights are one over the noise of
        the samples.
    count : ndarray, shape (n,)
        Rows of each joint.
    """

    def __init__(self, found: Estimation, link: str | None) -> None:
        self.found, self.link, self.b = found, link, len(found.z)
        self.names = found.equations.model.joint_names
        self.beta = found.of_base(found.z)
        self.causes: list[_Cause] = []
        self.gram = self.products(None)
        self.count = self.by_joint(self.gram.count)

    def by_joint(self, values: Array) -> Array:
        """Sums over the channels of each joint, shape (n,)."""
        return self.found.channels.by_joint(values, len(self.names))

    def products(self, change: Callable[[Stretch], Stretch] | None) -> Gram:
        """Products of all columns, or of those of base parameters of other data.

        Parameters
        ----------
        change : callable or None
            From a stretch to another one of as many rows.

        Returns
        -------
        Gram
        """
        found, gram = self.found, Gram()
        for rows in found.rows:
            rest = found.left(rows, self.beta)
            kept, extra = found.is_kept(rows, rest), np.zeros((*rest.shape, 0))
            if change is None:
                extra = self._columns(rows, rest)
            else:
                rows = found.rows_of(change(rows.stretch))
                rest, kept = found.left(rows, self.beta), kept & found.is_used(rows)
            base = rows.X[..., found.structure.independent]
            whole = np.concatenate([base, extra, rest[..., None]], axis=2)
            gram.add(whole, np.where(kept, 1.0 / np.sqrt(rows.resolved), 0.0))
        return gram

    def _columns(self, rows: Rows, rest: Array) -> Array:
        """Columns of all causes, shape (M, C, E); `causes` says what they are."""
        every = [
            *self._unasked(rows),
            *self._factors_of_torques(rows, rest),
            *self._factors_of_encoders(rows, rest),
            *self._loops(rows.stretch),
        ]
        ends = np.cumsum([0, *(columns.shape[2] for *_, columns in every)]).tolist()
        self.causes = [
            _Cause(name, owner, unit, tuple(range(*span)))
            for (name, owner, unit, _), span in zip(every, zip(ends, ends[1:]))
        ]
        return np.concatenate([columns for *_, columns in every], axis=2)

    def _unasked(self, rows: Rows) -> Iterator[_Column]:
        """Parameters that were not asked for; a payload is part of its body."""
        equations, asked = self.found.equations, set(self.found.asked.tolist())
        groups = {equations.columns[k].group for k in asked}
        if 'bodies' in groups or self.link is None:
            groups |= {'bodies', 'payload'}
        places: dict[tuple[str, str], list[int]] = {}
        for k, column in enumerate(equations.columns):
            if column.group not in groups:
                is_whole = column.group in _WHOLE
                name = (
                    column.group if is_whole or column.group == 'stribeck' else column.name
                )
                places.setdefault((name, '' if is_whole else column.owner), []).append(k)
        for (name, owner), own in places.items():
            yield name, owner, equations.columns[own[0]].unit, rows.X[..., own]

    def _each(self, columns: Array) -> Iterator[tuple[str, Array]]:
        """Joints with columns (M, C, k) of their channels alone."""
        for j, name in enumerate(self.names):
            yield name, np.where((self.found.channels.joints == j)[:, None], columns, 0.0)

    def _factors_of_torques(self, rows: Rows, rest: Array) -> Iterator[_Column]:
        """Measured efforts are those of the model times a factor, of one joint or of all.

        Were it the other way round, none of them would fit best.
        """
        kinds = self.found.channels.kinds
        # All of them and all parameters times the same factor leave what springs miss as it is.
        missed = rest * (kinds == 'spring')
        for title, own in (
            ('torque constant', ('effort', 'motor')),
            ('torque sensor', ('sensor',)),
        ):
            if np.isin(kinds, own).any():
                part = (rows.signal - rest) * np.isin(kinds, own)
                for owner, columns in self._each(part[..., None]):
                    yield title, owner, '', columns
                yield title, _ALL, '', (part - missed)[..., None]

    def _factors_of_encoders(self, rows: Rows, rest: Array) -> Iterator[_Column]:
        """Measured positions are the true ones times a factor, of one joint or motor or of all."""
        found, stretch = self.found, rows.stretch
        # A wrong scale can make a stiffness come out as none, with which encoders do not count.
        is_spring = [column.name == 'stiffness' for column in found.columns]
        known = found.structure.mapping @ found.equations.known[found.asked]
        point = found.of_base(np.where(is_spring, known, found.z))
        before = found.left(rows, point)
        for what, title in _SIDES.items():
            if (given := getattr(stretch, what)) is None:
                continue
            total = np.zeros((*rest.shape, 1))
            for owner, which in zip(self.names, np.eye(len(self.names))):
                moved = replace(stretch, **{what: given * (1.0 + _STEP * which)})
                column = (found.left(found.rows_of(moved), point) - before)[
                    ..., None
                ] / _STEP
                total += column
                yield title, owner, '', column
            yield title, _ALL, '', total

    def _loops(self, stretch: Stretch) -> Iterator[_Column]:
        """Hysteresis of springs, of friction where joints are rigid."""
        travel, elastic = stretch.motion[:, 0], self.found.equations.elastic
        if stretch.motor_motion is not None:
            travel = np.where(elastic, stretch.motor_motion[:, 0] - travel, travel)
        loops = np.stack([_hysteresis(travel, width) for width in _WIDTHS], axis=2)
        for owner, columns in self._each(loops[:, self.found.channels.joints]):
            yield 'hysteresis', owner, 'N m', columns

    def fitted(self, columns: Sequence[int] = ()) -> tuple[Array, Array]:
        """Changes of base parameters and coefficients of columns; chi-square left (n,)."""
        values, left = self.gram.fitted([*range(self.b), *(self.b + k for k in columns)])
        return values, self.by_joint(left)

    def tried(self) -> list[_Tried]:
        """Each cause by itself and those of a kind together, with what they leave.

        Factors that would change by a half or more are left out.
        """
        tried, count = [], self.count.sum()
        for members in _sets(self.causes):
            columns = [k for cause in members for k in cause.columns]
            values, after = self.fitted(columns)
            shift, own = np.split(values, [self.b])
            if members[0].unit or np.abs(own).max() < _FAR:
                text = _told(members, dict(zip(columns, own.tolist())), self.link)
                width = len(columns) * np.log(count)
                tried.append(_Tried(text, after, width, shift, False, count))
        return tried

    def tried_data(self, most: float) -> list[_Tried]:
        """Other data in the place of the given ones, those that leave less than so much."""
        tried, count = [], self.count.sum()
        for text, change in _other_data(self.found):
            try:
                gram = self.products(change)
            except MotionError:  # positions at which closed loops do not close
                continue
            left = self.by_joint(gram.fitted(range(self.b))[1])
            after = left * self.count / np.maximum(self.by_joint(gram.count), 1.0)
            if after.sum() < most:
                shift = np.zeros(self.b)
                tried.append(_Tried(text, after, np.log(count), shift, True, count))
        return tried


def doubted(found: Estimation, link: str | None) -> Doubt:
    """Hold what an estimation leaves against the noise, and look for causes of the rest.

    Parameters
    ----------
    found : Estimation
    link : str or None
        Where a payload may be; None: no payload is tried.

    Returns
    -------
    Doubt
    """
    court = _Court(found, link)
    before, b = court.fitted()[1], court.b
    count = float(court.count.sum())
    freedom = court.count * (1.0 - b / max(count, b + 1.0))
    reduced = np.where(freedom > 0.0, before / np.maximum(freedom, 1e-300), np.nan)
    limit = 1.0 + np.maximum(_EXCESS, _CERTAIN * np.sqrt(2.0 / np.maximum(freedom, 1.0)))
    is_much, excess = reduced > limit, float(before.sum() - freedom.sum())
    tried = court.tried()
    if is_much.any() and min(tried).left - freedom.sum() > _UNEXPLAINED * excess:
        tried += court.tried_data(before.sum() - _FAULT * excess)
    excess = max(excess, float(before.sum() - min(tried).left))
    best, second = _fewest(tried, min(tried).left + _ALIKE * excess)
    gain = before.sum() - best.score
    is_sure = gain > _SURE * max(1.0, best.left / count) and gain > _NAMED * excess
    if not (is_much.any() or is_sure):
        return Doubt(reduced, (), np.zeros(b), False)
    each = np.where(is_much, before - freedom, np.nan)
    shown = [best, *sorted(item for item in tried if item is not best)][:_SHOWN]
    texts = [best.text if second is None else f'{best.text}, or {second.text},']
    texts += [item.text for item in shown[1:]]
    explanations = tuple(
        Explanation(text, (before - item.after) / each, (before.sum() - item.left) / excess)
        for text, item in zip(texts, shown)
    )
    shift = best.shift if is_sure else np.zeros(b)
    unexplained = best.after if is_sure else before
    lasting = np.zeros(len(before))
    np.maximum.at(lasting, found.channels.joints, found.lasting())
    unexplained = np.where(lasting > _COMES_AGAIN, unexplained, 0.0)
    largest = float((unexplained / np.maximum(freedom, 1.0)).max())
    factor = np.sqrt(largest) if largest > limit.min() else 1.0
    if not is_sure and (scatter := found.scatter()) > _SCATTERED:
        factor = max(factor, scatter)
    return Doubt(reduced, explanations, shift, is_sure and best.is_fault, float(factor))


def _fewest(tried: Sequence[_Tried], enough: float) -> tuple[_Tried, _Tried | None]:
    """Of those that leave little enough the one with the fewest columns; another as good."""
    first, *rest = sorted((item for item in tried if item.left <= enough), key=_by_width)
    return first, next((item for item in rest if item.width <= first.width), None)


def _by_width(item: _Tried) -> tuple[float, float]:
    return item.width, item.score


def last_link(model: RobotModel) -> str | None:
    """Tip of a robot, or the last link of a chain; None where there is none that moves.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    str or None
    """
    ends = set(range(model.n_bodies)) - set(model.parent.tolist())
    last = [name for name, frame in model.links.items() if frame.body in ends]
    link = model.tip_link or last[-1]
    return None if model.link(link).body == BASE or len(ends) > 1 else link


def _hysteresis(travel: Array, width: float) -> Array:
    """Force of unit size that follows positions (M, n) by a share of their RMS.

    Source: Dahl 1968, "A solid friction model".
    """
    scale = width * np.std(travel, axis=0) + 1e-300
    force = np.zeros_like(travel)
    for k, step in enumerate(np.diff(travel, axis=0) / scale):
        side = np.sign(step)
        force[k + 1] = side - (side - force[k]) * np.exp(-np.abs(step))
    return force


def _sets(causes: Sequence[_Cause]) -> Iterator[list[_Cause]]:
    """Each cause by itself, then those of a kind of all joints; factors are one for all."""
    kinds: dict[str, list[_Cause]] = {}
    for cause in causes:
        yield [cause]
        if cause.unit:
            kinds.setdefault(cause.name, []).append(cause)
    yield from (members for members in kinds.values() if len(members) > 1)


def _told(members: Sequence[_Cause], values: dict[int, float], link: str | None) -> str:
    """Causes with their values.

    Parameters
    ----------
    members : sequence of _Cause
        One, or all of a kind.
    values : dict of int to float
        Coefficient of each column.
    link : str or None
        Of a payload.

    Returns
    -------
    str
    """
    first = members[0]
    value = values[first.columns[0]]
    if first.name in _WHOLE:
        text = _WHOLE[first.name]
        if first.name == 'payload':
            text += f' ({value:+.3g} kg) at {link}'
        return text + f' ({1e3 * value:+.3g} ms)' * (first.name == 'delay')
    each = []
    for cause in members:
        value = values[cause.columns[0]]
        size = (
            sum(values[k] for k in cause.columns) if cause.name == 'hysteresis' else value
        )
        each.append(f'{size:+.3g}' if cause.unit else f'x {1.0 + value:.4g}')
    name, unit = first.name.replace('_', ' '), f' {first.unit}' * bool(first.unit)
    owner = first.owner if len(members) == 1 else 'all joints one by one'
    return f'{name} of {owner} ({listed(each)}{unit})'


def _other_data(found: Estimation) -> Iterator[tuple[str, Callable[[Stretch], Stretch]]]:
    """What recordings may be mistaken for, and how they are made of the given ones."""
    equations, stretches = found.equations, [rows.stretch for rows in found.rows]
    first = stretches[0]
    names = equations.model.joint_names
    for what, title in _SIDES.items():
        for a, b in combinations(range(len(names)), 2):
            if getattr(first, what) is not None:
                order = np.arange(len(names))
                order[[a, b]] = b, a
                own = bool(equations.elastic[a]) == (what == 'motor_motion')
                text = f'a swap of the {title}s of {names[a]} and {names[b]}'
                yield text, partial(_swapped, what=what, order=order, with_laws=own)
    lags = (*range(-_LAGS, 0), *range(1, _LAGS + 1))
    for lag in lags if all(stretch.is_even for stretch in stretches) else ():
        late = equations.delay(found.of_base(found.z)) + lag * first.step
        side = 'behind' if late > 0.0 else 'ahead of'
        text = f'efforts that are {abs(late):.2g} s {side} the positions'
        yield text, partial(_moved, lag=lag)


def _swapped(
    stretch: Stretch, what: str, order: NDArray[np.intp], with_laws: bool
) -> Stretch:
    """Positions in another order of joints, and the friction that depends on them."""
    changes: dict[str, Any] = {what: getattr(stretch, what)[..., order]}
    if with_laws:
        changes |= {'speed': stretch.speed[:, order], 'filtered': {}}
        resting = stretch.is_used['resting'][:, order]
        changes['is_used'] = {**stretch.is_used, 'resting': resting}
    return replace(stretch, **changes)


def _moved(stretch: Stretch, lag: int) -> Stretch:
    """Efforts so many rows earlier."""
    known = np.roll(np.ones(len(stretch.motion), dtype=np.bool_), -lag)
    known[-lag:] &= lag < 0
    known[: max(-lag, 0)] = False
    measured = {
        what: np.roll(values, -lag, axis=0) for what, values in stretch.measured.items()
    }
    used = {
        what: np.roll(flags, -lag, axis=0) & known[:, None] if what in measured else flags
        for what, flags in stretch.is_used.items()
    }
    return replace(stretch, measured=measured, is_used=used)
