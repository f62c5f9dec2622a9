"""From a motion to its results: efforts with their derivatives, and the motors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import checked_number
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.files.derivatives import (
    Completed,
    Covariances,
    How,
    complete,
    relative_errors,
)
from hodyn_ros.files.quantities import EFFORT, MOTION, MOTOR_ARRAYS
from hodyn_ros.files.samples import Samples, known_orders
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.dynamics.wrenches import Wrench

# Instants for which deviations are computed together; rounding of correlations.
_TOGETHER, _ROUNDING = 500, 1e-12


def compute(
    model: RobotModel,
    samples: Samples,
    *,
    actuators: Actuators | None = None,
    order: int = 2,
    derivatives: str = 'auto',
    interpolation: str = 'spline',
    rate: float | None = None,
    estimator: Mapping[str, Any] | None = None,
    num_threads: int = 1,
) -> Samples:
    """Efforts along a motion with their derivatives, and what the motors do.

    Where the motion does not determine an order, the results are NaN.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Of all joints of the model, in any order.
    actuators : Actuators, optional
        Of the same model.
    order : int
        Highest derivative of the efforts that is wanted.
    derivatives, interpolation, rate, estimator
        Where the derivatives of the motion come from, see `to_motion`.
    num_threads : int
        See `inverse_dynamics`.

    Returns
    -------
    Samples
        Those that were given, or that a spline is evaluated at.

    Raises
    ------
    JointNameError
        If a joint of the model is missing.
    MotionError
        If an argument is unusable, or the motion does not determine any effort.
    WrenchError, TrajectoryError, ActuatorError
        If a wrench, the waypoints or a torque of a spring cannot be used.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> model = RobotModel.from_urdf('two_link')
    >>> at_rest = Samples(('shoulder', 'elbow'), [0.0, 1.0], [[[0.1, 0.2]], [[0.1, 0.2]]])
    >>> compute(model, at_rest).effort.shape
    (101, 3, 2)
    """
    most = len(MOTION) - 3
    order = int(checked_number('order', order, MotionError, least=0, most=most, whole=True))
    if actuators is not None:
        refuse_other_robot(actuators, model)
    how = How(derivatives, order + 3, interpolation, rate, dict(estimator or {}))
    completed = complete(model, samples, how)
    found, known = _with_efforts(model, completed, order + 1, num_threads)
    if completed.covariances is not None:
        std = _effort_std(model, completed.covariances, found, num_threads)
        remarks = relative_errors(found.effort, std, EFFORT, model.joint_names)
        found = replace(found, effort_std=std, remarks=(*found.remarks, *remarks))
    return found if actuators is None else _with_motors(actuators, completed, found, known)


def _with_efforts(
    model: RobotModel, completed: Completed, orders: int, num_threads: int
) -> tuple[Samples, NDArray[np.intp]]:
    """Efforts with so many orders at most, and how many of them each sample determines.

    Parameters
    ----------
    model : RobotModel
    completed : Completed
        Motion (N, K, n) with its wrenches.
    orders : int
        Of the efforts, at most.
    num_threads : int
        See `inverse_dynamics`.

    Returns
    -------
    samples : Samples
        With effort (N, E, n), E = min(orders, K - 2), NaN where an order is not determined.
    known : ndarray of int, shape (N,)
        From 0 to E.

    Raises
    ------
    MotionError
        If no efforts follow from the motion, or a wrench has fewer orders.
    """
    samples = completed.samples
    motion, name = samples.motion, samples.name
    if motion.shape[1] < 3:
        raise MotionError(
            f'{name}: there are {listed(MOTION[: motion.shape[1]])}, but efforts need the '
            "acceleration too; use derivatives='spline', or 'estimate' for measurements."
        )
    E = min(orders, motion.shape[1] - 2)
    for wrench in samples.wrenches:
        S = np.shape(wrench.values)[1]
        if S < E:
            raise MotionError(
                f'{name}: the wrench on {wrench.link!r} has {S} orders, but {E} are '
                f'needed for derivative {E - 1} of the efforts; give its derivatives, ask for '
                f"order={S - 1}, or use derivatives='spline'."
            )
    known: NDArray[np.intp] = (known_orders(motion) - 2).clip(0, E)
    if known.max() < 1 and samples.source != 'measured':
        raise MotionError(
            f'{name}: none of the samples has position, velocity and acceleration of all '
            'joints, which efforts need.'
        )
    # No order of the efforts depends on what is not known of the orders above it.
    moved, applied = _numbers(motion[:, : E + 2]), _applied(samples, slice(None), E)
    effort = inverse_dynamics(model, moved, applied or None, num_threads=num_threads)
    effort[np.arange(E) >= known[:, None]] = np.nan
    return replace(samples, effort=effort), known


def _numbers(values: Array) -> Array:
    """Values with zeros for NaN, copied only if there are any."""
    return np.nan_to_num(values) if np.isnan(values).any() else values


def _applied(samples: Samples, rows: Any, orders: int) -> list[Wrench]:
    """Wrenches at some rows, with so many orders."""
    return [
        replace(wrench, values=np.asarray(wrench.values)[rows, :orders])
        for wrench in samples.wrenches
    ]


def _effort_std(
    model: RobotModel, covariances: Covariances, samples: Samples, num_threads: int
) -> Array:
    """Standard deviations of estimated efforts, to first order.

    They change slowly, so that they are computed every few milliseconds and interpolated.

    Parameters
    ----------
    model : RobotModel
    covariances : Covariances
    samples : Samples
        With effort (N, E, n) of the estimates.
    num_threads : int
        See `inverse_dynamics`.

    Returns
    -------
    ndarray, shape (N, E, n)
        Root of the summed squares of what the efforts change by when the motion of a joint,
        or a component of a wrench, is moved by one column of the factor of its covariance.
    """
    times, effort, nodes = samples.times, samples.effort, covariances.rows
    E, n = effort.shape[1:]
    variance = np.zeros((len(nodes), E, n))
    for first in range(0, len(nodes), _TOGETHER):
        part = slice(first, first + _TOGETHER)
        rows, found = nodes[part], variance[part]
        motion, wrenches = samples.motion[rows, : E + 2], _applied(samples, rows, E)
        for disturbed, loads in _disturbed(motion, wrenches, covariances, part):
            off = inverse_dynamics(model, disturbed, loads or None, num_threads=num_threads)
            found += ((off - effort[rows]) ** 2).sum(axis=0)
    known = np.sqrt(variance)
    if len(nodes) == len(times):
        return known
    flat = known.reshape(len(nodes), -1)
    result = np.empty((len(times), flat.shape[1]))
    for column, values in zip(result.T, flat.T):
        column[:] = np.interp(times, times[nodes], values)
    return result.reshape(effort.shape)


def _disturbed(
    motion: Array, wrenches: list[Wrench], covariances: Covariances, part: slice
) -> Iterator[tuple[Array, list[Wrench]]]:
    """Motion (R, K, n) and wrenches, moved by the columns of the factor of each covariance.

    These stand in a leading axis: one array for each joint, and each component of a wrench.
    """
    K = motion.shape[1]
    factors = _factors(covariances.of_motion[part, :, :K, :K])
    for j in range(motion.shape[2]):
        moved = np.tile(motion, (K, 1, 1, 1))
        moved[..., j] += np.moveaxis(factors[:, j], -1, 0)
        yield moved, wrenches
    for w, covariance in enumerate(covariances.of_wrenches):
        E = np.shape(wrenches[w].values)[1]
        factors = _factors(covariance[part, :, :E, :E])
        for c in range(6):
            values = np.tile(np.asarray(wrenches[w].values), (E, 1, 1, 1))
            values[..., c] += np.moveaxis(factors[:, c], -1, 0)
            others = [
                *wrenches[:w],
                replace(wrenches[w], values=values),
                *wrenches[w + 1 :],
            ]
            yield np.broadcast_to(motion, (E, *motion.shape)), others


def _factors(covariance: Array) -> Array:
    """Lower factors of covariances (..., K, K), also where rounding leaves them indefinite."""
    scale = np.sqrt(np.einsum('...kk->...k', covariance))
    scale = np.maximum(scale, np.finfo(np.float64).tiny)
    correlation = covariance / (scale[..., :, None] * scale[..., None, :])
    correlation += _ROUNDING * np.eye(scale.shape[-1])
    try:
        factor = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(correlation)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray(factor * scale[..., :, None])


def refuse_other_robot(actuators: Actuators, model: RobotModel) -> None:
    """Refuse actuators of other joints.

    Parameters
    ----------
    actuators : Actuators
        As a user gave them.
    model : RobotModel

    Raises
    ------
    ActuatorError
        If their joints are not those of the model, in the same order.
    """
    joints = getattr(getattr(actuators, 'model', None), 'joint_names', ())
    if joints != model.joint_names:
        raise ActuatorError(
            f'The actuators are those of {listed(joints)}, but the model has '
            f'{listed(model.joint_names)}; make them for this model.'
        )


def _with_motors(
    actuators: Actuators, completed: Completed, samples: Samples, known: NDArray[np.intp]
) -> Samples:
    """Samples with motors: positions (N, R, m), torques (N, R - 2, m), deflections (N, R, n).

    An order of the efforts that is not known, `known` (N,) of them are, takes one of each of
    these. Errors are those of `motor_motion`.
    """
    from hodyn_ros.actuators.motors import motor_motion

    E = samples.effort.shape[1]
    motors = motor_motion(
        actuators,
        _numbers(samples.motion[:, : E + 2]),
        _numbers(samples.effort),
        stiffness=completed.stiffness,
        order=None,
    )
    arrays: dict[str, Any] = dict(zip(MOTOR_ARRAYS, motors))
    for values in arrays.values():
        orders = np.where(known > 0, values.shape[1] - E + known, 0)
        values[np.arange(values.shape[1]) >= orders[:, None]] = np.nan
    joints = tuple(np.take(samples.joint_names, actuators.joint_of_motor).tolist())
    names = actuators.motor_names
    return replace(samples, **arrays, motor_names=names, motor_joints=joints)
