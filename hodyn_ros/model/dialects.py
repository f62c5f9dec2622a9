"""Elements and attributes of a robot description that the reader of URDF leaves out.

URDF has dialects: elements and attributes of simulators and of extensions, which other parsers
skip. Harmless ones are listed here. Others get a warning if the tree of links and joints is
meaningful without them, and an error if it is not.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from hodyn_ros.errors import ModelError
from hodyn_ros.model.assembly import Dynamics, Mimic
from hodyn_ros.model.elements import FALLING, FALLING_LIMITS, INERTIA, LIMITS
from hodyn_ros.names import listed

VERSIONS = ('1.0', '1.1', '1.2')
"""Supported versions of URDF."""

# Elements of URDF+ that close loops or couple joints, see `hodyn_ros.model.loops_in_xml`.
_LOOPS = {
    'loop': {'predecessor', 'successor', 'axis'},
    'coupling': {'predecessor', 'successor', 'ratio'},
}
# Elements that are read, by the one they stand in.
_KNOWN = {
    'robot': {'link', 'joint', *_LOOPS},
    'link': {'inertial'},
    'joint': {
        *('origin', 'parent', 'child', 'axis', 'mimic', 'limit', 'dynamics'),
        FALLING,
    },
    'inertial': {'origin', 'mass', 'inertia'},
    **dict.fromkeys(('predecessor', 'successor'), {'origin'}),
    **_LOOPS,
}
# Elements that say nothing about the motion of rigid bodies wherever they stand: shapes, contact,
# sensors, drives, and what simulators and planners add.
_HARMLESS = set(
    'visual collision material contact surface self_collision_checking collision_checking '
    'self_filter collision_filter_group disable_collisions transmission ros2_control ros_control '
    'hardwareInterface calibration safety_controller sensor gazebo mujoco plugin group '
    'group_state end_effector'.split()
)

_ATTRIBUTES = {
    'origin': {'xyz', 'rpy', 'quat_xyzw'},
    'mass': {'value'},
    'inertia': {*INERTIA},
    'axis': {'xyz'},
    'parent': {'link'},
    'child': {'link'},
    'limit': {*LIMITS, 'deceleration'},
    FALLING: {*FALLING_LIMITS},
    'mimic': {*Mimic._fields},
    'dynamics': {*Dynamics._fields},
    # dont_collapse is an attribute of simulators, about fixed joints.
    'joint': {'name', 'type', 'independent', 'start', 'dont_collapse'},
    'predecessor': {'link'},
    'successor': {'link'},
    'ratio': {'value'},
    **dict.fromkeys(_LOOPS, {'name', 'type'}),
}
# Attributes that urdfdom ignores below a version.
_SINCE = {'quat_xyzw': '1.1', 'acceleration': '1.2', 'deceleration': '1.2', 'jerk': '1.2'}
# Elements in which an unknown attribute is refused.
_ESSENTIAL = {
    *('origin', 'mass', 'inertia', 'axis', 'parent', 'child', 'mimic'),
    *(tag for children in _LOOPS.values() for tag in children),
}


class Remarks(dict[tuple[str, str], list[str]]):
    """Remarks on links, joints and other elements: by kind and text, the names of those.

    At most `MOST_NAMED` names are in the text of a remark.
    """

    MOST_NAMED = 3

    def add(self, kind: str, element: Element, text: str) -> None:
        """Remark on one element, such as a joint; the text suits any number of them."""
        self.setdefault((kind, text), []).append(element.get('name', 'without a name'))

    def texts(self) -> list[str]:
        """All remarks in the order of their first elements."""
        return [
            f'{kind}{"s" if len(names) > 1 else ""} {listed(map(repr, names), self.MOST_NAMED)}: '
            f'{text}'
            for (kind, text), names in self.items()
        ]


def remark_unread(robot: Element, remarks: Remarks) -> str:
    """Remark on parts of a description that its model, or another parser, leaves out.

    Returns
    -------
    str
        Version that the robot states; one that is not among `VERSIONS` counts as the last.

    Raises
    ------
    ModelError
        If an unknown element or attribute may change the tree, a pose, an axis, an inertia or a
        mimic joint.
    """
    version = robot.get('version', VERSIONS[0])
    if version not in VERSIONS:
        text = (
            f'version {version!r} of URDF is none of {listed(VERSIONS)} and read as the last of '
            'them; what it adds is not read.'
        )
        remarks.add('Robot', robot, text)
        version = VERSIONS[-1]
    _remark(robot, robot, version, remarks)
    return version


def _remark(owner: Element, element: Element, version: str, remarks: Remarks) -> None:
    """Remark on an element and all in it, which belong to a link, a joint or a loop."""
    _remark_attributes(version, owner, element, remarks)
    for child in element:
        if not isinstance(child.tag, str):
            continue  # a comment
        if child.tag in _KNOWN.get(element.tag, ()):
            _remark(child if element.tag == 'robot' else owner, child, version, remarks)
        elif element.tag in _KNOWN:
            _remark_element(owner, element, child, remarks)


def _remark_element(
    owner: Element, parent: Element, child: Element, remarks: Remarks
) -> None:
    """Remark on an element that is not read, unless it is harmless."""
    namespace, _, plain = child.tag.removeprefix('{').rpartition('}')
    if parent.tag == 'robot' and plain.endswith(('constraint', 'loop_joint')):
        return  # refused with the loops
    if plain in _KNOWN[parent.tag]:
        raise ModelError(
            f'<{plain} name={child.get("name")!r}> in <{parent.tag}> belongs to the namespace '
            f'{namespace}, whose meaning is not known; expected the element of URDF. Write it '
            'without the prefix, or leave it out.'
        )
    if plain not in _HARMLESS:
        text = f'<{plain}> in <{parent.tag}> is no element of URDF and is not read.'
        if parent.tag == 'robot':
            remarks.add('Element', child, text)
        else:
            remarks.add(owner.tag.capitalize(), owner, text)


def _remark_attributes(
    version: str, owner: Element, element: Element, remarks: Remarks
) -> None:
    """Remark on attributes that are not known, or that are ignored for the stated version."""
    known = _ATTRIBUTES.get(element.tag, {*element.attrib})
    unknown = sorted({*element.attrib} - known)
    kind = owner.tag.capitalize()
    if unknown and element.tag in _ESSENTIAL:
        raise ModelError(
            f'{kind} {owner.get("name")!r}: <{element.tag}> has {listed(unknown)}, which is not '
            f'known and may change the dynamics; expected {listed(sorted(known))}. Write it with '
            'these.'
        )
    if unknown:
        remarks.add(
            kind, owner, f'<{element.tag}> has {listed(unknown)}, which is not read.'
        )
    given = {name: _SINCE[name] for name in sorted({*element.attrib} & {*_SINCE})}
    since = max(given.values(), default=version)
    if version < since:
        text = (
            f'{listed(given)} of <{element.tag}> is read, but other parsers ignore it below '
            f'version {since} of URDF: write <robot version="{since}">.'
        )
        remarks.add(kind, owner, text)
