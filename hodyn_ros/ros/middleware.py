"""How the middleware keeps messages, where nobody has said it.

rmw_fastrtps lets the buffers of a queue grow and never shrink, so that a few large messages among
many small ones leave a node larger for good: up to the depth of the queue times the largest
message. The profile ``config/fastdds.xml`` gives every message memory of its own.
"""

from __future__ import annotations

import os
from pathlib import Path

import rclpy

from hodyn_ros.resources import share_file

USE_PROFILES = 'RMW_FASTRTPS_USE_QOS_FROM_XML'
# By the name of the library: Fast DDS 3 (ROS 2 Kilted) and Fast DDS 2 (Jazzy).
PROFILES_FILE = {
    'libfastdds.so': 'FASTDDS_DEFAULT_PROFILES_FILE',
    'libfastrtps.so': 'FASTRTPS_DEFAULT_PROFILES_FILE',
}
# What the user can have said of profiles or of what they replace: variables, files found by name.
_CHOICES = (USE_PROFILES, 'RMW_FASTRTPS_PUBLICATION_MODE', *PROFILES_FILE.values())
_FILES = ('DEFAULT_FASTDDS_PROFILES.xml', 'DEFAULT_FASTRTPS_PROFILES.xml')
_LIBRARIES = Path('/proc/self/maps')


def bound_memory() -> bool:
    """Let Fast DDS keep no more memory than the messages that wait, if nobody has configured it.

    To be called after `rclpy.init` and before the first node of the process. Processes that are
    started later inherit it. Does nothing with other middleware.

    Returns
    -------
    bool
        Whether the profile of this package is used.
    """
    if not rclpy.get_rmw_implementation_identifier().startswith('rmw_fastrtps'):
        return False
    if any(name in os.environ for name in _CHOICES) or any(map(os.path.exists, _FILES)):
        return False
    try:
        libraries = _LIBRARIES.read_text(encoding='utf-8', errors='replace')
    except OSError:  # no Linux
        return False
    for library, variable in PROFILES_FILE.items():
        if library in libraries:
            os.environ[variable] = str(share_file('config/fastdds.xml'))
            os.environ[USE_PROFILES] = '1'
            return True
    return False
