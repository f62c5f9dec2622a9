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

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.checks import checked_number
from hodyn_ros.control import step
from hodyn_ros.control.controller import friction_of, motor_losses
from hodyn_ros.control.kernels import factorise
from hodyn_ros.control.layouts import (
    BRIDGED,
    HELD,
    MEASURED,
    NOT_FINITE,
    OBSERVER,
    REPEATED,
    SINGULAR,
)
from hodyn_ros.control.records import Record
from hodyn_ros.control.robot_code import (
    EFFORTS,
    EFFORTS_2,
    FRICTION,
    GRAVITY,
    MASS,
    SPRINGS_AT,
    Calls,
)
from hodyn_ros.control.transmission import Transmission
from hodyn_ros.control.values import (
    ObservedState,
    fastest,
    fill,
    middle_of_range,
    per_joint,
)
from hodyn_ros.control.watching import SLOWLY_WATCHED, WATCHED, LoopWatch
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.engine import requests
from hodyn_ros.engine.engine import engine_of
from hodyn_ros.engine.program import MASS_MATRIX, WEIGHT
from hodyn_ros.engine.requests import KernelRequest
from hodyn_ros.errors import ActuatorError, ControlError, ModelError, MotionError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

_MOST_DELAYED = 100  # samples
_ANSWERED = MEASURED, REPEATED, HELD, BRIDGED
# Fastest and slowest poles of the observers, by the sample time and the bandwidth, and how much
# faster than the resonance of a joint they are.
_FASTEST, _SLOWEST, _OVER_RESONANCE = 0.4, 3.5, 1.5
# How far a measured position may be from what is expected: by the largest speed, and at least,
# for what encoders resolve [rad, m].
_MOST_SPEED, _MOST_MOTOR_SPEED, _LEAST_REACH = 1.5, 4.0, 3e-3


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
    record : Record
        Constants of the robot and the observer, what the observer remembers, and arguments and
        results of a sample; see `layouts`.
    delay_samples : int
    watch : LoopWatch
        What is seen of the delay of the loop.

    Raises
    ------
    ControlError
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import StateObserver
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> observer = StateObserver(drives, 0.001, bandwidth=50.0)
    >>> for _ in range(100):
    ...     observer.update([0.3, 0.5], None, [0.3, 0.503415], None)
    ...     observer.apply(np.array([39.64, 6.83]), 0.0)
    >>> observer.state().velocity.round(3) + 0.0, observer.state().spring_torque.round(1)
    (array([0., 0.]), array([39.6,  6.8]))
    """

    def __init__(
        self,
        actuators: Actuators,
        sample_period: float,
        bandwidth: float,
        delay: float = 0.0,
    ) -> None:
        self.actuators: Actuators = actuators
        self.model: RobotModel = actuators.model
        t = Transmission(actuators)
        self.transmission: Transmission = t
        T = checked_number(
            'sample_period', sample_period, ControlError, above=0.0, unit='s'
        )
        w = checked_number('bandwidth', bandwidth, ControlError, above=0.0, unit='rad/s')
        most = _MOST_DELAYED * T
        delay = checked_number(
            'The delay', delay, ControlError, least=0.0, most=most, unit='s'
        )
        self.sample_period: float = T
        self.bandwidth: float = w
        self.delay_samples: int = round(delay / T)
        n, m = self.model.n_joints, len(t.joint)
        on_springs = t.is_elastic[t.joint]
        springs = [getattr(item.actuator, 'spring', None) for item in actuators.driven]
        self.record: Record = Record(OBSERVER, n, m, self.delay_samples)
        self.record.fill(
            {
                **{name: getattr(t, name) for name in _OF_TRANSMISSION},
                'T': T,
                'softness': np.divide(1.0, t.line, np.zeros(n), where=t.line > 0.0),
                'range': [getattr(spring, 'max_deflection', np.inf) for spring in springs],
                'slow': -np.expm1(-w * T),
                'rigid_inertia': np.where(t.is_elastic, 0.0, t.joint_inertia),
                'is_bent': not t.is_linear,
                'remembered': np.exp(-T / WATCHED),
                'slowly': -np.expm1(-T / SLOWLY_WATCHED),
                'has_friction': bool(actuators.arrays.friction),
                'counts': np.concatenate([np.ones(n), on_springs]),
            }
        )
        if t.is_linear:
            self.tune(t.line)
        self.expect(fastest(self.model), np.full(m, np.inf))
        self.watch: LoopWatch = LoopWatch(
            np.flatnonzero(t.is_single[t.joint]), self.record, T
        )
        self.calls: Calls | None = None
        self.reset()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), 'calls': None}  # which are those of this memory

    def connected(self) -> Calls:
        """Calls of the robot's model: of machine code, or Python as long as there is none."""
        if self.calls is not None:
            self.calls.connect()
            return self.calls
        model, n, m = self.model, self.model.n_joints, len(self.transmission.joint)
        self.calls = calls = Calls(self.record.calls)
        # Machine code has the terms of a tree; those of closed loops follow from them.
        engine = engine_of(model) if model.closure is None else None
        for which, what, K, function, result in (
            (MASS, MASS_MATRIX, 1, mass_matrix, (1, n, n)),
            (EFFORTS, requests.EFFORTS, 3, inverse_dynamics, (1, n)),
            (EFFORTS_2, requests.EFFORTS, 5, inverse_dynamics, (3, n)),
            (GRAVITY, WEIGHT, 1, gravity_effort, (1, n)),
        ):
            request, find = KernelRequest(what, K), partial(function, model)
            calls.compute(which, engine, request, find, (K, n), result)
        calls.answer(FRICTION, self._friction, (3, m), (m,))
        if m == n and model.closure is None:
            with suppress(ModelError):  # a law of one's own
                losses = motor_losses(self.actuators)
                request, find = (
                    KernelRequest(requests.EFFORTS, 3),
                    partial(inverse_dynamics, losses),
                )
                calls.compute(FRICTION, engine_of(losses), request, find, (3, n), (1, n))
        if not self.transmission.is_linear:
            calls.answer(SPRINGS_AT, self._springs, (n,), (n,))
        return calls

    def _friction(self, motion: Array, result: Array) -> None:
        result[:] = friction_of(self.actuators.arrays, motion[1])

    def _springs(self, *_: Array) -> None:
        """Springs that are no lines, where links and motors are measured."""
        o = self.record
        torque, stiffness, load, rate = self.transmission.at(o.q, o.theta)
        if o.is_new:
            self.tune(stiffness)
        o.deflected[:], o.stiffness[:] = torque, stiffness
        o.deflected_load[:], o.rate[:] = load, rate

    def run(
        self,
        what: int,
        law: Record | None = None,
        elapsed: float = 0.0,
        floats: float = 0.0,
        touches: float = 0.0,
    ) -> int:
        """Do something of a sample, see `step.do`; 0, or why nothing has changed.

        Parameters
        ----------
        what : int
            A constant of `step`.
        law : Record, optional
            Of a law, if one takes part.
        elapsed, floats, touches : float
            As far as they matter.

        Raises
        ------
        HodynError
            Of what Python computes of the robot.
        """
        calls, own, given = self.connected(), self.record, (what, elapsed, floats, touches)
        kept = [own.kept] if law is None else [own.kept, law.kept]
        before = [values.copy() for values in kept]
        code = step.machine_code()
        if code is None:
            status = step.do(own, law, *given)
        else:
            address = own.address if law is None else law.address
            status = code(own.address, address, *given, own.n, own.m, own.d)
        if (what <= step.RECEIVE and status not in _ANSWERED) or calls.error:
            for values, old in zip(kept, before):
                values[:] = old
        if calls.error is not None:
            error, calls.error = calls.error, None
            raise error
        return int(status)

    def poles(self, resonance: ArrayLike) -> Array:
        """Poles of observers of joints, between the slowest and the fastest that are useful.

        Parameters
        ----------
        resonance : array-like, shape (n,)
            Free resonance of each joint [rad/s]; zero for rigid ones.

        Returns
        -------
        ndarray, shape (n,)
            [rad/s]

        Raises
        ------
        ControlError
            If they are not numbers from zero on, for each joint.
        """
        w, fastest = self.bandwidth, _FASTEST / self.sample_period
        known = per_joint('resonance', resonance, self.model.n_joints, np.inf, zero=True)
        chosen: Array = np.minimum(
            np.maximum(_OVER_RESONANCE * known, _SLOWEST * w), fastest
        )
        return chosen

    def tune(self, stiffness: Array) -> None:
        """Place the poles for springs, in the middle of the joints' ranges; see `poles`.

        Parameters
        ----------
        stiffness : ndarray, shape (n,)
            [N m/rad] or [N/m]; zero for rigid joints.
        """
        T = self.sample_period
        middle = mass_matrix(self.model, middle_of_range(self.model)[None])[0]
        z = np.exp(-self.poles(self.transmission.resonances(middle, stiffness)) * T)
        gains = (1.0 - z**3, 1.5 * (1.0 - z) ** 2 * (1.0 + z) / T, (1.0 - z) ** 3 / T**2)
        self.record.gains[:] = gains
        self.record.motor_gains[:] = self.record.gains[:, self.transmission.joint]

    def expect(self, speed: ArrayLike, torque: ArrayLike) -> None:
        """Say what the joints can do.

        A measured position farther from what is expected than some of it is gated: 1.5 times the
        way at the largest speed, of motors 4 times, on springs also twice that under the largest
        torque. Motors that choose the stiffness of a joint are not gated. What a torque sensor
        differs by from the deflection may change by a tenth of the torque of its motor.

        Parameters
        ----------
        speed : array-like, shape (n,)
            Largest speeds of the links [rad/s] or [m/s]; infinite ones gate nothing.
        torque : array-like, shape (m,)
            Largest torques of the motors [N m] or [N].

        Raises
        ------
        ControlError
            If they are not numbers from zero on, for each joint and motor.
        """
        speed = per_joint('speed', speed, self.model.n_joints, np.inf, zero=True)
        torque = per_joint('torque', torque, self.actuators.n_motors, np.inf, zero=True)
        t, T = self.transmission, self.sample_period
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
        sensors = step.SENSOR_STEP * np.bincount(t.joint, torque, len(t.is_elastic))
        self.record.fill(
            {
                'reach': links,
                'motor_reach': motors,
                'strongest': torque,
                'sensor_reach': sensors,
            }
        )

    def reset(self) -> None:
        """Forget everything, the resolution of the encoders, too; the next measurement is new."""
        self.record.kept[:] = 0.0
        self.record.least[:] = np.inf

    def give(
        self,
        q: ArrayLike,
        qd: ArrayLike | None,
        theta: ArrayLike,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None = None,
    ) -> None:
        """Note what is measured for the next sample; see `update`."""
        own = self.record
        fill(own.new_q, 'q', q, may_miss=True)
        fill(own.new_theta, 'theta', theta, may_miss=True)
        own.has_sensors = spring_torque is not None
        given = {'qd': qd, 'thetad': thetad, 'spring_torque': spring_torque}
        for name, values in given.items():
            target = getattr(own, name)
            target[:] = 0.0
            if values is not None:
                fill(target, name, values, name == 'spring_torque' or bool(own.running))

    def refuse(self, status: int) -> None:
        """Error about what is wrong with a measurement, if something is."""
        w = self.record
        if status == NOT_FINITE:
            fill(w.still[0], 'q', w.new_q)
            fill(w.missing, 'theta', w.new_theta)
            looked_at = np.where(self.transmission.is_single, w.spring_torque, 0.0)
            fill(w.column, 'spring_torque', looked_at)
        if status == SINGULAR:
            masses = mass_matrix(self.model, w.new_q[None])[0]
            masses += np.diag(w.rigid_inertia)
            joint = self.model.joint_names[factorise(len(masses), masses, w.L) - 1]
            raise ControlError(
                f'The mass matrix is singular: joint {joint!r} moves no inertia.'
            )

    def update(
        self,
        q: ArrayLike,
        qd: ArrayLike | None,
        theta: ArrayLike,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None = None,
        elapsed: float | None = None,
    ) -> None:
        """Take a measurement.

        A position that cannot be reached from where it is expected, or is not finite, is taken
        for what is expected, and counted in `gated`.

        Parameters
        ----------
        q, qd : array-like, shape (n,)
            Position and velocity of the links; the velocity, which may be None, is looked at in
            the first sample only; one that is not finite behind a gap is taken for zero.
        theta, thetad : array-like, shape (m,)
            The same of the motors, in joint coordinates; what is given of rigid joints is not
            looked at.
        spring_torque : array-like, shape (n,), optional
            Of sensors in the joints [N m] or [N], in place of what the deflections tell; those of
            rigid joints and of joints of variable stiffness are not looked at.
        elapsed : float, optional
            Time since the measurement before [s]. By default a sample period, unless the motion
            tells of up to 10 that have passed, or none. Measurements that have not come meanwhile
            lie on a line to this one; the torque has been held. After more than 100 of them this
            measurement is the first one.

        Raises
        ------
        MotionError
            If a shape is wrong, a first value is not finite, or no time has elapsed.
        DeflectionError
            If a spring is measured outside of its range.
        """
        T = self.sample_period if elapsed is None else elapsed
        T = checked_number('elapsed', T, MotionError, above=0.0, unit='s')
        self.give(q, qd, theta, thetad, spring_torque)
        own = self.record
        for speeds in (own.qd, own.thetad):
            speeds[~np.isfinite(speeds)] = 0.0
        own.acceleration[:] = 0.0
        self.refuse(self.run(step.RECEIVE, elapsed=T))

    def apply(self, torque: Array, friction: Array | float) -> None:
        """Note the answer to the latest measurement.

        Parameters
        ----------
        torque : ndarray, shape (m,)
            Of the motors [N m] or [N].
        friction : ndarray, shape (m,), or float
            That is known in it, and moves nothing.
        """
        self.record.motor_torque[:], self.record.friction[:] = torque, friction
        self.run(step.PUSH)

    @property
    def gated(self) -> int:
        """Measured positions so far that could not be true."""
        return int(self.record.gated)

    @property
    def doubted(self) -> Array:
        """1 for each motor (m,) whose position stands still while its spring turns."""
        doubted: Array = self.record.doubted
        return doubted

    def state(self) -> ObservedState:
        """Estimate of the state at the latest measurement."""
        t, o, w = self.transmission, self.record, self.bandwidth
        links, motors, n = o.links.copy(), o.motors.copy(), self.model.n_joints
        turning = o.rate * (motors[1] - t.turns * links[1, t.joint])
        rate, torque = t.by_joint(turning), o.torque[1].copy()
        torque[t.rigid] = o.acted[t.rigid_motors]
        external, external_rate = links[3], w * (links[2] - links[3])
        motion = np.zeros((4, n))
        motion[:2] = links[:2]
        mass = mass_matrix(self.model, motion[:1])[0] + np.diag(o.rigid_inertia)
        for k, total in ((2, torque + external), (3, rate + external_rate)):
            motion[k] = np.linalg.solve(
                mass, total - inverse_dynamics(self.model, motion)[k - 2]
            )
        of_springs = torque, rate, external, external_rate, -motors[3]
        return ObservedState._make([*motion, *motors[:2], *of_springs])


def check_shared(observer: StateObserver, actuators: Actuators, T: float) -> None:
    """Refusal of an observer that a law cannot share.

    Limits of the model may differ, and objects of equal values are the same.

    Parameters
    ----------
    observer : StateObserver
    actuators : Actuators
        Of the law.
    T : float
        Sample period of the law [s].

    Raises
    ------
    ControlError
        If the observer has another type, sample period, model or other actuators.
    """
    if not isinstance(observer, StateObserver):
        raise ControlError(
            f'The observer is of type {type(observer).__name__}, expected a StateObserver.'
        )
    if abs(observer.sample_period - T) > 1e-9 * T:
        raise ControlError(
            f'The observer has a sample period of {observer.sample_period:g} s and the law one of '
            f'{T:g} s, expected the same.'
        )
    if observer.actuators is actuators:
        return
    known, given = observer.model, actuators.model
    try:
        observer.actuators.check_suits(given)
    except ActuatorError:
        other = ['robot']
    else:
        other = [
            what
            for what, name in _OF_ROBOT.items()
            if not np.array_equal(getattr(known, name), getattr(given, name))
        ]
        other += ['friction'] * (dict(known.friction) != dict(given.friction))
        drives = observer.actuators.by_joint
        other += [f'actuator of {x!r}' for x in drives if drives[x] != actuators[x]]
    if other:
        raise ControlError(
            f'The observer has another {listed(other)} than the law. Expected an observer of the '
            'same actuators: StateObserver(actuators, sample_period, bandwidth).'
        )


_OF_ROBOT = {'inertia': 'M_body', 'gravity': 'gravity', 'armature': 'armature'}
_OF_TRANSMISSION = (
    'joint',
    'line',
    'part',
    'is_variable',
    'is_elastic',
    'is_single',
    'joint_inertia',
    'damping',
    'turns',
    'inertia',
)
