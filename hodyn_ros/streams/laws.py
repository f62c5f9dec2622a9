"""The laws that control a robot with elastic joints, made from its description and settings.

Settings are the parameters of the node ``flatness_controller``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.control.controller import warm_up
from hodyn_ros.control.interaction import (
    CartesianImpedance,
    GravityCompensation,
    JointImpedance,
)
from hodyn_ros.control.law import Law
from hodyn_ros.control.laws import (
    CARTESIAN,
    FLOATING,
    JOINT,
    MODES,
    TRACKING,
    make_controller,
)
from hodyn_ros.control.observer_controller import without_dampers
from hodyn_ros.control.tracking import tracking_controller
from hodyn_ros.errors import ControlError
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.streams.guard import Guard
from hodyn_ros.streams.preparation import Host
from hodyn_ros.streams.robot import Robot, RobotDrives, actuators_config, assemble
from hodyn_ros.typing import Array

# The law that stops the robot needs no measurement of the links and no exact model; where a delay
# or another law asks for more than this bandwidth, it stays robust.
STOPPING_LAW, STOPPING_BANDWIDTH = 'feed_forward_2', 20.0  # rad/s


class Laws(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole.

    Attributes
    ----------
    robot : Robot
    controller : Law
        The law in use.
    modes : dict of str to Law or ControlError
        Laws that may take its place without a step of the torque, or why they cannot; empty if
        none can.
    stopping : Law
        Stops the robot, whatever the other one has made of it.
    guard : Guard
    motor_names : tuple of str
    """

    robot: Robot
    controller: Law
    modes: dict[str, Law | ControlError]
    stopping: Law
    guard: Guard
    motor_names: tuple[str, ...]

    @property
    def floating(self) -> Law | None:
        """Law by which the robot can float after a collision; None if there is none."""
        law = self.modes.get(FLOATING)
        return law if isinstance(law, Law) else None


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
    model, drives = robot.model, robot.drives
    assert drives is not None
    limits = _torque_limits(host, drives, settings)
    bandwidth = settings.of_joints('bandwidth', model.joint_names)
    if settings.controller in MODES and np.ptp(bandwidth) > 0.0:
        raise ControlError(
            f'{settings.controller} has one bandwidth; one for each joint is of other laws.'
        )
    bandwidth = np.where(bandwidth > 0.0, bandwidth, STOPPING_BANDWIDTH)
    slower = np.minimum(bandwidth, STOPPING_BANDWIDTH)
    undamped, lead = without_dampers(drives.actuators), settings.lead
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        stopping = make_controller(model, STOPPING_LAW, undamped, slower, limits, lead)
        law: Law | ControlError
        modes: dict[str, Law | ControlError] = {}
        if settings.controller in MODES:
            modes = laws_of(drives.actuators, settings, limits)
            law = modes[settings.controller]
            if isinstance(law, ControlError):
                raise law
        else:
            law = make_controller(
                model, settings.controller, drives.actuators, bandwidth, limits, lead
            )
    for warning in caught:
        host.get_logger().warning(str(warning.message))
    if settings.tool_link:
        model.link(settings.tool_link)
    return Laws(
        robot,
        law,
        modes,
        stopping,
        _guard(robot, settings),
        tuple(drives.actuators.motor_names),
    )


def _torque_limits(host: Host, drives: RobotDrives, settings: Any) -> Array:
    """Largest torques of the motors (m,); infinite where they are not cut."""
    unlimited = np.full(drives.actuators.n_motors, np.inf)
    limits = drives.limits.motor_torque if settings.limit_torques else unlimited
    unknown = ~np.isfinite(np.asarray(limits))
    if settings.limit_torques and unknown.any():
        motor = drives.actuators.motor_names[int(unknown.argmax())]
        host.get_logger().warning(
            f'The largest torque of motor {motor} is not known: nothing cuts it, and its '
            'first measurement is not compared with it. Give max_motor_torque.'
        )
    return limits


def _guard(robot: Robot, settings: Any) -> Guard:
    """Bounds of a robot by settings."""
    names = robot.model.joint_names
    external = settings.of_joints('max_external_torque', names)
    return Guard(
        robot.model,
        robot.limits,
        settings.of_joints('max_tracking_error', names),
        np.where(external > 0.0, external, np.inf),
        position_margin=settings.position_margin,
        velocity_margin=settings.velocity_margin,
        stop_duration=settings.stop_duration,
        allow_limit_violations=settings.allow_limit_violations,
    )


def laws_of(
    actuators: Actuators, settings: Any, limits: Array | None
) -> dict[str, Law | ControlError]:
    """Laws that share an observer, or why they cannot be used.

    Parameters
    ----------
    actuators : Actuators
        With the model of the robot.
    settings : object
        The parameters of the node `flatness_controller`.
    limits : ndarray, shape (m,), optional
        Largest motor torques [N m] or [N].

    Returns
    -------
    dict of str to Law or ControlError
        By the names of `MODES`.

    Raises
    ------
    ControlError
        If there is no tracking law, with which the others share bandwidth and observer.
    """
    T = settings.sample_period
    modes: dict[str, Law | ControlError] = {}
    tracking = tracking_controller(
        actuators,
        T,
        bandwidth=settings.of_joints('bandwidth', actuators.model.joint_names)[0] or None,
        torque_limits=limits,
        delay=settings.delay,
        resolution=settings.resolution.pair,
        guards=None,
    )
    shared: dict[str, Any] = {
        'bandwidth': tracking.bandwidth,
        'torque_limits': limits,
        'observer': tracking.observer,
        'guards': None,
    }
    modes[TRACKING] = tracking
    modes[CARTESIAN] = ControlError(
        'cartesian_impedance needs tool_link, the link that it holds.'
    )
    for name, make in _yielding(actuators, settings, shared).items():
        try:
            modes[name] = make()
        except ControlError as error:
            modes[name] = error
    return modes


def _yielding(
    actuators: Actuators, settings: Any, shared: dict[str, Any]
) -> dict[str, Callable[[], Law]]:
    """What makes the laws that give way to forces, by their names, with options of all laws."""
    T, names = settings.sample_period, actuators.model.joint_names
    ratio = settings.damping_ratio
    joint = settings.of_joints('joint_stiffness', names)
    tool = np.repeat([settings.rotational_stiffness, settings.translational_stiffness], 3)
    null, floating = settings.nullspace_stiffness, settings.floating_damping
    made: dict[str, Callable[[], Law]] = {
        JOINT: lambda: JointImpedance(
            actuators, T, stiffness=joint, damping_ratio=ratio, **shared
        ),
        FLOATING: lambda: GravityCompensation(
            actuators,
            T,
            damping=floating,
            feeds_torque_back=settings.torque_sensors,
            **shared,
        ),
    }
    if settings.tool_link:
        made[CARTESIAN] = lambda: CartesianImpedance(
            actuators,
            T,
            link=settings.tool_link,
            stiffness=tool,
            damping_ratio=ratio,
            nullspace_stiffness=null,
            **shared,
        )
    return made


def elastic_robot(xml: str, settings: Any) -> Robot:
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

    Returns
    -------
    Robot
        With drives, without payloads.

    Raises
    ------
    HodynError
        If the description or the actuators cannot be used.
    """
    model = assemble(xml, settings.base_link, settings.tip_link, settings.gravity)
    config = actuators_config(settings.actuators)
    actuators = actuators_from_config(model, config)
    limits = motor_limits_from_config(actuators, config)
    motion, torque = motion_limits(model), limits.motor_torque
    # Descriptions have zeros where somebody did not know a limit.
    velocity, effort = (
        np.where(x > 0.0, x, np.inf) for x in (motion.velocity, motion.effort)
    )
    motion = motion._replace(velocity=velocity, effort=effort)
    if len(torque) == model.n_joints:  # where none is given, that of the robot description
        limits = limits._replace(motor_torque=np.where(np.isfinite(torque), torque, effort))
    return Robot(model, motion, xml, RobotDrives(actuators, limits, {}))


def controlled_robot(xml: str, settings: Any) -> Robot:
    """Robot as of `elastic_robot`, and all compiled that the laws compute for it."""
    robot = elastic_robot(xml, settings)
    model = robot.model
    warm_up(model, robot.drives.actuators if robot.drives else None)
    if settings.tool_link in model.links:  # of which external wrenches are published
        rest = np.zeros((1, model.n_joints))
        model.warm_up(0, lambda: jacobian(model, rest, settings.tool_link, 'body'))
    return robot
