"""Names of joints and links: listing them in messages and matching them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hodyn_ros.errors import JointNameError

# A message with more names helps nobody.
_MOST_LISTED = 40

ORDERS_OF_MOTION = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
"""Names of the time derivatives of joint positions, from the zeroth on."""

_NAMES = {
    'effort': 'torque', 'effort_dot': 'torque rate', 'effort_ddot': 'second derivative of torque'
}  # fmt: skip


def name_of(quantity: str) -> str:
    """Name of a limited quantity for a sentence, such as torque rate."""
    return _NAMES.get(quantity, quantity.replace('_', ' '))


def listed(names: Iterable[object], most: int = _MOST_LISTED) -> str:
    """Names for a message, so many of them."""
    texts = [str(name) for name in names]
    shown = ', '.join(texts[:most]) or 'none'
    left_out = len(texts) - most
    return f'{shown} and {left_out} more' if left_out > 0 else shown


def joint_order(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Indices that bring values in the order `given` into the order `wanted`.

    Both have the same names, each once; a `JointNameError` says what is repeated, unknown or
    missing.
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
