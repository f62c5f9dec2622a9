"""From robot descriptions to the robot in use.

A description is made ready in another thread; until then the robot before stays in use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.ros.answers import Robot
from hodyn_ros.ros.parameters import Parameters
from hodyn_ros.ros.preparation import Outcome, Preparation
from hodyn_ros.ros.worker import Inbox


class Descriptions:
    """Holds the robot in use and the description that is to follow it.

    All but `request_wrenches` belongs to the thread of the executor.

    Parameters
    ----------
    inbox : Inbox
    parameters : Parameters
    wrenches : callable
        Returns the wrenches that act at present, for which a robot is compiled as well.
    changed : callable
        Is called with the robot before (or None) and a remark after each change of the robot.
    refused : callable
        Is called with the reason why a description is refused.
    progressed : callable
        Is called whenever a robot is asked for or an outcome is there.
    """

    def __init__(
        self,
        inbox: Inbox,
        parameters: Parameters,
        wrenches: Callable[[], Sequence[Wrench]],
        changed: Callable[[Robot | None, str], None],
        refused: Callable[[str], None],
        progressed: Callable[[], None],
    ) -> None:
        self.robot: Robot | None = None
        self.error = ''
        """Why the latest description was refused; empty if it was not."""
        self._wanted: str | None = None  # description that is being made ready
        self._parameters, self._wrenches = parameters, wrenches
        self._changed, self._refused, self._progressed = changed, refused, progressed
        self._preparation = Preparation(
            self._assembled, lambda outcome: inbox.put(self._on_outcome, outcome)
        )

    @property
    def in_preparation(self) -> bool:
        """Whether a robot is being made ready."""
        return self._wanted is not None

    def is_latest(self, xml: str) -> bool:
        """Whether a description is the one in use or the one that follows it."""
        in_use = None if self.robot is None else self.robot.description
        return xml == (in_use if self._wanted is None else self._wanted)

    def check(self, xml: str) -> RobotModel:
        """Model of a description that is about to be requested.

        Raises
        ------
        HodynError
            If it cannot be used, which is reported as a refusal too.
        """
        try:
            model = self._assembled(xml)
            self._robot_of(xml, model)
        except HodynError as error:
            self._refuse(str(error))
            raise
        return model

    def request(self, xml: str, model: RobotModel | None = None) -> None:
        """Have a robot made ready; until it is, the one in use stays in use."""
        if self.robot is not None and xml == self.robot.description:
            self._wanted = None
            self.error = ''
            self._preparation.cancel()
        elif xml != self._wanted:
            self._wanted = xml
            self._preparation.request(
                xml, model, self._wrenches(), in_other_process=self.robot is not None
            )
        self._progressed()

    def request_wrenches(self, model: RobotModel, wrenches: Sequence[Wrench]) -> None:
        """Have a robot compiled with wrenches; may be called from any thread."""
        self._preparation.request_wrenches(model, wrenches)

    def update_robot(self) -> None:
        """Take limits and actuators of the robot in use from the parameters once more."""
        if self.robot is not None:
            self.robot = self._robot_of(self.robot.description, self.robot.model)

    def close(self) -> None:
        """End the preparation."""
        self._preparation.close()

    def _assembled(self, xml: str) -> RobotModel:
        settings = self._parameters.settings
        description = parse_urdf(xml, settings.allow_impossible_inertia)
        return RobotModel.from_description(
            description, settings.base_link, settings.tip_link, settings.gravity
        )

    def _on_outcome(self, outcome: Outcome) -> None:
        if self._wanted is None:
            return  # the robot in use has been described once more in the meantime
        if outcome.description == self._wanted:
            self._wanted = None
        robot = self._ready_robot(outcome)
        before = self.robot
        if robot is not None:
            self.robot = robot
            self.error = ''
        self._progressed()
        if robot is not None:
            self._changed(before, outcome.remark)

    def _ready_robot(self, outcome: Outcome) -> Robot | None:
        """Robot to use from now on; None leaves the one before."""
        if outcome.model is None:
            self._refuse(outcome.error)
            return None
        try:
            return self._robot_of(outcome.description, outcome.model)
        except HodynError as error:
            self._refuse(str(error))
            return None

    def _robot_of(self, description: str, model: RobotModel) -> Robot:
        parameters = self._parameters
        limits = parameters.limits_of(model)
        return Robot(model, limits, description, parameters.settings.drives_of(model))

    def _refuse(self, reason: str) -> None:
        self.error = reason
        self._refused(reason)
