"""Small robot descriptions for tests."""

from __future__ import annotations


def link(name: str, mass: float = 1.0, inertia: str = '', extra: str = '') -> str:
    """Link with its centre of mass 0.2 m along x."""
    inertia = inertia or 'ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.025"'
    return (
        f'<link name="{name}"><inertial><origin xyz="0.2 0.01 0"/><mass value="{mass}"/>'
        f'<inertia {inertia}/></inertial>{extra}</link>'
    )


def joint(
    name: str,
    parent: str,
    child: str,
    kind: str = 'revolute',
    axis: str | None = '0 1 0',
    extra: str = '',
) -> str:
    """Joint 0.4 m along x of its parent."""
    axis_element = '' if axis is None else f'<axis xyz="{axis}"/>'
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="0.4 0 0.05" rpy="0.1 0 0.2"/>'
        f'<parent link="{parent}"/><child link="{child}"/>{axis_element}'
        f'<limit lower="-2" upper="2" velocity="3" effort="50"/>{extra}</joint>'
    )


def robot(*elements: str, name: str = 'arm') -> str:
    """Robot description from its elements."""
    return f'<?xml version="1.0"?><robot name="{name}">{"".join(elements)}</robot>'


TWO_LINK = robot(
    '<link name="base"/>',
    link('upper'),
    link('fore', 0.7),
    '<link name="tool"/>',
    joint('shoulder', 'base', 'upper'),
    joint('elbow', 'upper', 'fore'),
    joint('flange', 'fore', 'tool', kind='fixed'),
)

HEAVIER_TWO_LINK = TWO_LINK.replace('value="0.7"', 'value="1.9"')

OTHER_JOINTS = robot(
    '<link name="base"/>',
    link('slide'),
    joint('rail', 'base', 'slide', kind='prismatic', axis='0 0 1'),
    name='rail',
)
