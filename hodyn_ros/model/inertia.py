"""Inertia of rigid bodies: the 6x6 matrix of mass, centre of mass and inertia tensor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import so3
from hodyn_ros.typing import Array

# Published tensors are rounded to about six digits; a tensor of a flat or slender part may
# leave the cone of physical ones by such a rounding and is still meant well.
TRIANGLE_TOLERANCE = 1e-6
DEFINITENESS_TOLERANCE = 1e-9
# The inertia of a mass at this distance [m] is rounding as well.
_NEGLIGIBLE_RADIUS = 1e-6
SYMMETRY_TOLERANCE = 1e-9


class Inertia(NamedTuple):
    """Inertia of a rigid body; the tensor is about the centre of mass in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import Inertia, RobotModel
    >>> rod = Inertia(1.2, com=[0.25, 0.0, 0.0], inertia_com=np.diag([0.0, 0.025, 0.025]))
    >>> arm = RobotModel.from_body_screws([[0, 0, 1, 0, 0, 0]], [np.eye(4)], inertias=[rod])
    >>> np.round(arm.inertial_parameters, 3)
    array([1.2, 0.3, 0. , 0. , 0. , 0. , 0. , 0.1, 0. , 0.1])
    """

    mass: float
    """[kg]"""
    com: ArrayLike = (0.0, 0.0, 0.0)
    """Centre of mass in the body frame [m]."""
    inertia_com: ArrayLike = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    """[kg m^2]"""


class Rotor(NamedTuple):
    """A balanced rotor that moves a joint through a rigid gear, for `RobotModel.with_rotors`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.model import Rotor
    >>> model = RobotModel.from_urdf('two_link')
    >>> model.with_rotors([Rotor('elbow', inertia=2e-5, ratio=100.0)]).body_names
    ('shoulder', 'elbow', 'elbow_rotor')
    """

    joint: str
    inertia: float
    """About its axis, in front of the gear [kg m^2]."""
    ratio: float
    """How far it turns in its carrier for one rad or m of the joint; negative: the other way."""
    carrier: str | None = None
    """Link that it turns in, by default that in front of the joint."""
    axis: ArrayLike | None = None
    """In the frame of the carrier, or without one in that of the joint at zero position, shape
    (3,); by default that of the joint."""
    is_in_carrier: bool = True
    """Whether the inertia of the carrier has been stated with a rotor that stands still in it."""


class Payload(NamedTuple):
    """A rigid body that a link carries, as `RobotModel.with_payload` takes it.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import Payload
    >>> payload = Payload('tool', 0.5, (0.1, 0.0, 0.0), ((0.0,) * 3,) * 3)
    >>> print(payload)
    0.5 kg at 0.1, 0, 0 m
    >>> RobotModel.from_urdf('two_link').with_payload(*payload).provenance.changes
    ('payload of 0.5 kg on tool',)
    """

    link: str
    mass: float
    """[kg]"""
    com: tuple[float, ...]
    """Centre of mass in the link frame, x, y, z [m]."""
    inertia_com: tuple[tuple[float, ...], ...]
    """About that in link axes, 3 x 3 [kg m^2]."""

    def __str__(self) -> str:
        return f'{self.mass:g} kg at {", ".join(f"{x:g}" for x in self.com)} m'


# None stands for a massless body, an array for the 6x6 matrix about the origin of the body frame.
GivenInertia = Inertia | tuple[float, ArrayLike, ArrayLike] | Array | None


def spatial_inertia(mass: float, com: ArrayLike, inertia_com: ArrayLike) -> Array:
    """6x6 inertia matrix about the origin of a frame.

    Source: Kumar and Mueller 2021, eq. (12), parallel-axis term included:
    [[Theta_c - m hat(c)^2, m hat(c)], [-m hat(c), m I]]. Arguments as in `Inertia`.

    Parameters
    ----------
    mass : float
        [kg]
    com : array-like, shape (3,)
        Centre of mass c in the frame [m].
    inertia_com : array-like, shape (3, 3)
        Tensor Theta_c about the centre of mass in the axes of the frame [kg m^2].

    Returns
    -------
    ndarray, shape (6, 6)
    """
    c, about_com = (np.asarray(given, dtype=np.float64) for given in (com, inertia_com))
    return _matrix(mass, mass * c, about_com - mass * so3.hat(c) @ so3.hat(c))


def _matrix(mass: Array | float, moments: Array, about_origin: Array) -> Array:
    """Inertia matrices (..., 6, 6) of masses, first moments and tensors about the origin."""
    M_body = np.zeros((*moments.shape[:-1], 6, 6))
    M_body[..., :3, :3] = about_origin
    M_body[..., :3, 3:] = so3.hat(moments)
    M_body[..., 3:, :3] = -M_body[..., :3, 3:]
    M_body[..., 3:, 3:] = mass * np.eye(3)
    return M_body


# Entries of a symmetric tensor (3, 3) among xx, xy, xz, yy, yz, zz.
TENSOR = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
# Mass, first moments and inertia xx, xy, xz, yy, yz, zz about the origin in such a matrix.
PARAMETERS = ..., [5, 2, 0, 1, 0, 0, 0, 1, 1, 2], [5, 4, 5, 3, 0, 1, 2, 1, 2, 2]


def parametric_inertia(parameters: Array) -> Array:
    """Inertia matrices of parameters, which are not validated.

    Parameters
    ----------
    parameters : ndarray, shape (..., 10)
        Mass [kg], first moments x, y, z [kg m] and inertia xx, xy, xz, yy, yz, zz about the origin
        [kg m^2].

    Returns
    -------
    ndarray, shape (..., 6, 6)
    """
    tensors = parameters[..., 4 + TENSOR]
    return _matrix(parameters[..., :1, None], parameters[..., 1:4], tensors)


def remarks_on_inertia(owner: str, M_body: Array) -> list[str]:
    """Remarks on an inertia matrix that is used even if it is impossible.

    Parameters
    ----------
    owner : str
        Begins the remarks.
    M_body : ndarray, shape (6, 6)
        About the origin of the body frame.
    """
    mass, *h = M_body[PARAMETERS][:4]
    if np.abs(h).max() > 1e9 * abs(mass):  # no body has its centre of mass so far away [m]
        return [f'{owner} has first moments but a mass of {mass} kg; it is used as given.']
    try:
        _, com, inertia_com = inertia_parts(owner, M_body)
        return check_inertia(owner, mass, np.array(com), np.array(inertia_com))
    except ModelError as error:
        return [getattr(error, 'remark', f'{error} It is used as given.')]


_AS_GIVEN = (
    'allow_impossible_inertia (hodyn: --config allow_impossible_inertia:=true) uses it as '
    'given.'
)


def check_inertia(
    owner: str, mass: float, com: Array, inertia_com: Array, advice: str = _AS_GIVEN
) -> list[str]:
    """Remarks on a doubtful inertia; one that no body can have is refused.

    Parameters
    ----------
    owner : str
        Such as "Link 'forearm'"; it begins the messages.
    mass : float
        [kg]
    com : ndarray, shape (3,)
        [m]
    inertia_com : ndarray, shape (3, 3)
        Symmetric, about the centre of mass [kg m^2].
    advice : str
        End of the message on an impossible tensor: what to do if it is meant.

    Returns
    -------
    list of str
        On moments that violate the triangle inequality, and on an inertia without mass, too.

    Raises
    ------
    ModelError
        If a number is not finite, the mass is negative or the tensor impossible: then it has the
        attribute `remark`, which is said if the tensor is used all the same.
    """
    if not np.isfinite([mass, *com, *inertia_com.flat]).all():
        raise ModelError(
            f'{owner}: mass, centre of mass and inertia must be finite numbers.'
        )
    if mass < 0.0:
        raise ModelError(f'{owner} has a negative mass ({mass} kg); expected zero or more.')
    moments = np.linalg.eigvalsh(inertia_com)
    scale = float(np.abs(moments).max())
    negligible = mass * _NEGLIGIBLE_RADIUS**2
    values = ', '.join(f'{value:.6g}' for value in moments)
    warnings = []
    if moments[0] < -DEFINITENESS_TOLERANCE * scale - negligible:
        fault = (
            f'{owner} has an inertia tensor that is not positive semi-definite (principal moments '
            f'{values} kg m^2)'
        )
        raise ModelError(
            f'{fault}; check the signs and the order ixx ixy ixz iyy iyz izz. {advice}',
            remark=f'{fault}; it is used as given. Inverse dynamics is right for these numbers, '
            'but no robot has them: the mass matrix and the kinetic energy may be negative.',
        )
    if moments[0] + moments[1] < moments[2] * (1.0 - TRIANGLE_TOLERANCE) - negligible:
        warnings.append(
            f'{owner}: the principal moments of inertia {values} kg m^2 violate the triangle '
            'inequality, so no distribution of mass has them; they are used as given.'
        )
    if mass == 0.0 and scale > 0.0:
        warnings.append(f'{owner} has an inertia but no mass; it is used as given.')
    return warnings


def checked_inertia(
    owner: str, given: GivenInertia, advice: str = _AS_GIVEN
) -> tuple[Array, list[str]]:
    """Validated inertia matrix, with remarks if it is doubtful.

    A 6x6 matrix is about the origin of the body frame and in its axes; None is a massless body.

    Parameters
    ----------
    owner : str
        Begins messages and remarks.
    given : Inertia, (mass, com, inertia_com), array-like of shape (6, 6), or None
    advice : str
        As of `check_inertia`.

    Returns
    -------
    M_body : ndarray, shape (6, 6)
    remarks : list of str
        See `check_inertia`.

    Raises
    ------
    ModelError
        If it has another form, is not symmetric, or no body can have it.
    """
    if given is None:
        return np.zeros((6, 6)), []
    try:
        if len(given) == 6:
            M_body = np.array(given, dtype=np.float64)
            mass, com, inertia_com = inertia_parts(owner, M_body)
        else:
            mass, com, inertia_com = Inertia(*given)
            mass = float(mass)
            com = np.array(com, dtype=np.float64)
            inertia_com = np.array(inertia_com, dtype=np.float64)
            if com.shape != (3,) or inertia_com.shape != (3, 3):
                raise ModelError(
                    f'{owner}: the centre of mass has shape {com.shape} and the inertia tensor '
                    f'{inertia_com.shape}, expected (3,) and (3, 3).'
                )
            scale = np.abs(inertia_com).max()
            if np.abs(inertia_com - inertia_com.T).max() > SYMMETRY_TOLERANCE * scale:
                raise ModelError(f'{owner}: the inertia tensor is not symmetric.')
            inertia_com = 0.5 * (inertia_com + inertia_com.T)
            M_body = spatial_inertia(mass, com, inertia_com)
    except (TypeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f'{owner}: the inertia is {given!r}, expected (mass, com, inertia_com) or a 6x6 '
            'matrix.'
        ) from error
    parts = np.asarray(com), np.asarray(inertia_com)
    return M_body, check_inertia(owner, mass, *parts, advice)


def inertia_parts(owner: str, M_body: Array) -> Inertia:
    """Mass, centre of mass and inertia tensor of a matrix of the form of `spatial_inertia`.

    Parameters
    ----------
    owner : str
        Begins the messages.
    M_body : ndarray, shape (6, 6)
        About the origin of the body frame.

    Returns
    -------
    Inertia
        Its centre of mass is the origin if there is no mass. Where the parallel-axis term is all
        there is, moments that are its rounding are zero.

    Raises
    ------
    ModelError
        If the matrix is not finite or not of this form within 1e-9 of its largest entry.
    """
    if M_body.shape != (6, 6) or not np.all(np.isfinite(M_body)):
        raise ModelError(
            f'{owner}: the inertia matrix has shape {M_body.shape}, expected (6, 6) with finite '
            'entries.'
        )
    mass = float(np.trace(M_body[3:, 3:]) / 3.0)
    moment = 0.5 * (M_body[:3, 3:] - M_body[3:, :3])
    first = 0.5 * (moment - moment.T)[[2, 0, 1], [1, 2, 0]]
    com = first / mass if mass != 0.0 else np.zeros(3)
    about_origin = 0.5 * (M_body[:3, :3] + M_body[:3, :3].T)
    inertia_com = about_origin + mass * so3.hat(com) @ so3.hat(com)
    difference = np.abs(M_body - spatial_inertia(mass, com, inertia_com)).max()
    if difference > SYMMETRY_TOLERANCE * np.abs(M_body).max():
        raise ModelError(
            f'{owner}: the 6x6 matrix is not the inertia of a rigid body, moment first: '
            '[[Theta, m hat(c)], [-m hat(c), m I]].'
        )
    # Where the parallel-axis term is all there is, its rounding must not pass for a tensor.
    values, axes = np.linalg.eigh(inertia_com)
    rounding = 32.0 * np.finfo(np.float64).eps * np.abs(about_origin).max()
    if np.any(np.abs(values) < rounding):
        values[np.abs(values) < rounding] = 0.0
        inertia_com = (axes * values) @ axes.T
    return Inertia(mass, com, inertia_com)
