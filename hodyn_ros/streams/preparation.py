"""How a robot comes from a description: made ready beside, while the one before stays in use."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.engine import engine_of, prepare_kernel, unavailable
from hodyn_ros.engine.program import Attachment
from hodyn_ros.engine.requests import KernelRequest
from hodyn_ros.errors import HodynError, ModelError
from hodyn_ros.kinematics.closed_loops import prepare
from hodyn_ros.model.inertia import Payload
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.health import START_GRACE, NodeHealth, reason
from hodyn_ros.streams.robot_in_use import (
    DESCRIPTION,
    EFFORT_ORDERS,
    REMEMBERED,
    Robot,
    assemble,
    made_robot,
    model_settings,
    prepare_variants,
    ready,
    request_of,
)

M = TypeVar('M')

Compiled = tuple[RobotModel, str]
"""A model, and why its kernels are slower than they could be, if they are."""

LONG_PREPARATION = 2.0  # s, after which it is said what a new robot waits for


class Host(Protocol):
    """What has robots made ready: a node, or what stands for it."""

    @property
    def worker(self) -> Any:
        """Does jobs beside: `put(job, failed)`; `is_closed` when it comes to its end."""

    @property
    def diagnostics(self) -> NodeHealth:
        """Counts what has become of descriptions."""

    @property
    def settings(self) -> Any:
        """Parameters in use."""

    def soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have something called in the thread of all methods here."""

    def get_logger(self) -> Any:
        """Log with `debug`, `info`, `warning` and `error`."""

    def log_error(self, subject: str, text: str = '', is_throttled: bool = True) -> None:
        """Log an error on a subject, not too often if it is throttled."""

    def refuse(self, topic: str, error: Exception) -> None:
        """Count and log that something that has come cannot be used."""

    def now(self) -> int:
        """Time [ns]."""


class RobotPreparation(Generic[M]):
    """Holds the robot in use and the description that is to follow it.

    All methods belong to the thread of the executor. What `begin` and `finish` raise refuses the
    description.

    Parameters
    ----------
    node : Host
    begin : callable
        Takes a description and returns what the worker of the node is to do.
    finish : callable
        Takes the description and the result of the worker, and returns the robot.
    progressed : callable
        Called whenever a robot is asked for or an outcome is there.
    changed : callable
        Called afterwards with the result of the worker, if it is another robot.

    Attributes
    ----------
    robot : Robot, optional
        In use.
    error : str
        Why the latest description was refused; empty if it was not.
    wanted : str, optional
        Description that is being made ready.
    wanted_joints : int
        Of that robot; 0: not known yet.
    """

    def __init__(
        self,
        node: Host,
        begin: Callable[[str], Callable[[], M]],
        finish: Callable[[str, M], Robot],
        progressed: Callable[[], None],
        changed: Callable[[M], None],
    ) -> None:
        self.robot: Robot | None = None
        self.error: str = ''
        self.wanted: str | None = None
        self._node, self._begin, self._finish = node, begin, finish
        self._begun = self._since = time.monotonic()
        self._told = 0.0  # for how long the wait has been told [s]
        self.wanted_joints: int = 0
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
        """The robot in use.

        Raises
        ------
        ModelError
            If there is none; it says what is to be done.
        """
        return self.robot or ready(None, self.is_under_way)

    def is_latest(self, xml: str) -> bool:
        """Whether a description is the one in use or the one that follows it."""
        in_use = None if self.robot is None else self.robot.description
        return xml == (in_use if self.wanted is None else self.wanted)

    def request(self, xml: str) -> None:
        """Have a robot made ready; until it is, the one in use stays in use.

        Parameters
        ----------
        xml : str
            URDF.
        """
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
                lambda: (
                    soon(self._on_outcome, xml, job(), '') if self.wanted == xml else None
                ),
                lambda error: soon(self._on_outcome, xml, None, reason(error)),
            )
        self._progressed()

    def tell_progress(self) -> None:
        """Say what is being waited for, if it takes long: after 2 s, 4 s, 8 s and so on."""
        waited = time.monotonic() - self._since
        if self.wanted is None or waited < max(2.0 * self._told, LONG_PREPARATION):
            return
        self._told = waited
        n, stays = (
            self.wanted_joints,
            ' The robot before stays in use.' if self.robot else '',
        )
        what = (
            f'kernels for its {n} joints are compiled'
            if n
            else 'its description is read, and kernels are compiled'
        )
        self._node.get_logger().info(
            f'The new robot is being made ready for {waited:.0f} s: {what}.{stays}'
        )

    def refuse(self, why: str) -> None:
        """Report that the latest description cannot be used.

        Parameters
        ----------
        why : str
            For the log and the diagnostics.
        """
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
    """Robots with kernels for the wrenches that act, if they can be compiled.

    Parameters
    ----------
    node : Host
    wrenches : callable
        Returns the wrenches that act.
    progressed, changed : callable
        See `RobotPreparation`.
    """

    def __init__(
        self,
        node: Host,
        wrenches: Callable[[], Sequence[Wrench]],
        progressed: Callable[[], None],
        changed: Callable[[Compiled], None],
    ) -> None:
        super().__init__(node, self._compilation, self._made, progressed, changed)
        self._wrenches = wrenches
        self._payloads: tuple[Payload, ...] = ()
        options = model_settings(node.settings)
        self._assembled = lru_cache(REMEMBERED)(lambda xml: assemble(xml, *options))
        node.worker.put(_import_compiler)

    def check(self, xml: str) -> None:
        """Refusal of a description that cannot be used, which is reported.

        Parameters
        ----------
        xml : str
            URDF.

        Raises
        ------
        HodynError
            If it cannot be used.
        """
        try:
            self._made(xml, (self._assembled(xml), ''))
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
        """Take what the settings say of the robot in use once more.

        Parameters
        ----------
        payloads : tuple of Payload, optional
            What it carries from now on; by default as before.
        """
        if self.robot is not None:
            carried = self._payloads if payloads is None else payloads
            self.robot: Robot | None = self.with_payloads(carried)
            self._payloads = carried  # only if there is such a robot

    def with_payloads(self, payloads: tuple[Payload, ...]) -> Robot:
        """Robot in use, as it is with other payloads.

        Parameters
        ----------
        payloads : tuple of Payload

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If there is no robot.
        """
        robot = self.ready()
        return self._made(robot.description, (robot.bare, ''), payloads)

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

    def _made(
        self, description: str, made: Compiled, payloads: tuple[Payload, ...] | None = None
    ) -> Robot:
        bare, settings = made[0], self._node.settings
        carried = self._payloads if payloads is None else payloads
        robot = made_robot(description, bare, settings, carried)
        if any(model is not bare for model in robot.variants):
            self._node.worker.put(lambda: prepare_variants(robot, settings.base_motion))
        return robot


def _compile(node: Host, model: RobotModel, wanted: Sequence[KernelRequest]) -> str | None:
    """Make kernels; return why they are slower than they could be, if they are."""
    try:
        for request in () if unavailable() else wanted:
            if node.worker.is_closed:
                break
            prepare_kernel(model, request)
        if model.closure is not None and not node.worker.is_closed:
            prepare(model)
    except Exception as error:  # compilers fail in many ways; NumPy computes the same
        return f'compiling failed: {error}'
    return unavailable()


def _missing(
    model: RobotModel, wrenches: Iterable[Wrench], base_moves: bool
) -> tuple[KernelRequest, ...]:
    """Kernels for some wrenches that nobody has begun to make; they are the caller's now."""
    attachments = tuple(
        Attachment(wrench.link, wrench.expressed_in, wrench.acting)
        for wrench in wrenches
        if base_moves or model.link(wrench.link).body != BASE
    )
    wanted = (request_of(k, attachments, base_moves) for k in EFFORT_ORDERS)
    return tuple(x for x in wanted if engine_of(model, x).expect(x))


def _import_compiler() -> None:
    """Import and make what every robot's kernels need before they are needed."""
    try:
        if not unavailable():
            import hodyn_ros.engine.kernels  # noqa: F401
    except Exception:  # will be reported when it is needed
        pass
    # The compiler has more objects than all else together. If every full garbage collection
    # visited them, it would hold all threads up for 50 ms.
    gc.freeze()
