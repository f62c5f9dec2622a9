"""The robot that something works for: its model, limits, drives and payloads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import (
    actuators_from_config,
    check_config,
    motor_limits_from_config,
)
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.analysis.limits import find_unlimited, no_limit
from hodyn_ros.checks import frozen
from hodyn_ros.engine.engine import engine_of, unavailable
from hodyn_ros.engine.program import MOVING, Attachment
from hodyn_ros.engine.requests import EFFORTS, KernelRequest
from hodyn_ros.errors import ActuatorError, ModelError
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.model.inertia import Payload
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.margins import with_margins
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.typing import Array

DESCRIPTION = 'robot_description'

EFFORT_ORDERS = range(3)  # derivatives of the efforts in messages
REMEMBERED = (
    8  # robots that are taken up again at once, with and without what a gripper holds
)

_START = 'actuators'
_STIFFNESS = 'stiffness'


def loaded(model: RobotModel, payloads: Iterable[Payload]) -> RobotModel:
    """Model with payloads."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # they have been reported
        for payload in payloads:
            model = model.with_payload(*payload)
    return model


class RobotDrives(NamedTuple):
    """Actuators, their limits, and the stiffness that joints have unless asked for another.

    Attributes
    ----------
    actuators : Actuators
    limits : MotorLimits
    stiffness : mapping of str to float
        Of every joint that can choose it, and no other [N m/rad]
    """

    actuators: Actuators
    limits: MotorLimits
    stiffness: Mapping[str, float]

    def default_stiffness(self, samples: tuple[int, ...] = ()) -> dict[str, Array]:
        """Stiffness that is constant, of every joint that can choose it.

        Parameters
        ----------
        samples : tuple of int
            Shape of the samples.

        Returns
        -------
        dict of str to ndarray, shape (..., 3)
            And two derivatives, which are zero.
        """
        items = self.stiffness.items()
        return {name: np.tile([value, 0.0, 0.0], (*samples, 1)) for name, value in items}


class Robot(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole.

    Attributes
    ----------
    model : RobotModel
        With the payloads, and the friction of the settings.
    limits : MotionLimits
        Of the description, completed by the settings, less their margins; so are those of drives.
    description : str
        URDF.
    drives : RobotDrives, optional
        None if the settings say nothing of actuators.
    sent : RobotModel
        Its efforts are those that controllers want; the model itself, or without some of them.
    payloads : tuple of Payload
        Part of the model.
    bare : RobotModel
        Model of the description alone, with kernels.
    """

    model: RobotModel
    limits: MotionLimits
    description: str
    drives: RobotDrives | None = None
    sent: RobotModel = None  # type: ignore[assignment]
    payloads: tuple[Payload, ...] = ()
    bare: RobotModel = None  # type: ignore[assignment]

    @property
    def variants(self) -> tuple[RobotModel, RobotModel]:
        """Models for all efforts and for those that are sent."""
        return self.model, self.sent

    def within(self, shares: Mapping[str, float]) -> Robot:
        """Return the same robot with margins to all its limits, those of drives too.

        Parameters
        ----------
        shares : mapping of str to float
            That are left to feedback, as of `checked_margins`.

        Returns
        -------
        Robot
        """
        drives = self.drives
        if drives is not None:
            drives = drives._replace(limits=with_margins(drives.limits, shares))
        return self._replace(limits=with_margins(self.limits, shares), drives=drives)


def ready(robot: Robot | None, in_preparation: bool = False) -> Robot:
    """The robot in use.

    Parameters
    ----------
    robot : Robot, optional
    in_preparation : bool
        Whether one is being made, for the message.

    Raises
    ------
    ModelError
        If there is none.
    """
    if robot is None:
        raise ModelError(
            'There is no robot model yet; '
            + (
                'the robot of the description that has arrived is being made ready.'
                if in_preparation
                else 'publish a valid URDF on the topic robot_description or set the parameter '
                'robot_description.'
            )
        )
    return robot


def without_limits(
    robot: Robot, limits: MotionLimits | None = None, **along: Any
) -> list[str]:
    """What has no limit, in words.

    Parameters
    ----------
    robot : Robot
    limits : MotionLimits, optional
        By default those of the robot.
    **along
        The arrays `motion`, `effort` and `motors` of `find_unlimited`, with which it is told how
        large something without a limit becomes.

    Returns
    -------
    list of str
        One sentence; empty if all is limited.
    """
    if (drives := robot.drives) is not None:
        along |= {'actuators': drives.actuators, 'motor_limits': drives.limits}
    unlimited = find_unlimited(robot.model, limits or robot.limits, **along)
    return [no_limit(unlimited)] if unlimited else []


def assemble(
    xml: str,
    base_link: str,
    tip_link: str,
    gravity: tuple[float, float, float],
    allow_impossible_inertia: bool = False,
    loops: str = '',
) -> RobotModel:
    """Model of a robot description.

    Parameters
    ----------
    xml : str
        URDF.
    base_link, tip_link : str
        Ends of the chain; empty: the root link, and the whole tree.
    gravity : tuple of float
        In the axes of the base link [m/s^2].
    allow_impossible_inertia : bool
        Whether inertia tensors of no body are used as given.
    loops : str
        As of `RobotModel.from_urdf`; empty: those of the description.

    Returns
    -------
    RobotModel

    Raises
    ------
    HodynError
        If the description cannot be used.
    """
    description, ends = parse_urdf(xml), (base_link or None, tip_link or None)
    impossible = allow_impossible_inertia
    return RobotModel.from_description(
        description, *ends, gravity, loops or None, allow_impossible_inertia=impossible
    )


def model_settings(settings: Any) -> tuple[Any, ...]:
    """Arguments of `assemble` behind the description."""
    links = settings.base_link, settings.tip_link
    return *links, settings.gravity, settings.allow_impossible_inertia, settings.loops


def robot_of(description: str, settings: Any, payloads: tuple[Payload, ...] = ()) -> Robot:
    """Robot of a description, without kernels; the latest `REMEMBERED` models are kept.

    Parameters
    ----------
    description : str
        URDF that the node uses.
    settings : object
        Parameters of a node: `base_link`, `tip_link`, `gravity`, `allow_impossible_inertia`,
        `loops`, `actuators`, `command`, `friction_laws()`, `limits_of(model)` and `shares()`.
    payloads : tuple of Payload
        Those on unknown links are left out.

    Returns
    -------
    Robot
    """
    model = _assembled(description, *model_settings(settings))
    return made_robot(description, model, settings, payloads)


def made_robot(
    description: str,
    model: RobotModel,
    settings: Any,
    payloads: tuple[Payload, ...],
) -> Robot:
    """Robot of a description whose model has been assembled.

    Parameters
    ----------
    description : str
        URDF.
    model : RobotModel
        Of it alone.
    settings : object
        Parameters of a node: `base_link`, `tip_link`, `gravity`, `allow_impossible_inertia`,
        `loops`, `actuators`, `command`, `friction_laws()`, `limits_of(model)` and `shares()`.
    payloads : tuple of Payload
        Those on unknown links are left out.

    Returns
    -------
    Robot

    Raises
    ------
    HodynError
        If limits, friction or actuators of the settings do not fit.
    """
    bare, payloads = model, tuple(item for item in payloads if item.link in model.links)
    model = _changed(model, payloads, tuple(settings.friction_laws().items()))
    command = settings.command
    sent = _sent(model, command.effort == 'without_gravity', not command.friction)
    drives = drives_of(model, settings.actuators) if settings.actuators else None
    limits = settings.limits_of(model)
    robot = Robot(model, limits, description, drives, sent, payloads, bare)
    return robot.within(settings.shares())


@lru_cache(maxsize=REMEMBERED)
def _changed(
    model: RobotModel,
    payloads: tuple[Payload, ...],
    laws: tuple[tuple[str, FrictionLaw | None], ...],
) -> RobotModel:
    """Model with payloads, and the friction of some joints in place of its own."""
    laws = tuple(item for item in laws if item[0] in model.body_names)
    model = loaded(model, payloads)
    return model.with_friction(dict(laws)) if laws else model


@lru_cache(maxsize=REMEMBERED)
def _sent(model: RobotModel, is_weightless: bool, is_frictionless: bool) -> RobotModel:
    """Model whose efforts are sent: perhaps without gravity or friction."""
    if is_weightless:
        model = model.changed(gravity=frozen(np.zeros(3)))
    if is_frictionless and model.friction:
        model = model.with_friction(dict.fromkeys(model.friction))
    return model


def prepare_variants(robot: Robot, base_moves: bool = False) -> None:
    """Have kernels compiled for the models of a robot that are none of a description alone.

    Parameters
    ----------
    robot : Robot
    base_moves : bool
        Whether kernels for a moving base are needed. Without a compiler nothing happens.
    """
    try:
        for model in () if unavailable() else robot.variants:
            for order in EFFORT_ORDERS:
                engine, request = engine_of(model), request_of(order, (), base_moves)
                if not base_moves:
                    engine.prepare_general(request)
                else:  # there is no general code
                    engine.prepare(request)
    except Exception:  # compilers fail in many ways; NumPy computes the same
        pass


def warm_up(robot: Robot) -> None:
    """Have all kernels compiled for a robot, if they can be; until then NumPy computes the same.

    Parameters
    ----------
    robot : Robot
    """
    bare = robot.bare if robot.bare is not None else robot.model
    with suppress(Exception):  # compilers fail in many ways
        bare.warm_up()
    if any(model is not bare and model is not None for model in robot.variants):
        prepare_variants(robot)


_assembled = lru_cache(maxsize=REMEMBERED)(assemble)


def by_joint(values: Iterable[tuple[str, str, Any]]) -> dict[str, dict[str, Any]]:
    """Tables of the joints, from the values of a family of parameters.

    Parameters
    ----------
    values : iterable of (str, str, object)
        Joint, key and value.

    Returns
    -------
    dict of str to dict of str to object
    """
    config: dict[str, dict[str, Any]] = {}
    for joint, key, value in values:
        config.setdefault(joint, {})[key] = value
    return config


def actuator_problems(values: Sequence[tuple[str, str, Any]]) -> list[str]:
    """What is wrong with actuators whatever the robot, in words.

    Parameters
    ----------
    values : sequence of (str, str, object)
        Joint, key and value.

    Returns
    -------
    list of str
        With the first problem alone; empty if there is none.
    """
    nameless = next((key for joint, key, _ in values if not joint), None)
    if nameless is not None:
        return [
            f'Parameter {_START}.{nameless} is unknown, expected {_START}.<joint>.<key>.'
        ]
    try:
        check_config(by_joint(values))
    except ActuatorError as error:
        return [f'Parameter {error}']
    return []


def drives_of(model: RobotModel, values: Sequence[tuple[str, str, Any]]) -> RobotDrives:
    """Actuators of a model; joints of which nothing is said are rigid.

    Parameters
    ----------
    model : RobotModel
    values : sequence of (str, str, object)
        Joint, key and value.

    Returns
    -------
    RobotDrives

    Raises
    ------
    HodynError
        If they do not fit, or a joint of variable stiffness has no stiffness.
    """
    config = by_joint(values)
    actuators = actuators_from_config(model, config)
    stiffness = {}
    for item in actuators.driven:
        if item.actuator.needs_stiffness:
            value = config[item.name].get(_STIFFNESS)
            if value is None:
                raise ActuatorError(
                    f'{_START}.{item.name}.{_STIFFNESS} is missing; a joint of variable stiffness '
                    'needs the stiffness that it has unless it is asked for another [N m/rad].'
                )
            stiffness[item.name] = float(value)
    return RobotDrives(actuators, motor_limits_from_config(actuators, config), stiffness)


def request_of(
    order: int, wrenches: tuple[Attachment, ...], base_moves: bool
) -> KernelRequest:
    """Kernel of the efforts up to an order, to be compiled.

    Parameters
    ----------
    order : int
        Highest derivative of the efforts.
    wrenches : tuple of Attachment
        That act.
    base_moves : bool
        Whether the base moves.

    Returns
    -------
    KernelRequest
    """
    return KernelRequest(MOVING if base_moves else EFFORTS, order + 3, wrenches)
