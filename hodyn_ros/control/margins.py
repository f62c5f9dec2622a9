"""Margins of a control law on the robot that it knows: by how much a loop may be wrong.

The law and the robot are linearised at rest. The law's map from memory and measurement to memory
and torque is differentiated numerically; the links with springs, motors and weight are sampled
with held torques. The loop of each motor is cut while all others stay closed: with the matrix G
from motor torques to motor torques and S = (I - G)^-1, it is l_j = 1 / S_jj - 1 (Skogestad and
Postlethwaite, "Multivariable Feedback Control", 2005). S is the response of the torques in the
closed loop to torques that are added to them. S_jj has the zeros of the robot and law with all
loops but that of motor j closed, and the poles with all closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm, matrix_balance, solve_discrete_lyapunov

from hodyn_ros.checks import checked_number
from hodyn_ros.control.observer_controller import ObserverController
from hodyn_ros.control.values import middle_of_range
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.errors import ControlError
from hodyn_ros.typing import Array

_STEP = 1e-5  # of numerical differentiation
_SLOWEST = 1.0  # rad/s, of the frequencies that are looked at
# Half width of a resonance, by its frequency, below which a grid may miss it; and where about it,
# by that width, it is looked at.
_NARROW, _LEAST_WIDTH = 0.05, 1e-4
_WIDTHS = np.array([-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0])


class Margins(NamedTuple):
    """Margins of a law at rest; m motors.

    Attributes
    ----------
    decay : float
        Of the slowest error of the closed loop [1/s]; negative if it grows, and zero but for
        rounding if a law leaves the robot free, as gravity compensation does.
    sensitivity : ndarray, shape (m,)
        Largest one S of each motor's loop. The torque of this motor alone may be wrong by any
        factor from S / (S + 1) to S / (S - 1), its phase by 2 asin(1 / (2 S)).
    delay : ndarray, shape (m,)
        That each motor alone bears beyond the known one [s].

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import tracking_controller
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> margins = tracking_controller(drives, 0.001).margins([0.3, 0.5])
    >>> margins.decay > 0.0, margins.sensitivity < 3.0
    (True, array([ True,  True]))
    """

    decay: float
    sensitivity: Array
    delay: Array

    def table(self, motor_names: Sequence[str]) -> str:
        """Text with a line for each motor.

        Parameters
        ----------
        motor_names : sequence of str
            Of the m motors, in their order.

        Raises
        ------
        ControlError
            If there is not a name for each motor.
        """
        m = len(self.sensitivity)
        if isinstance(motor_names, str) or len(motor_names) != m:
            raise ControlError(
                f'motor_names is {motor_names!r}, expected the names of {m} motors.'
            )
        width = max(5, *map(len, motor_names))
        rows = [f'{"motor":{width}}  sensitivity  delay']
        for name, sensitivity, delay in zip(motor_names, self.sensitivity, self.delay):
            rows.append(f'{name:{width}}         {sensitivity:4.2f}  {1e3 * delay:.1f} ms')
        return '\n'.join([*rows, f'Slowest error: {self.decay:.3g} 1/s.'])


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
            Where the links rest [rad] or [m]; by default in the middle of their range.
        stiffness : mapping of joint name to array-like, shape (3,), optional
            As for `evaluate`.
        frequencies : int
            How many are looked at, evenly spaced on a logarithmic scale, from 1 rad/s to half of
            the sampling frequency, beside those about narrow resonances.

        Returns
        -------
        Margins
            Of a copy of the law that has seen nothing and whose torques have no limits.

        Raises
        ------
        ControlError
            If `frequencies` is no whole number from 2 on.
        MotionError
            If the position has a wrong shape or is not finite.
        """
        count = checked_number(
            'The number of frequencies', frequencies, ControlError, least=2, whole=True
        )
        loop, T = _closed_loop(self, position, stiffness), self.sample_period
        w = np.geomspace(_SLOWEST, np.pi / T, int(count))
        poles, zeros = _poles_and_zeros(loop)
        w = np.union1d(w, _about_resonances(np.vstack([poles, zeros]), T))
        z = np.exp(1j * w * T)[:, None]
        # Both are in order, so that no product on the way becomes large.
        S = np.array([((z - each) / (z - poles)).prod(axis=1) for each in zeros])
        return Margins(
            float(-np.log(np.abs(poles).max()) / T),
            np.abs(S).max(axis=1),
            np.array([_delay_margin(w, each) for each in 1.0 / S - 1.0]),
        )


def noise_rate(controller: ObserverController) -> Array:
    """Rates of the torques at rest that the resolution of the encoders causes.

    Positions are rounded, which is taken for white noise: of each 1 / 12 of the square of its
    resolution (Widrow 1956, "A study of rough amplitude quantization by means of Nyquist sampling
    theory").

    Parameters
    ----------
    controller : ObserverController
        With a resolution; is looked at in the middle of its range.

    Returns
    -------
    ndarray, shape (m,)
        Standard deviations from sample to sample [N m/s] or [N/s]; infinite if errors of the
        closed loop grow.
    """
    assert controller.resolution is not None
    A, _, B, C, D = _closed_loop(controller)
    if _growth(A) > 1.0:
        return np.full(len(C), np.inf)
    variance = np.diag(controller.resolution**2 / 12.0)
    P = solve_discrete_lyapunov(A, B @ variance @ B.T)
    change = C @ P @ (C - C @ A).T + (D - C @ B) @ variance @ D.T
    rate: Array = np.sqrt(np.maximum(2.0 * np.diagonal(change), 0.0))
    return rate / controller.sample_period


class _ClosedLoop(NamedTuple):
    """Robot and law from sample to sample: x[k+1] = A x + added d + measured e, u = C x + D e.

    d (m,) is added to the torques that act next, e (n + m,) to the measured positions, u (m,) are
    the torques of the law.
    """

    A: Array
    added: Array
    measured: Array
    C: Array
    D: Array


def _closed_loop(
    controller: ObserverController,
    position: ArrayLike | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
) -> _ClosedLoop:
    """Linear robot and law at rest; arguments as of `ControllerWithMargins.margins`."""
    q = middle_of_range(controller.model)
    if position is not None:
        q = np.asarray(position, dtype=np.float64)
    law = _unbounded(controller)
    theta = law.resting(q, stiffness)
    A, B, C, D = _linear_law(law, q, theta, stiffness)
    F, G, seen = _linear_robot(law, q, theta)
    for _ in range(law.observer.delay_samples):  # the torques under way are states, too
        N, m = G.shape
        F = np.block([[F, G], [np.zeros((m, N + m))]])
        G, seen = np.eye(N + m)[:, N:], np.hstack([seen, np.zeros((len(seen), m))])
    return _ClosedLoop(
        np.block([[F + G @ D @ seen, G @ C], [B @ seen, A]]),
        np.vstack([G, np.zeros((len(A), len(C)))]),
        np.vstack([G @ D, B]),
        np.hstack([D @ seen, C]),
        D,
    )


def _poles_and_zeros(
    loop: _ClosedLoop,
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Factors from sample to sample, with all loops closed and with one cut, in order.

    S_jj = 1 + c (z - A)^-1 b is det(z - (A - b c)) / det(z - A), by the determinant of a change
    of rank one: eigenvalues take the place of a solution for each frequency.

    Returns
    -------
    poles : ndarray of complex, shape (N,)
    zeros : ndarray of complex, shape (m, N)
        Of the response of each motor torque to what is added to it.
    """
    A, (scale, _) = matrix_balance(loop.A, permute=False, separate=True)
    b, c = loop.added / scale[:, None], loop.C * scale
    cut = [A - np.outer(*pair) for pair in zip(b.T, c)]
    factors = np.linalg.eigvals(_hessenberg(np.array([A, *cut]))).astype(np.complex128)
    factors.sort()
    return factors[0], factors[1:]


def _hessenberg(A: Array) -> Array:
    """Hessenberg forms of matrices (N, K, K), which have the same eigenvalues, by reflections.

    One after the other and by LAPACK they would take a third of the time of one thread, but the
    threads of BLAS, which wait for each other at every column, ten times as long on a computer
    that is busy.
    """
    A = A.copy()
    for k in range(A.shape[-1] - 2):
        v = A[:, k + 1 :, k].copy()
        v[:, 0] += np.copysign(np.linalg.norm(v, axis=1), v[:, 0])
        length = np.linalg.norm(v, axis=1, keepdims=True)
        v /= np.where(length > 0.0, length, 1.0)
        rows, columns = A[:, k + 1 :, k:], A[:, :, k + 1 :]
        rows -= 2.0 * v[:, :, None] * np.einsum('nk,nkl->nl', v, rows)[:, None]
        columns -= 2.0 * np.einsum('nkl,nl->nk', columns, v)[:, :, None] * v[:, None]
    return np.triu(A, -1)


def _about_resonances(factors: NDArray[np.complex128], T: float) -> Array:
    """Frequencies [rad/s] about the narrow resonances among factors from sample to sample.

    Between two frequencies of a grid the gain of a loop may rise above 1 and fall again.
    """
    # Zeros are delays; they do not swing.
    poles = np.log(factors[np.abs(factors) > 0.0]) / T
    width, w = np.abs(poles.real), poles.imag
    narrow = (width < _NARROW * w) & (w > _SLOWEST) & (w < np.pi / T)
    width, w = np.maximum(width[narrow], _LEAST_WIDTH * w[narrow]), w[narrow]
    around: Array = (w[:, None] + width[:, None] * _WIDTHS).ravel()
    return around[(around > _SLOWEST) & (around < np.pi / T)]


def _growth(A: Array) -> float:
    """Factor of the slowest error from sample to sample."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def _unbounded(controller: ObserverController) -> ObserverController:
    """Copy of a law that has seen nothing, without guards and limits."""
    shared = controller.model, controller.actuators
    law = deepcopy(controller, {id(each): each for each in shared})
    law.guards = None
    law.record.fill({'guarded': 0.0})
    law.limit(np.full(len(law.torque_limits), np.inf))
    law.reset()
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
    """Matrices of x[k + 1] = F x[k] + G u[k], y[k] = H x[k] with y = (q, theta).

    Motors of rigid joints are part of the links, and zero in y, since laws do not look at them:
    x = (q, theta, q', theta') has the m_e elastic ones. Torques are held during a sample.

    Parameters
    ----------
    law : ObserverController
    q : ndarray, shape (n,)
        Links at rest [rad] or [m].
    theta : ndarray, shape (m,)
        Motors at rest, in joint coordinates.

    Returns
    -------
    F, G, H : ndarray, shapes (N, N), (N, m) and (n + m, N)
        N = 2 (n + m_e); u are torques of the motors.
    """
    t, n, m = law.observer.transmission, len(q), len(theta)
    is_elastic = t.is_elastic[t.joint] > 0.0
    moved = mass_matrix(law.model, q[None])[0]
    moved += np.diag((1.0 - t.is_elastic) * t.joint_inertia)

    def acceleration(point: Array) -> Array:
        links, motors, speed, turning, torque = np.split(point, np.cumsum([n, m, n, m]))
        springs = t.at(links, motors)
        damper = t.damping[t.joint] * t.turns * (turning - speed[t.joint])
        weight = gravity_effort(law.model, links[None])[0]
        on_links = springs.torque - weight + t.by_joint(damper + ~is_elastic * torque)
        on_motors = (torque - springs.load - damper)[is_elastic]
        return np.concatenate(
            [np.linalg.solve(moved, on_links), on_motors / t.inertia[is_elastic]]
        )

    kept = np.append(np.ones(n, dtype=bool), is_elastic)
    J = _derivatives(acceleration, np.concatenate([q, theta, np.zeros(n + 2 * m)]))
    J = J[:, np.concatenate([kept, kept, np.ones(m, dtype=bool)])]
    half = len(J)
    exponent = np.zeros((2 * half + m, 2 * half + m))
    exponent[:half, half : 2 * half] = np.eye(half)
    exponent[half : 2 * half] = J
    held = expm(law.sample_period * exponent)[: 2 * half]
    seen = np.eye(n + m)[:, kept]
    return held[:, : 2 * half], held[:, 2 * half :], np.hstack([seen, 0.0 * seen])


def _derivatives(function: Callable[[Array], Array], point: Array) -> Array:
    """Central differences of a function from (N,) to (M,) about a point, shape (M, N)."""
    steps = _STEP * np.eye(len(point))
    columns = [(function(point + d) - function(point - d)) / (2.0 * _STEP) for d in steps]
    return np.array(columns).T


def _delay_margin(w: Array, loop: NDArray[np.complex128]) -> float:
    """Least delay that a single loop does not bear [s]; infinite where its gain is never 1.

    Parameters
    ----------
    w : ndarray, shape (N,)
        Rising frequencies [rad/s].
    loop : ndarray of complex, shape (N,)
        Frequency response of the open loop, negative feedback.
    """
    excess = np.abs(loop) - 1.0
    i = np.flatnonzero((excess[:-1] < 0.0) != (excess[1:] < 0.0))
    part = excess[i] / (excess[i] - excess[i + 1])
    frequency, point = (each[i] + part * (each[i + 1] - each[i]) for each in (w, loop))
    return float(min(np.angle(-point) % (2.0 * np.pi) / frequency, default=np.inf))
