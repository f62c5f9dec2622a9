"""URDF to plain data. The parser is urdfdom-py; this module makes it strict.

Only the elements that matter for rigid-body motion reach the parser (links with their inertia and
joints), so meshes, materials, transmissions and simulator tags can neither fail nor warn. What the
parser leaves open (omitted origins, axes, mimic factors) gets the defaults of the URDF
specification, and what it lets pass (NaN, document types, several inertias) is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray
from urdf_parser_py import urdf as urdfdom

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.description import (
    URDF_JOINT_TYPES,
    URDF_MOVING_JOINT_TYPES,
    Dynamics,
    Joint,
    Limits,
    Link,
    Mimic,
    RobotDescription,
    check_limits,
)
from hodyn_ros.model.inertia import check_inertia, spatial_inertia, transform_inertia
from hodyn_ros.model.sources import Source, find_robot

Array = NDArray[np.float64]

# Element -> attributes and child elements that are read; everything else is left out.
_READ_ATTRIBUTES = {
    'link': ('name',),
    'joint': ('name', 'type'),
    'origin': ('xyz', 'rpy'),
    'mass': ('value',),
    'inertia': ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'),
    'axis': ('xyz',),
    'parent': ('link',),
    'child': ('link',),
    'limit': ('lower', 'upper', 'velocity', 'effort'),
    'mimic': ('joint', 'multiplier', 'offset'),
}
_READ_CHILDREN = {
    'link': ('inertial',),
    'inertial': ('origin', 'mass', 'inertia'),
    'joint': ('origin', 'axis', 'parent', 'child', 'limit', 'mimic'),
}


def read_urdf(
    given: str | bytes | os.PathLike[str],
    xacro_arguments: Mapping[str, str] | None = None,
    allow_impossible_inertia: bool = False,
) -> RobotDescription:
    """Read a URDF robot description.

    Parameters
    ----------
    given : str, bytes or path-like
        XML text, the path of a URDF or xacro file, or a name, see `sources.find_robot`.
    xacro_arguments : mapping of str to str, optional
    allow_impossible_inertia : bool
        Whether tensors that no body can have are used, with a warning.

    Returns
    -------
    RobotDescription

    Raises
    ------
    ModelError
        If it is not XML, contains a document type declaration, is not a URDF, or holds values that
        no robot can have.
    """
    text, source = _xml_text(given, xacro_arguments)
    try:
        return parse_urdf(text, allow_impossible_inertia)
    except ModelError as error:
        raise ModelError(f'{source}{error}') from error


def parse_urdf(xml: str | bytes, allow_impossible_inertia: bool = False) -> RobotDescription:
    """Read a URDF robot description from its XML text; see `read_urdf`."""
    if isinstance(xml, str):
        # The text is decoded already: an encoding declaration in it no longer holds.
        xml = _without_encoding_declaration(xml).encode('utf-8', errors='surrogatepass')
    root = _parse_xml(xml)
    # A default namespace says nothing about a URDF.
    namespace = root.tag.removesuffix('robot')
    if namespace.startswith('{') and 'xacro' not in namespace:
        for element in root.iter():
            if isinstance(element.tag, str):
                element.tag = element.tag.removeprefix(namespace)
    if root.tag != 'robot':
        raise ModelError(
            f'The robot description starts with <{root.tag}>, expected the URDF element <robot>'
            + ('; run it through xacro first.' if 'xacro' in root.tag else '.')
        )
    if any(isinstance(element.tag, str) and 'xacro}' in element.tag for element in root.iter()):
        raise ModelError(
            'The robot description contains xacro macros; run it through xacro first.'
        )
    joint_types: dict[str | None, str] = {}
    dynamics: dict[str | None, Dynamics] = {}
    cleaned = ElementTree.Element('robot', name=root.get('name', 'robot'))
    for element in root:
        if element.tag in ('link', 'joint'):
            cleaned.append(_cleaned(element))
            if element.tag == 'joint':
                dynamics[element.get('name')] = _dynamics(element)
    for element in cleaned.iter('joint'):
        given_type = element.get('type', '')
        if given_type and given_type not in URDF_JOINT_TYPES:
            # The parser would refuse it wherever it stands; whether it matters is decided later.
            element.set('type', 'unknown')
            given_type += ' (not a joint type of URDF)'
        joint_types[element.get('name')] = given_type
    try:
        robot = urdfdom.URDF.from_xml_string(ElementTree.tostring(cleaned))
    except Exception as error:  # the parser raises plain Exception, AssertionError and others
        raise ModelError(f'The robot description is not a valid URDF: {error}') from error

    warnings: list[str] = []
    links = tuple(_link(link, allow_impossible_inertia, warnings) for link in robot.links)
    joints = tuple(
        replace(
            _joint(joint, joint_types[joint.name], warnings), dynamics=dynamics[joint.name]
        )
        for joint in robot.joints
    )
    return RobotDescription(robot.name, links, joints, tuple(warnings))


def _xml_text(
    given: str | bytes | os.PathLike[str], xacro_arguments: Mapping[str, str] | None
) -> tuple[str | bytes, str]:
    """XML text, and what a message says of where it comes from."""
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise ModelError(
            f'The robot description is of type {type(given).__name__}, expected XML text, the '
            'path of a URDF or xacro file, or the name of a robot.'
        )
    if isinstance(given, bytes) and b'<' not in given and b'\0' not in given:
        given = os.fsdecode(given)
    if isinstance(given, bytes) or (
        isinstance(given, str) and given.lstrip('\ufeff \t\r\n').startswith('<')
    ):
        if xacro_arguments:
            raise ModelError('The robot description is a text; only xacro files take arguments.')
        return given, ''
    if isinstance(given, str) and not given.strip():
        raise ModelError('The robot description is empty, expected XML text or a path.')
    found = find_robot(given) if isinstance(given, str) else Source(Path(given), 'file')
    text = found.description(xacro_arguments)
    try:
        return text if isinstance(text, str) else text.read_bytes(), f'File {str(found.path)!r}: '
    except (OSError, ValueError) as error:
        raise ModelError(
            f'The robot description {str(found.path)!r} is not a readable file: {error}'
        ) from error


def _without_encoding_declaration(text: str) -> str:
    text = text.lstrip('\ufeff \t\r\n')
    if text.startswith('<?xml'):
        declaration, separator, rest = text.partition('?>')
        if separator:
            return rest.lstrip()
    return text


def _parse_xml(text: bytes) -> ElementTree.Element:
    def refuse(*_: Any) -> None:
        raise ModelError(
            'The robot description contains a document type declaration or entities; remove '
            '<!DOCTYPE ...>, a URDF needs none.'
        )

    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = refuse
    guard.EntityDeclHandler = refuse
    try:
        guard.Parse(text, True)
        return ElementTree.fromstring(text)
    except (expat.ExpatError, ElementTree.ParseError, LookupError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        start = text.lstrip()[:1]
        hint = '' if start in (b'<', b'') else ' Expected the text of a URDF, which starts with <.'
        raise ModelError(f'The robot description is not XML: {error}.{hint}') from error


def _cleaned(element: ElementTree.Element) -> ElementTree.Element:
    tag = element.tag
    attributes = _READ_ATTRIBUTES.get(tag, ())
    copy = ElementTree.Element(
        tag, {key: value for key, value in element.attrib.items() if key in attributes}
    )
    seen = set()
    for child in element:
        if child.tag in _READ_CHILDREN.get(tag, ()):
            if child.tag in seen:
                name = element.get('name')
                owner = f'<{tag} name={name!r}>' if name is not None else f'<{tag}>'
                raise ModelError(f'{owner} contains <{child.tag}> more than once.')
            seen.add(child.tag)
            copy.append(_cleaned(child))
    return copy


def _origin(owner: str, origin: Any) -> Array:
    xyz = np.array((origin.xyz if origin is not None else None) or [0.0, 0.0, 0.0])
    rpy = np.array((origin.rpy if origin is not None else None) or [0.0, 0.0, 0.0])
    if not (np.all(np.isfinite(xyz)) and np.all(np.isfinite(rpy))):
        raise ModelError(f'{owner}: the origin holds a value that is not finite.')
    return se3.pose(so3.from_rpy(rpy), xyz)


def _link(link: Any, allow_impossible_inertia: bool, warnings: list[str]) -> Link:
    if link.inertial is None:
        return Link(link.name)
    owner = f'Link {link.name!r}'
    frame = _origin(owner, link.inertial.origin)
    mass = link.inertial.mass
    inertia_com = np.zeros((3, 3))
    if link.inertial.inertia is not None:
        inertia_com = np.array(link.inertial.inertia.to_matrix())
    try:
        warnings += check_inertia(
            owner, mass, frame[:3, 3], inertia_com, allow_impossible_inertia
        )
    except ModelError as error:
        return Link(link.name, defect=str(error))
    M_body = transform_inertia(spatial_inertia(mass, np.zeros(3), inertia_com), frame)
    return Link(link.name, mass, M_body)


def _joint(joint: Any, given_type: str, warnings: list[str]) -> Joint:
    owner = f'Joint {joint.name!r}'
    axis = np.array([1.0, 0.0, 0.0] if joint.axis is None else joint.axis)
    if joint.type in URDF_MOVING_JOINT_TYPES:
        norm = float(np.linalg.norm(axis))
        if not np.isfinite(norm):
            raise ModelError(f'{owner}: the axis {axis.tolist()} is not finite.')
        if norm == 0.0:
            raise ModelError(f'{owner}: the axis is zero, expected a direction.')
        if abs(norm - 1.0) > 1e-3:
            warnings.append(
                f'{owner}: the axis {axis.tolist()} is not of unit length; its direction is used.'
            )
        axis = axis / norm
    mimic = None
    if joint.mimic is not None:
        multiplier = 1.0 if joint.mimic.multiplier is None else joint.mimic.multiplier
        offset = 0.0 if joint.mimic.offset is None else joint.mimic.offset
        if not (np.isfinite(multiplier) and np.isfinite(offset)):
            raise ModelError(f'{owner}: the mimic multiplier and offset must be finite.')
        mimic = Mimic(joint.mimic.joint, multiplier, offset)
    return Joint(
        joint.name,
        given_type,
        joint.parent,
        joint.child,
        _origin(owner, joint.origin),
        axis,
        mimic,
        _limits(owner, joint),
    )


def _limits(owner: str, joint: Any) -> Limits:
    if joint.limit is None:
        return Limits()
    limit = joint.limit
    lower, upper = (
        (-np.inf, np.inf) if joint.type == 'continuous' else (limit.lower, limit.upper)
    )
    limits = Limits(lower, upper, limit.velocity, limit.effort)
    check_limits(owner, limits)
    return limits


def _dynamics(joint: ElementTree.Element) -> Dynamics:
    """Friction as it is written; what is not a number becomes NaN.

    Most descriptions hold settings of a simulator here, and nobody may ever ask for them: so they
    stay out of the parser, where they could make it fail, and are checked when they are used.
    """
    elements = joint.findall('dynamics')
    if len(elements) > 1:
        return Dynamics(np.nan, np.nan)
    values = []
    for name in Dynamics._fields:
        text = elements[0].get(name, '0') if elements else '0'
        try:
            values.append(float(text))
        except ValueError:
            values.append(np.nan)
    return Dynamics(*values)
