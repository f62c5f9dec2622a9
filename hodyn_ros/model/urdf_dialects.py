"""What a robot description says and the reader of URDF leaves out.

URDF has dialects: elements and attributes of simulators and of extensions, which a parser that
does not know them skips. Here is what is known to be harmless, and what becomes of the rest: a
warning where the tree of links and joints is meaningful without it, an error where it is not.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from hodyn_ros.errors import ModelError
from hodyn_ros.names import listed

VERSIONS = ('1.0', '1.1', '1.2')
"""Of URDF, those that are read."""

# Elements that are read, by the one they stand in.
_KNOWN = {
    'robot': {'link', 'joint'},
    'link': {'inertial'},
    'joint': {'origin', 'parent', 'child', 'axis', 'mimic', 'limit', 'dynamics'},
    'inertial': {'origin', 'mass', 'inertia'},
}
# Elements that say nothing about the motion of rigid bodies wherever they stand: shapes, contact,
# sensors, drives, and what simulators and planners add.
_HARMLESS = set(
    'visual collision material contact surface self_collision_checking collision_checking '
    'self_filter collision_filter_group disable_collisions transmission ros2_control ros_control '
    'hardwareInterface calibration safety_controller sensor gazebo mujoco plugin group '
    'group_state end_effector'.split()
)

# Elements of a robot that close loops or couple joints, by their dialect.
_LOOPS = {
    'loop': 'URDF+',
    'coupling': 'URDF+',
    'constraint': 'of closed chains',
    'loop_joint': 'Drake, Isaac Sim',
}

_ATTRIBUTES = {
    'origin': {'xyz', 'rpy', 'quat_xyzw'},
    'mass': {'value'},
    'inertia': {'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'},
    'axis': {'xyz'},
    'parent': {'link'},
    'child': {'link'},
    'limit': {'lower', 'upper', 'effort', 'velocity', 'acceleration', 'deceleration', 'jerk'},
    'mimic': {'joint', 'multiplier', 'offset'},
    'dynamics': {'damping', 'friction'},
    'joint': {'name', 'type', 'dont_collapse'},  # the last one: of simulators, about fixed joints
}
# Those of them that urdfdom ignores below a version, and its index.
_SINCE = {'quat_xyzw': 1, 'acceleration': 2, 'deceleration': 2, 'jerk': 2}
# Those without which the tree has another pose, inertia, axis or dependence.
_ESSENTIAL = {'origin', 'mass', 'inertia', 'axis', 'parent', 'child', 'mimic'}


class Remarks:
    """Remarks on links, joints and other elements: one for each kind, with those it is about."""

    _MOST_NAMED = 3

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, kind: str, name: str, text: str) -> None:
        """Remark on one element, such as the joint 'a'; the text suits any number of them."""
        self._names.setdefault((kind, text), []).append(name)

    def texts(self) -> list[str]:
        """All remarks in the order of their first elements."""
        return [
            f'{kind}{"s" if len(names) > 1 else ""} {listed(map(repr, names), self._MOST_NAMED)}: '
            f'{text}'
            for (kind, text), names in self._names.items()
        ]


def version_index(robot: Element) -> int:
    """Index in `VERSIONS` of what the robot states; what is none of them is read as the last."""
    stated = robot.get('version', VERSIONS[0])
    return VERSIONS.index(stated) if stated in VERSIONS else len(VERSIONS) - 1


def remark_unread(robot: Element, remarks: Remarks) -> None:
    """Remark on what a description says and the model of its tree, or another parser, leaves out.

    Raises
    ------
    ModelError
        If something that is not known may change the tree, a pose, an axis, an inertia or what a
        joint follows.
    """
    links, joints = robot.findall('link'), robot.findall('joint')
    _remark_newer_version(robot, remarks)
    _remark_loops(robot, remarks)
    for owner in (robot, *links, *joints, *robot.iterfind('link/inertial')):
        for child in owner:
            if isinstance(child.tag, str) and child.tag not in _KNOWN[owner.tag]:
                _remark_element(owner, child, remarks)
    for owner in (*links, *joints):
        read = owner.iterfind('inertial/*') if owner.tag == 'link' else (owner, *owner)
        for element in read:
            _remark_attributes(owner, element, remarks)
            _remark_version(version_index(robot), owner, element, remarks)


def _remark_newer_version(robot: Element, remarks: Remarks) -> None:
    version = robot.get('version', VERSIONS[0])
    if version not in VERSIONS:
        remarks.add(
            'Version', version, f'it is none of {listed(VERSIONS)} and read as the last of them; '
            'what it adds is not read.',
        )  # fmt: skip


def _remark_loops(robot: Element, remarks: Remarks) -> None:
    found = [(child, dialect) for child in robot if (dialect := _loop_dialect(child))]
    # Another joint in an element of Gazebo only holds the base, which is at rest here.
    found += [
        (joint, 'Gazebo')
        for joint in robot.iterfind('gazebo/joint')
        if joint.findtext('parent') != 'world'
    ]
    for element, dialect in found:
        remarks.add(
            'Loop', _name(element), f'<{_plain(element.tag)}> ({dialect}) closes a loop '
            'or couples joints, which is not read; efforts are those of the tree without it.',
        )  # fmt: skip


def _loop_dialect(element: Element) -> str:
    tag = element.tag if isinstance(element.tag, str) else ''
    return 'Drake' if _plain(tag).endswith('_constraint') else _LOOPS.get(tag, '')


def _remark_element(owner: Element, child: Element, remarks: Remarks) -> None:
    plain = _plain(child.tag)
    if plain in _HARMLESS or (owner.tag == 'robot' and _loop_dialect(child)):
        return
    if plain in _KNOWN[owner.tag]:
        raise ModelError(
            f'<{plain} name={child.get("name")!r}> in <{owner.tag}> belongs to the namespace '
            f'{child.tag[1:].partition("}")[0]}, whose meaning is not known; expected the element '
            'of URDF. Write it without the prefix, or without the element.'
        )
    named = child if owner.tag == 'robot' else owner
    kind = 'Element' if owner.tag == 'robot' else owner.tag.capitalize()
    remarks.add(
        kind, _name(named), f'<{plain}> in <{owner.tag}> is no element of URDF and is not '
        'read.',
    )  # fmt: skip


def _remark_attributes(owner: Element, element: Element, remarks: Remarks) -> None:
    """Remark on attributes that are not known, of a joint or of what it or an inertial holds."""
    known = _ATTRIBUTES.get(element.tag, {*element.attrib})
    unknown = sorted({*element.attrib} - known)
    if not unknown:
        return
    if element.tag in _ESSENTIAL:
        raise ModelError(
            f'{owner.tag.capitalize()} {owner.get("name")!r}: <{element.tag}> has '
            f'{listed(unknown)}, which is not known and may change the dynamics; expected '
            f'{listed(sorted(known))}. Write it with these.'
        )
    text = f'<{element.tag}> has {listed(unknown)}, which is not read.'
    remarks.add(owner.tag.capitalize(), _name(owner), text)


def _remark_version(version: int, owner: Element, element: Element, remarks: Remarks) -> None:
    """Remark on attributes that are read, but that other parsers ignore for the stated version."""
    given = {name: _SINCE[name] for name in sorted({*element.attrib} & {*_SINCE})}
    since = max(given.values(), default=0)
    if version < since:
        text = (
            f'{listed(given)} of <{element.tag}> is read, but other parsers ignore it below '
            f'version {VERSIONS[since]} of URDF: write <robot version="{VERSIONS[since]}">.'
        )
        remarks.add(owner.tag.capitalize(), _name(owner), text)


def _name(element: Element) -> str:
    return element.get('name', 'without a name')


def _plain(tag: str) -> str:
    """Name without its namespace."""
    return tag.rpartition('}')[2]
