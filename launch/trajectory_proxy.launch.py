"""Launch the proxy between a planner such as MoveIt and joint_trajectory_controller.

It needs a running hodyn_node (hodyn.launch.py) and the package control_msgs.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from hodyn_ros.launching import REQUIRED, refuse_missing, switch

ARGUMENTS = (
    ('params_file', '', 'Parameter file of the node.'),
    REQUIRED,
    ('namespace', '', 'Namespace of the node.'),
    ('use_sim_time', 'false', 'Use the time of the topic /clock.'),
    (
        'controller',
        '',
        'Controller that executes goals. Empty: joint_trajectory_controller.',
    ),
    ('retime_service', '', 'Service that retimes goals. Empty: hodyn_node/retime.'),
    ('timing', '', 'path or uniform. Empty: that of the parameter file, or else path.'),
    (
        'slower_only',
        '',
        'true: goals are not made faster. Empty: as the parameter file says.',
    ),
    (
        'drop_standstills',
        '',
        'true: pauses are left out. Empty: as the parameter file says.',
    ),
    ('efforts', '', 'false: no efforts are sent. Empty: as the parameter file says.'),
)

TEXTS = ('controller', 'retime_service', 'timing')
SWITCHES = ('slower_only', 'drop_standstills', 'efforts')


def start_node(context):
    """Start the node once the values of the arguments are known."""
    value = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    # ROS would only warn of a parameter file that does not exist.
    refuse_missing(value, *filter(value.get, ('params_file',)))
    # The arguments win over the parameter file, but only where they are given.
    parameters = {name: value[name] for name in TEXTS if value[name]}
    for name in ('use_sim_time', *SWITCHES):
        if value[name]:
            parameters[name] = switch(name, value[name])
    return [
        Node(
            package='hodyn_ros',
            executable='trajectory_proxy',
            namespace=value['namespace'],
            parameters=([value['params_file']] if value['params_file'] else [])
            + [parameters],
            output='screen',
            on_exit=Shutdown() if switch('required', value['required']) else None,
        )
    ]


def generate_launch_description():
    """Declare the arguments; `ros2 launch` shows them with --show-args."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=description)
                for name, default, description in ARGUMENTS
            ),
            OpaqueFunction(function=start_node),
        ]
    )
