"""Commands without a motion: `hodyn info`, `hodyn generate` and `hodyn demo`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from hodyn_ros.analysis.limits import find_unlimited
from hodyn_ros.cli.config import DESCRIPTION
from hodyn_ros.cli.output import show, show_remarks
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.codegen.generate import generate_code
from hodyn_ros.codegen.statements import identifier
from hodyn_ros.control.tracking import tracking_controller
from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples, write_results
from hodyn_ros.model.limits import MAGNITUDES, Limits
from hodyn_ros.model.mechanism import BASE, Closure
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.sources import BUNDLED, EXAMPLE_ROBOT_DATA, example_names
from hodyn_ros.names import listed, name_of, number
from hodyn_ros.plotting.labels import label_of
from hodyn_ros.retiming import retime
from hodyn_ros.trajectory.jtc import JtcMotion
from hodyn_ros.trajectory.references import panda_sinusoids, panda_swing

_DEMO_RATE = 500.0  # Hz
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
_OF_FOLLOWERS = (
    Column('name', 'follows'),
    Column('law', 'position'),
    Column('reach', 'limits'),
    Column('velocity', infinite='none'),
    Column('mass', unit='kg'),
)


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

    model, limits, closure = problem.model, problem.limits, problem.model.closure
    links: dict[int, list[str]] = {}
    for name, frame in model.links.items():
        links.setdefault(frame.body, []).append(name)
    joints = _joints(problem, links)
    mimics = _followers(model, links)
    friction = friction_config(model)
    unlimited = find_unlimited(
        model, limits, actuators=problem.actuators, motor_limits=problem.motor_limits
    )
    loops = [] if closure is None else _loops(closure)
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
        'unlimited': unlimited,
        'friction': friction,
        'mimic_joints': mimics,
        'loops': loops,
        'fixed_links': links.get(BASE, []),
        'remarks': list(problem.remarks),
        'warnings': model.warnings,
        'provenance': model.provenance.lines(),
    }
    count = f'{len(joints)} joint{"" if len(joints) == 1 else "s"}'
    count += f', {len(mimics)} that follow' * bool(mimics)
    lines = {
        'description': f'{problem.source.path} ({problem.source.origin})',
        'links': f'from {model.base_link}, '
        + (f'to {model.tip_link}' if model.tip_link else 'whole tree'),
        'gravity': f'{" ".join(map(number, model.gravity))} m/s^2',
        'limits': problem.limits_from,
        'not limited': '; '.join(item.text for item in unlimited) or 'nothing',
        'friction': _friction_from(problem),
    }
    head = f'{model.name}: {count}, {number(data["moving_mass"])} kg in motion'
    parts: list[Table | str] = [
        '\n'.join([head, *(f'  {what:<11}  {text}' for what, text in lines.items())]),
        _joint_table(joints),
        _falling(joints),
        Table('', _OF_FOLLOWERS, [*map(_law, mimics)]) if mimics else '',
    ]
    if closure is not None:
        # What closing leaves of a zero is none of the start.
        start = [*zip(closure.tree.joint_names, np.round(closure.start, 8) + 0.0)]
        moved = listed((closure.tree.joint_names[j] for j in closure.dependent), len(start))
        parts += [
            Table('', [Column('name', 'loop'), Column('kind'), Column('between')], loops),
            f'joints that the loops move: {moved}\n'
            f'closed at: {", ".join(f"{name} {number(x)}" for name, x in start)}',
            closure.remark,
        ]
    if friction:
        parts.append(_friction_table(model, friction))
    if problem.actuators is not None:
        rows = [{'joint': joint['name'], **joint['actuator']} for joint in joints]
        columns = Column('joint'), Column('type', 'actuator'), Column('motors')
        parts.append(Table('', columns, rows))
    parts += [f'warning: {text}' for text in (*problem.remarks, *model.warnings)]
    return Answer(parts, data)


def _reach(limits: Mapping[str, float]) -> str:
    """Range of positions between the limits that there are."""
    ends = limits.get('lower', -np.inf), limits.get('upper', np.inf)
    texts = [number(end) if np.isfinite(end) else 'open' for end in ends]
    return ' to '.join(texts) if np.isfinite(ends).any() else 'none'


def _joints(problem: Problem, links: dict[int, list[str]]) -> list[dict[str, Any]]:
    """Records of the joints, with the links that they move by their bodies."""
    model, limits, actuators = problem.model, problem.limits, problem.actuators
    joints = []
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types)):
        body, linear = model.body_names.index(name), kind == 'prismatic'
        joint = {
            'name': name,
            'type': kind,
            'units': {
                what: label_of(what, linear).plain_unit
                for what in ('position', *MAGNITUDES)
            },
            **{what: values[j] for what, values in limits._asdict().items()},
            'mass': model.M_body[body, 5, 5],
            'links': links.get(body, []),
        }
        if actuators is not None:
            motors = [
                motor
                for item in actuators.driven
                if item.name == name
                for motor in actuators.motor_names[item.motors]
            ]
            of_type = type(actuators[name]).__name__
            joint['actuator'] = {'type': of_type, 'motors': listed(motors)}
        joints.append(joint)
    return joints


def _followers(model: RobotModel, links: dict[int, list[str]]) -> list[dict[str, Any]]:
    """Records of the joints that follow others, with the links that they move by their bodies."""
    tree = model.tree
    return [
        {
            'name': name,
            'limits': {
                what: limit
                for what, limit in tree.follower_limits.get(name, Limits())
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


def _law(follower: dict[str, Any]) -> dict[str, Any]:
    """A record of a follower as people see it."""
    factor, offset = (number(follower[key]) for key in ('multiplier', 'offset'))
    known = follower['limits']
    return {
        **follower,
        'law': f'{factor} * {follower["follows"]} + {offset}',
        'reach': _reach(known),
        'velocity': known.get('velocity', np.inf),
    }


def _loops(closure: Closure) -> list[dict[str, str]]:
    """Records of what closes the loops of a model."""
    loops = [
        (loop.name, loop.kind, f'{loop.link_a}, {loop.link_b}') for loop in closure.loops
    ]
    loops += [
        (item.name, 'coupling', ', '.join((*item.followed, item.joint)))
        for item in closure.couplings
    ]
    return [dict(zip(('name', 'kind', 'between'), loop)) for loop in loops]


def _falling(joints: list[dict[str, Any]]) -> str:
    """Which limits of the velocity depend on the position."""
    names = [joint['name'] for joint in joints if np.isfinite(joint['deceleration_limit'])]
    text = (
        f'The velocity limits of {listed(names)} fall towards the limits of the position (see '
        'position_based_velocity_limits in the documentation of URDF).'
    )
    return text * bool(names)


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


def _joint_table(joints: list[dict[str, Any]]) -> Table:
    """Joints and their limits."""
    # Hardly any robot states this one.
    is_stated = any(np.isfinite(joint['effort_ddot']) for joint in joints)
    columns = [Column('name', 'joint'), Column('type')]
    for what in (
        'position',
        *(each for each in MAGNITUDES if is_stated or each != 'effort_ddot'),
    ):
        unit = ', '.join(dict.fromkeys(joint['units'][what] for joint in joints))
        columns.append(Column(what, name_of(what), unit, infinite='none'))
    columns.append(Column('mass', unit='kg'))
    return Table('', columns, [{**joint, 'position': _reach(joint)} for joint in joints])


def generate(
    given: Given,
    output: Path | None,
    language: str,
    orders: tuple[int, ...],
    precision: str,
    name: str | None,
    wrench_links: tuple[str, ...],
    forward_dynamics: bool,
    ros2_control: Path | None,
    sample_period: float,
    delay: float,
    force: bool,
) -> None:
    """Write the dynamics of a robot as source code; see `hodyn generate --help`.

    Parameters
    ----------
    given : Given
    output : pathlib.Path or None
        Folder; None: named after the robot.
    language, precision, name, wrench_links, forward_dynamics
        See `generate_code`.
    orders : tuple of int
        Of the derivatives of the efforts; one is the highest, empty is 2.
    ros2_control : pathlib.Path or None
        Folder of a package with the tracking law, in place of `output`.
    sample_period, delay : float
        Of that law [s].
    force : bool
        Whether files that exist are replaced.

    Raises
    ------
    RequestError
        If something given cannot be used, or files exist.
    """
    problem = load_problem(given)
    controller = None
    if ros2_control and problem.actuators is None:
        raise RequestError(
            '--ros2-control needs to know the drives: give --config FILE with actuators.'
        )
    if ros2_control and problem.actuators is not None:
        controller = tracking_controller(problem.actuators, sample_period, delay=delay)
    elif problem.actuators is not None:
        show_remarks(('The actuators of --config are for --ros2-control alone.',))
    # Robots of different files may have the same name inside.
    robot = Path(given.robot.rpartition(':')[2]).stem
    folder = ros2_control or output or Path(f'{name or identifier(robot)}_dynamics')
    wanted = orders if len(orders) > 1 else (orders[0] if orders else 2)
    try:
        paths = generate_code(
            problem.model,
            folder,
            language,
            wanted,
            precision,
            name,
            wrench_links,
            force,
            controller,
            forward_dynamics,
            controller is not None,
        )
    except RequestError as error:
        raise RequestError(str(error).replace('overwrite=True', '--force')) from error
    for path in paths:
        click.echo(path)
    if controller is None:
        click.echo(
            f'Try it: cmake -S {folder} -B {folder}/build && cmake --build {folder}/build '
            f'&& ctest --test-dir {folder}/build',
            err=True,
        )


def demo(output: Path) -> None:
    """Write two motions of the Panda, and show commands that read them.

    Parameters
    ----------
    output : pathlib.Path
        Folder; made if needed.
    """
    problem = load_problem(Given('panda'))
    reference = panda_sinusoids()
    fast = _without_rates(problem)
    output.mkdir(parents=True, exist_ok=True)
    for name, duration, motion in (
        ('motion', reference.duration, reference.motion),
        ('fast', fast.times[-1], fast),
    ):
        times = np.linspace(0.0, duration, round(_DEMO_RATE * duration) + 1)
        results = Samples.of_model(
            problem.model,
            times,
            motion(times),
            name='Franka Panda',
            source='given',
        )
        write_results(output / f'{name}.csv', results)
    click.echo(
        f'Written: {output}/motion.csv, {output}/fast.csv\n\nTry next:\n'
        f'  hodyn check panda {output}/motion.csv\n'
        f'  hodyn check panda {output}/fast.csv\n'
        f'  hodyn retime panda {output}/fast.csv -o {output}/retimed.csv\n'
        f'  hodyn view panda {output}/fast.csv {output}/retimed.csv\n'
        f'  hodyn plot panda {output}/motion.csv\n'
        f'  hodyn plot panda {output}/motion.csv -o {output}/report.html'
    )


def _without_rates(problem: Problem) -> JtcMotion:
    """Motion as fast as limits of velocity, acceleration and torque allow, as planners make it."""
    unlimited = np.full(problem.model.n_joints, np.inf)
    limits = problem.limits._replace(effort_dot=unlimited, jerk=unlimited)
    motion = retime(problem.model, panda_swing(), limits, rise_time=0.0).motion
    assert motion is not None  # along a path
    return motion
