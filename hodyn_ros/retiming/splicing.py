"""Chunks of positions, such as learned policies send, spliced into the motion in progress.

The new motion is a spline of degree 5 with even knots, so of class C4, that begins with the state
of the one in progress and ends at rest. It is as near to the chunk as its limits allow: a
quadratic program for each joint, whose bounds hold at all times since a derivative of a spline is
a mean of differences of its coefficients (de Boor, A Practical Guide to Splines). The motion in
progress, which comes to rest by itself, is a feasible point, so there is always a solution.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import StaleError, TrajectoryError
from hodyn_ros.model.limits import MotionLimits, velocity_use
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import find_position_violations, tightened
from hodyn_ros.trajectory.jtc import JtcMotion, spline_of_degree_5
from hodyn_ros.trajectory.motion import PiecewiseMotion, taylor_weights
from hodyn_ros.trajectory.planning import waypoints_in_order
from hodyn_ros.trajectory.spline import stop_motion
from hodyn_ros.trajectory.waypoints import Waypoints
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.retiming.quadratic_program import Program

_FEWEST, _MOST = 10, 2000  # knots of a motion, after the first one

# Parts of an interval between knots at which efforts are compared with their limits, and the
# part of these that they may reach there, since they may be higher in between.
_LOOKS, _REACH = np.arange(4) / 4, 0.98
# Rounds in which a motion with too high efforts is led nearer to the one in progress, and how
# much more than what is missing.
_ROUNDS, _MORE = 12, 1.2
_LEAST, _NO_LIMIT = 1e-9, 1e6  # in place of limits that are zero or infinite
_LONG, _SHORTEST_STOP = 5.0, 0.1  # s, of motions in progress
_TURN = 2.0 * np.pi


def splice(
    model: RobotModel,
    limits: MotionLimits,
    chunk: Waypoints,
    current: PiecewiseMotion | ArrayLike,
    join: float,
    *,
    step: float = 0.01,
    bandwidth: float = 5.0,
    stop_duration: float = 0.5,
) -> JtcMotion:
    """Lead a motion in progress over to a chunk of positions, within the limits of a robot.

    Position, velocity, acceleration and jerk keep their limits at all times. Torques and their
    rates are looked at four times in every step, with two per cent of their limits in reserve;
    where they are too high, the motion is led nearer to the one in progress. What that one exceeds
    already may be exceeded as far. Of joints that closed loops move the positions at waypoints are
    looked at.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    chunk : Waypoints
        One or more, of which times and positions are used. Those before the join have passed,
        behind the last one it is held. Continuous joints may be whole turns away.
    current : PiecewiseMotion or array-like, shape (n,)
        The motion in progress, with the same time as the chunk, or where the joints rest [rad] or
        [m].
    join : float
        When the new motion begins, best at a knot of one in progress with the same step [s].
    step : float
        Between the knots; a whole number of nanoseconds [s].
    bandwidth : float
        Frequency from which on the chunk is not followed, but smoothed [Hz].
    stop_duration : float
        From the last waypoint until rest, longer if the motion in progress takes longer [s].

    Returns
    -------
    JtcMotion
        Of class C4, from the join at its time zero to rest.

    Raises
    ------
    JointNameError
        If the chunk has other joints than the model.
    StaleError
        If all waypoints have passed at the join.
    TrajectoryError
        If an argument cannot be used, a waypoint lies outside of the limits, or torques or their
        rates exceed theirs even where the motion goes on as it was.

    Examples
    --------
    From rest into a chunk of positions that a policy sends:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import motion_limits
    >>> from hodyn_ros.retiming import splice
    >>> from hodyn_ros.trajectory import Waypoints
    >>> model = RobotModel.from_urdf('two_link')
    >>> bounds = {'acceleration': 20.0, 'jerk': 500.0}
    >>> limits = motion_limits(model, dict.fromkeys(model.joint_names, bounds))
    >>> positions = [[0.4, 0.0], [0.5, 0.0], [0.6, 0.0]]
    >>> chunk = Waypoints(model.joint_names, [0.5, 0.6, 0.7], positions)
    >>> motion = splice(model, limits, chunk, current=[0.3, 0.0], join=0.0)
    >>> motion(motion.end_time, 0).round(3) + 0.0, motion.continuous_derivative
    (array([[0.6, 0. ]]), 4)
    """
    _check_options(join, step, bandwidth, stop_duration)
    chunk = waypoints_in_order(chunk, model.joint_names)
    if chunk.times[-1] < join:
        raise StaleError(
            f'The last waypoint of the chunk lies {join - chunk.times[-1]:.3g} s before the '
            'instant from which it can be followed; send longer chunks, or send them earlier.'
        )
    motion, state, end = _in_progress(current, join, model.n_joints, stop_duration)
    times, positions = _targets(model, limits, chunk, state, join)
    intervals = _steps(max(times[-1] + stop_duration, end) - join, step)
    from hodyn_ros.retiming.quadratic_program import program_of  # It loads SciPy.

    knots = join + step * np.arange(intervals + 1.0)
    wanted = np.stack([np.interp(knots, times, column) for column in positions.T], axis=1)
    before = _coefficients(motion, state, end, knots, step)
    weight = (2.0 * np.pi * bandwidth * step) ** -6.0
    return _led_over(model, limits, program_of(intervals), wanted, before, weight, step)


def _steps(duration: float, step: float) -> int:
    """Number of steps [s] that a motion takes; a `TrajectoryError` if there are too many."""
    intervals = max(ceil(duration / step - 1e-6), _FEWEST)
    if intervals > _MOST:
        raise TrajectoryError(
            f'The motion would have {intervals} steps of {step:g} s, expected {_MOST} at most; '
            'send a shorter chunk, or a trajectory instead.'
        )
    return intervals


def _check_options(
    join: float, step: float, bandwidth: float, stop_duration: float
) -> None:
    """Refuse options of `splice` that cannot be used, with a `TrajectoryError`."""
    checked_number('join', join, TrajectoryError, unit='s')
    checked_number('step', step, TrajectoryError, above=0.0, unit='s')
    checked_number('bandwidth', bandwidth, TrajectoryError, above=0.0, unit='Hz')
    checked_number('stop_duration', stop_duration, TrajectoryError, least=0.0, unit='s')


def _in_progress(
    current: PiecewiseMotion | ArrayLike, join: float, n: int, stop_duration: float
) -> tuple[PiecewiseMotion | None, Array, float]:
    """Motion in progress, None at rest; its state (5, n) at the join, and its end [s].

    Of a motion that takes long, the stop from there on takes the place.

    Raises
    ------
    TrajectoryError
        If the motion in progress has other joints, or is not finite.
    """
    if isinstance(current, PiecewiseMotion) and join >= current.end_time:
        current = current(current.end_time, 0)[0]
    motion, end = None, join
    if isinstance(current, PiecewiseMotion):
        motion, state, end = current, current(join), current.end_time
    else:
        rest = finite_array('current', current, TrajectoryError)
        state = np.stack((rest, *np.zeros((4, *rest.shape))))
    if state.shape != (5, n):
        raise TrajectoryError(
            f'The motion in progress has {state.shape[1:]} joints, expected {n}.'
        )
    if end - join > _LONG:  # that is not what the chunk is compared with
        motion = stop_motion(state, max(stop_duration, _SHORTEST_STOP), join)
        end = motion.end_time
    return motion, state, end


def _targets(
    model: RobotModel, limits: MotionLimits, chunk: Waypoints, state: Array, join: float
) -> tuple[Array, Array]:
    """Times (N,) and positions (N, n) of the chunk, from the join on, within their limits.

    Raises
    ------
    TrajectoryError
        If a waypoint lies outside of the limits.
    """
    times, positions = chunk.times, chunk.positions
    # As with joint_trajectory_controller, continuous joints take the shorter way.
    turns = np.round((state[0] - positions[0]) / _TURN)
    positions = positions + _TURN * turns * [
        kind == 'continuous' for kind in model.joint_types
    ]
    for item in find_position_violations(model, limits, positions):
        raise TrajectoryError(
            f'Waypoint {item.sample} of the chunk has the position {item.value:.6g} of '
            f'{item.joint_name}, whose limit is {item.limit:.6g}.'
        )
    if times[0] > join:
        times, positions = np.append(join, times), np.concatenate((state[:1], positions))
    return times, positions


def _coefficients(
    current: PiecewiseMotion | None, state: Array, end: float, knots: Array, step: float
) -> Array:
    """Coefficients (M, n) of the motion in progress.

    At a knot q = c + D2 / 4 + D4 / 120 with differences D4 = step^4 q4d and
    D2 = step^2 q2d - D4 / 6. The first five are those of the polynomial that has the state at the
    join, the last five rest.

    Parameters
    ----------
    current : PiecewiseMotion or None
        Motion in progress; None at rest.
    state : ndarray, shape (5, n)
        At the join [rad/s^k] or [m/s^k].
    end : float
        Of the motion in progress [s].
    knots : ndarray, shape (M - 4,)
        From the join on [s].
    step : float
        Between them [s].

    Returns
    -------
    ndarray, shape (M, n)
        [rad] or [m].
    """
    at = np.zeros((len(knots) + 4, *state.shape))
    at[:, 0] = state[0]
    if current is not None:
        at[5:-5] = current(knots[3:-3].clip(max=end))
        at[-5:, 0] = current(end, 0)
    at[:5] = taylor_weights(step * np.arange(-2.0, 3.0), 5, 5) @ state
    before: Array = at[:, 0] - step**2 / 4.0 * at[:, 2] + step**4 / 30.0 * at[:, 4]
    return before


def _led_over(
    model: RobotModel,
    limits: MotionLimits,
    program: Program,
    wanted: Array,
    before: Array,
    weight: float,
    step: float,
) -> JtcMotion:
    """Motion near positions at its knots that keeps the limits, from that in progress.

    What that one exceeds, the new one may exceed as far. Where torques or their rates are too
    high, it is led nearer to the one in progress.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    program : Program
        For as many knots.
    wanted : ndarray, shape (M - 4, n)
        Positions at the knots [rad] or [m].
    before : ndarray, shape (M, n)
        Coefficients of the motion in progress.
    weight : float
        Of third differences beside distances at the knots.
    step : float
        Between the knots [s].

    Returns
    -------
    JtcMotion

    Raises
    ------
    TrajectoryError
        If torques or their rates are too high after 12 rounds.
    """
    falls = np.isfinite(limits.deceleration_limit).any()
    own = tightened(model, limits)
    low, high = np.clip((own.lower, own.upper), -_NO_LIMIT, _NO_LIMIT)
    of_orders = (high - low) / 2.0, own.velocity, own.acceleration, own.jerk
    bound = np.clip(of_orders, _LEAST, _NO_LIMIT) * step ** np.arange(4.0)[:, None]
    middle = np.zeros_like(bound)
    middle[0] = (low + high) / 2.0
    center = program.limited @ before - middle[program.orders]
    bound = np.maximum(bound[program.orders], np.abs(center))
    gradient = program.free.T @ (
        program.at_knots.T @ (wanted - program.at_knots @ before)
        - weight * program.third.T @ (program.third @ before)
    )
    limit = _REACH * np.maximum((limits.effort, limits.effort_dot), _LEAST)
    nearer = 1.0
    for _ in range(_ROUNDS):
        band = program.bands[0] + nearer * weight * program.bands[1]
        change = program.least(band, gradient, center, bound)
        motion = spline_of_degree_5(before + program.free @ change, step)
        samples = motion.within(np.arange(len(wanted) - 1), _LOOKS)
        ratios = np.abs(inverse_dynamics(model, samples)[:, :, :2]) / limit
        if falls:
            use = np.abs(velocity_use(limits, samples))[:, :, None]
            ratios = np.concatenate((ratios, use), axis=2)
        excess = float(ratios.max(initial=0.0))
        if excess <= 1.0:
            return motion
        nearer *= (_MORE * excess) ** 2
    *_, order, joint = np.unravel_index(ratios.argmax(), ratios.shape)
    raise TrajectoryError(
        f'The {("effort", "effort_dot", "velocity")[order]} of {model.joint_names[joint]} is '
        f'{excess:.3g} times as large as it may be, even where the chunk is hardly followed; the '
        'motion in progress goes on.'
    )
