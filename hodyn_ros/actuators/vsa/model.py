"""What every model of a variable stiffness actuator has in common.

The elastic energy U of springs between two motors and a link depends on the deflections
d_i = y_i - c_i q of the motors' coordinates y_i; c_i is 0 for a motor that only adjusts the
stiffness. Motors hold t_i = dU/dd_i, the link gets Q = sum of c_i t_i with the stiffness
sigma = -dQ/dq. The m-th derivatives of both d_i enter those of (Q, sigma) linearly.
Source: Palli, Melchiorri and De Luca 2008, "On the feedback linearization of robots with variable
joint stiffness".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.actuator import (
    Actuator,
    Motors,
    check_friction,
    motors_at,
    series_of,
)
from hodyn_ros.actuators.kernels import ROUNDING
from hodyn_ros.checks import checked_number, first_not_finite
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.typing import Array, Flags


class Elastic(NamedTuple):
    """What the springs do, with time derivatives along the last axis."""

    effort: Array
    """On the link (..., K) [N m], positive where it accelerates the link to positive q."""
    stiffness: Array
    """-d effort / dq with the motors held, shape (..., K) [N m/rad]."""
    motor_effort: Array
    """What each motor must hold, shape (..., 2, K) [N m], or what belongs to its coordinate."""


class VsaModel(ABC):
    """Springs between two motors and a link, by a law that the kernels know and can invert.

    Models are those of a family: two exponential springs (`HyperbolicPair`) or a lever
    (`AwasII`). A mechanism with another law is an `Actuator` of its own, which states the motion
    of its motors.

    Attributes
    ----------
    link_coupling : tuple of float
        c_1, c_2 in d_i = y_i - c_i q.
    """

    link_coupling: ClassVar[tuple[float, float]] = (1.0, 1.0)

    @property
    @abstractmethod
    def block(self) -> Array:
        """Kind and constants, see `kernels`."""

    @property
    @abstractmethod
    def effort_range(self) -> tuple[float, float]:
        """Smallest and largest effort on the link that some admissible deflections give [N m]."""

    @abstractmethod
    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Smallest and largest stiffness (...,) [N m/rad] at efforts (...,) on the link [N m].

        The largest is infinite where nothing limits the deflection. Both are NaN where the effort
        itself is out of reach, see `effort_range`.
        """

    def series(self, deflection: Array) -> Elastic:
        """Efforts and stiffness with their time derivatives, along deflections (..., 2, K)."""
        *batch, K = deflection.shape
        d = np.ascontiguousarray(deflection, dtype=np.float64).reshape(-1, K)
        found = np.empty((*batch[:-1], 4, K))
        kernels.elastic(len(d) // 2, self.block, d, found.reshape(-1, K))
        return Elastic(found[..., 0, :], found[..., 1, :], found[..., 2:, :])

    def jacobian(self, deflection: Array) -> Array:
        """Partial derivatives (..., 2, 2) of effort (first row) and stiffness by deflections."""
        columns = []
        for direction in np.eye(2):
            rates = np.broadcast_to(direction, deflection.shape)
            elastic = self.series(np.stack((deflection, rates), axis=-1))
            columns.append(
                np.stack((elastic.effort[..., 1], elastic.stiffness[..., 1]), axis=-1)
            )
        return np.stack(columns, axis=-1)

    def effort_and_stiffness(self, deflection: ArrayLike) -> tuple[Array, Array]:
        """Effort on the link [N m] and stiffness [N m/rad] (...,) at deflections (..., 2)."""
        elastic = self.series(np.asarray(deflection, dtype=np.float64)[..., None])
        return elastic.effort[..., 0], elastic.stiffness[..., 0]

    def deflections_for(self, effort: Array, stiffness: Array) -> Array:
        """Deflections (..., 2) that give efforts [N m] and stiffnesses [N m/rad] (...,).

        A `DeflectionError` is raised outside of the reachable set.
        """
        series = np.broadcast_arrays(np.asarray(effort), np.asarray(stiffness))
        return self.deflection_series(*(values[..., None] for values in series))[..., 0]

    def deflection_series(self, effort: Array, stiffness: Array) -> Array:
        """Deflections (..., 2, K) and their time derivatives from both series (..., K).

        A `DeflectionError` is raised outside of the reachable set, and at its edge of smallest
        stiffness if derivatives are wanted: there the deflections do not depend smoothly on effort
        and stiffness.
        """
        found, status = kernels.deflections(self.block, effort, stiffness)
        first = effort[..., 0], stiffness[..., 0]
        if status & kernels.OUT_OF_REACH:
            self._check_reach(*first)
        if status & kernels.IRREGULAR:
            irregular = np.zeros(effort.shape[:-1], dtype=bool)
            for i in np.ndindex(irregular.shape):
                _, status = kernels.deflections(self.block, effort[i], stiffness[i])
                irregular[i] = status & kernels.IRREGULAR
            self._refuse(irregular, *first, is_edge=True)
        return found

    def _check_reach(self, effort: Array, stiffness: Array) -> None:
        """Refuse what is outside of the reachable set, but for rounding."""
        lower, upper = self.stiffness_range(effort)
        inside = (stiffness >= lower * (1.0 - ROUNDING)) & (
            stiffness <= upper * (1.0 + ROUNDING)
        )
        if not np.all(inside):
            self._refuse(~np.asarray(inside), effort, stiffness)

    def _refuse(
        self, bad: Flags, effort: Array, stiffness: Array, is_edge: bool = False
    ) -> NoReturn:
        """Raise a `DeflectionError` about the first sample that is bad."""
        sample = first_not_finite(np.where(bad, np.nan, 0.0)) or ()
        values = (
            np.broadcast_to(array, bad.shape)[sample] for array in (effort, stiffness)
        )
        # Adding zero makes zeros positive, which reads better.
        Q, sigma = (float(value) + 0.0 for value in values)
        lower, upper = (float(end) + 0.0 for end in self.stiffness_range(Q))
        if is_edge:
            reason = (
                'has the smallest stiffness that this effort allows. There it does not determine '
                'the velocities of the motors; choose a stiffness above '
                f'{lower:.6g}, up to {upper:.6g} N m/rad'
            )
        elif np.isnan(lower):
            smallest, largest = self.effort_range
            reason = (
                'is out of reach: no admissible deflection gives this effort, which can be '
                f'{smallest:.6g} to {largest:.6g} N m'
            )
        else:
            reason = (
                'is out of reach: at this effort the stiffness can be '
                f'{lower:.6g} to {upper:.6g} N m/rad'
            )
        at = f' (sample {", ".join(map(str, sample))})' if sample else ''
        raise DeflectionError(
            f'{self}: an effort of {Q:.6g} N m with a stiffness of {sigma:.6g} N m/rad{at} '
            f'{reason}.',
            sample=sample,
        )


@dataclass(frozen=True)
class VariableStiffness(Actuator):
    """Two motors, and springs between them and the joint.

    An `ActuatorError` is raised if the inertia is not above zero, or a model or friction is none.

    Attributes
    ----------
    model : VsaModel
        The springs: `Qbmove`, `DlrBavs`, `AwasII` or another `HyperbolicPair`.
    motor_inertia : tuple of float, length 2
        Reflected inertia of each motor [kg m^2], or what belongs to its coordinate; one number
        stands for both.
    friction : FrictionLaw or pair of them, optional
        Friction of each motor in terms of its velocity; one law stands for both.
    """

    model: VsaModel
    motor_inertia: tuple[float, float]
    friction: FrictionLaw | tuple[FrictionLaw | None, FrictionLaw | None] | None = None

    motor_suffixes = ('_motor1', '_motor2')
    needs_stiffness = True

    def __init__(
        self,
        model: VsaModel,
        motor_inertia: float | tuple[float, float],
        friction: FrictionLaw | tuple[FrictionLaw | None, FrictionLaw | None] | None = None,
    ) -> None:
        if not isinstance(model, VsaModel):
            raise ActuatorError(
                f'VariableStiffness: model is {model!r}, expected a VsaModel such as '
                'Qbmove(a=6.7, k=0.022).'
            )
        inertia = checked_pair('VariableStiffness', 'motor_inertia', motor_inertia)
        laws = friction if isinstance(friction, (tuple, list)) else (friction, friction)
        if len(laws) != 2:
            raise ActuatorError(
                f'VariableStiffness: friction has {len(laws)} laws, expected one for each of the '
                'two motors, or one for both.'
            )
        for law in laws:
            check_friction('VariableStiffness', law)
        object.__setattr__(self, 'model', model)
        object.__setattr__(self, 'motor_inertia', inertia)
        object.__setattr__(self, 'friction', tuple(laws))

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of both motors [kg m^2]."""
        return self.motor_inertia

    @property
    def turns_with_joint(self) -> tuple[bool, ...]:
        """Whether each motor turns with the joint; one that only sets the stiffness does not."""
        return tuple(c != 0.0 for c in self.model.link_coupling)

    def motors(
        self, q: ArrayLike, effort: ArrayLike, stiffness: ArrayLike | None = None
    ) -> Motors:
        """Motion and torque of both motors; see `Actuator.motors`. R = min(K, E, S).

        A constant stiffness needs its derivatives too, which are zero.
        """
        if stiffness is None:
            raise ActuatorError(
                'A joint with variable stiffness needs the series of its stiffness, '
                'shape (..., S) [N m/rad], beside motion and effort; none is given.'
            )
        given = {'q': q, 'effort': effort, 'stiffness': stiffness}
        series = [series_of(name, value) for name, value in given.items()]
        R = min(values.shape[-1] for values in series)
        try:
            q, Q, sigma = np.broadcast_arrays(*(values[..., :R] for values in series))
        except ValueError:
            shapes = ', '.join(f'{name} {f.shape}' for name, f in zip(given, series))
            raise MotionError(f'Leading axes do not fit: {shapes}.') from None
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            deflection = self.model.deflection_series(Q, sigma)
            position = deflection + self._carried(q)
            load = self.model.series(deflection[..., : max(R - 2, 1)]).motor_effort
        return motors_at(self, position, load, q=q, effort=Q, stiffness=sigma)

    def elastic(self, q: ArrayLike, position: ArrayLike) -> Elastic:
        """Compute what the springs do at positions of joint (..., K) and motors (..., 2, K)."""
        q, position = series_of('q', q), series_of('position', position)
        return self.model.series(position - self._carried(q))

    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Interval of the stiffnesses that an effort allows; see `VsaModel.stiffness_range`."""
        return self.model.stiffness_range(effort)

    def _carried(self, q: Array) -> Array:
        carried: Array = q[..., None, :] * np.array(self.model.link_coupling)[:, None]
        return carried


def checked_pair(
    owner: str, name: str, value: object, *, infinite: bool = False
) -> tuple[float, float]:
    """Two parameters that must be above zero, from a sequence of two or one number for both."""
    try:
        values = list(value)  # type: ignore[call-overload]
    except TypeError:
        values = [value]
    if len(values) not in {1, 2}:
        raise ActuatorError(
            f'{owner}: {name} has {len(values)} values, expected one for each of the two motors, '
            'or one for both.'
        )
    what = f'{owner}: {name}'
    first, second = (
        checked_number(what, values[i], ActuatorError, above=0.0, infinite=infinite)
        for i in (0, -1)
    )
    return first, second
