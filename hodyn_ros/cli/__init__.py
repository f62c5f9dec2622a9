"""The command `hodyn`, as a group of click; other packages do the work.

`run` is the command as a function: arguments in, exit code out.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hodyn_ros.cli.main import hodyn, run

__all__ = ['hodyn', 'run']


def __getattr__(name: str) -> Any:
    # Not imported with the package: `python -m hodyn_ros.cli.main` would have it twice.
    if name in __all__:
        from hodyn_ros.cli import main

        return getattr(main, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
