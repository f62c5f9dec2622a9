"""Quantities of a motion beside their limits, as one table: what is exceeded, used or not limited.

Checks, the worst moment, colours, pictures and texts are views of the table that `limited` makes.
That a motion keeps all limits that are known says nothing of quantities without one: these are
named with their largest values. Positions are not among them, since a joint without limits of its
position is one that turns for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ActuatorError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import (
    LimitedJoints,
    Quantity,
    Violation,
    motion_limits,
    order_of,
)
from hodyn_ros.names import listed, name_of, number
from hodyn_ros.typing import Array, Flags, Indices

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.actuators.motors import MotorMotion

# Digits of the largest values in sentences.
_DIGITS = 3


class Series(Protocol):
    """Series along a motion, as `Along` and `hodyn_ros.files.Samples` have them."""

    @property
    def motion(self) -> Array: ...  # noqa: D102
    @property
    def effort(self) -> Array: ...  # noqa: D102
    @property
    def motors(self) -> MotorMotion | None: ...  # noqa: D102
    @property
    def motor_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def motor_joints(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def motion_std(self) -> Array | None: ...  # noqa: D102
    @property
    def effort_std(self) -> Array | None: ...  # noqa: D102


class Along(NamedTuple):
    """Series along a motion of n joints in model order.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Along, limited
    >>> motion, effort = np.zeros((1, 3, 2)), np.array([[[60.0, 10.0]]])
    >>> along = Along(motion, effort)
    >>> [quantity.name for quantity in limited(RobotModel.from_urdf('two_link'), along)][:5]
    ['position', 'velocity', 'acceleration', 'jerk', 'effort']
    """

    motion: Array
    """Shape (N, K, n); NaN where it is not known."""
    effort: Array
    """Shape (N, E, n)."""
    motors: MotorMotion | None = None
    motor_names: tuple[str, ...] = ()
    motor_joints: tuple[str, ...] = ()
    motion_std: Array | None = None
    effort_std: Array | None = None


def limited(
    model: RobotModel,
    results: Series,
    limits: MotionLimits | None = None,
    *,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    every_order: bool = False,
) -> tuple[Quantity, ...]:
    """Quantities of a motion that may have limits, beside these.

    Limits of joints that follow others, of those that closed loops move and of velocities that
    depend on the position are taken into account.

    Parameters
    ----------
    model : RobotModel
    results : hodyn_ros.files.Samples or Along
        Joints in the order of the model.
    limits : MotionLimits, optional
        By default those of the model.
    actuators : Actuators, optional
        Those that the motors belong to.
    motor_limits : MotorLimits, optional
        By default motors and springs have none.
    every_order : bool
        Whether all other orders and the positions of the motors are in the table, too.

    Returns
    -------
    tuple of Quantity
        Motion, efforts, then motors if there are any. Joints that move with others are among the
        owners of a quantity after those of the model if they have a limit of it.

    Raises
    ------
    ActuatorError
        If the motors of the results are not those of the actuators.
    MotionError
        If closed loops cannot be followed along the motion.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Along, limited
    >>> model = RobotModel.from_urdf('two_link')
    >>> along = Along(np.full((1, 3, 2), 0.5), np.zeros((1, 1, 2)))
    >>> velocity = limited(model, along)[1]
    >>> velocity.name, velocity.owners, velocity.peaks.round(3).tolist()
    ('velocity', ('shoulder', 'elbow'), [0.083, 0.083])
    """
    joints = LimitedJoints(model, motion_limits(model) if limits is None else limits)
    found = []
    for quantity in joints.quantities(results.motion, results.effort, every_order):
        std = results.motion_std if quantity.kind == 'motion' else results.effort_std
        if std is not None:
            quantity = replace(quantity, std=order_of(std, quantity.order))
        found.append(quantity)
    motors, names, owners = results.motors, results.motor_names, results.motor_joints
    if actuators is not None:
        if motors is not None and names != actuators.motor_names:
            raise ActuatorError(
                f'The motors of the results are {listed(names)}, but those of the actuators '
                f'{listed(actuators.motor_names)}.'
            )
        names = actuators.motor_names
        owners = tuple(np.take(model.joint_names, actuators.joint_of_motor).tolist())
    if names:
        # With all of the laws of springs, which a robot without motors does not need.
        from hodyn_ros.actuators.limits import motor_quantities

        of_motors = motors, names, owners, motor_limits, actuators, every_order
        found += motor_quantities(model, *of_motors)
    return tuple(found)


def violations_of(quantities: Sequence[Quantity]) -> tuple[Violation, ...]:
    """Worst sample of every joint or motor and quantity that exceeds its limit.

    Parameters
    ----------
    quantities : sequence of Quantity
        As `limited` gives them.

    Returns
    -------
    tuple of Violation
        In the order of the quantities.
    """
    return tuple(item for quantity in quantities for item in quantity.violations())


def busiest_joints(quantities: Sequence[Quantity], most: int) -> list[str]:
    """Names of so many joints of the model that come nearest to one of their limits.

    Parameters
    ----------
    quantities : sequence of Quantity
        As `limited` gives them.
    most : int
        Number of names, at most.

    Returns
    -------
    list of str
        In model order.
    """
    of_joints = [item for item in quantities if item.kind in ('motion', 'effort')]
    n = min(len(item.owners) for item in of_joints)
    peaks = np.fmax.reduce([item.peaks[:n] for item in of_joints], axis=0, initial=0.0)
    chosen = np.sort(np.argsort(-peaks, kind='stable')[:most])
    return [of_joints[0].owners[joint] for joint in chosen.tolist()]


def worst_moment(quantities: Sequence[Quantity]) -> tuple[Quantity, int, int] | None:
    """Where most of a limit is used: quantity, index of its joint or motor, and sample.

    Parameters
    ----------
    quantities : sequence of Quantity

    Returns
    -------
    (Quantity, int, int) or None
        None if no share of a limit above zero is known.
    """
    most, found = 0.0, None
    for quantity in quantities:
        shares = np.where(np.isfinite(quantity.peaks), quantity.peaks, 0.0)
        j = int(shares.argmax())
        if shares[j] > most:
            most, found = float(shares[j]), (quantity, j)
    if found is None:
        return None
    quantity, j = found
    return quantity, j, int(np.nanargmax(quantity.shares()[:, j]))


class Unlimited(NamedTuple):
    """A quantity that has no limit in some joints or motors of one unit.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import find_unlimited
    >>> model = RobotModel.from_urdf('two_link')
    >>> [item.text for item in find_unlimited(model, model.limits)][:2]
    ['acceleration of all joints', 'jerk of all joints']
    """

    quantity: str
    """As in `hodyn_ros.model.limits` and `hodyn_ros.actuators.limits`."""
    names: tuple[str, ...]
    """Of these joints or motors."""
    are_all: bool
    """Whether these are all joints or motors of the robot."""
    largest: float
    """Largest magnitude along the motion; NaN without a motion or where it does not tell."""
    name: str
    """Of the joint or motor that has it; empty if it is not known."""
    unit: str
    """Such as N m/s^2."""

    @property
    def text(self) -> str:
        """Part of a sentence: whose quantity it is, and how large it becomes.

        Returns
        -------
        str
            Such as 'jerk of all joints (up to 12 rad/s^3 in elbow)'.
        """
        who = 'motors' if self.quantity.startswith('motor') else 'joints'
        whose = f'all {who}' if self.are_all else listed(self.names)
        text = f'{name_of(self.quantity)} of {whose}'
        if np.isnan(self.largest):
            return text
        return f'{text} (up to {number(self.largest, _DIGITS)} {self.unit} in {self.name})'


def unlimited(
    quantities: Sequence[Quantity], actuators: Actuators | None = None
) -> tuple[Unlimited, ...]:
    """Quantities that nothing limits in some joints or motors, with their largest values.

    Parameters
    ----------
    quantities : sequence of Quantity
        As `limited` gives them.
    actuators : Actuators, optional
        Without them, motors and springs are left out.

    Returns
    -------
    tuple of Unlimited
        In the order of the quantities, joints that turn before those that slide.
    """
    found = []
    for quantity in quantities:
        if quantity.name in ('', 'position'):
            continue
        is_open, is_linear = ~quantity.is_limited, np.array(quantity.is_linear)
        if quantity.kind not in ('motion', 'effort'):
            is_open &= actuators is not None
        if quantity.name == 'deflection' and actuators is not None:
            is_open &= _has_endless_spring(actuators)
        for linear in (False, True):
            chosen = np.flatnonzero(is_open & (is_linear == linear))
            if len(chosen):
                found.append(_unlimited(quantity, chosen))
    return tuple(found)


def _has_endless_spring(actuators: Actuators) -> Flags:
    """Joints with a spring that can be deflected without end; others end somewhere."""
    springs = (getattr(item.actuator, 'spring', None) for item in actuators.driven)
    return np.array(
        [spring is not None and np.isinf(spring.range[1]) for spring in springs]
    )


def _unlimited(quantity: Quantity, chosen: Indices) -> Unlimited:
    """Some joints or motors of one unit without a limit of a quantity."""
    names = tuple(quantity.owners[j] for j in chosen.tolist())
    peaks = np.abs(quantity.extremes[:, chosen]).max(axis=0)
    is_known = not np.isnan(peaks).all()
    place = int(np.nanargmax(peaks)) if is_known else 0
    largest, name = (float(peaks[place]), names[place]) if is_known else (np.nan, '')
    are_all = len(names) == len(quantity.owners)
    return Unlimited(
        quantity.name, names, are_all, largest, name, quantity.units[chosen[0]]
    )


def find_unlimited(
    model: RobotModel,
    limits: MotionLimits,
    motion: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    *,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    motors: MotorMotion | None = None,
) -> tuple[Unlimited, ...]:
    """Find the quantities that nothing limits in some joints or motors.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
    motion : array-like, shape (N, K, n), optional
        NaN where it is not known.
    effort : array-like, shape (N, E, n), optional
        Of the same samples.
    actuators, motor_limits : Actuators and MotorLimits, optional
        With actuators alone, none of their motors has a limit.
    motors : MotorMotion, optional
        Of the same samples.

    Returns
    -------
    tuple of Unlimited
        In the order of joints and motors, by quantities; empty where everything has a limit.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import find_unlimited
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion, effort = np.full((1, 4, 2), 0.5), np.zeros((1, 2, 2))
    >>> for item in find_unlimited(model, model.limits, motion, effort):
    ...     print(item.text)
    acceleration of all joints (up to 0.5 rad/s^2 in shoulder)
    jerk of all joints (up to 0.5 rad/s^3 in shoulder)
    torque rate of all joints (up to 0 N m/s in shoulder)
    second derivative of torque of all joints
    """
    none = np.zeros((0, 1, model.n_joints))
    of_joints = [
        none if x is None else np.asarray(x, dtype=np.float64) for x in (motion, effort)
    ]
    names = () if motors is None or actuators is None else actuators.motor_names
    along = Along(of_joints[0], of_joints[1], motors, names)
    table = limited(model, along, limits, actuators=actuators, motor_limits=motor_limits)
    return unlimited(table, actuators)


def kept(found: Sequence[Unlimited], limits_from: str = '') -> str:
    """Sentences on a motion that keeps its limits: whether there are limits of everything.

    `limits_from` says where they come from, as in 'robot description'.

    Parameters
    ----------
    found : sequence of Unlimited
    limits_from : str
        Left out if empty.

    Returns
    -------
    str
    """
    source = f' ({limits_from})' * bool(limits_from)
    if not found:
        return f'All limits are kept{source}.'
    return f'All known limits are kept{source}. {no_limit(found)}'


def no_limit(found: Sequence[Unlimited]) -> str:
    """Sentence that names what has no limit; empty if everything has one.

    Parameters
    ----------
    found : sequence of Unlimited

    Returns
    -------
    str
    """
    what = '; '.join(item.text for item in found)
    return f'No limit is known for the {what}.' * bool(found)
