"""Laws that estimate the state of a robot from positions, watch over it and stop it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import SeriesElastic
from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.checks import checked_number
from hodyn_ros.control.guards import (
    AT_REST,
    CONTACT,
    CONTRADICTION,
    MOST_GATED,
    OUTSIDE,
    OVERLOAD,
    QUANTITIES,
    RUN_UP,
    BeyondBound,
    Bounds,
    Guards,
    bounds_of,
    holding,
)
from hodyn_ros.control.kernels import (
    hold,
)
from hodyn_ros.control.law import FOLLOWING, STOPPED, Command, Law
from hodyn_ros.control.observer import MOST_FOUND, ObservedState, StateObserver
from hodyn_ros.control.stiffness import possible_stiffness
from hodyn_ros.control.values import fill, per_joint, powers
from hodyn_ros.control.watching import DelaySeen
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort
from hodyn_ros.errors import ControlError, DeflectionError
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.codegen.c_source import Code

_BANDWIDTH, _MOST_BANDWIDTH = 0.05, 0.2  # by the sample time
_EQUAL = 1e-3  # share by which a stiffness may be another one before it is said
GUARDS = Guards()
REPEATED = (
    'The measurement is the same as before, though the robot moves: was the law called twice in a '
    'sample period? The torque stays.'
)
SILENT = (
    f'{MOST_GATED} measurements one after the other are the same, though the robot moves: the '
    'motors carry the weight alone, and brakes must close.'
)
RUNAWAY = (
    'The links have run away behind the stop: the motors carry the weight alone, and brakes must '
    'close.'
)
_LOOKS_AGAIN = 0.1  # s, at delay and noise
_FADING = (
    0.25  # of the bandwidth, with which goes what is left of the torque of the law before
)


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
        Of the same robot, if several laws share one.
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

    Raises
    ------
    ControlError
        If an argument cannot be used.
    """

    estimates = True

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
        self._undamped = without_dampers(actuators)
        self.resolution = _steps(actuators, resolution)
        self.observer = observer or StateObserver(actuators, T, bandwidth, delay)
        self.bandwidth = bandwidth
        self.sample_period = T
        self.lead = (self.observer.delay_samples + 0.5) * T
        given = _efforts(actuators) if torque_limits is None else torque_limits
        self.limit(per_joint('torque_limits', given, actuators.n_motors, np.inf))
        self._desired = np.empty((self.orders, self.model.n_joints))
        self._back = powers(-self.lead, self.orders)
        t = self.observer.transmission
        limits, self.guards = self.model.limits.velocity, guards
        self.fastest = np.where(limits > 0.0, limits, np.inf)
        if observer is None:
            self.observer.expect(self.fastest, self.torque_limits)
        if self.resolution is not None:
            self.observer.watch.told = self.resolution / np.sqrt(12.0)
        self._looks, self._doubt = 0, ''
        self._measured_names = [
            *(f'joint {name!r}' for name in self.model.joint_names),
            *(f'motor {name!r}' for name in actuators.motor_names),
        ]
        self.bounds = None
        if guards is not None:
            self.bounds = bounds_of(self.model, guards, self._limit, self.yields)
            if t.is_variable and any(map(guards.floats, guards.reactions)):
                raise ControlError(
                    'A reaction of the guards is float, expected hold: without a stiffness motors '
                    'of variable stiffness would drift apart.'
                )
        self.holding = holding(
            t, np.eye(self.model.n_joints), np.zeros(self.model.n_joints), T
        )
        self._beyond, self._limited_for = 0, 0.0
        self._stopping, self._stopped_for = np.zeros((7, actuators.n_motors)), 0.0
        self._driven, self._runaway, self._repeated = 0.0, '', 0
        margin = (guards or GUARDS).velocity_margin
        self.too_fast = (1.0 + margin) * self.fastest
        self._last: Command | None = None
        self._moves = self._floats = False
        self._remark, self._stiffness = '', dict[str, float]()
        self._on_links = t.is_elastic[t.joint] == 0.0
        self._begins, self._left = True, np.zeros(actuators.n_motors)
        self.fading = np.exp(-_FADING * bandwidth * T)

    def limit(self, torque: Array) -> None:
        """Bound the torques of the motors, and know those of the joints; see `Law.limit`."""
        super().limit(torque)
        t = self.observer.transmission
        turning = np.where(t.turns > 0.0, torque, 0.0)
        self._limit: Array = np.bincount(t.joint, turning, self.model.n_joints).astype(
            float
        )

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
            See `StateObserver.update`; velocities may be None.
        stiffness : mapping of joint name to array-like, shape (3,), optional
            Wanted stiffness of each joint that can choose it and two derivatives [N m/rad]; one
            that is not possible gives way to the nearest, and `remark` says so.
        elapsed : float, optional
            Time since the measurement before [s], by default a sample period: of stamps, it tells
            samples that are missing or come at other times. Where it is not positive, the torque
            stays as it is.

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
        fill(self._desired, 'desired', desired)
        if elapsed is not None and not elapsed > 0.0 and self._last is not None:
            text = f'elapsed is {elapsed!r} s, expected a positive time: the torque stays.'
            return self._last._replace(reason=text)
        moved, self._moves = self._moves, bool(self._desired[1:].any())
        gap = self._behind_gap(elapsed)
        self._observe(q, qd, theta, thetad, spring_torque, elapsed)
        gap = self._behind_missed(q, theta, spring_torque, elapsed) or gap
        if self._is_repeated() and self._last is not None:
            return self._last._replace(reason=self.reason or REPEATED)
        if self.bounds is not None and self.state == FOLLOWING:
            lost = self._lost(q, theta) if self.observer.is_gating else ''
            self._judge(self.bounds, lost, gap if moved or self._moves else '')
        if self.state == STOPPED:
            self.reason = self._stands or self._runaway or self.reason
            self._last = self._held()
        else:
            self._last = self._with_doubt(self._followed(stiffness))
        return self._last

    def _behind_gap(self, elapsed: float | None) -> str:
        """Begin anew behind a gap that is too long; say how long it was, or nothing."""
        if self.guards is None or elapsed is None or not elapsed > self.guards.max_gap:
            return ''
        self.observer.forget()
        self.begin()
        return (
            f'While it moved, no measurement was answered for {elapsed:.3g} s (max_gap): none '
            'came, or the controller was held up.'
        )

    def _behind_missed(
        self,
        q: ArrayLike,
        theta: ArrayLike,
        spring_torque: ArrayLike | None,
        elapsed: float | None,
    ) -> str:
        """Begin anew behind samples that nobody told of, if too many; say so, or nothing."""
        if self.guards is None or self.observer.passed <= MOST_FOUND:
            return ''
        gap = f'{_missed(self.observer)} (max_gap)'
        self.observer.forget()
        self.begin()
        self._observe(q, None, theta, None, spring_torque, elapsed)
        return gap

    def _is_repeated(self) -> bool:
        """Whether the latest measurement is the one before, though the robot moves.

        After some of them one after the other nothing is known of the robot: its motors carry the
        weight alone.
        """
        self._repeated = 0 if self.observer.passed else self._repeated + 1
        if self._repeated < MOST_GATED or self.guards is None:
            return self._repeated > 0
        self._repeated, self._runaway = 0, SILENT
        self.stop(SILENT)
        return False

    def _observe(
        self,
        q: ArrayLike,
        qd: ArrayLike | None,
        theta: ArrayLike,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None,
        elapsed: float | None,
    ) -> None:
        """Give the observer a measurement; the first one is where a stopped robot is held.

        Raises
        ------
        ControlError
            If it is the first one and cannot be true; the observer has then forgotten it.
        """
        observer = self.observer
        is_new = observer.is_new
        wanted = self._desired[2] if self.orders == 5 else None
        observer.update(q, qd, theta, thetad, spring_torque, wanted, elapsed)
        if is_new:
            reason = self._implausible(*observer.measured)
            reason = reason or self._contradicted(spring_torque)
            if reason:
                observer.forget()
                raise ControlError(reason)
            if self.state == STOPPED:
                self._hold_here(observer.acting)

    def _with_doubt(self, command: Command) -> Command:
        """Command that also tells what the observer sees of a delay or noise that is wrong."""
        observer = self.observer
        self._looks += 1
        if self._looks * self.sample_period >= _LOOKS_AGAIN:
            self._looks = 0
            self._doubt = observer.watch.contradiction(
                observer.delay_samples, self._measured_names
            )
        remark = command.remark or (
            _missed(observer) if observer.passed > 1 else self._doubt
        )
        return command._replace(remark=remark) if remark else command

    def _followed(self, stiffness: Mapping[str, ArrayLike] | None) -> Command:
        """Answer, or stop the robot if a spring would have to be outside of its range."""
        try:
            return self.answer(self._desired, stiffness)
        except DeflectionError as error:
            if self.guards is None:
                raise
            self.stop(str(error))
            return self._held()

    def _judge(self, bounds: Bounds, lost: str, gap: str) -> None:
        """Stop the robot whose measurements are not true or missing, or that is out of bounds.

        Parameters
        ----------
        bounds : Bounds
        lost : str
            Which position has not been possible for some samples; empty if none.
        gap : str
            How long there was no measurement while the robot moved; empty if not for too long.
        """
        observer, guards = self.observer, self.guards
        t, (links, motors), n = observer.transmission, observer.present, self.model.n_joints
        assert guards is not None
        values = np.zeros((len(QUANTITIES), n))
        values[0], values[1], values[3] = links[0], links[1], links[3]
        remaining = self._remaining
        if not self.yields and remaining is not None:
            values[2] = self._back @ (self._desired - remaining) - links[0]
        values[4] = t.by_joint(t.turns * motors[3])
        found = BeyondBound('max_gap', gap) if gap else None
        lost = self._stands or lost
        found = BeyondBound('measurements', lost) if lost else found
        beyond = bounds.violation(values)
        self._beyond = self._beyond + 1 if beyond else 0
        if self._limited_for > guards.saturation_time:
            limited = f'{self._limited_for:.3f} s (saturation_time)'
            text = f'A motor was at its torque limit for {limited}.'
            found = found or BeyondBound('saturation_time', text)
        if self._beyond >= guards.violation_samples:
            found = found or beyond
        if found:
            floats, touches = guards.floats(found.bound), found.bound == CONTACT
            text = f'{found.text} The robot gives way.' if floats else found.text
            self.stop(text, floats, touches)

    def _lost(self, q: ArrayLike, theta: ArrayLike) -> str:
        """Which position has not been possible for some samples, in words; empty if none.

        Positions that were measured last are then taken for those of a robot at rest, if they may
        be.
        """
        gated = self.observer.gated_since >= MOST_GATED
        if not gated.any():
            return ''
        found = np.asarray(q, dtype=np.float64), np.asarray(theta, dtype=np.float64)
        if np.isfinite(np.append(*found)).all() and not self._implausible(*found):
            self.observer.forget()
            self.observer.update(q, None, theta, None)
            self.begin()
        return (
            f'{MOST_GATED} positions of {self._measured_names[int(gated.argmax())]} one after the '
            'other cannot be true.'
        )

    @property
    def _stands(self) -> str:
        """Which motor's measured position stands still while it turns, in words; empty if none."""
        if not self.observer.doubted.any():
            return ''
        motor = self.actuators.motor_names[int(self.observer.doubted.argmax())]
        return (
            f'The encoder of motor {motor!r} stands still while its joint moves: the motor '
            'carries the weight alone, and brakes must close.'
        )

    @property
    def _remaining(self) -> Array | None:
        """Distance from what is wanted that is still gone, shape (5, n); None: it is not known."""
        return None

    def stop(self, reason: str, floats: bool = False, touches: bool = False) -> None:
        """Bring the motors to rest from now on, whatever is wanted.

        Without a measurement, and again behind a gap, the next one is where they come to rest.

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
        self.state, self.reason, self._floats = STOPPED, reason, floats
        if not self.observer.is_new:
            acting = self.observer.acting if self._last is None else self._last.torque
            self._hold_here(acting, touches)

    def _hold_here(self, before: Array, touches: bool = False) -> None:
        """Bring the motors to rest from where they are measured.

        Parameters
        ----------
        before : ndarray, shape (m,)
            Torque from which that of holding goes on [N m] or [N].
        touches : bool
            As of `stop`.
        """
        observer, t = self.observer, self.observer.transmission
        links, motors = observer.present
        fastest = self.fastest[t.joint]
        observer.is_wary = True
        self._beyond, self._limited_for, self._stopped_for = 0, 0.0, 0.0
        stiffness = observer.springs.stiffness
        self.holding = holding(t, observer.mass, stiffness, self.sample_period)
        if self._floats:
            self.holding = self.holding._replace(stiffness=0.0 * self.holding.stiffness)
        theta, rest = self._motor_positions(), self._stopping
        speed = np.where(self._on_links, links[1, t.joint], motors[1])
        turning = speed - links[1, t.joint]
        # The low passes begin with what is known, a sample before.
        T, deflection = self.sample_period, theta - observer.measured[0][t.joint]
        rest[0], rest[1] = theta, 0.0 if touches else np.clip(speed, -fastest, fastest)
        rest[2:4] = theta - T * speed, speed
        rest[4:] = deflection - T * turning, turning, 0.0 * theta
        rest[6] = before - self._holding_torque(0.0)
        self._driven = self._owed()

    def _held(self) -> Command:
        """Torques of motors that come to rest, or are held there.

        Links that get faster than they may by what holds them are left to brakes, for good.
        """
        self._stopped_for += self.sample_period
        torque = self._holding_torque(self._stopped_for)
        self._stopping[6] *= self.holding.fading
        if self._run_away():
            self.reason = self._stands or RUNAWAY
            torque = self._holding_torque(self._stopped_for)
        self.observer.apply(torque, 0.0)
        return Command(torque, torque.copy(), self.reason)

    def _owed(self) -> float:
        """Work that what holds the robot does before links are said to run away, negative [J]."""
        speed = self.observer.present[0][1]
        return -RUN_UP * float(speed @ self.observer.mass @ speed)

    def _run_away(self) -> bool:
        """Whether links are too fast by what holds them, when they should have come to rest."""
        guards = self.guards or GUARDS
        is_fast = (np.abs(self.observer.present[0][1]) > self.too_fast).any()
        is_over = self._stopped_for > guards.stop_duration
        self._beyond = self._beyond + 1 if is_fast and is_over else 0
        if (
            self._runaway
            or self._beyond < guards.violation_samples
            or not self._driven > 0.0
        ):
            return False
        self._runaway = RUNAWAY
        return True

    def _weight(self) -> Array:
        """Torques of the motors (m,) that carry the weight where the links are measured."""
        t, q = self.observer.transmission, self.observer.measured[0]
        weight: Array = t.share * gravity_effort(self.model, q[None])[0][t.joint]
        return weight

    def _holding_torque(self, time: float) -> Array:
        """Torques of the law that holds.

        Parameters
        ----------
        time : float
            Since the stop began [s].

        Returns
        -------
        ndarray, shape (m,)
            [N m] or [N]
        """
        observer, gains = self.observer, self.holding
        t, q = observer.transmission, observer.measured[0]
        weight = self._weight()
        if t.is_variable:  # and what the springs pull against each other with
            load = np.where(observer.doubted, observer.stood[1], observer.springs.load)
            weight += np.where(
                t.turns > 0.0, load - t.share * t.by_joint(load)[t.joint], load
            )
        duration, torque = (self.guards or GUARDS).stop_duration, np.empty(len(weight))
        doubted = observer.doubted + (observer.gated_since[len(q) :] >= MOST_GATED)
        if self._runaway:
            doubted[:] = 1.0
        self._driven += hold(
            len(torque),
            self.sample_period,
            gains.speed_share,
            gains.spring_share,
            time,
            duration,
            t.joint,
            gains.stiffness,
            gains.damping,
            gains.spring_damping,
            self.torque_limits,
            weight,
            q,
            self._motor_positions(),
            observer.present[0][1],
            doubted,
            self._stopping,
            torque,
        )
        return torque

    def _motor_positions(self) -> Array:
        """Measured positions of the motors (m,), of rigid joints those of the links."""
        (q, theta), joint = self.observer.measured, self.observer.transmission.joint
        positions: Array = np.where(self._on_links, q[joint], theta)
        return positions

    def unrest(self) -> str:
        """Why the robot must not move on yet if it has been stopped; see `Law.unrest`."""
        observer, t = self.observer, self.observer.transmission
        if self._runaway:
            return 'the motors could not bring it to rest.'
        if observer.is_new:
            return 'it has not been measured since.'
        if (observer.gated_since >= MOST_GATED).any():
            return 'its measured positions cannot be true.'
        links, motors = observer.present
        # Links may still ring on their springs: a law that follows damps that.
        speed = np.where(self._on_links, links[1, t.joint], motors[1])
        i = int(np.abs(speed).argmax())
        if not abs(speed[i]) <= AT_REST:
            return f'motor {self.actuators.motor_names[i]} still moves at {speed[i]:.3g}.'
        values = np.zeros((len(QUANTITIES), self.model.n_joints))
        values[0] = links[0]
        beyond = self.bounds and self.bounds.violation(values)
        return beyond.text if beyond else ''

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
        self.state, self.reason = FOLLOWING, ''
        self._doubt = ''
        self.observer.is_wary = False
        self.observer.doubted[:], self._beyond = 0.0, 0
        self.observer.watch.forget()
        self.begin()

    def _implausible(self, q: Array, theta: Array) -> str:
        """Say what cannot be true in first positions (n,) and (m,); empty if all of it can."""
        observer, limits, names = self.observer, self.model.limits, self.model.joint_names
        outside = np.maximum(limits.lower - q, q - limits.upper)
        j = int(outside.argmax())
        if outside[j] > OUTSIDE:
            return (
                f'The position of joint {names[j]!r} is {q[j]:.6g}, far from its limits '
                f'{limits.lower[j]:.6g} to {limits.upper[j]:.6g}: is it in degrees?'
            )
        springs = observer.transmission.at(q, theta).torque
        j = int((np.abs(springs) / self._limit).argmax())
        if abs(springs[j]) > OVERLOAD * self._limit[j]:
            return (
                f'The spring of joint {names[j]!r} would carry {springs[j]:.4g}, more than '
                f'{OVERLOAD:g} times the torque of its motors ({self._limit[j]:.4g}): positions '
                'of joint and motor contradict each other. Motor positions are those behind the '
                'gear, in rad or m, and zero where the joint is zero and its spring relaxed.'
            )
        return ''

    def _contradicted(self, spring_torque: ArrayLike | None) -> str:
        """Say which sensor contradicts its spring in the first measurement; empty if none does."""
        observer = self.observer
        springs, sensed = (
            observer.transmission.at(*observer.measured).torque,
            observer.springs,
        )
        differs = np.abs(springs - sensed.torque) / self._limit
        j = int(differs.argmax())
        if spring_torque is None or differs[j] <= CONTRADICTION:
            return ''
        return (
            f'The torque sensor of joint {self.model.joint_names[j]!r} says '
            f'{sensed.torque[j]:.4g}, the deflection of its spring {springs[j]:.4g}: look at '
            'sign, unit and offset of the sensor, and at the stiffness.'
        )

    def answer(
        self, desired: Array, stiffness: Mapping[str, ArrayLike] | None = None
    ) -> Command:
        """Answer to what the observer has taken: `evaluate` without a measurement of its own.

        Parameters
        ----------
        desired : ndarray, shape (orders, n)
            As for `evaluate`.
        stiffness : mapping of joint name to array-like, shape (3,), optional
            As for `evaluate`.

        Returns
        -------
        Command

        Raises
        ------
        MotionError
            If a torque is not finite.
        DeflectionError
            If a spring would have to be outside of its range.
        """
        demand, friction = self._demand(desired, stiffness)
        if self._begins:
            self._begins = False
            self._left = self.observer.acting - demand
        demand += self._left
        self._left *= self.fading
        torque, is_limited = self._limited(demand)
        self.observer.apply(torque, friction)
        # What is limited again and again is limited for long, too.
        passed = self.sample_period if is_limited else -0.5 * self.sample_period
        self._limited_for = max(0.0, self._limited_for + passed)
        return Command(torque, demand, remark=self._remark)

    def reset(self) -> None:
        """Forget everything, also why the robot was stopped; the next measurement begins anew."""
        self.observer.reset()
        self.state, self.reason, self._last, self._runaway = FOLLOWING, '', None, ''
        self.observer.is_wary, self._moves = False, False
        self.observer.doubted[:] = 0.0
        self._beyond, self._limited_for = 0, 0.0
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
        self._begins = True

    def at_rest(self, position: Array) -> Array:
        """What is wanted of a robot that rests; see `evaluate`.

        Parameters
        ----------
        position : ndarray, shape (n,)
            Of the links [rad] or [m].

        Returns
        -------
        ndarray, shape (orders, n)
        """
        desired = np.zeros_like(self._desired)
        desired[0] = position
        return desired

    @property
    def delay_seen(self) -> DelaySeen:
        """Delay of the loop as it was seen in about the last 5 s of motion.

        `probing_motion` is a motion that shows it. Joints without springs show nothing.
        """
        return self.observer.watch.delay(self.observer.delay_samples)

    @property
    def noise_seen(self) -> Array:
        """Standard deviations of the positions of links and motors (n + m,) [rad] or [m].

        NaN where nothing was seen, or no `resolution` given.
        """
        return self.observer.watch.noise()

    @property
    def memory(self) -> Array:
        """Copy of what the next answer depends on, besides the next measurement, shape (N,).

        Without what fades out after a begin.
        """
        return self.observer.memory

    @memory.setter
    def memory(self, values: Array) -> None:
        self.observer.memory = values

    def observed(self) -> ObservedState | None:
        """State at the latest measurement; None before the first one."""
        return None if self.observer.is_new else self.observer.state()

    @property
    def gated(self) -> int:
        """Measured positions so far that could not be true."""
        return self.observer.gated

    @abstractmethod
    def _demand(
        self, desired: Array, stiffness: Mapping[str, ArrayLike] | None
    ) -> tuple[Array, Array | float]:
        """Motor torques without limits.

        Parameters
        ----------
        desired : ndarray, shape (orders, n)
        stiffness : mapping, optional
            As for `evaluate`.

        Returns
        -------
        demand : ndarray, shape (m,)
            [N m] or [N]
        friction : ndarray, shape (m,), or float
            Of the motors, as far as it is known in the demand.
        """


def _missed(observer: StateObserver) -> str:
    """What is said of samples that have passed though nobody told."""
    T, passed = observer.sample_period, observer.passed
    return (
        f'All that moves has gone on as in {passed * T:.3g} s since the measurement before, not '
        f'in {T:.3g} s: give elapsed where samples are missing.'
    )


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


def _efforts(actuators: Actuators) -> Array:
    """Largest torques of the motors (m,), from the description of the robot."""
    model = actuators.model
    joint = np.asarray(actuators.joint_of_motor)
    effort: Array = model.limits.effort[joint]
    known = (effort > 0.0) & np.isfinite(effort)
    single = np.bincount(joint, minlength=model.n_joints)[joint] == 1
    if not (known & single).all():
        i = int(np.argmin(known & single))
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
