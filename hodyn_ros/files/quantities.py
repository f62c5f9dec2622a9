"""Quantities along a motion: names of their orders, as columns have them, units and owners."""

from __future__ import annotations

from typing import NamedTuple

from hodyn_ros.names import MOTION_NAMES

TIME = 'time'
_MOST_ORDERS = 12


def _named(stem: str, *first: str) -> tuple[str, ...]:
    """Names of the orders of a quantity: its own ones, then numbered ones."""
    first = first or (stem, f'{stem}_dot', f'{stem}_ddot')
    return (*first, *(f'{stem}_d{k}' for k in range(len(first), _MOST_ORDERS)))


class FileQuantity(NamedTuple):
    """What a file may hold with all of its orders.

    Attributes
    ----------
    names : tuple of str
        Of its orders, from the value itself on; of a wrench with the components of each.
    unit : str
        Of the value at a joint that turns; empty for wrenches.
    owners : str
        Array of NPZ files, and for `Samples` the attribute, that names whose it is.
    """

    names: tuple[str, ...]
    unit: str
    owners: str


MOTION = _named('position', *MOTION_NAMES)
EFFORT = _named('effort')
EFFORT_STD = tuple(f'{name}_std' for name in EFFORT)
MOTOR_TORQUE = _named('motor_torque')
# In the order of `Wrench.values`: moment before force.
COMPONENTS = tuple(f'{part}.{axis}' for part in ('torque', 'force') for axis in 'xyz')
WRENCH = tuple(f'{order}.{part}' for order in _named('wrench') for part in COMPONENTS)

_MOTOR_MOTION = _named('motor_position', *(f'motor_{name}' for name in MOTION_NAMES))

QUANTITIES = {
    'motion': FileQuantity(MOTION, 'rad', 'joint_names'),
    'effort': FileQuantity(EFFORT, 'N m', 'joint_names'),
    'motion_std': FileQuantity(
        tuple(f'{name}_std' for name in MOTION), 'rad', 'joint_names'
    ),
    'effort_std': FileQuantity(EFFORT_STD, 'N m', 'joint_names'),
    'wrenches': FileQuantity(WRENCH, '', 'wrench_links'),
    'motor_position': FileQuantity(_MOTOR_MOTION, 'rad', 'motor_names'),
    'motor_torque': FileQuantity(MOTOR_TORQUE, 'N m', 'motor_names'),
    'deflection': FileQuantity(_named('deflection'), 'rad', 'joint_names'),
    'stiffness': FileQuantity(_named('stiffness'), 'N m/rad', 'stiffness_joints'),
}
"""In the order of the columns that are written; all but wrenches and stiffness are those of
`Samples.arrays`."""
MOTOR_ARRAYS = ('motor_position', 'motor_torque', 'deflection')
"""In the order of `MotorMotion`."""
