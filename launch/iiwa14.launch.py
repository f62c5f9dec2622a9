"""Launch the hodyn node for the KUKA LBR iiwa 14, with the description and limits of this package.

All arguments of hodyn.launch.py hold.
"""

from hodyn_ros.launching import launch_robot


def generate_launch_description():
    """Include hodyn.launch.py with other defaults."""
    return launch_robot(__file__)
