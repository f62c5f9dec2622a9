"""Launch the view of a robot whose hodyn_node runs: `hodyn view ROBOT --live`."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from hodyn_ros.launching import REQUIRED, switch

ARGUMENTS = (
    ('robot', 'panda', 'File or name of the robot, as for the command hodyn.'),
    ('config', '', 'File of parameters, or its name. Empty: what comes with the robot.'),
    ('output', '', 'Recording (.rrd). Empty: a window, without a display <robot>.rrd.'),
    ('serve', 'false', 'Show it in browsers.'),
    REQUIRED,
    ('namespace', '', 'Namespace of the node that is shown.'),
    ('joint_states', 'joint_states', 'Topic on which measured positions arrive.'),
    ('joint_motion', 'joint_motion', 'Topic on which motions with all derivatives arrive.'),
)

REMAPPED = ('joint_states', 'joint_motion')


def start_node(context):
    """Start the command once the values of the arguments are known."""
    value = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    arguments = ['view', value['robot'], '--live']
    for name in ('config', 'output'):
        if value[name]:
            arguments += [f'--{name}', value[name]]
    if switch('serve', value['serve']):
        arguments.append('--serve')
    return [
        Node(
            package='hodyn_ros',
            executable='hodyn',
            # What launch adds are arguments of ROS.
            arguments=[*arguments, '--'],
            namespace=value['namespace'],
            remappings=[(topic, value[topic]) for topic in REMAPPED],
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
