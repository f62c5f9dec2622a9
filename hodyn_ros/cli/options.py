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
"""As in `hodyn_ros.cli.robots`, which is too slow to be asked by a completion."""


class RobotType(click.ParamType):
    """ROBOT: names of bundled robots and files are completed."""

    name = 'robot'

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Bundled robots that begin so; the shell adds files."""
        names = [name for name in BUNDLED_NAMES if name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type='file')]


class XacroArgument(click.ParamType):
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


def _remember_debug(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        context.meta['debug'] = True


debug_option = click.option(
    '--debug', is_flag=True, expose_value=False, callback=_remember_debug, hidden=True,
    help='Show the whole traceback of an error.',
)  # fmt: skip

json_option = click.option(
    '--json', 'as_json', is_flag=True, help='Print JSON, for programs to read.'
)

limits_option = click.option(
    '--limits', metavar='FILE',
    help='YAML file with limits that a URDF cannot hold (acceleration, jerk, torque rate), in the '
    'layout of config/panda.yaml. By default those that come with the robot; "urdf": none.',
)  # fmt: skip

actuators_option = click.option(
    '--actuators', type=click.Path(path_type=Path), metavar='FILE',
    help='YAML file that says what is between motors and joints, in the layout of '
    'config/panda_sea.yaml.',
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
)  # fmt: skip
_NAMES = ('robot', 'base_link', 'tip_link', 'gravity', 'joint_friction', 'xacro_arguments')


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
