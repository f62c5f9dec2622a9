"""Rotations and rigid-body motions, and jets: quantities with their time derivatives.

`so3` has rotations, `se3` poses, twists, wrenches, screws and inertias, on NumPy arrays with any
leading axes. `Jet` carries a number, an array or a recorded scalar with its time derivatives
through formulas for one moment; `jets` has what else they take.
"""

from hodyn_ros.lie import jets, se3, so3
from hodyn_ros.lie.jets import Jet

__all__ = ['Jet', 'jets', 'se3', 'so3']
