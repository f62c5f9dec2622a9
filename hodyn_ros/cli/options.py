"""Arguments and options that several subcommands have, and how they reach the functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Function = TypeVar('Function', bound=Callable[..., Any])

BUNDLED_NAMES = ('panda', 'panda_with_hand', 'iiwa14', 'two_link')
"""As in `hodyn_ros.model.sources`, which is too slow to be asked by a completion."""


class RobotType(click.ParamType):  # type: ignore[type-arg]
    """ROBOT: names of bundled robots and files are completed."""

    name = 'robot'

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Bundled robots that begin so; the shell adds files."""
        names = [name for name in BUNDLED_NAMES if name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type='file')]


class XacroArgument(click.ParamType):  # type: ignore[type-arg]
    """One argument of a xacro file: name:=value."""

    name = 'name:=value'

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Divide it."""
        name, separator, text = str(value).partition(':=')
        if not (name and separator):
            self.fail(f'{value!r} is not of the form name:=value', param, ctx)
        return name, text


# `hodyn_ros.cli.main.run` looks for it before anything is parsed.
debug_option = click.option(
    '--debug', is_flag=True, expose_value=False, help='Show the whole traceback of an error.'
)

json_option = click.option(
    '--json', 'as_json', is_flag=True, help='Print JSON, for programs to read.'
)

limits_option = click.option(
    '--limits', metavar='FILE',
    help='YAML file with limits that a URDF cannot hold (acceleration, jerk, torque rate), in the '
    'layout of config/panda.yaml, or its name (panda, iiwa14). By default those that come with '
    'the robot; "urdf": none.',
)  # fmt: skip

actuators_option = click.option(
    '--actuators', type=click.Path(path_type=Path), metavar='FILE',
    help='YAML file that says what is between motors and joints, in the layout of '
    'config/panda_sea.yaml, or its name (panda_sea).',
)  # fmt: skip

_ROBOT_OPTIONS = (
    click.argument('robot', type=RobotType()),
    click.option('--base-link', metavar='LINK', help='First link; by default the root.'),
    click.option(
        '--tip-link', metavar='LINK',
        help='Last link of the chain to be used; by default the whole tree.',
    ),
    click.option(
        '--gravity', nargs=3, type=float, default=(0.0, 0.0, -9.81), show_default=True,
        metavar='X Y Z', help='Gravitational acceleration in base link axes [m/s^2].',
    ),
    click.option(
        '--joint-friction', is_flag=True,
        help='Use the damping and friction of the joints in the description.',
    ),
    click.option(
        '--xacro-arg', 'xacro_arguments', type=XacroArgument(), multiple=True,
        metavar='NAME:=VALUE', help='Argument of a xacro file; may be repeated.',
    ),
    click.option(
        '--allow-impossible-inertia', is_flag=True,
        help='Use inertia tensors with negative principal moments as they are given.',
    ),
)  # fmt: skip
_NAMES = (
    'robot', 'base_link', 'tip_link', 'gravity', 'joint_friction', 'xacro_arguments',
    'allow_impossible_inertia',
)  # fmt: skip


def robot_options(function: Function) -> Function:
    """Add ROBOT and its options; the function gets them as `choice`, a `Choice`."""

    @wraps(function)
    def with_choice(**arguments: Any) -> Any:
        from hodyn_ros.cli.robots import Choice

        given = {name: arguments.pop(name) for name in _NAMES}
        given['xacro_arguments'] = dict(given['xacro_arguments'])
        return function(choice=Choice(**given), **arguments)

    decorated: Any = with_choice
    for decorate in reversed((*_ROBOT_OPTIONS, debug_option)):
        decorated = decorate(decorated)
    return decorated  # type: ignore[no-any-return]


_MOTION_OPTIONS = (
    click.argument('motion', type=click.Path(path_type=Path)),
    click.option('--topic', metavar='NAME', help='Of a bag; needed if several hold a motion.'),
    click.option(
        '--index', type=click.IntRange(0), metavar='N',
        help='Which of the trajectories of a topic, from 0.',
    ),
    click.option(
        '--derivatives', type=click.Choice(['auto', 'given', 'spline', 'estimate']),
        default='auto', show_default=True,
        help='Where the derivatives of the positions come from that MOTION leaves out: nowhere '
        '(given), from the spline through all samples, or estimated from measurements.',
    ),
    click.option(
        '--rate', type=click.FloatRange(0.0, min_open=True), metavar='HZ',
        help='At how many samples per second a spline is evaluated; by default at the samples, '
        'between waypoints at 100 Hz.',
    ),
    click.option(
        '--interpolation', type=click.Choice(['spline', 'jtc']), default='spline',
        show_default=True,
        help='Between waypoints: four times continuously differentiable, or as '
        'joint_trajectory_controller moves.',
    ),
    click.option(
        '--order', type=click.IntRange(0, 4), default=2, show_default=True,
        help='Highest time derivative of the torques. Above 2, MOTION has to give its '
        'derivatives; the torque rate of motors behind springs needs 3.',
    ),
    click.option(
        '--wrench-expressed-in', 'expressed_in', type=click.Choice(['body', 'spatial', 'hybrid']),
        help='Axes and origin of the wrench columns of MOTION; by default as it says, or body.',
    ),
    click.option(
        '--wrench-acting', 'acting', type=click.Choice(['on_environment', 'on_robot']),
        help='Direction of the wrench columns; by default as MOTION says, or on_environment.',
    ),
    actuators_option,
)  # fmt: skip
_MOTION_NAMES = (
    'motion', 'topic', 'index', 'derivatives', 'rate', 'interpolation', 'order', 'expressed_in',
    'acting', 'actuators',
)  # fmt: skip


def motion_options(function: Function) -> Function:
    """Add MOTION and its options; the function gets them as `given`, a `GivenMotion`."""

    @wraps(function)
    def with_motion(**arguments: Any) -> Any:
        from hodyn_ros.cli.motions import GivenMotion

        given = GivenMotion(**{name: arguments.pop(name) for name in _MOTION_NAMES})
        return function(given=given, **arguments)

    decorated: Any = with_motion
    for decorate in reversed(_MOTION_OPTIONS):
        decorated = decorate(decorated)
    return decorated  # type: ignore[no-any-return]
