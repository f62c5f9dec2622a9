"""What launch files make of the values of their arguments, which are texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def switch(name: str, text: str) -> bool:
    """Whether a switch is on; RuntimeError for a text that says neither."""
    if text.lower() in ('true', '1', 'yes', 'on'):
        return True
    if text.lower() in ('false', '0', 'no', 'off'):
        return False
    raise RuntimeError(
        f'{name} is {text!r}, expected true, 1, yes or on, or false, 0, no or off.'
    )


def refuse_missing(value: Mapping[str, str], *names: str) -> None:
    """RuntimeError for a file that does not exist.

    ROS would only warn of such a parameter file, and limit nothing.
    """
    for name in names:
        if not Path(value[name]).is_file():
            raise RuntimeError(
                f'{name} is {value[name]!r}, which is no file. Give an existing one; a relative '
                f'path begins at {Path.cwd()}.'
            )
