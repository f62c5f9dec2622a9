"""Closed loops of robot descriptions in dialects of URDF.

* URDF+: ``<loop>``, ``<coupling>`` and ``<joint independent>``, as the parser of its authors reads
  them (mit-biomimetics/urdfdom) and ROAM-Lab-ND/generalized_rbda uses them; arXiv:2411.19753.
* ``<gazebo><joint>``, a joint of SDFormat, whose frame is where it is at the zero position of the
  tree ("Model a 4-bar linkage in SDFormat and URDF" of the Gazebo tutorials).
* Files beside a URDF with ``closed_loop``, ``type`` and ``name_mot``, of
  Gepetto/example-parallel-robots; arXiv:2504.04767.

Other elements that close loops are refused with the sentence that says what to write instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.assembly import MOVING_JOINT_TYPES, Joint, RobotDescription
from hodyn_ros.model.elements import (
    InvalidError,
    child_of,
    needed_child,
    number_of,
    numbers_in,
    numbers_of,
    origin_of,
    plain_tag,
    read_element,
    text_of,
)
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.typing import Array

GivenLoops = Sequence[Loop | Coupling] | str | os.PathLike[str]
"""Loops to be closed, path or text of a file beside a URDF that states some, or `LEFT_OPEN`."""
LEFT_OPEN = 'open'
"""Instead of loops: those of the description are left open."""

ENDS = 'predecessor', 'successor'
"""Of loops and couplings in URDF+."""
TYPES = {'weld': 'fixed', 'hinge': 'revolute', 'ball': 'spherical', 'slider': 'prismatic'}
"""Of joints that close loops, by the kinds of loops."""

_Reader = Callable[[Element, '_Tree'], Loop | Coupling | None]

# Kinds of loops by the types of joints that close them.
_KINDS = {
    **{type_: kind for kind, type_ in TYPES.items()},
    'weld': 'weld',
    '6d': 'weld',
    'continuous': 'hinge',
    'hinge': 'hinge',
    'ball': 'ball',
    '3d': 'ball',
}


def read_loops(robot: Element, description: RobotDescription) -> RobotDescription:
    """Description together with its closed loops, independent joints and start.

    Parameters
    ----------
    robot : Element
        Root of the URDF.
    description : RobotDescription
        Its links and joints.

    Returns
    -------
    RobotDescription
        With an error in place of a loop that is not supported or cannot be read.
    """
    elements, joints = [*_elements(robot)], description.joints
    if not elements and robot.find('joint[@independent]') is None:
        return description
    tree, found = _Tree(joints), []
    for reader, element in elements:
        item: Loop | Coupling | ModelError | None
        try:
            item = read_element(reader, element, tree)
        except ModelError as error:
            item = error
        if item is not None:
            found.append(item)
    start = {
        joint.get('name', ''): read_element(number_of, joint, 'start')
        for joint in robot.iterfind('joint[@start]')
    }
    independent = _independent(robot, joints)
    return replace(description, loops=tuple(found), independent=independent, start=start)


def _independent(robot: Element, joints: Sequence[Joint]) -> tuple[str, ...]:
    """Joints with motors as URDF+ states them, empty if nothing is stated.

    Where some are stated not to be independent, those without the attribute are; else those alone
    that are stated to be so.
    """
    stated = {
        joint.get('name'): joint.get('independent') in ('true', 'True')
        for joint in robot.iterfind('joint[@independent]')
    }
    others = not all(stated.values())
    return tuple(
        joint.name
        for joint in joints
        if joint.type in MOVING_JOINT_TYPES
        and joint.mimic is None
        and stated.get(joint.name, others)
    )


class _Tree:
    """Links of a description at zero position, in the frame of its root."""

    def __init__(self, joints: Sequence[Joint]) -> None:
        self.joint_to = {joint.child: joint for joint in joints}
        ends = ((joint.parent, joint.child) for joint in joints)
        self.links = dict.fromkeys(chain.from_iterable(ends))

    def way(self, link: str) -> list[Joint]:
        """Joints from the root to a link; `Assembly` refuses what is no tree."""
        way: list[Joint] = []
        while link in self.joint_to and len(way) < len(self.joint_to):
            way.insert(0, self.joint_to[link])
            link = way[0].parent
        return way

    def moving(self, link: str, other: str = '') -> list[str]:
        """Names of the joints that move a link and not the other one."""
        fixed = {joint.name for joint in self.way(other)}
        return [
            joint.name
            for joint in self.way(link)
            if joint.type != 'fixed' and joint.name not in fixed
        ]

    def frame(self, name: str) -> Array:
        """Pose (4, 4) of a link, or of the whole model."""
        if name not in self.links and name != '__model__':
            raise InvalidError(
                f'the frame {name!r} is no link; the links are {listed(self.links)}'
            )
        frame = np.eye(4)
        for joint in self.way(name):
            frame = frame @ joint.origin
        return frame


# What to write instead of the elements of other proposals and tools: ros/urdfdom#264, Isaac Sim,
# Drake, and RobotLocomotion/drake#18803.
_INSTEAD = {
    'constraint': '<parent> and <parent_origin> are its <predecessor> with an <origin>, <child> '
    'and <child_origin> its <successor>, and <parent_axis> is its <axis>',
    'loop_joint': 'link1 is its <predecessor> with an <origin>, link2 its <successor>, and a '
    'hinge or slider needs its <axis>',
    'ball_constraint': 'its type is spherical, and the points are the <origin> of its '
    '<predecessor> and of its <successor>',
    'weld_constraint': 'its type is fixed, the parent its <predecessor> and the child its '
    '<successor>',
}


def _elements(robot: Element) -> Iterator[tuple[_Reader, Element]]:
    """Elements that close loops or couple joints, each with its reader."""
    for child in robot:
        tag = plain_tag(child)
        if tag in _READERS:
            yield _READERS[tag], child
        elif tag in _INSTEAD or tag.endswith('_constraint'):
            yield _refuse, child
        elif tag == 'gazebo':
            yield from ((_gazebo_joint, joint) for joint in child.iterfind('joint'))


def _refuse(element: Element, _: _Tree) -> None:
    """Refuse an element of another dialect with what to write instead."""
    tag = plain_tag(element)
    raise ModelError(
        f'<{tag}> is not read: write it as <loop> of URDF+'
        + (f', where {_INSTEAD[tag]}.' if tag in _INSTEAD else ' or <joint> in <gazebo>.')
    )


def _kind(owner: str, given: str) -> str:
    if given not in _KINDS:
        raise ModelError(
            f'{owner}: a loop of type {given!r} is not supported; expected one of '
            f'{listed(_KINDS)}.'
        )
    return _KINDS[given]


def _named(element: Element) -> tuple[str, str]:
    """Name of a loop and its kind."""
    name = text_of(element, 'name')
    return name, _kind(f'<{element.tag}> {name!r}', text_of(element, 'type'))


def _loop(element: Element, _: _Tree) -> Loop:
    """URDF+: the axis is in the frames of the loop in both links."""
    name, kind = _named(element)
    ends = [needed_child(element, side) for side in ENDS]
    a, b = (text_of(end, 'link') for end in ends)
    pose_a, pose_b = (origin_of(f'<loop> {name!r}', end) for end in ends)
    axis = numbers_of(child_of(element, 'axis'), 'xyz', [1.0, 0.0, 0.0])
    return Loop(name, kind, a, b, pose_a, pose_b, axis)


def _coupling(element: Element, tree: _Tree) -> Coupling:
    """URDF+: the successor turns by ratio times the predecessor.

    Sums of the joints on the ways to both links from where these part, without signs for the
    directions of their axes (`explicitRollingConstraint` in generalized_rbda).
    """
    name = text_of(element, 'name')
    before, after = (text_of(needed_child(element, side), 'link') for side in ENDS)
    ways = tree.moving(before, after), tree.moving(after, before)
    for link, way in zip((before, after), ways):
        if not way:
            raise ModelError(
                f'<coupling> {name!r}: no joint moves {link!r} from where its links part, '
                'expected one at least.'
            )
    ratio = float(numbers_of(child_of(element, 'ratio'), 'value', [1.0])[0])
    *others, joint = ways[1]
    follows = (*ways[0], *others)
    ratios = [ratio] * len(ways[0]) + [-1.0] * len(others)
    return Coupling(
        name, joint, follows if len(follows) > 1 else follows[0], (0.0, *ratios)
    )


def _gazebo_joint(element: Element, tree: _Tree) -> Loop | None:
    """SDFormat: pose relative to the child, axis in the frame of the joint, unless they say."""
    parent, child = (element.findtext(end, '').strip() for end in ('parent', 'child'))
    if parent == 'world' and parent not in tree.links:
        if not tree.moving(child):
            return None
        parent = tree.way(child)[0].parent
    placed = sdf_frame(element, child, tree.frame)
    axis = sdf_axis(child_of(element, 'axis'), placed, tree.frame)
    pose_a, pose_b = (se3.inverse(tree.frame(link)) @ placed for link in (parent, child))
    return Loop(*_named(element), parent, child, pose_a, pose_b, axis)


def sdf_frame(element: Element, carrier: str, frame: Callable[[str], Array]) -> Array:
    """Frame (4, 4) of an element of SDFormat with a <pose>, at zero position.

    Parameters
    ----------
    element : Element
    carrier : str
        What the pose is relative to, unless it says so.
    frame : callable
        Of a name.
    """
    pose = child_of(element, 'pose')
    if pose is None:
        return frame(carrier)
    stated = {key: value for key, value in pose.attrib.items() if value}
    if {*stated} - {'relative_to'}:
        raise InvalidError(f'<pose> has {listed(stated)}, expected relative_to only')
    values = numbers_in('<pose> is', pose.text or '0 0 0 0 0 0', 6)
    if not np.isfinite(values).all():
        raise InvalidError(f'<pose> is {pose.text!r}, expected finite numbers')
    local = se3.pose(so3.from_rpy(values[3:]), values[:3])
    placed: Array = frame(pose.get('relative_to') or carrier) @ local
    return placed


def sdf_axis(
    axis: Element | None,
    placed: Array,
    frame: Callable[[str], Array],
    of_model: bool = False,
) -> Array:
    """Direction (3,) of an <axis> of SDFormat in the frame of its joint.

    Parameters
    ----------
    axis : Element or None
    placed, frame
        Frame (4, 4) of the joint, and that of a name.
    of_model : bool
        Whether axes are in that of the model unless they say otherwise.
    """
    xyz = None if axis is None else axis.find('xyz')
    if axis is None or xyz is None:
        return np.array([0.0, 0.0, 1.0])
    direction = numbers_in('<xyz> is', xyz.text or '', 3)
    stated = axis.findtext('use_parent_model_frame', str(of_model)).strip()
    expressed = xyz.get('expressed_in') or '__model__' * (stated in ('1', 'true', 'True'))
    if not expressed:
        return direction
    turned: Array = placed[:3, :3].T @ frame(expressed)[:3, :3] @ direction
    return turned


_READERS: dict[str, _Reader] = {'loop': _loop, 'coupling': _coupling}


def given_loops(
    given: GivenLoops | None, description: RobotDescription
) -> tuple[list[Loop | Coupling], list[str] | None]:
    """Loops that are given beside a description, and the joints with motors if these are stated.

    Parameters
    ----------
    given : sequence of Loop or Coupling, str, path-like or None
        'open' leaves all loops open, as an empty sequence does. A text or a file has
        `closed_loop`, pairs of links, or of joints in place of those behind them, that are held
        together, `type`, for each pair 3d (a point) or 6d (all), and `name_mot`, a part of the
        names of joints with motors or a list of these names.
    description : RobotDescription
        What the loops belong to.

    Returns
    -------
    loops : list of Loop or Coupling
    independent : list of str or None

    Raises
    ------
    ModelError
        If the file cannot be read or says what is not supported.
    """
    if given is None or given == LEFT_OPEN:
        return [], None
    if isinstance(given, Sequence) and not isinstance(given, str):
        return list(given), None
    if not isinstance(given, (str, os.PathLike)):
        raise ModelError(
            f'The loops are {given!r}, expected some of Loop and Coupling, or a file or text.'
        )
    contents = _side_file(given)
    loops = _of_side_file(contents, description)
    motors = contents.get('name_mot')
    if isinstance(motors, str):
        moving = (joint for joint in description.joints if joint.mimic is None)
        names = [joint.name for joint in moving if joint.type in MOVING_JOINT_TYPES]
        motors = [name for name in names if motors in name]
    return loops, motors


def remarks_on_open(joint_names: Sequence[str], description: RobotDescription) -> list[str]:
    """Remarks on loops of a description that its model leaves open.

    Parameters
    ----------
    joint_names : sequence of str
        Of the model.
    description : RobotDescription
    """
    stated = description.independent
    if description.loops:
        return [
            f'{len(description.loops)} loops or couplings of the description are left open, as '
            'asked for: efforts are those of the tree without them.'
        ]
    if not stated or {*joint_names} <= {*stated}:
        return []
    return [
        f'The description states that {listed(stated, 3)} are independent joints, but not how '
        'others depend on them: all are independent.'
    ]


def _of_side_file(
    contents: Mapping[str, Any], description: RobotDescription
) -> list[Loop | Coupling]:
    """Loops of the contents of a file beside a description."""
    pairs, types = contents['closed_loop'], contents.get('type')
    types = ['6d'] * len(pairs) if types is None else types
    are_pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    if len(types) != len(pairs) or not are_pairs:
        raise ModelError(
            f'The loops have closed_loop {pairs!r} and type {types!r}, expected two links and a '
            'type for each.'
        )
    links = {joint.name: joint.child for joint in description.joints}
    links |= {link.name: link.name for link in description.links}
    loops: list[Loop | Coupling] = []
    for (a, b), given in zip(pairs, types):
        kind = _kind(f'Loop {a!r} to {b!r}', str(given).lower())
        loops.append(Loop(f'{a} to {b}', kind, links.get(a, a), links.get(b, b)))
    return loops


def _side_file(given: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Contents of a text or file in YAML with loops."""
    import yaml  # takes longer than to read a URDF

    names_loops = isinstance(given, str) and 'closed_loop' in given
    is_text = names_loops and not os.path.isfile(given)  # which may have this name
    try:
        text = given if is_text else Path(given).expanduser().read_text(encoding='utf-8')
        contents = yaml.safe_load(str(text))
    except FileNotFoundError:
        hint = did_you_mean(given, (LEFT_OPEN,))
        raise ModelError(
            f'The loops are {str(given)!r}{hint}, expected a YAML file that exists, its text with '
            f'closed_loop, or {LEFT_OPEN!r}.'
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ModelError(f'The loops cannot be read: {error}') from error
    if not isinstance(contents, dict) or not isinstance(contents.get('closed_loop'), list):
        raise ModelError(
            f'The loops are {contents!r}, expected closed_loop: pairs of links, type and name_mot.'
        )
    if contents.get('joint_name'):
        raise ModelError(
            f'joint_name {contents["joint_name"]!r} replaces types of joints, which is not '
            'supported: write such joints into the URDF, a spherical one as three that turn.'
        )
    return contents
