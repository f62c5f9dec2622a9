"""Results of a motion, checked and in the order of the model, and their quantities with limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array, first_true
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.files.quantities import QUANTITIES
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.names import EFFORT_NAMES, MOTION_NAMES, listed
from hodyn_ros.plotting.labels import Label, effort_label, label_of, motion_label

if TYPE_CHECKING:
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.files import Samples


class Range(NamedTuple):
    """Limits along one axis; infinite where there is none.

    Attributes
    ----------
    lower, upper : float
        In the unit of the axis.
    """

    lower: float = -np.inf
    upper: float = np.inf


class Series(NamedTuple):
    """One quantity of all joints, or of all motors, along a motion, with its limits.

    Attributes
    ----------
    quantity : str
        As in `Violation`; empty if it cannot have limits.
    names : tuple of str
        The m joints or motors.
    labels : tuple of Label
        How the quantity of each is written.
    values : ndarray, shape (N, m)
        NaN where it is not known.
    lower, upper : ndarray, shape (m,)
        Limits; infinite where there is none.
    std : ndarray, shape (N, m), or None
        Standard deviations, if they are known.
    """

    quantity: str
    names: tuple[str, ...]
    labels: tuple[Label, ...]
    values: Array
    lower: Array
    upper: Array
    std: Array | None = None


def peak_share(values: Array, limits: Range) -> float:
    """Share of a limit that the worst value uses: 1 on the limit, NaN if there is none.

    Between a lower and an upper limit it is measured from the middle.

    Parameters
    ----------
    values : ndarray, shape (N,)
        NaN where they are not known; one at least is.
    limits : Range

    Returns
    -------
    float
        Infinite where both limits are equal and the value is another one; 0 where it is
        that, such as the velocity of a joint at rest that must not move.
    """
    lower, upper = limits
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return np.nan
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    distance = float(np.nanmax(np.abs(values - middle)))
    return distance / half if half > 0.0 else (np.inf if distance > 0.0 else 0.0)


def checked_results(results: Samples, model: RobotModel) -> Samples:
    """Results in model order, without last orders of which nothing is known.

    A `JointNameError` is raised if the joints are not those of the model, a `MotionError` if
    shapes do not fit, values are infinite, times or positions not finite, or times decrease.

    Parameters
    ----------
    results : Samples
        Joints in any order.
    model : RobotModel

    Returns
    -------
    Samples

    Raises
    ------
    JointNameError
        If joints, or those that the motors move, are not those of the model.
    MotionError
        If shapes do not fit, values are infinite, times or positions not finite, or times
        decrease.
    """
    if isinstance(results, RobotModel):
        raise MotionError(
            'The results are a RobotModel: give the model first, then the results.'
        )
    order, n = model.joint_order(results.joint_names), model.n_joints
    times = _checked_times(results)
    N, owners = len(times), results.motor_joints
    arrays: dict[str, Any] = {}
    for what, values in results.arrays().items():
        if QUANTITIES[what].owners == 'motor_names':
            m = len(results.motor_names)
            arrays[what] = _orders(f'{what.replace("_", " ")}s', values, N, m)
        else:
            name = 'deflections' if what == 'deflection' else what
            arrays[what] = _orders(name, values, N, n)[..., order]
    if arrays['motion'].shape[1] == 0:
        raise MotionError('The results hold no positions.')
    positions = arrays['motion'][:, 0]
    _refuse(np.isnan(positions), positions, 'positions')
    if results.motors is not None and (
        len(owners) != m or not set(owners) <= set(model.joint_names)
    ):
        raise JointNameError(
            f'The motors {listed(results.motor_names)} are said to move {listed(owners)}, '
            f'expected one joint of the model for each: {listed(model.joint_names)}.'
        )
    return replace(
        results,
        **arrays,
        joint_names=model.joint_names,
        joint_units=tuple(results.joint_units[j] for j in order if results.joint_units),
        times=times,
    )


def _checked_times(results: Samples) -> Array:
    """Finite times (N,) [s] that do not decrease, N >= 1."""
    times = np.asarray(results.times, dtype=np.float64)
    if times.ndim != 1 or not len(times):
        raise MotionError(f'The times have shape {times.shape}, expected (N,) with N >= 1.')
    _refuse(~np.isfinite(times), times, 'times')
    if np.any(np.diff(times) < 0.0):
        where = int(np.argmax(np.diff(times) < 0.0))
        raise MotionError(
            f'The times decrease: {times[where]} s is followed by {times[where + 1]} s '
            f'(sample {where + 1}); sort the samples by time.'
        )
    return times


def _orders(what: str, values: Array, N: int, n: int) -> Array:
    """Check an array (N, K, n), and leave last orders out of which nothing is known."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 3 or array.shape[::2] != (N, n):
        raise MotionError(
            f'The {what} of the results have shape {array.shape}, expected ({N}, K, {n}).'
        )
    _refuse(np.isinf(array), array, what)
    known = np.flatnonzero(~np.isnan(array).all(axis=(0, 2)))
    return array[:, : known[-1] + 1 if known.size else 0]


def _refuse(is_wrong: NDArray[np.bool_], array: Array, what: str) -> None:
    """Refuse an array with wrong values, with a `MotionError` that says where the first is."""
    if (where := first_true(is_wrong)) is not None:
        raise MotionError(
            f'The {what} of the results hold {array[where]} at {where}, expected finite numbers.'
        )


def joint_of(results: Samples, name: str) -> int | None:
    """Index of the joint of this name, or of the one that the motor of this name moves.

    Parameters
    ----------
    results : Samples
    name : str
        Of a joint or motor.

    Returns
    -------
    int or None
        None if there is neither.
    """
    owners = dict(zip(results.motor_names, results.motor_joints))
    name = name if name in results.joint_names else owners.get(name, name)
    return results.joint_names.index(name) if name in results.joint_names else None


def is_linear(results: Samples, model: RobotModel, name: str) -> bool:
    """Whether the joint or motor of this name moves in metres.

    Parameters
    ----------
    results : Samples
        In the order of the model.
    model : RobotModel
    name : str
        Of a joint, which may be one that loops move, or of a motor.

    Returns
    -------
    bool
    """
    if model.closure is not None and name in model.closure.tree.joint_names:
        tree = model.closure.tree
        return tree.joint_types[tree.joint_names.index(name)] == 'prismatic'
    joint = joint_of(results, name)
    return joint is not None and model.joint_types[joint] == 'prismatic'


def motion_series(
    results: Samples, model: RobotModel, limits: MotionLimits | None
) -> list[Series]:
    """Joint positions and their derivatives, at least all that may have limits.

    The results are those of `checked_results`; by default the limits are those of the model.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel
    limits : MotionLimits, optional

    Returns
    -------
    list of Series
        Position to jerk at least, NaN where the results hold less.
    """
    known = results.motion, results.motion_std
    return _joint_series(*known, MOTION_NAMES[:4], motion_label, model, limits)


def effort_series(
    results: Samples, model: RobotModel, limits: MotionLimits | None
) -> list[Series]:
    """Efforts and their derivatives, at least all that may have limits; see `motion_series`.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel
    limits : MotionLimits, optional
        By default those of the model.

    Returns
    -------
    list of Series
        All orders that may have limits at least, NaN where the results hold less.
    """
    known = results.effort, results.effort_std
    return _joint_series(*known, EFFORT_NAMES, effort_label, model, limits)


def _joint_series(
    values: Array,
    std: Array | None,
    limited: tuple[str, ...],
    label: Callable[[int, bool], Label],
    model: RobotModel,
    limits: MotionLimits | None,
) -> list[Series]:
    """Orders of the motion or of the efforts, with the limits of the joints.

    Parameters
    ----------
    values : ndarray, shape (N, K, n)
    std : ndarray, shape (N, K, n), or None
    limited : tuple of str
        Names of the orders that may have limits.
    label : callable
        From the order, and whether a joint is linear, to its label.
    model : RobotModel
    limits : MotionLimits or None
        None: those of the model.

    Returns
    -------
    list of Series
        One for each order.
    """
    limits = motion_limits(model) if limits is None else limits
    found = []
    for k in range(max(values.shape[1], len(limited))):
        quantity = limited[k] if k < len(limited) else ''
        if quantity == 'position':
            lower, upper = limits.lower, limits.upper
        else:
            upper = getattr(limits, quantity, np.full(model.n_joints, np.inf))
            lower = -upper
        labels = tuple(label(k, kind == 'prismatic') for kind in model.joint_types)
        found.append(
            Series(
                quantity,
                model.joint_names,
                labels,
                _order(values, k),
                lower,
                upper,
                None if std is None else _order(std, k),
            )
        )
    return found


def motor_series(
    results: Samples, model: RobotModel, limits: MotorLimits | None
) -> list[Series]:
    """Positions of the motors and what may have limits: nothing if the results hold no motors.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel
    limits : MotorLimits, optional
        By default there are none.

    Returns
    -------
    list of Series
        Position, velocity, torque and torque rate of the m motors, and the deflection of
        the n joints, last.
    """
    if results.motors is None:
        return []
    position, torque, deflection = results.motors
    found = []
    for quantity, values, order, names in (
        ('motor_position', position, 0, results.motor_names),
        ('motor_velocity', position, 1, results.motor_names),
        ('motor_torque', torque, 0, results.motor_names),
        ('motor_torque_rate', torque, 1, results.motor_names),
        ('deflection', deflection, 0, model.joint_names),
    ):
        upper = getattr(limits, quantity, np.full(len(names), np.inf))
        labels = tuple(
            label_of(quantity, is_linear(results, model, name)) for name in names
        )
        found.append(Series(quantity, names, labels, _order(values, order), -upper, upper))
    return found


def _order(values: Array, order: int) -> Array:
    """One order (N, m) of an array (N, K, m); NaN if it does not have it."""
    if order < values.shape[1]:
        return values[:, order]
    return np.full((len(values), values.shape[2]), np.nan)
