"""Finds the data files that are installed with this package: robot descriptions, configurations.

The ament index is not asked, since it needs AMENT_PREFIX_PATH, which nobody sets in a plain Python
environment. However the package is installed, its files lie at a known place relative to its
modules, and the search walks up from there.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, update_wrapper
from pathlib import Path, PurePath
from types import FunctionType, ModuleType
from typing import Any

from hodyn_ros.errors import HodynError, ResourceError

KEPT_SOURCES = 24
"""Largest number of modules, in any version, whose machine code is kept on disk."""

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
        Types of the arguments and of the result; it is compiled for these at once. None: when it
        is first called, for the types of that call.
    **options
        Options of ``numba.njit`` other than cache.

    Returns
    -------
    callable
        Its code is kept for the next process in `cache_directory`, if there is one. Numba itself
        looks at the file of the function alone, and where that is: what is kept here belongs to
        the content of all that the code was made from, wherever it is installed.
    """
    from numba import config, njit

    source = (
        None if getattr(config, 'DISABLE_JIT', 0) else _kept_source(function.__module__)
    )
    if source is not None:
        code = function.__code__.replace(co_filename=str(source))
        defaults, closure = function.__defaults__, function.__closure__
        here = FunctionType(
            code, function.__globals__, function.__name__, defaults, closure
        )
        update_wrapper(here, function)
        with suppress(RuntimeError):  # there is no place for a cache
            return njit(signature, cache=True, **options)(here)  # type: ignore[no-any-return]
    return njit(signature, **options)(function)  # type: ignore[no-any-return]


@cache
def _kept_source(name: str) -> Path | None:
    """Copy of a module, beside which Numba keeps its machine code; None without a place for it.

    Its folder is named by the hash of what the code of the module's functions is made from: its
    file, the files of functions that it imports, and the constants that it imports.
    """
    module, directory = sys.modules[name], cache_directory()
    if directory is None or module.__file__ is None:
        return None
    plain = (getattr(value, 'py_func', value) for value in vars(module).values())
    helpers = {f.__module__ for f in plain if isinstance(f, FunctionType)} - {
        name,
        __name__,
    }
    files = [module, *(sys.modules[n] for n in sorted(helpers) if n.startswith(_PACKAGE))]
    constants = {k: v for k, v in vars(module).items() if _is_constant(v)}
    try:
        contents = [Path(str(file.__file__)).read_bytes() for file in files]
        digest = hashlib.sha256(repr((contents, sorted(constants.items()))).encode())
        copy = directory / f'numba_{digest.hexdigest()[:32]}' / Path(module.__file__).name
        if not copy.exists():
            write_private(copy, contents[0])
            _evict_sources(directory)
        os.utime(copy.parent)  # the time of its last use
    except OSError:
        return None
    return copy


def _is_constant(value: Any) -> bool:
    """Whether a value is written the same in every process; functions have their addresses."""
    if isinstance(value, tuple):
        return all(isinstance(item, str) or _is_constant(item) for item in value)
    return isinstance(value, (int, float))


def _evict_sources(directory: Path) -> None:
    """Remove the folders of machine code that have not been used for longest."""
    found = [(path.stat().st_mtime_ns, path) for path in directory.glob('numba_*')]
    for _, path in sorted(found, reverse=True)[KEPT_SOURCES:]:
        shutil.rmtree(path, ignore_errors=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file of the cache, for its owner alone; others see the whole file or none."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp('.tmp', 'hodyn_', path.parent)
    with os.fdopen(descriptor, 'wb') as file:
        file.write(content)
    os.replace(name, path)


def cache_directory() -> Path | None:
    """Where machine code is kept; None if there is no place that is the user's own.

    `NUMBA_CACHE_DIR` says where, as for Numba; otherwise it is in the user's cache directory.
    """
    given, user = os.environ.get('NUMBA_CACHE_DIR'), os.environ.get('XDG_CACHE_HOME', '')
    try:
        directory = Path(given or (user if os.path.isabs(user) else Path.home() / '.cache'))
    except RuntimeError:  # no home directory
        return None
    directory /= _PACKAGE
    if not is_private(str(directory.parent)) or not is_private(str(directory)):
        return None
    return directory


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
            f"{need}, which cannot be imported ({reason}): pip install 'hodyn_ros[{extra}]'"
        ) from reason
