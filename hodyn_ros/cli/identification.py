"""`hodyn compare` and `hodyn identify`: what recordings say about a robot."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import click
import numpy as np

from hodyn_ros import plotting
from hodyn_ros.actuators.actuator import RigidDrive
from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.cli.output import (
    PICTURES,
    echo_json,
    number,
    progress,
    show_remarks,
    table,
    written,
)
from hodyn_ros.cli.problem import URDF_ALONE, Given, Problem, load_problem, parameter_file
from hodyn_ros.display import plain
from hodyn_ros.errors import RequestError
from hodyn_ros.identification import outputs
from hodyn_ros.identification.compare import Comparison
from hodyn_ros.identification.compare import compare as compared_with
from hodyn_ros.identification.consistency import solver_library
from hodyn_ros.identification.estimation import IdentifiedParameter
from hodyn_ros.identification.identify import Identification, Residual
from hodyn_ros.identification.identify import identify as identified_from
from hodyn_ros.identification.recording import RecordingFile
from hodyn_ros.plotting.figures import figure_library
from hodyn_ros.plotting.labels import RESIDUAL_KINDS
from hodyn_ros.plotting.report import report_libraries
from hodyn_ros.resources import package_version

_MOST_SHOWN, _MOST_COLUMNS = 12, 4
_LEAST_SHOWN = 1e-8  # deviation that is written without an exponent
_BODIES = ('bodies', 'payload')
_PAGES = ('.html', '.htm')
_TABLES = ('limits', 'friction', 'actuators')  # and the options that take them


def _files(
    given: Given, paths: tuple[Path, ...], motor_topic: str | None
) -> list[RecordingFile]:
    """Recordings with the topics that are given for all of them."""
    return [RecordingFile(path, given.topic, motor_topic) for path in paths]


def compare(
    given: Given,
    recordings: tuple[Path, ...],
    motor_topic: str | None,
    link: str | None,
    bandwidth: float | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compare measured with computed torques.

    Parameters
    ----------
    given : Given
        Robot, and the topic of bags.
    recordings : tuple of pathlib.Path
    motor_topic : str or None
        Topic of the motors in bags.
    link : str or None
        Where a payload may be.
    bandwidth : float or None
        Pass band of the filter [Hz].
    output : pathlib.Path or None
        Report (.html) or picture.
    as_json : bool
        Whether JSON is printed instead of tables.

    Raises
    ------
    RequestError
        If the suffix of the output is no known one.
    """
    suffix = '' if output is None else output.suffix.lower()
    if output is not None and suffix not in (*PICTURES, *_PAGES):
        raise RequestError(
            f'{output}: expected a name that ends with .html, .png, .pdf or .svg.'
        )
    if output is not None:  # or the work would be done for nothing
        figure_library() if suffix in PICTURES else report_libraries()
    problem = load_problem(given)
    with progress('Comparing'):
        found = compared_with(
            problem.model,
            _files(given, recordings, motor_topic),
            actuators=problem.actuators,
            link=link,
            bandwidth=bandwidth,
        )
    if output is not None:
        if suffix in PICTURES:
            with written(output) as target:
                plotting.plot_comparison(found).savefig(target, dpi=120)
        else:
            _write(output, _page(problem, found))
    if as_json:
        echo_json(_data(problem, found, recordings))
        return
    show_remarks(found.remarks)
    click.echo(_compared(found))
    if output is not None:
        click.echo(f'\nWritten: {output}')


def _data(
    problem: Problem, found: Comparison, recordings: Sequence[Path]
) -> dict[str, Any]:
    """A comparison for programs."""
    columns = {
        'name': found.joint_names,
        'measured': found.measured,
        'residual': found.residual,
        'scale': found.scale,
        'correlation': found.correlation,
    }
    return {
        'robot': problem.model.name,
        'provenance': problem.model.provenance.lines(),
        'recordings': list(recordings),
        'joints': [dict(zip(columns, row)) for row in zip(*columns.values())],
        'explanations': found.explanations,
        'remarks': found.remarks,
    }


def _page(
    problem: Problem, found: Comparison, identified: Identification | None = None
) -> str:
    """Report on a comparison, with what was identified if there is something."""
    model = problem.model if identified is None else identified.model
    return plotting.html_report(
        model,
        found.results(model),
        problem.limits,
        comparison=found,
        identification=identified,
    )


def _compared(found: Comparison) -> str:
    """Tables of residuals and of what would explain them."""
    bands = (f'of it\n{band}' for band in found.band_titles)
    head = ['joint', 'measured', 'difference', *bands, 'scale\nfactor', 'correlation']
    numbers = np.stack(
        [found.measured, found.residual, *found.bands, found.scale, found.correlation]
    )
    rows = [
        (name, *(number(value, 2 if 2 <= k < 6 else 3) for k, value in enumerate(column)))
        for name, column in zip(found.joint_names, numbers.T)
    ]
    lines = [f'Torques, RMS [{_units(found.units)}]\n', table(head, rows), '']
    lines.append(
        'Part of the squared difference that would be gone with each of these alone\n'
    )
    rows = [
        (item.text, *(_percent(share) for share in (item.share, *item.shares)))
        for item in found.explanations
    ]
    common = os.path.commonprefix(found.joint_names).rpartition('_')[:2]
    short = (name.removeprefix(''.join(common)) for name in found.joint_names)
    lines += [table(['', 'all', *short], rows), '', found.summary]
    return '\n'.join(lines)


def _units(units: Iterable[str]) -> str:
    """Units, each once."""
    return ' or '.join(sorted(set(units), reverse=True))


def _percent(share: float) -> str:
    """Share as a whole percentage; - if it is not known."""
    return f'{round(100.0 * share)} %' if np.isfinite(share) else '-'


def identify(
    given: Given,
    recordings: tuple[Path, ...],
    motor_topic: str | None,
    output: Path | None,
    groups: tuple[str, ...],
    link: str | None,
    validation: tuple[Path, ...],
    smoothing: float,
    bandwidth: float | None,
    as_json: bool,
) -> None:
    """Identify parameters and write them as a robot description and parameter files.

    Parameters
    ----------
    given : Given
        Robot, and the topic of bags.
    recordings : tuple of pathlib.Path
    motor_topic : str or None
        Topic of the motors in bags.
    output : pathlib.Path or None
        Robot description (.urdf); the other files stand beside it. None: nothing is written.
    groups : tuple of str
        Groups of parameters; empty: those that fit.
    link : str or None
        Link of a payload.
    validation : tuple of pathlib.Path
        Recordings to compare with; empty: parts of `recordings`.
    smoothing : float
        Of friction in the result [rad/s] or [m/s].
    bandwidth : float or None
        Pass band of the filter [Hz].
    as_json : bool
        Whether JSON is printed instead of tables.

    Raises
    ------
    RequestError
        If the suffix of the output is no known one.
    """
    if output is not None:
        if output.suffix.lower() not in ('.urdf', '.xml'):
            raise RequestError(f'{output}: expected a name that ends with .urdf.')
        report_libraries()  # or the work would be done for nothing
    solver_library()
    problem = load_problem(given)
    description = problem.source.description(dict(given.xacro_arguments))
    how: dict[str, Any] = {'link': link, 'bandwidth': bandwidth}
    with progress('Identifying'):
        found = identified_from(
            problem.model,
            _files(given, recordings, motor_topic),
            groups or None,
            actuators=problem.actuators,
            smoothing=smoothing,
            validation=_files(given, validation, motor_topic) or None,
            fixed=outputs.fixed_parameters(problem.model, description),
            **how,
        )
    files: dict[str, Path] = {}
    if output is not None:
        with progress('Comparing'):
            others = _files(given, validation or recordings, motor_topic)
            compared = compared_with(found.model, others, actuators=found.actuators, **how)
        files = {
            '': output,
            **_parameter_files(problem, found, recordings, output),
            'report': output.with_name(f'{output.stem}.html'),
            'run': output.with_name(f'{output.stem}_run.json'),
        }
        _write(output, outputs.described(found.model, description))
        _write(files['report'], _page(problem, compared, found))
    told = _told(problem, found, recordings, files)
    if output is not None:
        options = {'estimate': groups, 'validate': validation, 'motor_topic': motor_topic}
        parameters = (given.friction, given.actuators, given.limits)
        known = [
            parameter_file(item) for item in parameters if item not in (None, URDF_ALONE)
        ]
        run = {
            'options': {**options, 'smoothing': smoothing, **how, **vars(given)},
            'inputs': _digests([problem.source.path, *recordings, *validation, *known]),
            'versions': _versions(),
            **told,
        }
        text = json.dumps(plain(run), indent=1, ensure_ascii=False, allow_nan=False)
        _write(files['run'], f'{text}\n')
    if as_json:
        echo_json(told)
    else:
        show_remarks(found.remarks)
        click.echo(_text(found, files))


def _write(path: Path, text: str) -> None:
    """Write a text into a file: whole, or not at all."""
    with written(path) as target:
        target.write_text(text, encoding='utf-8', errors='replace')


def _parameter_files(
    problem: Problem, found: Identification, recordings: Sequence[Path], output: Path
) -> dict[str, Path]:
    """Files of limits, friction and actuators, which are written, by what they hold."""
    comments = [f'Identified from {", ".join(map(str, recordings))}.', *found.remarks]
    contents: Sequence[dict[str, Any]] = (
        outputs.limit_config(problem.model, problem.limits),
        outputs.friction_config(found.model),
        outputs.actuator_config(_drives(found), problem.motor_limits),
    )
    files = {}
    for name, content in zip(_TABLES, contents):
        if content:
            files[name] = output.with_name(f'{output.stem}_{name}.yaml')
            with written(files[name]) as target:
                outputs.write_parameters(target, {name: content}, comments)
    return files


def _told(
    problem: Problem,
    found: Identification,
    recordings: Sequence[Path],
    files: Mapping[str, Path],
) -> dict[str, Any]:
    """Everything for programs."""
    return {
        'robot': problem.model.name,
        'provenance': problem.model.provenance.lines(),
        'recordings': list(recordings),
        'files': files,
        'parameters': found.parameters,
        'payload': found.payload,
        'residuals': found.residuals,
        'validation': found.validation,
        'chi_square': found.doubt.chi_square,
        'explanations': found.doubt.explanations,
        'remarks': found.remarks,
    }


def _digests(inputs: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files, and of those in folders, as bags are."""
    every = [file for path in inputs for file in (sorted(path.rglob('*')) or [path])]
    return {str(file): _digest(file) for file in every if file.is_file()}


def _digest(file: Path) -> str:
    """SHA-256 of a file, which may be larger than memory."""
    found = sha256()
    with file.open('rb') as content:
        while block := content.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _versions() -> dict[str, str]:
    """What computed the result."""
    others = {name: version(name) for name in ('numpy', 'scipy', 'clarabel')}
    return {'hodyn_ros': package_version(), 'python': python_version(), **others}


def _drives(found: Identification) -> Actuators:
    """Actuators, those of the armature included, which a robot description has no place for."""
    model, drives = found.model, dict(found.actuators.by_joint if found.actuators else {})
    for name in model.joint_names:
        inertia = float(model.armature[model.body_names.index(name)])
        if inertia > 0.0 and name not in drives:
            drives[name] = RigidDrive(inertia)
    return Actuators(model.with_armature(dict.fromkeys(drives, 0.0)), drives)


def _text(found: Identification, files: Mapping[str, Path]) -> str:
    """What was found, where it is written, and which options take it."""
    if not files:
        return (
            f'{_identified(found)}\n\nNothing is written; -o robot.urdf writes all of it.'
        )
    lines = [_identified(found), '', 'Written: ' + ', '.join(map(str, files.values()))]
    words = ''.join(f' --{name} {files[name]}' for name in _TABLES if name in files)
    if words:
        lines.append(f'The robot is all of these: hodyn check {files[""]} MOTION{words}')
    return '\n'.join(lines)


def _identified(found: Identification) -> str:
    """Tables of the parameters of joints, of those of bodies that matter, and of residuals."""
    joints, bodies, others = [
        [
            item
            for item in found.parameters
            if (item.group in _BODIES, ' ' in item.name) == kind
        ]
        for kind in ((False, True), (True, True), (False, False))
    ]
    lines = [
        f'{len(found.parameters)} parameters, with standard deviations; + ... stands for a '
        'combination with others\n',
        *_joint_tables(joints),
    ]
    if bodies:
        shown = sorted(bodies, key=lambda item: -item.share)[:_MOST_SHOWN]
        rows = [
            (item.name, _estimate(item), item.unit, _percent(item.share)) for item in shown
        ]
        which = (
            f'the {_MOST_SHOWN} largest of {len(bodies)}, '
            if len(bodies) > len(shown)
            else ''
        )
        lines += [f'Bodies: {which}with their part of the torque\n']
        lines += [table(['parameter', 'value', 'unit', 'part'], rows), '']
    lines += [f'{item.name} {_estimate(item)} {item.unit}\n' for item in others]
    units = 'N m or N' if 'prismatic' in found.model.joint_types else 'N m'
    for title, residuals in (
        ('', found.residuals),
        ('Not used to identify: ', found.validation),
    ):
        for item in residuals:
            name = f'{title}{Path(item.name).name}'
            lines += [f'{name}, {RESIDUAL_KINDS[item.kind]}, RMS [{units}]\n']
            lines += [_left(item, found.model.joint_names), '']
    if found.payload is not None:
        mass = found.payload.mass
        com = ', '.join(f'{round(x, 4) + 0.0:.4f}' for x in found.payload.com)
        lines.append(
            f'{found.payload.link} carries {number(mass)} kg, centre at ({com}) m.'
        )
    return '\n'.join(lines).rstrip()


def _joint_tables(joints: Sequence[IdentifiedParameter]) -> Iterator[str]:
    """Parameters of joints, some kinds beside each other."""
    names = dict.fromkeys(item.name.rpartition(' ')[0] for item in joints)
    kinds = {item.name.rpartition(' ')[2]: item.unit for item in joints}
    by_name = {item.name: item for item in joints}
    for first in range(0, len(kinds), _MOST_COLUMNS):
        some = list(kinds)[first : first + _MOST_COLUMNS]
        rows = [
            (name, *(_estimate(by_name.get(f'{name} {kind}')) for kind in some))
            for name in names
        ]
        yield from (
            table(['joint', *(f'{kind}\n[{kinds[kind]}]' for kind in some)], rows),
            '',
        )


def _estimate(item: IdentifiedParameter | None) -> str:
    """A value with its deviation, to the digits that this leaves."""
    if item is None:
        return '-'
    combined = '' if item.is_alone else ' + ...'
    if np.isinf(item.std):
        return f'{number(item.value)} +- infinite{combined}'
    if not _LEAST_SHOWN < item.std < np.inf:
        return f'{number(item.value)} +- {number(item.std, 2)}{combined}'
    digits = max(0, 1 - int(np.floor(np.log10(item.std))))
    return f'{item.value:.{digits}f} +- {item.std:.{digits}f}{combined}'


def _left(item: Residual, names: tuple[str, ...]) -> str:
    """Table of what the given and the identified model leave of a recording."""
    known = [j for j, size in enumerate(item.size) if np.isfinite(size)]
    columns = item.size, item.before, item.after, item.noise, *item.chi_square
    rows = [(names[j], *(number(values[j], 3) for values in columns)) for j in known]
    head = [
        'joint',
        'measured',
        'left by the\ngiven model',
        'left by the\nidentified',
        'noise',
    ]
    head += ['chi-square\nbefore', 'chi-square\nafter']
    return table(head, rows)
