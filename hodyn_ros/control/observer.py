"""Observer of a robot with elastic joints: velocities, and torques that the model does not know.

It needs positions alone, those of the links and those of the motors, and the motor torques that
were commanded. Each joint has two observers, of its link and of its motor, with three equal poles
at -w_o: with T the sample time, z = exp(-w_o T), L1 = 1 - z^3, L2 = 1.5 (1 - z)^2 (1 + z) / T and
L3 = (1 - z)^3 / T^2, positions, velocities and missing accelerations are corrected by the
difference of measured and predicted positions. The links move by M q'' = Q + r - h(q, q'), the
motors by B theta'' = tau - Q + r_m. What is missing, r on the links (a payload, a push, an error
of the stiffness) and r_m on the motors (minus their friction), is constant but for corrections.

Sources: Luenberger 1971, "An introduction to observers"; De Luca et al. 2006, "Collision detection
and safe reaction", whose residual r is, behind its low pass; the spring torque between links and
motors is that of Spong 1987.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.checks import checked_number
from hodyn_ros.control.kernels import (
    carry_forward,
    doubt,
    factorise,
    gate,
    observe,
    passed,
)
from hodyn_ros.control.transmission import Springs, Transmission
from hodyn_ros.control.values import fill, middle_of_range
from hodyn_ros.control.watching import LoopWatch
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.errors import ControlError, MotionError
from hodyn_ros.typing import Array

# Steps in a sample in which the state is carried forward over a known delay.
SUBSTEPS = 4
_MOST_DELAYED = 100  # samples
_SHORT_GAP = 5  # samples, from which on a gap is not looked at for a delay
# Share of the torque of a motor by which the load of its spring has to change, while its measured
# position stands still, to be doubted: more than the friction of a motor that is pushed at rest;
# less where the robot has been stopped anyway.
CALM, WARY = 0.2, 0.1
MOST_FOUND = 10  # samples that have not come, as the motion tells, and are bridged
MOST_BRIDGED = 100  # samples; after a longer gap everything begins anew
# Fastest and slowest poles of the observers, by the sample time and the bandwidth, and how much
# faster than the resonance of a joint they are.
_FASTEST, _SLOWEST, _OVER_RESONANCE = 0.4, 3.5, 1.5
# How far a measured position may be from what is expected: by the largest speed, and at least,
# for what encoders resolve [rad, m].
_MOST_SPEED, _MOST_MOTOR_SPEED, _LEAST_REACH = 1.5, 4.0, 3e-3


class ObservedState(NamedTuple):
    """State of a robot as it is estimated from positions; n joints, m motors.

    Attributes
    ----------
    position : ndarray, shape (n,)
        Of the links [rad] or [m].
    velocity : ndarray, shape (n,)
    acceleration : ndarray, shape (n,)
    jerk : ndarray, shape (n,)
    motor_position : ndarray, shape (m,)
        In joint coordinates.
    motor_velocity : ndarray, shape (m,)
    spring_torque : ndarray, shape (n,)
        On the links, with dampers [N m] or [N]; of rigid joints the motor torque.
    spring_torque_rate : ndarray, shape (n,)
        Of the springs alone; zero for rigid joints.
    external_torque : ndarray, shape (n,)
        On the links, which the model does not know.
    external_torque_rate : ndarray, shape (n,)
    motor_friction : ndarray, shape (m,)
        Torque that the motors lose, beyond the friction that the model knows.
    """

    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    motor_position: Array
    motor_velocity: Array
    spring_torque: Array
    spring_torque_rate: Array
    external_torque: Array
    external_torque_rate: Array
    motor_friction: Array


class StateObserver:
    """Observer of links and motors, sample by sample.

    Call `update` with every measurement, and `apply` with the torque that answers it.

    Parameters
    ----------
    actuators : Actuators
        With the model of the robot; see `Transmission`.
    sample_period : float
        T [s]
    bandwidth : float
        w [rad/s]: the observers have poles at 1.5 sqrt(K (1/M_jj + 1/B)) of each joint, between
        3.5 w and 0.4 / T; torques that the model lacks are given behind a low pass of w.
    delay : float
        From a measurement until the torque that answers it acts, without half a sample for which
        it is held [s]; in whole samples. The state is carried forward over it.

    Attributes
    ----------
    model : RobotModel
    transmission : Transmission
    delay_samples : int
    share : float
        Of a difference that a low pass of w takes in a sample.
    link_gains : ndarray, shape (3, n)
        Of positions, velocities and accelerations; known when poles have been placed.
    present, ahead : tuple of two ndarrays
        Links (5, n) and motors (4, m) at the latest measurement, and a delay later: position,
        velocity, torque that the model lacks, the same behind the low pass.
    measured : tuple of two ndarrays
        Latest positions of links (n,) and motors (m,).
    springs : Springs
        At the latest measurement, with dampers; by the torque sensors where there are any.
    is_new : bool
        Whether there has been no measurement yet.
    reach : ndarray, shape (n + m,)
        How fast positions of links and motors may leave where they are expected [rad/s, m/s].
    gated : int
        Measured positions so far that could not be true.
    is_gating : bool
        Whether the latest measurement had such positions.
    stood : ndarray, shape (6, m)
        Since when motors stand, see `kernels.doubt`; position and load of the springs first.
    most_torque : ndarray, shape (m,)
        Of the motors [N m] or [N].
    passed : int
        Samples from the measurement before to the latest one as the motion tells, 0 if it is the
        same once more while the robot moves; 1 if the motion does not tell, or `elapsed` does.
    counts : ndarray, shape (n + m,)
        1 for positions that are measured, 0 for motors of rigid joints.
    gated_since : ndarray, shape (n + m,)
        How many of each link and motor one after the other until now.
    doubted : ndarray, shape (m,)
        1 for each motor whose position stands still while its spring turns, until it is set to 0.
    is_wary : bool
        Whether motors are doubted sooner, as when the robot has been stopped; set by its law.
    watch : LoopWatch
        What is seen of the delay of the loop and the noise of the positions.
    acting : ndarray, shape (m,)
        Motor torque that was commanded last, at first that of rest; empty before a measurement.
    mass : ndarray, shape (n, n)
        Mass matrix where the robot is a delay later, motors of rigid joints included.

    Raises
    ------
    ControlError
        If an argument cannot be used.
    """

    def __init__(
        self,
        actuators: Actuators,
        sample_period: float,
        bandwidth: float,
        delay: float = 0.0,
    ) -> None:
        self.actuators, self.model = actuators, actuators.model
        self.transmission = transmission = Transmission(actuators)
        T = checked_number(
            'sample_period', sample_period, ControlError, above=0.0, unit='s'
        )
        w = checked_number('bandwidth', bandwidth, ControlError, above=0.0, unit='rad/s')
        most = _MOST_DELAYED * T
        delay = checked_number(
            'The delay', delay, ControlError, least=0.0, most=most, unit='s'
        )
        self.sample_period, self.bandwidth, self.delay_samples = T, w, round(delay / T)
        n, m = self.model.n_joints, len(transmission.joint)
        self.share = -np.expm1(-w * T)
        self._rigid_inertia = np.diag(
            np.where(transmission.is_elastic, 0.0, transmission.joint_inertia)
        )
        self.links, self.motors = np.zeros((5, n)), np.zeros((4, m))
        self._factor = np.zeros((n, n))
        self.mass, self.measured = np.empty((n, n)), (np.empty(n), np.empty(m))
        # Of the springs and of the links, at a sample and the one before.
        self._torque, self._load, self._bias = (np.empty((2, count)) for count in (n, m, n))
        self._motion = np.zeros((3, n))
        self.gated, self.gated_since, self.is_gating = 0, np.zeros(n + m), False
        # Where motors stand, with the load of their springs and what the links feel of it.
        self.is_wary = False
        self.doubted, self.stood = np.zeros(m), np.zeros((6, m))
        self._least_change = np.full(n + m, np.inf)
        on_springs = transmission.is_elastic[transmission.joint]
        self.counts = np.concatenate([np.ones(n), on_springs])
        self.most_torque, self.passed = np.full(m, np.inf), 1
        has_spring = transmission.is_single[transmission.joint]
        self.watch = LoopWatch(np.flatnonzero(has_spring), transmission.inertia, n + m, T)
        self.reach = np.full(n + m, np.inf)
        limits = self.model.limits.velocity
        self.expect(np.where(limits > 0.0, limits, np.inf), np.full(m, np.inf))
        self.reset()

    def poles(self, resonance: Array) -> Array:
        """Poles of observers of joints, between the slowest and the fastest that are useful.

        Parameters
        ----------
        resonance : ndarray, shape (n,)
            Free resonance of each joint [rad/s].

        Returns
        -------
        ndarray, shape (n,)
            [rad/s]
        """
        w, fastest = self.bandwidth, _FASTEST / self.sample_period
        chosen: Array = np.minimum(
            np.maximum(_OVER_RESONANCE * resonance, _SLOWEST * w), fastest
        )
        return chosen

    def tune(self, stiffness: Array) -> None:
        """Place the poles for springs, in the middle of the joints' ranges; see `poles`.

        Parameters
        ----------
        stiffness : ndarray, shape (n,)
            [N m/rad] or [N/m]; zero for rigid joints.
        """
        middle = mass_matrix(self.model, middle_of_range(self.model)[None])[0]
        self.place(self.poles(self.transmission.resonances(middle, stiffness)))

    def place(self, poles: Array) -> None:
        """Give the observers of all joints three equal poles.

        Parameters
        ----------
        poles : ndarray, shape (n,)
            At -poles [rad/s].
        """
        T = self.sample_period
        z = np.exp(-poles * T)
        gains = (1.0 - z**3, 1.5 * (1.0 - z) ** 2 * (1.0 + z) / T, (1.0 - z) ** 3 / T**2)
        self.link_gains = np.array(gains)
        self._motor_gains = np.ascontiguousarray(
            self.link_gains[:, self.transmission.joint]
        )

    def expect(self, speed: Array, torque: Array) -> None:
        """Say what the joints can do.

        A measured position farther from what is expected than some of it is gated: 1.5 times the
        way at the largest speed, of motors 4 times, on springs also twice that under the largest
        torque. Motors that choose the stiffness of a joint are not gated.

        Parameters
        ----------
        speed : ndarray, shape (n,)
            Largest speeds of the links [rad/s] or [m/s]; infinite ones gate nothing.
        torque : ndarray, shape (m,)
            Largest torques of the motors [N m] or [N].
        """
        t, T, self.most_torque = self.transmission, self.sample_period, np.array(torque)
        links, wider = (
            np.maximum(most * speed, _LEAST_REACH / T)
            for most in (_MOST_SPEED, _MOST_MOTOR_SPEED)
        )
        elastic = np.where(t.inertia > 0.0, t.inertia, np.inf)
        with np.errstate(invalid='ignore'):
            springs = np.nan_to_num(2.0 * T * torque / elastic, nan=0.0, posinf=np.inf)
        # Motors that choose a stiffness are not as slow as their joint.
        follows = t.is_single[t.joint] | (t.is_elastic[t.joint] == 0.0)
        motors = np.where(follows, wider[t.joint] + springs, np.inf)
        self.reach = np.concatenate([links, motors])

    def reset(self) -> None:
        """Forget everything, the resolution of the encoders, too; the next measurement is new."""
        self.forget()
        self._least_change[:] = np.inf

    def forget(self) -> None:
        """Begin anew with the next measurement of the same encoders, as behind a gap."""
        self.is_new, self.acting = True, np.empty(0)
        self.watch.begin()
        self.gated_since[:] = 0.0
        self.links[:], self.motors[:] = 0.0, 0.0
        # Of the sample that ends at the next measurement, and those under way.
        self._applied: deque[Array] = deque(maxlen=self.delay_samples + 1)

    def update(
        self,
        q: ArrayLike,
        qd: ArrayLike | None,
        theta: ArrayLike,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None = None,
        acceleration: Array | None = None,
        elapsed: float | None = None,
    ) -> None:
        """Take a measurement.

        A position that cannot be reached from where it is expected, or is NaN, is taken for what
        is expected, and counted in `gated`.

        Parameters
        ----------
        q, qd : array-like, shape (n,)
            Position and velocity of the links; the velocity, which may be None, is looked at in
            the first sample only.
        theta, thetad : array-like, shape (m,)
            The same of the motors, in joint coordinates; what is given of rigid joints is not
            looked at.
        spring_torque : array-like, shape (n,), optional
            Of sensors in the joints [N m] or [N], in place of what the deflections tell; those of
            rigid joints and of joints of variable stiffness are not looked at.
        acceleration : ndarray, shape (n,), optional
            Of the links in the first sample, zero by default. What the model then lacks is taken
            for an external torque, so that nothing jumps afterwards.
        elapsed : float, optional
            Time since the measurement before [s]. By default a sample period, unless the motion
            tells of up to 10 that have passed, or none; see `passed`. Measurements that
            have not come meanwhile lie on a line to this one; the torque has been held. After more
            than 100 of them this measurement is the first one.

        Raises
        ------
        MotionError
            If a shape is wrong, a first value is not finite, or no time has elapsed.
        DeflectionError
            If a spring is measured outside of its range.
        """
        T = self.sample_period
        if elapsed is not None:
            T = checked_number('elapsed', elapsed, MotionError, above=0.0, unit='s')
        samples = max(1, round(T / self.sample_period))
        if samples > MOST_BRIDGED:
            self.forget()
        last_q, last_theta = (values.copy() for values in self.measured)
        position, motor_position = self.measured
        fill(position, 'q', q, may_miss=not self.is_new)
        fill(motor_position, 'theta', theta, may_miss=not self.is_new)
        self.passed = 1
        if T == self.sample_period and not self.is_new:
            self.passed = self._passed(last_q, last_theta)
            if not self.passed:
                return
            if self.passed > MOST_FOUND:
                self.forget()
            else:
                samples, T = self.passed, self.passed * T
        self.is_gating = not self.is_new and self._gate(T)
        if self.watch.told is not None and not self.is_new:
            speed = np.concatenate([self.links[1], self.motors[1]])
            late, values = T - self.sample_period, np.concatenate(self.measured)
            self.watch.positions(values, late, speed, self.gated_since)
        is_gap = samples > _SHORT_GAP
        if is_gap:
            self.watch.begin()
        for k in range(1, samples if not self.is_new else 1):
            whole = position.copy(), motor_position.copy()
            share = k / samples
            position[:] = last_q + share * (whole[0] - last_q)
            motor_position[:] = last_theta + share * (whole[1] - last_theta)
            self._take(None, None, None, None, T / samples)
            self.apply(self._applied[-1], 0.0)
            position[:], motor_position[:] = whole
        self._take(qd, thetad, spring_torque, acceleration, T / samples)
        if is_gap:  # what lies on a line tells nothing of the loop
            self.watch.begin()

    def _passed(self, *last: Array) -> int:
        """Samples since the last positions of links and motors, as the motion tells.

        Encoders that are not believed tell nothing.
        """
        if self.gated_since.any() or self.doubted.any():
            return 1
        values, before = np.concatenate(self.measured), np.concatenate(last)
        speed = np.concatenate([self.links[1], self.motors[1]])
        T, counts, least = self.sample_period, self.counts, self._least_change
        return int(passed(len(values), T, counts, values, before, speed, least))

    def _gate(self, elapsed: float) -> bool:
        """Take measured positions that cannot be true for what is expected; whether there are.

        Parameters
        ----------
        elapsed : float
            Time since the measurement before [s].
        """
        t, (position, motor_position) = self.transmission, self.measured
        n, m = len(t.is_elastic), len(t.joint)
        since_links, since_motors = self.gated_since[:n], self.gated_since[n:]
        found = gate(n, elapsed, self.reach[:n], self.links, since_links, position)
        # Those of rigid joints are not looked at.
        rigid = t.rigid_motors
        if len(rigid):
            motor_position[rigid] = self.motors[0, rigid] + elapsed * self.motors[1, rigid]
        found += gate(m, elapsed, self.reach[n:], self.motors, since_motors, motor_position)
        self.gated += found
        return bool(found)

    def _take(
        self,
        qd: ArrayLike | None,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None,
        acceleration: Array | None,
        T: float,
    ) -> None:
        """Take the positions in `measured`.

        Parameters
        ----------
        qd, thetad, spring_torque, acceleration
            See `update`.
        T : float
            Time since the positions before [s].
        """
        if self.is_new:
            self._begin(qd, thetad)
        deflected = self.transmission.at(*self.measured)
        springs = self._springs(deflected, spring_torque)
        torque, load = springs.torque, springs.load
        is_new = self.is_new
        if is_new:
            self.is_new = False
            self._torque[:], self._load[:] = torque, load
            t, missing = self.transmission, self._bias[0] - torque
            if acceleration is not None:
                missing += self.mass @ acceleration
            self.links[2:4] = t.is_elastic * missing
            acts = load + t.share * ((1.0 - t.is_elastic) * missing)[t.joint]
            self._applied.extend([acts] * (self.delay_samples + 1))
            self.acting = acts
        else:
            self._torque[0], self._load[0] = torque, load
            self._advance(T)
            self.watch.torques(T, self._motor_gains, self._applied[0], load, self.motors)
            self._torque[1], self._load[1] = torque, load
            self._bias[1] = self._bias[0]
            self._mass, self._bias[0] = self._dynamics(self.links, self._factor)
        self._doubt(T, deflected, load if spring_torque is not None else None, is_new)
        self.springs, self.mass = springs, self._mass
        self.present = self.ahead = self.links.copy(), self.motors.copy()
        if self.delay_samples:
            self.ahead = self._carried_forward()

    def _begin(self, qd: ArrayLike | None, thetad: ArrayLike | None) -> None:
        """Begin at a measurement: at rest where no velocities are known."""
        self.links[0], self.motors[0] = self.measured
        for rows, name, velocity in (
            (self.links, 'qd', qd),
            (self.motors, 'thetad', thetad),
        ):
            if velocity is not None:
                fill(rows[1], name, velocity)
        stiffness = self.transmission.at(*self.measured).stiffness
        self.tune(stiffness)
        self._mass, self._bias[:] = self._dynamics(self.links, self._factor)
        self.mass = self._mass

    def _doubt(
        self, T: float, deflected: Springs, sensed: Array | None, is_new: bool
    ) -> None:
        """Look for motors whose measured position stands still while they turn.

        Parameters
        ----------
        T : float
            Time since the positions before [s].
        deflected : Springs
            By their deflections.
        sensed : ndarray, shape (m,), optional
            Load by torque sensors.
        is_new : bool
            Whether this measurement is the first one.
        """
        t, theta, load = self.transmission, self.measured[1], deflected.load
        missing = t.turns * self.links[2, t.joint] if sensed is None else sensed - load
        if is_new:
            self.stood[:3], self.stood[3:] = (theta, load, missing), 0.0
        doubt(
            len(t.joint),
            T,
            WARY if self.is_wary or self.doubted.any() else CALM,
            t.joint,
            t.is_elastic,
            self._motor_gains,
            self.most_torque,
            deflected.rate,
            theta,
            load,
            missing,
            self.stood,
            self.doubted,
        )

    def _springs(self, springs: Springs, spring_torque: ArrayLike | None) -> Springs:
        """Springs where they are measured with dampers, by the torque sensors if there are any."""
        t = self.transmission
        torque, load = springs.torque, springs.load
        if t.is_damped:
            speed = t.turns * (self.motors[1] - self.links[1, t.joint])
            damper = t.damping[t.joint] * speed
            torque, load = torque + t.by_joint(damper), load + damper
        if spring_torque is not None:
            sensed = np.empty(len(torque))
            fill(sensed, 'spring_torque', spring_torque)
            torque = np.where(t.is_single, sensed, torque)
            load = np.where(t.is_single[t.joint], sensed[t.joint], load)
        return springs._replace(torque=torque, load=load)

    def _advance(self, T: float) -> None:
        """Let a time T [s] pass from the estimate before, and correct it by the measurement."""
        t = self.transmission
        observe(
            len(t.is_elastic),
            len(t.joint),
            T,
            self.share,
            t.joint,
            t.is_elastic,
            t.inertia,
            self.link_gains,
            self._motor_gains,
            self._mass,
            self._factor,
            self._bias,
            self._torque,
            self._load,
            self._applied[0],
            *self.measured,
            self.links,
            self.motors,
        )

    def _carried_forward(self) -> tuple[Array, Array]:
        """State after the delay, under the torques that are under way.

        Returns
        -------
        links : ndarray, shape (5, n)
        motors : ndarray, shape (4, m)
        """
        t, (links, motors), springs = self.transmission, self.present, self.springs
        links, motors, d, T = (
            links.copy(),
            motors.copy(),
            self.delay_samples,
            self.sample_period,
        )
        factor, middle = np.zeros_like(self._factor), links.copy()
        middle[0] += 0.5 * d * T * links[1]
        _, bias = self._dynamics(middle, factor)
        carry_forward(
            len(t.is_elastic),
            len(t.joint),
            d,
            SUBSTEPS,
            T,
            t.joint,
            t.is_elastic,
            t.turns,
            t.inertia,
            factor,
            bias,
            springs.torque,
            springs.rate,
            springs.load,
            *self.measured,
            np.array(list(self._applied)[1:]),
            links,
            motors,
        )
        self.mass, _ = self._dynamics(links, factor)
        return links, motors

    def _dynamics(self, links: Array, factor: Array) -> tuple[Array, Array]:
        """Mass matrix and efforts without accelerations.

        Parameters
        ----------
        links : ndarray, shape (K, n), K >= 2
            Positions and velocities in the first rows.
        factor : ndarray, shape (n, n)
            Is written: the Cholesky factor of the mass matrix.

        Returns
        -------
        mass : ndarray, shape (n, n)
            With the motors of rigid joints.
        bias : ndarray, shape (n,)
            [N m] or [N]

        Raises
        ------
        ControlError
            If a joint moves no inertia.
        """
        self._motion[:2] = links[:2]
        mass: Array = mass_matrix(self.model, self._motion[:1])[0]
        bias: Array = inverse_dynamics(self.model, self._motion)[0]
        if len(self.transmission.rigid):
            mass += self._rigid_inertia
        failed = factorise(len(mass), mass, factor)
        if failed:
            raise ControlError(
                f'The mass matrix is singular: joint {self.model.joint_names[failed - 1]!r} moves '
                'no inertia.'
            )
        return mass, bias

    @property
    def memory(self) -> Array:
        """Copy of all that the next estimate depends on, besides the next measurement, (N,)."""
        rows = self._torque[1], self._load[1], self._bias[1], *self._applied
        return np.concatenate([self.links[:4].ravel(), self.motors.ravel(), *rows])

    @memory.setter
    def memory(self, values: Array) -> None:
        n, m = self.links.shape[1], self.motors.shape[1]
        ends = np.cumsum([4 * n, 4 * m, n, m, n] + [m] * self.delay_samples)
        links, motors, self._torque[1], self._load[1], self._bias[1], *applied = np.split(
            values, ends
        )
        self.links[:4], self.motors[:] = links.reshape(4, n), motors.reshape(4, m)
        self._applied.extend(applied)
        self._mass, self._bias[0] = self._dynamics(self.links, self._factor)

    def apply(self, torque: Array, friction: Array | float) -> None:
        """Note the answer to the latest measurement.

        Parameters
        ----------
        torque : ndarray, shape (m,)
            Of the motors [N m] or [N].
        friction : ndarray, shape (m,), or float
            That is known in it, and moves nothing.
        """
        self.acting = torque
        self._applied.append(torque - friction)

    def state(self) -> ObservedState:
        """Estimate of the state at the latest measurement."""
        t, (links, motors), w = self.transmission, self.present, self.bandwidth
        springs, n = self.springs, links.shape[1]
        turning = springs.rate * (motors[1] - t.turns * links[1, t.joint])
        rate = t.by_joint(turning)
        torque = springs.torque.copy()
        torque[t.rigid] = self._applied[0][t.rigid_motors]
        external, external_rate = links[3], w * (links[2] - links[3])
        motion = np.zeros((4, n))
        motion[:2] = links[:2]
        mass = mass_matrix(self.model, motion[:1])[0] + self._rigid_inertia
        for k, total in ((2, torque + external), (3, rate + external_rate)):
            motion[k] = np.linalg.solve(
                mass, total - inverse_dynamics(self.model, motion)[k - 2]
            )
        position, velocity, acceleration, jerk = motion
        return ObservedState(
            position,
            velocity,
            acceleration,
            jerk,
            motors[0],
            motors[1],
            torque,
            rate,
            external,
            external_rate,
            -motors[3],
        )
