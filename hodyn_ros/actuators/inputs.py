"""What is given to `motor_motion` and `motor_step`, checked."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators, check_joint_names
from hodyn_ros.actuators.finite import is_finite
from hodyn_ros.actuators.sea import checked_initial
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.kinematics.joints import checked_motion
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

Array = NDArray[np.float64]


def checked_order(order: object) -> int | None:
    """Refuse the order of a derivative unless it is a whole number or None.

    Raises
    ------
    MotionError
    """
    is_whole = isinstance(order, (int, np.integer)) and not isinstance(order, bool)
    if order is None:
        return None
    if not is_whole or order < 0:  # type: ignore[operator]
        raise MotionError(
            f'The order is {order!r}, expected a whole number from zero, or None for all that the '
            'motion determines.'
        )
    return int(order)  # type: ignore[call-overload, no-any-return]


def checked_time(time: object) -> float:
    """Refuse a time unless it is a finite number.

    Raises
    ------
    MotionError
    """
    is_number = isinstance(time, (int, float, np.integer, np.floating))
    if not is_number or isinstance(time, bool) or not np.isfinite(time):  # type: ignore[call-overload]
        raise MotionError(f'The time is {time!r}, expected a finite number of seconds.')
    return float(time)  # type: ignore[arg-type]


def motion_and_effort(
    actuators: Actuators,
    motion: ArrayLike,
    effort: ArrayLike | None,
    wrench: Wrench | Sequence[Wrench] | None,
) -> tuple[Array, Array]:
    """Motion (..., K, n) and effort (..., E, n), checked.

    Raises
    ------
    MotionError, ActuatorError
    """
    model = actuators.model
    if effort is None:
        # It checks the motion and what comes out.
        Q = inverse_dynamics(model, motion, wrench)
        return np.asarray(motion, dtype=np.float64), Q
    if wrench is not None:
        raise ActuatorError('Both effort and wrench are given; the effort must include it.')
    if np.ma.is_masked(effort):
        raise MotionError('The effort is a masked array with masked values; fill them first.')
    q = checked_motion(model, motion, lowest_K=1)
    try:
        Q = np.asarray(effort, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MotionError(f'The effort is not an array of numbers ({error}).') from error
    expected = f'(..., E, {model.n_joints}) with E >= 1'
    if Q.ndim < 2 or Q.shape[-1] != model.n_joints or Q.shape[-2] < 1:
        raise MotionError(f'The effort has shape {Q.shape}, expected {expected}.')
    if not np.all(np.isfinite(Q)):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(Q))[0])
        raise MotionError(f'The effort holds {Q[where]} at {where}, expected finite numbers.')
    try:
        np.broadcast_shapes(q.shape[:-2], Q.shape[:-2])
    except ValueError:
        raise MotionError(
            f'The leading axes {q.shape[:-2]} of the motion and {Q.shape[:-2]} of the effort do '
            'not fit.'
        ) from None
    return q, Q


def stiffness_series(
    actuators: Actuators, stiffness: Mapping[str, ArrayLike] | None
) -> dict[int, Array]:
    """Index the series of the stiffness by the joint.

    Raises
    ------
    JointNameError, ActuatorError
    """
    if not (stiffness or actuators.others):
        return {}
    given = _checked_mapping('stiffness is', 'series, shape (..., S)', stiffness)
    check_joint_names(actuators.model, given)
    unused = [name for name in given if not actuators[name].needs_stiffness]
    if unused:
        raise ActuatorError(
            f'A stiffness is given for {listed(unused)}, whose actuators cannot choose it.'
        )
    missing = [
        item
        for item in actuators.others
        if item.actuator.needs_stiffness and item.name not in given
    ]
    if missing:
        units = {in_units_of(actuators.model, item.joint, 'N m/rad') for item in missing}
        raise ActuatorError(
            f'The stiffness of {listed(item.name for item in missing)} is missing; expected its '
            f'series, shape (..., S) [{" or ".join(sorted(units))}].'
        )
    result = {}
    for name, values in given.items():
        try:
            array = np.empty(0) if np.ma.is_masked(values) else np.asarray(values, np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.ndim < 1 or array.shape[-1] < 1:
            raise ActuatorError(
                f'Joint {name!r}: the stiffness is {reprlib.repr(values)}, expected finite '
                'numbers of shape (..., S), with its derivatives along the last axis.'
            )
        if not is_finite(array):
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ActuatorError(
                f'Joint {name!r}: the stiffness holds {array[where]} at {where}, expected finite '
                'numbers.'
            )
        result[actuators.model.joint_names.index(name)] = array
    return result


def initial_deflections(
    actuators: Actuators, initial: Mapping[str, float] | None
) -> dict[int, float]:
    """Index initial deflections by the joint.

    Raises
    ------
    JointNameError, ActuatorError
    """
    if initial is None:
        return {}
    given = _checked_mapping('initial deflections are', 'numbers', initial)
    check_joint_names(actuators.model, given)
    unused = [name for name in given if not actuators[name].needs_times]
    if unused:
        raise ActuatorError(
            f'An initial deflection is given for {listed(unused)}, which have no damper: there '
            'the torque determines it.'
        )
    result = {}
    for name, value in given.items():
        joint = actuators.model.joint_names.index(name)
        try:
            result[joint] = checked_initial(value, in_units_of(actuators.model, joint, 'rad'))
        except ActuatorError as error:
            raise ActuatorError(f'Joint {name!r}: {error}') from None
    return result


def _checked_mapping(
    what: str, kind: str, given: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ActuatorError(
            f'The {what} {reprlib.repr(given)}, expected a mapping of joint names to {kind}.'
        )
    return given


def in_units_of(model: RobotModel, joint: int, text: str) -> str:
    """Give a text the units of a joint; springs speak of angles, not knowing what they drive."""
    if model.joint_types[joint] != 'prismatic':
        return text
    for angular, linear in (('N m/rad', 'N/m'), ('kg m^2', 'kg'), ('N m', 'N'), ('rad', 'm')):
        text = re.sub(rf'(?<!\w){re.escape(angular)}(?!\w)', linear, text)
    return text
