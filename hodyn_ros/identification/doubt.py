"""What is left of recordings beside the noise of their samples, and what would explain it.

Rows are weighted by the noise floor: what neighbouring samples of efforts scatter, behind the
filter, and what encoders round. Where parameters leave more than that (chi-square over degrees of
freedom beyond 1), hypotheses take their shares of the excess. Of those that do as much the one
with the fewest columns counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hodyn_ros.identification.hypotheses import Trial, Trials
from hodyn_ros.identification.recording import Flags
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.identification.estimation import Estimation

# Chi-square over degrees of freedom beyond 1 that is worth a remark; the same in its deviations.
_EXCESS, _CERTAIN = 1.0, 5.0
_SURE = 30.0  # gain of a hypothesis that is certain, as chi-square beside what is left
# Share of the excess that is named, that mistakes in recordings have to explain, and that is left
# for these to be tried.
_NAMED, _FAULT, _UNEXPLAINED = 0.25, 0.8, 0.05
_ALIKE = 0.02  # of the excess, by which hypotheses are hardly told apart
_SHOWN = 5  # explanations


class Explanation(NamedTuple):
    """What a change of the model would explain.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import compare, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing)
    >>> found = compare(model, recording)
    >>> explanation = found.explanations[0]
    >>> explanation.text, round(explanation.share, 2)
    ('a payload of 0.5 kg at tool', 1.0)
    """

    text: str
    """Such as 'a payload of 0.98 kg at panda_link8'."""
    shares: Array
    """Part of the squared residual that would be gone, shape (n,); NaN where there is none."""
    share: float
    """The same of all joints together."""


class Doubt(NamedTuple):
    """How far an estimation is from the noise, and why.

    Examples
    --------
    The elbow has friction, which is not among the parameters asked for:

    >>> from hodyn_ros import RobotModel, friction
    >>> from hodyn_ros.identification import identify, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> robot = model.with_friction({'elbow': friction.Viscous(2.0)})
    >>> recording = simulated_recording(robot, swing)
    >>> doubt = identify(model, recording, ['payload'], link='tool').doubt
    >>> doubt.is_fault, doubt.explanations[0].text
    (False, 'viscous of elbow (+2 N m s/rad)')
    """

    chi_square: Array
    """Of each joint over its degrees of freedom, shape (n,); NaN where nothing is measured."""
    explanations: tuple[Explanation, ...]
    """Of the excess, the likeliest first; empty where there is none."""
    shift: Array
    """By how much base parameters change with the first one, shape (b,); 0 if it is not sure."""
    is_fault: bool
    """Whether the first one is a mistake in the recordings."""
    factors: Array
    """By which deviations of base parameters are larger than noise makes them, shape (b,)."""

    @property
    def factor(self) -> float:
        """Largest of the factors."""
        return float(self.factors.max(initial=1.0))

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
        wider = f' Standard deviations are up to {self.factor:.3g} times as large for that.'
        wider *= self.factor > 1.0
        if best.share >= _NAMED:
            share = f'{100.0 * best.share:.0f} %'
            return (
                f'Up to {times:.3g} times the noise is left; of what is beyond it {best.text} '
                f'explains {share}.{wider}'
            )
        return (
            f'Up to {times:.3g} times the noise between neighbouring samples is left, and nothing '
            'that was tried explains much of it: it is noise that lasts for more than a sample, '
            f'or something that the model lacks.{wider}'
        )


class _Misfit(NamedTuple):
    """What the base parameters leave of n joints."""

    chi_square: Array
    freedom: Array

    @property
    def reduced(self) -> Array:
        """Chi-square over degrees of freedom, NaN where there are none."""
        least = np.where(self.freedom > 0.0, self.freedom, np.nan)
        return np.asarray(self.chi_square / least)

    @property
    def limit(self) -> Array:
        """Of these, from which on more than noise is left."""
        deviation = np.sqrt(2.0 / np.maximum(self.freedom, 1.0))
        return np.asarray(1.0 + np.maximum(_EXCESS, _CERTAIN * deviation))

    @property
    def is_much(self) -> Flags:
        return np.asarray(self.reduced > self.limit)

    @property
    def excess(self) -> float:
        return float(self.chi_square.sum() - self.freedom.sum())


def doubted(found: Estimation, link: str | None) -> Doubt:
    """Hold what an estimation leaves against the noise, and look for what explains the rest.

    Parameters
    ----------
    found : Estimation
    link : str or None
        Where a payload may be; None: no payload is tried.

    Returns
    -------
    Doubt
    """
    tests, b = Trials(found, link), len(found.z)
    count = float(tests.count.sum())
    misfit = _Misfit(tests.left(), tests.count * (1.0 - b / max(count, b + 1.0)))
    before, excess = float(misfit.chi_square.sum()), misfit.excess
    trials = [*tests.single()]
    unexplained = min(trials).total - float(misfit.freedom.sum())
    if misfit.is_much.any() and unexplained > _UNEXPLAINED * excess:
        trials += tests.of_other_data(before - _FAULT * excess)
    excess = max(excess, before - min(trials).total)
    best, other = _simplest(trials, min(trials).total + _ALIKE * excess)
    gain = before - best.criterion
    is_sure = gain > _SURE * max(1.0, best.total / count) and gain > _NAMED * excess
    reduced = misfit.reduced
    if not (misfit.is_much.any() or is_sure):
        return Doubt(reduced, (), np.zeros(b), False, np.ones(b))
    shown = [best, *sorted(item for item in trials if item is not best)][:_SHOWN]
    explanations = _explanations(misfit, excess, shown, other)
    is_fault = is_sure and best.is_fault
    if is_sure:
        misfit = misfit._replace(chi_square=best.left)
    return Doubt(
        reduced,
        explanations,
        best.shift if is_sure else np.zeros(b),
        is_fault,
        _factors(found) if misfit.is_much.any() and not is_fault else np.ones(b),
    )


def _explanations(
    misfit: _Misfit, excess: float, shown: Sequence[Trial], other: Trial | None
) -> tuple[Explanation, ...]:
    """Texts of trials, the best one first, with the shares of the excess that they explain."""
    before = float(misfit.chi_square.sum())
    each = np.where(misfit.is_much, misfit.chi_square - misfit.freedom, np.nan)
    texts = [item.text for item in shown]
    if other is not None:
        texts[0] = f'{texts[0]}, or {other.text},'
    return tuple(
        Explanation(
            text, (misfit.chi_square - item.left) / each, (before - item.total) / excess
        )
        for text, item in zip(texts, shown)
    )


def _factors(found: Estimation) -> Array:
    """Deviations by the jackknife over those of noise, at least 1, shape (b,)."""
    noise = np.sqrt(np.diag(found.covariance))
    ratio = found.jackknife() / np.maximum(noise, 1e-300)
    return np.where(found.is_shown, np.maximum(ratio, 1.0), 1.0)


def _simplest(trials: Sequence[Trial], enough: float) -> tuple[Trial, Trial | None]:
    """Of those that leave little enough the one with the fewest columns; another as good."""
    good = (item for item in trials if item.total <= enough)
    first, *rest = sorted(good, key=lambda item: (item.penalty, item.criterion))
    return first, next((item for item in rest if item.penalty <= first.penalty), None)
