"""From samples to results: efforts with their derivatives, and the motors, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array, checked_number
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.files.derivatives import Completed, How, RelativeErrors, with_last
from hodyn_ros.files.quantities import EFFORT, MOTION
from hodyn_ros.files.samples import Results, Samples, join_results, known_orders
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.motors import MotorMotion

_KEPT = 31 << 20  # bytes
# Between instants for which deviations of efforts are computed [s], which are computed together;
# rounding of correlations.
_STD_STEP, _TOGETHER, _ROUNDING = 0.005, 500, 1e-12


def compute(model: RobotModel, samples: Samples, **options: Any) -> Results:
    """Efforts along a motion with their derivatives, and what the motors do.

    The samples are those of all joints of the model, in any order; options and errors are those of
    `compute_stream`. Where the motion does not determine an order, the results are NaN.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Of all joints of the model.
    **options
        See `compute_stream`.

    Returns
    -------
    Results
        Of the samples, or of those that a spline is evaluated at.

    Raises
    ------
    JointNameError, MotionError, WrenchError, TrajectoryError, ActuatorError
        See `compute_stream`.
    """
    return join_results(list(compute_stream(model, [samples], **options)))


def compute_stream(
    model: RobotModel,
    parts: Iterable[Samples],
    *,
    actuators: Actuators | None = None,
    order: int = 2,
    derivatives: str = 'auto',
    interpolation: str = 'spline',
    rate: float | None = None,
    estimator: Mapping[str, Any] | None = None,
    num_threads: int = 1,
) -> Iterator[Results]:
    """Efforts along a motion that comes in consecutive parts, as of `iterate_motion`.

    The result does not depend on where the parts begin and end, and memory does not grow with
    their number. There are two exceptions: the spline through the samples of a table and estimates
    depend on all of them, so they are gathered first. Each trajectory is a motion of its own.

    Parameters
    ----------
    model : RobotModel
    parts : iterable of Samples
        Of all joints of the model, in any order.
    actuators : Actuators, optional
        Of the same model.
    order : int
        Highest derivative of the efforts that is wanted.
    derivatives, interpolation, rate, estimator
        Where the derivatives of the motion come from, see `to_motion`.
    num_threads : int
        See `inverse_dynamics`.

    Yields
    ------
    Results
        With the same orders in all parts.

    Raises
    ------
    JointNameError
        If a joint of the model is missing.
    MotionError
        If an argument is unusable, or the motion does not determine any effort.
    WrenchError, TrajectoryError, ActuatorError
        If a wrench, the waypoints or a torque of a spring cannot be used.
    """
    most = len(MOTION) - 3
    order = int(checked_number('order', order, MotionError, least=0, most=most, whole=True))
    # Once something as large was freed, glibc keeps the memory of a part for the next one; else
    # the system has to give it, page by page, for each of them.
    np.empty(_KEPT, dtype=np.uint8)
    how = How(derivatives, order + 3, interpolation, rate, dict(estimator or {}))
    motors = None if actuators is None else _MotorStream(model, actuators)
    sizes = RelativeErrors()

    def computed() -> Iterator[Results]:
        for completed in how.complete(model, parts):
            results, known = _with_efforts(model, completed, order + 1, num_threads)
            if motors is not None:
                results = motors.added(completed, results, known)
            if results.effort_std is not None:
                sizes.add(results.effort, results.effort_std)
            yield results

    def certain(last: Results) -> Results:
        remarks = sizes.remarks(EFFORT, model.joint_names)
        return replace(last, remarks=(*last.remarks, *remarks))

    yield from with_last(computed(), certain)


def _with_efforts(
    model: RobotModel, completed: Completed, orders: int, num_threads: int
) -> tuple[Results, NDArray[np.intp]]:
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
    results : Results
        With effort (N, E, n), E = min(orders, K - 2), NaN where an order is not determined,
        and its standard deviations if the motion has covariances.
    known : ndarray of int, shape (N,)
        From 0 to E.

    Raises
    ------
    MotionError
        If no efforts follow from the motion, or a wrench has fewer orders.
    """
    results = completed.results
    motion, name = results.motion, results.name
    if motion.shape[1] < 3:
        raise MotionError(
            f'{name}: there are {listed(MOTION[: motion.shape[1]])}, but efforts need the '
            "acceleration too; use derivatives='spline', or 'estimate' for measurements."
        )
    E = min(orders, motion.shape[1] - 2)
    wrenches = []
    for wrench in results.wrenches:
        values = np.asarray(wrench.values)
        if values.shape[1] < E:
            raise MotionError(
                f'{name}: the wrench on {wrench.link!r} has {values.shape[1]} orders, but {E} are '
                f'needed for derivative {E - 1} of the efforts; give its derivatives, ask for '
                f"order={values.shape[1] - 1}, or use derivatives='spline'."
            )
        wrenches.append(replace(wrench, values=values[:, :E]))
    known: NDArray[np.intp] = (known_orders(motion) - 2).clip(0, E)
    if len(known) and known.max() < 1 and results.source != 'measured':
        raise MotionError(
            f'{name}: none of the samples has position, velocity and acceleration of all '
            'joints, which efforts need.'
        )
    # No order of the efforts depends on what is not known of the orders above it.
    moved = np.nan_to_num(motion[:, : E + 2])
    effort = inverse_dynamics(model, moved, wrenches or None, num_threads=num_threads)
    effort[np.arange(E) >= known[:, None]] = np.nan
    results = replace(results, effort=effort)
    if completed.covariance is not None:
        std = _effort_std(model, completed, results, num_threads)
        results = replace(results, effort_std=std)
    return results, known


def _effort_std(
    model: RobotModel, completed: Completed, results: Results, num_threads: int
) -> Array:
    """Standard deviations of estimated efforts, to first order.

    They change slowly, so that they are computed every few milliseconds and interpolated.

    Parameters
    ----------
    model : RobotModel
    completed : Completed
        With the covariance (N, n, K, K) of each joint, and those (N, 6, S, S) of wrenches.
    results : Results
        With effort (N, E, n) of the estimates.
    num_threads : int
        See `inverse_dynamics`.

    Returns
    -------
    ndarray, shape (N, E, n)
        Root of the summed squares of what the efforts change by when the motion of a joint,
        or a component of a wrench, is moved by one column of the factor of its covariance.
    """
    assert completed.covariance is not None
    times, effort = results.times, results.effort
    E, n = effort.shape[1:]
    slots = np.floor((times - times[0]) / _STD_STEP)
    nodes = np.flatnonzero(np.diff(slots, prepend=-1.0, append=np.inf)[:-1] > 0.0)
    nodes = np.union1d(nodes, [len(times) - 1])
    variance = np.zeros((len(nodes), E, n))
    for first in range(0, len(nodes), _TOGETHER):
        rows = nodes[first : first + _TOGETHER]
        motion = results.motion[rows, : E + 2]
        wrenches = [
            replace(w, values=np.asarray(w.values)[rows, :E]) for w in results.wrenches
        ]
        found = variance[first : first + _TOGETHER]
        factor = _factors(completed.covariance[rows, :, : E + 2, : E + 2])
        for j in range(n):
            disturbed = np.tile(motion, (E + 2, 1, 1, 1))
            disturbed[..., j] += np.moveaxis(factor[:, j], -1, 0)
            off = inverse_dynamics(
                model, disturbed, wrenches or None, num_threads=num_threads
            )
            found += ((off - effort[rows]) ** 2).sum(axis=0)
        for w, covariance in enumerate(completed.wrench_covariances):
            factor = _factors(covariance[rows, :, :E, :E])
            for c in range(6):
                values = np.tile(np.asarray(wrenches[w].values), (E, 1, 1, 1))
                values[..., c] += np.moveaxis(factor[:, c], -1, 0)
                others = [*wrenches]
                others[w] = replace(wrenches[w], values=values)
                repeated = np.broadcast_to(motion, (E, *motion.shape))
                off = inverse_dynamics(model, repeated, others, num_threads=num_threads)
                found += ((off - effort[rows]) ** 2).sum(axis=0)
    known = np.sqrt(variance)
    if len(nodes) == len(times):
        return known
    flat = known.reshape(len(nodes), -1)
    columns = [np.interp(times, times[nodes], column) for column in flat.T]
    return np.stack(columns, axis=1).reshape(effort.shape)


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


class _MotorStream:
    """Motors along consecutive parts of a motion, with the same orders in all of them.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
        Of the same model, else an `ActuatorError`.
    """

    def __init__(self, model: RobotModel, actuators: Actuators) -> None:
        refuse_other_robot(actuators, model)
        self._actuators = actuators
        # The sample before, of the same motion, as arrays with one row; and the deflections there.
        self._before: tuple[list[Array], Array] | None = None

    def added(
        self, completed: Completed, results: Results, known: NDArray[np.intp]
    ) -> Results:
        """Results with motors.

        Parameters
        ----------
        completed : Completed
            Next part of the motion, with the wanted stiffness of its joints.
        results : Results
            Its efforts.
        known : ndarray of int, shape (N,)
            Orders of the efforts that are known at each sample.

        Returns
        -------
        Results
            With positions (N, R, m), torques (N, R - 2, m) and deflections (N, R, n); R is
            the same in all parts. An order of the efforts that is not known takes one of
            each of these.

        Raises
        ------
        ActuatorError
            See `motor_motion`.
        """
        from hodyn_ros.actuators.motors import motor_motion

        actuators, E = self._actuators, results.effort.shape[1]
        if actuators.single.dampers:
            motors, known = self._damped(completed, results, known), (known == E) * E
        else:
            motors = motor_motion(
                actuators,
                np.nan_to_num(results.motion[:, : E + 2]),
                np.nan_to_num(results.effort),
                stiffness=completed.stiffness,
                order=None,
            )
        for values in motors:
            orders = np.where(known > 0, values.shape[1] - E + known, 0)
            values[np.arange(values.shape[1]) >= orders[:, None]] = np.nan
        joints = tuple(results.joint_names[j] for j in actuators.joint_of_motor.tolist())
        return replace(
            results,
            motors=motors,
            motor_names=actuators.motor_names,
            motor_joints=joints,
        )

    def _damped(
        self, completed: Completed, results: Results, known: NDArray[np.intp]
    ) -> MotorMotion:
        """Motors of joints with dampers, along each run of samples with all orders.

        Of other samples the values are arbitrary.
        """
        from hodyn_ros.actuators.motors import MotorMotion

        actuators, (N, E, n) = self._actuators, results.effort.shape
        is_elastic = actuators.single.is_elastic or actuators.others
        R, m = E if is_elastic else E + 1, len(actuators.motor_names)
        whole = MotorMotion(*map(np.zeros, ((N, R, m), (N, max(R - 2, 0), m), (N, R, n))))
        before, self._before = (None if completed.begins else self._before), None
        rows = np.flatnonzero(known == E)
        is_cut = (np.diff(rows) != 1) | (np.diff(results.times[rows]) > completed.max_gap)
        for run in np.split(rows, np.flatnonzero(is_cut) + 1) if len(rows) else ():
            for target, values in zip(whole, self._run(completed, results, run, before)):
                target[run] = values[:, : target.shape[1]]
        return whole

    def _run(
        self,
        completed: Completed,
        results: Results,
        run: NDArray[np.intp],
        before: tuple[list[Array], Array] | None,
    ) -> MotorMotion:
        """Motors along samples, whose deflection goes on from the sample before."""
        from hodyn_ros.actuators.motors import MotorMotion, motor_motion

        E = results.effort.shape[1]
        arrays = [results.times, results.motion[:, : E + 2], results.effort]
        arrays = [array[run] for array in (*arrays, *completed.stiffness.values())]
        initial = None
        if (
            before is not None
            and run[0] == 0
            and (arrays[0][0] - before[0][0][0] <= completed.max_gap)
        ):
            arrays = [np.concatenate(pair) for pair in zip(before[0], arrays)]
            dampers = (item for _, item, _ in self._actuators.single.dampers)
            initial = {item.name: float(before[1][item.joint]) for item in dampers}
        times, motion, efforts, *series = arrays
        found = motor_motion(
            self._actuators,
            motion,
            efforts,
            stiffness=dict(zip(completed.stiffness, series)),
            times=times,
            initial_deflection=initial,
            order=None,
        )
        if run[-1] == len(results) - 1:
            self._before = [array[-1:] for array in arrays], found.deflection[-1, 0]
        return found if initial is None else MotorMotion(*(array[1:] for array in found))
