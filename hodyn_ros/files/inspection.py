"""What the motion of a file is like, found once for all commands.

Which joints it has, units, turns of encoders, waypoints or samples, planned or measured, noise,
gaps, jumps, values that are held, rounded times and derivatives that contradict the positions.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import NamedTuple

import numpy as np

from hodyn_ros.errors import MotionError
from hodyn_ros.files.quantities import MOTION
from hodyn_ros.files.samples import Samples
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed, unit_of
from hodyn_ros.trajectory.differences import NORMAL, divided_differences, scatter_of
from hodyn_ros.trajectory.rounding import rounding
from hodyn_ros.typing import Array, Flags

_LONGEST_STEP = 0.1  # between samples of positions alone; longer ones divide waypoints [s]
_GAP = 5.0  # usual steps without a sample
# Where no limit says how far a joint turns, positions beyond this are in other units [rad].
_FARTHEST_TURN = 6.0 * np.pi
# Positions over the farthest limit: worth a remark; of several joints, or of one, in other units,
# if it turns by more than half a turn.
_DOUBTFUL, _SEVERAL, _CERTAIN = 1.5, 4.0, 10.0
_HALF_TURN, _TURN = np.pi, 2.0 * np.pi
# Shares of its limit of velocity between which a joint moves; degrees make it faster.
_SLOWEST, _FASTEST = 1.5e-3, 10.0
_USUAL_VELOCITY = 3.0  # where there is no limit [rad/s] or [m/s]
# Steps of times, also where positions may be degrees, and motion, from which on that is told.
_LEAST_STEP, _LEAST_IN_DEGREES, _LEAST_MOTION = 0.2, 1.0, 0.1
# Samples that say how fast a joint turns; angle up to which a step goes on so [rad].
_RECENT, _CONTINUES = 8, 0.5 * np.pi
# Samples around a step, and how many times their usual steps a jump is.
_AROUND, _JUMP = 9, 4.0
# Share of samples that are held for as long as the others; steps in units of the last digit.
_HELD, _LEAST_STEPS = 0.8, 8.0

_STRETCH = 8  # steps that are compared together
_FEWEST_STEPS = 4  # Between a few samples anything may happen.
# Velocities that are measured lag, are filtered, or are zero below a threshold.
_SHARE = 0.1
_NEGLIGIBLE = 0.01  # rad/s or m/s; ten times as much for each further derivative
# From here on the order below may jump where a motion is put together of pieces; beyond, zeros say
# that it is constant on each of them.
_JUMPING = 3
_LARGEST_ERROR = 8.0  # of positions, in standard deviations of their noise
_CLOSELY = 3.0  # times what a spline through the order below, its noise and digits leave

# Each difference of noise is nearly twice as large as the one before it, sqrt(70 / 20) = 1.87 and
# less for the second and third; those of a motion that is sampled densely become smaller.
_NOISY, _NOISE_ORDER, _FEWEST_NOISY = 1.5, 3, 30
_LEAST_NOISE = 1.0  # of the third derivative that is worth a word [rad/s^3] or [m/s^3]
_MOST_NAMED = 3
# Noise that is more than six digits of a position leave out, which is three millionths of it, or
# than the seven of float32 if there are more than six, and that makes a larger jerk than the
# motion over some time [s].
_DIGITS, _MORE_THAN_DIGITS, _MORE_THAN_FLOAT32 = 6, 5e-6, 1e-6
_SMALLEST_POSITION, _SMOOTHING = 0.1, 0.1
# Steps of times are uneven by this share; jerk over them and over even ones, if their clock errs.
_UNEVEN, _ERRING = 1e-3, 5.0
# Units in the last place by which equal steps may differ; share of a step that is worth a word.
_ROUNDED_BY, _ROUNDED_STEP = 2.0, 1e-5

_ERRING_CLOCK = (
    'The times are uneven, but the positions would be smooth at even ones: the clock that stamped '
    'them errs, and a motion at these times jerks from sample to sample. If the samples were '
    'taken at even times, write those.'
)


class Inspected(NamedTuple):
    """Samples of a file as a model takes them, and what they are like."""

    samples: Samples
    """Of the joints of the model, in its order; `remarks` say what was changed or left out and
    what is doubtful."""
    kind: str
    """'waypoints', between which the motion is open, 'samples' of a planned or computed motion, or
    'measured'."""


def inspect(model: RobotModel, samples: Samples) -> Inspected:
    """Find out what the motion of a file is like.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        All samples of a motion, with the joints of the model at least, in any order.

    Returns
    -------
    Inspected

    Raises
    ------
    JointNameError, MotionError
        See `in_model_order`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples
    >>> from hodyn_ros.files.inspection import inspect
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(('elbow', 'shoulder'), [0.0, 1.0], [[[0.1, 0.2]], [[0.3, 0.4]]])
    >>> found = inspect(model, samples)
    >>> found.kind, found.samples.motion[0].tolist()
    ('waypoints', [[0.2, 0.1]])
    """
    samples = in_model_order(model, samples)
    if _are_waypoints(samples):
        return Inspected(replace(samples, is_waypoints=True), 'waypoints')
    samples = _without_held(samples)
    clock = np.zeros(1) if samples.is_measured else _noise_of_clock(samples)
    is_measured = samples.is_measured or _is_measured(samples, clock)
    remarks = [
        *samples.remarks,
        _gaps(samples),
        _ERRING_CLOCK if is_measured and clock.any() else '',
        '' if is_measured else _jumps(model, samples),
    ]
    samples = replace(samples, remarks=tuple(filter(None, remarks)))
    return Inspected(samples, 'measured' if is_measured else 'samples')


def in_model_order(model: RobotModel, samples: Samples) -> Samples:
    """Samples of a motion with the joints of a model, whose continuous ones turn on.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        In any order, maybe of more joints.

    Returns
    -------
    Samples
        With remarks on what was changed or left out, and on positions and times that are
        doubtful. Waypoints are taken as they are.

    Raises
    ------
    JointNameError
        If a joint of the model is missing.
    MotionError
        If positions are unknown or in other units, times are in other units, or a step of a
        continuous joint is neither motion nor a turn of its encoder.
    """
    ordered, unused = samples.in_order(model.joint_names)
    remarks = list(samples.remarks)
    if unused:
        remarks.append(f'Left out, since the model does not have them: {listed(unused)}.')
    ordered.refuse_unknown_positions()
    if len(ordered):
        beyond = _beyond_limits(model, ordered)
        remarks += filter(None, (beyond, _doubtful_times(model, ordered, bool(beyond))))
        ordered = _turned_on(model, ordered, remarks)
    return replace(ordered, remarks=tuple(remarks))


def _turned_on(model: RobotModel, samples: Samples, remarks: list[str]) -> Samples:
    """Samples whose continuous joints turn on beyond a turn; remarks on them are added."""
    motion, times = samples.motion, samples.times
    for j in [j for j, kind in enumerate(model.joint_types) if kind == 'continuous']:
        name, positions = model.joint_names[j], motion[:, 0, j]
        if _are_waypoints(samples):
            steps = np.diff(positions)
            for i in np.flatnonzero(np.abs(steps) > _HALF_TURN)[:1].tolist():
                remarks.append(
                    f'{name} goes by {steps[i]:.4g} rad from {times[i]:.4g} to '
                    f'{times[i + 1]:.4g} s, the long way round, as its waypoints say.'
                )
        elif (turns := _turns_of(times, positions, name, samples)).any():
            motion = motion.copy()
            motion[1:, 0, j] += _TURN * np.cumsum(turns)
            remarks.append(
                f'{name} turns on where its position jumps by a turn, the first time at '
                f'{times[np.flatnonzero(turns)[0]]:.4g} s.'
            )
    return replace(samples, motion=motion)


def _turns_of(times: Array, positions: Array, name: str, samples: Samples) -> Array:
    """Whole turns that are lacking in each step of a joint, shape (N - 1,).

    A step continues the motion before it. Of measurements one that does not, as beside a spike, is
    taken the short way.
    """
    steps, lasting = np.diff(positions), np.diff(times)
    turns = np.zeros(len(steps))
    speeds = steps / np.where(lasting > 0.0, lasting, np.inf)
    expected = np.append(speeds[1:2], speeds[:-1])[: len(steps)] * lasting
    for i in np.flatnonzero(np.abs(steps - expected) > _HALF_TURN).tolist():
        recent = slice(max(0, i - _RECENT), i) if i else slice(1, 2)
        span = float(lasting[recent].sum())
        speed = float(steps[recent].sum()) / span if span > 0.0 else 0.0
        expected_step = abs(speed * lasting[i])
        if expected_step > (_FARTHEST_TURN if i else _HALF_TURN):
            speed = (
                0.0  # at the start the turn is rather behind, and nobody can count so many
            )
        turns[i] = round((speed * lasting[i] - steps[i]) / _TURN)
        if abs(steps[i] + _TURN * turns[i] - speed * lasting[i]) > _CONTINUES:
            if not samples.is_measured:
                raise MotionError(
                    f'{samples.name}: {name} goes by {steps[i]:.4g} rad from {times[i]:.4g} to '
                    f'{times[i + 1]:.4g} s, expected about {speed * lasting[i]:.2g} rad, or that '
                    'and a turn of its encoder. Correct these positions, or give the motions '
                    'before and behind by themselves.'
                )
            turns[i] = -round(steps[i] / _TURN)
        steps[i] += _TURN * turns[i]
    return turns


def _beyond_limits(model: RobotModel, samples: Samples) -> str:
    """Remark on positions far beyond the limits, or none; refuse those in other units."""
    kinds = np.array(model.joint_types)
    farthest = np.abs(samples.motion[:, 0]).max(axis=0)
    reach = np.maximum(np.abs(model.limits.lower), np.abs(model.limits.upper))
    known = np.isfinite(reach) & (reach > 0.0) & (kinds != 'continuous')
    factor = np.where(known, farthest / np.where(known, reach, 1.0), 0.0)
    turns = (kinds == 'revolute') & (farthest > _HALF_TURN)
    several = turns & (factor > _SEVERAL)
    is_far = (turns & (factor > _CERTAIN)) | (several & (np.count_nonzero(several) > 1))
    is_far |= (kinds == 'prismatic') & (factor > _CERTAIN)
    is_far |= (kinds == 'revolute') & ~known & (farthest > _FARTHEST_TURN)
    remarkable = is_far if is_far.any() else factor > _DOUBTFUL
    if not remarkable.any():
        return ''
    j = int(np.where(remarkable, np.where(known, factor, farthest), -1.0).argmax())
    text = f'{model.joint_names[j]} is at {farthest[j]:.4g}'
    unit, units = ('m', 'millimetres') if kinds[j] == 'prismatic' else ('rad', 'degrees')
    if known[j]:
        text += f', {factor[j]:.2g} times its limit of {reach[j]:.4g} {unit}'
    if not is_far.any():
        return f'{text}: are these {units}, or percent?'
    factor_to, expected = ('1 / 1000', 'metres') if unit == 'm' else ('pi / 180', 'radians')
    raise MotionError(
        f'{samples.name}: {text}, expected {expected}; this looks like {units}, or percent of its '
        f'range. Multiply positions and their derivatives by {factor_to}, or by what else makes '
        f'them {expected}. If these are positions of a motor before its gear, divide them by its '
        'ratio.'
    )


def _velocity_limits(model: RobotModel) -> tuple[Array, Flags]:
    """Limits of the velocities (n,), usual ones where there is none, and where there is one."""
    limits = model.limits.velocity
    known = np.isfinite(limits) & (limits > 0.0)
    return np.where(known, limits, _USUAL_VELOCITY), known


def _usual_step(times: Array) -> float:
    """Median of the steps of times; zero of a single one."""
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def _doubtful_times(model: RobotModel, samples: Samples, may_be_degrees: bool) -> str:
    """Remark on times in which a joint is too fast, or that count samples, or none.

    Refuse times in which all joints are slower than any robot, though they move.
    """
    times = samples.times
    step = _usual_step(times)
    if not step > 0.0:
        return ''
    stride = min(len(times) - 1, max(1, round(_LONGEST_STEP / step)))
    positions = samples.motion[::stride, 0]
    lasting = np.diff(times[::stride])[:, None]
    speeds = np.abs(np.diff(positions, axis=0)) / np.where(lasting > 0.0, lasting, np.inf)
    fastest, known = _velocity_limits(model)
    least = _LEAST_IN_DEGREES if may_be_degrees else _LEAST_STEP
    slowest = (np.rad2deg(_SLOWEST) if may_be_degrees else _SLOWEST) * fastest
    is_slow = (speeds.max(axis=0) < slowest).all() and not samples.is_measured
    if is_slow and step >= least and np.ptp(positions, axis=0).max() >= _LEAST_MOTION:
        powers = (('milliseconds', 3), ('microseconds', 6), ('nanoseconds', 9))
        unit, power = powers[min(2, max(0, int(np.log10(step / _LEAST_STEP)) // 3))]
        raise MotionError(
            f'{samples.name}: the times are {step:.4g} apart, and no joint moves by more than '
            f'{speeds.max():.2g} a second, expected seconds; this looks like {unit}. Divide the '
            f'times by 1e{power}.'
        )
    if (
        not samples.is_waypoints
        and len(times) > _FEWEST_NOISY
        and (np.diff(times) == 1.0).all()
    ):
        return (
            f'The times are {times[0]:g}, {times[1]:g}, ... s: are they numbers of samples?'
        )
    speeds[speeds == 0.0] = np.nan
    moving = np.isfinite(speeds).any(axis=0) & known
    factor = np.zeros(len(fastest))
    factor[moving] = np.nanmedian(speeds[:, moving], axis=0) / fastest[moving]
    if factor.max() <= _FASTEST:
        return ''
    j = int(factor.argmax())
    return (
        f'{model.joint_names[j]} moves {factor[j]:.2g} times as fast as its limit of velocity '
        'allows: are its positions, or the times, in other units?'
    )


def _are_waypoints(samples: Samples) -> bool:
    """Whether the motion between samples is open: said, or positions alone that are far apart."""
    is_more = samples.is_measured or samples.wrenches or samples.stiffness
    if samples.is_waypoints or is_more or samples.motion.shape[1] > 1 or len(samples) < 2:
        return samples.is_waypoints
    return _usual_step(samples.times) > _LONGEST_STEP


def _without_held(samples: Samples) -> Samples:
    """Samples without those that repeat the ones before, if each is held as long as the others."""
    arrays = [values.reshape(len(values), -1) for values in samples.arrays().values()]
    arrays += [np.reshape(wrench.values, (len(samples), -1)) for wrench in samples.wrenches]
    every = np.concatenate(arrays, axis=1)
    new = np.flatnonzero(np.append(True, (every[1:] != every[:-1]).any(axis=1)))
    lasting = np.diff(new)
    if len(new) < _FEWEST_NOISY or np.median(lasting) < 2:
        return samples
    positions = samples.motion[new, 0]
    is_alike = np.abs(lasting - np.median(lasting)) <= 1
    steps = np.abs(np.diff(positions, axis=0)).max(axis=0) / (2.0 * rounding(positions))
    if np.mean(is_alike) < _HELD or steps.max() < _LEAST_STEPS:
        return samples
    text = (
        f'Each value is held for about {np.median(lasting):g} samples; the first of each is used, '
        f'{len(new)} of {len(samples)}.'
    )
    return replace(samples.at(new), remarks=(*samples.remarks, text))


def _gaps(samples: Samples) -> str:
    """Remark on the longest time without samples, or none."""
    times, steps = samples.times, np.diff(samples.times)
    usual = _usual_step(times)
    if steps.max(initial=0.0) <= _GAP * usual:
        return ''
    i, count = int(steps.argmax()), np.count_nonzero(steps > _GAP * usual)
    more = f' (the longest of {count} gaps)' if count > 1 else ''
    return (
        f'There are no samples for {steps[i]:.3g} s, a gap from {times[i]:.4g} to '
        f'{times[i + 1]:.4g} s{more}, {steps[i] / usual:.3g} usual steps: what the joints do '
        'there is not known.'
    )


def _jumps(model: RobotModel, samples: Samples) -> str:
    """Remark on steps that are far from those around them and faster than the joint, or none."""
    if len(samples) <= _AROUND:
        return ''
    steps, times = np.diff(samples.motion[:, 0], axis=0), samples.times
    speeds = np.abs(steps) / np.diff(times)[:, None]
    limits, _ = _velocity_limits(model)
    if (speeds <= limits).all():  # mostly; the rest takes longer
        return ''
    from scipy.ndimage import median_filter

    usual = median_filter(speeds, (_AROUND, 1), mode='nearest')
    excess = speeds / np.maximum(limits, _JUMP * usual)
    if excess.max() <= 1.0:
        return ''
    i, j = np.unravel_index(excess.argmax(), excess.shape)
    unit = unit_of('rad', model.joint_types[j] == 'prismatic')
    return (
        f'{model.joint_names[j]} jumps by {steps[i, j]:.4g} {unit} from {times[i]:.4g} to '
        f'{times[i + 1]:.4g} s, one of {np.count_nonzero(excess > 1.0)} steps that are faster '
        'than its limit and than those around them. The torques follow it: leave wrong samples '
        'out, or take --derivatives estimate, which replaces single ones.'
    )


def refuse_contradictions(model: RobotModel, samples: Samples) -> None:
    """Refuse samples whose derivatives are not those of their positions.

    By the mean value theorem, the mean slope over a stretch of time without a gap lies between the
    smallest and the largest derivative in it. What may happen between samples, beside the stretch,
    and by noise, rounding and uneven times is allowed for, so that a motion may be sampled
    coarsely.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Of its joints, in its order. With positions alone, or fewer than five of them, there
        is nothing to compare.

    Raises
    ------
    MotionError
        For the stretch and joint that are farthest from what is allowed.
    """
    times, motion = samples.times, samples.motion
    if not (np.diff(times) > 0.0).all():  # measurements come late or twice
        times, rows = np.unique(times, return_index=True)
        motion = motion[rows]
    size = min(_STRETCH, (len(times) - 1) // _FEWEST_STEPS)
    for k in range(1, motion.shape[1] if size else 1):
        slopes, excess = _excess(k, times, motion[:, k - 1], motion[:, k], size)
        if not (excess > 0.0).any():
            continue
        i, j = np.unravel_index(np.nanargmax(excess), excess.shape)
        middle = i + size // 2
        unit = unit_of('rad', model.joint_types[j] == 'prismatic', k)
        zeros = '' if motion[:, k, j].any() else ' It is nothing but zeros.'
        raise MotionError(
            f'{samples.name}: the {MOTION[k]} of {model.joint_names[j]} is given as '
            f'{motion[middle, k, j]:.4g} {unit} at {times[middle]:.4f} s, but its {MOTION[k - 1]} '
            f'changes by {slopes[i, j]:.4g} {unit} there.{zeros} Correct the times or '
            'the columns, or leave the derivatives out; --derivatives estimate uses the positions '
            'alone. Waypoints, between which the motion is open, belong into a trajectory (.yaml).'
        )


def _excess(
    k: int, times: Array, lower: Array, given: Array, size: int
) -> tuple[Array, Array]:
    """Slopes of order k - 1 over stretches, and how far they are off what order k allows.

    Both have the shape (N - size, n); a stretch has so many steps.
    """
    middle = slice(size // 2, size // 2 + len(times) - size)

    def around(extreme: np.ufunc, values: Array, unknown: float) -> Array:
        filled = np.where(np.isnan(values), unknown, values)
        return _running(extreme, filled, 3 * size + 1)[middle]

    low = around(np.minimum, given, np.inf)
    high = around(np.maximum, given, -np.inf)
    known = low <= high
    low, high = np.where(known, low, -np.inf), np.where(known, high, np.inf)
    share = _SHARE * np.nanmax(np.abs(given), axis=0, initial=0.0)
    share = np.maximum(share, _NEGLIGIBLE * 10.0 ** (k - 1))
    lasting = (times[size:] - times[:-size])[:, None]
    slopes = (lower[size:] - lower[:-size]) / lasting
    excess = np.maximum(low - slopes, slopes - high) - share
    if not (excess > 0.0).any():
        return slopes, excess
    steps = np.diff(times)
    if k >= _JUMPING:  # the order below may have jumps in some steps of a stretch
        if size < _STRETCH:
            return slopes, np.full_like(slopes, -np.inf)
        from scipy.ndimage import median_filter

        single = np.diff(lower, axis=0) / steps[:, None]
        slopes = median_filter(single, (size, 1), mode='nearest')[middle]
        lasting = lasting / size
        excess = np.maximum(low - slopes, slopes - high) - share
    change = np.abs(np.diff(given, axis=0))
    uneven = _running(np.maximum, np.abs(steps - _usual_step(times)), size)[middle, None]
    reach = np.maximum(np.abs(low), np.abs(high))
    error = _error_of(lower) + 2.0 * uneven * np.where(np.isinf(reach), 0.0, reach)
    excess -= around(np.maximum, change, 0.0) + error / lasting
    if k > _JUMPING:
        excess[(low == 0.0) & (high == 0.0)] = -np.inf
    excess[_running(np.maximum, steps, size)[middle] > _GAP * _usual_step(times)] = -np.inf
    return slopes, excess


def _running(extreme: np.ufunc, values: Array, width: int) -> Array:
    """Largest or smallest of so many values about each one along the first axis.

    In windows that are doubled until they are wide enough: to import `scipy.ndimage` takes longer
    than all else that is done with a short motion.
    """
    padding = [(width // 2, width - 1 - width // 2), *[(0, 0)] * (values.ndim - 1)]
    found, done = np.pad(values, padding, mode='edge'), 1
    while done < width:
        shift = min(done, width - done)
        found = extreme(found[:-shift], found[shift:])
        done += shift
    return np.asarray(found)


def _error_of(values: Array, deviations: float = _LARGEST_ERROR) -> Array:
    """Rounding of the difference of two samples, and deviations of its noise, of each column."""
    step = np.abs(np.diff(values, axis=0))
    smallest = np.where(step > 0.0, step, np.inf).min(axis=0)
    smallest[np.isinf(smallest)] = 0.0
    noise = np.median(scatter_of(values), axis=0) / NORMAL
    return np.asarray(2.0 * smallest + deviations * noise)


def for_spline(model: RobotModel, samples: Samples) -> Samples:
    """Samples that a spline can go through without following more than the motion.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Of `inspect`, no waypoints.

    Returns
    -------
    Samples
        With times that are even where only their rounding is not, counted from the first then, and
        without derivatives that would make the spline oscillate from sample to sample, as
        velocities that are filtered; remarks say so.

    Raises
    ------
    MotionError
        See `refuse_contradictions`.
    """
    refuse_contradictions(model, samples)
    remarks, motion = [*samples.remarks], samples.motion
    partly = np.isnan(motion).any(axis=2, keepdims=True) & ~np.isnan(motion)
    if partly.any():
        motion = np.where(partly, np.nan, motion)
        remarks.append('Derivatives that samples have of some joints alone are not used.')
    if (K := _consistent_orders(samples)) < motion.shape[1]:
        remarks.append(
            f'The {MOTION[K]} is not used: it differs from the slope of the {MOTION[K - 1]} by '
            'more than a spline through both can follow without oscillating.'
        )
    times, text = _even_times(samples.times)
    remarks += filter(None, (text,))
    return replace(samples, times=times, motion=motion[:, :K], remarks=tuple(remarks))


def _consistent_orders(samples: Samples) -> int:
    """Orders of a motion that agree with those below as closely as its samples let them."""
    times, motion = samples.times, samples.motion
    if len(samples) < _FEWEST_NOISY:
        return int(motion.shape[1])
    step = _usual_step(times)
    for k in range(1, motion.shape[1]):
        lower, given = motion[:, k - 1], np.nan_to_num(motion[:, k])
        if not np.isfinite(motion[:, k]).all():
            continue
        quotients = divided_differences(lower, times, _NOISE_ORDER)
        off = np.median(np.abs(quotients[1] - 0.5 * (given[1:] + given[:-1])), axis=0)
        left = step**2 / 12.0 * np.median(np.abs(quotients[_NOISE_ORDER]), axis=0)
        allowed = _CLOSELY * (left + _error_of(lower, 1.0) / step) + _error_of(given, 0.0)
        if (off > allowed).any():
            return k
    return int(motion.shape[1])


def _even_times(times: Array) -> tuple[Array, str]:
    """Times counted from the first, if their steps are equal but for the rounding of the last.

    Else they stay, with a remark where the rounding is no small part of the steps.
    """
    if len(times) < 3:
        return times, ''
    since, unit = times - times[0], float(np.spacing(np.abs(times).max()))
    even = np.linspace(0.0, since[-1], len(times))
    if np.abs(since - even).max() <= _ROUNDED_BY * unit:
        return even, ''
    if unit <= _ROUNDED_STEP * _usual_step(times):
        return times, ''
    return times, (
        f'Times of {times[-1]:.3g} s are rounded to {unit:.2g} s, and the derivatives follow '
        'that; subtract the first time from all of them before they are written.'
    )


def noise_remark(samples: Samples) -> str:
    """Remark on the lowest order with noise, which a spline through all samples follows, or none.

    Parameters
    ----------
    samples : Samples
        Of `for_spline`.

    Returns
    -------
    str
    """
    for k in range(min(samples.motion.shape[1], _NOISE_ORDER)):
        order = _NOISE_ORDER - k
        noise = _noise(samples.times, samples.motion[:, k], order)
        jerk = _derivative_of(noise, samples.times, order)
        if (joints := np.flatnonzero(jerk > _LEAST_NOISE)).size:
            names = listed(samples.joint_names[j] for j in joints[:_MOST_NAMED].tolist())
            names += f' and {len(joints) - _MOST_NAMED} more' * (len(joints) > _MOST_NAMED)
            return (
                f'The {MOTION[k]} of {names} looks measured: its noise alone makes a jerk of '
                f'about {jerk.max():.3g} rad/s^3 or m/s^3, and torque rates to match. For '
                'measurements, --derivatives estimate (retime: with --uniform) finds the motion '
                'behind the noise.'
            )
    return ''


def is_rounded(samples: Samples) -> bool:
    """Whether what looks measured is no more than the digits of the positions leave.

    Parameters
    ----------
    samples : Samples
        Inspected ones.

    Returns
    -------
    bool
    """
    positions = samples.motion[:, 0]
    if samples.is_measured or _noise_of_clock(samples).any():
        return False
    return bool((_noise(samples.times, positions) <= rounding(positions)).all())


def _noise_of_clock(samples: Samples) -> Array:
    """Noise of the positions of each joint at these times, if at even ones they are smooth."""
    times, positions = samples.times, samples.motion[:, 0]
    steps = np.diff(times)
    if len(times) < _FEWEST_NOISY or np.ptp(steps) <= _UNEVEN * _usual_step(times):
        return np.zeros(positions.shape[1])
    given, smooth = (
        divided_differences(positions, at, _NOISE_ORDER)[-1]
        for at in (times, np.linspace(times[0], times[-1], len(times)))
    )
    moves = given != 0.0
    jerk = _typical(given, moves)
    errs = jerk > _ERRING * _typical(smooth, moves)
    return np.where(errs, jerk, 0.0) / _derivative_of(np.ones(1), times)


def _is_measured(samples: Samples, clock: Array) -> bool:
    """Whether some joint has noise that is more than its digits leave and than the motion."""
    times, positions = samples.times, samples.motion[:, 0]
    if not (noise := np.maximum(_noise(times, positions), clock)).any():
        return False
    step = _usual_step(times)
    stride = max(1, min(round(_SMOOTHING / step), (len(times) - 1) // _NOISE_ORDER))
    jerks = divided_differences(positions[::stride], times[::stride], _NOISE_ORDER)[-1]
    largest = np.maximum(np.abs(jerks).max(axis=0, initial=0.0), _LEAST_NOISE)
    size = np.where(positions == 0.0, 1.0, np.abs(positions))
    scaled = positions * 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
    has_more = (np.abs(scaled - np.rint(scaled)) > 1e-6).any(axis=0)
    least = np.where(has_more, _MORE_THAN_FLOAT32, _MORE_THAN_DIGITS)
    least *= np.maximum(np.abs(positions).max(axis=0), _SMALLEST_POSITION)
    return bool(((_derivative_of(noise, times) > largest) & (noise > least)).any())


def _derivative_of(noise: Array, times: Array, order: int = _NOISE_ORDER) -> Array:
    """Derivative of an order that noise makes from sample to sample, of each column."""
    step = _usual_step(times)
    return np.asarray(noise * np.sqrt(comb(2 * order, order)) / step**order)


def _noise(times: Array, values: Array, order: int = _NOISE_ORDER) -> Array:
    """Standard deviations of the noise of each column, if differences of an order show it."""
    if len(values) < _FEWEST_NOISY + order + 1:
        return np.zeros(values.shape[1])
    *_, lower, last = divided_differences(values, times, order + 1)
    moves = last != 0.0  # a joint at rest has no noise, if it is rounded
    size = _typical(lower[1:], moves)
    grows = _typical(last, moves) * _usual_step(times) > _NOISY * size
    return np.where(grows, size, 0.0) / _derivative_of(np.ones(1), times, order)


def _typical(values: Array, moves: Flags) -> Array:
    """Median magnitude of each column where it moves; zero if it does so at few samples."""
    result = np.zeros(values.shape[1])
    for j in np.flatnonzero(np.count_nonzero(moves, axis=0) >= _FEWEST_NOISY).tolist():
        result[j] = np.median(np.abs(values[moves[:, j], j]))
    return result
