"""Friction of many motors at once: laws of the same kind are gathered once, not in every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.model.friction import Coulomb, FrictionLaw, Offset, Sigmoid, Sum, Viscous

Array = NDArray[np.float64]

_TOGETHER = (Viscous, Coulomb, Sigmoid, Offset)


class FrictionGroups:
    """Friction laws of some of m motors.

    Parameters
    ----------
    laws : mapping of int to FrictionLaw
        By the index of the motor.
    """

    def __init__(self, laws: Mapping[int, FrictionLaw]) -> None:
        groups: dict[tuple[type[FrictionLaw], int], list[tuple[int, FrictionLaw]]] = {}
        alone: list[tuple[int, FrictionLaw]] = []
        for motor, law in laws.items():
            count: dict[type[FrictionLaw], int] = {}
            for term in law.laws if isinstance(law, Sum) else (law,):
                kind = type(term)
                if kind not in _TOGETHER:
                    alone.append((motor, term))
                    continue
                # A group has each motor once; a sum may hold two laws of a kind.
                count[kind] = count.get(kind, 0) + 1
                groups.setdefault((kind, count[kind]), []).append((motor, term))
        self._alone = tuple(alone)
        self._groups: list[tuple[NDArray[np.intp], Callable[..., Array], Array]] = []
        for (kind, _), found in groups.items():
            motors = np.array([motor for motor, _ in found], dtype=np.intp)
            parameters = np.array([term.parameters() for _, term in found]).T  # type: ignore[attr-defined]
            self._groups.append((motors, kind.efforts, parameters))  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        return bool(self._groups or self._alone)

    def add(self, velocity: Array, torque: Array) -> None:
        """Add the friction to torques.

        Parameters
        ----------
        velocity : ndarray, shape (..., T, m)
            Velocities of the motors and their derivatives.
        torque : ndarray, shape (..., T, m)
            Changed in place.
        """
        velocity, torque = np.swapaxes(velocity, -1, -2), np.swapaxes(torque, -1, -2)
        for motors, efforts, parameters in self._groups:
            torque[..., motors, :] += efforts(velocity[..., motors, :], *parameters)
        for motor, law in self._alone:
            torque[..., motor, :] += law.effort(velocity[..., motor, :])
