"""Names of time derivatives, quantities and units, of joints and links; numbers in sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from hodyn_ros.errors import JointNameError

# A message with more names helps nobody.
_MOST_LISTED = 40

MOTION_NAMES = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
"""Names of the time derivatives of a motion."""
EFFORT_NAMES = ('effort', 'effort_dot', 'effort_ddot')
"""Names of the time derivatives of an effort."""

# What the command line offers is what the library takes; here, since it imports nothing.
BUNDLED_ROBOTS = (
    'panda',
    'panda_with_hand',
    'fr3',
    'fr3_with_hand',
    'iiwa14',
    'ur5e',
    'ur10e',
    'two_link',
    'parallel_ankle',
    'five_bar',
    'delta',
    'palletiser',
)
"""Robots that come with this package."""
DERIVATIVES = ('auto', 'given', 'spline', 'estimate')
"""Where the derivatives of a motion come from."""
INTERPOLATIONS = ('spline', 'jtc', 'jtc_upsampled')
"""How a motion goes between waypoints."""
EXPRESSIONS = ('body', 'spatial', 'hybrid')
"""Axes and origin of a wrench."""
ACTINGS = ('on_environment', 'on_robot')
"""Direction of a wrench."""
TARGETS = ('bodies', 'payload', 'friction', 'springs')
"""Parameters that a motion shows."""
FRICTION = ('viscous', 'coulomb', 'stribeck')
SPRING = ('stiffness', 'cubic_stiffness', 'damping')
GROUPS = ('bodies', 'payload', 'armature', *FRICTION, 'offset', *SPRING, 'gravity', 'delay')
"""Parameters that can be estimated."""

_NAMES = {
    'effort': 'torque',
    'effort_dot': 'torque rate',
    'effort_ddot': 'second derivative of torque',
}


_LINEAR = {'rad': 'm', 'N m': 'N', 'N m/rad': 'N/m'}


def unit_of(angular: str, is_linear: bool, order: int = 0) -> str:
    """Unit of a time derivative of a quantity of a joint.

    Parameters
    ----------
    angular : {'rad', 'N m', 'N m/rad'}
        Unit of the quantity at a joint that turns.
    is_linear : bool
        Whether the joint slides.
    order : int
        Number of time derivatives.

    Returns
    -------
    str
        Such as 'N m/s^2' or 'm/s'.
    """
    unit = _LINEAR[angular] if is_linear else angular
    return unit + ('', '/s', f'/s^{order}')[min(order, 2)]


def name_of(quantity: str) -> str:
    """Name of a limited quantity for a sentence, such as torque rate."""
    return _NAMES.get(quantity, quantity.replace('_', ' '))


def instant(time: float) -> str:
    """Write a time to tenths of milliseconds; one that counts from long ago to milliseconds.

    Parameters
    ----------
    time : float
        [s]

    Returns
    -------
    str
        Without zeros at its end.
    """
    text = f'{time:.{4 if abs(time) < 1e5 else 3}f}'.rstrip('0').rstrip('.')
    return '0' if text == '-0' else text


def number(value: float, digits: int = 4) -> str:
    """Write a number with some significant digits; what is infinite or not known in words.

    Parameters
    ----------
    value : float
    digits : int
        That are significant.

    Returns
    -------
    str
    """
    if math.isnan(value):
        return 'unknown'
    if math.isinf(value):
        return 'infinite' if value > 0.0 else '-infinite'
    text = f'{value:.{digits}g}'
    if 'e' in text and 1e-4 <= abs(value) < 1e7:
        text = (
            f'{float(text):.0f}' if abs(value) >= 1.0 else f'{float(text):.7f}'.rstrip('0')
        )
    return text


def percent(share: float) -> str:
    """Write a share, so that what exceeds a limit reads as more than 100 %.

    Parameters
    ----------
    share : float
        1 is all of it.

    Returns
    -------
    str
        Such as '42 %': two digits of small shares; more where it is just above 100 %.
    """
    if 1.0 < share < 1.0095:
        return f'{100.0 * share:.{1 if share > 1.0009 else 4}f} %'
    if 1e-4 <= abs(share) < 0.095:
        return f'{100.0 * share:.2g} %'
    return f'{round(100.0 * share) + 0.0:.0f} %'


def listed(names: Iterable[object], most: int = _MOST_LISTED) -> str:
    """Names for a message, separated by commas.

    Parameters
    ----------
    names : iterable of object
        Written as str() does.
    most : int
        So many are written out; the others are counted ("and 3 more").

    Returns
    -------
    str
        "none" if there are no names.
    """
    texts = [str(name) for name in names]
    shown = ', '.join(texts[:most]) or 'none'
    left_out = len(texts) - most
    return f'{shown} and {left_out} more' if left_out > 0 else shown


def did_you_mean(
    name: object, known: Iterable[str], closeness: float = 0.6, most: int = 1
) -> str:
    """Hint for a message on a name that is unknown, be it in upper or lower case.

    Parameters
    ----------
    name : object
        Written as str() does.
    known : iterable of str
    closeness : float
        Of the name to the nearest one, from 0 to 1: 1 is the same name.
    most : int
        So many names at most are in the hint, the nearest ones first.

    Returns
    -------
    str
        Such as ' (did you mean jerk?)', to be written behind the name; empty if no name is close.

    Examples
    --------
    >>> from hodyn_ros.names import did_you_mean
    >>> did_you_mean('torqe', ['velocity', 'torque'])
    ' (did you mean torque?)'
    """
    # Only where something is wrong: difflib takes a while to load.
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(str(name).lower(), by_lower, most, closeness)
    names = ' or '.join(by_lower[each] for each in close)
    return f' (did you mean {names}?)' if close else ''


def joint_order(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Indices that bring values in the order `given` into the order `wanted`.

    Parameters
    ----------
    given, wanted : sequence of str
        The same names, each once.

    Returns
    -------
    list of int
        ``values[joint_order(given, wanted)]`` has the order wanted.

    Raises
    ------
    JointNameError
        If names are repeated, unknown or missing; the message says which.
    """
    place = {name: index for index, name in enumerate(given)}
    known = set(wanted)
    problems = [
        f'{what}: {listed(which)}'
        for what, which in (
            ('repeated', [name for name, count in Counter(given).items() if count > 1]),
            ('unknown', [name for name in given if name not in known]),
            ('missing', [name for name in wanted if name not in place]),
        )
        if which
    ]
    if problems:
        raise JointNameError(
            f'Joint names do not fit ({"; ".join(problems)}); expected each of {listed(wanted)} '
            'once, in any order.'
        )
    return [place[name] for name in wanted]
