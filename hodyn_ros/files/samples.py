"""What files hold: samples of a motion, and the results that were computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import Array, first_true
from hodyn_ros.display import shown, table
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.files.quantities import MOTOR_ARRAYS, QUANTITIES
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import listed, unit_of

if TYPE_CHECKING:
    from hodyn_ros.actuators.motors import MotorMotion
    from hodyn_ros.dynamics.wrenches import Wrench
    from hodyn_ros.model.robot import RobotModel

SOURCES = {'unknown': 0, 'given': 1, 'waypoints': 2, 'measured': 3}
"""Where a motion comes from, with the constants SOURCE_* of hodyn_msgs/JointEffort."""

MEASURED = ('effort', 'motor_position', 'motor_torque')
"""What samples may hold beside the motion, by joint."""

_EFFORTS = {0: 'effort', 1: 'effort rate'}
_MOST_ROWS = 20  # of the table in a notebook

LACKING = 'At the beginning, samples without the positions of all joints are left out: {}.'
"""Remark on samples of hardware that is not active yet."""

POINT_FIELDS = ('positions', 'velocities', 'accelerations')
"""Of a point of trajectory_msgs/JointTrajectory."""


@shown
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
    effort: Array | None = None
    """Measured efforts of the joints, shape (N, n) [N m] or [N]; NaN where there is none."""
    motor_position: Array | None = None
    """Measured positions of the motors behind their gears, shape (N, n) [rad] or [m]."""
    motor_torque: Array | None = None
    """Measured torques of the motors behind their gears, shape (N, n) [N m] or [N]."""
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
    remarks: tuple[str, ...] = ()
    """What was left out or changed on the way from the file, and what is doubtful."""

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.joint_names)
        if not names:
            raise JointNameError(
                f'{self.name}: there are no joints, expected at least one.'
            )
        if len(set(names)) != len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise JointNameError(f'{self.name}: {listed(repeated)} more than once.')
        checked: dict[str, Any] = {
            'joint_names': names,
            'times': _numbers(self.times, f'{self.name}: times'),
            'motion': _numbers(self.motion, f'{self.name}: motion'),
            'wrenches': tuple(self.wrenches),
        }
        self._refuse_motion(names, checked['times'], checked['motion'])
        N = len(checked['times'])
        for what in MEASURED:
            if (given := getattr(self, what)) is not None:
                checked[what] = self._checked_measured(what, given, (N, len(names)))
        for wrench in self.wrenches:
            shape = np.shape(wrench.values)
            if len(shape) != 3 or shape[0] != N:
                raise MotionError(
                    f'{self.name}: the wrench on {wrench.link!r} has shape {shape}, expected '
                    f'({N}, S, 6): as many samples as the motion.'
                )
        checked['stiffness'] = {
            name: self._checked_stiffness(name, values, N)
            for name, values in self.stiffness.items()
        }
        for what, value in checked.items():
            object.__setattr__(self, what, value)

    def _checked_stiffness(self, joint_name: str, values: ArrayLike, N: int) -> Array:
        """Finite stiffness of a joint with its derivatives, shape (N, S)."""
        series = _numbers(values, f'{self.name}: stiffness of {joint_name!r}')
        if series.ndim != 2 or len(series) != N or not np.isfinite(series).all():
            raise MotionError(
                f'{self.name}: the stiffness of {joint_name!r} has shape {series.shape}, '
                f'expected finite numbers of shape ({N}, S).'
            )
        return series

    def _refuse_motion(self, names: tuple[str, ...], times: Array, motion: Array) -> None:
        """Refuse other shapes, and times and positions that are not finite."""
        N = len(times)
        if times.ndim != 1:
            raise MotionError(f'{self.name}: times has shape {times.shape}, expected (N,).')
        if motion.ndim != 3 or motion.shape[1] < 1 or motion.shape[::2] != (N, len(names)):
            raise MotionError(
                f'{self.name}: motion has shape {motion.shape}, expected ({N}, K, '
                f'{len(names)}): samples, orders from the position on, joints.'
            )
        is_unknown = ~np.isfinite(motion)
        if is_unknown.any():
            is_unknown[:, 1:] &= ~np.isnan(motion[:, 1:])
        for where, values in ((~np.isfinite(times), times), (is_unknown, motion)):
            if (place := first_true(where)) is None:
                continue
            what = 'time'
            if values is motion:
                what = f'derivative {place[1]}' if place[1] else 'position'
                what += f' of joint {names[place[2]]!r}'
            raise MotionError(
                f'{self.name}: the {what} is {values[place]} at sample {self.first + place[0]}; '
                'expected a finite number.'
            )

    def _checked_measured(
        self, what: str, given: ArrayLike, shape: tuple[int, int]
    ) -> Array:
        values = _numbers(given, f'{self.name}: {what}')
        if values.shape != shape:
            raise MotionError(
                f'{self.name}: {what} has shape {values.shape}, expected {shape}, one for each '
                'sample and joint.'
            )
        return np.where(np.isinf(values), np.nan, values)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)

    def in_order(self, joint_names: Sequence[str]) -> tuple[Samples, tuple[str, ...]]:
        """Choose some of the joints by name.

        Parameters
        ----------
        joint_names : sequence of str
            Joints that are wanted, each once.

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
        unused = tuple(name for name in self.joint_names if name not in wanted)
        places = [self.joint_names.index(name) for name in wanted]
        measured = self.measured_at((slice(None), places))
        chosen = replace(
            self, joint_names=wanted, motion=self.motion[:, :, places], **measured
        )
        return chosen, unused

    def measured_at(self, index: Any) -> dict[str, Any]:
        """What is measured beside the motion at an index of samples and joints, by its name.

        Parameters
        ----------
        index : index of an array of shape (N, n)
            Of samples and joints.

        Returns
        -------
        dict of str to (ndarray or None)
            For each of `MEASURED`; None where it was not measured.
        """
        measured = {what: getattr(self, what) for what in MEASURED}
        return {what: None if v is None else v[index] for what, v in measured.items()}


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
    motion_std: Array | None = None
    """Standard deviations of an estimated motion, shape (N, K, n); NaN where one is not known.
    None: it is not estimated."""
    effort_std: Array | None = None
    """Those of the efforts that follow from them, shape (N, E, n)."""
    joint_units: tuple[str, ...] = ()
    """Unit of the position of each joint, 'rad' or 'm'; empty if it is not known."""
    provenance: Provenance = Provenance()
    """The robot that they were computed with."""

    @classmethod
    def of_model(
        cls, model: RobotModel, times: Array, motion: Array, effort: Array, **fields: Any
    ) -> Results:
        """Results of a model, which says joints, units, base link and provenance.

        Parameters
        ----------
        model : RobotModel
            The robot, of n joints.
        times : ndarray, shape (N,)
            [s]
        motion : ndarray, shape (N, K, n)
            [rad/s^k] or [m/s^k]
        effort : ndarray, shape (N, E, n)
            [N m/s^m] or [N/s^m]
        **fields
            Other fields of `Results`.

        Returns
        -------
        Results
        """
        units = tuple('m' if kind == 'prismatic' else 'rad' for kind in model.joint_types)
        return cls(
            model.joint_names,
            times,
            motion,
            effort,
            base_link=model.base_link,
            joint_units=units,
            provenance=model.provenance,
            **fields,
        )

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)

    @property
    def units(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Units of the orders of each joint or motor, as the last two axes of the arrays.

        ``units['effort'][1][0]`` is that of ``effort[:, 1, 0]``. Likewise 'motion', their standard
        deviations 'effort_std' and 'motion_std' and, of motors, 'motor_position', 'motor_torque'
        and 'deflection'. Empty if they are not known.

        Returns
        -------
        dict of str to tuple of tuple of str
            By the array: orders, then joints or motors.
        """
        if not self.joint_units:
            return {}
        joints = dict(zip(self.joint_names, self.joint_units))
        found = {}
        for what, values in self.arrays().items():
            quantity = QUANTITIES[what]
            of_motors = quantity.owners == 'motor_names'
            is_linear = [
                joints[name] == 'm'
                for name in (self.motor_joints if of_motors else self.joint_names)
            ]
            found[what] = tuple(
                tuple(unit_of(quantity.unit, linear, order) for linear in is_linear)
                for order in range(values.shape[1])
            )
        return found

    def arrays(self) -> dict[str, Array]:
        """Quantities that there are, by their names in `QUANTITIES`.

        Returns
        -------
        dict of str to ndarray, shape (N, orders, joints or motors)
        """
        found = {
            'motion': self.motion,
            'effort': self.effort,
            'motion_std': self.motion_std,
            'effort_std': self.effort_std,
            **dict(zip(MOTOR_ARRAYS, self.motors or ())),
        }
        return {what: values for what, values in found.items() if values is not None}

    def with_arrays(self, arrays: Mapping[str, Array], **fields: Any) -> Results:
        """Results with other arrays.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            All that `arrays` has.
        **fields
            Other fields of `Results` that change.

        Returns
        -------
        Results
        """
        rest: dict[str, Any] = dict(arrays)
        if self.motors is not None:
            fields['motors'] = type(self.motors)(*map(rest.pop, MOTOR_ARRAYS))
        return replace(self, **rest, **fields)

    def __repr__(self) -> str:
        """Return what they are, in one line."""
        motors = '' if self.motors is None else f', {len(self.motor_names)} motors'
        return f'<Results of {self._summary()}{motors}; {self.provenance}>'

    def _summary(self) -> str:
        span = f' from {self.times[0]:g} to {self.times[-1]:g} s' if len(self) else ''
        return (
            f'{self.name}: {len(self.joint_names)} joints, {len(self)} samples{span}, '
            f'{self.motion.shape[1]} orders of the motion, {self.effort.shape[1]} of the efforts'
        )

    def _repr_html_(self) -> str:
        """Return a table of the largest efforts."""
        units = self.units.get('effort', ())
        head = ['largest']
        for order in range(self.effort.shape[1]):
            unit = ', '.join(dict.fromkeys(units[order])) if units else 'unit not known'
            head.append(f'{_EFFORTS.get(order, f"derivative {order}")} [{unit}]')
        peaks = np.fmax.reduce(np.abs(self.effort), axis=0, initial=np.nan).T
        rows = [
            [name, *(f'{x:.4g}' for x in row)] for name, row in zip(self.joint_names, peaks)
        ]
        if len(rows) > _MOST_ROWS:
            rows = [*rows[:_MOST_ROWS], [f'and {len(rows) - _MOST_ROWS} more']]
        return table(f'{self._summary()}; {self.provenance}', head, rows)


Part = TypeVar('Part', Samples, Results)


def waypoint_samples(
    name: str,
    joint_names: Sequence[str],
    times: Array,
    points: Sequence[Sequence[Any]],
    start: int,
) -> Samples:
    """Samples of points with positions, velocities and accelerations, empty if unknown.

    Parameters
    ----------
    name : str
        Where they come from, for messages.
    joint_names : sequence of str
        The n joints.
    times : ndarray, shape (N,)
        [s], counted from `start`.
    points : sequence of sequences
        N points, each with the rows of `POINT_FIELDS`: n values, or none where a derivative
        is not known.
    start : int
        Instant at which the times are zero, in nanoseconds since 1970.

    Returns
    -------
    Samples
        Waypoints, with the orders up to the highest that any point has.

    Raises
    ------
    MotionError
        If a row has another number of values, or a position is missing or not finite.
    JointNameError
        If a joint is named twice.
    """
    motion = np.full((len(times), len(POINT_FIELDS), len(joint_names)), np.nan)
    for i, point in enumerate(points):
        for k, values in enumerate(point):
            if len(values) == len(joint_names):
                motion[i, k] = values
            elif len(values) or k == 0:
                raise MotionError(
                    f'{name}: points[{i}].{POINT_FIELDS[k]} has {len(values)} values, expected '
                    f'{len(joint_names)}, one for each joint.'
                )
    used = [k for k in range(len(POINT_FIELDS)) if not np.isnan(motion[:, k]).all()]
    motion = motion[:, : max(used, default=0) + 1]
    return Samples(
        tuple(joint_names), times, motion, name=name, is_waypoints=True, start=start
    )


def leading_unknown(positions: Array) -> int:
    """Count the samples before the first one with all positions.

    Parameters
    ----------
    positions : ndarray, shape (N, n)
        NaN where one is not known, as of hardware that is not active yet.

    Returns
    -------
    int
        From 0 to N.
    """
    known = ~np.isnan(positions).any(axis=1)
    return int(known.argmax()) if known.any() else len(positions)


def join_results(parts: Sequence[Part]) -> Part:
    """Results of consecutive parts of a motion as one; likewise samples.

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
    changes: dict[str, Any] = {
        'times': np.concatenate([times_from(part, head.start) for part in parts]),
        'wrenches': tuple(
            replace(same[0], values=_of_known_orders([np.asarray(w.values) for w in same]))
            for same in zip(*(part.wrenches for part in parts))
        ),
    }
    changes['remarks'] = tuple(
        dict.fromkeys(remark for part in parts for remark in part.remarks)
    )
    if isinstance(head, Samples):
        return replace(head, **changes, **_joined_samples(parts))  # type: ignore[arg-type]
    every = [part.arrays() for part in parts]
    arrays = {what: _with_gaps([arrays[what] for arrays in every]) for what in every[0]}
    return head.with_arrays(arrays, **changes)


def _joined_samples(parts: Sequence[Samples]) -> dict[str, Any]:
    """What samples hold beside times and wrenches."""
    stiffness = {
        name: _of_known_orders([part.stiffness[name] for part in parts])
        for name in parts[0].stiffness
    }
    measured = {
        what: np.concatenate([getattr(part, what) for part in parts])
        for what in MEASURED
        if getattr(parts[0], what) is not None
    }
    motion = _with_gaps([part.motion for part in parts])
    return {'motion': motion, 'stiffness': stiffness, **measured}


def times_from(part: Samples | Results, start: int) -> Array:
    """Count the times [s] of a part from another start [ns].

    Parameters
    ----------
    part : Samples or Results
        With times counted from its own start.
    start : int
        In nanoseconds since 1970.

    Returns
    -------
    ndarray, shape (N,)
        [s]
    """
    return part.times if part.start == start else part.times + 1e-9 * (part.start - start)


def known_orders(values: Array) -> NDArray[np.intp]:
    """Count the leading orders, along axis 1 of (N, K, n), that are known at each sample, (N,).

    Parameters
    ----------
    values : ndarray, shape (N, K, n)
        NaN where an order is not known.

    Returns
    -------
    ndarray of int, shape (N,)
        From 0 to K; an order counts if all n values are known, and all orders below it.
    """
    gaps = np.isnan(values)
    if not gaps.any():
        return np.full(len(values), values.shape[1], dtype=np.intp)
    known = ~gaps.any(axis=2)
    return np.asarray(np.logical_and.accumulate(known, axis=1).sum(axis=1), dtype=np.intp)


def _with_gaps(arrays: Sequence[Array]) -> Array:
    """Join arrays (N, K, n) along the samples, with NaN where some have fewer orders K."""
    orders = max(array.shape[1] for array in arrays)
    result = np.full((sum(map(len, arrays)), orders, arrays[0].shape[2]), np.nan)
    first = 0
    for array in arrays:
        result[first : first + len(array), : array.shape[1]] = array
        first += len(array)
    return result


def _of_known_orders(arrays: Sequence[Array]) -> Array:
    """Join arrays (N, S, ...) along the samples, with the orders S that all of them have."""
    fewest = min(array.shape[1] for array in arrays)
    return np.concatenate([array[:, :fewest] for array in arrays])


def _numbers(values: ArrayLike, what: str) -> Array:
    """Array of real numbers as float64; `what` names it in the `MotionError` for anything else."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in 'fiu':
            raise TypeError(f'elements of type {array.dtype}')
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MotionError(f'{what} is not an array of numbers: {error}.') from error
