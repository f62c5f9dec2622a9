"""Which limits a motion keeps: quantity by quantity, for the report.

Where a limit is exceeded is found by `hodyn_ros.analysis.limits` and `hodyn_ros.actuators.limits`;
here is what was checked at all, and how much of every limit is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import MotorLimits, find_motor_violations
from hodyn_ros.actuators.robot import MotorMotion
from hodyn_ros.analysis.limits import MotionLimits, Violation, find_violations
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.names import listed
from hodyn_ros.plotting.panels import Range, peak_share
from hodyn_ros.plotting.quantities import limited_quantity
from hodyn_ros.plotting.source import Source

Array = NDArray[np.float64]


# What may have a limit, in the order of tables.
_QUANTITIES = (
    'position', 'velocity', 'acceleration', 'jerk', 'effort', 'effort_dot',
    'motor_velocity', 'motor_torque', 'motor_torque_rate', 'deflection',
)  # fmt: skip


class Check(NamedTuple):
    """One quantity of all joints or motors beside its limits."""

    quantity: str
    """As in `Violation`."""
    title: str
    of_motors: bool
    subjects: tuple[str, ...]
    """Names of the joints or motors."""
    is_limited: NDArray[np.bool_]
    """Which joints or motors have a limit."""
    n_known: NDArray[np.intp]
    """At how many samples the quantity of each is known."""
    n_samples: int
    shares: Array
    """Share of the limit that the worst sample uses, see `peak_share`; NaN where there is none."""

    @property
    def n_limited(self) -> int:
        """Number of joints or motors that have a limit."""
        return int(self.is_limited.sum())

    @property
    def n_complete(self) -> int:
        """Number of limits that are checked at all samples."""
        return int((self.is_limited & (self.n_known == self.n_samples)).sum())

    @property
    def is_checked(self) -> bool:
        """Whether anything could be compared with a limit."""
        return bool((self.is_limited & (self.n_known > 0)).any())

    @property
    def worst(self) -> int | None:
        """Index of the joint or motor that uses most of its limit."""
        return None if np.isnan(self.shares).all() else int(np.nanargmax(self.shares))


def all_checks(
    source: Source, limits: MotionLimits, motor_limits: MotorLimits | None
) -> tuple[Check, ...]:
    """Check every quantity that may have a limit."""
    return (*_joint_checks(source, limits), *_motor_checks(source, motor_limits))


def busiest_joints(source: Source, limits: MotionLimits, most: int) -> list[str]:
    """Names of the joints that come nearest to one of their limits, in the order of the model.

    Parameters
    ----------
    source : Source
    limits : MotionLimits
    most : int
        How many.

    Returns
    -------
    list of str
    """
    shares = np.array([check.shares for check in _joint_checks(source, limits)])
    peaks = np.fmax.reduce(shares, axis=0, initial=0.0)
    chosen = np.sort(np.argsort(-peaks, kind='stable')[:most])
    return [source.model.joint_names[joint] for joint in chosen.tolist()]


def all_violations(
    source: Source,
    limits: MotionLimits,
    actuators: Actuators | None,
    motor_limits: MotorLimits | None,
) -> tuple[Violation, ...]:
    """Find the worst sample of every joint, motor and quantity that exceeds its limit.

    What is not known at a sample, such as a derivative that could not be estimated there, exceeds
    nothing there.

    Raises
    ------
    ActuatorError
        If limits of motors are given and the actuators are not, or have other motors.
    """
    # Zero exceeds no limit of what may be unknown; positions are always known.
    motion, effort = np.nan_to_num(source.motion), np.nan_to_num(source.effort)
    found = _in_order(find_violations(source.model, limits, motion, effort))
    if source.motors is None or motor_limits is None:
        return found
    if actuators is None:
        raise ActuatorError(
            'Limits of motors are given without the actuators; give actuators= too, or the '
            'violations that are already found.'
        )
    if actuators.motor_names != source.motor_names:
        raise ActuatorError(
            f'The motors of the results are {listed(source.motor_names)}, but those of the '
            f'actuators {listed(actuators.motor_names)}.'
        )
    motors = MotorMotion(*(np.nan_to_num(array) for array in source.motors))
    return (*found, *_in_order(find_motor_violations(actuators, motor_limits, motors)))


def _in_order(violations: Sequence[Violation]) -> tuple[Violation, ...]:
    return tuple(sorted(violations, key=lambda found: _QUANTITIES.index(found.quantity)))


def checked_violations(
    source: Source, violations: Sequence[Violation]
) -> tuple[Violation, ...]:
    """Violations that belong to the samples of the results.

    Raises
    ------
    MotionError
        If a sample does not exist.
    """
    for violation in violations:
        if not 0 <= violation.sample < len(source.times):
            raise MotionError(
                f'The violation of {violation.quantity} by {violation.joint_name!r} is at sample '
                f'{violation.sample}, but the results have {len(source.times)} samples; give the '
                'violations of the same motion.'
            )
    return tuple(violations)


def _joint_checks(source: Source, limits: MotionLimits) -> tuple[Check, ...]:
    motion, effort = source.motion, source.effort
    series = [
        ('position', motion, 0, (limits.lower, limits.upper)),
        ('velocity', motion, 1, _both(limits.velocity)),
        ('acceleration', motion, 2, _both(limits.acceleration)),
        ('jerk', motion, 3, _both(limits.jerk)),
        ('effort', effort, 0, _both(limits.effort)),
        ('effort_dot', effort, 1, _both(limits.effort_dot)),
    ]
    names = source.model.joint_names
    all_linear = all(source.is_linear(joint) for joint in range(len(names)))
    return tuple(
        _check(quantity, all_linear, False, names, values, order, ranges)
        for quantity, values, order, ranges in series
    )


def _motor_checks(source: Source, limits: MotorLimits | None) -> tuple[Check, ...]:
    if source.motors is None:
        return ()
    position, torque, deflection = source.motors
    motors, joints = source.motor_names, source.model.joint_names
    if limits is None:
        without, of_joints = np.full(len(motors), np.inf), np.full(len(joints), np.inf)
        limits = MotorLimits(without, without, without, of_joints)
    series = [
        ('motor_velocity', motors, position, 1, limits.motor_velocity),
        ('motor_torque', motors, torque, 0, limits.motor_torque),
        ('motor_torque_rate', motors, torque, 1, limits.motor_torque_rate),
        ('deflection', joints, deflection, 0, limits.deflection),
    ]
    return tuple(
        _check(quantity, False, names is motors, names, values, order, _both(limit))
        for quantity, names, values, order, limit in series
    )


def _check(
    quantity: str,
    is_linear: bool,
    of_motors: bool,
    names: tuple[str, ...],
    values: Array,
    order: int,
    ranges: tuple[Array, Array],
) -> Check:
    title = limited_quantity(quantity, is_linear).name
    lower, upper = ranges
    is_limited = np.isfinite(lower) | np.isfinite(upper)
    shares = np.full(len(names), np.nan)
    n_known = np.zeros(len(names), dtype=np.intp)
    if values.shape[1] > order:
        n_known = np.count_nonzero(~np.isnan(values[:, order]), axis=0)
    for i in np.flatnonzero(n_known).tolist():
        shares[i] = peak_share(values[:, order, i], Range(float(lower[i]), float(upper[i])))
    return Check(quantity, title, of_motors, names, is_limited, n_known, len(values), shares)


def _both(limit: Array) -> tuple[Array, Array]:
    return -limit, limit
