"""Launch the hodyn node for the Franka Research 3.

Description and parameters are those of this package; all arguments of hodyn.launch.py hold.
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
                for argument, default, text in robot_arguments(SHARE, 'fr3')
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(SHARE / 'launch' / 'hodyn.launch.py'))
            ),
        ]
    )
