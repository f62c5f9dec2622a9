"""Laws that estimate the state of a robot from positions, watch over it and stop it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import SeriesElastic
from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.checks import checked_number
from hodyn_ros.control import step
from hodyn_ros.control.controller import friction_of
from hodyn_ros.control.guards import BOUNDS, QUANTITIES, Guards, beyond, bounds_of
from hodyn_ros.control.holding import OVERLOAD
from hodyn_ros.control.law import FOLLOWING, STOPPED, Command, ControlWarning, Law
from hodyn_ros.control.layouts import (
    BEYOND_RANGE,
    BRIDGED,
    ENCODER_LOST,
    GAP,
    HELD,
    IMPLAUSIBLE,
    LAW,
    MEASURED,
    MEASUREMENTS,
    REPEATED,
    RUNAWAY,
    SATURATION,
    SENSOR_LOST,
    SILENCE,
    SPRING_RANGE,
    TRACKING,
)
from hodyn_ros.control.observer import StateObserver, check_shared
from hodyn_ros.control.observing import MOST_FOUND
from hodyn_ros.control.records import Record
from hodyn_ros.control.robot_code import DEMAND, MOTORS, REST, Calls
from hodyn_ros.control.stiffness import possible_stiffness
from hodyn_ros.control.suspicion import MOST_GATED
from hodyn_ros.control.values import ObservedState, fastest, fill, per_joint
from hodyn_ros.control.watching import DelaySeen
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import ControlError, DeflectionError, MotionError
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.codegen.c_source import Code

_BANDWIDTH, _MOST_BANDWIDTH = 0.05, 0.2  # by the sample time
_EQUAL = 1e-3  # share by which a stiffness may be another one before it is said
GUARDS = Guards()
REPEATEDLY = (
    'The measurement is the same as before, though the robot moves: was the law called twice in a '
    'sample period? The torque stays.'
)
_BRAKES = 'the motors carry the weight alone, and brakes must close.'
_BY_LINK = 'it is held by the position of its link, and brakes must close.'
_BY_NOTHING = 'nothing else measures it, and brakes must close.'
_LOOKS_AGAIN = 0.1  # s, at the delay
# Of the bandwidth, with which goes what is left of the torque of the law before.
_FADING = 0.25
# Bandwidth of the law that holds and decay of what rings on the springs [rad/s], at most this part
# of the sampling rate.
_HOLDING, _RINGING, _SLOWEST = 20.0, 15.0, 0.02
# Bandwidths of the speeds of motors and springs that it sees, and of what is left of the torque
# before [rad/s].
_SPEED, _DEFLECTION, _FADING_HELD = 200.0, 400.0, 50.0
OUTSIDE = (
    1.0  # rad, m beyond a position limit, from where on a first position cannot be true
)
# Bounds by the reasons of a stop.
_BOUNDS = ('', *BOUNDS, '', '', 'measurements', '', '', 'measurements', 'measurements')


class ObserverController(Law):
    """A control law that estimates the state from positions, called once in a sample period.

    Parameters
    ----------
    actuators : Actuators
        With the model of the robot; rigid drives, series elastic ones and those of variable
        stiffness, mixed as the robot has them.
    sample_period : float
        T [s]; `evaluate` is called as often.
    bandwidth : float, optional
        w [rad/s]; by default 0.05 / T, and with a `resolution` for `tracking_controller` as much
        less as keeps the torque rates that it causes at rest below 5 times the torque limits a
        second (standard deviations).
    torque_limits : float or array-like, shape (m,), optional
        Largest motor torque in both directions [N m] or [N], infinite where there is none; by
        default the efforts of the robot description.
    delay : float
        From a measurement until its command acts [s], in whole samples; 0 if the command acts at
        once. The half sample for which it is held is known.
    observer : StateObserver, optional
        Of the same actuators and sample period, if several laws share one; bandwidth and delay
        of the observer are then its own.
    resolution : tuple of two (float or array-like), optional
        Steps in which positions of links (n,) and motors (m,) are measured [rad] or [m], behind
        the gears; the default bandwidth allows for the torques that they cause.
    guards : Guards, optional
        Bounds beyond which the law stops the robot, by default those of `Guards()`; None if
        something else watches over the robot.

    Attributes
    ----------
    lead : float
        The delay and half a sample [s]; see `Law`.
    observer : StateObserver
    record : Record
        Constants of the law, and what it remembers; see `layouts`.

    Raises
    ------
    ControlError
        If an argument cannot be used.
    """

    estimates = True
    kind: int = TRACKING

    def __init__(
        self,
        actuators: Actuators,
        sample_period: float,
        *,
        bandwidth: float | None = None,
        torque_limits: ArrayLike | None = None,
        delay: float = 0.0,
        observer: StateObserver | None = None,
        resolution: tuple[ArrayLike, ArrayLike] | None = None,
        guards: Guards | None = GUARDS,
    ) -> None:
        super().__init__(actuators)
        T = checked_number(
            'sample_period', sample_period, ControlError, above=0.0, unit='s'
        )
        if bandwidth is None:
            bandwidth = _BANDWIDTH / T
        most = _MOST_BANDWIDTH / T
        bandwidth = checked_number(
            'The bandwidth', bandwidth, ControlError, above=0.0, most=most, unit='rad/s'
        )
        if guards is not None and not isinstance(guards, Guards):
            raise ControlError(f'guards is {guards!r}, expected Guards(...) or None.')
        if observer is not None:
            check_shared(observer, actuators, T)
        self._undamped = without_dampers(actuators)
        self.resolution: Array | None = _steps(actuators, resolution)
        self.observer: StateObserver = observer or StateObserver(
            actuators, T, bandwidth, delay
        )
        sizes = self.model.n_joints, actuators.n_motors, self.observer.delay_samples
        self.record: Record = Record(LAW, *sizes)
        self.calls: Calls | None = None
        self.state: str
        self.reason: str
        self.bandwidth: float = bandwidth
        self.sample_period: float = T
        self.guards: Guards | None = guards
        self.lead: float = (self.observer.delay_samples + 0.5) * T
        given = _efforts(actuators) if torque_limits is None else torque_limits
        self.limit(given)
        self._looks, self._doubt, self._remark, self._text = 0, '', '', ''
        self._noted = 0.0, -1.0
        self._stiffness = dict[str, float]()
        self._wanted: Mapping[str, ArrayLike] | None = None
        self._speeds: tuple[ArrayLike | None, ArrayLike | None] = None, None
        self._fill(guards or GUARDS)
        if observer is None:
            self.observer.expect(self.record.speed, self._known_torques())
        if guards is not None:
            self._say_unknown()
        self.record.culprit = -1.0

    def _fill(self, guards: Guards) -> None:
        """Write the constants of the law, as far as all of them have the same."""
        T, limits = self.sample_period, self.model.limits
        floats = [float(guards.floats(bound)) for bound in _BOUNDS]
        if self.observer.transmission.is_variable and any(floats):
            raise ControlError(
                'A reaction of the guards is float, expected hold: without a stiffness motors of '
                'variable stiffness would drift apart.'
            )
        speed, torque = fastest(self.model), self.record.joint_limit
        bounds: tuple[Any, Any] = -np.inf, np.inf
        if self.guards is not None:
            bounds = bounds_of(self.model, guards, torque, self.yields)
        self.record.fill(
            {
                **{name: getattr(self, name) for name in _OF_LAW},
                **{name: getattr(guards, name) for name in _OF_GUARDS},
                'guarded': self.guards is not None,
                'fading': np.exp(-_FADING * self.bandwidth * T),
                'holding': min(_HOLDING, _SLOWEST / T),
                'ringing': min(_RINGING, _SLOWEST / T),
                'speed_share': -np.expm1(-_SPEED * T),
                'spring_share': -np.expm1(-_DEFLECTION * T),
                'hold_fading': np.exp(-_FADING_HELD * T),
                'lower': limits.lower - OUTSIDE,
                'upper': limits.upper + OUTSIDE,
                'speed': speed,
                'too_fast': (1.0 + guards.velocity_margin) * speed,
                'floats': floats,
                'lowest': bounds[0],
                'highest': bounds[1],
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), 'calls': None}  # which are those of this memory

    def limit(self, torque: ArrayLike) -> None:
        """Bound the torques of the motors, and know those of the joints; see `Law.limit`."""
        super().limit(torque)
        t, known = self.observer.transmission, self._known_torques()
        turning = np.where(t.turns > 0.0, known, 0.0)
        of_joints = np.bincount(t.joint, turning, self.model.n_joints)
        self.record.fill({'limit': self.torque_limits, 'joint_limit': of_joints})

    def _known_torques(self) -> Array:
        """What the motors can do (m,): by their limits, without them by the description."""
        limits, described = self.torque_limits, _described(self.actuators)
        return np.where(np.isfinite(limits), limits, described)

    def _say_unknown(self) -> None:
        """Warn of joints and motors whose limits nobody knows, so that nothing is too much."""
        known = np.isfinite(self.record.speed), np.isfinite(self._known_torques())
        names = self.model.joint_names, self.actuators.motor_names
        lacking = [
            f'{what} of {listed([x for x, is_known in zip(of, where) if not is_known])}'
            for what, of, where in zip(('velocity', 'torque'), names, known)
            if not where.all()
        ]
        if lacking:
            warnings.warn(
                f'No limit is known of the {" and the ".join(lacking)}: wrong measurements that '
                'are finite are believed there, and bounds of the guards that follow from it are '
                'missing. Give limits in the robot description, or torque_limits.',
                ControlWarning,
                stacklevel=4,
            )

    def _run(self, what: int, **numbers: float) -> int:
        """Do something of a sample; see `StateObserver.run`."""
        if self.calls is None:
            n, m = self.model.n_joints, len(self.torque_limits)
            self.calls = Calls(self.record.calls)
            self.calls.answer(MOTORS, self._move_motors, (5, n), (3, m))
            self.calls.answer(REST, self._rest, (n,), (n,))
            self.calls.answer(DEMAND, self._demand, (5, n), (m,))
        status = self.observer.run(what, self.record, **numbers)
        if self.calls.error is not None:
            error, self.calls.error = self.calls.error, None
            raise error
        return status

    def _move_motors(self, wanted: Array, result: Array) -> int:
        """Motors on springs that are no lines, for a wanted motion; see `step.motors_of`."""
        w = self.observer.record
        taken, self._remark = self._followable(self._wanted, w.effort)
        try:
            motion = motor_motion(self._undamped, wanted, w.effort, stiffness=taken)
        except DeflectionError as error:
            self._text = str(error)
            return BEYOND_RANGE
        result[:], w.feed_forward[:] = motion.position[:3], motion.torque[0]
        w.friction[:] = friction_of(self.actuators.arrays, motion.position[1])
        return 0

    def _rest(self, q: Array, result: Array) -> int:
        """Torques wanted of springs at rest, where Python computes them."""
        raise NotImplementedError

    def _demand(self, desired: Array, result: Array) -> int:
        """Torques without limits, where Python computes them."""
        raise NotImplementedError

    def evaluate(
        self,
        desired: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike | None,
        theta: ArrayLike,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None,
        elapsed: float | None = None,
    ) -> Command:
        """Motor torques for a measurement; to be called once in every sample period.

        A position that cannot be true, or is NaN, is taken for what is expected; see
        `StateObserver`. Beyond a bound of `guards` the motors are brought to rest and held, and
        `reason` says why, until `release`.

        Parameters
        ----------
        desired : array-like, shape (5, n)
            Wanted position of the links and its first four time derivatives [rad/s^k] or [m/s^k],
            `lead` after the measurement.
        q, qd, theta, thetad, spring_torque
            See `StateObserver.update`; velocities may be None, and those that are faster than the
            guards allow are taken for the fastest that are.
        stiffness : mapping of joint name to array-like, shape (3,), optional
            Wanted stiffness of each joint that can choose it and two derivatives [N m/rad]; one
            that is not possible gives way to the nearest, and `remark` says so.
        elapsed : float, optional
            Time since the measurement before [s], by default a sample period: of stamps, it tells
            samples that are missing or come at other times. Where it is not positive or not
            finite, the torque stays as it is; in the first sample it is not looked at.

        Returns
        -------
        Command
            Of the m motors.

        Raises
        ------
        MotionError
            If a shape is wrong, or a value wanted or measured first is not finite.
        DeflectionError
            If a spring is measured outside of its range; without guards also if it would have to
            be.
        ControlError
            If the first measurement cannot be one of this robot in rad, m, N m and N.
        """
        observer, w = self.observer, self.observer.record
        rows = w.desired[: self.orders]
        fill(rows, 'desired', desired)
        T = self._time_since(elapsed)
        if not 0.0 < T < np.inf:
            text = f'elapsed is {elapsed!r} s, expected a positive time: the torque stays.'
            return self._command(text)
        observer.give(q, qd, theta, thetad, spring_torque)
        w.acceleration[:] = rows[2] if self.orders == 5 else 0.0
        if stiffness and not observer.transmission.is_variable:
            raise MotionError(
                f'stiffness is given for {listed(stiffness)}, but no joint of this robot can '
                'choose one; expected None.'
            )
        self._wanted, self._speeds = stiffness, (qd, thetad)
        status = self._run(step.STEP, elapsed=T)
        if status == REPEATED:
            return self._command(self.reason or REPEATEDLY)
        if status == HELD:
            self._note_reason()
            return self._command(self.reason)
        if status not in (MEASURED, BRIDGED):
            self._refuse(status)
        seen = self._seen()
        missed = self._missed() if status == BRIDGED else ''
        return self._command('', self._remark or missed or seen)

    def _time_since(self, elapsed: float | None) -> float:
        """Time since the sample before, whatever it is; of the first one, a period."""
        if elapsed is None:
            return self.sample_period
        if not isinstance(elapsed, float):
            elapsed = checked_number(
                'elapsed', elapsed, MotionError, infinite=True, unit='s'
            )
        return elapsed if self.observer.record.running else self.sample_period

    def _command(self, reason: str, remark: str = '') -> Command:
        """Latest torques, with what is said of them."""
        torque = self.observer.record.acting.copy()
        demand = torque.copy() if reason else self.observer.record.demand.copy()
        return Command(torque, demand, reason, remark)

    def _refuse(self, status: int) -> None:
        """Error about what is wrong with a measurement or its answer."""
        observer, w = self.observer, self.observer.record
        if status == IMPLAUSIBLE:
            observer.record.running = 0.0
            raise ControlError(self._implausible())
        if status == BEYOND_RANGE:
            raise DeflectionError(self._beyond_range())
        observer.refuse(status)
        raise self._not_finite(w.demand)

    def _beyond_range(self) -> str:
        """Which spring would have to be outside of its range, in words."""
        if not self._text:
            w = self.observer.record
            torque = w.effort if self.kind == TRACKING else w.at_rest[None]
            try:
                self._undamped.arrays.deflections(torque[:1])
                self._undamped.arrays.deflections(w.effort[:1])
            except DeflectionError as error:
                return str(error)
        text, self._text = self._text, ''
        return text

    def _note_reason(self) -> None:
        """Say why the robot has been stopped, once it is known, and what is known better."""
        now = self.record.reason, self.record.culprit
        if now == self._noted and self.state == STOPPED:
            return
        self.state, self._noted = STOPPED, now
        self.reason = self._stopped_by(int(now[0]), int(now[1]))
        if self.record.gives_way and _BOUNDS[int(now[0])]:
            self.reason += ' The robot gives way.'

    def _stopped_by(self, reason: int, culprit: int) -> str:
        """What has stopped the robot, in words."""
        w = self.observer.record
        if reason == SPRING_RANGE:
            return self._beyond_range()
        if reason == GAP and self.observer.record.passed > MOST_FOUND:
            return f'{self._missed()} (max_gap)'
        if reason == MEASUREMENTS:
            names = self.model.joint_names, self.actuators.motor_names
            every = [
                f'{what} {x!r}' for what, of in zip(('joint', 'motor'), names) for x in of
            ]
            return (
                f'{MOST_GATED} positions of {every[int(w.slipped)]} one after the other '
                'cannot be true.'
            )
        if reason == ENCODER_LOST:
            return self._lost(culprit)
        if reason == SENSOR_LOST:
            return (
                f'{MOST_GATED} torques of the sensor of joint '
                f'{self.model.joint_names[culprit]!r} one after the other cannot be true.'
            )
        if reason <= len(QUANTITIES):
            return self._beyond(reason - 1, culprit, w.checked)
        said = {
            RUNAWAY: 'The links have run away behind the stop: the positions of links hold what '
            'is on springs, and brakes must close.',
            SILENCE: f'{MOST_GATED} measurements one after the other are the same, though '
            f'the robot moves: {_BRAKES}',
            GAP: f'While it moved, no measurement was answered for {w.gap:.3g} s (max_gap): '
            'none came, or the controller was held up.',
            SATURATION: f'A motor was at its torque limit for {w.saturated_for:.3f} s '
            '(saturation_time).',
        }
        return said.get(reason, self._stands)

    def _lost(self, i: int) -> str:
        """That the position of motor i is not measured any more, in words."""
        t = self.observer.transmission
        what, by = f'motor {self.actuators.motor_names[i]!r}', _BY_LINK
        if not t.is_elastic[t.joint[i]]:
            what, by = f'joint {self.model.joint_names[t.joint[i]]!r}', _BY_NOTHING
        return f'{MOST_GATED} positions of {what} one after the other cannot be true: {by}'

    def _beyond(self, row: int, j: int, values: Array) -> str:
        """Which of the values (K, n) is beyond its bound, in words."""
        found = (x[row, j] for x in (values, self.record.lowest, self.record.highest))
        return beyond(row, self.model.joint_names[j], *found)

    def _missed(self) -> str:
        """What is said of samples that have passed though nobody told."""
        T, passed = self.sample_period, self.observer.record.passed
        return (
            f'All that moves has gone on as in {passed * T:.3g} s since the measurement before, '
            f'not in {T:.3g} s: give elapsed where samples are missing.'
        )

    def _seen(self) -> str:
        """What the observer sees of a delay that is wrong."""
        observer = self.observer
        self._looks += 1
        if self._looks * self.sample_period >= _LOOKS_AGAIN:
            self._looks = 0
            self._doubt = observer.watch.contradiction(observer.delay_samples)
        return self._doubt

    @property
    def _stands(self) -> str:
        """Which motor's measured position stands still while it turns, in words; empty if none."""
        if not self.observer.doubted.any():
            return ''
        motor = self.actuators.motor_names[int(self.observer.doubted.argmax())]
        return (
            f'The encoder of motor {motor!r} stands still while its joint moves: {_BY_LINK}'
        )

    def stop(self, reason: str, floats: bool = False, touches: bool = False) -> None:
        """Bring the motors to rest from now on, whatever is wanted.

        Parameters
        ----------
        reason : str
            What `reason` then says.
        floats : bool
            Whether they then give way; otherwise they are held.
        touches : bool
            Whether the robot has met something, into which a stop must not go on: the motors are
            to rest where they are, without a way on which they slow down.
        """
        self._run(step.STOP, floats=float(floats), touches=float(touches))
        self.state, self.reason = STOPPED, reason
        self._noted = self.record.reason, self.record.culprit

    def unrest(self) -> str:
        """Why the robot must not move on yet if it has been stopped; see `Law.unrest`."""
        found, o = self._run(step.UNREADY), self.observer.record
        if found > 0:
            t, i = self.observer.transmission, found - 1
            is_rigid = t.is_elastic[t.joint[i]] == 0.0
            speed = o.links[1, t.joint[i]] if is_rigid else o.motors[1, i]
            return f'motor {self.actuators.motor_names[i]} still moves at {speed:.3g}.'
        joints = self.model.joint_names
        if found < -3 - len(joints):
            return (
                f'the torque sensor of {joints[-4 - len(joints) - found]} cannot be true.'
            )
        if found < -3:
            return self._beyond(0, -4 - found, o.links)
        return {
            -1: 'the motors could not bring it to rest.',
            -2: 'its measured positions cannot be true.',
            -3: 'it has not been measured since.',
        }.get(found, '')

    def release(self) -> None:
        """Let a robot that has been stopped follow again: it approaches what is wanted.

        Raises
        ------
        ControlError
            As long as there is an `unrest`.
        """
        if self.state == STOPPED and (why := self.unrest()):
            raise ControlError(
                f'The robot has been stopped: {self.reason} It does not move on yet: {why}'
            )
        self._run(step.RELEASE)
        self.state, self.reason, self._doubt = FOLLOWING, '', ''
        self.observer.watch.forget()

    def _implausible(self) -> str:
        """What cannot be true in the first positions and torques, in words."""
        w, limits, names = self.observer.record, self.model.limits, self.model.joint_names
        q, most = w.new_q, self.record.joint_limit
        outside = np.maximum(limits.lower - q, q - limits.upper)
        j = int(outside.argmax())
        if outside[j] > OUTSIDE:
            return (
                f'The position of joint {names[j]!r} is {q[j]:.6g}, far from its limits '
                f'{limits.lower[j]:.6g} to {limits.upper[j]:.6g}: is it in degrees?'
            )
        springs = self.observer.transmission.at(q, w.new_theta).torque
        j = int((np.abs(springs) / most).argmax())
        if abs(springs[j]) > OVERLOAD * most[j]:
            return (
                f'The spring of joint {names[j]!r} would carry {springs[j]:.4g}, more than '
                f'{OVERLOAD:g} times the torque of its motors ({most[j]:.4g}): positions '
                'of joint and motor contradict each other. Motor positions are those behind the '
                'gear, in rad or m, and zero where the joint is zero and its spring relaxed.'
            )
        is_single = self.observer.transmission.is_single
        j = int((np.abs(springs - w.spring_torque) * is_single / most).argmax())
        return (
            f'The torque sensor of joint {names[j]!r} says {w.spring_torque[j]:.4g}, the '
            f'deflection of its spring {springs[j]:.4g}: look at sign, unit and offset of the '
            'sensor, and at the stiffness.'
        )

    def reset(self) -> None:
        """Forget everything, also why the robot was stopped; the next measurement begins anew."""
        self.observer.reset()
        self.state, self.reason = FOLLOWING, ''
        self.record.kept[:] = 0.0
        self.record.culprit = -1.0
        self.begin()

    def added_to(self, code: Code) -> Code:
        """Code of the dynamics and of this law; for `generate_code`.

        Parameters
        ----------
        code : Code
            Of the dynamics of the same robot.

        Returns
        -------
        Code

        Raises
        ------
        ControlError
            If there is no code of this law, or of its actuators.
        """
        raise ControlError(
            f'No code is generated for {type(self).__name__}, but for TrackingController, '
            'JointImpedance, GravityCompensation and TorqueControl.'
        )

    def resting(
        self, position: ArrayLike, stiffness: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Motor positions at which the springs carry the weight of links at rest.

        Parameters
        ----------
        position : array-like, shape (n,)
            Of the links [rad] or [m].
        stiffness : mapping of joint name to array-like, shape (3,), optional
            As for `evaluate`.

        Returns
        -------
        ndarray, shape (m,)
            In joint coordinates [rad] or [m].
        """
        motion = np.zeros((5, self.model.n_joints))
        fill(motion[0], 'position', position)
        effort = inverse_dynamics(self.model, motion)
        taken, _ = self._followable(stiffness, effort)
        found: Array = motor_motion(
            self._undamped, motion, effort, stiffness=taken
        ).position[0]
        return found

    def _followable(
        self, stiffness: Mapping[str, ArrayLike] | None, effort: Array
    ) -> tuple[dict[str, Array] | None, str]:
        """Stiffness of each joint that its motors can follow, and what is said of it.

        One that is not finite is that before; what else cannot be one is left as it is.

        Parameters
        ----------
        stiffness : mapping, optional
            As for `evaluate`.
        effort : ndarray, shape (3, n)
            Of the wanted motion.
        """
        if not stiffness:
            return None, ''
        taken, remark = {}, ''
        for name, values in stiffness.items():
            taken[name] = wanted = np.asarray(values, dtype=np.float64)
            if name not in self.model.joint_names or wanted.shape != (3,):
                continue
            if not np.isfinite(wanted).all() and name in self._stiffness:
                taken[name] = np.array([self._stiffness[name], 0.0, 0.0])
            permitted = getattr(self.actuators[name], 'stiffness_range', None)
            torque = effort[:, self.model.joint_names.index(name)]
            if permitted is not None and np.isfinite(taken[name]).all():
                taken[name] = possible_stiffness(permitted, taken[name], torque)
                self._stiffness[name] = taken[name][0]
            is_other = not abs(taken[name][0] - wanted[0]) <= _EQUAL * wanted[0]
            if is_other and permitted is not None:
                ends = '{:.6g} to {:.6g}'.format(*permitted(torque[0]))
                remark = (
                    f'The stiffness of {name} is to be {wanted[0]:.6g}, but can be {ends} N m/rad '
                    f'at its torque: {taken[name][0]:.6g} is taken, which motors can follow.'
                )
        return taken, remark

    def begin(self) -> None:
        """Begin with what the observer knows, as when another law was used before.

        The difference to the torque of the law before fades out with the time constant 4 / w.
        """
        self._run(step.BEGIN)

    def at_rest(self, position: ArrayLike) -> Array:
        """What is wanted of a robot that rests; see `evaluate`.

        Parameters
        ----------
        position : array-like, shape (n,)
            Of the links [rad] or [m].

        Returns
        -------
        ndarray, shape (orders, n)

        Raises
        ------
        MotionError
            If the position has another shape or is not finite.
        """
        desired = np.zeros((self.orders, self.model.n_joints))
        fill(desired[0], 'position', position)
        return desired

    @property
    def delay_seen(self) -> DelaySeen:
        """Delay of the loop as it was seen in about the last 5 s of motion.

        `probing_motion` is a motion that shows it. Joints without springs show nothing.
        """
        return self.observer.watch.delay(self.observer.delay_samples)

    @property
    def memory(self) -> Array:
        """Copy of what the next answer depends on, besides the next measurement, shape (N,).

        Without what fades out after a begin.
        """
        return np.concatenate([part.ravel() for part in self._remembered()])

    @memory.setter
    def memory(self, values: Array) -> None:
        start = 0
        for part in self._remembered():
            part[...] = values[start : start + part.size].reshape(part.shape)
            start += part.size

    def _remembered(self) -> list[Array]:
        """Parts of `memory`, as views."""
        o, own = self.observer.record, self.record
        parts = [o.links[:4], o.motors, o.torque[1], o.load[1], o.bias, o.applied]
        return parts if self.kind == TRACKING else [*parts, own.slow, own.rest]

    def observed(self) -> ObservedState | None:
        """State at the latest measurement; None before the first one."""
        return self.observer.state() if self.observer.record.running else None

    @property
    def gated(self) -> int:
        """Measured positions so far that could not be true."""
        return self.observer.gated


_OF_LAW = 'kind', 'yields', 'bandwidth', 'lead'
_OF_GUARDS = ('max_gap', 'violation_samples', 'saturation_time', 'stop_duration')


def _steps(
    actuators: Actuators, resolution: tuple[ArrayLike, ArrayLike] | None
) -> Array | None:
    """Steps (n + m,) of the positions that are measured, if they are known."""
    if resolution is None:
        return None
    try:
        links, motors = resolution
    except (TypeError, ValueError):
        raise ControlError(
            f'The resolution is {resolution!r}, expected a pair: steps of the positions of links '
            'and of motors [rad, m].'
        ) from None
    n, m = actuators.model.n_joints, actuators.n_motors
    of_links = per_joint('resolution of links', links, n)
    return np.concatenate([of_links, per_joint('resolution of motors', motors, m)])


def _described(actuators: Actuators) -> Array:
    """Largest torques of the motors (m,) in the description of the robot; infinite: unknown."""
    joint = np.asarray(actuators.joint_of_motor)
    effort: Array = actuators.model.limits.effort[joint]
    is_single = np.bincount(joint)[joint] == 1
    return np.where((effort > 0.0) & is_single, effort, np.inf)


def _efforts(actuators: Actuators) -> Array:
    """Largest torques of the motors (m,), all of which the description has to know."""
    effort = _described(actuators)
    if not np.isfinite(effort).all():
        i = int(effort.argmax())
        raise ControlError(
            f'The largest torque of motor {actuators.motor_names[i]!r} is not known: the robot '
            'description has no effort limit of its joint, or the joint has several motors. Give '
            'torque_limits [N m, N], np.inf where there is none.'
        )
    return effort


def without_dampers(actuators: Actuators) -> Actuators:
    """Actuators whose series elastic ones have no damping.

    Parameters
    ----------
    actuators : Actuators
        Stay as they are.

    Returns
    -------
    Actuators
    """
    by_joint = dict(actuators.by_joint)
    for name, actuator in by_joint.items():
        if isinstance(actuator, SeriesElastic) and actuator.damping:
            by_joint[name] = replace(actuator, damping=0.0)
    return Actuators(actuators.model, by_joint)
