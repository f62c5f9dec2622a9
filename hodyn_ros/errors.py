"""Errors that hodyn_ros raises. Every one of them is a `HodynError` and a `ValueError`.

A message says what was given, what was expected and, where names are concerned, which names exist.
"""

from __future__ import annotations


class HodynError(ValueError):
    """Root of all errors of this package."""


class ModelError(HodynError):
    """A robot description or model parameter that cannot be used."""


class MotionError(HodynError):
    """A motion of the wrong shape, or one that contains NaN or infinite values."""


class JointNameError(HodynError):
    """Joint names that are unknown, missing or repeated."""


class WrenchError(HodynError):
    """A wrench on an unknown link, of the wrong shape or with unusable values."""


class TrajectoryError(HodynError):
    """Waypoints or times from which no trajectory can be made."""


class RequestError(HodynError):
    """A request that contradicts itself or leaves out what it needs."""


class ResourceError(HodynError):
    """A data file of this package that does not exist."""
