"""Finds robot descriptions by name, bundled or of packages of Python and ROS; expands xacro files.

The ament index is read as the files that it is: asking ament_index_python would need a ROS
installation, and tells nothing more.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from hodyn_ros.errors import AmbiguousNameError, ModelError
from hodyn_ros.names import listed
from hodyn_ros.resources import share_file

BUNDLED = {
    'panda': 'config/panda.yaml',
    'panda_with_hand': 'config/panda.yaml',
    'iiwa14': 'config/iiwa14.yaml',
    'two_link': None,
}
"""Robots that come with this package, and the files with limits that a URDF cannot hold."""

EXAMPLE_ROBOT_DATA = 'example-robot-data'
SUFFIXES = ('.urdf', '.urdf.xacro', '.xacro')

XACRO_TIMEOUT = 120.0
"""Time after which xacro is given up [s]."""

# It evaluates Python expressions, prints and exits: that needs a process of its own.
_PROGRAM = 'import xacro; xacro.main()'

_INDEX = Path('share', 'ament_index', 'resource_index', 'packages')
# A longer text was meant to be something else than a name.
_LONGEST_NAME = 120


class Source(NamedTuple):
    """A robot description that was found."""

    path: Path
    origin: str
    """Where it comes from, for people."""
    limits: Path | None = None
    """File with limits that belong to it."""
    xacro_arguments: Mapping[str, str] = {}

    def description(self, arguments: Mapping[str, str] | None = None) -> str | Path:
        """URDF text of a xacro file, or the path of a URDF.

        Raises
        ------
        ModelError
            If there are arguments for a URDF, or xacro is missing or refuses the file.
        """
        if self.path.name.endswith('.xacro'):
            return expand_xacro(self.path, {**self.xacro_arguments, **(arguments or {})})
        if arguments:
            raise ModelError(
                f'{self.path} is not a xacro file, which alone takes arguments; given are '
                f'{listed(arguments)}.'
            )
        return self.path


def find_robot(name: str) -> Source:
    """Find a robot description.

    Parameters
    ----------
    name : str
        Path of a URDF or xacro file, name of a bundled robot, of one of a package in `PACKAGES`,
        or ``package:name``.

    Returns
    -------
    Source

    Raises
    ------
    ModelError
        If nothing or too much has this name.
    """
    if name in BUNDLED:
        limits = BUNDLED[name]
        return Source(
            share_file(f'urdf/{name}.urdf'), 'bundled', share_file(limits) if limits else None
        )
    if len(name) > _LONGEST_NAME and not os.path.exists(name):
        raise ModelError(_not_found(f'{name[:_LONGEST_NAME]}...'))
    path = os.path.expanduser(name)
    if os.path.exists(path) and not os.path.isdir(path):  # pipes are files too
        return Source(Path(path), 'file')
    package, separator, rest = name.partition(':')
    if separator and package in PACKAGES:
        found = PACKAGES[package](rest)
    else:
        found = next((robot for find in PACKAGES.values() if (robot := find(name))), None)
    if found is None:
        raise ModelError(_not_found(name))
    return found


def _not_found(name: str) -> str:
    if os.path.isdir(name):
        return f'{name} is a folder, expected a URDF or xacro file, or the name of a robot.'
    if name.endswith(SUFFIXES) or (os.sep in name and ':' not in name and '\n' not in name):
        return f'There is no file {name}.'
    examples = sorted({k.partition('/')[2].removesuffix('_robot') for k in example_robots()})
    names = [*BUNDLED, *(key for key in examples if key not in BUNDLED)]
    close = difflib.get_close_matches(name.partition(':')[2] or name, names, 5)
    hint = f' Is {" or ".join(close)} meant?' if close else ''
    return (
        f'There is no robot {name!r}.{hint} Expected the text of a URDF, a URDF or xacro file, a '
        'robot of robot_descriptions or of a ROS package (package/path/robot.urdf), or one of '
        f'{listed([*close, *(key for key in names if key not in close)])}'
        f'{"" if examples else "; example-robot-data, which has more, is not installed"}.'
    )


def _ambiguous(name: str, where: str, names: Sequence[str]) -> AmbiguousNameError:
    return AmbiguousNameError(
        f'{name!r} may be several robots of {where}: {listed(names)}. Give one of these names.',
        tuple(names),
    )


def prefixes() -> list[Path]:
    """Directories in which packages are installed, those of ROS first."""
    given = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    paths = [Path(path) for path in (*given, sys.prefix) if path]
    return [path for path in dict.fromkeys(paths) if path.is_dir()]


def find_package(name: str) -> Path | None:
    """Share directory of a ROS package, None if it is not installed."""
    for prefix in prefixes():
        if (prefix / _INDEX / name).is_file() and (prefix / 'share' / name).is_dir():
            return prefix / 'share' / name
    return None


def example_robots() -> dict[str, Path]:
    """Descriptions of example-robot-data: paths by ``folder/name`` of the files."""
    found: dict[str, Path] = {}
    for folder in _example_folders():
        for path in sorted(folder.rglob('*.urdf')):
            parts = path.relative_to(folder).parts
            found.setdefault(f'{parts[0]}/{path.stem}', path)
        if found:
            break
    return found


def _example_folders() -> Iterator[Path]:
    for prefix in prefixes():
        yield prefix / 'share' / EXAMPLE_ROBOT_DATA / 'robots'
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.distribution(EXAMPLE_ROBOT_DATA).files or ():
            folder, separator, _ = str(file).partition('/robots/')
            if separator and str(file).endswith('.urdf'):
                found = metadata.distribution(EXAMPLE_ROBOT_DATA).locate_file(folder)
                yield Path(str(found), 'robots')
                return


def find_example_robot(name: str) -> Source | None:
    """Robot of example-robot-data, by the name of its file with or without its folder.

    Parameters
    ----------
    name : str
        Such as ``ur5_robot`` or ``anymal_c_simple_description/anymal``. The ending ``_robot`` and
        those of folders, ``_description`` and ``_data``, may be left out.

    Returns
    -------
    Source or None

    Raises
    ------
    AmbiguousNameError
        If the name belongs to several files.
    """
    robots = example_robots()
    for fits in (_is_file_name, _is_short_file_name, _is_folder_name):
        matches = {key: path for key, path in robots.items() if fits(key, name)}
        if len(matches) == 1:
            return Source(next(iter(matches.values())), EXAMPLE_ROBOT_DATA)
        if matches:
            raise _ambiguous(name, EXAMPLE_ROBOT_DATA, sorted(matches))
    return None


def _is_file_name(key: str, name: str) -> bool:
    return name in (key, key.partition('/')[2])


def _is_short_file_name(key: str, name: str) -> bool:
    return name == key.partition('/')[2].removesuffix('_robot')


def _is_folder_name(key: str, name: str) -> bool:
    folder = key.partition('/')[0]
    return name in (folder, folder.removesuffix('_description'), folder.removesuffix('_data'))


def find_described_robot(name: str) -> Source | None:
    """Robot of the Python package robot_descriptions, which downloads it where it has to.

    Parameters
    ----------
    name : str
        Such as ``ur5e`` or ``ur5e_description``.

    Returns
    -------
    Source or None

    Raises
    ------
    ModelError
        If it cannot be downloaded, or is no URDF.
    """
    package = 'robot_descriptions'
    module_name = name if name.endswith('_description') else f'{name}_description'
    if not module_name.isidentifier() or importlib.util.find_spec(package) is None:
        return None
    if importlib.util.find_spec(f'{package}.{module_name}') is None:
        return None
    try:
        with contextlib.redirect_stdout(sys.stderr):  # it reports what it downloads
            module = importlib.import_module(f'{package}.{module_name}')
    except Exception as error:
        raise ModelError(
            f'{module_name} of {package} cannot be had: {error}. It is downloaded when it is used '
            'for the first time, for which git and a network are needed.'
        ) from error
    path = getattr(module, 'URDF_PATH', None) or getattr(module, 'XACRO_PATH', None)
    if path is None:
        raise ModelError(f'{module_name} of {package} is not a URDF, expected one that is.')
    return Source(Path(path), package, None, getattr(module, 'XACRO_ARGS', {}))


def find_in_ros_package(name: str) -> Source | None:
    """Robot of a ROS package: ``package/path/below/share``, or ``package`` if it has only one.

    Parameters
    ----------
    name : str
        ``package://`` may stand in front.

    Returns
    -------
    Source or None
        None if there is no such package.

    Raises
    ------
    ModelError
        If the package has no such file, or more than one to choose from.
    """
    package, _, relative = name.removeprefix('package://').partition('/')
    if not package:
        return None
    folder = find_package(package)
    if folder is None:
        return None
    source = f'ROS package {package}'
    if relative:
        path = folder / relative
        if path.is_file():
            return Source(path, source)
    files = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob('*')
        if path.name.endswith(SUFFIXES) and path.is_file()
    )
    if relative:
        raise ModelError(
            f'There is no {relative} in {folder}; its descriptions are {listed(files)}.'
        )
    stems = (package, package.removesuffix('_description'))
    named = [file for file in files if Path(file).name.split('.')[0] in stems]
    chosen = files if len(files) == 1 else named
    if len(chosen) != 1:
        if not files:
            raise ModelError(f'The ROS package {package} has no robot descriptions in {folder}.')
        raise _ambiguous(name, source, [f'{package}/{file}' for file in files])
    return Source(folder / chosen[0], source)


PACKAGES = {
    EXAMPLE_ROBOT_DATA: find_example_robot,
    'robot_descriptions': find_described_robot,
    'ros': find_in_ros_package,
}
"""Where a name is looked for, in this order; ``package:name`` looks in one of them only."""


def expand_xacro(path: Path, arguments: Mapping[str, str] | None = None) -> str:
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
            timeout=XACRO_TIMEOUT,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f'xacro did not finish {path} within {XACRO_TIMEOUT:.0f} s.') from None
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
