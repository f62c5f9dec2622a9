"""Rotations and rigid-body motions, and Leibniz's rule for derivatives of their products.

`so3` has rotations, `se3` poses, twists, wrenches, screws and inertias, `leibniz` series of time
derivatives; all of them work on NumPy arrays with any leading axes.
"""

from hodyn_ros.lie import leibniz, se3, so3

__all__ = ['leibniz', 'se3', 'so3']
