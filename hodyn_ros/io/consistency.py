"""Whether samples are what they are taken for: derivatives that fit, positions without noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import MotionError
from hodyn_ros.io.columns import MOTION
from hodyn_ros.io.samples import Array, Samples
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

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
# Noise that is more than six digits of a position leave out, which is three millionths of it, and
# that makes a larger jerk than the motion over some time [s].
_MORE_THAN_DIGITS, _SMALLEST_POSITION = 5e-6, 0.1
_SMOOTHING = 0.1
# Units in the last place by which equal steps may differ; share of a step that is worth a word.
_ROUNDED_BY, _ROUNDED_STEP = 2.0, 1e-5


def refuse_contradictions(model: RobotModel, samples: Samples) -> None:
    """Refuse samples whose derivatives are not those of their positions.

    By the mean value theorem, the mean slope over a stretch of time lies between the smallest and
    the largest derivative in it. What may happen between samples, beside the stretch, and by
    noise, rounding and uneven times is allowed for, so that a motion may be sampled coarsely.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        With the joints of the model, in its order.

    Raises
    ------
    MotionError
        With the joint, the time and both values.
    """
    times, motion = samples.times, samples.motion
    if not (np.diff(times) > 0.0).all():  # measurements come late or twice
        times, rows = np.unique(times, return_index=True)
        motion = motion[rows]
    turns = [kind == 'continuous' for kind in model.joint_types]
    if any(turns):  # encoders start anew after one
        motion = motion.copy()
        motion[:, 0] = np.where(turns, np.unwrap(motion[:, 0], axis=0), motion[:, 0])
    steps = min(_STRETCH, (len(times) - 1) // _FEWEST_STEPS)
    if steps < 1 or motion.shape[1] < 2:
        return
    edges = np.arange(0, len(times), steps)
    slope = np.diff(motion[edges, :-1], axis=0) / np.diff(times[edges])[:, None, None]
    low = _beside(np.minimum, motion[:, 1:], edges)
    high = _beside(np.maximum, motion[:, 1:], edges)
    share = _SHARE * np.fmax.reduce(np.maximum(-low, high), axis=0)
    share = np.fmax(share, _NEGLIGIBLE * 10.0 ** np.arange(len(share))[:, None])
    outside = np.maximum(low - slope, slope - high) - share
    for k in (1 + np.flatnonzero((outside > 0.0).any(axis=(0, 2)))).tolist():
        hull = np.stack([low[:, k - 1], high[:, k - 1]])
        worst = _worst(times, motion[:, k - 1 : k + 1], k, edges, slope[:, k - 1], hull, share)
        if worst is not None:
            i, joint, mean = worst
            unit = 'm' if model.joint_types[joint] == 'prismatic' else 'rad'
            unit += '/s' if k == 1 else f'/s^{k}'
            zeros = '' if motion[:, k, joint].any() else ' It is nothing but zeros.'
            raise MotionError(
                f'{samples.name}: the {MOTION[k]} of {model.joint_names[joint]} is given as '
                f'{motion[i, k, joint]:.4g} {unit} at {times[i]:.4f} s, but its {MOTION[k - 1]} '
                f'changes by {mean:.4g} {unit} there.{zeros} Correct the times or the columns, or '
                'leave the derivatives out; --derivatives estimate uses the positions alone. '
                'Waypoints, between which the motion is open, belong into a trajectory (.yaml).'
            )


def _worst(
    times: Array, motion: Array, k: int, edges: NDArray[np.intp], slope: Array, hull: Array,
    share: Array,
) -> tuple[int, int, float] | None:  # fmt: skip
    """Sample, joint and mean slope where derivative k fits least, if it does not."""
    lower, given = motion[:, 0], motion[:, 1]
    low, high = hull
    steps, step = int(edges[1]), np.diff(times)
    duration = np.diff(times[edges])[:, None]
    if k >= _JUMPING:  # of which a stretch may have some
        if steps < _STRETCH:
            return None
        slopes = (np.diff(lower, axis=0) / step[:, None])[: edges[-1]]
        slope = np.median(slopes.reshape(len(slope), steps, -1), axis=1)
        duration = duration / steps
    uneven = np.maximum.reduceat(np.abs(step - np.median(step)), edges[:-1])[:, None]
    error = _error_of(lower) + 2.0 * uneven * np.maximum(np.abs(low), np.abs(high))
    between = _beside(np.maximum, np.abs(np.diff(given, axis=0)), edges)
    outside = np.maximum(low - slope, slope - high) - between - error / duration
    outside -= share[k - 1]
    if k > _JUMPING:
        outside[(low == 0.0) & (high == 0.0)] = 0.0
    if not (outside > 0.0).any():
        return None
    stretch, joint = np.unravel_index(np.nanargmax(outside), outside.shape)
    return int(edges[stretch] + steps // 2), int(joint), float(slope[stretch, joint])


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
    fourth = np.nan_to_num(np.abs(np.diff(values, 4, axis=0)))
    noise = np.median(fourth, axis=0) / (0.6745 * np.sqrt(70.0))
    rounding = np.where(np.isfinite(rounding), rounding, 0.0)
    return np.asarray(2.0 * rounding + _LARGEST_ERROR * noise, dtype=np.float64)


def even_times(samples: Samples) -> tuple[Samples, tuple[str, ...]]:
    """Undo the rounding of times that count from long ago, for a spline through the samples.

    Parameters
    ----------
    samples : Samples

    Returns
    -------
    Samples
        Counted from the first, if its steps are equal but for the rounding of the last time.
    tuple of str
        What one should know if they are not, and the rounding is no small part of them.
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


def noise_remarks(samples: Samples) -> tuple[str, ...]:
    """Say that samples look measured, so that what is exact for them follows their noise.

    Parameters
    ----------
    samples : Samples
        Through which a spline is to go.

    Returns
    -------
    tuple of str
        One sentence, or none if they look exact.
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
    """Whether a path through all positions would be shaped by noise rather than by the motion.

    Parameters
    ----------
    samples : Samples

    Returns
    -------
    bool
        True for measurements, said or recognised; False for what is rounded to six digits.
    """
    if samples.is_measured or samples.is_waypoints or len(samples) < 2:
        return samples.is_measured
    times, positions = samples.times, samples.motion[:, 0]
    noise, step = _noise(times, positions, _NOISE_ORDER), float(np.median(np.diff(times)))
    stride = max(1, min(round(_SMOOTHING / step), (len(times) - 1) // _NOISE_ORDER))
    jerk = np.abs(np.diff(positions[::stride], _NOISE_ORDER, axis=0)).max(axis=0, initial=0.0)
    jerk /= (stride * step) ** _NOISE_ORDER
    error = noise * step**_NOISE_ORDER / np.sqrt(20.0)
    size = np.maximum(np.abs(positions).max(axis=0), _SMALLEST_POSITION)
    is_noise = (noise > np.maximum(jerk, _LEAST_NOISE)) & (error > _MORE_THAN_DIGITS * size)
    return bool(is_noise.any())


def _noise(times: Array, values: Array, order: int) -> Array:
    """Size of the differences of an order that are noise, of each column; 0 if they are not."""
    steps = np.diff(times)
    if len(values) < _FEWEST_NOISY + order + 1:
        return np.zeros(values.shape[1])
    quotients: list[NDArray[np.float64]] = [values]
    for p in range(1, order + 2):
        quotients.append(p * np.diff(quotients[-1], axis=0) / (times[p:] - times[:-p])[:, None])
    moves = quotients[-1] != 0.0  # a joint at rest has no noise, if it is rounded
    known = np.count_nonzero(moves, axis=0) >= _FEWEST_NOISY
    result = np.zeros(values.shape[1])
    for j in np.flatnonzero(known).tolist():
        last = np.median(np.abs(quotients[-1][moves[:, j], j]))
        before = np.median(np.abs(quotients[-2][1:][moves[:, j], j]))
        if last * np.median(steps) > _NOISY * before:
            result[j] = before
    return result
