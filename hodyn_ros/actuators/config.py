"""Actuators from flat tables of keys, as parameters of a node or entries of a file hold them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from hodyn_ros.actuators.actuator import Actuator
from hodyn_ros.actuators.assignment import Actuators, check_joint_names
from hodyn_ros.actuators.inputs import in_units_of
from hodyn_ros.actuators.limits import MotorLimits, motor_limits
from hodyn_ros.actuators.rigid import RigidDrive
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import CubicSpring, LinearSpring, PolynomialSpring, Spring
from hodyn_ros.actuators.table_spring import TableSpring
from hodyn_ros.actuators.vsa import VariableStiffness
from hodyn_ros.actuators.vsa_parameters import MODELS, PARAMETER_SETS, vsa_model
from hodyn_ros.errors import ActuatorError
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Viscous
from hodyn_ros.model.robot import RobotModel

TYPES = ('rigid', 'sea', 'vsa')
SPRINGS = {
    'linear': ('stiffness',),
    'cubic': ('stiffness', 'cubic_stiffness'),
    'polynomial': ('coefficients',),
    'table': ('table_deflections', 'table_torques'),
}
"""Kinds of springs and the keys that each needs."""

_VSA_KEYS = {
    'qbmove': ('a', 'k', 'max_deflection'),
    'dlr_bavs': ('a', 'b', 'k', 'ke', 'max_deflection'),
    'awas_ii': ('Ks', 'L', 'r_t', 'max_deflection', 'max_travel', 'pitch'),
}


class Key(NamedTuple):
    """One entry of the table of a joint."""

    name: str
    kind: str
    """'string', 'float' or 'float array'; of an array, one value may be given as a number."""
    unit: str
    """For revolute joints; empty where there is none."""
    types: tuple[str, ...]
    """Types of actuators that it belongs to."""
    description: str
    bound: str = 'positive'
    """What numbers may be: 'positive', 'not negative' or 'any'."""
    choices: tuple[str, ...] = ()
    """What a string may be."""


KEYS = (
    Key('type', 'string', '', TYPES, 'Type of the actuator.', choices=TYPES),
    Key(
        'motor_inertia', 'float array', 'kg m^2', TYPES,
        'Inertia of the motor as the joint sees it, gear ratio squared times rotor inertia; for a '
        'joint of variable stiffness one or two values.',
    ),
    Key(
        'spring', 'string', '', ('sea',),
        'Law of the spring; linear unless given.', choices=tuple(SPRINGS),
    ),
    Key(
        'stiffness', 'float', 'N m/rad', ('sea', 'vsa'),
        'Stiffness of a linear or cubic spring; for a joint of variable stiffness the one that it '
        'has unless it is asked for another.',
    ),
    Key(
        'cubic_stiffness', 'float', 'N m/rad^3', ('sea',),
        'Factor of the third power of the deflection, of a cubic spring.', 'any',
    ),
    Key(
        'coefficients', 'float array', 'N m/rad^j', ('sea',),
        'Factors of the first, second, ... power of the deflection, of a polynomial spring.',
        'any',
    ),
    Key(
        'table_deflections', 'float array', 'rad', ('sea',),
        'Increasing deflections of a spring that is given by a table.', 'any',
    ),
    Key('table_torques', 'float array', 'N m', ('sea',), 'Increasing torques at these.', 'any'),
    Key(
        'max_deflection', 'float array', 'rad', ('sea', 'vsa'),
        'Largest deflection of the spring in both directions; unlimited unless given. A motion '
        'that needs more is refused. Not for tables, which end with their deflections.',
    ),
    Key(
        'damping', 'float', 'N m s/rad', ('sea',),
        'Of a damper beside the spring; none unless given.', 'not negative',
    ),
    Key(
        'viscous_friction', 'float', 'N m s/rad', TYPES,
        'Friction of the motor, proportional to its velocity behind the gear.', 'not negative',
    ),
    Key(
        'coulomb_friction', 'float', 'N m', TYPES,
        'Friction of the motor against its velocity.', 'not negative',
    ),
    Key(
        'friction_smoothing', 'float', 'rad/s', TYPES,
        'Velocity at which 76 % of the Coulomb friction is reached; zero, the default, is the '
        'sign function.', 'not negative',
    ),
    Key(
        'model', 'string', '', ('vsa',),
        'Model of the actuator of variable stiffness.', choices=tuple(MODELS),
    ),
    Key(
        'parameter_set', 'string', '', ('vsa',),
        'Published constants of the model; those given beside it replace them.',
    ),
    Key('a', 'float array', '1/rad; - for dlr_bavs', ('vsa',), 'Constant of qbmove and dlr_bavs.'),
    Key('b', 'float', '', ('vsa',), 'Constant of dlr_bavs.'),
    Key('k', 'float array', 'N m', ('vsa',), 'Constant of qbmove and dlr_bavs.'),
    Key('ke', 'float', '1/rad', ('vsa',), 'Constant of dlr_bavs.'),
    Key('Ks', 'float', 'N m', ('vsa',), 'Constant of awas_ii; see its documentation.'),
    Key('L', 'float', 'm', ('vsa',), 'Length of the lever of awas_ii.'),
    Key('r_t', 'float', 'm', ('vsa',), 'Radius of awas_ii.'),
    Key('max_travel', 'float', 'm', ('vsa',), 'Largest travel of the pivot of awas_ii.'),
    Key('pitch', 'float', 'm/rad', ('vsa',), 'Travel of the pivot of awas_ii for each radian.'),
    Key(
        'max_motor_velocity', 'float array', 'rad/s', TYPES,
        'Limit of the motor; a motion that exceeds it is reported.',
    ),
    Key('max_motor_torque', 'float array', 'N m', TYPES, 'Limit of the motor, reported.'),
    Key('max_motor_torque_rate', 'float array', 'N m/s', TYPES, 'Limit of the motor, reported.'),
    Key(
        'deflection_limit', 'float', 'rad', ('sea', 'vsa'),
        'Deflection above which a motion is reported, but not refused.',
    ),
)  # fmt: skip
"""All keys."""

_BY_NAME = {key.name: key for key in KEYS}

_LIMITS = {
    'max_motor_velocity': 'motor_velocity',
    'max_motor_torque': 'motor_torque',
    'max_motor_torque_rate': 'motor_torque_rate',
    'deflection_limit': 'deflection',
}

_BOUNDS = {
    'positive': 'above zero',
    'not negative': 'that are not negative',
    'any': '',
}

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
    """
    tables = _checked_tables(model, config)
    actuators = {}
    for joint, table in tables.items():
        with _units_of(model, joint):
            actuators[joint] = _actuator(joint, table)
    return Actuators(model, actuators)


def motor_limits_from_config(actuators: Actuators, config: Config) -> MotorLimits:
    """Limits of motors and springs from the same tables.

    Parameters
    ----------
    actuators : Actuators
    config : mapping of joint name to mapping of key to value
        See `actuators_from_config`.

    Returns
    -------
    MotorLimits

    Raises
    ------
    JointNameError, ActuatorError
        See `actuators_from_config`.
    """
    tables = _checked_tables(actuators.model, config)
    limits = {}
    for joint, table in tables.items():
        count = len(actuators[joint].motor_suffixes)
        for name in _LIMITS:
            size = np.size(table.get(name, 0.0))  # type: ignore[arg-type]
            if size not in (1, count):
                raise ActuatorError(
                    f'{_name(joint, name)} has {size} values, expected one'
                    f'{" or two" if count > 1 else ""}: the joint has '
                    f'{"one motor" if count == 1 else f"{count} motors"}.'
                )
        limits[joint] = {
            quantity: table[name] for name, quantity in _LIMITS.items() if name in table
        }
    return motor_limits(actuators, limits)  # type: ignore[arg-type]


def _checked_tables(model: RobotModel, config: Config) -> dict[str, dict[str, object]]:
    """Do what `check_config` does for the joints of a model."""
    if not isinstance(config, Mapping):
        return check_config(config)
    check_joint_names(model, config)
    tables = {}
    for joint, table in config.items():
        with _units_of(model, joint):
            tables.update(check_config({joint: table}))
    return tables


@contextmanager
def _units_of(model: RobotModel, joint: str) -> Iterator[None]:
    """Give messages the units of the joint: keys are described for revolute ones."""
    try:
        yield
    except ActuatorError as error:
        text = in_units_of(model, model.joint_names.index(joint), str(error))
        raise ActuatorError(text) from None


def _name(joint: str, key: str) -> str:
    return f'actuators.{joint}.{key}'


def check_config(config: Config) -> dict[str, dict[str, object]]:
    """Check what can be checked without the robot: keys, and the values of each of them.

    Parameters
    ----------
    config : mapping of joint name to mapping of key to value
        See `actuators_from_config`.

    Returns
    -------
    dict of str to dict
        The same with arrays as tuples, without what counts as not given.

    Raises
    ------
    ActuatorError
        See `actuators_from_config`.
    """
    if not isinstance(config, Mapping):
        raise ActuatorError(f'actuators is {config!r}, expected a table for each joint.')
    tables = {}
    for joint, given in config.items():
        if not isinstance(given, Mapping):
            raise ActuatorError(f'actuators.{joint} is {given!r}, expected a table of keys.')
        table = {}
        for name, value in given.items():
            if name not in _BY_NAME:
                close = difflib.get_close_matches(str(name), _BY_NAME, 1)
                hint = f' Is {close[0]} meant?' if close else ''
                raise ActuatorError(
                    f'{_name(joint, name)} is unknown.{hint} The keys are {", ".join(_BY_NAME)}.'
                )
            if not (value is None or (np.ndim(value) < 2 and np.size(value) == 0) or value == ''):  # type: ignore[arg-type]
                table[name] = _value(joint, _BY_NAME[name], value)
        _check_type(joint, table)
        tables[joint] = table
    return tables


def _value(joint: str, key: Key, value: object) -> object:
    if key.kind == 'string':
        if not isinstance(value, str) or (key.choices and value not in key.choices):
            choices = f', one of {", ".join(key.choices)}' if key.choices else ''
            raise ActuatorError(
                f'{_name(joint, key.name)} is {value!r}, expected a string{choices}.'
            )
        return value
    is_number = not isinstance(value, (bool, str, bytes))
    try:
        numbers = np.array(value if is_number else np.nan, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    smallest = numbers.min() if np.all(np.isfinite(numbers)) else np.nan
    is_fine = {
        'positive': smallest > 0.0,
        'not negative': smallest >= 0.0,
        'any': np.isfinite(smallest),
    }[key.bound]
    if not is_fine or numbers.ndim > (key.kind == 'float array'):
        what = 'a finite number' if key.kind == 'float' else 'finite numbers'
        bound = _BOUNDS[key.bound]
        if key.kind == 'float':
            bound = bound.replace('are', 'is')
        unit = f' [{key.unit}]' if key.unit else ''
        raise ActuatorError(
            f'{_name(joint, key.name)} is {value!r}, expected {f"{what} {bound}".strip()}{unit}.'
        )
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())


def _check_type(joint: str, table: Mapping[str, object]) -> None:
    """Refuse keys that do not belong to the type of the actuator."""
    kind = table.get('type')
    if kind is None:
        raise ActuatorError(f'{_name(joint, "type")} is missing, expected {" or ".join(TYPES)}.')
    for name in table:
        if kind not in _BY_NAME[name].types:
            fitting = ', '.join(key.name for key in KEYS if kind in key.types)
            raise ActuatorError(
                f'{_name(joint, name)} is given, but the type is {kind}; it belongs to '
                f'{" and ".join(_BY_NAME[name].types)}. Keys of {kind}: {fitting}.'
            )


def _actuator(joint: str, table: Mapping[str, object]) -> Actuator:
    make = {'rigid': _rigid, 'sea': _series_elastic, 'vsa': _variable_stiffness}
    try:
        return make[str(table['type'])](joint, table)
    except ActuatorError as error:
        if str(error).startswith(_name(joint, '')):
            raise
        raise ActuatorError(f'actuators.{joint}: {error}') from None


def _rigid(joint: str, table: Mapping[str, object]) -> Actuator:
    return RigidDrive(_single(joint, table, 'motor_inertia', 0.0), _friction(joint, table))


def _series_elastic(joint: str, table: Mapping[str, object]) -> Actuator:
    if 'motor_inertia' not in table:
        raise _missing(joint, 'motor_inertia', 'a series elastic joint')
    return SeriesElastic(
        _spring(joint, table),
        _single(joint, table, 'motor_inertia', 0.0),
        _single(joint, table, 'damping', 0.0),
        _friction(joint, table),
    )


def _spring(joint: str, table: Mapping[str, object]) -> Spring:
    kind = str(table.get('spring', 'linear'))
    owner = f'a {kind} spring'
    for name in dict.fromkeys(name for names in SPRINGS.values() for name in names):
        if name in SPRINGS[kind] and name not in table:
            raise _missing(joint, name, owner)
        if name in table and name not in SPRINGS[kind]:
            raise ActuatorError(
                f'{_name(joint, name)} is given, but {_name(joint, "spring")} is {kind}, which '
                f'has {" and ".join(SPRINGS[kind])}.'
            )
    if kind == 'table':
        if 'max_deflection' in table:
            raise ActuatorError(
                f'{_name(joint, "max_deflection")} is given, but the spring is a table, which '
                'ends with its own deflections.'
            )
        return TableSpring(_array(table['table_deflections']), _array(table['table_torques']))
    largest = _single(joint, table, 'max_deflection', np.inf)
    if kind == 'polynomial':
        return PolynomialSpring(_array(table['coefficients']), largest)
    stiffness = _single(joint, table, 'stiffness', 0.0)
    if kind == 'cubic':
        return CubicSpring(stiffness, _single(joint, table, 'cubic_stiffness', 0.0), largest)
    return LinearSpring(stiffness, largest)


def _variable_stiffness(joint: str, table: Mapping[str, object]) -> Actuator:
    if 'model' not in table:
        raise _missing(joint, 'model', f'a joint of variable stiffness ({", ".join(MODELS)})')
    model, chosen = str(table['model']), table.get('parameter_set')
    all_names = {name for names in _VSA_KEYS.values() for name in names}
    foreign = [name for name in table if name in all_names and name not in _VSA_KEYS[model]]
    if foreign:
        raise ActuatorError(
            f'{_name(joint, foreign[0])} is given, but {_name(joint, "model")} is {model}, which '
            f'has {", ".join(_VSA_KEYS[model])}.'
        )
    parameters = {name: _plain(table[name]) for name in _VSA_KEYS[model] if name in table}
    springs = vsa_model(model, None if chosen is None else str(chosen), **parameters)
    inertia = _plain(table.get('motor_inertia'))
    if inertia is None and chosen is not None:
        inertia = PARAMETER_SETS[model][str(chosen)].motor_inertia
    if inertia is None:
        raise _missing(joint, 'motor_inertia', 'a joint of variable stiffness')
    return VariableStiffness(springs, inertia, _friction(joint, table))  # type: ignore[arg-type]


def _friction(joint: str, table: Mapping[str, object]) -> FrictionLaw | None:
    viscous = _single(joint, table, 'viscous_friction', 0.0)
    coulomb = _single(joint, table, 'coulomb_friction', 0.0)
    smoothing = _single(joint, table, 'friction_smoothing', 0.0)
    if smoothing and 'coulomb_friction' not in table:
        raise ActuatorError(
            f'{_name(joint, "friction_smoothing")} is {smoothing:.6g}, but there is no friction '
            f'that it smooths; expected {_name(joint, "coulomb_friction")} too.'
        )
    laws: list[FrictionLaw] = []
    if viscous:
        laws.append(Viscous(viscous))
    if coulomb:
        laws.append(Coulomb(coulomb, smoothing))
    if len(laws) == 2:
        return laws[0] + laws[1]
    return laws[0] if laws else None


def _single(joint: str, table: Mapping[str, object], name: str, default: float) -> float:
    """Value of a key that may be an array in general, but not here."""
    values = _array(table.get(name, default))
    if len(values) != 1:
        raise ActuatorError(f'{_name(joint, name)} has {len(values)} values, expected one.')
    return values[0]


def _array(value: object) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (float(value),)  # type: ignore[arg-type]


def _plain(value: object) -> object:
    """Arrays of one value, which parameters of a node may hold, as a number."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _missing(joint: str, name: str, owner: str) -> ActuatorError:
    return ActuatorError(
        f'{_name(joint, name)} is missing; {owner} needs it: {_BY_NAME[name].description}'
    )
