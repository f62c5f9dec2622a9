"""Parameters of a robot from recordings of it, motions that show them, and how well they fit.

`identify` estimates parameters with their standard deviations and makes a model of them.
"""

from hodyn_ros.identification.equations import GROUPS
from hodyn_ros.identification.identify import (
    Identification,
    IdentifiedParameter,
    Payload,
    Residual,
    identify,
)
from hodyn_ros.identification.recording import with_motors

__all__ = [
    'GROUPS', 'Identification', 'IdentifiedParameter', 'Payload', 'Residual', 'identify',
    'with_motors',
]  # fmt: skip
