"""`hodyn retime`: a new timing of a motion, along its path or of all of it by one factor."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from click.core import ParameterSource
from numpy.typing import NDArray

from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.analysis.retiming import retime as retimed
from hodyn_ros.analysis.scaling import Limiting, TimedMotion, stretched, uniform_scaling
from hodyn_ros.cli.output import echo_json, name_of, number, progress, show_remarks
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError, MotionError, RequestError, ScalingError
from hodyn_ros.files import Results, ResultsWriter, Samples
from hodyn_ros.files.columns import MOTION
from hodyn_ros.files.derivatives import (
    even_times,
    is_measurement,
    noise_remarks,
    refuse_contradictions,
)
from hodyn_ros.files.samples import known_orders
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.plotting.checks import all_violations
from hodyn_ros.trajectory.jtc import jtc_motion
from hodyn_ros.trajectory.planning import Waypoints, plan_motion
from hodyn_ros.trajectory.spline import STANDSTILL, fit_spline

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


class _NewTiming(NamedTuple):
    """A motion with another timing, and what is said about it."""

    results: Results
    data: dict[str, Any]  # for programs
    text: str
    limiting: Limiting | None  # what does not let it be faster; None if it may not be
    is_determined: bool  # whether it is known what a controller does between the samples


def retime(
    given: Given, output: Path | None, uniform: bool, slower_only: bool, drop_standstills: bool,
    window: float, intervals: int, as_json: bool,
) -> None:  # fmt: skip
    """Find another timing, check it once more, write it and say what came out."""
    if uniform:
        source = click.get_current_context().get_parameter_source
        for name in ('drop_standstills', 'window', 'intervals'):
            if source(name) is not ParameterSource.DEFAULT:
                raise click.UsageError(
                    f'--{name.replace("_", "-")} is for a new timing along the path; leave it or '
                    '--uniform out.'
                )
    with ExitStack() as stack:
        # Refuses an output before the long work.
        writer = None if output is None else stack.enter_context(ResultsWriter(output))
        problem = load_problem(given)
        samples = None if uniform else _samples_of_path(problem)
        timing = None
        if uniform or slower_only:
            timing = _stretched(problem, slower_only, only_if_kept=not uniform)
        if samples is not None and timing is None:
            timing = _along_path(
                problem, samples, slower_only, intervals, 1e-3 * window, not drop_standstills
            )
        assert timing is not None
        results = timing.results
        for worst in all_violations(results, problem.model, **problem.limiting):
            raise HodynError(
                f'The new motion exceeds the {worst.quantity} limit of {worst.joint_name}: '
                f'{worst.value:.6g} instead of {worst.limit:.6g}.'
            )
        if writer is not None:
            writer.write(results)
    if as_json:
        echo_json({
            'robot': problem.model.name, 'motion': results.name, 'output': output,
            'samples': len(results), 'limits_from': problem.limits_from, **timing.data,
        })  # fmt: skip
        return
    click.echo(timing.text)
    if (limiting := timing.limiting) is not None:
        at = '' if limiting.time is None else f' at {number(limiting.time)} s'
        click.echo(
            f'What does not let it be faster: {name_of(limiting.quantity)} of {limiting.name}{at} '
            f'({number(limiting.value)} of {number(limiting.limit)}).'
        )
    click.echo(f'All limits are kept ({problem.limits_from}).')
    if output is not None:
        click.echo(f'Written: {output} ({len(results)} samples)')
        show_remarks((_EXECUTION[timing.is_determined],))


def _samples_of_path(problem: Problem) -> Samples:
    """Read samples whose path is to be kept, and refuse what is none."""
    given = problem.given
    if given.interpolation != 'spline':
        raise RequestError(
            f'--interpolation {given.interpolation} makes a motion that is not smooth enough for '
            'a new timing along its path; leave it out, or use --uniform.'
        )
    samples = problem.samples()
    is_spline = given.derivatives == 'spline'
    if given.derivatives == 'estimate' or (not is_spline and is_measurement(samples)):
        raise RequestError(
            f'{samples.name}: a path through measured positions follows all of their noise. Use '
            '--uniform --derivatives estimate, which finds the motion behind it, or --derivatives '
            'spline to follow the measurements exactly.'
        )
    if samples.wrenches:
        raise RequestError(
            f'{samples.name} has wrenches, which belong to times and not to places on the path. '
            'Use --uniform, or leave their columns out.'
        )
    return samples


def _along_path(
    problem: Problem, samples: Samples, slower_only: bool, intervals: int, window: float,
    keep_standstills: bool,
) -> _NewTiming:  # fmt: skip
    """Find a fast timing along the path, of at least the old duration if slower only."""
    path = _path_through(problem.model, samples)
    before = path.end_time - path.start_time
    with progress('Looking for the fastest timing'):
        found = retimed(
            problem.model,
            path,
            **problem.limiting,
            intervals=intervals,
            rate=problem.given.rate,
            window=window,
            keep_standstills=keep_standstills,
            shortest=before if slower_only else 0.0,
        )
    times, deviation = found.motion.times, float(found.deviation.max())
    standing = '\n'
    if found.standstill:
        standing = (
            f'\nIt stands still for {number(found.standstill)} s of this, as before '
            '(--drop-standstills leaves that out).\n'
        )
    return _NewTiming(
        _results(problem, times, found.motion(times), name=samples.name, source='given'),
        {
            'duration_before': before, 'duration': found.duration,
            'duration_uniform': found.uniform_duration, 'standstill': found.standstill,
            'largest_distance_from_path': deviation, 'limiting': found.limiting,
        },
        f'{samples.name}: from {number(before)} s to {number(found.duration)} s; at constant '
        f'speed of its parameter {number(found.uniform_duration)} s.{standing}Averaging its '
        f'timing leaves the path by at most {number(deviation)} rad or m.',
        None if slower_only else found.limiting,
        True,
    )  # fmt: skip


def _path_through(model: RobotModel, samples: Samples) -> TimedMotion:
    """Motion of class C4 through waypoints, or through samples of a smooth motion."""
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


def _stretched(problem: Problem, slower_only: bool, only_if_kept: bool) -> _NewTiming | None:
    """Play the given motion as slowly as it has to be, or as it is if slower only.

    None if that is wanted only if the limits are kept as it is, and they are not.
    """
    before = problem.results()
    known = known_orders(before.motion)
    for wrench in before.wrenches:
        known = np.minimum(known, 2 + known_orders(np.asarray(wrench.values)))
    lowest = int(known.min())  # An order that is lacking at one sample is not used at any.
    motion = before.motion[:, :lowest]
    wrenches = [
        replace(wrench, values=np.asarray(wrench.values)[:, : max(lowest - 2, 1)])
        for wrench in before.wrenches
    ]
    lacks = np.count_nonzero(known == lowest) if lowest < before.motion.shape[1] else 0
    limits = problem.limiting
    try:
        scaling = uniform_scaling(problem.model, motion, wrench=wrenches or None, **limits)
    except MotionError as error:
        if not lacks:
            raise
        raise RequestError(
            f'{before.name}: {MOTION[lowest]} and more are not known at {lacks} of {len(before)} '
            'samples, so that limits which need them cannot be kept there. Cut these samples off, '
            'or leave such limits out (--limits); accelerations are needed in any case.'
        ) from error
    is_kept = scaling.is_kept
    # Estimates are made of each sample alone, and wrenches known there only.
    is_determined = before.source != 'measured' and not wrenches and len(before) > 1 and lowest > 2
    if is_determined:
        executed = uniform_scaling(
            problem.model, jtc_motion(before.times, *(motion[:, k] for k in range(3))), **limits
        )
        is_kept &= executed.is_kept
        if executed.factor > scaling.factor:
            scaling = executed
    if only_if_kept and not is_kept:
        return None
    if scaling.factor == 0.0 and not slower_only:
        raise ScalingError(
            'Nothing limits the speed of this motion; name limits, or use --slower-only.'
        )
    show_remarks(before.remarks)
    stays = slower_only and is_kept
    factor = 1.0 if stays else scaling.factor
    start, duration = before.times[0], float(before.times[-1] - before.times[0])
    limiting = scaling.limiting
    if limiting is not None:
        time = before.times[limiting.sample] if limiting.time is None else limiting.time
        limiting = limiting._replace(time=start + factor * (time - start))
    for i, wrench in enumerate(wrenches):
        wrenches[i] = replace(wrench, values=stretched(wrench.values, factor))
    return _NewTiming(
        _results(
            problem, start + factor * (before.times - start), stretched(motion, factor), wrenches,
            name=before.name, start=before.start, source=before.source,
        ),
        {
            'factor': factor, 'duration_before': duration, 'duration': factor * duration,
            'limiting': limiting, 'factors_that_keep_the_limits': scaling.intervals,
        },
        f'{before.name}: from {number(duration)} s to {number(factor * duration)} s, '
        f'{number(factor, 6)} times as long.',
        None if stays else limiting,
        is_determined,
    )  # fmt: skip


def _results(
    problem: Problem, times: Array, motion: Array, wrenches: Sequence[Wrench] = (), **fields: Any
) -> Results:
    """Efforts and motors along a motion that is known at all samples."""
    model, actuators = problem.model, problem.actuators
    motion = motion[:, : problem.given.order + 3]
    applied = [
        replace(wrench, values=np.asarray(wrench.values)[:, : motion.shape[1] - 2])
        for wrench in wrenches
    ]
    effort = inverse_dynamics(model, motion, applied or None)
    if actuators is not None:
        fields['motors'] = motor_motion(actuators, motion, effort, order=None)
        fields['motor_names'] = actuators.motor_names
        fields['motor_joints'] = tuple(np.take(model.joint_names, actuators.joint_of_motor))
    return Results(
        model.joint_names, times, motion, effort, wrenches=tuple(wrenches),
        base_link=model.base_link, **fields,
    )  # fmt: skip
