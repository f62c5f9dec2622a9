"""The laws that control a robot with elastic joints, made from its description and settings.

Settings are the parameters of the node ``flatness_controller``.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.control.controller import warm_up
from hodyn_ros.control.guarded import GuardedController
from hodyn_ros.control.guards import CONTACT, DRIVE, EXTERNAL, FLOAT, Guards
from hodyn_ros.control.interaction import (
    CartesianImpedance,
    GravityCompensation,
    InteractionController,
    JointImpedance,
)
from hodyn_ros.control.laws import (
    CARTESIAN,
    FLOATING,
    JOINT,
    MODES,
    TRACKING,
    make_controller,
)
from hodyn_ros.control.observer_controller import ObserverController
from hodyn_ros.control.tracking import tracking_controller
from hodyn_ros.errors import ControlError
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.model.inertia import Payload
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.margins import with_margins
from hodyn_ros.model.violations import LimitCheck, motion_limits
from hodyn_ros.streams.preparation import Host
from hodyn_ros.streams.robot_in_use import Robot, RobotDrives, assemble, drives_of
from hodyn_ros.typing import Array

_BANDWIDTH = 20.0  # rad/s, of laws without an observer of their own
_FLOATING_DAMPING = 2.0  # of motors in gravity_compensation [N m s/rad, N s/m]
_NULLSPACE_STIFFNESS = 5.0  # of joints that cartesian_impedance leaves free [N m/rad, N/m]


class Laws(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole.

    Attributes
    ----------
    robot : Robot
    controller : ObserverController
        The law in use, which is also the judge of the robot.
    modes : dict of str to ObserverController or ControlError
        Laws that may take its place without a step of the torque, or why they cannot; empty if
        none can.
    limits : MotionLimits
        That references have to keep: those of the robot less the margins.
    check : LimitCheck
        Of references.
    motor_names : tuple of str
    """

    robot: Robot
    controller: ObserverController
    modes: dict[str, ObserverController | ControlError]
    limits: MotionLimits
    check: LimitCheck
    motor_names: tuple[str, ...]


def make_laws(host: Host, robot: Robot, settings: Any) -> Laws:
    """What controls a robot by settings.

    Parameters
    ----------
    host : Host
        Its log gets the warnings of the laws.
    robot : Robot
        With drives.
    settings : object
        The parameters of the node `flatness_controller`.

    Returns
    -------
    Laws

    Raises
    ------
    HodynError
        If there is no controller for the robot: the settings contradict each other or the robot,
        or the law would not be stable.
    """
    model, drives, kind = robot.model, robot.drives, settings.controller
    assert drives is not None
    limits = _torque_limits(host, drives)
    bandwidth = settings.of_joints('bandwidth', model.joint_names)
    guards = _guards(robot, limits, settings)
    law: ObserverController | ControlError
    modes: dict[str, ObserverController | ControlError] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        if kind in MODES:
            if np.ptp(bandwidth) > 0.0:
                raise ControlError(
                    f'{kind} has one bandwidth; one for each joint is of other laws.'
                )
            modes = _laws_of(drives.actuators, settings, limits, guards)
            law = modes[kind]
            if isinstance(law, ControlError):
                raise law
        else:
            bandwidth = np.where(bandwidth > 0.0, bandwidth, _BANDWIDTH)
            own = make_controller(
                model, kind, drives.actuators, bandwidth, limits, settings.lead
            )
            T, delay = settings.sample_period, settings.delay
            law = GuardedController(own, T, delay=delay, guards=guards)
    for warning in caught:
        host.get_logger().warning(str(warning.message))
    if settings.tool_link:
        model.link(settings.tool_link)
    kept = with_margins(robot.limits, settings.planning.shares())
    motors = tuple(drives.actuators.motor_names)
    return Laws(robot, law, modes, kept, LimitCheck(model, kept), motors)


def _torque_limits(host: Host, drives: RobotDrives) -> Array:
    """Largest torques of the motors (n,); infinite where they are not known."""
    limits = drives.limits.motor_torque
    unknown = ~np.isfinite(np.asarray(limits))
    if unknown.any():
        motor = drives.actuators.motor_names[int(unknown.argmax())]
        host.get_logger().warning(
            f'The largest torque of motor {motor} is not known: nothing cuts it, and its '
            'first measurement is not compared with it. Give max_motor_torque.'
        )
    return limits


def _guards(robot: Robot, limits: Array, settings: Any) -> Guards:
    """Bounds of a robot by settings, in which zero is the default of `Guards`."""
    names = robot.model.joint_names
    external, drive = (
        settings.of_joints(name, names)
        for name in ('max_external_torque', 'max_drive_error')
    )
    return Guards(
        settings.of_joints('max_tracking_error', names),
        np.where(external > 0.0, external, EXTERNAL * limits),
        np.where(drive > 0.0, drive, DRIVE * limits),
        reactions={CONTACT: FLOAT} if settings.collision_reaction == FLOAT else {},
    )


def _laws_of(
    actuators: Actuators, settings: Any, limits: Array, guards: Guards
) -> dict[str, ObserverController | ControlError]:
    """Laws that share an observer by the names of `MODES`, or why they cannot be used.

    Raises
    ------
    ControlError
        If there is no tracking law, with which the others share bandwidth and observer.
    """
    T, of_joints = settings.sample_period, settings.of_joints
    names = actuators.model.joint_names
    tracking = tracking_controller(
        actuators,
        T,
        bandwidth=of_joints('bandwidth', names)[0] or None,
        torque_limits=limits,
        delay=settings.delay,
        guards=guards,
    )
    tool = np.repeat([settings.rotational_stiffness, settings.translational_stiffness], 3)
    laws: dict[str, tuple[type[InteractionController], dict[str, Any]]] = {
        JOINT: (JointImpedance, {'stiffness': of_joints('joint_stiffness', names)}),
        CARTESIAN: (
            CartesianImpedance,
            {
                'link': settings.tool_link,
                'stiffness': tool,
                'nullspace_stiffness': _NULLSPACE_STIFFNESS,
            },
        ),
        FLOATING: (
            GravityCompensation,
            {'damping': _FLOATING_DAMPING, 'feeds_torque_back': settings.torque_sensors},
        ),
    }
    modes: dict[str, ObserverController | ControlError] = {TRACKING: tracking}
    for name, (kind, own) in laws.items():
        try:
            if name == CARTESIAN and not settings.tool_link:
                raise ControlError(f'{name} needs tool_link, the link that it holds.')
            modes[name] = kind(
                actuators,
                T,
                bandwidth=tracking.bandwidth,
                torque_limits=limits,
                observer=tracking.observer,
                guards=replace(guards, max_external_torque=np.inf),
                **own,
            )
        except ControlError as error:
            modes[name] = error
    return modes


def elastic_robot(xml: str, settings: Any, payloads: tuple[Payload, ...] = ()) -> Robot:
    """Robot of a description with the actuators of the settings.

    Limits of velocities and efforts that are zero in the description are taken for unknown. If
    each joint has one motor, largest torques that the settings leave out are the efforts of the
    description.

    Parameters
    ----------
    xml : str
        URDF.
    settings : object
        The parameters of the node `flatness_controller`.
    payloads : tuple of Payload
        None: this node has no service for them.

    Returns
    -------
    Robot
        With drives.

    Raises
    ------
    HodynError
        If the description or the actuators cannot be used.
    """
    model = assemble(xml, settings.base_link, settings.tip_link, settings.gravity)
    drives = drives_of(model, settings.actuators)
    motion, torque = motion_limits(model), drives.limits.motor_torque
    # Descriptions have zeros where somebody did not know a limit.
    velocity, effort = (
        np.where(x > 0.0, x, np.inf) for x in (motion.velocity, motion.effort)
    )
    motion = motion._replace(velocity=velocity, effort=effort)
    if len(torque) == model.n_joints:  # where none is given, that of the robot description
        torque = np.where(np.isfinite(torque), torque, effort)
        drives = drives._replace(limits=drives.limits._replace(motor_torque=torque))
    return Robot(model, motion, xml, drives)


def controlled_robot(xml: str, settings: Any) -> Robot:
    """Robot as of `elastic_robot`, and all compiled that the laws compute for it."""
    robot = elastic_robot(xml, settings)
    model = robot.model
    warm_up(model, robot.drives.actuators if robot.drives else None)
    if settings.tool_link in model.links:  # of which external wrenches are published
        rest = np.zeros((1, model.n_joints))
        model.warm_up(0, lambda: jacobian(model, rest, settings.tool_link, 'body'))
    return robot
