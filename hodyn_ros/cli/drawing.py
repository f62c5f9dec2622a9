"""Pictures and reports of a motion as files."""

from __future__ import annotations

from pathlib import Path

from hodyn_ros.cli.motions import (
    GivenMotion,
    compute_results,
    load_problem,
    show_remarks,
    violations_of,
)
from hodyn_ros.cli.outputs import check_writable, write_whole
from hodyn_ros.cli.robots import Choice
from hodyn_ros.errors import RequestError
from hodyn_ros.plotting import (
    plot_efforts,
    plot_energy,
    plot_motion,
    plot_motors,
    plot_portraits,
)
from hodyn_ros.plotting.checks import busiest_joints
from hodyn_ros.plotting.report import html_report
from hodyn_ros.plotting.source import checked_source

SUFFIXES = ('.png', '.pdf', '.svg')

_BY_JOINT = ('efforts', 'motion', 'portraits')
_MOST_JOINTS = 12  # More of them on a picture cannot be read.


def draw(
    choice: Choice, given: GivenMotion, limits: str | None, kind: str, joints: tuple[str, ...],
    path: Path, dpi: int,
) -> None:  # fmt: skip
    """Write a picture.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    limits : str, optional
        See `read_limits`.
    kind : str
        What is drawn: 'efforts', 'motion', 'portraits', 'motors' or 'energy'.
    joints : tuple of str
        By default all, or those that come nearest to their limits if there are many.
    path : pathlib.Path
    dpi : int

    Raises
    ------
    RequestError
        If the file cannot be written, or the options do not fit the kind.
    """
    check_writable(path)
    if path.suffix.lower() not in SUFFIXES:
        raise RequestError(f'{path}: expected a name that ends with {" or ".join(SUFFIXES)}.')
    if joints and kind in ('motors', 'energy'):
        raise RequestError(f'--joint chooses joints, which a picture of the kind {kind} has not.')
    if kind == 'motors' and given.actuators is None:
        raise RequestError('A picture of motors needs to know them: --actuators FILE.')
    problem = load_problem(choice, given, limits)
    results = compute_results(problem, given)
    show_remarks(results.remarks)
    model, values = problem.model, problem.limits.values
    found, chosen = violations_of(problem, results), list(joints) or None
    if chosen is None and model.n_joints > _MOST_JOINTS and kind in _BY_JOINT:
        chosen = busiest_joints(checked_source(results, model), values, _MOST_JOINTS)
        show_remarks((
            f'Of {model.n_joints} joints the {_MOST_JOINTS} are drawn that come nearest to one of '
            'their limits; --joint chooses others.',
        ))  # fmt: skip
    if kind == 'efforts':
        figure = plot_efforts(results, model, values, chosen, found)
    elif kind == 'motion':
        figure = plot_motion(results, model, values, chosen, found)
    elif kind == 'portraits':
        figure = plot_portraits(results, model, values, chosen, found)
    elif kind == 'motors':
        figure = plot_motors(results, model, problem.drives and problem.drives.limits, found)
    else:
        figure = plot_energy(results, model)
    write_whole(path, lambda target: figure.savefig(target, dpi=dpi))


def write_report(
    choice: Choice, given: GivenMotion, limits: str | None, path: Path, title: str | None
) -> int:
    """Write a report.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    limits : str, optional
        See `read_limits`.
    path : pathlib.Path
    title : str, optional

    Returns
    -------
    int
        Number of limits that are exceeded.

    Raises
    ------
    RequestError
        If the file cannot be written.
    """
    check_writable(path)
    problem = load_problem(choice, given, limits)
    results = compute_results(problem, given)
    violations = violations_of(problem, results)
    drives = problem.drives
    text = html_report(
        results,
        problem.model,
        problem.limits.values,
        actuators=drives.actuators if drives else None,
        motor_limits=drives.limits if drives else None,
        violations=violations,
        remarks=(f'Limits: {problem.limits.origin}.',),
        title=title,
        robot_file=f'{problem.source.path} ({problem.source.origin})',
    )
    write_whole(path, lambda target: target.write_text(text, encoding='utf-8'))
    return len(violations) + (results.continuous_order < 0)
