"""Variable stiffness actuators.

`model` has what all share: `VsaModel`, from which a mechanism derives, and `VariableStiffness`,
the actuator with two motors that is made of one. To be had by name in parameters, a mechanism is
added to `MODELS` and `PARAMETER_SETS` of `mechanisms`, and its constants to `KEYS` of `config`.
"""

from hodyn_ros.actuators.vsa.mechanisms import (
    AwasII,
    DlrBavs,
    HyperbolicPair,
    Qbmove,
    vsa_model,
)
from hodyn_ros.actuators.vsa.model import Elastic, VariableStiffness, VsaModel

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
