"""A parallel ankle in URDF+: two cranks tilt a foot by rods, which end in balls."""


def _link(name, mass, com, moments):
    xx, yy, zz = moments
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def _joint(name, parent, child, at, axis, extra=''):
    return (
        f'<joint name="{name}" type="revolute"{extra}><origin xyz="{at}"/>'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
        '<limit lower="-1" upper="1" effort="60" velocity="10"/></joint>'
    )


def _side(side, y):
    crank, rod = f'{side}_crank', f'{side}_rod'
    return ''.join(
        [
            _link(crank, 0.2, '-0.025 0 0', (1e-4, 2e-4, 2e-4)),
            f'<link name="{side}_cross"/>',
            _link(rod, 0.3, '0 0 -0.15', (2.5e-3, 2.5e-3, 1e-4)),
            _joint(f'{side}_motor', 'shin', crank, f'0 {y} 0', '0 1 0', _INDEPENDENT),
            _joint(f'{side}_swing', crank, f'{side}_cross', '-0.05 0 0', '0 1 0'),
            _joint(f'{side}_tilt', f'{side}_cross', rod, '0 0 0', '1 0 0'),
            f'<loop name="{side}_ball" type="spherical">'
            f'<predecessor link="{rod}"><origin xyz="0 0 -0.3"/></predecessor>'
            f'<successor link="foot"><origin xyz="-0.05 {y} 0"/></successor></loop>',
        ]
    )


_INDEPENDENT = ' independent="true"'
PARALLEL_ANKLE = ''.join(
    [
        '<robot name="ankle"><link name="shin"/><link name="cross"/>',
        _link('foot', 1.2, '0.05 0 -0.06', (2e-3, 6e-3, 7e-3)),
        _joint('pitch', 'shin', 'cross', '0 0 -0.3', '0 1 0'),
        _joint('roll', 'cross', 'foot', '0 0 0', '1 0 0'),
        _side('left', 0.04),
        _side('right', -0.05),
        '</robot>',
    ]
)
