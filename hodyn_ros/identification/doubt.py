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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.errors import MotionError
from hodyn_ros.identification.equations import Equations, Rows
from hodyn_ros.identification.recording import Flags, Stretch
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import GROUPS, SPRING, listed

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
    and nothing explains."""

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


# As a cause, with columns (M, n, k) of each kind.
_Column = tuple[str, str, str, list[Array]]


class _Cause(NamedTuple):
    """Columns that equations may lack."""

    name: str
    owner: str
    """The joint; empty for the whole robot."""
    unit: str
    """Of the first column; empty for a factor."""
    columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Tried:
    """A cause with what it leaves; the likeliest is the least."""

    text: str
    after: Array
    """Chi-square, shape (n,)."""
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


class _Sums:
    """Chi-square of each joint as a quadratic form of base parameters and columns of causes.

    Parameters
    ----------
    found : Estimation
        Of b base parameters.

    Attributes
    ----------
    count : ndarray, shape (n,)
        Rows of each joint.
    form : ndarray, shape (n, b + E + 1, b + E + 1)
        Products of columns, those of causes and the residual, over the variance of the
        noise.
    """

    def __init__(self, found: Estimation) -> None:
        self.found, self.b = found, len(found.z)
        self.count = np.zeros(found.equations.model.n_joints)
        self.form: Array = np.zeros(())

    def add(self, rows: Rows, kept: Flags, extra: Array) -> None:
        """Rows with columns of causes, shape (M, n, E).

        Parameters
        ----------
        rows : Rows
            Of a stretch, one kind.
        kept : ndarray of bool, shape (M, n)
            Which of them count.
        extra : ndarray, shape (M, n, E)
        """
        index = self.found.structure.independent
        rest = rows.y - rows.X[..., index] @ self.found.z
        whole = np.concatenate([rows.X[..., index], extra, rest[..., None]], axis=2)
        whole *= np.where(kept, 1.0 / np.sqrt(rows.resolved), 0.0)[..., None]
        self.form = self.form + np.einsum('mjp,mjq->jpq', whole, whole, optimize=True)
        self.count += kept.sum(axis=0)

    def fitted(self, columns: Sequence[int] = ()) -> tuple[Array, Array]:
        """Change of base parameters and coefficients of columns; chi-square that is left (n,).

        Parameters
        ----------
        columns : sequence of int
            Which of the E columns are fitted beside the base parameters.

        Returns
        -------
        values : ndarray, shape (b + columns,)
        left : ndarray, shape (n,)
        """
        total = self.form.sum(axis=0)
        place = np.array([*range(self.b), *(self.b + k for k in columns)], dtype=np.intp)
        size = np.sqrt(np.diag(total)[place])
        scale = np.where(size > 0.0, size, 1.0)
        matrix = total[np.ix_(place, place)] / np.outer(scale, scale)
        found = np.linalg.lstsq(matrix, total[place, -1] / scale, rcond=1e-10)[0] / scale
        left = np.zeros(len(total))
        left[place], left[-1] = -found, 1.0
        return found, np.einsum('jpq,p,q->j', self.form, left, left, optimize=True)


def other_equations(equations: Equations, link: str | None) -> Equations:
    """Those of the groups of parameters that were not asked for.

    Parameters
    ----------
    equations : Equations
        Of what is estimated.
    link : str or None
        Where a payload may be; None: no payload is tried.

    Returns
    -------
    Equations
        Of the same model and actuators.
    """
    bodies = (
        {'bodies', 'payload'} if 'bodies' in equations.groups or link is None else set()
    )
    springs = set() if equations.elastic.any() else set(SPRING)
    left_out = {*equations.groups, *bodies, *springs}
    groups = [group for group in GROUPS if group not in left_out]
    return Equations(equations.model, groups, equations.actuators, link)


def doubted(found: Estimation, others: Equations) -> Doubt:
    """Hold what an estimation leaves against the noise, and look for causes of the rest.

    Parameters
    ----------
    found : Estimation
    others : Equations
        Of parameters that it does not have, see `other_equations`.

    Returns
    -------
    Doubt
    """
    causes: list[_Cause] = []
    sums = _summed(
        found, lambda stretch, rows: _columns(found, others, stretch, rows, causes)
    )
    before, count = sums.fitted()[1], float(sums.count.sum())
    freedom = sums.count * (1.0 - sums.b / max(count, sums.b + 1.0))
    reduced = np.where(freedom > 0.0, before / np.maximum(freedom, 1e-300), np.nan)
    limit = 1.0 + np.maximum(_EXCESS, _CERTAIN * np.sqrt(2.0 / np.maximum(freedom, 1.0)))
    is_much, excess = reduced > limit, float(before.sum() - freedom.sum())
    tried = _tried(sums, causes, others.payload_link)
    if is_much.any() and min(tried).left - freedom.sum() > _UNEXPLAINED * excess:
        tried += _tried_data(sums, before.sum() - _FAULT * excess)
    excess = max(excess, float(before.sum() - min(tried).left))
    best, second = _fewest(tried, min(tried).left + _ALIKE * excess)
    gain = before.sum() - best.score
    is_sure = gain > _SURE * max(1.0, best.left / count) and gain > _NAMED * excess
    if not (is_much.any() or is_sure):
        return Doubt(reduced, (), np.zeros(sums.b), False)
    each = np.where(is_much, before - freedom, np.nan)
    shown = [best, *sorted(item for item in tried if item is not best)][:_SHOWN]
    texts = [best.text if second is None else f'{best.text}, or {second.text},']
    texts += [item.text for item in shown[1:]]
    explanations = tuple(
        Explanation(text, (before - item.after) / each, (before.sum() - item.left) / excess)
        for text, item in zip(texts, shown)
    )
    shift = best.shift if is_sure else np.zeros(sums.b)
    unexplained = best.after if is_sure else before
    unexplained = np.where(found.lasting() > _COMES_AGAIN, unexplained, 0.0)
    largest = float((unexplained / np.maximum(freedom, 1.0)).max())
    factor = np.sqrt(largest) if largest > limit.min() else 1.0
    return Doubt(reduced, explanations, shift, is_sure and best.is_fault, float(factor))


def _tried(sums: _Sums, causes: Sequence[_Cause], link: str | None) -> list[_Tried]:
    """Each cause by itself and those of a kind together, with what they leave.

    Parameters
    ----------
    sums : _Sums
        With the columns of all causes.
    causes : sequence of _Cause
    link : str or None
        Of a payload, for texts.

    Returns
    -------
    list of _Tried
        Factors that would change by a half or more are left out.
    """
    tried = []
    for members in _sets(causes):
        columns = [k for cause in members for k in cause.columns]
        values, after = sums.fitted(columns)
        own = values[sums.b :]
        if members[0].unit or np.abs(own).max() < _FAR:
            text = _told(members, dict(zip(columns, own.tolist())), link)
            width = len(columns) * np.log(sums.count.sum())
            tried.append(
                _Tried(text, after, width, values[: sums.b], False, sums.count.sum())
            )
    return tried


def _tried_data(sums: _Sums, most: float) -> list[_Tried]:
    """Other data in the place of the given ones, those that leave less than so much."""
    tried = []
    for text, change in _other_data(sums.found):
        try:
            again = _summed(sums.found, change=change)
        except MotionError:  # positions at which closed loops do not close
            continue
        after = again.fitted()[1] * sums.count / np.maximum(again.count, 1.0)
        if after.sum() < most:
            count = sums.count.sum()
            tried.append(_Tried(text, after, np.log(count), np.zeros(sums.b), True, count))
    return tried


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


def _summed(
    found: Estimation,
    columns: Callable[[Stretch, list[Rows]], list[Array]] | None = None,
    change: Callable[[Stretch], Stretch] | None = None,
) -> _Sums:
    """Quadratic forms of all stretches, with columns, or of other data in their place.

    Parameters
    ----------
    found : Estimation
    columns : callable, optional
        From a stretch and its rows to columns (M, n, E) of each kind.
    change : callable, optional
        From a stretch to another one of as many rows.

    Returns
    -------
    _Sums
    """
    sums, index = _Sums(found), found.structure.independent
    for stretch in found.stretches:
        rows = list(found.equations.rows(stretch))
        kept = [found.is_kept(r, r.y - r.X[..., index] @ found.z) for r in rows]
        extra = [np.zeros((*r.y.shape, 0)) for r in rows]
        if columns is not None:
            extra = columns(stretch, rows)
        if change is not None:
            rows = list(found.equations.rows(change(stretch)))
            kept = [k & r.is_used for k, r in zip(kept, rows)]
        for each in zip(rows, kept, extra):
            sums.add(*each)
    return sums


def _columns(
    found: Estimation,
    others: Equations,
    stretch: Stretch,
    rows: list[Rows],
    causes: list[_Cause],
) -> list[Array]:
    """Columns of all causes in rows of each kind, (M, n, E) each; `causes` says what they are."""
    every = [
        *_unasked(others, stretch),
        *_factors_of_torques(found, rows),
        *_factors_of_encoders(found, stretch, rows),
        *_loops(found.equations, stretch, rows),
    ]
    causes[:] = []
    first = 0
    for name, owner, unit, parts in every:
        last = first + parts[0].shape[2]
        causes.append(_Cause(name, owner, unit, tuple(range(first, last))))
        first = last
    return [np.concatenate(parts, axis=2) for parts in zip(*(item[3] for item in every))]


def _unasked(others: Equations, stretch: Stretch) -> Iterator[_Column]:
    """Parameters that were not asked for."""
    extra = [rows.X for rows in others.rows(stretch)]
    places: dict[tuple[str, str], list[int]] = {}
    for k, column in enumerate(others.columns):
        is_whole = column.group in _WHOLE
        name = column.group if is_whole or column.group == 'stribeck' else column.name
        places.setdefault((name, '' if is_whole else column.owner), []).append(k)
    for (name, owner), own in places.items():
        yield name, owner, others.columns[own[0]].unit, [X[..., own] for X in extra]


def _factors_of_torques(found: Estimation, rows: list[Rows]) -> Iterator[_Column]:
    """Measured efforts are those of the model times a factor, of one joint or of all.

    Were it the other way round, none of them would fit best.
    """
    names, index = found.equations.model.joint_names, found.structure.independent
    rest = [r.y - r.X[..., index] @ found.z for r in rows]
    for title, kinds in (
        ('torque constant', ('effort', 'motor')),
        ('torque sensor', ('sensor',)),
    ):
        if {r.kind for r in rows}.isdisjoint(kinds):
            continue
        parts = [(r.signal - left) * (r.kind in kinds) for left, r in zip(rest, rows)]
        for owner, which in zip(names, np.eye(len(names))):
            yield title, owner, '', [(part * which)[..., None] for part in parts]
        # All of them and all parameters times the same factor leave what springs miss as it is.
        missed = [left * (r.kind == 'spring') for left, r in zip(rest, rows)]
        yield title, _ALL, '', [(a - b)[..., None] for a, b in zip(parts, missed)]


def _factors_of_encoders(
    found: Estimation, stretch: Stretch, rows: list[Rows]
) -> Iterator[_Column]:
    """Measured positions are the true ones times a factor, of one joint or motor or of all."""
    equations, index = found.equations, found.structure.independent
    names = equations.model.joint_names
    # A wrong scale can make a stiffness come out as none, with which encoders do not count.
    is_spring = [column.name == 'stiffness' for column in found.columns]
    point = np.where(is_spring, found.structure.mapping @ equations.known, found.z)
    for what, title in _SIDES.items():
        if (given := getattr(stretch, what)) is None:
            continue
        total = [np.zeros((*r.y.shape, 1)) for r in rows]
        for owner, which in zip(names, np.eye(len(names))):
            scaled = equations.rows(
                replace(stretch, **{what: given * (1.0 + _STEP * which)})
            )
            steps = [
                ((b.y - a.y - (b.X - a.X)[..., index] @ point) / _STEP)[..., None]
                for a, b in zip(rows, scaled)
            ]
            total = [a + b for a, b in zip(total, steps)]
            yield title, owner, '', steps
        yield title, _ALL, '', total


def _loops(equations: Equations, stretch: Stretch, rows: list[Rows]) -> Iterator[_Column]:
    """Hysteresis of springs, of friction where joints are rigid."""
    travel = stretch.motion[:, 0]
    if stretch.motor_motion is not None:
        travel = np.where(equations.elastic, stretch.motor_motion[:, 0] - travel, travel)
    loops = np.stack([_hysteresis(travel, width) for width in _WIDTHS], axis=2)
    names = equations.model.joint_names
    for owner, which in zip(names, np.eye(len(names))):
        yield 'hysteresis', owner, 'N m', [loops * which[:, None]] * len(rows)


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
    equations, first = found.equations, found.stretches[0]
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
    for lag in lags if all(stretch.is_even for stretch in found.stretches) else ():
        late = equations.state.delay + lag * first.step
        side = 'behind' if late > 0.0 else 'ahead of'
        text = f'efforts that are {abs(late):.2g} s {side} the positions'
        yield text, partial(_moved, lag=lag)


def _swapped(
    stretch: Stretch, what: str, order: NDArray[np.intp], with_laws: bool
) -> Stretch:
    """Positions in another order of joints, and the friction that depends on them."""
    changes = {what: getattr(stretch, what)[..., order]}
    if with_laws:
        changes['laws'] = {name: law[:, order] for name, law in stretch.laws.items()}
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
