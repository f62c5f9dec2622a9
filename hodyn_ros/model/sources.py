"""Robot descriptions by name, bundled or of packages of Python and ROS; expansion of xacro files.

The files of the ament index are read directly: ament_index_python would need a ROS installation
and returns nothing more.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hodyn_ros.errors import AmbiguousNameError, ModelError
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.resources import share_file

BUNDLED: dict[str, str | None] = {
    'panda': 'config/panda.yaml',
    'panda_with_hand': 'config/panda.yaml',
    'fr3': 'config/fr3.yaml',
    'fr3_with_hand': 'config/fr3.yaml',
    'iiwa14': 'config/iiwa14.yaml',
    'ur5e': None,
    'ur10e': None,
    'two_link': None,
    'parallel_ankle': None,
    'five_bar': None,
    'delta': None,
    'palletiser': None,
}
"""Robots that come with this package, and the files with limits that a URDF cannot hold."""

EXAMPLE_ROBOT_DATA = 'example-robot-data'
SUFFIXES = ('.urdf', '.urdf.xacro', '.xacro')

XACRO_TIMEOUT = 120.0
"""Timeout of xacro [s]."""

# xacro evaluates Python expressions, prints and exits, which needs a process of its own. Behind
# its text the program prints the files that were included, each after a zero byte.
_PROGRAM = (
    'import xacro; xacro.main(); print(*["", *xacro.all_includes], sep="\\0", end="")'
)
_COLOUR = re.compile(r'\x1b\[[^m]*m')

# Where a xacro file declares an argument, or uses it in one of two ways.
_ARGUMENT = re.compile(
    r"""<\w+:arg\s[^>]*?\bname=["']([^"']+)|\$\(arg\s+([^)\s]+)|\bxacro\.arg\(["']([^"']+)"""
)

_INDEX = Path('share', 'ament_index', 'resource_index', 'packages')
# Length above which a text is no name.
_LONGEST_NAME = 120


class RobotSource(NamedTuple):
    """A robot description that was found.

    Attributes
    ----------
    path : Path
    origin : str
        Origin in words.
    limits : Path or None
        File with limits that belong to it.
    xacro_arguments : mapping of str to str
        Default arguments of a xacro file.
    """

    path: Path
    origin: str
    limits: Path | None = None
    xacro_arguments: Mapping[str, str] = {}

    def description(self, arguments: Mapping[str, str] | None = None) -> str | Path:
        """URDF text of a xacro file, or the path of a URDF.

        Parameters
        ----------
        arguments : mapping of str to str, optional
            Of a xacro file, in place of its own.

        Raises
        ------
        ModelError
            If arguments are given for a URDF or are unknown, or xacro refuses the file.
        """
        if self.path.name.endswith('.xacro'):
            values = {**self.xacro_arguments, **(arguments or {})}
            text, included = _run_xacro(self.path, values)
            if arguments:
                _refuse_unknown([self.path, *map(Path, included)], arguments)
            return text
        if arguments:
            raise ModelError(
                f'{self.path} is not a xacro file, which alone takes arguments; given are '
                f'{listed(arguments)}.'
            )
        return self.path


def find_robot(name: str) -> RobotSource:
    """Description of a robot by its name.

    Parameters
    ----------
    name : str
        Path of a file, a bundled robot, a robot of one of `PACKAGES`, or ``package:name``.

    Raises
    ------
    AmbiguousNameError
        If several robots of a package have it; its attribute names are those that only one has.
    ModelError
        If there is none; the message names similar ones.
    """
    if name in BUNDLED:
        limits = BUNDLED[name]
        return RobotSource(
            share_file(f'urdf/{name}.urdf'),
            'bundled',
            share_file(limits) if limits else None,
        )
    if len(name) > _LONGEST_NAME and not os.path.exists(name):
        raise ModelError(_not_found(f'{name[:_LONGEST_NAME]}...'))
    path = os.path.expanduser(name)
    if os.path.exists(path) and not os.path.isdir(path):  # pipes are files too
        return RobotSource(Path(path), 'file')
    package, separator, rest = name.partition(':')
    if separator and package in PACKAGES:
        found = PACKAGES[package](rest)
    else:
        found = next((robot for find in PACKAGES.values() if (robot := find(name))), None)
    if found is None:
        raise ModelError(_not_found(name))
    return found


def _not_found(name: str) -> str:
    """Message about a name that no robot has, with similar ones."""
    if os.path.isdir(name):
        return f'{name} is a folder, expected a URDF or xacro file, or the name of a robot.'
    if name.endswith(SUFFIXES) or (os.sep in name and ':' not in name and '\n' not in name):
        return f'There is no file {name}.'
    examples = example_names()
    names = [*BUNDLED, *examples]
    hint = did_you_mean(name.partition(':')[2] or name, names, most=5)
    return (
        f'There is no robot {name!r}{hint}; expected the text of a URDF, a URDF or xacro file, a '
        'robot of robot_descriptions or of a ROS package (package/path/robot.urdf), or one of '
        f'{listed(names)}'
        f'{"" if examples else "; example-robot-data, which has more, is not installed"}.'
    )


def _ambiguous(name: str, where: str, names: Sequence[str]) -> AmbiguousNameError:
    """Error for a name that several robots of a package have."""
    return AmbiguousNameError(
        f'{name!r} may be several robots of {where}: {listed(names)}. Give one of these names.',
        names=tuple(names),
    )


def _prefixes() -> list[Path]:
    """Directories in which packages are installed, those of ROS first."""
    given = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    paths = [Path(path) for path in (*given, sys.prefix) if path]
    return [path for path in dict.fromkeys(paths) if path.is_dir()]


def example_robots() -> dict[str, Path]:
    """Descriptions of example-robot-data, from the first place that has some.

    Returns
    -------
    dict of str to Path
        By ``folder/name`` of the files; empty if it is not installed.
    """
    found: dict[str, Path] = {}
    for folder in _example_folders():
        for path in sorted(folder.rglob('*.urdf')):
            parts = path.relative_to(folder).parts
            found.setdefault(f'{parts[0]}/{path.stem}', path)
        if found:
            break
    return found


def example_names() -> list[str]:
    """Short names of the robots of example-robot-data that are not bundled."""
    names = {key.partition('/')[2].removesuffix('_robot') for key in example_robots()}
    return sorted(names - {*BUNDLED})


def _example_folders() -> Iterator[Path]:
    """Folders in which example-robot-data may be, as a package of ROS or of Python."""
    from importlib import metadata  # takes longer than to read a URDF

    for prefix in _prefixes():
        yield prefix / 'share' / EXAMPLE_ROBOT_DATA / 'robots'
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.distribution(EXAMPLE_ROBOT_DATA).files or ():
            folder, separator, _ = str(file).partition('/robots/')
            if separator and str(file).endswith('.urdf'):
                found = metadata.distribution(EXAMPLE_ROBOT_DATA).locate_file(folder)
                yield Path(str(found), 'robots')
                return


def find_example_robot(name: str) -> RobotSource | None:
    """Robot of example-robot-data, by the name of its file with or without its folder.

    The ending ``_robot`` and those of folders, ``_description`` and ``_data``, may be left out.
    """
    robots = example_robots()
    parts = [(key, *key.partition('/')[::2]) for key in robots]
    by_folder = []
    for key, folder, _ in parts:
        if name in (
            folder,
            folder.removesuffix('_description'),
            folder.removesuffix('_data'),
        ):
            by_folder.append(key)
    matches = (
        [key for key, _, file in parts if name in (key, file)]
        or [key for key, _, file in parts if name == file.removesuffix('_robot')]
        or by_folder
    )
    if len(matches) > 1:
        raise _ambiguous(name, EXAMPLE_ROBOT_DATA, sorted(matches))
    return RobotSource(robots[matches[0]], EXAMPLE_ROBOT_DATA) if matches else None


def _described_robot(name: str) -> RobotSource | None:
    """Robot of the Python package robot_descriptions, which downloads it where it has to."""
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
    return RobotSource(Path(path), package, None, getattr(module, 'XACRO_ARGS', {}))


def find_package(name: str) -> Path | None:
    """Share directory of a ROS package, None if it is not installed.

    The directories of AMENT_PREFIX_PATH are searched, then that of this Python.
    """
    for prefix in _prefixes():
        if (prefix / _INDEX / name).is_file() and (prefix / 'share' / name).is_dir():
            return prefix / 'share' / name
    return None


def _robot_of_ros_package(name: str) -> RobotSource | None:
    """Robot of a ROS package: ``package/path/below/share``, or ``package`` if it has only one."""
    package, _, relative = name.removeprefix('package://').partition('/')
    folder = find_package(package) if package else None
    if folder is None:
        return None
    source = f'ROS package {package}'
    if relative and (folder / relative).is_file():
        return RobotSource(folder / relative, source)
    files = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob('*')
        if path.name.endswith(SUFFIXES) and path.is_file()
    )
    if relative:
        raise ModelError(
            f'There is no {relative} in {folder}; its descriptions are {listed(files)}.'
        )
    if not files:
        raise ModelError(
            f'The ROS package {package} has no robot descriptions in {folder}.'
        )
    stems = (package, package.removesuffix('_description'))
    named = [file for file in files if Path(file).name.split('.')[0] in stems]
    chosen = files if len(files) == 1 else named
    if len(chosen) != 1:
        raise _ambiguous(name, source, [f'{package}/{file}' for file in files])
    return RobotSource(folder / chosen[0], source)


PACKAGES = {
    EXAMPLE_ROBOT_DATA: find_example_robot,
    'robot_descriptions': _described_robot,
    'ros': _robot_of_ros_package,
}
"""Where a name is looked for, in this order; ``package:name`` looks in one of them only."""


def root_tag(description: str | Path) -> str:
    """Tag of the first element of an XML text or file, which tells the language.

    Parameters
    ----------
    description : str or Path

    Returns
    -------
    str
        Such as robot, sdf or mujoco; empty if the text is no XML, and for a pipe, which can be
        read only once.
    """
    from io import StringIO
    from xml.etree import ElementTree

    if isinstance(description, Path) and not description.is_file():
        return ''
    given = StringIO(description) if isinstance(description, str) else description
    try:
        _, first = next(ElementTree.iterparse(given, ('start',)))
    except (OSError, StopIteration, ElementTree.ParseError):
        return ''  # the reader of URDF says more
    return str(first.tag)


def _run_xacro(path: Path, arguments: Mapping[str, str]) -> tuple[str, list[str]]:
    """Text that a xacro file stands for with its arguments, and the files that it includes."""
    import subprocess

    if importlib.util.find_spec('xacro') is None:
        raise ModelError(
            f'{path} is a xacro file, and xacro is not installed: pip install xacro, or in ROS '
            'install the package xacro. A URDF needs nothing: '
            f'xacro {path.name} > {path.name.split(".")[0]}.urdf'
        )
    pairs = [f'{name}:={value}' for name, value in arguments.items()]
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
        raise ModelError(
            f'xacro did not finish {path} within {XACRO_TIMEOUT:.0f} s.'
        ) from None
    if done.returncode != 0:
        # Its complaint on one line, without colours.
        lines = [line.strip() for line in _COLOUR.sub('', done.stderr).splitlines()]
        complaint = ' '.join([line for line in lines if line][-6:]) or 'it gives no reason'
        has_ros = importlib.util.find_spec('ament_index_python') is not None
        if b'$(find' in path.read_bytes() and not has_ros:
            complaint += (
                ' $(find PACKAGE) needs ROS: run "xacro FILE > robot.urdf" where ROS is sourced, '
                'or write the path of the package in its place.'
            )
        raise ModelError(f'xacro refuses {path}: {complaint}')
    text, *included = done.stdout.split('\0')
    return text, included


def _refuse_unknown(files: Sequence[Path], arguments: Mapping[str, str]) -> None:
    """Refuse arguments that neither a xacro file nor those that it includes ask for."""
    texts = (file.read_text(encoding='utf-8', errors='replace') for file in files)
    found = (match for text in texts for match in _ARGUMENT.finditer(text))
    names = sorted({match[match.lastindex or 0] for match in found})
    for name in arguments:
        if name not in names:
            raise ModelError(
                f'{files[0]} has no argument {name!r}{did_you_mean(name, names)}; its arguments '
                f'are {listed(names)}.'
            )


def xml_text(
    given: str | bytes | os.PathLike[str], xacro_arguments: Mapping[str, str] | None
) -> tuple[str | bytes, str]:
    """XML text of a robot description, and the path of its file; empty if it is given as text.

    Parameters
    ----------
    given : str, bytes or path
        Text that begins with <, or else a path or a name, see `find_robot`.
    xacro_arguments : mapping of str to str or None
        Only for xacro files.

    Raises
    ------
    ModelError
        If nothing is found or can be read, or a text is given arguments.
    """
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise ModelError(
            f'The robot description is of type {type(given).__name__}, expected XML text, the '
            'path of a URDF or xacro file, or the name of a robot.'
        )
    if isinstance(given, bytes) and b'<' not in given and b'\0' not in given:
        given = os.fsdecode(given)
    if isinstance(given, bytes) or (
        isinstance(given, str) and given.lstrip('\ufeff \t\r\n').startswith('<')
    ):
        if xacro_arguments:
            raise ModelError(
                'The robot description is a text; only xacro files take arguments.'
            )
        return given, ''
    if isinstance(given, str) and not given.strip():
        raise ModelError('The robot description is empty, expected XML text or a path.')
    found = (
        find_robot(given) if isinstance(given, str) else RobotSource(Path(given), 'file')
    )
    text = found.description(xacro_arguments)
    try:
        return text if isinstance(text, str) else text.read_bytes(), str(found.path)
    except (OSError, ValueError) as error:
        raise ModelError(
            f'The robot description {str(found.path)!r} is not a readable file: {error}'
        ) from error
