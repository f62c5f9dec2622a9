"""What a motion of a file is like, found once for all commands.

Which joints it has, units, turns of encoders, waypoints or samples, noise, gaps, rounded times and
derivatives that contradict the positions. Samples of files reach a model through `Intake` alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.errors import MotionError
from hodyn_ros.files.quantities import MOTION
from hodyn_ros.files.samples import Samples
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

_RATE_OF_SAMPLES = 10.0  # of positions alone; fewer of them are waypoints [Hz]
# Where no limit says how far a joint turns, positions beyond this are in other units [rad].
_FARTHEST_TURN = 6.0 * np.pi
# Positions over the farthest limit: worth a remark; of several joints, or of one, in other units,
# if it turns by more than half a turn.
_DOUBTFUL, _SEVERAL, _CERTAIN = 1.5, 4.0, 10.0
_HALF_TURN = np.pi
# What is slower than this share of its limit of velocity is in other units of time; degrees make
# it faster.
_SLOWEST, _USUAL_VELOCITY = 1.5e-3, 3.0  # rad/s or m/s, where there is no limit
# Steps of times, also where positions may be degrees, and motion, from which on that is told.
_LEAST_STEP, _LEAST_IN_DEGREES, _LEAST_MOTION = 0.2, 1.0, 0.1
_TURN = 2.0 * np.pi
# Samples that say how fast a joint turns; angle up to which a step goes on so [rad].
_RECENT, _CONTINUES = 8, 0.5 * np.pi
_GAP = 5.0  # usual steps without a sample

_STRETCH = 8  # steps that are compared together
_FEWEST_STEPS = 4  # Between a few samples anything may happen.
# Velocities that are measured lag, are filtered, or are zero below a threshold.
_SHARE = 0.1
_NEGLIGIBLE = 0.01  # rad/s or m/s; ten times as much for each further derivative
# From here on the order below may jump where a motion is put together of pieces; beyond, zeros say
# that it is constant on each of them.
_JUMPING = 3
_LARGEST_ERROR = 8.0  # of positions, in standard deviations of their noise

# Each difference of noise is nearly twice as large as the one before it, sqrt(70 / 20) = 1.87 and
# less for the second and third; those of a motion that is sampled densely become smaller.
_NOISY = 1.5
_NOISE_ORDER = 3
_LEAST_NOISE = 1.0  # of the third derivative that is worth a word [rad/s^3] or [m/s^3]
_FEWEST_NOISY = 30  # samples
_MOST_NAMED = 3
# Noise that is more than six digits of a position leave out, which is three millionths of it, or
# than the seven of float32 if there are more than six, and that makes a larger jerk than the
# motion over some time [s].
_DIGITS, _MORE_THAN_DIGITS, _MORE_THAN_FLOAT32 = 6, 5e-6, 1e-6
_SMALLEST_POSITION = 0.1
_SMOOTHING = 0.1
# Units in the last place by which equal steps may differ; share of a step that is worth a word.
_ROUNDED_BY, _ROUNDED_STEP = 2.0, 1e-5


class Intake:
    """The way of the samples of a file to a model, for consecutive parts of one motion.

    Chooses the joints of the model, rejects other units, and continues continuous joints beyond
    the turn in which their encoders report them.

    Parameters
    ----------
    model : RobotModel

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples
    >>> from hodyn_ros.files.inspection import Intake
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(('elbow', 'shoulder'), [0.0, 0.1], [[[0.1, 0.2]], [[0.3, 0.4]]])
    >>> Intake(model)(samples).motion[0].tolist()
    [[0.2, 0.1]]
    """

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        self._told: set[str] = set()
        self._turning = np.flatnonzero([kind == 'continuous' for kind in model.joint_types])
        # The last rows of the part before without turns, and the turns up to there.
        self._times, self._positions = np.zeros(0), np.zeros((0, len(self._turning)))
        self._turns = np.zeros(len(self._turning))

    def __call__(self, samples: Samples) -> Samples:
        """Take the next part.

        Parameters
        ----------
        samples : Samples
            Of all joints of the model at least, in any order. Trajectories are motions of their
            own, whose waypoints are taken as they are.

        Returns
        -------
        Samples
            With the joints of the model in its order. `remarks` says what was changed or left
            out, and what is doubtful, of all parts each once.

        Raises
        ------
        JointNameError
            If a joint of the model is missing.
        MotionError
            If positions or times are in other units, or a step of a continuous joint is neither
            motion nor a turn of its encoder.
        """
        ordered, unused = samples.in_order(self._model.joint_names)
        ordered.refuse_unknown_positions()
        remarks = {}
        if unused:
            names = listed(unused)
            remarks['unused'] = f'Left out, since the model does not have them: {names}.'
        beyond = _beyond_limits(self._model, ordered)
        _refuse_milliseconds(self._model, ordered, may_be_degrees=bool(beyond))
        if beyond:
            remarks['beyond'] = beyond
        if self._turning.size and len(ordered):
            ordered = self._unwound(ordered, remarks)
        new = {key: text for key, text in remarks.items() if key not in self._told}
        self._told.update(new)
        return replace(ordered, remarks=(*samples.remarks, *new.values()))

    def _unwound(self, samples: Samples, remarks: dict[str, str]) -> Samples:
        """Samples whose continuous joints turn on; remarks on them are added."""
        names = [self._model.joint_names[j] for j in self._turning]
        times, given = samples.times, samples.motion[:, 0, self._turning]
        if as_waypoints(samples).is_waypoints:
            steps = np.diff(given, axis=0)
            for i, k in np.argwhere(np.abs(steps) > _HALF_TURN)[:1].tolist():
                remarks['waypoints'] = (
                    f'{names[k]} goes by {steps[i, k]:.4g} rad from {times[i]:.4g} to '
                    f'{times[i + 1]:.4g} s, the long way round, as its waypoints say.'
                )
            return samples
        before, count = self._times, len(self._times)
        whole = np.concatenate([before, times + 1e-9 * samples.start])
        positions = np.concatenate([self._positions, given + _TURN * self._turns])
        for k, name in enumerate(names):
            turns = _turns_of(whole, positions[:, k], name, samples)
            places = np.flatnonzero(turns)
            if places.size:
                positions[1:, k] += _TURN * np.cumsum(turns)
                self._turns[k] += turns.sum()
                remarks[name] = (
                    f'{name} turns on where its position jumps by a turn, the first time at '
                    f'{times[max(0, places[0] + 1 - count)]:.4g} s.'
                )
        self._times, self._positions = whole[-_RECENT - 1 :], positions[-_RECENT - 1 :]
        motion = samples.motion
        if not np.array_equal(given, positions[count:]):
            motion = motion.copy()
            motion[:, 0, self._turning] = positions[count:]
        return replace(samples, motion=motion)


def in_model_order(model: RobotModel, samples: Samples) -> Samples:
    """Samples of a whole motion as a model takes them, see `Intake`.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        In any order, maybe of more joints.

    Returns
    -------
    Samples

    Raises
    ------
    JointNameError, MotionError
        See `Intake`.
    """
    return Intake(model)(samples)


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
        if not i and abs(speed * lasting[0]) > _HALF_TURN:
            speed = 0.0  # rather the turn is behind
        more = round((speed * lasting[i] - steps[i]) / _TURN)
        off = steps[i] + _TURN * more - speed * lasting[i]
        if abs(off) > _CONTINUES:
            if not samples.is_measured:
                since = 1e-9 * samples.start
                raise MotionError(
                    f'{samples.name}: {name} goes by {steps[i]:.4g} rad from '
                    f'{times[i] - since:.4g} to {times[i + 1] - since:.4g} s, expected about '
                    f'{speed * lasting[i]:.2g} rad, or that and a turn of its encoder. Correct '
                    'these positions, or give the motions before and behind by themselves.'
                )
            more = -round(steps[i] / _TURN)
        turns[i] = more
        steps[i] += _TURN * more
    return turns


def _beyond_limits(model: RobotModel, samples: Samples) -> str:
    """Remark on positions far beyond the limits, or none; refuse those in other units."""
    kinds = np.array(model.joint_types)
    farthest = np.abs(samples.motion[:, 0]).max(axis=0, initial=0.0)
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


def _refuse_milliseconds(model: RobotModel, samples: Samples, may_be_degrees: bool) -> None:
    """Refuse times in which all joints are slower than any robot, though they move."""
    if samples.is_measured or len(samples) < 2:
        return
    times, positions = samples.times, samples.motion[:, 0]
    step = float(np.median(np.diff(times)))
    least = _LEAST_IN_DEGREES if may_be_degrees else _LEAST_STEP
    if step < least or np.ptp(positions, axis=0).max() < _LEAST_MOTION:
        return
    fastest = (np.abs(np.diff(positions, axis=0)) / np.diff(times)[:, None]).max(axis=0)
    known = np.isfinite(model.limits.velocity)
    slowest = np.rad2deg(_SLOWEST) if may_be_degrees else _SLOWEST
    if (fastest < slowest * np.where(known, model.limits.velocity, _USUAL_VELOCITY)).all():
        powers = (('milliseconds', 3), ('microseconds', 6), ('nanoseconds', 9))
        unit, power = powers[min(2, max(0, int(np.log10(step / _LEAST_STEP)) // 3))]
        raise MotionError(
            f'{samples.name}: the times are {step:.4g} apart, and no joint moves by more than '
            f'{fastest.max():.2g} a second, expected seconds; this looks like {unit}. Divide the '
            f'times by 1e{power}.'
        )


def refuse_contradictions(model: RobotModel, samples: Samples) -> None:
    """Refuse samples whose derivatives are not those of their positions.

    By the mean value theorem, the mean slope over a stretch of time lies between the smallest and
    the largest derivative in it. What may happen between samples, beside the stretch, and by
    noise, rounding and uneven times is allowed for, so that a motion may be sampled coarsely.

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
    steps = min(_STRETCH, (len(times) - 1) // _FEWEST_STEPS)
    if steps < 1 or motion.shape[1] < 2:
        return
    edges = np.arange(0, len(times), steps)
    few = motion[edges]
    slopes = np.diff(few[:, :-1], axis=0) / np.diff(times[edges])[:, None, None]
    lowest, highest = (
        _beside(extreme, motion[:, 1:], edges) for extreme in (np.minimum, np.maximum)
    )
    share = _SHARE * np.fmax.reduce(np.maximum(-lowest, highest), axis=0)
    share = np.fmax(share, _NEGLIGIBLE * 10.0 ** np.arange(len(share))[:, None])
    outside = np.maximum(lowest - slopes, slopes - highest) - share
    # What may happen between samples is looked at where it decides.
    for k in (1 + np.flatnonzero((outside > 0.0).any(axis=(0, 2)))).tolist():
        slope, excess = _excess(
            k, times, motion, edges, slopes[:, k - 1], lowest[:, k - 1], highest[:, k - 1]
        )
        excess -= share[k - 1]
        if not (excess > 0.0).any():
            continue
        stretch, joint = np.unravel_index(np.nanargmax(excess), excess.shape)
        i = int(edges[stretch] + steps // 2)
        unit = 'm' if model.joint_types[int(joint)] == 'prismatic' else 'rad'
        unit += '/s' if k == 1 else f'/s^{k}'
        zeros = '' if motion[:, k, joint].any() else ' It is nothing but zeros.'
        raise MotionError(
            f'{samples.name}: the {MOTION[k]} of {model.joint_names[int(joint)]} is given as '
            f'{motion[i, k, joint]:.4g} {unit} at {times[i]:.4f} s, but its {MOTION[k - 1]} '
            f'changes by {slope[stretch, joint]:.4g} {unit} there.{zeros} Correct the times or '
            'the columns, or leave the derivatives out; --derivatives estimate uses the positions '
            'alone. Waypoints, between which the motion is open, belong into a trajectory (.yaml).'
        )


def _excess(
    k: int,
    times: Array,
    motion: Array,
    edges: NDArray[np.intp],
    slope: Array,
    low: Array,
    high: Array,
) -> tuple[Array, Array]:
    """Slopes of an order below k, and by how much they lie outside of what order k allows.

    Both of each stretch and joint; `low` and `high` are the extremes of order k beside a stretch.
    """
    lower, given, step = motion[:, k - 1], motion[:, k], np.diff(times)
    lasting, steps = np.diff(times[edges])[:, None], int(edges[1])
    if k >= _JUMPING:  # of which a stretch may have some
        if steps < _STRETCH:
            return slope, np.full_like(slope, -np.inf)
        single = (np.diff(lower, axis=0) / step[:, None])[: edges[-1]]
        slope = np.median(single.reshape(len(slope), steps, -1), axis=1)
        lasting = lasting / steps
    uneven = np.maximum.reduceat(np.abs(step - np.median(step)), edges[:-1])[:, None]
    error = _error_of(lower) + 2.0 * uneven * np.maximum(np.abs(low), np.abs(high))
    between = _beside(np.maximum, np.abs(np.diff(given, axis=0)), edges)
    excess = np.maximum(low - slope, slope - high) - between - error / lasting
    if k > _JUMPING:
        excess[(low == 0.0) & (high == 0.0)] = -np.inf
    return slope, excess


def _beside(extreme: np.ufunc, values: Array, edges: NDArray[np.intp]) -> Array:
    """Smallest or largest value of each stretch and the ones beside it."""
    found = extreme.reduceat(values, edges[:-1], axis=0)
    padded = np.concatenate([found[:1], found, found[-1:]])
    result: Array = extreme(extreme(padded[:-2], padded[1:-1]), padded[2:])
    return result


def _error_of(values: Array) -> Array:
    """Bound the error of a difference of two samples, of each column: noise and rounding."""
    step = np.abs(np.diff(values, axis=0))
    rounding = np.where(step > 0.0, step, np.inf).min(axis=0)
    rounding[np.isinf(rounding)] = 0.0
    fourth = np.nan_to_num(np.abs(np.diff(values, 4, axis=0)))
    noise = np.median(fourth, axis=0) / (0.6745 * np.sqrt(70.0))
    return np.asarray(2.0 * rounding + _LARGEST_ERROR * noise)


def as_waypoints(samples: Samples) -> Samples:
    """Samples of positions that are too far apart to show a motion are waypoints.

    Parameters
    ----------
    samples : Samples
        All samples of a motion.

    Returns
    -------
    Samples
        Marked as waypoints if there are fewer than 10 positions a second and nothing else;
        otherwise as they were.
    """
    if (
        samples.is_measured
        or samples.motion.shape[1] > 1
        or samples.wrenches
        or samples.stiffness
    ):
        return samples
    if not len(samples):
        return samples
    duration = samples.times[-1] - samples.times[0]
    return replace(
        samples, is_waypoints=bool(duration * _RATE_OF_SAMPLES > len(samples) - 1)
    )


def even_times(samples: Samples) -> tuple[Samples, tuple[str, ...]]:
    """Undo the rounding of times that count from long ago, for a spline through the samples.

    Times are counted from the first if the steps are equal but for the rounding of the last time;
    else a remark says so, where the rounding is no small part of them.

    Parameters
    ----------
    samples : Samples
        All samples of a motion.

    Returns
    -------
    samples : Samples
        With even times from zero on, or as they were.
    remarks : tuple of str
        Empty if the rounding does not matter.
    """
    times = samples.times
    if len(times) < 3 or samples.is_waypoints:
        return samples, ()
    since, rounding = times - times[0], float(np.spacing(np.abs(times).max()))
    even = np.linspace(0.0, since[-1], len(times))
    if np.abs(since - even).max() <= _ROUNDED_BY * rounding:
        return replace(samples, times=even), ()
    if rounding <= _ROUNDED_STEP * np.median(np.diff(times)):
        return samples, ()
    return samples, (
        f'Times of {times[-1]:.3g} s are rounded to {rounding:.2g} s, and the derivatives follow '
        'that; subtract the first time from all of them before they are written.',
    )


def gap_remarks(samples: Samples) -> tuple[str, ...]:
    """Remark on the longest time without samples, which a spline spans; or none.

    Parameters
    ----------
    samples : Samples
        Of one motion, in the order of time.

    Returns
    -------
    tuple of str
        One sentence if it is more than five usual steps.
    """
    times = samples.times
    steps = np.diff(times)
    if samples.is_waypoints or not steps.size:
        return ()
    i, usual = int(steps.argmax()), float(np.median(steps))
    if steps[i] <= _GAP * usual:
        return ()
    count = np.count_nonzero(steps > _GAP * usual)
    more = f' (the longest of {count} gaps)' if count > 1 else ''
    return (
        f'There are no samples from {times[i]:.4g} to {times[i + 1]:.4g} s{more}, '
        f'{steps[i] / usual:.3g} usual steps. What the joints do there is not known: the spline '
        'spans it.',
    )


def noise_remarks(samples: Samples) -> tuple[str, ...]:
    """Say that samples look measured, or nothing: what is exact for them follows their noise.

    Parameters
    ----------
    samples : Samples
        Of one motion, in the order of time.

    Returns
    -------
    tuple of str
        One sentence about the lowest order with noise, or none.
    """
    for k in range(min(samples.motion.shape[1], _NOISE_ORDER)):
        noise = _noise(samples.times, samples.motion[:, k], _NOISE_ORDER - k)
        if (joints := np.flatnonzero(noise > _LEAST_NOISE)).size:
            names = listed(samples.joint_names[j] for j in joints[:_MOST_NAMED].tolist())
            names += f' and {len(joints) - _MOST_NAMED} more' * (len(joints) > _MOST_NAMED)
            return (
                f'The {MOTION[k]} of {names} looks measured: its noise alone makes a jerk of '
                f'about {noise.max():.3g} rad/s^3 or m/s^3, and torque rates to match. For '
                'measurements, --derivatives estimate (retime: with --uniform) finds the motion '
                'behind the noise.',
            )
    return ()


def is_measurement(samples: Samples) -> bool:
    """Whether samples are measurements, said or recognised: more noise than their digits leave.

    Parameters
    ----------
    samples : Samples
        Of one motion, in the order of time.

    Returns
    -------
    bool
        Whether the third differences of some joint are noise that is larger than the jerk
        over 0.1 s, and than what rounding makes.
    """
    if samples.is_measured or samples.is_waypoints or len(samples) < 2:
        return samples.is_measured
    times, positions = samples.times, samples.motion[:, 0]
    noise, step = _noise(times, positions, _NOISE_ORDER), float(np.median(np.diff(times)))
    stride = max(1, min(round(_SMOOTHING / step), (len(times) - 1) // _NOISE_ORDER))
    jerk = np.abs(_quotients(times[::stride], positions[::stride], _NOISE_ORDER)[-1]).max(
        axis=0, initial=0.0
    )
    error = noise * step**_NOISE_ORDER / np.sqrt(20.0)
    size = np.maximum(np.abs(positions).max(axis=0), _SMALLEST_POSITION)
    more = _has_more_digits(positions)
    least = np.where(more, _MORE_THAN_FLOAT32, _MORE_THAN_DIGITS) * size
    return bool(((noise > np.maximum(jerk, _LEAST_NOISE)) & (error > least)).any())


def _has_more_digits(values: Array) -> NDArray[np.bool_]:
    """Whether a column (N, n) has numbers with more than six digits, shape (n,)."""
    size = np.where(values == 0.0, 1.0, np.abs(values))
    scaled = values * 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
    is_finer: NDArray[np.bool_] = np.abs(scaled - np.rint(scaled)) > 1e-6
    return np.asarray(is_finer.any(axis=0))


def _noise(times: Array, values: Array, order: int) -> Array:
    """Size of the differences of an order that are noise, of each column; 0 if they are not."""
    result = np.zeros(values.shape[1])
    if len(values) < _FEWEST_NOISY + order + 1:
        return result
    quotients = _quotients(times, values, order + 1)
    moves = quotients[-1] != 0.0  # a joint at rest has no noise, if it is rounded
    step = np.median(np.diff(times))
    for j in np.flatnonzero(np.count_nonzero(moves, axis=0) >= _FEWEST_NOISY).tolist():
        last = np.median(np.abs(quotients[-1][moves[:, j], j]))
        before = np.median(np.abs(quotients[-2][1:][moves[:, j], j]))
        if last * step > _NOISY * before:
            result[j] = before
    return result


def _quotients(times: Array, values: Array, order: int) -> list[Array]:
    """Divided differences of values (N, n) up to an order, as derivatives."""
    found = [values]
    for p in range(1, order + 1):
        found.append(p * np.diff(found[-1], axis=0) / (times[p:] - times[:-p])[:, None])
    return found
