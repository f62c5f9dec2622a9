"""`hodyn excite`: a motion along which measured torques show parameters of a robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.analysis.limits import limited, no_limit, unlimited
from hodyn_ros.cli.output import progress
from hodyn_ros.cli.problem import Given, load_problem
from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.files import Samples, compute, write_results
from hodyn_ros.files.files import check_output
from hodyn_ros.identification.excitation import Excitation
from hodyn_ros.identification.excitation import excite as found_motion
from hodyn_ros.names import name_of, number, percent

_KINDS = {'h': 'first moment', 'i': 'inertia'}  # by how the names of their components begin
_DEVIATIONS = (
    Column('parameters'),
    Column('number'),
    Column('median', digits=2),
    Column('largest', digits=2),
    Column('of'),
)
_USED = (
    Column('quantity', 'limit', form=name_of),
    Column('share', 'used', form=percent),
    Column('name', '', form='by {}'.format),
)


def excite(
    given: Given,
    target: str,
    link: str | None,
    joints: tuple[str, ...],
    box: tuple[float, ...] | None,
    duration: float,
    effort_noise: float,
    output: Path,
    as_json: bool,
) -> None:
    """Find a motion, write it with its torques, and say what it is worth.

    Parameters
    ----------
    given : Given
        Its rate is that of the measurements [Hz].
    target, link, joints, box, duration, effort_noise, output, as_json
        See `hodyn excite --help`.
    """
    rate = given.rate or 1000.0
    check_output(output)  # before the long work
    problem = load_problem(given)
    model = problem.model
    with progress('Looking for a motion'):
        found = found_motion(
            model,
            problem.limits,
            target=target,
            link=link,
            joints=joints or None,
            box=None if box is None else np.reshape(box, (2, 3)),
            duration=duration,
            effort_noise=effort_noise,
            rate=rate,
            actuators=problem.actuators,
        )
    samples = Samples(model.joint_names, *found.samples(rate), name='the motion')
    results = compute(model, samples, actuators=problem.actuators, derivatives='given')
    write_results(output, results)
    quantities = limited(model, results, **problem.limiting)
    used = [
        {
            'quantity': each.name,
            'name': each.owners[each.worst],
            'share': float(each.peaks[each.worst]),
        }
        for each in quantities
        if each.worst is not None
    ]
    without = unlimited(quantities, problem.actuators)
    parts: list[Table | str] = [
        f'{model.name}: {number(found.duration)} s from rest to rest, {len(found.names)} '
        f'parameters, condition number {number(found.condition, 3)}\n'
        f'Expected standard deviations [SI units], from torques at {number(rate)} Hz with noise '
        f'of {number(effort_noise)} N m:',
        Table('', _DEVIATIONS, _deviations(found)),
        Table('', _USED, used),
        no_limit(without),
        f'Written: {output} ({len(results)} samples)',
    ]
    data = {
        'target': target,
        'output': output,
        'samples': len(results),
        'duration': found.duration,
        'condition': found.condition,
        'std': dict(zip(found.names, found.std)),
        'used': used,
        'unlimited': without,
    }
    problem.show(Answer(parts, data), as_json)


def _deviations(found: Excitation) -> list[dict[str, Any]]:
    """Deviations of each kind of parameters, as rows of a table."""
    kinds: dict[str, list[int]] = {}
    for place, name in enumerate(found.names):
        short = name.removesuffix(' + ...').split()[-1]
        kind = _KINDS.get(short[0], short) if len(short) <= 3 else short
        kinds.setdefault(kind, []).append(place)
    rows = []
    for kind, places in kinds.items():
        worst = max(places, key=found.std.__getitem__)
        rows.append(
            {
                'parameters': kind,
                'number': len(places),
                'median': float(np.median(found.std[places])),
                'largest': float(found.std[worst]),
                'of': found.names[worst],
            }
        )
    return rows
