"""Launch the hodyn node and the trajectory proxy for an arm of Universal Robots.

Its driver runs scaled_joint_trajectory_controller, which takes positions and no efforts. MoveIt
sends its goals to the proxy, trajectory_proxy/follow_joint_trajectory.
"""

from pathlib import Path

from hodyn_ros.launching import (
    COMMON,
    description,
    file_of,
    launch_description,
    node,
    switch,
)

SHARE = Path(__file__).resolve().parent.parent
ARMS = ('ur5e', 'ur10e')

ARGUMENTS = (
    (
        'ur_type',
        'ur5e',
        f'Type of the arm. {" and ".join(ARMS)}: description and parameters are those of this '
        'package; others: the description is that of the topic robot_description.',
    ),
    (
        'params_file',
        '',
        'Parameter file of hodyn_node. Empty: that of this package for ur_type, or else none.',
    ),
    *COMMON[1:],
    (
        'controller',
        'scaled_joint_trajectory_controller',
        'Controller that executes goals; none of them has efforts.',
    ),
    (
        'speed_scaling',
        '/speed_scaling_state_broadcaster/speed_scaling',
        'Topic of the speed at which the controller executes trajectories [%]. Empty: as planned.',
    ),
    (
        'controller_trajectory',
        '~/controller_trajectory',
        'Topic of the motions that hodyn_node makes of joint_trajectory, of the controller.',
    ),
)


def start_nodes(value):
    """Make the nodes."""
    arm, files = value['ur_type'], file_of(value, 'params_file')
    time = {'use_sim_time': switch(value, 'use_sim_time')}
    topics = [(name, value[name]) for name in ('speed_scaling',) if value[name]]
    topics.append(('~/controller_trajectory', value['controller_trajectory']))
    own = {'speed_scaling': bool(value['speed_scaling']), 'command.effort_tolerance': 0.0}
    if arm in ARMS:
        own |= description(str(SHARE / 'urdf' / f'{arm}.urdf'))
        files = files or str(SHARE / 'config' / f'{arm}.yaml')
    goals = {'controller': value['controller'], 'efforts': False}
    return [
        node(value, 'hodyn_node', [files, time | own], topics),
        node(value, 'trajectory_proxy', [time | goals]),
    ]


def generate_launch_description():
    """Declare the arguments; see `ros2 launch hodyn_ros ur.launch.py --show-args`."""
    return launch_description(ARGUMENTS, start_nodes)
