"""Headroom: shares of limits that are left to feedback, and to what the model does not know."""

from __future__ import annotations

from collections.abc import Mapping

from hodyn_ros.errors import ModelError
from hodyn_ros.model.limits import LIMITED, L, scaled_limits
from hodyn_ros.names import did_you_mean, listed, name_of, number

_QUANTITIES = [name for name, *_ in LIMITED]
_BY_NAME = {
    **{name_of(name).replace(' ', '_'): name for name in _QUANTITIES},
    **{name: name for name in _QUANTITIES},
}
MARGIN_NAMES = (*_BY_NAME,)
"""Quantities that can have a margin, by their names for people, then those in `LIMITED`."""


def checked_margins(given: Mapping[str, object]) -> dict[str, float]:
    """Shares of limits by the names of the quantities.

    Parameters
    ----------
    given : mapping of str to float or str
        By the name of a limited quantity, as in `LIMITED`, or of its name for people with
        underscores: effort_dot or torque_rate. A share is a number, 0.2, or a percentage, '20%'.

    Returns
    -------
    dict of str to float
        By the names in `LIMITED`.

    Raises
    ------
    ModelError
        If these are not given by name, a name is unknown or there twice, or a share is not a
        number from 0 to less than 1.

    Examples
    --------
    >>> from hodyn_ros.model.margins import checked_margins
    >>> checked_margins({'torque_rate': '20%', 'velocity': 0.1})
    {'effort_dot': 0.2, 'velocity': 0.1}
    """
    if not isinstance(given, Mapping):
        raise ModelError(
            f'margins is {given!r}, expected shares by the names of quantities, such as '
            "{'torque_rate': 0.2}."
        )
    margins: dict[str, float] = {}
    for name, share in given.items():
        quantity = _BY_NAME.get(name)
        if quantity is None:
            raise ModelError(
                f'margins.{name} is unknown{did_you_mean(name, _BY_NAME)}, expected one of '
                f'{listed(_BY_NAME)}.'
                + ' Positions have no margin: narrow their limits.'
                * (name == 'position')
            )
        if quantity in margins:
            raise ModelError(f'margins.{name} is given twice, as two names of {quantity}.')
        margins[quantity] = _share(name, share)
    return margins


def _share(name: str, given: object) -> float:
    text = str(given).strip()
    is_percentage = text.endswith('%')
    try:
        share = float(text.removesuffix('%')) * (0.01 if is_percentage else 1.0)
    except ValueError:
        share = float('nan')
    if isinstance(given, bool) or not 0.0 <= share < 1.0:
        raise ModelError(
            f'margins.{name} is {given!r}, expected the share of the limit that is left to '
            'feedback, from 0 to less than 1, such as 0.2 or 20%.'
        )
    return share


def with_margins(limits: L, margins: Mapping[str, object]) -> L:
    """Limits less the shares that are left to feedback.

    Those of joints that move with others, and of velocities that fall towards the limits of
    positions, have the same margins.

    Parameters
    ----------
    limits : MotionLimits or MotorLimits
    margins : mapping of str to float or str
        As `checked_margins` takes them; those of quantities of the other kind are left alone.

    Returns
    -------
    MotionLimits or MotorLimits
        Of the same kind; infinite limits stay infinite.

    Raises
    ------
    ModelError
        As of `checked_margins`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import with_margins
    >>> limits = RobotModel.from_urdf('panda').limits
    >>> with_margins(limits, {'effort': 0.1}).effort[0].item(), limits.effort[0].item()
    (78.3, 87.0)
    """
    return scaled_limits(
        limits, {name: 1.0 - x for name, x in checked_margins(margins).items()}
    )


def margins_in_words(margins: Mapping[str, float]) -> str:
    """What is left to feedback, for a sentence on limits; empty if nothing is.

    Parameters
    ----------
    margins : mapping of str to float
        As of `checked_margins`.

    Returns
    -------
    str
        Such as ', less margins of 20 % (torque rate)'.
    """
    said = [f'{number(100.0 * x)} % ({name_of(name)})' for name, x in margins.items() if x]
    return f', less {"margins" if len(said) > 1 else "a margin"} of {listed(said)}' * bool(
        said
    )
