"""How quantities of joints and motors are written: names, symbols, units and numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.names import EFFORT_NAMES, MOTION_NAMES, unit_of

_SUPERSCRIPTS = str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹')
_TYPOGRAPHIC = _SUPERSCRIPTS | str.maketrans('', '', '^')
_OF_MOTORS = {
    'motor_position': ('Motor position', 'θ', 'rad', 0),
    'motor_velocity': ('Motor velocity', 'θ′', 'rad', 1),
    'motor_torque': ('Motor {}', 'τ', 'N m', 0),
    'motor_torque_rate': ('Motor {} rate', 'τ′', 'N m', 1),
    'deflection': ('Deflection', 'θ − q', 'rad', 0),
}
"""Names, in which the kind of effort is left open, symbols, units of turning joints, orders."""
RESIDUAL_KINDS = {
    'effort': 'torques of the joints',
    'motor': 'torques of the motors',
    'sensor': 'torque sensors',
    'spring': 'torques of springs against those of the links',
}


class Label(NamedTuple):
    """Name, symbol and unit of a quantity.

    Attributes
    ----------
    name : str
        Such as 'Torque rate'.
    symbol : str
        Such as 'Q′'; empty if there is none.
    plain_unit : str
        In letters that every terminal and program knows, such as 'N m/s^2'.
    """

    name: str
    symbol: str
    plain_unit: str

    @property
    def title(self) -> str:
        """Name and symbol."""
        return f'{self.name} {self.symbol}'.rstrip()

    @property
    def unit(self) -> str:
        """Unit as in typography, such as 'N m/s²'."""
        return self.plain_unit.translate(_TYPOGRAPHIC)


def motion_label(order: int, is_linear: bool) -> Label:
    """Label of a time derivative of a joint position; a linear joint moves in metres.

    Parameters
    ----------
    order : int
        0: the position.
    is_linear : bool
        Whether the joint is prismatic.

    Returns
    -------
    Label
    """
    name = f'{order}th derivative of position'
    name = MOTION_NAMES[order] if order < len(MOTION_NAMES) else name
    return Label(name.capitalize(), _primed('q', order), unit_of('rad', is_linear, order))


def effort_label(order: int, is_linear: bool) -> Label:
    """Label of a time derivative of a joint torque, or of the force of a linear joint.

    Parameters
    ----------
    order : int
        0: the torque.
    is_linear : bool
        Whether the joint is prismatic.

    Returns
    -------
    Label
    """
    effort = 'force' if is_linear else 'torque'
    ordinal = {2: 'second', 3: 'third', 4: 'fourth'}.get(order, f'{order}th')
    name = (
        (effort, f'{effort} rate')[order]
        if order < 2
        else f'{ordinal} derivative of {effort}'
    )
    return Label(name.capitalize(), _primed('Q', order), unit_of('N m', is_linear, order))


def label_of(quantity: str, is_linear: bool) -> Label:
    """Label of a quantity by its name in a `Violation`; unknown names stay as they are.

    Parameters
    ----------
    quantity : str
        Such as 'velocity', 'effort_dot' or 'motor_torque'.
    is_linear : bool
        Whether the joint, or that of the motor, is prismatic.

    Returns
    -------
    Label
        Without symbol and unit if the name is unknown.
    """
    if quantity in MOTION_NAMES:
        return motion_label(MOTION_NAMES.index(quantity), is_linear)
    if quantity in EFFORT_NAMES:
        return effort_label(EFFORT_NAMES.index(quantity), is_linear)
    if quantity not in _OF_MOTORS:
        return Label(quantity, '', '')
    name, symbol, unit, order = _OF_MOTORS[quantity]
    name = name.format('force' if is_linear else 'torque')
    return Label(name, symbol, unit_of(unit, is_linear, order))


def number(value: float, digits: int = 4) -> str:
    """Write a number for people: some digits, a minus sign that is one, no exponent if short.

    Parameters
    ----------
    value : float
    digits : int
        That are significant.

    Returns
    -------
    str
        With the minus sign of typography.
    """
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        text = np.format_float_positional(
            value, precision=digits, unique=False, fractional=False, trim='-'
        )
        # Digits before the point are not rounded away.
        text = f'{value:.0f}' if abs(value) >= 10.0**digits else text
    else:
        text = f'{value:.{digits}g}'.replace('e-0', 'e-').replace('e+0', 'e+')
    return text.replace('-', '−')


def percent(share: float) -> str:
    """Write a share, so that what exceeds a limit reads as more than 100 %.

    Parameters
    ----------
    share : float
        1 is all of it.

    Returns
    -------
    str
        Two digits for small shares; more where it is just above 100 %.
    """
    if 1.0 < share < 1.0095:
        return f'{100.0 * share:.{1 if share > 1.0009 else 4}f} %'
    if share < 0.095:
        return f'{100.0 * share:.2g} %'
    return f'{100.0 * share:.0f} %'


def _primed(symbol: str, order: int) -> str:
    """Symbol of a time derivative: primes up to the third, then its number as an exponent."""
    primes = ('', '′', '″', '‴')
    if order < len(primes):
        return symbol + primes[order]
    return f'{symbol}⁽{str(order).translate(_SUPERSCRIPTS)}⁾'
