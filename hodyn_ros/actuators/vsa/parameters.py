"""Published constants of variable stiffness actuators, with their sources and warnings.

Few of them are identified on hardware: `status` says which are from a data sheet, which are
examples and which only fill a simulator's fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple

from hodyn_ros.actuators.vsa.antagonistic import DlrBavs, Qbmove
from hodyn_ros.actuators.vsa.lever import AwasII
from hodyn_ros.actuators.vsa.model import VsaModel
from hodyn_ros.checks import check_choice
from hodyn_ros.errors import ActuatorError


class ParameterSet(NamedTuple):
    """Published constants."""

    model: VsaModel
    motor_inertia: float | None
    """Of each motor, where the source has it [kg m^2]."""
    status: str
    """'data sheet', 'example' or 'placeholder'."""
    source: str
    warning: str = ''
    """What not to rely on."""


_NMMI = 'NMMI/ROS-Gazebo-compliant-actuators-plugin, viactors_plugins/src/'

MODELS: Mapping[str, type[VsaModel]] = {
    'qbmove': Qbmove,
    'dlr_bavs': DlrBavs,
    'awas_ii': AwasII,
}
"""Models by the names that configurations use."""

PARAMETER_SETS: Mapping[str, Mapping[str, ParameterSet]] = {
    'qbmove': {
        'nmmi_maker_pro': ParameterSet(
            Qbmove(a=8.9992, k=0.0019, max_deflection=0.8),
            0.0233,
            'example',
            f'{_NMMI}qbmove_plugin.cpp',
            'defaults of a simulator; the inertia is the same for all its actuators',
        ),
        'advanced_datasheet': ParameterSet(
            Qbmove(a=6.7328, k=0.0222, max_deflection=0.8),
            None,
            'data sheet',
            'Richi90/ROS-Gazebo-plugin-qbmove, advanced_plugin/src/advanced_plugin.cpp',
            "called 'datasheet' there; not compared with a data sheet here",
        ),
        'gazebo_2015': ParameterSet(
            Qbmove(a=6.85, k=0.022),
            0.001,
            'example',
            'nickparnenzini/qbmove_plugin, qbmove_project.pdf, table I',
            'constants of a simulation; no largest deflection is given',
        ),
    },
    'dlr_bavs': {
        'nmmi': ParameterSet(
            DlrBavs(a=1.21e-6, b=2.38e-6, k=1.6e5, ke=8.71, max_deflection=0.27),
            None,
            'example',
            f'{_NMMI}bavs_plugin.cpp',
            'defaults of a simulator, after Petit et al.; the file gives no units',
        ),
    },
    'awas_ii': {
        'nmmi': ParameterSet(
            AwasII(Ks=10.0, L=0.05, r_t=0.015, max_deflection=0.3),
            None,
            'placeholder',
            f'{_NMMI}awas_ii_plugin.cpp',
            "the file's comments on units are wrong, and it sets the pivot directly as a preset, "
            'without a motor; do not take these for an actuator',
        ),
    },
}
"""Published constants by model and name."""


def vsa_model(model: str, parameter_set: str | None = None, **parameters: Any) -> VsaModel:
    """Model by name, with published constants, with one's own, or with both.

    Parameters
    ----------
    model : str
        'qbmove', 'dlr_bavs' or 'awas_ii'.
    parameter_set : str, optional
        Name in `PARAMETER_SETS[model]`.
    **parameters
        Parameters of the model; they replace those of the set.

    Returns
    -------
    VsaModel

    Raises
    ------
    ActuatorError
        If a name is unknown, a parameter is missing or a value is not usable.
    """
    check_choice('The model', model, MODELS, ActuatorError)
    kind, sets = MODELS[model], PARAMETER_SETS[model]
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        raise ActuatorError(f'{model} has no parameters {unknown}, it has {names}.')
    if parameter_set is not None:
        check_choice(f'The parameter set of {model}', parameter_set, sets, ActuatorError)
        return replace(sets[parameter_set].model, **parameters)  # type: ignore[type-var]
    required = [field.name for field in fields(kind) if field.default is MISSING]  # type: ignore[arg-type]
    missing = [name for name in required if name not in parameters]
    if missing:
        raise ActuatorError(
            f'{model}: parameters are missing; {missing} are not given. Give them or a '
            f'parameter_set, one of {sorted(sets)}.'
        )
    return kind(**parameters)
