"""Checked arguments of control laws, and motions a short time later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ControlError, MotionError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

_INVERSE_FACTORIALS = np.array([1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0])


class ObservedState(NamedTuple):
    """State of a robot as it is estimated from positions; n joints, m motors.

    Attributes
    ----------
    position : ndarray, shape (n,)
        Of the links [rad] or [m].
    velocity : ndarray, shape (n,)
    acceleration : ndarray, shape (n,)
    jerk : ndarray, shape (n,)
    motor_position : ndarray, shape (m,)
        In joint coordinates.
    motor_velocity : ndarray, shape (m,)
    spring_torque : ndarray, shape (n,)
        On the links, with dampers [N m] or [N]; of rigid joints the motor torque.
    spring_torque_rate : ndarray, shape (n,)
        Of the springs alone; zero for rigid joints.
    external_torque : ndarray, shape (n,)
        On the links, which the model does not know.
    external_torque_rate : ndarray, shape (n,)
    motor_friction : ndarray, shape (m,)
        Torque that the motors lose, beyond the friction that the model knows.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import StateObserver
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> observer = StateObserver(drives, 0.001, bandwidth=50.0)
    >>> observer.update([0.3, 0.5], None, [0.3, 0.5034], None)
    >>> state = observer.state()
    >>> state.position, state.motor_position.round(4)
    (array([0.3, 0.5]), array([0.3   , 0.5034]))
    """

    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    motor_position: Array
    motor_velocity: Array
    spring_torque: Array
    spring_torque_rate: Array
    external_torque: Array
    external_torque_rate: Array
    motor_friction: Array


def middle_of_range(model: RobotModel) -> Array:
    """Position that the robot can have: in the middle of its limits.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    ndarray, shape (n,)
        [rad] or [m]; zero for joints that lack a limit. With closed loops, which may not let the
        robot be there, where these start.
    """
    if model.closure is not None:
        return model.closure.start[model.closure.independent]
    with np.errstate(invalid='ignore'):
        middle: Array = 0.5 * (model.limits.lower + model.limits.upper)
    return np.where(np.isfinite(middle), middle, 0.0)


def fastest(model: RobotModel) -> Array:
    """Largest speeds of the joints; a limit of zero is none.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    ndarray, shape (n,)
        [rad/s] or [m/s]; infinite where there is no limit.
    """
    velocity = model.limits.velocity
    return np.where(velocity > 0.0, velocity, np.inf)


def shifted(motion: Array, time: float) -> Array:
    """Motion some time later, by its Taylor polynomial.

    Parameters
    ----------
    motion : ndarray, shape (K, n), K <= 5
        Position and derivatives.
    time : float
        [s]; also negative. With 0 the argument itself is returned.

    Returns
    -------
    ndarray, shape (K, n)
    """
    if time == 0.0:
        return motion
    K = len(motion)
    factors = powers(time, K)
    return np.array([factors[: K - k] @ motion[k:] for k in range(K)])


def powers(time: float, K: int) -> Array:
    """Factors t^k / k! of K derivatives in a Taylor polynomial.

    Parameters
    ----------
    time : float
        t [s].
    K : int
        Up to 5.

    Returns
    -------
    ndarray, shape (K,)
    """
    factors: Array = time ** np.arange(K) * _INVERSE_FACTORIALS[:K]
    return factors


def fill(
    target: Array, name: str, values: ArrayLike | None, may_miss: bool = False
) -> None:
    """Copy of an argument of a control law into an array.

    Parameters
    ----------
    target : ndarray
        Is written, and says what shape is expected.
    name : str
        Of the argument, for the message.
    values : array-like
        Of real numbers; masked ones are missing, NaN.
    may_miss : bool
        Whether some values may be NaN or infinite.

    Raises
    ------
    MotionError
        If there are no numbers, the shape is wrong, or a value is not finite that has to be.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in 'fiu':
        kind = type(values).__name__ if array.dtype.kind == 'O' else array.dtype
        raise MotionError(f'{name} is {kind}, expected real numbers.')
    if hasattr(values, 'mask'):
        array = np.where(values.mask, np.nan, array)  # type: ignore[union-attr]
    if array.shape != target.shape:
        raise MotionError(f'{name} has the shape {array.shape}, expected {target.shape}.')
    if not may_miss and not np.isfinite(array).all():
        raise MotionError(f'{name} is {array.tolist()}; all values must be finite.')
    target[...] = array


def per_joint(
    name: str,
    values: ArrayLike,
    n: int,
    highest: float = np.finfo(float).max,
    zero: bool = False,
) -> Array:
    """Positive values of n joints, from one for all or one each.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    values : float or array-like, shape (n,)
    n : int
    highest : float
        Largest one that is taken, by default the largest finite number.
    zero : bool
        Whether zero is taken, too.

    Returns
    -------
    ndarray, shape (n,)
        Read-only.

    Raises
    ------
    ControlError
        If the shape is wrong, or a value is not positive or too large.
    """
    try:
        array = np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), (n,)))
    except (TypeError, ValueError):
        array = np.full(n, np.nan)
    if not np.all(((array >= 0.0) if zero else (array > 0.0)) & (array <= highest)):
        kind = 'numbers from 0 on' if zero else 'positive numbers'
        most = f' up to {highest:g}' if highest < np.finfo(float).max else ''
        raise ControlError(f'{name} is {values!r}, expected one or {n} {kind}{most}.')
    array.flags.writeable = False
    return array
