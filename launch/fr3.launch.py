"""Launch the hodyn node for the Franka Research 3.

Description and parameters are those of this package; all arguments of hodyn.launch.py hold.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

SHARE = Path(__file__).resolve().parent.parent


def generate_launch_description():
    """Include hodyn.launch.py with other defaults."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'description_file',
                default_value=str(SHARE / 'urdf' / 'fr3.urdf'),
                description='URDF file of the robot; set it to "" to use description_command or '
                'the topic.',
            ),
            DeclareLaunchArgument(
                'params_file',
                default_value=str(SHARE / 'config' / 'fr3.yaml'),
                description='Parameter file of the node.',
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(SHARE / 'launch' / 'hodyn.launch.py'))
            ),
        ]
    )
