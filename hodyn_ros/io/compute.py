"""From samples to results: efforts with their derivatives, and the motors, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.robot import MotorMotion, motor_motion
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.io.access import join_samples
from hodyn_ros.io.columns import MOTION
from hodyn_ros.io.derivatives import (
    Completed,
    EstimatedStream,
    How,
    known_orders,
)
from hodyn_ros.io.samples import Array, Results, Samples, join_results
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

Before = tuple[float, Array, Array, Array]
"""Time, motion, efforts and deflections at the sample before, for joints with dampers."""

_HIGHEST_ORDER = len(MOTION) - 3
_PART = 10_000  # samples of a result, where the motion comes in one piece


def compute(
    model: RobotModel,
    samples: Samples,
    *,
    actuators: Actuators | None = None,
    orders: int = 2,
    derivatives: str = 'auto',
    interpolation: str = 'spline',
    rate: float | None = None,
    estimator: Mapping[str, Any] | None = None,
    num_threads: int = 1,
) -> Results:
    """Efforts along a motion with their derivatives, and what the motors do.

    Parameters
    ----------
    model : RobotModel
    samples : Samples
        Of all joints of the model, in any order.
    actuators : Actuators, optional
        Of the same model.
    orders : int
        Highest derivative of the efforts that is wanted.
    derivatives, interpolation, rate, estimator
        Where the derivatives of the motion come from, see `to_motion`.
    num_threads : int
        See `inverse_dynamics`.

    Returns
    -------
    Results
        NaN where the motion does not determine an order.

    Raises
    ------
    JointNameError
        If a joint of the model is missing.
    MotionError
        If an argument is unusable, or the motion does not determine any effort.
    WrenchError, TrajectoryError, ActuatorError
        If a wrench, the waypoints or a torque of a spring cannot be used.
    """
    parts = compute_stream(
        model,
        [samples],
        actuators=actuators,
        orders=orders,
        derivatives=derivatives,
        interpolation=interpolation,
        rate=rate,
        estimator=estimator,
        num_threads=num_threads,
    )
    return join_results(list(parts))


def compute_stream(
    model: RobotModel,
    parts: Iterable[Samples],
    *,
    actuators: Actuators | None = None,
    orders: int = 2,
    derivatives: str = 'auto',
    interpolation: str = 'spline',
    rate: float | None = None,
    estimator: Mapping[str, Any] | None = None,
    num_threads: int = 1,
) -> Iterator[Results]:
    """Efforts along a motion that comes in consecutive parts, as of `iterate_motion`.

    The result does not depend on where the parts begin and end, and memory does not grow with
    their number. There is one exception: the spline through the samples of a table depends on all
    of them, so they are gathered first. Each trajectory is a motion of its own.

    Parameters
    ----------
    model : RobotModel
    parts : iterable of Samples
    actuators, orders, derivatives, interpolation, rate, estimator, num_threads
        See `compute`.

    Yields
    ------
    Results
        With the same orders in all parts.

    Raises
    ------
    JointNameError, MotionError, WrenchError, TrajectoryError, ActuatorError
        See `compute`.
    """
    whole = isinstance(orders, (int, np.integer)) and not isinstance(orders, bool)
    if not whole or not 0 <= orders <= _HIGHEST_ORDER:
        raise MotionError(
            f'orders is {orders!r}, expected 0 to {_HIGHEST_ORDER}: the highest derivative of the '
            'efforts.'
        )
    if actuators is not None and actuators.model.joint_names != model.joint_names:
        raise ActuatorError(
            f'The actuators are those of {listed(actuators.model.joint_names)}, but the model has '
            f'{listed(model.joint_names)}; make them for this model.'
        )
    how = How(derivatives, int(orders) + 3, interpolation, rate, dict(estimator or {}))
    stream = iter(parts)
    first = next(stream, None)
    if first is None:
        raise MotionError('There are no samples to compute anything from.')
    computation = Computation(model, actuators, how.orders - 2, num_threads)
    choice = how.choose(first)
    if choice == 'estimate':
        estimates = EstimatedStream(model, how)
        held = None  # The last one says how it went.
        for samples in chain([first], stream):
            completed = estimates.take(samples)
            if len(completed.times):
                if held is not None:
                    yield held
                held = computation.results(completed, samples.name)
        if held is None:
            raise MotionError(
                f'{first.name}: nothing could be estimated; expected at least half a second of '
                f'measurements, at intervals of less than {estimates.max_gap:g} s (max_gap).'
            )
        yield replace(held, remarks=(*held.remarks, *estimates.summary()))
    elif choice == 'given':
        for samples in chain([first], stream):
            yield computation.results(how.given(model, samples), samples.name)
            if samples.is_waypoints:
                computation.begin()
    elif first.is_waypoints:
        for samples in chain([first], stream):
            yield from computation.in_parts(how.complete(model, samples), samples.name)
            computation.begin()
    else:
        samples = join_samples([first, *stream])
        yield from computation.in_parts(how.complete(model, samples), samples.name)


class Computation:
    """Results of consecutive parts of a motion.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators or None
    orders : int
        Number of orders of the efforts.
    num_threads : int
    """

    def __init__(
        self, model: RobotModel, actuators: Actuators | None, orders: int, num_threads: int
    ) -> None:
        self._model, self._actuators = model, actuators
        self._orders, self._num_threads = orders, num_threads
        self._motor_orders: tuple[int, int, int] | None = None
        self.begin()

    def begin(self) -> None:
        """Forget what came before: a new motion begins."""
        self._before: Before | None = None

    def in_parts(self, completed: Completed, name: str) -> Iterator[Results]:
        """Yield results of a motion in one piece, which may be larger than what they need."""
        for first in range(0, len(completed.times), _PART):
            rows = slice(first, first + _PART)
            part = Completed(
                completed.times[rows],
                completed.motion[rows],
                tuple((*head, values[rows]) for *head, values in completed.wrenches),  # type: ignore[misc]
                {joint: series[rows] for joint, series in completed.stiffness.items()},
                completed.source,
                completed.start,
                completed.remarks,
                completed.delay,
                completed.continuous_derivative,
                completed.max_gap,
            )
            yield self.results(part, name)

    def results(self, completed: Completed, name: str) -> Results:
        """Results of the next part of a motion.

        Raises
        ------
        MotionError
            If it has no accelerations.
        """
        motion = completed.motion
        if motion.shape[1] < 3:
            raise MotionError(
                f'{name}: there are {listed(MOTION[: motion.shape[1]])}, but efforts need the '
                "acceleration too; use derivatives='spline', or 'estimate' for measurements."
            )
        E = min(self._orders, motion.shape[1] - 2)
        self._check_wrenches(completed, E, name)
        known = np.minimum(known_orders(motion) - 2, E)
        for _, _, _, values in completed.wrenches:
            known = np.minimum(known, known_orders(values))
        if len(known) and known.max() < 1 and completed.source != 'measured':
            raise MotionError(
                f'{name}: none of the samples has position, velocity and acceleration of all '
                'joints, which efforts need.'
            )
        effort = np.full((len(motion), E, self._model.n_joints), np.nan)
        groups = [(e, np.flatnonzero(known == e)) for e in range(1, E + 1) if np.any(known == e)]
        for e, rows in groups:
            wrenches = [
                Wrench(link, values[rows, :e], expressed_in, acting)
                for link, expressed_in, acting, values in completed.wrenches
            ]
            effort[rows, :e] = inverse_dynamics(
                self._model,
                np.ascontiguousarray(motion[rows, : e + 2]),
                wrenches or None,
                num_threads=self._num_threads,
            )
        motors = None
        motor_names: tuple[str, ...] = ()
        motor_joints: tuple[str, ...] = ()
        if self._actuators is not None:
            motors = self._motors(self._actuators, completed, effort, groups)
            motor_names = self._actuators.motor_names
            joints = self._model.joint_names
            motor_joints = tuple(joints[j] for j in self._actuators.joint_of_motor.tolist())
        return Results(
            joint_names=self._model.joint_names,
            times=completed.times,
            motion=motion,
            effort=effort,
            motors=motors,
            motor_names=motor_names,
            motor_joints=motor_joints,
            name=name,
            start=completed.start,
            source=completed.source,
            base_link=self._model.base_link,
            delay=completed.delay,
            continuous_order=max(-1, min(completed.continuous_derivative - 2, 2)),
            remarks=completed.remarks,
            wrenches=_applied(completed),
        )

    def _check_wrenches(self, completed: Completed, E: int, name: str) -> None:
        for link, _, _, values in completed.wrenches:
            if values.shape[1] < E:
                raise MotionError(
                    f'{name}: the wrench on {link!r} has {values.shape[1]} orders, but {E} are '
                    f'needed for derivative {E - 1} of the efforts; give its derivatives, ask for '
                    f'orders={values.shape[1] - 1}, or use '
                    "derivatives='spline'."
                )

    def _motors(
        self,
        actuators: Actuators,
        completed: Completed,
        effort: Array,
        groups: list[tuple[int, NDArray[np.intp]]],
    ) -> MotorMotion:
        motion, E = completed.motion, effort.shape[1]
        before, self._before = self._before, None
        n, m, N = self._model.n_joints, len(actuators.motor_names), len(motion)
        # From the highest order on, which says how many orders the motors have.
        found = []
        for e, rows in reversed(groups):
            if actuators.single.dampers:
                if e == E:
                    found += [
                        (run, self._damped(actuators, completed, effort, run, before))
                        for run in _runs(rows, completed)
                    ]
                continue
            stiffness = {name: series[rows] for name, series in completed.stiffness.items()}
            result = motor_motion(
                actuators,
                motion[rows, : e + 2],
                effort[rows, :e],
                stiffness=stiffness,
                order=None,
            )
            found.append((rows, result))
        if self._motor_orders is None:
            self._motor_orders = _motor_orders(actuators, E)
            if found and groups[-1][0] == E:
                shapes = [array.shape[1] for array in found[0][1]]
                self._motor_orders = (shapes[0], shapes[1], shapes[2])
        whole = MotorMotion(
            *(
                np.full((N, orders, width), np.nan)
                for orders, width in zip(self._motor_orders, (m, m, n))
            )
        )
        for rows, result in found:
            for target, values in zip(whole, result):
                orders = min(target.shape[1], values.shape[1])
                target[rows, :orders] = values[:, :orders]
        return whole

    def _damped(
        self,
        actuators: Actuators,
        completed: Completed,
        effort: Array,
        run: NDArray[np.intp],
        before: Before | None,
    ) -> MotorMotion:
        """Motors of joints with dampers, whose deflection goes on from the sample before."""
        times, motion = completed.times[run], completed.motion[run, : effort.shape[1] + 2]
        efforts = effort[run]
        stiffness = {name: series[run] for name, series in completed.stiffness.items()}
        initial = None
        if before is not None and (run[0] > 0 or times[0] - before[0] > completed.max_gap):
            before = None
        if before is not None:
            times = np.concatenate([[before[0]], times])
            motion = np.concatenate([before[1][None], motion])
            efforts = np.concatenate([before[2][None], efforts])
            # The sample before is computed for its deflection only.
            stiffness = {
                name: np.concatenate([series[:1], series]) for name, series in stiffness.items()
            }
            initial = {
                item.name: float(before[3][item.joint]) for _, item, _ in actuators.single.dampers
            }
        result = motor_motion(
            actuators,
            motion,
            efforts,
            stiffness=stiffness,
            times=times,
            initial_deflection=initial,
            order=None,
        )
        if run[-1] == len(completed.times) - 1:
            self._before = (times[-1], motion[-1], efforts[-1], result.deflection[-1, 0])
        skip = 0 if before is None else 1
        return MotorMotion(*(array[skip:] for array in result))


def _runs(rows: NDArray[np.intp], completed: Completed) -> list[NDArray[np.intp]]:
    """Cut rows where some are left out in between, or where there is a gap in time."""
    is_cut = (np.diff(rows) != 1) | (np.diff(completed.times[rows]) > completed.max_gap)
    return np.split(rows, np.flatnonzero(is_cut) + 1)


def _motor_orders(actuators: Actuators, E: int) -> tuple[int, int, int]:
    """Orders of the motors' motion, of their torque and of the deflections, for E efforts."""
    R = E + 2
    if actuators.single.dampers:
        R = E + 1
    if actuators.single.is_elastic or actuators.others:
        R = E
    return R, max(R - 2, 0), R


def _applied(completed: Completed) -> tuple[Wrench, ...]:
    """Take wrenches into the results, unless they are estimates with gaps."""
    if completed.source == 'measured':
        return ()
    return tuple(
        Wrench(link, values, expressed_in, acting)
        for link, expressed_in, acting, values in completed.wrenches
    )
