"""Tables and sentences for people and records for programs, of what recordings say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.names import number, percent

if TYPE_CHECKING:
    from hodyn_ros.identification.compare import Comparison
    from hodyn_ros.identification.estimation import IdentifiedParameter
    from hodyn_ros.identification.identify import Identification, Residual

_MOST_SHOWN, _MOST_COLUMNS = 12, 4
_LEAST_SHOWN = 1e-8  # deviation that is written without an exponent
_BODIES = ('bodies', 'payload')


def of_comparison(found: Comparison) -> Answer:
    """Differences of efforts, and what would explain them.

    Parameters
    ----------
    found : Comparison

    Returns
    -------
    Answer
    """
    bands = {f'band {k}': f'of it\n{title}' for k, title in enumerate(found.band_titles)}
    columns = [
        Column('name', 'joint'),
        Column('measured', digits=3),
        Column('residual', 'difference', digits=3),
        *(Column(key, title, digits=2) for key, title in bands.items()),
        Column('scale', 'scale\nfactor', digits=3),
        Column('correlation', digits=3),
    ]
    keys = 'name', 'measured', 'residual', 'scale', 'correlation'
    each = zip(found.joint_names, *(getattr(found, key) for key in keys[1:]))
    joints = [dict(zip(keys, row)) for row in each]
    rows = [joint | dict(zip(bands, row)) for joint, row in zip(joints, found.bands.T)]
    common = ''.join(os.path.commonprefix(found.joint_names).rpartition('_')[:2])
    shares = [
        Column(name, name.removeprefix(common), form=percent) for name in found.joint_names
    ]
    explained = [
        {'text': text, 'share': share, **dict(zip(found.joint_names, each))}
        for text, each, share in found.explanations
    ]
    parts: list[Table | str] = [
        Table(f'Torques, RMS [{" or ".join(dict.fromkeys(found.units))}]', columns, rows),
        Table(
            'Part of the squared difference that would be gone with each of these alone',
            [Column('text', ''), Column('share', 'all', form=percent), *shares],
            explained,
        ),
        found.summary,
    ]
    data = {'joints': joints, 'explanations': found.explanations, 'remarks': found.remarks}
    return Answer(parts, data)


def of_identification(found: Identification) -> Answer:
    """Parameters of joints, those of bodies that matter, residuals and the payload.

    Parameters
    ----------
    found : Identification

    Returns
    -------
    Answer
    """
    names = 'parameters', 'payload', 'residuals', 'validation'
    data = {name: getattr(found, name) for name in names} | {
        'chi_square': found.doubt.chi_square,
        'explanations': found.doubt.explanations,
        'remarks': found.remarks,
    }
    return Answer([*_parts(found)], data)


def _parts(found: Identification) -> Iterator[Table | str]:
    """Tables and sentences, in their order."""
    bodies = [item for item in found.parameters if item.group in _BODIES]
    others = [item for item in found.parameters if item.group not in _BODIES]
    yield (
        f'{len(found.parameters)} parameters, with standard deviations; + ... stands for a '
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
        rows = [item._asdict() | {'value': estimate(item)} for item in largest]
        yield Table(f'Bodies: {which}with their part of the torque', columns, rows)
    yield from (
        f'{item.name} {estimate(item)} {item.unit}'
        for item in others
        if ' ' not in item.name
    )
    unit = 'N m or N' if 'prismatic' in found.model.joint_types else 'N m'
    for title, residuals in (
        ('', found.residuals),
        ('Not used to identify: ', found.validation),
    ):
        for item in residuals:
            what = f'{Path(item.name).name}, {item.title}, RMS [{unit}]'
            yield _residuals(f'{title}{what}', item, found.model.joint_names)
    if (payload := found.payload) is not None:
        com = ', '.join(f'{round(x, 4) + 0.0:.4f}' for x in payload.com)
        yield f'{payload.link} carries {number(payload.mass)} kg, centre at ({com}) m.'


def _joint_tables(joints: Sequence[IdentifiedParameter]) -> Iterator[Table]:
    """Parameters of joints, some kinds beside each other."""
    units = {item.name.rpartition(' ')[2]: item.unit for item in joints}
    records: dict[str, dict[str, str]] = {}
    for item in joints:
        joint, _, kind = item.name.rpartition(' ')
        records.setdefault(joint, {'joint': joint})[kind] = estimate(item)
    kinds = [Column(kind, kind, unit) for kind, unit in units.items()]
    for first in range(0, len(kinds), _MOST_COLUMNS):
        columns = Column('joint'), *kinds[first : first + _MOST_COLUMNS]
        yield Table('', columns, [*records.values()])


def estimate(item: IdentifiedParameter) -> str:
    """Value with its deviation, to the digits that this leaves.

    Parameters
    ----------
    item : IdentifiedParameter

    Returns
    -------
    str
        Such as '0.412 +- 0.003 + ...', where the last stands for other parameters in it.
    """
    combined = '' if item.is_alone else ' + ...'
    if not _LEAST_SHOWN < item.std < np.inf:
        return f'{number(item.value)} +- {number(item.std, 2)}{combined}'
    digits = max(0, 1 - int(np.floor(np.log10(item.std))))
    return f'{item.value:.{digits}f} +- {item.std:.{digits}f}{combined}'


def _residuals(title: str, item: Residual, names: tuple[str, ...]) -> Table:
    """Table of what the given and the identified model leave of a recording."""
    heads = {
        'size': 'measured',
        'before': 'left by the\ngiven model',
        'after': 'left by the\nidentified',
        'noise': 'noise',
        'chi_before': 'chi-square\nbefore',
        'chi_after': 'chi-square\nafter',
    }
    rows = zip(names, item.size, item.before, item.after, item.noise, *item.chi_square)
    records = [dict(zip(('joint', *heads), row)) for row in rows if np.isfinite(row[1])]
    columns = [Column(key, title, digits=3) for key, title in heads.items()]
    return Table(title, [Column('joint'), *columns], records)
