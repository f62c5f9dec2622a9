"""`hodyn retime`: a new timing of a motion, along its path or of all of it by one factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.analysis.limits import Unlimited, kept
from hodyn_ros.cli.output import echo_json, number, progress, show_remarks
from hodyn_ros.cli.problem import ORDER, Given, Problem, load_problem
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError, MotionError, RequestError
from hodyn_ros.files import Samples, write_results
from hodyn_ros.files.files import check_output
from hodyn_ros.files.inspection import (
    as_waypoints,
    even_times,
    gap_remarks,
    in_model_order,
    is_measurement,
    noise_remarks,
    refuse_contradictions,
)
from hodyn_ros.files.quantities import MOTION, MOTOR_ARRAYS
from hodyn_ros.files.samples import known_orders
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import name_of, unit_of
from hodyn_ros.plotting.checks import all_violations, unlimited_in
from hodyn_ros.retiming.scaling import TimedMotion, stretched
from hodyn_ros.retiming.timing import NewTiming, new_timing
from hodyn_ros.trajectory.planning import Waypoints, plan_motion
from hodyn_ros.trajectory.rounding import fit_waypoints
from hodyn_ros.trajectory.spline import STANDSTILL

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


def retime(
    given: Given,
    uniform: bool,
    slower_only: bool,
    drop_standstills: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find another timing, check it once more, write it and say what came out.

    Parameters
    ----------
    given : Given
        Robot and motion.
    uniform, slower_only, drop_standstills : bool
        Whether the whole motion is stretched by one factor, whether it may become slower
        alone, and whether standstills become instants.
    output : pathlib.Path or None
        File of the new motion.
    as_json : bool
        Whether JSON is printed instead of text.

    Raises
    ------
    HodynError
        If something given cannot be used, or the new motion exceeds a limit.
    """
    if uniform and drop_standstills:
        raise RequestError(
            '--drop-standstills is for a new timing along the path; leave it or --uniform out.'
        )
    how: dict[str, Any] = {
        'rate': given.rate,
        'keep_standstills': not drop_standstills,
        'slower_only': slower_only,
    }
    if output is not None:
        check_output(output)  # before the long work
    problem = load_problem(given)
    timing, results = _retimed(problem, uniform, how)
    limiting = {**problem.limiting, 'limits': timing.limits}
    for worst in all_violations(results, problem.model, **limiting):
        raise HodynError(
            f'The new motion exceeds the {worst.quantity} limit of {worst.joint_name}: '
            f'{worst.value:.6g} instead of {worst.limit:.6g}.'
        )
    if output is not None:
        write_results(output, results)
    unlimited = unlimited_in(results, problem.model, **limiting)
    # Limits of the second derivative of the torque that nobody gave.
    limits = problem.limits.effort_ddot, timing.limits.effort_ddot
    by_default = {
        name: float(own)
        for name, given_one, own in zip(problem.model.joint_names, *limits)
        if np.isinf(given_one) and np.isfinite(own)
    }
    if as_json:
        data = _data(problem, timing, results, output, unlimited)
        echo_json({**data, 'effort_ddot_by_default': by_default})
        return
    click.echo(
        f'{results.name}: {_text(timing, problem.model)}\n{kept(unlimited, problem.limits_from)}'
    )
    if by_default:
        click.echo(
            f'By default the {name_of("effort_ddot")} has a limit, too: the torque rate takes '
            '20 ms at least from zero to its limit.'
        )
    if output is not None:
        click.echo(f'Written: {output} ({len(results)} samples)')
        show_remarks((_EXECUTION[timing.motion is not None],))


def _text(timing: NewTiming, model: RobotModel) -> str:
    """How long the motion takes before and after, and what does not let it be faster."""
    before, after = number(timing.duration_before), number(timing.duration)
    text = f'from {before} s to {after} s{_said(timing, model)[1]}'
    worst = timing.limiting
    if worst is None or not timing.is_fastest:
        return text
    at = '' if worst.time is None else f' at {number(worst.time)} s'
    return (
        f'{text}\nWhat does not let it be faster: {name_of(worst.quantity)} of '
        f'{worst.name}{at} ({number(worst.value)} of {number(worst.limit)}).'
    )


def _retimed(
    problem: Problem, uniform: bool, how: Mapping[str, Any]
) -> tuple[NewTiming, Samples]:
    """New timing of a motion, and what it makes of it; remarks are shown on the way.

    Parameters
    ----------
    problem : Problem
    uniform : bool
    how : mapping of str to object
        Options of `new_timing`.

    Returns
    -------
    timing : NewTiming
    results : Samples
        Efforts and motors in the new timing.
    """
    samples = None if uniform else _samples_of_path(problem)
    before = problem.results() if uniform or how['slower_only'] else None
    path, remarks = None, tuple[str, ...]()
    if samples is not None:
        path, remarks = _path_through(problem.model, samples)
    if before is None:
        show_remarks(remarks)
    with nullcontext() if uniform else progress('Looking for the fastest timing'):
        wrenches: tuple[Wrench, ...] = ()
        if before is None:
            timing = new_timing(problem.model, path, **problem.limiting, **how)
        else:
            timing, wrenches = _new_timing(problem, path, before, how)
    if before is None or timing.factor is None:
        assert samples is not None
        fields: dict[str, Any] = {'name': samples.name, 'source': 'given'}
    else:
        remarks = before.remarks
        fields = {name: getattr(before, name) for name in ('name', 'start', 'source')}
    if before is not None:
        show_remarks(remarks)
    return timing, _results(problem, timing.times, timing.samples, wrenches, **fields)


def _data(
    problem: Problem,
    timing: NewTiming,
    results: Samples,
    output: Path | None,
    unlimited: Sequence[Unlimited],
) -> dict[str, Any]:
    """Everything for programs."""
    return {
        'robot': problem.model.name,
        'motion': results.name,
        'output': output,
        'samples': len(results),
        'limits_from': problem.limits_from,
        'duration_before': timing.duration_before,
        'duration': timing.duration,
        **_said(timing, problem.model)[0],
        'limiting': timing.limiting,
        'unlimited': unlimited,
        'provenance': problem.model.provenance.lines(),
    }


def _said(timing: NewTiming, model: RobotModel) -> tuple[dict[str, Any], str]:
    """What is said of a new timing of its kind alone, for programs and as text."""
    if timing.factor is not None:
        return {'factor': timing.factor}, f', {number(timing.factor, 6)} times as long.'
    deviation, standing = float(timing.deviation.max()), '\n'
    if timing.standstill:
        standing = (
            f'\nIt stands still for {number(timing.standstill)} s of this, as before '
            '(--drop-standstills leaves that out).\n'
        )
    kinds = {unit_of('rad', kind == 'prismatic') for kind in model.joint_types}
    unit = ' or '.join(sorted(kinds, reverse=True))
    return {
        'duration_uniform': timing.uniform_duration,
        'standstill': timing.standstill,
        'largest_distance_from_path': deviation,
    }, (
        f'; at constant speed of its parameter {number(timing.uniform_duration)} s.{standing}'
        f'Averaging its timing leaves the path by at most {number(deviation)} {unit}.'
    )


def _samples_of_path(problem: Problem) -> Samples:
    """Read samples whose path is to be kept, and refuse what is none.

    Raises
    ------
    RequestError
        If they are measurements, have wrenches, or another interpolation is asked for.
    """
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


def _path_through(
    model: RobotModel, samples: Samples
) -> tuple[TimedMotion, tuple[str, ...]]:
    """Motion of class C4 through waypoints, or samples of a smooth motion; and remarks on it.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        In any order.

    Returns
    -------
    path : function of time
        A `MotionSpline`.
    remarks : tuple of str
    """
    ordered = as_waypoints(in_model_order(model, samples))
    told = ordered.remarks
    motion = ordered.motion
    if ordered.is_waypoints:
        rows = [motion[:, k] if k < motion.shape[1] else None for k in range(3)]
        waypoints = Waypoints(ordered.joint_names, ordered.times, *rows)  # type: ignore[arg-type]
        plan = plan_motion(waypoints, model.joint_names)
        return plan.motion, (*told, *plan.remarks, *plan.warnings)
    refuse_contradictions(model, ordered)
    ordered, rounded = even_times(ordered)
    ends = np.full((2, _AT_ENDS, model.n_joints), np.nan)
    known = min(_AT_ENDS, motion.shape[1] - 1)
    ends[:, :known] = motion[[0, -1], 1 : known + 1]
    ends[np.abs(ends) <= STANDSTILL] = 0.0
    fitted = fit_waypoints(
        ordered.times,
        motion[:, 0],
        start=ends[0],
        end=ends[1],
        joint_names=ordered.joint_names,
    )
    seen = (*noise_remarks(ordered), *gap_remarks(ordered))
    return fitted.motion, (*told, *seen, *rounded, *fitted.remarks)


def _new_timing(
    problem: Problem, path: TimedMotion | None, before: Samples, how: Mapping[str, Any]
) -> tuple[NewTiming, tuple[Wrench, ...]]:
    """New timing of samples as they are known, or of their path, and their wrenches in it.

    Parameters
    ----------
    problem : Problem
    path : function of time, or None
        None: the samples are stretched.
    before : Samples
        The motion as it is.
    how : mapping of str to object
        Options of `new_timing`.

    Returns
    -------
    timing : NewTiming
    wrenches : tuple of Wrench

    Raises
    ------
    RequestError
        If orders that limits need are not known at some samples.
    """
    model, limits = problem.model, problem.limiting
    # An order that is lacking at one sample is not used at any.
    known = known_orders(before.motion)
    lowest = int(known.min())
    lacks = np.count_nonzero(known == lowest) if lowest < before.motion.shape[1] else 0
    wrenches = [
        replace(wrench, values=np.asarray(wrench.values)[:, : max(lowest - 2, 1)])
        for wrench in before.wrenches
    ]
    # Estimates are made of each sample alone, and wrenches known there only.
    is_executed = (
        before.source != 'measured' and not wrenches and len(before) > 1 and lowest > 2
    )
    try:
        timing = new_timing(
            model,
            path,
            **limits,
            **how,
            timing='uniform' if path is None else 'path',
            given=(before.times, before.motion[:, :lowest]),
            wrench=wrenches,
            is_executed=is_executed,
        )
    except MotionError as error:
        if not lacks:
            raise
        raise RequestError(
            f'{before.name}: {MOTION[lowest]} and more are not known at {lacks} of {len(before)} '
            'samples, so that limits which need them cannot be kept there. Cut these samples off, '
            'or leave such limits out of --config; accelerations are needed in any case.'
        ) from error
    factor = timing.factor or 1.0
    return timing, tuple(
        replace(wrench, values=stretched(wrench.values, factor)) for wrench in wrenches
    )


def _results(
    problem: Problem,
    times: Array,
    motion: Array,
    wrenches: Sequence[Wrench] = (),
    **fields: Any,
) -> Samples:
    """Efforts and motors along a motion that is known at all samples."""
    model, actuators = problem.model, problem.actuators
    motion = motion[:, : ORDER + 3]
    applied = [
        replace(wrench, values=np.asarray(wrench.values)[:, : motion.shape[1] - 2])
        for wrench in wrenches
    ]
    effort = inverse_dynamics(model, motion, applied or None)
    if actuators is not None:
        motors = motor_motion(actuators, motion, effort, order=None)
        fields |= zip(MOTOR_ARRAYS, motors)
        fields['motor_names'] = actuators.motor_names
        fields['motor_joints'] = tuple(np.take(model.joint_names, actuators.joint_of_motor))
    return Samples.of_model(
        model, times, motion, effort, wrenches=tuple(wrenches), **fields
    )
