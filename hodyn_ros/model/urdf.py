"""Reader and writer of robots in URDF.

The reader covers rigid-body motion up to URDF 1.2 (urdfdom 6.0): links with their inertia, and
joints. Meshes, materials, transmissions and tags of simulators are ignored; a remark names other
elements that are skipped (`hodyn_ros.model.urdf_dialects`). Omitted values have the defaults of
the URDF specification, but position limits that are not given are unknown.

URDF wants the axis of a joint to pass through the origin of its child link and knows no helical
joints. Where a body frame lies off its axis, a massless link on the axis comes between; a helical
joint becomes a turning joint and a prismatic one that mimics it, with a massless link between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from xml.etree.ElementTree import (
    Element,
    ParseError,
    SubElement,
    fromstring,
    indent,
    tostring,
)
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
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
from hodyn_ros.model.inertia import TENSOR, Inertia, inertia_parts
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.loops import Coupling
from hodyn_ros.model.mechanism import BASE, Closure, Mechanism
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.model.sources import RobotSource, find_robot
from hodyn_ros.model.urdf_dialects import VERSIONS, Remarks, remark_unread
from hodyn_ros.model.urdf_elements import (
    child_of,
    needed_child,
    number_of,
    numbers_of,
    origin_of,
    read_element,
    text_of,
)
from hodyn_ros.model.urdf_loops import ENDS, TYPES, read_loops
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

T = TypeVar('T')

_JOINT_TYPES = (*URDF_MOVING_JOINT_TYPES, 'fixed', 'floating', 'planar')

INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
# Attributes of <limit>, and an element of joints in the descriptions of Franka with its own.
LIMITS, FALLING_LIMITS = Limits._fields[:-2], Limits._fields[-2:]
FALLING = 'position_based_velocity_limits'
# Magnitude of a limit from which on there is none, where a number is demanded.
NO_LIMIT = 1e16
# Readers of other languages, by their root elements.
_HINTS = {
    'mujoco': ': it is an MJCF, which RobotModel.from_mjcf reads; to_urdf writes it as URDF.',
    'sdf': ': it is an SDF, which RobotModel.from_sdf reads; to_urdf writes it as URDF.',
}


def read_urdf(
    given: str | bytes | os.PathLike[str],
    xacro_arguments: Mapping[str, str] | None = None,
    allow_impossible_inertia: bool = False,
) -> RobotDescription:
    """Links and joints of a URDF from XML text, or from the file of a path or a name.

    Parameters
    ----------
    given : str, bytes or path
        See `RobotModel.from_urdf`, as the others.
    xacro_arguments : mapping of str to str, optional
    allow_impossible_inertia : bool

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
        found = parse_urdf(text, allow_impossible_inertia)
    return replace(found, provenance=replace(found.provenance, file=path))


def parse_urdf(
    xml: str | bytes, allow_impossible_inertia: bool = False
) -> RobotDescription:
    """Links and joints of a URDF from its XML text.

    Parameters
    ----------
    xml : str or bytes
        Bytes are decoded as the text declares.
    allow_impossible_inertia : bool
        Whether tensors that are not positive semi-definite are used as given.

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
    reading = _Reading(remark_unread(root, remarks), allow_impossible_inertia, remarks)
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
    allow_impossible_inertia: bool
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


def xml_text(
    given: str | bytes | os.PathLike[str], xacro_arguments: Mapping[str, str] | None
) -> tuple[str | bytes, str]:
    """XML text of a robot description, and the path of its file; empty if it is given as text.

    Parameters
    ----------
    given : str, bytes or path
        Text that begins with <, or else a path or a name, see `find_robot`.
    xacro_arguments : mapping of str to str or None
        Only for xacro files.

    Raises
    ------
    ModelError
        If nothing is found or can be read, or a text is given arguments.
    """
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
            raise ModelError(
                'The robot description is a text; only xacro files take arguments.'
            )
        return given, ''
    if isinstance(given, str) and not given.strip():
        raise ModelError('The robot description is empty, expected XML text or a path.')
    found = (
        find_robot(given) if isinstance(given, str) else RobotSource(Path(given), 'file')
    )
    text = found.description(xacro_arguments)
    try:
        return text if isinstance(text, str) else text.read_bytes(), str(found.path)
    except (OSError, ValueError) as error:
        raise ModelError(
            f'The robot description {str(found.path)!r} is not a readable file: {error}'
        ) from error


def parse_xml(xml: str | bytes, language: str = 'a URDF') -> tuple[Element, bytes]:
    """Root element of an XML text, and its bytes.

    Parameters
    ----------
    xml : str or bytes
        Bytes are decoded as the text declares.
    language : str
        What is expected, for messages.

    Raises
    ------
    ModelError
        If it is no XML, or has document types or entities.
    """
    raw = text = xml if isinstance(xml, bytes) else xml.encode(errors='surrogatepass')
    if isinstance(xml, str):
        # The text is decoded already: an encoding declaration in it no longer holds.
        text = re.sub(
            rb'^(\xef\xbb\xbf|[ \t\r\n])*(<\?xml.*?\?>\s*)?',
            b'',
            raw,
            count=1,
            flags=re.DOTALL,
        )

    def refuse(*_: Any) -> None:
        raise ModelError(
            'The robot description contains a document type declaration or entities; remove '
            f'<!DOCTYPE ...>, {language} needs none.'
        )

    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = refuse
    guard.EntityDeclHandler = refuse
    try:
        guard.Parse(text, True)
        return fromstring(text), raw
    except (expat.ExpatError, ParseError, LookupError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        start = text.lstrip()[:1]
        hint = (
            ''
            if start in (b'<', b'')
            else f' Expected the text of {language}, which starts with <.'
        )
        raise ModelError(f'The robot description is not XML: {error}.{hint}') from error


def _link(element: Element, reading: _Reading) -> Link:
    """Link of an element. One with an inertia that cannot be used has a defect."""
    name = text_of(element, 'name')
    inertial = child_of(element, 'inertial')
    if inertial is None:
        return Link(name)
    frame = origin_of(f'Link {name!r}', inertial)
    mass = number_of(needed_child(inertial, 'mass'), 'value')
    inertia = child_of(inertial, 'inertia')
    entries = [0.0 if inertia is None else number_of(inertia, key) for key in INERTIA]
    given = mass, frame, np.array(entries)[TENSOR], reading.warnings
    try:
        return described_link(name, *given, reading.allow_impossible_inertia)
    except ModelError as error:
        return Link(name, defect=str(error))


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


def to_urdf(model: Mechanism) -> str:
    """XML text of a URDF of a model.

    Read again it has the same independent joints in the same directions, the same link frames and,
    to rounding, the same efforts. Each body's inertia belongs to the link behind its joint;
    gravity, friction laws, armature, limits of torque rates and the inertia of the base have no
    place in it. A helical joint becomes a joint of its name and a mimic joint `<name>_advance`:
    tools that ignore mimic joints see one degree of freedom too many.

    Closed loops are written as URDF+ has them, balls as the type spherical, and where joints are
    when the loops are closed, unless it is zero, as `start` of <joint>: both are not of URDF+.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    str
        Numbers are written with all their digits.

    Raises
    ------
    ModelError
        If a coupling is no ratio of two joints side by side, which is all that URDF+ can say.
    """
    return _Writer(model).text()


class _Writer:
    """Writer of a model as a URDF; names that it adds differ from those of the model."""

    def __init__(self, model: Mechanism) -> None:
        self.closure = model.closure
        model = self.model = model.tree
        self.robot = Element('robot', name=model.name)
        self.taken = {*model.links, *model.body_names}
        # The link of a body is the first one that shares its frame.
        self.main: dict[int, str] = {BASE: model.base_link}
        for name, frame in model.links.items():
            if frame.body not in self.main and np.array_equal(frame.pose, np.eye(4)):
                self.main[frame.body] = name
        for i, joint in enumerate(model.body_names):
            if i not in self.main:
                self.main[i] = self._new_name(f'{joint}_link')

    def text(self) -> str:
        """XML text of the whole model, indented."""
        self._link(self.main[BASE])
        for i in range(self.model.n_bodies):
            self._body(i)
        for name, frame in self.model.links.items():
            main = self.main[frame.body]
            if name != main:
                self._link(name)
                self._joint(
                    self._new_name(f'{name}_joint'), 'fixed', main, name, frame.pose
                )
        if self.closure is not None:
            self._close(self.closure)
        indent(self.robot)
        return tostring(self.robot, encoding='unicode') + '\n'

    def _body(self, i: int) -> None:
        """Write the joint and the link of a body, with a link on the axis where one is needed."""
        model, j = self.model, self.model.coordinate[i]
        X, name, follows = model.X[i], model.body_names[i], model.joint_names[j]
        parent, child = self.main[int(model.parent[i])], self.main[i]
        known, mimic = model.limits, None
        limits = Limits(*(getattr(known, quantity)[j] for quantity in Limits._fields))
        if follows != name:
            mimic = Mimic(follows, float(model.multiplier[i]), float(model.offset[i]))
            limits = model.follower_limits.get(name, Limits())
        if not X[:3].any():
            self._link(child, model.M_body[i])
            self._joint(name, 'prismatic', parent, child, model.B[i], X[3:], mimic, limits)
            return
        e, pitch = X[:3], float(se3.pitches(X[None])[0])
        # The point of the axis that is closest to the origin of the body frame.
        point = np.cross(e, X[3:])
        if np.abs(point).max() <= 1e-15:
            point = np.zeros(3)
        on_axis = se3.pose(np.eye(3), point)
        is_free = np.isinf(limits.lower) and np.isinf(limits.upper)
        turning = 'continuous' if is_free else 'revolute', parent
        if not pitch and not point.any():
            self._link(child, model.M_body[i])
            self._joint(name, *turning, child, model.B[i] @ on_axis, e, mimic, limits)
            return
        between = self._new_name(f'{name}_axis')
        self._link(between)
        self._joint(name, *turning, between, model.B[i] @ on_axis, e, mimic, limits)
        self._link(child, model.M_body[i])
        to_body = se3.inverse(on_axis)
        if pitch:
            mimic = Mimic(
                follows, pitch * float(model.multiplier[i]), pitch * float(model.offset[i])
            )
            advance = self._new_name(f'{name}_advance')
            self._joint(advance, 'prismatic', between, child, to_body, e, mimic)
        else:
            self._joint(self._new_name(f'{name}_offset'), 'fixed', between, child, to_body)

    def _close(self, closure: Closure) -> None:
        """Write loops and couplings, and the role of the joints in them."""
        joints = {joint.get('name'): joint for joint in self.robot.iterfind('joint')}
        for j, name in enumerate(self.model.joint_names):
            joints[name].set('independent', str(j in closure.independent).lower())
            if closure.start[j]:
                joints[name].set('start', repr(float(closure.start[j])))
        for loop in closure.loops:
            attributes = {'name': loop.name, 'type': TYPES[loop.kind]}
            element = SubElement(self.robot, 'loop', attributes)
            for side, link, pose in zip(ENDS, (loop.link_a, loop.link_b), loop.poses):
                end = SubElement(element, side, {'link': link})
                _write_origin(end, pose)
            SubElement(element, 'axis', xyz=_numbers(loop.direction))
        # The reader holds these joints again.
        for coupling in (x for x in closure.couplings if x.joint not in closure.held):
            element = SubElement(self.robot, 'coupling', name=coupling.name)
            ratio = repr(self._ratio(coupling))
            for side, name in zip(ENDS, (coupling.followed[0], coupling.joint)):
                ends = needed_child(joints[name], 'child').attrib
                SubElement(element, side, ends)
            SubElement(element, 'ratio', value=ratio)

    def _ratio(self, coupling: Coupling) -> float:
        """Ratio of a coupling of two joints on the same body; others are refused."""
        joints = coupling.joint, *coupling.followed
        carriers = {int(self.model.parent[self.model.body_names.index(j)]) for j in joints}
        offset, ratio, *others = *coupling.coefficients, 0.0
        if offset or any(others) or len(joints) > 2 or len(carriers) > 1:
            raise ModelError(
                f'Coupling {coupling.name!r} of {joints[0]!r} to '
                f'{listed(map(repr, joints[1:]))} with the coefficients '
                f'{coupling.coefficients} cannot be written as URDF: expected a ratio alone, of '
                'two joints on the same link.'
            )
        return ratio

    def _link(self, name: str, M_body: Array | None = None) -> None:
        """Element of a link, with an inertia (6, 6) about its origin if it is not zero."""
        link = SubElement(self.robot, 'link', name=name)
        if M_body is None or not M_body.any():
            return
        link.append(inertial_element(inertia_parts(f'Link {name!r}', M_body)))

    def _joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        origin: Array,
        axis: Array | None = None,
        mimic: Mimic | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Element of a joint; a fixed one has no axis. Acceleration and jerk need URDF 1.2."""
        joint = SubElement(self.robot, 'joint', name=name, type=kind)
        _write_origin(joint, origin)
        SubElement(joint, 'parent', link=parent)
        SubElement(joint, 'child', link=child)
        if axis is None:
            return
        SubElement(joint, 'axis', xyz=_numbers(axis))
        clipped = np.clip(limits or Limits(), -NO_LIMIT, NO_LIMIT).tolist()
        written = dict(zip(LIMITS, map(repr, clipped)))
        if kind == 'continuous':
            del written['lower'], written['upper']
        for quantity in ('acceleration', 'jerk'):
            if limits is None or np.isinf(getattr(limits, quantity)):
                del written[quantity]
            else:
                self.robot.set('version', VERSIONS[2])
        SubElement(joint, 'limit', written)
        if limits is not None and np.isfinite(limits.deceleration_limit):
            falling = dict(zip(FALLING_LIMITS, map(repr, clipped[-2:])))
            SubElement(joint, FALLING, falling)
        if mimic is not None:
            texts = mimic.joint, repr(mimic.multiplier), repr(mimic.offset)
            SubElement(joint, 'mimic', dict(zip(Mimic._fields, texts)))

    def _new_name(self, wanted: str) -> str:
        """Unused name, made by adding underscores; it is used from now on."""
        while wanted in self.taken:
            wanted += '_'
        self.taken.add(wanted)
        return wanted


def inertial_element(inertia: Inertia) -> Element:
    """Element <inertial> of a link, its origin at the centre of mass in link axes."""
    inertial = Element('inertial')
    SubElement(inertial, 'origin', xyz=_numbers(inertia.com))
    SubElement(inertial, 'mass', value=_numbers([inertia.mass]))
    entries = np.asarray(inertia.inertia_com)[np.triu_indices(3)].tolist()
    SubElement(inertial, 'inertia', dict(zip(INERTIA, map(repr, entries))))
    return inertial


def _write_origin(owner: Element, pose: Array) -> None:
    """Write a pose (4, 4) as the origin of an element."""
    rpy = _numbers(_rpy(pose[:3, :3]))
    SubElement(owner, 'origin', xyz=_numbers(pose[:3, 3]), rpy=rpy)


def _numbers(values: ArrayLike) -> str:
    """Numbers as the text of an attribute, with every bit."""
    # repr keeps every bit.
    return ' '.join(map(repr, np.asarray(values).tolist()))


def _rpy(R: Array) -> Array:
    """Roll, pitch and yaw of Rz(yaw) Ry(pitch) Rx(roll), also for a pitch of 90 degrees."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])
