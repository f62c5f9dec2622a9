"""Motion and torque of all motors of a robot along a motion of its joints."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy import empty, ndarray
from numpy.typing import ArrayLike

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
from hodyn_ros.model.robot import ModelWarning
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

# Part of a deflection that the series of a damper may be wrong by without a warning.
_DAMPED_ERROR = 1e-4


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


def motor_motion(
    actuators: Actuators,
    motion: ArrayLike,
    effort: ArrayLike | None = None,
    wrench: Wrench | Sequence[Wrench] | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
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
    order : int, optional
        Highest derivative of the motor torque that is needed, by default the torque itself; a
        motion or a stiffness of too low an order for it is refused. None: the result has what they
        determine, be it only positions.

    Returns
    -------
    MotorMotion
        R is the number of orders that all motors have: E for springs, K if all joints are rigid.
        K = 5 gives motor positions to accelerations and the torque.

    Raises
    ------
    DeflectionError
        If a spring cannot have the torque or stiffness, or is deflected too far; its attributes
        say which joint and sample.
    MotionError
        If motion or effort have wrong shapes or values, or the order is too low.
    JointNameError
        If a joint is unknown.
    ActuatorError
        If something is missing or given for a joint that cannot use it.
    """
    found = _quickly(actuators, motion, effort, wrench, stiffness, order)
    if found is not None:
        return found
    q, Q = _motion_and_effort(actuators, motion, effort, wrench, order)
    series = _stiffness_series(actuators, stiffness)
    _warn_of_dampers(actuators, Q)
    return _all_motors(actuators, q, Q, series, order)


def _warn_of_dampers(actuators: Actuators, Q: Array) -> None:
    """Warn of the damper that is slowest for its torques (..., E, n), if its error matters.

    The series of the slow motion has terms T^m x^(m), T = D / k. The first one that is left out
    follows from how much smaller the last one is than the largest.
    """
    E, worst = Q.shape[-2], (_DAMPED_ERROR, 0.0, '')
    for item in actuators.driven:
        damping = getattr(item.actuator, 'damping', 0.0)
        if damping and E > 1 and Q.size:
            slowness = damping / item.actuator.spring.stiffness  # type: ignore[attr-defined]
            sizes = np.abs(Q[..., item.joint]).reshape(-1, E).max(axis=0)
            *terms, last = sizes * slowness ** np.arange(E)
            error = (last / max(terms)) ** (E / (E - 1)) if last else 0.0
            worst = max(worst, (error, slowness, item.name))
    error, slowness, name = worst
    if name:
        warnings.warn(
            f'Joint {name!r}: its damper follows within {slowness:.2g} s, which is slow for this '
            f'motion: the deflection is wrong by some {100 * error:.2g} %. Expected less damping, '
            'a stiffer spring, a slower motion or more of its derivatives.',
            ModelWarning,
            stacklevel=3,
        )


def _all_motors(
    actuators: Actuators,
    q: Array,
    Q: Array,
    stiffness: Mapping[int, Array],
    order: int | None,
) -> MotorMotion:
    """Put together what all actuators compute."""
    shapes = [array.shape[:-1] for array in stiffness.values()]
    batch = _common_axes(q.shape[:-2], Q.shape[:-2], *shapes)
    found = _by_their_own(actuators, q, Q, stiffness)
    R = _common_orders(actuators, q.shape[-2], Q.shape[-2], stiffness, found)
    theta, tau, delta = _by_kernels(actuators, q, Q, stiffness, batch, R)
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
    batch: tuple[int, ...],
    R: int,
) -> tuple[Array, Array, Array]:
    """Positions, torques and deflections; what the kernels do not know is left to be filled in.

    Shapes (*batch, R, m), (*batch, T, m) and (*batch, R, n).
    """
    single = actuators.single
    T, m, n = max(R - 2, 0), actuators.n_motors, Q.shape[-1]
    theta, tau, delta = (np.empty((*batch, *last)) for last in ((R, m), (T, m), (R, n)))
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


def _offer(actuators: Actuators, shape: tuple[int, ...], R: int) -> None:
    """Keep what `_quickly` needs for a motion of this shape, as soon as there is compiled code."""
    single, variable = actuators.single, actuators.variable
    drive = actuators.kernel.compiled
    if drive and not single.own:
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
        )


def _quickly(
    actuators: Actuators,
    motion: Any,
    effort: Any,
    wrench: Any,
    stiffness: Any,
    order: object,
) -> MotorMotion | None:
    """Result for one sample in a control loop.

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
        return _quick_sample(quick, motion, effort, stiffness)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _quick_sample(
    quick: _Quick, motion: Array, effort: Array, stiffness: Any
) -> MotorMotion:
    """See `_quickly`; what it raises stands for None."""
    theta, tau, delta = empty(quick.position), empty(quick.torque), empty(quick.deflection)
    S = quick.stiffness
    if quick.variable or stiffness:
        S = _quick_stiffness(quick.variable, stiffness, len(theta))
    if quick.drive(motion, effort, S, theta, tau, delta):
        raise ValueError
    if quick.friction:
        quick.friction(theta[1:-1], tau)
        if not is_finite(tau):
            raise ValueError
    return tuple.__new__(MotorMotion, (theta, tau, delta))


def _require_plain(values: Any, shape: tuple[int, ...]) -> None:
    """Raise a `ValueError` for what is no plain array of this shape."""
    if type(values) is not ndarray or values.shape != shape:
        raise ValueError


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
