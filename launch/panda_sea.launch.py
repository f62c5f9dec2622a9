"""Launch a Franka Panda with elastic joints: simulated, controlled, and computed.

The simulated robot publishes what is measured and the clock; the flatness controller answers every
measurement with motor torques; a reference publisher sends trajectories; the hodyn node computes
the torques of joints and motors along them. With simulation:=false the first of them is left out,
and a robot with the topics elastic_state and motor_command takes its place.
"""

from pathlib import Path

from hodyn_ros.launching import (
    REQUIRED,
    description,
    file_of,
    launch_description,
    node,
    switch,
)

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


def start_nodes(value):
    """Make the nodes."""
    files = [file_of(value, 'params_file'), description(file_of(value, 'description_file'))]
    limits, simulation = file_of(value, 'limits_file'), switch(value, 'simulation')
    namespace = value['namespace'].strip('/')
    # The simulated robot makes the time that the others follow; another robot makes another one.
    time = {'use_sim_time': simulation}
    clock = '/' + (
        value['clock'].strip('/') or '/'.join(filter(None, (namespace, 'clock')))
    )
    clocks = [('/clock', clock)] if clock != '/clock' else []
    # Commands and measurements answer each other: none of them may get lost.
    measured = '/'.join(filter(None, (namespace, 'elastic_state')))
    control = {f'qos_overrides./{measured}.subscription.reliability': 'reliable'}
    if value['controller']:
        control['controller'] = value['controller']
    nodes = [
        node(value, 'hodyn_node', [limits, *files, time], clocks),
        node(
            value,
            'flatness_controller',
            [*files, time, control],
            [('~/motor_command', 'motor_command'), *clocks],
        ),
    ]
    if simulation:
        nodes.append(
            node(value, 'simulated_robot', [*files, {'use_sim_time': False}], clocks)
        )
    if switch(value, 'demo'):
        nodes.append(node(value, 'reference_publisher', [time], clocks))
    if switch(value, name := 'robot_state_publisher'):
        nodes.append(node(value, name, [files[1], time], clocks, package=name))
    return nodes


def generate_launch_description():
    """Declare the arguments; see `ros2 launch hodyn_ros panda_sea.launch.py --show-args`."""
    return launch_description(ARGUMENTS, start_nodes)
