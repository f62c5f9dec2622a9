"""Launch the view of a robot whose hodyn_node runs: `hodyn view ROBOT --live`."""

from hodyn_ros.launching import REQUIRED, launch_description, node, switch

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


def start_node(value):
    """Make the command."""
    arguments = ['view', value['robot'], '--live']
    for name in ('config', 'output'):
        if value[name]:
            arguments += [f'--{name}', value[name]]
    if switch(value, 'serve'):
        arguments.append('--serve')
    remappings = [(topic, value[topic]) for topic in REMAPPED]
    # What launch adds are arguments of ROS.
    return [node(value, 'hodyn', (), remappings, arguments=[*arguments, '--'])]


def generate_launch_description():
    """Declare the arguments; `ros2 launch` shows them with --show-args."""
    return launch_description(ARGUMENTS, start_node)
