"""Launch a Franka Panda with elastic joints: simulated, controlled, and computed.

The simulated robot publishes what is measured and the clock; the flatness controller answers every
measurement with motor torques; a reference publisher sends trajectories; the hodyn node computes
the torques of joints and motors along them. With simulation:=false the first of them is left out,
and a robot with the topics elastic_state and motor_command takes its place.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from hodyn_ros.launching import REQUIRED, refuse_missing, switch

SHARE = Path(__file__).resolve().parent.parent

ARGUMENTS = (
    (
        'description_file',
        str(SHARE / 'urdf' / 'panda.urdf'),
        'URDF file of the robot.',
    ),
    (
        'params_file',
        str(SHARE / 'config' / 'panda_sea.yaml'),
        'Parameter file of all nodes, with the actuators.',
    ),
    (
        'limits_file',
        str(SHARE / 'config' / 'panda.yaml'),
        'Parameter file of the hodyn node alone, with the limits of the joints.',
    ),
    # Nobody includes a demonstration, of which no node is of use alone.
    (REQUIRED[0], 'true', REQUIRED[2]),
    ('namespace', '', 'Namespace of the nodes and their topics.'),
    (
        'clock',
        '',
        'Topic of the simulated time. Empty: /clock, and with a namespace the clock in it, since '
        'each simulated robot has its own time.',
    ),
    (
        'controller',
        '',
        'Control law: tracking, joint_impedance, cartesian_impedance, gravity_compensation, '
        'feed_forward_2, feed_forward_1, feed_forward_0 or flatness (exact linearisation). Empty: '
        'that of the parameter file, or else tracking.',
    ),
    ('simulation', 'true', 'Also simulate the robot. Needs the Python package mujoco.'),
    ('demo', 'true', 'Also run a publisher of a reference trajectory.'),
    ('robot_state_publisher', 'false', 'Also run robot_state_publisher, for displays.'),
)


def start_nodes(context):
    """Start the nodes once the values of the arguments are known."""
    value = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    refuse_missing(value, 'description_file', 'params_file', 'limits_file')
    wanted = {
        name: switch(name, value[name])
        for name in ('simulation', 'demo', 'robot_state_publisher')
    }
    namespace = value['namespace'].strip('/')
    with open(value['description_file'], encoding='utf-8') as file:
        description = {'robot_description': ParameterValue(file.read(), value_type=str)}
    # The simulated robot makes the time that the others follow; another robot makes another one.
    time = {'use_sim_time': wanted['simulation']}
    clock = '/' + (
        value['clock'].strip('/') or '/'.join(filter(None, (namespace, 'clock')))
    )
    # Commands and measurements answer each other: none of them may get lost.
    measured = '/'.join(filter(None, (namespace, 'elastic_state')))
    control = {f'qos_overrides./{measured}.subscription.reliability': 'reliable'}
    if value['controller']:
        control['controller'] = value['controller']
    files = [value['params_file']]

    def node(executable, parameters, remappings=(), package='hodyn_ros'):
        return Node(
            package=package,
            executable=executable,
            namespace=value['namespace'],
            parameters=parameters,
            remappings=[*remappings, *([('/clock', clock)] if clock != '/clock' else ())],
            output='screen',
            on_exit=Shutdown() if switch('required', value['required']) else None,
        )

    nodes = [
        node('hodyn_node', [value['limits_file'], *files, description, time]),
        node(
            'flatness_controller',
            [*files, description, time, control],
            [('~/motor_command', 'motor_command')],
        ),
    ]
    if wanted['simulation']:
        own = {'use_sim_time': False}
        nodes.append(node('simulated_robot', [*files, description, own]))
    if wanted['demo']:
        nodes.append(node('reference_publisher', [time]))
    if wanted['robot_state_publisher']:
        nodes.append(
            node(
                'robot_state_publisher',
                [description, time],
                package='robot_state_publisher',
            )
        )
    return nodes


def generate_launch_description():
    """Declare the arguments; see `ros2 launch hodyn_ros panda_sea.launch.py --show-args`."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=description)
                for name, default, description in ARGUMENTS
            ),
            OpaqueFunction(function=start_nodes),
        ]
    )
