"""How quantities of joints and motors are written: names, symbols, units and numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.names import EFFORT_NAMES, MOTION_NAMES

_SUPERSCRIPTS = str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹')
_POWERS = str.maketrans(
    {sign: f'^{power}' for power, sign in enumerate('²³⁴⁵⁶⁷⁸⁹', start=2)}
)
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
    unit : str
        Such as 'N m/s²'.
    """

    name: str
    symbol: str
    unit: str

    @property
    def title(self) -> str:
        """Name and symbol."""
        return f'{self.name} {self.symbol}'.rstrip()

    @property
    def plain_unit(self) -> str:
        """Unit in letters that every terminal and program knows, such as ``N m/s^2``."""
        return self.unit.translate(_POWERS)


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
    unit = _per_time('m' if is_linear else 'rad', order)
    return Label(name.capitalize(), _primed('q', order), unit)


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
    unit = _per_time('N' if is_linear else 'N m', order)
    return Label(name.capitalize(), _primed('Q', order), unit)


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
    length, effort = ('m', 'force') if is_linear else ('rad', 'torque')
    known = {
        'motor_position': Label('Motor position', 'θ', length),
        'motor_velocity': Label('Motor velocity', 'θ′', f'{length}/s'),
        'motor_torque': Label(f'Motor {effort}', 'τ', effort_label(0, is_linear).unit),
        'motor_torque_rate': Label(
            f'Motor {effort} rate', 'τ′', effort_label(1, is_linear).unit
        ),
        'deflection': Label('Deflection', 'θ − q', length),
    }
    return known.get(quantity, Label(quantity, '', ''))


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


def _per_time(unit: str, order: int) -> str:
    """Unit of a time derivative, with exponents as in typography."""
    if order == 0:
        return unit
    return f'{unit}/s' + (str(order).translate(_SUPERSCRIPTS) if order > 1 else '')
