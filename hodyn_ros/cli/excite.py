"""`hodyn excite`: a motion along which measured torques show parameters of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from hodyn_ros.analysis.limits import no_limit
from hodyn_ros.cli.output import echo_json, number, progress, table
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.files import Samples, compute, write_results
from hodyn_ros.files.files import check_output
from hodyn_ros.identification.excitation import Excitation
from hodyn_ros.identification.excitation import excite as found_motion
from hodyn_ros.names import name_of
from hodyn_ros.plotting.checks import all_checks, unlimited_in

_KINDS = {
    'h': 'first moment',
    'i': 'inertia',
}  # By how the names of their components begin.


def excite(
    given: Given,
    output: Path,
    joints: tuple[str, ...],
    box: tuple[float, ...] | None,
    effort_noise: float,
    as_json: bool,
    **search: Any,
) -> None:
    """Find a motion, write it with its torques, and say what it is worth.

    Parameters
    ----------
    given : Given
        Robot; its rate is that of the measurements [Hz].
    output : pathlib.Path
        File of the motion.
    joints : tuple of str
        Those that move; empty: all.
    box : tuple of six float, or None
        Lowest, then highest x, y, z of links [m].
    effort_noise : float
        Standard deviation of measured efforts [N m] or [N].
    as_json : bool
        Whether JSON is printed instead of tables.
    **search
        What is to be shown ('target' and 'link'), 'duration' and 'seed', as `Excitation` is found
        by them.
    """
    assert given.rate is not None
    check_output(output)  # before the long work
    problem = load_problem(given)
    with progress('Looking for a motion'):
        found = found_motion(
            problem.model,
            problem.limits,
            joints=joints or None,
            box=None if box is None else np.reshape(box, (2, 3)),
            effort_noise=effort_noise,
            rate=given.rate,
            actuators=problem.actuators,
            **search,
        )
    results = _results(problem, found, given.rate)
    write_results(output, results)
    used = _used(problem, results)
    unlimited = unlimited_in(results, problem.model, **problem.limiting)
    if as_json:
        echo_json(
            {
                'robot': problem.model.name,
                'target': search['target'],
                'output': output,
                'samples': len(results),
                'duration': found.duration,
                'condition': found.condition,
                'std': dict(zip(found.names, found.std)),
                'limits_from': problem.limits_from,
                'used': [dict(zip(('quantity', 'name', 'share'), row)) for row in used],
                'unlimited': unlimited,
                'provenance': problem.model.provenance.lines(),
            }
        )
        return
    click.echo(f'{problem.model.name}: {_text(found, given.rate, effort_noise, used)}')
    if unlimited:
        click.echo('\n' + no_limit(unlimited))
    click.echo(f'\nWritten: {output} ({len(results)} samples)')


def _results(problem: Problem, found: Excitation, rate: float) -> Samples:
    """Motion with its torques and motors, at the rate of the measurements [Hz]."""
    samples = Samples(problem.model.joint_names, *found.samples(rate), name='the motion')
    return compute(problem.model, samples, actuators=problem.actuators, derivatives='given')


def _used(problem: Problem, results: Samples) -> list[tuple[str, str, float]]:
    """Quantities that have limits, with who uses most of them, and which share."""
    limits = problem.limits, problem.motor_limits
    return [
        (check.quantity, check.subjects[check.worst], float(check.shares[check.worst]))
        for check in all_checks(results, problem.model, *limits)
        if check.worst is not None
    ]


def _text(
    found: Excitation,
    rate: float,
    effort_noise: float,
    used: Sequence[tuple[str, str, float]],
) -> str:
    """What a motion is worth, for people: deviations, and how much of the limits it uses.

    Parameters
    ----------
    found : Excitation
    rate : float
        Of the measurements [Hz].
    effort_noise : float
        Standard deviation of measured efforts [N m] or [N].
    used : sequence of (str, str, float)
        Quantities, joints or motors, and shares of their limits.

    Returns
    -------
    str
    """
    head = ('parameters', 'number', 'median', 'largest', 'of')
    rows = [
        (name_of(what), f'{100.0 * share:.0f} %', f'by {name}')
        for what, name, share in used
    ]
    return (
        f'{number(found.duration)} s from rest to rest, {len(found.names)} '
        f'parameters, condition number {number(found.condition, 3)}\n'
        f'Expected standard deviations [SI units], from torques at {number(rate)} Hz with '
        f'noise of {number(effort_noise)} N m:\n\n'
        f'{table(head, _deviations(found))}\n\n{table(("limit", "used", ""), rows)}'
    )


def _deviations(found: Excitation) -> list[tuple[Any, ...]]:
    """Deviations of each kind of parameters, as rows of a table."""
    kinds: dict[str, list[int]] = {}
    for place, name in enumerate(found.names):
        short = name.removesuffix(' + ...').split()[-1]
        kind = _KINDS.get(short[0], short) if len(short) <= 3 else short
        kinds.setdefault(kind, []).append(place)
    rows = []
    for kind, places in kinds.items():
        worst = max(places, key=found.std.__getitem__)
        values = np.median(found.std[places]), found.std[worst]
        rows.append(
            (kind, str(len(places)), *(number(x, 2) for x in values), found.names[worst])
        )
    return rows
