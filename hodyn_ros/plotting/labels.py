"""How quantities of joints and motors are written: names, symbols, units and numbers."""

from __future__ import annotations

from typing import NamedTuple

from hodyn_ros import names
from hodyn_ros.model.limits import ANGULAR
from hodyn_ros.model.violations import Quantity
from hodyn_ros.names import MOTION_NAMES, unit_of

_SUPERSCRIPTS = str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹')
_TYPOGRAPHIC = _SUPERSCRIPTS | str.maketrans('', '', '^')
_SYMBOLS = {
    'motion': 'q',
    'effort': 'Q',
    'position': 'θ',
    'torque': 'τ',
    'deflection': 'θ − q',
}
_ORDINALS = ('second', 'third', 'fourth', *(f'{k}th' for k in range(5, 12)))
_NAMES = {
    'motion': (*MOTION_NAMES, *(f'{k}th derivative of position' for k in range(5, 12))),
    'effort': ('{}', '{} rate', *(f'{k} derivative of {{}}' for k in _ORDINALS)),
    'position': ('motor position', 'motor velocity'),
    'torque': ('motor {}', 'motor {} rate'),
    'deflection': ('deflection',),
}
"""Names by their order, in which the kind of effort is left open."""


class Label(NamedTuple):
    """Name, symbol and unit of a quantity.

    Attributes
    ----------
    name : str
        Such as 'Torque rate'.
    symbol : str
        Such as 'Q′'.
    unit : str
        As in typography, such as 'N m/s²'.
    """

    name: str
    symbol: str
    unit: str

    @property
    def title(self) -> str:
        """Name and symbol."""
        return f'{self.name} {self.symbol}'


def label(kind: str, order: int, is_linear: bool) -> Label:
    """Label of a time derivative of a series of a joint or motor.

    Parameters
    ----------
    kind : str
        As of `Quantity`, such as 'motion' or 'effort'.
    order : int
        0: the series itself.
    is_linear : bool
        Whether the joint, or that of the motor, slides: it moves in metres, by forces.

    Returns
    -------
    Label
    """
    name = _NAMES[kind][order].format('force' if is_linear else 'torque').capitalize()
    unit = unit_of(ANGULAR[kind], is_linear, order).translate(_TYPOGRAPHIC)
    return Label(name, _primed(_SYMBOLS[kind], order), unit)


def labels_of(quantity: Quantity) -> tuple[Label, ...]:
    """Labels of a quantity of each of its joints or motors.

    Parameters
    ----------
    quantity : Quantity

    Returns
    -------
    tuple of Label
    """
    series = quantity.kind, quantity.order
    return tuple(label(*series, linear) for linear in quantity.is_linear)


def number(value: float, digits: int = 4) -> str:
    """Write a number as `hodyn_ros.names.number` does, with the minus sign of typography.

    Parameters
    ----------
    value : float
    digits : int
        That are significant.

    Returns
    -------
    str
    """
    return names.number(value, digits).replace('-', '−')


def _primed(symbol: str, order: int) -> str:
    """Symbol of a time derivative: primes up to the third, then its number as an exponent."""
    primes = ('', '′', '″', '‴')
    if order < len(primes):
        return symbol + primes[order]
    return f'{symbol}⁽{str(order).translate(_SUPERSCRIPTS)}⁾'
