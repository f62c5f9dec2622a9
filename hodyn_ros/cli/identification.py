"""`hodyn compare` and `hodyn identify`: what recordings say about a robot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from hodyn_ros import plotting
from hodyn_ros.cli.config import parameter_file
from hodyn_ros.cli.output import PAGES, check_picture, progress, save, written
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.display import Answer
from hodyn_ros.errors import RequestError
from hodyn_ros.identification import outputs
from hodyn_ros.identification.compare import Comparison
from hodyn_ros.identification.compare import compare as compared_with
from hodyn_ros.identification.consistency import solver_library
from hodyn_ros.identification.identify import identify as identified_from
from hodyn_ros.identification.recording import RecordingFile
from hodyn_ros.identification.results import Identification
from hodyn_ros.plotting.report import report_libraries
from hodyn_ros.resources import package_version


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
    if output is not None:
        check_picture(output)
    problem = load_problem(given)
    with progress('Comparing'):
        files = _files(recordings, topics)
        found = compared_with(problem.model, files, actuators=problem.actuators, link=link)
    if output is not None:
        is_page = output.suffix.lower() in PAGES
        save(output, _page(problem, found) if is_page else plotting.plot_comparison(found))
    end = '' if output is None else f'Written: {output}'
    _show(problem, found, {'recordings': recordings}, end, as_json)


def _show(
    problem: Problem,
    found: Comparison | Identification,
    data: dict[str, Any],
    end: str,
    as_json: bool,
) -> None:
    """Show an answer with more data, and with what was written at its end."""
    answer = found.answer
    problem.show(Answer([*answer.parts, end], {**data, **answer.data}), as_json)


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
    files, end = dict[str, Path](), 'Nothing is written; -o robot.urdf writes all of it.'
    options = {
        'estimate': groups,
        'validate': validation,
        'link': link,
        'topics': topics,
    }
    if output is not None:
        files = _write_all(problem, found, description, recordings, options, output)
        end = f'Written: {", ".join(map(str, files.values()))}'
        if 'config' in files:
            end += f'\nThe robot is both: hodyn check {output} MOTION --config {files["config"]}'
    _show(problem, found, {'recordings': recordings, 'files': files}, end, as_json)


def _write_all(
    problem: Problem,
    found: Identification,
    description: str | Path,
    recordings: Sequence[Path],
    options: dict[str, Any],
    output: Path,
) -> dict[str, Path]:
    """Write the robot, its parameters, a report and an archive of the run; return the files."""
    model, actuators = found.model, found.actuators
    files = {'': output}
    save(output, outputs.described(model, description))
    if config := outputs.config(model, actuators, problem.limits, problem.motor_limits):
        files['config'] = output.with_suffix('.yaml')
        origin = f'Identified from {", ".join(map(str, recordings))}.'
        with written(files['config']) as target:
            outputs.write_parameters(target, config, [origin, *found.remarks])
    files['report'] = output.with_suffix('.html')
    validation, topics = options['validate'], options['topics']
    with progress('Comparing'):
        compared = compared_with(
            model,
            _files(validation or recordings, topics),
            actuators=actuators,
            link=options['link'],
        )
    save(files['report'], _page(problem, compared, found))
    files['run'] = output.with_name(f'{output.stem}_run.json')
    run = {
        **_run(problem.given, options, [problem.source.path, *recordings, *validation]),
        'recordings': recordings,
        'files': files,
        'robot': problem.model.name,
        'provenance': problem.model.provenance.lines(),
        **found.answer.data,
    }
    save(files['run'], f'{Answer([], run).json}\n')
    return files


def _run(given: Given, options: dict[str, Any], inputs: Sequence[Path]) -> dict[str, Any]:
    """Options, inputs with their digests, and versions of a run."""
    config = [parameter_file(item) for item in given.config if ':=' not in item]
    libraries = {name: version(name) for name in ('numpy', 'scipy', 'clarabel')}
    own = {'hodyn_ros': package_version(), 'python': python_version()}
    return {
        'options': {**options, **vars(given)},
        'inputs': _digests([*inputs, *config]),
        'versions': {**own, **libraries},
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
