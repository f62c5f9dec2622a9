"""`hodyn compare` and `hodyn identify`: what recordings say about a robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from hodyn_ros import identification, plotting
from hodyn_ros.cli.output import echo_json, number, progress, show_remarks, table, written
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.errors import RequestError
from hodyn_ros.identification import Comparison, Identification, RecordingFile, Residual

_MOST_SHOWN = 12
_PICTURES = ('.png', '.pdf', '.svg')
_PAGES = ('.html', '.htm')


def _files(given: Given, paths: tuple[Path, ...], motor_topic: str | None) -> list[RecordingFile]:
    return [RecordingFile(path, given.topic, motor_topic) for path in paths]


def compare(
    given: Given, recordings: tuple[Path, ...], motor_topic: str | None, link: str | None,
    bandwidth: float | None, output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare measured with computed torques."""
    if output is not None and output.suffix.lower() not in (*_PICTURES, *_PAGES):
        raise RequestError(f'{output}: expected a name that ends with .html, .png, .pdf or .svg.')
    problem = load_problem(given)
    with progress('Comparing'):
        found = identification.compare(
            problem.model, _files(given, recordings, motor_topic), actuators=problem.actuators,
            payload_link=link, bandwidth=bandwidth,
        )  # fmt: skip
    if output is not None:
        with written(output) as target:
            if output.suffix.lower() in _PICTURES:
                plotting.plot_comparison(found).savefig(target, dpi=120)
            else:
                target.write_text(_page(problem, found), encoding='utf-8')
    if as_json:
        echo_json({
            'robot': problem.model.name, 'recordings': list(recordings),
            'joints': [
                dict(zip(('name', 'measured', 'residual', 'scale', 'correlation'), row))
                for row in zip(found.joint_names, found.measured, found.residual, found.scale,
                               found.correlation)
            ],
            'explanations': found.explanations, 'remarks': found.remarks,
        })  # fmt: skip
        return
    show_remarks(found.remarks)
    click.echo(_compared(found))
    if output is not None:
        click.echo(f'\nWritten: {output}')


def _page(problem: Problem, found: Comparison, identified: Identification | None = None) -> str:
    return plotting.html_report(
        found.results(problem.model), problem.model, problem.limits, comparison=found,
        identification=identified, robot_file=f'{problem.source.path} ({problem.source.origin})',
    )  # fmt: skip


def _compared(found: Comparison) -> str:
    """Tables of residuals and of what would explain them."""
    bands = [f'{low:g} to {high:g} Hz' if np.isfinite(high) else f'above {low:g} Hz'
             for low, high in zip(identification.BANDS, identification.BANDS[1:])]  # fmt: skip
    head = ['joint', 'measured\nRMS', 'difference\nRMS', *(f'of it\n{band}' for band in bands)]
    rows = [
        (name, number(size, 3), number(rest, 3), *(number(value, 2) for value in column))
        for name, size, rest, column in zip(
            found.joint_names, found.measured, found.residual, found.bands.T
        )
    ]
    lines = ['Measured and computed torques [N m, N]\n', table(head, rows), '']
    lines.append('Part of the squared difference that would be gone with\n')
    rows = [
        (item.text, *(_percent(share) for share in (item.share, *item.shares)))
        for item in found.explanations
    ]
    short = (name.rpartition('_')[2] for name in found.joint_names)
    lines.append(table(['', 'all', *short], rows))
    return '\n'.join(lines)


def _percent(share: float) -> str:
    return f'{100.0 * share:.0f} %' if np.isfinite(share) else '-'


def identify(
    given: Given, recordings: tuple[Path, ...], motor_topic: str | None, output: Path,
    groups: tuple[str, ...], link: str | None, validation: tuple[Path, ...], smoothing: float,
    bandwidth: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Identify parameters and write them as a robot description and parameter files."""
    if output.suffix.lower() not in ('.urdf', '.xml'):
        raise RequestError(f'{output}: expected a name that ends with .urdf.')
    problem = load_problem(given)
    model = problem.model
    description = problem.source.description(dict(given.xacro_arguments))
    with progress('Identifying'):
        found = identification.identify(
            model, _files(given, recordings, motor_topic), groups or None,
            actuators=problem.actuators, payload_link=link, smoothing=smoothing,
            validation=_files(given, validation, motor_topic), bandwidth=bandwidth,
            fixed=identification.fixed_parameters(description, model),
        )  # fmt: skip
        compared = identification.compare(
            found.model, _files(given, validation or recordings, motor_topic),
            actuators=found.actuators, payload_link=link, bandwidth=bandwidth,
        )  # fmt: skip
    files = {'': output}
    with written(output) as target:
        target.write_text(identification.described(description, found.model), encoding='utf-8')
    comments = [f'Identified from {", ".join(map(str, recordings))}.', *found.remarks]
    tables: dict[str, Any] = {'friction': identification.friction_config(found.model)}
    if found.actuators is not None:
        tables['actuators'] = identification.actuator_config(found.actuators)
    for name, content in tables.items():
        if content:
            files[name] = output.with_name(f'{output.stem}_{name}.yaml')
            with written(files[name]) as target:
                identification.write_parameters(target, {name: content}, comments)
    files['report'] = output.with_name(f'{output.stem}.html')
    with written(files['report']) as target:
        target.write_text(_page(problem, compared, found), encoding='utf-8')
    if as_json:
        echo_json({
            'robot': model.name, 'recordings': list(recordings), 'files': files,
            'parameters': found.parameters, 'payload': found.payload,
            'residuals': found.residuals, 'validation': found.validation,
            'remarks': found.remarks,
        })  # fmt: skip
        return
    show_remarks(found.remarks)
    click.echo(_identified(found))
    click.echo('\nWritten: ' + ', '.join(map(str, files.values())))


def _identified(found: Identification) -> str:
    """Tables of the parameters that matter, and of residuals."""
    shown = sorted(found.parameters, key=lambda item: -item.share)[:_MOST_SHOWN]
    own = [item for item in found.parameters if item.group not in ('bodies', 'payload')]
    rows = [
        (item.name + ' + ...' * (not item.is_alone), number(item.value), number(item.std, 2),
         item.unit, f'{100.0 * item.share:.0f} %')
        for item in (*shown, *(item for item in own if item not in shown))
    ]  # fmt: skip
    lines = [
        f'{len(found.parameters)} parameters, and the part of the torque that they make; the '
        f'{_MOST_SHOWN} largest, then all of the joints\n',
        table(['parameter', 'value', 'deviation', 'unit', 'part'], rows), '',
    ]  # fmt: skip
    for title, residuals in (
        ('Recordings', found.residuals), ('Not used to identify', found.validation)
    ):  # fmt: skip
        for item in residuals:
            lines += [f'{title}: {item.name}, {_KINDS[item.kind]} [N m, N], RMS\n']
            lines += [_left(item, found.model.joint_names), '']
    if found.payload is not None:
        mass, com = found.payload.mass, ', '.join(number(x, 3) for x in found.payload.com)
        lines.append(f'{found.payload.link} carries {number(mass)} kg with its centre at {com} m.')
    return '\n'.join(lines).rstrip()


_KINDS = {
    'effort': 'torques of the joints', 'motor': 'torques of the motors',
    'sensor': 'torque sensors', 'spring': 'torques of springs against those of the links',
}  # fmt: skip


def _left(item: Residual, names: tuple[str, ...]) -> str:
    known = [j for j, size in enumerate(item.size) if np.isfinite(size)]
    rows = [
        (names[j], *(number(values[j], 3) for values in (item.size, item.before, item.after)))
        for j in known
    ]
    head = ['joint', 'measured', 'left by the\ngiven model', 'left by the\nidentified']
    return table(head, rows)
