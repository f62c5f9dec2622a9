"""What is commanded and what a robot makes of it: streams of motions, measurements and wrenches.

Free of ROS: time comes in as an argument, so that all of it runs with a virtual clock.

Control loops with their inputs, payloads and wrenches are imported when they are asked for: they
load much that streams of motions do without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hodyn_ros.streams.joining import plan_from_state
from hodyn_ros.streams.motion_stream import Instant, MotionStream, Plan, Request, Task
from hodyn_ros.streams.timeline import PlannedMotion, ScaledClock, State, Timeline

if TYPE_CHECKING:
    from hodyn_ros.streams.acting_wrenches import Wrenches
    from hodyn_ros.streams.control_loop import ControlLoop, ControlStep
    from hodyn_ros.streams.loop_inputs import Measured, References, Stamps
    from hodyn_ros.streams.loop_laws import elastic_robot, make_laws
    from hodyn_ros.streams.payloads import Transitions

__all__ = [
    'ControlStep',
    'ControlLoop',
    'Instant',
    'Measured',
    'MotionStream',
    'Plan',
    'PlannedMotion',
    'References',
    'Request',
    'ScaledClock',
    'Stamps',
    'State',
    'Task',
    'Timeline',
    'Transitions',
    'Wrenches',
    'elastic_robot',
    'make_laws',
    'plan_from_state',
]

_LATER = {
    'ControlStep': 'control_loop',
    'ControlLoop': 'control_loop',
    'Measured': 'loop_inputs',
    'References': 'loop_inputs',
    'Stamps': 'loop_inputs',
    'Transitions': 'payloads',
    'Wrenches': 'acting_wrenches',
    'elastic_robot': 'loop_laws',
    'make_laws': 'loop_laws',
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f'{__name__}.{_LATER[name]}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
