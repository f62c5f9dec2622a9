"""New timings of a motion: along its path, or of all of it by one factor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.retiming import retime
from hodyn_ros.analysis.scaling import uniform_scaling
from hodyn_ros.analysis.scaling_search import Limiting, UniformScaling
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
from hodyn_ros.cli.outputs import check_writable
from hodyn_ros.cli.progress import status
from hodyn_ros.cli.robot_summary import NAMES
from hodyn_ros.cli.robots import Choice
from hodyn_ros.cli.tables import echo_json, number
from hodyn_ros.errors import HodynError, MotionError, RequestError, ScalingError
from hodyn_ros.io import Results, Samples, compute, write_results
from hodyn_ros.io.columns import MOTION
from hodyn_ros.io.consistency import (
    even_times,
    is_measurement,
    noise_remarks,
    refuse_contradictions,
)
from hodyn_ros.io.derivatives import known_orders
from hodyn_ros.io.files import SUFFIXES
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.trajectory.jtc import jtc_motion
from hodyn_ros.trajectory.planning import plan_motion
from hodyn_ros.trajectory.spline import STANDSTILL, fit_spline
from hodyn_ros.trajectory.waypoints import Waypoints

Array = NDArray[np.float64]

_AT_ENDS = 4  # derivatives that a spline takes there

# What holds between the samples of a file, of any kind: not where it is known, and where it is.
_EXECUTION = (
    'The limits are kept at the samples. What is between them is not known.',
    'The limits are kept at any instant if positions, velocities and accelerations are executed '
    'together, as joint_trajectory_controller does (polynomials of degree 5 between the samples). '
    'With positions and velocities alone (degree 3) or positions alone (degree 1) it moves '
    'otherwise, with jumps of acceleration or velocity; the limits are not checked for that.',
)


class Wish(NamedTuple):
    """What both kinds of timings are asked for."""

    limits: str | None
    """See `read_limits`."""
    output: Path | None
    """File for the new motion."""
    slower_only: bool
    """Whether a motion that keeps its limits stays, and another one becomes no shorter."""
    as_json: bool


def retime_path(
    choice: Choice, given: GivenMotion, wish: Wish, intervals: int, window: float,
    keep_standstills: bool,
) -> None:  # fmt: skip
    """Find a fast timing along the path.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    wish : Wish
    intervals : int
        See `retime`.
    window : float
        See `retime` [s].
    keep_standstills : bool

    Raises
    ------
    HodynError
        If there is no such timing, or the file cannot be written.
    """
    _check(wish.output)
    problem = load_problem(choice, given, wish.limits)
    samples = read_samples(given)
    _check_path(samples, given)
    if samples.wrenches:
        raise RequestError(
            f'{samples.name} has wrenches, which belong to times and not to places on the path. '
            'Use --uniform, or leave their columns out.'
        )
    if wish.slower_only:
        scaled = _scaled(problem, given)
        if scaled.is_kept:
            _stretch(problem, given, wish, scaled)
            return
    path = path_through(problem.model, samples)
    before = path.end_time - path.start_time
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
            rate=given.rate,
            window=window,
            keep_standstills=keep_standstills,
            shortest=before if wish.slower_only else 0.0,
        )
    times = found.motion.times
    fast = Samples(problem.model.joint_names, times, found.motion(times), name=samples.name)
    text = (
        f'{samples.name}: from {number(before)} s to {number(found.duration)} s; at constant '
        f'speed of its parameter {number(found.uniform_duration)} s.\n'
    )
    if found.standstill:
        text += (
            f'It stands still for {number(found.standstill)} s of this, as before '
            '(--drop-standstills leaves that out).\n'
        )
    _finish(
        problem, _computed(problem, fast, given), wish,
        {
            'duration_before': before,
            'duration': found.duration,
            'duration_uniform': found.uniform_duration,
            'standstill': found.standstill,
            'largest_distance_from_path': float(found.deviation.max()),
            'limiting': found.limiting,
        },
        text + 'Averaging its timing leaves the path by at most '
        f'{number(float(found.deviation.max()))} rad or m.',
        None if wish.slower_only else found.limiting,
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
    is_spline = given.derivatives == 'spline'
    if given.derivatives == 'estimate' or (not is_spline and is_measurement(samples)):
        raise RequestError(
            f'{samples.name}: a path through measured positions follows all of their noise. Use '
            '--uniform --derivatives estimate, which finds the motion behind it, or --derivatives '
            'spline to follow the measurements exactly.'
        )


def scale_uniformly(choice: Choice, given: GivenMotion, wish: Wish) -> None:
    """Stretch the motion in time by the smallest factor that keeps the limits.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    wish : Wish

    Raises
    ------
    HodynError
        If there is no such factor, or the file cannot be written.
    """
    _check(wish.output)
    problem = load_problem(choice, given, wish.limits)
    scaled = _scaled(problem, given)
    if scaled.scaling.factor == 0.0 and not wish.slower_only:
        raise ScalingError(
            'Nothing limits the speed of this motion; name limits, or use --slower-only.'
        )
    _stretch(problem, given, wish, scaled)


class _Scaled(NamedTuple):
    """The given motion, and how slowly it is to be played."""

    before: Results
    scaling: UniformScaling
    """With which limits are kept at the samples, and between them as executed."""
    is_kept: bool
    """Whether the motion keeps the limits as it is."""


def _scaled(problem: Problem, given: GivenMotion) -> _Scaled:
    """Find the factor with which the motion keeps its limits."""
    problem.model.warm_up()
    before = compute_results(problem, given)
    known = known_orders(before.motion)
    for wrench in before.wrenches:
        known = np.minimum(known, 2 + known_orders(np.asarray(wrench.values)))
    lowest = int(known.min())  # An order that is lacking at one sample is not used at any.
    wrenches = tuple(
        replace(wrench, values=np.asarray(wrench.values)[:, : max(lowest - 2, 1)])
        for wrench in before.wrenches
    )
    lacks = np.count_nonzero(known == lowest) if lowest < before.motion.shape[1] else 0
    before = replace(before, motion=before.motion[:, :lowest], wrenches=wrenches)
    drives = problem.drives
    limits: dict[str, Any] = {
        'limits': problem.limits.values,
        'actuators': drives.actuators if drives else None,
        'motor_limits': drives.limits if drives else None,
    }
    try:
        scaling = uniform_scaling(problem.model, before.motion, wrench=wrenches or None, **limits)
    except MotionError as error:
        if not lacks:
            raise
        raise RequestError(
            f'{before.name}: {MOTION[lowest]} and more are not known at {lacks} of {len(before)} '
            'samples, so that limits which need them cannot be kept there. Cut these samples off, '
            'or leave such limits out (--limits); accelerations are needed in any case.'
        ) from error
    is_kept = scaling.is_kept
    if _is_determined(before):
        motion = jtc_motion(before.times, *(before.motion[:, k] for k in range(3)))
        executed = uniform_scaling(problem.model, motion, **limits)
        is_kept &= executed.is_kept
        if executed.factor > scaling.factor:
            scaling = executed
    return _Scaled(before, scaling, is_kept)


def _is_determined(results: Results) -> bool:
    """Whether it is known what a controller does between the samples."""
    if results.source == 'measured' or results.wrenches:  # each estimated alone; known there only
        return False
    return len(results) > 1 and results.motion.shape[1] > 2


def _stretch(problem: Problem, given: GivenMotion, wish: Wish, scaled: _Scaled) -> None:
    """Write and tell the given motion, as slow as it has to be."""
    before, scaling, is_kept = scaled
    show_remarks(before.remarks)
    stays = wish.slower_only and is_kept
    factor = 1.0 if stays else scaling.factor
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
    limiting = scaling.limiting
    if limiting is not None:
        time = before.times[limiting.sample] if limiting.time is None else limiting.time
        limiting = limiting._replace(time=before.times[0] + factor * (time - before.times[0]))
    _finish(
        problem, replace(_computed(problem, slow, given), source=before.source), wish,
        {
            'factor': factor,
            'duration_before': duration,
            'duration': factor * duration,
            'limiting': limiting,
            'factors_that_keep_the_limits': scaling.intervals,
        },
        f'{before.name}: from {number(duration)} s to {number(factor * duration)} s, '
        f'{number(factor, 6)} times as long.',
        None if stays else limiting,
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
    ordered, rounded = even_times(ordered)
    show_remarks((*noise_remarks(ordered), *rounded))
    ends = np.full((2, _AT_ENDS, model.n_joints), np.nan)
    known = min(_AT_ENDS, motion.shape[1] - 1)
    ends[:, :known] = motion[[0, -1], 1 : known + 1]
    ends[np.abs(ends) <= STANDSTILL] = 0.0
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
    problem: Problem, results: Results, wish: Wish, data: dict[str, Any], text: str,
    limiting: Limiting | None,
) -> None:  # fmt: skip
    """Check once more, write and say what came out."""
    violations = violations_of(problem, results)
    if violations:
        worst = violations[0]
        raise HodynError(
            f'The new motion exceeds the {worst.quantity} limit of {worst.joint_name}: '
            f'{worst.value:.6g} instead of {worst.limit:.6g}.'
        )
    if wish.output is not None:
        write_results(wish.output, results)
    if wish.as_json:
        echo_json(
            {
                'robot': problem.model.name,
                'motion': results.name,
                'output': wish.output,
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
    if wish.output is not None:
        click.echo(f'Written: {wish.output} ({len(results)} samples)')
        show_remarks((_EXECUTION[_is_determined(results)],))
