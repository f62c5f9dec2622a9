"""The robot that a node works for, and how it comes from a description in another thread."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import (
    actuators_from_config,
    check_config,
    motor_limits_from_config,
)
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.analysis.unlimited import find_unlimited, no_limit
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.engine import BodyDynamics, Efforts, Request, engine_of, unavailable
from hodyn_ros.engine.program import MOVING, Attachment
from hodyn_ros.errors import ActuatorError, HodynError, ModelError
from hodyn_ros.model.assembly import frozen
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.model.inertia import Payload
from hodyn_ros.model.limits import MotionLimits, compiled_count
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.ros.base.diagnostics import START_GRACE, reason
from hodyn_ros.ros.base.payloads import loaded
from hodyn_ros.ros.base.subscription import DESCRIPTION

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node import RobotNode
    from hodyn_ros.ros.base.node_settings import NodeSettings

Array = NDArray[np.float64]
M = TypeVar('M')

Compiled = tuple[RobotModel, str]
"""A model, and why its kernels are slower than they could be, if they are."""

EFFORT_ORDERS = range(3)  # derivatives of the efforts in messages
LONG_PREPARATION = 2.0  # s, after which it is said what a new robot waits for
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
        items = self.stiffness.items()
        return {name: np.tile([value, 0.0, 0.0], (*samples, 1)) for name, value in items}


class Robot(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole."""

    model: RobotModel
    limits: MotionLimits
    description: str
    drives: Drives | None = None
    sent: RobotModel = None  # type: ignore[assignment]
    """Its efforts are those that controllers want; the model itself, or without some of them."""
    payloads: tuple[Payload, ...] = ()  # part of the model
    bare: RobotModel = None  # type: ignore[assignment]
    """Model of the description alone, with kernels."""

    @property
    def variants(self) -> tuple[RobotModel, RobotModel]:
        """Models for all efforts and for those that are sent."""
        return self.model, self.sent


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


def without_limits(robot: Robot, limits: MotionLimits | None = None, **along: Any) -> list[str]:
    """Sentence on what has no limit, if anything.

    The limits are those of the robot unless others are given. How large it becomes is told with
    the arrays `motion`, `effort` and `motors` of `find_unlimited`.
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
) -> RobotModel:
    """Model of a robot description; an empty link stands for the root link or the whole tree."""
    description = parse_urdf(xml, allow_impossible_inertia)
    return RobotModel.from_description(description, base_link or None, tip_link or None, gravity)


def _model_settings(settings: NodeSettings) -> tuple[Any, ...]:
    links = settings.base_link, settings.tip_link
    return *links, settings.gravity, settings.allow_impossible_inertia


def robot_of(
    description: str, settings: NodeSettings, payloads: tuple[Payload, ...] = ()
) -> Robot | None:
    """Robot of a description that the node uses, with kernels; the latest models are kept."""
    if not description:
        return None
    model = _warm(description, *_model_settings(settings))
    robot = _robot(description, model, settings, payloads)
    _prepare_variants(robot)
    return robot


def _robot(
    description: str, model: RobotModel, settings: NodeSettings, payloads: tuple[Payload, ...]
) -> Robot:
    bare, payloads = model, tuple(item for item in payloads if item.link in model.links)
    model = _changed(model, payloads, tuple(settings.friction_laws().items()))
    command = settings.command
    sent = _sent(model, command.effort == 'without_gravity', not command.friction)
    drives = drives_of(model, settings.actuators)
    return Robot(model, settings.limits_of(model), description, drives, sent, payloads, bare)


@lru_cache(maxsize=REMEMBERED)
def _changed(
    model: RobotModel,
    payloads: tuple[Payload, ...],
    laws: tuple[tuple[str, FrictionLaw | None], ...],
) -> RobotModel:
    laws = tuple(item for item in laws if item[0] in model.body_names)
    model = loaded(model, payloads)
    return model.with_friction(dict(laws)) if laws else model


@lru_cache(maxsize=REMEMBERED)
def _sent(model: RobotModel, is_weightless: bool, is_frictionless: bool) -> RobotModel:
    if is_weightless:
        model = replace(model, gravity=frozen(np.zeros(3)))
    if is_frictionless and model.friction:
        model = model.with_friction(dict.fromkeys(model.friction))
    return model


def _prepare_variants(robot: Robot, base_moves: bool = False) -> None:
    """Have kernels for models that are none of a description alone."""
    try:
        for model in () if unavailable() else robot.variants:
            for order in EFFORT_ORDERS:
                if not base_moves:
                    engine_of(model).prepare_general(order)
                else:  # there is no general code
                    engine_of(model).prepare(_request(order, (), base_moves))
    except Exception:  # compilers fail in many ways; NumPy computes the same
        pass


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
    """Actuators of a model, None if nothing is said of them; HodynError if they do not fit."""
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


class RobotPreparation(Generic[M]):
    """Holds the robot in use and the description that is to follow it.

    All methods belong to the thread of the executor. `begin` takes a description there and returns
    what the worker of the node does; `finish` takes its result and returns the robot. What they
    raise refuses the description. `progressed` is called whenever a robot is asked for or an
    outcome is there, and then `changed`, if it is another robot, with what the worker has made.
    """

    def __init__(
        self,
        node: RobotNode[Any],
        begin: Callable[[str], Callable[[], M]],
        finish: Callable[[str, M], Robot],
        progressed: Callable[[], None],
        changed: Callable[[M], None],
    ) -> None:
        self.robot: Robot | None = None
        self.error = ''  # why the latest description was refused
        self.wanted: str | None = None  # description that is being made ready
        self._node, self._begin, self._finish = node, begin, finish
        self._begun = self._since = time.monotonic()
        self._told = 0.0  # for how long the wait has been told [s]
        self.wanted_joints = 0  # of the robot that is being made ready; 0: not known yet
        self._progressed, self._changed = progressed, changed

    @property
    def is_under_way(self) -> bool:
        """Whether a robot is being made ready."""
        return self.wanted is not None

    @property
    def is_awaited(self) -> bool:
        """Whether there is no robot, but soon will be: who measures early makes no mistake."""
        is_new = not self.error and time.monotonic() - self._begun < START_GRACE
        return self.robot is None and (self.is_under_way or is_new)

    @property
    def state(self) -> tuple[Robot | None, str, bool]:
        """Robot in use, why the latest description was refused, whether one is under way."""
        return self.robot, self.error, self.is_under_way

    def ready(self) -> Robot:
        """Return the robot in use; ModelError says what is to be done if there is none."""
        return self.robot or ready(None, self.is_under_way)

    def is_latest(self, xml: str) -> bool:
        """Whether a description is the one in use or the one that follows it."""
        in_use = None if self.robot is None else self.robot.description
        return xml == (in_use if self.wanted is None else self.wanted)

    def request(self, xml: str) -> None:
        """Have a robot made ready; until it is, the one in use stays in use."""
        # One that is in use already takes back what was said of a refused one.
        if self.is_latest(xml) and not self.error:
            return
        if self.robot is not None and xml == self.robot.description:
            self.wanted, self.error = None, ''
        elif xml != self.wanted:
            self.wanted, self.wanted_joints = xml, 0
            self._since, self._told = time.monotonic(), 0.0
            job, soon = self._begin(xml), self._node.soon
            self._node.worker.put(
                # Unless another one has taken its place.
                lambda: soon(self._on_outcome, xml, job(), '') if self.wanted == xml else None,
                lambda error: soon(self._on_outcome, xml, None, reason(error)),
            )
        self._progressed()

    def tell_progress(self) -> None:
        """Say what is being waited for, if it takes long: after 2 s, 4 s, 8 s and so on."""
        waited = time.monotonic() - self._since
        if self.wanted is None or waited < max(2.0 * self._told, LONG_PREPARATION):
            return
        self._told = waited
        n, stays = self.wanted_joints, ' The robot before stays in use.' if self.robot else ''
        what = f'kernels for its {n} joints are compiled' if n else 'its description is read'
        self._node.get_logger().info(
            f'The new robot is being made ready for {waited:.0f} s: {what}.{stays}'
        )

    def refuse(self, why: str) -> None:
        """Report that the latest description cannot be used."""
        self.error = why
        self._node.diagnostics.refused(DESCRIPTION, why)
        more = '' if self.robot is None else ' The robot before stays in use.'
        self._node.get_logger().error(f'Robot description refused: {why}{more}')

    def _on_outcome(self, xml: str, made: M | None, why: str) -> None:
        if self.wanted is None:
            return  # the robot in use has been described once more in the meantime
        if xml == self.wanted:
            self.wanted = None
        try:
            if made is None:
                raise ModelError(why)
            self.robot, self.error = self._finish(xml, made), ''
        except Exception as error:  # also a fault of ours: others wait for the outcome
            if not isinstance(error, HodynError):
                self._node.get_logger().error(traceback.format_exc())
            self.refuse(reason(error))
            made = None
        self._progressed()
        if made is not None:
            self._node.diagnostics.received(DESCRIPTION)
            for warning in self.robot.model.warnings if self.robot else ():
                self._node.get_logger().warning(warning)
            self._changed(made)


class CompiledRobots(RobotPreparation[Compiled]):
    """Robots with kernels for the wrenches that act, if they can be compiled."""

    def __init__(
        self,
        node: RobotNode[NodeSettings],
        wrenches: Callable[[], Sequence[Wrench]],
        progressed: Callable[[], None],
        changed: Callable[[Compiled], None],
    ) -> None:
        super().__init__(node, self._compilation, self._robot_of, progressed, changed)
        self._wrenches = wrenches
        self._payloads: tuple[Payload, ...] = ()
        options = _model_settings(node.settings)
        self._assembled = lru_cache(REMEMBERED)(lambda xml: assemble(xml, *options))
        node.worker.put(_import_compiler)

    def check(self, xml: str) -> None:
        """Raise HodynError against a description that cannot be used, and report it."""
        try:
            self._robot_of(xml, (self._assembled(xml), ''))
        except HodynError as error:
            self.refuse(str(error))
            raise

    def request_wrenches(self) -> None:
        """Have the robot in use compiled for the wrenches that act, unless it is already."""
        if self.robot is not None:
            model = self.robot.model
            wanted = _missing(model, self._wrenches(), self._node.settings.base_motion)
            if wanted:
                self._node.worker.put(lambda: _compile(self._node, model, wanted))

    def update_robot(self, payloads: tuple[Payload, ...] | None = None) -> None:
        """Take what the settings say of the robot in use once more, and perhaps payloads."""
        if self.robot is not None:
            if payloads is not None:
                self._payloads = payloads
            self.robot = self._robot_of(self.robot.description, (self.robot.bare, ''))

    def with_payloads(self, payloads: tuple[Payload, ...]) -> Robot:
        """Robot in use, as it is with other payloads."""
        robot = self.ready()
        return self._variant(robot.description, robot.bare, payloads)

    def _compilation(self, xml: str) -> Callable[[], Compiled]:
        wrenches, base_moves = self._wrenches(), self._node.settings.base_motion

        def make() -> Compiled:
            model = self._assembled(xml)
            if self.wanted == xml:
                self.wanted_joints = model.n_joints
            present = [wrench for wrench in wrenches if wrench.link in model.links]
            wanted = _missing(model, (), base_moves) + _missing(model, present, base_moves)
            return model, _compile(self._node, model, wanted) or ''

        return make

    def _robot_of(self, description: str, made: Compiled) -> Robot:
        self._node.parameters.declare_joints(made[0].joint_names)
        return self._variant(description, made[0], self._payloads)

    def _variant(self, description: str, bare: RobotModel, payloads: tuple[Payload, ...]) -> Robot:
        settings = self._node.parameters.settings
        robot = _robot(description, bare, settings, payloads)
        if any(model is not bare for model in robot.variants):
            self._node.worker.put(lambda: _prepare_variants(robot, settings.base_motion))
        return robot


def _compile(
    node: RobotNode[NodeSettings], model: RobotModel, wanted: Sequence[Request]
) -> str | None:
    """Make kernels; return why they are slower than they could be, if they are."""
    try:
        for request in () if unavailable() else wanted:
            if node.worker.is_closed:
                break
            engine_of(model).prepare(request)
    except Exception as error:  # compilers fail in many ways; NumPy computes the same
        return f'compiling failed: {error}'
    return unavailable()


def _request(order: int, wrenches: tuple[Attachment, ...], base_moves: bool) -> Request:
    return BodyDynamics(MOVING, order + 1, wrenches) if base_moves else Efforts(order, wrenches)


def _missing(
    model: RobotModel, wrenches: Iterable[Wrench], base_moves: bool
) -> tuple[Request, ...]:
    """Kernels for some wrenches that nobody has begun to make; they are the caller's now."""
    attachments = tuple(
        Attachment(wrench.link, wrench.expressed_in, wrench.acting)
        for wrench in wrenches
        if base_moves or model.link(wrench.link).body != BASE
    )
    engine = engine_of(model)
    wanted = (_request(k, attachments, base_moves) for k in EFFORT_ORDERS)
    return tuple(request for request in wanted if engine.expect(request))


def _import_compiler() -> None:
    """Import and make what every robot's kernels need before they are needed."""
    try:
        if not unavailable():
            from hodyn_ros.engine.kernels import single_call

            single_call(2, efforts=True)
            compiled_count()
    except Exception:  # will be reported when it is needed
        pass
    # The compiler has more objects than all else together. If every full garbage collection
    # visited them, it would hold all threads up for 50 ms.
    gc.freeze()
