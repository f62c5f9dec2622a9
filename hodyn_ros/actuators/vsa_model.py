"""What every model of a variable stiffness actuator has in common.

Two motors act on one link through springs. The elastic energy U depends on two deflections d_i
alone, d_i = y_i - c_i q, where y_i is the coordinate of motor i, q that of the link, and c_i is 1
for a motor that turns with the link and 0 for one that only adjusts the stiffness. Then

    motor torque of the springs   t_i = dU/dd_i      (what motor i must hold),
    effort on the link            Q = -dU/dq = sum of c_i t_i,
    stiffness                     sigma = -dQ/dq = sum over i, j of c_i c_j d2U/(dd_i dd_j).

(Q, sigma) are flat outputs of the actuator together with q: they determine both deflections, and
their time derivatives determine those of the deflections, because the m-th derivatives enter those
of (Q, sigma) linearly, with the Jacobian of the map (d_1, d_2) -> (Q, sigma).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.actuator import checked_number
from hodyn_ros.actuators.rootfinding import increasing_root
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

# By how much, relatively, rounding may put an admissible deflection or stiffness outside.
ROUNDING = 1e-12
# A Jacobian whose determinant is smaller than this, relative to its terms, counts as singular.
SINGULAR = 1e-9
# Beyond this a search for an upper end of an unlimited curve has no end.
MOST_DOUBLINGS = 60


class Elastic(NamedTuple):
    """What the springs do, with time derivatives along the last axis.

    Attributes
    ----------
    effort : ndarray, shape (..., K)
        On the link [N m], positive where it accelerates the link in its positive direction.
    stiffness : ndarray, shape (..., K)
        -d effort / dq with the motors held [N m/rad].
    motor_effort : ndarray, shape (..., 2, K)
        What each motor must hold against the springs [N m], or what belongs to its coordinate.
    """

    effort: Array
    stiffness: Array
    motor_effort: Array


class VsaModel(ABC):
    """Springs between two motors and a link; derive from it for a mechanism of one's own.

    A model states `series`, `completed`, `range_of_free` and `effort_range`. The rest follows from
    them; a model with a closed-form inverse overrides `deflections_for`. Along a curve of constant
    effort the stiffness must increase with the free deflection.

    Attributes
    ----------
    link_coupling : tuple of float
        c_1, c_2 in d_i = y_i - c_i q.
    free : int
        Which of the two deflections parametrises the curves of constant effort.
    units : tuple of str
        Units of the coordinates of the motors.
    """

    link_coupling: ClassVar[tuple[float, float]] = (1.0, 1.0)
    free: ClassVar[int] = 0
    units: ClassVar[tuple[str, str]] = ('rad', 'rad')

    @property
    @abstractmethod
    def effort_range(self) -> tuple[float, float]:
        """Smallest and largest effort on the link that some admissible deflections give [N m]."""

    @abstractmethod
    def series(self, deflection: Array) -> Elastic:
        """Efforts and stiffness with their time derivatives.

        Parameters
        ----------
        deflection : ndarray, shape (..., 2, K)
            Entry k is the k-th time derivative.

        Returns
        -------
        Elastic
        """

    @abstractmethod
    def completed(self, effort: Array, free: Array) -> Array:
        """Both deflections, from the effort and the deflection that is `free`.

        Parameters
        ----------
        effort, free : ndarray, shape (...,)

        Returns
        -------
        ndarray, shape (..., 2)
        """

    @abstractmethod
    def range_of_free(self, effort: Array) -> tuple[Array, Array]:
        """Find the ends of the curve of an effort, in terms of the deflection that is `free`.

        Parameters
        ----------
        effort : ndarray, shape (...,)

        Returns
        -------
        lower, upper : ndarray, shape (...,)
            The lower end is finite and has the smallest stiffness, the upper end may be infinite.
            Both are NaN where no admissible deflections give this effort.
        """

    def jacobian(self, deflection: Array) -> Array:
        """Partial derivatives of effort (first row) and stiffness with respect to deflections.

        Parameters
        ----------
        deflection : ndarray, shape (..., 2)

        Returns
        -------
        ndarray, shape (..., 2, 2)
        """
        columns = []
        for direction in np.eye(2):
            rates = np.broadcast_to(direction, deflection.shape)
            elastic = self.series(np.stack((deflection, rates), axis=-1))
            columns.append(np.stack((elastic.effort[..., 1], elastic.stiffness[..., 1]), axis=-1))
        return np.stack(columns, axis=-1)

    def is_regular(self, deflection: Array, jacobian: Array) -> Flags:
        """Whether derivatives of effort and stiffness determine those of the deflections.

        Parameters
        ----------
        deflection : ndarray, shape (..., 2)
        jacobian : ndarray, shape (..., 2, 2)
            At these deflections.

        Returns
        -------
        ndarray of bool, shape (...,)
        """
        main = jacobian[..., 0, 0] * jacobian[..., 1, 1]
        side = jacobian[..., 0, 1] * jacobian[..., 1, 0]
        return np.asarray(np.abs(main - side) > SINGULAR * (np.abs(main) + np.abs(side)))

    def effort_and_stiffness(self, deflection: ArrayLike) -> tuple[Array, Array]:
        """Effort on the link and stiffness.

        Parameters
        ----------
        deflection : array-like, shape (..., 2)

        Returns
        -------
        effort, stiffness : ndarray, shape (...,)
            [N m], [N m/rad]
        """
        elastic = self.series(np.asarray(deflection, dtype=np.float64)[..., None])
        return elastic.effort[..., 0], elastic.stiffness[..., 0]

    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Interval of the stiffnesses that can be had at an effort.

        Parameters
        ----------
        effort : array-like, shape (...,)
            On the link [N m].

        Returns
        -------
        lower, upper : ndarray, shape (...,)
            [N m/rad]. The upper end is infinite where nothing limits the deflection. Both are NaN
            where the effort itself is out of reach (see `effort_range`).
        """
        effort = np.asarray(effort, dtype=np.float64)
        ends = []
        for free in self.range_of_free(effort):
            finite = np.isfinite(free)
            deflection = self.completed(effort, np.where(finite, free, 0.0))
            _, stiffness = self.effort_and_stiffness(np.where(finite[..., None], deflection, 0.0))
            ends.append(np.where(finite, stiffness, free))
        # Where the interval is a point, rounding must not turn it round.
        return ends[0], np.maximum(*ends)

    def deflections_for(self, effort: Array, stiffness: Array) -> Array:
        """Deflections that give an effort and a stiffness.

        Parameters
        ----------
        effort, stiffness : ndarray, shape (...,)
            [N m], [N m/rad]

        Returns
        -------
        ndarray, shape (..., 2)

        Raises
        ------
        DeflectionError
            Outside the reachable set.
        """
        shape = np.broadcast(effort, stiffness).shape
        effort = np.broadcast_to(effort, shape).ravel()
        stiffness = np.broadcast_to(stiffness, shape).ravel()
        lowest, highest = self.stiffness_range(effort)
        inside = stiffness >= lowest * (1.0 - ROUNDING)
        inside &= stiffness <= highest * (1.0 + ROUNDING)
        self.check_reach(inside.reshape(shape), effort.reshape(shape), stiffness.reshape(shape))
        lower, upper = self.range_of_free(effort)

        def excess(free: Array) -> tuple[Array, Array]:
            """Logarithm of the stiffness over the wanted one: springs are often exponential."""
            with np.errstate(all='ignore'):
                deflection = self.completed(effort, free)
                _, found = self.effort_and_stiffness(deflection)
                J = self.jacobian(deflection)
                this, other = self.free, 1 - self.free
                # Along the curve the effort stays: the other deflection follows.
                follow = -J[..., 0, this] / J[..., 0, other]
                slope = (J[..., 1, this] + J[..., 1, other] * follow) / found
                value = np.log(found / stiffness)
            # Overflow means too stiff.
            return np.where(np.isnan(value), np.inf, value), slope

        step = 1.0
        for _ in range(MOST_DOUBLINGS):
            open_ended = np.isinf(upper)
            if not open_ended.any():
                break
            trial = np.where(open_ended, lower + step, upper)
            upper = np.where(open_ended & (excess(trial)[0] >= 0.0), trial, upper)
            step *= 2.0
        else:
            reached = np.isfinite(upper).reshape(shape)
            self.check_reach(reached, effort.reshape(shape), stiffness.reshape(shape))
        free = increasing_root(excess, lower, upper)
        return self.completed(effort, free).reshape((*shape, 2))

    def deflection_series(self, effort: Array, stiffness: Array) -> Array:
        """Deflections and their time derivatives by implicit differentiation.

        Parameters
        ----------
        effort, stiffness : ndarray, shape (..., K)
            Entry k is the k-th time derivative [N m/s^k], [N m/(rad s^k)].

        Returns
        -------
        ndarray, shape (..., 2, K)

        Raises
        ------
        DeflectionError
            Outside the reachable set, and at its edge of smallest stiffness if derivatives are
            wanted: there the deflections do not depend smoothly on effort and stiffness.
        """
        K = effort.shape[-1]
        start = self.deflections_for(effort[..., 0], stiffness[..., 0])
        deflection = np.zeros((*start.shape, K))
        deflection[..., 0] = start
        if K == 1:
            return deflection
        J = self.jacobian(start)
        determinant = J[..., 0, 0] * J[..., 1, 1] - J[..., 0, 1] * J[..., 1, 0]
        regular = self.is_regular(start, J)
        if not np.all(regular):
            self._refuse_edge(regular, effort[..., 0], stiffness[..., 0])
        for m in range(1, K):
            Q, sigma = effort[..., m], stiffness[..., m]
            if m > 1:
                # The m-th derivatives of the deflections are still zero here.
                known = self.series(deflection[..., : m + 1])
                Q, sigma = Q - known.effort[..., m], sigma - known.stiffness[..., m]
            deflection[..., 0, m] = (J[..., 1, 1] * Q - J[..., 0, 1] * sigma) / determinant
            deflection[..., 1, m] = (J[..., 0, 0] * sigma - J[..., 1, 0] * Q) / determinant
        return deflection

    def check_reach(self, inside: Flags | np.bool_, effort: Array, stiffness: Array) -> None:
        """Raise an error on the first sample that is not inside the reachable set.

        Parameters
        ----------
        inside : ndarray of bool, shape (...,)
        effort, stiffness : ndarray, shape (...,)

        Raises
        ------
        DeflectionError
        """
        if np.all(inside):
            return
        sample, Q, sigma = _first(~np.asarray(inside), effort, stiffness)
        lower, upper = (float(end) + 0.0 for end in self.stiffness_range(Q))
        if np.isnan(lower):
            smallest, largest = self.effort_range
            reach = (
                f'no admissible deflection gives this effort, '
                f'which can be {smallest:.6g} to {largest:.6g} N m'
            )
        else:
            reach = f'at this effort the stiffness can be {lower:.6g} to {upper:.6g} N m/rad'
        raise DeflectionError(
            f'{self}: an effort of {Q:.6g} N m with a stiffness of {sigma:.6g} N m/rad'
            f'{_at(sample)} is out of reach: {reach}.',
            sample=sample,
        )

    def _refuse_edge(self, regular: Flags, effort: Array, stiffness: Array) -> None:
        sample, Q, sigma = _first(~regular, effort, stiffness)
        lower, upper = (float(end) + 0.0 for end in self.stiffness_range(Q))
        raise DeflectionError(
            f'{self}: a stiffness of {sigma:.6g} N m/rad at an effort of {Q:.6g} N m{_at(sample)} '
            'is the smallest that this effort allows. There it does not determine the velocities '
            f'of the motors; choose a stiffness above, up to {upper:.6g} N m/rad '
            f'(lower end {lower:.6g}).',
            sample=sample,
        )


def _first(bad: Flags, *values: Array) -> tuple[tuple[int, ...], float, float]:
    """Index of the first sample that is bad, and the values there."""
    sample = tuple(int(i) for i in np.argwhere(np.atleast_1d(bad))[0]) if bad.ndim else ()
    # Adding zero makes zeros positive, which reads better.
    first, second = (float(np.broadcast_to(value, bad.shape)[sample]) + 0.0 for value in values)
    return sample, first, second


def _at(sample: tuple[int, ...]) -> str:
    return f' (sample {", ".join(map(str, sample))})' if sample else ''


def checked_pair(
    owner: str, name: str, value: object, *, infinite: bool = False
) -> tuple[float, float]:
    """Two parameters that must be above zero; one number stands for both.

    Parameters
    ----------
    owner, name : str
        For the message.
    value : object
        A number or a sequence of two.
    infinite : bool
        Whether infinity is accepted.

    Returns
    -------
    tuple of float, length 2

    Raises
    ------
    ActuatorError
    """
    try:
        values = list(value)  # type: ignore[call-overload]
    except TypeError:
        values = [value]
    if len(values) not in {1, 2}:
        raise ActuatorError(
            f'{owner}: {name} has {len(values)} values, expected one for each of the two motors, '
            'or one for both.'
        )
    first, second = values[0], values[-1]
    return (
        checked_number(owner, name, first, infinite=infinite),
        checked_number(owner, name, second, infinite=infinite),
    )


def series_of(name: str, value: ArrayLike) -> Array:
    """Check a series given by a caller.

    Parameters
    ----------
    name : str
        For the message.
    value : array-like, shape (..., K)

    Returns
    -------
    ndarray, shape (..., K)

    Raises
    ------
    MotionError
        If it has no axis of derivatives or holds values that are not finite numbers.
    """
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise MotionError(f'{name} must hold numbers, got {value!r:.100}.') from None
    if found.ndim == 0 or found.shape[-1] == 0:
        raise MotionError(
            f'{name} has shape {found.shape}, expected (..., K): a last axis with the value and '
            'its time derivatives.'
        )
    if not np.isfinite(found).all():
        sample = tuple(int(i) for i in np.argwhere(~np.isfinite(found))[0])
        raise MotionError(f'{name} is {found[sample]} at index {sample}, expected finite numbers.')
    return found
