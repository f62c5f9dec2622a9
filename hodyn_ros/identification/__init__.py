"""Parameters of a robot from recordings of it, motions that show them, and how well they fit.

`excite` plans motions that show parameters, `identify` estimates these with their standard
deviations and makes a model of them, and `described` and `write_parameters` write what robots and
nodes take.
"""

from hodyn_ros.dynamics.online_estimation import OnlineEstimator, ParameterEstimate
from hodyn_ros.identification.compare import BANDS, Comparison, compare
from hodyn_ros.identification.doubt import Doubt, Explanation
from hodyn_ros.identification.estimation import IdentifiedParameter
from hodyn_ros.identification.excitation import Excitation, excite, simulated_recording
from hodyn_ros.identification.identify import identify
from hodyn_ros.identification.outputs import (
    actuator_config,
    described,
    fixed_parameters,
    friction_config,
    limit_config,
    main_link,
    write_parameters,
)
from hodyn_ros.identification.recording import RecordingFile, with_motors
from hodyn_ros.identification.results import Identification, Residual
from hodyn_ros.model.inertia import Payload
from hodyn_ros.names import GROUPS

__all__ = [
    'BANDS',
    'GROUPS',
    'Comparison',
    'Doubt',
    'Excitation',
    'Explanation',
    'Identification',
    'IdentifiedParameter',
    'OnlineEstimator',
    'ParameterEstimate',
    'Payload',
    'RecordingFile',
    'Residual',
    'actuator_config',
    'compare',
    'described',
    'excite',
    'fixed_parameters',
    'friction_config',
    'identify',
    'limit_config',
    'main_link',
    'simulated_recording',
    'with_motors',
    'write_parameters',
]
