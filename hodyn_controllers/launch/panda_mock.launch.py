"""Launch a controller manager with mock hardware of the Panda, EffortController and hodyn_node.

Mock hardware takes torques and does not move; /diagnostics and the state interfaces of the
controller show what it does with the efforts of the demonstration.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

PARAMETERS = Path(__file__).resolve().parent.parent / 'config' / 'panda_mock.yaml'
JOINTS = tuple(f'panda_joint{j}' for j in range(1, 8))


def with_mock_hardware(description):
    """Add hardware to a robot description that takes torques of the joints."""
    joints = ''.join(
        f'<joint name="{name}"><command_interface name="effort"/>'
        '<state_interface name="position"/><state_interface name="effort"/></joint>'
        for name in JOINTS
    )
    hardware = (
        '<ros2_control name="mock" type="system"><hardware>'
        f'<plugin>mock_components/GenericSystem</plugin></hardware>{joints}</ros2_control>'
    )
    return description.replace('</robot>', f'{hardware}</robot>')


def generate_launch_description():
    """Start all of it."""
    share = Path(get_package_share_directory('hodyn_ros'))
    description = with_mock_hardware((share / 'urdf' / 'panda.urdf').read_text())
    return LaunchDescription(
        [
            Node(
                package='robot_state_publisher',
                executable='robot_state_publisher',
                parameters=[{'robot_description': description}],
            ),
            Node(
                package='controller_manager',
                executable='ros2_control_node',
                parameters=[str(PARAMETERS)],
                remappings=[('~/robot_description', '/robot_description')],
                output='screen',
            ),
            Node(
                package='controller_manager',
                executable='spawner',
                arguments=['effort_controller', '--param-file', str(PARAMETERS)],
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(share / 'launch' / 'panda.launch.py')),
                launch_arguments={'demo': 'true'}.items(),
            ),
        ]
    )
