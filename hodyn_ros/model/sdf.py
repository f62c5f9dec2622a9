"""Reader of robots in SDF: one model of SDFormat 1.4 to 1.12 with links, frames and joints.

A link may have several parents. The spanning tree grows from the base by the joints that are
fewest from it, also against their direction; joints with few constraints, balls first, close the
loops. A ball or universal joint in the tree is several revolute joints, named <joint>_1 and so
on, with massless links between them. Springs of joints are left out with a remark; other elements
that are ignored do not affect rigid bodies.
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
    EARTH,
    Dynamics,
    Joint,
    Link,
    Mimic,
    RobotDescription,
    described_link,
    naming_file,
)
from hodyn_ros.model.elements import (
    INERTIA,
    NO_LIMIT,
    InvalidError,
    child_of,
    numbers_in,
    parse_xml,
    text_of,
)
from hodyn_ros.model.inertia import TENSOR
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.loops import Loop
from hodyn_ros.model.loops_in_xml import sdf_axis, sdf_frame
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.model.sources import xml_text
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


class _Tie(NamedTuple):
    """A joint between two links, with its frame (4, 4) in the world at zero position."""

    name: str
    kind: str
    ends: tuple[str, str]
    frame: Array
    axes: Array
    element: Element


def read_sdf(
    given: str | bytes | os.PathLike[str], base_link: str | None = None
) -> RobotDescription:
    """Robot of an SDF file or text.

    Parameters
    ----------
    given : str, bytes or path-like
        Text that begins with <, or the path of a file.
    base_link : str, optional
        Where the tree grows from unless a joint is tied to the world, by default the canonical
        link.

    Returns
    -------
    RobotDescription
        With the gravity of the world that has the model, by default 9.81 against z.

    Raises
    ------
    ModelError
        If it cannot be read, or has what is not supported; the message names the file.
    """
    text, path = xml_text(given, None)
    with naming_file(path):
        root, raw = parse_xml(text, 'an SDF')
        provenance = Provenance(file=path, digest=sha256(raw).hexdigest())
        try:
            return replace(_Reader(root).description(base_link), provenance=provenance)
        except (InvalidError, RecursionError) as error:
            raise ModelError(
                f'The robot description is not a valid SDF: {error}.'
            ) from error


class _Reader:
    """Reader of the only model of an SDF."""

    def __init__(self, root: Element) -> None:
        if root.tag != 'sdf':
            raise InvalidError(f'it starts with <{root.tag}>, expected <sdf>')
        version = [int(x) for x in text_of(root, 'version').split('.') if x.isdigit()]
        self.axes_of_model = version < [1, 5]
        models, included = [*root.iter('model')], [*root.iter('include')]
        if len(models) != 1 or included or 'placement_frame' in models[0].attrib:
            raise ModelError(
                f'The SDF has {len(models)} models and {len(included)} elements <include>; '
                'expected one model that holds all of its links, without placement_frame.'
            )
        self.model = models[0]
        self.gravity = np.array(EARTH)
        for world in root.iterfind('world'):
            given = world.findtext('gravity')
            if given is not None and models[0] in [*world.iter()]:
                self.gravity = numbers_in('<gravity> of the world is', given, 3)
        self.warnings: list[str] = []
        self.elements = {
            text_of(element, 'name'): element
            for tag in ('joint', 'frame', 'link')
            for element in self.model.iterfind(tag)
        }
        # None while a frame is looked for.
        self.frames: dict[str, Array | None] = {'world': np.eye(4)}
        self.root = ''

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
        carrier = element.findtext('child', '__model__').strip()
        return sdf_frame(element, element.get('attached_to') or carrier, self.frame)

    def description(self, base_link: str | None) -> RobotDescription:
        """Description of the whole robot without its provenance."""
        links = [self._link(element) for element in self.model.iterfind('link')]
        ties = [self._tie(element) for element in self.model.iterfind('joint')]
        ends = {end for tie in ties for end in tie.ends}
        if 'world' in ends:
            links.insert(0, Link('world'))
        names = [link.name for link in links]
        if ends - {*names} or not names:
            raise ModelError(
                f'The model of the SDF has the links {listed(names)}, and its joints are tied to '
                f'{listed(sorted(ends - {*names}))}; expected links at both ends of each.'
            )
        first = base_link if base_link in names else self.model.get('canonical_link')
        self.root = 'world' if 'world' in ends else first or names[0]
        joints, closing = self._grow(ties)
        links += [Link(joint.child) for joint in joints if joint.child not in names]
        name = text_of(self.model, 'name')
        parts = tuple(links), tuple(joints), tuple(self.warnings)
        base = self.frame(base_link if base_link in self.elements else self.root)
        return RobotDescription(
            name,
            *parts,
            loops=tuple(map(self._loop, closing)),
            gravity=base[:3, :3].T @ self.gravity,
        )

    def _link(self, element: Element) -> Link:
        """Link of an element, with the default inertia of the specification if it states none."""
        name, inertial = text_of(element, 'name'), child_of(element, 'inertial')
        if element.findtext('gravity', 'true').strip() in ('0', 'false'):
            self.warnings.append(
                f'Link {name!r} is said to be without gravity, which is not read: it has weight.'
            )
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
        entries = [
            _number(inertial, f'inertia/{key}', float(key[1] == key[2])) for key in INERTIA
        ]
        mass = _number(inertial, 'mass', 1.0)
        return described_link(name, mass, frame, np.array(entries)[TENSOR], self.warnings)

    def _tie(self, element: Element) -> _Tie:
        name, kind = text_of(element, 'name'), text_of(element, 'type')
        if kind not in _KINDS:
            raise ModelError(
                f'Joint {name!r} is of type {kind!r}, which is not supported; expected one of '
                f'{listed(_KINDS)}.'
            )
        if any(_number(x, '.') for x in element.iter('spring_stiffness')):
            self.warnings.append(f'Joint {name!r}: its spring is not read.')
        parent, child = (element.findtext(end, '').strip() for end in ('parent', 'child'))
        placed = sdf_frame(element, child, self.frame)
        axes = np.eye(3)
        if kind != 'ball':
            tags = [child_of(element, tag) for tag in _KINDS[kind].axes]
            args = placed, self.frame, self.axes_of_model
            axes = np.array([sdf_axis(tag, *args) for tag in tags]).reshape(-1, 3)
        lengths = np.linalg.norm(axes, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0.0)).all():
            raise InvalidError(f'joint {name!r} has an axis without direction')
        return _Tie(name, kind, (parent, child), placed, axes / lengths, element)

    def _grow(self, ties: list[_Tie]) -> tuple[list[Joint], list[_Tie]]:
        """Joints of the spanning tree from the base, and the others, which close loops."""
        depth, left = {self.root: 0}, list(ties)
        joints: list[Joint] = []

        def rank(tie: _Tie) -> tuple[int, int]:
            near = min(depth.get(end, len(ties)) for end in tie.ends)
            return -_KINDS[tie.kind].rows, near

        while rim := [tie for tie in left if len({*tie.ends} & {*depth}) == 1]:
            tie = min(rim, key=rank)
            left.remove(tie)
            near, far = tie.ends if tie.ends[0] in depth else tie.ends[::-1]
            depth[far] = depth[near] + 1
            joints += self._joints(tie, near, far)
        return joints, left

    def _joints(self, tie: _Tie, parent: str, child: str) -> Iterator[Joint]:
        """Joints of the tree, one behind the other, between two links."""
        before, after = self.frame(parent), self.frame(child)
        parts = [*enumerate(zip(tie.axes, _KINDS[tie.kind].axes), 1)]
        if not parts:
            yield Joint(tie.name, 'fixed', parent, child, se3.inverse(before) @ after)
        forwards, slides = child == tie.ends[1], tie.kind == 'prismatic'
        for number, (axis, tag) in parts if forwards else parts[::-1]:
            name = tie.name if len(parts) == 1 else f'{tie.name}_{number}'
            last = number == (len(parts) if forwards else 1)
            behind, here = (child, after) if last else (f'{child}_behind_{name}', tie.frame)
            twist = np.concatenate([0.0 * axis, axis] if slides else [axis, 0.0 * axis])
            screw = se3.Ad(se3.inverse(here) @ tie.frame) @ (twist if forwards else -twist)
            origin = se3.inverse(before) @ here
            joint = Joint(name, 'prismatic', parent, behind, origin, screw=screw)
            yield _described(joint, tie.element.find(tag), slides)
            parent, before = behind, here

    def _loop(self, tie: _Tie) -> Loop | ModelError:
        kind = _KINDS[tie.kind].loop
        mimic = tie.element.find('axis/mimic') is not None
        if not kind or mimic:
            what = 'mimics another one' if mimic else f'is of type {tie.kind!r}'
            return ModelError(
                f'Joint {tie.name!r} closes a loop and {what}: not supported.'
            )
        pose_a, pose_b = (se3.inverse(self.frame(end)) @ tie.frame for end in tie.ends)
        # Of a ball the last, which says nothing.
        axis = tie.axes[-1] if len(tie.axes) else (0.0, 0.0, 1.0)
        return Loop(tie.name, kind, *tie.ends, pose_a, pose_b, axis)


def _described(joint: Joint, axis: Element | None, slides: bool) -> Joint:
    """Joint with the type, limits, friction and mimic of its axis."""
    if axis is None:
        return joint if slides else replace(joint, type='continuous')
    given: dict[str, float] = {}
    for what in ('lower', 'upper', 'velocity', 'effort'):
        value = _number(axis, f'limit/{what}', np.inf)
        without = value < 0.0 if what in ('velocity', 'effort') else False
        if abs(value) < NO_LIMIT and not without:
            given[what] = value
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
    value = float(numbers_in(f'<{path}> in <{element.tag}> is', text or '', 1)[0])
    if np.isnan(value):
        raise InvalidError(f'<{path}> in <{element.tag}> is {text!r}, expected a number')
    return value
