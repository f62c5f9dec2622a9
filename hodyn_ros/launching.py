"""What launch files make of the values of their arguments, which are texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

REQUIRED = (
    'required',
    'false',
    'true: the end of the node ends the launch, and with it all that includes this file.',
)
"""Launch argument: name, default and description."""


def robot_arguments(share: Path, name: str) -> tuple[tuple[str, str, str], ...]:
    """Launch arguments with the description and the limits of a robot of this package.

    Parameters
    ----------
    share : pathlib.Path
        Folder of the files of this package.
    name : str
        Of the files in ``urdf`` and ``config`` there.

    Returns
    -------
    tuple of (str, str, str)
        Name, default and description of each.

    Examples
    --------
    >>> from hodyn_ros.launching import robot_arguments
    >>> robot_arguments(Path('/share'), 'fr3')[1]
    ('params_file', '/share/config/fr3.yaml', 'Parameter file of the node.')
    """
    return (
        (
            'description_file',
            str(share / 'urdf' / f'{name}.urdf'),
            'URDF file of the robot; set it to "" to use description_command or the topic.',
        ),
        (
            'params_file',
            str(share / 'config' / f'{name}.yaml'),
            'Parameter file of the node.',
        ),
    )


def switch(name: str, text: str) -> bool:
    """Whether a switch is on.

    Parameters
    ----------
    name : str
        Name of the launch argument, for the message.
    text : str
        true, 1, yes or on; false, 0, no or off; in upper or lower case.

    Raises
    ------
    RuntimeError
        If the text is none of these.
    """
    if text.lower() in ('true', '1', 'yes', 'on'):
        return True
    if text.lower() in ('false', '0', 'no', 'off'):
        return False
    raise RuntimeError(
        f'{name} is {text!r}, expected true, 1, yes or on, or false, 0, no or off.'
    )


def refuse_missing(value: Mapping[str, str], *names: str) -> None:
    """Check that files exist which launch arguments name.

    ROS would only warn of a parameter file that does not exist, and limit nothing.

    Parameters
    ----------
    value : mapping of str to str
        Values of all launch arguments.
    *names : str
        Those that are paths of files.

    Raises
    ------
    RuntimeError
        If one of them is no file.
    """
    for name in names:
        if not Path(value[name]).is_file():
            raise RuntimeError(
                f'{name} is {value[name]!r}, which is no file. Give an existing one; a relative '
                f'path begins at {Path.cwd()}.'
            )
