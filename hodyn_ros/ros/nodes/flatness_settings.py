"""What `flatness_controller` can be told, see `hodyn_ros.ros.base.parameters`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from hodyn_ros.control.guards import FLOAT
from hodyn_ros.control.laws import CONTROLLERS, MODES, TRACKING
from hodyn_ros.errors import ControlError
from hodyn_ros.names import listed
from hodyn_ros.ros.base.node_settings import NodeSettings, margin_problems
from hodyn_ros.ros.base.parameters import (
    Numbers,
    Triple,
    Values,
    entry,
    same,
)
from hodyn_ros.streams.loop_inputs import HOLD
from hodyn_ros.typing import Array

_same = partial(same, NodeSettings, read_only=True)


@dataclass(frozen=True)
class ControlSettings:
    """Parameters of the flatness controller."""

    base_link: str = _same('base_link')
    tip_link: str = _same('tip_link')
    gravity: Triple = _same('gravity')
    allow_partial_joints: bool = _same('allow_partial_joints')
    controller: str = entry(
        TRACKING,
        'Control law: tracking (robust to model errors, from positions alone), the compliant laws '
        'joint_impedance, cartesian_impedance and gravity_compensation (hand guiding), '
        'feed_forward_0 to 2 (number of derivatives of the joint torque) or flatness (exact '
        'linearisation).',
        choices=(*MODES, *CONTROLLERS),
    )
    bandwidth: Numbers = entry(
        (0.0,),
        'Bandwidth, the distance of the error poles from zero [rad/s]; laws other than tracking '
        'take one number for each joint, too; 0: 0.05 / sample_period for tracking, else 20.',
        0.0,
        1e4,
    )
    sample_period: float = entry(
        0.001, 'Between two measurements, and how long a command is held [s].', 1e-5, 1.0
    )
    delay: float = entry(
        0.0,
        'Known delay from a measurement to the action of its command; for tracking in whole '
        'samples [s].',
        0.0,
        0.1,
    )
    torque_sensors: bool = entry(
        False,
        'The robot measures the torques between springs and links (spring_torque of '
        'elastic_state); tracking uses them in place of the deflections.',
    )
    measurement_timeout: float = entry(
        0.1,
        'Largest difference of the stamp of a measurement from now [s]; 0: any, and the stamps '
        'are the time.',
        0.0,
        1e6,
    )
    reference_timeout: float = entry(
        0.05,
        'A reference is continued by its derivatives for this time at most [s].',
        1e-6,
        10.0,
    )
    without_reference: str = entry(
        'stop',
        'What happens without a reference, or when the stream of references ends: stop '
        '(no command is sent) or hold (the robot is brought to rest and held).',
        choices=('stop', HOLD),
    )
    stop_duration: float = entry(
        0.5,
        'Duration of a stop by an empty trajectory, or by without_reference: hold [s].',
        0.01,
        60.0,
    )
    max_tracking_error: Numbers = entry(
        (0.2,),
        'Distance of a joint from its reference that stops the robot [rad, m]: one number, or '
        'one for each joint.',
        1e-6,
        1e6,
    )
    max_external_torque: Numbers = entry(
        (0.0,),
        'External torque that stops the robot [N m, N], not with compliant laws: one number, or '
        'one for each joint; 0: the largest torque of the motor.',
        0.0,
        1e6,
    )
    max_drive_error: Numbers = entry(
        (0.0,),
        'Difference between commanded torque and the torque that moves the motor that stops the '
        'robot, such as with a closed brake [N m, N]: one number, or one for each joint; 0: half '
        'of the largest torque.',
        0.0,
        1e6,
    )
    collision_reaction: str = entry(
        'stop',
        'Reaction to max_external_torque: stop (motors are held) or float (they give way, with '
        'weight and damping).',
        choices=('stop', FLOAT),
    )
    tool_link: str = entry(
        '',
        'Link of cartesian_impedance and of ~/external_wrench; empty: neither is available.',
    )
    joint_stiffness: Numbers = entry(
        (100.0,),
        'Stiffness of joint_impedance [N m/rad, N/m]: one number, or one for each joint.',
        0.0,
        1e6,
    )
    translational_stiffness: float = entry(
        500.0, 'Stiffness of cartesian_impedance in all directions [N/m].', 0.0, 1e6
    )
    rotational_stiffness: float = entry(
        30.0, 'Stiffness of cartesian_impedance about all axes [N m/rad].', 0.0, 1e6
    )
    # Of the limits that trajectories and references have to keep; laws and guards have them whole.
    margins: Values = _same('margins')
    actuators: Values = _same('actuators')

    def contradictions(self) -> list[str]:
        """Values that are valid alone but not together, or not for the laws."""
        variable = [
            f'Parameter actuators.{joint}.type is vsa, expected sea or rigid: no law of this node '
            'controls a joint of variable stiffness, whose motors also set the stiffness. '
            'hodyn_node computes what such motors have to do along a motion.'
            for joint, key, value in self.actuators
            if (key, value) == ('type', 'vsa')
        ]
        return [*margin_problems(self.margins), *variable]

    def of_joints(self, name: str, joint_names: Sequence[str]) -> Array:
        """Values of a parameter that is one number, or one for each joint.

        Parameters
        ----------
        name : str
            Of the parameter, such as `bandwidth`.
        joint_names : sequence of str
            Of the n joints, in whose order the numbers are.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        ControlError
            If there are neither one nor n numbers.
        """
        values: Numbers = getattr(self, name)
        if len(values) not in (1, len(joint_names)):
            raise ControlError(
                f'Parameter {name} has {len(values)} numbers, expected one, or one for each of '
                f'the joints {listed(joint_names)}.'
            )
        return np.resize(np.array(values), len(joint_names))

    @property
    def lead(self) -> float:
        """How much later than the measurement the torque acts in the mean [s].

        Exact linearisation cannot look ahead over a delay, only over the hold.
        """
        return 0.5 * self.sample_period + self.delay * (self.controller != 'flatness')

    @cached_property
    def planning(self) -> NodeSettings:
        """Settings for planning trajectories."""
        return NodeSettings(
            allow_partial_joints=self.allow_partial_joints,
            stop_duration=self.stop_duration,
            margins=self.margins,
        )
