"""The robot that a node works for, and how it comes from a description in another thread."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import (
    actuators_from_config,
    check_config,
    motor_limits_from_config,
)
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.dynamics.wrenches import ORDERS, Wrench
from hodyn_ros.engine.engine import Efforts, engine_of, unavailable
from hodyn_ros.engine.program import Attachment
from hodyn_ros.errors import ActuatorError, HodynError, ModelError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.ros.diagnostics import reason

if TYPE_CHECKING:
    from hodyn_ros.ros.base import RobotNode
    from hodyn_ros.ros.node_settings import NodeSettings

Array = NDArray[np.float64]

EFFORT_ORDERS = range(3)  # derivatives of the efforts in messages
REMEMBERED = 8  # robots that are taken up again at once, with and without what a gripper holds

_START = 'actuators'
_STIFFNESS = 'stiffness'


class Drives(NamedTuple):
    """Actuators, their limits, and the stiffness that joints have unless asked for another."""

    actuators: Actuators
    limits: MotorLimits
    stiffness: Mapping[str, float]  # of every joint that can choose it, and no other [N m/rad]

    def default_stiffness(self, samples: tuple[int, ...] = ()) -> dict[str, Array]:
        """Series (..., 3) of the stiffness that is constant."""
        series = {}
        for name, value in self.stiffness.items():
            series[name] = np.zeros((*samples, ORDERS))
            series[name][..., 0] = value
        return series


class Robot(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole."""

    model: RobotModel
    limits: MotionLimits
    description: str
    drives: Drives | None = None


def ready(robot: Robot | None, in_preparation: bool = False) -> Robot:
    """Return the robot in use; ModelError, if there is none, says whether one is being made."""
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


def assemble(
    xml: str,
    base_link: str,
    tip_link: str,
    gravity: tuple[float, float, float],
    allow_impossible_inertia: bool = False,
) -> RobotModel:
    """Model of a robot description; an empty link stands for the root link or the whole tree."""
    description = parse_urdf(xml, allow_impossible_inertia)
    return RobotModel.from_description(description, base_link or None, tip_link or None, gravity)


def _model_settings(settings: NodeSettings) -> tuple[Any, ...]:
    links = settings.base_link, settings.tip_link
    return *links, settings.gravity, settings.allow_impossible_inertia


def robot_of(description: str, settings: NodeSettings) -> Robot | None:
    """Robot of a description that the node uses, with kernels; the latest models are kept."""
    if not description:
        return None
    model = _warm(description, *_model_settings(settings))
    return Robot(model, settings.limits_of(model), description, settings.drives_of(model))


@lru_cache(maxsize=REMEMBERED)
def _warm(*arguments: Any) -> RobotModel:
    model = assemble(*arguments)
    try:
        model.warm_up()
    except Exception:  # compilers fail in many ways; NumPy computes the same
        pass
    return model


def actuators_config(values: Iterable[tuple[str, str, Any]]) -> dict[str, dict[str, Any]]:
    """Tables of the joints, as `actuators_from_config` takes them."""
    config: dict[str, dict[str, Any]] = {}
    for joint, key, value in values:
        config.setdefault(joint, {})[key] = value
    return config


def actuator_problems(values: Sequence[tuple[str, str, Any]]) -> list[str]:
    """Find what is wrong with actuators whatever the robot; the first problem."""
    nameless = next((key for joint, key, _ in values if not joint), None)
    if nameless is not None:
        return [f'Parameter {_START}.{nameless} is unknown, expected {_START}.<joint>.<key>.']
    try:
        check_config(actuators_config(values))
    except ActuatorError as error:
        return [f'Parameter {error}']
    return []


def drives_of(model: RobotModel, values: Sequence[tuple[str, str, Any]]) -> Drives | None:
    """Assemble what moves the joints of a model; None if nothing is said of them.

    HodynError if a joint is unknown, or something is missing, does not fit or cannot be used.
    """
    if not values:
        return None
    config = actuators_config(values)
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
    return Drives(actuators, motor_limits_from_config(actuators, config), stiffness)


class RobotPreparation:
    """Holds the robot in use and the description that is to follow it.

    All methods belong to the thread of the executor; robots are made ready in the worker of the
    node. `changed` is called with a remark after each change of the robot, `refused` with the
    reason, `progressed` whenever a robot is asked for or an outcome is there.
    """

    def __init__(
        self,
        node: RobotNode[NodeSettings],
        wrenches: Callable[[], Sequence[Wrench]],
        changed: Callable[[str], None],
        refused: Callable[[str], None],
        progressed: Callable[[], None],
    ) -> None:
        self.robot: Robot | None = None
        self.error = ''  # why the latest description was refused
        self.wanted: str | None = None  # description that is being made ready
        self._node, self._wrenches = node, wrenches
        self._changed, self._refused, self._progressed = changed, refused, progressed
        options = _model_settings(node.settings)
        self._assembled = lru_cache(REMEMBERED)(lambda xml: assemble(xml, *options))
        node.worker.put(_import_compiler)

    def is_latest(self, xml: str) -> bool:
        """Whether a description is the one in use or the one that follows it."""
        in_use = None if self.robot is None else self.robot.description
        return xml == (in_use if self.wanted is None else self.wanted)

    def check(self, xml: str) -> None:
        """Raise HodynError against a description that cannot be used, and report it."""
        try:
            self._robot_of(xml, self._assembled(xml))
        except HodynError as error:
            self._refuse(str(error))
            raise

    def request(self, xml: str) -> None:
        """Have a robot made ready; until it is, the one in use stays in use."""
        if self.robot is not None and xml == self.robot.description:
            self.wanted, self.error = None, ''
        elif xml != self.wanted:
            self.wanted = xml
            wrenches = tuple(self._wrenches())
            self._node.worker.put(
                lambda: self._make(xml, wrenches),
                lambda error: self._node.soon(self._on_outcome, xml, None, reason(error)),
            )
        self._progressed()

    def request_wrenches(self) -> None:
        """Have the robot in use compiled for the wrenches that act, unless it is already."""
        if self.robot is not None:
            model = self.robot.model
            wanted = _missing(model, self._wrenches())
            if wanted:
                self._node.worker.put(lambda: _compile(self._node, model, wanted))

    def update_robot(self) -> None:
        """Take limits and actuators of the robot in use from the settings once more."""
        if self.robot is not None:
            self.robot = self._robot_of(self.robot.description, self.robot.model)

    def _make(self, xml: str, wrenches: Sequence[Wrench]) -> None:
        """Assemble a model and compile its dynamics, in the thread of the worker."""
        if self.wanted != xml:
            return  # another one has taken its place
        model = self._assembled(xml)
        present = [wrench for wrench in wrenches if wrench.link in model.links]
        remark = _compile(
            self._node, model, _missing(model, ()) + _missing(model, present)
        )
        self._node.soon(self._on_outcome, xml, model, remark or '')

    def _on_outcome(self, xml: str, model: RobotModel | None, remark: str) -> None:
        """Use a model; None if the description cannot be used. The remark says why."""
        if self.wanted is None:
            return  # the robot in use has been described once more in the meantime
        if xml == self.wanted:
            self.wanted = None
        robot = None
        try:
            if model is None:
                raise ModelError(remark)
            robot = self._robot_of(xml, model)
        except HodynError as error:
            self._refuse(str(error))
        if robot is not None:
            self.robot, self.error = robot, ''
        self._progressed()
        if robot is not None:
            self._changed(remark)

    def _robot_of(self, description: str, model: RobotModel) -> Robot:
        self._node.parameters.declare_joints(model.joint_names)
        settings = self._node.parameters.settings
        return Robot(model, settings.limits_of(model), description, settings.drives_of(model))

    def _refuse(self, why: str) -> None:
        self.error = why
        self._refused(why)


def _compile(
    node: RobotNode[NodeSettings], model: RobotModel, wanted: Sequence[Efforts]
) -> str | None:
    """Make kernels; return why they are slower than they could be, if they are."""
    try:
        for efforts in () if unavailable() else wanted:
            if node.worker.is_closed:
                break
            engine_of(model).prepare(efforts)
    except Exception as error:  # compilers fail in many ways; NumPy computes the same
        return f'compiling failed: {error}'
    return unavailable()


def _missing(model: RobotModel, wrenches: Iterable[Wrench]) -> tuple[Efforts, ...]:
    """Kernels for some wrenches that nobody has begun to make; they are the caller's now."""
    attachments = tuple(
        Attachment(wrench.link, wrench.expressed_in, wrench.acting)
        for wrench in wrenches
        if model.link(wrench.link).body != BASE
    )
    engine = engine_of(model)
    wanted = (Efforts(k, attachments) for k in EFFORT_ORDERS)
    return tuple(efforts for efforts in wanted if engine.expect(efforts))


def _import_compiler() -> None:
    """Import and make what every robot's kernels need before they are needed."""
    try:
        if not unavailable():
            from hodyn_ros.engine.kernels import single_call

            single_call(2, efforts=True)
    except Exception:  # will be reported when it is needed
        pass
    # The compiler has more objects than all else together. If every full garbage collection
    # visited them, it would hold all threads up for 50 ms.
    gc.freeze()
