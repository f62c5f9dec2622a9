"""What a robot description says and the reader of URDF leaves out.

URDF has dialects: elements and attributes of simulators and of extensions, which a parser that
does not know them skips. Here is what is known to be harmless, and what becomes of the rest: a
warning where the tree of links and joints is meaningful without it, an error where it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from hodyn_ros.errors import ModelError

# Elements that say nothing about the motion of rigid bodies, by the one they stand in.
_HARMLESS = {
    'robot': set(
        'link joint material transmission gazebo ros2_control ros_control sensor mujoco group '
        'group_state disable_collisions end_effector plugin self_collision_checking'.split()
    ),
    'link': set('inertial visual collision self_collision_checking sensor contact'.split()),
    'joint': set(
        'origin parent child axis mimic limit dynamics calibration safety_controller '
        'hardwareInterface'.split()
    ),
    'inertial': {'origin', 'mass', 'inertia'},
}

# Elements of the robot that close loops or couple joints, by their dialect.
_LOOPS = {
    'loop': 'URDF+',
    'coupling': 'URDF+',
    'constraint': 'urdfdom #264',
    'loop_joint': 'Isaac Sim',
}

_ATTRIBUTES = {
    'origin': {'xyz', 'rpy', 'quat_xyzw'},
    'mass': {'value'},
    'inertia': {'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'},
    'axis': {'xyz'},
    'limit': {'lower', 'upper', 'effort', 'velocity', 'acceleration', 'deceleration', 'jerk'},
    'mimic': {'joint', 'multiplier', 'offset'},
    'dynamics': {'damping', 'friction'},
    'joint': {'name', 'type'},
}
# Those of them without which the tree has another pose, inertia or dependence.
_ESSENTIAL = {'origin', 'mass', 'inertia', 'mimic'}


def unread(robot: Element) -> Iterator[str]:
    """Warnings of what a description says and the model of its tree does not hold.

    Raises
    ------
    ModelError
        If an attribute that is not known may change a pose, an inertia or what a joint follows.
    """
    yield from _loops(robot)
    skipped: Counter[tuple[str, str]] = Counter()
    links, joints = robot.findall('link'), robot.findall('joint')
    for owner in (robot, *links, *joints, *robot.iterfind('link/inertial')):
        known = _HARMLESS[owner.tag]
        skipped.update(
            (owner.tag, child.tag)
            for child in owner
            if isinstance(child.tag, str) and child.tag not in known and not _is_loop(child)
        )
    for (owner_tag, tag), count in skipped.items():
        times = '' if count == 1 else f' ({count} times)'
        yield f'<{_plain(tag)}> in <{owner_tag}>{times} is no element of URDF and is not read.'
    for owner in (*links, *joints):
        yield from _attributes(owner)


def _loops(robot: Element) -> Iterator[str]:
    """Warnings of closed loops and of joints that are coupled."""
    found = [(child, _LOOPS.get(child.tag, 'Drake')) for child in robot if _is_loop(child)]
    found += [(joint, 'Gazebo') for joint in robot.iterfind('gazebo/joint')]
    for element, dialect in found:
        yield (
            f'<{_plain(element.tag)} name={element.get("name", "")!r}> ({dialect}) closes a loop '
            'or couples joints, which is not read: efforts are those of the tree without it.'
        )


def _is_loop(element: Element) -> bool:
    tag = element.tag
    return isinstance(tag, str) and (tag in _LOOPS or ('}' in tag and tag.endswith('_constraint')))


def _attributes(owner: Element) -> Iterator[str]:
    """Warnings of attributes of a link's inertial element or of a joint that are not known."""
    what = f'{owner.tag.capitalize()} {owner.get("name")!r}'
    read = owner.iterfind('inertial/*') if owner.tag == 'link' else (owner, *owner)
    for element in read:
        for name in sorted(set(element.attrib) - _ATTRIBUTES.get(element.tag, {*element.attrib})):
            said = f'{what}: <{element.tag}> has the attribute {_plain(name)!r}'
            if element.tag in _ESSENTIAL:
                raise ModelError(
                    f'{said}, which is not known and may change the dynamics; expected '
                    f'{", ".join(sorted(_ATTRIBUTES[element.tag]))}. Write it with these.'
                )
            yield f'{said}, which is not read.'


def _plain(tag: str) -> str:
    """Name without its namespace."""
    return tag.rpartition('}')[2]
