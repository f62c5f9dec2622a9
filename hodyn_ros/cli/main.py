"""The command `hodyn`: finds the subcommand and turns every error into a message and an exit code.

A subcommand is imported when it is called, so that help and completion come at once: NumPy, SciPy
and Numba take far longer to start than this module.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from hodyn_ros.cli.options import debug_option
from hodyn_ros.errors import HodynError

# Exit codes.
OK = 0
VIOLATION = 1
ERROR = 2
# As shells report processes that a signal ended: 128 and its number.
INTERRUPTED = 130
BROKEN_PIPE = 141

COMMANDS = {
    'info': 'Show joints, limits and masses of a robot.',
    'compute': 'Compute joint torques of a motion with their time derivatives.',
    'check': 'Compare a motion with the limits of a robot.',
    'retime': 'Make a motion keep its limits, or as fast as they allow.',
    'plot': 'Draw torques, their derivatives and limits.',
    'report': 'Write a report with checks and plots as one HTML file.',
    'bench': 'Time the inverse dynamics of a robot.',
    'demo': 'Compute and draw a motion of the Franka Panda.',
    'generate': 'Write the inverse dynamics of a robot as C or C++ code.',
}
"""Subcommands in the order of the help, each in the module of its name."""


def verbatim_blocks(text: str) -> str:
    """Mark paragraphs with indented lines, such as examples, so that click does not fill them."""
    paragraphs = inspect.cleandoc(text).split('\n\n')
    return '\n\n'.join(
        f'\b\n{part}' if '\n  ' in f'\n{part}' and not part.startswith('\b') else part
        for part in paragraphs
    )


class _ReaderGone(Exception):
    """Nobody reads the output any more.

    Left as it is, click would turn a broken pipe into exit code 1, which means something else.
    """


@contextlib.contextmanager
def _telling_broken_pipes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderGone from error


class Commands(click.Group):
    """Group whose subcommands are imported when they are needed."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the command line; see `_ReaderGone`."""
        with _telling_broken_pipes():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; see `_ReaderGone`."""
        with _telling_broken_pipes():
            result = super().invoke(ctx)
            sys.stdout.flush()
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand, or say which one is meant."""
        if args[0] not in COMMANDS and not args[0].startswith('-'):
            close = get_close_matches(args[0], COMMANDS, n=1)
            meant = f'Is {close[0]} meant? ' if close else ''
            ctx.fail(f'No such command {args[0]!r}. {meant}Commands: {", ".join(COMMANDS)}.')
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f'hodyn_ros.cli.{cmd_name}').command
        command.name = cmd_name
        command.short_help = COMMANDS[cmd_name]
        command.help = verbatim_blocks(command.help or '')
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section('Commands'):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from hodyn_ros.resources import package_version

        click.echo(f'hodyn_ros {package_version()}')
        context.exit()


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={'help_option_names': ['-h', '--help']},
)
@click.option(
    '--version', is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help='Show the version and exit.',
)
@debug_option
@click.pass_context
def hodyn(context: click.Context) -> None:
    """Joint torques of robots with their exact time derivatives.

    ROBOT is a URDF or xacro file, a robot that comes with hodyn_ros (panda, panda_with_hand,
    iiwa14, two_link), or one of an installed package, see `hodyn info --help`.

    Begin with
      hodyn demo                                # a motion of the Panda, computed and drawn
      hodyn info panda                          # what is known of a robot
      hodyn check panda hodyn_demo/motion.csv   # does a motion keep the limits?

    Exit codes: 0 done, 1 a limit is exceeded (check), 2 error, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


hodyn.help = verbatim_blocks(hodyn.help or '')


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    with _all_streams():
        return _run(given)


@contextlib.contextmanager
def _all_streams() -> Iterator[None]:
    """Let what is written to a closed stream, as with ``>&-``, go nowhere."""
    with contextlib.ExitStack() as stack:
        for stream, redirect in (
            (sys.stdout, contextlib.redirect_stdout),
            (sys.stderr, contextlib.redirect_stderr),
        ):
            if stream is None or stream.closed:
                nowhere = stack.enter_context(open(os.devnull, 'w', encoding='utf-8'))
                stack.enter_context(redirect(nowhere))
        yield


def _run(given: list[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            result: Any = hodyn.main(given, prog_name='hodyn', standalone_mode=False)
        return result if isinstance(result, int) else OK
    except _ReaderGone:
        _redirect_to_nowhere(sys.stdout)  # or Python would complain once more at its end
        return BROKEN_PIPE
    except (click.Abort, KeyboardInterrupt):
        _say('Interrupted.')
        return INTERRUPTED
    except Exception as error:
        if '--debug' in given:
            traceback.print_exc()
        _say(error_text(error))
        return ERROR


def error_text(error: Exception) -> str:
    """Say what is wrong, and where it matters what to do."""
    if isinstance(error, click.ClickException):
        context = getattr(error, 'ctx', None)
        lines = [] if context is None else [context.get_usage()]
        lines += [] if context is None else [f"Try '{context.command_path} --help'."]
        return '\n'.join([*lines, f'error: {error.format_message()}'])
    if isinstance(error, OSError) and error.strerror:
        return f'error: {f"{error.filename}: " if error.filename else ""}{error.strerror}'
    if isinstance(error, MemoryError):
        return 'error: The memory does not suffice.'
    if isinstance(error, (HodynError, OSError)):
        return f'error: {error}'
    return (
        f'error: {type(error).__name__}: {error}\n'
        'This should not happen: it is a fault of hodyn_ros. --debug shows where.'
    )


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody is left to read it
        click.echo(text, err=True)


def _redirect_to_nowhere(stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int,
    file: Any = None, line: str | None = None,
) -> None:  # fmt: skip
    """Show warnings of this package as sentences, and those of others with their place."""
    from hodyn_ros.model.robot import ModelWarning

    if issubclass(category, ModelWarning):
        _say(f'warning: {message}')
    else:
        _say(warnings.formatwarning(message, category, filename, lineno, line).rstrip())


if __name__ == '__main__':
    main()
