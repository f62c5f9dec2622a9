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

PANDA_INERTIALS = """
4.970684   0.003875  0.002081  0         0.70337  -0.000139  0.006772 0.70661  0.019169 0.009117
0.646926  -0.003141 -0.02872   0.003495  0.007962 -0.003925  0.010254 0.02811  0.000704 0.025995
3.228604   0.027518  0.039252 -0.066502  0.037242 -0.004761 -0.011396 0.036155 -0.012805 0.01083
3.587895  -0.05317   0.104419  0.027454  0.025853  0.007796 -0.001332 0.019552 0.008641 0.028323
1.225946  -0.011953  0.041065 -0.038437  0.035549 -0.002117 -0.004037 0.029474 0.000229 0.008627
1.666555   0.060149 -0.014117 -0.010517  0.001964  0.000109 -0.001158 0.004354 0.000341 0.005433
0.735522   0.010517 -0.004252  0.061597  0.012516 -0.000428 -0.001196 0.010027 -0.000741 0.004815
"""
"""Of the links of the Panda: mass [kg], centre of mass x, y, z [m], inertia about it [kg m^2] xx,
xy, xz, yy, yz, zz; sources in urdf/panda.urdf, typed from them a second time."""


_ROD = (
    '<inertial><origin xyz="0.2 0 0"/><mass value="1.0"/><inertia ixx="0.001" iyy="0.02" '
    'izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
)
_CRANK = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="20" velocity="5"/>'
FIVE_BAR = f"""
<robot name="five_bar">
  <link name="base"/>
  <link name="left_crank">{_ROD}</link>
  <link name="left_rod">{_ROD}</link>
  <link name="right_crank">{_ROD}</link>
  <link name="right_rod">{_ROD}</link>
  <joint name="left" type="revolute" independent="true">
    <parent link="base"/><child link="left_crank"/>
    <origin xyz="-0.2 0 0" rpy="0 0 2.0"/>{_CRANK}
  </joint>
  <joint name="left_elbow" type="continuous">
    <parent link="left_crank"/><child link="left_rod"/>
    <origin xyz="0.4 0 0" rpy="0 0 -1.2"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="right" type="revolute" independent="true">
    <parent link="base"/><child link="right_crank"/>
    <origin xyz="0.2 0 0" rpy="0 0 1.0"/>{_CRANK}
  </joint>
  <joint name="right_elbow" type="continuous">
    <parent link="right_crank"/><child link="right_rod"/>
    <origin xyz="0.4 0 0" rpy="0 0 1.2"/><axis xyz="0 0 1"/>
  </joint>
  <loop name="pin" type="revolute">
    <predecessor link="left_rod"><origin xyz="0.5 0 0"/></predecessor>
    <successor link="right_rod"><origin xyz="0.5 0 0"/></successor>
    <axis xyz="0 0 1"/>
  </loop>
</robot>
"""
