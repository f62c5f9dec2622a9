"""`hodyn check`: does a motion keep the limits of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from hodyn_ros.analysis.unlimited import Unlimited, no_limit
from hodyn_ros.cli.output import echo_json, instant, number, show_remarks, table
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.cli.stops import stopped
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Results
from hodyn_ros.names import listed, name_of
from hodyn_ros.plotting.checks import Check, all_checks, all_violations, unlimited_in
from hodyn_ros.plotting.labels import label_of
from hodyn_ros.plotting.series import checked_results, is_linear

VIOLATION = 1
"""Exit code if a limit is exceeded."""


def check(
    given: Given,
    as_json: bool,
    recorded: str | None = None,
    measured: Path | None = None,
    measured_topic: str | None = None,
    output: Path | None = None,
) -> int:
    """Compare a motion with the limits, and return the exit code.

    Parameters
    ----------
    given : Given
        Robot and motion.
    as_json : bool
        Whether JSON is printed instead of tables.
    recorded : {'commanded', 'measured'}, optional
        What the motion is, if it is a recording of a robot that stopped.
    measured : pathlib.Path, optional
        Measurements beside recorded commands.
    measured_topic : str, optional
        Their topic in a bag.
    output : pathlib.Path, optional
        Picture of the place where the robot stopped.

    Returns
    -------
    int
        0, or 1 if a limit is exceeded.

    Raises
    ------
    HodynError
        If something given cannot be used.
    """
    if recorded or measured or measured_topic:
        is_exceeded = stopped(given, recorded, measured, measured_topic, output, as_json)
        return VIOLATION if is_exceeded else 0
    if output is not None:
        raise RequestError(
            '--output is for recordings (--recorded); of a motion: hodyn plot.'
        )
    problem = load_problem(given)
    results = problem.results()
    checked = checked_results(results, problem.model)
    checks = all_checks(checked, problem.model, problem.limits, problem.motor_limits)
    data = _data(problem, results, checks)
    if as_json:
        echo_json(data)
    else:
        show_remarks(results.remarks)
        click.echo(_text(data, checks))
    return 0 if data['is_kept'] else VIOLATION


def _data(problem: Problem, results: Results, checks: Sequence[Check]) -> dict[str, Any]:
    """Everything for programs.

    Returns
    -------
    dict
        Times in [s], shares of limits by joint or motor; what `--json` prints.
    """
    violations = all_violations(results, problem.model, **problem.limiting)
    # The efforts jump along the motion, so that their rate has no bound.
    has_jumps = results.continuous_order < 0
    return {
        'robot': problem.model.name,
        'motion': results.name,
        'samples': len(results),
        'start': results.times[0],
        'end': results.times[-1],
        # Within which nothing is compared [s].
        'largest_step': float(np.diff(results.times).max(initial=0.0)),
        'limits_from': problem.limits_from,
        'is_kept': not violations and not has_jumps,
        'has_jumps': has_jumps,
        'violations': [
            {
                **found._asdict(),
                'time': results.times[found.sample],
                'unit': label_of(
                    found.quantity, is_linear(results, problem.model, found.joint_name)
                ).plain_unit,
            }
            for found in violations
        ],
        'used': [
            {
                'quantity': check.quantity,
                'is_checked': check.is_checked,
                'samples_checked': dict(zip(check.subjects, check.n_known)),
                'shares': dict(zip(check.subjects, check.shares)),
            }
            for check in checks
        ],
        'unlimited': unlimited_in(results, problem.model, **problem.limiting),
        'remarks': list(results.remarks),
        'provenance': problem.model.provenance.lines(),
    }


def _text(data: dict[str, Any], checks: Sequence[Check]) -> str:
    """Everything for people."""
    lines = [
        f'{data["motion"]}: {data["samples"]} samples from {instant(data["start"])} s to '
        f'{instant(data["end"])} s, at most {number(data["largest_step"])} s apart',
        f'limits: {data["limits_from"]}',
        '',
    ]
    if violations := data['violations']:
        rows = []
        for found in violations:
            quantity, value, limit = found['quantity'], found['value'], found['limit']
            excess = f'{100.0 * abs(value - limit) / abs(limit or 1.0):.1f} %'
            if quantity == 'position' or limit == 0.0:
                # Relative to where the zero of a joint happens to be it says nothing.
                excess = number(abs(value - limit), 3)
            rows.append(
                (
                    name_of(quantity),
                    found['joint_name'],
                    instant(found['time']),
                    number(value),
                    number(limit),
                    excess,
                    f'[{found["unit"]}]',
                )
            )
        head = ('exceeded', 'joint', 'worst at\n[s]', 'value', 'limit', 'by', 'unit')
        lines += [table(head, rows), '']
    uses = []
    for check in checks:
        used = '' if check.worst is None else f'{100.0 * check.shares[check.worst]:.1f} %'
        uses.append((name_of(check.quantity), used, _verdict(check)))
    lines += [table(('quantity', 'used of its limit', ''), uses), '']
    count = len(violations)
    if violations:
        lines.append(f'{count} {"limit is" if count == 1 else "limits are"} exceeded.')
    if data['has_jumps']:
        lines.append(
            'The torques jump at waypoints, so there is no bound for torque rate and jerk: the '
            'motion keeps no limits of them.'
        )
    elif not violations:
        lines.append('All limits that could be checked are kept.')
    unlimited: tuple[Unlimited, ...] = data['unlimited']
    lines += [no_limit(unlimited)] * bool(unlimited)
    return '\n'.join(lines)


def _verdict(check: Check) -> str:
    """Say who uses most of the limit, or why it is not checked."""
    if check.n_limited == 0:
        return 'not checked: no limit is known'
    if not check.is_checked:
        return 'not checked: the motion, or --order, does not determine it'
    words = [f'by {check.subjects[check.worst]}' if check.worst is not None else '']
    without = [name for name, has in zip(check.subjects, check.is_limited) if not has]
    if without:
        words.append(f'no limit for {listed(without)}')
    if check.n_least < check.n_samples:
        words.append(f'known at {check.n_least} of {check.n_samples} samples only')
    return '; '.join(word for word in words if word)
