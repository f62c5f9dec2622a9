"""Formulations of inverse dynamics by the papers, of any order, one file each.

They agree to rounding, so that each checks the others. `tree` holds what several of them need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from hodyn_ros.dynamics.formulations import (
    body_fixed,
    closed_form,
    hybrid,
    lagrange,
    newton_euler,
    spatial,
)
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

__all__ = ['FORMULATIONS', 'BodyEfforts', 'Formulation']


class BodyEfforts(Protocol):
    """What a formulation is: a function of this kind.

    Parameters
    ----------
    model : RobotModel
        Revolute, prismatic and helical joints of any pitch, in a tree.
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, K >= 3: the position and its derivatives [rad/s^k], [m/s^k].
    applied : mapping of int to ndarray, shape (N, K-2, 6)
        For some bodies: the wrench (m, f) that the body exerts on the environment in its own
        frame, and its componentwise derivatives.

    Returns
    -------
    ndarray, shape (N, K-2, n_bodies)
        Efforts of all bodies' joints and their time derivatives [N m/s^m], [N/s^m], without
        friction and armature.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.dynamics import FORMULATIONS, BodyEfforts
    >>> newton_euler: BodyEfforts = FORMULATIONS['newton_euler'].body_efforts
    >>> model = RobotModel.from_urdf('two_link')
    >>> newton_euler(model, np.zeros((1, 3, 2)), {}).round(2)
    array([[[44.14,  9.81]]])
    """

    def __call__(
        self, model: RobotModel, coordinates: Array, applied: Mapping[int, Array], /
    ) -> Array:
        """Compute the efforts."""


class Formulation(NamedTuple):
    """A way to compute the efforts of all bodies' joints.

    Examples
    --------
    >>> from hodyn_ros.dynamics import FORMULATIONS
    >>> [name for name, kind in FORMULATIONS.items() if kind.highest_order is None]
    ['body_fixed', 'closed_form', 'lagrange', 'nth_order', 'spatial',
    'spatial_base_acceleration', 'hybrid']
    """

    body_efforts: BodyEfforts
    highest_order: int | None
    """Highest derivative of the efforts; None: any."""


FORMULATIONS = {
    'body_fixed': Formulation(body_fixed.body_efforts, None),
    'closed_form': Formulation(closed_form.body_efforts, None),
    'lagrange': Formulation(lagrange.body_efforts, None),
    'nth_order': Formulation(body_fixed.body_efforts, None),
    'spatial': Formulation(spatial.body_efforts, None),
    'spatial_base_acceleration': Formulation(
        spatial.body_efforts_with_base_acceleration, None
    ),
    'hybrid': Formulation(hybrid.body_efforts, None),
    # Its source has no derivatives.
    'newton_euler': Formulation(newton_euler.body_efforts, 0),
}
