"""What may have stopped a robot, as it is told: causes, excesses, limits that stay undecided."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from hodyn_ros.analysis.recorded_signals import Signal
from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.names import instant, listed, name_of, number

_MOST_CAUSES = 5  # that people see
_WIDTH, _INDENT = 92, 3 * ' '
_RECORD_MORE = (
    'Record commands where they are sent, with all digits; what changes like noise is to be '
    'filtered before it is sent, or is measured (--recorded measured).'
)
_WHY_UNDECIDED = {
    True: f'rounding or noise hides it: {{}}. {_RECORD_MORE}',
    False: 'the recording does not have it, or its samples are too few or too far apart: {}.',
}
"""Of what is known, and of what is not."""


_EXCEEDED = (
    Column('quantity', 'exceeded', form=name_of),
    Column('source', 'signal'),
    Column('joint_name', 'joint'),
    Column('time', 'worst at', 's', instant),
    Column('value'),
    Column('limit'),
    Column('factor', digits=3),
    Column('unit', form='[{}]'.format),
)


class Excess(NamedTuple):
    """The worst sample of a joint beyond a limit.

    Attributes
    ----------
    quantity : str
        As in `Violation`.
    joint_name : str
    value : float
        In the unit of the quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Recorded, find_stop_causes
    >>> model, times = RobotModel.from_urdf('two_link'), 0.001 * np.arange(2000)
    >>> fast = Recorded(times, np.sin(8.0 * times)[:, None] * [1.0, 0.1])
    >>> excess = find_stop_causes(model, model.limits, fast).causes[0].excesses[0]
    >>> f'{excess.quantity} of {excess.joint_name}: {excess.value:.2f} {excess.unit}'
    'velocity of shoulder: -8.00 rad/s'
    """

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
    unit: str
    """Such as 'N m/s'."""


class Undecided(NamedTuple):
    """A limit of which a recording does not show whether it is kept.

    Attributes
    ----------
    quantity : str
        As in `Violation`.
    joint_names : tuple of str
        Joints of which it is not decided.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Recorded, find_stop_causes
    >>> model, times = RobotModel.from_urdf('two_link'), 0.001 * np.arange(2000)
    >>> coarse = Recorded(times, np.sin(times)[:, None].round(2) * np.ones(2))
    >>> [item.text for item in find_stop_causes(model, model.limits, coarse).undecided]
    ['commanded velocity of all joints', 'computed torque of all joints']
    """

    quantity: str
    source: str
    """See `Signal`."""
    joint_names: tuple[str, ...]
    are_all: bool
    """Whether these are all joints of the robot."""
    is_known: bool
    """Whether there are values, of which noise or rounding hides too much; else most are NaN."""

    @property
    def text(self) -> str:
        """Part of a sentence.

        Returns
        -------
        str
            Such as 'commanded jerk of all joints'.
        """
        whose = 'all joints' if self.are_all else listed(self.joint_names)
        return f'{self.source} {name_of(self.quantity)} of {whose}'


@dataclass(frozen=True)
class StopCause:
    """What may have stopped the robot.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Recorded, find_stop_causes
    >>> model, times = RobotModel.from_urdf('two_link'), 0.001 * np.arange(2000)
    >>> fast = Recorded(times, np.sin(8.0 * times)[:, None] * [1.0, 0.1])
    >>> cause = find_stop_causes(model, model.limits, fast).causes[0]
    >>> cause.kind, cause.time, cause.is_certain, round(cause.factor, 2)
    ('motion too fast', 0.001, True, 1.33)
    >>> cause.advice
    'The commanded motion is too fast for its limits: hodyn retime finds a timing that keeps them.'
    """

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

    def parts(self, place: int) -> Iterator[Table | str]:
        """What happened and what to do, and a table of what exceeds limits.

        Parameters
        ----------
        place : int
            Number of the cause in a list.

        Yields
        ------
        str or Table
        """
        doubt = '' if self.is_certain else ', not certain'
        advice = textwrap.fill(
            self.advice, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
        )
        yield f'{place}. {self.kind} at {instant(self.time)} s{doubt}\n{advice}'
        if self.excesses:
            yield Table('', _EXCEEDED, self.excesses)


@dataclass(frozen=True, eq=False)
class StopAnalysis:
    """Causes for which a robot may have stopped; see `find_stop_causes`.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Recorded, find_stop_causes
    >>> model, times = RobotModel.from_urdf('two_link'), 0.001 * np.arange(2000)
    >>> fast = Recorded(times, np.sin(8.0 * times)[:, None] * [1.0, 0.1])
    >>> found = find_stop_causes(model, model.limits, fast)
    >>> found.verdict, found.period, [cause.kind for cause in found.causes][:2]
    ('exceeded', 0.001, ['motion too fast'])
    """

    causes: tuple[StopCause, ...]
    """Most probable first."""
    undecided: tuple[Undecided, ...]
    """Limits that are not certainly exceeded, and not certainly kept."""
    signals: tuple[Signal, ...]
    """What was compared with limits."""
    period: float
    """Of the commands, without them of the measurements [s]."""
    remarks: tuple[str, ...]
    """What could not be told."""
    deviation: Excess | None
    """Where measured positions are farthest from the commands, without a limit."""

    @property
    def verdict(self) -> Literal['exceeded', 'undecided', 'kept']:
        """On the limits that are known.

        Returns
        -------
        {'exceeded', 'undecided', 'kept'}
            'exceeded' if a cause is certain, 'kept' if there is neither a cause nor an
            undecided limit.
        """
        if any(cause.is_certain for cause in self.causes):
            return 'exceeded'
        return 'undecided' if self.causes or self.undecided else 'kept'

    @property
    def answer(self) -> Answer:
        """The causes with tables of excesses, then what is not decided; all of it as records.

        Returns
        -------
        Answer
            Times in [s].
        """
        data: dict[str, Any] = {
            'period': self.period,
            'verdict': self.verdict,
            'causes': [vars(cause) for cause in self.causes],
            'undecided': self.undecided,
            'deviation': self.deviation,
            'remarks': self.remarks,
        }
        shown = self.causes[:_MOST_CAUSES]
        parts = [part for i, cause in enumerate(shown, 1) for part in cause.parts(i)]
        if more := len(self.causes) - len(shown):
            parts.append(f'{more} more are less probable; --json lists them.')
        return Answer([*parts, '\n'.join(self._sentences())], data)

    def _sentences(self) -> Iterator[str]:
        """That there is no cause, what is not decided, and how far the robot was away."""
        if not self.causes:
            surely = 'certainly ' * (self.verdict == 'undecided')
            yield (
                f'No limit that is known is {surely}exceeded, and no command is missing or '
                'repeated.'
            )
        for is_known, why in _WHY_UNDECIDED.items():
            items = [item.text for item in self.undecided if item.is_known == is_known]
            if items:
                yield 'Undecided, since ' + why.format('; '.join(items))
        if (far := self.deviation) is not None:
            yield (
                f'Measured positions are up to {number(abs(far.value), 3)} {far.unit} away from '
                f'the commands, {far.joint_name} at {instant(far.time)} s.'
            )
