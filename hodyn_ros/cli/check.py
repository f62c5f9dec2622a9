"""`hodyn check`: does a motion keep the limits of a robot, and why did a robot stop.

A robot that stopped is looked at in what it was sent and what was measured (`--recorded`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros import plotting
from hodyn_ros.analysis.limits import limited, no_limit, unlimited
from hodyn_ros.analysis.recorded_signals import Recorded
from hodyn_ros.analysis.stops import find_stop_causes
from hodyn_ros.cli.output import PICTURES, check_picture, save, show_remarks, span
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.errors import IdentificationError, RequestError
from hodyn_ros.files import Samples
from hodyn_ros.files.files import read_motion
from hodyn_ros.files.inspection import in_model_order
from hodyn_ros.files.samples import times_from
from hodyn_ros.kinematics.loop_states import NEAR, loop_singularity
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity
from hodyn_ros.names import instant, listed, name_of, number

VIOLATION = 1
"""Exit code if a limit is exceeded."""

_JUMPS = (
    'The torques jump at waypoints, so there is no bound for torque rate and jerk: the motion '
    'keeps no limits of them.'
)
_NEAR = (
    f'That is near: below a ratio of {NEAR:g} dependent joints move many times as fast as the '
    'independent ones, and accelerate by far more.'
)


def check(
    given: Given,
    recorded: str | None,
    measured: str | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Compare a motion with the limits, and return the exit code.

    Parameters
    ----------
    given : Given
        Robot and motion.
    recorded : {'commanded', 'measured'} or None
        What the motion is, if it is a recording of a robot that stopped.
    measured : str or None
        Measurements beside recorded commands: a file, or a topic of the same bag.
    output : pathlib.Path or None
        Picture of the place where the robot stopped.
    as_json : bool
        Whether JSON is printed instead of tables.

    Returns
    -------
    int
        0, or 1 if a limit is exceeded.

    Raises
    ------
    HodynError
        If something given cannot be used.
    """
    if recorded or measured:
        is_exceeded = stopped(given, recorded, measured, output, as_json)
        return VIOLATION if is_exceeded else 0
    if output is not None:
        raise RequestError(
            '--output is for recordings (--recorded); of a motion: hodyn plot.'
        )
    problem = load_problem(given)
    answer = compared(problem, problem.results())
    problem.show(answer, as_json)
    return 0 if answer.data['is_kept'] else VIOLATION


def compared(problem: Problem, results: Samples) -> Answer:
    """A motion beside the limits of a robot.

    Parameters
    ----------
    problem : Problem
    results : Samples

    Returns
    -------
    Answer
        Times in [s], shares of limits by joint or motor.
    """
    quantities = limited(problem.model, results, **problem.limiting)
    exceeded = [*_exceeded(quantities, results)]
    without = unlimited(quantities, problem.actuators)
    nearest = _singularity(problem.model, results)
    # The efforts jump along the motion, so that their rate has no bound.
    has_jumps = results.continuous_order < 0
    start, end = results.times[[0, -1]].tolist()
    # Within which nothing is compared [s].
    largest_step = float(np.diff(results.times).max(initial=0.0))
    data = {
        'motion': results.name,
        'samples': len(results),
        'start': start,
        'end': end,
        'largest_step': largest_step,
        'is_kept': not exceeded and not has_jumps,
        'has_jumps': has_jumps,
        'violations': exceeded,
        'used': [
            {
                'quantity': quantity.name,
                'is_checked': quantity.is_checked,
                'samples_checked': dict(zip(quantity.owners, quantity.n_known)),
                'shares': dict(zip(quantity.owners, quantity.peaks)),
            }
            for quantity in quantities
        ],
        'unlimited': without,
        'singularity': nearest,
        'remarks': results.remarks,
    }
    count = len(exceeded)
    verdict = _JUMPS * has_jumps or 'All limits that could be checked are kept.'
    if count:
        verdict = f'{count} {"limit is" if count == 1 else "limits are"} exceeded.'
        verdict += f'\n{_JUMPS}' * has_jumps
    said = (verdict, *_near(nearest), no_limit(without))
    parts: list[Table | str] = [
        f'{results.name}: {span(results)}, at most {number(largest_step)} s apart\n'
        f'limits: {problem.limits_from}',
        Table('', _EXCEEDED, exceeded),
        Table('', _USED, quantities),
        '\n'.join(filter(None, said)),
    ]
    return Answer(parts, data)


def _exceeded(quantities: Sequence[Quantity], results: Samples) -> Iterator[dict[str, Any]]:
    """Records of the limits that are exceeded."""
    for quantity in quantities:
        units = dict(zip(quantity.owners, quantity.units))
        for item in quantity.violations():
            time = float(results.times[item.sample])
            yield {**item._asdict(), 'time': time, 'unit': units[item.joint_name]}


def _excess(record: dict[str, Any]) -> str:
    """How far a value lies beyond a limit, relative to one that says something."""
    limit = record['limit']
    excess = abs(record['value'] - limit)
    # Relative to where the zero of a joint happens to be it says nothing.
    if record['quantity'] == 'position' or limit == 0.0:
        return number(excess, 3)
    return f'{100.0 * excess / abs(limit):.1f} %'


def _used(quantity: Quantity) -> str | None:
    """Largest part of a limit that is used."""
    worst = quantity.worst
    return None if worst is None else f'{100.0 * quantity.peaks[worst]:.1f} %'


def _told(quantity: Quantity) -> str:
    """Whose limit a quantity uses most of, or why it is not checked."""
    worst, known, is_limited = quantity.worst, quantity.n_known, quantity.is_limited
    if not is_limited.any():
        return 'not checked: no limit is known'
    if not quantity.is_checked:
        return 'not checked: the motion does not determine it'
    words = [] if worst is None else [f'by {quantity.owners[worst]}']
    without = [name for name, has in zip(quantity.owners, is_limited) if not has]
    words += [f'no limit for {listed(without)}'] * bool(without)
    least, N = int(known[is_limited].min()), len(quantity.values)
    words += [f'known at {least} of {N} samples only'] * (least < N)
    return '; '.join(words)


_EXCEEDED = (
    Column('quantity', 'exceeded', form=name_of),
    Column('joint_name', 'joint'),
    Column('time', 'worst at', 's', instant),
    Column('value'),
    Column('limit'),
    Column(_excess, 'by'),
    Column('unit', form='[{}]'.format),
)
_USED = (
    Column('name', 'quantity', form=name_of),
    Column(_used, 'used of its limit'),
    Column(_told, ''),
)


def _singularity(model: RobotModel, results: Samples) -> dict[str, Any] | None:
    """Where a motion is nearest to a singular position of closed loops; None without any."""
    known = np.flatnonzero(np.isfinite(results.motion[:, 0]).all(axis=-1))
    if model.closure is None or not len(known):
        return None
    found = loop_singularity(model, results.motion[known])
    nearest = int(found.distance.argmin())
    return {
        'distance': found.distance[nearest],
        'ratio': found.ratio[nearest],
        'joint': str(found.joint[nearest]),
        'time': results.times[known[nearest]],
        'is_near': bool((found.ratio < NEAR).any()),
    }


def _near(nearest: dict[str, Any] | None) -> list[str]:
    """Sentences on a singular position."""
    if nearest is None or not np.isfinite(nearest['distance']):
        return []
    return [
        f'Closed loops: at {instant(nearest["time"])} s the independent joints are about '
        f'{number(nearest["distance"], 3)} (rad, m) away from where they do not determine '
        f'{nearest["joint"]} (ratio of singular values {number(nearest["ratio"], 3)}).'
    ] + [_NEAR] * nearest['is_near']


def stopped(
    given: Given,
    recorded: str | None,
    measured: str | None,
    output: Path | None,
    as_json: bool,
) -> bool:
    """Say why a robot stopped, and return whether a limit is certainly exceeded.

    Parameters
    ----------
    given : Given
        Robot and recording.
    recorded : {'commanded', 'measured'} or None
        What the recording is.
    measured : str or None
        File of measurements beside commands, or their topic in the same bag.
    output : pathlib.Path or None
        Picture; not written if no cause was found.
    as_json : bool
        Whether JSON is printed instead of text.

    Returns
    -------
    bool

    Raises
    ------
    RequestError
        If options contradict each other or have no effect on a recording.
    """
    _refuse_options(given, recorded, measured is not None, output)
    problem = load_problem(given, until_limits=True)
    sources = [_recorded_samples(problem, given.motion, given.topic)]
    if measured is not None:
        path = Path(measured)
        is_file = path.exists() or bool(path.suffix)
        where = (path, None) if is_file else (given.motion, measured)
        sources.append(_recorded_samples(problem, *where))
    recordings: list[Recorded | None] = [
        _recorded(each, sources[0].start) for each in sources
    ]
    if recorded == 'measured':
        recordings.insert(0, None)
    analysis = find_stop_causes(problem.model, problem.limits, *recordings)
    picture = ''
    if output is not None:
        picture = f'{"Written" if analysis.causes else "Not written"}: {output}'
        if analysis.causes:
            save(output, plotting.plot_stop(problem.model, analysis))
    torques = _torques(problem, sources[-1]) if len(recordings) == 2 else ''
    found = analysis.answer
    data = {
        'recordings': [samples.name for samples in sources],
        'samples': [len(samples) for samples in sources],
        **found.data,
        'torques': torques,
    }
    head = '\n'.join([*map(_head, sources), f'limits: {problem.limits_from}'])
    beside = f'Measured torques beside those of the model: {torques}' * bool(torques)
    problem.show(Answer([head, *found.parts, beside, picture], data), as_json)
    return analysis.verdict == 'exceeded'


def _refuse_options(
    given: Given, recorded: str | None, beside: bool, output: Path | None
) -> None:
    """Refuse options that contradict each other, or say nothing of a recording."""
    if beside and recorded == 'measured':
        raise RequestError(
            '--measured is what was measured beside the commands in MOTION, but --recorded '
            'measured says that MOTION is measured; leave one of them out.'
        )
    if output is not None:
        check_picture(output, PICTURES)
    for name in ('derivatives', 'rate', 'interpolation'):
        if getattr(given, name) != getattr(Given(given.robot), name):
            raise RequestError(
                f'--{name} has no effect on a recording, which is looked at as it was sent or '
                'measured (--recorded, --measured); leave it out.'
            )
    if given.margins:
        raise RequestError(
            '--margin has no effect on a recording: a robot stops at its limits. Leave it out.'
        )


def _recorded_samples(problem: Problem, path: Path, topic: str | None) -> Samples:
    """Recorded samples in the order of the model; refuses trajectories."""
    samples = read_motion(path, topic=topic, joint_names=problem.model.joint_names)
    if samples.is_waypoints:
        raise RequestError(
            f'{samples.name} is a trajectory: what the robot was sent between its waypoints is '
            'not in it. Leave --recorded out: its motion is checked (--interpolation jtc).'
        )
    ordered = in_model_order(problem.model, samples)
    show_remarks(ordered.remarks)
    return ordered


def _recorded(samples: Samples, start: int) -> Recorded:
    """Arrays of samples, with times from a common start."""
    motion = samples.motion
    velocity = motion[:, 1] if motion.shape[1] > 1 else None
    times = times_from(samples, start)
    return Recorded(times, motion[:, 0], velocity, samples.by_joint('effort'))


def _torques(problem: Problem, measured: Samples) -> str:
    """What would explain that measured torques are not those of the model."""
    if not np.isfinite(measured.effort[:, :1]).any():
        return ''
    # With all of control, which takes long.
    from hodyn_ros.identification.compare import compare

    try:
        found = compare(problem.model, measured)
    except IdentificationError:  # too short
        return ''
    is_told = any(np.isfinite(item.shares).any() for item in found.explanations)
    return found.summary if is_told else ''  # or too slow


def _head(samples: Samples) -> str:
    """Line on a recording."""
    step = number(1e3 * float(np.median(np.diff(samples.times))))
    return f'{samples.name}: {span(samples)}, {step} ms apart'
