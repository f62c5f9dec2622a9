"""Quantities along a motion: one table, which samples, columns of tables and messages follow."""

from __future__ import annotations

from typing import NamedTuple

from hodyn_ros.names import MOTION_NAMES, unit_of

TIME = 'time'
_MOST_ORDERS = 12


def _named(stem: str, *first: str) -> tuple[str, ...]:
    """Names of the orders of a quantity: its own ones, then numbered ones."""
    first = first or (stem, f'{stem}_dot', f'{stem}_ddot')
    return (*first, *(f'{stem}_d{k}' for k in range(len(first), _MOST_ORDERS)))


class FileQuantity(NamedTuple):
    """What samples may hold with all of its orders, and how its columns are called."""

    names: tuple[str, ...]
    """Of its orders, from the value itself on."""
    unit: str
    """Of the value at a joint that turns."""
    owners: str = ''
    """Field of `Samples` that names all who have it; empty: each who has it has an array of its
    own."""
    components: tuple[str, ...] = ('',)
    """Endings of the names, one for each number of a value."""

    def unit_of(self, order: int, component: str, is_linear: bool) -> str:
        """Unit of a component of an order, of a joint that slides or turns."""
        return unit_of(self.unit, is_linear or 'force' in component, order)


MOTION = _named('position', *MOTION_NAMES)
EFFORT = _named('effort')

QUANTITIES = {
    'motion': FileQuantity(MOTION, 'rad', 'joint_names'),
    'effort': FileQuantity(EFFORT, 'N m', 'joint_names'),
    'motion_std': FileQuantity(
        tuple(f'{name}_std' for name in MOTION), 'rad', 'joint_names'
    ),
    'effort_std': FileQuantity(
        tuple(f'{name}_std' for name in EFFORT), 'N m', 'joint_names'
    ),
    # Moment before force, as in `Wrench.values`.
    'wrenches': FileQuantity(
        _named('wrench'),
        'N m',
        components=tuple(
            f'.{part}.{axis}' for part in ('torque', 'force') for axis in 'xyz'
        ),
    ),
    'motor_position': FileQuantity(
        _named('motor_position', *(f'motor_{name}' for name in MOTION_NAMES)),
        'rad',
        'motor_names',
    ),
    'motor_torque': FileQuantity(_named('motor_torque'), 'N m', 'motor_names'),
    'deflection': FileQuantity(_named('deflection'), 'rad', 'joint_names'),
    'stiffness': FileQuantity(_named('stiffness'), 'N m/rad'),
}
"""By the field of `Samples`, in the order of the columns that are written."""
MOTOR_ARRAYS = ('motor_position', 'motor_torque', 'deflection')
"""In the order of `MotorMotion`."""


class Word(NamedTuple):
    """What the name of a column says behind its owner."""

    field: str
    """Of `Samples`, a key of `QUANTITIES`."""
    order: int
    component: str

    def unit(self, is_linear: bool) -> str:
        """Unit at a joint that slides or turns."""
        return QUANTITIES[self.field].unit_of(self.order, self.component, is_linear)


WORDS = {
    name + component: Word(field, order, component)
    for field, quantity in QUANTITIES.items()
    for order, name in enumerate(quantity.names)
    for component in quantity.components
}
"""All words that stand behind the owner in the name of a column."""
