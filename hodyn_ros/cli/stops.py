"""`hodyn check --recorded`: why a robot stopped, from what it was sent and what was measured."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click
import numpy as np

from hodyn_ros import plotting
from hodyn_ros.analysis.stops import Recorded, StopAnalysis, StopCause, find_stop_causes
from hodyn_ros.cli.output import PICTURES, echo_json, name_of, number, show_remarks, table, written
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.errors import IdentificationError, RequestError
from hodyn_ros.files.derivatives import in_model_order
from hodyn_ros.files.files import read_motion
from hodyn_ros.files.samples import Samples, times_from
from hodyn_ros.plotting.labels import label_of

_MOST_CAUSES = 5
_WIDTH = 92


def stopped(
    given: Given,
    recorded: str | None,
    measured: Path | None,
    measured_topic: str | None,
    output: Path | None,
    as_json: bool,
) -> bool:
    """Say why a robot stopped, and return whether no limit was exceeded."""
    beside = measured is not None or measured_topic is not None
    _refuse(given, recorded, beside, output)
    problem = load_problem(given)
    first = _samples(problem, given.motion, given.topic)
    sources = [first]
    if beside:
        sources.append(_samples(problem, measured or given.motion, measured_topic))
    of_measured = sources[-1] if beside or recorded == 'measured' else None
    commanded = None if recorded == 'measured' else _recorded(first, first.start)
    analysis = find_stop_causes(
        problem.model,
        problem.limits,
        commanded,
        None if of_measured is None else _recorded(of_measured, first.start),
    )
    if output is not None and analysis.causes:
        with written(output) as target:
            plotting.plot_stop(analysis, problem.model).savefig(target, dpi=120)
    torques = '' if of_measured is None else _torques(problem, of_measured)
    if as_json:
        echo_json(_data(problem, sources, analysis, torques))
        return analysis.is_kept
    show_remarks(analysis.remarks)
    click.echo(_text(problem, sources, analysis, torques))
    if output is not None:
        made = f'Written: {output}' if analysis.causes else f'Not written: {output}'
        click.echo(f'\n{made}')
    return analysis.is_kept


def _refuse(given: Given, recorded: str | None, beside: bool, output: Path | None) -> None:
    """Refuse options that contradict each other."""
    if beside and recorded == 'measured':
        raise RequestError(
            '--measured is what was measured beside the commands in MOTION, but --recorded '
            'measured says that MOTION is measured; leave one of them out.'
        )
    if output is not None and output.suffix.lower() not in PICTURES:
        raise RequestError(f'{output}: expected a name that ends with {" or ".join(PICTURES)}.')
    for name, value in (('rate', given.rate), ('actuators', given.actuators)):
        if value is not None:
            raise RequestError(f'--{name} is not for a recording (--recorded); leave it out.')


def _samples(problem: Problem, path: Path, topic: str | None) -> Samples:
    samples = read_motion(path, topic=topic, joint_names=problem.model.joint_names)
    if samples.is_waypoints:
        raise RequestError(
            f'{samples.name} is a trajectory: what the robot was sent between its waypoints is '
            'not in it. Leave --recorded out: its motion is checked (--interpolation jtc).'
        )
    return in_model_order(problem.model, samples)[0]


def _recorded(samples: Samples, start: int) -> Recorded:
    """Arrays of samples, with times from a common start."""
    motion = samples.motion
    velocity = motion[:, 1] if motion.shape[1] > 1 else None
    return Recorded(times_from(samples, start), motion[:, 0], velocity, samples.effort)


def _torques(problem: Problem, measured: Samples) -> str:
    """What would explain that measured torques are not those of the model."""
    if measured.effort is None or not np.isfinite(measured.effort).any():
        return ''
    from hodyn_ros.identification.compare import compare  # with all of control

    try:
        found = compare(problem.model, measured)
    except IdentificationError:  # too short
        return ''
    is_told = any(np.isfinite(item.shares).any() for item in found.explanations)
    return found.summary if is_told else ''  # or too slow


def _data(
    problem: Problem, sources: list[Samples], analysis: StopAnalysis, torques: str
) -> dict[str, Any]:
    """Everything for programs."""
    return {
        'robot': problem.model.name,
        'recordings': [samples.name for samples in sources],
        'samples': [len(samples) for samples in sources],
        'period': analysis.period,
        'limits_from': problem.limits_from,
        'is_kept': analysis.is_kept,
        'causes': [
            {
                'kind': cause.kind,
                'time': cause.time,
                'end': cause.end,
                'is_certain': cause.is_certain,
                'advice': cause.advice,
                'excesses': [
                    {
                        **excess._asdict(),
                        'unit': _unit(problem, excess.joint_name, excess.quantity),
                    }
                    for excess in cause.excesses
                ],
            }
            for cause in analysis.causes
        ],
        'deviation': analysis.deviation,
        'torques': torques,
        'remarks': list(analysis.remarks),
    }


def _text(problem: Problem, sources: list[Samples], analysis: StopAnalysis, torques: str) -> str:
    """Everything for people."""
    lines = []
    for samples in sources:
        first, last = samples.times[0], samples.times[-1]
        step = float(np.median(np.diff(samples.times)))
        lines.append(
            f'{samples.name}: {len(samples)} samples from {_moment(first)} s to '
            f'{_moment(last)} s, {number(1e3 * step)} ms apart'
        )
    lines += [f'limits: {problem.limits_from}', '']
    if not analysis.causes:
        lines.append('No limit that is known is exceeded, and no command is missing or repeated.')
    shown = analysis.causes[:_MOST_CAUSES]
    for place, cause in enumerate(shown, start=1):
        lines += _cause(problem, place, cause)
    if more := len(analysis.causes) - len(shown):
        lines += [f'{more} more are less probable; --json lists them.', '']
    if (far := analysis.deviation) is not None:
        unit = _unit(problem, far.joint_name, 'position')
        lines.append(
            f'Measured positions are up to {number(abs(far.value), 3)} {unit} away from the '
            f'commands, {far.joint_name} at {_moment(far.time)} s.'
        )
    if torques:
        lines.append(f'Measured torques beside those of the model: {torques}')
    return '\n'.join(lines).rstrip()


def _cause(problem: Problem, place: int, cause: StopCause) -> list[str]:
    doubt = '' if cause.is_certain else ', not certain'
    indent = ' ' * 3
    lines = [f'{place}. {cause.kind} at {_moment(cause.time)} s{doubt}']
    lines += textwrap.wrap(cause.advice, _WIDTH, initial_indent=indent, subsequent_indent=indent)
    lines.append('')
    if cause.excesses:
        rows = [
            (
                name_of(excess.quantity),
                excess.source,
                excess.joint_name,
                _moment(excess.time),
                number(excess.value),
                number(excess.limit),
                number(excess.factor, 3),
                f'[{_unit(problem, excess.joint_name, excess.quantity)}]',
            )
            for excess in cause.excesses
        ]
        head = ('exceeded', 'signal', 'joint', 'worst at\n[s]', 'value', 'limit', 'factor', 'unit')
        lines += [textwrap.indent(table(head, rows), '  '), '']
    return lines


def _unit(problem: Problem, joint: str, quantity: str) -> str:
    model = problem.model
    is_linear = model.joint_types[model.joint_names.index(joint)] == 'prismatic'
    return label_of(quantity, is_linear).plain_unit


def _moment(time: float) -> str:
    """Write a time [s] with tenths of milliseconds."""
    return f'{time:.4f}'.rstrip('0').rstrip('.')
