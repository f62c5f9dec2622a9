"""New timings of a motion: along its path, or of all of it by one factor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.retiming import retime
from hodyn_ros.analysis.scaling import uniform_scaling
from hodyn_ros.analysis.scaling_search import Limiting
from hodyn_ros.analysis.stretching import TimedMotion, stretched
from hodyn_ros.cli.motions import (
    GivenMotion,
    Problem,
    compute_results,
    load_problem,
    read_samples,
    show_remarks,
    violations_of,
)
from hodyn_ros.cli.outputs import check_writable, remarks_on_output
from hodyn_ros.cli.progress import status
from hodyn_ros.cli.robot_summary import NAMES
from hodyn_ros.cli.robots import Choice
from hodyn_ros.cli.tables import echo_json, number
from hodyn_ros.errors import HodynError, RequestError, ScalingError
from hodyn_ros.io import Results, Samples, compute, write_results
from hodyn_ros.io.consistency import noise_remarks, refuse_contradictions
from hodyn_ros.io.files import SUFFIXES
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.trajectory.planning import plan_motion
from hodyn_ros.trajectory.spline import fit_spline
from hodyn_ros.trajectory.waypoints import Waypoints

Array = NDArray[np.float64]

RATE = 100.0
"""Samples per second of the new motion [Hz]."""
_AT_ENDS = 4  # derivatives that a spline takes there


def retime_path(
    choice: Choice, given: GivenMotion, limits: str | None, output: Path | None, intervals: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Find a fast timing along the path.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    limits : str, optional
        See `read_limits`.
    output : pathlib.Path, optional
        File for the new motion.
    intervals : int
        See `retime`.
    as_json : bool

    Raises
    ------
    HodynError
        If there is no such timing, or the file cannot be written.
    """
    _check(output)
    problem = load_problem(choice, given, limits)
    samples = read_samples(given)
    _check_path(samples, given)
    if samples.wrenches:
        raise RequestError(
            f'{samples.name} has wrenches, which belong to times and not to places on the path. '
            'Use --uniform, or leave their columns out.'
        )
    path = path_through(problem.model, samples)
    drives = problem.drives
    with status() as show:
        show('Looking for the fastest timing ...')
        found = retime(
            problem.model,
            path,
            problem.limits.values,
            actuators=drives.actuators if drives else None,
            motor_limits=drives.limits if drives else None,
            intervals=intervals,
        )
    steps = max(1, round(found.duration * (given.rate or RATE)))
    times = np.linspace(0.0, found.duration, steps + 1)
    fast = Samples(problem.model.joint_names, times, found.motion(times), name=samples.name)
    results = _computed(problem, fast, given)
    before = path.end_time - path.start_time
    _finish(
        problem, results, output, as_json,
        {
            'duration_before': before,
            'duration': found.duration,
            'duration_uniform': found.uniform_duration,
            'limiting': found.limiting,
        },
        f'{samples.name}: {number(before)} s before, {number(found.duration)} s now. The same '
        f'path at constant speed of its parameter: {number(found.uniform_duration)} s.',
        found.limiting,
    )  # fmt: skip


def _check_path(samples: Samples, given: GivenMotion) -> None:
    """Refuse samples that are no path, and options that make none.

    Raises
    ------
    RequestError
    """
    if given.interpolation != 'spline':
        raise RequestError(
            f'--interpolation {given.interpolation} makes a motion that is not smooth enough for '
            'a new timing along its path; leave it out, or use --uniform.'
        )
    if given.derivatives == 'estimate' or (samples.is_measured and given.derivatives == 'auto'):
        raise RequestError(
            f'{samples.name}: a path through measured positions follows all of their noise. Use '
            '--uniform, which takes estimated derivatives, or --derivatives spline to follow the '
            'measurements exactly.'
        )


def scale_uniformly(
    choice: Choice, given: GivenMotion, limits: str | None, output: Path | None,
    slower_only: bool, as_json: bool,
) -> None:  # fmt: skip
    """Stretch the motion in time by the smallest factor that keeps the limits.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    limits : str, optional
        See `read_limits`.
    output : pathlib.Path, optional
        File for the new motion.
    slower_only : bool
        Whether the factor is at least one.
    as_json : bool

    Raises
    ------
    HodynError
        If there is no such factor, or the file cannot be written.
    """
    _check(output)
    problem = load_problem(choice, given, limits)
    problem.model.warm_up()
    before = compute_results(problem, given)
    if not np.isfinite(before.motion).all():
        raise RequestError(
            f'{before.name}: the derivatives are not known at all samples. Use --derivatives '
            'spline, or leave --uniform out.'
        )
    drives = problem.drives
    scaling = uniform_scaling(
        problem.model,
        before.motion,
        problem.limits.values,
        wrench=before.wrenches or None,
        actuators=drives.actuators if drives else None,
        motor_limits=drives.limits if drives else None,
    )
    if scaling.factor == 0.0 and not slower_only:
        raise ScalingError(
            'Nothing limits the speed of this motion; name limits, or use --slower-only.'
        )
    factor = 1.0 if slower_only and scaling.is_kept else scaling.factor
    duration = float(before.times[-1] - before.times[0])
    slow = Samples(
        before.joint_names,
        before.times[0] + factor * (before.times - before.times[0]),
        stretched(before.motion, factor),
        tuple(
            replace(wrench, values=_slower(np.asarray(wrench.values), factor))
            for wrench in before.wrenches
        ),
        name=before.name,
        start=before.start,
    )
    results = _computed(problem, slow, given)
    limiting = scaling.limiting
    if limiting is not None:
        limiting = limiting._replace(time=float(slow.times[limiting.sample]))
    _finish(
        problem, results, output, as_json,
        {
            'factor': factor,
            'duration_before': duration,
            'duration': factor * duration,
            'limiting': limiting,
            'factors_that_keep_the_limits': scaling.intervals,
        },
        f'{before.name}: {number(duration)} s before, {number(factor * duration)} s now, '
        f'{number(factor, 6)} times as long.',
        limiting if factor == scaling.factor else None,
    )  # fmt: skip


def path_through(model: RobotModel, samples: Samples) -> TimedMotion:
    """Motion of class C4 through samples, whose path is retimed.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Waypoints, or samples of a smooth motion.

    Returns
    -------
    function of time

    Raises
    ------
    TrajectoryError, JointNameError
        If there is none.
    """
    ordered = samples.in_order(model.joint_names)[0]
    motion = ordered.motion
    if ordered.is_waypoints:
        rows = [motion[:, k] if k < motion.shape[1] else None for k in range(3)]
        waypoints = Waypoints(ordered.joint_names, ordered.times, *rows)  # type: ignore[arg-type]
        plan = plan_motion(waypoints, model.joint_names)
        show_remarks((*plan.remarks, *plan.warnings))
        return plan.motion
    refuse_contradictions(model, ordered)
    show_remarks(noise_remarks(ordered))
    ends = np.full((2, _AT_ENDS, model.n_joints), np.nan)
    known = min(_AT_ENDS, motion.shape[1] - 1)
    ends[:, :known] = motion[[0, -1], 1 : known + 1]
    return fit_spline(ordered.times, motion[:, 0], start=ends[0], end=ends[1])


def _check(output: Path | None) -> None:
    """Refuse an output before the long work."""
    if output is None:
        return
    check_writable(output)
    if output.suffix and output.suffix.lower() not in SUFFIXES:  # without one: a bag
        raise RequestError(
            f'{output}: the suffix {output.suffix!r} is unknown, expected one of '
            f'{listed(SUFFIXES)}, or none for the folder of a bag.'
        )


def _slower(values: Array, factor: float) -> Array:
    """Series (N, S, 6) of a wrench along a stretched motion."""
    result: Array = values / (factor ** np.arange(values.shape[1]))[:, None]
    return result


def _computed(problem: Problem, samples: Samples, given: GivenMotion) -> Results:
    actuators = problem.drives.actuators if problem.drives else None
    return compute(
        problem.model, samples, actuators=actuators, orders=given.order, derivatives='given'
    )


def _finish(
    problem: Problem, results: Results, output: Path | None, as_json: bool, data: dict[str, Any],
    text: str, limiting: Limiting | None,
) -> None:  # fmt: skip
    """Check once more, write and say what came out."""
    show_remarks(problem.limits.remarks)
    violations = violations_of(problem, results)
    if violations:
        worst = violations[0]
        raise HodynError(
            f'The new motion exceeds the {worst.quantity} limit of {worst.joint_name}: '
            f'{worst.value:.6g} instead of {worst.limit:.6g}.'
        )
    if output is not None:
        write_results(output, results)
        show_remarks(remarks_on_output(output))
    if as_json:
        echo_json(
            {
                'robot': problem.model.name,
                'motion': results.name,
                'output': output,
                'samples': len(results),
                'limits_from': problem.limits.origin,
                **data,
            }
        )
        return
    click.echo(text)
    if limiting is not None:
        at = '' if limiting.time is None else f' at {number(limiting.time)} s'
        click.echo(
            'What does not let it be faster: '
            f'{NAMES.get(limiting.quantity, limiting.quantity)} of {limiting.name}{at} '
            f'({number(limiting.value)} of {number(limiting.limit)}).'
        )
    click.echo(f'All limits are kept ({problem.limits.origin}).')
    if output is not None:
        click.echo(f'Written: {output} ({len(results)} samples)')
