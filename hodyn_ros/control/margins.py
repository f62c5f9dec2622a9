"""Margins of a control law on the robot that it knows: by how much a loop may be wrong.

The law and the robot are linearised at rest. The law's map from memory and measurement to memory
and torque is differentiated numerically; the links with springs, motors and weight are sampled
with held torques. The loop of each motor is cut while all others stay closed: with the matrix G
from motor torques to motor torques and S = (I - G)^-1, it is l_j = 1 / S_jj - 1 (Skogestad and
Postlethwaite, "Multivariable Feedback Control", 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm, solve_discrete_lyapunov

from hodyn_ros.checks import checked_number
from hodyn_ros.control.observer_controller import ObserverController
from hodyn_ros.control.transmission import Transmission
from hodyn_ros.control.values import middle_of_range
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.errors import ControlError
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

ComplexArray = NDArray[np.complex128]
Values = TypeVar('Values', Array, ComplexArray)

_STEP = 1e-5  # of numerical differentiation
_SLOWEST = 1.0  # rad/s, of the frequencies that are looked at
_ROUNDING = 1e-6  # of the largest eigenvalue
_FORGOTTEN = 0.1  # 1/s, decay of what laws leave free, for the noise


class Margins(NamedTuple):
    """Margins of a law at rest; n joints, m motors.

    Attributes
    ----------
    decay : float
        Of the slowest error of the closed loop [1/s]; negative if it grows, and zero but for
        rounding if a law leaves the robot free, as gravity compensation does.
    gain_up : ndarray, shape (m,)
        By what factor the torque of each motor alone may be too large.
    gain_down : ndarray, shape (m,)
        Factor above which it has to stay.
    phase : ndarray, shape (m,)
        [rad]
    delay : ndarray, shape (m,)
        That each motor alone bears beyond the known one [s].
    sensitivity : ndarray, shape (m,)
        Largest of each motor's loop.
    crossover : ndarray, shape (m,)
        Highest frequency at which the loop of each motor has gain 1 [rad/s].
    resonance : ndarray, shape (n,)
        Of each joint with free motor and link, zero where it is rigid [rad/s].
    tip_stiffness : float
        Least ratio of an oscillating force to the deflection at any link's origin, over
        directions and frequencies [N/m]; infinite at frequency zero.
    noise : ndarray, shape (m,)
        Standard deviation of each motor torque at rest that the resolution of the encoders
        causes [N m]; NaN if none is given.
    noise_rate : ndarray, shape (m,)
        The same of the change from sample to sample [N m/s].
    """

    decay: float
    gain_up: Array
    gain_down: Array
    phase: Array
    delay: Array
    sensitivity: Array
    crossover: Array
    resonance: Array
    tip_stiffness: float
    noise: Array
    noise_rate: Array

    def table(self, motor_names: Sequence[str]) -> str:
        """Text with a line for each motor.

        Parameters
        ----------
        motor_names : sequence of str
            Of the m motors, in their order.
        """
        width = max(5, *map(len, motor_names))
        rows = [f'{"motor":{width}}  gain     phase  delay  sensitivity  crossover']
        values = zip(
            motor_names,
            self.gain_down,
            self.gain_up,
            self.phase,
            self.delay,
            self.sensitivity,
            self.crossover,
        )
        for name, down, up, phase, delay, sensitivity, crossover in values:
            rows.append(
                f'{name:{width}}  {down:.2f}-{up:<4.2g} {np.degrees(phase):3.0f} deg '
                f'{1e3 * delay:4.1f} ms         {sensitivity:4.2f}  {crossover:3.0f} rad/s'
            )
        rows.append(
            f'Slowest error: {self.decay:.3g} 1/s; least stiffness against an oscillating force: '
            f'{1e-3 * self.tip_stiffness:.3g} N/mm.'
        )
        if np.isnan(self.noise).any():
            rows.append(
                'Torques that encoders cause at rest are not known: give resolution.'
            )
        else:
            rows.append(
                f'Torques that encoders cause at rest, standard deviations: up to '
                f'{self.noise.max():.2g} N m, and {self.noise_rate.max():.3g} N m/s.'
            )
        return '\n'.join(rows)


class ControllerWithMargins(ObserverController):
    """A law that tells its margins."""

    def margins(
        self,
        position: ArrayLike | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None,
        frequencies: int = 400,
    ) -> Margins:
        """By how much the loop of each motor may be wrong, before a robot is switched on.

        Parameters
        ----------
        position : array-like, shape (n,), optional
            Where the robot rests [rad] or [m]; by default in the middle of its range.
        stiffness : mapping of joint name to array-like, shape (3,), optional
            As for `evaluate`.
        frequencies : int
            Between 1 rad/s and half of the sampling frequency.

        Returns
        -------
        Margins
            Of a copy of the law that has seen nothing and whose torques have no limits.

        Raises
        ------
        ControlError
            If an argument cannot be used.
        """
        return find_margins(self, position, stiffness, frequencies)


def find_margins(
    controller: ObserverController,
    position: ArrayLike | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
    frequencies: int = 400,
) -> Margins:
    """Margins of a law at rest; see `ControllerWithMargins.margins`.

    Parameters
    ----------
    controller : ObserverController
        Stays as it is: a copy is looked at.
    position : array-like, shape (n,), optional
        Of the links [rad] or [m]; by default the middle of their range.
    stiffness : mapping of joint name to array-like, shape (3,), optional
        Of joints that can choose it and two derivatives [N m/rad].
    frequencies : int
        How many are looked at, evenly spaced on a logarithmic scale, from 1 rad/s to half of the
        sampling frequency.

    Returns
    -------
    Margins

    Raises
    ------
    ControlError
        If `frequencies` is no whole number from 2 on.
    """
    count = int(
        checked_number(
            'The number of frequencies', frequencies, ControlError, least=2, whole=True
        )
    )
    model, T = controller.model, controller.sample_period
    q = (
        middle_of_range(model)
        if position is None
        else np.asarray(position, dtype=np.float64)
    )
    law = _unbounded(controller)
    theta = law.resting(q, stiffness)
    A, B, C, D = _linear_law(law, q, theta, stiffness)
    F, acts, disturbs = _linear_robot(law, q, theta)
    t, delay = law.observer.transmission, law.observer.delay_samples
    seen = _seen(t, len(q), len(F))
    closed = _closed_loop(A, B @ seen, C, D @ seen, F, acts, delay)
    largest = np.abs(np.linalg.eigvals(closed)).max()
    noise = np.full((2, len(theta)), np.nan)
    if controller.resolution is not None:
        noise = _noise(closed, (A, B, C, D), seen, acts, delay, controller.resolution, T)
        noise[1] /= T
    w = np.geomspace(_SLOWEST, np.pi / T, count)
    z = np.exp(1j * w * T)[:, None, None]
    sensitivity, compliance = _responses(z, (A, B, C, D), (F, acts, disturbs), seen, delay)
    softest = _softest(model, q, compliance)
    loops = np.array([loop_margins(w, loop) for loop in (1.0 / sensitivity - 1.0).T])
    up, down, phase, bears, crossover = loops.T
    return Margins(
        float(-np.log(largest) / T),
        up,
        down,
        phase,
        bears,
        np.abs(sensitivity).max(axis=0),
        crossover,
        t.is_elastic * t.resonances(law.observer.mass, law.observer.springs.stiffness),
        1.0 / softest if softest > 0.0 else np.inf,
        *noise,
    )


def _responses(
    z: ComplexArray,
    law: tuple[Array, Array, Array, Array],
    robot: tuple[Array, Array, Array],
    seen: Array,
    delay: int,
) -> tuple[ComplexArray, ComplexArray]:
    """Responses of the closed loop at some frequencies.

    Parameters
    ----------
    z : ndarray of complex, shape (N, 1, 1)
        Of the z transform.
    law : tuple of ndarray
        A, B, C and D of `_linear_law`.
    robot : tuple of ndarray
        F, G and H of `_linear_robot`.
    seen : ndarray
        As of `_seen`.
    delay : int
        Samples until a torque acts.

    Returns
    -------
    sensitivity : ndarray of complex, shape (N, m)
        Of the loop of each motor while all others are closed.
    compliance : ndarray of complex, shape (N, n, n)
        Positions of the links by torques on them [rad/(N m)] or [m/N].
    """
    (A, B, C, D), (F, acts, disturbs), m = law, robot, robot[1].shape[1]
    n = disturbs.shape[1]
    moved = seen @ np.linalg.solve(z * np.eye(len(F)) - F, np.hstack([acts, disturbs]))
    feedback = C @ np.linalg.solve(z * np.eye(len(A)) - A, B) + D
    from_torque, from_push = moved[:, :, :m] * z**-delay, moved[:, :, m:]
    S = np.linalg.inv(np.eye(m) - feedback @ from_torque)
    compliance = np.linalg.solve(np.eye(n + m) - from_torque @ feedback, from_push)
    return (
        np.asarray(np.diagonal(S, axis1=1, axis2=2), dtype=np.complex128),
        np.asarray(compliance[:, :n], dtype=np.complex128),
    )


def _softest(model: RobotModel, q: Array, compliance: ComplexArray) -> float:
    """Largest deflection of the tip by a force there, over directions and frequencies [m/N].

    Of the origins of all links if there is no tip; links are at q (n,), and the compliance of the
    joints (N, n, n) is that at N frequencies.
    """
    links: list[str | None] = [model.tip_link] if model.tip_link else [*model.links]
    J = [jacobian(model, q[None], link, 'hybrid')[0, 3:] for link in links]
    return max(float(np.linalg.norm(j @ compliance @ j.T, 2, (1, 2)).max()) for j in J)


def _seen(t: Transmission, n: int, size: int) -> Array:
    """Matrix (n + m, size) of the positions that the law is given, in the state of the robot.

    Those of motors of rigid joints, which the law does not look at, are zero.
    """
    seen = np.zeros((n + len(t.joint), size))
    seen[:n, :n] = np.eye(n)
    elastic = np.flatnonzero(t.is_elastic[t.joint])
    seen[n + elastic, 2 * n + np.arange(len(elastic))] = 1.0
    return seen


def _unbounded(controller: ObserverController) -> ObserverController:
    """Copy of a law that has seen nothing, without guards and limits."""
    shared = controller.model, controller.actuators
    law = deepcopy(controller, {id(each): each for each in shared})
    law.guards = law.bounds = None
    law.reset()
    law.limit(np.full(len(law.torque_limits), np.inf))
    return law


def _linear_law(
    law: ObserverController,
    q: Array,
    theta: Array,
    stiffness: Mapping[str, ArrayLike] | None,
) -> tuple[Array, Array, Array, Array]:
    """Matrices of x[k + 1] = A x[k] + B y[k], u[k] = C x[k] + D y[k], with y = (q, theta).

    By central differences about a robot at rest.

    Parameters
    ----------
    law : ObserverController
        Is left at a state beside that of rest.
    q : ndarray, shape (n,)
        Links at rest [rad] or [m].
    theta : ndarray, shape (m,)
        Motors at rest, in joint coordinates.
    stiffness : mapping, optional
        As for `evaluate`.

    Returns
    -------
    A, B, C, D : ndarray, shapes (M, M), (M, n + m), (m, M) and (m, n + m)
        M is the size of the memory of the law.
    """
    desired, n = law.at_rest(q), len(q)
    for _ in range(law.observer.delay_samples + 3):
        law.evaluate(desired, q, None, theta, None, stiffness=stiffness)
    middle = np.concatenate([law.memory, q, theta])
    N = len(middle) - n - len(theta)

    def step(point: Array) -> Array:
        law.memory = point[:N]
        command = law.evaluate(
            desired, point[N : N + n], None, point[N + n :], None, stiffness=stiffness
        )
        return np.concatenate([law.memory, command.torque])

    J = _derivatives(step, middle)
    return J[:N, :N], J[:N, N:], J[N:, :N], J[N:, N:]


def _linear_robot(
    law: ObserverController, q: Array, theta: Array
) -> tuple[Array, Array, Array]:
    """Matrices of x[k + 1] = F x[k] + G u[k] + H push[k], x = (q, q', theta, theta').

    Motors of rigid joints are part of the links: of the motors, x has the m_e elastic ones.
    Torques are held during a sample.

    Parameters
    ----------
    law : ObserverController
    q : ndarray, shape (n,)
        Links at rest [rad] or [m].
    theta : ndarray, shape (m,)
        Motors at rest, in joint coordinates.

    Returns
    -------
    F, G, H : ndarray, shapes (N, N), (N, m) and (N, n)
        N = 2 (n + m_e); u are torques of the motors, pushes torques on the links.
    """
    t, n, m = law.observer.transmission, len(q), len(theta)

    def torques(point: Array) -> Array:
        springs = t.at(point[:n], point[n:])
        weight = gravity_effort(law.model, point[None, :n])[0]
        return np.concatenate([springs.torque - weight, springs.load])

    J = _derivatives(torques, np.concatenate([q, theta]))
    inertia = mass_matrix(law.model, q[None])[0]
    inertia += np.diag((1.0 - t.is_elastic) * t.joint_inertia)
    A, G, H = (np.zeros((2 * (n + m), count)) for count in (2 * (n + m), m, n))
    # Rows and columns: links, their velocities, motors, theirs.
    place, speed = np.r_[:n, 2 * n : 2 * n + m], np.r_[n : 2 * n, 2 * n + m : 2 * (n + m)]
    is_elastic = t.is_elastic[t.joint]
    elastic = np.flatnonzero(is_elastic)
    moves = np.zeros((m, n))
    moves[np.arange(m), t.joint] = 1.0
    A[place, speed] = 1.0
    A[np.ix_(speed, place)] = J * np.r_[np.ones(n), -np.ones(m)][:, None]
    damper = t.damping[t.joint] * t.turns
    A[np.ix_(speed, speed)] = np.block(
        [
            [-np.diag(t.damping), moves.T * damper],
            [moves * damper[:, None], -np.diag(damper)],
        ]
    )
    G[speed] = np.vstack([moves.T * (1.0 - is_elastic), np.eye(m)])
    H[speed[:n]] = np.eye(n)
    scale = np.eye(len(A))
    scale[n : 2 * n, n : 2 * n] = np.linalg.inv(inertia)
    scale[speed[n:], speed[n:]] = 1.0 / np.where(is_elastic > 0.0, t.inertia, 1.0)
    kept = np.r_[: 2 * n, 2 * n + elastic, 2 * n + m + elastic]
    A, G, H = ((scale @ matrix)[kept] for matrix in (A, G, H))
    size = len(kept)
    exponent = np.zeros((size + m + n, size + m + n))
    exponent[:size] = np.hstack([A[:, kept], G, H])
    held = expm(law.sample_period * exponent)[:size]
    return held[:, :size], held[:, size : size + m], held[:, size + m :]


def _derivatives(function: Callable[[Array], Array], point: Array) -> Array:
    """Central differences of a function from (N,) to (M,) about a point, shape (M, N)."""
    steps = _STEP * np.eye(len(point))
    columns = [(function(point + d) - function(point - d)) / (2.0 * _STEP) for d in steps]
    return np.array(columns).T


def _closed_loop(
    A: Array, B: Array, C: Array, D: Array, F: Array, acts: Array, delay: int
) -> Array:
    """Matrix of the robot, the torques under way and the law, from sample to sample.

    Parameters
    ----------
    A, B, C, D : ndarray, shapes (M, M), (M, N), (m, M) and (m, N)
        Of the law, with the state of the robot for its measurement.
    F : ndarray, shape (N, N)
        Of the robot.
    acts : ndarray, shape (N, m)
        Of the motor torques on it.
    delay : int
        Samples until a torque acts.

    Returns
    -------
    ndarray, shape (N + delay m + M, N + delay m + M)
    """
    N, M, m = len(F), len(A), len(C)
    whole = np.zeros((N + delay * m + M,) * 2)
    whole[:N, :N] = F
    whole[-M:, :N], whole[-M:, -M:] = B, A
    if delay:
        whole[:N, N : N + m] = acts
        waiting = np.arange(N, N + (delay - 1) * m)
        whole[waiting, waiting + m] = 1.0
        last = slice(N + (delay - 1) * m, N + delay * m)
        whole[last, :N], whole[last, -M:] = D, C
    else:
        whole[:N, :N] += acts @ D
        whole[:N, -M:] = acts @ C
    return whole


def _noise(
    closed: Array,
    law: tuple[Array, Array, Array, Array],
    seen: Array,
    acts: Array,
    delay: int,
    resolution: Array,
    T: float,
) -> Array:
    """Standard deviations (2, m) of torques and of their changes from sample to sample.

    Positions are rounded to a `resolution` (n + m,), which is taken for white noise: of each
    1 / 12 of its square (Widrow 1956, "A study of rough amplitude quantization by means of
    Nyquist sampling theory").

    Parameters
    ----------
    closed : ndarray, shape (L, L)
        As of `_closed_loop`.
    law : tuple of ndarray
        A, B, C and D of `_linear_law`.
    seen : ndarray, shape (n + m, N)
        Of measured positions in the state of the robot.
    acts : ndarray, shape (N, m)
        Of the motor torques on it.
    delay : int
        Samples until a torque acts.
    resolution : ndarray, shape (n + m,)
        [rad] or [m]
    T : float
        Sample time [s].

    Returns
    -------
    ndarray, shape (2, m)
        [N m] or [N]; infinite if errors of the closed loop grow.
    """
    A, B, C, D = law
    N, M, m = seen.shape[1], len(A), len(C)
    variance = np.diag(resolution**2 / 12.0)
    enters = np.zeros((len(closed), len(B.T)))
    enters[-M:] = B
    if delay:
        enters[len(closed) - M - m : -M] = D
    else:
        enters[:N] = acts @ D
    gives = np.zeros((m, len(closed)))
    gives[:, :N], gives[:, -M:] = D @ seen, C
    # A robot that is free goes anywhere in time, and its torques are those of where it then is.
    slowest, growth = np.exp(-_FORGOTTEN * T), np.abs(np.linalg.eigvals(closed)).max()
    if growth > 1.0 + _ROUNDING:
        return np.full((2, m), np.inf)
    closed = closed * min(1.0, slowest / growth)
    P = solve_discrete_lyapunov(closed, enters @ variance @ enters.T)
    at_once = gives @ P @ gives.T + D @ variance @ D.T
    next_one = gives @ (closed @ P @ gives.T + enters @ variance @ D.T)
    squares = np.diagonal(at_once), 2.0 * np.diagonal(at_once - next_one)
    return np.sqrt(np.maximum(squares, 0.0))


def loop_margins(w: Array, loop: ComplexArray) -> tuple[float, float, float, float, float]:
    """Margins of a single loop.

    Parameters
    ----------
    w : ndarray, shape (N,)
        Rising frequencies [rad/s].
    loop : ndarray of complex, shape (N,)
        Frequency response of the open loop, negative feedback.

    Returns
    -------
    up, down : float
        Factors of the gain at which the loop is at its limit; infinite and zero if there are none.
    phase : float
        Least distance from -1 on the unit circle [rad]; pi where the gain is never 1.
    delay : float
        Least one that the loop does not bear [s]; infinite where the gain is never 1.
    crossover : float
        Highest frequency with gain 1 [rad/s]; zero if there is none.
    """
    at = _crossings(loop.imag)
    real = np.append(_between(loop.real, at), loop.real[-1])
    factors = -1.0 / real[real < 0.0]
    up = min(factors[factors > 1.0], default=np.inf)
    down = max(factors[factors <= 1.0], default=0.0)
    at = _crossings(np.abs(loop) - 1.0)
    points = _between(loop, at)
    frequency, lead = _between(w, at), np.angle(-points)
    return (
        up,
        down,
        min(np.abs(lead), default=np.pi),
        min((lead % (2.0 * np.pi)) / frequency, default=np.inf),
        max(frequency, default=0.0),
    )


def _crossings(values: Array) -> Array:
    """Where values (N,) go through zero, as fractional indices."""
    i = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    between = i + values[i] / (values[i] - values[i + 1])
    return np.concatenate([between, np.flatnonzero(values == 0.0)])


def _between(values: Values, at: Array) -> Values:
    """Values (N,), real or complex, on the lines between them at fractional indices."""
    i = np.minimum(at.astype(int), len(values) - 2)
    found: Values = values[i] + (at - i) * (values[i + 1] - values[i])
    return found
