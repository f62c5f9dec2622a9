"""Launch the hodyn node for any robot.

The robot description comes from a URDF file, from a xacro command, or from the topic
robot_description of a running robot_state_publisher (the default).
"""

from launch.substitutions import Command

from hodyn_ros.launching import (
    COMMON,
    description,
    file_of,
    launch_description,
    node,
    switch,
)

PARAMETERS = (
    ('base_link', '', 'First link of the chain. Empty: the root link.'),
    ('tip_link', '', 'Last link of the chain. Empty: the whole tree.'),
    (
        'loops',
        '',
        'YAML file with loops beside those of the description; open: the tree alone. Empty: those '
        'of the description.',
    ),
)
INPUTS = {
    'joint_trajectory': 'trajectories',
    'position_chunk': 'chunks of positions',
    'joint_motion': 'motions with all derivatives',
    'joint_states': 'measured positions',
    'wrench_motion': 'wrenches with derivatives',
    'wrench': 'measured wrenches',
    'stiffness_motion': 'wanted stiffnesses',
    'base_motion': 'motions of a base that moves',
    'speed_scaling': 'speeds of a controller that scales them [%]',
}
OUTPUTS = {
    'controller_trajectory': 'motions with efforts, of joint_trajectory_controller.',
    'commands': 'the stream of efforts, of a controller.',
}
TOPICS = {  # names of the arguments, and of the topics in the node
    'description_topic': ('robot_description', 'the robot description.'),
    **{name: (name, f'{text}.') for name, text in INPUTS.items()},
    **{name: (f'~/{name}', text) for name, text in OUTPUTS.items()},
}
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
    *COMMON,
    *PARAMETERS,
    *((name, topic, f'Topic of {text}') for name, (topic, text) in TOPICS.items()),
)


def start(value):
    """Make the node; arguments that are given win over the parameter file."""
    if value['description_file'] and value['description_command']:
        raise RuntimeError(
            'description_file and description_command are both given; give one of them.'
        )
    parameters = {'use_sim_time': switch(value, 'use_sim_time')}
    parameters |= {name: value[name] for name, *_ in PARAMETERS if value[name]}
    if file := file_of(value, 'description_file'):
        parameters |= description(file)
    elif value['description_command']:
        parameters |= description(Command(value['description_command']))
    remappings = [(topic, value[name]) for name, (topic, _) in TOPICS.items()]
    files = file_of(value, 'params_file')
    return [node(value, 'hodyn_node', [files, parameters], remappings)]


def generate_launch_description():
    """Declare the arguments; see `ros2 launch hodyn_ros hodyn.launch.py --show-args`."""
    return launch_description(ARGUMENTS, start)
