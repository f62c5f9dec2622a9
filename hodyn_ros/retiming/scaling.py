"""The smallest time factor with which a motion keeps its limits, be it samples or a function.

A function of time is examined at many times, and at its peaks. See doc/trajectories.rst.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import MotionError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.retiming.played import Played
from hodyn_ros.retiming.robot_limits import (
    RobotLimits,
    TimedMotion,
    UniformScaling,
    at_rate,
    knots_of,
    refuse_extremes,
)
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits

# Equal steps at which a function of time is examined, and places on each segment between its
# knots; fewer where there are more than so many in all, half the degree of polynomials at least.
_STEPS, _PLACES, _MOST_PLACES, _FEWEST_PLACES = 2000, 16, 16_384, 5
# Times that are examined together, which bounds the memory, and how many of these are remembered.
_BLOCK, _REMEMBERED = 4096, 12
# Peaks that are looked at in a pass at most, rounds of three places at each, and by which number
# these come nearer to each other from round to round.
_MOST_PEAKS, _ROUNDS, _NEARER = 1300, 4, 8.0
# Passes along the whole motion, each at the rate that the peaks of the last one ask for, and the
# change of the rate, relative, below which there are no more; how much higher one may become.
_PASSES, _SETTLED, _MORE = 5, 1e-6, 1.3

# Highest derivative of the motion that limits of motors behind springs depend on.
_OF_MOTORS = 5
# Halvings of an interval of rates while a block is one of many.
_ROUGHLY = 8


def stretched(motion: ArrayLike, factor: float) -> Array:
    """Samples of a motion, shape (..., K, n), played with a time factor: `[..., k, :]` / factor^k.

    Parameters
    ----------
    motion : array-like, shape (..., K, n)
        Positions and time derivatives.
    factor : float
        Positive; 2 is half as fast.

    Returns
    -------
    ndarray, shape (..., K, n)

    Raises
    ------
    MotionError
        If the factor is not positive or the motion has no such shape.

    Examples
    --------
    Half as fast:

    >>> from hodyn_ros.retiming import stretched
    >>> stretched([[0.3, 0.1], [1.0, 0.5], [2.0, 0.0]], 2.0)
    array([[0.3 , 0.1 ],
           [0.5 , 0.25],
           [0.5 , 0.  ]])
    """
    array = np.asarray(motion, dtype=np.float64)
    if array.ndim < 2:
        raise MotionError(f'The motion has shape {array.shape}, expected (..., K, n).')
    return at_rate(
        array, 1.0 / checked_number('The time factor', factor, MotionError, above=0.0)
    )


def uniform_scaling(
    model: RobotModel,
    motion: ArrayLike | TimedMotion,
    limits: MotionLimits | None = None,
    *,
    wrench: Wrench | Sequence[Wrench] | None = None,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
) -> UniformScaling:
    """Smallest uniform time factor with which a motion keeps its limits.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (N, K, n), or function of time
        Samples with their time derivatives, see `inverse_dynamics`; K >= 4 for limits of the jerk
        and of the torque rate, K >= 5 for its derivative and the torque of motors behind springs,
        K >= 6 for the torque rate of these. A function of time is examined between its knots, an
        array `times`, if it has some, and at 2001 equal steps.
    limits : MotionLimits, optional
        By default those of the model.
    wrench : Wrench or sequence of Wrench, optional
        At these samples; taken as a function of the place on the path. For a function of time one
        that is the same everywhere.
    actuators, motor_limits : Actuators and MotorLimits, optional
        Dampers are followed as in `motor_motion`.

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If slow motions do not keep the limits: a position limit is exceeded, or gravity and
        wrenches alone ask for too much torque.
    MotionError
        If the motion cannot be used, or a limit needs a derivative that it does not have.
    WrenchError, ActuatorError
        If wrench or actuators do not fit.

    Notes
    -----
    The limits are kept at the factor, up to the rounding of `find_violations`. With friction or
    actuators the factor is searched, and limits that are exceeded between factors less than
    20 % apart may stay unseen.

    Examples
    --------
    How much slower a motion is to be played, and why:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.retiming import uniform_scaling
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 0.3], [[0.0, 0.0], [1.0, 0.0]])
    >>> scaling = uniform_scaling(RobotModel.from_urdf('two_link'), spline)
    >>> print(f'{scaling.factor:.2f}: {scaling.limiting.quantity} of {scaling.limiting.name}')
    3.54: effort of shoulder
    """
    wrenches = (wrench,) if isinstance(wrench, Wrench) else wrench or ()
    robot = RobotLimits.of(model, limits, actuators, motor_limits)
    return scaling_of(robot, motion, wrenches)


def scaling_of(
    robot: RobotLimits, motion: ArrayLike | TimedMotion, wrenches: Sequence[Wrench] = ()
) -> UniformScaling:
    """Scaling of samples or of a function of time, see `uniform_scaling`.

    Parameters
    ----------
    robot : RobotLimits
    motion : array-like, shape (N, K, n), or function of time
    wrenches : sequence of Wrench
        At the samples.

    Returns
    -------
    UniformScaling
    """
    if callable(motion):
        refuse_extremes(robot, motion)
        return _InTime(robot, motion, wrenches).scaling()
    played = Played(robot, motion, wrenches)
    return played.scaling(played.fastest())


def check_of(
    robot: RobotLimits, motion: ArrayLike | TimedMotion, wrenches: Sequence[Wrench] = ()
) -> UniformScaling:
    """Exact check of a motion as it is given; of its positions see `refuse_extremes`.

    Parameters
    ----------
    robot : RobotLimits
    motion : array-like, shape (N, K, n), or function of time
    wrenches : sequence of Wrench
        At the samples.

    Returns
    -------
    UniformScaling
        Of a function of time the factor is that of the places where it exceeds its limits or
        comes closest to them, and slower motions may exceed them.

    Raises
    ------
    ScalingError
        If the limits are exceeded at every speed.
    """
    if callable(motion):
        return _InTime(robot, motion, wrenches).check()
    played = Played(robot, motion, wrenches)
    return played.scaling(played.nearest())


class _InTime:
    """Limited quantities of a function of time, examined at many times and at their peaks.

    Parameters
    ----------
    robot : RobotLimits
    motion : function of time
    wrenches : sequence of Wrench
        The same at all times.
    """

    def __init__(
        self, robot: RobotLimits, motion: TimedMotion, wrenches: Sequence[Wrench]
    ) -> None:
        self._robot, self._motion, self._wrenches = robot, motion, wrenches
        self._order = robot.order if robot.actuators is None else _OF_MOTORS
        times = self._times = _times_of(motion, self._order)
        # Each block knows a neighbour on both sides, to see which of its samples are peaks.
        self._blocks = [
            times[max(start - 1, 0) : start + _BLOCK + 1]
            for start in range(0, len(times), _BLOCK)
        ]
        self._block = lru_cache(maxsize=_REMEMBERED)(lambda k: self._at(self._blocks[k]))

    def scaling(self) -> UniformScaling:
        """Smallest factor from which on all larger ones keep the limits.

        Returns
        -------
        UniformScaling

        Raises
        ------
        ScalingError
            If there is no factor.
        """
        rate = np.inf
        for k in range(len(self._blocks)):
            rate = self._block(k).fastest(rate, _ROUGHLY)
            if rate == 0.0:
                return self._block(k).scaling(rate)  # which says where it cannot be held
        for _ in range(_PASSES):
            if rate == np.inf:
                return UniformScaling(0.0, None)
            closest = self._closest(rate)
            last, rate = rate, closest.fastest(_MORE * rate)
            if abs(last - rate) <= _SETTLED * last:
                break
        return closest.scaling(rate)

    def check(self) -> UniformScaling:
        """Factor of the places that are closest to their limits at the rate one, or beyond.

        Returns
        -------
        UniformScaling

        Raises
        ------
        ScalingError
            If there is no factor.
        """
        if not self._block(0).labels:
            return UniformScaling(0.0, None)
        closest = self._closest(1.0)
        return closest.scaling(closest.nearest())

    def _at(self, times: Array) -> Played:
        """Limited quantities at times (N,)."""
        motion = self._motion(times, self._order)
        return Played(self._robot, motion, self._wrenches, times)

    def _closest(self, s: float) -> Played:
        """Limited quantities where they are closest to their limits at a rate.

        Times of peaks are found by the vertex of a parabola through three places, ever nearer.
        """
        peaks = np.concatenate([self._block(k).peaks(s) for k in range(len(self._blocks))])
        peaks = peaks[np.argsort(-peaks[:, 3], kind='stable')[:_MOST_PEAKS]]
        column, centre, width, _ = peaks.T
        peak, ends = np.arange(len(peaks)), self._times[[0, -1]]
        for _ in range(_ROUNDS):
            around = np.clip(centre + width * [[-1.0], [0.0], [1.0]], *ends)
            shares = self._at(around.ravel()).shares(s).reshape(3, len(peaks), -1)
            before, middle, behind = shares[:, peak, column.astype(np.intp)]
            bend = 2.0 * middle - before - behind
            with np.errstate(all='ignore'):
                vertex = np.where(
                    bend > 0.0, 0.5 * (behind - before) / bend, np.sign(behind - before)
                )
            centre = centre + width * np.clip(np.nan_to_num(vertex), -1.0, 1.0)
            centre, width = np.clip(centre, *ends), width / _NEARER
        return self._at(np.unique(np.concatenate((peaks[:, 1], centre))))


def _times_of(motion: TimedMotion, order: int) -> Array:
    """Times at which a motion and its derivatives up to an order are examined.

    Equal steps, and places between its knots.
    """
    times = np.linspace(motion.start_time, motion.end_time, _STEPS + 1)
    knots, expansions = knots_of(motion), getattr(motion, 'expansions', None)
    fewest = _FEWEST_PLACES if expansions is None else expansions.shape[2] // 2
    places = int(np.clip(_MOST_PLACES // (len(knots) - 1), fewest, _PLACES))
    fractions = np.arange(places - 1) / (places - 1)
    inside = knots[:-1, None] + np.diff(knots)[:, None] * fractions
    every = [times, inside.ravel(), knots[-1:]]
    if getattr(motion, 'continuous_derivative', 0) < order:
        # They may jump at a knot, so that it counts twice: with the last number before it.
        every.append(np.maximum(np.nextafter(knots[1:], -np.inf), knots[:-1]))
    found = np.unique(np.concatenate(every))
    return np.asarray(found[(found >= times[0]) & (found <= times[-1])])
