"""The command `hodyn`: runs a subcommand and turns every error into a message and an exit code.

The subcommands are declared in `hodyn_ros.cli.commands`, and imported when they run, so that help
and completion come at once: NumPy, SciPy and Numba take far longer to start than these modules.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import click

from hodyn_ros.cli.commands import COMMANDS, ELSEWHERE, debug_option, verbatim_blocks
from hodyn_ros.errors import HodynError
from hodyn_ros.interrupts import INTERRUPTED, end_at_interrupts, ignore_interrupts
from hodyn_ros.names import did_you_mean

# Exit codes; `hodyn check` has one more, 1.
OK = 0
ERROR = 2
# As shells report processes that a signal ended, as is INTERRUPTED.
BROKEN_PIPE = 141

_PATIENCE = 2.0  # s, until something is said of what goes on


class Commands(click.Group):
    """Group that lists its commands in their order, and says which one may be meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand.

        Raises
        ------
        click.UsageError
            If there is no such command; the message names one that is close.
        """
        if args[0] in ELSEWHERE:
            ctx.fail(f'There is no {args[0]}: {ELSEWHERE[args[0]]}.')
        if args[0] not in self.commands and not args[0].startswith('-'):
            hint = did_you_mean(args[0], self.commands)
            names = ', '.join(self.commands)
            ctx.fail(f'No such command {args[0]!r}{hint}, expected one of {names}.')
        return super().resolve_command(ctx, args)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and exit, if that is asked for."""
    if wanted:
        from hodyn_ros.resources import package_version

        click.echo(f'hodyn_ros {package_version()}')
        context.exit()


@click.group(
    cls=Commands,
    commands={str(command.name): command for command in COMMANDS},
    invoke_without_command=True,
    context_settings={'help_option_names': ['-h', '--help']},
)
@click.option(
    '--version',
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help='Show the version and exit.',
)
@click.pass_context
def hodyn(context: click.Context) -> None:
    """Joint torques of robots with their exact time derivatives.

    ROBOT is a URDF, xacro, SDF or MJCF file, a robot that comes with hodyn_ros (panda,
    panda_with_hand, fr3, fr3_with_hand, iiwa14, ur5e, ur10e, two_link; with closed loops
    parallel_ankle, five_bar, delta, palletiser), or one of an installed package: `hodyn info`
    lists them.

    Begin with
      hodyn demo                                # a motion of the Panda for what follows
      hodyn info panda                          # what is known of a robot
      hodyn check panda hodyn_demo/motion.csv   # does a motion keep the limits?

    Exit codes: 0 done, 1 a limit is exceeded (check), 2 error, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


hodyn.help = verbatim_blocks(hodyn.help or '')
hodyn.params.append(debug_option)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with these arguments, by default those of the process, and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the name of the command.
    """
    end_at_interrupts()
    code = run(arguments)
    ignore_interrupts()
    if code == INTERRUPTED:  # Python would turn some exits into the end by a signal
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command as `main` does, and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the name of the command.

    Returns
    -------
    int
        0: done, 1: a limit is exceeded (check), 2: an error, 130: interrupted, 141: nobody
        reads the output.

    Examples
    --------
    >>> from hodyn_ros.cli import run
    >>> run(['info', 'two_link'])
    two_link: 2 joints, 5 kg in motion
    ...
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if os.environ.get('_HODYN_COMPLETE'):
        hodyn.main(given, prog_name='hodyn')  # answers the shell and exits
    with _all_streams(), warnings.catch_warnings(), _compiling_told():
        warnings.showwarning = _show_warning
        try:
            # Not `hodyn.main`, which makes a broken pipe exit code 1 with a meaning of its own.
            with hodyn.make_context('hodyn', [*given]) as context:
                result = hodyn.invoke(context)
            sys.stdout.flush()
            return result if isinstance(result, int) else OK
        except click.exceptions.Exit as request:
            sys.stdout.flush()
            return request.exit_code
        except BrokenPipeError:  # nobody reads the output any more
            # Or Python would complain once more at its end.
            _redirect_to_nowhere(sys.stdout)
            return BROKEN_PIPE
        except (click.Abort, KeyboardInterrupt):
            _say('Interrupted.')
            return INTERRUPTED
        except Exception as error:
            if '--debug' in given:
                import traceback

                traceback.print_exc()
            _say(error_text(error))
            return ERROR


@contextlib.contextmanager
def _all_streams() -> Iterator[None]:
    """Let what is written to a closed stream, as with ``>&-``, go nowhere."""
    with contextlib.ExitStack() as stack:
        nowhere = stack.enter_context(open(os.devnull, 'w', encoding='utf-8'))
        if sys.stdout is None or sys.stdout.closed:
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        if sys.stderr is None or sys.stderr.closed:
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        yield


@contextlib.contextmanager
def _compiling_told() -> Iterator[None]:
    """Say once that machine code is being compiled, `_PATIENCE` after the first compilation."""
    ended = threading.Event()
    watcher = threading.Thread(target=_watch_compiler, args=(ended,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch_compiler(ended: threading.Event) -> None:
    """Say that Numba compiles, until something ends."""
    # Importing Numba only to ask it would make all commands start later.
    # The last of the names that are needed: the module may be in the midst of its own import.
    while (events := sys.modules.get('numba.core.event')) is None or not hasattr(
        events, 'RecordingListener'
    ):
        if ended.wait(0.1):
            return
    record = events.RecordingListener()
    events.register('numba:compile', record)
    try:
        while not ended.wait(0.1):
            begun = [moment for moment, event in record.buffer if event.is_start]
            is_compiling = 2 * len(begun) > len(record.buffer)
            if is_compiling and time.time() - begun[0] > _PATIENCE:
                _say('Compiling machine code, which is kept for the next call ...')
                return
    finally:
        events.unregister('numba:compile', record)


def error_text(error: Exception) -> str:
    """Say what is wrong, and where it matters what to do.

    Parameters
    ----------
    error : Exception

    Returns
    -------
    str
        One or some lines, without traceback; what is no error of this package is called a
        fault of it.
    """
    if isinstance(error, click.ClickException):
        context = getattr(error, 'ctx', None)
        lines = [] if context is None else [context.get_usage()]
        lines += [] if context is None else [f"Try '{context.command_path} --help'."]
        option = getattr(error, 'option_name', None)
        said = (
            f'There is no {option}: {ELSEWHERE[option]}.'
            if option in ELSEWHERE
            else error.format_message()
        )
        return '\n'.join([*lines, f'error: {said}'])
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
    """Write to the standard error stream, if somebody is left to read it."""
    with contextlib.suppress(OSError):  # nobody is left to read it
        click.echo(text, err=True)


def _redirect_to_nowhere(stream: Any) -> None:
    """Let what is still written to a stream go nowhere."""
    with contextlib.suppress(OSError, ValueError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Show warnings of this package as sentences, and those of others with their place."""
    from hodyn_ros.model.robot import ModelWarning

    if issubclass(category, ModelWarning):
        _say(f'warning: {message}')
    else:
        _say(warnings.formatwarning(message, category, filename, lineno, line).rstrip())


if __name__ == '__main__':
    main()
