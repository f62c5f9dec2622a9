"""Output files: checked before long work, and complete or not there at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hodyn_ros.errors import RequestError
from hodyn_ros.io.access import Replacement


def check_writable(path: Path) -> None:
    """Refuse a place where no file can be written, before anything is computed.

    Parameters
    ----------
    path : pathlib.Path
        Of a file.

    Raises
    ------
    RequestError
    """
    folder = path.parent
    if path.is_dir():
        raise RequestError(f'{path} is a folder, expected a new name for what is to be written.')
    if not folder.is_dir():
        raise RequestError(f'{path} cannot be written: there is no folder {folder}.')
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise RequestError(f'{path} cannot be written: permission denied.')


def check_is_other(path: Path, source: Path) -> None:
    """Refuse to replace what is being read.

    Parameters
    ----------
    path : pathlib.Path
        To be written.
    source : pathlib.Path
        To be read.

    Raises
    ------
    RequestError
    """
    if path.exists() and source.exists() and path.samefile(source):
        raise RequestError(f'{path} is the motion itself; choose another name for the results.')


def remarks_on_output(path: Path) -> tuple[str, ...]:
    """Say what a file of this kind does not hold.

    Parameters
    ----------
    path : pathlib.Path

    Returns
    -------
    tuple of str
    """
    if path.suffix in ('.yaml', '.yml'):
        return (
            f'{path} holds positions to accelerations. Whoever reads it makes jerk and snap of '
            'his own, which may exceed limits that are kept here; tables and bags hold all.',
        )
    return ()


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under another name, and give it its own when it is complete.

    Parameters
    ----------
    path : pathlib.Path
        Replaced if it exists.
    write : callable
        Gets the path to write to, which has the same name in another folder.

    Raises
    ------
    OSError
    """
    check_writable(path)
    replacement = Replacement(path)
    try:
        write(replacement.path)
        replacement.finish()
    finally:
        replacement.discard()
