"""Errors that hodyn_ros raises. Every one of them is a `HodynError` and a `ValueError`.

A message says what was given, what was expected and, where names are concerned, which names exist.
"""

from __future__ import annotations


class HodynError(ValueError):
    """Root of all errors of this package; some carry facts as attributes.

    Parameters
    ----------
    message : str
        What was given, what was expected, and what to do.
    **facts : object
        Become attributes of the error, for programs that act on them.

    Examples
    --------
    All errors of this package are caught by this one; the message says what to do:

    >>> from hodyn_ros import HodynError, RobotModel
    >>> try:
    ...     RobotModel.from_urdf('panda').link('gripper')
    ... except HodynError as error:
    ...     print(type(error).__name__, error, sep=': ')
    ModelError: The model has no link 'gripper'; its links are panda_link0, ..., panda_link8.
    """

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.__dict__.update(facts)


class ModelError(HodynError):
    """A robot description or model parameter that cannot be used, or an unknown link."""


class AmbiguousNameError(ModelError):
    """A name that several robot descriptions have."""

    names: tuple[str, ...] = ()
    """Names that only one of them has."""


class MotionError(HodynError):
    """A motion of the wrong shape, or one that contains NaN or infinite values."""


class JointNameError(HodynError):
    """Joint names that are unknown, missing or repeated."""


class WrenchError(HodynError):
    """A wrench on an unknown link, of the wrong shape or with unusable values."""


class TrajectoryError(HodynError):
    """Waypoints or times from which no trajectory can be made."""


class MessageError(HodynError):
    """A message that cannot be unpacked."""


class FileError(HodynError):
    """A file that cannot be read or written, or that does not hold what is needed."""


class BatchError(HodynError):
    """A data set, options or an output folder that cannot be used, or workers that were lost."""


class SizeError(HodynError):
    """A message that is larger than it may be."""


class StaleError(MotionError):
    """A motion that belongs to another time."""


class ControlError(HodynError):
    """A controller that cannot be made, or a robot that it cannot control."""


class RequestError(HodynError):
    """A request that contradicts itself or leaves out what it needs."""


class ResourceError(HodynError):
    """A data file of this package that does not exist."""


class ActuatorError(HodynError):
    """Parameters of an actuator that cannot be used, or a motion that does not suit it."""


class DeflectionError(ActuatorError):
    """A joint torque or stiffness that the springs of a joint cannot have."""

    joint: str = ''
    """Name of the joint; empty where a spring or actuator was used without a robot."""
    sample: tuple[int, ...] = ()
    """Index of the sample in the leading axes of what was given."""


class InverseKinematicsError(HodynError):
    """A link motion that the joints cannot follow, or for which no solution was found."""

    sample: tuple[int, ...] = ()
    """Index of the sample in the leading axes of the link motion."""
    residual: float = float('nan')
    """Length of the remaining error, dimensionless; NaN if it does not apply."""


class SingularityError(HodynError):
    """A configuration in which a link motion does not determine the joint motion."""

    sample: tuple[int, ...] = ()
    """Index of the sample in the leading axes of the link motion."""
    singular_value: float = float('nan')
    """Smallest singular value of the dimensionless Jacobian."""
    threshold: float = float('nan')
    """Smallest one that is accepted."""


class ScalingError(HodynError):
    """A motion or path that keeps its limits at no speed, or whose speed nothing limits."""

    limiting: tuple[str, str, int, float, float, float | None] | None = None
    """What exceeds its limit at any speed, a `hodyn_ros.retiming.Limiting`, if that is known."""


class UnlimitedError(RequestError, ScalingError):
    """A motion or path whose speed nothing limits, so that none is the fastest."""


class SimulationError(HodynError):
    """A robot or setting that cannot be simulated, or a simulation that has broken down."""


class IdentificationError(HodynError):
    """Recordings from which nothing can be identified, or parameters that no robot has."""
