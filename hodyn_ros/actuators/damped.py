"""Deflection x of a spring with a damper beside it, along a sampled joint torque: Q = f(x) + D x'.

Between samples Q is the polynomial of degree 2 E - 1 that has its E derivatives at both ends. A
linear spring is followed exactly (variation of constants); any other one by an exponential method
of order 2 E, solved by quasilinearisation: k is the slope of f where the step ends, and
Q - f(x) + k x drives. Over stiff steps x^(E) is followed, and lower derivatives by
x^(m) = (Q^(m) - D x^(m+1)) / k. The equations are on the page on elastic joints, the steps in
`kernels`. Source: Hochbruck and Ostermann 2010, "Exponential integrators", Acta Numerica 19.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators import kernels
from hodyn_ros.actuators.actuator import of_joint
from hodyn_ros.actuators.springs import Spring
from hodyn_ros.errors import ActuatorError
from hodyn_ros.lie.leibniz import compose

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

_MOST_ITERATIONS = 60
_TINY = 1e-300  # at rest without torque all is zero


class Dampers:
    """Springs with dampers beside them, at some joints of a robot.

    Parameters
    ----------
    model : RobotModel
    joints : sequence of (int, Spring, float)
        Index of the joint, spring and damping [N m s/rad] or [N s/m] of each.

    Attributes
    ----------
    own : bool
        Whether there is a law of the user's own, which the interpreter alone can call.
    """

    def __init__(self, model: RobotModel, joints: Sequence[tuple[int, Spring, float]]) -> None:
        self._model, self._joints = model, joints
        self.own = any(spring.block is None for _, spring, _ in joints)
        places: list[tuple[int, int]] = []
        numbers: list[Any] = []
        for joint, spring, damping in joints:
            places.append((joint, len(numbers)))
            numbers += [damping, *_block(spring)]
        self._places = np.array(places, dtype=np.int64).reshape(-1, 2)
        self._numbers = np.array(numbers, dtype=object if self.own else np.float64)

    def first(self, effort: Array, initial: Mapping[int, float]) -> Array:
        """Series (d, E + 1) of the deflections at the beginning, from the torques (E, n) there.

        Deflections that are not given by joint are those of the slow motion, see
        `first_deflection`.
        """
        series = np.empty((len(self._joints), len(effort) + 1))
        for (joint, spring, damping), own in zip(self._joints, series):
            with of_joint(self._model, joint):
                start = initial.get(joint)
                own[:] = first_deflection(spring, damping, effort[:, joint], start)
        return series

    def follow(self, times: Array, effort: Array, first: Array) -> Array:
        """Series (N, d, E + 1) of the deflections along torques (N, E, n), from the first one on.

        A `DeflectionError` is raised if a spring leaves its range, an `ActuatorError` if no
        solution is found.
        """
        N, E, n = effort.shape
        series = np.empty((N, *first.shape))
        series[0] = first
        if not len(first):
            return series
        rows = np.ascontiguousarray(effort[1:]).reshape(-1, n)
        given = self._places, self._numbers, rows, _tables(E), series.reshape(-1, E + 1)
        run = kernels.follow.interpreted if self.own else kernels.follow
        bad = run(N - 1, np.diff(times), *given)
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
        """Compiled call for one step: its length (1,), torques (E, n), series (2 d, E + 1)."""
        follow: Any = kernels.follow.compiled
        places, numbers, tables = self._places, self._numbers, _tables(E)
        return lambda step, effort, series: follow(
            1, step, places, numbers, effort, tables, series
        )

    def refuse(self, which: int, times: Array, series: Array) -> None:
        """Raise the error about a spring that `follow` returned."""
        _, spring, damping = self._joints[which]
        found = series[:, which, 0]
        lost = np.flatnonzero(np.isnan(found))
        end = int(lost[0]) if lost.size else len(found)
        spring.check(found[:end])
        if lost.size:
            raise ActuatorError(
                f'No deflection of {spring} with damping {damping} was found after sample '
                f'{end - 1}, {times[end - 1]:.6g} s; expected shorter steps or a smoother torque.'
            )


def first_deflection(
    spring: Spring, damping: float, effort: Array, deflection: float | None = None
) -> Array:
    """Series (E+1,) of the deflection at the beginning, from the torque (E,) there.

    By default it is that of the slow motion, as if the damper had forgotten: the solution of the E
    equations of a sample with x^(E) = 0. It deviates from the motion that has forgotten its
    beginning by about (D / f')^E x^(E), and not at all at rest. Where there is none, the spring
    begins as deflected as without the damper. A `DeflectionError` is raised outside of the range.
    """
    if deflection is None:
        slow = _slow_deflection(spring, damping, effort)
        if slow is not None:
            spring.check(slow[0])
            return slow
        deflection = float(spring.deflection(effort[0]))
    spring.check(deflection)
    series = np.array([deflection])
    derivatives = spring.derivatives(series[0], len(effort))
    for m, torque in enumerate(effort):
        rate = (torque - compose(derivatives, series)[m]) / damping
        series = np.append(series, rate)
    return series


def _slow_deflection(spring: Spring, damping: float, effort: Array) -> Array | None:
    E = effort.size
    block = _block(spring)
    factorials = np.cumprod([1.0, *range(1, E + 1)])
    q, x, y, P = effort / factorials[:E], *np.zeros((2, E + 1)), np.zeros((E + 1, E + 1))
    F, g, last = np.zeros(E), np.zeros(max(E, 2)), np.inf
    x[0] = spring.deflection(np.clip(effort[0], *spring.torque_range))
    with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
        for _ in range(_MOST_ITERATIONS):
            y[:] = x
            kernels.extended(block, 0, y[0], g)
            kernels.compose(g, y, F, P)
            for m in reversed(range(E)):
                rest = q[m] - F[m] - (m + 1) * damping * x[m + 1]
                x[m] = y[m] + rest / g[1]
            # In units of the time constant; what has stopped to fall is rounding.
            powers = (damping / g[1]) ** np.arange(E + 1)
            size = np.abs(x) * powers
            change = (np.abs(x - y) * powers / (np.maximum(size, size[0]) + _TINY)).max()
            if change <= kernels.ROUNDING and not 0.0 < change < 0.5 * last:
                return x * factorials
            last = change
    return None


def _block(spring: Spring) -> Any:
    """Numbers by which kernels know a spring; the interpreter knows laws of one's own too."""
    if spring.block is not None:
        return spring.block
    return np.array([kernels.CUSTOM, *spring.range, *spring.torque_range, spring], dtype=object)


@lru_cache(maxsize=16)
def _tables(E: int) -> Array:
    """Tables (2, E, E) of polynomials over steps of length one, in Taylor coefficients.

    They lead from the E lowest coefficients at both ends to the E highest at the end.
    """
    back = np.array([[comb(j, i) * (-1.0) ** (j - i) for j in range(2 * E)] for i in range(E)])
    high = np.asarray(np.linalg.inv(back[:, E:]), dtype=np.float64)
    tables = np.stack((high, -high @ back[:, :E]))
    tables.setflags(write=False)
    return tables
