"""`hodyn plot` and `hodyn view`: pictures of a motion and its torques, and reports."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from hodyn_ros import plotting
from hodyn_ros.analysis.limits import (
    busiest_joints,
    limited,
    no_limit,
    unlimited,
    violations_of,
)
from hodyn_ros.cli.output import PAGES, check_picture, save, show_remarks, written
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples
from hodyn_ros.plotting.scene import Scene, view_library
from hodyn_ros.resources import optional_import_module

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BY_JOINT = ('efforts', 'motion', 'portraits')

_MOST_JOINTS = 12  # More of them on a picture cannot be read.

# Of a live view: what comes is handed on in parts, which in files are the larger the fewer.
_WINDOW_PERIOD, _FILE_PERIOD = 0.1, 1.0  # s
_LIVE_MEMORY = '2GB'  # of the viewer, which drops the oldest then
_ROS_ARGUMENTS = '--ros-args'


def plot(given: Given, kind: str, joints: tuple[str, ...], output: Path | None) -> None:
    """Draw a picture of one kind, or write a report; see `hodyn plot --help`.

    Parameters
    ----------
    given : Given
        Robot and motion.
    kind : {'efforts', 'motion', 'portraits', 'motors', 'energy'}
    joints : tuple of str
        Those that are drawn; empty: all, or the twelve that come nearest to a limit.
    output : pathlib.Path or None
        Picture or page; None: a picture beside, with a name made of the motion and the kind.

    Raises
    ------
    RequestError
        If suffix, joints or kind do not fit.
    """
    path = output or Path(f'{given.motion.stem or "motion"}_{kind}.png')
    check_picture(path)
    if path.suffix.lower() in PAGES:
        _report(given, path)
        return
    if joints and kind not in _BY_JOINT:
        raise RequestError(
            f'--joint chooses joints, which a picture of the kind {kind} has not.'
        )
    problem = load_problem(given)
    if kind == 'motors' and problem.actuators is None:
        raise RequestError(
            'A picture of motors needs to know them: --config FILE with actuators.'
        )
    results = problem.results()
    show_remarks(results.remarks)
    save(path, _drawn(problem, results, kind, joints))
    click.echo(f'Written: {path}')


def _drawn(problem: Problem, results: Samples, kind: str, joints: Sequence[str]) -> Figure:
    """Figure of a kind, of some joints where it is one of joints."""
    model = problem.model
    if kind == 'energy':
        return plotting.plot_energy(model, results)
    if kind == 'motors':
        return plotting.plot_motors(
            model, results, problem.motor_limits, actuators=problem.actuators
        )
    if not joints and model.n_joints > _MOST_JOINTS:
        joints = busiest_joints(limited(model, results, **problem.limiting), _MOST_JOINTS)
        remark = (
            f'Of {model.n_joints} joints the {_MOST_JOINTS} are drawn that come nearest to one of '
            'their limits; --joint chooses others.'
        )
        show_remarks((remark,))
    draw = {
        'efforts': plotting.plot_efforts,
        'motion': plotting.plot_motion,
        'portraits': plotting.plot_portraits,
    }[kind]
    return draw(model, results, problem.limits, joints or None)


def _report(given: Given, path: Path) -> None:
    """Write a report as one HTML file."""
    problem = load_problem(given)
    results = problem.results()
    quantities = limited(problem.model, results, **problem.limiting)
    # Folders are private.
    file = problem.config.sources.get('limits', '')
    limits_from = problem.limits_from.replace(file, Path(file).name)
    page = plotting.html_report(
        problem.model,
        results,
        **problem.limiting,
        remarks=(f'Limits: {limits_from}.',),
        title=f'{problem.model.name}: {given.motion.name}',
    )
    save(path, page)
    count = len(violations_of(quantities)) + (results.continuous_order < 0)
    without = unlimited(quantities, problem.actuators)
    limits_text = f'{count} limit{"" if count == 1 else "s"} exceeded'
    if not count:
        limits_text = f'{"known " * bool(without)}limits kept'
    click.echo(f'Written: {path} ({limits_text})')
    if without:
        click.echo(no_limit(without))


def view(
    given: Given, motions: tuple[Path, ...], output: Path | None, serve: bool, live: bool
) -> None:
    """Show robots in motion in the viewer, or write a recording of it.

    Parameters
    ----------
    given : Given
        Robot.
    motions : tuple of pathlib.Path
        Motions, side by side; of a live view arguments of ROS.
    output : pathlib.Path or None
        Recording (.rrd); None: the viewer is opened, or where there is no display a recording
        is written beside.
    serve : bool
        Whether it is shown in browsers until the command is interrupted.
    live : bool
        Whether it shows what comes from a running node.

    Raises
    ------
    RequestError
        If the suffix of the output is another one, or it is to be served too; if there are no
        motions, or there are beside a live view.
    ResourceError
        If ROS is not installed, which a live view needs.
    """
    view_library()  # or the work would be done for nothing
    if output is not None and (serve or output.suffix.lower() != '.rrd'):
        raise RequestError(
            f'{output}: expected a name that ends with .rrd, and no --serve beside it.'
        )
    if live == any(str(path) != _ROS_ARGUMENTS for path in motions[:1]):
        raise RequestError('Expected a MOTION, or --live without one.')
    problem = load_problem(given)
    if output is None and not serve and not _has_display():
        output = Path(f'{problem.model.name if live else motions[0].stem}.rrd')
        show_remarks(
            (
                'There is no display for the viewer (neither DISPLAY nor WAYLAND_DISPLAY is set): '
                f'{output} is written. With --serve a browser shows it.',
            )
        )
    description = problem.source.description(dict(given.xacro_arguments))
    if not live:
        recording = plotting.view(
            problem.model,
            _side_by_side(problem, motions),
            problem.limits,
            motor_limits=problem.motor_limits,
            description=description,
        )
        _present(recording, output, serve)
        return
    node = optional_import_module(
        'hodyn_ros.ros.nodes.live_view', 'A live view needs ROS', 'ros'
    )
    scene = Scene(problem.model, problem.limits, description=description, is_live=True)
    period = _WINDOW_PERIOD if output is None else _FILE_PERIOD
    _present(scene.recording, output, serve, partial(node.follow, scene, period))


def _present(
    recording: Any,
    output: Path | None,
    serve: bool,
    follow: Callable[..., None] | None = None,
) -> None:
    """Show a recording in the viewer or in browsers, or write it, while it goes on."""
    rerun = view_library()
    if serve:
        address = recording.serve_grpc()
        rerun.serve_web_viewer(connect_to=address, open_browser=False)
        page = f'http://localhost:9090/?url={quote(address, safe="")}'
        click.echo(f'Served at {page} until Ctrl-C, to all who reach this machine.')
        while not follow:
            time.sleep(1.0)
        follow()
    elif output is None:
        # Its viewer is installed beside Python, which need not be on the path.
        viewer = shutil.which('rerun', path=os.path.dirname(sys.executable))
        memory = _LIVE_MEMORY if follow else '75%'
        rerun.spawn(recording=recording, executable_path=viewer, memory_limit=memory)
        if follow:
            follow()
    else:
        # Rerun itself does not end where a disk is full.
        stream = recording.binary_stream()
        with written(output) as target, target.open('wb') as file:

            def keep() -> None:
                file.write(stream.read() or b'')
                file.flush()

            if follow:
                click.echo(f'Recording until Ctrl-C: {output}')
                follow(keep)
            keep()
        click.echo(f'Written: {output}; see it with: rerun {output}')


def _side_by_side(problem: Problem, motions: Sequence[Path]) -> dict[str, Samples]:
    """Samples along several motions, by distinct names."""
    results = {}
    for name, motion in zip(_distinct([path.stem for path in motions]), motions):
        of_motion = replace(problem, given=replace(problem.given, motion=motion))
        results[name] = of_motion.results()
        show_remarks(results[name].remarks)
    return results


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of which those that were there before have a number."""
    return [
        name if name not in names[:i] else f'{name}_{i + 1}' for i, name in enumerate(names)
    ]


def _has_display() -> bool:
    """Whether a window can be opened."""
    if sys.platform != 'linux':
        return True
    return bool(os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY'))
