"""Limits of motors and springs, and where the motion of the motors exceeds them.

They are limits of what a motion asks for; that a spring cannot be deflected beyond its range is an
error of its own (`DeflectionError`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators, check_mapping
from hodyn_ros.checks import check_choice, checked_number, first_not_finite
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.model.limits import LIMITED
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity, Violation, order_of
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.motors import MotorMotion

MOTOR_QUANTITIES = ('motor_velocity', 'motor_torque', 'motor_torque_rate', 'deflection')


class MotorLimits(NamedTuple):
    """Largest magnitudes of what motors and springs do; infinite where there is no limit.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic, motor_limits
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(1000.0, 0.1)})
    >>> limits = motor_limits(drives, {'elbow': {'motor_torque': 40.0, 'deflection': 0.05}})
    >>> limits.motor_torque, limits.deflection
    (array([inf, 40.]), array([ inf, 0.05]))
    """

    motor_velocity: Array
    """Of the m motors [rad/s] or [m/s]."""
    motor_torque: Array
    """Of the m motors [N m] or [N]."""
    motor_torque_rate: Array
    """Of the m motors [N m/s] or [N/s]."""
    deflection: Array
    """Of every spring of the n joints [rad] or [m]; a joint with two motors has two of them."""


def motor_limits(
    actuators: Actuators, limits: Mapping[str, Mapping[str, ArrayLike]] | None = None
) -> MotorLimits:
    """Limits of all motors and springs from those that are given.

    Parameters
    ----------
    actuators : Actuators
    limits : mapping of joint name to mapping of quantity to limit, optional
        Quantities are those of `MOTOR_QUANTITIES`. For a joint with several motors, the limits of
        its motors are one number for all or one for each.

    Returns
    -------
    MotorLimits

    Raises
    ------
    JointNameError
        If a joint is unknown.
    ActuatorError
        If a quantity is unknown, or a limit is not positive or not one for each motor.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, motor_limits
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {})
    >>> motor_limits(drives, {'elbow': {'motor_velocity': 5.0}}).motor_velocity
    array([inf,  5.])
    """
    given = {} if limits is None else limits
    check_mapping('The limits are', given, 'joint names to limits', actuators.model)
    sizes = (actuators.n_motors,) * 3 + (actuators.model.n_joints,)
    columns = {name: np.full(size, np.inf) for name, size in zip(MOTOR_QUANTITIES, sizes)}
    for name, own in given.items():
        check_mapping(f'The limits of joint {name!r} are', own, 'quantities to limits')
        item = actuators.driven[actuators.model.joint_names.index(name)]
        for quantity, value in own.items():
            what = f'Joint {name!r}: the limited quantity'
            check_choice(what, quantity, columns, ActuatorError)
            of = f'Joint {name!r}: the limit of {quantity}'
            where = item.motors
            if quantity == 'deflection':
                where = slice(item.joint, item.joint + 1)
            count = len(columns[quantity][where])
            values = np.ravel(value)
            if len(values) not in (1, count):
                raise ActuatorError(f'{of} is {value!r}, expected one number or {count}.')
            columns[quantity][where] = [
                checked_number(of, x, ActuatorError, above=0.0, infinite=True)
                for x in values
            ]
    return MotorLimits(**columns)


def spring_deflections(actuators: Actuators, motors: MotorMotion) -> Array:
    """Deflections of the springs: positions of the motors less those of their joints.

    The deflection of a joint with two motors, `MotorMotion.deflection`, is the mean of both: with
    a torque of zero it is zero, however far the motors stretch the springs against each other.

    Returns
    -------
    ndarray, shape (..., R, m)
        In the order of `Actuators.motor_names`, with all derivatives [rad] or [m]. Zero for rigid
        joints, and for a motor that does not turn with the joint, such as that of a pivot.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.actuators import motor_motion, spring_deflections
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {'elbow': SeriesElastic(1000.0, 0.1)})
    >>> spring_deflections(drives, motor_motion(drives, np.zeros((5, 2))))[0].round(4)
    array([0.    , 0.0098])
    """
    motors = type(motors)(*map(np.asarray, motors))
    deflection: Array = motors.deflection[..., actuators.joint_of_motor]
    for item in actuators.variable:
        turning = np.array(item.actuator.turns_with_joint)
        own = motors.position[..., item.motors]
        # The deflection of the joint is the mean of the springs.
        rest = own - own[..., turning].mean(axis=-1, keepdims=True)
        deflection[..., item.motors] = np.where(
            turning, deflection[..., item.motors] + rest, 0.0
        )
    return deflection


def motor_quantities(
    model: RobotModel,
    motors: MotorMotion | None,
    motor_names: Sequence[str],
    motor_joints: Sequence[str],
    limits: MotorLimits | None = None,
    actuators: Actuators | None = None,
    every_order: bool = False,
) -> Iterator[Quantity]:
    """Quantities of motors and springs along a motion beside their limits.

    Parameters
    ----------
    model : RobotModel
    motors : MotorMotion or None
        Of N samples; NaN where they are not known. None: of no sample.
    motor_names, motor_joints : sequence of str
        The m motors, and the joint that each moves.
    limits : MotorLimits, optional
        By default there are none.
    actuators : Actuators, optional
        With them the deflection of a joint is that of its most deflected spring, else the mean.
    every_order : bool
        Whether positions of the motors, which have no limits, come first.

    Yields
    ------
    Quantity
        Each of `MOTOR_QUANTITIES`; NaN if there are fewer orders.
    """
    linear = {
        name: kind == 'prismatic'
        for name, kind in zip(model.joint_names, model.joint_types)
    }
    series = {} if motors is None else motors._asdict()
    if motors is not None and actuators is not None:
        series['deflection'] = _worst_deflections(actuators, motors)
    further = [('', 'position', 0)] * every_order
    for quantity, kind, order in (*further, *LIMITED[-len(MOTOR_QUANTITIES) :]):
        of_motors = kind != 'deflection'
        names = tuple(motor_names) if of_motors else model.joint_names
        is_linear = tuple(linear[joint] for joint in (motor_joints if of_motors else names))
        upper = getattr(limits, quantity, np.full(len(names), np.inf))
        values = order_of(series.get(kind, np.empty((0, 0, len(names)))), order)
        yield Quantity(quantity, kind, order, names, is_linear, values, -upper, upper)


def _worst_deflections(actuators: Actuators, motors: MotorMotion) -> Array:
    """Deflections (N, 1, n) of the most deflected spring of each joint."""
    own = spring_deflections(actuators, motors)[:, 0]
    deflection = motors.deflection[:, :1].copy()
    for item in actuators.driven:
        of_joint = own[:, item.motors]
        worst = np.abs(np.nan_to_num(of_joint)).argmax(axis=1)
        deflection[:, 0, item.joint] = of_joint[np.arange(len(own)), worst]
    return deflection


def find_motor_violations(
    actuators: Actuators, limits: MotorLimits, motion: MotorMotion
) -> tuple[Violation, ...]:
    """Find the worst sample of every motor and quantity that exceeds its limit.

    Parameters
    ----------
    actuators : Actuators
    limits : MotorLimits
    motion : MotorMotion
        Of N samples, arrays of shape (N, ..., m), or of one. Quantities of orders that it does not
        have are not checked.

    Returns
    -------
    tuple of Violation
        Ordered by quantity, then by motor or joint. Their `joint_name` is the name of the motor,
        for deflections that of the joint, whose most deflected spring counts.

    Raises
    ------
    MotionError
        If the motion holds NaN or infinite values, of which no limit can be checked.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.actuators import find_motor_violations, motor_limits, motor_motion
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {'elbow': SeriesElastic(100.0, 0.1)})
    >>> limits = motor_limits(drives, {'elbow': {'deflection': 0.05}})
    >>> motors = motor_motion(drives, np.zeros((1, 5, 2)))
    >>> for violation in find_motor_violations(drives, limits, motors):
    ...     print(f'{violation.quantity}: {violation.value:.3f} beyond {violation.limit}')
    deflection: 0.098 beyond 0.05
    """
    motion = type(motion)(*map(np.asarray, motion))
    N = prod(motion.position.shape[:-2])
    samples = [array.reshape(N, *array.shape[-2:]) for array in motion]
    for name, array in zip(motion._fields, samples):
        where = first_not_finite(array)
        if where is not None:
            sample, order, column = where
            raise MotionError(
                f'The limits of motors cannot be checked: in sample {sample} the {name} '
                f'(derivative {order}, column {column}) is {array[where]}, '
                'expected finite numbers.'
            )
    joints = actuators.model.joint_names
    owners = [joints[j] for j in actuators.joint_of_motor]
    whole = type(motion)(*samples), actuators.motor_names, owners
    found = motor_quantities(actuators.model, *whole, limits, actuators)
    return tuple(item for quantity in found for item in quantity.violations())
