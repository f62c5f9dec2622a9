"""Launch files of this package: tables of arguments, whose values are texts, and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Argument = tuple[str, str, str]
"""Launch argument: name, default and description."""

REQUIRED = (
    'required',
    'false',
    'true: the end of the node ends the launch, and with it all that includes this file.',
)
COMMON = (
    ('params_file', '', 'Parameter file of the node.'),
    REQUIRED,
    ('namespace', '', 'Namespace of the node and its topics.'),
    ('use_sim_time', 'false', 'Use the time of the topic /clock.'),
)
"""Arguments of a launch file with one node."""


def launch_description(
    arguments: Sequence[Argument],
    make: Callable[[Mapping[str, str]], Sequence[Any]],
    included: Path | None = None,
) -> Any:
    """Launch description with arguments, included files and nodes.

    Parameters
    ----------
    arguments : sequence of (str, str, str)
        Those that the file declares.
    make : callable
        Takes the values of the arguments and makes nodes.
    included : pathlib.Path, optional
        Launch file that is included first, with the same values.

    Returns
    -------
    launch.LaunchDescription
    """
    from launch import LaunchDescription
    from launch.actions import (
        DeclareLaunchArgument,
        IncludeLaunchDescription,
        OpaqueFunction,
    )
    from launch.launch_description_sources import PythonLaunchDescriptionSource
    from launch.substitutions import LaunchConfiguration

    def start(context: Any) -> Sequence[Any]:
        names = [name for name, *_ in arguments]
        return make({name: LaunchConfiguration(name).perform(context) for name in names})

    parts = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, default, text in arguments
    ]
    if included is not None:
        # Wrong values are refused while no node runs yet, which an error would leave behind.
        parts.append(OpaqueFunction(function=lambda context: start(context)[:0]))
        source = PythonLaunchDescriptionSource(str(included))
        parts.append(IncludeLaunchDescription(source))
    return LaunchDescription([*parts, OpaqueFunction(function=start)])


def file_of(value: Mapping[str, str], name: str) -> str:
    """Path that a launch argument names; empty if it names none.

    ROS would only warn of a parameter file that does not exist, and limit nothing.

    Parameters
    ----------
    value : mapping of str to str
        Values of the launch arguments.
    name : str
        Of the argument.

    Raises
    ------
    RuntimeError
        If it is no file.
    """
    path = value[name]
    if path and not Path(path).is_file():
        raise RuntimeError(
            f'{name} is {path!r}, which is no file. Give an existing one; a relative '
            f'path begins at {Path.cwd()}.'
        )
    return path


def node(
    value: Mapping[str, str],
    executable: str,
    parameters: Iterable[Any],
    remappings: Iterable[tuple[str, str]] = (),
    package: str = 'hodyn_ros',
    **options: Any,
) -> Any:
    """Node with the namespace of the arguments, that ends the launch if it is `required`.

    Parameters
    ----------
    value : mapping of str to str
        Of the launch arguments.
    executable : str
    parameters : iterable of str or dict
        Files and values, the later ones first.
    remappings : iterable of (str, str)
    package : str
    **options
        Of `launch_ros.actions.Node`.

    Returns
    -------
    launch_ros.actions.Node
    """
    from launch.actions import Shutdown
    from launch_ros.actions import Node

    return Node(
        package=package,
        executable=executable,
        namespace=value['namespace'],
        parameters=list(filter(None, parameters)),
        remappings=list(remappings),
        output='screen',
        on_exit=Shutdown() if switch(value, 'required') else None,
        **options,
    )


def description(value: Any) -> dict[str, Any]:
    """Parameter with a robot description: the text of a file, or a `launch` substitution."""
    from launch_ros.parameter_descriptions import ParameterValue

    text = Path(value).read_text(encoding='utf-8') if isinstance(value, str) else value
    return {'robot_description': ParameterValue(text, value_type=str)}


def robot_files(path: str | Path) -> tuple[Argument, ...]:
    """Launch arguments with the description and the parameters of a robot of this package.

    Parameters
    ----------
    path : str or pathlib.Path
        Of the launch file of the robot, ``launch/<name>.launch.py``.

    Returns
    -------
    tuple of (str, str, str)
        Name, default and description of each.

    Examples
    --------
    >>> from hodyn_ros.launching import robot_files
    >>> robot_files('/share/launch/fr3.launch.py')[1]
    ('params_file', '/share/config/fr3.yaml', 'Parameter file of the node.')
    """
    name, share = Path(path).name.partition('.')[0], Path(path).parent.parent
    text = 'URDF file of the robot; set it to "" to use description_command or the topic.'
    return (
        ('description_file', str(share / 'urdf' / f'{name}.urdf'), text),
        ('params_file', str(share / 'config' / f'{name}.yaml'), COMMON[0][2]),
    )


def launch_robot(path: str) -> Any:
    """Launch description of a robot of this package: ``hodyn.launch.py`` with its files.

    Parameters
    ----------
    path : str
        Of the launch file of the robot, ``launch/<name>.launch.py``.

    Returns
    -------
    launch.LaunchDescription
    """
    own = Path(path).resolve()
    included = own.with_name('hodyn.launch.py')
    return launch_description(robot_files(own), lambda value: (), included)


def switch(value: Mapping[str, str], name: str) -> bool:
    """Whether a switch is on.

    Parameters
    ----------
    value : mapping of str to str
        Of the launch arguments: true, 1, yes or on; false, 0, no or off; in upper or lower case.
    name : str
        Of the argument.

    Raises
    ------
    RuntimeError
        If the text is none of these.
    """
    text = value[name]
    if text.lower() in ('true', '1', 'yes', 'on'):
        return True
    if text.lower() in ('false', '0', 'no', 'off'):
        return False
    raise RuntimeError(
        f'{name} is {text!r}, expected true, 1, yes or on, or false, 0, no or off.'
    )
