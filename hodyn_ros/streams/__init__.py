"""What is commanded and what a robot makes of it: streams of motions, measurements and wrenches.

Free of ROS: time comes in as an argument, so that all of it runs with a virtual clock.
"""

from hodyn_ros.streams.guard import Guard
from hodyn_ros.streams.inputs import Measured, Pairs, References
from hodyn_ros.streams.joining import plan_from_state
from hodyn_ros.streams.motion_stream import Instant, MotionStream, Plan, Request, Task
from hodyn_ros.streams.timeline import PlannedMotion, State, Timeline

__all__ = [
    'Guard',
    'Instant',
    'Measured',
    'MotionStream',
    'Pairs',
    'Plan',
    'PlannedMotion',
    'References',
    'Request',
    'State',
    'Task',
    'Timeline',
    'plan_from_state',
]
