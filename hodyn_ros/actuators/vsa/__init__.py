"""Variable stiffness actuators: one file a family of mechanisms.

`model` has what all share: `VsaModel`, from which a mechanism derives, and `VariableStiffness`,
the actuator with two motors that is made of one. To be had by name in parameters, a mechanism is
added to `MODELS` and `PARAMETER_SETS` of `parameters`, and its constants to `KEYS` of `config`.
"""

from hodyn_ros.actuators.vsa.antagonistic import DlrBavs, HyperbolicPair, Qbmove
from hodyn_ros.actuators.vsa.lever import AwasII
from hodyn_ros.actuators.vsa.model import Elastic, VariableStiffness, VsaModel
from hodyn_ros.actuators.vsa.parameters import vsa_model

__all__ = [
    'AwasII',
    'DlrBavs',
    'Elastic',
    'HyperbolicPair',
    'Qbmove',
    'VariableStiffness',
    'VsaModel',
    'vsa_model',
]
