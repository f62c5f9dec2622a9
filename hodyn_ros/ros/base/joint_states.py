"""Joint states as measured: their joints matched, their derivatives estimated."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from hodyn_ros.errors import JointNameError, StaleError
from hodyn_ros.names import listed
from hodyn_ros.ros.base.conversions import TURN, check_finite, nanoseconds, read_rows
from hodyn_ros.streams.timeline import NANOSECONDS, State
from hodyn_ros.trajectory.estimator import DerivativeEstimator, Estimate

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node_settings import EstimatorSettings

Array = NDArray[np.float64]

# A speed that is no larger than so many of its standard deviations is none.
_STANDING = 3.0


class MeasuredMotion:
    """Estimates the motion of a robot from its joint states."""

    def __init__(self) -> None:
        self._in_use: tuple[EstimatorSettings, tuple[str, ...], tuple[str, ...]] | None = None
        self._joint_names: tuple[str, ...] = ()
        self._turns = np.zeros(0, dtype=np.bool_)
        self.reset()

    def use(
        self, settings: EstimatorSettings, names: tuple[str, ...], types: tuple[str, ...]
    ) -> None:
        """Estimate the motion of these joints, of these types; anew if anything is different."""
        if (settings, names, types) != self._in_use:
            self._in_use, self._joint_names = (settings, names, types), names
            self._turns = np.array([kind == 'continuous' for kind in types])
            self.reset()

    def reset(self) -> None:
        """Forget all measurements."""
        self._last_position = np.zeros(0)
        self._last_stamp = 0
        self._estimator: DerivativeEstimator | None = None
        self.dropped = 0  # measurements that came too late to be used
        self.is_behind_gap = False  # whether the latest one made the estimate start anew
        if self._in_use is not None and self._in_use[0].enabled:
            settings = self._in_use[0]
            self._estimator = DerivativeEstimator(
                len(self._joint_names),
                highest_derivative=settings.highest_order + 2,
                delay=settings.delay,
                noise=settings.noise or None,
                bandwidth=settings.bandwidth or None,
                max_gap=settings.max_gap,
            )

    def update(self, message: JointState, now: int, timeout: float) -> Estimate | None:
        """Take a measurement; return the estimate, or None as long as nothing is known.

        Further joints are ignored, and so are messages about other joints alone. The stamp is no
        farther from now [ns] than the time-out [s]; 0: however far. What cannot be used raises
        JointNameError or MotionError.
        """
        measured = values_of('joint_states', message, ('position',), self._joint_names)
        estimator = self._estimator
        if estimator is None or measured is None:
            return None
        position = self._unwrapped(measured[0])
        stamp = nanoseconds(message.header.stamp) or now
        check_age('joint_states', stamp, now, timeout, 'input_timeout')
        gaps = estimator.gaps
        estimate = estimator.update(stamp, position)
        is_gap = self.is_behind_gap = estimator.gaps > gaps
        self.dropped = estimator.dropped
        if is_gap or stamp > self._last_stamp:
            self._last_position, self._last_stamp = position, stamp
        return estimate

    @property
    def latest(self) -> tuple[Array, int] | None:
        """Latest measured position (n,) and its stamp [ns]; None if there is none."""
        return (self._last_position, self._last_stamp) if len(self._last_position) else None

    def state(self, now: int, timeout: float) -> State | None:
        """Position and speed near an instant [ns], to start a motion from; None if unknown.

        The latest measurement is no older than the time-out [s]; 0: however old.
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
            if latest.valid_order >= 1:
                if np.any(np.abs(latest.motion[1]) > _STANDING * latest.std[1]):
                    motion[1] = latest.motion[1]
                else:
                    motion[1:] = 0.0
        return State(motion, False, stamp, 'as measured')

    def _unwrapped(self, position: Array) -> Array:
        """Positions of continuous joints without the turns after which encoders start anew."""
        if not (self._turns.any() and len(self._last_position)):
            return position
        turns = np.round((self._last_position - position) / TURN)
        return np.where(self._turns, position + TURN * turns, position)


def values_of(
    topic: str, message: JointState, fields: tuple[str, ...], wanted: tuple[str, ...]
) -> Array | None:
    """Values (fields, names) of the wanted names, in their order; None if none of them is there.

    Further names are ignored. Raises JointNameError or MotionError if it cannot be used.
    """
    names = tuple(message.name)
    places = _places(topic, names, wanted)
    if not places:
        return None
    values = read_rows(topic, message, fields, len(names), len(fields), 'name')[:, places]
    check_finite(topic, fields, wanted, values)
    return values


@lru_cache(maxsize=64)
def _places(topic: str, names: tuple[str, ...], wanted: tuple[str, ...]) -> list[int]:
    if set(names).isdisjoint(wanted):
        return []
    missing = [name for name in wanted if name not in names]
    repeated = [name for name in wanted if names.count(name) > 1]
    if missing or repeated:
        what = 'missing' if missing else 'repeated'
        raise JointNameError(
            f'{topic}: names do not fit ({what}: {listed(missing or repeated)}); expected each of '
            f'{listed(wanted)} once, in one message. Merge what several drivers send, or set '
            'tip_link to the end of the chain that is measured.'
        )
    return [names.index(name) for name in wanted]


def check_age(what: str, stamp: int, now: int, timeout: float, parameter: str) -> None:
    """Refuse a stamp that is farther from now [ns] than a time-out [s]; 0: it may be any."""
    age = (now - stamp) / NANOSECONDS
    if timeout and abs(age) > timeout:
        where = f'{abs(age):.3f} s in the {"past" if age > 0.0 else "future"}'
        raise StaleError(
            f'{what}: the stamp lies {where}, more than {parameter} ({timeout} s) away. The '
            'clocks of sender and node must agree. For recorded or simulated data, set '
            f'use_sim_time and play the clock, or set {parameter} to 0.'
        )
