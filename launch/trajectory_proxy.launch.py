"""Launch the proxy between a planner such as MoveIt and joint_trajectory_controller.

It needs a running hodyn_node (hodyn.launch.py) and the package control_msgs.
"""

from hodyn_ros.launching import COMMON, file_of, launch_description, node, switch

ARGUMENTS = (
    *COMMON,
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


def start_node(value):
    """Make the node; arguments that are given win over the parameter file."""
    parameters = {name: value[name] for name in TEXTS if value[name]}
    for name in ('use_sim_time', *SWITCHES):
        if value[name]:
            parameters[name] = switch(value, name)
    return [node(value, 'trajectory_proxy', [file_of(value, 'params_file'), parameters])]


def generate_launch_description():
    """Declare the arguments; `ros2 launch` shows them with --show-args."""
    return launch_description(ARGUMENTS, start_node)
