"""Launch the hodyn node for the Universal Robots UR5e.

Description and parameters are those of this package; all arguments of hodyn.launch.py hold.
"""

from hodyn_ros.launching import launch_robot


def generate_launch_description():
    """Include hodyn.launch.py with other defaults."""
    return launch_robot(__file__)
