"""Joint states as measured: their joints matched, their derivatives estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import JointNameError, MotionError, StaleError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.ros.conversions import NANOSECONDS, nanoseconds
from hodyn_ros.ros.settings import EstimatorSettings, Settings
from hodyn_ros.ros.timeline import State
from hodyn_ros.trajectory.estimator import DerivativeEstimator, Estimate

Array = NDArray[np.float64]

_WRENCH_COMPONENTS = 6
_HIGHEST_WRENCH_DERIVATIVE = 2
_SMALLEST_FORCE = 1.0  # N, of an oscillation whose derivatives are of interest

TURN = 2.0 * np.pi

# A speed that is no larger than so many of its standard deviations is none.
_STANDING = 3.0


class MeasuredMotion:
    """Estimates the motion of a robot from its joint states.

    Parameters
    ----------
    settings : EstimatorSettings
    """

    def __init__(self, settings: EstimatorSettings) -> None:
        self._settings = settings
        self._joint_names: tuple[str, ...] = ()
        self._estimator: DerivativeEstimator | None = None
        self._names: list[str] = []
        self._order: list[int] = []
        self._last_believed = 0
        self._turns = np.zeros(0, dtype=np.bool_)
        self._last_position = np.zeros(0)
        self._last_stamp = 0
        self.latest: Estimate | None = None
        self.gap = 0.0
        """Time without measurements before the latest one, if it made the estimate start anew."""

    @property
    def settings(self) -> EstimatorSettings:
        """How the motion is estimated; setting it starts anew."""
        return self._settings

    @settings.setter
    def settings(self, settings: EstimatorSettings) -> None:
        self._settings = settings
        self._start()

    @property
    def dropped(self) -> int:
        """Number of measurements that came too late to be used."""
        return 0 if self._estimator is None else self._estimator.dropped

    def use_joints(self, names: tuple[str, ...], types: tuple[str, ...]) -> None:
        """Estimate the motion of these joints, of these types, from now on."""
        turns = [kind == 'continuous' for kind in types]
        if names != self._joint_names or turns != self._turns.tolist():
            self._joint_names, self._turns = names, np.array(turns)
            self._start()

    def reset(self) -> None:
        """Forget all measurements."""
        self.latest = None
        self._last_position = np.zeros(0)
        if self._estimator is not None:
            self._estimator.reset()

    def update(self, message: JointState, now: int, timeout: float) -> Estimate | None:
        """Take a measurement.

        Parameters
        ----------
        message : sensor_msgs.msg.JointState
            Further joints are ignored, and so are messages about other joints alone.
        now : int
            Time of the node [ns].
        timeout : float
            Largest distance of the stamp from now [s]; 0: any.

        Returns
        -------
        Estimate or None
            None as long as nothing is vouched for.

        Raises
        ------
        JointNameError
            If some but not all joints are there, or one more than once.
        MotionError
            If values are missing or not finite, or the stamp is too far from now.
        """
        order = self._indices(list(message.name))
        if self._estimator is None or not order:
            return None
        position = self._unwrapped(_positions(message, order, self._joint_names))
        stamp = _checked_stamp(message, now, timeout)
        gaps = self._estimator.gaps
        estimate = self._estimator.update(stamp, position)
        is_gap = self._estimator.gaps > gaps
        if is_gap or stamp > self._last_stamp:
            self._last_position, self._last_stamp = position, stamp
        # The first one behind a gap is not believed before the second one.
        self.gap = abs(stamp - self._last_believed) / NANOSECONDS if is_gap else 0.0
        if is_gap or estimate is not None:
            self.latest = estimate
            self._last_believed = stamp
        return estimate

    def state(self, now: int, timeout: float) -> State | None:
        """Return position and speed near an instant, to start a motion from; None if unknown.

        Parameters
        ----------
        now : int
            [ns]
        timeout : float
            Largest age of the latest measurement [s]; 0: any.
        """
        stamp = self._last_stamp
        if (
            self._estimator is None
            or not len(self._last_position)
            or (timeout and abs(now - stamp) > timeout * NANOSECONDS)
        ):
            return None
        motion = np.full((5, len(self._joint_names)), np.nan)  # NaN: not known
        motion[0] = self._last_position
        latest = self._estimator.at(max(now, stamp))
        if latest is not None:
            motion[0] = latest.motion[0]
        if latest is not None and latest.valid_order >= 1:
            velocity, std = latest.motion[1], latest.std[1]
            if np.any(np.abs(velocity) > _STANDING * std):
                motion[1] = velocity
            else:
                motion[1:] = 0.0
        return State(motion, False, stamp, 'as measured')

    def _start(self) -> None:
        settings = self._settings
        self.latest = None
        self._last_position = np.zeros(0)
        self._names, self._order = [], []
        self._estimator = None
        if settings.enabled and self._joint_names:
            self._estimator = joint_estimator(settings, len(self._joint_names))

    def _unwrapped(self, position: Array) -> Array:
        """Positions of continuous joints without the turns after which encoders start anew."""
        if not (self._turns.any() and len(self._last_position)):
            return position
        turns = np.round((self._last_position - position) / TURN)
        return np.where(self._turns, position + TURN * turns, position)

    def _indices(self, names: list[str]) -> list[int]:
        """Places of the joints among names; none if the message is about other joints."""
        if names == self._names:
            return self._order
        places = {name: index for index, name in enumerate(names)}
        missing = [name for name in self._joint_names if name not in places]
        if missing and len(missing) < len(self._joint_names):
            raise JointNameError(
                f'JointState: {listed(missing)} missing beside {listed(places)}; expected all '
                f'joints of the robot in one message: {listed(self._joint_names)}. Merge what '
                'several drivers send, or set tip_link to the end of the chain that is measured.'
            )
        repeated = [name for name in self._joint_names if names.count(name) > 1]
        if repeated:
            raise JointNameError(f'JointState: {listed(repeated)} more than once.')
        self._names = names
        self._order = [] if missing else [places[name] for name in self._joint_names]
        return self._order


def _positions(message: JointState, order: list[int], names: Sequence[str]) -> Array:
    if len(message.position) != len(message.name):
        raise MotionError(
            f'JointState: it has {len(message.position)} positions for {len(message.name)} names; '
            'expected one for each.'
        )
    position = np.asarray(message.position, dtype=np.float64)[order]
    if not np.isfinite(position).all():
        joint = int(np.argmin(np.isfinite(position)))
        raise MotionError(
            f'JointState: position of joint {names[joint]!r} is {position[joint]}; all positions '
            'must be finite.'
        )
    return position


def _checked_stamp(message: JointState, now: int, timeout: float) -> int:
    stamp = nanoseconds(message.header.stamp) or now
    age = (now - stamp) / NANOSECONDS
    if timeout and abs(age) > timeout:
        where = f'{age:.3f} s in the past' if age > 0.0 else f'{-age:.3f} s in the future'
        raise StaleError(
            f'JointState: the stamp lies {where}, more than input_timeout ({timeout} s) away. The '
            'clocks of sender and node must agree. For recorded data, set use_sim_time and play '
            'the clock, or set input_timeout to 0.'
        )
    return stamp


def effort_deviations(
    model: RobotModel,
    motion: Array,
    effort: Array,
    wrenches: Sequence[Wrench],
    factor: Array | None = None,
    wrench_deviations: Sequence[Array | None] = (),
) -> Array | None:
    """Carry standard deviations over from motion and wrenches to efforts, to first order.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (K, n)
    effort : ndarray, shape (K - 2, n)
        Of this motion.
    wrenches : sequence of Wrench
    factor : ndarray, shape (n, >= K, >= K), optional
        Cholesky factor of the covariance of the derivatives of every joint, each independent of
        the others. None: the motion is exact.
    wrench_deviations : sequence of ndarray, shape (S, K - 2, 6), or None
        For every wrench, independent deviations of one standard deviation. None: it is exact.

    Returns
    -------
    ndarray, shape (K - 2, n), or None
        None if all is exact.
    """
    K, n = motion.shape
    found = []
    if factor is not None:
        steps = np.zeros((n, K, K, n))  # joint, column of its factor, derivative, joint
        joints = np.arange(n)
        steps[joints, :, :, joints] = np.swapaxes(factor[:, :K, :K], 1, 2)
        disturbed = motion + steps.reshape(n * K, K, n)
        found.append(inverse_dynamics(model, disturbed, wrenches or None) - effort)
    for index, deviations in enumerate(wrench_deviations):
        if deviations is not None:
            others = list(wrenches)
            others[index] = replace(others[index], values=others[index].values + deviations)
            motions = np.broadcast_to(motion, (len(deviations), K, n))
            found.append(inverse_dynamics(model, motions, others) - effort)
    if not found:
        return None
    result: Array = np.sqrt(np.square(np.concatenate(found)).sum(axis=0))
    return result


def joint_estimator(settings: EstimatorSettings, n_joints: int) -> DerivativeEstimator:
    """Estimator of joint motions, up to what the highest wanted order of the effort needs."""
    return DerivativeEstimator(
        n_joints,
        highest_derivative=settings.highest_order + 2,
        delay=settings.delay,
        noise=settings.noise or None,
        bandwidth=settings.bandwidth or None,
        max_gap=settings.max_gap,
    )


def wrench_estimator(settings: Settings) -> DerivativeEstimator:
    """Estimator of the components of a wrench and their derivatives."""
    return DerivativeEstimator(**_wrench_options(settings))


def is_wrench_estimated_alike(settings: Settings, others: Settings) -> bool:
    """Whether two settings lead to the same estimator of wrenches."""
    return _wrench_options(settings) == _wrench_options(others)


def _wrench_options(settings: Settings) -> dict[str, Any]:
    sensor, joints = settings.wrench, settings.estimator
    return {
        'n': _WRENCH_COMPONENTS,
        'highest_derivative': _HIGHEST_WRENCH_DERIVATIVE,
        # Motions that are estimated lag, and need the wrench of their own instant.
        'delay': max(sensor.delay, joints.delay) if joints.enabled else sensor.delay,
        'noise': sensor.noise or None,
        'bandwidth': sensor.bandwidth or None,
        'max_gap': sensor.timeout,
        'smallest_motion': _SMALLEST_FORCE,
    }
