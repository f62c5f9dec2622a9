"""Quantities of a motion that have no limit, which a verdict says nothing of, and their sizes.

A motion keeps all limits that are known, which says nothing of the others. Positions are not among
them: a joint without limits of its position is one that turns for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.model.limits import LIMITED, MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed, name_of, number, unit_of
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.actuators.motors import MotorMotion

# Digits of the largest values in sentences.
_DIGITS = 3
_UNITS = {'effort': 'N m', 'torque': 'N m'}  # of series at joints that turn; else rad


class Unlimited(NamedTuple):
    """A quantity that has no limit in some joints or motors of one unit."""

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
        largest = '' if np.isnan(self.largest) else f' (up to {self._largest})'
        return f'{name_of(self.quantity)} of {whose}{largest}'

    @property
    def _largest(self) -> str:
        """Largest magnitude with three digits, its unit and whose it is."""
        return f'{number(self.largest, _DIGITS)} {self.unit} in {self.name}'


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
    """
    series: dict[str, Array] = {}
    for kind, values in (('motion', motion), ('effort', effort)):
        if values is not None:
            series[kind] = np.asarray(values, dtype=np.float64)
    if motors is not None:
        series |= motors._asdict()
    is_linear = np.array([kind == 'prismatic' for kind in model.joint_types])
    found = []
    for quantity, kind, order, names, is_open, of_linear in _open(
        model, limits, is_linear, actuators, motor_limits
    ):
        values = series.get(kind, np.zeros((0, 0, 0)))
        for linear in (False, True):
            chosen = np.flatnonzero(is_open & (of_linear == linear))
            if not len(chosen):
                continue
            largest, worst = np.nan, ''
            if order < values.shape[1] and len(values):
                peaks = np.nanmax(np.abs(values[:, order, chosen]), axis=0, initial=-1.0)
                column = int(peaks.argmax())
                if peaks[column] >= 0.0:
                    largest, worst = float(peaks[column]), names[int(chosen[column])]
            whose = tuple(names[k] for k in chosen.tolist())
            are_all, angular = len(whose) == len(names), _UNITS.get(kind, 'rad')
            unit = unit_of(angular, linear, order)
            found.append(Unlimited(quantity, whose, are_all, largest, worst, unit))
    return tuple(found)


def _open(
    model: RobotModel,
    limits: MotionLimits,
    is_linear: NDArray[np.bool_],
    actuators: Actuators | None,
    motor_limits: MotorLimits | None,
) -> Iterator[tuple[str, str, int, Sequence[str], NDArray[np.bool_], NDArray[np.bool_]]]:
    """Quantities with the series and order that they are, names, and which have no limit.

    Yields
    ------
    quantity : str
        Name of the limit.
    kind : str
        Series that it belongs to: 'motion', 'effort' or a field of `MotorMotion`.
    order : int
        Time derivative of that series.
    names : sequence of str
        Joints or motors, as the last axis of the series.
    is_open : ndarray of bool
        Which of them have no limit.
    of_linear : ndarray of bool
        Which of them belong to prismatic joints.
    """
    for quantity, kind, order in LIMITED:
        if kind in ('motion', 'effort'):
            limit = getattr(limits, quantity)
            yield quantity, kind, order, model.joint_names, np.isinf(limit), is_linear
        elif actuators is not None:
            names, of_linear = actuators.motor_names, is_linear[actuators.joint_of_motor]
            if kind == 'deflection':
                names, of_linear = model.joint_names, is_linear
            limit = getattr(motor_limits, quantity, np.full(len(names), np.inf))
            is_open = np.isinf(limit)
            if kind == 'deflection':
                # Rigid joints have none, and most springs end somewhere.
                springs = (
                    getattr(item.actuator, 'spring', None) for item in actuators.driven
                )
                is_open &= [s is not None and np.isinf(s.range[1]) for s in springs]
            yield quantity, kind, order, names, is_open, of_linear


def kept(found: Sequence[Unlimited], limits_from: str = '') -> str:
    """Sentences on a motion that keeps its limits: whether there are limits of everything.

    `limits_from` says where they come from, as in 'robot description'.

    Parameters
    ----------
    found : sequence of Unlimited
        As `find_unlimited` finds them.
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
        As `find_unlimited` finds them.

    Returns
    -------
    str
    """
    return f'No limit is known for the {"; ".join(item.text for item in found)}.' * bool(
        found
    )
