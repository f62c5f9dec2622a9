"""The smallest uniform time factor with which a motion keeps its limits.

Played with the factor c, a motion q(t) becomes q(t / c): the same path, c times as long. All that
is limited is a function of s = 1 / c, mostly a polynomial, see `scaling_dynamics`, so the factors
that keep all limits are found exactly, as what the roots of these polynomials leave free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.actuators.limits import motor_limits as no_motor_limits
from hodyn_ros.analysis.limits import MotionLimits, find_violations, motion_limits
from hodyn_ros.analysis.scaling_dynamics import (
    POWERS,
    Quantity,
    ScaledDynamics,
    at_rate,
    joint_quantities,
    motor_quantities,
)
from hodyn_ros.analysis.scaling_intervals import Intervals, free, outside
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError, ScalingError
from hodyn_ros.kinematics.joints import checked_motion
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.timeline import real_numbers

Array = NDArray[np.float64]

SAMPLES = 2001
"""Times at which a motion that is given as a function is examined."""

# Half of the excess that counts as rounding, see analysis/limits.py.
_ROUNDING = 5e-10
# Rates at which quantities that are not polynomial are evaluated, and how far they reach down.
_RATES = 400
_RANGE = 1e-4
_HALVINGS = 60
_EDGE = 1e-11
# How much faster the motion is played to see which limit is in the way.
_FASTER = 1e-6


class TimedMotion(Protocol):
    """Motion of n joints as a function of time, such as a `MotionSpline`."""

    @property
    def start_time(self) -> float:
        """Time at which it begins [s]."""

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at times (...), shape (..., highest_derivative + 1, n)."""


class Limiting(NamedTuple):
    """What would exceed its limit first if the motion were faster."""

    quantity: str
    """As in `hodyn_ros.analysis.limits` and `hodyn_ros.actuators.limits`."""
    name: str
    """Name of the joint or motor."""
    sample: int
    value: float
    """At the factor."""
    limit: float
    """With its sign."""


class UniformScaling(NamedTuple):
    """How much slower, or faster, a motion is to be played."""

    factor: float
    """Smallest time factor c of q(t / c) with which the limits are kept, connected to the slow
    ones: with every larger factor they are kept too. Below one: the motion may be faster. Zero if
    nothing limits it. If the limits are not kept in the slow motion (`slower_is_kept`), the
    smallest one of all."""
    limiting: Limiting | None
    """None if nothing limits the speed."""
    intervals: tuple[tuple[float, float], ...]
    """All factors with which the limits are kept: from, to; increasing."""

    @property
    def slower_is_kept(self) -> bool:
        """Whether the limits are kept with every factor that is larger."""
        return self.intervals[-1] == (self.factor, np.inf)

    @property
    def is_kept(self) -> bool:
        """Whether the motion keeps the limits as it is given."""
        return any(low <= 1.0 <= high for low, high in self.intervals)


def uniform_scaling(
    model: RobotModel,
    motion: ArrayLike | TimedMotion,
    limits: MotionLimits | None = None,
    *,
    wrench: Wrench | Sequence[Wrench] | None = None,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
) -> UniformScaling:
    """Smallest uniform time factor with which a motion keeps its limits.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (N, K, n), or function of time
        Samples with their time derivatives, see `inverse_dynamics`; K >= 4 for limits of the jerk
        and of the torque rate, K >= 5 for the torque and K >= 6 for the torque rate of motors
        behind springs. A function of time such as a `MotionSpline` is examined at 2001 times.
    limits : MotionLimits, optional
        By default those of the model.
    wrench : Wrench or sequence of Wrench, optional
        At these samples. It is taken as a function of the place on the path: where the motion is
        slower, it changes more slowly.
    actuators : Actuators, optional
        Without damping.
    motor_limits : MotorLimits, optional
        Of these actuators.
    stiffness : mapping of joint name to array-like, shape (N, S), optional
        For actuators that choose it, see `motor_motion`; a function of the place on the path.

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If no factor makes the motion keep its limits: a position limit is exceeded, or gravity and
        wrenches alone ask for too much torque.
    MotionError
        If the motion cannot be used, or a limit needs a derivative that it does not have.
    WrenchError, ActuatorError
        If wrench or actuators do not fit; joints with damping have no factor, because their
        deflection depends on the past.

    Notes
    -----
    Exact up to rounding for rigid joints and linear springs, with viscous and Coulomb friction.
    With other laws of friction, nonlinear springs and variable stiffness the limits are evaluated
    at 400 rates, a ratio of 2.3 % apart, and the edge found by bisection: the limits are kept at
    the factor, but a narrower interval of factors may stay unseen.

    Excesses within the rounding of `find_violations` are none.
    """
    limits = motion_limits(model) if limits is None else limits
    samples = _sampled(model, motion, 4 if actuators is None else 6)
    _refuse_positions(model, limits, samples)
    dynamics = ScaledDynamics(model, samples, wrench)
    quantities = joint_quantities(dynamics, model, limits)
    if actuators is not None:
        given = no_motor_limits(actuators) if motor_limits is None else motor_limits
        quantities += motor_quantities(dynamics, actuators, given, stiffness)
    elif motor_limits is not None or stiffness is not None:
        raise ActuatorError('motor_limits or stiffness are given without actuators.')
    return scaling_of(quantities)


def scaling_of(quantities: Sequence[Quantity]) -> UniformScaling:
    """Smallest time factor with which limited quantities keep their limits.

    Parameters
    ----------
    quantities : sequence of Quantity

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If there is none.
    """
    exact = [
        (item.coefficients, _with_slack(item.limit))
        for item in quantities
        if item.coefficients is not None
    ]
    others = [item for item in quantities if item.coefficients is None]
    occupied = []
    if exact:
        coefficients = np.concatenate([array.reshape(-1, POWERS) for array, _ in exact])
        limit = np.concatenate([np.tile(bound, len(array)) for array, bound in exact])
        occupied.append(outside(coefficients, limit))
    if others:
        occupied.append(_outside_by_search(others, occupied))
    gaps = free(*occupied) if occupied else ((0.0, np.inf),)
    intervals = tuple(
        (1.0 / high if high > 0.0 else np.inf, 1.0 / low if low > 0.0 else np.inf)
        for low, high in reversed(gaps)
    )
    if not intervals:
        raise ScalingError(_no_factor(quantities))
    slowest = intervals[-1]
    factor = slowest[0] if np.isinf(slowest[1]) else intervals[0][0]
    limiting = _limiting(quantities, factor) if factor > 0.0 else None
    return UniformScaling(factor, limiting, intervals)


def stretched(motion: ArrayLike, factor: float) -> Array:
    """Play samples of a motion with a time factor.

    Parameters
    ----------
    motion : array-like, shape (..., K, n)
    factor : float
        Above zero.

    Returns
    -------
    ndarray, shape (..., K, n)
        `[..., k, :]` is divided by factor^k. The times of the samples take the factor, too.

    Raises
    ------
    MotionError
        If the factor is not positive or the motion has no such shape.
    """
    array = np.asarray(motion, dtype=np.float64)
    if array.ndim < 2:
        raise MotionError(f'The motion has shape {array.shape}, expected (..., K, n).')
    return at_rate(array, 1.0 / _checked_factor(factor))


@dataclass(frozen=True)
class StretchedMotion:
    """A motion that is played with a time factor, from the same start time.

    Attributes
    ----------
    motion : function of time
        Such as a `MotionSpline`.
    factor : float
        Above zero.

    Raises
    ------
    MotionError
        If the factor is not positive.
    """

    motion: TimedMotion
    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, 'factor', _checked_factor(self.factor))

    @property
    def start_time(self) -> float:
        """Time at which it begins [s]."""
        return self.motion.start_time

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""
        return self.start_time + self.duration

    @property
    def duration(self) -> float:
        """Time that it takes [s]."""
        return self.factor * (self.motion.end_time - self.motion.start_time)

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at given times; see `MotionSpline`."""
        offset = (real_numbers(t, 't') - self.start_time) / self.factor
        # The last time must not end up behind the end by rounding.
        time = self.start_time + offset
        end = self.motion.end_time
        time = np.where(np.abs(time - end) <= 4.0 * np.spacing(abs(end)), end, time)
        return stretched(self.motion(time, highest_derivative), self.factor)


def _checked_factor(factor: float) -> float:
    if not (np.isfinite(factor) and factor > 0.0):
        raise MotionError(f'The time factor is {factor!r}, expected a positive finite number.')
    return float(factor)


def _sampled(model: RobotModel, motion: ArrayLike | TimedMotion, K: int) -> Array:
    """Sample what is given, (N, K, n)."""
    if callable(motion):
        times = np.linspace(motion.start_time, motion.end_time, SAMPLES)
        motion = motion(times, K - 1)
    samples = checked_motion(model, motion)
    if samples.ndim != 3 or not len(samples):
        raise MotionError(
            f'The motion has shape {samples.shape}, expected (N, K, {model.n_joints}) with N >= 1.'
        )
    return samples


def _refuse_positions(model: RobotModel, limits: MotionLimits, samples: Array) -> None:
    shape = (len(samples), 1, model.n_joints)
    still = np.concatenate((samples[:, :1], np.zeros((len(samples), 2, model.n_joints))), axis=1)
    found = find_violations(model, limits, still, np.zeros(shape))
    if found:
        worst = found[0]
        raise ScalingError(
            f'Joint {worst.joint_name!r} has the position {worst.value:.6g} at sample '
            f'{worst.sample} beyond its limit {worst.limit:.6g}: no time factor changes that; '
            'change the path.'
        )


def _with_slack(limit: Array) -> Array:
    return limit + _ROUNDING * (limit + 1.0)


def _excess(quantities: Sequence[Quantity], s: float) -> float:
    """Largest excess, relative to the limit; infinite where a spring cannot have its torque."""
    worst = -np.inf
    for item in quantities:
        try:
            values = np.abs(item.values(s)).max(axis=0)
        except DeflectionError:
            return np.inf
        limit = _with_slack(item.limit)
        limited = np.isfinite(limit)
        excess = (values[limited] - limit[limited]) / limit[limited]
        worst = max(worst, float(excess.max(initial=-np.inf)))
    return worst


def _outside_by_search(quantities: Sequence[Quantity], known: Sequence[Intervals]) -> Intervals:
    """Where quantities that can only be evaluated exceed their limits."""
    fastest = min((float(gap[1]) for gap in free(*known)[-1:]), default=0.0) if known else np.inf
    if fastest == 0.0:
        return Intervals(np.zeros(0), np.zeros(0))
    if np.isinf(fastest):
        # No polynomial ends the search: go up until a limit is exceeded three times running.
        powers = 2.0 ** np.arange(-20, 21)
        exceeded = np.array([_excess(quantities, s) > 0.0 for s in powers])
        running = exceeded[:-2] & exceeded[1:-1] & exceeded[2:]
        fastest = float(powers[np.argmax(running) + 2]) if running.any() else float(powers[-1])
    rates = np.append(0.0, np.geomspace(_RANGE, 1.0, _RATES) * fastest)
    exceeded = np.array([_excess(quantities, s) > 0.0 for s in rates])
    edges = [0.0] if exceeded[0] else []
    for i in np.flatnonzero(exceeded[1:] != exceeded[:-1]).tolist():
        low, high = rates[i], rates[i + 1]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            is_same = (_excess(quantities, middle) > 0.0) == exceeded[i]
            low, high = (middle, high) if is_same else (low, middle)
        # The side on which the limits are kept, away from the edge by more than rounding.
        edges.append(float(high * (1.0 + _EDGE) if exceeded[i] else low * (1.0 - _EDGE)))
    if len(edges) % 2:
        edges.append(np.inf)
    return Intervals(np.array(edges[::2]), np.array(edges[1::2]))


def _limiting(quantities: Sequence[Quantity], factor: float) -> Limiting | None:
    """Find what would be exceeded first with a smaller factor."""
    s = 1.0 / factor
    worst, result = -np.inf, None
    for item in quantities:
        limit = np.where(np.isfinite(item.limit), item.limit, np.inf)
        try:
            values, faster = item.values(s), item.values(s * (1.0 + _FASTER))
        except DeflectionError as error:
            # A spring is at the end of its range.
            springs = next(each for each in quantities if each.name == 'deflection')
            column, sample = springs.columns.index(error.joint), error.sample[0]
            value = float(springs.values(s)[sample, column])
            return Limiting(springs.name, error.joint, sample, value, value)
        excess = np.abs(faster) / limit
        sample, column = divmod(int(excess.argmax()), excess.shape[1])
        if excess[sample, column] > worst:
            worst = float(excess[sample, column])
            value = float(values[sample, column])
            bound = float(np.copysign(item.limit[column], value))
            result = Limiting(item.name, item.columns[column], sample, value, bound)
    return result


def _no_factor(quantities: Sequence[Quantity]) -> str:
    """Message that says why no factor exists."""
    for item in quantities:
        try:
            values = np.abs(item.values(0.0))
        except DeflectionError as error:
            return f'No time factor makes the motion possible. Held still: {error}'
        excess = values - _with_slack(item.limit)
        if np.any(excess > 0.0):
            sample, column = divmod(int(excess.argmax()), excess.shape[1])
            return (
                f'No time factor makes the motion keep its limits: to hold still at sample '
                f'{sample}, {item.columns[column]!r} already needs {item.name} = '
                f'{values[sample, column]:.6g}, more than {item.limit[column]:.6g}. Change the '
                'path, the load or the limits.'
            )
    return (
        'No time factor makes the motion keep its limits: at every speed another one is exceeded. '
        'Change the path or the limits.'
    )
