"""`hodyn retime`: a new timing of a motion, along its path or of all of it by one factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.analysis.limits import kept, limited, unlimited, violations_of
from hodyn_ros.cli.output import progress, show_remarks
from hodyn_ros.cli.problem import ORDER, Given, Problem, load_problem
from hodyn_ros.display import Answer
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError, MotionError, RequestError
from hodyn_ros.files import Samples, compute, write_results
from hodyn_ros.files.derivatives import curve_through
from hodyn_ros.files.files import check_output
from hodyn_ros.files.inspection import Inspected, inspect, is_rounded
from hodyn_ros.files.quantities import MOTION
from hodyn_ros.files.samples import known_orders
from hodyn_ros.model.violations import Quantity
from hodyn_ros.names import name_of, number, unit_of
from hodyn_ros.retiming.scaling import stretched
from hodyn_ros.retiming.timing import RISE_TIME, NewTiming, new_timing

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
    output: Path | None,
    as_json: bool,
) -> None:
    """Find another timing, check it once more, write it and say what came out.

    Parameters
    ----------
    given : Given
        Robot and motion.
    uniform, slower_only : bool
        Whether the whole motion is stretched by one factor, and whether it may become slower
        alone.
    output : pathlib.Path or None
        File of the new motion.
    as_json : bool
        Whether JSON is printed instead of text.

    Raises
    ------
    HodynError
        If something given cannot be used, or the new motion exceeds a limit.
    """
    if output is not None:
        check_output(output)  # before the long work
    problem = load_problem(given)
    timing, results = _retimed(problem, uniform, slower_only)
    limiting = {**problem.limiting, 'limits': timing.limits}
    quantities = limited(problem.model, results, **limiting)
    for worst in violations_of(quantities):
        raise HodynError(
            f'The new motion exceeds the {worst.quantity} limit of {worst.joint_name}: '
            f'{worst.value:.6g} instead of {worst.limit:.6g}.'
        )
    if output is not None:
        write_results(output, results)
    problem.show(_answer(problem, timing, results, quantities, output), as_json)
    if output is not None and not as_json:
        show_remarks((_EXECUTION[timing.motion is not None],))


def _answer(
    problem: Problem,
    timing: NewTiming,
    results: Samples,
    quantities: Sequence[Quantity],
    output: Path | None,
) -> Answer:
    """How long the motion takes before and after, and what does not let it be faster."""
    model, limits = problem.model, problem.limits.effort_ddot
    missing = unlimited(quantities, problem.actuators)
    # Limits of the second derivative of the torque that nobody gave.
    own = zip(model.joint_names, limits, timing.limits.effort_ddot)
    by_default = {name: float(x) for name, a, x in own if np.isinf(a) and np.isfinite(x)}
    before, after = number(timing.duration_before), number(timing.duration)
    lines = [f'{results.name}: from {before} s to {after} s']
    if timing.factor is not None:
        of_kind: dict[str, Any] = {'factor': timing.factor}
        lines[0] += f', {number(timing.factor, 6)} times as long.'
    else:
        of_kind = {
            'duration_uniform': timing.uniform_duration,
            'standstill': timing.standstill,
            'largest_distance_from_path': float(timing.deviation.max()),
        }
        constant, pause, distance = map(number, of_kind.values())
        kinds = {unit_of('rad', kind == 'prismatic') for kind in model.joint_types}
        unit = ' or '.join(sorted(kinds, reverse=True))
        lines[0] += f'; at constant path velocity {constant} s.'
        if timing.standstill:
            lines.append(f'It stands still for {pause} s, as before.')
        lines.append(
            f'The path is kept to within {distance} {unit} (smoothing of the time law).'
        )
    worst = timing.limiting
    if worst is not None and timing.is_fastest:
        at = '' if worst.time is None else f' at {number(worst.time)} s'
        lines.append(
            f'What does not let it be faster: {name_of(worst.quantity)} of {worst.name}{at} '
            f'({number(worst.value)} of {number(worst.limit)}).'
        )
    lines.append(kept(missing, problem.limits_from))
    if by_default:
        lines.append(
            f'The {name_of("effort_ddot")} is bounded by a choice of retime, not by a limit of '
            f'the robot: the torque rate takes at least {number(1e3 * RISE_TIME)} ms from zero to '
            'its limit (rise_time in Python; limits.JOINT.effort_ddot replaces it).'
        )
    lines.append(
        'Nothing was written; -o FILE writes the new motion.'
        if output is None
        else f'Written: {output} ({len(results)} samples)'
    )
    data = {
        'motion': results.name,
        'output': output,
        'samples': len(results),
        'duration_before': timing.duration_before,
        'duration': timing.duration,
        **of_kind,
        'limiting': timing.limiting,
        'unlimited': missing,
        'effort_ddot_by_default': by_default,
        'remarks': results.remarks,
    }
    return Answer(['\n'.join(lines)], data)


def _retimed(
    problem: Problem, uniform: bool, slower_only: bool
) -> tuple[NewTiming, Samples]:
    """New timing of a motion, and what it makes of it.

    Parameters
    ----------
    problem : Problem
    uniform, slower_only : bool

    Returns
    -------
    timing : NewTiming
    results : Samples
        Efforts and motors in the new timing, with the remarks on the motion.

    Raises
    ------
    RequestError
        If orders that limits need are not known at some samples.
    """
    model, path, before, fields = problem.model, None, None, dict[str, Any]()
    options: dict[str, Any] = {
        **problem.limiting,
        'slower_only': slower_only,
        'rate': problem.given.rate,
    }
    if not uniform:
        seen = _inspected_path(problem)
        path, known = curve_through(model, seen, is_path=True)
        fields = {'name': seen.samples.name, 'source': 'given', 'remarks': known.remarks}
    if uniform or slower_only:
        before = problem.results()
        options |= {'timing': 'uniform' if uniform else 'path', **_as_it_is(before)}
    try:
        with progress('Looking for a timing'):
            timing = new_timing(model, path, **options)
    except MotionError as error:
        if before is None:
            raise
        orders = known_orders(before.motion)
        if (lowest := int(orders.min())) == before.motion.shape[1]:
            raise
        raise RequestError(
            f'{before.name}: {MOTION[lowest]} and more are not known at '
            f'{np.count_nonzero(orders == lowest)} of {len(before)} samples, so that limits which '
            'need them cannot be kept there. Cut these samples off, or leave such limits out of '
            '--config; accelerations are needed in any case.'
        ) from error
    motion = timing.samples[:, : ORDER + 3]
    if timing.factor is not None and before is not None:
        names = ('name', 'start', 'source', 'remarks')
        fields = {name: getattr(before, name) for name in names}
        fields['wrenches'] = tuple(
            _of_orders(
                replace(wrench, values=stretched(wrench.values, timing.factor)),
                motion.shape[1] - 2,
            )
            for wrench in options['wrench']
        )
    along = Samples.of_model(model, timing.times, motion, **fields)
    results = compute(
        model, along, actuators=problem.actuators, order=ORDER, derivatives='given'
    )
    return timing, replace(results, remarks=fields['remarks'])


def _as_it_is(before: Samples) -> dict[str, Any]:
    """Options of `new_timing` for samples that are stretched, or stay as they are."""
    # An order that is lacking at one sample is not used at any.
    lowest = int(known_orders(before.motion).min())
    wrenches = [_of_orders(wrench, max(lowest - 2, 1)) for wrench in before.wrenches]
    return {
        'given': (before.times, before.motion[:, :lowest]),
        'wrench': wrenches,
        # Estimates are made of each sample alone, and wrenches known there only.
        'is_executed': before.source != 'measured'
        and not wrenches
        and len(before) > 1
        and lowest > 2,
    }


def _of_orders(wrench: Wrench, orders: int) -> Wrench:
    """Wrench with so many orders at most."""
    return replace(wrench, values=np.asarray(wrench.values)[:, :orders])


def _inspected_path(problem: Problem) -> Inspected:
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
    seen = inspect(problem.model, problem.samples())
    samples, is_spline = seen.samples, given.derivatives == 'spline'
    is_noisy = seen.kind == 'measured' and not is_rounded(samples)
    if given.derivatives == 'estimate' or (not is_spline and is_noisy):
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
    return seen
