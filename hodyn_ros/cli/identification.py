"""`hodyn compare` and `hodyn identify`: what recordings say about a robot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

from hodyn_ros import plotting
from hodyn_ros.actuators.actuator import RigidDrive
from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.cli.config import parameter_file
from hodyn_ros.cli.output import PAGES, PICTURES, progress, show, show_remarks, written
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.errors import RequestError
from hodyn_ros.identification import outputs
from hodyn_ros.identification.compare import Comparison
from hodyn_ros.identification.compare import compare as compared_with
from hodyn_ros.identification.consistency import solver_library
from hodyn_ros.identification.estimation import IdentifiedParameter
from hodyn_ros.identification.identify import Identification, Residual
from hodyn_ros.identification.identify import identify as identified_from
from hodyn_ros.identification.recording import RecordingFile
from hodyn_ros.names import number, percent
from hodyn_ros.plotting.figures import figure_library
from hodyn_ros.plotting.labels import RESIDUAL_KINDS
from hodyn_ros.plotting.report import report_libraries
from hodyn_ros.resources import package_version

_MOST_SHOWN, _MOST_COLUMNS = 12, 4
_LEAST_SHOWN = 1e-8  # deviation that is written without an exponent
_BODIES = ('bodies', 'payload')


def _files(paths: Sequence[Path], topics: tuple[str, ...]) -> list[RecordingFile]:
    """Recordings with the topics that are given for all of them, of joints and of motors."""
    if len(topics) > 2:
        raise RequestError(
            f'--topic is given {len(topics)} times, expected one of joints and one of motors.'
        )
    return [RecordingFile(path, *topics) for path in paths]


def compare(
    given: Given,
    recordings: tuple[Path, ...],
    topics: tuple[str, ...],
    link: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compare measured with computed torques; see `hodyn compare --help`.

    Parameters
    ----------
    given : Given
    recordings : tuple of pathlib.Path
    topics : tuple of str
        Of joints, and of motors, in bags.
    link : str or None
    output : pathlib.Path or None
    as_json : bool

    Raises
    ------
    RequestError
        If the suffix of the output is no known one.
    """
    suffix = '' if output is None else output.suffix.lower()
    if output is not None and suffix not in (*PICTURES, *PAGES):
        raise RequestError(
            f'{output}: expected a name that ends with .html, .png, .pdf or .svg.'
        )
    if output is not None:  # or the work would be done for nothing
        figure_library() if suffix in PICTURES else report_libraries()
    problem = load_problem(given)
    with progress('Comparing'):
        files = _files(recordings, topics)
        found = compared_with(problem.model, files, actuators=problem.actuators, link=link)
    if output is not None and suffix in PICTURES:
        with written(output) as target:
            plotting.plot_comparison(found).savefig(target, dpi=120)
    elif output is not None:
        _write(output, _page(problem, found))
    if not as_json:
        show_remarks(found.remarks)
    end = '' if output is None else f'Written: {output}'
    data = {'recordings': list(recordings), **_robot(problem)}
    show(_compared(found, data, end), as_json)


def _robot(problem: Problem) -> dict[str, Any]:
    """Which robot it was, for programs."""
    return {'robot': problem.model.name, 'provenance': problem.model.provenance.lines()}


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


def _compared(found: Comparison, data: dict[str, Any], end: str) -> Answer:
    """Tables of residuals and of what would explain them."""
    bands = {f'band {k}': f'of it\n{title}' for k, title in enumerate(found.band_titles)}
    columns = [
        Column('name', 'joint'),
        Column('measured', digits=3),
        Column('residual', 'difference', digits=3),
        *(Column(key, title, digits=2) for key, title in bands.items()),
        Column('scale', 'scale\nfactor', digits=3),
        Column('correlation', digits=3),
    ]
    each = zip(
        found.joint_names, found.measured, found.residual, found.scale, found.correlation
    )
    keys = 'name', 'measured', 'residual', 'scale', 'correlation'
    joints = [dict(zip(keys, row)) for row in each]
    rows = [joint | dict(zip(bands, row)) for joint, row in zip(joints, found.bands.T)]
    common = os.path.commonprefix(found.joint_names).rpartition('_')[:2]
    shares = [
        Column(name, name.removeprefix(''.join(common)), form=percent)
        for name in found.joint_names
    ]
    explained = [
        {
            'text': item.text,
            'share': item.share,
            **dict(zip(found.joint_names, item.shares)),
        }
        for item in found.explanations
    ]
    parts: list[Table | str] = [
        Table(f'Torques, RMS [{" or ".join(dict.fromkeys(found.units))}]', columns, rows),
        Table(
            'Part of the squared difference that would be gone with each of these alone',
            [Column('text', ''), Column('share', 'all', form=percent), *shares],
            explained,
        ),
        found.summary,
        end,
    ]
    data |= {'joints': joints, 'explanations': found.explanations, 'remarks': found.remarks}
    return Answer(parts, data)


def identify(
    given: Given,
    recordings: tuple[Path, ...],
    topics: tuple[str, ...],
    link: str | None,
    groups: tuple[str, ...],
    validation: tuple[Path, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """Identify parameters and write them; see `hodyn identify --help`.

    Parameters
    ----------
    given : Given
    recordings : tuple of pathlib.Path
    topics : tuple of str
        Of joints, and of motors, in bags.
    link : str or None
    groups : tuple of str
        Groups of parameters; empty: those that fit.
    validation : tuple of pathlib.Path
        Recordings to compare with; empty: parts of `recordings`.
    output : pathlib.Path or None
        Robot description; the other files stand beside it.
    as_json : bool

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
    with progress('Identifying'):
        found = identified_from(
            problem.model,
            _files(recordings, topics),
            groups or None,
            actuators=problem.actuators,
            link=link,
            validation=_files(validation, topics) or None,
            fixed=outputs.fixed_parameters(problem.model, description),
        )
    files: dict[str, Path] = {}
    data = {
        'recordings': list(recordings),
        'files': files,
        **_robot(problem),
        'parameters': found.parameters,
        'payload': found.payload,
        'residuals': found.residuals,
        'validation': found.validation,
        'chi_square': found.doubt.chi_square,
        'explanations': found.doubt.explanations,
        'remarks': found.remarks,
    }
    end = 'Nothing is written; -o robot.urdf writes all of it.'
    if output is not None:
        with progress('Comparing'):
            compared = compared_with(
                found.model,
                _files(validation or recordings, topics),
                actuators=found.actuators,
                link=link,
            )
        files[''] = output
        _write(output, outputs.described(found.model, description))
        if config := _config(problem, found):
            files['config'] = output.with_suffix('.yaml')
            comments = [
                f'Identified from {", ".join(map(str, recordings))}.',
                *found.remarks,
            ]
            with written(files['config']) as target:
                outputs.write_parameters(target, config, comments)
        files['report'] = output.with_suffix('.html')
        _write(files['report'], _page(problem, compared, found))
        files['run'] = output.with_name(f'{output.stem}_run.json')
        _write(
            files['run'], f'{_archive(problem, data, validation, groups, link, topics)}\n'
        )
        end = f'Written: {", ".join(map(str, files.values()))}'
        if config:
            end += f'\nThe robot is both: hodyn check {output} MOTION --config {files["config"]}'
    if not as_json:
        show_remarks(found.remarks)
    show(Answer([*_identified(found), end], data), as_json)


def _write(path: Path, text: str) -> None:
    """Write a text into a file: whole, or not at all."""
    with written(path) as target:
        target.write_text(text, encoding='utf-8', errors='replace')


def _config(problem: Problem, found: Identification) -> dict[str, dict[str, Any]]:
    """Limits, friction and actuators, which a robot description has no place for."""
    model, drives = found.model, dict(found.actuators.by_joint if found.actuators else {})
    for name in model.joint_names:
        inertia = float(model.armature[model.body_names.index(name)])
        if inertia > 0.0 and name not in drives:
            drives[name] = RigidDrive(inertia)
    actuators = Actuators(model.with_armature(dict.fromkeys(drives, 0.0)), drives)
    tables: dict[str, dict[str, Any]] = {
        'limits': outputs.limit_config(problem.model, problem.limits),
        'friction': outputs.friction_config(model),
        'actuators': outputs.actuator_config(actuators, problem.motor_limits),
    }
    return {family: joints for family, joints in tables.items() if joints}


def _archive(
    problem: Problem,
    data: dict[str, Any],
    validation: Sequence[Path],
    groups: Sequence[str],
    link: str | None,
    topics: Sequence[str],
) -> str:
    """JSON of a run: options, inputs with their digests, versions and results."""
    given = problem.given
    options = {'estimate': groups, 'validate': validation, 'link': link, 'topics': topics}
    config = [parameter_file(item) for item in given.config if ':=' not in item]
    others = {name: version(name) for name in ('numpy', 'scipy', 'clarabel')}
    run = {
        'options': {**options, **vars(given)},
        'inputs': _digests(
            [problem.source.path, *data['recordings'], *validation, *config]
        ),
        'versions': {
            'hodyn_ros': package_version(),
            'python': python_version(),
            **others,
        },
        **data,
    }
    return Answer([], run).json


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


def _identified(found: Identification) -> Iterator[Table | str]:
    """Parameters of joints, those of bodies that matter, residuals and the payload."""
    joints, bodies, others = [
        [
            item
            for item in found.parameters
            if (item.group in _BODIES, ' ' in item.name) == kind
        ]
        for kind in ((False, True), (True, True), (False, False))
    ]
    yield (
        f'{len(found.parameters)} parameters, with standard deviations; + ... stands for a '
        'combination with others'
    )
    yield from _joint_tables(joints)
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
        rows = [item._asdict() | {'value': _estimate(item)} for item in largest]
        yield Table(f'Bodies: {which}with their part of the torque', columns, rows)
    yield from (f'{item.name} {_estimate(item)} {item.unit}' for item in others)
    unit = 'N m or N' if 'prismatic' in found.model.joint_types else 'N m'
    for title, residuals in (
        ('', found.residuals),
        ('Not used to identify: ', found.validation),
    ):
        for item in residuals:
            what = f'{Path(item.name).name}, {RESIDUAL_KINDS[item.kind]}, RMS [{unit}]'
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
        records.setdefault(joint, {'joint': joint})[kind] = _estimate(item)
    kinds = [Column(kind, kind, unit) for kind, unit in units.items()]
    for first in range(0, len(kinds), _MOST_COLUMNS):
        columns = Column('joint'), *kinds[first : first + _MOST_COLUMNS]
        yield Table('', columns, [*records.values()])


def _estimate(item: IdentifiedParameter) -> str:
    """A value with its deviation, to the digits that this leaves."""
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
