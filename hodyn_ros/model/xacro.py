"""Turns xacro files into URDF, by the package xacro in a process of its own.

It evaluates Python expressions, prints and exits, which a process of its own keeps apart.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from hodyn_ros.errors import ModelError

TIMEOUT = 120.0
"""Time after which it is given up [s]."""

_PROGRAM = 'import xacro; xacro.main()'


def expand(path: Path, arguments: Mapping[str, str] | None = None) -> str:
    """URDF text that a xacro file stands for.

    Parameters
    ----------
    path : pathlib.Path
    arguments : mapping of str to str, optional
        Values of its arguments (``<xacro:arg>``).

    Returns
    -------
    str

    Raises
    ------
    ModelError
        If xacro is not installed, or refuses the file.
    """
    if importlib.util.find_spec('xacro') is None:
        raise ModelError(
            f'{path} is a xacro file, and xacro is not installed: pip install xacro, or in ROS '
            'install the package xacro. A URDF needs nothing: '
            f'xacro {path.name} > {path.name.split(".")[0]}.urdf'
        )
    pairs = [f'{name}:={value}' for name, value in (arguments or {}).items()]
    try:
        done = subprocess.run(
            [sys.executable, '-c', _PROGRAM, str(path), *pairs],
            capture_output=True,
            encoding='utf-8',
            errors='replace',
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f'xacro did not finish {path} within {TIMEOUT:.0f} s.') from None
    if done.returncode != 0:
        raise ModelError(f'xacro refuses {path}: {_last_words(done.stderr)}')
    return done.stdout


def _last_words(text: str) -> str:
    """Complaint of xacro on one line, without colours."""
    lines = [''.join(_plain(line)).strip() for line in text.splitlines()]
    kept = [line for line in lines if line]
    return ' '.join(kept[-6:]) or 'it gives no reason'


def _plain(line: str) -> list[str]:
    """Leave out escape sequences for colours."""
    parts = line.split('\x1b[')
    return [parts[0], *(part.partition('m')[2] for part in parts[1:])]
