"""Launch the hodyn node for any robot.

The robot description comes from a URDF file, from a xacro command, or from the topic
robot_description of a running robot_state_publisher (the default).
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import Command, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from hodyn_ros.launching import REQUIRED, refuse_missing, switch

ARGUMENTS = (
    (
        'description_file',
        '',
        'URDF file of the robot. Empty: use description_command or the topic.',
    ),
    (
        'description_command',
        '',
        'Command that prints the URDF, for example "xacro /path/robot.urdf.xacro". '
        'Empty: use description_file or the topic.',
    ),
    ('description_topic', 'robot_description', 'Topic of the robot description.'),
    ('params_file', '', 'Parameter file of the node.'),
    REQUIRED,
    ('namespace', '', 'Namespace of the node and its topics.'),
    ('use_sim_time', 'false', 'Use the time of the topic /clock.'),
    ('base_link', '', 'First link of the chain. Empty: the root link.'),
    ('tip_link', '', 'Last link of the chain. Empty: the whole tree.'),
    (
        'loops',
        '',
        'YAML file with loops beside those of the description; open: the tree alone. Empty: those '
        'of the description.',
    ),
    ('joint_trajectory', 'joint_trajectory', 'Topic on which trajectories arrive.'),
    ('position_chunk', 'position_chunk', 'Topic on which chunks of positions arrive.'),
    ('joint_motion', 'joint_motion', 'Topic on which motions with all derivatives arrive.'),
    ('joint_states', 'joint_states', 'Topic on which measured positions arrive.'),
    ('wrench_motion', 'wrench_motion', 'Topic on which wrenches with derivatives arrive.'),
    ('wrench', 'wrench', 'Topic on which measured wrenches arrive.'),
    ('stiffness_motion', 'stiffness_motion', 'Topic on which wanted stiffnesses arrive.'),
    (
        'base_motion',
        'base_motion',
        'Topic on which the motion of a base that moves arrives.',
    ),
    (
        'controller_trajectory',
        '~/controller_trajectory',
        'Topic of joint_trajectory_controller that gets motions with efforts.',
    ),
    ('commands', '~/commands', 'Topic of a controller that gets the stream of efforts.'),
)

REMAPPED = (
    'joint_trajectory',
    'position_chunk',
    'joint_motion',
    'joint_states',
    'wrench_motion',
    'wrench',
    'stiffness_motion',
    'base_motion',
)

OUTPUTS = ('controller_trajectory', 'commands')


def start_node(context):
    """Start the node once the values of the arguments are known."""
    value = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    if value['description_file'] and value['description_command']:
        raise RuntimeError(
            'description_file and description_command are both given; give one of them.'
        )
    refuse_missing(value, *filter(value.get, ('description_file', 'params_file')))
    # The arguments win over the parameter file, but only where they are given.
    parameters = {'use_sim_time': switch('use_sim_time', value['use_sim_time'])}
    for name in ('base_link', 'tip_link', 'loops'):
        if value[name]:
            parameters[name] = value[name]
    if value['description_file']:
        with open(value['description_file'], encoding='utf-8') as file:
            parameters['robot_description'] = ParameterValue(file.read(), value_type=str)
    elif value['description_command']:
        parameters['robot_description'] = ParameterValue(
            Command(value['description_command']), value_type=str
        )
    remappings = [('robot_description', value['description_topic'])]
    remappings += [(topic, value[topic]) for topic in REMAPPED]
    remappings += [(f'~/{name}', value[name]) for name in OUTPUTS]

    return [
        Node(
            package='hodyn_ros',
            executable='hodyn_node',
            namespace=value['namespace'],
            parameters=([value['params_file']] if value['params_file'] else [])
            + [parameters],
            remappings=remappings,
            output='screen',
            on_exit=Shutdown() if switch('required', value['required']) else None,
        )
    ]


def generate_launch_description():
    """Declare the arguments; see `ros2 launch hodyn_ros hodyn.launch.py --show-args`."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=description)
                for name, default, description in ARGUMENTS
            ),
            OpaqueFunction(function=start_node),
        ]
    )
