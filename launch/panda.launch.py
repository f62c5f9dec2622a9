"""Launch the hodyn node for the Franka Panda, with the description and limits of this package.

All arguments of hodyn.launch.py hold; demo:=true sends a reference trajectory as well.
"""

from pathlib import Path

from hodyn_ros.launching import (
    COMMON,
    launch_description,
    node,
    robot_files,
    switch,
)

OWN = Path(__file__).resolve()
ARGUMENTS = (
    ('demo', 'false', 'Also run a publisher of a reference trajectory.'),
    *COMMON[1:],
    ('joint_trajectory', 'joint_trajectory', 'Topic of trajectories.'),
)


def start_demo(value):
    """Make the publisher of a reference trajectory if it is wanted."""
    if not switch(value, 'demo'):
        return []
    parameters = {'use_sim_time': switch(value, 'use_sim_time')}
    remappings = [('joint_trajectory', value['joint_trajectory'])]
    return [node(value, 'reference_publisher', [parameters], remappings)]


def generate_launch_description():
    """Include hodyn.launch.py with other defaults."""
    included = OWN.with_name('hodyn.launch.py')
    return launch_description((*robot_files(OWN), *ARGUMENTS), start_demo, included)
