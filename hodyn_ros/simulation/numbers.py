"""Numbers that a simulation is given, checked."""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import SimulationError


def check_number(name: str, value: object, is_whole: bool) -> None:
    """Refuse what is not a number from zero on.

    Raises
    ------
    SimulationError
    """
    kinds = (int, np.integer) if is_whole else (int, float, np.integer, np.floating)
    if not isinstance(value, kinds) or isinstance(value, bool) or not 0 <= value < np.inf:
        kind = 'whole number' if is_whole else 'finite number'
        raise SimulationError(f'{name} is {value!r}, expected a {kind}, zero or more.')
