"""What is identified: parameters with deviations, the robot that has them, and residuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.display import Answer, Column, Table, shown
from hodyn_ros.identification.doubt import Doubt
from hodyn_ros.identification.equations import Parameter
from hodyn_ros.identification.estimation import IdentifiedParameter
from hodyn_ros.model.inertia import Payload
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import number, percent
from hodyn_ros.typing import Array

_KINDS = {
    'effort': 'torques of the joints',
    'motor': 'torques of the motors',
    'sensor': 'torque sensors',
    'spring': 'torques of springs against those of the links',
}
_MOST_SHOWN, _MOST_COLUMNS = 12, 4


class Residual(NamedTuple):
    """What efforts of a recording miss.

    Attributes
    ----------
    name : str
        Of the recording.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import identify, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing)
    >>> residual = identify(model, recording, ['payload'], link='tool').residuals[0]
    >>> residual.kind, residual.before.round(1), residual.after.round(3)
    ('effort', array([5.8, 3. ]), array([0., 0.]))
    """

    name: str
    kind: str
    """'effort', 'motor' (torques), 'sensor' or 'spring' (link side against spring)."""
    size: Array
    """RMS of what was measured, shape (n,); NaN for other joints."""
    before: Array
    """RMS of what the given model leaves."""
    after: Array
    """RMS of what the identified one leaves."""
    noise: Array
    """RMS of the noise behind the filter, as samples scatter and encoders round."""

    @property
    def title(self) -> str:
        """Kind of the rows in words.

        Returns
        -------
        str
            Such as 'torques of the joints'.
        """
        return _KINDS[self.kind]

    @property
    def chi_square(self) -> Array:
        """Squares of what both models leave over those of the noise, shape (2, n).

        Returns
        -------
        ndarray, shape (2, n)
            Of the given, then of the identified model.
        """
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.asarray((np.stack([self.before, self.after]) / self.noise) ** 2)


@shown
@dataclass(frozen=True, eq=False)
class Identification:
    """What recordings say about a robot; see `identify`.

    Attributes
    ----------
    remarks : tuple of str
        What one should know of recordings and estimates.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import identify, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing)
    >>> found = identify(model, recording, ['payload'], link='tool')
    >>> found.payload.link, round(found.payload.mass, 3), len(found.parameters)
    ('tool', 0.5, 4)
    """

    model: RobotModel
    """With identified bodies, friction, armature and gravity."""
    actuators: Actuators | None
    """With identified motors and springs."""
    payload: Payload | None
    """If it was asked for."""
    parameters: tuple[IdentifiedParameter, ...]
    """The b base parameters."""
    columns: tuple[Parameter, ...]
    """The P parameters that they combine."""
    mapping: Array
    """Base parameters = mapping @ parameters, shape (b, P)."""
    full: Array
    """Physically consistent parameters that the model holds, shape (P,)."""
    covariance: Array
    """Of the base parameters, shape (b, b)."""
    residuals: tuple[Residual, ...]
    """Of the recordings."""
    validation: tuple[Residual, ...]
    """Of recordings, or parts of them, that were not used."""
    doubt: Doubt
    """What is left beside the noise of samples, and what explains it."""
    remarks: tuple[str, ...]

    @property
    def answer(self) -> Answer:
        """Tables of parameters and residuals, for people and for programs.

        Returns
        -------
        Answer
        """
        names = 'parameters', 'payload', 'residuals', 'validation'
        data = {name: getattr(self, name) for name in names} | {
            'chi_square': self.doubt.chi_square,
            'explanations': self.doubt.explanations,
            'remarks': self.remarks,
        }
        parts = [*_parameters(self.parameters), *_residuals(self)]
        if (payload := self.payload) is not None:
            com = ', '.join(f'{round(x, 4) + 0.0:.4f}' for x in payload.com)
            parts.append(
                f'{payload.link} carries {number(payload.mass)} kg, centre at ({com}) m.'
            )
        return Answer(parts, data)

    def __getitem__(self, name: str) -> IdentifiedParameter:
        """Base parameter of a name."""
        for item in self.parameters:
            if item.name == name:
                return item
        raise KeyError(name)


def _parameters(parameters: Sequence[IdentifiedParameter]) -> Iterator[Table | str]:
    """Parameters of joints, those of bodies that matter, and those of the whole robot."""
    bodies = [item for item in parameters if item.group in ('bodies', 'payload')]
    others = [item for item in parameters if item not in bodies]
    yield (
        f'{len(parameters)} parameters, with standard deviations; + ... stands for a '
        'combination with others'
    )
    yield from _joint_tables([item for item in others if ' ' in item.name])
    if bodies:
        largest = sorted(bodies, key=lambda item: -item.share)[:_MOST_SHOWN]
        which = f'the {_MOST_SHOWN} largest of {len(bodies)}, ' * (
            len(bodies) > len(largest)
        )
        columns = (
            Column('name', 'parameter'),
            Column('value'),
            Column('unit'),
            Column('share', 'part', form=percent),
        )
        rows = [item._asdict() | {'value': item.text} for item in largest]
        yield Table(f'Bodies: {which}with their part of the torque', columns, rows)
    for item in others:
        if ' ' not in item.name:
            yield f'{item.name} {item.text} {item.unit}'


def _joint_tables(joints: Sequence[IdentifiedParameter]) -> Iterator[Table]:
    """Parameters of joints, some kinds beside each other."""
    units = {item.name.rpartition(' ')[2]: item.unit for item in joints}
    records: dict[str, dict[str, str]] = {}
    for item in joints:
        joint, _, kind = item.name.rpartition(' ')
        records.setdefault(joint, {'joint': joint})[kind] = item.text
    kinds = [Column(kind, kind, unit) for kind, unit in units.items()]
    for first in range(0, len(kinds), _MOST_COLUMNS):
        columns = Column('joint'), *kinds[first : first + _MOST_COLUMNS]
        yield Table('', columns, [*records.values()])


def _residuals(found: Identification) -> Iterator[Table]:
    """What the given and the identified model leave of recordings."""
    heads = {
        'size': 'measured',
        'before': 'left by the\ngiven model',
        'after': 'left by the\nidentified',
        'noise': 'noise',
        'chi_before': 'chi-square\nbefore',
        'chi_after': 'chi-square\nafter',
    }
    columns = [Column(key, title, digits=3) for key, title in heads.items()]
    unit = 'N m or N' if 'prismatic' in found.model.joint_types else 'N m'
    for item in (*found.residuals, *found.validation):
        values = item.size, item.before, item.after, item.noise, *item.chi_square
        rows = zip(found.model.joint_names, *values)
        records = [dict(zip(('joint', *heads), row)) for row in rows if np.isfinite(row[1])]
        title = f'{Path(item.name).name}, {item.title}, RMS [{unit}]'
        unused = 'Not used to identify: ' * any(item is other for other in found.validation)
        yield Table(unused + title, [Column('joint'), *columns], records)
