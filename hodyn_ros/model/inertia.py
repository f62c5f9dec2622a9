"""Inertia of rigid bodies: the 6x6 matrix of mass, centre of mass and inertia tensor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3, so3

Array = NDArray[np.float64]

# Published tensors are rounded to about six digits; a tensor of a flat or slender part may
# leave the cone of physical ones by such a rounding and is still meant well.
TRIANGLE_TOLERANCE = 1e-6
DEFINITENESS_TOLERANCE = 1e-9


def spatial_inertia(mass: float, com: ArrayLike, inertia_com: ArrayLike) -> Array:
    """6x6 inertia matrix about the origin of a frame.

    Source: Kumar and Mueller 2021, eq. (12), parallel-axis term included:
    [[Theta_c - m hat(c)^2, m hat(c)], [-m hat(c), m I]].

    Parameters
    ----------
    mass : float
        [kg]
    com : array-like, shape (3,)
        Centre of mass in the frame [m].
    inertia_com : array-like, shape (3, 3)
        Inertia tensor about the centre of mass in the axes of the frame [kg m^2].

    Returns
    -------
    ndarray, shape (6, 6)
    """
    c_hat = so3.hat(com)
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = np.asarray(inertia_com, dtype=np.float64) - mass * c_hat @ c_hat
    matrix[:3, 3:] = mass * c_hat
    matrix[3:, :3] = -mass * c_hat
    matrix[3:, 3:] = mass * np.eye(3)
    return matrix


def transform_inertia(M_body: Array, frame: Array) -> Array:
    """Inertia matrix with respect to another frame fixed to the same body.

    Parameters
    ----------
    M_body : ndarray, shape (6, 6)
        Inertia about the origin of frame j, in its axes.
    frame : ndarray, shape (4, 4)
        Pose of frame j in frame i.

    Returns
    -------
    ndarray, shape (6, 6)
        Inertia about the origin of frame i, in its axes.
    """
    Ad_inverse = se3.Ad(se3.inverse(frame))
    return Ad_inverse.T @ M_body @ Ad_inverse


def check_inertia(owner: str, mass: float, com: Array, inertia_com: Array) -> list[str]:
    """Refuse an inertia that no body can have; return remarks on doubtful ones.

    Parameters
    ----------
    owner : str
        What the inertia belongs to, for the messages, for example "link 'forearm'".
    mass : float
        [kg]
    com : ndarray, shape (3,)
        [m]
    inertia_com : ndarray, shape (3, 3)
        About the centre of mass [kg m^2].

    Returns
    -------
    list of str
        Warnings.

    Raises
    ------
    ModelError
        If a value is not finite, the mass is negative or the tensor is not positive semi-definite.
    """
    if not (np.isfinite(mass) and np.all(np.isfinite(com)) and np.all(np.isfinite(inertia_com))):
        raise ModelError(f'{owner}: mass, centre of mass and inertia must be finite numbers.')
    if mass < 0.0:
        raise ModelError(f'{owner} has a negative mass ({mass} kg); expected zero or more.')
    moments = np.linalg.eigvalsh(inertia_com)
    scale = float(np.abs(moments).max())
    if moments[0] < -DEFINITENESS_TOLERANCE * scale:
        values = ', '.join(f'{value:.6g}' for value in moments)
        raise ModelError(
            f'{owner} has an inertia tensor that is not positive semi-definite (principal moments '
            f'{values} kg m^2); check the signs and the order ixx ixy ixz iyy iyz izz.'
        )
    warnings = []
    if moments[0] + moments[1] < moments[2] * (1.0 - TRIANGLE_TOLERANCE):
        values = ', '.join(f'{value:.6g}' for value in moments)
        warnings.append(
            f'{owner}: the principal moments of inertia {values} kg m^2 violate the triangle '
            'inequality, so no distribution of mass has them; they are used as given.'
        )
    if mass == 0.0 and scale > 0.0:
        warnings.append(f'{owner} has an inertia but no mass; it is used as given.')
    return warnings
