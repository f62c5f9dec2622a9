"""What files hold: samples of a motion, with what was measured or computed beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import first_true
from hodyn_ros.display import Column, Table
from hodyn_ros.errors import FileError, JointNameError, MotionError
from hodyn_ros.files.quantities import MOTOR_ARRAYS, QUANTITIES
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.motors import MotorMotion
    from hodyn_ros.dynamics.wrenches import Wrench
    from hodyn_ros.model.robot import RobotModel

SOURCES = {'unknown': 0, 'given': 1, 'waypoints': 2, 'measured': 3}
"""Where a motion comes from, with the constants SOURCE_* of hodyn_msgs/JointEffort."""

_OWNERS = {
    what: quantity.owners for what, quantity in QUANTITIES.items() if quantity.owners
}
"""Fields that are arrays, and the field that names what their last axis counts."""

_TITLES = (
    'torque',
    'torque rate',
    'second derivative',
    'third derivative',
    'fourth derivative',
)

_OTHERS = (
    ' Is it a motion of another robot? If its joints have other names alone, say what its columns '
    "are in lines before the titles of a CSV, each such as '# column TITLE: JOINT.position'."
)

POINT_FIELDS = ('positions', 'velocities', 'accelerations')
"""Of a point of trajectory_msgs/JointTrajectory."""


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Samples of a motion, what was measured or computed beside it, and where they come from.

    Files hold them, and `compute` adds efforts and motors to them. What is not known is NaN;
    quantities that are not there at all have no orders, or are None.

    Raises
    ------
    MotionError
        If shapes do not fit, or a time is not finite or part of the motion infinite.
    JointNameError
        If a joint is named more than once, or none is.

    Examples
    --------
    >>> from hodyn_ros.files import Samples
    >>> samples = Samples(('elbow',), [0.0, 0.1], [[[0.2]], [[0.3]]], effort=[[1.0], [1.5]])
    >>> samples.effort.shape
    (2, 1, 1)
    """

    joint_names: tuple[str, ...]
    """Names of the n joints, in the order of the last axis of `motion`."""
    times: Array
    """Shape (N,) [s], counted from `start`."""
    motion: Array
    """Positions and as many derivatives as there are, shape (N, K, n), K >= 1 [rad/s^k] or
    [m/s^k]. NaN: what this sample does not have."""
    effort: Array = None  # type: ignore[assignment]
    """Efforts of the joints and their derivatives, `[:, m]` is the m-th one, shape (N, E, n)
    [N m/s^m] or [N/s^m]. E = 0 if there are none; of shape (N, n) they are taken for E = 1."""
    motor_position: Array | None = None
    """Positions of the m motors behind their gears and their derivatives, shape (N, R, m)
    [rad/s^k] or [m/s^k], or (N, m)."""
    motor_torque: Array | None = None
    """Torques of the motors behind their gears and their derivatives, shape (N, T, m) [N m/s^k] or
    [N/s^k], or (N, m)."""
    deflection: Array | None = None
    """Of the springs of the joints, shape (N, R, n) [rad/s^k] or [m/s^k]."""
    motor_names: tuple[str, ...] = ()
    """The m motors; by default one for each joint, with its name, if there is anything of them."""
    motor_joints: tuple[str, ...] = ()
    """The joint that each of them moves."""
    motion_std: Array | None = None
    """Standard deviations of an estimated motion, shape (N, K, n); NaN where one is not known.
    None: it is not estimated."""
    effort_std: Array | None = None
    """Those of the efforts that follow from them, shape (N, E, n)."""
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
    remarks: tuple[str, ...] = ()
    """What was left out, changed or supplied on the way from the file, and what is doubtful."""
    source: str = 'unknown'
    """Where the motion of results comes from, a key of `SOURCES`."""
    base_link: str = ''
    """Base link of the model."""
    continuous_order: int = 2
    """Highest derivative of the efforts that is continuous along the motion, at most 2; -1 if the
    efforts themselves jump. Of a motion that is given by its samples it is not known, and all are
    taken for continuous."""
    joint_units: tuple[str, ...] = ()
    """Unit of the position of each joint, 'rad' or 'm'; empty if it is not known."""
    provenance: Provenance = Provenance()
    """The robot that results were computed with."""

    @classmethod
    def of_model(
        cls,
        model: RobotModel,
        times: Array,
        motion: Array,
        effort: Array | None = None,
        **fields: Any,
    ) -> Samples:
        """Samples of a model, which says joints, units, base link and provenance.

        Parameters
        ----------
        model : RobotModel
            The robot, of n joints.
        times : ndarray, shape (N,)
            [s]
        motion : ndarray, shape (N, K, n)
            [rad/s^k] or [m/s^k]
        effort : ndarray, shape (N, E, n), optional
            [N m/s^m] or [N/s^m]
        **fields
            Other fields of `Samples`.

        Returns
        -------
        Samples
        """
        units = tuple('m' if kind == 'prismatic' else 'rad' for kind in model.joint_types)
        known = {
            'base_link': model.base_link,
            'joint_units': units,
            'provenance': model.provenance,
        }
        names = model.joint_names
        return cls(names, times, motion, effort, **known, **fields)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.joint_names)
        if not names:
            raise JointNameError(
                f'{self.name}: there are no joints, expected at least one.'
            )
        if len(set(names)) != len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise JointNameError(f'{self.name}: {listed(repeated)} more than once.')
        is_of_motors = self.motor_position is not None or self.motor_torque is not None
        motors = tuple(self.motor_names) or names * is_of_motors
        self._set(joint_names=names, motor_names=motors, wrenches=tuple(self.wrenches))
        self._set(motor_joints=tuple(self.motor_joints) or motors)
        self._set(times=self._numbers('times', self.times))
        if self.times.ndim != 1:
            raise MotionError(
                f'{self.name}: times has shape {self.times.shape}, expected (N,).'
            )
        self._refuse_any(~np.isfinite(self.times), self.times)
        self._set_arrays()

    def _set(self, **fields: Any) -> None:
        for what, value in fields.items():
            object.__setattr__(self, what, value)

    def _set_arrays(self) -> None:
        """Check what has a value for each sample."""
        N, n = len(self.times), len(self.joint_names)
        motion = self._numbers('motion', self.motion)
        if motion.ndim != 3 or motion.shape[1] < 1 or motion.shape[::2] != (N, n):
            raise MotionError(
                f'{self.name}: motion has shape {motion.shape}, expected ({N}, K, {n}): samples, '
                'orders from the position on, joints.'
            )
        self._refuse_any(np.isinf(motion), motion)
        if self.effort is None:
            self._set(effort=np.empty((N, 0, n)))
        for what, given in self.arrays().items():
            values, width = self._numbers(what, given), len(getattr(self, _OWNERS[what]))
            if values.ndim == 2:
                values = values[:, None]
            if values.ndim != 3 or values.shape[::2] != (N, width):
                raise MotionError(
                    f'{self.name}: {what} has shape {np.shape(given)}, expected ({N}, orders, '
                    f'{width}), or ({N}, {width}): one for each sample and joint or motor.'
                )
            self._set(**{what: values})
        self._set_single(N)

    def _set_single(self, N: int) -> None:
        """Check wrenches and stiffnesses of N samples."""
        for wrench in self.wrenches:
            shape = np.shape(wrench.values)
            if len(shape) != 3 or shape[0] != N:
                raise MotionError(
                    f'{self.name}: the wrench on {wrench.link!r} has shape {shape}, expected '
                    f'({N}, S, 6): as many samples as the motion.'
                )
        stiffness = {}
        for joint, given in self.stiffness.items():
            series = self._numbers(f'stiffness of {joint!r}', given)
            if series.ndim != 2 or len(series) != N or not np.isfinite(series).all():
                raise MotionError(
                    f'{self.name}: the stiffness of {joint!r} has shape {series.shape}, '
                    f'expected finite numbers of shape ({N}, S).'
                )
            stiffness[joint] = series
        self._set(stiffness=stiffness)

    def _numbers(self, what: str, values: ArrayLike) -> Array:
        """Array of real numbers as float64; refuses anything else."""
        try:
            array = np.asarray(values)
            if array.dtype.kind not in 'fiu':
                raise TypeError(f'elements of type {array.dtype}')
            return np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise MotionError(
                f'{self.name}: {what} is not an array of numbers: {error}.'
            ) from error

    def _refuse_any(self, where: NDArray[np.bool_], values: Array) -> None:
        """Refuse times (N,), or part of a motion (N, K, n), of which something is not finite."""
        if (place := first_true(where)) is None:
            return
        what = 'time'
        if len(place) > 1:
            what = f'derivative {place[1]}' if place[1] else 'position'
            what += f' of joint {self.joint_names[place[2]]!r}'
        raise MotionError(
            f'{self.name}: the {what} is {values[place]} at sample {place[0]}; expected a finite '
            'number.'
        )

    def refuse_unknown_positions(self) -> None:
        """Refuse samples of which a position is not known.

        Raises
        ------
        MotionError
            If there is one; the message says where.
        """
        self._refuse_any(np.isnan(self.motion[:, :1]), self.motion)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)

    @property
    def motors(self) -> MotorMotion | None:
        """Positions, torques and deflections of the motors in one; None if there is none of them.

        Returns
        -------
        MotorMotion or None
            What is not there has no orders.
        """
        arrays = self.arrays()
        if not any(what in arrays for what in MOTOR_ARRAYS):
            return None
        from hodyn_ros.actuators.motors import MotorMotion

        return MotorMotion(
            *(
                arrays.get(
                    what, np.empty((len(self), 0, len(getattr(self, _OWNERS[what]))))
                )
                for what in MOTOR_ARRAYS
            )
        )

    def _joints_of(self, what: str) -> tuple[str, ...]:
        """Joints that a quantity belongs to, along its last axis."""
        return self.motor_joints if _OWNERS[what] == 'motor_names' else self.joint_names

    def by_joint(self, what: str) -> Array | None:
        """First order of a quantity, by the joints, as it is measured; shape (N, n).

        Parameters
        ----------
        what : {'effort', 'motor_position', 'motor_torque'}

        Returns
        -------
        ndarray, shape (N, n), or None
            NaN where it is not known or infinite. None if it is not there, or joints do not have
            one motor each.
        """
        values, joints = getattr(self, what), self._joints_of(what)
        is_there = values is not None and values.shape[1] > 0
        if not is_there or sorted(joints) != sorted(self.joint_names):
            return None
        found = values[:, 0][:, [joints.index(name) for name in self.joint_names]]
        return np.where(np.isinf(found), np.nan, found)

    def at(self, rows: Any) -> Samples:
        """Some of the samples, in their order.

        Parameters
        ----------
        rows : slice or array of int or bool
            Index of samples.

        Returns
        -------
        Samples
        """
        arrays = {what: values[rows] for what, values in self.arrays().items()}
        return replace(
            self,
            times=self.times[rows],
            **arrays,
            wrenches=tuple(
                replace(item, values=np.asarray(item.values)[rows])
                for item in self.wrenches
            ),
            stiffness={name: values[rows] for name, values in self.stiffness.items()},
        )

    def in_order(self, joint_names: Sequence[str]) -> tuple[Samples, tuple[str, ...]]:
        """Choose some of the joints by name.

        Parameters
        ----------
        joint_names : sequence of str
            Joints that are wanted, each once.

        Returns
        -------
        Samples
            With the joints in this order, and their motors.
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
        if missing := [name for name in wanted if name not in self.joint_names]:
            raise JointNameError(
                f'{self.name}: {listed(missing)} missing; it has {listed(self.joint_names)}.'
                + (_OTHERS if missing == list(wanted) else '')
            )
        joints = [self.joint_names.index(name) for name in wanted]
        moved = [m for m, joint in enumerate(self.motor_joints) if joint in wanted]
        motors = sorted(moved, key=lambda m: wanted.index(self.motor_joints[m]))
        places = {'joint_names': joints, 'motor_names': motors}
        fields: dict[str, Any] = {
            what: values[:, :, places[_OWNERS[what]]]
            for what, values in self.arrays().items()
        }
        if not motors:
            fields |= {'motor_position': None, 'motor_torque': None}
        chosen = replace(
            self,
            **fields,
            joint_names=wanted,
            joint_units=_taken(self.joint_units, joints),
            motor_names=_taken(self.motor_names, motors),
            motor_joints=_taken(self.motor_joints, motors),
        )
        return chosen, tuple(name for name in self.joint_names if name not in wanted)

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
        unit = dict(zip(self.joint_names, self.joint_units))
        return {
            what: tuple(
                tuple(
                    QUANTITIES[what].unit_of(order, '', unit[joint] == 'm')
                    for joint in self._joints_of(what)
                )
                for order in range(values.shape[1])
            )
            for what, values in self.arrays().items()
        }

    def arrays(self) -> dict[str, Any]:
        """Quantities that there are, by their names in `QUANTITIES`.

        Returns
        -------
        dict of str to ndarray, shape (N, orders, joints or motors)
        """
        found = {what: getattr(self, what) for what in _OWNERS}
        return {what: values for what, values in found.items() if values is not None}

    def __repr__(self) -> str:
        """Return what they are, in one line."""
        motors = f', {len(self.motor_names)} motors' if self.motor_names else ''
        return f'<Samples of {self._summary()}{motors}; {self.provenance}>'

    def _summary(self) -> str:
        span = f' from {self.times[0]:g} to {self.times[-1]:g} s' if len(self) else ''
        return (
            f'{self.name}: {len(self.joint_names)} joints, {len(self)} samples{span}, '
            f'{self.motion.shape[1]} orders of the motion, {self.effort.shape[1]} of the efforts'
        )

    def largest(self, what: str = 'effort') -> Table:
        """Largest magnitudes of the torques of joints or motors, with units if they are known.

        Parameters
        ----------
        what : {'effort', 'motor_torque'}

        Returns
        -------
        Table
            A record for each joint or motor; NaN where nothing is known.
        """
        of_motors = _OWNERS[what] == 'motor_names'
        names = self.motor_names if of_motors else self.joint_names
        peaks = np.fmax.reduce(np.abs(getattr(self, what)), axis=0, initial=np.nan)
        keys = [name.removeprefix('motor_') for name in QUANTITIES[what].names]
        units = self.units.get(what, [[''] * len(names)] * len(peaks))
        columns = [Column('name', 'motor' if of_motors else 'joint')]
        for key, title, each in zip(keys, _TITLES, units):
            unit = ', '.join(dict.fromkeys(each))
            columns.append(Column(key, 'motor ' * of_motors + title, unit))
        records = [
            {'name': name, 'units': dict(zip(keys, unit)), **dict(zip(keys, values))}
            for name, unit, values in zip(names, zip(*units), peaks.T)
        ]
        return Table('', columns, records)

    def _repr_html_(self) -> str:
        """Return a table of the largest efforts."""
        title = f'{self._summary()}; {self.provenance}'
        return replace(self.largest(), title=title)._repr_html_()


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


def first_known(positions: Array, name: str) -> tuple[int, tuple[str, ...]]:
    """First sample with all positions, before which hardware is not active yet.

    Parameters
    ----------
    positions : ndarray, shape (N, n)
        NaN where one is not known.
    name : str
        Where they come from, for messages.

    Returns
    -------
    first : int
    remarks : tuple of str
        One if samples stand before it.

    Raises
    ------
    FileError
        If there are samples, but none with all positions.
    """
    is_known = ~np.isnan(positions).any(axis=1)
    if len(positions) and not is_known.any():
        raise FileError(
            f'{name}: none of {len(positions)} samples has the positions of all joints.'
        )
    first = int(is_known.argmax()) if len(positions) else 0
    remark = (
        'At the beginning, samples without the positions of all joints are left out: '
        f'{first}.'
    )
    return first, (remark,) * (first > 0)


def times_from(part: Samples, start: int) -> Array:
    """Count the times [s] of a part from another start [ns].

    Parameters
    ----------
    part : Samples
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


def _taken(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    """Names at some places, if there are any."""
    return tuple(names[place] for place in places) if names else ()
