"""What identification writes: robot descriptions, and files of limits, friction and actuators.

A body of a model is made of rigidly connected links. What is known of it belongs to its main link,
the one behind its joint; links that are fixed to that keep their inertia.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
import yaml

from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic
from hodyn_ros.actuators.config import FRICTION, LIMITS, SPRINGS
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.errors import FileError, IdentificationError, ModelError
from hodyn_ros.lie.se3 import transform_inertia
from hodyn_ros.model import inertia
from hodyn_ros.model.friction import LAWS, FrictionLaw, Sum
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.sources import xml_text
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.model.urdf_writer import inertial_element
from hodyn_ros.model.violations import EXTRA_QUANTITIES
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

Description = str | bytes | os.PathLike[str]


def described(model: RobotModel, description: Description) -> str:
    """Text of a URDF with the inertial parameters of a model; nothing else in it changes.

    Written are the elements <inertial> of the main links of those bodies whose parameters differ.

    Parameters
    ----------
    model : RobotModel
        Of this description, with the same base and tip link and other inertial parameters.
    description : str, bytes or path-like
        As `RobotModel.from_urdf` takes it; of a xacro file the URDF is written.

    Returns
    -------
    str
        To be written as UTF-8. Read again it has the parameters of the model to rounding.

    Raises
    ------
    ModelError
        If the description cannot be used.
    IdentificationError
        If it is not that of the model, or no body has what is left for a main link.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import described
    >>> from hodyn_ros.resources import share_file
    >>> heavy = RobotModel.from_urdf('two_link').with_payload('tool', 1.0)
    >>> text = described(heavy, share_file('urdf/two_link.urdf'))
    >>> RobotModel.from_urdf(text).inertial_parameters[10].item(), 'Planar arm' in text
    (3.0, True)
    """
    text = _text(description)
    fixed, before = _shares(text, model)
    wanted, inertials = model.inertial_parameters.reshape(-1, 10), {}
    for i in np.flatnonzero(np.any(wanted != before, axis=1)).tolist():
        link = main_link(model, i)
        owner, rest = f'Link {link!r}', inertia.parametric_inertia(wanted[i] - fixed[i])
        try:
            parts = inertia.inertia_parts(owner, rest)
            com, tensor = map(np.asarray, parts[1:])
            remarks = inertia.check_inertia(owner, parts.mass, com, tensor)
        except ModelError as error:
            remarks = [str(error)]
        if remarks:
            others = [name for name, frame in model.links.items() if frame.body == i][1:]
            raise IdentificationError(
                f'The body behind joint {model.body_names[i]!r} cannot be written: {remarks[0]} '
                f'This is what the body has ({wanted[i, 0]:.6g} kg) beyond {listed(others)} '
                f'({fixed[i, 0]:.6g} kg); expected parameters that leave a physical rest, see '
                'fixed_parameters.'
            )
        inertials[link] = inertial_element(parts)
    return _edited(text, inertials)


def main_link(model: RobotModel, body: int) -> str:
    """Name of the link behind the joint of a body, whose frame is that of the body.

    Parameters
    ----------
    model : RobotModel
    body : int

    Returns
    -------
    str

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import main_link
    >>> main_link(RobotModel.from_urdf('two_link'), 1)
    'forearm'
    """
    return next(name for name, frame in model.links.items() if frame.body == body)


def fixed_parameters(model: RobotModel, description: Description) -> Array:
    """Inertial parameters of what is fixed to the main link of each body, shape (n_bodies, 10).

    In the frames of the bodies and in the order of `RobotModel.inertial_parameters`. `described`
    can write a body if the rest without them is physical: its mass positive, its pseudo-inertia
    positive semidefinite. Arguments and errors are those of `described`.

    Parameters
    ----------
    model : RobotModel
        Made of the description.
    description : path-like, str or bytes
        URDF, as a file or as text.

    Returns
    -------
    ndarray, shape (n_bodies, 10)
        [kg], [kg m] and [kg m^2].

    Raises
    ------
    IdentificationError
        If the description has other joints or links than the model.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import fixed_parameters
    >>> from hodyn_ros.resources import share_file
    >>> file = share_file('urdf/panda_with_hand.urdf')
    >>> model = RobotModel.from_urdf(file)
    >>> fixed_parameters(model, file)[:, 0].round(2)
    array([0.  , 0.  , 0.  , 0.  , 0.  , 0.  , 0.73, 0.  , 0.  ])
    """
    return _shares(_text(description), model)[0]


def _shares(text: str, model: RobotModel) -> tuple[Array, Array]:
    """Parameters of what is fixed to main links, and of whole bodies, (n_bodies, 10)."""
    robot = parse_urdf(text)
    # Of another robot the whole tree, so that the message says which it is.
    is_there = any(link.name == model.tip_link for link in robot.links)
    ends = model.base_link, model.tip_link if is_there else None
    own = RobotModel.from_description(robot, *ends, loops=(), allow_impossible_inertia=True)
    if own.body_names != model.body_names or own.links.keys() != model.links.keys():
        raise IdentificationError(
            'The robot description is not that of the model: it has the joints '
            f'{listed(own.body_names)} and the links {listed(own.links)}, expected '
            f'{listed(model.body_names)} and {listed(model.links)}.'
        )
    given = {link.name: link.M_body for link in robot.links}
    M_fixed = np.zeros((model.n_bodies, 6, 6))
    for name, (body, pose) in own.links.items():
        if body != BASE and name != main_link(model, body):
            M_fixed[body] += transform_inertia(given[name], pose)
    return M_fixed[inertia.PARAMETERS], own.inertial_parameters.reshape(-1, 10)


def _text(description: Description) -> str:
    """Text of a description in UTF-8, whatever its encoding, and declared as such."""
    text, _ = xml_text(description, None)
    if isinstance(text, bytes):
        parse_urdf(text)  # refuses what cannot be decoded
        declared = re.match(rb'\W*<\?xml[^>]*?encoding=["\']([\w.-]+)', text)
        wide = text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        text = text.decode(
            declared[1].decode() if declared else 'utf-16' if wide else 'utf-8'
        )
    text = text.lstrip('\ufeff \t\r\n')
    return re.sub(r'^(<\?xml[^>]*?encoding=["\'])[\w.-]+', r'\1UTF-8', text, count=1)


def _edited(text: str, inertials: Mapping[str, ElementTree.Element]) -> str:
    """Text in which links of these names have these elements."""
    data, parser = text.encode(), expat.ParserCreate('utf-8')
    path: list[tuple[str, str, int]] = []  # tags, names and starts of open elements
    places: dict[str, tuple[int, int, str]] = {}  # what is replaced, and by what

    def on_end(_: str) -> None:
        tags, (_, name, start) = [item[0] for item in path], path.pop()
        end = parser.CurrentByteIndex
        if tags == ['robot', 'link', 'inertial']:  # it is not empty, which is no URDF
            places[path[1][1]] = start, data.index(b'>', end) + 1, '{}'
        elif tags == ['robot', 'link'] and data.startswith(b'</link', end):
            places.setdefault(name, (end, end, '  {}\n  '))
        elif tags == ['robot', 'link']:
            places[name] = end - 2, end, '>\n    {}\n  </link>'

    parser.StartElementHandler = lambda tag, attributes: path.append(
        (tag, attributes.get('name', ''), parser.CurrentByteIndex)
    )
    parser.EndElementHandler = on_end
    parser.Parse(data, True)
    if lacking := inertials.keys() - places.keys():
        raise IdentificationError(f'The description has no plain <link> {listed(lacking)}.')
    for link in sorted(inertials, key=places.__getitem__, reverse=True):
        start, end, frame = places[link]
        ElementTree.indent(inertials[link], level=2)
        made = frame.format(ElementTree.tostring(inertials[link], encoding='unicode'))
        data = data[:start] + made.encode() + data[end:]
    return data.decode()


def friction_config(model: RobotModel) -> dict[str, dict[str, float]]:
    """Tables of the friction of a model's joints; the inverse of `friction_from_config`.

    An `IdentificationError` is raised for a law without keys: one of one's own, two of a kind,
    different smoothings.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    dict of str to dict of str to float
        Under 'friction' of a parameter file.

    Raises
    ------
    IdentificationError
        If a law cannot be written with these keys.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, friction
    >>> from hodyn_ros.identification import friction_config
    >>> laws = {'elbow': friction.Viscous(0.8) + friction.Coulomb(1.5)}
    >>> friction_config(RobotModel.from_urdf('two_link').with_friction(laws))
    {'elbow': {'viscous': 0.8, 'coulomb': 1.5, 'smoothing': 0.0}}
    """
    keys = {key: key for names in LAWS.values() for key in names}
    return {joint: _keyed(joint, law, keys) for joint, law in model.friction.items()}


def limit_config(model: RobotModel, limits: MotionLimits) -> dict[str, dict[str, float]]:
    """Tables of the limits that the description of a model does not hold, see `motion_limits`.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Those that are used.

    Returns
    -------
    dict of str to dict of str to float
        Under 'limits' of a parameter file, where the model has other ones.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import limit_config
    >>> from hodyn_ros.model import motion_limits
    >>> model = RobotModel.from_urdf('two_link')
    >>> limit_config(model, motion_limits(model, {'elbow': {'effort_dot': 200.0}}))
    {'elbow': {'effort_dot': 200.0}}
    """
    tables: dict[str, dict[str, float]] = {}
    for quantity in EXTRA_QUANTITIES:
        given, known = getattr(limits, quantity), getattr(model.limits, quantity)
        for joint in np.flatnonzero(given != known).tolist():
            tables.setdefault(model.joint_names[joint], {})[quantity] = float(given[joint])
    return tables


def actuator_config(
    actuators: Actuators, motor_limits: MotorLimits | None = None
) -> dict[str, dict[str, Any]]:
    """Tables of the actuators of a robot's joints and the limits of their motors.

    The inverse of `actuators_from_config` and `motor_limits_from_config`. Rigid drives without
    inertia, friction and limits are left out. An `IdentificationError` is raised for a joint of
    variable stiffness, and for an actuator, a spring or a law of friction without keys.

    Parameters
    ----------
    actuators : Actuators
    motor_limits : MotorLimits, optional
        Finite ones are written.

    Returns
    -------
    dict of str to dict
        Under 'actuators' of a parameter file.

    Raises
    ------
    IdentificationError
        If something has no keys.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.identification import actuator_config
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {'elbow': SeriesElastic(1000.0, 0.1)})
    >>> actuator_config(drives)
    {'elbow': {'type': 'sea', 'spring': 'linear', 'stiffness': 1000.0, 'damping': 0.0,
    'motor_inertia': 0.1}}
    """
    tables = {item.name: _driven(item.name, item.actuator) for item in actuators.driven}
    for item in actuators.driven if motor_limits is not None else ():
        for key, quantity in LIMITS.items():
            place = item.joint if quantity == 'deflection' else item.motors.start
            limit = float(getattr(motor_limits, quantity)[place])
            if np.isfinite(limit):
                tables[item.name][key] = limit
    return {joint: table for joint, table in tables.items() if len(table) > 1}


def config(
    model: RobotModel,
    actuators: Actuators | None,
    limits: MotionLimits,
    motor_limits: MotorLimits | None = None,
) -> dict[str, dict[str, Any]]:
    """Limits, friction and actuators of a robot, which its description has no place for.

    Parameters
    ----------
    model : RobotModel
        Its armature is written as that of rigid drives.
    actuators : Actuators or None
    limits : MotionLimits
        Those that are used.
    motor_limits : MotorLimits, optional

    Returns
    -------
    dict of str to dict
        Tables of joints for `write_parameters`; empty ones are left out.
    """
    drives = dict(actuators.by_joint if actuators else {})
    for name in model.joint_names:
        rotor = float(model.armature[model.body_names.index(name)])
        if rotor > 0.0 and name not in drives:
            drives[name] = RigidDrive(rotor)
    driven = Actuators(model.with_armature(dict.fromkeys(drives, 0.0)), drives)
    tables: dict[str, dict[str, Any]] = {
        'limits': limit_config(model, limits),
        'friction': friction_config(model),
        'actuators': actuator_config(driven, motor_limits),
    }
    return {family: joints for family, joints in tables.items() if joints}


def write_parameters(
    path: str | os.PathLike[str],
    parameters: Mapping[str, Mapping[str, Mapping[str, Any]]],
    comments: Sequence[str] = (),
) -> None:
    """Write a YAML file that `hodyn --config` and nodes take.

    Parameters
    ----------
    path : path-like
    parameters : mapping
        Under `limits`, `friction` and `actuators` the tables of joints; what is empty is left
        out.
    comments : sequence of str
        Lines at the beginning.

    Raises
    ------
    IdentificationError
        If there is nothing to write.
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hodyn_ros.identification import write_parameters
    >>> write_parameters('robot.yaml', {'friction': {'elbow': {'viscous': 0.8}}}, ['Identified.'])
    >>> print(Path('robot.yaml').read_text())
    # Identified.
    /**:
      ros__parameters:
        friction:
          elbow: {viscous: 0.8}
    """
    tables = {name: dict(joints) for name, joints in parameters.items() if joints}
    if not tables:
        raise IdentificationError(f'There are no parameters to be written to {path}.')
    text = ''.join(f'# {line}\n' for line in comments) + yaml.safe_dump(
        {'/**': {'ros__parameters': tables}},
        sort_keys=False,
        default_flow_style=None,
        width=99,
    )
    try:
        Path(path).write_text(text, encoding='utf-8')
    except OSError as error:
        raise FileError(f'{path} cannot be written: {error.strerror}.') from error


def _keyed(
    joint: str, law: FrictionLaw | None, names: Mapping[str, str]
) -> dict[str, float]:
    """Table of a law, with names for the keys of `LAWS`."""
    table: dict[str, float] = {}
    for term in law.laws if isinstance(law, Sum) else (law,) if law is not None else ():
        keys = [names.get(key, '') for key in LAWS.get(type(term), ('',))]
        values = astuple(term) if type(term) in LAWS else ()  # type: ignore[call-overload]
        own = dict(zip(keys, values))
        is_equal = all(table.get(key, value) == value for key, value in own.items())
        if '' in keys or keys[0] in table or not is_equal:
            raise IdentificationError(
                f'The friction {law} of joint {joint!r} cannot be written; expected at most one '
                f'law of each kind, one smoothing for all, and the keys {listed(names.values())}.'
            )
        table.update(own)
    return table


def _driven(joint: str, actuator: Any) -> dict[str, Any]:
    """Table of an actuator; only its type if there is nothing else to say."""
    springs = {made: (kind, names) for kind, (made, names) in SPRINGS.items()}
    table: dict[str, Any] = {'type': 'rigid'}
    if type(actuator) is SeriesElastic and type(actuator.spring) in springs:
        kind, names = springs[type(actuator.spring)]
        table = {'type': 'sea', 'spring': kind}
        for name, value in zip(names, astuple(actuator.spring)):  # type: ignore[call-overload]
            if np.isfinite(value).all():  # no largest deflection
                table[name] = np.asarray(value).tolist()
        table['damping'] = actuator.damping
    elif type(actuator) is not RigidDrive:
        raise IdentificationError(
            f'Joint {joint!r}: {actuator} has no keys in parameter files.'
        )
    if actuator.motor_inertia:
        table['motor_inertia'] = actuator.motor_inertia
    return {**table, **_keyed(joint, actuator.friction, FRICTION)}
