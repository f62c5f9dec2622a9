"""Joint screws: (e, x cross e) turns about the unit axis e through x, (0, e) moves along e.

A helical joint does both: (e, x cross e + h e) with the pitch h. Source: Mueller 2021, section 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A change of frames leaves rounding in the product of axis and moment of a zero-pitch screw.
PITCH_TOLERANCE = 1e-12


def pitches(X: Array) -> Array:
    """Pitches h of joint screws (e, x cross e + h e): the advance along the axis in one radian.

    Parameters
    ----------
    X : ndarray, shape (n_bodies, 6)
        Joint screws, their axes of unit length.

    Returns
    -------
    ndarray, shape (n_bodies,)
        [m/rad]; zero for revolute joints, also where a change of frames has left a pitch of the
        size of rounding, and for prismatic joints, which have none.
    """
    pitch: Array = (X[:, :3] * X[:, 3:]).sum(axis=1)
    pitch[np.abs(pitch) < PITCH_TOLERANCE * (1.0 + np.linalg.norm(X[:, 3:], axis=1))] = 0.0
    return pitch
