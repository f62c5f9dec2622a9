"""Actuators from flat tables of keys, as parameters of a node or entries of a file hold them.

A new law of springs is a line of `SPRINGS`, and a line of `KEYS` for each of its constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators, check_joint_names
from hodyn_ros.actuators.drives import (
    Actuator,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
    of_joint,
)
from hodyn_ros.actuators.limits import MotorLimits, motor_limits
from hodyn_ros.actuators.mechanisms import MODELS, PARAMETER_SETS, vsa_model
from hodyn_ros.actuators.springs import (
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    Spring,
    TableSpring,
)
from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.errors import ActuatorError, ModelError
from hodyn_ros.model.friction import FrictionLaw, law_from_table
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import did_you_mean

TYPES = ('rigid', 'sea', 'vsa')
SPRINGS: Mapping[str, tuple[type[Spring], tuple[str, ...]]] = {
    'linear': (LinearSpring, ('stiffness', 'max_deflection')),
    'cubic': (CubicSpring, ('stiffness', 'cubic_stiffness', 'max_deflection')),
    'polynomial': (PolynomialSpring, ('coefficients', 'max_deflection')),
    'table': (TableSpring, ('table_deflections', 'table_torques')),
}
"""Kinds of springs: their classes, and the keys of what these are made of, in their order."""

_VSA = {name: (kind, tuple(f.name for f in fields(kind))) for name, kind in MODELS.items()}  # type: ignore[arg-type]


class Key(NamedTuple):
    """One entry of the table of a joint.

    Attributes
    ----------
    name : str
    kind : {'string', 'float', 'float array'}
        Of an array, one value may be given as a number.
    unit : str
        For revolute joints; empty where there is none.
    types : tuple of str
        Types of actuators that it belongs to.
    description : str
    bound : {'positive', 'not negative', 'any'}
        What numbers may be.
    choices : tuple of str
        What a string may be; empty: anything.
    """

    name: str
    kind: str
    unit: str
    types: tuple[str, ...]
    description: str
    bound: str = 'positive'
    choices: tuple[str, ...] = ()


KEYS = (
    Key('type', 'string', '', TYPES, 'Type of the actuator.', choices=TYPES),
    Key(
        'motor_inertia',
        'float array',
        'kg m^2',
        TYPES,
        'Inertia of the motor as the joint sees it, gear ratio squared times rotor inertia; for a '
        'joint of variable stiffness one or two values.',
    ),
    Key(
        'spring',
        'string',
        '',
        ('sea',),
        'Law of the spring; linear unless given.',
        choices=tuple(SPRINGS),
    ),
    Key(
        'stiffness',
        'float',
        'N m/rad',
        ('sea', 'vsa'),
        'Stiffness of a linear or cubic spring; for a joint of variable stiffness the one that it '
        'has unless it is asked for another.',
    ),
    Key(
        'cubic_stiffness',
        'float',
        'N m/rad^3',
        ('sea',),
        'Factor of the third power of the deflection, of a cubic spring.',
        'any',
    ),
    Key(
        'coefficients',
        'float array',
        'N m/rad^j',
        ('sea',),
        'Factors of the first, second, ... power of the deflection, of a polynomial spring.',
        'any',
    ),
    Key(
        'table_deflections',
        'float array',
        'rad',
        ('sea',),
        'Increasing deflections of a spring that is given by a table.',
        'any',
    ),
    Key(
        'table_torques',
        'float array',
        'N m',
        ('sea',),
        'Increasing torques at table_deflections.',
        'any',
    ),
    Key(
        'max_deflection',
        'float array',
        'rad',
        ('sea', 'vsa'),
        'Largest deflection of the spring in both directions; default: unlimited. A motion that '
        'needs more is rejected. Not for tables, which end with their deflections.',
    ),
    Key(
        'damping',
        'float',
        'N m s/rad',
        ('sea',),
        'Damper in parallel with a linear spring; default: none.',
        'not negative',
    ),
    Key(
        'viscous_friction',
        'float',
        'N m s/rad',
        TYPES,
        'Viscous friction of the motor, behind the gear.',
        'not negative',
    ),
    Key(
        'coulomb_friction',
        'float',
        'N m',
        TYPES,
        'Coulomb friction of the motor.',
        'not negative',
    ),
    Key(
        'stribeck_friction',
        'float',
        'N m',
        TYPES,
        'Additional friction of the motor at low velocities.',
        'not negative',
    ),
    Key(
        'stribeck_velocity',
        'float',
        'rad/s',
        TYPES,
        'Velocity at which 37 % of that is left.',
    ),
    Key(
        'friction_smoothing',
        'float',
        'rad/s',
        TYPES,
        'Velocity at which 76 % of the Coulomb friction, and of what it is more at low '
        'velocities, is reached; zero, the default, is the sign function.',
        'not negative',
    ),
    Key(
        'friction_offset',
        'float',
        'N m',
        TYPES,
        'Constant friction torque of the motor.',
        'any',
    ),
    Key(
        'model',
        'string',
        '',
        ('vsa',),
        'Model of the actuator of variable stiffness.',
        choices=tuple(MODELS),
    ),
    Key(
        'parameter_set',
        'string',
        '',
        ('vsa',),
        'Published constants of the model; single keys replace them.',
    ),
    Key(
        'a',
        'float array',
        '1/rad; - for dlr_bavs',
        ('vsa',),
        'Constant of qbmove and dlr_bavs.',
    ),
    Key('b', 'float', '', ('vsa',), 'Constant of dlr_bavs.'),
    Key('k', 'float array', 'N m', ('vsa',), 'Constant of qbmove and dlr_bavs.'),
    Key('ke', 'float', '1/rad', ('vsa',), 'Constant of dlr_bavs.'),
    Key('Ks', 'float', 'N m', ('vsa',), 'Constant of awas_ii; see its documentation.'),
    Key('L', 'float', 'm', ('vsa',), 'Length of the lever of awas_ii.'),
    Key('r_t', 'float', 'm', ('vsa',), 'Radius of awas_ii.'),
    Key('max_travel', 'float', 'm', ('vsa',), 'Largest travel of the pivot of awas_ii.'),
    Key(
        'pitch',
        'float',
        'm/rad',
        ('vsa',),
        'Travel of the pivot of awas_ii for each radian.',
    ),
    Key(
        'max_motor_velocity',
        'float array',
        'rad/s',
        TYPES,
        'Limit of the motor; a motion that exceeds it is reported.',
    ),
    Key('max_motor_torque', 'float array', 'N m', TYPES, 'Limit of the motor, reported.'),
    Key(
        'max_motor_torque_rate',
        'float array',
        'N m/s',
        TYPES,
        'Limit of the motor, reported.',
    ),
    Key(
        'deflection_limit',
        'float',
        'rad',
        ('sea', 'vsa'),
        'Deflection above which a motion is reported, but not refused.',
    ),
)
"""All keys."""

_BY_NAME = {key.name: key for key in KEYS}

FRICTION = {
    'viscous': 'viscous_friction',
    'coulomb': 'coulomb_friction',
    'stribeck': 'stribeck_friction',
    'stribeck_velocity': 'stribeck_velocity',
    'smoothing': 'friction_smoothing',
    'offset': 'friction_offset',
}
"""Keys of friction, by those that `friction_from_config` has for it."""

LIMITS = {
    'max_motor_velocity': 'motor_velocity',
    'max_motor_torque': 'motor_torque',
    'max_motor_torque_rate': 'motor_torque_rate',
    'deflection_limit': 'deflection',
}
"""Keys of limits, with the quantities of `MotorLimits` that they limit."""

_BOUNDS: Any = {'positive': {'above': 0.0}, 'not negative': {'least': 0.0}, 'any': {}}

Config = Mapping[str, Mapping[str, object]]


def actuators_from_config(model: RobotModel, config: Config) -> Actuators:
    """Actuators of a robot from a table of each joint.

    Parameters
    ----------
    model : RobotModel
    config : mapping of joint name to mapping of key to value
        See `KEYS`. Values that are None, empty strings or empty lists count as not given. Joints
        that are not named are rigid.

    Returns
    -------
    Actuators

    Raises
    ------
    JointNameError
        If a joint is unknown.
    ActuatorError
        If a key is unknown, missing or does not belong to the actuator, or a value cannot be
        used. The message names joint and key.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import actuators_from_config
    >>> config = {'elbow': {'type': 'sea', 'stiffness': 1000.0, 'motor_inertia': 0.1}}
    >>> drives = actuators_from_config(RobotModel.from_urdf('two_link'), config)
    >>> type(drives.by_joint['elbow']).__name__, drives.by_joint['elbow'].stiffness
    ('SeriesElastic', 1000.0)
    """
    actuators = {}
    for joint, table in check_config(config, model).items():
        with of_joint(model, model.joint_names.index(joint), ''):
            actuators[joint] = _actuator(joint, table)
    return Actuators(model, actuators)


def motor_limits_from_config(actuators: Actuators, config: Config) -> MotorLimits:
    """Limits of motors and springs from the same tables.

    Parameters
    ----------
    actuators : Actuators
    config : mapping of joint name to mapping of key to value
        See `actuators_from_config`, also for errors.

    Returns
    -------
    MotorLimits

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import actuators_from_config, motor_limits_from_config
    >>> config = {'elbow': {'type': 'rigid', 'max_motor_torque': 40.0}}
    >>> drives = actuators_from_config(RobotModel.from_urdf('two_link'), config)
    >>> motor_limits_from_config(drives, config).motor_torque
    array([inf, 40.])
    """
    limits = {
        joint: {quantity: table[name] for name, quantity in LIMITS.items() if name in table}
        for joint, table in check_config(config, actuators.model).items()
    }
    return motor_limits(actuators, limits)


def check_config(
    config: Config, model: RobotModel | None = None
) -> dict[str, dict[str, Any]]:
    """Tables of joints with known keys, and values that each of them may have.

    Parameters
    ----------
    config : mapping of joint name to mapping of key to value
    model : RobotModel, optional
        With it the names of the joints are checked, too, and messages have their units.

    Returns
    -------
    dict of str to dict of str to value
        The same tables with arrays as tuples, without what counts as not given.

    Raises
    ------
    JointNameError, ActuatorError
        As `actuators_from_config`; whether the values make an actuator is not looked at.
    """
    if not isinstance(config, Mapping):
        raise ActuatorError(f'actuators is {config!r}, expected a table for each joint.')
    if model is not None:
        check_joint_names(model, config)
    tables = {}
    for joint, given in config.items():
        # Keys are described for revolute joints.
        units = (
            of_joint(model, model.joint_names.index(joint), '') if model else nullcontext()
        )
        with units:
            tables[joint] = _checked_table(joint, given)
    return tables


def _name(joint: str, key: str) -> str:
    """Name of an entry for messages."""
    return f'actuators.{joint}.{key}'


def _checked_table(joint: str, given: object) -> dict[str, Any]:
    """Table of one joint, checked key by key; what counts as not given is left out."""
    if not isinstance(given, Mapping):
        raise ActuatorError(f'actuators.{joint} is {given!r}, expected a table of keys.')
    table = {}
    for name, value in given.items():
        if name not in _BY_NAME:
            raise ActuatorError(
                f'{_name(joint, name)} is unknown{did_you_mean(name, _BY_NAME)}, expected keys '
                f'among {", ".join(_BY_NAME)}.'
            )
        if not (
            value is None or (np.ndim(value) < 2 and np.size(value) == 0) or value == ''
        ):
            table[name] = _value(joint, _BY_NAME[name], value)
    kind = table.get('type')
    if kind is None:
        raise ActuatorError(
            f'{_name(joint, "type")} is missing, expected {" or ".join(TYPES)}.'
        )
    for name in table:
        if kind not in _BY_NAME[name].types:
            fitting = ', '.join(key.name for key in KEYS if kind in key.types)
            raise ActuatorError(
                f'{_name(joint, name)} is given, but the type is {kind}; it belongs to '
                f'{" and ".join(_BY_NAME[name].types)}. Keys of {kind}: {fitting}.'
            )
    return table


def _value(joint: str, key: Key, value: Any) -> Any:
    """Value of a key as a string, a number or a tuple of numbers."""
    what = _name(joint, key.name)
    if key.kind == 'string':
        if not isinstance(value, str):
            raise ActuatorError(f'{what} is {value!r}, expected a string.')
        if key.choices:
            check_choice(what, value, key.choices, ActuatorError)
        return value
    is_array = key.kind == 'float array' and np.ndim(value) == 1
    numbers = tuple(
        checked_number(what, number, ActuatorError, unit=key.unit, **_BOUNDS[key.bound])
        for number in (value if is_array else (value,))
    )
    return numbers if len(numbers) > 1 else numbers[0]


def _actuator(joint: str, table: Mapping[str, Any]) -> Actuator:
    """Actuator of a checked table; messages name the joint."""
    try:
        friction = _friction(table)
        if table['type'] == 'rigid':
            return RigidDrive(table.get('motor_inertia', 0.0), friction)
        if table['type'] == 'vsa':
            return _variable_stiffness(joint, table, friction)
        kind = table.get('spring', 'linear')
        law, constants = SPRINGS[kind][0], _constants(joint, table, 'spring', kind, SPRINGS)
        for field, name in zip(fields(law), SPRINGS[kind][1]):  # type: ignore[arg-type]
            if field.default is MISSING:
                _refuse_missing(joint, name, f'a {kind} spring', table)
        _refuse_missing(joint, 'motor_inertia', 'a series elastic joint', table)
        damping = table.get('damping', 0.0)
        return SeriesElastic(law(**constants), table['motor_inertia'], damping, friction)
    except ActuatorError as error:
        if str(error).startswith(_name(joint, '')):
            raise
        raise ActuatorError(f'actuators.{joint}: {error}') from None


def _variable_stiffness(
    joint: str, table: Mapping[str, Any], friction: FrictionLaw | None
) -> Actuator:
    """Drive of variable stiffness of a checked table; a parameter set gives what it leaves out."""
    owner = 'a joint of variable stiffness'
    _refuse_missing(joint, 'model', f'{owner} ({", ".join(MODELS)})', table)
    model, chosen = table['model'], table.get('parameter_set')
    springs = vsa_model(model, chosen, **_constants(joint, table, 'model', model, _VSA))
    published = PARAMETER_SETS[model][chosen][1] if chosen is not None else None
    if published is None:
        _refuse_missing(joint, 'motor_inertia', owner, table)
    return VariableStiffness(springs, table.get('motor_inertia', published), friction)


def _constants(
    joint: str,
    table: Mapping[str, Any],
    what: str,
    kind: str,
    kinds: Mapping[str, tuple[type, tuple[str, ...]]],
) -> dict[str, Any]:
    """Fields of one of several kinds that a table gives; keys of the others are refused."""
    made, own = kinds[kind]
    for name in table:
        if name not in own and any(name in names for _, names in kinds.values()):
            raise ActuatorError(
                f'{_name(joint, name)} is given, but {_name(joint, what)} is {kind}, which has '
                f'{", ".join(own)}.'
            )
    return {
        field.name: table[name] for field, name in zip(fields(made), own) if name in table
    }


def _friction(table: Mapping[str, Any]) -> FrictionLaw | None:
    """Friction law of the motor, None if the table gives none."""
    given = {key: table[name] for key, name in FRICTION.items() if name in table}
    try:
        return law_from_table('friction', given, FRICTION)
    except ModelError as error:
        raise ActuatorError(str(error)) from None


def _refuse_missing(joint: str, name: str, owner: str, table: Mapping[str, Any]) -> None:
    """Error for an entry that an actuator needs, if a table has it not."""
    if name not in table:
        raise ActuatorError(
            f'{_name(joint, name)} is missing; {owner} needs it: {_BY_NAME[name].description}'
        )
