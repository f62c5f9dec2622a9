"""Motion and torque of all motors of a robot along a motion of its joints, or sample by sample."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy import empty, ndarray
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.actuator import (
    Motors,
    checked_finite,
    in_units_of,
    is_finite,
    of_joint,
)
from hodyn_ros.actuators.assignment import Actuators, DrivenJoint, check_mapping
from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

_LARGEST_DEFLECTION = 100.0  # rad or m, far beyond that of any spring


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
        At the first time, for joints with a damper [rad] or [m]; by default that of the slow
        motion, as if the torque had varied smoothly before.
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
    if not initial_deflection:
        found = _quickly(actuators, motion, effort, wrench, stiffness, order)
        if found is not None:
            return found[0]
    q, Q = _motion_and_effort(actuators, motion, effort, wrench, order)
    series = _stiffness_series(actuators, stiffness)
    initial = _initial_deflections(actuators, initial_deflection)
    deflections = None
    if actuators.single.dampers:
        deflections = _damped_deflections(actuators, q, Q, times, initial)
    return _all_motors(actuators, q, Q, series, deflections, order)


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
        See `motor_motion`; also if the time is not after that of the state, or the motion has
        another order than the one before.
    """
    if type(state) is MotorState and isinstance(time, float) and not initial_deflection:
        found = _quickly(actuators, motion, effort, wrench, stiffness, order, time, state)
        if found is not None and found[1] is not None:
            return found[0], MotorState(float(time), found[1])
    time = checked_number('The time', time, MotionError, unit='s')
    if not (state is None or isinstance(state, MotorState)):
        raise MotionError(
            f'The state is of type {type(state).__name__}, expected what motor_step has returned '
            'for the sample before, or None at the beginning.'
        )
    q, Q = _motion_and_effort(actuators, motion, effort, wrench, order)
    if q.ndim != 2 or Q.ndim != 2:
        raise MotionError(
            f'The motion has shape {q.shape} and the effort {Q.shape}, expected one sample, '
            '(K, n) and (E, n).'
        )
    series = _stiffness_series(actuators, stiffness)
    initial = _initial_deflections(actuators, initial_deflection)
    deflection = _next_deflection(actuators, time, Q, state, initial)
    result = _all_motors(actuators, q, Q, series, deflection, order)
    return result, MotorState(time, deflection)


def _damped_deflections(
    actuators: Actuators,
    q: Array,
    Q: Array,
    times: ArrayLike | None,
    initial: Mapping[int, float],
) -> Array:
    """Series (N, d, E + 1) of joints with dampers along motions and efforts of N samples."""
    if times is None:
        names = listed(item.name for _, item, _ in actuators.single.dampers)
        raise ActuatorError(
            f'Joints with damping ({names}) need the times '
            'of the samples, because their deflection depends on the past; give times=, or go '
            'from sample to sample with motor_step.'
        )
    instants = _checked_times(times, np.broadcast_shapes(q.shape[:-2], Q.shape[:-2]))
    efforts = np.broadcast_to(Q, (*instants.shape, *Q.shape[-2:]))
    damped = actuators.single.damped
    return damped.follow(instants, efforts, damped.first(efforts[0], initial))


def _next_deflection(
    actuators: Actuators,
    time: float,
    Q: Array,
    state: MotorState | None,
    initial: Mapping[int, float],
) -> Array:
    """Series (d, E + 1) of joints with dampers at a time, from the state before it, if any."""
    damped, dampers = actuators.single.damped, actuators.single.dampers
    if state is None:
        deflection = damped.first(Q, initial)
    else:
        shape = len(dampers), Q.shape[-2] + 1
        if state.deflection.shape != shape:
            raise MotionError(
                f'The state has the shape {state.deflection.shape}, expected {shape}: of the '
                'same robot, and from a motion of the same order.'
            )
        instants = _checked_times((state.time, time), (2,))
        both = np.stack((Q, Q))  # what was before is not used
        deflection = damped.follow(instants, both, state.deflection)[1]
    if not is_finite(deflection):
        # Also in orders that are not put out.
        for (_, item, actuator), own in zip(dampers, deflection):
            with of_joint(actuators.model, item.joint):
                motors = Motors(own[None], np.zeros((1, 0)))
                checked_finite(actuator, motors, effort=Q[:, item.joint])
    return deflection


def _all_motors(
    actuators: Actuators,
    q: Array,
    Q: Array,
    stiffness: Mapping[int, Array],
    deflections: Array | None,
    order: int | None,
) -> MotorMotion:
    """Put together what all actuators compute; deflections are those of joints with dampers."""
    shapes = [array.shape[:-1] for array in stiffness.values()]
    batch = _common_axes(q.shape[:-2], Q.shape[:-2], *shapes)
    found = _by_their_own(actuators, q, Q, stiffness)
    R = _common_orders(actuators, q.shape[-2], Q.shape[-2], stiffness, found)
    theta, tau, delta = _by_kernels(actuators, q, Q, stiffness, deflections, batch, R)
    T = tau.shape[-2]
    for item, motors in found:
        theta[..., item.motors] = np.swapaxes(motors.position[..., :R], -1, -2)
        tau[..., item.motors] = np.swapaxes(motors.torque[..., :T], -1, -2)
        of_spring = item.actuator.deflection(q[..., item.joint], motors)
        delta[..., item.joint] = of_spring[..., :R]
    result = MotorMotion(theta, tau, delta)
    if not is_finite(theta, tau):
        _refuse_not_finite(actuators, result, q, Q, stiffness)
    if order is not None and T <= order:
        _refuse_low_order(actuators, R, order, q, Q, stiffness)
    if not (batch or found) and T and Q.shape[-2] == q.shape[-2] - 2:
        _offer(actuators, q.shape, R)
    return result


def _by_kernels(
    actuators: Actuators,
    q: Array,
    Q: Array,
    stiffness: Mapping[int, Array],
    deflections: Array | None,
    batch: tuple[int, ...],
    R: int,
) -> tuple[Array, Array, Array]:
    """Positions, torques and deflections; what the kernels do not know is left to be filled in.

    Shapes (*batch, R, m), (*batch, T, m) and (*batch, R, n).
    """
    single = actuators.single
    T, m, n = max(R - 2, 0), actuators.n_motors, Q.shape[-1]
    theta, tau, delta = (np.empty((*batch, *last)) for last in ((R, m), (T, m), (R, n)))
    if single.dampers and deflections is not None:
        joints = [item.joint for _, item, _ in single.dampers]
        delta[..., joints] = np.swapaxes(deflections[..., :R], -1, -2)
    S = np.empty((*batch, len(actuators.variable), R))
    for i, item in enumerate(actuators.variable):
        S[..., i, :] = stiffness[item.joint][..., :R]
    moved, needed = (
        np.ascontiguousarray(np.broadcast_to(a, (*batch, *a.shape[-2:]))) for a in (q, Q)
    )
    actuators.drive(moved, needed, S, theta, tau, delta)
    single.add_friction(theta[..., 1:-1, :], tau)
    return theta, tau, delta


def _by_their_own(
    actuators: Actuators, q: Array, Q: Array, stiffness: Mapping[int, Array]
) -> list[tuple[DrivenJoint, Motors]]:
    """Motors of joints that the kernels do not know, each from its actuator."""
    found = []
    for item in actuators.others:
        if item not in actuators.variable:
            j = item.joint
            with of_joint(actuators.model, j):
                motors = item.actuator.motors(q[..., j], Q[..., j], stiffness.get(j))
            found.append((item, motors))
    return found


def _common_orders(
    actuators: Actuators,
    K: int,
    E: int,
    stiffness: Mapping[int, Array],
    found: Sequence[tuple[DrivenJoint, Motors]],
) -> int:
    """Orders that the positions of all motors have in common."""
    orders = [K, E + 2]
    if actuators.single.dampers:
        orders.append(E + 1)
    if actuators.single.is_elastic or actuators.variable:
        orders.append(E)
    orders += [motors.position.shape[-1] for _, motors in found]
    orders += [stiffness[item.joint].shape[-1] for item in actuators.variable]
    return min(orders)


def _refuse_not_finite(
    actuators: Actuators,
    motors: MotorMotion,
    q: Array,
    Q: Array,
    stiffness: Mapping[int, Array],
) -> None:
    """Raise the error of the joint whose motors are out of all proportion."""
    for item in actuators.driven:
        own = (np.swapaxes(array[..., item.motors], -1, -2) for array in motors[:2])
        causes = {'q': q[..., item.joint], 'effort': Q[..., item.joint]}
        if item.joint in stiffness:
            causes['stiffness'] = stiffness[item.joint]
        with of_joint(actuators.model, item.joint):
            checked_finite(item.actuator, Motors(*own), **causes)


class _Quick(NamedTuple):
    """What `_quickly` needs for motions of one shape: shapes, and compiled calls."""

    effort: tuple[int, int]
    position: tuple[int, int]
    torque: tuple[int, int]
    deflection: tuple[int, int]
    drive: Callable[..., int]
    friction: Callable[[Array, Array], None] | None
    variable: tuple[str, ...]  # names of the joints of variable stiffness
    stiffness: Array  # without such joints
    damped: list[int]  # joints with dampers
    follow: Callable[..., int]


def _offer(actuators: Actuators, shape: tuple[int, ...], R: int) -> None:
    """Keep what `_quickly` needs for a motion of this shape, as soon as there is compiled code."""
    single, variable = actuators.single, actuators.variable
    drive, follow = actuators.kernel.compiled, kernels.follow.compiled
    if drive and (follow or not single.dampers) and not single.own:
        (K, n), m = shape, actuators.n_motors
        actuators.quick[shape] = _Quick(
            (K - 2, n),
            (R, m),
            (R - 2, m),
            (R, n),
            partial(drive, 1, *actuators.known),
            single.add_friction if single.friction else None,
            tuple(item.name for item in variable),
            np.empty((0, R)),
            [item.joint for _, item, _ in single.dampers],
            single.damped.step(K - 2),
        )


def _quickly(
    actuators: Actuators,
    motion: Any,
    effort: Any,
    wrench: Any,
    stiffness: Any,
    order: object,
    time: Any = None,
    state: Any = None,
) -> tuple[MotorMotion, Array | None] | None:
    """Result for one sample in a control loop, and deflections of joints with dampers after it.

    The compiled calls check shapes, ranges and numbers. None stands for what has to be looked at
    more closely.
    """
    quick = (
        None if order or type(motion) is not ndarray else actuators.quick.get(motion.shape)
    )
    if quick is None or (effort is not None and wrench is not None):
        return None
    given = effort
    if given is None:
        effort = inverse_dynamics(actuators.model, motion, wrench)
    try:
        if given is not None:
            _require_plain(effort, quick.effort)
        return _quick_sample(quick, motion, effort, stiffness, time, state)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _quick_sample(
    quick: _Quick, motion: Array, effort: Array, stiffness: Any, time: Any, state: Any
) -> tuple[MotorMotion, Array | None]:
    """See `_quickly`; what it raises stands for None."""
    theta, tau, delta = empty(quick.position), empty(quick.torque), empty(quick.deflection)
    after, S = None, quick.stiffness
    if quick.damped or state:
        after = _quick_step(quick, effort, time - state.time, state.deflection)
        delta[:, quick.damped] = after[:, : len(delta)].T
    if quick.variable or stiffness:
        S = _quick_stiffness(quick.variable, stiffness, len(theta))
    if quick.drive(motion, effort, S, theta, tau, delta):
        raise ValueError
    if quick.friction:
        quick.friction(theta[1:-1], tau)
        if not is_finite(tau):
            raise ValueError
    return tuple.__new__(MotorMotion, (theta, tau, delta)), after


def _require_plain(values: Any, shape: tuple[int, ...]) -> None:
    """Raise a `ValueError` for what is no plain array of this shape."""
    if type(values) is not ndarray or values.shape != shape:
        raise ValueError


def _quick_step(quick: _Quick, effort: Array, duration: float, before: Array) -> Array:
    """Deflections (d, E + 1) of joints with dampers a step after others."""
    d, E = len(quick.damped), len(effort)
    _require_plain(before, (d, E + 1))
    step, series = empty(1), empty((2 * d, E + 1))
    step[0] = duration
    series[:d] = before
    if not duration > 0.0 or quick.follow(step, effort, series):
        raise ValueError
    return series[d:]


def _quick_stiffness(names: Sequence[str], given: Any, R: int) -> Array:
    """Rows (v, R) of the stiffness of joints."""
    if len(given) != len(names):
        raise ValueError
    S = empty((len(names), R))
    for i, name in enumerate(names):
        _require_plain(given[name], (R,))
        S[i] = given[name]
    return S


def _motion_and_effort(
    actuators: Actuators,
    motion: ArrayLike,
    effort: ArrayLike | None,
    wrench: Wrench | Sequence[Wrench] | None,
    order: object,
) -> tuple[Array, Array]:
    """Motion (..., K, n) and effort (..., E, n), checked, as is the order that is needed."""
    if order is not None and order != 0:
        checked_number('The order', order, MotionError, least=0, whole=True)
    model = actuators.model
    if effort is None:
        # It checks the motion and what comes out.
        Q = inverse_dynamics(model, motion, wrench)
        return np.asarray(motion, dtype=np.float64), Q
    if wrench is not None:
        raise ActuatorError('Both effort and wrench are given; the effort must include it.')
    q = checked_motion(model, motion, lowest_K=1)
    Q = finite_array('The effort', effort, MotionError)
    if Q.ndim < 2 or Q.shape[-1] != model.n_joints or Q.shape[-2] < 1:
        raise MotionError(
            f'The effort has shape {Q.shape}, expected (..., E, {model.n_joints}) with E >= 1.'
        )
    _common_axes(q.shape[:-2], Q.shape[:-2])
    return q, Q


def _stiffness_series(
    actuators: Actuators, stiffness: Mapping[str, ArrayLike] | None
) -> dict[int, Array]:
    """Series of the stiffness by the index of the joint, checked."""
    able = {
        item.name: item.joint for item in actuators.others if item.actuator.needs_stiffness
    }
    given = _by_joint(
        actuators,
        stiffness,
        able,
        'The stiffness is',
        'series, shape (..., S)',
        'A stiffness is given for {}, whose actuators cannot choose it.',
    )
    missing = [name for name, joint in able.items() if joint not in given]
    if missing:
        units = {in_units_of(actuators.model, able[name], 'N m/rad') for name in missing}
        raise ActuatorError(
            f'The stiffness of {listed(missing)} is missing; expected its series, shape (..., S) '
            f'[{" or ".join(sorted(units))}].'
        )
    result = {}
    for joint, values in given.items():
        what = f'Joint {actuators.model.joint_names[joint]!r}: the stiffness'
        result[joint] = finite_array(what, values, ActuatorError)
        if result[joint].ndim < 1 or result[joint].shape[-1] < 1:
            raise ActuatorError(
                f'{what} is {reprlib.repr(values)}, expected finite numbers of shape (..., S), '
                'with its derivatives along the last axis.'
            )
    return result


def _initial_deflections(
    actuators: Actuators, initial: Mapping[str, float] | None
) -> dict[int, float]:
    """Deflections at the beginning by the index of the joint, checked."""
    damped = {item.name: item.joint for _, item, _ in actuators.single.dampers}
    given = _by_joint(
        actuators,
        initial,
        damped,
        'The initial deflections are',
        'numbers',
        'An initial deflection is given for {}, which have no damper: there the torque determines '
        'it.',
    )
    result, size = {}, _LARGEST_DEFLECTION
    for joint, value in given.items():
        with of_joint(actuators.model, joint):
            result[joint] = checked_number(
                'The initial deflection',
                value,
                ActuatorError,
                least=-size,
                most=size,
                unit='rad',
            )
    return result


def _by_joint(
    actuators: Actuators,
    given: Mapping[str, Any] | None,
    able: Mapping[str, int],
    what: str,
    kind: str,
    refusal: str,
) -> dict[int, Any]:
    """What is given by the names of joints that can use it, by their indices.

    Parameters
    ----------
    actuators : Actuators
    given : mapping of str to value, or None
    able : mapping of str to int
        Joints that can use it, with their indices.
    what, kind : str
        Begin and end the message about what is no mapping.
    refusal : str
        Message about joints that cannot use it, with {} for their names.
    """
    if given is None:
        return {}
    check_mapping(what, given, f'joint names to {kind}', actuators.model)
    unused = [name for name in given if name not in able]
    if unused:
        raise ActuatorError(refusal.format(listed(unused)))
    return {able[name]: value for name, value in given.items()}


def _checked_times(times: ArrayLike, batch: tuple[int, ...]) -> Array:
    """Refuse times unless there is one for each sample (N,) and they increase."""
    instants = finite_array('The array of times', times, MotionError)
    if instants.ndim != 1 or instants.shape != batch or not instants.size:
        raise MotionError(
            f'The times have shape {instants.shape} and the samples {batch}, expected one time '
            'for each sample along one axis.'
        )
    is_wrong = np.diff(instants) <= 0.0
    if is_wrong.any():
        i = int(is_wrong.argmax())
        raise MotionError(
            f'The times must increase strictly, but {instants[i]} s is followed by '
            f'{instants[i + 1]} s (sample {i}).'
        )
    return instants


def _common_axes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Leading axes that shapes broadcast to; a `MotionError` if they do not."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise MotionError(
            f'The leading axes {listed(shapes)} of motion, effort and stiffness do not fit.'
        ) from None


def _refuse_low_order(
    actuators: Actuators,
    R: int,
    order: int,
    q: Array,
    Q: Array,
    stiffness: Mapping[int, Array],
) -> NoReturn:
    """Refuse input that does not determine the derivative of the motor torques that is needed."""
    what = f'Derivative {order} of the motor torques' if order else 'The motor torques'
    given = [f'a motion with K = {q.shape[-2]}']
    for joint, series in stiffness.items():
        name, S = actuators.model.joint_names[joint], series.shape[-1]
        given += (
            [f'a stiffness of joint {name!r} with S = {S}'] if S == R < Q.shape[-2] else []
        )
    more = order + 3 - R
    raise MotionError(
        f'{what} cannot be computed: {listed(given)} (and what else is given) determines the '
        f'motor positions up to derivative {R - 1} only; expected K >= {q.shape[-2] + more}, and '
        f'effort and stiffness (S = {order + 3}, zeros where it is constant) to match where they '
        'are given. With order=None there are positions alone.'
    )
