"""Finds the data files that are installed with this package: robot descriptions, configurations.

The ament index is not asked, since it needs AMENT_PREFIX_PATH, which nobody sets in a plain Python
environment. However the package is installed, its files lie at a known place relative to its
modules, and the search walks up from there.
"""

from __future__ import annotations

import importlib
import logging
import os
import stat
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

from hodyn_ros.errors import HodynError, ResourceError

_PACKAGE = 'hodyn_ros'
_logger = logging.getLogger(__name__)


@cache
def package_version() -> str:
    """Version of this package, as its manifest has it; 'unknown' without one."""
    from xml.etree import ElementTree

    try:
        manifest = ElementTree.parse(share_file('package.xml'))
    except ResourceError:
        return 'unknown'
    return manifest.findtext('version') or 'unknown'


def share_file(relative_path: str | os.PathLike[str]) -> Path:
    """Existing data file of this package.

    Parameters
    ----------
    relative_path : str or path
        Path below the data directory, such as ``'urdf/panda.urdf'``.

    Returns
    -------
    Path
        In the nearest data directory that has the file.

    Raises
    ------
    ResourceError
        If the path is absolute or leads out of the directory, if no data files are installed, or
        if there is no such file; the message then lists those of the same folder.
    """
    relative = PurePath(relative_path)
    if relative.is_absolute() or '..' in relative.parts:
        raise ResourceError(
            f"'{relative}' is not a path below the data directory of {_PACKAGE}; "
            "give one such as 'urdf/panda.urdf'"
        )
    module = Path(__file__)
    directories = list(dict.fromkeys(_share_directories(module)))
    for directory in directories:
        if (directory / relative).is_file():
            return directory / relative
    if not directories:
        raise ResourceError(
            f"'{relative}' was looked for, but the data files of {_PACKAGE} are not installed: "
            f'there is no share/{_PACKAGE} in any directory above {module}'
        )
    available = sorted(
        {
            file.relative_to(directory).as_posix()
            for directory in directories
            for file in (directory / relative.parent).glob('*')
            if file.is_file()
        }
    )
    raise ResourceError(
        f"there is no file '{relative}' in {' or '.join(map(str, directories))}; "
        f'in the same folder: {", ".join(available) or "no files"}'
    )


def _share_directories(module: Path) -> Iterator[Path]:
    """Existing data directories of this package, nearest first."""
    # colcon build --symlink-install reaches the modules through links in its build directory, from
    # where the links' targets have to be searched as well.
    for package in dict.fromkeys([module.absolute().parent, module.resolve().parent]):
        if (package.parent / 'package.xml').is_file():
            yield package.parent  # a checkout of the source
        for parent in package.parents:
            if (parent / 'share' / _PACKAGE).is_dir():
                yield parent / 'share' / _PACKAGE


def compiled_function(
    function: Callable[..., Any], signature: Any, **options: Any
) -> Callable[..., Any]:
    """Machine code of a function, made by Numba.

    Parameters
    ----------
    function : callable
        Within what Numba compiles in nopython mode.
    signature : str or Numba signature
        Types of the arguments and of the result; it is compiled for these at once.
    **options
        Options of ``numba.njit`` other than cache.

    Returns
    -------
    callable
        Its code is kept on disk for the next process, unless there is no place for it or everyone
        can write to NUMBA_CACHE_DIR, see `is_private`.
    """
    from numba import njit

    place = os.environ.get('NUMBA_CACHE_DIR', '')
    try:
        is_kept = not place or is_private(place)
        code = njit(signature, cache=is_kept, **options)(function)
    except RuntimeError:  # there is no place for a cache
        code = njit(signature, **options)(function)
    return code  # type: ignore[no-any-return]


@cache
def is_private(directory: str) -> bool:
    """Whether not everyone can write to a directory; otherwise code from there is not run.

    One that does not exist will be made for its owner alone. The others are warned of once.
    """
    try:
        mode = os.stat(directory).st_mode
    except OSError:
        return True
    if mode & stat.S_IWOTH:
        _logger.warning(
            'No machine code is kept in %s: everyone can write there, and could leave code that '
            'would be run here. Take this right away (chmod o-w), or have NUMBA_CACHE_DIR name a '
            'directory of your own.',
            directory,
        )
    return not mode & stat.S_IWOTH


def optional_import_module(
    module: str, need: str, extra: str, error: type[HodynError] = ResourceError
) -> ModuleType:
    """Module of a package that an extra of this one installs.

    Parameters
    ----------
    module : str
        Full name of the module.
    need : str
        What needs which package; it begins the message.
    extra : str
        Name of the extra, for the message.
    error : type of HodynError
        Raised if the module cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        raise error(
            f'{need}, which cannot be imported ({reason}): pip install hodyn_ros[{extra}]'
        ) from reason
