"""Validated children, numbers and poses of elements of robot descriptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers import expat

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.limits import Limits
from hodyn_ros.typing import Array

T = TypeVar('T')

INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
# Attributes of <limit>, and an element of joints in the descriptions of Franka with its own.
LIMITS, FALLING_LIMITS = Limits._fields[:-2], Limits._fields[-2:]
FALLING = 'position_based_velocity_limits'
# Magnitude of a limit from which on there is none, where a number is demanded.
NO_LIMIT = 1e16
# Rotations written twice, with a few digits, are the same.
_SAME_ROTATION = 1e-3


class InvalidError(Exception):
    """Fault within a link, a joint or a loop."""


def read_element(read: Callable[..., T], element: Element, *arguments: object) -> T:
    """Result of the reader of an element; its `InvalidError` becomes a `ModelError`."""
    try:
        return read(element, *arguments)
    except InvalidError as problem:
        raise ModelError(
            f'The robot description is not a valid URDF: {element.tag} {element.get("name")!r}: '
            f'{problem}.'
        ) from None


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


def plain_tag(element: Element) -> str:
    """Tag of an element without its namespace; empty for a comment."""
    return element.tag.rpartition('}')[2] if isinstance(element.tag, str) else ''


def child_of(element: Element, tag: str) -> Element | None:
    """Element within another one, None if there is none; more than one are refused."""
    found = element.findall(tag)
    if len(found) > 1:
        raise InvalidError(f'<{element.tag}> contains <{tag}> more than once')
    return found[0] if found else None


def needed_child(element: Element, tag: str) -> Element:
    """Element within another one; an `InvalidError` if there is none."""
    child = child_of(element, tag)
    if child is None:
        raise InvalidError(f'<{element.tag}> has no <{tag}>')
    return child


def text_of(element: Element, attribute: str) -> str:
    """Attribute of an element; an `InvalidError` if it is missing or empty."""
    text = element.get(attribute)
    if not text:
        raise InvalidError(f'<{element.tag}> has no {attribute}')
    return text


def numbers_of(element: Element | None, attribute: str, default: Sequence[float]) -> Array:
    """Numbers of an attribute, as many as the default has."""
    text = None if element is None else element.get(attribute)
    if element is None or text is None:
        return np.array(default)
    return numbers_in(f'<{element.tag}> has {attribute}', text, len(default))


def numbers_in(what: str, text: str, count: int) -> Array:
    """Numbers of a text; an `InvalidError`, which begins with `what`, unless there are `count`."""
    try:
        values = np.array([float(number) for number in text.split()])
    except ValueError:
        values = np.empty(0)
    if len(values) != count:
        expected = 'a number' if count == 1 else f'{count} numbers'
        raise InvalidError(f'{what} {text!r}, expected {expected}')
    return values


def number_of(element: Element, attribute: str, default: float | None = None) -> float:
    """Number of an attribute, which must be given unless there is a default."""
    if default is None:
        text_of(element, attribute)
    return float(numbers_of(element, attribute, [default or 0.0])[0])


def origin_of(owner: str, element: Element) -> Array:
    """Pose (4, 4) of the element's origin, the identity without one."""
    origin = child_of(element, 'origin')
    xyz, rpy = (numbers_of(origin, name, [0.0, 0.0, 0.0]) for name in ('xyz', 'rpy'))
    quaternion = numbers_of(origin, 'quat_xyzw', [0.0, 0.0, 0.0, 1.0])
    if not np.isfinite([*xyz, *rpy, *quaternion]).all():
        raise ModelError(f'{owner}: the origin holds a value that is not finite.')
    R = so3.from_rpy(rpy)
    if origin is not None and 'quat_xyzw' in origin.attrib:
        R_read = _rotation(owner, quaternion)
        if 'rpy' in origin.attrib and np.abs(R - R_read).max() > _SAME_ROTATION:
            raise ModelError(
                f'{owner}: the origin has rpy {rpy.tolist()} and quat_xyzw {quaternion.tolist()}, '
                'which are different rotations; expected one of both.'
            )
        R = R_read
    return se3.pose(R, xyz)


def _rotation(owner: str, quaternion: Array) -> Array:
    """Rotation matrix of a quaternion (x, y, z, w) of any length but zero."""
    norm = float(np.linalg.norm(quaternion))
    if norm == 0.0:
        raise ModelError(f'{owner}: the quaternion quat_xyzw is zero, expected a rotation.')
    x, y, z, w = quaternion / norm
    v_hat = so3.hat([x, y, z])
    rotation: Array = np.eye(3) + 2.0 * (w * v_hat + v_hat @ v_hat)
    return rotation
