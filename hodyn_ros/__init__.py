"""Joint torques of rigid-body robots with their exact time derivatives.

The public interface: a `RobotModel` from a robot description, `inverse_dynamics` for joint efforts
and their derivatives, `forward_kinematics` for poses and twists, and `HodynError` for what goes
wrong. The ROS 2 node lives in `hodyn_ros.ros`, which alone needs a ROS installation.

They are imported when the first of them is asked for: NumPy and SciPy take most of a second, and
the commands of this package answer an interrupt or a call for help before.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hodyn_ros.public import *  # noqa: F403
    from hodyn_ros.public import __all__ as __all__
else:

    def __getattr__(name):
        public = import_module('hodyn_ros.public')
        names = globals()
        names.update({known: getattr(public, known) for known in ('__all__', *public.__all__)})
        if name in names:
            return names[name]
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')

    def __dir__():
        return [*globals(), *__getattr__('__all__')]
