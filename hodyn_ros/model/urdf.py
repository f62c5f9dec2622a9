"""URDF to links and joints, and a model back to URDF.

Only what matters for rigid-body motion is read: links with their inertia, and joints. Of meshes,
materials, transmissions and tags of simulators nothing can fail or warn. What may be omitted has
the defaults of the URDF specification.

URDF wants the axis of a joint to pass through the origin of its child link and knows no helical
joints. Where a body frame lies off its axis, a massless link on the axis comes between; a helical
joint becomes a turning joint and a prismatic one that mimics it, with a massless link between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.assembly import (
    BASE,
    URDF_MOVING_JOINT_TYPES,
    Dynamics,
    Joint,
    Link,
    Mimic,
    RobotDescription,
)
from hodyn_ros.model.inertia import Inertia, check_inertia, inertia_parts, spatial_inertia
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.model.sources import RobotSource, find_robot

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

T = TypeVar('T')

_JOINT_TYPES = (*URDF_MOVING_JOINT_TYPES, 'fixed', 'floating', 'planar')

_INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


def read_urdf(
    given: str | bytes | os.PathLike[str],
    xacro_arguments: Mapping[str, str] | None = None,
    allow_impossible_inertia: bool = False,
) -> RobotDescription:
    """Read XML text, or the file of a path or a name; see `RobotModel.from_urdf`."""
    text, path = xml_text(given, xacro_arguments)
    try:
        found = parse_urdf(text, allow_impossible_inertia)
    except ModelError as error:
        raise ModelError(f'File {path!r}: {error}' if path else str(error)) from error
    return replace(found, provenance=replace(found.provenance, file=path))


def parse_urdf(xml: str | bytes, allow_impossible_inertia: bool = False) -> RobotDescription:
    """Links and joints of a URDF from its XML text; see `RobotModel.from_urdf`."""
    raw = xml.encode('utf-8', errors='surrogatepass') if isinstance(xml, str) else xml
    if isinstance(xml, str):
        # The text is decoded already: an encoding declaration in it no longer holds.
        xml = re.sub(r'^[\ufeff \t\r\n]*(<\?xml.*?\?>\s*)?', '', xml, count=1, flags=re.DOTALL)
        xml = xml.encode('utf-8', errors='surrogatepass')
    root = _parse_xml(xml)
    # A default namespace says nothing about a URDF.
    namespace = root.tag.removesuffix('robot')
    if namespace.startswith('{') and 'xacro' not in namespace:
        for element in root.iter():
            element.tag = element.tag.removeprefix(namespace)
    if root.tag != 'robot':
        raise ModelError(
            f'The robot description starts with <{root.tag}>, expected the URDF element <robot>'
            + ('; run it through xacro first.' if 'xacro' in root.tag else '.')
        )
    if any('xacro}' in element.tag for element in root.iter()):
        raise ModelError(
            'The robot description contains xacro macros; run it through xacro first.'
        )
    warnings: list[str] = []
    return RobotDescription(
        root.get('name', 'robot'),
        tuple(
            _read(_link, link, allow_impossible_inertia, warnings) for link in root.findall('link')
        ),
        tuple(_read(_joint, joint, warnings) for joint in root.findall('joint')),
        tuple(warnings),
        provenance=Provenance(digest=sha256(raw).hexdigest()),
    )


class _InvalidError(Exception):
    """Says what is wrong within a link or a joint."""


def _read(read: Callable[..., T], element: ElementTree.Element, *arguments: object) -> T:
    try:
        return read(element, *arguments)
    except _InvalidError as problem:
        raise ModelError(
            f'The robot description is not a valid URDF: {element.tag} {element.get("name")!r}: '
            f'{problem}.'
        ) from None


def xml_text(
    given: str | bytes | os.PathLike[str], xacro_arguments: Mapping[str, str] | None
) -> tuple[str | bytes, str]:
    """XML text, and the path of its file; empty if it is given as text."""
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
    found = find_robot(given) if isinstance(given, str) else RobotSource(Path(given), 'file')
    text = found.description(xacro_arguments)
    try:
        return text if isinstance(text, str) else text.read_bytes(), str(found.path)
    except (OSError, ValueError) as error:
        raise ModelError(
            f'The robot description {str(found.path)!r} is not a readable file: {error}'
        ) from error


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


def _child(element: ElementTree.Element, tag: str) -> ElementTree.Element | None:
    """Element within another one, None if there is none; more than one are refused."""
    found = element.findall(tag)
    if len(found) > 1:
        raise _InvalidError(f'<{element.tag}> contains <{tag}> more than once')
    return found[0] if found else None


def _needed(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    child = _child(element, tag)
    if child is None:
        raise _InvalidError(f'<{element.tag}> has no <{tag}>')
    return child


def _text(element: ElementTree.Element, attribute: str) -> str:
    text = element.get(attribute)
    if not text:
        raise _InvalidError(f'<{element.tag}> has no {attribute}')
    return text


def _values(
    element: ElementTree.Element | None, attribute: str, default: Sequence[float]
) -> Array:
    """Numbers of an attribute, as many as the default has."""
    text = None if element is None else element.get(attribute)
    if element is None or text is None:
        return np.array(default)
    try:
        values = np.array([float(number) for number in text.split()])
    except ValueError:
        values = np.empty(0)
    if len(values) != len(default):
        expected = 'a number' if len(default) == 1 else f'{len(default)} numbers'
        raise _InvalidError(f'<{element.tag}> has {attribute} {text!r}, expected {expected}')
    return values


def _number(element: ElementTree.Element, attribute: str, default: float | None = None) -> float:
    if default is None:
        _text(element, attribute)
    return float(_values(element, attribute, [default or 0.0])[0])


def _origin(owner: str, element: ElementTree.Element) -> Array:
    origin = _child(element, 'origin')
    xyz, rpy = (_values(origin, name, [0.0, 0.0, 0.0]) for name in ('xyz', 'rpy'))
    if not np.isfinite([xyz, rpy]).all():
        raise ModelError(f'{owner}: the origin holds a value that is not finite.')
    return se3.pose(so3.from_rpy(rpy), xyz)


def _link(
    element: ElementTree.Element, allow_impossible_inertia: bool, warnings: list[str]
) -> Link:
    name = _text(element, 'name')
    inertial = _child(element, 'inertial')
    if inertial is None:
        return Link(name)
    owner = f'Link {name!r}'
    frame = _origin(owner, inertial)
    mass = _number(_needed(inertial, 'mass'), 'value')
    inertia = _child(inertial, 'inertia')
    inertia_com = np.zeros((3, 3))
    if inertia is not None:
        xx, xy, xz, yy, yz, zz = (_number(inertia, key) for key in _INERTIA)
        inertia_com[:] = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
    try:
        warnings += check_inertia(owner, mass, frame[:3, 3], inertia_com, allow_impossible_inertia)
    except ModelError as error:
        return Link(name, defect=str(error))
    M_body = se3.transform_inertia(spatial_inertia(mass, np.zeros(3), inertia_com), frame)
    return Link(name, mass, M_body)


def _joint(element: ElementTree.Element, warnings: list[str]) -> Joint:
    name, kind = _text(element, 'name'), _text(element, 'type')
    owner = f'Joint {name!r}'
    axis = _values(_child(element, 'axis'), 'xyz', [1.0, 0.0, 0.0])
    if kind in URDF_MOVING_JOINT_TYPES:
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
    followed, mimic = _child(element, 'mimic'), None
    if followed is not None:
        factors = _number(followed, 'multiplier', 1.0), _number(followed, 'offset', 0.0)
        if not np.isfinite(factors).all():
            raise ModelError(f'{owner}: the mimic multiplier and offset must be finite.')
        mimic = Mimic(_text(followed, 'joint'), *factors)
    limit, limits = _child(element, 'limit'), Limits()
    if limit is not None:
        defaults = (0.0, 0.0, None, None)
        limits = Limits(*(_number(limit, *pair) for pair in zip(Limits._fields, defaults)))
        if kind == 'continuous':
            limits = limits._replace(lower=-np.inf, upper=np.inf)
        limits.check(owner)
    if kind not in _JOINT_TYPES:  # whether it matters depends on the chain
        kind += ' (not a joint type of URDF)'
    parent, child = (_text(_needed(element, end), 'link') for end in ('parent', 'child'))
    origin, dynamics = _origin(owner, element), _dynamics(element)
    return Joint(name, kind, parent, child, origin, axis, mimic, limits, None, dynamics)


def _dynamics(joint: ElementTree.Element) -> Dynamics:
    """Friction as it is written, NaN where that is no number: it is checked if it is used."""
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


# URDF demands numbers where a model has no limit; simulators read this one as infinite.
_NO_LIMIT = 1e16


def to_urdf(model: RobotModel) -> str:
    """Write a model as the XML text of a URDF.

    Read again it has the same independent joints in the same directions, the same link frames and,
    to rounding, the same efforts. Each body's inertia belongs to the link behind its joint;
    gravity, friction laws, armature and the inertia of the base have no place in it. A helical
    joint becomes a joint of its name and a mimic joint `<name>_advance`: tools that ignore mimic
    joints see one degree of freedom too many.
    """
    return _Writer(model).text()


class _Writer:
    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.robot = ElementTree.Element('robot', name=model.name)
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
        self._link(self.main[BASE])
        for i in range(self.model.n_bodies):
            self._body(i)
        for name, frame in self.model.links.items():
            main = self.main[frame.body]
            if name != main:
                self._link(name)
                self._joint(self._new_name(f'{name}_joint'), 'fixed', main, name, frame.pose)
        ElementTree.indent(self.robot)
        return ElementTree.tostring(self.robot, encoding='unicode') + '\n'

    def _body(self, i: int) -> None:
        """Write the joint and the link of a body, with a link on the axis where one is needed."""
        model, j = self.model, self.model.coordinate[i]
        X, name, follows = model.X[i], model.body_names[i], model.joint_names[j]
        parent, child = self.main[int(model.parent[i])], self.main[i]
        known, mimic = model.limits, None
        limits = Limits(known.lower[j], known.upper[j], known.velocity[j], known.effort[j])
        if follows != name:
            mimic = Mimic(follows, float(model.multiplier[i]), float(model.offset[i]))
            limits = Limits()
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

    def _link(self, name: str, M_body: Array | None = None) -> None:
        link = ElementTree.SubElement(self.robot, 'link', name=name)
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
        joint = ElementTree.SubElement(self.robot, 'joint', name=name, type=kind)
        rpy = _numbers(_rpy(origin[:3, :3]))
        ElementTree.SubElement(joint, 'origin', xyz=_numbers(origin[:3, 3]), rpy=rpy)
        ElementTree.SubElement(joint, 'parent', link=parent)
        ElementTree.SubElement(joint, 'child', link=child)
        if axis is None:
            return
        ElementTree.SubElement(joint, 'axis', xyz=_numbers(axis))
        clipped = np.clip(limits or Limits(), -_NO_LIMIT, _NO_LIMIT).tolist()
        written = dict(zip(Limits._fields, map(repr, clipped)))
        if kind == 'continuous':
            del written['lower'], written['upper']
        ElementTree.SubElement(joint, 'limit', written)
        if mimic is not None:
            texts = mimic.joint, repr(mimic.multiplier), repr(mimic.offset)
            ElementTree.SubElement(joint, 'mimic', dict(zip(Mimic._fields, texts)))

    def _new_name(self, wanted: str) -> str:
        while wanted in self.taken:
            wanted += '_'
        self.taken.add(wanted)
        return wanted


def inertial_element(inertia: Inertia) -> ElementTree.Element:
    """Element <inertial> of a link."""
    inertial = ElementTree.Element('inertial')
    ElementTree.SubElement(inertial, 'origin', xyz=_numbers(inertia.com))
    ElementTree.SubElement(inertial, 'mass', value=_numbers([inertia.mass]))
    entries = np.asarray(inertia.inertia_com)[np.triu_indices(3)].tolist()
    ElementTree.SubElement(inertial, 'inertia', dict(zip(_INERTIA, map(repr, entries))))
    return inertial


def _numbers(values: ArrayLike) -> str:
    # repr keeps every bit.
    return ' '.join(map(repr, np.asarray(values).tolist()))


def _rpy(R: Array) -> Array:
    """Roll, pitch and yaw of Rz(yaw) Ry(pitch) Rx(roll), also for a pitch of 90 degrees."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])
