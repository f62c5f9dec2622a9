"""`hodyn plot` and `hodyn report`: pictures of a motion and its torques."""

from __future__ import annotations

from pathlib import Path

import click

from hodyn_ros import plotting
from hodyn_ros.analysis.unlimited import no_limit
from hodyn_ros.cli.output import PICTURES, show_remarks, written
from hodyn_ros.cli.problem import Given, load_problem
from hodyn_ros.errors import RequestError
from hodyn_ros.plotting.checks import all_violations, busiest_joints, unlimited_in
from hodyn_ros.plotting.figures import figure_library
from hodyn_ros.plotting.report import report_libraries
from hodyn_ros.plotting.series import checked_results

_BY_JOINT = ('efforts', 'motion', 'portraits')

_MOST_JOINTS = 12  # More of them on a picture cannot be read.


def plot(
    given: Given, kind: str, joints: tuple[str, ...], output: Path | None, dpi: int
) -> None:
    """Draw a picture of one kind.

    Parameters
    ----------
    given : Given
        Robot and motion.
    kind : {'efforts', 'motion', 'portraits', 'motors', 'energy'}
    joints : tuple of str
        Those that are drawn; empty: all, or the twelve that come nearest to a limit.
    output : pathlib.Path or None
        Picture; None: beside, with a name made of the motion and the kind.
    dpi : int
        Resolution [1/inch].

    Raises
    ------
    RequestError
        If suffix, joints or kind do not fit.
    """
    path = output or Path(f'{given.motion.stem or "motion"}_{kind}.png')
    if path.suffix.lower() not in PICTURES:
        raise RequestError(
            f'{path}: expected a name that ends with {" or ".join(PICTURES)}.'
        )
    if joints and kind not in _BY_JOINT:
        raise RequestError(
            f'--joint chooses joints, which a picture of the kind {kind} has not.'
        )
    if kind == 'motors' and given.actuators is None:
        raise RequestError('A picture of motors needs to know them: --actuators FILE.')
    figure_library()  # or the work would be done for nothing
    with written(path) as target:
        problem = load_problem(given)
        results = problem.results()
        show_remarks(results.remarks)
        model, limits = problem.model, problem.limits
        violations = all_violations(results, model, **problem.limiting)
        chosen = list(joints) or None
        if chosen is None and model.n_joints > _MOST_JOINTS and kind in _BY_JOINT:
            chosen = busiest_joints(
                checked_results(results, model), model, limits, _MOST_JOINTS
            )
            drawn = f'Of {model.n_joints} joints the {_MOST_JOINTS} are drawn'
            show_remarks(
                (
                    f'{drawn} that come nearest to one of their limits; '
                    '--joint chooses others.',
                )
            )
        if kind in _BY_JOINT:
            draw = getattr(plotting, f'plot_{kind}')
            figure = draw(model, results, limits, chosen, violations)
        elif kind == 'motors':
            figure = plotting.plot_motors(model, results, problem.motor_limits, violations)
        else:
            figure = plotting.plot_energy(model, results)
        figure.savefig(target, dpi=dpi)
    click.echo(f'Written: {path}')


def report(given: Given, output: Path | None, title: str | None, show: bool) -> None:
    """Write a report as one HTML file.

    Parameters
    ----------
    given : Given
        Robot and motion.
    output : pathlib.Path or None
        Page (.html); None: with a name made of the motion.
    title : str or None
        Of the page.
    show : bool
        Whether it is opened.

    Raises
    ------
    RequestError
        If the suffix of the output is no known one.
    """
    if output is not None and output.suffix.lower() not in ('.html', '.htm'):
        raise RequestError(
            f'{output} is not named as a report is: expected the suffix .html or .htm. A browser '
            'prints it as PDF.'
        )
    report_libraries()  # or the work would be done for nothing
    path = output or Path(f'{given.motion.stem or "motion"}_report.html')
    with written(path) as target:
        problem = load_problem(given)
        results = problem.results()
        violations = all_violations(results, problem.model, **problem.limiting)
        text = plotting.html_report(
            problem.model,
            results,
            **problem.limiting,
            violations=violations,
            remarks=(f'Limits: {problem.limits_from}.',),
            title=title,
        )
        target.write_text(text, encoding='utf-8', errors='replace')
    count = len(violations) + (results.continuous_order < 0)
    unlimited = unlimited_in(results, problem.model, **problem.limiting)
    limits_text = f'{count} limit{"" if count == 1 else "s"} exceeded'
    if not count:
        limits_text = f'{"known " * bool(unlimited)}limits kept'
    click.echo(f'Written: {path} ({limits_text})')
    if unlimited:
        click.echo(no_limit(unlimited))
    if show:
        click.launch(str(path))
