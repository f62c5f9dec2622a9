"""`hodyn check`: does a motion keep the limits of a robot, and why did a robot stop.

A robot that stopped is looked at in what it was sent and what was measured (`--recorded`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from hodyn_ros import plotting
from hodyn_ros.analysis.limits import Unlimited, no_limit
from hodyn_ros.analysis.recorded_signals import Recorded
from hodyn_ros.analysis.stops import StopAnalysis, StopCause, find_stop_causes
from hodyn_ros.analysis.stops import instant as tenths
from hodyn_ros.cli.commands import OPTIONS_OF_MOTION
from hodyn_ros.cli.output import (
    PICTURES,
    echo_json,
    instant,
    number,
    show_remarks,
    table,
    written,
)
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.errors import IdentificationError, RequestError
from hodyn_ros.files import Samples
from hodyn_ros.files.files import read_motion
from hodyn_ros.files.inspection import in_model_order
from hodyn_ros.files.samples import times_from
from hodyn_ros.kinematics.loop_states import NEAR, loop_singularity
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed, name_of
from hodyn_ros.plotting.checks import Check, all_checks, all_violations, unlimited_in
from hodyn_ros.plotting.labels import label_of
from hodyn_ros.plotting.series import checked_results, is_linear

VIOLATION = 1
"""Exit code if a limit is exceeded."""

_MOST_CAUSES = 5
_RECORD_MORE = (
    'Record commands where they are sent, with all digits; what changes like noise is to be '
    'filtered before it is sent, or is measured (--recorded measured).'
)
_WHY_UNDECIDED = {
    True: f'rounding or noise hides it: {{}}. {_RECORD_MORE}',
    False: 'the recording does not have it, or its samples are too few or too far apart: {}.',
}
"""Of what is known, and of what is not."""
_WIDTH = 92


def check(
    given: Given,
    recorded: str | None,
    measured: str | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Compare a motion with the limits, and return the exit code.

    Parameters
    ----------
    given : Given
        Robot and motion.
    recorded : {'commanded', 'measured'} or None
        What the motion is, if it is a recording of a robot that stopped.
    measured : str or None
        Measurements beside recorded commands: a file, or a topic of the same bag.
    output : pathlib.Path or None
        Picture of the place where the robot stopped.
    as_json : bool
        Whether JSON is printed instead of tables.

    Returns
    -------
    int
        0, or 1 if a limit is exceeded.

    Raises
    ------
    HodynError
        If something given cannot be used.
    """
    if recorded or measured:
        is_exceeded = stopped(given, recorded, measured, output, as_json)
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


def _data(problem: Problem, results: Samples, checks: Sequence[Check]) -> dict[str, Any]:
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
        'singularity': _singularity(problem.model, results),
        'remarks': list(results.remarks),
        'provenance': problem.model.provenance.lines(),
    }


def _singularity(model: RobotModel, results: Samples) -> dict[str, Any] | None:
    """Where a motion is nearest to a singular position of closed loops; None without any."""
    known = np.flatnonzero(np.isfinite(results.motion[:, 0]).all(axis=-1))
    if model.closure is None or not len(known):
        return None
    found = loop_singularity(model, results.motion[known])
    nearest = int(found.distance.argmin())
    return {
        'distance': found.distance[nearest],
        'ratio': found.ratio[nearest],
        'joint': str(found.joint[nearest]),
        'time': results.times[known[nearest]],
        'is_near': bool((found.ratio < NEAR).any()),
    }


def _singularity_lines(nearest: dict[str, Any] | None) -> list[str]:
    """What is said of it."""
    if nearest is None or not np.isfinite(nearest['distance']):
        return []
    near = (
        f'That is near: below a ratio of {NEAR:g} dependent joints move many times as fast as '
        'the independent ones, and accelerate by far more.'
    )
    return [
        f'Closed loops: at {instant(nearest["time"])} s the independent joints are about '
        f'{number(nearest["distance"], 3)} (rad, m) away from where they do not determine '
        f'{nearest["joint"]} (ratio of singular values {number(nearest["ratio"], 3)}).'
    ] + [near] * nearest['is_near']


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
    lines += _singularity_lines(data['singularity'])
    unlimited: tuple[Unlimited, ...] = data['unlimited']
    lines += [no_limit(unlimited)] * bool(unlimited)
    return '\n'.join(lines)


def _verdict(check: Check) -> str:
    """Say who uses most of the limit, or why it is not checked."""
    if check.n_limited == 0:
        return 'not checked: no limit is known'
    if not check.is_checked:
        return 'not checked: the motion does not determine it'
    words = [f'by {check.subjects[check.worst]}' if check.worst is not None else '']
    without = [name for name, has in zip(check.subjects, check.is_limited) if not has]
    if without:
        words.append(f'no limit for {listed(without)}')
    if check.n_least < check.n_samples:
        words.append(f'known at {check.n_least} of {check.n_samples} samples only')
    return '; '.join(word for word in words if word)


def stopped(
    given: Given,
    recorded: str | None,
    measured: str | None,
    output: Path | None,
    as_json: bool,
) -> bool:
    """Say why a robot stopped, and return whether a limit is certainly exceeded.

    Parameters
    ----------
    given : Given
        Robot and recording.
    recorded : {'commanded', 'measured'} or None
        What the recording is.
    measured : str or None
        File of measurements beside commands, or their topic in the same bag.
    output : pathlib.Path or None
        Picture; not written if no cause was found.
    as_json : bool
        Whether JSON is printed instead of text.

    Returns
    -------
    bool

    Raises
    ------
    RequestError
        If options contradict each other or have no effect on a recording.
    """
    _refuse_options(given, recorded, measured is not None, output)
    problem = load_problem(given)
    sources = [_recorded_samples(problem, given.motion, given.topic)]
    if measured is not None:
        path = Path(measured)
        is_file = path.exists() or bool(path.suffix)
        where = (path, None) if is_file else (given.motion, measured)
        sources.append(_recorded_samples(problem, *where))
    recordings: list[Recorded | None] = [
        _recorded(each, sources[0].start) for each in sources
    ]
    if recorded == 'measured':
        recordings.insert(0, None)
    analysis = find_stop_causes(problem.model, problem.limits, *recordings)
    is_drawn = output is not None and bool(analysis.causes)
    if output is not None and is_drawn:
        with written(output) as target:
            plotting.plot_stop(problem.model, analysis).savefig(target, dpi=120)
    torques = _torques(problem, sources[-1]) if len(recordings) == 2 else ''
    if as_json:
        echo_json(_stop_data(problem, sources, analysis, torques))
    else:
        show_remarks(analysis.remarks)
        click.echo(_stop_text(problem, sources, analysis, torques))
        if output is not None:
            click.echo(f'\n{"Written" if is_drawn else "Not written"}: {output}')
    return analysis.verdict == 'exceeded'


def _refuse_options(
    given: Given, recorded: str | None, beside: bool, output: Path | None
) -> None:
    """Refuse options that contradict each other, or say nothing of a recording."""
    if beside and recorded == 'measured':
        raise RequestError(
            '--measured is what was measured beside the commands in MOTION, but --recorded '
            'measured says that MOTION is measured; leave one of them out.'
        )
    if output is not None and output.suffix.lower() not in PICTURES:
        raise RequestError(
            f'{output}: expected a name that ends with {" or ".join(PICTURES)}.'
        )
    for name, option in OPTIONS_OF_MOTION.items():
        if name != 'topic' and getattr(given, name) != getattr(Given(given.robot), name):
            raise RequestError(
                f'{option} has no effect on a recording, which is looked at as it was sent or '
                'measured (--recorded, --measured); leave it out.'
            )


def _recorded_samples(problem: Problem, path: Path, topic: str | None) -> Samples:
    """Recorded samples in the order of the model; refuses trajectories."""
    samples = read_motion(path, topic=topic, joint_names=problem.model.joint_names)
    if samples.is_waypoints:
        raise RequestError(
            f'{samples.name} is a trajectory: what the robot was sent between its waypoints is '
            'not in it. Leave --recorded out: its motion is checked (--interpolation jtc).'
        )
    ordered = in_model_order(problem.model, samples)
    show_remarks(ordered.remarks)
    return ordered


def _recorded(samples: Samples, start: int) -> Recorded:
    """Arrays of samples, with times from a common start."""
    motion = samples.motion
    velocity = motion[:, 1] if motion.shape[1] > 1 else None
    times = times_from(samples, start)
    return Recorded(times, motion[:, 0], velocity, samples.by_joint('effort'))


def _torques(problem: Problem, measured: Samples) -> str:
    """What would explain that measured torques are not those of the model."""
    if not np.isfinite(measured.effort[:, :1]).any():
        return ''
    # With all of control, which takes long.
    from hodyn_ros.identification.compare import compare

    try:
        found = compare(problem.model, measured)
    except IdentificationError:  # too short
        return ''
    is_told = any(np.isfinite(item.shares).any() for item in found.explanations)
    return found.summary if is_told else ''  # or too slow


def _stop_data(
    problem: Problem, sources: list[Samples], analysis: StopAnalysis, torques: str
) -> dict[str, Any]:
    """Everything for programs."""
    causes = [asdict(cause) for cause in analysis.causes]
    for cause in causes:
        cause['excesses'] = [
            {**excess._asdict(), 'unit': _unit(problem, excess.joint_name, excess.quantity)}
            for excess in cause['excesses']
        ]
    return {
        'robot': problem.model.name,
        'recordings': [samples.name for samples in sources],
        'samples': [len(samples) for samples in sources],
        'period': analysis.period,
        'limits_from': problem.limits_from,
        'verdict': analysis.verdict,
        'causes': causes,
        'undecided': analysis.undecided,
        'deviation': analysis.deviation,
        'torques': torques,
        'remarks': list(analysis.remarks),
    }


def _stop_text(
    problem: Problem, sources: list[Samples], analysis: StopAnalysis, torques: str
) -> str:
    """Everything for people."""
    lines = []
    for samples in sources:
        first, last = map(tenths, samples.times[[0, -1]].tolist())
        step = number(1e3 * float(np.median(np.diff(samples.times))))
        head = f'{samples.name}: {len(samples)} samples from {first} s to {last} s'
        lines.append(f'{head}, {step} ms apart')
    lines += [f'limits: {problem.limits_from}', '']
    if not analysis.causes:
        surely = 'certainly ' * (analysis.verdict == 'undecided')
        lines.append(
            f'No limit that is known is {surely}exceeded, and no command is missing or repeated.'
        )
    shown = analysis.causes[:_MOST_CAUSES]
    for place, cause in enumerate(shown, start=1):
        lines += _cause(problem, place, cause)
    if more := len(analysis.causes) - len(shown):
        lines += [f'{more} more are less probable; --json lists them.', '']
    for is_known, why in _WHY_UNDECIDED.items():
        items = [item.text for item in analysis.undecided if item.is_known == is_known]
        if items:
            lines.append('Undecided, since ' + why.format('; '.join(items)))
    if (far := analysis.deviation) is not None:
        unit = _unit(problem, far.joint_name, 'position')
        lines.append(
            f'Measured positions are up to {number(abs(far.value), 3)} {unit} away from the '
            f'commands, {far.joint_name} at {tenths(far.time)} s.'
        )
    if torques:
        lines.append(f'Measured torques beside those of the model: {torques}')
    return '\n'.join(lines).rstrip()


def _cause(problem: Problem, place: int, cause: StopCause) -> list[str]:
    """Lines on a cause for people: what to do, and a table of what exceeded limits."""
    doubt = '' if cause.is_certain else ', not certain'
    indent = ' ' * 3
    lines = [f'{place}. {cause.kind} at {tenths(cause.time)} s{doubt}']
    lines += textwrap.wrap(
        cause.advice, _WIDTH, initial_indent=indent, subsequent_indent=indent
    )
    lines.append('')
    if cause.excesses:
        rows = [
            (
                name_of(excess.quantity),
                excess.source,
                excess.joint_name,
                tenths(excess.time),
                number(excess.value),
                number(excess.limit),
                number(excess.factor, 3),
                f'[{_unit(problem, excess.joint_name, excess.quantity)}]',
            )
            for excess in cause.excesses
        ]
        head = (
            'exceeded',
            'signal',
            'joint',
            'worst at\n[s]',
            'value',
            'limit',
            'factor',
            'unit',
        )
        lines += [textwrap.indent(table(head, rows), '  '), '']
    return lines


def _unit(problem: Problem, joint: str, quantity: str) -> str:
    """Unit of a quantity of a joint, such as 'N m/s^2'."""
    model = problem.model
    is_linear = model.joint_types[model.joint_names.index(joint)] == 'prismatic'
    return label_of(quantity, is_linear).plain_unit
