"""Motion and torque of all motors of a robot along a motion of its joints, or sample by sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.actuator import Motors
from hodyn_ros.actuators.assignment import Actuators, DrivenJoint
from hodyn_ros.actuators.damped import next_linear_deflections
from hodyn_ros.actuators.finite import is_finite
from hodyn_ros.actuators.inputs import (
    checked_order,
    checked_time,
    in_units_of,
    initial_deflections,
    motion_and_effort,
    stiffness_series,
)
from hodyn_ros.actuators.results import check_motors
from hodyn_ros.actuators.sea import SeriesElastic, checked_times
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError
from hodyn_ros.names import listed

Array = NDArray[np.float64]


class MotorMotion(NamedTuple):
    """Motion and torque of all m motors, in the order of `Actuators.motor_names`."""

    position: Array
    """`[..., r, :]` is the r-th time derivative of the positions, shape (..., R, m)."""
    torque: Array
    """Motor torques and their derivatives, shape (..., T, m); T = R - 2, or 0 if that is less."""
    deflection: Array
    """Deflections of the n joints and their derivatives, (..., R, n); zero for rigid joints.

    For a joint with two motors it is the mean of both springs; `spring_deflections` has each.
    """


class MotorState(NamedTuple):
    """What joints with dampers remember from one sample to the next."""

    time: float
    """Of the sample [s]."""
    deflection: Array
    """Series of the deflections of the joints with dampers, in the order of the joints."""


def motor_motion(
    actuators: Actuators,
    motion: ArrayLike,
    effort: ArrayLike | None = None,
    wrench: Wrench | Sequence[Wrench] | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
    times: ArrayLike | None = None,
    initial_deflection: Mapping[str, float] | None = None,
    order: int | None = 0,
) -> MotorMotion:
    """Motion and torque of all motors that make the joints move so.

    Parameters
    ----------
    actuators : Actuators
    motion : array-like, shape (..., K, n)
        Joint motion in model order, see `inverse_dynamics`.
    effort : array-like, shape (..., E, n), optional
        Joint torques and their derivatives; by default those of `inverse_dynamics`, E = K - 2.
    wrench : Wrench or sequence of Wrench, optional
        For `inverse_dynamics`, if the effort is not given.
    stiffness : mapping of joint name to array-like, shape (..., S), optional
        Series of the stiffness of each joint that can choose it [N m/rad].
    times : array-like, shape (N,), optional
        Of the samples of a motion of shape (N, K, n) [s]; needed if a joint has a damper.
    initial_deflection : mapping of joint name to float, optional
        At the first time, for joints with a damper; by default that of the slow motion, see
        `SeriesElastic.first_deflection`.
    order : int, optional
        Highest derivative of the motor torque that is needed, by default the torque itself; a
        motion or a stiffness of too low an order for it is refused. None: the result has what they
        determine, be it only positions.

    Returns
    -------
    MotorMotion
        R is the number of orders that all motors have: E for springs (with dampers alone E + 1),
        K if all joints are rigid. K = 5 gives motor positions to accelerations and the torque.

    Raises
    ------
    DeflectionError
        If a spring cannot have the torque or stiffness, or is deflected too far; its attributes
        say which joint and sample.
    MotionError
        If motion, effort or times have wrong shapes or values, or the order is too low.
    JointNameError
        If a joint is unknown.
    ActuatorError
        If something is missing or given for a joint that cannot use it.
    """
    order = checked_order(order)
    q, Q = motion_and_effort(actuators, motion, effort, wrench)
    series = stiffness_series(actuators, stiffness)
    deflections = {}
    initial = initial_deflections(actuators, initial_deflection)
    if actuators.single.dampers:
        if times is None:
            names = listed(item.name for _, item, _ in actuators.single.dampers)
            raise ActuatorError(
                f'Joints with damping ({names}) need the times of the samples, because their '
                'deflection depends on the past; give times=, or go from sample to sample with '
                'motor_step.'
            )
        instants = checked_times(times, np.broadcast_shapes(q.shape[:-2], Q.shape[:-2]))
        for _, item, actuator in actuators.single.dampers:
            with _Naming(actuators, item):
                efforts = np.broadcast_to(Q[..., item.joint], (*instants.shape, Q.shape[-2]))
                deflections[item.joint] = actuator.deflection_along(
                    instants, efforts, initial.get(item.joint)
                )
    result = _all_motors(actuators, q, Q, series, deflections)
    _refuse_low_order(actuators, result, order, q, Q, series)
    return result


def motor_step(
    actuators: Actuators,
    time: float,
    motion: ArrayLike,
    state: MotorState | None = None,
    effort: ArrayLike | None = None,
    wrench: Wrench | Sequence[Wrench] | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
    initial_deflection: Mapping[str, float] | None = None,
    order: int | None = 0,
) -> tuple[MotorMotion, MotorState]:
    """Motion and torque of all motors at one sample of a stream; for joints with dampers.

    Joints without dampers do not need it, but may be among the others.

    Parameters
    ----------
    actuators : Actuators
    time : float
        Of this sample [s].
    motion : array-like, shape (K, n)
    state : MotorState, optional
        What the call for the sample before has returned; None begins a new motion.
    effort, wrench, stiffness, order
        See `motor_motion`.
    initial_deflection : mapping of joint name to float, optional
        At the beginning of a motion.

    Returns
    -------
    MotorMotion
    MotorState
        For the next sample.

    Raises
    ------
    DeflectionError, MotionError, JointNameError, ActuatorError
        See `motor_motion`; `MotionError` too if the time is not after that of the state, or the
        motion has another order than the one before.
    """
    order, time = checked_order(order), checked_time(time)
    if not (state is None or isinstance(state, MotorState)):
        raise MotionError(
            f'The state is of type {type(state).__name__}, expected what motor_step has returned '
            'for the sample before, or None at the beginning.'
        )
    q, Q = motion_and_effort(actuators, motion, effort, wrench)
    if q.ndim != 2 or Q.ndim != 2:
        raise MotionError(
            f'The motion has shape {q.shape} and the effort {Q.shape}, expected one sample, '
            '(K, n) and (E, n).'
        )
    series = stiffness_series(actuators, stiffness)
    initial = initial_deflections(actuators, initial_deflection)
    if state is None:
        deflection = _first_deflections(actuators, Q, initial)
    else:
        deflection = _next_deflections(actuators, Q, state, time)
    if not is_finite(deflection):
        _refuse_deflections(actuators, Q, deflection)
    deflections = {
        item.joint: deflection[i] for i, (_, item, _) in enumerate(actuators.single.dampers)
    }
    result = _all_motors(actuators, q, Q, series, deflections)
    _refuse_low_order(actuators, result, order, q, Q, series)
    return result, MotorState(time, deflection)


def _refuse_deflections(actuators: Actuators, Q: Array, deflection: Array) -> None:
    """Refuse deflections (dampers, E+1) that are not finite, also of orders not put out."""
    shape = (deflection.shape[-1], actuators.model.n_joints)
    of_joints = np.zeros(shape)
    for (_, item, _), series in zip(actuators.single.dampers, deflection):
        of_joints[:, item.joint] = series
    check_motors(actuators, Q, {}, np.zeros((0, 0)), np.zeros((0, 0)), of_joints)


def _first_deflections(actuators: Actuators, Q: Array, initial: Mapping[int, float]) -> Array:
    result = np.empty((len(actuators.single.dampers), Q.shape[-2] + 1))
    for i, (_, item, actuator) in enumerate(actuators.single.dampers):
        with _Naming(actuators, item):
            result[i] = actuator.first_deflection(Q[:, item.joint], initial.get(item.joint))
    return result


def _next_deflections(actuators: Actuators, Q: Array, state: MotorState, time: float) -> Array:
    dampers = actuators.single.dampers
    result = np.empty((len(dampers), Q.shape[-2] + 1))
    if state.deflection.shape != result.shape:
        raise MotionError(
            f'The state has the shape {state.deflection.shape}, expected {result.shape}: of the '
            'same robot, and from a motion of the same order.'
        )
    if not dampers:
        return result
    checked_times((state.time, time), (2,))
    step = time - state.time
    linear = actuators.single.linear_dampers
    alone = np.ones(len(dampers), dtype=bool)
    if linear.places.size:
        result[linear.places], alone[linear.places] = next_linear_deflections(
            linear.stiffness,
            linear.damping,
            step,
            Q[:, linear.joints].T,
            state.deflection[linear.places],
        )
        # Those that leave their range are to say so.
        is_beyond = ~(np.abs(result[linear.places, 0]) <= linear.max_deflection)
        alone[linear.places] |= is_beyond
    for i in np.flatnonzero(alone).tolist():
        _, item, actuator = dampers[i]
        with _Naming(actuators, item):
            effort = Q[:, item.joint]
            result[i] = actuator.next_deflection(state.deflection[i], effort, step)
    return result


def _all_motors(
    actuators: Actuators,
    q: Array,
    Q: Array,
    stiffness: Mapping[int, Array],
    deflections: Mapping[int, Array],
) -> MotorMotion:
    """Put together what all actuators compute."""
    single = actuators.single
    K, E = q.shape[-2], Q.shape[-2]
    R = min(K, E + 2)
    if single.dampers:
        R = min(R, E + 1)
    if single.is_elastic:
        R = min(R, E)
    batch = Q.shape[:-2]
    if q.shape[:-2] != batch or stiffness:
        shapes = [array.shape[:-1] for array in stiffness.values()]
        batch = _common_axes(q.shape[:-2], batch, *shapes)

    found: list[tuple[DrivenJoint, Motors]] = []
    for item in actuators.others:
        with _Naming(actuators, item):
            motors = item.actuator.motors(
                q[..., item.joint], Q[..., item.joint], stiffness.get(item.joint)
            )
        R = min(R, motors.position.shape[-1])
        found.append((item, motors))
    T = max(R - 2, 0)

    delta = _single_deflections(actuators, Q, deflections, R, batch)
    theta = q[..., :R, single.joints] + delta
    tau = single.inertia * theta[..., 2:, :] + Q[..., :T, single.joints]
    if single.friction and T:
        single.friction.add(theta[..., 1:-1, :], tau)
    if not found:
        if not is_finite(theta, tau):
            check_motors(actuators, Q, stiffness, theta, tau, delta)
        return MotorMotion(theta, tau, delta)

    position = np.empty((*batch, R, actuators.n_motors))
    torque = np.empty((*batch, T, actuators.n_motors))
    deflection = np.empty((*batch, R, actuators.model.n_joints))
    position[..., single.motors] = theta
    torque[..., single.motors] = tau
    deflection[..., single.joints] = delta
    for item, motors in found:
        position[..., item.motors] = np.swapaxes(motors.position[..., :R], -1, -2)
        torque[..., item.motors] = np.swapaxes(motors.torque[..., :T], -1, -2)
        of_joint = item.actuator.deflection(q[..., item.joint], motors)
        deflection[..., item.joint] = of_joint[..., :R]
    if not is_finite(position, torque, deflection):
        check_motors(actuators, Q, stiffness, position, torque, deflection)
    return MotorMotion(position, torque, deflection)


def _single_deflections(
    actuators: Actuators,
    Q: Array,
    deflections: Mapping[int, Array],
    R: int,
    batch: tuple[int, ...],
) -> Array:
    """Deflections (..., R, joints) of the joints with a single motor."""
    single = actuators.single
    if not (single.is_elastic or single.dampers):
        return np.zeros((*batch, R, single.stiffness.size))
    torque = Q[..., :R, single.joints]
    if R <= Q.shape[-2]:
        delta = torque / single.stiffness
    else:
        # Dampers alone give one order more than there is of the torque.
        delta = np.zeros((*Q.shape[:-2], R, single.stiffness.size))
    if not np.all(np.abs(torque[..., 0, :]) <= single.max_torque):
        _refuse_torque(actuators, Q)
    if delta.shape[:-2] != batch:
        delta = np.array(np.broadcast_to(delta, (*batch, *delta.shape[-2:])))
    for place, item, spring in single.springs:
        with _Naming(actuators, item):
            delta[..., place] = spring.deflection_series(Q[..., :R, item.joint])
    for place, item, _ in single.dampers:
        delta[..., place] = deflections[item.joint][..., :R]
    return delta


def _refuse_torque(actuators: Actuators, Q: Array) -> None:
    """Have the spring that cannot have its torque say so, unless it is rounding."""
    for item in actuators.driven:
        if isinstance(item.actuator, SeriesElastic) and not item.actuator.needs_times:
            with _Naming(actuators, item):
                item.actuator.spring.deflection(Q[..., 0, item.joint])


def _common_axes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise MotionError(
            f'The leading axes {listed(shapes)} of motion, effort and stiffness do not fit.'
        ) from None


def _refuse_low_order(
    actuators: Actuators,
    result: MotorMotion,
    order: int | None,
    q: Array,
    Q: Array,
    stiffness: Mapping[int, Array],
) -> None:
    """Refuse a result without the derivative of the motor torques that is needed."""
    R = result.position.shape[-2]
    if order is None or R - 2 > order:
        return
    what = f'Derivative {order} of the motor torques' if order else 'The motor torques'
    for joint, series in stiffness.items():
        if series.shape[-1] == R < Q.shape[-2]:
            raise MotionError(
                f'{what} cannot be computed: the stiffness of joint '
                f'{actuators.model.joint_names[joint]!r} has {R} values along its last axis, '
                f'expected {order + 3}, itself and its derivatives (zeros where it is constant).'
            )
    K = q.shape[-2]
    raise MotionError(
        f'{what} cannot be computed: a motion with K = {K} (and what else is given) determines '
        f'the motor positions up to derivative {R - 1} only; expected K >= {K + order + 3 - R}, '
        'and effort and stiffness to match where they are given. With order=None there are '
        'positions alone.'
    )


class _Naming:
    """Add the name of the joint to errors of its actuator; overflow does not warn."""

    def __init__(self, actuators: Actuators, item: DrivenJoint) -> None:
        self._model, self._item = actuators.model, item

    def __enter__(self) -> None:
        # Overflow is found in what comes out, and told in words.
        self._quiet = np.errstate(over='ignore', invalid='ignore', divide='ignore')
        self._quiet.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._quiet.__exit__(None, None, None)
        if isinstance(error, (ActuatorError, MotionError)):
            text = in_units_of(self._model, self._item.joint, str(error))
            message = f'Joint {self._item.name!r}: {text}'
            if isinstance(error, DeflectionError):
                raise DeflectionError(message, self._item.name, error.sample) from None
            raise type(error)(message) from None


__all__ = ['Actuators', 'MotorMotion', 'MotorState', 'motor_motion', 'motor_step']
