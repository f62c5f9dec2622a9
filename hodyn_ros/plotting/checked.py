"""Samples of a motion, checked and in the order of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array, first_true
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.files.quantities import QUANTITIES
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

if TYPE_CHECKING:
    from hodyn_ros.files import Samples


def checked_results(results: Samples, model: RobotModel) -> Samples:
    """Samples in model order, without last orders of which nothing is known.

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
