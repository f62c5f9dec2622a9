"""Parameters of a robot from recordings of it, motions that show them, and how well they fit."""

from hodyn_ros.identification.excitation import Excitation, excite

__all__ = ['Excitation', 'excite']
