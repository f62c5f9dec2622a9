"""Launch the hodyn node for the KUKA LBR iiwa 14, with the description and limits of this package.

All arguments of hodyn.launch.py hold.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

from hodyn_ros.launching import robot_arguments

SHARE = Path(__file__).resolve().parent.parent


def generate_launch_description():
    """Include hodyn.launch.py with other defaults."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(argument, default_value=default, description=text)
                for argument, default, text in robot_arguments(SHARE, 'iiwa14')
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(SHARE / 'launch' / 'hodyn.launch.py'))
            ),
        ]
    )
