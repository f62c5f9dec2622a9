"""Which limits a motion keeps: quantity by quantity, for the report and `hodyn check`.

Where a limit is exceeded is found by `hodyn_ros.model.limits` and `hodyn_ros.actuators.limits`;
here is what was checked at all, and how much of every limit is used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.limits import MOTOR_QUANTITIES, MotorLimits, find_motor_violations
from hodyn_ros.analysis.limits import Unlimited, find_unlimited
from hodyn_ros.checks import Array
from hodyn_ros.errors import ActuatorError
from hodyn_ros.files.quantities import MOTOR_ARRAYS
from hodyn_ros.model.limits import MotionLimits, velocity_use
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import LimitedJoints, Violation, find_violations
from hodyn_ros.names import EFFORT_NAMES, MOTION_NAMES, listed
from hodyn_ros.plotting.labels import label_of
from hodyn_ros.plotting.series import (
    Range,
    Series,
    effort_series,
    motion_series,
    motor_series,
    peak_share,
)

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.files import Samples

# What may have a limit, in the order of tables.
_QUANTITIES = (*MOTION_NAMES[:4], *EFFORT_NAMES, *MOTOR_QUANTITIES)


class Check(NamedTuple):
    """One quantity of all joints or motors beside its limits.

    Attributes
    ----------
    quantity : str
        As in `Violation`.
    title : str
        Name for people.
    subjects : tuple of str
        Names of the m joints or motors.
    is_limited : ndarray of bool, shape (m,)
        Which of them have a limit.
    n_known : ndarray of int, shape (m,)
        At how many samples the quantity of each is known.
    n_samples : int
        Number of all samples.
    shares : ndarray, shape (m,)
        Of the limit that the worst sample uses, see `peak_share`; NaN without a limit.
    """

    quantity: str
    title: str
    subjects: tuple[str, ...]
    is_limited: NDArray[np.bool_]
    n_known: NDArray[np.intp]
    n_samples: int
    shares: Array

    @property
    def of_motors(self) -> bool:
        """Whether the subjects are motors."""
        return self.quantity.startswith('motor')

    @property
    def n_limited(self) -> int:
        """Number of joints or motors that have a limit."""
        return int(self.is_limited.sum())

    @property
    def n_complete(self) -> int:
        """Number of limits that are checked at all samples."""
        return int((self.is_limited & (self.n_known == self.n_samples)).sum())

    @property
    def n_least(self) -> int:
        """Samples at which the quantity is known of every joint or motor with a limit.

        There has to be one with a limit.
        """
        return int(self.n_known[self.is_limited].min())

    @property
    def is_checked(self) -> bool:
        """Whether anything could be compared with a limit."""
        return bool((self.is_limited & (self.n_known > 0)).any())

    def share_of(self, name: str) -> float:
        """Share that a joint or motor uses; NaN without a limit, or if it is none of these."""
        shares: list[float] = self.shares.tolist()
        return dict(zip(self.subjects, shares)).get(name, float('nan'))

    @property
    def worst(self) -> int | None:
        """Index of the joint or motor that uses most of its limit.

        Returns
        -------
        int or None
            None if the share of none is known.
        """
        return None if np.isnan(self.shares).all() else int(np.nanargmax(self.shares))


def all_checks(
    results: Samples,
    model: RobotModel,
    limits: MotionLimits,
    motor_limits: MotorLimits | None,
) -> tuple[Check, ...]:
    """Check every quantity that may have a limit; see `checked_results`.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel
    limits : MotionLimits
    motor_limits : MotorLimits or None
        None: no motor has a limit.

    Returns
    -------
    tuple of Check
        Motion, efforts, then motors if the results have them.
    """
    found = []
    for quantity, names, labels, values, lower, upper, _ in (
        *_with_others(motion_series(results, model, limits), results, model, limits),
        *effort_series(results, model, limits),
        *motor_series(results, model, motor_limits),
    ):
        if quantity not in _QUANTITIES:
            continue
        n_known = np.count_nonzero(~np.isnan(values), axis=0)
        shares = np.full(len(names), np.nan)
        for i in np.flatnonzero(n_known).tolist():
            shares[i] = peak_share(values[:, i], Range(float(lower[i]), float(upper[i])))
        # Of torques and forces together the name is torque.
        title = labels[0].name if len(set(labels)) == 1 else label_of(quantity, False).name
        is_limited = np.isfinite(lower) | np.isfinite(upper)
        found.append(
            Check(quantity, title, names, is_limited, n_known, len(values), shares)
        )
    return tuple(found)


def _with_others(
    series: list[Series], results: Samples, model: RobotModel, limits: MotionLimits
) -> list[Series]:
    """Series of the motion with joints that move with the others where they have a limit.

    Velocities whose limits depend on positions are shares of these.
    """
    joints, found = LimitedJoints(model, limits), []
    motion, n = joints.motion(results.motion), model.n_joints
    falls = np.isfinite(joints.limits.deceleration_limit)
    for order, each in enumerate(series):
        lower, upper = joints.limits[:2]
        if each.quantity != 'position':
            upper = getattr(
                joints.limits, each.quantity, np.full(len(joints.names), np.inf)
            )
            lower = -upper
        values = np.append(
            each.values, np.full((len(motion), len(upper) - n), np.nan), axis=1
        )
        if order < motion.shape[1]:
            values[:, n:] = motion[:, order, n:]
        if each.quantity == 'velocity' and falls.any() and motion.shape[1] > 1:
            use = velocity_use(joints.limits, motion)
            values, upper = np.where(falls, use, values), np.where(falls, 1.0, upper)
            lower = -upper
        shown = [*range(n), *(n + np.flatnonzero(np.isfinite(upper[n:] - lower[n:])))]
        names = tuple(joints.names[k] for k in shown)
        columns = values[:, shown], lower[shown], upper[shown]
        found.append(Series(each.quantity, names, each.labels, *columns))
    return found


def unlimited_in(
    results: Samples,
    model: RobotModel,
    limits: MotionLimits,
    actuators: Actuators | None,
    motor_limits: MotorLimits | None,
) -> tuple[Unlimited, ...]:
    """Quantities without a limit, and how large they are in the results; see `find_unlimited`.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel
    limits : MotionLimits
    actuators, motor_limits : Actuators and MotorLimits, or None

    Returns
    -------
    tuple of Unlimited
    """
    return find_unlimited(
        model,
        limits,
        results.motion,
        results.effort,
        actuators=actuators,
        motor_limits=motor_limits,
        motors=results.motors,
    )


def busiest_joints(
    results: Samples, model: RobotModel, limits: MotionLimits, most: int
) -> list[str]:
    """Names of so many joints that come nearest to one of their limits, in model order.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel
    limits : MotionLimits
    most : int
        Number of names, at most.

    Returns
    -------
    list of str
    """
    without: dict[str, Any] = dict.fromkeys(MOTOR_ARRAYS)
    checks = all_checks(replace(results, **without), model, limits, None)
    shares = np.array([check.shares[: model.n_joints] for check in checks])
    peaks = np.fmax.reduce(shares, axis=0, initial=0.0)
    chosen = np.sort(np.argsort(-peaks, kind='stable')[:most])
    return [model.joint_names[joint] for joint in chosen.tolist()]


def all_violations(
    results: Samples,
    model: RobotModel,
    limits: MotionLimits,
    actuators: Actuators | None,
    motor_limits: MotorLimits | None,
) -> tuple[Violation, ...]:
    """Find the worst sample of every joint, motor and quantity that exceeds its limit.

    What is not known at a sample, such as a derivative that could not be estimated there, exceeds
    nothing there. Limits of motors need the actuators; an `ActuatorError` if these do not fit.

    Parameters
    ----------
    results : Samples
        As `checked_results` gives them.
    model : RobotModel
    limits : MotionLimits
    actuators, motor_limits : Actuators and MotorLimits, or None

    Returns
    -------
    tuple of Violation
        In the order of the quantities: motion, efforts, motors.

    Raises
    ------
    ActuatorError
        If limits of motors are given without actuators, or the motors of these are others.
    """
    effort = np.full_like(results.motion[:, 2:], np.nan)
    known = results.effort[:, : effort.shape[1]]
    effort[:, : known.shape[1]] = known
    found = find_violations(model, limits, results.motion, effort)
    if results.motors is not None and motor_limits is not None:
        if actuators is None:
            raise ActuatorError(
                'Limits of motors are given without the actuators; give actuators= too, or the '
                'violations that are already found.'
            )
        if actuators.motor_names != results.motor_names:
            raise ActuatorError(
                f'The motors of the results are {listed(results.motor_names)}, but those of the '
                f'actuators {listed(actuators.motor_names)}.'
            )
        motors = type(results.motors)(*map(np.nan_to_num, results.motors))
        found += find_motor_violations(actuators, motor_limits, motors)
    return tuple(sorted(found, key=lambda violation: _QUANTITIES.index(violation.quantity)))
