"""Launch the hodyn node for the Franka Panda, with the description and limits of this package.

All arguments of hodyn.launch.py hold; demo:=true sends a reference trajectory as well.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from hodyn_ros.launching import robot_arguments, switch

SHARE = Path(__file__).resolve().parent.parent


def check_demo(context):
    """Refuse a wrong word while no node runs yet, which an error would leave behind."""
    switch('demo', LaunchConfiguration('demo').perform(context))


def start_demo(context):
    """Start the publisher of a reference trajectory if it is wanted."""
    names = ('demo', 'required', 'namespace', 'use_sim_time', 'joint_trajectory')
    value = {name: LaunchConfiguration(name).perform(context) for name in names}
    if not switch('demo', value['demo']):
        return []
    return [
        Node(
            package='hodyn_ros',
            executable='reference_publisher',
            namespace=value['namespace'],
            parameters=[{'use_sim_time': switch('use_sim_time', value['use_sim_time'])}],
            remappings=[('joint_trajectory', value['joint_trajectory'])],
            output='screen',
            on_exit=Shutdown() if switch('required', value['required']) else None,
        )
    ]


def generate_launch_description():
    """Include hodyn.launch.py with other defaults."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(argument, default_value=default, description=text)
                for argument, default, text in robot_arguments(SHARE, 'panda')
            ),
            DeclareLaunchArgument(
                'demo',
                default_value='false',
                description='Also run a publisher of a reference trajectory.',
            ),
            OpaqueFunction(function=check_demo),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(SHARE / 'launch' / 'hodyn.launch.py'))
            ),
            OpaqueFunction(function=start_demo),
        ]
    )
