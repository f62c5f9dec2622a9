"""Series elastic actuators: a motor that drives its joint through a spring.

Q = f(theta - q) + D (thetad - qd), tau = B theta2d + Q + friction(thetad). Source: Spong 1987,
"Modeling and Control of Elastic Joint Robots"; De Luca and Book, "Robots with Flexible Elements".

With a damper beside a linear spring its deflection x obeys Q = k x + D x' along a torque. Between
samples Q is the polynomial of degree 2 E - 1 that has its E derivatives at both ends, and
the equation is solved exactly for it (variation of constants). Over stiff steps x^(E) is followed,
and lower derivatives by x^(m) = (Q^(m) - D x^(m+1)) / k. The equations are on the page on elastic
joints, the steps in `kernels`. Source: Hochbruck and Ostermann 2010, "Exponential integrators",
Acta Numerica 19.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.actuator import (
    Actuator,
    Motors,
    check_friction,
    motors_at,
    of_joint,
    series_of,
)
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.checks import set_checked
from hodyn_ros.errors import ActuatorError
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel


@dataclass(frozen=True)
class SeriesElastic(Actuator):
    """A motor, a spring and perhaps a damper beside it.

    An `ActuatorError` is raised if the spring is no spring, a parameter is not positive (the
    damping may be zero) or a damper is to stand beside a spring that is not linear.

    Attributes
    ----------
    spring : Spring
        Given as a number, it is the stiffness of a linear spring [N m/rad] or [N/m].
    motor_inertia : float
        Inertia B of the motor as the spring sees it: gear ratio squared times rotor inertia
        [kg m^2] or [kg].
    damping : float
        D [N m s/rad] or [N s/m], of a damper beside a linear spring. Without it, the motion of the
        motor is algebraic in that of the joint; with it, the deflection follows a differential
        equation of its own, which `motor_motion` solves along the times of a motion and
        `motor_step` from sample to sample.
    friction : FrictionLaw, optional
        Friction of the motor, in terms of its velocity behind the gear.
    """

    spring: Spring
    motor_inertia: float
    damping: float = 0.0
    friction: FrictionLaw | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.spring, Spring):
            set_checked(self, ActuatorError, 'spring', above=0.0)
            object.__setattr__(self, 'spring', LinearSpring(float(self.spring)))
        set_checked(self, ActuatorError, 'motor_inertia', above=0.0)
        set_checked(self, ActuatorError, 'damping', least=0.0)
        if self.damping and not isinstance(self.spring, LinearSpring):
            raise ActuatorError(
                f'SeriesElastic: damping is {self.damping} beside a {type(self.spring).__name__}, '
                'expected a damper beside a linear spring: give LinearSpring(stiffness), or '
                'damping=0.'
            )
        check_friction('SeriesElastic', self.friction)

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of the motor [kg m^2] or [kg]."""
        return (self.motor_inertia,)

    @property
    def needs_times(self) -> bool:
        """Whether there is a damper, so that the motor depends on the past of the joint."""
        return self.damping > 0.0

    def motors(self, q: Array, effort: Array, stiffness: Array | None = None) -> Motors:
        """Motion and torque of the motor of a joint without damper; see `Actuator.motors`. R = E.

        A joint with a damper is refused with an `ActuatorError`.
        """
        if self.needs_times:
            raise ActuatorError(
                f'The deflection of a joint with damping ({self.damping}) follows a differential '
                'equation; expected a motion with times: use motor_motion with times=, or '
                'motor_step from sample to sample.'
            )
        q, effort = series_of('q', q), series_of('effort', effort)
        R = min(q.shape[-1], effort.shape[-1])
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            position = q[..., :R] + self.spring.deflection_series(effort[..., :R])
        return motors_at(
            self, position[..., None, :], effort[..., None, :], q=q, effort=effort
        )


# --- Dampers -------------------------------------------------------------------------------------


class Dampers:
    """Linear springs with dampers beside them, at some joints of a robot.

    Parameters
    ----------
    model : RobotModel
    drives : sequence of (int, SeriesElastic)
        Index of the joint and drive of each, with a linear spring and a damper.
    """

    def __init__(
        self, model: RobotModel, drives: Sequence[tuple[int, SeriesElastic]]
    ) -> None:
        self._model = model
        self._joints = [
            (joint, drive.spring, drive.damping)
            for joint, drive in drives
            if isinstance(drive.spring, LinearSpring)
        ]
        self._places = np.array([joint for joint, _, _ in self._joints], dtype=np.int64)
        rows = [
            (damping, spring.stiffness, *spring.range)
            for _, spring, damping in self._joints
        ]
        self._springs = np.array(rows, dtype=np.float64).reshape(-1, 4)

    def first(self, effort: Array, initial: Mapping[int, float]) -> Array:
        """Series (d, E + 1) of the deflections at the beginning, from the torques (E, n) there.

        A deflection that is not given by its joint is that of the slow motion, as if the damper
        had forgotten: the solution of the E equations of a sample with x^(E) = 0. It deviates from
        the motion that has forgotten its beginning by about (D / k)^E x^(E), and not at all at
        rest. A `DeflectionError` is raised outside of the range.

        Parameters
        ----------
        effort : ndarray, shape (E, n)
            Torques of all joints with derivatives [N m/s^k] or [N/s^k].
        initial : mapping of int to float
            Deflections by the index of the joint [rad] or [m].

        Returns
        -------
        ndarray, shape (d, E + 1)
            One row for each spring with a damper [rad/s^k] or [m/s^k].
        """
        E = len(effort)
        series = np.zeros((len(self._joints), E + 1))
        for (joint, spring, damping), own in zip(self._joints, series):
            torque, k = effort[:, joint], spring.stiffness
            with of_joint(self._model, joint):
                if joint in initial:
                    own[0] = initial[joint]
                    for m in range(E):
                        own[m + 1] = (torque[m] - k * own[m]) / damping
                else:
                    for m in reversed(range(E)):
                        own[m] = (torque[m] - damping * own[m + 1]) / k
                spring.check(own[0])
        return series

    def follow(self, times: Array, effort: Array, first: Array) -> Array:
        """Series (N, d, E + 1) of the deflections along torques (N, E, n), from the first one on.

        A `DeflectionError` is raised if a spring leaves its range, an `ActuatorError` if no
        solution is found.

        Parameters
        ----------
        times : ndarray, shape (N,)
            Increasing [s].
        effort : ndarray, shape (N, E, n)
            Torques of all joints with derivatives.
        first : ndarray, shape (d, E + 1)
            Series at the first time, as `first` returns it.

        Returns
        -------
        ndarray, shape (N, d, E + 1)
            The first of them is what was given.
        """
        N, E, n = effort.shape
        series = np.empty((N, *first.shape))
        series[0] = first
        if not len(first):
            return series
        rows = np.ascontiguousarray(effort[1:]).reshape(-1, n)
        given = self._places, self._springs, rows, _tables(E), series.reshape(-1, E + 1)
        bad = kernels.follow(N - 1, np.diff(times), *given)
        if bad:
            which = (bad - 1) % len(first)
            joint, spring, damping = self._joints[which]
            found = series[:, which, 0]
            end = int(np.append(np.isnan(found), True).argmax())
            with of_joint(self._model, joint):
                spring.check(found[:end])
                raise ActuatorError(
                    f'No deflection of {spring} with damping {damping} was found after sample '
                    f'{end - 1}, {times[end - 1]:.6g} s; expected shorter steps or a smoother '
                    'torque.'
                )
        return series

    def step(self, E: int) -> Callable[..., int]:
        """Compiled call for one step, a function of three arrays.

        They are the length of the step (1,) [s], the torques behind it (E, n), and the series
        (2 d, E + 1), whose first d rows are given and whose others it writes. It returns what
        `kernels.follow` does.
        """
        follow: Any = kernels.follow.compiled
        places, springs, tables = self._places, self._springs, _tables(E)
        return lambda step, effort, series: follow(
            1, step, places, springs, effort, tables, series
        )


@lru_cache(maxsize=16)
def _tables(E: int) -> Array:
    """Tables (2, E, E) of polynomials over steps of length one, in Taylor coefficients.

    They lead from the E lowest coefficients at both ends to the E highest at the end.
    """
    back = np.array(
        [[comb(j, i) * (-1.0) ** (j - i) for j in range(2 * E)] for i in range(E)]
    )
    high = np.asarray(np.linalg.inv(back[:, E:]), dtype=np.float64)
    tables = np.stack((high, -high @ back[:, :E]))
    tables.setflags(write=False)
    return tables
