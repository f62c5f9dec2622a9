"""What the pictures show: names, symbols and units of quantities of joints and motors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Names of the time derivatives of a joint position, and of its effort.
_MOTION = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
_SUPERSCRIPTS = str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹')

MOTION_QUANTITIES = ('position', 'velocity', 'acceleration', 'jerk')
"""Quantities of the motion that may have limits, in the order of the derivatives."""
EFFORT_QUANTITIES = ('effort', 'effort_dot')
"""Quantities of the effort that may have limits, in the order of the derivatives."""


class Quantity(NamedTuple):
    """How a quantity is written in titles and along axes."""

    name: str
    """Such as ``Torque rate``."""
    symbol: str
    """Such as ``Q′``; empty if there is none."""
    unit: str
    """Such as ``N m/s``."""

    @property
    def title(self) -> str:
        """Name and symbol."""
        return f'{self.name} {self.symbol}'.rstrip()


def motion_quantity(order: int, is_linear: bool) -> Quantity:
    """Time derivative of a joint position.

    Parameters
    ----------
    order : int
    is_linear : bool
        Whether the joint is prismatic, so that it moves in metres.
    """
    name = _MOTION[order] if order < len(_MOTION) else f'{order}th derivative of position'
    return Quantity(name.capitalize(), _primed('q', order), _per_time(_length(is_linear), order))


def effort_quantity(order: int, is_linear: bool) -> Quantity:
    """Time derivative of a joint torque, or of the force of a prismatic joint."""
    effort = 'force' if is_linear else 'torque'
    ordinal = {2: 'second', 3: 'third'}.get(order, f'{order}th')
    name = (effort, f'{effort} rate')[order] if order < 2 else f'{ordinal} derivative of {effort}'
    return Quantity(name.capitalize(), _primed('Q', order), _per_time(_force(is_linear), order))


def limited_quantity(name: str, is_linear: bool) -> Quantity:
    """Quantity by its name in a `Violation`; names that are not known stay as they are."""
    if name in MOTION_QUANTITIES:
        return motion_quantity(MOTION_QUANTITIES.index(name), is_linear)
    if name in EFFORT_QUANTITIES:
        return effort_quantity(EFFORT_QUANTITIES.index(name), is_linear)
    force, length = _force(is_linear), _length(is_linear)
    known = {
        'motor_position': Quantity('Motor position', 'θ', length),
        'motor_velocity': Quantity('Motor velocity', 'θ′', _per_time(length, 1)),
        'motor_torque': Quantity('Motor force' if is_linear else 'Motor torque', 'τ', force),
        'motor_torque_rate': Quantity(
            'Motor force rate' if is_linear else 'Motor torque rate', 'τ′', _per_time(force, 1)
        ),
        'deflection': Quantity('Deflection', 'θ − q', length),
    }
    return known.get(name, Quantity(name, '', ''))


def number(value: float, digits: int = 4) -> str:
    """Write a number for people: some digits, a minus sign that is one, no exponent if short."""
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        text = np.format_float_positional(
            value, precision=digits, unique=False, fractional=False, trim='-'
        )
        # Digits before the point are not rounded away.
        text = f'{value:.0f}' if abs(value) >= 10.0**digits else text
    else:
        text = f'{value:.{digits}g}'.replace('e-0', 'e-').replace('e+0', 'e+')
    return text.replace('-', '−')


def _length(is_linear: bool) -> str:
    return 'm' if is_linear else 'rad'


def _force(is_linear: bool) -> str:
    return 'N' if is_linear else 'N m'


def _primed(symbol: str, order: int) -> str:
    primes = ('', '′', '″', '‴')
    if order < len(primes):
        return symbol + primes[order]
    return f'{symbol}⁽{str(order).translate(_SUPERSCRIPTS)}⁾'


def _per_time(unit: str, order: int) -> str:
    if order == 0:
        return unit
    return f'{unit}/s' + (str(order).translate(_SUPERSCRIPTS) if order > 1 else '')
