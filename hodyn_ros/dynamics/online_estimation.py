"""Payload and friction while a robot works: recursive least squares with bounded forgetting.

What the model lacks of the efforts is linear in parameters x: mass, first moments and inertia of a
payload, viscous and Coulomb friction, a constant error of each effort. Sums over the measurements,
L_j <- f L_j + A_j^T A_j, fade with the memory; with the variance r_j of the noise of joint j, as
known by now, x has the covariance (1 + sum_j L_j / r_j)^-1. It is scaled such that 1 is what was
expected before: that remains when the rest has faded, and nothing winds up at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.regressor import payload_in_body, regressor
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import IdentificationError, JointNameError, MotionError
from hodyn_ros.model.friction import Coulomb
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

_PAYLOAD = tuple(
    f'payload.{name}' for name in ('mass', *(f'first_moment_{k}' for k in 'xyz'))
)
# Before anything is known: mass [kg], distance of a payload from the origin of its link [m],
# viscous and Coulomb friction in their units.
_MASS, _REACH, _FRICTION = 10.0, 0.2, 10.0
_UNITS = ('N m s/rad', 'N m'), ('N s/m', 'N')
# Of a payload that is certain: farthest centre of mass and its largest standard deviation [m].
_FARTHEST, _BLURRED = 1.0, 0.1
# A slower joint may stick [rad/s] or [m/s]; faster, smoothed Coulomb friction is nearly the sign.
_SLOWEST = 0.05
_COULOMB = Coulomb(1.0, 0.5 * _SLOWEST)
_OUTLIER, _CLIPPED = 6.0, 3.0  # standard deviations
_CONTACT = 1.0  # time for which what does not fit is left out [s]
_PATIENCE = 0.5  # this over the time in which misfits are averaged
_WINDOW = 0.05  # time over which innovations are averaged, as a share of the memory
_SURPRISE = 3.0  # their power over the expected one, up to which noise explains them
_FIRST_GUESS = 10.0  # samples that what is assumed of the noise counts for
_MOST_REPEATED = 0.98  # correlation of a measurement with the one before
_ROUNDING = 1e-13  # least variance of the noise, over the information on scaled parameters


class ParameterEstimate(NamedTuple):
    """What is known of parameters.

    Attributes
    ----------
    names : tuple of str
        payload.mass, payload.first_moment_x, ..., friction.<joint>.viscous, ....coulomb.
    values : ndarray
        Deviations from those of the model [units].
    std : ndarray
        Their standard deviations [units].
    units : tuple of str

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import OnlineEstimator
    >>> estimator = OnlineEstimator(RobotModel.from_urdf('two_link'), link='tool')
    >>> estimate = estimator.estimate
    >>> estimate.names[0], estimate.units[0], estimate.std[0].round(1).item(), estimate.payload()
    ('payload.mass', 'kg', 10.0, None)
    """

    names: tuple[str, ...]
    values: Array
    std: Array
    units: tuple[str, ...]

    def payload(self) -> tuple[float, Array] | None:
        """Payload of the link, if it is certain.

        Returns
        -------
        tuple of (float, ndarray), optional
            Mass [kg] and centre of mass (3,) in the axes of the link [m]. None unless the mass is
            larger than two standard deviations, and the centre of mass is no farther than 1 m from
            the origin of the link and known to 0.1 m; None also where no payload was looked for.
        """
        if self.names[0] != _PAYLOAD[0] or not self.values[0] > 2.0 * self.std[0]:
            return None
        mass, com = float(self.values[0]), self.values[1:4] / self.values[0]
        sharp = self.std[1:4].max() <= _BLURRED * mass
        return (mass, com) if sharp and np.linalg.norm(com) <= _FARTHEST else None


class OnlineEstimator:
    """Payload and friction of a robot from its motion and measured efforts, as they come in.

    Parameters
    ----------
    model : RobotModel
        Deviations from it are found.
    link : str, optional
        Link that carries what is not part of the model.
    friction : bool or sequence of str
        Joints whose friction may differ from that of the model; True: all.
    memory : float
        Time in which measurements lose 63 % of their weight [s].
    effort_noise : float
        Least standard deviation of the noise of efforts, and that of their constant errors [N m]
        or [N]. How much noise there is is found out.

    Attributes
    ----------
    samples, outliers : int
        Measurements that the estimate rests on, and those that did not fit, as in a contact.

    Raises
    ------
    HodynError
        If there is nothing to find, a number is out of range, or a link or joint is unknown.

    Examples
    --------
    A payload of 0.5 kg becomes known while the arm moves:

    >>> from hodyn_ros import RobotModel, inverse_dynamics
    >>> from hodyn_ros.identification import OnlineEstimator
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> robot, estimator = model.with_payload('tool', 0.5), OnlineEstimator(model, link='tool')
    >>> path = fit_spline([0.0, 1.0, 2.0, 3.0, 4.0], [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> for stamp in range(0, 4_000_000_000, 20_000_000):
    ...     motion = path(1e-9 * stamp, 2)
    ...     estimate = estimator.update(stamp, motion, inverse_dynamics(robot, motion)[0])
    >>> print(f'{estimate.names[0]}: {estimate.values[0]:.2f} +- {estimate.std[0]:.2f} kg')
    payload.mass: 0.50 +- 0.01 kg
    """

    def __init__(
        self,
        model: RobotModel,
        *,
        link: str | None = None,
        friction: bool | Sequence[str] = False,
        memory: float = 10.0,
        effort_noise: float = 0.1,
    ) -> None:
        n, everyone = model.n_joints, model.joint_names if friction else ()
        joints = everyone if isinstance(friction, (bool, np.bool_)) else tuple(friction)
        if isinstance(friction, str) or not set(joints) <= set(everyone):
            raise JointNameError(
                f'friction is {friction!r}, expected a sequence of {listed(model.joint_names)}.'
            )
        if link is None and not joints:
            raise IdentificationError('There is nothing to find: give link or friction.')
        self._memory = checked_number('memory', memory, IdentificationError, above=0.0)
        noise = checked_number('effort_noise', effort_noise, IdentificationError, above=0.0)
        self._carrier = link and payload_in_body(model, link)
        self._friction = [model.joint_names.index(name) for name in joints]
        # Inertia of the payload and errors would falsify the rest; they are not reported.
        found = list(zip(_PAYLOAD, ('kg', *3 * ('kg m',)))) if self._carrier else []
        inertial = _MASS * np.repeat([1.0, _REACH, _REACH**2], [1, 3, 6] if found else 0)
        self._first, first = len(inertial), len(found)
        for name, joint in zip(joints, self._friction):
            units = _UNITS[model.joint_types[joint] == 'prismatic']
            found += zip((f'friction.{name}.viscous', f'friction.{name}.coulomb'), units)
        self._names, self._units = (tuple(column) for column in zip(*found))
        friction_scale = np.full(2 * len(joints), _FRICTION)
        self._scale = np.concatenate([inertial, friction_scale, np.full(n, noise)])
        self._reported = np.r_[:first, self._first : self._first + 2 * len(joints)]
        self._least, self._model = noise**2, model
        self.outliers: int = 0
        self.reset()

    def reset(self) -> None:
        """Forget all measurements and their time, but not how many did not fit."""
        self._time: int | None = None
        self._forget()

    def _forget(self) -> None:
        """Begin of an estimate, with what is known of the noise before: its least variance."""
        n, size = self._model.n_joints, len(self._scale)
        self.samples: int = 0
        self._waited = 0.0
        self._misfit = 0.0
        self._variance = np.full(n, self._least)  # of the noise
        # Correlation with the measurement before; it is expected, as efforts are filtered.
        self._power, self._repeated, self._last = np.ones(n), np.full(n, 0.9), np.zeros(n)
        self._drift, self._excess = np.zeros(n), 1.0
        self._L, self._b = np.zeros((n, size, size)), np.zeros((n, size))
        self._solve(self._variance)

    def _solve(self, variance: Array) -> None:
        """Parameters and their covariance.

        Parameters
        ----------
        variance : ndarray, shape (n,)
            Of the noise of the effort of each joint [(N m)^2] or [N^2].
        """
        largest = np.trace(self._L, axis1=1, axis2=2)
        weight = 1.0 / np.maximum(variance, _ROUNDING * largest)
        L = np.tensordot(weight, self._L, 1)
        root = np.linalg.inv(np.linalg.cholesky(L + np.eye(len(L))))
        self._P = root.T @ root
        self._x = self._P @ (weight @ self._b)

    @property
    def estimate(self) -> ParameterEstimate:
        """What is known at present.

        Standard deviations are larger as long as measurements do not fit.
        """
        known = self._reported
        # As long as something does not fit, little is certain.
        variance = self._excess * self._P.diagonal()[known] + self._misfit**2
        std = np.sqrt(np.minimum(variance, 1.0))
        scale = self._scale[known]
        return ParameterEstimate(
            self._names, scale * self._x[known], scale * std, self._units
        )

    def update(
        self,
        time: int,
        motion: ArrayLike,
        effort: ArrayLike,
        effort_deviation: ArrayLike | None = None,
        wrench: Wrench | Sequence[Wrench] | None = None,
    ) -> ParameterEstimate | None:
        """Take a measurement; None if it is not used, as it came late or does not fit.

        Parameters
        ----------
        time : int
            [ns]
        motion : array-like, shape (K, n)
            Positions and their derivatives, K >= 3 [rad/s^k] or [m/s^k].
        effort : array-like, shape (n,)
            Measured efforts at that time [N m] or [N].
        effort_deviation : array-like, shape (n,), optional
            Standard deviations of those of the model, as the motion is not known exactly.
        wrench : Wrench or sequence of Wrench, optional
            Known wrenches, as for `inverse_dynamics`.

        Raises
        ------
        MotionError, WrenchError
            If something has a wrong shape or is not finite.
        """
        motion, measured, deviation = self._checked(motion, effort, effort_deviation)
        residual = measured - inverse_dynamics(self._model, motion, wrench)[0]
        A = self._columns(motion[:3])
        step = 0.0 if self._time is None else 1e-9 * (time - self._time)
        if self._time is not None and step <= 0.0:
            return None
        self._time, self._waited = time, self._waited + step
        moves = np.ones(len(measured), dtype=np.bool_)
        moves[self._friction] = np.abs(motion[1, self._friction]) >= _SLOWEST
        variance = self._variance + deviation**2
        S = variance + ((A @ self._P) * A).sum(axis=1)
        innovation = np.where(moves, residual - A @ self._x, 0.0)
        misses = innovation**2 / S
        clipped, known = np.minimum(misses, _CLIPPED**2), variance / S
        least = 1.0 / (self.samples + _FIRST_GUESS)
        gain = np.where(moves, max(1.0 - exp(-step / self._memory), least), 0.0)
        # Expected squares, if the rest is due to parameters (expectation maximisation).
        self._variance = self._variance * (1.0 + gain * known * (clipped - 1.0))
        np.maximum(self._variance, self._least, out=self._variance)
        if self._is_misfit(misses, step):
            return None
        noise = np.sign(innovation) * np.sqrt(clipped * known)
        inflation = self._inflation(noise, gain)
        self._note_drift(noise, inflation, step, max(moves.sum(), 1))
        keep = exp(-self._waited / self._memory * min(self._excess, 1.0 / _WINDOW))
        weighted = A * (moves * self._variance / variance)[:, None]
        self._L = keep * self._L + weighted[:, :, None] * A[:, None]
        self._b = keep * self._b + weighted * residual[:, None]
        self._solve(self._variance * inflation)
        self._waited, self.samples = 0.0, self.samples + 1
        return self.estimate

    def _checked(
        self, motion: ArrayLike, effort: ArrayLike, effort_deviation: ArrayLike | None
    ) -> tuple[Array, Array, Array]:
        """Motion (K, n), measured efforts and their deviations (n,), or a MotionError."""
        n, motion = self._model.n_joints, finite_array('motion', motion, MotionError)
        given = np.zeros(n) if effort_deviation is None else effort_deviation
        deviation = finite_array('effort_deviation', given, MotionError)
        measured = finite_array('effort', effort, MotionError)
        if not (measured.shape == deviation.shape == (n,) and motion.ndim == 2):
            raise MotionError(
                f'motion, effort and its deviation have shapes {motion.shape}, {measured.shape} '
                f'and {deviation.shape}, expected (K, {n}) and twice ({n},).'
            )
        return motion, measured, deviation

    def _is_misfit(self, misses: Array, step: float) -> bool:
        """Whether a measurement does not fit, as in a contact; what has lasted begins anew.

        Parameters
        ----------
        misses : ndarray, shape (n,)
            Squared innovations over their variances.
        step : float
            Time since the measurement before [s].
        """
        is_misfit = self.samples > 5.0 * _FIRST_GUESS and misses.max() > _OUTLIER**2
        share = 1.0 - exp(-step * _PATIENCE / _CONTACT)
        self._misfit += share * (is_misfit - self._misfit)
        if is_misfit:
            self.outliers += 1
            if self._misfit > 1.0 - exp(-_PATIENCE):
                self._forget()
        return bool(is_misfit)

    def _inflation(self, noise: Array, gain: Array) -> Array:
        """Factor (n,) of the variance of noise that repeats itself and so tells less.

        As much as that of an AR(1) process; normalised noise (n,), gains (n,) of its averages.
        """
        self._power += gain * (noise**2 - self._power)
        self._repeated += gain * (noise * self._last - self._repeated)
        self._last = noise
        repeated = np.clip(self._repeated / self._power, 0.0, _MOST_REPEATED)
        inflation: Array = (1.0 + repeated) / (1.0 - repeated)
        return inflation

    def _note_drift(self, noise: Array, inflation: Array, step: float, moving: int) -> None:
        """Note how far innovations have a mean, and set by what variances are too small.

        A mean says that parameters have changed, or that the model is wrong.

        Parameters
        ----------
        noise, inflation : ndarray, shape (n,)
            Normalised innovations, and the factor of their variance.
        step : float
            Time since the measurement before [s].
        moving : int
            Joints whose innovations count, at least one.
        """
        window = 1.0 - exp(-max(step, 1e-6) / (_WINDOW * self._memory))
        self._drift += window * (noise - self._drift)
        surprise = (self._drift**2 / inflation).sum() / moving * (2.0 / window - 1.0)
        self._excess = max(1.0, surprise / _SURPRISE)

    def _columns(self, motion: Array) -> Array:
        """Effects of the scaled parameters on the efforts.

        Parameters
        ----------
        motion : ndarray, shape (3, n)

        Returns
        -------
        ndarray, shape (n, p)
            Inertial parameters of the payload if there are any, viscous and Coulomb friction of
            each joint that is looked at, constant errors of the n efforts.
        """
        n, joints = self._model.n_joints, self._friction
        A = np.zeros((n, len(self._scale)))
        if self._carrier:
            own, to_body = self._carrier
            A[:, :10] = regressor(self._model, motion)[0][:, own] @ to_body
        viscous, rates = self._first + 2 * np.arange(len(joints)), motion[1, joints]
        A[joints, viscous], A[joints, viscous + 1] = (
            rates,
            _COULOMB.effort(rates[:, None])[:, 0],
        )
        A[:, -n:] = np.eye(n)
        return np.asarray(A * self._scale)
