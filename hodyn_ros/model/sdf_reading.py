"""Robots described in SDF: one model of SDFormat 1.4 to 1.12 with links, frames and joints.

A link may have several parents. The tree grows from the base by the joints that are fewest from
it, against their direction, too; what closes the loops are joints that leave much free, balls
first. A ball or universal joint in the tree is several that turn, named <joint>_1 and so on, with
massless links between them. What is not read says nothing about rigid bodies, springs of joints
apart, of which a remark says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import (
    Dynamics,
    Joint,
    Link,
    Mimic,
    RobotDescription,
    described_link,
)
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.loops import Loop
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.model.urdf import INERTIA, parse_xml, xml_text
from hodyn_ros.model.urdf_elements import (
    InvalidError,
    child_of,
    numbers_in,
    text_of,
)
from hodyn_ros.model.urdf_loops import sdf_axis, sdf_frame
from hodyn_ros.names import listed
from hodyn_ros.typing import Array


class _Kind(NamedTuple):
    """A type of joint: rows that hold it, 6 if it closes no loop; its axes; the kind of loop."""

    rows: int
    axes: tuple[str, ...] = ('axis',)
    loop: str = ''


_KINDS = {
    'fixed': _Kind(6, (), 'weld'),
    'revolute': _Kind(5, loop='hinge'),
    'continuous': _Kind(5, loop='hinge'),
    'prismatic': _Kind(5, loop='slider'),
    'ball': _Kind(3, ('x', 'y', 'z'), 'ball'),
    'universal': _Kind(6, ('axis', 'axis2')),
    'revolute2': _Kind(6, ('axis', 'axis2')),
}
# Where older versions have no limit.
_NO_LIMIT = 1e16


class SdfRobot(NamedTuple):
    """What is read of an SDF.

    Attributes
    ----------
    description : RobotDescription
    rotations : dict of str to ndarray
        Axes (3, 3) of all links in those of the world, at zero position.
    root : str
        Link that the tree grows from.
    """

    description: RobotDescription
    rotations: dict[str, Array]
    root: str


class _Tie(NamedTuple):
    """A joint between two links, with its frame (4, 4) in the world at zero position."""

    name: str
    kind: str
    ends: tuple[str, str]
    frame: Array
    axes: tuple[Array, ...]
    element: Element


def read_sdf(
    given: str | bytes | os.PathLike[str], base_link: str | None = None
) -> SdfRobot:
    """Robot of an SDF file or text.

    Parameters
    ----------
    given : str, bytes or path-like
        Text that begins with <, or the path of a file.
    base_link : str, optional
        Where the tree grows from unless the world is tied to it, by default the canonical link.

    Returns
    -------
    SdfRobot

    Raises
    ------
    ModelError
        If it cannot be read, or has what is not supported.
    """
    text, path = xml_text(given, None)
    file = f'File {path!r}: ' if path else ''
    try:
        root, raw = parse_xml(text, 'an SDF')
        provenance = Provenance(file=path, digest=sha256(raw).hexdigest())
        return _Reader(root).robot(provenance, base_link)
    except InvalidError as problem:
        raise ModelError(
            f'{file}The robot description is not a valid SDF: {problem}.'
        ) from None
    except ModelError as error:
        raise ModelError(f'{file}{error}') from error


class _Reader:
    """Reader of the only model of an SDF."""

    def __init__(self, root: Element) -> None:
        if root.tag != 'sdf':
            raise InvalidError(f'it starts with <{root.tag}>, expected <sdf>')
        version = [int(x) for x in text_of(root, 'version').split('.') if x.isdigit()]
        self.axes_of_model = version < [1, 5]
        models = [*root.iter('model')]
        if len(models) != 1 or next(root.iter('include'), None) is not None:
            raise ModelError(
                f'The SDF has {len(models)} models and {len([*root.iter("include")])} elements '
                '<include>; expected one model that holds all of its links.'
            )
        self.model = models[0]
        if 'placement_frame' in self.model.attrib:
            raise ModelError('The placement_frame of an SDF is not supported.')
        self.warnings: list[str] = []
        self.elements = {
            text_of(element, 'name'): element
            for tag in ('joint', 'frame', 'link')
            for element in self.model.iterfind(tag)
        }
        # None while a frame is looked for.
        self.frames: dict[str, Array | None] = {'world': np.eye(4)}

    def frame(self, name: str) -> Array:
        """Pose (4, 4) in the world of a link, frame, joint or the model, at zero position."""
        if name not in self.frames:
            self.frames[name] = None
            self.frames[name] = self._frame(name)
        found = self.frames[name]
        if found is None:
            raise InvalidError(f'the pose of {name!r} is relative to itself')
        return found

    def _frame(self, name: str) -> Array:
        if name == '__model__':
            return sdf_frame(self.model, 'world', self.frame)
        if name not in self.elements:
            raise InvalidError(
                f'there is no link, frame or joint {name!r}; there are {listed(self.elements)}'
            )
        element = self.elements[name]
        carrier = (
            element.get('attached_to') or element.findtext('child', '__model__').strip()
        )
        return sdf_frame(element, carrier, self.frame)

    def robot(self, provenance: Provenance, base_link: str | None) -> SdfRobot:
        """All that is read."""
        links = [self._link(element) for element in self.model.iterfind('link')]
        ties = [self._tie(element) for element in self.model.iterfind('joint')]
        if any('world' in tie.ends for tie in ties):
            links.insert(0, Link('world'))
        names = {link.name: None for link in links}
        for tie in ties:
            for end in tie.ends:
                if end not in names:
                    raise ModelError(
                        f'Joint {tie.name!r} is tied to {end!r}, which is no link; the links are '
                        f'{listed(names)}.'
                    )
        if not links:
            raise ModelError('The model of the SDF has no links.')
        canonical = self.model.get('canonical_link') or links[0].name
        wanted = 'world' if 'world' in names else base_link
        root = wanted if wanted in names else canonical
        joints, closing = self._grow(root, ties)
        links += [Link(joint.child) for joint in joints if joint.child not in names]
        springs = [
            tie.name
            for tie in ties
            for value in tie.element.iter('spring_stiffness')
            if _number(value, '.')
        ]
        if springs:
            self.warnings.append(f'Springs of joints {listed(springs)} are not read.')
        description = RobotDescription(
            text_of(self.model, 'name'),
            tuple(links),
            tuple(joints),
            tuple(self.warnings),
            provenance=provenance,
            loops=tuple(map(self._loop, closing)),
        )
        return SdfRobot(
            description, {name: self.frame(name)[:3, :3] for name in names}, root
        )

    def _link(self, element: Element) -> Link:
        """Link of an element; of one that is silent the inertia of the specification."""
        name, inertial = text_of(element, 'name'), child_of(element, 'inertial')
        if inertial is None:
            self.warnings.append(
                f'Link {name!r} has no <inertial>: it has 1 kg and 1 kg m^2, as SDF has it.'
            )
            inertial = Element('inertial')
        if inertial.get('auto', 'false') in ('1', 'true'):
            raise ModelError(
                f'Link {name!r} has the inertia of its shapes (auto), which is not supported.'
            )
        frame = se3.inverse(self.frame(name)) @ sdf_frame(inertial, name, self.frame)
        xx, xy, xz, yy, yz, zz = (
            _number(inertial, f'inertia/{key}', float(key[1] == key[2])) for key in INERTIA
        )
        inertia_com = np.array([(xx, xy, xz), (xy, yy, yz), (xz, yz, zz)])
        mass = _number(inertial, 'mass', 1.0)
        return described_link(name, mass, frame, inertia_com, self.warnings)

    def _tie(self, element: Element) -> _Tie:
        name, kind = text_of(element, 'name'), text_of(element, 'type')
        if kind not in _KINDS:
            raise ModelError(
                f'Joint {name!r} is of type {kind!r}, which is not supported; expected one of '
                f'{listed(_KINDS)}.'
            )
        parent, child = (element.findtext(end, '').strip() for end in ('parent', 'child'))
        placed = sdf_frame(element, child, self.frame)
        if kind == 'ball':
            axes = tuple(np.eye(3))
        else:
            axes = tuple(
                sdf_axis(child_of(element, tag), placed, self.frame, self.axes_of_model)
                for tag in _KINDS[kind].axes
            )
        lengths = np.array([np.linalg.norm(axis) for axis in axes])
        if not (np.isfinite(lengths) & (lengths > 0.0)).all():
            raise InvalidError(f'joint {name!r} has an axis without direction')
        units = tuple(axis / length for axis, length in zip(axes, lengths))
        return _Tie(name, kind, (parent, child), placed, units, element)

    def _grow(self, root: str, ties: list[_Tie]) -> tuple[list[Joint], list[_Tie]]:
        """Joints of the tree from the base, and those that are left to close loops."""
        depth, left = {root: 0}, list(ties)
        joints: list[Joint] = []

        def rank(tie: _Tie) -> tuple[int, int]:
            return -_KINDS[tie.kind].rows, min(
                depth.get(end, len(ties)) for end in tie.ends
            )

        while rim := [tie for tie in left if len({*tie.ends} & {*depth}) == 1]:
            tie = min(rim, key=rank)
            left.remove(tie)
            near, far = tie.ends if tie.ends[0] in depth else tie.ends[::-1]
            depth[far] = depth[near] + 1
            joints += self._joints(tie, near, far)
        return joints, left

    def _joints(self, tie: _Tie, parent: str, child: str) -> Iterator[Joint]:
        """Joints of the tree, one behind the other, between two links."""
        origin = se3.inverse(self.frame(parent)) @ self.frame(child)
        to_child = se3.Ad(se3.inverse(self.frame(child)) @ tie.frame)
        parts = [*enumerate(zip(tie.axes, _KINDS[tie.kind].axes), 1)]
        if not parts:
            yield Joint(tie.name, 'fixed', parent, child, origin)
        forwards = child == tie.ends[1]
        for number, (axis, tag) in parts if forwards else parts[::-1]:
            name = tie.name if len(parts) == 1 else f'{tie.name}_{number}'
            last = number == (len(parts) if forwards else 1)
            behind = child if last else f'{child}_behind_{name}'
            slides = tie.kind == 'prismatic'
            twist = np.concatenate([0.0 * axis, axis] if slides else [axis, 0.0 * axis])
            screw = to_child @ (twist if forwards else -twist)
            joint = Joint(name, 'prismatic', parent, behind, origin, screw=screw)
            yield _described(joint, tie.element.find(tag), slides)
            parent, origin = behind, np.eye(4)

    def _loop(self, tie: _Tie) -> Loop | ModelError:
        kind = _KINDS[tie.kind].loop
        mimic = tie.element.find('axis/mimic') is not None
        if not kind or mimic:
            what = 'mimics another one' if mimic else f'is of type {tie.kind!r}'
            return ModelError(
                f'Joint {tie.name!r} closes a loop and {what}: not supported.'
            )
        pose_a, pose_b = (se3.inverse(self.frame(end)) @ tie.frame for end in tie.ends)
        axis = tie.axes[0] if len(tie.axes) == 1 else (0.0, 0.0, 1.0)
        return Loop(tie.name, kind, *tie.ends, pose_a, pose_b, axis)


def _described(joint: Joint, axis: Element | None, slides: bool) -> Joint:
    """Joint with the type, limits, friction and mimic of its axis."""
    if axis is None:
        return joint if slides else replace(joint, type='continuous')
    given = {
        what: _number(axis, f'limit/{what}', default)
        for what, default in Limits()._asdict().items()
        if what in ('lower', 'upper', 'velocity', 'effort')
    }
    for what, value in given.items():
        if abs(value) >= _NO_LIMIT or (value < 0.0 and what in ('velocity', 'effort')):
            given[what] = -np.inf if what == 'lower' else np.inf
    limits = Limits(**given)
    limits.check(f'Joint {joint.name!r}')
    turns = 'revolute' if np.isfinite(limits[:2]).any() else 'continuous'
    damping, friction = (
        _number(axis, f'dynamics/{what}', 0.0) for what in Dynamics._fields
    )
    mimic, followed = axis.find('mimic'), None
    if mimic is not None:
        factor = _number(mimic, 'multiplier')
        at, offset = _number(mimic, 'reference', 0.0), _number(mimic, 'offset', 0.0)
        followed = Mimic(text_of(mimic, 'joint'), factor, offset - factor * at)
    return replace(
        joint,
        type='prismatic' if slides else turns,
        limits=limits,
        dynamics=Dynamics(damping, friction),
        mimic=followed,
    )


def _number(element: Element, path: str, default: float | None = None) -> float:
    """Number of an element within another one; the default if there is none."""
    text = element.findtext(path)
    if text is None and default is not None:
        return default
    return float(numbers_in(f'<{path}> in <{element.tag}> is', text or '', 1)[0])
