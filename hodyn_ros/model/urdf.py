"""Reader of robots in URDF.

It covers rigid-body motion up to URDF 1.2 (urdfdom 6.0): links with their inertia, and
joints. Meshes, materials, transmissions and tags of simulators are ignored; a remark names other
elements that are skipped (`hodyn_ros.model.dialects`). Omitted values have the defaults of
the URDF specification, but position limits that are not given are unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TypeVar
from xml.etree.ElementTree import Element

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.model.assembly import (
    URDF_MOVING_JOINT_TYPES,
    Dynamics,
    Joint,
    Link,
    Mimic,
    RobotDescription,
    described_link,
    naming_file,
)
from hodyn_ros.model.dialects import VERSIONS, Remarks, remark_unread
from hodyn_ros.model.elements import (
    FALLING,
    FALLING_LIMITS,
    INERTIA,
    LIMITS,
    NO_LIMIT,
    child_of,
    needed_child,
    number_of,
    numbers_of,
    origin_of,
    parse_xml,
    read_element,
    text_of,
)
from hodyn_ros.model.inertia import TENSOR
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.loops_in_xml import read_loops
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.model.sources import xml_text

T = TypeVar('T')

_JOINT_TYPES = (*URDF_MOVING_JOINT_TYPES, 'fixed', 'floating', 'planar')

# Readers of other languages, by their root elements.
_HINTS = {
    'mujoco': ': it is an MJCF, which RobotModel.from_mjcf reads; to_urdf writes it as URDF.',
    'sdf': ': it is an SDF, which RobotModel.from_sdf reads; to_urdf writes it as URDF.',
}


def read_urdf(
    given: str | bytes | os.PathLike[str],
    xacro_arguments: Mapping[str, str] | None = None,
) -> RobotDescription:
    """Links and joints of a URDF from XML text, or from the file of a path or a name.

    Parameters
    ----------
    given : str, bytes or path
        See `RobotModel.from_urdf`.
    xacro_arguments : mapping of str to str, optional

    Returns
    -------
    RobotDescription
        Its provenance has the path, empty for a text, and the digest of the text.

    Raises
    ------
    ModelError
        If the file cannot be read, or as `parse_urdf`; the message names the file.
    """
    text, path = xml_text(given, xacro_arguments)
    with naming_file(path):
        found = parse_urdf(text)
    return replace(found, provenance=replace(found.provenance, file=path))


def parse_urdf(xml: str | bytes) -> RobotDescription:
    """Links and joints of a URDF from its XML text.

    Parameters
    ----------
    xml : str or bytes
        Bytes are decoded as the text declares.

    Returns
    -------
    RobotDescription
        With remarks on doubtful values and on what was not read.

    Raises
    ------
    ModelError
        If the text is no XML, no URDF or one of xacro, or an element cannot be used.
    """
    root, raw = parse_xml(xml)
    # A default namespace says nothing about a URDF.
    namespace = root.tag.removesuffix('robot')
    if namespace.startswith('{') and 'xacro' not in namespace:
        for element in root.iter():
            element.tag = element.tag.removeprefix(namespace)
    if root.tag != 'robot':
        raise ModelError(
            f'The robot description starts with <{root.tag}>, expected the URDF element <robot>'
            + _HINTS.get(
                root.tag, '; run it through xacro first.' if 'xacro' in root.tag else '.'
            )
        )
    _refuse_xacro(root)
    links, joints = root.findall('link'), root.findall('joint')
    if not links and 'xmlns:xacro' in raw.decode('utf-8', errors='replace'):
        raise ModelError(
            'The robot description has no links, but declares the prefix xacro: it comes from a '
            'xacro file that defines macros and uses none. Run one that uses them through xacro.'
        )
    remarks = Remarks()
    reading = _Reading(remark_unread(root, remarks), remarks)
    read_links = tuple(read_element(_link, link, reading) for link in links)
    read_joints = tuple(read_element(_joint, joint, reading) for joint in joints)
    warnings = *_broken_lines(raw), *remarks.texts(), *reading.warnings
    provenance = Provenance(digest=sha256(raw).hexdigest())
    name = root.get('name', 'robot')
    found = RobotDescription(name, read_links, read_joints, warnings, provenance=provenance)
    return read_loops(root, found)


def _broken_lines(raw: bytes) -> tuple[str, ...]:
    """Remark on numbers with a line break in them, which the reader of ROS drops; or none."""
    text = re.sub(rb'<!--.*?-->', b'', raw, flags=re.DOTALL)
    found = re.search(rb'\s(\w+)\s*=\s*"(\s*[-+.\deE]+\s*)(?<=[\r\n])"', text)
    if found is None:
        return ()
    return (
        f'{found[1].decode()}="{found[2].decode().strip()}" ends with a line break, which says '
        'nothing in XML; but urdfdom, and what rests on it, drops such a number.',
    )


@dataclass(frozen=True)
class _Reading:
    """Settings of the readers of elements, and their remarks."""

    version: str
    """One of `VERSIONS`."""
    remarks: Remarks
    warnings: list[str] = field(default_factory=list)
    """Remarks with numbers of one element, which differ from each other."""


def _refuse_xacro(robot: Element) -> None:
    """Refuse macros and expressions that xacro has not expanded."""
    read = chain(
        *(joint.iter() for joint in robot.iterfind('joint')), robot.iterfind('link')
    )
    values = (value for element in read for value in element.attrib.values())
    tags = (element.tag.partition('xacro}') for element in robot.iter())
    macro = next((f'<xacro:{name}>' for _, is_macro, name in tags if is_macro), '')
    found = macro or next((value for value in values if '${' in value), '')
    if found:
        raise ModelError(
            f'The robot description is a xacro file, which holds {found}; run it through xacro '
            'first.'
        )


def _link(element: Element, reading: _Reading) -> Link:
    """Link of an element."""
    name = text_of(element, 'name')
    inertial = child_of(element, 'inertial')
    if inertial is None:
        return Link(name)
    frame = origin_of(f'Link {name!r}', inertial)
    mass = number_of(needed_child(inertial, 'mass'), 'value')
    inertia = child_of(inertial, 'inertia')
    entries = [0.0 if inertia is None else number_of(inertia, key) for key in INERTIA]
    return described_link(name, mass, frame, np.array(entries)[TENSOR], reading.warnings)


def _joint(element: Element, reading: _Reading) -> Joint:
    """Joint of an element, its axis scaled to unit length."""
    name, kind = text_of(element, 'name'), text_of(element, 'type')
    owner = f'Joint {name!r}'
    axis = numbers_of(child_of(element, 'axis'), 'xyz', [1.0, 0.0, 0.0])
    if kind in URDF_MOVING_JOINT_TYPES:
        norm = float(np.linalg.norm(axis))
        if not np.isfinite(norm):
            raise ModelError(f'{owner}: the axis {axis.tolist()} is not finite.')
        if norm == 0.0:
            raise ModelError(f'{owner}: the axis is zero, expected a direction.')
        if abs(norm - 1.0) > 1e-3:
            reading.remarks.add(
                'Joint', element, 'the axis is not of unit length; its direction is used.'
            )
        axis = axis / norm
    followed, mimic = child_of(element, 'mimic'), None
    if followed is not None:
        factors = number_of(followed, 'multiplier', 1.0), number_of(followed, 'offset', 0.0)
        if not np.isfinite(factors).all():
            raise ModelError(f'{owner}: the mimic multiplier and offset must be finite.')
        mimic = Mimic(text_of(followed, 'joint'), *factors)
    limits = _limits(element, reading)
    if kind not in _JOINT_TYPES:  # whether it matters depends on the chain
        kind += ' (not a joint type of URDF)'
    parent, child = (
        text_of(needed_child(element, end), 'link') for end in ('parent', 'child')
    )
    origin, dynamics = origin_of(owner, element), _dynamics(element)
    return Joint(name, kind, parent, child, origin, axis, mimic, limits, None, dynamics)


def _limits(joint: Element, reading: _Reading) -> Limits:
    """Limits of a joint; of acceleration and deceleration the smaller one.

    Limits of the velocity that fall towards those of the position are an element of Franka's.
    """
    kind, limit = joint.get('type', ''), child_of(joint, 'limit')
    remark = partial(reading.remarks.add, 'Joint', joint)
    needs_range = kind in ('revolute', 'prismatic')
    if limit is None:
        if needs_range:
            remark(f'a {kind} joint without <limit>; none of its limits is known.')
        return Limits()
    given = _given_limits(joint, limit, reading)
    braking = number_of(limit, 'deceleration', given.get('acceleration', np.inf))
    if braking != given.get('acceleration', np.inf):
        remark(
            'the limits of acceleration and deceleration differ; the smaller holds for both.'
        )
        given['acceleration'] = min(given.get('acceleration', np.inf), braking)
    missing = sorted({'lower', 'upper'} - {*given})
    if needs_range and len(missing) == 2:
        remark('<limit> has neither lower nor upper; no limit of the position is known.')
    elif needs_range and missing:
        remark(f'<limit> has no {missing[0]}, which is 0 then.')
        given[missing[0]] = 0.0
    limits = Limits(**given)
    if kind == 'continuous':
        limits = limits._replace(lower=-np.inf, upper=np.inf, deceleration_limit=np.inf)
    limits.check(f'Joint {joint.get("name")!r}')
    return limits


def _given_limits(joint: Element, limit: Element, reading: _Reading) -> dict[str, float]:
    """Limits that a description states, by the field of `Limits`; an error if one is missing."""
    required = ('velocity', 'effort') if reading.version < VERSIONS[2] else ()
    given = {}
    for what in LIMITS:
        if what in limit.attrib or what in required:
            value = number_of(limit, what)
            given[what] = value if abs(value) < NO_LIMIT else np.copysign(np.inf, value)
    if (falling := child_of(joint, FALLING)) is not None:
        given |= {what: number_of(falling, what) for what in FALLING_LIMITS}
    return given


def _dynamics(joint: Element) -> Dynamics:
    """Friction as written, NaN where the text is no number; it is validated where it is used."""
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
