"""`hodyn info`: what is known of a robot, or which robots there are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hodyn_ros.analysis.limits import find_unlimited
from hodyn_ros.cli.config import DESCRIPTION
from hodyn_ros.cli.output import show
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.model.limits import (
    ANGULAR,
    MAGNITUDES,
    SERIES,
    Limits,
    MotionLimits,
    scaled_limits,
)
from hodyn_ros.model.mechanism import BASE, Closure
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.sources import BUNDLED, EXAMPLE_ROBOT_DATA, example_names
from hodyn_ros.names import listed, name_of, number, unit_of

# Of turning and sliding joints.
_FRICTION_UNITS = {
    'viscous': ('N m s/rad', 'N s/m'),
    'coulomb': ('N m', 'N'),
    'stribeck': ('N m', 'N'),
    'stribeck_velocity': ('rad/s', 'm/s'),
    'smoothing': ('rad/s', 'm/s'),
    'phi1': ('N m', 'N'),
    'phi2': ('s/rad', 's/m'),
    'phi3': ('rad/s', 'm/s'),
    'offset': ('N m', 'N'),
}
_OTHER_ROBOTS = """\
Also robots of robot_descriptions (gen3, xarm7, ...), of ROS packages
(my_package/urdf/robot.urdf), and files (robot.urdf, robot.urdf.xacro, robot.sdf,
robot.xml with MJCF).
hodyn info ROBOT shows what is known of one, hodyn info --help how they are named."""


def info(given: Given, as_json: bool) -> None:
    """Show what is known of a robot, or which robots there are.

    Parameters
    ----------
    given : Given
        Robot; an empty name lists those that there are.
    as_json : bool
        Whether JSON is printed instead of tables.
    """
    show(about(load_problem(given, quiet=True)) if given.robot else _robots(), as_json)


def _robots() -> Answer:
    """Names of robots by the package that they come with."""
    robots = {'hodyn_ros': [*BUNDLED], EXAMPLE_ROBOT_DATA: example_names()}
    parts = []
    for package, names in robots.items():
        absent = f'not installed: pip install {package} adds about 70 robots'
        text = textwrap.fill(', '.join(names) or absent, 90, break_on_hyphens=False)
        parts.append(f'{package}:\n{textwrap.indent(text, "  ")}')
    return Answer([*parts, _OTHER_ROBOTS], robots)


def about(problem: Problem) -> Answer:
    """Joints, limits, friction and masses of a robot, and what is doubtful in its description.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Answer
        Masses in kg, all else in rad, m, N m, N and s.
    """
    # Other commands need not wait.
    from hodyn_ros.identification.outputs import friction_config

    model = problem.model
    links: dict[int, list[str]] = {}
    for name, frame in model.links.items():
        links.setdefault(frame.body, []).append(name)
    joints, followers = _joints(problem, links), _followers(problem, links)
    friction, loops = friction_config(model), _loops(model.closure)
    data = {
        'name': model.name,
        'path': problem.source.path,
        'origin': problem.source.origin,
        'base_link': model.base_link,
        'tip_link': model.tip_link,
        'gravity': model.gravity,
        'moving_mass': model.M_body[:, 5, 5].sum(),
        'limits_from': problem.limits_from,
        'joints': joints,
        'unlimited': find_unlimited(
            model,
            problem.limits,
            actuators=problem.actuators,
            motor_limits=problem.motor_limits,
        ),
        'friction': friction,
        'mimic_joints': followers,
        'loops': loops,
        'fixed_links': links.get(BASE, []),
        'remarks': problem.remarks,
        'warnings': model.warnings,
        'provenance': model.provenance.lines(),
    }
    parts: list[Table | str] = [
        _head(problem, data),
        _joint_table(joints),
        _falling(joints),
        Table('', _FOLLOWERS, followers),
        Table('', _LOOPS, loops),
        *_closing(model.closure),
        _friction_table(model, friction),
        Table('', _ACTUATORS, [joint for joint in joints if 'actuator' in joint]),
        *(f'warning: {text}' for text in model.warnings),
    ]
    return Answer(parts, data)


def _joints(problem: Problem, links: dict[int, list[str]]) -> list[dict[str, Any]]:
    """Records of the joints, with the links that they move by their bodies."""
    model, limits, actuators = problem.model, problem.limits, problem.actuators
    joints = []
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types)):
        body = model.body_names.index(name)
        joint = {
            'name': name,
            'type': kind,
            'units': {
                what: unit_of(ANGULAR[series], kind == 'prismatic', order)
                for what, (series, order) in SERIES.items()
                if what in ('position', *MAGNITUDES)
            },
            **{what: getattr(limits, what)[j] for what in MotionLimits._fields[:-1]},
            'mass': model.M_body[body, 5, 5],
            'links': links.get(body, []),
        }
        if actuators is not None:
            places = [item.motors for item in actuators.driven if item.name == name]
            motors = [motor for place in places for motor in actuators.motor_names[place]]
            of_type = type(actuators[name]).__name__
            joint['actuator'] = {'type': of_type, 'motors': listed(motors)}
        joints.append(joint)
    return joints


def _followers(problem: Problem, links: dict[int, list[str]]) -> list[dict[str, Any]]:
    """Records of the joints that follow others, with the links that they move by their bodies."""
    model, factors = problem.model, problem.limits.follower_factors
    tree = model.tree
    return [
        {
            'name': name,
            'limits': {
                what: limit
                for what, limit in scaled_limits(
                    tree.follower_limits.get(name, Limits()), factors
                )
                ._asdict()
                .items()
                if what != 'effort' and np.isfinite(limit)
            },
            'follows': tree.joint_names[tree.coordinate[body]],
            'multiplier': tree.multiplier[body],
            'offset': tree.offset[body],
            'mass': model.M_body[body, 5, 5],
            'links': links.get(body, []),
        }
        for body, name in enumerate(tree.body_names)
        if name not in tree.joint_names
    ]


def _loops(closure: Closure | None) -> list[dict[str, str]]:
    """Records of what closes the loops of a model."""
    if closure is None:
        return []
    loops = [
        (loop.name, loop.kind, f'{loop.link_a}, {loop.link_b}') for loop in closure.loops
    ]
    loops += [
        (item.name, 'coupling', ', '.join((*item.followed, item.joint)))
        for item in closure.couplings
    ]
    return [dict(zip(('name', 'kind', 'between'), loop)) for loop in loops]


def _head(problem: Problem, data: Mapping[str, Any]) -> str:
    """Lines on the robot as a whole."""
    model, joints, followers = problem.model, data['joints'], data['mimic_joints']
    count = f'{len(joints)} joint{"" if len(joints) == 1 else "s"}'
    count += f', {len(followers)} that follow' * bool(followers)
    behind = f'to {model.tip_link}' if model.tip_link else 'several ends'
    lines = {
        'description': f'{problem.source.path} ({problem.source.origin})',
        'links': f'from {model.base_link}, {behind}',
        'gravity': f'{" ".join(map(number, model.gravity))} m/s^2',
        'limits': problem.limits_from,
        'not limited': '; '.join(item.text for item in data['unlimited']) or 'nothing',
        'friction': _friction_from(problem),
    }
    head = f'{model.name}: {count}, {number(data["moving_mass"])} kg in motion'
    return '\n'.join([head, *(f'  {what:<11}  {text}' for what, text in lines.items())])


def _friction_from(problem: Problem) -> str:
    """Where the friction comes from, or where there is some."""
    given, config = problem.given, problem.config
    is_used = config.values.get('friction') == DESCRIPTION
    if problem.model.friction:
        sources = ['robot description'] * is_used + [config.sources.get('friction', '')]
        return ' and '.join(filter(None, sources))
    items = ('loops:=open', f'friction:={DESCRIPTION}')
    other = replace(given, config=(*given.config, *items))
    known = [*load_problem(other, quiet=True).model.friction]
    if is_used or not known:
        return 'none'
    return f'none; the description has some of {listed(known, 5)} (--config {items[1]} uses it)'


def _joint_table(joints: list[dict[str, Any]]) -> Table:
    """Joints and their limits."""
    limited = list(MAGNITUDES)
    if np.isinf([joint['effort_ddot'] for joint in joints]).all():
        limited.remove('effort_ddot')  # hardly any robot states this one
    units = {
        what: ', '.join(dict.fromkeys(joint['units'][what] for joint in joints))
        for what in ('position', *limited)
    }
    columns = [
        Column('name', 'joint'),
        Column('type'),
        Column(_reach, 'position', units['position']),
        *(Column(what, name_of(what), units[what], infinite='none') for what in limited),
        Column('mass', unit='kg'),
    ]
    return Table('', columns, joints)


def _reach(limits: Mapping[str, float]) -> str:
    """Range of positions between the limits that there are."""
    ends = limits.get('lower', -np.inf), limits.get('upper', np.inf)
    texts = [number(end) if np.isfinite(end) else 'open' for end in ends]
    return ' to '.join(texts) if np.isfinite(ends).any() else 'none'


def _falling(joints: list[dict[str, Any]]) -> str:
    """Which limits of the velocity depend on the position."""
    names = [joint['name'] for joint in joints if np.isfinite(joint['deceleration_limit'])]
    text = (
        f'The velocity limits of {listed(names)} fall towards the limits of the position (see '
        'position_based_velocity_limits in the documentation of URDF).'
    )
    return text * bool(names)


def _law(follower: Mapping[str, Any]) -> str:
    """Position of a joint that follows another one."""
    factor, offset = (number(follower[key]) for key in ('multiplier', 'offset'))
    return f'{factor} * {follower["follows"]} + {offset}'


def _closing(closure: Closure | None) -> list[str]:
    """Which joints the loops move, and where they are closed."""
    if closure is None:
        return []
    names = closure.tree.joint_names
    # What closing leaves of a zero is none of the start.
    start = [*zip(names, np.round(closure.start, 8) + 0.0)]
    moved = listed((names[j] for j in closure.dependent), len(names))
    return [
        f'joints that the loops move: {moved}\n'
        f'closed at: {", ".join(f"{name} {number(x)}" for name, x in start)}',
        closure.remark,
    ]


def _friction_table(model: RobotModel, laws: dict[str, dict[str, float]]) -> Table:
    """Laws by the keys that they have in parameter files."""
    linear = sorted({not model.X[model.body_names.index(name), :3].any() for name in laws})
    columns = [
        Column(key, key, ', '.join(units[kind] for kind in linear))
        for key, units in _FRICTION_UNITS.items()
        if any(law.get(key) for law in laws.values())
    ]
    records = [{'joint': name, **law} for name, law in laws.items()]
    return Table('', [Column('joint', 'friction'), *columns], records)


_FOLLOWERS = (
    Column('name', 'follows'),
    Column(_law, 'position'),
    Column(lambda follower: _reach(follower['limits']), 'limits'),
    Column(
        lambda follower: follower['limits'].get('velocity', np.inf),
        'velocity',
        infinite='none',
    ),
    Column('mass', unit='kg'),
)
_LOOPS = Column('name', 'loop'), Column('kind'), Column('between')
_ACTUATORS = (
    Column('name', 'joint'),
    Column(lambda joint: joint['actuator']['type'], 'actuator'),
    Column(lambda joint: joint['actuator']['motors'], 'motors'),
)
