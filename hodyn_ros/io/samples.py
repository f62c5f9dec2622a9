"""What files hold: samples of a motion, and the results that were computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.robot import MotorMotion
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.names import joint_order, listed

Array = NDArray[np.float64]

QUANTITIES = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
"""Names of the orders of a motion in files."""

EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
"""Names of the orders of the efforts in files."""

SOURCES = {'unknown': 0, 'given': 1, 'waypoints': 2, 'measured': 3}
"""Where a motion comes from, with the constants SOURCE_* of hodyn_msgs/JointEffort."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of a motion as a file holds them; what it leaves out is not there either.

    Raises
    ------
    MotionError
        If shapes do not fit, or a time or position is not finite.
    JointNameError
        If a joint is named more than once, or none is.
    """

    joint_names: tuple[str, ...]
    """Names of the n joints, in the order of the last axis of `motion`."""
    times: Array
    """Shape (N,) [s], counted from `start`."""
    motion: Array
    """Positions and as many derivatives as there are, shape (N, K, n), K >= 1 [rad/s^k] or
    [m/s^k]. NaN: a derivative that this sample does not have."""
    wrenches: tuple[Wrench, ...] = ()
    """Wrenches on links, each with values of shape (N, S, 6), S >= 1."""
    stiffness: Mapping[str, Array] = field(default_factory=dict)
    """Wanted stiffness of joints with its derivatives, by the joint, shape (N, S), S >= 1
    [N m/rad]."""
    name: str = 'the motion'
    """Where the samples come from, for messages."""
    is_waypoints: bool = False
    """Whether the motion between the samples is open, as between the points of a trajectory."""
    is_measured: bool = False
    """Whether the samples are measurements, with noise."""
    start: int = 0
    """Instant at which the times are zero, in nanoseconds since 1970; 0: not placed in time."""
    first: int = 0
    """Number of samples that came before these from the same source."""

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.joint_names)
        if not names:
            raise JointNameError(f'{self.name}: there are no joints, expected at least one.')
        if len(set(names)) != len(names):
            repeated = {name for name in names if names.count(name) > 1}
            raise JointNameError(f'{self.name}: {listed(sorted(repeated))} more than once.')
        times = _numbers(self.times, f'{self.name}: times')
        motion = _numbers(self.motion, f'{self.name}: motion')
        if times.ndim != 1:
            raise MotionError(f'{self.name}: times has shape {times.shape}, expected (N,).')
        if (
            motion.ndim != 3
            or motion.shape[1] < 1
            or motion.shape[::2] != (len(times), len(names))
        ):
            raise MotionError(
                f'{self.name}: motion has shape {motion.shape}, expected ({len(times)}, K, '
                f'{len(names)}): samples, orders from the position on, joints.'
            )
        _refuse_not_finite(self, times, 'time')
        _refuse_not_finite(self, motion[:, 0], 'position', names)
        if np.isinf(motion).any():
            row, order, joint = (int(i) for i in np.argwhere(np.isinf(motion))[0])
            raise MotionError(
                f'{self.name}: derivative {order} of joint {names[joint]!r} is infinite at sample '
                f'{self.first + row} (t = {times[row]:g} s); expected a number.'
            )
        wrenches = tuple(self.wrenches)
        for wrench in wrenches:
            shape = np.shape(wrench.values)
            if len(shape) != 3 or shape[0] != len(times):
                raise MotionError(
                    f'{self.name}: the wrench on {wrench.link!r} has shape {shape}, expected '
                    f'({len(times)}, S, 6): as many samples as the motion.'
                )
        stiffness = {}
        for joint_name, values in self.stiffness.items():
            series = _numbers(values, f'{self.name}: stiffness of {joint_name!r}')
            if series.ndim != 2 or len(series) != len(times) or not np.isfinite(series).all():
                raise MotionError(
                    f'{self.name}: the stiffness of {joint_name!r} has shape {series.shape}, '
                    f'expected finite numbers of shape ({len(times)}, S).'
                )
            stiffness[joint_name] = series
        for what, value in (
            ('joint_names', names),
            ('times', times),
            ('motion', motion),
            ('wrenches', wrenches),
            ('stiffness', stiffness),
        ):
            object.__setattr__(self, what, value)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)

    def part(self, first: int, last: int) -> Samples:
        """Cut out the samples from `first` up to, without, `last`."""
        rows = slice(first, last)
        return replace(
            self,
            times=self.times[rows],
            motion=self.motion[rows],
            wrenches=tuple(replace(w, values=np.asarray(w.values)[rows]) for w in self.wrenches),
            stiffness={name: series[rows] for name, series in self.stiffness.items()},
            first=self.first + first,
        )

    def in_order(self, joint_names: Sequence[str]) -> tuple[Samples, tuple[str, ...]]:
        """Choose some of the joints, matched by name.

        Parameters
        ----------
        joint_names : sequence of str
            All of them have to be there.

        Returns
        -------
        Samples
            With the joints in this order.
        tuple of str
            Joints that were left out.

        Raises
        ------
        JointNameError
            If a joint is missing.
        """
        wanted = tuple(joint_names)
        if wanted == self.joint_names:
            return self, ()
        missing = [name for name in wanted if name not in self.joint_names]
        if missing:
            raise JointNameError(
                f'{self.name}: {listed(missing)} missing; it has {listed(self.joint_names)}.'
                + (' Is it a motion of another robot?' if missing == list(wanted) else '')
            )
        used = [name for name in self.joint_names if name in set(wanted)]
        unused = tuple(name for name in self.joint_names if name not in set(wanted))
        places = [self.joint_names.index(used[i]) for i in joint_order(used, wanted)]
        return replace(self, joint_names=wanted, motion=self.motion[:, :, places]), unused


@dataclass(frozen=True, eq=False)
class Results:
    """Efforts along a motion, and what the motors do meanwhile; see `compute`."""

    joint_names: tuple[str, ...]
    """The n joints, in the order of the model."""
    times: Array
    """Shape (N,) [s], counted from `start`."""
    motion: Array
    """Shape (N, K, n) [rad/s^k] or [m/s^k]. NaN where an order is not known."""
    effort: Array
    """`[:, m]` is the m-th time derivative of the efforts, shape (N, E, n) [N m/s^m] or [N/s^m].
    NaN where the motion does not determine it."""
    motors: MotorMotion | None = None
    """Positions (N, R, m) and torques (N, T, m) of the motors, deflections (N, R, n); None without
    actuators. NaN as in `effort`."""
    motor_names: tuple[str, ...] = ()
    """The m motors."""
    motor_joints: tuple[str, ...] = ()
    """The joint that each of them moves."""
    name: str = 'the results'
    """Where the motion comes from, for messages."""
    start: int = 0
    """Instant at which the times are zero, in nanoseconds since 1970; 0: not placed in time."""
    source: str = 'unknown'
    """Where the motion comes from, a key of `SOURCES`."""
    base_link: str = ''
    """Base link of the model."""
    delay: float = 0.0
    """How far the values lie behind the measurements that they are estimated from [s]."""
    continuous_order: int = 2
    """Highest derivative of the efforts that is continuous along the motion, at most 2; -1 if the
    efforts themselves jump. Of a motion that is given by its samples it is not known, and all are
    taken for continuous."""
    remarks: tuple[str, ...] = ()
    """What was given, what was supplied, and what else one should know."""
    wrenches: tuple[Wrench, ...] = ()
    """What was applied, each with values of shape (N, S, 6)."""

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)


def join_results(parts: Sequence[Results]) -> Results:
    """Results of consecutive parts of a motion as one.

    Parameters
    ----------
    parts : sequence of Results
        At least one, of the same joints. Where they have different orders, what some of them do
        not have is NaN.

    Returns
    -------
    Results
        With the times counted from the start of the first part.
    """
    head = parts[0]
    if len(parts) == 1:
        return head
    motors = None
    if head.motors is not None:
        found = [part.motors for part in parts if part.motors is not None]
        motors = MotorMotion(*(joined([motor[i] for motor in found]) for i in range(3)))
    remarks = dict.fromkeys(remark for part in parts for remark in part.remarks)
    return replace(
        head,
        times=np.concatenate([times_from(part, head.start) for part in parts]),
        motion=joined([part.motion for part in parts]),
        effort=joined([part.effort for part in parts]),
        motors=motors,
        remarks=tuple(remarks),
        wrenches=tuple(
            replace(wrench, values=joined([np.asarray(part.wrenches[i].values) for part in parts]))
            for i, wrench in enumerate(head.wrenches)
        ),
    )


def times_from(part: Samples | Results, start: int) -> Array:
    """Count the times [s] of a part from another start [ns]."""
    if part.start == start:
        return part.times
    return part.times + 1e-9 * (part.start - start)


def joined(arrays: list[Array]) -> Array:
    """Join arrays (N, K, n) along the samples, with NaN where some have fewer orders K."""
    orders = max(array.shape[1] for array in arrays)
    result = np.full((sum(map(len, arrays)), orders, arrays[0].shape[2]), np.nan)
    first = 0
    for array in arrays:
        result[first : first + len(array), : array.shape[1]] = array
        first += len(array)
    return result


def _numbers(values: ArrayLike, what: str) -> Array:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in 'fiu':
            raise TypeError(f'elements of type {array.dtype}')
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MotionError(f'{what} is not an array of numbers: {error}.') from error


def _refuse_not_finite(
    samples: Samples, values: Array, what: str, names: Sequence[str] | None = None
) -> None:
    if np.isfinite(values).all():
        return
    where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
    joint = '' if names is None else f' of joint {names[where[1]]!r}'
    raise MotionError(
        f'{samples.name}: the {what}{joint} is {values[where]} at sample '
        f'{samples.first + where[0]}; expected a finite number.'
    )
