"""Commands without a motion: `hodyn info`, `hodyn generate` and `hodyn demo`."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from hodyn_ros.analysis.unlimited import find_unlimited
from hodyn_ros.cli.output import echo_json, name_of, number, table
from hodyn_ros.cli.problem import Given, Problem, load_model, load_problem, read_actuators
from hodyn_ros.codegen.generate import generate_code
from hodyn_ros.codegen.statements import identifier
from hodyn_ros.control.tracking import TrackingController, tracking_controller
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples, write_results
from hodyn_ros.model.limits import FALLING, MAGNITUDES, Limits
from hodyn_ros.model.mechanism import BASE, Closure
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.sources import BUNDLED, EXAMPLE_ROBOT_DATA, example_names
from hodyn_ros.names import listed
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


def info(given: Given, as_json: bool) -> None:
    """Show what is known of a robot, or which robots there are.

    Parameters
    ----------
    given : Given
        Robot; an empty name lists those that there are.
    as_json : bool
        Whether JSON is printed instead of tables.
    """
    if not given.robot:
        echo_json(_robots()) if as_json else click.echo(_text_of_robots())
        return
    problem = load_problem(given, quiet=True)
    data = _data(problem)
    if as_json:
        echo_json(data)
    else:
        click.echo(_text(problem, data))


def _robots() -> dict[str, list[str]]:
    """Names of robots by the package that they come with."""
    return {'hodyn_ros': [*BUNDLED], EXAMPLE_ROBOT_DATA: example_names()}


def _text_of_robots() -> str:
    """Names of robots for people, package by package."""
    lines = []
    for package, names in _robots().items():
        absent = f'not installed: pip install {package} adds about 70 robots'
        text = textwrap.fill(', '.join(names) or absent, 90, break_on_hyphens=False)
        lines += [f'{package}:', textwrap.indent(text, '  '), '']
    return '\n'.join(
        [
            *lines,
            'Also robots of robot_descriptions (gen3, xarm7, ...), of ROS packages',
            '(my_package/urdf/robot.urdf), and files (robot.urdf, robot.urdf.xacro, robot.sdf,',
            'robot.xml with MJCF).',
            'hodyn info ROBOT shows what is known of one, hodyn info --help how they are named.',
        ]
    )


def _data(problem: Problem) -> dict[str, Any]:
    """Everything for programs; masses in kg, all else in rad, m, N m, N and s."""
    # Other commands need not wait.
    from hodyn_ros.identification.outputs import friction_config

    model, limits, actuators = problem.model, problem.limits, problem.actuators
    tree = model.tree
    links: dict[int, list[str]] = {}
    for name, frame in model.links.items():
        links.setdefault(frame.body, []).append(name)
    masses = model.M_body[:, 5, 5]
    joints = []
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types)):
        body, linear = model.body_names.index(name), kind == 'prismatic'
        entry = {
            'name': name,
            'type': kind,
            'units': {
                what: label_of(what, linear).plain_unit
                for what in ('position', *MAGNITUDES)
            },
            'lower': limits.lower[j],
            'upper': limits.upper[j],
            **{what: getattr(limits, what)[j] for what in (*MAGNITUDES, *FALLING)},
            'mass': masses[body],
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
            entry['actuator'] = {'type': of_type, 'motors': listed(motors)}
        joints.append(entry)
    return {
        'name': model.name,
        'path': problem.source.path,
        'origin': problem.source.origin,
        'base_link': model.base_link,
        'tip_link': model.tip_link,
        'gravity': model.gravity,
        'moving_mass': masses.sum(),
        'limits_from': problem.limits_from,
        'joints': joints,
        'unlimited': find_unlimited(
            model, limits, actuators=actuators, motor_limits=problem.motor_limits
        ),
        'friction': friction_config(model),
        'mimic_joints': [
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
                'mass': masses[body],
                'links': links.get(body, []),
            }
            for body, name in enumerate(tree.body_names)
            if name not in tree.joint_names
        ],
        'loops': _loops(model),
        'fixed_links': links.get(BASE, []),
        'remarks': list(problem.remarks),
        'warnings': model.warnings,
        'provenance': model.provenance.lines(),
    }


def _loops(model: RobotModel) -> list[dict[str, str]]:
    """What closes the loops of a model."""
    if model.closure is None:
        return []
    loops = [
        {'name': loop.name, 'kind': loop.kind, 'between': f'{loop.link_a}, {loop.link_b}'}
        for loop in model.closure.loops
    ]
    couplings = [
        {'name': c.name, 'kind': 'coupling', 'between': ', '.join((*c.followed, c.joint))}
        for c in model.closure.couplings
    ]
    return loops + couplings


def _text(problem: Problem, data: dict[str, Any]) -> str:
    """Everything for people."""
    joints, mimics = data['joints'], data['mimic_joints']
    count = f'{len(joints)} joint{"" if len(joints) == 1 else "s"}'
    count += f', {len(mimics)} that follow' if mimics else ''
    tip = f'to {data["tip_link"]}' if data['tip_link'] else 'whole tree'
    lines = [
        f'{data["name"]}: {count}, {number(data["moving_mass"])} kg in motion',
        f'  description  {data["path"]} ({data["origin"]})',
        f'  links        from {data["base_link"]}, {tip}',
        f'  gravity      {" ".join(map(number, data["gravity"]))} m/s^2',
        f'  limits       {data["limits_from"]}',
        f'  not limited  {"; ".join(item.text for item in data["unlimited"]) or "nothing"}',
        f'  friction     {_friction_from(problem)}',
        '',
        _joint_table(joints),
        *_falling_lines(joints),
    ]
    if mimics:
        rows = []
        for mimic in mimics:
            factor, offset = number(mimic['multiplier']), number(mimic['offset'])
            law = f'{factor} * {mimic["follows"]} + {offset}'
            known = mimic['limits']
            low, high = (number(known.get(end, np.inf)) for end in ('lower', 'upper'))
            velocity = number(known.get('velocity', np.inf))
            rows.append(
                (mimic['name'], law, f'{low} to {high}', velocity, number(mimic['mass']))
            )
        head = ('follows', 'position', 'limits', 'velocity', 'mass\n[kg]')
        lines += ['', table(head, rows)]
    lines += _loop_lines(problem.model.closure, data['loops'])
    if data['friction']:
        lines += ['', _friction_table(problem.model, data['friction'])]
    if problem.actuators is not None:
        rows = [(joint['name'], *joint['actuator'].values()) for joint in joints]
        lines += ['', table(('joint', 'actuator', 'motors'), rows)]
    for remark in (*data['remarks'], *data['warnings']):
        lines += ['', f'warning: {remark}']
    return '\n'.join(lines)


def _falling_lines(joints: list[dict[str, Any]]) -> list[str]:
    """Which limits of the velocity depend on the position."""
    names = [joint['name'] for joint in joints if np.isfinite(joint['deceleration_limit'])]
    text = (
        f'The velocity limits of {listed(names)} fall towards the limits of the position (see '
        'position_based_velocity_limits in the documentation of URDF).'
    )
    return ['', text] * bool(names)


def _loop_lines(closure: Closure | None, loops: list[dict[str, str]]) -> list[str]:
    """Table of what closes loops, the joints that follow from the others, and what is dropped."""
    if closure is None:
        return []
    rows = [(loop['name'], loop['kind'], loop['between']) for loop in loops]
    followers = ', '.join(closure.tree.joint_names[j] for j in closure.dependent)
    lines = ['', table(('loop', 'kind', 'between'), rows)]
    lines += ['', f'joints that the loops move: {followers}']
    # What closing leaves of a zero is none of the start.
    closed_at = zip(closure.tree.joint_names, np.round(closure.start, 8) + 0.0)
    lines += [f'closed at: {", ".join(f"{name} {number(x)}" for name, x in closed_at)}']
    return [*lines, '', closure.remark] if closure.remark else lines


def _friction_from(problem: Problem) -> str:
    """Where the friction comes from, or where there is some."""
    given, model = problem.given, problem.model
    used = ['robot description'] * given.joint_friction
    used += [str(given.friction)] if given.friction is not None else []
    if model.friction:
        return ' and '.join(used)
    with_friction = replace(
        given, joint_friction=True, open_loops=True, friction=None, actuators=None
    )
    known = [*load_problem(with_friction, quiet=True).model.friction]
    if not known or given.joint_friction:
        return 'none'
    return (
        f'none; the description has some of {listed(known, 5)} (--joint-friction uses it)'
    )


def _friction_table(model: RobotModel, laws: dict[str, dict[str, float]]) -> str:
    """Laws by the keys that they have in parameter files."""
    linear = sorted({not model.X[model.body_names.index(name), :3].any() for name in laws})
    heads = {
        key: f'{key}\n[{", ".join(units[kind] for kind in linear)}]'
        for key, units in _FRICTION_UNITS.items()
        if any(law.get(key) for law in laws.values())
    }
    rows = [
        (name, *(number(law.get(key, np.inf)) for key in heads))
        for name, law in laws.items()
    ]
    return table(('friction', *heads.values()), rows)


def _joint_table(joints: list[dict[str, Any]]) -> str:
    """Joints and their limits."""
    linear = sorted({joint['type'] == 'prismatic' for joint in joints})
    # Hardly any robot states this one.
    is_stated = any(np.isfinite(joint['effort_ddot']) for joint in joints)
    shown = [what for what in MAGNITUDES if is_stated or what != 'effort_ddot']
    titles = []
    for what in ('position', *shown):
        units = dict.fromkeys(label_of(what, kind).plain_unit for kind in linear)
        titles.append(f'{name_of(what)}\n[{", ".join(units)}]')
    rows = []
    for joint in joints:
        ends = [joint['lower'], joint['upper']]
        reach = ' to '.join(map(number, ends)) if np.isfinite(ends).any() else '-'
        values = (number(joint[what]) for what in (*shown, 'mass'))
        rows.append((joint['name'], joint['type'], reach, *values))
    return table(('joint', 'type', *titles, 'mass\n[kg]'), rows)


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
    """Write the dynamics of a robot as source code.

    Parameters
    ----------
    given : Given
        Robot.
    output : pathlib.Path or None
        Folder; None: named after the robot.
    language, precision, wrench_links, forward_dynamics
        See `generate_code`.
    orders : tuple of int
        Of the derivatives of the efforts; one is the highest, empty is 2.
    name : str or None
        Of functions and files.
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
    model, _ = load_model(given)
    controller = _tracking_law(model, given, bool(ros2_control), sample_period, delay)
    # Robots of different files may have the same name inside.
    robot = Path(given.robot.rpartition(':')[2]).stem
    folder = ros2_control or output or Path(f'{name or identifier(robot)}_dynamics')
    wanted = orders if len(orders) > 1 else (orders[0] if orders else 2)
    try:
        paths = generate_code(
            model,
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


def _tracking_law(
    model: RobotModel, given: Given, is_wanted: bool, sample_period: float, delay: float
) -> TrackingController | None:
    """Make the tracking law for the drives that are given, if it is wanted [s]."""
    if is_wanted and given.actuators is None:
        raise RequestError(
            '--ros2-control needs to know the drives: give --actuators FILE.'
        )
    if given.actuators is None:
        return None
    if not is_wanted:
        raise RequestError(
            '--actuators is for the law of --ros2-control, which is not given.'
        )
    actuators, _ = read_actuators(model, given.actuators)
    return tracking_controller(actuators, sample_period, delay=delay)


def demo(folder: Path) -> None:
    """Write two motions of the Panda, and show commands that read them.

    Parameters
    ----------
    folder : pathlib.Path
        Made if needed.
    """
    problem = load_problem(Given('panda'))
    reference = panda_sinusoids()
    fast = _without_rates(problem)
    folder.mkdir(parents=True, exist_ok=True)
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
        write_results(folder / f'{name}.csv', results)
    click.echo(
        f'Written: {folder}/motion.csv, {folder}/fast.csv\n\nTry next:\n'
        f'  hodyn check panda {folder}/motion.csv\n'
        f'  hodyn check panda {folder}/fast.csv\n'
        f'  hodyn retime panda {folder}/fast.csv -o {folder}/retimed.csv\n'
        f'  hodyn view panda {folder}/fast.csv {folder}/retimed.csv\n'
        f'  hodyn plot panda {folder}/motion.csv\n'
        f'  hodyn report panda {folder}/motion.csv -o {folder}/report.html'
    )


def _without_rates(problem: Problem) -> JtcMotion:
    """Motion as fast as limits of velocity, acceleration and torque allow, as planners make it."""
    unlimited = np.full(problem.model.n_joints, np.inf)
    limits = problem.limits._replace(effort_dot=unlimited, jerk=unlimited)
    return retime(problem.model, panda_swing(), limits, rise_time=0.0).motion
