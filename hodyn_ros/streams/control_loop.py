"""A robot with elastic joints under a control law: one command a measurement, and how it stops.

Free of ROS: measurements, references and trajectories come in as arrays and bytes, with their
stamps, and commands are returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.control.guards import Guards
from hodyn_ros.control.law import STOPPED, Command
from hodyn_ros.control.laws import FLOATING, MODES
from hodyn_ros.control.observer_controller import ObserverController
from hodyn_ros.control.values import ObservedState, shifted
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import ControlError, HodynError, MotionError, StaleError
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.model.violations import find_violations
from hodyn_ros.streams.loop_inputs import (
    ELASTIC_STATE,
    HOLD,
    LATE,
    RESET,
    RESET_TIME,
    Measured,
    Pace,
    References,
    Stamps,
)
from hodyn_ros.streams.motion_stream import (
    OVERTAKEN,
    TRAJECTORY,
    Instant,
    MotionStream,
    Plan,
    TrajectoryPlanner,
)
from hodyn_ros.streams.preparation import Host, RobotPreparation
from hodyn_ros.streams.received import report_plan, request_of
from hodyn_ros.streams.robot_in_use import Robot
from hodyn_ros.streams.timeline import NANOSECONDS, State, at_rest, check_age
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.streams.loop_laws import Laws

MakeLaws = Callable[[Host, Robot, Any], 'Laws']
"""Makes what controls a robot by settings; HodynError if nothing can."""


# Of measurements; estimating laws alone use the last one, and no velocities.
_FIELDS = 'position', 'velocity', 'motor_position', 'motor_velocity', 'spring_torque'
_SUSPENDED = 'The robot gets no commands, so that its brakes close: '


class ControlStep(NamedTuple):
    """A step of the loop: the command with which a measurement is answered.

    Attributes
    ----------
    stamp : int
        Of the measurement [ns].
    command : Command
    error : ndarray, shape (n,)
        Reference minus measured position.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.control import Command
    >>> from hodyn_ros.streams import ControlStep
    >>> torque = np.array([5.0])
    >>> step = ControlStep(1_000_000, Command(torque, torque), error=np.array([0.002]))
    >>> step.command.torque, step.error
    (array([5.]), array([0.002]))
    """

    stamp: int
    command: Command
    error: Array


class ControlLoop:
    """Controls one robot; all methods belong to one thread.

    Parameters
    ----------
    host : Host
        Its settings are the parameters of the node ``flatness_controller``.
    planner : TrajectoryPlanner
        Plans trajectories; its plans are given to `stream`.
    robot_of : callable
        Makes a robot of a description and settings.
    make_laws : callable
        Makes what controls it.
    follow : callable
        Called with the robot in use and whether one is being made ready, whenever they or the
        settings change. By default nothing is done.

    Attributes
    ----------
    why : str
        Why the robot has been stopped, by its law or since that cannot keep its period; until a
        trajectory comes, also with another robot, law or time. Empty if it has not.
    """

    def __init__(
        self,
        host: Host,
        planner: TrajectoryPlanner,
        robot_of: Callable[[str, Any], Robot],
        make_laws: MakeLaws,
        follow: Callable[[Robot | None, bool], object] = lambda *_: None,
    ) -> None:
        self._host, self._make_laws, self._follow = host, make_laws, follow
        self.laws: Laws | None = None
        self.preparation: RobotPreparation[Robot] = RobotPreparation(
            host,
            lambda xml: partial(robot_of, xml, host.settings),
            self._use,
            self._on_progress,
            self._on_robot,
        )
        self.measured: Measured | None = None
        self._newest: Measured | None = None  # to be answered
        # Stamp of the measurement that the law has had [ns]; 0: the law begins anew.
        self._answered = 0
        self._stamps = Stamps()
        self._remark = ''
        self._early = b''  # trajectory that has come before the simulated time
        self._tracking = self._largest_tracking = 0.0
        self.why: str = ''
        self._stops = 0
        self._pace = Pace()
        # Nothing is commanded any more, or just now.
        self._is_suspended = self._is_silent = False
        self.stream: MotionStream = MotionStream(
            planner, lambda: host.settings.planning, self._start_state, self._on_planned
        )
        self.references: References = References(
            self.stream.timeline, self._end_trajectories
        )

    def time(self) -> int:
        """Time [ns]: of the clock, or of the latest measurement where stamps are the time.

        They are where `measurement_timeout` is zero, once there is a measurement.
        """
        if not self._host.settings.measurement_timeout and self.measured is not None:
            return self.measured.stamp
        return self._host.now()

    def instant(self) -> Instant:
        """Time of the loop beside a time that only goes on."""
        return Instant(self.time(), time.monotonic())

    def ready(self) -> Laws:
        """What controls the robot in use.

        Raises
        ------
        ModelError
            If there is none.
        """
        self.preparation.ready()
        assert self.laws is not None
        return self.laws

    # Robot and settings

    def _use(self, xml: str, robot: Robot) -> Robot:
        """Control a robot from now on; HodynError if there is no controller for it."""
        host, before, names = self._host, self.laws, robot.model.joint_names
        laws = self._make_laws(host, robot, host.settings)
        if before is None or before.robot.model.joint_names != names:
            self.references.use_joints(names)
        self.laws = laws
        self._restart(laws.controller)
        return robot

    def _on_progress(self) -> None:
        preparation = self.preparation
        self._follow(preparation.robot, preparation.is_under_way)
        if self.stream.follow(preparation.robot, preparation.is_under_way, self.instant()):
            text = 'The running trajectory is stopped: the new robot has other joints.'
            self._host.get_logger().error(text)

    def _on_robot(self, robot: Robot) -> None:
        law, joints = self._host.settings.controller, ', '.join(robot.model.joint_names)
        text = f'Controlling {robot.model.name!r} by {law}: joints {joints}.'
        self._host.get_logger().info(text)

    def check_settings(self, settings: Any) -> None:
        """Refusal of settings for which there is no controller.

        Parameters
        ----------
        settings : object
            The parameters of the node `flatness_controller` as they would be.

        Raises
        ------
        HodynError
            If the robot in use cannot be controlled by them, or the law would be changed while the
            robot moves, has been stopped, or was led by hand and has no reference.
        """
        if self.laws is None:
            return
        before = self._host.settings
        self._changed(self.laws, before, settings)
        changes = settings.controller, before.controller
        if changes[0] == changes[1] or set(MODES).isdisjoint(changes):
            return
        if self.measured is not None:
            why = self.why and f'the robot has been stopped: {self.why}'
            if why := why or self.laws.controller.unrest():
                raise ControlError(f'The control law is changed at rest, but {why}')
        if before.controller == FLOATING and settings.without_reference != HOLD:
            raise ControlError(
                'A robot that was led by hand has no reference: set without_reference to hold '
                'first.'
            )

    def on_settings(self, before: Any) -> None:
        """Control with the settings of the host from now on.

        Parameters
        ----------
        before : object
            Settings until now.
        """
        self._follow(self.preparation.robot, self.preparation.is_under_way)
        if self.laws is None:
            return
        settings, modes = self._host.settings, self.laws.modes
        self.laws = laws = self._changed(self.laws, before, settings)
        if settings.controller != before.controller:
            if FLOATING in (before.controller, settings.controller):
                self.references.clear()  # it is held where it has been led to
            laws.controller.begin()
        if laws.modes is not modes:
            self._restart(laws.controller)

    def _restart(self, law: ObserverController) -> None:
        """Have a law begin anew; a robot that has been stopped stays so."""
        law.reset()
        if self.why:
            law.stop(self.why)

    def _changed(self, laws: Laws, before: Any, after: Any) -> Laws:
        """What controls with other settings; HodynError if nothing can."""
        law = laws.modes.get(after.controller)
        if law is None or replace(after, controller=before.controller) != before:
            return self._make_laws(self._host, laws.robot, after)
        if isinstance(law, ControlError):
            raise law
        return laws._replace(controller=law)

    # References

    def check_reference(self) -> Laws:
        """What controls, if a stream of references can move the robot.

        Raises
        ------
        HodynError
            If there is no robot, or it is led by hand or has been stopped.
        """
        laws = self.ready()
        self._check_led()
        if self.why:
            hint = 'A trajectory ends that, also an empty one.'
            raise ControlError(f'The robot has been stopped: {self.why} {hint}')
        return laws

    def take_reference(self, motion: Array, stamp: int) -> None:
        """Take a motion of a stream.

        Parameters
        ----------
        motion : ndarray, shape (5, n)
            Position to snap [rad/s^k] or [m/s^k].
        stamp : int
            Its time [ns]; 0: now.

        Raises
        ------
        HodynError
            If there is no robot, the motion exceeds limits, or it is older than the latest
            measurement by more than `reference_timeout`.
        """
        model = (laws := self.ready()).robot.model
        effort = inverse_dynamics(model, motion[:3])
        if laws.check.look(motion[:3], effort):
            rows = motion[None, :3], effort[None]
            first = find_violations(model, laws.limits, *rows)[0]
            reason = (
                f'The reference exceeds a limit: {first.quantity} of {first.joint_name} is '
                f'{first.value:.6g}, its limit {first.limit:.6g}.'
            )
            raise MotionError(' '.join((reason, *self._host.settings.planning.headroom())))
        timeout = round(self._host.settings.reference_timeout * NANOSECONDS)
        oldest = 0 if self.measured is None else self.measured.stamp - timeout
        self.references.take(stamp or self.time(), motion, oldest)

    def _end_trajectories(self) -> None:
        if self.stream.clear('A stream of references has taken its place.'):
            text = 'The motion gives way to a stream of references.'
            self._host.get_logger().warning(text)

    def _check_led(self) -> None:
        """Refuse motions for a robot that is led by hand."""
        if self._host.settings.controller == FLOATING:
            raise ControlError(
                'The robot is led by hand: set controller to another law first.'
            )

    def take_trajectory(self, data: bytes) -> None:
        """Take a trajectory; it also ends a stop, once the robot is at rest.

        An empty one does that also where the robot is led by hand.

        Parameters
        ----------
        data : bytes
            Serialized trajectory_msgs/JointTrajectory; one that has come before simulated time
            begins is kept until then.

        Raises
        ------
        HodynError
            If it cannot be used: the robot is led by hand or still moves after a stop, there is no
            robot or no time, or the message is damaged or too large.
        """
        settings = self._host.settings
        if not settings.measurement_timeout and self.measured is None:
            raise StaleError('There is no measurement yet, whose stamps are the time.')
        request = request_of(data, settings.planning.max_trajectory_points)
        if request.data or not self.why:
            self._check_led()
        if not self.time():  # simulated time has not begun, nor can the motion
            if self._early:
                report_plan(self._host, Plan(0, None, remarks=(OVERTAKEN,)))
            self._early = data
            return
        if not self.preparation.is_under_way:
            self.preparation.ready()
        if self.why:
            self._release(self.ready().controller)
        self.stream.take(request, self.instant())

    def _release(self, law: ObserverController) -> None:
        """Let a robot that has been stopped move on; ControlError if it must not yet."""
        if self._is_suspended:
            why = self._pace.wrong(law.sample_period) or self._pace.unrest()
            if why:
                raise ControlError(
                    f'The robot has been stopped: {self.why} It does not move on yet: {why}'
                )
            self._is_suspended, self._answered = False, 0
        else:
            law.release()
        self.why = ''
        if self.measured is not None:
            self.references.hold(self.measured.state[0], self.measured.stamp)
        self._host.get_logger().info('The stop is over: a trajectory has come.')

    def _take_early(self) -> None:
        data, self._early = self._early, b''
        try:
            self.take_trajectory(data)
        except HodynError as error:
            self._host.refuse(TRAJECTORY, error)

    def _start_state(self, now: int) -> State | None:
        """Where a trajectory starts that no other one precedes, at a time [ns].

        At the latest reference, else at the measured position and velocity, with NaN for what is
        not measured.
        """
        state = self.references.state(now)
        if state is None and self.measured is not None:
            q, qd = self.measured.state[:2]
            unknown = np.full((3, len(q)), np.nan)
            state = State(np.vstack((q, qd, unknown)), False, now, 'measured')
        return state

    def _on_planned(self, plan: Plan) -> None:
        if plan.planned is not None:
            self.references.end_stream()
        report_plan(self._host, plan)

    # Measurements

    def take(self, stamp: int, given: Mapping[str, Array]) -> str:
        """Take a measurement.

        Parameters
        ----------
        stamp : int
            Its time [ns], not zero.
        given : mapping of str to ndarray, shape (n,)
            What is measured, by the fields of hodyn_msgs/ElasticState, in the order of the model;
            laws that estimate need the positions alone.

        Returns
        -------
        str
            Why measurements like this one are not answered; empty if there is nothing to say.

        Raises
        ------
        ModelError
            If there is no robot.
        MotionError
            If there is no stamp, something that the law needs is missing, or a value that it uses
            is not finite: the measurement counts as lost.
        """
        if not stamp:
            raise MotionError(
                f'{ELASTIC_STATE}: there is no stamp, which is that of the answer.'
            )
        state, sensed = self._rows(given), None
        if len(state) > 4:
            state, sensed = state[:4], state[4]
        order = self._stamps.judge(stamp)
        if order != LATE:
            self._put_aside(Measured(stamp, state, sensed, order == RESET))
            return ''
        self._host.diagnostics.dropped(ELASTIC_STATE)
        behind = self._stamps.behind
        if not behind:
            return ''
        return (
            f'The stamps of the measurements lie {behind:.3f} s behind one that was answered. If '
            f'nothing newer comes for {RESET_TIME:.6g} s, the control begins anew.'
        )

    def _rows(self, given: Mapping[str, Array]) -> Array:
        """Positions and velocities of links and motors; as a fifth row the used spring torques."""
        laws, settings = self.ready(), self._host.settings
        estimates, fields = laws.controller.estimates, list(_FIELDS)
        if not (estimates and settings.torque_sensors):
            fields.remove('spring_torque')
        rows = np.full((len(fields), laws.robot.model.n_joints), np.nan)
        for row, field in zip(rows, fields):
            if field not in given:
                if 'velocity' in field and estimates:
                    continue
                raise MotionError(
                    f'{ELASTIC_STATE}: {field} is empty, but the law needs it.'
                )
            row[:] = given[field]
            bad = np.flatnonzero(~np.isfinite(row))
            if len(bad):
                names = (
                    laws.motor_names if 'motor' in field else laws.robot.model.joint_names
                )
                raise MotionError(
                    f'{ELASTIC_STATE}: the {field} of {names[bad[0]]} is {row[bad[0]]:g}; all '
                    'values must be finite.'
                )
        return rows

    def _put_aside(self, measured: Measured) -> None:
        """Keep a measurement until it is its turn, in place of the one before."""
        host = self._host
        if measured.begins_anew:
            host.get_logger().warning(
                'The stamps of the measurements have gone back to '
                f'{measured.stamp / NANOSECONDS:.6f} s; the control begins anew.'
            )
            host.diagnostics.time_jumped()
            self.begin_anew('the stamps have gone back')
        if self._newest is not None:
            host.diagnostics.dropped(ELASTIC_STATE)
        self._newest = measured

    def begin_anew(self, why: str) -> None:
        """Forget what is of another time: nothing of before is true any more.

        Parameters
        ----------
        why : str
            For the log, if a trajectory was running.
        """
        self.measured = self._newest = None
        self._pace.clear()
        if self.laws is not None:
            self._restart(self.laws.controller)
        self.references.clear()
        self._stamps.clear()
        if self.stream.clear(f'Dropped: {why}.'):
            self._host.get_logger().error(f'The running trajectory is stopped: {why}.')

    # Commands

    def answer_newest(self) -> ControlStep | None:
        """Answer to the newest measurement that waited: commands for others come too late.

        Returns
        -------
        ControlStep or None
            None if there is none.

        Raises
        ------
        Exception
            Any error says that there is no command for it; a HodynError, unless it is a
            fault of this package.
        """
        measured, self._newest, laws = self._newest, None, self.laws
        if measured is None or laws is None:
            return None
        try:
            timeout, now = self._host.settings.measurement_timeout, self._host.now()
            check_age('Measurement', measured.stamp, now, timeout, 'measurement_timeout')
            before, self.measured = self.measured, measured
            if self._early:
                self._take_early()
            if before is None or before.stamp != measured.stamp:
                self._pace.note(measured.stamp, measured.state[0])
            answer = self._answer(laws, measured)
        except Exception:
            self._is_silent = True
            raise
        self._is_silent = False
        return answer

    def note_sent(self, answer: ControlStep) -> list[str]:
        """Note that a command has been sent.

        Parameters
        ----------
        answer : ControlStep

        Returns
        -------
        list of str
            Limits that it exceeds: torques of motors, by name.
        """
        laws, command = self.ready(), answer.command
        before, self._remark = (
            self._remark,
            command.remark or command.reason * (not self.why),
        )
        if self._remark and not before:
            self._host.get_logger().warning(self._remark)
        self._stamps.answer(answer.stamp)
        self._tracking = float(abs(answer.error).max())
        self._largest_tracking = max(self._largest_tracking, self._tracking)
        return [f'torque of {laws.motor_names[j]}' for j in command.is_limited.nonzero()[0]]

    def _answer(self, laws: Laws, measured: Measured) -> ControlStep:
        """Command for a measurement.

        Raises
        ------
        HodynError
            If there is no command, such as without a reference.
        """
        law, elapsed = laws.controller, None
        if not self._is_suspended:
            try:
                reference, error = self._reference(law, measured)
            except StaleError:
                self._answered = 0  # what is not commanded is no gap
                raise
            if self._answered and measured.stamp > self._answered:
                elapsed = (measured.stamp - self._answered) / NANOSECONDS
            else:
                self._restart(law)
            if why := self._off_pace(law, elapsed or 0.0):
                self._is_suspended = True
                self._end_motion(why)
        if self._is_suspended:
            raise ControlError(_SUSPENDED + self.why)
        q, qd, theta, thetad = measured.state
        command = law.evaluate(
            *(reference, q, None if np.isnan(qd).any() else qd),
            *(theta, None if np.isnan(thetad).any() else thetad, measured.spring_torque),
            elapsed=elapsed,
        )
        self._answered = measured.stamp
        if law.state == STOPPED and law.reason != self.why:
            self._end_motion(law.reason)
        return ControlStep(measured.stamp, command, error)

    def _reference(
        self, law: ObserverController, measured: Measured
    ) -> tuple[Array, Array]:
        """Reference of a measurement, and the tracking error.

        Parameters
        ----------
        law : ObserverController
        measured : Measured

        Returns
        -------
        reference : ndarray, shape (5, n)
            Later than the measurement by the lead of the law; at rest where the robot is measured
            if it is led by hand or has been stopped.
        error : ndarray, shape (n,)
            Reference at the time of the measurement minus the measured position [rad] or [m].

        Raises
        ------
        StaleError
            If there is no reference, and the robot is not to be held without one.
        """
        settings = self._host.settings
        if self.why or not law.follows:
            reference = at_rest(measured.state[0])
            return reference, reference[1]
        reference = self.references.at(
            measured.stamp + round(law.lead * NANOSECONDS),
            measured.state[0],
            settings.reference_timeout,
            settings.stop_duration if settings.without_reference == HOLD else None,
        )
        return reference, shifted(reference, -law.lead)[0] - measured.state[0]

    def _off_pace(self, law: ObserverController, elapsed: float) -> str:
        """Why a law could not even stop the robot, by the stamps; empty if it can.

        Parameters
        ----------
        law : ObserverController
        elapsed : float
            Since the measurement before [s].
        """
        if wrong := self._pace.wrong(law.sample_period):
            return wrong
        if law.state == STOPPED and elapsed > Guards.max_gap and self._pace.unrest():
            return (
                f'While it was being stopped, no measurement was answered for {elapsed:.3f} s '
                '(max_gap): none came, or this node was held up.'
            )
        return ''

    def _end_motion(self, why: str) -> None:
        """Note why the robot is stopped, and drop what it was to do."""
        self._stops += not self.why or self._is_suspended
        self.why = why
        text = (_SUSPENDED if self._is_suspended else 'The robot is being stopped: ') + why
        self._host.get_logger().error(text)
        self.stream.clear(text)
        self.references.clear()

    # What is seen

    @property
    def state(self) -> str:
        """What the robot does: it is following, stopped, suspended or silent."""
        if self._is_suspended:
            return 'suspended'
        return 'stopped' if self.why else 'silent' if self._is_silent else 'following'

    def observed(self, stamp: int) -> ObservedState | None:
        """State that the observer has seen.

        Parameters
        ----------
        stamp : int
            Of a measurement [ns].

        Returns
        -------
        ObservedState or None
            None if the law estimates none, or has not answered this measurement.
        """
        law = self.ready().controller
        return law.observed() if self._answered == stamp else None

    def external_wrench(self, state: ObservedState, link: str) -> Array:
        """External torques as a wrench at a link, by least squares.

        Parameters
        ----------
        state : ObservedState
        link : str

        Returns
        -------
        ndarray, shape (6,)
            In the axes of the link, (moment, force) [N m], [N].
        """
        model = self.ready().robot.model
        J = jacobian(model, state.position[None], link, 'body')[0]
        wrench: Array = np.linalg.lstsq(J.T, state.external_torque, rcond=None)[0]
        return wrench

    def report(self) -> dict[str, str]:
        """State in words; the largest tracking error is that since the report before.

        Returns
        -------
        dict of str to str
            Values by their names in the diagnostics.
        """
        gated = self.laws.controller.gated if self.laws else 0
        largest, self._largest_tracking = self._largest_tracking, 0.0
        return {
            'controller': self._host.settings.controller,
            'reference': self.references.origin,
            'tracking error': f'{self._tracking:.3g}',
            'largest tracking error': f'{largest:.3g}',
            'state': self.state,
            'stopped because': self.why,
            'stops': str(self._stops),
            'positions that cannot be true': str(gated),
            'remark': self._remark,
        }
