"""What is known of a robot, as data and as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from hodyn_ros.cli.settings import Drives, RobotLimits
from hodyn_ros.cli.tables import number, table
from hodyn_ros.model.assembly import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.sources import Source
from hodyn_ros.names import listed

UNITS = {
    'position': ('rad', 'm'),
    'velocity': ('rad/s', 'm/s'),
    'acceleration': ('rad/s^2', 'm/s^2'),
    'jerk': ('rad/s^3', 'm/s^3'),
    'effort': ('N m', 'N'),
    'effort_dot': ('N m/s', 'N/s'),
    'effort_ddot': ('N m/s^2', 'N/s^2'),
    'effort_d3': ('N m/s^3', 'N/s^3'),
    'effort_d4': ('N m/s^4', 'N/s^4'),
}
"""Of revolute and of prismatic joints."""

NAMES = {
    'effort': 'torque',
    'effort_dot': 'torque rate',
    'motor_velocity': 'motor velocity',
    'motor_torque': 'motor torque',
    'motor_torque_rate': 'motor torque rate',
}
"""What people call quantities, where their names in programs differ."""

_COLUMNS = ('velocity', 'acceleration', 'jerk', 'effort', 'effort_dot')


def unit(quantity: str, joint_type: str) -> str:
    """Name the unit of a quantity of a joint."""
    return UNITS[quantity][joint_type == 'prismatic']


def as_data(
    model: RobotModel, source: Source, limits: RobotLimits, drives: Drives | None
) -> dict[str, Any]:
    """Everything for programs.

    Parameters
    ----------
    model : RobotModel
    source : Source
    limits : RobotLimits
    drives : Drives, optional

    Returns
    -------
    dict
        Masses in kg; all else in rad, m, N m, N and s.
    """
    values = limits.values
    links = _links_by_body(model)
    joints = []
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types)):
        body = model.body_names.index(name)
        entry = {
            'name': name,
            'type': kind,
            'units': {what: unit(what, kind) for what in ('position', *_COLUMNS)},
            'lower': values.lower[j],
            'upper': values.upper[j],
            **{what: getattr(values, what)[j] for what in _COLUMNS},
            'mass': _mass(model, body),
            'links': links.get(body, []),
        }
        if drives is not None:
            entry['actuator'] = _actuator(drives, name)
        joints.append(entry)
    mimics = [
        {
            'name': name,
            'follows': model.joint_names[model.coordinate[b]],
            'multiplier': model.multiplier[b],
            'offset': model.offset[b],
            'mass': _mass(model, b),
            'links': links.get(b, []),
        }
        for b, name in enumerate(model.body_names)
        if name not in model.joint_names
    ]
    return {
        'name': model.name,
        'path': source.path,
        'origin': source.origin,
        'base_link': model.base_link,
        'tip_link': model.tip_link,
        'gravity': model.gravity,
        'moving_mass': sum(_mass(model, b) for b in range(model.n_bodies)),
        'limits_from': limits.origin,
        'joints': joints,
        'mimic_joints': mimics,
        'fixed_links': links.get(BASE, []),
        'remarks': list(limits.remarks),
        'warnings': model.warnings,
    }


def as_text(
    model: RobotModel, source: Source, limits: RobotLimits, drives: Drives | None
) -> str:
    """Everything for people; see `as_data`."""
    data = as_data(model, source, limits, drives)
    joints = data['joints']
    followers = f', {len(data["mimic_joints"])} that follow' if data['mimic_joints'] else ''
    tip = f'to {model.tip_link}' if model.tip_link else 'whole tree'
    lines = [
        f'{model.name}: {_count(len(joints), "joint")}{followers}, '
        f'{number(data["moving_mass"])} kg in motion',
        f'  description  {source.path} ({source.origin})',
        f'  links        from {model.base_link}, {tip}',
        f'  gravity      {" ".join(number(value) for value in model.gravity)} m/s^2',
        f'  limits       {limits.origin}',
        '',
        table(*_joint_table(joints)),
    ]
    if data['mimic_joints']:
        rows = [
            (
                mimic['name'],
                f'{number(mimic["multiplier"])} * {mimic["follows"]} + {number(mimic["offset"])}',
                number(mimic['mass']),
            )
            for mimic in data['mimic_joints']
        ]
        lines += ['', table(('follows', 'position', 'mass\n[kg]'), rows)]
    if drives is not None:
        rows = [(joint['name'], joint['actuator']['type'], joint['actuator']['motors'])
                for joint in joints]  # fmt: skip
        lines += ['', table(('joint', 'actuator', 'motors'), rows)]
    for remark in (*limits.remarks, *model.warnings):
        lines += ['', f'warning: {remark}']
    return '\n'.join(lines)


def _joint_table(
    joints: list[dict[str, Any]],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows; columns of limits that no joint has are left out."""
    used = [what for what in _COLUMNS if any(np.isfinite(joint[what]) for joint in joints)]
    kinds = {joint['type'] == 'prismatic' for joint in joints}

    def head(title: str, quantity: str) -> str:
        if not kinds:
            return title
        return f'{title}\n[{", ".join(UNITS[quantity][kind] for kind in sorted(kinds))}]'

    rows = [
        (
            joint['name'],
            joint['type'],
            _range(joint['lower'], joint['upper']),
            *(number(joint[what]) for what in used),
            number(joint['mass']),
        )
        for joint in joints
    ]
    titles = (head(NAMES.get(what, what), what) for what in used)
    return ('joint', 'type', head('position', 'position'), *titles, 'mass\n[kg]'), rows


def _range(lower: float, upper: float) -> str:
    if not (np.isfinite(lower) or np.isfinite(upper)):
        return '-'
    return f'{number(lower)} to {number(upper)}'


def _actuator(drives: Drives, joint: str) -> dict[str, Any]:
    motors = [
        name for item in drives.actuators.driven if item.name == joint
        for name in drives.actuators.motor_names[item.motors]
    ]  # fmt: skip
    return {'type': type(drives.actuators[joint]).__name__, 'motors': listed(motors)}


def _mass(model: RobotModel, body: int) -> float:
    return float(model.M_body[body, 5, 5])


def _links_by_body(model: RobotModel) -> dict[int, list[str]]:
    links: dict[int, list[str]] = {}
    for name, frame in model.links.items():
        links.setdefault(frame.body, []).append(name)
    return links


def _count(number_of: int, what: str) -> str:
    return f'{number_of} {what}{"" if number_of == 1 else "s"}'
